# SPDX-License-Identifier: MIT
"""gdal_hsi_noise, compared with a NumPy reference in double precision; its tables, bands that it proposes as bad, and
refused input."""
import csv
import json

import numpy as np
import pytest

from conftest import first_error, read, run, succeed, write_scene

BANDS, LINES, SAMPLES = 20, 67, 83
NM = [500 + 10.0 * b + (200 if b >= 12 else 0) + (500 if b >= 18 else 0) for b in range(BANDS)]
SEGMENTS = [(0, 12), (12, 18), (18, 20)]


def noise(*args):
    return run("gdal_hsi_noise", *args)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("noise")
    rng = np.random.default_rng(8)
    y, x = np.mgrid[:LINES, :SAMPLES]
    a, c = 1 + np.sin(x / 20) * np.cos(y / 30), 1 + np.cos(x / 25 + y / 17)
    b = np.arange(BANDS)[:, None, None]
    scene = 500 + 80 * a * (1 + np.sin(b / 6)) + 60 * c * (1 + np.cos(b / 9)) + (1 + 0.1 * b) * rng.normal(size=(BANDS, LINES, SAMPLES))
    scene += 2 * rng.normal(size=SAMPLES)
    scene[7] += rng.normal(size=(LINES, SAMPLES)) * 900  # only noise
    scene[4] = 42
    scene[3, 20, 30], scene[:, 50, 60] = np.nan, 0
    write_scene(folder / "scene.img", scene.astype(np.float32), wavelengths=NM)
    mask = np.zeros((1, LINES, SAMPLES))
    mask[0, 5:40, 10:60] = 1
    write_scene(folder / "mask.tif", mask, driver="GTiff", dtype="u1")
    return folder


def values(folder, masked=False):
    scene = read(folder / "scene.img").astype(np.float64)
    scene[:, ~np.isfinite(scene).all(0) | (scene == 0).all(0)] = np.nan
    if masked:
        scene[:, read(folder / "mask.tif")[0] == 0] = np.nan
    return scene


def counted(scene):
    return scene[:, np.isfinite(scene).all(0)]


def regression(scene):
    v = counted(scene)
    used = [b for b in range(BANDS) if v[b].std() > 0]
    n, k = v.shape[1], len(used)
    p = np.linalg.inv(np.corrcoef(v[used]))
    residual = (n - 1) / ((n - k) * np.diag(p))
    m = (p / np.diag(p)[:, None]) ** 2
    q = np.maximum(np.linalg.solve(m, residual), 0.04 * residual)
    s, out = v[used].std(1, ddof=1), np.full((2, BANDS), np.nan)
    out[:, used] = s * np.sqrt(q), s * np.sqrt(residual)
    return out


def blocks_of(scene, size):
    for y in range(0, LINES - size + 1, size):
        for x in range(0, SAMPLES - size + 1, size):
            block = scene[:, y:y + size, x:x + size]
            if np.isfinite(block).all():
                yield block


def neighbours(b):
    for begin, end in SEGMENTS:
        if begin <= b < end and end - begin > 2:
            return (b + 1, b + 2) if b == begin else (b - 2, b - 1) if b == end - 1 else (b - 1, b + 1)
    return None


def by_blocks(scene, size, spatial):
    m, v, out = np.eye(BANDS), np.zeros(BANDS), np.full((2, BANDS), np.nan)
    for b in range(BANDS):
        by, found = neighbours(b), []
        if by is None:
            continue
        for block in blocks_of(scene, size):
            keep = slice(1, None) if spatial else slice(None)
            y, x = block[b].ravel()[keep], [block[j].ravel()[keep] for j in by]
            if spatial:
                above = np.vstack([np.roll(block[b][0], 1), block[b][:-1]]).ravel()
                x.append(above[1:])
            if min(y.std(), *(one.std() for one in x)) == 0:
                continue
            a = np.array([np.ones(y.size), *x]).T
            if np.linalg.det(np.corrcoef(x)) < 1e-12:
                continue
            c = np.linalg.lstsq(a, y, rcond=None)[0]
            found.append([((y - a @ c) ** 2).sum() / (y.size - a.shape[1]), *(c[1:] ** 2)])
        if found:
            medians = np.median(found, axis=0)
            v[b] = medians[0]
            m[b, b] += medians[3] if spatial else 0
            m[b, by[0]], m[b, by[1]] = medians[1:3]
            out[1, b] = np.sqrt(v[b])
    q = np.maximum(np.linalg.solve(m, v), 0.04 * v)
    out[0] = np.where(np.isnan(out[1]), np.nan, np.sqrt(q))
    return out


