# SPDX-License-Identifier: MIT
"""Paper 004: spatial preprocessing. The error of the GPU's result, endmembers found on it, and times."""
import json
import re
import statistics

from . import charts, profiler
from .common import Missing, Result, gdal, item, needs_arrays, ogr, seconds_of_passes, size_of
from .common import numpy as np

WINDOWS = (3, 5, 7, 9, 11, 13, 15)
SIZES = {"Cuprite": (350, 350, 188), "WTC": (614, 512, 224)}
TARGETS = {"Cuprite": 19, "WTC": 31}  # virtual dimensionality in the paper

# Table I: NRMSE and MaxSDE by window.
DIFFERENCES = {"Cuprite": ([v * 1e-6 for v in (3.28, 2.85, 2.61, 2.45, 2.32, 2.22, 2.14)],
                           [v * 1e-4 for v in (9.46, 8.15, 7.43, 6.93, 6.55, 6.24, 5.98)]),
               "WTC": ([v * 1e-5 for v in (2.69, 1.60, 1.23, 1.04, 0.91, 0.83, 0.76)],
                       [v * 1e-3 for v in (5.00, 3.00, 2.30, 2.00, 1.70, 1.60, 1.50)])}
# Tables II and III, seconds by window.
CACHE = {"48 kB L1, GTX580": (0.35, 0.41, 0.49, 0.67, 0.89, 1.18, 1.75), "16 kB L1, GTX580": (0.35, 0.43, 0.52, 0.89, 1.32, 2.2, 3.46),
         "48 kB L1, GTX870M": (0.52, 0.59, 0.78, 1.16, 1.94, 3.35, 5.43), "16 kB L1, GTX870M": (0.52, 0.6, 0.8, 1.23, 2.14, 3.78, 6.14)}
TIMES = {"SPP, serial": (7.86, 18.63, 38.87, 77.72, 141.80, 211.27, 286.97),
         "1M-SPP, GTX580": (0.69, 0.71, 0.78, 0.87, 1.06, 1.32, 1.62), "NM-SPP, GTX580": (0.35, 0.41, 0.49, 0.67, 0.89, 1.18, 1.75),
         "NS-SPP, GTX580": (0.35, 0.41, 0.48, 0.63, 0.93, 1.40, 3.66), "1M-SPP, GTX870M": (0.98, 1.03, 1.06, 1.29, 1.6, 2.07, 2.47),
         "NM-SPP, GTX870M": (0.52, 0.59, 0.78, 1.16, 1.94, 3.35, 5.43), "NS-SPP, GTX870M": (0.5, 0.57, 0.65, 0.8, 1.11, 1.66, 5.56)}


def windows(run):
    chosen = run.values(WINDOWS)
    if any(w < 3 or w % 2 == 0 for w in chosen):
        raise Missing("--values: windows are odd numbers from 3 on", "Such as 3,5,7")
    return chosen


def of_paper(values, chosen):
    by = dict(zip(WINDOWS, values))
    return [by.get(w) for w in chosen]


def serial_spp(pixels, chosen):
    """Returns {window: displaced spectra} by equations (1) to (5), double precision; pixels: (lines, samples,
    bands)."""
    unit = pixels / np.linalg.norm(pixels, axis=2, keepdims=True)
    lines, samples = unit.shape[:2]
    sums = {w: np.zeros((lines, samples)) for w in chosen}
    weights = {w: np.zeros((lines, samples)) for w in chosen}
    reach = max(chosen) // 2
    for dy in range(reach + 1):
        for dx in range(-reach, reach + 1):
            if dy == 0 and dx <= 0:
                continue
            here = np.s_[:max(0, lines - dy), max(0, -dx):max(0, min(samples, samples - dx))]
            there = np.s_[dy:, max(0, dx):max(0, min(samples, samples + dx))]
            angle = np.arccos(np.clip(np.einsum("ijk,ijk->ij", unit[here], unit[there]), -1, 1))
            beta = 1 / (dy * dy + dx * dx)
            for w in chosen:
                if max(dy, abs(dx)) <= w // 2:
                    for place in (here, there):
                        sums[w][place] += beta * angle
                        weights[w][place] += beta
    mean = pixels.mean(axis=(0, 1))
    rho = {w: (1 + np.sqrt(sums[w] / weights[w])) ** 2 for w in chosen}
    return {w: (pixels - mean) / rho[w][:, :, None] + mean for w in chosen}


