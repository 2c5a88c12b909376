// SPDX-License-Identifier: MIT
#include "raster/products/product.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"
#include "raster/drivers.h"
#include "raster/gdal_errors.h"
#include "raster/hdf5/hdf5_references.h"
#include "raster/hdf5/netcdf_classic.h"
#include "raster/metadata/envi_file.h"
#include "raster/metadata/spectral_metadata.h"
#include "raster/products/matlab_scene.h"
#include "raster/products/product_readers.h"
#include "raster/regular_file.h"
#include "raster/sample_convert.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace hsi::raster {
namespace {

/// The readers of products whose cubes are arrays, in the order in which they are tried.
constexpr std::optional<Product> (*array_products[])(const ArrayFile&) = {
    read_emit, read_prisma, read_neon, read_tanager, read_aviris, read_pace, read_hico};

constexpr size_t looked_at = 1024; ///< number of bytes that are examined at the beginning of a file
constexpr std::array hdf5_extensions = {"h5", "he5", "hdf5", "hdf", "nc", "nc4"};

bool begins(const std::string& text, const char* with, size_t length) {
    return text.compare(0, length, with, length) == 0;
}

/// Returns whether the file is HDF5. An HDF5 file may begin with other bytes (a user block); it is then
/// recognised only with an extension of HDF5.
bool is_hdf5(const std::string& text, const std::string& path) {
    if (begins(text, "\x89HDF\r\n\x1a\n", 8)) return true;
    const std::string extension = extension_of(path);
    return std::any_of(hdf5_extensions.begin(), hdf5_extensions.end(),
                       [&](const char* each) { return EQUAL(extension.c_str(), each); }) &&
           leads_to_hdf5(path);
}
bool is_netcdf(const std::string& text) { // only the classic formats, because netCDF-4 is HDF5
    return begins(text, "CDF\x01", 4) || begins(text, "CDF\x02", 4) || begins(text, "CDF\x05", 4);
}
bool is_tiff(const std::string& text) { return begins(text, "II", 2) || begins(text, "MM", 2); }
/// Returns whether a text begins like XML: with a byte-order mark, a comment or an element, and without
/// control characters. The check is strict because the samples of a raw file may begin with "<".
bool is_xml(std::string text) {
    const std::string mark = text.substr(0, 2);
    if (mark == "\xff\xfe" || mark == "\xfe\xff") text = utf8_text(std::move(text));
    const auto control = [](unsigned char c) { return c < ' ' && c != '\t' && c != '\r' && c != '\n'; };
    const size_t at = text.find_first_not_of("\xef\xbb\xbf \t\r\n");
    if (at == std::string::npos || text[at] != '<' || std::any_of(text.begin(), text.end(), control))
        return false;
    const std::string rest = text.substr(at + 1);
    if (rest.rfind("?xml", 0) == 0 || rest.rfind("!--", 0) == 0 || rest.rfind("!DOCTYPE", 0) == 0)
        return true;
    const auto in_name = [](unsigned char c) {
        return std::isalnum(c) != 0 || std::strchr("_:.-", c) != nullptr || c >= 0x80;
    };
    const size_t end =
        static_cast<size_t>(std::find_if_not(rest.begin(), rest.end(), in_name) - rest.begin());
    return end > 0 && end < rest.size() && std::strchr("0123456789.-", rest[0]) == nullptr &&
           std::strchr("> /\t\r\n", rest[end]) != nullptr;
}

/// Returns true for a folder that is a Zarr dataset, and for a Kerchunk text, which presents parts of other
/// files as a Zarr dataset.
bool is_zarr(const std::string& path, const std::string& text) {
    const auto holds = [&](const char* name) { return is_there(join_path(path, name)); };
    if (text.empty())
        return holds(".zgroup") || holds(".zmetadata") || holds(".zarray") || holds("zarr.json");
    return text[0] == '{' &&
           (text.find("\"refs\"") != std::string::npos || text.find(".zgroup\"") != std::string::npos);
}

/// Returns the names of all arrays that are read later.
std::vector<std::string> arrays_of(const Product& product) {
    std::vector<std::string> names;
    for (const CubePart& part : product.parts)
        names.push_back(part.array);
    for (const std::string& name : {product.longitude, product.latitude})
        if (!name.empty()) names.push_back(name);
    if (product.lookup) names.insert(names.end(), {product.lookup->sample, product.lookup->line});
    return names;
}

/// Returns the number of bands of a GeoTIFF that does not state wavelengths; 0 for other files.
int bands_without_wavelengths(const std::string& path) {
    const GdalErrors quiet;
    const char* const drivers[] = {"GTiff", nullptr};
    const DatasetHandle dataset(GDALDataset::FromHandle(
        GDALOpenEx(path.c_str(), GDAL_OF_RASTER | GDAL_OF_READONLY, drivers, nullptr, nullptr)));
    if (!dataset) return 0;
    const int bands = dataset->GetRasterCount();
    if (bands < 2) return 0;
    GDALRasterBand* const band = dataset->GetRasterBand(1);
    return band->GetMetadataItem("wavelength") || band->GetMetadataItem("CENTRAL_WAVELENGTH_UM", "IMAGERY")
               ? 0
               : bands;
}

/// Returns whether the folder is a Zarr dataset of version 3.
bool is_later_zarr(const std::string& path) {
    const std::string text = beginning_of_file(join_path(path, "zarr.json"), looked_at);
    return text.find("\"zarr_format\"") != std::string::npos;
}

/// Returns the product with only one of its arrays; nullopt if the product does not contain the array.
std::optional<Product> part_called(const Product& product, const std::string& name) {
    for (size_t p = 0; p < product.parts.size(); ++p) {
        if (!names_array(name, product.parts[p].array)) continue;
        Product part = product;
        part.parts = {product.parts[p]};
        part.bands.clear();
        for (ProductBand band : product.bands)
            if (static_cast<size_t>(band.part) == p) {
                band.part = 0;
                part.bands.push_back(std::move(band));
            }
        return part;
    }
    return std::nullopt;
}

std::shared_ptr<const Product> shared(std::optional<Product> product) {
    return product ? std::make_shared<const Product>(std::move(*product)) : nullptr;
}

void fill_band(const Product& product, const ProductBand& from, double largest, BandMetadata& band) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    band.wavelength = from.wavelength;
    band.fwhm = from.fwhm;
    band.wavelength_units = product.wavelength_units;
    if (from.good) band.bbl = *from.good ? "1" : "0";
    if (!from.description.empty()) band.description = from.description;
    if (from.scale) band.scale = from.scale;
    if (from.offset) band.offset = from.offset;
    if (!product.unit.empty()) band.unit = product.unit;
    if (!band.nodata)
        band.nodata =
            product.parts.empty() ? product.nodata : product.parts[static_cast<size_t>(from.part)].nodata;
    const auto nm = [&](const std::string& text) {
        return text.empty() ? nan : to_nanometres(CPLAtof(text.c_str()), product.wavelength_units, largest);
    };
    band.wavelength_nm = nm(from.wavelength);
    band.fwhm_nm = nm(from.fwhm);
}

