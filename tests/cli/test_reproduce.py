# SPDX-License-Identifier: MIT
"""scripts/reproduce: the quick tables and figures on small scenes, messages if something is missing, and the profilers'
part with substitutes for the profilers."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from osgeo import gdal

from conftest import BIN, ROOT, Result, run, succeed

SMALL = ("--size", "40", "36", "12")
BENCHMARKS = pytest.mark.skipif(not (BIN / "spp_cuda_bench").exists(), reason="built without HSI_BENCHMARKS")


def reproduce(*words, **kwargs):
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / "reproduce"), "--bin", str(BIN), *map(str, words)],
                          capture_output=True, text=True, check=False, timeout=300, **kwargs)
    return Result(done.returncode, done.stdout, done.stderr)


def table(told, number=0):
    """Returns columns and rows of a table in the JSON."""
    one = told["tables"][number]
    assert all(len(row) == len(one["columns"]) for row in one["rows"])
    return one["columns"], one["rows"]


def numbers(path):
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """Makes a small scene, and labels of two classes that its first bands distinguish."""
    folder = tmp_path_factory.mktemp("scene")
    path, labels = folder / "scene.tif", folder / "labels.tif"
    random = np.random.default_rng(5)
    truth = np.ones((24, 30), np.uint8)
    truth[:, 15:] = 2
    cube = random.normal(0, 4, (10, 24, 30)) + 100 + 40.0 * truth * np.linspace(1, 0.2, 10)[:, None, None]
    for name, planes, kind in ((path, cube.astype(np.float32), gdal.GDT_Float32), (labels, truth[None], gdal.GDT_Byte)):
        out = gdal.GetDriverByName("GTiff").Create(str(name), 30, 24, len(planes), kind)
        out.SetGeoTransform((0, 1, 0, 0, 0, -1))
        out.WriteArray(planes if len(planes) > 1 else planes[0])
        out = None  # writes the file
    return path, labels


def test_the_list_names_the_tables_of_all_papers():
    told = succeed(reproduce("--list")).out.splitlines()
    names = {tuple(line.split()[:2]) for line in told}
    for paper, tables, figures in (("001", range(3, 8), range(5, 9)), ("002", range(1, 4), [2]),
                                   ("003", range(4, 9), [11, 12]), ("004", range(1, 4), range(6, 11))):
        assert {(paper, f"table{n}") for n in tables} | {(paper, f"fig{n}") for n in figures} == {
            n for n in names if n[0] == paper}
    page = (ROOT / "docs" / "papers.md").read_text()
    assert [" ".join(n) for n in names if f"`{n[0]} {n[1]}" not in page] == []


def test_what_is_unknown_or_missing_is_told(tmp_path):
    wrong = reproduce("eadp", "table9")
    assert wrong.code == 2 and "table7" in wrong.err
    for words, wanted in ((("003", "table4"), "--labels"), (("002", "table1"), "--scene"),
                          (("001", "table7", "--scene", tmp_path / "none.tif", "--labels", "x"), "is not there"),
                          (("spp", "table1", "--values", "3,four"), "list of numbers"),
                          (("spp", "table1", "--values", "4"), "odd")):
        told = reproduce(*words)
        assert (told.code, told.out) == (1, ""), told
        assert told.err.startswith("ERROR: ") and wanted in told.err


def test_spp_differs_from_the_serial_algorithm_by_single_precision_alone(tmp_path):
    told = succeed(reproduce("spp", "table1", *SMALL, "--values", "3,7", "--json", tmp_path / "t.json"))
    assert told.out.count("| ws ") == 3 and "3.28e-06" in told.out
    columns, rows = table(numbers(tmp_path / "t.json"))
    assert [r[0] for r in rows] == [3, 7]
    for row in rows:
        for column, value in list(zip(columns, row))[1:5]:
            assert 0 < value < 1e-5, (column, value)


def test_endmembers_after_spp_are_those_of_the_serial_algorithm(tmp_path):
    succeed(reproduce("004", "fig8", *SMALL, "--targets", 5, "--json", tmp_path / "f.json", "--png", tmp_path / "f.png"))
    data = numbers(tmp_path / "f.json")["data"]
    assert data["same"] == 5 and data["serial"] == data["ours"]
    assert len(data["angles"]["ours"]) == 8 and all(0 <= a < 90 for v in data["angles"].values() for a in v)
    assert gdal.Open(str(tmp_path / "f.png")).RasterCount == 3


def test_simplification_falls_from_copy_to_copy(tmp_path):
    succeed(reproduce("001", "fig8", *SMALL, "--json", tmp_path / "f.json", "--png", tmp_path / "f.png"))
    told = numbers(tmp_path / "f.json")
    _, per_adp = table(told, 0)
    _, per_copy = table(told, 1)
    assert len(per_adp) == 7 and len(per_copy) == 8
    ssim = [row[2] for row in per_copy]
    assert ssim == sorted(ssim, reverse=True) and ssim[0] <= 1
    # The two means of the same 56 values agree.
    assert np.isclose(np.mean(ssim), np.mean([row[2] for row in per_adp]))
    picture = gdal.Open(str(tmp_path / "f.png")).ReadAsArray()
    assert picture.shape[0] == 3 and 0 < (picture == 255).all(axis=0).mean() < 1


def test_profiles_are_judged_by_both_command_lines(scene, tmp_path):
    words = ("--counts", "8", "--splits", "1")
    path, labels = scene
    new = succeed(reproduce("eadp", "table7", "--scene", path, "--labels", labels, *words, "--json", tmp_path / "a.json"))
    columns, rows = table(numbers(tmp_path / "a.json"))
    assert columns[0] == "features" and {"raw bands", "7 PCs", "EMP", "EADP"} <= {r[0] for r in rows}
    assert rows[-1][0] == "EADP" and rows[-1][-1] == "92.45, 95.27, 91.34"
    data = numbers(tmp_path / "a.json")["data"]
    assert [r["seed"] for r in data["EADP"]] == [1]
    assert data["EADP"][0]["overall_accuracy"] > 90  # two classes that every classifier can separate
    later = succeed(reproduce("eadp", "table7", "--scene", path, "--labels", labels, *words, "--first-seed", "3", "--json",
                              tmp_path / "b.json"))
    assert [r["seed"] for r in numbers(tmp_path / "b.json")["data"]["EADP"]] == [3] and later.out != ""
    old = succeed(reproduce(path, labels, "--train", "8", "--seeds", "1"))
    assert old.out == new.out


def test_sahic_of_a_scene_smooths_what_lorsal_finds(scene, tmp_path):
    path, labels = scene
    told = succeed(reproduce(path, labels, "--sahic", "--counts", "6", "--splits", "1", "--delta", "0.7", "--lambda", "1",
                             "--maps", tmp_path / "maps", "--json", tmp_path / "a.json"))
    data = numbers(tmp_path / "a.json")["data"]
    assert data["SAHIC"][0]["overall_accuracy"] >= data["LORSAL"][0]["overall_accuracy"]
    assert "SAHIC by class" in told.out and (tmp_path / "maps" / "sahic.png").exists()


def test_options_are_passed_to_the_tools(scene, tmp_path):
    path, labels = scene
    told = reproduce("003", "table6", "--scene", path, "--labels", labels, "--counts", "6", "--splits", 1, "--delta", "-1")
    assert told.code == 1 and "delta" in told.err


def test_known_spectra_are_found_by_both_methods(tmp_path):
    cube, library = tmp_path / "cube.tif", tmp_path / "known.csv"
    succeed(run("gdal_hsi_synth", "-q", "-size", 40, 36, 12, "-targets", 3, "-snr", "inf", cube))
    succeed(run("gdal_hsi_atdca", "-q", "-t", 3, "-spectra", library, cube, tmp_path / "t.geojson"))
    succeed(reproduce("atdca", "table2", "--scene", cube, "--reference", library, "--targets", 3,
                      "--json", tmp_path / "t.json"))
    told = numbers(tmp_path / "t.json")
    _, here = table(told, 0)
    assert len(here) == 4 and all(abs(row[1]) < 1e-3 for row in here)  # the targets that OSP found
    _, paper = table(told, 1)
    assert paper[-1] == ["Average", pytest.approx(6.91, abs=0.01), pytest.approx(6.45, abs=0.01)]


@BENCHMARKS
def test_a_table_of_kernels_without_a_gpu_is_no_table():
    told = reproduce("003", "fig12", "--repeat", 1)
    assert told.code in (0, 1)
    if told.code == 1:
        assert told.out == "" and "GPU" in told.err


def test_counters_of_a_profiler_become_the_rows_of_kernels(tmp_path):
    """A substitute prints ncu's output: two launches of a kernel are averaged, and n/a is omitted."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "eadp_cuda_bench").write_text("#!/bin/sh\n")
    head = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
    rows = [("scharr<double>(...)", "sm__maximum_warps_per_active_cycle_pct", "%", "90"),
            ("scharr<double>(...)", "sm__maximum_warps_per_active_cycle_pct", "%", "70"),
            ("scharr<double>(...)", "launch__block_size", "", "1,024"),
            ("scharr<double>(...)", "launch__registers_per_thread", "", "n/a")]
    lines = "\n".join([head, *(",".join(f'"{c}"' for c in (i, *row)) for i, row in enumerate(rows))])
    (folder / "ncu").write_text(f"#!/bin/sh\necho '==PROF== Connected'\ncat <<'END'\n{lines}\nEND\n")
    for name in ("ncu", "eadp_cuda_bench"):
        (folder / name).chmod(0o755)
    told = succeed(reproduce("001", "table4", "--bin", folder, "--json", tmp_path / "t.json", env={"PATH": f"{folder}:/bin"}))
    _, kernels = table(numbers(tmp_path / "t.json"))
    scharr = next(row for row in kernels if row[0] == "scharr")
    assert scharr[1:5] == [0.8, None, 1024.0, None] and scharr[6] == 0.94
    assert len(kernels) == 8 and "Table IV" in told.out


