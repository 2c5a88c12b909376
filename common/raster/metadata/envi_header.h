// SPDX-License-Identifier: MIT
// The text header of an ENVI file: "key = value" lines, in which values in braces may span several lines.
// Headers are read as they are found: with comments within braces, in quotes, in Latin-1, with a byte-order
// mark, with the line ends of any system.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hsi::raster {

struct EnviField {
    std::string key;   ///< lower case, words separated by one space: "wavelength units"
    std::string value; ///< with its braces, if any
};

/// The fields in the order of the file.
class EnviHeader {
  public:
    EnviHeader() = default;
    /// Parses a header. Skips lines that are not fields (the magic word, comments), also within braces. Reads
    /// a line that is not UTF-8 as Windows-1252. If a key occurs twice, the last value counts. Fields of one
    /// number or word lose quotes, braces and comments after them, and whole numbers are written out (1e3 is
    /// 1000); a list of equal values gives one value. Known lists become {a, b, c}: lists of Python, numpy
    /// and pandas ([..], (..), Index([..]), blanks instead of commas, several lines), with semicolons, or
    /// without braces, and one gain, offset or width for all bands. Names of bands and classes in a wrong
    /// number are unreadable() instead of fields.
    static EnviHeader parse(std::string_view text);
    /// Returns the text of the header, which begins with the magic word ENVI. Text lines are at most as long
    /// as GDAL reads: longer values are put in braces and continue in the next line.
    std::string text() const;

    /// Returns the value of a key; null if absent. Blanks and underscores in keys are the same, as in GDAL.
    const std::string* find(std::string_view key) const;
    void set(const std::string& key, const std::string& value);
    void erase(std::string_view key);
    const std::vector<EnviField>& fields() const { return m_fields; }
    /// Returns keys that the text has several times, with different values.
    const std::vector<std::string>& repeated() const { return m_repeated; }
    /// Returns lists that cannot be read and are therefore not fields, each as "'key': why".
    const std::vector<std::string>& unreadable() const { return m_unreadable; }

  private:
    /// Completes fields that depend on others: one gain for all bands, the number of names.
    void complete_lists();

    std::vector<EnviField> m_fields;
    std::vector<std::string> m_repeated, m_unreadable;
};

/// Reads the header in a file, on any of GDAL's file systems. Returns no fields if it cannot be read. \throws
/// Error if it is in UTF-16, or too long for a header.
EnviHeader read_envi_header(const std::string& path);
/// Returns whether the file begins like such a header.
bool is_envi_header(const std::string& path);

/// GDAL's limit when it reads a header: each text line must end within this number of bytes, or the rest of
/// the header is lost.
inline constexpr size_t longest_gdal_line = 9999;

/// Converts "Wavelength_Units" and "wavelength  units" to "wavelength units".
std::string envi_key(std::string_view key);

bool is_envi_list(std::string_view value); ///< in braces
/// Returns a name as an element of a list. Commas and braces, and a semicolon at the beginning, are not
/// allowed there and become blanks.
std::string envi_name(std::string name);
/// Returns the elements of "{a, b, c}", trimmed and without quotes around them; empty for other values.
std::vector<std::string> envi_list(std::string_view value);
/// Returns the number in the text, in any locale. A decimal comma and a comment after the number are
/// accepted. nullopt for other texts ("N/A", "", "nan", "450 - 500").
std::optional<double> envi_number(std::string_view text);
std::string envi_list_text(const std::vector<std::string>& elements);

/// Returns the names of classes by number; empty if the header has none. GDAL and other readers split "class
/// names" at every comma, so names with commas are written without commas there; our own field has them in
/// quotes.
std::vector<std::string> envi_class_names(const EnviHeader& header);
/// Sets our own field if `names` contains a name with a comma.
void set_quoted_class_names(EnviHeader& header, const std::vector<std::string>& names);
inline constexpr const char* quoted_names_field = "class names in quotes";

} // namespace hsi::raster
