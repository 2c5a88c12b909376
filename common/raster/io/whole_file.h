// SPDX-License-Identifier: MIT
// If a server does not deliver bytes, GDAL's drivers treat them as the end of a file, or the file as missing.
// Some drivers continue silently, without a georeference or with other pixels. Under the names of this header
// they read through our code: requested bytes arrive completely, after several tries if needed, or are
// counted as lost.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace hsi::raster {

/// Returns the name under which GDAL reads a remote file; other names are unchanged. For a subdataset
/// (HDF5:"a.h5"://cube), the name of its file is replaced.
std::string whole_name(const std::string& name);

/// The bytes that servers have failed to deliver since the object was created.
class Losses {
  public:
    Losses();
    /// \throws Error if a part was lost, on any reader's request.
    void check() const;
    /// Calls `read`, which opens or reads, and then check(). The error of check() replaces that of `read`,
    /// since it explains more.
    void check_after(const std::function<void()>& read) const;

  private:
    uint64_t m_before;
};

} // namespace hsi::raster
