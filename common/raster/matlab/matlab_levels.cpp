// SPDX-License-Identifier: MIT
// Reads versions 4 and 5 of MATLAB's file format. A file is a sequence of elements, each with its length. In
// version 5, each element may be compressed separately. All lengths are checked against each other and
// against the file size.
#include "core/error.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"
#include "raster/matlab/matlab_file.h"
#include "raster/sample_convert.h"

#include <cpl_vsi.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <initializer_list>
#include <utility>

namespace hsi::raster {
namespace {

/// A description of damage in the file, which guarded() passes to MatlabFile::refuse().
struct Damage {
    std::string what;
};

/// Codes of the types of stored values and of elements that contain other elements.
enum Stored {
    mi_int8 = 1,
    mi_uint8 = 2,
    mi_int16 = 3,
    mi_uint16 = 4,
    mi_int32 = 5,
    mi_uint32 = 6,
    mi_single = 7,
    mi_double = 9,
    mi_int64 = 12,
    mi_uint64 = 13,
    mi_matrix = 14,
    mi_compressed = 15,
    mi_utf8 = 16,
    mi_utf16 = 17,
    mi_utf32 = 18
};

struct StoredType {
    int number;
    size_t bytes;
    GDALDataType type;
    bool whole;
    int digits; ///< bits of precision without the sign
    bool negative;
};

#if GDAL_VERSION_NUM >= 3070000
constexpr GDALDataType signed_byte = GDT_Int8;
#else
constexpr GDALDataType signed_byte = GDT_Int16;
#endif

constexpr std::array<StoredType, 10> stored_types = {{{mi_int8, 1, signed_byte, true, 7, true},
                                                      {mi_uint8, 1, GDT_Byte, true, 8, false},
                                                      {mi_int16, 2, GDT_Int16, true, 15, true},
                                                      {mi_uint16, 2, GDT_UInt16, true, 16, false},
                                                      {mi_int32, 4, GDT_Int32, true, 31, true},
                                                      {mi_uint32, 4, GDT_UInt32, true, 32, false},
                                                      {mi_single, 4, GDT_Float32, false, 24, true},
                                                      {mi_double, 8, GDT_Float64, false, 53, true},
                                                      {mi_int64, 8, GDT_Int64, true, 63, true},
                                                      {mi_uint64, 8, GDT_UInt64, true, 64, false}}};

const StoredType* stored_type(int number) {
    const auto* const at = std::find_if(stored_types.begin(), stored_types.end(),
                                        [&](const StoredType& one) { return one.number == number; });
    return at == stored_types.end() ? nullptr : at;
}

/// MATLAB's numeric classes, which have the codes 6 to 15.
struct NumberClass {
    const char* name;
    int stored; ///< code of the stored type that represents all values of the class
};
constexpr std::array<NumberClass, 10> number_classes = {{{"double", mi_double},
                                                         {"single", mi_single},
                                                         {"int8", mi_int8},
                                                         {"uint8", mi_uint8},
                                                         {"int16", mi_int16},
                                                         {"uint16", mi_uint16},
                                                         {"int32", mi_int32},
                                                         {"uint32", mi_uint32},
                                                         {"int64", mi_int64},
                                                         {"uint64", mi_uint64}}};
constexpr int first_number = 6, last_number = 15;
enum Class {
    mx_cell = 1,
    mx_struct = 2,
    mx_object = 3,
    mx_char = 4,
    mx_sparse = 5,
    mx_function = 16,
    mx_opaque = 17
};

/// Returns whether values of the class type `all` may be stored in this type. MATLAB stores values in the
/// smallest type that represents all of them.
bool may_stand_for(const StoredType& stored, const StoredType& all) {
    if (!all.whole) return true;
    return stored.whole && (stored.negative ? all.negative : true) && stored.digits <= all.digits;
}

struct CloseFile {
    void operator()(VSILFILE* file) const { VSIFCloseL(file); }
};
using File = std::unique_ptr<VSILFILE, CloseFile>;

/// Bytes of the file, or of a compressed part, that are read sequentially.
class Bytes {
  public:
    Bytes() = default;
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    virtual ~Bytes() = default;
    void read(void* to, size_t count) {
        take(static_cast<char*>(to), count);
        m_at += count;
    }
    virtual void skip(uint64_t count) {
        std::array<char, 16384> unused;
        for (; count > 0; count -= std::min<uint64_t>(count, unused.size()))
            read(unused.data(), static_cast<size_t>(std::min<uint64_t>(count, unused.size())));
    }
    uint64_t at() const { return m_at; }
    /// Reads the remaining bytes, which detects a truncated compressed part.
    virtual void finish() {}

