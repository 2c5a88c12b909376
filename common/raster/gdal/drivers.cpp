// SPDX-License-Identifier: MIT
#include "raster/drivers.h"

#include "core/error.h"
#include "core/sample_type.h"
#include "core/text.h"
#include "raster/gdal_errors.h"

#include <cpl_string.h>
#include <gdal_priv.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <unistd.h>

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
    if (driver == nullptr) {
        std::vector<std::string> names;
        for (int i = 0; i < GetGDALDriverManager()->GetDriverCount(); ++i)
            if (GDALDriver* const one = GetGDALDriverManager()->GetDriver(i); qualifies(one))
                names.emplace_back(one->GetDescription());
        const std::string near = did_you_mean(name, names);
        throw UsageError("-of " + name + ": GDAL has no such driver",
                         near + (near.empty() ? "" : " ") + "--formats lists the drivers.");
    }
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

bool keeps_files(GDALDriver* driver) {
    if (driver->GetMetadataItem(GDAL_DMD_CONNECTION_PREFIX) == nullptr) return true;
    return driver->GetMetadataItem(GDAL_DMD_EXTENSION) != nullptr ||
           driver->GetMetadataItem(GDAL_DMD_EXTENSIONS) != nullptr;
}

bool reads_hdf5(const std::string& driver) {
    const auto names = {"HDF5Image", "HDF5", "netCDF", "BAG", "KEA", "S102", "S104", "S111"};
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return driver == name; });
}

namespace {

/// Returns true if a name begins like the names of a family of GDAL's settings. GDAL has no list of its
/// settings, and any setting may be in the environment.
bool is_setting(const std::string& name) {
    return begins_like_any(name, {"GDAL_", "CPL_",    "OGR_",    "OSR_",  "PROJ_", "HSI_SIMD",
                                  "VRT_",  "GTIFF_",  "TIFF_",   "COG_",  "ENVI_", "NETCDF_",
                                  "HDF4_", "HDF5_",   "ZARR_",   "JPEG_", "OPJ_",  "PNG_",
                                  "WEBP_", "NITF_",   "PCIDSK_", "HFA_",  "MRF_",  "SHAPE_",
                                  "DBF_",  "SQLITE_", "GPKG_",   "USE_",  "BSB_",  "RASTERLITE_"});
}

/// Returns true for settings of access (which change from day to day), speed, or messages.
bool changes_no_result(const std::string& name) {
    return begins_like_any(name, {"GDAL_HTTP_",
                                  "CPL_VSIL_",
                                  "CPL_CURL_",
                                  "CPL_AWS_",
                                  "CPL_GS_",
                                  "CPL_AZURE_",
                                  "CPL_DEBUG",
                                  "CPL_LOG",
                                  "CPL_TIME",
                                  "CPL_TMP",
                                  "CPL_ERROR",
                                  "CPL_MAX_ERROR",
                                  "CPL_CPU",
                                  "AWS_",
                                  "GS_",
                                  "AZURE_",
                                  "OSS_",
                                  "SWIFT_",
                                  "VSI_CACHE",
                                  "GDAL_CACHEMAX",
                                  "GDAL_NUM_",
                                  "PROJ_DEBUG",
                                  "GDAL_MAX_DATASET_POOL",
                                  "GDAL_CONFIG_FILE",
                                  "GDAL_SWATH_SIZE",
                                  "GDAL_DISABLE_CPLLOCALEC",
                                  "GDAL_HSI_SERVERS"});
}

} // namespace

std::string setting(const char* name, const char* otherwise) { return CPLGetConfigOption(name, otherwise); }

std::vector<std::string> pixel_types() {
    std::vector<std::string> names;
    // The types depend on GDAL's version: Int8 exists from 3.7 on.
    for (int t = GDT_Byte; t < GDT_TypeCount; ++t)
        if (const char* const name = name_of(static_cast<SampleType>(t))) names.emplace_back(name);
    return names;
}

std::string gdal_version() { return GDALVersionInfo("RELEASE_NAME"); }

std::vector<std::string> settings_of_results() {
    GetGDALDriverManager(); // reads GDAL's configuration file, if not read before
    std::map<std::string, std::string> all;
    const auto take = [&](const char* const* list, bool any_name) {
        for (; list != nullptr && *list != nullptr; ++list) {
            const std::string setting = *list;
            const size_t end = setting.find('=');
            if (end == std::string::npos) continue;
            const std::string name = CPLString(setting.substr(0, end)).toupper();
            if ((any_name || is_setting(name)) && !changes_no_result(name))
                all[name] = setting.substr(end + 1);
        }
    };
    take(environ, false);
    const CPLStringList of_process(CPLGetConfigOptions()), of_thread(CPLGetThreadLocalConfigOptions());
    // Settings of the thread and the process override the environment, as in GDAL.
    take(of_process.List(), true);
    take(of_thread.List(), true);
    std::vector<std::string> settings;
    settings.reserve(all.size());
    for (const auto& [name, value] : all)
        settings.push_back(name + "=" + value);
    return settings;
}

void check_is_file(const std::string& path) {
    const size_t colon = path.find(':');
    // A single letter before the colon is a drive on Windows. A colon after a slash is part of a file name.
    if (colon == std::string::npos || colon < 2 || path.find('/') < colon) return;
    const std::string prefix = path.substr(0, colon);
    // The prefixes that drivers declare are incomplete, and drivers that are not installed declare none.
    static const char* const known[] = {
        "PG",      "PGeo",      "MySQL",  "MSSQL", "OCI",       "ODBC", "HANA",       "IDB",   "DB2",    "ES",
        "MongoDB", "MongoDBv3", "SQLite", "MEM",   "GEORASTER", "HDF4", "RASTERLITE", "DIMAP", "L1BGCPS"};
    // GTIFF_RAW, NITF_IM, SENTINEL2_L1C_TILE: a driver's prefixes for parts of files begin with its name.
    const auto names = [&](const std::string& family) {
        return EQUAL(prefix.c_str(), family.c_str()) ||
               STARTS_WITH_CI(prefix.c_str(), (family + "_").c_str());
    };
    std::string owner;
    for (const char* name : known)
        if (names(name)) owner = name;
    register_drivers();
    GDALDriverManager* manager = GetGDALDriverManager();
    for (int i = 0; owner.empty() && i < manager->GetDriverCount(); ++i) {
        GDALDriver* driver = manager->GetDriver(i);
        const char* own = driver->GetMetadataItem(GDAL_DMD_CONNECTION_PREFIX);
        const std::string said = own ? own : "";
        if (names(driver->GetDescription()) || (!said.empty() && names(said.substr(0, said.find(':')))))
            owner = driver->GetDescription();
    }
    if (owner.empty()) return;
    throw UsageError(
        "'" + path + "' is not a file: names that begin with " + prefix +
            ": are databases, services or parts of files",
        "Write a file, then load it with ogr2ogr or gdal_translate; for a file with this name, write ./" +
            path + ".");
}

} // namespace hsi::raster
