// SPDX-License-Identifier: MIT
// Writes outputs without pixels: VRTs and virtual scenes. Pixels are computed when they are read: by GDAL for
// a VRT, and by this suite for a virtual scene.
#include "core/error.h"
#include "core/file_path.h"
#include "parallel/group.h"
#include "raster/files/document_names.h"
#include "raster/files/file_register.h"
#include "raster/output/output_description.h"
#include "raster/output/pending_output.h"
#include "raster/output/virtual_bands.h"
#include "raster/output_format.h"
#include "raster/scene/computed_scene.h"
#include "raster/scene_document.h"

#include <cpl_vsi.h>

#include <link.h>

#include <cerrno>
#include <cstring>

namespace hsi::raster {
namespace {

Target checked_target(const OutputOptions& options, const OutputSpec& spec) {
    Target target = choose_target(options, spec, true);
    if (!options.document) check_place(options, target.driver);
    return target;
}

void write_all(const std::string& path, const std::string& text) {
    VSILFILE* file = VSIFOpenL(path.c_str(), "wb");
    const bool written = file && VSIFWriteL(text.data(), 1, text.size(), file) == text.size();
    if ((file && VSIFCloseL(file) != 0) || !written)
        throw Error("cannot write '" + path + "': " + std::strerror(errno));
}

constexpr const char* plugin_name = "gdal_HSI.so";

/// Returns true if this process has loaded a library with this name, as GDAL does with plugins in its plugin
/// folders.
bool loaded(const std::string& name) {
    register_drivers();
    const auto visit = [](dl_phdr_info* info, size_t, void* wanted) {
        return name_of(info->dlpi_name) == *static_cast<const std::string*>(wanted) ? 1 : 0;
    };
    std::string wanted = name;
    return dl_iterate_phdr(visit, &wanted) != 0;
}

} // namespace

std::string PendingOutput::description_xml() {
    const GdalErrors errors;
    dataset.reset(target.driver->Create("", static_cast<int>(spec.shape.samples),
                                        static_cast<int>(spec.shape.lines), spec.shape.bands, target.type,
                                        nullptr));
    if (!dataset) throw failure(errors.text());
    describe();
    CSLConstList const xml = dataset->GetMetadata("xml:VRT");
    if (xml == nullptr || xml[0] == nullptr) throw failure(errors.text());
    std::string text = xml[0];
    dataset.reset();
    return text;
}

std::unique_ptr<PendingOutput> PendingOutput::of_virtual(const OutputOptions& options, const OutputSpec& spec,
                                                         const RasterSource& like) {
    auto impl = std::make_unique<PendingOutput>();
    impl->target = checked_target(options, spec);
    impl->options = options;
    impl->spec = spec;
    impl->scene = spec.spectral ? metadata_of(spec, metadata_of(like)) : metadata_of(like);
    impl->spec.same_bands = spec.same_bands || spec.spectral;
    impl->nodata = choose_nodata(options, spec, &*impl->scene, impl->target.type);
    if (!options.document) impl->file = std::make_unique<AtomicFile>(options.path, options.overwrite);
    return impl;
}

/// Makes a VRT with the same metadata as any other output, and with derived bands.
void PendingOutput::make_virtual(const RasterSource& like, const std::vector<VirtualBand>& bands) {
    const std::string text = description_xml();
    const std::optional<double> nodata_value =
        nodata ? std::optional<double>(nodata->as_double()) : std::nullopt;
    write_all(file->path(), with_derived_bands(text, file->destination(), like, bands, nodata_value));
    {
        // Relative names in the VRT are valid only at the destination. To check that the VRT can be opened, a
        // copy is written to a temporary path. It has names that are valid there, also of unfinished outputs.
        auto at_hand = bands;
        for (VirtualBand& band : at_hand)
            if (options.run && !band.further.empty())
                band.further = register_of(*options.run).pending_path(band.further);
        const std::string twin = file->scratch_path("vrt");
        write_all(twin, with_derived_bands(text, twin, like, at_hand, nodata_value));
        check_written(twin);
        VSIUnlink(twin.c_str());
    }
    hand_over();
    if (options.run && !loaded(plugin_name))
        options.run->note("'" + options.path + "' needs the plugin " + plugin_name +
                          ", which this GDAL does not find: set GDAL_DRIVER_PATH to the plugin's folder in "
                          "programs that read the file (docs/pixel_functions.md)");
}

void PendingOutput::make_computed(const RasterSource& like, const stream::Link& link) {
    SceneDocument document;
    document.made_by = options.history;
    document.link = link;
    document.source = document_source(like);
    document.keep_nan = spec.keep_nan;
    document.raster = description_xml();
    const std::string destination = file ? file->destination() : options.path;
    const std::string text = file ? scene_document_text(document, destination) : std::string();
    // Reads the document to check it.
    {
        OpenOptions again;
        again.path = destination;
        again.document = std::make_shared<const SceneDocument>(
            file ? parse_scene_document(text, folder_of(destination), destination) : document);
        const auto made = open_raster(again);
        if (made->facts().bands.in_file != spec.shape.bands) throw failure("read back, it has other bands");
    }
    if (!file) {
        *options.document = std::move(document);
        return;
    }
    try {
        check_document_names(document, destination);
    } catch (const Error& e) { // readers must allow these names with an option
        if (options.run) options.run->note(std::string(e.what()) + ". " + e.advice());
    }
    write_all(file->path(), text);
    hand_over();
}

void check_virtual(const OutputOptions& options, const OutputSpec& spec, const RasterSource& like) {
    checked_target(options, spec);
    if (!options.creation_options.empty())
        throw UsageError("-co " + options.creation_options.front() + ": " + virtual_kind(options) +
                         " has no creation options");
    if (same_file(like.path(), options.path))
        throw UsageError("the destination '" + options.path + "' is the source");
    if (is_computed(options)) return;
    if (like.facts().access == Access::computed)
        throw UsageError("-of VRT: '" + like.path() +
                             "' is a virtual scene, which a VRT would compute again for every band",
                         "Use the extension .hsi for the output.");
    check_virtual_source(like);
    if (like.facts().scaled)
        throw UsageError(
            "-of VRT: the bands of '" + like.path() + "' have scales, but a VRT computes from stored values",
            "Write another format, or apply the scales first (gdal_translate -unscale -ot Float32).");
}

const char* virtual_kind(const OutputOptions& options) { return is_computed(options) ? "an .hsi" : "a VRT"; }

void write_virtual(const OutputOptions& options, const OutputSpec& spec, const RasterSource& like,
                   const std::vector<VirtualBand>& bands) {
    check_virtual(options, spec, like);
    if (bands.size() != static_cast<size_t>(spec.shape.bands) || is_computed(options))
        throw Error("internal: a VRT needs a function a band");
    if (!parallel::group().root()) return; // only the root process writes the file
    PendingOutput::of_virtual(options, spec, like)->make_virtual(like, bands);
}

void write_virtual(const OutputOptions& options, const OutputSpec& spec, const RasterSource& like,
                   const stream::Link& link) {
    check_virtual(options, spec, like);
    if (!is_computed(options)) throw Error("internal: a VRT is not a virtual scene");
    // If the virtual scene stays in memory, each rank makes its own.
    if (!parallel::group().root() && !options.document) return;
    PendingOutput::of_virtual(options, spec, like)->make_computed(like, link);
}

} // namespace hsi::raster
