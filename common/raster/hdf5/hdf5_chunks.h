// SPDX-License-Identifier: MIT
// The positions and the coding of the chunks of an HDF5 array, read from the file's bytes as in hdf5_walk.h.
// With them, several threads can decode chunks without the HDF5 library, which decodes on only one thread at
// a time and finds positions slowly.
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
    uint64_t offset = nowhere; ///< position in the file; nowhere: the chunk was never written
    uint32_t bytes = 0;        ///< bytes of the stored chunk
    uint32_t left_out = 0;     ///< bit k: filter k was not applied to the chunk
    bool written() const { return offset != nowhere; }
};

/// An array with three axes that is stored in chunks.
struct Hdf5Chunks {
    /// Size of the array and of a chunk along the axes; chunks at the end have full size.
    std::array<int64_t, 3> size{}, chunk{};
    GDALDataType type = GDT_Unknown; ///< type of the samples in memory
    /// Bytes of a stored sample. Signed integers of 8 bits and floats of 16 bits are stored in fewer bytes
    /// than `type` has; widen() converts them to Int16 and Float32.
    int64_t sample_bytes = 0;
    bool swapped = false; ///< stored samples are not in the CPU's byte order
    ChunkCoding coding;
    std::vector<char> fill;         ///< fill value of chunks that were never written, as a stored sample
    std::vector<ChunkPlace> places; ///< one per chunk, row-major

    int64_t count(size_t axis) const { return (size[axis] + chunk[axis] - 1) / chunk[axis]; }
    uint64_t chunk_bytes() const {
        return static_cast<uint64_t>(chunk[0] * chunk[1] * chunk[2] * sample_bytes);
    }
    /// Returns true if samples are stored in fewer bytes than `type` has.
    bool narrow() const { return sample_bytes < GDALGetDataTypeSizeBytes(type); }
    /// Converts `count` stored samples, `stride` bytes apart, to `type`.
    void widen(const char* from, ptrdiff_t stride, char* to, size_t count) const;
    size_t number(int64_t a, int64_t b, int64_t c) const {
        return static_cast<size_t>((a * count(1) + b) * count(2) + c);
    }
};

/// The storage of an array's samples, for any number of axes.
struct Hdf5Storage {
    bool known = false;
    int64_t sample_bytes = 0;
    std::optional<NodataValue> fill; ///< the fill value, if it was set explicitly
};
/// Finds the storage of the array with this full name. Hdf5Storage::known is false if several objects share a
/// part of the array's description, or if the type is unusual. Never throws because of the content of a file.
Hdf5Storage find_hdf5_storage(const std::string& path, const std::string& array);

/// Finds the chunks of arrays, which are given by their full names. Returns one entry per array. Returns an
/// empty list if the HDF5 library must read one of the arrays, for one of these reasons: its type is neither
/// an integer of 8 to 64 bits nor an IEEE float of 16 to 64 bits; a filter is unknown; values are in other
/// files; objects share a part of the array's description; its index is damaged or has more than a million
/// chunks. The positions are not compared with the file size; the reader does this. Never throws because of
/// the content of a file.
std::vector<Hdf5Chunks> find_hdf5_chunks(const std::string& path, const std::vector<std::string>& arrays);

} // namespace hsi::raster
