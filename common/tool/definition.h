// SPDX-License-Identifier: MIT
// A tool as a value. Everything that a user sees of it (options, help, man page, completion, forms, commands
// of GDAL) comes from its Definition, and whoever runs it (a host) fills a Call and hands it to execute().
//
//   void declare(tool::Call& call) {
//       auto& s = call.settings<Settings>();
//       call.add_source();
//       call.add_destination();
//       call.add_compute();
//       call.option("ws", s.window, "Window size").between(3, 63).in_unit("pixels");
//       call.output("alpha", s.alpha, Content::raster, "Also write alpha to this file");
//       call.check([&s](const tool::CommonOptions&) { ... throw UsageError(...) ... });
//       call.body([&s](tool::Run& run) { ... });
//   }
//   constinit const tool::Definition spp{"spp", "Spatial preprocessing (SPP)", "Moves every spectrum ...",
//                                        {{"gdal_hsi_spp scene.img y.tif", "..."}}, "", declare};
#pragma once

#include "tool/run.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hsi::tool {

/// What a value is.
enum class Type { flag, integer, number, text };

/// What part an argument has in a run.
enum class Role {
    option,      ///< a value, no file
    source,      ///< the scene
    destination, ///< the output that the tool is there for
    input,       ///< a further file that is read
    output,      ///< a further file that is written
};

/// What a file holds.
enum class Content {
    none,    ///< no file
    raster,  ///< what GDAL opens as a raster
    vector,  ///< a vector layer
    labels,  ///< classes of pixels: a raster or a vector file
    model,   ///< a model file (JSON)
    spectra, ///< spectra: an ENVI spectral library or CSV
    text,    ///< JSON, CSV or plain text for other programs
};

/// Names that only GDAL knows all of; a host completes and corrects them.
enum class Vocabulary { none, raster_drivers, vector_drivers, pixel_types };

const char* name_of(Type type);       ///< "flag", "integer", "number", "text"
const char* name_of(Role role);       ///< "option", "source" ...
const char* name_of(Content content); ///< "none", "raster" ...

struct Choice {
    std::string name, summary;
};

struct Argument {
    std::string name;                 ///< without dashes: "ws", "src"
    std::vector<std::string> aliases; ///< "targets" beside "t"
    std::string summary;              ///< what it does, a sentence without a full stop
    std::string group = "Options";    ///< heading in the help
    Type type = Type::text;
    Role role = Role::option;
    Content content = Content::none;
    Vocabulary vocabulary = Vocabulary::none;
    bool shared = false; ///< of all tools of its kind (-of, -memory), not of this one alone
    bool positional = false;
    /// Positional, and the last: all words from the first that is no option on are its values, whatever they
    /// look like.
    bool takes_rest = false;
    std::string option_name; ///< of a positional one that may also be given as an option: "-apply FILE"
    bool required = false;
    bool repeatable = false; ///< may be given several times; its values add up
    int values = 1;          ///< words that follow it; 0: a flag
    bool lists = false;      ///< one word @FILE may stand for them: a file that lists values, line by line
    std::string value_name;  ///< what stands for the value: "N", "FILE", "XOFF YOFF XSIZE YSIZE"
    std::string unit;        ///< "pixels", "degrees"
    std::optional<double> minimum, maximum; ///< of every number of it
    bool above_minimum = false;             ///< the minimum itself is not allowed
    bool infinite = false;                  ///< numbers may be inf
    std::vector<Choice> choices;            ///< all values that are allowed; empty: any
    std::string default_value;              ///< as one would write it; empty: none
    std::string default_note;               ///< what holds without a value: "all good ones"

    // --- Declaring: each returns the argument itself.
    Argument& from(double least);                  ///< numbers from `least` on
    Argument& above(double least);                 ///< numbers above `least`
    Argument& between(double least, double most);  ///< numbers from `least` to `most`
    Argument& or_infinite();                       ///< inf is allowed
    Argument& in_unit(std::string name_of_unit);   ///< unit
    Argument& shown_as(std::string name_of_value); ///< value_name
    Argument& defaults_to(std::string note);       ///< default_note, in the place of the default value
    Argument& under(std::string heading);          ///< group
    Argument& also(std::string alias);             ///< a further spelling
    Argument& speaks(Vocabulary of);               ///< vocabulary
    Argument& or_option(std::string option);       ///< option_name
    Argument& or_list(); ///< lists; the word comes with empty ones in the others' place

