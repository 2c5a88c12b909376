// SPDX-License-Identifier: MIT
// The part of RasterSink that chooses what writes the pixels: whoever knows where they lie in the file, or
// GDAL.
#include "core/process_limits.h"
#include "raster/gdal/drivers.h"
#include "raster/sink/close_written.h"
#include "raster/sink/raster_sink_impl.h"
#include "raster/sink/tiff_blocks.h"

#include <cpl_string.h>

#include <chrono>
#include <thread>

namespace hsi::raster {

/// The root's file, which the file system must show here, too.
void RasterSink::Impl::open_elsewhere() {
    constexpr int attempts = 20; // a file system of the network may show it a little later
    for (int attempt = 1;; ++attempt) {
        try {
            raw = std::make_unique<RawWriter>(*raw_place, spec.shape.bands, rule, true);
            return;
        } catch (const Error& e) {
            if (attempt < attempts) {
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
                continue;
            }
            throw Error("the temporary file of '" + options.path + "' (" + options.role +
                            "), which rank 0 has made, is not to be had here: " + e.what(),
                        "Name a destination on a file system that all ranks share.");
        }
    }
}

/// GDAL makes the file and says what is in it; the blocks get their places behind that.
void RasterSink::Impl::open_tiff_writer(const std::string& path) {
    WriteLayout layout;
    layout.path = path;
    layout.type = target.type;
    layout.sample_bytes = GDALGetDataTypeSizeBytes(target.type);
    int w = 0, h = 0;
    dataset->GetRasterBand(1)->GetBlockSize(&w, &h);
    const char* const interleave = dataset->GetMetadataItem("INTERLEAVE", "IMAGE_STRUCTURE");
    TiffShape shape{spec.shape.bands, spec.shape.lines, spec.shape.samples, h, w};
    shape.tiled = target.options.FetchBool("TILED", false);
    shape.apart = shape.bands == 1 || (interleave != nullptr && EQUAL(interleave, "BAND"));
    const GdalErrors errors;
    const bool closed = close_written(std::move(dataset), false);
    check(errors);
    if (!closed) throw failure("not all of it got to the disk");
    try {
        raw_place = place_tiff_blocks(std::move(layout), shape);
        raw = std::make_unique<RawWriter>(*raw_place, spec.shape.bands, rule);
    } catch (const Error& e) {
        throw Error("cannot write '" + options.path + "': " + e.what(), e.advice());
    }
}

void RasterSink::Impl::open_writer() {
    // Drivers that are known to leave the data to whoever has the layout, and only write a header at the
    // end.
    if (!copies() && (is(target.driver, "ENVI") || is(target.driver, "EHdr"))) {
        {
            const GdalErrors errors;
            dataset->FlushCache(false);
            check(errors);
        }
        const auto layout = raw_layout(*dataset);
        const bool usable = layout && (layout->packed_rows() ||
                                       (layout->band_step == layout->sample_bytes &&
                                        layout->pixel_step == spec.shape.bands * layout->sample_bytes));
        if (usable) {
            try {
                WriteLayout& place = raw_place.emplace(WriteLayout{*layout, {}, 0});
                place.bytes = place.at(spec.shape.bands - 1, spec.shape.lines - 1, spec.shape.samples - 1) +
                              place.sample_bytes;
                raw = std::make_unique<RawWriter>(place, spec.shape.bands, rule);
            } catch (const Error& e) {
                throw failure(e.what());
            }
            return;
        }
    }
    blocks =
        std::make_unique<BlockWriter>(*dataset, rule, options.memory ? options.memory : usable_ram() / 4);
}

} // namespace hsi::raster
