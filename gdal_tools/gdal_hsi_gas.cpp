// SPDX-License-Identifier: MIT
// gdal_hsi_gas: from radiance to the enhancement of methane or carbon dioxide, each group of columns against
// its own background, in one pass.
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "gas/gas.h"
#include "gdal_hsi_gas/settings.h"
#include "raster/output_set.h"
#include "raster/raster_source.h"
#include "shared/column_tiles.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/scene.h"

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
    size_t found = 0;
    for (const auto& [name, output] : output_names) {
        const auto count =
            words ? std::count_if(words->begin(), words->end(),
                                  [&, name = name](const auto& w) { return equal_names(w, name); })
                  : 0;
        if (count > 0) outputs.push_back(output);
        found += static_cast<size_t>(count);
    }
    if (!words || words->empty() || found != words->size())
        throw UsageError("-output: '" + text +
                             "' is not a list of enhancement, uncertainty, sensitivity and albedo",
                         "Write -output enhancement,uncertainty.");
    return outputs;
}

std::optional<double> number_of(const std::string& text) {
    const double v = raster::table_number(text);
    return std::isfinite(v) ? std::optional<double>(v) : std::nullopt;
}

void take_groups(Settings& s) {
    if (!equal_names(s.columns_text, "all")) {
        const auto v = number_of(s.columns_text);
        constexpr double most = 1e9;
        if (!v || *v != std::floor(*v))
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
            throw UsageError("-shrinkage ledoit-wolf cannot be used with -method mag1c",
                             "Give a number from 0 to 1, or -method mf.");
        return;
    }
    const auto v = number_of(s.shrinkage_text);
    if (!v) throw UsageError("-shrinkage: '" + s.shrinkage_text + "' is not none, ledoit-wolf or a number");
    if (*v < 0 || *v > 1) throw UsageError("-shrinkage: " + s.shrinkage_text + " is out of range (0 to 1)");
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
        throw UsageError("-output albedo cannot be used with -no-albedo");
    if (s.absorption.empty())
        throw UsageError("the unit absorption is missing",
                         "Give -absorption FILE, the change of ln(radiance) per ppm m.");
    take_groups(s);
}

Settings& settle(Settings& s, const tool::Call& call) {
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
                     {"HSI_GAS_ABSORPTION", s.absorption},
                     {"HSI_GAS_RANGE", joined(s.range_texts, ", ")},
                     {"HSI_GAS_BACKGROUND", "columns " + (s.columns ? std::to_string(*s.columns) : "all")},
                     {"HSI_GAS_SHRINKAGE", s.shrinkage_text}};
    if (s.how == How::mag1c) spec.metadata["HSI_GAS_ITERATIONS"] = std::to_string(s.filter.iterations);
    return spec;
}

/// What the groups are, and which have no values. \throws Error when there is none that has.
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
        "Background: " + counted(groups, "group") + ", " + std::to_string(least) + " pixels or more each" +
        (s.filter.ledoit_wolf ? ", shrinkage " + number(std::round(1e4 * *middle) / 1e4) + " (median)" : ""));
    if (shares.size() < groups)
        run.warn(counted(groups - shares.size(), "group has", "groups have") + " no values (" +
                 std::to_string(states[1]) + " with too few pixels, " + std::to_string(states[2]) +
                 " without an inverse of the covariance): " + counted(filter.in_bad_groups(), "valid pixel") +
                 " without a value. " + advice);
    else if (!s.filter.ledoit_wolf && s.filter.shrinkage == 0 && least < 2 * bands)
        run.warn("groups have as few as " + counted(least, "pixel") + " for " + counted(bands, "band") +
                 ": the filter keeps little of its contrast. " + advice);
}

void warn_of_reflectance(tool::Run& run, const raster::RasterSource& scene) {
    const std::string what = scene.facts().product + " " + scene.facts().bands.values.unit;
    if (what.find("L2") == std::string::npos && what.find("eflectance") == std::string::npos) return;
    run.warn(
        "src is not radiance (" + scene.facts().product +
        "): its atmosphere, and with it the gas, has been corrected. Give the radiance of the scene (L1)");
}

