// SPDX-License-Identifier: MIT
// An HDF5 or netCDF-4 file, or a Zarr dataset, through GDAL's multidimensional interface: groups, arrays,
// attributes.
#pragma once

#include "raster/gdal/dataset_handle.h"
#include "raster/products/product.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::raster {

/// Numbers with the digits that they have in the file's own type.
struct Numbers {
    std::vector<double> values;
    std::vector<std::string> texts;
    std::string unit;       ///< unit of wavelengths that are texts with a unit ("450 nm"); else empty
    std::string no_numbers; ///< content of the list if it has no numbers; empty: numbers
    size_t size() const { return values.size(); }
};

/// A file of arrays. Names are full names: "/location/lon". One thread uses it at a time.
class ArrayFile {
  public:
    /// Returns null if GDAL opens no arrays in `path`. Throws Error for a file that try_hdf() refuses.
    static std::shared_ptr<ArrayFile> open(const std::string& path);

    const std::string& path() const { return m_path; }
    const std::string& driver() const { return m_driver; }             ///< of GDAL
    std::shared_ptr<GDALGroup> group(const std::string& name) const;   ///< null if absent
    std::shared_ptr<GDALMDArray> array(const std::string& name) const; ///< null if absent
    /// Returns the array of a part, with three axes.
    std::shared_ptr<GDALMDArray> array_of(const CubePart& part) const;
    std::vector<std::string> group_names(const std::string& of) const;

    /// Returns the chunk size along each axis of an array; 0 if it is stored in one piece. GDAL 3.6's driver
    /// HDF5 does not expose it: the driver netCDF is used instead, if it is installed and reads the file.
    std::vector<GUInt64> chunks(const std::string& name) const;

    /// Returns the numbers of a list (list_length()), which may be written as text; empty if absent.
    Numbers list(const std::string& array) const;
    /// Returns the text of an array with one element; empty if absent.
    std::string text(const std::string& array) const;

  private:
    std::string m_path, m_driver;
    DatasetHandle m_dataset;
    std::shared_ptr<GDALGroup> m_root;
};

/// Returns the number of elements of an array that is a list: with one axis, or a row or a column (1 x B, B x
/// 1). Else 0.
uint64_t list_length(const GDALMDArray& array);

/// Returns the names of the arrays in a group, each once. (Zarr's driver lists an array again after each
/// opening.)
std::vector<std::string> array_names(const GDALGroup& group);

/// Reads samples [start, start + count) along the axes of a part, in its type. Returns false on failure.
bool read_samples(GDALMDArray& array, const CubePart& part, const GUInt64 (&start)[3],
                  const size_t (&count)[3], void* values);

/// Returns attributes of a group or an array; empty if the attribute or `holder` does not exist. Numbers may
/// be written as text ('-9999.0', '400 500 600', '{400, 500, 600}', '[400, 500, 600]', '400 nm, 500 nm').
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
