// SPDX-License-Identifier: MIT
#include "tool/definition.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "raster/sample_convert.h"
#include "tool/memory_plan.h"
#include "tool/words.h"
#include "tool/workers.h"

#include <gdal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <utility>

namespace hsi::tool {

namespace {

constexpr int max_ranks = 1 << 20;
constexpr const char* input_group = "Input";
constexpr const char* output_group = "Output";
constexpr const char* compute_group = "Computing";

double number_of(const std::string& text, const std::string& option, const std::string& allowed) {
    const auto value = parse_number(text);
    if (!value) throw UsageError(option + ": '" + text + "' is not a number", allowed);
    return *value;
}

void check_pairs(const std::vector<std::string>& pairs, const std::string& option) {
    for (const std::string& pair : pairs)
        if (const size_t equal = pair.find('='); equal == std::string::npos || equal == 0)
            throw UsageError(option + ": '" + pair + "' is not NAME=VALUE");
}

/// GDAL's name of a real pixel type, whatever the case it was written in.
std::string pixel_type(const std::string& text) {
    if (text.empty()) return text;
    const auto real = pixel_types();
    for (const std::string& name : real)
        if (equal_names(name, text)) return name;
    throw UsageError("-ot: '" + text + "' is not a pixel type for real numbers",
                     "Use one of " + joined(real, ", ") + ".");
}

/// While it lives, what is declared is shared by tools.
class SharedArguments {
  public:
    explicit SharedArguments(bool& shared) : m_shared(shared), m_before(std::exchange(shared, true)) {}
    ~SharedArguments() { m_shared = m_before; }
    SharedArguments(const SharedArguments&) = delete;
    SharedArguments& operator=(const SharedArguments&) = delete;

