// SPDX-License-Identifier: MIT
// Codes the blocks of a compressed TIFF one by one, as the tags Compression and Predictor describe them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace hsi::raster {

/// How the blocks of a file are compressed.
struct BlockCoding {
    enum class Codec : uint8_t { deflate, zstd, lzw, none }; ///< none: for a decoder, or after LERC
    /// The tag Predictor: samples as they are; each less the one before, of the same band; or, for floats,
    /// their bytes sorted by weight and each less the one before (Adobe Photoshop TIFF Technical Note 3,
    /// 2005).
    enum class Predictor : uint8_t { none = 1, differences = 2, floats = 3 };
    Codec codec = Codec::deflate;
    int level = 6; ///< of the codec's library; LZW has none
    /// The level is the default: blocks for which a sample shows next to no gain, as most floats with noise,
    /// may take less time.
    bool by_default = true;
    Predictor predictor = Predictor::none;
    enum class Values : uint8_t { with_sign, without_sign, floats };
    /// The samples are in LERC before the codec gets them (tag LercParameters of libtiff's): bands apart for
    /// a coder, this machine's byte order and no predictor.
    struct Lerc {
        Values values = Values::floats;
        double max_error = 0; ///< of a sample
    };
    std::optional<Lerc> lerc;
};

/// The samples of a block.
struct BlockForm {
    int64_t line_samples = 0; ///< those of all bands where a pixel's stand together
    int64_t lines = 0;
    int64_t step = 1;         ///< samples to the next of the same band
    int64_t sample_bytes = 4; ///< 1, 2, 4 or 8
    bool swapped = false;     ///< the file has the other order of bytes

    int64_t bytes() const { return line_samples * lines * sample_bytes; }
};

/// Compresses one block at a time, into the same bytes for the same samples. One for each thread.
class BlockCoder {
  public:
    /// \throws Error when memory is short.
    BlockCoder(const BlockCoding& coding, const BlockForm& form);
    BlockCoder(BlockCoder&&) noexcept;
    ~BlockCoder();

    /// Bytes of its buffers.
    static uint64_t held_bytes(const BlockCoding& coding, const BlockForm& form) {
        return (coding.lerc ? 4 : 2) * static_cast<uint64_t>(form.bytes());
    }
    /// form.bytes() for a caller without room for the samples of the next encode().
    char* room();
    /// Encodes the first `lines` lines of the block with its samples at `samples`, line after line, in this
    /// machine's byte order. \return the bytes for the file; they stay until the next call. \throws Error.
    std::span<const char> encode(const char* samples, int64_t lines);

  private:
    class Lzw;
    class Runs;
    struct Impl;
    std::unique_ptr<Impl> m;
};

/// Decodes what BlockCoder encodes. Use one object per thread. LZW with the bit order of the oldest files is
/// not supported.
class BlockDecoder {
  public:
    /// \throws Error when memory is short.
    BlockDecoder(const BlockCoding& coding, const BlockForm& form);
    BlockDecoder(BlockDecoder&&) noexcept;
    ~BlockDecoder();

    /// Decodes these bytes of a block into its lines: `lines` or all of the form, to `samples`, which has
    /// room for all, in this machine's byte order. \return false if the bytes make neither.
    bool decode(std::span<const char> bytes, int64_t lines, char* samples);

  private:
    class Lzw;
    struct Impl;
    std::unique_ptr<Impl> m;
};

} // namespace hsi::raster
