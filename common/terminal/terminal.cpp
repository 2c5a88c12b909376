// SPDX-License-Identifier: MIT
#include "terminal/terminal.h"

#include "core/cuda_module.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "core/json.h"
#include "core/text.h"
#include "math/simd_target.h"
#include "terminal/command_line.h"
#include "terminal/completion.h"
#include "terminal/help.h"
#include "terminal/man_page.h"
#include "terminal/process.h"
#include "terminal/usage_json.h"
#include "tool/execute.h"
#include "tool/words.h"

#include <cpl_conv.h>
#include <cpl_progress.h>
#include <cpl_string.h>
#include <gdal.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::terminal {

namespace {

class Terminal final : public tool::FrontEnd {
  public:
    explicit Terminal(const std::vector<const tool::Definition*>& tools) : m_tools(tools) {}
    void begin(const tool::CommonOptions& options, Warn warn) override {
        m_warn = std::move(warn);
        m_stdout_is_output = options.destination.path.rfind("/vsistdout", 0) == 0;
        keep_heap_small();
        m_signals.emplace(m_cancel, m_ends_connections);
    }
    void progress(double done) override {
        if (m_stdout_is_output || m_silent) return;
        const std::lock_guard lock(m_mutex);
        m_bar_open = done < 1;
        GDALTermProgress(done, nullptr, nullptr);
    }
    void note(const std::string& text) override {
        if (m_stdout_is_output || m_silent) return;
        end_bar();
        std::printf("%s\n", text.c_str());
        std::fflush(stdout);
    }
    void warn(const std::string& text) override {
        if (m_silent) return;
        end_bar();
        const std::lock_guard lock(m_mutex);
        std::fflush(stdout); // if both streams go to one log, earlier output comes first
        std::fprintf(stderr, "Warning: %s\n", text.c_str());
    }
    void print(const std::string& text) override {
        if (m_silent) return;
        end_bar();
        m_printed = true;
        std::FILE* stream = m_stdout_is_output ? stderr : stdout;
        std::fputs(text.c_str(), stream);
        if (text.empty() || text.back() != '\n') std::fputc('\n', stream);
        // Flush at once. Otherwise an output that is closed later would flush all streams, and this error
        // would be reported as an error of that output.
        if (std::fflush(stream) != 0 && m_print_error == 0) m_print_error = errno;
    }
    void check_printed() override {
        errno = m_print_error;
        if (m_printed) check_standard_output();
        std::fflush(stdout);
    }
    CancelFlag& cancel() override { return m_cancel; }
    void limit_cache(uint64_t bytes) override { GDALSetCacheMax64(static_cast<GIntBig>(bytes)); }
    std::vector<std::string> library_failures() const override { return m_messages.failures(); }
    void committed() override { m_signals->ignore_from_now_on(); }
    void give_words(tool::Call& call, const std::vector<std::string>& words) override {
        terminal::give_words(call, words);
    }
    const std::vector<const tool::Definition*>& tools() const override { return m_tools; }
    // The signal guard remains, because a rank that waits for others reacts to signals itself.
    void end() override { m_warn = nullptr; }

    /// Keeps connections open on signals, because some of them lead to other processes of the job.
    void keep_connections() { m_ends_connections = false; }
    /// Stops printing: another process of the job prints messages for the user.
    void be_silent() { m_silent = true; }
    /// Ends the text line of the bar at its current position.
    void end_bar() {
        const std::lock_guard lock(m_mutex);
        if (!m_bar_open) return;
        std::fputc('\n', stdout);
        std::fflush(stdout);
        m_bar_open = false;
    }
    void print_failure(const tool::Outcome& failure, const std::string& executable) {
        end_bar();
        std::fflush(stdout);
        std::string advice = failure.advice;
        if (failure.code == 2)
            advice += (advice.empty() ? "" : " ") + ("Run '" + executable + " --help' for all options.");
        std::fprintf(stderr, "ERROR: %s\n", failure.what.c_str());
        if (!advice.empty()) std::fprintf(stderr, "%s\n", advice.c_str());
        for (const std::string& text : m_messages.failures()) {
            const std::string line = tool::one_line(text);
            if (failure.what.find(line) == std::string::npos &&
                failure.advice.find(line) == std::string::npos)
                std::fprintf(stderr, "GDAL: %s\n", line.c_str());
        }
    }

  private:
    /// While a run exists, passes a warning of GDAL to the run, so that the report includes the warning.
    void library_warning(const std::string& text) { m_warn ? m_warn(text) : warn(text); }

