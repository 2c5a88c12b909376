// SPDX-License-Identifier: MIT
// Variables of MATLAB files as scenes, as labels and as spectral libraries: the choice of the variable, and
// its axes for lines, samples and bands. docs/products.md ("MATLAB files") has the rules for users.
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

/// An array that is a scene, or an image of one.
struct MatlabCube {
    std::shared_ptr<const MatlabFile> file;
    MatlabVariable variable;
    TurnedShape shape;
    std::string note; ///< note for the user about the choice
};
/// The scene that a name leads to; nullopt if it is not a MATLAB file. \throws Error when the file is
/// damaged, when the variable is absent or no variable is a scene, or when several are possible.
std::optional<MatlabCube> find_matlab_cube(const std::string& name);
/// The same for labels or a mask: an array with two subscripts; among several, the one with `lines` x
/// `samples` (0: not known) or the only one with whole numbers. For labels, logical arrays rank after all
/// others, for a mask before them.
std::optional<MatlabCube> find_matlab_labels(const std::string& name, int64_t lines, int64_t samples,
                                             bool mask);

/// Null if `name` is not a MATLAB file. A cube of version 7.3 in chunks is read by chunks (Product::parts);
/// everything else as open_matlab() returns it. \throws as find_matlab_cube().
std::shared_ptr<const Product> matlab_product(const std::string& name);

// These functions are in a separate file, matlab_dataset.cpp: it derives GDAL's classes, which a plugin that
// is not linked to a libgdal cannot.

/// A dataset of the driver "MATLAB", which GDAL does not have. Its pixels are turned around, once for all
/// handles and at the first read, into a temporary file without a name in the folder that CPL_TMPDIR or
/// TMPDIR names (else /var/tmp): memory stays at some megabytes. Null and \throws as above.
DatasetHandle open_matlab(const std::string& name);

/// The labels of find_matlab_labels(), whose notes are added.
DatasetHandle open_matlab_labels(const std::string& name, int64_t lines, int64_t samples, bool mask,
                                 std::vector<std::string>& notes);

/// Wavelengths or wavenumbers of bands: a vector with a name like "wavelengths", `count` long. Null: none.
const MatlabVariable* find_matlab_wavelengths(const MatlabFile& file, int64_t count);
/// The unit in the name of these; empty without one.
std::string matlab_wavelength_units(const MatlabVariable& one);

/// \throws Error that lists the variables of the file: `what` is the fault.
[[noreturn]] void refuse_matlab(const MatlabFile& file, const std::string& what,
                                const std::vector<const MatlabVariable*>& candidates);
/// The variable of that name. \throws Error if it is absent, or not an array of real numbers.
const MatlabVariable& named_matlab_numbers(const MatlabFile& file, const std::string& name);

} // namespace hsi::raster
