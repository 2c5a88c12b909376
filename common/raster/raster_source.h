// SPDX-License-Identifier: MIT
// A georeferenced cube as a stream::CubeSource: from a file that GDAL opens, or from an array in memory
// (plugins/arrays).
//
// The bands are the requested bands or, without a request, all bands that the file's bad-band list does not
// mark. Readers return stored values: scale and offset are copied to outputs, but not applied. Nodata
// (compared in the file's own type) and masked pixels are NaN; NaN and infinities are unchanged. Uncompressed
// raw files are read with pread, without GDAL's block cache, at the positions that
// GDALDataset::GetRawBinaryLayout() states, if a comparison of some samples confirms these positions. The
// blocks of compressed GeoTIFFs and the chunks of products in HDF5 are decoded without GDAL by the readers
// that need them (io/block_store.h). A virtual scene (.hsi) is computed. All other files are read through
// GDAL along their blocks, with one dataset handle per reader. All ways of reading give the same values.
#pragma once

#include "core/cancel.h"
#include "core/cost.h"
#include "core/cuda_module.h"
#include "core/rect.h"
#include "raster/band_choice.h"
#include "raster/scene_facts.h"
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
    std::vector<int> bands;                ///< -b, 1-based, in this order; empty: all good bands
    std::vector<BandChoice> choices;       ///< -b if it includes wavelengths; `bands` is then empty
    std::vector<BandChoice> excluded;      ///< -exclude-range; all items select by wavelength
    bool use_bbl = true;                   ///< -bbl: leave out bands that the ENVI bad-band list marks
    std::string bad_bands;        ///< -bbl FILE.csv: its columns band and good replace the bad-band list
    std::optional<Rect> window;   ///< -srcwin
    std::optional<double> nodata; ///< -srcnodata
    std::string header;           ///< ENVI header of `path`, if open_raster() was given the header's name
    /// If not null, the virtual scene to open instead of a file. Messages use `path` as its name.
    std::shared_ptr<const SceneDocument> document = {};
    /// Path of the document that contains the name `path`. The file names in the dataset are then checked
    /// (files/document_names.h). Empty: the user named `path`.
    std::string named_by = {};
    /// -follow: the scene is a raw ENVI file, BIL or BIP, that is still being written. The scene ends when no
    /// data have arrived for this number of seconds.
    std::optional<double> follow = {};
    /// If the flag is set while the source waits for lines of a followed scene, the wait ends with Cancelled.
    /// The flag must outlive the source.
    const CancelFlag* cancel = nullptr;
};

/// A file that is still being written. One thread at a time waits for its lines.
class Growth {
  public:
    virtual ~Growth() = default;
    /// Waits until more than `lines` lines exist, and returns their number; returns `lines` if no more will
    /// arrive.
    /// \throws Cancelled; Error if the file was replaced, removed or truncated meanwhile.
    virtual int64_t wait(int64_t lines) = 0;
    /// Returns the number of lines that the header states; nullopt if the header does not state a number.
    virtual std::optional<int64_t> promised() const = 0;
    /// Returns a message for the user if the file ended within a line; empty if its last line is complete.
    virtual std::string rest() const = 0;
    /// Returns a message for the user if another program has made the header invalid since the scene was
    /// opened; empty if the header is valid.
    virtual std::string header_fault() const = 0;
    /// Returns true if the last of `lines` lines contains only zeros.
    virtual bool ends_with_zeros(int64_t lines) const = 0;
    /// Returns the names, in quotes, of fields that describe the scene and that were added to the header
    /// after the scene was opened. The run does not use these fields.
    virtual std::vector<std::string> late_fields() const = 0;
    virtual std::vector<std::string> files() const = 0; ///< the data file and its header
};

/// The operations of a virtual scene (.hsi).
class Chain {
  public:
    struct Link {
        std::string operation;
        int64_t halo = 0;
        /// What the step stores while readers read, from stream::ComputedSource::kept(). Empty: the step
        /// stores nothing, so every reader computes the values again.
        std::string kept;
        bool on_devices = false; ///< true: compute_on() has moved the step to devices
        Cost per_pixel;          ///< work per pixel, from stream::LinkWork::per_pixel
    };
    virtual ~Chain() = default;
    virtual std::vector<Link> links() const = 0; ///< the steps, first to last
    virtual std::string source() const = 0;      ///< the file that the first step reads
    /// Makes all steps that have code for devices compute on `devices`, also in sources that were made from
    /// this one. Call it while no reader is open. Throws Error if a device does not start.
    virtual void compute_on(const std::vector<CudaDevice>& devices) const = 0;
};

/// A band whose values differ so little, compared with their distance from 0, that single precision cannot
/// distinguish most of them.
struct CoarseBand {
    int band = 0;      ///< number of the band in the file, 1-based
    double level = 0;  ///< approximate level of the values
    double spread = 0; ///< standard deviation of the values, estimated from their middle half
    double step = 0;   ///< distance between neighbouring single-precision numbers at this level
};

struct SceneMetadata; ///< metadata that an output inherits (private to common/raster)

/// A scene. The implementations here are for sources to which a function does not apply.
class RasterSource : public stream::CubeSource {
  public:
    virtual const SceneFacts& facts() const = 0;
    const std::string& path() const { return facts().path; }
    const std::vector<int>& bands() const { return facts().bands.numbers; }

