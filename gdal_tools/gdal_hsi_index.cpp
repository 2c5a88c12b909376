// SPDX-License-Identifier: MIT
// gdal_hsi_index: computes spectral indices of a scene or of a library, from a catalogue or from expressions,
// in one pass.
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "indices/indices.h"
#include "links/links.h"
#include "raster/output_set.h"
#include "shared/number_lists.h"
#include "shared/spectral_bands.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/scene.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace index_tool {

using indices::Operand;

/// An index that the user requested.
struct Asked {
    Asked(const indices::Index& one, bool may_lack)
        : index(one), expression(one.formula), optional(may_lack) {}
    indices::Index index;
    indices::Expression expression;
    /// True if the index was selected by its domain; such an index is omitted if the scene lacks a band.
    bool optional;
};

struct Settings {
    std::vector<std::string> names, expressions;
    indices::Choosing choosing;
    std::optional<double> scale;
    bool list = false, json = false;
    std::vector<Asked> asked;
};

// The requested indices
// ----------------------------------------------------------------------------------------------------------

[[noreturn]] void refuse_name(const std::string& word) {
    std::vector<std::string> names, alike;
    for (const auto& one : indices::catalogue()) {
        names.push_back(one.name);
        if (begins_like_any(one.name, {word})) alike.push_back(one.name);
    }
    if (std::any_of(alike.begin(), alike.end(),
                    [&](const auto& one) { return begins_like_any(one, {word + "_"}); }))
        throw UsageError("-name: several indices are called '" + word + "'",
                         "Choose " + joined(alike, " or ") + ".");
    const std::string near =
        alike.empty() ? did_you_mean(word, names) : "Did you mean " + joined(alike, " or ") + "?";
    throw UsageError("-name: unknown index '" + word + "'",
                     (near.empty() ? "" : near + " ") + "gdal_hsi_index -list lists all indices.");
}

void ask_by_name(Settings& s, const std::string& word) {
    bool found = false;
    for (const auto& one : indices::catalogue()) {
        const bool group = equal_names(word, "all") || equal_names(word, one.domain);
        if (!group && !equal_names(word, one.name)) continue;
        found = true;
        const auto same = std::find_if(s.asked.begin(), s.asked.end(),
                                       [&](const Asked& other) { return other.index.name == one.name; });
        if (same == s.asked.end())
            s.asked.emplace_back(one, group);
        else
            same->optional = same->optional && group;
    }
    if (!found) refuse_name(word);
}

void ask_by_expression(Settings& s, const std::string& text, size_t number) {
    size_t end = 0;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
        ++end;
    const size_t sign = std::min(text.find_first_not_of(' ', end), text.size());
    // "r800 = 3" is a comparison with one "=" too few, not a definition of an index named r800.
    const bool operand = text.size() > 1 &&
                         std::string_view("rRbB").find(text[0]) != std::string_view::npos &&
                         std::isdigit(static_cast<unsigned char>(text[1])) != 0;
    const bool named =
        end > 0 && !operand && text.compare(sign, 1, "=") == 0 && text.compare(sign, 2, "==") != 0;
    indices::Index one;
    one.name = named ? text.substr(0, end) : "expr" + std::to_string(number);
    one.formula = named ? text.substr(sign + 1) : text;
    try {
        s.asked.emplace_back(one, false);
    } catch (const UsageError& e) {
        throw UsageError(std::string("-expr: ") + e.what(), e.advice());
    }
}

void ask(Settings& s) {
    for (const auto& text : s.names) {
        const auto words = listed_words(text);
        if (!words) throw UsageError("-name: '" + text + "' is not a list of names", "Write -name NDVI,REP.");
        for (const auto& word : *words)
            ask_by_name(s, word);
    }
    for (size_t k = 0; k < s.expressions.size(); ++k)
        ask_by_expression(s, s.expressions[k], k + 1);
    for (size_t k = 0; k < s.asked.size(); ++k)
        for (size_t other = 0; other < k; ++other)
            if (equal_names(s.asked[k].index.name, s.asked[other].index.name))
                throw UsageError("two indices are called '" + s.asked[k].index.name + "'",
                                 "Give the expression another name with -expr NAME=EXPR.");
}

