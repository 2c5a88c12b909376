// SPDX-License-Identifier: MIT
#include "tool/mask.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "core/text.h"
#include "raster/labels.h"
#include "raster/quality_flags.h"
#include "raster/run_files.h"
#include "raster/side_files.h"
#include "tool/classification.h"
#include "tool/memory_plan.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hsi::tool {
namespace {

/// Opens the mask on the grid of the scene, and reports its notes.
std::unique_ptr<raster::LabelSource> open_mask(Run& run, const std::string& role, const std::string& path,
                                               const raster::RasterSource& scene) {
    const auto grid = raster::grid_of(scene);
    raster::LabelOptions options;
    options.path = path;
    options.mask = true;
    try {
        auto source = raster::LabelSource::open(options, &grid);
        report_notes(run, *source);
        return source;
    } catch (const Error& error) {
        throw Error(role + ": " + error.what(), error.advice());
    }
}

/// Calls visit(line, sample) for the pixels that the file marks, and returns the number of these pixels.
template <class Visit>
int64_t each_marked(const Run& run, raster::LabelSource& source, Visit visit) {
    constexpr int64_t most_values = int64_t{1} << 17, most_lines = 64;
    const auto& grid = source.grid();
    const int64_t strip = std::clamp<int64_t>(most_values / grid.samples, 1, most_lines);
    std::vector<uint16_t> values(static_cast<size_t>(strip * grid.samples));
    int64_t pixels = 0;
    for (int64_t y = 0; y < grid.lines; y += strip) {
        if (run.cancel().requested()) throw Cancelled();
        const int64_t count = std::min(strip, grid.lines - y);
        source.read(y, count, values.data());
        for (int64_t line = 0; line < count; ++line)
            for (int64_t sample = 0; sample < grid.samples; ++sample)
                if (values[static_cast<size_t>(line * grid.samples + sample)] != 0) {
                    visit(y + line, sample);
                    ++pixels;
                }
    }
    return pixels;
}

std::shared_ptr<stream::PixelMask> empty_mask(const Run& run, const std::string& role,
                                              const raster::RasterSource& scene) {
    const auto shape = scene.shape();
    const uint64_t bytes = stream::PixelMask::bytes(shape.samples, shape.lines);
    if (bytes > quarter(run.options().memory))
        throw Error(role + ": a mask of " + std::to_string(shape.pixels()) + " pixels takes " +
                        format_byte_size(bytes) + ", more than a quarter of -memory " +
                        format_byte_size(run.options().memory),
                    "Give -memory " + format_byte_size(4 * bytes) + " or more.");
    return std::make_shared<stream::PixelMask>(shape.samples, shape.lines);
}

/// Works as read_mask(), but the mask may be empty.
std::shared_ptr<stream::PixelMask> marked_pixels(Run& run, const std::string& role, const std::string& path,
                                                 const raster::RasterSource& scene, std::string& how) {
    const auto source = open_mask(run, role, path, scene);
    auto mask = empty_mask(run, role, scene);
    each_marked(run, *source, [&](int64_t line, int64_t sample) { mask->set(line, sample); });
    how = source->description();
    return mask;
}

} // namespace

void check_mask_use(const MaskOptions& mask, bool learns, const std::string& with) {
    if (learns || !mask.given() || mask.outputs) return;
    throw UsageError(std::string(mask.first()) + " has no effect with " + with +
                         ", which uses no statistics of the scene",
                     "Leave it out, or add -mask-output to limit the results to the mask.");
}

std::shared_ptr<stream::PixelMask> read_mask(Run& run, const std::string& role, const std::string& path,
                                             const raster::RasterSource& scene, std::string& how) {
    auto mask = marked_pixels(run, role, path, scene, how);
    if (mask->count() == 0)
        throw Error(role + " " + path + ": the mask contains no pixel of the scene",
                    "Use a mask that overlaps the scene and is not 0 in the pixels to use.");
    return mask;
}

std::shared_ptr<const stream::PixelMask> read_scene_mask(Run& run, const raster::RasterSource& scene,
                                                         bool one_of_many) {
    const MaskOptions& options = run.options().mask;
    Json& report = run.report()["mask"];
    std::shared_ptr<stream::PixelMask> mask;
    std::string how, told;
    if (!options.only.empty()) {
        mask = (one_of_many ? marked_pixels : read_mask)(run, "-mask", options.only, scene, how);
        report["only"] = {{"path", options.only}, {"how", how}, {"pixels", mask->count()}};
        told = "-mask: " + how;
    }
    const auto exclude = [&](const char* role, const std::string& given, raster::LabelSource& source) {
        if (!mask) {
            mask = empty_mask(run, role, scene);
            mask->invert();
        }
        const int64_t marked =
            each_marked(run, source, [&](int64_t line, int64_t sample) { mask->clear(line, sample); });
        if (marked == 0 && !one_of_many)
            run.warn(std::string(role) + " " + given +
                     ": the mask contains no pixel of the scene, so no pixel is excluded");
        told += (told.empty() ? "" : "; ") + std::string(role) + ": " + source.description();
        return marked;
    };
    if (!options.without.empty()) {
        const auto source = open_mask(run, "-mask-exclude", options.without, scene);
        const int64_t marked = exclude("-mask-exclude", options.without, *source);
        report["exclude"] = {{"path", options.without}, {"how", source->description()}, {"pixels", marked}};
    }
    if (!options.flags.empty()) {
        const auto flags =
            raster::open_flag_mask(scene, options.flags_from, raster::flag_items(options.flags));
        for (const std::string& file : flags.files)
            run.files()->reads("-mask-flags", file, raster::files_read_with(file));
        const std::string list = joined(options.flags, ",");
        const int64_t marked = exclude("-mask-flags", list, *flags.source);
        report["flags"] = {{"items", list},
                           {"files", flags.files},
                           {"how", flags.source->description()},
                           {"pixels", marked}};
    }
    const int64_t pixels = mask->count();
    report["pixels"] = pixels;
    report["outputs"] = options.outputs;
    if (pixels == 0 && !one_of_many) {
        const bool flags = options.without.empty();
        const std::string given =
            flags ? "-mask-flags " + joined(options.flags, ",") : "-mask-exclude " + options.without;
        throw Error(given + " leaves no pixel of the " + (options.only.empty() ? "scene" : "mask"),
                    flags ? "Pixels with any of these flags are excluded; not-NAME inverts a flag."
                          : "Pixels that are not 0, or are inside features, are excluded; use -mask for the "
                            "pixels to keep.");
    }
    run.note("Mask: " + std::to_string(pixels) + " of " + counted(mask->pixels(), "pixel") +
             worded(pixels, " is used", " are used") + " (" + told + ")");
    return mask;
}

} // namespace hsi::tool
