// SPDX-License-Identifier: MIT
// A georeferenced output raster as a stream::CubeSink. The file is written under a temporary name next to its
// destination and renamed by commit(). The destination therefore appears complete or not at all, and an old
// file is unchanged until commit(). Without commit(), the destructor removes every file of the sink, also
// after a signal.
#pragma once

#include "core/cancel.h"
#include "raster/raster_source.h"
#include "stream/band_writer.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::stream {
struct Link;
}

namespace hsi::raster {

class RunFiles;

/// A STAC Item that is written with an output and describes it.
struct StacOptions {
    std::string path;     ///< -stac; empty: none
    std::string datetime; ///< -stac-datetime: the time of acquisition, if the scene's metadata lack it
    std::string version;  ///< version of this software
};

struct OutputOptions {
    std::string path;
    std::string format; ///< -of; empty: from the extension of path, GTiff if path has none
    std::vector<std::string> creation_options; ///< -co; GTiff adds TILED=YES, BIGTIFF=IF_SAFER if they are
                                               ///< not given
    std::string type;                          ///< -ot; empty: OutputSpec::type
    std::optional<double> nodata;              ///< -dstnodata
    bool overwrite = false;
    /// Bytes that the sink may use for unfinished blocks. commit() may use four times as much after the
    /// worker threads have ended. 0: a quarter of the computer's memory.
    uint64_t memory = 0;
    int threads = 1;          ///< threads that may compress at once, unless -co NUM_THREADS is given
    std::string history;      ///< the command line, for the metadata item HSI_HISTORY
    std::string role = "dst"; ///< option that names the output, for messages
    /// If set, the output is registered in this run. RasterSink::commit() then only completes the file, and
    /// RunFiles::commit() renames it together with the other outputs of the run.
    std::shared_ptr<RunFiles> run;
    /// True: the output gets its name as soon as it is complete, not together with the run's other outputs.
    bool at_once = false;
    /// If not null, the virtual scene is stored here instead of in an .hsi file. Messages use `path` as its
    /// name.
    std::shared_ptr<SceneDocument> document = {};
    /// True: lines are added while other programs read the file (RasterSink::grow()). The output must be a
    /// raw ENVI file. With several bands, it is BIL unless BIP is requested.
    bool grows = false;
    StacOptions stac = {};
    /// If the flag is set, commit(), which may have to copy all pixels, ends with Cancelled. The flag must
    /// outlive the sink.
    const CancelFlag* cancel = nullptr;
};

struct BandSpec {
    std::string description;                     ///< for example "PC1" or "Alunite"
    std::map<std::string, std::string> metadata; ///< band metadata items
    /// Index (0-based) of the band with the same values in the like source, which is the source that
    /// create_sink() gets as `like`; -1: no such band. The metadata of that band are copied first; the member
    /// `metadata` may then replace items.
    int like_band = -1;
    /// Scaled value = stored value * scale + offset. If empty, the output states no scale or offset.
    std::optional<double> scale = {}, offset = {};
    std::string unit = {};
};

struct OutputSpec {
    stream::CubeShape shape;
    std::string type = "Float32";
    bool same_bands = false;     ///< the output has the like source's bands; all their metadata are copied
    std::vector<BandSpec> bands; ///< derived bands (same_bands = false); may be empty
    /// True: `bands` has one entry per band, which states the spectral properties of the band, instead of the
    /// like source. Each output format stores the items wavelength, wavelength_units and fwhm in its own
    /// form. A band with a like_band gets all metadata of that band, except scale, offset and unit, which
    /// always come from `bands`.
    bool spectral = false;
    bool holes = false; ///< some pixels are missing: a nodata tag is set even if the source has none
    std::map<std::string, std::string> metadata; ///< further dataset metadata items
    std::vector<std::string> categories;         ///< class names of band 1
    std::vector<std::array<uint8_t, 4>> colours; ///< colour table of band 1 (red, green, blue, alpha)

    std::optional<double> nodata; ///< the nodata tag unless -dstnodata is given
    /// If set, tiles contain the bits of samples of this type (RasterSource::in_samples()), so that copies
    /// are exact. A tile then has two or three bands per band of the output. Empty: tiles contain values.
    std::string sample_type;
    bool keep_nan = false; ///< The tiles already contain nodata values, so NaN remains NaN.

