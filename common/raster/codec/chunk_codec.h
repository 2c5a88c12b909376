// SPDX-License-Identifier: MIT
// Decodes the chunks of an HDF5 array one by one: undoes the filters that the HDF5 library applied when it
// wrote them.
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
        shuffle,  ///< stores the first bytes of all samples, then their second bytes, and so on
        checksum, ///< Fletcher's checksum (32 bits), stored after the chunk's data
        lzf,      ///< LibLZF 3.6, as h5py writes it
        zstd
    };
    std::vector<Filter> filters;
    int64_t shuffled_bytes = 1; ///< bytes of a sample for the shuffle filter

    /// Returns true if ChunkDecoder supports these filters: each filter occurs at most once, there is at most
    /// one compression, and shuffle comes before the compression.
    bool known() const;
};

/// Undoes the filters of one chunk at a time. Use one object per thread.
class ChunkDecoder {
  public:
    /// Decodes chunks of `bytes` bytes. \throws Error if memory is short.
    ChunkDecoder(const ChunkCoding& coding, size_t bytes);
    ChunkDecoder(ChunkDecoder&&) noexcept;
    ~ChunkDecoder();

    /// Returns the bytes of a decoder's buffers.
    static uint64_t held_bytes(const ChunkCoding& coding, uint64_t chunk_bytes);

    /// Decodes the bytes of a chunk in the file to samples of the stored type. `left_out`: bit k is set if
    /// filter k was not applied to this chunk. \return the fault ("fails its checksum"); nullopt if the chunk
    /// is decoded.
    std::optional<std::string> decode(std::span<const char> stored, uint32_t left_out, char* samples);

  private:
    struct Impl;
    std::unique_ptr<Impl> m;
};

} // namespace hsi::raster
