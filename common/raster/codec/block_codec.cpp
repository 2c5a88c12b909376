// SPDX-License-Identifier: MIT
#include "raster/codec/block_codec.h"

#include "core/codec_time.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "raster/codec/lerc_codec.h"

#include <libdeflate.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace hsi::raster {
/// TIFF's LZW (TIFF revision 6.0, section 13). The codes have 9 to 12 bits, the highest bit first. The width
/// grows one code earlier than needed, as TIFF requires.
class BlockCoder::Lzw {
  public:
    static size_t bound(size_t bytes) { return bytes * 3 / 2 + bytes / 1024 + 16; }

    size_t encode(const unsigned char* from, size_t count, unsigned char* to) {
        m_to = to;
        m_bits = m_held = 0;
        begin();
        put(clear);
        uint32_t prefix = from[0];
        for (size_t i = 1; i < count; ++i) {
            const uint32_t key = prefix << 8 | from[i];
            uint32_t at = key * 2654435761U >> (32 - table_bits);
            while (m_table[at].round == m_round && m_table[at].key != key)
                at = (at + 1) & (table_size - 1);
            if (m_table[at].round == m_round) {
                prefix = m_table[at].code;
                continue;
            }
            put(prefix);
            m_table[at] = {key, m_round, static_cast<uint16_t>(m_next)};
            prefix = from[i];
            if (++m_next == last) { // the table is full
                put(clear);
                begin();
            } else if (m_next == uint32_t{1} << m_width) {
                // The decoder's table is one entry behind the encoder's.
                ++m_width;
            }
        }
        put(prefix);
        // The decoder adds each code to its table before it reads the next code.
        if (++m_next == last) {
            put(clear);
            m_width = 9;
        } else if (m_next == uint32_t{1} << m_width) {
            ++m_width;
        }
        put(end);
        if (m_bits > 0) *m_to++ = static_cast<unsigned char>(m_held << (8 - m_bits));
        return static_cast<size_t>(m_to - to);
    }

  private:
    static constexpr uint32_t clear = 256, end = 257, first = 258, last = 4094;
    static constexpr int table_bits = 13;
    static constexpr uint32_t table_size = uint32_t{1} << table_bits;
    struct Entry {
        uint32_t key = 0, round = 0;
        uint16_t code = 0;
    };

    void begin() {
        m_width = 9;
        m_next = first;
        if (++m_round != 0) return;
        m_table.assign(table_size, {});
        m_round = 1;
    }
    void put(uint32_t code) {
        m_held = m_held << m_width | code;
        m_bits += m_width;
        while (m_bits >= 8) {
            m_bits -= 8;
            *m_to++ = static_cast<unsigned char>(m_held >> m_bits);
        }
    }

    std::vector<Entry> m_table = std::vector<Entry>(table_size);
    /// Number of the current table. Entries of earlier tables are ignored, so the array need not be cleared.
    uint32_t m_round = 0;
    uint32_t m_next = first;
    int m_width = 9, m_bits = 0;
    uint32_t m_held = 0;
    unsigned char* m_to = nullptr;
};

/// DEFLATE (RFC 1951) with only literals and runs of one byte, in one block with a custom code. The coder
/// suits data that repeat only in runs of equal bytes. It is several times as fast as a search for repeated
/// strings.
class BlockCoder::Runs {
  public:
    static size_t bound(size_t bytes) { return bytes * most_bits / 8 + 512; }

    /// Makes the best code for these bytes. \return the number of bits of the coded bytes, without the
    /// description of the code.
    uint64_t make_code(const unsigned char* from, size_t count) {
        // Four tables, because increments of one counter by equal adjacent bytes would wait for each other.
        uint32_t parts[4][256] = {};
        std::array<uint64_t, symbols> counts{};
        uint64_t bits = 0;
        walk(
            from, count,
            [&](const unsigned char* four) {
                for (size_t k = 0; k < 4; ++k)
                    ++parts[k][four[k]];
            },
            [&](unsigned char one) { ++parts[0][one]; },
            [&](size_t length) {
                const Length code(length);
                ++counts[code.symbol];
                bits += code.extra_bits + 1;
            });
        for (size_t v = 0; v < 256; ++v)
            counts[v] = uint64_t{parts[0][v]} + parts[1][v] + parts[2][v] + parts[3][v];
        counts[end] = 1;
        set_lengths(counts);
        for (size_t v = 0; v < symbols; ++v)
            bits += counts[v] * m_lengths[v];
        return bits;
    }

