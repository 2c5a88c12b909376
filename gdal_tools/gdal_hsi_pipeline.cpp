// SPDX-License-Identifier: MIT
// gdal_hsi_pipeline: runs several tools as one run, with the grammar of GDAL's pipelines. If a tool works
// tile by tile, the next tool computes the result of the first tool within its own tiles (an .hsi in memory).
// A result that depends on the whole scene is stored in a temporary file. All outputs appear at the same
// time.
#include "catalogue.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"
#include "raster/output_set.h"
#include "raster/raster_sink.h"
#include "raster/raster_source.h"
#include "raster/regular_file.h"
#include "raster/scene_document.h"
#include "raster/side_files.h"
#include "stream/copy_operation.h"
#include "tool/definition.h"
#include "tool/execute.h"
#include "tool/memory_plan.h"
#include "tool/passes.h"
#include "tool/scene.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace pipeline_tool {

using Words = std::vector<std::string>;

struct Settings {
    Words words;
    bool overwrite = false;
};

// Splitting the command line into words
// ----------------------------------------------------------------------------------------------------------

/// Splits a text as a shell would: by blanks, quotes and backslashes.
Words parted(const std::string& text) {
    Words words;
    std::string word;
    bool open = false;
    char quote = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
            if (open) words.push_back(std::exchange(word, {}));
            open = false;
            continue;
        }
        open = true;
        if (c == quote)
            quote = 0;
        else if (quote == 0 && (c == '"' || c == '\''))
            quote = c;
        else if (c == '\\' && quote != '\'' && i + 1 < text.size())
            word += text[++i];
        else
            word += c;
    }
    if (quote != 0) throw UsageError("a quote in the pipeline is not closed");
    if (open) words.push_back(word);
    return words;
}

/// Splits the words into steps at each "!" outside of brackets.
std::vector<Words> steps_of(const Words& words) {
    std::vector<Words> steps(1);
    int depth = 0;
    for (const std::string& word : words) {
        depth += word == "[" ? 1 : word == "]" ? -1 : 0;
        if (depth < 0) throw UsageError("a ']' in the pipeline has no '['");
        if (word == "!" && depth == 0)
            steps.emplace_back();
        else
            steps.back().push_back(word);
    }
    if (depth > 0) throw UsageError("a '[' in the pipeline is not closed", "Write ']' as a separate word.");
    for (const Words& step : steps)
        if (step.empty())
            throw UsageError("a step of the pipeline is empty",
                             "Put steps between '!': read scene.img ! spp -ws 7 ! write y.tif");
    return steps;
}

// The steps
// ----------------------------------------------------------------------------------------------------------

/// `read` and `write` are not tools; they have the options of tools for src and dst.
constinit const tool::Definition read_step{
    "read", "Reads a scene", "", {}, "", [](tool::Builder& args) { args.add_source(); }};
constinit const tool::Definition write_step{
    "write", "Writes the result", "", {}, "", [](tool::Builder& args) {
                                      args.add_destination(); }};

const tool::Definition* definition_of(const std::string& name) {
    if (name == read_step.name) return &read_step;
    if (name == write_step.name) return &write_step;
    Words names{"read", "write", "tee"};
    for (const tool::Definition* one : tools::catalogue()) {
        if (one->steps) continue;
        std::string dashed = one->name;
        std::replace(dashed.begin(), dashed.end(), '_', '-');
        if (name == one->name || name == dashed) return one;
        names.push_back(one->name);
    }
    throw UsageError(
        "unknown step '" + name + "'",
        did_you_mean(name, names) +
            " Steps are read, write, tee and the names of tools. A pipeline begins with: read FILE");
}

struct Step;
struct Nested;
using Steps = std::vector<Step>;

