# SPDX-License-Identifier: MIT
"""The plugin in a QGIS without a screen (Debian: qgis, python3-qgis). Skipped if QGIS is missing."""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest
from osgeo import gdal, ogr

from conftest import BIN, PLUGINS, cli, qgis_process

gdal.UseExceptions()
ogr.UseExceptions()

# Tool -> (parameters of QGIS, words of the command line, outputs: parameter -> file). {s} is the scene's folder, {o}
# the folder of outputs.
RUNS = {
    "accuracy": ({"map": "{s}/map.tif", "reference": "{s}/test.tif", "unclassified": 1, "csv": "{o}/a.csv"},
                 ["-unclassified", "error", "-csv", "{o}/a.csv", "{s}/map.tif", "{s}/test.tif"], {"csv": "a.csv"}),
    "atdca": ({"src": "{s}/scene.tif", "t": "4", "method": 1, "max_angle": 9.5, "device": "cpu", "spectra": "{o}/t.csv",
               "map": "{o}/m.tif", "scores": "{o}/s.tif", "dst": "{o}/t.gpkg"},
              ["-device", "cpu", "-t", "4", "-method", "gs", "-max-angle", "9.5", "-spectra", "{o}/t.csv", "-map",
               "{o}/m.tif",
               "-scores", "{o}/s.tif", "{s}/scene.tif", "{o}/t.gpkg"],
              {"dst": "t.gpkg", "spectra": "t.csv", "map": "m.tif", "scores": "s.tif"}),
    "compare": ({"src": "{s}/scene.tif", "other": "{s}/other.tif", "metric": "nrmse,sad", "map": "{o}/d.tif",
                 "json": True},
                ["-metric", "nrmse,sad", "-json", "-map", "{o}/d.tif", "{s}/scene.tif", "{s}/other.tif"],
                {"map": "d.tif"}),
    "detect": ({"src": "{s}/scene.tif", "target": "{s}/targets.sli", "method": "ace", "map": "{o}/m.tif", "device": "cpu",
                "dst": "{o}/d.tif"},
               ["-target", "{s}/targets.sli", "-method", "ace", "-map", "{o}/m.tif", "-device", "cpu", "{s}/scene.tif",
                "{o}/d.tif"],
               {"dst": "d.tif", "map": "m.tif"}),
    "eadp": ({"src": "{s}/scene.tif", "nc": 2, "c": 3, "sigma": 0.5, "g": 0, "device": "cpu", "dst": "{o}/e.tif"},
             ["-nc", "2", "-c", "3", "-sigma", "0.5", "-g", "g1", "-device", "cpu", "{s}/scene.tif", "{o}/e.tif"],
             {"dst": "e.tif"}),
    "endmembers": ({"src": "{s}/scene.tif", "t": "4", "method": "nfindr", "spectra": "{o}/e.csv", "dst": "{o}/e.gpkg"},
                   ["-t", "4", "-method", "nfindr", "-spectra", "{o}/e.csv", "{s}/scene.tif", "{o}/e.gpkg"],
                   {"dst": "e.gpkg", "spectra": "e.csv"}),
    "info": ({"src": "{s}/scene.tif", "count": True}, ["-count", "{s}/scene.tif"], {}),
    "mnf": ({"src": "{s}/scene.tif", "nc": 4, "device": "cpu", "model": "{o}/m.json", "dst": "{o}/m.tif"},
            ["-nc", "4", "-device", "cpu", "-model", "{o}/m.json", "{s}/scene.tif", "{o}/m.tif"],
            {"dst": "m.tif", "model": "m.json"}),
    "orthorectify": ({"src": "{s}/map.tif", "glt": "{s}/glt.tif", "dst": "{o}/o.tif"},
                     ["-glt", "{s}/glt.tif", "{s}/map.tif", "{o}/o.tif"], {"dst": "o.tif"}),
    "pca": ({"src": "{s}/scene.tif", "b": "1-20,30", "nc": 3, "scale": True, "device": "cpu", "model": "{o}/m.json",
             "dst": "{o}/p.dat",
             "of": "ENVI"},
            ["-b", "1-20,30", "-nc", "3", "-scale", "-device", "cpu", "-model", "{o}/m.json", "-of", "ENVI",
             "{s}/scene.tif", "{o}/p.dat"],
            {"dst": "p.dat", "model": "m.json"}),
    "quicklook": ({"src": "{s}/scene.tif", "beside": "{s}/map.tif", "dst": "{o}/q.png"},
                  ["-beside", "{s}/map.tif", "{s}/scene.tif", "{o}/q.png"], {"dst": "q.png"}),
    "profile": ({"src": "{s}/scene.tif", "nc": 2, "kind": 2, "attribute": "area", "thresholds": "9,3", "device": "cpu",
                 "dst": "{o}/p.tif"},
                ["-nc", "2", "-kind", "eep", "-attribute", "area", "-thresholds", "9,3", "-device", "cpu", "{s}/scene.tif",
                 "{o}/p.tif"],
                {"dst": "p.tif"}),
    "features": ({"src": "{s}/scene.tif", "range": "600-900nm", "output": 1, "dst": "{o}/f.tif"},
                 ["-range", "600-900nm", "-output", "removed", "{s}/scene.tif", "{o}/f.tif"], {"dst": "f.tif"}),
    "resample": ({"src": "{s}/scene.tif", "like": "{s}/scene.tif", "resample": 1, "dst": "{o}/r.tif"},
                 ["-like", "{s}/scene.tif", "-resample", "linear", "{s}/scene.tif", "{o}/r.tif"], {"dst": "r.tif"}),
    "regularize": ({"src": "{s}/p.tif", "scene": "{s}/scene.tif", "labels": "{s}/train.tif", "iterations": 20, "lambda": 1.5,
                    "device": "cpu", "map": "{o}/m.tif", "dst": "{o}/q.tif"},
                   ["-scene", "{s}/scene.tif", "-labels", "{s}/train.tif", "-iterations", "20", "-lambda", "1.5",
                    "-device", "cpu", "-map", "{o}/m.tif", "{s}/p.tif", "{o}/q.tif"],
                   {"dst": "q.tif", "map": "m.tif"}),
    "sahic": ({"src": "{s}/scene.tif", "labels": "{s}/train.tif", "iterations": 20, "lambda": 1.5, "device": "cpu",
               "confidence": "{o}/c.tif", "probabilities": "{o}/p.tif", "dst": "{o}/m.tif"},
              ["-iterations", "20", "-lambda", "1.5", "-device", "cpu", "-confidence", "{o}/c.tif", "-probabilities",
               "{o}/p.tif",
               "{s}/scene.tif", "{s}/train.tif", "{o}/m.tif"],
              {"dst": "m.tif", "confidence": "c.tif", "probabilities": "p.tif"}),
    "sample": ({"labels": "{s}/labels.tif", "n": "20|5:1,2", "seed": 7, "dst": "{o}/a.tif", "dst_test": "{o}/b.tif"},
               ["-n", "20", "-n", "5:1,2", "-seed", "7", "{s}/labels.tif", "{o}/a.tif", "{o}/b.tif"],
               {"dst": "a.tif", "dst_test": "b.tif"}),
    "spectra": ({"src": "{s}/scene.tif", "labels": "{s}/train.tif", "out": "{o}/s.csv"},
                ["{s}/scene.tif", "{s}/train.tif", "{o}/s.csv"], {"out": "s.csv"}),
    "spp": ({"src": "{s}/scene.tif", "ws": 7, "srcwin": "3 4 60 50", "ot": "Float64", "co": "COMPRESS=LZW|PREDICTOR=3",
             "device": "cpu",
             "alpha": "{o}/a.tif", "dst": "{o}/y.tif"},
            ["-ws", "7", "-srcwin", "3", "4", "60", "50", "-ot", "Float64", "-co", "COMPRESS=LZW", "-co",
             "PREDICTOR=3", "-device", "cpu",
             "-alpha", "{o}/a.tif", "{s}/scene.tif", "{o}/y.tif"], {"dst": "y.tif", "alpha": "a.tif"}),
    "svm_classify": ({"src": "{s}/scene.tif", "model": "{s}/model.json", "device": "cpu", "probabilities": "{o}/p.tif",
                      "dst": "{o}/m.tif"},
                     ["-device", "cpu", "-probabilities", "{o}/p.tif", "{s}/scene.tif", "{s}/model.json", "{o}/m.tif"],
                     {"dst": "m.tif", "probabilities": "p.tif"}),
    "svm_train": ({"src": "{s}/scene.tif", "labels": "{s}/train.tif", "C": "1,8", "gamma": "0.5", "cv": 3,
                   "model": "{o}/m.json"},
                  ["-C", "1", "-C", "8", "-gamma", "0.5", "-cv", "3", "{s}/scene.tif", "{s}/train.tif", "{o}/m.json"],
                  {"model": "m.json"}),
    "synth": ({"size": "40 30 20", "endmembers": 4, "labels": "{o}/l.tif", "truth": "{o}/t.json", "dst": "{o}/s.tif"},
              ["-size", "40", "30", "20", "-endmembers", "4", "-labels", "{o}/l.tif", "-truth", "{o}/t.json",
               "{o}/s.tif"],
              {"dst": "s.tif", "labels": "l.tif", "truth": "t.json"}),
    "unmix": ({"src": "{s}/scene.tif", "library": "{s}/targets.sli", "method": 1, "rmse": "{o}/r.tif",
               "dst": "{o}/a.tif"},
              ["-method", "nnls", "-rmse", "{o}/r.tif", "{s}/scene.tif", "{s}/targets.sli", "{o}/a.tif"],
              {"dst": "a.tif", "rmse": "r.tif"}),
    "vd": ({"src": "{s}/scene.tif", "method": 1, "pf": 1e-5}, ["-method", "nwhfc", "-pf", "1e-5", "{s}/scene.tif"], {}),
}