    /// Writes the bytes that were given to the last make_code(), in zlib's format.
    size_t encode(const unsigned char* from, size_t count, unsigned char* to) {
        set_codes();
        m_to = to;
        m_held = 0;
        m_bits = 0;
        *m_to++ = 0x78; // DEFLATE with a window of 32 KB
        *m_to++ = 0x9c;
        put(1, 1); // the last block
        put(2, 2); // the block has a custom code
        put(symbols - 257, 5);
        put(1, 5); // the block declares two distances: 1, and a second one that does not occur
        put(15, 4);
        for (int k = 0; k < 19; ++k) // code lengths have four bits each; runs of code lengths are not used
            put(k < 3 ? 0 : 4, 3);
        for (const uint8_t length : m_lengths)
            put(turned(length, 4), 4);
        put(turned(1, 4), 4);
        put(turned(1, 4), 4);
        // 7 held bits and four of the longest codes (14 bits) have 63 bits, which fit into m_held.
        walk(
            from, count,
            [&](const unsigned char* four) {
                for (size_t k = 0; k < 4; ++k)
                    hold(four[k]);
                flush();
            },
            [&](unsigned char one) {
                hold(one);
                flush();
            },
            [&](size_t length) {
                const Length code(length);
                hold(code.symbol);
                put(code.extra, code.extra_bits + 1); // the last bit is the distance, whose code is 0
            });
        hold(end);
        flush();
        if (m_bits > 0) *m_to++ = static_cast<unsigned char>(m_held);
        const uint32_t sum = libdeflate_adler32(1, from, count);
        for (const int shift : {24, 16, 8, 0})
            *m_to++ = static_cast<unsigned char>(sum >> shift);
        return static_cast<size_t>(m_to - to);
    }

  private:
    static constexpr size_t symbols = 286, end = 256, least_run = 4, most_run = 258;
    static constexpr uint32_t most_bits = 14;

    /// The symbol of a run's length, and its extra bits.
    struct Length {
        explicit Length(size_t length) {
            const auto l = static_cast<uint32_t>(length - 3);
            extra_bits = l < 8 || length == most_run ? 0 : static_cast<uint32_t>(std::bit_width(l)) - 3;
            symbol = length == most_run ? 285 : 257 + 4 * extra_bits + (l >> extra_bits);
            extra = l & ((uint32_t{1} << extra_bits) - 1);
            if (length == most_run) extra = 0;
        }
        uint32_t symbol = 0, extra_bits = 0, extra = 0;
    };

    /// Divides the bytes into groups of four bytes, single bytes and runs of equal bytes, and calls four(),
    /// one() or run() for each of them in order.
    template <class Four, class One, class Run>
    static void walk(const unsigned char* from, size_t count, Four&& four, One&& one, Run&& run) {
        if (count == 0) return;
        one(from[0]);
        for (size_t i = 1; i < count;) {
            // If the last two of the next four bytes differ, no run of least_run bytes begins at one of the
            // four.
            if (i + least_run <= count && from[i + 3] != from[i + 2]) {
                four(from + i);
                i += 4;
                continue;
            }
            size_t length = 0;
            while (length < most_run && i + length < count && from[i + length] == from[i - 1])
                ++length;
            if (length >= least_run) {
                run(length);
                i += length;
            } else {
                one(from[i++]);
            }
        }
    }

    static uint32_t turned(uint32_t code, uint32_t bits) {
        uint32_t out = 0;
        for (uint32_t i = 0; i < bits; ++i)
            out |= (code >> i & 1) << (bits - 1 - i);
        return out;
    }

