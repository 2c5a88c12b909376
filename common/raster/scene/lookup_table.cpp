// SPDX-License-Identifier: MIT
#include "raster/lookup_table.h"
#include "core/counted.h"
#include "core/cube_view.h"
#include "core/error.h"
#include "raster/gdal_errors.h"
#include "raster/metadata/esri_header.h"
#include "raster/products/array_file.h"
#include "raster/products/product.h"
#include "raster/scene/locations.h"
#include "raster/scene/source_impl.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

namespace hsi::raster {

struct LookupTable::Impl {
    std::string path, asked;        ///< the opened path, and the path that the user gave
    std::optional<Product> product; ///< empty: the table is a raster
    int64_t samples = 0, lines = 0, swath_samples = 0, swath_lines = 0;
    std::array<double, 6> geotransform{};
    std::shared_ptr<const OGRSpatialReference> srs;

    std::string name() const { return "the lookup table of '" + path + "'"; }

    /// Converts indices that count from 1 to indices that count from 0. A negative index marks a pixel that
    /// fills a gap; 0 means that there is no pixel.
    void convert(const std::array<std::vector<int32_t>, 2>& numbers, std::vector<SwathPixel>& out) const {
        out.resize(numbers[0].size());
        for (size_t i = 0; i < out.size(); ++i) {
            const int64_t x = std::llabs(numbers[0][i]), y = std::llabs(numbers[1][i]);
            out[i] = x > 0 && y > 0 ? SwathPixel{x - 1, y - 1} : SwathPixel{};
            if ((swath_samples > 0 && x > swath_samples) || (swath_lines > 0 && y > swath_lines))
                throw Error(name() + " points to sample " + std::to_string(x) + ", line " +
                                std::to_string(y) + ", outside the scene of " +
                                size_text(swath_samples, swath_lines) + " pixels",
                            "The file is damaged, or the table belongs to another scene.");
        }
    }
};

namespace {

using Table = LookupTable::Impl;

/// Replaces the fill value by 0, which also means that there is no pixel.
void drop_fill(std::vector<int32_t>& numbers, std::optional<double> fill) {
    if (!fill) return;
    std::replace_if(
        numbers.begin(), numbers.end(), [&](int32_t v) { return v == *fill; }, 0);
}

class ArrayLookup final : public LookupReader {
  public:
    explicit ArrayLookup(std::shared_ptr<const Table> table)
        : m_table(std::move(table)), m_file(ArrayFile::open(m_table->path)) {
        if (m_file)
            m_arrays = {m_file->array(m_table->product->lookup->sample),
                        m_file->array(m_table->product->lookup->line)};
        if (!m_arrays[0] || !m_arrays[1]) throw Error("cannot read " + m_table->name());
    }

    void read(const Rect& window, std::vector<SwathPixel>& out) override {
        const GUInt64 start[2] = {static_cast<GUInt64>(window.y), static_cast<GUInt64>(window.x)};
        const size_t count[2] = {static_cast<size_t>(window.h), static_cast<size_t>(window.w)};
        for (size_t k = 0; k < 2; ++k) {
            m_numbers[k].resize(static_cast<size_t>(window.area()));
            const GdalErrors errors;
            if (!m_arrays[k]->Read(start, count, nullptr, nullptr, GDALExtendedDataType::Create(GDT_Int32),
                                   m_numbers[k].data()) ||
                errors.any())
                throw Error("cannot read " + m_table->name() + ": " + errors.text());
            bool has = false;
            const double fill = m_arrays[k]->GetNoDataValueAsDouble(&has);
            if (has) drop_fill(m_numbers[k], fill);
        }
        m_table->convert(m_numbers, out);
    }

  private:
    const std::shared_ptr<const Table> m_table;
    const std::shared_ptr<ArrayFile> m_file;
    std::array<std::shared_ptr<GDALMDArray>, 2> m_arrays;
    std::array<std::vector<int32_t>, 2> m_numbers;
};

DatasetHandle open_raster(const std::string& path) {
    if (auto plane = find_plane(path, 0, 0)) return open_array_raster(std::move(plane));
    OpenOptions options;
    options.path = path;
    return open_dataset(options);
}

class RasterLookup final : public LookupReader {
  public:
    explicit RasterLookup(std::shared_ptr<const Table> table)
        : m_table(std::move(table)), m_dataset(open_raster(m_table->path)) {}