def fill(value, scene, out):
    return value.format(s=scene, o=out) if isinstance(value, str) else value


def content(path):
    """Returns the contents of a result: pixels, features, or the text without parts that differ from run to run."""
    path = str(path)
    if path.endswith(".gpkg"):
        layer = ogr.Open(path)
        return [feature.ExportToJson() for feature in layer.GetLayer(0)]
    if path.endswith(".json"):
        facts = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        return {key: value for key, value in facts.items() if key not in ("history", "command")}
    if path.endswith(".csv"):
        return pathlib.Path(path).read_text(encoding="utf-8")
    dataset = gdal.Open(path)
    return dataset.RasterCount, dataset.GetDriver().ShortName, dataset.ReadAsArray().tobytes()


def without_folder(text, folder):
    return text.replace(str(folder), "")


def test_every_tool_has_a_run_here(qgis):
    """A new tool appears in QGIS automatically, and test_a_tool_without_a_row_here_runs runs it."""
    usage = json.loads(subprocess.run([str(BIN / "gdal_hsi"), "--json-usage"], capture_output=True, check=True).stdout)
    assert set(RUNS) <= {tool["name"] for tool in usage["tools"]}
    assert qgis.job()["algorithms"] == sorted(tool["name"] for tool in usage["tools"])


@pytest.mark.parametrize("tool", sorted(RUNS))
def test_same_result_as_the_command_line(qgis, scene, tmp_path, tool):
    if not qgis_process():
        pytest.skip("no qgis_process on this machine")
    parameters, words, outputs = RUNS[tool]
    here, there = tmp_path / "qgis", tmp_path / "cli"
    here.mkdir()
    there.mkdir()
    code, out, err = cli(tool, *(fill(word, scene, there) for word in words))
    assert code == 0, err
    given = ["--%s=%s" % (name, fill(value, scene, here)) for name, value in parameters.items()]
    qcode, qout, qerr = qgis.process("run", "gdal_hsi:" + tool, *given)
    assert qcode == 0, qout + qerr
    for line in out.splitlines():
        assert without_folder(line, there) in without_folder(qout, here)
    for name, file in outputs.items():
        assert "%s:\t%s" % (name, here / file) in qout
        assert content(here / file) == content(there / file), name
    assert sorted(os.listdir(here)) == sorted(os.listdir(there))


