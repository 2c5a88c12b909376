// SPDX-License-Identifier: MIT
// All facts about a scene except its pixels. They are read from any GDAL dataset, cut to the selected bands
// and the window, and written to any other dataset. Formats store band metadata in different forms, and this
// code reads and writes all of them. The forms are band items (wavelength, wavelength_units, fwhm, bbl), the
// ENVI header or domain, the IMAGERY domain, and dataset items with one element per band.
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

/// Metadata items by domain, as GDAL stores them. An item is "KEY=value" or, in domains whose names begin
/// with xml:, a whole document.
using MetadataDomains = std::map<std::string, std::vector<std::string>>;

/// The number of a band (from 1 on) in the scene from which a file was made. The numbers are written if the
/// file has only some bands of that scene, or another order, and not all wavelengths are known.
/// source_band_item is the name of an item of each band; source_band_field is the name of a list in an ENVI
/// header.
inline constexpr const char* source_band_item = "HSI_SOURCE_BAND";
inline constexpr const char* source_band_field = "band numbers";

struct BandMetadata {
    int file_band = 0;   ///< number of the band in the file, from 1
    int source_band = 0; ///< number that source_band_item states; 0: not stated
    GDALDataType type = GDT_Unknown;
    GDALColorInterp interpretation = GCI_Undefined;
    std::string description;
    std::optional<double> scale, offset;
    std::string unit;
    std::vector<std::string> categories;
    std::shared_ptr<const GDALColorTable> colours;
    std::optional<NodataValue> nodata;
    MetadataDomains domains;
    /// The texts in the file; empty if missing.
    std::string wavelength, fwhm, wavelength_units, bbl;
    double wavelength_nm = 0, fwhm_nm = 0; ///< NaN if unknown
    bool bad() const;                      ///< whether the bad band list marks the band as bad
};

struct GroundControlPoint {
    std::string id, info;
    double pixel = 0, line = 0; ///< pixel coordinates in the file
    double x = 0, y = 0, z = 0;
};

struct SceneMetadata {
    std::string driver;
    int file_bands = 0;
    /// The window of the scene in pixels of the file. srs, geotransform and gcps refer to the whole file;
    /// write_metadata() converts them to the window.
    Rect window;
    std::shared_ptr<const OGRSpatialReference> srs, gcp_srs;
    std::optional<std::array<double, 6>> geotransform;
    std::vector<GroundControlPoint> gcps;
    MetadataDomains domains;
    EnviHeader envi;                 ///< all fields of the ENVI header or of the domain ENVI
    std::vector<BandMetadata> bands; ///< the selected bands, in order
    bool masked = false;             ///< the source has a mask in addition to nodata values
    std::vector<std::string> notes;  ///< assumptions about the file, without the file name
    /// True if the file declares wavelengths in micrometres as nanometres. The unit in `bands` has then been
    /// corrected.
    bool told_nanometres = false;

    /// Computes the geotransform of the window. Returns false if the scene does not have a geotransform.
    bool window_geotransform(double (&gt)[6]) const;
};

/// Returns the band numbers to store in an output: the numbers that the file of the scene states
/// (source_band_item), or else the numbers of the bands in this file. Empty if the numbers are not needed:
/// all wavelengths are known, or the file states no numbers and the output has all its bands in the same
/// order.
std::vector<int> told_band_numbers(const SceneMetadata& scene);

/// Returns true if a band has a scale other than 1 or an offset other than 0. Scale 1 and offset 0 do not
/// count, because some drivers return them by default. Gains and offsets in the ENVI header are not
/// considered.
bool has_own_scales(const SceneMetadata& scene);
/// Scale, offset and unit of the selected bands. If `own_scales` is true (has_own_scales()), scale and offset
/// come from the metadata of the bands, otherwise from the ENVI header.
struct BandScales {
    std::vector<double> scale, offset; ///< one value per band
    std::vector<std::string> unit;
    bool any = false; ///< the scale of some band differs from 1, or its offset from 0
};
BandScales scales_of(const SceneMetadata& scene, bool own_scales);

