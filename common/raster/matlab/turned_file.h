// SPDX-License-Identifier: MIT
// An array that a file stores with transposed lines, or pixel by pixel along its columns. It is converted to
// lines of samples, band by band, in a temporary file.
#pragma once

#include "raster/io/raw_file.h"
#include "raster/matlab/matlab_file.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace hsi::raster {

/// The subscript of the bands: (line, sample, band), (band, line, sample), (line, band, sample).
enum class BandsStand { last, first, second };

/// The order of an array's numbers: the first subscript varies fastest.
struct TurnedShape {
    int64_t lines = 0, samples = 0, bands = 0;
    BandsStand bands_stand = BandsStand::last;
};

/// Returns the folder of large temporary files: CPL_TMPDIR or TMPDIR, else /var/tmp.
std::string folder_of_scratch();

class TurnedFile {
  public:
    /// `memory`: for the part of the array that is collected before it is written to the temporary file.
    TurnedFile(std::shared_ptr<const MatlabFile> file, MatlabVariable variable, const TurnedShape& shape,
               int64_t memory = int64_t{16} << 20)
        : m_source(std::move(file)), m_variable(std::move(variable)), m_shape(shape), m_memory(memory) {}

    /// Reads a line of a band (both from 0) in the variable's type. The first call transposes the file, in
    /// `memory` and 6 MB more. Thread-safe. \throws Error if the source is damaged or if there is not enough
    /// room for the file.
    void read_line(int64_t band, int64_t line, void* values);

  private:
    void turn();

    const std::shared_ptr<const MatlabFile> m_source;
    const MatlabVariable m_variable;
    const TurnedShape m_shape;
    const int64_t m_memory;
    std::mutex m_mutex;
    FileHandle m_file;
};

} // namespace hsi::raster