  protected:
    virtual void take(char* to, size_t count) = 0;
    uint64_t m_at = 0;
};

class FileBytes final : public Bytes {
  public:
    FileBytes(VSILFILE* file, uint64_t at) : m_file(file) { go(at); }
    void skip(uint64_t count) override { go(m_at + count); }

  protected:
    void take(char* to, size_t count) override {
        if (VSIFReadL(to, 1, count, m_file) != count) throw Damage{"it ends early"};
    }

  private:
    void go(uint64_t at) {
        if (VSIFSeekL(m_file, at, SEEK_SET) != 0) throw Damage{"it ends early"};
        m_at = at;
    }
    VSILFILE* const m_file;
};

class Inflated final : public Bytes {
  public:
    Inflated(VSILFILE* file, uint64_t from, uint64_t bytes) : m_file(file), m_left(bytes), m_in(1 << 16) {
        if (VSIFSeekL(file, from, SEEK_SET) != 0) throw Damage{"it ends early"};
        if (inflateInit(&m_stream) != Z_OK) throw std::bad_alloc();
    }
    ~Inflated() override { inflateEnd(&m_stream); }

    void finish() override {
        std::array<char, 16384> unused;
        while (!m_ended)
            if (some(unused.data(), unused.size()) == 0 && !m_ended)
                throw Damage{"a compressed part ends early"};
    }

  protected:
    void take(char* to, size_t count) override {
        while (count > 0) {
            const size_t got = m_ended ? 0 : some(to, count);
            if (got == 0 && (m_ended || m_left == 0)) throw Damage{"a compressed part ends early"};
            to += got;
            count -= got;
        }
    }

  private:
    size_t some(char* to, size_t count) {
        if (m_stream.avail_in == 0 && m_left > 0) {
            const auto n = static_cast<size_t>(std::min<uint64_t>(m_left, m_in.size()));
            if (VSIFReadL(m_in.data(), 1, n, m_file) != n) throw Damage{"it ends early"};
            m_left -= n;
            m_stream.next_in = m_in.data();
            m_stream.avail_in = static_cast<uInt>(n);
        }
        const auto room = static_cast<uInt>(std::min<size_t>(count, size_t{1} << 30));
        m_stream.next_out = reinterpret_cast<Bytef*>(to);
        m_stream.avail_out = room;
        const int state = inflate(&m_stream, Z_NO_FLUSH);
        if (state == Z_STREAM_END)
            m_ended = true;
        else if (state != Z_OK && !(state == Z_BUF_ERROR && m_left > 0))
            throw Damage{"a compressed part cannot be decompressed"};
        return room - m_stream.avail_out;
    }

    VSILFILE* const m_file;
    uint64_t m_left;
    std::vector<Bytef> m_in;
    z_stream m_stream{};
    bool m_ended = false;
};

/// Common base of the readers of versions 4 and 5, which read and convert values in the order of the file.
class StoredFile : public MatlabFile {
  public:
    void read(const MatlabVariable& variable, const Take& take) const override {
        const StoredType* const stored = stored_type(variable.place.stored);
        if (stored == nullptr || variable.type == GDT_Unknown)
            throw Error("'" + path() + "': " + variable.text() + " is not an array of real numbers");
        guarded(variable.name, [&] {
            const File file = open_file();
            const auto bytes = open_place(*file, variable.place);
            constexpr size_t piece = size_t{1} << 20;
            std::vector<char> raw(piece), values;
            for (uint64_t left = variable.place.bytes; left > 0;) {
                const auto n = static_cast<size_t>(std::min<uint64_t>(left, piece));
                bytes->read(raw.data(), n);
                left -= n;
                take_piece(raw, n, *stored, variable.type, values, take);
            }
            bytes->finish();
        });
    }

  protected:
    using MatlabFile::MatlabFile;

    File open_file() const {
        File file(VSIFOpenL(path().c_str(), "rb"));
        if (!file) throw Error("cannot open '" + path() + "'");
        return file;
    }

    static std::unique_ptr<Bytes> open_place(VSILFILE& file, const MatlabVariable::Place& place) {
        if (!place.compressed) return std::make_unique<FileBytes>(&file, place.at);
        auto bytes = std::make_unique<Inflated>(&file, place.from, place.from_bytes);
        bytes->skip(place.at);
        return bytes;
    }