    /// Makes a Huffman code whose words have at most `most_bits` bits. At least two symbols must occur.
    void set_lengths(const std::array<uint64_t, symbols>& counts) {
        std::array<uint16_t, symbols> order{};
        size_t used = 0;
        for (size_t v = 0; v < symbols; ++v)
            if (counts[v] > 0) order[used++] = static_cast<uint16_t>(v);
        std::stable_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(used),
                         [&](uint16_t a, uint16_t b) { return counts[a] < counts[b]; });
        // The weights: first the leaves in rising order, then the inner nodes in the order of their creation,
        // which is also rising.
        std::array<uint64_t, 2 * symbols> weight{};
        std::array<size_t, 2 * symbols> above{};
        for (size_t i = 0; i < used; ++i)
            weight[i] = counts[order[i]];
        size_t leaf = 0, node = used;
        for (size_t made = used; made < 2 * used - 1; ++made)
            for (int child = 0; child < 2; ++child) {
                const bool is_leaf = leaf < used && (node == made || weight[leaf] <= weight[node]);
                const size_t least = is_leaf ? leaf++ : node++;
                weight[made] += weight[least];
                above[least] = made;
            }
        std::array<uint32_t, 2 * symbols> depth{};
        for (size_t i = 2 * used - 2; i-- > 0;)
            depth[i] = depth[above[i]] + 1;
        m_lengths.fill(0);
        constexpr uint32_t whole = uint32_t{1} << most_bits;
        uint32_t taken = 0; // number of codes with most_bits bits that the words use up
        for (size_t i = 0; i < used; ++i) {
            m_lengths[order[i]] = static_cast<uint8_t>(std::min(depth[i], most_bits));
            taken += whole >> m_lengths[order[i]];
        }
        // Words that were cut to most_bits use up too many codes. Other words therefore become longer, those
        // of rare symbols first. If codes then remain, words of frequent symbols become shorter.
        for (size_t i = 0; taken > whole; i = (i + 1) % used)
            if (uint8_t& length = m_lengths[order[i]]; length < most_bits) taken -= whole >> ++length;
        for (size_t i = used; taken < whole && i-- > 0;)
            while (m_lengths[order[i]] > 1 && taken + (whole >> m_lengths[order[i]]) <= whole)
                taken += whole >> m_lengths[order[i]]--;
    }

    void set_codes() {
        std::array<uint32_t, most_bits + 2> next{}, of_length{};
        for (const uint8_t length : m_lengths)
            ++of_length[length];
        of_length[0] = 0;
        for (uint32_t bits = 1; bits <= most_bits; ++bits)
            next[bits] = (next[bits - 1] + of_length[bits - 1]) << 1;
        for (size_t v = 0; v < symbols; ++v)
            m_codes[v] = static_cast<uint16_t>(m_lengths[v] ? turned(next[m_lengths[v]]++, m_lengths[v]) : 0);
    }

    void hold(size_t symbol) {
        m_held |= uint64_t{m_codes[symbol]} << m_bits;
        m_bits += m_lengths[symbol];
    }
    void flush() {
        for (size_t k = 0; k < 8; ++k) // the compiler turns the loop into one store
            m_to[k] = static_cast<unsigned char>(m_held >> (8 * k));
        m_to += m_bits / 8;
        m_held >>= m_bits / 8 * 8;
        m_bits %= 8;
    }
    void put(uint32_t value, uint32_t bits) {
        m_held |= uint64_t{value} << m_bits;
        m_bits += bits;
        flush();
    }

    std::array<uint8_t, symbols> m_lengths{};
    std::array<uint16_t, symbols> m_codes{};
    uint64_t m_held = 0;
    uint32_t m_bits = 0;
    unsigned char* m_to = nullptr;
};

