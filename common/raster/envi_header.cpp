// SPDX-License-Identifier: MIT
#include "raster/envi_header.h"

#include <algorithm>
#include <cctype>

namespace hsi::raster {
namespace {

std::string_view trim(std::string_view s) {
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
    while (!s.empty() && blank(s.front()))
        s.remove_prefix(1);
    while (!s.empty() && blank(s.back()))
        s.remove_suffix(1);
    return s;
}

/// Cuts the next line off `rest`.
std::string_view take_line(std::string_view& rest) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    return line;
}

} // namespace

std::string envi_key(std::string_view key) {
    std::string out;
    for (char c : trim(key)) {
        if (c == '_' || c == '\t') c = ' ';
        if (c == ' ' && (out.empty() || out.back() == ' ')) continue;
        out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return out;
}

bool is_envi_list(std::string_view value) {
    value = trim(value);
    return value.size() >= 2 && value.front() == '{' && value.back() == '}';
}

std::string envi_name(std::string name) {
    for (char& c : name)
        if (c == ',' || c == '{' || c == '}') c = ' ';
    return name;
}

std::vector<std::string> envi_list(std::string_view value) {
    std::vector<std::string> out;
    value = trim(value);
    if (!is_envi_list(value)) return out;
    value = value.substr(1, value.size() - 2);
    if (trim(value).empty()) return out;
    for (;;) {
        const size_t comma = value.find(',');
        out.emplace_back(trim(value.substr(0, comma)));
        if (comma == std::string_view::npos) break;
        value.remove_prefix(comma + 1);
    }
    if (out.back().empty()) out.pop_back(); // a trailing comma
    return out;
}

std::string envi_list_text(const std::vector<std::string>& elements) {
    std::string out = "{";
    size_t line = 0;
    for (size_t i = 0; i < elements.size(); ++i) {
        if (i > 0) {
            out += ", ";
            if (line > 100) {
                out.back() = '\n';
                line = 0;
            }
        }
        out += elements[i];
        line += elements[i].size() + 2;
    }
    return out + "}";
}

EnviHeader EnviHeader::parse(std::string_view text) {
    EnviHeader header;
    while (!text.empty()) {
        const std::string_view line = take_line(text);
        const size_t equals = line.find('=');
        const std::string_view first = trim(line);
        if (equals == std::string_view::npos || first.empty() || first.front() == ';') continue;
        std::string key;
        for (char c : trim(line.substr(0, equals))) {
            if (c == '\t') c = ' ';
            if (c == ' ' && !key.empty() && key.back() == ' ') continue;
            key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        }
        std::string value(trim(line.substr(equals + 1)));
        if (!value.empty() && value.front() == '{') {
            while (value.find('}') == std::string::npos && !text.empty()) {
                value += '\n';
                value += trim(take_line(text));
            }
            while (!value.empty() && value.back() == '\n')
                value.pop_back();
        }
        if (!key.empty()) header.set(key, value);
    }
    return header;
}

std::string EnviHeader::text() const {
    std::string out = "ENVI\n";
    for (const EnviField& f : m_fields)
        out += f.key + " = " + f.value + "\n";
    return out;
}

const std::string* EnviHeader::find(std::string_view key) const {
    for (const EnviField& f : m_fields)
        if (f.key == key) return &f.value;
    return nullptr;
}

void EnviHeader::set(const std::string& key, const std::string& value) {
    for (EnviField& f : m_fields)
        if (f.key == key) {
            f.value = value;
            return;
        }
    m_fields.push_back({key, value});
}

void EnviHeader::erase(std::string_view key) {
    m_fields.erase(
        std::remove_if(m_fields.begin(), m_fields.end(), [&](const EnviField& f) { return f.key == key; }),
        m_fields.end());
}

} // namespace hsi::raster
