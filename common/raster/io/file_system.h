// SPDX-License-Identifier: MIT
// Files that GDAL reads under our own names.
#pragma once

#include <cpl_vsi.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace hsi::raster {

/// An open file, for reading.
class ReadFile {
  public:
    ReadFile() = default;
    virtual ~ReadFile() = default;
    ReadFile(const ReadFile&) = delete;
    ReadFile& operator=(const ReadFile&) = delete;
    virtual uint64_t size() = 0;
    /// Up to `bytes` from byte `at` on. \return how many there are
    virtual size_t read(uint64_t at, void* to, size_t bytes) = 0;
};

/// The functions of a file system for GDAL; names begin after its prefix.
struct FileSystem {
    std::unique_ptr<ReadFile> (*open)(const char* name); ///< null: there is no such file
    int (*stat)(void* unused, const char* name, VSIStatBufL* status, int flags);
    char** (*list)(void* unused, const char* folder, int most) = nullptr;
};

/// For names that begin with `prefix` ("/vsihsi.../"). To be called once.
void install_file_system(const char* prefix, const FileSystem& files);

} // namespace hsi::raster
