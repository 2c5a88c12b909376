// SPDX-License-Identifier: MIT
#include "stream/column_strips.h"

namespace hsi::stream {

void ColumnStrips::pack(const Tile& tile, const CubeView<float>& in, int64_t group, int64_t end,
                        float* packed) const {
    constexpr int64_t lines = 16; // each group gets a cache line of values
    for (int b = 0; b < in.bands; ++b)
        for (int64_t y = 0; y < in.lines; y += lines)
            for (int64_t g = group; g < end; ++g) {
                const int64_t x = first_sample(g), width = end_sample(g) - x;
                float* to =
                    packed + static_cast<size_t>(g - group) * group_values() + (b * in.lines + y) * width;
                const float* from = in.row(b, y) + (x - tile.window.x);
                const int64_t count = std::min(lines, in.lines - y);
                if (width == 1) // avoids a call for a single number
                    for (int64_t line = 0; line < count; ++line, from += in.line_stride)
                        to[line] = *from;
                else
                    for (int64_t line = 0; line < count; ++line, to += width, from += in.line_stride)
                        std::copy_n(from, width, to);
            }
}

} // namespace hsi::stream