/// A step whose words have been parsed, and which its tool has checked.
struct Step {
    std::string title; ///< such as "step 2 (spp)"
    Words words;       ///< words after the name
    /// Call of a read, a write or a tool; null if the step only has a `branch`.
    std::unique_ptr<tool::Call> call;
    bool beside = false;        ///< true for a tee: the scene before the step also goes to the next step
    Steps branch;               ///< steps of a tee in brackets: tee [ ... ]
    std::vector<Nested> nested; ///< pipelines in brackets, in the order of the words
    bool is(const tool::Definition& definition) const { return call && &call->definition() == &definition; }
    bool makes_scene() const {
        return call && call->declaration().has_source() && call->declaration().has_destination();
    }
};

constexpr const char* no_place = "-";
/// Extensions of temporary files: a virtual scene, and a file with pixels.
constexpr const char *computed_name = ".hsi", *file_name = ".dat";

std::string extension_of(const std::string& path) {
    const size_t dot = path.rfind('.');
    return dot == std::string::npos ? std::string() : path.substr(dot);
}

/// A pipeline in brackets. Its result replaces an additional input file of a step.
struct Nested {
    Steps steps;
    /// The file that the step reads instead of the brackets: the file of a single `read`, or a temporary
    /// file.
    std::string path;
};

bool chooses_source(const tool::Call& call) {
    for (const char* name : {"b", "exclude-range", "bbl", "srcwin", "srcnodata", "if", "oo"})
        if (call.given(name)) return true;
    return false;
}

/// Returns true if the call names an output file, so that -overwrite applies.
bool writes(const tool::Call& call) {
    return call.find("overwrite") != nullptr &&
           std::any_of(call.arguments().begin(), call.arguments().end(), [&call](const tool::Argument& one) {
               return call.given_to(one).count > 0 &&
                      (one.role == tool::Role::output || one.role == tool::Role::destination);
           });
}

/// Returns advice if a step lacks the name of its output, or has a name that belongs to `write`; else empty.
std::string advice_on_outputs(const Step& step, const std::string& what) {
    const auto& declaration = step.call->declaration();
    const std::string name = step.call->definition().name, unexpected = "unexpected argument: ";
    if (declaration.has_destination() && !step.beside && what.rfind(unexpected, 0) == 0)
        return "The next step reads the result of " + name + ": ! " + name + " ! write " +
               what.substr(unexpected.size());
    for (const tool::Argument& one : declaration.arguments())
        if (one.role == tool::Role::output && one.required && what == one.name + " is missing")
            return name + " makes no scene for write and needs its own output: ! " + name + " [options] FILE";
    return {};
}

void refuse_inner_options(const Step& step) {
    for (const char* name : {"report", "report-append", "dry-run", "q", "ranks", "if-needed"})
        if (step.call->given(name))
            throw UsageError(step.title + ": -" + std::string(name) + " applies to the whole pipeline",
                             "Give it before the first step.");
    if (step.call->given("follow"))
        throw UsageError(step.title +
                             ": -follow cannot be used in a pipeline, since its result is a growing file",
                         "Leave it out.");
    if (step.beside || !step.makes_scene()) return;
    for (const char* name : {"of", "co", "ot", "dstnodata", "stac"})
        if (step.call->given(name))
            throw UsageError(step.title + ": -" + std::string(name) +
                                 " applies to files, but the next step reads the result of this step",
                             "Give the option to write, or put tee before the step.");
}

/// Checks the order of steps. `inner`: true for the steps of a tee, whose first step reads the scene before
/// the tee.
void check_order(const Steps& steps, bool inner);
/// Checks the order of steps of a pipeline in brackets that replaces a file.
void check_nested(const Steps& steps, const std::string& within);

