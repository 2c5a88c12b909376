// SPDX-License-Identifier: MIT
// The classes of every trained classifier, and the features that it needs.
#pragma once

#include "core/label_class.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hsi::model {

using ModelClass = hsi::LabelClass; ///< `pixels` is the number of training pixels

/// The bands of the scene that the features come from, and the meaning of their values.
struct ModelBands {
    std::vector<int> bands; ///< 1-based; numbers_told states their meaning
    /// True if `bands` are numbers of the scene that the file was made from. Otherwise they refer to a file
    /// of `file_bands` bands.
    bool numbers_told = false;
    int file_bands = 0;                  ///< number of bands of this file; 0: unknown
    std::vector<std::string> band_names; ///< empty, or one per band
    std::vector<double> wavelengths_nm;  ///< empty, or one per band (NaN if unknown)

    /// stored value * value_scale + value_offset is the measured value. One per band; both are empty if the
    /// scene did not state them.
    std::vector<double> value_scale, value_offset;
    std::string value_unit; ///< empty: unknown
    /// Statistics by band of the values that the model was made from; empty in old files.
    std::vector<double> minimum, maximum, mean;
};

/// The tool and the command line that made a model.
struct Origin {
    std::string created_by, history; ///< tool with version ("gdal_hsi_pca 0.2.0"), and command line
};

/// Converts values of a scene to the scale of the values that a model was made from: value * factor + shift,
/// with one factor and shift per band. Both lists are empty if no conversion is needed.
struct Rescaling {
    std::vector<double> factor, shift;
    bool none() const { return factor.empty(); }
};

/// The scale and offset of a scene's bands, as in ModelBands.
struct ValueScale {
    std::vector<double> scale, offset;
    std::string unit;
};

/// Returns the factors and offsets that convert the scene's values to the model's. The result is empty in
/// three cases: both scales agree to a millionth; the scene states no scale; the model states no scale and
/// the scene has one factor for all bands. If the model states no scale and the scene's bands have different
/// factors, the values are converted to scale 1 and offset 0. Throws Error that names the model's `file` and
/// both scales if the units differ, or if no positive factor converts the values.
Rescaling rescaling(const std::string& file, const ModelBands& model, const ValueScale& scene);

/// Returns whether values of the scene have the same meaning as the model's, to a millionth. A missing scale
/// is 1 and a missing offset 0; units must be equal if both are stated.
bool same_scale(const ModelBands& model, const ValueScale& scene);

/// Converts the minimum, maximum and mean of the model to the scene's values, and gives the model the scale
/// and offset of the scene. Does nothing if `by` is empty.
void rescale(ModelBands& model, const Rescaling& by, const ValueScale& scene);

/// Returns "scale 0.0001", "scale 0.02, offset -10 W/m2" or "scales from 0.01 to 0.03".
std::string scale_text(const ValueScale& values);

} // namespace hsi::model