  private:
    bool& m_shared;
    bool m_before;
};

} // namespace

std::vector<std::string> pixel_types() {
    std::vector<std::string> real;
    for (int t = GDT_Byte; t < GDT_TypeCount; ++t) {
        const auto type = static_cast<GDALDataType>(t);
        // Neither complex numbers nor what newer GDALs have and readers and writers here do not: Float16.
        if (const char* name = GDALGetDataTypeName(type); name != nullptr && raster::convertible(type))
            real.emplace_back(name);
    }
    return real;
}

namespace detail {

std::vector<std::string> split_lists(const std::vector<std::string>& words) {
    std::vector<std::string> parts;
    for (const std::string& word : words) {
        std::istringstream list(word + ",");
        for (std::string part; std::getline(list, part, ',');)
            parts.push_back(part);
    }
    return parts;
}

} // namespace detail

/// The shared options as they stand on the command line; resolve() reads them.
struct Call::Raw {
    std::vector<std::string> bands, excluded;
    std::array<std::string, 4> window;
    std::array<std::string, 2> tile;
    bool use_bad_band_list = true;
    std::string source_nodata, nodata;
    std::string device = "auto", memory = default_memory, device_memory, threads = "ALL_CPUS";
};

Call::Call(const Definition& definition) : m_definition(definition), m_raw(std::make_unique<Raw>()) {
    definition.declare(*this);
}
Call::~Call() = default;

// --- Declaring
// -----------------------------------------------------------------------------------------------------------

Argument& Call::add(const std::string& name, const std::string& summary, Type type, int values) {
    Argument& argument = m_arguments.emplace_back();
    argument.name = name;
    argument.summary = summary;
    argument.type = type;
    argument.values = values;
    argument.shared = m_shared;
    if (values > 0) argument.value_name = type == Type::integer ? "N" : type == Type::number ? "V" : "TEXT";
    return argument;
}

Argument& Call::flag(const std::string& name, bool& variable, const std::string& summary) {
    Argument& argument = add(name, summary, Type::flag, 0);
    argument.assign = [&variable](const Argument&) { variable = true; };
    return argument;
}

Argument& Call::choose(const std::string& name, const std::string& summary, std::vector<Choice> choices,
                       size_t preset, std::function<void(size_t)> take) {
    Argument& argument = add(name, summary, Type::text, 1);
    argument.choices = std::move(choices);
    if (preset < argument.choices.size()) argument.default_value = argument.choices[preset].name;
    std::vector<std::string> names;
    for (const Choice& choice : argument.choices)
        names.push_back(choice.name);
    argument.value_name = joined(names, "|");
    argument.assign = [take = std::move(take)](const Argument& given) {
        take(choice_in(given, given.words.front()));
    };
    return argument;
}

Argument& Call::file(const std::string& name, std::string& path, Role role, Content content,
                     const std::string& summary, bool positional) {
    Argument& argument = option(name, path, summary);
    argument.role = role;
    argument.content = content;
    argument.positional = argument.required = positional;
    argument.value_name = "FILE";
    if (positional) argument.group = "Arguments";
    return argument;
}

Argument& Call::input(const std::string& name, std::string& path, Content content,
                      const std::string& summary) {
    return file(name, path, Role::input, content, summary, false);
}
Argument& Call::output(const std::string& name, std::string& path, Content content,
                       const std::string& summary) {
    return file(name, path, Role::output, content, summary, false);
}
Argument& Call::input_argument(const std::string& name, std::string& path, Content content,
                               const std::string& summary) {
    return file(name, path, Role::input, content, summary, true);
}
Argument& Call::output_argument(const std::string& name, std::string& path, Content content,
                                const std::string& summary) {
    return file(name, path, Role::output, content, summary, true);
}

Argument& Call::words(const std::string& name, std::vector<std::string>& variable,
                      const std::string& summary) {
    Argument& argument = option(name, variable, summary);
    argument.positional = argument.required = argument.takes_rest = true;
    argument.group = "Arguments";
    return argument;
}

void Call::add_source() {
    const SharedArguments shared(m_shared);
    m_has_source = true;
    auto& o = m_options.source;
    file("src", o.path, Role::source, Content::raster,
         "The scene: anything that GDAL opens, or a .mat of MATLAB's", true);
    add_reading();
}

void Call::add_sources(std::vector<std::string>& paths, const std::string& summary) {
    const SharedArguments shared(m_shared);
    Argument& argument = option("scene", paths, summary);
    argument.role = Role::source;
    argument.content = Content::raster;
    argument.positional = true;
    argument.value_name = "FILE";
    argument.group = "Arguments";
    add_reading();
}

void Call::add_reading() {
    auto& o = m_options.source;
    option("b", m_raw->bands,
           "Bands, counted from 1 (-b 1-30,45) or by wavelength: -b 450-900nm, -b 0.45-0.9um; of one "
           "wavelength (-b 2100nm) the nearest band")
        .shown_as("LIST")
        .defaults_to("all that the bad-band list does not mark")
        .under(input_group);
    option("exclude-range", m_raw->excluded,
           "Leave out the bands between two wavelengths: -exclude-range 1340-1460nm")
        .shown_as("RANGE")
        .under(input_group);
    choice<bool>("bbl", m_raw->use_bad_band_list, "Bands that the file's bad-band list marks",
                 {{"use", true, "leave them out"}, {"ignore", false, "take all bands"}})
        .under(input_group);
    option("srcwin", m_raw->window, "Window of the scene; statistics are those of the window")
        .shown_as("XOFF YOFF XSIZE YSIZE")
        .in_unit("pixels")
        .defaults_to("the whole scene")
        .under(input_group);
    option("srcnodata", m_raw->source_nodata, "Nodata value of src; NaN is always nodata")
        .shown_as("V")
        .defaults_to("the file's")
        .under(input_group);
    option("if", o.drivers, "Let only this driver open src")
        .shown_as("FORMAT")
        .speaks(Vocabulary::raster_drivers)
        .under(input_group);
    option("oo", o.open_options, "Open option of the driver").shown_as("NAME=VALUE").under(input_group);
}

void Call::add_mask(const std::string& what, bool outputs) {
    const SharedArguments shared(m_shared);
    auto& o = m_options.mask;
    input("mask", o.only, Content::labels,
          "Only these pixels count in " + what +
              ": where the raster FILE is not 0, or inside the features of the vector FILE")
        .under(input_group);
    input("mask-exclude", o.without, Content::labels,
          "These pixels do not count in " + what +
              " (clouds, water): where the raster FILE is not 0, or inside the features of the vector FILE")
        .under(input_group);
    if (!outputs) return;
    flag("mask-output", o.outputs,
         "Pixels that do not count become nodata in the outputs, too; without this all valid pixels get a "
         "value")
        .under(input_group);
    check([this](const CommonOptions& options) {
        if (!options.mask.outputs) return;
        if (!options.mask.given())
            throw UsageError("-mask-output means nothing without a mask",
                             "Give one with -mask FILE or -mask-exclude FILE.");
        if (m_has_destination && raster::RasterSink::is_virtual(options.destination))
            throw UsageError("-mask-output does not go with " +
                                 std::string(raster::RasterSink::virtual_kind(options.destination)) +
                                 ": it is computed from the scene, which knows no mask",
                             "Write another format, or leave out -mask-output.");
    });
}

void Call::add_follow() {
    option(
        "follow", m_options.source.follow,
        "src is a raw ENVI file (BIL or BIP) that is still being written: take its lines as they come, until "
        "nothing has come for so long or all are there that its header tells of")
        .above(0)
        .shown_as("SECONDS")
        .in_unit("seconds")
        .under(input_group);
    check([this](const CommonOptions& options) {
        if (!options.source.follow) return;
        for (const char* name : {"srcwin", "mask", "mask-exclude", "if-needed", "if", "oo"})
            if (given(name))
                throw UsageError("-follow does not go with -" + std::string(name) +
                                     ": the scene is one that is still being written",
                                 "Leave one of them out.");
        if (m_has_destination && raster::RasterSink::is_virtual(options.destination))
            throw UsageError("-follow does not go with " +
                                 std::string(raster::RasterSink::virtual_kind(options.destination)) +
                                 ", which computes when it is read",
                             "Name a raw ENVI file: .dat, .bil, .bip, or -of ENVI.");
    });
}

void Call::add_destination(const std::string& summary) {
    const SharedArguments shared(m_shared);
    m_has_destination = true;
    auto& o = m_options.destination;
    file("dst", o.path, Role::destination, Content::raster, summary, true);
    option("of", o.format, "Output format")
        .shown_as("FORMAT")
        .defaults_to("from the extension of dst, else GTiff")
        .speaks(Vocabulary::raster_drivers)
        .under(output_group);
    option("co", o.creation_options, "Creation option")
        .shown_as("NAME=VALUE")
        .defaults_to("for GTiff: TILED=YES, BIGTIFF=IF_SAFER")
        .under(output_group);
    option("ot", o.type, "Pixel type of dst: Byte, Int16, Float32 ...; values are rounded and clamped to it")
        .shown_as("TYPE")
        .defaults_to("the tool's own")
        .speaks(Vocabulary::pixel_types)
        .under(output_group);
    option("dstnodata", m_raw->nodata, "Nodata value of dst: a number, or nan")
        .shown_as("V")
        .defaults_to("the source's, else nan")
        .under(output_group);
    Argument& item = option(
        "stac", o.stac.path,
        "Also write a STAC Item of dst: place, time, bands, classes and how it was made, for catalogues");
    item.shown_as("FILE.json").under(output_group);
    item.content = Content::text; // an output, but not one of the body's: it is written with dst
    option("stac-datetime", o.stac.datetime,
           "When the scene of -stac was acquired: 2022-08-28T05:19:16Z, 2022-08-28, or START/END")
        .shown_as("TIME")
        .defaults_to("what the metadata of src tell")
        .under(output_group);
    overwrite(o.overwrite, "Replace dst when it is there; without this that is an error");
}

Argument& Call::overwrite(bool& variable, const std::string& summary) {
    Argument& replace = flag("overwrite", variable, summary).under(output_group);
    {
        const SharedArguments shared(m_shared);
        flag("if-needed", m_options.if_needed,
             "Do nothing when the outputs are those that this command has made before, with -if-needed, of "
             "the "
             "same inputs; else make them as -overwrite does")
            .under(output_group);
    }
    return replace;
}

void Call::add_compute(bool device) {
    const SharedArguments shared(m_shared);
    m_has_compute = true;
    if (device)
        option("device", m_raw->device,
               "Where to compute; auto: on a GPU if there is one and the run is likely to end sooner on it")
            .shown_as("auto|cpu|cuda[:I[,J..]]")
            .under(compute_group);
    option("memory", m_raw->memory,
           "Ceiling on host memory for buffers and GDAL's block cache: 2GB, 500MB, 25% (of the RAM)")
        .shown_as("SIZE")
        .under(compute_group);
    if (device)
        option("device-memory", m_raw->device_memory, "Ceiling on device memory: 8GB")
            .shown_as("SIZE")
            .defaults_to(default_device_memory)
            .under(compute_group);
    option("threads", m_raw->threads, "Threads, each of which reads, computes and writes")
        .shown_as("N|ALL_CPUS")
        .defaults_to("GDAL_NUM_THREADS, else ALL_CPUS")
        .under(compute_group);
    option("tile", m_raw->tile, "Work in tiles of this size")
        .shown_as("XSIZE YSIZE")
        .in_unit("pixels")
        .defaults_to("chosen from memory, file layout and halo")
        .under(compute_group);
    option("ranks", m_options.ranks,
           "With -dry-run: the plan for N processes (mpirun -n N) on a machine like this one")
        .between(1, max_ranks)
        .shown_as("N")
        .defaults_to("the processes of this run")
        .under(compute_group);
    add_report();
}

void Call::add_report() {
    const SharedArguments shared(m_shared);
    auto& o = m_options;
    const char* const group = m_has_compute ? compute_group : "Running";
    // An output, but not one of the body's: execute() registers and writes it.
    Argument& report =
        option("report", o.report,
               "Write a record of the run: versions, options, device, passes with bytes and seconds");
    report.shown_as("FILE.json").under(group);
    report.content = Content::text;
    flag("report-append", o.report_append,
         "Add the record to those that FILE.json of -report holds: one report for a chain of tools")
        .under(group);
    flag("dry-run", o.dry_run, "Check everything, print the plan, make no output but -report").under(group);
    flag("q", o.quiet, "No progress, no notes").also("quiet").under(group);
}

void Call::exclusive(const std::string& one, const std::string& other) {
    m_exclusions.emplace_back(one, other);
}
void Call::check(std::function<void(const CommonOptions&)> checker) {
    m_checks.push_back(std::move(checker));
}
void Call::body(std::function<void(Run&)> work) { m_body = std::move(work); }

// --- Being called
// -----------------------------------------------------------------------------------------------------------

const Argument* Call::find(const std::string& name) const {
    const auto has_name = [&](const Argument& a) {
        return a.name == name || (!name.empty() && a.option_name == name) ||
               std::find(a.aliases.begin(), a.aliases.end(), name) != a.aliases.end();
    };
    const auto found = std::find_if(m_arguments.begin(), m_arguments.end(), has_name);
    return found == m_arguments.end() ? nullptr : &*found;
}

bool Call::given(const std::string& name) const {
    const Argument* argument = find(name);
    return argument != nullptr && argument->count > 0;
}

void Call::give(const std::string& name, const std::vector<std::string>& words) {
    auto* argument = const_cast<Argument*>(find(name)); // one of m_arguments, which are not const here
    if (argument == nullptr) throw UsageError("there is no argument '" + name + "'");
    if (argument->lists && words.size() == 1 && words.front().rfind('@', 0) == 0) {
        auto all = words;
        all.resize(static_cast<size_t>(argument->values));
        return give(name, all);
    }
    if (static_cast<int>(words.size()) != argument->values)
        throw UsageError(argument->spelling() + ": " + counted(argument->values, "value is", "values are") +
                         " needed, " + std::to_string(words.size()) + worded(words.size(), " was", " were") +
                         " given");
    ++argument->count;
    argument->words.insert(argument->words.end(), words.begin(), words.end());
}

bool Call::excluded(const std::string& name) const {
    return std::any_of(m_exclusions.begin(), m_exclusions.end(), [&](const auto& pair) {
        return (pair.first == name && given(pair.second)) || (pair.second == name && given(pair.first));
    });
}

void Call::finish() {
    for (const Argument& argument : m_arguments) {
        if (argument.count > 1 && !argument.repeatable && argument.type != Type::flag)
            throw UsageError(argument.spelling() + " is given " + std::to_string(argument.count) + " times");
        if (argument.required && argument.count == 0) throw UsageError(argument.spelling() + " is missing");
    }
    for (const Argument& argument : m_arguments) {
        if (argument.count > 0) argument.assign(argument);
        if (argument.count > 0 && argument.content != Content::none && argument.words.front().empty())
            throw UsageError(argument.spelling() + " is empty", "A file's name belongs there.");
    }
    for (const auto& [one, other] : m_exclusions)
        if (given(one) && given(other))
            throw UsageError("-" + one + " and -" + other + " exclude one another", "Leave one of them out.");
    if (m_options.report_append && m_options.report.empty())
        throw UsageError("-report-append needs -report", "Give -report FILE.json, too.");
    if (!m_options.destination.stac.datetime.empty() && m_options.destination.stac.path.empty())
        throw UsageError("-stac-datetime needs -stac", "Give -stac FILE.json, too.");
    resolve();
}

std::string Call::first_output() const {
    if (!m_options.destination.path.empty()) return m_options.destination.path;
    for (const Argument& argument : m_arguments)
        if (argument.role == Role::output && argument.count > 0) return argument.words.front();
    return m_first_output ? m_first_output() : std::string();
}

void Call::run_checks() const {
    for (const auto& checker : m_checks)
        checker(m_options);
}

void Call::resolve() {
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    CommonOptions& o = m_options;
    Raw& raw = *m_raw;
    check_pairs(o.source.open_options, "-oo");
    if (names_wavelengths(raw.bands))
        o.source.choices = parse_band_choices(raw.bands);
    else
        o.source.bands = parse_band_list(raw.bands);
    o.source.excluded = parse_excluded_ranges(raw.excluded);
    o.source.use_bbl = raw.use_bad_band_list;
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
        throw UsageError("-ranks " + std::to_string(o.ranks) + " starts no processes",
                         "It is for -dry-run. mpirun -n " + std::to_string(o.ranks) +
                             " or srun starts them.");
    if (o.ranks > 1 && m_definition.one_process)
        throw UsageError("-ranks: one process is enough for this tool", "Leave it out.");
    const int sharing = std::max(1, o.ranks); // as mpirun's processes would, of whom nobody has said more
    o.memory = memory_bytes(raw.memory, sharing);
    o.device_memory = device_memory_bytes(raw.device_memory);
    o.threads = thread_count(raw.threads, given("threads") || !m_has_compute, sharing);
    if (given("tile")) {
        const std::string allowed = "a tile size: a whole number from 1 on";
        o.tile_samples = integer_of(raw.tile[0], "-tile", 1, most, allowed);
        o.tile_lines = integer_of(raw.tile[1], "-tile", 1, most, allowed);
    }
    if (o.report.rfind("/dev/stdout", 0) == 0 && o.destination.path.rfind("/vsistdout", 0) == 0)
        throw UsageError("-report and dst both name standard output", "Name a file for one of them.");
}

namespace {

[[noreturn]] void refuse(const Argument& argument, const std::string& text, const std::string& advice = {}) {
    throw UsageError(argument.spelling() + ": '" + text + "' is " + argument.allowed(), advice);
}

/// Throws unless the value is one that the argument allows.
void check_limits(const Argument& argument, double value, const std::string& text) {
    const bool low = argument.minimum &&
                     (argument.above_minimum ? !(value > *argument.minimum) : !(value >= *argument.minimum));
    const bool high = argument.maximum && !(value <= *argument.maximum);
    const bool quantity = std::isfinite(value) || (argument.infinite && !std::isnan(value));
    if (low || high || !quantity) refuse(argument, text);
}

} // namespace

const char* name_of(Type type) {
    switch (type) {
    case Type::flag:
        return "flag";
    case Type::integer:
        return "integer";
    case Type::number:
        return "number";
    case Type::text:
        break;
    }
    return "text";
}

const char* name_of(Role role) {
    switch (role) {
    case Role::source:
        return "source";
    case Role::destination:
        return "destination";
    case Role::input:
        return "input";
    case Role::output:
        return "output";
    case Role::option:
        break;
    }
    return "option";
}

const char* name_of(Content content) {
    switch (content) {
    case Content::raster:
        return "raster";
    case Content::vector:
        return "vector";
    case Content::labels:
        return "labels";
    case Content::model:
        return "model";
    case Content::spectra:
        return "spectra";
    case Content::text:
        return "text";
    case Content::none:
        break;
    }
    return "none";
}

Argument& Argument::from(double least) {
    minimum = least;
    return *this;
}

Argument& Argument::above(double least) {
    above_minimum = true;
    return from(least);
}

Argument& Argument::between(double least, double most) {
    maximum = most;
    return from(least);
}

Argument& Argument::or_infinite() {
    infinite = true;
    return *this;
}

Argument& Argument::in_unit(std::string name_of_unit) {
    unit = std::move(name_of_unit);
    return *this;
}

Argument& Argument::shown_as(std::string name_of_value) {
    value_name = std::move(name_of_value);
    return *this;
}

Argument& Argument::defaults_to(std::string note) {
    default_value.clear();
    default_note = std::move(note);
    return *this;
}

Argument& Argument::under(std::string heading) {
    group = std::move(heading);
    return *this;
}

Argument& Argument::also(std::string alias) {
    aliases.push_back(std::move(alias));
    return *this;
}

Argument& Argument::speaks(Vocabulary of) {
    vocabulary = of;
    return *this;
}

Argument& Argument::or_option(std::string option) {
    option_name = std::move(option);
    return *this;
}
Argument& Argument::or_list() {
    lists = true;
    return *this;
}
std::string Argument::meaning() const {
    return option_name.empty() ? summary : summary + "; or -" + option_name + " " + value_name;
}
std::string Argument::spelling() const { return positional ? name : "-" + name; }

std::string Argument::limits() const {
    if (maximum && minimum)
        return (above_minimum ? "above " : "") + number_text(*minimum) + " to " + number_text(*maximum);
    if (maximum) return "up to " + number_text(*maximum);
    if (!minimum) return {};
    return above_minimum ? "above " + number_text(*minimum) : "from " + number_text(*minimum) + " on";
}

std::string Argument::allowed() const {
    if (choices.size() == 2) return "neither " + choices[0].name + " nor " + choices[1].name;
    if (!choices.empty()) {
        std::vector<std::string> names;
        for (const Choice& choice : choices)
            names.push_back(choice.name);
        return "not one of " + joined(names, ", ");
    }
    std::string text = type == Type::integer ? "not a whole number" : "not a number";
    if (const std::string range = limits(); !range.empty())
        text += (maximum && minimum && !above_minimum ? " from " : " ") + range;
    return text;
}

double number_in(const Argument& argument, const std::string& text) {
    const auto value = parse_number(text);
    if (!value) refuse(argument, text);
    check_limits(argument, *value, text);
    return *value;
}

long long integer_in(const Argument& argument, const std::string& text, long long least, long long most) {
    const auto value = parse_integer(text);
    if (!value || *value < least || *value > most) refuse(argument, text);
    check_limits(argument, static_cast<double>(*value), text);
    return *value;
}

size_t choice_in(const Argument& argument, const std::string& text) {
    std::vector<std::string> names;
    for (const Choice& choice : argument.choices) {
        if (equal_names(choice.name, text)) return names.size();
        names.push_back(choice.name);
    }
    refuse(argument, text, did_you_mean(text, names));
}

std::string number_text(double value) {
    char text[32];
    const bool whole = std::abs(value) < 1e15 && value == std::floor(value); // 1000000, not 1e+06
    std::snprintf(text, sizeof text, whole ? "%.0f" : "%g", value);
    return text;
}

} // namespace hsi::tool
