// SPDX-License-Identifier: MIT
#include "raster/products/array_file.h"

#include "raster/gdal_errors.h"
#include "raster/io/whole_file.h"
#include "raster/metadata/wavelength_unit.h"
#include "raster/products/hdf_trial.h"
#include "raster/regular_file.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

namespace hsi::raster {
namespace {

constexpr uint64_t longest_list = 1u << 20; // maximum length of a list; bands have some hundreds

std::string digits(double value, bool single) {
    char text[64];
    const auto end = single ? std::to_chars(text, text + sizeof text, static_cast<float>(value))
                            : std::to_chars(text, text + sizeof text, value);
    return {text, end.ptr};
}

Numbers with_texts(std::vector<double> values, const GDALExtendedDataType& type) {
    Numbers out;
    const bool single = type.GetClass() == GEDTC_NUMERIC && type.GetNumericDataType() == GDT_Float32;
    for (const double v : values)
        out.texts.push_back(digits(v, single));
    out.values = std::move(values);
    return out;
}

/// Returns whether a number ends here. A suffix of ncdump that states the type may follow: "1.e+20f",
/// "255ub".
bool ends_number(const char* rest) {
    constexpr const char* types[] = {"", "b", "ub", "s", "us", "l", "ul", "u", "ll", "ull", "f", "d"};
    return std::any_of(std::begin(types), std::end(types),
                       [&](const char* type) { return EQUAL(rest, type); });
}

/// Collects numbers that a file stores as texts, with one or several numbers in each text. The numbers may be
/// in the braces of an ENVI header or the brackets of JSON, and each may have a unit of wavelengths. GDAL
/// would read some of these forms as 0.
class WrittenNumbers {
  public:
    /// Adds the numbers of a text. Returns false if the text has other content.
    bool take(const char* text) {
        const bool list = std::string(text).find(',') != std::string::npos;
        if (const auto written = list ? std::nullopt : written_wavelength(text)) {
            add(written->number, written->unit);
            return true;
        }
        const CPLStringList words(CSLTokenizeString2(text, ", ;\t\r\n{}[]()", 0));
        for (int k = 0; k < words.size(); ++k)
            if (!take_word(words[k])) return false;
        return true;
    }

    /// Returns all numbers. A unit that occurs once applies to all numbers. If several units occur, the
    /// numbers are converted to nanometres; nullopt if some numbers then have no unit.
    std::optional<Numbers> all() {
        std::set<const WavelengthUnit*> units(m_units.begin(), m_units.end());
        const bool some_without = units.erase(nullptr) > 0;
        if (units.size() > 1 && some_without) return std::nullopt;
        for (size_t k = 0; k < m_units.size() && units.size() > 1; ++k) {
            m_numbers.values[k] = m_units[k]->nanometres(m_numbers.values[k]);
            m_numbers.texts[k] = digits(m_numbers.values[k], false);
        }
        if (!units.empty()) m_numbers.unit = units.size() > 1 ? "nm" : (*units.begin())->symbol;
        return std::move(m_numbers);
    }

  private:
    bool take_word(const char* word) {
        char* end = nullptr;
        CPLStrtod(word, &end);
        const std::string number(word, static_cast<size_t>(end - word));
        if (!number.empty() && ends_number(end)) {
            add(number, nullptr);
            return true;
        }
        if (const auto written = written_wavelength(word)) {
            add(written->number, written->unit);
            return true;
        }
        const WavelengthUnit* const unit = m_units.empty() ? nullptr : field_unit(word);
        if (unit != nullptr) m_units.back() = unit;
        return unit != nullptr;
    }

    void add(const std::string& number, const WavelengthUnit* unit) {
        m_numbers.values.push_back(CPLAtof(number.c_str()));
        m_numbers.texts.push_back(number);
        m_units.push_back(unit);
    }

