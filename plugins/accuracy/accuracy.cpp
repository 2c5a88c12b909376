// SPDX-License-Identifier: MIT
#include "accuracy/accuracy.h"

#include "core/cube_view.h"
#include "core/error.h"
#include "core/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

namespace hsi::accuracy {
namespace {

constexpr size_t most_classes = 4096; ///< With this many classes, the matrix has 128 MB.
constexpr double z95 = 1.959963984540054;

const std::string* name_of(const std::vector<Class>& classes, int value) {
    for (const auto& c : classes)
        if (c.value == value && !c.name.empty()) return &c.name;
    return nullptr;
}

/// Returns the names of the values that occur; empty if a value has no name or if two values share a name.
std::map<int, std::string> names_of(const std::vector<Class>& classes, const std::vector<int>& values,
                                    int none) {
    std::map<int, std::string> names;
    std::set<std::string> seen;
    for (int v : values) {
        if (v == none) continue;
        const std::string* name = name_of(classes, v);
        if (!name || !seen.insert(*name).second) return {};
        names[v] = *name;
    }
    return names;
}

/// Returns Cohen's kappa and its large-sample variance (Bishop, Fienberg and Holland's delta method).
Estimate cohen(const std::vector<double>& p, size_t n, double total) {
    double t1 = 0, t2 = 0, t3 = 0, t4 = 0;
    std::vector<double> row(n), column(n);
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j) {
            row[i] += p[i * n + j];
            column[j] += p[i * n + j];
        }
    for (size_t i = 0; i < n; ++i) {
        t1 += p[i * n + i];
        t2 += row[i] * column[i];
        t3 += p[i * n + i] * (row[i] + column[i]);
        for (size_t j = 0; j < n; ++j)
            t4 += p[i * n + j] * (row[j] + column[i]) * (row[j] + column[i]);
    }
    // If the map or the reference has only one class, the agreement equals the chance agreement. The formula
    // then gives kappa = 0, or 0 / 0 if both have only the same class. Kappa is undefined in both cases.
    const auto one_class = [](const std::vector<double>& shares) {
        return std::count_if(shares.begin(), shares.end(), [](double v) { return v > 0; }) < 2;
    };
    if (one_class(row) || one_class(column)) return {no_value, no_value, no_value};
    const double kappa = (t1 - t2) / (1 - t2), q = 1 - t2;
    const double variance = (t1 * (1 - t1) / (q * q) + 2 * (1 - t1) * (2 * t1 * t2 - t3) / (q * q * q) +
                             (1 - t1) * (1 - t1) * (t4 - 4 * t2 * t2) / (q * q * q * q)) /
                            total;
    const double half = z95 * std::sqrt(std::max(0.0, variance));
    return {kappa, std::max(-1.0, kappa - half), std::min(1.0, kappa + half)};
}

std::string number(const char* format, double v) {
    char text[64];
    std::snprintf(text, sizeof text, format, v);
    return text;
}

std::string percent(const Estimate& e) {
    if (std::isnan(e.value)) return "-";
    return number("%.2f", 100 * e.value) + " (" + number("%.2f", 100 * e.low) + " to " +
           number("%.2f", 100 * e.high) + ")";
}

std::string pad(const std::string& text, size_t width, bool left = false) {
    // The width is counted in characters, not bytes, since class names may contain UTF-8.
    const auto length = static_cast<size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
    if (length >= width) return text;
    const std::string space(width - length, ' ');
    return left ? text + space : space + text;
}

std::string title(const Class& c) {
    std::string text = std::to_string(c.value);
    if (!c.name.empty()) text.append(" ").append(c.name);
    return text;
}

} // namespace

Estimate wilson(int64_t k, int64_t n) {
    if (n <= 0) return {no_value, no_value, no_value};
    const double total = static_cast<double>(n), p = static_cast<double>(k) / total, z2 = z95 * z95;
    const double centre = (p + z2 / (2 * total)) / (1 + z2 / total);
    const double half = z95 / (1 + z2 / total) * std::sqrt(p * (1 - p) / total + z2 / (4 * total * total));
    return {p, std::max(0.0, std::min(p, centre - half)), std::min(1.0, std::max(p, centre + half))};
}

