// SPDX-License-Identifier: MIT
// The tools as commands of GDAL (3.11 and newer). GDAL's description of a command is made from the definition
// of the tool. This file has the names that GDAL's users expect, and runs tools inside of another program. A
// run changes no state that the program shares, and reports everything through GDAL.
#include "gdal/modules.h"

#include "catalogue.h"
#include "core/error.h"
#include "core/process_owner.h"
#include "links/links.h"
#include "math/simd_target.h"
#include "raster/drivers.h"
#include "terminal/command_line.h"
#include "terminal/terminal.h"
#include "tool/execute.h"
#include "tool/words.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <gdal.h>
#include <gdalalgorithm.h>

#include <locale.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <condition_variable>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

namespace hsi::plugin {
namespace {

using tool::Argument;
using tool::Content;
using tool::Type;

// --- Names
// -------------------------------------------------------------------------------------------------------

/// The name and letter that GDAL's users expect for an argument.
struct GdalName {
    const char* name;
    char letter;
};

const std::map<std::string, GdalName>& gdal_names() {
    static const std::map<std::string, GdalName> names{
        {"src", {"input", 'i'}},
        {"dst", {"output", 'o'}},
        {"o", {"output", 'o'}}, // dst of tools whose result is a text
        {"dst_test", {"output-test", 0}},
        {"of", {"output-format", 'f'}},
        {"ot", {"output-data-type", 0}},
        {"if", {"input-format", 0}},
        {"lco", {"layer-creation-option", 0}},
        {"srcnodata", {"src-nodata", 0}},
        {"dstnodata", {"dst-nodata", 0}},
        {"threads", {"num-threads", 'j'}},
        {"b", {"bands", 'b'}},       // --band is the name of another argument
        {"with", {"along-with", 0}}, // "with" is a reserved word of Python
        // The names "output" and "bands" are used for dst and -b above, so arguments with these names are
        // renamed.
        {"output", {"output-kind", 0}},
        {"bands", {"target-bands", 0}},
    };
    return names;
}

/// Returns true if GDAL's users know this name for another argument.
bool is_taken(const std::string& name, const Argument& argument) {
    return std::any_of(gdal_names().begin(), gdal_names().end(), [&](const auto& one) {
        return one.first != argument.name && name == one.second.name;
    });
}

/// The names of an argument for GDAL's users. GDAL requires at least two letters, so a one-letter name
/// becomes the short form. GDAL creates Python functions for all commands at once, with the names of their
/// arguments. A single reserved word would prevent all functions, so names are not reserved words of Python.
struct Naming {
    std::string name;
    char letter = 0;
    std::vector<std::string> aliases;
};

bool is_word_of_python(const std::string& name) {
    static const std::set<std::string> words{
        "and",    "as",   "assert", "async",  "await",  "break",   "class",    "continue",
        "def",    "del",  "elif",   "else",   "except", "finally", "for",      "from",
        "global", "if",   "import", "in",     "is",     "lambda",  "nonlocal", "not",
        "or",     "pass", "raise",  "return", "try",    "while",   "with",     "yield"};
    return words.count(name) > 0;
}

Naming naming_of(const Argument& argument) {
    std::vector<std::string> names;
    Naming naming;
    if (const auto own = gdal_names().find(argument.name); own != gdal_names().end()) {
        names.emplace_back(own->second.name);
        naming.letter = own->second.letter;
    }
    if (!is_taken(argument.name, argument)) names.push_back(argument.name);
    names.insert(names.end(), argument.aliases.begin(), argument.aliases.end());
    if (!argument.option_name.empty() && argument.option_name != argument.name)
        names.push_back(argument.option_name);
    for (std::string& name : names) {
        // GDAL's names have dashes; in Python they become underscores.
        std::replace(name.begin(), name.end(), '_', '-');
        if (name.size() == 1)
            naming.letter = name.front();
        else if (naming.name.empty() && !is_word_of_python(name))
            naming.name = name;
        else
            naming.aliases.push_back(name);
    }
    if (naming.name.empty()) naming.name = "option-" + argument.name;
    return naming;
}

/// Returns the end of the word that begins at `at`. A word consists of letters, digits, dashes and
/// underscores.
size_t word_end(const std::string& text, size_t at) {
    while (at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '-' || text[at] == '_'))
        ++at;
    return at;
}

/// Converts a text of a tool to the names of GDAL's command line: "-overwrite" becomes "--overwrite", and
/// "dst" becomes "output". Names in quotes and parts of paths belong to the user and are not changed.
std::string in_words_of_gdal(const tool::Call& call, const std::string& text) {
    std::string told;
    for (size_t at = 0; at < text.size();) {
        const char before = at == 0 ? ' ' : text[at - 1];
        const size_t end = word_end(text, at);
        if (end == at || (before != ' ' && before != '(' && before != '[')) {
            told.append(text, at, std::max<size_t>(end - at, 1));
            at = std::max(end, at + 1);
            continue;
        }
        const std::string word = text.substr(at, end - at);
        const char after = end < text.size() ? text[end] : ' ';
        const bool ends = after != '/' && (after != '.' || end + 1 == text.size() || text[end + 1] == ' ');
        const size_t dash = word.front() == '-' ? 1 : 0;
        const Argument* const argument = ends ? call.find(word.substr(dash)) : nullptr;
        if (argument != nullptr && dash == 1)
            told += is_taken(word.substr(1), *argument) ? "--" + naming_of(*argument).name
                    : word.size() > 2                   ? "-" + word
                                                        : word;
        else if (argument != nullptr && (word == "src" || word == "dst"))
            told += naming_of(*argument).name;
        else
            told += word;
        at = end;
    }
    return told;
}

std::string description_of(const tool::Call& call, const Argument& argument) {
    std::string text = argument.summary;
    // GDAL adds the text about repeated options itself.
    if (const size_t at = text.find("; may be repeated"); at != std::string::npos) text.erase(at);
    if (!argument.unit.empty()) text += ", in " + argument.unit;
    if (const std::string limits = argument.limits_text(); !limits.empty()) text += ", " + limits;
    std::string meanings;
    for (const tool::Choice& choice : argument.choices)
        if (!choice.summary.empty())
            meanings += (meanings.empty() ? "" : "; ") + choice.name + ": " + choice.summary;
    if (!meanings.empty()) text += " (" + meanings + ")";
    if (!argument.preset.note.empty()) text += " (default: " + argument.preset.note + ")";
    text = in_words_of_gdal(call, text);
    if (!text.empty())
        text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
    return text;
}

// --- Values
// ------------------------------------------------------------------------------------------------------

/// The types of argument values that GDAL passes.
using Value = std::variant<bool, int, double, std::string, std::vector<int>, std::vector<double>,
                           std::vector<std::string>>;

Value value_for(const Argument& argument) {
    const bool list = argument.repeatable || argument.values > 1;
    switch (argument.type) {
    case Type::flag:
        return false;
    case Type::integer:
        return list ? Value(std::vector<int>()) : Value(0);
    case Type::number:
        return list ? Value(std::vector<double>()) : Value(0.0);
    case Type::text:
        break;
    }
    return list ? Value(std::vector<std::string>()) : Value(std::string());
}

std::string text_of(int value) { return std::to_string(value); }
std::string text_of(const std::string& value) { return value; }
/// Returns the shortest text that restores this number.
std::string text_of(double value) {
    char text[40];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

/// Returns the words of a value, as on a command line.
std::vector<std::string> words_of(const Value& value) {
    std::vector<std::string> words;
    const auto add = [&](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, bool>)
            return;
        else if constexpr (std::is_same_v<Held, int> || std::is_same_v<Held, double> ||
                           std::is_same_v<Held, std::string>)
            words.push_back(text_of(held));
        else
            for (const auto& one : held)
                words.push_back(text_of(one));
    };
    std::visit(add, value);
    return words;
}

// --- A run
// -------------------------------------------------------------------------------------------------------

/// As long as this object exists, its thread reads and writes numbers with a decimal point, in any locale of
/// the program.
class PlainNumbers {
  public:
    PlainNumbers() : m_plain(newlocale(LC_ALL_MASK, "C", nullptr)) {
        if (m_plain) m_before = uselocale(m_plain);
    }
    ~PlainNumbers() {
        if (!m_plain) return;
        uselocale(m_before);
        freelocale(m_plain);
    }
    PlainNumbers(const PlainNumbers&) = delete;
    PlainNumbers& operator=(const PlainNumbers&) = delete;

