// SPDX-License-Identifier: MIT
// Shared code of a RasterSource and its readers.
#pragma once

#include "raster/codec/block_codec.h"
#include "raster/gdal/dataset_handle.h"
#include "raster/gdal_type.h"
#include "raster/io/raw_file.h"
#include "raster/io/remote_file.h"
#include "raster/io/whole_file.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/products/product.h"
#include "raster/raster_source.h"
#include "raster/sample_convert.h"
#include "stream/pixel_mask.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hsi::raster {

/// Opens for reading; throws Error with the file and GDAL's reason. `stack`, if not empty: the text that GDAL
/// opens in place of the path (Product::stack).
DatasetHandle open_dataset(const OpenOptions& options, const std::string& stack = {});

/// Handles of one file: one thread uses a handle at a time, and opening is not paid again in every pass.
class DatasetPool {
  public:
    explicit DatasetPool(OpenOptions options, std::string stack = {})
        : m_options(std::move(options)), m_stack(std::move(stack)) {}
    DatasetHandle take();
    void give(DatasetHandle dataset);

  private:
    const OpenOptions m_options;
    const std::string m_stack;
    std::mutex m_mutex;
    std::vector<DatasetHandle> m_idle;
};

/// Scratch for values that must be compared before they become floats, where blocks are not larger.
inline constexpr int64_t wide_scratch_bytes = int64_t{16} << 20;

/// Samples of a block that is read past the block cache; larger ones (a whole band in one block) go through
/// RasterIO.
inline constexpr int64_t largest_block = int64_t{4} << 20;

/// How pixels that the file masks out are found.
enum class MaskKind { none, dataset, band };

struct ComputedScene;
class GrowingFile;
struct Product;
class ChunkArrays;
class BlockStore;

/// The way of reading a source's pixels, with the state that all of its readers share.
struct ThroughGdal {}; ///< by make_gdal_reader(), and RasterIO
struct RawFile {       ///< by make_raw_reader()
    RawLayout layout;
    std::shared_ptr<const FileHandle> file;
};
struct TiffBlocks { ///< of a GeoTIFF: by make_gdal_reader(), past GDAL
    BlockCoding coding;
    std::shared_ptr<BlockStore> store;
};
struct ProductArrays {}; ///< the cube of the product: by make_product_reader()
using Backing = std::variant<ThroughGdal, RawFile, TiffBlocks, ProductArrays, std::shared_ptr<ChunkArrays>,
                             std::shared_ptr<const ComputedScene>>;

/// The table and grid of orthorectified() scenes.
struct OnGrid {
    std::shared_ptr<const stream::CubeSource> pixels; ///< the source of all pixels, in place of the file
    std::shared_ptr<const RasterSource> swath;
    std::string table; ///< the lookup table's path
};

/// Blocks of the file.
struct FileBlocks {
    int64_t samples = 0, lines = 1;
    bool bands_apart = true; ///< false: decoding a block yields all bands of the file
    bool half = false; ///< they hold half-precision floats, which only RasterIO turns into the scene's type
    bool compressed = true; ///< they are decoded: GDAL holds them as stored, too
    std::string codec;      ///< GDAL's word for the compression; empty: none, or unknown
};

/// The whole file; the scene is a window of it.
struct FilePixels {
    int64_t samples = 0, lines = 0;
    bool lines_rise = false, samples_fall = false; ///< of the product: its array has them in the other order
};

/// The remote part of it.
struct FromServer {
    std::shared_ptr<RemoteFile> file; ///< not null: the raw file, or the one decoded without GDAL, is remote
    Losses losses;                    ///< since it was opened
    ServedFile asked;                 ///< by the user
};

/// Pixels that are missing for other reasons than nodata.
struct Masking {
    MaskKind kind = MaskKind::none;
    int alpha = 0; ///< file band whose 0 masks pixels out, if GDAL does not use it as the mask
    std::shared_ptr<const stream::PixelMask> counted; ///< not null: other pixels have no value (with_mask())
};

struct Scales {
    bool own = false;     ///< a band of the file has a scale: lists of its ENVI header do not count
    bool applied = false; ///< readers deliver number * scale + offset
};

