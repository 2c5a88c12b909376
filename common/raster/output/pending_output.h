// SPDX-License-Identifier: MIT
// The shared state of the parts of a sink that writes a file: an unfinished output.
#pragma once

#include "core/error.h"
#include "raster/files/atomic_file.h"
#include "raster/gdal_errors.h"
#include "raster/io/raw_writer.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/output/block_writer.h"
#include "raster/output/compressed_writer.h"
#include "raster/output/grown_lines.h"
#include "raster/output/written_raster.h"
#include "raster/output_format.h"
#include "raster/raster_sink.h"
#include "raster/sample_convert.h"
#include "raster/scene/source_impl.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// Facts about the root's file for the other ranks, which have neither file nor dataset.
struct OutputElsewhere {
    uint64_t cache_bytes = 0;
    stream::BlockLayout layout;
};

struct PendingOutput {
    OutputOptions options;
    OutputSpec spec;
    Target target;
    std::optional<SceneMetadata> scene; ///< of the like source
    StoreRule rule;
    std::optional<NodataValue> nodata;
    std::unique_ptr<AtomicFile> file;
    std::string stage;    ///< the GTiff that a driver without Create copies from
    std::string streamed; ///< the file that goes to standard output byte by byte
    DatasetHandle dataset;
    std::unique_ptr<RawWriter> raw;
    std::optional<WriteLayout> raw_place; ///< of `raw`
    std::unique_ptr<CompressedWriter> compressed;
    std::unique_ptr<BlockWriter> blocks;

    /// The state of a growing output after it has appeared.
    struct Shown {
        std::string path, header, scratch;     ///< scratch: where a header is made
        std::string before_lines, after_lines; ///< the header's text around the number of lines
        std::vector<std::string> files;        ///< all of its files
        AtomicFile* made = nullptr;            ///< the run's, or `file`
        GrownLines lines;

        std::string header_text(int64_t count) const {
            return before_lines + std::to_string(count) + after_lines;
        }
    };
    std::optional<Shown> shown;

    std::optional<OutputElsewhere> elsewhere; ///< on a rank that is not the root

    ~PendingOutput();

    bool copies() const { return !stage.empty(); }
    Error failure(const std::string& reason, const std::string& advice = {}) const;
    /// Calls make() on the root. On the other ranks, sets the state that they need to write into the root's
    /// file. All ranks call it together.
    void make_together();
    uint64_t cache_bytes() const;
    stream::BlockLayout layout() const;
    /// Implement RasterSink::grow() and commit().
    void grow(int64_t lines);
    void commit();

    // In virtual_output.cpp.
    static std::unique_ptr<PendingOutput> of_virtual(const OutputOptions& options, const OutputSpec& spec,
                                                     const RasterSource& like);
    void make_virtual(const RasterSource& like, const std::vector<VirtualBand>& bands);
    void make_computed(const RasterSource& like, const stream::Link& link);

  private:
    uint64_t pixel_bytes() const {
        return static_cast<uint64_t>(spec.shape.pixels() * spec.shape.bands) * rule.sample_bytes();
    }
    bool cancelled() const { return options.cancel != nullptr && options.cancel->requested(); }
    uint64_t memory() const; ///< for unfinished blocks
    /// Creates the file with its metadata, and the writer of its pixels.
    void make();
    /// Writes nodata, metadata and legend of the dataset.
    void describe();
    void discard_unwritable_stdout() const;
    void check(const GdalErrors& errors) const;
    void check_written(const std::string& path) const;
    void check_xml(const std::string& path) const;
    void check_side_files() const;
    /// Checks the finished file and its side files, and warns about losses by the format. keeps_metadata:
    /// complete_file() has found all metadata in the file.
    void check_finished(bool keeps_metadata) const;
    /// Warns about values that equalled nodata by chance.
    void warn_of_lost_values(const StoreRule::Lost& lost) const;
    /// Warns if the file, opened again, has lost its nodata value.
    void warn_of_lost_nodata(const WrittenRaster& written) const;
    /// Warns if the file, opened again, has lost its position.
    void warn_of_lost_place(const WrittenRaster& written) const;
    /// Warns if the file, opened again, lacks metadata.
    void warn_of_lost_metadata(const WrittenRaster& written) const;
    /// Returns a dataset without pixels that describes the output completely.
    DatasetHandle described() const;
    /// Writes metadata that the format cannot store to a side file, if its driver reads side files.
    /// Returns true if the file, opened again, contains all metadata itself.
    bool keep_metadata(const std::string& path) const;
    /// Closes GDAL's dataset, and completes the file for its format. `errors`: the errors of all of GDAL's
    /// work in it.
    /// Returns the result of keep_metadata().
    bool complete_file(const GdalErrors& errors);
    /// Registers side files of an old file at the destination, which are removed when the new file appears.
    void set_stale_files() const;
    /// Gives a growing output its name.
    void show();
    /// Writes the header of a shown output to `path`; it states the number of lines.
    void write_shown_header(const std::string& path) const;
    /// Commits a shown output.
    void conclude_shown(const StoreRule::Lost& lost);
    /// Passes a complete and verified output to the run, which gives all its outputs their names together. An
    /// output without a run gets its name at once.
    void hand_over();
    /// Writes the STAC Item of a complete output, if requested.
    void write_stac_item(const std::vector<std::string>& files);

    // In staged_output.cpp.
    /// Copies the stage's pixels to the destination's format. Throws Error and Cancelled.
    void copy_stage(const GdalErrors& errors);
    void remove_stage();

    // In virtual_output.cpp.
    /// Returns the description of the output, a VRT in memory.
    std::string description_xml();

    /// made: the target that GDAL has created at `path`.
    void open_tiff_writer(const Target& made, const std::string& path,
                          const std::optional<BlockCoding>& coding);
    void open_writer();
    void open_elsewhere();
    // In staged_output.cpp.
    void add_overviews(const CPLStringList& list);
    bool assemble_cog(const std::string& path, const CPLStringList& list);
    void make_cog_model(const CPLStringList& list, bool big, const std::string& small,
                        const std::string& model) const;
    void stream(const std::string& path) const;
    static int CPL_STDCALL go_on(double, const char*, void* sink);
};

} // namespace hsi::raster