  private:
    locale_t m_plain, m_before = nullptr;
};

/// A front end for a program that has called GDAL. The run has its own thread and passes its messages to the
/// calling thread. Only the calling thread reports to the program: error handlers belong to a thread, and a
/// progress function may draw.
class GdalFrontEnd final : public tool::FrontEnd {
  public:
    void begin(const tool::CommonOptions&, Warn warn) override { m_warn = std::move(warn); }
    void progress(double done) override {
        const std::lock_guard lock(m_mutex);
        m_done = done;
        m_changed.notify_one();
    }
    void note(const std::string& text) override { CPLDebug("HSI", "%s", text.c_str()); }
    void warn(const std::string& text) override {
        const std::lock_guard lock(m_mutex);
        m_warnings.push_back(text);
        m_changed.notify_one();
    }
    void print(const std::string& text) override {
        m_printed += text;
        if (text.empty() || text.back() != '\n') m_printed += '\n';
    }
    void check_printed() override {}
    CancelFlag& cancel() override { return m_cancel; }
    // The block cache belongs to the program, so its limit is not changed.
    void limit_cache(uint64_t) override {}
    std::vector<std::string> library_failures() const override { return m_failures; }
    void committed() override {}
    void give_words(tool::Call& call, const std::vector<std::string>& words) override {
        terminal::give_words(call, words);
    }
    const std::vector<const tool::Definition*>& tools() const override { return tools::catalogue(); }
    void end() override { m_warn = nullptr; }

