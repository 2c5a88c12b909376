// SPDX-License-Identifier: MIT
// The bytes of an HDF5 file (The HDF Group, HDF5 File Format Specification, version 3.0): numbers, headers of
// objects, heaps and trees, for code that reads a file without the HDF5 library. All functions throw Damaged
// if the bytes contradict the specification.
#pragma once

#include <cpl_vsi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster::hdf5 {

/// The bytes contradict the specification. Callers skip the object that contains them.
struct Damaged {};

using Bytes = std::vector<uint8_t>;

// Limits for the number of objects and the depth of trees, which only malicious files exceed.
constexpr size_t most_objects = 100000, deepest_tree = 32;

/// Reads the content of a block from its beginning to its end. Numbers are little-endian; the caller states
/// the number of bytes of each number.
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
    /// Reads a text up to its zero byte.
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

size_t bytes_for(uint64_t most); ///< bytes of a number up to `most`
size_t log2_of(uint64_t power);  ///< base-2 logarithm, rounded down; 0 for 0

/// An HDF5 file. Addresses count from `base`. offset_size and length_size are the numbers of bytes of an
/// address and of a length in the file.
class File {
  public:
    explicit File(const std::string& path);
    ~File();
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    bool is_open() const { return m_file != nullptr; }
    /// Returns true for a remote file. Each read at another position of such a file is a request to a server.
    bool is_far() const { return m_far; }
    uint64_t size() const { return m_size; }

    /// Read bytes; read_up_to() returns fewer bytes at the end of the file. Throw Damaged beyond the end of
    /// the file, and if all reads together exceed 1 GiB, because headers and heaps of real files have only
    /// some kilobytes. Throw Error if a server does not deliver the bytes.
    Bytes read(uint64_t address, uint64_t size);
    Bytes read_up_to(uint64_t address, uint64_t size);
    /// Reads a block whose last four bytes are the checksum of the other bytes.
    Bytes read_checked(uint64_t address, uint64_t size);
    /// Announces addresses that will be read next. In a remote file, the bytes around them are requested at
    /// the same time.
    void expect(const std::vector<uint64_t>& addresses) const;
    bool undefined(uint64_t address) const {
        return address == (offset_size >= 8 ? UINT64_MAX : (uint64_t{1} << (8 * offset_size)) - 1);
    }

    uint64_t base = 0;
    size_t offset_size = 8, length_size = 8;

  private:
    const std::string m_path;
    VSILFILE* const m_file;
    const bool m_far;
    uint64_t m_size = 0, m_left;
};

/// Returns the position at which the HDF5 data begin, after an optional user block. In a remote file, only
/// user blocks of the sizes that MATLAB and other programs write are found.
std::optional<uint64_t> find_begin(File& file);
/// Returns the address of the root group's header. Sets `base`, `offset_size` and `length_size` of `file`.
uint64_t root_of(File& file, uint64_t begin);

struct Message {
    uint64_t type = 0;
    Bytes data;
};

constexpr uint64_t space_message = 1, link_info = 2, type_message = 3, old_fill_message = 4, fill_message = 5,
                   link_message = 6, storage_message = 7, layout_message = 8, filter_message = 11,
                   continuation = 16, symbol_table = 17;

/// The header of an object. It consists of messages. Messages that the object shares with other objects are
/// not read.
class Header {
  public:
    Header(File& file, uint64_t address);
    std::vector<Message> messages; ///< messages of the types above
    uint64_t shared = 0;           ///< bit t: a message of type t is shared, and is stored elsewhere

  private:
    struct Block {
        uint64_t address, size;
    };
    void read_old(uint64_t address, const Bytes& begin);
    void read_new(uint64_t address, const Bytes& begin);
    void read_blocks(const Block& first, bool is_new);
    void read_messages(Cursor& c, bool is_new, size_t checksum, std::vector<Block>& blocks);

    File& m_file;
    uint64_t m_flags = 0;
};

/// A heap of names. Groups of the older form and datasets with external storage use such heaps.
class LocalHeap {
  public:
    LocalHeap(File& file, uint64_t address);
    std::string at(uint64_t offset) const;

  private:
    Bytes m_data;
};

/// The heap with the links of a group that has many links ("dense"). Its blocks double in size from row to
/// row.
class FractalHeap {
  public:
    FractalHeap(File& file, uint64_t address);
    size_t id_bytes() const { return m_id_bytes; }
    Bytes object(Cursor id) const;

  private:
    uint64_t block_size(size_t row) const;
    Bytes in_block(uint64_t address, size_t rows, uint64_t offset, uint64_t length, size_t depth) const;

    File& m_file;
    size_t m_id_bytes = 0, m_offset_bytes = 0, m_length_bytes = 0, m_rows = 0, m_direct_rows = 0;
    uint64_t m_width = 0, m_start = 0, m_root = 0;
};

/// A B-tree of version 2. The constructor reads the whole tree: `records` then contains all its records in
/// sequence, each with record_bytes() bytes.
class RecordTree {
  public:
    RecordTree(File& file, uint64_t address, size_t most = most_objects);
    size_t record_bytes() const { return m_record_bytes; }
    size_t count() const { return records.size() / m_record_bytes; }
    Bytes records;

  private:
    void visit(uint64_t address, uint64_t count, size_t level);

    File& m_file;
    const size_t m_most;
    uint64_t m_node_bytes = 0;
    size_t m_record_bytes = 0, m_count_bytes = 0;
    std::vector<size_t> m_total_bytes; ///< by level: bytes of the total number of records below a child
};

/// Returns the checksum of metadata: Bob Jenkins, lookup3.c (2006, public domain), hashlittle() from 0.
uint32_t checksum(const uint8_t* bytes, size_t count);

} // namespace hsi::raster::hdf5
