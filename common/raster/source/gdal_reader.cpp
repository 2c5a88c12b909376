// SPDX-License-Identifier: MIT
// Tiles through GDAL: all bands in one RasterIO, so that a format that stores bands together decodes each
// block once.
#include "core/error.h"
#include "core/file_path.h"
#include "raster/gdal/block_codec.h"
#include "raster/gdal/gdal_errors.h"
#include "raster/source/source_impl.h"

#include <cpl_string.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>

namespace hsi::raster {
namespace {

/// A handle whose buffers are larger is closed after a pass: what it holds is in no plan of what comes then.
constexpr uint64_t largest_idle = uint64_t{2} << 20;

/// Blocks of a GeoTIFF with each band by itself, decoded here: libtiff takes up to twice as long for floats
/// that went through a predictor. Whatever is out of the ordinary is left to GDAL, damaged blocks and
/// messages about them among it.
class TiffBlocks {
  public:
    /// None for files whose blocks only GDAL reads.
    static std::unique_ptr<TiffBlocks> of(GDALDataset& dataset) {
        const auto item = [&](const char* name) {
            const char* const text = dataset.GetMetadataItem(name, "IMAGE_STRUCTURE");
            return std::string(text != nullptr ? text : "");
        };
        const std::string path = dataset.GetDescription(), codec = item("COMPRESSION"),
                          predictor = item("PREDICTOR");
        if (dataset.GetDriver() == nullptr || !EQUAL(dataset.GetDriver()->GetDescription(), "GTiff") ||
            !is_local(path))
            return nullptr;
        BlockCoding coding;
        if (codec == "ZSTD")
            coding.codec = BlockCoding::Codec::zstd;
        else if (codec != "DEFLATE")
            return nullptr;
        if (predictor == "2" || predictor == "3")
            coding.predictor =
                predictor == "2" ? BlockCoding::Predictor::differences : BlockCoding::Predictor::floats;
        else if (!predictor.empty() && predictor != "1")
            return nullptr;
        auto made = std::make_unique<TiffBlocks>();
        made->m_coding = coding;
        made->m_file = FileHandle(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        char order[2];
        constexpr char here = std::endian::native == std::endian::little ? 'I' : 'M';
        if (!made->m_file || ::pread(made->m_file.get(), order, 2, 0) != 2 || order[0] != here ||
            order[1] != here)
            return nullptr;
        return made;
    }

    /// Block (x, y) of a band, to room for a whole one. \return false: it is
    /// GDAL's.
    bool read(GDALRasterBand& band, int x, int y, char* to) {
        const GDALDataType type = band.GetRasterDataType();
        const char* const bits = band.GetMetadataItem("NBITS", "IMAGE_STRUCTURE");
        if (bits != nullptr && std::atoi(bits) != GDALGetDataTypeSizeBits(type)) return false;
        const auto fact = [&](const char* name) -> int64_t {
            const char* const text = band.GetMetadataItem(CPLSPrintf("%s_%d_%d", name, x, y), "TIFF");
            return text != nullptr ? std::atoll(text) : 0;
        };
        const int64_t at = fact("BLOCK_OFFSET"), size = fact("BLOCK_SIZE");
        int across = 0, down = 0;
        band.GetBlockSize(&across, &down);
        const BlockForm form{across, down, 1, GDALGetDataTypeSizeBytes(type), false};
        // No codec makes more of noise; a size that is wrong must not take memory.
        if (at <= 0 || size <= 0 || size > form.bytes() + form.bytes() / 2 + 4096) return false;
        m_bytes.resize(std::max(m_bytes.size(), static_cast<size_t>(size)));
        if (::pread(m_file.get(), m_bytes.data(), static_cast<size_t>(size), at) != size) return false;
        if (!m_decoder || form.sample_bytes != m_sample_bytes) {
            m_decoder.emplace(m_coding, form);
            m_sample_bytes = form.sample_bytes;
        }
        const int64_t lines = std::min<int64_t>(down, band.GetYSize() - int64_t{y} * down);
        return m_decoder->decode({m_bytes.data(), static_cast<size_t>(size)}, lines, to);
    }

  private:
    BlockCoding m_coding;
    FileHandle m_file;
    std::optional<BlockDecoder> m_decoder;
    int64_t m_sample_bytes = 0;
    std::vector<char> m_bytes;
};

class GdalReader final : public stream::CubeReader {
  public:
    explicit GdalReader(std::shared_ptr<const SourceState> source)
        : m_source(std::move(source)), m_bands(m_source->bands), m_dataset(m_source->pool->take()),
          m_tiff(m_source->band_interleaved_blocks && !m_source->half ? TiffBlocks::of(*m_dataset) : nullptr),
          m_wide(m_source->wide()) {}
    ~GdalReader() override {
        if (m_source->reader_bytes() <= largest_idle) m_source->pool->give(std::move(m_dataset));
    }

