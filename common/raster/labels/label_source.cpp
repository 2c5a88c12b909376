// SPDX-License-Identifier: MIT
// Labels from any source: classes from numbers, left-out classes, pixels with a label.
#include "core/class_names.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "raster/labels.h"
#include "raster/labels/numbered_labels.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace hsi::raster {
namespace {

std::string number(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", v);
    return text;
}

/// Splits "5,Soil" into 5 and Soil.
std::vector<std::string> listed_classes(const std::string& text) {
    auto words = listed_words(text).value_or(std::vector<std::string>{""});
    for (std::string& word : words) {
        word = clean_name(word.c_str());
        if (word.empty())
            throw UsageError("-leave-out: '" + text + "' is not understood",
                             "Give classes by number or name, with commas between them: 5 or 5,Soil. Put a "
                             "name with a comma into double quotes: '5,\"Corn, young\"'.");
    }
    return words;
}

} // namespace

uint16_t class_of(double v, uint16_t none, const std::string& path) {
    if (!(v >= 0)) return none; // negative numbers and NaN
    if (v > max_class || v != std::floor(v) || (v == none && v != 0))
        throw Error(
            "'" + path + "': " + number(v) + " is not a class number (" +
                (none == 0 ? "1 to 65535; 0: no label)" : "0 to 65534, where 0 is a class)"),
            "Use class labels; gdal_hsi_regression_train and gdal_hsi_spectra -kind every accept other "
            "numbers. In a raster, gdal_calc.py can convert other codes to class numbers, and "
            "gdal_edit.py -a_nodata sets the value for 'no label'.");
    return static_cast<uint16_t>(v);
}

bool names_a_class(const std::string& name) {
    // Lower case, without punctuation: "No Data", "no_data" and "NoData" are the same name.
    std::string letters;
    for (const char c : name)
        if ((static_cast<unsigned char>(c) & 0x80) != 0 || std::isalnum(static_cast<unsigned char>(c)) != 0)
            letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (letters.find_first_not_of("0123456789") == std::string::npos) return false;
    static const char* const nothing[] = {
        "unclassified", "notclassified", "unlabeled",   "unlabelled", "notlabeled",   "notlabelled",
        "nolabel",      "nolabels",      "background",  "nodata",     "nodatavalue",  "none",
        "noclass",      "null",          "na",          "nan",        "notavailable", "undefined",
        "notdefined",   "unassigned",    "notassigned", "unknown",    "masked",       "maskedpixels",
        "mask",         "maskedout",     "fill",        "fillvalue",  "empty",        "void",
        "novalue",      "missing",       "ignore",      "ignored",    "invalid",      "outside",
        "nothing",      "noinformation"};
    return std::none_of(std::begin(nothing), std::end(nothing),
                        [&](const char* word) { return letters == word; });
}

std::string clean_name(const char* name) {
    std::string text = utf8_text(name);
    text.erase(0, text.find_first_not_of(" \t\r\n"));
    text.erase(text.find_last_not_of(" \t\r\n") + 1);
    return text;
}

std::string negative_note(const std::string& path, const std::string& things, double least) {
    return "'" + path + "': " + things + " negative values (the lowest is " + number(least) +
           "), which are read as 'no label'";
}

