# SPDX-License-Identifier: MIT
"""-if-needed: a command whose outputs are as it made them does nothing; any relevant change makes it run again."""
import json
import os
import subprocess
import time

import numpy as np
import pytest
from conftest import BIN, cube, first_error, run, snapshot, start, succeed, write_utm_scene as write_scene
from osgeo import gdal, ogr, osr

NOTHING = "Nothing to do"


@pytest.fixture
def scene(tmp_path):
    return write_scene(tmp_path / "s.img", cube(30, 20, 8), wavelengths=[500 + 20 * b for b in range(8)])


def pca(tmp_path, scene, *options, model=True):
    outputs = ["-model", tmp_path / "m.json"] if model else []
    return succeed(run("gdal_hsi_pca", "-if-needed", "-nc", 3, *options, *outputs, scene, tmp_path / "o.img", "-of", "ENVI"))


def skipped(tmp_path, *args, **kwargs):
    before = snapshot(tmp_path)
    result = pca(tmp_path, *args, **kwargs)
    nothing = NOTHING in result.out
    if nothing:
        assert snapshot(tmp_path) == before
    return nothing


@pytest.mark.quick
def test_the_same_again_does_nothing(tmp_path, scene):
    assert not skipped(tmp_path, scene)
    for _ in range(2):
        assert skipped(tmp_path, scene)
    # Changes without effect on results do not count.
    assert skipped(tmp_path, scene, "-threads", 1, "-tile", 30, 5, "-memory", "200MB", "-overwrite")
    assert succeed(run("gdal_hsi_pca", "-q", "-if-needed", "-nc", 3, "-model", tmp_path / "m.json", scene, tmp_path / "o.img", "-of", "ENVI")).out == ""


def test_the_report_of_nothing(tmp_path, scene):
    report = tmp_path / "r.json"
    pca(tmp_path, scene, "-report", report)
    pca(tmp_path, scene, "-report", report)
    record = json.loads(report.read_text())
    assert record["if_needed"] == "nothing to do" and record["passes"] == []
    assert NOTHING in pca(tmp_path, scene, "-report", tmp_path / "other.json").out
    assert json.loads((tmp_path / "other.json").read_text())["if_needed"] == "nothing to do"


@pytest.mark.parametrize("change", ["option", "pixels", "header", "output", "output header", "model", "model gone", "output gone", "record gone",
                                    "version", "made without"])
def test_what_was_changed_is_made_anew(tmp_path, scene, change):
    folder = tmp_path
    pca(folder, scene)
    want = {name: (folder / name).read_bytes() for name in ("o.img", "m.json")}
    assert skipped(folder, scene)
    record = folder / "o.img.made"
    options = []
    if change == "option":
        options = ["-scale"]
    elif change == "pixels":
        data = bytearray((folder / "s.img").read_bytes())
        data[3] ^= 1
        (folder / "s.img").write_bytes(data)
    elif change == "header":
        (folder / "s.hdr").write_text((folder / "s.hdr").read_text() + "\ndescription = {other}\n")
    elif change == "output":
        data = bytearray(want["o.img"])
        data[0] ^= 1
        (folder / "o.img").write_bytes(data)
    elif change == "output header":
        (folder / "o.hdr").write_text((folder / "o.hdr").read_text() + "\n")
    elif change == "model":
        (folder / "m.json").write_text("{}")
    elif change == "model gone":
        (folder / "m.json").unlink()
    elif change == "output gone":
        (folder / "o.img").unlink()
    elif change == "record gone":
        record.unlink()
    elif change == "version":
        text = json.loads(record.read_text())
        text["told"]["version"] = "0.0.1"
        record.write_text(json.dumps(text))
    else:
        succeed(run("gdal_hsi_pca", "-q", "-overwrite", "-nc", 2, scene, folder / "o.img", "-of", "ENVI"))
    assert not skipped(folder, scene, *options)
    assert skipped(folder, scene, *options)
    if change not in ("option", "pixels", "header"):
        assert {name: (folder / name).read_bytes() for name in want} == want


