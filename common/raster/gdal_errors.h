// SPDX-License-Identifier: MIT
// GDAL's error texts, collected on this thread instead of printed.
#pragma once

#include "raster/drivers.h"

#include <cpl_error.h>

#include <memory>
#include <string>
#include <vector>

namespace hsi::raster {

/// From now on HDF5 is kept from printing while GdalErrors live, if `path` is a file or a name of HDF5 or
/// netCDF: the library prints to stderr what GDAL reports anyway, with one switch per thread. The switch
/// initialises the library, which takes a millisecond: so it is used for these files alone.
void expect_hdf5(const std::string& path);

/// GDAL reads remote files under names that begin like this (io/whole_file.h).
constexpr const char* whole_prefix = "/vsihsi_whole/";

/// Returns a text of GDAL's with the names that users know: without whole_prefix.
std::string without_whole_names(std::string text);

/// While one of these lives, failures that GDAL reports on this thread land here; warnings go to CPLDebug,
/// and debug messages where they went before. Instances nest.
class GdalErrors {
  public:
    GdalErrors();
    ~GdalErrors();
    GdalErrors(const GdalErrors&) = delete;
    GdalErrors& operator=(const GdalErrors&) = delete;

    bool any() const { return !m_failures.empty(); }
    /// A side file (.aux.xml) could not be written. GDAL gives a warning, and before 3.7 nothing else.
    bool side_file_lost() const { return m_side_file_lost; }
    /// The failures on one line; `fallback` without a failure.
    std::string text(const std::string& fallback = "no reason given") const;
    /// The warnings, in the same form.
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
