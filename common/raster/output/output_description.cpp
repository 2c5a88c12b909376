// SPDX-License-Identifier: MIT
#include "raster/output/output_description.h"

#include "core/error.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/output/nodata_choice.h"
#include "raster/output_format.h"

#include <cpl_string.h>
#include <gdal_rat.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace hsi::raster {
namespace {

std::shared_ptr<const OGRSpatialReference> parse_srs(const std::string& text) {
    auto srs = std::shared_ptr<OGRSpatialReference>(new OGRSpatialReference(),
                                                    [](OGRSpatialReference* s) { s->Release(); });
    const GdalErrors errors;
    if (srs->SetFromUserInput(text.c_str()) != OGRERR_NONE)
        throw UsageError("'" + text + "' is not a coordinate reference system known to PROJ" +
                         (errors.any() ? ": " + errors.text() : ""));
    srs->SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
    return srs;
}

std::string item(const std::map<std::string, std::string>& items, const char* key) {
    const auto at = items.find(key);
    return at == items.end() ? std::string() : at->second;
}

void set_nodata(GDALRasterBand& band, const NodataValue& nodata, GDALDataType type) {
    if (type == GDT_Int64)
        band.SetNoDataValueAsInt64(
            nodata.kind == SampleType::int64 ? nodata.whole : static_cast<int64_t>(nodata.as_double()));
    else if (type == GDT_UInt64)
        band.SetNoDataValueAsUInt64(
            nodata.kind == SampleType::uint64 ? nodata.natural : static_cast<uint64_t>(nodata.as_double()));
    else
        band.SetNoDataValue(nodata.as_double());
}

/// Writes the legend also as an attribute table, in which each row has the name and colour of a value,
/// because some programs read only this table. `gapless`: the table also has rows for values without a class,
/// because HFA assigns colours by row.
void write_attribute_table(const OutputSpec& spec, GDALRasterBand& band, bool gapless) {
    GDALDefaultRasterAttributeTable table;
    table.CreateColumn("Value", GFT_Integer, GFU_MinMax);
    table.CreateColumn("Class_name", GFT_String, GFU_Name);
    table.CreateColumn("Red", GFT_Integer, GFU_Red);
    table.CreateColumn("Green", GFT_Integer, GFU_Green);
    table.CreateColumn("Blue", GFT_Integer, GFU_Blue);
    table.CreateColumn("Alpha", GFT_Integer, GFU_Alpha);
    table.SetTableType(GRTT_THEMATIC);
    int row = 0;
    for (size_t value = 0; value < std::min(spec.categories.size(), spec.colours.size()); ++value) {
        if (spec.categories[value].empty() && !gapless) continue; // a value without a class
        table.SetValue(row, 0, static_cast<int>(value));
        table.SetValue(row, 1, spec.categories[value].c_str());
        for (int part = 0; part < 4; ++part)
            table.SetValue(row, 2 + part, spec.colours[value][static_cast<size_t>(part)]);
        ++row;
    }
    band.SetDefaultRAT(&table);
}

/// Returns the metadata of a band without a band in the source.
BandMetadata band_of(const BandSpec& from) {
    BandMetadata band;
    band.wavelength_nm = band.fwhm_nm = std::numeric_limits<double>::quiet_NaN();
    band.description = from.description;
    band.scale = from.scale;
    band.offset = from.offset;
    band.unit = from.unit;
    for (const auto& [key, value] : from.metadata)
        band.domains[""].push_back(key + "=" + value);
    band.wavelength = item(from.metadata, "wavelength");
    band.wavelength_units = item(from.metadata, "wavelength_units");
    band.fwhm = item(from.metadata, "fwhm");
    band.bbl = item(from.metadata, "bbl");
    if (!band.wavelength.empty())
        band.wavelength_nm = to_nanometres(CPLAtof(band.wavelength.c_str()), band.wavelength_units, 1000);
    if (!band.fwhm.empty())
        band.fwhm_nm = to_nanometres(CPLAtof(band.fwhm.c_str()), band.wavelength_units, 1000);
    return band;
}

void describe_band(const BandSpec& spec, const SceneMetadata* scene, GDALRasterBand& band) {
    if (scene != nullptr && spec.like_band >= 0)
        write_band_metadata(*scene, static_cast<size_t>(spec.like_band), band);
    if (!spec.description.empty()) band.SetDescription(spec.description.c_str());
    set_scale(band, spec.scale, spec.offset);
    if (!spec.unit.empty()) band.SetUnitType(spec.unit.c_str());
    for (const auto& [key, value] : spec.metadata)
        band.SetMetadataItem(key.c_str(), value.c_str());
}

} // namespace

std::optional<NodataValue> choose_nodata(const OutputOptions& options, const OutputSpec& spec,
                                         const SceneMetadata* scene, GDALDataType type) {
    if (scene == nullptr) return choose_nodata(options, spec, SourceNodata(), sample_type(type));
    SourceNodata source{scene->masked, {}};
    for (const BandMetadata& b : scene->bands)
        if (b.nodata) source.values.push_back(*b.nodata);
    return choose_nodata(options, spec, source, sample_type(type));
}