@pytest.mark.parametrize("late", ["s.wld", "s.tfw", "s.tif.aux.xml"])
def test_what_comes_beside_a_scene_later(tmp_path, late):
    """It changes the result, although all files that were read are unchanged."""
    scene = write_scene(tmp_path / "s.tif", cube(30, 20, 8), "GTiff", geotransform=None, epsg=None)
    assert not skipped(tmp_path, scene)
    assert skipped(tmp_path, scene)
    before = gdal.Open(str(tmp_path / "o.img")).GetGeoTransform(can_return_null=True)
    place = (1000, 2, 0, 5000, 0, -2)
    if late.endswith("xml"):
        (tmp_path / late).write_text(f"<PAMDataset><GeoTransform>{', '.join(map(str, place))}</GeoTransform></PAMDataset>")
    else:
        (tmp_path / late).write_text("2\n0\n0\n-2\n1001\n4999\n")
    assert not skipped(tmp_path, scene)
    after = gdal.Open(str(tmp_path / "o.img")).GetGeoTransform(can_return_null=True)
    assert before != after == place
    assert skipped(tmp_path, scene)


def test_an_srs_that_comes_beside_a_shapefile_later(tmp_path, scene):
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(tmp_path / "m.shp"))
    layer = data.CreateLayer("m", geom_type=ogr.wkbPolygon)
    feature = ogr.Feature(layer.GetLayerDefn())
    x, y = 500000, 4480000
    feature.SetGeometry(ogr.CreateGeometryFromWkt(f"POLYGON (({x} {y}, {x + 400} {y}, {x + 400} {y - 300}, {x} {y - 300}, {x} {y}))"))
    layer.CreateFeature(feature)
    feature = layer = data = None
    mask = ["-mask", tmp_path / "m.shp"]
    assert not skipped(tmp_path, scene, *mask)
    assert skipped(tmp_path, scene, *mask)
    assert not (tmp_path / "m.prj").exists()
    elsewhere = osr.SpatialReference()
    elsewhere.ImportFromEPSG(32633)
    (tmp_path / "m.prj").write_text(elsewhere.ExportToWkt(["FORMAT=WKT1_ESRI"]))
    result = run("gdal_hsi_pca", "-if-needed", "-nc", 3, "-model", tmp_path / "m.json", *mask, scene, tmp_path / "o.img", "-of", "ENVI")
    assert result.code == 1 and "m.shp" in first_error(result)


def test_an_output_that_is_named_as_what_may_come_beside_an_input(tmp_path, scene):
    words = ["gdal_hsi_pca", "-if-needed", "-nc", 3, scene, tmp_path / "s.prj", "-of", "GTiff"]
    assert NOTHING not in succeed(run(*words)).out
    assert NOTHING in succeed(run(*words)).out


def test_small_files_count_by_what_they_hold(tmp_path, scene):
    pca(tmp_path, scene)
    later = time.time() + 100
    os.utime(tmp_path / "s.hdr", (later, later))
    os.utime(tmp_path / "s.img", (later, later))
    assert skipped(tmp_path, scene)


def test_models_masks_and_lists_are_inputs(tmp_path, scene):
    pca(tmp_path, scene)
    apply = ["gdal_hsi_pca", "-if-needed", "-apply", tmp_path / "m.json", scene, tmp_path / "a.tif"]
    succeed(run(*apply))
    assert NOTHING in succeed(run(*apply)).out
    pca(tmp_path, scene, "-whiten")
    assert NOTHING not in succeed(run(*apply)).out
    (tmp_path / "lines.txt").write_text(f"{scene}\n")
    statistics = ["gdal_hsi_statistics", "-if-needed", f"@{tmp_path}/lines.txt", "-o", tmp_path / "l.stat"]
    succeed(run(*statistics))
    assert NOTHING in succeed(run(*statistics)).out
    write_scene(tmp_path / "t.img", cube(30, 20, 8, seed=4), wavelengths=[500 + 20 * b for b in range(8)])
    (tmp_path / "lines.txt").write_text(f"{scene}\n{tmp_path}/t.img\n")
    assert NOTHING not in succeed(run(*statistics)).out
    assert len(json.loads((tmp_path / "l.stat").read_text())["scenes"]) == 2


