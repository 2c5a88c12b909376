# SPDX-License-Identifier: MIT
"""Chunks of products in HDF5, which all lanes decode without its library: the values that h5py wrote, for every type,
filter, list of chunks and layout; chunks that were never written; cases for the library; and damaged chunks, which give
errors with their positions."""
import ctypes
import ctypes.util
import json
import struct
import zlib

import numpy as np
import pytest
from conftest import assert_untouched, first_error, gdal, refuse, run, succeed

h5py = pytest.importorskip("h5py")
if gdal.GetDriverByName("HDF5") is None and gdal.GetDriverByName("netCDF") is None:
    pytest.skip("this GDAL has neither HDF5 nor netCDF", allow_module_level=True)

LINES, SAMPLES, BANDS = 25, 22, 9
TYPES = ["i1", "u1", "<i2", ">i2", "<u2", ">u2", "<i4", ">i4", "<u4", ">u4", "<i8", ">i8", "<u8", ">u8", "<f2", ">f2", "<f4", ">f4",
         "<f8", ">f8"]
ZSTD = 32015


def values(dtype="<f4", lines=LINES, samples=SAMPLES, bands=BANDS, seed=3):
    """Returns (line, sample, band): consecutive values differ, none is 0, and they reach the ends of the type."""
    random = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return (random.normal(0, 100, (lines, samples, bands)) + 1000).astype(kind)
    ends = np.iinfo(kind)
    # Sums of three floats distinguish integers up to 2^53; larger ones are only compared approximately.
    low, high = max(ends.min, -2**53), min(ends.max, 2**53)
    data = random.integers(low, high, (lines, samples, bands), dtype="i8", endpoint=True)
    return np.where(data == 0, 7, data).astype(kind)


def site(path, make, bands=BANDS, **file):
    """Makes NEON's layout; `make` puts the cube of (line, sample, band) into its group argument."""
    with h5py.File(path, "w", **file) as h:
        group = h.create_group("SITE/Reflectance")
        make(group)
        spectral = group.create_group("Metadata/Spectral_Data")
        spectral["Wavelength"] = np.linspace(400, 2400, bands)
        spectral["FWHM"] = np.full(bands, 10.)
        place = group.create_group("Metadata/Coordinate_System")
        place["Map_Info"] = np.bytes_("UTM, 1.000, 1.000, 300000.000, 4000000.000, 1.0, 1.0, 11, North, WGS-84, units=Meters, 0")
        place["EPSG Code"] = np.bytes_("32611")
    return path


def cube(path, data, file=None, **options):
    options.setdefault("chunks", (8, 5, 4))
    return site(path, lambda g: g.create_dataset("Reflectance_Data", data=data, **options), data.shape[2], **(file or {}))


def access(path):
    return json.loads(succeed(run("gdal_hsi_info", "-json", path)).out)["access"]


def copied(path, lines, samples, *options):
    """Returns (line, sample, band) of the file, through a tool that copies numbers, on the scene's own grid."""
    grid, out = path.with_name("grid.tif"), path.with_name("copy.tif")
    if not grid.exists():
        table = gdal.GetDriverByName("GTiff").Create(str(grid), samples, lines, 2, gdal.GDT_Int32)
        table.SetGeoTransform((300000, 1, 0, 4000000, 0, -1))
        table.WriteArray(np.stack(np.meshgrid(np.arange(1, samples + 1), np.arange(1, lines + 1))).astype("i4"))
        table = None
    succeed(run("gdal_hsi_orthorectify", "-q", "-overwrite", "-bbl", "ignore", "-glt", grid, *options, path, out))
    dataset = gdal.Open(str(out))
    return np.moveaxis(dataset.ReadAsArray().reshape(dataset.RasterCount, lines, samples), 0, 2)


WAYS = (["-threads", 1], ["-threads", 3, "-tile", 7, 6])


def check(path, data, how="chunks", ways=WAYS):
    """Checks that all values equal `data`, and `how` they are read."""
    assert access(path) == how
    native = data.astype(data.dtype.newbyteorder("="))
    native = native.astype({"int8": "i2", "float16": "f4"}.get(native.dtype.name, native.dtype))
    for way in ways:
        got = copied(path, *data.shape[:2], *way)
        assert got.dtype == native.dtype and got.tobytes() == native.tobytes(), way


