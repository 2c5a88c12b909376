// SPDX-License-Identifier: MIT
// GDAL's drivers take what a server does not give for the end of a file, or for nothing that is there, and
// some go on without a word: without a georeference, or with other pixels. Under the names of this file they
// read through us: what they ask for comes whole, after more than one try, or is counted as lost.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace hsi::raster {

/// The name under which GDAL reads what a server has; other names as they are. Of a subdataset
/// (HDF5:"a.h5"://cube) its file is meant.
std::string whole_name(const std::string& name);

/// What servers have not given since this was made.
class Losses {
  public:
    Losses();
    /// \throws Error where something is lost, whoever has asked for it.
    void check() const;
    /// The same after `read()`, which opens or reads, and instead of an error of its: they say why.
    void check_after(const std::function<void()>& read) const;

  private:
    uint64_t m_before;
};

} // namespace hsi::raster
