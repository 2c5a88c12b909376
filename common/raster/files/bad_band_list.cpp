// SPDX-License-Identifier: MIT
#include "raster/bad_band_list.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"
#include "parallel/group.h"
#include "raster/metadata/envi_header.h"
#include "raster/text_input.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace hsi::raster {
namespace {

constexpr uint64_t longest_header = uint64_t{64} << 20;

/// Returns the position of the field `bbl` in the text: the first byte of its key, and one after the last
/// byte of its value. If the text has no such field, both are the end of the text.
std::pair<size_t, size_t> place_of_list(const std::string& text) {
    for (size_t line = 0; line < text.size();) {
        const size_t end = std::min(text.find_first_of("\r\n", line), text.size());
        const size_t equal = std::min(text.find('=', line), end);
        size_t value_end = end;
        if (const size_t open = text.find_first_not_of(" \t", equal + 1);
            equal < end && open != std::string::npos && text[open] == '{') {
            const size_t close = text.find('}', open);
            value_end = close == std::string::npos ? text.size() : close + 1;
        }
        if (equal < end && envi_key(std::string_view(text).substr(line, equal - line)) == "bbl")
            return {line, value_end};
        line = text.find_first_not_of("\r\n", std::min(text.find_first_of("\r\n", value_end), text.size()));
        if (line == std::string::npos) break;
    }
    return {text.size(), text.size()};
}

/// Writes the list in lines of about a hundred characters, because GDAL reads at most 9999 characters of a
/// line.
std::string list_of(const std::vector<char>& good, const std::string& line_end) {
    constexpr size_t in_a_line = 32;
    std::string text = "bbl = {";
    for (size_t b = 0; b < good.size(); ++b)
        text += (b == 0               ? ""
                 : b % in_a_line == 0 ? "," + line_end
                                      : ",") +
                std::string(good[b] != 0 ? " 1" : " 0");
    return text + "}";
}

std::string with_list(const std::string& text, const std::vector<char>& good) {
    const std::string line_end = text.find("\r\n") != std::string::npos ? "\r\n" : "\n";
    const auto [begin, end] = place_of_list(text);
    if (begin < text.size()) return text.substr(0, begin) + list_of(good, line_end) + text.substr(end);
    const bool ended = text.empty() || text.back() == '\n' || text.back() == '\r';
    return text + (ended ? "" : line_end) + list_of(good, line_end) + line_end;
}

std::string header_text(const TextOutput& output) {
    return read_file(output.path, longest_header, FileHolds::bytes);
}

} // namespace

bool names_envi_header(const std::string& path) {
    constexpr size_t length = 4;
    return path.size() > length && equal_names(path.substr(path.size() - length), ".hdr");
}

void check_bad_band_list(const TextOutput& output, int bands) {
    const auto refuse = [&](const std::string& what) {
        throw Error(output.role + ": '" + output.path + "' " + what,
                    "Name the ENVI header of src to set its list, or a new .csv.");
    };
    if (!is_envi_header(output.path)) refuse("is not an ENVI header");
    const std::string* const count = read_envi_header(output.path).find("bands");
    if (count == nullptr || std::atoi(count->c_str()) != bands)
        refuse("is the header of " + (count ? *count : std::string("no")) + " bands, but src has " +
               hsi::counted(bands, "band"));
    if (is_local(output.path) && (::access(output.path.c_str(), W_OK) != 0 ||
                                  ::access(folder_of(follow_links(output.path)).c_str(), W_OK) != 0))
        refuse("is not writable");
}

void set_bad_band_list(const TextOutput& output, const std::vector<char>& good) {
    if (!parallel::group().root()) return;
    const auto write = [output, good] {
        const std::string before = header_text(output), after = with_list(before, good);
        if (after != before) write_text_output(output, after);
    };
    if (output.run)
        output.run->add_to_file({output.path, write});
    else
        write();
}

} // namespace hsi::raster