PIPELINES = {
    "none": {},
    "gzip": {"compression": "gzip"},
    "shuffle-gzip": {"compression": "gzip", "compression_opts": 9, "shuffle": True},
    "lzf": {"compression": "lzf"},
    "shuffle-lzf": {"compression": "lzf", "shuffle": True},
    "fletcher32": {"fletcher32": True},
    "shuffle": {"shuffle": True},
    "all-gzip": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "all-lzf": {"compression": "lzf", "shuffle": True, "fletcher32": True},
}


@pytest.mark.parametrize("dtype", TYPES)
def test_types(tmp_path, dtype):
    data = values(dtype)
    for name, way in zip(("none", "all-gzip"), WAYS):
        check(cube(tmp_path / f"{name}.h5", data, **PIPELINES[name]), data, ways=[way])


@pytest.mark.parametrize("name", PIPELINES)
def test_filters(tmp_path, name):
    for k, dtype in enumerate(("<f4", ">i2", "u1")):
        data = values(dtype).copy()
        data[3:20, 4:15] = data[3, 4]  # compressible
        check(cube(tmp_path / "scene.h5", data, **PIPELINES[name]), data, ways=[WAYS[k % 2]])


def low_level(path, data, chunk, filters, write, dtype=None, fill=None):
    """Writes filters in any order and prepared chunks: write(dataset id)."""
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_chunk(chunk)
    if fill is not None:
        creation.set_fill_value(np.array(fill, data.dtype))
    for filter, options in filters:
        creation.set_filter(filter, h5py.h5z.FLAG_OPTIONAL, options)
    def make(group):
        space = h5py.h5s.create_simple(data.shape)
        dataset = h5py.h5d.create(group.id, b"Reflectance_Data", dtype or h5py.h5t.py_create(data.dtype, logical=False), space, creation)
        write(h5py.Dataset(dataset))
    return site(path, make, data.shape[2])


@pytest.mark.parametrize("order", [(3, 2, 1), (2, 3, 1), (2, 1, 3), (3, 1), (1, 3), (3, 2)], ids=str)
def test_orders_of_filters(tmp_path, order):
    """netCDF's library puts the checksum first, h5py last."""
    data = values("<i2")
    options = {1: (6,), 2: (2,), 3: ()}
    path = low_level(tmp_path / "scene.h5", data, (8, 5, 3), [(f, options[f]) for f in order], lambda d: d.write_direct(data))
    check(path, data)


def padded(data, chunk):
    """Returns chunks with their positions; chunks at the end are padded."""
    for a in range(0, data.shape[0], chunk[0]):
        for b in range(0, data.shape[1], chunk[1]):
            for c in range(0, data.shape[2], chunk[2]):
                whole = np.full(chunk, 77, data.dtype)
                part = data[a:a + chunk[0], b:b + chunk[1], c:c + chunk[2]]
                whole[:part.shape[0], :part.shape[1], :part.shape[2]] = part
                yield (a, b, c), whole


def shuffled(raw, width):
    return np.frombuffer(raw, "u1").reshape(-1, width).T.tobytes()


def test_zstd(tmp_path):
    """HDF5 has no filter 32015, so its chunks are written directly."""
    library = ctypes.CDLL(ctypes.util.find_library("zstd") or pytest.skip("no libzstd"))
    library.ZSTD_compress.restype = library.ZSTD_compressBound.restype = ctypes.c_size_t
    def pack(raw):
        room = ctypes.create_string_buffer(library.ZSTD_compressBound(ctypes.c_size_t(len(raw))))
        size = library.ZSTD_compress(room, ctypes.c_size_t(len(room)), raw, ctypes.c_size_t(len(raw)), 3)
        return room.raw[:size]
    data, chunk = values("<f4"), (8, 5, 4)
    def write(dataset):
        for at, part in padded(data, chunk):
            dataset.id.write_direct_chunk(at, pack(shuffled(part.tobytes(), 4)))
    check(low_level(tmp_path / "scene.h5", data, chunk, [(2, (4,)), (ZSTD, (3,))], write), data)


