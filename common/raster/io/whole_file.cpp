// SPDX-License-Identifier: MIT
#include "raster/io/whole_file.h"

#include "core/counted.h"
#include "core/error.h"
#include "raster/gdal_errors.h"
#include "raster/io/file_system.h"
#include "raster/io/remote_file.h"
#include "raster/regular_file.h"

#include <cpl_vsi.h>
#include <cpl_vsi_error.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

namespace hsi::raster {
namespace {

std::mutex g_mutex;
uint64_t g_lost = 0;
std::string g_last;

void lose(const std::string& what) {
    const std::lock_guard lock(g_mutex);
    ++g_lost;
    g_last = what;
}

/// Counts a loss if opening a file has failed for another reason than that the server does not have the file.
void lose_in_trouble(const char* name) {
    if (const std::string said = VSIGetLastErrorMsg(); is_trouble(said))
        lose("cannot open '" + std::string(name) + "': " + said);
}

class WholeFile final : public ReadFile {
  public:
    WholeFile(std::string path, VSILFILE* file) : m_path(std::move(path)), m_file(file) {
        if (VSIFSeekL(file, 0, SEEK_END) == 0) m_size = VSIFTellL(file);
    }
    ~WholeFile() override { VSIFCloseL(m_file); }
    uint64_t size() override { return m_size; }
    size_t read(uint64_t at, void* to, size_t wanted) override {
        const size_t bytes = at < m_size ? std::min<uint64_t>(m_size - at, wanted) : 0;
        // After a loss, a driver that continues to read must not wait again.
        if (bytes == 0 || m_lost) return 0;
        std::string why;
        if (read_whole(m_path, m_file, at, bytes, to, &why)) return bytes;
        lose("cannot fetch " + counted(bytes, "byte") + " at byte " + std::to_string(at) + " of '" + m_path +
             "': " + why);
        m_lost = true;
        return 0;
    }

  private:
    const std::string m_path;
    VSILFILE* const m_file;
    uint64_t m_size = 0;
    bool m_lost = false;
};

std::unique_ptr<ReadFile> open_whole(const char* name) {
    VSIErrorReset();
    if (VSILFILE* const file = open_watched(name)) return std::make_unique<WholeFile>(name, file);
    lose_in_trouble(name);
    return nullptr;
}

int stat_whole(void*, const char* name, VSIStatBufL* status, int flags) {
    VSIErrorReset();
    const AnswerWatch watch(name);
    const int all = VSI_STAT_EXISTS_FLAG | VSI_STAT_NATURE_FLAG | VSI_STAT_SIZE_FLAG;
    const int result = VSIStatExL(name, status, (flags == 0 ? all : flags) | VSI_STAT_SET_ERROR_FLAG);
    if (result != 0) lose_in_trouble(name);
    return result;
}

char** list_whole(void*, const char* folder, int most) {
    const AnswerWatch watch(folder);
    return VSIReadDirEx(folder, most);
}

void install() {
    static std::once_flag once;
    std::call_once(once, [] { install_file_system(whole_prefix, {open_whole, stat_whole, list_whole}); });
}

} // namespace

std::string whole_name(const std::string& name) {
    const std::string file = file_of_subdataset(name);
    const size_t at = name.find(file);
    if (file.rfind(whole_prefix, 0) == 0 || VSIIsLocal(file.c_str()) || at == std::string::npos) return name;
    install();
    return name.substr(0, at) + whole_prefix + name.substr(at);
}

Losses::Losses() {
    const std::lock_guard lock(g_mutex);
    m_before = g_lost;
}

void Losses::check() const {
    const std::lock_guard lock(g_mutex);
    if (g_lost != m_before)
        throw Error(g_last, "Try again later, or set GDAL_HTTP_MAX_RETRY=N for N more tries.");
}

void Losses::check_after(const std::function<void()>& read) const {
    try {
        read();
    } catch (const UsageError&) {
        throw;
    } catch (const Cancelled&) {
        throw;
    } catch (const Error&) {
        check();
        throw;
    }
    check();
}

} // namespace hsi::raster
