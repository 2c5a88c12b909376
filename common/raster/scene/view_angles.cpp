// SPDX-License-Identifier: MIT
// Finds view and sun angles in the files of products.
#include "raster/view_geometry.h"

#include "core/cube_view.h"
#include "core/error.h"
#include "core/text.h"
#include "raster/gdal_errors.h"
#include "raster/products/array_file.h"
#include "raster/spectral_library.h"

#include <cpl_conv.h>
#include <cpl_minixml.h>
#include <gdal_priv.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace hsi::raster {
namespace {

using view::Angle;
using view::AngleInput;

bool contains(const std::string& text, const char* what) { return text.find(what) != std::string::npos; }

/// The angles that were found in a file.
struct Found {
    const Placement& place;
    std::vector<FileAngle> angles;

    void add(Angle angle, double degrees) {
        AngleInput input;
        input.value = degrees;
        angles.push_back({angle, std::move(input), nullptr});
    }
    void add(Angle angle, AngleInput input, std::shared_ptr<const stream::CubeSource> plane) {
        input.band = 0;
        angles.push_back({angle, std::move(input), std::move(plane)});
    }
};

// --- Arrays of HDF5 and netCDF -----------------------------------------------

/// A plane of an array with the axes (line, sample), or the plane of one band of (line, sample, band).
class ArrayPlane final : public stream::CubeSource {
  public:
    ArrayPlane(std::string path, std::string array, std::optional<size_t> band, const Placement& place)
        : m_path(std::move(path)), m_array(std::move(array)), m_band(band), m_place(place) {
        m_place.shape.bands = 1;
        const Opened opened(*this);
        const auto& dims = opened.array->GetDimensions();
        const auto lines = static_cast<int64_t>(dims[0]->GetSize()),
                   samples = static_cast<int64_t>(dims[1]->GetSize());
        m_windowed = lines == m_place.all_lines && samples == m_place.all_samples;
        if (!m_windowed && (lines != m_place.shape.lines || samples != m_place.shape.samples))
            throw Error("'" + m_array + "' of '" + m_path + "' has " + std::to_string(samples) + " x " +
                            std::to_string(lines) + " pixels, but the scene has " +
                            std::to_string(m_place.all_samples) + " x " + std::to_string(m_place.all_lines),
                        "Use the angles of this scene (-geometry, -angle).");
    }
    stream::CubeShape shape() const override { return m_place.shape; }
    stream::BlockLayout layout() const override { return {}; }
    std::unique_ptr<stream::CubeReader> open_reader() const override {
        return std::make_unique<Reader>(*this);
    }

  private:
    struct Opened {
        explicit Opened(const ArrayPlane& all) : file(ArrayFile::open(all.m_path)) {
            if (file) array = file->array(all.m_array);
            const size_t wanted = all.m_band ? 3 : 2;
            if (!array || array->GetDimensionCount() != wanted)
                throw Error("'" + all.m_array + "' of '" + all.m_path + "' does not have " +
                                std::to_string(wanted) + " axes",
                            "Give the angles as rasters (-angle).");
            bool has = false;
            const double fill = array->GetNoDataValueAsDouble(&has);
            if (has) nodata = static_cast<float>(fill);
        }
        std::shared_ptr<ArrayFile> file;
        std::shared_ptr<GDALMDArray> array;
        std::optional<float> nodata;
    };
    class Reader final : public stream::CubeReader {
      public:
        explicit Reader(const ArrayPlane& all) : m_all(all), m_opened(all) {}
        void read(const Rect& w, const CubeView<float>& dst) override {
            const int64_t x = m_all.m_windowed ? m_all.m_place.first_sample : 0,
                          y = m_all.m_windowed ? m_all.m_place.first_line : 0;
            const GUInt64 start[3] = {static_cast<GUInt64>(w.y + y), static_cast<GUInt64>(w.x + x),
                                      m_all.m_band.value_or(0)};
            const size_t count[3] = {static_cast<size_t>(w.h), static_cast<size_t>(w.w), 1};
            m_values.resize(static_cast<size_t>(w.area()));
            const GdalErrors errors;
            if (!m_opened.array->Read(start, count, nullptr, nullptr,
                                      GDALExtendedDataType::Create(GDT_Float32), m_values.data()))
                throw Error("cannot read '" + m_all.m_array + "' of '" + m_all.m_path +
                            "': " + errors.text());
            for (int64_t line = 0; line < w.h; ++line)
                for (int64_t i = 0; i < w.w; ++i) {
                    const float v = m_values[static_cast<size_t>(line * w.w + i)];
                    dst.row(0, line)[i] = m_opened.nodata && v == *m_opened.nodata ? no_value : v;
                }
        }

