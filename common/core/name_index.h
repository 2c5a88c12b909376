// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace hsi {

/// Indices of names, in any case of ASCII letters; a look-up takes about the same time for many names as for
/// few.
class NameIndex {
  public:
    /// Returns the number of the name from now on: `number`, or the one of an earlier add().
    size_t add(std::string_view name, size_t number);
    /// nullopt if the name was not added.
    std::optional<size_t> find(std::string_view name) const;

  private:
    std::unordered_map<std::string, size_t> m_numbers;
};

} // namespace hsi