    void read(const Rect& window, const CubeView<float>& dst) override {
        const Rect in_file{window.x + m_source->window().x, window.y + m_source->window().y, window.w,
                           window.h};
        const GdalErrors errors;
        if (m_source->band_interleaved_blocks && !m_source->half && covers_blocks(in_file))
            read_blocks(in_file, dst, errors);
        else if (m_wide)
            read_wide(in_file, dst, errors);
        else
            read_floats(in_file, dst, errors);
        if (m_source->mask == MaskKind::dataset) {
            apply_mask(m_bands.front(), 0, dst.bands, in_file, dst, errors);
        } else if (m_source->mask == MaskKind::band) {
            for (int k = 0; k < dst.bands; ++k)
                apply_mask(m_bands[static_cast<size_t>(k)], k, 1, in_file, dst, errors);
        }
    }

  private:
    void check(CPLErr result, const GdalErrors& errors) const {
        // Some drivers report a damaged block and still return success.
        if (result != CE_None || errors.any())
            throw Error("cannot read " + m_source->name() + ": " + errors.text());
    }

    int64_t block_samples() const {
        return m_source->block_samples > 0 ? m_source->block_samples : m_dataset->GetRasterXSize();
    }

    /// True when the window is made of whole blocks of the file: every one of them is needed once, and GDAL's
    /// block cache would only copy it.
    bool covers_blocks(const Rect& r) const {
        const int64_t bx = block_samples(), by = m_source->block_lines;
        return r.x % bx == 0 && r.y % by == 0 &&
               (r.right() % bx == 0 || r.right() == m_dataset->GetRasterXSize()) &&
               (r.bottom() % by == 0 || r.bottom() == m_dataset->GetRasterYSize()) &&
               bx * by <= largest_block;
    }

    /// The first kept band from k on, and before `end`, that is another one of the file than k: those between
    /// are parts of the same samples.
    size_t behind(size_t k, size_t end) const {
        size_t next = k + 1;
        while (next < end && m_bands[next] == m_bands[k])
            ++next;
        return next;
    }

    void read_blocks(const Rect& r, const CubeView<float>& dst, const GdalErrors& errors) {
        const int64_t bx = block_samples(), by = m_source->block_lines;
        for (size_t k = 0, next = 0; k < m_bands.size(); k = next) {
            next = behind(k, m_bands.size());
            GDALRasterBand* const band = m_dataset->GetRasterBand(m_bands[k]);
            const GDALDataType type = m_source->scene.bands[k].type;
            const int64_t size = GDALGetDataTypeSizeBytes(type);
            m_scratch.resize(static_cast<size_t>(bx * by * size));
            for (int64_t y = 0; y < r.h; y += by)
                for (int64_t x = 0; x < r.w; x += bx) {
                    const auto column = static_cast<int>((r.x + x) / bx),
                               row = static_cast<int>((r.y + y) / by);
                    if (!m_tiff || !m_tiff->read(*band, column, row, m_scratch.data()))
                        check(band->ReadBlock(column, row, m_scratch.data()), errors);
                    for (int64_t line = 0; line < std::min(by, r.h - y); ++line)
                        for (size_t part = k; part < next; ++part)
                            m_source->deliver(part, m_scratch.data() + line * bx * size, size, type, false,
                                              dst.row(static_cast<int>(part), y + line) + x,
                                              static_cast<size_t>(std::min(bx, r.w - x)));
                }
        }
    }

    void read_floats(const Rect& r, const CubeView<float>& dst, const GdalErrors& errors) {
        check(m_dataset->RasterIO(GF_Read, static_cast<int>(r.x), static_cast<int>(r.y),
                                  static_cast<int>(r.w), static_cast<int>(r.h), dst.data,
                                  static_cast<int>(r.w), static_cast<int>(r.h), GDT_Float32,
                                  static_cast<int>(m_bands.size()), m_bands.data(), sizeof(float),
                                  dst.line_stride * static_cast<GSpacing>(sizeof(float)),
                                  dst.band_stride * static_cast<GSpacing>(sizeof(float)), nullptr),
              errors);
        for (int k = 0; k < dst.bands; ++k) {
            const NodataMatch& nodata = m_source->nodata[static_cast<size_t>(k)];
            if (!nodata.active) continue;
            const GDALDataType type = m_source->scene.bands[static_cast<size_t>(k)].type;
            float value;
            to_floats(nodata.bytes, 0, type, false, NodataMatch{}, &value, 1);
            for (int64_t line = 0; line < dst.lines; ++line)
                blank(dst.row(k, line), static_cast<size_t>(dst.samples), value);
        }
    }