    Numbers m_numbers;
    std::vector<const WavelengthUnit*> m_units; ///< unit of each number; null: no unit
};

Numbers numbers_of_texts(const CPLStringList& texts) {
    Numbers none;
    WrittenNumbers found;
    for (int i = 0; i < texts.size(); ++i) {
        if (found.take(texts[i])) continue;
        none.no_numbers = texts[i];
        return none;
    }
    if (auto all = found.all()) return std::move(*all);
    none.no_numbers = texts[0];
    return none;
}

/// Returns the texts of a list of strings with `count` elements.
CPLStringList texts_of(const GDALMDArray& list, uint64_t count) {
    std::vector<char*> texts(count, nullptr);
    const std::vector<GUInt64> start(list.GetDimensionCount(), 0);
    std::vector<size_t> counts;
    for (const auto& axis : list.GetDimensions())
        counts.push_back(axis->GetSize());
    CPLStringList out;
    const bool read = list.Read(start.data(), counts.data(), nullptr, nullptr,
                                GDALExtendedDataType::CreateString(), texts.data());
    for (char* const text : texts) {
        if (read) out.AddString(text != nullptr ? text : "");
        CPLFree(text);
    }
    return out;
}

DatasetHandle open_arrays(const std::string& name, const char* driver) {
    const char* const drivers[] = {driver, nullptr};
    return DatasetHandle(GDALDataset::FromHandle(GDALOpenEx(
        whole_name(name).c_str(), GDAL_OF_MULTIDIM_RASTER | GDAL_OF_READONLY, drivers, nullptr, nullptr)));
}

} // namespace

std::shared_ptr<ArrayFile> ArrayFile::open(const std::string& path) {
    register_drivers();
    try_hdf(path);
    const GdalErrors quiet;
    // The HDF5 driver is preferred, because it does not need a cache of 16 MB for each array. The netCDF
    // driver is not used for remote files: it reads them through page faults, and waits forever if a request
    // fails.
    const bool far = !VSIIsLocal(path.c_str());
    for (const char* driver : {"HDF5", "netCDF", "Zarr"}) {
        if (far && EQUAL(driver, "netCDF")) continue;
        DatasetHandle dataset = open_arrays(path, driver);
        // GDAL 3.6 recognises the classic form CDF-5 only if the name has the prefix NETCDF.
        if (!dataset && EQUAL(driver, "netCDF") && beginning_of_file(path, 3) == "CDF")
            dataset = open_arrays("NETCDF:\"" + path + "\"", driver);
        if (!dataset) continue;
        auto root = dataset->GetRootGroup();
        if (!root) continue;
        auto file = std::make_shared<ArrayFile>();
        file->m_path = path;
        file->m_driver = driver;
        file->m_dataset = std::move(dataset);
        file->m_root = std::move(root);
        return file;
    }
    return nullptr;
}

std::shared_ptr<GDALGroup> ArrayFile::group(const std::string& name) const {
    const GdalErrors quiet;
    return name == "/" ? m_root : m_root->OpenGroupFromFullname(name);
}

std::vector<GUInt64> ArrayFile::chunks(const std::string& name) const {
    const auto ours = array(name);
    if (!ours) return {};
    auto sizes = ours->GetBlockSize();
    if (m_driver == "Zarr" || std::count(sizes.begin(), sizes.end(), 0U) == 0 || !VSIIsLocal(m_path.c_str()))
        return sizes;
    const GdalErrors quiet;
    const DatasetHandle other = open_arrays("NETCDF:\"" + m_path + "\"", "netCDF");
    const auto root = other ? other->GetRootGroup() : nullptr;
    const auto same = root ? root->OpenMDArrayFromFullname(name) : nullptr;
    return same && same->GetDimensionCount() == sizes.size() ? same->GetBlockSize() : sizes;
}

std::shared_ptr<GDALMDArray> ArrayFile::array(const std::string& name) const {
    const GdalErrors quiet;
    return m_root->OpenMDArrayFromFullname(name);
}

uint64_t list_length(const GDALMDArray& array) {
    uint64_t length = array.GetDimensionCount() > 0 ? 1 : 0;
    for (const auto& axis : array.GetDimensions()) {
        if (length > 1 && axis->GetSize() != 1) return 0;
        length *= axis->GetSize();
    }
    return length;
}

std::vector<std::string> array_names(const GDALGroup& group) {
    std::vector<std::string> names;
    for (std::string& name : group.GetMDArrayNames())
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    return names;
}

std::shared_ptr<GDALMDArray> ArrayFile::array_of(const CubePart& part) const {
    const auto whole = array(part.array);
    const GdalErrors quiet;
    return whole && !part.view.empty() ? whole->GetView(part.view) : whole;
}

std::vector<std::string> ArrayFile::group_names(const std::string& of) const {
    const auto parent = group(of);
    const GdalErrors quiet;
    return parent ? parent->GetGroupNames() : std::vector<std::string>();
}

Numbers ArrayFile::list(const std::string& name) const {
    const auto found = array(name);
    const uint64_t count = found ? list_length(*found) : 0;
    if (count == 0 || count > longest_list) return {};
    const GdalErrors quiet;
    if (found->GetDataType().GetClass() == GEDTC_STRING) return numbers_of_texts(texts_of(*found, count));
    std::vector<double> values(count);
    const std::vector<GUInt64> start(found->GetDimensionCount(), 0);
    std::vector<size_t> counts;
    for (const auto& axis : found->GetDimensions())
        counts.push_back(axis->GetSize());
    if (!found->Read(start.data(), counts.data(), nullptr, nullptr, GDALExtendedDataType::Create(GDT_Float64),
                     values.data()))
        return {};
    return with_texts(std::move(values), found->GetDataType());
}

std::string ArrayFile::text(const std::string& name) const {
    auto found = array(name);
    if (!found || found->GetTotalElementsCount() != 1 || found->GetDataType().GetClass() != GEDTC_STRING)
        return {};
    const GdalErrors quiet;
    // The netCDF driver of GDAL 3.6 frees a text without axes before it copies it. With the prefix, the HDF5
    // driver reads a file of any name.
    DatasetHandle other;
    if (found->GetDimensionCount() == 0 && EQUAL(m_driver.c_str(), "netCDF")) {
        other = open_arrays("HDF5:" + m_path, "HDF5");
        const auto root = other ? other->GetRootGroup() : nullptr;
        found = root ? root->OpenMDArrayFromFullname(found->GetFullName()) : nullptr;
        if (!found) return {};
    }
    const std::vector<GUInt64> start(found->GetDimensionCount(), 0);
    const std::vector<size_t> count(found->GetDimensionCount(), 1);
    char* text = nullptr;
    const bool read = found->Read(start.data(), count.data(), nullptr, nullptr,
                                  GDALExtendedDataType::CreateString(), &text);
    std::string out = read && text ? text : "";
    CPLFree(text);
    return out;
}

bool read_samples(GDALMDArray& array, const CubePart& part, const GUInt64 (&start)[3],
                  const size_t (&count)[3], void* values) {
    const GDALDataType stored = part.stored == GDT_Unknown ? part.type : part.stored;
    const auto type = GDALExtendedDataType::Create(stored);
    // If both types have the same size, the bits are copied unchanged.
    if (GDALGetDataTypeSizeBytes(stored) == GDALGetDataTypeSizeBytes(part.type))
        return array.Read(start, count, nullptr, nullptr, type, values);
    if (stored == GDT_Byte) { // the samples are signed bytes
        std::vector<int8_t> bytes(count[0] * count[1] * count[2]);
        if (!array.Read(start, count, nullptr, nullptr, type, bytes.data())) return false;
        std::copy(bytes.begin(), bytes.end(), static_cast<int16_t*>(values));
        return true;
    }
    std::vector<int16_t> wide(count[0] * count[1] * count[2]); // GDAL reads signed bytes as Int16
    if (!array.Read(start, count, nullptr, nullptr, type, wide.data())) return false;
    std::transform(wide.begin(), wide.end(), static_cast<uint8_t*>(values),
                   [](int16_t value) { return static_cast<uint8_t>(value); });
    return true;
}

Numbers numbers_in(const std::shared_ptr<GDALAttribute>& attribute) {
    if (!attribute || attribute->GetTotalElementsCount() > longest_list) return {};
    const GdalErrors quiet;
    if (attribute->GetDataType().GetClass() == GEDTC_STRING)
        return numbers_of_texts(attribute->ReadAsStringArray());
    return with_texts(attribute->ReadAsDoubleArray(), attribute->GetDataType());
}

std::string text_in(const std::shared_ptr<GDALAttribute>& attribute) {
    if (!attribute) return {};
    const GdalErrors quiet;
    const char* const text = attribute->ReadAsString();
    return text ? text : "";
}

} // namespace hsi::raster
