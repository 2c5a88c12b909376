// SPDX-License-Identifier: MIT
// Scenes with text headers as people and programs write them: the result, and the warning.
#include "support/raster_fixtures.h"

#include "core/counted.h"
#include "raster/labels.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/run_files.h"

#include <ogr_spatialref.h>

#include <cfloat>
#include <cmath>
#include <string>
#include <vector>

namespace hsi::test {
namespace {

using raster::OpenOptions;
using raster::OutputOptions;
using raster::OutputSpec;
using raster::RasterSource;

constexpr int samples = 3, lines = 2, bands = 4;

/// Returns a scene of Float32 whose header has `more` after its required fields.
std::shared_ptr<RasterSource> envi_scene(const TempFolder& folder, const std::string& more) {
    write_text(folder / "s.dat", std::string(samples * lines * bands * sizeof(float), '\1'));
    write_text(folder / "s.hdr", "ENVI\nsamples = 3\nlines = 2\nbands = 4\nheader offset = 0\ndata type = 4\n"
                                 "interleave = bsq\nbyte order = 0\n" +
                                     more + "\n");
    return open_source(folder / "s.dat");
}

std::string notes_of(const RasterSource& source) {
    std::string all;
    for (const std::string& note : source.facts().notes)
        all += note + "\n";
    return all;
}

/// Checks that `told` is in the notes, or that there are no notes if it is empty.
void expect_note(const RasterSource& source, const std::string& told, const std::string& of) {
    const std::string notes = notes_of(source);
    if (told.empty())
        EXPECT_EQ(notes, "") << of;
    else
        EXPECT_NE(notes.find(told), std::string::npos) << of << "\n" << notes;
}

// Position
// -----------------------------------------------------------------------------------------------------------------

struct MapCase {
    const char* text; ///< of the field
    int epsg;         ///< 0 if unknown
    const char* told; ///< in a warning; empty without a warning
};

TEST(HeaderScene, MapInfoInManySpellings) {
    const MapCase cases[] = {
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 32, North, WGS-84}", 32632, ""},
        {"['UTM', '1', '1', '500000', '4480000', '20', '20', '32', 'North', 'WGS-84']", 32632, ""},
        {"['UTM', 1, 1, 500000.0, 4480000.0, 20.0, 20.0, 32, 'North', 'WGS-84', 'units=Meters']", 32632, ""},
        {"('UTM', '1', '1', '500000', '4480000', '20', '20', '32', 'South', 'WGS-84')", 32732, ""},
        {R"({"UTM", "1", "1", "500000", "4480000", "20", "20", "32", "North", "WGS-84"})", 32632, ""},
        {"{'UTM', 1, 1, '500000', '4480000', 20, 20, 32, 'south', 'WGS 84'}", 32732, ""},
        {"{UTM; 1; 1; 500000; 4480000; 20; 20; 32; North; WGS-84}", 32632, ""},
        {"{UTM 1 1 500000 4480000 20 20 32 North WGS-84}", 32632, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 32, S, WGS-84}", 32732, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 32, SOUTH, WGS-84}", 32732, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 32, Southern Hemisphere, WGS84}", 32732, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 32S, WGS-84}", 32732, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 32 South, WGS-84}", 32732, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, Zone 32N, WGS-84}", 32632, ""},
        {"{UTM Zone 32S, 1, 1, 500000, 4480000, 20, 20, WGS-84}", 32732, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, -32, WGS-84}", 32732, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, -32, South, WGS-84}", 32732, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 32.0, N, WGS-1984}", 32632, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, -32, North, WGS-84}", 0, "contradict"},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 32, WGS-84}", 0, "'WGS-84' instead of North or South"},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 61, North, WGS-84}", 0, "'61' instead of a UTM zone"},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 32T, WGS-84}", 0, "'32T' instead of a UTM zone"},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20}", 0, "nothing instead of a UTM zone"},
        {"{UTM, 1, 1, 5.0D5, 4.48D+06, 2d1, 20, 32, North, WGS-84}", 32632, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 32, North, ETRS-89}", 25832, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 32, North, D_ETRS_1989}", 25832, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 55, South, GDA94}", 28355, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 55, South, GDA 2020}", 7855, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 23, South, SIRGAS 2000}", 31983, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 32, North, ED50}", 23032, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 11, North, NAD83}", 26911, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 32, North, Potsdam}", 32632,
         "names the datum 'Potsdam', which is unknown: WGS-84 is assumed"},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 11, North}", 26711,
         "names no datum: North America 1927 is assumed"},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 32, North, WGS-84, units = m}", 32632, ""},
        {"{UTM, 1, 1, 500000, 4480000, 20, 20, 32, North, WGS-84, Units=Parsec}", 32632, "units = Parsec"},
        {"{Geographic Lat/Lon, 1, 1, 500000, 4480000, 20, 20, WGS-84, units=Degrees}", 4326, ""},
        {"{Geographic, 1, 1, 500000, 4480000, 20, 20, ETRS89}", 4258, ""},
        {"{Lat/Lon, 1, 1, 500000, 4480000, 20, 20, WGS 84}", 4326, ""},
        {"{Geographic Lat/Lon, 1, 1, 500000, 4480000, 20, 20}", 4326, "names no datum: WGS-84 is assumed"},
        {"{Albers, 1, 1, 500000, 4480000, 20, 20}", 0, "names the projection 'Albers'"},
        {"{Lambert, 1, 1, 500000, 4480000, 20, 20, WGS-84, units=Degrees}", 0,
         "names the projection 'Lambert'"},
        {"{Pixel, 1, 1, 500000, 4480000, 20, 20}", 0, "names the projection 'Pixel'"},
        {"{Arbitrary, 1, 1, 500000, 4480000, 20, 20, 0, North}", 0, ""},
    };
    for (const MapCase& c : cases) {
        const TempFolder folder;
        const auto source = envi_scene(folder, std::string("map info = ") + c.text);
        const auto& srs = source->facts().srs;
        EXPECT_EQ(srs ? srs->epsg() : 0, c.epsg) << c.text;
        EXPECT_EQ(srs != nullptr, c.epsg != 0) << c.text << ": a name is no SRS";
        expect_note(*source, c.told, c.text);
        double gt[6] = {};
        ASSERT_TRUE(source->facts().copy_geotransform(gt)) << c.text;
        const double wanted[6] = {500000, 20, 0, 4480000, 0, -20};
        for (int i = 0; i < 6; ++i)
            EXPECT_NEAR(gt[i], wanted[i], 1e-6) << c.text;
    }
}

