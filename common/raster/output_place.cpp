// SPDX-License-Identifier: MIT
#include "raster/output_place.h"

#include "core/error.h"
#include "core/file_path.h"
#include "raster/output_format.h"
#include "raster/run_files.h"
#include "raster/side_files.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace hsi::raster {

void check_place(const OutputOptions& options, GDALDriver* driver) {
    const std::string& path = options.path;
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
    if (exists(path, info)) {
        if (!VSI_ISREG(info.st_mode) && !VSI_ISDIR(info.st_mode))
            throw Error("'" + path + "' exists and is no regular file");
        if (VSI_ISDIR(info.st_mode) && !is(driver, "Zarr")) throw Error("'" + path + "' is a folder");
        if (!options.overwrite)
            throw Error("File '" + path + "' already exists.", "Specify -overwrite to replace it.");
    }
    for (const std::string& side : sides) {
        const bool header = EQUAL(CPLGetExtension(side.c_str()), "hdr");
        // out.tif.aux.xml is nothing without out.tif, and goes with it.
        if ((side.rfind(end + ".", 0) == 0 && !header) || !exists(side, info)) continue;
        if (!options.overwrite)
            throw Error("File '" + side + "' already exists.", "Specify -overwrite to replace it.");
        if (!header) continue;
        if (const std::string owner = other_owner_of_header(side, end); !owner.empty())
            throw Error("'" + side + "' is the header of '" + owner + "', and '" + path +
                            "' would need it too",
                        "Choose a name that differs before the extension.");
    }
}

} // namespace hsi::raster
