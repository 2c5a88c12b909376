// SPDX-License-Identifier: MIT
#include "raster/radiance_table.h"

#include "core/error.h"
#include "core/text_file.h"
#include "raster/gdal/dataset_handle.h"
#include "raster/gdal_errors.h"
#include "raster/products/array_file.h"
#include "raster/products/pipes_beside.h"
#include "raster/raster_source.h"
#include "raster/regular_file.h"
#include "raster/spectral_library.h"

#include <gdal_priv.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace hsi::raster {
namespace {

std::string short_text(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", v);
    return text;
}

/// The position of a value between two nodes of an axis.
struct Place {
    size_t first = 0;
    double part = 0; ///< fraction of the way to the next node
};

Place place_on(const std::vector<double>& axis, double value, const std::string& what,
               const std::string& path) {
    if (!(value >= axis.front() && value <= axis.back()))
        throw Error("-lut " + path + ": " + what + " " + short_text(value) + " is out of range (" +
                        short_text(axis.front()) + " to " + short_text(axis.back()) + ")",
                    "Give a value within the table.");
    const auto after = std::upper_bound(axis.begin(), axis.end() - 1, value) - axis.begin();
    const auto i = static_cast<size_t>(after) - 1;
    return {i, (value - axis[i]) / (axis[i + 1] - axis[i])};
}

/// Reads a table with the axes that mag1c and emit-ghg expect; the file itself does not state the values of
/// the axes.
SimulatedRadiances read_simulated(const std::string& path, ArrayFile& file, GDALMDArray& array,
                                  const TableConditions& c) {
    const std::vector<double> heights{1, 2, 4, 10, 20, 120}, elevations{0, 0.5, 1, 2, 3},
        water{0, 1, 2, 3, 4, 5, 6};
    std::vector<double> zeniths;
    for (int k = 0; k <= 16; ++k)
        zeniths.push_back(5.0 * k);
    SimulatedRadiances table;
    table.form = RadianceForm::simulated;
    table.wavelengths_nm = file.list("/wave").values;
    table.concentrations = {0};
    for (double v = c.methane ? 1000 : 20000; table.concentrations.size() < 8; v *= 2)
        table.concentrations.push_back(v);
    std::vector<size_t> sizes;
    for (const auto& axis : array.GetDimensions())
        sizes.push_back(static_cast<size_t>(axis->GetSize()));
    if (sizes != std::vector<size_t>{17, 6, 5, 7, 8, table.wavelengths_nm.size()})
        throw Error("-lut " + path +
                        ": modtran_data does not have the shape 17 x 6 x 5 x 7 x 8 x wavelengths",
                    "Give a table of emit-ghg or mag1c, or a CSV table.");
    if (!c.sun_zenith)
        throw Error("-lut " + path + " requires -sza",
                    "Give the solar zenith angle of the scene in degrees.");
    constexpr double top = 120;
    const std::array<Place, 4> at{place_on(zeniths, *c.sun_zenith, "-sza", path),
                                  place_on(heights, std::min(c.sensor_altitude - c.elevation, top),
                                           "the height of the sensor above the ground", path),
                                  place_on(elevations, c.elevation, "-elevation", path),
                                  place_on(water, c.water_vapour, "-water-vapour", path)};
    const size_t bands = sizes[5];
    table.radiances.assign(8, std::vector<double>(bands));
    std::vector<double> corner(8 * bands);
    for (unsigned bits = 0; bits < 16; ++bits) {
        GUInt64 start[6] = {};
        size_t count[6] = {1, 1, 1, 1, 8, bands};
        double weight = 1;
        for (size_t axis = 0; axis < 4; ++axis) {
            const bool next = (bits >> axis & 1U) != 0;
            start[axis] = at[axis].first + (next ? 1 : 0);
            weight *= next ? at[axis].part : 1 - at[axis].part;
        }
        if (weight == 0) continue;
        if (!array.Read(start, count, nullptr, nullptr, GDALExtendedDataType::Create(GDT_Float64),
                        corner.data()))
            throw Error("-lut: cannot read modtran_data of '" + path + "'",
                        "Check that the file is complete.");
        for (size_t k = 0; k < corner.size(); ++k)
            table.radiances[k / bands][k % bands] += weight * corner[k];
    }
    return table;
}

/// Returns the numbers in a text line, between commas, semicolons or tabs.
std::vector<double> cells_of(std::string line) {
    for (char& c : line)
        if (c == ';' || c == '\t') c = ',';
    std::vector<double> cells;
    std::istringstream words(line);
    std::string word;
    while (std::getline(words, word, ','))
        cells.push_back(table_number(word));
    return cells;
}

/// Reads a text table; nullopt if the file does not begin with "wavelength".
std::optional<SimulatedRadiances> read_columns(const std::string& path) {
    if (!is_regular_file(path)) return {};
    std::string begin = beginning_of_file(path, 16);
    for (char& c : begin)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (begin.rfind("wavelength", 0) != 0) return {};
    std::istringstream lines(read_text_file(path, largest_file::library));
    std::string line;
    std::getline(lines, line);
    SimulatedRadiances table;
    table.concentrations = cells_of(line);
    table.concentrations.erase(table.concentrations.begin());
    table.radiances.resize(table.concentrations.size());
    while (std::getline(lines, line)) {
        if (line.find_first_not_of(" \r") == std::string::npos) continue;
        const auto cells = cells_of(line);
        if (cells.size() != table.concentrations.size() + 1)
            throw Error("-lut " + path + ": line " + std::to_string(table.wavelengths_nm.size() + 2) +
                            " has " + std::to_string(cells.size()) + " cells, but the first line has " +
                            std::to_string(table.concentrations.size() + 1),
                        "Write one line per wavelength, with the radiance at each concentration.");
        table.wavelengths_nm.push_back(cells[0]);
        for (size_t k = 1; k < cells.size(); ++k)
            table.radiances[k - 1].push_back(cells[k]);
    }
    return table;
}

SimulatedRadiances read_raster(const std::string& path, const TableConditions& c) {
    OpenOptions options;
    options.path = path;
    const auto source = open_raster(options);
    const auto shape = source->shape();
    SimulatedRadiances table;
    table.form = RadianceForm::samples;
    table.wavelengths_nm = source->facts().bands.wavelengths_nm;
    table.concentrations = c.concentrations;
    if (table.concentrations.empty() && shape.samples == 7)
        table.concentrations = {0, 500, 1000, 2000, 4000, 8000, 16000};
    if (shape.lines != 1 || table.wavelengths_nm.empty())
        throw Error(
            "-lut " + path + " is not a radiance table",
            "Give an HDF5 file with modtran_data, a raster of one line with wavelengths, or a CSV table "
            "with a column wavelength.");
    if (static_cast<int64_t>(table.concentrations.size()) != shape.samples)
        throw Error("-lut " + path + " has " + std::to_string(shape.samples) + " samples, but " +
                        std::to_string(table.concentrations.size()) + " concentrations",
                    "Give the concentration of each sample with -concentrations.");
    // The radiances are read in double precision, because k is computed from small differences of radiances.
    // RasterSource has only single precision.
    const GdalErrors errors;
    const DatasetHandle dataset(GDALDataset::Open(path.c_str(), GDAL_OF_RASTER | GDAL_OF_VERBOSE_ERROR));
    const auto& stored = source->facts().bands.values;
    table.radiances.resize(table.concentrations.size());
    std::vector<double> values(table.concentrations.size());
    for (size_t b = 0; b < table.wavelengths_nm.size(); ++b) {
        const int samples = static_cast<int>(shape.samples);
        if (!dataset || dataset->GetRasterBand(source->bands()[b])
                                ->RasterIO(GF_Read, 0, 0, samples, 1, values.data(), samples, 1, GDT_Float64,
                                           0, 0) != CE_None)
            throw Error("cannot read '" + path + "' (-lut): " + errors.text());
        for (size_t k = 0; k < values.size(); ++k)
            table.radiances[k].push_back(values[k] * (stored.scale.empty() ? 1 : stored.scale[b]) +
                                         (stored.offset.empty() ? 0 : stored.offset[b]));
    }
    return table;
}

} // namespace

