# SPDX-License-Identifier: MIT
"""Statistics of many scenes as a file: compared with Python's integers and fractions, equal for every division and
order, and used by the tools."""
import fractions
import functools
import json
import os
import random
import shutil
import subprocess

import numpy as np
import pytest
from conftest import BIN, PATIENCE, assert_untouched, cube, read, refuse, run, start, succeed, write_scene

BANDS = 9
WAVELENGTHS = [450 + 40 * b for b in range(BANDS)]


def scene(path, data, dtype="u2", **options):
    options.setdefault("wavelengths", WAVELENGTHS[:data.shape[0]])
    return write_scene(path, data, dtype=dtype, **options)


def data_of(seed=1, lines=61, samples=47, bands=BANDS):
    data = np.round(cube(samples, lines, bands, seed=seed, scale=4000.0))
    data[:, lines // 3, 5:9] = 0  # invalid pixels
    return data


def statistics(*args):
    return succeed(run("gdal_hsi_statistics", "-q", *args))


def content(path):
    return json.loads(path.read_text())


def exact(parts):
    """Returns the numbers to which the parts of sums add up."""
    return [sum(fractions.Fraction(x) for x in column) for column in zip(*parts)] if parts else []


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """Makes a scene and its pieces, divided anywhere, of integers and of floats with all their digits."""
    folder = tmp_path_factory.mktemp("lines")
    made = {}
    for dtype in "u2", "f4":
        data = data_of() if dtype == "u2" else cube(47, 61, BANDS, seed=3, scale=1.0)
        if dtype == "f4":
            data[:, 7, 3] = 0
        whole = folder / f"whole_{dtype}.img"
        scene(whole, data, dtype)
        pieces = []
        for k, (first, end) in enumerate([(0, 3), (3, 4), (4, 21), (21, 40), (40, 61)]):
            pieces.append(folder / f"piece{k}_{dtype}.img")
            scene(pieces[-1], data[:, first:end], dtype)
        made[dtype] = whole, pieces, data
    return made


@pytest.mark.quick
def test_sums_are_exact(tmp_path, lines):
    whole, _, data = lines["u2"]
    statistics(whole, "-o", tmp_path / "s.stat")
    found = content(tmp_path / "s.stat")
    pixels = data.astype(int).reshape(BANDS, -1)
    valid = (pixels != 0).any(axis=0)
    assert found["valid_pixels"] == valid.sum() and found["invalid_pixels"] == (~valid).sum() > 0
    x = pixels[:, valid].astype(object)
    assert exact(found["sums"]) == list(x.sum(axis=1))
    assert exact(found["products"]) == [int((x[a] * x[b]).sum()) for a in range(BANDS) for b in range(a + 1)]
    both = (data != 0).any(axis=0)
    both = both[:, 1:] & both[:, :-1]
    d = (data[:, :, 1:] - data[:, :, :-1])[:, both].astype(int).astype(object)
    assert found["pairs"] == both.sum()
    assert exact(found["differences"]) == [int((d[a] * d[b]).sum()) for a in range(BANDS) for b in range(a + 1)]
    one, = found["scenes"]
    assert (one["samples"], one["lines"], one["valid_pixels"]) == (47, 61, valid.sum())
    assert one["name"] == str(whole) and one["bytes"] == whole.stat().st_size
    assert one["minimum"] == list(x.min(axis=1)) and one["maximum"] == list(x.max(axis=1))
    assert found["features"]["wavelengths_nm"] == WAVELENGTHS


def test_sums_of_floats_are_exact(tmp_path, lines):
    whole, _, data = lines["f4"]
    statistics(whole, "-o", tmp_path / "s.stat")
    found = content(tmp_path / "s.stat")
    pixels = data.astype("f4").reshape(BANDS, -1)
    x = [[fractions.Fraction(float(v)) for v in band[(pixels != 0).any(axis=0)]] for band in pixels]
    assert exact(found["sums"]) == [sum(band) for band in x]
    assert exact(found["products"]) == [sum(p * q for p, q in zip(x[a], x[b])) for a in range(BANDS) for b in range(a + 1)]


@pytest.mark.parametrize("dtype", ["u2", "f4"])
def test_cuts_and_order_leave_no_trace(tmp_path, lines, dtype):
    whole, pieces, _ = lines[dtype]
    statistics(whole, "-o", tmp_path / "whole.stat")
    want = content(tmp_path / "whole.stat")
    shuffled = random.Random(5)
    texts = set()
    for k in range(4):
        order = shuffled.sample(pieces, len(pieces))
        out = tmp_path / f"{k}.stat"
        if k == 3:  # day by day
            for piece in order:
                statistics(piece, "-append", "-o", out)
        else:
            statistics(*order, "-o", out, "-threads", 1 + k, "-tile", 50, 1 + 4 * k)
        texts.add(out.read_text())
        found = content(out)
        for key in "valid_pixels", "invalid_pixels", "pairs", "finite", "sums", "products", "differences":
            assert found[key] == want[key], key
    assert len(texts) == 1


def test_instruction_sets_agree(tmp_path, lines, monkeypatch):
    whole, _, _ = lines["f4"]
    texts = set()
    for name in "avx512", "avx2", "sse2":
        monkeypatch.setenv("HSI_SIMD", name)
        result = run("gdal_hsi_statistics", "-q", whole, "-o", tmp_path / f"{name}.stat")
        if result.code == 0:
            texts.add((tmp_path / f"{name}.stat").read_text())
    assert len(texts) == 1


ORDERS = int(os.environ.get("HSI_TEST_ORDERS", 6))  # random orders and divisions; 200 runs a campaign
MPI = shutil.which("mpirun") is not None and (BIN.parent / "lib/hsi/hsi_mpi.so").exists()


@pytest.mark.parametrize("dtype", ["u2", "f4"])
def test_random_orders_cuttings_ranks_and_instruction_sets(tmp_path, dtype):
    """Lines of several scenes, divided anywhere, added in any way by any number of processes in any instruction set,
    with scenes that are added and removed: equal sums, and an equal digest for every scene."""
    data = data_of() if dtype == "u2" else cube(47, 61, BANDS, seed=3, scale=1.0)
    data[:, 7, 3] = 0
    whole = scene(tmp_path / "whole.img", data, dtype, options=["INTERLEAVE=BIL"])
    stored = open(whole, "rb").read()
    line_bytes = len(stored) // data.shape[1]
    header = (tmp_path / "whole.hdr").read_text()
    statistics(whole, "-o", tmp_path / "whole.stat")
    want = content(tmp_path / "whole.stat")
    other = scene(tmp_path / "other.img", data_of(9, 13) if dtype == "u2" else cube(47, 13, BANDS, seed=8, scale=1.0), dtype)
    statistics(other, "-o", tmp_path / "other.stat")
    random_numbers = random.Random(11)
    sets = [name for name in ("avx512", "avx2", "sse2") if run(
        "gdal_hsi_statistics", "--config", "HSI_SIMD", name, "-dry-run", whole, "-o", tmp_path / "none.stat").code == 0]
    ways = set()
    for k in range(ORDERS):
        folder = tmp_path / str(k)
        folder.mkdir()
        cuts = sorted(random_numbers.sample(range(1, data.shape[1]), random_numbers.randint(1, 5)))
        pieces = []
        for first, end in zip([0, *cuts], [*cuts, data.shape[1]]):
            pieces.append(folder / f"piece{first}.img")
            pieces[-1].write_bytes(stored[first * line_bytes:end * line_bytes])
            pieces[-1].with_suffix(".hdr").write_text(header.replace(f"lines   = {data.shape[1]}", f"lines   = {end - first}"))
        random_numbers.shuffle(pieces)
        simd, ranks = random_numbers.choice(sets), random_numbers.choice([1, 1, 1, 1, 2, 3]) if MPI else 1
        options = ["--config", "HSI_SIMD", simd, "-threads", random_numbers.randint(1, 3), "-tile", 50, random_numbers.randint(1, 30)]
        out, way = folder / "all.stat", random_numbers.choice(["at once", "appended", "merged", "added and removed"])
        ways.add((simd, ranks, way))
        command = ["gdal_hsi_statistics", "-q", *options]
        if ranks > 1:
            prefix = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), str(BIN / command[0])]
            subprocess.run(list(map(str, prefix + command[1:] + [*pieces, "-o", out])), check=True, capture_output=True)
        elif way == "at once":
            succeed(run(*command, *pieces, "-o", out))
        elif way == "appended":
            for piece in pieces:
                succeed(run(*command, piece, "-append", "-o", out))
        elif way == "merged":
            half = len(pieces) // 2 or 1
            succeed(run(*command, *pieces[:half], "-o", folder / "a.stat"))
            succeed(run(*command, *pieces[half:], "-merge", folder / "a.stat", "-o", out))
        else:
            succeed(run(*command, *pieces, other, "-remove", tmp_path / "other.stat", "-o", out))
        found = content(out)
        for key in "valid_pixels", "invalid_pixels", "pairs", "finite", "sums", "products", "differences":
            assert found[key] == want[key], (key, ways)
        shutil.rmtree(folder)
    print(f"{ORDERS} orders and cuttings of {dtype}: {len({w[0] for w in ways})} instruction sets, ranks {sorted({w[1] for w in ways})}")