struct SourceState {
    OpenOptions options;                    ///< path: the opened file, which may differ from the user's name
    std::shared_ptr<const Product> product; ///< null: no known product
    Backing backing;
    std::optional<OnGrid> grid; ///< the backing is then the backing of its swath, except for parts that are
                                ///< read in place
    SceneMetadata scene;        ///< its bands are the kept ones
    std::vector<int> bands;     ///< file bands behind them
    std::vector<int> bad;
    std::vector<std::string> notes;  ///< notes for the user
    GDALDataType type = GDT_Unknown; ///< that holds the values of all kept bands
    std::vector<NodataMatch> nodata; ///< a kept band each, in that band's own type
    bool more_invalid = false;       ///< the product's parts have invalid samples in addition to nodata
    Scales scales;
    std::vector<SamplePart> parts; ///< the part of each kept band that is read; empty: values
    Masking masking;
    FileBlocks blocks;
    // Null where the backing is another one.
    const RawFile* raw() const { return std::get_if<RawFile>(&backing); }
    const TiffBlocks* tiff() const { return std::get_if<TiffBlocks>(&backing); }
    ChunkArrays* chunks() const;
    const ComputedScene* computed() const;
    /// The product's cube is read by the arrays that it is in.
    bool in_arrays() const { return std::holds_alternative<ProductArrays>(backing) || chunks() != nullptr; }
    /// The store of decoded blocks, or of chunks; null without one.
    BlockStore* store() const;
    /// That readers of the source fetch; null: it is local, or GDAL's.
    RemoteFile* server_file() const;
    std::shared_ptr<GrowingFile> growing; ///< not null: the file is still being written
    FromServer server;
    std::shared_ptr<DatasetPool> pool;

    FilePixels file;
    /// A reader has met an infinite value in a band of doubles; shared by sources that leave out bands.
    std::shared_ptr<std::atomic<bool>> infinity = std::make_shared<std::atomic<bool>>(false);

    /// The mask of file band `band`, with MaskKind::dataset or band.
    GDALRasterBand& mask_of(GDALDataset& dataset, int band) const {
        GDALRasterBand* const own = dataset.GetRasterBand(masking.alpha > 0 ? masking.alpha : band);
        return masking.alpha > 0 ? *own : *own->GetMaskBand();
    }

    Rect window() const { return scene.window; }
    /// A window of the scene as one of the file, whose first line may be the scene's last one.
    Rect in_file(const Rect& r) const {
        Rect in{r.x + scene.window.x, r.y + scene.window.y, r.w, r.h};
        if (file.lines_rise) in.y = file.lines - in.bottom();
        if (file.samples_fall) in.x = file.samples - in.right();
        return in;
    }
    Rect file_window() const { return in_file({0, 0, scene.window.w, scene.window.h}); }
    /// The tile with its lines in the order of the file; afterwards, its samples in the order of the scene.
    CubeView<float> lines_in_file(const CubeView<float>& tile) const {
        CubeView<float> turned = tile;
        if (!file.lines_rise) return turned;
        turned.data = tile.row(0, tile.lines - 1);
        turned.line_stride = -tile.line_stride;
        return turned;
    }
    void turn_samples(const CubeView<float>& tile) const {
        if (!file.samples_fall) return;
        for (int k = 0; k < tile.bands; ++k)
            for (int64_t line = 0; line < tile.lines; ++line)
                std::reverse(tile.row(k, line), tile.row(k, line) + tile.samples);
    }
    /// Bytes of one block of the file: of all bands where they are stored together.
    uint64_t block_bytes() const;
    /// Some values must be compared with nodata before they become floats, or are read in parts.
    bool wide() const;
    /// Samples of kept band k, `stride` bytes apart, as its reader delivers them; see sample_convert.h.
    void deliver(size_t k, const void* src, ptrdiff_t stride, GDALDataType stored, bool swapped, float* dst,
                 size_t count) const {
        to_part(parts.empty() ? SamplePart::value : parts[k], src, stride, sample_type(stored), swapped,
                nodata[k], sample_type(type), dst, count);
        if (more_invalid)
            blank_invalid(product->part_of(static_cast<size_t>(bands[k]) - 1).invalid, src, stride,
                          sample_type(stored), swapped, dst, count);
    }
    /// With GDAL: the memory of a reader and its handle.
    uint64_t reader_bytes() const;
    std::string name() const { return "'" + options.path + "'"; }
};