/// Temporary files of the run, with the same names on all ranks. They hold results that depend on a whole
/// scene, and results of pipelines in brackets.
class Scratch {
  public:
    explicit Scratch(parallel::Group& ranks) : m_ranks(ranks) {}
    ~Scratch() {
        std::error_code ignored;
        if (m_ranks.root() && !m_folder.empty()) std::filesystem::remove_all(m_folder, ignored);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    /// Returns a new file name in TMPDIR, or in /tmp if TMPDIR is not set. All ranks get the same name.
    /// \throws Error if the folder cannot be made.
    std::string name(const std::string& extension) {
        if (m_folder.empty()) m_folder = m_ranks.broadcast("temporary folder", made());
        return join_path(m_folder, std::to_string(++m_files) + extension);
    }

  private:
    std::string made() const {
        if (!m_ranks.root()) return {};
        const char* const asked = std::getenv("TMPDIR");
        const std::string place = asked != nullptr && *asked != '\0' ? asked : "/tmp";
        std::string path = join_path(place, ".gdal_hsi_pipeline_XXXXXX");
        if (::mkdtemp(path.data()) == nullptr)
            throw Error("cannot make a temporary folder in '" + place + "': " + std::strerror(errno));
        return path;
    }

    parallel::Group& m_ranks;
    std::string m_folder;
    int m_files = 0;
};

/// Makes steps from words.
class Reading {
  public:
    Reading(const tool::Run& run, const Settings& settings, Scratch& scratch)
        : m_run(run), m_settings(settings), m_scratch(scratch) {}

    /// Returns the steps of a pipeline. Their numbers begin with `within` (such as "2.") and count from
    /// `first`.
    Steps steps(const std::vector<Words>& all, const std::string& within = "", size_t first = 1) {
        Steps made;
        for (const Words& words : all)
            made.push_back(step(words, within + std::to_string(first + made.size())));
        return made;
    }

  private:
    Step step(const Words& words, const std::string& number);
    /// Returns the words of a step, with each pipeline in brackets replaced by the file name of its result.
    Words without_brackets(Step& step, const std::string& number);
    /// Returns the kind of file that the step expects at word `at`, where the brackets are.
    static tool::Content wanted(const Step& step, size_t at);
    /// Checks that brackets are used only for arguments that are input files with pixels or labels.
    static void check_places(const Step& step);