    /// Runs the tool on a separate thread, and waits for its end.
    tool::Outcome run(tool::Call& call, const std::string& command, GDALProgressFunc on_progress, void* data,
                      const std::function<void(const std::string&)>& on_warning) {
        tool::Outcome outcome;
        const CPLStringList options(CPLGetThreadLocalConfigOptions());
        std::thread worker([&] {
            const PlainNumbers plain;
            CPLSetThreadLocalConfigOptions(options.List());
            CPLPushErrorHandlerEx(&GdalFrontEnd::receive, this);
            CPLSetCurrentErrorHandlerCatchDebug(FALSE);
            outcome = tool::execute(call, *this, command);
            CPLPopErrorHandler();
            const std::lock_guard lock(m_mutex);
            m_ended = true;
            m_changed.notify_one();
        });
        serve(on_progress, data, on_warning);
        worker.join();
        return outcome;
    }
    const std::string& printed() const { return m_printed; }

  private:
    /// Passes messages of the run on to the program until the run has ended.
    void serve(GDALProgressFunc on_progress, void* data,
               const std::function<void(const std::string&)>& on_warning) {
        double told = -1;
        std::unique_lock lock(m_mutex);
        for (bool ended = false; !ended;) {
            m_changed.wait(lock, [&] { return m_ended || !m_warnings.empty() || m_done > told; });
            ended = m_ended;
            const double done = m_done;
            const auto warnings = std::exchange(m_warnings, {});
            lock.unlock();
            for (const std::string& text : warnings)
                on_warning(text);
            if (done > told && on_progress != nullptr && !on_progress(done, "", data)) m_cancel.request();
            told = std::max(told, done);
            lock.lock();
        }
    }
    /// Receives GDAL's messages on the thread of the run. A warning is added to the report of the run and
    /// printed as a warning of the run.
    static void CPL_STDCALL receive(CPLErr severity, CPLErrorNum number, const char* text) {
        auto* const self = static_cast<GdalFrontEnd*>(CPLGetErrorHandlerUserData());
        constexpr size_t most = 100; // limit, because a damaged file can give a message for every block
        auto& seen = severity == CE_Failure ? self->m_failures : self->m_gdal_warnings;
        if (severity != CE_Failure && severity != CE_Warning)
            return CPLDefaultErrorHandler(severity, number, text);
        if (seen.size() >= most || std::find(seen.begin(), seen.end(), text) != seen.end()) return;
        seen.emplace_back(text);
        if (severity == CE_Warning) self->m_warn ? self->m_warn(tool::one_line(text)) : self->warn(text);
    }