TEST(HeaderScene, ARotationIsReadInAllSpellings) {
    for (const char* rotation :
         {"rotation=30", "rotation = 30", "Rotation= 30.0", "rotation=3.0D1", "'rotation=30'"}) {
        const TempFolder folder;
        const auto source = envi_scene(
            folder, std::string("map info = {UTM, 1, 1, 500000, 4480000, 20, 20, 32, North, WGS-84, ") +
                        rotation + "}");
        double gt[6] = {};
        ASSERT_TRUE(source->facts().copy_geotransform(gt));
        EXPECT_NEAR(gt[1], 20 * std::cos(M_PI / 6), 1e-9) << rotation;
        EXPECT_NEAR(std::fabs(gt[2]), 10, 1e-9) << rotation;
        expect_note(*source, "", rotation);
    }
    const TempFolder folder;
    const auto source = envi_scene(
        folder, "map info = {UTM, 1, 1, 500000, 4480000, 20, 20, 32, North, WGS-84, rotation=left}");
    expect_note(*source, "rotation = left, which is not a number", "left");
}

TEST(HeaderScene, ANumberOfMapInfoThatIsNoneLeavesNoPosition) {
    for (const auto& [text, told] :
         {std::pair("{UTM, 1, 1, N/A, 4480000, 20, 20, 32, North, WGS-84}", "'N/A'"),
          {"{UTM, 1, 1, 500000, 4480000}", "4 numbers, not 6"},
          {"{UTM, 1, 1, 500000,5, 4480000,5, 20, 20, 32, North, WGS-84}", "decimal commas"},
          {"{UTM, 1, 1, 500000, 4480000, 0, 20, 32, North, WGS-84}", "size 0"}}) {
        const TempFolder folder;
        const auto source = envi_scene(folder, std::string("map info = ") + text);
        double gt[6] = {};
        EXPECT_FALSE(source->facts().copy_geotransform(gt)) << text;
        EXPECT_EQ(source->facts().srs, nullptr) << text;
        expect_note(*source, told, text);
    }
}

