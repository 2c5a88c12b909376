// SPDX-License-Identifier: MIT
#include "raster/packed_text.h"

#include "core/error.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <climits>
#include <memory>

namespace hsi::raster {
namespace {

struct Freer {
    void operator()(void* p) const { VSIFree(p); }
};

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

std::string unpack_text(const std::string& packed, const std::string& name, size_t limit) {
    const auto refuse = [&](const char* why) { throw Error(name + " is not a packed text: " + why); };
    if (packed.size() > INT_MAX) refuse("it is too long");
    std::string bytes = packed;
    const int size = CPLBase64DecodeInPlace(reinterpret_cast<GByte*>(bytes.data()));
    if (size <= 0) refuse("it is not in base 64");
    // Deflate compresses by a factor of at most 1032; the output grows until it fits.
    for (size_t room = static_cast<size_t>(size) * 8;; room *= 4) {
        std::string text(room < limit ? room : limit, '\0');
        size_t got = 0;
        if (CPLZLibInflate(bytes.data(), static_cast<size_t>(size), text.data(), text.size(), &got) !=
                nullptr &&
            got < text.size()) {
            text.resize(got);
            return text;
        }
        if (room >= limit || room / 1100 > static_cast<size_t>(size)) refuse("it cannot be inflated");
    }
}

} // namespace hsi::raster
