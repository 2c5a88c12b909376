// SPDX-License-Identifier: MIT
// Shared code of tools that make or apply models: describes a scene's bands, and checks whether its values
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

/// Returns the band numbers and wavelengths of a scene, by which models, libraries and other scenes identify
/// its bands.
model::SceneBands scene_bands(const raster::RasterSource& scene);

/// Copies band numbers, names, wavelengths, scale, offset and unit of the scene to a model that is made from
/// it.
void describe_bands(const raster::RasterSource& scene, model::ModelBands& model);

/// Returns the tool with its version, and the command line.
model::Origin origin_of(const Run& run);

/// Adds the option -any-wavelengths.
void add_any_wavelengths(Builder& args, bool& any_wavelengths, const char* with = "");

/// A scene with only the bands that a model needs. `matched`: for each band of the model, the index of its
/// band in `source`.
struct MatchedSource {
    std::shared_ptr<raster::RasterSource> source;
    std::vector<int> matched; ///< 0-based
};
/// Selects bands by model::match_bands(). Leaves out bands that the model does not use, so that they cannot
/// make pixels invalid.
MatchedSource match_source(Run& run, const std::shared_ptr<raster::RasterSource>& source,
                           const std::string& file, const model::ModelBands& model, bool any_wavelengths,
                           model::BandsOf whose = model::BandsOf::model);

/// Returns `source` with only the bands of `first`, in their order. `first` is the path of another scene, or
/// of statistics of scenes, and `bands` are its bands. Bands are matched as for a model. \throws Error that
/// names the scene `name`, also if its values have another scale than the values of `first`
std::shared_ptr<raster::RasterSource> match_scene(Run& run,
                                                  const std::shared_ptr<raster::RasterSource>& source,
                                                  const std::string& name, const std::string& first,
                                                  const model::ModelBands& bands);

/// Adds the option -any-scale.
void add_any_scale(Builder& args, bool& any_scale, const char* with = "");

/// Returns scale, offset and unit of the scene for each band of a model. `matched`: the scene's band
/// (0-based) of each of the model's bands; empty: the bands are the same.
model::ValueScale value_scale(const raster::RasterSource& scene, const std::vector<int>& matched = {});

/// Returns the conversion of the scene's values to the scale of the model in `file`, and states it in a note
/// and the report. With any_scale, the scales are not compared, which the report states. Warns if units
/// differ and scales agree. Throws Error if the scales contradict and cannot be converted.
model::Rescaling compare_scales(Run& run, const std::string& file, const model::ModelBands& model,
                                const model::ValueScale& scene, bool any_scale);

/// Checks, during the pass that applies a model, whether the scene's values are similar to the values that
/// the model was made from.
class RangeCheck {
  public:
    /// `model` must already refer to the scene's values (rescaled). `cube` must outlive this object.
    RangeCheck(const stream::CubeSource& cube, const model::ModelBands& model,
               const std::vector<int>& matched = {});
    /// Returns the source that the pass must read.
    const stream::CubeSource& source() const { return m_watch; }
    /// Reads some lines of the scene. Call this function if the pass reads another source.
    void look() const { m_watch.look(); }
    /// Adds the fraction of pixels far outside of the model's range to the report, and warns from 1 % on.
    /// Call this function after the pass. `range`: the end of "the range that ..." in the warning.
    void tell(Run& run, const std::string& range = "the model was made from") const;

  private:
    model::ModelBands m_model;
    stream::RangeWatch m_watch;
};

} // namespace hsi::tool
