// SPDX-License-Identifier: MIT
#include "gdal_hsi_quicklook/legend.h"

#include <algorithm>

namespace hsi::quicklook_tool {
namespace {

constexpr size_t longest_name = 32; ///< maximum number of characters of a class name in the legend

/// Returns the text of an entry. The class number distinguishes classes whose names look alike in the letters
/// of the canvas.
std::string legend_text(const Entry& e) {
    return e.name.empty() ? "Class " + std::to_string(e.value)
                          : std::to_string(e.value) + " " + tools::plain_letters(e.name, longest_name);
}

} // namespace

int64_t legend_width(const std::vector<Entry>& entries) {
    size_t longest = 0;
    for (const auto& e : entries)
        longest = std::max(longest, legend_text(e).size());
    return entries.empty() ? 0 : legend_line + 8 + static_cast<int64_t>(longest) * tools::letter_width;
}

void draw_legend(Canvas& canvas, int64_t x0, const std::vector<Entry>& entries) {
    for (size_t k = 0; k < entries.size(); ++k) {
        const int64_t y0 = static_cast<int64_t>(k) * legend_line;
        for (int64_t y = 2; y < legend_line - 2; ++y)
            for (int64_t x = 0; x < legend_line - 2; ++x)
                canvas.set(x0 + x, y0 + y, entries[k].colour);
        tools::draw_text(canvas, x0 + legend_line + 4, y0 + 3, legend_text(entries[k]));
    }
}

void shorten_legend(tool::Run& run, std::vector<Entry>& legend, int64_t high) {
    const auto most = static_cast<size_t>(std::max<int64_t>(64, high / legend_line));
    if (legend.size() <= most) return;
    const size_t left_out = legend.size() - most;
    run.warn("the legend shows the first " + std::to_string(most) + " of " + std::to_string(legend.size()) +
             " classes by their numbers; " + std::to_string(left_out) + " are left out");
    run.report()["legend_left_out"] = left_out;
    legend.resize(most);
}

} // namespace hsi::quicklook_tool
