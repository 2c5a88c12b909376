# SPDX-License-Identifier: MIT
"""Compressed GeoTIFFs as sources: values equal GDAL's bit by bit, for any codec, predictor, interleave, block size,
threads and tiles; blocks that were never written; and damaged blocks."""
import json
import struct
import zlib

import numpy as np
import pytest
from conftest import assert_untouched, cube, first_error, gdal, quick_only, run, spp, succeed

SAMPLES, LINES, BANDS = 75, 61, 7
LAYOUTS = {
    "band tiles": ["INTERLEAVE=BAND", "TILED=YES", "BLOCKXSIZE=32", "BLOCKYSIZE=48"],
    "pixel tiles": ["INTERLEAVE=PIXEL", "TILED=YES", "BLOCKXSIZE=32", "BLOCKYSIZE=48"],
    "band strips": ["INTERLEAVE=BAND", "BLOCKYSIZE=13"],
    "pixel strips": ["INTERLEAVE=PIXEL", "BLOCKYSIZE=13"],
    "one strip": ["INTERLEAVE=PIXEL", f"BLOCKYSIZE={LINES}"],
    "big": ["INTERLEAVE=PIXEL", "TILED=YES", "BLOCKXSIZE=128", "BLOCKYSIZE=16", "BIGTIFF=YES"],
}
CODECS = [f"COMPRESS={codec}" for codec in ("DEFLATE", "ZSTD", "LZW", "LERC", "LERC_ZSTD")]
KINDS = {"u1": gdal.GDT_Byte, "i2": gdal.GDT_Int16, "u2": gdal.GDT_UInt16, "i4": gdal.GDT_Int32, "u4": gdal.GDT_UInt32,
         "i8": gdal.GDT_Int64, "f4": gdal.GDT_Float32, "f8": gdal.GDT_Float64}
TYPES = {"u1": "12", "i2": "12", "u4": "2", "i8": "1", "f4": "123", "f8": "13"}


def values(dtype, seed=3):
    """Returns (band, line, sample): smooth parts, noise, and stretches of one value."""
    data = cube(SAMPLES, LINES, BANDS, seed, scale=100)
    data[:, 20:30, 10:60] = 17
    if np.dtype(dtype).kind != "f":
        data = np.clip(data, 1, 250)
    return data.astype(dtype)


def write(path, data, *options, missing=()):
    bands, lines, samples = data.shape
    options = list(options)
    dataset = gdal.GetDriverByName("GTiff").Create(str(path), samples, lines, bands, KINDS[data.dtype.str[1:]], options)
    dataset.SetGeoTransform((300000, 1, 0, 4000000, 0, -1))
    if not missing:
        dataset.WriteArray(data)
    for x, y, w, h in missing:  # overwritten next
        dataset.WriteArray(np.ascontiguousarray(data[:, y:y + h, x:x + w]), x, y)
    return path


def table_of_itself(folder):
    """Makes a lookup table that refers each pixel to itself."""
    grid = folder / "grid.tif"
    if not grid.exists():
        table = gdal.GetDriverByName("GTiff").Create(str(grid), SAMPLES, LINES, 2, gdal.GDT_Int32)
        table.SetGeoTransform((300000, 1, 0, 4000000, 0, -1))
        table.WriteArray(np.stack(np.meshgrid(np.arange(1, SAMPLES + 1), np.arange(1, LINES + 1))).astype("i4"))
    return grid


def copied(path, *options):
    """Returns all values, through a tool that copies numbers, on the scene's own grid."""
    out = path.with_name("copy.tif")
    succeed(run("gdal_hsi_orthorectify", "-q", "-overwrite", "-glt", table_of_itself(path.parent), *options, path, out))
    return gdal.Open(str(out)).ReadAsArray()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("codec", quick_only(CODECS[0], CODECS))
