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
    option,      ///< a value that is not a file
    source,      ///< the scene
    destination, ///< the main output of the tool
    input,       ///< an additional file that is read
    output,      ///< an additional file that is written
};

/// The content of a file.
enum class Content {
    none,    ///< not a file
    raster,  ///< a raster that GDAL opens
    vector,  ///< a vector layer
    labels,  ///< classes of pixels: a raster or a vector file
    model,   ///< a model file (JSON)
    spectra, ///< spectra: an ENVI spectral library or CSV
    text,    ///< JSON, CSV or plain text for other programs
};

/// The kind of names to which the values of an argument belong, if only GDAL knows all of these names. A
/// front end completes such names and corrects misspelled ones.
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

/// The behaviour if the option is not given.
struct Default {
    std::string value; ///< the value as a user would write it; empty: no default
    std::string note;  ///< text that the help shows instead of the value: "all good ones"
};

/// A parameter of a tool, as its users see it. The given values are in a Call.
struct Argument {
    std::string name;                 ///< without dashes: "ws", "src"
    std::vector<std::string> aliases; ///< "targets" in addition to "t"
    std::string summary;              ///< effect of the argument: a sentence without a full stop
    std::string group = "Options";    ///< heading in the help
    Type type = Type::text;
    Role role = Role::option;
    Content content = Content::none;
    Vocabulary vocabulary = Vocabulary::none;
    bool shared = false; ///< shared by many tools (-of, -memory), not specific to this tool
    bool positional = false;
    std::string option_name; ///< the option that may replace a positional argument: "-apply FILE"
    bool required = false;
    bool repeatable = false; ///< may be given several times; its values add up
    int values = 1;          ///< number of words after the option; 0: a flag
    bool lists = false;      ///< one word @FILE may replace the words: a file with one value per text line
    std::string value_name;  ///< name of the value in help: "N", "FILE", "XOFF YOFF XSIZE YSIZE"
    std::string unit;        ///< "pixels", "degrees"
    Limits limits;           ///< range of every number of the argument
    std::vector<Choice> choices; ///< allowed values; empty: any value
    Default preset;

    // --- Declaration: each function returns the argument itself.
    Argument& from(double least);                  ///< numbers from `least` on
    Argument& above(double least);                 ///< numbers above `least`
    Argument& between(double least, double most);  ///< numbers from `least` to `most`
    Argument& or_infinite();                       ///< inf is allowed
    Argument& in_unit(std::string name_of_unit);   ///< sets `unit`
    Argument& shown_as(std::string name_of_value); ///< sets `value_name`
    Argument& defaults_to(std::string note);       ///< shows the note instead of the default value
    Argument& under(std::string heading);          ///< sets `group`
    Argument& also(std::string alias);             ///< adds an alias
    Argument& speaks(Vocabulary of);               ///< sets `vocabulary`
    Argument& or_option(std::string option);       ///< sets `option_name`
    /// Sets `lists`: one word @FILE may replace the values. The argument then gets this word, followed by
    /// empty words for the other values.
    Argument& or_list();

    /// Returns true for a last positional argument that takes all words from the first one that is not an
    /// option, even words that look like options.
    bool takes_rest() const { return positional && repeatable && role == Role::option; }
    /// Returns "-ws", or "src" for a positional argument.
    std::string spelling() const;
    /// Returns the summary, and the other ways to give the argument.
    std::string meaning() const;
    /// Returns the allowed values: "a whole number from 3 to 63", "one of fed, exact".
    std::string allowed() const;
    /// Returns "3 to 63", "from 0 on" or "above 0"; empty without limits.
    std::string limits_text() const;
};

/// Converts the text to a number. \throws UsageError if it is not a number, or not allowed for the argument.
double number_in(const Argument& argument, const std::string& text);
/// Converts the text to an integer. `least` and `most` are the limits of the variable's type.
long long integer_in(const Argument& argument, const std::string& text, long long least, long long most);
/// Returns the index of the choice that the text names; case is ignored. \throws UsageError that suggests the
/// most similar choice.
size_t choice_in(const Argument& argument, const std::string& text);

/// Returns a number as a user would write it: "0.0001", "5".
std::string number_text(double value);

} // namespace hsi::tool