TEST(HeaderScene, ACoordinateSystemStringCounts) {
    OGRSpatialReference srs;
    srs.importFromEPSG(3035);
    char* wkt = nullptr;
    const char* const options[] = {"FORMAT=WKT1_ESRI", nullptr};
    srs.exportToWkt(&wkt, options);
    const std::string system = std::string("coordinate system string = {") + wkt + "}";
    CPLFree(wkt);
    const TempFolder folder;
    const auto source =
        envi_scene(folder, "map info = {ETRS LAEA, 1, 1, 4000000, 3000000, 20, 20, no datum}\n" + system);
    EXPECT_EQ(source->facts().srs->epsg(), 3035);
    expect_note(*source, "", "laea");
}

// Lists
// -----------------------------------------------------------------------------------------------------------------

struct NamesCase {
    const char* text;
    std::vector<std::string> names; ///< empty if the list is ignored and a warning states both counts
};

TEST(HeaderScene, NamesOfBands) {
    const std::vector<std::string> plain = {"a", "b c", "d", "e"}, commas = {"a, b", "c", "d", "e, f"};
    const NamesCase cases[] = {
        {"{a, b c, d, e}", plain},
        {"{a,\n b\n c, d, e}", plain},
        {"{a; b c; d; e}", plain},
        {"{a\nb c\nd\ne\n}", plain},
        {"['a', 'b c', 'd', 'e']", plain},
        {"Index(['a', 'b c', 'd', 'e'], dtype='object')", plain},
        {"Index(['a', 'b c',\n       'd', 'e'],\n      dtype='object', name='band')", plain},
        {"np.array(['a', 'b c', 'd', 'e'], dtype='<U3')", plain},
        {"{'a, b', c, d, 'e, f'}", commas},
        {"{\"a, b\", \"c\", \"d\", \"e, f\"}", commas},
        {"Index(['a, b', 'c', 'd', 'e, f'], dtype='object')", commas},
        {"{a, b; c; d; e, f}", commas},
        {"{\na, b,\nc,\nd,\ne, f\n}", commas},
        {"{a, b, c, d, e, f}", {}},
        {"{a, b, c}", {}},
        {"{a}", {}},
        {"['a', 'b']", {}},
        {"a, b, c, d, e", {}},
    };
    for (const NamesCase& c : cases) {
        const TempFolder folder;
        const auto source = envi_scene(folder, std::string("band names = ") + c.text);
        if (c.names.empty()) {
            EXPECT_EQ(source->facts().bands.names.front(), "Band 1") << c.text;
            expect_note(*source, " for 4 bands", c.text);
            continue;
        }
        expect_note(*source, "", c.text);
        EXPECT_EQ(source->facts().bands.names, c.names) << c.text;
    }
}

struct NumbersCase {
    const char* text;
    double fwhm; ///< of the last band; NaN if unknown
    int bad;
    const char* told;
};

