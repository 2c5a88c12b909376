// SPDX-License-Identifier: MIT
#include "raster/hdf5/hdf5_chunks.h"

#include "core/file_path.h"
#include "raster/gdal_type.h"
#include "raster/hdf5/hdf5_format.h"
#include "raster/hdf5/hdf5_walk.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

namespace hsi::raster::hdf5 {
namespace {

/// Maximum of chunks per array; their positions take 16 MB.
constexpr uint64_t most_chunks = uint64_t{1} << 20;

/// The facts in an array's object header that are needed to read its chunks.
struct Description {
    /// Current size and maximum size along the axes. most is UINT64_MAX for an axis without a limit.
    std::array<uint64_t, 3> size{}, most{};
    bool limited = true; ///< `most` limits every axis
    GDALDataType type = GDT_Unknown;
    uint64_t sample_bytes = 0;
    bool big_endian = false;
    ChunkCoding coding;
    std::optional<Bytes> fill, old_fill;
    Bytes layout;
};

/// Reads the sizes of the array. This function and those below also throw Damaged for valid content that they
/// do not support; the HDF5 library then reads the array.
void read_space(Cursor c, const File& file, Description& array) {
    const uint64_t version = c.number(1), rank = c.number(1), flags = c.number(1);
    if ((version != 1 && version != 2) || rank != 3) throw Damaged();
    c.skip(version == 1 ? 5 : 1);
    for (uint64_t& size : array.size)
        size = c.number(file.length_size);
    array.most = array.size;
    const uint64_t without = file.length_size >= 8 ? UINT64_MAX : (uint64_t{1} << (8 * file.length_size)) - 1;
    for (uint64_t& most : array.most) {
        if ((flags & 1) != 0) most = c.number(file.length_size);
        if (most == without) {
            most = UINT64_MAX;
            array.limited = false;
        }
    }
    for (size_t k = 0; k < 3; ++k) {
        constexpr uint64_t longest = std::numeric_limits<int32_t>::max();
        if (array.size[k] == 0 || array.size[k] > longest || array.most[k] < array.size[k]) throw Damaged();
    }
}

void read_type(Cursor c, Description& array) {
    const uint64_t version_and_class = c.number(1), bits = c.number(3), size = c.number(4);
    const uint64_t kind = version_and_class & 15, offset = c.number(2), precision = c.number(2);
    constexpr uint64_t whole = 0, real = 1;
    if (offset != 0 || precision != 8 * size) throw Damaged();
    if (kind == whole) {
        const bool is_signed = (bits & 8) != 0;
        array.type = size == 1   ? (is_signed ? GDT_Int16 : GDT_Byte)
                     : size == 2 ? (is_signed ? GDT_Int16 : GDT_UInt16)
                     : size == 4 ? (is_signed ? GDT_Int32 : GDT_UInt32)
                     : size == 8 ? (is_signed ? GDT_Int64 : GDT_UInt64)
                                 : GDT_Unknown;
    } else if (kind == real && (bits & 0x40) == 0) { // not in the byte order of the VAX
        // The message states the positions and sizes of sign, exponent and mantissa, and the bias of the
        // exponent. They must be those of IEEE 754.
        const uint64_t sign = bits >> 8 & 0xff, normal = bits >> 4 & 3, exponent = c.number(1),
                       exponent_bits = c.number(1), mantissa = c.number(1), mantissa_bits = c.number(1),
                       bias = c.number(4);
        const bool usual = normal == 2 && mantissa == 0 && exponent == mantissa_bits && sign == precision - 1;
        if (usual && size == 2 && exponent_bits == 5 && mantissa_bits == 10 && bias == 15)
            array.type = GDT_Float32;
        if (usual && size == 4 && exponent_bits == 8 && mantissa_bits == 23 && bias == 127)
            array.type = GDT_Float32;
        if (usual && size == 8 && exponent_bits == 11 && mantissa_bits == 52 && bias == 1023)
            array.type = GDT_Float64;
    }
    if (array.type == GDT_Unknown) throw Damaged();
    array.sample_bytes = size;
    array.big_endian = (bits & 1) != 0 && size > 1;
}

void read_filters(Cursor c, Description& array) {
    const uint64_t version = c.number(1), count = c.number(1);
    if (version != 1 && version != 2) throw Damaged();
    if (version == 1) c.skip(6);
    for (uint64_t k = 0; k < count; ++k) {
        constexpr uint64_t first_with_name = 256;
        using Filter = ChunkCoding::Filter;
        const uint64_t id = c.number(2);
        const uint64_t name = version == 1 || id >= first_with_name ? c.number(2) : 0;
        c.skip(2);
        const uint64_t values = c.number(2);
        c.skip(version == 1 ? (name + 7) / 8 * 8 : name);
        Cursor value = c.part(4 * values);
        if (version == 1 && values % 2 != 0) c.skip(4);
        switch (id) {
        case 1:
            array.coding.filters.push_back(Filter::deflate);
            break;
        case 2:
            array.coding.filters.push_back(Filter::shuffle);
            array.coding.shuffled_bytes = static_cast<int64_t>(value.number(4));
            break;
        case 3:
            array.coding.filters.push_back(Filter::checksum);
            break;
        case 32000:
            array.coding.filters.push_back(Filter::lzf);
            break;
        case 32015:
            array.coding.filters.push_back(Filter::zstd);
            break;
        default:
            throw Damaged();
        }
    }
    if (!array.coding.known()) throw Damaged();
}

Bytes bytes_of(Cursor c, uint64_t count) {
    const uint8_t* const from = c.take(count);
    return {from, from + count};
}

void read_fill(Cursor c, Description& array) {
    const uint64_t version = c.number(1);
    constexpr uint64_t never = 1;
    uint64_t written = 0;
    bool defined = false;
    if (version == 1 || version == 2) {
        c.skip(1);
        written = c.number(1);
        defined = c.number(1) != 0;
    } else if (version == 3) {
        const uint64_t flags = c.number(1);
        written = flags >> 2 & 3;
        defined = (flags & 0x20) != 0;
    } else {
        throw Damaged();
    }
    array.fill.emplace();
    if (!defined && version != 1) return;
    const uint64_t size = c.number(4);
    Bytes value = bytes_of(c, size == UINT32_MAX ? 0 : size);
    // If the file says that fill values are never written, the HDF5 library leaves the output buffer
    // unchanged. The fill value is then not used.
    if (defined && written != never) array.fill = std::move(value);
}

Description describe(File& file, uint64_t address) {
    const Header header(file, address);
    constexpr uint64_t counts = 1U << space_message | 1U << type_message | 1U << old_fill_message |
                                1U << fill_message | 1U << storage_message | 1U << layout_message |
                                1U << filter_message;
    if ((header.shared & counts) != 0) throw Damaged();
    Description array;
    uint64_t seen = 0;
    for (const Message& message : header.messages) {
        const uint64_t bit = uint64_t{1} << message.type;
        if ((seen & bit & counts) != 0) throw Damaged();
        seen |= bit;
        const Cursor c(message.data.data(), message.data.size());
        if (message.type == space_message) read_space(c, file, array);
        if (message.type == type_message) read_type(c, array);
        if (message.type == filter_message) read_filters(c, array);
        if (message.type == fill_message) read_fill(c, array);
        if (message.type == old_fill_message) {
            Cursor old = c;
            const uint64_t size = old.number(4);
            array.old_fill = bytes_of(old, size);
        }
        if (message.type == layout_message) array.layout = message.data;
        if (message.type == storage_message) throw Damaged();
    }
    constexpr uint64_t needed = 1U << space_message | 1U << type_message | 1U << layout_message;
    if ((seen & needed) != needed) throw Damaged();
    return array;
}

/// Reads the index of an array's chunks, which has several forms. Stores the position of each chunk in
/// Hdf5Chunks::places.
class Index {
  public:
    Index(File& file, const Description& array, Hdf5Chunks& chunks)
        : m_file(file), m_array(array), m_chunks(chunks), m_filtered(!array.coding.filters.empty()) {
        uint64_t counted = 1;
        for (size_t k = 0; k < 3; ++k) {
            m_count[k] = static_cast<uint64_t>(chunks.count(k));
            const auto chunk = static_cast<uint64_t>(chunks.chunk[k]);
            const uint64_t most = array.most[k];
            m_most[k] = most == UINT64_MAX ? UINT64_MAX : (most - 1) / chunk + 1;
            if (m_count[k] > most_chunks / counted) throw Damaged();
            counted *= m_count[k];
        }
        chunks.places.assign(counted, {});
    }

