// SPDX-License-Identifier: MIT
// GDAL's driver HSI: virtual scenes (.hsi) in any program that uses GDAL. A virtual scene's document contains
// its metadata as a VRT. All bands of a block are computed together, by several threads.
#include "core/error.h"
#include "core/host_memory.h"
#include "core/process_limits.h"
#include "core/process_owner.h"
#include "core/text.h"
#include "gdal/device_choice.h"
#include "gdal/modules.h"
#include "links/links.h"
#include "math/simd_target.h"
#include "parallel/threads.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"
#include "raster/raster_source.h"
#include "raster/sample_convert.h"
#include "raster/scene_document.h"
#include "raster/side_files.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <gdal_priv.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#ifndef BANDMAP_TYPE // The type is const from GDAL 3.10 on.
#define BANDMAP_TYPE int*
#endif

namespace hsi::plugin {
namespace {

/// Runs `body` and returns GDAL's error code. Only C types, and no exceptions, pass between GDAL and this
/// driver.
CPLErr told(const std::function<void()>& body) {
    const auto fail = [](const std::string& what, const std::string& advice) {
        CPLError(CE_Failure, CPLE_AppDefined, "%s%s%s", what.c_str(), advice.empty() ? "" : ". ",
                 advice.c_str());
        return CE_Failure;
    };
    try {
        body();
        return CE_None;
    } catch (const Error& e) {
        return fail(e.what(), e.advice());
    } catch (const std::bad_alloc&) {
        return fail("out of memory", "");
    } catch (const std::exception& e) {
        return fail(e.what(), "");
    }
}

int thread_count() {
    const char* const asked = CPLGetConfigOption("GDAL_NUM_THREADS", "ALL_CPUS");
    constexpr int most = 64;
    return std::clamp(EQUAL(asked, "ALL_CPUS") ? usable_processors() : std::atoi(asked), 1, most);
}

/// Computes the steps of the scene on a GPU if the configuration option requests a GPU. By default, opening a
/// scene does not start a GPU.
void compute_where_asked(const raster::RasterSource& source) {
    const std::string wish = CPLGetConfigOption("GDAL_HSI_DEVICE", "auto");
    const DeviceChoice choice = device_choice(wish);
    if (choice.kind != DeviceChoice::Kind::cuda) return;
    try {
        if (const raster::Chain* const chain = source.chain()) chain->compute_on(devices_asked_for(choice));
    } catch (const Error& e) {
        throw Error("GDAL_HSI_DEVICE=" + wish + ": " + e.what(), e.advice());
    }
}

struct Closer {
    void operator()(GDALDataset* dataset) const { GDALClose(GDALDataset::ToHandle(dataset)); }
};
using Description = std::unique_ptr<GDALDataset, Closer>;

class SceneDataset;

class SceneBand final : public GDALRasterBand {
  public:
    SceneBand(SceneDataset& scene, GDALRasterBand& description, int number, int side);

    double GetNoDataValue(int* known) override { return m_description.GetNoDataValue(known); }
    GDALColorInterp GetColorInterpretation() override { return m_description.GetColorInterpretation(); }
    GDALColorTable* GetColorTable() override { return m_description.GetColorTable(); }
    char** GetCategoryNames() override { return m_description.GetCategoryNames(); }
    double GetScale(int* known) override { return m_description.GetScale(known); }
    double GetOffset(int* known) override { return m_description.GetOffset(known); }
    const char* GetUnitType() override { return m_description.GetUnitType(); }
    GDALRasterAttributeTable* GetDefaultRAT() override { return m_description.GetDefaultRAT(); }

  protected:
    CPLErr IReadBlock(int x, int y, void* data) override;
    CPLErr IRasterIO(GDALRWFlag flag, int x, int y, int w, int h, void* data, int buffer_w, int buffer_h,
                     GDALDataType type, GSpacing pixel_step, GSpacing line_step,
                     GDALRasterIOExtraArg* extra) override;

