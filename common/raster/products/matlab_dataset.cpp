// SPDX-License-Identifier: MIT
// Presents arrays of MATLAB files as GDAL datasets.
#include "raster/products/matlab_scene.h"

#include "core/error.h"
#include "core/host_memory.h"
#include "raster/gdal_errors.h"
#include "raster/matlab/turned_file.h"

#include <cpl_string.h>
#include <gdal_priv.h>

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace hsi::raster {
namespace {

/// Returns the driver of these datasets. Each dataset needs a driver, but this driver is not registered in
/// GDAL.
GDALDriver* matlab_driver() {
    static const auto driver = [] {
        auto made = std::make_unique<GDALDriver>();
        made->SetDescription("MATLAB");
        made->SetMetadataItem(GDAL_DMD_LONGNAME, "MATLAB's .mat files");
        made->SetMetadataItem(GDAL_DCAP_RASTER, "YES");
        return made;
    }();
    return driver.get();
}

/// Returns the transposed file of a variable, which all handles of the variable share.
std::shared_ptr<TurnedFile> turned_file_of(const MatlabCube& cube) {
    static std::mutex mutex;
    static std::map<std::string, std::weak_ptr<TurnedFile>> all;
    VSIStatBufL info{};
    if (VSIStatL(cube.file->path().c_str(), &info) != 0) info = {};
    const std::string key =
        cube.file->path() + "|" + cube.variable.name + "|" + std::to_string(cube.shape.lines) + "|" +
        std::to_string(static_cast<int>(cube.shape.bands_stand)) + "|" + std::to_string(info.st_dev) + "|" +
        std::to_string(info.st_ino) + "|" + std::to_string(info.st_size) + "|" +
        std::to_string(info.st_mtim.tv_sec) + "|" + std::to_string(info.st_mtim.tv_nsec);
    const std::lock_guard lock(mutex);
    for (auto at = all.begin(); at != all.end();)
        at = at->second.expired() ? all.erase(at) : std::next(at);
    if (auto known = all[key].lock()) return known;
    auto made = std::make_shared<TurnedFile>(cube.file, cube.variable, cube.shape);
    all[key] = made;
    return made;
}

class MatlabBand final : public GDALRasterBand {
  public:
    MatlabBand(GDALDataset* dataset, int number, GDALDataType type, std::shared_ptr<TurnedFile> file)
        : m_file(std::move(file)) {
        poDS = dataset;
        nBand = number;
        eDataType = type;
        nRasterXSize = nBlockXSize = dataset->GetRasterXSize();
        nRasterYSize = dataset->GetRasterYSize();
        nBlockYSize = 1;
    }

  protected:
    CPLErr IReadBlock(int /*x*/, int y, void* values) override {
        try {
            m_file->read_line(nBand - 1, y, values);
            return CE_None;
        } catch (const std::exception& e) {
            CPLError(CE_Failure, CPLE_FileIO, "%s", e.what());
            return CE_Failure;
        }
    }

  private:
    const std::shared_ptr<TurnedFile> m_file;
};

class MatlabDataset final : public GDALDataset {
  public:
    MatlabDataset(const MatlabCube& cube, const std::string& name) : m_path(cube.file->path()) {
        poDriver = matlab_driver();
        SetDescription(name.c_str());
        eAccess = GA_ReadOnly;
        nRasterXSize = static_cast<int>(cube.shape.samples);
        nRasterYSize = static_cast<int>(cube.shape.lines);
        const auto file = turned_file_of(cube);
        for (int b = 1; b <= cube.shape.bands; ++b)
            SetBand(b, new MatlabBand(this, b, cube.variable.type, file));
    }

    char** GetFileList() override { return CSLAddString(nullptr, m_path.c_str()); }

  private:
    const std::string m_path;
};

} // namespace

DatasetHandle open_matlab(const std::string& name) {
    const auto cube = find_matlab_cube(name);
    return cube ? DatasetHandle(new MatlabDataset(*cube, name)) : nullptr;
}

DatasetHandle open_matlab_labels(const std::string& name, int64_t lines, int64_t samples, bool mask,
                                 std::vector<std::string>& notes) {
    const auto cube = find_matlab_labels(name, lines, samples, mask);
    if (cube && !cube->note.empty()) notes.push_back(cube->note);
    return cube ? DatasetHandle(new MatlabDataset(*cube, name)) : nullptr;
}

} // namespace hsi::raster
