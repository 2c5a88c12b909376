// SPDX-License-Identifier: MIT
// Declarations that RasterSource and its readers share.
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

/// Opens a dataset for reading. Throws Error with the file name and GDAL's reason. If `stack` is not empty,
/// GDAL opens this text of a VRT instead of the path (Product::stack).
DatasetHandle open_dataset(const OpenOptions& options, const std::string& stack = {});

/// Dataset handles of one file. take() returns an unused handle, or opens the file again. Only one thread
/// uses a handle at a time. give() keeps the handle for a later take().
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

/// Size in bytes of the buffer for values that must be compared with nodata before they become floats. For a
/// larger block, the buffer has the size of the block.
inline constexpr int64_t wide_scratch_bytes = int64_t{16} << 20;

/// Maximum number of samples in a block that is read without GDAL's block cache. Larger blocks (such as a
/// whole band) are read through RasterIO().
inline constexpr int64_t largest_block = int64_t{4} << 20;

/// Which mask of the file marks missing pixels.
enum class MaskKind { none, dataset, band };

struct ComputedScene;
class GrowingFile;
struct Product;
class ChunkArrays;
class BlockStore;

/// How the pixels of a source are read, with the state that all its readers share.
struct ThroughGdal {}; ///< make_gdal_reader() reads the pixels with RasterIO()
struct RawFile {       ///< a file without compression, which make_raw_reader() reads
    RawLayout layout;
    std::shared_ptr<const FileHandle> file;
};
struct TiffBlocks { ///< a GeoTIFF whose blocks make_gdal_reader() decodes without GDAL
    BlockCoding coding;
    std::shared_ptr<BlockStore> store;
};
struct ProductArrays {}; ///< make_product_reader() reads the cube of the product
using Backing = std::variant<ThroughGdal, RawFile, TiffBlocks, ProductArrays, std::shared_ptr<ChunkArrays>,
                             std::shared_ptr<const ComputedScene>>;

/// The grid of an orthorectified scene.
struct OnGrid {
    /// Source of the pixels on the grid, from which all pixels are read instead of from the file.
    std::shared_ptr<const stream::CubeSource> pixels;
    std::shared_ptr<const RasterSource> swath;
    std::string table; ///< path of the lookup table
};

/// The blocks of the file.
struct FileBlocks {
    int64_t samples = 0, lines = 1;
    bool bands_apart = true; ///< false: decoding a block gives all bands of the file
    /// Blocks contain half-precision floats, which only RasterIO() converts to the type of the scene.
    bool half = false;
    bool compressed = true; ///< blocks are decoded, and GDAL also holds the stored bytes
    std::string codec;      ///< GDAL's name of the compression; empty: none or unknown
};

/// The size of the whole file, and the order of its pixels. The scene is a window of the file.
struct FilePixels {
    int64_t samples = 0, lines = 0;
    /// The product's array has lines or samples in reverse order.
    bool lines_rise = false, samples_fall = false;
};

/// The state of a source on a server.
struct FromServer {
    /// File that is fetched without GDAL; null: the file is local, or GDAL reads it.
    std::shared_ptr<RemoteFile> file;
    Losses losses;    ///< bytes that the server has failed to deliver since the source was opened
    ServedFile asked; ///< the file that the user named
};

/// Masks that mark missing pixels, in addition to nodata.
struct Masking {
    MaskKind kind = MaskKind::none;
    int alpha = 0; ///< file band that masks pixels where it is 0, if GDAL does not use it as a mask; 0: none
    /// The mask that with_mask() has added; null: no such mask.
    std::shared_ptr<const stream::PixelMask> counted;
};

struct Scales {
    bool own = false;     ///< a band of the file has a scale; lists in the ENVI header are not considered
    bool applied = false; ///< readers return stored value * scale + offset
};

