// SPDX-License-Identifier: MIT
// The files of a cross-validation: gdal_hsi_sample -folds writes them, and gdal_hsi_accuracy -folds reads
// them.
#pragma once

#include "core/file_path.h"

#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace hsi::tools {

inline constexpr int most_folds = 1000;

/// Returns the parts of a path before and after the number of a fold. For "out/train.tif" they are
/// "out/train_" and ".tif".
inline std::pair<std::string, std::string> around_fold(const std::string& path) {
    const size_t slash = path.rfind('/'), name = slash == std::string::npos ? 0 : slash + 1;
    const size_t point = path.rfind('.');
    const size_t end = point == std::string::npos || point <= name ? path.size() : point;
    return {path.substr(0, end) + "_", path.substr(end)};
}

/// Returns the path of a fold. For fold 2 of "out/train.tif" it is "out/train_2.tif"; for "train" it is
/// "train_2".
inline std::string file_of_fold(const std::string& path, int fold) {
    const auto [before, behind] = around_fold(path);
    return before + std::to_string(fold) + behind;
}

/// Returns the local files that have the names of folds above `folds`, in the order of the folds. Such files
/// remain from an earlier run with more folds.
inline std::vector<std::string> files_of_more_folds(const std::string& path, int folds) {
    const auto [before, behind] = around_fold(path);
    const std::string folder = folder_of(before), begin = name_of(before);
    std::map<int, std::string> found;
    std::error_code unknown;
    for (std::filesystem::directory_iterator at(folder, unknown), end; !unknown && at != end;
         at.increment(unknown)) {
        const std::string name = at->path().filename().string();
        if (name.size() <= begin.size() + behind.size() || name.compare(0, begin.size(), begin) != 0 ||
            name.compare(name.size() - behind.size(), behind.size(), behind) != 0)
            continue;
        const std::string digits = name.substr(begin.size(), name.size() - begin.size() - behind.size());
        if (digits.size() > 4 || digits[0] == '0' ||
            digits.find_first_not_of("0123456789") != std::string::npos)
            continue;
        if (const int fold = std::stoi(digits); fold > folds && fold <= most_folds)
            found[fold] = file_of_fold(path, fold);
    }
    std::vector<std::string> files;
    for (const auto& [fold, file] : found)
        files.push_back(file);
    return files;
}

/// Returns a list like "'a', 'b'" or, for many files, "'a', 'b', 'c' .. (12 of them)".
inline std::string some_files(const std::vector<std::string>& files) {
    constexpr size_t most = 4, first = 3;
    const size_t told = files.size() > most ? first : files.size();
    std::string text;
    for (size_t i = 0; i < told; ++i)
        text += (i > 0 ? ", '" : "'") + files[i] + "'";
    return told == files.size() ? text : text + " .. (" + std::to_string(files.size()) + " of them)";
}

/// Returns a text like "fold 2" or "folds 2, 4, 5" or, for many folds, "folds 1, 2, 3 .. (12 of them)".
inline std::string folds_text(const std::vector<int>& folds) {
    constexpr size_t most = 8, first = 3;
    std::string text = folds.size() == 1 ? "fold " : "folds ";
    const size_t told = folds.size() > most ? first : folds.size();
    for (size_t i = 0; i < told; ++i)
        text += (i > 0 ? ", " : "") + std::to_string(folds[i]);
    return told == folds.size() ? text : text + " .. (" + std::to_string(folds.size()) + " of them)";
}

} // namespace hsi::tools
