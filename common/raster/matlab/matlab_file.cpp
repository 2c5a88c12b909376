// SPDX-License-Identifier: MIT
#include "raster/matlab/matlab_file.h"

#include "core/error.h"
#include "core/text.h"
#include "raster/drivers.h"
#include "raster/gdal_errors.h"
#include "raster/metadata/envi_file.h"
#include "raster/regular_file.h"

#include <cpl_string.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace hsi::raster {
namespace {

enum class Kind { none, level4, level5, arrays };

constexpr size_t header_bytes = 128;

/// Recognises a file of version 4, which has no signature. The caller checks that the file name ends in .mat;
/// this function checks the first header.
bool begins_as_level4(const std::array<unsigned char, header_bytes>& head, size_t length) {
    if (length < 21) return false;
    const auto word = [&](size_t k, bool big) {
        const unsigned char* const b = head.data() + 4 * k;
        return big ? uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | b[3]
                   : uint32_t{b[3]} << 24 | uint32_t{b[2]} << 16 | uint32_t{b[1]} << 8 | b[0];
    };
    for (const bool big : {false, true}) {
        const uint32_t type = word(0, big), name = word(4, big);
        if (type / 1000 != (big ? 1U : 0U) || type / 100 % 10 != 0 || type / 10 % 10 > 5 || type % 10 > 2)
            continue;
        if (word(1, big) > INT32_MAX || word(2, big) > INT32_MAX || word(3, big) > 1 || name < 2 || name > 64)
            continue;
        const auto* const text = reinterpret_cast<const char*>(head.data() + 20);
        const size_t there = std::min<size_t>(name, length - 20), shown = strnlen(text, there);
        if (shown == 0 || (there == name && shown != name - 1)) continue;
        if (std::all_of(text, text + shown, [](unsigned char c) { return c == '_' || std::isalnum(c) != 0; }))
            return true;
    }
    return false;
}

Kind kind_by_beginning(const std::string& path) {
    const std::string begin = beginning_of_file(path, header_bytes);
    const size_t length = begin.size();
    std::array<unsigned char, header_bytes> head{};
    std::copy(begin.begin(), begin.end(), head.begin());
    const auto* const end = reinterpret_cast<const char*>(head.data()) + 124;
    // In version 5, the first four bytes are not zero; in version 4, one of them is zero.
    if (length == head.size() && head[0] != 0 && head[1] != 0 && head[2] != 0 && head[3] != 0) {
        const bool little = std::memcmp(end + 2, "IM", 2) == 0, big = std::memcmp(end + 2, "MI", 2) == 0;
        const int major = little ? head[125] : head[124];
        if ((little || big) && major == 1) return Kind::level5;
        if ((little || big) && major == 2) return Kind::arrays;
    }
    return EQUAL(extension_of(path).c_str(), "mat") && begins_as_level4(head, length) ? Kind::level4
                                                                                      : Kind::none;
}

Kind kind_of(const std::string& path) {
    const Kind kind = kind_by_beginning(path);
    return kind != Kind::none && all_samples(path) ? Kind::none : kind;
}

/// Appends a character in UTF-8. A code that is not a character, such as half of a UTF-16 surrogate pair,
/// becomes a question mark.
void add_utf8(std::string& text, uint32_t number) {
    const bool half = number >= 0xd800 && number < 0xe000;
    append_utf8(text, half || number >= 0x110000 ? U'?' : static_cast<char32_t>(number));
}

} // namespace

int64_t MatlabVariable::count() const {
    int64_t all = 1;
    for (const int64_t n : dims)
        if (__builtin_mul_overflow(all, n, &all)) return INT64_MAX;
    return all;
}

size_t MatlabVariable::rank() const {
    size_t n = dims.size();
    while (n > 2 && dims[n - 1] == 1)
        --n;
    return n;
}

std::string MatlabVariable::text() const {
    std::string size;
    for (const int64_t n : dims)
        size += (size.empty() ? "" : "x") + std::to_string(n);
    return name + " (" + size + (size.empty() ? "" : " ") + kind + ")";
}

std::shared_ptr<const MatlabFile> MatlabFile::open(const std::string& path) {
    switch (kind_of(path)) {
    case Kind::level4:
        return open_matlab_4(path);
    case Kind::level5:
        return open_matlab_5(path);
    case Kind::arrays:
        return open_matlab_arrays(path);
    case Kind::none:
        break;
    }
    return nullptr;
}

const MatlabVariable* MatlabFile::find(const std::string& name) const {
    const auto at = std::find_if(m_variables.begin(), m_variables.end(),
                                 [&](const MatlabVariable& one) { return one.name == name; });
    return at == m_variables.end() ? nullptr : &*at;
}

std::vector<double> MatlabFile::numbers(const MatlabVariable& variable) const {
    constexpr int64_t most = int64_t{1} << 24;
    if (variable.count() > most)
        throw Error("'" + m_path + "': " + variable.text() + " has more than " + std::to_string(most) +
                    " numbers");
    std::vector<double> values(static_cast<size_t>(variable.count()));
    size_t done = 0;
    const int width = GDALGetDataTypeSizeBytes(variable.type);
    read(variable, [&](const char* from, size_t count) {
        GDALCopyWords64(from, variable.type, width, values.data() + done, GDT_Float64, sizeof(double),
                        static_cast<GPtrDiff_t>(count));
        done += count;
    });
    return values;
}

void MatlabFile::refuse(const std::string& what) const {
    throw Error("'" + m_path + "' is damaged: " + what,
                "Copy the file again, or write it again with MATLAB's save.");
}

std::vector<std::string> MatlabFile::rows_of(const std::vector<uint32_t>& characters, int64_t rows) {
    std::vector<std::string> texts;
    if (characters.empty()) return texts; // an empty array may state any number of rows
    if (rows <= 0 || characters.size() % static_cast<size_t>(rows) != 0) rows = 1;
    const auto step = static_cast<size_t>(rows);
    for (size_t row = 0; row < step; ++row) {
        std::string text;
        for (size_t at = row; at < characters.size(); at += step)
            add_utf8(text, characters[at]);
        while (!text.empty() && (text.back() == ' ' || text.back() == '\0'))
            text.pop_back();
        texts.push_back(std::move(text));
    }
    return texts;
}

std::optional<MatlabName> matlab_name(const std::string& name) {
    if (is_regular_file(name)) // an existing file takes precedence over the form FILE:VARIABLE
        return kind_of(name) == Kind::none ? std::nullopt : std::optional<MatlabName>({name, ""});
    for (size_t colon = name.rfind(':'); colon != std::string::npos && colon > 0;
         colon = name.rfind(':', colon - 1)) {
        std::string path = name.substr(0, colon);
        if (kind_of(path) != Kind::none) return MatlabName{std::move(path), name.substr(colon + 1)};
    }
    return std::nullopt;
}

} // namespace hsi::raster
