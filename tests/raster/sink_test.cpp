// SPDX-License-Identifier: MIT
#include "support/raster_fixtures.h"

#include "raster/files/atomic_file.h"
#include "raster/gdal_errors.h"
#include "raster/output_format.h"

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <functional>
#include <limits>
#include <thread>

namespace hsi::test {
namespace {

using raster::OutputOptions;
using raster::OutputSpec;
using raster::RasterSink;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> pattern(int64_t count, unsigned seed = 3) {
    std::mt19937 random(seed);
    std::vector<float> out(static_cast<size_t>(count));
    for (float& v : out)
        v = static_cast<float>(std::uniform_real_distribution<double>(-40000, 70000)(random));
    return out;
}

/// Writes the same values band by band, from the last band on, in pieces of some lines.
void write_bands(RasterSink& sink, const std::vector<float>& values, int64_t h) {
    const auto shape = sink.shape();
    for (int band = shape.bands - 1; band >= 0; --band)
        for (int64_t y = 0; y < shape.lines; y += h) {
            const Rect core{0, y, shape.samples, std::min(h, shape.lines - y)};
            const float* const from = values.data() + (band * shape.lines + y) * shape.samples;
            std::vector<float> piece(from, from + core.area());
            sink.write_band(band, core, CubeView<float>::packed(piece.data(), 1, core.h, core.w));
        }
}

/// Writes band-sequential values in tiles. `from` is copied for each run, since sinks may change their input.
void write_tiles(RasterSink& sink, const std::vector<float>& values, int64_t w, int64_t h, int threads = 1) {
    const auto shape = sink.shape();
    const TilePlan plan(shape.samples, shape.lines, w, h, 0, threads);
    const CubeView<const float> all = CubeView<const float>(
        values.data(), shape.bands, shape.lines, shape.samples, shape.samples, shape.samples * shape.lines);
    const auto lane = [&](int64_t first) {
        std::vector<float> memory(static_cast<size_t>(w * h * shape.bands));
        for (int64_t i = first; i < plan.size(); i += threads) {
            const Rect r = plan.tile(i).core;
            const auto view = CubeView<float>::packed(memory.data(), shape.bands, r.h, r.w);
            for (int b = 0; b < shape.bands; ++b)
                for (int64_t l = 0; l < r.h; ++l)
                    std::copy_n(all.row(b, r.y + l) + r.x, r.w, view.row(b, l));
            sink.write(r, view);
        }
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t)
        others.emplace_back(lane, t);
    lane(0);
    for (auto& t : others)
        t.join();
}

OutputSpec spec_of(int64_t samples, int64_t lines, int bands, const std::string& type = "Float32") {
    OutputSpec spec;
    spec.shape = {samples, lines, bands};
    spec.type = type;
    return spec;
}

struct SinkCase {
    const char* format;
    std::vector<std::string> options;
    const char* type;
    bool raw;
    bool coded = false; ///< compressed by the writer of the tiles instead of GDAL