void Confusion::add(const uint16_t* map, const uint16_t* reference, const uint16_t* mask, int64_t count) {
    if (m_map_slot.empty()) {
        m_map_slot.assign(65536, -1);
        m_reference_slot.assign(65536, -1);
    }
    const auto slot_of = [](std::vector<int32_t>& slots, std::vector<int>& values, uint16_t v,
                            const char* of) {
        int32_t& s = slots[v];
        if (s < 0) {
            if (values.size() == most_classes)
                throw Error(std::string("the ") + of + " has more than " + std::to_string(most_classes) +
                                " classes, the limit of a confusion matrix",
                            "Check that its values number classes and not objects.");
            s = static_cast<int32_t>(values.size());
            values.push_back(v);
        }
        return static_cast<size_t>(s);
    };
    for (int64_t i = 0; i < count; ++i) {
        if (mask && mask[i] == 0) {
            ++m_masked;
            continue;
        }
        if (reference[i] == m_reference_none) {
            ++m_unlabelled;
            m_alarms += map[i] != m_map_none;
            continue;
        }
        const size_t r = slot_of(m_reference_slot, m_reference_values, reference[i], "reference");
        const size_t m = slot_of(m_map_slot, m_map_values, map[i], "map");
        if (m >= m_pitch) {
            const size_t pitch = std::max<size_t>(16, 2 * m_pitch);
            std::vector<int64_t> wider((m_reference_values.size() + 1) * pitch, 0);
            for (size_t a = 0; a < m_pairs.size(); ++a)
                wider[a / m_pitch * pitch + a % m_pitch] = m_pairs[a];
            m_pairs = std::move(wider);
            m_pitch = pitch;
        }
        if (m_pairs.size() < (r + 1) * m_pitch) m_pairs.resize((r + 1) * m_pitch, 0);
        ++m_pairs[r * m_pitch + m];
    }
}

struct Confusion::Matching {
    std::vector<Class> classes;
    std::map<int, size_t> map_row, reference_row; ///< row of the matrix for each value in the file
    bool by_name = false, renumbered = false;
};

Confusion::Matching Confusion::match() const {
    Matching m;
    const auto map_names = names_of(m_map, m_map_values, m_map_none),
               reference_names = names_of(m_reference, m_reference_values, m_reference_none);
    std::set<std::string> common;
    for (const auto& [v, name] : reference_names)
        for (const auto& [w, other] : map_names)
            if (name == other) common.insert(name);
    m.by_name = !common.empty();
    std::set<int> reference_values(m_reference_values.begin(), m_reference_values.end());
    for (int v : reference_values) {
        const std::string* name = name_of(m_reference, v);
        if (!name) name = name_of(m_map, v);
        m.reference_row[v] = m.classes.size();
        m.classes.push_back({v, name ? *name : std::string()});
    }
    std::set<int> map_values(m_map_values.begin(), m_map_values.end());
    map_values.erase(m_map_none);
    for (int v : map_values) {
        size_t row = m.classes.size();
        if (m.by_name) {
            const std::string& name = map_names.at(v);
            for (const auto& [w, other] : reference_names)
                if (name == other) {
                    row = m.reference_row.at(w);
                    m.renumbered = m.renumbered || w != v;
                }
        } else if (const auto same = m.reference_row.find(v); same != m.reference_row.end()) {
            row = same->second;
        }
        if (row == m.classes.size()) {
            const std::string* name = name_of(m_map, v);
            m.classes.push_back({v, name ? *name : std::string()});
        }
        m.map_row[v] = row;
    }
    return m;
}

bool Confusion::renumbered() const { return match().renumbered; }

NamedPairs Confusion::named_pairs() const {
    NamedPairs pairs;
    pairs.by_name = match().by_name;
    const std::set<int> map_values(m_map_values.begin(), m_map_values.end());
    for (const int v : map_values) {
        const std::string* const name = v == m_map_none ? nullptr : name_of(m_map, v);
        if (!name) continue;
        for (const int w : m_reference_values) {
            const std::string* const other = name_of(m_reference, w);
            if (!other) continue;
            if (*name == *other)
                ++pairs.agreeing;
            else if (v == w)
                pairs.differing.push_back({{v, *name}, {w, *other}});
        }
    }
    return pairs;
}

