// SPDX-License-Identifier: MIT
// Scenes whose bands have scales of their own (PRISMA with its two cubes, an ENVI header with gains) where
// their spectra meet those of a library. One factor that all bands share turns no spectrum into another one:
// such numbers are taken as they are, and -library-scale is that factor. Where scales differ, or there is an
// offset, a spectrum is what the numbers mean, number * scale + offset: so the scene is read beside a
// library, and so its own spectra are written into one, to come back as they went.
#pragma once

#include "raster/source/raster_source.h"
#include "tool/definition.h"
#include "tool/run.h"

#include <memory>
#include <vector>

namespace hsi::tools {

/// -any-scale of tools that compare with spectra.
void add_numbers_as_they_are(tool::Call& call, bool& any_scale);

/// The scene as it is compared with spectra: what its numbers mean where one factor does not lead there, with
/// a note; else, and with any_scale, itself. The report's scale_applied says which.
std::shared_ptr<raster::RasterSource>
beside_spectra(tool::Run& run, const std::shared_ptr<raster::RasterSource>& scene, bool any_scale);

/// From a scene's numbers to spectra that are written; nothing to do where one factor leads there.
class BandScales {
  public:
    explicit BandScales(const raster::RasterSource& scene) : m_values(scene.band_values()) {}
    void to_meaning(std::vector<double>& spectrum) const;
    /// Differences between spectra (a standard deviation) know no offset.
    void difference_to_meaning(std::vector<double>& spectrum) const;
    /// A note where spectra are written as something else than numbers.
    void tell(tool::Run& run) const;

  private:
    raster::BandValues m_values;
};

} // namespace hsi::tools