TOOLS = {
    "pca": ("gdal_hsi_pca", ["-nc", 4], 1),
    "pca_scaled": ("gdal_hsi_pca", ["-scale", "-whiten", "-nc", 3], 1),
    "mnf": ("gdal_hsi_mnf", ["-nc", 4], 1),
    "rx": ("gdal_hsi_detect", ["-method", "rx"], 1),
    "ace": ("gdal_hsi_detect", ["-target-pixel", 10, 20], 1),
    "mf": ("gdal_hsi_detect", ["-method", "mf", "-target-pixel", 10, 20], 1),
    "cem": ("gdal_hsi_detect", ["-method", "cem", "-target-pixel", 10, 20], 1),
    "eadp": ("gdal_hsi_eadp", ["-nc", 2, "-c", 2, "-ts", 5], None),
}


@pytest.fixture(scope="module")
def summed(lines, tmp_path_factory):
    """Returns by type: the files of a whole scene and of its pieces."""
    made = {}
    for dtype, (whole, pieces, _) in lines.items():
        folder = tmp_path_factory.mktemp("summed")
        made[dtype] = {"whole": folder / "whole.stat", "pieces": folder / "pieces.stat"}
        statistics(whole, "-o", made[dtype]["whole"])
        statistics(*reversed(pieces), "-o", made[dtype]["pieces"])
    return made


