// SPDX-License-Identifier: MIT
// Finds the positions of the chunks of an HDF5 file's arrays.
#include "raster/hdf5/hdf5_chunks.h"
#include "fuzz/fuzz.h"
#include "raster/hdf5/hdf5_walk.h"

#include <algorithm>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    fuzz::quiet_gdal();
    const fuzz::MemoryFile file("/vsimem/file.h5", std::string(reinterpret_cast<const char*>(data), size));
    auto names = raster::walk_hdf5(file.path()).objects;
    names.resize(std::min<size_t>(names.size(), 20));
    for (const std::string& name : names)
        for (const raster::Hdf5Chunks& array : raster::find_hdf5_chunks(file.path(), {name})) {
            fuzz::expect(array.coding.known(), "filters are known ones");
            fuzz::expect(array.fill.size() == static_cast<size_t>(array.sample_bytes),
                         "a fill value is a sample");
            fuzz::expect(array.chunk_bytes() > 0 && array.chunk_bytes() <= UINT32_MAX, "a chunk has bytes");
            fuzz::expect(array.places.size() ==
                             array.number(array.count(0) - 1, array.count(1) - 1, array.count(2) - 1) + 1,
                         "there is a place for every chunk");
        }
    return 0;
}