def read(path):
    return gdal.Open(str(path)).ReadAsArray().astype(np.float64).transpose(1, 2, 0)


def differences(reference, other):
    """Returns NRMSE and MaxSDE of every pixel, equations (6) to (8)."""
    apart = other - reference
    spread = reference - reference.mean(axis=2, keepdims=True)
    nrmse = np.sqrt((apart**2).sum(axis=2) / (spread**2).sum(axis=2))
    return nrmse, np.abs(apart).max(axis=2) / np.abs(reference).mean(axis=2)


def displaced(run, scene, window, device="cpu"):
    target = run.path(f"spp_{device}.dat")
    run.tool("gdal_hsi_spp", "-q", "-overwrite", "-of", "ENVI", "-device", device, "-ws", window, scene, target)
    return target


def scenes(run, result):
    """Returns [(name, path)]: the user's scene, a scene of --size, or both of the paper's sizes one after another."""
    if run.args.scene or run.args.size:
        yield "the scene", run.scene_or_synthetic(result, SIZES["Cuprite"], "-targets", 8)
        return
    for name, size in SIZES.items():
        yield name, run.scene_or_synthetic(result, size, "-targets", 8)


@item("004", "table1", "NRMSE and MaxSDE against the serial algorithm, by window", "a GPU for the GPU half")
def table1(run):
    needs_arrays()
    result, chosen, result_data = Result(), windows(run), {}
    for name, scene in scenes(run, result):
        pixels, rows, gpu = read(scene), [], True
        serial = serial_spp(pixels, chosen)
        for w in chosen:
            nrmse, maxsde = differences(serial.pop(w), read(displaced(run, scene, w)))
            row = [w, nrmse.mean(), nrmse.max(), maxsde.mean(), maxsde.max(), None, None]
            try:
                other = displaced(run, scene, w, "cuda") if gpu else None
            except Missing as e:
                gpu, other = False, None
                result.note(f"No GPU figures: {str(e).splitlines()[0]}.")
            if other:
                a, b = differences(read(displaced(run, scene, w)), read(other))
                row[5:] = a.mean(), b.mean()
            rows.append([float(f"{v:.4g}") if isinstance(v, float) else v for v in row])
        result.table(f"{name}: gdal_hsi_spp on the CPU against the serial algorithm in numpy, double precision", (
            "ws", "NRMSE, mean", "NRMSE, greatest", "MaxSDE, mean", "MaxSDE, greatest", "GPU and CPU: NRMSE", "MaxSDE"),
            rows)
        result_data[name] = rows
    for name, (nrmse, maxsde) in DIFFERENCES.items():
        result.table(f"The paper: {name}, its GPU against its serial version", ("ws", "NRMSE", "MaxSDE"),
                     zip(chosen, of_paper(nrmse, chosen), of_paper(maxsde, chosen)))
    result.data = result_data
    return result


def by_window(output, name):
    """Returns {(row, window): [all, with copies] in ms} of a scene from spp_cuda_bench's output."""
    found = {}
    for line in output[output.index(f"\n{name}:"):].splitlines():
        if m := re.match(r"(ours|1M|NM|NS)\s+ws\s+(\d+)((?:\s+[\d.]+){6})", line):
            numbers = [float(v) for v in m.group(3).split()]
            found.setdefault((m.group(1), int(m.group(2))), numbers[4:])
    return found


def gpu_times(run, chosen):
    """Runs only the World Trade Center's size (or --size), so that the output has one scene."""
    size = run.args.size or SIZES["WTC"]
    output = run.bench("spp_cuda_bench", "-size", *size, "-ws", ",".join(map(str, chosen)), "-published", 1,
                           "-repeat", run.args.repeat * 7)
    return by_window(output, "scene")


@item("004", "table2", "NM-SPP with two sizes of the L1 cache", "a GPU; one size of the cache only")
def table2(run):
    chosen = windows(run)
    here = gpu_times(run, chosen)
    result = Result().table("Seconds; GPUs since Volta choose the size of the L1 cache themselves: one row here",
                            ("", *(f"ws {w}" for w in chosen)), [
        ("NM-SPP here", *(here["NM", w][0] / 1e3 for w in chosen)),
        *((name, *of_paper(values, chosen)) for name, values in CACHE.items())])
    result.data = [[w, here["NM", w]] for w in chosen]
    return result


