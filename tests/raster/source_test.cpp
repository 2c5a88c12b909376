// SPDX-License-Identifier: MIT
// Every raw layout, compared with GDAL's RasterIO, and the sources that use RasterIO.
#include "support/raster_fixtures.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::test {
namespace {

using raster::OpenOptions;
using raster::RasterSource;

constexpr int samples = 37, lines = 23, bands = 21;

/// Returns numbers over the whole range of the type, with some -7 (or 7) as nodata.
std::vector<double> numbers(GDALDataType type, size_t count) {
    std::mt19937 random(11);
    std::vector<double> out(count);
    for (auto& v : out) {
        const double r = std::uniform_real_distribution<double>(-1, 1)(random);
        switch (type) {
        case GDT_Byte:
            v = std::floor(127.5 + 127 * r);
            break;
        case GDT_Int16:
            v = std::floor(32000 * r);
            break;
        case GDT_UInt16:
            v = std::floor(32000 + 32000 * r);
            break;
        case GDT_Int32:
            v = std::floor(2e9 * r);
            break;
        case GDT_UInt32:
            v = std::floor(2e9 + 2e9 * r);
            break;
        default:
            v = 1e6 * r;
            break;
        }
        if (random() % 17 == 0) v = 7;
    }
    return out;
}

struct RawCase {
    const char* interleave;
    GDALDataType type;
    bool big_endian;
    bool nodata;
};

std::ostream& operator<<(std::ostream& out, const RawCase& c) {
    return out << c.interleave << GDALGetDataTypeName(c.type) << (c.big_endian ? "Big" : "Little")
               << (c.nodata ? "Nodata" : "");
}

std::vector<RawCase> raw_cases() {
    std::vector<RawCase> out;
    for (const char* interleave : {"BSQ", "BIL", "BIP"})
        for (const GDALDataType type :
             {GDT_Byte, GDT_Int16, GDT_UInt16, GDT_Int32, GDT_UInt32, GDT_Float32, GDT_Float64})
            for (const bool big : {false, true})
                for (const bool nodata : {false, true})
                    out.push_back({interleave, type, big, nodata});
    return out;
}

/// Writes an ENVI file with 64 bytes before its data.
std::string make_envi(const TempFolder& folder, const RawCase& c) {
    const std::string path = folder / "cube.img";
    {
        const Dataset d = create_gdal("ENVI", path, samples, lines, bands, c.type,
                                      {std::string("INTERLEAVE=") + c.interleave});
        auto values = numbers(c.type, static_cast<size_t>(samples * lines * bands));
        EXPECT_EQ(d->RasterIO(GF_Write, 0, 0, samples, lines, values.data(), samples, lines, GDT_Float64,
                              bands, nullptr, 0, 0, 0, nullptr),
                  CE_None);
        if (c.nodata)
            for (int b = 1; b <= bands; ++b)
                d->GetRasterBand(b)->SetNoDataValue(7);
    }
    std::string data = read_text(path), header = read_text(folder / "cube.hdr");
    if (c.big_endian) {
        const auto size = static_cast<size_t>(GDALGetDataTypeSizeBytes(c.type));
        for (size_t i = 0; i + size <= data.size(); i += size)
            std::reverse(data.begin() + i, data.begin() + i + size);
        header.replace(header.find("byte order = 0"), 14, "byte order = 1");
    }
    header.replace(header.find("header offset = 0"), 17, "header offset = 64");
    write_text(path, std::string(64, 'x') + data);
    write_text(folder / "cube.hdr", header);
    return path;
}

std::vector<float> with_nodata(std::vector<float> values, bool nodata) {
    if (nodata)
        for (float& v : values)
            if (v == 7) v = std::numeric_limits<float>::quiet_NaN();
    return values;
}

class RawSource : public ::testing::TestWithParam<RawCase> {};

TEST_P(RawSource, ReadsWhatGdalReads) {
    const TempFolder folder;
    const RawCase c = GetParam();
    const std::string path = make_envi(folder, c);
    const auto whole = open_source(path);
    ASSERT_EQ(whole->facts().access, raster::Access::raw);
    EXPECT_EQ(whole->stored_bytes_per_pixel(),
              static_cast<uint64_t>(bands * GDALGetDataTypeSizeBytes(c.type)));
    EXPECT_TRUE(same_values(our_values(*whole), with_nodata(gdal_values(path), c.nodata)));
    for (const Rect r : {Rect{0, 3, samples, 9}, Rect{5, 2, 13, 20}, Rect{36, 22, 1, 1}, Rect{0, 0, 36, 1}})
        EXPECT_TRUE(same_values(our_values(*whole, r), with_nodata(gdal_values(path, r), c.nodata)));

    OpenOptions options;
    options.path = path;
    options.window = Rect{4, 5, 30, 12};
    // Bands in another order, with gaps, runs and repetitions, and so few bands that transposing costs more.
    for (const std::vector<int>& chosen :
         {std::vector<int>{3, 4, 5, 6, 12, 13, 2}, {21, 1}, {20}, {9, 9, 10, 11, 12, 13, 14, 15, 16, 8, 9}}) {
        options.bands = chosen;
        const auto part = open_raster(options);
        EXPECT_EQ(part->bands(), chosen);
        const Rect tile{1, 2, 27, 7}, in_file{5, 7, 27, 7};
        part->open_reader()->prefetch(tile);
        EXPECT_TRUE(
            same_values(our_values(*part, tile), with_nodata(gdal_values(path, in_file, chosen), c.nodata)));
    }
}

INSTANTIATE_TEST_SUITE_P(Layouts, RawSource, ::testing::ValuesIn(raw_cases()),
                         [](const auto& param) { return ::testing::PrintToString(param.param); });

TEST(RawSourceBands, TwoThousandBandsInOneScatteredRead) {
    const TempFolder folder;
    for (const char* interleave : {"BIL", "BIP", "BSQ"}) {
        const std::string path = folder / (std::string(interleave) + ".img");
        const int many = 2100;
        {
            const Dataset d =
                create_gdal("ENVI", path, 5, 4, many, GDT_Float32, {std::string("INTERLEAVE=") + interleave});
            auto values = numbers(GDT_Float32, 5 * 4 * many);
            ASSERT_EQ(d->RasterIO(GF_Write, 0, 0, 5, 4, values.data(), 5, 4, GDT_Float64, many, nullptr, 0, 0,
                                  0, nullptr),
                      CE_None);
        }
        EXPECT_TRUE(same_values(our_values(*open_source(path)), gdal_values(path)));
        OpenOptions options;
        options.path = path;
        for (int b = 1; b <= many; b += 2)
            options.bands.push_back(b);
        EXPECT_TRUE(same_values(our_values(*open_raster(options)), gdal_values(path, {}, options.bands)));
    }
}

TEST(RawSourceDamage, ATruncatedFileIsAnErrorOnlyWhereItIsNeeded) {
    const TempFolder folder;
    for (const char* interleave : {"BSQ", "BIL", "BIP"}) {
        const std::string path = make_envi(folder, {interleave, GDT_Float32, false, false});
        fs::resize_file(path, fs::file_size(path) - 4);
        try {
            open_source(path);
            FAIL() << "a truncated " << interleave << " file was opened";
        } catch (const Error& e) {
            EXPECT_NE(std::string(e.what()).find(path), std::string::npos);
            EXPECT_NE(std::string(e.what()).find("truncated"), std::string::npos);
        }
        OpenOptions options;
        options.path = path;
        options.window = Rect{0, 0, samples, lines - 1};
        options.bands = {1, 2};
        EXPECT_NO_THROW(our_values(*open_raster(options)));
    }
}

TEST(RawSourceDamage, AFileThatShrinksWhileItIsReadIsAnError) {
    const TempFolder folder;
    const std::string path = make_envi(folder, {"BIL", GDT_Int16, false, false});
    const auto source = open_source(path);
    fs::resize_file(path, 5000);
    EXPECT_THROW(our_values(*source), Error);
}

TEST(RawSource, KnowsWhetherTheSystemHoldsTheFile) {
    const TempFolder folder;
    const std::string raw = folder / "s.img", packed = folder / "s.tif";
    for (const auto& [path, driver] : {std::pair(raw, "ENVI"), std::pair(packed, "GTiff")}) {
        const auto d = create_gdal(driver, path, 300, 200, 4, GDT_Float32,
                                   path == packed ? std::vector<std::string>{"COMPRESS=DEFLATE"}
                                                  : std::vector<std::string>{});
        for (int b = 1; b <= 4; ++b)
            d->GetRasterBand(b)->Fill(b);
    }
    raster::OpenOptions options;
    options.path = raw;
    EXPECT_TRUE(raster::open_raster(options)->held_by_system()) << "it has just been written";
    // A hole that was never read has no page in memory.
    fs::resize_file(raw, 0);
    fs::resize_file(raw, 300 * 200 * 4 * 4);
    EXPECT_FALSE(raster::open_raster(options)->held_by_system());
    options.path = packed;
    EXPECT_FALSE(raster::open_raster(options)->held_by_system()) << "decoding costs";
}

TEST(GdalSource, TiledAndCompressedFilesOfEveryType) {
    const TempFolder folder;
    for (const char* interleave : {"BAND", "PIXEL"})
        for (const GDALDataType type :
             {GDT_Byte, GDT_Int16, GDT_UInt16, GDT_Int32, GDT_UInt32, GDT_Float32, GDT_Float64})
            for (const bool nodata : {false, true}) {
                const std::string path = folder / "cube.tif";
                {
                    const Dataset d =
                        create_gdal("GTiff", path, samples, lines, bands, type,
                                    {"TILED=YES", "BLOCKXSIZE=16", "BLOCKYSIZE=16", "COMPRESS=DEFLATE",
                                     std::string("INTERLEAVE=") + interleave});
                    if (nodata) d->GetRasterBand(1)->SetNoDataValue(7);
                    auto values = numbers(type, static_cast<size_t>(samples * lines * bands));
                    ASSERT_EQ(d->RasterIO(GF_Write, 0, 0, samples, lines, values.data(), samples, lines,
                                          GDT_Float64, bands, nullptr, 0, 0, 0, nullptr),
                              CE_None);
                }
                OpenOptions options;
                options.path = path;
                options.bands = {1, 2, 3, 9, 8};
                options.window = Rect{3, 1, 30, 21};
                const auto source = open_raster(options);
                EXPECT_NE(source->facts().access, raster::Access::raw);
                EXPECT_EQ(source->layout().block_samples, 16);
                EXPECT_EQ(source->layout().block_lines, 16);
                EXPECT_GT(source->cache_bytes(), 0u);
                EXPECT_TRUE(
                    same_values(our_values(*source, Rect{2, 3, 25, 17}),
                                with_nodata(gdal_values(path, Rect{5, 4, 25, 17}, options.bands), nodata)));
            }
}

TEST(GdalSource, LargeWindowsThatMustBeComparedBeforeTheyBecomeFloatsAreReadInPieces) {
    constexpr int wide = 300, high = 260, deep = 40; // 25 MB exceed the scratch memory
    for (const char* interleave : {"PIXEL", "BAND"}) {
        const TempFolder folder;
        const std::string path = folder / "cube.tif";
        {
            const Dataset d = create_gdal(
                "GTiff", path, wide, high, deep, GDT_Float64,
                {"TILED=YES", "BLOCKXSIZE=256", "BLOCKYSIZE=256", std::string("INTERLEAVE=") + interleave});
            d->GetRasterBand(1)->SetNoDataValue(7);
            std::vector<double> values(static_cast<size_t>(wide) * high * deep);
            for (size_t i = 0; i < values.size(); ++i)
                values[i] = static_cast<double>(i % 1021);
            ASSERT_EQ(d->RasterIO(GF_Write, 0, 0, wide, high, values.data(), wide, high, GDT_Float64, deep,
                                  nullptr, 0, 0, 0, nullptr),
                      CE_None);
        }
        const auto source = open_source(path);
        for (const Rect window : {Rect{0, 0, wide, high}, Rect{11, 3, 280, 257}, Rect{250, 200, 20, 60}})
            EXPECT_TRUE(
                same_values(our_values(*source, window), with_nodata(gdal_values(path, window), true)))
                << interleave << " at " << window.x;
    }
}

TEST(GdalSource, WhatAReaderHoldsIsCounted) {
    const TempFolder folder;
    const auto held = [&](GDALDataType type, const std::vector<std::string>& options, bool nodata = false) {
        const std::string path = folder / "cube.tif";
        {
            const Dataset d = create_gdal("GTiff", path, 100, 100, 6, type, options);
            if (nodata) d->GetRasterBand(1)->SetNoDataValue(7);
        }
        return open_source(path)->reader_bytes();
    };
    const uint64_t block = uint64_t{32} * 48 * 4;
    const std::vector<std::string> tiled = {"TILED=YES", "BLOCKXSIZE=32", "BLOCKYSIZE=48"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.end(), tiled.begin(), tiled.end());
        return more;
    };
    EXPECT_EQ(held(GDT_Float32, with({"INTERLEAVE=PIXEL"})), 6 * block);
    EXPECT_EQ(held(GDT_Float32, with({"INTERLEAVE=PIXEL", "COMPRESS=DEFLATE"})), 12 * block);
    EXPECT_EQ(held(GDT_Float32, with({"INTERLEAVE=BAND"})),
              2 * block); // including the block into which blocks are read
    EXPECT_EQ(held(GDT_Float32, with({"INTERLEAVE=BAND", "COMPRESS=DEFLATE"})), 2 * block);
    EXPECT_GT(held(GDT_Float64, with({"INTERLEAVE=BAND"}), true), uint64_t{16} << 20);
    const std::string path = folder / "cube.img";
    create_gdal("ENVI", path, 10, 10, 2, GDT_Float32);
    EXPECT_EQ(open_source(path)->reader_bytes(), 0u);
}

