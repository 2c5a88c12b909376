// SPDX-License-Identifier: MIT
#include "raster/written_raster.h"

#include "core/counted.h"
#include "raster/gdal_errors.h"

#include <cpl_string.h>

#include <cctype>
#include <cstdint>
#include <utility>

namespace hsi::raster {

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

GDALRasterBand* WrittenRaster::band(int index) const {
    return m_parts.size() == 1 ? m_parts.front()->GetRasterBand(index + 1)
                               : m_parts[static_cast<size_t>(index)]->GetRasterBand(1);
}

} // namespace hsi::raster
