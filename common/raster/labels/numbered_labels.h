// SPDX-License-Identifier: MIT
// Labels that are numbers of pixels: which numbers are classes, and which are none. It asks GDAL nothing:
// labels in memory follow the same rules as those of files.
#pragma once

#include "raster/labels.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

// Lines that are read or burned together. Vectors are burned in strips anchored at line 0 whatever the caller
// asks for, so that a pixel's label does not depend on how the scene is read.
inline constexpr int64_t strip_lines = 256;

/// The class that a number stands for, `none` for negative numbers and NaN; 0 is the class 0 where `none` is
/// another number. Throws Error when a positive number is no class.
uint16_t class_of(double v, uint16_t none, const std::string& path);
/// Whether a class of this name is one: empty names, numbers, "Unclassified", "no data" and their like tell
/// of none.
bool names_a_class(const std::string& name);
/// In UTF-8 and without blanks around it; what is not UTF-8 is taken for Latin-1.
std::string clean_name(const char* name);
/// "3 pixels hold negative numbers (the least is -1), which are taken for no label", of what `things` counts.
std::string negative_note(const std::string& path, const std::string& things, double least);

class NumberedLabels : public LabelSource {
  public:
    std::vector<std::string> reading_notes() const override;

  protected:
    /// The label that a number stands for (class_of()), counted; of a mask 1 where it is not 0.
    uint16_t label_of(double v);
    /// What 0 means; `name`: what the labels call it, empty when they do not. m_nodata is known.
    void decide_zero(ZeroMeans means, const std::string& name);

    std::optional<double> m_nodata;
    bool m_mask = false;

  private:
    int64_t m_negative = 0;
};

} // namespace hsi::raster