def lsd(scene, size):
    out = np.full((3, BANDS), np.nan)
    blocks = np.array(list(blocks_of(scene, size)))
    deviations, means = blocks.std((2, 3), ddof=1).T, blocks.mean((2, 3)).T
    for b in range(BANDS):
        d, m = deviations[b][deviations[b] > 0], means[b][deviations[b] > 0]
        if d.size:
            bins = np.minimum(((d - d.min()) / (d.max() - d.min()) * 150).astype(int), 149)
            full = np.bincount(bins, minlength=150).argmax()
            out[:, b] = d[bins == full].mean(), d[bins == full].mean(), m[bins == full].mean()
    return out


def difference(scene):
    d = np.diff(scene, axis=2).reshape(BANDS, -1)
    d = d[:, np.isfinite(d).all(0)]
    return np.sqrt((d ** 2).mean(1) / 2)


def stripes(scene):
    e = scene[:, :, 1:-1] - (scene[:, :, :-2] + scene[:, :, 2:]) / 2
    there = np.isfinite(e).all(0).sum(0) >= 20
    e = e[:, :, there]
    e = np.where(np.isfinite(e).all(0), e, np.nan)
    c, u = np.nanmean(e, 1), np.nanvar(e, 1, ddof=1) / np.isfinite(e).sum(1)
    mad = np.median(np.abs(c - np.median(c, 1)[:, None]), 1)
    return np.sqrt(np.maximum(0, (1.4826 * mad) ** 2 - np.median(u, 1)) / 1.5), (np.abs(c) > 5 * np.sqrt(u)).mean(1)


def table(out):
    found = json.loads(out.out)
    return {key: np.array([np.nan if v is None else v for v in value]) for key, value in found.items()}


@pytest.mark.quick
@pytest.mark.parametrize("words", [("regression",), ("residual",), ("residual", "-block", "5"), ("ssdc",), ("ssdc", "-block", "11"), ("lsd",),
                                   ("difference",), ("area",)], ids=" ".join)
@pytest.mark.parametrize("masked", [False, True])
def test_values_are_those_of_the_reference(files, words, masked):
    if words[0] == "area" and not masked:
        return
    mask = ("-mask", files / "mask.tif") if masked else ()
    got = table(succeed(noise("-json", "-method", *words, *mask, files / "scene.img")))
    scene = values(files, masked)
    v, size = counted(scene), int(words[2]) if len(words) > 1 else 8
    signal = v.mean(1)
    deviation = v.std(1, ddof=1)
    if words[0] == "regression":
        expected, residual = regression(scene)
    elif words[0] == "lsd":
        expected, residual, signal = lsd(scene, size)
    elif words[0] in ("residual", "ssdc"):
        expected, residual = by_blocks(scene, size, words[0] == "ssdc")
    else:
        expected = residual = difference(scene) if words[0] == "difference" else deviation
    near = dict(rtol=2e-6, atol=1e-9, equal_nan=True)
    assert np.allclose(got["mean"], v.mean(1), **near) and np.allclose(got["deviation"], deviation, **near)
    assert np.allclose(got["noise"], expected, **near), got["noise"] / expected
    assert np.allclose(got["residual"], residual, **near)
    with np.errstate(all="ignore"):
        snr = signal / expected
    assert np.allclose(got["snr"], np.where(np.isfinite(snr), snr, np.nan), **near)
    stripe, share = stripes(scene)
    assert np.allclose(got["stripe"], stripe, rtol=1e-5, atol=1e-6) and np.allclose(got["stripe_columns"], share, atol=1e-12)
    assert list(got["band"]) == list(range(1, BANDS + 1)) and np.allclose(got["wavelength"], NM)
    assert got["reason"][4] == "constant" and got["reason"][7] == "snr" and not got["good"][7]
    if words[0] == "regression":
        assert got["good"].sum() == BANDS - 2


