// SPDX-License-Identifier: MIT
#include "tool/follow.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "tool/run_impl.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace hsi::tool {
namespace {

/// A scene that consists of some lines of another scene.
class SomeLines final : public stream::CubeSource {
  public:
    SomeLines(const raster::RasterSource& from, int64_t first, int64_t count)
        : m_from(from), m_first(first), m_count(count) {}
    stream::CubeShape shape() const override {
        stream::CubeShape shape = m_from.shape();
        shape.lines = m_count;
        return shape;
    }
    stream::BlockLayout layout() const override { return m_from.layout(); }
    std::unique_ptr<stream::CubeReader> open_reader() const override {
        return std::make_unique<Reader>(m_from.open_reader(), m_first);
    }
    uint64_t reader_bytes() const override { return m_from.reader_bytes(); }
    uint64_t stored_bytes_per_pixel() const override { return m_from.stored_bytes_per_pixel(); }

  private:
    class Reader final : public stream::CubeReader {
      public:
        Reader(std::unique_ptr<stream::CubeReader> from, int64_t first)
            : m_from(std::move(from)), m_first(first) {}
        void read(const Rect& window, const CubeView<float>& dst) override {
            m_from->read({window.x, window.y + m_first, window.w, window.h}, dst);
        }

      private:
        std::unique_ptr<stream::CubeReader> m_from;
        const int64_t m_first;
    };
    const raster::RasterSource& m_from;
    const int64_t m_first, m_count;
};

/// The sink for results of SomeLines. Writes tiles to the lines of the whole scene.
class LinesBehind final : public stream::CubeSink {
  public:
    LinesBehind(stream::CubeSink& to, int64_t first) : m_to(to), m_first(first) {}
    stream::CubeShape shape() const override { return m_to.shape(); }
    bool concurrent() const override { return m_to.concurrent(); }
    stream::BlockLayout layout() const override { return m_to.layout(); }
    void write(const Rect& core, const CubeView<float>& src) override {
        m_to.write({core.x, core.y + m_first, core.w, core.h}, src);
    }
    uint64_t stored_bytes_per_pixel() const override { return m_to.stored_bytes_per_pixel(); }

  private:
    stream::CubeSink& m_to;
    const int64_t m_first;
};

/// Adds the report of a pass over further lines.
void add(const stream::PassReport& piece, stream::PassReport& all) {
    stream::PassCosts costs = all;
    costs.add(piece);
    if (piece.buffer_bytes >= all.buffer_bytes) all = piece; // reports tiles and workers of the largest piece
    static_cast<stream::PassCosts&>(all) = costs;
}

} // namespace

std::shared_ptr<raster::RasterSource> follow(Run& run, const raster::RasterSource& source,
                                             stream::Operation& operation, raster::OutputSet* outputs,
                                             const stream::PassOptions& options) {
    if (operation.halo() > 0) throw std::logic_error("an operation with a halo does not follow a scene");
    constexpr int64_t piece_bytes = int64_t{16} << 20;
    const auto line_bytes =
        std::max<int64_t>(1, source.shape().samples * static_cast<int64_t>(source.stored_bytes_per_pixel()));
    const int64_t most = std::max<int64_t>(1, piece_bytes / line_bytes);
    stream::PassReport report;
    auto pass = options;
    pass.progress = nullptr; // the progress of a piece does not show the progress of the whole
    raster::Growth& growth = *source.growth();
    int64_t done = 0;
    for (int64_t there; (there = growth.wait(done)) > done;) {
        const int64_t count = std::min(most, there - done);
        const SomeLines lines(source, done, count);
        std::vector<LinesBehind> places;
        std::vector<stream::CubeSink*> sinks;
        if (outputs != nullptr)
            for (stream::CubeSink* const sink : outputs->sinks())
                places.emplace_back(*sink, done);
        sinks.reserve(places.size());
        for (LinesBehind& place : places)
            sinks.push_back(&place);
        add(stream::run_pass(lines, operation, sinks, pass), report);
        done += count;
        if (outputs != nullptr) outputs->grow(done);
        if (const auto all = growth.promised(); all && options.progress)
            options.progress(static_cast<double>(done) / static_cast<double>(*all));
    }
    run.add_pass(report);
    run.report()["followed"] = {{"lines", done}};
    if (const auto all = growth.promised(); all && done < *all)
        run.warn("'" + source.path() + "' ended after " + std::to_string(done) + " of the " +
                 counted(*all, "line") + " that its header states");
    if (growth.ends_with_zeros(done))
        run.warn("'" + source.path() +
                 "' ends with lines of zeros: if the recorder creates the file at full size, these lines had "
                 "not been written yet. Run it again without -follow when the file is complete");
    if (const std::string lost = growth.header_fault(); !lost.empty())
        run.warn(lost + "; the earlier values were used");
    if (const auto late = growth.late_fields(); !late.empty())
        run.warn("the header of '" + source.path() + "' did not state " + joined(late, ", ") +
                 " when the run began, so the results do not either: run it again without -follow to include "
                 "them");
    auto whole = source.grown_to(done);
    RunAccess::state(run).source_has_grown(whole);
    run.note(counted(done, "line") + " of " + source.path());
    return whole;
}

void check_last_line(Run& run, const raster::RasterSource& source) {
    const raster::Growth* const growth = source.growth();
    const std::string incomplete = growth != nullptr ? growth->rest() : std::string();
    if (incomplete.empty()) return;
    run.keep_outputs();
    throw Error(incomplete, "The output is complete for the " + counted(source.shape().lines, "whole line") +
                                " before it, and is kept.");
}

} // namespace hsi::tool