/// Reads all metadata of a dataset; the window is the whole file. A VRT without wavelengths gets the
/// wavelengths of its sources (virtual_sources.h). `depth` is the nesting depth of this dataset within VRTs.
SceneMetadata read_metadata(GDALDataset& dataset, int depth = 0);

/// Returns GDAL's geotransform, corrected for ENVI headers with a rotated map. ENVI rotates the map around
/// the reference pixel, but GDAL (also 3.12) rotates it around the first pixel of the file. `header` is the
/// header of the dataset.
std::optional<std::array<double, 6>> geotransform_of(GDALDataset& dataset, const EnviHeader& header);

/// Returns the code of an SRS, such as "EPSG:32611"; empty if no code is found. If the SRS does not state its
/// code, the code of an SRS that differs only in its name is used. GDAL, for example, names the SRS of ENVI's
/// map info "unnamed".
std::string code_of_srs(const OGRSpatialReference& srs);

/// Returns the scene with other bands. The metadata of the old bands is dropped; all other metadata is kept.
SceneMetadata with_bands(const SceneMetadata& scene, std::vector<BandMetadata> bands);

/// Returns the nodata value of a band. Values of 64-bit integers are exact.
std::optional<NodataValue> nodata_of(GDALRasterBand& band);

/// Writes the georeference of the window and the metadata domains. With same_bands, also writes all metadata
/// of the bands; the destination then has as many bands as `scene.bands`. ENVI fields are not written to an
/// ENVI destination, because GDAL's driver omits some fields and repeats others in a side file.
/// finish_envi_header() makes the header with these fields after the dataset was closed.
void write_metadata(const SceneMetadata& scene, bool same_bands, GDALDataset& destination);

/// Sets scale and offset of a band. Does nothing for FITS files, because GDAL's driver applies the scale when
/// it reads, and rounds integers.
void set_scale(GDALRasterBand& band, std::optional<double> scale, std::optional<double> offset);

/// Writes the metadata of band `index` of the scene to `destination`, a band of a dataset whose other bands
/// do not come from the scene.
void write_band_metadata(const SceneMetadata& scene, size_t index, GDALRasterBand& destination);

/// Returns the ENVI header fields that an output inherits from the scene: the fields of scene.envi without
/// those about storage and georeference. If `same_bands` is true, lists are cut to the selected bands;
/// otherwise the bands are new, and lists and fields about bands are left out.
EnviHeader inherited_envi_fields(const SceneMetadata& scene, bool same_bands);

/// Returns the header text that GDAL wrote (`written`), completed with the ENVI fields of the scene.
std::string finish_envi_header(const std::string& written, const SceneMetadata& scene, bool same_bands);

/// Returns true if wavelengths up to `largest` are declared as nanometres, but must be micrometres because
/// they are below 100. This is the most common error in units.
bool are_micrometres(double largest, const std::string& units);

/// Converts a value in one of ENVI's units ("Micrometers", "nm", "Wavenumber" ...) to nanometres; NaN if the
/// unit is not a unit of wavelengths. If `units` is empty, the unit is chosen by `guess`, the largest
/// wavelength of the scene.
double to_nanometres(double value, const std::string& units, double guess);

std::string upper(std::string s);
std::string lower(std::string s);
bool starts_with(const std::string& s, const char* prefix);
std::string number_text(double v); ///< with 15 significant digits

/// Returns KEY for "KEY=value"; GDAL also allows ':' as separator.
std::string item_key(const std::string& item);
std::string item_value(const std::string& item);

/// Returns the item with this key, ignoring case; null if absent.
const std::string* find_item(const std::vector<std::string>& items, const char* key);
/// Returns the value of an item in a domain, as find_item() finds it; empty if the item does not exist.
std::string value_of(const MetadataDomains& domains, const char* domain, const char* key);
/// Replaces the value of the item with this key, or adds the item.
void set_item(std::vector<std::string>& items, const std::string& key, const std::string& value);

CPLStringList to_csl(const std::vector<std::string>& items);

} // namespace hsi::raster
