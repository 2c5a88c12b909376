// SPDX-License-Identifier: MIT
// Finds the bands of a scene that a user chose by number or wavelength (parsed in tool/words.cpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// An item of -b or -exclude-range.
struct BandChoice {
    int first = 0, last = 0; ///< band numbers, counted from 1; 0: the item selects bands by wavelength
    double from_nm = 0, to_nm = 0;
    bool nearest = false;      ///< only the band nearest to from_nm
    std::string text;          ///< the item as the user wrote it
    std::string option = "-b"; ///< option that contains the item, for messages
};

/// The facts about a band of the scene by which it is chosen.
struct BandAt {
    int number = 0;           ///< 1-based
    double wavelength_nm = 0; ///< NaN: unknown
    bool good = true;         ///< false: excluded from choices by wavelength
};

/// Returns the numbers of the bands that `choices` select, in the order of the choices, each once. A range of
/// wavelengths includes both ends, and its bands are in the order of `bands`. A band that is selected as the
/// nearest band must be at most one band spacing away from the wavelength, or 5 nm if the spacing is smaller.
/// `scene` is the scene's name in messages. \throws UsageError for a band number that the scene does not
/// have; Error for a scene without wavelengths and for a wavelength or range without a band.
std::vector<int> bands_of(const std::vector<BandChoice>& choices, const std::vector<BandAt>& bands,
                          const std::string& scene);

/// Returns the item whose range contains this wavelength; null if no range contains the wavelength.
const BandChoice* range_around(const std::vector<BandChoice>& ranges, double wavelength_nm);

} // namespace hsi::raster
