// SPDX-License-Identifier: MIT
// A georeferenced cube that GDAL opens, as a stream::CubeSource.
//
// Bands: those asked for, or all that the file's bad-band list does not mark. Values are the stored numbers
// (scale and offset are carried to outputs, not applied). Nodata (compared in the file's own type) and masked
// pixels arrive as NaN; NaN and infinities stay. Uncompressed raw files (GDALDataset::GetRawBinaryLayout,
// where some samples show that it tells the truth) are read with pread past GDAL's block cache; chunks of
// products in HDF5 are decoded by whichever reader needs them (io/block_store.h); everything else through
// RasterIO along the file's blocks, a dataset handle a reader. Same bytes.
#pragma once

#include "core/cancel.h"
#include "core/cost.h"
#include "core/cuda_module.h"
#include "core/rect.h"
#include "raster/band_choice.h"
#include "stream/cube_source.h"
#include "stream/pixel_mask.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

struct SceneDocument;

struct OpenOptions {
    std::string path;
    std::vector<std::string> open_options; ///< -oo NAME=VALUE
    std::vector<std::string> drivers;      ///< -if FORMAT
    std::vector<int> bands;                ///< -b, 1-based, in this order; empty: all good ones
    std::vector<BandChoice> choices;       ///< -b with wavelengths among it; `bands` is empty then
    std::vector<BandChoice> excluded;      ///< -exclude-range, all by wavelength
    bool use_bbl = true;                   ///< -bbl: leave out bands that the ENVI bad-band list marks
    std::optional<Rect> window;            ///< -srcwin
    std::optional<double> nodata;          ///< -srcnodata
    std::string header; ///< the ENVI header of `path` that counts, where open() was given its name
    /// Not null: this scene, and `path` is what messages call it.
    std::shared_ptr<const SceneDocument> document = {};
    std::string named_by = {}; ///< the document that names `path`, which is then vetted; empty: the user
    /// -follow: the scene is a raw ENVI file, BIL or BIP, that is still being written; its end is where
    /// nothing has come for so many seconds.
    std::optional<double> follow = {};
    const CancelFlag* cancel = nullptr; ///< ends waits for its lines; must outlive the source
};

/// What the numbers of the bands mean: number * scale + offset, in `unit`.
struct BandValues {
    std::vector<double> scale, offset; ///< one a band; empty when the file says nothing, or 1 and 0 alone
    std::string unit;                  ///< empty: unknown, or not the same for all bands
    /// True when one factor that all bands share, or nothing, leads from numbers to what they mean: such
    /// numbers have the same angles, mixtures and whitened scores.
    bool one_factor() const;
};

struct SceneMetadata; ///< everything an output inherits (private to this room)

class RasterSource final : public stream::CubeSource {
  public:
    /// Throws Error naming the file and what was found (does not open, no bands, complex type, zero size),
    /// and UsageError naming -b or -srcwin when these do not fit the file. A scene that is followed is opened
    /// when its first line is there, and has that one line; Cancelled when OpenOptions::cancel is set before.
    static std::shared_ptr<RasterSource> open(const OpenOptions& options);
    ~RasterSource() override;

    stream::CubeShape shape() const override; ///< of the window and the kept bands
    stream::BlockLayout layout() const override;
    std::unique_ptr<stream::CubeReader> open_reader() const override;
    uint64_t stored_bytes_per_pixel() const override;
    /// How the file is compressed ("DEFLATE", "ZSTD", "LZW", "LZF" ...); empty: not, or nobody tells.
    std::string compression() const;
    int device() const override; ///< of an array, or of its copy (keep_on()); -1 for files
    int computes_on() const override;
    uint64_t device_bytes(int64_t samples, int64_t lines) const override;
    /// GDAL's buffers of a handle, one block decoded and one as stored, and this reader's own scratch.
    uint64_t reader_bytes() const override;
    uint64_t window_bytes(int64_t samples, int64_t lines) const override;