def test_a_tool_without_a_row_here_runs(qgis, scene, tmp_path):
    """Tools outside RUNS, one of them run with the values that its form requires: it gives a result, or the tool's own
    message."""
    answer = qgis.job()
    for tool in set(answer["algorithms"]) - set(RUNS) | {"spp"}:
        facts = qgis.job(algorithm=tool)["parameters"]
        files = {"raster": scene / "scene.tif", "layer": scene / "train.tif", "file": scene / "targets.sli"}
        parameters = {name: files[fact["type"]] for name,
                      fact in facts.items() if fact["type"] in files and not fact["optional"]}
        parameters.update({name: "3" for name, fact in facts.items() if fact["type"] in ("string", "number")
                           and not fact["optional"] and fact["default"] is None})
        for name, fact in facts.items():
            if "estination" in fact["type"] and not fact["optional"]:
                parameters[name] = tmp_path / (name + {"rasterDestination": ".tif",
                                                       "vectorDestination": ".gpkg"}.get(fact["type"], ".json"))
        answer = qgis.job(algorithm=tool, parameters=parameters)
        assert "results" in answer or (tool not in RUNS and answer["exception"].startswith("gdal_hsi_" + tool)), answer
        for name in set(parameters) & set(answer.get("results", {})):
            assert os.path.exists(answer["results"][name])


