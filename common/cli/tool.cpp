// SPDX-License-Identifier: MIT
#include "cli/tool.h"

#include "cli/arguments.h"
#include "cli/process.h"
#include "cli/run_impl.h"
#include "core/byte_size.h"
#include "core/error.h"
#include "core/process_limits.h"
#include "math/simd_target.h"
#include "raster/sample_convert.h"
#include "raster/side_files.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <gdal.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <optional>
#include <set>
#include <sstream>

namespace hsi::cli {
namespace {

constexpr int max_threads = 1024;
constexpr size_t text_width = 100, option_column = 34;

/// Takes dashes as GDAL users write them: "--ws" in the option parser's messages becomes "-ws".
std::string single_dashes(std::string text) {
    for (size_t at = text.find("--"); at != std::string::npos; at = text.find("--", at + 1))
        if ((at == 0 || text[at - 1] == ' ' || text[at - 1] == ',') && at + 2 < text.size() &&
            text[at + 2] != ' ')
            text.erase(at, 1);
    return text;
}

std::string one_line(std::string text) {
    for (char& c : text)
        if (c == '\n' || c == '\r') c = ' ';
    while (!text.empty() && text.back() == ' ')
        text.pop_back();
    return text;
}

/// "-of", "-q, -quiet": the spellings of an option for the help.
std::string spelling(const CLI::Option& option) {
    std::string text;
    for (const auto* names : {&option.get_snames(), &option.get_lnames()})
        for (const std::string& name : *names)
            if (std::string one = "-" + name; text != one) // -C is also found as --C
                text += (text.empty() ? "" : ", ") + one;
    return text;
}

/// What stands for the value: "FORMAT", "N", "osp|gs"; and the limits, if any: "3 to 63", "from 0 on".
struct ValueText {
    std::string name, limits;
};

/// "{g1->0,g2->1}" or "{osp,gs}" -> "g1|g2", "osp|gs"
std::string choices(const std::string& set) {
    std::string text;
    std::istringstream parts(set.substr(1, set.size() - 2));
    for (std::string part; std::getline(parts, part, ',');)
        text += (text.empty() ? "" : "|") + part.substr(0, part.find("->"));
    return text;
}

ValueText value_text(const CLI::Option& option) {
    if (option.get_items_expected_min() == 0) return {};
    const std::string type = option.get_type_name(); // "INT:INT in [3 - 63]", "TEXT:{osp,gs}", "cpu|cuda[:I]"
    const size_t colon = type.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ ");
    ValueText text{type, ""};
    if (colon != std::string::npos && type[colon] == ':')
        text = {type.substr(0, colon), type.substr(colon + 1)};
    const std::string limits = text.limits;
    const size_t open = limits.find(" in ["), between = limits.find(" - ");
    const size_t set = limits.find('{'), set_end = limits.find('}');
    if (open != std::string::npos && between != std::string::npos && limits.back() == ']') {
        text.limits = limits.substr(open + 5, between - open - 5) + " to " +
                      limits.substr(between + 3, limits.size() - between - 4);
    } else if (limits == "NONNEGATIVE") {
        text.limits = "from 0 on";
    } else if (set != std::string::npos && set_end != std::string::npos) {
        // Of names that stand for values, "value in {g1->0,g2->1} OR {0,1}", the names.
        text.name = choices(limits.substr(set, set_end - set + 1));
        text.limits.clear();
    }
    if (text.name == "INT" || text.name == "UINT") text.name = "N";
    if (text.name == "FLOAT") text.name = "V";
    return text;
}

double number_of(const std::string& text, const std::string& option, const std::string& allowed) {
    const auto value = parse_number(text);
    if (!value) throw UsageError(option + ": '" + text + "' is not a number", allowed);
    return *value;
}

int64_t integer_of(const std::string& text, const std::string& option, int64_t least, int64_t greatest,
                   const std::string& allowed) {
    const auto value = parse_integer(text);
    if (!value || *value < least || *value > greatest)
        throw UsageError(option + ": '" + text + "' is not " + allowed);
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
    std::string real;
    for (int t = GDT_Byte; t < GDT_TypeCount; ++t) {
        const auto type = static_cast<GDALDataType>(t);
        const char* name = GDALGetDataTypeName(type);
        // Neither complex numbers nor what newer GDALs have and readers and writers here do not: Float16.
        if (!name || !raster::convertible(type)) continue;
        if (EQUAL(name, text.c_str())) return name;
        real += (real.empty() ? "" : ", ") + std::string(name);
    }
    throw UsageError("-ot: '" + text + "' is not a pixel type for real numbers", "Use one of " + real + ".");
}

std::string joined(const std::vector<std::string>& words, const char* between) {
    std::string text;
    for (const std::string& word : words)
        text += (text.empty() ? "" : between) + word;
    return text;
}

/// "-ws: '65' is not a whole number from 3 to 63"
std::string wrong_value(const CLI::Option& option) {
    const ValueText allowed = value_text(option);
    const std::string begin = option.get_name() + ": '" + joined(option.results(), ",") + "' is not ";
    std::string wanted = "a valid value";
    if (allowed.name == "N" || allowed.name == "V") {
        wanted = allowed.name == "N" ? "a whole number" : "a number";
        if (!allowed.limits.empty())
            wanted += (allowed.limits.rfind("from ", 0) == 0 ? " " : " from ") + allowed.limits;
    } else if (allowed.name.find('|') != std::string::npos) {
        wanted = "one of " + allowed.name;
        for (size_t at = wanted.find('|'); at != std::string::npos; at = wanted.find('|'))
            wanted.replace(at, 1, ", ");
    }
    return begin + wanted;
}

/// What is wrong with the command line, in words of our own: those of the library differ from version to
/// version. The exceptions carry a text alone, so the option at fault is found by taking the options' values
/// once more, in the same order.
std::string parser_message(CLI::App& app, const CLI::ParseError& error) {
    if (dynamic_cast<const CLI::RequiredError*>(&error)) {
        for (const CLI::Option* option : app.get_options())
            if (option->get_required() && option->count() == 0) return option->get_name() + " is missing";
    } else if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
        if (const auto extras = app.remaining(); !extras.empty())
            return "unexpected argument: " + joined(extras, " ");
    } else {
        for (CLI::Option* option : app.get_options([](const CLI::Option* o) { return o->count() > 0; })) {
            try {
                option->run_callback();
            } catch (const CLI::ArgumentMismatch&) {
                // A value too many: only an option that is given twice gets here, normalize() counts the
                // rest.
                return option->get_name() + " is given " + std::to_string(option->count()) + " times";
            } catch (const CLI::ParseError&) {
                return wrong_value(*option);
            }
        }
    }
    return one_line(error.what());
}

void append_wrapped(std::string& out, const std::string& text, size_t column, size_t used) {
    std::istringstream words(text);
    std::string word;
    size_t at = used;
    bool first = true;
    while (words >> word) {
        if (!first && at + 1 + word.size() > text_width) {
            out += '\n' + std::string(column, ' ');
            at = column;
        } else if (!first) {
            out += ' ';
            ++at;
        }
        out += word;
        at += word.size();
        first = false;
    }
    out += '\n';
}

void append_entry(std::string& out, const std::string& left, const std::string& right) {
    out += "  " + left;
    size_t used = 2 + left.size();
    if (used + 1 > option_column) {
        out += '\n';
        used = 0;
    }
    out += std::string(option_column - used, ' ');
    append_wrapped(out, right, option_column, option_column);
}

} // namespace

