// SPDX-License-Identifier: MIT
// A georeferenced output raster as a stream::CubeSink. The file is written under a temporary name next to its
// destination and renamed by commit(): the destination appears complete or not at all, and an old file stays
// as it was until then. Without commit() the destructor removes every file it made. Signals are safe: the
// tool unwinds.
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
    std::string version;  ///< of this software
};

struct OutputOptions {
    std::string path;
    std::string format;                        ///< -of; empty: from the extension, GTiff without one
    std::vector<std::string> creation_options; ///< -co; GTiff adds TILED=YES, BIGTIFF=IF_SAFER when not given
    std::string type;                          ///< -ot; empty: OutputSpec::type
    std::optional<double> nodata;              ///< -dstnodata
    bool overwrite = false;
    /// Bytes that the sink may hold for unfinished blocks; commit() may take four times as much, when the
    /// lanes have ended. 0: a quarter of the machine's.
    uint64_t memory = 0;
    int threads = 1;          ///< that may compress at once, unless -co NUM_THREADS says otherwise
    std::string history;      ///< the command line, for the metadata item HSI_HISTORY
    std::string role = "dst"; ///< the option that names it, for messages
    /// With it: registered there, and renamed by its commit(), not by the sink's.
    std::shared_ptr<RunFiles> run;
    /// It gets its name when it is complete, not with the run's other outputs.
    bool at_once = false;
    /// Not null: an .hsi goes there and not into a file; messages call it `path`.
    std::shared_ptr<SceneDocument> document = {};
    /// Lines are added while others read the file (RasterSink::grow()): raw ENVI only, BIL unless BIP is
    /// requested.
    bool grows = false;
    StacOptions stac = {};
    const CancelFlag* cancel =
        nullptr; ///< ends commit(), which may have to copy all pixels; must outlive the sink
};

struct BandSpec {
    std::string description;                     ///< "PC1", "Alunite"
    std::map<std::string, std::string> metadata; ///< band metadata items
    /// The band (0-based) of the like source that this one equals, value for value: its metadata are copied,
    /// before those given here. -1: none.
    int like_band = -1;
    /// number * scale + offset is the meaning of a stored value; empty: not stated.
    std::optional<double> scale = {}, offset = {};
    std::string unit = {};
};

struct OutputSpec {
    stream::CubeShape shape;
    std::string type = "Float32";
    bool same_bands = false;     ///< the bands are the like source's: all their metadata are copied
    std::vector<BandSpec> bands; ///< for derived bands (same_bands = false); may be empty
    /// The spectral properties of the bands come from `bands`, one each, and not from a like source: the
    /// items wavelength, wavelength_units and fwhm reach every format in its own form. A band with a
    /// like_band copies everything from that band, except scale, offset and unit, which are given here.
    bool spectral = false;
    bool holes = false; ///< some pixels are missing: a nodata tag is set even if the source has none
    std::map<std::string, std::string> metadata; ///< further dataset metadata items
    std::vector<std::string> categories;         ///< class names of band 1
    std::vector<std::array<uint8_t, 4>> colours; ///< colour table of band 1 (red, green, blue, alpha)

    std::optional<double> nodata; ///< the nodata tag unless -dstnodata is given
    /// Tiles hold the bits of samples of this type instead of values (RasterSource::in_samples()), so that
    /// copies are exact: two or three bands for each of the output. Empty: values.
    std::string sample_type;
    bool keep_nan = false; ///< the tiles hold nodata values themselves, and NaN also stays NaN

    // For an output without a like source; ignored if there is one. `bands` may then also hold the items
    // wavelength, wavelength_units, fwhm and bbl, which reach every format in its own form.
    std::string srs; ///< "EPSG:32633", WKT, PROJ: what GDAL's tools take for -a_srs
    std::optional<std::array<double, 6>> geotransform; ///< GDAL's order
    std::map<std::string, std::string>
        envi; ///< further ENVI header fields: {"default bands", "{30, 20, 10}"}
};

