// SPDX-License-Identifier: MIT
// Models inside of VRTs: any text is unpacked or rejected, and a packed text is restored.
#include "raster/packed_text.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    fuzz::quiet_gdal();
    const std::string text(reinterpret_cast<const char*>(data), size);
    if (size > 0)
        fuzz::expect(raster::unpack_text(raster::pack_text(text), "text") == text,
                     "a packed text comes back");
    try {
        constexpr size_t limit = 1 << 20;
        fuzz::expect(raster::unpack_text(text.c_str(), "text", limit).size() <= limit, "the limit is kept");
    } catch (const Error&) {
    }
    return 0;
}