  private:
    SceneDataset& m_scene;
    GDALRasterBand& m_description;
};

/// A buffer that a caller of GDAL provides.
struct Buffer {
    void* data = nullptr;
    GDALDataType type = GDT_Unknown;
    GSpacing pixel_step = 0, line_step = 0, band_step = 0; ///< distances in bytes
    void* at(int64_t band, int64_t line, int64_t sample) const {
        return static_cast<char*>(data) + band * band_step + line * line_step + sample * pixel_step;
    }
};

class SceneDataset final : public GDALDataset {
  public:
    SceneDataset(const std::string& path, Description description) : m_description(std::move(description)) {
        nRasterXSize = m_description->GetRasterXSize();
        nRasterYSize = m_description->GetRasterYSize();
        const int bands = m_description->GetRasterCount();
        raster::OpenOptions options;
        options.path = path;
        options.bands.resize(static_cast<size_t>(bands));
        std::iota(options.bands.begin(), options.bands.end(), 1);
        m_source = raster::open_raster(options);
        compute_where_asked(*m_source);
        for (const auto& link : raster::links_of(*m_source))
            m_by_pixel = m_by_pixel && link.halo == 0;
        GDALRasterBand& first = *m_description->GetRasterBand(1);
        int known = 0;
        raster::NodataValue nodata;
        nodata.real = first.GetNoDataValue(&known);
        m_rule = raster::StoreRule(raster::sample_type(first.GetRasterDataType()),
                                   known ? std::optional<raster::NodataValue>(nodata) : std::nullopt);
        for (int b = 1; b <= bands; ++b)
            SetBand(b, new SceneBand(*this, *m_description->GetRasterBand(b), b, block_side));
        copy_items(*m_description, *this);
        // All bands of a pixel are computed together. Pixel interleaving tells copying programs to read all
        // bands of a block together.
        SetMetadataItem("INTERLEAVE", "PIXEL", "IMAGE_STRUCTURE");
        SetDescription(path.c_str());
    }

    const OGRSpatialReference* GetSpatialRef() const override { return m_description->GetSpatialRef(); }
    /// Returns the scene's file and the files from which the scene is computed.
    char** GetFileList() override {
        CPLStringList list(GDALDataset::GetFileList());
        told([&] {
            for (const std::string& file : raster::files_read_with(GetDescription()))
                if (list.FindString(file.c_str()) < 0) list.AddString(file.c_str());
        });
        CPLErrorReset(); // Removes errors from files that are not rasters.
        return list.StealList();
    }
    int GetGCPCount() override { return m_description->GetGCPCount(); }
    const GDAL_GCP* GetGCPs() override { return m_description->GetGCPs(); }
    const OGRSpatialReference* GetGCPSpatialRef() const override { return m_description->GetGCPSpatialRef(); }
#if GDAL_VERSION_NUM >= 3120000
    CPLErr GetGeoTransform(GDALGeoTransform& place) const override {
        return m_description->GetGeoTransform(place);
    }
#else
    CPLErr GetGeoTransform(double* place) override { return m_description->GetGeoTransform(place); }
#endif

    static void copy_items(GDALMajorObject& from, GDALMajorObject& to) {
        const CPLStringList domains(from.GetMetadataDomainList());
        std::vector<std::string> names{""};
        for (int i = 0; i < domains.size(); ++i)
            if (!EQUAL(domains[i], "xml:VRT") && !EQUAL(domains[i], "vrt_sources"))
                names.emplace_back(domains[i]);
        for (const std::string& name : names)
            if (CSLConstList const items = from.GetMetadata(name.c_str()); items != nullptr)
                to.SetMetadata(const_cast<char**>(items), name.c_str());
    }

    /// Blocks are small, so that a request computes few pixels outside its window. The missing parts of
    /// several blocks are computed together.
    static constexpr int block_side = 128;

    bool by_pixel() const { return m_by_pixel; }

    /// Reads one band of a block, and also stores the other bands in GDAL's cache.
    void read_block(int x, int y, int number, void* data) {
        const Rect window = pixels_of({x, y, 1, 1});
        if (!(window == m_last_window)) compute_last(window);
        copy_band(number - 1, m_last.view(window, nBands), block_at(data), 0);
        // The other bands do not fit into the cache. They are copied from m_last when they are requested.
        if (2 * bytes_of({x, y, 1, 1}) > GDALGetCacheMax64()) return;
        for (int other = 1; other <= nBands; ++other)
            if (other != number && !keep_block(x, y, other, m_last.view(window, nBands))) return;
    }