namespace {

/// Computes the results from the matrix; `missing`: pixels of each reference class without a class in the
/// map.
void judge_matrix(Result& r, const std::vector<int64_t>& missing) {
    const size_t n = r.classes.size();
    int64_t agreed = 0;
    double sum = 0;
    int64_t present = 0;
    double variance = 0;
    // Where unclassified pixels count as errors, the matrix gets a separate column for kappa.
    const size_t wide = n + (r.unclassified_are_errors ? 1 : 0);
    std::vector<double> share(wide * wide, 0.0);
    for (size_t i = 0; i < n; ++i) {
        ClassAccuracy c;
        c.of = r.classes[i];
        for (size_t j = 0; j < n; ++j) {
            c.reference += r.at(i, j);
            c.mapped += r.at(j, i);
            share[i * wide + j] = static_cast<double>(r.at(i, j)) / static_cast<double>(r.pixels);
        }
        if (r.unclassified_are_errors) {
            c.reference += missing[i];
            share[i * wide + n] = static_cast<double>(missing[i]) / static_cast<double>(r.pixels);
        }
        c.correct = r.at(i, i);
        agreed += c.correct;
        c.producer = wilson(c.correct, c.reference);
        c.user = wilson(c.correct, c.mapped);
        c.f1 = c.reference + c.mapped > 0
                   ? 2.0 * static_cast<double>(c.correct) / static_cast<double>(c.reference + c.mapped)
                   : no_value;
        if (c.reference > 0) {
            const double p = c.producer.value;
            sum += p;
            ++present;
            variance += p * (1 - p) / static_cast<double>(c.reference);
        }
        r.by_class.push_back(c);
    }
    r.overall = wilson(agreed, r.pixels);
    const double average = sum / static_cast<double>(present);
    const double half = z95 * std::sqrt(variance) / static_cast<double>(present);
    r.average = {average, std::max(0.0, average - half), std::min(1.0, average + half)};
    r.kappa = cohen(share, wide, static_cast<double>(r.pixels));
}

} // namespace

Result Confusion::result(bool unclassified_are_errors) const {
    const Matching matching = match();
    Result r;
    r.classes = matching.classes;
    r.unlabelled = m_unlabelled;
    r.alarms = m_alarms;
    r.masked = m_masked;
    r.unclassified_are_errors = unclassified_are_errors;
    const size_t n = r.classes.size();
    r.matrix.assign(n * n, 0);
    std::vector<int64_t> missing(n, 0); // unclassified pixels per reference class
    for (size_t i = 0; i < m_reference_values.size(); ++i)
        for (size_t j = 0; j < m_map_values.size(); ++j) {
            const int64_t pixels = m_pairs[i * m_pitch + j];
            const size_t row = matching.reference_row.at(m_reference_values[i]);
            if (m_map_values[j] == m_map_none) {
                r.unclassified += pixels;
                missing[row] += pixels;
            } else {
                r.matrix[row * n + matching.map_row.at(m_map_values[j])] += pixels;
                r.pixels += pixels;
            }
        }
    if (r.pixels == 0)
        throw Error(
            m_reference_values.empty() ? "no labelled pixel of the reference is on the map"
                                       : "no labelled pixel has a class in the map",
            "Check that map and reference cover the same area, and that the mask leaves labelled pixels.");
    if (unclassified_are_errors) r.pixels += r.unclassified;
    judge_matrix(r, missing);
    return r;
}

