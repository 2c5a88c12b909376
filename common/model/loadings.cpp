// SPDX-License-Identifier: MIT
#include "model/loadings.h"

#include <algorithm>
#include <cmath>

namespace hsi::model {
namespace {

constexpr double allowed_error = 1e-6;

} // namespace

std::string entry(const char* list, size_t index) {
    return "entry " + std::to_string(index + 1) + " of '" + list + "'";
}

OrderedJson begin_document(const char* format, int version, const Origin& origin, const std::string& source,
                           int64_t pixels) {
    OrderedJson document;
    document["format"] = format;
    document["version"] = version;
    document["created_by"] = origin.created_by;
    document["history"] = origin.history;
    document["source"] = source;
    document["pixels"] = pixels;
    return document;
}

void add_bands(OrderedJson& document, const ModelBands& bands) {
    document["bands"] = bands.bands;
    if (bands.numbers_told) document["numbers_told"] = true;
    if (bands.file_bands > 0) document["file_bands"] = bands.file_bands;
    document["wavelengths_nm"] = with_nulls(bands.wavelengths_nm);
    if (const auto values = values_text(bands); !values.empty()) document["values"] = Json::parse(values);
    if (bands.minimum.empty()) return;
    document["minimum"] = bands.minimum;
    document["maximum"] = bands.maximum;
}

Json with_nulls(const std::vector<double>& values) {
    Json list = Json::array();
    for (double v : values)
        list.push_back(std::isfinite(v) ? Json(v) : Json(nullptr));
    return list;
}

OrderedJson rows_of(const std::vector<double>& values, size_t n) {
    auto rows = OrderedJson::array();
    for (size_t at = 0; n > 0 && at + n <= values.size(); at += n)
        rows.push_back(std::vector<double>(values.data() + at, values.data() + at + n));
    return rows;
}

std::string lines_text(const OrderedJson& document) {
    std::string text = "{";
    bool first = true;
    for (const auto& [key, value] : document.items()) {
        text += (first ? "\n  " : ",\n  ") + Json(key).dump() + ": ";
        first = false;
        if (value.is_array() && !value.empty() && value.front().is_array()) {
            text += "[";
            for (size_t k = 0; k < value.size(); ++k)
                text += (k ? ",\n    " : "\n    ") + value[k].dump();
            text += "\n  ]";
        } else {
            text += value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
        }
    }
    return text + "\n}\n";
}

std::vector<double> read_eigenvalues(const Reader& in, const Json& root, size_t count) {
    auto values = in.numbers(in.member(root, "eigenvalues"), "eigenvalues", count);
    const double largest = values.front();
    for (size_t k = 0; k < values.size(); ++k) {
        const double v = values[k];
        if (std::fabs(v) > greatest_variance) in.fail(entry("eigenvalues", k) + " is out of range");
        // The solver returns variances of zero with a small error of either sign.
        if (v < -allowed_error * std::fabs(largest)) in.fail(entry("eigenvalues", k) + " is negative");
        if (k > 0 && v > values[k - 1] + allowed_error * std::fabs(largest))
            in.fail(entry("eigenvalues", k) + " is larger than the one before it");
    }
    if (largest < 0) in.fail(entry("eigenvalues", 0) + " is negative");
    return values;
}

std::vector<double> read_rows(const Reader& in, const Json& root, const char* key, size_t rows, size_t n) {
    const Json& list = in.member(root, key);
    in.expect(list, key, rows);
    std::vector<double> all;
    for (const auto& row : list) {
        const auto values = in.numbers(row, key, n);
        all.insert(all.end(), values.begin(), values.end());
    }
    return all;
}

void check_dual(const Reader& in, const char* a, const std::vector<double>& a_rows, const char* b,
                const std::vector<double>& b_rows, size_t n) {
    const size_t rows = a_rows.size() / n;
    const bool same = std::string(a) == b;
    const auto product = [&](size_t k, size_t l) {
        double sum = 0;
        for (size_t i = 0; i < n; ++i)
            sum += a_rows[k * n + i] * b_rows[l * n + i];
        return sum;
    };
    const std::string of =
        same ? std::string(" of '") + a + "'" : std::string(" of '") + a + "' and '" + b + "'";
    for (size_t k = 0; k < rows; ++k)
        if (!(std::fabs(product(k, k) - 1) <= allowed_error))
            in.fail(same ? "row " + std::to_string(k + 1) + of + " does not have the length 1"
                         : "the product of the rows " + std::to_string(k + 1) + of + " is not 1");
    // Checks A B'x = x for one irregular vector x. Pairs of rows are checked only if this fails, because
    // thousands of bands have millions of pairs.
    std::vector<double> x(rows), y(n, 0.0);
    double seed = 0.5;
    for (size_t k = 0; k < rows; ++k) {
        seed = 3.99 * seed * (1 - seed); // the logistic map, which gives irregular numbers
        x[k] = seed + 0.01;
        for (size_t i = 0; i < n; ++i)
            y[i] += b_rows[k * n + i] * x[k];
    }
    for (size_t k = 0; k < rows; ++k) {
        double z = 0;
        for (size_t i = 0; i < n; ++i)
            z += a_rows[k * n + i] * y[i];
        if (std::fabs(z - x[k]) <= allowed_error) continue;
        for (size_t other = 0; other < rows; ++other)
            if (other != k && std::fabs(product(k, other)) > allowed_error / static_cast<double>(rows))
                in.fail("rows " + std::to_string(same ? std::min(k, other) + 1 : k + 1) + " and " +
                        std::to_string(same ? std::max(k, other) + 1 : other + 1) + of +
                        " are not orthogonal");
        in.fail("the rows" + of + " are not orthogonal");
    }
}

} // namespace hsi::model