    /// Called before GDAL reads a band of a window block by block. Computes all blocks that are missing in
    /// GDAL's cache, in as few windows as possible. Stores all bands if the cache has room.
    void fill_blocks(const Rect& window, int number) {
        int w = 0, h = 0;
        GDALRasterBand& band = *GetRasterBand(number);
        band.GetBlockSize(&w, &h);
        const int64_t first = window.x / w, last = (window.right() - 1) / w;
        std::vector<Rect> lacking; // rectangles in units of blocks
        for (int64_t y = window.y / h; y <= (window.bottom() - 1) / h; ++y)
            for (int64_t x = first; x <= last; ++x) {
                if (auto* const there = band.TryGetLockedBlockRef(static_cast<int>(x), static_cast<int>(y))) {
                    there->DropLock();
                    continue;
                }
                const bool goes_on = !lacking.empty() && lacking.back().y == y && lacking.back().right() == x;
                goes_on ? static_cast<void>(++lacking.back().w) : lacking.push_back({x, y, 1, 1});
            }
        for (size_t i = 0; i < lacking.size(); ++i) {
            Rect blocks = lacking[i];
            while (i + 1 < lacking.size() && lacking[i + 1].x == blocks.x && lacking[i + 1].w == blocks.w &&
                   lacking[i + 1].y == blocks.bottom() &&
                   8 * bytes_of({blocks.x, blocks.y, blocks.w, blocks.h + 1}) <= GDALGetCacheMax64()) {
                ++blocks.h;
                ++i;
            }
            // GDAL then reads the blocks one by one.
            if (blocks.area() == 1 || 8 * bytes_of(blocks) > GDALGetCacheMax64()) continue;
            compute_blocks(blocks);
        }
    }

    /// Reads a window at full resolution.
    void read_window(const Rect& window, const std::vector<int>& bands, const Buffer& to) {
        if (const auto place = place_of(window, bands, to))
            return compute_into(window, *place, [&](const CubeView<float>& values) {
                for (int b = 0; b < values.bands; ++b)
                    for (int64_t line = 0; line < values.lines; ++line)
                        m_rule.finish(values.row(b, line), static_cast<size_t>(values.samples));
            });
        compute(window, [&](const Rect& part, const CubeView<float>& values) {
            for (size_t k = 0; k < bands.size(); ++k)
                copy_band(bands[k] - 1, values, shifted(to, static_cast<int64_t>(k)), part.y - window.y);
        });
    }

    /// Reads every n-th sample of every n-th line, at the positions where GDAL takes the nearest pixel. The
    /// lines in between are not computed.
    void read_decimated(const Rect& window, int w, int h, const std::vector<int>& bands, const Buffer& to) {
        parallel::for_each(h, reader_count(), nullptr, [&](int64_t line, int member) {
            const auto from = [](int64_t i, int64_t of, int count) {
                return std::min(of - 1, static_cast<int64_t>((static_cast<double>(i) + 0.5) *
                                                             static_cast<double>(of) / count));
            };
            std::vector<float> values(static_cast<size_t>(window.w * nBands));
            const auto view = CubeView<float>::packed(values.data(), nBands, 1, window.w);
            reader(member).read({window.x, window.y + from(line, window.h, h), window.w, 1}, view);
            std::vector<float> picked(static_cast<size_t>(w));
            for (size_t k = 0; k < bands.size(); ++k) {
                for (int i = 0; i < w; ++i)
                    picked[static_cast<size_t>(i)] = view.row(bands[k] - 1, 0)[from(i, window.w, w)];
                copy_band(0, CubeView<float>::packed(picked.data(), 1, 1, w),
                          shifted(to, static_cast<int64_t>(k)), line);
            }
        });
        m_source->check_unchanged();
    }

  protected:
    CPLErr IRasterIO(GDALRWFlag flag, int x, int y, int w, int h, void* data, int buffer_w, int buffer_h,
                     GDALDataType type, int count, BANDMAP_TYPE numbers, GSpacing pixel_step,
                     GSpacing line_step, GSpacing band_step, GDALRasterIOExtraArg* extra) override {
        const bool whole = buffer_w == w && buffer_h == h;
        // Requests for less than half of the bands use GDAL's cache, since programs often repeat them.
        if (flag != GF_Read || !whole || 2 * count < nBands)
            return GDALDataset::IRasterIO(flag, x, y, w, h, data, buffer_w, buffer_h, type, count, numbers,
                                          pixel_step, line_step, band_step, extra);
        return told([&] {
            read_window({x, y, w, h}, {numbers, numbers + count},
                        {data, type, pixel_step, line_step, band_step});
        });
    }

