// SPDX-License-Identifier: MIT
// Quality layers that providers deliver with a scene (clouds, shadows, water, glint): flags with names, and a
// mask of the pixels in which selected flags are set.
#pragma once

#include "raster/labels.h"
#include "raster/raster_source.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hsi::raster {

/// An item of -mask-flags, such as "cloud", "not-land" or "aot550>0.3".
struct FlagItem {
    enum class Test { holds, holds_not, above, from, below, up_to, equal };
    std::string text; ///< the item as the user wrote it
    std::string name;
    Test test = Test::holds;
    double value = 0; ///< threshold of a comparison

    /// Returns whether a pixel with this value of the flag is marked. A flag without a comparison is set if
    /// its value is at least 0.5.
    bool marks(double flag) const;
};

/// Parses lists of items that are separated by commas. \throws UsageError that names -mask-flags for an empty
/// item and for an item that cannot be parsed.
std::vector<FlagItem> flag_items(const std::vector<std::string>& lists);

/// Returns the name in a form in which spelling variants are equal: in lower case, without blanks, '_' and
/// '-', and without the ending "flag" or "mask".
std::string plain_flag_name(std::string_view name);

/// A flag of a scene.
struct QualityFlag {
    std::string name, also; ///< also: a second name of the flag; empty if it has only one
    std::string file;       ///< file with the values of the flag
};

/// Returns the flags of the scene's product; for a virtual scene, of the product from which it is computed.
/// If there are none, returns the flags in the scene's own file if it is a quality file: an EMIT mask, or a
/// raster without wavelengths whose bands have descriptions. Empty if there are no flags. \throws Error for a
/// layer that cannot be read.
std::vector<QualityFlag> quality_flags_of(const RasterSource& scene);

/// A mask, and the paths of the rasters from which its flags are read.
struct FlagMask {
    std::unique_ptr<LabelSource> source;
    std::vector<std::string> files;
};

/// Returns a mask on the grid of the scene. It marks the pixels for which an item is true, and the pixels in
/// which a layer of an item has a fill value. `file` is the file with the layers; empty: the files of the
/// scene's product. \throws Error if there are no flags, for an unknown name, and for a layer on another grid
/// than the scene. For an unknown name, the message lists the existing names.
FlagMask open_flag_mask(const RasterSource& scene, const std::string& file,
                        const std::vector<FlagItem>& items);

} // namespace hsi::raster
