// SPDX-License-Identifier: MIT
// The text header of an ENVI file: "key = value" lines, in which values in braces may span several lines. The
// parser also accepts comments and quotes within braces, Latin-1, a byte-order mark, and the line ends of all
// systems.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hsi::raster {

struct EnviField {
    std::string key;   ///< in lower case, with single blanks: "wavelength units"
    std::string value; ///< includes the braces of a list
};

/// The fields of a header, in the order of the file.
class EnviHeader {
  public:
    EnviHeader() = default;
    /// Parses a header. Lines that are not fields (the word ENVI, comments) are skipped, also within braces.
    /// Text that is not UTF-8 is read as Windows-1252. If a key occurs several times, the last value is used.
    /// In fields that need a single number or word, quotes, braces and comments are removed, and whole
    /// numbers are written without an exponent (1e3 becomes 1000). If such a field contains a list of equal
    /// values, this value is used. Lists in known fields are converted to the form {a, b, c}. In the file,
    /// they may have the form of Python, numpy or pandas ([..], (..), Index([..]), with blanks instead of
    /// commas, in several lines). They may also have semicolons, or lack braces. A single gain, offset or
    /// FWHM applies to all bands. If a list of band names or class names has a wrong length, the header gets
    /// no such field, and unreadable() reports the list.
    static EnviHeader parse(std::string_view text);
    /// Returns the text of the header, which begins with the word ENVI. Values that exceed GDAL's limit for
    /// text lines are put in braces and continue on the next line.
    std::string text() const;

    /// Returns the value of a key; null if the key does not exist. Blanks and underscores in keys are
    /// equivalent, as in GDAL.
    const std::string* find(std::string_view key) const;
    void set(const std::string& key, const std::string& value);
    void erase(std::string_view key);
    const std::vector<EnviField>& fields() const { return m_fields; }
    /// Returns the keys that occur several times with different values.
    const std::vector<std::string>& repeated() const { return m_repeated; }
    /// Returns the lists that cannot be read and are therefore not fields, as "'key': reason".
    const std::vector<std::string>& unreadable() const { return m_unreadable; }

  private:
    /// Completes fields that depend on other fields: repeats a single gain, offset or FWHM for all bands, and
    /// checks the number of names.
    void complete_lists();

    std::vector<EnviField> m_fields;
    std::vector<std::string> m_repeated, m_unreadable;
};

/// Reads a header file from any of GDAL's file systems. Returns a header without fields if the file cannot be
/// read. \throws Error if the file is in UTF-16, or too large for a header.
EnviHeader read_envi_header(const std::string& path);
/// Returns whether the file begins with the word ENVI.
bool is_envi_header(const std::string& path);

/// GDAL reads a header only up to the first text line that is longer than this number of bytes.
inline constexpr size_t longest_gdal_line = 9999;

/// Returns the key in lower case with single blanks: "wavelength units" for "Wavelength_Units" or "wavelength
/// units".
std::string envi_key(std::string_view key);

/// Returns whether the value is in braces.
bool is_envi_list(std::string_view value);
/// Returns a name as an element of a list. Characters that are not allowed in an element (commas, braces, a
/// leading semicolon) become blanks.
std::string envi_name(std::string name);
/// Returns the elements of "{a, b, c}", without blanks and quotes around them. The list is empty for values
/// without braces.
std::vector<std::string> envi_list(std::string_view value);
/// Returns the number in the text, independent of the locale. A decimal comma and a comment after the number
/// are accepted. nullopt for other texts ("N/A", "", "nan", "450 - 500").
std::optional<double> envi_number(std::string_view text);
std::string envi_list_text(const std::vector<std::string>& elements);

/// Returns the class names in the order of the class values; empty if the header does not have names. GDAL
/// and other readers split the field "class names" at every comma, so commas are removed from the names in
/// this field. If a name contains a comma, all names are also stored, in quotes where needed, in a field of
/// this project (quoted_names_field).
std::vector<std::string> envi_class_names(const EnviHeader& header);
/// Sets the field quoted_names_field if `names` contains a name with a comma; otherwise removes the field.
void set_quoted_class_names(EnviHeader& header, const std::vector<std::string>& names);
inline constexpr const char* quoted_names_field = "class names in quotes";

} // namespace hsi::raster