// The bands of the indices
// ----------------------------------------------------------------------------------------------------------

indices::Bands bands_of(const Settings& s, const raster::RasterSource& scene) {
    const auto count = static_cast<size_t>(scene.shape().bands);
    auto values = scene.facts().bands.values;
    indices::Bands bands{scene.facts().bands.wavelengths_nm, scene.facts().bands.fwhm_nm, scene.bands(),
                         std::move(values.scale), std::move(values.offset)};
    bands.wavelengths.resize(count, std::numeric_limits<double>::quiet_NaN());
    if (s.scale) {
        bands.scale.assign(count, *s.scale);
        bands.offset.clear();
    }
    return bands;
}

indices::Bands bands_of(const Settings& s, const raster::SpectralLibrary& library) {
    indices::Bands bands{library.wavelengths_nm, library.fwhm_nm, {}, {}, {}};
    bands.wavelengths.resize(library.bands(), std::numeric_limits<double>::quiet_NaN());
    for (size_t b = 0; b < library.bands(); ++b) {
        bands.numbers.push_back(static_cast<int>(b) + 1);
        if (std::none_of(library.spectra.begin(), library.spectra.end(),
                         [&](const auto& spectrum) { return std::isfinite(spectrum[b]); }))
            bands.wavelengths[b] = std::numeric_limits<double>::quiet_NaN();
    }
    if (s.scale) bands.scale.assign(library.bands(), *s.scale);
    return bands;
}

/// Returns the bands of an operand as text, such as "r800=band 41 (801.3 nm)" and "mean(r[500:599])=bands
/// 5-20 (503 nm - 598 nm)".
std::string bands_text(const Operand& operand, const indices::Term& term, const indices::Bands& bands) {
    const size_t first = term.sources.front(), last = term.sources.back();
    const bool several = first != last;
    std::string text = operand.text + (several ? "=bands " : "=band ") + std::to_string(bands.numbers[first]);
    if (several) text += "-" + std::to_string(bands.numbers[last]);
    if (!std::isfinite(bands.wavelengths[first])) return text;
    return text + " (" + tools::nm_text(bands.wavelengths[first]) +
           (several ? " - " + tools::nm_text(bands.wavelengths[last]) : "") + ")";
}

/// Returns the reason why the scene has too few bands for an operand.
std::string lack_text(const Operand& operand, const indices::Bands& bands) {
    if (operand.of == Operand::Of::band) return "there is no good band " + operand.text.substr(1);
    size_t near = bands.wavelengths.size();
    const auto distance = [&](size_t b) { return std::fabs(bands.wavelengths[b] - operand.from); };
    for (size_t b = 0; b < bands.wavelengths.size(); ++b)
        if (std::isfinite(bands.wavelengths[b]) &&
            (near == bands.wavelengths.size() || distance(b) < distance(near)))
            near = b;
    if (near == bands.wavelengths.size()) return "no band has a wavelength";
    const size_t least = indices::least_bands(operand.of);
    return (operand.is_range()
                ? operand.text + " needs " + counted(least, "good band")
                : "no good band represents " + operand.text + " (" + tools::nm_text(operand.from) + ")") +
           "; the nearest is band " + std::to_string(bands.numbers[near]) + " (" +
           tools::nm_text(bands.wavelengths[near]) + ")";
}

struct Planned {
    const Asked* asked;
    std::vector<indices::Term> terms;
    std::string bands_text;
};

/// Finds the bands of an index. Returns nullopt if the index cannot be computed; `lack` then holds the
/// reason.
std::optional<Planned> planned(const Settings& s, const Asked& asked, const indices::Bands& bands,
                               std::string& lack) {
    Planned plan{&asked, {}, {}};
    for (const Operand& operand : asked.expression.operands()) {
        plan.terms.push_back(indices::term_of(operand, bands, s.choosing));
        if (plan.terms.back().sources.empty()) {
            lack = lack_text(operand, bands);
            return std::nullopt;
        }
        plan.bands_text +=
            (plan.bands_text.empty() ? "" : ", ") + bands_text(operand, plan.terms.back(), bands);
    }
    return plan;
}