    const std::string& path() const;
    const std::string& driver() const; ///< "ENVI", "GTiff" ...
    /// The agency's product that the file was recognised as by its content: "EMIT L2A"; empty: none.
    std::string product() const;
    std::string type_name() const; ///< "Float32", "Int16" ...
    bool raw_access() const;       ///< pread instead of RasterIO
    bool decodes_chunks() const;   ///< of a product's arrays, past HDF5's library
    const char* access() const;    ///< "raw", "chunks", "computed" or "gdal"
    /// A server holds the file, and readers fetch what they need of it themselves, by several connections.
    bool is_remote() const;
    /// Waits for a server end with Cancelled when the flag is set, which must outlive the source.
    void end_with(const CancelFlag* cancel) const;
    /// \throws Error when a server has another file now than when this was opened, or a file behind a scene
    /// that computes was changed since.
    void check_unchanged() const;
    /// Of a scene that computes (.hsi): the names and halos of its operations, first to last, and the file
    /// before the first of them. Empty for any other.
    struct ChainLink {
        std::string operation;
        int64_t halo = 0;
        std::string kept;        ///< stream::ComputedSource::kept(); empty: computed anew by every reader
        bool on_devices = false; ///< by compute_links_on()
        Cost per_pixel;          ///< stream::LinkWork::per_pixel
    };
    std::vector<ChainLink> chain() const;
    /// While no reader is open: the links of the chain that have code for devices compute on these from now
    /// on, also of sources made from this one. Throws Error where a device does not start.
    void compute_links_on(const std::vector<CudaDevice>& devices) const;
    /// Before several passes on this device: an array in host memory is copied there once, when it is first
    /// asked for, also for sources made from this one, where memory allows. Files go tile by tile.
    void keep_on(const CudaDevice& device, int threads) const;
    std::string chain_source() const;
    /// True when reading the scene again costs no disk and no decoding: access is raw, and the system holds
    /// the file in its memory now, by some thousand of its pages.
    bool held_by_system() const;
    uint64_t shared_block_bytes() const; ///< of a block of all bands together; 0: each band has its own
    uint64_t cache_bytes() const;        ///< GDAL block cache that tile reading wants (small when raw)
    /// Of `most` bytes beside that cache, what this source takes for itself from now on, to keep decoded
    /// blocks that its readers share, where a pass has `lanes`. For sources whose blocks or chunks are
    /// decoded past GDAL; 0 for others. Once, before the first reader; sources made from this one share it.
    uint64_t take_memory(uint64_t most, int lanes) const;
    const std::vector<int>& bands() const; ///< file bands (1-based) behind the source's bands
    /// How models, libraries and other scenes know the bands where there are no wavelengths: by their numbers
    /// in the scene that the file has been made from, where it tells them, else by bands().
    std::vector<int> band_numbers() const;
    bool tells_band_numbers() const;
    int file_bands() const;             ///< all that there are
    std::vector<int> bad_bands() const; ///< file bands left out because the bad-band list marks them
    std::vector<int>
    marked_bands() const; ///< bad_bands(), and kept bands that the list marks (-bbl ignore, -b)
    std::vector<std::string> band_names() const; ///< descriptions, "Band N" where there is none
    std::vector<double> wavelengths_nm() const; ///< one a band; NaN where unknown; empty when no band has one
    std::vector<double> fwhm_nm() const;        ///< likewise
    /// GDAL's scale, offset and unit of the bands; where there is no scale, the ENVI header's reflectance
    /// scale factor or data reflectance gain and offset values, and its data units.
    BandValues band_values() const;
    /// What a user should know of the file: lists of its ENVI header that are left out because their length
    /// is not the number of bands, a range of -exclude-range without a band.
    std::vector<std::string> notes() const;
    // A scene that is followed (OpenOptions::follow), whatever its shape() is, is read at all lines that are
    // there. One thread at a time waits for them.
    bool grows() const;
    /// Waits until more than `lines` lines are there, and tells how many; `lines` when no more will come.
    /// \throws Cancelled; Error when the file was replaced, removed or cut off meanwhile.
    int64_t wait_for_lines(int64_t lines) const;
    /// Lines that the header tells of; none: it does not tell.
    std::optional<int64_t> promised_lines() const;
    /// The same scene at so many lines, which are there: all of it from now on.
    std::shared_ptr<RasterSource> grown_to(int64_t lines) const;
    /// Why the last line is none, where the file ended within one; empty: it did not.
    std::string incomplete_line() const;
    /// With OpenOptions::follow, what has become of the header since, in words; empty: it is there.
    std::string lost_header() const;
    /// True when nothing but zeros stands in the last of so many lines of a file that grows.
    bool ends_with_zeros(int64_t lines) const;
    /// Fields that tell what the scene is and which the header has had only since, in quotes.
    std::vector<std::string> late_fields() const;
    /// The data and their header; empty for a scene that does not grow.
    std::vector<std::string> growing_files() const;