    const tool::Run& m_run;
    const Settings& m_settings;
    Scratch& m_scratch;
};

tool::Content Reading::wanted(const Step& step, size_t at) {
    const std::string before = at > 0 ? step.words[at - 1] : "";
    const size_t name = before.find_first_not_of('-');
    if (name != 0 && name != std::string::npos)
        if (const tool::Argument* const option = step.call->find(before.substr(name))) return option->content;
    for (const tool::Argument& one : step.call->arguments())
        if (one.positional && one.role == tool::Role::input) return one.content;
    return tool::Content::none;
}

Words Reading::without_brackets(Step& step, const std::string& number) {
    Words words;
    size_t steps_within = 0;
    for (size_t i = 0; i < step.words.size(); ++i) {
        if (step.words[i] != "[") {
            words.push_back(step.words[i]);
            continue;
        }
        size_t end = i;
        for (int depth = 0; end < step.words.size(); ++end) {
            depth += step.words[end] == "[" ? 1 : step.words[end] == "]" ? -1 : 0;
            if (depth == 0) break;
        }
        const Words inner(step.words.begin() + static_cast<ptrdiff_t>(i + 1),
                          step.words.begin() + static_cast<ptrdiff_t>(end));
        Nested nested;
        nested.steps = steps(steps_of(inner), number + ".", steps_within + 1);
        check_nested(nested.steps, step.title);
        steps_within += nested.steps.size();
        const Step& last = nested.steps.back();
        // GDAL reads label files, and may not support virtual scenes.
        const bool computed = !last.is(read_step) && last.call->declaration().computes() &&
                              wanted(step, i) == tool::Content::raster;
        if (last.is(read_step) && !chooses_source(*last.call))
            nested.path = last.call->options().source.path;
        else
            nested.path = m_scratch.name(computed ? computed_name : file_name);
        words.push_back(nested.path);
        step.nested.push_back(std::move(nested));
        i = end;
    }
    return words;
}

void Reading::check_places(const Step& step) {
    for (const Nested& nested : step.nested) {
        bool found = false;
        for (const tool::Argument& argument : step.call->arguments()) {
            const auto& given = step.call->given_to(argument).words;
            if (std::find(given.begin(), given.end(), nested.path) == given.end()) continue;
            found = true;
            const bool reads = argument.role == tool::Role::input || argument.role == tool::Role::option;
            const bool raster =
                argument.content == tool::Content::raster || argument.content == tool::Content::labels;
            if (!reads || !raster)
                throw UsageError(
                    "brackets replace " + argument.spelling() + ", which is not a raster that the step reads",
                    "Use a pipeline in brackets in place of a raster: [ read other.img ! spp ].");
        }
        if (!found) throw UsageError("brackets are not in place of a file");
    }
}

Step Reading::step(const Words& words, const std::string& number) {
    Step step;
    step.title = "step " + number + " (" + words.front() + ")";
    step.words.assign(words.begin() + 1, words.end());
    std::string name = words.front();
    if (name == "tee") {
        step.beside = true;
        if (step.words.empty())
            throw UsageError(step.title + " has no step", "Write a step, or [ steps ], after tee.");
        if (step.words.front() == "[") {
            if (step.words.back() != "]") throw UsageError(step.title + ": a word follows ']'");
            step.branch = steps(steps_of({step.words.begin() + 1, step.words.end() - 1}), number + ".");
            return step;
        }
        name = step.words.front();
        step.title = "step " + number + " (tee " + name + ")";
        if (name == "tee")
            throw UsageError(step.title + ": tee is given twice", "Write, for example, tee spp -ws 7 y.tif.");
        step.words.erase(step.words.begin());
    }
    step.call = std::make_unique<tool::Call>(*definition_of(name));
    const Words given = without_brackets(step, number);
    tool::Call& call = *step.call;
    const bool is_tool = !step.is(read_step) && !step.is(write_step);
    if (is_tool && !call.declaration().has_source())
        throw UsageError(step.title + ": " + name + " cannot read a scene from the step before it");
    // src and dst of a tool are given by the steps around it. A tool after tee states its own dst.
    if (is_tool) call.give("src", {no_place});
    if (is_tool && call.declaration().has_destination() && !step.beside) call.give("dst", {no_place});
    try {
        tool::give_step_words(m_run, call, given);
        check_places(step);
        if (m_settings.overwrite && writes(call) && !call.given("overwrite")) call.give("overwrite", {});
        call.finish();
        if (is_tool) refuse_inner_options(step);
    } catch (const UsageError& e) {
        const std::string advice = is_tool ? advice_on_outputs(step, e.what()) : std::string();
        throw UsageError(step.title + ": " + e.what(), advice.empty() ? e.advice() : advice);
    }
    return step;
}

void check_order(const Steps& steps, bool inner) {
    for (size_t i = 0; i < steps.size(); ++i) {
        const Step& step = steps[i];
        const bool first = i == 0 && !inner, last = i + 1 == steps.size();
        if (first != step.is(read_step))
            throw UsageError(
                step.title + (first ? ": a pipeline must begin with read" : ": read must be the first step"),
                "Write, for example, read scene.img ! spp -ws 7 ! write y.tif.");
        if (step.beside && step.is(read_step))
            throw UsageError(step.title + ": tee reads the result of the step before it");
        if (!step.beside && step.is(write_step) && !last)
            throw UsageError(step.title + ": write must be the last step",
                             "Use tee write FILE to write an intermediate result.");
        if (!step.beside && last && (step.makes_scene() || step.is(read_step)))
            throw UsageError(step.title + ": its result is not written", "End with ! write FILE.");
        if (!step.beside && step.call && !step.makes_scene() && !step.is(read_step) && !last)
            throw UsageError(step.title + ": it makes no scene for the next step",
                             "Put tee before it to pass on its input.");
        if (!step.branch.empty()) check_order(step.branch, true);
    }
}

void check_nested(const Steps& steps, const std::string& within) {
    const std::string inside = within + ", in brackets: ";
    for (size_t i = 0; i < steps.size(); ++i) {
        const Step& step = steps[i];
        if ((i == 0) != step.is(read_step))
            throw UsageError(inside + (i == 0 ? "it must begin with read" : "read must be the first step"),
                             "Write, for example, [ read other.img ! spp -ws 7 ].");
        if (step.is(write_step) && !step.beside)
            throw UsageError(inside +
                                 "write cannot be its last step, since the surrounding step reads its result",
                             "Use tee write FILE to also write it.");
        if (!step.beside && step.call && !step.makes_scene() && !step.is(read_step))
            throw UsageError(inside + step.title + " makes no scene", "Put tee before it.");
        if (i > 0 && i + 1 == steps.size() && step.beside)
            throw UsageError(inside + step.title + " passes on the scene, but no step follows");
        if (!step.branch.empty()) check_order(step.branch, true);
    }
}

int64_t count_tools(const Steps& steps) {
    int64_t count = 0;
    for (const Step& step : steps) {
        count += count_tools(step.branch) + (step.call && !step.is(read_step) ? 1 : 0);
        for (const Nested& nested : step.nested)
            count += count_tools(nested.steps) + (nested.steps.size() == 1 ? 1 : 0);
    }
    return count;
}

// The run
// ----------------------------------------------------------------------------------------------------------

/// Returns how often the scene before steps[from] is read: by each tee, and by each step that reads a virtual
/// result computed from this scene. Each step counts at least once.
int64_t readers_of(const Steps& steps, size_t from) {
    int64_t count = 0;
    for (size_t i = from; i < steps.size(); ++i) {
        const Step& step = steps[i];
        if (!step.branch.empty()) {
            count += readers_of(step.branch, 0);
            continue;
        }
        ++count;
        if (step.beside || !step.makes_scene()) continue;
        const bool written = i + 2 == steps.size() && steps.back().is(write_step) && !steps.back().beside;
        return count + (step.call->declaration().computes() && !written ? readers_of(steps, i + 1) : 0);
    }
    return count;
}

class Pipeline {
  public:
    Pipeline(tool::Run& run, const Settings& s, Steps& steps, Scratch& scratch)
        : m_run(run), m_settings(s), m_scratch(scratch),
          m_share(1.0 / static_cast<double>(std::max<int64_t>(1, count_tools(steps)))) {}