void LabelSource::leave_out(const LabelOptions& options) {
    m_left_out.assign(static_cast<size_t>(max_class) + 1, 0);
    m_read = m_left_out;
    for (const auto& one : m_legend)
        m_names[one.value] = one.name;
    const auto mark = [&](const std::string& word) {
        bool found = false;
        const auto leave = [&](int value) {
            if (value == m_none) return;
            m_left_out[static_cast<size_t>(value)] = 1;
            found = true;
        };
        // A file may have several classes of one name. Case counts only if a class has exactly this name.
        const bool exact =
            std::any_of(m_names.begin(), m_names.end(), [&](const auto& one) { return one.second == word; });
        for (const auto& [value, name] : m_names)
            if ((exact ? name == word : alike_names(name, word)) || word == std::to_string(value))
                leave(value);
        for (const int value : m_known)
            if (word == std::to_string(value)) leave(value);
        if (found) return;
        if (!options.said_of_another) m_unproved.push_back(word);
        const bool digits = word.size() <= 5 && word.find_first_not_of("0123456789") == std::string::npos;
        if (digits && std::to_string(std::stoi(word)) == word && std::stoi(word) <= max_class)
            leave(std::stoi(word));
    };
    for (const auto& text : options.leave_out)
        for (const auto& word : listed_classes(text))
            mark(word);
    m_legend.erase(std::remove_if(m_legend.begin(), m_legend.end(),
                                  [&](const LabelClass& one) {
                                      return m_left_out[static_cast<size_t>(one.value)] != 0;
                                  }),
                   m_legend.end());
}

void LabelSource::read(int64_t line, int64_t count, uint16_t* out) {
    read_lines(line, count, out);
    if (m_left_out.empty()) return;
    for (int64_t i = 0; i < count * m_grid.samples; ++i) {
        m_read[out[i]] = 1;
        if (m_left_out[out[i]] == 0) continue;
        out[i] = m_none;
        m_left_any_out = true;
    }
}

std::set<int> LabelSource::classes_there() const {
    std::set<int> there = m_known;
    for (int value = 0; value < static_cast<int>(m_read.size()); ++value)
        if (m_read[static_cast<size_t>(value)] != 0 && value != m_none) there.insert(value);
    return there;
}

std::vector<std::string> LabelSource::not_left_out() const {
    std::set<std::string> numbers;
    for (const int value : classes_there())
        numbers.insert(std::to_string(value));
    std::vector<std::string> words;
    std::copy_if(m_unproved.begin(), m_unproved.end(), std::back_inserter(words),
                 [&](const std::string& word) { return numbers.count(word) == 0; });
    return words;
}

void LabelSource::check_left_out() const {
    const auto words = not_left_out();
    if (words.empty()) return;
    std::string list;
    for (const int value : classes_there()) {
        list += (list.empty() ? "" : ", ") + std::to_string(value);
        if (const auto named = m_names.find(value); named != m_names.end() && !named->second.empty())
            list += " " + named->second;
    }
    throw UsageError("-leave-out: '" + m_path + "' has no class '" + words.front() + "'",
                     list.empty() ? "It has no labels here." : "Its classes: " + list + ".");
}

std::vector<uint16_t> LabelSource::share_classes() const {
    auto values = polygon_classes();
    if (!m_left_out.empty())
        values.erase(std::remove_if(values.begin(), values.end(),
                                    [&](uint16_t value) { return m_left_out[value] != 0; }),
                     values.end());
    return values;
}

void LabelSource::shares(int64_t /*line*/, int64_t /*count*/, uint16_t /*value*/, float* /*out*/) {
    throw Error("'" + m_path + "' has no polygons, so pixels have no fractional cover",
                "Give features as labels.");
}

Error no_labels(const LabelSource& source) {
    const std::string name = "'" + source.path() + "'", &owner = source.grid().owner;
    const std::string what = name + ": no labelled pixel" + (owner == name ? "" : " inside " + owner);
    if (const int64_t n = source.too_small(); n > 0)
        return Error(what + ": " + counted(n, "polygon is", "polygons are") + " too small or narrow",
                     "-all-touched labels every pixel that a polygon touches, and a smaller -min-cover also "
                     "pixels that it covers less.");
    if (source.left_any_out())
        return Error(what + ": -leave-out excludes the classes of all labels", "Leave fewer classes out.");
    if (!source.seen())
        return Error(what,
                     "Check that both cover the same area: compare their extents with gdalinfo and ogrinfo.");
    return Error(what + ": all are 0, nodata or negative" +
                     (source.least() < 0 ? " (the lowest is " + number(source.least()) + ")" : ""),
                 "Classes are whole numbers from 1 to 65535, or from 0 with -zero class; gdal_calc.py can "
                 "convert other codes.");
}

