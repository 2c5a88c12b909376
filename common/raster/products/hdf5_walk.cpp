// SPDX-License-Identifier: MIT
#include "raster/products/hdf5_walk.h"

#include "raster/gdal/regular_file.h"

#include <cpl_vsi.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

namespace hsi::raster {
namespace {

/// Thrown where the bytes cannot be what the specification says; the object they belong to is passed over.
struct Damaged {};

using Bytes = std::vector<uint8_t>;

// What no file comes near, unless it was made to.
constexpr uint64_t most_bytes = uint64_t{1}
                                << 30; ///< of headers and heaps together, which have some kilobytes
constexpr size_t most_objects = 100000, deepest_tree = 32;

/// Numbers of one block, one after the other: little-endian, of as many bytes as the file says.
class Cursor {
  public:
    Cursor(const uint8_t* data, size_t size) : m_at(data), m_end(data + size) {}
    size_t left() const { return static_cast<size_t>(m_end - m_at); }
    const uint8_t* take(uint64_t bytes) {
        if (bytes > left()) throw Damaged();
        const uint8_t* const from = m_at;
        m_at += bytes;
        return from;
    }
    void skip(uint64_t bytes) { take(bytes); }
    uint64_t number(size_t bytes) {
        if (bytes > sizeof(uint64_t)) throw Damaged();
        const uint8_t* const from = take(bytes);
        uint64_t value = 0;
        for (size_t i = 0; i < bytes; ++i)
            value |= uint64_t{from[i]} << (8 * i);
        return value;
    }
    void expect(const char* signature) {
        if (std::memcmp(take(4), signature, 4) != 0) throw Damaged();
    }
    /// Up to the zero byte.
    std::string text() {
        const auto* const zero = static_cast<const uint8_t*>(std::memchr(m_at, 0, left()));
        if (zero == nullptr) throw Damaged();
        std::string out(reinterpret_cast<const char*>(m_at), static_cast<size_t>(zero - m_at));
        m_at = zero + 1;
        return out;
    }
    std::string text_of(uint64_t bytes) {
        return {reinterpret_cast<const char*>(take(bytes)), static_cast<size_t>(bytes)};
    }
    Cursor part(uint64_t bytes) { return {take(bytes), static_cast<size_t>(bytes)}; }

