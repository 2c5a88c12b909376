// SPDX-License-Identifier: MIT
#include "scaled_spectra.h"

#include "model/classes.h"

#include <cmath>
#include <cstddef>
#include <string>

namespace hsi::tools {
namespace {

std::string scale_text(const raster::BandValues& values) {
    return model::scale_text({values.scale, values.offset, values.unit});
}

} // namespace

void add_numbers_as_they_are(tool::Call& call, bool& any_scale) {
    call.flag("any-scale", any_scale,
              "Take the scene's numbers as they are where its bands have scales of their own, or offsets");
}

std::shared_ptr<raster::RasterSource>
beside_spectra(tool::Run& run, const std::shared_ptr<raster::RasterSource>& scene, bool any_scale) {
    const auto values = scene->band_values();
    const bool applied = !any_scale && !values.one_factor();
    run.report()["scale_applied"] = applied;
    if (!applied) return scene;
    run.note("Values: the scene's have " + scale_text(values) +
             ", which is applied before they are compared with spectra");
    return scene->scaled();
}

void BandScales::to_meaning(std::vector<double>& spectrum) const {
    if (m_values.one_factor()) return;
    for (size_t b = 0; b < spectrum.size(); ++b)
        spectrum[b] = spectrum[b] * m_values.scale[b] + m_values.offset[b];
}

void BandScales::difference_to_meaning(std::vector<double>& spectrum) const {
    if (m_values.one_factor()) return;
    for (size_t b = 0; b < spectrum.size(); ++b)
        spectrum[b] *= std::fabs(m_values.scale[b]);
}

void BandScales::tell(tool::Run& run) const {
    if (!m_values.one_factor())
        run.note("Values: the scene's have " + scale_text(m_values) +
                 "; spectra are written as number * scale + offset");
}

} // namespace hsi::tools