    /// Runs the steps. `into`: file for the result of a pipeline in brackets; empty outside of brackets.
    void work(Steps& steps, raster::OpenOptions scene = {}, const std::string& into = "") {
        for (size_t i = 0; i < steps.size(); ++i) {
            Step& step = steps[i];
            for (Nested& nested : step.nested)
                make(nested);
            if (m_ended) return;
            const bool last = i + 1 == steps.size();
            if (!step.branch.empty()) {
                work(step.branch, scene);
            } else if (step.is(read_step)) {
                scene = step.call->options().source;
                m_run.files()->reads("read", scene.path, raster::files_read_with(scene.path));
                if (last && !into.empty() && into != scene.path) copy_into(step, scene, into);
            } else if (step.is(write_step)) {
                copy(step, scene, step.call->options().destination);
            } else if (step.beside || !step.makes_scene()) {
                run_tool(step, scene, nullptr);
            } else if (i + 2 == steps.size() && steps.back().is(write_step) && !steps.back().beside) {
                run_tool(step, scene, &steps.back().call->options().destination);
                return;
            } else {
                scene = made_by(step, scene, readers_of(steps, i + 1) > 1, last ? into : "");
            }
            if (m_ended) return;
        }
    }

  private:
    /// Returns the scene that the step reads.
    raster::OpenOptions source_of(const Step& step, const raster::OpenOptions& scene) const {
        if (!chooses_source(*step.call)) return scene;
        const bool chosen = !scene.bands.empty() || !scene.choices.empty() || !scene.excluded.empty() ||
                            scene.window || scene.nodata || !scene.drivers.empty() ||
                            !scene.open_options.empty() || !scene.use_bbl || !scene.bad_bands.empty();
        if (chosen)
            throw UsageError(step.title + ": read also has options that choose bands, a window or the like",
                             "Give all these options to the same step.");
        raster::OpenOptions own = step.call->options().source;
        own.path = scene.path;
        own.document = scene.document;
        return own;
    }

