# SPDX-License-Identifier: MIT
"""Agreement of flight lines where they overlap (gdal_hsi_compare -mosaic), simulated flight lines over one landscape,
and pictures with a common stretch."""
import json

import numpy as np
import pytest
from conftest import assert_untouched, cube, first_error, read, refuse, run, succeed, write_utm_scene as write_scene
from osgeo import gdal
BANDS = 7
WAVELENGTHS = [450 + 60 * b for b in range(BANDS)]


def metrics(s, t):
    """Returns nrmse and sad of spectra in rows, by definition."""
    nrmse = np.sqrt(((t - s) ** 2).sum(-1) / ((s - s.mean(-1, keepdims=True)) ** 2).sum(-1))
    cosine = (s * t).sum(-1) / np.sqrt((s ** 2).sum(-1) * (t ** 2).sum(-1))
    return nrmse, np.degrees(np.arccos(np.clip(cosine, -1, 1)))


def place(path):
    gt = gdal.Open(str(path)).GetGeoTransform()
    return np.array([[gt[1], gt[2]], [gt[4], gt[5]]]), np.array([gt[0], gt[3]])


def sampled(path, data, x, y):
    """Returns the spectra of the pixels that contain the positions; NaN outside the scene."""
    matrix, origin = place(path)
    sample, line = np.floor(np.linalg.solve(matrix, np.stack([x - origin[0], y - origin[1]])) + 1e-6).astype(int)
    inside = (sample >= 0) & (line >= 0) & (sample < data.shape[2]) & (line < data.shape[1])
    out = np.full((len(x), data.shape[0]), np.nan)
    out[inside] = data[:, line[inside], sample[inside]].T
    return out


def expected(files, datas, a, b, grid):
    """Returns the metrics of scenes a and b on a grid (origin, pixel, columns, lines)."""
    origin, pixel, columns, lines = grid
    cols, rows = np.meshgrid(np.arange(columns), np.arange(lines))
    x, y = origin[0] + (cols.ravel() + 0.5) * pixel, origin[1] - (rows.ravel() + 0.5) * pixel
    s, t = (sampled(files[k], datas[k], x, y) for k in (a, b))
    good = np.isfinite(s).all(1) & np.isfinite(t).all(1) & (s != 0).any(1) & (t != 0).any(1)
    nrmse, sad = metrics(s[good], t[good])
    return good.reshape(lines, columns), nrmse, sad


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """Makes scenes on one grid that overlap, with different noise and some pixels without a value."""
    folder = tmp_path_factory.mktemp("three")
    ground = np.round(cube(90, 60, BANDS, seed=2, scale=3000.0))
    files, datas = [], []
    for k, (x, y, w, h) in enumerate([(0, 0, 40, 50), (25, 5, 45, 50), (30, 40, 20, 20)]):
        data = np.round(ground[:, y:y + h, x:x + w] * (1 + 0.05 * k) + np.random.default_rng(k).normal(0, 20, (BANDS, h, w)))
        data[:, 3, :5] = 0
        files.append(folder / f"line{k}.img")
        datas.append(data)
        write_scene(files[-1], data, dtype="i2", wavelengths=WAVELENGTHS, geotransform=(500000 + 20 * x, 20, 0, 4480000 - 20 * y, 0, -20))
    return files, datas


def test_pairs_on_one_grid(tmp_path, three):
    files, datas = three
    result = json.loads(succeed(run("gdal_hsi_compare", "-json", "-mosaic", "-with", files[2], "-map", tmp_path / "map.tif", "-o",
                                    tmp_path / "table.json", *files[:2])).out)
    assert json.loads((tmp_path / "table.json").read_text()) == result
    grid = ((500000, 4480000), 20, 70, 60)
    sums, count, total = np.zeros((2, 60, 70)), np.zeros((60, 70)), []
    assert [(p["a"], p["b"]) for p in result["pairs"]] == [(str(files[a]), str(files[b])) for a, b in ((0, 1), (0, 2), (1, 2))]
    for pair, (a, b) in zip(result["pairs"], ((0, 1), (0, 2), (1, 2))):
        good, *values = expected(files, datas, a, b, grid)
        assert pair["pixels"] == good.sum() > 0
        for name, value in zip(("nrmse", "sad"), values):
            assert pair["metrics"][name]["mean"] == pytest.approx(value.mean(), rel=1e-6), (a, b, name)
            assert pair["metrics"][name]["maximum"] == pytest.approx(value.max(), rel=1e-6)
        for k, value in enumerate(values):
            sums[k][good] += value
        count += good
        total.append((good.sum(), values))
    assert result["pixels"] == sum(n for n, _ in total)
    for k, name in enumerate(("nrmse", "sad")):
        every = np.concatenate([values[k] for _, values in total])
        assert result["metrics"][name]["mean"] == pytest.approx(every.mean(), rel=1e-6)
        assert result["metrics"][name]["maximum"] == pytest.approx(every.max(), rel=1e-6)
    made = read(tmp_path / "map.tif")
    assert gdal.Open(str(tmp_path / "map.tif")).GetGeoTransform() == (500000, 20, 0, 4480000, 0, -20)
    assert made.shape == (3, 60, 70)
    assert (np.isfinite(made[0]) == (count > 0)).all()
    np.testing.assert_array_equal(np.nan_to_num(made[2]), count)
    for k in range(2):
        np.testing.assert_allclose(made[k][count > 0], (sums[k] / np.maximum(count, 1))[count > 0], rtol=1e-5)
    text = succeed(run("gdal_hsi_compare", "-q", "-mosaic", "-with", files[2], *files[:2])).out.splitlines()
    assert text[0].split()[:3] == ["overlap", "pixels", "nrmse"] and text[-1].startswith("all ") and len(text) == 5


