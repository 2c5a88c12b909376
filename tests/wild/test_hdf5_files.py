# SPDX-License-Identifier: MIT
"""Files to which a scene refers are inputs of the run: HDF5 with external values, VRTs as text in VRTs, virtual Zarr
datasets. Outputs cannot replace them, and missing files are reported before any work."""

import os
import pathlib

import numpy as np
import pytest
from conftest import cube, first_error, read, run, succeed, write_scene
from osgeo import gdal

h5py = pytest.importorskip("h5py")

BANDS = 8
VALUES = np.moveaxis(cube(samples=10, lines=12, bands=BANDS), 0, 2).astype("f4")


def site(h, make):
    """Makes NEON's layout; `make` puts the cube into its group."""
    group = h.create_group("SITE/Reflectance")
    make(group)
    spectral = group.create_group("Metadata/Spectral_Data")
    spectral["Wavelength"] = np.linspace(400, 2400, BANDS)
    spectral["FWHM"] = np.full(BANDS, 10.)
    place = group.create_group("Metadata/Coordinate_System")
    place["Map_Info"] = np.bytes_("UTM, 1.000, 1.000, 300000.000, 4000000.000, 1.0, 1.0, 11, North, WGS-84, units=Meters, 0")
    place["EPSG Code"] = np.bytes_("32611")


def mapped(group, sources, name="Reflectance_Data"):
    """Makes a virtual dataset whose lines come from several sources (file, dataset, lines)."""
    layout = h5py.VirtualLayout(VALUES.shape, "f4")
    for file, inner, lines in sources:
        size = len(range(*lines.indices(len(VALUES))))
        layout[lines] = h5py.VirtualSource(file, inner, shape=(size, *VALUES.shape[1:]))
    group.create_virtual_dataset(name, layout, fillvalue=-9999)


def storage(folder):
    with h5py.File(folder / "scene.h5", "w") as h:
        site(h, lambda g: g.create_dataset("Reflectance_Data", shape=VALUES.shape, dtype="f4", external=[
            ("raw.bin", 0, h5py.h5f.UNLIMITED)]).__setitem__(..., VALUES))
    return ["raw.bin"]


def mapping(folder):
    with h5py.File(folder / "scene.h5", "w") as h:
        site(h, lambda g: mapped(g, [("a.h5", "d", slice(0, 5)), ("b.h5", "x/d", slice(5, 12))]))
    with h5py.File(folder / "a.h5", "w") as h:
        h["d"] = VALUES[:5]
    with h5py.File(folder / "b.h5", "w") as h:
        h["x/d"] = VALUES[5:]
    return ["a.h5", "b.h5"]


def numbered(folder):
    """Makes part_0.h5, part_1.h5 ... with one pattern, which HDF5 allows for unlimited datasets."""
    space = h5py.h5s.create_simple(VALUES.shape, (h5py.h5s.UNLIMITED, *VALUES.shape[1:]))
    source = h5py.h5s.create_simple((4, *VALUES.shape[1:]))
    source.select_all()
    chosen = space.copy()
    chosen.select_hyperslab((0, 0, 0), (h5py.h5s.UNLIMITED, 1, 1), (4, 1, 1), (4, *VALUES.shape[1:]))
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_virtual(chosen, b"part_%b.h5", b"d", source)
    with h5py.File(folder / "scene.h5", "w", libver="latest") as h:
        site(h, lambda g: h5py.h5d.create(g.id, b"Reflectance_Data", h5py.h5t.IEEE_F32LE, space, creation))
    for k in range(3):
        with h5py.File(folder / f"part_{k}.h5", "w") as h:
            h["d"] = VALUES[4 * k:4 * k + 4]
    return ["part_0.h5", "part_1.h5", "part_2.h5"]


def link(folder):
    """The source is a link into another file, whose values are in a third file. (GDAL does not follow links in the
    scene's own file.)"""
    with h5py.File(folder / "scene.h5", "w") as h:
        site(h, lambda g: mapped(g, [("inner.h5", "group/d", slice(0, 12))]))
    with h5py.File(folder / "inner.h5", "w") as h:
        h["group"] = h5py.ExternalLink("last.h5", "/within")
    with h5py.File(folder / "last.h5", "w") as h:
        mapped(h.create_group("within"), [("a.h5", "d", slice(0, 12))], "d")
    with h5py.File(folder / "a.h5", "w") as h:
        h["d"] = VALUES
    return ["inner.h5", "last.h5", "a.h5"]