/// One pass over the scene, whose bands are those that the filter uses. False when no pixel is valid.
bool filter_scene(tool::Run& run, const Settings& s, const std::shared_ptr<raster::RasterSource>& scene,
                  const std::map<int, double>& absorption, bool again) {
    const auto shape = scene->shape();
    auto options = s.filter;
    for (const int band : scene->bands())
        options.absorption.push_back(absorption.at(band));
    if (!s.noise.empty()) options.noise = read_noise(run, s, *scene);
    raster::OutputSet outputs;
    outputs.plan(run.options().destination, spec_of(s, shape));
    outputs.check(*scene);
    if (!again) {
        tools::warn_of_map_columns(run, "-columns-per-group", *scene);
        warn_of_reflectance(run, *scene);
    }
    const auto& window = run.options().source.window;
    const stream::Columns columns{window ? window->x : 0,
                                  s.columns.value_or(shape.samples + (window ? window->x : 0))};
    const auto cube = tools::in_memory_for_columns(run, scene);
    const auto mask = run.masks_statistics() ? run.mask() : nullptr;
    const auto filter = gas::make_filter(shape, columns, options, mask.get());
    tool::write(run, *cube, *filter, outputs, scene.get(), [&] {
        auto pass = run.pass("filter", again ? 0 : cube != scene ? 0.8 : 1);
        if (cube != scene) tool::leave_room(pass, shape.float_bytes());
        tools::set_column_tiles("-columns-per-group", columns.width, *cube, *filter, pass);
        return pass;
    });
    if (filter->valid() + filter->in_bad_groups() == 0) return false;
    tool::report_invalid(run, filter->valid() + filter->in_bad_groups(), filter->invalid());
    report_groups(run, s, *filter, shape.bands);
    if (filter->dark() > 0)
        run.warn(counted(filter->dark(), "pixel has", "pixels have") +
                 " an albedo that is not above 0, and no value");
    outputs.commit();
    return true;
}

void run_gas(tool::Run& run, const Settings& s) {
    auto scene = run.open_source();
    if (const auto& values = scene->facts().bands.values; !values.scale.empty() || !values.offset.empty())
        scene = scene->scaled();
    tool::report_devices(run, {}, gas::simd_target());
    const auto k = unit_absorption(run, s, scene);
    std::map<int, double> absorption;
    for (size_t b = 0; b < k.size(); ++b)
        absorption[scene->bands()[b]] = k[b];
    run.report()["gas"] = {{"gas", s.name()}, {"bands", k.size()}};
    run.note(std::string(s.name()) + " by " + counted(k.size(), "band"));
    if (!tool::attempt(run, {tool::banded(scene)},
                       [&](bool again) { return filter_scene(run, s, scene, absorption, again); }))
        throw tool::no_valid_pixel(*scene);
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_mask("the background", true);
    args.add_destination(
        "The enhancement in ppm m, and further bands by -output; it appears when it is complete");
    args.choice<How>("method", s.how, "The filter",
                     {{"mag1c", How::mag1c, "matched filter with albedo and sparsity, iterated"},
                      {"mf", How::mf, "matched filter"},
                      {"lognormal", How::lognormal, "matched filter of the logarithm of radiance"}});
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
    args.output("save-absorption", s.save, Content::spectra,
                "Also write the unit absorption used to FILE (.csv or .sli)");
    args.option("columns-per-group", s.columns_text,
                "Each group of so many neighbouring columns of the file is its own background; all: one "
                "background")
        .shown_as("N|all");
    args.option("shrinkage", s.shrinkage_text,
                "Shrink the covariance of each group towards its diagonal by this share, 0 to 1, or by the "
                "estimate "
                "of Ledoit and Wolf (mf, lognormal)")
        .shown_as("none|V|ledoit-wolf");
    args.option("iterations", s.filter.iterations, "With mag1c: iterations").between(0, 10000);
    args.flag("no-albedo", s.no_albedo, "With mag1c: take all pixels as equally bright");
    args.flag("no-sparsity", s.no_sparsity,
              "With mag1c: without the prior that most pixels have no enhancement");
    args.option("output", s.output_text,
                "Bands of dst, in this order: enhancement, uncertainty (ppm m), sensitivity, albedo")
        .shown_as("LIST");
    args.input("noise", s.noise, Content::text,
               "The sensor's noise, for uncertainty: a text FILE with lines of wavelength (nm), A, B, D, "
               "whose noise "
               "at the radiance L is |A sqrt(L + B) + D|");
    args.option("radiance-scale", s.filter.radiance_scale,
                "A value times this is radiance in uW cm-2 sr-1 nm-1, for -noise: 0.1 for W m-2 "
                "sr-1 um-1, 100 for W m-2 sr-1 nm-1")
        .above(0);
    args.add_compute(false);
    args.check([&s](const tool::Call& call) { settle(s, call); });
    args.body([&s](tool::Run& run) { run_gas(run, s); });
}

} // namespace
} // namespace gas_tool

namespace tools {

extern constinit const tool::Definition gas{
    "gas",
    "Methane and carbon dioxide plumes",
    "Gas plumes: computes the enhancement of methane or carbon dioxide from the radiance of an imaging "
    "spectrometer (mag1c, matched filter, lognormal matched filter), each detector column against its own "
    "background.",
    {{"gdal_hsi_gas -absorption ch4.csv radiance.img ch4.tif", "Methane by mag1c"},
     {"gdal_hsi_gas -method mf -columns-per-group 5 -absorption ch4.csv radiance.img ch4.tif",
      "Methane by a matched filter, five columns together"},
     {"gdal_hsi_gas -output enhancement,uncertainty,sensitivity -noise emit_noise.txt -absorption ch4.csv "
      "radiance.img ch4.tif",
      "With its uncertainty and sensitivity"}},
    "",
    gas_tool::declare};

} // namespace tools
} // namespace hsi