def test_tiles_and_threads_change_nothing(tmp_path, three):
    files, _ = three
    (tmp_path / "rest.txt").write_text(f"{files[2]}\n")
    texts = set()
    for k, options in enumerate((["-with", files[2]], ["-with", f"@{tmp_path}/rest.txt", "-threads", 1, "-tile", 128, 7],
                                 ["-with", files[2], "-threads", 3, "-memory", "64MB"])):
        report = succeed(run("gdal_hsi_compare", "-json", "-mosaic", *options, "-map", tmp_path / f"{k}.dat", *files[:2])).out
        texts.add((report, (tmp_path / f"{k}.dat").read_bytes()))
    assert len(texts) == 1


def test_lines_of_other_headings(tmp_path):
    """Flight lines over one landscape see the same ground. Without noise and with equal light, they agree within the
    limits of their grids. With different light, their angles agree but their brightness does not."""
    lines = []
    for k, (x, y, heading, light) in enumerate([(0, 0, 0, 1), (10, 70, 30, 1), (-5, 12, -12, 0.7)]):
        lines.append(tmp_path / f"line{k}.bil")
        succeed(run("gdal_hsi_synth", "-q", "-size", 70, 90, 12, "-seed", 4, "-snr", "inf", "-corner", x, y, "-rotate", heading, "-light", light,
                    0, "-labels", tmp_path / f"truth{k}.tif", lines[-1]))
    datas, truths = [read(path) for path in lines], [read(tmp_path / f"truth{k}.tif") for k in range(3)]
    matrix, origin = place(lines[0])
    # Positions of a flight line's pixels in the landscape, which is flight line 0 and its surroundings.
    succeed(run("gdal_hsi_synth", "-q", "-size", 260, 260, 12, "-seed", 4, "-snr", "inf", "-corner", -100, -80, tmp_path / "land.bil"))
    land = read(tmp_path / "land.bil")
    for path, data, light in zip(lines, datas, (1, 1, 0.7)):
        own, start = place(path)
        rows, cols = np.mgrid[0:90, 0:70]
        where = own @ np.stack([cols.ravel() + 0.5, rows.ravel() + 0.5]) + start[:, None]
        column = np.floor((where[0] - origin[0]) / 30 + 1e-9).astype(int) + 100
        row = np.floor((origin[1] - where[1]) / 30 + 1e-9).astype(int) + 80
        np.testing.assert_allclose(data.reshape(12, -1), light * land[:, row, column], rtol=1e-5)
    result = json.loads(succeed(run("gdal_hsi_compare", "-json", "-mosaic", "-with", lines[2], *lines[:2])).out)
    pairs = {(p["a"], p["b"]): p for p in result["pairs"]}
    assert set(pairs) == {(str(lines[0]), str(lines[1])), (str(lines[0]), str(lines[2])), (str(lines[1]), str(lines[2]))}
    grid_files, grid_datas = lines, datas
    for (a, b) in ((0, 1), (0, 2), (1, 2)):
        good, nrmse, sad = expected(grid_files, grid_datas, a, b, ((origin[0] - 300 * 30, origin[1] + 300 * 30), 30, 800, 800))
        pair = pairs[str(lines[a]), str(lines[b])]
        assert pair["pixels"] == good.sum()
        assert pair["metrics"]["sad"]["mean"] == pytest.approx(sad.mean(), rel=1e-4)
        assert pair["metrics"]["nrmse"]["mean"] == pytest.approx(nrmse.mean(), rel=1e-4)
    assert pairs[str(lines[0]), str(lines[2])]["metrics"]["nrmse"]["mean"] > 0.3
    assert (truths[0] > 0).all()


