// SPDX-License-Identifier: MIT
#include "raster/output/staged_output.h"

#include "core/cancel.h"
#include "core/error.h"
#include "core/file_path.h"
#include "raster/drivers.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"
#include "raster/output/creation_options.h"
#include "raster/output/netcdf_output.h"
#include "raster/output/output_description.h"
#include "raster/output/pending_output.h"
#include "raster/output/written_raster.h"
#include "raster/sample_convert.h"
#include "raster/tiff/cog_file.h"

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
    // These items come from a source with further dimensions.
    for (int i = 0; i < items.size(); ++i)
        if (STARTS_WITH(items[i], "NETCDF_DIM_"))
            stage.SetMetadataItem(std::string(items[i]).substr(0, std::strcspn(items[i], "=")).c_str(),
                                  nullptr);
    reserve_netcdf_header(stage);
    const int bands = stage.GetRasterCount();
    if (bands < 2) return;
    // Without a position, the netCDF driver confuses columns and lines. The pixels are therefore placed where
    // QGIS draws a raster without georeference.
    double gt[6] = {0, 1, 0, 0, 0, -1};
    if (stage.GetGeoTransform(gt) != CE_None) {
        double pixels[6] = {0, 1, 0, 0, 0, -1};
        stage.SetGeoTransform(pixels);
    }
    // The file has one variable, with the bands as its third dimension. A property that differs between bands
    // is left out, because it would apply to all bands.
    std::string numbers, lengths, units;
    bool all = true;
    const std::string unit_of_values = stage.GetRasterBand(1)->GetUnitType();
    bool one_unit = true, one_scale = true;
    const double scale = stage.GetRasterBand(1)->GetScale(), offset = stage.GetRasterBand(1)->GetOffset();
    for (int b = 1; b <= bands; ++b) {
        GDALRasterBand* band = stage.GetRasterBand(b);
        one_scale = one_scale && band->GetScale() == scale && band->GetOffset() == offset;
        const char* length = band->GetMetadataItem("wavelength");
        const char* unit = band->GetMetadataItem("wavelength_units");
        if (b == 1) units = unit ? unit : "";
        all = all && length != nullptr && CPLGetValueType(length) != CPL_VALUE_STRING &&
              units == (unit ? unit : "");
        const char* comma = b == 1 ? "" : ",";
        numbers += comma + std::to_string(b);
        lengths += comma + std::string(length ? length : "");
        one_unit = one_unit && unit_of_values == band->GetUnitType();
        band->SetMetadata(nullptr);
        band->SetDescription("");
    }
    for (int b = 1; b <= bands && !one_scale; ++b) {
        stage.GetRasterBand(b)->SetScale(1);
        stage.GetRasterBand(b)->SetOffset(0);
    }
    if (one_unit && !unit_of_values.empty())
        stage.GetRasterBand(1)->SetMetadataItem("units", unit_of_values.c_str());
    const std::string name = all ? "wavelength" : "band";
    stage.SetMetadataItem("NETCDF_DIM_EXTRA", ("{" + name + "}").c_str());
    // netCDF's type codes are 6 for double and 4 for int.
    stage.SetMetadataItem(("NETCDF_DIM_" + name + "_DEF").c_str(),
                          ("{" + std::to_string(bands) + (all ? ",6}" : ",4}")).c_str());
    stage.SetMetadataItem(("NETCDF_DIM_" + name + "_VALUES").c_str(),
                          ("{" + (all ? lengths : numbers) + "}").c_str());
    if (all && !units.empty()) stage.SetMetadataItem("wavelength#units", units.c_str());
}

void PendingOutput::remove_stage() {
    for (const std::string& path : {stage, streamed}) {
        if (path.empty()) continue;
        VSIUnlink(path.c_str());
        VSIUnlink((path + ".aux.xml").c_str());
    }
}