    // --- In a run
    std::vector<std::string> words; ///< all that was given, in order
    int count = 0;                  ///< how many times
    /// Gives `words` to the variable behind the argument. \throws UsageError.
    std::function<void(const Argument&)> assign;

    /// "-ws", or "src" for a positional one.
    std::string spelling() const;
    /// The summary; and how else it may be given.
    std::string meaning() const;
    /// "a whole number from 3 to 63", "one of fed, exact": what is allowed.
    std::string allowed() const;
    /// "3 to 63", "from 0 on", "above 0"; empty without limits.
    std::string limits() const;
};

/// \throws UsageError when the text is no number, or none that the argument allows.
double number_in(const Argument& argument, const std::string& text);
/// `least` and `most` are those of the variable's type.
long long integer_in(const Argument& argument, const std::string& text, long long least, long long most);
/// The index of the choice that the text names, whatever its case. \throws UsageError with the nearest one.
size_t choice_in(const Argument& argument, const std::string& text);

/// A number as one would write it: "0.0001", "5".
std::string number_text(double value);

class Call;

/// GDAL's names of the pixel types that -ot takes: those of real numbers.
std::vector<std::string> pixel_types();

/// A line that shows how the tool is used, and in a few words what for.
struct Example {
    const char *command, *purpose;
};

/// A constant: a tool costs the others nothing until it is called.
struct Definition {
    const char* name;        ///< "spp": the executable is gdal_hsi_spp, GDAL's command hsi spp
    const char* title;       ///< a few words: "Spatial preprocessing (SPP)"
    const char* description; ///< what it does, whole sentences
    std::initializer_list<Example> examples;
    const char* notes; ///< further lines of the help; may be empty
    void (*declare)(Call& call);
    bool one_process = false; ///< several ranks do it no faster: rank 0 works, and the others wait
    bool on_arrays = true;    ///< false: it is about files, and libhsi has it not (plugins/arrays)
    bool steps = false;       ///< its words are steps of other tools, which help and completion are of

    std::string executable() const { return std::string("gdal_hsi_") + name; }
};

/// A value of an enumeration (or a text) with its name on the command line.
template <class T>
struct Named {
    const char* name;
    T value;
    const char* summary = "";
};

/// One call of a tool: its settings, and the arguments bound to them. Made by a host, used once. Calls know
/// nothing of one another: several may run in one process.
class Call {
  public:
    explicit Call(const Definition& definition);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // --- What a definition's declare() uses
    /// The tool's own settings, made here and kept as long as the call. Once a call.
    template <class Settings>
    Settings& settings() {
        auto made = std::make_shared<Settings>();
        m_settings = made;
        return *made;
    }
    Argument& flag(const std::string& name, bool& variable, const std::string& summary);
    /// An option with a value: a number, a text, so many of them (std::array) or any number (std::vector;
    /// given several times, and numbers also as a list with commas; of std::array: so many each time). The
    /// variable's value is the default.
    template <class T>
    Argument& option(const std::string& name, T& variable, const std::string& summary);
    /// An option whose value is one of a few names, whatever their case.
    template <class T>
    Argument& choice(const std::string& name, T& variable, const std::string& summary,
                     std::initializer_list<Named<T>> choices);
    /// An option that names a file that is read ("-original FILE"), or written ("-alpha FILE"): part of the
    /// run's register of files.
    Argument& input(const std::string& name, std::string& path, Content content, const std::string& summary);
    Argument& output(const std::string& name, std::string& path, Content content, const std::string& summary);
    /// The same as an argument without a name, required, in the order of the declarations.
    Argument& input_argument(const std::string& name, std::string& path, Content content,
                             const std::string& summary);
    Argument& output_argument(const std::string& name, std::string& path, Content content,
                              const std::string& summary);

