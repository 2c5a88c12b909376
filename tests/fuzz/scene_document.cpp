// SPDX-License-Identifier: MIT
// Virtual scenes: any text is read or rejected. A document that was read is equal after it is written and
// read again.
#include "raster/scene_document.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    try {
        const auto first = raster::parse_scene_document(
            std::string(reinterpret_cast<const char*>(data), size), "/vsimem/folder", "document");
        const std::string text = raster::scene_document_text(first, "/vsimem/folder/y.hsi");
        fuzz::expect(text.find('<') == std::string::npos, "no tag that GDAL would take for one of its own");
        const auto second = raster::parse_scene_document(text, "/vsimem/folder", "document");
        fuzz::expect(raster::scene_document_text(second, "/vsimem/folder/y.hsi") == text,
                     "a document that was written is read as the same");
        fuzz::expect(!raster::files_of_document(first).empty(), "a scene is read from a file");
    } catch (const Error&) {
    }
    return 0;
}