def test_tables_as_files(files, tmp_path):
    scene = read(files / "scene.img")
    write_scene(tmp_path / "s.img", scene, wavelengths=NM, bbl=[0 if b == 9 else 1 for b in range(BANDS)])
    out = succeed(noise("-csv", tmp_path / "n.csv", "-bad-bands", tmp_path / "bad.csv", tmp_path / "s.img"))
    assert "snr" in out.out.splitlines()[-BANDS]
    rows = list(csv.DictReader((tmp_path / "n.csv").open(newline="")))
    assert list(rows[0]) == ["band", "wavelength", "mean", "deviation", "noise", "residual", "snr", "stripe", "stripe_columns", "good", "reason"]
    assert len(rows) == BANDS - 1 and rows[4]["good"] == "0" and rows[4]["reason"] == "constant" and rows[4]["noise"] == ""
    bad = {int(row["band"]): row for row in csv.DictReader((tmp_path / "bad.csv").open(newline=""))}
    assert sorted(bad) == list(range(1, BANDS + 1))
    assert {b: row["reason"] for b, row in bad.items() if row["good"] == "0"} == {5: "constant", 8: "snr", 10: "bbl"}
    again = noise("-csv", tmp_path / "n.csv", tmp_path / "s.img")
    assert again.code == 1 and "already exists" in again.err
    succeed(noise("-csv", tmp_path / "n.csv", "-overwrite", tmp_path / "s.img"))


def test_limits_decide_what_is_good(files):
    got = table(succeed(noise("-json", "-min-snr", "0", "-max-noise-share", "1e-4", files / "scene.img")))
    share = got["noise"] ** 2 / got["deviation"] ** 2
    for b in range(BANDS):
        assert got["reason"][b] == ("constant" if b == 4 else "noise" if share[b] > 1e-4 else "")


@pytest.mark.parametrize("method", ["regression", "residual", "lsd"])
def test_tiles_threads_and_interleave_do_not_matter(files, tmp_path, method):
    expected = succeed(noise("-json", "-method", method, files / "scene.img")).out
    assert succeed(noise("-json", "-method", method, "-threads", "3", "-memory", "64M", files / "scene.img")).out == expected
    write_scene(tmp_path / "bip.img", read(files / "scene.img"), wavelengths=NM, options=["INTERLEAVE=BIP"])
    assert succeed(noise("-json", "-method", method, tmp_path / "bip.img")).out == expected


@pytest.mark.parametrize("options, code, first", [
    (("-block", "8"), 2, "-block requires -method residual, ssdc or lsd"), (("-method", "lsd", "-block", "3"), 2, "-block: '3'"),
    (("-method", "lsd", "-max-gap", "9"), 2, "-max-gap requires -method residual or ssdc"),
    (("-method", "area"), 2, "-method area requires -mask"), (("-min-snr", "-1"), 2, "-min-snr"),
    (("-srcwin", "0", "0", "4", "4"), 1, "-method regression needs more pixels than bands"),
    (("-srcwin", "0", "0", "1", "1", "-method", "residual"), 1, "1 valid pixel")])
def test_bad_input(files, tmp_path, options, code, first):
    out = noise(*options, "-csv", tmp_path / "x.csv", files / "scene.img")
    assert out.code == code and first in first_error(out), out.err
    assert not list(tmp_path.iterdir())



# --- smile, plot, bad bands of headers


def gaussian_scene(step, smile_of, lines=40, samples=60, noise_share=0):
    """Makes a continuum with an absorption at 762 nm in columns whose centres are shifted by smile_of(column)."""
    centres = np.arange(735, 791, step)
    off = smile_of(np.arange(samples))
    fine = np.arange(700, 830, 0.05)
    truth = (1 + 0.001 * (fine - 760)) * (1 - 0.6 * np.exp(-0.5 * ((fine - 762) / 3) ** 2))
    scene = np.empty((len(centres), lines, samples))
    for b, centre in enumerate(centres):
        for j in range(samples):
            response = np.exp(-4 * np.log(2) * ((fine - centre - off[j]) / step) ** 2)
            scene[b, :, j] = 100 * (response * truth).sum() / response.sum()
    return centres, off, scene * (1 + 0.1 * np.random.default_rng(2).uniform(size=(1, lines, samples)))


