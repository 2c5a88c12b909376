// SPDX-License-Identifier: MIT
// The declaration of a tool, and the Builder that its declare() uses.
#pragma once

#include "tool/argument.h"
#include "tool/run.h"

#include <algorithm>
#include <array>
#include <climits>
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

class Call;
struct Definition;
struct SharedTexts;

/// A value of an enumeration (or a text) with its name on the command line.
template <class T>
struct Named {
    const char* name;
    T value;
    const char* summary = "";
};

/// The arguments, checks and body of a tool, bound to a set of settings. A declaration does not change after
/// it is built.
class Declaration {
  public:
    explicit Declaration(const Definition& definition);

    const Definition& definition() const { return m_definition; }
    const std::deque<Argument>& arguments() const { return m_arguments; }
    /// Returns the argument with this name or alias; null if there is none.
    const Argument* find(const std::string& name) const;
    /// Returns the pairs of options that exclude each other.
    const std::vector<std::pair<std::string, std::string>>& exclusions() const { return m_exclusions; }
    bool has_source() const { return m_has_source; }
    bool has_destination() const { return m_has_destination; }
    bool computes() const { return m_computes; }         ///< see Builder::computes_dst()
    bool looks_around() const { return m_looks_around; } ///< see Builder::looks_around()

  private:
    friend class Builder;
    friend class Call;
    using Assign = std::function<void(const Argument&, const std::vector<std::string>& words)>;

    const Definition& m_definition;
    std::deque<Argument> m_arguments; ///< a deque, so that references to its elements stay valid
    /// For each argument: converts the words and sets the argument's variable. \throws UsageError
    std::vector<Assign> m_assign;
    std::vector<std::pair<std::string, std::string>> m_exclusions;
    std::vector<std::function<void(const Call&)>> m_checks;
    std::function<void(Run&)> m_body;
    std::function<std::string()> m_first_output;
    std::shared_ptr<void> m_settings;         ///< the tool's own settings
    std::shared_ptr<CommonOptions> m_options; ///< the shared options
    std::shared_ptr<SharedTexts> m_texts;     ///< the texts that Call::finish() reads
    bool m_has_source = false, m_has_destination = false, m_has_compute = false, m_computes = false,
         m_looks_around = false;
};

/// Builds a Declaration. The declare() of a tool gets a Builder.
class Builder {
  public:
    explicit Builder(Declaration& made) : m_made(made) {}

    /// Returns the tool's own settings, which are created here and kept as long as the call. Call this
    /// function once.
    template <class Settings>
    Settings& settings() {
        auto made = std::make_shared<Settings>();
        m_made.m_settings = made;
        return *made;
    }
    Argument& flag(const std::string& name, bool& variable, const std::string& summary);
    /// Adds an option with a value: a number, a text, a fixed number of them (std::array) or any number
    /// (std::vector). A vector option may be given several times, and takes numbers also as a list with
    /// commas; vectors of std::array take a whole array each time. The variable's value is the default.
    template <class T>
    Argument& option(const std::string& name, T& variable, const std::string& summary);
    /// Adds an option whose value is one of a few names; case is ignored.
    template <class T>
    Argument& choice(const std::string& name, T& variable, const std::string& summary,
                     std::initializer_list<Named<T>> choices);
    /// Add an option that names a file that is read ("-original FILE") or written ("-alpha FILE"). The file
    /// is included in the run's register of files.
    Argument& input(const std::string& name, std::string& path, Content content, const std::string& summary);
    Argument& output(const std::string& name, std::string& path, Content content, const std::string& summary);
    /// Add an input or an output as a required argument without an option name, in the order of the
    /// declarations.
    Argument& input_argument(const std::string& name, std::string& path, Content content,
                             const std::string& summary);
    Argument& output_argument(const std::string& name, std::string& path, Content content,
                              const std::string& summary);

    /// Adds a last argument without an option name, which takes all remaining words: the steps of a pipeline.
    Argument& words(const std::string& name, std::vector<std::string>& variable, const std::string& summary);

