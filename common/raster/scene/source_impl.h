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

/// Opens for reading. Throws Error with the file and GDAL's reason. `stack`, if not empty: the text that GDAL
/// opens instead of the path (Product::stack).
DatasetHandle open_dataset(const OpenOptions& options, const std::string& stack = {});

/// Handles of one file. One thread uses a handle at a time, and handles are reused by later passes.
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

/// Scratch for values that must be compared before they become floats, unless blocks are larger.
inline constexpr int64_t wide_scratch_bytes = int64_t{16} << 20;

/// Samples of a block that is read without the block cache. Larger blocks (a whole band in one block) are
/// read through RasterIO.
inline constexpr int64_t largest_block = int64_t{4} << 20;

/// The source of masked pixels in the file.
enum class MaskKind { none, dataset, band };

struct ComputedScene;
class GrowingFile;
struct Product;
class ChunkArrays;
class BlockStore;

/// The way of reading a source's pixels, with the state that all of its readers share.
struct ThroughGdal {}; ///< by make_gdal_reader(), with RasterIO
struct RawFile {       ///< by make_raw_reader()
    RawLayout layout;
    std::shared_ptr<const FileHandle> file;
};
struct TiffBlocks { ///< of a GeoTIFF: by make_gdal_reader(), without GDAL
    BlockCoding coding;
    std::shared_ptr<BlockStore> store;
};
struct ProductArrays {}; ///< the cube of the product: by make_product_reader()
using Backing = std::variant<ThroughGdal, RawFile, TiffBlocks, ProductArrays, std::shared_ptr<ChunkArrays>,
                             std::shared_ptr<const ComputedScene>>;

/// The table and grid of orthorectified() scenes.
struct OnGrid {
    std::shared_ptr<const stream::CubeSource> pixels; ///< the source of all pixels, instead of the file
    std::shared_ptr<const RasterSource> swath;
    std::string table; ///< the lookup table's path
};

/// Blocks of the file.
struct FileBlocks {
    int64_t samples = 0, lines = 1;
    bool bands_apart = true; ///< false: decoding a block yields all bands of the file
    bool half = false; ///< they contain half-precision floats, which only RasterIO converts to the scene's
                       ///< type
    bool compressed = true; ///< they are decoded: GDAL also holds them as stored
    std::string codec;      ///< GDAL's name for the compression; empty: none, or unknown
};

/// The whole file; the scene is a window of it.
struct FilePixels {
    int64_t samples = 0, lines = 0;
    bool lines_rise = false, samples_fall = false; ///< of the product: its array has them in reverse order
};

/// The remote part of a source.
struct FromServer {
    std::shared_ptr<RemoteFile> file; ///< not null: the raw file, or the file decoded without GDAL, is remote
    Losses losses;                    ///< since it was opened
    ServedFile asked;                 ///< requested by the user
};

/// Pixels that are missing for other reasons than nodata.
struct Masking {
    MaskKind kind = MaskKind::none;
    int alpha = 0; ///< file band whose 0 masks pixels out, if GDAL does not use it as the mask
    std::shared_ptr<const stream::PixelMask> counted; ///< not null: other pixels are missing (with_mask())
};

struct Scales {
    bool own = false;     ///< a band of the file has a scale: lists of its ENVI header do not count
    bool applied = false; ///< readers return number * scale + offset
};

struct SourceState {
    OpenOptions options;                    ///< path: the opened file, which may differ from the user's name
    std::shared_ptr<const Product> product; ///< null: not a known product
    Backing backing;
    std::optional<OnGrid> grid; ///< `backing` is then the backing of its swath, except for parts that are
                                ///< read directly
    SceneMetadata scene;        ///< its bands are the selected ones
    std::vector<int> bands;     ///< file bands behind them
    std::vector<int> bad;
    std::vector<std::string> notes;  ///< notes for the user
    GDALDataType type = GDT_Unknown; ///< type that represents the values of all selected bands
    std::vector<NodataMatch> nodata; ///< one per selected band, in that band's own type
    bool more_invalid = false;       ///< the product's parts have invalid samples in addition to nodata
    Scales scales;
    std::vector<SamplePart> parts; ///< the part of each selected band that is read; empty: values
    Masking masking;
    FileBlocks blocks;
    // Return the backing; null if it is another one.
    const RawFile* raw() const { return std::get_if<RawFile>(&backing); }
    const TiffBlocks* tiff() const { return std::get_if<TiffBlocks>(&backing); }
    ChunkArrays* chunks() const;
    const ComputedScene* computed() const;
    /// Returns whether the product's cube is read through its arrays.
    bool in_arrays() const { return std::holds_alternative<ProductArrays>(backing) || chunks() != nullptr; }
    /// Returns the store of decoded blocks or chunks; null without a store.
    BlockStore* store() const;
    /// Returns the remote file that readers of the source fetch; null: the file is local, or GDAL reads it.
    RemoteFile* server_file() const;
    std::shared_ptr<GrowingFile> growing; ///< not null: the file is still being written
    FromServer server;
    std::shared_ptr<DatasetPool> pool;

