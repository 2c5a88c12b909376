# SPDX-License-Identifier: MIT
"""Paper 003: classification with spatially adaptive Markov random fields. Accuracies and times."""
import json
import re
import statistics
import subprocess
import sys

from . import charts
from .common import METRICS, ROOT, Missing, Result, item, mean_spread, percent, seconds_of_passes

# Tables IV and VI: training pixels and accuracy in percent of each class; OA, AA, kappa x 100; the scene's parameters.
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

WAYS = {"LORSAL": ["-no-spatial"], "SAHIC": [], "optimum, pixel by pixel": ["-no-spatial", "-lorsal-solver", "optimum"],
        "SAHIC from the optimum": ["-lorsal-solver", "optimum"]}


def accuracies(run, dataset, ways):
    """({way: [{seed, accuracies}]}, {class: [percent]} of SAHIC, {way: [seconds]}) over the random splits."""
    facts = SCENES[dataset]
    scene = run.real_scene(facts["name"], labels=True)
    counts = run.args.counts or [f"{n}:{c}" for c, n in enumerate(facts["train"], 1)]
    delta, weight = (a if a is not None else b for a, b in zip((run.args.delta, run.args.lam), facts["options"]))
    results, classes, seconds = {key: [] for key in ways}, {}, {key: [] for key in ways}
    for seed in range(1, run.args.splits + 1):
        train, test = run.split(counts, seed)
        mapped = run.path("map.tif")
        for number, (key, options) in enumerate(ways.items()):
            # The random field on the model that is at hand gives what training anew gives.
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
                run.args.maps.mkdir(parents=True, exist_ok=True)
                picture = run.args.maps / f"{key.replace(',', '').replace(' ', '_').lower()}.png"
                subprocess.run([sys.executable, ROOT / "scripts" / "quicklook", scene, mapped, picture], check=True,
                               stdout=subprocess.DEVNULL)
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


def times(run, scene):
    """Whole processes on a synthetic scene of the paper's size, one thread and all, by benchmarks/sahic_whole_process."""
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
    output = run.gpu_or_note(result, "sahic_cuda_bench", "-repeat", run.args.repeat * 5)
    if output:
        part = output[output.index(scene + ","):]
        ours = float(re.search(r"ours ([\d.]+): ", part[part.index("the whole"):]).group(1))
        result.table("GPU, seconds from memory to memory", ("", "here", "paper, K20C"), [("SAHIC", ours, k20c[2])])
    result.data = measured
    return result


@item("003", "table5", "Times on Pavia University", "a GPU for the GPU row")
def table5(run):
    return times(run, "Pavia University")


@item("003", "table7", "Times on Indian Pines", "a GPU for the GPU row")
def table7(run):
    return times(run, "Indian Pines")


@item("003", "table8", "Times of one iteration by kernel", "a GPU for the GPU half")
def table8(run):
    result, rows = Result(), []
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
    result.table("One thread, milliseconds of processor time; one of our loops does the work of several kernels, and the "
                 "paper's V4 leaves the transforms out", ("scene", "", "ours", "paper, serial", "paper/ours"), rows)
    output = run.gpu_or_note(result, "sahic_cuda_bench", "-repeat", run.args.repeat * 5)
    gpu = []
    for scene, kernels in KERNELS.items() if output else ():
        part = output[output.index(scene + ","):]
        step, rest = map(float, re.search(r"ours: step ([\d.]+) \(all but V4\), filter ([\d.]+)", part).groups())
        v4 = 1e6 * kernels["V4"][1]
        gpu += [(scene, "all but V4", step, 1e6 * sum(k[1] for k in kernels.values()) - v4), (scene, "V4", rest, v4)]
    if gpu:
        result.table("GPU, microseconds without the transforms", ("scene", "", "ours", "paper, K20C"), gpu)
    result.data = {"cpu": rows, "gpu": gpu}
    return result


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
