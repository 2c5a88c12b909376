// SPDX-License-Identifier: MIT
// Collects GDAL's error texts on this thread instead of printing them.
#pragma once

#include "raster/drivers.h"

#include <cpl_error.h>

#include <memory>
#include <string>
#include <vector>

namespace hsi::raster {

/// Keeps HDF5 from printing while a GdalErrors exists, from now on, if `path` is a file or a name of HDF5 or
/// netCDF. The library prints to stderr what GDAL reports anyway. Its switch, one per thread, initialises the
/// library, which takes a millisecond: so only these files use it.
void expect_hdf5(const std::string& path);

/// The prefix of names under which GDAL reads remote files (io/whole_file.h).
constexpr const char* whole_prefix = "/vsihsi_whole/";

/// Returns a text of GDAL without whole_prefix, with the names that users know.
std::string without_whole_names(std::string text);

/// Collects the failures that GDAL reports on this thread while the object exists. Warnings go to CPLDebug,
/// and debug messages to their earlier destination. Objects may be nested.
class GdalErrors {
  public:
    GdalErrors();
    ~GdalErrors();
    GdalErrors(const GdalErrors&) = delete;
    GdalErrors& operator=(const GdalErrors&) = delete;

    bool any() const { return !m_failures.empty(); }
    /// Returns whether a side file (.aux.xml) could not be written. GDAL gives only a warning, and no error
    /// before 3.7.
    bool side_file_lost() const { return m_side_file_lost; }
    /// Returns the failures on one text line; `fallback` if there are none.
    std::string text(const std::string& fallback = "no reason given") const;
    /// Returns the warnings, in the same form.
    std::string warnings() const;
    void clear();

  private:
    static void CPL_STDCALL collect(CPLErr level, CPLErrorNum number, const char* message);
    class Hdf5Silence;
    std::unique_ptr<Hdf5Silence> m_hdf5;
    std::vector<std::string> m_failures, m_warnings;
    bool m_side_file_lost = false;
};

} // namespace hsi::raster
