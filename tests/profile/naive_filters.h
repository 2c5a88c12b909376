// SPDX-License-Identifier: MIT
// Attribute filters and extinction values by threshold decomposition: the connected parts of every upper
// level set as lists of pixels. It is slow, and shares no code with the trees.
#pragma once

#include "profile/max_tree.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace hsi::profile::naive {

struct Part {
    int level = 0;
    std::vector<int> pixels; ///< in ascending order
    int parent = -1;         ///< -1 for a root
    bool contains(int p) const { return std::binary_search(pixels.begin(), pixels.end(), p); }
};

inline std::vector<int> neighbours(const Levels& l, int p, bool eight) {
    std::vector<int> found;
    const int w = static_cast<int>(l.samples), h = static_cast<int>(l.lines), x = p % w, y = p / w;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            if ((dx == 0 && dy == 0) || (!eight && dx != 0 && dy != 0)) continue;
            if (x + dx < 0 || x + dx >= w || y + dy < 0 || y + dy >= h) continue;
            const int q = (y + dy) * w + x + dx;
            if (l.valid[static_cast<size_t>(q)]) found.push_back(q);
        }
    return found;
}

/// Returns the part of {level >= t} that contains p.
inline std::vector<int> part_of(const Levels& l, int p, int t, bool eight) {
    std::set<int> seen{p};
    std::vector<int> open{p};
    while (!open.empty()) {
        const int at = open.back();
        open.pop_back();
        for (const int q : neighbours(l, at, eight))
            if (l.level[static_cast<size_t>(q)] >= t && seen.insert(q).second) open.push_back(q);
    }
    return {seen.begin(), seen.end()};
}

/// Returns all parts with a pixel of their own level; the parent is the next larger part.
inline std::vector<Part> parts_of(const Levels& l, bool eight) {
    std::vector<Part> parts;
    for (int p = 0; p < static_cast<int>(l.pixels()); ++p) {
        if (!l.valid[static_cast<size_t>(p)]) continue;
        Part part{l.level[static_cast<size_t>(p)], part_of(l, p, l.level[static_cast<size_t>(p)], eight)};
        if (std::none_of(parts.begin(), parts.end(),
                         [&](const Part& o) { return o.level == part.level && o.pixels == part.pixels; }))
            parts.push_back(std::move(part));
    }
    for (auto& part : parts)
        for (size_t o = 0; o < parts.size(); ++o)
            if (parts[o].level < part.level && parts[o].contains(part.pixels[0]) &&
                (part.parent < 0 || parts[o].level > parts[static_cast<size_t>(part.parent)].level))
                part.parent = static_cast<int>(o);
    return parts;
}

inline double attribute(const std::vector<Part>& parts, const Part& part, const Levels& l, Attribute a) {
    const auto n = static_cast<long double>(part.pixels.size());
    const int below = part.parent < 0 ? part.level : parts[static_cast<size_t>(part.parent)].level;
    long double sum = 0, x = 0, y = 0, spread = 0, inertia = 0;
    int left = 1 << 30, right = -1, top = 1 << 30, bottom = -1, greatest = 0;
    long double volume = 0;
    for (const int p : part.pixels) {
        const int v = l.level[static_cast<size_t>(p)], px = p % static_cast<int>(l.samples),
                  py = p / static_cast<int>(l.samples);
        sum += v;
        x += px;
        y += py;
        volume += v - below;
        greatest = std::max(greatest, v);
        left = std::min(left, px);
        right = std::max(right, px);
        top = std::min(top, py);
        bottom = std::max(bottom, py);
    }
    for (const int p : part.pixels) {
        const long double v = l.level[static_cast<size_t>(p)] - sum / n,
                          dx = p % static_cast<int>(l.samples) - x / n,
                          dy = p / static_cast<int>(l.samples) - y / n;
        spread += v * v;
        inertia += dx * dx + dy * dy;
    }
    switch (a) {
    case Attribute::std:
        return static_cast<double>(std::sqrt(spread / n));
    case Attribute::inertia:
        return static_cast<double>(inertia / (n * n));
    case Attribute::diagonal:
        return std::hypot(right - left + 1, bottom - top + 1);
    case Attribute::height:
        return greatest - below;
    case Attribute::volume:
        return static_cast<double>(volume);
    case Attribute::radius:
    case Attribute::area:
        break;
    }
    return static_cast<double>(n);
}

