// SPDX-License-Identifier: MIT
// Equal names of classes in different files and on the command line.
#pragma once

#include "core/text.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace hsi {

/// Returns true if two names differ only in the case of ASCII letters, or only in Unicode composition.
inline bool alike_names(const std::string& a, const std::string& b) {
    return equal_names(a, b) || differ_in_composition(a, b);
}

/// Returns the class with this name (its member `name`): the class with exactly this name; otherwise the only
/// class with an alike name. Returns the end if there is no such class, or if several names are alike.
template <class Classes>
auto find_class_named(Classes& classes, const std::string& name) {
    const auto begin = std::begin(classes), end = std::end(classes);
    const auto exact = std::find_if(begin, end, [&](const auto& c) { return c.name == name; });
    if (exact != end) return exact;
    const auto alike = [&](const auto& c) { return alike_names(c.name, name); };
    const auto first = std::find_if(begin, end, alike);
    return first == end || std::find_if(std::next(first), end, alike) == end ? first : end;
}

/// Returns true if only one of the classes has this or an alike name. If a file distinguishes "Corn" and
/// "corn", both names are compared exactly.
template <class Classes>
bool is_unlike_others(const Classes& classes, const std::string& name) {
    return std::count_if(std::begin(classes), std::end(classes),
                         [&](const auto& c) { return alike_names(c.name, name); }) < 2;
}

} // namespace hsi
