// SPDX-License-Identifier: MIT
// A picture in memory, text in the picture, and the raster, SVG or PDF that is written from it.
#pragma once

#include "raster/output_set.h"
#include "tool/run.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hsi::tools {

using Rgb = std::array<uint8_t, 3>;

/// A picture of red, green and blue values; initially white. A canvas for an SVG or a PDF stores texts
/// instead of drawing them.
class Canvas {
  public:
    struct Text {
        int64_t x, y; ///< position as in draw_text()
        std::string letters;
        bool upwards;
    };
    Canvas(int64_t samples, int64_t lines, bool keeps_texts = false)
        : m_samples(samples), m_lines(lines),
          m_values(static_cast<size_t>(samples * lines), Rgb{255, 255, 255}), m_keeps_texts(keeps_texts) {}
    int64_t samples() const { return m_samples; }
    int64_t lines() const { return m_lines; }
    const Rgb& at(int64_t x, int64_t y) const { return m_values[static_cast<size_t>(y * m_samples + x)]; }
    bool keeps_texts() const { return m_keeps_texts; }
    const std::vector<Text>& texts() const { return m_texts; }
    void keep(Text text) { m_texts.push_back(std::move(text)); }
    /// Copies `other` to this canvas, with its upper left corner at (x0, y0).
    void paste(int64_t x0, int64_t y0, const Canvas& other);
    std::string svg() const;
    /// Returns a PDF document of one page, with 96 pixels per inch.
    std::string pdf() const;
    /// Sets a pixel; does nothing outside of the picture.
    void set(int64_t x, int64_t y, const Rgb& colour) {
        if (x >= 0 && y >= 0 && x < m_samples && y < m_lines)
            m_values[static_cast<size_t>(y * m_samples + x)] = colour;
    }

  private:
    int64_t m_samples, m_lines;
    std::vector<Rgb> m_values;
    bool m_keeps_texts;
    std::vector<Text> m_texts;
};

/// Size of a letter in pixels, including the gap after the letter.
inline constexpr int64_t letter_width = 12, letter_height = 14;

/// Returns the text with only the letters that the canvas can draw. Accents are dropped, and other characters
/// become question marks. A text of more than `longest` letters is cut.
std::string plain_letters(std::string_view text, size_t longest);

/// Returns a text with the special characters of XML escaped. Field names may contain any characters.
std::string escaped_text(const std::string& text);

/// Draws black text with its upper left corner at (x0, y0). upwards: true for text that is rotated
/// counter-clockwise, with its lower left corner at (x0, y0). text: result of plain_letters(). A canvas that
/// keeps texts stores the text.
void draw_text(Canvas& canvas, int64_t x0, int64_t y0, const std::string& text, bool upwards = false);

/// Returns the description of a picture as a raster with three bands of type Byte, for OutputSet::check().
raster::OutputSet picture_output(const raster::OutputOptions& options, int64_t samples, int64_t lines);
/// Writes and commits the picture. share: part of the progress bar.
void write_picture(tool::Run& run, const raster::OutputOptions& options, const Canvas& canvas, double share);

} // namespace hsi::tools
