// SPDX-License-Identifier: MIT
// gdal_hsi_profile: morphological, attribute and extinction profiles. Covariance and projection on
// components, or the bands themselves; then whole planes of components, a side of one of them a thread, whose
// bands go into dst as they are made, or where dst wants all bands of a tile at once, tile by tile in the
// end.
#include "component_planes.h"
#include "core/byte_size.h"
#include "core/counted.h"
#include "core/error.h"
#include "profile/profile.h"
#include "profile_bands.h"
#include "profile_settings.h"
#include "raster/source/pixel_size.h"
#include "stream/copy_operation.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/scene.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace profile_tool {

using Settings = tools::ProfileSettings;

constexpr double no_size = 20; ///< metres of a pixel of which nothing is known

/// A source of whole numbers: its levels are its values.
bool whole_numbers(const raster::RasterSource& source) {
    const auto type = source.type_name();
    return type == "Byte" || type.find("Int") != std::string::npos;
}

class Profiling {
  public:
    Profiling(tool::Run& run, const Settings& settings)
        : m_run(run), m_settings(settings), m_scene(run, settings.no_pca ? "" : "PCA"),
          m_computing(run, "pca",
                      settings.no_pca ? std::vector<CudaDevice>()
                                      : tool::choose_devices(run, "pca", pca_work(), 1),
                      pca::simd_target(), pca::make_cpu_backend, !settings.no_pca) {
        const auto& source = *m_scene.raster();
        const auto metres = raster::pixel_metres(source);
        if (!metres && tools::needs_pixel_size(settings))
            run.note("The size of a pixel is not known: thresholds of area are those of " +
                     tool::number_text(no_size) + " m");
        m_options = tools::profile_options(settings, metres.value_or(no_size));
        const int n = components();
        const auto& destination = run.options().destination;
        const auto written = tools::profile_raster(source.shape(), settings, m_options, names(n));
        raster::RasterSink::check(destination, written);
        m_plan = tools::plan_profile_planes(run, {source.shape().samples, source.shape().lines, n}, m_options,
                                            raster::RasterSink::will_take_bands(destination, written));
        tell_where();
    }

    void show_plan() {
        const auto& source = *m_scene.raster();
        if (!m_settings.no_pca)
            tool::print_plan(
                m_run, source,
                *m_computing->make_covariance(source.shape(), tools::memory_to_keep(m_run, m_computing)),
                tools::held_apart(m_computing, m_computing.pass("covariance", 0.2)));
        const int n = components();
        m_run.print("Profiles: " + counted(n, "component") + ", " + counted(m_options.bands(), "band") +
                    " each, " + std::to_string(m_plan.workers) + " at a time with " +
                    format_byte_size(m_plan.side_bytes) + "; components in " + place(m_plan.components_held) +
                    ", profile in " + (m_plan.written ? "dst as it is made" : place(m_plan.profile_held)));
        m_run.report()["plan"]["profile"] = {{"components", n},
                                             {"bands", n * m_options.bands()},
                                             {"workers", m_plan.workers},
                                             {"side_bytes", m_plan.side_bytes},
                                             {"components_in_memory", m_plan.components_held},
                                             {"written_by_bands", m_plan.written},
                                             {"profile_in_memory", m_plan.profile_held}};
    }

    void write() {
        std::optional<pca::Model> model;
        auto planes = m_settings.no_pca ? copy_bands() : project(model);
        const auto shape = planes->shape();
        const stream::CubeShape all{shape.samples, shape.lines, shape.bands * m_options.bands()};
        const auto sink = raster::RasterSink::create(
            m_run.options().destination,
            tools::profile_raster(all, m_settings, m_options, names(shape.bands)), m_scene.raster().get());
        tools::write_profile(m_run, std::move(planes), m_settings.no_pca && whole_numbers(*m_scene.raster()),
                             m_options, m_plan, *sink);
        sink->commit();
        if (model) tools::print_components(m_run, *model);
    }

  private:
    tool::Run& m_run;
    const Settings& m_settings;
    tool::Scene m_scene;
    tools::PcaComputing m_computing;
    profile::Options m_options;
    tools::ProfilePlan m_plan;

    tool::Work pca_work() const {
        const auto shape = m_scene.shape();
        return tools::pca_work(shape, components(), true);
    }
    int components() const {
        const int bands = m_scene.shape().bands;
        return m_settings.no_pca
                   ? bands
                   : tools::component_count(m_settings.components, m_settings.components_given, bands);
    }
    std::vector<std::string> names(int count) const {
        return m_settings.no_pca ? m_scene.raster()->band_names() : tools::component_names(count);
    }
    static const char* place(bool held) { return held ? "memory" : "a temporary file"; }
    std::string folder() const { return stream::folder_beside(m_run.options().destination.path); }

