// SPDX-License-Identifier: MIT
// The places and the coding of the chunks of an HDF5 array, read from the file's bytes as in hdf5_walk.h: the
// HDF5 library decodes on one thread at a time for all callers, and finds places slowly.
#pragma once

#include "raster/codec/chunk_codec.h"
#include "raster/codec/nodata_value.h"

#include <gdal_priv.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

struct ChunkPlace {
    static constexpr uint64_t nowhere = UINT64_MAX;
    uint64_t offset = nowhere; ///< in the file; nowhere: the chunk was never written
    uint32_t bytes = 0;        ///< as stored
    uint32_t left_out = 0;     ///< bit k: filter k was not applied to it
    bool written() const { return offset != nowhere; }
};

/// An array with three axes that is stored in chunks.
struct Hdf5Chunks {
    std::array<int64_t, 3> size{}, chunk{}; ///< along its axes; chunks at the end are as large as the others
    GDALDataType type = GDT_Unknown;        ///< that holds the samples
    int64_t sample_bytes = 0; ///< as stored: less than the type's of integers of 8 bits, which are Int16
                              ///< here, and of floats of 16, Float32 here (widen())
    bool swapped = false;     ///< they are not in this machine's byte order
    ChunkCoding coding;
    std::vector<char> fill;         ///< a stored sample of chunks that were never written
    std::vector<ChunkPlace> places; ///< row-major

    int64_t count(size_t axis) const { return (size[axis] + chunk[axis] - 1) / chunk[axis]; }
    uint64_t chunk_bytes() const {
        return static_cast<uint64_t>(chunk[0] * chunk[1] * chunk[2] * sample_bytes);
    }
    /// Samples are stored in fewer bytes than their type has.
    bool narrow() const { return sample_bytes < GDALGetDataTypeSizeBytes(type); }
    /// Samples as stored, `stride` bytes apart, become `count` ones of the type.
    void widen(const char* from, ptrdiff_t stride, char* to, size_t count) const;
    size_t number(int64_t a, int64_t b, int64_t c) const {
        return static_cast<size_t>((a * count(1) + b) * count(2) + c);
    }
};

/// The storage of an array's samples, for any axes.
struct Hdf5Storage {
    bool known = false;
    int64_t sample_bytes = 0;
    std::optional<NodataValue> fill; ///< the fill value, if it was set explicitly
};
/// Finds it by the full name of an array. Unknown if several objects share a part of its description, or if
/// its type is unusual. Never throws for the content of a file.
Hdf5Storage find_hdf5_storage(const std::string& path, const std::string& array);

/// Finds the chunks of arrays by their full names, one result for each. Empty if one of them must be read by
/// the library: types other than integers of 8 to 64 bits and IEEE floats of 16 to 64, unknown filters,
/// values in other files, shared parts of its description, and indexes that are damaged or have millions of
/// chunks. The reader checks whether a chunk is inside of the file. Never throws for the content of a file.
std::vector<Hdf5Chunks> find_hdf5_chunks(const std::string& path, const std::vector<std::string>& arrays);

} // namespace hsi::raster