std::unique_ptr<stream::CubeReader> make_raw_reader(std::shared_ptr<const SourceState> source);
std::unique_ptr<stream::CubeReader> make_gdal_reader(std::shared_ptr<const SourceState> source);
/// For a source in arrays.
std::unique_ptr<stream::CubeReader> make_product_reader(std::shared_ptr<const SourceState> source);
using ReaderMaker = std::unique_ptr<stream::CubeReader> (*)(std::shared_ptr<const SourceState> source);
/// Returns the result of one of these two makers, as a reader that fails if a server has not given GDAL all
/// bytes. For a local file, or a remote one that is fetched without GDAL, it is the reader itself.
std::unique_ptr<stream::CubeReader> whole_reader(ReaderMaker make, std::shared_ptr<const SourceState> source);
uint64_t product_reader_bytes(const Product& product); ///< the memory of such a reader
/// For a source with chunks.
std::unique_ptr<stream::CubeReader> make_chunk_reader(std::shared_ptr<const SourceState> source);
uint64_t chunk_reader_bytes(const ChunkArrays& arrays);

/// A window of the file as a reader of a server's file announces it.
inline RemoteFile::Key key_of(const Rect& window) { return {window.x, window.y, window.w, window.h}; }

/// A reader that looks for infinite values in bands of doubles; `reader` itself without such bands.
std::unique_ptr<stream::CubeReader> watched(std::unique_ptr<stream::CubeReader> reader,
                                            std::shared_ptr<const SourceState> source);

/// A reader that delivers the scaled values of `reader`, if the source does so; else `reader`.
std::unique_ptr<stream::CubeReader> scaled_reader(std::unique_ptr<stream::CubeReader> reader,
                                                  const std::shared_ptr<const SourceState>& source);

/// The scale, offset and unit of the kept bands.
BandValues values_of(const SourceState& source);
SceneFacts facts_of(const SourceState& source);

/// A scene that is read through GDAL, or without it. Its public functions are those of its bases.
class FileSource final : public RasterSource {
  public:
    explicit FileSource(std::shared_ptr<const SourceState> state);
    const SourceState& state() const { return *m; }
    const SceneFacts& facts() const override { return m_facts; }

    stream::CubeShape shape() const override; ///< of the window and the kept bands
    stream::BlockLayout layout() const override;
    std::unique_ptr<stream::CubeReader> open_reader() const override;
    uint64_t stored_bytes_per_pixel() const override;
    int computes_on() const override;
    uint64_t device_bytes(int64_t samples, int64_t lines) const override;
    /// GDAL's buffers of a handle, one block decoded and one as stored, and this reader's own scratch.
    uint64_t reader_bytes() const override;
    uint64_t window_bytes(int64_t samples, int64_t lines) const override;

    Growth* growth() const override;
    std::shared_ptr<RasterSource> grown_to(int64_t lines) const override;
    const Chain* chain() const override;
    void end_with(const CancelFlag* cancel) const override;
    void check_unchanged() const override;
    bool held_by_system() const override;
    uint64_t shared_block_bytes() const override;
    uint64_t cache_bytes() const override;
    uint64_t take_memory(uint64_t most, int lanes) const override;
    bool met_infinity() const override;
    Beyond count_beyond_float() const override;
    bool located() const override;
    std::vector<std::string> band_items(const char* name) const override;
    std::vector<CoarseBand> coarse_bands() const override;
    std::shared_ptr<RasterSource> with_bands(const std::vector<int>& indices) const override;
    std::shared_ptr<RasterSource> with_mask(std::shared_ptr<const stream::PixelMask> mask) const override;
    std::shared_ptr<RasterSource> scaled() const override;
    std::shared_ptr<RasterSource> in_sums() const override;
    std::shared_ptr<RasterSource> in_samples() const override;

  private:
    const std::shared_ptr<const SourceState> m;
    const SceneFacts m_facts;
};

/// For the rest of this room.
struct SourceAccess {
    static const SourceState& state(const RasterSource& source);
    static std::shared_ptr<RasterSource> make(SourceState state);
    /// The same pixels, every band in these parts; bits belong to samples of type `as`.
    static std::shared_ptr<RasterSource> divided(const RasterSource& source,
                                                 const std::vector<SamplePart>& parts, GDALDataType as);
};

/// Throws Error unless every sample of the kept bands and the window is inside of the file.
void check_raw_span(const SourceState& source);
/// For a separate header: throws Error if the data go on for a line or more after the described end, since
/// the header is then not for these data.
void check_raw_end(const SourceState& source);

} // namespace hsi::raster
