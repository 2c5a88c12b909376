// SPDX-License-Identifier: MIT
// Walks the groups of an HDF5 file, and finds its references to other files.
#include "raster/hdf5/hdf5_walk.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    fuzz::quiet_gdal();
    const fuzz::MemoryFile file("/vsimem/file.h5", std::string(reinterpret_cast<const char*>(data), size));
    const auto found = raster::walk_hdf5(file.path());
    for (const std::string& object : found.objects)
        fuzz::expect(object.size() > 1 && object[0] == '/', "names are full ones");
    for (const auto& reference : found.references)
        fuzz::expect(reference.kind != raster::Hdf5Reference::Kind::storage || reference.inner.empty(),
                     "values in a file of their own are no dataset of it");
    return 0;
}