  private:
    const uint8_t *m_at, *m_end;
};

/// Bytes that a number up to `most` takes.
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

/// The file, with the sizes of its addresses.
class File {
  public:
    explicit File(const std::string& path)
        : m_file(is_regular_file(path) ? VSIFOpenL(path.c_str(), "rb") : nullptr) {
        if (m_file != nullptr && VSIFSeekL(m_file, 0, SEEK_END) == 0) m_size = VSIFTellL(m_file);
    }
    ~File() {
        if (m_file != nullptr) VSIFCloseL(m_file);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    bool is_open() const { return m_file != nullptr; }
    uint64_t size() const { return m_size; }

    /// Throws where the file ends before.
    Bytes read(uint64_t address, uint64_t size) {
        Bytes bytes = read_up_to(address, size);
        if (bytes.size() != size) throw Damaged();
        return bytes;
    }
    Bytes read_up_to(uint64_t address, uint64_t size) {
        if (address > m_size || base > m_size - address) throw Damaged();
        size = std::min(size, m_size - address - base);
        if (size > m_left) throw Damaged();
        m_left -= size;
        Bytes bytes(size);
        if (VSIFSeekL(m_file, base + address, SEEK_SET) != 0 ||
            VSIFReadL(bytes.data(), 1, bytes.size(), m_file) != bytes.size())
            throw Damaged();
        return bytes;
    }
    bool undefined(uint64_t address) const {
        return address == (offset_size >= 8 ? UINT64_MAX : (uint64_t{1} << (8 * offset_size)) - 1);
    }

    uint64_t base = 0;
    size_t offset_size = 8, length_size = 8;

  private:
    VSILFILE* const m_file;
    uint64_t m_size = 0, m_left = most_bytes;
};

constexpr char signature[] = "\x89HDF\r\n\x1a\n";

/// Where the file's own bytes begin, perhaps behind a block of the user's.
std::optional<uint64_t> find_begin(File& file) {
    constexpr uint64_t last_place = uint64_t{1} << 30;
    for (uint64_t at = 0; at <= last_place; at = at == 0 ? 512 : 2 * at) {
        const Bytes begin = at < file.size() ? file.read_up_to(at, 8) : Bytes();
        if (begin.size() < 8) break;
        if (std::memcmp(begin.data(), signature, 8) == 0) return at;
    }
    return std::nullopt;
}

/// The address of the root group's header.
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
    const uint64_t base = c.number(file.offset_size);
    c.skip((version < 2 ? 4 : 2) * file.offset_size);
    const uint64_t root = c.number(file.offset_size);
    file.base = base;
    return root;
}

struct Message {
    uint64_t type = 0;
    Bytes data;
};

constexpr uint64_t link_info = 2, link_message = 6, storage_message = 7, layout_message = 8,
                   continuation = 16, symbol_table = 17;
constexpr uint64_t wanted =
    1U << link_info | 1U << link_message | 1U << storage_message | 1U << layout_message | 1U << symbol_table;

/// An object's header: its messages, but for those that are kept elsewhere for several objects.
class Header {
  public:
    Header(File& file, uint64_t address) : m_file(file) {
        const Bytes begin = file.read_up_to(address, 64);
        if (begin.size() < 16) throw Damaged();
        if (std::memcmp(begin.data(), "OHDR", 4) == 0)
            read_new(address, begin);
        else
            read_old(address, begin);
    }
    std::vector<Message> messages;

  private:
    void read_old(uint64_t address, const Bytes& begin) {
        Cursor c(begin.data(), begin.size());
        if (c.number(1) != 1) throw Damaged();
        c.skip(7);
        read_blocks({address + 16, c.number(4)}, false);
    }

    void read_new(uint64_t address, const Bytes& begin) {
        Cursor c(begin.data(), begin.size());
        c.expect("OHDR");
        if (c.number(1) != 2) throw Damaged();
        m_flags = c.number(1);
        if (m_flags & 0x20) c.skip(16);
        if (m_flags & 0x10) c.skip(4);
        const uint64_t size = c.number(size_t{1} << (m_flags & 3));
        read_blocks({address + (begin.size() - c.left()), size}, true);
    }

    struct Block {
        uint64_t address, size;
    };

