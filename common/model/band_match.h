// SPDX-License-Identifier: MIT
// Finds the bands of a scene that a model needs, by one rule for all models.
#pragma once

#include "model/classes.h"

#include <string>
#include <vector>

namespace hsi::model {

/// The bands of a scene or a library: their numbers (1-based) and their wavelengths in nm (empty, or one per
/// band, NaN if unknown).
struct SceneBands {
    std::vector<int> numbers;
    std::vector<double> wavelengths_nm;
    /// True if the numbers refer to the scene that the file was made from. Otherwise they refer to the file
    /// itself, which has `file_bands` bands.
    bool told = false;
    int file_bands = 0; ///< number of bands of the file; 0: unknown
};

/// Returns true if there are wavelengths and all are known.
bool all_known(const std::vector<double>& wavelengths);

/// Returns whether the band numbers of both have the same meaning. This is so in three cases: both refer to
/// the original scene; one refers to the original scene, and the other file has bands with all these numbers;
/// or both files have the same number of bands.
bool comparable_numbers(const SceneBands& first, const SceneBands& second);
/// Returns the index in `second` (0-based) of every number in `first`; -1 if absent.
std::vector<int> common_numbers(const std::vector<int>& first, const std::vector<int>& second);

/// Returns the bands that a model was made from. Older documents do not state whether their numbers refer to
/// the original scene. This is assumed, unless the numbers are 1, 2, 3 .., which exist in any file.
SceneBands bands_of(const ModelBands& model);

/// States whether a scene's bands are matched with the bands of a model or of another scene.
enum class BandsOf { model, scenes };

/// Returns the scene's band (0-based, among the bands in use) for every band of the model. Each band of the
/// scene is used at most once. The first rule whose condition is met decides:
/// 1. All wavelengths of the model and of the scene are known: uses the nearest bands. The distance of a band
///    must be at most a quarter of the spacing of the model's bands; distances up to 0.5 nm are always
///    accepted.
/// 2. The scene has bands with all of the model's numbers: uses these bands.
/// 3. The scene has as many bands as the model: uses the bands in their order. This rule does not apply if
///    the bands are known to differ, because the scene states its numbers (SceneBands::told), or because the
///    numbers of both are comparable_numbers().
/// If wavelengths are `ignored`, uses the bands in their order if the scene has as many bands as the model,
/// and otherwise rule 2.
/// Throws Error that names the model's `file` and the scene if the bands do not match. Under rule 1, the
/// message also states the number of bands without a match and the first of these bands. The message differs
/// if `file` is another scene (`whose`).
std::vector<int> match_bands(const std::string& file, const ModelBands& model, const std::string& scene_name,
                             const SceneBands& scene, bool ignored, BandsOf whose = BandsOf::model);

/// Matches two scenes in which the wavelengths of all bands are known. Returns for every band of the first
/// scene the nearest band of the second scene (0-based) within the limit of rule 1; -1 if no band matches.
/// Each band of the second scene is used at most once. Returns an empty list if the wavelengths of a scene
/// are unknown.
std::vector<int> common_bands(const std::vector<double>& first_nm, const std::vector<double>& second_nm);

} // namespace hsi::model