/// All indices, and the bands that they use.
struct Plan {
    std::vector<Planned> indices;
    std::vector<int> used;             ///< positions of the used bands in the scene, ascending
    indices::Bands bands;              ///< the used bands
    std::vector<std::string> formulas; ///< formula of each index; b1, b2, ... are the used bands
    std::vector<size_t> watched;       ///< positions in `used` of bands whose indices need reflectance
};

std::vector<double> chosen(const std::vector<double>& of, const std::vector<int>& places) {
    std::vector<double> list;
    for (const int place : places)
        if (!of.empty()) list.push_back(of[static_cast<size_t>(place)]);
    return list;
}

/// Returns the bands of an operand as part of an expression. A reader of a virtual scene then sees the
/// definition of the index.
std::string chosen_text(const Operand& operand, const indices::Term& term, const std::vector<int>& used) {
    if (operand.is_range()) return operand.text;
    std::string sum;
    for (size_t k = 0; k < term.sources.size(); ++k) {
        const auto place =
            std::lower_bound(used.begin(), used.end(), static_cast<int>(term.sources[k])) - used.begin();
        const std::string band = "b" + std::to_string(place + 1);
        if (term.sources.size() == 1) return band;
        sum += (k > 0 ? "+" : "") + tools::number_list({term.weights[k]}) + "*" + band;
    }
    return "(" + sum + ")";
}

Plan plan_of(tool::Run& run, const Settings& s, const std::string& path, const indices::Bands& bands) {
    Plan plan;
    std::vector<std::string> lacking;
    for (const Asked& asked : s.asked) {
        if (asked.expression.operands().empty())
            throw UsageError("-expr " + asked.index.name + "=" + asked.expression.text() + " uses no band",
                             "Write an expression with bands: (r800-r670)/(r800+r670), b12.");
        std::string lack;
        if (auto one = planned(s, asked, bands, lack))
            plan.indices.push_back(std::move(*one));
        else if (asked.optional)
            lacking.push_back(asked.index.name);
        else
            throw Error(asked.index.name + ": " + lack + " in " + path,
                        "Leave the index out, or choose bands with -choice, -tolerance or -width.");
    }
    if (plan.indices.empty() && std::none_of(bands.wavelengths.begin(), bands.wavelengths.end(),
                                             [](double nm) { return std::isfinite(nm); }))
        throw Error(path + " has no wavelengths", tools::advice_on_wavelengths());
    if (plan.indices.empty())
        throw Error(path + " does not have the bands of any of these indices",
                    "gdal_hsi_index -list SCENE lists the indices that a scene supports.");
    if (!lacking.empty()) run.note("Left out, since bands are missing: " + joined(lacking, ", "));
    std::set<int> used, watched;
    for (const Planned& one : plan.indices)
        for (const auto& term : one.terms) {
            used.insert(term.sources.begin(), term.sources.end());
            if (one.asked->index.reflectance) watched.insert(term.sources.begin(), term.sources.end());
        }
    plan.used.assign(used.begin(), used.end());
    plan.bands = {chosen(bands.wavelengths, plan.used),
                  {},
                  {},
                  chosen(bands.scale, plan.used),
                  chosen(bands.offset, plan.used)};
    for (const int band : watched)
        plan.watched.push_back(static_cast<size_t>(std::distance(used.begin(), used.find(band))));
    Json report = Json::array();
    for (const Planned& one : plan.indices) {
        const auto& expression = one.asked->expression;
        plan.formulas.push_back(expression.with_operands(
            [&](size_t k) { return chosen_text(expression.operands()[k], one.terms[k], plan.used); }));
        report.push_back(
            {{"name", one.asked->index.name}, {"formula", expression.text()}, {"bands", one.bands_text}});
    }
    run.report()["indices"] = report;
    return plan;
}