    // The following members are for an output without a like source; they are ignored if there is one.
    // `bands` may then also contain the items wavelength, wavelength_units, fwhm and bbl, which each output
    // format stores in its own form.
    std::string srs; ///< SRS as for -a_srs of GDAL's tools: "EPSG:32633", WKT, PROJ
    std::optional<std::array<double, 6>> geotransform; ///< in GDAL's order
    std::map<std::string, std::string>
        envi; ///< further ENVI header fields: {"default bands", "{30, 20, 10}"}
};

/// A band whose values GDAL computes when they are read, by a pixel function of the plugin gdal_HSI.
struct VirtualBand {
    std::string function; ///< name of the pixel function, for example "hsi_project"
    /// The function's own arguments. write_virtual() adds arguments about missing values (nodata, masks,
    /// dst_nodata).
    std::vector<std::pair<std::string, std::string>> arguments;
    std::vector<int> bands; ///< bands of the like source (0-based) that the function uses; empty: all
    std::string further;    ///< a raster of the output's size, whose only band is the last source; empty:
                            ///< none
};

/// Returns true if positions in this SRS are angles. Throws UsageError if PROJ does not know the SRS.
bool is_geographic(const std::string& srs);

/// Makes all checks that can fail before the work begins: an existing destination without overwrite, an
/// unknown extension or driver, a driver that does not support the bands, the type or the creation options, a
/// folder that does not exist or is not writable, a destination that is the source. Throws Error or
/// UsageError.
void check_output(const OutputOptions& options, const OutputSpec& spec);
/// Makes the same checks if the source for create_sink() is already known. Also checks its position and its
/// nodata value.
void check_output(const OutputOptions& options, const OutputSpec& spec, const RasterSource& like);

/// Returns true if -of or the extension means a VRT or a virtual scene (.hsi). A virtual output has no
/// pixels. write_virtual() writes it; check_output() and create_sink() refuse it.
bool is_virtual(const OutputOptions& options);
/// Returns true for a virtual scene (.hsi), whose metadata are stored as a VRT.
bool is_computed(const OutputOptions& options);
/// Returns "a VRT" or "an .hsi", for messages.
const char* virtual_kind(const OutputOptions& options);
/// Makes the checks of check_output() for an output without pixels. Also refuses creation options, and a VRT
/// of a source that a VRT cannot show: a virtual scene, scaled values, or a source that
/// check_virtual_source() refuses (output/virtual_bands.h).
void check_virtual(const OutputOptions& options, const OutputSpec& spec, const RasterSource& like);
/// Writes the VRT. It appears complete or not at all: at once, or together with all outputs of
/// OutputOptions::run. The VRT has the georeference, names, legend and nodata that create_sink() would write,
/// and a derived band for each of `bands`. Local sources are named relative to the VRT. Throws Error.
void write_virtual(const OutputOptions& options, const OutputSpec& spec, const RasterSource& like,
                   const std::vector<VirtualBand>& bands);
/// Writes the virtual scene (.hsi) that applies the step `link` to `like`. It appears complete or not at all:
/// at once, or together with all outputs of OutputOptions::run. With OutputOptions::document, the scene is
/// only stored there. Throws Error.
void write_virtual(const OutputOptions& options, const OutputSpec& spec, const RasterSource& like,
                   const stream::Link& link);

/// Returns the compression of a GTiff or COG with these options, as a value of -co COMPRESS; empty if the
/// file is not compressed, and for other formats. Throws UsageError for an unknown driver.
std::string compression_of(const OutputOptions& options);
/// Predicts the result of RasterSink::takes_bands() for these options, for plans that are made before the
/// sink exists.
bool will_take_bands(const OutputOptions& options, const OutputSpec& spec);

class RasterSink;
/// Makes the checks of check_output(), then creates the temporary file. The output gets the georeference and
/// the metadata of `like`, which may be null.
std::unique_ptr<RasterSink> create_sink(const OutputOptions& options, const OutputSpec& spec,
                                        const RasterSource* like);

/// An output raster. With several ranks (parallel/ranks.h), the root makes the file, all ranks write their
/// tiles into it if its layout is known, and the root commits it.
class RasterSink : public stream::SharedSink, public stream::BandTaker {
  public:
    /// Shows the first `lines` lines of a growing output (OutputOptions::grows), which must have been
    /// written, to other programs. The first call makes the file appear under its name; each call writes the
    /// number of lines into the header. There may be more lines than were stated at creation. commit() then
    /// only checks the file. Throws Error, also if another program has changed the file.
    virtual void grow(int64_t lines) = 0;

    virtual bool raw_access() const = 0;      ///< true: tiles are written with pwrite instead of RasterIO
    virtual uint64_t cache_bytes() const = 0; ///< bytes of GDAL's block cache for writing tiles
    virtual std::string driver() const = 0;
    /// Returns the nodata value, which replaces NaN: -dstnodata, OutputSpec::nodata, a value of the source,
    /// or a default value for an output with missing pixels. The default is NaN for floats, the lowest value
    /// of signed integers, and 0 for unsigned integers. nullopt if there is no nodata value: integer types
    /// then store 0 for NaN, and floats store NaN.
    virtual std::optional<double> nodata() const = 0;

    /// Completes the file, checks it, and renames it to its destination. With OutputOptions::run, the run
    /// renames it later. Files of formats that GDAL can only make from a finished raster (COG, PNG) are made
    /// here. Throws Error, and Cancelled if options.cancel was set; the destination is then unchanged.
    virtual void commit() = 0;
};

} // namespace hsi::raster
