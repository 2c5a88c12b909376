// SPDX-License-Identifier: MIT
#include "raster/products/array_axes.h"

#include "core/error.h"
#include "core/text.h"
#include "raster/gdal/dataset_handle.h"
#include "raster/gdal_errors.h"
#include "raster/io/whole_file.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/metadata/wavelength_unit.h"
#include "raster/products/array_file.h"
#include "raster/products/product.h"

#include <cpl_string.h>
#include <gdal_priv.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {
namespace {

using Group = std::shared_ptr<GDALGroup>;

bool speaks_of_bands(const std::string& name) { return axis_called(name) == Axis::bands; }

bool speaks_of_place(const std::string& name) {
    const Axis axis = axis_called(name);
    return axis == Axis::lines || axis == Axis::samples;
}

struct Cube {
    std::string name, full_name;
    std::array<std::string, 3> axes;
    std::array<int64_t, 3> sizes{};
};

/// The three-dimensional arrays of a file, and the lengths of its lists of wavelengths.
struct Contents {
    std::vector<Cube> cubes;
    std::vector<int64_t> wavelengths; ///< lengths of the lists of wavelengths
};

void look_at(const Group& group, int depth, int& left, Contents& found) {
    for (const auto& attribute : group->GetAttributes())
        if (lists_wavelengths(attribute->GetName()) && attribute->GetDimensionCount() == 1)
            found.wavelengths.push_back(static_cast<int64_t>(attribute->GetTotalElementsCount()));
    for (const std::string& name : group->GetMDArrayNames()) {
        if (--left < 0) return;
        const auto array = group->OpenMDArray(name);
        if (!array) continue;
        const auto& axes = array->GetDimensions();
        if (const uint64_t length = list_length(*array); length > 0 && lists_wavelengths(name))
            found.wavelengths.push_back(static_cast<int64_t>(length));
        if (axes.size() != 3) continue;
        Cube cube{name, array->GetFullName(), {}, {}};
        for (size_t k = 0; k < 3; ++k) {
            cube.axes[k] = axes[k]->GetName();
            cube.sizes[k] = static_cast<int64_t>(axes[k]->GetSize());
        }
        found.cubes.push_back(std::move(cube));
    }
    if (depth == 0) return;
    for (const std::string& name : group->GetGroupNames())
        if (const Group inner = group->OpenGroup(name)) look_at(inner, depth - 1, left, found);
}

Contents contents_of(const std::string& file) {
    Contents found;
    const char* const drivers[] = {"netCDF", "HDF5", nullptr};
    const DatasetHandle dataset(GDALDataset::FromHandle(GDALOpenEx(
        whole_name(file).c_str(), GDAL_OF_MULTIDIM_RASTER | GDAL_OF_READONLY, drivers, nullptr, nullptr)));
    const Group root = dataset ? dataset->GetRootGroup() : nullptr;
    int left = 2000; // limit for the number of arrays; products have tens
    if (root) look_at(root, 8, left, found);
    return found;
}

/// Returns the array that GDAL presents as `dataset`: the array with the same sizes in the same order. If
/// several arrays fit, the array whose name ends the dataset's name is returned.
const Cube* cube_behind(const Contents& contents, GDALDataset& dataset) {
    std::string told = dataset.GetDescription();
    const Cube* fits = nullptr;
    for (const Cube& cube : contents.cubes) {
        if (cube.sizes[0] != dataset.GetRasterCount() || cube.sizes[1] != dataset.GetRasterYSize() ||
            cube.sizes[2] != dataset.GetRasterXSize())
            continue;
        if (fits == nullptr) fits = &cube;
        if (told.size() >= cube.name.size() &&
            told.compare(told.size() - cube.name.size(), cube.name.size(), cube.name) == 0)
            return &cube;
    }
    return fits;
}

/// Returns the index of the band axis if the bands are not on the first axis; nullopt if they are, or if the
/// band axis is unknown.
std::optional<size_t> misplaced_bands(const Cube& cube, const std::vector<int64_t>& wavelengths) {
    if (speaks_of_bands(cube.axes[0])) return std::nullopt;
    for (const size_t k : {size_t{2}, size_t{1}})
        if (speaks_of_bands(cube.axes[k])) return k;
    if (speaks_of_place(cube.axes[1]) && speaks_of_place(cube.axes[2])) return std::nullopt;
    const auto is_listed = [&](size_t axis) {
        return std::find(wavelengths.begin(), wavelengths.end(), cube.sizes[axis]) != wavelengths.end();
    };
    if (is_listed(0)) return std::nullopt;
    for (const size_t k : {size_t{2}, size_t{1}})
        if (is_listed(k)) return k;
    const bool nameless = is_made_up(cube.axes[0]) && is_made_up(cube.axes[1]) && is_made_up(cube.axes[2]);
    if (nameless && cube.sizes[0] > 4 * cube.sizes[2]) return 2;
    return std::nullopt;
}

/// Returns the transposition to GDAL's order (band, line, sample), such as "[2,0,1]". The text is empty if
/// the cube already has this order, or if its order is unknown.
std::string turning(const Cube& cube, std::optional<size_t> bands) {
    if (bands) return *bands == 2 ? "[2,0,1]" : "[1,0,2]";
    return axis_called(cube.axes[1]) == Axis::samples && axis_called(cube.axes[2]) == Axis::lines ? "[0,2,1]"
                                                                                                  : "";
}

} // namespace