namespace {

/// Writes the difference of each sample to the sample `step` before. The bits of a sample are treated as an
/// unsigned number.
template <class Bits>
void differences(const char* from, char* to, size_t count, size_t step) {
    const auto* const a = reinterpret_cast<const Bits*>(from);
    auto* const b = reinterpret_cast<Bits*>(to);
    for (size_t i = 0; i < std::min(step, count); ++i)
        b[i] = a[i];
    for (size_t i = step; i < count; ++i)
        b[i] = static_cast<Bits>(a[i] - a[i - step]);
}

template <class Bits>
void turn_bytes(char* samples, size_t count) {
    auto* const a = reinterpret_cast<Bits*>(samples);
    for (size_t i = 0; i < count; ++i) {
        Bits turned = 0;
        for (size_t b = 0; b < sizeof(Bits); ++b)
            turned = static_cast<Bits>(turned | (a[i] >> (8 * b) & 0xff) << (8 * (sizeof(Bits) - 1 - b)));
        a[i] = turned;
    }
}

/// Sorts the bytes of a line's floats by significance: first the highest bytes of all floats, then the next
/// bytes, and so on. Then writes the differences of neighbouring bytes. `planes` has space for all bytes.
template <class Bits>
void byte_differences(const char* from, char* to, size_t count, size_t step, unsigned char* planes) {
    const auto* const a = reinterpret_cast<const Bits*>(from);
    for (size_t b = 0; b < sizeof(Bits); ++b) {
        unsigned char* const plane = planes + b * count;
        const auto shift = static_cast<int>(8 * (sizeof(Bits) - 1 - b));
        for (size_t i = 0; i < count; ++i)
            plane[i] = static_cast<unsigned char>(a[i] >> shift);
    }
    differences<uint8_t>(reinterpret_cast<const char*>(planes), to, count * sizeof(Bits), step);
}

template <class Bits>
void sums(char* samples, size_t count, size_t step) {
    auto* const a = reinterpret_cast<Bits*>(samples);
    if (step == 1) {
        Bits sum = 0;
        for (size_t i = 0; i < count; ++i)
            a[i] = sum = static_cast<Bits>(sum + a[i]);
        return;
    }
    for (size_t i = step; i < count; ++i)
        a[i] = static_cast<Bits>(a[i] + a[i - step]);
}

/// Converts the result of byte_differences() back to floats. `planes` has space for a line.
template <class Bits>
void byte_sums(char* line, size_t count, size_t step, unsigned char* planes) {
    sums<uint8_t>(line, count * sizeof(Bits), step);
    std::memcpy(planes, line, count * sizeof(Bits));
    auto* const a = reinterpret_cast<Bits*>(line);
    for (size_t i = 0; i < count; ++i) {
        Bits value = 0;
        for (size_t b = 0; b < sizeof(Bits); ++b)
            value = static_cast<Bits>(value | static_cast<Bits>(planes[b * count + i])
                                                  << (8 * (sizeof(Bits) - 1 - b)));
        a[i] = value;
    }
}

/// Calls f(Bits{}) for the unsigned type with this number of bytes.
template <class F>
void with_bits(int64_t bytes, const F& f) {
    switch (bytes) {
    case 1:
        return f(uint8_t{});
    case 2:
        return f(uint16_t{});
    case 4:
        return f(uint32_t{});
    default:
        return f(uint64_t{});
    }
}

} // namespace

struct BlockCoder::Impl {
    static constexpr int64_t sample_bytes = 4 << 10;

    Impl(const BlockCoding& how, const BlockForm& what) : coding(how), form(what) {
        if (coding.lerc) {
            lerc.emplace(*coding.lerc, form);
            blob.resize(LercCodec::bound(form));
        }
        const auto bytes = lerc ? blob.size() : static_cast<size_t>(form.bytes());
        size_t bound = 0;
        switch (coding.codec) {
        case BlockCoding::Codec::deflate:
            deflate.reset(libdeflate_alloc_compressor(coding.level));
            if (!deflate) throw Error("not enough memory for compressing");
            bound = libdeflate_zlib_compress_bound(deflate.get(), bytes);
            bound = std::max(bound, Runs::bound(bytes));
            break;
        case BlockCoding::Codec::zstd:
            zstd.reset(ZSTD_createCCtx());
            if (!zstd) throw Error("not enough memory for compressing");
            bound = ZSTD_compressBound(bytes);
            break;
        case BlockCoding::Codec::lzw:
            lzw = std::make_unique<Lzw>();
            bound = Lzw::bound(bytes);
            break;
        case BlockCoding::Codec::none:
            if (!lerc) throw std::logic_error("blocks are not to be packed by no codec");
        }
        samples = HostBuffer<char>(static_cast<size_t>(form.bytes()));
        coded = HostBuffer<char>(bound);
        if (coding.predictor == BlockCoding::Predictor::floats)
            planes.resize(static_cast<size_t>(form.line_samples * form.sample_bytes));
    }

    bool changes() const { return coding.predictor != BlockCoding::Predictor::none || form.swapped; }

