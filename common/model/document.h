// SPDX-License-Identifier: MIT
// Writes and reads classifiers as readable JSON documents. Numbers are restored to the last bit, each class
// has one text line, and errors about damaged files name the position.
#pragma once

#include "core/json.h"
#include "model/classes.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace hsi::model {

// ---- Writing --------------------------------------------------------------------------------------------

/// Returns the shortest text that restores the number. Infinite values and NaN give "null", because JSON does
/// not have them.
std::string number_text(double v);
std::string number_text(float v);
/// Returns a list of numbers on one text line.
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
/// Returns one text line of JSON. Replaces invalid UTF-8.
std::string dump(const Json& j);
/// Returns the beginning of every model: the members "format" ("gdal_hsi_svm"), "version" of the format,
/// "created_by" (a tool and its version) and "history" (the command line). Each is on a text line that ends
/// with a comma.
std::string head_text(const char* format, int version, const Origin& origin);
/// Adds the member "checksum" at the end of `text`, a JSON object. The checksum covers all other members
/// except "labels", which Python's estimators add. Blanks and the order of members do not change the
/// checksum.
std::string with_checksum(std::string text);
/// Returns the member "classes", with or without "weight".
std::string classes_text(const std::vector<ModelClass>& classes, bool weights);
/// Returns the members "bands", "names", "wavelengths_nm", "values", "minimum", "maximum" and "mean", as far
/// as they are known: one per text line, indented by two, without a comma after the last one.
std::string bands_text(const ModelBands& bands);
/// Returns only the member "values": scale and offset (each one number if all bands agree) and unit. Returns
/// an empty text if all are unknown.
std::string values_text(const ModelBands& bands);

// ---- Reading --------------------------------------------------------------------------------------------

/// Reads documents. The errors name the file and the position.
class Reader {
  public:
    /// name: name of the file; kind: "SVM"; maker: the tool that writes such files.
    Reader(std::string name, std::string kind, std::string maker);

    [[noreturn]] void fail(const std::string& what) const;
    /// Parses a document and checks that it states `format` (or `former`) and this version.
    Json parse(const std::string& text, const char* format, int version, const char* former = nullptr) const;
    /// Returns the members "created_by" and "history"; empty texts if they are absent.
    Origin origin(const Json& root) const;

    const Json& member(const Json& object, const char* key) const;
    const Json& list(const Json& object, const char* key) const;
    double number(const Json& v, const char* what) const; ///< throws Error unless it is finite
    double positive(const Json& object,
                    const char* key) const; ///< throws Error unless it is finite and above 0
    int64_t whole(const Json& v, const char* what, int64_t least, int64_t most) const;
    /// Returns the text of the member `key`; an empty text if the member is absent.
    std::string text(const Json& object, const char* key) const;
    /// Throws Error unless v is a list of `count` entries.
    void expect(const Json& v, const char* what, size_t count) const;
    std::vector<double> numbers(const Json& v, const char* what, size_t count) const;
    /// Appends a list of `count` numbers within the range of float to `to`.
    void floats(const Json& v, const char* what, size_t count, std::vector<float>& to) const;

    /// Reads the members that bands_text() writes from an object whose member "bands" has band numbers from 1
    /// to a million, each once. With `empty_wavelengths`, an empty list of wavelengths means that they are
    /// unknown, as PCA and MNF write it.
    ModelBands bands(const Json& features, bool empty_wavelengths = false) const;
    /// Reads the member "classes" of the root: at least two classes, in the order of their values.
    std::vector<ModelClass> classes(const Json& root) const;

    /// Checks the checksum, and throws Error if it does not match or is damaged. Call this function after all
    /// members have been read, so that errors of members are reported first. A document without a checksum is
    /// accepted: older versions wrote none, and users may remove it before they edit a model.
    void check_sum(const Json& root) const;

  private:
    void values(const Json& features, ModelBands& m) const;

    std::string m_name, m_kind, m_maker;
};

} // namespace hsi::model