    void read() {
        Cursor c(m_array.layout.data(), m_array.layout.size());
        const uint64_t version = c.number(1);
        if (version == 4) return read_new(c);
        // In versions 1 and 2 of the layout, the class is after the number of axes, and unused bytes follow.
        c.skip(version == 3 ? 2 : 7);
        tree(c.number(m_file.offset_size), 0, UINT64_MAX);
    }

  private:
    void read_new(Cursor& c) {
        c.skip(1);
        const uint64_t flags = c.number(1), axes = c.number(1), width = c.number(1);
        constexpr uint64_t edges_unfiltered = 1, one_filtered = 2;
        if ((flags & edges_unfiltered) != 0 && m_filtered) throw Damaged();
        c.skip(axes * width);
        const uint64_t kind = c.number(1);
        switch (kind) {
        case 1: {
            ChunkPlace one{0, whole_bytes(), 0};
            if ((flags & one_filtered) != 0) {
                one.bytes = size_of(c.number(m_file.length_size));
                one.left_out = static_cast<uint32_t>(c.number(4));
            }
            if (m_chunks.places.size() != 1) throw Damaged();
            take(0, c.number(m_file.offset_size), one.bytes, one.left_out);
            break;
        }
        case 2:
            implicit(c.number(m_file.offset_size));
            break;
        case 3:
            c.skip(1);
            fixed_array(c.number(m_file.offset_size));
            break;
        case 4:
            c.skip(5);
            extensible_array(c.number(m_file.offset_size));
            break;
        case 5:
            c.skip(6);
            new_tree(c.number(m_file.offset_size));
            break;
        default:
            throw Damaged();
        }
    }

