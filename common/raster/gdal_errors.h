// SPDX-License-Identifier: MIT
// Collects GDAL's error texts on this thread instead of printing them.
#pragma once

#include "raster/drivers.h"

#include <cpl_error.h>

#include <memory>
#include <string>
#include <vector>

namespace hsi::raster {

/// Call it before `path` is opened. If the HDF5 library may read the file (HDF5, netCDF-4, MATLAB, and
/// subdatasets of HDF5 and netCDF), each later GdalErrors prevents the library from printing on its thread.
/// The library would print errors to stderr that GDAL also reports. Preventing this initialises the library,
/// which takes a millisecond, so it is not done before such a file was named.
void expect_hdf5(const std::string& path);

/// The prefix of names under which GDAL reads remote files (io/whole_file.h).
constexpr const char* whole_prefix = "/vsihsi_whole/";

/// Removes whole_prefix from a text of GDAL, so that the text has the file names that users know.
std::string without_whole_names(std::string text);

/// Collects the first failures and warnings that GDAL reports on this thread while the object exists.
/// Warnings are also written as debug messages (CPLDebug). Debug messages go to GDAL's default handler.
/// Objects may be nested.
class GdalErrors {
  public:
    GdalErrors();
    ~GdalErrors();
    GdalErrors(const GdalErrors&) = delete;
    GdalErrors& operator=(const GdalErrors&) = delete;

    bool any() const { return !m_failures.empty(); }
    /// Returns whether GDAL failed to write a side file (.aux.xml). Before 3.7, GDAL reports this only as a
    /// warning.
    bool side_file_lost() const { return m_side_file_lost; }
    /// Returns the failures on one text line; `fallback` if there are none.
    std::string text(const std::string& fallback = "no reason given") const;
    /// Returns the warnings on one text line; empty if there are none.
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
