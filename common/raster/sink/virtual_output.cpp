// SPDX-License-Identifier: MIT
// RasterSink's outputs without pixels: VRTs, whose values GDAL computes when they are read.
#include "core/error.h"
#include "parallel/group.h"
#include "raster/files/run_files.h"
#include "raster/sink/output_description.h"
#include "raster/sink/output_place.h"
#include "raster/sink/raster_sink_impl.h"
#include "raster/sink/virtual_bands.h"

#include <cpl_vsi.h>

#include <link.h>

#include <cerrno>
#include <cstring>

namespace hsi::raster {
namespace {

Target checked_target(const OutputOptions& options, const OutputSpec& spec) {
    Target target = choose_target(options, spec, true);
    check_place(options, target.driver);
    return target;
}

void write_all(const std::string& path, const std::string& text) {
    VSILFILE* file = VSIFOpenL(path.c_str(), "wb");
    const bool written = file && VSIFWriteL(text.data(), 1, text.size(), file) == text.size();
    if ((file && VSIFCloseL(file) != 0) || !written)
        throw Error("cannot write '" + path + "': " + std::strerror(errno));
}

constexpr const char* plugin_name = "gdal_HSI.so";

/// True when this process has loaded a library of that name: GDAL has it from a folder that it looks into.
bool loaded(const std::string& name) {
    register_drivers();
    const auto visit = [](dl_phdr_info* info, size_t, void* wanted) {
        return name_of(info->dlpi_name) == *static_cast<const std::string*>(wanted) ? 1 : 0;
    };
    std::string wanted = name;
    return dl_iterate_phdr(visit, &wanted) != 0;
}

} // namespace

/// The same description as any output's, in a VRT in memory, completed by the derived bands.
void RasterSink::Impl::make_virtual(const RasterSource& like, const std::vector<VirtualBand>& bands) {
    std::string text;
    {
        const GdalErrors errors;
        dataset.reset(target.driver->Create("", static_cast<int>(spec.shape.samples),
                                            static_cast<int>(spec.shape.lines), spec.shape.bands, target.type,
                                            nullptr));
        if (!dataset) throw failure(errors.text());
        describe();
        CSLConstList const xml = dataset->GetMetadata("xml:VRT");
        if (xml == nullptr || xml[0] == nullptr) throw failure(errors.text());
        text = xml[0];
        dataset.reset();
    }
    const std::optional<double> nodata_value =
        nodata ? std::optional<double>(nodata->as_double()) : std::nullopt;
    write_all(file->path(), with_derived_bands(text, file->destination(), like, bands, nodata_value));
    {
        // Its relative names hold at the destination only: a twin that names the same files from where it
        // lies, outputs that wait for their names among them, shows that it opens.
        auto at_hand = bands;
        for (VirtualBand& band : at_hand)
            if (options.run && !band.further.empty()) band.further = options.run->pending_path(band.further);
        const std::string twin = file->scratch_path("vrt");
        write_all(twin, with_derived_bands(text, twin, like, at_hand, nodata_value));
        check_written(twin);
        VSIUnlink(twin.c_str());
    }
    hand_over();
    if (options.run && !loaded(plugin_name))
        options.run->note("'" + options.path + "' is read through the plugin " + plugin_name +
                          ", which this GDAL does not find: programs that read it need GDAL_DRIVER_PATH, the "
                          "folder of the plugin (docs/pixel_functions.md)");
}

bool RasterSink::is_virtual(const OutputOptions& options) { return is(choose_driver(options), "VRT"); }

void RasterSink::check_virtual(const OutputOptions& options, const OutputSpec& spec,
                               const RasterSource& like) {
    checked_target(options, spec);
    if (!options.creation_options.empty())
        throw UsageError("-co " + options.creation_options.front() + ": a VRT has no creation options");
    if (same_file(like.path(), options.path))
        throw UsageError("the destination '" + options.path + "' is the source");
    check_virtual_source(like);
    if (like.is_scaled())
        throw UsageError("-of VRT: the scales of the bands of '" + like.path() +
                             "' are applied before anything is computed, and a VRT computes from the numbers",
                         "Write another format, or apply them first (gdal_translate -unscale -ot Float32).");
}

void RasterSink::write_virtual(const OutputOptions& options, const OutputSpec& spec, const RasterSource& like,
                               const std::vector<VirtualBand>& bands) {
    check_virtual(options, spec, like);
    if (bands.size() != static_cast<size_t>(spec.shape.bands))
        throw Error("internal: a virtual output needs a function a band");
    if (!parallel::group().root()) return; // it is the root's file
    Impl impl;
    impl.target = checked_target(options, spec);
    impl.options = options;
    impl.spec = spec;
    impl.scene = like.metadata();
    impl.nodata = choose_nodata(options, spec, &*impl.scene, impl.target.type);
    impl.file = std::make_unique<AtomicFile>(options.path, options.overwrite);
    impl.make_virtual(like, bands);
}

} // namespace hsi::raster