def test_a_pipeline_looks_at_what_its_steps_read(tmp_path, scene):
    line = ["gdal_hsi_pipeline", "-if-needed", "read", scene, "!", "spp", "-ws", 3, "!", "pca", "-nc", 2, "!", "write", tmp_path / "p.tif"]
    succeed(run(*line))
    assert NOTHING in succeed(run(*line)).out
    (tmp_path / "s.img").write_bytes(cube(30, 20, 8, seed=5).astype("<f4").tobytes())
    assert NOTHING not in succeed(run(*line)).out


def test_a_failed_or_dry_run_leaves_no_record(tmp_path, scene):
    succeed(run("gdal_hsi_pca", "-if-needed", "-dry-run", scene, tmp_path / "o.img"))
    assert run("gdal_hsi_pca", "-if-needed", "-nc", 99, scene, tmp_path / "o.img").code == 2
    assert not (tmp_path / "o.img.made").exists() and not (tmp_path / "o.img").exists()


def test_what_cannot_be_known(tmp_path, scene):
    result = run("gdal_hsi_accuracy", "-if-needed", scene, scene)
    assert result.code == 2 and "-if-needed requires an output" in first_error(result)
    result = run("gdal_hsi_pca", "-if-needed", "-of", "ENVI", scene, "/vsistdout/")
    assert result.code == 2 and "is not a regular file" in first_error(result)
    assert "-append cannot be used with -if-needed" in first_error(run("gdal_hsi_statistics", "-if-needed", "-append", scene, "-o", tmp_path / "s.stat"))
    (tmp_path / "o.img.made").write_text("notes of mine\n")
    result = run("gdal_hsi_pca", "-if-needed", scene, tmp_path / "o.img")
    assert result.code == 1 and "not a record of -if-needed" in first_error(result)
    assert (tmp_path / "o.img.made").read_text() == "notes of mine\n"


