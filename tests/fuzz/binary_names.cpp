// SPDX-License-Identifier: MIT
// Finds the names of other files in files of ERDAS IMAGINE and HDF4.
#include "raster/products/binary_names.h"
#include "fuzz/fuzz.h"

#include <algorithm>
#include <climits>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    fuzz::quiet_gdal();
    const fuzz::MemoryFile file("/vsimem/file.img", std::string(reinterpret_cast<const char*>(data), size));
    for (const std::string& text : raster::texts_of_imagine(file.path()))
        fuzz::expect(std::all_of(text.begin(), text.end(),
                                 [](char c) { return static_cast<unsigned char>(c) >= ' '; }),
                     "texts are printable");
    for (const std::string& name : raster::external_files_of_hdf4(file.path()))
        fuzz::expect(name.size() <= PATH_MAX, "names are short enough for the system");
    return 0;
}
