// SPDX-License-Identifier: MIT
#include "raster/products/hdf_trial.h"

#include "core/error.h"
#include "core/file_path.h"
#include "core/file_state.h"
#include "core/trial.h"
#include "raster/gdal/dataset_handle.h"
#include "raster/gdal_errors.h"
#include "raster/metadata/envi_file.h"
#include "raster/products/array_axes.h"
#include "raster/products/product_readers.h"
#include "raster/regular_file.h"

#include <cpl_string.h>
#include <cpl_vsi.h>

#include <cstring>
#include <map>
#include <mutex>
#include <optional>

namespace hsi::raster {
namespace {

/// Returns the name of the library that reads a local file and could crash on it; empty for other files.
std::string library_of(const std::string& path) {
    const std::string begin = beginning_of_file(path, 8);
    const char* const library = begin == "\x89HDF\r\n\x1a\n"            ? "HDF5"
                                : begin.starts_with("\x0e\x03\x13\x01") ? "HDF4"
                                                                        : "";
    return *library != '\0' && all_samples(path) ? "" : library;
}

/// Makes all accesses to a file that a run makes before it reads values.
void look_at(const std::string& path) {
    if (product_in_arrays(path)) return;
    const DatasetHandle dataset(GDALDataset::FromHandle(
        GDALOpenEx(path.c_str(), GDAL_OF_RASTER | GDAL_OF_READONLY, nullptr, nullptr, nullptr)));
    if (dataset) check_axes(*dataset, path);
}

/// How the library crashed on each file ("" if it did not), by the state of the file.
std::mutex g_mutex;
std::map<FileState, std::string> g_deaths;

std::optional<std::string> known_death(const FileState& state) {
    const std::lock_guard lock(g_mutex);
    const auto known = g_deaths.find(state);
    return known == g_deaths.end() ? std::nullopt : std::optional(known->second);
}

void keep_death(const FileState& state, const std::string& death) {
    const std::lock_guard lock(g_mutex);
    g_deaths[state] = death;
}

} // namespace

void try_hdf(const std::string& name) {
    if (leads_to_hdf5(name)) expect_hdf5(name);
    std::string path = file_of_subdataset(name);
    if (const size_t quote = name.find('"');
        STARTS_WITH_CI(name.c_str(), "HDF4_") && quote != std::string::npos)
        path = name.substr(quote + 1, name.find('"', quote + 1) - quote - 1);
    const std::string library = is_local(path) ? library_of(path) : "";
    if (library.empty()) return;
    const FileState state = FileState::of(path).value_or(FileState{});
    auto death = known_death(state);
    if (!death) { // the lock is not held here, because the child process also calls this function
        death = death_in_trial([&] { look_at(path); });
        keep_death(state, *death);
    }
    if (!death->empty())
        throw Error("'" + path + "' is damaged: the " + library +
                        " library, which GDAL uses to read it, crashes (" + *death + ")",
                    "Fetch or copy the file again.");
}

} // namespace hsi::raster