@pytest.mark.parametrize("dtype", ["u2", "f4"])
@pytest.mark.parametrize("name", TOOLS)
def test_tools_make_the_same_of_whole_and_pieces(tmp_path, lines, summed, name, dtype):
    """Results of the two files are equal bit by bit, and as close to the tool's own first pass as documented; and they
    need one pass less."""
    whole, _, _ = lines[dtype]
    tool, options, passes = TOOLS[name]
    for kind, sums in summed[dtype].items():
        succeed(run(tool, "-q", "-device", "cpu", *options, "-statistics", sums, "-report", tmp_path / f"{kind}.json",
                    whole, tmp_path / f"{kind}.tif"))
    succeed(run(tool, "-q", "-device", "cpu", *options, "-report", tmp_path / "own.json", whole, tmp_path / "own.tif"))
    own, of_whole, of_pieces = (read(tmp_path / f"{kind}.tif") for kind in ("own", "whole", "pieces"))
    assert np.array_equal(of_whole, of_pieces, equal_nan=True)
    assert np.array_equal(np.isnan(own), np.isnan(of_whole))
    scale = np.nanmax(np.abs(own))
    assert np.nanmax(np.abs(own - of_whole)) <= 2e-4 * scale
    report = json.loads((tmp_path / "whole.json").read_text())
    own_report = json.loads((tmp_path / "own.json").read_text())
    assert len(report["passes"]) == len(own_report["passes"]) - 1
    if passes is not None:
        assert len(report["passes"]) == passes
    assert report["statistics"]["valid_pixels"] == content(summed[dtype]["whole"])["valid_pixels"]


@pytest.mark.parametrize("method", ["hfc", "nwhfc", "hysime"])
def test_virtual_dimensionality(tmp_path, lines, method):
    whole, pieces, _ = lines["u2"]
    statistics(whole, "-o", tmp_path / "whole.stat")
    statistics(*pieces, "-o", tmp_path / "pieces.stat")
    results = [json.loads(succeed(run("gdal_hsi_vd", "-json", "-method", method, "-statistics", tmp_path / f"{kind}.stat", "-report",
                                      tmp_path / "r.json", whole)).out) for kind in ("whole", "pieces")]
    assert results[0] == results[1]
    assert json.loads((tmp_path / "r.json").read_text())["passes"] == []
    own = json.loads(succeed(run("gdal_hsi_vd", "-json", "-method", method, whole)).out)
    assert own["virtual_dimensionality"] == results[0]["virtual_dimensionality"]
    key = "eigenvalue" if method == "hysime" else "covariance"
    assert np.allclose([e[key] for e in own["eigenvalues"]], [e[key] for e in results[0]["eigenvalues"]], rtol=1e-4)


def test_components_of_two_lines_are_those_of_numpy(tmp_path):
    first, second = data_of(1), data_of(8)
    scene(tmp_path / "a.img", first)
    scene(tmp_path / "b.img", second)
    statistics(tmp_path / "a.img", tmp_path / "b.img", "-o", tmp_path / "s.stat")
    succeed(run("gdal_hsi_pca", "-q", "-nc", 9, "-statistics", tmp_path / "s.stat", "-model", tmp_path / "m.json", tmp_path / "b.img",
                tmp_path / "b.tif"))
    pixels = np.concatenate([d.reshape(BANDS, -1) for d in (first, second)], axis=1)
    pixels = pixels[:, (pixels != 0).any(axis=0)]
    values = np.linalg.eigvalsh(np.cov(pixels))[::-1]
    model = content(tmp_path / "m.json")
    assert np.allclose(model["eigenvalues"], values, rtol=1e-9)
    assert np.allclose(model["mean"], pixels.mean(axis=1), rtol=1e-13)
    assert model["pixels"] == pixels.shape[1]
    assert model["minimum"] == list(pixels.min(axis=1)) and model["maximum"] == list(pixels.max(axis=1))