    /// Calls `work`, and converts Damage to an Error that names the file.
    template <class Work>
    void guarded(const std::string& name, const Work& work) const {
        const GdalErrors quiet;
        try {
            work();
        } catch (const Damage& damage) {
            refuse(damage.what + (name.empty() ? "" : ", at '" + name + "'"));
        }
    }

    bool m_swapped = false;

  private:
    void take_piece(std::vector<char>& raw, size_t bytes, const StoredType& stored, GDALDataType type,
                    std::vector<char>& values, const Take& take) const {
        const size_t count = bytes / stored.bytes;
        if (m_swapped) swap_bytes(raw.data(), sample_type(stored.type), stored.bytes > 1 ? count : 0);
        const char* from = raw.data();
        std::vector<int16_t> wide;
        // GDAL before 3.7 has no 8-bit signed type.
        if (stored.number == mi_int8 && signed_byte == GDT_Int16) {
            wide.assign(reinterpret_cast<const int8_t*>(from), reinterpret_cast<const int8_t*>(from) + count);
            from = reinterpret_cast<const char*>(wide.data());
        }
        if (stored.type == type) return take(from, count);
        const int in = GDALGetDataTypeSizeBytes(stored.type), out = GDALGetDataTypeSizeBytes(type);
        values.resize(count * static_cast<size_t>(out));
        GDALCopyWords64(from, stored.type, in, values.data(), type, out, static_cast<GPtrDiff_t>(count));
        take(values.data(), count);
    }
};

uint32_t turned(uint32_t word) {
    return word >> 24 | (word >> 8 & 0xff00) | (word << 8 & 0xff0000) | word << 24;
}

constexpr uint64_t longest_text = 1 << 24; ///< bytes of a text
constexpr uint32_t longest_name = 4096;

/// Reader of the elements of version 5.
class Level5 final : public StoredFile {
  public:
    explicit Level5(const std::string& path) : StoredFile(path, "5") {
        guarded("", [&] {
            const File file = open_file();
            std::array<char, 2> order{};
            FileBytes(file.get(), 126).read(order.data(), order.size());
            // The header contains a 16-bit number with the characters "MI". They are stored as "IM" in
            // little-endian files.
            m_swapped = (order[0] == 'I') != (std::endian::native == std::endian::little);
            VSIFSeekL(file.get(), 0, SEEK_END);
            const uint64_t end = VSIFTellL(file.get());
            for (uint64_t at = 128; at < end && m_variables.size() < most_matlab_variables;)
                at = read_top(*file, at, end);
        });
    }

    std::vector<std::string> texts(const MatlabVariable& variable) const override {
        std::vector<std::string> texts;
        if ((variable.kind != "char" && variable.kind != "cell") || variable.place.bytes > longest_text)
            return texts;
        guarded(variable.name, [&] {
            const File file = open_file();
            const auto bytes = open_place(*file, variable.place);
            const uint64_t end = bytes->at() + variable.place.bytes;
            if (variable.kind == "char") {
                texts = rows_of(characters(*bytes, end), variable.dims.front());
                return;
            }
            for (int64_t i = 0; i < variable.count() && bytes->at() < end; ++i) {
                const Tag tag = next_tag(*bytes, end);
                const uint64_t cell_end = bytes->at() + tag.bytes;
                if (tag.type != mi_matrix) throw Damage{"a cell is not an array"};
                const Head head = tag.bytes > 0 ? read_head(*bytes, cell_end) : Head{};
                std::string text;
                if (head.kind == mx_char)
                    for (const std::string& row : rows_of(characters(*bytes, cell_end), head.rows()))
                        text += row;
                texts.push_back(std::move(text));
                bytes->skip(cell_end - bytes->at());
            }
        });
        return texts;
    }

  private:
    struct Tag {
        uint32_t type = 0;
        uint64_t bytes = 0;
        uint64_t padded = 0; ///< bytes up to the next element, including padding
    };
    struct Head {
        int kind = 0;
        bool complex = false, logical = false;
        std::vector<int64_t> dims;
        std::string name;
        int64_t rows() const { return dims.empty() ? 0 : dims.front(); }
    };

    uint32_t word(Bytes& bytes) const {
        uint32_t w = 0;
        bytes.read(&w, sizeof w);
        return m_swapped ? turned(w) : w;
    }

