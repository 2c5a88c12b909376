// SPDX-License-Identifier: MIT
#include "tool/call.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "raster/drivers.h"
#include "tool/definition.h"
#include "tool/memory_plan.h"
#include "tool/phrases.h"
#include "tool/words.h"
#include "tool/workers.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace hsi::tool {
namespace {

double number_of(const std::string& text, const std::string& option, const std::string& allowed) {
    const auto value = parse_number(text);
    if (!value) throw UsageError(option + ": '" + text + "' is not a number", allowed);
    return *value;
}

bool ends_in_csv(const std::string& path) {
    constexpr size_t length = 4;
    return path.size() > length && equal_names(path.substr(path.size() - length), ".csv");
}

void check_pairs(const std::vector<std::string>& pairs, const std::string& option) {
    for (const std::string& pair : pairs)
        if (const size_t equal = pair.find('='); equal == std::string::npos || equal == 0)
            throw UsageError(option + ": '" + pair + "' is not NAME=VALUE");
}

/// Returns GDAL's name of a real pixel type, which the user may write in any case.
std::string pixel_type(const std::string& text) {
    if (text.empty()) return text;
    const auto real = raster::pixel_types();
    for (const std::string& name : real)
        if (equal_names(name, text)) return name;
    throw UsageError("-ot: '" + text + "' is not a pixel type for real numbers",
                     "Use one of " + joined(real, ", ") + ".");
}

} // namespace

const Given& Call::given_to(const Argument& argument) const {
    static const Given nothing;
    const auto found = m_given.find(&argument);
    return found == m_given.end() ? nothing : found->second;
}

bool Call::given(const std::string& name) const {
    const Argument* argument = find(name);
    return argument != nullptr && given_to(*argument).count > 0;
}

void Call::give(const std::string& name, const std::vector<std::string>& words) {
    const Argument* argument = find(name);
    if (argument == nullptr) throw UsageError("unknown argument '" + name + "'");
    if (argument->lists && words.size() == 1 && words.front().rfind('@', 0) == 0) {
        auto all = words;
        all.resize(static_cast<size_t>(argument->values));
        return give(name, all);
    }
    if (static_cast<int>(words.size()) != argument->values)
        throw UsageError(argument->spelling() + ": " + counted(argument->values, "value is", "values are") +
                         " needed, but " + std::to_string(words.size()) +
                         worded(words.size(), " was", " were") + " given");
    Given& taken = m_given[argument];
    ++taken.count;
    taken.words.insert(taken.words.end(), words.begin(), words.end());
}

bool Call::excluded(const std::string& name) const {
    const auto& exclusions = m_declaration.exclusions();
    return std::any_of(exclusions.begin(), exclusions.end(), [&](const auto& pair) {
        return (pair.first == name && given(pair.second)) || (pair.second == name && given(pair.first));
    });
}

void Call::finish() {
    for (const Argument& argument : arguments()) {
        const int count = given_to(argument).count;
        if (count > 1 && !argument.repeatable && argument.type != Type::flag)
            throw UsageError(argument.spelling() + " is given " + std::to_string(count) + " times");
        if (argument.required && count == 0) throw UsageError(argument.spelling() + " is missing");
    }
    for (size_t i = 0; i < arguments().size(); ++i) {
        const Argument& argument = arguments()[i];
        const Given& taken = given_to(argument);
        if (taken.count == 0) continue;
        m_declaration.m_assign[i](argument, taken.words);
        if (argument.content != Content::none && taken.words.front().empty())
            throw UsageError(argument.spelling() + " is empty", "Give the name of a file.");
    }
    for (const auto& [one, other] : m_declaration.exclusions())
        if (given(one) && given(other))
            throw UsageError(cannot_be_used_with("-" + one, "-" + other), "Leave one of them out.");
    if (options().report_append && options().report.empty())
        throw UsageError(option_requires("-report-append", "-report"), "Also give -report FILE.json.");
    if (!options().destination.stac.datetime.empty() && options().destination.stac.path.empty())
        throw UsageError(option_requires("-stac-datetime", "-stac"), "Also give -stac FILE.json.");
    resolve();
}

std::string Call::first_output() const {
    if (!options().destination.path.empty()) return options().destination.path;
    for (const Argument& argument : arguments())
        if (argument.role == Role::output && given_to(argument).count > 0)
            return given_to(argument).words.front();
    return m_declaration.m_first_output ? m_declaration.m_first_output() : std::string();
}

void Call::run_checks() const {
    for (const auto& checker : m_declaration.m_checks)
        checker(*this);
}

void Call::resolve() {
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    CommonOptions& o = options();
    const SharedTexts& raw = *m_declaration.m_texts;
    check_pairs(o.source.open_options, "-oo");
    if (names_wavelengths(raw.bands))
        o.source.choices = parse_band_choices(raw.bands);
    else
        o.source.bands = parse_band_list(raw.bands);
    o.source.excluded = parse_excluded_ranges(raw.excluded);
    o.source.use_bbl = !equal_names(raw.bad_bands, "ignore");
    if (o.source.use_bbl && !equal_names(raw.bad_bands, "use")) {
        if (!ends_in_csv(raw.bad_bands))
            throw UsageError("-bbl: '" + raw.bad_bands + "' is not one of use, ignore, FILE.csv");
        o.source.bad_bands = raw.bad_bands;
    }
    if (given("srcwin")) {
        int64_t v[4];
        for (size_t i = 0; i < 4; ++i)
            v[i] = integer_of(raw.window[i], "-srcwin", i < 2 ? 0 : 1, most,
                              i < 2 ? "an offset: a whole number from 0 on"
                                    : "a size: a whole number from 1 on");
        o.source.window = Rect{v[0], v[1], v[2], v[3]};
    }
    if (given("srcnodata"))
        o.source.nodata = number_of(raw.source_nodata, "-srcnodata", "Give a number or nan.");
    check_pairs(o.destination.creation_options, "-co");
    o.destination.grows = o.source.follow.has_value();
    o.destination.type = pixel_type(o.destination.type);
    if (given("dstnodata"))
        o.destination.nodata = number_of(raw.nodata, "-dstnodata", "Give a number or nan.");
    o.device = parse_device(raw.device);
    if (o.ranks > 0 && !o.dry_run)
        throw UsageError("-ranks " + std::to_string(o.ranks) + " requires -dry-run",
                         "Start processes with mpirun -n " + std::to_string(o.ranks) + " or srun.");
    if (o.ranks > 1 && definition().one_process)
        throw UsageError("-ranks: this tool uses one process", "Leave it out.");
    // As with mpirun without further options, all processes share one machine.
    const int sharing = std::max(1, o.ranks);
    o.memory = memory_bytes(raw.memory, sharing);
    o.device_memory = device_memory_bytes(raw.device_memory);
    o.threads = thread_count(raw.threads, given("threads") || !m_declaration.m_has_compute, sharing);
    if (given("tile")) {
        const std::string allowed = "a tile size: a whole number from 1 on";
        o.tile_samples = integer_of(raw.tile[0], "-tile", 1, most, allowed);
        o.tile_lines = integer_of(raw.tile[1], "-tile", 1, most, allowed);
    }
    if (o.report.rfind("/dev/stdout", 0) == 0 && o.destination.path.rfind("/vsistdout", 0) == 0)
        throw UsageError("-report and dst both name standard output", "Use a file for one of them.");
}

} // namespace hsi::tool