TEST(HeaderScene, NumbersOfBands) {
    const double unknown = std::nan("");
    const std::string axis = "wavelength units = nm\nwavelength = {450, 550, 650, 750}\n";
    const NumbersCase cases[] = {
        {"fwhm = {10, 10, 10, 12}", 12, 0, ""},
        {"fwhm = 10", 10, 0, ""},
        {"fwhm = {10}", 10, 0, ""},
        {"fwhm = 10 nm", 10, 0, ""},
        {"fwhm = {0.01 um}", 10, 0, ""},
        {"fwhm = {10 nm, 10 nm, 10 nm, 12 nm}", 12, 0, ""},
        {"fwhm = {10, 10, 10, 12 cm-1}", unknown, 0, "the list 'fwhm' has '12 cm-1' for band 4"},
        {"fwhm = [10.0]", 10, 0, ""},
        {"fwhm = 1.0D1", 10, 0, ""},
        {"fwhm = {10 10, 10\t12}", 12, 0, ""},
        {"fwhm = {1D1, 1D1, 1D1, 1.2D1}", 12, 0, ""},
        {"fwhm = {10, 11, 12}", unknown, 0, "the list 'fwhm' has 3 values for 4 bands"},
        {"fwhm = Index([10.0, 10.0, 10.0, 12.0], dtype='float64')", 12, 0, ""},
        {"bbl = {0, 1, 1, 0}", unknown, 2, ""},
        {"bbl = {0 1, 1 0}", unknown, 2, ""},
        {"bbl = 0", unknown, 0, "the list 'bbl' has 1 value for 4 bands"},
        {"bbl = {0}", unknown, 0, "the list 'bbl' has 1 value for 4 bands"},
        {"bbl = {0, 1, 1}", unknown, 0, "the list 'bbl' has 3 values for 4 bands"},
        {"bbl = 0, 1, 1", unknown, 0, "the list 'bbl' has 3 values for 4 bands"},
    };
    for (const NumbersCase& c : cases) {
        const TempFolder folder;
        const auto source = envi_scene(folder, axis + c.text);
        EXPECT_EQ(source->facts().bands.bad.size(), static_cast<size_t>(c.bad)) << c.text;
        const auto widths = source->facts().bands.fwhm_nm;
        if (std::isnan(c.fwhm))
            EXPECT_TRUE(widths.empty() || std::isnan(widths.back())) << c.text;
        else
            EXPECT_EQ(widths.empty() ? -1 : widths.back(), c.fwhm) << c.text;
        expect_note(*source, c.told, c.text);
    }
    for (const char* text : {"wavelength = 450", "wavelength = {450, 550}", "wavelengths = {450, 550}"}) {
        const TempFolder folder;
        const auto source = envi_scene(folder, std::string("wavelength units = nm\n") + text);
        EXPECT_TRUE(source->facts().bands.wavelengths_nm.empty()) << text;
        expect_note(*source, " for 4 bands and is ignored", text);
    }
}

TEST(HeaderScene, IgnoredValuesOfAllBandsAreOne) {
    struct Case {
        const char* text;
        std::optional<double> value;
        const char* told;
    };
    const Case cases[] = {{"7", 7.0, ""},
                          {"{7}", 7.0, ""},
                          {"{7, 7, 7, 7}", 7.0, ""},
                          {"[7, 7.0]", 7.0, ""},
                          {"(7, 7, 7, 7)", 7.0, ""},
                          {"{7 7}", 7.0, ""},
                          {"-1.0D30", -1e30, ""},
                          {"7,5", 7.5, ""},
                          {"{7,8}", {}, "2 values (7, 8)"},
                          {"{7, 7, 7, 8}", {}, "4 values (7, 8 ...)"},
                          {"[7, 8]", {}, "2 values (7, 8)"}};
    for (const Case& c : cases) {
        const TempFolder folder;
        const auto source = envi_scene(folder, std::string("data ignore value = ") + c.text);
        EXPECT_EQ(source->facts().bands.nodata, c.value) << c.text;
        expect_note(*source, c.told, c.text);
    }
}