def stand_in(folder, name, printed):
    program = folder / name
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{printed}\nEND\n")
    program.chmod(0o755)


def test_operations_become_a_share_of_what_the_cycles_allow(tmp_path):
    """Paper 001's Table VI: 100 operations in 10 ns and 20 cycles of up to 10 fused products."""
    double = "smsp__sass_thread_inst_executed_op_d{}_pred_on.sum"
    metrics = {double.format("add"): 10, double.format("mul"): 20, double.format("fma"): 35, "dram__bytes.sum": 400,
               "gpu__time_duration.sum": 10, "dram__throughput.avg.pct_of_peak_sustained_elapsed": 50,
               "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained": 10, "sm__cycles_elapsed.avg": 20}
    stand_in(tmp_path, "ncu", "\n".join(['"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"',
                                         *(f'"0","fed_nld_step<double>(int)","{m}","","{v}"' for m, v in metrics.items())]))
    stand_in(tmp_path, "eadp_cuda_bench", "")
    succeed(reproduce("001", "table6", "--bin", tmp_path, "--json", tmp_path / "t.json", env={"PATH": f"{tmp_path}:/bin"}))
    columns, kernels = table(numbers(tmp_path / "t.json"))
    step = next(row for row in kernels if row[0] == "fed_nld_step")
    assert step[1:] == [10.0, 0.25, 40.0, 0.5, 85.24, 0.62, 65.37, 0.34]
    assert columns[2] == "GFLOPS, of the peak" and kernels[0][1:5] == [None] * 4