void warn_of_scale(tool::Run& run, const Plan& plan, int64_t outside, int64_t values) {
    constexpr int64_t percent = 100;
    if (percent * outside <= values) return;
    std::vector<std::string> names;
    for (const Planned& one : plan.indices)
        if (one.asked->index.reflectance) names.push_back(one.asked->index.name);
    constexpr size_t shown = 3;
    if (names.size() > shown + 1) {
        names[shown] = std::to_string(names.size() - shown) + " others";
        names.resize(shown + 1);
    }
    run.warn(std::to_string(percent * outside / values) + " % of the values that " + joined(names, ", ") +
             " use are outside -0.5 to 1.5, but these indices need reflectance: give the factor to "
             "reflectance, such as -scale 0.0001");
}

// A scene
// ----------------------------------------------------------------------------------------------------------

raster::OutputSpec spec_of(const raster::RasterSource& scene, const Plan& plan) {
    raster::OutputSpec spec;
    spec.shape = {scene.shape().samples, scene.shape().lines, static_cast<int>(plan.indices.size())};
    spec.holes = true;
    for (const Planned& one : plan.indices) {
        raster::BandSpec band;
        band.description = one.asked->index.name;
        band.unit = one.asked->index.unit;
        band.metadata = {{"HSI_INDEX_FORMULA", one.asked->expression.text()},
                         {"HSI_INDEX_BANDS", one.bands_text}};
        spec.bands.push_back(std::move(band));
    }
    return spec;
}

void write_virtual(tool::Run& run, const raster::RasterSource& scene, const Plan& plan) {
    tool::write_virtual(
        run, run.options().destination, spec_of(scene, plan), scene,
        [&] { return links::index_bands(scene.shape().bands, plan.formulas, plan.bands); },
        [&] {
            std::vector<raster::VirtualBand> bands;
            for (const auto& formula : plan.formulas) {
                raster::VirtualBand one;
                one.function = "hsi_index";
                one.arguments = {{"expr", formula}};
                if (formula.find('[') != std::string::npos)
                    one.arguments.emplace_back("wavelengths", tools::number_list(plan.bands.wavelengths));
                if (!plan.bands.scale.empty())
                    one.arguments.emplace_back("scale", tools::number_list(plan.bands.scale));
                if (!plan.bands.offset.empty())
                    one.arguments.emplace_back("offset", tools::number_list(plan.bands.offset));
                bands.push_back(std::move(one));
            }
            return bands;
        });
}

/// Makes the pass. Returns false if no pixel is valid.
bool compute(tool::Run& run, const Settings& s, const std::shared_ptr<raster::RasterSource>& all,
             double share) {
    const auto plan = plan_of(run, s, all->path(), bands_of(s, *all));
    const auto scene = tool::only_bands(all, plan.used);
    raster::OutputSet outputs;
    outputs.plan(run.options().destination, spec_of(*scene, plan));
    outputs.check(*scene);
    const auto operation =
        indices::make_indices(scene->shape().bands, plan.formulas, plan.bands, plan.watched);
    tool::write(run, *scene, *operation, outputs, scene.get(), [&] { return run.pass("indices", share); });
    if (operation->valid() == 0) return false;
    tool::report_invalid(run, operation->valid(), operation->invalid());
    warn_of_scale(run, plan, operation->outside(),
                  operation->valid() * static_cast<int64_t>(plan.watched.size()));
    outputs.commit();
    return true;
}

void run_scene(tool::Run& run, const Settings& s, std::shared_ptr<raster::RasterSource> scene) {
    if (raster::is_virtual(run.options().destination)) {
        auto plan = plan_of(run, s, scene->path(), bands_of(s, *scene));
        auto used = tool::only_bands(scene, plan.used);
        if (const auto before = used->bands(); tool::leave_out_unseen_bands(run, used)) {
            std::vector<int> empty;
            for (size_t k = 0, left = 0; k < before.size(); ++k)
                if (left < used->bands().size() && used->bands()[left] == before[k])
                    ++left;
                else
                    empty.push_back(plan.used[k]);
            scene = scene->without_bands(empty);
            plan = plan_of(run, s, scene->path(), bands_of(s, *scene));
            used = tool::only_bands(scene, plan.used);
        }
        return write_virtual(run, *used, plan);
    }
    tool::report_devices(run, {}, nullptr);
    if (!tool::attempt(run, {tool::banded(scene)},
                       [&](bool again) { return compute(run, s, scene, again ? 0 : 1); }))
        throw tool::no_valid_pixel(*scene);
}

