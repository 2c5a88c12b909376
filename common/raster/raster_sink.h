// SPDX-License-Identifier: MIT
// A georeferenced output raster as a stream::CubeSink. The file is written under a temporary name next to its
// destination and renamed by commit(). So the destination appears complete or not at all, and an old file is
// unchanged until commit(). Without commit(), the destructor removes every file of the sink, also after a
// signal.
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
    /// If set, the output is registered in this run. RunFiles::commit() then renames the output instead of
    /// RasterSink::commit().
    std::shared_ptr<RunFiles> run;
    /// The output gets its name as soon as it is complete, not together with the run's other outputs.
    bool at_once = false;
    /// If not null, receives the virtual scene instead of an .hsi file. Messages call the scene `path`.
    std::shared_ptr<SceneDocument> document = {};
    /// Lines are added while other programs read the file (RasterSink::grow()). The output must be raw ENVI;
    /// it is BIL unless BIP is requested.
    bool grows = false;
    StacOptions stac = {};
    /// Ends commit(), which may have to copy all pixels. The flag must outlive the sink.
    const CancelFlag* cancel = nullptr;
};

struct BandSpec {
    std::string description;                     ///< for example "PC1" or "Alunite"
    std::map<std::string, std::string> metadata; ///< band metadata items
    /// The band (0-based) of the like source that has the same values; -1: none. The metadata of that band
    /// are copied before the member metadata is applied.
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
    /// The spectral properties of the bands are from `bands`, one per band, instead of a like source: each
    /// output format stores the items wavelength, wavelength_units and fwhm in its own form. A band with a
    /// like_band copies everything from that band, except scale, offset and unit, which `bands` specifies.
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

    // For an output without a like source; ignored if there is one. `bands` may then also contain the items
    // wavelength, wavelength_units, fwhm and bbl, which each output format stores in its own form.
    std::string srs; ///< SRS as for -a_srs of GDAL's tools: "EPSG:32633", WKT, PROJ
    std::optional<std::array<double, 6>> geotransform; ///< in GDAL's order
    std::map<std::string, std::string>
        envi; ///< further ENVI header fields: {"default bands", "{30, 20, 10}"}
};

/// A band whose values GDAL computes when they are read, by a pixel function of the plugin gdal_HSI.
struct VirtualBand {
    std::string function; ///< name of the pixel function, for example "hsi_project"
    /// The function's own arguments. Arguments about missing values (nodata, masks, dst_nodata) are added.
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
/// Makes the same checks if the source for create_sink() is already known, and also checks its nodata value.
void check_output(const OutputOptions& options, const OutputSpec& spec, const RasterSource& like);

/// Returns true if -of or the extension means a VRT or a virtual scene (.hsi). A virtual output has no
/// pixels. write_virtual() writes it; check_output() and create_sink() refuse it.
bool is_virtual(const OutputOptions& options);
/// Returns true for a virtual scene (.hsi), whose metadata are stored as a VRT.
bool is_computed(const OutputOptions& options);
/// Returns "a VRT" or "an .hsi", for messages.
const char* virtual_kind(const OutputOptions& options);
/// Makes the checks of check_output() for an output without pixels. Also refuses creation options, and a VRT
/// of a source that needs -if, which a VRT cannot specify.
void check_virtual(const OutputOptions& options, const OutputSpec& spec, const RasterSource& like);
/// Writes the VRT, complete or not at all, at once or with all outputs of OutputOptions::run. The VRT has the
/// georeference, names, legend and nodata that create_sink() would write, and a derived band for each of
/// `bands`. Local sources are named relative to the VRT. Throws Error.
void write_virtual(const OutputOptions& options, const OutputSpec& spec, const RasterSource& like,
                   const std::vector<VirtualBand>& bands);
/// Writes the virtual scene (.hsi) that applies the step `link` to `like`, complete or not at all, at once or
/// with all outputs of OutputOptions::run. Throws Error.
void write_virtual(const OutputOptions& options, const OutputSpec& spec, const RasterSource& like,
                   const stream::Link& link);

/// Returns the compression of an output's file, as a value of -co COMPRESS; empty: none, or unknown. Throws
/// UsageError for an unknown driver.
std::string compression_of(const OutputOptions& options);
/// Returns the expected result of takes_bands() before the sink for these options exists. Plans use it.
bool will_take_bands(const OutputOptions& options, const OutputSpec& spec);

class RasterSink;
/// Calls check_output(), then creates the temporary file. `like` (may be null) gives georeference and
/// metadata.
std::unique_ptr<RasterSink> create_sink(const OutputOptions& options, const OutputSpec& spec,
                                        const RasterSource* like);

/// An output raster. With several ranks (parallel/ranks.h), the root makes the file, all ranks write their
/// tiles into it if its layout is known, and the root commits it.
class RasterSink : public stream::SharedSink, public stream::BandTaker {
  public:
    /// Shows the first `lines` lines of a growing output (OutputOptions::grows), which have been written. The
    /// file appears under its name, and its header states these lines; readers see whole lines. There may be
    /// more lines than were stated at creation. commit() then leaves the file unchanged. Throws Error.
    virtual void grow(int64_t lines) = 0;

    virtual bool raw_access() const = 0;      ///< true: tiles are written with pwrite instead of RasterIO
    virtual uint64_t cache_bytes() const = 0; ///< bytes of GDAL's block cache for writing tiles
    virtual std::string driver() const = 0;
    /// Returns the replacement for NaN: -dstnodata, the source's value, or a chosen value for an output with
    /// missing pixels (NaN for floats, the lowest value of signed integers, 0 of unsigned ones). nullopt:
    /// integer types store 0, floats NaN.
    virtual std::optional<double> nodata() const = 0;

    /// Flushes, closes, checks for errors and renames (with OutputOptions::run, the run renames). Formats
    /// that GDAL can only make from a finished raster (COG, PNG) are made here. Throws Error, and Cancelled
    /// if options.cancel was set; the destination is then unchanged.
    virtual void commit() = 0;
};

} // namespace hsi::raster