    /// Runs the tool of a step on `scene`. `to`: the output of the step; null: the output that its call
    /// names. \return false with -dry-run if the output was only planned.
    bool run_tool(const Step& step, const raster::OpenOptions& scene, const raster::OutputOptions* to) {
        tool::Call& call = *step.call;
        call.options().source = source_of(step, scene);
        if (to != nullptr) call.options().destination = *to;
        return tool::run_step(m_run, call, step.title, call.definition().executable() + shown(step.words),
                              m_share);
    }

    static std::string shown(const Words& words) {
        std::string text;
        for (const std::string& word : words)
            text += " " + word;
        return text;
    }

    /// Computes the scene of a pipeline in brackets.
    void make(Nested& nested) { work(nested.steps, {}, nested.path); }

    /// Returns the options of a temporary file. Other ranks may open the file after the first rank has made
    /// it.
    static raster::OutputOptions temporary(const std::string& path, const char* format) {
        raster::OutputOptions to;
        to.path = path;
        to.format = format;
        to.at_once = to.overwrite = true;
        return to;
    }

    /// Informs all ranks that the file exists.
    void share_file(const std::string& path) { m_run.ranks().broadcast("file " + path, ""); }

    /// Copies the scene with the bands, window and other choices of `read`, because a file name alone cannot
    /// state these choices.
    void copy_into(const Step& step, const raster::OpenOptions& scene, const std::string& path) {
        if (!copy(step, scene, temporary(path, "ENVI"))) return end_plan(step);
        share_file(path);
        m_run.note(step.title + ": the selected part of the scene is copied to a temporary file");
    }

    void end_plan(const Step& step) {
        m_run.print(step.title + " makes a temporary file: later steps are planned when it exists");
        m_ended = true;
    }

    /// Runs a step and returns its result as the input of the next step. If the tool supports virtual scenes,
    /// the result is computed when it is read. Otherwise the result is stored in a temporary file. again:
    /// true if more than one step reads the result. `into`: required file name of the result; empty: any
    /// name.
    raster::OpenOptions made_by(const Step& step, const raster::OpenOptions& scene, bool again,
                                const std::string& into) {
        raster::OutputOptions to;
        raster::OpenOptions result;
        if (step.call->declaration().computes() && extension_of(into) == computed_name) {
            to = temporary(into, "HSI");
            result.path = into;
            run_tool(step, scene, &to);
            share_file(into);
            return result;
        }
        if (step.call->declaration().computes() && into.empty()) {
            to.path = result.path = "the result of " + step.title;
            to.format = "HSI";
            to.document = std::make_shared<raster::SceneDocument>();
            run_tool(step, scene, &to);
            if (again) to.document->store = std::make_shared<stream::LinkStore>();
            result.document = to.document;
            return result;
        }
        to = temporary(into.empty() ? m_scratch.name(file_name) : into, "ENVI");
        result.path = to.path;
        if (!run_tool(step, scene, &to)) {
            end_plan(step);
            return {};
        }
        share_file(to.path);
        m_run.note(step.title +
                   (step.call->declaration().computes() ? ": its result"
                                                        : ": its result depends on the whole scene, and") +
                   " is kept in a temporary file");
        return result;
    }