    /// Runs of bands of one type are read in that type, a piece at a time that fits into the scratch: along
    /// the file's blocks, or every block is decoded again and again.
    void read_wide(const Rect& r, const CubeView<float>& dst, const GdalErrors& errors) {
        const int64_t bx = std::min(block_samples(), r.w), by = std::min(m_source->block_lines, r.h);
        for (size_t a = 0; a < m_bands.size();) {
            const GDALDataType type = m_source->scene.bands[a].type;
            const int64_t size = GDALGetDataTypeSizeBytes(type);
            size_t most = m_bands.size();
            if (m_source->band_interleaved_blocks) // else a block brings all bands
                most = a + static_cast<size_t>(std::max<int64_t>(1, wide_scratch_bytes / (size * bx * by)));
            size_t b = a + 1;
            while (b < std::min(most, m_bands.size()) && m_source->scene.bands[b].type == type)
                ++b;
            const int64_t pixel = size * static_cast<int64_t>(b - a);
            // Whole lines where a row of blocks fits.
            const bool rows = r.w * by * pixel <= wide_scratch_bytes;
            const int64_t lines =
                rows ? std::max<int64_t>(by, wide_scratch_bytes / (r.w * pixel) / by * by) : by;
            for (int64_t y = 0; y < r.h;) {
                const int64_t h = piece(r.y + y, lines, m_source->block_lines, r.h - y);
                for (int64_t x = 0; x < r.w;) {
                    const int64_t w = rows ? r.w : piece(r.x + x, bx, block_samples(), r.w - x);
                    read_piece(Rect{r.x + x, r.y + y, w, h}, a, b, dst, x, y, errors);
                    x += w;
                }
                y += h;
            }
            a = b;
        }
    }

    /// From `at`, some `most` pixels or less, `left` at the most, to the end of a block.
    static int64_t piece(int64_t at, int64_t most, int64_t block, int64_t left) {
        const int64_t past = (at + most) / block * block;
        return std::min(left, past > at ? past - at : most);
    }

    /// Bands [a, b) of one type to (x, y) of the tile.
    void read_piece(const Rect& r, size_t a, size_t b, const CubeView<float>& dst, int64_t x, int64_t y,
                    const GdalErrors& errors) {
        const GDALDataType type = m_source->scene.bands[a].type;
        const int64_t size = GDALGetDataTypeSizeBytes(type);
        m_of_file.clear();
        for (size_t k = a; k < b; k = behind(k, b))
            m_of_file.push_back(m_bands[k]);
        m_scratch.resize(static_cast<size_t>(r.area() * size) * m_of_file.size());
        check(m_dataset->RasterIO(GF_Read, static_cast<int>(r.x), static_cast<int>(r.y),
                                  static_cast<int>(r.w), static_cast<int>(r.h), m_scratch.data(),
                                  static_cast<int>(r.w), static_cast<int>(r.h), type,
                                  static_cast<int>(m_of_file.size()), m_of_file.data(), size, r.w * size,
                                  r.area() * size, nullptr),
              errors);
        const char* from = m_scratch.data();
        for (size_t k = a, next = 0; k < b; k = next) {
            next = behind(k, b);
            for (int64_t line = 0; line < r.h; ++line, from += r.w * size)
                for (size_t part = k; part < next; ++part)
                    m_source->deliver(part, from, size, type, false,
                                      dst.row(static_cast<int>(part), y + line) + x,
                                      static_cast<size_t>(r.w));
        }
    }

    /// Blanks bands [first, first + count) where the mask of file band `band` is 0.
    void apply_mask(int band, int first, int count, const Rect& r, const CubeView<float>& dst,
                    const GdalErrors& errors) {
        m_mask.resize(static_cast<size_t>(r.w * r.h));
        check(m_source->mask_of(*m_dataset, band)
                  .RasterIO(GF_Read, static_cast<int>(r.x), static_cast<int>(r.y), static_cast<int>(r.w),
                            static_cast<int>(r.h), m_mask.data(), static_cast<int>(r.w),
                            static_cast<int>(r.h), GDT_Byte, 0, 0, nullptr),
              errors);
        constexpr float nan = std::numeric_limits<float>::quiet_NaN();
        for (int k = first; k < first + count; ++k)
            for (int64_t line = 0; line < r.h; ++line) {
                float* row = dst.row(k, line);
                const uint8_t* mask = m_mask.data() + line * r.w;
                for (int64_t i = 0; i < r.w; ++i)
                    row[i] = mask[i] == 0 ? nan : row[i];
            }
    }

    const std::shared_ptr<const SourceState> m_source;
    std::vector<int> m_bands; ///< RasterIO wants it changeable
    DatasetHandle m_dataset;
    std::unique_ptr<TiffBlocks> m_tiff; ///< null: GDAL reads all blocks
    bool m_wide = false;
    std::vector<int> m_of_file; ///< bands that are read at once
    std::vector<char> m_scratch;
    std::vector<uint8_t> m_mask;
};

} // namespace

std::unique_ptr<stream::CubeReader> make_gdal_reader(std::shared_ptr<const SourceState> source) {
    return std::make_unique<GdalReader>(std::move(source));
}

} // namespace hsi::raster
