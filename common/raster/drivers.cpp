// SPDX-License-Identifier: MIT
#include "raster/drivers.h"

#include "core/error.h"
#include "raster/gdal_errors.h"

#include <cpl_string.h>
#include <gdal_priv.h>

namespace hsi::raster {

bool has_capability(GDALDriver* driver, const char* capability) {
    const char* value = driver->GetMetadataItem(capability);
    return value != nullptr && CPLTestBool(value);
}

std::string extension_of(const std::string& path) {
    const std::string name = path.substr(path.rfind('/') + 1);
    const size_t dot = name.rfind('.');
    return dot == std::string::npos || dot == 0 ? std::string() : name.substr(dot + 1);
}

GDALDriver* driver_by_name(const std::string& name, const DriverTest& qualifies, const std::string& what,
                           const std::string& advice) {
    register_drivers();
    GDALDriver* driver = GetGDALDriverManager()->GetDriverByName(name.c_str());
    if (driver == nullptr)
        throw UsageError("-of " + name + ": GDAL has no such driver", "--formats lists the drivers.");
    if (!qualifies(driver)) throw UsageError("-of " + name + ": this driver cannot " + what, advice);
    return driver;
}

GDALDriver* driver_by_extension(const std::string& extension, const DriverTest& qualifies) {
    register_drivers();
    GDALDriverManager* manager = GetGDALDriverManager();
    for (int i = 0; i < manager->GetDriverCount(); ++i) {
        GDALDriver* driver = manager->GetDriver(i);
        if (!qualifies(driver)) continue;
        const char* list = driver->GetMetadataItem(GDAL_DMD_EXTENSIONS);
        if (list == nullptr) list = driver->GetMetadataItem(GDAL_DMD_EXTENSION);
        const CPLStringList extensions(CSLTokenizeString2(list ? list : "", " ", 0));
        if (extensions.FindString(extension.c_str()) >= 0) return driver;
    }
    return nullptr;
}

} // namespace hsi::raster
