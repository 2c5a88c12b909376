// SPDX-License-Identifier: MIT
#include "gdal_hsi_quicklook/legend.h"

#include <algorithm>
#include <utility>

namespace hsi::quicklook_tool {
namespace {

constexpr int64_t longest_name = 32; ///< maximum number of letters of a class name in the legend

/// A line of the legend.
struct Line {
    std::string text;
    Rgb colour;
};

/// Returns the text of an entry. The class number distinguishes classes whose names look alike in the letters
/// of the canvas.
std::string legend_text(const tools::TextStyle& style, const Entry& e) {
    return e.name.empty() ? "Class " + std::to_string(e.value)
                          : std::to_string(e.value) + " " + style.fitted(e.name, longest_name);
}

/// Shortens the legend to `rows` lines or to 64 classes, so that it is readable.
void shorten_legend(tool::Run& run, std::vector<Entry>& legend, int64_t rows) {
    const auto most = static_cast<size_t>(std::max<int64_t>(64, rows));
    if (legend.size() <= most) return;
    const size_t left_out = legend.size() - most;
    run.warn("the legend shows the first " + std::to_string(most) + " of " + std::to_string(legend.size()) +
             " classes by their numbers; " + std::to_string(left_out) + " are left out");
    run.report()["legend_left_out"] = left_out;
    legend.resize(most);
}

} // namespace

Canvas with_legend(tool::Run& run, const Canvas& picture, int64_t gap, std::vector<Entry> legend,
                   const std::optional<Rgb>& none) {
    const auto& style = picture.style();
    const int64_t high = style.row();
    std::stable_sort(legend.begin(), legend.end(),
                     [](const Entry& a, const Entry& b) { return a.value < b.value; });
    shorten_legend(run, legend, picture.lines() / high - (none ? 1 : 0));
    std::vector<Line> lines;
    for (const Entry& e : legend)
        lines.push_back({legend_text(style, e), e.colour});
    if (none) lines.push_back({"no class", *none});
    int64_t widest = 0;
    for (const Line& line : lines)
        widest = std::max(widest, style.width(line.text));
    Canvas canvas(picture.samples() + gap + high + 4 * style.dot + widest,
                  std::max(picture.lines(), static_cast<int64_t>(lines.size()) * high), style);
    canvas.paste(0, 0, picture);
    const int64_t x0 = picture.samples() + gap;
    for (size_t k = 0; k < lines.size(); ++k) {
        const int64_t y0 = static_cast<int64_t>(k) * high;
        tools::draw_box(canvas, x0, y0 + style.dot, high - style.dot, high - 2 * style.dot, lines[k].colour);
        tools::draw_text(canvas, x0 + high + 2 * style.dot, y0 + style.dot, lines[k].text);
    }
    return canvas;
}

} // namespace hsi::quicklook_tool
