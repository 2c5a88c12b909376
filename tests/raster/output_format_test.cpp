// SPDX-License-Identifier: MIT
// Every raster driver of this GDAL that can write. A format in which gdal_translate preserves a scene must be
// written correctly or refused. A file that is written must be correct, even if gdal_translate's is not.
#include "raster/output_format.h"

#include "support/raster_fixtures.h"

#include <gdal_utils.h>
#include <ogr_spatialref.h>

#include <cmath>

namespace hsi::test {
namespace {

using raster::OutputOptions;
using raster::OutputSpec;
using raster::RasterSink;
using raster::RasterSource;

constexpr int samples = 24, lines = 20;

struct Kind {
    const char* type;
    int bands;
    std::string text() const { return std::to_string(bands) + " of " + type; }
};
constexpr Kind kinds[] = {{"Byte", 1},  {"Byte", 3},    {"Int16", 1},
                          {"Int16", 3}, {"Float32", 1}, {"Float32", 3}};

/// Drivers that preserve a scene with gdal_translate, but are refused: driver, reason.
const std::map<std::string, std::string> refused_although_held = {
    {"ZMap", "seven decimals: it holds values of this size, and nothing of small ones"},
    {"ISCE",
     "from GDAL 3.13 on it reads each row before it writes a part of it, and fails in a file that is new"}};

/// Lossy drivers: the test compares only the size and the number of bands.
bool lossy(const std::string& driver) { return driver == "JPEG"; }

std::vector<float> values_of(const Kind& kind) {
    std::mt19937 random(7);
    std::vector<float> out(static_cast<size_t>(samples * lines * kind.bands));
    for (float& v : out) {
        const double u = std::uniform_real_distribution<double>(0, 1)(random);
        if (std::string(kind.type) == "Byte") v = static_cast<float>(std::floor(1 + 254 * u));
        if (std::string(kind.type) == "Int16") v = static_cast<float>(std::floor(-9000 + 19000 * u));
        if (std::string(kind.type) == "Float32") v = static_cast<float>(-300 + 1400 * u * u * u);
    }
    return out;
}

/// Writes a GeoTIFF with these values, at a position that most formats can store.
void make_scene(const std::string& path, const Kind& kind) {
    auto values = values_of(kind);
    const Dataset d =
        create_gdal("GTiff", path, samples, lines, kind.bands, GDALGetDataTypeByName(kind.type));
    double gt[6] = {500000, 20, 0, 4480000, 0, -20};
    d->SetGeoTransform(gt);
    OGRSpatialReference srs;
    srs.importFromEPSG(32632);
    d->SetSpatialRef(&srs);
    ASSERT_EQ(d->RasterIO(GF_Write, 0, 0, samples, lines, values.data(), samples, lines, GDT_Float32,
                          kind.bands, nullptr, 0, 0, 0, nullptr),
              CE_None);
}

/// Returns a message unless the file holds the values in the right number of bands, as one dataset or as one
/// array (subdataset) per band.
std::string difference(const std::string& path, const Kind& kind, bool values) {
    const Dataset whole = open_gdal(path);
    if (!whole) return "does not open";
    std::vector<Dataset> parts;
    const CPLStringList items(CSLDuplicate(whole->GetMetadata("SUBDATASETS")));
    for (int i = 0; whole->GetRasterCount() == 0 && i < items.size(); ++i) {
        const std::string item = items[i];
        const size_t at = item.find("_NAME=");
        if (at != std::string::npos && item.find("Band") != std::string::npos)
            parts.push_back(open_gdal(item.substr(at + 6)));
    }
    const int bands = parts.empty() ? whole->GetRasterCount() : static_cast<int>(parts.size());
    if (bands != kind.bands) return std::to_string(bands) + " bands";
    const auto want = values_of(kind);
    for (int b = 0; b < bands; ++b) {
        GDALDataset& d = parts.empty() ? *whole : *parts[static_cast<size_t>(b)];
        if (d.GetRasterXSize() != samples || d.GetRasterYSize() != lines) return "another size";
        std::vector<float> got(static_cast<size_t>(samples * lines));
        if (d.GetRasterBand(parts.empty() ? b + 1 : 1)
                ->RasterIO(GF_Read, 0, 0, samples, lines, got.data(), samples, lines, GDT_Float32, 0, 0,
                           nullptr) != CE_None)
            return "does not read";
        for (size_t i = 0; values && i < got.size(); ++i)
            if (got[i] != want[static_cast<size_t>(b) * got.size() + i])
                return "band " + std::to_string(b + 1) + " has " + std::to_string(got[i]) + " for " +
                       std::to_string(want[static_cast<size_t>(b) * got.size() + i]);
    }
    return {};
}

/// Returns an empty text if the format is written, otherwise the reason for refusing it.
std::string ours(const std::string& scene, const std::string& path, const std::string& driver,
                 const Kind& kind) {
    OutputOptions options;
    options.path = path;
    options.format = driver;
    OutputSpec spec;
    spec.shape = {samples, lines, kind.bands};
    spec.type = kind.type;
    spec.same_bands = true;
    try {
        raster::check_output(options, spec);
        raster::OpenOptions open;
        open.path = scene;
        const auto source = open_raster(open);
        const auto sink = raster::create_sink(options, spec, source.get());
        auto values = values_of(kind);
        sink->write({0, 0, samples, lines},
                    CubeView<float>::packed(values.data(), kind.bands, lines, samples));
        sink->commit();
        return {};
    } catch (const Error& e) {
        return e.what();
    }
}

/// Returns true if gdal_translate writes it and the values can be read back.
bool held_by_translate(const std::string& scene, const std::string& path, const std::string& driver,
                       const Kind& kind) {
    char format[] = "-of";
    std::string name = driver;
    char* arguments[] = {format, name.data(), nullptr};
    CPLPushErrorHandler(CPLQuietErrorHandler);
    GDALTranslateOptions* options = GDALTranslateOptionsNew(arguments, nullptr);
    const Dataset from = open_gdal(scene);
    int misuse = 0;
    GDALDatasetH made = GDALTranslate(path.c_str(), GDALDataset::ToHandle(from.get()), options, &misuse);
    GDALTranslateOptionsFree(options);
    bool held = made != nullptr;
    if (made) GDALClose(made);
    held = held && difference(path, kind, !lossy(driver)).empty();
    CPLPopErrorHandler();
    return held;
}

struct Writer {
    std::string driver, extension;
};

void PrintTo(const Writer& writer, std::ostream* out) { *out << writer.driver; }

std::vector<Writer> writers() {
    GDALAllRegister();
    std::vector<Writer> out;
    GDALDriverManager* manager = GetGDALDriverManager();
    for (int i = 0; i < manager->GetDriverCount(); ++i) {
        GDALDriver* d = manager->GetDriver(i);
        const auto can = [&](const char* what) {
            const char* value = d->GetMetadataItem(what);
            return value && CPLTestBool(value);
        };
        const std::string name = d->GetDescription();
        if (!can(GDAL_DCAP_RASTER) || (!can(GDAL_DCAP_CREATE) && !can(GDAL_DCAP_CREATECOPY))) continue;
        if (name == "VRT" || name == "MEM") continue; // they store no pixels or no file
        const char* listed = d->GetMetadataItem(GDAL_DMD_EXTENSIONS);
        const CPLStringList extensions(CSLTokenizeString2(listed ? listed : "", " ", 0));
        out.push_back({name, extensions.empty() ? "dat" : extensions[0]});
    }
    return out;
}

class EveryWriter : public ::testing::TestWithParam<Writer> {};

TEST_P(EveryWriter, HoldsWhatItIsGivenOrIsRefused) {
    const Writer writer = GetParam();
    // Rasterlite would make SQLite wait for the disk 850 times, each time for all data that other programs
    // write.
    const CPLConfigOptionSetter without_waiting("OGR_SQLITE_SYNCHRONOUS", "OFF", false);
    const TempFolder inputs;
    for (const Kind& kind : kinds) {
        SCOPED_TRACE(writer.driver + ", " + kind.text());
        const TempFolder here, there;
        const std::string scene = inputs / (std::string(kind.type) + std::to_string(kind.bands) + ".tif");
        make_scene(scene, kind);
        const std::string name = "out." + writer.extension;
        const std::string refusal = ours(scene, here / name, writer.driver, kind);
        if (refusal.empty()) {
            EXPECT_EQ(difference(here / name, kind, !lossy(writer.driver)), "");
            continue;
        }
        EXPECT_EQ(here.files(), std::vector<std::string>()) << refusal;
        if (lossy(writer.driver) && std::string(kind.type) != "Byte") continue;
        if (held_by_translate(scene, there / name, writer.driver, kind)) {
            EXPECT_TRUE(refused_although_held.count(writer.driver)) << "gdal_translate holds it: " << refusal;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Drivers, EveryWriter, ::testing::ValuesIn(writers()), [](const auto& test) {
    std::string name = test.param.driver;
    std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
    return name;
});

std::string refusal_of(const std::string& path, const std::string& format, int bands, const std::string& type,
                       const std::vector<std::string>& creation = {}) {
    OutputOptions options;
    options.path = path;
    options.format = format;
    options.creation_options = creation;
    OutputSpec spec;
    spec.shape = {64, 48, bands};
    spec.type = type;
    try {
        raster::check_output(options, spec);
        return {};
    } catch (const UsageError& e) {
        return e.what();
    }
}

TEST(OutputFormat, ExtensionsOfEnviMeanEnvi) {
    for (const char* name : {"a.dat", "a.raw", "a.bsq", "a.bil", "a.bip", "a.envi", "A.DAT"}) {
        OutputOptions options;
        options.path = name;
        EXPECT_STREQ(raster::choose_driver(options)->GetDescription(), "ENVI") << name;
    }
    OutputOptions options;
    options.path = "a.img"; // GDAL's default, which gdal_translate also uses
    EXPECT_STREQ(raster::choose_driver(options)->GetDescription(), "HFA");
}

TEST(OutputFormat, TheExtensionSaysTheInterleaveUnlessItIsGiven) {
    const TempFolder folder;
    const auto interleave = [&](const std::string& name, const std::vector<std::string>& creation) {
        OutputOptions options;
        options.path = folder / name;
        options.creation_options = creation;
        OutputSpec spec;
        spec.shape = {5, 4, 3};
        const std::string text =
            raster::choose_target(options, spec, false).options.FetchNameValueDef("INTERLEAVE", "");
        return text;
    };
    EXPECT_EQ(interleave("a.bil", {}), "BIL");
    EXPECT_EQ(interleave("a.BIP", {}), "BIP");
    EXPECT_EQ(interleave("a.bsq", {}), "");
    EXPECT_EQ(interleave("a.dat", {}), "");
    EXPECT_EQ(interleave("a.bil", {"INTERLEAVE=BSQ"}), "BSQ");
}

TEST(OutputFormat, DriversThatKeepOneBandAreRefusedBeforeAnyWork) {
    const TempFolder folder;
    for (const char* driver : {"ZMap", "GSAG", "GSBG", "CALS", "GTX", "CTable2", "XYZ"}) {
        if (GetGDALDriverManager()->GetDriverByName(driver) == nullptr) continue; // newer versions lack it
        EXPECT_NE(refusal_of(folder / "a.dat", driver, 198, "Float32"), "") << driver;
    }
    EXPECT_EQ(folder.files(), std::vector<std::string>());
}

TEST(OutputFormat, LossIsRefusedUnlessItIsAskedFor) {
    const TempFolder folder;
    EXPECT_EQ(refusal_of(folder / "a.tif", "", 1, "Byte", {"NBITS=3"}), "");
    EXPECT_EQ(refusal_of(folder / "a.tif", "", 3, "Byte", {"COMPRESS=JPEG"}), "");
    EXPECT_EQ(refusal_of(folder / "a.jpg", "", 3, "Byte"), "");
    if (GetGDALDriverManager()->GetDriverByName("JP2OpenJPEG")) {
        const std::string path = folder / "a.jp2";
        EXPECT_EQ(refusal_of(path, "JP2OpenJPEG", 3, "Byte"), "");
        EXPECT_EQ(refusal_of(path, "JP2OpenJPEG", 3, "Byte", {"QUALITY=20"}), "");
    }
}

TEST(OutputFormat, BlocksThatTheUserWantsAreTriedToo) {
    const TempFolder folder;
    const std::string path = folder / "a.tif";
    EXPECT_EQ(refusal_of(path, "", 5, "Float32", {"COMPRESS=DEFLATE", "BLOCKXSIZE=512", "BLOCKYSIZE=512"}),
              "");
    EXPECT_NE(refusal_of(path, "", 5, "Float32", {"COMPRESS=DEFLATE", "BLOCKXSIZE=100", "BLOCKYSIZE=100"}),
              "");
    EXPECT_NE(refusal_of(path, "", 5, "Float32", {"BLOCKXSIZE=100", "BLOCKYSIZE=100"}), "");
    EXPECT_EQ(folder.files(), std::vector<std::string>());
}

/// An option that is refused, and a word of the reason.
struct Ignored {
    const char* format;
    const char* type;
    std::vector<std::string> options;
    const char* why;
};

TEST(OutputFormat, OptionsThatGdalWouldIgnoreAreRefused) {
    const TempFolder folder;
    const std::string path = folder / "a.tif";
    const Ignored cases[] = {
        {"GTiff", "Float32", {"COMPRESS=DEFLATE", "ZLEVEL=99"}, "from 1 to 12"},
        {"GTiff", "Float32", {"COMPRESS=DEFLATE", "ZLEVEL=0"}, "from 1 to 12"},
        {"GTiff", "Float32", {"COMPRESS=ZSTD", "ZSTD_LEVEL=40"}, "from 1 to 22"},
        {"GTiff", "Float32", {"COMPRESS=LZMA", "LZMA_PRESET=10"}, "from 0 to 9"},
        {"GTiff", "Byte", {"COMPRESS=JPEG", "JPEG_QUALITY=500"}, "from 1 to 100"},
        {"GTiff", "Float32", {"COMPRESS=LZW", "NUM_THREADS=abc"}, "ALL_CPUS"},
        {"GTiff", "Float32", {"COMPRESS=LZW", "NUM_THREADS=0"}, "ALL_CPUS"},
        {"GTiff", "Float32", {"COMPRESS=LZW", "NUM_THREADS=1.5"}, "ALL_CPUS"},
        {"GTiff", "Float32", {"COMPRESS=LERC", "MAX_Z_ERROR=-1"}, "at least 0"},
        {"GTiff", "Float32", {"BLOCKXSIZE=0"}, "from 1"},
        {"GTiff", "Float32", {"TILED=NO", "BLOCKYSIZE=0"}, "from 1"},
        {"GTiff", "Float32", {"NBITS=5"}, "16 or 32 bits"},
        {"GTiff", "Byte", {"NBITS=9"}, "1 to 8 bits"},
        {"GTiff", "Int16", {"NBITS=12"}, "have 16 bits"},
        {"GTiff", "UInt16", {"NBITS=8"}, "9 to 16 bits"},
        {"GTiff", "Float32", {"DISCARD_LSB=2,abc,3"}, "DISCARD_LSB=abc"},
        {"GTiff", "Float32", {"COMPRESS=DEFLATE", "ZSTD_LEVEL=9"}, "the codec is DEFLATE"},
        {"GTiff", "Float32", {"ZLEVEL=9"}, "the codec is NONE"},
        {"GTiff", "Float32", {"COMPRESS=LZW", "MAX_Z_ERROR=1"}, "the codec is LZW"},
        {"GTiff", "Float32", {"COMPRESS=LERC", "PREDICTOR=2"}, "the codec is LERC"},
        {"GTiff", "Float32", {"COMPRESS=LERC_ZSTD", "PREDICTOR=3"}, "the codec is LERC_ZSTD"},
        {"GTiff", "Float32", {"COMPRESS=LZMA", "PREDICTOR=2"}, "the codec is LZMA"},
        {"GTiff", "Float32", {"COMPRESS=PACKBITS", "PREDICTOR=3"}, "the codec is PACKBITS"},
        {"GTiff", "Float32", {"PREDICTOR=2"}, "the codec is NONE"},
        {"GTiff", "Float32", {"TILED=NO", "BLOCKXSIZE=32"}, "strips"},
        {"GTiff", "Float32", {"COMPRESS=DEFLATE", "ZLEVEL=3", "zlevel=4"}, "contradict"},
        {"COG", "Float32", {"LEVEL=3"}, "the codec is LZW"},
        {"COG", "Float32", {"COMPRESS=DEFLATE", "LEVEL=13"}, "from 1 to 12"},
        {"COG", "Float32", {"COMPRESS=ZSTD", "LEVEL=23"}, "from 1 to 22"},
        {"COG", "Float32", {"COMPRESS=LZW", "NUM_THREADS=many"}, "ALL_CPUS"},
        {"COG", "Float32", {"COMPRESS=NONE", "PREDICTOR=YES"}, "the codec is NONE"},
        {"COG", "Float32", {"OVERVIEW_COMPRESS=NONE", "OVERVIEW_PREDICTOR=YES"}, "the codec is NONE"},
        {"COG", "Byte", {"OVERVIEW_COMPRESS=JPEG", "QUALITY=50"}, "the codec is LZW"},
        {"COG", "Float32", {"OVERVIEWS=NONE", "OVERVIEW_RESAMPLING=AVERAGE"}, "no overviews"},
        {"COG", "Float32", {"ZOOM_LEVEL=3"}, "tiling scheme"},
        {"COG", "Float32", {"RES=20"}, "grid"},
    };
    for (const Ignored& one : cases) {
        const std::string said = refusal_of(path, one.format, 1, one.type, one.options);
        EXPECT_NE(said.find(one.why), std::string::npos) << one.options.back() << ": " << said;
    }
    EXPECT_EQ(folder.files(), std::vector<std::string>());
}

TEST(OutputFormat, OptionsThatHaveAnEffectOrAskForWhatIsDoneAreTaken) {
    const TempFolder folder;
    const std::string path = folder / "a.tif";
    const Ignored cases[] = {
        {"GTiff", "Float32", {"COMPRESS=DEFLATE", "ZLEVEL=12", "NUM_THREADS=all_cpus"}, ""},
        {"GTiff", "Float32", {"COMPRESS=lerc_deflate", "ZLEVEL=1", "MAX_Z_ERROR=0.5", "PREDICTOR=1"}, ""},
        {"GTiff", "Float32", {"compress=zstd", "zstd_level=22", "num_threads=3", "Predictor=3"}, ""},
        {"GTiff", "Float32", {"TILED=NO", "BLOCKXSIZE=64", "BLOCKYSIZE=7"}, ""}, // of 64 samples
        {"GTiff", "Float32", {"NUM_THREADS=4", "NBITS=32"}, ""},
        {"GTiff", "UInt16", {"NBITS=16", "COMPRESS=LZW", "COMPRESS=LZW"}, ""},
        {"GTiff", "UInt16", {"DISCARD_LSB=3", "COMPRESS=LZW"}, ""},
        {"COG", "Float32", {"COMPRESS=ZSTD", "LEVEL=22", "PREDICTOR=YES", "OVERVIEW_PREDICTOR=3"}, ""},
        {"COG", "Float32", {"COMPRESS=NONE", "PREDICTOR=NO", "OVERVIEWS=NONE"}, ""},
    };
    for (const Ignored& one : cases)
        EXPECT_EQ(refusal_of(path, one.format, 1, one.type, one.options), "") << one.options.back();
}

TEST(OutputFormat, AHeaderIsNoDestination) {
    EXPECT_NE(refusal_of("/tmp/scene.hdr", "", 3, "Float32").find("header"), std::string::npos);
}

TEST(OutputFormat, ConnectionsAndPartsOfFilesAreNoDestinations) {
    for (const char* name : {"PG:dbname=x", "pg:host=a", "MYSQL:x", "ODBC:x", "NETCDF:a.nc:cube",
                             "HDF5:a.h5://x", "GPKG:a.gpkg:t"})
        EXPECT_NE(refusal_of(name, "GTiff", 1, "Byte").find("is not a file"), std::string::npos) << name;
    const TempFolder folder;
    EXPECT_EQ(refusal_of(folder / "PG:dbname=x.tif", "", 1, "Byte"), "")
        << "a folder before the colon makes it a file's name";
    EXPECT_EQ(refusal_of(folder / "12:30.tif", "", 1, "Byte"), "");
}

} // namespace
} // namespace hsi::test
