# SPDX-License-Identifier: MIT
"""Libraries, models and rasters from a scene apply to this scene, even if bands without a value were omitted and
wavelengths are unknown: they store the bands' numbers. Shares of known spectra, computed with numpy, must be recovered;
confusing a band with its neighbour would give other shares."""

import json
import re

import numpy as np
import pytest
from osgeo import gdal

from conftest import assert_untouched, first_error, read, run, succeed, write_scene

BANDS, LINES, SAMPLES = 20, 12, 10
EMPTY = [4, 11, 12]  # 0-based
KEPT = [b for b in range(BANDS) if b not in EMPTY]
NUMBERS = [b + 1 for b in KEPT]
RANDOM = np.random.default_rng(43)
SPECTRA = RANDOM.uniform(100, 3000, (3, BANDS))
SHARES = RANDOM.dirichlet(np.full(3, 0.4), LINES * SAMPLES)
SHARES[[5, 47, 90]] = np.eye(3)  # pure pixels
DATA = (SHARES @ SPECTRA).T.reshape(BANDS, LINES, SAMPLES)
NODATA = -32768


def with_holes(data, empty):
    data = data.copy()
    data[empty] = NODATA
    return data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbers")
    write_scene(folder / "s.tif", with_holes(DATA, EMPTY), driver="GTiff", nodata=NODATA)
    write_scene(folder / "full.tif", DATA, driver="GTiff", nodata=NODATA)
    write_scene(folder / "s.img", with_holes(DATA, EMPTY), driver="ENVI", nodata=NODATA)
    for extension in ("sli", "csv"):
        succeed(run("gdal_hsi_endmembers", "-q", "-t", "3", "-spectra", folder / f"em.{extension}", folder / "s.tif",
                    folder / f"em_{extension}.gpkg"))
    succeed(run("gdal_hsi_spp", "-q", folder / "s.tif", folder / "y.tif"))
    succeed(run("gdal_hsi_spp", "-q", "-of", "ENVI", folder / "s.tif", folder / "y.img"))
    return folder


def in_any_order(shares):
    """Returns the shares in the order of SHARES' columns, identified by the pure pixels."""
    flat = shares.reshape(3, -1)
    return np.array([flat[np.argmax(flat[:, pixel])] for pixel in (5, 47, 90)]).T


def source_bands(path):
    dataset = gdal.Open(str(path))
    return [dataset.GetRasterBand(k + 1).GetMetadataItem("HSI_SOURCE_BAND") for k in range(dataset.RasterCount)]


def test_libraries_tell_the_numbers_of_their_bands(folder):
    header = (folder / "em.hdr").read_text()
    numbers = re.search(r"band numbers\s*=\s*\{([^}]*)\}", header).group(1)
    assert [int(n) for n in numbers.split(",")] == NUMBERS
    lines = (folder / "em.csv").read_text().splitlines()[1:]
    assert [int(line.split(",")[0]) for line in lines] == NUMBERS


@pytest.mark.parametrize("library", ["em.sli", "em.csv"])
@pytest.mark.parametrize("scene", ["s.tif", "full.tif", "s.img"])
def test_own_endmembers_unmix_the_scene(folder, tmp_path, library, scene):
    succeed(run("gdal_hsi_unmix", "-q", folder / scene, folder / library, tmp_path / "a.tif"))
    assert np.allclose(in_any_order(read(tmp_path / "a.tif")), SHARES, atol=1e-4)


@pytest.mark.parametrize("library", ["em.sli", "em.csv"])
def test_chosen_bands_are_found_by_number(folder, tmp_path, library):
    result = succeed(run("gdal_hsi_unmix", "-b", "20,3,2,7-13", folder / "full.tif", folder / library, tmp_path / "a.tif"))
    assert "over 8 of 10 bands" in result.out
    assert np.allclose(in_any_order(read(tmp_path / "a.tif")), SHARES, atol=1e-4)


@pytest.mark.parametrize("extension", ["sli", "csv"])
def test_a_library_of_bands_in_another_order_fits(folder, tmp_path, extension):
    library = tmp_path / f"em.{extension}"
    succeed(run("gdal_hsi_endmembers", "-q", "-t", "3", "-b", "15,2,9,3,20", "-spectra", library, folder / "full.tif",
                tmp_path / "em.gpkg"))
    succeed(run("gdal_hsi_unmix", "-q", folder / "full.tif", library, tmp_path / "a.tif"))
    assert np.allclose(in_any_order(read(tmp_path / "a.tif")), SHARES, atol=1e-4)


