// SPDX-License-Identifier: MIT
// Reads version 7.3 of MATLAB's file format. This is HDF5 with the subscripts of arrays in reverse order, and
// with attributes that state the MATLAB class.
#include "core/error.h"
#include "raster/gdal_errors.h"
#include "raster/matlab/matlab_file.h"
#include "raster/products/array_file.h"

#include <algorithm>
#include <cstring>

namespace hsi::raster {
namespace {

constexpr uint64_t box_bytes = uint64_t{4} << 20;

std::string full_name(const std::string& variable) {
    std::string name = "/" + variable;
    std::replace(name.begin(), name.end(), '.', '/');
    return name;
}

class MatlabArrays final : public MatlabFile {
  public:
    explicit MatlabArrays(const std::string& path) : MatlabFile(path, "7.3") {
        const auto file = open_arrays();
        const GdalErrors quiet;
        if (const auto root = file->group("/")) look_at(*root, "", 0);
    }

    void read(const MatlabVariable& variable, const Take& take) const override {
        if (variable.type == GDT_Unknown)
            throw Error("'" + path() + "': " + variable.text() + " is not an array of real numbers");
        if (variable.count() > 0) read_as(variable, variable.type, take);
    }

    std::vector<std::string> texts(const MatlabVariable& variable) const override {
        constexpr int64_t longest = 1 << 22;
        if (variable.kind != "char" || variable.count() > longest || variable.count() == 0) return {};
        std::vector<uint32_t> characters;
        read_as(variable, GDT_UInt32, [&](const char* values, size_t count) {
            const size_t before = characters.size();
            characters.resize(before + count);
            std::memcpy(characters.data() + before, values, count * sizeof(uint32_t));
        });
        return rows_of(characters, variable.dims.front());
    }

  private:
    std::shared_ptr<ArrayFile> open_arrays() const {
        auto file = ArrayFile::open(path());
        if (!file) refuse("it has version 7.3, which is HDF5, but GDAL's HDF5 driver cannot open it");
        return file;
    }

    void look_at(const GDALGroup& group, const std::string& prefix, int depth) {
        for (const std::string& name : group.GetMDArrayNames()) {
            if (m_variables.size() >= most_matlab_variables) return;
            if (const auto array = group.OpenMDArray(name)) add(prefix + name, array);
        }
        if (depth == deepest_struct) return;
        for (const std::string& name : group.GetGroupNames()) {
            // This group contains the targets of references.
            if (name.empty() || name.front() == '#') continue;
            const auto inner = group.OpenGroup(name);
            if (!inner) continue;
            if (inner->GetAttribute("MATLAB_sparse")) {
                MatlabVariable sparse;
                sparse.name = prefix + name;
                sparse.kind = "sparse";
                m_variables.push_back(std::move(sparse));
            } else {
                look_at(*inner, prefix + name + ".", depth + 1);
            }
        }
    }

    void add(const std::string& name, const std::shared_ptr<GDALMDArray>& array) {
        MatlabVariable one;
        one.name = name;
        const auto& axes = array->GetDimensions();
        for (size_t k = axes.size(); k > 0; --k) // MATLAB's first subscript is the last axis of HDF5
            one.dims.push_back(static_cast<int64_t>(axes[k - 1]->GetSize()));
        while (one.dims.size() < 2)
            one.dims.push_back(1);
        // The data of an empty array are its size.
        if (array->GetAttribute("MATLAB_empty")) one.dims.assign(2, 0);
        one.kind = attribute_text(array, "MATLAB_class");
        const auto type = array->GetDataType();
        const bool numeric = type.GetClass() == GEDTC_NUMERIC;
        const bool complex = type.GetClass() == GEDTC_COMPOUND ||
                             (numeric && GDALDataTypeIsComplex(type.GetNumericDataType()));
        if (one.kind.empty()) one.kind = numeric ? GDALGetDataTypeName(type.GetNumericDataType()) : "object";
        if (complex) one.kind = "complex " + one.kind;
        static const char* const numbers[] = {"double", "single", "int8",  "uint8",  "int16",  "uint16",
                                              "int32",  "uint32", "int64", "uint64", "logical"};
        const bool named = std::any_of(std::begin(numbers), std::end(numbers),
                                       [&](const char* word) { return one.kind == word; });
        if (numeric && !complex && (named || !array->GetAttribute("MATLAB_class")))
            one.type = type.GetNumericDataType();
        m_variables.push_back(std::move(one));
    }

    /// Reads the array in consecutive blocks, in the order of the file.
    void read_as(const MatlabVariable& variable, GDALDataType type, const Take& take) const {
        const auto file = open_arrays();
        const auto array = file->array(full_name(variable.name));
        if (!array) refuse("'" + variable.name + "' cannot be opened");
        std::vector<GUInt64> sizes;
        for (const auto& axis : array->GetDimensions())
            sizes.push_back(axis->GetSize());
        const auto width = static_cast<uint64_t>(GDALGetDataTypeSizeBytes(type));
        // A block covers several indices of the axis cut - 1, one index of the axes before it, and all
        // indices of the axes after it.
        size_t cut = sizes.size();
        uint64_t inner = 1;
        while (cut > 0 && inner * sizes[cut - 1] * width <= box_bytes)
            inner *= sizes[--cut];
        std::vector<GUInt64> start(sizes.size(), 0);
        std::vector<size_t> count(sizes.begin(), sizes.end());
        for (size_t k = 0; k < cut; ++k)
            count[k] = 1;
        const uint64_t most = cut > 0 ? std::max<uint64_t>(1, box_bytes / (inner * width)) : 1;
        std::vector<char> values(static_cast<size_t>(inner * width * most));
        const auto of = GDALExtendedDataType::Create(type);
        for (bool more = true; more;) {
            if (cut > 0)
                count[cut - 1] =
                    static_cast<size_t>(std::min<uint64_t>(most, sizes[cut - 1] - start[cut - 1]));
            {
                const GdalErrors errors;
                if (!array->Read(start.data(), count.data(), nullptr, nullptr, of, values.data()) ||
                    errors.any())
                    refuse("'" + variable.name + "' cannot be read: " + errors.text());
            }
            take(values.data(), static_cast<size_t>(inner) * (cut > 0 ? count[cut - 1] : 1));
            more = false;
            for (size_t k = cut; k > 0 && !more; --k) {
                start[k - 1] += count[k - 1];
                more = start[k - 1] < sizes[k - 1];
                if (!more) start[k - 1] = 0;
            }
        }
    }
};

} // namespace

std::shared_ptr<const MatlabFile> open_matlab_arrays(const std::string& path) {
    return std::make_shared<MatlabArrays>(path);
}

} // namespace hsi::raster
