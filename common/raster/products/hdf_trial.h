// SPDX-License-Identifier: MIT
// The libraries of HDF5 and HDF4 end the process on some damaged files; that is to be an error like any
// other.
#pragma once

#include <string>

namespace hsi::raster {

/// Call it before a path is opened that may lead to HDF5 or HDF4: such a file is first opened and recognised
/// in a child process, once for each state of the file. Also keeps HDF5 from printing (expect_hdf5()). Throws
/// Error when the library crashes on it. core/trial.h lists the systems without trials.
void try_hdf(const std::string& path);

} // namespace hsi::raster
