// SPDX-License-Identifier: MIT
// Reads products whose cubes are arrays of an HDF5 or netCDF-4 file.
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "raster/gdal_errors.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/products/array_axes.h"
#include "raster/products/array_facts.h"
#include "raster/products/product_readers.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

namespace hsi::raster {
namespace {

constexpr const char* wgs84 = "EPSG:4326";

std::string texts_at(const Numbers& numbers, size_t at, size_t count) {
    return numbers.size() == count ? numbers.texts[at] : std::string();
}

/// Sets the geographic lookup table (GLT) of the product. Nothing is set if the file does not state the
/// position of the orthorectified grid.
void take_lookup(Product& product, const ArrayFile& file, const std::string& sample,
                 const std::string& line) {
    const auto x = file.array(sample), y = file.array(line);
    const auto root = file.group("/");
    const Numbers place = attribute_numbers(root, "geotransform");
    auto srs = srs_from(attribute_text(root, "spatial_ref"));
    if (!x || !y || place.size() != 6 || !srs) return;
    LookupArrays lookup;
    const auto &axes = x->GetDimensions(), &others = y->GetDimensions();
    if (axes.size() != 2 || others.size() != 2 || axes[0]->GetSize() != others[0]->GetSize() ||
        axes[1]->GetSize() != others[1]->GetSize())
        refuse_product(product, "has lookup tables of different sizes: " + sample + ", " + line);
    lookup.sample = sample;
    lookup.line = line;
    lookup.lines = static_cast<int64_t>(axes[0]->GetSize());
    lookup.samples = static_cast<int64_t>(axes[1]->GetSize());
    std::copy(place.values.begin(), place.values.end(), lookup.geotransform.begin());
    lookup.srs = std::move(srs);
    product.lookup = std::move(lookup);
}

/// Returns the pair of numbers after `key` in a structure text of HDF-EOS, which has the form "key=(1,2)".
std::optional<std::pair<double, double>> pair_behind(const std::string& text, const char* key) {
    const std::string found = std::string(key) + "=(";
    const size_t at = text.find(found);
    if (at == std::string::npos) return std::nullopt;
    std::string_view rest = std::string_view(text).substr(at + found.size());
    const auto skip = [&] { rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size())); };
    skip();
    const auto x = take_number(rest);
    if (!x || rest.empty() || rest.front() != ',') return std::nullopt;
    rest.remove_prefix(1);
    skip();
    const auto y = take_number(rest);
    if (!y) return std::nullopt;
    return std::pair{*x, *y};
}

std::string digits_of(double value) {
    return value == std::floor(value) ? std::to_string(std::llround(value)) : std::to_string(value);
}

} // namespace

Product begin_product(const ArrayFile& file, std::string name) {
    Product product;
    product.name = std::move(name);
    product.path = file.path();
    product.driver = file.driver();
    product.files = {file.path()};
    return product;
}

void add_bands(Product& product, const Numbers& wavelengths, const Numbers& fwhm, const Numbers& good) {
    const size_t count = wavelengths.size();
    for (const auto& [what, list] : {std::pair{"widths", &fwhm}, {"marks of good bands", &good}})
        if (list->size() != 0 && list->size() != count)
            refuse_product(product, "has " + std::to_string(list->size()) + " " + what + " for " +
                                        counted(count, "band"));
    for (size_t b = 0; b < count; ++b) {
        ProductBand band;
        band.part = static_cast<int>(product.parts.size()) - 1;
        band.index = static_cast<int64_t>(b);
        band.wavelength = wavelengths.texts[b];
        band.fwhm = texts_at(fwhm, b, count);
        if (good.size() == count) band.good = good.values[b] != 0;
        product.bands.push_back(std::move(band));
    }
}

std::optional<std::array<double, 6>> grid_of_centres(const Numbers& x, const Numbers& y) {
    if (x.size() < 2 || y.size() < 2) return std::nullopt;
    const double dx = (x.values.back() - x.values.front()) / static_cast<double>(x.size() - 1),
                 dy = (y.values.back() - y.values.front()) / static_cast<double>(y.size() - 1);
    return std::array{x.values.front() - dx / 2, dx, 0.0, y.values.front() - dy / 2, 0.0, dy};
}