def centroid(nm, r):
    weights = np.gradient(nm) * 1.0
    weights[0], weights[-1] = (nm[1] - nm[0]) / 2, (nm[-1] - nm[-2]) / 2
    return (weights * nm * (1 - r)).sum() / (weights * (1 - r)).sum()


@pytest.mark.parametrize("step,share", [pytest.param(2.5, 0.01, marks=pytest.mark.quick), (5, 0.04), (7.4, 0.06), (10, 0.14)])
def test_smile_is_found_again(step, share, tmp_path):
    """A parabola of 1.2 nm from the middle to the ends; its shifts are compared with NumPy and with the true values."""
    nm, off, scene = gaussian_scene(step, lambda j: 1.2 * ((j - 29.5) / 29.5) ** 2)
    write_scene(tmp_path / "s.img", scene.astype(np.float32), wavelengths=list(nm), epsg=None, geotransform=None)
    out = succeed(noise("-method", "difference", "-json", "-smile", "735-790nm", "-columns", tmp_path / "c.csv", tmp_path / "s.img")).out
    found = json.loads(out)["smile"]
    assert [one["range"] for one in found] == ["735-790nm"] and found[0]["bands"] == len(nm)
    assert found[0]["smile_nm"] == pytest.approx(1.2, rel=share) and found[0]["rms_nm"] < 0.06
    with open(tmp_path / "c.csv") as f:
        rows = list(csv.DictReader(f))
    assert [int(row["column"]) for row in rows] == list(range(60))
    means = read(tmp_path / "s.img").astype(np.float64).mean(axis=1)
    p, depth = [], []
    for j in range(60):
        r = means[:, j] / np.interp(nm, [nm[0], nm[-1]], [means[0, j], means[-1, j]])
        p.append(centroid(nm, r))
        depth.append((1 - r).max())
    shift = np.mean(p) - np.array(p)
    np.testing.assert_allclose([float(row["735-790nm shift_nm"]) for row in rows], shift, atol=1e-6)
    np.testing.assert_allclose([float(row["735-790nm depth"]) for row in rows], depth, rtol=1e-6)
    fitted = np.polyval(np.polyfit(np.arange(60), shift, 2), np.arange(60))
    assert found[0]["smile_nm"] == pytest.approx(np.ptp(fitted), rel=1e-6)
    assert found[0]["rms_nm"] == pytest.approx(np.sqrt(((shift - fitted) ** 2).mean()), rel=1e-6)
    assert np.corrcoef(shift, off)[0, 1] > 0.99


def test_smile_in_a_window_and_a_mask(tmp_path):
    nm, _, scene = gaussian_scene(5, lambda j: 0.02 * j)
    write_scene(tmp_path / "s.img", scene.astype(np.float32), wavelengths=list(nm), epsg=None, geotransform=None)
    inside = np.ones((1, 40, 60))
    inside[:, :, 20] = inside[:, 30:] = 0
    write_scene(tmp_path / "m.tif", inside, driver="GTiff", dtype="u1", epsg=None, geotransform=None)
    whole = [noise("-method", "difference", "-q", "-overwrite", "-smile", "735-790nm", "-smile", "740-785nm", "-columns", tmp_path / "c.csv",
                   *extra, "-mask", tmp_path / "m.tif", tmp_path / "s.img") for extra in (["-tile", "16", "16", "-threads", "2"], [])]
    texts = []
    for result in whole:
        succeed(result)
        texts.append(result.out)
    assert texts[0] == texts[1] and texts[0].count("nm peak to peak") == 2
    rows = (tmp_path / "c.csv").read_text().splitlines()
    assert rows[0] == "column,735-790nm shift_nm,735-790nm depth,740-785nm shift_nm,740-785nm depth"
    assert rows[21] == "20,,,,"
    succeed(noise("-method", "difference", "-q", "-overwrite", "-smile", "735-790nm", "-columns", tmp_path / "c.csv", "-srcwin", 30, 0, 20, 40, tmp_path / "s.img"))
    assert (tmp_path / "c.csv").read_text().splitlines()[1].startswith("30,")