struct ClassCase {
    const char *names, *lookup;
    std::vector<std::string> found; ///< names of classes 0 to 2; empty if missing
    bool colours;
    const char* told;
};

TEST(HeaderScene, ClassesOfALabelImage) {
    const std::vector<std::string> plain = {"Unclassified", "Corn", "Soil"};
    const ClassCase cases[] = {
        {"{Unclassified, Corn, Soil}", "{0, 0, 0, 255, 0, 0, 0, 255, 0}", plain, true, ""},
        {"{Unclassified, Corn, Soil}", "{0 0 0, 255 0 0, 0 255 0}", plain, true, ""},
        {"{Unclassified, Corn, Soil}", "{0\t0\t0,\n255 0 0; 0, 255, 0}", plain, true, ""},
        {"{Unclassified, Corn, Soil}", "[[0 0 0]\n [255 0 0]\n [0 255 0]]", plain, true, ""},
        {"['Unclassified', 'Corn', 'Soil']", "[(0, 0, 0), (255, 0, 0), (0, 255, 0)]", plain, true, ""},
        {"{Unclassified, Corn, Soil}", "{0, 0, 0, 255, 0, 0, 0, 255}", plain, false,
         "8 values for 3 classes"},
        {"{Unclassified, Corn, young, Soil}",
         "{0, 0, 0, 255, 0, 0, 0, 255, 0}",
         {},
         true,
         "4 names for 3 classes"},
        {"{Corn, Soil}", "{0, 0, 0, 255, 0, 0, 0, 255, 0}", {}, true, "2 names for 3 classes"},
        {"{Unclassified; Corn; Soil}", "{0, 0, 0, 255, 0, 0, 0, 255, 0}", plain, true, ""},
    };
    for (const ClassCase& c : cases) {
        const TempFolder folder;
        write_text(folder / "l.dat", std::string("\0\1\2\1\2\2", 6));
        write_text(folder / "l.hdr",
                   std::string("ENVI\nsamples = 3\nlines = 2\nbands = 1\nheader offset = 0\nfile type = ENVI "
                               "Classification\ndata type = 1\ninterleave = bsq\nbyte order = 0\nclasses = "
                               "3\nclass names = ") +
                       c.names + "\nclass lookup = " + c.lookup + "\n");
        const auto source = open_source(folder / "l.dat");
        const auto& band = raster::metadata_of(*source).bands.front();
        EXPECT_EQ(band.categories, c.found) << c.names;
        ASSERT_EQ(band.colours != nullptr && band.colours->GetColorEntryCount() == 3, c.colours) << c.lookup;
        if (c.colours) {
            EXPECT_EQ(band.colours->GetColorEntry(2)->c2, 255) << c.lookup;
        }
        expect_note(*source, c.told, c.names + std::string(c.lookup));
    }
}

// ESRI headers

struct EsriCase {
    const char* text;  ///< after the sizes
    int64_t bytes;     ///< of the file
    const char* error; ///< empty if it can be read
    const char* told;
};