void describe_output(const OutputOptions& options, const OutputSpec& spec, const SceneMetadata* scene,
                     const std::optional<NodataValue>& nodata, GDALDataType type, GDALDataset& dataset) {
    // GDAL writes metadata that the driver cannot store to a .aux.xml file. Losses are not reported here,
    // because the finished output is checked.
    const GdalErrors quiet;
    if (nodata)
        for (int b = 1; b <= spec.shape.bands; ++b)
            set_nodata(*dataset.GetRasterBand(b), *nodata, type);
    if (scene) write_metadata(*scene, spec.same_bands, dataset);
    for (size_t k = 0; !spec.same_bands && k < spec.bands.size() && k < static_cast<size_t>(spec.shape.bands);
         ++k)
        describe_band(spec.bands[k], scene, *dataset.GetRasterBand(static_cast<int>(k) + 1));
    // All items are set at once, because GDAL's Zarr driver ignores single items, and does not report this
    // before 3.7.
    CPLStringList items(CSLDuplicate(dataset.GetMetadata()));
    for (const auto& [key, value] : spec.metadata)
        items.SetNameValue(key.c_str(), value.c_str());
    if (!options.history.empty()) {
        const std::string before = items.FetchNameValueDef("HSI_HISTORY", "");
        items.SetNameValue("HSI_HISTORY",
                           ((before.empty() ? before : before + "\n") + options.history).c_str());
    }
    if (!items.empty()) dataset.SetMetadata(items.List());
    GDALRasterBand* first = dataset.GetRasterBand(1);
    const bool envi = is(dataset.GetDriver(), "ENVI");
    if (!spec.categories.empty()) {
        CPLStringList names;
        for (const std::string& name : spec.categories)
            names.AddString((envi ? envi_name(name) : name).c_str());
        first->SetCategoryNames(names.List());
    }
    if (!spec.colours.empty()) {
        GDALColorTable table;
        for (size_t i = 0; i < spec.colours.size(); ++i) {
            const auto& c = spec.colours[i];
            const GDALColorEntry entry{c[0], c[1], c[2], c[3]};
            table.SetColorEntry(static_cast<int>(i), &entry);
        }
        first->SetColorTable(&table);
    }
    if (!spec.categories.empty() && !spec.colours.empty())
        write_attribute_table(spec, *first, is(dataset.GetDriver(), "HFA"));
}

SceneMetadata metadata_of(const OutputSpec& spec, const SceneMetadata& like) {
    if (spec.bands.size() != static_cast<size_t>(spec.shape.bands))
        throw Error("internal: spectral bands without a description");
    std::vector<BandMetadata> bands;
    for (const BandSpec& from : spec.bands) {
        BandMetadata band = band_of(from);
        if (from.like_band >= 0) {
            band = like.bands[static_cast<size_t>(from.like_band)];
            band.scale = from.scale;
            band.offset = from.offset;
            band.unit = from.unit;
            if (!from.description.empty()) band.description = from.description;
            for (const auto& [key, value] : from.metadata)
                set_item(band.domains[""], key.c_str(), value);
        } else if (!like.bands.empty()) {
            band.nodata = like.bands.front().nodata;
        }
        bands.push_back(std::move(band));
    }
    const auto any = [&](auto says) { return std::any_of(spec.bands.begin(), spec.bands.end(), says); };
    SceneMetadata made = with_bands(like, std::move(bands));
    // The scales and units of the ENVI header are removed if they no longer apply to the bands.
    if (!any([](const BandSpec& band) { return band.scale || band.offset; }))
        for (const char* const field :
             {"reflectance scale factor", "data reflectance gain values", "data reflectance offset values"})
            made.envi.erase(field);
    if (!any([](const BandSpec& band) { return !band.unit.empty(); })) made.envi.erase("data units");
    return made;
}

bool is_geographic(const std::string& srs) { return parse_srs(srs)->IsGeographic() != 0; }

std::optional<SceneMetadata> metadata_of(const OutputSpec& spec) {
    if (spec.srs.empty() && !spec.geotransform && spec.envi.empty()) return std::nullopt;
    SceneMetadata scene;
    scene.file_bands = spec.shape.bands;
    scene.window = Rect{0, 0, spec.shape.samples, spec.shape.lines};
    if (!spec.srs.empty()) scene.srs = parse_srs(spec.srs);
    scene.geotransform = spec.geotransform;
    for (const auto& [key, value] : spec.envi)
        scene.envi.set(key, value);
    for (int b = 0; b < spec.shape.bands; ++b) {
        BandMetadata band = static_cast<size_t>(b) < spec.bands.size()
                                ? band_of(spec.bands[static_cast<size_t>(b)])
                                : band_of({});
        band.file_band = b + 1;
        scene.bands.push_back(std::move(band));
    }
    return scene;
}

} // namespace hsi::raster