def test_what_a_power_failure_leaves_of_a_record(tmp_path, scene):
    line = ["gdal_hsi_pca", "-q", "-if-needed", "-nc", 2, scene, tmp_path / "o.img"]
    succeed(run(*line))
    record, made = tmp_path / "o.img.made", (tmp_path / "o.img").read_bytes()
    whole = record.read_bytes()
    for left in b"", b"\0" * len(whole), whole[:7], whole[:len(whole) // 2], whole.replace(b'"read"', b'"raed"'):
        record.write_bytes(left)
        succeed(run(*line))
        assert json.loads(record.read_bytes())["read"] and (tmp_path / "o.img").read_bytes() == made


def test_every_tool_with_outputs_has_it():
    usage = json.loads(succeed(run("gdal_hsi", "--json-usage")).out)
    for one in usage["tools"]:
        arguments = {a["name"]: a for a in one["arguments"]}
        outputs = any(a["role"] in ("destination", "output") for a in arguments.values()) or one["name"] == "pipeline"
        assert ("if-needed" in arguments) == outputs, one["name"]


def test_a_killed_run_is_done_again(tmp_path):
    """However the run ends, its files are complete, and the next run detects whether it must work."""
    scene = write_scene(tmp_path / "s.img", cube(200, 300, 60), dtype="f4")
    line = ["-if-needed", "-q", "-nc", 5, scene, tmp_path / "o.tif"]
    succeed(run("gdal_hsi_pca", *line))
    want = (tmp_path / "o.tif").read_bytes()
    for wait in np.linspace(0, 0.4, 9):
        (tmp_path / "o.tif").unlink(missing_ok=True)
        process = start("gdal_hsi_pca", *line)
        time.sleep(wait)
        process.kill()
        process.communicate()
        succeed(run("gdal_hsi_pca", *line))
        assert (tmp_path / "o.tif").read_bytes() == want
        assert NOTHING in succeed(run("gdal_hsi_pca", *[o for o in line if o != "-q"])).out


def test_a_step_of_a_pipeline_has_it_not(tmp_path, scene):
    result = run("gdal_hsi_pipeline", "read", scene, "!", "pca", "-nc", 2, "-if-needed", "!", "write", tmp_path / "p.tif")
    assert result.code == 2 and "if-needed" in first_error(result)


def test_no_word_of_the_command_is_kept(tmp_path, scene):
    """Open options may be passwords."""
    succeed(run("gdal_hsi_pca", "-if-needed", "-oo", "PASSWORD=swordfish", "-nc", 2, scene, tmp_path / "o.tif"))
    assert "swordfish" not in (tmp_path / "o.tif.made").read_text()


def test_a_side_file_of_an_output(tmp_path, scene):
    """Readers of an output may add statistics, but neither values with another meaning nor another position."""
    pca(tmp_path, scene)
    side = tmp_path / "o.img.aux.xml"
    before = side.read_bytes()
    output = gdal.Open(str(tmp_path / "o.img"))
    output.GetRasterBand(1).ComputeStatistics(False)
    output = None
    assert side.read_bytes() != before and skipped(tmp_path, scene)
    def band(text):
        return before.decode().replace("</PAMDataset>", f'<PAMRasterBand band="2">{text}</PAMRasterBand></PAMDataset>')

    for text in (None, band("<Scale>3</Scale>"), before.decode().replace("<PAMDataset>", "<PAMDataset><GeoTransform>1,2,0,3,0,-2</GeoTransform>")):
        side.unlink() if text is None else side.write_text(text)
        assert not skipped(tmp_path, scene)
        assert side.read_bytes() == before and skipped(tmp_path, scene)
    side.write_text(band('<Metadata><MDI key="STATISTICS_MEAN">4</MDI></Metadata>'))
    assert skipped(tmp_path, scene)
    mask = tmp_path / "o.img.msk"
    mask.write_bytes((tmp_path / "o.img").read_bytes())
    assert not skipped(tmp_path, scene)


@pytest.mark.parametrize("form", ["-of HSI", "pipeline"])
def test_a_scene_that_computes_is_one_that_opens(tmp_path, scene, form):
    """It compares its sources by time, so their time counts here, too."""
    out = tmp_path / "o.hsi"
    line = {"-of HSI": ["gdal_hsi_spp", "-if-needed", "-ws", 3, scene, out],
            "pipeline": ["gdal_hsi_pipeline", "-if-needed", "read", scene, "!", "spp", "-ws", 3, "!", "write", out]}[form]
    assert NOTHING not in succeed(run(*line)).out
    assert NOTHING in succeed(run(*line)).out
    later = time.time() + 100
    os.utime(tmp_path / "s.img", (later, later))
    assert NOTHING not in succeed(run(*line)).out
    assert gdal.Open(str(tmp_path / "s.img")).RasterCount == 8
    succeed(run("gdal_hsi_pca", "-nc", 2, out, tmp_path / "q.tif"))
    assert NOTHING in succeed(run(*line)).out


@pytest.mark.parametrize("setting", ["GDAL_NETCDF_BOTTOMUP=NO", "GDAL_PAM_ENABLED=NO", "HSI_SIMD=portable", "PROJ_NETWORK=OFF", "gtiff_point_geo_ignore=YES"])
def test_settings_count_wherever_they_stand(tmp_path, scene, setting):
    name, value = setting.split("=")
    line = ["gdal_hsi_pca", "-if-needed", "-nc", 2, scene, tmp_path / "o.tif"]
    succeed(run(*line))
    environment = {name: value}
    assert NOTHING not in succeed(run(*line, env=environment)).out
    assert NOTHING in succeed(run(*line, env=environment)).out
    assert NOTHING in succeed(run(*line, "--config", name, value)).out
    (tmp_path / "gdalrc").write_text(f"[configoptions]\n{name}={value}\n")
    assert NOTHING in succeed(run(*line, env={"GDAL_CONFIG_FILE": str(tmp_path / "gdalrc")})).out
    # The option on the command line has priority over the file.
    assert NOTHING not in succeed(run(*line, "--config", name, "ssse3" if name == "HSI_SIMD" else "MAYBE", env={"GDAL_CONFIG_FILE": str(tmp_path / "gdalrc")})).out
    assert NOTHING not in succeed(run(*line)).out
    for free in "GDAL_CACHEMAX=300", "AWS_SECRET_ACCESS_KEY=swordfish", "CPL_DEBUG=OFF", "GDAL_HTTP_TIMEOUT=7":
        assert NOTHING in succeed(run(*line, env=dict([free.split("=")]))).out
        assert NOTHING in succeed(run(*line, "--config", *free.split("="))).out


def test_what_comes_through_a_pipe_is_never_known(tmp_path, scene):
    succeed(run("gdal_hsi_pca", "-nc", 2, "-model", tmp_path / "a.json", scene, tmp_path / "x.tif"))
    succeed(run("gdal_hsi_pca", "-nc", 2, "-whiten", "-model", tmp_path / "b.json", scene, tmp_path / "x.tif", "-overwrite"))
    seen = []
    for model in "aab":
        result = subprocess.run(["bash", "-c", '"$0" -if-needed -apply <(cat "$1") "$2" "$3"', BIN / "gdal_hsi_pca", tmp_path / f"{model}.json",
                                 scene, tmp_path / "o.tif"], capture_output=True, text=True, check=True)
        assert NOTHING not in result.stdout
        seen.append((tmp_path / "o.tif").read_bytes())
    assert seen[0] == seen[1] != seen[2]


def test_a_fifo_is_no_record(tmp_path, scene):
    os.mkfifo(tmp_path / "o.img.made")
    result = run("gdal_hsi_pca", "-if-needed", scene, tmp_path / "o.img")
    assert result.code == 1 and "not a record of -if-needed" in first_error(result)


def test_headers_and_data_that_come_first_for_gdal(tmp_path, scene):
    assert not skipped(tmp_path, scene)
    assert skipped(tmp_path, scene)
    (tmp_path / "s.img.hdr").write_text((tmp_path / "s.hdr").read_text() + "\ndata ignore value = 7\n")
    assert not skipped(tmp_path, scene)
    assert skipped(tmp_path, scene)
    (tmp_path / "s.img.hdr").unlink()
    assert not skipped(tmp_path, tmp_path / "s.hdr")
    assert skipped(tmp_path, tmp_path / "s.hdr")
    write_scene(tmp_path / "t.img", cube(30, 20, 8, seed=8))
    os.rename(tmp_path / "t.img", tmp_path / "s")
    assert not skipped(tmp_path, tmp_path / "s.hdr")


@pytest.mark.parametrize("option, name", [("-statistics", "o.stat"), ("-apply", "o.json")])
def test_a_text_beside_the_header_of_an_output(tmp_path, scene, option, name):
    """The header of o.img does not belong to o.stat."""
    make = {"o.stat": ["gdal_hsi_statistics", scene, "-o", tmp_path / name],
            "o.json": ["gdal_hsi_pca", "-nc", 2, "-model", tmp_path / name, scene, tmp_path / "x.tif"]}[name]
    succeed(run(*make))
    line = ["gdal_hsi_pca", "-if-needed", option, tmp_path / name, scene, tmp_path / "o.img", "-of", "ENVI"]
    for again in (), ("-overwrite",):
        assert NOTHING not in succeed(run(*line, *again) if not again else run(*[w for w in line if w != "-if-needed"], *again)).out
    succeed(run(*line))
    assert NOTHING in succeed(run(*line)).out
