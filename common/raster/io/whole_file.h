// SPDX-License-Identifier: MIT
// Reads remote files completely, or reports the loss of their bytes. If a server does not deliver bytes,
// GDAL's drivers assume the end of the file or a missing file. Some drivers then continue silently, without a
// georeference or with other pixels. Under the names of whole_name(), drivers read through the code of this
// header, which repeats failed requests and records lost bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace hsi::raster {

/// Returns the name under which GDAL must read a remote file; names of other files are returned unchanged.
/// For a subdataset (HDF5:"a.h5"://cube), the name of its file is replaced.
std::string whole_name(const std::string& name);

/// Detects whether servers have failed to deliver bytes since the object was created.
class Losses {
  public:
    Losses();
    /// \throws Error if bytes were lost, whichever reader requested them.
    void check() const;
    /// Calls `read`, which opens a file or reads from it, and then check(). If both throw Error, the error of
    /// check() is thrown, because it states the cause.
    void check_after(const std::function<void()>& read) const;

  private:
    uint64_t m_before;
};

} // namespace hsi::raster
