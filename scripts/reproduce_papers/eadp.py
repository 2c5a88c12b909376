# SPDX-License-Identifier: MIT
"""Paper 001: extended anisotropic diffusion profiles. Accuracies, times and the simplification of an image."""
import json
import os
import re
import statistics

from . import charts, profiler
from .common import METRICS, Missing, Result, item, mean_spread, percent, seconds_of_passes
from .morphology import morphological_profile

SIZES = {"Houston": (1905, 349), "Indian Pines": (145, 145), "Pavia University": (340, 610)}
DIFFUSION = ("gradient range", "gradient histogram", "diffusion", "profile")  # passes of gdal_hsi_eadp after the PCA

# Table III: stage -> milliseconds of CPU and GPU for the three scenes.
STAGES = {
    "setup": ((0.003, 0.42), (0.001, 0.022), (0.001, 0.141)), "Gaussian": ((3.46, 0.23), (0.54, 0.05), (0.98, 0.10)),
    "Scharr": ((5.01, 0.16), (0.13, 0.02), (1.59, 0.06)), "contrast": ((61.45, 0.34), (1.59, 0.07), (17.29, 0.17)),
    "diffusivity": ((0.65, 0.14), (0.01, 0.02), (0.25, 0.05)), "FED": ((69.32, 16.35), (7.76, 0.71), (29.12, 5.33)),
    "cleanup": ((0.11, 0.41), (0.001, 0.02), (0.002, 0.142)), "total": ((208.69, 17.99), (10.02, 0.91), (49.24, 6.01))}

# Table VII: OA and AA in percent, kappa times 100; and Table I's training pixels per class.
ACCURACY = {
    "houston": {"EMP": (80.01, 82.78, 78.34), "EAPa": (79.50, 82.47, 77.70), "EEPa": (80.32, 83.36, 78.66),
                "EMAP": (78.92, 82.23, 77.21), "EMEP": (80.83, 83.64, 79.20), "EADP": (98.82, 98.82, 98.72)},
    "indian_pines": {"EMP": (91.99, 95.04, 90.85), "EAPa": (91.38, 93.54, 90.15), "EEPa": (92.99, 95.58, 91.99),
                     "EMAP": (91.65, 95.15, 90.46), "EMEP": (93.70, 96.00, 92.79), "EADP": (92.45, 95.27, 91.34)},
    "pavia_university": {"EMP": (91.82, 93.54, 89.12), "EAPa": (90.33, 93.47, 87.71), "EEPa": (94.82, 96.17, 93.32),
                         "EMAP": (93.52, 94.82, 91.65), "EMEP": (95.46, 96.57, 94.07), "EADP": (99.61, 99.66, 99.47)}}
TRAIN = {
    "houston": [f"{n}:{c}" for c, n in enumerate(
        (198, 190, 192, 188, 186, 182, 196, 191, 193, 191, 181, 192, 184, 181, 187), 1)],
    "indian_pines": ["50", "15:1,7,9"],
    "pavia_university": [f"{n}:{c}" for c, n in enumerate((548, 540, 392, 524, 265, 532, 375, 514, 231), 1)]}
KINDS = {"EMP": "emp", "EAPa": "eap", "EEPa": "eep", "EMAP": "emap", "EMEP": "emep"}


def classify(run, features, seeds, counts):
    """Returns {name: [{seed, C, gamma, accuracies}]} of an SVM on each feature cube, with the same splits for all."""
    results = {key: [] for key in features}
    model, mapped = run.path("model.json"), run.path("map.tif")
    for seed in seeds:
        train, test = run.split(counts, seed)
        for key, cube in features.items():
            run.tool("gdal_hsi_svm_train", "-q", "-overwrite", "-seed", seed, cube, train, model)
            run.tool("gdal_hsi_svm_classify", "-q", "-overwrite", cube, model, mapped)
            chosen = json.loads(model.read_text())["svm"]
            results[key].append({"seed": seed, "C": chosen["C"], "gamma": chosen["gamma"],
                                 **percent(run.accuracy(mapped, test))})
            run.progress(f"seed {seed}, {key}: " + ", ".join(f"{m} {results[key][-1][m]:.2f}" for m in METRICS))
    return results


def eadp_report(run, scene, *options):
    return run.report("gdal_hsi_eadp", "-device", "cpu", "-of", "ENVI", *options, scene, run.path("eadp.dat"))


