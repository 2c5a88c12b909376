// SPDX-License-Identifier: MIT
#include "profile/max_tree.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hsi::profile {
namespace {

constexpr int64_t most_level = 65535;

/// Returns the valid pixels by rising level. Pixels of equal level are in raster order.
std::vector<int32_t> sorted_pixels(const Levels& levels) {
    std::vector<int32_t> begin(static_cast<size_t>(most_level) + 2, 0);
    const auto pixels = static_cast<size_t>(levels.pixels());
    for (size_t i = 0; i < pixels; ++i)
        if (levels.valid[i]) ++begin[static_cast<size_t>(levels.level[i]) + 1];
    for (size_t l = 1; l < begin.size(); ++l)
        begin[l] += begin[l - 1];
    std::vector<int32_t> order(static_cast<size_t>(begin.back()));
    for (size_t i = 0; i < pixels; ++i)
        if (levels.valid[i]) order[static_cast<size_t>(begin[levels.level[i]]++)] = static_cast<int32_t>(i);
    return order;
}

int32_t find_root(std::vector<int32_t>& up, int32_t p) {
    while (up[static_cast<size_t>(p)] != p) {
        auto& above = up[static_cast<size_t>(p)];
        above = up[static_cast<size_t>(above)];
        p = above;
    }
    return p;
}

/// Returns the parent of each pixel, which is a pixel of equal or lower level. The flooding starts at the
/// highest level.
std::vector<int32_t> flood(const std::vector<int32_t>& order, int64_t lines, int64_t samples, bool eight) {
    const auto pixels = static_cast<size_t>(lines * samples);
    std::vector<int32_t> parent(pixels, -1), up(pixels, -1);
    const auto w = static_cast<int32_t>(samples);
    const auto meet = [&](int32_t p, int32_t q) {
        if (up[static_cast<size_t>(q)] < 0) return; // The neighbour has a lower level, or is invalid.
        const int32_t root = find_root(up, q);
        if (root == p) return;
        up[static_cast<size_t>(root)] = p;
        parent[static_cast<size_t>(root)] = p;
    };
    for (size_t i = order.size(); i-- > 0;) {
        const int32_t p = order[i], x = p % w, y = p / w;
        parent[static_cast<size_t>(p)] = up[static_cast<size_t>(p)] = p;
        const bool left = x > 0, right = x + 1 < w, above = y > 0, below = y + 1 < lines;
        if (left) meet(p, p - 1);
        if (right) meet(p, p + 1);
        if (above) meet(p, p - w);
        if (below) meet(p, p + w);
        if (!eight) continue;
        if (above && left) meet(p, p - w - 1);
        if (above && right) meet(p, p - w + 1);
        if (below && left) meet(p, p + w - 1);
        if (below && right) meet(p, p + w + 1);
    }
    return parent;
}

} // namespace

float Levels::value(int level_of) const {
    if (exact) return static_cast<float>(low + level_of);
    return static_cast<float>(low + level_of * (high - low) / static_cast<double>(most_level));
}

void Levels::invert() {
    for (size_t i = 0; i < level.size(); ++i)
        if (valid[i]) level[i] = static_cast<uint16_t>(most_level - level[i]);
}

Levels quantise(const std::vector<float>& plane, int64_t lines, int64_t samples, bool whole) {
    Levels l;
    l.lines = lines;
    l.samples = samples;
    l.level.assign(plane.size(), 0);
    l.valid.assign(plane.size(), 0);
    int64_t count = 0;
    for (size_t i = 0; i < plane.size(); ++i) {
        const auto x = static_cast<double>(plane[i]);
        if (!std::isfinite(x)) continue;
        l.valid[i] = 1;
        l.low = count == 0 ? x : std::min(l.low, x);
        l.high = count == 0 ? x : std::max(l.high, x);
        ++count;
    }
    const double range = l.high - l.low;
    l.exact = whole && range <= static_cast<double>(most_level);
    uint64_t sum = 0;
    for (size_t i = 0; i < plane.size() && range > 0; ++i) {
        if (!l.valid[i]) continue;
        const double above = static_cast<double>(plane[i]) - l.low;
        const double level =
            l.exact ? above : std::floor(above / range * static_cast<double>(most_level) + 0.5);
        l.level[i] = static_cast<uint16_t>(level);
        sum += l.level[i];
    }
    if (count > 0) l.mean = static_cast<double>(sum) / static_cast<double>(count);
    return l;
}

MaxTree make_max_tree(const Levels& levels, bool eight) {
    const auto order = sorted_pixels(levels);
    const auto pixel_parent = flood(order, levels.lines, levels.samples, eight);
    MaxTree tree;
    tree.node.assign(static_cast<size_t>(levels.pixels()), -1);
    for (const int32_t p : order) {
        const auto at = static_cast<size_t>(p), above = static_cast<size_t>(pixel_parent[at]);
        if (above != at && levels.level[above] == levels.level[at]) {
            tree.node[at] = tree.node[above];
            continue;
        }
        const auto own = static_cast<int32_t>(tree.parent.size());
        tree.node[at] = own;
        tree.parent.push_back(above == at ? own : tree.node[above]);
        tree.level.push_back(levels.level[at]);
    }
    return tree;
}

} // namespace hsi::profile