    /// Copies the scene unchanged, for `write` in a tee and for `write` after read or tee. \return false with
    /// -dry-run, which only prints the plan.
    bool copy(const Step& step, const raster::OpenOptions& scene, raster::OutputOptions to) {
        const auto source = raster::open_raster(scene);
        const raster::OutputOptions& frame = m_run.options().destination;
        to.history = frame.history;
        to.stac.version = frame.stac.version;
        to.memory = tool::quarter(m_run.options().memory);
        to.threads = m_run.options().threads;
        if (!to.at_once) to.run = m_run.files();
        to.cancel = &m_run.cancel();
        to.overwrite |= m_settings.overwrite;
        raster::OutputSpec spec;
        spec.shape = source->shape();
        spec.type = source->facts().type;
        spec.same_bands = true;
        if (!source->facts().exact_in_float)
            throw Error(step.title + ": single precision cannot store the values of " + source->path(),
                        "Copy them with gdal_translate.");
        stream::CopyOperation operation(spec.shape.bands, false);
        raster::OutputSet outputs;
        outputs.plan(std::move(to), std::move(spec));
        outputs.check(*source);
        return tool::complete([&] {
            tool::write(m_run, *source, operation, outputs, source.get(), [&] {
                m_run.reserve_cache(source->cache_bytes());
                auto pass = m_run.pass("write", m_share);
                pass.memory -= source->take_memory(tool::quarter(pass.memory), pass.lanes);
                return pass;
            });
            outputs.commit();
        });
    }

