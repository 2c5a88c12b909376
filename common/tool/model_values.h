// SPDX-License-Identifier: MIT
// What tools that make or apply models share: what a scene says about its bands, and whether its numbers are
// those that a model was made for.
#pragma once

#include "model/band_match.h"
#include "model/classes.h"
#include "stream/value_range.h"
#include "tool/definition.h"

#include <memory>
#include <string>
#include <vector>

namespace hsi::tool {

/// By what models, libraries and other scenes know the bands of a scene.
model::SceneBands scene_bands(const raster::RasterSource& scene);

/// Band numbers, names, wavelengths, scale, offset and unit of the scene into a model that is made from it.
void describe_bands(const raster::RasterSource& scene, model::ModelBands& model);

/// The tool with its version, and the command line.
model::Origin origin_of(const Run& run);

/// -any-wavelengths
void add_any_wavelengths(Builder& args, bool& any_wavelengths, const char* with = "");

/// A scene with only the bands that a model wants, and for each of the model's bands where it stands there.
struct MatchedSource {
    std::shared_ptr<raster::RasterSource> source;
    std::vector<int> matched; ///< 0-based
};
/// By model::match_bands(). Bands that the model does not know are left out: they must not make pixels
/// invalid.
MatchedSource match_source(Run& run, const std::shared_ptr<raster::RasterSource>& source,
                           const std::string& file, const model::ModelBands& model, bool any_wavelengths,
                           model::BandsOf whose = model::BandsOf::model);

/// A scene whose bands are those of another, `first`, or of statistics of scenes: matched as a model's, alone
/// and in their order. \throws Error, also naming it as `name` when its numbers have another scale.
std::shared_ptr<raster::RasterSource> match_scene(Run& run,
                                                  const std::shared_ptr<raster::RasterSource>& source,
                                                  const std::string& name, const std::string& first,
                                                  const model::ModelBands& bands);

/// -any-scale
void add_any_scale(Builder& args, bool& any_scale, const char* with = "");

/// Scale, offset and unit of the scene, for each band of a model: `matched` holds the scene's band (0-based)
/// behind each; empty: band by band.
model::ValueScale value_scale(const raster::RasterSource& scene, const std::vector<int>& matched = {});

/// What leads from the scene's numbers to those that the model in `file` was made for; a note says so, and
/// the report. Not compared, with a word in the report, when any_scale. Different units of equal scales are a
/// warning. Throws Error when the two contradict and cannot be converted.
model::Rescaling compare_scales(Run& run, const std::string& file, const model::ModelBands& model,
                                const model::ValueScale& scene, bool any_scale);

/// Watches, beside the one pass that applies a model, whether the scene's values are such as the model was
/// made from.
class RangeCheck {
  public:
    /// `model` speaks of the scene's numbers already (rescaled). `cube` must outlive this.
    RangeCheck(const stream::CubeSource& cube, const model::ModelBands& model,
               const std::vector<int>& matched = {});
    /// What the pass shall read.
    const stream::CubeSource& source() const { return m_watch; }
    /// In the place of a pass over source(), where what is read is another one: reads some lines.
    void look() const { m_watch.look(); }
    /// After the pass: the share of pixels far outside of the model's range into the report; a warning from 1
    /// % on. `range`: what that is.
    void tell(Run& run, const std::string& range = "the model was made from") const;

  private:
    model::ModelBands m_model;
    stream::RangeWatch m_watch;
};

} // namespace hsi::tool