@pytest.fixture
def bare_python(tmp_path):
    """Returns the environment of a Python without GDAL and numpy."""
    for name in ("osgeo", "numpy"):
        (tmp_path / "bare" / name).mkdir(parents=True)
        (tmp_path / "bare" / name / "__init__.py").write_text(f"raise ImportError('no {name} here')\n")
    return {"PYTHONPATH": str(tmp_path / "bare")}


def colours(path):
    """Counts the pixels of a picture by colour."""
    picture = gdal.Open(str(path)).ReadAsArray()
    assert picture.shape == (3, 440, 720)
    values, counts = np.unique(picture.reshape(3, -1), axis=1, return_counts=True)
    return {tuple(int(v) for v in colour): int(n) for colour, n in zip(values.T, counts)}


def test_counters_become_figures_where_python_is_bare(bare_python, tmp_path):
    """Makes paper 004's figures 9 and 10 from ncu's output, without GDAL's Python and numpy."""
    folder = tmp_path / "bin"
    folder.mkdir()
    stalled = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
    metrics = {stalled.format("long_scoreboard"): 3, stalled.format("lg_throttle"): 1,
               "smsp__average_warp_latency_per_inst_issued.ratio": 16, "l1tex__t_sector_hit_rate.pct": 80}
    rows = ['"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"']
    for factor, kernel in enumerate(("alpha_1m_kernel", "alpha_nm_kernel", "alpha_ns_kernel"), 1):
        rows += [f'"0","void {kernel}<5>(const float *)","{m}","","{v / factor if v != 16 else v}"' for m, v in metrics.items()]
    stand_in(folder, "ncu", "\n".join(rows))
    stand_in(folder, "spp_cuda_bench", "")
    for name, expected in (("fig9", (25, 12.5, 25 / 3)), ("fig10", (80, 40, 80 / 3))):
        png, told = tmp_path / f"{name}.png", tmp_path / f"{name}.json"
        done = succeed(reproduce("004", name, "--bin", folder, "--values", "3,7,11", "--json", told, "--png", png,
                                 env={**bare_python, "PATH": f"{folder}:/bin"}))
        assert f"Figure: {png}" in done.out
        columns, values = table(numbers(told))
        assert columns == ["", "ws 3", "ws 7", "ws 11"]
        assert values == [[k, *([pytest.approx(v)] * 3)] for k, v in zip(("1M-SPP", "NM-SPP", "NS-SPP"), expected)]
        seen = colours(png)
        for colour in ((31, 119, 180), (214, 39, 40), (44, 160, 44)):  # a curve of three points, and its legend
            assert seen[colour] > 1000
        assert seen[255, 255, 255] > 250000
    told = reproduce("004", "table1", *SMALL, env=bare_python)
    assert told.code == 1 and told.out == "" and "python3-gdal" in told.err