TEST(GdalSource, ACorruptBlockIsAnErrorWithGdalsReason) {
    const TempFolder folder;
    const std::string path = folder / "cube.tif";
    {
        const Dataset d = create_gdal("GTiff", path, 64, 64, 2, GDT_Float32,
                                      {"COMPRESS=DEFLATE", "TILED=YES", "BLOCKXSIZE=32", "BLOCKYSIZE=32"});
        auto values = numbers(GDT_Float32, 64 * 64 * 2);
        ASSERT_EQ(d->RasterIO(GF_Write, 0, 0, 64, 64, values.data(), 64, 64, GDT_Float64, 2, nullptr, 0, 0, 0,
                              nullptr),
                  CE_None);
    }
    std::string data = read_text(path);
    for (size_t i = data.size() / 2; i < data.size() / 2 + 600; ++i)
        data[i] = static_cast<char>(~data[i]);
    write_text(path, data);
    const auto source = open_source(path);
    try {
        our_values(*source);
        FAIL() << "a corrupt file was read";
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("cannot read '" + path + "': "), std::string::npos) << e.what();
    }
}

TEST(GdalSource, ABandMaskBlanksItsPixels) {
    const TempFolder folder;
    const std::string path = folder / "cube.tif";
    {
        CPLSetThreadLocalConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES");
        const Dataset d = create_gdal("GTiff", path, 8, 6, 2, GDT_Byte);
        for (int b = 1; b <= 2; ++b)
            ASSERT_EQ(d->GetRasterBand(b)->Fill(50.0 + b), CE_None);
        ASSERT_EQ(d->CreateMaskBand(GMF_PER_DATASET), CE_None);
        std::vector<uint8_t> mask(48, 255);
        mask[9] = 0;
        ASSERT_EQ(d->GetRasterBand(1)->GetMaskBand()->RasterIO(GF_Write, 0, 0, 8, 6, mask.data(), 8, 6,
                                                               GDT_Byte, 0, 0, nullptr),
                  CE_None);
        CPLSetThreadLocalConfigOption("GDAL_TIFF_INTERNAL_MASK", nullptr);
    }
    const auto values = our_values(*open_source(path));
    for (size_t i = 0; i < values.size(); ++i) {
        if (i % 48 == 9)
            EXPECT_TRUE(std::isnan(values[i]));
        else
            EXPECT_EQ(values[i], i < 48 ? 51 : 52);
    }
}