/// Copies a finished file to standard output.
void PendingOutput::stream(const std::string& path) const {
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

/// GDAL calls this function several times a second, so that it can check for cancellation.
int CPL_STDCALL PendingOutput::go_on(double, const char*, void* sink) {
    return static_cast<PendingOutput*>(sink)->cancelled() ? 0 : 1;
}

namespace {

/// Returns the reduction factor of each overview of a COG. The list is empty if the driver must determine the
/// factors.
std::vector<int> overview_levels(const CPLStringList& list, const stream::CubeShape& shape) {
    std::vector<int> levels;
    if (!EQUAL(list.FetchNameValueDef("OVERVIEWS", "AUTO"), "AUTO") ||
        !EQUAL(list.FetchNameValueDef("TILING_SCHEME", "CUSTOM"), "CUSTOM"))
        return levels;
    const int side = std::max(1, std::atoi(list.FetchNameValueDef("BLOCKSIZE", "512")));
    const char* const count = list.FetchNameValue("OVERVIEW_COUNT");
    int64_t w = shape.samples, h = shape.lines;
    for (int level = 2;
         count != nullptr ? static_cast<int>(levels.size()) < std::atoi(count) && (w > 1 || h > 1)
                          : w > side || h > side;
         level *= 2) {
        levels.push_back(level);
        w = (w + 1) / 2;
        h = (h + 1) / 2;
    }
    return levels;
}

std::string overview_resampling(GDALDataset& dataset, const CPLStringList& list) {
    return list.FetchNameValueDef(
        "OVERVIEW_RESAMPLING",
        list.FetchNameValueDef("RESAMPLING",
                               dataset.GetRasterBand(1)->GetColorTable() ? "NEAREST" : "CUBIC"));
}

CPLErr build_overviews(GDALDataset& dataset, const CPLStringList& list, std::vector<int> levels,
                       GDALProgressFunc progress = nullptr, void* of_progress = nullptr) {
    const std::string method = overview_resampling(dataset, list);
    return dataset.BuildOverviews(method.c_str(), static_cast<int>(levels.size()), levels.data(), 0, nullptr,
                                  progress, of_progress, nullptr);
}

DatasetHandle open_again(const std::string& path, unsigned access) {
    return DatasetHandle(GDALDataset::FromHandle(
        GDALOpenEx(path.c_str(), GDAL_OF_RASTER | access, nullptr, nullptr, nullptr)));
}

} // namespace

/// Makes overviews in the stage before GDAL's driver makes a COG from it. This function works band by band,
/// which needs little memory. The driver would make overviews of all bands at once, and would read pixels
/// repeatedly through the block cache.
void PendingOutput::add_overviews(const CPLStringList& list) {
    const std::vector<int> levels = overview_levels(list, spec.shape);
    if (levels.empty()) return;
    DatasetHandle raster = open_again(stage, GDAL_OF_UPDATE);
    if (!raster) return;
    const CPLConfigOptionSetter threads("GDAL_NUM_THREADS", list.FetchNameValueDef("NUM_THREADS", "1"),
                                        false);
    build_overviews(*raster, list, levels, go_on, this);
    if (!close_written(std::move(raster)) && !cancelled())
        throw failure("its overviews were not completely written to the disk");
}

namespace {

/// Returns true if no option requires GDAL's driver, so that the blocks of a COG can be written without GDAL.
bool cog_options_are_plain(const CPLStringList& list) {
    for (int i = 0; i < list.size(); ++i) {
        const std::string item = list[i];
        const size_t equals = item.find('=');
        const std::string name = item.substr(0, equals),
                          value = equals == std::string::npos ? "" : item.substr(equals + 1);
        if (is_any(name,
                   "COMPRESS LEVEL PREDICTOR BLOCKSIZE BIGTIFF NUM_THREADS GEOTIFF_VERSION OVERVIEW_COUNT "
                   "OVERVIEW_RESAMPLING RESAMPLING OVERVIEW_COMPRESS OVERVIEW_PREDICTOR"))
            continue;
        if (is_any(name, "OVERVIEWS") && is_any(value, "AUTO NONE")) continue;
        if (is_any(name, "INTERLEAVE") && is_any(value, "PIXEL")) continue;
        return false;
    }
    return true;
}

/// A name for a TIFF in memory. The destructor removes the TIFF and its side files.
class MemoryFile {
  public:
    explicit MemoryFile(const void* owner, const char* name)
        : path(CPLSPrintf("/vsimem/hsi_%p_%s.tif", owner, name)) {}
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    ~MemoryFile() {
        for (const std::string& one : {path, path + ".aux.xml"})
            if (VSIStatBufL facts; VSIStatL(one.c_str(), &facts) == 0) VSIUnlink(one.c_str());
    }
    const std::string path;
};

} // namespace

/// Makes a COG from the stage, whose blocks all threads compress. Returns false if GDAL's driver must make
/// the COG.
bool PendingOutput::assemble_cog(const std::string& path, const CPLStringList& list) {
    if (!is_local(path) || !convertible(sample_type(target.type)) || !cog_options_are_plain(list))
        return false;
    CogFile cog{path,
                {},
                stage,
                overview_levels(list, spec.shape),
                {},
                memory() / 2, // the block cache has another quarter of -memory
                target.type,
                std::atoi(list.FetchNameValueDef("BLOCKSIZE", "512")),
                std::atoi(list.FetchNameValueDef("LEVEL", "0")),
                1,
                coding_threads(target, options),
                options.cancel};
    if (const DatasetHandle raster = open_again(stage, GDAL_OF_READONLY); raster)
        cog.resampling = overview_resampling(*raster, list);
    const uint64_t block = static_cast<uint64_t>(cog.block_side * cog.block_side * spec.shape.bands) *
                           static_cast<uint64_t>(GDALGetDataTypeSizeBytes(target.type));
    if (cog.block_side <= 0 || block > UINT32_MAX / 2) return false;
    // The block cache uses a quarter of -memory, which is not available for blocks.
    const uint64_t fitting = memory() * 4 / block * 3 / 4 / 3;
    cog.threads = static_cast<int>(
        std::clamp<uint64_t>(fitting, 1, static_cast<uint64_t>(coding_threads(target, options))));
    const MemoryFile small(this, "small"), model(this, "model");
    // The size includes the overviews.
    const uint64_t all = static_cast<uint64_t>(spec.shape.pixels() * spec.shape.bands) *
                         static_cast<uint64_t>(GDALGetDataTypeSizeBytes(target.type)) / 3 * 4;
    const std::string bigtiff = list.FetchNameValueDef("BIGTIFF", "IF_SAFER");
    const bool big = is_any(bigtiff, "YES TRUE ON 1") ||
                     (is_any(bigtiff, "IF_SAFER IF_NEEDED") && all > uint64_t{2} << 30);
    make_cog_model(list, big, small.path, model.path);
    vsi_l_offset size = 0;
    const GByte* const bytes = VSIGetMemFileBuffer(model.path.c_str(), &size, FALSE);
    if (bytes == nullptr) return false;
    cog.model.assign(reinterpret_cast<const char*>(bytes), size);
    try {
        if (!write_cog(cog)) return false;
    } catch (const Cancelled&) {
        throw;
    } catch (const Error& e) {
        throw failure(e.what(), e.advice());
    }
    const std::string side = model.path + ".aux.xml";
    if (VSIStatBufL facts;
        VSIStatL(side.c_str(), &facts) == 0 && CPLCopyFile((path + ".aux.xml").c_str(), side.c_str()) != 0)
        throw failure("'" + name_of(path) + ".aux.xml' could not be written");
    return true;
}

/// Makes a small COG with the bands, metadata and options of the output. It has an overview if the output has
/// overviews.
void PendingOutput::make_cog_model(const CPLStringList& list, bool big, const std::string& small,
                                   const std::string& model) const {
    constexpr int side = 128; // the minimum of GDAL's driver
    const GdalErrors errors;
    const auto require = [&](bool done) {
        if (!done || errors.any()) throw failure(errors.text());
    };
    CPLStringList sparse;
    for (const char* option : {"SPARSE_OK=TRUE", "TILED=YES", "INTERLEAVE=BAND"})
        sparse.AddString(option);
    GDALDriver* const tiff = GetGDALDriverManager()->GetDriverByName("GTiff");
    DatasetHandle raster(tiff->Create(small.c_str(), side + 1, side + 1, static_cast<int>(spec.shape.bands),
                                      target.type, sparse.List()));
    require(raster != nullptr);
    describe_output(options, spec, scene ? &*scene : nullptr, nodata, target.type, *raster);
    require(close_written(std::move(raster), false));
    const bool reduced = !overview_levels(list, spec.shape).empty();
    if (reduced) {
        raster = open_again(small, GDAL_OF_UPDATE);
        require(raster && build_overviews(*raster, list, {2}) == CE_None);
        require(close_written(std::move(raster), false));
    }
    raster = open_again(small, GDAL_OF_READONLY);
    require(raster != nullptr);
    CPLStringList as(list);
    for (const char* name : {"NUM_THREADS", "OVERVIEW_COUNT"})
        as.SetNameValue(name, nullptr);
    as.SetNameValue("SPARSE_OK", "TRUE");
    as.SetNameValue("BLOCKSIZE", std::to_string(side).c_str());
    as.SetNameValue("BIGTIFF", big ? "YES" : "NO");
    if (!reduced) as.SetNameValue("OVERVIEWS", "NONE");
    DatasetHandle copy(
        target.driver->CreateCopy(model.c_str(), raster.get(), FALSE, as.List(), nullptr, nullptr));
    require(copy != nullptr);
    require(close_written(std::move(copy), false));
}

void PendingOutput::copy_stage(const GdalErrors& errors) {
    CPLStringList list = target.options;
    // From GDAL 3.10 on, the GTiff driver streams wrongly if the texts in the TIFF directory end at an odd
    // byte. The directory is then repeated, and the pixels are at wrong positions. The file is therefore
    // written first and then copied to standard output.
    if (options.path == standard_output && (is(target.driver, "GTiff") || is(target.driver, "COG")))
        streamed = file->scratch_path("out.tif");
    const std::string path = streamed.empty() ? file->path() : streamed;
    if (cancelled()) throw Cancelled();
    if (errors.any()) throw failure(errors.text());
    if (is(target.driver, "COG") && assemble_cog(path, list)) {
        if (streamed.empty()) return;
        check_written(streamed);
        return stream(streamed);
    }
    if (is(target.driver, "COG")) add_overviews(list);
    if (cancelled()) throw Cancelled();
    if (errors.any()) throw failure(errors.text());
    const DatasetHandle from = open_again(stage, GDAL_OF_READONLY);
    if (!from) throw failure(errors.text());
    if (is(target.driver, "netCDF")) add_netcdf_options(*from, pixel_bytes(), list);
    DatasetHandle copy(target.driver->CreateCopy(path.c_str(), from.get(), FALSE, list.List(), go_on, this));
    if (cancelled()) throw Cancelled();
    if (!copy) throw failure(errors.text());
    const bool closed = close_written(std::move(copy), is_local(path));
    if (errors.any() || !closed) throw failure(errors.text("it was not completely written to the disk"));
    if (is(target.driver, "netCDF")) finish_netcdf(path, file->destination(), *described());
    if (streamed.empty()) return;
    check_written(streamed);
    stream(streamed);
}

} // namespace hsi::raster
