// SPDX-License-Identifier: MIT
// All metadata of a scene must arrive in the output; compared through GDAL and through the text of the
// header.
#include "support/raster_fixtures.h"

#include "raster/metadata/envi_header.h"
#include "raster/metadata/scene_metadata.h"

#include <ogr_spatialref.h>

#include <cmath>

namespace hsi::test {
namespace {

using raster::envi_list;
using raster::EnviHeader;
using raster::OpenOptions;
using raster::OutputOptions;
using raster::OutputSpec;
using raster::RasterSink;
using raster::RasterSource;

std::string item(GDALMajorObject* object, const char* key, const char* domain = "") {
    const char* value = object->GetMetadataItem(key, domain);
    return value ? value : "(none)";
}

std::vector<std::string> header_list(const std::string& path, const char* key) {
    const EnviHeader header = EnviHeader::parse(read_text(path));
    const std::string* value = header.find(key);
    return value ? envi_list(*value) : std::vector<std::string>();
}

std::string header_field(const std::string& path, const char* key) {
    const EnviHeader header = EnviHeader::parse(read_text(path));
    const std::string* value = header.find(key);
    return value ? *value : "(none)";
}

/// Writes five bands with all fields of an ENVI header; one band is bad.
std::string make_envi(const TempFolder& folder, const std::string& more = {}) {
    const std::string path = folder / "scene.img";
    write_text(path, std::string(6 * 4 * 5 * 2, '\1'));
    write_text(
        folder / "scene.hdr",
        "ENVI\ndescription = {A synthetic scene}\nsamples = 6\nlines = 4\nbands = 5\nheader offset = 0\n"
        "file type = ENVI Standard\ndata type = 2\ninterleave = bil\nbyte order = 0\nsensor type = HyMap\n"
        "x start = 11\ny start = 21\nacquisition time = 2020-05-06T10:11:12Z\nsun azimuth = 150.5\n"
        "odd_key = 7\ndefault bands = {5, 3, 1}\nmap info = {UTM, 1, 1, 500000, 4000000, 30, 30, 33, North, "
        "WGS-84}\n"
        "wavelength units = Micrometers\nwavelength = {0.45, 0.55, 0.65, 0.75, 2.25}\n"
        "fwhm = {0.010, 0.011, 0.012, 0.013, 0.014}\nbbl = {1, 1, 0, 1, 1}\n"
        "band names = {blue, green, red, edge, swir}\ndata gain values = {0.1, 0.2, 0.3, 0.4, 0.5}\n"
        "data offset values = {1, 2, 3, 4, 5}\ncalibration of detectors = {a, b, c, d, e}\n"
        "data ignore value = -9999\n" +
            more);
    return path;
}

TEST(Metadata, ReadsTheEnviHeader) {
    const TempFolder folder;
    const auto source = open_source(make_envi(folder));
    EXPECT_EQ(source->bands(), (std::vector<int>{1, 2, 4, 5}));
    EXPECT_EQ(source->facts().bands.wavelengths_nm, (std::vector<double>{450, 550, 750, 2250}));
    ASSERT_EQ(source->facts().bands.fwhm_nm.size(), 4u);
    EXPECT_NEAR(source->facts().bands.fwhm_nm[3], 14, 1e-9);
    EXPECT_EQ(source->facts().bands.nodata, -9999);
    EXPECT_EQ(source->facts().type, "Int16");
    EXPECT_EQ(source->facts().driver, "ENVI");
    EXPECT_TRUE(source->facts().srs);
    EXPECT_NE(source->facts().srs_wkt().find("UTM"), std::string::npos);
}

/// Checks an output of make_envi() with bands 5, 1, 4 of window (2, 1).
void expect_cut_scene(const std::string& path) {
    const Dataset d = open_gdal(path);
    ASSERT_TRUE(d);
    ASSERT_EQ(d->GetRasterCount(), 3);
    const int from[] = {5, 1, 4};
    const char* names[] = {"blue", "green", "red", "edge", "swir"};
    for (int b = 1; b <= 3; ++b) {
        GDALRasterBand* band = d->GetRasterBand(b);
        const int n = from[b - 1];
        EXPECT_EQ(std::string(band->GetDescription()).rfind(names[n - 1], 0), 0u) << band->GetDescription();
        EXPECT_NEAR(band->GetScale(), 0.1 * n, 1e-12);
        EXPECT_EQ(band->GetOffset(), n);
        EXPECT_EQ(band->GetNoDataValue(), -9999);
    }
    double gt[6];
    ASSERT_EQ(d->GetGeoTransform(gt), CE_None);
    EXPECT_EQ(gt[0], 500060);
    EXPECT_EQ(gt[3], 3999970);
    EXPECT_EQ(item(d.get(), "HSI_HISTORY"), "(none)");
    EXPECT_EQ(item(d.get(), "Band_1").find("blue"), std::string::npos) << "items of the source's band 1";
    const auto again = open_source(path);
    EXPECT_EQ(again->facts().bands.wavelengths_nm, (std::vector<double>{2250, 450, 750}));
    EXPECT_NEAR(again->facts().bands.fwhm_nm[0], 14, 1e-9);
    EXPECT_NEAR(again->facts().bands.fwhm_nm[2], 13, 1e-9);
}

OpenOptions cut_of(const std::string& path) {
    OpenOptions options;
    options.path = path;
    options.bands = {5, 1, 4};
    options.window = Rect{2, 1, 3, 2};
    return options;
}

TEST(Metadata, EnviToEnviCutsListsAndKeepsTheRest) {
    const TempFolder folder;
    copy_scene(cut_of(make_envi(folder)), folder / "out.img", "ENVI");
    expect_cut_scene(folder / "out.img");
    const std::string h = folder / "out.hdr";
    using List = std::vector<std::string>;
    EXPECT_EQ(header_list(h, "wavelength"), (List{"2.25", "0.45", "0.75"}));
    EXPECT_EQ(header_list(h, "fwhm"), (List{"0.014", "0.010", "0.013"}));
    EXPECT_EQ(header_list(h, "bbl"), (List{"1", "1", "1"}));
    EXPECT_EQ(header_list(h, "band names"), (List{"swir", "blue", "edge"}));
    EXPECT_EQ(header_list(h, "calibration of detectors"), (List{"e", "a", "d"}));
    EXPECT_EQ(header_field(h, "default bands"), "(none)") << "band 3 is gone";
    EXPECT_EQ(header_field(h, "wavelength units"), "Micrometers");
    EXPECT_EQ(header_field(h, "sensor type"), "HyMap");
    EXPECT_EQ(header_field(h, "acquisition time"), "2020-05-06T10:11:12Z");
    EXPECT_EQ(header_field(h, "odd_key"), "7");
    EXPECT_EQ(header_field(h, "description"), "{A synthetic scene}");
    EXPECT_EQ(header_field(h, "x start"), "13");
    EXPECT_EQ(header_field(h, "y start"), "22");
    EXPECT_EQ(header_field(h, "interleave"), "bsq") << "the output's own storage";
    EXPECT_EQ(header_field(h, "samples"), "3");
}

TEST(Metadata, DefaultBandsAreRenumberedWhenAllAreKept) {
    const TempFolder folder;
    OpenOptions options = cut_of(make_envi(folder));
    options.bands = {1, 3, 5};
    copy_scene(options, folder / "out.img", "ENVI");
    EXPECT_EQ(header_list(folder / "out.hdr", "default bands"), (std::vector<std::string>{"3", "2", "1"}));
    EXPECT_EQ(header_list(folder / "out.hdr", "bbl"), (std::vector<std::string>{"1", "0", "1"}));
}

TEST(Metadata, EnviToGeotiffAndBack) {
    const TempFolder folder;
    copy_scene(cut_of(make_envi(folder)), folder / "out.tif");
    expect_cut_scene(folder / "out.tif");
    {
        const Dataset d = open_gdal(folder / "out.tif");
        GDALRasterBand* band = d->GetRasterBand(1);
        EXPECT_EQ(item(band, "wavelength"), "2.25");
        EXPECT_EQ(item(band, "wavelength_units"), "Micrometers");
        EXPECT_EQ(item(band, "fwhm"), "0.014");
        EXPECT_EQ(item(band, "bbl"), "1");
        EXPECT_EQ(item(band, "CENTRAL_WAVELENGTH_UM", "IMAGERY"), "2.25");
        EXPECT_EQ(item(band, "FWHM_UM", "IMAGERY"), "0.014");
        EXPECT_EQ(item(d.get(), "sensor_type", "ENVI"), "HyMap");
        EXPECT_EQ(item(d.get(), "acquisition_time", "ENVI"), "2020-05-06T10:11:12Z");
        EXPECT_EQ(envi_list(item(d.get(), "fwhm", "ENVI")),
                  (std::vector<std::string>{"0.014", "0.010", "0.013"}));
        EXPECT_EQ(item(d.get(), "samples", "ENVI"), "(none)");
    }
    EXPECT_EQ(folder.files(), (std::vector<std::string>{"out.tif", "scene.hdr", "scene.img"}));
    copy_scene(folder / "out.tif", folder / "back.img", "ENVI");
    const std::string h = folder / "back.hdr";
    EXPECT_EQ(header_list(h, "wavelength"), (std::vector<std::string>{"2.25", "0.45", "0.75"}));
    EXPECT_EQ(header_list(h, "fwhm"), (std::vector<std::string>{"0.014", "0.010", "0.013"}));
    EXPECT_EQ(header_field(h, "wavelength units"), "Micrometers");
    EXPECT_EQ(header_field(h, "sensor type"), "HyMap");
    EXPECT_EQ(header_field(h, "x start"), "13");
    const auto source = open_source(folder / "back.img");
    EXPECT_EQ(source->facts().bands.wavelengths_nm, (std::vector<double>{2250, 450, 750}));
    EXPECT_EQ(source->facts().bands.nodata, -9999);
}

TEST(Metadata, ImageryDomainAloneIsEnough) {
    const TempFolder folder;
    {
        const Dataset d = create_gdal("GTiff", folder / "in.tif", 2, 2, 2, GDT_Byte);
        for (int b = 1; b <= 2; ++b) {
            d->GetRasterBand(b)->SetMetadataItem("CENTRAL_WAVELENGTH_UM", b == 1 ? "0.5" : "0.6", "IMAGERY");
            d->GetRasterBand(b)->SetMetadataItem("FWHM_UM", "0.01", "IMAGERY");
        }
    }
    EXPECT_EQ(open_source(folder / "in.tif")->facts().bands.wavelengths_nm, (std::vector<double>{500, 600}));
    copy_scene(folder / "in.tif", folder / "out.img", "ENVI");
    EXPECT_EQ(header_list(folder / "out.hdr", "wavelength"), (std::vector<std::string>{"0.5", "0.6"}));
    EXPECT_EQ(header_field(folder / "out.hdr", "wavelength units"), "Micrometers");
    EXPECT_EQ(header_list(folder / "out.hdr", "fwhm"), (std::vector<std::string>{"0.01", "0.01"}));
}

TEST(Metadata, RoundedImageryItemsGiveWayToTheDigitsThatTheFileHas) {
    // GDAL's ENVI reader does this from 3.10 on: whole nanometres in addition to the header's own texts.
    const TempFolder folder;
    {
        const Dataset d = create_gdal("GTiff", folder / "in.tif", 2, 2, 2, GDT_Byte);
        const char* const texts[2][2] = {{"400.5", "0.401"}, {"2499.87654321", "2.500"}};
        for (int b = 1; b <= 2; ++b) {
            GDALRasterBand* band = d->GetRasterBand(b);
            band->SetMetadataItem("wavelength", texts[b - 1][0]);
            band->SetMetadataItem("wavelength_units", "Nanometers");
            band->SetMetadataItem("CENTRAL_WAVELENGTH_UM", texts[b - 1][1], "IMAGERY");
            band->SetMetadataItem("FWHM_UM", "0.0125", "IMAGERY");
        }
    }
    EXPECT_EQ(open_source(folder / "in.tif")->facts().bands.wavelengths_nm,
              (std::vector<double>{400.5, 2499.87654321}));
    copy_scene(folder / "in.tif", folder / "out.tif");
    copy_scene(folder / "in.tif", folder / "out.img", "ENVI");
    copy_scene(folder / "out.img", folder / "again.tif");
    for (const char* name : {"out.tif", "again.tif"}) {
        const Dataset d = open_gdal(folder / name);
        EXPECT_EQ(item(d->GetRasterBand(1), "CENTRAL_WAVELENGTH_UM", "IMAGERY"), "0.4005") << name;
        EXPECT_EQ(item(d->GetRasterBand(2), "CENTRAL_WAVELENGTH_UM", "IMAGERY"), "2.49987654321") << name;
        EXPECT_EQ(item(d->GetRasterBand(2), "FWHM_UM", "IMAGERY"), "0.0125") << name;
        EXPECT_EQ(item(d->GetRasterBand(2), "fwhm"), "12.5") << "in the unit of the wavelength, " << name;
    }
    EXPECT_EQ(header_list(folder / "out.hdr", "wavelength"),
              (std::vector<std::string>{"400.5", "2499.87654321"}));
    EXPECT_EQ(header_list(folder / "out.hdr", "fwhm"), (std::vector<std::string>{"12.5", "12.5"}));
}

TEST(Metadata, UnitsBecomeNanometres) {
    EXPECT_EQ(raster::to_nanometres(0.5, "Micrometers", 0), 500);
    EXPECT_EQ(raster::to_nanometres(500, "nm", 0), 500);
    EXPECT_EQ(raster::to_nanometres(5000, "Angstroms", 0), 500);
    EXPECT_EQ(raster::to_nanometres(20000, "Wavenumber", 0), 500);
    EXPECT_EQ(raster::to_nanometres(0.5, "", 2.5), 500);
    EXPECT_EQ(raster::to_nanometres(500, "", 2500), 500);
    EXPECT_TRUE(std::isnan(raster::to_nanometres(5, "Index", 5)));
}

TEST(Metadata, DerivedBandsInheritTheSceneButNoBandLists) {
    const TempFolder folder;
    const auto source = open_source(make_envi(folder));
    for (const char* name : {"out.img", "out.tif"}) {
        OutputOptions options;
        options.path = folder / name;
        options.format = fs::path(name).extension() == ".img" ? "ENVI" : "GTiff";
        options.history = "gdal_hsi_pca scene.img out";
        OutputSpec spec;
        spec.shape = {6, 4, 2};
        spec.bands = {{"PC1", {{"EIGENVALUE", "12"}}}, {"PC2", {}}};
        spec.metadata = {{"ALGORITHM", "pca"}};
        const auto sink = raster::create_sink(options, spec, source.get());
        std::vector<float> v(48, 1.0f);
        sink->write(Rect{0, 0, 6, 4}, CubeView<float>::packed(v.data(), 2, 4, 6));
        sink->commit();
        const Dataset d = open_gdal(options.path);
        EXPECT_STREQ(d->GetRasterBand(1)->GetDescription(), "PC1");
        EXPECT_EQ(item(d->GetRasterBand(1), "EIGENVALUE"), "12");
        EXPECT_EQ(item(d->GetRasterBand(1), "wavelength"), "(none)");
        EXPECT_EQ(item(d.get(), "HSI_HISTORY"), "gdal_hsi_pca scene.img out");
        EXPECT_EQ(item(d.get(), "ALGORITHM"), "pca");
        EXPECT_EQ(item(d.get(), "sensor_type", "ENVI"), "HyMap");
        for (const char* key :
             {"wavelength", "wavelength_units", "fwhm", "bbl", "default_bands", "calibration_of_detectors"})
            EXPECT_EQ(item(d.get(), key, "ENVI"), "(none)") << key;
        EXPECT_EQ(item(d.get(), "wavelength_units"), "(none)");
        EXPECT_EQ(d->GetRasterBand(2)->GetScale(), 1.0);
        double gt[6];
        ASSERT_EQ(d->GetGeoTransform(gt), CE_None);
        EXPECT_EQ(gt[0], 500000);
        EXPECT_EQ(d->GetRasterBand(1)->GetNoDataValue(), -9999);
    }
}

TEST(Metadata, HistoryGrows) {
    const TempFolder folder;
    std::string before = make_envi(folder);
    for (const char* step : {"one", "two"}) {
        const auto source = open_source(before);
        OutputOptions options;
        options.path = folder / (std::string(step) + ".tif");
        options.history = step;
        const auto sink = sink_like(*source, options, "Float32");
        copy_tiles(*source, *sink, 6, 4);
        before = options.path;
    }
    EXPECT_EQ(item(open_gdal(before).get(), "HSI_HISTORY"), "one\ntwo");
}

TEST(Metadata, RotatedAndShearedGeotransformsSurvive) {
    const TempFolder folder;
    double turned[6] = {100, 8.660254037844387, 5, 200, 5, -8.660254037844387},
           sheared[6] = {100, 10, 3, 200, 1, -12};
    for (const auto& gt : {turned, sheared}) {
        {
            const Dataset d = create_gdal("GTiff", folder / "in.tif", 6, 5, 2, GDT_Float32);
            OGRSpatialReference srs;
            srs.importFromEPSG(32633);
            d->SetSpatialRef(&srs);
            d->SetGeoTransform(gt);
        }
        OpenOptions options;
        options.path = folder / "in.tif";
        options.window = Rect{2, 3, 4, 2};
        for (const char* format : {"ENVI", "GTiff"}) {
            const std::string out = folder / (std::string(format) + ".img");
            fs::remove(out);
            fs::remove(folder / "ENVI.hdr");
            if (std::string(format) == "ENVI" && gt[4] != gt[2]) {
                EXPECT_THROW(copy_scene(options, out, format), Error) << "no ENVI header can say this";
                continue;
            }
            copy_scene(options, out, format);
            const Dataset d = open_gdal(out);
            double got[6];
            ASSERT_EQ(d->GetGeoTransform(got), CE_None) << format;
            const double expected[6] = {gt[0] + 2 * gt[1] + 3 * gt[2], gt[1], gt[2],
                                        gt[3] + 2 * gt[4] + 3 * gt[5], gt[4], gt[5]};
            for (int i = 0; i < 6; ++i)
                EXPECT_NEAR(got[i], expected[i], 1e-9) << format << " " << i;
            ASSERT_NE(d->GetSpatialRef(), nullptr) << format;
            EXPECT_NE(std::string(d->GetSpatialRef()->GetAttrValue("PROJCS")).find("33N"), std::string::npos);
        }
    }
}

TEST(Metadata, GcpsRpcAndGeolocationFollowTheWindow) {
    const TempFolder folder;
    {
        const Dataset d = create_gdal("GTiff", folder / "in.tif", 20, 20, 2, GDT_Byte);
        OGRSpatialReference srs;
        srs.importFromEPSG(4326);
        srs.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
        char id[] = "a", info[] = "";
        const GDAL_GCP gcps[] = {{id, info, 5, 6, 10.5, 50.25, 3},
                                 {id, info, 15, 6, 11, 50, 0},
                                 {id, info, 5, 16, 10, 49, 0},
                                 {id, info, 15, 16, 11, 49, 0}};
        d->SetGCPs(4, gcps, &srs);
        CPLStringList rpc;
        for (const char* key : {"HEIGHT_OFF", "LAT_OFF", "LONG_OFF"})
            rpc.SetNameValue(key, "1");
        for (const char* key : {"LINE_SCALE", "SAMP_SCALE", "LAT_SCALE", "LONG_SCALE", "HEIGHT_SCALE"})
            rpc.SetNameValue(key, "2");
        rpc.SetNameValue("LINE_OFF", "10.5");
        rpc.SetNameValue("SAMP_OFF", "9");
        for (const char* key : {"LINE_NUM_COEFF", "LINE_DEN_COEFF", "SAMP_NUM_COEFF", "SAMP_DEN_COEFF"})
            rpc.SetNameValue(key, "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20");
        d->SetMetadata(rpc.List(), "RPC");
        CPLStringList geolocation;
        geolocation.SetNameValue("X_DATASET", "lon.tif");
        geolocation.SetNameValue("PIXEL_OFFSET", "0");
        geolocation.SetNameValue("LINE_OFFSET", "2");
        d->SetMetadata(geolocation.List(), "GEOLOCATION");
        d->SetMetadataItem("TIFFTAG_DATETIME", "2020:05:06 10:11:12");
        d->SetMetadataItem("CLOUDS", "few");
        const char* const xml[] = {"<a><b c=\"1\"/></a>", nullptr};
        d->SetMetadata(const_cast<char**>(xml), "xml:TEST");
        d->GetRasterBand(2)->SetMetadataItem("KEY", "value", "SPECIAL");
        d->GetRasterBand(2)->SetUnitType("W/m2");
    }
    OpenOptions options;
    options.path = folder / "in.tif";
    options.window = Rect{4, 5, 10, 12};
    for (const char* format : {"GTiff", "ENVI"}) {
        const std::string out = folder / (std::string(format) + ".img");
        copy_scene(options, out, format);
        const Dataset d = open_gdal(out);
        ASSERT_EQ(d->GetGCPCount(), 4) << format;
        EXPECT_NEAR(d->GetGCPs()[0].dfGCPPixel, 1, 1e-9) << format;
        EXPECT_NEAR(d->GetGCPs()[0].dfGCPLine, 1, 1e-9) << format;
        EXPECT_NEAR(d->GetGCPs()[0].dfGCPX, 10.5, 1e-9) << format;
        EXPECT_NEAR(d->GetGCPs()[0].dfGCPY, 50.25, 1e-9) << format;
        ASSERT_NE(d->GetGCPSpatialRef(), nullptr) << format;
        EXPECT_EQ(CPLAtof(item(d.get(), "LINE_OFF", "RPC").c_str()), 5.5) << format;
        EXPECT_EQ(CPLAtof(item(d.get(), "SAMP_OFF", "RPC").c_str()), 5) << format;
        EXPECT_EQ(item(d.get(), "PIXEL_OFFSET", "GEOLOCATION"), "-4") << format;
        EXPECT_EQ(item(d.get(), "LINE_OFFSET", "GEOLOCATION"), "-3") << format;
        EXPECT_EQ(item(d.get(), "X_DATASET", "GEOLOCATION"), "lon.tif") << format;
        EXPECT_EQ(item(d.get(), "CLOUDS"), "few") << format;
        EXPECT_EQ(item(d.get(), "TIFFTAG_DATETIME"), "2020:05:06 10:11:12") << format;
        CSLConstList xml = d->GetMetadata("xml:TEST");
        ASSERT_TRUE(xml && *xml) << format;
        // GDAL's side file formats XML differently.
        EXPECT_NE(std::string(*xml).find("<b c=\"1\""), std::string::npos) << format << *xml;
        EXPECT_EQ(item(d->GetRasterBand(2), "KEY", "SPECIAL"), "value") << format;
        EXPECT_STREQ(d->GetRasterBand(2)->GetUnitType(), "W/m2") << format;
    }
}

TEST(Metadata, CoordinateEpochAndClassesTravel) {
    const TempFolder folder;
    {
        const Dataset d = create_gdal("GTiff", folder / "in.tif", 4, 4, 1, GDT_Byte);
        OGRSpatialReference srs;
        srs.importFromEPSG(4326);
        srs.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
        srs.SetCoordinateEpoch(2021.25);
        d->SetSpatialRef(&srs);
        double gt[6] = {10, 0.1, 0, 50, 0, -0.1};
        d->SetGeoTransform(gt);
        CPLStringList names;
        for (const char* n : {"none", "wood", "field"})
            names.AddString(n);
        d->GetRasterBand(1)->SetCategoryNames(names.List());
        GDALColorTable table;
        const GDALColorEntry green{0, 128, 0, 255};
        table.SetColorEntry(1, &green);
        d->GetRasterBand(1)->SetColorTable(&table);
    }
    copy_scene(folder / "in.tif", folder / "out.tif");
    const Dataset d = open_gdal(folder / "out.tif");
    EXPECT_EQ(d->GetSpatialRef()->GetCoordinateEpoch(), 2021.25);
    EXPECT_EQ(d->GetSpatialRef()->GetDataAxisToSRSAxisMapping(), (std::vector<int>{2, 1}));
    EXPECT_EQ(metadata_of(*open_source(folder / "out.tif")).bands.front().categories,
              (std::vector<std::string>{"none", "wood", "field"}));
    ASSERT_NE(d->GetRasterBand(1)->GetColorTable(), nullptr);
    EXPECT_EQ(d->GetRasterBand(1)->GetColorTable()->GetColorEntry(1)->c2, 128);
    EXPECT_EQ(folder.files(),
              (std::vector<std::string>{"in.tif", "in.tif.aux.xml", "out.tif", "out.tif.aux.xml"}));
}

class RealMetadata : public ::testing::TestWithParam<const char*> {};

TEST_P(RealMetadata, SurvivesEveryRoute) {
    HSI_NEED_SCENE(path, GetParam());
    const TempFolder folder;
    OpenOptions options;
    options.path = path;
    options.use_bbl = false;
    const auto source = open_raster(options);
    ASSERT_FALSE(source->facts().bands.wavelengths_nm.empty());
    copy_scene(options, folder / "a.img", "ENVI");
    copy_scene(options, folder / "b.tif", "GTiff");
    OpenOptions tif;
    tif.path = folder / "b.tif";
    tif.use_bbl = false;
    copy_scene(tif, folder / "c.img", "ENVI");
    const auto& expected = metadata_of(*source);
    for (const char* name : {"a.img", "b.tif", "c.img"}) {
        OpenOptions again_options;
        again_options.path = folder / name;
        again_options.use_bbl = false;
        const auto again = open_raster(again_options);
        const auto& got = metadata_of(*again);
        ASSERT_EQ(got.bands.size(), expected.bands.size());
        for (size_t k = 0; k < got.bands.size(); ++k) {
            const auto &a = expected.bands[k], &b = got.bands[k];
            EXPECT_EQ(b.wavelength, a.wavelength) << name << " band " << k;
            EXPECT_EQ(b.wavelength_units, a.wavelength_units) << name << " band " << k;
            EXPECT_EQ(b.fwhm, a.fwhm) << name << " band " << k;
            EXPECT_EQ(b.bad(), a.bad()) << name << " band " << k;
            EXPECT_EQ(b.bbl.empty(), a.bbl.empty()) << name << " band " << k;
            EXPECT_EQ(b.scale.value_or(1), a.scale.value_or(1)) << name << " band " << k;
            EXPECT_EQ(b.offset.value_or(0), a.offset.value_or(0)) << name << " band " << k;
            ASSERT_EQ(b.nodata.has_value(), a.nodata.has_value()) << name;
            if (a.nodata) {
                EXPECT_EQ(b.nodata->real, a.nodata->real) << name;
            }
            // The ENVI driver appends "(400 Nanometers)" to the band names in the header.
            EXPECT_EQ(b.description.rfind(a.description.substr(0, a.description.find(" (")), 0), 0u)
                << name << ": " << a.description << " / " << b.description;
        }
        EXPECT_EQ(again->facts().bands.wavelengths_nm, source->facts().bands.wavelengths_nm) << name;
        double ga[6], gb[6];
        ASSERT_EQ(again->facts().copy_geotransform(gb), source->facts().copy_geotransform(ga)) << name;
        for (int i = 0; source->facts().copy_geotransform(ga) && i < 6; ++i)
            EXPECT_NEAR(ga[i], gb[i], 1e-6) << name;
        ASSERT_EQ(again->facts().srs != nullptr, source->facts().srs != nullptr) << name;
        if (source->facts().srs) {
            EXPECT_TRUE(got.srs->IsSame(expected.srs.get())) << name << again->facts().srs_wkt();
        }
        EXPECT_TRUE(same_values(our_values(*again), our_values(*source))) << name;
    }
}

INSTANTIATE_TEST_SUITE_P(Scenes, RealMetadata,
                         ::testing::Values("emit/emit20250324t221005_jpl_unmix_ex",
                                           "avirisng/ang20170323t202244_rdn_7000-7010",
                                           "indian_pines/indian_pines.img", "jasper_ridge/jasper_ridge.img",
                                           "pavia_centre/pavia_centre.img",
                                           "enmap_potsdam/images/enmap_potsdam_tile_128_0.tif",
                                           "enmap_berlin/EnMAP_BerlinUrbanGradient.bsq"),
                         [](const auto& param) {
                             const std::string path = param.param;
                             return path.substr(0, path.find('/'));
                         });

} // namespace
} // namespace hsi::test
