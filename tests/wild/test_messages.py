# SPDX-License-Identifier: MIT
"""Everyday mistakes: a library given as a scene, side files of outputs that no longer exist, noise from few pixels,
logs of both streams, a script that is restarted."""
import json
import os
import subprocess

import numpy as np
import pytest
from conftest import BIN, assert_untouched, first_error, read, refuse, run, succeed, write_utm_scene as write_scene
from label_files import write_labels
from osgeo import gdal
NM = [450.0, 550.0, 650.0, 850.0]


def spectra_of(count, seed=1):
    return np.random.default_rng(seed).uniform(0.01, 0.9, (count, len(NM))).astype("f4")


def write_sli(path, spectra, wavelengths=NM):
    spectra.astype("<f4").tofile(path)
    path.with_suffix(".hdr").write_text(
        f"ENVI\nsamples = {spectra.shape[1]}\nlines = {len(spectra)}\nbands = 1\nheader offset = 0\n"
        "file type = ENVI Spectral Library\ndata type = 4\ninterleave = bsq\nbyte order = 0\n"
        f"spectra names = {{ {', '.join(f'stone {k + 1}' for k in range(len(spectra)))} }}\n"
        + (f"wavelength units = Nanometers\nwavelength = {{ {', '.join(map(str, wavelengths))} }}\n" if wavelengths else ""))
    return path


def write_csv(path, spectra):
    lines = ["wavelength_nm," + ",".join(f"stone {k + 1}" for k in range(len(spectra)))]
    lines += [f"{nm}," + ",".join(repr(float(v)) for v in spectra[:, b]) for b, nm in enumerate(NM)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("name", ["lib.sli", "lib.csv"])
def test_a_library_is_listed(tmp_path, name):
    spectra = spectra_of(3)
    path = (write_sli if name.endswith("sli") else write_csv)(tmp_path / name, spectra)
    text = succeed(run("gdal_hsi_info", path)).out
    assert "spectral library" in text and "450 to 850 nm" in text
    for k, spectrum in enumerate(spectra):
        assert f"#{k + 1} stone {k + 1}: {spectrum.min():.6g} to {spectrum.max():.6g}" in text
    found = json.loads(succeed(run("gdal_hsi_info", "-json", "-report", tmp_path / "r.json", path)).out)
    assert found == json.loads((tmp_path / "r.json").read_text())["info"]
    assert found["kind"] == "spectral library" and found["bands"] == 4 and found["wavelengths_nm"] == NM
    assert found["extremes"] == pytest.approx([spectra.min(), spectra.max()])
    assert [s["name"] for s in found["spectra"]] == ["stone 1", "stone 2", "stone 3"]
    assert [s["minimum"] for s in found["spectra"]] == pytest.approx(spectra.min(1).tolist())
    assert [s["maximum"] for s in found["spectra"]] == pytest.approx(spectra.max(1).tolist())


def test_long_libraries_and_missing_values(tmp_path):
    spectra = spectra_of(30)
    spectra[4] = np.nan
    path = write_sli(tmp_path / "lib.sli", spectra, None)
    result = succeed(run("gdal_hsi_info", path))
    assert "#20 stone 20" in result.out and "#21" not in result.out and "10 more" in result.out
    assert "#5 stone 5: no value" in result.out and "Wavelengths:    unknown" in result.out and "missing" in result.err
    assert "#30 stone 30" in succeed(run("gdal_hsi_info", "-extremes", path)).out
    assert json.loads(succeed(run("gdal_hsi_info", "-json", path)).out)["spectra"][4] == {"name": "stone 5", "minimum": None, "maximum": None}


@pytest.mark.parametrize("name", ["lib.sli", "lib.csv"])
def test_a_library_is_no_scene(tmp_path, name):
    path = (write_sli if name.endswith("sli") else write_csv)(tmp_path / name, spectra_of(3))
    result = refuse(1, f"'{path}' is a spectral library (3 spectra of 4 bands), not a raster", "gdal_hsi_pca", path, tmp_path / "y.tif",
                    untouched=[tmp_path])
    assert "gdal_hsi_unmix" in result.err and "-target" in result.err


def test_other_texts_are_no_library(tmp_path):
    """A table without wavelengths may be anything."""
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "t.txt").write_text("hello\n")
    for name in "t.csv", "t.txt", "none.sli":
        result = run("gdal_hsi_info", tmp_path / name)
        assert result.code == 1 and "cannot open" in first_error(result) and "library" not in first_error(result)


