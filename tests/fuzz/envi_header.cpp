// SPDX-License-Identifier: MIT
#include "raster/metadata/envi_header.h"
#include "fuzz/fuzz.h"

#include <algorithm>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    using raster::EnviHeader;
    const EnviHeader header = EnviHeader::parse({reinterpret_cast<const char*>(data), size});
    for (const auto& field : header.fields()) {
        fuzz::expect(header.find(field.key) != nullptr, "a field is found under its key");
        const auto elements = raster::envi_list(field.value);
        // Elements of a closed list contain no braces and no line breaks. An element that begins like a
        // comment or a quotation may be read as a comment or quotation.
        bool plain = true;
        for (const auto& element : elements)
            plain = plain && !element.empty() && element.find_first_of("{},\n") == std::string::npos &&
                    std::string(";\"'").find(element.front()) == std::string::npos;
        if (plain)
            fuzz::expect(raster::envi_list(raster::envi_list_text(elements)) == elements,
                         "a list that is written and read is the same");
    }
    // GDAL splits a line that is longer than its limit.
    const std::string text = header.text();
    size_t longest = 0;
    for (size_t at = 0; at < text.size();) {
        const size_t end = text.find('\n', at);
        longest = std::max(longest, end - at);
        at = end + 1;
    }
    fuzz::expect(longest <= raster::longest_gdal_line, "a line is as short as GDAL wants it");
    for (const auto& field : header.fields())
        if (field.value.size() + field.key.size() > raster::longest_gdal_line / 2) return 0;
    // An unclosed list includes the text that follows it. Only headers without unclosed lists are equal after
    // they are written and read again.
    const EnviHeader again = EnviHeader::parse(text);
    bool closed = true;
    for (const auto& field : header.fields()) {
        const bool open =
            !field.value.empty() && field.value.front() == '{' && field.value.find('}') == std::string::npos;
        closed = closed && !open && field.key.front() != ';';
    }
    if (!closed) return 0;
    fuzz::expect(again.fields().size() == header.fields().size(),
                 "a header that is written keeps its fields");
    for (size_t i = 0; i < header.fields().size(); ++i) {
        fuzz::expect(again.fields()[i].key == header.fields()[i].key, "a key comes back");
        fuzz::expect(again.fields()[i].value == header.fields()[i].value, "a value comes back");
    }
    return 0;
}