    uint32_t whole_bytes() const { return size_of(m_chunks.chunk_bytes()); }
    static uint32_t size_of(uint64_t bytes) {
        if (bytes > UINT32_MAX) throw Damaged();
        return static_cast<uint32_t>(bytes);
    }

    /// Records that chunk `number` (row-major) is stored at `address`.
    void take(size_t number, uint64_t address, uint32_t bytes, uint32_t left_out) {
        if (m_file.undefined(address)) return;
        ChunkPlace& place = m_chunks.places[number];
        // The sum must not overflow to `nowhere`: an address beyond the end of the file must remain invalid.
        place.offset = std::min(address, UINT64_MAX / 2) + m_file.base;
        place.bytes = bytes;
        place.left_out = left_out;
    }

    /// Returns the row-major number of the chunk to which the HDF5 library gives the number `index`. The
    /// library counts with the axis `first` as the slowest axis. nullopt if the chunk is outside of the
    /// array.
    std::optional<size_t> number_of(uint64_t index, size_t first) const {
        std::array<size_t, 3> order{first, 0, 0};
        for (size_t k = 0, n = 1; k < 3; ++k)
            if (k != first) order[n++] = k;
        std::array<uint64_t, 3> at{};
        for (size_t n = 3; n-- > 1;) {
            const uint64_t most = m_most[order[n]];
            at[order[n]] = index % most;
            index /= most;
        }
        at[first] = index;
        return number_at(at);
    }
    std::optional<size_t> number_at(const std::array<uint64_t, 3>& at) const {
        for (size_t k = 0; k < 3; ++k)
            if (at[k] >= m_count[k]) return std::nullopt;
        return m_chunks.number(static_cast<int64_t>(at[0]), static_cast<int64_t>(at[1]),
                               static_cast<int64_t>(at[2]));
    }

