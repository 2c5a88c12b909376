// SPDX-License-Identifier: MIT
// gdal_hsi_gas: computes the enhancement of methane or carbon dioxide from radiance, and finds plumes in the
// enhancement. The filter takes one pass; each group of columns has its own background.
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "gas/gas.h"
#include "gdal_hsi_gas/settings.h"
#include "raster/output_set.h"
#include "raster/raster_source.h"
#include "shared/column_tiles.h"
#include "stream/plane_store.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/scene.h"
#include "tool/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace gas_tool {
namespace {

using gas::Output;
using tool::Content;

constexpr std::array<std::pair<const char*, Output>, 4> output_names{{{"enhancement", Output::enhancement},
                                                                      {"uncertainty", Output::uncertainty},
                                                                      {"sensitivity", Output::sensitivity},
                                                                      {"albedo", Output::albedo}}};

// Settings
// ----------------------------------------------------------------------------------------------------------

std::vector<Output> outputs_of(const std::string& text) {
    const auto words = listed_words(text);
    std::vector<Output> outputs;
    for (const auto& [name, output] : output_names)
        if (words && std::any_of(words->begin(), words->end(),
                                 [name = name](const auto& w) { return equal_names(w, name); }))
            outputs.push_back(output);
    if (!words || outputs.empty() || outputs.size() != words->size())
        throw UsageError("-output: '" + text +
                             "' is not a list of enhancement, uncertainty, sensitivity and albedo",
                         "Write -output enhancement,uncertainty.");
    return outputs;
}

void take_groups(Settings& s) {
    if (!equal_names(s.columns_text, "all")) {
        const auto v = to_number(s.columns_text);
        constexpr double most = 1e9;
        if (!v || *v != std::floor(*v)) // also true for NaN
            throw UsageError("-columns-per-group: '" + s.columns_text + "' is not a whole number",
                             "Give a number of columns, or all.");
        if (*v < 1 || *v > most)
            throw UsageError("-columns-per-group: " + s.columns_text + " is out of range (1 to 1000000000)");
        s.columns = static_cast<int64_t>(*v);
    }
    if (equal_names(s.shrinkage_text, "none")) return;
    s.filter.ledoit_wolf = equal_names(s.shrinkage_text, "ledoit-wolf");
    if (s.filter.ledoit_wolf) {
        if (s.how == How::mag1c)
            throw UsageError(tool::cannot_be_used_with("-shrinkage ledoit-wolf", "-method mag1c"),
                             "Give a number from 0 to 1, or -method mf.");
        return;
    }
    const auto v = to_number(s.shrinkage_text);
    if (!v) throw UsageError("-shrinkage: '" + s.shrinkage_text + "' is not none, ledoit-wolf or a number");
    if (!(*v >= 0 && *v <= 1))
        throw UsageError("-shrinkage: " + s.shrinkage_text + " is out of range (0 to 1)");
    s.filter.shrinkage = *v;
}

void take_filter(Settings& s, const tool::Call& call) {
    for (const char* const name : {"iterations", "no-albedo", "no-sparsity"})
        if (s.how != How::mag1c && call.given(name))
            throw UsageError("-" + std::string(name) + " requires -method mag1c");
    s.filter.method = s.how == How::mag1c ? gas::Method::mag1c
                      : s.how == How::mf  ? gas::Method::mf
                                          : gas::Method::lognormal;
    s.filter.albedo = !s.no_albedo;
    s.filter.sparsity = !s.no_sparsity;
    s.filter.outputs = outputs_of(s.output_text);
    if (s.writes(Output::uncertainty) && s.noise.empty())
        throw UsageError("-output uncertainty requires -noise");
    if (!s.noise.empty() && !s.writes(Output::uncertainty))
        throw UsageError("-noise requires -output uncertainty");
    if (s.writes(Output::albedo) && s.how != How::mag1c)
        throw UsageError("-output albedo requires -method mag1c");
    if (s.writes(Output::albedo) && s.no_albedo)
        throw UsageError(tool::cannot_be_used_with("-output albedo", "-no-albedo"));
    if (s.absorption.empty() && s.lut.empty())
        throw UsageError(
            "the unit absorption is missing",
            "Give the change of ln(radiance) per ppm m with -absorption FILE, or give -lut FILE.");
    for (const char* const name : {"spectrum", "library-scale", "resample"})
        if (s.absorption.empty() && call.given(name))
            throw UsageError("-" + std::string(name) + " requires -absorption");
    for (const char* const name : {"concentrations", "sza", "elevation", "sensor-altitude", "water-vapour"}) {
        if (!call.given(name)) continue;
        if (s.lut.empty()) throw UsageError("-" + std::string(name) + " requires -lut");
        s.conditions_given.emplace_back(name);
    }
    s.conditions.methane = s.gas == Gas::ch4;
    if (call.given("radiance-scale") && s.noise.empty() && !s.flare)
        throw UsageError("-radiance-scale requires -noise or -flare-threshold");
    s.filter.keep = s.plumes.given();
    if (s.filter.keep && !s.writes(Output::enhancement))
        throw UsageError("-plumes and -plume-map require the output enhancement");
    take_groups(s);
}

void settle_none(const Settings& s, const tool::Call& call) {
    if (!call.options().destination.path.empty())
        throw UsageError(tool::cannot_be_used_with("dst", "-method none"),
                         "Write -plumes or -plume-map instead.");
    for (const char* const name : {"range",
                                   "absorption",
                                   "spectrum",
                                   "library-scale",
                                   "resample",
                                   "save-absorption",
                                   "lut",
                                   "concentrations",
                                   "sza",
                                   "elevation",
                                   "sensor-altitude",
                                   "water-vapour",
                                   "columns-per-group",
                                   "shrinkage",
                                   "iterations",
                                   "no-albedo",
                                   "no-sparsity",
                                   "output",
                                   "noise",
                                   "radiance-scale",
                                   "flare-threshold",
                                   "device",
                                   "device-memory"})
        if (call.given(name))
            throw UsageError(tool::cannot_be_used_with("-" + std::string(name), "-method none"));
    if (!s.plumes.given()) throw UsageError("-method none requires -plumes or -plume-map");
}

Settings& settle(Settings& s, const tool::Call& call) {
    settle_plumes(s.plumes, call, s.gas == Gas::ch4);
    if (s.how == How::none) {
        settle_none(s, call);
        return s;
    }
    if (call.options().destination.path.empty()) throw UsageError("dst is missing");
    if (s.range_texts.empty()) s.range_texts = {s.gas == Gas::ch4 ? "2122-2485nm" : "1922-2337nm"};
    s.ranges = tool::parse_ranges(s.range_texts, "-range");
    take_filter(s, call);
    return s;
}

// The filter
// ----------------------------------------------------------------------------------------------------------

raster::OutputSpec spec_of(const Settings& s, const stream::CubeShape& shape) {
    static constexpr const char* method_names[] = {"mag1c", "mf", "lognormal"};
    raster::OutputSpec spec;
    spec.shape = {shape.samples, shape.lines, static_cast<int>(s.filter.outputs.size())};
    spec.holes = true;
    for (const Output output : s.filter.outputs) {
        raster::BandSpec band;
        const std::string name = output_names[static_cast<size_t>(output)].first;
        band.description = output == Output::albedo ? name : s.name() + (" " + name);
        if (output == Output::enhancement || output == Output::uncertainty) band.unit = "ppm m";
        spec.bands.push_back(std::move(band));
    }
    spec.metadata = {{"HSI_GAS_METHOD", method_names[static_cast<size_t>(s.filter.method)]},
                     {"HSI_GAS_GAS", s.gas == Gas::ch4 ? "ch4" : "co2"},
                     {"HSI_GAS_ABSORPTION", s.absorption.empty() ? s.lut : s.absorption},
                     {"HSI_GAS_RANGE", joined(s.range_texts, ", ")},
                     {"HSI_GAS_BACKGROUND", "columns " + (s.columns ? std::to_string(*s.columns) : "all")},
                     {"HSI_GAS_SHRINKAGE", s.shrinkage_text}};
    if (s.how == How::mag1c) spec.metadata["HSI_GAS_ITERATIONS"] = std::to_string(s.filter.iterations);
    return spec;
}

/// Reports the number of groups, and the number of groups without results. \throws Error if no group has a
/// result.
void report_groups(tool::Run& run, const Settings& s, const gas::Filter& filter, int bands) {
    std::array<int64_t, 3> states{};
    int64_t least = std::numeric_limits<int64_t>::max();
    std::vector<double> shares;
    for (const auto& group : filter.groups()) {
        ++states[static_cast<size_t>(group.state)];
        if (group.state != gas::GroupState::filtered) continue;
        least = std::min(least, group.pixels);
        shares.push_back(group.shrinkage);
    }
    const auto groups = filter.groups().size();
    const std::string advice = "Use larger groups (-columns-per-group), or -shrinkage 0.0001.";
    if (shares.empty())
        throw Error("no group has values: " + std::to_string(states[1]) + " of " + counted(groups, "group") +
                        " with too few pixels for " + counted(bands, "band") + ", " +
                        std::to_string(states[2]) + " without an inverse of the covariance",
                    advice);
    const auto middle = shares.begin() + static_cast<std::ptrdiff_t>(shares.size() / 2);
    std::nth_element(shares.begin(), middle, shares.end());
    run.report()["background"] = {{"groups", groups},
                                  {"groups_with_values", states[0]},
                                  {"least_pixels", least},
                                  {"median_shrinkage", *middle}};
    run.note(
        "Background: " + counted(groups, "group") + " of at least " + std::to_string(least) + " pixels" +
        (s.filter.ledoit_wolf ? ", shrinkage " + number(std::round(1e4 * *middle) / 1e4) + " (median)" : ""));
    if (shares.size() < groups)
        run.warn(counted(groups - shares.size(), "group has", "groups have") + " no values (" +
                 std::to_string(states[1]) + " with too few pixels, " + std::to_string(states[2]) +
                 " without an inverse of the covariance): " + counted(filter.in_bad_groups(), "valid pixel") +
                 " without a value. " + advice);
    else if (!s.filter.ledoit_wolf && s.filter.shrinkage == 0 && least < 2 * bands)
        run.warn("the smallest group has " + counted(least, "pixel") + " for " + counted(bands, "band") +
                 ": the filter loses much of its contrast. " + advice);
}

/// Warns if the scene seems to contain reflectance. The product, the unit or the file name show this; the
/// values alone do not distinguish reflectance from radiance.
void warn_of_reflectance(tool::Run& run, const raster::RasterSource& scene) {
    const auto& facts = scene.facts();
    const std::string file = facts.path.substr(facts.path.find_last_of('/') + 1);
    for (const std::string& text : {facts.product, facts.bands.values.unit, file})
        if (contains_any(text, {"eflectance", "REFLECTANCE", "rfl", "RFL", "L2A", "L2B", "L2C", "L2D"}))
            return run.warn("src looks like reflectance ('" + text +
                            "'), from which the correction of the atmosphere has removed the gas. Use the "
                            "radiance of the scene (L1)");
}

/// Finds the pixels of one band with values above the threshold for flares, and marks the 5x5 pixels around
/// each.
class FlareScan final : public stream::Operation {
  public:
    FlareScan(const stream::CubeShape& scene, double threshold)
        : m_scene(scene), m_threshold(threshold),
          m_counting(std::make_shared<stream::PixelMask>(scene.samples, scene.lines)) {
        m_counting->invert();
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<Finder>(m_threshold);
    }
    void stop(stream::Worker& worker) override {
        constexpr int64_t reach = 2;
        for (const auto& [line, sample] : static_cast<const Finder&>(worker).found) {
            ++flares;
            for (int64_t y = std::max<int64_t>(0, line - reach);
                 y <= std::min(m_scene.lines - 1, line + reach); ++y)
                for (int64_t x = std::max<int64_t>(0, sample - reach);
                     x <= std::min(m_scene.samples - 1, sample + reach); ++x)
                    m_counting->clear(y, x);
        }
    }
    /// Returns the mask of the pixels that are not marked.
    const std::shared_ptr<stream::PixelMask>& counting() const { return m_counting; }
    int64_t flares = 0;