def test_bands_are_matched_by_wavelength(tmp_path, lines):
    """A scene with more bands or in another order, with statistics of some bands."""
    whole, _, data = lines["u2"]
    statistics(whole, "-exclude-range", "600-640nm", "-o", tmp_path / "some.stat")
    kept = [b for b in range(BANDS) if not 600 <= WAVELENGTHS[b] <= 640]
    assert content(tmp_path / "some.stat")["features"]["bands"] == [b + 1 for b in kept]
    turned = tmp_path / "turned.img"
    scene(turned, data[::-1], wavelengths=WAVELENGTHS[::-1])
    for method, tool in (("-nc 3", "gdal_hsi_pca"), ("-nc 3", "gdal_hsi_mnf")):
        for source, out in ((whole, "a.tif"), (turned, "b.tif")):
            succeed(run(tool, "-q", "-overwrite", *method.split(), "-statistics", tmp_path / "some.stat", source, tmp_path / out))
        a, b = read(tmp_path / "a.tif"), read(tmp_path / "b.tif")
        signs = np.sign(np.nansum(a * b, axis=(1, 2)))[:, None, None]
        assert np.nanmax(np.abs(a - b * signs)) <= 1e-4 * np.nanmax(np.abs(a))
    # Also in one file: the second scene's bands are stored in the first one's order.
    statistics(whole, "-o", tmp_path / "one.stat")
    other = tmp_path / "other.img"
    scene(other, data_of(77)[::-1], wavelengths=WAVELENGTHS[::-1])
    straight = tmp_path / "straight.img"
    scene(straight, data_of(77))
    statistics(whole, other, "-o", tmp_path / "turned.stat")
    statistics(whole, straight, "-o", tmp_path / "straight.stat")
    assert content(tmp_path / "turned.stat")["products"] == content(tmp_path / "straight.stat")["products"]


def test_files_merge_and_what_was_added_goes_again(tmp_path):
    for k in range(4):
        scene(tmp_path / f"{k}.img", data_of(k + 1, lines=20 + k))
        statistics(tmp_path / f"{k}.img", "-o", tmp_path / f"{k}.stat")
    image = [tmp_path / f"{k}.img" for k in range(4)]
    stat = [tmp_path / f"{k}.stat" for k in range(4)]
    statistics(*image, "-o", tmp_path / "all.stat")
    statistics("-merge", stat[2], stat[0], "-merge", stat[3], image[1], "-o", tmp_path / "merged.stat")
    assert (tmp_path / "merged.stat").read_text() == (tmp_path / "all.stat").read_text()
    statistics(stat[3], stat[1], "-o", tmp_path / "some.stat")
    statistics("-merge", tmp_path / "all.stat", "-remove", tmp_path / "some.stat", "-o", tmp_path / "rest.stat")
    statistics(image[2], image[0], "-o", tmp_path / "want.stat")
    assert (tmp_path / "rest.stat").read_text() == (tmp_path / "want.stat").read_text()
    # In place, and back.
    before = (tmp_path / "all.stat").read_text()
    statistics("-append", "-o", tmp_path / "all.stat", "-remove", stat[2])
    assert len(content(tmp_path / "all.stat")["scenes"]) == 3
    statistics("-append", "-o", tmp_path / "all.stat", image[2])
    assert (tmp_path / "all.stat").read_text() == before


def test_scenes_from_a_list(tmp_path, lines):
    _, pieces, _ = lines["u2"]
    (tmp_path / "lines.txt").write_text("# the lines of a day\n" + "\n\n".join(f"  {p}\r" for p in pieces) + "\n")
    statistics(f"@{tmp_path}/lines.txt", "-o", tmp_path / "a.stat")
    statistics(*pieces, "-o", tmp_path / "b.stat")
    assert (tmp_path / "a.stat").read_text() == (tmp_path / "b.stat").read_text()


def test_a_mask_takes_pixels_out(tmp_path, lines):
    whole, _, data = lines["u2"]
    clouds = np.zeros((1,) + data.shape[1:])
    clouds[0, 10:20, 7:30] = 1
    write_scene(tmp_path / "clouds.tif", clouds, driver="GTiff", dtype="u1")
    statistics(whole, "-mask-exclude", tmp_path / "clouds.tif", "-o", tmp_path / "masked.stat")
    without = np.where(clouds == 1, 0, data)
    scene(tmp_path / "without.img", without)
    statistics(tmp_path / "without.img", "-o", tmp_path / "without.stat")
    a, b = content(tmp_path / "masked.stat"), content(tmp_path / "without.stat")
    for key in "valid_pixels", "pairs", "sums", "products", "differences":
        assert a[key] == b[key], key
    assert "clouds.tif" in a["scenes"][0]["mask"]


def test_scenes_in_other_srs_and_without_values(tmp_path, lines):
    """Positions have no effect; a scene without a valid pixel adds only its name."""
    _, pieces, data = lines["u2"]
    scene(tmp_path / "far.img", data[:, 3:4], epsg=32733, geotransform=(1, 2, 0, 3, 0, -2))
    statistics(pieces[0], tmp_path / "far.img", *pieces[2:], "-o", tmp_path / "a.stat")
    statistics(*pieces, "-o", tmp_path / "b.stat")
    assert content(tmp_path / "a.stat")["products"] == content(tmp_path / "b.stat")["products"]
    scene(tmp_path / "dark.img", np.zeros((BANDS, 4, 5)))
    result = succeed(run("gdal_hsi_statistics", "-q", *pieces, tmp_path / "dark.img", "-o", tmp_path / "c.stat"))
    assert "no pixel is valid" in result.err
    c = content(tmp_path / "c.stat")
    assert c["products"] == content(tmp_path / "b.stat")["products"] and c["invalid_pixels"] == 20 + content(tmp_path / "b.stat")["invalid_pixels"]
    succeed(run("gdal_hsi_pca", "-q", "-statistics", tmp_path / "c.stat", pieces[2], tmp_path / "pca.tif"))