    FilePixels file;
    /// Set if a reader has found an infinite value in a band of doubles; shared by sources that leave out
    /// bands.
    std::shared_ptr<std::atomic<bool>> infinity = std::make_shared<std::atomic<bool>>(false);

    /// Returns the mask of file band `band`, for MaskKind::dataset or band.
    GDALRasterBand& mask_of(GDALDataset& dataset, int band) const {
        GDALRasterBand* const own = dataset.GetRasterBand(masking.alpha > 0 ? masking.alpha : band);
        return masking.alpha > 0 ? *own : *own->GetMaskBand();
    }

    Rect window() const { return scene.window; }
    /// Converts a window of the scene to a window of the file, whose first line may be the scene's last line.
    Rect in_file(const Rect& r) const {
        Rect in{r.x + scene.window.x, r.y + scene.window.y, r.w, r.h};
        if (file.lines_rise) in.y = file.lines - in.bottom();
        if (file.samples_fall) in.x = file.samples - in.right();
        return in;
    }
    Rect file_window() const { return in_file({0, 0, scene.window.w, scene.window.h}); }
    /// Return the tile with its lines in the order of the file, and then its samples in the order of the
    /// scene.
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
    /// Returns the bytes of one block of the file: of all bands if they are stored together.
    uint64_t block_bytes() const;
    /// Returns whether some values must be compared with nodata before they become floats, or are read in
    /// parts.
    bool wide() const;
    /// Converts samples of selected band k, `stride` bytes apart, to the values that its reader returns; see
    /// sample_convert.h.
    void deliver(size_t k, const void* src, ptrdiff_t stride, GDALDataType stored, bool swapped, float* dst,
                 size_t count) const {
        to_part(parts.empty() ? SamplePart::value : parts[k], src, stride, sample_type(stored), swapped,
                nodata[k], sample_type(type), dst, count);
        if (more_invalid)
            blank_invalid(product->part_of(static_cast<size_t>(bands[k]) - 1).invalid, src, stride,
                          sample_type(stored), swapped, dst, count);
    }
    /// Returns the memory of a reader and its handle, for reading through GDAL.
    uint64_t reader_bytes() const;
    std::string name() const { return "'" + options.path + "'"; }
};

std::unique_ptr<stream::CubeReader> make_raw_reader(std::shared_ptr<const SourceState> source);
std::unique_ptr<stream::CubeReader> make_gdal_reader(std::shared_ptr<const SourceState> source);
/// Makes a reader for a source in arrays.
std::unique_ptr<stream::CubeReader> make_product_reader(std::shared_ptr<const SourceState> source);
using ReaderMaker = std::unique_ptr<stream::CubeReader> (*)(std::shared_ptr<const SourceState> source);
/// Returns the result of one of these two makers, as a reader that fails if a server has not delivered all
/// bytes to GDAL. For a local file, or a remote file that is fetched without GDAL, returns the reader itself.
std::unique_ptr<stream::CubeReader> whole_reader(ReaderMaker make, std::shared_ptr<const SourceState> source);
uint64_t product_reader_bytes(const Product& product); ///< the memory of such a reader
/// Makes a reader for a source with chunks.
std::unique_ptr<stream::CubeReader> make_chunk_reader(std::shared_ptr<const SourceState> source);
uint64_t chunk_reader_bytes(const ChunkArrays& arrays);

/// Returns the key of a window of the file, as a reader of a server's file announces it.
inline RemoteFile::Key key_of(const Rect& window) { return {window.x, window.y, window.w, window.h}; }

/// Returns a reader that detects infinite values in bands of doubles; `reader` itself without such bands.
std::unique_ptr<stream::CubeReader> watched(std::unique_ptr<stream::CubeReader> reader,
                                            std::shared_ptr<const SourceState> source);

/// Returns a reader of the scaled values of `reader` if the source is scaled; else `reader`.
std::unique_ptr<stream::CubeReader> scaled_reader(std::unique_ptr<stream::CubeReader> reader,
                                                  const std::shared_ptr<const SourceState>& source);

/// Returns the scale, offset and unit of the selected bands.
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
    /// Returns GDAL's buffers of a handle, one block decoded and one as stored, and this reader's own
    /// scratch.
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

/// Access for other files of common/raster.
struct SourceAccess {
    static const SourceState& state(const RasterSource& source);
    static std::shared_ptr<RasterSource> make(SourceState state);
    /// Returns the same pixels with every band in these parts; bits belong to samples of type `as`.
    static std::shared_ptr<RasterSource> divided(const RasterSource& source,
                                                 const std::vector<SamplePart>& parts, GDALDataType as);
};

/// Throws Error unless every sample of the selected bands and the window is inside the file.
void check_raw_span(const SourceState& source);
/// Throws Error, for a separate header, if the data extend for a line or more beyond the described end, since
/// the header then belongs to other data.
void check_raw_end(const SourceState& source);

} // namespace hsi::raster