    bool concurrent() const { return raw || coded; }
};

/// Adds codecs with the predictors that suit the type, in tiles and strips, with separate and interleaved
/// bands.
void add_compressed(std::vector<SinkCase>& out, const char* type) {
    const std::string name = type;
    for (const char* codec : {"DEFLATE", "ZSTD", "LZW"})
        for (const char* predictor : {"1", "2", "3"}) {
            if (*predictor == '3' && name.rfind("Float", 0) != 0) continue;
            const std::vector<std::string> how{std::string("COMPRESS=") + codec,
                                               std::string("PREDICTOR=") + predictor};
            for (const std::vector<std::string>& layout :
                 {std::vector<std::string>{"BLOCKXSIZE=32", "BLOCKYSIZE=16"},
                  {"INTERLEAVE=PIXEL", "BLOCKXSIZE=16", "BLOCKYSIZE=32", "BIGTIFF=YES"},
                  {"TILED=NO"},
                  {"TILED=NO", "BLOCKYSIZE=7", "INTERLEAVE=PIXEL"}}) {
                std::vector<std::string> options = how;
                options.insert(options.end(), layout.begin(), layout.end());
                // Libtiff cannot read floats with predictor 3 in the other byte order.
                if (*predictor != '3' && layout.front() == "TILED=NO") options.push_back("ENDIANNESS=BIG");
                out.push_back({"GTiff", options, type, false, true});
            }
        }
}

std::vector<SinkCase> sink_cases() {
    std::vector<SinkCase> out;
    for (const char* type : {"Byte", "Int16", "UInt16", "Int32", "UInt32", "Float32", "Float64"}) {
        for (const char* interleave : {"BSQ", "BIL", "BIP"})
            out.push_back({"ENVI", {std::string("INTERLEAVE=") + interleave}, type, true});
        out.push_back({"GTiff", {}, type, true});
        out.push_back({"GTiff", {"INTERLEAVE=PIXEL", "BLOCKXSIZE=16", "BLOCKYSIZE=32"}, type, true});
        out.push_back({"GTiff", {"BLOCKXSIZE=32", "BLOCKYSIZE=16", "BIGTIFF=YES"}, type, true});
        out.push_back({"GTiff", {"BLOCKXSIZE=16", "BLOCKYSIZE=16", "ENDIANNESS=BIG"}, type, true});
        add_compressed(out, type);
        out.push_back({"GTiff", {"BLOCKXSIZE=32", "BLOCKYSIZE=16", "COMPRESS=LZMA"}, type, false});
        out.push_back({"GTiff", {"BLOCKXSIZE=32", "BLOCKYSIZE=16", "SPARSE_OK=TRUE"}, type, false});
        out.push_back({"GTiff", {"TILED=NO"}, type, true});
        out.push_back(
            {"GTiff", {"TILED=NO", "BLOCKYSIZE=7", "INTERLEAVE=PIXEL", "ENDIANNESS=BIG"}, type, true});
    }
    out.push_back({"COG", {}, "Float32", true}); // written as a GTiff first
    out.push_back({"HFA", {}, "Int16", false});
    return out;
}

/// Returns an output of the case in the folder, with nodata 77.
OutputOptions options_of(const SinkCase& c, const TempFolder& folder) {
    OutputOptions options;
    options.path = folder / "out.x";
    options.format = c.format;
    options.creation_options = c.options;
    options.nodata = 77;
    return options;
}

class SinkValues : public ::testing::TestWithParam<SinkCase> {};

TEST_P(SinkValues, EqualGdalsOwnConversionForEveryTiling) {
    const SinkCase& c = GetParam();
    constexpr int w = 45, h = 38, bands = 6;
    auto values = pattern(w * h * bands);
    values[5] = nan;
    values[w * h + 7] = nan;
    const GDALDataType type = GDALGetDataTypeByName(c.type);
    // The values as GDAL converts them, except NaN.
    std::vector<double> stored(values.size());
    std::vector<float> expected(values.size());
    GDALCopyWords64(values.data(), GDT_Float32, 4, stored.data(), type, 8,
                    static_cast<GPtrDiff_t>(values.size()));
    GDALCopyWords64(stored.data(), type, 8, expected.data(), GDT_Float32, 4,
                    static_cast<GPtrDiff_t>(values.size()));
    for (size_t i : {size_t{5}, size_t{w * h + 7}})
        expected[i] = 77;
    std::string first;
    for (const auto& [tw, th] :
         {std::pair<int, int>{45, 38}, {45, 5}, {45, 16}, {17, 13}, {16, 32}, {64, 1}}) {
        const TempFolder folder;
        OutputOptions options = options_of(c, folder);
        // For larger types a row of blocks does not fit, so blocks wait on disk.
        if (c.coded && th < 20) options.memory = 30000;
        options.threads = th % 2 ? 3 : 1;
        auto sink = raster::create_sink(options, spec_of(w, h, bands, c.type), nullptr);
        EXPECT_EQ(sink->raw_access(), c.raw);
        EXPECT_EQ(sink->concurrent(), c.concurrent());
        EXPECT_EQ(sink->driver(), c.format);
        EXPECT_EQ(sink->stored_bytes_per_pixel(),
                  static_cast<uint64_t>(bands * GDALGetDataTypeSizeBytes(type)));
        write_tiles(*sink, values, tw, th, c.concurrent() ? 3 : 1);
        EXPECT_FALSE(fs::exists(options.path)) << "before commit()";
        sink->commit();
        sink.reset();
        EXPECT_TRUE(same_values(gdal_values(options.path), expected)) << tw << "x" << th;
        if (c.coded) {
            const std::string bytes = read_text(options.path);
            if (first.empty()) first = bytes;
            EXPECT_TRUE(bytes == first) << tw << "x" << th;
        }
        EXPECT_EQ(open_gdal(options.path)->GetRasterBand(bands)->GetNoDataValue(), 77);
        for (const std::string& name : folder.files())
            EXPECT_EQ(name.rfind("out.", 0), 0u) << name;
    }
    // Also band by band, if the file stores bands separately.
    const auto has = [&](const std::string& option) {
        return std::find(c.options.begin(), c.options.end(), option) != c.options.end();
    };
    const TempFolder folder;
    const OutputOptions options = options_of(c, folder);
    const auto spec = spec_of(w, h, bands, c.type);
    const bool apart = c.raw && std::string(c.format) != "COG" && !has("INTERLEAVE=BIL") &&
                       !has("INTERLEAVE=BIP") && !has("INTERLEAVE=PIXEL");
    EXPECT_EQ(raster::will_take_bands(options, spec), apart);
    auto sink = raster::create_sink(options, spec, nullptr);
    EXPECT_EQ(sink->takes_bands(), apart);
    if (!apart) return;
    write_bands(*sink, values, 11);
    sink->commit();
    EXPECT_TRUE(same_values(gdal_values(options.path), expected));
}

TEST(SinkBands, NeedAFileOfTheirOwn) {
    const TempFolder folder;
    OutputOptions options;
    options.format = "ENVI";
    for (const auto& [path, takes] : {std::pair<std::string, bool>{folder / "x.dat", true},
                                      {"/vsimem/x.dat", false},
                                      {raster::standard_output, false}}) {
        options.path = path;
        EXPECT_EQ(raster::will_take_bands(options, spec_of(5, 4, 3)), takes) << path;
    }
    options.path = folder / "x.dat";
    EXPECT_FALSE(raster::will_take_bands(options, spec_of(5, 4, 1))); // the band is the whole file
    auto sink = raster::create_sink(options, spec_of(5, 4, 1), nullptr);
    EXPECT_FALSE(sink->takes_bands());
}

INSTANTIATE_TEST_SUITE_P(Formats, SinkValues, ::testing::ValuesIn(sink_cases()), [](const auto& param) {
    std::string name = std::string(param.param.format) + param.param.type;
    for (const auto& o : param.param.options)
        name += o;
    name.erase(std::remove_if(name.begin(), name.end(),
                              [](char ch) { return !std::isalnum(static_cast<unsigned char>(ch)); }),
               name.end());
    return name;
});

TEST(SinkCopy, PngIsMadeThroughCreateCopy) {
    const TempFolder folder;
    OutputOptions options;
    options.path = folder / "classes.png";
    OutputSpec spec = spec_of(20, 10, 1, "Byte");
    spec.colours = {{0, 0, 0, 0}, {10, 200, 30, 255}};
    auto sink = raster::create_sink(options, spec, nullptr);
    EXPECT_EQ(sink->driver(), "PNG");
    std::vector<float> values(200, 1.0f);
    write_tiles(*sink, values, 20, 3);
    sink->commit();
    sink.reset();
    EXPECT_EQ(gdal_values(options.path), values);
    const Dataset d = open_gdal(options.path);
    ASSERT_NE(d->GetRasterBand(1)->GetColorTable(), nullptr);
    EXPECT_EQ(d->GetRasterBand(1)->GetColorTable()->GetColorEntry(1)->c2, 200);
    for (const std::string& name : folder.files())
        EXPECT_EQ(name.rfind("classes.png", 0), 0u) << name;
}

TEST(SinkVirtual, MemoryFilesAreRenamedToo) {
    OutputOptions options;
    options.path = "/vsimem/hsi-sink-test/out.tif";
    auto sink = raster::create_sink(options, spec_of(9, 8, 2), nullptr);
    const auto values = pattern(9 * 8 * 2);
    write_tiles(*sink, values, 9, 3);
    VSIStatBufL info;
    EXPECT_NE(VSIStatL(options.path.c_str(), &info), 0);
    sink->commit();
    EXPECT_TRUE(same_values(gdal_values(options.path), values));
    const CPLStringList names(VSIReadDir("/vsimem/hsi-sink-test"));
    EXPECT_EQ(names.size(), 1);
    EXPECT_THROW(raster::check_output(options, spec_of(9, 8, 2)), Error);
    VSIRmdirRecursive("/vsimem/hsi-sink-test");
}

TEST(SinkVirtual, ZipIsWrittenInPlace) {
    const TempFolder folder;
    OutputOptions options;
    options.path = "/vsizip/" + (folder / "a.zip") + "/out.tif";
    options.creation_options = {"STREAMABLE_OUTPUT=YES", "TILED=NO", "BLOCKYSIZE=1", "INTERLEAVE=PIXEL"};
    const auto values = pattern(9 * 8);
    {
        auto sink = raster::create_sink(options, spec_of(9, 8, 1), nullptr);
        write_tiles(*sink, values, 9, 1);
        sink->commit();
    }
    EXPECT_TRUE(same_values(gdal_values(options.path), values));
}

// --- refusals
// ---------------------------------------------------------------------------------------------------

void expect_refusal(const OutputOptions& options, const OutputSpec& spec, const std::string& part,
                    bool usage) {
    try {
        raster::check_output(options, spec);
        FAIL() << "accepted: " << options.path;
    } catch (const UsageError& e) {
        EXPECT_TRUE(usage) << e.what();
        EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    } catch (const Error& e) {
        EXPECT_FALSE(usage) << e.what();
        EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
}

TEST(SinkCheck, RefusesBeforeAnyWork) {
    const TempFolder folder;
    const auto with = [&](const std::string& name, const std::string& format = {}) {
        OutputOptions o;
        o.path = folder / name;
        o.format = format;
        return o;
    };
    expect_refusal(with("a.nosuch"), spec_of(4, 4, 1), "'.nosuch'", true);
    expect_refusal(with("a.tif", "NoDriver"), spec_of(4, 4, 1), "-of NoDriver", true);
    expect_refusal(with("a.cal", "CALS"), spec_of(4, 4, 1, "Byte"), "CALS", true);
    expect_refusal(with("a.png"), spec_of(4, 4, 1), "Float32", true);
    expect_refusal(with("a.png"), spec_of(4, 4, 224, "Byte"), "224 bands", true);
    expect_refusal(with("a.tif"), spec_of(4, 4, 1, "NoType"), "NoType", true);
    expect_refusal(with("a.tif"), spec_of(4, 4, 1, "CFloat32"), "CFloat32", true);
    expect_refusal(with("nofolder/a.tif"), spec_of(4, 4, 1), "nofolder", false);
    OutputOptions o = with("a.tif");
    o.creation_options = {"NOSUCHOPTION=1"};
    expect_refusal(o, spec_of(4, 4, 1), "NOSUCHOPTION", true);
    o.creation_options = {"COMPRESS=NOSUCH"};
    expect_refusal(o, spec_of(4, 4, 1), "NOSUCH", true);
    o.creation_options = {"COMPRESS"};
    expect_refusal(o, spec_of(4, 4, 1), "NAME=VALUE", true);
    o.creation_options = {"COMPRESS=JPEG"};
    expect_refusal(o, spec_of(4, 4, 5), "GTiff", true);
    o.creation_options = {"BIGTIFF=NO"};
    expect_refusal(o, spec_of(33000, 33000, 1), "smaller than 4 GiB", false);
    o = with("a.tif");
    o.nodata = -1;
    expect_refusal(o, spec_of(4, 4, 1, "Byte"), "-dstnodata -1", true);
    o.nodata = std::nan("");
    expect_refusal(o, spec_of(4, 4, 1, "Int16"), "-dstnodata", true);
    write_text(folder / "old.tif", "precious");
    expect_refusal(with("old.tif"), spec_of(4, 4, 1), "output '" + (folder / "old.tif") + "' already exists",
                   false);
    write_text(folder / "scene.hdr", "ENVI");
    expect_refusal(with("scene.bsq"), spec_of(4, 4, 1), "scene.hdr' already exists", false);
    fs::create_directory(folder / "dir.tif");
    o = with("dir.tif");
    o.overwrite = true;
    expect_refusal(o, spec_of(4, 4, 1), "is a folder", false);
    ASSERT_EQ(mkfifo((folder / "pipe.tif").c_str(), 0600), 0);
    o = with("pipe.tif");
    o.overwrite = true;
    expect_refusal(o, spec_of(4, 4, 1), "not a regular file", false);
    o.path = "/vsistdout/";
    o.format = "ENVI";
    expect_refusal(o, spec_of(4, 4, 1), "standard output", true);
    EXPECT_EQ(folder.files(), (std::vector<std::string>{"dir.tif", "old.tif", "pipe.tif", "scene.hdr"}));
    EXPECT_EQ(read_text(folder / "old.tif"), "precious");
}

TEST(SinkCheck, AcceptsWhatItShould) {
    const TempFolder folder;
    for (const char* name : {"a.tif", "noextension", "a.bsq", "a.vrt.tif", "a.png"}) {
        OutputOptions o;
        o.path = folder / name;
        EXPECT_NO_THROW(raster::check_output(o, spec_of(4, 4, 1, "Byte"))) << name;
    }
    EXPECT_TRUE(folder.files().empty()) << "check() leaves nothing behind";
}

TEST(SinkCheck, TheSourceIsNoDestination) {
    const TempFolder folder;
    create_gdal("GTiff", folder / "a.tif", 4, 4, 1, GDT_Float32).reset();
    fs::create_symlink(folder / "a.tif", folder / "b.tif");
    const auto source = open_source(folder / "a.tif");
    OutputOptions o;
    o.path = folder / "b.tif";
    o.overwrite = true;
    EXPECT_THROW(raster::create_sink(o, spec_of(4, 4, 1), source.get()), UsageError);
}

// --- nodata
// -----------------------------------------------------------------------------------------------------

TEST(SinkNodata, ComesFromTheSourceWhenItFits) {
    const TempFolder folder;
    {
        const Dataset d = create_gdal("GTiff", folder / "a.tif", 4, 4, 1, GDT_Float32);
        d->GetRasterBand(1)->SetNoDataValue(-9999);
    }
    const auto source = open_source(folder / "a.tif");
    const auto nodata_for = [&](const std::string& type, bool holes, const raster::RasterSource* like) {
        OutputOptions o;
        o.path = folder / "out.tif";
        OutputSpec spec = spec_of(4, 4, 1, type);
        spec.holes = holes;
        return raster::create_sink(o, spec, like)->nodata();
    };
    EXPECT_EQ(nodata_for("Float32", false, source.get()), -9999);
    EXPECT_EQ(nodata_for("Int16", false, source.get()), -9999);
    EXPECT_EQ(nodata_for("Byte", false, source.get()), 0) << "-9999 does not fit";
    EXPECT_EQ(nodata_for("Float32", false, nullptr), std::nullopt);
    EXPECT_TRUE(std::isnan(nodata_for("Float32", true, nullptr).value()));
    EXPECT_EQ(nodata_for("Int32", true, nullptr), -2147483648.0);
    EXPECT_EQ(nodata_for("UInt16", true, nullptr), 0);
    EXPECT_EQ(folder.files(), std::vector<std::string>{"a.tif"});
}

TEST(SinkNodata, LowestFloatSurvivesEnvi) {
    const TempFolder folder;
    OutputOptions o;
    o.path = folder / "a.img";
    o.format = "ENVI";
    o.nodata = -3.4028234663852886e+38;
    auto sink = raster::create_sink(o, spec_of(3, 1, 1), nullptr);
    write_tiles(*sink, {1, nan, 3}, 3, 1);
    sink->commit();
    const auto back = our_values(*open_source(o.path));
    EXPECT_TRUE(back[0] == 1 && std::isnan(back[1]) && back[2] == 3);
}

// --- atomicity
// --------------------------------------------------------------------------------------------------

TEST(SinkAtomic, WithoutCommitNothingStaysAndTheOldFileIsUntouched) {
    for (const char* format : {"ENVI", "GTiff", "PNG"}) {
        const TempFolder folder;
        write_text(folder / "out.img", "old data");
        write_text(folder / "out.hdr", "old header");
        OutputOptions o;
        o.path = folder / "out.img";
        o.format = format;
        o.overwrite = true;
        {
            auto sink = raster::create_sink(o, spec_of(30, 20, 1, "Byte"), nullptr);
            EXPECT_GT(folder.files().size(), 2u);
            write_tiles(*sink, pattern(600), 30, 7);
        }
        EXPECT_EQ(folder.files(), (std::vector<std::string>{"out.hdr", "out.img"})) << format;
        EXPECT_EQ(read_text(folder / "out.img"), "old data");
        EXPECT_EQ(read_text(folder / "out.hdr"), "old header");
    }
}

TEST(SinkAtomic, OverwritingRemovesSideFilesOfTheOldRasterOnly) {
    const TempFolder folder;
    {
        const Dataset d = create_gdal("ENVI", folder / "out.img", 4, 4, 1, GDT_Byte);
        d->SetMetadataItem("OLD", "1");
    }
    ASSERT_TRUE(fs::exists(folder / "out.img.aux.xml"));
    write_text(folder / "out.txt", "a neighbour");
    OutputOptions o;
    o.path = folder / "out.img";
    o.format = "GTiff";
    o.overwrite = true;
    const auto values = pattern(16);
    auto sink = raster::create_sink(o, spec_of(4, 4, 1), nullptr);
    write_tiles(*sink, values, 4, 4);
    sink->commit();
    EXPECT_EQ(folder.files(), (std::vector<std::string>{"out.img", "out.txt"}));
    EXPECT_TRUE(same_values(gdal_values(o.path), values));
    EXPECT_EQ(open_gdal(o.path)->GetMetadataItem("OLD"), nullptr);
}

TEST(SinkAtomic, ASymbolicLinkStaysAndItsTargetIsReplaced) {
    const TempFolder folder;
    fs::create_directory(folder / "real");
    write_text(folder / "real/data.tif", "old");
    fs::create_symlink(folder / "real/data.tif", folder / "link.tif");
    OutputOptions o;
    o.path = folder / "link.tif";
    o.overwrite = true;
    const auto values = pattern(16);
    auto sink = raster::create_sink(o, spec_of(4, 4, 1), nullptr);
    write_tiles(*sink, values, 4, 4);
    sink->commit();
    EXPECT_TRUE(fs::is_symlink(o.path));
    EXPECT_TRUE(same_values(gdal_values(folder / "real/data.tif"), values));
}

TEST(SinkAtomic, NoTemporaryNameIsLeftInsideTheFiles) {
    const TempFolder folder;
    OutputOptions o;
    o.path = folder / "out.img";
    o.format = "ENVI";
    OutputSpec spec = spec_of(4, 4, 1);
    spec.bands = {{"named", {}}}; // makes GDAL write a header with a description
    auto sink = raster::create_sink(o, spec, nullptr);
    write_tiles(*sink, pattern(16), 4, 4);
    sink->commit();
    EXPECT_EQ(read_text(folder / "out.hdr").find(".hsi-"), std::string::npos);
    EXPECT_NE(read_text(folder / "out.hdr").find("out.img"), std::string::npos)
        << read_text(folder / "out.hdr");
}

TEST(AtomicFile, AFolderInTheWayIsReplacedAsAWhole) {
    const TempFolder folder;
    write_text(folder / "out.hdr", "old header");
    raster::AtomicFile file(folder / "out.img");
    write_text(file.path(), "new data");
    const std::string header = file.path().substr(0, file.path().size() - 3) + "hdr";
    write_text(header, "new header");
    // A non-empty folder is in the way of the data file; commit() replaces the whole folder.
    fs::create_directory(folder / "out.img");
    write_text(folder / "out.img/keep", "x");
    file.commit({});
    EXPECT_EQ(read_text(folder / "out.img"), "new data");
    EXPECT_EQ(read_text(folder / "out.hdr"), "new header");
    EXPECT_EQ(folder.files(), (std::vector<std::string>{"out.hdr", "out.img"}));
}

// --- errors while writing
// ---------------------------------------------------------------------------------------

/// Runs `body` in a child process, which must end with status 0 and print nothing.
void in_child(const std::function<int()>& body) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(body());
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << "1: no error seen, 2: wrong message, 3: debris";
}

int write_until_refused(const TempFolder& folder, const std::string& format,
                        const std::vector<std::string>& co, const std::vector<std::string>& reasons) {
    OutputOptions o;
    o.path = folder / "big.out";
    o.format = format;
    o.creation_options = co;
    bool refused = false;
    try {
        auto sink = raster::create_sink(o, spec_of(700, 600, 8), nullptr);
        write_tiles(*sink, pattern(700 * 600 * 8), 700, 64);
        sink->commit();
    } catch (const Error& e) {
        refused = true;
        const std::string text = e.what();
        if (std::none_of(reasons.begin(), reasons.end(),
                         [&](const std::string& r) { return text.find(r) != std::string::npos; })) {
            fprintf(stderr, "%s\n", e.what());
            return 2;
        }
    }
    if (!refused) return 1;
    return folder.files().empty() ? 0 : 3;
}

class SinkFull : public ::testing::TestWithParam<std::pair<const char*, std::vector<std::string>>> {};

TEST_P(SinkFull, AFileSizeLimitIsAnErrorWithoutDebris) {
    const TempFolder folder;
    in_child([&] {
        signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{4 << 20, 4 << 20};
        setrlimit(RLIMIT_FSIZE, &limit);
        return write_until_refused(folder, GetParam().first, GetParam().second, {"big.out"});
    });
}

TEST_P(SinkFull, AFullDiskIsAnErrorWithoutDebris) {
    const TempFolder folder;
    if (mount("hsi-test", folder.path().c_str(), "tmpfs", 0, "size=6m") != 0)
        GTEST_SKIP() << "mounting a small file system takes root: " << std::strerror(errno);
    in_child([&] { return write_until_refused(folder, GetParam().first, GetParam().second, {"big.out"}); });
    EXPECT_EQ(umount(folder.path().c_str()), 0);
}

TEST(SinkStdout, AGeotiffCanBeStreamed) {
    const TempFolder folder;
    const auto values = pattern(30 * 20 * 3);
    const std::string copy = folder / "streamed.tif";
    in_child([&] {
        if (freopen(copy.c_str(), "wb", stdout) == nullptr) return 4;
        OutputOptions o;
        o.path = "/vsistdout/";
        try {
            const auto sink = raster::create_sink(o, spec_of(30, 20, 3), nullptr);
            write_tiles(*sink, values, 30, 7);
            sink->commit();
        } catch (const Error& e) {
            fprintf(stderr, "%s\n", e.what());
            return 1;
        }
        fflush(stdout);
        return 0;
    });
    EXPECT_TRUE(same_values(gdal_values(copy), values));
    EXPECT_EQ(folder.files(), std::vector<std::string>{"streamed.tif"});
}

INSTANTIATE_TEST_SUITE_P(Formats, SinkFull,
                         ::testing::Values(std::pair{"ENVI", std::vector<std::string>{}},
                                           std::pair{"ENVI", std::vector<std::string>{"INTERLEAVE=BIP"}},
                                           std::pair{"GTiff", std::vector<std::string>{}},
                                           std::pair{"GTiff", std::vector<std::string>{"COMPRESS=LZW"}},
                                           std::pair{"GTiff", std::vector<std::string>{"INTERLEAVE=PIXEL"}},
                                           std::pair{"COG", std::vector<std::string>{}}),
                         [](const auto& param) {
                             std::string name = param.param.first;
                             for (const auto& o : param.param.second)
                                 name += o;
                             name.erase(std::remove(name.begin(), name.end(), '='), name.end());
                             return name;
                         });

TEST(GdalErrors, CollectsNestsAndStaysOnOneLine) {
    const raster::GdalErrors outer;
    CPLError(CE_Failure, CPLE_AppDefined, "first\nline");
    {
        const raster::GdalErrors inner;
        CPLError(CE_Failure, CPLE_AppDefined, "inner");
        EXPECT_EQ(inner.text(), "inner");
    }
    CPLError(CE_Failure, CPLE_AppDefined, "second");
    CPLError(CE_Failure, CPLE_AppDefined, "second");
    CPLError(CE_Warning, CPLE_AppDefined, "only a warning");
    EXPECT_EQ(outer.text(), "first line; second");
    EXPECT_EQ(outer.warnings(), "only a warning");
}

} // namespace
} // namespace hsi::test
