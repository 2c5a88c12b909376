# SPDX-License-Identifier: MIT
"""MATLAB's .mat files of versions 4, 5 and 7.3 as scenes, labels and libraries. scipy and h5py make the files, or the
test itself if they cannot; the right values come from numpy."""

import json
import os
import pathlib
import random
import resource
import struct
import zlib

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse

from conftest import (assert_untouched, first_error, open_band, quick_only, read, real_scene, run, stored_bytes,
                      succeed, write_scene)

LINES, SAMPLES, BANDS = 5, 7, 11  # all different, so that transposed axes do not match
CLASSES = {"double": "f8", "single": "f4", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4",
           "uint32": "u4", "int64": "i8", "uint64": "u8"}


def numbers(dtype="u2", lines=LINES, samples=SAMPLES, bands=BANDS, seed=1):
    """Returns (line, sample, band), all different, with negative values and fractions if the type has them."""
    kind = np.dtype(dtype)
    values = np.random.default_rng(seed).permutation(lines * samples * bands).reshape(lines, samples, bands) + 1.0
    if kind.itemsize == 1:
        values %= 120
    if kind.kind in "if":
        values[::2] *= -1
    if kind.kind == "f":
        values += 0.25
    values[values == 0] = 3
    return values.astype(kind)


def element(number, data, order):
    return struct.pack(order + "II", number, len(data)) + data + b"\0" * (-len(data) % 8)


def matrix(name, array, order, stored=None):
    """Returns a variable of version 5. `stored`: the type of the numbers in the file, where MATLAB uses a smaller
    type."""
    classes = dict(zip(CLASSES.values(), range(6, 16)))
    stored_as = {"i1": 1, "u1": 2, "i2": 3, "u2": 4, "i4": 5, "u4": 6, "f4": 7, "f8": 9, "i8": 12, "u8": 13}
    stored = stored or array.dtype.str[1:]
    logical = 0x0200 if array.dtype == bool else 0
    kind = classes["u1" if logical else array.dtype.str[1:]]
    stored = "u1" if logical else stored
    content = element(6, struct.pack(order + "II", kind | logical, 0), order)
    content += element(5, struct.pack(order + f"{array.ndim}i", *array.shape), order)
    content += element(1, name.encode(), order)
    content += element(stored_as[stored], array.astype(order + stored).tobytes("F"), order)
    return element(14, content, order)


def save5(path, variables, order="<", compressed=False, stored=None):
    text = b"MATLAB 5.0 MAT-file, made by hand".ljust(116) + b"\0" * 8
    text += struct.pack(order + "H", 0x0100) + (b"IM" if order == "<" else b"MI")
    for name, array in variables.items():
        one = matrix(name, array, order, stored)
        if compressed:
            packed = zlib.compress(one, 1)
            one = struct.pack(order + "II", 15, len(packed)) + packed
        text += one
    path.write_bytes(text)


def save73(path, variables, **storage):
    """Saves as MATLAB's version 7.3: HDF5 after a block of 512 bytes, with the first subscript in the last axis."""
    names = {code: name for name, code in CLASSES.items()}

    def put(group, name, value):
        if isinstance(value, dict):
            inner = group.create_group(name)
            inner.attrs["MATLAB_class"] = np.bytes_("struct")
            for field, one in value.items():
                put(inner, field, one)
            return
        if isinstance(value, str):
            made = group.create_dataset(name, data=np.array([[ord(c)] for c in value], "u2"))
            made.attrs["MATLAB_class"] = np.bytes_("char")
            return
        logical = value.dtype == bool
        made = group.create_dataset(name, data=value.astype("u1").T if logical else value.T,
                                    **(storage if value.ndim == 3 else {}))
        complex_numbers = value.dtype.kind == "c"
        made.attrs["MATLAB_class"] = np.bytes_(
            "logical" if logical else "double" if complex_numbers else names[value.dtype.str[1:]])

    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in variables.items():
            put(file, name, value)
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64 HDF5 schema 1.00 .".ljust(116) + b"\0" * 8 + b"\x00\x02IM")


WRITERS = {
    "scipy": lambda path, variables: scipy.io.savemat(path, variables),
    "scipy, compressed": lambda path, variables: scipy.io.savemat(path, variables, do_compression=True),
    "big-endian": lambda path, variables: save5(path, variables, ">"),
    "big-endian, compressed": lambda path, variables: save5(path, variables, ">", True),
    "7.3": lambda path, variables: save73(path, variables),
    "7.3, chunks": lambda path, variables: save73(path, variables, chunks=(2, 3, 2), compression="gzip"),
}


def expect_scene(name, data, *options):
    """Checks that the scene with this name has the values of `data` (line, sample, band)."""
    reference = pathlib.Path(str(name).partition(".mat")[0] + ".reference.img")
    write_scene(reference, np.moveaxis(data, 2, 0), dtype="f8", geotransform=None, epsg=None)
    result = succeed(run("gdal_hsi_compare", "-json", "-metric", "maxabs", "-max-maxabs", 0, *options, name, reference))
    assert json.loads(result.out)["pixels"]["compared"] > 0


def info(path, *options):
    return json.loads(succeed(run("gdal_hsi_info", "-json", *options, path)).out)