def test_list_and_help_of_qgis_process(qgis):
    if not qgis_process():
        pytest.skip("no qgis_process on this machine")
    code, out, _ = qgis.process("list")
    assert code == 0 and "GDAL-HSI" in out
    assert "gdal_hsi:spp\tSpatial preprocessing (SPP)" in out
    code, out, _ = qgis.process("help", "gdal_hsi:spp")
    assert code == 0 and "ws: Window size" in out and "Window size, an odd number not larger than the scene." in out


def test_form_follows_the_definition(qgis):
    answer = qgis.job(algorithm="spp")
    assert answer["long_name"].startswith("GDAL-HSI (") and answer["group"] == "Transformation"
    ws = answer["parameters"]["ws"]
    assert (ws["type"], ws["default"], ws["range"], ws["advanced"], ws["optional"]) == ("number", 5, [3, 63], False,
                                                                                        False)
    assert answer["parameters"]["device"]["advanced"] and answer["parameters"]["memory"]["default"] == "25%"
    assert {name: fact["type"] for name, fact in answer["parameters"].items() if name in ("src", "dst", "alpha",
                                                                                          "report")} == {
        "src": "raster", "dst": "rasterDestination", "alpha": "rasterDestination", "report": "fileDestination"}
    answer = qgis.job(algorithm="sahic")
    assert answer["parameters"]["labels"]["type"] == "layer" and answer["parameters"]["field"]["type"] == "field"
    assert answer["parameters"]["tv"]["options"][0].startswith("isotropic: ")
    assert "On the command line" in answer["help"] and answer["left"] is False


def test_a_form_opens(qgis, tmp_path):
    qgis.job(algorithm="atdca", form=tmp_path / "form.png")
    picture = gdal.Open(str(tmp_path / "form.png")).ReadAsArray()
    assert picture.shape[1:] == (900, 1000) and len(np.unique(picture.reshape(len(picture), -1), axis=1).T) > 50


def layer_of(answer, name):
    found = [layer for layer in answer["layers"] if layer["name"] == name]
    assert len(found) == 1, [layer["name"] for layer in answer["layers"]]
    return found[0]


def colours(path):
    """Returns the colours that fill more than a hundredth of a picture."""
    picture = gdal.Open(str(path)).ReadAsArray()[:3].reshape(3, -1).T
    found, counts = np.unique(picture, axis=0, return_counts=True)
    return {"#%02x%02x%02x" % tuple(int(v) for v in c) for c, n in zip(found, counts) if n > 0.01 * counts.sum()}


@pytest.mark.parametrize("tool", sorted(RUNS))
def test_results_are_drawn(qgis, scene, tmp_path, tool):
    """Each raster and layer of points is loaded and drawn, and the picture has several colours. HSI_QGIS_PICTURES names
    a folder in which the pictures are kept for inspection."""
    parameters, _, outputs = RUNS[tool]
    pictures = pathlib.Path(os.environ.get("HSI_QGIS_PICTURES", tmp_path / "pictures")) / tool
    pictures.mkdir(parents=True, exist_ok=True)
    answer = qgis.job(algorithm=tool, pictures=pictures,
                      parameters={name: fill(value, scene, tmp_path) for name, value in parameters.items()})
    assert "results" in answer, answer
    drawn = [layer["name"].replace(" ", "_") for layer in answer["layers"]]
    wanted = [file for file in outputs.values() if file.endswith((".tif", ".dat", ".gpkg", ".png"))]
    assert sorted(drawn) == sorted(pathlib.Path(file).stem for file in wanted)
    for name in drawn:
        picture = gdal.Open(str(pictures / (name + ".png"))).ReadAsArray()
        assert len(np.unique(picture.reshape(len(picture), -1), axis=1).T) > 1, name


def test_cubes_come_in_natural_colours(qgis, scene, tmp_path):
    answer = qgis.job(algorithm="spp", parameters={"src": scene / "scene.tif", "dst": "TEMPORARY_OUTPUT",
                                                   "alpha": tmp_path / "mine.tif"},
                      pictures=tmp_path)
    layer = layer_of(answer, "scene SPP")
    dataset = gdal.Open(str(scene / "scene.tif"))
    nm = [float(dataset.GetRasterBand(n).GetMetadataItem("wavelength")) for n in range(1, 61)]
    want = [1 + int(np.argmin(np.abs(np.array(nm) - w))) for w in (640, 550, 460)]
    assert layer["renderer"] == "multibandcolor" and layer["bands"] == want
    assert layer_of(answer, "mine")["renderer"] == "singlebandgray"
    assert len(np.unique(gdal.Open(str(tmp_path / "scene_SPP.png")).ReadAsArray()[0])) > 60


