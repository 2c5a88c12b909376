// SPDX-License-Identifier: MIT
// gdal_hsi_pca: principal components, scene to scene. Two passes: mean and covariance of the valid pixels,
// then the projection; one pass with a saved model, forward or back.
#include "cli/tool.h"
#include "core/byte_size.h"
#include "pca_stage.h"

#include <algorithm>
#include <numeric>

namespace {

using namespace hsi;

struct Settings {
    int components = 7;
    bool components_given = false;
    bool scale = false, whiten = false, inverse = false;
    std::string model_file, apply_file;
};

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

raster::OutputSpec band_spec(const stream::CubeShape& scene, const pca::Model& model) {
    raster::OutputSpec spec;
    spec.shape = {scene.samples, scene.lines, model.band_count()};
    spec.holes = true;
    for (size_t b = 0; b < model.mean.size(); ++b) {
        raster::BandSpec band{"Band " + std::to_string(model.bands[b]), {}};
        if (!model.wavelengths_nm.empty() && std::isfinite(model.wavelengths_nm[b])) {
            char text[32];
            std::snprintf(text, sizeof text, "%.9g", model.wavelengths_nm[b]);
            band.metadata["wavelength"] = text;
            band.metadata["wavelength_units"] = "Nanometers";
        }
        spec.bands.push_back(band);
    }
    return spec;
}

/// dst as a VRT: each band is a dot product of the source's bands that is computed when it is read.
void write_virtual(cli::Run& run, const raster::RasterSource& like, const pca::Transform& transform,
                   const raster::OutputSpec& spec) {
    const auto list = [](const double* values, int count) {
        std::string text;
        char one[32];
        for (int i = 0; i < count; ++i) {
            std::snprintf(one, sizeof one, "%.17g", values[i]);
            text += (i ? " " : "") + std::string(one);
        }
        return text;
    };
    std::vector<raster::VirtualBand> bands;
    for (int k = 0; k < transform.outputs; ++k) {
        raster::VirtualBand band;
        band.function = "hsi_project";
        band.arguments = {
            {"weights",
             list(transform.matrix.data() + static_cast<ptrdiff_t>(k) * transform.inputs, transform.inputs)},
            {"offset", list(transform.offset.data() + k, 1)}};
        if (!transform.zero_is_invalid) band.arguments.emplace_back("zero", "valid");
        bands.push_back(band);
    }
    if (run.options().dry_run)
        run.print("A VRT: nothing is computed before it is read");
    else
        raster::RasterSink::write_virtual(run.options().destination, spec, like, bands);
}

/// What can be refused before any work.
void check_output(const cli::Run& run, const raster::OutputSpec& spec, const raster::RasterSource& like) {
    if (raster::RasterSink::is_virtual(run.options().destination))
        raster::RasterSink::check_virtual(run.options().destination, spec, like);
    else
        raster::RasterSink::check(run.options().destination, spec);
}

/// One pass: the transform, tile by tile, into dst.
void run_transform(cli::Run& run, const tools::PcaBackend& backend, const stream::CubeSource& cube,
                   const raster::RasterSource& like, pca::Transform transform, const raster::OutputSpec& spec,
                   const char* name, double share, uint64_t memory_taken) {
    if (raster::RasterSink::is_virtual(run.options().destination))
        return write_virtual(run, like, transform, spec);
    const auto operation = backend.transform(std::move(transform));
    auto pass = run.pass(name, share);
    pass.memory -= std::min(pass.memory, memory_taken);
    pass.device_memory = backend.device_memory(run.options());
    if (run.options().dry_run) {
        tools::print_plan(run, name, cube, *operation, stream::plan_pass(cube, *operation, pass));
        return;
    }
    const auto sink = raster::RasterSink::create(run.options().destination, spec, &like);
    run.add_pass(stream::run_pass(cube, *operation, {sink.get()}, pass));
    sink->commit();
}

/// The same scene with only the bands whose 0-based indices are listed (in rising order).
std::shared_ptr<raster::RasterSource> only_bands(const std::shared_ptr<raster::RasterSource>& source,
                                                 const std::vector<int>& wanted) {
    std::vector<int> others;
    for (int b = 0; b < source->shape().bands; ++b)
        if (std::find(wanted.begin(), wanted.end(), b) == wanted.end()) others.push_back(b);
    return others.empty() ? source : source->without_bands(others);
}

void run_apply(cli::Run& run, const Settings& settings, const tools::PcaBackend& backend,
               std::shared_ptr<raster::RasterSource> source, const pca::Model& model) {
    const int nc = settings.components_given ? settings.components : model.components;
    if (nc < 1 || nc > model.components)
        throw UsageError("-nc: " + std::to_string(nc) + " components are not in the model " +
                             settings.apply_file,
                         "Use a number from 1 to " + std::to_string(model.components) + ".");
    auto matched = pca::match_bands(model, source->wavelengths_nm(), source->shape().bands);
    // Bands that the model does not know must not make pixels invalid.
    source = only_bands(source, matched);
    std::vector<int> sorted = matched;
    std::sort(sorted.begin(), sorted.end());
    for (int& b : matched)
        b = static_cast<int>(std::lower_bound(sorted.begin(), sorted.end(), b) - sorted.begin());
    const auto spec = component_spec(source->shape(), nc, true, &model);
    check_output(run, spec, *source);
    run_transform(run, backend, *source, *source, pca::projection(model, nc, matched, source->shape().bands),
                  spec, "projection", 1.0, 0);
}

void run_inverse(cli::Run& run, const Settings& settings, const tools::PcaBackend& backend,
                 std::shared_ptr<raster::RasterSource> source, const pca::Model& model) {
    const int nc = settings.components_given ? settings.components : source->shape().bands;
    const int most = std::min(model.components, source->shape().bands);
    if (nc < 1 || nc > most)
        throw UsageError("-nc: " + std::to_string(nc) + " components cannot be turned back: " +
                             source->path() + " has " + std::to_string(source->shape().bands) +
                             " bands, the model " + std::to_string(model.components) + " components",
                         "Use a number from 1 to " + std::to_string(most) + ".");
    std::vector<int> first(static_cast<size_t>(nc));
    std::iota(first.begin(), first.end(), 0);
    source = only_bands(source, first);
    const auto spec = band_spec(source->shape(), model);
    check_output(run, spec, *source);
    run_transform(run, backend, *source, *source, pca::reconstruction(model, nc), spec, "reconstruction", 1.0,
                  0);
}

void run_fit(cli::Run& run, const Settings& settings, const tools::PcaBackend& backend,
             const std::shared_ptr<raster::RasterSource>& source) {
    tools::check_spectrum(*source, "PCA");
    int nc = tools::component_count(settings.components, settings.components_given, source->shape().bands);
    check_output(run, component_spec(source->shape(), nc, true, nullptr), *source);
    const auto model_output =
        run.text_output("-model", settings.model_file, run.options().destination.overwrite);
    raster::check_text_output(model_output);
    if (run.options().dry_run) {
        const auto scan = backend.covariance(source->shape().bands);
        auto pass = run.pass("covariance", 0.5);
        pass.device_memory = backend.device_memory(run.options());
        tools::print_plan(run, "covariance", *source, *scan, stream::plan_pass(*source, *scan, pass));
        pca::Transform t;
        t.inputs = source->shape().bands;
        t.outputs = nc;
        t.matrix.resize(static_cast<size_t>(t.inputs) * static_cast<size_t>(nc));
        t.offset.resize(static_cast<size_t>(nc));
        run_transform(run, backend, *source, *source, std::move(t), {}, "projection", 0.5, 0);
        return;
    }
    const auto scene = tools::scan_scene(run, source, backend, 0.5);
    tools::check_spectrum(*scene.raster, "PCA");
    const int bands = scene.raster->shape().bands;
    nc = tools::component_count(settings.components, settings.components_given, bands);
    const auto model = tools::fit_scene(run, scene, {nc, settings.scale, settings.whiten});
    std::vector<int> all(static_cast<size_t>(bands));
    std::iota(all.begin(), all.end(), 0);
    run_transform(run, backend, *scene.cube, *scene.raster, pca::projection(model, nc, all, bands),
                  component_spec(scene.raster->shape(), nc, scene.statistics.invalid_pixels > 0, &model),
                  "projection", 0.5, scene.resident_bytes);
    raster::write_text_output(model_output, pca::to_json(model));
    tools::print_components(run, model);
}

void run_pca(cli::Run& run, const Settings& settings) {
    pca::Model model;
    if (!settings.apply_file.empty()) model = pca::load_model(settings.apply_file);
    const auto source = run.open_source();
    auto devices = choose_devices(run.options().device, "pca", source->shape().float_bytes());
    const tools::PcaBackend backend(run, devices);
    if (!backend.on_cuda()) devices.clear();
    cli::tell_devices(run, devices, pca::simd_target());
    if (settings.apply_file.empty())
        run_fit(run, settings, backend, source);
    else if (settings.inverse)
        run_inverse(run, settings, backend, source, model);
    else
        run_apply(run, settings, backend, source, model);
}

} // namespace

