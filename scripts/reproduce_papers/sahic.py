# SPDX-License-Identifier: MIT
"""Paper 003: classification with spatially adaptive Markov random fields. Accuracies and times."""
import json
import os
import re
import statistics
import subprocess
import sys

from . import charts
from .common import METRICS, ROOT, Missing, Result, item, mean_spread, needs_arrays, percent, seconds_of_passes

# Tables IV and VI: training pixels and accuracy in percent per class; OA, AA, kappa x 100; the scene's parameters.
SCENES = {
    "pavia_university": {
        "name": "Pavia University", "train": (40,) * 9, "paper": (95.36, 96.36, 93.94), "options": (0.35, 1),
        "classes": (93.56, 94.71, 92.43, 89.13, 99.7, 100, 99.92, 98.72, 99.09)},
    "indian_pines": {
        "name": "Indian Pines", "paper": (98.32, 90.35, 98.08), "options": (0.8, 2),
        "train": (6, 144, 84, 24, 50, 75, 3, 49, 2, 97, 247, 62, 22, 130, 38, 10),
        "classes": (91.67, 97.05, 98.4, 100, 95.3, 99.11, 78.26, 100, 16.67, 97.7, 99.77, 99.82, 100, 100, 97.66, 74.12)}}

# Tables V and VII, seconds: serial, multicore and GPU on the C2075 and on the K20C.
TIMES = {"Pavia University": ((1427.69, 179.08, 17.73), (1309.54, 157.89, 10.85)),
         "Indian Pines": ((228.66, 43.66, 4.62), (211.02, 38.17, 2.95))}

# Table VIII, seconds of one iteration: serial and parallel.
KERNELS = {
    "Pavia University": {"q": (0.07368, 0.00002), "fixq": (0.00012, 0.00003), "nu_aux3_sum": (0.00692, 0.00003),
                         "Vs": (0.06727, 0.00004), "V4": (0.02709, 0.00006), "V5": (0.08223, 0.00017)},
    "Indian Pines": {"q": (0.01734, 0.00002), "fixq": (0.00056, 0.00004), "nu_aux3_sum": (0.00191, 0.00003),
                     "Vs": (0.01482, 0.00005), "V4": (0.00538, 0.00015), "V5": (0.01442, 0.00031)}}

WRONG = "It prints what differs from ours; build it with -DHSI_BENCHMARKS=ON."

WAYS = {"LORSAL": ["-no-spatial"], "SAHIC": [], "optimum, pixel by pixel": ["-no-spatial", "-lorsal-solver", "optimum"],
        "SAHIC from the optimum": ["-lorsal-solver", "optimum"]}


def accuracies(run, dataset, ways):
    """Returns ({method: [{seed, accuracies}]}, {class: [percent]} of SAHIC, {method: [seconds]}) over the random
    splits."""
    facts = SCENES[dataset]
    scene = run.real_scene(facts["name"], labels=True)
    counts = run.args.counts or [f"{n}:{c}" for c, n in enumerate(facts["train"], 1)]
    delta, weight = (a if a is not None else b for a, b in zip((run.args.delta, run.args.lam), facts["options"]))
    results, classes, seconds = {key: [] for key in ways}, {}, {key: [] for key in ways}
    for seed in run.args.seeds:
        train, test = run.split(counts, seed)
        mapped = run.path("map.tif")
        for number, (key, options) in enumerate(ways.items()):
            # The Markov random field on an existing model gives the result of training again.
            model = run.path(f"model{number // 2}.json")
            how = ["-model", model, "-delta", delta, *options] if number % 2 == 0 else ["-apply", model]
            if "-no-spatial" not in options:
                how += ["-lambda", weight]
            record = run.report("gdal_hsi_sahic", *how, scene, train, mapped)
            judged = run.accuracy(mapped, test)
            results[key].append({"seed": seed, **percent(judged)})
            seconds[key].append(record["seconds"])
            if key == "SAHIC":
                for c in judged["classes"]:
                    classes.setdefault((c["value"], c["name"]), []).append(100 * c["producers_accuracy"]["value"])
            run.progress(f"seed {seed}, {key}: OA {results[key][-1]['overall_accuracy']:.2f}")
            if run.args.maps and seed == 1:
                needs_arrays()
                run.args.maps.mkdir(parents=True, exist_ok=True)
                picture = run.args.maps / f"{key.replace(',', '').replace(' ', '_').lower()}.png"
                run.tool("gdal_hsi_quicklook", "-q", "-overwrite", "-beside", mapped, scene, picture)
    return results, classes, seconds