      private:
        const ArrayPlane& m_all;
        const Opened m_opened;
        std::vector<float> m_values;
    };
    const std::string m_path, m_array;
    const std::optional<size_t> m_band;
    Placement m_place;
    bool m_windowed = false;
};

std::string unit_in(const GDALMDArray& array) {
    std::string unit = array.GetUnit();
    for (const char* const name : {"units", "Units", "Unit"})
        if (unit.empty()) unit = text_in(array.GetAttribute(name));
    return unit;
}
/// Returns the number in an array with one element; nullopt if there is no such array.
std::optional<double> number_of(const std::shared_ptr<GDALGroup>& group, const std::string& name) {
    const auto array = group ? group->OpenMDArray(name) : nullptr;
    if (!array) return std::nullopt;
    GUInt64 all = 1;
    for (const auto& dim : array->GetDimensions())
        all *= dim->GetSize();
    if (all != 1 || array->GetDimensionCount() > 2) return std::nullopt;
    const GUInt64 start[2] = {};
    const size_t count[2] = {1, 1};
    double v = 0;
    if (!array->Read(start, count, nullptr, nullptr, GDALExtendedDataType::Create(GDT_Float64), &v))
        return std::nullopt;
    return v * degrees_per(unit_in(*array));
}

std::vector<std::string> texts_in(GDALMDArray& array) {
    std::vector<std::string> texts;
    if (array.GetDimensionCount() != 1 || array.GetDataType().GetClass() != GEDTC_STRING) return texts;
    const auto n = static_cast<size_t>(array.GetDimensions()[0]->GetSize());
    std::vector<char*> list(n, nullptr);
    const GUInt64 start = 0;
    if (!array.Read(&start, &n, nullptr, nullptr, array.GetDataType(), static_cast<void*>(list.data())))
        return texts;
    for (char* text : list) {
        texts.emplace_back(text != nullptr ? text : "");
        CPLFree(text);
    }
    return texts;
}

void add_array(Found& to, Angle angle, const std::string& path, const GDALMDArray& array,
               std::optional<size_t> band = {}, double plus = 0) {
    AngleInput input;
    input.factor = degrees_per(unit_in(array));
    input.plus = plus;
    to.add(angle, std::move(input), std::make_shared<ArrayPlane>(path, array.GetFullName(), band, to.place));
}

/// Adds every array of the group whose name denotes an angle.
void add_named_arrays(Found& to, const std::string& path, const GDALGroup& group) {
    for (const auto& name : group.GetMDArrayNames())
        if (const auto angle = angle_called(name))
            if (const auto array = group.OpenMDArray(name); array && array->GetDimensionCount() == 2)
                add_array(to, *angle, path, *array);
}

bool add_emit(Found& to, const std::string& path, const GDALGroup& root) {
    const auto obs = root.OpenMDArray("obs");
    if (!obs || obs->GetDimensionCount() != 3) return false;
    std::shared_ptr<GDALMDArray> names = root.OpenMDArray("observation_bands");
    for (const auto& name : root.GetGroupNames())
        if (const auto group = root.OpenGroup(name); group && !names)
            names = group->OpenMDArray("observation_bands");
    if (!names) return false;
    const auto bands = texts_in(*names);
    for (size_t b = 0; b < bands.size(); ++b)
        if (const auto angle = angle_called(bands[b])) add_array(to, *angle, path, *obs, b);
    return true;
}

/// Returns the distinct whole numbers in an array with two axes.
std::set<int32_t> numbers_in(GDALMDArray& array) {
    const auto& dims = array.GetDimensions();
    const size_t count[2] = {static_cast<size_t>(dims[0]->GetSize()),
                             static_cast<size_t>(dims[1]->GetSize())};
    const GUInt64 start[2] = {};
    std::vector<int32_t> values(count[0] * count[1], -1);
    (void)array.Read(start, count, nullptr, nullptr, GDALExtendedDataType::Create(GDT_Int32), values.data());
    return {values.begin(), values.end()};
}

/// Adds the sun angles of a NEON tile, which depend on the flight line of each pixel.
void add_neon_tile(Found& to, const std::string& path, const GDALGroup& metadata,
                   const std::shared_ptr<GDALGroup>& logs) {
    const auto ancillary = metadata.OpenGroup("Ancillary_Imagery");
    const auto index = ancillary ? ancillary->OpenMDArray("Data_Selection_Index") : nullptr;
    if (!index || index->GetDimensionCount() != 2 || !logs) return;
    auto lines = logs->GetGroupNames();
    std::sort(lines.begin(), lines.end());
    // If the index lists its files, the position of the file that names a flight line is the number of the
    // flight line.
    std::vector<std::string> files;
    if (const auto listed = index->GetAttribute("Data_Files")) {
        const std::string text = text_in(listed);
        size_t from = 0;
        for (size_t end = 0; end != std::string::npos; from = end + 1) {
            end = text.find(',', from);
            files.push_back(text.substr(from, end == std::string::npos ? end : end - from));
        }
    }
    const size_t count = std::max(files.size(), lines.size());
    const auto used = numbers_in(*index);
    const bool from_one = used.count(static_cast<int32_t>(count)) > 0;
    const auto plane = std::make_shared<ArrayPlane>(path, index->GetFullName(), std::nullopt, to.place);
    for (const Angle angle : {view::solar_zenith, view::solar_azimuth}) {
        AngleInput input;
        const char* const name = angle == view::solar_zenith ? "Solar_Zenith_Angle" : "Solar_Azimuth_Angle";
        std::vector<std::string> without;
        if (from_one) input.table.emplace_back();
        for (size_t k = 0; k < count; ++k) {
            std::optional<double> degrees;
            for (size_t j = 0; j < lines.size(); ++j)
                if (files.size() > 1 ? k < files.size() && contains(files[k], lines[j].c_str()) : j == k)
                    degrees = number_of(logs->OpenGroup(lines[j]), name);
            input.table.push_back(degrees);
            if (!degrees && used.count(static_cast<int32_t>(k + from_one)) > 0)
                without.push_back(k < files.size() ? "'" + std::string(trimmed(files[k])) + "' of Data_Files"
                                                   : "flight line " + std::to_string(k));
        }
        to.add(angle, std::move(input), plane);
        if (!without.empty()) to.angles.back().fault = "its Logs lack " + joined(without, ", ");
    }
}

bool add_neon(Found& to, const std::string& path, const GDALGroup& root) {
    for (const auto& site : root.GetGroupNames()) {
        const auto group = root.OpenGroup(site);
        const auto reflectance = group ? group->OpenGroup("Reflectance") : nullptr;
        const auto metadata = reflectance ? reflectance->OpenGroup("Metadata") : nullptr;
        if (!metadata) continue;
        add_named_arrays(to, path, *metadata);
        if (const auto ancillary = metadata->OpenGroup("Ancillary_Imagery"))
            add_named_arrays(to, path, *ancillary);
        const auto logs = metadata->OpenGroup("Logs");
        const auto zenith = number_of(logs, "Solar_Zenith_Angle"),
                   azimuth = number_of(logs, "Solar_Azimuth_Angle");
        if (zenith && azimuth) {
            to.add(view::solar_zenith, *zenith);
            to.add(view::solar_azimuth, *azimuth);
        } else {
            add_neon_tile(to, path, *metadata, logs);
        }
        return true;
    }
    return false;
}

bool add_prisma(Found& to, const std::string& path, const GDALGroup& root) {
    const auto eos = root.OpenGroup("HDFEOS");
    const auto swaths = eos ? eos->OpenGroup("SWATHS") : nullptr;
    if (!swaths) return false;
    for (const auto& name : swaths->GetGroupNames()) {
        const auto swath = swaths->OpenGroup(name);
        const auto fields = swath ? swath->OpenGroup("Geometric Fields") : nullptr;
        if (!fields) continue;
        const auto attribute = root.GetAttribute("Sun_azimuth_angle");
        const double sun = attribute ? attribute->ReadAsDouble() : std::nan("");
        const auto add = [&](Angle angle, const char* array_name, double plus) {
            if (const auto array = fields->OpenMDArray(array_name))
                add_array(to, angle, path, *array, {}, plus);
        };
        add(view::solar_zenith, "Solar_Zenith_Angle", 0);
        add(view::sensor_zenith, "Observing_Angle", 0);
        if (!std::isfinite(sun)) return true;
        to.add(view::solar_azimuth, sun);
        add(view::sensor_azimuth, "Rel_Azimuth_Angle", sun);
        return true;
    }
    return false;
}

/// Adds the angles in an HDF5 or netCDF file. Returns false if the file is not a known product.
bool add_arrays(Found& to, const std::string& path) {
    const auto file = ArrayFile::open(path);
    if (!file) return false;
    const GdalErrors quiet;
    const auto root = file->group("/");
    if (const auto group = root->OpenGroup("observation_parameters")) {
        add_named_arrays(to, path, *group);
        return true;
    }
    return add_emit(to, path, *root) || add_prisma(to, path, *root) || add_neon(to, path, *root);
}

// --- XML files of EnMAP ------------------------------------------------------

struct CloseXml {
    void operator()(CPLXMLNode* node) const { CPLDestroyXMLNode(node); }
};

bool add_enmap(Found& to, const std::string& path) {
    const auto dot = path.find_last_of('.');
    if (dot == std::string::npos || !equal_names(path.substr(dot), ".xml")) return false;
    const GdalErrors errors;
    const std::unique_ptr<CPLXMLNode, CloseXml> root(CPLParseXMLFile(path.c_str()));
    CPLXMLNode* node = root.get();
    const CPLXMLNode* specific = nullptr;
    for (; node != nullptr && specific == nullptr; node = node->psNext)
        specific = CPLSearchXMLNode(node, "specific");
    if (specific == nullptr) return false;
    const auto add = [&](Angle angle, const char* name, double sign, double plus) {
        const char* const text = CPLGetXMLValue(specific, (std::string(name) + ".center").c_str(), nullptr);
        if (text == nullptr) return;
        if (const double v = table_number(text); std::isfinite(v)) to.add(angle, sign * v + plus);
    };
    constexpr double right = 90;
    add(view::solar_zenith, "sunElevationAngle", -1, right);
    add(view::solar_azimuth, "sunAzimuthAngle", 1, 0);
    add(view::sensor_zenith, "viewingZenithAngle", 1, 0);
    add(view::sensor_azimuth, "viewingAzimuthAngle", 1, 0);
    return true;
}

} // namespace

std::optional<std::vector<FileAngle>> angles_of_product(const std::string& path, const Placement& scene) {
    Found found{scene, {}};
    if (!add_enmap(found, path) && !add_arrays(found, path)) return std::nullopt;
    return std::move(found.angles);
}

} // namespace hsi::raster
