// SPDX-License-Identifier: MIT
#include "tool/declaration.h"

#include "core/error.h"
#include "core/text.h"
#include "raster/quality_flags.h"
#include "tool/definition.h"
#include "tool/memory_plan.h"
#include "tool/phrases.h"

#include <algorithm>
#include <sstream>
#include <utility>

namespace hsi::tool {
namespace {

constexpr int max_ranks = 1 << 20;
constexpr const char* input_group = "Input";
constexpr const char* output_group = "Output";
constexpr const char* compute_group = "Computing";

/// Marks the arguments that are declared while this object exists as shared.
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

Declaration::Declaration(const Definition& definition)
    : m_definition(definition), m_options(std::make_shared<CommonOptions>()),
      m_texts(std::make_shared<SharedTexts>()) {
    m_texts->memory = default_memory;
    Builder builder(*this);
    definition.declare(builder);
}

const Argument* Declaration::find(const std::string& name) const {
    const auto has_name = [&](const Argument& a) {
        return a.name == name || (!name.empty() && a.option_name == name) ||
               std::find(a.aliases.begin(), a.aliases.end(), name) != a.aliases.end();
    };
    const auto found = std::find_if(m_arguments.begin(), m_arguments.end(), has_name);
    return found == m_arguments.end() ? nullptr : &*found;
}

Argument& Builder::add(const std::string& name, const std::string& summary, Type type, int values) {
    Argument& argument = m_made.m_arguments.emplace_back();
    m_made.m_assign.emplace_back();
    argument.name = name;
    argument.summary = summary;
    argument.type = type;
    argument.values = values;
    argument.shared = m_shared;
    if (values > 0) argument.value_name = type == Type::integer ? "N" : type == Type::number ? "V" : "TEXT";
    return argument;
}

Argument& Builder::flag(const std::string& name, bool& variable, const std::string& summary) {
    Argument& argument = add(name, summary, Type::flag, 0);
    assigned_by([&variable](const Argument&, const std::vector<std::string>&) { variable = true; });
    return argument;
}

Argument& Builder::choose(const std::string& name, const std::string& summary, std::vector<Choice> choices,
                          size_t preset, std::function<void(size_t)> take) {
    Argument& argument = add(name, summary, Type::text, 1);
    argument.choices = std::move(choices);
    if (preset < argument.choices.size()) argument.preset.value = argument.choices[preset].name;
    std::vector<std::string> names;
    for (const Choice& choice : argument.choices)
        names.push_back(choice.name);
    argument.value_name = joined(names, "|");
    assigned_by([take = std::move(take)](const Argument& given, const std::vector<std::string>& words) {
        take(choice_in(given, words.front()));
    });
    return argument;
}

Argument& Builder::file(const std::string& name, std::string& path, Role role, Content content,
                        const std::string& summary, bool positional) {
    Argument& argument = option(name, path, summary);
    argument.role = role;
    argument.content = content;
    argument.positional = argument.required = positional;
    argument.value_name = "FILE";
    if (positional) argument.group = "Arguments";
    return argument;
}

Argument& Builder::input(const std::string& name, std::string& path, Content content,
                         const std::string& summary) {
    return file(name, path, Role::input, content, summary, false);
}
Argument& Builder::output(const std::string& name, std::string& path, Content content,
                          const std::string& summary) {
    return file(name, path, Role::output, content, summary, false);
}
Argument& Builder::input_argument(const std::string& name, std::string& path, Content content,
                                  const std::string& summary) {
    return file(name, path, Role::input, content, summary, true);
}
Argument& Builder::output_argument(const std::string& name, std::string& path, Content content,
                                   const std::string& summary) {
    return file(name, path, Role::output, content, summary, true);
}

Argument& Builder::words(const std::string& name, std::vector<std::string>& variable,
                         const std::string& summary) {
    Argument& argument = option(name, variable, summary);
    argument.positional = argument.required = true;
    argument.group = "Arguments";
    return argument;
}

Argument& Builder::add_source() {
    const SharedArguments shared(m_shared);
    m_made.m_has_source = true;
    auto& o = m_made.m_options->source;
    Argument& src = file("src", o.path, Role::source, Content::raster,
                         "The scene: any raster that GDAL opens, or a MATLAB file (.mat)", true);
    add_reading();
    return src;
}

void Builder::add_sources(std::vector<std::string>& paths, const std::string& summary) {
    const SharedArguments shared(m_shared);
    Argument& argument = option("scene", paths, summary);
    argument.role = Role::source;
    argument.content = Content::raster;
    argument.positional = true;
    argument.value_name = "FILE";
    argument.group = "Arguments";
    add_reading();
}

void Builder::add_reading() {
    auto& o = m_made.m_options->source;
    option("b", m_made.m_texts->bands,
           "Bands by number (1-30,45, counted from 1) or wavelength (450-900nm, 0.45-0.9um; 2100nm: "
           "the nearest)")
        .shown_as("LIST")
        .defaults_to("all bands that the bad-band list does not mark")
        .under(input_group);
    option("exclude-range", m_made.m_texts->excluded,
           "Exclude the bands between two wavelengths: 1340-1460nm")
        .shown_as("RANGE")
        .under(input_group);
    option("bbl", m_made.m_texts->bad_bands,
           "Bad bands: use (exclude those in the file's list), ignore, or FILE.csv (exclude if "
           "column good is 0)")
        .shown_as("use|ignore|FILE.csv")
        .under(input_group);
    option("srcwin", m_made.m_texts->window, "Process only this window of the scene")
        .shown_as("XOFF YOFF XSIZE YSIZE")
        .in_unit("pixels")
        .defaults_to("the whole scene")
        .under(input_group);
    option("srcnodata", m_made.m_texts->source_nodata, "Nodata value of src; NaN is always nodata")
        .shown_as("V")
        .defaults_to("the file's")
        .under(input_group);
    option("if", o.drivers, "Open src only with this driver")
        .shown_as("FORMAT")
        .speaks(Vocabulary::raster_drivers)
        .under(input_group);
    option("oo", o.open_options, "Open option of the driver").shown_as("NAME=VALUE").under(input_group);
}

void Builder::add_mask(const std::string& what, bool outputs) {
    const SharedArguments shared(m_shared);
    auto& o = m_made.m_options->mask;
    input("mask", o.only, Content::labels,
          "Use only these pixels for " + what + ": raster FILE not 0, or inside features of the vector FILE")
        .under(input_group);
    input("mask-exclude", o.without, Content::labels,
          "Exclude these pixels from " + what + ": raster FILE not 0, or inside features of the vector FILE")
        .under(input_group);
    option("mask-flags", o.flags,
           "Exclude pixels with these quality flags from " + what + ": cloud,not-land,aot550>0.3")
        .shown_as("LIST")
        .under(input_group);
    input("mask-flags-from", o.flags_from, Content::raster, "The file with the quality layers of -mask-flags")
        .defaults_to("the quality layers of the product")
        .under(input_group);
    check([](const Call& call) {
        const MaskOptions& mask = call.options().mask;
        raster::flag_items(mask.flags);
        if (!mask.flags_from.empty() && mask.flags.empty())
            throw UsageError("-mask-flags-from requires -mask-flags",
                             "gdal_hsi_info -flags lists the flags of a file.");
    });
    if (!outputs) return;
    flag("mask-output", o.outputs,
         "Write nodata in the pixels that the masks exclude; by default these pixels also get values")
        .under(input_group);
    check([](const Call& call) {
        const CommonOptions& options = call.options();
        if (!options.mask.outputs) return;
        if (!options.mask.given())
            throw UsageError(option_requires("-mask-output", "a mask"),
                             "Give a mask with -mask FILE, -mask-exclude FILE or -mask-flags LIST.");
        if (call.declaration().has_destination() && raster::is_virtual(options.destination))
            throw UsageError(
                cannot_be_used_with("-mask-output", std::string(raster::virtual_kind(options.destination)) +
                                                        ": it is computed from the scene, which has no mask"),
                "Write another format, or leave out -mask-output.");
    });
}

void Builder::add_follow() {
    option("follow", m_made.m_options->source.follow,
           "Process a raw ENVI file (BIL or BIP) while it is written; end when no line arrives for this time")
        .above(0)
        .shown_as("SECONDS")
        .in_unit("seconds")
        .under(input_group);
    check([](const Call& call) {
        const CommonOptions& options = call.options();
        if (!options.source.follow) return;
        for (const char* name : {"srcwin", "mask", "mask-exclude", "mask-flags", "if-needed", "if", "oo"})
            if (call.given(name))
                throw UsageError(cannot_be_used_with("-follow", "-" + std::string(name) +
                                                                    ": the scene is still being written"),
                                 "Leave one of them out.");
        if (call.declaration().has_destination() && raster::is_virtual(options.destination))
            throw UsageError(
                cannot_be_used_with("-follow", std::string(raster::virtual_kind(options.destination)) +
                                                   ", which computes when it is read"),
                "Use a raw ENVI file: .dat, .bil, .bip, or -of ENVI.");
    });
}

Argument& Builder::add_destination(const std::string& summary) {
    const SharedArguments shared(m_shared);
    m_made.m_has_destination = true;
    auto& o = m_made.m_options->destination;
    Argument& dst = file("dst", o.path, Role::destination, Content::raster, summary, true);
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
    option("dstnodata", m_made.m_texts->nodata, "Nodata value of dst: a number, or nan")
        .shown_as("V")
        .defaults_to("the source's, else nan")
        .under(output_group);
    Argument& item =
        option("stac", o.stac.path,
               "Also write a STAC Item of dst (place, time, bands, classes, history) for catalogues");
    item.shown_as("FILE.json").under(output_group);
    item.content = Content::text; // the body does not write this output: it is written with dst
    option("stac-datetime", o.stac.datetime,
           "Acquisition time for -stac: 2022-08-28T05:19:16Z, 2022-08-28, or START/END")
        .shown_as("TIME")
        .defaults_to("from the metadata of src")
        .under(output_group);
    overwrite(o.overwrite, "Replace dst if it exists; otherwise an existing dst is an error");
    return dst;
}

Argument& Builder::overwrite(bool& variable, const std::string& summary) {
    Argument& replace = flag("overwrite", variable, summary).under(output_group);
    {
        const SharedArguments shared(m_shared);
        flag("if-needed", m_made.m_options->if_needed,
             "Do nothing if the outputs of an earlier run with -if-needed are up to date; otherwise "
             "overwrite them")
            .under(output_group);
    }
    return replace;
}

void Builder::add_compute(bool device) {
    const SharedArguments shared(m_shared);
    m_made.m_has_compute = true;
    if (device)
        option("device", m_made.m_texts->device,
               "Where to compute; auto: on a GPU if it is likely to be faster")
            .shown_as("auto|cpu|cuda[:I[,J..]]")
            .under(compute_group);
    option("memory", m_made.m_texts->memory,
           "Limit of the memory for buffers and GDAL's block cache: 2GB, 500MB, 25% (of the RAM)")
        .shown_as("SIZE")
        .under(compute_group);
    if (device)
        option("device-memory", m_made.m_texts->device_memory, "Limit of the device memory, such as 8GB")
            .shown_as("SIZE")
            .defaults_to(default_device_memory)
            .under(compute_group);
    option("threads", m_made.m_texts->threads, "Number of threads")
        .shown_as("N|ALL_CPUS")
        .defaults_to("GDAL_NUM_THREADS, else ALL_CPUS")
        .under(compute_group);
    option("tile", m_made.m_texts->tile, "Work in tiles of this size")
        .shown_as("XSIZE YSIZE")
        .in_unit("pixels")
        .defaults_to("chosen from memory, file layout and halo")
        .under(compute_group);
    option("ranks", m_made.m_options->ranks,
           "With -dry-run: print the plan for N processes (mpirun -n N) on a machine like this one")
        .between(1, max_ranks)
        .shown_as("N")
        .defaults_to("the processes of this run")
        .under(compute_group);
    add_report();
}

void Builder::add_report() {
    const SharedArguments shared(m_shared);
    auto& o = *m_made.m_options;
    const char* const group = m_made.m_has_compute ? compute_group : "Running";
    // The body does not write this output: execute() registers and writes the report.
    Argument& report =
        option("report", o.report,
               "Write a record of the run: versions, options, device, passes with bytes and seconds");
    report.shown_as("FILE.json").under(group);
    report.content = Content::text;
    flag("report-append", o.report_append,
         "Append the record to the file of -report: one report for several tools")
        .under(group);
    flag("dry-run", o.dry_run, "Check everything and print the plan; write no output except -report")
        .under(group);
    flag("q", o.quiet, "Print no progress and no notes").also("quiet").under(group);
}

void Builder::exclusive(const std::string& one, const std::string& other) {
    m_made.m_exclusions.emplace_back(one, other);
}
void Builder::check(std::function<void(const CommonOptions&)> checker) {
    check([checker = std::move(checker)](const Call& call) { checker(call.options()); });
}
void Builder::check(std::function<void(const Call&)> checker) {
    m_made.m_checks.push_back(std::move(checker));
}
void Builder::body(std::function<void(Run&)> work) { m_made.m_body = std::move(work); }

} // namespace hsi::tool