def test_values(tmp_path, codec, layout):
    """Every codec is combined with every layout, and each combination with half of the types, so each type occurs with
    all codecs and layouts."""
    turn = CODECS.index(codec) + list(LAYOUTS).index(layout)
    for dtype, predictors in list(TYPES.items())[turn % 2::2]:
        data = values(dtype)
        if "LERC" in codec:
            predictors = "" if dtype == "i8" else "1"
        for k, predictor in enumerate(predictors):
            path = write(tmp_path / "scene.tif", data, codec, f"PREDICTOR={predictor}", *LAYOUTS[layout])
            way = (["-threads", 3, "-tile", 17, 11], ["-threads", 1])[k % 2]
            got = copied(path, *way)
            assert got.dtype == data.dtype and got.tobytes() == data.tobytes(), (dtype, predictor, way)


@pytest.mark.parametrize("layout", ["band tiles", "pixel strips"])
@pytest.mark.parametrize("codec", ["DEFLATE", "ZSTD", "LZW", "LERC", "LERC_ZSTD", "PACKBITS", "LZMA"])
def test_values_in_the_other_byte_order(tmp_path, codec, layout):
    """GDAL 3.6 loses floats when it writes them in LERC."""
    for dtype, predictors in TYPES.items():
        if "LERC" in codec and dtype not in ("u1", "i2", "u4"):
            continue
        for predictor in predictors.replace("3", "") if codec in ("DEFLATE", "ZSTD", "LZW") else "1":
            options = [f"COMPRESS={codec}", "ENDIANNESS=BIG", *([f"PREDICTOR={predictor}"] if predictor != "1" else [])]
            path = write(tmp_path / "scene.tif", values(dtype), *options, *LAYOUTS[layout])
            assert path.read_bytes()[:2] == b"MM"
            assert copied(path, "-threads", 2).tobytes() == values(dtype).tobytes(), (dtype, predictor)


@pytest.mark.quick
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_predictor_of_floats(tmp_path, dtype, order):
    """Adobe's TIFF technical note 3 defines one order of the byte planes for files of either byte order. With
    ENDIANNESS=BIG, GDAL 3.6 writes the other order, so the test makes the file, with one strip per band."""
    data = values(dtype)
    planes = data.astype(">" + dtype).view("u1").reshape(BANDS, LINES, SAMPLES, -1).transpose(0, 1, 3, 2).reshape(BANDS, LINES, -1)
    strips = [zlib.compress(np.diff(band, axis=1, prepend=np.uint8(0)).tobytes()) for band in planes]
    offsets = [8 + sum(map(len, strips[:b])) for b in range(BANDS)]
    short, long = "H", "I"
    tags = [(256, short, [SAMPLES]), (257, short, [LINES]), (258, short, [8 * data.itemsize] * BANDS), (259, short, [8]), (262, short, [1]),
            (273, long, offsets), (277, short, [BANDS]), (278, short, [LINES]), (279, long, list(map(len, strips))), (284, short, [2]),
            (317, short, [3]), (338, short, [0] * (BANDS - 1)), (339, short, [3] * BANDS)]
    begin = offsets[-1] + len(strips[-1])
    behind, entries = begin + 2 + 12 * len(tags) + 4, b""
    lists = b""
    for tag, kind, numbers in tags:
        text = struct.pack(f"{order}{len(numbers)}{kind}", *numbers)
        if len(text) > 4:
            lists, text = lists + text, struct.pack(order + "I", behind + len(lists))
        entries += struct.pack(order + "HHI", tag, {short: 3, long: 4}[kind], len(numbers)) + text.ljust(4, b"\0")
    path = tmp_path / "scene.tif"
    path.write_bytes((b"MM" if order == ">" else b"II") + struct.pack(order + "HI", 42, begin) + b"".join(strips)
                     + struct.pack(order + "H", len(tags)) + entries + bytes(4) + lists)
    assert gdal.Open(str(path)).ReadAsArray().tobytes() == data.tobytes()
    assert copied(path).tobytes() == data.tobytes()


