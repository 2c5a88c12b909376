// SPDX-License-Identifier: MIT
// The rasters that one pass writes, in the order of its operation's outputs. The outputs are planned first,
// so that all errors that can be detected are reported before any work begins. They are created when the work
// begins.
#pragma once

#include "core/error.h"
#include "raster/raster_sink.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace hsi::raster {

class OutputSet {
  public:
    /// Adds an output after the planned ones, without any checks.
    void plan(OutputOptions options, OutputSpec spec) {
        m_planned.emplace_back(std::move(options), std::move(spec));
    }
    bool empty() const { return m_planned.empty(); }
    size_t size() const { return m_planned.size(); }
    /// Calls check_output() for all planned outputs. Throws Error or UsageError for the first output that is
    /// refused.
    void check() const {
        for (const auto& [options, spec] : m_planned)
            check_output(options, spec);
    }
    /// Calls check_output() for all planned outputs with `like`, the source that create() will get.
    void check(const RasterSource& like) const {
        for (const auto& [options, spec] : m_planned)
            check_output(options, spec, like);
    }

    /// Creates the temporary file of every planned output. The outputs get the georeference and the metadata
    /// of `like`, which may be null. Throws Error or UsageError; the files that were already created are then
    /// removed. Call it once.
    void create(const RasterSource* like) {
        if (!m_made.empty()) throw Error("internal: these outputs are made");
        std::vector<std::unique_ptr<RasterSink>> made;
        for (const auto& [options, spec] : m_planned)
            made.push_back(create_sink(options, spec, like));
        m_made = std::move(made);
    }
    /// Returns the bytes of GDAL's block cache for writing tiles, for all outputs together; 0 before
    /// create().
    uint64_t cache_bytes() const {
        uint64_t bytes = 0;
        for (const auto& sink : m_made)
            bytes += sink->cache_bytes();
        return bytes;
    }
    /// Returns the layout of blocks of the first output; before create(), a layout without blocks.
    stream::BlockLayout layout() const {
        return m_made.empty() ? stream::BlockLayout() : m_made.front()->layout();
    }
    /// Returns the sinks for run_pass(); empty before create().
    std::vector<stream::CubeSink*> sinks() const {
        std::vector<stream::CubeSink*> list;
        for (const auto& sink : m_made)
            list.push_back(sink.get());
        return list;
    }
    /// Calls RasterSink::grow() for each output.
    void grow(int64_t lines) {
        for (const auto& sink : m_made)
            sink->grow(lines);
    }
    /// Calls RasterSink::commit() for each output in turn. Throws Error for the first output that fails.
    /// Without a run (OutputOptions::run), earlier outputs then already have their names. The old files of
    /// the failed output and of later outputs are unchanged.
    void commit() {
        for (const auto& sink : m_made)
            sink->commit();
    }

  private:
    std::vector<std::pair<OutputOptions, OutputSpec>> m_planned;
    std::vector<std::unique_ptr<RasterSink>> m_made;
};

} // namespace hsi::raster
