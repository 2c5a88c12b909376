// SPDX-License-Identifier: MIT
// Presents arrays of netCDF, HDF5 and Zarr as GDAL datasets, for labels, masks and lookup tables. They have
// the same metadata as scenes.
#include "core/error.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"
#include "raster/products/array_file.h"
#include "raster/products/product.h"

#include <cpl_string.h>
#include <gdal_priv.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

namespace hsi::raster {
namespace {

class ArrayDataset;

class ArrayBand final : public GDALRasterBand {
  public:
    ArrayBand(ArrayDataset* dataset, int number);

    double GetNoDataValue(int* has) override {
        if (has != nullptr) *has = m_part.nodata ? TRUE : FALSE;
        return m_part.nodata ? m_part.nodata->as_double() : 0;
    }
    int64_t GetNoDataValueAsInt64(int* has) override {
        if (has != nullptr) *has = m_part.nodata ? TRUE : FALSE;
        if (!m_part.nodata) return 0;
        return m_part.nodata->kind == SampleType::int64 ? m_part.nodata->whole
                                                        : static_cast<int64_t>(m_part.nodata->real);
    }
    uint64_t GetNoDataValueAsUInt64(int* has) override {
        if (has != nullptr) *has = m_part.nodata ? TRUE : FALSE;
        if (!m_part.nodata) return 0;
        return m_part.nodata->kind == SampleType::uint64 ? m_part.nodata->natural
                                                         : static_cast<uint64_t>(m_part.nodata->real);
    }

    double GetScale(int* has) override { return number_of(described().scale, 1, has); }
    double GetOffset(int* has) override { return number_of(described().offset, 0, has); }
    char** GetCategoryNames() override { return m_names.List(); }

  protected:
    CPLErr IReadBlock(int x, int y, void* values) override;

  private:
    const ProductBand& described() const { return m_product.bands[static_cast<size_t>(nBand - 1)]; }
    static double number_of(const std::optional<double>& number, double otherwise, int* has) {
        if (has != nullptr) *has = number ? TRUE : FALSE;
        return number.value_or(otherwise);
    }
    /// Replaces samples that the array's attributes mark as invalid by the nodata value.
    void blank_samples(char* samples, size_t count) const;

    ArrayDataset& m_dataset;
    const Product& m_product;
    const CubePart& m_part;
    CPLStringList m_names; ///< class names
};

class ArrayDataset final : public GDALDataset {
  public:
    explicit ArrayDataset(std::shared_ptr<const Product> product)
        : m_product(std::move(product)), m_file(ArrayFile::open(m_product->path)) {
        if (!m_file) throw Error("cannot open '" + m_product->path + "'");
        for (const CubePart& part : m_product->parts) {
            m_arrays.push_back(m_file->array_of(part));
            if (!m_arrays.back()) throw Error("cannot read " + part.array + " of '" + m_product->path + "'");
        }
        poDriver = GetGDALDriverManager()->GetDriverByName(m_product->driver.c_str());
        SetDescription(m_product->path.c_str());
        eAccess = GA_ReadOnly;
        nRasterXSize = static_cast<int>(m_product->samples);
        nRasterYSize = static_cast<int>(m_product->lines);
        for (size_t b = 1; b <= m_product->bands.size(); ++b)
            SetBand(static_cast<int>(b), new ArrayBand(this, static_cast<int>(b)));
    }

    const Product& product() const { return *m_product; }
    GDALMDArray& array(int part) const { return *m_arrays[static_cast<size_t>(part)]; }

    CPLErr GetGeoTransform(double* gt) override {
        if (!m_product->geotransform) return CE_Failure;
        std::copy(m_product->geotransform->begin(), m_product->geotransform->end(), gt);
        return CE_None;
    }
    const OGRSpatialReference* GetSpatialRef() const override {
        return m_product->geotransform ? m_product->srs.get() : nullptr;
    }
    char** GetFileList() override { return CSLAddString(nullptr, m_product->path.c_str()); }

