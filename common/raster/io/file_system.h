// SPDX-License-Identifier: MIT
// Virtual files that GDAL reads through code of this project.
#pragma once

#include <cpl_vsi.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace hsi::raster {

/// A file that is open for reading.
class ReadFile {
  public:
    ReadFile() = default;
    virtual ~ReadFile() = default;
    ReadFile(const ReadFile&) = delete;
    ReadFile& operator=(const ReadFile&) = delete;
    virtual uint64_t size() = 0;
    /// Reads up to `bytes` bytes from byte `at` on. \return the number of bytes read.
    virtual size_t read(uint64_t at, void* to, size_t bytes) = 0;
};

/// The functions of a file system that GDAL calls. They get names without the prefix of the file system.
struct FileSystem {
    std::unique_ptr<ReadFile> (*open)(const char* name); ///< returns null if the file does not exist
    int (*stat)(void* unused, const char* name, VSIStatBufL* status, int flags);
    char** (*list)(void* unused, const char* folder, int most) = nullptr;
};

/// Installs a file system for names that begin with `prefix` ("/vsihsi.../"). Call it once per prefix.
void install_file_system(const char* prefix, const FileSystem& files);

} // namespace hsi::raster
