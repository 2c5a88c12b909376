// SPDX-License-Identifier: MIT
// The functions of regular_file.h that read the beginning of files. A server may send more than was
// requested.
#include "core/file_path.h"
#include "raster/gdal_errors.h"
#include "raster/io/server_answers.h"
#include "raster/regular_file.h"

#include <cpl_string.h>
#include <cpl_vsi.h>

#include <cstring>
#include <memory>
#include <optional>

namespace hsi::raster {
namespace {

/// A regular file that can be read at any position. Reading any other file gives no bytes.
class Beginning {
  public:
    explicit Beginning(const std::string& path) {
        if (is_regular_file(path)) m_file = open_watched(path);
        if (m_file != nullptr && !VSIIsLocal(path.c_str())) m_watch.emplace(path);
    }
    ~Beginning() {
        if (m_file != nullptr) VSIFCloseL(m_file);
    }
    Beginning(const Beginning&) = delete;
    Beginning& operator=(const Beginning&) = delete;

    /// Returns the number of bytes read.
    size_t read(vsi_l_offset at, char* to, size_t bytes) {
        if (m_file == nullptr || VSIFSeekL(m_file, at, SEEK_SET) != 0) return 0;
        const size_t got = VSIFReadL(to, 1, bytes, m_file);
        return m_watch && m_watch->cut() ? 0 : got;
    }

  private:
    VSILFILE* m_file = nullptr;
    std::optional<AnswerWatch> m_watch;
};

} // namespace

bool leads_to_hdf5(const std::string& path) {
    if (STARTS_WITH_CI(path.c_str(), "HDF5:") || STARTS_WITH_CI(path.c_str(), "NETCDF:")) return true;
    const GdalErrors quiet;
    Beginning file(path);
    // Each position costs a request to a server, so only the first 16 KB of a remote file are searched.
    // Programs put little data before the HDF5 signature.
    const vsi_l_offset last_place = vsi_l_offset{1} << (is_local(path) ? 30 : 14);
    bool found = false, more = true;
    for (vsi_l_offset at = 0; !found && more && at <= last_place; at = at == 0 ? 512 : 2 * at) {
        char begin[8];
        more = file.read(at, begin, sizeof begin) == sizeof begin;
        found = more && std::memcmp(begin, "\x89HDF\r\n\x1a\n", sizeof begin) == 0;
    }
    return found;
}

std::string beginning_of_file(const std::string& path, size_t bytes) {
    const GdalErrors quiet;
    std::string text(bytes, '\0');
    text.resize(Beginning(path).read(0, text.data(), bytes));
    return text;
}

} // namespace hsi::raster