    /// Reads the tag of the element at the current position, which must not extend beyond `end`.
    Tag next_tag(Bytes& bytes, uint64_t end) const {
        if (end < bytes.at() + 8) throw Damage{"an element does not fit into the one around it"};
        const uint32_t first = word(bytes);
        Tag tag;
        if (first >> 16 != 0) { // a small element: up to four bytes of data within the tag
            tag = {first & 0xffff, first >> 16, 4};
            if (tag.bytes > 4) throw Damage{"an element has a wrong length"};
        } else {
            tag.type = first;
            tag.bytes = word(bytes);
            tag.padded = tag.type == mi_matrix ? tag.bytes : (tag.bytes + 7) / 8 * 8;
        }
        // The last element of a variable may lack its padding.
        if (end < bytes.at() + tag.bytes) throw Damage{"an element does not fit into the one around it"};
        tag.padded = std::min(tag.padded, end - bytes.at());
        return tag;
    }

    using Types = std::initializer_list<uint32_t>;
    /// Returns the data of a short element. Several types are accepted, because programs other than MATLAB
    /// use different types for the same element.
    std::vector<char> content(Bytes& bytes, uint64_t end, Types types, uint64_t most) const {
        const Tag tag = next_tag(bytes, end);
        if (std::find(types.begin(), types.end(), tag.type) == types.end() || tag.bytes > most)
            throw Damage{"a variable's description is invalid"};
        std::vector<char> data(static_cast<size_t>(tag.bytes));
        bytes.read(data.data(), data.size());
        bytes.skip(tag.padded - tag.bytes);
        return data;
    }

    std::vector<uint32_t> words(Bytes& bytes, uint64_t end, uint64_t most) const {
        const std::vector<char> data = content(bytes, end, {mi_int32, mi_uint32}, most);
        std::vector<uint32_t> all;
        for (size_t at = 0; at + 4 <= data.size(); at += 4) {
            uint32_t w = 0;
            std::memcpy(&w, data.data() + at, sizeof w);
            all.push_back(m_swapped ? turned(w) : w);
        }
        return all;
    }

    Head read_head(Bytes& bytes, uint64_t end) const {
        constexpr uint64_t most_dims = 4 * 64;
        const auto flags = words(bytes, end, 8);
        if (flags.size() != 2) throw Damage{"a variable's description is invalid"};
        Head head;
        head.kind = static_cast<int>(flags[0] & 0xff);
        head.complex = (flags[0] & 0x0800) != 0;
        head.logical = (flags[0] & 0x0200) != 0;
        if (head.kind != mx_opaque) {
            for (const uint32_t n : words(bytes, end, most_dims)) {
                if (n > INT32_MAX) throw Damage{"a size is negative"};
                head.dims.push_back(n);
            }
            if (head.dims.size() < 2) throw Damage{"a variable has no size"};
        }
        const auto name = content(bytes, end, {mi_int8, mi_uint8, mi_utf8}, longest_name);
        head.name.assign(name.data(), strnlen(name.data(), name.size()));
        return head;
    }

    /// Reads the top-level element at byte `at` of the file. Returns the position of the next element.
    uint64_t read_top(VSILFILE& file, uint64_t at, uint64_t end) {
        FileBytes in(&file, at);
        const uint32_t type = word(in);
        const uint64_t bytes = word(in), begin = at + 8;
        if (type != mi_matrix && type != mi_compressed)
            throw Damage{"no variable begins at byte " + std::to_string(at)};
        if (begin + bytes > end)
            throw Damage{"it ends early: a variable ends at byte " + std::to_string(begin + bytes) +
                         ", but the file at " + std::to_string(end)};
        MatlabVariable::Place place;
        if (type == mi_matrix) {
            read_matrix(in, begin + bytes, "", 0, place);
            return begin + bytes;
        }
        place.compressed = true;
        place.from = begin;
        place.from_bytes = bytes;
        Inflated inflated(&file, begin, bytes);
        const uint32_t inner = word(inflated);
        const uint64_t length = word(inflated);
        if (inner != mi_matrix) throw Damage{"a compressed part has no variable"};
        read_matrix(inflated, inflated.at() + length, "", 0, place);
        return begin + bytes;
    }

