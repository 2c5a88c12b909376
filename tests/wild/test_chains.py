# SPDX-License-Identifier: MIT
"""Virtual scenes (.hsi): a chain of them gives the bits of the same chain with files, for any tiles, threads and
memory; and faults in a virtual scene are reported."""

import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from osgeo import gdal

from conftest import PLUGINS, cube, read, refuse, run, seen_pixels, stored_bytes, succeed, write_scene

BANDS = 12
WAVELENGTHS = [400 + 10 * b for b in range(BANDS)]
WAYS = [("-tile", 64, 64, "-threads", 1), ("-tile", 9, 7, "-threads", 3), ("-memory", "12MB", "-threads", 2)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Makes a scene with holes, a scene of floats, a library, a model."""
    folder = tmp_path_factory.mktemp("chains")
    data = cube(samples=53, lines=47, bands=BANDS)
    data[:, 20:25, 10:18] = -99
    data[3, 5, 5] = -99
    data[:, 40, 40] = 0
    write_scene(folder / "holes.img", data, dtype="i2", nodata=-99, wavelengths=WAVELENGTHS, bbl=[1] * 4 + [0] + [1] * 7,
                metadata={"WHERE": "here"})
    write_scene(folder / "plain.img", cube(samples=53, lines=47, bands=BANDS, seed=3), wavelengths=WAVELENGTHS)
    succeed(run("gdal_hsi_atdca", "-q", "-t", 4, folder / "plain.img", folder / "ends.gpkg",
                "-spectra", folder / "ends.sli"))
    labels = np.zeros((1, 47, 53))
    labels[0, 2:44, 2:50] = (np.arange(42)[:, None] // 11) % 3 + 1
    write_scene(folder / "labels.tif", labels, driver="GTiff", dtype="u1")
    return folder


def tool(name, *options):
    """A step of a chain: makes dst from src."""
    def make(source, target, *way):
        succeed(run(f"gdal_hsi_{name}", "-q", "-device", "cpu", "-overwrite", *options, *way, source, target))
    return make


def resampled(source, target, *way):
    bands = source.parent / "bands.csv"
    bands.write_text("wavelength_nm,fwhm\n" + "".join(f"{412 + 9 * k},14\n" for k in range(9)))
    succeed(run("gdal_hsi_resample", "-q", "-overwrite", "-bands", bands, *way, source, target))


def features(*options):
    def make(source, target, *way):
        succeed(run("gdal_hsi_features", "-q", "-overwrite", *options, *way, source, target))
    return make


LINKS = {
    "spp": tool("spp", "-ws", 5),
    "wide": tool("spp", "-ws", 9),
    "pca": tool("pca", "-nc", 5),
    "mnf": tool("mnf", "-nc", 5),
    "resample": resampled,
    "removed": features("-output", "removed"),
    "features": features("-range", "405-475nm", "-range", "450-505nm"),
}
OF_WAVELENGTHS = {"resample", "removed", "features"}  # required by these steps, and by steps before them
WITH_WAVELENGTHS = {"spp", "wide", "resample", "removed"}


def chain(folder, source, names, extension, way=()):
    """Makes the last file of a chain in which all steps except the last have this extension."""
    at = folder / source
    for number, name in enumerate(names):
        last = number + 1 == len(names)
        target = folder / f"{source}_{'_'.join(names)}_{number}{'.dat' if last else extension}"
        LINKS[name](at, target, *way)
        at = target
    return at


TWO = [pair for pair in itertools.product(LINKS, LINKS)
       if pair[0] in WITH_WAVELENGTHS or pair[1] not in OF_WAVELENGTHS]
THREE = [("spp", "wide", "pca"), ("wide", "pca", "mnf"), ("pca", "spp", "spp"), ("mnf", "wide", "pca"),
         ("resample", "spp", "removed"), ("spp", "removed", "pca")]


# Pairs alternate between the methods, and the scene with holes; chains of three are computed by every method from both
# scenes.
CHAINS = [("holes.img", names, WAYS[k % len(WAYS)]) for k, names in enumerate(TWO)]
CHAINS += [(source, names, None) for source in ("holes.img", "plain.img") for names in THREE]


@pytest.mark.parametrize("source, names, only", CHAINS, ids=[f"{source}-{'-'.join(names)}" for source, names, _ in CHAINS])
def test_bits_are_those_of_files(folder, source, names, only):
    by_files = stored_bytes(chain(folder, source, names, ".dat"))
    for way in [only] if only else WAYS:
        computed = chain(folder, source, names, ".hsi", way)
        assert stored_bytes(computed) == by_files, way


def detected(*options):
    def make(source, target, *way):
        succeed(run("gdal_hsi_detect", "-q", "-device", "cpu", "-overwrite", *options, *way, source, target))
    return make


def test_scores_of_a_chain(folder):
    options = ("-method", "rx")
    first = [folder / f"scores_in{extension}" for extension in (".dat", ".hsi")]
    for target in first:
        LINKS["spp"](folder / "plain.img", target)
    scores = [folder / f"scores{k}.dat" for k in range(2)]
    for source, target in zip(first, scores):
        detected(*options)(source, target)
    assert stored_bytes(scores[0]) == stored_bytes(scores[1])
    detected(*options)(folder / "plain.img", folder / "direct.dat")
    detected(*options)(folder / "plain.img", folder / "direct.hsi")
    assert (seen_pixels(folder / "direct.hsi", (1, 47, 53), folder).tobytes()
            == seen_pixels(folder / "direct.dat", (1, 47, 53), folder).tobytes())


@pytest.mark.parametrize("method", ["sam", "sid", "mf", "cem", "ace"])
def test_targets_and_mixtures(folder, method):
    source, library = folder / "plain.img", folder / "ends.sli"
    for extension in (".dat", ".hsi"):
        succeed(run("gdal_hsi_detect", "-q", "-overwrite", "-device", "cpu", "-method", method, "-target", library, source,
                    folder / f"of_targets{extension}"))
        succeed(run("gdal_hsi_unmix", "-q", "-overwrite", "-device", "cpu", source, library, folder / f"mixed{extension}"))
    for name, bands in (("of_targets", 4), ("mixed", 4)):
        assert (seen_pixels(folder / f"{name}.hsi", (bands, 47, 53), folder).tobytes()
                == seen_pixels(folder / f"{name}.dat", (bands, 47, 53), folder).tobytes())


def test_targets_and_map_of_a_chain(folder):
    for extension in (".dat", ".hsi"):
        LINKS["spp"](folder / "holes.img", folder / f"searched{extension}")
        succeed(run("gdal_hsi_atdca", "-q", "-overwrite", "-device", "cpu", "-t", 5, "-spectra", folder / f"t{extension}.sli",
                    "-map", folder / f"map{extension}", folder / f"searched{extension}", folder / f"t{extension}.gpkg"))
    assert (folder / "t.dat.sli").read_bytes() == (folder / "t.hsi.sli").read_bytes()

@pytest.mark.parametrize("trainer", ["svm_train", "sahic"])
def test_classes_of_a_chain(folder, trainer):
    for extension in (".dat", ".hsi"):
        LINKS["spp"](folder / "holes.img", folder / f"y{extension}")
        LINKS["pca"](folder / f"y{extension}", folder / f"c{extension}")
        if trainer == "svm_train":
            succeed(run("gdal_hsi_svm_train", "-q", "-overwrite", "-C", 10, "-gamma", 1, folder / f"c{extension}",
                        folder / "labels.tif", folder / f"model{extension}.json"))
            apply = ("gdal_hsi_svm_classify", "-apply", folder / f"model{extension}.json")
        else:
            succeed(run("gdal_hsi_sahic", "-q", "-overwrite", "-device", "cpu", "-no-spatial", "-model",
                        folder / f"model{extension}.json", folder / f"c{extension}", folder / "labels.tif",
                        folder / f"trained{extension}.tif"))
            apply = ("gdal_hsi_sahic", "-no-spatial", "-apply", folder / f"model{extension}.json")
        between = ["none"] if trainer == "sahic" else []
        succeed(run(*apply, "-q", "-overwrite", "-device", "cpu", folder / f"c{extension}", *between,
                    folder / f"classes{extension}.tif"))
    assert stored_bytes(folder / "classes.dat.tif") == stored_bytes(folder / "classes.hsi.tif")


FACTS = ("samples", "lines", "bands", "type", "nodata", "srs", "geotransform", "wavelengths_nm", "band_names", "fwhm_nm",
         "pixel_size", "band_numbers")


def facts_of(path):
    told = json.loads(succeed(run("gdal_hsi_info", "-json", path)).out)
    return {key: told[key] for key in FACTS if key in told}


@pytest.mark.parametrize("name", LINKS)
def test_it_says_what_the_file_would(folder, name):
    for extension in (".tif", ".hsi"):
        LINKS[name](folder / "holes.img", folder / f"said_{name}{extension}")
    assert facts_of(folder / f"said_{name}.hsi") == facts_of(folder / f"said_{name}.tif")


def test_options_of_the_source_travel(folder):
    options = ("-b", "2-4,7,9", "-srcwin", 5, 6, 30, 31)
    for extension in (".dat", ".hsi"):
        tool("spp", *options)(folder / "holes.img", folder / f"part{extension}")
        tool("pca", "-nc", 2, "-b", "1,3-4", "-srcwin", 2, 3, 20, 21, "-srcnodata", 5)(
            folder / f"part{extension}", folder / f"of_part{extension}.dat")
    assert stored_bytes(folder / "of_part.dat.dat") == stored_bytes(folder / "of_part.hsi.dat")


def test_a_folder_may_be_moved(folder, tmp_path):
    (tmp_path / "a" / "in").mkdir(parents=True)
    for name in ("plain.img", "plain.hdr"):
        shutil.copy2(folder / name, tmp_path / "a" / "in" / name)
    LINKS["spp"](tmp_path / "a" / "in" / "plain.img", tmp_path / "a" / "y.hsi")
    LINKS["pca"](tmp_path / "a" / "y.hsi", tmp_path / "a" / "c.hsi")
    os.rename(tmp_path / "a", tmp_path / "b")
    LINKS["mnf"](tmp_path / "b" / "c.hsi", tmp_path / "m.dat")
    document = json.loads((tmp_path / "b" / "y.hsi").read_text())
    assert document["source"]["path"] == "in/plain.img"


@pytest.mark.parametrize("absolute", [False, True])
def test_a_link_to_it_lies_in_another_folder(folder, tmp_path, absolute):
    """Relative names refer to the folder of the document, as in a VRT."""
    shutil.copytree(folder, tmp_path / "data")
    data, links = tmp_path / "data", tmp_path / "links" / "deeper"
    links.mkdir(parents=True)
    succeed(run("gdal_hsi_spp", "-q", data / "plain.img", data / "a.hsi"))
    os.symlink(data / "a.hsi" if absolute else "../../data/a.hsi", links / "b.hsi")
    os.symlink("b.hsi", links / "c.hsi")
    succeed(run("gdal_hsi_spp", "-q", data / "a.hsi", tmp_path / "want.tif"))
    for name in ("b.hsi", "c.hsi"):
        succeed(run("gdal_hsi_spp", "-q", "-overwrite", links / name, tmp_path / "y.tif"))
        assert np.array_equal(read(tmp_path / "y.tif"), read(tmp_path / "want.tif"))
    # Names written through a link also refer to that folder.
    succeed(run("gdal_hsi_spp", "-q", "-overwrite", "-ws", 5, data / "plain.img", links / "c.hsi"))
    assert os.path.islink(links / "c.hsi") and not os.path.islink(data / "a.hsi")
    succeed(run("gdal_hsi_pca", "-q", "-nc", 1, links / "c.hsi", tmp_path / "z.tif"))


def test_the_plan_shows_the_chain(folder):
    LINKS["spp"](folder / "plain.img", folder / "plan1.hsi")
    LINKS["wide"](folder / "plan1.hsi", folder / "plan2.hsi")
    out = succeed(run("gdal_hsi_pca", "-dry-run", folder / "plan2.hsi", folder / "plan.dat")).out
    kept = "results from the neighbourhood of each pixel are kept"
    assert f"plain.img ! spp (halo 2; {kept}) ! spp (halo 4; {kept})" in out
    assert "An .hsi: pixels are computed when they are read" in succeed(
        run("gdal_hsi_pca", "-dry-run", folder / "plan2.hsi", folder / "plan.hsi")).out


@pytest.fixture
def computed(folder, tmp_path):
    """Makes a separate scene, y.hsi from it, and an empty folder that must stay empty."""
    for name in ("plain.img", "plain.hdr"):
        shutil.copy2(folder / name, tmp_path / name)
    LINKS["spp"](tmp_path / "plain.img", tmp_path / "y.hsi")
    (tmp_path / "out").mkdir()
    return tmp_path


def test_a_changed_source(computed):
    os.utime(computed / "plain.img", ns=(0, 1))
    refuse(1, "changed after", "gdal_hsi_pca", computed / "y.hsi", computed / "out" / "c.dat", untouched=[computed])
    (computed / "plain.hdr").unlink()
    (computed / "plain.img").unlink()
    refuse(1, "is missing", "gdal_hsi_pca", computed / "y.hsi", computed / "out" / "c.dat", untouched=[computed])


def test_nodata_that_came_later(computed):
    """Nodata is in a file that other programs also write: a file with only statistics changes nothing."""
    side = computed / "plain.img.aux.xml"
    assert not side.exists()
    text = '<PAMDataset>\n<PAMRasterBand band="1">\n{}\n</PAMRasterBand>\n</PAMDataset>\n'
    side.write_text(text.format('<Metadata>\n<MDI key="STATISTICS_MAXIMUM">7</MDI>\n</Metadata>'))
    succeed(run("gdal_hsi_pca", "-q", computed / "y.hsi", computed / "c.dat"))
    value = float(read(computed / "plain.img")[0, 3, 3])
    side.write_text(text.format(f"<NoDataValue>{value!r}</NoDataValue>"))
    refuse(1, "the nodata of", "gdal_hsi_pca", computed / "y.hsi", computed / "out" / "c.dat", untouched=[computed])
    side.unlink()
    succeed(run("gdal_hsi_pca", "-q", "-overwrite", computed / "y.hsi", computed / "c.dat"))


def edited(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_a_version_of_the_future(computed):
    edited(computed / "y.hsi", lambda d: d.update(version=7))
    refuse(1, "version 7", "gdal_hsi_pca", computed / "y.hsi", computed / "out" / "c.dat", untouched=[computed])


def test_a_loop(computed):
    def turn_round(document):
        document["source"]["path"] = "y.hsi"
        document["source"]["files"] = [{"path": "plain.img", "bytes": (computed / "plain.img").stat().st_size,
                                        "modified": document["source"]["files"][0]["modified"]}]
    edited(computed / "y.hsi", turn_round)
    refuse(1, "computed from itself", "gdal_hsi_pca", computed / "y.hsi", computed / "out" / "c.dat", untouched=[computed])


DAMAGE = [
    lambda d: d.pop("source"), lambda d: d.pop("operation"), lambda d: d.pop("raster"),
    lambda d: d.update(raster="<VRTDataset rasterXSize='3' rasterYSize='3'><VRTRasterBand band='1'/></VRTDataset>"),
    lambda d: d.update(raster="none"), lambda d: d["source"].pop("files"), lambda d: d["source"].update(bands=[1, 2]),
    lambda d: d["source"].update(bands=[1000]), lambda d: d["source"].update(window=[0, 0, 9, 9]),
    lambda d: d["source"].update(path=""), lambda d: d["source"].update(nodata="x"),
    lambda d: d["operation"].update(name="sort"), lambda d: d["operation"].update(output=4),
    lambda d: d["operation"]["settings"].update(window=4), lambda d: d["operation"]["settings"].update(window=1e300),
    lambda d: d["operation"]["settings"].update(centroid=[1, 2]), lambda d: d["operation"]["settings"].update(centroid="x"),
    lambda d: d["operation"].update(settings=[]),
]


@pytest.mark.parametrize("number", range(len(DAMAGE)))
def test_damage_is_told(computed, number):
    edited(computed / "y.hsi", DAMAGE[number])
    refuse(1, "y.hsi", "gdal_hsi_pca", computed / "y.hsi", computed / "out" / "c.dat", untouched=[computed])


DAMAGED_LINKS = [("resample", change) for change in (
    lambda s: s.pop("bands"), lambda s: s.update(bands=[]), lambda s: s.update(inputs=3), lambda s: s["bands"].append(4),
    lambda s: s["bands"][0].update(sources=[12]), lambda s: s["bands"][0].update(sources=[]),
    lambda s: s["bands"][0].update(weights=["x"]), lambda s: s["bands"][1].pop("weights"), lambda s: s["bands"].pop())
] + [("features", change) for change in (
    lambda s: s.pop("ranges"), lambda s: s.update(ranges=[{}]), lambda s: s.update(output="all"),
    lambda s: s["ranges"][0]["bands"].pop(), lambda s: s["ranges"][0].update(bands=[0, 1, 1.5]),
    lambda s: s["ranges"][0]["x"].reverse(), lambda s: s.update(output="removed"))]


@pytest.mark.parametrize("number", range(len(DAMAGED_LINKS)))
def test_damaged_links_are_told(computed, number):
    name, change = DAMAGED_LINKS[number]
    LINKS[name](computed / "plain.img", computed / "z.hsi")
    edited(computed / "z.hsi", lambda d: change(d["operation"]["settings"]))
    refuse(1, "z.hsi", "gdal_hsi_pca", computed / "z.hsi", computed / "out" / "c.dat", untouched=[computed])


def test_half_a_file(computed):
    text = (computed / "y.hsi").read_text()
    for length in range(1, len(text) - 2, len(text) // 17):
        (computed / "y.hsi").write_text(text[:length])
        refuse(1, "y.hsi", "gdal_hsi_pca", computed / "y.hsi", computed / "out" / "c.dat", untouched=[computed])


def test_an_output_that_it_is_computed_from(computed):
    LINKS["pca"](computed / "y.hsi", computed / "c.hsi")
    for target in ("c.hsi", "y.hsi", "plain.img"):
        refuse(2, f"{target}' would overwrite ", "gdal_hsi_mnf", "-overwrite", computed / "c.hsi", computed / target, untouched=[computed])


def test_halos_beyond_memory(computed):
    LINKS["wide"](computed / "y.hsi", computed / "z.hsi")
    refuse(1, "memory", "gdal_hsi_pca", "-memory", "60KB", computed / "z.hsi", computed / "out" / "c.dat", untouched=[computed])


def test_what_an_hsi_does_not_hold(computed):
    source, target = computed / "plain.img", computed / "out" / "x.hsi"
    for says, *words in (("needs stored pixels", "gdal_hsi_eadp", source, target),
                         ("has no creation options", "gdal_hsi_pca", "-co", "A=B", source, target),
                         ("pixel types of a virtual scene", "gdal_hsi_pca", "-ot", "Float64", source, target),
                         ("needs stored pixels", "gdal_hsi_spp", "-alpha", computed / "out" / "alpha.hsi", source, target),
                         ("is a virtual scene", "gdal_hsi_spp", "-of", "VRT", computed / "y.hsi", computed / "out" / "x.vrt")):
        refuse(2, says, *words, untouched=[computed])


def test_values_that_are_nodata_by_chance(folder):
    """The file changes them to a neighbouring value, so that they remain values: abundances that are exactly 0."""
    for extension in (".dat", ".hsi"):
        succeed(run("gdal_hsi_unmix", "-q", "-overwrite", "-device", "cpu", "-dstnodata", 0, folder / "plain.img",
                    folder / "ends.sli", folder / f"chance{extension}"))
        LINKS["wide"](folder / f"chance{extension}", folder / f"of_chance{extension}.dat")
    tiny = np.finfo("f4").tiny
    assert (read(folder / "chance.dat") == tiny).sum() > 100
    assert stored_bytes(folder / "of_chance.dat.dat") == stored_bytes(folder / "of_chance.hsi.dat")


def test_gdal_without_the_plugin_takes_it_for_nothing(folder):
    """GDAL would read any text that begins like a VRT as a VRT, and show zeros."""
    tool("pca", "-nc", 1)(folder / "plain.img", folder / "alone.hsi")
    alone = {key: value for key, value in os.environ.items() if key != "GDAL_DRIVER_PATH"}
    program = "from osgeo import gdal; gdal.UseExceptions(); gdal.Open(r'%s')" % (folder / "alone.hsi")
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=alone)
    assert result.returncode != 0 and "not recognized" in result.stderr
    assert "gdal_HSI" in run("gdal_hsi_accuracy", folder / "labels.tif", folder / "alone.hsi", env=alone).err


PANNING = """
import sys
from osgeo import gdal
gdal.UseExceptions()
log = sys.argv[2]
dataset = gdal.Open(sys.argv[1])
band = dataset.GetRasterBand(1)
for window in sys.argv[3:]:
    begin = len(open(log).read())
    values = band.ReadAsArray(*map(int, window.split(",")))
    said = open(log).read()[begin:]
    print(sum(int(a) * int(b) for a, b in __import__("re").findall("computes ([0-9]+)x([0-9]+) pixels", said)),
          said.count(" pixels at "), __import__("zlib").crc32(values.tobytes()))
"""


def test_panning_computes_what_is_new(tmp_path):
    """A window is computed at once, in the blocks that the cache lacks. The same window again costs nothing, and a
    neighbouring window only its own blocks. The values equal the file's."""
    scene = write_scene(tmp_path / "scene.img", cube(samples=1300, lines=1100, bands=3), wavelengths=[400, 500, 600])
    for name in ("a.hsi", "a.tif"):
        succeed(run("gdal_hsi_detect", "-q", "-device", "cpu", "-method", "sam", "-target-pixel", 5, 5, scene, tmp_path / name))
    log = tmp_path / "log"
    log.touch()
    windows = ["300,260,500,500", "300,260,500,500", "560,260,500,500", "600,300,500,500", "0,0,1300,1100", "0,0,1300,1100"]

    def looked(name):
        told = subprocess.run([sys.executable, "-c", PANNING, tmp_path / name, log, *windows], capture_output=True, text=True,
                              check=True, timeout=300,
                              env={**os.environ, "GDAL_DRIVER_PATH": str(PLUGINS), "CPL_DEBUG": "HSI", "CPL_LOG": str(log)})
        return [list(map(int, line.split())) for line in told.stdout.splitlines()]
    computed, stored = looked("a.hsi"), looked("a.tif")
    assert [sums[2] for sums in computed] == [sums[2] for sums in stored]
    block = 128
    # Samples 300 to 799 cover 5 blocks, lines 260 to 759 cover 4; then two more columns of blocks, one more row, and
    # the rest.
    assert [sums[0] for sums in computed] == [20 * block ** 2, 0, 8 * block ** 2, 5 * block ** 2,
                                              1300 * 1100 - 33 * block ** 2, 0]
    assert [sums[1] for sums in computed][:4] == [1, 0, 1, 1]


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_an_archived_folder(tmp_path, kind):
    """ZIP files store times in steps of two seconds, other archives in whole seconds."""
    folder = tmp_path / "scene"
    folder.mkdir()
    write_scene(folder / "s.img", cube(20, 15, 6))
    for file in folder.iterdir():
        os.utime(file, ns=(1_700_000_001_250_000_000,) * 2)
    succeed(run("gdal_hsi_spp", "-q", "-ws", 3, folder / "s.img", folder / "y.hsi"))
    archive = shutil.make_archive(str(tmp_path / "archive"), kind, folder)
    for source, out in ((folder / "y.hsi", "near.img"), (f"/vsi{kind}/{archive}/y.hsi", "far.img")):
        succeed(run("gdal_hsi_pca", "-q", "-nc", 2, "-of", "ENVI", source, tmp_path / out))
    assert (tmp_path / "near.img").read_bytes() == (tmp_path / "far.img").read_bytes()


# ---- Documents from strangers (tests/links walks through all settings) ---------------------------------------------------


def test_a_description_that_is_a_name(computed):
    """It is the text of a VRT instead of a name: it must neither wait for a pipe nor contact a server."""
    os.mkfifo(computed / "pipe")
    for name in (computed / "pipe", "/vsicurl/http://127.0.0.1:9/x.vrt", computed / "plain.img"):
        edited(computed / "y.hsi", lambda d, n=name: d.update(raster=str(n)))
        refuse(1, "'raster' does not describe a raster", "gdal_hsi_info", computed / "y.hsi", untouched=[computed])


NAMES = [
    ("pipe", "pipe or a device"), ("/dev/zero", "pipe or a device"), ("/vsizip/{tmp}/pipe/a.tif", "pipe or a device"),
    ("/vsisubfile/0_100,{tmp}/pipe", "pipe or a device"), ('NETCDF:"{tmp}/pipe":v', "pipe or a device"),
    ("/vsicurl/http://127.0.0.1:{port}/a.tif", "not a file on this machine"), ("http://127.0.0.1:{port}/a.tif", "not a file"),
    ("/vsizip//vsicurl/http://127.0.0.1:{port}/a.zip/b.tif", "not a file"), ("/vsis3/bucket/a.tif", "not a file"),
    ("/vsicached?file=%2Fvsicurl%2Fhttp://127.0.0.1:{port}/a.tif", "not a file"), ("/vsistdin/", "not a file"),
    ('NETCDF:"/vsicurl/http://127.0.0.1:{port}/a.nc":v', "not a file"), ("WMS:http://127.0.0.1:{port}/?", "not a file"),
    ("PG:host=127.0.0.1 port={port}", "not a file"), ("{tmp}/server.xml", "not a file"),
    ("<VRTDataset rasterXSize='3' rasterYSize='3'/>", "a text in place of a file name"), ("{tmp}/far.vrt", "not a file"),
    ("/vsizip/{tmp}/far.zip/far.vrt", "not a file"), ("vrt://{tmp}/far.vrt?bands=1", "not a file"),
    ("{tmp}/pipe.vrt", "pipe or a device"), ("{tmp}/loop.vrt", "computed from itself"), ("a\0b", "zero bytes"),
    ("x" * 5000, "too long"),
]


@pytest.mark.parametrize("number", range(len(NAMES)))
def test_what_a_document_may_name(computed, number):
    """Files and folders of this machine. No pipe is opened and no server contacted, however the name is wrapped."""
    name, message = NAMES[number]
    os.mkfifo(computed / "pipe")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (computed / "server.xml").write_text(f"<GDAL_WMS><Service><ServerUrl>http://127.0.0.1:{port}/</ServerUrl></Service></GDAL_WMS>")
        for vrt, source in (("far", f"/vsicurl/http://127.0.0.1:{port}/a.tif"), ("pipe", "pipe"), ("loop", "y.hsi")):
            (computed / f"{vrt}.vrt").write_text(
                '<VRTDataset rasterXSize="3" rasterYSize="3"><VRTRasterBand dataType="Float32" band="1"><SimpleSource>'
                f'<SourceFilename relativeToVRT="1">{source}</SourceFilename></SimpleSource></VRTRasterBand></VRTDataset>')
        with zipfile.ZipFile(computed / "far.zip", "w") as archive:
            archive.write(computed / "far.vrt", "far.vrt")
        name = name.replace("{tmp}", str(computed)).replace("{port}", str(port))
        edited(computed / "y.hsi", lambda d: d["source"].update(path=name))
        refuse(1, message, "gdal_hsi_info", computed / "y.hsi", untouched=[computed])
        edited(computed / "y.hsi", lambda d: d["source"].update(path="plain.img"))
        if ".vrt" not in name and not name.endswith(".xml"):
            edited(computed / "y.hsi", lambda d: d["source"]["files"][0].update(path=name))
            refuse(1, message, "gdal_hsi_info", computed / "y.hsi", untouched=[computed])
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_long_chain(computed):
    """Each document refers to the next. The chain is refused by its length, before the stack overflows."""
    for k in range(70):
        source = computed / (f"c{k - 1}.hsi" if k else "y.hsi")
        made = json.loads((computed / "y.hsi").read_text())
        facts = source.stat()
        made["source"].update(path=source.name, file_count=1, files=[{
            "path": source.name, "bytes": facts.st_size, "modified": f"{facts.st_mtime_ns // 10**9}.{facts.st_mtime_ns % 10**9:09d}"}])
        (computed / f"c{k}.hsi").write_text(json.dumps(made))
    succeed(run("gdal_hsi_info", computed / "c20.hsi"))
    refuse(1, "more than 64 scenes", "gdal_hsi_info", computed / "c69.hsi", untouched=[computed])


def test_a_caller_may_allow_servers(computed):
    """The server does not exist. With the option it is contacted; without it, the message names the option."""
    edited(computed / "y.hsi", lambda d: d["source"].update(path="/vsicurl/http://127.0.0.1:9/a.tif"))
    result = run("gdal_hsi_info", computed / "y.hsi")
    assert result.code == 1 and "--config GDAL_HSI_SERVERS YES" in result.err
    allowed = run("gdal_hsi_info", "--config", "GDAL_HSI_SERVERS", "YES", computed / "y.hsi")
    assert allowed.code == 1 and "not a file on this machine" not in allowed.err


def test_names_above_the_folder(computed):
    """A document that a tool wrote in another folder refers back with "..", and moves with both folders."""
    LINKS["spp"](computed / "plain.img", computed / "out" / "z.hsi")
    assert json.loads((computed / "out" / "z.hsi").read_text())["source"]["path"] == "../plain.img"
    succeed(run("gdal_hsi_info", computed / "out" / "z.hsi"))


def test_many_bands_are_refused_at_once(computed):
    edited(computed / "y.hsi", lambda d: d["source"].update(bands=[1] * 300000))
    refuse(1, "at most 65536 are possible", "gdal_hsi_info", computed / "y.hsi", untouched=[computed])


def test_a_map_that_names_a_pipe_as_its_model(tmp_path):
    """gdal_hsi_accuracy reads a map's model for its labels, if the file exists."""
    os.mkfifo(tmp_path / "pipe")
    for name in ("map.tif", "labels.tif"):
        dataset = gdal.GetDriverByName("GTiff").Create(str(tmp_path / name), 8, 8, 1, gdal.GDT_Byte)
        dataset.WriteArray(np.tile(np.arange(8, dtype="u1") // 4 + 1, (8, 1)))
        if name == "map.tif":
            dataset.SetMetadata({"HSI_HISTORY": "gdal_hsi_spp a b", "HSI_SVM_MODEL": str(tmp_path / "pipe")})
        dataset = None
    result = succeed(run("gdal_hsi_accuracy", tmp_path / "map.tif", tmp_path / "labels.tif"))
    assert "was made with the neighbours of pixels" in result.err
