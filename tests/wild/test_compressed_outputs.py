# SPDX-License-Identifier: MIT
"""Compressed GeoTIFFs whose blocks the tools compress: pixels equal the uncompressed output bit by bit, readers accept
the files without messages, and the bytes do not depend on -threads, -tile and -memory. Blocks that GDAL must compress
contain the same values."""
import os
import resource
import subprocess

import numpy as np
import pytest
from conftest import assert_untouched, cube, first_error, gdal, refuse_spp, run, spp, succeed, write_scene

CODECS = ["DEFLATE", "ZSTD", "LZW", "LERC", "LERC_DEFLATE", "LERC_ZSTD"]
LAYOUTS = {
    "default": [],
    "tiles": ["BLOCKXSIZE=64", "BLOCKYSIZE=32"],
    "edges": ["BLOCKXSIZE=112", "BLOCKYSIZE=112", "BIGTIFF=YES"],
    "pixel": ["INTERLEAVE=PIXEL", "BLOCKXSIZE=32", "BLOCKYSIZE=48"],
    "strips": ["TILED=NO"],
    "high strips": ["TILED=NO", "BLOCKYSIZE=13", "INTERLEAVE=PIXEL", "BIGTIFF=NO"],
}
TYPES = {"Byte": ["1", "2"], "Int16": ["1", "2"], "UInt32": ["2"], "Float32": ["1", "2", "3"], "Float64": ["1", "3"]}


def co(options):
    return [word for option in options for word in ("-co", option)]


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """Makes 111 x 75 pixels, not a multiple of any block size; two pixels have no value."""
    data = cube(111, 75, 5, scale=60).astype("f4")
    data[:, 3, 4] = data[:, 74, 110] = -9
    return write_scene(tmp_path_factory.mktemp("scene") / "in.img", data, nodata=-9)


def stored(path):
    """Returns the samples as they are in the file."""
    return gdal.Open(str(path)).ReadAsArray()


@pytest.fixture(scope="module")
def uncompressed(scene, tmp_path_factory):
    """Returns the samples of the uncompressed output, by type."""
    made = {}
    for kind in TYPES:
        path = tmp_path_factory.mktemp("plain") / f"{kind}.tif"
        succeed(spp("-q", "-ot", kind, "-dstnodata", 7, scene, path))
        made[kind] = stored(path)
    return made


# Every codec is combined with every layout; each codec and each layout with every type and every predictor.
PACKED = [(codec, layout, list(TYPES)[(c + k + more) % len(TYPES)]) for c, codec in enumerate(CODECS)
          for k, layout in enumerate(LAYOUTS) for more in (0, 2)]


def quietly(path):
    """Returns the dataset, and GDAL's messages while all of it is read."""
    said = []
    gdal.PushErrorHandler(lambda kind, number, text: said.append(text))
    try:
        dataset = gdal.Open(str(path))
        pixels = dataset.ReadAsArray()
    finally:
        gdal.PopErrorHandler()
    return dataset, pixels, said


@pytest.mark.parametrize("codec, layout, kind", PACKED)
def test_same_pixels_as_uncompressed(scene, uncompressed, tmp_path, codec, layout, kind):
    packed, wanted = tmp_path / "packed.tif", uncompressed[kind]
    for predictor in TYPES[kind] if "LERC" not in codec else ("",):
        predicted = [f"PREDICTOR={predictor}"] if predictor else []
        succeed(spp("-q", "-overwrite", "-ot", kind, "-dstnodata", 7, "-threads", 4, "-tile", 40, 10,
                    *co([f"COMPRESS={codec}", *predicted, *LAYOUTS[layout]]), scene, packed))
        dataset, pixels, said = quietly(packed)
        assert said == [], predictor
        assert pixels.dtype == wanted.dtype and pixels.tobytes() == wanted.tobytes(), predictor
        assert pixels[0, 3, 4] == 7 and dataset.GetRasterBand(5).GetNoDataValue() == 7
        assert dataset.GetMetadataItem("COMPRESSION", "IMAGE_STRUCTURE") == codec
        assert dataset.GetMetadataItem("INTERLEAVE", "IMAGE_STRUCTURE") == ("PIXEL" if "INTERLEAVE=PIXEL" in LAYOUTS[layout] else "BAND")
        assert os.listdir(tmp_path) == ["packed.tif"]