    /// Applies the predictor and the byte order, and returns the bytes to compress.
    const char* prepare(const char* from, size_t lines) const {
        if (!changes()) return from;
        const auto count = static_cast<size_t>(form.line_samples), step = static_cast<size_t>(form.step);
        const size_t line_bytes = count * static_cast<size_t>(form.sample_bytes);
        char* const to = samples.data();
        const bool floats = coding.predictor == BlockCoding::Predictor::floats;
        with_bits(form.sample_bytes, [&](auto bits) {
            using Bits = decltype(bits);
            for (size_t line = 0; line < lines; ++line) {
                const char* const a = from + line * line_bytes;
                char* const b = to + line * line_bytes;
                if (floats)
                    byte_differences<Bits>(a, b, count, step, planes.data());
                else if (coding.predictor == BlockCoding::Predictor::differences)
                    differences<Bits>(a, b, count, step);
                else
                    std::memcpy(b, a, line_bytes);
            }
            if (form.swapped && !floats) turn_bytes<Bits>(to, lines * count);
        });
        return to;
    }

    /// Returns true if a part of the block is compressed first to decide how to compress the block. Returns
    /// false for small integers without a predictor, which may repeat at distances that the part does not
    /// show.
    bool samples_first() const {
        return coding.by_default && form.bytes() >= 4 * sample_bytes &&
               (form.sample_bytes >= 4 || coding.predictor != BlockCoding::Predictor::none);
    }

    /// Returns a piece from the middle of a block, large enough to represent the block.
    static std::span<const char> sample_of(const char* from, size_t bytes) {
        const size_t count = std::max(static_cast<size_t>(sample_bytes), bytes / 16);
        return {from + (bytes - count) / 2, count};
    }

    /// Returns true if a full search for repeated strings makes the data less than 2 % smaller than Runs
    /// does.
    bool runs_do(const char* from, size_t bytes) const {
        const auto sample = sample_of(from, bytes);
        const size_t size =
            libdeflate_zlib_compress(deflate.get(), sample.data(), sample.size(), coded.data(), coded.size());
        const uint64_t bits =
            runs.make_code(reinterpret_cast<const unsigned char*>(sample.data()), sample.size());
        return 400 * size >= 49 * bits; // 50 * (8 * size) >= 49 * bits
    }

    size_t pack(const char* from, size_t bytes, int level) const {
        const size_t size = ZSTD_compressCCtx(zstd.get(), coded.data(), coded.size(), from, bytes, level);
        if (ZSTD_isError(size)) throw Error(std::string("ZSTD: ") + ZSTD_getErrorName(size));
        return size;
    }

    size_t compress(const char* from, size_t bytes) const {
        const bool whole = bytes >= static_cast<size_t>(4 * sample_bytes);
        switch (coding.codec) {
        case BlockCoding::Codec::deflate:
            if (samples_first() && whole && runs_do(from, bytes)) {
                const auto* const values = reinterpret_cast<const unsigned char*>(from);
                runs.make_code(values, bytes);
                return runs.encode(values, bytes, reinterpret_cast<unsigned char*>(coded.data()));
            }
            return libdeflate_zlib_compress(deflate.get(), from, bytes, coded.data(), coded.size());
        case BlockCoding::Codec::zstd: {
            int level = coding.level;
            if (samples_first() && whole) {
                const auto sample = sample_of(from, bytes);
                const size_t quickly = pack(sample.data(), sample.size(), 1),
                             well = pack(sample.data(), sample.size(), level);
                if (50 * well >= 49 * quickly) level = 1;
            }
            return pack(from, bytes, level);
        }
        case BlockCoding::Codec::lzw:
        case BlockCoding::Codec::none:
            break;
        }
        return lzw->encode(reinterpret_cast<const unsigned char*>(from), bytes,
                           reinterpret_cast<unsigned char*>(coded.data()));
    }

    struct Free {
        void operator()(libdeflate_compressor* c) const { libdeflate_free_compressor(c); }
        void operator()(ZSTD_CCtx* c) const { ZSTD_freeCCtx(c); }
    };
    const BlockCoding coding;
    const BlockForm form;
    std::unique_ptr<libdeflate_compressor, Free> deflate;
    mutable Runs runs;
    std::unique_ptr<ZSTD_CCtx, Free> zstd;
    std::unique_ptr<Lzw> lzw;
    std::optional<LercCodec> lerc;
    std::vector<char> blob; ///< a block compressed with LERC
    HostBuffer<char> samples, coded;
    mutable std::vector<unsigned char> planes; ///< the bytes of a line's floats, sorted by significance
};