  private:
    const std::shared_ptr<const Product> m_product;
    const std::shared_ptr<ArrayFile> m_file;
    std::vector<std::shared_ptr<GDALMDArray>> m_arrays;
};

ArrayBand::ArrayBand(ArrayDataset* dataset, int number)
    : m_dataset(*dataset), m_product(dataset->product()),
      m_part(m_product.part_of(static_cast<size_t>(number - 1))) {
    constexpr int64_t usual_bytes = int64_t{1} << 20;
    poDS = dataset;
    nBand = number;
    for (const std::string& name : m_product.class_names)
        m_names.AddString(name.c_str());
    eDataType = m_part.type;
    nRasterXSize = nBlockXSize = dataset->GetRasterXSize();
    nRasterYSize = dataset->GetRasterYSize();
    const int64_t line = m_product.samples * GDALGetDataTypeSizeBytes(eDataType),
                  lines = std::max<int64_t>(m_part.chunk_lines(), usual_bytes / line);
    nBlockYSize = static_cast<int>(std::clamp<int64_t>(lines, 1, m_product.lines));
}

CPLErr ArrayBand::IReadBlock(int /*x*/, int y, void* values) {
    const ProductBand& band = m_product.bands[static_cast<size_t>(nBand - 1)];
    const int64_t first = int64_t{y} * nBlockYSize,
                  count = std::min<int64_t>(nBlockYSize, m_product.lines - first);
    const int64_t samples = m_product.samples, size = GDALGetDataTypeSizeBytes(eDataType);
    GUInt64 start[3] = {0, 0, 0};
    size_t counts[3] = {1, 1, 1};
    start[m_part.band_axis] = static_cast<GUInt64>(band.index);
    start[m_part.line_axis] =
        static_cast<GUInt64>(m_product.lines_rise ? m_product.lines - first - count : first);
    counts[m_part.line_axis] = static_cast<size_t>(count);
    counts[m_part.sample_axis] = static_cast<size_t>(samples);
    std::vector<char> read(static_cast<size_t>(count * samples * size));
    if (!read_samples(m_dataset.array(band.part), m_part, start, counts, read.data())) return CE_Failure;
    blank_samples(read.data(), static_cast<size_t>(count * samples));
    const bool by_lines = m_part.line_axis < m_part.sample_axis;
    const int64_t of_line = by_lines ? samples : 1, of_sample = by_lines ? 1 : count;
    auto* to = static_cast<char*>(values);
    for (int64_t line = 0; line < count; ++line)
        for (int64_t sample = 0; sample < samples; ++sample, to += size) {
            const int64_t l = m_product.lines_rise ? count - 1 - line : line,
                          s = m_product.samples_fall ? samples - 1 - sample : sample;
            std::memcpy(to, read.data() + (l * of_line + s * of_sample) * size, static_cast<size_t>(size));
        }
    return CE_None;
}

void ArrayBand::blank_samples(char* samples, size_t count) const {
    if (!m_part.invalid.any()) return;
    const auto size = static_cast<size_t>(GDALGetDataTypeSizeBytes(eDataType));
    NodataValue none;
    none.real = std::numeric_limits<double>::quiet_NaN();
    NodataMatch nodata = match_in_type(m_part.nodata.value_or(none), sample_type(eDataType));
    if (!nodata.active) // the array has no nodata value; this occurs only for floats
        GDALCopyWords64(&none.real, GDT_Float64, 0, nodata.bytes, eDataType, 0, 1);
    std::vector<float> marks(count, 0);
    blank_invalid(m_part.invalid, samples, static_cast<ptrdiff_t>(size), sample_type(eDataType), false,
                  marks.data(), count);
    for (size_t i = 0; i < count; ++i)
        if (marks[i] != marks[i]) std::memcpy(samples + i * size, nodata.bytes, size);
}

} // namespace

DatasetHandle open_array_raster(std::shared_ptr<const Product> product) {
    return DatasetHandle(new ArrayDataset(std::move(product)));
}

} // namespace hsi::raster
