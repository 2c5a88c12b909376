// SPDX-License-Identifier: MIT
// A MATLAB file of version 4 or 5 gives the arrays that it declares, or an error.
#include "fuzz/fuzz.h"
#include "raster/libraries/library_formats.h"
#include "raster/products/matlab_scene.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    fuzz::quiet_gdal();
    const std::string text(reinterpret_cast<const char*>(data), size);
    const fuzz::MemoryFile memory("/vsimem/in.mat", text);
    // Version 7.3 is HDF5. This test does not cover the HDF5 library.
    if (size > 125 && (text[124] == 2 || text[125] == 2)) return 0;
    std::shared_ptr<const raster::MatlabFile> file;
    try {
        file = raster::MatlabFile::open(memory.path());
    } catch (const Error&) {
    }
    if (!file) return 0;
    constexpr int64_t most = 1 << 20;
    for (const raster::MatlabVariable& one : file->variables()) {
        fuzz::expect(file->find(one.name) != nullptr, "a variable is found by its name");
        try {
            for (const std::string& line : file->texts(one))
                fuzz::expect(line.size() <= size * 3200, "no text is longer than its file, inflated");
            if (one.type == GDT_Unknown || one.count() > most) continue;
            size_t count = 0;
            file->read(one, [&](const char*, size_t n) { count += n; });
            fuzz::expect(count == static_cast<size_t>(one.count()), "as many numbers as its size asks for");
        } catch (const Error&) {
        }
        try {
            raster::matlab_product(memory.path() + ":" + one.name);
            raster::read_matlab_library(memory.path() + ":" + one.name, 3);
        } catch (const Error&) {
        }
    }
    return 0;
}