    /// Returns the file that is still being written if the scene is followed (OpenOptions::follow); otherwise
    /// null. All lines that exist can be read, even lines beyond the number that shape() states.
    virtual Growth* growth() const { return nullptr; }
    /// Returns a followed scene with `lines` lines, which must exist; null for other scenes.
    virtual std::shared_ptr<RasterSource> grown_to(int64_t /*lines*/) const { return nullptr; }
    /// Returns the steps of a virtual scene; null for other scenes.
    virtual const Chain* chain() const { return nullptr; }

    /// If the flag is set, waits for a server end with Cancelled. The flag must outlive the source.
    virtual void end_with(const CancelFlag* /*cancel*/) const {}
    /// Checks files on servers, and the files from which a virtual scene is computed. \throws Error if a file
    /// has changed since it was opened, or if a server has not delivered all bytes.
    virtual void check_unchanged() const {}
    /// Prepares several passes on this device. An array in host memory is copied to the device once, at its
    /// first use, if the device has enough memory. Sources made from this one share the copy. The call has no
    /// effect on other sources: each pass copies their tiles to the device again.
    virtual void keep_on(const CudaDevice& /*device*/, int /*threads*/) const {}
    /// Returns true if the scene can be read again without the disk and without decoding. This is so for
    /// arrays, and for a raw file that is in the system's cache (estimated from some thousand of its pages).
    virtual bool held_by_system() const { return true; }
    /// Returns the decoded bytes of a block if each block contains all bands and GDAL decodes it; otherwise
    /// 0.
    virtual uint64_t shared_block_bytes() const { return 0; }
    /// Returns the bytes of GDAL's block cache for reading tiles (small if access is raw).
    virtual uint64_t cache_bytes() const { return 0; }
    /// Reserves memory for decoded blocks that the readers of this source share, in a pass with `lanes`
    /// workers. Returns how many of `most` bytes the source takes, in addition to cache_bytes(). A local
    /// source whose blocks GDAL decodes takes 0. Call it once, before the first reader. Sources made from
    /// this one share the memory.
    virtual uint64_t take_memory(uint64_t /*most*/, int /*lanes*/) const { return 0; }

    /// Numbers of values in bands of doubles that are too large for single precision, in which tools compute,
    /// and of pixels with such values. Nodata and masked pixels do not count.
    struct Beyond {
        int64_t values = 0, pixels = 0;
    };
    /// Returns true if a reader has found an infinite value, which may be a value beyond single precision.
    virtual bool met_infinity() const = 0;
    /// Reads the window again and counts the values beyond single precision.
    virtual Beyond count_beyond_float() const = 0;
    /// Returns true if pixels have positions: from a geotransform, or from the arrays of longitude and
    /// latitude of a product. The scene is this product or was made from it. The call may open the product.
    virtual bool located() const { return false; }
    /// Returns the value of the metadata item with this name for every band; an empty text for a band without
    /// this item.
    virtual std::vector<std::string> band_items(const char* /*name*/) const {
        return std::vector<std::string>(bands().size());
    }
    /// Returns the coarse bands among the bands whose type exceeds single precision, judged by a sample of
    /// their pixels. Empty, without reading, if there are no bands of such types.
    virtual std::vector<CoarseBand> coarse_bands() const = 0;

    /// Returns the same scene without some bands (indices in bands(), 0-based). Throws Error if no bands are
    /// left.
    std::shared_ptr<RasterSource> without_bands(const std::vector<int>& indices) const;
    /// Returns the same scene with only these bands (indices in bands(), 0-based, each once), in this order.
    virtual std::shared_ptr<RasterSource> with_bands(const std::vector<int>& indices) const = 0;
    /// Returns the same scene, in which all pixels outside of the mask are missing. The mask must have the
    /// size of shape().
    virtual std::shared_ptr<RasterSource> with_mask(std::shared_ptr<const stream::PixelMask> mask) const = 0;
    /// Returns the same scene with scaled values, stored value * scale + offset in single precision;
    /// BandFacts::values then has only the unit. Pixels whose stored values are all 0 remain invalid (NaN).
    virtual std::shared_ptr<RasterSource> scaled() const = 0;
    /// Returns the same pixels for computing in double precision: three consecutive bands per band, whose sum
    /// is the value without loss (stream/value_parts.h). Values beyond the range of single precision are
    /// infinite.
    virtual std::shared_ptr<RasterSource> in_sums() const = 0;
    /// Returns the same pixels for exact copies of scenes whose values single precision cannot represent.
    /// Each band becomes two or three bands, which contain the bits of its samples in the common type of all
    /// bands (SceneFacts::type). RasterSink writes them if OutputSpec::sample_type is set. Missing values are
    /// NaN. Throws Error if no type can represent all values.
    virtual std::shared_ptr<RasterSource> in_samples() const = 0;
};

/// Opens a scene. Throws Error with the file and the fault (does not open, no bands, complex type, zero
/// size), and UsageError that names -b or -srcwin if these do not fit the file. For a followed scene, waits
/// until its first line exists; the source then has one line. Throws Cancelled if OpenOptions::cancel is set
/// before.
std::shared_ptr<RasterSource> open_raster(const OpenOptions& options);

/// Returns the steps of a virtual scene; empty for other scenes.
inline std::vector<Chain::Link> links_of(const RasterSource& source) {
    const Chain* const chain = source.chain();
    return chain != nullptr ? chain->links() : std::vector<Chain::Link>();
}

/// Returns the metadata of a source that open_raster() has opened from a file.
const SceneMetadata& metadata_of(const RasterSource& source);

} // namespace hsi::raster