SimulatedRadiances read_radiance_table(const std::string& path, const TableConditions& conditions) {
    refuse_pipe_beside(path);
    const auto table = [&] {
        if (auto columns = read_columns(path)) return *columns;
        if (const auto file = ArrayFile::open(path))
            if (const auto array = file->array("/modtran_data"))
                return read_simulated(path, *file, *array, conditions);
        return read_raster(path, conditions);
    }();
    const auto is_finite = [](double v) { return std::isfinite(v); };
    auto different = table.concentrations;
    std::sort(different.begin(), different.end());
    const bool twice = std::adjacent_find(different.begin(), different.end()) != different.end();
    if (std::any_of(different.begin(), different.end(), [](double v) { return v < 0; }))
        throw Error("-lut " + path + " has a negative concentration, " + short_text(different.front()),
                    "Give concentrations in ppm m, 0 or more.");
    if (different.size() < 2 || twice || !std::all_of(different.begin(), different.end(), is_finite))
        throw Error("-lut " + path + " does not have at least two different concentrations",
                    "Name each column by its concentration in ppm m, or give -concentrations.");
    for (const auto& spectrum : table.radiances)
        if (spectrum.empty() || !std::all_of(spectrum.begin(), spectrum.end(),
                                             [](double v) { return v >= 0 && std::isfinite(v); }))
            throw Error("-lut " + path + " has radiances that are negative or not numbers",
                        "Give the simulated radiance for each concentration and wavelength.");
    if (!std::all_of(table.wavelengths_nm.begin(), table.wavelengths_nm.end(), is_finite))
        throw Error("-lut " + path + " has wavelengths that are not numbers", "Give wavelengths in nm.");
    return table;
}

} // namespace hsi::raster
