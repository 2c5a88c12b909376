// SPDX-License-Identifier: MIT
// Blocks in LERC, limited error raster compression (Esri; version 2.4 of the codec), in the layout of
// libtiff.
#pragma once

#include "raster/codec/block_codec.h"

#include <gdal.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hsi::raster {

/// Returns how samples of a type are packed without error; nullopt if the codec does not support the type.
std::optional<BlockCoding::Lerc> lerc_of(GDALDataType type);

/// Encodes and decodes LERC. The caller handles the further compression in the tag LercParameters. Use one
/// object per thread.
class LercCodec {
  public:
    LercCodec(const BlockCoding::Lerc& how, const BlockForm& form) : m_how(how), m_form(form) {}

    /// Returns the maximum bytes of a block in LERC.
    static uint64_t bound(const BlockForm& form);

    /// Encodes the first `lines` lines of a block with separate bands; NaN is a missing value.
    /// \return the number of bytes written to `to`. \throws Error.
    size_t encode(const char* samples, int64_t lines, std::span<char> to);
    /// Decodes blocks, also blocks with interleaved bands in which each band has its own NaN.
    /// \return the number of decoded lines, `lines` or all of the form; 0 if the bytes give neither.
    int64_t decode(std::span<const char> bytes, int64_t lines, char* samples);

  private:
    BlockCoding::Lerc m_how;
    BlockForm m_form;
    std::vector<unsigned char> m_valid;
    std::vector<char> m_apart; ///< a block with one mask per band
};

} // namespace hsi::raster