/// Applies the subtractive rule pixel by pixel: adds the steps of all kept parts that contain the pixel.
template <class Kept>
std::vector<int> subtract(const std::vector<Part>& parts, const Levels& l, Kept kept) {
    std::vector<int> out(static_cast<size_t>(l.pixels()), -1);
    for (size_t i = 0; i < parts.size(); ++i) {
        const Part& part = parts[i];
        const int step =
            part.parent < 0 ? part.level : part.level - parts[static_cast<size_t>(part.parent)].level;
        for (const int p : part.pixels) {
            auto& o = out[static_cast<size_t>(p)];
            if (o < 0) o = 0;
            if (part.parent < 0 || kept(i)) o += step;
        }
    }
    return out;
}

/// Returns the number of regional maxima, which are flat parts without a higher neighbour.
inline int count_maxima(const Levels& l, const std::vector<int>& level, bool eight) {
    std::set<int> seen;
    int count = 0;
    for (int p = 0; p < static_cast<int>(l.pixels()); ++p) {
        if (!l.valid[static_cast<size_t>(p)] || seen.count(p)) continue;
        bool highest = true;
        std::vector<int> open{p};
        seen.insert(p);
        while (!open.empty()) {
            const int at = open.back();
            open.pop_back();
            for (const int q : neighbours(l, at, eight)) {
                if (level[static_cast<size_t>(q)] > level[static_cast<size_t>(p)]) highest = false;
                if (level[static_cast<size_t>(q)] == level[static_cast<size_t>(p)] && seen.insert(q).second)
                    open.push_back(q);
            }
        }
        count += highest;
    }
    return count;
}

/// A maximum with its part and its extinction value.
struct Maximum {
    size_t part;
    double extinction;
    int first;
};

/// Follows branches from the root down: the branch with the greatest attribute continues its maximum, every
/// other branch starts a new one.
inline void follow(const std::vector<Part>& parts, const std::vector<double>& a, size_t at, double value,
                   std::vector<Maximum>& out) {
    std::vector<size_t> children;
    for (size_t i = 0; i < parts.size(); ++i)
        if (parts[i].parent == static_cast<int>(at)) children.push_back(i);
    if (children.empty()) {
        out.push_back({at, value, parts[at].pixels[0]});
        return;
    }
    // The maximum that continues decides ties. It is found by following each branch separately.
    const auto survivor = [&](size_t branch) {
        std::vector<Maximum> of;
        follow(parts, a, branch, 1e300, of);
        return std::max_element(
                   of.begin(), of.end(),
                   [](const Maximum& x, const Maximum& y) { return x.extinction < y.extinction; })
            ->first;
    };
    std::sort(children.begin(), children.end(),
              [&](size_t x, size_t y) { return a[x] != a[y] ? a[x] > a[y] : survivor(x) < survivor(y); });
    for (size_t i = 0; i < children.size(); ++i)
        follow(parts, a, children[i], i == 0 ? value : a[children[i]], out);
}

/// Returns all maxima, greatest extinction value first.
inline std::vector<Maximum> maxima(const std::vector<Part>& parts, std::vector<double> a) {
    for (size_t i = 0; i < parts.size(); ++i) // an attribute must be at least that of all descendants
        for (int up = parts[i].parent; up >= 0; up = parts[static_cast<size_t>(up)].parent)
            a[static_cast<size_t>(up)] = std::max(a[static_cast<size_t>(up)], a[i]);
    std::vector<Maximum> out;
    for (size_t i = 0; i < parts.size(); ++i)
        if (parts[i].parent < 0) follow(parts, a, i, a[i], out);
    std::sort(out.begin(), out.end(), [](const Maximum& x, const Maximum& y) {
        return x.extinction != y.extinction ? x.extinction > y.extinction : x.first < y.first;
    });
    return out;
}

} // namespace hsi::profile::naive