BlockCoder::BlockCoder(const BlockCoding& coding, const BlockForm& form)
    : m(std::make_unique<Impl>(coding, form)) {}
BlockCoder::BlockCoder(BlockCoder&&) noexcept = default;
BlockCoder::~BlockCoder() = default;

char* BlockCoder::room() { return m->changes() ? m->coded.data() : m->samples.data(); }

std::span<const char> BlockCoder::encode(const char* samples, int64_t lines) {
    const CodecClock clock(CodecClock::Kind::encoding);
    auto bytes = static_cast<size_t>(lines * m->form.line_samples * m->form.sample_bytes);
    const char* from = m->prepare(samples, static_cast<size_t>(lines));
    if (m->lerc) {
        bytes = m->lerc->encode(from, lines, m->blob);
        from = m->blob.data();
        if (m->coding.codec == BlockCoding::Codec::none) return {from, bytes};
    }
    const size_t size = m->compress(from, bytes);
    if (size == 0) throw Error("internal: a block does not fit where its compressed bytes go");
    return {m->coded.data(), size};
}

/// Decodes TIFF's LZW: a new code means the piece of output of the previous code, and the byte after that
/// piece.
class BlockDecoder::Lzw {
  public:
    /// \return the number of bytes, at most `room`; 0: invalid codes, or codes for more bytes.
    size_t decode(const unsigned char* from, size_t count, unsigned char* to, size_t room) {
        if (room > UINT32_MAX) return 0;
        const unsigned char* const end = from + count;
        size_t made = 0;
        uint64_t held = 0;
        uint32_t bits = 0, width = 9, next = first;
        Piece last{0, 0};
        for (bool begun = false; made < room;) {
            while (bits <= 56 && from < end) {
                held = held << 8 | *from++;
                bits += 8;
            }
            if (bits < width) return 0;
            bits -= width;
            const auto code = static_cast<uint32_t>(held >> bits) & ((1U << width) - 1);
            if (!begun && code != clear) return 0;
            begun = true;
            if (code == clear) {
                width = 9;
                next = first;
                last.length = 0;
                continue;
            }
            if (code == stop) break;
            // A code that the decoder has not yet stored means the last piece and its first byte again.
            Piece piece{static_cast<uint32_t>(made), 1};
            if (code >= first) {
                if (last.length == 0 || code > next) return 0;
                piece = code < next ? m_pieces[code] : Piece{last.at, last.length + 1};
                if (piece.length > room - made) return 0;
                copy(to + piece.at, to + made, piece.length, room - made);
            } else {
                to[made] = static_cast<unsigned char>(code);
            }
            if (last.length > 0) {
                if (next < m_pieces.size()) m_pieces[next++] = {last.at, last.length + 1};
                if (next == (1U << width) - 1 && width < 12) ++width;
            }
            last = {static_cast<uint32_t>(made), piece.length};
            made += piece.length;
        }
        return made;
    }

  private:
    static constexpr uint32_t clear = 256, stop = 257, first = 258;
    struct Piece {
        uint32_t at, length;
    };

    /// Copies `count` bytes. `from` may be so close before `to` that the copied bytes are copied again. Most
    /// pieces are short, so eight bytes at a time are copied. This writes a few bytes too many, which must
    /// fit into `room`.
    static void copy(const unsigned char* from, unsigned char* to, size_t count, size_t room) {
        constexpr size_t step = 8;
        if (to - from < static_cast<ptrdiff_t>(step) || room < count + step) {
            for (size_t i = 0; i < count; ++i)
                to[i] = from[i];
            return;
        }
        for (size_t i = 0; i < count; i += step)
            std::memcpy(to + i, from + i, step);
    }

    std::array<Piece, 4096> m_pieces{};
};

