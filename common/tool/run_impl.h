// SPDX-License-Identifier: MIT
// The state of one run, shared by execute() (which creates it) and Run (the interface for the tool's body).
#pragma once

#include "core/codec_time.h"
#include "raster/run_files.h"
#include "stream/resident_source.h"
#include "tool/definition.h"
#include "tool/execute.h"
#include "tool/front_end.h"
#include "tool/memory_plan.h"
#include "tool/run.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace hsi::tool {

struct Run::Impl {
    Impl(FrontEnd& f, std::string name, std::string line)
        : front_end(f), tool(std::move(name)), command(std::move(line)) {}

    FrontEnd& front_end;
    std::string tool;
    std::string command; ///< quoted for a shell, for the report
    CommonOptions options;
    std::shared_ptr<raster::RunFiles> files; ///< the inputs and outputs of the run
    /// The entries of the report.
    struct {
        Json own_options = Json::object(); ///< the tool's own options
        Json report = Json::object();      ///< the tool's entries
        Json assumed;                      ///< entries that are not reported: see `assumes`
        Json source;                       ///< facts of the first source
    } entries;
    bool assumes = false; ///< true after a pass of a dry run: results are assumed
    std::vector<stream::PassReport> passes;
    struct {
        std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now();
        CodecTime coding;
        std::string utc; ///< UTC as ISO 8601
    } started;
    double decoding = 0; ///< seconds in which a core decodes one byte of src's floats
    MemoryPlan memory;   ///< set by start()
    std::vector<std::shared_ptr<raster::RasterSource>> watched; ///< one source per file
    std::shared_ptr<const stream::PixelMask> mask;              ///< on the grid of src
    /// The scene that is kept in memory; it counts against -memory as long as it exists.
    std::weak_ptr<stream::ResidentSource> kept;
    bool outputs_are_good = false; ///< true after keep_outputs()
    bool overwrite = false;        ///< -overwrite, shared or the tool's own
    /// Files that are the same for all ranks. Steps share the list with the run that contains them.
    std::shared_ptr<std::set<std::string>> agreed = std::make_shared<std::set<std::string>>();

    std::mutex mutex; ///< guards the following members: GDAL's warnings arrive from any thread
    std::vector<std::string> warnings;
    std::set<std::string> notes; ///< notes that were printed
    struct {
        double share_done = 0; ///< sum of the shares of all passes begun so far
        double position = 0;
    } bar;

    void start(); ///< sets the clock and the cache
    /// Throws Error if the files that the run reads have other contents on one rank than on the root. Each
    /// file is checked once. All ranks call this function.
    void agree_on_files();
    /// Replaces the scene that was followed (-follow) by `source`, which has all of its lines. The report and
    /// the messages of watch_source() at the end then refer to `source`.
    void source_has_grown(const std::shared_ptr<raster::RasterSource>& source);
    void set_cache();           ///< sets the size of GDAL's block cache from `memory`
    void progress(double done); ///< sets the position of the whole bar
    void warn(const std::string& text);
    /// Warns about bands whose values are too close together for single precision.
    void warn_of_coarse_bands(const raster::RasterSource& scene);
    /// Warns about values of the sources that became infinite. Never throws. `together`: all ranks call it.
    void warn_of_overflow(bool together);
    void finish(); ///< after a successful body: completes the bar, checks the printed output
    /// Gives all outputs and the report their names together, after a body that succeeded.
    void commit();
    Json record(const Outcome* failure); ///< record of the run, for a report
    /// Writes the report of a failure. Also commits the outputs that the body has asked to keep.
    void write_failure_report(const Outcome& failure);
    /// Throws Error or UsageError if it is already certain that the report cannot be written.
    void check_report();

  private:
    raster::TextOutput report_output() const;
    /// Returns true if the path of the report is a file that no run of ours has written.
    bool report_is_other_file() const;
    Error no_report() const;
    /// Gives all of `outputs` and the report their final names together. `cancel`: the flag that can still
    /// prevent it; null if the run was already cancelled.
    void commit_with_report(const std::shared_ptr<raster::RunFiles>& outputs, const Outcome* failure,
                            const CancelFlag* cancel);
    std::string make_report(const Outcome* failure);
};

/// The functions of a Run that execute() may call.
struct RunAccess {
    using State = Run::Impl;
    static std::unique_ptr<Run> make(std::unique_ptr<Run::Impl> state) {
        return std::unique_ptr<Run>(new Run(std::move(state)));
    }
    static Run::Impl& state(Run& run) { return *run.m; }
};

} // namespace hsi::tool
