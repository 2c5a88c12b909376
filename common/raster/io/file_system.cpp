// SPDX-License-Identifier: MIT
#include "raster/io/file_system.h"

#include <cstdio>
#include <cstring>
#include <utility>

namespace hsi::raster {
namespace {

struct OpenFile {
    std::unique_ptr<ReadFile> file;
    vsi_l_offset at = 0;
    bool past_end = false;
};

OpenFile& open_of(void* handle) { return *static_cast<OpenFile*>(handle); }

using Opener = std::unique_ptr<ReadFile> (*)(const char* name);

void* open_file(void* open, const char* name, const char* access) {
    if (std::strpbrk(access, "wa+") != nullptr) return nullptr;
    auto file = (*static_cast<const Opener*>(open))(name);
    return file ? new OpenFile{std::move(file)} : nullptr;
}

vsi_l_offset tell_file(void* handle) { return open_of(handle).at; }

int seek_file(void* handle, vsi_l_offset offset, int whence) {
    OpenFile& h = open_of(handle);
    h.past_end = false;
    h.at = offset + (whence == SEEK_END ? h.file->size() : whence == SEEK_CUR ? h.at : 0);
    return 0;
}

size_t read_file(void* handle, void* to, size_t size, size_t count) {
    OpenFile& h = open_of(handle);
    if (size == 0 || count == 0) return 0;
    const size_t bytes = h.file->read(h.at, to, size * count);
    h.past_end = bytes < size * count;
    h.at += bytes;
    return bytes / size;
}

int file_has_ended(void* handle) { return open_of(handle).past_end ? 1 : 0; }

int close_file(void* handle) {
    const std::unique_ptr<OpenFile> last(static_cast<OpenFile*>(handle));
    return 0;
}

} // namespace

void install_file_system(const char* prefix, const FileSystem& files) {
    VSIFilesystemPluginCallbacksStruct* const calls = VSIAllocFilesystemPluginCallbacksStruct();
    // Never deleted, because the file system exists until the process ends.
    calls->pUserData = new Opener(files.open);
    calls->open = open_file;
    calls->stat = files.stat;
    calls->read_dir = files.list;
    calls->tell = tell_file;
    calls->seek = seek_file;
    calls->read = read_file;
    calls->eof = file_has_ended;
    calls->close = close_file;
    VSIInstallPluginHandler(prefix, calls);
    VSIFreeFilesystemPluginCallbacksStruct(calls);
}

} // namespace hsi::raster