    /// Requests all child nodes from the server in one request: first their beginnings, then their ends.
    void expect_children(const Bytes& entries, uint64_t count, size_t key) {
        const size_t offset = m_file.offset_size, head = 8 + 2 * offset;
        std::vector<uint64_t> begins, ends;
        for (Cursor c(entries.data(), entries.size()); begins.size() < count;) {
            c.skip(key);
            begins.push_back(c.number(offset));
        }
        m_file.expect(begins);
        for (const uint64_t address : begins) {
            const Bytes begin = m_file.read(address, 8);
            Cursor c(begin.data(), begin.size());
            c.skip(6);
            ends.push_back(address + head + c.number(2) * (key + offset) - 1);
        }
        m_file.expect(ends);
    }

    /// Reads a B-tree of version 1. Each key is the size of a chunk and its position in the array.
    void tree(uint64_t address, size_t depth, uint64_t expected_level) {
        if (depth == 0 && m_file.undefined(address)) return;
        if (depth > deepest_tree || ++m_nodes > 2 * most_chunks) throw Damaged();
        const size_t offset = m_file.offset_size;
        const Bytes begin = m_file.read(address, 8 + 2 * offset);
        Cursor head(begin.data(), begin.size());
        head.expect("TREE");
        if (head.number(1) != 1) throw Damaged();
        const uint64_t level = head.number(1), count = head.number(2);
        if (depth > 0 && level != expected_level) throw Damaged();
        constexpr size_t key = 8 + 4 * 8;
        const Bytes entries = m_file.read(address + begin.size(), count * (key + offset));
        Cursor c(entries.data(), entries.size());
        if (level > 0 && m_file.is_far()) expect_children(entries, count, key);
        for (uint64_t i = 0; i < count; ++i) {
            const auto bytes = static_cast<uint32_t>(c.number(4)),
                       left_out = static_cast<uint32_t>(c.number(4));
            std::array<uint64_t, 3> at{};
            for (size_t k = 0; k < 3; ++k) {
                const uint64_t place = c.number(8), chunk = static_cast<uint64_t>(m_chunks.chunk[k]);
                if (level == 0 && place % chunk != 0) throw Damaged();
                at[k] = place / chunk;
            }
            c.skip(8);
            const uint64_t child = c.number(offset);
            if (level > 0) {
                tree(child, depth + 1, level - 1);
            } else if (const auto number = number_at(at)) {
                if (m_chunks.places[*number].written()) throw Damaged();
                take(*number, child, bytes, left_out);
            }
        }
    }

    void new_tree(uint64_t address) {
        if (m_file.undefined(address)) return;
        const RecordTree records(m_file, address, most_chunks);
        const size_t offset = m_file.offset_size, with_sizes = offset + 4 + 3 * 8;
        if (records.record_bytes() < (m_filtered ? with_sizes + 1 : with_sizes - 4)) throw Damaged();
        Cursor c(records.records.data(), records.records.size());
        for (size_t i = 0; i < records.count(); ++i) {
            const uint64_t place = c.number(offset);
            const uint32_t bytes = m_filtered ? size_of(c.number(records.record_bytes() - with_sizes))
                                              : whole_bytes(),
                           left_out = m_filtered ? static_cast<uint32_t>(c.number(4)) : 0;
            std::array<uint64_t, 3> at{};
            for (uint64_t& one : at)
                one = c.number(8);
            if (const auto number = number_at(at)) take(*number, place, bytes, left_out);
        }
    }

    void implicit(uint64_t address) {
        if (m_filtered || !m_array.limited) throw Damaged();
        if (m_file.undefined(address)) return;
        for (uint64_t a = 0; a < m_count[0]; ++a)
            for (uint64_t b = 0; b < m_count[1]; ++b)
                for (uint64_t d = 0; d < m_count[2]; ++d)
                    take(*number_at({a, b, d}),
                         address + ((a * m_most[1] + b) * m_most[2] + d) * m_chunks.chunk_bytes(),
                         whole_bytes(), 0);
    }

