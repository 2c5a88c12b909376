// SPDX-License-Identifier: MIT
#include "raster/hdf5/hdf5_format.h"

#include "core/counted.h"
#include "core/error.h"
#include "raster/io/remote_file.h"
#include "raster/io/server_answers.h"
#include "raster/regular_file.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace hsi::raster::hdf5 {
namespace {

/// Maximum of bytes read from headers, heaps and indexes together.
constexpr uint64_t most_bytes = uint64_t{1} << 30;

constexpr uint64_t wanted = 1U << space_message | 1U << link_info | 1U << type_message |
                            1U << old_fill_message | 1U << fill_message | 1U << link_message |
                            1U << storage_message | 1U << layout_message | 1U << filter_message |
                            1U << symbol_table;

constexpr char signature[] = "\x89HDF\r\n\x1a\n";

} // namespace

size_t bytes_for(uint64_t most) {
    size_t bits = 0;
    while (most >> bits > 1)
        ++bits;
    return bits / 8 + 1;
}

size_t log2_of(uint64_t power) {
    size_t bits = 0;
    while (power >> bits > 1)
        ++bits;
    return bits;
}

File::File(const std::string& path)
    : m_path(path), m_file(is_regular_file(path) ? open_watched(path) : nullptr),
      m_far(!VSIIsLocal(path.c_str())), m_left(most_bytes) {
    if (m_file != nullptr && VSIFSeekL(m_file, 0, SEEK_END) == 0) m_size = VSIFTellL(m_file);
}

File::~File() {
    if (m_file != nullptr) VSIFCloseL(m_file);
}

Bytes File::read(uint64_t address, uint64_t size) {
    Bytes bytes = read_up_to(address, size);
    if (bytes.size() != size) throw Damaged();
    return bytes;
}

Bytes File::read_up_to(uint64_t address, uint64_t size) {
    if (address > m_size || base > m_size - address) throw Damaged();
    size = std::min(size, m_size - address - base);
    if (size > m_left) throw Damaged();
    m_left -= size;
    Bytes bytes(size);
    std::string why;
    if (read_whole(m_path, m_file, base + address, bytes.size(), bytes.data(), &why)) return bytes;
    if (!m_far) throw Damaged();
    throw Error("cannot fetch " + counted(size, "byte") + " at byte " + std::to_string(base + address) +
                    " of '" + m_path + "': " + why,
                "Try again later.");
}

void File::expect(const std::vector<uint64_t>& addresses) const {
    if (!m_far) return;
    std::vector<uint64_t> places;
    for (const uint64_t address : addresses)
        if (base <= m_size && address < m_size - base) places.push_back(base + address);
    fetch_into_cache(m_path, places);
}

Bytes File::read_checked(uint64_t address, uint64_t size) {
    Bytes bytes = read(address, size);
    if (size < 4) throw Damaged();
    Cursor sum(bytes.data() + size - 4, 4);
    if (sum.number(4) != checksum(bytes.data(), size - 4)) throw Damaged();
    return bytes;
}

std::optional<uint64_t> find_begin(File& file) {
    const uint64_t last_place = uint64_t{1} << (file.is_far() ? 14 : 30);
    for (uint64_t at = 0; at <= last_place; at = at == 0 ? 512 : 2 * at) {
        const Bytes begin = at < file.size() ? file.read_up_to(at, 8) : Bytes();
        if (begin.size() < 8) break;
        if (std::memcmp(begin.data(), signature, 8) == 0) return at;
    }
    return std::nullopt;
}

uint64_t root_of(File& file, uint64_t at) {
    const Bytes begin = file.read_up_to(at, 128);
    Cursor c(begin.data(), begin.size());
    c.skip(8);
    const uint64_t version = c.number(1);
    if (version > 3) throw Damaged();
    if (version < 2) c.skip(4);
    file.offset_size = c.number(1);
    file.length_size = c.number(1);
    const auto plausible = [](size_t n) { return n == 2 || n == 4 || n == 8; };
    if (!plausible(file.offset_size) || !plausible(file.length_size)) throw Damaged();
    c.skip(version < 2 ? (version == 1 ? 13 : 9) : 1);
    c.skip((version < 2 ? 5 : 3) * file.offset_size);
    const uint64_t root = c.number(file.offset_size);
    file.base = at; // the HDF5 library also ignores the base address that the file states
    return root;
}

Header::Header(File& file, uint64_t address) : m_file(file) {
    const Bytes begin = file.read_up_to(address, 64);
    if (begin.size() < 16) throw Damaged();
    if (std::memcmp(begin.data(), "OHDR", 4) == 0)
        read_new(address, begin);
    else
        read_old(address, begin);
}

void Header::read_old(uint64_t address, const Bytes& begin) {
    Cursor c(begin.data(), begin.size());
    if (c.number(1) != 1) throw Damaged();
    c.skip(7);
    read_blocks({address + 16, c.number(4)}, false);
}

