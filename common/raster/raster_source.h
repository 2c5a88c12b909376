// SPDX-License-Identifier: MIT
// A georeferenced cube as a stream::CubeSource: of a file that GDAL opens, or of an array in memory
// (plugins/arrays).
//
// Bands: those asked for, or all that the file's bad-band list does not mark. Values are the stored numbers
// (scale and offset are carried to outputs, not applied). Nodata (compared in the file's own type) and masked
// pixels arrive as NaN; NaN and infinities stay. Uncompressed raw files (GDALDataset::GetRawBinaryLayout, if
// some samples confirm it) are read with pread, without GDAL's block cache; chunks of products in HDF5 are
// decoded by the reader that needs them (io/block_store.h); everything else is read through RasterIO along
// the file's blocks, with one dataset handle per reader. All give the same bytes.
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
    std::vector<int> bands;                ///< -b, 1-based, in this order; empty: all good ones
    std::vector<BandChoice> choices;       ///< -b with wavelengths among it; `bands` is empty then
    std::vector<BandChoice> excluded;      ///< -exclude-range, all by wavelength
    bool use_bbl = true;                   ///< -bbl: leave out bands that the ENVI bad-band list marks
    std::string bad_bands;        ///< -bbl FILE.csv: its columns band and good count in place of that list
    std::optional<Rect> window;   ///< -srcwin
    std::optional<double> nodata; ///< -srcnodata
    std::string header;           ///< the ENVI header of `path` that counts, where open() was given its name
    /// Not null: this scene; messages call it `path`.
    std::shared_ptr<const SceneDocument> document = {};
    std::string named_by = {}; ///< the document that names `path`, which is then vetted; empty: the user
    /// -follow: the scene is a raw ENVI file, BIL or BIP, that is still being written; it ends when nothing
    /// has come for so many seconds.
    std::optional<double> follow = {};
    const CancelFlag* cancel = nullptr; ///< ends waits for its lines; must outlive the source
};

/// A file that is still being written. One thread at a time waits for its lines.
class Growth {
  public:
    virtual ~Growth() = default;
    /// Waits until more than `lines` lines are there, and returns their count; `lines` when no more will
    /// come.
    /// \throws Cancelled; Error when the file was replaced, removed or cut off meanwhile.
    virtual int64_t wait(int64_t lines) = 0;
    /// Lines that the header states; nullopt if it does not.
    virtual std::optional<int64_t> promised() const = 0;
    /// Why the last line is incomplete, if the file ended within one; empty if it did not.
    virtual std::string rest() const = 0;
    /// The later fault of the header, in words; empty if it is there.
    virtual std::string header_fault() const = 0;
    /// True if the last of so many lines holds only zeros.
    virtual bool ends_with_zeros(int64_t lines) const = 0;
    /// Fields that describe the scene and that the header got only later, in quotes.
    virtual std::vector<std::string> late_fields() const = 0;
    virtual std::vector<std::string> files() const = 0; ///< the data and their header
};

/// The operations of a scene that computes (.hsi).
class Chain {
  public:
    struct Link {
        std::string operation;
        int64_t halo = 0;
        std::string kept;        ///< stream::ComputedSource::kept(); empty: every reader computes the values
                                 ///< again
        bool on_devices = false; ///< by compute_on()
        Cost per_pixel;          ///< stream::LinkWork::per_pixel
    };
    virtual ~Chain() = default;
    virtual std::vector<Link> links() const = 0; ///< first to last
    virtual std::string source() const = 0;      ///< the file before the first of them
    /// While no reader is open: the links that have code for devices compute on these from now on, also of
    /// sources made from this one. Throws Error where a device does not start.
    virtual void compute_on(const std::vector<CudaDevice>& devices) const = 0;
};

/// A band whose values are so close together, far from 0, that single precision distinguishes few of them.
struct CoarseBand {
    int band = 0;      ///< of the file, 1-based
    double level = 0;  ///< the level of the values, about
    double spread = 0; ///< their standard deviation, from the middle half of them
    double step = 0;   ///< of single precision there
};

struct SceneMetadata; ///< everything an output inherits (private to this room)

/// Functions that do not apply to a source have default answers here.
class RasterSource : public stream::CubeSource {
  public:
    virtual const SceneFacts& facts() const = 0;
    const std::string& path() const { return facts().path; }
    const std::vector<int>& bands() const { return facts().bands.numbers; }

    /// Not null: the scene is followed (OpenOptions::follow). Whatever its shape() is, it is read at all
    /// lines that are there.
    virtual Growth* growth() const { return nullptr; }
    /// With growth(): the same scene with so many lines, which exist.
    virtual std::shared_ptr<RasterSource> grown_to(int64_t /*lines*/) const { return nullptr; }
    /// Not null: the scene computes.
    virtual const Chain* chain() const { return nullptr; }