TEST(HeaderScene, GapsInEsriRastersAreRefused) {
    constexpr int64_t packed = samples * lines * bands * 2;
    const EsriCase cases[] = {
        {"LAYOUT BIL\nBYTEORDER I\n", packed, "", ""},
        {"LAYOUT BIL\nBYTEORDER I\nBANDROWBYTES 6\nTOTALROWBYTES 24\n", packed, "", ""},
        {"LAYOUT BIP\nBYTEORDER I\nBANDROWBYTES 6\nTOTALROWBYTES 24\n", packed, "", ""},
        {"LAYOUT BSQ\nBYTEORDER I\nTOTALROWBYTES 6\nBANDGAPBYTES 0\n", packed, "", ""},
        {"LAYOUT BIL\nBYTEORDER I\nBANDROWBYTES 8\nTOTALROWBYTES 32\n", 64, "BANDROWBYTES = 8", ""},
        {"LAYOUT BIL\nBYTEORDER I\nTOTALROWBYTES 32\n", 64, "TOTALROWBYTES = 32", ""},
        {"layout bip\nbyteorder i\ntotalrowbytes 32\n", 64, "TOTALROWBYTES = 32", ""},
        {"LAYOUT BSQ\nBYTEORDER I\nTOTALROWBYTES 8\n", 64, "TOTALROWBYTES = 8", ""},
        {"LAYOUT BSQ\nBYTEORDER I\nBANDGAPBYTES 100\n", packed + 300, "BANDGAPBYTES = 100", ""},
        {"LAYOUT BSQ\nBYTEORDER I\nTOTALROWBYTES 24\n", packed, "", "TOTALROWBYTES = 24, which is ignored"},
        {"LAYOUT BANDS\nBYTEORDER I\n", packed, "LAYOUT = BANDS", ""},
        {"LAYOUT BIL\n", packed, "", "no BYTEORDER"},
    };
    const auto write = [](const TempFolder& folder, const std::string& text, int64_t bytes) {
        write_text(folder / "e.bil", std::string(static_cast<size_t>(bytes), '\1'));
        write_text(folder / "e.hdr", "NROWS 2\nNCOLS 3\nNBANDS 4\nNBITS 16\n" + text);
        return folder / "e.bil";
    };
    const auto expect_refused = [](const std::string& path, const std::string& error) {
        try {
            open_source(path);
            ADD_FAILURE() << "opened, though " << error;
        } catch (const Error& e) {
            EXPECT_NE(std::string(e.what()).find(error), std::string::npos) << e.what();
        }
    };
    for (const EsriCase& c : cases) {
        const TempFolder folder;
        const std::string path = write(folder, c.text, c.bytes);
        if (*c.error != 0)
            expect_refused(path, c.error);
        else
            expect_note(*open_source(path), c.told, c.text);
    }
    std::string late = "LAYOUT BSQ\nWAVELENGTHS\n";
    for (int i = 0; i < 60; ++i)
        late += std::to_string(400 + i) + "\n";
    const TempFolder folder;
    expect_refused(write(folder, late + "WAVELENGTHS_END\nBYTEORDER I\n", packed),
                   "BYTEORDER = I after line 50");
}

TEST(HeaderScene, LabelsInEsriRastersAreCheckedLikeScenes) {
    const TempFolder folder;
    const auto open_labels = [&](const std::string& header, int64_t bytes) {
        write_text(folder / "l.bil", std::string(static_cast<size_t>(bytes), '\1'));
        write_text(folder / "l.hdr", "NROWS 2\nNCOLS 3\nNBANDS 1\nNBITS 16\n" + header);
        raster::LabelOptions options;
        options.path = folder / "l.bil";
        const raster::Grid grid = raster::grid_of(*envi_scene(folder, ""));
        return raster::LabelSource::open(options, &grid)->notes();
    };
    EXPECT_TRUE(open_labels("LAYOUT BIL\nBYTEORDER I\n", 12).empty());
    const auto notes = open_labels("LAYOUT BIL\n", 12);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_NE(notes[0].find("l.bil': its header has no BYTEORDER"), std::string::npos) << notes[0];
    EXPECT_THROW(open_labels("LAYOUT BIL\nBYTEORDER I\nTOTALROWBYTES 8\n", 16), Error);
}

// Lists in the metadata items of a dataset

