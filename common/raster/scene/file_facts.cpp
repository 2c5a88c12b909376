// SPDX-License-Identifier: MIT
// Collects the facts about an opened source (SceneFacts).
#include "core/counted.h"
#include "core/text.h"
#include "raster/gdal_type.h"
#include "raster/hdf5/hdf5_chunks.h"
#include "raster/metadata/spectral_metadata.h"
#include "raster/products/product.h"
#include "raster/scene/chunk_arrays.h"
#include "raster/scene/source_impl.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

namespace hsi::raster {
namespace {

class OgrReference final : public SpatialReference {
  public:
    explicit OgrReference(std::shared_ptr<const OGRSpatialReference> srs) : m(std::move(srs)) {}

    std::string wkt() const override {
        char* wkt = nullptr;
        const char* const options[] = {"FORMAT=WKT2_2019", nullptr};
        m->exportToWkt(&wkt, options);
        std::string out = wkt ? wkt : "";
        CPLFree(wkt);
        return out;
    }
    std::string name() const override {
        const char* const name = m->GetName();
        return name != nullptr ? utf8_text(name) : "";
    }
    int epsg() const override {
        const std::string code = code_of_srs(*m);
        constexpr const char* authority = "EPSG:";
        return starts_with(code, authority) ? std::atoi(code.c_str() + std::strlen(authority)) : 0;
    }

  private:
    const std::shared_ptr<const OGRSpatialReference> m;
};

/// Returns one value per band; empty if all values are NaN.
std::vector<double> numbers_of(const SourceState& s, double BandMetadata::*number) {
    std::vector<double> out;
    for (const BandMetadata& b : s.scene.bands)
        out.push_back(b.*number);
    return std::all_of(out.begin(), out.end(), [](double v) { return std::isnan(v); }) ? std::vector<double>()
                                                                                       : out;
}

std::vector<int> marked_bands(const SourceState& s) {
    std::set<int> marked(s.bad.begin(), s.bad.end());
    for (const BandMetadata& b : s.scene.bands)
        if (b.bad()) marked.insert(b.file_band);
    return {marked.begin(), marked.end()};
}

BandFacts band_facts(const SourceState& s) {
    BandFacts facts;
    facts.numbers = facts.known_as = s.bands;
    facts.in_file = s.scene.file_bands;
    facts.bad = s.bad;
    facts.marked = marked_bands(s);
    facts.known_told = std::all_of(s.scene.bands.begin(), s.scene.bands.end(),
                                   [](const BandMetadata& b) { return b.source_band > 0; });
    for (size_t k = 0; k < s.scene.bands.size(); ++k) {
        const BandMetadata& b = s.scene.bands[k];
        if (facts.known_told) facts.known_as[k] = b.source_band;
        facts.names.push_back(b.description.empty() ? "Band " + std::to_string(b.file_band) : b.description);
    }
    facts.wavelengths_nm = numbers_of(s, &BandMetadata::wavelength_nm);
    facts.fwhm_nm = numbers_of(s, &BandMetadata::fwhm_nm);
    facts.values = values_of(s);
    if (s.scales.applied) {
        facts.values.scale.clear();
        facts.values.offset.clear();
    }
    if (const auto& nodata = s.scene.bands.front().nodata) facts.nodata = nodata->as_double();
    return facts;
}

std::string compression_of(const SourceState& s) {
    if (!s.chunks() || s.chunks()->size() == 0) return s.blocks.codec;
    using Filter = ChunkCoding::Filter;
    for (const Filter filter : s.chunks()->array(0).coding.filters)
        if (filter == Filter::deflate || filter == Filter::lzf || filter == Filter::zstd)
            return filter == Filter::deflate ? "DEFLATE" : filter == Filter::lzf ? "LZF" : "ZSTD";
    return {};
}

std::vector<std::string> notes_of(const SourceState& s) {
    std::vector<std::string> notes = s.notes;
    for (const char* key :
         {"wavelength", "wavelengths", "fwhm", "bbl", "data gain values", "data offset values",
          "data reflectance gain values", "data reflectance offset values"}) {
        if (!is_wrong_band_list(s.scene, key)) continue;
        notes.push_back(s.name() + ": the list '" + key + "' has " +
                        counted(band_list_size(s.scene, key), "value") + " for " +
                        counted(s.scene.file_bands, "band") + " and is ignored");
    }
    return notes;
}

} // namespace

SceneFacts facts_of(const SourceState& s) {
    SceneFacts facts;
    facts.path = s.options.path;
    facts.driver = s.scene.driver;
    if (s.product) facts.product = s.product->name;
    facts.type = GDALGetDataTypeName(s.type);
    facts.exact_in_float = std::all_of(s.scene.bands.begin(), s.scene.bands.end(), [](const BandMetadata& b) {
        return exact_in_float(sample_type(b.type));
    });
    facts.access = s.raw()        ? Access::raw
                   : s.chunks()   ? Access::chunks
                   : s.computed() ? Access::computed
                                  : Access::gdal;
    facts.compression = compression_of(s);
    facts.remote = s.server_file() != nullptr;
    facts.bands = band_facts(s);
    facts.scaled = s.scales.applied;
    facts.masked = s.masking.counted != nullptr;
    if (s.scene.srs) facts.srs = std::make_shared<OgrReference>(s.scene.srs);
    if (double gt[6]; s.scene.window_geotransform(gt)) {
        facts.geotransform.emplace();
        std::copy(gt, gt + 6, facts.geotransform->begin());
    }
    facts.notes = notes_of(s);
    return facts;
}

} // namespace hsi::raster
