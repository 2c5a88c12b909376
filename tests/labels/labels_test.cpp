// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "raster/labels.h"

#include <cpl_vsi.h>
#include <gdal_alg.h>
#include <gdal_priv.h>
#include <gdal_rat.h>
#include <gtest/gtest.h>
#include <ogrsf_frmts.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace hsi::test {
namespace {

using raster::Grid;
using raster::LabelOptions;
using raster::LabelSource;

constexpr int samples = 60, lines = 300; // more than one strip

struct Close {
    void operator()(GDALDataset* d) const { GDALClose(GDALDataset::ToHandle(d)); }
};
using Dataset = std::unique_ptr<GDALDataset, Close>;

std::string wkt(int epsg) {
    OGRSpatialReference srs;
    srs.importFromEPSG(epsg);
    char* text = nullptr;
    srs.exportToWkt(&text);
    const std::string s = text;
    CPLFree(text);
    return s;
}

Grid utm_grid() {
    Grid g;
    g.samples = samples;
    g.lines = lines;
    g.geotransform = {500000, 20, 0, 4480000, 0, -20};
    g.srs_wkt = wkt(32616);
    return g;
}

/// Returns the class of a pixel: blocks of classes 1, 2, 3 with unlabelled gaps.
uint16_t truth(int line, int sample) {
    if (line % 11 == 0 || sample % 7 == 0) return 0;
    return static_cast<uint16_t>(1 + (line / 11 + sample / 7) % 3);
}

std::string write_raster(const std::string& name, GDALDataType type, const Grid& grid,
                         const std::function<double(int, int)>& value,
                         const std::function<void(GDALDataset&)>& more = {}) {
    GDALAllRegister();
    const std::string path = "/vsimem/labels_" + name + ".tif";
    Dataset d(GetGDALDriverManager()->GetDriverByName("GTiff")->Create(
        path.c_str(), static_cast<int>(grid.samples), static_cast<int>(grid.lines), 1, type, nullptr));
    if (grid.geotransform) {
        auto gt = *grid.geotransform;
        d->SetGeoTransform(gt.data());
    }
    if (!grid.srs_wkt.empty()) d->SetProjection(grid.srs_wkt.c_str());
    std::vector<double> v;
    for (int l = 0; l < grid.lines; ++l)
        for (int s = 0; s < grid.samples; ++s)
            v.push_back(value(l, s));
    const int w = static_cast<int>(grid.samples), h = static_cast<int>(grid.lines);
    EXPECT_EQ(d->GetRasterBand(1)->RasterIO(GF_Write, 0, 0, w, h, v.data(), w, h, GDT_Float64, 0, 0, nullptr),
              CE_None);
    if (more) more(*d);
    return path;
}

std::vector<uint16_t> read_all(LabelSource& source, int64_t at_once = 37) {
    const auto& g = source.grid();
    std::vector<uint16_t> v(static_cast<size_t>(g.samples * g.lines), 999);
    for (int64_t y = 0; y < g.lines; y += at_once)
        source.read(y, std::min(at_once, g.lines - y), v.data() + y * g.samples);
    return v;
}

LabelOptions file(const std::string& path) {
    LabelOptions o;
    o.path = path;
    return o;
}

void expect_truth(const std::vector<uint16_t>& got) {
    int64_t wrong = 0;
    for (int l = 0; l < lines; ++l)
        for (int s = 0; s < samples; ++s)
            wrong += got[static_cast<size_t>(l * samples + s)] != truth(l, s);
    EXPECT_EQ(wrong, 0);
}

/// Writes polygons of the truth raster in another SRS, with the class in `field`.
std::string polygons(const std::string& name, int epsg, bool names) {
    const std::string raster =
        write_raster("for_" + name, GDT_UInt16, utm_grid(), [](int l, int s) { return truth(l, s); });
    const std::string path = "/vsimem/" + name + ".gpkg";
    Dataset d(
        GetGDALDriverManager()->GetDriverByName("GPKG")->Create(path.c_str(), 0, 0, 0, GDT_Unknown, nullptr));
    OGRSpatialReference utm, other;
    utm.importFromEPSG(32616);
    other.importFromEPSG(epsg);
    utm.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
    other.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
    OGRLayer* layer = d->CreateLayer("fields", &other, wkbPolygon, nullptr);
    OGRFieldDefn code("Level_1_ID", OFTInteger), text("Level_1", OFTString), empty("empty", OFTString);
    layer->CreateField(&code);
    layer->CreateField(&text);
    layer->CreateField(&empty);
    Dataset memory(
        GetGDALDriverManager()->GetDriverByName("Memory")->Create("", 0, 0, 0, GDT_Unknown, nullptr));
    OGRLayer* raw = memory->CreateLayer("raw", &utm, wkbPolygon, nullptr);
    OGRFieldDefn dn("dn", OFTInteger);
    raw->CreateField(&dn);
    Dataset r(GDALDataset::Open(raster.c_str()));
    EXPECT_EQ(GDALPolygonize(GDALRasterBand::ToHandle(r->GetRasterBand(1)), nullptr, OGRLayer::ToHandle(raw),
                             0, nullptr, nullptr, nullptr),
              CE_None);
    OGRCoordinateTransformation* t = OGRCreateCoordinateTransformation(&utm, &other);
    for (auto& feature : *raw) {
        const int v = feature->GetFieldAsInteger(0);
        if (v == 0) continue;
        OGRFeature out(layer->GetLayerDefn());
        std::unique_ptr<OGRGeometry> g(feature->GetGeometryRef()->clone());
        EXPECT_EQ(g->transform(t), OGRERR_NONE);
        out.SetGeometry(g.get());
        out.SetField(0, v);
        if (names) out.SetField(1, v == 1 ? "corn" : v == 2 ? "oats" : "woods");
        EXPECT_EQ(layer->CreateFeature(&out), OGRERR_NONE);
    }
    OGRCoordinateTransformation::DestroyCT(t);
    return path;
}

TEST(Labels, PixelsAreCountedOnceInSeveralPasses) {
    const auto path = write_raster(
        "counted_once", GDT_Int16, utm_grid(),
        [](int l, int s) { return l == 3 && s == 4 ? -5 : truth(l, s); },
        [](GDALDataset& d) { d.GetRasterBand(1)->SetNoDataValue(99); });
    const auto source = LabelSource::open(file(path));
    const auto first = read_all(*source);
    const auto notes = source->reading_notes();
    ASSERT_EQ(notes.size(), 2u);
    std::vector<uint16_t> part(static_cast<size_t>(9 * samples));
    source->read(2, 9, part.data()); // lines that overlap with those before
    EXPECT_EQ(read_all(*source, 11), first);
    EXPECT_EQ(source->reading_notes(), notes);
}

TEST(RasterLabels, SameGrid) {
    const auto path = write_raster("same", GDT_Byte, utm_grid(), [](int l, int s) { return truth(l, s); });
    const Grid grid = utm_grid();
    expect_truth(read_all(*LabelSource::open(file(path))));
    expect_truth(read_all(*LabelSource::open(file(path), &grid)));
}

TEST(RasterLabels, WhatIsNoLabel) {
    Grid g;
    g.samples = 5;
    g.lines = 1;
    const double values[] = {0, -3, 7, 255, NAN};
    const auto path = write_raster(
        "none", GDT_Float32, g, [&](int, int s) { return values[s]; },
        [](GDALDataset& d) { d.GetRasterBand(1)->SetNoDataValue(255); });
    EXPECT_EQ(read_all(*LabelSource::open(file(path))), (std::vector<uint16_t>{0, 0, 7, 0, 0}));
    LabelOptions mask = file(path);
    mask.mask = true;
    EXPECT_EQ(read_all(*LabelSource::open(mask)), (std::vector<uint16_t>{0, 1, 1, 0, 0}));
}

TEST(RasterLabels, RefusesWhatIsNoClassNumber) {
    Grid g;
    g.samples = g.lines = 4;
    for (const double bad : {1.5, 70000.0}) {
        const auto path = write_raster("bad", GDT_Float32, g, [&](int, int) { return bad; });
        const auto source = LabelSource::open(file(path));
        EXPECT_THROW(read_all(*source), Error);
    }
    const auto complex = write_raster("complex", GDT_CFloat32, g, [&](int, int) { return 1; });
    EXPECT_THROW(LabelSource::open(file(complex)), Error);
    EXPECT_THROW(LabelSource::open(file("/vsimem/absent.tif")), Error);
    LabelOptions with_field = file(complex);
    with_field.field = "class";
    EXPECT_THROW(LabelSource::open(with_field), Error);
}

TEST(RasterLabels, AnotherGridIsResampledNearest) {
    // The grid is twice as fine, shifted by a whole number of coarse pixels, and larger on all sides.
    Grid fine = utm_grid();
    fine.samples = 2 * samples + 8;
    fine.lines = 2 * lines + 12;
    fine.geotransform = {500000 - 2 * 20, 10, 0, 4480000 + 3 * 20, 0, -10};
    const auto path = write_raster("fine", GDT_UInt16, fine, [](int l, int s) {
        const int cl = l / 2 - 3, cs = s / 2 - 2;
        return cl >= 0 && cs >= 0 && cl < lines && cs < samples ? truth(cl, cs) : 77;
    });
    const Grid grid = utm_grid();
    const auto source = LabelSource::open(file(path), &grid);
    expect_truth(read_all(*source));
    EXPECT_EQ(source->description(), "raster, resampled");
}

TEST(RasterLabels, AnotherSrsIsReprojected) {
    // The truth as a geographic raster. It is so fine that the nearest pixel is in the right 20 m cell,
    // except near the cell's edges, where the test compares with the transformation itself.
    const Grid grid = utm_grid();
    OGRSpatialReference utm, geographic;
    utm.importFromEPSG(32616);
    geographic.importFromEPSG(4326);
    utm.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
    geographic.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
    std::unique_ptr<OGRCoordinateTransformation> back(OGRCreateCoordinateTransformation(&geographic, &utm));
    Grid g;
    g.samples = 400;
    g.lines = 1500;
    g.srs_wkt = wkt(4326);
    double x[] = {500000, 500000 + 20.0 * samples}, y[] = {4480000, 4480000 - 20.0 * lines};
    std::unique_ptr<OGRCoordinateTransformation> forth(OGRCreateCoordinateTransformation(&utm, &geographic));
    forth->Transform(2, x, y);
    const double dx = (x[1] - x[0]) / 380, dy = (y[1] - y[0]) / 1480;
    g.geotransform = {x[0] - 10 * dx, dx, 0, y[0] - 10 * dy, 0, dy};
    const auto path = write_raster("geo", GDT_Byte, g, [&](int l, int s) {
        double px = (*g.geotransform)[0] + (s + 0.5) * dx, py = (*g.geotransform)[3] + (l + 0.5) * dy;
        back->Transform(1, &px, &py);
        const double cs = (px - 500000) / 20, cl = (4480000 - py) / 20;
        if (!(cs >= 0 && cl >= 0 && cs < samples && cl < lines)) return 0;
        return static_cast<int>(truth(static_cast<int>(cl), static_cast<int>(cs)));
    });
    const auto source = LabelSource::open(file(path), &grid);
    EXPECT_EQ(source->description(), "raster, reprojected");
    expect_truth(read_all(*source));
}

TEST(RasterLabels, OtherSizeWithoutGeoreferenceIsRefused) {
    Grid plain;
    plain.samples = samples;
    plain.lines = lines;
    const auto path = write_raster("plain", GDT_Byte, plain, [](int l, int s) { return truth(l, s); });
    const Grid same_size = utm_grid();
    expect_truth(read_all(*LabelSource::open(file(path), &same_size))); // copied pixel by pixel
    Grid other = utm_grid();
    other.samples = samples - 1;
    EXPECT_THROW(LabelSource::open(file(path), &other), Error);
}

TEST(RasterLabels, NamesAndColoursFromEveryPlace) {
    Grid g;
    g.samples = 4;
    g.lines = 1;
    const auto value = [](int, int s) { return s; };
    const auto categories = write_raster("categories", GDT_Byte, g, value, [](GDALDataset& d) {
        char* names[] = {const_cast<char*>("none"), const_cast<char*>("corn"), const_cast<char*>("2"),
                         const_cast<char*>("woods"), nullptr};
        d.GetRasterBand(1)->SetCategoryNames(names);
        GDALColorTable table;
        const GDALColorEntry red{250, 10, 20, 255};
        table.SetColorEntry(3, &red);
        d.GetRasterBand(1)->SetColorTable(&table);
    });
    const auto first = LabelSource::open(file(categories));
    const auto known = raster::collect_labels(*first).classes;
    ASSERT_EQ(known.size(), 3u);
    EXPECT_EQ(known[0].name, "corn");
    EXPECT_EQ(known[1].name, ""); // a number as a name is ignored
    EXPECT_EQ(known[2].name, "woods");
    EXPECT_EQ(known[2].colour, (raster::Colour{250, 10, 20, 255}));

    const auto table = write_raster("rat", GDT_Byte, g, value, [](GDALDataset& d) {
        GDALDefaultRasterAttributeTable t;
        t.CreateColumn("Value", GFT_Integer, GFU_MinMax);
        t.CreateColumn("Class_name", GFT_String, GFU_Name);
        t.CreateColumn("R", GFT_Integer, GFU_Red);
        t.CreateColumn("G", GFT_Integer, GFU_Green);
        t.CreateColumn("B", GFT_Integer, GFU_Blue);
        t.SetValue(0, 0, 2);
        t.SetValue(0, 1, "lake");
        t.SetValue(0, 4, 200);
        d.GetRasterBand(1)->SetDefaultRAT(&t);
    });
    const auto second = LabelSource::open(file(table));
    ASSERT_EQ(second->legend().size(), 1u);
    EXPECT_EQ(second->legend()[0].value, 2);
    EXPECT_EQ(second->legend()[0].name, "lake");
    EXPECT_EQ(second->legend()[0].colour, (raster::Colour{0, 0, 200, 255}));
}

TEST(VectorLabels, PolygonsInAnotherSrsGiveThePixelsOfTheirRaster) {
    const Grid grid = utm_grid();
    for (const int epsg : {32616, 4326, 3857}) {
        LabelOptions o = file(polygons("fields_" + std::to_string(epsg), epsg, true));
        o.field = "level_1_id";
        const auto source = LabelSource::open(o, &grid);
        expect_truth(read_all(*source));
        expect_truth(read_all(*source, 300));
        ASSERT_EQ(source->legend().size(), 3u) << "names of the companion field Level_1";
        EXPECT_EQ(source->legend()[1].name, "oats");
        EXPECT_EQ(source->description().find("reprojected") != std::string::npos, epsg != 32616);
    }
}

TEST(VectorLabels, NamesBecomeClassesInAlphabeticalOrder) {
    const Grid grid = utm_grid();
    LabelOptions o = file(polygons("named", 32616, true));
    o.field = "Level_1";
    const auto source = LabelSource::open(o, &grid);
    expect_truth(read_all(*source)); // corn, oats and woods become 1, 2 and 3
    EXPECT_EQ(source->legend()[2].name, "woods");
}

TEST(VectorLabels, BadInput) {
    const Grid grid = utm_grid();
    const auto path = polygons("for_errors", 32616, true);
    const auto fails = [&](const char* field, const char* layer, const Grid* on, const std::string& part) {
        LabelOptions o = file(path);
        o.field = field;
        o.layer = layer;
        try {
            LabelSource::open(o, on);
            ADD_FAILURE() << part;
        } catch (const Error& e) {
            EXPECT_NE((e.what() + e.advice()).find(part), std::string::npos) << e.what() << e.advice();
        }
    };
    fails("crop", "", &grid, "Level_1_ID, Level_1, empty");
    fails("", "", &grid, "the field with the classes");
    fails("Level_1", "absent", &grid, "fields");
    fails("Level_1", "", nullptr, "-like");
    fails("empty", "", &grid, "no feature");
    Grid plain;
    plain.samples = plain.lines = 10;
    fails("Level_1", "", &plain, "georeference");
    Grid far = utm_grid();
    (*far.geotransform)[0] += 1e6;
    LabelOptions o = file(path);
    o.field = "Level_1";
    const auto source = LabelSource::open(o, &far);
    EXPECT_THROW(raster::collect_labels(*source), Error);
}

TEST(VectorLabels, PointsAndMasks) {
    GDALAllRegister();
    const char* path = "/vsimem/points.geojson";
    const std::string text =
        R"({"type":"FeatureCollection","crs":{"type":"name","properties":{"name":"urn:ogc:def:crs:EPSG::32616"}},"features":[
        {"type":"Feature","properties":{"class":5},"geometry":{"type":"Point","coordinates":[500030,4479990]}},
        {"type":"Feature","properties":{"class":9},"geometry":{"type":"Point","coordinates":[501199,4474001]}},
        {"type":"Feature","properties":{"class":null},"geometry":{"type":"Point","coordinates":[500500,4479500]}}]})";
    std::string copy = text;
    VSIFCloseL(VSIFileFromMemBuffer(path, reinterpret_cast<GByte*>(copy.data()), copy.size(), FALSE));
    const Grid grid = utm_grid();
    const auto source = LabelSource::open(file(path), &grid);
    EXPECT_EQ(source->notes().size(), 1u);
    const auto all = raster::collect_labels(*source);
    EXPECT_EQ(all.index, (std::vector<int64_t>{1, 299 * samples + 59}));
    EXPECT_EQ(all.value, (std::vector<uint16_t>{5, 9}));
    LabelOptions mask = file(path);
    mask.mask = true;
    EXPECT_EQ(raster::collect_labels(*LabelSource::open(mask, &grid)).index.size(), 3u);
    VSIUnlink(path);
}

TEST(Legend, DefaultColoursDiffer) {
    std::set<raster::Colour> seen;
    for (int v = 1; v <= 60; ++v)
        seen.insert(raster::default_colour(v));
    EXPECT_EQ(seen.size(), 60u);
}

TEST(Legend, DescribesAMap) {
    raster::LabelClass corn, other;
    corn.value = 2;
    corn.name = "corn";
    corn.colour = raster::Colour{1, 2, 3, 255};
    other.value = 4;
    raster::OutputOptions options;
    raster::OutputSpec spec;
    raster::describe_class_map({corn, other}, options, spec);
    EXPECT_EQ(spec.type, "Byte");
    EXPECT_EQ(spec.categories, (std::vector<std::string>{"Unclassified", "", "corn", "", "4"}));
    EXPECT_EQ(spec.colours[2], (raster::Colour{1, 2, 3, 255}));
    EXPECT_EQ(options.nodata, 0.0);
    other.value = 300;
    raster::describe_class_map({other}, options, spec);
    EXPECT_EQ(spec.type, "UInt16");
}

} // namespace
} // namespace hsi::test
