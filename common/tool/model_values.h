// SPDX-License-Identifier: MIT
// Shared code of tools that make or apply models: a scene's description of its bands, and whether its values
// have the model's scale.
#pragma once

#include "model/band_match.h"
#include "model/classes.h"
#include "stream/value_range.h"
#include "tool/definition.h"

#include <memory>
#include <string>
#include <vector>

namespace hsi::tool {

/// The properties by which models, libraries and other scenes identify the bands of a scene.
model::SceneBands scene_bands(const raster::RasterSource& scene);

/// Band numbers, names, wavelengths, scale, offset and unit of the scene into a model that is made from it.
void describe_bands(const raster::RasterSource& scene, model::ModelBands& model);

/// The tool with its version, and the command line.
model::Origin origin_of(const Run& run);

/// -any-wavelengths
void add_any_wavelengths(Builder& args, bool& any_wavelengths, const char* with = "");

/// A scene with only the bands that a model wants, and the place of each of the model's bands in it.
struct MatchedSource {
    std::shared_ptr<raster::RasterSource> source;
    std::vector<int> matched; ///< 0-based
};
/// By model::match_bands(). Bands that the model does not know are left out: they must not make pixels
/// invalid.
MatchedSource match_source(Run& run, const std::shared_ptr<raster::RasterSource>& source,
                           const std::string& file, const model::ModelBands& model, bool any_wavelengths,
                           model::BandsOf whose = model::BandsOf::model);

/// A scene with the bands of another, `first`, or of statistics of scenes: matched as a model's, without
/// others and in their order. \throws Error, also naming it as `name` when its values have another scale.
std::shared_ptr<raster::RasterSource> match_scene(Run& run,
                                                  const std::shared_ptr<raster::RasterSource>& source,
                                                  const std::string& name, const std::string& first,
                                                  const model::ModelBands& bands);

/// -any-scale
void add_any_scale(Builder& args, bool& any_scale, const char* with = "");

/// Scale, offset and unit of the scene, for each band of a model: `matched` holds the scene's band (0-based)
/// behind each; empty: band by band.
model::ValueScale value_scale(const raster::RasterSource& scene, const std::vector<int>& matched = {});

/// The conversion of the scene's values to the scale of the model in `file`; a note and the report state it.
/// Not compared when any_scale, which the report states. Different units of equal scales are a warning.
/// Throws Error when the two contradict and cannot be converted.
model::Rescaling compare_scales(Run& run, const std::string& file, const model::ModelBands& model,
                                const model::ValueScale& scene, bool any_scale);

/// Checks, during the one pass that applies a model, whether the scene's values are like those that the model
/// was made from.
class RangeCheck {
  public:
    /// `model` speaks of the scene's numbers already (rescaled). `cube` must outlive this.
    RangeCheck(const stream::CubeSource& cube, const model::ModelBands& model,
               const std::vector<int>& matched = {});
    /// The source for the pass to read.
    const stream::CubeSource& source() const { return m_watch; }
    /// Reads some lines; for use if the pass reads another source.
    void look() const { m_watch.look(); }
    /// Call it after the pass: puts the share of pixels far outside of the model's range into the report;
    /// warns from 1 % on. `range`: the range's name.
    void tell(Run& run, const std::string& range = "the model was made from") const;

  private:
    model::ModelBands m_model;
    stream::RangeWatch m_watch;
};

} // namespace hsi::tool