def diffusion_ms(run, scene, *options):
    """Returns milliseconds of all passes after the PCA, the median of --repeat runs."""
    times = []
    for _ in range(run.args.repeat):
        passes = seconds_of_passes(eadp_report(run, scene, *options))
        times.append(1e3 * sum(passes.get(name, 0) for name in DIFFUSION))
    return statistics.median(times)


def gpu_rows(output):
    """Returns {(scene, row): {"total": ms, stage: ms}} from eadp_cuda_bench's output."""
    found, scene = {}, None
    for line in output.splitlines():
        if head := re.match(r"(\S.*) \d+x\d+, \d+ components", line):
            scene = head.group(1)
        elif row := re.match(r"  (\S.*?)\s+([\d.]+) ms\s+(.*)$", line):
            stages = {k: float(v) for k, v in re.findall(r"([A-Za-z]+) ([\d.]+)", row.group(3))}
            found[scene, row.group(1)] = {"total": float(row.group(2)), **stages}
    return found


def published_by_openmp(run, which):
    """Returns {(scene, threads): {"total": ms, stage: ms}} of the published algorithm on the CPU, double precision."""
    found = {}
    for row in run.google("eadp_cpu_bench", f"^published<double>/{which}"):
        if row.get("error_occurred"):
            raise Missing(f"eadp_cpu_bench measured nothing: {row['error_message']}", "Look for what differs in benchmarks/published/eadp.h.")
        part = dict(p.split(":") for p in row["name"].split("/")[1:] if ":" in p)
        scene = next(n for n, s in SIZES.items() if s == (int(part["samples"]), int(part["lines"])))
        found[scene, int(part["threads"])] = {"total": row["real_time"], **{k: row[k] for k in STAGES if k in row}}
    return found


@item("001", "table3", "Times by stage, CPU and GPU", "a GPU for the GPU half")
def table3(run):
    result = Result()
    openmp = published_by_openmp(run, "samples:(1905|145|340)/")
    most = max(threads for _, threads in openmp)
    rows = run.google("eadp_cpu_bench", "^profile/.*exact:0/double:(0|1)/")
    ours = []
    for row in rows:
        part = dict(p.split(":") for p in row["name"].split("/")[1:] if ":" in p)
        scene = next(n for n, s in SIZES.items() if s == (int(part["samples"]), int(part["lines"])))
        paper = STAGES["total"][list(SIZES).index(scene)][0]
        ours.append((scene, part["threads"], "double" if part["double"] == "1" else "single", row["real_time"],
                     row["cpu_time"], paper, paper / row["real_time"]))
    result.table("CPU, milliseconds from planes in memory to 63 bands in memory; the paper: double, 6 threads",
                 ("scene", "threads", "arithmetic", "ours", "processor of one thread", "paper, total", "paper/ours"), ours)
    output = run.gpu_or_note(result, "eadp_cuda_bench", "-repeat", run.args.repeat * 7)
    measured = gpu_rows(output) if output else {}
    table = []
    for k, scene in enumerate(SIZES):
        for stage, times in STAGES.items():
            here = [next((m.get(stage) for (s, row), m in measured.items() if s == scene and row.startswith(kind)), None)
                    for kind in ("FED, double", "FED, single", "published kernels, double")]
            cpu = openmp[scene, most].get(stage)
            table.append((scene, stage, times[k][0], times[k][1], times[k][0] / times[k][1], cpu, here[2],
                          cpu / here[2] if cpu and here[2] else None, *here[:2]))
    result.table(f"By stage, milliseconds; as published by OpenMP on {most} threads of this machine, and on its GPU", (
        "scene", "stage", "paper, CPU", "paper, GPU", "times", "published, CPU", "published kernels", "times",
        "ours, GPU, double", "ours, GPU, single"), table)
    if measured:
        result.note("Ours makes Gaussian and Scharr in one kernel; stages are timed one by one, the total without stops.")
    result.data = {"cpu": ours, "openmp": [(*k, v) for k, v in openmp.items()],
                   "gpu": [(*k, v) for k, v in measured.items()]}
    return result


def kernels(run, which):
    rows = profiler.eadp_kernels(run, which)
    result = Result().table(f"{which['title']}; Houston's size, the published kernels in double precision",
                            ("kernel", *which["columns"], *(f"paper: {c}" for c in which["columns"])), rows)
    result.data = rows
    return result


@item("001", "table4", "Occupancy by kernel", "a GPU and Nsight Compute (ncu)")
def table4(run):
    return kernels(run, profiler.OCCUPANCY)


