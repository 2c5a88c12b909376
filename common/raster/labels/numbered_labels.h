// SPDX-License-Identifier: MIT
// Labels that are pixel values: decides which values are classes, and which mean "no label". Does not call
// GDAL, so labels in memory follow the same rules as labels in files.
#pragma once

#include "raster/labels.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

// The number of lines that are read or burned together. Vectors are always burned in strips that begin at
// multiples of this number, whichever lines are read. The label of a pixel therefore does not depend on the
// order of reading.
inline constexpr int64_t strip_lines = 256;

/// Returns the class of a pixel value; `none` for negative numbers and NaN. `none` is the value that means
/// "no label": 0, or 65535 if 0 is a class. Throws Error that names `path` if a positive value is not a class
/// number.
uint16_t class_of(double v, uint16_t none, const std::string& path);
/// Returns true if a name means a class. Returns false for empty names, numbers, "Unclassified", "no data"
/// and similar names.
bool names_a_class(const std::string& name);
/// Returns the name in UTF-8 and without blanks around it. Invalid UTF-8 is read as Latin-1.
std::string clean_name(const char* name);
/// Returns the note "'FILE': 3 pixels have negative values (the lowest is -1), which are read as 'no label'".
/// In this example, `things` is "3 pixels have" and `least` is -1.
std::string negative_note(const std::string& path, const std::string& things, double least);

/// The lines whose pixels were counted. Tools read labels in several passes, and with overlapping strips, but
/// notes give numbers of pixels of the file.
class CountedLines {
  public:
    /// Calls part(first, count, fresh) for successive runs of the lines [line, line + count). fresh: true if
    /// the lines of the run have not been counted; they then count as counted.
    template <class Part>
    void each_run(int64_t line, int64_t count, const Part& part) {
        const int64_t end = line + count;
        if (static_cast<int64_t>(m_counted.size()) < end) m_counted.resize(static_cast<size_t>(end), 0);
        for (int64_t y = line; y < end;) {
            const auto first = m_counted.begin() + y, last = m_counted.begin() + end;
            const char counted = *first;
            const auto next = std::find(first, last, static_cast<char>(1 - counted));
            const int64_t n = next - first;
            part(y, n, counted == 0);
            std::fill(first, next, static_cast<char>(1));
            y += n;
        }
    }

  private:
    std::vector<char> m_counted; ///< 1 for each counted line
};

class NumberedLabels : public LabelSource {
  public:
    std::vector<std::string> reading_notes() const override;

  protected:
    /// Calls read(first, count) for runs of the lines [line, line + count). label_of() counts only pixels of
    /// lines that are read for the first time.
    template <class Read>
    void read_runs(int64_t line, int64_t count, const Read& read) {
        m_lines.each_run(line, count, [&](int64_t first, int64_t n, bool fresh) {
            m_counting = fresh;
            read(first, n);
        });
    }
    /// Returns the label of a pixel value (class_of()), and counts negative values and zeros. For a mask,
    /// returns 1 if the value is not 0.
    uint16_t label_of(double v);
    /// Decides whether 0 is a class, and sets none(). `name` is the name of class 0 in the file; empty if it
    /// has no name. m_nodata must be set before.
    void decide_zero(ZeroMeans means, const std::string& name);

    std::optional<double> m_nodata;
    bool m_mask = false;

  private:
    CountedLines m_lines;
    bool m_counting = true;
    int64_t m_negative = 0;
};

} // namespace hsi::raster
