// SPDX-License-Identifier: MIT
#include "raster/staged_output.h"

#include <cpl_string.h>

#include <cstring>
#include <string>

namespace hsi::raster {

void prepare_stage(const Target& target, GDALDataset& stage) {
    if (!is(target.driver, "netCDF")) return;
    const CPLStringList items(CSLDuplicate(stage.GetMetadata()));
    for (int i = 0; i < items.size(); ++i) // of a source that has further dimensions
        if (STARTS_WITH(items[i], "NETCDF_DIM_"))
            stage.SetMetadataItem(std::string(items[i]).substr(0, std::strcspn(items[i], "=")).c_str(),
                                  nullptr);
    const int bands = stage.GetRasterCount();
    if (bands < 2) return;
    // Without positions this driver takes columns for lines; these are where QGIS draws a raster that has
    // none.
    double gt[6] = {0, 1, 0, 0, 0, -1};
    if (stage.GetGeoTransform(gt) != CE_None) {
        double pixels[6] = {0, 1, 0, 0, 0, -1};
        stage.SetGeoTransform(pixels);
    }
    // One variable with the bands as its third dimension. What its bands do not share would become that of
    // all.
    std::string numbers, lengths, units;
    bool all = true;
    for (int b = 1; b <= bands; ++b) {
        GDALRasterBand* band = stage.GetRasterBand(b);
        const char* length = band->GetMetadataItem("wavelength");
        const char* unit = band->GetMetadataItem("wavelength_units");
        if (b == 1) units = unit ? unit : "";
        all = all && length != nullptr && CPLGetValueType(length) != CPL_VALUE_STRING &&
              units == (unit ? unit : "");
        const char* comma = b == 1 ? "" : ",";
        numbers += comma + std::to_string(b);
        lengths += comma + std::string(length ? length : "");
        band->SetMetadata(nullptr);
        band->SetDescription("");
    }
    const std::string name = all ? "wavelength" : "band";
    stage.SetMetadataItem("NETCDF_DIM_EXTRA", ("{" + name + "}").c_str());
    // 6 and 4: netCDF's numbers for double and int.
    stage.SetMetadataItem(("NETCDF_DIM_" + name + "_DEF").c_str(),
                          ("{" + std::to_string(bands) + (all ? ",6}" : ",4}")).c_str());
    stage.SetMetadataItem(("NETCDF_DIM_" + name + "_VALUES").c_str(),
                          ("{" + (all ? lengths : numbers) + "}").c_str());
    if (all && !units.empty()) stage.SetMetadataItem("wavelength#units", units.c_str());
}

} // namespace hsi::raster