def test_a_line_has_noise_of_its_own(tmp_path):
    made = []
    for corner in ((0, 0), (0, 10)):
        path = tmp_path / f"n{corner[1]}.bil"
        succeed(run("gdal_hsi_synth", "-q", "-size", 40, 50, 6, "-snr", 20, "-corner", *corner, path))
        made.append(read(path))
    quiet = tmp_path / "quiet.bil"
    succeed(run("gdal_hsi_synth", "-q", "-size", 40, 50, 6, "-snr", "inf", "-corner", 0, 0, quiet))
    noise = made[0] - read(quiet)
    other = made[1][:, :40] - read(quiet)[:, 10:]
    for b in range(6):
        snr = 20 * np.log10(np.sqrt((read(quiet)[b] ** 2).mean()) / noise[b].std())
        assert abs(snr - 20) < 1, snr
        assert abs(np.corrcoef(noise[b][10:].ravel(), other[b].ravel())[0, 1]) < 0.1


@pytest.mark.parametrize("words, code, message", [
    (["-with", "far.img", "line.img", "line2.img"], 1, "another SRS"), (["line.img", "nowhere.img"], 1, "has no geotransform"),
    (["line.img", "apart.img"], 1, "no pixel is valid in two of the 2 scenes"), (["line.img", "line.img"], 2, "given twice"),
    (["-with", "gone.img", "line.img", "line2.img"], 1, "gone.img"), (["-metric", "ssim", "line.img", "line2.img"], 2, "-metric ssim"),
    (["-band", "1:2", "line.img", "line2.img"], 2, "-mosaic cannot be used with -band"), (["line.img", "other.img"], 1, "have no match"),
    (["-map", "big.tif", "-memory", "16MB", "line.img", "distant.img"], 1, "more than a quarter of -memory"),
    (["-map", "big.tif", "-memory", "16MB", "-with", "line2.img", "line.img", "distant.img"], 1, "(25x20 without distant.img)"),
    (["line.img", "degrees.img"], 1, "degrees.img is more than 2^30 pixels from line.img")])
def test_what_is_refused(tmp_path, words, code, message):
    data = np.round(cube(20, 20, BANDS, seed=1, scale=1000.0))
    for name, gt, epsg, nm in (("line", (0, 20, 0, 0, 0, -20), 32616, WAVELENGTHS), ("line2", (100, 20, 0, 0, 0, -20), 32616, WAVELENGTHS),
                               ("far", (100, 20, 0, 0, 0, -20), 32617, WAVELENGTHS), ("nowhere", None, None, WAVELENGTHS),
                               ("apart", (4000, 20, 0, 0, 0, -20), 32616, WAVELENGTHS),
                               ("other", (100, 20, 0, 0, 0, -20), 32616, [w + 1000 for w in WAVELENGTHS])):
        write_scene(tmp_path / f"{name}.img", data, dtype="i2", wavelengths=nm, geotransform=gt, epsg=epsg)
    write_scene(tmp_path / "distant.img", np.round(cube(20, 20, BANDS, seed=1, scale=1000.0)), dtype="i2", wavelengths=WAVELENGTHS,
                geotransform=(0, 2000, 0, 0, 0, -2000))
    write_scene(tmp_path / "degrees.img", data, dtype="i2", wavelengths=WAVELENGTHS, geotransform=(5e12, 20, 0, 4e12, 0, -20))
    with assert_untouched(tmp_path):
        result = run("gdal_hsi_compare", "-mosaic", *words, cwd=tmp_path)
    assert result.code == code and message in first_error(result), result.err
    assert "-with" not in first_error(result) or "-with" in words
    assert run("gdal_hsi_compare", "-with", "line2.img", "line.img", "line2.img", cwd=tmp_path).code == 2


def test_limits_hold_for_every_pair(tmp_path, three):
    files, _ = three
    result = run("gdal_hsi_compare", "-q", "-mosaic", "-with", files[2], "-mean-sad", 0.001, "-map", tmp_path / "m.tif", *files[:2])
    assert result.code == 1 and "the mean of sad is" in result.err and (tmp_path / "m.tif").exists()


# Pictures
# ---------------------------------------------------------------------------------------------------------------------


def picture(path):
    return gdal.Open(str(path)).ReadAsArray()