    /// Reads `count` elements of a fixed or an extensible array (kinds of chunk index). `index`: the HDF5
    /// library's number of the first element.
    void take_elements(Cursor c, uint64_t index, uint64_t count, size_t bytes, size_t first_axis) {
        for (uint64_t i = 0; i < count; ++i) {
            Cursor element = c.part(bytes);
            const uint64_t place = element.number(m_file.offset_size);
            uint32_t size = whole_bytes(), left_out = 0;
            if (m_filtered) {
                size = static_cast<uint32_t>(
                    std::min<uint64_t>(UINT32_MAX, element.number(bytes - m_file.offset_size - 4)));
                left_out = static_cast<uint32_t>(element.number(4));
            }
            if (const auto number = number_of(index + i, first_axis)) take(*number, place, size, left_out);
        }
    }

    void check_element(uint64_t client, size_t bytes) const {
        const size_t least = m_file.offset_size + (m_filtered ? 5 : 0);
        if (client != (m_filtered ? 1 : 0) || bytes < least || (!m_filtered && bytes != least) ||
            bytes > least + 7)
            throw Damaged();
    }

    /// A data block of a fixed or an extensible array. The elements begin after `prefix` bytes. They are
    /// stored together, or in pages with one checksum per page. The bits of `pages` mark the pages that
    /// exist.
    struct Block {
        /// Address in the file, first element, number of elements, elements per page.
        uint64_t address, first, count, page;
        size_t prefix, bytes, axis;
        const uint8_t* pages;
        uint64_t first_page;
    };
    void take_block(const Block& block, const char* signature) {
        if (block.count <= block.page) {
            const Bytes all =
                m_file.read_checked(block.address, block.prefix + block.count * block.bytes + 4);
            Cursor c(all.data(), all.size());
            c.expect(signature);
            c.skip(block.prefix - 4);
            return take_elements(c, block.first, block.count, block.bytes, block.axis);
        }
        const uint64_t begin = block.address + block.prefix + 4, page_bytes = block.page * block.bytes + 4;
        for (uint64_t p = 0; p * block.page < block.count; ++p) {
            const uint64_t bit = block.first_page + p;
            if ((block.pages[bit / 8] << (bit % 8) & 0x80) == 0) continue;
            const uint64_t count = std::min(block.page, block.count - p * block.page);
            const Bytes all = m_file.read_checked(begin + p * page_bytes, count * block.bytes + 4);
            take_elements(Cursor(all.data(), all.size()), block.first + p * block.page, count, block.bytes,
                          block.axis);
        }
    }

    void fixed_array(uint64_t address) {
        if (!m_array.limited) throw Damaged();
        if (m_file.undefined(address)) return;
        const size_t offset = m_file.offset_size;
        const Bytes head = m_file.read_checked(address, 12 + m_file.length_size + offset);
        Cursor c(head.data(), head.size());
        c.expect("FAHD");
        if (c.number(1) != 0) throw Damaged();
        const uint64_t client = c.number(1), bytes = c.number(1), page_bits = c.number(1),
                       count = c.number(m_file.length_size), block = c.number(offset);
        check_element(client, bytes);
        if (page_bits > 32 || count > most_chunks) throw Damaged();
        if (m_file.undefined(block)) return;
        const uint64_t page = uint64_t{1} << page_bits, pages = (count + page - 1) / page;
        const size_t prefix = 6 + offset;
        Bytes bits;
        if (count > page) {
            bits = m_file.read_checked(block, prefix + (pages + 7) / 8 + 4);
            Cursor(bits.data(), bits.size()).expect("FADB");
            bits.erase(bits.begin(), bits.begin() + static_cast<ptrdiff_t>(prefix));
        }
        take_block(
            {block, 0, count, page, prefix + (count > page ? (pages + 7) / 8 : 0), bytes, 0, bits.data(), 0},
            "FADB");
    }

    struct Extensible {
        uint64_t element_bytes, most_bits, in_index, block_least, pointers_least, page;
        size_t axis;
        size_t offset_bytes() const { return (most_bits + 7) / 8; }
    };