def test_a_library_of_the_whole_file_fits_some_of_its_bands(folder, tmp_path):
    np.savetxt(tmp_path / "all.txt", SPECTRA.T)
    succeed(run("gdal_hsi_unmix", "-q", "-b", "3,9,10,17-20", folder / "s.tif", tmp_path / "all.txt", tmp_path / "a.tif"))
    assert np.allclose(read(tmp_path / "a.tif").reshape(3, -1).T, SHARES, atol=1e-4)


def test_targets_are_detected_by_number(folder, tmp_path):
    for scene in ("s.tif", "full.tif"):
        succeed(run("gdal_hsi_detect", "-q", "-overwrite", "-method", "sam", "-target", folder / "em.sli", folder / scene,
                    tmp_path / "d.tif"))
        pixels = DATA[KEPT].reshape(len(KEPT), -1)
        best = read(tmp_path / "d.tif").reshape(3, -1).min(axis=0)
        cosine = (SPECTRA[:, KEPT] @ pixels) / np.linalg.norm(SPECTRA[:, KEPT], axis=1)[:, None] / np.linalg.norm(pixels, axis=0)
        assert np.allclose(best, np.arccos(np.clip(cosine, -1, 1)).min(axis=0), atol=2e-3)


def test_profiles_tell_the_numbers_of_their_bands(folder, tmp_path):
    labels = np.zeros((1, LINES, SAMPLES), np.uint8)
    labels.reshape(-1)[[5, 47, 90]] = [1, 2, 3]
    write_scene(tmp_path / "labels.tif", labels, driver="GTiff", dtype="u1")
    succeed(run("gdal_hsi_spectra", "-q", "-b", "1-4,6-11,14-20", folder / "s.tif", tmp_path / "labels.tif",
                tmp_path / "p.geojson"))
    profile = json.loads((tmp_path / "p.geojson").read_text())["features"][0]["properties"]["profiles"]
    assert profile["x"] == NUMBERS and profile["xUnit"] == "Band Number"
    assert np.allclose(profile["y"], SPECTRA[0, KEPT], rtol=1e-5)
    succeed(run("gdal_hsi_unmix", "-q", folder / "full.tif", tmp_path / "p.geojson", tmp_path / "a.tif"))
    assert np.allclose(read(tmp_path / "a.tif").reshape(3, -1).T, SHARES, atol=1e-4)


def test_rasters_with_some_of_the_bands_tell_their_numbers(folder, tmp_path):
    assert source_bands(folder / "y.tif") == [str(n) for n in NUMBERS]
    header = (folder / "y.hdr").read_text()
    assert [int(n) for n in re.search(r"band numbers\s*=\s*\{([^}]*)\}", header).group(1).split(",")] == NUMBERS
    beside = folder / "y.img.aux.xml"
    assert not beside.exists() or "HSI_SOURCE_BAND" not in beside.read_text()
    # From a copy of some of them.
    succeed(run("gdal_hsi_spp", "-q", "-b", "2,5-8", folder / "y.img", tmp_path / "z.tif"))
    assert source_bands(tmp_path / "z.tif") == [str(NUMBERS[k]) for k in (1, 4, 5, 6, 7)]
    # GDAL's own tools copy the items of bands.
    gdal.Translate(str(tmp_path / "t.tif"), str(folder / "y.tif"), bandList=[3, 1])
    assert source_bands(tmp_path / "t.tif") == [str(NUMBERS[2]), str(NUMBERS[0])]


def test_all_bands_or_known_wavelengths_need_no_numbers(folder, tmp_path):
    succeed(run("gdal_hsi_spp", "-q", folder / "full.tif", tmp_path / "all.tif"))
    assert source_bands(tmp_path / "all.tif") == [None] * BANDS
    write_scene(tmp_path / "nm.tif", with_holes(DATA, EMPTY), driver="GTiff", nodata=NODATA,
                wavelengths=list(np.linspace(450, 2400, BANDS)))
    succeed(run("gdal_hsi_spp", "-q", tmp_path / "nm.tif", tmp_path / "y.tif"))
    assert source_bands(tmp_path / "y.tif") == [None] * len(KEPT)
    # Components are not bands of the scene.
    succeed(run("gdal_hsi_pca", "-q", "-nc", "3", "-of", "ENVI", folder / "y.img", tmp_path / "pc.img"))
    assert "band numbers" not in (tmp_path / "pc.hdr").read_text()