    /// Waits for a server end with Cancelled when the flag is set, which must outlive the source.
    virtual void end_with(const CancelFlag* /*cancel*/) const {}
    /// \throws Error when a server has another file now than when this was opened, or a file behind a virtual
    /// scene was changed since.
    virtual void check_unchanged() const {}
    /// For several passes on this device: an array in host memory is copied there once, when it is first
    /// used, also for sources made from this one, if memory allows. Files go tile by tile.
    virtual void keep_on(const CudaDevice& /*device*/, int /*threads*/) const {}
    /// True when reading the scene again costs no disk and no decoding: access is raw, and the system holds
    /// the file in its memory now, by some thousand of its pages.
    virtual bool held_by_system() const { return true; }
    /// Bytes of a block of all bands together; 0: each band has its own.
    virtual uint64_t shared_block_bytes() const { return 0; }
    /// GDAL block cache for reading tiles (small when raw).
    virtual uint64_t cache_bytes() const { return 0; }
    /// Returns how many of `most` bytes, in addition to that cache, this source takes from now on, to keep
    /// decoded blocks that its readers share, where a pass has `lanes`. For sources whose blocks or chunks
    /// are decoded without GDAL; 0 for others. Call it once, before the first reader; sources made from this
    /// one share the memory.
    virtual uint64_t take_memory(uint64_t /*most*/, int /*lanes*/) const { return 0; }

    /// Values in bands of doubles that are too large for single precision, in which everything is computed.
    /// Nodata and masked pixels do not count.
    struct Beyond {
        int64_t values = 0, pixels = 0;
    };
    /// True when a reader has met an infinite value there: it may be such a number.
    virtual bool met_infinity() const = 0;
    /// Reads the window again for such numbers.
    virtual Beyond count_beyond_float() const = 0;
    /// True when every pixel has a place: a geotransform, or arrays of longitude and latitude of the
    /// product that it is or was made from. Opens the latter.
    virtual bool located() const { return false; }
    /// The metadata item of this name of every band; empty texts for bands without it.
    virtual std::vector<std::string> band_items(const char* /*name*/) const {
        return std::vector<std::string>(bands().size());
    }
    /// Examines a sample of the pixels in bands whose type holds more than single precision; reads nothing
    /// without such bands.
    virtual std::vector<CoarseBand> coarse_bands() const = 0;

    /// The same scene without some bands (indices into bands(), 0-based). Throws Error when none is left.
    std::shared_ptr<RasterSource> without_bands(const std::vector<int>& indices) const;
    /// The same scene with only these bands (indices likewise, each once), in this order.
    virtual std::shared_ptr<RasterSource> with_bands(const std::vector<int>& indices) const = 0;
    /// The same scene in which the pixels that are not in the mask, of shape()'s size, have no value.
    virtual std::shared_ptr<RasterSource> with_mask(std::shared_ptr<const stream::PixelMask> mask) const = 0;
    /// The same scene with scaled values, number * scale + offset in single precision; BandFacts::values then
    /// has only the unit. Pixels whose stored values are all 0 stay invalid: NaN.
    virtual std::shared_ptr<RasterSource> scaled() const = 0;
    /// The same pixels for computing in double precision: three bands for each, one after another; their sum
    /// is the value without loss (stream/value_parts.h). Beyond single precision's range it is infinite.
    virtual std::shared_ptr<RasterSource> in_sums() const = 0;
    /// The same pixels for copies: for each band two or three, the bits of its samples in the type of all
    /// bands (SceneFacts::type) as RasterSink takes them again (OutputSpec::sample_type); NaN for missing
    /// values. For sources that are not exact_in_float. Throws Error where no type holds all values.
    virtual std::shared_ptr<RasterSource> in_samples() const = 0;
};

/// Throws Error with the file and the fault (does not open, no bands, complex type, zero size), and
/// UsageError naming -b or -srcwin when these do not fit the file. A followed scene is opened when its first
/// line is there, and has that one line; Cancelled when OpenOptions::cancel is set before.
std::shared_ptr<RasterSource> open_raster(const OpenOptions& options);

/// The links of its chain; empty for other scenes.
inline std::vector<Chain::Link> links_of(const RasterSource& source) {
    const Chain* const chain = source.chain();
    return chain != nullptr ? chain->links() : std::vector<Chain::Link>();
}

/// The metadata of a source that open_raster() has opened from a file.
const SceneMetadata& metadata_of(const RasterSource& source);

} // namespace hsi::raster
