// SPDX-License-Identifier: MIT
#include "raster/quality_flags.h"

#include "core/error.h"
#include "core/text.h"

#include <cctype>
#include <optional>
#include <utility>

namespace hsi::raster {
namespace {

constexpr double bare_threshold = 0.5;
constexpr const char* blanks = " \t\n\v\f\r";

[[noreturn]] void refuse_item(std::string_view text) {
    throw UsageError("-mask-flags: '" + std::string(text) + "' is not understood",
                     "Give flags with commas between them: cloud, not-land, aot550>0.3 (also >=, <, <=, =). "
                     "gdal_hsi_info -flags lists the names.");
}

FlagItem flag_item(std::string_view text) {
    FlagItem item;
    item.text = trimmed(text, blanks);
    std::string_view name = item.text;
    const size_t at = name.find_first_of("<>=");
    if (at != std::string_view::npos) {
        std::string_view rest = name.substr(at + 1);
        const char sign = name[at];
        const bool or_equal = sign != '=' && !rest.empty() && rest.front() == '=';
        if (or_equal) rest.remove_prefix(1);
        const auto value = to_number(trimmed(rest, blanks));
        if (!value) refuse_item(item.text);
        item.value = *value;
        item.test = sign == '='   ? FlagItem::Test::equal
                    : sign == '>' ? (or_equal ? FlagItem::Test::from : FlagItem::Test::above)
                                  : (or_equal ? FlagItem::Test::up_to : FlagItem::Test::below);
        name = trimmed(name.substr(0, at), blanks);
    }
    if (begins_like_any(name, {"not-"})) {
        // "not-" with a comparison is refused; users can reverse the comparison instead
        if (item.test != FlagItem::Test::holds) refuse_item(item.text);
        item.test = FlagItem::Test::holds_not;
        name.remove_prefix(4);
    }
    item.name = name;
    if (plain_flag_name(name).empty()) refuse_item(item.text);
    return item;
}

} // namespace

bool FlagItem::marks(double flag) const {
    switch (test) {
    case Test::holds:
        return flag >= bare_threshold;
    case Test::holds_not:
        return flag < bare_threshold;
    case Test::above:
        return flag > value;
    case Test::from:
        return flag >= value;
    case Test::below:
        return flag < value;
    case Test::up_to:
        return flag <= value;
    case Test::equal:
        return flag == value;
    }
    return false;
}

std::vector<FlagItem> flag_items(const std::vector<std::string>& lists) {
    std::vector<FlagItem> items;
    for (const std::string& list : lists) {
        std::string_view rest = list;
        for (bool more = true; more;) {
            const size_t comma = rest.find(',');
            items.push_back(flag_item(rest.substr(0, comma)));
            more = comma != std::string_view::npos;
            if (more) rest.remove_prefix(comma + 1);
        }
    }
    return items;
}

std::string plain_flag_name(std::string_view name) {
    std::string plain;
    for (const char c : name)
        if (c != ' ' && c != '_' && c != '-')
            plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    constexpr size_t ending = 4;
    const std::string end = plain.size() > ending ? plain.substr(plain.size() - ending) : "";
    if (end == "flag" || end == "mask") plain.resize(plain.size() - ending);
    return plain;
}

} // namespace hsi::raster
