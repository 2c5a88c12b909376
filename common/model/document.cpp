// SPDX-License-Identifier: MIT
#include "model/document.h"

#include "core/counted.h"
#include "core/digest.h"
#include "core/error.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>

namespace hsi::model {
namespace {

template <class T>
std::string shortest(T v) {
    if (!std::isfinite(v)) return "null";
    if (v == 0) return std::signbit(v) ? "-0.0" : "0"; // "-0" would be read as the whole number 0
    char digits[64];
    return std::string(digits, std::to_chars(digits, digits + sizeof digits, v).ptr);
}

constexpr const char* checksum_member = "checksum";
/// The member with the original classes of a Python estimator, which adds this member to a complete model.
constexpr const char* labels_member = "labels";

uint64_t digest_of_number(double v, uint64_t before) {
    uint64_t bits = 0;
    static_assert(sizeof bits == sizeof v);
    std::memcpy(&bits, &v, sizeof v);
    char bytes[1 + sizeof bits] = {'0'};
    for (size_t k = 0; k < sizeof bits; ++k) // the same byte order on any machine
        bytes[k + 1] = static_cast<char>(bits >> (8 * k));
    return digest_of({bytes, sizeof bytes}, before);
}

/// Returns the digest of a value with all its parts. 1 and 1.0 have the same digest, since other programs may
/// replace one by the other.
uint64_t digest_of_json(const Json& v, uint64_t before) {
    constexpr double exact = 9007199254740992.0; // 2^53
    if (v.is_number()) {
        const auto number = v.get<double>();
        if (v.is_number_integer() && std::fabs(number) >= exact) return digest_of(v.dump(), before);
        return digest_of_number(number, before);
    }
    if (v.is_string()) {
        const auto& text = v.get_ref<const std::string&>();
        return digest_of(text, digest_of_number(static_cast<double>(text.size()), digest_of("\"", before)));
    }
    if (v.is_array()) {
        before = digest_of("[", before);
        for (const Json& one : v)
            before = digest_of_json(one, before);
        return digest_of("]", before);
    }
    if (!v.is_object()) return digest_of(v.is_null() ? "null" : v.get<bool>() ? "true" : "false", before);
    before = digest_of("{", before);
    for (const auto& [key, one] : v.items())
        before = digest_of_json(one, digest_of_json(Json(key), before));
    return digest_of("}", before);
}

/// Returns the checksum of all members of a document except "checksum" and "labels".
std::string checksum_of(const Json& root) {
    uint64_t digest = digest_of_nothing;
    for (const auto& [key, one] : root.items())
        if (key != checksum_member && key != labels_member)
            digest = digest_of_json(one, digest_of_json(Json(key), digest));
    char text[32];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
    return text;
}

bool looks_like_checksum(const Json& v) {
    if (!v.is_string()) return false;
    const auto& text = v.get_ref<const std::string&>();
    return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

} // namespace

std::string with_checksum(std::string text) {
    const std::string sum = checksum_of(Json::parse(text));
    text.erase(text.find_last_not_of(" \n", text.rfind('}') - 1) + 1);
    return text + ",\n\"" + checksum_member + "\": \"" + sum + "\"\n}\n";
}

std::string number_text(double v) { return shortest(v); }
std::string number_text(float v) { return shortest(v); }

std::string dump(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string head_text(const char* format, int version, const Origin& origin) {
    return "\"format\": \"" + std::string(format) + "\",\n\"version\": " + std::to_string(version) +
           ",\n\"created_by\": " + dump(origin.created_by) + ",\n\"history\": " + dump(origin.history) +
           ",\n";
}

std::string classes_text(const std::vector<ModelClass>& classes, bool weights) {
    std::string t = "\"classes\": [\n";
    for (size_t i = 0; i < classes.size(); ++i) {
        const ModelClass& c = classes[i];
        Json one{{"value", c.value}, {"name", c.name}, {"samples", c.pixels}};
        if (weights) one["weight"] = c.weight;
        if (c.colour) one["colour"] = *c.colour;
        t += "  " + dump(one) + (i + 1 < classes.size() ? ",\n" : "\n");
    }
    return t + "]";
}

std::string values_text(const ModelBands& b) {
    const auto one_or_all = [](const std::vector<double>& v) {
        const bool alike = std::all_of(v.begin(), v.end(), [&](double x) { return x == v.front(); });
        return alike ? number_text(v.front()) : row(v);
    };
    std::string t;
    if (!b.value_scale.empty())
        t += "\"scale\": " + one_or_all(b.value_scale) + ", \"offset\": " + one_or_all(b.value_offset);
    if (!b.value_unit.empty()) t += (t.empty() ? "" : ", ") + ("\"unit\": " + dump(b.value_unit));
    return t.empty() ? t : "{" + t + "}";
}

std::string bands_text(const ModelBands& b) {
    std::string t = "  \"bands\": " + dump(b.bands);
    if (b.numbers_told) t += ",\n  \"numbers_told\": true";
    if (b.file_bands > 0) t += ",\n  \"file_bands\": " + std::to_string(b.file_bands);
    if (!b.band_names.empty()) t += ",\n  \"names\": " + dump(b.band_names);
    if (!b.wavelengths_nm.empty()) t += ",\n  \"wavelengths_nm\": " + row(b.wavelengths_nm);
    if (const auto values = values_text(b); !values.empty()) t += ",\n  \"values\": " + values;
    if (!b.minimum.empty())
        t += ",\n  \"minimum\": " + row(b.minimum) + ",\n  \"maximum\": " + row(b.maximum);
    if (!b.mean.empty()) t += ",\n  \"mean\": " + row(b.mean);
    return t;
}

Reader::Reader(std::string name, std::string kind, std::string maker)
    : m_name(std::move(name)), m_kind(std::move(kind)), m_maker(std::move(maker)) {}

void Reader::fail(const std::string& what) const {
    throw Error("'" + m_name + "' is not a usable " + m_kind + " model: " + what,
                "Use a model made by " + m_maker + "; this file may be damaged.");
}

Json Reader::parse(const std::string& document, const char* format, int version, const char* former) const {
    std::string fault;
    auto parsed = parse_json(document, fault);
    if (!parsed) fail("it " + fault);
    Json& root = *parsed;
    const std::string mark = root.is_object() ? text(root, "format") : std::string();
    if (mark != format && (former == nullptr || mark != former))
        fail(std::string("its format is not '") + format + "'");
    if (const auto found = whole(member(root, "version"), "version", 1, 1 << 30); found != version)
        fail("it has version " + std::to_string(found) + ", but this program reads version " +
             std::to_string(version));
    return std::move(root);
}

void Reader::check_sum(const Json& root) const {
    if (const auto sum = root.find(checksum_member); sum != root.end()) {
        if (*sum != checksum_of(root))
            throw Error("'" + m_name + "' is damaged: its checksum does not match",
                        "Restore it from a backup, or make it again with " + m_maker +
                            ". If you edited the file, remove its member 'checksum'.");
        return;
    }
    for (const auto& [key, value] : root.items())
        if (looks_like_checksum(value)) fail("its member '" + key + "' looks like a damaged checksum");
}

Origin Reader::origin(const Json& root) const { return {text(root, "created_by"), text(root, "history")}; }

const Json& Reader::member(const Json& object, const char* key) const {
    if (!object.is_object()) fail(std::string("an object with '") + key + "' is missing");
    const auto it = object.find(key);
    if (it == object.end()) fail(std::string("'") + key + "' is missing");
    return *it;
}

const Json& Reader::list(const Json& object, const char* key) const {
    const Json& v = member(object, key);
    if (!v.is_array()) fail(std::string("'") + key + "' is not a list");
    return v;
}

double Reader::number(const Json& v, const char* what) const {
    if (!v.is_number()) fail(std::string("'") + what + "' has an entry that is not a number");
    const double x = v.get<double>();
    if (!std::isfinite(x)) fail(std::string("'") + what + "' is not finite");
    return x;
}

double Reader::positive(const Json& object, const char* key) const {
    const double x = number(member(object, key), key);
    if (!(x > 0)) fail(std::string("'") + key + "' is not above 0");
    return x;
}

int64_t Reader::whole(const Json& v, const char* what, int64_t least, int64_t most) const {
    const double x = number(v, what);
    if (x != std::floor(x) || x < static_cast<double>(least) || x > static_cast<double>(most))
        fail(std::string("'") + what + "' is not a whole number from " + std::to_string(least) + " to " +
             std::to_string(most));
    return static_cast<int64_t>(x);
}

std::string Reader::text(const Json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key)) return {};
    const Json& v = object[key];
    if (!v.is_string()) fail(std::string("'") + key + "' is not a text");
    return v.get<std::string>();
}

void Reader::expect(const Json& v, const char* what, size_t count) const {
    if (!v.is_array()) fail(std::string("'") + what + "' is not a list");
    if (v.size() != count)
        fail(std::string("'") + what + "' has " + counted(v.size(), "entry", "entries") + " instead of " +
             std::to_string(count));
}

std::vector<double> Reader::numbers(const Json& v, const char* what, size_t count) const {
    expect(v, what, count);
    std::vector<double> all;
    all.reserve(count);
    for (const auto& x : v)
        all.push_back(number(x, what));
    return all;
}

void Reader::floats(const Json& v, const char* what, size_t count, std::vector<float>& to) const {
    for (const double x : numbers(v, what, count)) {
        if (std::fabs(x) > static_cast<double>(std::numeric_limits<float>::max()))
            fail(std::string("a number of '") + what + "' is out of range");
        to.push_back(static_cast<float>(x));
    }
}

ModelBands Reader::bands(const Json& features, bool empty_wavelengths) const {
    ModelBands m;
    const Json& bands = list(features, "bands");
    const size_t n = bands.size();
    if (n == 0 || n > 1000000) fail("it has no features, or more than 1000000");
    for (const auto& b : bands)
        m.bands.push_back(static_cast<int>(whole(b, "bands", 1, 1000000)));
    std::vector<int> sorted = m.bands;
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
        fail("'bands' names band " + std::to_string(*twice) + " twice");
    if (features.contains("numbers_told")) {
        if (!features["numbers_told"].is_boolean()) fail("'numbers_told' is not true or false");
        m.numbers_told = features["numbers_told"].get<bool>();
    }
    if (features.contains("file_bands")) {
        m.file_bands = static_cast<int>(whole(features["file_bands"], "file_bands", 1, 1000000));
        if (!m.numbers_told && m.file_bands < sorted.back())
            fail("'bands' names band " + std::to_string(sorted.back()) + ", but the last band is " +
                 std::to_string(m.file_bands));
    }
    if (features.contains("names")) {
        expect(features["names"], "names", n);
        for (const auto& name : features["names"]) {
            if (!name.is_string()) fail("'names' has an entry that is not a text");
            m.band_names.push_back(name.get<std::string>());
        }
    }
    const bool told = features.contains("wavelengths_nm") &&
                      !(empty_wavelengths && features["wavelengths_nm"] == Json::array());
    if (told) {
        expect(features["wavelengths_nm"], "wavelengths_nm", n);
        for (const auto& w : features["wavelengths_nm"]) {
            m.wavelengths_nm.push_back(w.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                                   : number(w, "wavelengths_nm"));
            if (m.wavelengths_nm.back() < 0 || m.wavelengths_nm.back() > 1e9)
                fail("'wavelengths_nm' has the invalid wavelength " + number_text(m.wavelengths_nm.back()));
        }
    }
    values(features, m);
    return m;
}

void Reader::values(const Json& features, ModelBands& m) const {
    const size_t n = m.bands.size();
    if (features.contains("values")) {
        const Json& v = features["values"];
        if (!v.is_object()) fail("'values' is not an object");
        const auto one_or_all = [&](const char* key) {
            const Json& x = member(v, key);
            return x.is_array() ? numbers(x, key, n) : std::vector<double>(n, number(x, key));
        };
        if (v.contains("scale") || v.contains("offset")) {
            m.value_scale = one_or_all("scale");
            m.value_offset = one_or_all("offset");
            for (const double s : m.value_scale)
                if (s == 0) fail("the 'scale' of its values is 0");
        }
        m.value_unit = text(v, "unit");
    }
    const auto amounts = [&](const char* key) {
        std::vector<double> all = numbers(features[key], key, n);
        for (const double x : all)
            if (std::fabs(x) > static_cast<double>(std::numeric_limits<float>::max()))
                fail(std::string("a number of '") + key + "' is out of range");
        return all;
    };
    if (features.contains("minimum") != features.contains("maximum"))
        fail("it has only one of 'minimum' and 'maximum'");
    if (features.contains("minimum")) {
        m.minimum = amounts("minimum");
        m.maximum = amounts("maximum");
        for (size_t f = 0; f < n; ++f)
            if (m.maximum[f] < m.minimum[f])
                fail("the minimum of feature " + std::to_string(f + 1) + " is above its maximum");
    }
    if (features.contains("mean")) m.mean = amounts("mean");
}

std::vector<ModelClass> Reader::classes(const Json& root) const {
    std::vector<ModelClass> all;
    const Json& classes = list(root, "classes");
    if (classes.size() < 2 || classes.size() > 65536)
        fail("it has fewer than two classes, or more than 65536");
    for (const auto& one : classes) {
        ModelClass c;
        c.value = static_cast<int>(whole(member(one, "value"), "value", 0, 65535));
        if (!all.empty() && c.value <= all.back().value) fail("its classes are not in ascending order");
        c.name = text(one, "name");
        if (one.contains("samples")) c.pixels = whole(one["samples"], "samples", 0, int64_t{1} << 50);
        if (one.contains("weight")) c.weight = number(one["weight"], "weight");
        if (one.contains("colour")) {
            expect(one["colour"], "colour", 4);
            c.colour.emplace();
            for (size_t k = 0; k < 4; ++k)
                (*c.colour)[k] = static_cast<uint8_t>(whole(one["colour"][k], "colour", 0, 255));
        }
        all.push_back(std::move(c));
    }
    return all;
}

} // namespace hsi::model
