// SPDX-License-Identifier: MIT
#include "shared/components.h"

#include "core/host_memory.h"
#include "links/links.h"
#include "shared/number_lists.h"
#include "stream/empty_source.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/words.h"

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace hsi::tools {

tool::Work projection_work(const stream::CubeShape& scene, int components, bool scan,
                           const Cost& statistics) {
    const auto bytes = static_cast<double>(scene.float_bytes()), pixels = static_cast<double>(scene.pixels());
    const double products = scan ? pixels * scene.bands * scene.bands : 0,
                 projected = pixels * scene.bands * components;
    tool::Work work;
    work.cpu_reads = scan ? 2 * bytes : bytes;
    work.device_reads = bytes;
    work.writes = pixels * components * 4;
    work.add(statistics, products);
    work.add(pca::cost::projection, projected);
    return work;
}

int component_count(int asked, bool given, int bands) {
    if (!given) return std::min(asked, bands);
    if (asked < 1 || asked > bands)
        throw UsageError("-nc: " + counted(asked, "component") + " cannot be made from " +
                             counted(bands, "band"),
                         "Use a number from 1 to " + std::to_string(bands) + ".");
    return asked;
}

stream::PassOptions without_held_memory(PcaComputing& computing, stream::PassOptions pass) {
    if (pass.device_memory > 0)
        pass.device_memory -= std::min(pass.device_memory / 2, computing->held_bytes());
    return pass;
}

std::unique_ptr<stream::StatisticsScan> make_scan(const tool::Run& run, PcaComputing& computing,
                                                  const stream::CubeShape& scene, stream::Statistics what,
                                                  bool on_device) {
    // The pixels are not kept if -mask selects pixels for the statistics, because the projection uses all
    // pixels. They need not be kept if the scene is already in device memory.
    const uint64_t to_keep = run.masks_statistics() || on_device ? 0 : computing.device_memory();
    return computing->make_scan(scene, what, to_keep);
}

stream::RangeWatch::FindExtremes find_extremes_with(const tool::Scene& scene, PcaComputing& computing) {
    if (scene.raster()->device() < 0 || !computing.on_devices()) return {};
    return [&computing](const CubeView<float>& cube, int64_t first, int64_t step, float* low, float* high) {
        return computing->find_extremes(cube, first, step, low, high);
    };
}

stream::SceneStatistics scan_scene(tool::Scene& scene, PcaComputing& computing, stream::Statistics what,
                                   const char* name, double share) {
    scene.watch_values(find_extremes_with(scene, computing));
    const auto found = scene.scan(
        [&] { return make_scan(scene.run(), computing, scene.shape(), what, scene.raster()->device() >= 0); },
        [&](bool again) {
            return without_held_memory(computing, computing.pass(name, again ? 0.0 : share));
        });
    if (const uint64_t held = computing->held_bytes(); held > 0)
        tool::add_to_plan(scene.run(), name, "held_on_device_bytes", held,
                          "The scene stays on the device for the projection: " + format_byte_size(held));
    return found;
}

pca::Model fit_scene(const tool::Scene& scene, const stream::SceneStatistics& statistics,
                     const pca::FitOptions& options, const GivenStatistics* given) {
    tool::Run& run = scene.run();
    auto with_threads = options;
    with_threads.threads = run.options().threads;
    auto model = pca::fit(statistics, with_threads);
    model.origin = tool::origin_of(run);
    model.source = scene.raster()->path();
    tool::describe_bands(*scene.raster(), model);
    const auto& low = given ? given->minimum : scene.minimum();
    const auto& high = given ? given->maximum : scene.maximum();
    model.minimum.assign(low.begin(), low.end());
    model.maximum.assign(high.begin(), high.end());
    for (int k = 0; k < model.components; ++k) {
        run.report()["explained_variance"].push_back(model.eigenvalues[static_cast<size_t>(k)]);
        run.report()["explained_variance_ratio"].push_back(model.explained(k));
    }
    if (model.rank() < model.components)
        run.warn("the scene has only " + counted(model.rank(), "component") +
                 " with variance; further components are rounding errors" +
                 (model.whiten ? ", whitened to zero" : ""));
    return model;
}

mnf::Model fit_noise_scene(const tool::Scene& scene, const stream::SceneStatistics& moments,
                           const std::vector<float>& minimum, const std::vector<float>& maximum,
                           std::vector<int>& kept) {
    tool::Run& run = scene.run();
    auto found = mnf::fit(moments, run.options().threads);
    kept = found.kept;
    mnf::Model& model = found.model;
    const int bands = scene.shape().bands;
    if (model.components < bands) {
        std::vector<int> numbers;
        for (int b = 0; b < bands; ++b)
            if (!std::binary_search(kept.begin(), kept.end(), b))
                numbers.push_back(scene.raster()->bands()[static_cast<size_t>(b)]);
        run.note("No noise in band " + tool::list_text(numbers) + ": left out of the result and the model");
        run.report()["bands_without_noise"] = numbers;
    }
    const std::string added = "a millionth of every band's noise variance was added";
    if (model.regularised && model.pairs <= model.components)
        run.warn("the noise covariance is singular, since it comes from " + counted(model.pairs, "pair") +
                 " of neighbours for " + counted(model.components, "band") + ": " + added +
                 ", which determines the eigenvalues and snr. Use more neighbouring pixels or fewer bands "
                 "(-b), or gdal_hsi_pca, which needs no noise");
    else if (model.regularised)
        run.warn("the noise covariance is singular, since bands depend on others: " + added +
                 ", which determines the greatest snr");
    const double by_chance = mnf::chance_snr(model.pairs, model.components);
    if (std::isfinite(by_chance)) run.report()["snr_by_chance"] = by_chance;
    // By chance, the estimated signal can then be as strong as the noise.
    if (by_chance >= 1 && model.pairs > model.components) {
        char snr[32];
        std::snprintf(snr, sizeof snr, "%.3g", by_chance);
        run.warn("the noise comes from " + counted(model.pairs, "pair") + " of neighbours for " +
                 counted(model.components, "band") +
                 ", fewer than 7.5 per band: pure noise would give MNF1 a snr of up to about " + snr +
                 " by chance, so only components with a much higher snr have a meaning. Use more "
                 "neighbouring pixels, or fewer bands (-b)");
    }
    run.report()["regularised"] = model.regularised;
    run.report()["pairs"] = model.pairs;
    model.origin = tool::origin_of(run);
    model.source = scene.raster()->path();
    tool::describe_bands(*tool::only_bands(scene.raster(), kept), model);
    if (minimum.empty()) return model;
    for (const int b : kept) {
        model.minimum.push_back(static_cast<double>(minimum[static_cast<size_t>(b)]));
        model.maximum.push_back(static_cast<double>(maximum[static_cast<size_t>(b)]));
    }
    return model;
}

void print_components(tool::Run& run, const pca::Model& model) {
    double sum = 0;
    for (int k = 0; k < model.components; ++k) {
        sum += model.explained(k);
        char text[128];
        std::snprintf(text, sizeof text, "PC%d: variance %.8g, %.4f %% of the total, %.4f %% cumulative",
                      k + 1, model.eigenvalues[static_cast<size_t>(k)], 100 * model.explained(k), 100 * sum);
        run.note(text);
    }
}

// Output in dst
// ----------------------------------------------------------------------------------------------------------

void add_component_count_option(tool::Builder& args, ProjectionSettings& s) {
    args.option("nc", s.components,
                "Number of components, 1 to the number of bands; with -apply, all components of the model by "
                "default");
}

void add_model_options(tool::Builder& args, ProjectionSettings& s) {
    args.output("model", s.model_file, tool::Content::model, "Also save the model to FILE (JSON)");
    args.input("apply", s.apply_file, tool::Content::model,
               "Use the saved model FILE instead of the scene's statistics; bands are matched by wavelength");
    args.flag("inverse", s.inverse, "With -apply: convert -nc components in src back to the model's bands");
    tool::add_any_wavelengths(args, s.any_wavelengths, "With -apply: ");
    tool::add_any_scale(args, s.any_scale, "With -apply: ");
    args.check([&s](const tool::Call& call) {
        tool::check_mask_use(call.options().mask, s.apply_file.empty(), "-apply");
        s.components_given = call.given("nc");
        if (s.components < 1)
            throw UsageError("-nc: " + std::to_string(s.components) + " is not a number of components",
                             "Use a number from 1 to the number of bands.");
        if (s.inverse && s.apply_file.empty())
            throw UsageError("-inverse requires the model of the components",
                             "Give the model with -apply FILE.");
        for (const auto& [name, on] :
             {std::pair("-any-wavelengths", s.any_wavelengths), std::pair("-any-scale", s.any_scale)})
            if (on && (s.apply_file.empty() || s.inverse))
                throw UsageError(std::string(name) + " requires -apply, and cannot be used with -inverse");
        if (!s.apply_file.empty() && !s.model_file.empty())
            throw UsageError(tool::cannot_be_used_with("-model", "-apply: no new model is made"),
                             "Leave one of them out.");
    });
}

void check_output(const tool::Run& run, const raster::OutputSpec& spec, const raster::RasterSource& like) {
    if (raster::is_virtual(run.options().destination))
        raster::check_virtual(run.options().destination, spec, like);
    else
        raster::check_output(run.options().destination, spec, like);
}

namespace {

/// Writes dst as a VRT or an .hsi. Each band is a dot product of the source's bands, which is computed when
/// the band is read.
void write_virtual_transform(tool::Run& run, const raster::RasterSource& like,
                             const pca::Transform& transform, const raster::OutputSpec& spec) {
    tool::write_virtual(
        run, run.options().destination, spec, like, [&] { return links::transform(transform); },
        [&] {
            std::vector<raster::VirtualBand> bands;
            for (int k = 0; k < transform.outputs; ++k) {
                raster::VirtualBand band;
                band.function = "hsi_project";
                band.arguments = {{"weights", number_list(transform.matrix.data() +
                                                              static_cast<ptrdiff_t>(k) * transform.inputs,
                                                          static_cast<size_t>(transform.inputs))},
                                  {"offset", number_list(transform.offset.data() + k, 1)}};
                if (!transform.zero_is_invalid) band.arguments.emplace_back("zero", "valid");
                bands.push_back(band);
            }
            return bands;
        });
}

/// Counts the pixels with a value, and passes all pixels on to another sink.
class ValidCount final : public stream::SharedSink {
  public:
    explicit ValidCount(stream::SharedSink& to) : m_to(to) {}
    stream::CubeShape shape() const override { return m_to.shape(); }
    bool concurrent() const override { return m_to.concurrent(); }
    stream::BlockLayout layout() const override { return m_to.layout(); }
    uint64_t stored_bytes_per_pixel() const override { return m_to.stored_bytes_per_pixel(); }
    void write(const Rect& core, const CubeView<float>& src) override {
        int64_t valid = 0;
        for (int64_t y = 0; y < src.lines; ++y) {
            const float* const row = src.row(0, y);
            valid += std::count_if(row, row + src.samples, [](float v) { return !std::isnan(v); });
        }
        m_valid += valid;
        m_to.write(core, src);
    }
    int64_t valid() const { return m_valid; } ///< number of valid pixels of this rank

  private:
    stream::SharedSink& m_to;
    std::atomic<int64_t> m_valid{0};
};

} // namespace

void run_transform(tool::Run& run, PcaComputing& computing, const stream::CubeSource& cube,
                   const raster::RasterSource& like, pca::Transform transform, const raster::OutputSpec& spec,
                   const char* name, double share) {
    if (raster::is_virtual(run.options().destination))
        return write_virtual_transform(run, like, transform, spec);
    const auto operation = computing->make_transform(std::move(transform));
    const auto pass = computing.pass(name, share);
    tool::end_of_plan(run, [&] { tool::print_plan(run, cube, *operation, pass); });
    const auto sink = raster::create_sink(run.options().destination, spec, &like);
    ValidCount counted(*sink);
    run.add_pass(stream::run_pass(cube, *operation, {&counted}, pass));
    const int64_t valid = run.ranks().sum("valid pixels", counted.valid());
    if (valid == 0) throw tool::no_valid_pixel(like);
    tool::report_invalid(run, valid, cube.shape().pixels() - valid);
    sink->commit();
}

namespace {

/// Transforms a scene that a scan of the backend has read. Takes the scene from device memory if it is there.
class SceneTransform {
  public:
    SceneTransform(const tool::Scene& scene, PcaComputing& computing, pca::Transform transform)
        : m_scene(scene), m_computing(computing),
          m_operation(computing->make_transform(std::move(transform))), m_on_device(scene.shape()) {}
    ~SceneTransform() {
        if (m_computing->holds_scene()) m_computing->release();
    }
    const stream::CubeSource& source() const {
        if (m_computing->holds_scene()) return m_on_device;
        return m_scene.cube();
    }
    stream::Operation& operation() { return *m_operation; }
    stream::PassOptions pass(double share) {
        return without_held_memory(m_computing, m_computing.pass("projection", share));
    }

  private:
    const tool::Scene& m_scene;
    PcaComputing& m_computing;
    std::unique_ptr<stream::Operation> m_operation;
    const stream::EmptySource m_on_device;
};

} // namespace

void project_scene(const tool::Scene& scene, PcaComputing& computing, pca::Transform transform,
                   const raster::OutputSpec& spec) {
    tool::Run& run = scene.run();
    if (raster::is_virtual(run.options().destination))
        return write_virtual_transform(run, *scene.raster(), transform, spec);
    SceneTransform projection(scene, computing, std::move(transform));
    const auto pass = projection.pass(0.5);
    tool::end_of_plan(run, [&] { tool::print_plan(run, projection.source(), projection.operation(), pass); });
    const auto sink = raster::create_sink(run.options().destination, spec, scene.raster().get());
    run.add_pass(stream::run_pass(projection.source(), projection.operation(), {sink.get()}, pass));
    sink->commit();
}

namespace {

/// Returns the name of a component: "MNF3" for "MNF3 (filtered)"; empty if the band is not a component.
std::string component_name(const std::string& band) {
    for (const char* prefix : {"PC", "MNF"}) {
        const size_t begin = std::char_traits<char>::length(prefix);
        if (band.compare(0, begin, prefix) != 0) continue;
        const size_t end = std::min(band.find_first_not_of("0123456789", begin), band.size());
        if (end > begin) return band.substr(0, end);
    }
    return {};
}

} // namespace

void check_component_bands(const raster::RasterSource& source, const std::string& name) {
    const auto names = source.facts().bands.names;
    const auto wavelengths = source.facts().bands.wavelengths_nm;
    for (size_t k = 0; k < names.size(); ++k) {
        const std::string wanted = name + std::to_string(k + 1), found = component_name(names[k]),
                          band = source.path() + ": band " + std::to_string(source.bands()[k]) + " ";
        if (!wavelengths.empty() && std::isfinite(wavelengths[k]))
            throw Error(band + "has a wavelength, so it is a band of a scene, but -inverse needs component " +
                            wanted,
                        "Use components made with the model, or leave -inverse out to convert a scene to "
                        "components.");
        if (!found.empty() && found != wanted)
            throw Error(band + "is called " + names[k] + ", but -inverse needs component " + wanted,
                        "Use components made with the model, beginning with the first (-b, -nc); "
                        "gdal_hsi_pca makes PC1, PC2 .., gdal_hsi_mnf MNF1, MNF2 ...");
    }
}

raster::OutputSpec model_band_spec(const stream::CubeShape& scene, const model::ModelBands& model) {
    raster::OutputSpec spec;
    spec.shape = {scene.samples, scene.lines, static_cast<int>(model.mean.size())};
    spec.holes = true;
    // True if bands must be identified by number, because wavelengths and order are not sufficient.
    bool numbered = false;
    for (size_t b = 0; b < model.mean.size(); ++b)
        numbered |= model.bands[b] != static_cast<int>(b) + 1;
    numbered &= !model::all_known(model.wavelengths_nm);
    for (size_t b = 0; b < model.mean.size(); ++b) {
        raster::BandSpec band{"Band " + std::to_string(model.bands[b]), {}};
        if (!model.wavelengths_nm.empty() && std::isfinite(model.wavelengths_nm[b])) {
            char text[32];
            std::snprintf(text, sizeof text, "%.9g", model.wavelengths_nm[b]);
            band.metadata["wavelength"] = text;
            band.metadata["wavelength_units"] = "Nanometers";
        }
        if (numbered) band.metadata["HSI_SOURCE_BAND"] = std::to_string(model.bands[b]);
        if (!model.value_scale.empty()) {
            band.scale = model.value_scale[b];
            band.offset = model.value_offset[b];
        }
        band.unit = model.value_unit;
        spec.bands.push_back(band);
    }
    return spec;
}

// Output in planes
// ----------------------------------------------------------------------------------------------------------

ComponentPlanes project_into_planes(tool::Scene& scene, PcaComputing& computing,
                                    const ComponentRequest& request) {
    const GivenStatistics* const given = request.statistics;
    const auto statistics = given ? given->moments
                                  : scan_scene(scene, computing, stream::Statistics::covariance, "covariance",
                                               0.5 * request.share);
    const auto like = scene.raster();
    const int bands = like->shape().bands;
    const int components = component_count(request.components, request.given, bands);
    ComponentPlanes made;
    made.model = fit_scene(scene, statistics, {components, false, false}, given);
    const stream::CubeShape shape{like->shape().samples, like->shape().lines, components};
    const bool held = shape.float_bytes() <= request.most;
    made.planes = held ? std::make_unique<stream::PlaneStore>(shape)
                       : std::make_unique<stream::PlaneStore>(shape, request.folder);
    scene.run().report()["component_planes"] = held ? "memory" : "temporary file";
    std::vector<int> all(static_cast<size_t>(bands)), every(static_cast<size_t>(components));
    std::iota(all.begin(), all.end(), 0);
    std::iota(every.begin(), every.end(), 0);
    const auto to = made.planes->sink(every);
    {
        SceneTransform projection(scene, computing, pca::projection(made.model, components, all, bands));
        auto pass = projection.pass(0.5 * request.share);
        pass.memory -= std::min(pass.memory, made.held_bytes());
        tool::run_pass(scene.run(), projection.source(), projection.operation(), {to.get()}, pass);
    }
    scene.release(); // frees the copy of the scene in memory
    return made;
}

std::vector<std::string> component_names(int components) {
    std::vector<std::string> names;
    for (int k = 1; k <= components; ++k)
        names.push_back("PC" + std::to_string(k));
    return names;
}

} // namespace hsi::tools