TEST(HeaderScene, ItemsOfADatasetHaveAValuePerBandOrAWarning) {
    struct Case {
        const char *key, *text, *told;
        double width; ///< of all bands; 0 if unknown
    };
    for (const Case& c :
         {Case{"fwhm", "10", "", 10},
          {"fwhm", "10, 10, 10, 10", "", 10},
          {"fwhm", "{ 10 10 10 10 }", "", 10},
          {"fwhm", "{ 10, 11 }", "the item 'fwhm' is ignored: it has 2 values for 4 bands", 0},
          {"fwhm", "{10}", "", 10},
          {"fwhm", "10 nm", "", 10},
          {"fwhm", "10, 11", "the item 'fwhm' is ignored: it has 2 values for 4 bands", 0},
          {"fwhm", "about 10 nm", "", 0},
          {"bbl", "0", "the item 'bbl' is ignored: it has 1 value for 4 bands", 0},
          {"bbl", "{1, 1, 0}", "the item 'bbl' is ignored: it has 3 values for 4 bands", 0},
          {"wavelengths", "400 500", "the item 'wavelengths' is ignored: it has 2 values for 4 bands", 0}}) {
        const TempFolder folder;
        {
            const Dataset made = create_gdal("GTiff", folder / "i.tif", samples, lines, bands, GDT_Float32);
            if (std::string(c.key) != "wavelengths") {
                made->SetMetadataItem("wavelength", "{400, 500, 600, 700}");
                made->SetMetadataItem("wavelength_units", "nm");
            }
            made->SetMetadataItem(c.key, c.text);
        }
        const auto source = open_source(folder / "i.tif");
        expect_note(*source, c.told, std::string(c.key) + " = " + c.text);
        const auto& facts = source->facts().bands;
        EXPECT_TRUE(facts.bad.empty());
        for (size_t b = 0; b < facts.fwhm_nm.size(); ++b)
            EXPECT_TRUE(c.width > 0 ? facts.fwhm_nm[b] == c.width : std::isnan(facts.fwhm_nm[b])) << c.text;
        EXPECT_TRUE(c.width == 0 || facts.fwhm_nm.size() == size_t{bands});
    }
}

// Nodata of six digits
// -----------------------------------------------------------------------------------------------------------------

TEST(HeaderScene, NodataOfSixDigitsMasksWhatGdalMasks) {
    GDALAllRegister();
    struct Case {
        GDALDataType type;
        double nodata;
        const char* told;
    };
    for (const char* driver : {"GTiff", "ENVI", "HFA"})
        for (const Case& c : {Case{GDT_Float32, -3.40282e38, ""},
                              {GDT_Float64, -3.40282e38, "too few digits to match -3.40282346638529e+38"},
                              {GDT_Float64, 3.4028e38, "too few digits to match 3.40282346638529e+38"},
                              {GDT_Float64, -3.402823e38, ""},
                              {GDT_Float64, -3.4028234663852886e38, ""},
                              {GDT_Float64, -1e30, ""}}) {
            const TempFolder folder;
            const std::string path = folder / "n.img";
            {
                const Dataset made = create_gdal(driver, path, 2, 1, 1, c.type);
                made->GetRasterBand(1)->SetNoDataValue(c.nodata);
                double values[] = {std::copysign(double{FLT_MAX}, c.nodata), 5};
                ASSERT_EQ(made->GetRasterBand(1)->RasterIO(GF_Write, 0, 0, 2, 1, values, 2, 1, GDT_Float64, 0,
                                                           0, nullptr),
                          CE_None);
            }
            unsigned char mask[2];
            ASSERT_EQ(open_gdal(path)->GetRasterBand(1)->GetMaskBand()->RasterIO(GF_Read, 0, 0, 2, 1, mask, 2,
                                                                                 1, GDT_Byte, 0, 0, nullptr),
                      CE_None);
            const auto source = open_source(path);
            const auto seen = our_values(*source);
            EXPECT_EQ(std::isnan(seen[0]), mask[0] == 0) << driver << " " << c.nodata;
            EXPECT_FALSE(std::isnan(seen[1]));
            expect_note(*source, c.told, std::string(driver) + " " + std::to_string(c.nodata));
        }
}

