// SPDX-License-Identifier: MIT
#include "raster/output_format.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"
#include "raster/drivers.h"
#include "raster/files/already_exists.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"
#include "raster/output/creation_options.h"
#include "raster/output/nodata_choice.h"
#include "raster/output/stac_item.h"
#include "raster/run_files.h"
#include "raster/sample_convert.h"
#include "raster/side_files.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {

namespace {

/// Extensions that mean ENVI here. GDAL's driver ZMap claims .dat and its driver EHdr claims .bil, but users
/// of spectral data mean ENVI. No driver claims the other extensions.
constexpr const char* envi_extensions = "dat raw bsq bil bip envi";

bool writes_rasters(GDALDriver* driver) {
    return has_capability(driver, GDAL_DCAP_RASTER) && keeps_files(driver) &&
           (has_capability(driver, GDAL_DCAP_CREATE) || has_capability(driver, GDAL_DCAP_CREATECOPY));
}

GDALDataType output_type(const OutputOptions& options, const OutputSpec& spec) {
    const std::string& name = options.type.empty() ? spec.type : options.type;
    const GDALDataType type = GDALGetDataTypeByName(name.c_str());
    if (type == GDT_Unknown) throw UsageError("-ot " + name + ": GDAL has no such type");
    if (!convertible(sample_type(type)))
        throw UsageError("-ot " + name + ": only real types of up to 8 bytes can be written");
    return type;
}

/// Prepares a target for -follow, to which lines are added. The target must be an ENVI file that stores the
/// bands of a line together, because its header states the number of lines.
void make_to_grow(Target& target, const OutputOptions& options, int bands) {
    const std::string name = options.role + " '" + options.path + "'";
    if (!is(target.driver, "ENVI") || !is_local(options.path))
        throw UsageError("-follow: " + name + " cannot be read while it grows: its format is " +
                             target.driver->GetDescription(),
                         "Use a raw ENVI file: .dat, .bil, .bip, or -of ENVI.");
    if (bands == 1) return;
    const char* const interleave = target.options.FetchNameValue("INTERLEAVE");
    if (interleave != nullptr && EQUAL(interleave, "BSQ"))
        throw UsageError("-follow: " + name + " cannot grow by lines with -co INTERLEAVE=BSQ",
                         "Leave the option out, or use BIL or BIP.");
    const std::string extension = extension_of(options.path);
    if (interleave == nullptr && equal_names(extension, "bsq"))
        throw UsageError("-follow: " + name + " cannot grow by lines, since its extension means BSQ",
                         "Name it .bil or .bip, or use -co INTERLEAVE=BIL.");
    const bool pixels = equal_names(extension, "bip");
    if (interleave == nullptr) target.options.SetNameValue("INTERLEAVE", pixels ? "BIP" : "BIL");
}

} // namespace

bool is(GDALDriver* driver, const char* name) { return EQUAL(driver->GetDescription(), name); }

void check_memory_left(GDALDriver* driver) {
    constexpr size_t enough = size_t{8} << 20;
    if (!is(driver, "Zarr")) return;
    void* volatile room = std::malloc(enough); // volatile prevents the compiler from removing both calls
    std::free(room);
    if (room == nullptr) throw Error("out of memory", "Use a smaller -memory, or fewer -threads.");
}

bool takes_blocks(GDALDriver* driver) {
    // From GDAL 3.13 on, the COG driver has Create. This Create only collects the pixels, and creates the
    // file when the dataset is closed. Errors cannot be returned then, and data that were written by block
    // are lost.
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
                              "--formats lists the drivers; drivers with w can write.");
    register_drivers();
    GDALDriverManager* manager = GetGDALDriverManager();
    const std::string extension = extension_of(options.path);
    if (extension.empty() || EQUAL(extension.c_str(), "tif")) return manager->GetDriverByName("GTiff");
    if (is_any(extension, envi_extensions)) return manager->GetDriverByName("ENVI");
    GDALDriver* const zarr = manager->GetDriverByName("Zarr"); // older versions of GDAL do not claim .zarr
    if (zarr != nullptr && EQUAL(extension.c_str(), "zarr") && writes_rasters(zarr)) return zarr;
    if (EQUAL(extension.c_str(), "hdr"))
        throw UsageError(
            "'" + options.path + "' is the name of a header",
            "Give the name of the data file, such as .dat or .img; for the MFF format, use -of MFF.");
    if (GDALDriver* driver = driver_by_extension(extension, writes_rasters)) return driver;
    throw UsageError("no driver writes files with the extension '." + extension + "' of '" + options.path +
                         "'",
                     "Choose a driver with -of.");
}