@pytest.mark.parametrize("tool, more", [
    ("svm_classify", {"model": "model.json"}), ("sahic", {"labels": "train.tif", "iterations": 20})])
def test_class_maps_come_with_the_classes_that_occur(qgis, scene, tmp_path, tool, more):
    more = {name: scene / value if isinstance(value, str) else value for name, value in more.items()}
    answer = qgis.job(algorithm=tool, parameters={"src": scene / "scene.tif", "dst": "TEMPORARY_OUTPUT",
                                                  "confidence": "TEMPORARY_OUTPUT",
                                                  **more}, pictures=tmp_path)
    short = {"svm_classify": "SVM", "sahic": "SAHIC"}[tool]
    layer = layer_of(answer, "scene " + short)
    assert layer["renderer"] == "paletted"
    labels = gdal.Open(str(scene / "labels.tif"))
    labels.GetRasterBand(1).GetMetadata()  # GDAL 3.6 has the names only after this
    names, table = labels.GetRasterBand(1).GetCategoryNames(), labels.GetRasterBand(1).GetColorTable()
    legend = [["%s" % names[v], "#%02x%02x%02x" % table.GetColorEntry(v)[:3]] for v in range(1, 6)]
    assert layer["legend"] == legend
    assert colours(tmp_path / ("scene_%s.png" % short)) == {colour for _, colour in legend}
    assert layer_of(answer, "scene %s confidence" % short)["renderer"] == "singlebandgray"


def test_a_map_of_few_classes_has_a_short_legend(qgis, scene, tmp_path):
    code, _, err = cli("atdca", "-q", "-device", "cpu", "-t", 5, "-max-angle", 4, "-map", tmp_path / "want.tif",
                       scene / "scene.tif", tmp_path / "t.gpkg")
    assert code == 0, err
    answer = qgis.job(algorithm="atdca", parameters={
        "src": scene / "scene.tif", "t": 5, "max_angle": 4, "device": "cpu", "dst": "TEMPORARY_OUTPUT",
        "map": "TEMPORARY_OUTPUT",
        "srcwin": "0 0 40 40", "scores": "TEMPORARY_OUTPUT"})
    assert layer_of(answer, "scene ATDCA")["features"] == 5
    legend = layer_of(answer, "scene ATDCA map")["legend"]
    assert 1 <= len(legend) <= 5 and all(name.startswith("Target ") for name, _ in legend)


def test_signed_scores_come_in_diverging_colours(qgis, scene, tmp_path):
    answer = qgis.job(algorithm="atdca", parameters={"src": scene / "scene.tif", "t": 4, "device": "cpu",
                                                     "dst": "TEMPORARY_OUTPUT",
                                                     "scores": tmp_path / "s.tif"})
    layer = layer_of(answer, "s")
    low, high = layer["limits"]
    assert layer["renderer"] == "singlebandpseudocolor" and low == -high and high > 0
    assert [colour for _, colour in layer["legend"]][::3] == ["#2166ac", "#f7f7f7", "#b2182b"]
    values = gdal.Open(str(tmp_path / "s.tif")).ReadAsArray()[0]
    assert values.min() < 0 < high <= np.abs(values).max()


def test_components_stay_a_composite(qgis, scene):
    answer = qgis.job(algorithm="pca", parameters={"src": scene / "scene.tif", "dst": "TEMPORARY_OUTPUT",
                                                   "device": "cpu"})
    assert layer_of(answer, "scene PCA")["renderer"] == "multibandcolor"


def test_choices_by_name_and_bands_as_a_list(qgis, scene, tmp_path):
    answer = qgis.job(algorithm="unmix", parameters={"src": scene / "scene.tif", "library": scene / "targets.sli",
                                                     "method": "ucls",
                                                     "srcwin": [0, 0, 20, 20], "dst": tmp_path / "a.tif"})
    assert " -method ucls " in answer["said"]["command"][0] and " -srcwin 0 0 20 20 " in answer["said"]["command"][0]
    answer = qgis.job(algorithm="pca", parameters={"src": scene / "scene.tif", "b": [1, 2, 3, 9], "nc": 2,
                                                   "dst": tmp_path / "p.tif"})
    assert " -b 1,2,3,9 " in answer["said"]["command"][0] and answer["results"]["dst"] == str(tmp_path / "p.tif")
    answer = qgis.job(algorithm="unmix", parameters={"src": scene / "scene.tif", "library": scene / "targets.sli",
                                                     "method": "best",
                                                     "dst": tmp_path / "b.tif"})
    assert "method" in answer["exception"] and not (tmp_path / "b.tif").exists()