/// Adds the metadata domain GEOLOCATION for gdalwarp -geoloc. The domain must name rasters: GDAL's drivers
/// HDF5 and Zarr present arrays with two axes as stored.
void add_geolocation(const Product& product, SceneMetadata& scene) {
    if (product.longitude.empty() || !product.srs) return;
    const auto subdataset = [&](std::string array) {
        if (product.driver == "HDF5") std::replace(array.begin(), array.end(), ' ', '_');
        // A name of HDF5 needs two slashes before the array, a name of another driver one or none.
        if (product.driver != "HDF5") array.erase(0, 1);
        char* const full = is_local(product.path) ? ::realpath(product.path.c_str(), nullptr) : nullptr;
        const std::string path = full ? full : product.path;
        std::free(full);
        if (product.driver == "netCDF") return "NETCDF:\"" + path + "\":" + array;
        return (product.driver == "Zarr" ? "ZARR:\"" : "HDF5:\"") + path + "\":/" + array;
    };
    char* wkt = nullptr;
    product.srs->exportToWkt(&wkt);
    scene.domains["GEOLOCATION"] = {"SRS=" + std::string(wkt ? wkt : ""),
                                    "X_DATASET=" + subdataset(product.longitude),
                                    "X_BAND=1",
                                    "Y_DATASET=" + subdataset(product.latitude),
                                    "Y_BAND=1",
                                    "PIXEL_OFFSET=0",
                                    "LINE_OFFSET=0",
                                    "PIXEL_STEP=1",
                                    "LINE_STEP=1",
                                    "GEOREFERENCING_CONVENTION=PIXEL_CENTER"};
    CPLFree(wkt);
}