def accuracy_table(run, dataset):
    results, classes, _ = accuracies(run, dataset, WAYS)
    facts, result = SCENES[dataset], Result()
    rows = [(key, *(mean_spread([r[m] for r in runs]) for m in METRICS),
             ", ".join(f"{v:.2f}" for v in facts["paper"]) if key == "SAHIC" else "") for key, runs in results.items()]
    result.table(f"{run.args.scene.name}, {run.args.splits} random splits (mean and standard deviation; the paper: 10):",
                 ("", "OA %", "AA %", "kappa x 100", "paper: OA, AA, kappa"), rows)
    paper = dict(enumerate(facts["classes"], 1))
    result.table("SAHIC by class, percent of its test pixels", ("class", "name", "here", "paper"), [
        (value, name, mean_spread(v), paper.get(value)) for (value, name), v in sorted(classes.items())])
    result.data = results
    return result


@item("003", "table4", "Accuracy on Pavia University", "--scene and --labels")
def table4(run):
    return accuracy_table(run, run.args.dataset or "pavia_university")


@item("003", "table6", "Accuracy on Indian Pines", "--scene and --labels (10,366 pixels)")
def table6(run):
    return accuracy_table(run, run.args.dataset or "indian_pines")


def part_of(output, scene):
    """Returns a benchmark's output for one scene, up to the next."""
    begin = output.index(scene + ",")
    others = [at for at in (output.find(name + ",", begin) for name in TIMES if name != scene) if at > 0]
    return output[begin:min(others, default=len(output))]


def kernel_times(output, variant):
    """Returns {kernel: time} from a line such as "SAHIC_S, one iteration by kernel, ms: q_kernel 1.2 ...", including
    the transforms."""
    line = re.search(rf"{variant}, one iteration by kernel.*", output)[0]
    return {name: float(value) for name, value in re.findall(
        r"(transforms before V[45]|D4|\w+(?=_kernel))(?:_kernel)? ([\d.]+)", line)}


def variants(scene, cpu, gpu):
    """Returns rows of Table V or VII, every variant from memory to memory on this machine: name, device, seconds by
    stage and in total, processor seconds, the paper's seconds on the K20C. cpu and gpu: the benchmarks' output; gpu may
    be None."""
    rows, paper = [], dict(zip(("SAHIC_S", "SAHIC_M", "SAHIC_P"), TIMES[scene][1]))
    for name, threads, *seconds in re.findall(
            r"  (\w+) +(\d+) threads: training ([\d.]+), probabilities ([\d.]+), field ([\d.]+), all ([\d.]+) s; "
            r"processor ([\d.]+) s", part_of(cpu, scene)):
        rows.append((name, f"CPU, {threads} threads", *map(float, seconds), paper.get(name)))
    rows.sort(key=lambda row: ("SAHIC_S", "SAHIC_M", "ours").index(row[0]))
    for name, pattern in (("SAHIC_P", r"SAHIC_P here: .*: ([\d.]+)"), ("ours", r"the whole.*; ours ([\d.]+): ")) if gpu else ():
        rows.append((name, "GPU", None, None, None, float(re.search(pattern, part_of(gpu, scene))[1]), None, paper.get(name)))
    serial = next(row[5] for row in rows if row[0] == "SAHIC_S")
    return [(*row, serial / row[5]) for row in rows]