@pytest.mark.parametrize("codec", CODECS)
def test_other_readers(scene, tmp_path, codec):
    """Reads with tifffile and the codecs of imagecodecs."""
    tifffile = pytest.importorskip("tifffile")
    pytest.importorskip("imagecodecs")
    plain = tmp_path / "plain.tif"
    succeed(spp("-q", scene, plain))
    for layout, options in LAYOUTS.items():
        for predictor in (1, 2) if codec == "LZW" else (1,) if "LERC" in codec else (1, 2, 3):
            packed = tmp_path / "packed.tif"
            predicted = [f"PREDICTOR={predictor}"] if "LERC" not in codec else []
            succeed(spp("-q", "-overwrite", *co([f"COMPRESS={codec}", *predicted, *options]), scene, packed))
            with tifffile.TiffFile(packed) as file:
                pixels = file.asarray()
                assert file.is_bigtiff == ("BIGTIFF=YES" in options)
            if "INTERLEAVE=PIXEL" in options:
                pixels = np.moveaxis(pixels, 2, 0)
            assert np.array_equal(pixels, stored(plain), equal_nan=True), (layout, predictor)


@pytest.mark.parametrize("options", [["COMPRESS=DEFLATE", "PREDICTOR=3"], ["COMPRESS=ZSTD", "INTERLEAVE=PIXEL"], ["COMPRESS=LZW", "TILED=NO"],
                                     ["COMPRESS=LERC_DEFLATE"]],
                         ids=lambda options: options[0][9:])
def test_bytes_do_not_depend_on_how_it_is_computed(tmp_path, options):
    """A row of blocks has 19 MB. A quarter of -memory 48MB holds none of them, a quarter of 256MB three."""
    source = write_scene(tmp_path / "in.img", cube(400, 300, 40, noise=0.3))
    if "TILED=NO" not in options:
        options = options + ["BLOCKXSIZE=80", "BLOCKYSIZE=160" if "INTERLEAVE=PIXEL" in options else "BLOCKYSIZE=304"]
    bytes_of = set()
    ways = (["-threads", 1], ["-threads", 3, "-tile", 90, 70], ["-threads", 4, "-memory", "64MB"], ["-threads", 4],
            ["-threads", 4, "-memory", "256MB", "-co", "NUM_THREADS=2"], ["-threads", 1, "-memory", "64MB", "-tile", 64, 16])
    for words in ways if "PREDICTOR=3" in options else ways[:3]:
        out = tmp_path / "out.tif"
        succeed(spp("-q", "-overwrite", "-ws", 3, *words, *co(options), source, out))
        file = gdal.Open(str(out))
        start = int(file.GetRasterBand(1).GetMetadataItem("BLOCK_OFFSET_0_0", "TIFF"))
        # The part before it contains the command, in HSI_HISTORY.
        bytes_of.add(out.read_bytes()[start:])
    assert len(bytes_of) == 1


@pytest.mark.parametrize("options", [["COMPRESS=DEFLATE", "SPARSE_OK=TRUE"], ["COMPRESS=LZMA"], ["COMPRESS=LERC", "INTERLEAVE=PIXEL"],
                                     ["COMPRESS=LERC_ZSTD", "PREDICTOR=1"], ["COMPRESS=PACKBITS"]], ids=lambda options: "-".join(options))