    tool::Run& m_run;
    const Settings& m_settings;
    Scratch& m_scratch;
    const double m_share; ///< part of the progress bar for each tool
    /// True if -dry-run cannot plan further steps, because their input does not exist yet.
    bool m_ended = false;
};

/// Calls `visit` for all steps, including steps in tees and in brackets.
void each_step(const Steps& steps, const std::function<void(const Step&)>& visit) {
    for (const Step& step : steps) {
        each_step(step.branch, visit);
        for (const Nested& nested : step.nested)
            each_step(nested.steps, visit);
        if (step.call) visit(step);
    }
}

/// Rejects an output that is named twice, and an output that another step reads: outputs appear only at the
/// end of the run.
void check_files(const Steps& steps) {
    struct File {
        std::string path;
        const Step* step;
    };
    std::vector<File> written;
    each_step(steps, [&](const Step& step) {
        for (const tool::Argument& argument : step.call->arguments()) {
            const tool::Given& given = step.call->given_to(argument);
            if (given.count == 0 || argument.content == tool::Content::none ||
                (argument.role == tool::Role::source && !step.is(read_step)))
                continue;
            const std::string& path = given.words.front();
            if (path == no_place) continue;
            const bool writes =
                argument.role == tool::Role::output || argument.role == tool::Role::destination;
            for (const File& other : written)
                if (same_file(other.path, path))
                    throw UsageError(
                        step.title + (writes ? " and " : " reads '" + path + "', which ") +
                            other.step->title + (writes ? " write the same file, '" + path + "'" : " writes"),
                        writes
                            ? "Give every output a different file."
                            : "All outputs appear at the end of the pipeline: divide it into two pipelines.");
            if (writes) written.push_back({path, &step});
        }
    });
}

/// Returns true for a plain path of a file. Returns false for names such as NETCDF:"a.nc":v, for database
/// names and for texts.
bool is_plain_path(const std::string& path) {
    return !path.empty() && path.find_first_of(":<{@") == std::string::npos;
}

/// Checks before the first pass, also with -dry-run, that the inputs of all steps exist and that rasters can
/// be opened. \throws Error with the name of the step.
void check_inputs(const Steps& steps) {
    each_step(steps, [](const Step& step) {
        for (const tool::Argument& argument : step.call->arguments()) {
            const bool scene = argument.role == tool::Role::source && step.is(read_step);
            if (!scene && (argument.role != tool::Role::input || argument.content == tool::Content::none))
                continue;
            for (const std::string& path : step.call->given_to(argument).words) {
                const bool nested = std::any_of(step.nested.begin(), step.nested.end(),
                                                [&](const Nested& one) { return one.path == path; });
                if (nested || !is_plain_path(path) || raster::is_pipe_or_device(path)) continue;
                if (!raster::is_there(path))
                    throw Error(step.title + ": cannot read '" + path + "': the file does not exist",
                                "Inputs of all steps must exist before the pipeline begins.");
                if (!scene && argument.content != tool::Content::raster) continue;
                try {
                    raster::OpenOptions options;
                    if (scene) options = step.call->options().source;
                    options.path = path;
                    (void)raster::open_raster(options);
                } catch (const UsageError& e) {
                    throw UsageError(step.title + ": " + e.what(), e.advice());
                } catch (const Error& e) {
                    throw Error(step.title + ": " + e.what(), e.advice());
                }
            }
        }
    });
}

/// Returns the words of the pipeline. A single text, from a form or a quoted shell word, is split. A leading
/// '!' is dropped.
Words words_of(const Settings& s) {
    Words words = s.words.size() == 1 ? parted(s.words.front()) : s.words;
    if (words.size() > 1 && words.front() == "!") words.erase(words.begin());
    return words;
}

/// Returns the file of the last `write`; empty if there is no `write`.
std::string file_of_write(const Settings& s) {
    const Words words = words_of(s);
    size_t at = words.size();
    for (size_t i = 0; i < words.size(); ++i)
        if (words[i] == "write") at = i;
    for (size_t i = at + 1; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (word.size() < 2 || word[0] != '-') return word;
        const std::string option = word.substr(word[1] == '-' ? 2 : 1);
        // Skip the value of the option.
        if (option == "of" || option == "co" || option == "ot" || option == "dstnodata") ++i;
    }
    return {};
}

void run_pipeline(tool::Run& run, const Settings& s) {
    Scratch scratch(run.ranks());
    Steps steps = Reading(run, s, scratch).steps(steps_of(words_of(s)));
    check_order(steps, false);
    check_files(steps);
    check_inputs(steps);
    run.report()["steps"] = Json::array();
    Pipeline(run, s, steps, scratch).work(steps);
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.words("steps", s.words,
               "read SCENE ! TOOL [options] ! ... ! write FILE; options of the pipeline come first");
    args.overwrite(s.overwrite, "Replace existing outputs; otherwise an existing output is an error");
    args.tells_output([&s] { return file_of_write(s); });
    args.add_compute();
    args.body([&s](tool::Run& run) { run_pipeline(run, s); });
}

} // namespace pipeline_tool
} // namespace

namespace tools {

extern constinit const tool::Definition pipeline{
    "pipeline",
    "Pipelines of several tools",
    "Runs several tools as one: steps are separated by '!', and each processes the result of "
    "the step before it. Results that are computed tile by tile are not written; results that"
    " depend on the whole scene are kept in a temporary file. 'read' and 'write' have the "
    "options of src and dst, every other step has the options of its tool. A step after 'tee' also passes "
    "its unchanged scene to the next step; 'tee [ STEPS ]' does the same with several steps. All outputs "
    "appear together.",
    {{"gdal_hsi_pipeline read scene.dat ! spp -ws 7 ! pca -nc 7 ! write pca.tif",
      "No file between the two tools"},
     {"gdal_hsi_pipeline read scene.dat ! spp -ws 7 ! tee atdca -t 12 targets.gpkg ! pca ! svm_classify "
      "-apply model.json ! "
      "write map.tif",
      "Targets and a map in one run"},
     {"gdal_hsi_pipeline -dry-run read scene.dat -b 1-100 ! spp ! tee [ mnf ! write mnf.tif ] ! pca ! write "
      "pca.tif",
      "The plan: halos, passes, memory"}},
    "",
    pipeline_tool::declare,
    false,
    false,
    true};

} // namespace tools
} // namespace hsi
