// SPDX-License-Identifier: MIT
#include "raster/output/netcdf_output.h"

#include "raster/gdal/dataset_handle.h"
#include "raster/gdal_errors.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace hsi::raster {
namespace {

bool has_place_on_earth(GDALDataset& dataset) {
    const OGRSpatialReference* const srs = dataset.GetSpatialRef();
    return srs != nullptr && (srs->IsProjected() != 0 || srs->IsGeographic() != 0);
}

constexpr const char* history_item = "NC_GLOBAL#history";

void add_text(GDALMDArray& array, const char* name, const std::string& text) {
    if (const auto attribute = array.CreateAttribute(name, {}, GDALExtendedDataType::CreateString()))
        attribute->Write(text.c_str());
}

/// Adds the coordinates of the pixel centres along an axis. `turned`: the file stores the last coordinate
/// first.
void add_coordinates(GDALGroup& root, const std::shared_ptr<GDALDimension>& axis, double origin, double step,
                     bool turned) {
    const std::string name = axis->GetName();
    if (root.OpenMDArray(name) != nullptr) return;
    const auto array = root.CreateMDArray(name, {axis}, GDALExtendedDataType::Create(GDT_Float64));
    if (array == nullptr) return;
    add_text(*array, "axis", name == "x" ? "X" : "Y");
    add_text(*array, "long_name", name + " coordinate");
    const size_t count = axis->GetSize();
    std::vector<double> centres;
    for (size_t k = 0; k < count; ++k)
        centres.push_back(origin + step * (static_cast<double>(turned ? count - 1 - k : k) + 0.5));
    const GUInt64 start = 0;
    array->Write(&start, &count, nullptr, nullptr, GDALExtendedDataType::Create(GDT_Float64), centres.data());
}

/// Returns the first array with two or more dimensions; null if there is none.
std::shared_ptr<GDALMDArray> raster_in(GDALGroup& root) {
    for (const std::string& name : root.GetMDArrayNames())
        if (auto array = root.OpenMDArray(name); array && array->GetDimensionCount() >= 2) return array;
    return nullptr;
}

void name_destination(GDALGroup& root, const std::string& path, const std::string& destination) {
    const auto history = root.GetAttribute("history");
    const char* const told = history ? history->ReadAsString() : nullptr;
    if (told == nullptr) return;
    std::string text = told;
    if (const size_t at = text.find(path); at != std::string::npos)
        text.replace(at, path.size(), destination);
    text.erase(text.find_last_not_of(" \n") + 1);
    history->Write(text.c_str());
}

} // namespace

void add_netcdf_options(GDALDataset& like, uint64_t bytes, CPLStringList& list) {
    if (has_place_on_earth(like) || list.FetchNameValue("WRITE_LONLAT") != nullptr) return;
    list.SetNameValue("WRITE_LONLAT", "NO");
    // Classic formats of netCDF cannot store another array after an array of this size.
    constexpr uint64_t most = (uint64_t{1} << 31) - 65536;
    if (bytes > most && list.FetchNameValue("FORMAT") == nullptr) list.SetNameValue("FORMAT", "NC4");
}

void reserve_netcdf_header(GDALDataset& stage) {
    if (has_place_on_earth(stage)) return;
    constexpr size_t enough = 1024;
    const char* const before = stage.GetMetadataItem(history_item);
    stage.SetMetadataItem(history_item,
                          ((before != nullptr ? before : "") + std::string(enough, ' ')).c_str());
}

void finish_netcdf(const std::string& path, const std::string& destination, GDALDataset& like) {
    const GdalErrors quiet; // the file is already complete; another warning reports a lost position
    const char* const drivers[] = {"netCDF", nullptr};
    const DatasetHandle file(GDALDataset::FromHandle(
        GDALOpenEx(path.c_str(), GDAL_OF_MULTIDIM_RASTER | GDAL_OF_UPDATE, drivers, nullptr, nullptr)));
    const auto root = file ? file->GetRootGroup() : nullptr;
    if (root == nullptr) return;
    name_destination(*root, path, destination);
    double gt[6];
    bool placed = like.GetGeoTransform(gt) == CE_None;
    if (!placed && like.GetRasterCount() > 1) { // the same position as in prepare_stage()
        const double pixels[6] = {0, 1, 0, 0, 0, -1};
        std::copy_n(pixels, 6, gt);
        placed = true;
    }
    const auto array = raster_in(*root);
    if (!placed || array == nullptr || has_place_on_earth(like) || gt[2] != 0 || gt[4] != 0) return;
    const auto& axes = array->GetDimensions();
    const auto &y = axes[axes.size() - 2], &x = axes.back();
    if (x->GetName() != "x" || y->GetName() != "y") return;
    add_coordinates(*root, x, gt[0], gt[1], false);
    add_coordinates(*root, y, gt[3], gt[5], true); // the driver stores the last line first
}

} // namespace hsi::raster
