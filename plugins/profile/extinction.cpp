// SPDX-License-Identifier: MIT
// Extinction values of the maxima of a max-tree.
#include "profile/max_tree.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace hsi::profile {
namespace {

/// Returns the first pixel of each node in raster order.
std::vector<int32_t> first_pixels(const MaxTree& tree) {
    std::vector<int32_t> first(tree.size(), -1);
    for (size_t i = tree.node.size(); i-- > 0;)
        if (tree.node[i] >= 0) first[static_cast<size_t>(tree.node[i])] = static_cast<int32_t>(i);
    return first;
}

} // namespace

std::vector<int32_t> extinction_ranks(const MaxTree& tree, std::vector<double> attribute) {
    constexpr int32_t none = -1;
    struct Fight {
        int32_t survivor = none; ///< the maximum that still exists at the node
        int32_t best = none;     ///< the child that contains this maximum
        double extinction = 0;   ///< extinction value of a maximum, if the node is one
    };
    const auto first = first_pixels(tree);
    std::vector<Fight> nodes(tree.size());
    std::vector<int32_t> maxima;
    const auto first_of = [&](size_t n) { return first[static_cast<size_t>(nodes[n].survivor)]; };
    // The loop is in reverse order, because children come after their parents.
    for (size_t n = tree.size(); n-- > 0;) {
        Fight& own = nodes[n];
        if (own.best == none) {
            own.survivor = static_cast<int32_t>(n);
            maxima.push_back(own.survivor);
        } else {
            own.survivor = nodes[static_cast<size_t>(own.best)].survivor;
        }
        size_t loser = n; // The survivor of a root ends with the root.
        if (!tree.is_root(n)) {
            const auto above = static_cast<size_t>(tree.parent[n]);
            attribute[above] = std::max(attribute[above], attribute[n]);
            Fight& up = nodes[above];
            const bool alone = up.best == none;
            const size_t other = alone ? n : static_cast<size_t>(up.best);
            const bool wins = alone || attribute[n] > attribute[other] ||
                              (attribute[n] == attribute[other] && first_of(n) < first_of(other));
            if (wins) up.best = static_cast<int32_t>(n);
            if (alone) continue;
            if (wins) loser = other;
        }
        nodes[static_cast<size_t>(nodes[loser].survivor)].extinction = attribute[loser];
    }
    std::sort(maxima.begin(), maxima.end(), [&](int32_t a, int32_t b) {
        const double ea = nodes[static_cast<size_t>(a)].extinction,
                     eb = nodes[static_cast<size_t>(b)].extinction;
        return ea != eb ? ea > eb : first[static_cast<size_t>(a)] < first[static_cast<size_t>(b)];
    });
    std::vector<int32_t> ranks(tree.size(), std::numeric_limits<int32_t>::max());
    for (size_t i = 0; i < maxima.size(); ++i)
        ranks[static_cast<size_t>(maxima[i])] = static_cast<int32_t>(i);
    for (size_t n = tree.size(); n-- > 0;) {
        auto& up = ranks[static_cast<size_t>(tree.parent[n])];
        up = std::min(up, ranks[n]);
    }
    return ranks;
}

std::vector<int32_t> keep_maxima(const MaxTree& tree, const std::vector<int32_t>& ranks, double count) {
    std::vector<int32_t> out(tree.size());
    for (size_t n = 0; n < tree.size(); ++n)
        out[n] = tree.is_root(n) || static_cast<double>(ranks[n]) < count
                     ? tree.level[n]
                     : out[static_cast<size_t>(tree.parent[n])];
    return out;
}

} // namespace hsi::profile
