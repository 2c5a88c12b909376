// SPDX-License-Identifier: MIT
// Reports an error for damaged files on which the libraries of HDF5 or HDF4 crash.
#pragma once

#include <string>

namespace hsi::raster {

/// Tries a local HDF5 or HDF4 file: a child process opens it, once for each state of the file. Throws Error
/// if the library crashes on the file. Call this function before the file is opened in this process. It also
/// prevents the HDF5 library from printing messages (expect_hdf5()). core/trial.h lists the systems on which
/// no child process is used.
void try_hdf(const std::string& path);

} // namespace hsi::raster
