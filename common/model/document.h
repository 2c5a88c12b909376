// SPDX-License-Identifier: MIT
// Classifiers as readable JSON documents: numbers are restored to the last bit, classes have one line each,
// and errors about damaged files name the place.
#pragma once

#include "core/json.h"
#include "model/classes.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace hsi::model {

// ---- Writing --------------------------------------------------------------------------------------------

/// The shortest text that gives the same number back; "null" for infinite values and NaN, which JSON does not
/// have.
std::string number_text(double v);
std::string number_text(float v);
/// A list of numbers on one line.
template <class T>
std::string row(const T* v, size_t count) {
    std::string text = "[";
    for (size_t i = 0; i < count; ++i) {
        if (i) text += ',';
        text += number_text(v[i]);
    }
    return text + "]";
}
inline std::string row(const std::vector<double>& v) { return row(v.data(), v.size()); }
/// One line of JSON; invalid UTF-8 is mended.
std::string dump(const Json& j);
/// The beginning of every model: the members "format" ("gdal_hsi_svm"), "version" of the format, "created_by"
/// (a tool and its version) and "history" (the command line), each on a line that ends with a comma.
std::string head_text(const char* format, int version, const Origin& origin);
/// `text`, an object, with a last member "checksum". It covers all other members but "labels", which Python's
/// estimators add; blanks and the order of members do not change it.
std::string with_checksum(std::string text);
/// The member "classes", with "weight" or without.
std::string classes_text(const std::vector<ModelClass>& classes, bool weights);
/// The known ones among the members "bands", "names", "wavelengths_nm", "values", "minimum", "maximum" and
/// "mean", one per line, indented by two; no comma after the last.
std::string bands_text(const ModelBands& bands);
/// The member "values" alone: scale and offset (one number where all bands agree) and unit; empty when
/// nothing is known.
std::string values_text(const ModelBands& bands);

// ---- Reading --------------------------------------------------------------------------------------------

/// Reads with complaints that name the file and the place.
class Reader {
  public:
    /// name: of the file; kind: "SVM"; maker: the tool that makes such files.
    Reader(std::string name, std::string kind, std::string maker);

    [[noreturn]] void fail(const std::string& what) const;
    /// Parses a document and checks that it is marked as `format`, or as `former`, of this version.
    Json parse(const std::string& text, const char* format, int version, const char* former = nullptr) const;
    /// The members "created_by" and "history"; empty where they are absent.
    Origin origin(const Json& root) const;

    const Json& member(const Json& object, const char* key) const;
    const Json& list(const Json& object, const char* key) const;
    double number(const Json& v, const char* what) const;       ///< finite
    double positive(const Json& object, const char* key) const; ///< finite and above 0
    int64_t whole(const Json& v, const char* what, int64_t least, int64_t most) const;
    std::string text(const Json& object, const char* key) const;      ///< empty when absent
    void expect(const Json& v, const char* what, size_t count) const; ///< a list of `count` entries
    std::vector<double> numbers(const Json& v, const char* what, size_t count) const;
    /// A list of `count` numbers within the range of float, appended to `to`.
    void floats(const Json& v, const char* what, size_t count, std::vector<float>& to) const;

    /// The members that bands_text() writes, from an object that has "bands": 1 to a million of them, each
    /// once. `empty_wavelengths`: an empty list means unknown wavelengths, as PCA and MNF write it.
    ModelBands bands(const Json& features, bool empty_wavelengths = false) const;
    /// The member "classes" of the root: two at least, in order of their values.
    std::vector<ModelClass> classes(const Json& root) const;

    /// The last check of a document, once all members have been read: members that do not fit are named
    /// first. A checksum must be right. Models of older versions have no checksum, nor do models from which
    /// it was removed for editing.
    void check_sum(const Json& root) const;

  private:
    void values(const Json& features, ModelBands& m) const;

    std::string m_name, m_kind, m_maker;
};

} // namespace hsi::model