@pytest.fixture
def scene(tmp_path):
    data = np.random.default_rng(2).uniform(100, 900, (5, 12, 12))
    return write_scene(tmp_path / "scene.tif", data, "GTiff")


@pytest.mark.parametrize("name, options, side", [("p.dat", ("-of", "ENVI"), "p.dat.aux.xml"), ("p.dat", ("-of", "ENVI"), "p.hdr"), ("p.tif", (), "p.tif.aux.xml")])
def test_side_files_of_outputs_that_are_gone(tmp_path, scene, name, options, side):
    arguments = "gdal_hsi_pca", "-nc", 2, *options, scene, tmp_path / name
    succeed(run(*arguments))
    want = read(tmp_path / name)
    (tmp_path / name).unlink()
    for file in tmp_path.glob("p.*"):
        if file.name != side:
            file.unlink()
    if not (tmp_path / side).exists():
        (tmp_path / side).write_text("<PAMDataset/>")
    with assert_untouched(tmp_path):
        result = run(*arguments)
    assert result.code == 1 and side in first_error(result) and "belonged to a file that is gone" in first_error(result)
    assert "-overwrite" in result.err
    succeed(run(*arguments, "-overwrite"))
    assert np.array_equal(read(tmp_path / name), want)


def test_a_header_that_another_scene_needs(tmp_path, scene):
    """The message names the scene that needs it, instead of advising to remove it."""
    succeed(run("gdal_hsi_pca", "-nc", 2, "-of", "ENVI", scene, tmp_path / "p.img"))
    for options in (), ("-overwrite",):
        refuse(1, f"is the header of '{tmp_path / 'p.img'}'", "gdal_hsi_pca", "-nc", 2, "-of", "ENVI", *options, scene, tmp_path / "p.dat",
               untouched=[tmp_path])


@pytest.mark.parametrize("gone, side", [(["s.sli"], "s.hdr"), (["t.shp", "t.dbf"], "t.shx")])
def test_libraries_and_points_that_are_gone(tmp_path, scene, gone, side):
    arguments = "gdal_hsi_atdca", "-t", 2, "-spectra", tmp_path / "s.sli", scene, tmp_path / "t.shp"
    succeed(run(*arguments))
    for file in [*tmp_path.glob("s.*"), *tmp_path.glob("t.*")]:
        if file.name in gone or file.stem != side[0]:
            file.unlink()
    result = refuse(1, f"{side}' already exists, but '{tmp_path / gone[0]}' does not", *arguments, untouched=[tmp_path])
    assert ("missing" in first_error(result) or "gone" in first_error(result)) and "-overwrite" in result.err
    succeed(run(*arguments, "-overwrite"))


def test_a_noise_that_few_pixels_tell(tmp_path):
    """Fewer pairs of neighbours than bands: the message states the reliability of eigenvalues, and methods that need no
    noise."""
    random = np.random.default_rng(3)
    few = write_scene(tmp_path / "few.tif", random.normal(500, 50, (20, 4, 4)), "GTiff")
    said = succeed(run("gdal_hsi_mnf", "-nc", 2, few, tmp_path / "y.tif")).err
    assert "12 pairs of neighbours for 20 bands" in said and "determines the eigenvalues and snr" in said and "gdal_hsi_pca" in said
    data = random.normal(500, 50, (5, 20, 20))
    many = write_scene(tmp_path / "many.tif", np.concatenate([data, data[:1]]), "GTiff")
    said = succeed(run("gdal_hsi_mnf", "-nc", 2, many, tmp_path / "z.tif")).err
    assert "singular" in said and "bands depend on others" in said and "gdal_hsi_pca" not in said
    said = succeed(run("gdal_hsi_mnf", "-nc", 2, "-b", "1,2,3", many, tmp_path / "w.tif")).err
    assert "singular" not in said


def test_messages_start_a_line_in_a_log_of_both_streams(tmp_path):
    """Also after a complete progress bar: more targets than the scene has."""
    mixed = np.random.default_rng(4).dirichlet(np.ones(3), (16, 16)) @ np.random.default_rng(5).uniform(100, 900, (3, 8))
    scene = write_scene(tmp_path / "s.tif", np.moveaxis(mixed, 2, 0), "GTiff")
    with open(tmp_path / "log", "wb") as log:
        code = subprocess.run([os.path.join(BIN, "gdal_hsi_atdca"), "-t", "8", str(scene), str(tmp_path / "t.gpkg")],
                              stdout=log, stderr=log, timeout=300).returncode
    text = (tmp_path / "log").read_text()
    assert code == 0 and "100 - done.\n" in text
    at = text.index("Warning:")
    assert at == 0 or text[at - 1] == "\n", text


