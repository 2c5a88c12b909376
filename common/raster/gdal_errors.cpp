// SPDX-License-Identifier: MIT
#include "raster/gdal_errors.h"

#include <gdal.h>

#include <algorithm>
#include <cstring>
#include <mutex>

namespace hsi::raster {
namespace {

/// Distinct texts, joined; line breaks inside become spaces so that a message stays one line.
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

} // namespace

void register_drivers() {
    static std::mutex registration;
    const std::lock_guard lock(registration);
    if (GDALGetDriverCount() == 0) GDALAllRegister();
}

GdalErrors::GdalErrors() { CPLPushErrorHandlerEx(&GdalErrors::collect, this); }
GdalErrors::~GdalErrors() { CPLPopErrorHandler(); }

void CPL_STDCALL GdalErrors::collect(CPLErr level, CPLErrorNum number, const char* message) {
    auto* self = static_cast<GdalErrors*>(CPLGetErrorHandlerUserData());
    if (level == CE_Failure) {
        // A run of the same error (one a block, say) must not grow without bound.
        if (self->m_failures.size() < 8) self->m_failures.emplace_back(message);
    } else if (level == CE_Warning) {
        if (self->m_warnings.size() < 8) self->m_warnings.emplace_back(message);
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