def test_times_by_size_become_a_figure_where_python_is_bare(bare_python, tmp_path):
    """Paper 001's figure 7: our tools, and a substitute for the benchmark of a GPU."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("gdal_hsi_synth", "gdal_hsi_eadp"):
        (folder / name).symlink_to(BIN / name)
    stand_in(folder, "eadp_cuda_bench", "this 40x36, 7 components, 8 copies\n"
             "  FED, single                            0.500 ms    FED 0.400\n"
             "  published kernels, double              5.000 ms    FED 4.000")
    png, told = tmp_path / "fig7.png", tmp_path / "fig7.json"
    succeed(reproduce("001", "fig7", *SMALL, "--bin", folder, "--values", "1,3", "--repeat", 1, "--json", told, "--png", png,
                      env={**os.environ, **bare_python}))
    columns, rows = table(numbers(told))
    assert [row[:2] for row in rows] == [[1, "40 x 36"], [3, "40 x 108"]]
    for row in rows:
        here = dict(zip(columns, row))
        assert here["GPU, single"] == 0.5 and here["published kernels, double"] == 5.0
        assert here["CPU/GPU"] == pytest.approx(here["CPU, single"] / 0.5) and here["CPU, single"] > 0
    seen = colours(png)
    assert all(seen[colour] > 100 for colour in ((31, 119, 180), (214, 39, 40), (44, 160, 44)))


def test_what_benchmarks_of_a_gpu_print_becomes_tables(tmp_path):
    """Substitutes print the output of spp_cuda_bench and sahic_cuda_bench."""
    stand_in(tmp_path, "spp_cuda_bench", """A GPU, 132 multiprocessors

scene: 614 x 512 x 224, 282 MB, median of 7
transfers: to the device 5.10 ms, back 5.10 ms; device copy 0.140 ms (4.00 TB/s)