    const std::vector<const tool::Definition*>& m_tools;
    CancelFlag m_cancel;
    Warn m_warn;
    GdalMessages m_messages{[this](const std::string& text) { library_warning(tool::one_line(text)); }};
    std::optional<SignalGuard> m_signals;
    std::mutex m_mutex; ///< guards the bar and stderr
    bool m_bar_open = false;
    bool m_stdout_is_output = false, m_printed = false, m_silent = false, m_ends_connections = true;
    int m_print_error = 0; ///< errno of the first print() that failed
};

std::vector<KnownOption> known_options(const tool::Call& call) {
    std::vector<KnownOption> known;
    for (const tool::Argument& argument : call.arguments()) {
        if (argument.positional && argument.option_name.empty()) continue;
        KnownOption one{
            {argument.positional ? argument.option_name : argument.name}, argument.values, argument.lists};
        one.names.insert(one.names.end(), argument.aliases.begin(), argument.aliases.end());
        known.push_back(std::move(one));
    }
    return known;
}

/// Handles --version, --formats and the like. Returns true if nothing else was requested.
bool serve_general_options(const std::string& name, std::vector<std::string>& words) {
    const auto end = std::find(words.begin(), words.end(), "--");
    const auto has = [&](const char* word) {
        return std::any_of(words.begin(), end, [&](const std::string& w) { return equal_names(w, word); });
    };
    if (has("--version")) {
        std::printf("%s %s, GDAL %s\n", name.c_str(), tool::project_version(),
                    GDALVersionInfo("RELEASE_NAME"));
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
    char** processed = given.List(); // GDAL replaces this pointer by a pointer to another list
    CPLErrorReset();
    const int left = GDALGeneralCmdLineProcessor(given.Count(), &processed, 0);
    if (left < 0) {
        const std::string reason = tool::one_line(CPLGetLastErrorMsg());
        throw UsageError(reason.empty() ? "a general option is wrong" : reason);
    }
    if (left == 0) return true;
    const CPLStringList rest(processed);
    words.clear();
    for (int i = 1; i < left; ++i)
        words.emplace_back(rest[i]);
    return false;
}

bool takes_rest(const tool::Call& call) {
    return std::any_of(call.arguments().begin(), call.arguments().end(),
                       [](const tool::Argument& argument) { return argument.takes_rest(); });
}

/// Passes the words to the call's arguments.
void give_line(tool::Call& call, const CommandLine& line) {
    for (const GivenOption& option : line.options)
        call.give(option.name, option.values);
    auto next = line.arguments.begin();
    for (const tool::Argument& argument : call.arguments())
        while (argument.positional && !call.excluded(argument.name) &&
               (call.given_to(argument).count == 0 || argument.repeatable) && next != line.arguments.end())
            call.give(argument.name, {*next++});
    if (next != line.arguments.end())
        throw UsageError("unexpected argument: " +
                         joined(std::vector<std::string>(next, line.arguments.end()), " "));
}

/// Refuses outputs in GDAL's memory, which would be lost when this process ends. Programs that load the tools
/// as GDAL's commands may read such outputs afterwards. \throws UsageError.
void refuse_lost_outputs(const tool::Call& call) {
    for (const tool::Argument& argument : call.arguments())
        if (argument.role == tool::Role::destination || argument.role == tool::Role::output ||
            argument.name == "report") // execute() writes the report
            for (const std::string& path : call.given_to(argument).words)
                if (path.rfind("/vsi", 0) == 0 && path.find("/vsimem/") != std::string::npos)
                    throw UsageError(
                        argument.spelling() + " '" + path +
                            "' is in the memory of this process and would be lost when the process ends",
                        "Use a file on a disk.");
}

} // namespace

void give_words(tool::Call& call, const std::vector<std::string>& words) {
    const CommandLine line = parse_words(words, known_options(call), takes_rest(call));
    if (line.help || line.json_usage)
        throw UsageError("'" + call.definition().executable() + " --help' lists all options");
    give_line(call, line);
}

int run_in_terminal(const tool::Definition& definition, int argc, char** argv,
                    const std::vector<const tool::Definition*>& tools) {
    open_standard_descriptors();
    Terminal terminal(tools);
    const std::string name = definition.executable();
    tool::Outcome outcome;
    tool::JoinedJob job;
    try {
        tool::Call call(definition);
        std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
        if (!words.empty() && words.front() == "--complete") {
            std::fputs(completions(call.declaration(), {words.begin() + 1, words.end()}).c_str(), stdout);
            check_standard_output();
            return 0;
        }
        std::vector<std::string> option_files;
        words = expand_option_files(std::move(words), &option_files);
        const std::string command = quote_command(name, words);
        GDALGetDriverCount(); // GDAL reads its settings file now; later it would replace these settings
        for (const auto& [key, value] : take_configuration(words))
            CPLSetConfigOption(key.c_str(), value.c_str());
        if (serve_general_options(name, words)) {
            check_standard_output();
            return 0;
        }
        math::select_simd(CPLGetConfigOption("HSI_SIMD", ""));
        if (std::none_of(words.begin(), words.end(), [](const std::string& word) {
                return equal_names(word, "--help") || equal_names(word, "-h") || word == "--json-usage";
            }))
            job.join(terminal.cancel(), command);
        if (!job.speaks()) terminal.be_silent();
        if (!job.alone()) terminal.keep_connections();
        const CommandLine line = parse_words(words, known_options(call), takes_rest(call));
        if (line.help || line.json_usage) {
            std::fputs((line.help ? help_text(call.declaration()) : usage_json(call.declaration())).c_str(),
                       stdout);
            check_standard_output();
            return 0;
        }
        give_line(call, line);
        refuse_lost_outputs(call);
        outcome = tool::execute(call, terminal, command, option_files);
    } catch (...) {
        outcome = tool::current_failure(false);
    }
    outcome = job.conclude(outcome);
    if (outcome.code != 0 && !outcome.what.empty()) terminal.print_failure(outcome, name);
    job.finish(outcome.code);
    return outcome.code;
}

namespace {

using Tools = std::vector<const tool::Definition*>;

const tool::Definition* tool_named(const Tools& tools, const std::string& name) {
    const auto found = std::find_if(tools.begin(), tools.end(), [&](const tool::Definition* one) {
        return name == one->name || one->executable() == name;
    });
    return found == tools.end() ? nullptr : *found;
}

/// Returns the tool of a step. The user may write "-" for "_" in the name.
const tool::Definition* step_named(const Tools& tools, std::string name) {
    std::replace(name.begin(), name.end(), '-', '_');
    return tool_named(tools, name);
}

std::string suite_help(const Tools& tools) {
    std::string text =
        "Usage: gdal_hsi TOOL [options] arguments\n\nHyperspectral image processing on georeferenced "
        "cubes of any size. Each tool is\nalso a command of its own, gdal_hsi_TOOL.\n\nTools:\n";
    for (const tool::Definition* one : tools) {
        const std::string name = one->name;
        text += "  " + name + std::string(std::max<size_t>(16, name.size() + 2) - name.size(), ' ') +
                one->title + "\n";
    }
    return text + "\n'gdal_hsi TOOL --help' lists a tool's options; --version and --json-usage describe all "
                  "tools.\n";
}

std::string suite_json(const Tools& tools) {
    auto all = OrderedJson::array();
    for (const tool::Definition* one : tools)
        all.push_back(OrderedJson::parse(usage_json(tool::Declaration(*one))));
    const OrderedJson json{
        {"schema", usage_schema}, {"name", "gdal_hsi"}, {"version", tool::project_version()}, {"tools", all}};
    return json.dump(2) + "\n";
}

int unknown(const std::string& word, const Tools& tools) {
    std::vector<std::string> names;
    for (const tool::Definition* one : tools)
        names.push_back(one->name);
    const std::string near = did_you_mean(word, names);
    std::fprintf(stderr, "ERROR: unknown tool '%s'\n%s%sRun 'gdal_hsi --help' for all tools.\n", word.c_str(),
                 near.c_str(), near.empty() ? "" : " ");
    return 2;
}

int print(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    try {
        check_standard_output();
        return 0;
    } catch (const Error& error) {
        std::fprintf(stderr, "ERROR: %s\n", error.what());
        return 1;
    }
}

/// Handles "--man spp" and "--option-table spp".
int print_about(const std::string& what, const std::string& name, const Tools& tools) {
    if (what == "--man" && name == "gdal_hsi") return print(suite_man_page(tools));
    if (what == "--option-table" && name == "shared") return print(shared_option_table());
    const tool::Definition* one = tool_named(tools, name);
    if (one == nullptr) return unknown(name, tools);
    const tool::Declaration declaration(*one);
    return print(what == "--man" ? man_page(declaration) : option_table(declaration));
}

/// Finds the step of a pipeline to which a word belongs.
class StepAtHand {
  public:
    void pass(const std::string& word) {
        Step& step = m_around.back();
        if (word == "[") {
            m_around.push_back({true, {}});
        } else if (word == "]" && m_around.size() > 1) {
            m_around.pop_back();
            m_around.back().words.push_back(word); // the brackets replace a file, or follow tee
        } else if (word == "!") {
            step = {true, {}};
        } else if ((step.begun && (word != "tee" || !step.words.empty())) || word == "read") {
            step.begun = true;
            step.words.push_back(word);
        }
    }
    /// False: the word is among the options of the pipeline.
    bool begun() const { return m_around.back().begun; }
    /// Returns the words of the step, its name first; empty: the name comes next.
    const std::vector<std::string>& words() const { return m_around.back().words; }

