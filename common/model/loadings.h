// SPDX-License-Identifier: MIT
// Reads and writes the common parts of models that convert spectra to components: eigenvalues in falling
// order, and one row of loadings per component.
#pragma once

#include "core/json.h"
#include "model/document.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hsi::model {

/// An upper limit for variances and squared deviations of floats. It also holds for sums over many bands.
inline constexpr double greatest_variance = 1e80;
/// The maximum number of bands, equal to GDAL's limit.
inline constexpr size_t most_bands = 65536;

/// Returns "entry 3 of 'scale'".
std::string entry(const char* list, size_t index);

/// Returns the beginning of such a model: "format", "version", "created_by", "history", "source" and
/// "pixels", the number of pixels that the model was made from.
OrderedJson begin_document(const char* format, int version, const Origin& origin, const std::string& source,
                           int64_t pixels);
/// Adds the members "bands", "wavelengths_nm", "values", "minimum" and "maximum", as far as they are known.
void add_bands(OrderedJson& document, const ModelBands& bands);

/// Returns the values as a list. Unknown wavelengths (NaN) become null, because JSON has no NaN.
Json with_nulls(const std::vector<double>& values);

/// Returns rows of n numbers as a list of lists.
OrderedJson rows_of(const std::vector<double>& values, size_t n);

/// Returns the document with one text line per list, or one per row for members that contain rows. People can
/// then read the text, and small changes of a model change few lines.
std::string lines_text(const OrderedJson& document);

/// Reads the member "eigenvalues": `count` numbers in falling order, with magnitudes up to greatest_variance.
/// Negative numbers are accepted if their magnitude is at most a millionth of the first number.
std::vector<double> read_eigenvalues(const Reader& in, const Json& root, size_t count);

/// Reads the member `key`: `rows` lists of n numbers.
std::vector<double> read_rows(const Reader& in, const Json& root, const char* key, size_t rows, size_t n);

/// Checks that the rows a_k of member `a` and b_k of member `b` have a_k.b_k = 1 and a_k.b_l = 0 for k != l,
/// to a millionth. A projection and its inverse require these products. `a` and `b` may be the same member.
/// \throws Error otherwise.
void check_dual(const Reader& in, const char* a, const std::vector<double>& a_rows, const char* b,
                const std::vector<double>& b_rows, size_t n);

} // namespace hsi::model