// A library
// ----------------------------------------------------------------------------------------------------------

void run_library(tool::Run& run, const Settings& s, const raster::SpectralLibrary& library) {
    const auto& o = run.options();
    const auto output = run.text_output("dst", o.destination.path, o.destination.overwrite);
    raster::check_text_output(output);
    const auto plan = plan_of(run, s, o.source.path, bands_of(s, library));
    std::vector<std::vector<double>> spectra;
    for (const auto& spectrum : library.spectra)
        spectra.push_back(chosen(spectrum, plan.used));
    int64_t outside = 0;
    for (const auto& spectrum : spectra)
        outside += std::count_if(plan.watched.begin(), plan.watched.end(), [&](size_t b) {
            // True if the scaled value is below -0.5 or above 1.5.
            return std::fabs(spectrum[b] * s.scale.value_or(1) - 0.5) > 1;
        });
    std::string table = "name";
    for (const Planned& one : plan.indices)
        table += "," + csv_cell(one.asked->index.name);
    const auto results = indices::indices_of(spectra, plan.formulas, plan.bands);
    for (size_t k = 0; k < results.size(); ++k) {
        table += "\n" + csv_cell(library.names[k]);
        for (const double v : results[k])
            table += "," + (std::isfinite(v) ? tools::short_number(v) : std::string());
    }
    tool::end_of_plan(run,
                      [&] { run.print(counted(results.size(), "line") + " of text; no output is written"); });
    warn_of_scale(run, plan, outside, static_cast<int64_t>(spectra.size() * plan.watched.size()));
    raster::write_text_output(output, table + "\n");
}

// The catalogue
// ----------------------------------------------------------------------------------------------------------

void print_catalogue(tool::Run& run, const Settings& s) {
    run.only_print();
    std::optional<indices::Bands> bands;
    if (!run.options().source.path.empty()) {
        const auto source = tools::open_scene_or_library(run);
        bands = source.scene ? bands_of(s, *source.scene) : bands_of(s, *source.library);
    }
    OrderedJson all = OrderedJson::array();
    for (const auto& index : indices::catalogue()) {
        const Asked asked(index, true);
        std::set<double> wavelengths, numbers;
        std::vector<std::string> shown;
        for (const Operand& operand : asked.expression.operands())
            wavelengths.insert({operand.from, operand.to});
        for (const double nm : wavelengths)
            shown.push_back(tools::short_number(nm));
        std::string lack;
        const auto plan = bands ? planned(s, asked, *bands, lack) : std::nullopt;
        if (plan)
            for (const auto& term : plan->terms)
                for (const size_t b : term.sources)
                    numbers.insert(bands->numbers[b]);
        all.push_back({{"name", index.name},
                       {"formula", index.formula},
                       {"domain", index.domain},
                       {"citation", index.citation},
                       {"wavelengths_nm", wavelengths},
                       {"reflectance", index.reflectance},
                       {"supported", bands ? OrderedJson(plan.has_value()) : OrderedJson()},
                       {"bands", bands ? OrderedJson(std::vector<int>(numbers.begin(), numbers.end()))
                                       : OrderedJson()}});
        if (s.json) continue;
        run.print(index.name + ": " + index.formula + "\n    " + joined(shown, ", ") + " nm; " +
                  index.citation);
        if (bands) run.print("    " + (plan ? plan->bands_text : "not supported: " + lack));
    }
    if (s.json) run.print(OrderedJson{{"indices", all}}.dump(1));
}

