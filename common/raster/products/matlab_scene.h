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
/// Finds labels or a mask in the same way. They are an array with two subscripts. Among several arrays,
/// arrays of size `lines` x `samples` (0: unknown) are preferred, then logical arrays for a mask and other
/// arrays for labels, then arrays of integer types. \throws Error if several arrays remain.
std::optional<MatlabCube> find_matlab_labels(const std::string& name, int64_t lines, int64_t samples,
                                             bool mask);

/// Returns the scene as a product; null if `name` is not a MATLAB file. A chunked cube of version 7.3 is read
/// by chunks (Product::parts); other arrays are read through open_matlab(). \throws as find_matlab_cube()
/// does.
std::shared_ptr<const Product> matlab_product(const std::string& name);

// The next two functions are in matlab_dataset.cpp, because they need classes derived from GDAL's classes. A
// plugin that is not linked to libgdal cannot contain such classes.

/// Opens the scene of a MATLAB file as a GDAL dataset. Its driver is called "MATLAB"; the driver belongs to
/// this code and is not registered in GDAL. At the first read, the pixels are transposed into an unnamed
/// temporary file, which all handles share. The file is in the folder of CPL_TMPDIR or TMPDIR (else
/// /var/tmp). Transposing needs a few megabytes of memory. Returns null and \throws as matlab_product() does.
DatasetHandle open_matlab(const std::string& name);

/// Opens the array that find_matlab_labels() finds as a dataset, and adds the note about it to `notes`.
/// Returns null and \throws as find_matlab_labels() does.
DatasetHandle open_matlab_labels(const std::string& name, int64_t lines, int64_t samples, bool mask,
                                 std::vector<std::string>& notes);

/// Returns a vector of wavelengths or, if there is none, of wavenumbers. It must have `count` elements and a
/// name such as "wavelengths". Null if the file has no such vector.
const MatlabVariable* find_matlab_wavelengths(const MatlabFile& file, int64_t count);
/// Returns the unit that the name of the variable states; empty if the name states no unit.
std::string matlab_wavelength_units(const MatlabVariable& one);

/// Throws Error with the text `what`. The message lists `candidates` or, if there are none, all variables of
/// the file.
[[noreturn]] void refuse_matlab(const MatlabFile& file, const std::string& what,
                                const std::vector<const MatlabVariable*>& candidates);
/// Returns the variable `name`. \throws Error if it does not exist or is not an array of real numbers.
const MatlabVariable& named_matlab_numbers(const MatlabFile& file, const std::string& name);

} // namespace hsi::raster
