// SPDX-License-Identifier: MIT
// Variables of MATLAB's files as scenes, as labels and as spectral libraries: which of them is meant, and
// where its lines, samples and bands lie. docs/products.md ("MATLAB files") tells users the rules.
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
    std::string note; ///< what the user should know of the choice
};
/// The scene that a name leads to; nothing when it is no file of MATLAB's. \throws Error when the file is
/// damaged, when there is no such variable or none that is a scene, or when several may be meant.
std::optional<MatlabCube> find_matlab_cube(const std::string& name);
/// Likewise for labels or a mask: an array with two subscripts, of several the one of `lines` x `samples` (0:
/// not known) or the only one of whole numbers. As labels, a logical array stands behind all others, as a
/// mask before them.
std::optional<MatlabCube> find_matlab_labels(const std::string& name, int64_t lines, int64_t samples,
                                             bool mask);

/// Null when `name` is no file of MATLAB's. Version 7.3 whose cube lies in chunks is read in these
/// (Product::parts); the rest as open_matlab() gives it. \throws as find_matlab_cube().
std::shared_ptr<const Product> matlab_product(const std::string& name);

// matlab_dataset.cpp, a file of its own: it makes classes of GDAL's, which a plugin that is bound to no
// libgdal cannot.

/// A dataset of the driver "MATLAB", which GDAL does not have. Its pixels are turned around, once for all
/// handles and at the first read, into a temporary file without a name in the folder that CPL_TMPDIR or
/// TMPDIR names (else /var/tmp): memory stays at some megabytes. Null and \throws as above.
DatasetHandle open_matlab(const std::string& name);

/// Of find_matlab_labels(), whose notes are added.
DatasetHandle open_matlab_labels(const std::string& name, int64_t lines, int64_t samples, bool mask,
                                 std::vector<std::string>& notes);

/// Wavelengths or wavenumbers of bands: a vector of a name like "wavelengths", `count` long. Null: none.
const MatlabVariable* find_matlab_wavelengths(const MatlabFile& file, int64_t count);
/// The unit that the name of these states; empty where it states none.
std::string matlab_wavelength_units(const MatlabVariable& one);

/// \throws Error that lists the variables of the file: `what` names the fault.
[[noreturn]] void refuse_matlab(const MatlabFile& file, const std::string& what,
                                const std::vector<const MatlabVariable*>& candidates);
/// The variable of that name. \throws Error when there is none, or when it is no array of real numbers.
const MatlabVariable& named_matlab_numbers(const MatlabFile& file, const std::string& name);

} // namespace hsi::raster
