// SPDX-License-Identifier: MIT
// The state of an unfinished output file, which the parts of the sink share.
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

/// Facts about the output file that the root process sends to the other ranks, which have neither the file
/// nor the dataset.
struct OutputElsewhere {
    uint64_t cache_bytes = 0;
    stream::BlockLayout layout;
};

struct PendingOutput {
    OutputOptions options;
    OutputSpec spec;
    Target target;
    std::optional<SceneMetadata> scene; ///< metadata of the source scene
    StoreRule rule;
    std::optional<NodataValue> nodata;
    std::unique_ptr<AtomicFile> file;
    std::string stage;    ///< temporary GTiff, from which a driver without Create copies the output
    std::string streamed; ///< temporary file that is copied to standard output
    DatasetHandle dataset;
    std::unique_ptr<RawWriter> raw;
    std::optional<WriteLayout> raw_place; ///< layout of the file that `raw` writes
    std::unique_ptr<CompressedWriter> compressed;
    std::unique_ptr<BlockWriter> blocks;

    /// The state of a growing output after other processes can read it.
    struct Shown {
        std::string path, header, scratch;     ///< scratch: temporary path of a new header
        std::string before_lines, after_lines; ///< text of the header before and after the number of lines
        std::vector<std::string> files;        ///< all files of the output
        AtomicFile* made = nullptr;            ///< the file, which `file` or the run owns
        GrownLines lines;

        std::string header_text(int64_t count) const {
            return before_lines + std::to_string(count) + after_lines;
        }
    };
    std::optional<Shown> shown;

    std::optional<OutputElsewhere> elsewhere; ///< set on all ranks except the root

    ~PendingOutput();

    bool copies() const { return !stage.empty(); }
    Error failure(const std::string& reason, const std::string& advice = {}) const;
    /// Makes the file: calls make() on the root rank, and sends the other ranks the facts that they need to
    /// write into the root's file. All ranks must call this function.
    void make_together();
    uint64_t cache_bytes() const;
    stream::BlockLayout layout() const;
    /// The implementations of RasterSink::grow() and RasterSink::commit().
    void grow(int64_t lines);
    void commit();

    // Implemented in virtual_output.cpp:
    static std::unique_ptr<PendingOutput> of_virtual(const OutputOptions& options, const OutputSpec& spec,
                                                     const RasterSource& like);
    void make_virtual(const RasterSource& like, const std::vector<VirtualBand>& bands);
    void make_computed(const RasterSource& like, const stream::Link& link);

  private:
    uint64_t pixel_bytes() const {
        return static_cast<uint64_t>(spec.shape.pixels() * spec.shape.bands) * rule.sample_bytes();
    }
    bool cancelled() const { return options.cancel != nullptr && options.cancel->requested(); }
    uint64_t memory() const; ///< bytes for unfinished blocks
    /// Creates the file with its metadata, and the writer of its pixels.
    void make();
    /// Writes all facts except pixels into the dataset (describe_output()).
    void describe();
    void discard_unwritable_stdout() const;
    void check(const GdalErrors& errors) const;
    void check_written(const std::string& path) const;
    void check_xml(const std::string& path) const;
    void check_side_files() const;
    /// Checks the finished file and its side files, and warns if the format has lost facts. `keeps_metadata`
    /// is the result of complete_file(); false: the metadata must also be compared.
    void check_finished(bool keeps_metadata) const;
    /// Warns about values that the type could not represent, and about valid values that were changed because
    /// they equal nodata.
    void warn_of_lost_values(const StoreRule::Lost& lost) const;
    /// Warns if the finished file lacks the nodata value, or has a nodata value that was not requested.
    void warn_of_lost_nodata(const WrittenRaster& written) const;
    /// Warns if the finished file does not have the position of the scene.
    void warn_of_lost_place(const WrittenRaster& written) const;
    /// Warns if the finished file lacks metadata.
    void warn_of_lost_metadata(const WrittenRaster& written) const;
    /// Returns a VRT in memory, without pixels, that has all metadata of the output.
    DatasetHandle described() const;
    /// Finds out which metadata the finished file `path` lacks, and writes it to a side file (.aux.xml) if
    /// the driver reads this file. Returns true if the finished file contains all metadata.
    bool keep_metadata(const std::string& path) const;
    /// Closes GDAL's dataset, copies a stage to its format, and makes format-specific additions to the file.
    /// `errors` has collected all of GDAL's errors for this output. Returns the result of keep_metadata();
    /// false for standard output.
    bool complete_file(const GdalErrors& errors);
    /// Lists the side files of an old file at the destination, so that they are removed when the new file
    /// appears.
    void set_stale_files() const;
    /// Completes the header of a growing output, and gives its files their final names.
    void show();
    /// Writes the header of a visible growing output to `path`, with the current number of lines.
    void write_shown_header(const std::string& path) const;
    /// Ends a growing output that already has its final name: checks that other programs have not changed it,
    /// and writes its STAC Item.
    void conclude_shown(const StoreRule::Lost& lost);
    /// Passes a complete and verified output to the run, which publishes all outputs together. Without a run,
    /// the output is published at once.
    void hand_over();
    /// Writes the STAC Item of a complete output if the user requested it.
    void write_stac_item(const std::vector<std::string>& files);

    // Implemented in staged_output.cpp:
    /// Copies the pixels of the stage to the format of the destination. \throws Error and Cancelled.
    void copy_stage(const GdalErrors& errors);
    void remove_stage();

    // Implemented in virtual_output.cpp:
    /// Returns the XML text of a VRT without pixels that describes the output.
    std::string description_xml();

    /// Prepares the writer of a TIFF that GDAL has created at `path` without blocks. `made` is the target of
    /// this TIFF, which may be a stage.
    void open_tiff_writer(const Target& made, const std::string& path,
                          const std::optional<BlockCoding>& coding);
    void open_writer();
    void open_elsewhere();
    // Implemented in staged_output.cpp:
    void add_overviews(const CPLStringList& list);
    bool assemble_cog(const std::string& path, const CPLStringList& list);
    void make_cog_model(const CPLStringList& list, bool big, const std::string& small,
                        const std::string& model) const;
    void stream(const std::string& path) const;
    static int CPL_STDCALL go_on(double, const char*, void* sink);
};

} // namespace hsi::raster