std::string compression_of(const OutputOptions& options) {
    if (options.path.empty()) return {};
    GDALDriver* const driver = choose_driver(options);
    const std::string codec = compression_of(driver, creation_options(options));
    return EQUAL(codec.c_str(), "NONE") ? std::string() : codec;
}

bool is_virtual(const OutputOptions& options) { return is(choose_driver(options), "VRT"); }

bool lists_type(GDALDriver* driver, GDALDataType type) {
    const CPLStringList types(
        CSLTokenizeString2(driver->GetMetadataItem(GDAL_DMD_CREATIONDATATYPES), " ", 0));
    return types.empty() || types.FindString(GDALGetDataTypeName(type)) >= 0;
}

std::string holds_text(GDALDriver* driver, const OutputSpec& spec, GDALDataType type) {
    return std::string(driver->GetDescription()) + " cannot store " + counted(spec.shape.bands, "band") +
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
                             "' needs stored pixels, but " + (computed ? "an .hsi" : "a VRT") + " has none",
                         "Choose another format with -of.");
    target.type = output_type(options, spec);
    if (computed && !exact_in_float(sample_type(target.type)))
        throw UsageError("-ot " + std::string(GDALGetDataTypeName(target.type)) +
                             ": the pixel types of a virtual scene are Float32 and integers of 8 and 16 bits",
                         "Leave -ot out.");
    target.options = creation_options(options);
    if (spec.shape.samples > INT_MAX || spec.shape.lines > INT_MAX)
        throw Error("GDAL rasters have at most " + std::to_string(INT_MAX) + " samples and lines");
    for (const std::string& item : options.creation_options)
        if (item.find('=') == std::string::npos || item.front() == '=')
            throw UsageError("-co " + item + ": it is not NAME=VALUE");
    target.copies = !takes_blocks(target.driver);
    if (!spec.categories.empty()) target.largest_class = static_cast<int>(spec.categories.size()) - 1;
    if (!lists_type(target.driver, target.type)) {
        if (!has_capability(target.driver, GDAL_DCAP_CREATECOPY))
            throw UsageError(holds_text(target.driver, spec, target.type), types_advice(target.driver));
        target.copies = true; // the type may then be replaced by a wider type
    }
    if (options.nodata && !fitting(*options.nodata, sample_type(target.type)))
        throw UsageError("-dstnodata " + std::string(CPLSPrintf("%.17g", *options.nodata)) +
                         " is not a value of the type " + GDALGetDataTypeName(target.type));
    {
        const GdalErrors errors;
        if (!GDALValidateCreationOptions(target.driver, target.options.List()))
            throw UsageError("-co: " + (errors.any() ? errors.text() : errors.warnings()));
    }
    check_creation_options(target, options, spec.shape);
    if (options.grows) make_to_grow(target, options, spec.shape.bands);
    if (!is_virtual) complete_options(target, options, spec.shape);
    return target;
}

namespace {

/// Returns true if a folder contains only one Zarr array or group, so that the whole folder may be replaced.
bool is_zarr_alone(const std::string& folder) {
    namespace fs = std::filesystem;
    const auto marks = {".zarray", ".zgroup", "zarr.json"};
    const auto marked = [&](const fs::path& place) {
        return std::any_of(marks.begin(), marks.end(), [&](const char* name) {
            std::error_code ec;
            return fs::is_regular_file(place / name, ec);
        });
    };
    std::error_code ec;
    if (!marked(folder)) return false;
    const bool group = !fs::exists(fs::path(folder) / ".zarray", ec);
    for (fs::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec)) {
        const std::string name = at->path().filename().string();
        if (at->is_symlink(ec)) return false;
        if (at->is_directory(ec) ? group && !marked(at->path())
                                 : group && name.rfind(".z", 0) != 0 && name != "zarr.json" &&
                                       name != "pam.aux.xml") // GDAL writes this file
            return false;
    }
    return !ec;
}

/// Throws UsageError for options that name further files, because all files of an output have temporary names
/// until the output is complete.
void check_options(const OutputOptions& options) {
    for (const std::string& option : options.creation_options) {
        const std::string key = CPLString(option.substr(0, option.find('='))).toupper();
        if (key.find("FILENAME") != std::string::npos || key == "DATANAME" || key == "INDEXNAME")
            throw UsageError("-co " + option + ": the other files of an output are named after it",
                             "Leave the option out.");
    }
}

} // namespace

