// SPDX-License-Identifier: MIT
// Blocks in LERC, limited error raster compression (Esri; version 2.4 of the codec), as libtiff lays them
// out.
#pragma once

#include "raster/codec/block_codec.h"

#include <gdal.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hsi::raster {

/// How samples of a type are packed, with no error; nothing: the codec does not take them.
std::optional<BlockCoding::Lerc> lerc_of(GDALDataType type);

/// The caller handles the further packing in the tag LercParameters. Use one object per thread.
class LercCodec {
  public:
    LercCodec(const BlockCoding::Lerc& how, const BlockForm& form) : m_how(how), m_form(form) {}

    /// The most bytes of a block in LERC.
    static uint64_t bound(const BlockForm& form);

    /// Encodes the first `lines` lines of a block with separate bands; NaN is a missing value.
    /// \return the bytes of `to` that were filled. \throws Error.
    size_t encode(const char* samples, int64_t lines, std::span<char> to);
    /// Decodes, also blocks with the bands of a pixel together, where each band may have its own NaN.
    /// \return the lines that were made, `lines` or all of the form; 0: these bytes make neither.
    int64_t decode(std::span<const char> bytes, int64_t lines, char* samples);

  private:
    BlockCoding::Lerc m_how;
    BlockForm m_form;
    std::vector<unsigned char> m_valid;
    std::vector<char> m_apart; ///< a block with a mask for each band
};

} // namespace hsi::raster
