// SPDX-License-Identifier: MIT
#include "core/json.h"
#include "core/json_places.h"

#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace hsi {
namespace {

constexpr size_t deepest = 256; // 64 scenes within one another take 130

/// Thrown out of the parser, which has no other way to end early.
struct Fault {
    std::string what;
};

/// The characters of a document; counts the lines that the parser has read.
class Characters {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;
    Characters(const char* at, int* line) : m_at(at), m_line(line) {}
    reference operator*() const { return *m_at; }
    Characters& operator++() {
        if (*m_at++ == '\n') ++*m_line;
        return *this;
    }
    Characters operator++(int) {
        const Characters before = *this;
        ++*this;
        return before;
    }
    bool operator==(const Characters& other) const { return m_at == other.m_at; }
    bool operator!=(const Characters& other) const { return m_at != other.m_at; }

  private:
    const char* m_at;
    int* m_line;
};

/// Watches a document while it is parsed.
class Watch {
  public:
    /// places: null where nobody asks. `line`: that the parser has come to.
    Watch(JsonPlaces* places, const int& line) : m_places(places), m_line(line) {}

    // The names are those of nlohmann's interface for what a parser meets.
    bool null() { return value(); }
    bool boolean(bool) { return value(); }
    bool number_integer(Json::number_integer_t) { return value(); }
    bool number_unsigned(Json::number_unsigned_t) { return value(); }
    bool number_float(Json::number_float_t, const std::string&) { return value(); }
    bool string(std::string&) { return value(); }
    bool binary(Json::binary_t&) { return value(); }
    bool start_object(size_t) { return begin(false); }
    bool start_array(size_t) { return begin(true); }
    bool end_object() { return end(); }
    bool end_array() { return end(); }
    bool key(std::string& key) {
        if (!m_around.back().members.insert(key).second) throw Fault{"has '" + key + "' twice"};
        if (m_places == nullptr) return true;
        m_key = m_around.back().path + "/" + key;
        note(m_key);
        return true;
    }
    template <class Error>
    bool parse_error(size_t, const std::string&, const Error&) {
        return false;
    }

  private:
    /// An object or a list around.
    struct Around {
        std::set<std::string> members; ///< empty for a list
        std::string path;
        size_t entries = 0; ///< so far, of a list
        bool list = false;
    };
    bool value() {
        if (m_places != nullptr) path_of_next();
        return true;
    }
    bool begin(bool list) {
        std::string path = m_places != nullptr ? path_of_next() : std::string();
        m_around.push_back({{}, std::move(path), 0, list});
        if (m_around.size() > deepest)
            throw Fault{"nests more than " + std::to_string(deepest) + " levels deep"};
        return true;
    }
    bool end() {
        m_around.pop_back();
        return true;
    }
    void note(const std::string& path) { m_places->emplace(path, JsonPlace{m_line, m_places->size()}); }
    /// Of the value that begins.
    std::string path_of_next() {
        if (m_around.empty() || !m_around.back().list) return std::exchange(m_key, std::string());
        Around& list = m_around.back();
        std::string path = list.path + "/" + std::to_string(list.entries++);
        note(path);
        return path;
    }

    std::vector<Around> m_around;
    JsonPlaces* m_places;
    const int& m_line;
    std::string m_key; ///< the path of the member whose value begins
};

std::optional<Json> parse(const std::string& text, std::string& fault, JsonPlaces* places) {
    int line = 1;
    try {
        Watch watch(places, line);
        const auto read_by = [&](auto&& reader) {
            line = 1;
            return reader(Characters(text.data(), &line), Characters(text.data() + text.size(), &line));
        };
        const bool comments = places != nullptr;
        // Not by a callback of Json::parse(), which looks through a list anew behind each object in it.
        const bool valid = read_by([&](auto begin, auto end) {
            return Json::sax_parse(begin, end, &watch, Json::input_format_t::json, true, comments);
        });
        if (valid)
            return read_by(
                [&](auto begin, auto end) { return Json::parse(begin, end, nullptr, false, comments); });
        fault = "is not valid JSON, or is cut off";
    } catch (const Fault& found) {
        fault = found.what;
    }
    if (places != nullptr) fault += " (line " + std::to_string(line) + ")";
    return std::nullopt;
}

} // namespace

std::optional<Json> parse_json(const std::string& text, std::string& fault) {
    return parse(text, fault, nullptr);
}

std::optional<Json> parse_json(const std::string& text, std::string& fault, JsonPlaces& places) {
    return parse(text, fault, &places);
}

} // namespace hsi
