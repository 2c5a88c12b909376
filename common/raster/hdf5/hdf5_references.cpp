// SPDX-License-Identifier: MIT
#include "raster/hdf5/hdf5_references.h"

#include "core/error.h"
#include "core/file_path.h"
#include "raster/gdal_errors.h"
#include "raster/hdf5/hdf5_walk.h"
#include "raster/regular_file.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

namespace hsi::raster {
namespace {

using Kind = Hdf5Reference::Kind;

std::string real_path(const std::string& path) {
    char* const full = is_local(path) ? ::realpath(path.c_str(), nullptr) : nullptr;
    std::string out = full ? full : path;
    std::free(full);
    return out;
}

/// Returns the folders that an environment variable of the HDF5 library lists. They are searched before other
/// folders. ${ORIGIN} means the folder of the referring file.
std::vector<std::string> prefixes(Kind kind, const std::string& origin) {
    const char* const variable = kind == Kind::storage   ? "HDF5_EXTFILE_PREFIX"
                                 : kind == Kind::mapping ? "HDF5_VDS_PREFIX"
                                                         : "HDF5_EXT_PREFIX";
    const char* const value = std::getenv(variable);
    std::vector<std::string> folders;
    // A colon separates several folders, except for external storage.
    const CPLStringList all(CSLTokenizeString2(value ? value : "", kind == Kind::storage ? "" : ":", 0));
    for (int i = 0; i < all.size(); ++i)
        folders.push_back(CPLString(all[i]).replaceAll("${ORIGIN}", origin));
    return folders;
}

/// Returns the paths where the HDF5 library searches for a file, in its order (HDF5 reference:
/// H5Pset_efile_prefix, H5Pset_virtual_prefix, H5Lcreate_external).
std::vector<std::string> places(Kind kind, const std::string& name, const std::string& referring) {
    const std::string origin = folder_of(referring), real_origin = folder_of(real_path(referring));
    const auto folders = prefixes(kind, real_origin);
    if (kind == Kind::storage) { // the folder of the referring file is searched only if the variable lists it
        const bool absolute = !name.empty() && name[0] == '/';
        return {absolute || folders.empty() ? name : join_path(folders.front(), name)};
    }
    std::vector<std::string> out;
    std::string rest = name;
    if (!name.empty() && name[0] == '/') {
        out.push_back(name);
        rest = name_of(name);
    }
    for (const std::string& folder : folders)
        out.push_back(join_path(folder, rest));
    out.push_back(join_path(origin, rest));
    out.push_back(rest);
    out.push_back(join_path(real_origin, rest));
    return out;
}

std::optional<std::string> found(Kind kind, const std::string& name, const std::string& referring) {
    for (std::string& place : places(kind, name, referring))
        if (is_regular_file(place)) return std::move(place);
    return std::nullopt;
}

/// Returns the file name of a block from a pattern: "part_%b.h5" means part_0.h5, part_1.h5 ..., and "%%" a
/// percent sign. nullopt if `text` is not a pattern.
std::optional<std::string> numbered(const std::string& text, uint64_t block) {
    std::string out;
    bool any = false;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
        } else if (i + 1 < text.size() && text[i + 1] == '%') {
            out += text[++i];
        } else {
            size_t end = i + 1;
            while (end < text.size() && text[end] >= '0' && text[end] <= '9')
                ++end;
            if (end == text.size() || text[end] != 'b') return std::nullopt;
            const std::string digits = std::to_string(block);
            const auto width = static_cast<size_t>(std::atoi(text.substr(i + 1, end - i - 1).c_str()));
            if (width > digits.size() && width < 100) out.append(width - digits.size(), '0');
            out += digits;
            any = true;
            i = end;
        }
    }
    return any ? std::optional(out) : std::nullopt;
}

/// Returns the existing files that a reference means.
std::vector<std::string> files_of(const Hdf5Reference& reference, const std::string& referring) {
    std::vector<std::string> files;
    if (reference.kind == Kind::mapping && reference.file == ".") return {referring};
    const auto take = [&](const std::string& name) {
        auto place = found(reference.kind, name, referring);
        if (place) files.push_back(std::move(*place));
        return place.has_value();
    };
    const bool pattern = reference.kind == Kind::mapping && numbered(reference.file, 0);
    if (!pattern) {
        take(reference.file);
        return files;
    }
    constexpr uint64_t largest_gap = 100, most = 1000000; // up to 99 consecutive files may be missing
    for (uint64_t block = 0, missing = 0; missing < largest_gap && block < most; ++block)
        missing = take(*numbered(reference.file, block)) ? 0 : missing + 1;
    return files;
}

void collect(const std::string& path, std::set<std::string>& seen, std::vector<std::string>& files) {
    constexpr size_t most = 100000;
    if (!seen.insert(real_path(path)).second || seen.size() > most) return;
    for (const Hdf5Reference& reference : walk_hdf5(path).references)
        for (const std::string& file : files_of(reference, path)) {
            if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
            if (reference.kind != Kind::storage) collect(file, seen, files);
        }
}