TEST(HeaderScene, FieldsOfOneValueReachOutputsOfEveryFormat) {
    const TempFolder folder;
    const auto source = envi_scene(
        folder, "reflectance scale factor = 10000\ndata units = reflectance\nwavelength units = Nanometers\n"
                "wavelength = {400, 500, 600, 700}");
    for (const char* name : {"o.tif", "o.dat"}) {
        copy_scene(source->path(), folder / name);
        const auto written = open_source(folder / name);
        const auto& found = written->facts().bands;
        EXPECT_EQ(found.values.scale, std::vector<double>(bands, 1e-4)) << name;
        EXPECT_EQ(found.values.unit, "reflectance") << name;
        EXPECT_EQ(found.wavelengths_nm.back(), 700) << name;
    }
}

// What ENVI cannot express
// -----------------------------------------------------------------------------------------------------------------

TEST(HeaderScene, AnSrsThatAnEnviHeaderCannotHoldIsRefusedAtOnce) {
    OGRSpatialReference rotated;
    rotated.SetWellKnownGeogCS("WGS84");
    ASSERT_EQ(rotated.SetDerivedGeogCRSWithPoleRotationNetCDFCFConvention("rotated", 39.25, -162, 0),
              OGRERR_NONE);
    const TempFolder folder;
    {
        const Dataset made = create_gdal("GTiff", folder / "r.tif", samples, lines, bands, GDT_Float32);
        double gt[6] = {1, 0.1, 0, 2, 0, -0.1};
        made->SetGeoTransform(gt);
        ASSERT_EQ(made->SetSpatialRef(&rotated), CE_None);
    }
    const auto source = open_source(folder / "r.tif");
    ASSERT_NE(source->facts().srs, nullptr);
    OutputSpec spec;
    spec.shape = source->shape();
    spec.same_bands = true;
    for (const char* name : {"o.dat", "o.tif"}) {
        OutputOptions options;
        options.path = folder / name;
        const bool envi = std::string(name) == "o.dat";
        for (const bool early : {true, false}) {
            try {
                if (early)
                    raster::check_output(options, spec, *source);
                else
                    raster::create_sink(options, spec, source.get());
                EXPECT_FALSE(envi);
            } catch (const Error& e) {
                EXPECT_TRUE(envi) << e.what();
                EXPECT_NE(std::string(e.what()).find("ENVI cannot store the SRS of '" + (folder / "r.tif") +
                                                     "' ('rotated')"),
                          std::string::npos)
                    << e.what();
            }
        }
    }
    EXPECT_EQ(folder.files().front(), "r.tif");
}

TEST(HeaderScene, AShiftThatAnEnviHeaderDoesNotKeepIsToldAtOnce) {
    OGRSpatialReference shifted;
    ASSERT_EQ(shifted.importFromProj4("+proj=utm +zone=32 +ellps=bessel +towgs84=598.1,73.7,418.2 +units=m"),
              OGRERR_NONE);
    const TempFolder folder;
    {
        const Dataset made = create_gdal("GTiff", folder / "r.tif", samples, lines, bands, GDT_Float32);
        double gt[6] = {500000, 20, 0, 5500000, 0, -20};
        made->SetGeoTransform(gt);
        ASSERT_EQ(made->SetSpatialRef(&shifted), CE_None);
    }
    const auto source = open_source(folder / "r.tif");
    OutputSpec spec;
    spec.shape = source->shape();
    spec.same_bands = true;
    for (const char* name : {"o.dat", "o.tif"}) {
        std::string told;
        const auto run = raster::make_run_files();
        run->set_listeners([&](const std::string& text) { told += text; }, {});
        OutputOptions options;
        options.path = folder / name;
        options.run = run;
        raster::check_output(options, spec, *source);
        const bool envi = std::string(name) == "o.dat";
        EXPECT_EQ(told.find("ENVI does not store the position of its pixels") != std::string::npos, envi)
            << told;
    }
}

} // namespace
} // namespace hsi::test
