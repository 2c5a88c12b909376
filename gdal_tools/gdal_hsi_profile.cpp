// SPDX-License-Identifier: MIT
// gdal_hsi_profile: computes morphological, attribute and extinction profiles. The profiles are made from
// components (covariance and projection) or from the bands themselves. Each thread works on one side of one
// whole component plane. Bands are written to dst as they are made. If dst needs all bands of a tile at once,
// they are written tile by tile at the end.
#include "core/counted.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "profile/profile.h"
#include "raster/pixel_size.h"
#include "raster/raster_sink.h"
#include "shared/components.h"
#include "shared/profile_plan.h"
#include "stream/band_writer.h"
#include "stream/copy_operation.h"
#include "stream/plane_store.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/scene.h"
#include "tool/words.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace profile_tool {

using profile::Attribute;
using profile::AttributeSet;
using profile::Kind;

// The requested profile
// ----------------------------------------------------------------------------------------------------------

struct Settings {
    Kind kind = Kind::eap;
    std::string attributes;              ///< text of -attribute
    std::vector<std::string> thresholds; ///< texts of -thresholds
    bool eight = false, no_pca = false, components_given = false;
    int components = 7;
    /// The chosen attributes with their thresholds; empty: the default attributes.
    std::vector<AttributeSet> sets;
};

std::vector<std::string> parts_of(const std::string& text) {
    std::vector<std::string> parts;
    std::stringstream list(text);
    for (std::string part; std::getline(list, part, ',');)
        parts.push_back(part);
    if (parts.empty() || text.back() == ',') parts.emplace_back();
    return parts;
}

std::string known(Kind kind) {
    std::string text;
    for (const auto a : profile::attributes_of(kind))
        text.append(text.empty() ? "" : ", ").append(profile::name_of(a));
    return text;
}

Attribute attribute_named(const std::string& option, const std::string& name, Kind kind) {
    for (const auto a : profile::attributes_of(kind))
        if (name == profile::name_of(a)) return a;
    throw UsageError(option + ": -kind " + profile::name_of(kind) + " has no attribute '" + name + "'",
                     "Its attributes are " + known(kind) + ".");
}

std::vector<double> threshold_list(const std::string& text, Attribute attribute, Kind kind) {
    std::vector<double> values;
    for (const auto& part : parts_of(text)) {
        const auto value = tool::parse_number(part);
        if (!value)
            throw UsageError("-thresholds: '" + part + "' is not a number",
                             "Give thresholds such as -thresholds 10,25,50.");
        const bool counted = profile::of_extinction(kind), whole = std::floor(*value) == *value;
        if (counted && !(*value >= 1 && whole && std::isfinite(*value)))
            throw UsageError("-thresholds: " + part + " is not a number of extrema",
                             "Use a whole number, 1 or more.");
        if (attribute == Attribute::radius && !(*value >= 1 && whole && *value <= 32767))
            throw UsageError("-thresholds: " + part + " is not a radius",
                             "Use a whole number from 1 to 32767.");
        if (!(*value >= 0) || !std::isfinite(*value))
            throw UsageError("-thresholds: " + part + " is not a threshold", "Use 0 or more.");
        if (std::find(values.begin(), values.end(), *value) != values.end())
            throw UsageError("-thresholds: " + part + " appears twice in the list", "Leave one of them out.");
        values.push_back(*value);
    }
    return values;
}

bool several(Kind kind) { return kind == Kind::emap || kind == Kind::emep; }

/// Fills `sets` from -attribute and -thresholds. \throws UsageError if the options contradict one another.
void resolve_attributes(Settings& s) {
    s.sets.clear();
    const std::string kind = std::string("-kind ") + profile::name_of(s.kind);
    if (!s.attributes.empty()) {
        for (const auto& name : parts_of(s.attributes)) {
            const auto a = attribute_named("-attribute", name, s.kind);
            for (const auto& set : s.sets)
                if (set.attribute == a)
                    throw UsageError("-attribute: " + name + " appears twice in the list",
                                     "Leave one of them out.");
            s.sets.push_back({a, {}});
        }
        if (s.sets.size() > 1 && !several(s.kind))
            throw UsageError("-attribute " + s.attributes + ": " + kind + " uses one attribute",
                             s.kind == Kind::eap ? "Use -kind emap." : "Use -kind emep.");
    } else {
        for (const auto a : profile::attributes_of(s.kind))
            if (s.sets.empty() || several(s.kind)) s.sets.push_back({a, {}});
    }
    for (const auto& text : s.thresholds) {
        const auto equals = text.find('=');
        AttributeSet* to = s.sets.size() == 1 ? &s.sets[0] : nullptr;
        if (equals != std::string::npos) {
            const auto a = attribute_named("-thresholds", text.substr(0, equals), s.kind);
            to = nullptr;
            for (auto& set : s.sets)
                if (set.attribute == a) to = &set;
            if (to == nullptr)
                throw UsageError("-thresholds " + text + ": " + profile::name_of(a) + " was not chosen",
                                 "Also choose it with -attribute.");
        } else if (to == nullptr) {
            throw UsageError("-thresholds " + text + ": the attribute is missing",
                             "Give the attribute, as in -thresholds " +
                                 std::string(profile::name_of(s.sets[0].attribute)) + "=" + text + ".");
        }
        if (!to->thresholds.empty())
            throw UsageError(std::string("-thresholds: ") + profile::name_of(to->attribute) +
                                 " has two lists",
                             "Give one list with commas.");
        to->thresholds = threshold_list(equals == std::string::npos ? text : text.substr(equals + 1),
                                        to->attribute, s.kind);
    }
}

