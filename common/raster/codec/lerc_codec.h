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

/// What the tag LercParameters says is packed once more stays with the caller. One for each thread.
class LercCodec {
  public:
    LercCodec(const BlockCoding::Lerc& how, const BlockForm& form) : m_how(how), m_form(form) {}

    /// Of a block's bytes in LERC.
    static uint64_t bound(const BlockForm& form);

    /// The first `lines` lines of a block, of bands that stand apart; NaN is no value.
    /// \return the bytes of `to` that were filled. \throws Error.
    size_t encode(const char* samples, int64_t lines, std::span<char> to);
    /// The other way, for the bands of a pixel together as well, where each may have its own NaN.
    /// \return the lines that were made, `lines` or all of the form; 0: these bytes make neither.
    int64_t decode(std::span<const char> bytes, int64_t lines, char* samples);

  private:
    BlockCoding::Lerc m_how;
    BlockForm m_form;
    std::vector<unsigned char> m_valid;
    std::vector<char> m_apart; ///< a block whose bands have a mask each
};

} // namespace hsi::raster