def test_a_band_without_values_is_left_out(tmp_path, lines):
    _, pieces, data = lines["f4"]
    spoilt = data.copy()
    spoilt[4] = np.nan
    scene(tmp_path / "spoilt.img", spoilt, "f4")
    scene(tmp_path / "top.img", spoilt[:, :11], "f4")
    scene(tmp_path / "rest.img", spoilt[:, 11:], "f4")
    scene(tmp_path / "clean.img", np.delete(data, 4, axis=0), "f4", wavelengths=WAVELENGTHS[:4] + WAVELENGTHS[5:])
    result = succeed(run("gdal_hsi_statistics", "-q", tmp_path / "rest.img", tmp_path / "top.img", "-o", tmp_path / "a.stat"))
    assert "no valid value in 1 band (band 5)" in result.err
    statistics(tmp_path / "clean.img", "-o", tmp_path / "b.stat")
    assert content(tmp_path / "a.stat")["products"] == content(tmp_path / "b.stat")["products"]


refuse_statistics = functools.partial(refuse, by=functools.partial(run, "gdal_hsi_statistics", "-q"))


@pytest.mark.quick
def test_what_is_refused(tmp_path, lines):
    whole, pieces, data = lines["u2"]
    out = tmp_path / "o.stat"
    other_bands = scene(tmp_path / "other_bands.img", data[:5], wavelengths=[2000 + 10 * b for b in range(5)])
    tmp_scaled = tmp_path / "scaled.tif"
    write_scene(tmp_scaled, data, driver="GTiff", dtype="u2", wavelengths=WAVELENGTHS)
    from osgeo import gdal
    dataset = gdal.Open(str(tmp_scaled), gdal.GA_Update)
    for b in range(BANDS):
        dataset.GetRasterBand(b + 1).SetScale(0.01)
        dataset.GetRasterBand(b + 1).SetOffset(0)
    dataset = None
    scaled_too = tmp_path / "scaled_too.tif"
    scaled_too.write_bytes(tmp_scaled.read_bytes())
    dataset = gdal.Open(str(scaled_too), gdal.GA_Update)
    for b in range(BANDS):
        dataset.GetRasterBand(b + 1).SetScale(0.02)
    dataset = None
    statistics(pieces[0], "-o", tmp_path / "piece.stat")
    statistics(other_bands, "-o", tmp_path / "other_bands.stat")
    statistics(tmp_scaled, "-o", tmp_path / "scaled.stat")
    copy = scene(tmp_path / "copy.img", data)
    (tmp_path / "twice.txt").write_text(f"{pieces[0]}\n{pieces[0]}\n")
    (tmp_path / "missing.txt").write_text(f"{pieces[0]}\n{tmp_path}/gone.img\n")
    (tmp_path / "empty.txt").write_text("# nothing\n")

    refuse_statistics(1, "have no match", pieces[1], other_bands, "-o", out, untouched=[tmp_path])
    refuse_statistics(1, "scale 0.02", tmp_scaled, scaled_too, "-o", out, untouched=[tmp_path])
    # A scene without a scale may have lost it; the order of the two has no effect.
    for both in ((whole, scaled_too), (scaled_too, whole), ("-merge", tmp_path / "piece.stat", scaled_too),
                 ("-merge", tmp_path / "piece.stat", "-merge", tmp_path / "scaled.stat")):
        refuse_statistics(1, "no scale", *both, "-o", out, untouched=[tmp_path])
    refuse_statistics(1, "leaves no scene", "-merge", tmp_path / "piece.stat", "-remove", tmp_path / "piece.stat", "-o", out, untouched=[tmp_path])
    refuse_statistics(1, "have no match", "-merge", tmp_path / "piece.stat", other_bands, "-o", out, untouched=[tmp_path])
    for tool, options in (("gdal_hsi_pca", []), ("gdal_hsi_detect", ["-method", "rx"]), ("gdal_hsi_vd", [])):
        refuse(1, "no scale", tool, "-q", *options, "-statistics", tmp_path / "scaled.stat", whole, *([] if tool.endswith("vd") else [tmp_path / "o.tif"]),
               untouched=[tmp_path])
    refuse_statistics(2, "is given twice", pieces[0], pieces[1], pieces[0], "-o", out, untouched=[tmp_path])
    refuse_statistics(2, "is given twice", f"@{tmp_path}/twice.txt", "-o", out, untouched=[tmp_path])
    refuse_statistics(1, "gone.img", f"@{tmp_path}/missing.txt", "-o", out, untouched=[tmp_path])
    refuse_statistics(1, "lists no scene", f"@{tmp_path}/empty.txt", "-o", out, untouched=[tmp_path])
    refuse_statistics(1, "same pixels", whole, copy, "-o", out, untouched=[tmp_path])
    refuse_statistics(1, "are already in the statistics", "-merge", tmp_path / "piece.stat", "-merge", tmp_path / "piece.stat", "-o", out, untouched=[tmp_path])
    refuse_statistics(1, "do not include its scene", whole, "-remove", tmp_path / "piece.stat", "-o", out, untouched=[tmp_path])
    refuse_statistics(1, "have no match", "-merge", tmp_path / "piece.stat", "-merge", tmp_path / "other_bands.stat", "-o", out, untouched=[tmp_path])
    refuse_statistics(2, "-o is missing", whole, untouched=[tmp_path])
    refuse_statistics(2, "no scene", "-o", out, untouched=[tmp_path])
    refuse_statistics(1, "piece.stat", whole, "-o", tmp_path / "piece.stat", untouched=[tmp_path])
    refuse_statistics(2, "-append", whole, "-append", "-overwrite", "-o", out, untouched=[tmp_path])