def test_filters_that_a_chunk_was_spared(tmp_path):
    """Bit k of a chunk's mask means that filter k was not applied."""
    data, chunk = values("<u2"), (8, 5, 4)
    def write(dataset):
        for k, (at, part) in enumerate(padded(data, chunk)):
            raw = part.tobytes()
            mask = k % 4
            stored = raw if mask & 1 else shuffled(raw, 2)
            dataset.id.write_direct_chunk(at, stored if mask & 2 else zlib.compress(stored), mask)
    path = low_level(tmp_path / "scene.h5", data, chunk, [(2, (2,)), (1, (6,))], write)
    with h5py.File(path) as h:
        assert np.array_equal(h["SITE/Reflectance/Reflectance_Data"][:], data)
    check(path, data)


CHUNKS = [(1, 1, BANDS), (32, 32, 16), (7, SAMPLES, 2)]


@pytest.mark.parametrize("chunk", CHUNKS, ids=str)
@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("most", [None, (None, SAMPLES, BANDS), (40, None, BANDS), (LINES, 50, None), (None, None, BANDS), (60, 60, 60)],
                         ids=str)
def test_lists_of_chunks(tmp_path, chunk, libver, most):
    """Uses trees of both versions, fixed and extensible arrays, single chunks, and consecutive chunks."""
    ends = most or (LINES, SAMPLES, BANDS)
    chunk = tuple(n if end is None else min(n, end) for n, end in zip(chunk, ends))
    data = values("<i2")
    name = "none" if chunk[0] == 7 else "shuffle-gzip"
    path = cube(tmp_path / "scene.h5", data, {"libver": libver}, chunks=chunk, maxshape=most, **PIPELINES[name])
    check(path, data, "chunks", [["-threads", 2]])


@pytest.mark.parametrize("most", [None, (None, 120, 2), (130, None, 2), (None, None, 2), (200, 120, 2)], ids=str)
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_long_lists(tmp_path, most, compression):
    """Uses more chunks than a page of a list holds, several levels of a tree, and blocks of blocks."""
    data = values("<u2", 130, 120, 2)
    for libver in ("earliest", "latest"):
        path = cube(tmp_path / "scene.h5", data, {"libver": libver}, chunks=(1, 1, 2), maxshape=most, compression=compression)
        check(path, data, "chunks", [["-threads", 2]])


def test_one_behind_another(tmp_path):
    """Allocated at once and without filters, so the list is a single address."""
    data = values("<i4")
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_chunk((8, 5, 4))
    creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    def make(group):
        dataset = h5py.h5d.create(group.id, b"Reflectance_Data", h5py.h5t.STD_I32LE, h5py.h5s.create_simple(data.shape), creation)
        h5py.Dataset(dataset)[...] = data
    check(site(tmp_path / "scene.h5", make, libver="latest"), data)


@pytest.mark.quick
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_user_blocks(tmp_path, libver):
    """MATLAB puts 512 bytes before the HDF5 file: addresses count from their end."""
    data = values("<u2")
    path = tmp_path / "scene.mat"
    with h5py.File(path, "w", userblock_size=512, libver=libver) as h:  # the subscripts in reverse order
        h.create_dataset("cube", data=np.transpose(data, (2, 1, 0)), chunks=(3, 5, 8), compression="gzip").attrs["MATLAB_class"] = np.bytes_("uint16")
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    check(path, data)


@pytest.mark.parametrize("dtype, fill", [("<f4", -7.5), (">i2", -321), ("<f8", 1e-300), ("u1", 200), ("<f4", None), ("<u2", 9), ("i1", -5)])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_chunks_that_were_never_written(tmp_path, dtype, fill, libver):
    data = np.full((LINES, SAMPLES, BANDS), 0 if fill is None else fill, dtype)
    written = values(dtype)
    def make(group):
        dataset = group.create_dataset("Reflectance_Data", data.shape, dtype, chunks=(8, 5, 4), fillvalue=fill, compression="gzip",
                                       maxshape=(None, SAMPLES, BANDS))
        for part in (np.s_[8:16, 5:10, 0:4], np.s_[20:25, 18:22, 8:9], np.s_[0:3, 0:2, 3:5]):
            dataset[part] = data[part] = written[part]
    path = site(tmp_path / "scene.h5", make, libver=libver)
    check(path, data)