struct SourceState {
    OpenOptions options; ///< `path` is the opened file, which may differ from the user's name
    std::shared_ptr<const Product> product; ///< null: the file is not a known product
    Backing backing;
    /// Set for an orthorectified scene, whose pixels are read from this grid. `backing` then describes the
    /// swath, but is ThroughGdal if the swath is a raw file or is read from product arrays.
    std::optional<OnGrid> grid;
    SceneMetadata scene;    ///< metadata; `bands` are the selected bands
    std::vector<int> bands; ///< file band of each selected band, from 1
    std::vector<int> bad;
    std::vector<std::string> notes;  ///< notes for the user
    GDALDataType type = GDT_Unknown; ///< data type that can represent the values of all selected bands
    std::vector<NodataMatch> nodata; ///< nodata of each selected band, in the data type of the band
    bool more_invalid = false;       ///< the parts of the product have invalid samples in addition to nodata
    Scales scales;
    /// Which part of the value of each selected band is read; empty: whole values.
    std::vector<SamplePart> parts;
    Masking masking;
    FileBlocks blocks;
    // These functions return the backing if it has the named type; otherwise null.
    const RawFile* raw() const { return std::get_if<RawFile>(&backing); }
    const TiffBlocks* tiff() const { return std::get_if<TiffBlocks>(&backing); }
    ChunkArrays* chunks() const;
    const ComputedScene* computed() const;
    /// Returns whether the cube of the product is read from its arrays.
    bool in_arrays() const { return std::holds_alternative<ProductArrays>(backing) || chunks() != nullptr; }
    /// Returns the store of decoded blocks or chunks; null if there is none.
    BlockStore* store() const;
    /// Returns the remote file that readers fetch themselves; null if the file is local or GDAL reads it.
    RemoteFile* server_file() const;
    std::shared_ptr<GrowingFile> growing; ///< not null: another program is still writing the file
    FromServer server;
    std::shared_ptr<DatasetPool> pool;

    FilePixels file;
    /// True after a reader has found an infinite value in a band of doubles. All sources that were made from
    /// this one share the flag.
    std::shared_ptr<std::atomic<bool>> infinity = std::make_shared<std::atomic<bool>>(false);

    /// Returns the mask band of file band `band`. Call it only for MaskKind::dataset and MaskKind::band.
    GDALRasterBand& mask_of(GDALDataset& dataset, int band) const {
        GDALRasterBand* const own = dataset.GetRasterBand(masking.alpha > 0 ? masking.alpha : band);
        return masking.alpha > 0 ? *own : *own->GetMaskBand();
    }

    Rect window() const { return scene.window; }
    /// Converts a window of the scene to a window of the file, in which lines or samples may be reversed.
    Rect in_file(const Rect& r) const {
        Rect in{r.x + scene.window.x, r.y + scene.window.y, r.w, r.h};
        if (file.lines_rise) in.y = file.lines - in.bottom();
        if (file.samples_fall) in.x = file.samples - in.right();
        return in;
    }
    Rect file_window() const { return in_file({0, 0, scene.window.w, scene.window.h}); }
    /// lines_in_file() returns a view of the tile with its lines in the order of the file. turn_samples()
    /// then brings the samples of the tile into the order of the scene.
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
    /// Returns the decoded bytes of one block of the file. If bands share blocks, these are the bytes of all
    /// bands of the file.
    uint64_t block_bytes() const;
    /// Returns whether values must be compared with nodata before they become floats, or are read in parts.
    bool wide() const;
    /// Converts samples of the selected band k, which are `stride` bytes apart, to the values that a reader
    /// returns. See sample_convert.h.
    void deliver(size_t k, const void* src, ptrdiff_t stride, GDALDataType stored, bool swapped, float* dst,
                 size_t count) const {
        to_part(parts.empty() ? SamplePart::value : parts[k], src, stride, sample_type(stored), swapped,
                nodata[k], sample_type(type), dst, count);
        if (more_invalid)
            blank_invalid(product->part_of(static_cast<size_t>(bands[k]) - 1).invalid, src, stride,
                          sample_type(stored), swapped, dst, count);
    }
    /// Returns the memory of a reader that reads through GDAL, including its dataset handle.
    uint64_t reader_bytes() const;
    std::string name() const { return "'" + options.path + "'"; }
};