    void extensible_array(uint64_t address) {
        if (m_file.undefined(address)) return;
        size_t axis = 3; // the axis without a limit; 3: not found
        for (size_t k = 0; k < 3; ++k)
            if (m_array.most[k] == UINT64_MAX) {
                if (axis != 3) throw Damaged();
                axis = k;
            }
        if (axis == 3) throw Damaged();
        const size_t offset = m_file.offset_size, length = m_file.length_size;
        const Bytes head = m_file.read_checked(address, 16 + 6 * length + offset);
        Cursor c(head.data(), head.size());
        c.expect("EAHD");
        if (c.number(1) != 0) throw Damaged();
        const uint64_t client = c.number(1);
        Extensible array{};
        array.axis = axis;
        array.element_bytes = c.number(1);
        array.most_bits = c.number(1);
        array.in_index = c.number(1);
        array.block_least = c.number(1);
        array.pointers_least = c.number(1);
        const uint64_t page_bits = c.number(1);
        c.skip(4 * length);
        const uint64_t set = c.number(length); // number of the last element that was ever written, plus 1
        c.skip(length);
        const uint64_t index = c.number(offset);
        check_element(client, array.element_bytes);
        if (array.most_bits > 64 || page_bits > 32 || !std::has_single_bit(array.block_least) ||
            !std::has_single_bit(array.pointers_least) || log2_of(array.block_least) > array.most_bits ||
            set > 4 * most_chunks)
            throw Damaged();
        array.page = uint64_t{1} << page_bits;
        if (!m_file.undefined(index)) extensible_index(array, index, set);
    }

    /// Reads an extensible index. The index contains the first elements, the addresses of the first data
    /// blocks, and the addresses of super blocks, which contain the addresses of further data blocks. From
    /// one super block to the next, either the number of data blocks or their size doubles.
    void extensible_index(const Extensible& array, uint64_t address, uint64_t set) {
        const size_t offset = m_file.offset_size;
        const uint64_t groups = 1 + array.most_bits - log2_of(array.block_least),
                       direct = 2 * log2_of(array.pointers_least), blocks = 2 * (array.pointers_least - 1),
                       others = groups > direct ? groups - direct : 0;
        const Bytes index = m_file.read_checked(address, 6 + offset + array.in_index * array.element_bytes +
                                                             (blocks + others) * offset + 4);
        Cursor c(index.data(), index.size());
        c.expect("EAIB");
        c.skip(2 + offset);
        take_elements(c.part(array.in_index * array.element_bytes), 0, array.in_index, array.element_bytes,
                      array.axis);
        uint64_t first = array.in_index;
        for (uint64_t group = 0; group < groups && first < set; ++group) {
            const uint64_t count = uint64_t{1} << (group / 2),
                           elements = array.block_least << ((group + 1) / 2);
            if (group < direct) {
                for (uint64_t b = 0; b < count; ++b, first += elements)
                    extensible_block(array, c.number(offset), first, elements, nullptr, 0);
                continue;
            }
            extensible_group(array, c.number(offset), first, count, elements);
            first += count * elements;
        }
    }

    void extensible_group(const Extensible& array, uint64_t address, uint64_t first, uint64_t count,
                          uint64_t elements) {
        if (m_file.undefined(address)) return;
        const size_t offset = m_file.offset_size;
        const uint64_t pages = elements > array.page ? elements / array.page : 0,
                       bits = count * ((pages + 7) / 8);
        const Bytes group =
            m_file.read_checked(address, 6 + offset + array.offset_bytes() + bits + count * offset + 4);
        Cursor c(group.data(), group.size());
        c.expect("EASB");
        c.skip(2 + offset + array.offset_bytes());
        const uint8_t* const there = c.take(bits);
        for (uint64_t b = 0; b < count; ++b)
            extensible_block(array, c.number(offset), first + b * elements, elements, there, b * pages);
    }

    void extensible_block(const Extensible& array, uint64_t address, uint64_t first, uint64_t elements,
                          const uint8_t* pages, uint64_t first_page) {
        if (m_file.undefined(address)) return;
        if (elements > array.page && pages == nullptr) throw Damaged();
        take_block({address, first, elements, array.page, 6 + m_file.offset_size + array.offset_bytes(),
                    array.element_bytes, array.axis, pages, first_page},
                   "EADB");
    }