def test_no_fill_value(tmp_path):
    """Chunks that were never written and have no fill value: the library leaves memory unchanged, which is 0 here."""
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_chunk((8, 5, 4))
    creation.set_fill_value(np.array(5, "<f4"))
    creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    data = np.zeros((LINES, SAMPLES, BANDS), "<f4")
    data[8:16, 5:10, :4] = values()[8:16, 5:10, :4]
    def make(group):
        dataset = h5py.h5d.create(group.id, b"Reflectance_Data", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple(data.shape), creation)
        h5py.Dataset(dataset)[8:16, 5:10, :4] = data[8:16, 5:10, :4]
    check(site(tmp_path / "scene.h5", make), data)


def test_nodata_and_masks_of_other_orders(tmp_path):
    """The nodata value is compared in the file's own type, in either byte order."""
    for dtype in ("<i2", ">i2", "<f4", ">f4"):
        data = values(dtype)
        data[data == -9999] = 1
        data[3, 4:9] = -9999
        def make(group):
            group.create_dataset("Reflectance_Data", data=data, chunks=(8, 5, 4), compression="gzip").attrs["Data_Ignore_Value"] = -9999.
        path = site(tmp_path / "scene.h5", make)
        out = json.loads(succeed(run("gdal_hsi_vd", "-json", path)).out)
        assert out["invalid_pixels"] == 5, (dtype, out)


def test_axes_in_any_order(tmp_path):
    """Uses cubes with bands first and in the middle, with windows and selected bands."""
    data = values("<f4")
    for axes in ((0, 1, 2), (2, 0, 1), (0, 2, 1)):
        names = np.array(["y", "x", "wavelength"])[list(axes)]
        path = tmp_path / f"{''.join(names)}.nc"
        with h5py.File(path, "w") as h:
            array = h.create_dataset("reflectance", data=np.transpose(data, axes), chunks=(4, 5, 6), compression="gzip", shuffle=True)
            for k, name in enumerate(names):
                h.create_dataset(name, data=np.linspace(400, 2400, array.shape[k]) if name == "wavelength" else np.arange(array.shape[k]) * 1.)
                h[name].make_scale(name)
                array.dims[k].attach_scale(h[name])
        if access(path) != "chunks":
            continue  # GDAL's own reader shows it correctly
        for bands in ([], ["-b", "8,2,3,5"]):
            chosen = data[:, :, [7, 1, 2, 4]] if bands else data
            got = copied(path, LINES, SAMPLES, *bands)
            assert got.tobytes() == chosen.tobytes(), (names, bands)
    assert access(tmp_path / "yxwavelength.nc") == "chunks"


# Cases for the library
# ------------------------------------------------------------------------------------------------------


def shared_type(group, data):
    group["kind"] = np.dtype("<f4")
    h5py.h5d.create(group.id, b"Reflectance_Data", group["kind"].id, h5py.h5s.create_simple(data.shape), chunked(8, 5, 4)).write(
        h5py.h5s.ALL, h5py.h5s.ALL, data)


def chunked(*chunk):
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_chunk(chunk)
    creation.set_deflate(4)
    return creation


def scaled_offset(group, data):
    group.create_dataset("Reflectance_Data", data=data.astype("i4"), chunks=(8, 5, 4), scaleoffset=0)


def in_one_piece(group, data):
    group["Reflectance_Data"] = data


LEFT = {"named type": shared_type, "scale-offset": scaled_offset, "contiguous": in_one_piece}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_to_the_library(tmp_path, name):
    data = np.rint(values("<f4")).astype("<f4")
    path = site(tmp_path / "scene.h5", lambda g: LEFT[name](g, data))
    check(path, data.astype("<i4") if name == "scale-offset" else data, "gdal")


# Damage ------------------------------------------------------------------------------------------------------------------