ms               norms      angles      double    displace         all with copies  check against ours
ours ws  3       0.100       0.200       0.000       0.100       0.400      10.600  in one go 0.400; 3 pixels in double
1M   ws  3       0.100       1.000       0.000       0.100       1.200      11.400  1.0e-05, 2.0e-04
NM   ws  3       0.100       2.000       0.000       0.100       2.200      12.400  1.0e-05, 2.0e-04
NS   ws  3       0.100       3.000       0.000       0.100       3.200      13.400  1.0e-05, 2.0e-04""")
    succeed(reproduce("004", "table2", "--values", "3", "--bin", tmp_path, "--json", tmp_path / "a.json"))
    assert table(numbers(tmp_path / "a.json"))[1][:2] == [["NM-SPP here", 0.0022], ["48 kB L1, GTX580", 0.35]]
    field = "  random field, 200 iterations: {} ms on the device, {} ms with copies and residuals"
    stand_in(tmp_path, "sahic_cuda_bench", "\n".join((
        "Pavia University, 610x340x103, 9 classes", field.format(9, 10), "Indian Pines, 145x145x200, 16 classes",
        field.format(3, 4))))
    succeed(reproduce("003", "fig12", "--bin", tmp_path, "--json", tmp_path / "b.json", "--png", tmp_path / "b.png"))
    assert table(numbers(tmp_path / "b.json"))[1] == [["Pavia University", 90.0, 10.0], ["Indian Pines", 75.0, 25.0]]


@BENCHMARKS
def test_the_published_random_field_and_regression_are_ours():
    """The benchmark ends with 1 if SAHIC_S or SAHIC_M differs from ours; 49 is the square of a prime."""
    done = subprocess.run([str(BIN / "sahic_published_bench"), "-size", "49", "26", "12", "4", "60", "-iterations", "200"],
                          capture_output=True, text=True, check=False, timeout=300,
                          env={**os.environ, "OMP_WAIT_POLICY": "passive"})  # other tests run at the same time
    assert done.returncode == 0, done.stdout + done.stderr
    for variant in ("SAHIC_S", "SAHIC_M"):
        assert f"{variant} against ours: probabilities differ by at most " in done.stdout


def test_published_variants_stand_beside_ours(tmp_path):
    """Uses substitutes for the benchmarks of paper 003, with and without a GPU."""
    kernels = " ".join(f"{name}_kernel {us}" for name, us in zip(("q", "fixq", "nu_aux3_sum", "Vs", "V4", "V5"), range(1, 7)))
    rest = ", transforms before V4 100.5, transforms before V5 90.5, D4 0.5"
    row = "  {:8} {:3} threads: training 1.0, probabilities 2.0, field {}, all {} s; processor 9.5 s"
    stand_in(tmp_path, "sahic_published_bench", "\n".join(line for scene in ("Pavia University", "Indian Pines") for line in (
        f"{scene}, 1x1x1, 2 classes, 3 training pixels", row.format("ours", 1, 0.5, 3.5), row.format("ours", 2, 0.25, 3.25),
        row.format("SAHIC_M", 2, 4.0, 7.0) + " (field: 20 iterations, times 10)", row.format("SAHIC_S", 1, 11.0, 14.0),
        f"  SAHIC_S, one iteration by kernel, ms of processor time: {kernels}{rest}")))
    stand_in(tmp_path, "sahic_cuda_bench", "\n".join(line for scene in ("Pavia University", "Indian Pines") for line in (
        f"{scene}, 1x1x1, 2 classes", "  Table VIII: ours: step 8.0 (all but V4), filter 2.0 (V4), sum 10.0: 3 times faster",
        "  Table V, the whole, memory to memory, s: C2075 17.73, K20c 10.85; ours 0.035: 310 times the K20c",
        f"  SAHIC_P, one iteration by kernel, us: {kernels}{rest}",
        "  SAHIC_P here: its random field after our training and probabilities, s: 0.28")))
    stand_in(tmp_path, "sahic_cpu_bench", '{"benchmarks": [{"label": "Indian Pines, V5", "cpu_time": 0.5}]}')
    succeed(reproduce("003", "table8", "--bin", tmp_path, "--json", tmp_path / "a.json"))
    told = numbers(tmp_path / "a.json")
    _, published = table(told, 0)
    assert len(published) == 18
    assert published[0] == ["Pavia University", "q", 1.0, pytest.approx(73.68), 1.0, 20.0, 1000.0, pytest.approx(3684)]
    assert published[-3] == ["Indian Pines", "transforms before V4", 100.5, None, 100.5, None, 1000.0, None]
    assert table(told, 1)[1] == [["Indian Pines", "V5", 0.5, 14.42, 28.84]]
    assert table(told, 2)[1][:2] == [["Pavia University", "all but V4", 8.0, 16.0, pytest.approx(290)],
                                     ["Pavia University", "V4", 2.0, 5.0, 60.0]]
    (tmp_path / "sahic_cuda_bench").unlink()
    told = succeed(reproduce("003", "table8", "--bin", tmp_path, "--json", tmp_path / "b.json"))
    assert "No GPU figures" in told.out and table(numbers(tmp_path / "b.json"))[1][0][4] is None
    sys.path.insert(0, str(ROOT / "scripts"))
    from reproduce_papers.sahic import variants
    text = (tmp_path / "sahic_published_bench").read_text()
    assert [(r[0], r[1], r[5], r[-2], r[-1]) for r in variants("Pavia University", text, None)] == [
        ("SAHIC_S", "CPU, 1 threads", 14.0, 1309.54, 1.0), ("SAHIC_M", "CPU, 2 threads", 7.0, 157.89, 2.0),
        ("ours", "CPU, 1 threads", 3.5, None, 4.0), ("ours", "CPU, 2 threads", 3.25, None, 14 / 3.25)]
    gpu = "Indian Pines, x\n  the whole, s: 1, K20c 2.95; ours 0.035: 84 times\n  SAHIC_P here: it, s: 0.28\n"
    assert [(r[0], r[5]) for r in variants("Indian Pines", text, gpu)][-2:] == [("SAHIC_P", 0.28), ("ours", 0.035)]


def test_shares_of_the_published_search_become_a_figure(tmp_path):
    """Uses a substitute for atdca_cuda_bench, without a profiler."""
    stand_in(tmp_path, "atdca_cuda_bench", """Cuprite: 350x350x188, t = 19, 92 MB
  Fig. 2, GS without optimisations: projection 1.0 % (18), of 2.000 ms; the first 19 targets are ours
  Fig. 2, GS with optimisations: projection 2.0 % (18), of 2.000 ms; the first 19 targets are ours
