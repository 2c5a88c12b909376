// SPDX-License-Identifier: MIT
// Remote files whose bytes are complete or counted as lost. If a server does not deliver bytes, GDAL's
// drivers assume the end of the file or a missing file. Some drivers then continue silently, without a
// georeference or with other pixels. Under the names of whole_name(), drivers read through the code of this
// header, which repeats failed requests.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace hsi::raster {

/// Returns the name under which GDAL reads a remote file; other names are unchanged. For a subdataset
/// (HDF5:"a.h5"://cube), the name of its file is replaced.
std::string whole_name(const std::string& name);

/// Detects whether servers have failed to deliver bytes since the object was created.
class Losses {
  public:
    Losses();
    /// \throws Error if bytes were lost, whichever reader requested them.
    void check() const;
    /// Calls `read`, which opens or reads, and then check(). The error of check() replaces that of `read`,
    /// since it states the cause.
    void check_after(const std::function<void()>& read) const;

  private:
    uint64_t m_before;
};

} // namespace hsi::raster
