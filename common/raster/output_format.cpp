// SPDX-License-Identifier: MIT
#include "raster/output_format.h"

#include "core/error.h"
#include "raster/atomic_file.h"
#include "raster/drivers.h"
#include "raster/gdal_errors.h"
#include "raster/sample_convert.h"
#include "raster/source_impl.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>

namespace hsi::raster {
namespace {

bool writes_rasters(GDALDriver* driver) {
    return has_capability(driver, GDAL_DCAP_RASTER) &&
           (has_capability(driver, GDAL_DCAP_CREATE) || has_capability(driver, GDAL_DCAP_CREATECOPY));
}

GDALDataType output_type(const OutputOptions& options, const OutputSpec& spec) {
    const std::string& name = options.type.empty() ? spec.type : options.type;
    const GDALDataType type = GDALGetDataTypeByName(name.c_str());
    if (type == GDT_Unknown) throw UsageError("-ot " + name + ": GDAL has no such type");
    if (!convertible(type))
        throw UsageError("-ot " + name + ": only real types of up to 8 bytes can be written");
    return type;
}

int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

std::string holds_text(GDALDriver* driver, const OutputSpec& spec, GDALDataType type) {
    return std::string(driver->GetDescription()) + " cannot hold " + std::to_string(spec.shape.bands) +
           (spec.shape.bands == 1 ? " band of " : " bands of ") + GDALGetDataTypeName(type);
}

} // namespace

bool is(GDALDriver* driver, const char* name) { return EQUAL(driver->GetDescription(), name); }

bool takes_blocks(GDALDriver* driver) {
    // COG has a Create from GDAL 3.13 on, which only collects the pixels and makes the file when it is
    // closed, where errors have no way back; and what its blocks were given did not arrive.
    return has_capability(driver, GDAL_DCAP_CREATE) && !is(driver, "COG");
}

GDALDriver* choose_driver(const OutputOptions& options) {
    if (!options.format.empty())
        return driver_by_name(options.format, writes_rasters, "write rasters",
                              "--formats lists the drivers; those with w can write.");
    register_drivers();
    GDALDriverManager* manager = GetGDALDriverManager();
    const std::string extension = extension_of(options.path);
    if (extension.empty() || EQUAL(extension.c_str(), "tif")) return manager->GetDriverByName("GTiff");
    if (GDALDriver* driver = driver_by_extension(extension, writes_rasters)) return driver;
    // The driver has no extension of its own; these two say what is inside.
    if (EQUAL(extension.c_str(), "bsq") || EQUAL(extension.c_str(), "bip"))
        return manager->GetDriverByName("ENVI");
    throw UsageError("no driver writes files with the extension '." + extension + "' of '" + options.path +
                         "'",
                     "Name one with -of.");
}

CPLStringList creation_options(const OutputOptions& options) {
    CPLStringList list;
    for (const std::string& item : options.creation_options)
        list.AddString(item.c_str());
    return list;
}

void add_geotiff_defaults(CPLStringList& list, const stream::CubeShape& shape, GDALDataType type) {
    const auto given = [&](const char* name) { return list.FetchNameValue(name) != nullptr; };
    if (!given("TILED")) list.SetNameValue("TILED", "YES");
    if (!given("BIGTIFF")) list.SetNameValue("BIGTIFF", "IF_SAFER");
    const char* compress = list.FetchNameValueDef("COMPRESS", "NONE");
    const bool wants_pixels = EQUAL(compress, "JPEG") || EQUAL(compress, "WEBP") || EQUAL(compress, "JXL");
    // GDAL's own default keeps the bands of a pixel together: one band of a cube then costs reading all of
    // them, and a 256x256 block of 224 floats is 59 MB.
    if (shape.bands > 1 && !given("INTERLEAVE") && !given("PHOTOMETRIC") && !wants_pixels)
        list.SetNameValue("INTERLEAVE", "BAND");
    // Blocks low enough that one row of them, which is in memory while it is filled, stays small; and no
    // larger than a small scene, since every band pays for the padding.
    if (CPLTestBool(list.FetchNameValue("TILED")) && !given("BLOCKXSIZE") && !given("BLOCKYSIZE")) {
        constexpr int64_t row_limit = int64_t{64} << 20, unit = 16, largest = 256;
        const int64_t width = std::min(largest, round_up(shape.samples, unit));
        int64_t height = std::min(largest, round_up(shape.lines, unit));
        const int64_t line = round_up(shape.samples, width) * shape.bands * GDALGetDataTypeSizeBytes(type);
        while (height > unit && line * height > row_limit)
            height = round_up(height / 2, unit);
        list.SetNameValue("BLOCKXSIZE", std::to_string(width).c_str());
        list.SetNameValue("BLOCKYSIZE", std::to_string(height).c_str());
    }
}

std::optional<NodataValue> fitting(double value, GDALDataType type) {
    NodataValue nodata;
    nodata.real = value;
    if (std::isnan(value)) {
        if (type == GDT_Float32 || type == GDT_Float64) return nodata;
        return std::nullopt;
    }
    if (!match_in_type(nodata, type).active) return std::nullopt;
    return nodata;
}

Target choose_target(const OutputOptions& options, const OutputSpec& spec, bool is_virtual) {
    if (options.path.empty()) throw UsageError("the destination has no name");
    Target target;
    target.driver = choose_driver(options);
    if (is(target.driver, "VRT") != is_virtual)
        throw UsageError("-of VRT: '" + options.path + "' needs pixels of its own, which a VRT does not hold",
                         "Name another format with -of.");
    target.type = output_type(options, spec);
    target.options = creation_options(options);
    if (spec.shape.samples > INT_MAX || spec.shape.lines > INT_MAX)
        throw Error("GDAL rasters end at " + std::to_string(INT_MAX) + " samples and lines");
    for (const std::string& item : options.creation_options)
        if (item.find('=') == std::string::npos || item.front() == '=')
            throw UsageError("-co " + item + ": NAME=VALUE is needed");
    const CPLStringList types(
        CSLTokenizeString2(target.driver->GetMetadataItem(GDAL_DMD_CREATIONDATATYPES), " ", 0));
    if (!types.empty() && types.FindString(GDALGetDataTypeName(target.type)) < 0)
        throw UsageError(holds_text(target.driver, spec, target.type),
                         "It takes the types " +
                             std::string(target.driver->GetMetadataItem(GDAL_DMD_CREATIONDATATYPES)) +
                             "; see -ot.");
    if (options.nodata && !fitting(*options.nodata, target.type))
        throw UsageError("-dstnodata " + std::string(CPLSPrintf("%.17g", *options.nodata)) +
                         " is no value of the type " + GDALGetDataTypeName(target.type));
    {
        const GdalErrors errors;
        if (!GDALValidateCreationOptions(target.driver, target.options.List()))
            throw UsageError("-co: " + (errors.any() ? errors.text() : errors.warnings()));
    }
    if (!is_virtual && is(target.driver, "GTiff"))
        add_geotiff_defaults(target.options, spec.shape, target.type);
    return target;
}

void try_target(const Target& target, const OutputOptions& options, const OutputSpec& spec) {
    GDALDriver* const driver = target.driver;
    const GDALDataType type = target.type;
    const CPLStringList& list = target.options;
    constexpr int side = 16;
    const std::string extension = extension_of(options.path);
    const std::string suffix = extension.empty() ? "" : "." + extension;
    const bool memory = has_capability(driver, GDAL_DCAP_VIRTUALIO);
    const std::string in_memory = CPLSPrintf("/vsimem/hsi-try-%d-%p/t", static_cast<int>(getpid()),
                                             static_cast<const void*>(&extension)) +
                                  suffix;
    const std::string beside = (options.path.rfind("/vsi", 0) == 0 ? std::string("t") : options.path);
    const AtomicFile file(memory ? in_memory : beside);
    const GdalErrors errors;
    bool made = false;
    if (takes_blocks(driver)) {
        const DatasetHandle dataset(driver->Create(file.path().c_str(), side, side, spec.shape.bands, type,
                                                   const_cast<char**>(list.List())));
        made = dataset != nullptr;
    } else {
        const DatasetHandle from(GetGDALDriverManager()->GetDriverByName("MEM")->Create(
            "", side, side, spec.shape.bands, type, nullptr));
        const DatasetHandle dataset(from ? driver->CreateCopy(file.path().c_str(), from.get(), FALSE,
                                                              const_cast<char**>(list.List()), nullptr,
                                                              nullptr)
                                         : nullptr);
        made = dataset != nullptr;
    }
    if (!made || errors.any()) throw UsageError(holds_text(driver, spec, type) + ": " + errors.text());
}

} // namespace hsi::raster