void declare(tool::Builder& args) {
    using indices::Choice;
    auto& s = args.settings<Settings>();
    args.add_source().required = false; // -list needs no src
    args.add_destination("The indices: a raster with one band per index, or .csv for a library").required =
        false;
    args.computes_dst();
    args.add_mask("the indices", true);
    args.add_compute(false);
    args.option("name", s.names,
                "Indices; a domain (vegetation, pigment ..) or all: the indices for which the scene has the "
                "bands")
        .shown_as("NAME[,NAME]");
    args.option("expr", s.expressions,
                "An expression, optionally with a name: 'ratio=r800/r670', mean(r[630:690]), b12")
        .shown_as("[NAME=]EXPR");
    args.choice("choice", s.choosing.choice, "How the value at a wavelength is found",
                {{"nearest", Choice::nearest, "the nearest good band within -tolerance"},
                 {"linear", Choice::linear,
                  "linear interpolation between the bands around it, at most 4 tolerances apart"},
                 {"average", Choice::average, "the mean of the good bands within half of -width"},
                 {"response", Choice::response, "a band with the FWHM -width, as by gdal_hsi_resample"}});
    args.option("tolerance", s.choosing.tolerance, "Maximum distance of a band from the wavelength")
        .from(0)
        .in_unit("nm");
    args.option("width", s.choosing.width, "Width of -choice average and response").above(0).in_unit("nm");
    args.option("scale", s.scale, "Factor from stored values to reflectance; 0.0001 for per cent times 100")
        .above(0)
        .shown_as("V")
        .defaults_to("scale and offset of the file");
    args.flag("list", s.list, "Print the catalogue; with src, also the bands that each index would use");
    args.flag("json", s.json, "Print -list as JSON");
    for (const char* const other : {"name", "expr", "scale", "mask", "mask-exclude"})
        args.exclusive("list", other);
    args.check([&s](const tool::Call& call) {
        const tool::CommonOptions& o = call.options();
        const Choice choice = s.choosing.choice;
        const bool near = choice == Choice::nearest || choice == Choice::linear;
        if (call.given("tolerance") && !near)
            throw UsageError("-tolerance requires -choice nearest or linear");
        if (call.given("width") && near) throw UsageError("-width requires -choice average or response");
        if (s.json && !s.list) throw UsageError("-json requires -list");
        if (s.list && !o.destination.path.empty())
            throw UsageError(tool::cannot_be_used_with("dst", "-list"));
        if (s.list) return;
        if (o.source.path.empty()) throw UsageError("src is missing");
        if (o.destination.path.empty()) throw UsageError("dst is missing");
        if (s.names.empty() && s.expressions.empty())
            throw UsageError(
                "the indices are missing",
                "Give -name NDVI or -expr 'r800/r670'; gdal_hsi_index -list lists the catalogue.");
        ask(s);
        if (o.mask.given()) tool::check_mask_use(o.mask, false, "gdal_hsi_index");
    });
    args.body([&s](tool::Run& run) {
        if (s.list) return print_catalogue(run, s);
        auto source = tools::open_scene_or_library(run);
        if (source.library) return run_library(run, s, *source.library);
        run_scene(run, s, std::move(source.scene));
    });
}

} // namespace index_tool
} // namespace

namespace tools {

extern constinit const tool::Definition index{
    "index",
    "Spectral indices",
    "Spectral indices: computes vegetation, pigment, moisture, soil, water, burn and mineral indices of a "
    "catalogue, or "
    "expressions over the spectrum, at the bands of a scene or of a spectral library.",
    {{"gdal_hsi_index -name NDVI,REP,CAI scene.img indices.tif", "Three indices of the catalogue"},
     {"gdal_hsi_index -name vegetation scene.img vegetation.tif",
      "All vegetation indices for which the scene has the bands"},
     {"gdal_hsi_index -expr 'ratio=mean(r[770:800])/r670' scene.img ratio.tif", "Your own expression"},
     {"gdal_hsi_index -name PRI -choice response -of VRT scene.img pri.vrt", "Computed when it is displayed"},
     {"gdal_hsi_index -list scene.img", "Which bands each index would use"}},
    "",
    index_tool::declare};

} // namespace tools
} // namespace hsi