    /// Adds the variable in the element that ends at `end`: an array, or each field of a struct. `name` is
    /// the name of a field (depth > 0). `place` is the position of the top-level element.
    void read_matrix(Bytes& bytes, uint64_t end, const std::string& name, int depth,
                     MatlabVariable::Place place) {
        if (m_variables.size() >= most_matlab_variables || end == bytes.at()) return;
        const Head head = read_head(bytes, end);
        MatlabVariable one;
        one.name = depth == 0 ? head.name : name;
        if (one.name.empty()) return; // MATLAB's internal data have no name
        one.dims = head.dims;
        if (head.kind == mx_struct && one.count() == 1 && depth < deepest_struct)
            return read_fields(bytes, end, one.name, depth, place);
        if (head.kind >= first_number && head.kind <= last_number) {
            describe_numbers(bytes, end, head, one, place);
        } else {
            static const std::pair<int, const char*> kinds[] = {
                {mx_cell, "cell"},     {mx_struct, "struct"},     {mx_object, "object"}, {mx_char, "char"},
                {mx_sparse, "sparse"}, {mx_function, "function"}, {mx_opaque, "object"}};
            const auto* const at = std::find_if(std::begin(kinds), std::end(kinds),
                                                [&](const auto& kind) { return kind.first == head.kind; });
            if (at == std::end(kinds)) throw Damage{"'" + one.name + "' does not have a MATLAB class"};
            one.kind = at->second;
            place.at = bytes.at();
            place.bytes = end - bytes.at();
        }
        one.place = place;
        m_variables.push_back(std::move(one));
    }

    void describe_numbers(Bytes& bytes, uint64_t end, const Head& head, MatlabVariable& one,
                          MatlabVariable::Place& place) const {
        const NumberClass& numbers = number_classes[static_cast<size_t>(head.kind - first_number)];
        one.kind = std::string(head.complex ? "complex " : "") + (head.logical ? "logical" : numbers.name);
        if (one.count() == 0) return; // an empty array may have no data element
        const Tag tag = next_tag(bytes, end);
        const StoredType *const stored = stored_type(static_cast<int>(tag.type)), *const all = stored_type(
                                                                                      numbers.stored);
        if (stored == nullptr || !may_stand_for(*stored, *all))
            throw Damage{"'" + one.name + "' is " + one.kind + ", but is stored as another type"};
        if (tag.bytes / stored->bytes != static_cast<uint64_t>(one.count()) || tag.bytes % stored->bytes != 0)
            throw Damage{one.text() + " has " + std::to_string(tag.bytes) + " bytes of data"};
        place.at = bytes.at();
        place.bytes = tag.bytes;
        place.stored = stored->number;
        if (!head.complex) one.type = all->type;
    }

    void read_fields(Bytes& bytes, uint64_t end, const std::string& name, int depth,
                     const MatlabVariable::Place& place) {
        const auto length = words(bytes, end, 4);
        if (length.size() != 1 || length[0] == 0 || length[0] > longest_name)
            throw Damage{"the struct '" + name + "' has no names of fields"};
        const auto names =
            content(bytes, end, {mi_int8, mi_uint8, mi_utf8}, most_matlab_variables * longest_name);
        for (size_t at = 0; at + length[0] <= names.size(); at += length[0]) {
            const std::string field(names.data() + at, strnlen(names.data() + at, length[0]));
            const Tag tag = next_tag(bytes, end);
            if (tag.type != mi_matrix) throw Damage{"a field of '" + name + "' is not an array"};
            const uint64_t field_end = bytes.at() + tag.bytes;
            read_matrix(bytes, field_end, name + "." + field, depth + 1, place);
            bytes.skip(field_end - bytes.at());
        }
    }

    std::vector<uint32_t> characters(Bytes& bytes, uint64_t end) const {
        std::vector<uint32_t> all;
        if (bytes.at() == end) return all;
        const Tag tag = next_tag(bytes, end);
        if (tag.bytes > longest_text) throw Damage{"a text is too long"};
        std::vector<unsigned char> raw(static_cast<size_t>(tag.bytes));
        bytes.read(raw.data(), raw.size());
        bytes.skip(tag.padded - tag.bytes);
        if (tag.type == mi_uint16 || tag.type == mi_utf16) {
            for (size_t i = 0; i + 1 < raw.size(); i += 2) {
                uint16_t unit = 0;
                std::memcpy(&unit, raw.data() + i, 2);
                if (m_swapped) unit = static_cast<uint16_t>(unit >> 8 | unit << 8);
                all.push_back(unit);
            }
        } else if (tag.type == mi_utf8) {
            decode_utf8(raw, all);
        } else if (tag.type == mi_int8 || tag.type == mi_uint8) {
            all.assign(raw.begin(), raw.end());
        } else {
            throw Damage{"a text has an invalid type"};
        }
        return all;
    }