def test_a_dry_run_makes_and_loads_nothing(qgis, scene, tmp_path):
    answer = qgis.job(algorithm="spp", parameters={"src": scene / "scene.tif", "dst": tmp_path / "y.tif",
                                                   "dry_run": True,
                                                   "report": tmp_path / "r.json"})
    assert answer["layers"] == [] and os.listdir(tmp_path) == ["r.json"]
    assert set(answer["results"]) == {"report", "PRINTED"}
    code, out, _ = cli("spp", "-dry-run", scene / "scene.tif", tmp_path / "y.tif")
    assert code == 0 and "tile" in out and answer["results"]["PRINTED"] == out


def test_what_the_tool_says_is_what_qgis_says(qgis, scene, tmp_path):
    code, _, err = cli("spp", "-ws", 6, scene / "scene.tif", tmp_path / "y.tif")
    assert code == 2
    answer = qgis.job(algorithm="spp", parameters={"src": scene / "scene.tif", "ws": 6, "dst": tmp_path / "y.tif"})
    first = err.splitlines()[0][len("ERROR: "):]
    assert answer["exception"].startswith("gdal_hsi_spp: " + first) and "--help" not in answer["exception"]
    assert os.listdir(tmp_path) == []
    answer = qgis.job(algorithm="spp", parameters={"src": scene / "scene.tif", "srcwin": "1 2 3",
                                                   "dst": tmp_path / "y.tif"})
    assert "4 values are needed (XOFF YOFF XSIZE YSIZE)" in answer["exception"]


def test_existing_results(qgis, scene, tmp_path):
    parameters = {"src": scene / "scene.tif", "dst": tmp_path / "y.tif"}
    assert "results" in qgis.job(algorithm="spp", parameters=parameters)
    assert "results" in qgis.job(algorithm="spp", parameters=parameters)
    answer = qgis.job(algorithm="spp", parameters={**parameters, "overwrite": False})
    assert "already exists" in answer["exception"]
    before = (scene / "scene.tif").read_bytes()
    answer = qgis.job(algorithm="spp", parameters={**parameters, "dst": scene / "scene.tif"})
    assert "exception" in answer and (scene / "scene.tif").read_bytes() == before


def test_warnings_reach_the_log(qgis, scene, tmp_path):
    """A tool's warning appears with the words of the command line."""
    gdal.Translate(str(tmp_path / "moved.tif"), str(scene / "scene.tif"), outputBounds=[0, 900, 1200, 0])
    code, _, err = cli("compare", scene / "scene.tif", tmp_path / "moved.tif")
    warnings = [line for line in err.splitlines() if line.startswith("Warning: ")]
    assert code == 0 and warnings, err
    answer = qgis.job(algorithm="compare", parameters={"src": scene / "scene.tif", "other": tmp_path / "moved.tif"})
    assert answer["said"]["warning"] == warnings and "results" in answer