/// Returns true if a default threshold is an area, which depends on the pixel size.
bool needs_pixel_size(const Settings& s) {
    return !profile::of_extinction(s.kind) &&
           std::any_of(s.sets.begin(), s.sets.end(), [](const AttributeSet& set) {
               return set.attribute == Attribute::area && set.thresholds.empty();
           });
}

/// Returns the options with default thresholds filled in. `pixel_metres`: pixel size in metres.
profile::Options profile_options(const Settings& s, double pixel_metres) {
    profile::Options options{s.kind, s.sets, s.eight};
    for (auto& set : options.sets)
        if (set.thresholds.empty())
            set.thresholds = profile::default_thresholds(s.kind, set.attribute, pixel_metres);
    return options;
}

// Writing the bands
// ----------------------------------------------------------------------------------------------------------

raster::OutputSpec profile_spec(const stream::CubeShape& scene, const Settings& s,
                                const profile::Options& options, const std::vector<std::string>& components) {
    raster::OutputSpec spec;
    spec.shape = {scene.samples, scene.lines, options.bands() * static_cast<int>(components.size())};
    spec.holes = true;
    const auto names = profile::band_names(options);
    for (size_t i = 0; i < components.size(); ++i)
        for (const auto& name : names) {
            raster::BandSpec band{components[i], {{"component", std::to_string(i + 1)}}};
            if (!name.empty())
                band.description += " " + name;
            else if (s.no_pca)
                band.like_band = static_cast<int>(i);
            spec.bands.push_back(std::move(band));
        }
    auto& m = spec.metadata;
    m["HSI_PROFILE_KIND"] = profile::name_of(s.kind);
    m["HSI_PROFILE_COMPONENTS"] = std::to_string(components.size());
    m["HSI_PROFILE_PCA"] = s.no_pca ? "NO" : "YES";
    m["HSI_PROFILE_CONNECTIVITY"] = s.eight ? "8" : "4";
    for (const auto& set : options.sets) {
        std::string list;
        for (const double t : set.thresholds)
            list += (list.empty() ? "" : ",") + tool::number_text(t);
        std::string name = profile::name_of(set.attribute);
        for (char& c : name)
            c = static_cast<char>(c - 'a' + 'A');
        m["HSI_PROFILE_" + name] = list;
    }
    return spec;
}

/// Computes the bands of a profile and writes them.
class ProfileBands {
  public:
    ProfileBands(tool::Run& run, bool whole, const profile::Options& options, const tools::ProfilePlan& plan,
                 raster::RasterSink& sink)
        : m_run(run), m_whole(whole), m_options(options), m_plan(plan), m_sink(sink), m_shape(sink.shape()) {}

    void write_bands(stream::PlaneStore& components) {
        make(components, 0.7, [&](int band, std::vector<float>& values) {
            stream::write_plane(m_sink, band, {0, 0, m_shape.samples, m_shape.lines}, plane_of(values),
                                &m_run.cancel());
        });
    }