void take_locations(Product& product, const ArrayFile& file, const std::string& longitude,
                    const std::string& latitude) {
    for (const std::string& name : {longitude, latitude}) {
        const auto array = file.array(name);
        if (!array) return;
        const auto& axes = array->GetDimensions();
        if (axes.size() != 2 || static_cast<int64_t>(axes[0]->GetSize()) != product.lines ||
            static_cast<int64_t>(axes[1]->GetSize()) != product.samples)
            refuse_product(product, "has an array " + name + " whose size differs from the scene's");
    }
    product.longitude = longitude;
    product.latitude = latitude;
    product.srs = srs_from(wgs84);
}

void refuse_product(const Product& product, const std::string& what) {
    throw Error("'" + product.path + "' (" + product.name + ") " + what,
                "The file is damaged or cut off: download it again from the archive.");
}

std::shared_ptr<const OGRSpatialReference> srs_from(const std::string& definition) {
    const GdalErrors quiet;
    auto srs = std::shared_ptr<OGRSpatialReference>(new OGRSpatialReference(),
                                                    [](OGRSpatialReference* s) { s->Release(); });
    if (definition.empty() ||
        srs->SetFromUserInput(definition.c_str(),
                              OGRSpatialReference::SET_FROM_USER_INPUT_LIMITATIONS_get()) != OGRERR_NONE)
        return nullptr;
    srs->SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
    return srs;
}

std::shared_ptr<const OGRSpatialReference> srs_of_code(Product& product, double code) {
    auto srs = code > 0 && code < 1e9 ? srs_from("EPSG:" + std::to_string(static_cast<int>(code))) : nullptr;
    if (!srs)
        product.notes.push_back("'" + product.path + "' (" + product.name + ") has the unknown EPSG code " +
                                digits_of(code) + ": its grid has no reference system");
    return srs;
}

void check_product(Product& product) {
    const auto note = [&](const std::string& text) {
        product.notes.push_back("'" + product.path + "' (" + product.name + "): " + text);
    };
    size_t wavelengths = 0, widths = 0, scales = 0;
    double least = HUGE_VAL, most = 0;
    for (ProductBand& band : product.bands) {
        if (!band.wavelength.empty()) {
            const double w = CPLAtof(band.wavelength.c_str());
            if (w > 0 && std::isfinite(w)) {
                least = std::min(least, w);
                most = std::max(most, w);
            } else {
                band.wavelength = band.fwhm = "";
                ++wavelengths;
            }
        }
        if (!band.fwhm.empty()) {
            const double w = CPLAtof(band.fwhm.c_str());
            if (w > 0 && std::isfinite(w)) continue;
            widths += w != 0;
            band.fwhm = "";
        }
    }
    for (ProductBand& band : product.bands)
        if ((band.scale && !(std::isfinite(*band.scale) && *band.scale != 0)) ||
            (band.offset && !std::isfinite(*band.offset))) {
            band.scale.reset();
            band.offset.reset();
            ++scales;
        }
    if (wavelengths > 0)
        note(counted(wavelengths, "band has an invalid wavelength", "bands have invalid wavelengths") +
             " in the file");
    if (widths > 0)
        note(counted(widths, "band has an invalid FWHM", "bands have an invalid FWHM") + " in the file");
    if (scales > 0)
        note(counted(scales, "band has an invalid scale", "bands have an invalid scale") +
             ", which is ignored");
    if (least == most && product.bands.size() - wavelengths > 1) {
        for (ProductBand& band : product.bands)
            band.wavelength = band.fwhm = "";
        note("all bands have the same wavelength, which is impossible: the wavelengths are ignored");
    }
    if (are_micrometres(most, product.wavelength_units)) {
        product.wavelength_units = "Micrometers";
        note("its wavelengths are too small for nanometres, so they are read as micrometres");
    }
    if (const auto& gt = product.geotransform) {
        const bool finite = std::all_of(gt->begin(), gt->end(), [](double v) { return std::isfinite(v); });
        if (finite && (*gt)[1] * (*gt)[5] - (*gt)[2] * (*gt)[4] != 0) return;
        product.geotransform.reset();
        note("its grid has no extent and is ignored");
    }
}