@item("001", "table5", "Efficiency by kernel", "a GPU and Nsight Compute (ncu)")
def table5(run):
    return kernels(run, profiler.EFFICIENCY)


@item("001", "table6", "GFLOPS and bandwidth by kernel", "a GPU and Nsight Compute (ncu)")
def table6(run):
    return kernels(run, profiler.THROUGHPUT)


@item("001", "table7", "Classification accuracy of profiles", "--scene and --labels")
def table7(run):
    scene = run.real_scene("Houston, Indian Pines or Pavia University", labels=True)
    dataset = run.args.dataset or "indian_pines"
    paper, result = ACCURACY[dataset], Result()
    features = {"raw bands": scene, "7 PCs": run.path("pcs.dat")}
    run.tool("gdal_hsi_pca", "-q", "-of", "ENVI", scene, features["7 PCs"])
    if run.has("gdal_hsi_profile"):
        for name, kind in KINDS.items():
            features[name] = run.path(f"{kind}.dat")
            run.tool("gdal_hsi_profile", "-q", "-of", "ENVI", "-kind", kind, scene, features[name])
    else:
        features["EMP"] = run.path("emp.dat")
        morphological_profile(features["7 PCs"], features["EMP"])
        result.note("EMP: by numpy, disks of 2, 4, 6, 8 pixels. EAPa, EEPa, EMAP and EMEP are left out: gdal_hsi_profile, "
                    "which makes them, is not among the executables.")
    features["EADP"] = run.path("eadp.dat")
    run.tool("gdal_hsi_eadp", "-q", "-of", "ENVI", scene, features["EADP"])
    result.data = classify(run, features, run.args.seeds, run.args.counts or TRAIN[dataset])
    rows = [(key, *(mean_spread([r[m] for r in runs]) for m in METRICS),
             ", ".join(f"{v:.2f}" for v in paper.get(key, ()))) for key, runs in result.data.items()]
    result.table(f"{scene.name}, {run.args.splits} random splits (mean and standard deviation; the paper: 100):",
                 ("features", "OA %", "AA %", "kappa x 100", "paper: OA, AA, kappa"), rows)
    return result


@item("001", "fig5", "OA by number of copies (ts = 2) and by time step (C = 8)", "--scene and --labels")
def fig5(run):
    scene = run.real_scene("Houston, Indian Pines or Pavia University", labels=True)
    counts = run.args.counts or TRAIN[run.args.dataset or "indian_pines"]
    features, places = {}, {}
    sweeps = {"C with ts = 2": [(c, ("-c", c, "-ts", 2)) for c in run.values((1, 2, 4, 6, 8))],
              "ts with C = 8": [(t, ("-c", 8, "-ts", t)) for t in run.args.times]}
    for sweep, points in sweeps.items():
        for x, options in points:
            key = f"{sweep}: {x:g}"
            features[key], places[key] = run.path(f"eadp{len(features)}.dat"), (sweep, x)
            run.tool("gdal_hsi_eadp", "-q", "-of", "ENVI", *options, scene, features[key])
    result = Result()
    result.data = classify(run, features, run.args.seeds, counts)
    curves = {name: [] for name in sweeps}
    for key, runs in result.data.items():
        sweep, x = places[key]
        curves[sweep].append((x, statistics.mean(r["overall_accuracy"] for r in runs)))
    result.table(f"{scene.name}, {run.args.splits} random splits; the paper shows curves without numbers, both rising",
                 ("varied", "value", "OA %"), [(n, x, f"{y:.2f}") for n, c in curves.items() for x, y in c])
    result.picture = run.png
    charts.curves(run.png, "001 fig. 5", "C or ts", "OA %", curves)
    return result


@item("001", "fig6", "Speedup of the CPU by threads")
def fig6(run):
    result, cores = Result(), len(os.sched_getaffinity(0))
    scene = run.scene_or_synthetic(result, (*SIZES["Houston"], 16))
    threads = run.values(sorted({1, *(2**i for i in range(1, 10) if 2**i <= cores), cores}))
    times = [diffusion_ms(run, scene, "-threads", t) for t in threads]
    result.table(f"Diffusion of 7 components, 63 bands, median of {run.args.repeat}; {cores} cores here, 6 in the paper",
                 ("threads", "ms", "speedup"), [(t, ms, times[0] / ms) for t, ms in zip(threads, times)])
    result.note(f"Load of the machine: {os.getloadavg()[0]:.1f}. Passes after the PCA, with reading and writing files.")
    result.data = dict(zip(threads, times))
    curves = {"ours": [(t, times[0] / s) for t, s in zip(threads, times)]}
    if not (run.args.scene or run.args.size):
        openmp = {t: row["total"] for (_, t), row in published_by_openmp(run, "samples:1905/").items()}
        curves["published"] = [(t, openmp[1] / ms) for t, ms in sorted(openmp.items())]
        result.table("As published, by OpenMP in double precision, from memory to memory",
                     ("threads", "ms", "speedup"), [(t, ms, openmp[1] / ms) for t, ms in sorted(openmp.items())])
        result.data = {"ours": result.data, "published": openmp}
    result.picture = run.png
    charts.curves(run.png, "001 fig. 6", "threads", "speedup", curves)
    return result