    /// A last argument without a name that takes all words from its first one on: steps of a pipeline.
    Argument& words(const std::string& name, std::vector<std::string>& variable, const std::string& summary);

    void add_source(); ///< src, -oo, -if, -b, -bbl, -srcwin, -srcnodata
    /// The same for a tool of many scenes, `paths` as they were given: "scene ...", which may be none. The
    /// body opens and registers them.
    void add_sources(std::vector<std::string>& paths, const std::string& summary);
    /// -mask and -mask-exclude: which pixels count in `what` ("statistics", "the search"); with `outputs`,
    /// for a tool that writes rasters of all pixels, also -mask-output.
    void add_mask(const std::string& what, bool outputs = false);
    /// -follow: src is still being written. After add_source() or add_sources(), and for a body that works
    /// with follow() (tool/follow.h).
    void add_follow();
    /// dst, -of, -co, -ot, -dstnodata, -overwrite, -if-needed
    void add_destination(const std::string& summary = "The output; it appears when it is complete");
    /// dst may be an .hsi: what the tool makes of the scene is made tile by tile.
    void computes_dst() { m_computes = true; }
    /// -device, -memory, -device-memory, -threads, -tile, -report, -dry-run, -q. device = false: a tool that
    /// computes on the CPU alone has no -device and no -device-memory.
    void add_compute(bool device = true);
    void add_report(); ///< -report, -dry-run, -q alone: for a tool that does not work through a scene
    /// -overwrite and -if-needed of a tool without add_destination().
    Argument& overwrite(bool& variable, const std::string& summary);

    /// The output beside which -if-needed keeps its record, where no argument names it: empty when there is
    /// none.
    void tells_output(std::function<std::string()> first) { m_first_output = std::move(first); }

    /// Two options that are not given together.
    void exclusive(const std::string& one, const std::string& other);
    /// Called when all arguments are known and before any file is opened: throw UsageError when they
    /// contradict one another. Checks run in the order in which they were added.
    void check(std::function<void(const CommonOptions&)> checker);
    void body(std::function<void(Run&)> work);
    bool given(const std::string& name) const;    ///< the argument stands in this call
    bool excluded(const std::string& name) const; ///< by another one that does

    // --- What hosts use
    const Definition& definition() const { return m_definition; }
    const std::deque<Argument>& arguments() const { return m_arguments; }
    /// The argument of this name or alias; null when there is none.
    const Argument* find(const std::string& name) const;
    /// Pairs of options that exclude one another.
    const std::vector<std::pair<std::string, std::string>>& exclusions() const { return m_exclusions; }
    bool has_source() const { return m_has_source; }
    bool has_destination() const { return m_has_destination; }
    bool computes() const { return m_computes; } ///< computes_dst()
    /// One more occurrence of an argument, with its words (none for a flag). \throws UsageError when there is
    /// no such argument or the number of words is wrong.
    void give(const std::string& name, const std::vector<std::string>& words);
    /// All arguments are given: converts and checks them, fills options(). \throws UsageError.
    void finish();
    /// The shared options; complete after finish(). The host adds history, cancellation and register.
    CommonOptions& options() { return m_options; }
    const CommonOptions& options() const { return m_options; }
    void run_checks() const;
    const std::function<void(Run&)>& work() const { return m_body; }
    /// dst, else the first output that is given, else what tells_output() has said; may be empty.
    std::string first_output() const;

  private:
    struct Raw;
    Argument& add(const std::string& name, const std::string& summary, Type type, int values);
    Argument& file(const std::string& name, std::string& path, Role role, Content content,
                   const std::string& summary, bool positional);
    void add_reading(); ///< -b, -exclude-range, -bbl, -srcwin, -srcnodata, -if, -oo
    Argument& choose(const std::string& name, const std::string& summary, std::vector<Choice> choices,
                     size_t preset, std::function<void(size_t)> take);
    void resolve();