std::string shared_name(const std::vector<LabelClass>& classes) {
    std::map<std::string, int> known;
    for (const auto& c : classes) {
        if (c.name.empty()) continue;
        const auto [first, is_new] = known.emplace(c.name, c.value);
        if (!is_new)
            return "classes " + std::to_string(first->second) + " and " + std::to_string(c.value) +
                   " are both called '" + c.name + "'";
    }
    return {};
}

LabelledPixels collect_labels(LabelSource& source) {
    LabelledPixels all;
    all.grid = source.grid();
    const int64_t samples = all.grid.samples;
    std::vector<int64_t> count(static_cast<size_t>(max_class) + 1);
    std::vector<uint16_t> strip(static_cast<size_t>(strip_lines * samples));
    for (int64_t y = 0; y < all.grid.lines; y += strip_lines) {
        const int64_t n = std::min(strip_lines, all.grid.lines - y);
        source.read(y, n, strip.data());
        for (int64_t i = 0; i < n * samples; ++i)
            if (const uint16_t v = strip[static_cast<size_t>(i)]; v != source.none()) {
                all.index.push_back(y * samples + i);
                all.value.push_back(v);
                ++count[v];
            }
    }
    source.check_left_out();
    if (all.index.empty()) throw no_labels(source);
    for (int v = 0; v <= max_class; ++v) {
        if (count[static_cast<size_t>(v)] == 0) continue;
        LabelClass one;
        for (const auto& known : source.legend())
            if (known.value == v) one = known;
        one.value = v;
        one.pixels = count[static_cast<size_t>(v)];
        all.classes.push_back(std::move(one));
    }
    all.notes = source.reading_notes();
    if (const std::string pair = shared_name(all.classes); !pair.empty())
        all.notes.push_back("'" + source.path() + "': " + pair);
    return all;
}

uint16_t NumberedLabels::label_of(double v) {
    if (m_mask) return v != 0 && !std::isnan(v);
    if (v < 0 && m_counting) {
        ++m_negative;
        m_least = std::min(m_least, v);
    }
    const uint16_t value = class_of(v, m_none, m_path);
    if (v == 0)
        m_zeros += m_counting;
    else if (value != m_none && value != m_only_class)
        m_only_class = m_only_class == 0 ? value : -1;
    return value;
}

std::vector<std::string> NumberedLabels::reading_notes() const {
    std::vector<std::string> notes;
    if (m_negative > 0)
        notes.push_back(negative_note(m_path, counted(m_negative, "pixel has", "pixels have"), m_least));
    if (m_zeros > 0 && m_zero_is_open && m_nodata)
        notes.push_back("'" + m_path + "': " + counted(m_zeros, "pixel is", "pixels are") +
                        " 0, which is read as 'no label', although the file's nodata value is " +
                        number(*m_nodata) + "; if 0 is a class, use -zero class");
    return notes;
}

void NumberedLabels::decide_zero(ZeroMeans means, const std::string& name) {
    constexpr uint16_t beyond = max_class;
    const bool nodata = m_nodata && *m_nodata == 0, named = names_a_class(name);
    if (means == ZeroMeans::no_label) return;
    if (means == ZeroMeans::a_class) {
        if (nodata) m_nodata.reset();
        m_none = beyond;
    } else if (nodata) {
        if (named)
            m_notes.push_back(
                "'" + m_path +
                "': 0 is read as 'no label', since it is the nodata value, although it has the name '" +
                name + "'; if it is a class, use -zero class");
    } else if (named || (name == "0" && m_nodata)) {
        // Class maps of this suite name a class "0" if it has no name.
        m_none = beyond;
        if (!m_nodata)
            m_notes.push_back("'" + m_path + "': 0 is read as a class, since it has the name '" + name +
                              "'; if it means 'no label', use -zero none");
    } else {
        m_zero_is_open = name.find_first_not_of("0123456789") == std::string::npos;
    }
}

} // namespace hsi::raster