    /// What runs where: PCA may be a device's, trees and reconstructions are the CPU's.
    void tell_where() {
        const std::string trees = tool::describe_devices(m_run, {}, nullptr);
        if (m_settings.no_pca)
            m_run.report()["device"] = trees;
        else if (m_computing.on_devices())
            m_run.note("Profiles: " + trees);
        m_run.report()["profile_device"] = trees;
        m_run.report()["profile"] = {{"kind", profile::name_of(m_settings.kind)},
                                     {"connectivity", m_settings.eight ? 8 : 4}};
        for (const auto& set : m_options.sets)
            m_run.report()["profile"]["thresholds"][profile::name_of(set.attribute)] = set.thresholds;
    }

    std::unique_ptr<stream::PlaneStore> project(std::optional<pca::Model>& model) {
        const uint64_t most = m_plan.components_held ? m_run.buffer_memory() : 0;
        auto made = tools::project_scene(
            m_scene, m_computing, {m_settings.components, m_settings.components_given, most, folder(), 0.3});
        model = std::move(made.model);
        return std::move(made.planes);
    }

    /// -no-pca: the bands, NaN where a pixel is invalid.
    std::unique_ptr<stream::PlaneStore> copy_bands() {
        const auto shape = m_scene.shape();
        auto planes = m_plan.components_held ? std::make_unique<stream::PlaneStore>(shape)
                                             : std::make_unique<stream::PlaneStore>(shape, folder());
        std::vector<int> every(static_cast<size_t>(shape.bands));
        std::iota(every.begin(), every.end(), 0);
        stream::CopyOperation copy(shape.bands, true);
        const auto to = planes->sink(every);
        auto pass = m_run.pass("bands", 0.3);
        if (planes->in_memory()) pass.memory -= std::min(pass.memory / 2, shape.float_bytes());
        m_run.add_pass(stream::run_pass(m_scene.cube(), copy, {to.get()}, pass));
        if (copy.valid() == 0) throw tool::no_valid_pixel(*m_scene.raster());
        tool::tell_invalid(m_run, copy.valid(), shape.pixels() - copy.valid());
        return planes;
    }
};

void declare(tool::Call& call) {
    using profile::Kind;
    auto& s = call.settings<Settings>();
    call.add_source();
    call.add_mask("the statistics of the components", true);
    call.add_destination();
    call.choice<Kind>("kind", s.kind, "What is made of every component",
                      {{"emp", Kind::emp, "openings and closings by reconstruction"},
                       {"eap", Kind::eap, "thinnings and thickenings by one attribute"},
                       {"eep", Kind::eep, "the extrema of greatest extinction value, of one attribute"},
                       {"emap", Kind::emap, "eap of several attributes"},
                       {"emep", Kind::emep, "eep of several attributes"}});
    call.option("nc", s.components, "Number of principal components, 1 to the number of bands");
    call.flag("no-pca", s.no_pca, "Profile the bands themselves instead of components");
    call.exclusive("nc", "no-pca");
    call.option("attribute", s.attributes,
                "Attributes, with commas: area, std, inertia, diagonal (eap, emap), area, volume, height, "
                "diagonal, std (eep, emep)")
        .shown_as("LIST")
        .defaults_to("area; all of emap and emep");
    call.option(
            "thresholds", s.thresholds,
            "Thresholds with commas, of several attributes as A=LIST each: radius and diagonal in pixels, "
            "area in pixels, std in per cent of the mean, inertia; of eep and emep extrema that stay")
        .shown_as("[A=]LIST")
        .defaults_to("those of the kind");
    call.choice("connectivity", s.eight, "Pixels that are neighbours",
                {{"4", false, "those beside"}, {"8", true, "those at the corners, too"}});
    call.add_compute();
    call.check([&s, &call](const tool::CommonOptions& options) {
        tool::check_mask_use(options.mask, !s.no_pca, "-no-pca");
        s.components_given = call.given("nc");
        if (s.components < 1)
            throw UsageError("-nc: " + std::to_string(s.components) + " is no number of components",
                             "Use a number from 1 to the number of bands.");
        tools::resolve_profile(s);
    });
    call.body([&s](tool::Run& run) {
        Profiling profiling(run, s);
        if (run.options().dry_run)
            profiling.show_plan();
        else
            profiling.write();
    });
}

} // namespace profile_tool
} // namespace

namespace tools {

extern const tool::Definition profile{
    "profile",
    "Morphological, attribute and extinction profiles (EMP, EAP, EEP)",
    "Profiles of the principal components of a scene for classification: of each, copies without structures "
    "that are small by radius (extended morphological profile), area, standard deviation, inertia or "
    "diagonal "
    "(extended attribute profile), or without the extrema of small extinction value (extended extinction "
    "profile).",
    {{"gdal_hsi_profile scene.img profile.tif", "Area: 7 components, 15 bands of each"},
     {"gdal_hsi_profile -kind emep -nc 4 scene.img profile.tif", "Extinction profiles of five attributes"},
     {"gdal_hsi_profile -kind emap -attribute area,std -thresholds area=50,500 -thresholds std=5,10 "
      "scene.img "
      "profile.tif",
      "Two attributes with thresholds of one's own"},
     {"gdal_hsi_profile -kind emp -no-pca -b 30 -thresholds 1,3,5 scene.img profile.tif",
      "Openings and closings of one band"}},
    "",
    profile_tool::declare};

} // namespace tools
} // namespace hsi