/// A band whose values GDAL computes when they are read, by a pixel function of the plugin gdal_HSI.
struct VirtualBand {
    std::string function; ///< "hsi_project"
    /// Its own arguments. Those about values that do not count (nodata, masks, dst_nodata) are added.
    std::vector<std::pair<std::string, std::string>> arguments;
    std::vector<int> bands; ///< of the like source (0-based) that it computes from; empty: all
    std::string further;    ///< a raster of the output's size; its only band is the last source; empty: none
};

/// True when positions in this SRS are angles. Throws UsageError when PROJ does not know it.
bool is_geographic(const std::string& srs);

/// Everything that can be refused before work is done: an existing destination without overwrite, an unknown
/// extension or driver, a driver that cannot hold the bands, the type or the creation options, a folder that
/// does not exist or cannot be written, a destination that is the source. Throws Error or UsageError.
void check_output(const OutputOptions& options, const OutputSpec& spec);
/// The same when the source for create_sink() is known, and so its nodata.
void check_output(const OutputOptions& options, const OutputSpec& spec, const RasterSource& like);

/// True when -of or the extension means a VRT or a virtual scene (.hsi). Such an output has no pixels:
/// write_virtual() makes it, check_output() and create_sink() refuse it.
bool is_virtual(const OutputOptions& options);
/// True of a scene that computes; its description is a VRT's.
bool is_computed(const OutputOptions& options);
/// "a VRT" or "an .hsi", for messages.
const char* virtual_kind(const OutputOptions& options);
/// As check_output(), for an output without pixels. Also refuses creation options, and for a VRT a source
/// that it cannot open (-if).
void check_virtual(const OutputOptions& options, const OutputSpec& spec, const RasterSource& like);
/// Writes the VRT, complete or not at all, at once or with all outputs of OutputOptions::run: georeference,
/// names, legend and nodata as create_sink() has them, and a derived band for each of `bands`. Sources on the
/// local file system are named relative to the VRT. Throws Error.
void write_virtual(const OutputOptions& options, const OutputSpec& spec, const RasterSource& like,
                   const std::vector<VirtualBand>& bands);
/// Writes the scene that computes `link` of `like`, in the same way. Throws Error.
void write_virtual(const OutputOptions& options, const OutputSpec& spec, const RasterSource& like,
                   const stream::Link& link);

/// The compression of an output's file, in the words of -co COMPRESS; empty: none, or unknown. Throws
/// UsageError for an unknown driver.
std::string compression_of(const OutputOptions& options);
/// The expected result of takes_bands() of such a sink, for plans, as far as it is known before the sink is
/// made.
bool will_take_bands(const OutputOptions& options, const OutputSpec& spec);

class RasterSink;
/// check_output(), then creates the temporary file. `like` (may be null) gives georeference and metadata.
std::unique_ptr<RasterSink> create_sink(const OutputOptions& options, const OutputSpec& spec,
                                        const RasterSource* like);

/// With several ranks (parallel/ranks.h) the root makes the file, all write their tiles into it where its
/// layout is known, and the root commits it.
class RasterSink : public stream::SharedSink, public stream::BandTaker {
  public:
    /// For an output that grows (OutputOptions::grows): its first `lines` lines have been written. It appears
    /// under its name, and its header states these lines; readers see whole lines. Lines may be written
    /// beyond those that it was created with. commit() leaves it as it is then. Throws Error.
    virtual void grow(int64_t lines) = 0;

    virtual bool raw_access() const = 0;      ///< pwrite instead of RasterIO
    virtual uint64_t cache_bytes() const = 0; ///< GDAL block cache for writing tiles
    virtual std::string driver() const = 0;
    /// The replacement for NaN: -dstnodata, the source's value, or a chosen one for an output with holes (NaN
    /// for floats, the lowest value of signed integers, 0 of unsigned ones). Empty: integer types store 0,
    /// floats NaN.
    virtual std::optional<double> nodata() const = 0;

    /// Flushes, closes, checks for errors and renames, or leaves the name to OutputOptions::run. Formats that
    /// GDAL makes of a finished raster only (COG, PNG) are made here. Throws Error, and Cancelled when
    /// options.cancel was set; the destination is then untouched.
    virtual void commit() = 0;
};

} // namespace hsi::raster