def test_what_gdal_compresses(scene, tmp_path, options):
    codec = options[0][9:]
    if f"<Value>{codec}</Value>" not in gdal.GetDriverByName("GTiff").GetMetadataItem("DMD_CREATIONOPTIONLIST"):
        pytest.skip(f"this GDAL has no {codec}")
    succeed(spp("-q", scene, tmp_path / "plain.tif"))
    succeed(spp("-q", "-threads", 3, *co(options), scene, tmp_path / "packed.tif"))
    assert stored(tmp_path / "packed.tif").tobytes() == stored(tmp_path / "plain.tif").tobytes()


@pytest.mark.parametrize("codec", ["LERC", "LERC_DEFLATE", "LERC_ZSTD"])
def test_lerc_keeps_its_error(tmp_path, codec):
    """MAX_Z_ERROR limits the error, and NaN stays. The blocks equal GDAL's for the same values and options, byte by
    byte if they are compressed only once."""
    data = cube(111, 75, 5, scale=60).astype("f4")
    data[:, 3, 4] = data[2, 60:, :] = np.nan
    scene = write_scene(tmp_path / "in.img", data)
    plain, ours, theirs = (tmp_path / f"{name}.tif" for name in ("plain", "ours", "theirs"))
    options = [f"COMPRESS={codec}", "MAX_Z_ERROR=0.25", "INTERLEAVE=BAND", "TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=32"]
    succeed(spp("-q", "-dstnodata", "nan", scene, plain))
    succeed(spp("-q", "-dstnodata", "nan", "-threads", 3, *co(options), scene, ours))
    gdal.Translate(str(theirs), str(plain), creationOptions=options)
    wanted = stored(plain)
    assert np.isnan(wanted).any() and 0 < np.nanmax(np.abs(stored(ours) - wanted)) <= 0.25
    assert np.array_equal(stored(ours), stored(theirs), equal_nan=True)
    for path in ours, theirs:
        assert quietly(path)[2] == []
    files = [gdal.Open(str(path)) for path in (ours, theirs)]
    sizes = [[int(file.GetRasterBand(b + 1).GetMetadataItem(f"BLOCK_SIZE_{x}_{y}", "TIFF"))
              for b in range(5) for x in range(2) for y in range(3)] for file in files]
    if codec == "LERC":
        assert sizes[0] == sizes[1]


def gdal_reads_nan_of_lerc(folder, kind, codec, tiled):
    """Returns true if this GDAL can read its own pixel-interleaved files with NaN in some bands of a pixel."""
    path = folder / f"probe_{kind}_{codec}_{tiled}.tif"
    data = cube(32, 16, 3, scale=60).astype("f8" if kind == "Float64" else "f4")
    data[1, 3, 4] = data[:, 9, 20] = np.nan
    layout = ["TILED=YES", "BLOCKXSIZE=16", "BLOCKYSIZE=16"] if tiled else ["TILED=NO"]
    dataset = gdal.GetDriverByName("GTiff").Create(str(path), 32, 16, 3, gdal.GetDataTypeByName(kind),
                                                   options=[f"COMPRESS={codec}", "INTERLEAVE=PIXEL", *layout])
    dataset.WriteArray(data)
    dataset = None
    try:
        _, pixels, said = quietly(path)
    except RuntimeError:
        return False
    finally:
        path.unlink()
    return said == [] and np.array_equal(pixels, data, equal_nan=True)