    static void decode_utf8(const std::vector<unsigned char>& raw, std::vector<uint32_t>& all) {
        for (size_t i = 0; i < raw.size();) {
            const unsigned char lead = raw[i++];
            const int more = lead < 0xc0 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
            uint32_t character = more == 0 ? lead : lead & (0x3f >> more);
            for (int k = 0; k < more && i < raw.size() && (raw[i] & 0xc0) == 0x80; ++k)
                character = character << 6 | (raw[i++] & 0x3f);
            all.push_back(character);
        }
    }
};

/// Reader of version 4: a sequence of matrices, each with a header of 20 bytes.
class Level4 final : public StoredFile {
  public:
    explicit Level4(const std::string& path) : StoredFile(path, "4") {
        guarded("", [&] {
            const File file = open_file();
            VSIFSeekL(file.get(), 0, SEEK_END);
            const uint64_t end = VSIFTellL(file.get());
            for (uint64_t at = 0; at < end && m_variables.size() < most_matlab_variables;)
                at = read_matrix(*file, at, end);
        });
    }

    std::vector<std::string> texts(const MatlabVariable& variable) const override {
        std::vector<std::string> texts;
        if (variable.kind != "char" || variable.place.bytes > longest_text) return texts;
        MatlabVariable numbers_of = variable;
        // The values are codes of characters, which MATLAB usually stores as doubles.
        numbers_of.type = stored_type(variable.place.stored)->type;
        std::vector<uint32_t> all;
        for (const double v : numbers(numbers_of))
            all.push_back(v >= 0 && v < 0x110000 ? static_cast<uint32_t>(v) : '?');
        return rows_of(all, variable.dims.front());
    }

  private:
    uint64_t read_matrix(VSILFILE& file, uint64_t at, uint64_t end) {
        FileBytes bytes(&file, at);
        std::array<uint32_t, 5> head{}; // type, rows, columns, flag of an imaginary part, length of the name
        bytes.read(head.data(), sizeof head);
        if (at == 0) m_swapped = head[0] > 9999;
        if (m_swapped) std::transform(head.begin(), head.end(), head.begin(), turned);
        static constexpr int stored_as[] = {mi_double, mi_single, mi_int32, mi_int16, mi_uint16, mi_uint8};
        const uint32_t precision = head[0] / 10 % 10, text = head[0] % 10;
        if (head[0] > 9999 || precision > 5 || text > 2 || head[3] > 1 || head[4] == 0 ||
            head[4] > longest_name || head[1] > INT32_MAX || head[2] > INT32_MAX)
            throw Damage{"no variable begins at byte " + std::to_string(at)};
        std::string name(head[4], '\0');
        bytes.read(name.data(), name.size());
        MatlabVariable one;
        one.name = name.c_str();
        one.dims = {head[1], head[2]};
        const StoredType& stored = *stored_type(stored_as[precision]);
        static constexpr const char* names[] = {"double", "single", "int32", "int16", "uint16", "uint8"};
        one.place.at = bytes.at();
        one.place.stored = stored.number;
        uint64_t all = static_cast<uint64_t>(one.count());
        if (__builtin_mul_overflow(all, uint64_t{stored.bytes}, &one.place.bytes) || one.place.bytes > end ||
            bytes.at() + one.place.bytes * (head[3] == 1 ? 2 : 1) > end)
            throw Damage{"it ends early, within '" + one.name + "'"};
        one.kind = text == 1 ? "char" : text == 2 ? "sparse" : names[precision];
        if (head[3] == 1) one.kind = "complex " + one.kind;
        if (text == 0 && head[3] == 0) one.type = stored.type;
        const uint64_t next = bytes.at() + one.place.bytes * (head[3] == 1 ? 2 : 1);
        m_variables.push_back(std::move(one));
        return next;
    }
};

} // namespace

std::shared_ptr<const MatlabFile> open_matlab_4(const std::string& path) {
    return std::make_shared<Level4>(path);
}

std::shared_ptr<const MatlabFile> open_matlab_5(const std::string& path) {
    return std::make_shared<Level5>(path);
}

} // namespace hsi::raster
