// SPDX-License-Identifier: MIT
#include "raster/gdal/whole_file.h"

#include "core/counted.h"
#include "core/error.h"
#include "raster/gdal/regular_file.h"
#include "raster/gdal/remote_file.h"

#include <cpl_vsi.h>
#include <cpl_vsi_error.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>

namespace hsi::raster {
namespace {

constexpr const char* prefix = "/vsihsi_whole/";

std::mutex g_mutex;
uint64_t g_lost = 0;
std::string g_last;

void lose(const std::string& what) {
    const std::lock_guard lock(g_mutex);
    ++g_lost;
    g_last = what;
}

/// A server that is in trouble has not said that there is no such file.
void lose_in_trouble(const char* name) {
    if (const std::string said = VSIGetLastErrorMsg(); is_trouble(said))
        lose("cannot open '" + std::string(name) + "': " + said);
}

struct WholeFile {
    std::string path;
    VSILFILE* file = nullptr;
    vsi_l_offset size = 0, at = 0;
    bool past_end = false, lost = false;
};

void* open_whole(void*, const char* name, const char* access) {
    if (std::strpbrk(access, "wa+") != nullptr) return nullptr;
    VSIErrorReset();
    VSILFILE* const file = VSIFOpenExL(name, "rb", TRUE);
    if (file == nullptr) {
        lose_in_trouble(name);
        return nullptr;
    }
    auto whole = std::make_unique<WholeFile>();
    whole->path = name;
    whole->file = file;
    if (VSIFSeekL(file, 0, SEEK_END) == 0) whole->size = VSIFTellL(file);
    return whole.release();
}

int stat_whole(void*, const char* name, VSIStatBufL* status, int flags) {
    VSIErrorReset();
    const int all = VSI_STAT_EXISTS_FLAG | VSI_STAT_NATURE_FLAG | VSI_STAT_SIZE_FLAG;
    const int result = VSIStatExL(name, status, (flags == 0 ? all : flags) | VSI_STAT_SET_ERROR_FLAG);
    if (result != 0) lose_in_trouble(name);
    return result;
}

char** list_whole(void*, const char* folder, int most) { return VSIReadDirEx(folder, most); }

vsi_l_offset tell_whole(void* handle) { return static_cast<WholeFile*>(handle)->at; }

int seek_whole(void* handle, vsi_l_offset offset, int whence) {
    auto& whole = *static_cast<WholeFile*>(handle);
    whole.past_end = false;
    whole.at = offset + (whence == SEEK_END ? whole.size : whence == SEEK_CUR ? whole.at : 0);
    return 0;
}

size_t read_whole_file(void* handle, void* to, size_t size, size_t count) {
    auto& whole = *static_cast<WholeFile*>(handle);
    if (size == 0 || count == 0) return 0;
    const uint64_t left = whole.at < whole.size ? whole.size - whole.at : 0,
                   bytes = std::min<uint64_t>(left, uint64_t{size} * count);
    whole.past_end = bytes < uint64_t{size} * count;
    if (bytes == 0 || whole.lost) return 0; // a driver that goes on is not to wait again and again
    if (!read_whole(whole.path, whole.file, whole.at, bytes, to)) {
        lose("cannot fetch " + counted(bytes, "byte") + " at byte " + std::to_string(whole.at) + " of '" +
             whole.path + "'");
        whole.lost = true;
        return 0;
    }
    whole.at += bytes;
    return bytes / size;
}

int end_of_whole(void* handle) { return static_cast<WholeFile*>(handle)->past_end ? 1 : 0; }

int close_whole(void* handle) {
    const std::unique_ptr<WholeFile> whole(static_cast<WholeFile*>(handle));
    return VSIFCloseL(whole->file);
}

void install() {
    static std::once_flag once;
    std::call_once(once, [] {
        VSIFilesystemPluginCallbacksStruct* const calls = VSIAllocFilesystemPluginCallbacksStruct();
        calls->open = open_whole;
        calls->stat = stat_whole;
        calls->read_dir = list_whole;
        calls->tell = tell_whole;
        calls->seek = seek_whole;
        calls->read = read_whole_file;
        calls->eof = end_of_whole;
        calls->close = close_whole;
        VSIInstallPluginHandler(prefix, calls);
        VSIFreeFilesystemPluginCallbacksStruct(calls);
    });
}

} // namespace

std::string whole_name(const std::string& name) {
    const std::string file = file_of_subdataset(name);
    const size_t at = name.find(file);
    if (file.rfind(prefix, 0) == 0 || VSIIsLocal(file.c_str()) || at == std::string::npos) return name;
    install();
    return name.substr(0, at) + prefix + name.substr(at);
}

std::string without_whole_names(std::string text) {
    for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at))
        text.erase(at, std::strlen(prefix));
    return text;
}

Losses::Losses() {
    const std::lock_guard lock(g_mutex);
    m_before = g_lost;
}

void Losses::check() const {
    const std::lock_guard lock(g_mutex);
    if (g_lost != m_before) throw Error(g_last, "Try again later; GDAL_HTTP_MAX_RETRY=N tries N times more.");
}

} // namespace hsi::raster