  private:
    /// All bands of a window, packed.
    struct Cube {
        std::vector<float> values;
        CubeView<float> view(const Rect& window, int bands) {
            return CubeView<float>::packed(values.data(), bands, window.h, window.w);
        }
    };

    static Buffer shifted(Buffer to, int64_t band) {
        to.data = to.at(band, 0, 0);
        return to;
    }

    int reader_count() {
        const auto wanted = static_cast<size_t>(thread_count());
        while (m_readers.size() < wanted)
            m_readers.push_back(m_source->open_reader());
        m_buffers.resize(std::max(m_buffers.size(), m_readers.size()));
        return static_cast<int>(wanted);
    }
    stream::CubeReader& reader(int member) { return *m_readers[static_cast<size_t>(member)]; }

    /// Returns the buffer as a cube if values can be computed directly in it: adjacent floats, and all bands
    /// in order.
    std::optional<CubeView<float>> place_of(const Rect& window, const std::vector<int>& bands,
                                            const Buffer& to) const {
        constexpr auto step = static_cast<GSpacing>(sizeof(float));
        if (!m_rule.floats() || to.type != GDT_Float32 || to.pixel_step != step || to.line_step % step != 0 ||
            to.band_step % step != 0 || to.line_step < window.w * step ||
            reinterpret_cast<uintptr_t>(to.data) % alignof(float) != 0 ||
            static_cast<int>(bands.size()) != nBands)
            return std::nullopt;
        for (int b = 0; b < nBands; ++b)
            if (bands[static_cast<size_t>(b)] != b + 1) return std::nullopt;
        return CubeView<float>(static_cast<float*>(to.data), nBands, window.h, window.w,
                               static_cast<ptrdiff_t>(to.line_step / step),
                               static_cast<ptrdiff_t>(to.band_step / step));
    }

    /// Splits a window into parts of whole lines and processes them on several threads.
    void in_parts(const Rect& window, const std::function<void(const Rect&, int)>& work) {
        constexpr int64_t most_bytes = int64_t{32} << 20, least_lines = 8;
        const int members = reader_count();
        const int64_t line_bytes = window.w * nBands * static_cast<int64_t>(sizeof(float));
        const int64_t fitting = std::max<int64_t>(1, most_bytes / line_bytes);
        // If lines are independent, each thread gets several parts, since other work may delay a thread.
        const int64_t shares = members * (m_by_pixel ? 4 : 1);
        const int64_t even = (window.h + shares - 1) / shares;
        CPLDebug("HSI", "%s: computes %lldx%lld pixels at %lld, %lld", GetDescription(),
                 static_cast<long long>(window.w), static_cast<long long>(window.h),
                 static_cast<long long>(window.x), static_cast<long long>(window.y));
        const int64_t lines = std::min(std::max(least_lines, std::min(even, fitting)), window.h);
        parallel::for_each((window.h + lines - 1) / lines, members, nullptr, [&](int64_t part, int member) {
            work({window.x, window.y + part * lines, window.w, std::min(lines, window.h - part * lines)},
                 member);
        });
        // Throws if a file has changed; otherwise the result would mix pixels of two scenes.
        m_source->check_unchanged();
    }

    void compute_into(const Rect& window, const CubeView<float>& place,
                      const std::function<void(const CubeView<float>&)>& finish) {
        in_parts(window, [&](const Rect& r, int member) {
            const auto part = place.cut(0, r.y - window.y, r.w, r.h);
            reader(member).read(r, part);
            finish(part);
        });
    }

    /// Computes each part in a separate buffer.
    void compute(const Rect& window, const std::function<void(const Rect&, const CubeView<float>&)>& take) {
        in_parts(window, [&](const Rect& r, int member) {
            HostBuffer<float>& values = m_buffers[static_cast<size_t>(member)];
            if (const auto size = static_cast<size_t>(r.area() * nBands); values.size() < size)
                values = HostBuffer<float>(size);
            const auto view = CubeView<float>::packed(values.data(), nBands, r.h, r.w);
            reader(member).read(r, view);
            take(r, view);
        });
    }

    void compute_last(const Rect& window) {
        m_last_window = {};
        m_last.values.resize(static_cast<size_t>(window.area() * nBands));
        compute_into(window, m_last.view(window, nBands), [](const CubeView<float>&) {});
        m_last_window = window;
    }