int main(int argc, char** argv) {
    cli::Tool tool(
        "gdal_hsi_pca",
        "Principal components (PCA): projects every spectrum on the directions of greatest variance of the "
        "scene's valid pixels, and can save these directions, apply them to other scenes and turn components "
        "back into spectra.",
        "Examples:\n"
        "  gdal_hsi_pca scene.img pcs.tif\n"
        "  gdal_hsi_pca -nc 3 -of VRT scene.img pcs.vrt\n"
        "  gdal_hsi_pca -nc 10 -model pca.json june.img june_pcs.tif\n"
        "  gdal_hsi_pca -apply pca.json july.img july_pcs.tif\n"
        "  gdal_hsi_pca -apply pca.json -inverse june_pcs.tif june_smooth.img -of ENVI\n");
    tool.add_source();
    tool.add_destination();
    tool.add_compute();
    Settings settings;
    auto* const nc =
        tool.app()
            .add_option("--nc", settings.components, "Number of components, 1 to the number of bands")
            ->capture_default_str();
    tool.app().add_flag("--scale", settings.scale, "Divide every band by its standard deviation first");
    tool.app().add_flag("--whiten", settings.whiten, "Divide every component by its standard deviation");
    tool.app().add_option("--model", settings.model_file, "Save the model (JSON) to this file");
    tool.app().add_option(
        "--apply", settings.apply_file,
        "Use this saved model instead of the scene's own statistics; bands are matched by wavelength");
    tool.app().add_flag("--inverse", settings.inverse,
                        "With -apply: src holds components, dst gets the model's bands");
    tool.add_input("-apply", settings.apply_file);
    tool.check([&](const cli::CommonOptions&) {
        settings.components_given = nc->count() > 0;
        if (settings.components < 1)
            throw UsageError("-nc: " + std::to_string(settings.components) + " is no number of components",
                             "Use a number from 1 to the number of bands.");
        if (settings.inverse && settings.apply_file.empty())
            throw UsageError("-inverse needs the model that the components were made with",
                             "Name it with -apply FILE.");
        if (!settings.apply_file.empty() && (settings.scale || settings.whiten))
            throw UsageError(std::string(settings.scale ? "-scale" : "-whiten") + " does not go with -apply",
                             "The model says whether bands are scaled and components whitened.");
        if (!settings.apply_file.empty() && !settings.model_file.empty())
            throw UsageError("-model does not go with -apply: no new model is made",
                             "Leave one of them out.");
    });
    return tool.run(argc, argv, [&](cli::Run& run) { run_pca(run, settings); });
}
