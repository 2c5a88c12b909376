// SPDX-License-Identifier: MIT
#include "pca_outputs.h"

#include "number_lists.h"
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace hsi::tools {

raster::OutputSpec component_spec(const stream::CubeShape& scene, int components, bool holes,
                                  const pca::Model* model) {
    raster::OutputSpec spec;
    spec.shape = {scene.samples, scene.lines, components};
    spec.holes = holes;
    for (int k = 0; k < components; ++k) {
        raster::BandSpec band{"PC" + std::to_string(k + 1), {}};
        if (model) {
            char text[32];
            std::snprintf(text, sizeof text, "%.17g", model->eigenvalues[static_cast<size_t>(k)]);
            band.metadata["explained_variance"] = text;
            std::snprintf(text, sizeof text, "%.9g", model->explained(k));
            band.metadata["explained_variance_ratio"] = text;
        }
        spec.bands.push_back(band);
    }
    if (model) {
        spec.metadata["HSI_PCA_SCALE"] = model->scale.empty() ? "NO" : "YES";
        spec.metadata["HSI_PCA_WHITEN"] = model->whiten ? "YES" : "NO";
    }
    return spec;
}

raster::OutputSpec band_spec(const stream::CubeShape& scene, const model::ModelBands& model) {
    raster::OutputSpec spec;
    spec.shape = {scene.samples, scene.lines, static_cast<int>(model.mean.size())};
    spec.holes = true;
    for (size_t b = 0; b < model.mean.size(); ++b) {
        raster::BandSpec band{"Band " + std::to_string(model.bands[b]), {}};
        if (!model.wavelengths_nm.empty() && std::isfinite(model.wavelengths_nm[b])) {
            char text[32];
            std::snprintf(text, sizeof text, "%.9g", model.wavelengths_nm[b]);
            band.metadata["wavelength"] = text;
            band.metadata["wavelength_units"] = "Nanometers";
        }
        if (!model.value_scale.empty()) {
            band.scale = model.value_scale[b];
            band.offset = model.value_offset[b];
        }
        band.unit = model.value_unit;
        spec.bands.push_back(band);
    }
    return spec;
}

void write_virtual_transform(tool::Run& run, const raster::RasterSource& like,
                             const pca::Transform& transform, const raster::OutputSpec& spec) {
    std::vector<raster::VirtualBand> bands;
    for (int k = 0; k < transform.outputs; ++k) {
        raster::VirtualBand band;
        band.function = "hsi_project";
        band.arguments = {
            {"weights", number_list(transform.matrix.data() + static_cast<ptrdiff_t>(k) * transform.inputs,
                                    static_cast<size_t>(transform.inputs))},
            {"offset", number_list(transform.offset.data() + k, 1)}};
        if (!transform.zero_is_invalid) band.arguments.emplace_back("zero", "valid");
        bands.push_back(band);
    }
    if (run.options().dry_run)
        run.print("A VRT: nothing is computed before it is read");
    else
        raster::RasterSink::write_virtual(run.options().destination, spec, like, bands);
}

void check_output(const tool::Run& run, const raster::OutputSpec& spec, const raster::RasterSource& like) {
    if (raster::RasterSink::is_virtual(run.options().destination))
        raster::RasterSink::check_virtual(run.options().destination, spec, like);
    else
        raster::RasterSink::check(run.options().destination, spec);
}

} // namespace hsi::tools
