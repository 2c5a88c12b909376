// SPDX-License-Identifier: MIT
// The text header of an ENVI file: "key = value" lines, values in braces may span lines. Read as people have
// it: with comments within braces, in quotes, in Latin-1, with a byte-order mark, with the line ends of any
// system.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hsi::raster {

struct EnviField {
    std::string key;   ///< lower case, words separated by one space: "wavelength units"
    std::string value; ///< with its braces, if it has any
};

/// Fields in the order of the file.
class EnviHeader {
  public:
    EnviHeader() = default;
    /// Lines that are not fields (the magic word, comments) are skipped, within braces, too. A line that is
    /// not UTF-8 is taken for Windows-1252. If a key comes twice, the last value counts. Fields of one number
    /// or word lose quotes, braces and a comment behind them, and whole numbers are written out (1e3 is
    /// 1000); a list of equal values gives one. Known lists become {a, b, c}: Python's, numpy's and pandas'
    /// ([..], (..), Index([..]), blanks for commas, several lines), semicolons for commas, lists without
    /// braces, and one gain, offset or width for all bands. Names of bands and classes in a wrong count are
    /// not fields but unreadable().
    static EnviHeader parse(std::string_view text);
    /// Starts with the magic word ENVI. No line is longer than GDAL reads: longer values go on in the next
    /// line, for which they are put in braces.
    std::string text() const;

    /// Blanks and underscores in keys are the same, as in GDAL. Null if absent.
    const std::string* find(std::string_view key) const;
    void set(const std::string& key, const std::string& value);
    void erase(std::string_view key);
    const std::vector<EnviField>& fields() const { return m_fields; }
    /// Keys that the text has several times, with different values.
    const std::vector<std::string>& repeated() const { return m_repeated; }
    /// Lists that cannot be read and are therefore not fields, each as "'key': why".
    const std::vector<std::string>& unreadable() const { return m_unreadable; }

  private:
    /// Completes fields that depend on others: one gain for all bands, the count of names.
    void complete_lists();

    std::vector<EnviField> m_fields;
    std::vector<std::string> m_repeated, m_unreadable;
};

/// The header in a file, on any of GDAL's file systems; without fields when it cannot be read. \throws Error
/// when it is in UTF-16, or too long for a header.
EnviHeader read_envi_header(const std::string& path);
/// The file begins as such a header does.
bool is_envi_header(const std::string& path);

/// GDAL's limit when it reads a header: each line must end within so many bytes, or the rest of the header is
/// lost.
inline constexpr size_t longest_gdal_line = 9999;

/// "Wavelength_Units" and "wavelength  units" -> "wavelength units".
std::string envi_key(std::string_view key);

bool is_envi_list(std::string_view value); ///< in braces
/// A name as an element of a list, in which commas and braces are not allowed, nor a semicolon at the
/// beginning: they become blanks.
std::string envi_name(std::string name);
/// The elements of "{a, b, c}", trimmed and without quotes around them; empty for other values.
std::vector<std::string> envi_list(std::string_view value);
/// The number in the text, in any locale; a comma may be its decimal point, a comment may follow it. nullopt
/// for other texts ("N/A", "", "nan", "450 - 500").
std::optional<double> envi_number(std::string_view text);
std::string envi_list_text(const std::vector<std::string>& elements);

/// The names of classes by number; empty if the header has none. GDAL and other readers split "class names"
/// at every comma, so names with commas are written without them there; our own field has them in quotes.
std::vector<std::string> envi_class_names(const EnviHeader& header);
/// Sets the field of ours where `names` has such a name.
void set_quoted_class_names(EnviHeader& header, const std::vector<std::string>& names);
inline constexpr const char* quoted_names_field = "class names in quotes";

} // namespace hsi::raster