def running(folder):
    """Returns tools that are working in the folder."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes()
        except OSError:
            continue
        if b"gdal_hsi" in command.split(b"\0")[0] and str(folder).encode() in command:
            found.append(command)
    return found


def test_cancel_leaves_nothing(qgis, scene, tmp_path):
    answer = qgis.job(algorithm="sahic", cancel_after=0.5, parameters={
        "src": scene / "scene.tif", "labels": scene / "train.tif", "iterations": 1000000, "device": "cpu",
        "dst": tmp_path / "m.tif",
        "model": tmp_path / "m.json"})
    assert answer["exception"] == "Canceled: nothing was written."
    assert os.listdir(tmp_path) == [] and running(tmp_path) == [] and answer["layers"] == []


def test_without_executables_qgis_says_what_to_do(qgis, tmp_path):
    without = qgis.environment_without_tools()
    answer = qgis.job(environment=without, gui=True)
    assert answer["algorithms"] == [] and answer["problem"] == answer["warning"]
    assert answer["messages"] == [["GDAL-HSI", answer["problem"]]] and qgis.job(gui=True)["messages"] == []
    assert "not on PATH" in answer["problem"] and "Settings > Options > Processing" in answer["problem"]
    assert len(qgis.job(environment=without, folder=str(BIN))["algorithms"]) >= len(RUNS)
    answer = qgis.job(folder=str(tmp_path))
    assert answer["algorithms"] == [] and str(tmp_path) in answer["problem"]
    if qgis_process():
        code, out, _ = qgis.process("list", environment=without)
        assert code == 0 and "gdal_hsi:" not in out


def test_older_executables_are_told(qgis, tmp_path):
    old = tmp_path / "gdal_hsi"
    old.write_text("#!/bin/sh\necho \"ERROR: unknown option '$1'\" >&2\nexit 2\n")
    old.chmod(0o755)
    answer = qgis.job(folder=str(tmp_path))
    assert answer["algorithms"] == [] and "older than this plugin" in answer["problem"]
    assert "unknown option '--json-usage'" in answer["problem"]


def test_the_definition_is_read_once(qgis):
    cache = qgis.folder / "profiles" / "default" / "gdal_hsi" / "usage.json"
    found = cache if cache.exists() else next(qgis.folder.rglob("gdal_hsi/usage.json"), None)
    if found is None:
        qgis.job()
        found = next(qgis.folder.rglob("gdal_hsi/usage.json"))
    before = found.stat().st_mtime_ns
    assert len(qgis.job()["algorithms"]) >= len(RUNS)
    assert found.stat().st_mtime_ns == before


SQUARES = [["POLYGON((500000 5799900, 500600 5799900, 500600 5799000, 500000 5799000, 500000 5799900))", "left"],
           ["POLYGON((502400 5799900, 503000 5799900, 503000 5799000, 502400 5799000, 502400 5799900))", "right"]]


BELOW = "POLYGON((501200 5798000, 501800 5798000, 501800 5797700, 501200 5797700, 501200 5798000))"


def legend_names(answer, name="scene SAHIC"):
    return [entry[0] for entry in layer_of(answer, name)["legend"]]


def sahic(qgis, scene, labels, layers, **more):
    return qgis.job(algorithm="sahic", layers=layers, parameters={
        "src": scene / "scene.tif", "labels": labels, "field": "landcover", "iterations": 5, "device": "cpu",
        "dst": "TEMPORARY_OUTPUT", **more})


def test_labels_from_a_layer_in_memory(qgis, scene):
    answer = sahic(qgis, scene, "layer:mine", {"mine": {"wkt": SQUARES}})
    assert legend_names(answer) == ["left", "right"]


def write_layers(path):
    """Writes a GeoPackage with a layer of other features, and a layer of three classes."""
    dataset = gdal.GetDriverByName("GPKG").Create(str(path), 0, 0, 0)
    for layer_name, squares in (("other", [["POINT(0 0)", "no"]]),
                                ("classes", [*SQUARES,
                                             [BELOW, "below"]])):
        srs = ogr.osr.SpatialReference()
        srs.ImportFromEPSG(32633)
        layer = dataset.CreateLayer(layer_name, srs)
        layer.CreateField(ogr.FieldDefn("landcover", ogr.OFTString))
        for wkt, landcover in squares:
            feature = ogr.Feature(layer.GetLayerDefn())
            feature.SetGeometry(ogr.CreateGeometryFromWkt(wkt))
            feature.SetField("landcover", landcover)
            layer.CreateFeature(feature)


def test_labels_from_one_layer_of_several(qgis, scene, tmp_path):
    write_layers(tmp_path / "several.gpkg")
    facts = {"path": "%s|layername=classes" % (tmp_path / "several.gpkg"), "provider": "ogr"}
    answer = sahic(qgis, scene, "layer:mine", {"mine": facts})
    assert sorted(legend_names(answer)) == ["below", "left", "right"]
    assert " -layer classes " in answer["said"]["command"][0] and "several.gpkg" in answer["said"]["command"][0]


def test_a_filter_of_the_layer_counts(qgis, scene, tmp_path):
    write_layers(tmp_path / "several.gpkg")
    facts = {"path": "%s|layername=classes" % (tmp_path / "several.gpkg"), "provider": "ogr",
             "subset": "landcover <> 'below'"}
    answer = sahic(qgis, scene, "layer:mine", {"mine": facts})
    assert sorted(legend_names(answer)) == ["left", "right"]
    assert "labels.gpkg" in answer["said"]["command"][0]


def test_a_layer_of_several_as_a_mask(qgis, scene, tmp_path):
    """-mask accepts no layer name, so it gets a file that contains only this layer."""
    write_layers(tmp_path / "several.gpkg")
    facts = {"path": "%s|layername=classes" % (tmp_path / "several.gpkg"), "provider": "ogr"}
    answer = qgis.job(algorithm="accuracy", layers={"mine": facts}, parameters={
        "map": scene / "map.tif", "reference": scene / "test.tif", "mask": "layer:mine"})
    assert "several.gpkg" not in answer["said"]["command"][0] and " -layer " not in answer["said"]["command"][0]
    code, want, err = cli("accuracy", "-mask", str(tmp_path / "several.gpkg"), scene / "map.tif", scene / "test.tif")
    assert "results" in answer, answer
    code, want, err = cli("accuracy", scene / "map.tif", scene / "test.tif")
    assert code == 0 and answer["results"]["PRINTED"] != want, err


def test_training_without_labels_from_a_model(qgis, scene, tmp_path):
    assert "results" in sahic(qgis, scene, scene / "train.tif", {}, model=tmp_path / "m.json", field="")
    answer = qgis.job(algorithm="sahic", parameters={"src": scene / "scene.tif", "apply": tmp_path / "m.json",
                                                     "iterations": 5,
                                                     "device": "cpu", "dst": tmp_path / "map.tif"})
    assert " none " in answer["said"]["command"][0] and "results" in answer, answer


def test_layers_that_are_no_files_are_refused(qgis, scene, tmp_path):
    wms = {"path": "type=xyz&url=file:///nowhere/{x}/{y}/{z}.png&zmax=3&zmin=0", "provider": "wms"}
    answer = qgis.job(algorithm="spp", layers={"mine": wms}, parameters={"src": "layer:mine",
                                                                         "dst": tmp_path / "y.tif"})
    said = " ".join([answer["exception"], *answer["said"]["error"]])
    assert "The layer 'mine' cannot be used" in said and "'wms'" in said and os.listdir(tmp_path) == []


def test_open_options_of_a_layer_go_with_it(qgis, scene, tmp_path):
    facts = {"path": "%s|option:NUM_THREADS=1" % (scene / "scene.tif"), "provider": "gdal"}
    answer = qgis.job(algorithm="spp", layers={"mine": facts}, parameters={"src": "layer:mine",
                                                                           "dst": tmp_path / "y.tif"})
    assert " -oo NUM_THREADS=1 " in answer["said"]["command"][0] and "results" in answer, answer
    answer = qgis.job(algorithm="compare", layers={"mine": facts}, parameters={"src": scene / "scene.tif",
                                                                               "other": "layer:mine"})
    assert "open options (NUM_THREADS=1)" in " ".join([answer["exception"], *answer["said"]["error"]])


def test_subdatasets_are_scenes(qgis, scene, tmp_path):
    path = tmp_path / "cubes.gpkg"
    gdal.Translate(str(path), str(scene / "labels.tif"), format="GPKG", outputType=gdal.GDT_Byte,
                   creationOptions=["RASTER_TABLE=one"])
    gdal.Translate(str(path), str(scene / "labels.tif"), format="GPKG", outputType=gdal.GDT_Byte,
                   creationOptions=["RASTER_TABLE=two", "APPEND_SUBDATASET=YES"])
    answer = qgis.job(algorithm="sample", layers={"mine": {"path": "GPKG:%s:two" % path, "provider": "gdal"}},
                      parameters={"labels": "layer:mine", "n": "5", "dst": tmp_path / "a.tif",
                                  "dst_test": tmp_path / "b.tif"})
    assert "GPKG:%s:two" % path in answer["said"]["command"][0]


def test_a_style_beside_the_result_stands(qgis, scene, tmp_path):
    (tmp_path / "y.qml").write_text("<qgis/>")
    answer = qgis.job(algorithm="spp", parameters={"src": scene / "scene.tif", "dst": tmp_path / "y.tif"})
    assert layer_of(answer, "y")["bands"] == [1, 2, 3]


def test_the_zip_holds_the_plugin(tmp_path):
    root = PLUGINS.parent
    if not (root / "scripts" / "qgis_zip").exists():
        pytest.skip("this is no source tree")
    archive = tmp_path / "plugin.zip"
    subprocess.run([str(root / "scripts" / "qgis_zip"), str(archive)], check=True, capture_output=True)
    subprocess.run(["python3", "-m", "zipfile", "-e", str(archive), str(tmp_path / "unpacked")], check=True)
    made = tmp_path / "unpacked" / "gdal_hsi"
    names = {path.name for path in made.iterdir()}
    assert {"metadata.txt", "__init__.py", "plugin.py", "icon.svg", "LICENSE"} <= names and "__pycache__" not in names
    for path in (PLUGINS / "gdal_hsi").glob("*.py"):
        assert (made / path.name).read_bytes() == path.read_bytes()
    version = next(line for line in (made / "metadata.txt").read_text().splitlines() if line.startswith("version="))
    project = (root / "CMakeLists.txt").read_text()
    assert "VERSION %s " % version.partition("=")[2] in project
