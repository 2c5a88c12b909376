# SPDX-License-Identifier: MIT
"""Paper 002: automatic target detection by orthogonal subspace projection and Gram-Schmidt."""
import re

from . import charts, profiler
from .common import Missing, Result, item

# Tables I and II: spectral angles in degrees, OSP and GS.
WTC = {"osp": (0.00, 14.43, 0.00, 27.38, 20.32, 7.13, 4.15, 31.27), "gs": (0.00, 27.16, 0.00, 15.62, 27.81, 3.98, 2.72, 24.26)}
CUPRITE = {"osp": (4.81, 4.16, 9.52, 10.76, 5.29), "gs": (5.48, 4.08, 5.87, 11.14, 5.68)}
MINERALS = ("Alunite", "Buddingtonite", "Calcite", "Kaolinite", "Muscovite")

# Table III, seconds: serial, Tesla C1060, GeForce GTX 580, with OSP and GS for each.
TIMES = {"World Trade Center": ((512.1120, 7.3230), (51.4626, 0.1663), (10.5747, 0.1554)),
         "Cuprite": ((87.9820, 1.5950), (9.0032, 0.0560), (1.9947, 0.0456)),
         "Pavia University": ((20.2672, 0.6460), (2.2840, 0.0407), (0.5834, 0.0308)),
         "Forest Radiance": ((2.2341, 0.0331), (0.4523, 0.0045), (0.1837, 0.0035))}


def angles(run, scene, reference, targets, method):
    """Returns {name: degrees} of the best target for each spectrum of a library, and their mean, as gdal_hsi_atdca
    prints them."""
    told = run.tool("gdal_hsi_atdca", "-overwrite", "-t", targets, "-method", method, "-reference", reference, scene,
                    run.path("targets.geojson"))
    lines = told[told.index("Reference"):].splitlines()[1:]
    found = {m.group(1).strip(): float(m.group(2)) for line in lines if (m := re.match(r"(.*?)\s+\d+\s+([\d.]+)$", line))}
    mean = next(float(line.split()[-1]) for line in lines if line.startswith("Average"))
    return found, mean


def similarity(run, scene_name, paper_names, paper, targets):
    """Makes Tables I and II: OSP's and GS's best target for each known spectrum."""
    result = Result()
    scene = run.real_scene(scene_name)
    if not run.args.reference:
        raise Missing("this needs the known spectra of the scene's targets",
                      "Give them as a library with --reference FILE (.sli or .csv), besides --scene FILE.")
    t = run.args.targets or targets
    here = {m: angles(run, scene, run.args.reference, t, m) for m in ("osp", "gs")}
    rows = [(name, here["osp"][0][name], here["gs"][0].get(name)) for name in here["osp"][0]]
    result.table(f"Here: {scene.name}, t = {t}, degrees", ("reference", "OSP", "GS"),
                 [*rows, ("Average", here["osp"][1], here["gs"][1])])
    mean = [sum(paper[m]) / len(paper_names) for m in ("osp", "gs")]
    result.table(f"The paper: {scene_name}, t = {targets}, degrees", ("reference", "OSP", "GS"),
                 [*zip(paper_names, paper["osp"], paper["gs"]), ("Average", *mean)])
    result.data = {m: {"angles": v[0], "average": v[1]} for m, v in here.items()}
    return result


@item("002", "table1", "Spectral angles to the targets of the World Trade Center scene", "--scene and --reference")
def table1(run):
    return similarity(run, "AVIRIS World Trade Center", tuple("ABCDEFGH"), WTC, 30)


@item("002", "table2", "Spectral angles to the minerals of Cuprite", "--scene and --reference")
def table2(run):
    return similarity(run, "AVIRIS Cuprite", MINERALS, CUPRITE, 19)