def test_a_warning_comes_once(tmp_path):
    """The map without an SRS is combined with two files that have one."""
    labels = np.random.default_rng(6).integers(1, 3, (20, 20))
    for name in "test.tif", "train.tif":
        write_labels(tmp_path / name, np.where(np.arange(20)[:, None] < 10, labels, 0) if name == "test.tif" else np.where(np.arange(20)[:, None] > 12, labels, 0))
    write_labels(tmp_path / "map.tif", labels)
    bare = gdal.Open(str(tmp_path / "map.tif"), gdal.GA_Update)
    bare.SetProjection("")
    bare = None
    result = succeed(run("gdal_hsi_accuracy", "-training", tmp_path / "train.tif", "-report", tmp_path / "r.json", tmp_path / "map.tif", tmp_path / "test.tif"))
    assert result.err.count("has no SRS") == 1
    assert sum("has no SRS" in w for w in json.loads((tmp_path / "r.json").read_text())["warnings"]) == 1


def test_a_script_that_is_started_again(tmp_path, scene):
    """Existing outputs are complete; a step that is refused leaves a record with its error in the chain."""
    chain = tmp_path / "chain.json"
    script = f'[ -e p.tif ] || "$BIN/gdal_hsi_pca" -q -nc 2 -report-append -report {chain} {scene} p.tif\n' \
             f'[ -e t.gpkg ] || "$BIN/gdal_hsi_atdca" -q -t 2 -report-append -report {chain} {scene} t.gpkg\n'
    folder = tmp_path / "work"
    folder.mkdir()
    start = lambda: subprocess.run(["bash", "-e", "-c", script], cwd=folder, env={**os.environ, "BIN": str(BIN)}, timeout=300).returncode
    (folder / "t.gpkg-wal").mkdir()  # obstructs the second step
    first = start()
    (folder / "t.gpkg-wal").rmdir()
    stamp = (folder / "p.tif").stat().st_mtime_ns
    assert first != 0 and not (folder / "t.gpkg").exists()
    assert start() == 0 and (folder / "t.gpkg").exists() and (folder / "p.tif").stat().st_mtime_ns == stamp
    assert start() == 0
    records = json.loads(chain.read_text())["chain"]
    assert [(r["tool"].removeprefix("gdal_hsi_"), "error" in r) for r in records] == [("pca", False), ("atdca", True), ("atdca", False)]


