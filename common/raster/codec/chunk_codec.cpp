// SPDX-License-Identifier: MIT
#include "raster/codec/chunk_codec.h"

#include "core/codec_time.h"
#include "core/error.h"
#include "core/host_memory.h"

#include <libdeflate.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace hsi::raster {
namespace {

using Filter = ChunkCoding::Filter;

bool compresses(Filter filter) {
    return filter == Filter::deflate || filter == Filter::lzf || filter == Filter::zstd;
}

constexpr size_t checksum_bytes = 4;

/// Fletcher's checksum of words of 16 bits, the high byte first (J. G. Fletcher, IEEE Transactions on
/// Communications 30, 1982). Sums are folded as in the HDF5 library: a sum of 65535 is not replaced by 0.
uint32_t fletcher32(const unsigned char* bytes, size_t count) {
    uint64_t first = 0, second = 0;
    const auto fold = [](uint64_t sum) {
        while (sum >> 16 != 0)
            sum = (sum & 0xffff) + (sum >> 16);
        return sum;
    };
    for (size_t words = count / 2; words > 0;) {
        const size_t some = std::min<size_t>(words, 65536); // the second sum stays below 2^49
        for (size_t i = 0; i < some; ++i, bytes += 2) {
            first += static_cast<uint64_t>(bytes[0]) << 8 | bytes[1];
            second += first;
        }
        first = fold(first);
        second = fold(second);
        words -= some;
    }
    if (count % 2 != 0) {
        first += uint64_t{bytes[0]} << 8;
        second += first;
    }
    return static_cast<uint32_t>(fold(second) << 16 | fold(first));
}

/// Decodes LibLZF's format (Marc Lehmann). A byte n below 32 begins n + 1 literals. Any other byte begins a
/// copy of earlier output. Three bits of that byte are the length; if all three are set, another byte is
/// added to the length. 13 bits are the distance. \return the number of decoded bytes; 0 if the data are
/// invalid or decode to more than `room` bytes.
size_t unpack_lzf(const unsigned char* from, size_t count, unsigned char* to, size_t room) {
    const unsigned char* const end = from + count;
    size_t made = 0;
    while (from < end) {
        const size_t control = *from++;
        if (control < 32) {
            const size_t run = control + 1;
            if (run > static_cast<size_t>(end - from) || run > room - made) return 0;
            std::memcpy(to + made, from, run);
            from += run;
            made += run;
            continue;
        }
        size_t run = control >> 5;
        if (run == 7) {
            if (from == end) return 0;
            run += *from++;
        }
        run += 2;
        if (from == end) return 0;
        const size_t distance = ((control & 31) << 8 | *from++) + 1;
        if (distance > made || run > room - made) return 0;
        if (distance >= run) {
            std::memcpy(to + made, to + made - distance, run);
            made += run;
        } else { // the copy reads bytes that it writes
            for (; run > 0; --run, ++made)
                to[made] = to[made - distance];
        }
    }
    return made;
}

typedef unsigned char Lane __attribute__((vector_size(16)));

Lane load_lane(const unsigned char* from) {
    Lane lane;
    std::memcpy(&lane, from, sizeof lane);
    return lane;
}

/// Interleaves two vectors: a0 b0 a1 b1 ...
void interleave(Lane a, Lane b, Lane& low, Lane& high) {
    low = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    high = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

/// Undoes the shuffle filter for sixteen samples of Width bytes at a time. Byte k of sample i is at from[k *
/// count + i]. \return the number of converted samples.
template <size_t Width>
size_t unshuffle_lanes(const unsigned char* from, unsigned char* to, size_t count) {
    size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        Lane a[Width], b[Width];
        for (size_t k = 0; k < Width; ++k)
            a[k] = load_lane(from + k * count + i);
        // Bytes k and k + half become neighbours, until the bytes of each sample are together in order.
        for (size_t step = 1; step < Width; step *= 2) {
            for (size_t k = 0; k < Width / 2; ++k)
                interleave(a[k], a[k + Width / 2], b[2 * k], b[2 * k + 1]);
            std::copy(b, b + Width, a);
        }
        for (size_t k = 0; k < Width; ++k)
            std::memcpy(to + i * Width + k * sizeof(Lane), &a[k], sizeof(Lane));
    }
    return i;
}

void unshuffle(const char* stored, size_t bytes, size_t width, char* samples) {
    const auto* const from = reinterpret_cast<const unsigned char*>(stored);
    auto* const to = reinterpret_cast<unsigned char*>(samples);
    const size_t count = bytes / width;
    const size_t done = width == 2   ? unshuffle_lanes<2>(from, to, count)
                        : width == 4 ? unshuffle_lanes<4>(from, to, count)
                        : width == 8 ? unshuffle_lanes<8>(from, to, count)
                                     : 0;
    for (size_t i = done; i < count; ++i)
        for (size_t k = 0; k < width; ++k)
            to[i * width + k] = from[k * count + i];
    std::copy(from + count * width, from + bytes, to + count * width); // bytes after the last whole sample
}

} // namespace

bool ChunkCoding::known() const {
    const auto is_compressing = [](Filter f) { return compresses(f); };
    const auto packed = std::find_if(filters.begin(), filters.end(), is_compressing);
    const auto times = [&](Filter f) { return std::count(filters.begin(), filters.end(), f); };
    return std::count_if(filters.begin(), filters.end(), is_compressing) <= 1 &&
           times(Filter::shuffle) <= 1 && times(Filter::checksum) <= 1 &&
           std::find(packed, filters.end(), Filter::shuffle) == filters.end() && filters.size() <= 32 &&
           shuffled_bytes > 0;
}

