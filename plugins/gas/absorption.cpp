// SPDX-License-Identifier: MIT
// The unit absorption spectrum of a gas from a table of radiances.
#include "gas/gas.h"
#include "math/elementary.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

namespace hsi::gas {

std::vector<double> unit_absorption(const RadianceTable& table, const std::vector<double>& centres,
                                    const std::vector<double>& widths) {
    const auto& x = table.wavelengths_nm;
    const auto& c = table.concentrations;
    const auto [least, greatest] = std::minmax_element(x.begin(), x.end());
    const auto count = static_cast<double>(c.size());
    const double mean_c = std::accumulate(c.begin(), c.end(), 0.0) / count;
    constexpr double full_to_deviation = 2.3548200450309493; // 2 sqrt(2 ln 2)
    std::vector<double> k(centres.size(), std::numeric_limits<double>::quiet_NaN());
    std::vector<double> response(x.size()), logs(c.size());
    for (size_t band = 0; band < centres.size(); ++band) {
        const double centre = centres[band], sigma = widths[band] / full_to_deviation;
        if (!(centre >= *least && centre <= *greatest) || !(sigma > 0)) continue;
        for (size_t i = 0; i < x.size(); ++i)
            response[i] = math::exp(-(x[i] - centre) * (x[i] - centre) / (2 * sigma * sigma));
        const double all = std::accumulate(response.begin(), response.end(), 0.0);
        for (size_t j = 0; j < c.size(); ++j)
            logs[j] = math::log(
                std::inner_product(response.begin(), response.end(), table.radiances[j].begin(), 0.0) / all);
        const double mean_l = std::accumulate(logs.begin(), logs.end(), 0.0) / count;
        double products = 0, squares = 0;
        for (size_t j = 0; j < c.size(); ++j) {
            products += (c[j] - mean_c) * (logs[j] - mean_l);
            squares += (c[j] - mean_c) * (c[j] - mean_c);
        }
        if (const double slope = products / squares; std::isfinite(slope)) k[band] = slope;
    }
    return k;
}

std::vector<NoiseBand> noise_at(const std::vector<double>& nm, const std::vector<NoiseBand>& rows,
                                const std::vector<double>& centres) {
    std::vector<NoiseBand> noise;
    for (const double centre : centres) {
        const auto after = std::clamp<ptrdiff_t>(std::upper_bound(nm.begin(), nm.end(), centre) - nm.begin(),
                                                 1, static_cast<ptrdiff_t>(nm.size()) - 1);
        const auto j = static_cast<size_t>(after), i = j - 1;
        const double part = (centre - nm[i]) / (nm[j] - nm[i]);
        const auto between = [part](double u, double v) { return u + part * (v - u); };
        noise.push_back(
            {between(rows[i].a, rows[j].a), between(rows[i].b, rows[j].b), between(rows[i].d, rows[j].d)});
    }
    return noise;
}

} // namespace hsi::gas
