// SPDX-License-Identifier: MIT
// The attributes of the nodes of a max-tree, and thinning by them.
#include "profile/max_tree.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::profile {
namespace {

// Holds sums that do not fit into 64 bits: squares over 2^31 pixels, times the number of pixels.
__extension__ typedef unsigned __int128 Wide; // NOLINT(modernize-use-using): an extension precedes it

/// Adds part(i) of each pixel i to its node's sum, and then each node's sum to its parent's sum.
template <class Sum, class Part>
std::vector<Sum> add_up(const MaxTree& tree, Part part) {
    std::vector<Sum> sums(tree.size(), Sum{});
    for (size_t i = 0; i < tree.node.size(); ++i)
        if (tree.node[i] >= 0) sums[static_cast<size_t>(tree.node[i])] += part(i);
    for (size_t n = tree.size(); n-- > 0;)
        if (!tree.is_root(n)) sums[static_cast<size_t>(tree.parent[n])] += sums[n];
    return sums;
}

int below(const MaxTree& tree, size_t n) { return tree.level[static_cast<size_t>(tree.parent[n])]; }

std::vector<double> areas(const MaxTree& tree) {
    const auto count = add_up<uint32_t>(tree, [](size_t) { return 1U; });
    return {count.begin(), count.end()};
}

std::vector<double> deviations(const MaxTree& tree, const Levels& l) {
    struct Sums {
        uint64_t count = 0, one = 0, two = 0;
        Sums& operator+=(const Sums& o) {
            count += o.count;
            one += o.one;
            two += o.two;
            return *this;
        }
    };
    const auto sums = add_up<Sums>(tree, [&](size_t i) {
        const uint64_t v = l.level[i];
        return Sums{1, v, v * v};
    });
    std::vector<double> out;
    out.reserve(sums.size());
    for (const auto& s : sums) {
        const Wide spread = static_cast<Wide>(s.count) * s.two - static_cast<Wide>(s.one) * s.one;
        out.push_back(std::sqrt(static_cast<double>(spread)) / static_cast<double>(s.count));
    }
    return out;
}

std::vector<double> inertias(const MaxTree& tree, const Levels& l) {
    struct Sums {
        uint64_t count = 0, x = 0, y = 0;
        Wide squares = 0;
        Sums& operator+=(const Sums& o) {
            count += o.count;
            x += o.x;
            y += o.y;
            squares += o.squares;
            return *this;
        }
    };
    const auto w = static_cast<uint64_t>(l.samples);
    const auto sums = add_up<Sums>(tree, [&](size_t i) {
        const uint64_t x = i % w, y = i / w;
        return Sums{1, x, y, static_cast<Wide>(x) * x + static_cast<Wide>(y) * y};
    });
    std::vector<double> out;
    out.reserve(sums.size());
    for (const auto& s : sums) {
        const Wide spread = s.count * s.squares - static_cast<Wide>(s.x) * s.x - static_cast<Wide>(s.y) * s.y;
        const auto area = static_cast<double>(s.count);
        out.push_back(static_cast<double>(spread) / (area * area * area));
    }
    return out;
}

std::vector<double> diagonals(const MaxTree& tree, const Levels& l) {
    struct Box {
        int32_t left = std::numeric_limits<int32_t>::max(), right = -1,
                top = std::numeric_limits<int32_t>::max(), bottom = -1;
        Box& operator+=(const Box& o) {
            left = std::min(left, o.left);
            right = std::max(right, o.right);
            top = std::min(top, o.top);
            bottom = std::max(bottom, o.bottom);
            return *this;
        }
    };
    const auto boxes = add_up<Box>(tree, [&](size_t i) {
        const auto x = static_cast<int32_t>(i % static_cast<size_t>(l.samples)),
                   y = static_cast<int32_t>(i / static_cast<size_t>(l.samples));
        return Box{x, x, y, y};
    });
    std::vector<double> out;
    out.reserve(boxes.size());
    for (const auto& b : boxes) {
        const double w = b.right - b.left + 1, h = b.bottom - b.top + 1;
        out.push_back(std::sqrt(w * w + h * h));
    }
    return out;
}

std::vector<double> heights(const MaxTree& tree) {
    std::vector<uint16_t> greatest = tree.level;
    for (size_t n = tree.size(); n-- > 0;) {
        auto& up = greatest[static_cast<size_t>(tree.parent[n])];
        up = std::max(up, greatest[n]);
    }
    std::vector<double> out(tree.size());
    for (size_t n = 0; n < tree.size(); ++n)
        out[n] = greatest[n] - below(tree, n);
    return out;
}

std::vector<double> volumes(const MaxTree& tree, const Levels& l) {
    const auto sums = add_up<uint64_t>(tree, [&](size_t i) { return uint64_t{l.level[i]}; });
    const auto count = add_up<uint32_t>(tree, [](size_t) { return 1U; });
    std::vector<double> out(tree.size());
    for (size_t n = 0; n < tree.size(); ++n)
        out[n] = static_cast<double>(sums[n] - uint64_t{count[n]} * static_cast<uint64_t>(below(tree, n)));
    return out;
}

} // namespace

std::vector<double> attribute_of(const MaxTree& tree, const Levels& levels, Attribute attribute) {
    switch (attribute) {
    case Attribute::std:
        return deviations(tree, levels);
    case Attribute::inertia:
        return inertias(tree, levels);
    case Attribute::diagonal:
        return diagonals(tree, levels);
    case Attribute::volume:
        return volumes(tree, levels);
    case Attribute::height:
        return heights(tree);
    case Attribute::radius:
    case Attribute::area:
        break;
    }
    return areas(tree);
}

std::vector<int32_t> thin(const MaxTree& tree, const std::vector<double>& attribute, double threshold) {
    std::vector<int32_t> out(tree.size());
    for (size_t n = 0; n < tree.size(); ++n)
        out[n] = tree.is_root(n) ? tree.level[n]
                                 : out[static_cast<size_t>(tree.parent[n])] +
                                       (attribute[n] >= threshold ? tree.level[n] - below(tree, n) : 0);
    return out;
}

} // namespace hsi::profile