@pytest.mark.parametrize("writer", WRITERS)
def test_every_class_of_numbers(tmp_path, writer):
    path = tmp_path / "scene.mat"
    cubes = {f"as_{kind}": numbers(dtype, seed=number) for number, (kind, dtype) in enumerate(CLASSES.items())}
    WRITERS[writer](path, cubes)
    types = {"double": ["Float64"], "single": ["Float32"], "uint8": ["Byte"], "int8": ["Int8", "Int16"], "int16": ["Int16"],
             "uint16": ["UInt16"], "int32": ["Int32"], "uint32": ["UInt32"], "int64": ["Int64"], "uint64": ["UInt64"]}
    for kind, wanted in types.items():
        expect_scene(f"{path}:as_{kind}", cubes[f"as_{kind}"])
        if "compressed" in writer:
            continue
        seen = info(f"{path}:as_{kind}")
        assert seen["driver"] == "MATLAB" and seen["type"] in wanted
        assert seen["size"] == [SAMPLES, LINES, BANDS]
        assert f": as_{kind} ({LINES}x{SAMPLES}x{BANDS} {kind});" in seen["product"]
        assert seen["geotransform"] is None and seen["nodata"] is None


@pytest.mark.parametrize("writer", WRITERS)
def test_a_window_and_some_bands(tmp_path, writer):
    path = tmp_path / "scene.mat"
    data = numbers("i2")
    WRITERS[writer](path, {"cube": data})
    expect_scene(path, data, "-srcwin", 2, 1, 4, 3, "-b", "9,2-4")


@pytest.mark.parametrize("stored", ["u1", "u2", "i2", "i4"])
@pytest.mark.parametrize("compressed", [False, True])
def test_doubles_that_are_stored_as_something_smaller(tmp_path, stored, compressed):
    data = (np.abs(numbers("i2")) % 100).astype("f8") + 1
    save5(tmp_path / "scene.mat", {"cube": data}, "<", compressed, stored)
    assert info(tmp_path / "scene.mat")["type"] == "Float64"
    expect_scene(tmp_path / "scene.mat", data)


def test_descriptions_of_other_programs(tmp_path):
    """Sizes without a sign, and names in UTF-8 or unsigned bytes, as programs other than MATLAB write them."""
    save5(tmp_path / "scene.mat", {"cube": numbers()})
    text = (tmp_path / "scene.mat").read_bytes()
    for kind in (2, 16):
        changed = text.replace(struct.pack("<II", 5, 12), struct.pack("<II", 6, 12))
        changed = changed.replace(struct.pack("<II", 1, 4) + b"cube", struct.pack("<II", kind, 4) + b"cube")
        assert changed != text
        (tmp_path / "other.mat").write_bytes(changed)
        expect_scene(f"{tmp_path}/other.mat:cube", numbers())


def test_numbers_stored_as_what_their_class_cannot_hold(tmp_path):
    save5(tmp_path / "scene.mat", {"cube": numbers("u1")}, stored="f8")
    result = run("gdal_hsi_info", tmp_path / "scene.mat")
    assert result.code == 1 and "is uint8, but is stored as another type" in first_error(result)


@pytest.mark.parametrize("writer", WRITERS)
def test_logical_values_are_an_image(tmp_path, writer):
    mask = numbers()[:, :, 0] % 3 == 0
    (save5 if "scipy" in writer else WRITERS[writer])(tmp_path / "mask.mat", {"mask": mask})
    assert "logical" in info(tmp_path / "mask.mat")["product"]
    expect_scene(tmp_path / "mask.mat", mask[:, :, None].astype("f8"))


@pytest.mark.quick
def test_version_4(tmp_path):
    scene = numbers()
    scipy.io.savemat(tmp_path / "v4.mat", {"Y": scene.reshape(-1, BANDS, order="F").T.astype("f8"), "nRow": float(LINES),
                                           "nCol": float(SAMPLES)}, format="4")
    assert "MATLAB 4" in info(tmp_path / "v4.mat")["product"]
    expect_scene(tmp_path / "v4.mat", scene)
    text = (tmp_path / "v4.mat").read_bytes()
    (tmp_path / "short.mat").write_bytes(text[:-1])
    result = run("gdal_hsi_info", tmp_path / "short.mat")
    assert result.code == 1 and "ends early" in first_error(result)
    # Big-endian, as Sun and Macintosh wrote it.
    image = scene[:, :, 0].astype(">i2")
    head = struct.pack(">5i", 1030, LINES, SAMPLES, 0, 6) + b"image\0"
    (tmp_path / "big.mat").write_bytes(head + image.tobytes("F"))
    expect_scene(tmp_path / "big.mat", scene[:, :, :1])


@pytest.mark.parametrize("writer", WRITERS)
def test_pixels_in_a_list(tmp_path, writer):
    """As sets for unmixing are published: bands x pixels, with the size next to it; or transposed."""
    data = numbers("f8")
    pixels = data.reshape(-1, BANDS, order="F")
    size = {"nRow": np.array([[float(LINES)]]), "nCol": np.array([[float(SAMPLES)]]), "maxValue": np.array([[12.0]])}
    WRITERS[writer](tmp_path / "y.mat", {"Y": np.asfortranarray(pixels.T), **size})
    expect_scene(tmp_path / "y.mat", data)
    WRITERS[writer](tmp_path / "turned.mat", {"V": np.asfortranarray(pixels), **size})
    expect_scene(tmp_path / "turned.mat", data)


def test_what_is_no_array_of_real_numbers(tmp_path):
    data = numbers("f8")
    scipy.io.savemat(tmp_path / "a.mat", {
        "waves": data + 1j, "thin": scipy.sparse.csc_matrix(np.eye(6)), "word": "text", "cells": np.array(["a", 1], dtype=object),
        "several": np.array([(1, 2), (3, 4)], dtype=[("x", "f8"), ("y", "f8")]), "none": np.zeros((0, 3)),
        "four": np.ones((2, 3, 2, 2))})
    for name, words in {"waves": "complex double) is not an array of real numbers", "thin": "sparse) is not an array of real",
                        "word": "char) is not an array of real", "cells": "cell) is not an array", "several": "struct) is not an array",
                        "none": "is empty", "four": "more than three subscripts", "other": "has no variable 'other'"}.items():
        result = run("gdal_hsi_info", f"{tmp_path}/a.mat:{name}")
        assert result.code == 1 and words in first_error(result), result.err
    save73(tmp_path / "b.mat", {"waves": data + 1j})
    result = run("gdal_hsi_info", f"{tmp_path}/b.mat:waves")
    assert result.code == 1 and "complex double) is not an array of real numbers" in first_error(result)
    assert "waves (5x7x11 complex double)" in run("gdal_hsi_info", tmp_path / "b.mat").err