    void read(const Rect& window, std::vector<SwathPixel>& out) override {
        const auto width = static_cast<int>(window.w), height = static_cast<int>(window.h);
        for (int k = 0; k < 2; ++k) {
            auto& numbers = m_numbers[static_cast<size_t>(k)];
            numbers.resize(static_cast<size_t>(window.area()));
            const GdalErrors errors;
            GDALRasterBand* const band = m_dataset->GetRasterBand(k + 1);
            if (band->RasterIO(GF_Read, static_cast<int>(window.x), static_cast<int>(window.y), width, height,
                               numbers.data(), width, height, GDT_Int32, 0, 0, nullptr) != CE_None ||
                errors.any())
                throw Error("cannot read " + m_table->name() + ": " + errors.text());
            int has = 0;
            const double fill = band->GetNoDataValue(&has);
            if (has) drop_fill(numbers, fill);
        }
        m_table->convert(m_numbers, out);
    }

  private:
    const std::shared_ptr<const Table> m_table;
    const DatasetHandle m_dataset;
    std::array<std::vector<int32_t>, 2> m_numbers;
};

/// Opens a raster as a table: two bands of integers, and a geotransform.
void take_raster(Table& table) {
    const DatasetHandle dataset = open_raster(table.path);
    const auto refuse = [&](const std::string& what) {
        throw Error("'" + table.path + "' is not a lookup table: " + what,
                    "Use a product with a table (EMIT), or a raster of two integer bands: sample and line of "
                    "the scene, counted from 1, and 0 for no pixel.");
    };
    if (dataset->GetRasterCount() != 2) refuse("it has " + counted(dataset->GetRasterCount(), "band"));
    for (int k = 1; k <= 2; ++k) {
        const GDALDataType type = dataset->GetRasterBand(k)->GetRasterDataType();
        if (!GDALDataTypeIsInteger(type) || GDALDataTypeIsComplex(type))
            refuse("its bands are " + std::string(GDALGetDataTypeName(type)));
    }
    read_esri_header(*dataset); // throws Error for headers that GDAL reads differently
    if (dataset->GetGeoTransform(table.geotransform.data()) != CE_None) refuse("it has no geotransform");
    table.samples = dataset->GetRasterXSize();
    table.lines = dataset->GetRasterYSize();
    if (const OGRSpatialReference* srs = dataset->GetSpatialRef())
        table.srs =
            std::shared_ptr<const OGRSpatialReference>(srs->Clone(), [](const OGRSpatialReference* s) {
                const_cast<OGRSpatialReference*>(s)->Release();
            });
}

void take_product(Table& table, const Product& product) {
    if (!product.lookup)
        throw Error("'" + table.path + "' (" + product.name + ") has no lookup table",
                    product.longitude.empty()
                        ? "Its pixels are already on a grid, or their positions are unknown."
                        : "Use gdalwarp -geoloc to warp results to a grid by longitude and latitude.");
    table.product = product;
    table.samples = product.lookup->samples;
    table.lines = product.lookup->lines;
    table.swath_samples = product.samples;
    table.swath_lines = product.lines;
    table.geotransform = product.lookup->geotransform;
    table.srs = product.lookup->srs;
}

constexpr int64_t piece_side = 256; ///< side of the grid window that is read at once, in pixels
/// Bytes of the swath window that is read at once.
constexpr uint64_t swath_scratch_bytes = uint64_t{32} << 20;
constexpr uint64_t table_piece_bytes = piece_side * piece_side * (sizeof(SwathPixel) + 2 * sizeof(int32_t));

/// Reads pixels of the swath in the order of the grid.
class GridReader final : public stream::CubeReader {
  public:
    GridReader(std::unique_ptr<LookupReader> table, const stream::CubeSource& swath, int64_t x, int64_t y)
        : m_table(std::move(table)), m_swath(swath.open_reader()), m_shape(swath.shape()), m_x(x), m_y(y) {}