/// Returns the product in a file of arrays. Only a library can have several products.
std::vector<Product> in_arrays(const std::string& path, const WantedArray& wanted) {
    const std::string of_file = file_of_subdataset(path), name = array_of_subdataset(path);
    check_netcdf_length(of_file);
    const auto file = ArrayFile::open(of_file);
    const GdalErrors quiet; // at each query of an array, the netCDF library reports missing attributes
    const auto group = file ? file->group("/") : nullptr;
    if ((!group || (group->GetMDArrayNames().empty() && group->GetGroupNames().empty())) &&
        is_later_zarr(of_file))
        throw Error("'" + of_file + "' is a Zarr dataset of version 3, which this GDAL (" +
                        GDALVersionInfo("RELEASE_NAME") + ") cannot open",
                    "Write it as version 2, or use GDAL 3.8 or newer.");
    if (!file) return {};
    const bool plane = wanted.use == WantedArray::Use::plane,
               library = wanted.use == WantedArray::Use::library;
    std::optional<Product> product;
    for (const auto read : array_products)
        if (!product && !(plane && name.empty()) && (product = read(*file)) && !name.empty())
            product = part_called(*product, name);
    if (!product) product = read_array(*file, name, wanted);
    std::vector<Product> products;
    if (product)
        products.push_back(std::move(*product));
    else if (library && name.empty())
        products = read_spectra(*file, wanted);
    const auto root = file->group("/");
    for (Product& each : products) {
        check_product(each);
        check_hdf5_sources(of_file, arrays_of(each));
        for (const auto& [start, end] : {std::pair("time_coverage_start", "time_coverage_end"),
                                         std::pair("Product_StartTime", "Product_StopTime")}) {
            if (!each.time_start.empty()) break;
            each.time_start = attribute_text(root, start);
            each.time_end = attribute_text(root, end);
        }
    }
    return products;
}

std::optional<Product> one_in_arrays(const std::string& path, const WantedArray& wanted) {
    auto products = in_arrays(path, wanted);
    return products.empty() ? std::nullopt : std::optional(std::move(products.front()));
}

} // namespace

std::optional<Product> product_in_arrays(const std::string& path) { return one_in_arrays(path, {}); }

uint64_t CubePart::chunk_bytes() const {
    uint64_t bytes = static_cast<uint64_t>(GDALGetDataTypeSizeBytes(type));
    for (const int64_t n : chunk)
        bytes *= static_cast<uint64_t>(n);
    return bytes;
}

int64_t CubePart::chunk_samples(int64_t whole) const {
    const int64_t n = chunk[static_cast<size_t>(sample_axis)];
    return n > 0 ? std::min(n, whole) : whole;
}

SceneFile find_scene(const std::string& path) {
    if (may_lead_to_matlab(path))
        if (auto product = matlab_product(path)) return {path, std::move(product), {}, {}};
    SceneFile scene{path, nullptr, {}, {}};
    if (file_of_subdataset(path) != path) {
        scene.product = shared(product_in_arrays(path));
        return scene;
    }
    const std::string text = beginning_of_file(path, looked_at);
    const bool arrays = is_hdf5(text, path) || is_netcdf(text) || is_zarr(path, text);
    const bool known = arrays || is_tiff(text) || is_xml(text);
    if (const auto samples = known && !text.empty() ? all_samples(path) : std::nullopt) {
        scene.header = samples->header;
    } else if (arrays) {
        scene.product = shared(product_in_arrays(path));
        if (!(scene.product && scene.product->of_agency) && is_hdf5(text, path) &&
            EQUAL(extension_of(path).c_str(), "mat"))
            scene.notes.push_back("'" + path +
                                  "' does not begin like a MATLAB file: it is read as an HDF5 file, with its "
                                  "axes in the order of HDF5, not of MATLAB");
    } else if (is_tiff(text)) {
        if (const int bands = bands_without_wavelengths(path))
            scene.product = shared(find_metadata_xml(path, bands));
        if (scene.product) scene.path = scene.product->path;
    } else if (const auto envi = envi_file_of_header(path)) {
        scene.path = envi->data;
        scene.header = envi->header;
    } else if (is_xml(text) && text.find("VRTDataset") == std::string::npos) {
        scene.product = shared(read_metadata_xml(path, ""));
        if (scene.product) scene.path = scene.product->path;
    }
    return scene;
}