@pytest.mark.parametrize("tiled", ["YES", "NO"])
@pytest.mark.parametrize("kind", ["Float32", "Float64"])
@pytest.mark.parametrize("codec", ["LERC", "LERC_DEFLATE", "LERC_ZSTD"])
def test_lerc_that_gdal_cannot_read_again(tmp_path, codec, kind, tiled):
    """Pixel interleave, with NaN in some bands of a pixel: refused if this GDAL cannot read its own files of this form.
    Written correctly if it can, if no NaN is stored, or if bands are separate."""
    data = cube(48, 40, 3, scale=60).astype("f4")
    data[1, 7, 9] = data[:, 30, 2] = np.nan
    source, whole = write_scene(tmp_path / "in.img", data), write_scene(tmp_path / "whole.img", np.nan_to_num(data, nan=5))
    reads = gdal_reads_nan_of_lerc(tmp_path, kind, codec, tiled == "YES")
    together = co([f"COMPRESS={codec}", "INTERLEAVE=PIXEL", f"TILED={tiled}"])
    common = ["-q", "-ws", 3]
    out = tmp_path / "out"
    out.mkdir()
    for words, scene in ([], source), (["-dstnodata", "nan"], source), ([], whole):
        words = [*words, "-ot", kind]
        succeed(spp(*common, "-overwrite", *words, scene, tmp_path / "plain.tif"))
        if reads:
            succeed(spp(*common, "-overwrite", *words, *together, scene, out / "o.tif"))
            assert np.array_equal(stored(out / "o.tif"), stored(tmp_path / "plain.tif"), equal_nan=True)
            continue
        result = refuse_spp(2, "cannot read NaN from LERC", *common, *words, *together, scene, out / "o.tif", untouched=[out])
        assert "INTERLEAVE=BAND" in result.err and "COMPRESS=ZSTD" in result.err and "-dstnodata" in result.err
    apart = co([f"COMPRESS={codec}", "INTERLEAVE=BAND", f"TILED={tiled}"])
    for words, options in ((["-ot", kind, "-dstnodata", -7], together), (["-ot", kind], apart), (["-ot", "Int16"], together)):
        succeed(spp(*common, "-overwrite", *words, source, tmp_path / "plain.tif"))
        succeed(spp(*common, "-overwrite", *words, *options, source, out / "o.tif"))
        _, pixels, said = quietly(out / "o.tif")
        assert said == [] and np.array_equal(pixels, stored(tmp_path / "plain.tif"), equal_nan=True), words


@pytest.mark.parametrize("tool", [("spp", "-ws", 3), ("pca", "-nc", 2), ("mnf", "-nc", 2), ("eadp", "-nc", 2)], ids=lambda tool: tool[0])
def test_lerc_is_refused_before_any_work(tmp_path, tool):
    """A dry run already refuses it, since the source shows whether missing values are stored as NaN or as a number."""
    data = np.random.default_rng(3).uniform(0.1, 1, (4, 24, 20)).astype("f4")
    together = ["-dry-run", *co(["COMPRESS=LERC", "INTERLEAVE=PIXEL"])]
    name, *own = tool
    succeed(run(f"gdal_hsi_{name}", *own, *together, write_scene(tmp_path / "number.img", data, nodata=-9), tmp_path / "o.tif"))
    result = run(f"gdal_hsi_{name}", *own, *together, write_scene(tmp_path / "nan.img", data), tmp_path / "o.tif")
    if gdal_reads_nan_of_lerc(tmp_path, "Float32", "LERC", True):
        succeed(result)
    else:
        assert result.code == 2 and "cannot read NaN from LERC" in first_error(result)


def test_cogs_with_lerc(tmp_path):
    """The bands are interleaved, also in overviews."""
    data = cube(300, 260, 3, scale=60).astype("f4")
    data[1, 7, 9] = data[:, 100:140, 2] = np.nan
    source = write_scene(tmp_path / "in.img", data)
    common = ["-q", "-overwrite", "-ws", 3, "-of", "COG", "-co", "BLOCKSIZE=128"]
    if gdal_reads_nan_of_lerc(tmp_path, "Float32", "LERC", True):
        succeed(spp(*common, "-co", "COMPRESS=LERC", source, tmp_path / "o.tif"))
    else:
        for options in ["COMPRESS=LERC"], ["COMPRESS=DEFLATE", "OVERVIEW_COMPRESS=LERC_ZSTD"]:
            result = spp(*common, *co(options), source, tmp_path / "o.tif")
            assert result.code == 2 and "cannot read NaN from LERC" in first_error(result)
            assert "-of GTiff" in result.err and not (tmp_path / "o.tif").exists()
    succeed(spp(*common, "-co", "COMPRESS=LERC", "-dstnodata", -7, source, tmp_path / "o.tif"))
    succeed(spp("-q", "-ws", 3, "-dstnodata", -7, source, tmp_path / "plain.tif"))
    assert np.array_equal(levels(tmp_path / "o.tif")[0], stored(tmp_path / "plain.tif"))