    File& m_file;
    const Description& m_array;
    Hdf5Chunks& m_chunks;
    const bool m_filtered;
    /// Chunks along each axis: for the current size, for the maximum size.
    std::array<uint64_t, 3> m_count{}, m_most{};
    uint64_t m_nodes = 0;
};

/// Reads the size of a chunk along the three axes from the layout message.
std::array<int64_t, 3> chunk_of(const Description& array, const File& file) {
    Cursor c(array.layout.data(), array.layout.size());
    const uint64_t version = c.number(1);
    constexpr uint64_t in_chunks = 2, axes = 4; // axes: three, and a fourth for the bytes of a sample
    uint64_t kind = 0, count = 0, width = 4;
    if (version == 1 || version == 2) {
        count = c.number(1);
        kind = c.number(1);
        c.skip(5 + file.offset_size);
    } else if (version == 3) {
        kind = c.number(1);
        if (kind != in_chunks) throw Damaged();
        count = c.number(1);
        c.skip(file.offset_size);
    } else if (version == 4) {
        kind = c.number(1);
        if (kind != in_chunks) throw Damaged();
        c.skip(1);
        count = c.number(1);
        width = c.number(1);
    } else {
        throw Damaged();
    }
    if (kind != in_chunks || count != axes) throw Damaged();
    std::array<int64_t, 3> chunk{};
    uint64_t bytes = array.sample_bytes;
    for (int64_t& one : chunk) {
        const uint64_t size = c.number(width);
        if (size == 0 || size > UINT32_MAX / bytes) throw Damaged();
        bytes *= size;
        one = static_cast<int64_t>(size);
    }
    if (c.number(width) != array.sample_bytes) throw Damaged();
    return chunk;
}

Hdf5Chunks chunks_at(File& file, uint64_t header) {
    const Description array = describe(file, header);
    Hdf5Chunks chunks;
    chunks.chunk = chunk_of(array, file);
    for (size_t k = 0; k < 3; ++k)
        chunks.size[k] = static_cast<int64_t>(array.size[k]);
    chunks.type = array.type;
    chunks.sample_bytes = static_cast<int64_t>(array.sample_bytes);
    chunks.swapped = array.big_endian != (std::endian::native == std::endian::big);
    chunks.coding = array.coding;
    const auto sample = static_cast<size_t>(array.sample_bytes);
    const Bytes none, &fill = array.fill ? *array.fill : array.old_fill ? *array.old_fill : none;
    if (!fill.empty() && fill.size() != sample) throw Damaged();
    chunks.fill.assign(sample, 0);
    std::copy(fill.begin(), fill.end(), chunks.fill.begin());
    Index(file, array, chunks).read();
    return chunks;
}

NodataValue number_of(const Bytes& sample, const Description& array) {
    Bytes native = sample;
    if (array.big_endian != (std::endian::native == std::endian::big))
        std::reverse(native.begin(), native.end());
    NodataValue number;
    const auto take = [&](auto value) {
        std::memcpy(&value, native.data(), sizeof value);
        number.real = static_cast<double>(value);
        if constexpr (std::is_integral_v<decltype(value)>) {
            number.whole = static_cast<int64_t>(value);
            number.natural = static_cast<uint64_t>(value);
        }
    };
    const bool narrow = array.sample_bytes < static_cast<uint64_t>(GDALGetDataTypeSizeBytes(array.type));
    if (array.type == GDT_Float32 && !narrow) take(float{});
    if (array.type == GDT_Float64) take(double{});
    if (array.type == GDT_Int16 && narrow) take(int8_t{});
    if (array.type == GDT_Int16 && !narrow) take(int16_t{});
    if (array.type == GDT_Int32) take(int32_t{});
    if (array.type == GDT_Byte) take(uint8_t{});
    if (array.type == GDT_UInt16) take(uint16_t{});
    if (array.type == GDT_UInt32) take(uint32_t{});
    if (array.type == GDT_Int64) take(int64_t{});
    if (array.type == GDT_UInt64) take(uint64_t{});
    if (array.type == GDT_Int64 || array.type == GDT_UInt64) number.kind = sample_type(array.type);
    return number;
}

Hdf5Storage storage_at(File& file, uint64_t address) {
    const Header header(file, address);
    constexpr uint64_t counts = 1U << type_message | 1U << old_fill_message | 1U << fill_message;
    if ((header.shared & counts) != 0) throw Damaged();
    Description array;
    for (const Message& message : header.messages) {
        Cursor c(message.data.data(), message.data.size());
        if (message.type == type_message) read_type(c, array);
        if (message.type == fill_message) read_fill(c, array);
        if (message.type == old_fill_message) {
            const uint64_t size = c.number(4);
            array.old_fill = bytes_of(c, size);
        }
    }
    if (array.type == GDT_Unknown) throw Damaged();
    Hdf5Storage storage;
    storage.known = true;
    storage.sample_bytes = static_cast<int64_t>(array.sample_bytes);
    const Bytes none, &fill = array.fill ? *array.fill : array.old_fill ? *array.old_fill : none;
    if (!fill.empty() && fill.size() == array.sample_bytes) storage.fill = number_of(fill, array);
    return storage;
}

} // namespace
} // namespace hsi::raster::hdf5