    void read(const Rect& window, const CubeView<float>& dst) override {
        for (int64_t y = 0; y < window.h; y += piece_side)
            for (int64_t x = 0; x < window.w; x += piece_side) {
                const Rect piece{x, y, std::min(piece_side, window.w - x),
                                 std::min(piece_side, window.h - y)};
                m_table->read({window.x + x, window.y + y, piece.w, piece.h}, m_pixels);
                m_width = piece.w;
                for (SwathPixel& p : m_pixels)
                    if (p.sample != SwathPixel::none) move(p);
                gather({0, 0, piece.w, piece.h}, piece, dst);
            }
    }

  private:
    /// Converts a pixel of the table's scene to a pixel of the part that is read. A pixel outside this part
    /// becomes missing.
    void move(SwathPixel& p) const {
        p.sample -= m_x;
        p.line -= m_y;
        if (p.sample < 0 || p.sample >= m_shape.samples || p.line < 0 || p.line >= m_shape.lines)
            p = SwathPixel{};
    }
    const SwathPixel& at(int64_t x, int64_t y) const {
        return m_pixels[static_cast<size_t>(y * m_width + x)];
    }

    /// Returns the smallest window of the swath that contains all pixels of a part of the grid window.
    Rect span(const Rect& part) const {
        int64_t left = m_shape.samples, right = 0, top = m_shape.lines, bottom = 0;
        for (int64_t y = part.y; y < part.bottom(); ++y)
            for (int64_t x = part.x; x < part.right(); ++x) {
                const SwathPixel& p = at(x, y);
                if (p.sample == SwathPixel::none) continue;
                left = std::min(left, p.sample);
                right = std::max(right, p.sample + 1);
                top = std::min(top, p.line);
                bottom = std::max(bottom, p.line + 1);
            }
        return {left, top, right - left, bottom - top};
    }

    /// Reads a part of the grid window. If it needs a window of the swath that exceeds the scratch memory,
    /// reads it in two halves.
    void gather(const Rect& part, const Rect& piece, const CubeView<float>& dst) {
        const Rect from = span(part);
        const auto pixel = static_cast<uint64_t>(m_shape.bands) * sizeof(float);
        if (!from.empty() && static_cast<uint64_t>(from.area()) * pixel > swath_scratch_bytes &&
            part.area() > 1) {
            Rect first = part, second = part;
            if (part.w >= part.h) {
                first.w = part.w / 2;
                second.x += first.w;
                second.w -= first.w;
            } else {
                first.h = part.h / 2;
                second.y += first.h;
                second.h -= first.h;
            }
            gather(first, piece, dst);
            gather(second, piece, dst);
            return;
        }
        if (!from.empty()) fetch(from);
        for (int b = 0; b < m_shape.bands; ++b)
            for (int64_t y = part.y; y < part.bottom(); ++y) {
                float* const to = dst.row(b, piece.y + y) + piece.x;
                for (int64_t x = part.x; x < part.right(); ++x) {
                    const SwathPixel& p = at(x, y);
                    to[x] = p.sample == SwathPixel::none ? no_value
                                                         : m_view.at(b, p.line - from.y, p.sample - from.x);
                }
            }
    }

    void fetch(const Rect& from) {
        if (const auto view = m_swath->view(from)) {
            m_view = *view;
            return;
        }
        m_scratch.resize(static_cast<size_t>(from.area()) * static_cast<size_t>(m_shape.bands));
        m_view = CubeView<float>::packed(m_scratch.data(), m_shape.bands, from.h, from.w);
        m_swath->read(from, m_view);
    }

    const std::unique_ptr<LookupReader> m_table;
    const std::unique_ptr<stream::CubeReader> m_swath;
    const stream::CubeShape m_shape;
    const int64_t m_x, m_y; ///< position of the swath's first pixel in the table's scene
    std::vector<SwathPixel> m_pixels;
    int64_t m_width = 0; ///< width of the current grid window
    std::vector<float> m_scratch;
    CubeView<float> m_view;
};

class GridSource final : public stream::CubeSource {
  public:
    GridSource(std::shared_ptr<const LookupTable> table, std::shared_ptr<stream::CubeSource> swath, int64_t x,
               int64_t y)
        : m_table(std::move(table)), m_swath(std::move(swath)), m_x(x), m_y(y) {}
    stream::CubeShape shape() const override {
        return {m_table->samples(), m_table->lines(), m_swath->shape().bands};
    }
    stream::BlockLayout layout() const override { return {piece_side, piece_side}; }
    std::unique_ptr<stream::CubeReader> open_reader() const override {
        return std::make_unique<GridReader>(m_table->open_reader(), *m_swath, m_x, m_y);
    }
    uint64_t reader_bytes() const override {
        // A single pixel of the swath may exceed the scratch memory.
        const auto pixel = static_cast<uint64_t>(m_swath->shape().bands) * sizeof(float);
        const int64_t most = static_cast<int64_t>(std::max<uint64_t>(1, swath_scratch_bytes / pixel)),
                      across = std::min(most, m_swath->shape().samples);
        return m_swath->reader_bytes() + m_swath->window_bytes(across, most / across) +
               std::max(swath_scratch_bytes, pixel) + table_piece_bytes;
    }
    uint64_t stored_bytes_per_pixel() const override { return m_swath->stored_bytes_per_pixel(); }