/// Returns the name as GDAL's driver HDF5 spells it.
std::string plain(std::string name) {
    std::replace(name.begin(), name.end(), ' ', '_');
    return name.substr(std::min(name.find_first_not_of('/'), name.size()));
}

/// Returns the part of a name after `begin`: empty if the names are equal; nullopt if the name does not begin
/// with `begin`.
std::optional<std::string> rest_of(const std::string& name, const std::string& begin) {
    const std::string all = plain(name), first = plain(begin);
    if (all == first) return "";
    if (all.rfind(first + "/", 0) != 0) return std::nullopt;
    return all.substr(first.size());
}

bool holds(const Hdf5Contents& contents, const std::string& object) {
    if (!contents.complete) return true; // a damaged part may contain the object
    const auto is = [&](const std::string& name) { return rest_of(object, name) == ""; };
    const auto leads_to = [&](const std::string& name) { return rest_of(object, name).has_value(); };
    return std::any_of(contents.objects.begin(), contents.objects.end(), is) ||
           std::any_of(contents.links.begin(), contents.links.end(), leads_to);
}

[[noreturn]] void refuse_missing(const Hdf5Reference& reference, const std::string& path,
                                 const std::string& what) {
    const char* const how = reference.kind == Kind::storage   ? " has its values in '"
                            : reference.kind == Kind::mapping ? " shows values of '"
                                                              : " links to '";
    std::string advice = "Keep the files together, in their original folders.";
    if (reference.kind == Kind::storage) {
        advice = "HDF5 looks for it in the working folder, or in $HDF5_EXTFILE_PREFIX.";
        if (const std::string folder = folder_of(path); is_regular_file(join_path(folder, reference.file)))
            advice += " HDF5_EXTFILE_PREFIX='" + folder + "' finds the file next to this one.";
    }
    throw Error("'" + path + "': " + reference.object + how + reference.file + "', " + what, advice);
}

void check(const std::string& path, const std::vector<std::string>& objects, std::set<std::string>& seen) {
    std::string key = real_path(path);
    for (const std::string& object : objects)
        key += "\n" + object;
    if (!seen.insert(key).second) return;
    for (const Hdf5Reference& reference : walk_hdf5(path).references) {
        std::vector<std::string> inner; // the objects in the other file
        if (objects.empty()) inner.push_back(reference.inner);
        for (const std::string& object : objects)
            if (const auto rest = rest_of(object, reference.object)) inner.push_back(reference.inner + *rest);
        if (inner.empty()) continue;
        const auto files = files_of(reference, path);
        if (files.empty()) refuse_missing(reference, path, "which is missing");
        if (reference.kind == Kind::storage || numbered(reference.inner, 0)) continue;
        for (const std::string& file : files) {
            const Hdf5Contents contents = walk_hdf5(file);
            for (const std::string& each : inner)
                if (!holds(contents, each)) refuse_missing(reference, path, "which has no '" + each + "'");
            check(file, inner, seen);
        }
    }
}

} // namespace

std::vector<std::string> hdf5_files_behind(const std::string& path) {
    const GdalErrors quiet;
    std::vector<std::string> files;
    std::set<std::string> seen;
    collect(path, seen, files);
    return files;
}

std::string pipe_behind_hdf5(const std::string& path) {
    const GdalErrors quiet;
    std::vector<std::string> files{path};
    std::set<std::string> seen;
    collect(path, seen, files);
    for (const std::string& file : files)
        for (const Hdf5Reference& reference : walk_hdf5(file).references) {
            constexpr uint64_t most = 1000; // maximum of numbered files
            const bool pattern = reference.kind == Kind::mapping && numbered(reference.file, 0);
            for (uint64_t block = 0; block < (pattern ? most : 1); ++block)
                for (const std::string& place : places(
                         reference.kind, pattern ? *numbered(reference.file, block) : reference.file, file))
                    if (kind_of_path(place) == PathKind::pipe) return place;
        }
    return {};
}

void check_hdf5_sources(const std::string& path, const std::vector<std::string>& objects) {
    const GdalErrors quiet;
    std::set<std::string> seen;
    check(path, objects, seen);
}

void check_values_are_there(GDALDataset& dataset) {
    const std::string name = dataset.GetDescription();
    // HDF5:"a.h5"://group/cube, NETCDF:"a.nc":/group/cube; a name without an array means the whole file.
    std::vector<std::string> objects;
    const size_t colon = name.rfind(':');
    if (colon != std::string::npos && colon + 1 < name.size() && name[colon - 1] == '"')
        objects.push_back(name.substr(colon + 1));
    const CPLStringList files(dataset.GetFileList());
    for (int i = 0; i < files.size(); ++i)
        check_hdf5_sources(files[i], objects);
}

} // namespace hsi::raster