void sort_bands(Product& product) {
    check_product(product);
    const auto key = [](const ProductBand& b) {
        return b.wavelength.empty() ? HUGE_VAL : CPLAtof(b.wavelength.c_str());
    };
    std::stable_sort(product.bands.begin(), product.bands.end(),
                     [&](const ProductBand& a, const ProductBand& b) { return key(a) < key(b); });
}

void add_part(Product& product, const ArrayFile& file, const std::string& name, size_t bands, int usual) {
    const auto array = file.array(name);
    if (!array) refuse_product(product, "has no array " + name);
    if (bands == 0) refuse_product(product, "has no wavelengths for " + name);
    const auto& axes = array->GetDimensions();
    std::string shape;
    std::vector<int> fitting, named;
    for (size_t k = 0; k < axes.size(); ++k) {
        shape += (k ? " x " : "") + std::to_string(axes[k]->GetSize());
        if (axes[k]->GetSize() == bands) fitting.push_back(static_cast<int>(k));
        if (axis_called(axes[k]->GetName()) == Axis::bands) named.push_back(static_cast<int>(k));
    }
    // Names decide before lengths, because a scene may have as many lines as bands.
    if (named.size() == 1)
        fitting.erase(std::remove_if(fitting.begin(), fitting.end(), [&](int k) { return k != named[0]; }),
                      fitting.end());
    if (axes.size() != 3 || fitting.empty())
        refuse_product(product, "has " + counted(bands, "wavelength") + ", but " + name + " is " + shape);
    CubePart part;
    part.array = name;
    take_values(product, file, array, part);
    part.band_axis = std::find(fitting.begin(), fitting.end(), usual) != fitting.end() ? usual : fitting[0];
    part.line_axis = part.band_axis == 0 ? 1 : 0;
    part.sample_axis = part.band_axis == 2 ? 1 : 2;
    const auto called = [&](int axis) { return axis_called(axes[static_cast<size_t>(axis)]->GetName()); };
    if (called(part.line_axis) == Axis::samples && called(part.sample_axis) == Axis::lines)
        std::swap(part.line_axis, part.sample_axis);
    const auto chunk = file.chunks(part.array);
    for (size_t k = 0; k < 3 && k < chunk.size(); ++k)
        part.chunk[k] = static_cast<int64_t>(chunk[k]);
    if (std::count(part.chunk.begin(), part.chunk.end(), 0) > 0) part.chunk = {};
    const auto lines = static_cast<int64_t>(axes[static_cast<size_t>(part.line_axis)]->GetSize()),
               samples = static_cast<int64_t>(axes[static_cast<size_t>(part.sample_axis)]->GetSize());
    if (!product.parts.empty() && (lines != product.lines || samples != product.samples))
        refuse_product(product, "has cubes of different sizes");
    product.lines = lines;
    product.samples = samples;
    product.parts.push_back(std::move(part));
}

/// Reads EMIT L1B radiance and L2A reflectance: NASA's netCDF-4 with the axes downtrack, crosstrack and
/// bands, or a copy without groups that xarray has saved. The geotransform of the file is not used for the
/// cube, because it describes the orthorectified grid.
std::optional<Product> read_emit(const ArrayFile& file) {
    for (const auto& [name, level] : {std::pair{"reflectance", "EMIT L2A reflectance"},
                                      {"reflectance_uncertainty", "EMIT L2A reflectance uncertainty"},
                                      {"radiance", "EMIT L1B radiance"}}) {
        const std::string cube = std::string("/") + name;
        const auto array = file.array(cube);
        if (!array || array->GetDimensionCount() != 3) continue;
        if (lower(array->GetDimensions()[0]->GetName()).find("downtrack") == std::string::npos &&
            !file.group("/sensor_band_parameters"))
            continue;
        Product product = begin_product(file, level);
        // Programs that save a dataset again may move all groups into the root.
        const bool grouped = file.group("/sensor_band_parameters") != nullptr;
        const std::string bands = grouped ? "/sensor_band_parameters/" : "/",
                          places = file.group("/location") ? "/location/" : "/";
        const Numbers wavelengths = file.list(bands + "wavelengths");
        if (wavelengths.size() == 0) {
            if (!grouped) continue; // another program has removed the list
            refuse_product(product, "has no " + bands + "wavelengths");
        }
        add_part(product, file, cube, wavelengths.size(), 2);
        add_bands(product, wavelengths, file.list(bands + "fwhm"), file.list(bands + "good_wavelengths"));
        product.unit = array->GetUnit();
        take_locations(product, file, places + "lon", places + "lat");
        take_lookup(product, file, places + "glt_x", places + "glt_y");
        return product;
    }
    return std::nullopt;
}

