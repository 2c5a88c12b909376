// SPDX-License-Identifier: MIT
// The bands of a scene that a model needs: one rule for all models.
#pragma once

#include "model/classes.h"

#include <string>
#include <vector>

namespace hsi::model {

/// The bands that a scene or a library has: their numbers (1-based), and their wavelengths in nm (empty, or
/// one a band, NaN where unknown).
struct SceneBands {
    std::vector<int> numbers;
    std::vector<double> wavelengths_nm;
    /// The numbers count in the scene that the file was made from; else in the file itself, which has
    /// `file_bands`.
    bool told = false;
    int file_bands = 0; ///< 0: unknown
};

/// True when there are wavelengths and each is known.
bool all_known(const std::vector<double>& wavelengths);

/// Whether the numbers of both have the same meaning: both state them, one states numbers that the other's
/// file has, or both files have as many bands.
bool comparable_numbers(const SceneBands& first, const SceneBands& second);
/// For every number of the first, its place in the second (0-based); -1 if absent.
std::vector<int> common_numbers(const std::vector<int>& first, const std::vector<int>& second);

/// The bands that a model was made from. If an older document does not state what its numbers count, they are
/// taken as stated, unless they are 1, 2, 3 .., which any file has.
SceneBands bands_of(const ModelBands& model);

/// Whether a scene's bands are matched with those of a model or of another scene.
enum class BandsOf { model, scenes };

/// For every band of the model, the scene's band (0-based, among those kept), each at most once:
/// 1. where both know the wavelengths of all bands, the nearest, at most a quarter of the spacing of the
/// model's
///    bands away, and never less than 0.5 nm;
/// 2. else the bands of the model's own numbers, when there are more than it wants, or as many and all these
///    are among them;
/// 3. else, or when wavelengths are `ignored`, the bands in their order when there are as many as the model
///    wants, unless they are known to differ: the scene states its numbers (SceneBands::told), or the model's
///    and the scene's are comparable_numbers(). If wavelengths are ignored and the scene has more bands: rule
///    2.
/// Throws Error with the model's `file` and the scene when they do not fit; by rule 1 also the count of bands
/// without a partner, and the first such band. The message differs if `file` is another scene, or belongs to
/// scenes (`whose`).
std::vector<int> match_bands(const std::string& file, const ModelBands& model, const std::string& scene_name,
                             const SceneBands& scene, bool ignored, BandsOf whose = BandsOf::model);

/// For two scenes with known wavelengths of all bands: for every band of the first, the nearest band of the
/// second (0-based) within the limit of rule 1, each at most once; -1 without a partner. Empty if one of the
/// scenes does not know its wavelengths.
std::vector<int> common_bands(const std::vector<double>& first_nm, const std::vector<double>& second_nm);

} // namespace hsi::model