    CancelFlag m_cancel;
    // Members that only the thread of the run uses:
    Warn m_warn;
    std::string m_printed;
    std::vector<std::string> m_failures, m_gdal_warnings; ///< messages of GDAL, without duplicates
    // Members that both threads use:
    std::mutex m_mutex; ///< guards the following members
    std::condition_variable m_changed;
    std::deque<std::string> m_warnings;
    double m_done = -1;
    bool m_ended = false;
};

// --- Commands
// ----------------------------------------------------------------------------------------------------

/// Returns the name of the command, with dashes: "svm-classify".
std::string command_name(const tool::Definition& definition) {
    std::string name = definition.name;
    std::replace(name.begin(), name.end(), '_', '-');
    return name;
}

class Group final : public GDALContainerAlgorithm {
  public:
    Group() : GDALContainerAlgorithm("hsi", "Hyperspectral image processing") {}
};

/// A command of GDAL that runs one tool.
class Command final : public GDALAlgorithm {
  public:
    explicit Command(const tool::Definition& definition)
        : GDALAlgorithm(command_name(definition), definition.title, ""), m_call(definition) {
        m_longDescription = definition.description;
        AddProgressArg();
        AddOutputStringArg(&m_printed);
        for (const Argument& argument : m_call.arguments())
            // From version 3.12 on, GDAL has its own -q.
            if (argument.name != "q" || GetArg("quiet") == nullptr) add(argument);
        for (const auto& pair : m_call.declaration().exclusions())
            exclude(pair);
    }

    /// GDAL does not know the options of the tools in a pipeline. All words from the first step on are
    /// therefore passed as one value, which may begin with '!'.
    bool ParseCommandLineArguments(const std::vector<std::string>& words) override {
        if (!m_call.definition().steps) return GDALAlgorithm::ParseCommandLineArguments(words);
        const auto first = std::find_if(words.begin(), words.end(), [](const std::string& word) {
            return word == "read" || word == "!";
        });
        if (words.end() - first < 2) return GDALAlgorithm::ParseCommandLineArguments(words);
        std::vector<std::string> whole(words.begin(), first);
        whole.emplace_back();
        for (auto word = first; word != words.end(); ++word)
            whole.back() += (word == first ? "" : " ") + quoted(*word);
        return GDALAlgorithm::ParseCommandLineArguments(whole);
    }

  private:
    /// Quotes a word of a pipeline so that the pipeline can be split into words again.
    static std::string quoted(const std::string& word) {
        if (word.find_first_of(" \t\n\"'\\") == std::string::npos && !word.empty()) return word;
        std::string text = "\"";
        for (const char c : word) {
            if (c == '"' || c == '\\') text += '\\';
            text += c;
        }
        return text + '"';
    }

    struct Bound {
        const Argument* argument = nullptr;
        Value value;
        GDALInConstructionAlgorithmArg* arg = nullptr;
    };

    void add(const Argument& argument) {
        Bound& bound = m_bound.emplace_back();
        bound.argument = &argument;
        bound.value = value_for(argument);
        const std::string text = description_of(m_call, argument);
        Naming naming = naming_of(argument);
        // GDAL completes the names of these two options, because it knows the driver.
        auto* const texts = std::get_if<std::vector<std::string>>(&bound.value);
        if (texts != nullptr && (argument.name == "co" || argument.name == "oo")) {
            auto& arg = argument.name == "co" ? AddCreationOptionsArg(texts, text.c_str())
                                              : AddOpenOptionsArg(texts, text.c_str());
            bound.arg = &arg;
            arg.SetCategory(category_of(argument));
            return;
        }
        auto& arg = std::visit(
            [&](auto& held) -> GDALInConstructionAlgorithmArg& {
                return AddArg(naming.name, naming.letter, text, &held);
            },
            bound.value);
        bound.arg = &arg;
        for (const std::string& alias : naming.aliases)
            arg.AddAlias(alias);
        if (argument.name == "of") arg.AddAlias("format");
        arg.SetCategory(category_of(argument));
        if (argument.positional) arg.SetPositional();
        if (argument.required) arg.SetRequired();
        describe_value(arg, argument);
        complete(arg, argument);
    }

    static std::string category_of(const Argument& argument) {
        return argument.group == "Options" || argument.group == "Arguments" ? GAAC_BASE : argument.group;
    }