namespace {

/// Returns the coordinate of the outer edge of the first pixel, and sets the pixel size `step`. PRISMA states
/// coordinates of the corners or of the centres of the corner pixels. The function selects the case in which
/// the pixel size is closer to 30 m.
double grid_origin(double first, double last, int64_t count, double& step) {
    const double length = last - first, metres = 30;
    const double centres = count > 1 ? length / static_cast<double>(count - 1) : length,
                 corners = length / static_cast<double>(count);
    if (std::fabs(std::fabs(corners) - metres) < std::fabs(std::fabs(centres) - metres)) {
        step = corners;
        return first;
    }
    step = centres;
    return first - centres / 2;
}

void take_prisma_place(Product& product, const ArrayFile& file, const std::string& swath,
                       const std::string& level) {
    const auto root = file.group("/");
    const auto number = [&](const char* name) {
        return number_told(product, root, name).value_or(std::nan(""));
    };
    const double left = number("Product_ULcorner_easting"), top = number("Product_ULcorner_northing"),
                 right = number("Product_LRcorner_easting"), bottom = number("Product_LRcorner_northing"),
                 epsg = number("Epsg_Code");
    if (level == "L2D" && std::isfinite(left + top + right + bottom + epsg)) {
        std::array<double, 6> gt{};
        gt[0] = grid_origin(left, right, product.samples, gt[1]);
        gt[3] = grid_origin(top, bottom, product.lines, gt[5]);
        product.geotransform = gt;
        product.srs = srs_of_code(product, epsg);
        return;
    }
    for (const char* suffix : {"", "_VNIR", "_SWIR"}) {
        const std::string fields = swath + "/Geolocation Fields/";
        take_locations(product, file, fields + "Longitude" + suffix, fields + "Latitude" + suffix);
        if (!product.longitude.empty()) return;
    }
}

/// Returns scale and offset; a scaled value is stored value * scale + offset. Level 2 maps the range of the
/// values to 16 bits. In level 1, stored values are divided by a factor.
std::pair<std::optional<double>, std::optional<double>> prisma_scale(Product& product,
                                                                     const std::shared_ptr<GDALGroup>& root,
                                                                     const std::string& range,
                                                                     const std::string& level) {
    const auto number = [&](const std::string& name) { return number_told(product, root, name); };
    if (level == "L1") {
        const auto factor = number("ScaleFactor_" + range), offset = number("Offset_" + range);
        if (!factor || *factor == 0) return {};
        return {1 / *factor, offset ? std::optional(-*offset) : std::nullopt};
    }
    const auto least = number("L2Scale" + range + "Min"), most = number("L2Scale" + range + "Max");
    if (!least || !most) return {};
    return {(*most - *least) / 65535, least};
}

} // namespace

