// SPDX-License-Identifier: MIT
// The common parts of the documents of models that turn spectra into components: eigenvalues in falling
// order, one row of loadings per component, one list per line.
#pragma once

#include "core/json.h"
#include "model/document.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hsi::model {

/// The largest value that a variance or a squared deviation of floats can have, with room for many bands.
inline constexpr double greatest_variance = 1e80;
/// The most bands, which is GDAL's own limit.
inline constexpr size_t most_bands = 65536;

/// "entry 3 of 'scale'".
std::string entry(const char* list, size_t index);

/// The beginning of such a model: "format", "version", "created_by", "history", "source" and "pixels", the
/// count of pixels that it was made from.
OrderedJson begin_document(const char* format, int version, const Origin& origin, const std::string& source,
                           int64_t pixels);
/// The members "bands", "wavelengths_nm", "values", "minimum" and "maximum", as far as they are known.
void add_bands(OrderedJson& document, const ModelBands& bands);

/// JSON has no NaN: unknown wavelengths are null.
Json with_nulls(const std::vector<double>& values);

/// Rows of n numbers as a list of lists.
OrderedJson rows_of(const std::vector<double>& values, size_t n);

/// The document with one list a line, and one row a line of those members that hold rows: readable, and small
/// differences stay small.
std::string lines_text(const OrderedJson& document);

/// The member "eigenvalues": `count` numbers, falling and not negative to a millionth of the first, within
/// greatest_variance.
std::vector<double> read_eigenvalues(const Reader& in, const Json& root, size_t count);

/// The member `key`: `rows` lists of n numbers.
std::vector<double> read_rows(const Reader& in, const Json& root, const char* key, size_t rows, size_t n);

/// Rows a_k of the member `a` and b_k of `b` must have a_k.b_k = 1 and a_k.b_l = 0, to a millionth:
/// projections and their inverse take it for granted. `a` and `b` may be the same.
void check_dual(const Reader& in, const char* a, const std::vector<double>& a_rows, const char* b,
                const std::vector<double>& b_rows, size_t n);

} // namespace hsi::model
