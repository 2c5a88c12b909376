// SPDX-License-Identifier: MIT
// Reports an error for damaged files on which the libraries of HDF5 and HDF4 end the
// process.
#pragma once

#include <string>

namespace hsi::raster {

/// Opens and recognises a file that may be HDF5 or HDF4 in a child process first, once for each state of the
/// file. Call it before such a path is opened. Also keeps HDF5 from printing (expect_hdf5()). Throws Error if
/// the library crashes on the file. core/trial.h lists the systems without trials.
void try_hdf(const std::string& path);

} // namespace hsi::raster
