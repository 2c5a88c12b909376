// SPDX-License-Identifier: MIT
// Tables of labelled points: x, y and a class a line, as spreadsheets, GPS receivers and programs write them.
#pragma once

#include "core/text.h"
#include "raster/drivers.h"
#include "raster/labels.h"

#include <algorithm>
#include <memory>
#include <string>

namespace hsi::raster {

/// False where a file's name is none that such tables have.
inline bool may_be_point_table(const std::string& path) {
    const std::string extension = extension_of(path);
    const auto names = {"csv", "tsv", "txt", "xyz", "dat"};
    return std::any_of(names.begin(), names.end(),
                       [&](const char* name) { return equal_names(extension, name); });
}

/// Such a table as labels, its other columns being fields; null when the file is none: a .csv or .tsv always
/// is one, unless it has a column of WKT; a .txt, .xyz or .dat is when its columns have names and one of them
/// is that of classes (else it may be a grid of GDAL's XYZ driver).
///
/// Columns tell by their names what they are: x and y, easting and northing (the grid's SRS, assumed), lon
/// and lat (WGS 84; so are x and y when all might be degrees and none lies on the grid as it is), sample and
/// line (pixels of the grid, from 0). \throws Error naming the file: no names, no places, a coordinate that
/// is no number or no angle, more than 512 MB, lines of different lengths; and as LabelSource::open().
std::unique_ptr<LabelSource> open_point_table(const LabelOptions& options, const Grid* grid);

/// Whether a column of this name holds classes: class, class_id, class_name, label and their like.
bool names_class_column(const std::string& name);

} // namespace hsi::raster