    /// Writes tile by tile, for a dst that needs all bands of a tile at once.
    void write_tiles(std::unique_ptr<stream::PlaneStore> components) {
        parallel::Group& ranks = m_run.ranks();
        const auto profile = m_plan.profile_held
                                 ? stream::PlaneStore::in_memory_of(ranks, m_shape)
                                 : std::make_unique<stream::PlaneStore>(
                                       m_shape, stream::folder_beside(m_run.options().destination.path));
        const Rect all{0, 0, m_shape.samples, m_shape.lines};
        std::mutex mutex;
        std::vector<stream::PlaneStore::Part> made;
        make(*components, 0.6, [&](int band, std::vector<float>& values) {
            profile->sink({band})->write(all, plane_of(values));
            const std::lock_guard lock(mutex);
            made.push_back({{band}, all});
        });
        components.reset();
        m_run.reserve_cache(m_sink.cache_bytes());
        std::vector<int> every(static_cast<size_t>(m_shape.bands));
        std::iota(every.begin(), every.end(), 0);
        stream::CopyOperation copy(m_shape.bands, false);
        auto pass = m_run.pass("writing", 0.1);
        pass.memory = std::min(pass.memory, m_plan.pass_bytes);
        pass.output_layout = m_sink.layout();
        // Each rank made some of the planes, and writes some of the rows. The ranks exchange planes so that
        // each rank has the rows that it writes.
        const auto source = profile->source(every);
        const auto tiles = stream::plan_pass(*source, copy, pass);
        const int64_t rows = tiles.tile_lines();
        profile->share(ranks, made, rows);
        pass.owner = [&](const Tile& tile) {
            return stream::PlaneStore::owner(tile.core.y, rows, ranks.size());
        };
        m_run.add_pass(stream::run_pass(*source, copy, {&m_sink}, tiles, pass));
    }

  private:
    CubeView<float> plane_of(std::vector<float>& values) const {
        return CubeView<float>::packed(values.data(), 1, m_shape.lines, m_shape.samples);
    }

    void make(stream::PlaneStore& components, double share, const profile::TakeBand& take) {
        const auto begin = std::chrono::steady_clock::now();
        const auto pass = m_run.pass("profile", share);
        profile::make_profile(components, m_whole, m_options, take,
                              {m_plan.workers, pass.cancel, pass.progress});
        stream::PassReport report;
        report.name = pass.name;
        report.lanes = m_plan.workers;
        report.buffer_bytes = m_plan.side_bytes * static_cast<uint64_t>(m_plan.workers);
        report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        stream::add_up(m_run.ranks(), report, 0);
        m_run.add_pass(report);
    }

    tool::Run& m_run;
    const bool m_whole;
    const profile::Options& m_options;
    const tools::ProfilePlan& m_plan;
    raster::RasterSink& m_sink;
    const stream::CubeShape m_shape;
};

/// Makes the profile of `components` (profile::make_profile()) and writes it. If the plan allows it and the
/// sink accepts single bands, writes band by band. Otherwise writes tile by tile after all bands are made.
/// Reports the passes. \throws Cancelled, and Error from reading and writing.
void write_profile(tool::Run& run, std::unique_ptr<stream::PlaneStore> components, bool whole,
                   const profile::Options& options, const tools::ProfilePlan& plan,
                   raster::RasterSink& sink) {
    ProfileBands bands(run, whole, options, plan, sink);
    if (plan.written && sink.takes_bands())
        bands.write_bands(*components);
    else
        bands.write_tiles(std::move(components));
}

// The passes
// ----------------------------------------------------------------------------------------------------------

constexpr double no_size = 20; ///< pixel size in metres that is assumed if the size is unknown

/// Returns true if the source has integer values. The levels of its trees are then the values themselves.
bool whole_numbers(const raster::RasterSource& source) {
    const auto type = source.facts().type;
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
        if (!metres && needs_pixel_size(settings))
            run.note("The size of a pixel is unknown: thresholds of area assume pixels of " +
                     tool::number_text(no_size) + " m");
        m_options = profile_options(settings, metres.value_or(no_size));
        const int n = components();
        const auto& destination = run.options().destination;
        const auto written = profile_spec(source.shape(), settings, m_options, names(n));
        raster::check_output(destination, written, source);
        m_plan = tools::plan_profile_planes(run, {source.shape().samples, source.shape().lines, n}, m_options,
                                            raster::will_take_bands(destination, written));
        report_where();
    }

    void show_plan() {
        const auto& source = *m_scene.raster();
        if (!m_settings.no_pca)
            tool::print_plan(
                m_run, source,
                *tools::make_scan(m_run, m_computing, source.shape(), stream::Statistics::covariance),
                tools::without_held_memory(m_computing, m_computing.pass("covariance", 0.2)));
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
        const auto sink = raster::create_sink(m_run.options().destination,
                                              profile_spec(all, m_settings, m_options, names(shape.bands)),
                                              m_scene.raster().get());
        write_profile(m_run, std::move(planes), m_settings.no_pca && whole_numbers(*m_scene.raster()),
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
        return tools::projection_work(shape, components(), true);
    }
    int components() const {
        const int bands = m_scene.shape().bands;
        return m_settings.no_pca
                   ? bands
                   : tools::component_count(m_settings.components, m_settings.components_given, bands);
    }
    std::vector<std::string> names(int count) const {
        return m_settings.no_pca ? m_scene.raster()->facts().bands.names : tools::component_names(count);
    }
    static const char* place(bool held) { return held ? "memory" : "a temporary file"; }
    std::string folder() const { return stream::folder_beside(m_run.options().destination.path); }

    /// Reports the devices. PCA may run on a GPU; trees and reconstructions run on the CPU.
    void report_where() {
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
        auto made = tools::project_into_planes(
            m_scene, m_computing,
            {m_settings.components, m_settings.components_given, most, folder(), 0.3, nullptr});
        model = std::move(made.model);
        return std::move(made.planes);
    }

    /// Copies the bands for -no-pca. Invalid pixels become NaN.
    std::unique_ptr<stream::PlaneStore> copy_bands() {
        const auto shape = m_scene.shape();
        auto planes = m_plan.components_held ? std::make_unique<stream::PlaneStore>(shape)
                                             : std::make_unique<stream::PlaneStore>(shape, folder());
        std::vector<int> every(static_cast<size_t>(shape.bands));
        std::iota(every.begin(), every.end(), 0);
        stream::CopyOperation copy(shape.bands, true);
        const auto to = planes->sink(every);
        auto pass = m_run.pass("bands", 0.3);
        if (planes->in_memory()) tool::leave_room(pass, shape.float_bytes());
        m_run.add_pass(stream::run_pass(m_scene.cube(), copy, {to.get()}, pass));
        if (copy.valid() == 0) throw tool::no_valid_pixel(*m_scene.raster());
        tool::report_invalid(m_run, copy.valid(), shape.pixels() - copy.valid());
        return planes;
    }
};

