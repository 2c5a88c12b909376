// SPDX-License-Identifier: MIT
#include "core/json.h"
#include "core/json_places.h"

#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace hsi {
namespace {

constexpr size_t deepest = 256; // levels of nesting; a document with 64 nested scenes has 130

/// Thrown to end the parser early, which is not possible otherwise.
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

/// Builds a document from the parser's events. Json::parse() with a callback would search a list again after
/// each object in it.
class Builder {
  public:
    /// places: null if not requested. `line`: the current text line of the parser.
    Builder(JsonPlaces* places, const int& line) : m_places(places), m_line(line) {}
    Json&& document() { return std::move(m_root); }

    // nlohmann's interface fixes the names of these events of the parser.
    bool null() { return add(nullptr); }
    bool boolean(bool value) { return add(value); }
    bool number_integer(Json::number_integer_t value) { return add(value); }
    bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
    bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
    bool string(std::string& value) { return add(std::move(value)); }
    bool binary(Json::binary_t&) { return false; } // JSON text has no binary values
    bool start_object(size_t) { return begin(Json::object()); }
    bool start_array(size_t) { return begin(Json::array()); }
    bool end_object() { return end(); }
    bool end_array() { return end(); }
    bool key(std::string& key) {
        const Around& object = m_around.back();
        if (object.json->contains(key)) throw Fault{"has '" + key + "' twice"};
        m_key = key;
        if (m_places != nullptr) note(object.path + "/" + key);
        return true;
    }
    template <class Error>
    bool parse_error(size_t, const std::string&, const Error&) {
        return false;
    }

  private:
    /// An enclosing object or list.
    struct Around {
        Json* json;
        std::string path;
    };
    bool add(Json value) {
        if (m_places != nullptr) (void)path_of_next();
        put(std::move(value));
        return true;
    }
    bool begin(Json empty) {
        if (m_around.size() == deepest)
            throw Fault{"nests more than " + std::to_string(deepest) + " levels deep"};
        std::string path = m_places != nullptr ? path_of_next() : std::string();
        m_around.push_back({put(std::move(empty)), std::move(path)});
        return true;
    }
    bool end() {
        m_around.pop_back();
        return true;
    }
    Json* put(Json value) {
        if (m_around.empty()) return &(m_root = std::move(value));
        Json& around = *m_around.back().json;
        if (!around.is_array()) return &(around[m_key] = std::move(value));
        around.push_back(std::move(value));
        return &around.back();
    }
    void note(const std::string& path) { m_places->emplace(path, JsonPlace{m_line, m_places->size()}); }
    /// Returns the path of the value that is read next.
    std::string path_of_next() {
        if (m_around.empty()) return {};
        const auto& [json, path] = m_around.back();
        if (!json->is_array()) return path + "/" + m_key;
        const std::string entry = path + "/" + std::to_string(json->size());
        note(entry);
        return entry;
    }

    Json m_root;
    std::vector<Around> m_around;
    JsonPlaces* m_places;
    const int& m_line;
    std::string m_key; ///< Key of the member whose value is read next.
};

std::optional<Json> parse(const std::string& text, std::string& fault, JsonPlaces* places) {
    int line = 1;
    try {
        Builder builder(places, line);
        const Characters begin(text.data(), &line), end(text.data() + text.size(), &line);
        if (Json::sax_parse(begin, end, &builder, Json::input_format_t::json, true, places != nullptr))
            return builder.document();
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
