// SPDX-License-Identifier: MIT
// Labels that are pixel values: which values are classes, and which mean "no label". It does not call GDAL:
// labels in memory follow the same rules as labels in files.
#pragma once

#include "raster/labels.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

// Lines that are read or burned together. Vectors are burned in strips that begin at multiples of it, for any
// lines of the caller, so that a pixel's label does not depend on how the scene is read.
inline constexpr int64_t strip_lines = 256;

/// The class of a pixel value, `none` for negative numbers and NaN; 0 is the class 0 if `none` is not 0.
/// Throws Error when a positive value is not a class.
uint16_t class_of(double v, uint16_t none, const std::string& path);
/// Whether a name means a class: empty names, numbers, "Unclassified", "no data" and the like do not.
bool names_a_class(const std::string& name);
/// In UTF-8 and without blanks around it; invalid UTF-8 is taken for Latin-1.
std::string clean_name(const char* name);
/// "3 pixels hold negative numbers (the least is -1), which are taken for no label"; `things` is the counted
/// noun.
std::string negative_note(const std::string& path, const std::string& things, double least);

class NumberedLabels : public LabelSource {
  public:
    std::vector<std::string> reading_notes() const override;

  protected:
    /// The label of a pixel value (class_of()), counted; for a mask 1 where it is not 0.
    uint16_t label_of(double v);
    /// Decides the meaning of 0; `name`: its name in the file, empty without one. m_nodata is known.
    void decide_zero(ZeroMeans means, const std::string& name);

    std::optional<double> m_nodata;
    bool m_mask = false;

  private:
    int64_t m_negative = 0;
};

} // namespace hsi::raster