// The options
// ----------------------------------------------------------------------------------------------------------

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_mask("the statistics", true);
    args.add_destination();
    args.choice<Kind>("kind", s.kind, "Kind of profile",
                      {{"emp", Kind::emp, "openings and closings by reconstruction"},
                       {"eap", Kind::eap, "thinnings and thickenings by one attribute"},
                       {"eep", Kind::eep, "the extrema with the greatest extinction values of one attribute"},
                       {"emap", Kind::emap, "eap of several attributes"},
                       {"emep", Kind::emep, "eep of several attributes"}});
    args.option("nc", s.components, "Number of principal components, 1 to the number of bands");
    args.flag("no-pca", s.no_pca, "Profile the bands themselves instead of components");
    args.exclusive("nc", "no-pca");
    args.option("attribute", s.attributes,
                "Attributes: area, std, inertia, diagonal (eap, emap); area, volume, height, diagonal, "
                "std (eep, emep)")
        .shown_as("LIST")
        .defaults_to("area; all of emap and emep");
    args.option("thresholds", s.thresholds,
                "Thresholds, separated by commas: 5,10; for several attributes area=50,500 and std=5,10")
        .shown_as("[A=]LIST")
        .defaults_to("those of the kind");
    args.choice(
        "connectivity", s.eight, "Neighbours of a pixel",
        {{"4", false, "horizontal and vertical neighbours"}, {"8", true, "diagonal neighbours, too"}});
    args.add_compute();
    args.check([&s](const tool::Call& call) {
        tool::check_mask_use(call.options().mask, !s.no_pca, "-no-pca");
        s.components_given = call.given("nc");
        if (s.components < 1)
            throw UsageError("-nc: " + std::to_string(s.components) + " is not a number of components",
                             "Use a number from 1 to the number of bands.");
        resolve_attributes(s);
    });
    args.looks_around();
    args.body([&s](tool::Run& run) {
        Profiling profiling(run, s);
        tool::end_of_plan(run, [&] { profiling.show_plan(); });
        profiling.write();
    });
}

} // namespace profile_tool
} // namespace

namespace tools {

extern constinit const tool::Definition profile{
    "profile",
    "Morphological, attribute and extinction profiles (EMP, EAP, EEP)",
    "Profiles of the principal components of a scene for classification: copies of each "
    "component without structures that are small in radius (extended morphological profile), "
    "area, standard deviation, inertia or diagonal (extended attribute profile), or without "
    "the extrema of small extinction value (extended extinction profile).",
    {{"gdal_hsi_profile scene.img profile.tif", "Area: 7 components, 15 bands of each"},
     {"gdal_hsi_profile -kind emep -nc 4 scene.img profile.tif", "Extinction profiles of five attributes"},
     {"gdal_hsi_profile -kind emap -attribute area,std -thresholds area=50,500 -thresholds std=5,10 "
      "scene.img "
      "profile.tif",
      "Two attributes with given thresholds"},
     {"gdal_hsi_profile -kind emp -no-pca -b 30 -thresholds 1,3,5 scene.img profile.tif",
      "Openings and closings of one band"}},
    "",
    profile_tool::declare};

} // namespace tools
} // namespace hsi
