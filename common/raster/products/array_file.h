// SPDX-License-Identifier: MIT
// Reads groups, arrays and attributes of HDF5, netCDF-4 and Zarr through GDAL's multidimensional interface.
#pragma once

#include "raster/gdal/dataset_handle.h"
#include "raster/products/product.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::raster {

/// The numbers of a list or attribute. `texts` has the digits of each number: the text in the file, or the
/// shortest text that gives the number in the file's data type.
struct Numbers {
    std::vector<double> values;
    std::vector<std::string> texts;
    /// Unit of wavelengths that is part of the texts ("450 nm"); otherwise empty.
    std::string unit;
    /// A text of the list that is not a number; empty if all are numbers.
    std::string no_numbers;
    size_t size() const { return values.size(); }
};

/// A file of arrays. Names of arrays and groups are full names, such as "/location/lon". Only one thread may
/// use an object at a time.
class ArrayFile {
  public:
    /// Opens a file. Returns null if GDAL cannot open `path` as a file of arrays. Throws Error for a file on
    /// which the library crashes (try_hdf()).
    static std::shared_ptr<ArrayFile> open(const std::string& path);

    const std::string& path() const { return m_path; }
    const std::string& driver() const { return m_driver; }             ///< name of GDAL's driver
    std::shared_ptr<GDALGroup> group(const std::string& name) const;   ///< null if the group does not exist
    std::shared_ptr<GDALMDArray> array(const std::string& name) const; ///< null if the array does not exist
    /// Returns the array of a part as a view with three axes.
    std::shared_ptr<GDALMDArray> array_of(const CubePart& part) const;
    std::vector<std::string> group_names(const std::string& of) const;

    /// Returns the chunk size along each axis of an array; 0 along axes for which it is unknown, or if the
    /// array is not chunked. GDAL 3.6's driver HDF5 does not provide the chunk sizes; the driver netCDF is
    /// then used for a local file, if it is installed and can read the file.
    std::vector<GUInt64> chunks(const std::string& name) const;

    /// Returns the numbers of a list (see list_length()), which the file may store as text; empty if the list
    /// does not exist.
    Numbers list(const std::string& array) const;
    /// Returns the text of a string array with one element; empty if there is none.
    std::string text(const std::string& array) const;

  private:
    std::string m_path, m_driver;
    DatasetHandle m_dataset;
    std::shared_ptr<GDALGroup> m_root;
};

/// Returns the number of elements if at most one axis of the array is longer than 1, as in a list, a row (1 x
/// B) or a column (B x 1). Returns 0 for other arrays.
uint64_t list_length(const GDALMDArray& array);

/// Returns the names of the arrays in a group without duplicates, because GDAL's driver Zarr lists an array
/// again after each opening.
std::vector<std::string> array_names(const GDALGroup& group);

/// Reads the samples [start, start + count) along the three axes of a part, in the part's data type. Returns
/// false on failure.
bool read_samples(GDALMDArray& array, const CubePart& part, const GUInt64 (&start)[3],
                  const size_t (&count)[3], void* values);

/// Return the numbers or the text of an attribute; empty if the attribute or `holder` does not exist. The
/// file may store numbers as text: '-9999.0', '400 500 600', '{400, 500, 600}', '[400, 500, 600]', '400 nm,
/// 500 nm'.
Numbers numbers_in(const std::shared_ptr<GDALAttribute>& attribute);
std::string text_in(const std::shared_ptr<GDALAttribute>& attribute);
template <class Holder>
Numbers attribute_numbers(const std::shared_ptr<Holder>& holder, const std::string& name) {
    return holder ? numbers_in(holder->GetAttribute(name)) : Numbers();
}
template <class Holder>
std::string attribute_text(const std::shared_ptr<Holder>& holder, const std::string& name) {
    return holder ? text_in(holder->GetAttribute(name)) : std::string();
}

} // namespace hsi::raster