void Header::read_new(uint64_t address, const Bytes& begin) {
    Cursor c(begin.data(), begin.size());
    c.expect("OHDR");
    if (c.number(1) != 2) throw Damaged();
    m_flags = c.number(1);
    if (m_flags & 0x20) c.skip(16);
    if (m_flags & 0x10) c.skip(4);
    const uint64_t size = c.number(size_t{1} << (m_flags & 3));
    read_blocks({address + (begin.size() - c.left()), size}, true);
}

/// Reads a block of messages and the further blocks to which messages of the block refer.
void Header::read_blocks(const Block& first, bool is_new) {
    constexpr size_t most_blocks = 10000;
    std::vector<Block> blocks{first};
    for (size_t i = 0; i < blocks.size(); ++i) {
        if (blocks.size() > most_blocks) throw Damaged();
        const Bytes block = m_file.read(blocks[i].address, blocks[i].size);
        Cursor c(block.data(), block.size());
        if (is_new && i > 0) c.expect("OCHK");
        read_messages(c, is_new, is_new && i > 0 ? 4 : 0, blocks);
    }
}

void Header::read_messages(Cursor& c, bool is_new, size_t behind, std::vector<Block>& blocks) {
    const size_t head = is_new ? (m_flags & 4 ? 6 : 4) : 8;
    while (c.left() >= head + behind) {
        Message message;
        message.type = c.number(is_new ? 1 : 2);
        const uint64_t bytes = c.number(2), flags = c.number(1);
        c.skip(is_new ? (m_flags & 4 ? 2 : 0) : 3);
        Cursor data = c.part(bytes);
        if (flags & 2) {
            if (message.type <= symbol_table) shared |= uint64_t{1} << message.type;
            continue;
        }
        if (message.type == continuation) {
            const uint64_t next = data.number(m_file.offset_size);
            blocks.push_back({next, data.number(m_file.length_size)});
        } else if (message.type <= symbol_table && (wanted >> message.type & 1)) {
            const uint8_t* const from = data.take(bytes);
            message.data.assign(from, from + bytes);
            messages.push_back(std::move(message));
        }
    }
}

LocalHeap::LocalHeap(File& file, uint64_t address) {
    const Bytes head = file.read(address, 8 + 2 * file.length_size + file.offset_size);
    Cursor c(head.data(), head.size());
    c.expect("HEAP");
    c.skip(4);
    const uint64_t size = c.number(file.length_size);
    c.skip(file.length_size);
    m_data = file.read(c.number(file.offset_size), size);
}

std::string LocalHeap::at(uint64_t offset) const {
    if (offset >= m_data.size()) throw Damaged();
    return Cursor(m_data.data() + offset, m_data.size() - offset).text();
}

FractalHeap::FractalHeap(File& file, uint64_t address) : m_file(file) {
    const size_t length = file.length_size, offset = file.offset_size;
    const Bytes head = file.read(address, 22 + 12 * length + 3 * offset);
    Cursor c(head.data(), head.size());
    c.expect("FRHP");
    if (c.number(1) != 0) throw Damaged();
    m_id_bytes = c.number(2);
    if (c.number(2) != 0) throw Damaged(); // the heap is filtered; heaps of links never are
    c.skip(1);
    const uint64_t largest_object = c.number(4);
    c.skip(length + offset + length + offset + 8 * length);
    m_width = c.number(2);
    m_start = c.number(length);
    const uint64_t largest = c.number(length);
    const uint64_t bits = c.number(2);
    c.skip(2);
    m_root = c.number(offset);
    m_rows = c.number(2);
    if (m_width == 0 || m_start == 0 || largest < m_start || bits > 64 || m_rows > 64) throw Damaged();
    m_offset_bytes = (bits + 7) / 8;
    m_length_bytes = std::min((log2_of(largest) + 7) / 8, bytes_for(largest_object));
    m_direct_rows = log2_of(largest) - log2_of(m_start) + 2;
}

Bytes FractalHeap::object(Cursor id) const {
    // Bits for objects that are stored differently from managed objects because they are huge or tiny. Links
    // are managed objects.
    constexpr uint64_t kind = 0x30;
    if (id.number(1) & kind) throw Damaged();
    const uint64_t offset = id.number(m_offset_bytes), length = id.number(m_length_bytes);
    if (m_rows == 0) return m_file.read(m_root + offset, length);
    return in_block(m_root, m_rows, offset, length, 0);
}

uint64_t FractalHeap::block_size(size_t row) const {
    const size_t shift = row == 0 ? 0 : row - 1;
    if (shift > 40) throw Damaged();
    return m_start << shift;
}

