// SPDX-License-Identifier: MIT
// The tags and types of a TIFF directory that the writers of blocks need (TIFF revision 6.0, Adobe, 1992,
// section 2 and appendix A; BigTIFF as libtiff documents it).
#pragma once

#include <cstdint>

namespace hsi::raster::tiff {

enum Tag : uint16_t {
    image_width = 256,
    image_length = 257,
    compression = 259,
    strip_offsets = 273,
    strip_byte_counts = 279,
    planar_configuration = 284,
    predictor = 317,
    tile_width = 322,
    tile_length = 323,
    tile_offsets = 324,
    tile_byte_counts = 325
};

enum Type : uint16_t { type_short = 3, type_long = 4, type_long8 = 16 };

} // namespace hsi::raster::tiff
