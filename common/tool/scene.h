// SPDX-License-Identifier: MIT
// The start of a tool that works through a scene: it is opened, checked, scanned and reported. Bands without
// a value, which would leave no pixel valid, are left out; a scene that is slow to read is kept in memory.
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

/// Throws UsageError for a scene of one band: `what` ("SPP", "PCA") needs spectra.
void check_spectrum(const raster::RasterSource& source, const std::string& what);

/// Pixels without a value, into the report and, when there are any, to the user: "... and stay without a
/// value".
void report_invalid(Run& run, int64_t valid, int64_t invalid, const char* fate = "and left without a value");

class Scene {
  public:
    /// Opens src. `what` needs a spectrum (check_spectrum()); empty: any count of bands is allowed.
    Scene(Run& run, std::string what);
    /// A source that is open already.
    Scene(Run& run, std::shared_ptr<raster::RasterSource> source, std::string what);

    Run& run() const { return m_run; }
    stream::CubeShape shape() const { return m_raster->shape(); }
    /// The bands that are left.
    const std::shared_ptr<raster::RasterSource>& raster() const { return m_raster; }
    /// The cube to read: the file, or its copy in memory after the first scan().
    const stream::CubeSource& cube() const { return *m_cube; }
    /// The same for statistics: without values outside of the run's mask.
    std::shared_ptr<const stream::CubeSource> counted() const {
        auto cube = m_run.masked(m_cube);
        return m_join ? m_join(std::move(cube), *m_raster) : cube;
    }
    /// From now on this function makes counted() from it, and from its raster: src together with further
    /// scenes.
    using Join = std::function<std::shared_ptr<const stream::CubeSource>(
        std::shared_ptr<const stream::CubeSource>, const raster::RasterSource&)>;
    void join(Join join) { m_join = std::move(join); }
    /// A copy in memory is needed no more.
    void release() { m_cube = m_raster; }
    /// From now on a scan looks at the bands' extremes, too (of pixels on a grid: stream::RangeWatch).
    /// find: stream::RangeWatch::find_with(); may be null.
    void watch_values(stream::RangeWatch::FindExtremes find = {}) {
        m_watching = true;
        m_find = std::move(find);
    }
    const std::vector<float>& minimum() const { return m_minimum; } ///< by band
    const std::vector<float>& maximum() const { return m_maximum; }

    /// One pass over the whole scene, or with a mask over counted(), that finds the valid pixels. make()
    /// makes its operation for shape(): a unique_ptr to an operation whose result() has valid_pixels,
    /// invalid_pixels and empty_bands(). When no pixel is valid and some bands hold no value, these are left
    /// out and the scan is repeated. `pass` makes its options. Returns the result; with -dry-run the
    /// operation's assumed() result, and without one the run ends. \throws Error when no pixel is valid.
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
            m_cube.reset(); // a copy in memory is removed before the next one comes
            if (!leave_out_bands(m_run, {banded()}, result.empty_bands()))
                throw no_valid_pixel(*m_raster, m_run.mask() != nullptr);
        }
    }
    /// The same with a pass of the run's own: `name`, and its share of the progress.
    template <class Make>
    auto scan(const std::string& name, double share, Make make) {
        return scan(std::move(make), [&](bool again) { return m_run.pass(name, again ? 0.0 : share); });
    }
    /// The scan is the only pass, or dst is computed when it is read: nothing is kept in memory for a second
    /// pass.
    void read_once() { m_read_once = true; }
    /// The treatment of invalid pixels, for report_invalid(); null: it is reported later.
    void set_fate(const char* fate) { m_fate = fate; }

    /// Reports how many pixels statistics cover; `invalid` counts those outside of a mask, too. Prints it
    /// unless the fate is null, and puts it into the report.
    void report_counted(int64_t valid, int64_t invalid);

    /// tool::attempt() for this scene; empty bands are looked for in counted(). \throws UsageError if the
    /// remaining bands are not a spectrum.
    template <class Work>
    bool attempt(Work work) {
        return tool::attempt(m_run, {banded()}, std::move(work));
    }

  private:
    BandedSource banded();
    /// Warns of bands whose mean is a million times the others': they hold fill values.
    void warn_of_other_magnitudes(const std::vector<double>& mean) const;
    /// run_pass(), with the extremes where they are watched.
    bool scan_pass(const stream::CubeSource& cube, stream::Operation& operation,
                   const stream::PassOptions& options);

    Run& m_run;
    std::string m_what;
    std::shared_ptr<raster::RasterSource> m_raster;
    std::shared_ptr<stream::CubeSource> m_cube; ///< null while a scan is repeated
    const char* m_fate = "and left without a value";
    bool m_watching = false, m_read_once = false;
    stream::RangeWatch::FindExtremes m_find;
    Join m_join; ///< null: src alone
    std::vector<float> m_minimum, m_maximum;
};

} // namespace hsi::tool