def test_smile_that_cannot_be(files, tmp_path):
    for options, code, text in ((["-smile", "500-530nm"], 1, "has 4 good bands there, but at least 5"),
                                (["-smile", "5000-6000nm"], 1, "0 good bands"),
                                (["-smile", "nonsense"], 2, "-smile"),
                                (["-columns", tmp_path / "c.csv"], 2, "-columns requires -smile")):
        result = noise(*options, files / "scene.img")
        assert result.code == code and text in first_error(result), (options, result.err)
    write_scene(tmp_path / "plain.img", read(files / "scene.img"))
    result = noise("-smile", "500-600nm", tmp_path / "plain.img")
    assert result.code == 1 and "has no wavelengths" in first_error(result)
    result = succeed(noise("-smile", "500-600nm", files / "scene.img"))
    assert "-smile is for scenes in sensor geometry" in result.err


@pytest.mark.parametrize("kind", ["svg", "png", "PNG"])
def test_plot(kind, files, tmp_path):
    from osgeo import gdal
    path = tmp_path / f"snr.{kind}"
    succeed(noise("-plot", path, files / "scene.img"))
    if kind == "svg":
        import xml.etree.ElementTree as tree
        root = tree.parse(path).getroot()
        assert {"signal-to-noise ratio; grey: proposed as bad", "wavelength (nm)"} <= {t.text for t in root.iter() if t.tag.endswith("text")}
        assert sum(t.get("stroke") == "#eeeeee" for t in root.iter() if t.tag.endswith("line")) == 2
        assert sum(t.get("stroke") == "#0055aa" for t in root.iter() if t.tag.endswith("line")) >= BANDS
    else:
        picture = gdal.Open(str(path))
        assert picture.GetDriver().ShortName == "PNG" and (picture.RasterXSize, picture.RasterYSize, picture.RasterCount) == (900, 480, 3)
        pixels = picture.ReadAsArray()
        for colour, least in (((0, 85, 170), 300), ((238, 238, 238), 1000), ((0, 0, 0), 500), ((204, 51, 17), 200)):
            assert (pixels == np.array(colour)[:, None, None]).all(axis=0).sum() > least
    result = noise("-plot", path, files / "scene.img")
    assert result.code == 1 and "exists" in first_error(result)
    succeed(noise("-plot", path, "-overwrite", files / "scene.img"))


def fields(path):
    """Returns the header's text without its bbl, and the bbl."""
    import re
    text = path.read_bytes().decode()
    found = re.search(r"^bbl *= *\{([^}]*)\}\r?\n?", text, re.M)
    return (text.replace(found[0], ""), [int(v) for v in found[1].split(",")]) if found else (text, None)


@pytest.mark.parametrize("old", ["", "bbl = {1, 0, 1, 1, 1, 1, 1, 1, 1, 1,\n 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}\n", "bbl={" + "1 ," * 19 + "1}"])
def test_bad_bands_of_a_header(old, files, tmp_path):
    """The scene's own header keeps everything else, and can be read."""
    for name in ("scene.img", "scene.hdr"):
        (tmp_path / name).write_bytes((files / name).read_bytes())
    header = tmp_path / "scene.hdr"
    header.write_text(header.read_text() + "; a comment = {that stays}\n" + old)
    before = fields(header)
    succeed(noise("-bad-bands", tmp_path / "bad.csv", tmp_path / "scene.img"))
    succeed(noise("-bad-bands", header, tmp_path / "scene.img"))
    with open(tmp_path / "bad.csv") as f:
        table = [int(row["good"]) for row in csv.DictReader(f)]
    after = fields(header)
    assert after[1] == table and after[0].strip() == before[0].strip() and 0 in table
    succeed(noise("-bbl", "ignore", "-bad-bands", header, tmp_path / "scene.img"))
    assert fields(header)[1] == [int(good or b == 1) for b, good in enumerate(table)]  # band 2 is good
    plain = json.loads(succeed(run("gdal_hsi_info", "-json", "-bbl", "use", tmp_path / "scene.img")).out)
    assert plain["bad_bands"] == [b + 1 for b, good in enumerate(fields(header)[1]) if not good]


