// SPDX-License-Identifier: MIT
#include "raster/gdal_errors.h"

#include "raster/regular_file.h"

#include <cpl_string.h>
#include <cpl_vsi.h>
#include <dlfcn.h>
#include <gdal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>

namespace hsi::raster {
namespace {

/// Returns distinct texts, joined; line breaks become spaces so that a message remains one text line.
std::string join(const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& t : texts) {
        if (all.find(t) != std::string::npos) continue;
        if (!all.empty()) all += "; ";
        all += t;
    }
    std::replace(all.begin(), all.end(), '\n', ' ');
    return all;
}

std::atomic<bool> g_hdf5_expected{false};

} // namespace

void expect_hdf5(const std::string& path) {
    if (g_hdf5_expected) return;
    const std::string begin = beginning_of_file(path, 4);
    // MATLAB files of version 7.3 are HDF5 files with a text header.
    if (begin == "\x89HDF" || begin == "MATL" || STARTS_WITH_CI(path.c_str(), "HDF5:") ||
        STARTS_WITH_CI(path.c_str(), "NETCDF:"))
        g_hdf5_expected = true;
}

/// Stops the HDF5 library from printing on this thread while the object exists. The destructor restores the
/// earlier setting.
class GdalErrors::Hdf5Silence {
  public:
    Hdf5Silence() {
        // Functions of the HDF5 library that GDAL has loaded, if any. This code is built without HDF5's
        // headers. If GDAL hides the library's symbols, the functions are not found.
        static const auto get = reinterpret_cast<Get>(dlsym(RTLD_DEFAULT, "H5Eget_auto2"));
        static const auto set = reinterpret_cast<Set>(dlsym(RTLD_DEFAULT, "H5Eset_auto2"));
        if (get == nullptr || set == nullptr || get(0, &m_printer, &m_data) < 0) return;
        if (set(0, nullptr, nullptr) >= 0) m_set = set;
    }
    ~Hdf5Silence() {
        if (m_set != nullptr) m_set(0, m_printer, m_data);
    }
    Hdf5Silence(const Hdf5Silence&) = delete;
    Hdf5Silence& operator=(const Hdf5Silence&) = delete;

  private:
    using Printer = int (*)(int64_t stack, void* data);
    using Get = int (*)(int64_t stack, Printer* printer, void** data);
    using Set = int (*)(int64_t stack, Printer printer, void* data);

    Printer m_printer = nullptr;
    void* m_data = nullptr;
    Set m_set = nullptr;
};

void register_drivers() {
    static std::mutex registration;
    const std::lock_guard lock(registration);
    if (GDALGetDriverCount() == 0) GDALAllRegister();
}

std::string without_whole_names(std::string text) {
    for (size_t at = text.find(whole_prefix); at != std::string::npos; at = text.find(whole_prefix, at))
        text.erase(at, std::strlen(whole_prefix));
    return text;
}

GdalErrors::GdalErrors() {
    CPLPushErrorHandlerEx(&GdalErrors::collect, this);
    if (g_hdf5_expected) m_hdf5 = std::make_unique<Hdf5Silence>();
}
GdalErrors::~GdalErrors() { CPLPopErrorHandler(); }

void CPL_STDCALL GdalErrors::collect(CPLErr level, CPLErrorNum number, const char* message) {
    auto* self = static_cast<GdalErrors*>(CPLGetErrorHandlerUserData());
    if (level == CE_Failure) {
        // A series of the same error (for example one per block) must not grow without limit.
        if (self->m_failures.size() < 8) self->m_failures.push_back(without_whole_names(message));
    } else if (level == CE_Warning) {
        if (self->m_warnings.size() < 8) self->m_warnings.push_back(without_whole_names(message));
        if (std::strstr(message, "Unable to save auxiliary information") != nullptr)
            self->m_side_file_lost = true;
        CPLDebug("HSI", "%s", message);
    } else {
        CPLDefaultErrorHandler(level, number, message);
    }
}

std::string GdalErrors::text(const std::string& fallback) const {
    return m_failures.empty() ? fallback : join(m_failures);
}

std::string GdalErrors::warnings() const { return join(m_warnings); }

void GdalErrors::clear() {
    m_failures.clear();
    m_warnings.clear();
    m_side_file_lost = false;
}

} // namespace hsi::raster
