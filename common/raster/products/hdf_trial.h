// SPDX-License-Identifier: MIT
// The libraries of HDF5 and HDF4 end the process on some damaged files; that is to be an error like any
// other.
#pragma once

#include <string>

namespace hsi::raster {

/// Before a path is opened that may lead to HDF5 or HDF4: such a file is opened and recognised in a child
/// first, once for a state of the file. Also keeps HDF5 from printing (expect_hdf5()). Throws Error when the
/// library dies of it. core/trial.h says where there is no trial.
void try_hdf(const std::string& path);

} // namespace hsi::raster
