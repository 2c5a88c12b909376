// SPDX-License-Identifier: MIT
#include "core/name_index.h"

namespace hsi {
namespace {

std::string in_small_letters(std::string_view name) {
    std::string text(name);
    for (char& c : text)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return text;
}

} // namespace

size_t NameIndex::add(std::string_view name, size_t number) {
    return m_numbers.emplace(in_small_letters(name), number).first->second;
}

std::optional<size_t> NameIndex::find(std::string_view name) const {
    const auto found = m_numbers.find(in_small_letters(name));
    return found == m_numbers.end() ? std::nullopt : std::optional(found->second);
}

} // namespace hsi