@pytest.mark.parametrize("copy", ["y.tif", "y.img"])
def test_a_library_fits_a_preprocessed_copy(folder, tmp_path, copy):
    """Uses a library of the scene and a library of some bands, each with a copy that has the remaining bands."""
    for k, bands in enumerate((None, "1-4,8-20")):
        library = tmp_path / f"em{k}.sli"
        succeed(run("gdal_hsi_endmembers", "-q", "-t", "3", *(["-b", bands] if bands else []), "-spectra", library,
                    folder / "full.tif", tmp_path / f"em{k}.gpkg"))
        succeed(run("gdal_hsi_unmix", "-q", "-method", "ucls", folder / copy, library, tmp_path / f"a{k}.tif"))
        used = [n for n in NUMBERS if bands is None or n <= 4 or n >= 8]
        own = read(folder / copy)[[NUMBERS.index(n) for n in used]].reshape(len(used), -1)
        want = np.linalg.lstsq(SPECTRA[:, [n - 1 for n in used]].T, own, rcond=None)[0]
        got = read(tmp_path / f"a{k}.tif").reshape(3, -1)
        order = [int(np.argmin(np.abs(got - row).sum(axis=1))) for row in want]
        assert sorted(order) == [0, 1, 2] and np.allclose(got[order], want, atol=1e-3)


def test_models_find_their_bands_by_number(folder, tmp_path):
    """Applies a model of the scene with holes to the scene without holes, and to a copy that lacks other bands."""
    model = tmp_path / "m.json"
    succeed(run("gdal_hsi_pca", "-q", "-nc", "3", "-model", model, folder / "s.tif", tmp_path / "a.tif"))
    assert json.loads(model.read_text())["bands"] == NUMBERS
    succeed(run("gdal_hsi_pca", "-q", "-apply", model, folder / "full.tif", tmp_path / "b.tif"))
    assert np.allclose(read(tmp_path / "a.tif"), read(tmp_path / "b.tif"), rtol=1e-5, atol=1e-2)
    # A model of the copy also stores the scene's numbers.
    succeed(run("gdal_hsi_pca", "-q", "-nc", "3", "-model", tmp_path / "y.json", folder / "y.tif", tmp_path / "c.tif"))
    assert json.loads((tmp_path / "y.json").read_text())["bands"] == NUMBERS
    succeed(run("gdal_hsi_pca", "-q", "-apply", tmp_path / "y.json", folder / "y.img", tmp_path / "d.tif"))
    assert np.allclose(read(tmp_path / "c.tif"), read(tmp_path / "d.tif"), rtol=1e-5, atol=1e-2)
    # An equal number of bands, but different ones.
    write_scene(tmp_path / "other.tif", with_holes(DATA, [0, 1, 2]), driver="GTiff", nodata=NODATA)
    succeed(run("gdal_hsi_spp", "-q", tmp_path / "other.tif", tmp_path / "other_y.tif"))
    refused = run("gdal_hsi_pca", "-q", "-apply", model, tmp_path / "other_y.tif", tmp_path / "e.tif")
    assert refused.code == 1 and "its band 1 is missing" in first_error(refused)
    assert "-any-wavelengths" in refused.err and not (tmp_path / "e.tif").exists()
    succeed(run("gdal_hsi_pca", "-q", "-any-wavelengths", "-apply", model, tmp_path / "other_y.tif", tmp_path / "e.tif"))


def test_the_inverse_of_a_model_tells_its_bands(folder, tmp_path):
    succeed(run("gdal_hsi_pca", "-q", "-nc", "3", "-model", tmp_path / "m.json", folder / "s.tif", tmp_path / "c.tif"))
    succeed(run("gdal_hsi_pca", "-q", "-inverse", "-apply", tmp_path / "m.json", tmp_path / "c.tif", tmp_path / "back.tif"))
    assert source_bands(tmp_path / "back.tif") == [str(n) for n in NUMBERS]
    succeed(run("gdal_hsi_compare", "-q", "-max-rmse", "1", folder / "s.tif", tmp_path / "back.tif"))