def crowded(folder):
    """Makes groups of hundreds of members, of the older and the newer form, with many attributes before them."""
    for name, version in (("a.h5", "earliest"), ("scene.h5", "latest")):
        with h5py.File(folder / name, "w", libver=version, track_order=version == "latest") as h:
            if name == "scene.h5":
                site(h, lambda g: mapped(g, [("a.h5", "more/d", slice(0, 12))]))
            for k in range(700):
                h[f"more/{'n' * (k % 50)}{k}"] = k
                if k % 9 == 0:
                    h["more"].attrs[f"note {k}"] = "x" * (k * 3)
            if name == "a.h5":
                h["more/d"] = VALUES
    return ["a.h5"]


KINDS = [storage, mapping, numbered, link, crowded]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """HDF5 searches for external values in the folder in which the command runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_product_refers_to_is_never_replaced(here, kind):
    sources = kind(here)
    succeed(run("gdal_hsi_pca", "-q", "-nc", "2", "scene.h5", "out.tif"))
    for name in sources:
        before = (here / name).read_bytes()
        result = run("gdal_hsi_pca", "-q", "-nc", "2", "-of", "GTiff", "-overwrite", "scene.h5", name)
        assert result.code == 2 and "would overwrite" in first_error(result), result.err
        assert (here / name).read_bytes() == before
        (here / "linked").unlink(missing_ok=True)
        os.link(here / name, here / "linked")  # the same file with another name
        assert run("gdal_hsi_pca", "-q", "-of", "GTiff", "-overwrite", "scene.h5", "linked").code == 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_values_are_those_of_the_other_files(here, kind):
    kind(here)
    succeed(run("gdal_hsi_spp", "-q", "-ws", "3", "scene.h5", "out.tif"))
    plain = write_scene(here / "plain.img", np.moveaxis(VALUES, 2, 0))
    succeed(run("gdal_hsi_spp", "-q", "-ws", "3", plain, "expected.tif"))
    np.testing.assert_array_equal(read("out.tif"), read("expected.tif"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_source_is_an_error(here, kind):
    sources = kind(here)
    for name in sources if kind is not numbered else []:
        (here / name).rename(here / "away")
        result = run("gdal_hsi_pca", "-q", "scene.h5", "out.tif")
        assert result.code == 1 and not (here / "out.tif").exists(), (name, result.err)
        assert name in first_error(result) and "is missing" in first_error(result), result.err
        (here / "away").rename(here / name)
    succeed(run("gdal_hsi_pca", "-q", "-overwrite", "scene.h5", "out.tif"))


def test_a_source_without_the_dataset_is_an_error(here):
    mapping(here)
    with h5py.File(here / "b.h5", "a") as h:
        h.move("x/d", "x/e")
    assert "b.h5', which has no 'x/d'" in first_error(run("gdal_hsi_pca", "-q", "scene.h5", "out.tif"))
    with h5py.File(here / "b.h5", "a") as h:
        h["x/d"] = h5py.SoftLink("/x/e")
    succeed(run("gdal_hsi_pca", "-q", "scene.h5", "out.tif"))


def test_a_source_that_is_not_needed_may_be_missing(here):
    mapping(here)
    with h5py.File(here / "scene.h5", "a") as h:
        mapped(h, [("nowhere.h5", "d", slice(0, 12))], "Quicklook")
        h["link"] = h5py.ExternalLink("gone.h5", "/")
    succeed(run("gdal_hsi_pca", "-q", "scene.h5", "out.tif"))


@pytest.mark.parametrize("version", ["earliest", "latest"])
@pytest.mark.parametrize("name", ["scene.h5", "HDF5:scene.h5://cube", 'NETCDF:"scene.h5":cube'])
def test_a_link_to_a_pipe_is_not_followed(here, name, version):
    """The library would open the target of a link, and wait for the other end of the pipe."""
    (here / "in").mkdir()
    os.mkfifo(here / "in/p")
    for target in ("in/p", str(here / "in/p"), "next.h5"):
        with h5py.File("scene.h5", "w", libver=version) as h:
            h["other"] = VALUES
            h["cube"] = h5py.ExternalLink(target, "/cube")
            for k in range(40 if version == "latest" else 0):  # links in a heap
                h[f"link {k}"] = h5py.ExternalLink("gone.h5", "/")
        with h5py.File("next.h5", "w") as h:
            h["cube"] = h5py.ExternalLink("in/p", "/cube")
        result = run("gdal_hsi_pca", "-q", name, "out.tif")
        assert result.code == 1 and "in/p', which is a pipe or a device" in first_error(result), result.err
        assert not (here / "out.tif").exists()


def test_storage_that_lies_beside_the_file_is_named(here, tmp_path_factory, monkeypatch):
    storage(here)
    other = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(other)
    result = run("gdal_hsi_pca", "-q", here / "scene.h5", "out.tif")
    assert result.code == 1 and f"HDF5_EXTFILE_PREFIX='{here}'" in result.err, result.err
    monkeypatch.setenv("HDF5_EXTFILE_PREFIX", str(here))
    succeed(run("gdal_hsi_pca", "-q", here / "scene.h5", "out.tif"))
    assert run("gdal_hsi_pca", "-q", "-of", "GTiff", "-overwrite", here / "scene.h5", here / "raw.bin").code == 2


@pytest.mark.parametrize("prefix", ["HDF5:", "NETCDF:"])
def test_arrays_by_name_and_vrts_of_them(here, prefix):
    with h5py.File("cube.h5", "w") as h:
        mapped(h, [("a.h5", "d", slice(0, 5)), ("b.h5", "d", slice(5, 12))], "cube")
        mapped(h, [("gone.h5", "d", slice(0, 12))], "other")
    for name, lines in (("a.h5", slice(0, 5)), ("b.h5", slice(5, 12))):
        with h5py.File(name, "w") as h:
            h["d"] = VALUES[lines]
    array = prefix + ('"cube.h5"://cube' if prefix == "HDF5:" else '"cube.h5":cube')
    if not gdal.Open(array):
        pytest.skip("this GDAL does not read it")
    gdal.Translate("cube.vrt", array, format="VRT")
    for scene in (array, "cube.vrt"):
        succeed(run("gdal_hsi_pca", "-q", "-overwrite", scene, "out.tif"))
        for name in ("cube.h5", "a.h5", "b.h5"):
            result = run("gdal_hsi_pca", "-q", "-of", "GTiff", "-overwrite", scene, name)
            assert result.code == 2, (scene, name, result.err)
    os.rename("b.h5", "away.h5")
    for scene in (array, "cube.vrt"):
        result = run("gdal_hsi_pca", "-q", "-overwrite", scene, "out.tif")
        assert result.code == 1 and "b.h5" in first_error(result), (scene, result.err)


def vrt(source, size=(10, 12)):
    return (f'<VRTDataset rasterXSize="{size[0]}" rasterYSize="{size[1]}">' + "".join(
        f'<VRTRasterBand dataType="Float32" band="{b}"><SimpleSource><SourceFilename relativeToVRT="0">{source}'
        f"</SourceFilename><SourceBand>{b}</SourceBand></SimpleSource></VRTRasterBand>" for b in (1, 2, 3)) + "</VRTDataset>")


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def test_vrts_within_vrts(here):
    write_scene("s.img", cube(samples=10, lines=12, bands=3))
    inner, text = "s.img", ""
    for depth in range(3):
        text = vrt(inner)
        inner = escaped(text)
        pathlib.Path("top.vrt").write_text(text)
        for scene in ("top.vrt", text, "vrt://top.vrt?bands=1,2,3"):
            succeed(run("gdal_hsi_pca", "-q", "-nc", "1", "-overwrite", scene, "out.tif"))
            for name in ("s.img", "s.hdr"):
                before = pathlib.Path(name).read_bytes()
                result = run("gdal_hsi_pca", "-q", "-of", "GTiff", "-nc", "1", "-overwrite", scene, name)
                assert result.code == 2, (depth, scene, name, result.err)
                assert pathlib.Path(name).read_bytes() == before


def test_what_kerchunk_names_is_read(here):
    """GDAL 3.11 and newer opens it; the register lists the files with any GDAL."""
    with h5py.File("a.h5", "w") as h:
        h["d"] = VALUES
    pathlib.Path("refs.json").write_text('{"version": 1, "refs": {"d/0.0.0": ["a.h5", 2048, 3840]}}')
    before = pathlib.Path("a.h5").read_bytes()
    scene = 'ZARR:"/vsikerchunk_json_ref/{refs.json}"'
    result = run("gdal_hsi_pca", "-q", "-of", "GTiff", "-overwrite", "-report", "a.h5", scene, "out.tif")
    assert result.code == 2 and pathlib.Path("a.h5").read_bytes() == before, result.err
