// SPDX-License-Identifier: MIT
// Raster files for tests: a temporary folder, and functions that write and read files with GDAL.
#pragma once

#include "core/error.h"
#include "core/tile_plan.h"
#include "raster/raster_sink.h"
#include "raster/raster_source.h"

#include <cpl_string.h>
#include <gdal_priv.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace hsi::test {

namespace fs = std::filesystem;

/// A new folder in the system's temporary folder. The folder and its contents are removed at the end.
class TempFolder {
  public:
    TempFolder() {
        std::string pattern = (fs::temp_directory_path() / "hsi-test-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr) throw Error("cannot make a folder for the test");
        m_path = pattern;
    }
    explicit TempFolder(const fs::path& parent) {
        std::string pattern = (parent / "hsi-test-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr) throw Error("cannot make a folder for the test");
        m_path = pattern;
    }
    ~TempFolder() {
        std::error_code ignored;
        fs::remove_all(m_path, ignored);
    }
    std::string operator/(const std::string& name) const { return (fs::path(m_path) / name).string(); }
    const std::string& path() const { return m_path; }
    std::vector<std::string> files() const { ///< names, sorted
        std::vector<std::string> out;
        for (const auto& entry : fs::directory_iterator(m_path))
            out.push_back(entry.path().filename().string());
        std::sort(out.begin(), out.end());
        return out;
    }

  private:
    std::string m_path;
};

inline std::string read_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

inline void write_text(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

struct CloseDataset {
    void operator()(GDALDataset* d) const { GDALClose(GDALDataset::ToHandle(d)); }
};
using Dataset = std::unique_ptr<GDALDataset, CloseDataset>;

inline Dataset open_gdal(const std::string& path) {
    GDALAllRegister();
    return Dataset(
        GDALDataset::FromHandle(GDALOpenEx(path.c_str(), GDAL_OF_RASTER, nullptr, nullptr, nullptr)));
}

inline Dataset create_gdal(const std::string& driver, const std::string& path, int samples, int lines,
                           int bands, GDALDataType type, const std::vector<std::string>& options = {}) {
    GDALAllRegister();
    CPLStringList list;
    for (const auto& o : options)
        list.AddString(o.c_str());
    return Dataset(GetGDALDriverManager()
                       ->GetDriverByName(driver.c_str())
                       ->Create(path.c_str(), samples, lines, bands, type, list.List()));
}

/// Returns the values of a window, band-sequential, as GDAL's RasterIO reads them.
inline std::vector<float> gdal_values(const std::string& path, Rect window = {},
                                      std::vector<int> bands = {}) {
    const Dataset d = open_gdal(path);
    if (window.empty()) window = Rect{0, 0, d->GetRasterXSize(), d->GetRasterYSize()};
    if (bands.empty())
        for (int b = 1; b <= d->GetRasterCount(); ++b)
            bands.push_back(b);
    std::vector<float> out(static_cast<size_t>(window.area()) * bands.size());
    const auto w = static_cast<int>(window.w), h = static_cast<int>(window.h);
    if (d->RasterIO(GF_Read, static_cast<int>(window.x), static_cast<int>(window.y), w, h, out.data(), w, h,
                    GDT_Float32, static_cast<int>(bands.size()), bands.data(), 0, 0, 0, nullptr) != CE_None)
        throw Error("GDAL cannot read " + path);
    return out;
}

/// Reads a window with the suite's reader. The destination has gaps between lines and bands, whose values
/// must not change.
inline std::vector<float> our_values(const raster::RasterSource& source, Rect window = {}) {
    const auto shape = source.shape();
    if (window.empty()) window = Rect{0, 0, shape.samples, shape.lines};
    constexpr float guard = -12345.5f;
    const int64_t line_stride = window.w + 3, band_stride = line_stride * window.h + 5;
    std::vector<float> memory(static_cast<size_t>(band_stride * shape.bands), guard);
    const CubeView<float> view(memory.data(), shape.bands, window.h, window.w, line_stride, band_stride);
    source.open_reader()->read(window, view);
    std::vector<float> out;
    size_t used = 0;
    for (int b = 0; b < shape.bands; ++b)
        for (int64_t l = 0; l < window.h; ++l) {
            out.insert(out.end(), view.row(b, l), view.row(b, l) + window.w);
            for (int64_t s = 0; s < 3; ++s)
                used += view.row(b, l)[window.w + s] != guard;
        }
    EXPECT_EQ(used, 0u) << "the reader wrote outside its window";
    return out;
}

/// Compares values bit by bit; NaN equals NaN. Reports the first difference.
inline ::testing::AssertionResult same_values(const std::vector<float>& a, const std::vector<float>& b) {
    if (a.size() != b.size())
        return ::testing::AssertionFailure() << a.size() << " and " << b.size() << " values";
    for (size_t i = 0; i < a.size(); ++i)
        if (!(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))))
            return ::testing::AssertionFailure() << "value " << i << ": " << a[i] << " and " << b[i];
    return ::testing::AssertionSuccess();
}

inline std::shared_ptr<raster::RasterSource> open_source(const std::string& path) {
    raster::OpenOptions options;
    options.path = path;
    return raster::open_raster(options);
}

/// Copies a source to a sink in tiles of w x h pixels, and commits.
inline void copy_tiles(const raster::RasterSource& source, raster::RasterSink& sink, int64_t w, int64_t h) {
    const auto shape = source.shape();
    const auto reader = source.open_reader();
    const TilePlan plan(shape.samples, shape.lines, w, h, 0, 1);
    std::vector<float> memory(static_cast<size_t>(w * h) * static_cast<size_t>(shape.bands));
    for (int64_t i = 0; i < plan.size(); ++i) {
        const Rect r = plan.tile(i).core;
        const auto view = CubeView<float>::packed(memory.data(), shape.bands, r.h, r.w);
        reader->read(r, view);
        sink.write(r, view);
    }
    sink.commit();
}

inline std::unique_ptr<raster::RasterSink> sink_like(const raster::RasterSource& source,
                                                     raster::OutputOptions options, const std::string& type) {
    raster::OutputSpec spec;
    spec.shape = source.shape();
    spec.type = type;
    spec.same_bands = true;
    return raster::create_sink(options, spec, &source);
}

/// Copies the file that `from` describes, with its options, to the file `to`, including all metadata.
inline void copy_scene(const raster::OpenOptions& from, const std::string& to, const std::string& format = {},
                       const std::vector<std::string>& creation_options = {}) {
    const auto source = raster::open_raster(from);
    raster::OutputOptions options;
    options.path = to;
    options.format = format;
    options.creation_options = creation_options;
    const auto sink = sink_like(*source, options, source->facts().type);
    copy_tiles(*source, *sink, source->shape().samples, 7);
}

inline void copy_scene(const std::string& from, const std::string& to, const std::string& format = {}) {
    raster::OpenOptions options;
    options.path = from;
    copy_scene(options, to, format);
}

/// Returns the folder with real scenes; empty if there is no such folder.
inline std::string real_data() {
    if (const char* folder = std::getenv("HSI_TEST_DATA")) return folder;
    const fs::path beside = fs::path(HSI_SOURCE_DIR) / ".." / "shared" / "data";
    return fs::exists(beside) ? beside.string() : std::string();
}

/// Skips the test, with a message, if a real scene is missing.
#define HSI_NEED_SCENE(variable, relative)                                                                   \
    const std::string variable = ::hsi::test::real_data() + "/" + (relative);                                \
    if (!std::filesystem::exists(variable))                                                                  \
    GTEST_SKIP() << "real scene absent: " << (relative) << " (HSI_TEST_DATA)"

} // namespace hsi::test
