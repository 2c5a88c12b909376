// SPDX-License-Identifier: MIT
// The text header of an ENVI file: "key = value" lines, values in braces may span lines.
#pragma once

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
    /// Lines that are no fields (the magic word, comments) are skipped.
    static EnviHeader parse(std::string_view text);
    std::string text() const; ///< starts with the magic word ENVI

    const std::string* find(std::string_view key) const; ///< null when there is none
    void set(const std::string& key, const std::string& value);
    void erase(std::string_view key);
    const std::vector<EnviField>& fields() const { return m_fields; }

  private:
    std::vector<EnviField> m_fields;
};

/// "Wavelength_Units" and "wavelength  units" -> "wavelength units".
std::string envi_key(std::string_view key);

bool is_envi_list(std::string_view value); ///< in braces
/// A name as an element of a list, where commas and braces cannot stand: they become blanks.
std::string envi_name(std::string name);
/// The trimmed elements of "{a, b, c}"; empty for other values.
std::vector<std::string> envi_list(std::string_view value);
std::string envi_list_text(const std::vector<std::string>& elements);

} // namespace hsi::raster