def test_runs_that_add_at_once_lose_nothing(tmp_path):
    """Each run adds to the file that it finds at its end, also if no file existed at its beginning."""
    for k in range(6):
        scene(tmp_path / f"{k}.img", data_of(k + 1, lines=15))
    out = tmp_path / "all.stat"
    statistics(*(tmp_path / f"{k}.img" for k in range(6)), "-o", tmp_path / "want.stat")
    for begun in False, True:
        out.unlink(missing_ok=True)
        if begun:
            statistics(tmp_path / "0.img", "-o", out)
            out.chmod(0o660)
        runs = [start("gdal_hsi_statistics", "-q", "-append", tmp_path / f"{k}.img", "-o", out) for k in range(begun, 6)]
        for process in runs:
            _, err = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0, err
        assert out.read_text() == (tmp_path / "want.stat").read_text()
        assert not begun or out.stat().st_mode & 0o777 == 0o660
    # If both add the same scene, one is refused, whichever ends second.
    out.unlink()
    runs = [start("gdal_hsi_statistics", "-q", "-append", tmp_path / "3.img", "-o", out) for _ in range(2)]
    codes = sorted((process.communicate(timeout=PATIENCE), process.returncode)[1] for process in runs)
    assert codes == [0, 1] and len(content(out)["scenes"]) == 1


def test_a_band_without_values_makes_no_order_another_result(tmp_path):
    """If a day's scenes lack a band, it is omitted. A scene that has the band is then refused, and not added without
    it."""
    dead = data_of(1)
    dead[5] = np.nan
    dead_too = data_of(3)
    dead_too[5] = np.nan
    for name, data in (("dead", dead), ("whole", data_of(2)), ("too", dead_too)):
        scene(tmp_path / f"{name}.img", data, "f4")
    both = [tmp_path / "dead.img", tmp_path / "whole.img"]
    results = set()
    for order in (both, both[::-1]):
        result = succeed(run("gdal_hsi_statistics", "-q", "-overwrite", *order, "-o", tmp_path / "b.stat"))
        assert "dead.img: no pixel is valid" in result.err
        results.add((tmp_path / "b.stat").read_text())
    statistics("-append", both[1], "-o", tmp_path / "days.stat")
    statistics("-append", both[0], "-o", tmp_path / "days.stat")
    results.add((tmp_path / "days.stat").read_text())
    assert len(results) == 1
    result = succeed(run("gdal_hsi_statistics", "-q", both[0], "-o", tmp_path / "dead.stat"))
    assert "adds nothing" not in result.err and content(tmp_path / "dead.stat")["valid_pixels"] > 0
    for words in ((tmp_path / "dead.stat", both[1]), ("-merge", tmp_path / "dead.stat", both[1])):
        refuse_statistics(1, "has values in band 6, but", *words, "-o", tmp_path / "x.stat", untouched=[tmp_path])
    before = (tmp_path / "dead.stat").read_text()
    refuse_statistics(1, "leaves out its band 6", "-append", both[1], "-o", tmp_path / "dead.stat", untouched=[tmp_path])
    assert (tmp_path / "dead.stat").read_text() == before
    # A scene that also lacks the band is added. If it is removed again, the file is as before.
    statistics("-append", tmp_path / "too.img", "-o", tmp_path / "dead.stat")
    statistics(tmp_path / "too.img", both[0], "-o", tmp_path / "at_once.stat")
    assert (tmp_path / "dead.stat").read_text() == (tmp_path / "at_once.stat").read_text()
    statistics(tmp_path / "too.img", "-o", tmp_path / "too.stat")
    statistics("-append", "-remove", tmp_path / "too.stat", "-o", tmp_path / "dead.stat")
    assert (tmp_path / "dead.stat").read_text() == before
    # The same for a band that is omitted by choice.
    statistics("-b", f"1-5,7-{BANDS}", both[1], "-merge", tmp_path / "dead.stat", "-o", tmp_path / "chosen.stat")


