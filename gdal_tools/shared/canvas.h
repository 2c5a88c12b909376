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

/// The letters that a picture can show.
enum class Letters {
    dots,    ///< ASCII, drawn as dots: rasters
    western, ///< Windows-1252: PDF
    all,     ///< all of Unicode: SVG
};

/// Letters and size of the texts of a picture. All lengths that belong to texts, lines and margins are
/// multiples of `dot`, so that they grow with the picture.
struct TextStyle {
    Letters letters = Letters::dots;
    int64_t dot = 2; ///< size of a dot of a letter, in pixels; a letter has 5 x 7 dots, and 2 below the line
    int64_t letter_width() const { return 6 * dot; } ///< includes the gap after the letter
    int64_t letter_height() const { return 7 * dot; }
    int64_t row() const { return 10 * dot; } ///< distance between two lines of text
    int64_t thin() const { return dot / 2; } ///< width of a thin line
    /// Returns the width of a result of fitted(), in pixels.
    int64_t width(std::string_view text) const;
    /// Returns the text in UTF-8 with the letters that the picture can show. Others get a substitute: "ae"
    /// for an umlaut, "-" for a dash, letters without accents, or else U+FFFD. A text of more than `longest`
    /// letters is cut.
    std::string fitted(std::string_view text, int64_t longest) const;
    /// Breaks the text at blanks into at most three lines of up to `longest` letters. The rest is cut.
    std::vector<std::string> lines(std::string_view text, int64_t longest) const;
};

/// Returns the size of a dot with which texts are readable when a picture of this size fills a page of 16 cm
/// x 24 cm: capital letters are then about 1.9 mm high. 2 is the least.
int64_t dot_for(int64_t samples, int64_t lines);

/// A picture of red, green and blue values; initially white. A canvas for an SVG or a PDF stores texts
/// instead of drawing them.
class Canvas {
  public:
    struct Text {
        int64_t x, y; ///< position as in draw_text()
        std::string letters;
        bool upwards;
    };
    Canvas(int64_t samples, int64_t lines, const TextStyle& style = {})
        : m_samples(samples), m_lines(lines),
          m_values(static_cast<size_t>(samples * lines), Rgb{255, 255, 255}), m_style(style) {}
    int64_t samples() const { return m_samples; }
    int64_t lines() const { return m_lines; }
    const TextStyle& style() const { return m_style; }
    const Rgb& at(int64_t x, int64_t y) const { return m_values[static_cast<size_t>(y * m_samples + x)]; }
    bool keeps_texts() const { return m_style.letters != Letters::dots; }
    const std::vector<Text>& texts() const { return m_texts; }
    void keep(Text text) { m_texts.push_back(std::move(text)); }
    /// Returns the first text with a letter that has no substitute; empty if there is none.
    const std::string& unknown() const { return m_unknown; }
    void add_unknown(const std::string& text) {
        if (m_unknown.empty()) m_unknown = text;
    }
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
    TextStyle m_style;
    std::vector<Text> m_texts;
    std::string m_unknown;
};

/// Fills a rectangle.
void draw_box(Canvas& canvas, int64_t x0, int64_t y0, int64_t width, int64_t height, const Rgb& colour);

/// Returns a text with the special characters of XML escaped. Field names may contain any characters.
std::string escaped_text(const std::string& text);

/// Draws black text with its upper left corner at (x0, y0). upwards: true for text that is rotated
/// counter-clockwise, with its lower left corner at (x0, y0). text: result of TextStyle::fitted(). A canvas
/// that keeps texts stores the text.
void draw_text(Canvas& canvas, int64_t x0, int64_t y0, const std::string& text, bool upwards = false);

/// Warns if the picture has letters without a substitute.
void warn_of_letters(tool::Run& run, const Canvas& canvas);

/// Returns the description of a picture as a raster with three bands of type Byte, for OutputSet::check().
raster::OutputSet picture_output(const raster::OutputOptions& options, int64_t samples, int64_t lines);
/// Writes and commits the picture. share: part of the progress bar; 0: the progress is not printed.
void write_picture(tool::Run& run, const raster::OutputOptions& options, const Canvas& canvas, double share);

} // namespace hsi::tools
