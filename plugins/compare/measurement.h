// SPDX-License-Identifier: MIT
// A whole comparison: its passes, their order, and their results.
#pragma once

#include "compare/compare.h"
#include "stream/cube_source.h"
#include "stream/operation.h"

#include <functional>
#include <string>
#include <vector>

namespace hsi::compare {

/// All results of a comparison.
struct Findings : Compared {
    std::vector<Metric> spectral; ///< the requested spectral metrics, in their order
    bool has_ssim = false, has_sr = false;
    std::vector<double> sr; ///< simplification ratio of each band; empty without sr
    Zones zones;            ///< empty without sr
};

class Measurement {
  public:
    /// Runs one pass; `share` is its fraction of the whole work.
    using Pass = std::function<void(const std::string& name, double share, stream::Operation& operation,
                                    const std::vector<stream::CubeSink*>& sinks)>;
    using Show = std::function<void(const std::string& name, const stream::Operation& operation)>;

    /// metrics: without repetition. parts: bands into which each value of the cubes is divided (compare.h).
    explicit Measurement(const std::vector<Metric>& metrics, int parts = 1);

    /// Returns the metrics with one value per pixel, which are the bands of a map: all except sr.
    const std::vector<Metric>& local() const { return m_local; }

    /// Calls `pass` with the name and the operation of each pass, for plans; runs nothing. both: a
    /// stream::StackedSource of the two cubes.
    void show(const stream::CubeSource& both, bool map, const Show& pass) const;

    /// Runs the passes over both cubes. If open_map is not empty, it is called before the pass that writes
    /// the map, and returns a sink with one band per metric of local(). If no pixel is valid in both cubes,
    /// the counts show this, and the other results are empty.
    Findings run(const stream::CubeSource& both, const std::function<stream::CubeSink*()>& open_map,
                 const Pass& pass) const;

  private:
    std::vector<Metric> m_local, m_spectral;
    int m_parts;
    bool m_ssim = false, m_sr = false;
    bool ranged() const { return m_ssim || m_sr; }
    double share() const; ///< Returns the fraction of the whole work for one pass.
};

} // namespace hsi::compare
