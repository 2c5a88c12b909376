// SPDX-License-Identifier: MIT
#include "shared/canvas.h"

#include "core/text.h"
#include "raster/packed_text.h"
#include "stream/empty_source.h"
#include "stream/operation.h"
#include "stream/pipeline.h"

#include <algorithm>
#include <limits>
#include <memory>

namespace hsi::tools {
namespace {

/// Bitmaps of the letters from ' ' to '~', 5 x 9 dots each: five columns, with the lowest bit on top. The
/// last two rows are below the base line.
constexpr uint16_t bitmaps[][5] = {
    {0x00, 0x00, 0x00, 0x00, 0x00},  {0x00, 0x00, 0x5f, 0x00, 0x00}, {0x00, 0x07, 0x00, 0x07, 0x00},
    {0x14, 0x7f, 0x14, 0x7f, 0x14},  {0x24, 0x2a, 0x7f, 0x2a, 0x12}, {0x23, 0x13, 0x08, 0x64, 0x62},
    {0x36, 0x49, 0x55, 0x22, 0x50},  {0x00, 0x05, 0x03, 0x00, 0x00}, {0x00, 0x1c, 0x22, 0x41, 0x00},
    {0x00, 0x41, 0x22, 0x1c, 0x00},  {0x14, 0x08, 0x3e, 0x08, 0x14}, {0x08, 0x08, 0x3e, 0x08, 0x08},
    {0x00, 0x80, 0x60, 0x00, 0x00},  {0x08, 0x08, 0x08, 0x08, 0x08}, {0x00, 0x60, 0x60, 0x00, 0x00},
    {0x20, 0x10, 0x08, 0x04, 0x02},  {0x3e, 0x51, 0x49, 0x45, 0x3e}, {0x00, 0x42, 0x7f, 0x40, 0x00},
    {0x42, 0x61, 0x51, 0x49, 0x46},  {0x21, 0x41, 0x45, 0x4b, 0x31}, {0x18, 0x14, 0x12, 0x7f, 0x10},
    {0x27, 0x45, 0x45, 0x45, 0x39},  {0x3c, 0x4a, 0x49, 0x49, 0x30}, {0x01, 0x71, 0x09, 0x05, 0x03},
    {0x36, 0x49, 0x49, 0x49, 0x36},  {0x06, 0x49, 0x49, 0x29, 0x1e}, {0x00, 0x36, 0x36, 0x00, 0x00},
    {0x00, 0x80, 0x6c, 0x00, 0x00},  {0x08, 0x14, 0x22, 0x41, 0x00}, {0x14, 0x14, 0x14, 0x14, 0x14},
    {0x00, 0x41, 0x22, 0x14, 0x08},  {0x02, 0x01, 0x51, 0x09, 0x06}, {0x3e, 0x41, 0x5d, 0x55, 0x1e},
    {0x7e, 0x11, 0x11, 0x11, 0x7e},  {0x7f, 0x49, 0x49, 0x49, 0x36}, {0x3e, 0x41, 0x41, 0x41, 0x22},
    {0x7f, 0x41, 0x41, 0x22, 0x1c},  {0x7f, 0x49, 0x49, 0x49, 0x41}, {0x7f, 0x09, 0x09, 0x09, 0x01},
    {0x3e, 0x41, 0x49, 0x49, 0x7a},  {0x7f, 0x08, 0x08, 0x08, 0x7f}, {0x00, 0x41, 0x7f, 0x41, 0x00},
    {0x20, 0x40, 0x41, 0x3f, 0x01},  {0x7f, 0x08, 0x14, 0x22, 0x41}, {0x7f, 0x40, 0x40, 0x40, 0x40},
    {0x7f, 0x02, 0x0c, 0x02, 0x7f},  {0x7f, 0x04, 0x08, 0x10, 0x7f}, {0x3e, 0x41, 0x41, 0x41, 0x3e},
    {0x7f, 0x09, 0x09, 0x09, 0x06},  {0x3e, 0x41, 0x51, 0x21, 0x5e}, {0x7f, 0x09, 0x19, 0x29, 0x46},
    {0x46, 0x49, 0x49, 0x49, 0x31},  {0x01, 0x01, 0x7f, 0x01, 0x01}, {0x3f, 0x40, 0x40, 0x40, 0x3f},
    {0x1f, 0x20, 0x40, 0x20, 0x1f},  {0x3f, 0x40, 0x38, 0x40, 0x3f}, {0x63, 0x14, 0x08, 0x14, 0x63},
    {0x07, 0x08, 0x70, 0x08, 0x07},  {0x61, 0x51, 0x49, 0x45, 0x43}, {0x00, 0x7f, 0x41, 0x41, 0x00},
    {0x02, 0x04, 0x08, 0x10, 0x20},  {0x00, 0x41, 0x41, 0x7f, 0x00}, {0x04, 0x02, 0x01, 0x02, 0x04},
    {0x40, 0x40, 0x40, 0x40, 0x40},  {0x00, 0x01, 0x02, 0x04, 0x00}, {0x20, 0x54, 0x54, 0x54, 0x78},
    {0x7f, 0x48, 0x44, 0x44, 0x38},  {0x38, 0x44, 0x44, 0x44, 0x28}, {0x38, 0x44, 0x44, 0x48, 0x7f},
    {0x38, 0x54, 0x54, 0x54, 0x18},  {0x08, 0x7e, 0x09, 0x01, 0x02}, {0x38, 0x144, 0x144, 0x144, 0xfc},
    {0x7f, 0x08, 0x04, 0x04, 0x78},  {0x00, 0x44, 0x7d, 0x40, 0x00}, {0x80, 0x100, 0x104, 0xfd, 0x00},
    {0x7f, 0x10, 0x28, 0x44, 0x00},  {0x00, 0x41, 0x7f, 0x40, 0x00}, {0x7c, 0x04, 0x78, 0x04, 0x78},
    {0x7c, 0x08, 0x04, 0x04, 0x78},  {0x38, 0x44, 0x44, 0x44, 0x38}, {0x1fc, 0x44, 0x44, 0x44, 0x38},
    {0x38, 0x44, 0x44, 0x44, 0x1fc}, {0x7c, 0x08, 0x04, 0x04, 0x08}, {0x48, 0x54, 0x54, 0x54, 0x24},
    {0x04, 0x3f, 0x44, 0x40, 0x20},  {0x3c, 0x40, 0x40, 0x20, 0x7c}, {0x1c, 0x20, 0x40, 0x20, 0x1c},
    {0x3c, 0x40, 0x30, 0x40, 0x3c},  {0x44, 0x28, 0x10, 0x28, 0x44}, {0x3c, 0x140, 0x140, 0x140, 0xfc},
    {0x44, 0x64, 0x54, 0x4c, 0x44},  {0x00, 0x08, 0x36, 0x41, 0x00}, {0x00, 0x00, 0x7f, 0x00, 0x00},
    {0x00, 0x41, 0x36, 0x08, 0x00},  {0x08, 0x04, 0x08, 0x10, 0x08},
};

class Painting final : public stream::Operation {
  public:
    explicit Painting(const Canvas& canvas) : m_canvas(canvas) {}
    std::vector<int> output_bands() const override { return {3}; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<Painter>(m_canvas);
    }

