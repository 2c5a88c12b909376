// SPDX-License-Identifier: MIT
// Variables of MATLAB files as scenes, labels and spectral libraries: selects the variable, and its axes for
// lines, samples and bands. docs/products.md ("MATLAB files") has the rules for users.
#pragma once

#include "raster/gdal/dataset_handle.h"
#include "raster/matlab/matlab_file.h"
#include "raster/matlab/turned_file.h"
#include "raster/products/product.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// An array that is a scene or an image.
struct MatlabCube {
    std::shared_ptr<const MatlabFile> file;
    MatlabVariable variable;
    TurnedShape shape;
    std::string note; ///< note for the user about the choice
};
/// Finds the scene that a name leads to; nullopt if it is not a MATLAB file. \throws Error if the file is
/// damaged, if the variable is absent or no variable is a scene, or if several are possible.
std::optional<MatlabCube> find_matlab_cube(const std::string& name);
/// Finds labels or a mask likewise: an array with two subscripts. If there are several, takes the one with
/// `lines` x `samples` (0: unknown) or the only one with whole numbers. Logical arrays are the last choice
/// for labels and the first choice for a mask.
std::optional<MatlabCube> find_matlab_labels(const std::string& name, int64_t lines, int64_t samples,
                                             bool mask);

/// Returns null if `name` is not a MATLAB file. A cube of version 7.3 in chunks is read by chunks
/// (Product::parts); other arrays as open_matlab() returns them. \throws as find_matlab_cube().
std::shared_ptr<const Product> matlab_product(const std::string& name);

// These functions are in a separate file, matlab_dataset.cpp, because it derives GDAL's classes. A plugin
// that is not linked to a libgdal cannot do this.

/// Opens a dataset of the driver "MATLAB", which GDAL does not have. Its pixels are transposed at the first
/// read, once for all handles, into an unnamed temporary file in the folder of CPL_TMPDIR or TMPDIR (else
/// /var/tmp), with a few megabytes of memory. Returns null and \throws as above.
DatasetHandle open_matlab(const std::string& name);

/// Opens the labels of find_matlab_labels(), and adds their notes.
DatasetHandle open_matlab_labels(const std::string& name, int64_t lines, int64_t samples, bool mask,
                                 std::vector<std::string>& notes);

/// Returns the wavelengths or wavenumbers of bands: a vector of length `count` with a name like
/// "wavelengths". Null if there is none.
const MatlabVariable* find_matlab_wavelengths(const MatlabFile& file, int64_t count);
/// Returns the unit in the name of this variable; empty without a unit.
std::string matlab_wavelength_units(const MatlabVariable& one);

/// \throws Error that lists the variables of the file: `what` is the fault.
[[noreturn]] void refuse_matlab(const MatlabFile& file, const std::string& what,
                                const std::vector<const MatlabVariable*>& candidates);
/// Returns the variable with that name. \throws Error if it is absent, or not an array of real numbers.
const MatlabVariable& named_matlab_numbers(const MatlabFile& file, const std::string& name);

} // namespace hsi::raster
