// SPDX-License-Identifier: MIT
#include "fitted_library.h"

#include "core/error.h"

#include <algorithm>
#include <cmath>

namespace hsi::tools {

raster::SpectralLibrary fit_library(const raster::SpectralLibrary& library, const std::string& role,
                                    const std::string& path, size_t bands,
                                    const std::vector<double>& wavelengths_nm) {
    const auto &a = library.wavelengths_nm, &b = wavelengths_nm;
    const auto near = [](double x, double y) { return !(std::fabs(x - y) > 0.5); };
    if (library.bands() == bands &&
        (a.empty() || b.empty() || std::equal(a.begin(), a.end(), b.begin(), near)))
        return library;
    if (a.empty() || b.empty())
        throw Error(role + " " + path + " has " + std::to_string(library.bands()) + " bands, the scene " +
                        std::to_string(bands) + ", and there are no wavelengths to fit them by",
                    "Give a library with the scene's bands, or choose bands with -b.");
    return raster::resampled(library, b);
}

std::vector<size_t> common_bands(const raster::SpectralLibrary& fitted, const std::string& role,
                                 const std::string& path) {
    std::vector<size_t> common;
    for (size_t b = 0; b < fitted.bands(); ++b)
        if (std::all_of(fitted.spectra.begin(), fitted.spectra.end(),
                        [&](const auto& x) { return std::isfinite(x[b]); }))
            common.push_back(b);
    if (common.size() < 2)
        throw Error(role + " " + path +
                    ": its wavelengths and the scene's have fewer than 2 bands in common");
    return common;
}

} // namespace hsi::tools