void check_place(const OutputOptions& options, GDALDriver* driver) {
    const std::string& path = options.path;
    check_options(options);
    if (!options.stac.path.empty()) check_stac_item(options);
    if (path == standard_output) {
        if (!is(driver, "GTiff") && !is(driver, "PNG") && !is(driver, "JPEG"))
            throw UsageError("a file of the " + std::string(driver->GetDescription()) +
                                 " driver cannot be written to standard output",
                             "Use GTiff, PNG or JPEG.");
        return;
    }
    // A link at the destination is kept. Side files are next to the target of the link, and links to side
    // files are next to the link.
    const std::string end = is_local(path) ? follow_links(path) : path, folder = folder_of(end);
    std::vector<std::string> names = links_on_the_way(path), all;
    names.push_back(end);
    std::vector<std::pair<std::string, std::string>> sides; // a side file, and the file to which it belongs
    for (const std::string& name : names)
        for (const std::string& side :
             side_file_names(driver->GetDescription(), name, options.creation_options)) {
            sides.emplace_back(side, name);
            all.push_back(side);
        }
    if (options.run) options.run->writes(options.role, path, all);
    if (is_local(path)) {
        struct stat info {};
        if (::stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
            throw Error("cannot write '" + path + "': the folder '" + folder + "' does not exist");
        if (::access(folder.c_str(), W_OK | X_OK) != 0)
            throw Error("cannot write '" + path + "': no permission to write in the folder '" + folder + "'");
    }
    const auto exists = [](const std::string& name, VSIStatBufL& info) {
        return VSIStatExL(name.c_str(), &info, VSI_STAT_EXISTS_FLAG | VSI_STAT_NATURE_FLAG) == 0;
    };
    VSIStatBufL info;
    const bool there = exists(path, info);
    if (there) {
        if (!VSI_ISREG(info.st_mode) && !VSI_ISDIR(info.st_mode))
            throw Error("'" + path + "' exists and is not a regular file");
        if (VSI_ISDIR(info.st_mode) && !(is(driver, "Zarr") && is_zarr_alone(end)))
            throw Error("'" + path + "' is a folder" +
                        (is(driver, "Zarr") ? " with more in it than one Zarr dataset" : ""));
        if (!options.overwrite) throw already_exists(path);
    }
    for (const auto& [side, owner] : sides) {
        const bool header = EQUAL(CPLGetExtension(side.c_str()), "hdr");
        // out.tif.aux.xml is removed together with an old out.tif. If there is no old out.tif, a reader would
        // read the side file together with the new out.tif.
        if ((there && side.rfind(owner + ".", 0) == 0 && !header) || !exists(side, info)) continue;
        check_side_is_free(side, owner);
        // Such a file may contain the only copy of a user's classes or control points, or belong to a file
        // that will be restored. Therefore it is neither removed nor overwritten without -overwrite.
        if (!options.overwrite)
            throw already_exists(
                side,
                ", but '" + path +
                    "' does not: it belonged to a file that is gone, and would be read with the new one");
    }
}

bool surely_holds(const Target& target, const OutputSpec& spec) {
    const auto one_of = [](const std::string& name, std::initializer_list<const char*> names) {
        return std::any_of(names.begin(), names.end(),
                           [&](const char* one) { return EQUAL(name.c_str(), one); });
    };
    const bool tiff = is(target.driver, "GTiff");
    if (!tiff && !is(target.driver, "ENVI")) return false;
    if (target.copies || (tiff && spec.shape.bands > 65535)) return false;
    for (int i = 0; i < target.options.size(); ++i) {
        char* key = nullptr;
        const std::string value = CPLParseNameValue(target.options[i], &key);
        const std::string name = key ? key : "";
        CPLFree(key);
        if (name == "INTERLEAVE" || (!tiff && name == "SUFFIX")) continue;
        if (tiff && one_of(name, {"TILED", "BIGTIFF", "SPARSE_OK"})) continue;
        if (tiff && name == "COMPRESS" && EQUAL(value.c_str(), "NONE")) continue;
        const int size = std::atoi(value.c_str());
        if (tiff && one_of(name, {"BLOCKXSIZE", "BLOCKYSIZE"}) && size > 0 && size % 16 == 0) continue;
        return false;
    }
    return true;
}

} // namespace hsi::raster
