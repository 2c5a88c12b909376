// SPDX-License-Identifier: MIT
#include "shared/canvas.h"

#include "core/text.h"
#include "raster/packed_text.h"
#include "stream/empty_source.h"
#include "stream/operation.h"
#include "stream/pipeline.h"

#include <memory>

namespace hsi::tools {
namespace {

/// Bitmaps of the letters from ' ' to '~', 5 x 7 pixels each: five columns, with the lowest bit on top.
constexpr uint8_t letters[][5] = {
    {0x00, 0x00, 0x00, 0x00, 0x00}, {0x00, 0x00, 0x5f, 0x00, 0x00}, {0x00, 0x07, 0x00, 0x07, 0x00},
    {0x14, 0x7f, 0x14, 0x7f, 0x14}, {0x24, 0x2a, 0x7f, 0x2a, 0x12}, {0x23, 0x13, 0x08, 0x64, 0x62},
    {0x36, 0x49, 0x55, 0x22, 0x50}, {0x00, 0x05, 0x03, 0x00, 0x00}, {0x00, 0x1c, 0x22, 0x41, 0x00},
    {0x00, 0x41, 0x22, 0x1c, 0x00}, {0x14, 0x08, 0x3e, 0x08, 0x14}, {0x08, 0x08, 0x3e, 0x08, 0x08},
    {0x00, 0x50, 0x30, 0x00, 0x00}, {0x08, 0x08, 0x08, 0x08, 0x08}, {0x00, 0x60, 0x60, 0x00, 0x00},
    {0x20, 0x10, 0x08, 0x04, 0x02}, {0x3e, 0x51, 0x49, 0x45, 0x3e}, {0x00, 0x42, 0x7f, 0x40, 0x00},
    {0x42, 0x61, 0x51, 0x49, 0x46}, {0x21, 0x41, 0x45, 0x4b, 0x31}, {0x18, 0x14, 0x12, 0x7f, 0x10},
    {0x27, 0x45, 0x45, 0x45, 0x39}, {0x3c, 0x4a, 0x49, 0x49, 0x30}, {0x01, 0x71, 0x09, 0x05, 0x03},
    {0x36, 0x49, 0x49, 0x49, 0x36}, {0x06, 0x49, 0x49, 0x29, 0x1e}, {0x00, 0x36, 0x36, 0x00, 0x00},
    {0x00, 0x56, 0x36, 0x00, 0x00}, {0x08, 0x14, 0x22, 0x41, 0x00}, {0x14, 0x14, 0x14, 0x14, 0x14},
    {0x00, 0x41, 0x22, 0x14, 0x08}, {0x02, 0x01, 0x51, 0x09, 0x06}, {0x3e, 0x41, 0x5d, 0x55, 0x1e},
    {0x7e, 0x11, 0x11, 0x11, 0x7e}, {0x7f, 0x49, 0x49, 0x49, 0x36}, {0x3e, 0x41, 0x41, 0x41, 0x22},
    {0x7f, 0x41, 0x41, 0x22, 0x1c}, {0x7f, 0x49, 0x49, 0x49, 0x41}, {0x7f, 0x09, 0x09, 0x09, 0x01},
    {0x3e, 0x41, 0x49, 0x49, 0x7a}, {0x7f, 0x08, 0x08, 0x08, 0x7f}, {0x00, 0x41, 0x7f, 0x41, 0x00},
    {0x20, 0x40, 0x41, 0x3f, 0x01}, {0x7f, 0x08, 0x14, 0x22, 0x41}, {0x7f, 0x40, 0x40, 0x40, 0x40},
    {0x7f, 0x02, 0x0c, 0x02, 0x7f}, {0x7f, 0x04, 0x08, 0x10, 0x7f}, {0x3e, 0x41, 0x41, 0x41, 0x3e},
    {0x7f, 0x09, 0x09, 0x09, 0x06}, {0x3e, 0x41, 0x51, 0x21, 0x5e}, {0x7f, 0x09, 0x19, 0x29, 0x46},
    {0x46, 0x49, 0x49, 0x49, 0x31}, {0x01, 0x01, 0x7f, 0x01, 0x01}, {0x3f, 0x40, 0x40, 0x40, 0x3f},
    {0x1f, 0x20, 0x40, 0x20, 0x1f}, {0x3f, 0x40, 0x38, 0x40, 0x3f}, {0x63, 0x14, 0x08, 0x14, 0x63},
    {0x07, 0x08, 0x70, 0x08, 0x07}, {0x61, 0x51, 0x49, 0x45, 0x43}, {0x00, 0x7f, 0x41, 0x41, 0x00},
    {0x02, 0x04, 0x08, 0x10, 0x20}, {0x00, 0x41, 0x41, 0x7f, 0x00}, {0x04, 0x02, 0x01, 0x02, 0x04},
    {0x40, 0x40, 0x40, 0x40, 0x40}, {0x00, 0x01, 0x02, 0x04, 0x00}, {0x20, 0x54, 0x54, 0x54, 0x78},
    {0x7f, 0x48, 0x44, 0x44, 0x38}, {0x38, 0x44, 0x44, 0x44, 0x28}, {0x38, 0x44, 0x44, 0x48, 0x7f},
    {0x38, 0x54, 0x54, 0x54, 0x18}, {0x08, 0x7e, 0x09, 0x01, 0x02}, {0x0c, 0x52, 0x52, 0x52, 0x3e},
    {0x7f, 0x08, 0x04, 0x04, 0x78}, {0x00, 0x44, 0x7d, 0x40, 0x00}, {0x20, 0x40, 0x44, 0x3d, 0x00},
    {0x7f, 0x10, 0x28, 0x44, 0x00}, {0x00, 0x41, 0x7f, 0x40, 0x00}, {0x7c, 0x04, 0x78, 0x04, 0x78},
    {0x7c, 0x08, 0x04, 0x04, 0x78}, {0x38, 0x44, 0x44, 0x44, 0x38}, {0x7c, 0x14, 0x14, 0x14, 0x08},
    {0x08, 0x14, 0x14, 0x14, 0x7c}, {0x7c, 0x08, 0x04, 0x04, 0x08}, {0x48, 0x54, 0x54, 0x54, 0x24},
    {0x04, 0x3f, 0x44, 0x40, 0x20}, {0x3c, 0x40, 0x40, 0x20, 0x7c}, {0x1c, 0x20, 0x40, 0x20, 0x1c},
    {0x3c, 0x40, 0x30, 0x40, 0x3c}, {0x44, 0x28, 0x10, 0x28, 0x44}, {0x0c, 0x50, 0x50, 0x50, 0x3c},
    {0x44, 0x64, 0x54, 0x4c, 0x44}, {0x00, 0x08, 0x36, 0x41, 0x00}, {0x00, 0x00, 0x7f, 0x00, 0x00},
    {0x00, 0x41, 0x36, 0x08, 0x00}, {0x08, 0x04, 0x08, 0x10, 0x08},
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

/// Returns a length in pixels as points of a PDF page (72 per inch).
std::string page_points(int64_t pixels) {
    constexpr std::array<const char*, 4> quarters = {"", ".25", ".5", ".75"};
    return std::to_string(3 * pixels / 4) + quarters[static_cast<size_t>(3 * pixels % 4)];
}

} // namespace

std::string plain_letters(std::string_view text, size_t longest) {
    // Latin letters without accents, for the characters from U+00C0 on.
    static const std::string latin = "AAAAAAACEEEEIIIIDNOOOOOxOUUUUYPsaaaaaaaceeeeiiiidnooooo/ouuuuypy";
    std::string out;
    while (!text.empty()) {
        const char32_t code = take_character(text);
        if (code >= 0x300 && code <= 0x36f) continue; // a combining accent after its letter
        if (code >= ' ' && code <= '~')
            out += static_cast<char>(code);
        else
            out += code >= 0xc0 && code - 0xc0 < latin.size() ? latin[code - 0xc0] : '?';
    }
    if (out.size() > longest) out = out.substr(0, longest - 2) + "..";
    return out;
}

void Canvas::paste(int64_t x0, int64_t y0, const Canvas& other) {
    for (int64_t y = 0; y < other.m_lines; ++y)
        for (int64_t x = 0; x < other.m_samples; ++x)
            set(x0 + x, y0 + y, other.at(x, y));
    for (const Text& text : other.m_texts)
        m_texts.push_back({x0 + text.x, y0 + text.y, text.letters, text.upwards});
}

std::string Canvas::svg() const {
    const std::string width = std::to_string(m_samples), height = std::to_string(m_lines),
                      size = "width='" + width + "' height='" + height + "'";
    std::string svg = "<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink' " +
                      size + " viewBox='0 0 " + width + " " + height +
                      "' font-family='monospace' font-size='20'>\n<image " + size +
                      " style='image-rendering:pixelated' xlink:href='data:image/png;base64," +
                      raster::packed_picture(m_samples, m_lines, m_values) + "'/>\n";
    for (const Text& text : m_texts) {
        // The base line begins at the lower left corner of the letters, seen in the direction of writing.
        const std::string x = std::to_string(text.upwards ? text.x + letter_height : text.x),
                          y = std::to_string(text.upwards ? text.y : text.y + letter_height);
        svg += "<text x='" + x + "' y='" + y + "' textLength='" +
               std::to_string(static_cast<int64_t>(text.letters.size()) * letter_width) + "'" +
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
    std::string contents =
        "0.75 0 0 0.75 0 0 cm q " + width + " 0 0 " + height + " 0 0 cm /I Do Q\nBT /F 20 Tf\n";
    for (const Text& text : m_texts) {
        const std::string x = std::to_string(text.upwards ? text.x + letter_height : text.x),
                          y = std::to_string(m_lines - (text.upwards ? text.y : text.y + letter_height));
        std::string letters;
        for (const char c : text.letters)
            letters += (c == '(' || c == ')' || c == '\\' ? "\\" : "") + std::string(1, c);
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
        "<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>"};
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

void draw_text(Canvas& canvas, int64_t x0, int64_t y0, const std::string& text, bool upwards) {
    if (canvas.keeps_texts()) {
        if (!text.empty()) canvas.keep({x0, y0, text, upwards});
        return;
    }
    for (size_t i = 0; i < text.size(); ++i)
        for (int64_t x = 0; x < 10; ++x)
            for (int64_t y = 0; y < letter_height; ++y) {
                if ((letters[static_cast<size_t>(text[i] - ' ')][x / 2] >> (y / 2) & 1) == 0) continue;
                const int64_t along = static_cast<int64_t>(i) * letter_width + x;
                if (upwards)
                    canvas.set(x0 + y, y0 - along, {});
                else
                    canvas.set(x0 + along, y0 + y, {});
            }
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
    pass.output_layout = outputs.layout();
    run.add_pass(stream::run_pass(pixels, painting, outputs.sinks(), pass));
    outputs.commit();
}

} // namespace hsi::tools
