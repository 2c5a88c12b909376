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

/// False if such tables do not have this extension.
inline bool may_be_point_table(const std::string& path) {
    const std::string extension = extension_of(path);
    const auto names = {"csv", "tsv", "txt", "xyz", "dat"};
    return std::any_of(names.begin(), names.end(),
                       [&](const char* name) { return equal_names(extension, name); });
}

/// Such a table as labels, with its other columns as fields; null if the file is not such a table. A .csv or
/// .tsv always is one, unless it has a column of WKT. A .txt, .xyz or .dat is one if its columns have names
/// and one of them is a class column (else it may be a grid of GDAL's XYZ driver).
///
/// The names of columns give their meaning: x and y, easting and northing (in the grid's SRS, by assumption);
/// lon and lat (WGS 84; so are x and y if all values can be degrees and no point is on the grid in its own
/// units); sample and line (pixels of the grid, from 0). \throws Error naming the file: no names, no
/// positions, a coordinate that is not a number or not an angle, more than 512 MB, lines of different
/// lengths; and as LabelSource::open().
std::unique_ptr<LabelSource> open_point_table(const LabelOptions& options, const Grid* grid);

/// Whether a column of this name holds classes: class, class_id, class_name, label and their like.
bool names_class_column(const std::string& name);

} // namespace hsi::raster