@pytest.mark.parametrize("writer", WRITERS)
def test_several_arrays_and_fields(tmp_path, writer):
    first, second = numbers(seed=1), numbers(lines=3, samples=4, bands=6, seed=2)
    path = tmp_path / "two.mat"
    WRITERS[writer](path, {"first": first, "second": second, "gt": first[:, :, 0]})
    result = run("gdal_hsi_info", path)
    assert result.code == 1
    assert first_error(result).endswith(
        "has several arrays that may be the scene: first (5x7x11 uint16), second (3x4x6 uint16)")
    assert f"{path}:first" in result.err
    expect_scene(f"{path}:second", second)
    expect_scene(f"{path}:gt", first[:, :, :1])
    if "big" in writer:
        return
    path = tmp_path / "fields.mat"
    WRITERS[writer](path, {"s": {"cube": first, "deep": {"image": second[:, :, 0]}}})
    expect_scene(path, first)
    expect_scene(f"{path}:s.cube", first)
    expect_scene(f"{path}:s.deep.image", second[:, :, :1])
    result = run("gdal_hsi_info", f"{path}:s")
    assert result.code == 1 and "struct 's': s.cube (5x7x11 uint16), s.deep.image (3x4 uint16)" in first_error(result)


def test_names_with_colons(tmp_path):
    first, second, third = (numbers(seed=k) for k in range(3))
    scipy.io.savemat(tmp_path / "scene.mat", {"cube": first})
    # A file of exactly this name has priority.
    scipy.io.savemat(tmp_path / "scene.mat:cube", {"other": second}, appendmat=False)
    expect_scene(tmp_path / "scene.mat:cube", second)
    os.remove(tmp_path / "scene.mat:cube")
    expect_scene(f"{tmp_path}/scene.mat:cube", first)
    # As Windows names a file, and a folder with a colon.
    windows = tmp_path / "C:\\scenes\\a.mat"
    scipy.io.savemat(windows, {"cube": third, "more": second})
    expect_scene(f"{windows}:cube", third)
    folder = tmp_path / "at 12:30"
    folder.mkdir()
    scipy.io.savemat(folder / "a.mat", {"cube": third})
    expect_scene(folder / "a.mat", third)
    expect_scene(f"{folder}/a.mat:cube", third)
    assert run("gdal_hsi_info", f"{tmp_path}/nothing.mat:cube").code == 1


@pytest.mark.parametrize("writer", WRITERS)
def test_wavelengths(tmp_path, writer):
    data = numbers()
    nm = np.linspace(400, 2400, BANDS)
    WRITERS[writer](tmp_path / "a.mat", {"cube": data, "Wavelengths": nm[:, None], "fwhm": np.full((1, BANDS), 9.5)})
    seen = info(tmp_path / "a.mat")
    assert seen["wavelengths_nm"] == pytest.approx(list(nm)) and seen["fwhm_nm"] == [9.5] * BANDS
    WRITERS[writer](tmp_path / "b.mat", {"cube": data, "wl": (nm / 1000)[None, :].astype("f4")})
    assert info(tmp_path / "b.mat")["wavelengths_nm"] == pytest.approx(list(nm), rel=1e-6)
    WRITERS[writer](tmp_path / "c.mat", {"cube": data, "lambda": nm[None, :-1]}) # with another number of bands
    assert all(value is None for value in info(tmp_path / "c.mat")["wavelengths_nm"])
    # The wavelengths show that bands come first.
    WRITERS[writer](tmp_path / "d.mat", {"cube": np.moveaxis(data, 2, 0), "wl": nm[None, :]})
    assert info(tmp_path / "d.mat")["size"] == [SAMPLES, LINES, BANDS]
    expect_scene(tmp_path / "d.mat", data)


