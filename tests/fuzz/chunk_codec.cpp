// SPDX-License-Identifier: MIT
// Chunks of HDF5 arrays: the decoder rejects invalid bytes for any declared filters, and restores any samples
// that a filter has processed.
#include "raster/codec/chunk_codec.h"
#include "fuzz/fuzz.h"

#include <libdeflate.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace {

using Filter = hsi::raster::ChunkCoding::Filter;

/// Applies a filter in the forward direction. The code is simple and slow.
std::string apply(Filter filter, const std::string& from, size_t width) {
    std::string to;
    if (filter == Filter::shuffle) {
        const size_t count = from.size() / width;
        for (size_t k = 0; k < width; ++k)
            for (size_t i = 0; i < count; ++i)
                to += from[i * width + k];
        return to + from.substr(count * width);
    }
    if (filter == Filter::deflate) {
        const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> packer(
            libdeflate_alloc_compressor(1), libdeflate_free_compressor);
        to.resize(libdeflate_zlib_compress_bound(packer.get(), from.size()));
        to.resize(libdeflate_zlib_compress(packer.get(), from.data(), from.size(), to.data(), to.size()));
        return to;
    }
    // The compressed data consist only of literals.
    for (size_t i = 0; i < from.size(); i += 32)
        to += static_cast<char>(std::min<size_t>(32, from.size() - i) - 1) + from.substr(i, 32);
    return to;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    fuzz::Bytes bytes(data, size);
    raster::ChunkCoding coding;
    const int64_t filters = bytes.take(0, 4);
    for (int64_t k = 0; k < filters; ++k)
        coding.filters.push_back(static_cast<Filter>(bytes.take(0, 4)));
    coding.shuffled_bytes = bytes.take(0, 17);
    const auto room = static_cast<size_t>(bytes.take(1, 3000));
    const auto left_out = bytes.take<uint32_t>();
    const std::string rest = bytes.rest();
    if (coding.known()) {
        raster::ChunkDecoder decoder(coding, room);
        std::vector<char> samples(room);
        const auto wrong = decoder.decode({rest.data(), rest.size()}, left_out, samples.data());
        fuzz::expect(!wrong || !wrong->empty(), "what is wrong has a name");
        const bool nothing = (~left_out & ((uint32_t{1} << filters) - 1)) == 0;
        if (nothing)
            fuzz::expect(!wrong == (rest.size() == room), "bytes that no filter touched are the samples");
    }
    if (rest.empty()) return 0;
    for (const auto& order : {std::vector{Filter::shuffle},
                              {Filter::deflate},
                              {Filter::lzf},
                              {Filter::shuffle, Filter::deflate},
                              {Filter::shuffle, Filter::lzf}}) {
        raster::ChunkCoding known{order, std::max<int64_t>(1, coding.shuffled_bytes)};
        std::string stored = rest;
        for (const Filter filter : order)
            stored = apply(filter, stored, static_cast<size_t>(known.shuffled_bytes));
        raster::ChunkDecoder decoder(known, rest.size());
        std::string back(rest.size(), '\0');
        fuzz::expect(!decoder.decode({stored.data(), stored.size()}, 0, back.data()),
                     "what a filter made is a chunk");
        fuzz::expect(back == rest, "and becomes what it was");
        raster::ChunkDecoder longer(known, rest.size() + 1);
        back.resize(rest.size() + 1);
        fuzz::expect(longer.decode({stored.data(), stored.size()}, 0, back.data()).has_value(),
                     "but no longer one");
    }
    return 0;
}