Axis axis_called(const std::string& name) {
    const std::string n = lower(name);
    const auto is = [&](std::initializer_list<const char*> words) {
        return std::any_of(words.begin(), words.end(), [&](const char* word) { return n == word; });
    };
    if (contains_any(n, {"band", "wavelength", "wvl", "channel", "lambda", "spectral"}) || n == "wl")
        return Axis::bands;
    // "pixels_per_line" and "crosstrack" mean samples; "along_track" and "scanline" mean lines.
    if (contains_any(n, {"along", "down"})) return Axis::lines;
    if (contains_any(
            n, {"across", "cross", "xtrack", "sample", "pixel", "col", "easting", "width", "x_coord"}) ||
        begins_with_any(n, {"lon", "rlon", "x_", "xdim"}) || is({"x", "nx", "xc", "nlon", "east"}))
        return Axis::samples;
    if (contains_any(n, {"line", "row", "track", "scan", "northing", "height", "y_coord"}) ||
        begins_with_any(n, {"lat", "rlat", "y_", "ydim"}) || is({"y", "ny", "yc", "nlat", "north"}))
        return Axis::lines;
    return Axis::unknown;
}

bool is_made_up(const std::string& name) {
    return name.empty() || STARTS_WITH_CI(name.c_str(), "dim") || STARTS_WITH_CI(name.c_str(), "phony_dim");
}

bool says_wavelength_in_full(const std::string& name) {
    return contains_any(
        lower(name), {"wavelen", "wvl", "list_cw"}); // PRISMA calls its lists List_Cw_Vnir and List_Cw_Swir
}

bool lists_wavelengths(const std::string& name) {
    if (says_wavelength_in_full(name)) return true;
    auto words = words_of(name);
    // The last word of "wl_nm" is a unit.
    if (words.size() > 1 && word_unit(words.back()) != nullptr) words.pop_back();
    std::string plain;
    for (const std::string& word : words)
        plain += word;
    if (lower(name) == "bands_nm") return true;
    return starts_with(plain, "wavenum") || plain == "wn" ||
           std::any_of(wavelength_names.begin(), wavelength_names.end(),
                       [&](const char* known) { return plain == known; });
}

void check_axes(GDALDataset& dataset, const std::string& name) {
    GDALDriver* const driver = dataset.GetDriver();
    const std::string kind = driver ? driver->GetDescription() : "";
    // Classic netCDF files are not HDF5, but the netCDF driver reads both formats.
    if ((kind != "netCDF" && kind != "HDF5Image" && kind != "HDF5") || dataset.GetRasterCount() < 2) return;
    const GdalErrors quiet;
    const CPLStringList files(dataset.GetFileList());
    if (files.empty()) return;
    const std::string file = files[0];
    const Contents contents = contents_of(file);
    const Cube* cube = cube_behind(contents, dataset);
    if (cube == nullptr) return;
    const auto axis = misplaced_bands(*cube, contents.wavelengths);
    const std::string turned = turning(*cube, axis);
    if (turned.empty()) return;
    std::string shape;
    for (size_t k = 0; k < 3; ++k)
        shape += (k ? " x " : "") + (is_made_up(cube->axes[k]) ? std::string() : cube->axes[k] + " ") +
                 std::to_string(cube->sizes[k]);
    // The file may be a product for which a reader exists, which then gets the axes right.
    const auto product = name == "'" + file + "'" ? nullptr : find_scene(file).product;
    const std::string known =
        product ? "Use '" + file + "' itself, which is read as " + product->name + ". Or turn the axes: "
                : "Turn the axes: ";
    throw Error(
        name + ": " + cube->name + " is " + shape + ", and this GDAL (" + GDALVersionInfo("RELEASE_NAME") +
            ") reads the " +
            (axis ? std::to_string(cube->sizes[*axis]) + " bands as " + (*axis == 2 ? "columns" : "lines")
                  : "columns as lines"),
        known + "gdalmdimtranslate -array 'name=" + cube->full_name + ",dstname=" + cube->name +
            ",transpose=" + turned + "' '" + file +
            "' cube.nc; then use cube.nc with --config GDAL_NETCDF_BOTTOMUP NO to keep the order of its "
            "lines.");
}

} // namespace hsi::raster
