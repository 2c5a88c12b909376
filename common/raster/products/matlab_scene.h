// SPDX-License-Identifier: MIT
// Selects the variable of a MATLAB file that is the scene, the labels or the spectral library, and determines
// its axes (lines, samples and bands). docs/products.md ("MATLAB files") states the rules for users.
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

/// An array of a MATLAB file that is a scene or an image.
struct MatlabCube {
    std::shared_ptr<const MatlabFile> file;
    MatlabVariable variable;
    TurnedShape shape;
    std::string note; ///< note for the user about how the array was chosen
};
/// Finds the scene that a name (FILE or FILE:VARIABLE) denotes; nullopt if the file is not a MATLAB file.
/// \throws Error if the file is damaged, if the variable does not exist, or if none or several variables may
/// be the scene.
std::optional<MatlabCube> find_matlab_cube(const std::string& name);
/// Finds labels or a mask in the same way: an array with two subscripts. Among several arrays, it selects the
/// array of size `lines` x `samples` (0: unknown), or the only array with whole numbers. Logical arrays are
/// preferred for a mask, and are used for labels only if there is no other array.
std::optional<MatlabCube> find_matlab_labels(const std::string& name, int64_t lines, int64_t samples,
                                             bool mask);

/// Returns the scene as a product; null if `name` is not a MATLAB file. A chunked cube of version 7.3 is read
/// by chunks (Product::parts); other arrays are read through open_matlab(). \throws as find_matlab_cube()
/// does.
std::shared_ptr<const Product> matlab_product(const std::string& name);

// The next functions are in matlab_dataset.cpp, because they need classes derived from GDAL's classes. A
// plugin that is not linked to libgdal cannot contain such classes.

/// Opens a dataset of the driver "MATLAB", which GDAL does not have. At the first read, the pixels are
/// transposed into an unnamed temporary file, once for all handles. The file is in the folder of CPL_TMPDIR
/// or TMPDIR (else /var/tmp). This needs a few megabytes of memory. Returns null and \throws as
/// matlab_product() does.
DatasetHandle open_matlab(const std::string& name);

/// Opens the array of find_matlab_labels() as a dataset, and adds its note to `notes`.
DatasetHandle open_matlab_labels(const std::string& name, int64_t lines, int64_t samples, bool mask,
                                 std::vector<std::string>& notes);

/// Returns the vector of wavelengths or wavenumbers, which has `count` elements and a name such as
/// "wavelengths". Null if there is none.
const MatlabVariable* find_matlab_wavelengths(const MatlabFile& file, int64_t count);
/// Returns the unit that the name of the variable states; empty if it states none.
std::string matlab_wavelength_units(const MatlabVariable& one);

/// Throws Error with the text `what`, and lists the candidates or else all variables of the file.
[[noreturn]] void refuse_matlab(const MatlabFile& file, const std::string& what,
                                const std::vector<const MatlabVariable*>& candidates);
/// Returns the variable `name`. \throws Error if it does not exist or is not an array of real numbers.
const MatlabVariable& named_matlab_numbers(const MatlabFile& file, const std::string& name);

} // namespace hsi::raster