def test_numbers_of_another_size_are_told(tmp_path):
    data = data_of(1).astype(float)
    scene(tmp_path / "a.img", data)
    scene(tmp_path / "b.img", data_of(2) * 0.9)
    scene(tmp_path / "small.img", data_of(3) / 10000, "f4")
    assert "another size" not in succeed(run("gdal_hsi_statistics", "-q", tmp_path / "a.img", tmp_path / "b.img", "-o", tmp_path / "ab.stat")).err
    for words in ((tmp_path / "a.img", tmp_path / "b.img", tmp_path / "small.img"), (tmp_path / "ab.stat", tmp_path / "small.img")):
        err = succeed(run("gdal_hsi_statistics", "-q", "-overwrite", *words, "-o", tmp_path / "c.stat")).err
        assert f"the values of {tmp_path}/small.img differ in magnitude" in err
    # Tools that use the statistics check some of the scene's values.
    for tool, options in (("gdal_hsi_pca", ["-nc", 2]), ("gdal_hsi_mnf", ["-nc", 2]), ("gdal_hsi_detect", ["-method", "rx"]),
                          ("gdal_hsi_eadp", ["-nc", 2, "-c", 2, "-ts", 5])):
        for name, warned in (("small", True), ("a", False)):
            result = succeed(run(tool, "-q", "-overwrite", "-device", "cpu", *options, "-statistics", tmp_path / "ab.stat", "-report",
                                 tmp_path / "r.json", tmp_path / f"{name}.img", tmp_path / "o.tif"))
            assert ("are far outside the range that the statistics are of" in result.err) == warned, result.err
            assert content(tmp_path / "r.json")["value_range"]["far_outside_share"] == (1 if warned else 0)


def test_one_line_of_a_campaign_may_lie_in_the_clouds(tmp_path):
    for k in range(3):
        scene(tmp_path / f"{k}.img", data_of(k + 1), geotransform=(500000 + 10000 * k, 20, 0, 4480000, 0, -20))
    height, width = data_of(1).shape[1:]
    clouds = np.ones((1, height, width))
    write_scene(tmp_path / "clouds.tif", clouds, driver="GTiff", dtype="u1", geotransform=(510000, 20, 0, 4480000, 0, -20))
    lines = [tmp_path / f"{k}.img" for k in range(3)]
    result = succeed(run("gdal_hsi_statistics", "-q", "-mask-exclude", tmp_path / "clouds.tif", *lines, "-o", tmp_path / "a.stat"))
    assert f"{lines[1]}: no pixel is valid in the mask; the scene adds nothing" in result.err
    statistics(lines[0], lines[2], "-o", tmp_path / "b.stat")
    assert content(tmp_path / "a.stat")["products"] == content(tmp_path / "b.stat")["products"]
    result = succeed(run("gdal_hsi_endmembers", "-q", "-t", 4, "-mask-exclude", tmp_path / "clouds.tif", "-with", lines[1], "-with", lines[2],
                         lines[0], tmp_path / "o.gpkg"))
    assert f"{lines[1]}: the mask contains no pixel of it" in result.err
    refuse_statistics(1, "leaves no pixel", "-mask-exclude", tmp_path / "clouds.tif", lines[1], "-o", tmp_path / "c.stat", untouched=[tmp_path])


def test_options_of_scenes_want_a_scene(tmp_path, lines):
    whole, pieces, _ = lines["u2"]
    statistics(whole, "-o", tmp_path / "w.stat")
    out = tmp_path / "o.stat"
    for option in (["-b", "1-3"], ["-exclude-range", "600-640nm"], ["-mask", tmp_path / "none.tif"], ["-srcwin", 0, 0, 3, 3], ["-srcnodata", 5]):
        for source in ([tmp_path / "w.stat"], ["-merge", tmp_path / "w.stat"]):
            refuse_statistics(2, f"{option[0]} requires a scene", *option, *source, "-o", out, untouched=[tmp_path])
    # -dry-run reports everything that it can know without a scene.
    statistics(pieces[0], "-o", tmp_path / "p.stat")
    refuse_statistics(1, "do not include its scene", "-dry-run", tmp_path / "w.stat", "-remove", tmp_path / "p.stat", "-o", out, untouched=[tmp_path])


def test_lists_as_editors_write_them_and_pipes(tmp_path, lines):
    whole, pieces, _ = lines["u2"]
    statistics(*pieces, "-o", tmp_path / "want.stat")
    (tmp_path / "bom.txt").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(map(str, pieces)).encode())
    statistics(f"@{tmp_path}/bom.txt", "-o", tmp_path / "a.stat")
    for k, piece in enumerate(pieces):
        statistics(piece, "-o", tmp_path / f"p{k}.stat")
    (tmp_path / "stats.txt").write_text("".join(f"{tmp_path}/p{k}.stat\n" for k in range(len(pieces))))
    statistics("-merge", f"@{tmp_path}/stats.txt", "-o", tmp_path / "b.stat")
    # Rewritten by another program.
    (tmp_path / "p0.stat").write_bytes(b"\xef\xbb\xbf" + json.dumps(content(tmp_path / "p0.stat"), indent=4).replace("\n", "\r\n").encode())
    statistics(tmp_path / "p0.stat", *pieces[1:], "-o", tmp_path / "c.stat")
    for name in "abc":
        assert (tmp_path / f"{name}.stat").read_text() == (tmp_path / "want.stat").read_text(), name
    os.mkfifo(tmp_path / "pipe")
    refuse_statistics(2, "pipe is a pipe or a device, not a scene", tmp_path / "pipe", whole, "-o", tmp_path / "o.stat", untouched=[tmp_path])


