// SPDX-License-Identifier: MIT
// The input is the header of an ENVI scene. The scene is opened, read and described as a tool does it.
#include "fuzz/fuzz.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/raster_source.h"

#include <cmath>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    fuzz::quiet_gdal();
    const fuzz::MemoryFile pixels("/vsimem/scene.img", std::string(4096, '\x01'));
    const fuzz::MemoryFile header("/vsimem/scene.hdr",
                                  std::string(reinterpret_cast<const char*>(data), size));
    try {
        raster::OpenOptions options;
        options.path = pixels.path();
        options.drivers = {"ENVI"};
        const auto source = raster::open_raster(options);
        const auto shape = source->shape();
        fuzz::expect(shape.samples > 0 && shape.lines > 0 && shape.bands > 0, "a scene has pixels");
        fuzz::expect(source->bands().size() == static_cast<size_t>(shape.bands), "a number a band");
        const auto scene = raster::metadata_of(*source);
        fuzz::expect(scene.bands.size() == static_cast<size_t>(shape.bands), "a description a band");
    } catch (const Error&) {
    }
    return 0;
}