Result join(std::vector<Result> parts) {
    if (parts.size() == 1) return std::move(parts.front());
    unite_classes(parts, "map");
    Result all;
    all.unclassified_are_errors = parts.front().unclassified_are_errors;
    // The classes of the reference come before classes that are only in the map, as in each part.
    const auto add_classes = [&](bool of_reference) {
        std::map<std::pair<int, std::string>, Class> found;
        for (const Result& part : parts)
            for (const ClassAccuracy& c : part.by_class)
                if ((c.reference > 0) == of_reference) found.try_emplace({c.of.value, c.of.name}, c.of);
        for (const auto& [key, c] : found)
            if (std::none_of(all.classes.begin(), all.classes.end(),
                             [&c = c](const Class& o) { return o.value == c.value && o.name == c.name; }))
                all.classes.push_back(c);
    };
    add_classes(true);
    add_classes(false);
    const size_t n = all.classes.size();
    all.matrix.assign(n * n, 0);
    std::vector<int64_t> missing(n, 0);
    for (const Result& part : parts) {
        std::vector<size_t> row;
        for (const Class& c : part.classes)
            row.push_back(static_cast<size_t>(
                std::find_if(all.classes.begin(), all.classes.end(),
                             [&](const Class& o) { return o.value == c.value && o.name == c.name; }) -
                all.classes.begin()));
        for (size_t i = 0; i < row.size(); ++i) {
            int64_t mapped = 0;
            for (size_t k = 0; k < row.size(); ++k) {
                all.matrix[row[i] * n + row[k]] += part.at(i, k);
                mapped += part.at(i, k);
            }
            missing[row[i]] += part.by_class[i].reference - mapped;
        }
        all.pixels += part.pixels;
        all.unclassified += part.unclassified;
        all.unlabelled += part.unlabelled;
        all.alarms += part.alarms;
        all.masked += part.masked;
    }
    for (size_t i = 1; i < n; ++i) // gives different numbers to classes with different names
        while (std::any_of(all.classes.begin(), all.classes.begin() + static_cast<ptrdiff_t>(i),
                           [&](const Class& o) { return o.value == all.classes[i].value; }))
            ++all.classes[i].value;
    judge_matrix(all, missing);
    return all;
}

namespace {

/// Returns the reason why kappa is undefined.
std::string sides_of_one_class(const Result& r) {
    const auto has_one = [&](int64_t ClassAccuracy::*pixels) {
        return std::count_if(r.by_class.begin(), r.by_class.end(),
                             [&](const auto& c) { return c.*pixels > 0; }) < 2;
    };
    const bool map = has_one(&ClassAccuracy::mapped), reference = has_one(&ClassAccuracy::reference);
    return map && reference ? "map and reference have" : reference ? "the reference has" : "the map has";
}

} // namespace

std::string text(const Result& r) {
    const size_t n = r.classes.size();
    std::string out = "Confusion matrix (rows: reference, columns: map)\n";
    size_t name_width = 5, cell = 6;
    for (const auto& c : r.classes)
        name_width = std::max(name_width, std::min<size_t>(28, title(c).size()));
    for (int64_t v : r.matrix)
        cell = std::max(cell, std::to_string(v).size() + 1);
    out += pad("", name_width);
    for (const auto& c : r.classes)
        out += pad(std::to_string(c.value), cell);
    out += "\n";
    for (size_t i = 0; i < n; ++i) {
        out += pad(title(r.classes[i]), name_width, true);
        for (size_t j = 0; j < n; ++j)
            out += pad(std::to_string(r.at(i, j)), cell);
        out += "\n";
    }
    out += "\n" + pad("Class", name_width, true) + pad("pixels", 9) + pad("mapped", 9) +
           pad("producer's %", 25) + pad("user's %", 25) + pad("F1 %", 8) + "\n";
    for (const auto& c : r.by_class)
        out += pad(title(c.of), name_width, true) + pad(std::to_string(c.reference), 9) +
               pad(std::to_string(c.mapped), 9) + pad(percent(c.producer), 25) + pad(percent(c.user), 25) +
               pad(std::isnan(c.f1) ? "-" : number("%.2f", 100 * c.f1), 8) + "\n";
    out += "\nOverall accuracy (OA): " + percent(r.overall) + " %\n";
    out += "Average accuracy (AA): " + percent(r.average) + " %\n";
    out += "Kappa: " +
           (std::isnan(r.kappa.value) ? "- (not defined: " + sides_of_one_class(r) + " only one class)"
                                      : number("%.4f", r.kappa.value) + " (" + number("%.4f", r.kappa.low) +
                                            " to " + number("%.4f", r.kappa.high) + ")") +
           "\n";
    out += "In brackets: 95 % confidence intervals.\n";
    out.append("Pixels: ").append(std::to_string(r.pixels)).append(" compared");
    out.append(r.unclassified_are_errors ? ", of which " : ", ").append(std::to_string(r.unclassified));
    out.append(" labelled but unclassified (");
    out.append(r.unclassified_are_errors ? "counted as errors" : "left out").append("), ");
    out.append(std::to_string(r.unlabelled)).append(" unlabelled");
    if (r.masked) out.append(", ").append(std::to_string(r.masked)).append(" masked out");
    out += '\n';
    if (std::isnan(r.kappa.value))
        out += "False alarms: " + std::to_string(r.alarms) + " unlabelled pixels with a class in the map\n";
    return out;
}

