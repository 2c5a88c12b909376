// SPDX-License-Identifier: MIT
// An array that a file keeps with its lines side by side, or pixel by pixel along its columns, turned into
// lines of samples, band by band, in a temporary file.
#pragma once

#include "raster/io/raw_file.h"
#include "raster/matlab/matlab_file.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace hsi::raster {

/// Where the subscript of the bands stands: (line, sample, band), (band, line, sample), (line, band, sample).
enum class BandsStand { last, first, second };

/// How the numbers of an array follow one another: those of its first subscript first.
struct TurnedShape {
    int64_t lines = 0, samples = 0, bands = 0;
    BandsStand bands_stand = BandsStand::last;
};

/// Where large temporary files go: what CPL_TMPDIR or TMPDIR names, else /var/tmp.
std::string folder_of_scratch();

class TurnedFile {
  public:
    /// `memory`: what is gathered of the array before it goes to the temporary file.
    TurnedFile(std::shared_ptr<const MatlabFile> file, MatlabVariable variable, const TurnedShape& shape,
               int64_t memory = int64_t{16} << 20)
        : m_source(std::move(file)), m_variable(std::move(variable)), m_shape(shape), m_memory(memory) {}

    /// A line of a band (both from 0) in the variable's type. The first call turns the file, in `memory`
    /// and 6 MB more. Thread-safe. \throws Error when the source is damaged or there is no room for the file.
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
