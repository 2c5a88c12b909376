// SPDX-License-Identifier: MIT
// A picture in memory, and the legend beside its panels.
#pragma once

#include "tool/run.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hsi::quicklook_tool {

constexpr int64_t legend_line = 20; ///< pixels

using Rgb = std::array<uint8_t, 3>;

/// The picture: red, green and blue, one plane after another, white at first.
class Canvas {
  public:
    Canvas(int64_t samples, int64_t lines)
        : m_samples(samples), m_lines(lines),
          m_values(static_cast<size_t>(samples * lines), Rgb{255, 255, 255}) {}
    int64_t samples() const { return m_samples; }
    int64_t lines() const { return m_lines; }
    const Rgb& at(int64_t x, int64_t y) const { return m_values[static_cast<size_t>(y * m_samples + x)]; }
    /// Left out where it is beside the picture.
    void set(int64_t x, int64_t y, const Rgb& colour) {
        if (x >= 0 && y >= 0 && x < m_samples && y < m_lines)
            m_values[static_cast<size_t>(y * m_samples + x)] = colour;
    }

  private:
    int64_t m_samples, m_lines;
    std::vector<Rgb> m_values;
};

/// A class of the legend in its colour.
struct Entry {
    std::string name; ///< empty: it has none
    Rgb colour{};
    int value = 0;
    bool seen = false;
};

/// Width of the legend with these names; 0 without any.
int64_t legend_width(const std::vector<Entry>& entries);

/// The classes below one another, from the top of column x0 on.
void draw_legend(Canvas& canvas, int64_t x0, const std::vector<Entry>& entries);

/// No more classes than the panels are high, and 64 in any case: a picture is for people.
void shorten_legend(tool::Run& run, std::vector<Entry>& legend, int64_t high);

} // namespace hsi::quicklook_tool
