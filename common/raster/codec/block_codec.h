// SPDX-License-Identifier: MIT
// Encodes and decodes the blocks of a compressed TIFF one by one, as the tags Compression and Predictor
// specify.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace hsi::raster {

/// The compression of the blocks of a file.
struct BlockCoding {
    /// The codecs. An encoder supports `none` only with LERC, whose output is then stored as it is.
    enum class Codec : uint8_t { deflate, zstd, lzw, none };
    /// The tag Predictor: unchanged samples; differences to the previous sample of the same band; or, for
    /// floats, bytes sorted by significance and differences to the previous byte (Adobe Photoshop TIFF
    /// Technical Note 3, 2005).
    enum class Predictor : uint8_t { none = 1, differences = 2, floats = 3 };
    Codec codec = Codec::deflate;
    int level = 6; ///< compression level of the codec's library; LZW ignores it
    /// True: the user did not choose the level. A block may then be compressed with less effort if a test
    /// with a part of the block shows that the level gains almost nothing, as with most noisy floats.
    bool by_default = true;
    Predictor predictor = Predictor::none;
    enum class Values : uint8_t { with_sign, without_sign, floats };
    /// The samples are compressed with LERC first, then with the codec (libtiff's tag LercParameters). LERC
    /// requires the CPU's byte order and no predictor. The encoder also requires separate bands.
    struct Lerc {
        Values values = Values::floats;
        double max_error = 0; ///< maximum error of a sample
    };
    std::optional<Lerc> lerc;
};

/// The samples of a block.
struct BlockForm {
    int64_t line_samples = 0; ///< samples of all bands, if the bands of a pixel are interleaved
    int64_t lines = 0;
    int64_t step = 1;         ///< distance between neighbouring samples of a band, in samples
    int64_t sample_bytes = 4; ///< 1, 2, 4 or 8
    bool swapped = false;     ///< the file's byte order is not the CPU's

    int64_t bytes() const { return line_samples * lines * sample_bytes; }
};

/// Compresses one block at a time. The same samples always give the same bytes. Use one object per thread.
class BlockCoder {
  public:
    /// \throws Error if memory is short.
    BlockCoder(const BlockCoding& coding, const BlockForm& form);
    BlockCoder(BlockCoder&&) noexcept;
    ~BlockCoder();

    /// Returns the bytes of a coder's buffers.
    static uint64_t held_bytes(const BlockCoding& coding, const BlockForm& form) {
        return (coding.lerc ? 4 : 2) * static_cast<uint64_t>(form.bytes());
    }
    /// Returns a buffer of form.bytes() bytes, which the caller may use for the samples of the next encode().
    char* room();
    /// Encodes the first `lines` lines of the block, whose samples are at `samples` line by line in the CPU's
    /// byte order. \return the bytes for the file, valid until the next call. \throws Error.
    std::span<const char> encode(const char* samples, int64_t lines);

  private:
    class Lzw;
    class Runs;
    struct Impl;
    std::unique_ptr<Impl> m;
};

/// Decodes the output of BlockCoder. Use one object per thread. LZW with the bit order of the oldest files is
/// not supported.
class BlockDecoder {
  public:
    /// \throws Error if memory is short.
    BlockDecoder(const BlockCoding& coding, const BlockForm& form);
    BlockDecoder(BlockDecoder&&) noexcept;
    ~BlockDecoder();

    /// Decodes the bytes of a block to samples in the CPU's byte order. A block at the border may contain
    /// `lines` lines, or all lines of the form; `samples` must have space for all lines. \return false if the
    /// bytes are invalid, or if the block contains another number of lines.
    bool decode(std::span<const char> bytes, int64_t lines, char* samples);

  private:
    class Lzw;
    struct Impl;
    std::unique_ptr<Impl> m;
};

} // namespace hsi::raster
