// SPDX-License-Identifier: MIT
// What every trained classifier says about its classes and the features that it wants.
#pragma once

#include "core/label_class.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hsi::model {

using ModelClass = hsi::LabelClass; ///< pixels: those that it was trained with

/// The scene's bands behind the features, and what their numbers mean.
struct ModelBands {
    std::vector<int> bands; ///< file bands (1-based), or those that the file told
    /// `bands` are numbers of the scene that the file had been made from; else of a file of `file_bands`.
    bool numbers_told = false;
    int file_bands = 0;                  ///< 0: unknown
    std::vector<std::string> band_names; ///< empty, or one a band
    std::vector<double> wavelengths_nm;  ///< empty, or one a band (NaN where unknown)

    /// number * value_scale + value_offset is what was measured: one a band, both empty when the scene did
    /// not say.
    std::vector<double> value_scale, value_offset;
    std::string value_unit; ///< empty: unknown
    /// Of the numbers that the model was made from, one a band; empty in old files.
    std::vector<double> minimum, maximum, mean;
};

/// Who made a model.
struct Origin {
    std::string created_by, history; ///< "gdal_hsi_pca 0.2.0", and the command line
};

/// How numbers of a scene become those that a model was made from: number * factor + shift, one a band; empty
/// when they are the same.
struct Rescaling {
    std::vector<double> factor, shift;
    bool none() const { return factor.empty(); }
};

/// What the numbers of a scene's bands mean, as in ModelBands.
struct ValueScale {
    std::vector<double> scale, offset;
    std::string unit;
};

/// What leads from the scene's numbers to the model's. Empty when they agree to a millionth, when the scene
/// says nothing, and when the model says nothing and the scene has one factor for all bands; bands with
/// factors of their own are led to a model that says nothing as to one with scale 1. Throws Error naming the
/// model's `file` and both scales when no positive factor leads from one to the other.
Rescaling rescaling(const std::string& file, const ModelBands& model, const ValueScale& scene);

/// Whether numbers of the scene mean what the model's do, to a millionth. What says nothing has scale 1 and
/// offset 0; units must be equal where both say theirs.
bool same_scale(const ModelBands& model, const ValueScale& scene);

/// Makes the model's range and scale those of the scene's numbers.
void rescale(ModelBands& model, const Rescaling& by, const ValueScale& scene);

/// "scale 0.0001", "scale 0.02, offset -10 W/m2", "scales from 0.01 to 0.03".
std::string scale_text(const ValueScale& values);

} // namespace hsi::model
