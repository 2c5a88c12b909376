// SPDX-License-Identifier: MIT
#include "raster/sink/output_format.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/names.h"
#include "raster/gdal/drivers.h"
#include "raster/gdal/gdal_errors.h"
#include "raster/gdal/sample_convert.h"
#include "raster/sink/creation_options.h"
#include "raster/sink/nodata_choice.h"

#include <climits>

namespace hsi::raster {
namespace {

/// GDAL's ZMap claims .dat, its EHdr .bil, and no driver the others; who works with spectra means ENVI.
constexpr const char* envi_extensions = "dat raw bsq bil bip envi";

bool writes_rasters(GDALDriver* driver) {
    return has_capability(driver, GDAL_DCAP_RASTER) && keeps_files(driver) &&
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

} // namespace

bool is(GDALDriver* driver, const char* name) { return EQUAL(driver->GetDescription(), name); }

bool takes_blocks(GDALDriver* driver) {
    // COG has a Create from GDAL 3.13 on, which only collects the pixels and makes the file when it is
    // closed, where errors have no way back; and what its blocks were given did not arrive.
    return has_capability(driver, GDAL_DCAP_CREATE) && !is(driver, "COG");
}

bool is_computed(const OutputOptions& options) {
    return equal_names(options.format.empty() ? extension_of(options.path) : options.format, "hsi");
}

GDALDriver* choose_driver(const OutputOptions& options) {
    check_is_file(options.path);
    if (is_computed(options)) return driver_by_name("VRT", writes_rasters, "write rasters into files", "");
    if (!options.format.empty())
        return driver_by_name(options.format, writes_rasters, "write rasters into files",
                              "--formats lists the drivers; those with w can write.");
    register_drivers();
    GDALDriverManager* manager = GetGDALDriverManager();
    const std::string extension = extension_of(options.path);
    if (extension.empty() || EQUAL(extension.c_str(), "tif")) return manager->GetDriverByName("GTiff");
    if (is_any(extension, envi_extensions)) return manager->GetDriverByName("ENVI");
    GDALDriver* const zarr = manager->GetDriverByName("Zarr"); // which in older versions claims no extension
    if (zarr != nullptr && EQUAL(extension.c_str(), "zarr") && writes_rasters(zarr)) return zarr;
    if (EQUAL(extension.c_str(), "hdr"))
        throw UsageError("'" + options.path + "' is the name of a header",
                         "Name the data file, such as .dat or .img; -of MFF writes that format's .hdr.");
    if (GDALDriver* driver = driver_by_extension(extension, writes_rasters)) return driver;
    throw UsageError("no driver writes files with the extension '." + extension + "' of '" + options.path +
                         "'",
                     "Name one with -of.");
}

bool lists_type(GDALDriver* driver, GDALDataType type) {
    const CPLStringList types(
        CSLTokenizeString2(driver->GetMetadataItem(GDAL_DMD_CREATIONDATATYPES), " ", 0));
    return types.empty() || types.FindString(GDALGetDataTypeName(type)) >= 0;
}

std::string holds_text(GDALDriver* driver, const OutputSpec& spec, GDALDataType type) {
    return std::string(driver->GetDescription()) + " cannot hold " + counted(spec.shape.bands, "band") +
           " of " + GDALGetDataTypeName(type);
}

std::string types_advice(GDALDriver* driver) {
    return "It takes the types " + std::string(driver->GetMetadataItem(GDAL_DMD_CREATIONDATATYPES)) +
           "; see -ot.";
}

Target choose_target(const OutputOptions& options, const OutputSpec& spec, bool is_virtual) {
    if (options.path.empty()) throw UsageError("the destination has no name");
    Target target;
    target.driver = choose_driver(options);
    const bool computed = is_computed(options);
    if (is(target.driver, "VRT") != is_virtual)
        throw UsageError(std::string(computed ? "-of HSI: '" : "-of VRT: '") + options.path +
                             "' needs pixels of its own, which " + (computed ? "an .hsi" : "a VRT") +
                             " does not hold",
                         "Name another format with -of.");
    target.type = output_type(options, spec);
    if (computed && !exact_in_float(target.type))
        throw UsageError(
            "-ot " + std::string(GDALGetDataTypeName(target.type)) +
                ": a scene that computes has values of single precision, and of integers of 8 and "
                "16 bits",
            "Leave -ot out.");
    target.options = creation_options(options);
    if (spec.shape.samples > INT_MAX || spec.shape.lines > INT_MAX)
        throw Error("GDAL rasters end at " + std::to_string(INT_MAX) + " samples and lines");
    for (const std::string& item : options.creation_options)
        if (item.find('=') == std::string::npos || item.front() == '=')
            throw UsageError("-co " + item + ": NAME=VALUE is needed");
    target.copies = !takes_blocks(target.driver);
    if (!spec.categories.empty()) target.largest_class = static_cast<int>(spec.categories.size()) - 1;
    if (!lists_type(target.driver, target.type)) {
        if (!has_capability(target.driver, GDAL_DCAP_CREATECOPY))
            throw UsageError(holds_text(target.driver, spec, target.type), types_advice(target.driver));
        target.copies = true; // which may well widen the type
    }
    if (options.nodata && !fitting(*options.nodata, target.type))
        throw UsageError("-dstnodata " + std::string(CPLSPrintf("%.17g", *options.nodata)) +
                         " is no value of the type " + GDALGetDataTypeName(target.type));
    {
        const GdalErrors errors;
        if (!GDALValidateCreationOptions(target.driver, target.options.List()))
            throw UsageError("-co: " + (errors.any() ? errors.text() : errors.warnings()));
    }
    if (!is_virtual) complete_options(target, options, spec.shape);
    return target;
}

} // namespace hsi::raster