def printed_rows(output):
    """Returns {(scene, method): [numbers]} of the Table III that both benchmarks print."""
    rows, scene = {}, None
    for line in output.splitlines():
        if m := re.match(r"(.*?)\s+(OSP|GS)\s+([\d. ]+)$", line):
            scene = m.group(1).strip() or scene
            rows[{"WTC": "World Trade Center"}.get(scene, scene), m.group(2)] = [float(v) for v in m.group(3).split()]
    return rows


@item("002", "table3", "Times of OSP and GS, serial and GPU", "a GPU for the GPU half; minutes for the CPU half")
def table3(run):
    result = Result()
    cpu = printed_rows(run.bench("atdca_cpu_bench", "--table_iii", run.args.share, advice="Check --bin."))
    output = run.gpu_or_note(result, "atdca_cuda_bench", "-repeat", run.args.repeat * 7)
    gpu = printed_rows(output) if output else {}
    rows = []
    for scene, (serial, c1060, gtx580) in TIMES.items():
        for i, method in enumerate(("OSP", "GS")):
            _, published, one, all_threads = cpu[scene, method]
            on_gpu = gpu.get((scene, method), (None, None, None))
            rows.append((scene, method, serial[i], published, one, all_threads, c1060[i], gtx580[i], on_gpu[1], on_gpu[2]))
    result.table("Seconds, scenes of the paper's sizes, synthetic; the paper's GPU times hold reading and transfers", (
        "scene", "", "paper, serial", "as published, here", "ours, 1 thread", "ours, all threads", "paper, C1060",
        "paper, GTX 580", "published kernels, here", "ours, GPU"), rows)
    result.note(f"OSP as published: on every {run.args.share}th pixel, times {run.args.share}; the paper does not tell the "
                "number of targets of the last two scenes: 19 here.")
    result.data = rows
    return result


def published_shares(output, scene):
    """Returns {"without" or "with": [(step, calls, percent)]}: GS as published without and with the paper's
    optimisations."""
    part = output[output.index(f"{scene}:"):]
    found = {}
    for which in ("without", "with"):
        line = re.search(rf"Fig\. 2, GS {which} optimisations:.*", part)[0]
        found[which] = [(step, int(calls), float(share)) for step, share, calls in re.findall(r"(\w+) ([\d.]+) % \((\d+)\)", line)]
    return found


@item("002", "fig2", "Shares of the GPU's time, GS on the World Trade Center's size", "a GPU; for ours Nsight Systems (nsys)")
def fig2(run):
    result = Result()
    published = published_shares(run.bench("atdca_cuda_bench", "-repeat", run.args.repeat), "WTC")
    for which, rows in published.items():
        result.table(f"As published, {which} the paper's optimisations, a synthetic scene" + (
            "; the paper: kernels 55 %, transfers 45 %" if which == "without" else "; the paper: more for kernels, less for "
            "transfers"), ("kernel or copy", "calls", "%"), rows)
    seen = shares_of_ours(run, result)
    result.data = {"published": published, "ours": seen}
    result.picture = run.png
    names = sorted({row[0] for rows in published.values() for row in rows})
    charts.bars(run.png, "002 fig. 2", "without and with optimisations", "%", {
        which: [dict((r[0], r[2]) for r in rows).get(name, 0) for name in names] for which, rows in published.items()}, names)
    return result


def shares_of_ours(run, result):
    """Returns the shares from Nsight Systems, if it is installed."""
    try:
        profiler.found("nsys")
    except Missing as e:
        result.note(f"Ours is left out: {e}.")
        return []
    scene = run.scene_or_synthetic(result, (614, 512, 224), "-targets", 30)
    seen = profiler.shares(run, [run.program("gdal_hsi_atdca"), "-q", "-overwrite", "-device", "cuda", "-method", "gs",
                                 "-t", 30, scene, run.path("targets.geojson")])
    whole = sum(ns for _, _, ns in seen)
    rows = [(name[:60], calls, 100 * ns / whole) for name, calls, ns in sorted(seen, key=lambda r: -r[2])]
    result.table("Ours, the whole process", ("kernel or copy", "calls", "%"), rows)
    return rows