  private:
    struct Finder final : stream::Worker {
        explicit Finder(double over) : threshold(over) {}
        void process(const Tile& tile, const CubeView<float>& in,
                     const std::vector<CubeView<float>>&) override {
            for (int64_t y = 0; y < in.lines; ++y)
                for (int64_t x = 0; x < in.samples; ++x)
                    if (const float v = in.row(0, y)[x];
                        std::isfinite(v) && static_cast<double>(v) > threshold)
                        found.emplace_back(tile.window.y + y, tile.window.x + x);
        }
        const double threshold;
        std::vector<std::pair<int64_t, int64_t>> found;
    };
    const stream::CubeShape m_scene;
    const double m_threshold;
    std::shared_ptr<stream::PixelMask> m_counting;
};

/// Returns the pixels that the statistics use: the pixels of the mask without flares; null if all pixels are
/// used. \throws Error if the scene has no band for the search for flares.
std::shared_ptr<const stream::PixelMask> counting_pixels(tool::Run& run, const Settings& s,
                                                         const std::shared_ptr<raster::RasterSource>& scene) {
    std::shared_ptr<const stream::PixelMask> mask = run.masks_statistics() ? run.mask() : nullptr;
    if (!s.flare) return mask;
    constexpr double flare_nm = 2389.5, far_nm = 10;
    const auto& nm = scene->facts().bands.wavelengths_nm;
    std::optional<size_t> nearest;
    for (size_t b = 0; b < nm.size(); ++b)
        if (std::fabs(nm[b] - flare_nm) <= far_nm &&
            (!nearest || std::fabs(nm[b] - flare_nm) < std::fabs(nm[*nearest] - flare_nm)))
            nearest = b;
    if (!nearest)
        throw Error(scene->path() +
                        " has no good band within 10 nm of 2389.5 nm, which the search for flares needs",
                    "Leave -flare-threshold out.");
    const auto band = tool::only_bands(scene, {static_cast<int>(*nearest)});
    FlareScan scan(band->shape(), *s.flare / s.filter.radiance_scale);
    if (!tool::run_pass(run, *band, scan, {}, run.pass("flares", 0.05))) return mask;
    run.report()["flares"] = scan.flares;
    run.note(counted(scan.flares, "pixel") + " of flares");
    if (mask) scan.counting()->keep_only(*mask);
    return scan.counting();
}

/// Input of the filter that is prepared before the pass.
struct Prepared {
    std::map<int, double> absorption; ///< unit absorption by band number in the file
    std::shared_ptr<const stream::PixelMask> counting;
};

using GasComputing = tool::Computing<gas::Backend>;

tool::Work work_of(const Settings& s, const stream::CubeShape& shape) {
    const double values = static_cast<double>(shape.float_bytes()) / 4,
                 looks = s.how == How::mag1c ? 2 + s.filter.iterations : 2;
    tool::Work work;
    work.cpu_reads = work.device_reads = 4 * values;
    work.writes = 4 * static_cast<double>(shape.pixels()) * static_cast<double>(s.filter.outputs.size());
    work.add(gas::cost::products, values * shape.bands);
    work.add(gas::cost::look, values * looks);
    return work;
}

/// Filters the scene in one pass. `scene` has only the bands that the filter uses. Returns false if no pixel
/// is valid.
bool filter_scene(tool::Run& run, const Settings& s, GasComputing& computing,
                  const std::shared_ptr<raster::RasterSource>& scene, const Prepared& prepared, bool again) {
    const auto shape = scene->shape();
    auto options = s.filter;
    for (const int band : scene->bands())
        options.absorption.push_back(prepared.absorption.at(band));
    if (!s.noise.empty()) options.noise = read_noise(run, s, *scene);
    raster::OutputSet outputs;
    outputs.plan(run.options().destination, spec_of(s, shape));
    outputs.check(*scene);
    if (!again) tools::warn_of_map_columns(run, "-columns-per-group", *scene);
    const auto first = run.options().source.window ? run.options().source.window->x : 0;
    const stream::Columns columns{first, s.columns.value_or(first + shape.samples)};
    const auto cube = tools::in_memory_for_columns(run, scene);
    const auto filter = computing->make_filter(shape, columns, options, prepared.counting.get());
    std::unique_ptr<stream::PlaneStore> planes;
    std::unique_ptr<stream::CubeSink> kept;
    uint64_t held = prepared.counting && prepared.counting != run.mask() ? prepared.counting->bytes() : 0;
    if (options.keep) {
        const stream::CubeShape two{shape.samples, shape.lines, s.writes(Output::uncertainty) ? 2 : 1};
        const bool in_memory = two.float_bytes() <= tool::quarter(run.buffer_memory());
        if (in_memory) held += two.float_bytes();
        planes = in_memory ? std::make_unique<stream::PlaneStore>(two)
                           : std::make_unique<stream::PlaneStore>(
                                 two, stream::folder_beside(run.options().destination.path));
        kept = planes->sink(two.bands == 2 ? std::vector<int>{0, 1} : std::vector<int>{0});
    }
    const auto pass = tool::begin_writing(run, *cube, *filter, outputs, scene.get(), [&] {
        auto made =
            computing.pass("filter", again ? 0 : 1 - (s.flare ? 0.05 : 0) - (cube != scene ? 0.2 : 0));
        if (computing.on_devices())
            made.lanes = stream::worker_count(made.lanes, shape.float_bytes(), made.limit);
        if (cube != scene) tool::leave_room(made, shape.float_bytes());
        if (held > 0) tool::leave_room(made, held);
        tools::set_column_tiles("-columns-per-group", columns.width, *cube, *filter, made);
        return made;
    });
    auto sinks = outputs.sinks();
    if (kept) sinks.push_back(kept.get());
    run.add_pass(stream::run_pass(*cube, *filter, sinks, pass));
    if (filter->valid() + filter->in_bad_groups() == 0) return false;
    tool::report_invalid(run, filter->valid() + filter->in_bad_groups(), filter->invalid());
    report_groups(run, s, *filter, shape.bands);
    if (filter->dark() > 0)
        run.warn(counted(filter->dark(), "pixel has", "pixels have") +
                 " no value, since the albedo is not above 0");
    outputs.commit();
    if (!planes) return true;
    const auto map =
        planes->source(planes->shape().bands == 2 ? std::vector<int>{0, 1} : std::vector<int>{0});
    write_plumes(run, s.plumes, *scene, *map, prepared.counting.get(), s.molar_mass());
    return true;
}

/// Finds plumes in an existing enhancement raster (-method none).
void run_none(tool::Run& run, const Settings& s) {
    auto source = run.open_source();
    check_plumes(run, s.plumes, *source);
    const auto& bands = source->facts().bands;
    if (const auto& unit = bands.values.unit; !unit.empty() && unit != "ppm m" && bands.numbers.size() == 1)
        run.warn("band 1 of src is in '" + unit + "', but is read as an enhancement in ppm m");
    std::vector<int> used{0};
    const std::string ending = " uncertainty";
    for (size_t b = 1; b < bands.names.size() && used.size() == 1; ++b)
        if (const auto& name = bands.names[b];
            name.size() >= ending.size() &&
            name.compare(name.size() - ending.size(), ending.size(), ending) == 0)
            used.push_back(static_cast<int>(b));
    source = tool::only_bands(source, used);
    if (const auto& values = source->facts().bands.values; !values.scale.empty() || !values.offset.empty())
        source = source->scaled();
    tool::end_of_plan(run, [&] { run.print("plumes: one read of band 1, line by line"); });
    write_plumes(run, s.plumes, *source, *source, run.masks_statistics() ? run.mask().get() : nullptr,
                 s.molar_mass());
}

void run_gas(tool::Run& run, const Settings& s) {
    if (s.how == How::none) return run_none(run, s);
    auto scene = run.open_source();
    check_plumes(run, s.plumes, *scene);
    warn_of_reflectance(run, *scene);
    if (const auto& values = scene->facts().bands.values; !values.scale.empty() || !values.offset.empty())
        scene = scene->scaled();
    const auto all = scene;
    const auto k = unit_absorption(run, s, scene);
    Prepared prepared;
    for (size_t b = 0; b < k.size(); ++b)
        prepared.absorption[scene->bands()[b]] = k[b];
    run.report()["gas"] = {{"gas", s.name()}, {"bands", k.size()}};
    run.note(std::string(s.name()) + " by " + counted(k.size(), "band"));
    GasComputing computing(run, "gas", tool::choose_devices(run, "gas", work_of(s, scene->shape())),
                           gas::simd_target(), [] { return std::make_unique<gas::Backend>(); });
    prepared.counting = counting_pixels(run, s, all);
    if (!tool::attempt(run, {tool::banded(scene)},
                       [&](bool again) { return filter_scene(run, s, computing, scene, prepared, again); }))
        throw tool::no_valid_pixel(*scene);
    if (const double seconds = computing->kernel_seconds(); seconds > 0)
        run.report()["kernel_seconds"] = seconds;
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_mask("the background", true);
    args.add_destination("The enhancement in ppm m, and further bands by -output; not with -method none")
        .required = false;
    args.choice<How>("method", s.how, "The filter",
                     {{"mag1c", How::mag1c, "matched filter with albedo and sparsity, iterated"},
                      {"mf", How::mf, "matched filter"},
                      {"lognormal", How::lognormal, "matched filter of the logarithm of radiance"},
                      {"none", How::none, "band 1 of src is already an enhancement, for -plumes"}});
    args.choice<Gas>("gas", s.gas, "The gas",
                     {{"ch4", Gas::ch4, "methane"}, {"co2", Gas::co2, "carbon dioxide"}});
    args.option("range", s.range_texts, "Use the bands between two wavelengths, ends included")
        .shown_as("RANGE")
        .defaults_to("2122-2485nm for ch4, 1922-2337nm for co2");
    args.input(
        "absorption", s.absorption, Content::spectra,
        "The unit absorption of the gas, the change of ln(radiance) per ppm m: one spectrum in the library "
        "FILE");
    tools::add_spectrum_option(args, s.spectrum, "the library of -absorption");
    args.option("library-scale", s.library_scale,
                "Multiply -absorption by this: 1e-5 for a spectrum per 1e5 ppm m");
    tools::add_resample_option(args, s.fit);
    args.input("lut", s.lut, Content::text,
               "Table of simulated radiances for the unit absorption: HDF5 with modtran_data, one-line "
               "raster, or CSV");
    args.exclusive("absorption", "lut");
    args.option("concentrations", s.conditions.concentrations,
                "With -lut: the concentration of each sample of a raster, in ppm m")
        .from(0)
        .defaults_to("0,500,1000,2000,4000,8000,16000 for 7 samples");
    args.option("sza", s.conditions.sun_zenith, "With -lut of HDF5: solar zenith angle")
        .between(0, 90)
        .in_unit("degrees");
    args.option("elevation", s.conditions.elevation, "With -lut of HDF5: elevation of the ground")
        .in_unit("km");
    args.option("sensor-altitude", s.conditions.sensor_altitude, "With -lut of HDF5: altitude of the sensor")
        .above(0)
        .in_unit("km");
    args.option("water-vapour", s.conditions.water_vapour, "With -lut of HDF5: column of water vapour")
        .from(0)
        .in_unit("cm");
    args.output("save-absorption", s.save, Content::spectra,
                "Also write the used unit absorption to FILE (.csv or .sli)");
    args.option("columns-per-group", s.columns_text,
                "Use a separate background for each group of N neighbouring columns; all: one background")
        .shown_as("N|all");
    args.option("shrinkage", s.shrinkage_text,
                "Shrink the covariance towards its diagonal by this share, 0 to 1, or as Ledoit and Wolf "
                "(mf, lognormal)")
        .shown_as("none|V|ledoit-wolf");
    args.option("iterations", s.filter.iterations, "Iterations (mag1c)").between(0, 10000);
    args.flag("no-albedo", s.no_albedo, "Assume that all pixels are equally bright (mag1c)");
    args.flag("no-sparsity", s.no_sparsity, "Do not assume that most pixels have no enhancement (mag1c)");
    args.option("output", s.output_text,
                "Bands of dst, in this order: enhancement, uncertainty (ppm m), sensitivity, albedo")
        .shown_as("LIST");
    args.input("noise", s.noise, Content::text,
               "Noise of the sensor, for uncertainty: lines of wavelength (nm), A, B, D; noise |A sqrt(L"
               " + B) + D|");
    args.option("radiance-scale", s.filter.radiance_scale,
                "Factor from stored values to uW cm-2 sr-1 nm-1, for -noise and -flare-threshold")
        .above(0);
    args.option("flare-threshold", s.flare,
                "Exclude 5x5 pixels around pixels above this radiance at 2389.5 nm from the background (uW "
                "cm-2 sr-1 nm-1)")
        .above(0)
        .defaults_to("off; 1.5 for EMIT");
    declare_plumes(args, s.plumes);
    args.add_compute();
    args.check([&s](const tool::Call& call) { settle(s, call); });
    args.body([&s](tool::Run& run) { run_gas(run, s); });
}

} // namespace
} // namespace gas_tool

namespace tools {

extern constinit const tool::Definition gas{
    "gas",
    "Methane and carbon dioxide plumes",
    "Gas plumes: computes the enhancement of methane or carbon dioxide from the radiance of "
    "an imaging spectrometer (mag1c, matched filter, lognormal matched filter), with a "
    "separate background for each detector column.",
    {{"gdal_hsi_gas -absorption ch4.csv radiance.img ch4.tif", "Methane by mag1c"},
     {"gdal_hsi_gas -method mf -columns-per-group 5 -absorption ch4.csv radiance.img ch4.tif",
      "Methane by a matched filter, five columns together"},
     {"gdal_hsi_gas -output enhancement,uncertainty,sensitivity -noise emit_noise.txt -absorption ch4.csv "
      "radiance.img ch4.tif",
      "With its uncertainty and sensitivity"},
     {"gdal_hsi_gas -method none -plumes plumes.gpkg -wind 3.2 ch4_map.tif",
      "Plumes of an orthorectified enhancement, with mass and flux"}},
    "",
    gas_tool::declare};

} // namespace tools
} // namespace hsi