    /// A block of messages may lead to others.
    void read_blocks(const Block& first, bool is_new) {
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

    void read_messages(Cursor& c, bool is_new, size_t checksum, std::vector<Block>& blocks) {
        const size_t head = is_new ? (m_flags & 4 ? 6 : 4) : 8;
        while (c.left() >= head + checksum) {
            Message message;
            message.type = c.number(is_new ? 1 : 2);
            const uint64_t bytes = c.number(2), flags = c.number(1);
            c.skip(is_new ? (m_flags & 4 ? 2 : 0) : 3);
            Cursor data = c.part(bytes);
            if (flags & 2) continue; // shared
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

    File& m_file;
    uint64_t m_flags = 0;
};

/// A heap of names, of the older form of groups and of external storage.
class LocalHeap {
  public:
    LocalHeap(File& file, uint64_t address) {
        const Bytes head = file.read(address, 8 + 2 * file.length_size + file.offset_size);
        Cursor c(head.data(), head.size());
        c.expect("HEAP");
        c.skip(4);
        const uint64_t size = c.number(file.length_size);
        c.skip(file.length_size);
        m_data = file.read(c.number(file.offset_size), size);
    }
    std::string at(uint64_t offset) const {
        if (offset >= m_data.size()) throw Damaged();
        return Cursor(m_data.data() + offset, m_data.size() - offset).text();
    }

  private:
    Bytes m_data;
};

/// The heap that holds the links of a group with many of them ("dense"): blocks of doubling sizes.
class FractalHeap {
  public:
    FractalHeap(File& file, uint64_t address) : m_file(file) {
        const size_t length = file.length_size, offset = file.offset_size;
        const Bytes head = file.read(address, 22 + 12 * length + 3 * offset);
        Cursor c(head.data(), head.size());
        c.expect("FRHP");
        if (c.number(1) != 0) throw Damaged();
        m_id_bytes = c.number(2);
        if (c.number(2) != 0) throw Damaged(); // filtered: no links are
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

    size_t id_bytes() const { return m_id_bytes; }

    Bytes object(Cursor id) const {
        constexpr uint64_t kind = 0x30; // others than managed objects are too large for links, or too small
        if (id.number(1) & kind) throw Damaged();
        const uint64_t offset = id.number(m_offset_bytes), length = id.number(m_length_bytes);
        if (m_rows == 0) return m_file.read(m_root + offset, length);
        return in_block(m_root, m_rows, offset, length, 0);
    }

  private:
    uint64_t block_size(size_t row) const {
        const size_t shift = row == 0 ? 0 : row - 1;
        if (shift > 40) throw Damaged();
        return m_start << shift;
    }

    Bytes in_block(uint64_t address, size_t rows, uint64_t offset, uint64_t length, size_t depth) const {
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

    File& m_file;
    size_t m_id_bytes = 0, m_offset_bytes = 0, m_length_bytes = 0, m_rows = 0, m_direct_rows = 0;
    uint64_t m_width = 0, m_start = 0, m_root = 0;
};

/// The records of a B-tree, version 2.
class RecordTree {
  public:
    RecordTree(File& file, uint64_t address) : m_file(file) {
        const Bytes head = file.read(address, 18 + file.offset_size + file.length_size);
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
    size_t record_bytes() const { return m_record_bytes; }
    std::vector<Bytes> records;

  private:
    void visit(uint64_t address, uint64_t count, size_t level) {
        const Bytes node = m_file.read(address, m_node_bytes);
        Cursor c(node.data(), node.size());
        c.expect(level == 0 ? "BTLF" : "BTIN");
        c.skip(2);
        for (uint64_t i = 0; i < count; ++i) {
            if (records.size() >= most_objects) throw Damaged();
            const uint8_t* const from = c.take(m_record_bytes);
            records.emplace_back(from, from + m_record_bytes);
        }
        for (uint64_t i = 0; level > 0 && i <= count; ++i) {
            const uint64_t child = c.number(m_file.offset_size), records_in = c.number(m_count_bytes);
            c.skip(level > 1 ? m_total_bytes[level - 1] : 0);
            visit(child, records_in, level - 1);
        }
    }

    File& m_file;
    uint64_t m_node_bytes = 0;
    size_t m_record_bytes = 0, m_count_bytes = 0;
    std::vector<size_t> m_total_bytes; ///< by level: how long the number of all records below a child is
};

/// The values of a selection are of no interest, but what stands behind them is.
void skip_selection(Cursor& c) {
    const uint64_t type = c.number(4), version = c.number(4);
    const bool none_or_all = type == 0 || type == 3;
    if (none_or_all || version == 1) {
        c.skip(4);
        c.skip(c.number(4));
    } else if (type == 1 && version == 2) { // points
        const size_t bytes = c.number(1);
        const uint64_t rank = c.number(4), points = c.number(bytes);
        if (rank > 32 || points > c.left()) throw Damaged();
        c.skip(rank * points * bytes);
    } else if (type == 2 && version == 2) { // blocks at regular distances
        c.skip(1);
        c.skip(c.number(4));
    } else if (type == 2 && version == 3) {
        const uint64_t flags = c.number(1);
        const size_t bytes = c.number(1);
        const uint64_t rank = c.number(4);
        if (rank > 32) throw Damaged();
        uint64_t numbers = 4 * rank;
        if (!(flags & 1)) {
            const uint64_t blocks = c.number(bytes);
            if (blocks > c.left()) throw Damaged();
            numbers = 2 * rank * blocks;
        }
        c.skip(numbers * bytes);
    } else {
        throw Damaged();
    }
}

class Walk {
  public:
    Walk(File& file, Hdf5Contents& found) : m_file(file), m_found(found) {}

    void visit(const std::string& name, uint64_t address, size_t depth) {
        if (depth > deepest_tree || m_seen.size() >= most_objects) {
            m_found.complete = false;
            return;
        }
        if (m_found.objects.size() < most_objects && name.size() > 1) m_found.objects.push_back(name);
        if (!m_seen.insert(address).second) return; // another name of an object, or a circle
        try {
            for (const Message& message : Header(m_file, address).messages)
                try {
                    take(name, message, depth);
                } catch (const Damaged&) {
                    m_found.complete = false;
                }
        } catch (const Damaged&) {
            m_found.complete = false;
        }
    }

  private:
    void take(const std::string& name, const Message& message, size_t depth) {
        Cursor c(message.data.data(), message.data.size());
        switch (message.type) {
        case symbol_table: {
            const uint64_t tree = c.number(m_file.offset_size);
            visit_names(name, tree, LocalHeap(m_file, c.number(m_file.offset_size)), depth, 0);
            break;
        }
        case link_info:
            visit_dense(name, c, depth);
            break;
        case link_message:
            visit_link(name, c, depth);
            break;
        case storage_message:
            take_storage(name, c);
            break;
        case layout_message:
            take_layout(name, c);
            break;
        default:
            break;
        }
    }

    void visit_names(const std::string& name, uint64_t address, const LocalHeap& heap, size_t depth,
                     size_t level) {
        if (level > deepest_tree || ++m_nodes > most_objects) throw Damaged();
        const size_t offset = m_file.offset_size;
        const Bytes begin = m_file.read(address, 8 + 2 * offset);
        Cursor head(begin.data(), begin.size());
        if (std::memcmp(begin.data(), "SNOD", 4) == 0) {
            head.skip(6);
            const uint64_t count = head.number(2), entry = 2 * offset + 24;
            const Bytes entries = m_file.read(address + 8, count * entry);
            Cursor c(entries.data(), entries.size());
            for (uint64_t i = 0; i < count; ++i) {
                const std::string own = heap.at(c.number(offset));
                const uint64_t object = c.number(offset), kind = c.number(4);
                c.skip(20);
                constexpr uint64_t soft = 2;
                if (kind == soft)
                    m_found.links.push_back(name + "/" + own);
                else
                    visit(name + "/" + own, object, depth + 1);
            }
            return;
        }
        head.expect("TREE");
        if (head.number(1) != 0) throw Damaged();
        head.skip(1);
        const uint64_t count = head.number(2);
        const uint64_t pair = m_file.length_size + offset;
        const Bytes children = m_file.read(address + 8 + 2 * offset, count * pair);
        Cursor c(children.data(), children.size());
        for (uint64_t i = 0; i < count; ++i) {
            c.skip(m_file.length_size);
            visit_names(name, c.number(offset), heap, depth, level + 1);
        }
    }

    void visit_dense(const std::string& name, Cursor& c, size_t depth) {
        if (c.number(1) != 0) throw Damaged();
        if (c.number(1) & 1) c.skip(8);
        const uint64_t heap_at = c.number(m_file.offset_size), tree_at = c.number(m_file.offset_size);
        if (m_file.undefined(heap_at) || m_file.undefined(tree_at)) return; // its links are messages
        const FractalHeap heap(m_file, heap_at);
        const RecordTree tree(m_file, tree_at);
        constexpr size_t hash = 4;
        if (tree.record_bytes() < hash + heap.id_bytes()) throw Damaged();
        for (const Bytes& record : tree.records)
            try {
                const Bytes link = heap.object(Cursor(record.data() + hash, heap.id_bytes()));
                Cursor in_heap(link.data(), link.size());
                visit_link(name, in_heap, depth);
            } catch (const Damaged&) {
                m_found.complete = false;
            }
    }

    void visit_link(const std::string& name, Cursor& c, size_t depth) {
        if (c.number(1) != 1) throw Damaged();
        const uint64_t flags = c.number(1);
        constexpr uint64_t hard = 0, external = 64;
        const uint64_t type = flags & 8 ? c.number(1) : hard;
        if (flags & 4) c.skip(8);
        if (flags & 16) c.skip(1);
        const std::string own = name + "/" + c.text_of(c.number(size_t{1} << (flags & 3)));
        if (type == hard) return visit(own, c.number(m_file.offset_size), depth + 1);
        m_found.links.push_back(own);
        if (type != external) return;
        Cursor value = c.part(c.number(2));
        value.skip(1);
        std::string file = value.text(), inner = value.text();
        m_found.references.push_back({Hdf5Reference::Kind::link, own, std::move(file), std::move(inner)});
    }

    void take_storage(const std::string& name, Cursor& c) {
        if (c.number(1) != 1) throw Damaged();
        c.skip(5);
        const uint64_t files = c.number(2);
        const LocalHeap heap(m_file, c.number(m_file.offset_size));
        for (uint64_t i = 0; i < files; ++i) {
            m_found.references.push_back(
                {Hdf5Reference::Kind::storage, name, heap.at(c.number(m_file.length_size)), ""});
            c.skip(2 * m_file.length_size);
        }
    }

    void take_layout(const std::string& name, Cursor& c) {
        constexpr uint64_t first_with_mappings = 4, mapping = 3;
        if (c.number(1) < first_with_mappings || c.number(1) != mapping) return;
        const uint64_t heap = c.number(m_file.offset_size), ours = c.number(4);
        if (m_file.undefined(heap)) return;
        const Bytes head = m_file.read(heap, 8 + m_file.length_size);
        Cursor h(head.data(), head.size());
        h.expect("GCOL");
        h.skip(4);
        const uint64_t size = h.number(m_file.length_size);
        if (size < head.size()) throw Damaged();
        const Bytes body = m_file.read(heap + head.size(), size - head.size());
        Cursor b(body.data(), body.size());
        while (b.left() >= 8 + m_file.length_size) {
            const uint64_t index = b.number(2);
            b.skip(6);
            const uint64_t bytes = b.number(m_file.length_size);
            if (index == 0) break; // what is free
            Cursor object = b.part(bytes);
            if (index == ours) return take_mappings(name, object);
            b.skip(std::min<uint64_t>(b.left(), (8 - bytes % 8) % 8));
        }
        throw Damaged();
    }

    void take_mappings(const std::string& name, Cursor& c) {
        if (c.number(1) != 0) throw Damaged();
        const uint64_t count = c.number(m_file.length_size);
        std::set<std::pair<std::string, std::string>> known; // often thousands of parts of few files
        for (uint64_t i = 0; i < count; ++i) {
            std::string file = c.text(), inner = c.text();
            skip_selection(c);
            skip_selection(c);
            if (known.insert({file, inner}).second)
                m_found.references.push_back(
                    {Hdf5Reference::Kind::mapping, name, std::move(file), std::move(inner)});
        }
    }

    File& m_file;
    Hdf5Contents& m_found;
    std::set<uint64_t> m_seen;
    size_t m_nodes = 0;
};

} // namespace

Hdf5Contents walk_hdf5(const std::string& path) {
    Hdf5Contents found;
    File file(path);
    if (!file.is_open()) return found;
    try {
        if (const auto begin = find_begin(file)) Walk(file, found).visit("", root_of(file, *begin), 0);
    } catch (const Damaged&) {
        found.complete = false;
    }
    return found;
}

} // namespace hsi::raster