// --- Tool::Impl
// ------------------------------------------------------------------------------------------------------

struct Tool::Impl {
    std::string name, summary, epilog;
    CLI::App app;
    bool has_source = false, has_destination = false, has_compute = false;
    std::vector<std::pair<std::string, const std::string*>> inputs;  ///< roles and paths of add_input()
    std::vector<std::pair<std::string, const std::string*>> outputs; ///< of add_output()
    std::function<void(const CommonOptions&)> checker;
    std::set<const CLI::Option*> common; ///< options of the frame; the rest is the tool's own

    // As they stand on the command line; resolve() reads them.
    std::vector<std::string> bands;
    std::array<std::string, 4> window;
    std::array<std::string, 2> tile;
    std::string bad_bands = "use", source_nodata, nodata;
    std::string device = "auto", memory = "25%", device_memory, threads = "ALL_CPUS";
    CommonOptions options;

    Impl(std::string n, std::string s, std::string e)
        : name(std::move(n)), summary(std::move(s)), epilog(std::move(e)), app(summary, name) {
        app.set_help_flag(); // normalize() finds -h and --help, also beside errors
    }

    template <class T>
    CLI::Option* add(const std::string& names, T& variable, const std::string& type, const std::string& text,
                     const std::string& group) {
        CLI::Option* option = app.add_option(names, variable, text)->type_name(type)->group(group);
        common.insert(option);
        return option;
    }
    CLI::Option* add_flag(const std::string& names, bool& variable, const std::string& text,
                          const std::string& group) {
        CLI::Option* option = app.add_flag(names, variable, text)->group(group);
        common.insert(option);
        return option;
    }

