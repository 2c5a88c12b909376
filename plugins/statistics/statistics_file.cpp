// SPDX-License-Identifier: MIT
// Writes and reads the file of statistics. It is JSON, and all numbers are read back exactly. People can read
// everything in it except the sums, whose parts are long lists.
#include "core/digest.h"
#include "core/error.h"
#include "core/json.h"
#include "model/document.h"
#include "model/loadings.h"
#include "statistics/statistics.h"
#include "stream/statistics_sums.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

namespace hsi::statistics {
namespace {

constexpr const char* statistics_format = "gdal_hsi_statistics";
constexpr int statistics_version = 1;
/// Maximum number of parts per exact sum. A part has at least 51 bits, and sums of products of floats have
/// about 700 bits.
constexpr size_t most_parts = 16;

using model::Reader;

std::string hexadecimal(uint64_t x) {
    char text[32];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(x));
    return text;
}

std::string float_row(const std::vector<float>& v) { return model::row(v.data(), v.size()); }

/// Returns `"name": [[..],[..]]` with one line of text per part.
std::string sums_text(const char* name, const math::ExactSums& sums) {
    std::string text = "\"" + std::string(name) + "\": [";
    const char* before = "\n  ";
    for (const auto& part : parts_of(sums)) {
        text += before + model::row(part);
        before = ",\n  ";
    }
    return text + "]";
}

std::string scene_text(const SceneRecord& s) {
    const Json head{{"name", s.name},
                    {"bytes", s.bytes},
                    {"modified", s.modified},
                    {"mask", s.mask},
                    {"samples", s.samples},
                    {"lines", s.lines},
                    {"valid_pixels", s.valid},
                    {"invalid_pixels", s.invalid},
                    {"digest", hexadecimal(s.digest)}};
    std::string text = model::dump(head);
    text.pop_back();
    return text + ",\n   \"minimum\": " + float_row(s.extremes.low) +
           ",\n   \"maximum\": " + float_row(s.extremes.high) +
           (s.left_out.bands.empty() ? std::string()
                                     : ",\n   \"left_out\": {\n" + model::bands_text(s.left_out) + "}") +
           "}";
}

/// Returns the text of the file without the checksum.
std::string body_text(const Statistics& s, const std::string& maker) {
    std::string text = "\"format\": \"" + std::string(statistics_format) +
                       "\",\n\"version\": " + std::to_string(statistics_version) +
                       ",\n\"created_by\": " + model::dump(maker) + ",\n\"features\": {\n" +
                       model::bands_text(s.bands) + "},\n\"scenes\": [";
    const char* before = "\n  ";
    for (const SceneRecord& scene : s.scenes) {
        text += before + scene_text(scene);
        before = ",\n  ";
    }
    text += "],\n\"valid_pixels\": " + std::to_string(s.sums.valid) +
            ",\n\"invalid_pixels\": " + std::to_string(s.sums.invalid) +
            ",\n\"pairs\": " + std::to_string(s.sums.pairs) + ",\n\"finite\": " + model::dump(s.sums.finite);
    for (const auto& [name, sums] : {std::pair("sums", &s.sums.sum), std::pair("products", &s.sums.product),
                                     std::pair("differences", &s.sums.difference)})
        text += ",\n" + sums_text(name, *sums);
    return text;
}

// Reading
// ----------------------------------------------------------------------------------------------------------

class FileReader {
  public:
    FileReader(const std::string& text, const std::string& name)
        : m_name(name), m_in(name, "statistics", "gdal_hsi_statistics") {
        std::string fault;
        if (auto root = parse_json(text, fault)) m_root = std::move(*root);
        if (!m_root.is_object() || m_root.value("format", Json()) != Json(statistics_format))
            throw Error("'" + name + "' is not a statistics file" +
                            (is_statistics(text.substr(0, 64)) ? ", or is damaged: it " + fault : ""),
                        "Use a file made by gdal_hsi_statistics.");
        const auto version = m_in.whole(m_in.member(m_root, "version"), "version", 1, 1 << 30);
        if (version > statistics_version)
            throw Error(
                "'" + name + "' has version " + std::to_string(version) +
                    " of the statistics format; this program reads version " +
                    std::to_string(statistics_version),
                "Use the newer gdal_hsi_statistics that made it, or make it again with this version.");
    }

    Statistics read() {
        auto bands = m_in.bands(m_in.member(m_root, "features"));
        const size_t n = bands.bands.size();
        if (n > model::most_bands) m_in.fail("it has too many bands");
        // A file that is too short for the sums is damaged. This is checked before memory is allocated.
        const size_t entries = stream::at_lower(static_cast<int>(n), 0);
        for (const char* const name : {"products", "differences"})
            for (const Json& part : parts(name))
                m_in.expect(part, name, entries);
        Statistics s(static_cast<int>(n));
        s.bands = std::move(bands);
        for (const Json& scene : m_in.list(m_root, "scenes"))
            s.scenes.push_back(read_scene(scene, n));
        s.sums.valid = count(m_root, "valid_pixels");
        s.sums.invalid = count(m_root, "invalid_pixels");
        s.sums.pairs = count(m_root, "pairs");
        const Json& finite = m_in.list(m_root, "finite");
        m_in.expect(finite, "finite", n);
        for (size_t b = 0; b < n; ++b)
            s.sums.finite[b] = m_in.whole(finite[b], "finite", 0, pixel_limit);
        add_parts("sums", s.sums.sum);
        add_parts("products", s.sums.product);
        add_parts("differences", s.sums.difference);
        check(s);
        return s;
    }