struct ChunkDecoder::Impl {
    Impl(const ChunkCoding& how, size_t size) : coding(how), bytes(size) {
        if (!coding.known()) throw Error("internal: a pipeline of filters that is not known");
        for (const Filter filter : coding.filters) {
            if (filter == Filter::deflate) deflate.reset(libdeflate_alloc_decompressor());
            if (filter == Filter::zstd) zstd.reset(ZSTD_createDCtx());
            if ((filter == Filter::deflate && !deflate) || (filter == Filter::zstd && !zstd))
                throw Error("not enough memory for decoding");
        }
    }

    /// Returns `buffer`, resized to hold at least `size` bytes of an intermediate result.
    char* room(HostBuffer<char>& buffer, size_t size) const {
        if (buffer.size() < size) buffer = HostBuffer<char>(size);
        return buffer.data();
    }

    size_t unpack(Filter filter, std::span<const char> from, char* to, size_t size) const {
        size_t made = 0;
        if (filter == Filter::deflate)
            return libdeflate_zlib_decompress(deflate.get(), from.data(), from.size(), to, size, &made) ==
                           LIBDEFLATE_SUCCESS
                       ? made
                       : 0;
        if (filter == Filter::lzf)
            return unpack_lzf(reinterpret_cast<const unsigned char*>(from.data()), from.size(),
                              reinterpret_cast<unsigned char*>(to), size);
        made = ZSTD_decompressDCtx(zstd.get(), to, size, from.data(), from.size());
        return ZSTD_isError(made) ? 0 : made;
    }

    struct Free {
        void operator()(libdeflate_decompressor* d) const { libdeflate_free_decompressor(d); }
        void operator()(ZSTD_DCtx* d) const { ZSTD_freeDCtx(d); }
    };
    const ChunkCoding coding;
    const size_t bytes;
    std::unique_ptr<libdeflate_decompressor, Free> deflate;
    std::unique_ptr<ZSTD_DCtx, Free> zstd;
    HostBuffer<char> unpacked, sorted;
};

ChunkDecoder::ChunkDecoder(const ChunkCoding& coding, size_t bytes)
    : m(std::make_unique<Impl>(coding, bytes)) {}
ChunkDecoder::ChunkDecoder(ChunkDecoder&&) noexcept = default;
ChunkDecoder::~ChunkDecoder() = default;

uint64_t ChunkDecoder::held_bytes(const ChunkCoding& coding, uint64_t chunk_bytes) {
    const auto& filters = coding.filters;
    const auto at = [&](Filter filter) { return std::find(filters.begin(), filters.end(), filter); };
    const bool packed = std::any_of(filters.begin(), filters.end(), compresses),
               shuffled = at(Filter::shuffle) != filters.end(),
               checked_first =
                   at(Filter::checksum) < std::find_if(filters.begin(), filters.end(), compresses);
    constexpr uint64_t decoder = 32 << 10;
    uint64_t bytes = decoder;
    if (packed && (shuffled || checked_first)) bytes += chunk_bytes + checksum_bytes;
    if (shuffled && at(Filter::checksum) < at(Filter::shuffle)) bytes += chunk_bytes + checksum_bytes;
    return bytes;
}

std::optional<std::string> ChunkDecoder::decode(std::span<const char> stored, uint32_t left_out,
                                                char* samples) {
    const CodecClock clock(CodecClock::Kind::decoding);
    std::span<const char> at = stored;
    const auto& filters = m->coding.filters;
    const auto applied = [&](size_t k) { return (left_out >> k & 1) == 0; };
    for (size_t k = filters.size(); k-- > 0;) {
        if (!applied(k)) continue;
        size_t expected = m->bytes; // bytes after this filter is undone
        bool moves = false;         // the shuffle filter must still be undone
        for (size_t i = 0; i < k; ++i) {
            if (!applied(i)) continue;
            if (filters[i] == Filter::checksum) expected += checksum_bytes;
            moves |= filters[i] == Filter::shuffle;
        }
        if (filters[k] == Filter::checksum) {
            if (at.size() < checksum_bytes) return "is too short for its checksum";
            at = at.first(at.size() - checksum_bytes);
            uint32_t told = 0;
            std::memcpy(&told, at.data() + at.size(), sizeof told);
            const uint32_t sum = fletcher32(reinterpret_cast<const unsigned char*>(at.data()), at.size());
            // HDF5 before 1.6.3 wrote the two bytes of each half in reverse order.
            const uint32_t turned = (sum & 0xff00ff) << 8 | (sum >> 8 & 0xff00ff);
            if (told != sum && told != turned) return "fails its checksum";
        } else if (filters[k] == Filter::shuffle) {
            char* const to = at.size() == m->bytes ? samples : m->room(m->sorted, at.size());
            unshuffle(at.data(), at.size(), static_cast<size_t>(m->coding.shuffled_bytes), to);
            at = {to, at.size()};
        } else {
            char* const to = moves || expected != m->bytes ? m->room(m->unpacked, expected) : samples;
            const size_t made = m->unpack(filters[k], at, to, expected);
            if (made != expected) return "does not decode to its " + std::to_string(m->bytes) + " bytes";
            at = {to, made};
        }
    }
    if (at.size() != m->bytes)
        return "has " + std::to_string(at.size()) + " bytes instead of " + std::to_string(m->bytes);
    if (at.data() != samples) std::memcpy(samples, at.data(), m->bytes);
    return std::nullopt;
}

} // namespace hsi::raster