    std::vector<KnownOption> known_options() const {
        std::vector<KnownOption> known;
        for (const CLI::Option* option : app.get_options()) {
            if (!option->nonpositional()) continue;
            KnownOption one;
            one.names = option->get_lnames();
            one.names.insert(one.names.end(), option->get_snames().begin(), option->get_snames().end());
            one.values = option->get_items_expected_min();
            known.push_back(std::move(one));
        }
        return known;
    }

    std::string help() const;
    void parse(const std::vector<std::string>& words);
    void resolve();
    nlohmann::json own_options() const;
    void register_inputs(raster::RunFiles& files) const;
    /// Serves --version, --formats and the like; true when that was all that was asked for.
    bool general_options(std::vector<std::string>& words);
};

std::string Tool::Impl::help() const {
    std::string usage = "Usage: " + name + " [options]";
    std::string positionals, groups, entries;
    std::vector<std::string> order;
    for (const CLI::Option* option : app.get_options()) {
        if (!option->nonpositional()) {
            const std::string word = option->get_name(true);
            usage += option->get_required() ? " " + word : " [" + word + "]";
            append_entry(positionals, word, option->get_description());
        } else if (!option->get_group().empty() &&
                   std::find(order.begin(), order.end(), option->get_group()) == order.end()) {
            order.push_back(option->get_group());
        }
    }
    // The tool's own options come first: they are why one reads this.
    std::stable_partition(order.begin(), order.end(),
                          [](const std::string& group) { return group == "Options"; });
    for (const std::string& group : order) {
        groups += "\n" + group + ":\n";
        for (const CLI::Option* option : app.get_options()) {
            if (!option->nonpositional() || option->get_group() != group) continue;
            const ValueText value = value_text(*option);
            std::string left = spelling(*option), right = option->get_description();
            if (!value.name.empty()) left += ' ' + value.name;
            if (!value.limits.empty()) right += " (" + value.limits + ")";
            if (!option->get_default_str().empty()) right += " [" + option->get_default_str() + "]";
            append_entry(groups, left, right);
        }
    }
    append_entry(entries, "-h, --help", "this text");
    append_entry(entries, "--version", "version of the tool and of GDAL");
    append_entry(entries, "--formats, --format NAME", "the formats that GDAL knows; one of them in detail");
    append_entry(entries, "--config KEY VALUE", "a configuration option of GDAL; also KEY=VALUE");
    append_entry(entries, "--optfile FILE", "take further options from a file");
    append_entry(entries, "--debug ON|OFF|NAMES", "GDAL's debug messages");
    append_entry(entries, "--help-general", "GDAL's general options");
    std::string text = usage + "\n\n";
    append_wrapped(text, summary, 0, 0);
    if (!positionals.empty()) text += "\nArguments:\n" + positionals;
    text += groups + "\nGeneral:\n" + entries;
    text += "\nOptions may be written with one dash or two (-of, --of); -- ends the options.\n";
    if (!epilog.empty()) text += "\n" + epilog + (epilog.back() == '\n' ? "" : "\n");
    if (epilog.find("Example") == std::string::npos && has_source && has_destination) {
        text += "\nExamples:\n  " + name + " scene.img result.tif\n  " + name +
                " -b 1-30,45 -of ENVI -overwrite scene.tif result.img\n";
        if (has_compute)
            text +=
                "  " + name + " -device cpu -threads 4 -memory 2GB -report run.json scene.img result.tif\n";
    }
    return text;
}

