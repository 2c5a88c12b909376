# SPDX-License-Identifier: MIT
"""Scenes whose bands have individual scales, used with libraries: spectra are scaled values, whether they come from the
scene, are written to a library or are read from one."""
import importlib.util
import json
import pathlib

import h5py
import numpy as np
import pytest
from conftest import gdal, read, run, succeed

SAMPLES, LINES, BANDS = 9, 12, 12
NM = [400 + 50.0 * b for b in range(BANDS)]


def product_files():
    path = pathlib.Path(__file__).resolve().parents[1] / "cli" / "product_files.py"
    spec = importlib.util.spec_from_file_location("product_files", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def reflectance(seed=5, bands=BANDS):
    """Makes mixtures of three spectra, each pure somewhere, and a small independent part."""
    random = np.random.default_rng(seed)
    pure = 0.1 + 0.5 * random.random((3, bands))
    share = random.dirichlet((1, 1, 1), (LINES, SAMPLES))
    share[3, 3], share[5, 6], share[8, 2] = np.eye(3)
    noise = 2e-3 * random.standard_normal((bands, LINES, SAMPLES))
    noise[:, 3, 3] = noise[:, 5, 6] = noise[:, 8, 2] = 0
    return np.moveaxis(share @ pure, 2, 0) + noise, pure


def write(path, values, scale, offset, dtype=gdal.GDT_Float32):
    """Writes a scene whose scaled values are `values`."""
    dataset = gdal.GetDriverByName("GTiff").Create(str(path), SAMPLES, LINES, BANDS, dtype)
    dataset.SetGeoTransform((0, 1, 0, 0, 0, -1))
    for b in range(BANDS):
        band = dataset.GetRasterBand(b + 1)
        band.WriteArray((values[b] - offset[b]) / scale[b])
        if scale[b] != 1:
            band.SetScale(scale[b])
        if offset[b] != 0:
            band.SetOffset(offset[b])
        band.SetMetadataItem("wavelength", str(NM[b]))
        band.SetMetadataItem("wavelength_units", "Nanometers")
    return path


SCALES = {"two": ([1e-4] * 5 + [2e-4] * 7, [0.0] * BANDS), "offsets": ([2e-4] * BANDS, [-0.1] * BANDS),
          "own": (list(1e-4 * (1 + np.arange(BANDS) / 3)), list(0.01 * np.arange(BANDS)))}
METHODS = ("sam", "sid", "mf", "cem", "ace")


def library(path, spectra, names):
    rows = [f"{NM[b]:.9g}," + ",".join(f"{x[b]:.9g}" for x in spectra) for b in range(BANDS)]
    path.write_text("wavelength_nm," + ",".join(names) + "\n" + "\n".join(rows) + "\n")
    return path


def outcome(folder, scene, lib, tool, *options):
    succeed(run(f"gdal_hsi_{tool}", "-q", "-overwrite", *options, *([scene, lib] if tool == "unmix" else ["-target", lib, scene]), folder / "o.tif"))
    return read(folder / "o.tif")


@pytest.mark.parametrize("scales", SCALES)
def test_a_library_meets_what_the_numbers_mean(tmp_path, scales):
    """As if the scene contained reflectance itself."""
    values, pure = reflectance()
    plain = write(tmp_path / "plain.tif", values, [1] * BANDS, [0] * BANDS)
    scaled = write(tmp_path / "scaled.tif", values, *SCALES[scales])
    lib = library(tmp_path / "lib.csv", pure, "abc")
    for tool, options in [("detect", ("-method", m)) for m in METHODS] + [("unmix", ("-method", m)) for m in ("ucls", "fcls")]:
        wanted, got = (outcome(tmp_path, s, lib, tool, *options) for s in (plain, scaled))
        np.testing.assert_allclose(got, wanted, rtol=2e-3, atol=2e-4, err_msg=f"{tool} {options}")
    angles = outcome(tmp_path, scaled, lib, "detect", "-method", "sam")
    x = values / np.sqrt((values**2).sum(0))
    y = pure / np.sqrt((pure**2).sum(1))[:, None]
    np.testing.assert_allclose(angles, np.arccos(np.clip(np.einsum("kb,byx->kyx", y, x), -1, 1)), atol=2e-3)
    # The same between pixels of the scene.
    succeed(run("gdal_hsi_detect", "-q", "-overwrite", "-method", "sam", "-target-pixel", 3, 3, scaled, tmp_path / "p.tif"))
    np.testing.assert_allclose(read(tmp_path / "p.tif")[0], angles[0], atol=1e-3)
    # On request, stored values are used unchanged.
    numbers = outcome(tmp_path, scaled, lib, "detect", "-method", "sam", "-any-scale")
    stored = gdal.Open(str(scaled)).ReadAsArray().astype("f8")
    x = stored / np.sqrt((stored**2).sum(0))
    np.testing.assert_allclose(numbers, np.arccos(np.clip(np.einsum("kb,byx->kyx", y, x), -1, 1)), atol=2e-3)


def test_one_factor_for_all_bands_is_left_to_the_library_scale(tmp_path):
    values, pure = reflectance()
    scene = write(tmp_path / "s.tif", values, [1e-4] * BANDS, [0] * BANDS)
    lib = library(tmp_path / "lib.csv", pure, "abc")
    result = succeed(run("gdal_hsi_unmix", "-overwrite", "-report", tmp_path / "r.json", "-library-scale", 10000, scene, lib, tmp_path / "o.tif"))
    assert "Values:" not in result.out and json.loads((tmp_path / "r.json").read_text())["scale_applied"] is False
    assert read(tmp_path / "o.tif")[0, 3, 3] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("form", ["csv", "sli"])
@pytest.mark.parametrize("way", ["spectra", "atdca", "endmembers"])
def test_spectra_of_such_a_scene_come_back_as_they_went(tmp_path, way, form):
    values, _ = reflectance()
    scale, offset = SCALES["own"]
    scene = write(tmp_path / "s.tif", values, scale, offset)
    lib = tmp_path / f"l.{form}"
    if way == "spectra":
        points = {"type": "FeatureCollection", "features": [
            {"type": "Feature", "properties": {"class": k + 1}, "geometry": {"type": "Point", "coordinates": [x + 0.5, -y - 0.5]}}
            for k, (y, x) in enumerate([(3, 3), (5, 6), (8, 2)])]}
        (tmp_path / "p.geojson").write_text(json.dumps(points))
        labels = gdal.GetDriverByName("GTiff").Create(str(tmp_path / "l.tif"), SAMPLES, LINES, 1, gdal.GDT_Byte)
        labels.SetGeoTransform((0, 1, 0, 0, 0, -1))
        marks = np.zeros((LINES, SAMPLES), "u1")
        marks[3, 3], marks[5, 6], marks[8, 2] = 1, 2, 3
        labels.GetRasterBand(1).WriteArray(marks)
        labels = None
        result = succeed(run("gdal_hsi_spectra", scene, tmp_path / "l.tif", lib))
        places = [(3, 3), (5, 6), (8, 2)]
    else:
        result = succeed(run(f"gdal_hsi_{way}", "-t", 3, "-spectra", lib, scene, tmp_path / "o.geojson"))
        found = [f["properties"] for f in json.loads((tmp_path / "o.geojson").read_text())["features"]]
        places = [(p["line"], p["sample"]) for p in found]
    assert "spectra are written as stored value * scale + offset" in result.out
    if form == "csv":
        written = np.genfromtxt(lib, delimiter=",", skip_header=1)[:, 2:].T
    else:
        written = np.fromfile(lib, "f4").reshape(-1, BANDS)
    for spectrum, (y, x) in zip(written, places):
        np.testing.assert_allclose(spectrum, values[:, y, x], rtol=1e-6)
    abundances = outcome(tmp_path, scene, lib, "unmix")
    angles = outcome(tmp_path, scene, lib, "detect", "-method", "sam")
    for k, (y, x) in enumerate(places):
        assert abundances[k, y, x] == pytest.approx(1, abs=1e-4) and angles[k, y, x] < 1e-3


def test_references_are_compared_with_what_the_numbers_mean(tmp_path):
    values, pure = reflectance()
    scene = write(tmp_path / "s.tif", values, *SCALES["own"])
    lib = library(tmp_path / "lib.csv", pure, "abc")
    result = succeed(run("gdal_hsi_atdca", "-q", "-t", 8, "-report", tmp_path / "r.json", "-reference", lib, scene, tmp_path / "o.gpkg"))
    found = json.loads((tmp_path / "r.json").read_text())
    targets = [(t["line"], t["sample"]) for t in found["targets"]]
    for k, best in enumerate(found["reference"]["best"]):
        angles = [np.degrees(np.arccos(min(1, pure[k] @ values[:, y, x] / np.linalg.norm(pure[k]) / np.linalg.norm(values[:, y, x])))) for y, x in targets]
        assert best["sad_degrees"] == pytest.approx(min(angles), abs=1e-3), result.out


def test_pixels_whose_numbers_are_all_zero_stay_invalid(tmp_path):
    values, pure = reflectance()
    scale, offset = SCALES["own"]
    values[:, 1, 1] = offset
    scene = write(tmp_path / "s.tif", values, scale, offset)
    got = outcome(tmp_path, scene, library(tmp_path / "lib.csv", pure, "abc"), "detect", "-method", "sam")
    assert np.all(np.isnan(got[:, 1, 1])) and np.isnan(got).sum() == 3


def test_a_virtual_output_of_such_a_scene_is_refused(tmp_path):
    values, pure = reflectance()
    scene = write(tmp_path / "s.tif", values, *SCALES["two"])
    lib = library(tmp_path / "lib.csv", pure, "abc")
    for tool, arguments in (("detect", ("-method", "sam", "-target", lib, scene)), ("unmix", (scene, lib))):
        result = run(f"gdal_hsi_{tool}", "-q", *arguments, tmp_path / "o.vrt")
        assert result.code == 2 and "a VRT computes from stored values" in result.err and not (tmp_path / "o.vrt").exists()
        succeed(run(f"gdal_hsi_{tool}", "-q", "-overwrite", "-any-scale", *arguments, tmp_path / "n.vrt"))


def test_prisma_with_a_scale_for_each_of_its_cubes(tmp_path):
    bands, vnir = 30, 10
    random = np.random.default_rng(5)
    refl = 0.1 + 0.3 * random.random((bands, LINES, SAMPLES))
    numbers = refl.copy()
    numbers[:vnir], numbers[vnir:] = refl[:vnir] / 0.9 * 65535, refl[vnir:] / 0.45 * 65535
    path = product_files().prisma(tmp_path, numbers.round())
    with h5py.File(path, "r+") as file:
        for name, most in (("Vnir", 0.9), ("Swir", 0.45)):
            file.attrs[f"L2Scale{name}Min"], file.attrs[f"L2Scale{name}Max"] = np.float32(0), np.float32(most)
    nm = np.concatenate([np.linspace(400, 1010, 10)[::-1], np.linspace(920, 2500, 20)[::-1]])
    kept = sorted((i for i in range(bands) if i not in (9, 29)), key=lambda i: nm[i])
    (tmp_path / "lib.csv").write_text("wavelength_nm,t\n" + "".join(f"{nm[i]:.9g},{refl[i, 3, 3]:.9g}\n" for i in kept))
    succeed(run("gdal_hsi_detect", "-q", "-method", "sam", "-target", tmp_path / "lib.csv", path, tmp_path / "o.tif"))
    angles = read(tmp_path / "o.tif")[0]
    x = refl[kept]
    cosine = (x * x[:, 3, 3][:, None, None]).sum(0) / np.sqrt((x**2).sum(0)) / np.linalg.norm(x[:, 3, 3])
    np.testing.assert_allclose(angles, np.arccos(np.clip(cosine, -1, 1)), atol=5e-4)
    assert angles[3, 3] < 1e-4


@pytest.mark.parametrize("scales", SCALES)
def test_a_model_of_values_meets_what_the_numbers_mean(tmp_path, scales):
    """A model of a scene without scales is a model of scaled values, for bands with individual scales."""
    values, _ = reflectance()
    plain = write(tmp_path / "plain.tif", values, [1] * BANDS, [0] * BANDS)
    scaled = write(tmp_path / "scaled.tif", values, *SCALES[scales])
    for tool in ("pca", "mnf"):
        succeed(run(f"gdal_hsi_{tool}", "-q", "-overwrite", "-nc", 3, "-model", tmp_path / "m.json", plain, tmp_path / "o.tif"))
        wanted = read(tmp_path / "o.tif")
        result = succeed(run(f"gdal_hsi_{tool}", "-overwrite", "-nc", 3, "-apply", tmp_path / "m.json", scaled, tmp_path / "o.tif"))
        assert "Warning" not in result.err and "the values are converted" in result.out
        np.testing.assert_allclose(read(tmp_path / "o.tif"), wanted, rtol=2e-3, atol=2e-4 * np.abs(wanted).max())
        numbers = run(f"gdal_hsi_{tool}", "-overwrite", "-any-scale", "-apply", tmp_path / "m.json", scaled, tmp_path / "o.tif")
        assert "far outside" in succeed(numbers).err


@pytest.mark.parametrize("gains, factor, said", [
    ([1, 2, 3, 1, 5], 10000, True), ([2] * 5, 10000, True), ([1] * 5, 10000, False), ([1e-4] * 5, 10000, False),
    ([1, 2, 3, 1, 5], 1, False)])
@pytest.mark.parametrize("bands", [None, "1,3", "4,2"])
def test_gains_beside_a_factor(tmp_path, gains, factor, said, bands):
    """One rule for all bands, whichever are read: only individual gains apply."""
    np.ones((5, 3, 4), "f4").tofile(tmp_path / "s.img")
    (tmp_path / "s.hdr").write_text(
        f"ENVI\nsamples = 4\nlines = 3\nbands = 5\nheader offset = 0\ndata type = 4\ninterleave = bsq\nbyte order = 0\n"
        f"reflectance scale factor = {factor}\ndata gain values = {{{', '.join(map(str, gains))}}}\n"
        "data offset values = {0, 0, 0, 0, 0}\n")
    right = np.array(gains, float) if any(g != 1 for g in gains) else np.full(5, 1 / factor)
    kept = [int(b) - 1 for b in bands.split(",")] if bands else range(5)
    options = ("-b", bands) if bands else ()
    found = json.loads(succeed(run("gdal_hsi_info", "-json", *options, tmp_path / "s.img")).out)["scale"]
    seen = np.ones(len(kept)) if not found else np.broadcast_to(found, len(kept))
    np.testing.assert_allclose(seen, right[list(kept)], rtol=1e-6)
    err = succeed(run("gdal_hsi_spp", "-ws", "3", *options, tmp_path / "s.img", tmp_path / "o.tif")).err
    if bands is None or not said:
        assert ("which is ignored" in err) == said, err


def integers(path, values, header_factor=None, dtype=gdal.GDT_Float32):
    """Makes an ENVI scene with or without a reflectance scale factor."""
    dataset = gdal.GetDriverByName("ENVI").Create(str(path), SAMPLES, LINES, BANDS, dtype)
    dataset.WriteArray(values)
    dataset = None
    if header_factor:
        with open(path.with_suffix(".hdr"), "a", encoding="utf-8") as header:
            header.write(f"reflectance scale factor = {header_factor}\n")
    return path


def test_compared_numbers_of_other_scales(tmp_path):
    """Stored values are compared unchanged. A warning names the factor that the files state, unless the values show
    that the other file has only lost it."""
    values, _ = reflectance()
    plain = integers(tmp_path / "a.img", values)
    scaled = integers(tmp_path / "b.img", np.round(values * 10000), 10000, gdal.GDT_Int16)
    lost = integers(tmp_path / "c.img", np.round(values * 10000), None, gdal.GDT_Int16)
    other = integers(tmp_path / "d.img", values * 100, 100)
    for first, second, factor in ((plain, scaled, "10000"), (scaled, plain, "0.0001"), (scaled, lost, None), (lost, scaled, None),
                                  (plain, lost, None), (scaled, scaled, None), (other, scaled, "100"), (scaled, other, "0.01")):
        result = succeed(run("gdal_hsi_compare", "-report", tmp_path / "r.json", first, second))
        assert ("state different scales" in result.err) == bool(factor), result.err
        if factor:
            assert f"equal quantities have values {factor} times as large in the second file" in result.err
            assert any("different scales" in w for w in json.loads((tmp_path / "r.json").read_text())["warnings"])
    result = succeed(run("gdal_hsi_compare", "-dry-run", plain, scaled))
    assert "different scales" not in result.err