def scene_with_classes(folder, lines=24, samples=30, bands=8):
    labels = (np.arange(lines)[:, None] // 6 + np.arange(samples)[None, :] // 10) % 3 + 1
    labels[::5] = 0
    spectra = np.random.default_rng(4).uniform(100, 900, (4, bands))
    data = spectra[labels] + np.random.default_rng(5).normal(0, 5, (lines, samples, bands))
    write_scene(folder / "scene.img", np.moveaxis(data, 2, 0), dtype="f8", geotransform=None, epsg=None)
    write_scene(folder / "labels.tif", labels[None], driver="GTiff", dtype="u1", geotransform=None, epsg=None)
    return data, labels


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("dtype", ["u1", "f8", "i4"])
def test_labels(tmp_path, writer, dtype):
    data, labels = scene_with_classes(tmp_path)
    succeed(run("gdal_hsi_spectra", tmp_path / "scene.img", tmp_path / "labels.tif", tmp_path / "right.csv"))
    # One file contains both, as some sets are published; and a cube and its labels in two files.
    WRITERS[writer](tmp_path / "both.mat", {"scene": data, "gt": labels.astype(dtype)})
    WRITERS[writer](tmp_path / "gt.mat", {"gt": labels.astype(dtype)})
    right = (tmp_path / "right.csv").read_bytes()
    for scene, truth in (("both.mat", "both.mat"), ("scene.img", "gt.mat"), ("both.mat", "both.mat:gt")):
        succeed(run("gdal_hsi_spectra", "-overwrite", f"{tmp_path}/{scene}", f"{tmp_path}/{truth}", tmp_path / "found.csv"))
        assert (tmp_path / "found.csv").read_bytes() == right
    succeed(run("gdal_hsi_svm_train", "-C", 8, "-gamma", 1, tmp_path / "both.mat", tmp_path / "both.mat", tmp_path / "svm.json"))
    succeed(run("gdal_hsi_svm_classify", tmp_path / "both.mat", tmp_path / "svm.json", tmp_path / "map.tif"))
    succeed(run("gdal_hsi_accuracy", tmp_path / "map.tif", tmp_path / "gt.mat"))
    succeed(run("gdal_hsi_sample", "-n", 3, tmp_path / "both.mat", tmp_path / "train.tif", tmp_path / "test.tif"))
    train, test = read(tmp_path / "train.tif")[0], read(tmp_path / "test.tif")[0]
    chosen = np.nan_to_num(train) + np.nan_to_num(test)
    assert np.array_equal(chosen, labels)


def test_which_array_holds_the_labels(tmp_path):
    data, labels = scene_with_classes(tmp_path)
    scene, mat = tmp_path / "scene.img", tmp_path / "labels.mat"
    # By the scene's size, and among these the integers.
    scipy.io.savemat(mat, {"gt": labels.astype("u1"), "M": np.ones((8, 3), "u1"), "distance": labels + 0.5})
    succeed(run("gdal_hsi_spectra", scene, mat, tmp_path / "found.csv"))
    scipy.io.savemat(mat, {"train": labels.astype("u1"), "test": labels.astype("u1")})
    result = run("gdal_hsi_spectra", "-overwrite", scene, mat, tmp_path / "found.csv")
    assert result.code == 1 and "may be the labels: train (24x30 uint8), test (24x30 uint8)" in first_error(result)
    succeed(run("gdal_hsi_spectra", "-overwrite", scene, f"{mat}:test", tmp_path / "found.csv"))
    scipy.io.savemat(mat, {"scene": data})
    result = run("gdal_hsi_spectra", "-overwrite", scene, mat, tmp_path / "found.csv")
    assert result.code == 1 and "no array with two subscripts" in first_error(result)
    result = run("gdal_hsi_spectra", "-overwrite", scene, f"{mat}:scene", tmp_path / "found.csv")
    assert result.code == 1 and "has 8 bands" in first_error(result)
    scipy.io.savemat(mat, {"gt": labels.T.astype("u1")}) # lines and samples exchanged
    result = run("gdal_hsi_spectra", "-overwrite", scene, mat, tmp_path / "found.csv")
    assert result.code == 1 and "has 24x30 pixels" in first_error(result).replace(" x ", "x")
    scipy.io.savemat(mat, {"gt": labels + 0.5})
    result = run("gdal_hsi_spectra", "-overwrite", scene, mat, tmp_path / "found.csv")
    assert result.code == 1 and "is not a class number" in first_error(result)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("writer", WRITERS)
def test_libraries(tmp_path, writer, turned):
    data, labels = scene_with_classes(tmp_path)
    spectra = np.stack([data[labels == k].mean(axis=0) for k in (1, 2, 3)])  # (spectrum, band)
    rows = "\n".join(",".join(repr(float(v)) for v in band) for band in spectra.T)
    (tmp_path / "right.csv").write_text("tree,road,water\n" + rows + "\n")
    succeed(run("gdal_hsi_unmix", tmp_path / "scene.img", tmp_path / "right.csv", tmp_path / "right.tif"))
    variables = {"M": spectra if turned else np.asfortranarray(spectra.T), "A": np.ones((3, 24 * 30))}
    named = "scipy" in writer
    if named:
        variables["cood"] = np.array([["tree"], ["road"], ["water"]], dtype=object)
    WRITERS[writer](tmp_path / "end3.mat", variables)
    for name in ("end3.mat", "end3.mat:M"):
        succeed(run("gdal_hsi_unmix", "-overwrite", tmp_path / "scene.img", f"{tmp_path}/{name}", tmp_path / "found.tif"))
        assert stored_bytes(tmp_path / "found.tif") == stored_bytes(tmp_path / "right.tif")
        names = [open_band(tmp_path / "found.tif", k).GetDescription() for k in (1, 2, 3)]
        assert names == (["tree", "road", "water"] if named else ["Spectrum 1", "Spectrum 2", "Spectrum 3"])


def test_libraries_with_wavelengths_and_names_in_rows(tmp_path):
    nm = np.linspace(400, 900, 40)
    spectra = np.stack([np.sin(nm / 200) + 2, np.cos(nm / 300) + 2])
    scipy.io.savemat(tmp_path / "library.mat", {"datalib": spectra, "wavelength": nm[None, :] / 1000,
                                                "names": np.array(["short", "a longer one"])})
    scene_nm = np.array([410.0, 500, 640, 820])
    scene = np.stack([np.interp(scene_nm, nm, one) for one in spectra])[:, None].repeat(3, axis=1)
    write_scene(tmp_path / "scene.img", np.moveaxis(scene, 2, 0), dtype="f8", wavelengths=list(scene_nm))
    succeed(run("gdal_hsi_unmix", tmp_path / "scene.img", tmp_path / "library.mat", tmp_path / "found.tif"))
    assert [open_band(tmp_path / "found.tif", k).GetDescription() for k in (1, 2)] == ["short", "a longer one"]
    assert np.allclose(read(tmp_path / "found.tif")[:, :, 0], np.eye(2), atol=1e-5)
    scipy.io.savemat(tmp_path / "two.mat", {"P": np.ones((4, 2)), "Q": np.ones((4, 3))})
    result = run("gdal_hsi_unmix", "-overwrite", tmp_path / "scene.img", tmp_path / "two.mat", tmp_path / "found.tif")
    assert result.code == 1 and "may be the spectra: P (4x2 double), Q (4x3 double)" in first_error(result)
    scipy.io.savemat(tmp_path / "cube.mat", {"cube": np.ones((3, 4, 5))})
    result = run("gdal_hsi_unmix", "-overwrite", tmp_path / "scene.img", f"{tmp_path}/cube.mat:cube", tmp_path / "found.tif")
    assert result.code == 1 and "is not an array (band, spectrum)" in first_error(result)


def test_options_of_gdal_are_not_for_it(tmp_path, out):
    path = tmp_path / "scene.mat"
    scipy.io.savemat(path, {"cube": numbers(), "gt": numbers()[:, :, 0]})
    result = run("gdal_hsi_pca", "-oo", "NUM_THREADS=2", path, out / "p.tif")
    assert result.code == 2 and "-oo NUM_THREADS=2: MATLAB files" in first_error(result)
    result = run("gdal_hsi_pca", "-if", "GTiff", path, out / "p.tif")
    assert result.code == 1 and "cannot open" in first_error(result)
    result = run("gdal_hsi_pca", "-of", "VRT", path, out / "p.vrt")
    assert result.code == 2 and "VRT" in first_error(result) and "MATLAB" in first_error(result)
    assert not list(out.iterdir())


def test_an_output_never_falls_on_it(tmp_path):
    path = tmp_path / "scene.mat"
    scipy.io.savemat(path, {"cube": numbers(), "other": numbers(), "gt": numbers()[:, :, 0] % 3})
    with assert_untouched(tmp_path):
        for source in (f"{path}:cube", f"{tmp_path}/../{tmp_path.name}/scene.mat:cube"):
            result = run("gdal_hsi_pca", "-overwrite", "-of", "ENVI", source, path)
            assert result.code == 2 and "overwrite" in first_error(result)
        result = run("gdal_hsi_spectra", "-overwrite", f"{path}:cube", f"{path}:gt", path)
        assert result.code == 2


def test_outputs_are_those_of_the_same_scene_in_envi(tmp_path):
    data, _ = scene_with_classes(tmp_path)
    scipy.io.savemat(tmp_path / "scene.mat", {"cube": data}, do_compression=True)
    for name in ("scene.img", "scene.mat"):
        succeed(run("gdal_hsi_pca", "-device", "cpu", "-nc", 4, tmp_path / name, tmp_path / f"{name}.tif"))
    assert stored_bytes(tmp_path / "scene.img.tif") == stored_bytes(tmp_path / "scene.mat.tif")
    history = open_band(tmp_path / "scene.mat.tif").dataset.GetMetadataItem("HSI_HISTORY")
    assert "gdal_hsi_pca" in history and "scene.mat" in history


def test_a_file_that_was_cut_short(tmp_path):
    for writer in WRITERS:
        WRITERS[writer](tmp_path / "whole.mat", {"cube": numbers("i2"), "gt": numbers("i2")[:, :, 0]})
        text = (tmp_path / "whole.mat").read_bytes()
        for length in sorted({1, 100, 127, 129, 136, 200, 500, *np.linspace(150, len(text) - 1, 6).astype(int)}):
            (tmp_path / "short.mat").write_bytes(text[:length])
            result = run("gdal_hsi_info", "-count", tmp_path / "short.mat")
            # Version 5 may end after any whole variable.
            whole = result.code == 0 and "gt" not in info(tmp_path / "short.mat")["product"]
            assert (result.code == 1 and first_error(result)) or whole, (writer, length, result)


@pytest.mark.parametrize("compressed", [False, True])
def test_damaged_files(tmp_path, compressed):
    """Gives an error, or the scene if a value itself was changed; never a signal, and no files."""
    names = np.array([["a"], ["longer"]], dtype=object)
    scipy.io.savemat(tmp_path / "whole.mat", {"s": {"cube": numbers("i2"), "text": "word"}, "M": np.ones((11, 2)), "names": names},
                     do_compression=compressed)
    text = (tmp_path / "whole.mat").read_bytes()
    write_scene(tmp_path / "scene.img", np.moveaxis(numbers("f4"), 2, 0) + 2000)
    random.seed(8)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    codes = []
    for number in range(60):  # tests/fuzz/matlab.cpp tries many more
        changed = bytearray(text)
        for _ in range(random.choice([1, 1, 2, 5])):
            at = random.randrange(124, len(changed))
            changed[at] = random.choice([0, 1, 127, 128, 255, changed[at] ^ 1 << random.randrange(8)])
        (tmp_path / "changed.mat").write_bytes(changed)
        limits = {resource.RLIMIT_AS: 4 << 30, resource.RLIMIT_CORE: 0}
        environment = dict(os.environ, TMPDIR=str(scratch))
        if number % 4 == 0:
            result = run("gdal_hsi_unmix", "-overwrite", tmp_path / "scene.img", f"{tmp_path}/changed.mat:M", tmp_path / "u.tif",
                         limits=limits, env=environment)
        else:
            result = run("gdal_hsi_info", "-count", tmp_path / "changed.mat", limits=limits, env=environment)
        assert result.code in (0, 1), (number, result)
        assert result.code == 0 or first_error(result)
        codes.append(result.code)
    assert 1 in codes and 0 in codes
    assert not list(scratch.iterdir())


def test_sizes_that_do_not_fit_the_data(tmp_path):
    save5(tmp_path / "a.mat", {"cube": numbers()})
    text = (tmp_path / "a.mat").read_bytes()
    size = struct.pack("<3i", LINES, SAMPLES, BANDS)
    for wrong in ((LINES + 1, SAMPLES, BANDS), (LINES, SAMPLES, BANDS - 1), (1 << 30, 1 << 30, 1 << 30), (-5, SAMPLES, BANDS)):
        (tmp_path / "b.mat").write_bytes(text.replace(size, struct.pack("<3i", *wrong)))
        result = run("gdal_hsi_info", tmp_path / "b.mat")
        assert result.code == 1 and "is damaged" in first_error(result)
    packed = bytearray()
    save5(tmp_path / "a.mat", {"cube": numbers()}, compressed=True)
    packed[:] = (tmp_path / "a.mat").read_bytes()
    packed[-1] ^= 1  # the checksum
    (tmp_path / "b.mat").write_bytes(packed)
    result = run("gdal_hsi_info", "-count", tmp_path / "b.mat")
    assert result.code == 1 and "cannot be decompressed" in first_error(result)


def test_no_room_for_the_temporary_file(tmp_path, out):
    scipy.io.savemat(tmp_path / "scene.mat", {"cube": numbers()})
    environment = dict(os.environ, TMPDIR=str(tmp_path / "nowhere"))
    result = run("gdal_hsi_pca", tmp_path / "scene.mat", out / "p.tif", env=environment)
    assert result.code == 1 and "temporary file" in first_error(result) and "TMPDIR" in first_error(result)
    assert not list(out.iterdir())


@pytest.mark.parametrize("writer", ["scipy", "big-endian, compressed", "7.3", "7.3, chunks"])
def test_memory_stays_at_its_ceiling(tmp_path, writer):
    lines, samples, bands = 300, 400, 120  # 115 MB of doubles
    data = np.random.default_rng(2).integers(0, 4000, (lines, samples, bands)).astype("f8")
    if writer == "7.3, chunks":
        save73(tmp_path / "scene.mat", {"cube": data}, chunks=(10, 50, 75), compression="gzip", compression_opts=1)
    else:
        WRITERS[writer](tmp_path / "scene.mat", {"cube": data})
    del data

    def peak(*arguments):
        """Returns the memory of a process and its children in MB, measured in a child whose only child is the tool."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            result = run(*arguments)
            used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            os.write(writing, f"{result.code} {used}".encode())
            os._exit(0)
        os.waitpid(child, 0)
        code, used = os.read(reading, 100).decode().split()
        assert code == "0"
        return float(used)

    assert peak("gdal_hsi_info", "-count", "-memory", "64MB", tmp_path / "scene.mat") < 64 + 50


def test_indian_pines(tmp_path):
    """The real scene from MATLAB's file and from ENVI's gives equal bits."""
    from osgeo import gdal
    source = real_scene("indian_pines/indian_pines.img")
    data = np.moveaxis(gdal.Open(str(source)).ReadAsArray(), 0, 2)
    truth = gdal.Open(str(source.with_name("indian_pines_gt.tif"))).ReadAsArray()
    scipy.io.savemat(tmp_path / "indian_pines_corrected.mat", {"indian_pines_corrected": data}, do_compression=True)
    scipy.io.savemat(tmp_path / "indian_pines_gt.mat", {"indian_pines_gt": truth}, do_compression=True)
    succeed(run("gdal_hsi_compare", "-max-maxabs", 0, "-metric", "maxabs", tmp_path / "indian_pines_corrected.mat", source))
    for name, scene, labels in (("a", source, source.with_name("indian_pines_gt.tif")),
                                ("b", tmp_path / "indian_pines_corrected.mat", tmp_path / "indian_pines_gt.mat")):
        succeed(run("gdal_hsi_pca", "-device", "cpu", scene, tmp_path / f"{name}.tif"))
        succeed(run("gdal_hsi_spectra", scene, labels, tmp_path / f"{name}.sli"))
    assert stored_bytes(tmp_path / "a.tif") == stored_bytes(tmp_path / "b.tif")
    assert (tmp_path / "a.sli").read_bytes() == (tmp_path / "b.sli").read_bytes()


def test_files_that_matlab_wrote(tmp_path):
    """Reads scipy's own test files: versions 4 to 7.4 of MATLAB, from Linux and from big-endian Suns."""
    folder = pathlib.Path(scipy.io.matlab.__file__).parent / "tests" / "data"
    compared = 0
    for path in sorted(folder.glob("test*.mat")):
        if "hdf5" in path.name or "bool" in path.name:
            continue
        for name, value in scipy.io.loadmat(path).items():
            if not isinstance(value, np.ndarray) or value.dtype.kind not in "iuf" or value.ndim not in (2, 3) or not value.size:
                continue
            (tmp_path / "a.mat").write_bytes(path.read_bytes())
            expect_scene(f"{tmp_path}/a.mat:{name}", value.reshape(value.shape + (1,) * (3 - value.ndim)).astype("f8"))
            compared += 1
    if compared == 0:
        pytest.skip(f"scipy's own test files are absent ({folder})")
    for name, words in {"corrupted_zlib_checksum": "cannot be decompressed", "malformed1": "it ends early"}.items():
        result = run("gdal_hsi_info", folder / f"{name}.mat")
        assert result.code == 1 and words in first_error(result)


@pytest.mark.parametrize("writer", quick_only("scipy", WRITERS))
def test_bands_in_the_second_place(tmp_path, writer):
    """Band-interleaved by line: the number of wavelengths equals the second dimension."""
    data = numbers()
    nm = np.linspace(400, 2400, BANDS)
    WRITERS[writer](tmp_path / "a.mat", {"cube": np.swapaxes(data, 1, 2), "wavelength": nm[None, :]})
    seen = info(tmp_path / "a.mat")
    assert seen["size"] == [SAMPLES, LINES, BANDS] and seen["wavelengths_nm"] == pytest.approx(list(nm))
    expect_scene(tmp_path / "a.mat", data)
    # As many bands as samples: the usual order, in which bands come last.
    square = numbers(samples=BANDS)
    WRITERS[writer](tmp_path / "b.mat", {"cube": square, "wavelength": nm[None, :]})
    expect_scene(tmp_path / "b.mat", square)


@pytest.mark.parametrize("count", [2, BANDS - 1, BANDS + 1])
def test_wavelengths_of_another_number_are_told(tmp_path, count):
    scipy.io.savemat(tmp_path / "a.mat", {"cube": numbers(), "wavelength": np.linspace(400, 900, count)})
    result = succeed(run("gdal_hsi_pca", "-nc", 1, tmp_path / "a.mat", tmp_path / "p.tif"))
    assert f"has {count} wavelengths, but the scene has {BANDS} bands" in result.err, result.err


def test_hdf5_that_is_called_mat(tmp_path):
    """h5py's arrays keep their axes, as in any HDF5 file; a message states that MATLAB would count differently."""
    data = numbers()
    with h5py.File(tmp_path / "a.mat", "w") as h:
        h["cube"] = np.moveaxis(data, 2, 0)
    result = succeed(run("gdal_hsi_pca", "-nc", 1, tmp_path / "a.mat", tmp_path / "p.tif"))
    assert "not of MATLAB" in result.err, result.err
    expect_scene(tmp_path / "a.mat", data)


LABEL_FILES = {  # what is read from it (None: nothing), and the message
    "a mask": (lambda la: {"gt": la.astype("f8"), "valid": la > 0}, "gt", "valid (24x30 logical) is read as a mask"),
    "a mask first": (lambda la: {"a": la > 0, "gt": la.astype("f4")}, "gt", "a (24x30 logical) is read as a mask"),
    "whole numbers": (lambda la: {"gt": la.astype("u1"), "valid": la > 0}, "gt", ""),
    "fractions": (lambda la: {"height": la + 0.5, "valid": la > 0}, None, "height (24x30 double), valid (24x30 logical)"),
    "one class": (lambda la: {"gt": (la > 0) * 1.0, "valid": la > 0}, None, "gt (24x30 double), valid (24x30 logical)"),
    "two doubles": (lambda la: {"gt": la * 1.0, "test": la * 1.0, "valid": la > 0}, None, "gt (24x30 double), test"),
    "a mask alone": (lambda la: {"valid": la > 0}, "valid", "")}


@pytest.mark.parametrize("case", LABEL_FILES)
def test_labels_beside_a_mask(tmp_path, case):
    """MATLAB's usual class is double, and logical arrays are masks."""
    make, which, said = LABEL_FILES[case]
    _, labels = scene_with_classes(tmp_path)
    variables = make(labels)
    scipy.io.savemat(tmp_path / "labels.mat", variables)
    result = run("gdal_hsi_spectra", tmp_path / "scene.img", tmp_path / "labels.mat", tmp_path / "found.csv")
    assert said in result.err, result.err
    if which is None:
        assert result.code == 1 and "may be the labels" in first_error(result)
        return
    succeed(result)
    assert ("WARNING" in result.err.upper() or "NOTE" in result.err.upper()) or not said
    write_scene(tmp_path / "right.tif", np.asarray(variables[which])[None], driver="GTiff", dtype="u1", geotransform=None,
                epsg=None)
    succeed(run("gdal_hsi_spectra", tmp_path / "scene.img", tmp_path / "right.tif", tmp_path / "right.csv"))
    assert (tmp_path / "found.csv").read_bytes() == (tmp_path / "right.csv").read_bytes()


def test_a_mask_beside_labels(tmp_path):
    """As a mask, the logical array is used."""
    _, labels = scene_with_classes(tmp_path)
    mask = np.zeros(labels.shape, bool)
    mask[3:9, 4:20] = True
    scipy.io.savemat(tmp_path / "both.mat", {"gt": labels.astype("f8"), "valid": mask})
    write_scene(tmp_path / "mask.tif", mask[None], driver="GTiff", dtype="u1", geotransform=None, epsg=None)
    for name in ("both.mat", "mask.tif"):
        succeed(run("gdal_hsi_pca", "-q", "-overwrite", "-nc", 2, "-mask", tmp_path / name, tmp_path / "scene.img",
                    tmp_path / f"{name}.p.tif"))
    np.testing.assert_array_equal(read(tmp_path / "both.mat.p.tif"), read(tmp_path / "mask.tif.p.tif"))


# --- sets for unmixing ---------------------------------------------------------------------------------------------------

def unmixing_set(cube_name="Y", listed=True, sums=True, **more):
    """Makes a scene, its endmembers M (band, endmember) and abundances (line, sample, endmember), in the form of such
    sets."""
    data = numbers("f8")
    pixels = np.asfortranarray(data.reshape(-1, BANDS, order="F").T)
    random = np.random.default_rng(3)
    abundances = random.dirichlet(np.ones(3), (LINES, SAMPLES)) if sums else random.uniform(0.1, 0.3, (LINES, SAMPLES, 3))
    return data, {cube_name: pixels if listed else data, "A": abundances, "M": random.uniform(0.1, 0.9, (BANDS, 3)), **more}


def size(lines, samples, values=(LINES, SAMPLES)):
    return {name: np.array([[float(value)]]) for name, value in zip((lines, samples), values)}


@pytest.mark.parametrize("writer", ["scipy", "7.3"])
@pytest.mark.parametrize("names", [("nRow", "nCol"), ("lines", "cols"), ("H", "W"), ("numRows", "numCols"), ("nl", "ns"),
                                   ("n_row", "n_col"), ("height", "width"), ("Lines", "Samples"), ("num_rows", "num_columns"), None])
def test_sets_for_unmixing(tmp_path, writer, names):
    """Without a size in numbers, the abundances give it. They are never read as the scene, whether they add up to 1 or
    not."""
    for sums in (True, False):
        for turned in (False, True):
            data, variables = unmixing_set(sums=sums)
            if turned:
                variables["Y"], variables["M"] = np.asfortranarray(variables["Y"].T), np.asfortranarray(variables["M"].T)
            path = tmp_path / f"{sums}{turned}.mat"
            WRITERS[writer](path, {**variables, **(size(*names) if names else {})})
            expect_scene(path, data)
            expect_scene(f"{path}:Y", data)
            expect_scene(f"{path}:A", variables["A"])


@pytest.mark.parametrize("writer", ["scipy", "7.3"])
@pytest.mark.parametrize("told", [
    {"imSize": [LINES, SAMPLES]}, {"dims": [[LINES], [SAMPLES]]}, {"sz": [LINES, SAMPLES, BANDS]}, {"cube_shape": [BANDS, LINES, SAMPLES]},
    {"m": LINES, "n": SAMPLES}, {"L": LINES, "C": SAMPLES}, {"imgH": LINES, "imgW": SAMPLES},
    {"nRow": LINES, "nCol": SAMPLES, "m": SAMPLES, "n": LINES}], ids=lambda told: "-".join(told))
def test_sizes_of_lists_of_pixels(tmp_path, writer, told):
    data, variables = unmixing_set()
    path = tmp_path / "s.mat"
    WRITERS[writer](path, {"Y": variables["Y"], **{name: np.atleast_2d(np.array(value, "f8")) for name, value in told.items()}})
    expect_scene(path, data)


def test_what_may_be_the_size_of_a_list_of_pixels(tmp_path):
    _, variables = unmixing_set()
    for told, listed in (({"p": LINES, "q": SAMPLES}, "p (1x1 double) and q (1x1 double)"), ({"spam": [LINES, SAMPLES]}, "spam (1x2 double)"),
                         ({"p": LINES, "q": 3}, None)):
        scipy.io.savemat(tmp_path / "s.mat", {"Y": variables["Y"], **{k: np.atleast_2d(np.array(v, "f8")) for k, v in told.items()}})
        said = succeed(run("gdal_hsi_info", tmp_path / "s.mat"))
        assert ("may be the size of an image stored as a list of pixels" in said.err) == (listed is not None), said.err
        assert listed is None or f"{listed} may be the size of an image stored as a list of pixels ({LINES} lines x {SAMPLES} samples)" in said.err, said.err


@pytest.mark.parametrize("case", ["cube", "list of abundances", "wavelengths", "wavelengths of the list", "spectra of each pixel"])
def test_which_array_is_the_scene(tmp_path, case):
    nm = {"wl": np.linspace(400, 2400, BANDS)[None]}
    data, variables = unmixing_set(listed=case in ("wavelengths of the list", "spectra of each pixel"), sums=False)
    if case == "list of abundances":
        variables["A"] = np.asfortranarray(variables["A"].reshape(-1, 3, order="F").T)
        variables.update(size("nRow", "nCol"))
    elif case.startswith("wavelengths"):
        del variables["M"]
        variables.update(nm)
    elif case == "spectra of each pixel":
        variables["M_true"] = np.random.default_rng(5).uniform(0, 1, (BANDS, 3, LINES * SAMPLES))
        variables.update(size("H", "W"))
    scipy.io.savemat(tmp_path / "s.mat", variables)
    expect_scene(tmp_path / "s.mat", data)


def test_abundances_alone_are_no_scene(tmp_path):
    _, variables = unmixing_set()
    del variables["Y"]
    scipy.io.savemat(tmp_path / "end.mat", variables)
    result = run("gdal_hsi_pca", "-nc", 2, tmp_path / "end.mat", tmp_path / "o.tif")
    assert result.code == 1
    assert first_error(result).endswith(f"has no array that is a scene, but possible abundances: A ({LINES}x{SAMPLES}x3 double)")
    expect_scene(f"{tmp_path}/end.mat:A", variables["A"])


def test_a_list_beside_a_cube_that_may_be_either(tmp_path):
    """Nothing shows whether the cube of three planes is a picture of the scene, or the scene of a list of features."""
    data, variables = unmixing_set(sums=False)
    del variables["M"]
    scipy.io.savemat(tmp_path / "s.mat", variables)
    result = run("gdal_hsi_pca", "-nc", 2, tmp_path / "s.mat", tmp_path / "o.tif")
    assert result.code == 1 and "several arrays that may be the scene" in first_error(result)
    assert "Y (11x35 double)" in first_error(result) and "A (5x7x3 double)" in first_error(result)


@pytest.mark.parametrize("name", ["wavelength", "wavlength", "CenterWavelength", "central_wavelength", "waves", "wlen", "lambda",
                                  "Wavelength_nm", "wave_length", "bandCenters", "wavenumber", "Wavenumbers", "spam", "SelectedBands"])
def test_names_of_wavelengths(tmp_path, name):
    values = np.linspace(400, 900, BANDS) if name != "SelectedBands" else np.arange(BANDS) + 1.0
    scipy.io.savemat(tmp_path / "s.mat", {"cube": numbers(), name: values[None]})
    result = succeed(run("gdal_hsi_info", "-json", tmp_path / "s.mat"))
    found = json.loads(result.out)["wavelengths_nm"]
    if name in ("spam", "SelectedBands"):
        assert all(value is None for value in found)
        assert (f"spam (1x{BANDS} double) may be the wavelengths of the bands" in result.err) == (name == "spam"), result.err
    else:
        np.testing.assert_allclose(found, 1e7 / values if "number" in name else values)
        stated = "number" in name or "nm" in name
        assert ("the unit of the wavelengths is not stated" in result.err) == (not stated), result.err
        assert not stated or result.err == ""