bool Tool::Impl::general_options(std::vector<std::string>& words) {
    const auto end = std::find(words.begin(), words.end(), "--");
    const auto has = [&](const char* word) {
        return std::find_if(words.begin(), end,
                            [&](const std::string& w) { return EQUAL(w.c_str(), word); }) != end;
    };
    if (has("--version")) {
        std::printf("%s %s, GDAL %s\n", name.c_str(), project_version(), GDALVersionInfo("RELEASE_NAME"));
        return true;
    }
    const bool drivers = has("--formats") || has("--format") || has("--mempreload");
    if (!drivers && !has("--help-general") && !has("--license") && !has("--build") && !has("--pause") &&
        !has("--locale"))
        return false;
    if (drivers) GDALAllRegister();
    CPLStringList given;
    given.AddString(name.c_str());
    for (const std::string& word : words)
        given.AddString(word.c_str());
    char** processed = given.List(); // replaced by a list of its own
    CPLErrorReset();
    const int left = GDALGeneralCmdLineProcessor(given.Count(), &processed, 0);
    if (left < 0) {
        const std::string reason = one_line(CPLGetLastErrorMsg());
        throw UsageError(reason.empty() ? "a general option is wrong" : reason);
    }
    if (left == 0) return true;
    const CPLStringList rest(processed);
    words.clear();
    for (int i = 1; i < left; ++i)
        words.emplace_back(rest[i]);
    return false;
}

void Tool::Impl::parse(const std::vector<std::string>& words) {
    for (CLI::Option* option : app.get_options([](const CLI::Option* o) { return o->nonpositional(); }))
        option->allow_extra_args(
            false); // a list option takes one word; the next one is an argument of the tool
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    try {
        app.parse(reversed);
    } catch (const CLI::ParseError& error) {
        throw UsageError(single_dashes(parser_message(app, error)));
    }
}