def compared(*args):
    return json.loads(succeed(run("gdal_hsi_compare", "-json", *args)).out)


@pytest.mark.parametrize("copy", ["y.tif", "y.img"])
def test_compare_finds_the_bands_that_are_left(folder, copy):
    for first, second in ((folder / "s.tif", folder / copy), (folder / copy, folder / "s.tif")):
        got = compared(first, second)
        a, b = (DATA[KEPT], read(folder / copy)) if first.name == "s.tif" else (read(folder / copy), DATA[KEPT])
        assert got["pixels"]["compared"] == LINES * SAMPLES
        rmse = np.sqrt(((a - b) ** 2).mean(axis=0))
        assert got["metrics"]["rmse"]["mean"] == pytest.approx(rmse.mean(), rel=1e-6)
    got = compared(folder / "s.tif", folder / copy)
    assert got["bands_a"] == NUMBERS and got["bands_b"] == list(range(1, len(KEPT) + 1))


def test_compare_takes_bands_of_either_file_apart(folder, tmp_path):
    got = compared("-b", "1-3", "-other-b", "4,2,8", folder / "full.tif", folder / "full.tif")
    assert (got["bands_a"], got["bands_b"]) == ([1, 2, 3], [4, 2, 8])
    rmse = np.sqrt(((DATA[[0, 1, 2]] - DATA[[3, 1, 7]]) ** 2).mean(axis=0))
    assert got["metrics"]["rmse"]["mean"] == pytest.approx(rmse.mean(), rel=1e-6)
    for args, message in ((("-other-b", "4,x"), "-other-b: "), (("-other-b", "2,2"), "-other-b: band 2 is named twice"),
                          (("-other-b", "21"), "-other-b 21: "), (("-band", "1:2", "-other-b", "3"), "-other-b")):
        with assert_untouched(folder):
            refused = run("gdal_hsi_compare", *args, folder / "full.tif", folder / "full.tif")
        assert refused.code == 2 and message in first_error(refused)
    # Different numbers of bands, without a way to match them.
    short = write_scene(tmp_path / "short.tif", DATA[KEPT], driver="GTiff")
    refused = run("gdal_hsi_compare", folder / "full.tif", short)
    assert refused.code == 1 and "-other-b" in refused.err
    got = compared("-b", ",".join(map(str, NUMBERS)), "-other-b", f"1-{len(KEPT)}", folder / "full.tif", short)
    assert got["metrics"]["rmse"]["maximum"] == pytest.approx(0, abs=1e-3)


