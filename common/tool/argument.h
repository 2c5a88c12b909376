// SPDX-License-Identifier: MIT
// An argument of a tool: its names, values and limits.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hsi::tool {

/// The type of a value.
enum class Type { flag, integer, number, text };

/// The role of an argument in a run.
enum class Role {
    option,      ///< a value, no file
    source,      ///< the scene
    destination, ///< the output that the tool is there for
    input,       ///< a further file that is read
    output,      ///< a further file that is written
};

/// The kind of a file's content.
enum class Content {
    none,    ///< no file
    raster,  ///< a raster that GDAL opens
    vector,  ///< a vector layer
    labels,  ///< classes of pixels: a raster or a vector file
    model,   ///< a model file (JSON)
    spectra, ///< spectra: an ENVI spectral library or CSV
    text,    ///< JSON, CSV or plain text for other programs
};

/// Names that only GDAL knows all of; a front end completes and corrects them.
enum class Vocabulary { none, raster_drivers, vector_drivers, pixel_types };

const char* name_of(Type type);       ///< "flag", "integer", "number", "text"
const char* name_of(Role role);       ///< "option", "source" ...
const char* name_of(Content content); ///< "none", "raster" ...

struct Choice {
    std::string name, summary;
};

/// The range of allowed numbers.
struct Limits {
    std::optional<double> minimum, maximum;
    bool above_minimum = false; ///< the minimum itself is not allowed
    bool infinite = false;      ///< numbers may be inf
};

/// The behaviour without a value.
struct Default {
    std::string value; ///< as one would write it; empty: none
    std::string note;  ///< "all good ones"
};

/// A parameter of a tool, as its users see it. The given values are in a Call.
struct Argument {
    std::string name;                 ///< without dashes: "ws", "src"
    std::vector<std::string> aliases; ///< "targets" in addition to "t"
    std::string summary;              ///< its effect, a sentence without a full stop
    std::string group = "Options";    ///< heading in the help
    Type type = Type::text;
    Role role = Role::option;
    Content content = Content::none;
    Vocabulary vocabulary = Vocabulary::none;
    bool shared = false; ///< of all tools of its kind (-of, -memory), not of this one alone
    bool positional = false;
    std::string option_name; ///< of a positional one that may also be given as an option: "-apply FILE"
    bool required = false;
    bool repeatable = false;     ///< may be given several times; its values add up
    int values = 1;              ///< words that follow it; 0: a flag
    bool lists = false;          ///< one word @FILE may replace them: a file that lists values, line by line
    std::string value_name;      ///< placeholder for the value: "N", "FILE", "XOFF YOFF XSIZE YSIZE"
    std::string unit;            ///< "pixels", "degrees"
    Limits limits;               ///< of every number of it
    std::vector<Choice> choices; ///< all values that are allowed; empty: any
    Default preset;

    // --- Declaring: each returns the argument itself.
    Argument& from(double least);                  ///< numbers from `least` on
    Argument& above(double least);                 ///< numbers above `least`
    Argument& between(double least, double most);  ///< numbers from `least` to `most`
    Argument& or_infinite();                       ///< inf is allowed
    Argument& in_unit(std::string name_of_unit);   ///< unit
    Argument& shown_as(std::string name_of_value); ///< value_name
    Argument& defaults_to(std::string note);       ///< the note, in the place of the default value
    Argument& under(std::string heading);          ///< group
    Argument& also(std::string alias);             ///< a further spelling
    Argument& speaks(Vocabulary of);               ///< vocabulary
    Argument& or_option(std::string option);       ///< option_name
    Argument& or_list(); ///< lists; the word is then passed with empty ones in the others' place

    /// Positional, and the last: it takes all words from the first that is not an option, even those that
    /// look like options.
    bool takes_rest() const { return positional && repeatable && role == Role::option; }
    /// "-ws", or "src" for a positional one.
    std::string spelling() const;
    /// The summary; and how else it may be given.
    std::string meaning() const;
    /// The allowed values: "a whole number from 3 to 63", "one of fed, exact".
    std::string allowed() const;
    /// "3 to 63", "from 0 on", "above 0"; empty without limits.
    std::string limits_text() const;
};

/// \throws UsageError when the text is not a number, or not one that the argument allows.
double number_in(const Argument& argument, const std::string& text);
/// `least` and `most` are the limits of the variable's type.
long long integer_in(const Argument& argument, const std::string& text, long long least, long long most);
/// The index of the choice that the text names, in any case. \throws UsageError with the nearest one.
size_t choice_in(const Argument& argument, const std::string& text);

/// A number as one would write it: "0.0001", "5".
std::string number_text(double value);

} // namespace hsi::tool