void Tool::Impl::resolve() {
    CommonOptions& o = options;
    if (has_source) {
        if (o.source.path.empty()) throw UsageError("src is empty");
        check_pairs(o.source.open_options, "-oo");
        o.source.bands = parse_band_list(bands);
        if (bad_bands != "use" && bad_bands != "ignore")
            throw UsageError("-bbl: '" + bad_bands + "' is neither use nor ignore");
        o.source.use_bbl = bad_bands == "use";
        if (app.count("--srcwin")) {
            constexpr int64_t most = std::numeric_limits<int32_t>::max();
            int64_t v[4];
            for (size_t i = 0; i < 4; ++i)
                v[i] = integer_of(window[i], "-srcwin", i < 2 ? 0 : 1, most,
                                  i < 2 ? "an offset: a whole number from 0 on"
                                        : "a size: a whole number from 1 on");
            o.source.window = Rect{v[0], v[1], v[2], v[3]};
        }
        if (app.count("--srcnodata"))
            o.source.nodata = number_of(source_nodata, "-srcnodata", "Give a number or nan.");
    }
    if (has_destination) {
        if (o.destination.path.empty()) throw UsageError("dst is empty");
        check_pairs(o.destination.creation_options, "-co");
        o.destination.type = pixel_type(o.destination.type);
        if (app.count("--dstnodata"))
            o.destination.nodata = number_of(nodata, "-dstnodata", "Give a number or nan.");
    }
    o.device = parse_device(device);
    o.memory = parse_byte_size(memory, usable_ram(), "-memory");
    if (!device_memory.empty()) {
        if (device_memory.find('%') != std::string::npos)
            throw UsageError(
                "-device-memory: '" + device_memory + "' is not a memory size",
                "Give a size such as 8GB; without the option 80 % of the free device memory is used.");
        o.device_memory = parse_byte_size(device_memory, 0, "-device-memory");
    }
    if (has_compute && app.count("--threads") == 0)
        o.threads = default_threads(max_threads);
    else if (EQUAL(threads.c_str(), "ALL_CPUS"))
        o.threads = std::min(usable_processors(), max_threads);
    else
        o.threads = static_cast<int>(
            integer_of(threads, "-threads", 1, max_threads,
                       "ALL_CPUS or a whole number from 1 to " + std::to_string(max_threads)));
    if (has_compute && app.count("--tile")) {
        constexpr int64_t most = std::numeric_limits<int32_t>::max();
        const std::string allowed = "a tile size: a whole number from 1 on";
        o.tile_samples = integer_of(tile[0], "-tile", 1, most, allowed);
        o.tile_lines = integer_of(tile[1], "-tile", 1, most, allowed);
    }
    if (o.report.rfind("/dev/stdout", 0) == 0 && o.destination.path.rfind("/vsistdout", 0) == 0)
        throw UsageError("-report and dst both name standard output", "Name a file for one of them.");
}

/// Before anything can be written, a report of failure among it.
void Tool::Impl::register_inputs(raster::RunFiles& files) const {
    for (const auto& [role, path] : inputs)
        if (!path->empty()) files.reads(role, *path, raster::files_read_with(*path));
    if (has_destination && is_local(options.destination.path))
        files.writes("dst", options.destination.path, {});
    for (const auto& [role, path] : outputs)
        if (!path->empty()) files.writes(role, *path, {});
    if (!has_source) return;
    // Run::open_source() tells all of its files, and opens it once; a report that would replace a file cannot
    // wait for that.
    const std::string& source = options.source.path;
    const bool all = !options.report.empty() && ::access(options.report.c_str(), F_OK) == 0;
    files.reads("src", source, all ? raster::files_read_with(source) : std::vector<std::string>());
}

nlohmann::json Tool::Impl::own_options() const {
    nlohmann::json own = nlohmann::json::object();
    for (const CLI::Option* option : app.get_options()) {
        if (common.count(option)) continue;
        const std::string key = option->nonpositional() && !option->get_lnames().empty()
                                    ? option->get_lnames().front()
                                    : option->get_name();
        const auto& given = option->results();
        if (option->get_items_expected_min() == 0)
            own[key] = option->count() > 0;
        else if (given.size() > 1)
            own[key] = given;
        else if (given.size() == 1)
            own[key] = given.front();
        else
            own[key] = option->get_default_str().empty() ? nlohmann::json()
                                                         : nlohmann::json(option->get_default_str());
    }
    return own;
}

// --- Tool
// ------------------------------------------------------------------------------------------------------------

Tool::Tool(std::string name, std::string summary, std::string epilog)
    : m(std::make_unique<Impl>(std::move(name), std::move(summary), std::move(epilog))) {}
Tool::~Tool() = default;

CLI::App& Tool::app() { return m->app; }
void Tool::add_input(const std::string& role, const std::string& path) {
    m->inputs.emplace_back(role, &path);
}
void Tool::add_output(const std::string& role, const std::string& path) {
    m->outputs.emplace_back(role, &path);
}
void Tool::check(std::function<void(const CommonOptions&)> checker) { m->checker = std::move(checker); }

