// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace hsi {

/// Numbers of names, compared whatever the case of ASCII letters: each look-up takes about the same time for
/// many names as for few.
class NameIndex {
  public:
    /// Returns the number that the name has from now on: `number`, or what an earlier add() gave it.
    size_t add(std::string_view name, size_t number);
    /// nullopt if nobody added the name.
    std::optional<size_t> find(std::string_view name) const;

  private:
    std::unordered_map<std::string, size_t> m_numbers;
};

} // namespace hsi
