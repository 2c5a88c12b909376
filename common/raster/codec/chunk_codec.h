// SPDX-License-Identifier: MIT
// Decodes the chunks of an HDF5 array one by one, by its library's pipeline of filters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hsi::raster {

/// The filters of an array, in the order in which they were applied.
struct ChunkCoding {
    enum class Filter : uint8_t {
        deflate,  ///< zlib's format
        shuffle,  ///< the first bytes of all samples, then the second ones ...
        checksum, ///< Fletcher's, of 32 bits, after the chunk
        lzf,      ///< LibLZF 3.6, as h5py writes it
        zstd
    };
    std::vector<Filter> filters;
    int64_t shuffled_bytes = 1; ///< of a sample for the shuffle filter

    /// True for pipelines that ChunkDecoder undoes: each filter once at most, one that compresses at most,
    /// and shuffle before it.
    bool known() const;
};

/// Undoes them, of a chunk at a time. One for each thread.
class ChunkDecoder {
  public:
    /// For chunks of so many bytes. \throws Error when memory is short.
    ChunkDecoder(const ChunkCoding& coding, size_t bytes);
    ChunkDecoder(ChunkDecoder&&) noexcept;
    ~ChunkDecoder();

    /// Bytes of its buffers.
    static uint64_t held_bytes(const ChunkCoding& coding, uint64_t chunk_bytes);

    /// The bytes of a chunk in the file become its samples, as they are stored. `left_out`: bit k for a
    /// filter k that was not applied to this one. \return the fault ("fails its checksum"); nullopt if there
    /// is none.
    std::optional<std::string> decode(std::span<const char> stored, uint32_t left_out, char* samples);

  private:
    struct Impl;
    std::unique_ptr<Impl> m;
};

} // namespace hsi::raster