    /// Returns the pixels of these blocks. `blocks` is in units of blocks.
    Rect pixels_of(const Rect& blocks) {
        int w = 0, h = 0;
        GetRasterBand(1)->GetBlockSize(&w, &h);
        return intersect(Rect{blocks.x * w, blocks.y * h, blocks.w * w, blocks.h * h},
                         Rect{0, 0, nRasterXSize, nRasterYSize});
    }
    GIntBig bytes_of(const Rect& blocks) {
        return pixels_of(blocks).area() * nBands * GDALGetDataTypeSizeBytes(raster::gdal_type(m_rule.type()));
    }
    Buffer block_at(void* data) {
        int w = 0, h = 0;
        GetRasterBand(1)->GetBlockSize(&w, &h);
        const GSpacing step = GDALGetDataTypeSizeBytes(raster::gdal_type(m_rule.type()));
        return {data, raster::gdal_type(m_rule.type()), step, w * step, 0};
    }
    /// Stores a band of a block in GDAL's cache unless the cache already has it. \return false if the cache
    /// is full.
    bool keep_block(int64_t x, int64_t y, int number, const CubeView<float>& values) {
        GDALRasterBand& band = *GetRasterBand(number);
        const int column = static_cast<int>(x), row = static_cast<int>(y);
        GDALRasterBlock* there = band.TryGetLockedBlockRef(column, row);
        if (there == nullptr) {
            there = band.GetLockedBlockRef(column, row, TRUE);
            if (there == nullptr) return false;
            copy_band(number - 1, values, block_at(there->GetDataRef()), 0);
        }
        there->DropLock();
        return true;
    }
    void compute_blocks(const Rect& blocks) {
        const Rect window = pixels_of(blocks);
        Cube cube;
        cube.values.resize(static_cast<size_t>(window.area() * nBands));
        const auto all = cube.view(window, nBands);
        compute_into(window, all, [](const CubeView<float>&) {});
        for (int64_t y = blocks.y; y < blocks.bottom(); ++y)
            for (int64_t x = blocks.x; x < blocks.right(); ++x) {
                const Rect r = pixels_of({x, y, 1, 1});
                for (int number = 1; number <= nBands; ++number)
                    if (!keep_block(x, y, number, all.cut(r.x - window.x, r.y - window.y, r.w, r.h))) return;
            }
    }

    /// Copies a band of `values` into the lines of a buffer that start at line `first`. Values are rounded as
    /// in a file.
    void copy_band(int band, const CubeView<float>& values, const Buffer& to, int64_t first) const {
        const auto count = static_cast<size_t>(values.samples);
        const bool as_it_is = m_rule.floats() && to.type == GDT_Float32 && to.pixel_step == sizeof(float);
        std::vector<double> stored(as_it_is ? 0 : count); // Doubles can hold the values of any type.
        for (int64_t line = 0; line < values.lines; ++line) {
            void* const samples = as_it_is ? to.at(0, first + line, 0) : stored.data();
            if (m_rule.floats()) {
                std::memcpy(samples, values.row(band, line), count * sizeof(float));
                m_rule.finish(static_cast<float*>(samples), count);
            } else {
                m_rule.store(values.row(band, line), count, samples);
            }
            if (as_it_is) continue;
            GDALCopyWords64(samples, raster::gdal_type(m_rule.type()),
                            static_cast<int>(m_rule.sample_bytes()), to.at(0, first + line, 0), to.type,
                            static_cast<int>(to.pixel_step), static_cast<GPtrDiff_t>(count));
        }
    }