def test_a_scene_that_is_there_with_other_pixels_is_told(tmp_path, lines):
    whole, _, data = lines["u2"]
    statistics(whole, "-srcwin", 0, 0, 20, 20, "-o", tmp_path / "w.stat")
    result = succeed(run("gdal_hsi_statistics", "-q", "-append", "-srcwin", 0, 10, 20, 20, whole, "-o", tmp_path / "w.stat"))
    assert f"{whole} is also in the statistics with other pixels" in result.err


def test_damaged_foreign_and_newer_files(tmp_path, lines):
    whole, pieces, _ = lines["u2"]
    good = tmp_path / "good.stat"
    statistics(pieces[0], "-o", good)
    text = good.read_text()
    cases = {
        "damaged.stat": (text.replace(f'"valid_pixels": {content(good)["valid_pixels"]}', '"valid_pixels": 7', 1), "damaged"),
        "cut.stat": (text[:len(text) // 2], "not a statistics file"),
        "newer.stat": (text.replace('"version": 1', '"version": 9', 1), "version 9"),
        "foreign.stat": ('{"format": "gdal_hsi_pca", "version": 1}', "not a statistics file"),
        "picture.stat": ("\x89PNG", "not a statistics file"),
    }
    for name, (content_of, message) in cases.items():
        (tmp_path / name).write_text(content_of)
        refuse_statistics(1, message, pieces[1], "-merge", tmp_path / name, "-o", tmp_path / "o.stat", untouched=[tmp_path])
        for tool, options in (("gdal_hsi_pca", []), ("gdal_hsi_detect", ["-method", "rx"])):
            refuse(1, message, tool, "-q", *options, "-statistics", tmp_path / name, whole, tmp_path / "o.tif", untouched=[tmp_path])


def test_what_the_tools_refuse(tmp_path, lines):
    whole, pieces, data = lines["u2"]
    statistics(pieces[0], "-o", tmp_path / "s.stat")
    few = scene(tmp_path / "few.img", data[:5])
    mask = tmp_path / "mask.tif"
    write_scene(mask, np.ones((1,) + data.shape[1:]), driver="GTiff", dtype="u1")

    def fails(code, text, tool, *args, source=whole):
        refuse(code, text, tool, "-q", *args, "-statistics", tmp_path / "s.stat", source, *([] if tool == "gdal_hsi_vd" else [tmp_path / "o.tif"]), untouched=[tmp_path])

    for tool in "gdal_hsi_pca", "gdal_hsi_mnf", "gdal_hsi_vd", "gdal_hsi_eadp", "gdal_hsi_detect":
        fails(1, "have no match", tool, source=few)
    fails(2, "-mask has no effect", "gdal_hsi_mnf", "-mask", mask)
    fails(2, "cannot be used with", "gdal_hsi_pca", "-apply", tmp_path / "s.stat")
    fails(2, "-no-pca", "gdal_hsi_eadp", "-no-pca")
    fails(2, "cannot be used with -method", "gdal_hsi_detect", "-method", "sam", "-target-pixel", 1, 1)
    fails(2, "-window", "gdal_hsi_detect", "-window", 3, 7)
    fails(2, "-background", "gdal_hsi_detect", "-background", mask)
    fails(2, "-shrinkage auto", "gdal_hsi_detect", "-shrinkage", "auto")
    fails(2, "-exclude-share", "gdal_hsi_detect", "-exclude-share", 0.01)


def test_detection_with_some_of_the_bands(tmp_path, lines):
    """A library with fewer bands than the statistics."""
    whole, _, data = lines["u2"]
    statistics(whole, "-o", tmp_path / "s.stat")
    spectrum = data[:, 10, 20]
    (tmp_path / "t.csv").write_text("wavelength_nm,t\n" + "".join(f"{WAVELENGTHS[b]},{spectrum[b]}\n" for b in range(BANDS - 2)))
    for options, out in ((["-statistics", tmp_path / "s.stat"], "a.tif"), ([], "b.tif")):
        succeed(run("gdal_hsi_detect", "-q", "-device", "cpu", "-target", tmp_path / "t.csv", "-method", "ace", *options, whole, tmp_path / out))
    a, b = read(tmp_path / "a.tif"), read(tmp_path / "b.tif")
    assert np.nanmax(np.abs(a - b)) < 1e-5 and np.array_equal(np.isnan(a), np.isnan(b))


def test_dry_run_makes_nothing(tmp_path, lines):
    whole, pieces, _ = lines["u2"]
    with assert_untouched(tmp_path):
        result = succeed(run("gdal_hsi_statistics", "-dry-run", *pieces, "-o", tmp_path / "s.stat"))
    assert result.out.count("Pass statistics") == len(pieces)
    statistics(whole, "-o", tmp_path / "s.stat")
    plan = succeed(run("gdal_hsi_pca", "-dry-run", "-statistics", tmp_path / "s.stat", whole, tmp_path / "o.tif")).out
    assert "Pass covariance" not in plan and "Pass projection" in plan
