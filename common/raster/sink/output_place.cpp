// SPDX-License-Identifier: MIT
#include "raster/sink/output_place.h"

#include "core/error.h"
#include "core/file_path.h"
#include "raster/files/run_files.h"
#include "raster/files/side_files.h"
#include "raster/sink/output_format.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace hsi::raster {
namespace {

/// A folder that holds what a Zarr array or group holds and nothing else: all that may be replaced.
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
                                       name != "pam.aux.xml") // GDAL's own
            return false;
    }
    return !ec;
}

/// Files of an output have names of ours until it is complete. \throws UsageError for options that name
/// others.
void check_options(const OutputOptions& options) {
    for (const std::string& option : options.creation_options) {
        const std::string key = CPLString(option.substr(0, option.find('='))).toupper();
        if (key.find("FILENAME") != std::string::npos || key == "DATANAME" || key == "INDEXNAME")
            throw UsageError("-co " + option + ": an output's further files are named after it",
                             "Leave the option out.");
    }
}

} // namespace

void check_place(const OutputOptions& options, GDALDriver* driver) {
    const std::string& path = options.path;
    check_options(options);
    if (path == standard_output) {
        if (!is(driver, "GTiff") && !is(driver, "PNG") && !is(driver, "JPEG"))
            throw UsageError("a file of the " + std::string(driver->GetDescription()) +
                                 " driver cannot be written to standard output",
                             "GTiff, PNG and JPEG can.");
        return;
    }
    // A link stays, and side files lie beside what it leads to.
    const std::string end = is_local(path) ? follow_links(path) : path, folder = folder_of(end);
    const auto sides = side_file_names(driver->GetDescription(), end, options.creation_options);
    if (options.run) options.run->writes(options.role, path, sides);
    if (is_local(path)) {
        struct stat info {};
        if (::stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
            throw Error("cannot write '" + path + "': there is no folder '" + folder + "'");
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
            throw Error("'" + path + "' exists and is no regular file");
        if (VSI_ISDIR(info.st_mode) && !(is(driver, "Zarr") && is_zarr_alone(end)))
            throw Error("'" + path + "' is a folder" +
                        (is(driver, "Zarr") ? ", and no Zarr file alone is in it" : ""));
        if (!options.overwrite)
            throw Error("File '" + path + "' already exists.", "Specify -overwrite to replace it.");
    }
    for (const std::string& side : sides) {
        const bool header = EQUAL(CPLGetExtension(side.c_str()), "hdr");
        // out.tif.aux.xml goes with the old out.tif; without one it would be taken for the new one's.
        if ((there && side.rfind(end + ".", 0) == 0 && !header) || !exists(side, info)) continue;
        check_side_is_free(side, end);
        // It might be all that is left of somebody's classes or control points, or wait for a file that is
        // coming back: no run removes it unasked, and none takes it over.
        if (!options.overwrite)
            throw Error(
                "File '" + side + "' already exists, though '" + path +
                    "' does not: it is a side file of one that is gone, and would be read with the new "
                    "one",
                "Remove it, or specify -overwrite to replace it.");
    }
}

} // namespace hsi::raster