@pytest.mark.parametrize("predictor", [1, 2])
@pytest.mark.parametrize("order", ["LITTLE", "BIG"])
def test_checksums_of_deflate(tmp_path, order, predictor):
    """Damage near the end of a block: all samples can be decoded, some are wrong, and only the checksum shows it. The last
    byte before the checksum has up to seven bits of padding, which no checksum covers: zlib says which these are."""
    data = values("u2" if predictor == 2 else "f4")
    path = write(tmp_path / "scene.tif", data, "COMPRESS=DEFLATE", f"ENDIANNESS={order}", f"PREDICTOR={predictor}", *LAYOUTS["band tiles"])
    dataset = gdal.Open(str(path))
    at, size = (int(dataset.GetRasterBand(2).GetMetadataItem(f"BLOCK_{what}_0_0", "TIFF")) for what in ("OFFSET", "SIZE"))
    dataset = None
    good = path.read_bytes()
    block = zlib.decompress(good[at:at + size])
    succeed(spp("-q", "-of", "ENVI", "-ws", 3, path, tmp_path / "right.img"))
    padding = 0
    for back, bit in sorted({(back, 64) for back in range(1, 25)} | {(5, 1 << k) for k in range(8)}):
        damaged = bytearray(good)
        damaged[at + size - back] ^= bit
        path.write_bytes(damaged)
        try:
            same = zlib.decompress(damaged[at:at + size]) == block
        except zlib.error:
            same = False
        result = spp("-q", "-overwrite", "-of", "ENVI", "-ws", 3, path, tmp_path / "out.img")
        if same:
            padding += 1
            assert result.code == 0 and (tmp_path / "out.img").read_bytes() == (tmp_path / "right.img").read_bytes(), (back, bit)
            assert back == 5, "all other bits mean something"
        else:
            assert result.code == 1 and "does not decode" in first_error(result), (back, bit)
    assert padding <= 7


@pytest.mark.parametrize("layout", ["band tiles", "pixel tiles", "pixel strips"])
@pytest.mark.parametrize("codec", CODECS)
def test_same_results_by_all_ways(tmp_path, codec, layout):
    data = values("f4")
    plain = write(tmp_path / "plain.tif", data)
    packed = write(tmp_path / "packed.tif", data, codec, *LAYOUTS[layout])
    results = set()
    for source, words in ((plain, ["-threads", 1]), (packed, ["-threads", 8]), (packed, ["-threads", 3, "-tile", 20, 9]),
                          (packed, ["-threads", 2, "-memory", "64MB"])):
        succeed(spp("-q", "-overwrite", "-of", "ENVI", "-ws", 5, *words, source, tmp_path / "out.img"))
        results.add((tmp_path / "out.img").read_bytes())
    assert len(results) == 1


def test_chosen_bands_and_windows(tmp_path):
    data = values("i2")
    for layout in ("band tiles", "pixel tiles"):
        path = write(tmp_path / "scene.tif", data, "COMPRESS=LZW", *LAYOUTS[layout])
        for bands in ([6], [0], [5, 1, 2, 3], [0, 6]):
            got = copied(path, "-b", ",".join(str(b + 1) for b in bands)).reshape(len(bands), LINES, SAMPLES)
            assert got.tobytes() == data[bands].tobytes()
        plain = write(tmp_path / "plain.tif", data)
        told = {succeed(run("gdal_hsi_vd", "-json", "-srcwin", 30, 40, 33, 20, source)).out.replace(str(source), "") for source in (path, plain)}
        assert len(told) == 1


@pytest.mark.parametrize("layout", ["band tiles", "pixel tiles", "pixel strips"])
def test_blocks_that_were_never_written(tmp_path, layout):
    data = values("f4")
    dataset = write(tmp_path / "scene.tif", data, "COMPRESS=DEFLATE", "SPARSE_OK=TRUE", *LAYOUTS[layout], missing=[(0, 0, 32, 13)])
    file = gdal.Open(str(dataset), gdal.GA_Update)
    for b in range(BANDS):
        file.GetRasterBand(b + 1).SetNoDataValue(-5)
    file = None
    reference = gdal.Open(str(dataset)).ReadAsArray()
    assert (reference == data).any()
    assert copied(dataset, "-threads", 2).tobytes() == reference.tobytes()