std::string csv(const Result& r) {
    const size_t n = r.classes.size();
    std::string out = "class,name";
    for (const auto& c : r.classes)
        out.append(",map_").append(std::to_string(c.value));
    out += ",reference_pixels,map_pixels,producers_accuracy,producers_low,producers_high,users_accuracy,"
           "users_low,"
           "users_high,f1\r\n";
    const auto cell = [](double v) {
        return std::string(",").append(std::isnan(v) ? "" : number("%.6f", v));
    };
    for (size_t i = 0; i < n; ++i) {
        const auto& c = r.by_class[i];
        out.append(std::to_string(c.of.value)).append(",").append(csv_cell(c.of.name));
        for (size_t j = 0; j < n; ++j)
            out.append(",").append(std::to_string(r.at(i, j)));
        out.append(",").append(std::to_string(c.reference)).append(",").append(std::to_string(c.mapped));
        for (const auto& e : {c.producer, c.user})
            out += cell(e.value) + cell(e.low) + cell(e.high);
        out += cell(c.f1) + "\r\n";
    }
    return out;
}

Spread spread(const std::vector<double>& values) {
    Spread s;
    double sum = 0, squares = 0;
    for (const double v : values)
        if (!std::isnan(v)) {
            sum += v;
            ++s.folds;
        }
    s.mean = s.folds > 0 ? sum / s.folds : no_value;
    for (const double v : values)
        if (!std::isnan(v)) squares += (v - s.mean) * (v - s.mean);
    s.deviation = s.folds > 1 ? std::sqrt(squares / (s.folds - 1)) : no_value;
    return s;
}

namespace {

/// Returns the figures of a class in a fold; null if the fold's reference lacks the class.
const ClassAccuracy* class_in(const Result& fold, const Class& of) {
    for (const auto& c : fold.by_class)
        if (c.of.value == of.value && c.of.name == of.name && c.reference > 0) return &c;
    return nullptr;
}

template <class Take>
Spread spread_of(const std::vector<Result>& folds, Take take) {
    std::vector<double> values;
    for (const Result& fold : folds)
        values.push_back(take(fold));
    return spread(values);
}

std::string percent(const Spread& s) {
    if (std::isnan(s.mean)) return "-";
    return number("%.2f", 100 * s.mean) +
           (std::isnan(s.deviation) ? std::string() : " +- " + number("%.2f", 100 * s.deviation));
}

} // namespace

bool unite_classes(std::vector<Result>& folds, const std::string& part) {
    std::map<std::string, int> number;
    std::map<int, std::set<std::string>> names;
    for (const Result& fold : folds) {
        std::set<std::string> own;
        for (const Class& c : fold.classes) {
            if (c.name.empty()) continue;
            if (!own.insert(c.name).second) return false;
            number.try_emplace(c.name, c.value);
            names[c.value].insert(c.name);
        }
    }
    bool renumbered = false;
    for (size_t k = 0; k < folds.size(); ++k)
        for (size_t i = 0; i < folds[k].classes.size(); ++i) {
            Class& c = folds[k].classes[i];
            if (const auto known = names.find(c.value); c.name.empty() && known != names.end()) {
                if (known->second.size() > 1)
                    throw Error("class " + std::to_string(c.value) + " has no name in " + part + " " +
                                    std::to_string(k + 1) + ", but it is called '" + *known->second.begin() +
                                    "' in one of the others and '" + *known->second.rbegin() + "' in another",
                                "Name the classes in all " + part +
                                    "s, or use the same class numbers in all.");
                c.name = *known->second.begin();
            }
            if (c.name.empty()) continue;
            renumbered = renumbered || c.value != number[c.name];
            c.value = number[c.name];
            folds[k].by_class[i].of = c;
        }
    return renumbered;
}

