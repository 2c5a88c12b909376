// SPDX-License-Identifier: MIT
// Opens, checks and scans the scene of a tool, and reports it. Leaves out bands without a value, which would
// make every pixel invalid, and keeps a scene in memory if it is slow to read.
#pragma once

#include "raster/raster_source.h"
#include "stream/pipeline.h"
#include "stream/value_range.h"
#include "tool/empty_bands.h"
#include "tool/passes.h"
#include "tool/run.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::tool {

/// Throws UsageError for a scene with one band: `what` ("SPP", "PCA") needs spectra.
void check_spectrum(const raster::RasterSource& source, const std::string& what);

/// Adds the numbers of valid and invalid pixels to the report. If there are invalid pixels, also prints a
/// note that ends with `fate`.
void report_invalid(Run& run, int64_t valid, int64_t invalid, const char* fate = "and left without a value");

class Scene {
  public:
    /// Opens src. `what` needs a spectrum (check_spectrum()); empty: any number of bands is allowed.
    Scene(Run& run, std::string what);
    /// Uses a source that is already open.
    Scene(Run& run, std::shared_ptr<raster::RasterSource> source, std::string what);

    Run& run() const { return m_run; }
    stream::CubeShape shape() const { return m_raster->shape(); }
    /// Returns the scene with its remaining bands.
    const std::shared_ptr<raster::RasterSource>& raster() const { return m_raster; }
    /// Returns the cube to read: the file, or its copy in memory after the first scan().
    const stream::CubeSource& cube() const { return *m_cube; }
    /// Returns the cube for statistics, with missing values outside of the run's mask.
    std::shared_ptr<const stream::CubeSource> counted() const {
        auto cube = m_run.masked(m_cube);
        return m_join ? m_join(std::move(cube), *m_raster) : cube;
    }
    /// Makes counted() return join(source, raster) from now on, which combines the source for statistics with
    /// further scenes. `raster` is src.
    using Join = std::function<std::shared_ptr<const stream::CubeSource>(
        std::shared_ptr<const stream::CubeSource>, const raster::RasterSource&)>;
    void join(Join join) { m_join = std::move(join); }
    /// Removes the copy in memory. Call this function when the copy is not needed any more.
    void release() { m_cube = m_raster; }
    /// Makes the next scans also find the minimum and maximum of each band, over pixels on a grid
    /// (stream::RangeWatch). find: see stream::RangeWatch::find_with(); may be null.
    void watch_values(stream::RangeWatch::FindExtremes find = {}) {
        m_watching = true;
        m_find = std::move(find);
    }
    const std::vector<float>& minimum() const { return m_minimum; } ///< one per band; see watch_values()
    const std::vector<float>& maximum() const { return m_maximum; }

    /// Makes one pass over counted(), which finds the valid pixels, and returns its result. make() creates
    /// the operation for shape(): a unique_ptr to an operation whose result() has valid_pixels,
    /// invalid_pixels and empty_bands(). `pass` returns the pass options. If no pixel is valid and some bands
    /// contain no value, leaves these bands out and repeats the scan. With -dry-run, no pass is made: returns
    /// the operation's assumed() result, or ends the run if the operation has none. \throws Error if no pixel
    /// is valid.
    template <class Make, class Pass>
    auto scan(Make make, Pass pass) {
        for (bool again = false;; again = true) {
            if (!m_read_once) m_cube = m_run.keep_if_slow(m_raster);
            auto cube = counted();
            const auto operation = make();
            auto options = pass(again);
            if (!scan_pass(*cube, *operation, options)) {
                if constexpr (requires { operation->assumed(); })
                    return operation->assumed();
                else
                    end_of_plan(m_run);
            }
            auto result = [&] {
                if constexpr (requires { operation->result(1); })
                    return operation->result(m_run.options().threads);
                else
                    return operation->result();
            }();
            if (result.valid_pixels > 0) {
                if constexpr (requires { result.mean; }) warn_of_other_magnitudes(result.mean);
                if constexpr (requires { result.moments; }) warn_of_other_magnitudes(result.moments.mean);
                report_counted(result.valid_pixels, result.invalid_pixels);
                return result;
            }
            cube.reset();
            m_cube.reset(); // removes a copy in memory before the next one is made
            if (!leave_out_bands(m_run, {banded()}, result.empty_bands()))
                throw no_valid_pixel(*m_raster, m_run.mask() != nullptr);
        }
    }
    /// Works as the function above with the options Run::pass(name, share).
    template <class Make>
    auto scan(const std::string& name, double share, Make make) {
        return scan(std::move(make), [&](bool again) { return m_run.pass(name, again ? 0.0 : share); });
    }
    /// Declares that the tool needs the scene only once: the scan is the only pass, or dst is computed when
    /// it is read. The scene is then not kept in memory.
    void read_once() { m_read_once = true; }
    /// Sets the end of the note about invalid pixels (`fate` in report_invalid()); null: the tool reports
    /// invalid pixels later.
    void set_fate(const char* fate) { m_fate = fate; }

    /// Reports how many pixels the statistics cover. `invalid` includes the pixels outside of a mask. Adds
    /// the number to the report, and prints it unless set_fate() was called with null.
    void report_counted(int64_t valid, int64_t invalid);

    /// Calls tool::attempt() for this scene; searches counted() for empty bands. \throws UsageError if the
    /// remaining bands are not a spectrum.
    template <class Work>
    bool attempt(Work work) {
        return tool::attempt(m_run, {banded()}, std::move(work));
    }

  private:
    BandedSource banded();
    /// Warns about bands whose mean is a million times the mean of the other bands: they contain fill values.
    void warn_of_other_magnitudes(const std::vector<double>& mean) const;
    /// Calls run_pass(), and finds the minimum and maximum of each band if watch_values() was called.
    bool scan_pass(const stream::CubeSource& cube, stream::Operation& operation,
                   const stream::PassOptions& options);

    Run& m_run;
    std::string m_what;
    std::shared_ptr<raster::RasterSource> m_raster;
    std::shared_ptr<stream::CubeSource> m_cube; ///< null while a scan is repeated
    const char* m_fate = "and left without a value";
    bool m_watching = false, m_read_once = false;
    stream::RangeWatch::FindExtremes m_find;
    Join m_join; ///< null: only src
    std::vector<float> m_minimum, m_maximum;
};

} // namespace hsi::tool
