// SPDX-License-Identifier: MIT
// HDF5's library ends the process on some damaged files; that is to be an error like any other.
#pragma once

#include <string>

namespace hsi::raster {

/// Before a path that leads_to_hdf5() is opened: its file is opened and recognised in a child first, once for
/// a state of the file. Also keeps HDF5 from printing (expect_hdf5()). Throws Error when the library dies of
/// it. core/trial.h says where there is no trial.
void try_hdf5(const std::string& path);

} // namespace hsi::raster