def serial_times(run, chosen):
    """Returns {window: seconds} of the serial program as published, on one core, for the World Trade Center's size."""
    wanted, found = "|".join(map(str, chosen)), {}
    for row in run.google("spp_cpu_bench", f"^serial/ws:({wanted})/samples:{SIZES['WTC'][0]}/"):
        if row.get("error_occurred"):
            raise Missing(f"spp_cpu_bench measured nothing: {row['error_message']}", "Look for what differs in benchmarks/published/spp.h.")
        found[int(re.search(r"ws:(\d+)", row["name"])[1])] = row["cpu_time"] / 1e3
    return found


@item("004", "table3", "Times by window, serial and GPU", "a GPU for the GPU half")
def table3(run):
    result, chosen = Result(), windows(run)
    scene = run.scene_or_synthetic(result, SIZES["WTC"])
    rows = []
    for name, threads in (("ours, CPU, 1 thread", "1"), ("ours, CPU, all threads", "ALL_CPUS")):
        seconds = []
        for w in chosen:
            runs = [sum(seconds_of_passes(run.report(
                "gdal_hsi_spp", "-of", "ENVI", "-device", "cpu", "-threads", threads, "-ws", w, scene,
                run.path("spp.dat"))).values()) for _ in range(run.args.repeat)]
            seconds.append(statistics.median(runs))
        rows.append((name, *seconds))
    if not (run.args.scene or run.args.size):
        published = serial_times(run, chosen)
        rows.append(("SPP, serial, as published", *(published.get(w) for w in chosen)))
        result.note("SPP, serial, as published: seconds of processor time from memory to memory.")
    result.table(f"CPU here, seconds with reading and writing the file, median of {run.args.repeat}",
                 ("", *(f"ws {w}" for w in chosen)), rows)
    gpu = []
    try:
        here = gpu_times(run, chosen)
        gpu = [(f"{name} here", *(here[key, w][1] / 1e3 for w in chosen)) for name, key in (
            ("ours", "ours"), ("1M-SPP", "1M"), ("NM-SPP", "NM"), ("NS-SPP", "NS"))]
        result.table("GPU here, seconds with copies", ("", *(f"ws {w}" for w in chosen)), gpu)
    except Missing as e:
        result.note(f"No GPU figures: {e}. {e.advice}")
    result.table("The paper, seconds", ("", *(f"ws {w}" for w in chosen)),
                 [(name, *of_paper(values, chosen)) for name, values in TIMES.items()])
    result.data = {"cpu": rows, "gpu": gpu}
    return result


def map_of(run, which, title):
    needs_arrays()
    result = Result()
    name, scene = next(scenes(run, result))
    serial = serial_spp(read(scene), [5])[5]
    plane = differences(serial, read(displaced(run, scene, 5)))[which]
    result.picture = run.png
    planes = {"cpu and numpy": plane}
    try:
        planes["cuda and numpy"] = differences(serial, read(displaced(run, scene, 5, "cuda")))[which]
    except Missing as e:
        result.note(f"No GPU figures: {str(e).splitlines()[0]}.")
    result.table(f"{title} of every pixel, ws = 5, {name}", ("", "mean", "greatest"),
                 [(key, float(p.mean()), float(p.max())) for key, p in planes.items()])
    result.data = result.tables[0]["rows"]
    charts.panels(run.png, title, {name: p.tolist() for name, p in planes.items()})
    return result


@item("004", "fig6", "Map of NRMSE, ws = 5", "a GPU for the GPU half")
def fig6(run):
    return map_of(run, 0, "NRMSE")


@item("004", "fig7", "Map of MaxSDE, ws = 5", "a GPU for the GPU half")
def fig7(run):
    return map_of(run, 1, "MaxSDE")


def targets_of(run, cube, original, t, name):
    """Returns [(line, sample)] that gdal_hsi_atdca finds in a cube."""
    target = run.path(f"{name}.geojson")
    words = ["-original", original] if original else []
    run.tool("gdal_hsi_atdca", "-q", "-overwrite", "-method", "osp", "-t", t, *words, cube, target)
    layer = ogr.Open(str(target))  # must outlive its layer
    return [(f.GetField("line"), f.GetField("sample")) for f in layer.GetLayer(0)]