void Tool::add_source() {
    m->has_source = true;
    auto& o = m->options.source;
    const std::string group = "Input";
    m->add("src", o.path, "", "the scene: anything that GDAL opens", "Arguments")->required();
    m->add("-b", m->bands, "LIST", "bands, counted from 1: -b 1-30,45; may be repeated [all good ones]",
           group);
    m->add("--bbl", m->bad_bands, "use|ignore",
           "leave out the bands that the file's bad-band list marks, or not", group)
        ->default_str("use");
    m->add("--srcwin", m->window, "XOFF YOFF XSIZE YSIZE", "window of the scene, in pixels [all of it]",
           group);
    m->add("--srcnodata", m->source_nodata, "V", "value that means no data, or nan [the file's]", group);
    m->add("--if", o.drivers, "FORMAT", "let only this driver open src; may be repeated", group);
    m->add("--oo", o.open_options, "NAME=VALUE", "open option of the driver; may be repeated", group);
}

void Tool::add_destination() {
    m->has_destination = true;
    auto& o = m->options.destination;
    const std::string group = "Output";
    m->add("dst", o.path, "", "the output; it appears when it is complete", "Arguments")->required();
    m->add("--of", o.format, "FORMAT", "output format [from the extension of dst, else GTiff]", group);
    m->add("--co", o.creation_options, "NAME=VALUE",
           "creation option; may be repeated [for GTiff: TILED=YES, BIGTIFF=IF_SAFER]", group);
    m->add("--ot", o.type, "TYPE", "pixel type: Byte, Int16, Float32 ... [the tool's own]", group);
    m->add("--dstnodata", m->nodata, "V", "value that is written for no data [the source's]", group);
    m->add_flag("--overwrite", o.overwrite, "replace dst when it is there", group);
}

void Tool::add_compute(bool device) {
    m->has_compute = true;
    const std::string group = "Computing";
    if (device)
        m->add("--device", m->device, "auto|cpu|cuda[:I[,J..]]", "where to compute", group)
            ->default_str("auto");
    m->add("--memory", m->memory, "SIZE", "ceiling on host memory: 2GB, 500MB, 25% (of the RAM)", group)
        ->default_str("25%");
    if (device)
        m->add("--device-memory", m->device_memory, "SIZE", "ceiling on device memory [80 % of what is free]",
               group);
    m->add("--threads", m->threads, "N|ALL_CPUS", "worker threads [GDAL_NUM_THREADS, else ALL_CPUS]", group);
    m->add("--tile", m->tile, "XSIZE YSIZE", "force a tile size [chosen from memory, file layout and halo]",
           group);
    add_report();
}

void Tool::add_report() {
    auto& o = m->options;
    const std::string group = m->has_compute ? "Computing" : "Running";
    m->add("--report", o.report, "FILE.json",
           "write a record of the run: options, device, plan, passes, seconds", group);
    m->add_flag("--dry-run", o.dry_run,
                "check everything, print the plan, make no output (-report is written)", group);
    m->add_flag("-q,--quiet", o.quiet, "no progress, no notes", group);
}

