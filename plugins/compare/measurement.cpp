// SPDX-License-Identifier: MIT
#include "compare/measurement.h"

#include <memory>

namespace hsi::compare {

Measurement::Measurement(const std::vector<Metric>& metrics, int parts) : m_parts(parts) {
    for (Metric m : metrics) {
        if (m == Metric::ssim) m_ssim = true;
        if (m == Metric::sr)
            m_sr = true;
        else
            m_local.push_back(m);
        if (is_spectral(m)) m_spectral.push_back(m);
    }
}

double Measurement::share() const {
    return 1.0 / ((ranged() ? 1 : 0) + (m_sr ? 2 : 0) + (m_local.empty() ? 0 : 1));
}

void Measurement::show(const stream::CubeSource& both, bool map, const Show& pass) const {
    const auto shape = both.shape();
    const int bands = shape.bands / (2 * m_parts);
    const auto count = static_cast<size_t>(bands);
    const Ranges none{std::vector<std::array<double, 2>>(count), std::vector<std::array<double, 2>>(count)};
    if (ranged()) pass("ranges", *make_range_scan(bands, m_parts));
    if (m_sr) {
        const Thresholds split{std::vector<int>(count), std::vector<int>(count)};
        pass("thresholds", *make_threshold_scan(bands, none, m_parts));
        pass("zones", *make_zone_scan(bands, shape.samples, none, split, m_parts));
    }
    if (!m_local.empty()) pass("compare", *make_comparison(bands, m_local, map, none, m_parts));
}

Findings Measurement::run(const stream::CubeSource& both, const std::function<stream::CubeSink*()>& open_map,
                          const Pass& pass) const {
    const auto shape = both.shape();
    const int bands = shape.bands / (2 * m_parts);
    Findings f;
    f.spectral = m_spectral;
    f.has_ssim = m_ssim;
    f.has_sr = m_sr;
    Ranges ranges;
    if (ranged()) {
        const auto scan = make_range_scan(bands, m_parts);
        pass("ranges", share(), *scan, {});
        ranges = scan->result();
    }
    if (m_sr) {
        const auto split = make_threshold_scan(bands, ranges, m_parts);
        pass("thresholds", share(), *split, {});
        const auto scan = make_zone_scan(bands, shape.samples, ranges, split->result(), m_parts);
        pass("zones", share(), *scan, {});
        f.zones = scan->result();
        for (size_t k = 0; k < f.zones.first.size(); ++k)
            f.sr.push_back(static_cast<double>(f.zones.second[k]) / static_cast<double>(f.zones.first[k]));
    }
    // If sr is the only metric, the next pass only counts the pixels.
    const auto scan = make_comparison(bands, m_local, open_map != nullptr, ranges, m_parts);
    std::vector<stream::CubeSink*> sinks;
    if (open_map) sinks.push_back(open_map());
    pass("compare", share(), *scan, sinks);
    static_cast<Compared&>(f) = scan->result();
    return f;
}

} // namespace hsi::compare