    void describe_value(GDALInConstructionAlgorithmArg& arg, const Argument& argument) {
        if (argument.values > 1) {
            arg.SetMinCount(argument.lists ? 1 : argument.values);
            if (!argument.repeatable) arg.SetMaxCount(argument.values);
            arg.SetDisplayHintAboutRepetition(false);
        } else if (argument.repeatable && argument.type == Type::text) {
            arg.SetPackedValuesAllowed(false); // the tool itself splits the text at commas
        }
        if (argument.limits.minimum)
            argument.limits.above_minimum ? arg.SetMinValueExcluded(*argument.limits.minimum)
                                          : arg.SetMinValueIncluded(*argument.limits.minimum);
        if (argument.limits.maximum) arg.SetMaxValueIncluded(*argument.limits.maximum);
        std::vector<std::string> choices;
        for (const tool::Choice& choice : argument.choices)
            choices.push_back(choice.name);
        if (argument.vocabulary == tool::Vocabulary::pixel_types) {
            choices = raster::pixel_types();
            arg.AddMetadataItem("type", {"GDALDataType"}); // allows gdal.GDT_Float32 in Python
        }
        if (!choices.empty()) arg.SetChoices(choices);
        if (choices.empty() && argument.values > 0 && !argument.positional) {
            std::string shown = argument.value_name;
            std::replace(shown.begin(), shown.end(), ' ', ','); // GDAL separates several numbers by commas
            arg.SetMetaVar(shown);
        }
        if (const std::string& preset = argument.preset.value; !preset.empty()) {
            if (argument.repeatable || argument.values > 1) return;
            if (argument.type == Type::text) arg.SetDefault(preset);
            if (argument.type == Type::number) arg.SetDefault(tool::parse_number(preset).value_or(0));
            if (argument.type == Type::integer)
                arg.SetDefault(static_cast<int>(tool::parse_integer(preset).value_or(0)));
        }
    }

    void complete(GDALInConstructionAlgorithmArg& arg, const Argument& argument) {
        if (argument.vocabulary == tool::Vocabulary::raster_drivers)
            complete_drivers(arg, GDAL_DCAP_RASTER);
        else if (argument.vocabulary == tool::Vocabulary::vector_drivers)
            complete_drivers(arg, GDAL_DCAP_VECTOR);
        else if (argument.content == Content::raster)
            SetAutoCompleteFunctionForFilename(arg, GDAL_OF_RASTER);
        else if (argument.content == Content::vector)
            SetAutoCompleteFunctionForFilename(arg, GDAL_OF_VECTOR);
        else if (argument.content != Content::none)
            SetAutoCompleteFunctionForFilename(arg, 0);
    }

    static void complete_drivers(GDALInConstructionAlgorithmArg& arg, const char* kind) {
        arg.SetAutoCompleteFunction([kind](const std::string&) {
            std::vector<std::string> names;
            for (int i = 0; i < GDALGetDriverCount(); ++i)
                if (const GDALDriverH driver = GDALGetDriver(i);
                    GDALGetMetadataItem(driver, kind, nullptr) != nullptr)
                    names.emplace_back(GDALGetDescription(driver));
            return names;
        });
    }

    /// GDAL has no pairs of exclusive arguments, only groups with at most one given member. The call itself
    /// checks pairs that are not such a group.
    void exclude(const std::pair<std::string, std::string>& pair) {
        const auto uses = [&](const std::string& name) {
            return std::count_if(m_call.declaration().exclusions().begin(),
                                 m_call.declaration().exclusions().end(),
                                 [&](const auto& p) { return p.first == name || p.second == name; });
        };
        if (uses(pair.first) > 1 || uses(pair.second) > 1) return;
        for (const Bound& bound : m_bound)
            if (bound.argument->name == pair.first || bound.argument->name == pair.second)
                bound.arg->SetMutualExclusionGroup(pair.first + "-or-" + pair.second);
    }