    const Description m_description;
    std::shared_ptr<const raster::RasterSource> m_source;
    /// Readers of the scene, one per thread. GDAL uses a dataset from one thread at a time.
    std::vector<std::unique_ptr<stream::CubeReader>> m_readers;
    std::vector<HostBuffer<float>> m_buffers; ///< one buffer per reader
    raster::StoreRule m_rule;
    bool m_by_pixel = true; ///< true if no processing step uses neighbouring pixels
    Rect m_last_window;
    Cube m_last; ///< the block that was computed last
};

SceneBand::SceneBand(SceneDataset& scene, GDALRasterBand& description, int number, int side)
    : m_scene(scene), m_description(description) {
    poDS = &scene;
    nBand = number;
    eDataType = description.GetRasterDataType();
    nBlockXSize = std::min(side, scene.GetRasterXSize());
    nBlockYSize = std::min(side, scene.GetRasterYSize());
    SceneDataset::copy_items(description, *this);
    SetDescription(description.GetDescription());
}

CPLErr SceneBand::IReadBlock(int x, int y, void* data) {
    return told([&] { m_scene.read_block(x, y, nBand, data); });
}

CPLErr SceneBand::IRasterIO(GDALRWFlag flag, int x, int y, int w, int h, void* data, int buffer_w,
                            int buffer_h, GDALDataType type, GSpacing pixel_step, GSpacing line_step,
                            GDALRasterIOExtraArg* extra) {
    const bool nearest = extra == nullptr || (extra->eResampleAlg == GRIORA_NearestNeighbour &&
                                              !extra->bFloatingPointWindowValidity);
    if (flag == GF_Read && nearest && m_scene.by_pixel() && buffer_w <= w && buffer_h < h)
        return told([&] {
            m_scene.read_decimated({x, y, w, h}, buffer_w, buffer_h, {nBand},
                                   {data, type, pixel_step, line_step, 0});
        });
    if (flag == GF_Read && buffer_w == w && buffer_h == h && told([&] {
                                                                 m_scene.fill_blocks({x, y, w, h}, nBand);
                                                             }) != CE_None)
        return CE_Failure;
    return GDALRasterBand::IRasterIO(flag, x, y, w, h, data, buffer_w, buffer_h, type, pixel_step, line_step,
                                     extra);
}

int identify(GDALOpenInfo* info) {
    if (info->nHeaderBytes <= 0 || info->fpL == nullptr) return FALSE;
    const std::string begin(reinterpret_cast<const char*>(info->pabyHeader),
                            static_cast<size_t>(info->nHeaderBytes));
    const size_t at = begin.find_first_not_of(" \t\r\n");
    if (at == std::string::npos || begin[at] != '{') return FALSE;
    return begin.find("\"gdal_hsi_scene\"") != std::string::npos ||
           EQUAL(CPLGetExtension(info->pszFilename), "hsi");
}

GDALDataset* open(GDALOpenInfo* info) {
    if (identify(info) == FALSE) return nullptr;
    if (info->eAccess == GA_Update) {
        CPLError(CE_Failure, CPLE_NotSupported, "'%s' is computed when it is read: it cannot be changed",
                 info->pszFilename);
        return nullptr;
    }
    GDALDataset* made = nullptr;
    told([&] {
        const auto document = raster::read_scene_document(info->pszFilename);
        const char* const drivers[] = {"VRT", nullptr};
        // Suppresses GDAL's error messages, because GDAL reports an error if a name is as long as this
        // document.
        const raster::GdalErrors quiet;
        Description description(GDALDataset::FromHandle(GDALOpenEx(
            document.raster.c_str(), GDAL_OF_RASTER | GDAL_OF_READONLY, drivers, nullptr, nullptr)));
        if (!description || description->GetRasterCount() < 1)
            throw Error("'" + std::string(info->pszFilename) +
                        "' is damaged: 'raster' does not describe a raster");
        made = new SceneDataset(info->pszFilename, std::move(description));
    });
    return made;
}

} // namespace
} // namespace hsi::plugin

extern "C" __attribute__((visibility("default"))) void hsi_register_driver() {
    if (GDALGetDriverByName("HSI") != nullptr) return;
    hsi::share_process();
    hsi::math::select_simd(CPLGetConfigOption("HSI_SIMD", "")); // gdal_HSI.so has already checked the name.
    hsi::links::register_links();
    auto* const driver = new GDALDriver();
    driver->SetDescription("HSI");
    driver->SetMetadataItem(GDAL_DMD_LONGNAME, "Hyperspectral scenes that are computed when they are read");
    driver->SetMetadataItem(GDAL_DMD_EXTENSION, "hsi");
    driver->SetMetadataItem(GDAL_DMD_EXTENSIONS, "hsi");
    driver->SetMetadataItem(GDAL_DCAP_RASTER, "YES");
    driver->SetMetadataItem(GDAL_DCAP_VIRTUALIO, "YES");
    driver->pfnIdentify = hsi::plugin::identify;
    driver->pfnOpen = hsi::plugin::open;
    GetGDALDriverManager()->RegisterDriver(driver);
}