def test_pictures_share_a_stretch(tmp_path):
    """Next to the other flight line the dark one is shown dark; alone it is not."""
    data = cube(40, 30, 4, seed=1)
    for name, values in (("a", data), ("b", data * 0.5)):
        write_scene(tmp_path / f"{name}.img", values, dtype="f4", wavelengths=[450, 550, 650, 800])
    for name, options in (("a", []), ("b", []), ("like", ["-like", "a.img"])):
        succeed(run("gdal_hsi_quicklook", "-q", *options, "a.img" if name == "a" else "b.img", f"{name}.png", cwd=tmp_path))
    assert (picture(tmp_path / "a.png") == picture(tmp_path / "b.png")).all()
    low, high = np.percentile(data[2], 2), np.percentile(data[2], 98)
    want = np.round(255 * np.clip((0.5 * data[2] - low) / (high - low), 0, 1) ** 0.6)
    shown = picture(tmp_path / "like.png")[0][::30, ::30]  # enlarged by 30
    assert shown.shape == want.shape and np.abs(shown - want).max() <= 1
    # Bands match by wavelength, at any position, with any other bands.
    write_scene(tmp_path / "turned.img", np.concatenate([data[::-1], data[:1]]), dtype="f4", wavelengths=[800, 650, 550, 450, 2000])
    succeed(run("gdal_hsi_quicklook", "-q", "-like", "turned.img", "b.img", "turned.png", cwd=tmp_path))
    assert (picture(tmp_path / "turned.png") == picture(tmp_path / "like.png")).all()
    write_scene(tmp_path / "empty.img", np.full_like(data, np.nan), dtype="f4", wavelengths=[450, 550, 650, 800])
    write_scene(tmp_path / "other.img", data, dtype="f4", wavelengths=[1450, 1550, 1650, 1800])
    write_scene(tmp_path / "scaled.tif", data, driver="GTiff", dtype="f4", wavelengths=[450, 550, 650, 800])
    dataset = gdal.Open(str(tmp_path / "scaled.tif"), gdal.GA_Update)
    for b in range(4):
        dataset.GetRasterBand(b + 1).SetScale(0.1)
    dataset = None
    for name, message in (("empty.img", "no displayed pixel has a value"), ("other.img", "has other bands than"),
                          ("scaled.tif", "its values have scale 0.1")):
        refuse(1, message, "gdal_hsi_quicklook", "-q", "-like", name, "b.img", "no.png", cwd=tmp_path, untouched=[tmp_path])