  private:
    const std::shared_ptr<const LookupTable> m_table;
    const std::shared_ptr<stream::CubeSource> m_swath;
    const int64_t m_x, m_y;
};

} // namespace

LookupTable::LookupTable(std::shared_ptr<const Impl> impl) : m(std::move(impl)) {}
LookupTable::~LookupTable() = default;

std::shared_ptr<const LookupTable> LookupTable::open(const std::string& path) {
    auto table = std::make_shared<Impl>();
    const SceneFile file = find_scene(path);
    table->path = file.path;
    table->asked = path;
    if (file.product && file.product->of_agency)
        take_product(*table, *file.product);
    else
        take_raster(*table);
    return std::shared_ptr<const LookupTable>(new LookupTable(std::move(table)));
}

bool LookupTable::is_in(const std::string& path) {
    try {
        open(path);
        return true;
    } catch (const Error&) {
        return false;
    }
}

const std::string& LookupTable::path() const { return m->asked; }
int64_t LookupTable::samples() const { return m->samples; }
int64_t LookupTable::lines() const { return m->lines; }
int64_t LookupTable::swath_samples() const { return m->swath_samples; }
int64_t LookupTable::swath_lines() const { return m->swath_lines; }
const std::array<double, 6>& LookupTable::geotransform() const { return m->geotransform; }
const std::shared_ptr<const OGRSpatialReference>& LookupTable::srs() const { return m->srs; }

std::unique_ptr<LookupReader> LookupTable::open_reader() const {
    if (m->product) return std::make_unique<ArrayLookup>(m);
    return std::make_unique<RasterLookup>(m);
}

std::shared_ptr<RasterSource> orthorectified(const std::shared_ptr<RasterSource>& swath,
                                             const std::shared_ptr<stream::CubeSource>& pixels,
                                             const std::shared_ptr<const LookupTable>& table) {
    SourceState state = SourceAccess::state(*swath);
    SceneMetadata& scene = state.scene;
    const auto cut = first_pixel(scene);
    const bool known = table->swath_samples() > 0 && table->swath_lines() > 0;
    const bool whole =
        state.file.samples == table->swath_samples() && state.file.lines == table->swath_lines();
    if (known && !whole && !cut)
        throw UsageError("the lookup table is for a scene of " +
                             size_text(table->swath_samples(), table->swath_lines()) + " pixels, but " +
                             state.name() + " has " + size_text(state.file.samples, state.file.lines),
                         "Use the product itself as src, or a result computed from all of its pixels.");
    const Rect window = state.window();
    const int64_t x = window.x + (cut ? cut->first : 0), y = window.y + (cut ? cut->second : 0);
    state.grid = OnGrid{std::make_shared<GridSource>(table, pixels, x, y), swath, table->path()};
    if (state.raw() || std::holds_alternative<ProductArrays>(state.backing)) state.backing = ThroughGdal();
    state.pool.reset();
    state.product.reset();
    state.file.samples = table->samples();
    state.file.lines = table->lines();
    scene.window = {0, 0, table->samples(), table->lines()};
    scene.geotransform = table->geotransform();
    scene.srs = table->srs();
    scene.gcps.clear();
    scene.gcp_srs.reset();
    scene.domains.erase("GEOLOCATION");
    scene.domains.erase("RPC");
    return SourceAccess::make(std::move(state));
}

} // namespace hsi::raster