namespace {

/// The one ladder from exceptions to exit codes.
Failure describe_failure(const std::string& tool, bool cancelled) {
    Failure failure;
    try {
        throw;
    } catch (const UsageError& error) {
        failure = {2, error.what(), error.advice()};
        if (!failure.advice.empty()) failure.advice += ' ';
        failure.advice += "Run '" + tool + " --help' for all options.";
    } catch (const Error& error) {
        failure = {1, error.what(), error.advice()};
    } catch (const std::bad_alloc&) {
        failure = {1, "out of memory", "Give a smaller -memory, or fewer -threads."};
    } catch (const std::exception& error) {
        failure = {1, error.what(), ""};
    } catch (...) {
        failure = {1, "an unknown error", ""};
    }
    // Once a signal has come, whatever error follows is its echo.
    if (cancelled && failure.code == 1) failure = {1, Cancelled().what(), Cancelled().advice()};
    failure.what = one_line(failure.what);
    return failure;
}

void print_failure(const Failure& failure, const std::vector<std::string>& gdal_failures) {
    std::fflush(stdout);
    std::fprintf(stderr, "ERROR: %s\n", failure.what.c_str());
    if (!failure.advice.empty()) std::fprintf(stderr, "%s\n", failure.advice.c_str());
    for (const std::string& text : gdal_failures) {
        const std::string line = one_line(text);
        if (failure.what.find(line) == std::string::npos && failure.advice.find(line) == std::string::npos)
            std::fprintf(stderr, "GDAL: %s\n", line.c_str());
    }
}

} // namespace

int Tool::run(int argc, char** argv, const std::function<void(Run&)>& body) {
    open_standard_descriptors();
    std::unique_ptr<Run> run;
    const auto warn = [&](const std::string& text) {
        if (run)
            run->warn(one_line(text));
        else
            std::fprintf(stderr, "Warning: %s\n", one_line(text).c_str());
    };
    GdalMessages messages(warn);
    bool report_possible = false;
    std::optional<SignalGuard> signals; // ends before the run, whose flag it sets
    try {
        std::vector<std::string> words;
        for (int i = 1; i < argc; ++i)
            words.emplace_back(argv[i]);
        std::vector<std::string> option_files;
        words = expand_option_files(std::move(words), &option_files);
        const std::string command = quote_command(m->name, words);
        for (const auto& [key, value] : take_configuration(words))
            CPLSetConfigOption(key.c_str(), value.c_str());
        if (m->general_options(words)) return 0;
        math::select_simd(CPLGetConfigOption("HSI_SIMD", ""));
        const Normalized normalized = normalize(words, m->known_options());
        if (normalized.help) {
            std::fputs(m->help().c_str(), stdout);
            return 0;
        }
        m->parse(normalized.words);
        m->resolve();
        m->options.destination.history = command;
        m->options.destination.memory = m->options.memory / 4;
        const auto files = std::make_shared<raster::RunFiles>();
        m->options.destination.run = files;

        auto state = std::make_unique<Run::Impl>();
        state->files = files;
        const CLI::Option* const overwrite = m->app.get_option_no_throw("--overwrite");
        state->overwrite = overwrite != nullptr && overwrite->count() > 0;
        state->tool = m->name;
        state->command = command;
        state->options = m->options;
        state->options.destination.cancel = &state->cancel;
        state->own_options = m->own_options();
        state->stdout_is_output = m->options.destination.path.rfind("/vsistdout", 0) == 0;
        state->start();
        run.reset(new Run(std::move(state)));
        signals.emplace(run->m->cancel);
        for (const std::string& file : option_files)
            files->reads("--optfile", file, {});
        m->register_inputs(*files);
        run->m->check_report();
        report_possible = true;
        if (m->checker) m->checker(m->options);

        GDALAllRegister();
        body(*run);
        run->m->outputs_are_good = false; // what fails from here on is not what the body foresaw
        run->m->finish();
        // The body went on after these: they are not the end of the work, but nothing may be lost silently.
        for (const std::string& text : messages.failures())
            run->warn("GDAL: " + one_line(text));
        run->m->commit();
        signals->ignore_from_now_on();
        return 0;
    } catch (...) {
        const Failure failure = describe_failure(m->name, run && run->cancel().requested());
        if (run) run->m->end_bar();
        print_failure(failure, messages.failures());
        if (report_possible && !run->files()->clashes("-report", m->options.report)) {
            try {
                run->m->write_failure_report(failure);
            } catch (const std::exception& error) {
                std::fprintf(stderr, "%s\n", error.what());
            }
        }
        return failure.code;
    }
}

} // namespace hsi::cli