    /// Passes the values to the call. Returns them as a command line of the executable: first the options of
    /// the tool, then general options, then arguments.
    std::vector<std::string> give_values() {
        std::vector<std::string> own, shared, arguments;
        const auto give = [&](const Argument& argument, const std::vector<std::string>& words) {
            m_call.give(argument.name, words);
            auto& all = argument.positional ? arguments : argument.shared ? shared : own;
            if (!argument.positional) all.push_back("-" + argument.name);
            all.insert(all.end(), words.begin(), words.end());
        };
        for (const Bound& bound : m_bound) {
            if (!bound.arg->IsExplicitlySet()) continue;
            if (const bool* const on = std::get_if<bool>(&bound.value); on != nullptr && !*on) continue;
            const std::vector<std::string> words = words_of(bound.value);
            if (!bound.argument->repeatable) give(*bound.argument, words);
            // The last group may have too few words. It is then rejected later.
            const auto each = static_cast<size_t>(bound.argument->values);
            for (size_t i = 0, n = 0; bound.argument->repeatable && i < words.size(); i += n) {
                n = bound.argument->lists && words[i].rfind('@', 0) == 0 ? 1
                                                                         : std::min(each, words.size() - i);
                give(*bound.argument, {words.begin() + static_cast<ptrdiff_t>(i),
                                       words.begin() + static_cast<ptrdiff_t>(i + n)});
            }
        }
        own.insert(own.end(), shared.begin(), shared.end());
        own.insert(own.end(), arguments.begin(), arguments.end());
        return own;
    }

    bool quiet() const {
        const GDALAlgorithmArg* const arg = GetArg("quiet");
        return arg != nullptr && arg->GetType() == GAAT_BOOLEAN && arg->Get<bool>();
    }

    bool RunImpl(GDALProgressFunc progress, void* data) override {
        tool::Outcome outcome;
        GdalFrontEnd front_end;
        try {
            // GDAL opens a .gdalg.json file like a raster, and opening a raster must not write files.
            if (m_executionForStreamOutput)
                throw UsageError("this command writes files, so it cannot be used in a .gdalg.json file");
            // The recorded command begins with the name of the executable, even if another program made the
            // call.
            const std::string command =
                terminal::quote_command(m_call.definition().executable(), give_values());
            const auto on_warning = [&](const std::string& text) {
                if (!quiet())
                    CPLError(CE_Warning, CPLE_AppDefined, "%s", in_words_of_gdal(m_call, text).c_str());
            };
            outcome = front_end.run(m_call, command, progress, data, on_warning);
        } catch (...) {
            outcome = tool::current_failure(false);
        }
        m_printed = front_end.printed();
        if (outcome.code == 0) return true;
        report_failure(outcome, front_end);
        return false;
    }

    void report_failure(const tool::Outcome& outcome, GdalFrontEnd& front_end) const {
        for (const std::string& text : front_end.library_failures()) {
            const std::string line = tool::one_line(text);
            if (outcome.what.find(line) == std::string::npos &&
                outcome.advice.find(line) == std::string::npos)
                CPLError(CE_Failure, CPLE_AppDefined, "%s", line.c_str());
        }
        const CPLErrorNum number = front_end.cancel().requested() ? CPLE_UserInterrupt
                                   : outcome.code == 2            ? CPLE_IllegalArg
                                                                  : CPLE_AppDefined;
        std::string text = outcome.what;
        if (!outcome.advice.empty()) text += (text.back() == '.' ? " " : ". ") + outcome.advice;
        CPLError(CE_Failure, number, "%s", in_words_of_gdal(m_call, text).c_str());
    }

    tool::Call m_call;
    std::deque<Bound> m_bound; ///< a deque, because GDAL stores the addresses of its elements
    std::string m_printed;
};

} // namespace
} // namespace hsi::plugin

extern "C" __attribute__((visibility("default"))) void hsi_declare_commands() {
    hsi::share_process();
    hsi::links::register_links();
    hsi::math::select_simd(CPLGetConfigOption("HSI_SIMD", "")); // gdal_HSI.so has already checked the name
    auto& registry = GDALGlobalAlgorithmRegistry::GetSingleton();
    registry.DeclareAlgorithm({"hsi"}, [] { return std::make_unique<hsi::plugin::Group>(); });
    for (const hsi::tool::Definition* definition : hsi::tools::catalogue())
        registry.DeclareAlgorithm({"hsi", hsi::plugin::command_name(*definition)}, [definition] {
            return std::make_unique<hsi::plugin::Command>(*definition);
        });
}