def times(run, scene):
    """Times whole processes on a synthetic scene of the paper's size, with one thread and all, by
    benchmarks/sahic_whole_process; and the paper's variants and ours from memory to memory."""
    result, record = Result(), run.path("times.json")
    done = subprocess.run([sys.executable, str(ROOT / "benchmarks" / "sahic_whole_process"), "--bin", str(run.args.bin),
                           "--runs", str(run.args.repeat), "--only", scene, "--no-kernels", "--json", str(record),
                           "--work", str(run.folder)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Missing(f"benchmarks/sahic_whole_process failed: {done.stderr.strip()}", "Check --bin.")
    measured = json.loads(record.read_text())
    rows = []
    for threads in ("1", "ALL_CPUS"):
        runs = [r for r in measured if r["threads"] == threads]
        middle = [statistics.median(r[k] for r in runs) for k in ("seconds", "processor", "training", "probabilities", "mrf")]
        rows.append((runs[0]["device"], *middle))
    result.table(f"Here, seconds from file to file, synthetic scene of {scene}'s size, median of {run.args.repeat}",
                 ("", "wall", "processor", "training", "probabilities", "random field"), rows)
    k20c, c2075 = TIMES[scene][1], TIMES[scene][0]
    result.table("The paper, seconds", ("", "C2075's machine", "K20C's machine", "K20C's/ours (all threads)"), [
        (f"SAHIC_{n}", a, b, b / rows[1][1]) for n, a, b in zip("SMP", c2075, k20c)])
    cpu = run.bench("sahic_published_bench", "-scene", scene, "-iterations", run.args.iterations, advice=WRONG)
    gpu = run.gpu_or_note(result, "sahic_cuda_bench", "-repeat", run.args.repeat * 5)
    rows = variants(scene, cpu, gpu)
    result.table("As published and ours, here, seconds from memory to memory, periodic border; SAHIC_P: its random field "
                 "after our LORSAL", ("", "", "training", "probabilities", "random field", "all", "processor",
                                      "paper, K20C's machine", "SAHIC_S/this"), rows)
    result.note(f"The field of SAHIC_S and SAHIC_M: {run.args.iterations} of 200 iterations, as if all. Load of the machine: "
                f"{os.getloadavg()[0]:.1f}.")
    result.data = {"processes": measured, "variants": rows}
    return result


@item("003", "table5", "Times on Pavia University: SAHIC_S, SAHIC_M, SAHIC_P and ours", "a GPU for the GPU rows")
def table5(run):
    return times(run, "Pavia University")


@item("003", "table7", "Times on Indian Pines: SAHIC_S, SAHIC_M, SAHIC_P and ours", "a GPU for the GPU rows")
def table7(run):
    return times(run, "Indian Pines")


@item("003", "table8", "Times of one iteration by kernel", "a GPU for the GPU half")
def table8(run):
    result, rows = Result(), []
    cpu = run.bench("sahic_published_bench", "-iterations", 1, advice=WRONG)
    gpu = run.gpu_or_note(result, "sahic_cuda_bench", "-repeat", run.args.repeat * 5)
    for scene, kernels in KERNELS.items():
        serial = kernel_times(part_of(cpu, scene), "SAHIC_S")
        device = kernel_times(part_of(gpu, scene), "SAHIC_P") if gpu else {}
        for name in serial:
            paper = kernels.get(name, (None, None))
            here = (serial[name], device.get(name))
            rows.append((scene, name, here[0], paper[0] and 1e3 * paper[0], here[1], paper[1] and 1e6 * paper[1],
                         1e3 * here[0] / here[1] if here[1] else None, paper[0] / paper[1] if paper[0] else None))
    result.table("As published: SAHIC_S, milliseconds of processor time, and SAHIC_P, microseconds; the paper's on the K20C's "
                 "machine. The paper has no times of its transforms", (
                     "scene", "kernel", "SAHIC_S", "paper, serial", "SAHIC_P", "paper, GPU", "S/P", "paper: S/P"), rows)
    ours = kernels_of_ours(run, result)
    on_gpu = []
    for scene, kernels in KERNELS.items() if gpu else ():
        step, rest = map(float, re.search(r"ours: step ([\d.]+) \(all but V4\), filter ([\d.]+)", part_of(gpu, scene)).groups())
        v4 = 1e6 * kernels["V4"][1]
        device = kernel_times(part_of(gpu, scene), "SAHIC_P")
        but = sum(device[k] for k in kernels if k != "V4")
        on_gpu += [(scene, "all but V4", step, but, 1e6 * sum(k[1] for k in kernels.values()) - v4),
                   (scene, "V4", rest, device["V4"], v4)]
    if on_gpu:
        result.table("GPU, microseconds without the transforms", ("scene", "", "ours", "SAHIC_P here", "paper, K20C"), on_gpu)
    result.data = {"published": rows, "cpu": ours, "gpu": on_gpu}
    return result


def kernels_of_ours(run, result):
    rows = []
    measured = run.google("sahic_cpu_bench", "^kernel/")
    for scene, kernels in KERNELS.items():
        for row in measured:
            if not row["label"].startswith(scene + ", "):
                continue
            what = row["label"][len(scene) + 2:]
            if what == "q and Vs":  # the same loop without its fixed pixels
                continue
            names = [n for n in kernels if re.search(rf"\b{n}\b", what)] if not what.startswith("V4") else []
            paper = 1e3 * sum(kernels[n][0] for n in names) if names else None
            rows.append((scene, what, row["cpu_time"], paper, paper / row["cpu_time"] if paper else None))
    result.table("Ours on one thread, milliseconds of processor time; one of our loops does the work of several kernels, and "
                 "the paper's V4 leaves the transforms out", ("scene", "", "ours", "paper, serial", "paper/ours"), rows)
    return rows


@item("003", "fig11", "LORSAL and SAHIC beside each other: accuracy and time", "--scene and --labels")
def fig11(run):
    dataset = run.args.dataset or "indian_pines"
    results, _, seconds = accuracies(run, dataset, {k: WAYS[k] for k in ("LORSAL", "SAHIC")})
    result = Result()
    accuracy = {k: [statistics.mean(r[m] for r in runs) for m in METRICS] for k, runs in results.items()}
    train, smooth = (statistics.mean(seconds[k]) for k in ("LORSAL", "SAHIC"))
    paper = SCENES[dataset]["paper"]
    result.table(f"{run.args.scene.name}, {run.args.splits} random splits", ("", "OA %", "AA %", "kappa x 100"), [
        ("LORSAL, here", *accuracy["LORSAL"]), ("SAHIC, here", *accuracy["SAHIC"]), ("SAHIC, paper", *paper)])
    result.table("Seconds of processes from file to file; the paper: SAHIC_P under 3 s in all", ("", "here"), [
        ("LORSAL: training and map", train), ("SAHIC: the model applied, and the random field", smooth)])
    result.data = {"accuracy": accuracy, "seconds": {"LORSAL": train, "random field": smooth}}
    result.picture = run.png
    charts.bars(run.png, "003 fig. 11", "", "%", {n: [accuracy[k][i] for k in accuracy] for i, n in enumerate(
        ("OA", "AA", "kappa"))}, list(accuracy))
    return result


@item("003", "fig12", "Share of kernels and transfers in the GPU's time", "a GPU")
def fig12(run):
    output = run.bench("sahic_cuda_bench", "-repeat", run.args.repeat * 5)
    result, rows = Result(), []
    for scene in TIMES:
        part = output[output.index(scene + ","):]
        kernels, whole = map(float, re.search(r"iterations: ([\d.]+) ms on the device, ([\d.]+) ms", part).groups())
        rows.append((scene, 100 * kernels / whole, 100 - 100 * kernels / whole))
    result.table("The random field, percent; the paper: more than 99 and less than 1 of the whole",
                 ("scene", "kernels", "copies and the rest"), rows)
    result.data = rows
    result.picture = run.png
    charts.bars(run.png, "003 fig. 12", "", "%", {r[0]: list(r[1:]) for r in rows}, ["kernels", "rest"])
    return result