WTC: 614x512x224, t = 30, 282 MB
  Fig. 2, GS without optimisations: norms 5.0 % (1), projection 60.0 % (29), transfers 35.0 % (90), of 9.1 ms; the first 30
  Fig. 2, GS with optimisations: norms 2.0 % (1), projection 8.0 % (29), transfers 90.0 % (90), of 5.1 ms; the first 30""")
    told = succeed(reproduce("002", "fig2", "--bin", tmp_path, "--json", tmp_path / "a.json", "--png", tmp_path / "a.png",
                             env={"PATH": "/bin"}))
    assert table(numbers(tmp_path / "a.json"), 0)[1] == [["norms", 1, 5.0], ["projection", 29, 60.0], ["transfers", 90, 35.0]]
    assert table(numbers(tmp_path / "a.json"), 1)[1][2] == ["transfers", 90, 90.0]
    assert "Ours is left out: the profiler nsys" in told.out and (tmp_path / "a.png").exists()


@BENCHMARKS
def test_the_published_spp_is_ours_but_for_its_arccos():
    done = subprocess.run([str(BIN / "spp_cpu_bench"), "--benchmark_filter=^serial/.*samples:40/", "--benchmark_format=json",
                           "--benchmark_min_time=0.01"], capture_output=True, text=True, check=False, timeout=300)
    rows = json.loads(done.stdout)["benchmarks"]
    assert len(rows) == 2 and all(0 < row["difference"] < 2e-4 for row in rows)


@BENCHMARKS
def test_the_published_diffusion_by_openmp_is_ours():
    """The benchmark compares with ours in double precision, and reports an error if they differ."""
    done = subprocess.run([str(BIN / "eadp_cpu_bench"), "--benchmark_filter=^published<double>/samples:23/",
                           "--benchmark_format=json"], capture_output=True, text=True, check=False, timeout=300,
                          env={**os.environ, "OMP_WAIT_POLICY": "passive"})
    (row,) = json.loads(done.stdout)["benchmarks"]
    assert row["difference"] < 1e-6 and row["FED"] > 0


def test_stages_of_the_published_diffusion_stand_beside_the_gpu(tmp_path):
    """Uses substitutes for the benchmarks of paper 001."""
    rows = [{"name": f"published<double>/samples:{x}/lines:{y}/threads:{t}/iterations:1/process_time/real_time",
             "real_time": 100.0 / t, "FED": 90.0 / t, "contrast": 4.0 / t, "difference": 0}
            for x, y in ((1905, 349), (145, 145), (340, 610)) for t in (1, 2)]
    ours = {"name": "profile/samples:340/lines:610/exact:0/double:0/threads:2/real_time", "real_time": 10, "cpu_time": 8}
    stand_in(tmp_path, "published", json.dumps({"benchmarks": rows}))
    stand_in(tmp_path, "ours", json.dumps({"benchmarks": [ours]}))
    program = tmp_path / "eadp_cpu_bench"
    program.write_text(f'#!/bin/sh\ncase $1 in *published*) {tmp_path}/published ;; *) {tmp_path}/ours ;; esac\n')
    program.chmod(0o755)
    stand_in(tmp_path, "eadp_cuda_bench", "Houston 1905x349, 7 components, 8 copies\n"
             "  published kernels, double              5.000 ms    setup 0.500 contrast 0.500 FED 4.000")
    succeed(reproduce("001", "table3", "--bin", tmp_path, "--json", tmp_path / "a.json"))
    columns, table3 = table(numbers(tmp_path / "a.json"), 1)
    fed = dict(zip(columns, next(r for r in table3 if r[:2] == ["Houston", "FED"])))
    assert fed["published, CPU"] == 45.0 and fed["published kernels"] == 4.0
    total = next(r for r in table3 if r[:2] == ["Houston", "total"])
    assert total[4:8] == [pytest.approx(11.6, abs=0.01), 50.0, 5.0, 10.0]