@item("001", "fig7", "Time by size of the scene, and speedup of the GPU", "a GPU for the GPU half")
def fig7(run):
    result, rows, curves = Result(), [], {"cpu": []}
    samples, lines, bands = run.args.size or (*SIZES["Houston"], 16)
    noted = False
    for factor in run.values((1, 2, 3, 4)):
        scene = run.path("scaled.dat")
        run.tool("gdal_hsi_synth", "-q", "-overwrite", "-of", "ENVI", "-size", samples, lines * factor, bands, scene)
        cpu = diffusion_ms(run, scene)
        curves["cpu"].append((factor, cpu))
        gpu = {}
        if not noted:
            output = run.gpu_or_note(result, "eadp_cuda_bench", "-size", samples, lines * factor, 7)
            noted = output is None
            gpu = {row: m["total"] for (_, row), m in gpu_rows(output or "").items()}
        single = next((v for k, v in gpu.items() if k.startswith("FED, single")), None)
        published = next((v for k, v in gpu.items() if k.startswith("published kernels, double")), None)
        for name, value in (("gpu", single), ("published", published)):
            if value:
                curves.setdefault(name, []).append((factor, value))
        rows.append((factor, f"{samples} x {lines * factor}", cpu, single, published, cpu / single if single else None))
    result.table(f"Milliseconds of a profile of 63 bands, median of {run.args.repeat}", (
        "size", "pixels", "CPU, single", "GPU, single", "published kernels, double", "CPU/GPU"), rows)
    result.note(f"Load of the machine: {os.getloadavg()[0]:.1f}. CPU: the tool's passes after the PCA, with files.")
    result.data = rows
    result.picture = run.png
    charts.curves(run.png, "001 fig. 7", "size of the scene", "ms", curves)
    return result


@item("001", "fig8", "Simplification ratio and SSIM of the profile, ts = 5", "--scene; else a synthetic one")
def fig8(run):
    result, n, copies = Result(), 7, 8
    scene = run.scene_or_synthetic(result, (145, 145, 200))
    run.tool("gdal_hsi_eadp", "-q", "-of", "ENVI", "-nc", n, "-c", copies, "-ts", 5, scene, run.path("eadp.dat"))
    pairs = [(i * (copies + 1) + 1, i * (copies + 1) + 1 + j) for i in range(n) for j in range(1, copies + 1)]
    told = json.loads(run.tool("gdal_hsi_compare", "-json", "-metric", "sr,ssim", "-band",
                               ",".join(f"{a}:{b}" for a, b in pairs), run.path("eadp.dat"), run.path("eadp.dat")))
    by = {m: [told["metrics"][m]["bands"][i * copies:(i + 1) * copies] for i in range(n)] for m in ("sr", "ssim")}
    if any(v is None for plane in by.values() for row in plane for v in row):
        raise Missing("a component of this scene has no flat zones to compare", "Take a larger scene")
    left = {m: [statistics.mean(row) for row in by[m]] for m in by}
    right = {m: [statistics.mean(row[j] for row in by[m]) for j in range(copies)] for m in by}
    result.table("Left: mean over the copies of each component (equation 11); the paper: SR under 0.5",
                 ("ADP", "SR", "SSIM"), [(i + 1, left["sr"][i], left["ssim"][i]) for i in range(n)])
    result.table("Right: mean over the components of each copy (equation 12); the paper: both fall with the copy",
                 ("copy", "SR", "SSIM"), [(j + 1, right["sr"][j], right["ssim"][j]) for j in range(copies)])
    result.data = {"per_adp": left, "per_copy": right}
    result.picture = run.png
    charts.curves(run.png, "001 fig. 8", "ADP or copy", "SR, SSIM", {
        f"{m} per {what}": list(enumerate(values[m], 1)) for what, values in (("adp", left), ("copy", right)) for m in by})
    return result
