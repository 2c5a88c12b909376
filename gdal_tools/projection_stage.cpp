// SPDX-License-Identifier: MIT
#include "projection_stage.h"

#include "core/byte_size.h"
#include "parallel/ranks.h"
#include "stream/shared.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

namespace hsi::tools {
namespace {

/// Counts the pixels with a value on their way to a file.
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
    int64_t valid() const { return parallel::ranks().sum("valid pixels", m_valid); } ///< of all ranks

  private:
    stream::SharedSink& m_to;
    std::atomic<int64_t> m_valid{0};
};

/// "MNF3" of "MNF3 (filtered)": what a component of any of the tools is called; empty: it is none.
std::string component_name(const std::string& band) {
    for (const char* letters : {"PC", "MNF"}) {
        const size_t begin = std::char_traits<char>::length(letters);
        if (band.compare(0, begin, letters) != 0) continue;
        const size_t end = std::min(band.find_first_not_of("0123456789", begin), band.size());
        if (end > begin) return band.substr(0, end);
    }
    return {};
}

} // namespace

void add_component_count(tool::Call& call, ProjectionSettings& s) {
    call.option("nc", s.components,
                "Number of components, 1 to the number of bands; with -apply at most as many as the model "
                "has, and all of them "
                "by default");
}

void add_model_options(tool::Call& call, ProjectionSettings& s) {
    call.output("model", s.model_file, tool::Content::model, "Also save the model to FILE (JSON)");
    call.input(
        "apply", s.apply_file, tool::Content::model,
        "Use the saved model FILE instead of the scene's own statistics; bands are matched by wavelength");
    call.flag("inverse", s.inverse,
              "With -apply: src holds components, dst gets the model's bands, made from -nc of them");
    tool::add_any_wavelengths(call, s.any_wavelengths, "With -apply: ");
    tool::add_any_scale(call, s.any_scale, "With -apply: ");
    call.check([&s, &call](const tool::CommonOptions& options) {
        tool::check_mask_use(options.mask, s.apply_file.empty(), "-apply");
        s.components_given = call.given("nc");
        if (s.components < 1)
            throw UsageError("-nc: " + std::to_string(s.components) + " is no number of components",
                             "Use a number from 1 to the number of bands.");
        if (s.inverse && s.apply_file.empty())
            throw UsageError("-inverse needs the model that the components were made with",
                             "Name it with -apply FILE.");
        for (const auto& [name, on] :
             {std::pair("-any-wavelengths", s.any_wavelengths), std::pair("-any-scale", s.any_scale)})
            if (on && (s.apply_file.empty() || s.inverse))
                throw UsageError(std::string(name) +
                                 " has a meaning with -apply only, and none with -inverse");
        if (!s.apply_file.empty() && !s.model_file.empty())
            throw UsageError("-model does not go with -apply: no new model is made",
                             "Leave one of them out.");
    });
}

void check_components(const raster::RasterSource& source, const std::string& name) {
    const auto names = source.band_names();
    const auto wavelengths = source.wavelengths_nm();
    for (size_t k = 0; k < names.size(); ++k) {
        const std::string wanted = name + std::to_string(k + 1), found = component_name(names[k]),
                          band = source.path() + ": band " + std::to_string(source.bands()[k]) + " ";
        if (!wavelengths.empty() && std::isfinite(wavelengths[k]))
            throw Error(
                band + "has a wavelength: a band of a scene, while -inverse wants component " + wanted,
                "Give the components that were made with the model; a scene is turned into components "
                "by the same command without -inverse.");
        if (!found.empty() && found != wanted)
            throw Error(band + "is called " + names[k] + ", while -inverse wants component " + wanted,
                        "Give the components that were made with the model, from the first on (-b, -nc); "
                        "gdal_hsi_pca makes PC1, PC2 .., gdal_hsi_mnf MNF1, MNF2 ...");
    }
}

void run_transform(tool::Run& run, PcaComputing& computing, const stream::CubeSource& cube,
                   const raster::RasterSource& like, pca::Transform transform, const raster::OutputSpec& spec,
                   const char* name, double share) {
    if (raster::RasterSink::is_virtual(run.options().destination))
        return write_virtual_transform(run, like, transform, spec);
    const auto operation = computing->make_transform(std::move(transform));
    const auto pass = computing.pass(name, share);
    if (run.options().dry_run) return tool::print_plan(run, cube, *operation, pass);
    const auto sink = raster::RasterSink::create(run.options().destination, spec, &like);
    ValidCount counted(*sink);
    run.add_pass(stream::run_pass(cube, *operation, {&counted}, pass));
    const int64_t valid = counted.valid();
    if (valid == 0) throw tool::no_valid_pixel(like);
    tool::tell_invalid(run, valid, cube.shape().pixels() - valid);
    sink->commit();
}

void project_scene(const tool::Scene& scene, PcaComputing& computing, pca::Transform transform,
                   const raster::OutputSpec& spec) {
    tool::Run& run = scene.run();
    if (raster::RasterSink::is_virtual(run.options().destination))
        return write_virtual_transform(run, *scene.raster(), transform, spec);
    const auto sink = raster::RasterSink::create(run.options().destination, spec, scene.raster().get());
    run.add_pass(
        transform_scene(scene, computing, std::move(transform), *sink, computing.pass("projection", 0.5)));
    sink->commit();
}

void plan_scan(tool::Run& run, PcaComputing& computing, const raster::RasterSource& source,
               const stream::Operation& scan, const stream::PassOptions& pass) {
    tool::print_plan(run, source, scan, pass);
    const uint64_t held = computing->held_bytes();
    if (held == 0) return;
    run.print("The scene stays on the device for the projection: " + format_byte_size(held));
    run.report()["plan"][pass.name]["held_on_device_bytes"] = held;
}

void plan_projection(tool::Run& run, PcaComputing& computing, const raster::RasterSource& source,
                     int components) {
    pca::Transform t;
    t.inputs = source.shape().bands;
    t.outputs = components;
    t.matrix.resize(static_cast<size_t>(t.inputs) * static_cast<size_t>(t.outputs));
    t.offset.resize(static_cast<size_t>(t.outputs));
    run_transform(run, computing, source, source, std::move(t), {}, "projection", 0.5);
}

} // namespace hsi::tools