    const Definition& m_definition;
    std::deque<Argument> m_arguments; ///< references to them stay valid
    std::vector<std::pair<std::string, std::string>> m_exclusions;
    std::vector<std::function<void(const CommonOptions&)>> m_checks;
    std::function<void(Run&)> m_body;
    std::function<std::string()> m_first_output;
    std::shared_ptr<void> m_settings;
    std::unique_ptr<Raw> m_raw; ///< shared options as they were given
    CommonOptions m_options;
    bool m_has_source = false, m_has_destination = false, m_has_compute = false, m_computes = false;
    bool m_shared = false; ///< what is declared now is one of the shared arguments
};

namespace detail {

template <class T>
struct Shape { // of a single value
    using Element = T;
    static constexpr int values = 1;
    static constexpr bool list = false;
};
template <class T, size_t n>
struct Shape<std::array<T, n>> {
    using Element = T;
    static constexpr int values = static_cast<int>(n);
    static constexpr bool list = false;
};
template <class T>
struct Shape<std::vector<T>> {
    using Element = T;
    static constexpr int values = 1;
    static constexpr bool list = true;
};
template <class T, size_t n>
struct Shape<std::vector<std::array<T, n>>> { // several values each time, any number of times
    using Element = T;
    static constexpr int values = static_cast<int>(n);
    static constexpr bool list = true;
};
template <class T>
struct Shape<std::optional<T>> {
    using Element = T;
    static constexpr int values = 1;
    static constexpr bool list = false;
};

template <class T>
constexpr Type type_of() {
    if constexpr (std::is_integral_v<T>) return Type::integer;
    if constexpr (std::is_floating_point_v<T>) return Type::number;
    return Type::text;
}

template <class T>
T value_in(const Argument& argument, const std::string& text) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(integer_in(
            argument, text, std::numeric_limits<T>::min(),
            static_cast<long long>(std::min<unsigned long long>(std::numeric_limits<T>::max(), LLONG_MAX))));
    else if constexpr (std::is_floating_point_v<T>)
        return static_cast<T>(number_in(argument, text));
    else
        return text;
}

/// "1,2", "3" -> "1", "2", "3"
std::vector<std::string> split_lists(const std::vector<std::string>& words);

template <class T>
std::string text_of(const T& value) {
    if constexpr (std::is_arithmetic_v<T>)
        return std::is_integral_v<T> ? std::to_string(value) : number_text(static_cast<double>(value));
    else
        return value;
}

} // namespace detail

template <class T>
Argument& Call::option(const std::string& name, T& variable, const std::string& summary) {
    using Shape = detail::Shape<T>;
    using Element = typename Shape::Element;
    Argument& argument = add(name, summary, detail::type_of<Element>(), Shape::values);
    if constexpr (std::is_same_v<T, Element>) argument.default_value = detail::text_of(variable);
    argument.repeatable = Shape::list;
    argument.assign = [&variable](const Argument& given) {
        if constexpr (Shape::list && Shape::values > 1) {
            variable.clear();
            for (size_t i = 0; i < given.words.size(); ++i) {
                if (i % Shape::values == 0) variable.emplace_back();
                variable.back()[i % Shape::values] = detail::value_in<Element>(given, given.words[i]);
            }
        } else if constexpr (Shape::list) {
            variable.clear();
            for (const auto& word :
                 std::is_arithmetic_v<Element> ? detail::split_lists(given.words) : given.words)
                variable.push_back(detail::value_in<Element>(given, word));
        } else if constexpr (Shape::values > 1) {
            for (size_t i = 0; i < variable.size(); ++i)
                variable[i] = detail::value_in<Element>(given, given.words[i]);
        } else {
            variable = detail::value_in<Element>(given, given.words.front());
        }
    };
    return argument;
}

template <class T>
Argument& Call::choice(const std::string& name, T& variable, const std::string& summary,
                       std::initializer_list<Named<T>> choices) {
    std::vector<Choice> names;
    std::vector<T> values;
    size_t preset = choices.size();
    for (const Named<T>& one : choices) {
        if (one.value == variable) preset = values.size();
        names.push_back({one.name, one.summary});
        values.push_back(one.value);
    }
    return choose(name, summary, std::move(names), preset,
                  [&variable, values](size_t chosen) { variable = values[chosen]; });
}
} // namespace hsi::tool