  private:
    struct Step {
        bool begun = false;
        std::vector<std::string> words;
    };
    std::vector<Step> m_around = std::vector<Step>(1); ///< one per level of brackets, outermost first
};

/// Returns the tool whose step contains a word for help, or the pipeline tool if the step is not a tool; null
/// if no word asks for help.
const tool::Definition* step_with_help(const Tools& tools, const tool::Definition& called,
                                       const std::vector<char*>& words) {
    StepAtHand at;
    for (const char* const text : words) {
        const std::string word = text;
        if (word == "--help" || word == "-h") {
            const auto* const step = at.words().empty() ? nullptr : step_named(tools, at.words().front());
            return step != nullptr ? step : &called;
        }
        at.pass(word);
    }
    return nullptr;
}

/// Runs the tool. If help is requested in a step of a pipeline, prints the help of that step's tool.
int run_tool(const Tools& tools, const tool::Definition& called, int argc, char** argv) {
    const auto* const step = called.steps ? step_with_help(tools, called, {argv + 1, argv + argc}) : nullptr;
    if (step == nullptr) return run_in_terminal(called, argc, argv, tools);
    std::string name = step->executable(), help = "--help";
    char* line[] = {name.data(), help.data(), nullptr};
    return run_in_terminal(*step, 2, line);
}

/// Handles "--complete" for steps. At the beginning of a step, prints the names of steps. Within a step,
/// prints the completions of the tool of the step.
int complete_steps(const Tools& tools, const tool::Definition& pipeline, const std::vector<char*>& words) {
    StepAtHand at;
    for (size_t i = 0; i + 1 < words.size(); ++i)
        at.pass(words[i]);
    std::string names;
    if (at.begun() && at.words().empty()) {
        std::vector<std::string> all{"read", "tee", "write"};
        for (const tool::Definition* one : tools)
            if (one != &pipeline) all.push_back(one->name);
        for (const std::string& one : all)
            if (one.rfind(words.back(), 0) == 0) names += one + "\n";
        return print(names);
    }
    const tool::Definition* step = at.begun() ? step_named(tools, at.words().front()) : &pipeline;
    if (step == nullptr) return print("FILES\n"); // the steps "read" and "write" take files
    std::vector<std::string> given{pipeline.executable(), "--complete"};
    if (at.begun())
        given.insert(given.end(), at.words().begin() + 1, at.words().end());
    else
        given.insert(given.end(), words.begin(), words.end() - 1);
    given.emplace_back(words.back());
    std::vector<char*> line;
    for (std::string& word : given)
        line.push_back(word.data());
    return run_in_terminal(*step, static_cast<int>(line.size()), line.data());
}

} // namespace

int run_suite(const Tools& tools, int argc, char** argv) {
    open_standard_descriptors();
    keep_to_own_data();
    allow_many_files();
    restart_without_stuck_blas_threads(argv);
    end_idle_blas_threads();
    ask_for_few_cuda_queues();
    std::string name = argc > 0 ? argv[0] : "";
    name.erase(0, name.rfind('/') + 1);
    if (const tool::Definition* called = tool_named(tools, name)) {
        if (called->steps && argc > 2 && std::string(argv[1]) == "--complete")
            return complete_steps(tools, *called, {argv + 2, argv + argc});
        return run_tool(tools, *called, argc, argv);
    }

    const std::string word = argc > 1 ? argv[1] : "--help";
    if (word == "--help" || word == "-h") return print(suite_help(tools));
    if (word == "--version")
        return print("gdal_hsi " + std::string(tool::project_version()) + ", GDAL " +
                     GDALVersionInfo("RELEASE_NAME") + "\n");
    if (word == "--json-usage") return print(suite_json(tools));
    if ((word == "--man" || word == "--option-table") && argc > 2) return print_about(word, argv[2], tools);
    if (word == "--complete") {
        if (argc > 3 && std::string(argv[2]) == "--man") {
            argv[2] = argv[3]; // name of a tool
            argc = 3;
        }
        if (argc > 3) {
            const tool::Definition* one = tool_named(tools, argv[2]);
            if (one == nullptr) return 0;
            if (one->steps) return complete_steps(tools, *one, {argv + 3, argv + argc});
            argv[2] = argv[1]; // the tool completes the words after its name
            return run_in_terminal(*one, argc - 1, argv + 1);
        }
        const std::string begin = argc > 2 ? argv[2] : "";
        std::string names;
        for (const tool::Definition* one : tools)
            if (std::string(one->name).rfind(begin, 0) == 0) names.append(one->name).append("\n");
        for (const char* const option : {"--help", "--version", "--json-usage", "--man"})
            if (begin[0] == '-' && std::string(option).rfind(begin, 0) == 0)
                names.append(option).append("\n");
        return print(names);
    }
    if (const tool::Definition* one = tool_named(tools, word))
        return run_tool(tools, *one, argc - 1, argv + 1);
    return unknown(word, tools);
}

} // namespace hsi::terminal