def old_csv(path, spectra):
    """Returns the older form: lines are counted, for any bands."""
    lines = ["band,wavelength,a,b,c"] + [f"{k + 1},,{','.join(f'{v:.9g}' for v in row)}" for k, row in enumerate(spectra.T)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_table_whose_lines_are_counted_is_not_taken_for_the_first_bands(folder, tmp_path):
    library = old_csv(tmp_path / "old.csv", SPECTRA[:, KEPT])
    refused = run("gdal_hsi_unmix", folder / "full.tif", library, tmp_path / "a.tif")
    assert refused.code == 1 and "no wavelengths and no band numbers" in first_error(refused) and "-b" in refused.err
    assert not (tmp_path / "a.tif").exists()
    # It fits the bands from which it was made, and the scene whose other bands are empty.
    for args, scene in ((("-b", ",".join(map(str, NUMBERS))), "full.tif"), ((), "s.tif")):
        succeed(run("gdal_hsi_unmix", "-q", "-overwrite", *args, folder / scene, library, tmp_path / "a.tif"))
        assert np.allclose(read(tmp_path / "a.tif").reshape(3, -1).T, SHARES, atol=1e-4)


@pytest.mark.parametrize("numbers", ["1,2,2", "0,1,2", "1,2", "1.5,2,3", "a,b,c", "1,2,99999999999"])
def test_numbers_that_are_none_count_for_nothing(tmp_path, numbers):
    scene = write_scene(tmp_path / "s.img", DATA[:3])
    header = tmp_path / "s.hdr"
    header.write_text(header.read_text() + f"band numbers = {{{numbers}}}\n")
    model = tmp_path / "m.json"
    succeed(run("gdal_hsi_pca", "-q", "-nc", "1", "-model", model, scene, tmp_path / "a.tif"))
    assert json.loads(model.read_text())["bands"] == [1, 2, 3]


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    """Returns four classes that differ in every band, more so in bands with higher numbers."""
    folder = tmp_path_factory.mktemp("classes")
    labels = np.kron(np.arange(1, 5).reshape(2, 2), np.ones((15, 15)))
    data = np.random.default_rng(18).normal(0, 1, (10, 30, 30)) + labels * np.arange(1, 11)[:, None, None]
    write_scene(folder / "s.tif", data, driver="GTiff")
    write_scene(folder / "labels.tif", labels[None], driver="GTiff", dtype="u1")
    write_scene(folder / "short.tif", data[[2, 6]], driver="GTiff")  # states nothing about its bands
    for name, bands in (("m", "3,7"), ("turned", "7,3")):
        succeed(run("gdal_hsi_svm_train", "-q", "-C", 10, "-gamma", 0.5, "-b", bands, folder / "s.tif", folder / "labels.tif",
                    folder / f"{name}.json"))
    for tool in ("pca", "mnf"):
        succeed(run(f"gdal_hsi_{tool}", "-q", "-b", "3,7,9", "-nc", 2, "-model", folder / f"{tool}.json", folder / "s.tif",
                    folder / f"{tool}.tif"))
    succeed(run("gdal_hsi_sahic", "-q", "-b", "3,7,9", "-model", folder / "sahic.json", folder / "s.tif",
                folder / "labels.tif", folder / "sahic.tif"))
    return folder


def other_bands(tool, folder, dst, *options):
    if tool == "svm_classify":
        return run("gdal_hsi_svm_classify", *options, folder / "s.tif", folder / "m.json", dst)
    labels = ["none"] if tool == "sahic" else []
    return run(f"gdal_hsi_{tool}", *options, "-apply", folder / f"{tool}.json", folder / "s.tif", *labels, dst)


@pytest.mark.parametrize("tool,bands,lost", [("svm_classify", "3,8", 7), ("svm_classify", "1,2", 3), ("pca", "1-3", 7),
                                             ("mnf", "7,8,9", 3), ("sahic", "1-3", 7)])
def test_models_refuse_other_bands_of_their_scene(classes, tmp_path, tool, bands, lost):
    refused = other_bands(tool, classes, tmp_path / "o.tif", "-b", bands)
    assert refused.code == 1 and f"its band {lost} is missing, by the band numbers" in first_error(refused)
    assert "with -b" in refused.err and not list(tmp_path.iterdir())
    succeed(other_bands(tool, classes, tmp_path / "o.tif", "-q", "-b", bands, "-any-wavelengths"))


@pytest.mark.parametrize("model", ["m.json", "turned.json"])
@pytest.mark.parametrize("bands", [[], ["-b", "3,7"], ["-b", "7,3"], ["-b", "9,7,3,1"]])
def test_models_find_their_bands_in_any_order(classes, tmp_path, model, bands):
    result = succeed(run("gdal_hsi_svm_classify", *bands, classes / "s.tif", classes / model, tmp_path / "o.tif"))
    assert (read(tmp_path / "o.tif") == read(classes / "labels.tif")).mean() > 0.99, result.out
    assert "matched by their order" not in result.out


def test_models_tell_what_their_numbers_count(classes, tmp_path):
    features = json.loads((classes / "m.json").read_text())["features"]
    assert features["bands"] == [3, 7] and features["file_bands"] == 10 and "numbers_told" not in features
    assert json.loads((classes / "pca.json").read_text())["file_bands"] == 10
    # One copy records the numbers; a copy that does not is used unchanged, with a warning.
    succeed(run("gdal_hsi_spp", "-q", "-ws", 3, "-b", "3,5,7-9", classes / "s.tif", tmp_path / "copy.tif"))
    succeed(run("gdal_hsi_pca", "-q", "-b", "2,3", "-nc", 2, "-model", tmp_path / "copy.json", tmp_path / "copy.tif",
                tmp_path / "p.tif"))
    document = json.loads((tmp_path / "copy.json").read_text())
    assert document["bands"] == [5, 7] and document["numbers_told"] is True and "file_bands" not in document
    refused = run("gdal_hsi_pca", "-b", "2,3", "-apply", tmp_path / "copy.json", classes / "s.tif", tmp_path / "q.tif")
    assert refused.code == 1 and "its band 5" in first_error(refused)
    result = succeed(run("gdal_hsi_svm_classify", classes / "short.tif", classes / "m.json", tmp_path / "o.tif"))
    assert (read(tmp_path / "o.tif") == read(classes / "labels.tif")).mean() > 0.99
    assert "matched by their order" in result.out


@pytest.mark.parametrize("member,value,message", [("file_bands", 6, "names band 7, but the last band is 6"), ("file_bands", 0, "'file_bands'"),
                                                  ("numbers_told", 1, "'numbers_told'")])
def test_damaged_numbers_of_a_model(classes, tmp_path, member, value, message):
    document = json.loads((classes / "m.json").read_text())
    document["features"][member] = value
    (tmp_path / "m.json").write_text(json.dumps(document))
    refused = run("gdal_hsi_svm_classify", classes / "s.tif", tmp_path / "m.json", tmp_path / "o.tif")
    assert refused.code == 1 and message in first_error(refused) and not (tmp_path / "o.tif").exists()


@pytest.mark.parametrize("kind", ["mean", "deviation", "every"])
@pytest.mark.parametrize("masked", [False, True])
def test_spectra_leave_out_bands_without_a_value(folder, tmp_path, kind, masked):
    labels = np.zeros((1, LINES, SAMPLES))
    labels.reshape(-1)[[5, 47, 90]] = [1, 2, 3]
    write_scene(tmp_path / "labels.tif", labels, driver="GTiff", dtype="u1")
    options = ["-mask", tmp_path / "labels.tif"] if masked else []
    result = succeed(run("gdal_hsi_spectra", "-kind", kind, *options, "-report", tmp_path / "r.json", folder / "s.tif",
                         tmp_path / "labels.tif", tmp_path / "o.csv"))
    lines = [line.split(",") for line in (tmp_path / "o.csv").read_text().splitlines()[1:]]
    assert [int(line[0]) for line in lines] == NUMBERS
    assert np.allclose([[float(v) for v in line[-3:]] for line in lines], SPECTRA[:, KEPT].T, rtol=1e-5)
    assert result.err.count("no valid value in band 5,12,13: left out") == 1 and "no valid spectrum" not in result.err
    assert json.loads((tmp_path / "r.json").read_text())["bands_without_values"] == [b + 1 for b in EMPTY]
    # Without a valid pixel it is still an error.
    write_scene(tmp_path / "none.tif", with_holes(DATA, list(range(BANDS))), driver="GTiff", nodata=NODATA)
    refused = run("gdal_hsi_spectra", "-kind", kind, tmp_path / "none.tif", tmp_path / "labels.tif", tmp_path / "n.csv")
    assert refused.code == 1 and "no labelled pixel has a valid spectrum" in first_error(refused)
    assert not (tmp_path / "n.csv").exists()


@pytest.mark.parametrize("tool", ["unmix", "detect"])
def test_numbers_of_a_library_and_a_file_that_has_others(tmp_path, folder, tool):
    """Uses bands 1 to 17 of the sensor with a library of 17 bands, the last of which is number 20."""
    write_scene(tmp_path / "first.tif", DATA[:17], driver="GTiff")
    write_scene(tmp_path / "more.tif", DATA[:18], driver="GTiff")
    words = ["gdal_hsi_unmix"] if tool == "unmix" else ["gdal_hsi_detect", "-method", "sam", "-target", folder / "em.sli"]
    library = [folder / "em.sli"] if tool == "unmix" else []
    order = "matched by their order, since the wavelengths or band numbers of scene and library cannot be compared"
    result = succeed(run(*words, tmp_path / "first.tif", *library, tmp_path / "o.tif"))
    assert order in result.out
    assert order not in succeed(run(*words, "-overwrite", folder / "s.tif", *library, tmp_path / "o.tif")).out
    result = run(*words, "-overwrite", tmp_path / "more.tif", *library, tmp_path / "o.tif")
    said = " ".join(result.err.split())
    assert result.code == 1 and "The library's band numbers, up to 20, belong to another file: the scene's file has 18 bands" in said
    assert "make the library again" not in said
    succeed(run(*words, "-overwrite", "-b", "1-17", tmp_path / "more.tif", *library, tmp_path / "o.tif"))
