// SPDX-License-Identifier: MIT
// Encodes and decodes blocks in LERC, limited error raster compression (Esri; version 2.4 of the codec), in
// the layout of libtiff.
#pragma once

#include "raster/codec/block_codec.h"

#include <gdal.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hsi::raster {

/// Returns the parameters for compressing samples of a type without loss; nullopt if the codec does not
/// support the type.
std::optional<BlockCoding::Lerc> lerc_of(GDALDataType type);

/// Encodes and decodes LERC. The caller handles the second compression that the tag LercParameters may
/// specify. Use one object per thread.
class LercCodec {
  public:
    LercCodec(const BlockCoding::Lerc& how, const BlockForm& form) : m_how(how), m_form(form) {}

    /// Returns the maximum size of a block compressed with LERC, in bytes.
    static uint64_t bound(const BlockForm& form);

    /// Encodes the first `lines` lines of a block with separate bands; NaN means a missing value. \return the
    /// number of bytes written to `to`. \throws Error.
    size_t encode(const char* samples, int64_t lines, std::span<char> to);
    /// Decodes a block. The bands may be interleaved, and the bands may have NaN in different pixels. \return
    /// the number of decoded lines, which is `lines` or all lines of the form; 0 if the bytes are invalid.
    int64_t decode(std::span<const char> bytes, int64_t lines, char* samples);

  private:
    BlockCoding::Lerc m_how;
    BlockForm m_form;
    std::vector<unsigned char> m_valid;
    std::vector<char> m_apart; ///< decoded block with separate bands
};

} // namespace hsi::raster