def refused(path, out, *what, command=("gdal_hsi_spp", "-device", "cpu", "-q")):
    for threads in (1, 3):
        refuse(1, ("cannot read", str(path), "the chunk of /SITE/Reflectance/Reflectance_Data", *what),
               *command, "-threads", threads, path, out / "out.tif", untouched=[out])


CHUNK, PLACE = (8, 5, 4), (8, 10, 4)


def with_one_chunk(path, filters, stored, mask=0):
    """Makes a file whose chunk at PLACE is stored(its samples); other chunks are valid."""
    data = values("<u2")
    def write(dataset):
        dataset[...] = data
        part = dict((at, whole) for at, whole in padded(data, CHUNK))[PLACE]
        dataset.id.write_direct_chunk(PLACE, stored(part.tobytes()), mask)
    return low_level(path, data, CHUNK, filters, write)


GZIP, SHUFFLE, FLETCHER, LZF = (1, (6,)), (2, (2,)), (3, ()), (32000, (4, 261, 320))
DAMAGE = {
    "more": ([GZIP], lambda raw: zlib.compress(raw + b"more"), "does not decode to its 320 bytes"),
    "less": ([GZIP], lambda raw: zlib.compress(raw[:-2]), "does not decode to its 320 bytes"),
    "nothing": ([GZIP], lambda raw: zlib.compress(b""), "does not decode"),
    "cut short": ([GZIP], lambda raw: zlib.compress(raw)[:-9], "does not decode"),
    "no zlib": ([GZIP], lambda raw: b"no zlib at all", "does not decode"),
    "wrong sum of zlib's": ([GZIP], lambda raw: zlib.compress(raw)[:-1] + b"!", "does not decode"),
    "checksum": ([FLETCHER], lambda raw: raw + b"\1\2\3\4", "fails its checksum"),
    "checksum in gzip": ([FLETCHER, GZIP], lambda raw: zlib.compress(raw + b"\1\2\3\4"), "fails its checksum"),
    "no checksum": ([FLETCHER], lambda raw: b"abc", "too short for its checksum"),
    "fewer bytes": ([SHUFFLE], lambda raw: raw[:-8], "has 312 bytes instead of 320"),
    "more bytes": ([SHUFFLE], lambda raw: raw + raw[:8], "has 328 bytes instead of 320"),
    "far too many": ([GZIP], lambda raw: zlib.compress(raw) + bytes(9000), "is too long for 320 bytes"),
    "lzf beyond its beginning": ([LZF], lambda raw: b"\x20\x05" + raw, "does not decode"),
    "lzf that ends early": ([LZF], lambda raw: b"\x1f" + raw[:20], "does not decode"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_chunks(tmp_path, out, name):
    filters, stored, what = DAMAGE[name]
    path = with_one_chunk(tmp_path / "scene.h5", filters, stored)
    refused(path, out, what, "at 8, 10, 4", "tile at sample")
    # The chunks next to it can be read.
    succeed(run("gdal_hsi_spp", "-device", "cpu", "-q", "-srcwin", 0, 0, 10, 8, path, out / "part.tif"))


def key_in_tree(content, at):
    """Returns the position in the tree of chunks of the entry for these coordinates: its bytes, mask, coordinates,
    address."""
    return content.index(struct.pack("<4Q", *at, 0)) - 8


@pytest.mark.parametrize("filters", ["none", "gzip"])
@pytest.mark.parametrize("name, where, value, what", [
    ("beyond the end", 40, 1 << 40, "ends after the end of the file"), ("at the end", 40, None, "ends after the end of the file"),
    ("beyond all files", 40, (1 << 64) - 2, "ends after the end of the file"), ("long", 0, 1 << 20, "of the file")])
def test_wrong_places(tmp_path, out, filters, name, where, value, what):
    path = cube(tmp_path / "scene.h5", values("<f4"), **PIPELINES[filters])
    content = bytearray(path.read_bytes())
    if value is None:
        value = len(content) - 3
    at = key_in_tree(content, (8, 10, 4)) + where
    content[at:at + (8 if where else 4)] = struct.pack("<Q" if where else "<I", value)
    path.write_bytes(content)
    refused(path, out, what, "at 8, 10, 4")


def test_size_that_is_not_a_chunks(tmp_path, out):
    path = cube(tmp_path / "scene.h5", values("<f4"))
    content = bytearray(path.read_bytes())
    at = key_in_tree(content, (8, 10, 4))
    assert struct.unpack_from("<I", content, at)[0] == 640
    struct.pack_into("<I", content, at, 600)
    path.write_bytes(content)
    refused(path, out, "should have 640 bytes", "(600 bytes at byte")


@pytest.mark.parametrize("libver, most", [("latest", None), ("latest", (None, SAMPLES, BANDS)), ("latest", (None, None, BANDS)),
                                          ("earliest", None)], ids=str)
def test_no_damage_gives_other_numbers_in_silence(tmp_path, out, libver, most):
    """Changes any byte of lists and chunks: an error, or the values that were written. gzip has a checksum; the library
    reads headers."""
    data = values("<i2")
    whole = cube(tmp_path / "scene.h5", data, {"libver": libver}, maxshape=most, compression="gzip", fletcher32=True).read_bytes()
    path = tmp_path / "damaged.h5"
    random = np.random.default_rng(len(whole))
    begin = whole.index(b"FADB" if most is None and libver == "latest" else b"EADB" if most and most[1] else b"BTLF" if most else b"TREE")
    for k in range(12):
        content = bytearray(whole)
        at = begin + 4 + int(random.integers(0, 600)) if k % 2 else int(random.integers(len(whole) // 2, len(whole)))
        if at >= len(content):
            continue
        content[at] ^= 1 << int(random.integers(0, 8))
        path.write_bytes(content)
        with assert_untouched(out):
            result = run("gdal_hsi_vd", "-q", path)
        assert result.code in (0, 1), result.err
        if result.code == 1:
            first_error(result)
        elif libver == "latest":
            assert copied(path, LINES, SAMPLES).tobytes() == data.tobytes(), (k, at)


# Threads, tiles, memory --------------------------------------------------------------------------------------------------


def test_threads_tiles_and_memory(tmp_path):
    """Outputs have equal bytes with chunks that are kept and with chunks that are decoded ahead."""
    data = values("<f4", 300, 260, 40)
    path = cube(tmp_path / "scene.h5", data, chunks=(96, 64, 16), compression="gzip", shuffle=True)
    answers, sums = set(), set()
    for words in (["-threads", 1], ["-threads", 2], ["-threads", 8], ["-threads", 3, "-tile", 50, 40], ["-threads", 4, "-memory", "64MB"],
                  ["-threads", 2, "-memory", "2GB"], ["-threads", 2, "-memory", "80MB", "-tile", 1024, 300], ["-threads", 8, "-tile", 64, 96]):
        answers.add(succeed(run("gdal_hsi_vd", "-json", *words, path)).out)
        image = tmp_path / "spp.img"
        succeed(run("gdal_hsi_spp", "-q", "-overwrite", "-device", "cpu", "-ws", 5, "-of", "ENVI", *words, path, image))
        sums.add(image.read_bytes())
    assert len(answers) == len(sums) == 1


@pytest.mark.parametrize("chunk", [(1, 1, 40), (4, 4, 4), (128, 100, 40)], ids=str)
def test_memory(tmp_path, chunk):
    """The process needs at most -memory plus the memory for a scene of a few pixels."""
    peaks = []
    for lines, samples in ((640, 500), (8, 8)):
        data = np.random.default_rng(1).integers(0, 50, (lines, samples, 40)).astype("f4")
        path = cube(tmp_path / "scene.h5", data, chunks=tuple(min(n, size) for n, size in zip(chunk, data.shape)), compression="gzip")
        for tool in ("vd", "spp"):
            report = tmp_path / f"{tool}_{lines}.json"
            written = [] if tool == "vd" else [tmp_path / "out.img", "-of", "ENVI", "-overwrite", "-device", "cpu"]
            succeed(run(f"gdal_hsi_{tool}", "-q", "-memory", "64MB", "-threads", 4, "-report", report, path, *written))
            peaks.append(json.loads(report.read_text())["peak_resident_bytes"] / 2**20)
    for large, tiny in zip(peaks[:2], peaks[2:]):
        assert large <= tiny + 64 + 20, peaks