def test_headers_that_are_not_the_scenes(files, tmp_path):
    before = (files / "scene.hdr").read_bytes()
    (tmp_path / "text.hdr").write_text("no header")
    write_scene(tmp_path / "other.img", np.ones((3, 5, 5)))
    for path, text in ((tmp_path / "none.hdr", "is not an ENVI header"), (tmp_path / "text.hdr", "is not an ENVI header"),
                       (tmp_path / "other.hdr", "is the header of 3 bands, but src has 20 bands")):
        result = noise("-bad-bands", path, files / "scene.img")
        assert result.code == 1 and text in first_error(result), result.err
    result = noise("-bad-bands", files / "scene.hdr", "-csv", files / "scene.hdr", files / "scene.img")
    assert result.code == 2
    succeed(noise("-bad-bands", files / "scene.hdr", "-dry-run", files / "scene.img"))
    assert (files / "scene.hdr").read_bytes() == before


def test_bbl_of_a_table(files, tmp_path):
    """All tools exclude the bands that the table marks. The file's own list is ignored, and outputs have the new
    list."""
    succeed(noise("-bad-bands", tmp_path / "bad.csv", files / "scene.img"))
    with open(tmp_path / "bad.csv") as f:
        bad = [int(row["band"]) for row in csv.DictReader(f) if row["good"] == "0"]
    kept = [b for b in range(1, BANDS + 1) if b not in bad]
    assert 0 < len(bad) < BANDS
    info = json.loads(succeed(run("gdal_hsi_info", "-json", "-bbl", tmp_path / "bad.csv", files / "scene.img")).out)
    assert info["bands"] == kept and info["bad_bands"] == bad
    for name, options in (("by table", ["-bbl", tmp_path / "bad.csv"]), ("by number", ["-b", ",".join(map(str, kept))])):
        succeed(run("gdal_hsi_pca", "-q", "-device", "cpu", *options, files / "scene.img", tmp_path / f"{name}.tif"))
    np.testing.assert_array_equal(read(tmp_path / "by table.tif"), read(tmp_path / "by number.tif"))
    succeed(run("gdal_hsi_smooth", "-method", "snv", "-bbl", tmp_path / "bad.csv", files / "scene.img", tmp_path / "v.hsi"))
    succeed(run("gdal_hsi_smooth", "-method", "snv", "-b", ",".join(map(str, kept)), files / "scene.img", tmp_path / "s.tif"))
    virtual = json.loads(succeed(run("gdal_hsi_info", "-json", tmp_path / "v.hsi")).out)
    assert virtual["size"][2] == len(kept)
    (tmp_path / "few.csv").write_text("band;good\n2;0\n")
    info = json.loads(succeed(run("gdal_hsi_info", "-json", "-bbl", tmp_path / "few.csv", files / "scene.img")).out)
    assert info["bad_bands"] == [2]
    result = succeed(run("gdal_hsi_pca", "-bbl", tmp_path / "few.csv", "-report", tmp_path / "r.json", files / "scene.img", tmp_path / "o.tif"))
    assert json.loads((tmp_path / "r.json").read_text())["options"]["bbl"] == str(tmp_path / "few.csv")


@pytest.mark.parametrize("text,code,message", [
    ("band,bad\n1,0\n", 1, "it has no column 'good'"), ("good\n0\n", 1, "it has no column 'band'"),
    ("band,good\n21,0\n", 1, "band 21 is not in"), ("band,good\n0,1\n", 1, "band 0 is not in"),
    ("band,good\n1.5,1\n", 1, "are not a band number and 1 or 0"), ("band,good\n1,2\n", 1, "are not a band number and 1 or 0"),
    ("band,good\n1,\n", 1, "are not a band number and 1 or 0"), ("", 1, "bad.csv"),
    ("band,good\n" + "".join(f"{b},0\n" for b in range(1, 21)), 1, "every band of"), (None, 1, "bad.csv")])
def test_tables_that_are_none(text, code, message, files, tmp_path):
    if text is not None:
        (tmp_path / "bad.csv").write_text(text)
    result = run("gdal_hsi_pca", "-bbl", tmp_path / "bad.csv", files / "scene.img", tmp_path / "out.tif")
    assert result.code == code and message in first_error(result), result.err
    result = run("gdal_hsi_pca", "-bbl", "some", files / "scene.img", tmp_path / "out.tif")
    assert result.code == 2 and "-bbl: 'some' is not one of use, ignore, FILE.csv" in first_error(result)
