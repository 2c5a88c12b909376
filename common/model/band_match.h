// SPDX-License-Identifier: MIT
// Which bands of a scene a model wants: one rule for all models.
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
    /// The numbers are those of the scene that the file was made from; else of the file itself, which has
    /// `file_bands`.
    bool told = false;
    int file_bands = 0; ///< 0: unknown
};

/// True when there are wavelengths and each is known.
bool all_known(const std::vector<double>& wavelengths);

/// Whether numbers of both mean the same: both tell them, one tells numbers that the other's file has, or
/// both files have as many bands.
bool comparable_numbers(const SceneBands& first, const SceneBands& second);
/// Of every number of the first where it stands in the second (0-based); -1: nowhere.
std::vector<int> common_numbers(const std::vector<int>& first, const std::vector<int>& second);

/// The bands that a model was made from. One that does not say what its numbers count (an older document)
/// tells them, unless they are 1, 2, 3 .., which are those of any file.
SceneBands bands_of(const ModelBands& model);

/// What the bands are of that a scene's are matched with.
enum class BandsOf { model, scenes };

/// For every band of the model the scene's (0-based, among those kept), none twice:
/// 1. where both know the wavelengths of all bands, the nearest, at most a quarter of the spacing of the
/// model's
///    bands away, and never less than 0.5 nm;
/// 2. else the bands of the model's own numbers, when there are more than it wants, or as many and all these
///    are among them;
/// 3. else, or when wavelengths are `ignored`, the bands in their order when there are as many as the model
///    wants, unless they are known to be others: the scene tells its numbers (SceneBands::told), or the
///    model's and the scene's are comparable_numbers(). Ignored and more: rule 2.
/// Throws Error, naming the model's `file` and the scene, when they do not fit; by rule 1 also how many bands
/// have no partner, and the first of them. Where `file` is another scene, or of scenes (`whose`), it says so.
std::vector<int> match_bands(const std::string& file, const ModelBands& model, const std::string& scene_name,
                             const SceneBands& scene, bool ignored, BandsOf whose = BandsOf::model);

/// For two scenes that both know the wavelengths of all bands: of every band of the first the second's
/// (0-based) that lies nearest, as near as rule 1 asks, none twice; -1 where there is none. Empty when one of
/// them does not know them.
std::vector<int> common_bands(const std::vector<double>& first_nm, const std::vector<double>& second_nm);

} // namespace hsi::model
