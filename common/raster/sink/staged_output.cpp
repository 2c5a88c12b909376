// SPDX-License-Identifier: MIT
#include "raster/sink/staged_output.h"

#include "core/cancel.h"
#include "core/error.h"
#include "raster/gdal/gdal_errors.h"
#include "raster/sink/close_written.h"
#include "raster/sink/raster_sink_impl.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

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

void RasterSink::Impl::remove_stage() {
    for (const std::string& path : {stage, streamed}) {
        if (path.empty()) continue;
        VSIUnlink(path.c_str());
        VSIUnlink((path + ".aux.xml").c_str());
    }
}

/// Sends a finished file to standard output.
void RasterSink::Impl::stream(const std::string& path) const {
    const auto close = [](VSILFILE* handle) { VSIFCloseL(handle); };
    std::unique_ptr<VSILFILE, decltype(close)> from(VSIFOpenL(path.c_str(), "rb"), close);
    std::unique_ptr<VSILFILE, decltype(close)> to(VSIFOpenL(standard_output, "wb"), close);
    if (!from || !to) throw failure(std::strerror(errno));
    std::vector<char> buffer(size_t{1} << 20);
    for (;;) {
        const size_t got = VSIFReadL(buffer.data(), 1, buffer.size(), from.get());
        if (VSIFWriteL(buffer.data(), 1, got, to.get()) != got) throw failure(std::strerror(errno));
        if (got < buffer.size()) break;
    }
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) throw failure(std::strerror(errno));
    VSIStatBufL facts;
    if (VSIStatL(path.c_str(), &facts) != 0 ||
        VSIFTellL(from.get()) != static_cast<vsi_l_offset>(facts.st_size))
        throw failure("'" + path + "' could not be read back");
}

/// GDAL asks it several times a second whether to go on.
int CPL_STDCALL RasterSink::Impl::go_on(double, const char*, void* sink) {
    return static_cast<Impl*>(sink)->cancelled() ? 0 : 1;
}

/// A COG's overviews, of the stage: made band by band there, in little memory. Left to the COG driver
/// they are made of all bands at once, through the block cache again and again.
void RasterSink::Impl::add_overviews(const CPLStringList& list) {
    const char* const wanted = list.FetchNameValueDef("OVERVIEWS", "AUTO");
    const char* const scheme = list.FetchNameValueDef("TILING_SCHEME", "CUSTOM");
    if (!EQUAL(wanted, "AUTO") || !EQUAL(scheme, "CUSTOM")) return;
    DatasetHandle dataset_to_reduce(GDALDataset::FromHandle(
        GDALOpenEx(stage.c_str(), GDAL_OF_RASTER | GDAL_OF_UPDATE, nullptr, nullptr, nullptr)));
    if (!dataset_to_reduce) return;
    const int side = std::max(1, std::atoi(list.FetchNameValueDef("BLOCKSIZE", "512")));
    const char* const count = list.FetchNameValue("OVERVIEW_COUNT");
    std::vector<int> levels;
    int64_t w = spec.shape.samples, h = spec.shape.lines;
    for (int level = 2;
         count != nullptr ? static_cast<int>(levels.size()) < std::atoi(count) && (w > 1 || h > 1)
                          : w > side || h > side;
         level *= 2) {
        levels.push_back(level);
        w = (w + 1) / 2;
        h = (h + 1) / 2;
    }
    const char* const method = list.FetchNameValueDef(
        "OVERVIEW_RESAMPLING",
        list.FetchNameValueDef("RESAMPLING",
                               dataset_to_reduce->GetRasterBand(1)->GetColorTable() ? "NEAREST" : "CUBIC"));
    if (levels.empty()) return;
    const CPLConfigOptionSetter threads("GDAL_NUM_THREADS", list.FetchNameValueDef("NUM_THREADS", "1"),
                                        false);
    dataset_to_reduce->BuildOverviews(method, static_cast<int>(levels.size()), levels.data(), 0, nullptr,
                                      go_on, this, nullptr);
    if (!close_written(std::move(dataset_to_reduce)) && !cancelled())
        throw failure("not all of its overviews got to the disk");
}

void RasterSink::Impl::copy_stage(const GdalErrors& errors) {
    CPLStringList list = target.options;
    // What the GTiff driver streams by itself is wrong from GDAL 3.10 on when the directory's texts end
    // at an odd byte: the directory comes twice, and the pixels lie where nobody looks.
    if (options.path == standard_output && (is(target.driver, "GTiff") || is(target.driver, "COG")))
        streamed = file->scratch_path("out.tif");
    const std::string path = streamed.empty() ? file->path() : streamed;
    if (is(target.driver, "COG")) add_overviews(list);
    if (cancelled()) throw Cancelled();
    if (errors.any()) throw failure(errors.text());
    const DatasetHandle from(GDALDataset::FromHandle(
        GDALOpenEx(stage.c_str(), GDAL_OF_RASTER | GDAL_OF_READONLY, nullptr, nullptr, nullptr)));
    if (!from) throw failure(errors.text());
    DatasetHandle copy(target.driver->CreateCopy(path.c_str(), from.get(), FALSE, list.List(), go_on, this));
    if (cancelled()) throw Cancelled();
    if (!copy) throw failure(errors.text());
    const bool closed = close_written(std::move(copy), is_local(path));
    if (errors.any() || !closed) throw failure(errors.text("not all of it got to the disk"));
    if (streamed.empty()) return;
    check_written(streamed);
    stream(streamed);
}

} // namespace hsi::raster