/// Reads PRISMA L1, L2B, L2C and L2D: HDF-EOS5 with two cubes (line, band, sample), and band properties in
/// attributes of the root (ASI, PRISMA Products Specification Document). A wavelength of 0 means a missing
/// band.
std::optional<Product> read_prisma(const ArrayFile& file) {
    std::string swath, level;
    for (const std::string& name : file.group_names("/HDFEOS/SWATHS")) {
        // In PRS_L1_HCO, the two cubes are co-registered; in PRS_L1_HRC, they are not. Swaths that end with
        // _PCO are panchromatic.
        if (!starts_with(name, "PRS_L") || name.size() < 8) continue;
        const std::string kind = name.substr(name.size() - 4);
        if (kind != "_HCO" && (kind != "_HRC" || !swath.empty())) continue;
        swath = "/HDFEOS/SWATHS/" + name;
        level = name.substr(4, name.find('_', 4) - 4);
        if (kind == "_HCO") break;
    }
    if (swath.empty()) return std::nullopt;
    Product product = begin_product(file, "PRISMA " + level);
    const auto root = file.group("/");
    for (const char* range : {"Vnir", "Swir"}) {
        Numbers wavelengths = attribute_numbers(root, std::string("List_Cw_") + range);
        if (wavelengths.size() == 0)
            refuse_product(product, std::string("has no attribute List_Cw_") + range);
        const std::string cube = swath + "/Data Fields/" + upper(range) + "_Cube";
        const size_t first = product.bands.size();
        add_part(product, file, cube, wavelengths.size(), 1);
        add_bands(product, wavelengths, attribute_numbers(root, std::string("List_Fwhm_") + range),
                  attribute_numbers(root, std::string("List_Cw_") + range + "_Flags"));
        const auto [scale, offset] = prisma_scale(product, root, range, level);
        for (size_t b = first; b < product.bands.size(); ++b) {
            ProductBand& band = product.bands[b];
            band.description = upper(range) + " " + std::to_string(band.index + 1);
            band.scale = scale;
            band.offset = offset;
            if (!band.good) band.good = true;
            if (wavelengths.values[b - first] != 0) continue;
            band.wavelength = band.fwhm = "";
            band.good = false;
        }
    }
    sort_bands(product);
    take_prisma_place(product, file, swath, level);
    return product;
}

/// Reads NEON AOP surface directional reflectance and radiance: SITE/Reflectance/Reflectance_Data (line,
/// sample, band). The position is stated as ENVI's map info.
std::optional<Product> read_neon(const ArrayFile& file) {
    for (const std::string& site : file.group_names("/"))
        for (const std::string kind : {"Reflectance", "Radiance"}) {
            const std::string base = "/" + site + "/" + kind;
            if (file.array(base + "/RadianceIntegerPart") && file.array(base + "/RadianceDecimalPart"))
                throw Error("'" + file.path() +
                                "' is NEON AOP at-sensor radiance in two arrays, RadianceIntegerPart + "
                                "RadianceDecimalPart / 50000, which are not read as one scene",
                            "Add the two arrays and write the sum as one array (h5py, numpy).");
            const auto array = file.array(base + "/" + kind + "_Data");
            if (!array) continue;
            Product product = begin_product(file, "NEON AOP " + lower(kind));
            const std::string spectral = base + "/Metadata/Spectral_Data/";
            const Numbers wavelengths = file.list(spectral + "Wavelength");
            if (wavelengths.size() == 0) refuse_product(product, "has no " + spectral + "Wavelength");
            add_part(product, file, base + "/" + kind + "_Data", wavelengths.size(), 2);
            add_bands(product, wavelengths, file.list(spectral + "FWHM"), {});
            const auto group = file.group(base);
            for (const char* window : {"Band_Window_1_Nanometers", "Band_Window_2_Nanometers"})
                if (const auto range = attribute_numbers(group, window); range.size() == 2)
                    for (size_t b = 0; b < product.bands.size(); ++b)
                        if (wavelengths.values[b] >= range.values[0] &&
                            wavelengths.values[b] <= range.values[1])
                            product.bands[b].good = false;
            if (const auto factor = number_told(product, array, "Scale_Factor"); factor && *factor > 0)
                for (ProductBand& band : product.bands)
                    band.scale = 1 / *factor;
            const std::string place = base + "/Metadata/Coordinate_System/";
            const CPLStringList map(
                CSLTokenizeString2(file.text(place + "Map_Info").c_str(), ",", CSLT_STRIPLEADSPACES));
            if (map.size() >= 7) {
                const double dx = CPLAtof(map[5]), dy = CPLAtof(map[6]);
                product.geotransform = std::array{CPLAtof(map[3]) - (CPLAtof(map[1]) - 1) * dx, dx,  0.0,
                                                  CPLAtof(map[4]) + (CPLAtof(map[2]) - 1) * dy, 0.0, -dy};
            }
            product.srs = srs_from(file.text(place + "Coordinate_System_String"));
            if (const std::string epsg = file.text(place + "EPSG Code"); !epsg.empty())
                if (auto told =
                        product.srs ? srs_from("EPSG:" + epsg) : srs_of_code(product, CPLAtof(epsg.c_str())))
                    product.srs = std::move(told);
            return product;
        }
    return std::nullopt;
}

