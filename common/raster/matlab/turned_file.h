// SPDX-License-Identifier: MIT
// Converts an array that a file stores column by column into lines of samples, band by band. The result is in
// a temporary file.
#pragma once

#include "raster/io/raw_file.h"
#include "raster/matlab/matlab_file.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace hsi::raster {

/// The position of the band subscript among the subscripts of an array. last: (line, sample, band); first:
/// (band, line, sample); second: (line, band, sample).
enum class BandsStand { last, first, second };

/// The lengths of an array and the order of its subscripts, of which the first varies fastest in the file.
struct TurnedShape {
    int64_t lines = 0, samples = 0, bands = 0;
    BandsStand bands_stand = BandsStand::last;
};

/// Returns the folder for large temporary files: CPL_TMPDIR or TMPDIR, else /var/tmp.
std::string folder_of_scratch();

class TurnedFile {
  public:
    /// `memory`: bytes for a part of the array, which is collected in memory before it is written to the
    /// temporary file.
    TurnedFile(std::shared_ptr<const MatlabFile> file, MatlabVariable variable, const TurnedShape& shape,
               int64_t memory = int64_t{16} << 20)
        : m_source(std::move(file)), m_variable(std::move(variable)), m_shape(shape), m_memory(memory) {}

    /// Reads a line of a band, both counted from 0, in the variable's type. The first call creates the
    /// temporary file; this takes `memory` bytes and 6 MB more. Thread-safe. \throws Error if the source is
    /// damaged, or if the disk has too little space for the temporary file.
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
