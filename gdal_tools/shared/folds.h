// SPDX-License-Identifier: MIT
// The files of a cross-validation: gdal_hsi_sample -folds writes them, gdal_hsi_accuracy -folds reads them.
#pragma once

#include <string>
#include <vector>

namespace hsi::tools {

inline constexpr int most_folds = 1000;

/// "out/train.tif", fold 2: "out/train_2.tif"; without an extension "train_2".
inline std::string file_of_fold(const std::string& path, int fold) {
    const size_t slash = path.rfind('/'), name = slash == std::string::npos ? 0 : slash + 1;
    const size_t point = path.rfind('.');
    const size_t end = point == std::string::npos || point <= name ? path.size() : point;
    return path.substr(0, end) + "_" + std::to_string(fold) + path.substr(end);
}

/// "fold 2", "folds 2, 4, 5", and of many "folds 1, 2, 3 .. (12 of them)".
inline std::string folds_text(const std::vector<int>& folds) {
    constexpr size_t most = 8, first = 3;
    std::string text = folds.size() == 1 ? "fold " : "folds ";
    const size_t told = folds.size() > most ? first : folds.size();
    for (size_t i = 0; i < told; ++i)
        text += (i > 0 ? ", " : "") + std::to_string(folds[i]);
    return told == folds.size() ? text : text + " .. (" + std::to_string(folds.size()) + " of them)";
}

} // namespace hsi::tools