namespace hsi::raster {
namespace {

/// Converts half precision (IEEE 754), which has a sign, 5 bits of exponent and 10 bits of mantissa.
float float_of_half(uint32_t half) {
    const uint32_t sign = (half & 0x8000) << 16, exponent = half >> 10 & 31, mantissa = half & 0x3ff;
    if (exponent == 0) { // subnormal number: the mantissa has no leading 1
        const float value = std::ldexp(static_cast<float>(mantissa), -24);
        return sign != 0 ? -value : value;
    }
    return std::bit_cast<float>(sign | (exponent == 31 ? 255U : exponent + 112) << 23 | mantissa << 13);
}

} // namespace

void Hdf5Chunks::widen(const char* from, ptrdiff_t stride, char* to, size_t count) const {
    for (size_t i = 0; i < count; ++i, from += stride) {
        uint8_t bytes[2] = {};
        std::memcpy(bytes, from, static_cast<size_t>(sample_bytes));
        if (type == GDT_Int16) {
            const auto value = static_cast<int16_t>(static_cast<int8_t>(bytes[0]));
            std::memcpy(to + i * sizeof value, &value, sizeof value);
        } else {
            const bool high_first = swapped != (std::endian::native == std::endian::big);
            const float value =
                float_of_half(uint32_t{bytes[high_first ? 0 : 1]} << 8 | bytes[high_first ? 1 : 0]);
            std::memcpy(to + i * sizeof value, &value, sizeof value);
        }
    }
}

namespace {

/// Calls `read` at the object header of each array and returns the results, one per array. Returns an empty
/// list if an array is absent or a part of the file is damaged; the HDF5 library then reads the arrays.
template <typename Found>
std::vector<Found> find_at_headers(const std::string& path, const std::vector<std::string>& arrays,
                                   Found (*read)(hdf5::File&, uint64_t)) {
    std::vector<Found> found;
    try {
        hdf5::File file(path);
        const auto begin = file.is_open() ? hdf5::find_begin(file) : std::nullopt;
        if (!begin) return {};
        hdf5::root_of(file, *begin);
        const Hdf5Contents contents = walk_hdf5(path);
        for (const std::string& name : arrays) {
            const auto at = std::find(contents.objects.begin(), contents.objects.end(), name);
            if (at == contents.objects.end()) return {};
            found.push_back(read(file, contents.headers[static_cast<size_t>(at - contents.objects.begin())]));
        }
    } catch (const hdf5::Damaged&) {
        return {};
    }
    return found;
}

} // namespace

Hdf5Storage find_hdf5_storage(const std::string& path, const std::string& array) {
    const auto found = find_at_headers(path, {array}, hdf5::storage_at);
    return found.empty() ? Hdf5Storage{} : found.front();
}

std::vector<Hdf5Chunks> find_hdf5_chunks(const std::string& path, const std::vector<std::string>& arrays) {
    return find_at_headers(path, arrays, hdf5::chunks_at);
}

} // namespace hsi::raster