@pytest.fixture
def floats(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    return write_scene(folder / "s.tif", np.random.default_rng(4).uniform(1, 900, (5, 30, 40)), driver="GTiff")


REFUSED_OPTIONS = {
    "sides of blocks": ((), ("BLOCKXSIZE=17", "BLOCKYSIZE=17"), "GTiff does not support -co BLOCKXSIZE=17 -co BLOCKYSIZE=17 for 2 bands of Float32: ", "17"),
    "one of three": ((), ("TILED=YES", "COMPRESS=JPEG", "BIGTIFF=NO"), "GTiff does not support -co COMPRESS=JPEG for 2 bands of Float32: ", "JPEG"),
    "one that cannot be used with another": (("-ot", "Int16"), ("COMPRESS=LZW", "PREDICTOR=3"), "GTiff does not support -co PREDICTOR=3 for 2 bands of Int16: ", "PREDICTOR=3"),
}


@pytest.mark.parametrize("case", REFUSED_OPTIONS)
def test_creation_options_that_gdal_refuses_are_named(floats, tmp_path, case):
    words, items, message, reason = REFUSED_OPTIONS[case]
    with assert_untouched(tmp_path):
        result = run("gdal_hsi_pca", "-nc", 2, *words, *[word for item in items for word in ("-co", item)], floats, tmp_path / "p.tif")
    said = first_error(result)
    assert result.code == 2 and said.startswith(message) and reason in said[len(message):], result.err
    assert "another format" not in result.err and "gdalinfo --format GTiff lists them" in result.err


def test_creation_options_of_other_formats(floats, tmp_path):
    with assert_untouched(tmp_path):
        result = run("gdal_hsi_quicklook", "-co", "QUALITY=500", floats, tmp_path / "p.jpg")
        assert result.code == 2 and "JPEG does not support -co QUALITY=500 for 3 bands of Byte: " in first_error(result)
        # Losses of the format are reported as before, with options or without.
        for options in (), ("-co", "ZLEVEL=9"):
            result = run("gdal_hsi_pca", "-nc", 5, "-ot", "Byte", *options, floats, tmp_path / "p.png")
            assert result.code == 2 and "PNG cannot store 5 bands of Byte" in first_error(result) and "-co" not in first_error(result)


def test_messages_name_the_file_of_the_user(tmp_path):
    """libtiff 4.5 cannot read its own LERC with NaN pixels; the message refers to the requested file."""
    data = np.random.default_rng(4).uniform(1, 900, (5, 30, 40))
    data[:, 3, 4] = np.nan
    scene = write_scene(tmp_path / "s.tif", data, driver="GTiff")
    (tmp_path / "out").mkdir()
    with assert_untouched(tmp_path / "out"):
        result = run("gdal_hsi_pca", "-nc", 2, "-co", "COMPRESS=LERC", "-co", "INTERLEAVE=PIXEL", "-report", tmp_path / "r.json", scene, tmp_path / "out" / "p.tif")
    if result.code == 0:
        pytest.skip("this libtiff can")
    assert result.code == 2 and "cannot read NaN" in first_error(result)
    assert ".hsi-" not in result.err and "/new/" not in result.err and f"{tmp_path}/out/p.tif" in result.err
    assert ".hsi-" not in json.loads((tmp_path / "r.json").read_text())["error"]["message"]


@pytest.mark.parametrize("tool", [("gdal_hsi_info",), ("gdal_hsi_info", "-count"), ("gdal_hsi_pca",)])
def test_a_library_that_is_cut_short(tmp_path, tool):
    path = write_sli(tmp_path / "lib.sli", spectra_of(5))
    path.write_bytes(path.read_bytes()[:50])
    refuse(1, f"'{path}': is cut short: 50 bytes of the 80 that its header states", *tool, path, *([tmp_path / "x.tif"] if tool[0] == "gdal_hsi_pca" else []),
           untouched=[tmp_path])


def test_band_numbers_of_libraries(tmp_path):
    """Also for a table, where numbers may count its rows."""
    path = tmp_path / "lib.csv"
    for numbers, words in [([1, 2, 3, 4], "from 1 to 4, which may be those of the table's lines"), ([3, 4, 7, 9], "told by the file: from 3 to 9 in the scene")]:
        path.write_text("band,wavelength,a\n" + "".join(f"{n},{nm},0.{n}\n" for n, nm in zip(numbers, NM)))
        said = succeed(run("gdal_hsi_info", path)).out
        assert f"Band numbers:   {words}" in said
        assert json.loads(succeed(run("gdal_hsi_info", "-json", path)).out)["source_bands"] == numbers
    assert "Band numbers" not in succeed(run("gdal_hsi_info", write_csv(tmp_path / "plain.csv", spectra_of(2)))).out


def test_features_that_are_at_no_place(tmp_path):
    """GeoJSON without "crs" is in degrees, so metres are invalid."""
    write_scene(tmp_path / "s.tif", np.random.default_rng(1).random((3, 20, 20)), "GTiff",
                geotransform=(400000, 30, 0, 5800000, 0, -30), epsg=32633)
    square = [[400010, 5799700], [400205, 5799700], [400205, 5799990], [400010, 5799990], [400010, 5799700]]
    feature = {"type": "Feature", "properties": {"class": 1}, "geometry": {"type": "Polygon", "coordinates": [square]}}
    for count, words in (1, "1 feature lies"), (2, "2 features lie"):
        (tmp_path / "utm.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature] * count}))
        with assert_untouched(tmp_path):
            result = run("gdal_hsi_spectra", tmp_path / "s.tif", tmp_path / "utm.geojson", tmp_path / "o.csv")
        assert result.code == 1 and f"{words} outside its SRS: (400010, 5799700) is not a longitude and latitude" in first_error(result)
        assert "GeoJSON" in result.err and "ogr2ogr -a_srs" in result.err
    # Follows the advice
    gdal.VectorTranslate(str(tmp_path / "utm.gpkg"), str(tmp_path / "utm.geojson"), options="-a_srs EPSG:32633")
    succeed(run("gdal_hsi_spectra", tmp_path / "s.tif", tmp_path / "utm.gpkg", tmp_path / "o.csv"))


def test_all_classes_that_lack_pixels(tmp_path):
    labels = np.kron(np.arange(1, 5).reshape(2, 2), np.ones((20, 20), int))
    labels[0, :10] = 0  # class 1 has 390 pixels, the others 400
    write_labels(tmp_path / "l.tif", labels)
    for options, class_1, others in ((["-folds", 3], "-n 260:1", 266), ([], "-n 292:1", 300)):
        outputs = tmp_path / "l.tif", tmp_path / "a.tif", tmp_path / "b.tif"
        with assert_untouched(tmp_path):
            refused = run("gdal_hsi_sample", *options, "-n", 500, *outputs)
        assert refused.code == 1 and "class 1 has" in first_error(refused)
        for value in (2, 3, 4):
            assert f"class {value}: {266 if options else 400}" in first_error(refused)
        advice = [line for line in refused.err.splitlines() if line.startswith("Request fewer")][0]
        assert advice == f"Request fewer of these classes: {class_1} -n {others}:2 -n {others}:3 -n {others}:4."
        succeed(run("gdal_hsi_sample", "-overwrite", *options, *advice.split(": ")[1].rstrip(".").split(), *outputs))
        if options:  # and no more exist
            assert run("gdal_hsi_sample", "-overwrite", *options, "-n", "260:1", "-n", "267:2,3,4", *outputs).code == 1


@pytest.mark.parametrize("name,words", [("t.csv", None), ("m.json", "a model of these tools"), ("dir", "a folder"),
                                        ("stats.json", "a file of statistics"), ("p.geojson", "a vector file (GeoJSON)"), ("p.gpkg", "a vector file (GPKG)"),
                                        ("x.csv", "a table of text (CSV)"), ("x.bin", "")])
def test_what_is_no_raster(tmp_path, name, words):
    scene = np.random.default_rng(1).random((4, 12, 12))
    write_scene(tmp_path / "s.tif", scene, "GTiff")
    write_labels(tmp_path / "l.tif", np.kron(np.arange(1, 5).reshape(2, 2), np.ones((6, 6), int)), place=None)
    if name == "t.csv":
        succeed(run("gdal_hsi_spectra", "-q", tmp_path / "s.tif", tmp_path / "l.tif", tmp_path / name))
    elif name == "m.json":
        succeed(run("gdal_hsi_svm_train", "-q", "-C", 1, "-gamma", 1, tmp_path / "s.tif", tmp_path / "l.tif", tmp_path / name))
    elif name == "dir":
        (tmp_path / name).mkdir()
    elif name == "stats.json":
        succeed(run("gdal_hsi_statistics", "-q", "-o", tmp_path / name, tmp_path / "s.tif"))
    elif name[0] == "p":
        succeed(run("gdal_hsi_endmembers", "-q", "-t", 3, tmp_path / "s.tif", tmp_path / name))
    else:
        (tmp_path / name).write_text("site,height\nA,3\nB,5\n" if name == "x.csv" else "\x01\x02nothing")
    result = run("gdal_hsi_info", tmp_path / name)
    if words is None:
        assert result.code == 0 and "spectral library, no raster" in result.out and "Class 4" in result.out
        return
    assert result.code == 1 and f"cannot open '{tmp_path / name}'" in first_error(result)
    assert (f"it is {words}, not a raster" in first_error(result)) == bool(words), result.err
    assert ("Give it with -statistics" in result.err) == (name == "stats.json")


def run_while_it_changes(path, call):
    """Returns the messages of a run while the file is changed continuously; on a busy machine, a run may fit between
    two changes."""
    loop = subprocess.Popen(["bash", "-c", f"while :; do touch '{path}'; sleep 0.002; done"])
    try:
        for _ in range(50):
            result = call()
            if result.code != 0:
                break
    finally:
        loop.kill()
        loop.wait()
    return result


def test_no_number_of_a_file_that_changes(tmp_path):
    """The file is rewritten repeatedly while it is read."""
    write_scene(tmp_path / "s.img", np.random.default_rng(1).random((30, 60, 60)))
    result = run_while_it_changes(tmp_path / "s.img", lambda: run("gdal_hsi_vd", "-q", tmp_path / "s.img"))
    assert result.code == 1 and "was changed while this run read it" in first_error(result) and result.out == ""


@pytest.mark.parametrize("tool,words,result_words", [
    ("mnf", [], "eigenvalue"), ("pca", [], "variance"), ("detect", ["-method", "rx"], "Best score"),
    ("unmix", ["LIBRARY"], "residual"), ("endmembers", ["-t", "4", "-residual"], "Residual"), ("atdca", ["-t", "4"], "Rank")])
def test_no_table_of_a_file_that_changes(tmp_path, tool, words, result_words):
    """The same for the output printed without -q in addition to a result file."""
    write_scene(tmp_path / "s.img", np.random.default_rng(1).random((4, 60, 60)), wavelengths=NM)
    library = write_csv(tmp_path / "lib.csv", spectra_of(2))
    target = tmp_path / ("o.gpkg" if tool in ("endmembers", "atdca") else "o.tif")
    files = [tmp_path / "s.img", *[library for word in words if word == "LIBRARY"], target]
    command = ["gdal_hsi_" + tool, "-device", "cpu"] if tool not in ("endmembers",) else ["gdal_hsi_" + tool]
    good = succeed(run(*command, "-overwrite", *[w for w in words if w != "LIBRARY"], *files))
    assert result_words in good.out

    def call():
        target.unlink(missing_ok=True)
        return run(*command, *[w for w in words if w != "LIBRARY"], *files)

    result = run_while_it_changes(tmp_path / "s.img", call)
    assert result.code == 1 and "was changed while this run read it" in first_error(result)
    assert result_words not in result.out and not target.exists(), result.out


@pytest.mark.parametrize("name", ["um.csv", "um.sli"])
def test_micrometres_that_are_called_nanometres(tmp_path, name):
    """The most common mistake in a column's name; no instrument measures below 100 nm."""
    write_scene(tmp_path / "s.img", np.moveaxis(np.random.default_rng(2).dirichlet(np.ones(3), (9, 9)) @ spectra_of(3), 2, 0),
                wavelengths=NM)
    if name == "um.csv":
        path = write_csv(tmp_path / name, spectra_of(3))
        path.write_text("\n".join(["wavelength (nm)" + line[len("wavelength"):] if k == 0 else f"{float(line.split(',')[0]) / 1000},{line.split(',', 1)[1]}"
                                   for k, line in enumerate(path.read_text().splitlines())]) + "\n")
    else:
        path = write_sli(tmp_path / name, spectra_of(3), [w / 1000 for w in NM])
    result = succeed(run("gdal_hsi_unmix", tmp_path / "s.img", path, tmp_path / "o.tif"))
    assert "too small for nanometres, so they are read as micrometres" in result.err
    assert "read as micrometres" in succeed(run("gdal_hsi_info", path)).err
    assert "450 to 850 nm" in run("gdal_hsi_info", path).out
    assert float(result.out.split("Mean residual: ")[1].split()[0]) < 1e-6


def test_a_scene_in_micrometres_that_are_called_nanometres(tmp_path):
    write_scene(tmp_path / "s.img", np.random.default_rng(2).random((4, 6, 6)), wavelengths=[w / 1000 for w in NM])
    result = succeed(run("gdal_hsi_pca", "-nc", 2, "-model", tmp_path / "m.json", tmp_path / "s.img", tmp_path / "p.tif"))
    assert "read as micrometres" in result.err
    assert json.loads((tmp_path / "m.json").read_text())["wavelengths_nm"] == pytest.approx(NM)
    succeed(run("gdal_hsi_spp", "-q", "-of", "ENVI", tmp_path / "s.img", tmp_path / "o.img"))
    assert "read as" not in succeed(run("gdal_hsi_info", tmp_path / "o.img")).err  # the unit is right from here on
    assert "450 to 850 nm" in run("gdal_hsi_info", tmp_path / "o.img").out


def test_wavelengths_that_do_not_meet(tmp_path):
    write_scene(tmp_path / "s.img", np.random.default_rng(2).random((4, 6, 6)), wavelengths=[2000 + w for w in NM])
    library = write_csv(tmp_path / "lib.csv", spectra_of(3))
    for words in (["gdal_hsi_unmix", tmp_path / "s.img", library], ["gdal_hsi_detect", "-target", library, tmp_path / "s.img"]):
        result = run(*words, tmp_path / "o.tif")
        assert result.code == 1 and "wavelengths from 450 to 850 nm, but the scene has wavelengths from 2450 to 2850 nm" in first_error(result)
        assert "Check the units of both" in result.err


def test_a_header_that_may_not_be_read(tmp_path):
    """Run by a user without permission, since root may read everything."""
    write_scene(tmp_path / "s.dat", np.random.default_rng(2).random((4, 6, 6)))
    os.chmod(tmp_path / "s.hdr", 0)
    user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"] if os.getuid() == 0 else []
    for folder in [tmp_path, *tmp_path.parents][:3]:
        if user and folder.is_dir() and str(folder) != "/tmp":
            os.chmod(folder, 0o755)
    result = subprocess.run([*user, str(BIN / "gdal_hsi_info"), "s.dat"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 1 and "cannot open 's.dat': its header 's.hdr' is not readable" in result.stderr, result.stderr


def test_names_with_a_leading_dash_in_proposals(tmp_path):
    write_scene(tmp_path / "-x.dat", np.random.default_rng(2).random((4, 6, 6)))
    for words in ["--", "-x.dat"], ["./-x.dat"]:
        out = succeed(run("gdal_hsi_info", *words, cwd=tmp_path)).out
        commands = out.split("Next:")[1].split("\n")
        for command in [c.strip() for c in commands if c.strip()]:
            assert " -x" not in command
            name, *rest = command.split()
            succeed(run(name, "-q", *rest, *(["-overwrite"] if name == "gdal_hsi_pca" else []), cwd=tmp_path))


@pytest.mark.parametrize("option", ["dst", "-model", "-report"])
def test_names_of_folders_as_outputs(tmp_path, option):
    write_scene(tmp_path / "s.img", np.random.default_rng(2).random((4, 6, 6)))
    words = ["-model", tmp_path / "m.json"] if option == "dst" else [option, f"{tmp_path}/x/"]
    with assert_untouched(tmp_path):
        result = run("gdal_hsi_pca", "-q", *words, tmp_path / "s.img", f"{tmp_path}/x/" if option == "dst" else tmp_path / "o.tif")
        assert result.code == 2 and f"{option} '{tmp_path}/x/' is the name of a folder" in first_error(result), result.err
    succeed(run("gdal_hsi_pca", "-q", tmp_path / "s.img", f"{tmp_path}/x.zarr/"))


@pytest.mark.parametrize("option", ["dst", "-model", "-report", "-stac"])
def test_names_that_are_too_long(tmp_path, option):
    """Detected before the work: without progress or a note."""
    write_scene(tmp_path / "s.img", np.random.default_rng(2).random((4, 6, 6)))
    name = tmp_path / (255 * "x" + ".tif")
    words = ["-model", tmp_path / "m.json"] if option == "dst" else [option, name]
    with assert_untouched(tmp_path):
        result = run("gdal_hsi_pca", *words, tmp_path / "s.img", name if option == "dst" else tmp_path / "o.tif")
        assert result.code == 1 and f"cannot write '{name}' ({option}): File name too long" == first_error(result), result.err
        assert "shorter" in result.err and "100" not in result.out


@pytest.mark.parametrize("options,advice", [
    (["-fraction", 1], "Request fewer training pixels (a smaller -n or -fraction).\n"),
    (["-fraction", 0.9, "-min-distance", 30], "or give a smaller -min-distance.")])
def test_advice_names_what_was_given(tmp_path, options, advice):
    write_labels(tmp_path / "l.tif", np.kron(np.arange(1, 5).reshape(2, 2), np.ones((6, 6), int)), place=None)
    result = run("gdal_hsi_sample", *options, tmp_path / "l.tif", tmp_path / "a.tif", tmp_path / "b.tif")
    assert result.code == 1 and "no test pixel is left" in result.err and advice in result.err, result.err


def test_classes_of_one_pixel(tmp_path):
    write_scene(tmp_path / "s.tif", np.random.default_rng(1).random((4, 12, 12)), "GTiff")
    labels = np.zeros((12, 12), int)
    labels[0, :3] = 1, 2, 3
    for more, said in ((0, "class 1, class 2, class 3 have 1 training pixel each: "), (2, "class 3 has 1 training pixel: ")):
        labels[5, :more], labels[6, :more] = 1, 2
        write_labels(tmp_path / "l.tif", labels, place=None)
        result = run("gdal_hsi_svm_train", "-q", tmp_path / "s.tif", tmp_path / "l.tif", tmp_path / "m.json")
        assert result.code == 1 and said in first_error(result), result.err
