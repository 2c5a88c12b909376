// SPDX-License-Identifier: MIT
#include "raster/products/binary_names.h"

#include "raster/regular_file.h"

#include <cpl_port.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <memory>
#include <set>
#include <string_view>

namespace hsi::raster {
namespace {

/// Reads numbers and bytes at given positions of a file; returns 0 or an empty text beyond the end.
class BinaryFile {
  public:
    BinaryFile(const std::string& path, bool big_endian)
        : m_file(is_regular_file(path) ? VSIFOpenL(path.c_str(), "rb") : nullptr), m_big_endian(big_endian) {}

    std::string bytes(uint64_t at, size_t count) {
        std::string out;
        if (!m_file || at >= m_bytes) return out;
        out.resize(static_cast<size_t>(std::min<uint64_t>(count, m_bytes - at)));
        VSIFSeekL(m_file.get(), at, SEEK_SET);
        out.resize(VSIFReadL(out.data(), 1, out.size(), m_file.get()));
        return out;
    }
    uint32_t number(uint64_t at, size_t count) {
        const std::string text = bytes(at, count);
        uint32_t value = 0;
        for (size_t k = 0; k < text.size(); ++k)
            value =
                value << CHAR_BIT | static_cast<unsigned char>(text[m_big_endian ? k : text.size() - 1 - k]);
        return value;
    }

  private:
    uint64_t length() {
        if (!m_file) return 0;
        VSIFSeekL(m_file.get(), 0, SEEK_END);
        return VSIFTellL(m_file.get());
    }

    /// A functor is needed instead of the address of VSIFCloseL(), because the plugin must not need the
    /// address of a GDAL function when it is loaded.
    struct Close {
        void operator()(VSILFILE* file) const { VSIFCloseL(file); }
    };
    std::unique_ptr<VSILFILE, Close> m_file;
    uint64_t m_bytes = length();
    bool m_big_endian;
};

/// Adds each run of printable characters to `texts`.
void add_texts(std::string_view bytes, std::vector<std::string>& texts) {
    const auto printable = [](char c) { return static_cast<unsigned char>(c) >= ' '; };
    for (auto at = bytes.begin(); at != bytes.end();) {
        const auto begin = std::find_if(at, bytes.end(), printable);
        at = std::find_if_not(begin, bytes.end(), printable);
        if (begin != at) texts.emplace_back(begin, at);
    }
}

/// Returns whether GDAL's IMAGINE driver reads file names from a node with this name; case is ignored.
bool names_files(const std::string& node) {
    return EQUAL(node.c_str(), "ExternalRasterDMS") || EQUAL(node.c_str(), "DependentFile") ||
           EQUAL(node.c_str(), "RRDNamesList");
}

} // namespace

std::vector<std::string> texts_of_imagine(const std::string& path) {
    constexpr size_t most_nodes = 100000, most_bytes = size_t{64} << 20;
    const std::string_view magic = "EHFA_HEADER_TAG";
    BinaryFile file(path, false);
    std::vector<std::string> texts;
    if (file.bytes(0, magic.size()) != magic) return texts;
    // Offset of the root node's position, after the version and the list of free blocks.
    constexpr uint64_t root_in_header = 8;
    std::vector<uint32_t> ahead{file.number(file.number(magic.size() + 1, 4) + root_in_header, 4)};
    std::set<uint32_t> seen;
    size_t taken = 0;
    while (!ahead.empty() && seen.size() < most_nodes && taken < most_bytes) {
        const uint32_t node = ahead.back();
        ahead.pop_back();
        if (node == 0 || !seen.insert(node).second) continue;
        ahead.push_back(file.number(node, 4));                // position of the next node on the same level
        ahead.push_back(file.number(uint64_t{node} + 12, 4)); // position of the first child
        if (!names_files(file.bytes(uint64_t{node} + 24, 64))) continue;
        const uint32_t data = file.number(uint64_t{node} + 16, 4), size = file.number(uint64_t{node} + 20, 4);
        const std::string bytes = file.bytes(data, std::min<size_t>(size, most_bytes - taken));
        taken += bytes.size();
        add_texts(bytes, texts);
    }
    return texts;
}

std::vector<std::string> external_files_of_hdf4(const std::string& path) {
    constexpr size_t most_blocks = 10000;
    constexpr uint32_t special = 0x4000, not_special = 0x8000, external = 2;
    BinaryFile file(path, true);
    std::vector<std::string> names;
    if (file.bytes(0, 4) != "\x0e\x03\x13\x01") return names;
    std::set<uint32_t> seen;
    for (uint32_t block = 4; block != 0 && seen.size() < most_blocks && seen.insert(block).second;) {
        const uint32_t count = file.number(block, 2);
        // An entry: tag (2 bytes), reference (2), offset (4), length (4).
        for (uint32_t k = 0; k < count; ++k) {
            const uint64_t entry = uint64_t{block} + 6 + uint64_t{12} * k;
            const uint32_t tag = file.number(entry, 2), at = file.number(entry + 4, 4);
            if ((tag & special) == 0 || (tag & not_special) != 0 || file.number(at, 2) != external) continue;
            // The length of the name follows a type code, a length and an offset.
            const uint32_t length = file.number(uint64_t{at} + 10, 4);
            if (length <= PATH_MAX) names.push_back(file.bytes(uint64_t{at} + 14, length));
        }
        block = file.number(uint64_t{block} + 2, 4);
    }
    return names;
}

} // namespace hsi::raster