@pytest.mark.parametrize("layout", ["band tiles", "pixel tiles"])
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("damage", ["cut short", "overwritten", "past the end"])
def test_damaged_blocks(tmp_path, out, codec, layout, damage):
    path = write(tmp_path / "scene.tif", values("f4"), codec, *LAYOUTS[layout])
    dataset = gdal.Open(str(path))
    def fact(what, band, x, y):
        return int(dataset.GetRasterBand(band).GetMetadataItem(f"BLOCK_{what}_{x}_{y}", "TIFF"))
    at, size = fact("OFFSET", 1, 1, 0), fact("SIZE", 1, 1, 0)
    last = max(fact("OFFSET", b + 1, x, y) for b in range(BANDS) for x in range(3) for y in range(2))
    dataset = None
    content = bytearray(path.read_bytes())
    if damage == "cut short":
        content[at + size // 2:at + size] = bytes(size - size // 2)
        if codec == "COMPRESS=LZW":
            pytest.skip("LZW has no checksum: zeros are codes, too")
    elif damage == "overwritten":
        content[at:at + 40] = b"\xff" * 40
    else:
        del content[last + 5:]
    path.write_bytes(content)
    for threads in (1, 3):
        with assert_untouched(out):
            result = spp("-q", "-threads", threads, path, out / "out.tif")
        error = first_error(result)
        assert result.code == 1 and str(path) in error and "the block of " in error and "of the file)" in error, result.err


@pytest.mark.parametrize("codec", CODECS)
def test_bits_the_other_way_round(tmp_path, codec):
    """The tag FillOrder: the bits in each byte of the blocks are reversed."""
    data = values("i2")
    path = write(tmp_path / "scene.tif", data, codec, "INTERLEAVE=PIXEL", f"BLOCKYSIZE={LINES}")
    dataset = gdal.Open(str(path))
    at, size = (int(dataset.GetRasterBand(1).GetMetadataItem(f"BLOCK_{what}_0_0", "TIFF")) for what in ("OFFSET", "SIZE"))
    dataset = None
    content = bytearray(path.read_bytes())
    content[at:at + size] = bytes(int(f"{byte:08b}"[::-1], 2) for byte in content[at:at + size])
    path.write_bytes(content)
    assert copied(path).tobytes() == data.tobytes()


@pytest.mark.parametrize("codec", ["LERC", "LERC_DEFLATE", "LERC_ZSTD"])
@pytest.mark.parametrize("layout", ["band tiles", "pixel tiles", "pixel strips", "band strips"])
def test_lerc_without_values(tmp_path, codec, layout):
    """NaN in all bands, in some, in a whole block, or nowhere. For some bands, with pixel interleave, libtiff 4.5
    writes the least number, and cannot read the file."""
    for dtype in {"LERC": ("f4", "f8"), "LERC_DEFLATE": ("f4",), "LERC_ZSTD": ("f8",)}[codec]:
        for holes in ([(slice(None), 3, 4)], [(2, 7, 8), (slice(None), 9, 9)], [(slice(None), slice(0, 48), slice(0, 40))], []):
            data = values(dtype)
            for hole in holes:
                data[hole] = np.nan
            got = copied(write(tmp_path / "scene.tif", data, f"COMPRESS={codec}", *LAYOUTS[layout]), "-threads", 2)
            assert np.array_equal(got, data, equal_nan=True), (dtype, holes)


def test_lerc_with_an_error(tmp_path):
    for layout in LAYOUTS.values():
        path = write(tmp_path / "scene.tif", values("f4"), "COMPRESS=LERC_ZSTD", "MAX_Z_ERROR=0.5", *layout)
        pixels = gdal.Open(str(path)).ReadAsArray()
        assert 0 < np.abs(pixels - values("f4")).max() <= 0.5 and copied(path).tobytes() == pixels.tobytes()


@pytest.mark.parametrize("codec", ["DEFLATE", "LERC", "LERC_DEFLATE"])
@pytest.mark.parametrize("kind", ["alpha", "mask", "nodata"])
@pytest.mark.parametrize("layout", ["band tiles", "pixel tiles"])
def test_masked_pixels(tmp_path, kind, layout, codec):
    data = values("u1")
    if kind == "alpha":
        data[1] = 255  # ALPHA=YES: the first band after that of a grey image
        data[1, 3:5, 6:16] = 0
    path = write(tmp_path / "scene.tif", data, f"COMPRESS={codec}", *LAYOUTS[layout], *(["ALPHA=YES"] if kind == "alpha" else []))
    file = gdal.Open(str(path), gdal.GA_Update)
    if kind == "mask":
        mask = np.full((LINES, SAMPLES), 255, "u1")
        mask[3:5, 6:16] = 0
        gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES")
        file.CreateMaskBand(gdal.GMF_PER_DATASET)
        file.GetRasterBand(1).GetMaskBand().WriteArray(mask)
        gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", None)
    if kind == "nodata":
        data[2, 3:5, 6:16] = 251
        file.WriteArray(data)
        for b in range(BANDS):
            file.GetRasterBand(b + 1).SetNoDataValue(251)
    file = None
    told = json.loads(succeed(run("gdal_hsi_vd", "-json", path)).out)
    assert told["invalid_pixels"] == 20


def facts_of(tmp_path, *words):
    report = tmp_path / "report.json"
    succeed(run(*words, "-report", report))
    return json.loads(report.read_text())


def test_seconds_of_codecs(tmp_path):
    """A report states the time of decompression per pass, and the time to complete the output after the last pass."""
    data = np.random.default_rng(2).normal(100, 9, (40, 120, 130)).astype("f4")
    plain, packed = write(tmp_path / "plain.tif", data), write(tmp_path / "packed.tif", data, "COMPRESS=DEFLATE")
    spp_of = ["gdal_hsi_spp", "-q", "-overwrite", "-device", "cpu"]

    facts = facts_of(tmp_path, *spp_of, plain, tmp_path / "a.tif")
    for part in [facts["totals"], *facts["passes"]]:
        assert part["decode_seconds"] == part["encode_seconds"] == 0

    facts = facts_of(tmp_path, *spp_of, packed, tmp_path / "a.tif")
    assert facts["passes"][0]["decode_seconds"] > 0 and facts["totals"]["encode_seconds"] == 0
    assert np.isclose(sum(one["decode_seconds"] for one in facts["passes"]), facts["totals"]["decode_seconds"])

    for codec in "DEFLATE", "ZSTD", "LZW", "LERC":
        facts = facts_of(tmp_path, *spp_of, "-co", f"COMPRESS={codec}", plain, tmp_path / "a.tif")
        assert facts["totals"]["decode_seconds"] == 0
        assert facts["totals"]["encode_seconds"] >= sum(one["encode_seconds"] for one in facts["passes"])
        assert facts["totals"]["encode_seconds"] > 0


def test_estimates_know_codecs(tmp_path):
    """The estimate for -device auto includes compression of the source and of the output."""
    data = np.zeros((40, 700, 700), "f4")
    plain, packed = write(tmp_path / "plain.tif", data), write(tmp_path / "packed.tif", data, "COMPRESS=ZSTD")

    def seconds(source, *options):
        words = ["gdal_hsi_spp", "-q", "-dry-run", "-device", "cpu", "-threads", 1, *options, source, tmp_path / "a.tif"]
        return facts_of(tmp_path, *words)["estimated_seconds"]["cpu"]

    uncompressed = seconds(plain)
    gigabytes = data.nbytes / 1e9
    assert np.isclose(seconds(packed) - uncompressed, 2 * 1.7 * gigabytes, rtol=0.02)  # two passes
    for codec, cost in ("DEFLATE", 4.3), ("ZSTD", 5.6), ("lzw", 11), ("LERC_ZSTD", 4.4):
        assert np.isclose(seconds(plain, "-co", f"COMPRESS={codec}") - uncompressed, cost * gigabytes, rtol=0.02)
    assert np.isclose(seconds(plain, "-of", "COG") - uncompressed, 11 * gigabytes, rtol=0.02)  # LZW only