/// Reads AVIRIS-3 and AVIRIS-NG in netCDF-4. A group contains the cube, wavelength and fwhm. The root
/// contains easting and northing of orthorectified scenes, or lat and lon of each pixel.
std::optional<Product> read_aviris(const ArrayFile& file) {
    for (const std::string kind : {"reflectance", "radiance"}) {
        const std::string base = "/" + kind, cube = base + "/" + kind;
        const auto array = file.array(cube);
        if (!array || array->GetDimensionCount() != 3) continue;
        const auto root = file.group("/");
        std::string told;
        for (const char* name : {"sensor", "instrument", "title", "source", "summary"})
            told += lower(attribute_text(root, name)) + "\n";
        const char* const sensor =
            told.find("aviris-3") != std::string::npos || told.find("av3") != std::string::npos ? "AVIRIS-3"
            : told.find("aviris-ng") != std::string::npos || told.find("next generation") != std::string::npos
                ? "AVIRIS-NG"
                : "AVIRIS";
        Product product = begin_product(file, std::string(sensor) + " " + kind);
        Numbers wavelengths = file.list(base + "/wavelength");
        if (wavelengths.size() == 0) wavelengths = file.list("/wavelength");
        if (wavelengths.size() == 0) refuse_product(product, "has no " + base + "/wavelength");
        Numbers fwhm = file.list(base + "/fwhm");
        if (fwhm.size() == 0) fwhm = file.list("/fwhm");
        add_part(product, file, cube, wavelengths.size(), 0);
        add_bands(product, wavelengths, fwhm, file.list(base + "/good_wavelengths"));
        product.unit = array->GetUnit();
        product.geotransform = grid_of_centres(file.list("/easting"), file.list("/northing"));
        if (product.geotransform) {
            const auto mapping = file.array("/transverse_mercator");
            product.srs = srs_from(attribute_text(mapping, "spatial_ref"));
            if (!product.srs) product.srs = srs_from(attribute_text(mapping, "crs_wkt"));
        } else {
            take_locations(product, file, "/lon", "/lat");
        }
        return product;
    }
    return std::nullopt;
}

/// Reads Tanager: HDF-EOS5 with a swath (basic) or a grid (ortho) called HYP. Attributes of the cube (band,
/// line, sample) contain the band properties.
std::optional<Product> read_tanager(const ArrayFile& file) {
    for (const std::string kind : {"SWATHS", "GRIDS"})
        for (const std::string name : {"surface_reflectance", "toa_radiance"}) {
            const std::string base = "/HDFEOS/" + kind + "/HYP", cube = base + "/Data Fields/" + name;
            const auto array = file.array(cube);
            if (!array || array->GetDimensionCount() != 3) continue;
            Product product =
                begin_product(file, std::string("Tanager ") + (kind == "GRIDS" ? "ortho " : "basic ") +
                                        (name == "toa_radiance" ? "radiance" : "reflectance"));
            const Numbers wavelengths = attribute_numbers(array, "wavelengths");
            if (wavelengths.size() == 0) refuse_product(product, "has no attribute wavelengths of " + cube);
            add_part(product, file, cube, wavelengths.size(), 0);
            add_bands(product, wavelengths, attribute_numbers(array, "fwhm"),
                      attribute_numbers(array, "good_wavelengths"));
            product.unit = array->GetUnit();
            if (kind == "SWATHS") {
                take_locations(product, file, base + "/Geolocation Fields/Longitude",
                               base + "/Geolocation Fields/Latitude");
                return product;
            }
            const std::string structure = file.text("/HDFEOS INFORMATION/StructMetadata.0");
            const auto first = pair_behind(structure, "UpperLeftPointMtrs"),
                       last = pair_behind(structure, "LowerRightMtrs");
            if (first && last)
                product.geotransform = std::array{
                    first->first, (last->first - first->first) / static_cast<double>(product.samples),
                    0.0,          first->second,
                    0.0,          (last->second - first->second) / static_cast<double>(product.lines)};
            if (const auto epsg = number_told(product, file.group(base), "epsg_code"))
                product.srs = srs_of_code(product, *epsg);
            return product;
        }
    return std::nullopt;
}

} // namespace hsi::raster