IGNORED = {
    "level": ("GTiff", ["COMPRESS=DEFLATE", "ZLEVEL=99"], "-co ZLEVEL=99 is not a whole number from 1 to 12", ""),
    "threads": ("GTiff", ["COMPRESS=LZW", "NUM_THREADS=abc"], "-co NUM_THREADS=abc is not ALL_CPUS or a whole number of at least 1", ""),
    "level of another codec": ("GTiff", ["COMPRESS=DEFLATE", "ZSTD_LEVEL=9"], "-co ZSTD_LEVEL=9 has no effect: the codec is DEFLATE",
                               "Leave it out, or give -co COMPRESS=ZSTD or LERC_ZSTD."),
    "predictor": ("GTiff", ["COMPRESS=PACKBITS", "PREDICTOR=2"], "-co PREDICTOR=2 has no effect: the codec is PACKBITS",
                  "Leave it out, or give -co COMPRESS=LZW, DEFLATE or ZSTD."),
    "strips": ("GTiff", ["TILED=NO", "BLOCKXSIZE=64"], "-co BLOCKXSIZE=64 has no effect: with TILED=NO blocks are strips, as wide as the raster",
               "Leave it out, or give -co TILED=YES."),
    "twice": ("GTiff", ["COMPRESS=LZW", "COMPRESS=ZSTD"], "-co COMPRESS=LZW and -co COMPRESS=ZSTD contradict each other", "Leave one of them out."),
    "COG": ("COG", ["COMPRESS=LZW", "LEVEL=9"], "-co LEVEL=9 has no effect: the codec is LZW",
            "Leave it out, or give -co COMPRESS=DEFLATE, LERC_DEFLATE, ZSTD, LERC_ZSTD or LZMA."),
}


@pytest.mark.parametrize("case", IGNORED)
def test_options_that_gdal_would_ignore(scene, tmp_path, case):
    kind, options, message, advice = IGNORED[case]
    with assert_untouched(tmp_path):
        result = spp("-of", kind, *co(options), scene, tmp_path / "o.tif")
    assert result.code == 2 and first_error(result) == message and advice in result.err, result.err


def test_levels(tmp_path):
    """A higher level needs less space for repeated numbers."""
    source = write_scene(tmp_path / "in.img", np.tile(cube(37, 25, 5, scale=60, noise=1), (1, 6, 6)))
    for codec, option, low, high in (("DEFLATE", "ZLEVEL", 1, 9), ("ZSTD", "ZSTD_LEVEL", 1, 19)):
        sizes = []
        for level in (low, high):
            out = tmp_path / f"{codec}{level}.tif"
            succeed(spp("-q", "-ot", "Byte", *co([f"COMPRESS={codec}", f"{option}={level}"]), source, out))
            sizes.append(out.stat().st_size)
        assert sizes[0] > sizes[1]


@pytest.mark.parametrize("predictor, kind", [("3", "Int16"), ("4", "Float32")])
def test_predictors_that_do_not_fit(scene, tmp_path, predictor, kind):
    with assert_untouched(tmp_path):
        result = spp("-q", "-ot", kind, *co(["COMPRESS=DEFLATE", f"PREDICTOR={predictor}"]), scene, tmp_path / "out.tif")
    assert result.code != 0
    first_error(result)


