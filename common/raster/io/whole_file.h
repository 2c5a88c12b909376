// SPDX-License-Identifier: MIT
// GDAL's drivers take bytes that a server does not deliver for the end of a file, or for a missing file, and
// some continue silently: without a georeference, or with other pixels. Under the names of this file they
// read through our code: requested bytes come whole, after more than one try, or are counted as lost.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace hsi::raster {

/// The name under which GDAL reads a remote file; other names are returned unchanged. For a subdataset
/// (HDF5:"a.h5"://cube) it is the name of its file.
std::string whole_name(const std::string& name);

/// The bytes that servers have not delivered since this was made.
class Losses {
  public:
    Losses();
    /// \throws Error if a part was lost, on any reader's request.
    void check() const;
    /// The same after `read()`, which opens or reads, and in place of its error: this one explains more.
    void check_after(const std::function<void()>& read) const;

  private:
    uint64_t m_before;
};

} // namespace hsi::raster