@item("004", "fig8", "Endmembers found after the serial SPP and after ours, ws = 3; and without SPP")
def fig8(run):
    needs_arrays()
    result, truth = Result(), run.path("truth.json")
    size = run.args.size or SIZES["Cuprite"]
    t = run.args.targets or TARGETS["Cuprite"]
    scene = run.scene_or_synthetic(result, size, "-targets", 8, "-truth", truth)
    size, pixels = size_of(scene), read(scene)
    ours = displaced(run, scene, 3)
    serial = run.path("serial.dat")
    out = gdal.GetDriverByName("ENVI").Create(str(serial), *size, gdal.GDT_Float32)
    out.WriteArray(serial_spp(pixels, [3])[3].transpose(2, 0, 1).astype(np.float32))
    out = None  # writes the file
    found = {"serial": targets_of(run, serial, None, t, "serial"), "ours": targets_of(run, ours, None, t, "ours"),
             "without SPP": targets_of(run, scene, None, t, "raw")}
    result.table(f"Lines and samples, t = {t}", ("target", *found), [
        (i + 1, *(str(f[i]) if i < len(f) else "" for f in found.values())) for i in range(t)])
    same = sum(a == b for a, b in zip(found["serial"], found["ours"]))
    result.note(f"{same} of {len(found['serial'])} places are the same after the serial SPP and after ours (paper: all).")
    result.data = {**found, "same": same}
    if truth.exists():
        spectra = [(e["name"], np.array(e["spectrum"])) for e in json.loads(truth.read_text())["endmembers"]]
        best = {key: [min(_angle(pixels[p], s) for p in found[key]) for _, s in spectra] for key in ("without SPP", "ours")}
        result.table("Spectral angle of the best target to each material, degrees", ("material", "without SPP", "with SPP"), [
            *((name, a, b) for (name, _), a, b in zip(spectra, best["without SPP"], best["ours"])),
            ("Average", *(statistics.mean(v) for v in best.values()))])
        result.data["angles"] = {k: [float(v) for v in values] for k, values in best.items()}
    run.tool("gdal_hsi_quicklook", "-q", "-overwrite", "-beside", ours, "-points", run.path("ours.geojson"), scene, run.png)
    result.picture = run.png
    return result


def _angle(a, b):
    return float(np.degrees(np.arccos(np.clip(a @ b / np.linalg.norm(a) / np.linalg.norm(b), -1, 1))))


def counted(run, title, metrics, derive):
    """Plots a counter of the three published kernels by window, as curves."""
    profiler.found("ncu")
    result, chosen = Result(), windows(run)
    kernels = {"1M-SPP": "alpha_1m_kernel", "NM-SPP": "alpha_nm_kernel", "NS-SPP": "alpha_ns_kernel"}
    curves = {name: [] for name in kernels}
    for w in chosen:
        seen = profiler.counters(list(kernels.values()), metrics, [
            run.program("spp_cuda_bench"), "-size", *(run.args.size or SIZES["WTC"]), "-ws", w, "-published", 1,
            "-repeat", 1], 30)
        for name, kernel in kernels.items():
            if kernel in seen:
                curves[name].append((w, derive(*(seen[kernel].get(m, 0.0) for m in metrics))))
    result.table(f"{title}, percent; the paper shows curves without numbers, of two sizes of the cache for NM-SPP",
                 ("", *(f"ws {w}" for w in chosen)), [(name, *(v for _, v in c)) for name, c in curves.items()])
    result.data, result.picture = curves, run.png
    charts.curves(run.png, title, "window", "%", curves)
    return result


@item("004", "fig9", "Stalls due to memory", "a GPU and Nsight Compute (ncu)")
def fig9(run):
    stalled = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
    return counted(run, "Stalls due to memory", (
        stalled.format("long_scoreboard"), stalled.format("lg_throttle"),
        "smsp__average_warp_latency_per_inst_issued.ratio"), lambda a, b, whole: 100 * (a + b) / whole if whole else 0.0)


@item("004", "fig10", "Hit rate of the L1 cache", "a GPU and Nsight Compute (ncu)")
def fig10(run):
    return counted(run, "Hits in L1", ("l1tex__t_sector_hit_rate.pct",), lambda hits: hits)
