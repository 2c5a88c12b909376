// SPDX-License-Identifier: MIT
#include "raster/packed_text.h"

#include "core/error.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <libdeflate.h>

#include <climits>
#include <memory>

namespace hsi::raster {
namespace {

struct Freer {
    void operator()(void* p) const { VSIFree(p); }
};

/// Appends four bytes in network byte order.
void append_number(std::string& bytes, uint32_t value) {
    for (const int shift : {24, 16, 8, 0})
        bytes += static_cast<char>(value >> shift & 0xff);
}

/// Appends a chunk of a PNG file: length, name, content and check sum.
void append_chunk(std::string& png, const std::string& name, const std::string& content) {
    append_number(png, static_cast<uint32_t>(content.size()));
    const std::string checked = name + content;
    png += checked;
    append_number(png, libdeflate_crc32(0, checked.data(), checked.size()));
}

} // namespace

std::string pack_text(const std::string& text) {
    size_t size = 0;
    const std::unique_ptr<void, Freer> deflated(
        CPLZLibDeflate(text.data(), text.size(), 9, nullptr, 0, &size));
    if (!deflated || size > INT_MAX)
        throw Error("a text of " + std::to_string(text.size()) + " bytes is too long to be packed");
    const std::unique_ptr<char, Freer> base64(
        CPLBase64Encode(static_cast<int>(size), static_cast<const GByte*>(deflated.get())));
    return base64.get();
}

std::string deflated(const std::string& bytes) {
    size_t size = 0;
    const std::unique_ptr<void, Freer> stream(
        CPLZLibDeflate(bytes.data(), bytes.size(), 9, nullptr, 0, &size));
    // Half the range of int, because base64 makes the text a third longer.
    constexpr size_t most = INT_MAX / 2;
    if (!stream || size > most)
        throw Error("a picture of " + std::to_string(bytes.size()) + " bytes is too large for .svg and .pdf",
                    "Choose a smaller -size.");
    return {static_cast<const char*>(stream.get()), size};
}

std::string packed_picture(int64_t width, int64_t height,
                           const std::vector<std::array<uint8_t, 3>>& colours) {
    std::string lines;
    lines.reserve(static_cast<size_t>(height * (3 * width + 1)));
    for (int64_t y = 0; y < height; ++y) {
        lines += '\0'; // filter type 0: none
        for (int64_t x = 0; x < width; ++x)
            for (const uint8_t value : colours[static_cast<size_t>(y * width + x)])
                lines += static_cast<char>(value);
    }
    std::string header, png = "\x89PNG\r\n\x1a\n";
    append_number(header, static_cast<uint32_t>(width));
    append_number(header, static_cast<uint32_t>(height));
    header += {8, 2, 0, 0, 0}; // bit depth 8, colour type 2 (RGB), deflate, default filters, not interlaced
    append_chunk(png, "IHDR", header);
    append_chunk(png, "IDAT", deflated(lines));
    append_chunk(png, "IEND", "");
    const std::unique_ptr<char, Freer> base64(
        CPLBase64Encode(static_cast<int>(png.size()), reinterpret_cast<const GByte*>(png.data())));
    return base64.get();
}

std::string unpack_text(const std::string& packed, const std::string& name, size_t limit) {
    const auto refuse = [&](const char* why) { throw Error(name + " is not a packed text: " + why); };
    if (packed.size() > INT_MAX) refuse("it is too long");
    std::string bytes = packed;
    const int size = CPLBase64DecodeInPlace(reinterpret_cast<GByte*>(bytes.data()));
    if (size <= 0) refuse("it is not in base64");
    // Deflate compresses by a factor of at most 1032. The buffer is enlarged until the text fits.
    for (size_t room = static_cast<size_t>(size) * 8;; room *= 4) {
        std::string text(room < limit ? room : limit, '\0');
        size_t got = 0;
        if (CPLZLibInflate(bytes.data(), static_cast<size_t>(size), text.data(), text.size(), &got) !=
                nullptr &&
            got < text.size()) {
            text.resize(got);
            return text;
        }
        if (room >= limit || room / 1100 > static_cast<size_t>(size)) refuse("it cannot be decompressed");
    }
}

} // namespace hsi::raster
