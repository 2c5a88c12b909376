// SPDX-License-Identifier: MIT
// All facts about a scene except its pixels: read from any GDAL dataset, cut to the selected bands and the
// window, and written to any other dataset. Formats store band data in different forms. All forms are read
// and written: band items (wavelength, wavelength_units, fwhm, bbl), the ENVI header or domain, the IMAGERY
// domain, and dataset items with one element per band.
#pragma once

#include "core/rect.h"
#include "raster/codec/nodata_value.h"
#include "raster/metadata/envi_header.h"

#include <cpl_string.h>
#include <gdal_priv.h>
#include <ogr_spatialref.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// Items as GDAL stores them ("KEY=value"; a whole document for xml: domains), by domain.
using MetadataDomains = std::map<std::string, std::vector<std::string>>;

/// The number of a band (from 1 on) in the scene that a file was made from. It is written if the file has
/// only some of that scene's bands and no wavelengths to identify them: as an item of the band, and in an
/// ENVI file as a list in its header.
inline constexpr const char* source_band_item = "HSI_SOURCE_BAND";
inline constexpr const char* source_band_field = "band numbers";

struct BandMetadata {
    int file_band = 0;   ///< 1-based
    int source_band = 0; ///< the number that the file states; 0: none
    GDALDataType type = GDT_Unknown;
    GDALColorInterp interpretation = GCI_Undefined;
    std::string description;
    std::optional<double> scale, offset;
    std::string unit;
    std::vector<std::string> categories;
    std::shared_ptr<const GDALColorTable> colours;
    std::optional<NodataValue> nodata;
    MetadataDomains domains;
    /// As written in the file; empty if missing.
    std::string wavelength, fwhm, wavelength_units, bbl;
    double wavelength_nm = 0, fwhm_nm = 0; ///< NaN when unknown
    bool bad() const;                      ///< marked by the bad-band list
};

struct GroundControlPoint {
    std::string id, info;
    double pixel = 0, line = 0; ///< in the file's pixels
    double x = 0, y = 0, z = 0;
};

struct SceneMetadata {
    std::string driver;
    int file_bands = 0;
    Rect window; ///< in the file's pixels; the georeference refers to the whole file until it is written
    std::shared_ptr<const OGRSpatialReference> srs, gcp_srs;
    std::optional<std::array<double, 6>> geotransform;
    std::vector<GroundControlPoint> gcps;
    MetadataDomains domains;
    EnviHeader envi;                 ///< all fields of the ENVI header or domain
    std::vector<BandMetadata> bands; ///< the selected bands, in order
    bool masked = false;             ///< the source has a mask in addition to nodata values
    std::vector<std::string> notes;  ///< assumptions about the file, without its name
    bool told_nanometres = false;    ///< wavelengths in micrometres were declared as nanometres; the unit in
                                     ///< `bands` is right

    /// Returns the geotransform of the window; false without one.
    bool window_geotransform(double (&gt)[6]) const;
};

/// Returns the band numbers that an output with the scene's bands states: the scene's own numbers, or the
/// numbers in the file. Empty if they are not needed: all bands of the file in their order, or all
/// wavelengths are known.
std::vector<int> told_band_numbers(const SceneMetadata& scene);

/// Returns true if a band itself has a scale or an offset; lists of the ENVI header do not count. Some
/// drivers return 1 and 0 if a file states none.
bool has_own_scales(const SceneMetadata& scene);
/// The scale, offset and unit of the selected bands, from the bands' own scales or from the ENVI header.
struct BandScales {
    std::vector<double> scale, offset; ///< one per band
    std::vector<std::string> unit;
    bool any = false; ///< some are not 1 and 0
};
BandScales scales_of(const SceneMetadata& scene, bool own_scales);

/// Reads all metadata, with all bands and the whole file as window. A VRT without wavelengths gets those of
/// its sources (virtual_sources.h); `depth`: the number of VRTs around it.
SceneMetadata read_metadata(GDALDataset& dataset, int depth = 0);

/// Returns GDAL's geotransform. For an ENVI header whose map is rotated around its reference pixel, corrects
/// it: GDAL (also 3.12) assumes that this is the file's first pixel. `header` is the dataset's.
std::optional<std::array<double, 6>> geotransform_of(GDALDataset& dataset, const EnviHeader& header);

/// Returns "EPSG:32611", also if the SRS does not state its code but equals it except for its name (ENVI's
/// map info gives "unnamed"); empty without a code.
std::string code_of_srs(const OGRSpatialReference& srs);

/// Returns the scene with other bands. Drops the metadata of its own bands and keeps everything else.
SceneMetadata with_bands(const SceneMetadata& scene, std::vector<BandMetadata> bands);

/// Returns the band's nodata value, without loss for 64-bit types.
std::optional<NodataValue> nodata_of(GDALRasterBand& band);

/// Writes georeference and metadata domains of the window; with same_bands also all metadata of single bands
/// (the destination then has as many bands as scene.bands). An ENVI destination gets no ENVI fields here,
/// because GDAL's driver drops some and repeats others in a side file: finish_envi_header() writes them after
/// closing.
void write_metadata(const SceneMetadata& scene, bool same_bands, GDALDataset& destination);

/// Sets the given values, except in FITS files: GDAL's driver applies their scale when it reads, and rounds
/// integers.
void set_scale(GDALRasterBand& band, std::optional<double> scale, std::optional<double> offset);

/// Writes the metadata of band `index` of the scene to a band of a destination whose other bands are
/// new.
void write_band_metadata(const SceneMetadata& scene, size_t index, GDALRasterBand& destination);

/// Returns the fields of scene.envi that apply to the output: lists cut to the selected bands in their order
/// (or left out if the bands are new), without fields that describe the file's storage or georeference.
EnviHeader inherited_envi_fields(const SceneMetadata& scene, bool same_bands);

/// Completes the header text that GDAL wrote.
std::string finish_envi_header(const std::string& written, const SceneMetadata& scene, bool same_bands);

/// Returns whether wavelengths up to `largest` are declared as nanometres but are too short for that (below
/// 100). They are then micrometres, the most common error.
bool are_micrometres(double largest, const std::string& units);

/// Converts a number in ENVI's units ("Micrometers", "nm", "Wavenumber" ...) to nanometres; NaN for units
/// that are not for wavelengths. `guess` (the largest wavelength of the scene) decides if units are empty.
double to_nanometres(double value, const std::string& units, double guess);

std::string upper(std::string s);
std::string lower(std::string s);
bool starts_with(const std::string& s, const char* prefix);
std::string number_text(double v); ///< 15 digits

/// Returns KEY for "KEY=value"; GDAL also allows ':' as separator.
std::string item_key(const std::string& item);
std::string item_value(const std::string& item);

/// Returns the item with this key, ignoring case; null if absent.
const std::string* find_item(const std::vector<std::string>& items, const char* key);
/// Returns the value of such an item in a domain; empty if absent.
std::string value_of(const MetadataDomains& domains, const char* domain, const char* key);
/// Replaces the item with that key, or adds it.
void set_item(std::vector<std::string>& items, const std::string& key, const std::string& value);

CPLStringList to_csl(const std::vector<std::string>& items);

} // namespace hsi::raster
