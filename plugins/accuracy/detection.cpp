// SPDX-License-Identifier: MIT
#include "accuracy/detection.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace hsi::accuracy {

namespace {
constexpr double none = std::numeric_limits<double>::quiet_NaN();
double share(int64_t part, int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : none;
}
} // namespace

double DetectionCurve::pd(size_t k) const { return share(targets[k], target_pixels); }
double DetectionCurve::pfa(size_t k) const { return share(alarms[k], background_pixels); }
double DetectionCurve::precision(size_t k) const { return share(targets[k], targets[k] + alarms[k]); }

double DetectionCurve::auc() const {
    double sum = 0, lost = 0; // compensated sum: a scene has up to 1e9 terms
    for (size_t k = 0; k < size(); ++k) {
        const int64_t here = targets[k] - (k > 0 ? targets[k - 1] : 0);
        const double right = static_cast<double>(background_pixels - alarms[k]) +
                             0.5 * static_cast<double>(alarms[k] - better[k]);
        const double term = static_cast<double>(here) * right - lost, next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
    const double pairs = static_cast<double>(target_pixels) * static_cast<double>(background_pixels);
    return pairs > 0 ? sum / pairs : none;
}

double DetectionCurve::average_precision() const {
    if (target_pixels == 0 || background_pixels == 0) return none;
    double sum = 0;
    for (size_t k = 0; k < size(); ++k)
        sum += static_cast<double>(targets[k] - (k > 0 ? targets[k - 1] : 0)) * precision(k);
    return sum / static_cast<double>(target_pixels);
}

size_t DetectionCurve::at_rate(double rate) const {
    size_t last = size();
    for (size_t k = 0; k < size() && pfa(k) <= rate; ++k)
        last = k;
    return last;
}

void DetectionCounts::add_target(double score) {
    constexpr size_t most = size_t{1} << 20;
    m_new.push_back(m_sign * score + 0.0); // turns -0 into 0
    if (m_new.size() >= std::max(most, m_kept.size())) merge();
}

void DetectionCounts::merge() {
    std::sort(m_new.begin(), m_new.end(), std::greater<>());
    std::vector<std::pair<double, int64_t>> all;
    const auto take = [&](double score, int64_t count) {
        if (all.empty() || all.back().first != score) all.emplace_back(score, 0);
        all.back().second += count;
    };
    auto kept = m_kept.begin();
    for (const double score : m_new) {
        for (; kept != m_kept.end() && kept->first >= score; ++kept)
            take(kept->first, kept->second);
        take(score, 1);
    }
    for (; kept != m_kept.end(); ++kept)
        take(kept->first, kept->second);
    m_kept = std::move(all);
    m_new.clear();
}

void DetectionCounts::seal() {
    merge();
    std::sort(m_objects.begin(), m_objects.end(), std::greater<>());
    m_between.assign(m_kept.size() + 1, 0);
    m_equal.assign(m_kept.size(), 0);
}

void DetectionCounts::add_object(double best) {
    m_objects.push_back(std::isnan(best) ? -std::numeric_limits<double>::infinity() : m_sign * best);
}

void DetectionCounts::add_background(const double* scores, const char* use, size_t count) {
    const double worst = m_kept.empty() ? std::numeric_limits<double>::infinity() : m_kept.back().first;
    for (size_t x = 0; x < count; ++x) {
        const double s = m_sign * scores[x];
        if (use[x] == 0 || std::isnan(s)) continue;
        if (s < worst) {
            ++m_between.back();
            continue;
        }
        const auto at = std::lower_bound(m_kept.begin(), m_kept.end(), s,
                                         [](const auto& one, double value) { return one.first > value; });
        ++(at->first == s ? m_equal : m_between)[static_cast<size_t>(at - m_kept.begin())];
    }
}

DetectionCurve DetectionCounts::curve() const {
    DetectionCurve c;
    int64_t targets = 0, alarms = 0;
    size_t objects = 0;
    for (size_t k = 0; k < m_kept.size(); ++k) {
        targets += m_kept[k].second;
        alarms += m_between[k];
        while (objects < m_objects.size() && m_objects[objects] >= m_kept[k].first)
            ++objects;
        c.threshold.push_back(m_sign * m_kept[k].first);
        c.better.push_back(alarms);
        alarms += m_equal[k];
        c.alarms.push_back(alarms);
        c.targets.push_back(targets);
        c.objects.push_back(static_cast<int64_t>(objects));
    }
    c.target_pixels = targets;
    c.background_pixels = alarms + m_between.back();
    c.all_objects = static_cast<int64_t>(m_objects.size());
    return c;
}

size_t Objects::root(size_t k) const {
    while (m_parts[k].parent != k)
        k = m_parts[k].parent = m_parts[m_parts[k].parent].parent;
    return k;
}

void Objects::add_line(const uint16_t* classes, uint16_t none_here, const double* scores) {
    std::vector<size_t> line(m_samples);
    m_above.resize(m_samples);
    for (size_t x = 0; x < m_samples; ++x) {
        if (classes[x] == none_here) continue;
        size_t part = 0;
        const auto join = [&](size_t other) {
            if (other == 0 || m_parts[other - 1].object.of != classes[x]) return;
            const size_t k = root(other - 1);
            if (part > 0 && k != part - 1) {
                m_parts[k].parent = part - 1;
                auto& best = m_parts[part - 1].object.best;
                best = std::fmax(best, m_parts[k].object.best);
            } else {
                part = k + 1;
            }
        };
        if (x > 0) join(line[x - 1]);
        for (size_t i = x > 0 ? x - 1 : 0; i <= std::min(x + 1, m_samples - 1); ++i)
            join(m_above[i]);
        if (part == 0) {
            m_parts.push_back({m_parts.size(), {classes[x], none}});
            part = m_parts.size();
        }
        auto& best = m_parts[part - 1].object.best;
        best = std::fmax(best, m_sign * scores[x]); // fmax ignores NaN
        line[x] = part;
    }
    m_above = std::move(line);
}

std::vector<Objects::Object> Objects::all() const {
    std::vector<Object> list;
    for (size_t k = 0; k < m_parts.size(); ++k)
        if (m_parts[k].parent == k) list.push_back({m_parts[k].object.of, m_sign * m_parts[k].object.best});
    return list;
}

} // namespace hsi::accuracy
