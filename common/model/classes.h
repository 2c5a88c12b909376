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

using ModelClass = hsi::LabelClass; ///< pixels: those that it was trained with

/// The scene's bands behind the features, and the meaning of their values.
struct ModelBands {
    std::vector<int> bands; ///< file bands (1-based), or the numbers that the file stated
    /// `bands` are numbers of the scene that the file had been made from; else of a file of `file_bands`.
    bool numbers_told = false;
    int file_bands = 0;                  ///< 0: unknown
    std::vector<std::string> band_names; ///< empty, or one a band
    std::vector<double> wavelengths_nm;  ///< empty, or one a band (NaN where unknown)

    /// number * value_scale + value_offset is the measured value: one per band, both empty when the scene did
    /// not state them.
    std::vector<double> value_scale, value_offset;
    std::string value_unit; ///< empty: unknown
    /// Statistics of the values that the model was made from, by band; empty in old files.
    std::vector<double> minimum, maximum, mean;
};

/// The maker of a model.
struct Origin {
    std::string created_by, history; ///< "gdal_hsi_pca 0.2.0", and the command line
};

/// How numbers of a scene become those that a model was made from: number * factor + shift, one a band; empty
/// when they are the same.
struct Rescaling {
    std::vector<double> factor, shift;
    bool none() const { return factor.empty(); }
};

/// The scale and offset of a scene's bands, as in ModelBands.
struct ValueScale {
    std::vector<double> scale, offset;
    std::string unit;
};

/// Returns the factors and offsets that turn the scene's values into the model's. Empty in three cases: they
/// agree to a millionth; the scene states no scale; the model states no scale and the scene has one factor
/// for all bands. If the model states no scale, bands with different factors are converted to scale 1. Throws
/// Error naming the model's `file` and both scales when no positive factor leads from one to the other.
Rescaling rescaling(const std::string& file, const ModelBands& model, const ValueScale& scene);

/// Whether values of the scene have the same meaning as the model's, to a millionth. A missing scale is 1 and
/// a missing offset 0; units must be equal if both are stated.
bool same_scale(const ModelBands& model, const ValueScale& scene);

/// Converts the model's range and scale to the scene's values.
void rescale(ModelBands& model, const Rescaling& by, const ValueScale& scene);

/// "scale 0.0001", "scale 0.02, offset -10 W/m2", "scales from 0.01 to 0.03".
std::string scale_text(const ValueScale& values);

} // namespace hsi::model