std::unique_ptr<stream::CubeReader> make_raw_reader(std::shared_ptr<const SourceState> source);
std::unique_ptr<stream::CubeReader> make_gdal_reader(std::shared_ptr<const SourceState> source);
/// Makes a reader of a source in arrays.
std::unique_ptr<stream::CubeReader> make_product_reader(std::shared_ptr<const SourceState> source);
using ReaderMaker = std::unique_ptr<stream::CubeReader> (*)(std::shared_ptr<const SourceState> source);
/// Returns a reader that `make` (make_gdal_reader() or make_product_reader()) creates. If GDAL reads a remote
/// file, the reader throws Error when a server has not delivered all bytes to GDAL.
std::unique_ptr<stream::CubeReader> whole_reader(ReaderMaker make, std::shared_ptr<const SourceState> source);
uint64_t product_reader_bytes(const Product& product); ///< memory of a reader from make_product_reader()
/// Makes a reader of a source whose chunks are decoded without the HDF5 library.
std::unique_ptr<stream::CubeReader> make_chunk_reader(std::shared_ptr<const SourceState> source);
uint64_t chunk_reader_bytes(const ChunkArrays& arrays);

/// Returns the key under which a reader announces a window of a remote file.
inline RemoteFile::Key key_of(const Rect& window) { return {window.x, window.y, window.w, window.h}; }

/// Returns a reader that sets SourceState::infinity when it finds an infinite value in a band of doubles;
/// `reader` itself if there are no such bands.
std::unique_ptr<stream::CubeReader> watched(std::unique_ptr<stream::CubeReader> reader,
                                            std::shared_ptr<const SourceState> source);

/// Returns a reader of scaled values if the source is scaled; otherwise `reader` itself.
std::unique_ptr<stream::CubeReader> scaled_reader(std::unique_ptr<stream::CubeReader> reader,
                                                  const std::shared_ptr<const SourceState>& source);

/// Returns scale, offset and unit of the selected bands.
BandValues values_of(const SourceState& source);
SceneFacts facts_of(const SourceState& source);

/// The source of every scene that open_raster() opens. The base classes describe the public functions.
class FileSource final : public RasterSource {
  public:
    explicit FileSource(std::shared_ptr<const SourceState> state);
    const SourceState& state() const { return *m; }
    const SceneFacts& facts() const override { return m_facts; }

    stream::CubeShape shape() const override; ///< size of the window, and number of the selected bands
    stream::BlockLayout layout() const override;
    std::unique_ptr<stream::CubeReader> open_reader() const override;
    uint64_t stored_bytes_per_pixel() const override;
    int computes_on() const override;
    uint64_t device_bytes(int64_t samples, int64_t lines) const override;
    /// Returns the memory of a reader in bytes: its own buffers and, if it reads through GDAL, GDAL's buffers
    /// of a dataset handle (a block as stored and a decoded block).
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

/// Gives other files of common/raster access to the state of a source.
struct SourceAccess {
    static const SourceState& state(const RasterSource& source);
    static std::shared_ptr<RasterSource> make(SourceState state);
    /// Returns a source in which each band is replaced by one band for each entry of `parts`, which contains
    /// this part of the values. For bit parts, the values are first converted to samples of type `as`.
    static std::shared_ptr<RasterSource> divided(const RasterSource& source,
                                                 const std::vector<SamplePart>& parts, GDALDataType as);
};

/// Throws Error if the raw file ends before a sample of the selected bands and the window.
void check_raw_span(const SourceState& source);
/// Throws Error if the data file is longer than its separate header states, by one line or more. The header
/// then belongs to other data.
void check_raw_end(const SourceState& source);

} // namespace hsi::raster