struct BlockDecoder::Impl {
    Impl(const BlockCoding& how, const BlockForm& what) : coding(how), form(what) {
        if (coding.codec == BlockCoding::Codec::deflate)
            deflate.reset(libdeflate_alloc_decompressor());
        else if (coding.codec == BlockCoding::Codec::zstd)
            zstd.reset(ZSTD_createDCtx());
        else if (coding.codec == BlockCoding::Codec::lzw)
            lzw = std::make_unique<Lzw>();
        if (!deflate && !zstd && !lzw && coding.codec != BlockCoding::Codec::none)
            throw Error("not enough memory for decoding");
        if (coding.predictor == BlockCoding::Predictor::floats)
            planes.resize(static_cast<size_t>(form.line_samples * form.sample_bytes));
        if (coding.lerc) {
            lerc.emplace(*coding.lerc, form);
            if (coding.codec != BlockCoding::Codec::none) blob.resize(LercCodec::bound(form));
        }
    }

    /// Returns the number of bytes; 0: the bytes are invalid for the codec, or decode to too many bytes.
    size_t unpack(std::span<const char> bytes, std::span<char> into) const {
        char* const to = into.data();
        const size_t room = into.size();
        size_t made = 0;
        if (deflate)
            return libdeflate_zlib_decompress(deflate.get(), bytes.data(), bytes.size(), to, room, &made) ==
                           LIBDEFLATE_SUCCESS
                       ? made
                       : 0;
        if (lzw)
            return lzw->decode(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                               reinterpret_cast<unsigned char*>(to), room);
        if (!zstd) {
            if (bytes.size() > room) return 0;
            std::memcpy(to, bytes.data(), bytes.size());
            return bytes.size();
        }
        made = ZSTD_decompressDCtx(zstd.get(), to, room, bytes.data(), bytes.size());
        return ZSTD_isError(made) ? 0 : made;
    }

    void restore(char* samples, size_t lines) {
        const auto count = static_cast<size_t>(form.line_samples), step = static_cast<size_t>(form.step);
        const bool floats = coding.predictor == BlockCoding::Predictor::floats;
        with_bits(form.sample_bytes, [&](auto bits) {
            using Bits = decltype(bits);
            if (form.swapped && !floats) turn_bytes<Bits>(samples, lines * count);
            for (size_t line = 0; line < lines; ++line) {
                char* const row = samples + line * count * sizeof(Bits);
                if (floats)
                    byte_sums<Bits>(row, count, step, planes.data());
                else if (coding.predictor == BlockCoding::Predictor::differences)
                    sums<Bits>(row, count, step);
            }
        });
    }

    struct Free {
        void operator()(libdeflate_decompressor* d) const { libdeflate_free_decompressor(d); }
        void operator()(ZSTD_DCtx* d) const { ZSTD_freeDCtx(d); }
    };
    const BlockCoding coding;
    const BlockForm form;
    std::unique_ptr<libdeflate_decompressor, Free> deflate;
    std::unique_ptr<ZSTD_DCtx, Free> zstd;
    std::unique_ptr<Lzw> lzw;
    std::optional<LercCodec> lerc;
    std::vector<char> blob;            ///< a block compressed with LERC
    std::vector<unsigned char> planes; ///< the bytes of a line's floats, sorted by significance
};

BlockDecoder::BlockDecoder(const BlockCoding& coding, const BlockForm& form)
    : m(std::make_unique<Impl>(coding, form)) {}
BlockDecoder::BlockDecoder(BlockDecoder&&) noexcept = default;
BlockDecoder::~BlockDecoder() = default;

bool BlockDecoder::decode(std::span<const char> bytes, int64_t lines, char* samples) {
    const CodecClock clock(CodecClock::Kind::decoding);
    if (m->lerc) {
        if (m->coding.codec != BlockCoding::Codec::none)
            bytes = std::span(m->blob).first(m->unpack(bytes, m->blob));
        return !bytes.empty() && m->lerc->decode(bytes, lines, samples) > 0;
    }
    const auto line_bytes = static_cast<size_t>(m->form.line_samples * m->form.sample_bytes);
    const size_t made = m->unpack(bytes, {samples, static_cast<size_t>(m->form.bytes())});
    if (made == 0 ||
        (made != static_cast<size_t>(lines) * line_bytes && made != static_cast<size_t>(m->form.bytes())))
        return false;
    m->restore(samples, made / line_bytes);
    return true;
}

} // namespace hsi::raster
