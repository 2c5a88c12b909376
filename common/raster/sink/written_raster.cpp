// SPDX-License-Identifier: MIT
#include "raster/sink/written_raster.h"

#include "core/counted.h"
#include "raster/gdal/gdal_errors.h"

#include <cpl_string.h>
#include <gdal_priv.h>
#include <ogr_spatialref.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>

namespace hsi::raster {

namespace {

/// True when the corners of a file lie within a tenth of a pixel of where they should. An SRS may come back
/// under other names and with another false easting; without one the numbers count. `srs` null: only they do.
bool same_place(const double (&wanted)[6], const double (&found)[6], GDALDataset& file,
                const OGRSpatialReference* srs, const OGRSpatialReference* found_srs) {
    constexpr double tolerance = 0.1;
    double to_pixels[6];
    if (!GDALInvGeoTransform(const_cast<double*>(wanted), to_pixels)) return true; // nobody can place it
    std::unique_ptr<OGRCoordinateTransformation> turned;
    constexpr const char* alike[] = {"IGNORE_DATA_AXIS_TO_SRS_AXIS_MAPPING=YES",
                                     "CRITERION=EQUIVALENT_EXCEPT_AXIS_ORDER_GEOGCRS", nullptr};
    if (srs != nullptr && found_srs != nullptr && !srs->IsSame(found_srs, alike)) {
        turned.reset(OGRCreateCoordinateTransformation(found_srs, srs));
        if (!turned) return false;
    }
    for (const double right : {0.0, 1.0})
        for (const double down : {0.0, 1.0}) {
            const double sample = right * file.GetRasterXSize(), line = down * file.GetRasterYSize();
            double x = 0, y = 0, back_x = 0, back_y = 0;
            GDALApplyGeoTransform(const_cast<double*>(found), sample, line, &x, &y);
            if (turned && !turned->Transform(1, &x, &y)) return false;
            GDALApplyGeoTransform(to_pixels, x, y, &back_x, &back_y);
            // Written so that what is no number is no place either.
            if (!(std::fabs(back_x - sample) < tolerance && std::fabs(back_y - line) < tolerance))
                return false;
        }
    return true;
}

} // namespace

WrittenRaster::WrittenRaster(const std::string& path) {
    const GdalErrors errors;
    const auto open = [](const char* name) {
        return DatasetHandle(GDALDataset::FromHandle(GDALOpenEx(
            name, GDAL_OF_RASTER | GDAL_OF_READONLY | GDAL_OF_VERBOSE_ERROR, nullptr, nullptr, nullptr)));
    };
    DatasetHandle whole = open(path.c_str());
    m_reason = errors.text("it does not open");
    if (!whole) return;
    if (whole->GetRasterCount() > 0) {
        m_parts.push_back(std::move(whole));
        return;
    }
    // Arrays of single bands, among others for coordinates.
    const CPLStringList items(CSLDuplicate(whole->GetMetadata("SUBDATASETS")));
    for (int b = 1;; ++b) {
        const std::string ending = "Band" + std::to_string(b);
        DatasetHandle part;
        for (int i = 0; i < items.size() && !part; ++i) {
            const std::string item = items[i];
            const size_t equals = item.find("_NAME=");
            if (equals == std::string::npos || item.size() <= ending.size() ||
                item.compare(item.size() - ending.size(), ending.size(), ending) != 0 ||
                std::isalnum(static_cast<unsigned char>(item[item.size() - ending.size() - 1])))
                continue;
            part = open(item.c_str() + equals + 6);
        }
        if (!part) return;
        m_parts.push_back(std::move(part));
    }
}

std::string WrittenRaster::fault(const stream::CubeShape& shape, GDALDataType type) const {
    if (m_parts.empty()) return "it does not open: " + m_reason;
    const int bands =
        m_parts.size() == 1 ? m_parts.front()->GetRasterCount() : static_cast<int>(m_parts.size());
    if (bands != shape.bands) return "it has " + counted(bands, "band");
    for (const DatasetHandle& part : m_parts)
        if (part->GetRasterXSize() != shape.samples || part->GetRasterYSize() != shape.lines)
            return "it has " + std::to_string(part->GetRasterXSize()) + "x" +
                   std::to_string(part->GetRasterYSize()) + " pixels";
    for (int b = 0; b < bands; ++b) {
        const GDALDataType got = band(b)->GetRasterDataType();
        // Formats with a type of their own may hold more than they were given.
        if (GDALDataTypeUnion(type, got) != got)
            return "its type is " + std::string(GDALGetDataTypeName(got));
    }
    return {};
}

bool WrittenRaster::lacks_blocks() const {
    GDALDataset& whole = *m_parts.front();
    if (!EQUAL(whole.GetDriverName(), "GTiff")) return false;
    const char* const interleave = whole.GetMetadataItem("INTERLEAVE", "IMAGE_STRUCTURE");
    const int planes = interleave != nullptr && EQUAL(interleave, "PIXEL") ? 1 : whole.GetRasterCount();
    for (int b = 1; b <= planes; ++b) {
        GDALRasterBand& plane = *whole.GetRasterBand(b);
        int w = 0, h = 0;
        plane.GetBlockSize(&w, &h);
        for (int y = 0; y * int64_t{h} < plane.GetYSize(); ++y)
            for (int x = 0; x * int64_t{w} < plane.GetXSize(); ++x)
                if (!plane.GetMetadataItem(CPLSPrintf("BLOCK_OFFSET_%d_%d", x, y), "TIFF")) return true;
    }
    return false;
}

bool WrittenRaster::keeps(const NodataValue& nodata) const {
    const int bands =
        m_parts.size() == 1 ? m_parts.front()->GetRasterCount() : static_cast<int>(m_parts.size());
    for (int b = 0; b < bands; ++b) {
        const auto found = nodata_of(*band(b));
        const GDALDataType type = band(b)->GetRasterDataType();
        if (!found || !(match_in_type(*found, type) == match_in_type(nodata, type))) return false;
    }
    return true;
}

namespace {

/// Whether a geotransform places the window's pixels where control points do, to two pixels: some formats
/// make one of the other, and netCDF's numbers pixels where there is none.
bool follows(const double (&gt)[6], const SceneMetadata& scene) {
    const double near = 2 * std::max(std::hypot(gt[1], gt[4]), std::hypot(gt[2], gt[5]));
    return std::all_of(scene.gcps.begin(), scene.gcps.end(), [&](const GroundControlPoint& p) {
        const double x = p.pixel - static_cast<double>(scene.window.x),
                     y = p.line - static_cast<double>(scene.window.y);
        return std::fabs(gt[0] + gt[1] * x + gt[2] * y - p.x) <= near &&
               std::fabs(gt[3] + gt[4] * x + gt[5] * y - p.y) <= near;
    });
}

} // namespace

std::string WrittenRaster::lost_place(const SceneMetadata& scene) const {
    GDALDataset& file = *m_parts.front();
    const GdalErrors quiet;
    double wanted[6], found[6];
    const bool placed = file.GetGeoTransform(found) == CE_None;
    if (!scene.window_geotransform(wanted)) {
        if (!scene.gcps.empty())
            return file.GetGCPCount() > 0 || (placed && follows(found, scene)) ? ""
                                                                               : "the ground control points";
        return scene.domains.count("RPC") > 0 && file.GetMetadata("RPC") == nullptr
                   ? "the rational polynomial coefficients (RPC)"
                   : "";
    }
    const OGRSpatialReference* const srs = file.GetSpatialRef();
    const bool unknown = scene.srs && (srs == nullptr || srs->IsEmpty());
    if (!placed) return unknown || !scene.srs ? "the georeference" : "the geotransform";
    if (!same_place(wanted, found, file, unknown ? nullptr : scene.srs.get(), srs))
        return unknown ? "the georeference" : "where its pixels lie";
    return unknown ? "the SRS" : "";
}

GDALRasterBand* WrittenRaster::band(int index) const {
    return m_parts.size() == 1 ? m_parts.front()->GetRasterBand(index + 1)
                               : m_parts[static_cast<size_t>(index)]->GetRasterBand(1);
}

bool close_written(DatasetHandle dataset, bool pixels) {
    bool good = true;
    // Before GDAL 3.7 neither function returns anything.
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 7, 0)
    good = dataset->FlushCache(true) == CE_None;
#else
    dataset->FlushCache(true);
#endif
    float pixel[2]; // of a complex type, too
    if (pixels && dataset->GetRasterCount() > 0 &&
        dataset->GetRasterBand(1)->RasterIO(GF_Read, 0, 0, 1, 1, pixel, 1, 1, GDT_CFloat32, 0, 0, nullptr) !=
            CE_None)
        good = false;
    // Before, files were streams of stdio; GDAL does not look at what closing one returns.
    if (std::fflush(nullptr) != 0) good = false;
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 7, 0)
    return GDALClose(GDALDataset::ToHandle(dataset.release())) == CE_None && good;
#else
    return good;
#endif
}

} // namespace hsi::raster
