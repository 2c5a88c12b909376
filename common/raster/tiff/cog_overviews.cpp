// SPDX-License-Identifier: MIT
#include "raster/tiff/cog_overviews.h"

#include "core/error.h"
#include "parallel/threads.h"
#include "raster/gdal_errors.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <atomic>

namespace hsi::raster {
namespace {

DatasetHandle open(const std::string& path, unsigned access) {
    return DatasetHandle(GDALDataset::FromHandle(
        GDALOpenEx(path.c_str(), GDAL_OF_RASTER | access, nullptr, nullptr, nullptr)));
}

int CPL_STDCALL go_on(double, const char*, void* cancel) {
    const auto* const flag = static_cast<const CancelFlag*>(cancel);
    return flag != nullptr && flag->requested() ? 0 : 1;
}

/// Returns the bytes that GDAL needs to make the overviews of a band: the lines that the kernel of the
/// smallest overview covers, with a mask, and the resulting lines.
uint64_t bytes_of_band(int samples, int largest_factor) {
    constexpr uint64_t value_and_mask = 9, block_lines = 256, kernel = 8;
    return static_cast<uint64_t>(samples) * value_and_mask *
           (block_lines + kernel * static_cast<uint64_t>(largest_factor));
}

/// Copies the properties of a band that GDAL reads when it makes an overview from the band.
void describe_like(GDALRasterBand& from, GDALRasterBand& to) {
    int known = 0;
    if (from.GetRasterDataType() == GDT_Int64) {
        if (const int64_t value = from.GetNoDataValueAsInt64(&known); known != 0)
            to.SetNoDataValueAsInt64(value);
    } else if (from.GetRasterDataType() == GDT_UInt64) {
        if (const uint64_t value = from.GetNoDataValueAsUInt64(&known); known != 0)
            to.SetNoDataValueAsUInt64(value);
    } else if (const double value = from.GetNoDataValue(&known); known != 0) {
        to.SetNoDataValue(value);
    }
    to.SetColorInterpretation(from.GetColorInterpretation());
    if (GDALColorTable* const colours = from.GetColorTable()) to.SetColorTable(colours);
}

} // namespace

CogOverviews::CogOverviews(const OverviewTask& task) {
    const GdalErrors errors;
    const DatasetHandle raster = open(task.raster, GDAL_OF_READONLY);
    if (!raster) throw Error(errors.text());
    const int bands = raster->GetRasterCount();
    const uint64_t fitting = task.memory / bytes_of_band(raster->GetRasterXSize(), task.factors.back());
    // A mask that all bands share must be in the same file as the bands.
    const bool shared = (raster->GetRasterBand(1)->GetMaskFlags() & (GMF_PER_DATASET | GMF_ALPHA)) != 0;
    const int parts = static_cast<int>(
        std::clamp<uint64_t>(fitting, 1, static_cast<uint64_t>(shared ? 1 : std::min(task.threads, bands))));
    try {
        for (int k = 0; k < parts; ++k) {
            Part& part = *m_parts.emplace_back(std::make_unique<Part>());
            part.first_band = static_cast<int>(static_cast<int64_t>(bands) * k / parts);
            part.path = task.raster + "." + std::to_string(k) + ".tif";
        }
        std::atomic<bool> stop{false};
        parallel::on_threads(
            parts,
            [&, next = std::make_shared<std::atomic<int>>(0)](int) {
                for (int k = (*next)++; k < parts && !stop; k = (*next)++) {
                    const int end = k + 1 < parts ? m_parts[static_cast<size_t>(k) + 1]->first_band : bands;
                    Part& part = *m_parts[static_cast<size_t>(k)];
                    make(part, end - part.first_band, task);
                    fill(part, task);
                }
            },
            [&] { stop = true; });
    } catch (...) {
        remove();
        throw;
    }
}

CogOverviews::~CogOverviews() { remove(); }

void CogOverviews::remove() noexcept {
    for (const auto& part : m_parts) {
        part->file.reset();
        if (VSIStatBufL facts; VSIStatL(part->path.c_str(), &facts) == 0) VSIUnlink(part->path.c_str());
    }
    m_parts.clear();
}

/// Creates a TIFF with overviews. Neither the image nor the overviews have any blocks yet.
void CogOverviews::make(Part& part, int bands, const OverviewTask& task) {
    const GdalErrors errors;
    const DatasetHandle raster = open(task.raster, GDAL_OF_READONLY);
    CPLStringList options;
    for (const char* option : {"SPARSE_OK=TRUE", "TILED=YES", "INTERLEAVE=BAND", "BIGTIFF=YES"})
        options.AddString(option);
    GDALDriver* const tiff = GetGDALDriverManager()->GetDriverByName("GTiff");
    if (raster)
        part.file.reset(tiff->Create(part.path.c_str(), raster->GetRasterXSize(), raster->GetRasterYSize(),
                                     bands, raster->GetRasterBand(1)->GetRasterDataType(), options.List()));
    if (!part.file || errors.any()) throw Error(errors.text());
    // GDAL may make an overview from another overview, according to the properties of the band.
    for (int b = 1; b <= bands; ++b)
        describe_like(*raster->GetRasterBand(part.first_band + b), *part.file->GetRasterBand(b));
    if (errors.any()) throw Error(errors.text());
    part.file.reset();
    part.file = open(part.path, GDAL_OF_UPDATE);
    std::vector<int> factors = task.factors;
    if (!part.file || part.file->BuildOverviews("NONE", static_cast<int>(factors.size()), factors.data(), 0,
                                                nullptr, nullptr, nullptr, nullptr) != CE_None)
        throw Error(errors.text());
}

void CogOverviews::fill(Part& part, const OverviewTask& task) {
    const GdalErrors errors;
    const DatasetHandle raster = open(task.raster, GDAL_OF_READONLY);
    if (!raster) throw Error(errors.text());
    for (int b = 1; b <= part.file->GetRasterCount(); ++b) {
        GDALRasterBand* const band = part.file->GetRasterBand(b);
        std::vector<GDALRasterBandH> overviews;
        for (int k = 0; k < band->GetOverviewCount(); ++k)
            overviews.push_back(GDALRasterBand::ToHandle(band->GetOverview(k)));
        const CPLErr made =
            GDALRegenerateOverviews(GDALRasterBand::ToHandle(raster->GetRasterBand(part.first_band + b)),
                                    static_cast<int>(overviews.size()), overviews.data(),
                                    task.resampling.c_str(), go_on, const_cast<CancelFlag*>(task.cancel));
        if (task.cancel != nullptr && task.cancel->requested()) throw Cancelled();
        if (made != CE_None) throw Error(errors.text());
    }
    part.file->FlushCache();
    if (errors.any()) throw Error(errors.text());
}

void CogOverviews::read(const Window& window, int64_t turn, char* to) const {
    const GdalErrors errors;
    const auto parts = static_cast<int64_t>(m_parts.size());
    for (int64_t k = 0; k < parts; ++k) {
        const Part& part = *m_parts[static_cast<size_t>((turn + k) % parts)];
        const std::lock_guard lock(part.mutex);
        for (int b = 0; b < part.file->GetRasterCount(); ++b) {
            GDALRasterBand* const band = part.file->GetRasterBand(b + 1)->GetOverview(window.overview);
            if (band == nullptr ||
                band->RasterIO(GF_Read, window.x, window.y, window.samples, window.lines,
                               to + (part.first_band + b) * window.band_step, window.samples, window.lines,
                               window.type, window.pixel_step, window.line_step, nullptr) != CE_None)
                throw Error("cannot read '" + part.path + "': " + errors.text());
        }
    }
}

} // namespace hsi::raster
