// SPDX-License-Identifier: MIT
// The interface for the body of a tool: the shared options, the scene, passes and their progress, outputs,
// messages to the user, the report.
#pragma once

#include "core/cancel.h"
#include "core/cuda_module.h"
#include "core/error.h"
#include "core/json.h"
#include "raster/raster_sink.h"
#include "raster/raster_source.h"
#include "raster/text_output.h"
#include "stream/pipeline.h"
#include "stream/pixel_mask.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hsi::tool {

struct Definition;

/// The options that select the pixels from which a tool learns: -mask, -mask-exclude, -mask-flags,
/// -mask-output.
struct MaskOptions {
    std::string only, without;      ///< files of -mask and -mask-exclude; empty: not given
    std::vector<std::string> flags; ///< lists of items of -mask-flags, for raster::flag_items()
    std::string flags_from;         ///< file with the flags; empty: the quality layers of the scene's product
    bool outputs = false;           ///< -mask-output: outputs also have values only inside the mask
    bool given() const { return !only.empty() || !without.empty() || !flags.empty(); }
    /// Returns the first of the options that was given, for messages.
    const char* first() const {
        return !only.empty() ? "-mask" : !without.empty() ? "-mask-exclude" : "-mask-flags";
    }
};
/// Throws UsageError if a mask is given but would change nothing. This is so if the tool learns nothing from
/// the scene (learns = false) because of the option `with` ("-apply"), and the mask does not apply to the
/// outputs.
void check_mask_use(const MaskOptions& mask, bool learns, const std::string& with);

/// The shared options, parsed and checked. No file has been opened yet.
struct CommonOptions {
    raster::OpenOptions source;
    raster::OutputOptions destination;
    MaskOptions mask;
    DeviceChoice device;
    uint64_t memory = 0;        ///< -memory in bytes: the limit of buffers and GDAL's block cache together
    uint64_t device_memory = 0; ///< -device-memory in bytes; 0: 80 % of free device memory
    int threads = 1;            ///< threads per rank
    int ranks = 0;              ///< -ranks, with -dry-run; 0: the actual number
    int64_t tile_samples = 0, tile_lines = 0; ///< -tile; 0: chosen by the plan
    std::string report;                       ///< -report FILE.json
    bool report_append = false;               ///< the record is added after the existing ones
    bool dry_run = false;
    bool if_needed = false; ///< -if-needed: skips the run if the outputs are up to date
    bool quiet = false;
};

/// The precision in which a tool computes with the values of a scene.
enum class Precision {
    single, ///< a warning names bands whose values are almost equal in single precision
    full,   ///< values are used unchanged
};

/// The interface for the body of a tool.
class Run {
  public:
    ~Run();
    const CommonOptions& options() const;
    const std::string& tool() const; ///< name of the tool: "gdal_hsi_spp"
    /// Returns FrontEnd::tools().
    const std::vector<const Definition*>& tools() const;

    /// Opens src and gives GDAL's block cache its share of -memory. Reads the mask on the grid of src, for
    /// masked(). With -mask-output, the source's pixels outside of the mask are missing (SceneFacts::masked).
    std::shared_ptr<raster::RasterSource> open_source(Precision precision = Precision::single);
    /// Returns the mask of src; null without a mask. buffer_memory() does not include its bytes.
    const std::shared_ptr<const stream::PixelMask>& mask() const;
    /// Returns the source for statistics: `source` with missing values outside of the mask. Returns `source`
    /// itself if there is no mask, or if the mask was already applied when src was opened.
    std::shared_ptr<const stream::CubeSource>
    masked(const std::shared_ptr<const stream::CubeSource>& source) const;
    /// Returns true if masked() returns another source. The results then also cover pixels that the
    /// statistics do not cover.
    bool masks_statistics() const;
    /// Warns once per file about wrong metadata and about bands whose values are too close together for
    /// single precision. At the end of the run, warns about values that are too large for single precision.
    /// open_source() calls this function for the source.
    void watch_source(const std::shared_ptr<raster::RasterSource>& source,
                      Precision precision = Precision::single);
    /// Gives GDAL's block cache `bytes` more, for example the cache_bytes() of a sink; the cache never
    /// exceeds a quarter of -memory. Call this function before pass(), which takes the rest. open_source()
    /// calls it for the source.
    void reserve_cache(uint64_t bytes);
    /// Returns a source that keeps the values of its first pass, or `source` itself. Values are kept if
    /// reading them again is slow (compressed, tiled, remote) and if they fit in half of the memory that is
    /// left. The rest must hold a reader with the smallest buffers, and must be at least `beside`, the memory
    /// of a pass. Call seal() after the pass.
    std::shared_ptr<stream::CubeSource> keep_if_slow(const std::shared_ptr<raster::RasterSource>& source,
                                                     uint64_t beside = 0);
    /// Returns the options of one pass: number of workers, memory that is left for buffers, forced tile,
    /// cancellation, and progress that covers the next `share` of the whole bar (shares of all passes add up
    /// to 1).
    stream::PassOptions pass(const std::string& name, double share);
    /// Returns the memory for tile buffers: -memory without the reserved memory (reserve_cache()), the mask,
    /// and a scene that is kept in memory.
    uint64_t buffer_memory() const;
    /// Returns the options of a further output (`role`: "-alpha", "-map" ...) at `path`. The output uses the
    /// destination's -overwrite and -dstnodata, but not -ot: its type is chosen for its values. If its
    /// extension equals the destination's, the output also uses the destination's -of and -co. If it has no
    /// extension, it uses -of, and -co if -of was given. Any other extension states the format.
    raster::OutputOptions side_output(const std::string& role, const std::string& path) const;
    /// Returns a text output ("-csv") for raster/text_output.h, as one of this run's files.
    raster::TextOutput text_output(const std::string& role, const std::string& path, bool overwrite) const;
    /// Returns the register of the run's files. Its outputs appear together when the body has ended.
    const std::shared_ptr<raster::RunFiles>& files() const;
    /// Declares that the current outputs are complete. If the body throws later, because a limit was exceeded
    /// and not because the work failed, the outputs still get their names. The report then also contains the
    /// failure.
    void keep_outputs();

    /// Only note() and print() write to stdout. They throw Error if a file that the run reads has changed
    /// since it was opened. The result would then match neither state of the file, and printed output cannot
    /// be undone.
    void note(const std::string& text);  ///< prints to stdout; nothing with -q
    void warn(const std::string& text);  ///< prints "Warning: ..." to stderr; also in the report
    void print(const std::string& text); ///< prints a requested result to stdout, also with -q
    /// Lets only print() write to stdout from now on, as with -q: for results that another program reads.
    void only_print();
    void add_pass(const stream::PassReport& pass);
    Json& report(); ///< the tool's own entries in the report
    const CancelFlag& cancel() const;
    /// Returns the ranks that share the run, including this process. They are needed for sums over all ranks,
    /// and for work that the root does for all. Every rank calls warn(), note() and print(); the user sees
    /// only the root's text.
    parallel::Group& ranks() const;

  private:
    friend struct RunAccess;
    struct Impl;
    explicit Run(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> m;
};

/// Ends the filling of a source from Run::keep_if_slow(); does nothing for a source that is not kept.
void seal(stream::CubeSource& source);

/// Returns the Error for a scene without usable pixels, or with `masked` for a mask without usable pixels.
Error no_valid_pixel(const raster::RasterSource& source, bool masked);
inline Error no_valid_pixel(const raster::RasterSource& source) {
    return no_valid_pixel(source, source.facts().masked);
}

} // namespace hsi::tool
