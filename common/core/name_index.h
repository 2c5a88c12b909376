// SPDX-License-Identifier: MIT
// Finds the index of a name, in any case of ASCII letters.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace hsi {

/// Maps names to indices; the case of ASCII letters does not matter. The time of a search hardly depends on
/// the number of names.
class NameIndex {
  public:
    /// Adds a name with the index `number`, and returns this index. If the name was added before, it keeps
    /// its earlier index, which is returned.
    size_t add(std::string_view name, size_t number);
    /// Returns the index of the name; nullopt if the name was not added.
    std::optional<size_t> find(std::string_view name) const;

  private:
    std::unordered_map<std::string, size_t> m_numbers;
};

} // namespace hsi