  private:
    struct Painter final : stream::Worker {
        explicit Painter(const Canvas& c) : canvas(c) {}
        void process(const Tile& tile, const CubeView<float>&,
                     const std::vector<CubeView<float>>& out) override {
            for (int b = 0; b < 3; ++b)
                for (int64_t y = 0; y < tile.core.h; ++y)
                    for (int64_t x = 0; x < tile.core.w; ++x)
                        out[0].row(b, y)[x] =
                            canvas.at(tile.core.x + x, tile.core.y + y)[static_cast<size_t>(b)];
        }
        const Canvas& canvas;
    };
    const Canvas& m_canvas;
};

constexpr char32_t no_letter = 0xFFFD; ///< drawn as a question mark

bool is_control(char32_t code) { return code < ' ' || (code >= 0x7f && code < 0xa0); }
bool is_mark(char32_t code) { return code >= 0x300 && code <= 0x36f; } // an accent after its letter

/// Returns the byte of a character above 0x7f in Windows-1252; 0 if there is none.
unsigned char western(char32_t code) {
    if (code >= 0xa0 && code <= 0xff) return static_cast<unsigned char>(code);
    for (int byte = 0x80; byte < 0xa0; ++byte) {
        const std::string text = utf8_text(std::string(1, static_cast<char>(byte)));
        std::string_view rest = text;
        if (const char32_t known = take_character(rest); known == code && known != no_letter)
            return static_cast<unsigned char>(byte);
    }
    return 0;
}

/// Letters and accents of the characters from U+00C0 to U+00FF.
constexpr std::string_view latin = "AAAAAAACEEEEIIIIDNOOOOOxOUUUUYPsaaaaaaaceeeeiiiidnooooo/ouuuuypy",
                           accents = "`'^~:o ,`'^:`'^: ~`'^~:  `'^:'  `'^~:o ,`'^:`'^: ~`'^~:  `'^:' :";
/// Letters of the characters from U+0100 to U+017F without their marks.
constexpr std::string_view latin_extended = "AaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiIiIiJjKkkLlLlLlL"
                                            "lLlNnNnNnnNnOoOoOoOoRrRrRrSsSsSsSsTtTtTtUuUu"
                                            "UuUuUuUuWwYyYZzZzZzs";

/// Returns the characters of a text, which may also be in Windows-1252. A Latin letter and its accent become
/// one character.
std::u32string composed(std::string_view letters) {
    std::u32string out;
    const std::string all = utf8_text(std::string(letters));
    std::string_view text = all;
    while (!text.empty()) {
        const char32_t code = take_character(text);
        const char accent = code == 0x300   ? '`'
                            : code == 0x301 ? '\''
                            : code == 0x302 ? '^'
                            : code == 0x303 ? '~'
                            : code == 0x308 ? ':'
                            : code == 0x30a ? 'o'
                            : code == 0x327 ? ','
                                            : ' ';
        size_t k = accent == ' ' || out.empty() ? latin.size() : 0;
        while (k < latin.size() && (static_cast<char32_t>(latin[k]) != out.back() || accents[k] != accent))
            ++k;
        if (k < latin.size())
            out.back() = 0xc0 + static_cast<char32_t>(k);
        else
            out += code;
    }
    return out;
}

/// Returns ASCII letters for a character; U+FFFD if there are none.
std::string substitute(char32_t code) {
    struct Known {
        char32_t code;
        const char* letters;
    };
    constexpr Known known[] = {
        {0xa0, " "},     {0xb0, " deg"}, {0xb1, "+-"},    {0xb2, "2"},   {0xb3, "3"},    {0xb5, "u"},
        {0xb7, "."},     {0xc4, "Ae"},   {0xc5, "Aa"},    {0xc6, "Ae"},  {0xd6, "Oe"},   {0xd8, "Oe"},
        {0xdc, "Ue"},    {0xde, "Th"},   {0xdf, "ss"},    {0xe4, "ae"},  {0xe5, "aa"},   {0xe6, "ae"},
        {0xf6, "oe"},    {0xf8, "oe"},   {0xfc, "ue"},    {0xfe, "th"},  {0x152, "Oe"},  {0x153, "oe"},
        {0x3bc, "u"},    {0x2018, "'"},  {0x2019, "'"},   {0x201a, "'"}, {0x201c, "\""}, {0x201d, "\""},
        {0x201e, "\""},  {0x2022, "*"},  {0x2026, "..."}, {0x202f, " "}, {0x2032, "'"},  {0x2033, "\""},
        {0x20ac, "EUR"}, {0x2212, "-"},  {0x1e9e, "SS"}};
    for (const Known& one : known)
        if (one.code == code) return one.letters;
    if (code >= 0xc0 && code <= 0xff) return {latin[code - 0xc0]};
    if (code >= 0x100 && code <= 0x17f) return {latin_extended[code - 0x100]};
    if (code >= 0x2010 && code <= 0x2015) return "-";
    std::string none;
    append_utf8(none, no_letter);
    return none;
}

/// Returns the number of letters of a UTF-8 text, and the text's beginning with `count` letters. An accent
/// belongs to the letter before it.
int64_t letters_in(std::string_view text) {
    int64_t count = 0;
    while (!text.empty())
        count += !is_mark(take_character(text));
    return count;
}
std::string first_letters(std::string_view text, int64_t count) {
    std::string_view rest = text;
    size_t length = 0;
    for (int64_t n = 0; !rest.empty(); length = text.size() - rest.size())
        if (!is_mark(take_character(rest)) && ++n > count) break;
    return std::string(text.substr(0, length));
}

/// Returns a length in pixels as points of a PDF page (72 per inch).
std::string page_points(int64_t pixels) {
    constexpr std::array<const char*, 4> quarters = {"", ".25", ".5", ".75"};
    return std::to_string(3 * pixels / 4) + quarters[static_cast<size_t>(3 * pixels % 4)];
}

} // namespace

int64_t TextStyle::width(std::string_view text) const { return letters_in(text) * letter_width(); }

std::string TextStyle::fitted(std::string_view text, int64_t longest) const {
    std::string out;
    for (const char32_t code : composed(text)) {
        if (is_control(code))
            out += ' ';
        else if (letters == Letters::all || code < 0x80 ||
                 (letters == Letters::western && western(code) != 0))
            append_utf8(out, code);
        else if (!is_mark(code))
            out += substitute(code);
    }
    return letters_in(out) > longest ? first_letters(out, longest - 2) + ".." : out;
}

std::vector<std::string> TextStyle::lines(std::string_view text, int64_t longest) const {
    constexpr size_t most_lines = 3;
    std::vector<std::string> lines;
    std::string rest(trimmed(fitted(text, std::numeric_limits<int64_t>::max())));
    while (!rest.empty() && lines.size() + 1 < most_lines && letters_in(rest) > longest) {
        std::string line = first_letters(rest, longest);
        const size_t blank = rest[line.size()] == ' ' ? line.size() : line.rfind(' ');
        if (blank != std::string::npos) line.resize(blank);
        rest = trimmed(rest.substr(line.size()));
        lines.emplace_back(trimmed(line));
    }
    if (!rest.empty())
        lines.push_back(letters_in(rest) > longest ? first_letters(rest, longest - 2) + ".." : rest);
    return lines;
}

int64_t dot_for(int64_t samples, int64_t lines) {
    constexpr int64_t least = 2, dots_of_page = 600;
    const int64_t page = std::max(samples, 2 * lines / 3);
    return std::max(least, (page + dots_of_page / 2) / dots_of_page);
}

void Canvas::paste(int64_t x0, int64_t y0, const Canvas& other) {
    for (int64_t y = 0; y < other.m_lines; ++y)
        for (int64_t x = 0; x < other.m_samples; ++x)
            set(x0 + x, y0 + y, other.at(x, y));
    for (const Text& text : other.m_texts)
        m_texts.push_back({x0 + text.x, y0 + text.y, text.letters, text.upwards});
    add_unknown(other.m_unknown);
}

std::string Canvas::svg() const {
    const std::string width = std::to_string(m_samples), height = std::to_string(m_lines),
                      size = "width='" + width + "' height='" + height + "'";
    std::string svg = "<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink' " +
                      size + " viewBox='0 0 " + width + " " + height +
                      "' font-family='monospace' font-size='" + std::to_string(10 * m_style.dot) +
                      "'>\n<image " + size +
                      " style='image-rendering:pixelated' xlink:href='data:image/png;base64," +
                      raster::packed_picture(m_samples, m_lines, m_values) + "'/>\n";
    for (const Text& text : m_texts) {
        // The base line begins at the lower left corner of the letters, seen in the direction of writing.
        const std::string x = std::to_string(text.upwards ? text.x + m_style.letter_height() : text.x),
                          y = std::to_string(text.upwards ? text.y : text.y + m_style.letter_height());
        svg += "<text x='" + x + "' y='" + y + "' textLength='" +
               std::to_string(m_style.width(text.letters)) + "'" +
               (text.upwards ? " transform='rotate(-90 " + x + " " + y + ")'" : std::string()) + ">" +
               escaped_text(text.letters) + "</text>\n";
    }
    return svg + "</svg>\n";
}

std::string Canvas::pdf() const {
    std::string pixels;
    pixels.reserve(3 * m_values.size());
    for (const Rgb& colour : m_values)
        pixels.append(colour.begin(), colour.end());
    const std::string width = std::to_string(m_samples), height = std::to_string(m_lines);
    // The unit of the contents is one pixel, counted upwards from the lower left corner. A letter of Courier
    // is 0.6 times as wide as the font size.
    std::string contents = "0.75 0 0 0.75 0 0 cm q " + width + " 0 0 " + height + " 0 0 cm /I Do Q\nBT /F " +
                           std::to_string(10 * m_style.dot) + " Tf\n";
    for (const Text& text : m_texts) {
        const std::string x = std::to_string(text.upwards ? text.x + m_style.letter_height() : text.x),
                          y = std::to_string(m_lines -
                                             (text.upwards ? text.y : text.y + m_style.letter_height()));
        std::string letters;
        for (std::string_view rest = text.letters; !rest.empty();) {
            const char32_t code = take_character(rest);
            const char c = code < 0x80 ? static_cast<char>(code) : static_cast<char>(western(code));
            letters += (c == '(' || c == ')' || c == '\\' ? "\\" : "") + std::string(1, c == 0 ? '?' : c);
        }
        contents += (text.upwards ? "0 1 -1 0 " : "1 0 0 1 ") + x + " " + y + " Tm (" + letters + ") Tj\n";
    }
    contents += "ET";
    const auto stream = [](const std::string& entries, const std::string& bytes) {
        return "<< " + entries + " /Length " + std::to_string(bytes.size()) + " >>\nstream\n" + bytes +
               "\nendstream";
    };
    const std::array<std::string, 6> objects = {
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 " + page_points(m_samples) + " " + page_points(m_lines) +
            "] /Contents 4 0 R /Resources << /XObject << /I 5 0 R >> /Font << /F 6 0 R >> >> >>",
        stream("", contents),
        stream("/Type /XObject /Subtype /Image /Width " + width + " /Height " + height +
                   " /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /FlateDecode",
               raster::deflated(pixels)),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>"};
    // Bytes above 127 show programs that the file is binary.
    std::string pdf = "%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", table = "0000000000 65535 f \n";
    for (size_t k = 0; k < objects.size(); ++k) {
        const std::string offset = std::to_string(pdf.size());
        table += std::string(10 - offset.size(), '0') + offset + " 00000 n \n";
        pdf += std::to_string(k + 1) + " 0 obj\n" + objects[k] + "\nendobj\n";
    }
    const std::string count = std::to_string(objects.size() + 1), start = std::to_string(pdf.size());
    return pdf + "xref\n0 " + count + "\n" + table + "trailer\n<< /Size " + count +
           " /Root 1 0 R >>\nstartxref\n" + start + "\n%%EOF\n";
}

std::string escaped_text(const std::string& text) {
    std::string out;
    for (const char c : utf8_text(text)) {
        const auto code = static_cast<unsigned char>(c);
        if (c == '&' || c == '<' || c == '>' || c == '\'')
            out += "&#" + std::to_string(code) + ";";
        else
            out += code < ' ' ? ' ' : c; // control characters are not allowed in XML
    }
    return out;
}

void draw_box(Canvas& canvas, int64_t x0, int64_t y0, int64_t width, int64_t height, const Rgb& colour) {
    for (int64_t y = y0; y < y0 + height; ++y)
        for (int64_t x = x0; x < x0 + width; ++x)
            canvas.set(x, y, colour);
}

void draw_text(Canvas& canvas, int64_t x0, int64_t y0, const std::string& text, bool upwards) {
    const TextStyle& style = canvas.style();
    if (style.letters != Letters::all && text.find("\xef\xbf\xbd") != std::string::npos)
        canvas.add_unknown(text);
    if (canvas.keeps_texts()) {
        if (!text.empty()) canvas.keep({x0, y0, text, upwards});
        return;
    }
    constexpr int columns = 5, rows = 9;
    int64_t along = 0;
    for (std::string_view rest = text; !rest.empty(); along += style.letter_width()) {
        const char32_t code = take_character(rest);
        const auto& bitmap = bitmaps[(code >= ' ' && code <= '~' ? code : U'?') - U' '];
        for (int x = 0; x < columns; ++x)
            for (int y = 0; y < rows; ++y) {
                if ((bitmap[x] >> y & 1) == 0) continue;
                const int64_t right = along + x * style.dot, down = y * style.dot;
                if (upwards)
                    draw_box(canvas, x0 + down, y0 - right - style.dot + 1, style.dot, style.dot, {});
                else
                    draw_box(canvas, x0 + right, y0 + down, style.dot, style.dot, {});
            }
    }
}

void warn_of_letters(tool::Run& run, const Canvas& canvas) {
    if (canvas.unknown().empty()) return;
    std::string shown;
    for (std::string_view rest = canvas.unknown(); !rest.empty();) {
        const char32_t code = take_character(rest);
        append_utf8(shown, code == no_letter ? U'?' : code);
    }
    run.warn("letters that the font of the picture does not have are shown as '?', first in '" + shown +
             "'. An .svg shows all letters");
}

raster::OutputSet picture_output(const raster::OutputOptions& options, int64_t samples, int64_t lines) {
    raster::OutputSpec spec;
    spec.shape = {samples, lines, 3};
    spec.type = "Byte";
    spec.bands = {{"Red", {}}, {"Green", {}}, {"Blue", {}}};
    raster::OutputSet outputs;
    outputs.plan(options, spec);
    return outputs;
}

void write_picture(tool::Run& run, const raster::OutputOptions& options, const Canvas& canvas, double share) {
    auto outputs = picture_output(options, canvas.samples(), canvas.lines());
    outputs.create(nullptr);
    run.reserve_cache(outputs.cache_bytes());
    Painting painting(canvas);
    const stream::EmptySource pixels({canvas.samples(), canvas.lines(), 3});
    auto pass = run.pass("picture", share);
    if (share == 0) pass.progress = {};
    pass.output_layout = outputs.layout();
    run.add_pass(stream::run_pass(pixels, painting, outputs.sinks(), pass));
    outputs.commit();
    warn_of_letters(run, canvas);
}

} // namespace hsi::tools
