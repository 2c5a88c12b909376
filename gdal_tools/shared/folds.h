// SPDX-License-Identifier: MIT
// The files of a cross-validation: gdal_hsi_sample -folds writes them, gdal_hsi_accuracy -folds reads them.
#pragma once

#include <string>

namespace hsi::tools {

inline constexpr int most_folds = 1000;

/// "out/train.tif", fold 2: "out/train_2.tif"; without an extension "train_2".
inline std::string file_of_fold(const std::string& path, int fold) {
    const size_t slash = path.rfind('/'), name = slash == std::string::npos ? 0 : slash + 1;
    const size_t point = path.rfind('.');
    const size_t end = point == std::string::npos || point <= name ? path.size() : point;
    return path.substr(0, end) + "_" + std::to_string(fold) + path.substr(end);
}

} // namespace hsi::tools