Bytes FractalHeap::in_block(uint64_t address, size_t rows, uint64_t offset, uint64_t length,
                            size_t depth) const {
    if (depth > deepest_tree) throw Damaged();
    uint64_t row_begins = 0;
    for (size_t row = 0; row < rows; ++row) {
        const uint64_t size = block_size(row), row_bytes = size * m_width;
        if (offset >= row_begins + row_bytes) {
            row_begins += row_bytes;
            continue;
        }
        const uint64_t column = (offset - row_begins) / size, within = (offset - row_begins) % size;
        const uint64_t entry = row * m_width + column;
        const Bytes child =
            m_file.read(address + 5 + m_file.offset_size + m_offset_bytes + entry * m_file.offset_size,
                        m_file.offset_size);
        const uint64_t at = Cursor(child.data(), child.size()).number(m_file.offset_size);
        if (m_file.undefined(at)) throw Damaged();
        if (row < m_direct_rows) return m_file.read(at + within, length);
        const size_t inner = log2_of(size) - log2_of(m_start * m_width) + 1;
        return in_block(at, inner, within, length, depth + 1);
    }
    throw Damaged();
}

RecordTree::RecordTree(File& file, uint64_t address, size_t most_records)
    : m_file(file), m_most(most_records) {
    const Bytes head = file.read_checked(address, 22 + file.offset_size + file.length_size);
    Cursor c(head.data(), head.size());
    c.expect("BTHD");
    c.skip(2);
    m_node_bytes = c.number(4);
    m_record_bytes = c.number(2);
    const size_t depth = c.number(2);
    c.skip(2);
    const uint64_t root = c.number(file.offset_size);
    const uint64_t count = c.number(2);
    if (m_record_bytes == 0 || m_node_bytes < 10 || depth > deepest_tree) throw Damaged();
    uint64_t most = (m_node_bytes - 10) / m_record_bytes, all = most;
    m_count_bytes = bytes_for(most);
    m_total_bytes = {0};
    for (size_t level = 1; level <= depth; ++level) {
        const uint64_t pointer = file.offset_size + m_count_bytes + m_total_bytes.back();
        most = (m_node_bytes - std::min(m_node_bytes, 10 + pointer)) / (m_record_bytes + pointer);
        if (all > UINT64_MAX / (most + 2)) throw Damaged();
        all = (most + 1) * all + most;
        m_total_bytes.push_back(bytes_for(all));
    }
    if (count > 0) visit(root, count, depth);
}

void RecordTree::visit(uint64_t address, uint64_t count, size_t level) {
    const Bytes node = m_file.read(address, m_node_bytes);
    Cursor c(node.data(), node.size());
    c.expect(level == 0 ? "BTLF" : "BTIN");
    c.skip(2);
    if (count > m_most - this->count()) throw Damaged();
    const uint8_t* const from = c.take(count * m_record_bytes);
    records.insert(records.end(), from, from + count * m_record_bytes);
    struct Child {
        uint64_t address, records;
    };
    std::vector<Child> children;
    for (uint64_t i = 0; level > 0 && i <= count; ++i) {
        const uint64_t child = c.number(m_file.offset_size);
        children.push_back({child, c.number(m_count_bytes)});
        c.skip(level > 1 ? m_total_bytes[level - 1] : 0);
    }
    const size_t used = node.size() - c.left();
    if (c.number(4) != checksum(node.data(), used)) throw Damaged();
    for (const Child& child : children)
        visit(child.address, child.records, level - 1);
}

uint32_t checksum(const uint8_t* k, size_t count) {
    uint32_t a = 0xdeadbeefU + static_cast<uint32_t>(count), b = a, c = a;
    const auto word = [](const uint8_t* p, size_t bytes) {
        uint32_t value = 0;
        for (size_t i = 0; i < bytes; ++i)
            value |= uint32_t{p[i]} << (8 * i);
        return value;
    };
    for (; count > 12; count -= 12, k += 12) {
        a += word(k, 4);
        b += word(k + 4, 4);
        c += word(k + 8, 4);
        a = (a - c) ^ std::rotl(c, 4), c += b;
        b = (b - a) ^ std::rotl(a, 6), a += c;
        c = (c - b) ^ std::rotl(b, 8), b += a;
        a = (a - c) ^ std::rotl(c, 16), c += b;
        b = (b - a) ^ std::rotl(a, 19), a += c;
        c = (c - b) ^ std::rotl(b, 4), b += a;
    }
    if (count == 0) return c;
    a += word(k, std::min<size_t>(4, count));
    if (count > 4) b += word(k + 4, std::min<size_t>(4, count - 4));
    if (count > 8) c += word(k + 8, count - 8);
    c = (c ^ b) - std::rotl(b, 14);
    a = (a ^ c) - std::rotl(c, 11);
    b = (b ^ a) - std::rotl(a, 25);
    c = (c ^ b) - std::rotl(b, 16);
    a = (a ^ c) - std::rotl(c, 4);
    b = (b ^ a) - std::rotl(a, 14);
    return (c ^ b) - std::rotl(b, 24);
}

} // namespace hsi::raster::hdf5