@pytest.mark.parametrize("threads, codec", [(1, "DEFLATE"), *((4, codec) for codec in CODECS)])
def test_disk_that_fills_up(tmp_path, codec, threads):
    source = write_scene(tmp_path / "in.img", cube(200, 160, 30, noise=0.5))
    out = tmp_path / "out"
    out.mkdir()
    (out / "out.tif").write_text("old")
    for limit in (20 << 10, 300 << 10, 1 << 20):
        with assert_untouched(out):
            result = spp("-q", "-overwrite", "-threads", threads, *co([f"COMPRESS={codec}", "BLOCKXSIZE=32", "BLOCKYSIZE=32"]), source,
                         out / "out.tif", limits={resource.RLIMIT_FSIZE: limit})
        assert result.code == 1
        assert "File too large" in first_error(result) or "room" in first_error(result) or "disk" in first_error(result)


def test_libtiff_reads_the_directory_without_a_word(scene, tmp_path):
    try:
        subprocess.run(["tiffinfo", "-v"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    except FileNotFoundError:
        pytest.skip("no tiffinfo here")
    for codec in CODECS:
        out = tmp_path / f"{codec}.tif"
        succeed(spp("-q", *co([f"COMPRESS={codec}"]), scene, out))
        done = subprocess.run(["tiffinfo", "-D", str(out)], capture_output=True, text=True, check=False)
        # This reader ignores GDAL's own tags in any file.
        said = [line for line in done.stderr.splitlines() if "Unknown field" not in line]
        assert done.returncode == 0 and said == [], done.stderr


def test_a_map_of_classes(scene, tmp_path):
    """Another type of output: one band of bytes with a legend."""
    maps = []
    for name, options in (("plain.tif", []), ("packed.tif", ["COMPRESS=ZSTD", "PREDICTOR=2"])):
        succeed(run("gdal_hsi_synth", "-q", "-size", 120, 90, 6, "-seed", 4, "-labels", tmp_path / name, *co(options), tmp_path / f"cube_{name}"))
        maps.append(stored(tmp_path / name))
    assert np.array_equal(*maps) and maps[0].max() > 0


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kind", TYPES)
def test_sources_of_gdal(tmp_path, codec, kind):
    """GDAL's compressed samples as a source give the results of the uncompressed samples."""
    samples = np.round(cube(111, 75, 5, scale=60)).astype({"Byte": "u1", "Int16": "i2", "UInt32": "u4", "Float32": "f4", "Float64": "f8"}[kind])
    if kind == "Int16":
        samples -= 40
    elif kind.startswith("Float"):
        samples = samples / 7 - 3
    plain = tmp_path / "plain.tif"
    dataset = gdal.GetDriverByName("GTiff").Create(str(plain), 111, 75, 5, gdal.GetDataTypeByName(kind))
    dataset.WriteArray(samples)
    dataset = None
    succeed(spp("-q", plain, tmp_path / "wanted.tif"))
    # LERC has no predictor. Each type is combined with every other layout, and each codec with all layouts.
    turn = CODECS.index(codec) + list(TYPES).index(kind)
    for predictor in TYPES[kind] if "LERC" not in codec else ("1",):
        for layout, options in list({**LAYOUTS, "other order": ["ENDIANNESS=BIG"]}.items())[turn % 2::2]:
            if layout == "other order" and predictor == "3":
                continue  # libtiff cannot read it
            tiled = [] if "TILED=NO" in options else ["TILED=YES"]
            apart = [] if "INTERLEAVE=PIXEL" in options else ["INTERLEAVE=BAND"]
            packed = tmp_path / "packed.tif"
            gdal.Translate(str(packed), str(plain), creationOptions=[f"COMPRESS={codec}", f"PREDICTOR={predictor}", *tiled, *apart, *options])
            succeed(spp("-q", "-overwrite", "-threads", 3, packed, tmp_path / "got.tif"))
            assert np.array_equal(stored(tmp_path / "got.tif"), stored(tmp_path / "wanted.tif")), (predictor, layout)


@pytest.mark.parametrize("codec", ["DEFLATE", "ZSTD"])
def test_damaged_blocks(tmp_path, codec):
    """Truncated, of another length, overwritten, beyond the end: an error, and no dst."""
    source = write_scene(tmp_path / "in.tif", cube(64, 64, 3).astype("f4"), "GTiff",
                         options=["TILED=YES", "BLOCKXSIZE=32", "BLOCKYSIZE=32", "INTERLEAVE=BAND", f"COMPRESS={codec}", "PREDICTOR=3"])
    file = gdal.Open(str(source))
    band = file.GetRasterBand(2)
    at, size = (int(band.GetMetadataItem(f"BLOCK_{what}_1_1", "TIFF")) for what in ("OFFSET", "SIZE"))
    good = open(source, "rb").read()
    out = tmp_path / "out"
    out.mkdir()
    for damaged in (good[:at + size // 2] + bytes(size - size // 2) + good[at + size:], good[:at] + b"\xff" * size + good[at + size:],
                    good[:at + 40] + good[at + 60:at + size] + bytes(20) + good[at + size:], good[:at + size // 3]):
        path = tmp_path / "damaged.tif"
        path.write_bytes(damaged)
        refuse_spp(1, "damaged.tif", "-q", path, out / "out.tif", untouched=[out])


COGS = {
    "deflate": ["COMPRESS=DEFLATE", "PREDICTOR=YES"],
    "zstd": ["COMPRESS=ZSTD", "LEVEL=3"],
    "lzw": ["COMPRESS=LZW", "PREDICTOR=STANDARD", "BIGTIFF=YES"],
    "uncompressed": ["COMPRESS=NONE"],
    "overviews otherwise": ["COMPRESS=DEFLATE", "OVERVIEW_COMPRESS=LZW", "OVERVIEW_RESAMPLING=AVERAGE", "OVERVIEW_COUNT=3"],
    "no overviews": ["COMPRESS=ZSTD", "OVERVIEWS=NONE"],
}


def levels(path):
    """Returns the pixels of all resolutions, the image first."""
    dataset = gdal.Open(str(path))
    bands = [dataset.GetRasterBand(b + 1) for b in range(dataset.RasterCount)]
    return [np.array([b.ReadAsArray() for b in bands])] + [
        np.array([b.GetOverview(k).ReadAsArray() for b in bands]) for k in range(bands[0].GetOverviewCount())]


def check_cog(path):
    """Checks the file with GDAL's own validator."""
    module = pytest.importorskip("osgeo_utils.samples.validate_cloud_optimized_geotiff")
    warnings, errors, _ = module.validate(str(path), full_check=True)
    assert (warnings, errors) == ([], [])


@pytest.mark.parametrize("options", COGS.values(), ids=COGS)
def test_a_cog_is_gdals(tmp_path, options):
    """Pixels and overviews equal those of GDAL's COG from the uncompressed output with its overviews; the structure
    satisfies its validator."""
    value = dict(option.split("=") for option in options)
    data = cube(301, 260, 4, scale=60).astype("f4")
    data[:, 3, 4] = data[:, 259, 300] = -9
    source = write_scene(tmp_path / "in.img", data, nodata=-9)
    for kind in ("Byte", "Int16", "Float32", "Float64") if "PREDICTOR=YES" in options else ("Int16", "Float64"):
        plain, ours, theirs = tmp_path / "plain.tif", tmp_path / "ours.tif", tmp_path / "theirs.tif"
        common = ["-q", "-overwrite", "-ot", kind, "-dstnodata", 7]
        succeed(spp(*common, source, plain))
        succeed(spp(*common, "-threads", 3, "-of", "COG", *co(["BLOCKSIZE=128", *options]), source, ours))
        if "OVERVIEWS" not in value:
            levels_of = [2, 4, 8][:int(value.get("OVERVIEW_COUNT", 2))]
            gdal.Open(str(plain), gdal.GA_Update).BuildOverviews(value.get("OVERVIEW_RESAMPLING", "CUBIC"), levels_of)
        gdal.Translate(str(theirs), str(plain), format="COG", creationOptions=["BLOCKSIZE=128", *options])
        assert quietly(ours)[2] == []
        for mine, other in zip(levels(ours), levels(theirs), strict=True):
            assert mine.dtype == other.dtype and mine.tobytes() == other.tobytes(), kind
        check_cog(ours)
        own, reference = gdal.Open(str(ours)), gdal.Open(str(theirs))
        assert own.GetMetadata("IMAGE_STRUCTURE") == reference.GetMetadata("IMAGE_STRUCTURE")
        assert own.GetGeoTransform() == reference.GetGeoTransform() and own.GetRasterBand(1).GetNoDataValue() == 7
        assert len(os.listdir(tmp_path)) == 5  # the scene's two files and these


def test_a_cogs_bytes_do_not_depend_on_threads(tmp_path):
    source = write_scene(tmp_path / "in.img", cube(400, 300, 40, noise=0.3))
    bytes_of = set()
    for words in (["-threads", 1], ["-threads", 4], ["-threads", 2, "-tile", 90, 70, "-memory", "64MB"]):
        out = tmp_path / "out.tif"
        succeed(spp("-q", "-overwrite", "-ws", 3, *words, "-of", "COG", *co(["COMPRESS=DEFLATE", "BLOCKSIZE=128"]), source, out))
        dataset = gdal.Open(str(out))
        band = dataset.GetRasterBand(1)
        smallest = band.GetOverview(band.GetOverviewCount() - 1)
        bytes_of.add(out.read_bytes()[int(smallest.GetMetadataItem("BLOCK_OFFSET_0_0", "TIFF")):])
    assert len(bytes_of) == 1


def test_a_cog_of_a_class_map(tmp_path):
    """The map keeps its colours and the names of its classes."""
    succeed(run("gdal_hsi_synth", "-q", "-size", 300, 200, 10, "-labels", tmp_path / "map.tif", tmp_path / "scene.dat"))
    succeed(run("gdal_hsi_sample", "-q", "-n", 20, "-of", "COG", "-co", "COMPRESS=DEFLATE", "-co", "BLOCKSIZE=128", tmp_path / "map.tif", tmp_path / "train.tif",
                tmp_path / "test.tif"))
    succeed(run("gdal_hsi_sample", "-q", "-n", 20, tmp_path / "map.tif", tmp_path / "train_plain.tif", tmp_path / "test_plain.tif"))
    files = [gdal.Open(str(tmp_path / name)) for name in ("test.tif", "test_plain.tif")]
    ours, plain = (file.GetRasterBand(1) for file in files)
    assert np.array_equal(ours.ReadAsArray(), plain.ReadAsArray())
    assert ours.GetCategoryNames() == plain.GetCategoryNames() and ours.GetMetadata() == plain.GetMetadata()
    history = {"HSI_HISTORY"}
    assert {k: v for k, v in files[0].GetMetadata().items() if k not in history} == {k: v for k, v in files[1].GetMetadata().items() if k not in history}
    assert [ours.GetColorTable().GetColorEntry(i) for i in range(4)] == [plain.GetColorTable().GetColorEntry(i) for i in range(4)]
    check_cog(tmp_path / "test.tif")


def test_what_gdal_makes_a_cog_of(scene, tmp_path):
    """Options that only the driver has."""
    succeed(spp("-q", scene, tmp_path / "plain.tif"))
    for options in (["COMPRESS=LERC_DEFLATE"], ["COMPRESS=DEFLATE", "SPARSE_OK=TRUE"]):
        succeed(spp("-q", "-overwrite", "-of", "COG", *co(options), scene, tmp_path / "out.tif"))
        assert stored(tmp_path / "out.tif").tobytes() == stored(tmp_path / "plain.tif").tobytes()