    /// True when a reader has met an infinite value in a band of doubles: it may be a number that is too
    /// large for single precision, in which all computing is done.
    bool met_infinity() const;
    /// Reads the window once more for such numbers: how many there are, and in how many pixels. Nodata and
    /// masked pixels do not count.
    struct Beyond {
        int64_t values = 0, pixels = 0;
    };
    Beyond count_beyond_float() const;
    std::optional<double> nodata() const; ///< of the first kept band, or -srcnodata
    bool has_srs() const;
    std::string srs_wkt() const;  ///< empty when there is none
    std::string srs_name() const; ///< likewise: "WGS 84 / UTM zone 33N"
    int epsg() const; ///< code of the SRS, also where the file does not say it but defines that one; 0: none
    bool geotransform(double (&gt)[6]) const; ///< of the window; false when there is none
    /// True when every pixel has a place: a geotransform, or arrays of longitude and latitude of the
    /// product that it is or was made from. Opens the latter.
    bool located() const;

    /// The same scene without some bands (indices into bands(), 0-based).
    std::shared_ptr<RasterSource> without_bands(const std::vector<int>& indices) const;
    /// The same scene with these bands alone (indices likewise, none twice), in this order.
    std::shared_ptr<RasterSource> with_bands(const std::vector<int>& indices) const;

    /// The same scene in which the pixels that are not in the mask, of shape()'s size, have no value.
    std::shared_ptr<RasterSource> with_mask(std::shared_ptr<const stream::PixelMask> mask) const;
    bool has_mask() const; ///< it was made by with_mask()

    /// The same scene as what its numbers mean, number * scale + offset in single precision; band_values()
    /// then tells the unit alone. Pixels whose numbers are all 0 stay invalid: NaN.
    std::shared_ptr<RasterSource> scaled() const;
    bool is_scaled() const;

    /// True when single precision holds every value of the kept bands' types: Float32, and integers of 8 and
    /// 16 bits.
    bool exact_in_float() const;
    /// The same pixels for those who compute in double precision: three bands for each, one after another,
    /// whose sum is the value without loss (stream/value_parts.h). Beyond single precision's range it is
    /// infinite.
    std::shared_ptr<RasterSource> in_sums() const;
    /// The same pixels for those who copy them: for each band two or three, the bits of its samples in the
    /// type of all bands (type_name()) as RasterSink takes them again (OutputSpec::sample_type); NaN where
    /// there is no value. For sources that are not exact_in_float(). Throws Error where no type holds all
    /// values.
    std::shared_ptr<RasterSource> in_samples() const;

    /// A band whose values lie so close together, far from 0, that single precision tells few of them apart.
    struct CoarseBand {
        int band = 0;      ///< of the file, 1-based
        double level = 0;  ///< about where the values lie
        double spread = 0; ///< their standard deviation, by the middle half of them
        double step = 0;   ///< of single precision there
    };
    /// Such bands, by a sample of the pixels in bands whose type says more than single precision; nothing is
    /// read where there is no such band.
    std::vector<CoarseBand> coarse_bands() const;

    /// The metadata item of this name of every band; empty texts where there is none.
    std::vector<std::string> band_items(const char* name) const;

    const SceneMetadata& metadata() const;

  private:
    friend struct SourceAccess; ///< of this room
    struct Impl;
    explicit RasterSource(std::shared_ptr<const Impl> impl);
    std::shared_ptr<const Impl> m;
};

} // namespace hsi::raster