TEST(GdalSource, AnAlphaBandIsAMaskAndNoSpectrum) {
    const TempFolder folder;
    const std::string path = folder / "rgba.tif";
    {
        const Dataset d = create_gdal("GTiff", path, 4, 4, 4, GDT_Byte, {"PHOTOMETRIC=RGB", "ALPHA=YES"});
        for (int b = 1; b <= 3; ++b)
            ASSERT_EQ(d->GetRasterBand(b)->Fill(10 * b), CE_None);
        std::vector<uint8_t> alpha(16, 255);
        alpha[5] = 0;
        ASSERT_EQ(
            d->GetRasterBand(4)->RasterIO(GF_Write, 0, 0, 4, 4, alpha.data(), 4, 4, GDT_Byte, 0, 0, nullptr),
            CE_None);
    }
    const auto source = open_source(path);
    EXPECT_EQ(source->bands(), (std::vector<int>{1, 2, 3}));
    const auto values = our_values(*source);
    EXPECT_TRUE(std::isnan(values[5]) && std::isnan(values[16 + 5]) && std::isnan(values[32 + 5]));
    EXPECT_EQ(values[4], 10);
    EXPECT_EQ(values[32], 30);
}

TEST(GdalSource, NodataMayDifferFromBandToBand) {
    const TempFolder folder;
    const std::string tif = folder / "a.tif", path = folder / "a.vrt";
    {
        const Dataset d = create_gdal("GTiff", tif, 2, 1, 2, GDT_Float32);
        float v[] = {1, 2, 1, 2};
        ASSERT_EQ(d->RasterIO(GF_Write, 0, 0, 2, 1, v, 2, 1, GDT_Float32, 2, nullptr, 0, 0, 0, nullptr),
                  CE_None);
    }
    write_text(
        path,
        "<VRTDataset rasterXSize='2' rasterYSize='1'>"
        "<VRTRasterBand dataType='Float32' band='1'><NoDataValue>1</NoDataValue><SimpleSource>"
        "<SourceFilename "
        "relativeToVRT='1'>a.tif</SourceFilename><SourceBand>1</SourceBand></SimpleSource></VRTRasterBand>"
        "<VRTRasterBand dataType='Float32' band='2'><NoDataValue>2</NoDataValue><SimpleSource>"
        "<SourceFilename "
        "relativeToVRT='1'>a.tif</SourceFilename><SourceBand>2</SourceBand></SimpleSource></VRTRasterBand></"
        "VRTDataset>");
    const auto v = our_values(*open_source(path));
    EXPECT_TRUE(std::isnan(v[0]) && v[1] == 2 && v[2] == 1 && std::isnan(v[3]));
    OpenOptions options;
    options.path = path;
    options.nodata = 2;
    const auto w = our_values(*open_raster(options));
    EXPECT_TRUE(w[0] == 1 && std::isnan(w[1]) && w[2] == 1 && std::isnan(w[3]));
}

