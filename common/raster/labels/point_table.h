// SPDX-License-Identifier: MIT
// Tables of labelled points with x, y and class in each text line, as spreadsheets, GPS receivers and
// programs write them.
#pragma once

#include "core/text.h"
#include "raster/drivers.h"
#include "raster/labels.h"

#include <algorithm>
#include <memory>
#include <string>

namespace hsi::raster {

/// Returns false if a file with the extension of `path` is never read as a table of points.
inline bool may_be_point_table(const std::string& path) {
    const std::string extension = extension_of(path);
    const auto names = {"csv", "tsv", "txt", "xyz", "dat"};
    return std::any_of(names.begin(), names.end(),
                       [&](const char* name) { return equal_names(extension, name); });
}

/// Reads a table of points as labels. Columns without positions become fields. Returns null if the file is
/// not a table of points, or if open options are given. A .csv or .tsv is always a table of points, unless it
/// has a column of WKT. A .txt, .xyz or .dat is a table of points if one of its columns has the name of a
/// class column or of LabelOptions::field; for a mask, if it has columns of positions. Other files may be
/// grids for GDAL's XYZ driver.
///
/// The names of columns give their meaning: x and y, easting and northing (assumed to be in the grid's SRS);
/// lon and lat (WGS 84); sample and line (pixels of the grid, from 0). The columns x and y also mean degrees
/// if all values can be degrees, and no point would be on the grid if the values were coordinates in the
/// grid's SRS. \throws Error that names the file if columns have no names or no positions, a coordinate is
/// not a number or not an angle, the file has more than 512 MB, or rows have different lengths. Also throws
/// as LabelSource::open() does.
std::unique_ptr<LabelSource> open_point_table(const LabelOptions& options, const Grid* grid);

/// Returns true if a column of this name contains classes: class, class_id, class_name, label and similar
/// names.
bool names_class_column(const std::string& name);

} // namespace hsi::raster