def test_maps_share_colours_by_name(tmp_path):
    maps = {}
    for name, names, colours in (("first", ["", "wheat", "corn"], {1: (10, 200, 10), 2: (240, 230, 20)}),
                                 ("second", ["", "corn", "soil", "wheat"], {1: (1, 2, 3), 2: (90, 80, 70), 3: (4, 5, 6)})):
        values = (np.arange(30)[None, :] // 10 + np.zeros((20, 1))).astype(int) % len(names[1:]) + 1
        write_scene(tmp_path / f"{name}.tif", values[None], driver="GTiff", dtype="u1")
        table = gdal.ColorTable()
        for k, colour in colours.items():
            table.SetColorEntry(k, colour + (255,))
        dataset = gdal.Open(str(tmp_path / f"{name}.tif"), gdal.GA_Update)
        dataset.GetRasterBand(1).SetColorTable(table)
        del dataset
        dataset = gdal.Open(str(tmp_path / f"{name}.tif"), gdal.GA_Update)
        dataset.GetRasterBand(1).SetCategoryNames(names)
        del dataset
        maps[name] = values
    succeed(run("gdal_hsi_quicklook", "-q", "-no-legend", "-like", "first.tif", "second.tif", "p.png", cwd=tmp_path))
    shown = picture(tmp_path / "p.png")
    step = shown.shape[2] // 30
    shown = shown[:, ::step, ::step]
    for value, colour in ((1, (240, 230, 20)), (2, (90, 80, 70)), (3, (10, 200, 10))):
        assert (shown[:, maps["second"] == value].T == colour).all()
    write_scene(tmp_path / "s.img", cube(30, 20, 4), dtype="f4")
    refuse(1, "-like s.img is a scene", "gdal_hsi_quicklook", "-like", "s.img", "second.tif", "q.png", cwd=tmp_path, untouched=[tmp_path])


def known(path):
    """Returns wavelengths and bad bands of a file, and the messages."""
    result = run("gdal_hsi_info", "-json", path)
    facts = json.loads(succeed(result).out)
    return facts["wavelengths_nm"], facts["fwhm_nm"], result.err


def tiles(folder, names, nm, shift=0.0):
    for k, name in enumerate(names):
        data = np.random.default_rng(k).integers(1, 900, (len(nm), 8, 10)).astype("u2")
        write_scene(folder / name, data, dtype="u2", wavelengths=[w + shift * k for w in nm], fwhm=[9.0] * len(nm),
                    geotransform=(500000 + 200 * k, 20, 0, 4480000, 0, -20))
    return [str(folder / name) for name in names]


@pytest.mark.quick
def test_a_virtual_mosaic_has_the_wavelengths_of_its_sources(tmp_path):
    nm = [450.0, 460.5, 500.0, 470.0]
    files = tiles(tmp_path, ["a.img", "b.img"], nm)
    gdal.BuildVRT(str(tmp_path / "m.vrt"), files).FlushCache()
    gdal.BuildVRT(str(tmp_path / "outer.vrt"), [str(tmp_path / "m.vrt")]).FlushCache()
    gdal.Warp(str(tmp_path / "w.vrt"), str(tmp_path / "m.vrt"), format="VRT", xRes=30, yRes=30).FlushCache()
    assert gdal.Open(str(tmp_path / "m.vrt")).GetRasterBand(1).GetMetadataItem("wavelength") is None
    for name in ("m.vrt", "outer.vrt", "w.vrt"):
        assert known(tmp_path / name)[:2] == (nm, [9.0] * 4), name
    # A result keeps them.
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-ws", 3, tmp_path / "m.vrt", tmp_path / "s.tif"))
    assert known(tmp_path / "s.tif")[0] == nm


def test_a_virtual_mosaic_of_single_bands(tmp_path):
    files = tiles(tmp_path, ["a.img"], [450.0, 460.5, 500.0])
    bands = []
    for b in (3, 1):
        bands.append(str(tmp_path / f"{b}.vrt"))
        gdal.Translate(bands[-1], files[0], bandList=[b]).FlushCache()
    gdal.BuildVRT(str(tmp_path / "m.vrt"), bands, separate=True).FlushCache()
    assert known(tmp_path / "m.vrt")[0] == [500.0, 450.0]


def test_a_virtual_mosaic_of_other_wavelengths(tmp_path):
    gdal.BuildVRT(str(tmp_path / "m.vrt"), tiles(tmp_path, ["a.img", "b.img"], [450.0, 460.0], 5)).FlushCache()
    found, _, said = known(tmp_path / "m.vrt")
    assert found in ([], [None, None]) and "the sources of the mosaic have different wavelengths at band 1" in said
    plain = tiles(tmp_path, ["c.img"], [450.0, 460.0])[0]
    gdal.BuildVRT(str(tmp_path / "d.vrt"), [plain]).FlushCache()
    text = (tmp_path / "d.vrt").read_text().replace('<VRTRasterBand dataType="UInt16" band="1"', '<VRTRasterBand dataType="UInt16" band="1" subClass="VRTDerivedRasterBand"')
    (tmp_path / "d.vrt").write_text(text.replace("</VRTRasterBand>", "<PixelFunctionType>sqrt</PixelFunctionType></VRTRasterBand>", 1))
    assert known(tmp_path / "d.vrt")[0] in ([], [None, None])  # the result of a function of bands has no wavelengths
    (tmp_path / "c.img").unlink()
    gdal.BuildVRT(str(tmp_path / "e.vrt"), [str(tmp_path / "a.img")]).FlushCache()
    (tmp_path / "a.img").unlink()
    assert run("gdal_hsi_info", "-json", tmp_path / "e.vrt").code in (0, 1)


@pytest.mark.parametrize("driver", ["GTiff", "PNG"])
def test_the_advice_on_wavelengths_works(tmp_path, driver):
    """gdal_edit.py can add wavelengths to a file of any format."""
    data = np.random.default_rng(1).integers(1, 250, (3, 8, 10)).astype("u1")
    write_scene(tmp_path / "x.tif", data, "GTiff", "u1")
    path = tmp_path / ("x.png" if driver == "PNG" else "y.tif")
    gdal.Translate(str(path), str(tmp_path / "x.tif"), format=driver).FlushCache()
    result = run("gdal_hsi_features", path, tmp_path / "f.tif")
    assert result.code == 1 and "gdal_edit.py -mo wavelength=450,460,470 -mo wavelength_units=nm" in result.err
    dataset = gdal.Open(str(path), gdal.GA_Update if driver == "GTiff" else gdal.GA_ReadOnly)  # as gdal_edit.py does it
    dataset.SetMetadata({**dataset.GetMetadata(), "wavelength": "450,460,470", "wavelength_units": "nm"})
    dataset = None
    assert known(path)[0] == [450.0, 460.0, 470.0]
