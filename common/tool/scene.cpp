// SPDX-License-Identifier: MIT
#include "tool/scene.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "stream/statistics_scan.h"
#include "tool/passes.h"
#include "tool/words.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

namespace hsi::tool {

void check_spectrum(const raster::RasterSource& source, const std::string& what) {
    if (source.shape().bands >= 2) return;
    throw UsageError("-b: " + std::to_string(source.shape().bands) + " band of " + source.path() +
                         " is not a spectrum: " + what + " needs at least 2 bands",
                     "Choose more bands with -b, or keep bad bands with -bbl ignore.");
}

void report_invalid(Run& run, int64_t valid, int64_t invalid, const char* fate) {
    run.report()["valid_pixels"] = valid;
    run.report()["invalid_pixels"] = invalid;
    if (invalid > 0)
        run.note(std::to_string(invalid) + " of " + counted(valid + invalid, "pixel") +
                 worded(invalid, " is", " are") + " invalid (nodata, masked, NaN or all zero) " + fate);
}

Scene::Scene(Run& run, std::string what) : Scene(run, run.open_source(), std::move(what)) {}

Scene::Scene(Run& run, std::shared_ptr<raster::RasterSource> source, std::string what)
    : m_run(run), m_what(std::move(what)), m_raster(std::move(source)), m_cube(m_raster) {
    if (!m_what.empty()) check_spectrum(*m_raster, m_what);
}

void Scene::report_counted(int64_t valid, int64_t invalid) {
    if (m_run.mask()) m_run.report()["mask"]["valid_pixels"] = valid;
    if (!m_run.masks_statistics() || m_join) {
        if (m_fate != nullptr) report_invalid(m_run, valid, invalid, m_fate);
        return;
    }
    // The validity of pixels outside of the mask is unknown.
    const int64_t inside = m_run.mask()->count();
    m_run.report()["mask"]["invalid_pixels"] = inside - valid;
    if (inside > valid)
        m_run.note(std::to_string(inside - valid) + " of " + hsi::counted(inside, "pixel") + " in the mask" +
                   worded(inside - valid, " is", " are") +
                   " invalid (nodata, masked, NaN or all zero) and left out of the statistics");
}

void Scene::warn_of_other_magnitudes(const std::vector<double>& mean) const {
    constexpr double far = 1e6;
    if (mean.size() < 3) return;
    std::vector<double> sizes;
    for (const double m : mean)
        sizes.push_back(std::fabs(m));
    const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
    std::nth_element(sizes.begin(), middle, sizes.end());
    std::vector<int> bands;
    double first = 0;
    for (size_t b = 0; b < mean.size(); ++b) {
        if (!(*middle > 0) || std::fabs(mean[b]) <= far * *middle) continue;
        if (bands.empty()) first = mean[b];
        bands.push_back(m_raster->bands()[b]);
    }
    if (bands.empty()) return;
    char means[100];
    std::snprintf(means, sizeof means, "has a mean of %.3g, but other bands have about %.3g", first, *middle);
    m_run.warn("band " + list_text(bands) + " " + means +
               ": fill values may not be marked as nodata. State them with -srcnodata, or leave the band out "
               "with -b");
}

bool Scene::scan_pass(const stream::CubeSource& cube, stream::Operation& operation,
                      const stream::PassOptions& options) {
    if (!m_watching) {
        if (!run_pass(m_run, cube, operation, {}, options)) return false;
    } else {
        stream::RangeWatch watch(cube);
        watch.find_with(m_find);
        if (!run_pass(m_run, watch, operation, {}, options)) return false;
        watch.exchange(m_run.ranks());
        m_minimum = watch.minimum();
        m_maximum = watch.maximum();
    }
    seal(*m_cube);
    return true;
}

BandedSource Scene::banded() {
    return {m_cube ? counted() : nullptr, m_raster->bands(), [this](const std::vector<int>& empty) {
                m_raster = m_raster->without_bands(empty);
                m_cube = m_raster;
                if (!m_what.empty()) check_spectrum(*m_raster, m_what);
            }};
}

} // namespace hsi::tool