    Argument& add_source(); ///< adds src, -oo, -if, -b, -bbl, -srcwin, -srcnodata; returns src
    /// Adds the arguments of add_source() for a tool with many scenes: "scene ...", which may be empty.
    /// `paths` gets the paths as given. The body opens and registers the scenes.
    void add_sources(std::vector<std::string>& paths, const std::string& summary);
    /// Adds -mask, -mask-exclude and -mask-flags: the pixels that count in `what` ("statistics", "the
    /// search"). With `outputs`, for a tool that writes rasters of all pixels, also adds -mask-output.
    void add_mask(const std::string& what, bool outputs = false);
    /// Adds -follow, for a src that is still being written. Call this function after add_source() or
    /// add_sources(), for a body that uses follow() (tool/follow.h).
    void add_follow();
    /// Adds dst, -of, -co, -ot, -dstnodata, -overwrite and -if-needed; returns dst.
    Argument& add_destination(const std::string& summary = "The output; it appears when it is complete");
    /// Allows dst to be a virtual scene (.hsi), because the tool's result can be computed tile by tile.
    void computes_dst() { m_made.m_computes = true; }
    /// Declares that the tool's result at a pixel depends on the pixels around it.
    void looks_around() { m_made.m_looks_around = true; }
    /// Adds -device, -memory, -device-memory, -threads, -tile, -report, -dry-run, -q. device = false: the
    /// tool computes only on the CPU and has neither -device nor -device-memory.
    void add_compute(bool device = true);
    void add_report(); ///< adds only -report, -dry-run, -q: for a tool that does not process a scene
    /// Adds -overwrite and -if-needed for a tool without add_destination().
    Argument& overwrite(bool& variable, const std::string& summary);

    /// Sets the function that returns the output next to which -if-needed keeps its record, if no argument
    /// names this output. `first` returns an empty text if there is no such output.
    void tells_output(std::function<std::string()> first) { m_made.m_first_output = std::move(first); }

    /// Declares that two options exclude each other.
    void exclusive(const std::string& one, const std::string& other);
    /// Adds a check that is called when all arguments are known and before any file is opened. The check
    /// throws UsageError if arguments contradict each other. Checks run in the order in which they were
    /// added.
    void check(std::function<void(const CommonOptions&)> checker);
    /// Adds a check that also examines which arguments were given.
    void check(std::function<void(const Call&)> checker);
    void body(std::function<void(Run&)> work);

  private:
    using Assign = Declaration::Assign;
    Argument& add(const std::string& name, const std::string& summary, Type type, int values);
    /// Sets the assignment of the argument that was added last.
    void assigned_by(Assign assign) { m_made.m_assign.back() = std::move(assign); }
    Argument& file(const std::string& name, std::string& path, Role role, Content content,
                   const std::string& summary, bool positional);
    void add_reading(); ///< -b, -exclude-range, -bbl, -srcwin, -srcnodata, -if, -oo
    Argument& choose(const std::string& name, const std::string& summary, std::vector<Choice> choices,
                     size_t preset, std::function<void(size_t)> take);

    Declaration& m_made;
    bool m_shared = false; ///< true: arguments that are declared now are shared
};

/// The shared options as text from the command line.
struct SharedTexts {
    std::vector<std::string> bands, excluded;
    std::array<std::string, 4> window;
    std::array<std::string, 2> tile;
    std::string bad_bands = "use";
    std::string source_nodata, nodata;
    std::string device = "auto", memory, device_memory, threads = "ALL_CPUS";
};

namespace detail {

template <class T>
struct Shape { // a single value
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

/// Splits lists of numbers at their commas: the words "1,2" and "3" become "1", "2" and "3".
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
Argument& Builder::option(const std::string& name, T& variable, const std::string& summary) {
    using Shape = detail::Shape<T>;
    using Element = typename Shape::Element;
    Argument& argument = add(name, summary, detail::type_of<Element>(), Shape::values);
    if constexpr (std::is_same_v<T, Element>) argument.preset.value = detail::text_of(variable);
    argument.repeatable = Shape::list;
    assigned_by([&variable](const Argument& given, const std::vector<std::string>& words) {
        if constexpr (Shape::list && Shape::values > 1) {
            variable.clear();
            for (size_t i = 0; i < words.size(); ++i) {
                if (i % Shape::values == 0) variable.emplace_back();
                variable.back()[i % Shape::values] = detail::value_in<Element>(given, words[i]);
            }
        } else if constexpr (Shape::list) {
            variable.clear();
            for (const auto& word : std::is_arithmetic_v<Element> ? detail::split_lists(words) : words)
                variable.push_back(detail::value_in<Element>(given, word));
        } else if constexpr (Shape::values > 1) {
            for (size_t i = 0; i < variable.size(); ++i)
                variable[i] = detail::value_in<Element>(given, words[i]);
        } else {
            variable = detail::value_in<Element>(given, words.front());
        }
    });
    return argument;
}

template <class T>
Argument& Builder::choice(const std::string& name, T& variable, const std::string& summary,
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