Summary summarize(const std::vector<Result>& folds) {
    Summary s;
    s.overall = spread_of(folds, [](const Result& r) { return r.overall.value; });
    s.average = spread_of(folds, [](const Result& r) { return r.average.value; });
    s.kappa = spread_of(folds, [](const Result& r) { return r.kappa.value; });
    std::map<std::pair<int, std::string>, Class> classes;
    for (const Result& fold : folds)
        for (const auto& c : fold.by_class)
            if (c.reference > 0) classes.try_emplace({c.of.value, c.of.name}, c.of);
    for (const auto& [key, of] : classes) {
        const auto figure = [&folds, &c = of](auto take) {
            return spread_of(folds, [&](const Result& fold) {
                const ClassAccuracy* const found = class_in(fold, c);
                return found ? take(*found) : no_value;
            });
        };
        s.by_class.push_back({of, figure([](const ClassAccuracy& c) { return c.producer.value; }),
                              figure([](const ClassAccuracy& c) { return c.user.value; }),
                              figure([](const ClassAccuracy& c) { return c.f1; })});
        auto& one = s.by_class.back();
        for (const Result& fold : folds)
            if (const ClassAccuracy* const found = class_in(fold, of)) {
                one.least = one.most == 0 ? found->reference : std::min(one.least, found->reference);
                one.most = std::max(one.most, found->reference);
            }
    }
    return s;
}

std::string text(const std::vector<Result>& folds, const Summary& summary) {
    const auto kappa = [](double v) { return std::isnan(v) ? std::string("-") : number("%.4f", v); };
    std::string out = "Fold      pixels    OA %    AA %   Kappa\n";
    for (size_t k = 0; k < folds.size(); ++k)
        out += pad(std::to_string(k + 1), 4) + pad(std::to_string(folds[k].pixels), 12) +
               pad(number("%.2f", 100 * folds[k].overall.value), 8) +
               pad(number("%.2f", 100 * folds[k].average.value), 8) + pad(kappa(folds[k].kappa.value), 8) +
               "\n";
    size_t width = 5;
    for (const auto& c : summary.by_class)
        width = std::max(width, std::min<size_t>(28, title(c.of).size()));
    out += "\n" + pad("Class", width, true) + pad("folds", 7) + pad("pixels a fold", 18) +
           pad("producer's %", 18) + pad("user's %", 18) + pad("F1 %", 18) + "\n";
    const auto pixels = [](const ClassSpread& c) {
        return std::to_string(c.least) + (c.most > c.least ? " to " + std::to_string(c.most) : "");
    };
    for (const auto& c : summary.by_class)
        out += pad(title(c.of), width, true) + pad(std::to_string(c.producer.folds), 7) + pad(pixels(c), 18) +
               pad(percent(c.producer), 18) + pad(percent(c.user), 18) + pad(percent(c.f1), 18) + "\n";
    out += "\nOverall accuracy (OA): " + percent(summary.overall) + " %\n";
    out += "Average accuracy (AA): " + percent(summary.average) + " %\n";
    out += "Kappa: " + kappa(summary.kappa.mean) +
           (std::isnan(summary.kappa.deviation) ? std::string() : " +- " + kappa(summary.kappa.deviation)) +
           "\n";
    out += "Mean and standard deviation over " + std::to_string(folds.size()) + " folds.\n";
    return out;
}

std::string csv(const std::vector<Result>& folds, const Summary& summary) {
    std::string out = "fold,pixels,overall_accuracy,average_accuracy,kappa";
    for (const auto& c : summary.by_class)
        for (const char* figure : {"producers_accuracy ", "users_accuracy ", "f1 "})
            out += "," + csv_cell(figure + title(c.of));
    out += "\r\n";
    const auto cell = [&out](double v) { out.append(",").append(std::isnan(v) ? "" : number("%.6f", v)); };
    for (size_t k = 0; k < folds.size(); ++k) {
        const Result& fold = folds[k];
        out += std::to_string(k + 1) + "," + std::to_string(fold.pixels);
        for (const double v : {fold.overall.value, fold.average.value, fold.kappa.value})
            cell(v);
        for (const auto& c : summary.by_class) {
            const ClassAccuracy* const found = class_in(fold, c.of);
            cell(found ? found->producer.value : no_value);
            cell(found ? found->user.value : no_value);
            cell(found ? found->f1 : no_value);
        }
        out += "\r\n";
    }
    for (const bool mean : {true, false}) {
        const auto of = [&](const Spread& s) { cell(mean ? s.mean : s.deviation); };
        out += mean ? "mean," : "standard_deviation,";
        for (const Spread* s : {&summary.overall, &summary.average, &summary.kappa})
            of(*s);
        for (const auto& c : summary.by_class)
            for (const Spread* s : {&c.producer, &c.user, &c.f1})
                of(*s);
        out += "\r\n";
    }
    return out;
}

} // namespace hsi::accuracy