  private:
    int64_t count(const Json& object, const char* key) const {
        return m_in.whole(m_in.member(object, key), key, 0, pixel_limit);
    }
    const Json& parts(const char* name) const {
        const Json& list = m_in.list(m_root, name);
        if (list.size() > most_parts) m_in.fail(std::string("'") + name + "' has too many parts");
        return list;
    }
    void add_parts(const char* name, math::ExactSums& to) const {
        for (const Json& part : parts(name)) {
            const auto values = m_in.numbers(part, name, to.size());
            to.add(0, values.data(), values.size());
        }
    }
    std::vector<float> extremes(const Json& scene, const char* key, size_t n, float none) const {
        const Json& list = m_in.list(scene, key);
        m_in.expect(list, key, n);
        std::vector<float> values;
        for (const Json& v : list) {
            const double x = v.is_null() ? static_cast<double>(none) : m_in.number(v, key);
            if (!v.is_null() && std::fabs(x) > static_cast<double>(std::numeric_limits<float>::max()))
                m_in.fail(std::string("'") + key + "' is out of range");
            values.push_back(static_cast<float>(x));
        }
        return values;
    }
    SceneRecord read_scene(const Json& scene, size_t n) const {
        SceneRecord s;
        s.name = m_in.text(scene, "name");
        s.bytes = count(scene, "bytes");
        s.modified = m_in.text(scene, "modified");
        s.mask = m_in.text(scene, "mask");
        s.samples = count(scene, "samples");
        s.lines = count(scene, "lines");
        s.valid = count(scene, "valid_pixels");
        s.invalid = count(scene, "invalid_pixels");
        const std::string digest = m_in.text(scene, "digest");
        if (digest.size() != 16 || digest.find_first_not_of("0123456789abcdef") != std::string::npos)
            m_in.fail("'digest' of " + s.name + " is not a number of 16 digits");
        s.digest = std::stoull(digest, nullptr, 16);
        constexpr float infinite = std::numeric_limits<float>::infinity();
        s.extremes.low = extremes(scene, "minimum", n, infinite);
        s.extremes.high = extremes(scene, "maximum", n, -infinite);
        if (scene.contains("left_out")) s.left_out = m_in.bands(scene["left_out"]);
        return s;
    }

    /// Checks that the writer's output for the parsed content equals the text, which detects any change of a
    /// number.
    void check(const Statistics& s) const {
        int64_t valid = 0, invalid = 0;
        for (const SceneRecord& scene : s.scenes) {
            valid += scene.valid;
            invalid += scene.invalid;
            if (std::max(valid, invalid) > pixel_limit) m_in.fail("its scenes have too many pixels");
        }
        for (const int64_t finite : s.sums.finite)
            if (finite < s.sums.valid || finite > s.sums.valid + s.sums.invalid)
                m_in.fail("'finite' contradicts its counts of pixels");
        if (s.sums.pairs > s.sums.valid) m_in.fail("'pairs' contradicts its counts of pixels");
        const std::string body = body_text(s, m_in.text(m_root, "created_by"));
        if (m_in.text(m_root, "checksum") != hexadecimal(digest_of(body)) || valid != s.sums.valid ||
            invalid != s.sums.invalid)
            throw Error("'" + m_name + "' is damaged: its checksum does not match",
                        "Make it again with gdal_hsi_statistics, or take it from a backup.");
    }

    const std::string m_name;
    const Reader m_in;
    Json m_root;
};

} // namespace

std::string to_json(const Statistics& statistics, const std::string& maker) {
    const std::string body = body_text(statistics, maker);
    return "{\n" + body + ",\n\"checksum\": \"" + hexadecimal(digest_of(body)) + "\"\n}\n";
}

Statistics from_json(const std::string& text, const std::string& name) {
    return FileReader(text, name).read();
}

bool is_statistics(const std::string& begin) {
    // Another program may have saved the file again, with other white space or with a byte order mark.
    std::string text;
    for (const char c : begin.substr(begin.compare(0, 3, "\xEF\xBB\xBF") == 0 ? 3 : 0))
        if (std::isspace(static_cast<unsigned char>(c)) == 0) text += c;
    const std::string mark = "{\"format\":\"" + std::string(statistics_format) + "\"";
    return text.compare(0, mark.size(), mark) == 0;
}

} // namespace hsi::statistics