TEST(GdalSource, NanAndInfinityStay) {
    const TempFolder folder;
    const std::string path = folder / "a.img";
    const float inf = std::numeric_limits<float>::infinity();
    {
        const Dataset d = create_gdal("ENVI", path, 4, 1, 1, GDT_Float32);
        float v[] = {std::nanf(""), inf, -inf, -9999};
        ASSERT_EQ(d->RasterIO(GF_Write, 0, 0, 4, 1, v, 4, 1, GDT_Float32, 1, nullptr, 0, 0, 0, nullptr),
                  CE_None);
        d->GetRasterBand(1)->SetNoDataValue(-9999);
    }
    const auto v = our_values(*open_source(path));
    EXPECT_TRUE(std::isnan(v[0]) && v[1] == inf && v[2] == -inf && std::isnan(v[3]));
}

void expect_error(const OpenOptions& options, const std::string& part, bool usage) {
    try {
        open_raster(options);
        FAIL() << "opened, though: " << part;
    } catch (const UsageError& e) {
        EXPECT_TRUE(usage) << e.what();
        EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    } catch (const Error& e) {
        EXPECT_FALSE(usage) << e.what();
        EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
}

TEST(SourceErrors, SayWhatIsWrong) {
    const TempFolder folder;
    OpenOptions options;
    options.path = folder / "none.tif";
    expect_error(options, "none.tif", false);
    options.path = folder / "text.tif";
    write_text(options.path, "no raster");
    expect_error(options, "cannot open '" + options.path + "'", false);
    options.path = folder / "complex.tif";
    create_gdal("GTiff", options.path, 3, 2, 1, GDT_CFloat32).reset();
    expect_error(options, "complex", false);
    options.path = folder / "good.tif";
    create_gdal("GTiff", options.path, 3, 2, 2, GDT_Byte).reset();
    options.bands = {3};
    expect_error(options, "-b 3", true);
    options.bands = {0};
    expect_error(options, "-b 0", true);
    options.bands = {};
    options.window = Rect{1, 0, 3, 1};
    expect_error(options, "-srcwin 1 0 3 1", true);
    options.window = Rect{0, 0, 0, 1};
    expect_error(options, "-srcwin", true);
    options.window.reset();
    options.drivers = {"NoSuchDriver"};
    expect_error(options, "-if NoSuchDriver", true);
    options.drivers = {"ENVI"};
    expect_error(options, "good.tif", false);
}

TEST(SourceBands, BadBandsAreLeftOutUnlessAskedFor) {
    const TempFolder folder;
    const std::string path = folder / "a.img";
    { create_gdal("ENVI", path, 3, 2, 4, GDT_Float32); }
    write_text(folder / "a.hdr", read_text(folder / "a.hdr") + "bbl = {1, 0, 1, 0}\n");
    OpenOptions options;
    options.path = path;
    auto source = open_raster(options);
    EXPECT_EQ(source->bands(), (std::vector<int>{1, 3}));
    EXPECT_EQ(source->facts().bands.bad, (std::vector<int>{2, 4}));
    EXPECT_EQ(source->without_bands({0})->bands(), std::vector<int>{3});
    EXPECT_THROW(source->without_bands({0, 1}), Error);
    options.use_bbl = false;
    EXPECT_EQ(open_raster(options)->bands().size(), 4u);
    options.use_bbl = true;
    options.bands = {2};
    EXPECT_EQ(open_raster(options)->bands(), std::vector<int>{2});
    write_text(folder / "a.hdr", read_text(folder / "a.hdr") + "bbl = {0, 0, 0, 0}\n");
    options.bands.clear();
    expect_error(options, "every band", false);
}

TEST(RealSources, EveryRealSceneReadsAsGdalReadsIt) {
    HSI_NEED_SCENE(probe, "emit");
    int raw = 0;
    for (const char* name :
         {"emit/emit20250324t221005_jpl_unmix_ex", "avirisng/ang20170323t202244_rdn_7000-7010",
          "indian_pines/indian_pines.img", "jasper_ridge/jasper_ridge.img", "pavia_centre/pavia_centre.img",
          "enmap_berlin/EnMAP_BerlinUrbanGradient.bsq", "enmap_potsdam/images/enmap_potsdam_tile_128_0.tif",
          "enmap_potsdam/enmap_potsdam.vrt"}) {
        const std::string path = real_data() + "/" + name;
        OpenOptions options;
        options.path = path;
        options.use_bbl = false;
        const auto source = open_raster(options);
        raw += source->facts().access == raster::Access::raw;
        auto expected = gdal_values(path);
        if (const auto nodata = source->facts().bands.nodata)
            for (float& v : expected)
                if (v == static_cast<float>(*nodata)) v = std::numeric_limits<float>::quiet_NaN();
        EXPECT_TRUE(same_values(our_values(*source), expected)) << name;
    }
    EXPECT_GE(raw, 5);
}

} // namespace
} // namespace hsi::test