bool may_hold_arrays(const std::string& path) {
    const std::string file = file_of_subdataset(path);
    if (is_pipe_or_device(file)) return false;
    const std::string text = beginning_of_file(file, looked_at);
    return (is_hdf5(text, file) || is_netcdf(text) || is_zarr(file, text)) && !all_samples(file);
}

std::shared_ptr<const Product> find_plane(const std::string& path, int64_t lines, int64_t samples) {
    if (!may_hold_arrays(path)) return nullptr;
    return shared(one_in_arrays(path, {WantedArray::Use::plane, lines, samples}));
}

std::vector<Product> find_spectra(const std::string& path, int64_t bands) {
    return in_arrays(path, {WantedArray::Use::library, 0, 0, bands});
}

std::vector<std::string> product_files(const std::string& path) {
    try {
        const SceneFile scene = find_scene(path);
        if (scene.product) return scene.product->files;
        return scene.path == path ? std::vector<std::string>() : std::vector{scene.path};
    } catch (const Error&) { // the error is reported when the scene is opened
        return {};
    }
}

SceneMetadata scene_of(const Product& product) {
    SceneMetadata scene;
    scene.driver = product.driver;
    scene.file_bands = static_cast<int>(product.bands.size());
    scene.window = Rect{0, 0, product.samples, product.lines};
    for (size_t b = 0; b < product.bands.size(); ++b) {
        BandMetadata band;
        band.file_band = static_cast<int>(b) + 1;
        band.type = product.parts[static_cast<size_t>(product.bands[b].part)].type;
        scene.bands.push_back(std::move(band));
    }
    if (scene.bands.size() == 1) scene.bands.front().categories = product.class_names;
    complete_scene(product, scene);
    return scene;
}

void complete_scene(const Product& product, SceneMetadata& scene) {
    if (scene.bands.size() != product.bands.size())
        throw Error("'" + product.path + "' (" + product.name + ") has " +
                        counted(scene.bands.size(), "band") + ", but the product states " +
                        std::to_string(product.bands.size()),
                    "Keep the files of one product together.");
    double largest = 0;
    for (const ProductBand& band : product.bands)
        largest = std::max(largest, CPLAtof(band.wavelength.c_str()));
    for (size_t b = 0; b < scene.bands.size(); ++b)
        fill_band(product, product.bands[b], largest, scene.bands[b]);
    if (product.geotransform) scene.geotransform = product.geotransform;
    // Without a geotransform, the SRS applies only to the arrays of longitude and latitude.
    if (product.srs && product.geotransform) scene.srs = product.srs;
    if (!product.longitude.empty()) add_geolocation(product, scene);
    if (!product.attributes.empty()) {
        auto& items = scene.domains[""];
        items.insert(items.end(), product.attributes.begin(), product.attributes.end());
    }
    for (const auto& [key, time] : {std::pair("time_coverage_start", &product.time_start),
                                    std::pair("time_coverage_end", &product.time_end)})
        if (!time->empty()) scene.domains[""].push_back(std::string(key) + "=" + *time);
}

std::vector<std::pair<double, double>> locations_of(const Product& product,
                                                    const std::vector<std::pair<int64_t, int64_t>>& pixels) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    std::vector<std::pair<double, double>> places(pixels.size(), {none, none});
    const auto file = product.longitude.empty() ? nullptr : ArrayFile::open(product.path);
    if (!file) return places;
    const GdalErrors quiet;
    const auto lon = file->array(product.longitude), lat = file->array(product.latitude);
    if (!lon || !lat) return places;
    const auto degrees = GDALExtendedDataType::Create(GDT_Float64);
    for (size_t k = 0; k < pixels.size(); ++k) {
        const GUInt64 at[2] = {static_cast<GUInt64>(pixels[k].first), static_cast<GUInt64>(pixels[k].second)};
        const size_t one[2] = {1, 1};
        double x = none, y = none;
        if (!lon->Read(at, one, nullptr, nullptr, degrees, &x) ||
            !lat->Read(at, one, nullptr, nullptr, degrees, &y))
            continue;
        constexpr double turn = 360, pole = 90;
        if (std::fabs(x) <= turn && std::fabs(y) <= pole) places[k] = {x, y};
    }
    return places;
}

} // namespace hsi::raster
