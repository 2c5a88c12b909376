// SPDX-License-Identifier: MIT
// The state of one run, shared by Tool (which makes it) and Run (which the tool's body sees).
#pragma once

#include "cli/tool.h"
#include "raster/run_files.h"
#include "stream/resident_source.h"

#include <chrono>
#include <mutex>

namespace hsi::cli {

/// An exception as the user and the report get it.
struct Failure {
    int code = 1;
    std::string what;
    std::string advice;
};

struct Run::Impl {
    std::string tool;
    std::string command; ///< shell-quoted, for the report
    CommonOptions options;
    CancelFlag cancel;
    std::shared_ptr<raster::RunFiles> files;               ///< what the run reads and writes
    nlohmann::json own_options = nlohmann::json::object(); ///< the tool's own options, for the report
    nlohmann::json report = nlohmann::json::object();      ///< the tool's entries
    nlohmann::json source;                                 ///< facts of the first source
    std::vector<stream::PassReport> passes;
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    std::string started; ///< UTC, ISO 8601
    uint64_t cache_wanted = 0;
    std::weak_ptr<stream::ResidentSource> kept; ///< counts against -memory as long as it lives
    bool stdout_is_output = false;
    bool outputs_are_good = false; ///< keep_outputs()
    bool overwrite = false;        ///< -overwrite, the frame's or the tool's own
    bool printed = false;

    std::mutex mutex; ///< guards what follows: GDAL's warnings come from any thread
    std::vector<std::string> warnings;
    double share_done = 0; ///< of the bar, all passes begun so far
    bool bar_open = false; ///< the bar has begun and its line has not ended
    double bar_position = 0;

    void start();               ///< clock, cache
    void set_cache();           ///< GDAL's block cache for cache_wanted
    uint64_t cache() const;     ///< bytes of the block cache: at most a quarter of -memory
    void progress(double done); ///< of the whole bar
    void end_bar();             ///< ends the bar's line where it is
    void warn(const std::string& text);
    void check_standard_output() const; ///< throws Error when something printed did not get there
    void finish();                      ///< after a body that succeeded: completes the bar, checks stdout
    /// After a body that succeeded: all outputs and the report get their names, together.
    void commit();
    void write_failure_report(const Failure& failure); ///< and the outputs that the body wants to keep
    /// Throws Error or UsageError when the report could not be written later.
    void check_report();

  private:
    raster::TextOutput report_output() const;
    std::string make_report(const Failure* failure);
};

const char* project_version();

} // namespace hsi::cli
