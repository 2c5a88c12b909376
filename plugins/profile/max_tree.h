// SPDX-License-Identifier: MIT
// The tree of the connected components of a plane's upper level sets, and the attribute filters on it.
#pragma once

#include "profile/profile.h"

#include <cstdint>
#include <vector>

namespace hsi::profile {

/// A component with valid pixels on levels 0..65535.
struct Levels {
    int64_t lines = 0, samples = 0;
    std::vector<uint16_t> level;      ///< 0 if invalid
    std::vector<unsigned char> valid; ///< 1 if there is a value
    double low = 0, high = 0;         ///< extremes of the valid values
    bool exact = false;               ///< level = value - low
    double mean = 0;                  ///< of the valid pixels' levels
    int64_t pixels() const { return lines * samples; }
    /// Returns low + level (high - low) / 65535, or low + level.
    float value(int level_of) const;
    /// Replaces the levels of valid pixels by 65535 - level.
    void invert();
};

/// Converts values to levels. Whole numbers with a range of at most 65535 are unchanged except for `low`;
/// otherwise floor((x - low) / (high - low) 65535 + 0.5).
Levels quantise(const std::vector<float>& plane, int64_t lines, int64_t samples, bool whole);

/// A node is a connected part of the pixels at or above its level, without the pixels of this part at the
/// next higher level. Every connected part of the valid pixels has a root. Parents come before their
/// children.
struct MaxTree {
    std::vector<int32_t> node;   ///< of every pixel; -1: invalid
    std::vector<int32_t> parent; ///< of every node; a root is its own parent
    std::vector<uint16_t> level; ///< of every node
    size_t size() const { return parent.size(); }
    bool is_root(size_t n) const { return parent[n] == static_cast<int32_t>(n); }
};

/// Builds the tree by sorted flooding and union-find: C. Berger, T. Geraud, R. Levillain, N. Widynski, A.
/// Baillard, E. Bertin, "Effective component tree computation with application to pattern recognition in
/// astronomical imaging", 2007.
MaxTree make_max_tree(const Levels& levels, bool eight);

/// Returns the attribute of every node, over its pixels and all pixels above it:
///   area      number of pixels
///   std       standard deviation of the levels, from exact integers
///   inertia   sum |p - centroid|^2 / area^2
///   diagonal  of the bounding box, sqrt(w^2 + h^2)
///   height    greatest level minus that of the parent
///   volume    sum of (level - level of the parent)
/// A root is its own parent.
std::vector<double> attribute_of(const MaxTree& tree, const Levels& levels, Attribute attribute);

/// Applies the subtractive rule: a node that is removed falls to the level of its parent, and all nodes above
/// it fall by the same amount. A root is kept. Returns the new levels of the nodes.
std::vector<int32_t> thin(const MaxTree& tree, const std::vector<double>& attribute, double threshold);

/// Returns for every node the best rank among the maxima in it: 0 for the greatest extinction value. When
/// branches meet, the one with the greatest attribute continues (ties: the maximum with the smaller first
/// pixel). The maxima of the others end with the attribute of their branch, and a root's with the root's. For
/// an attribute that may fall towards the root, the greatest value over the descendants is used.
std::vector<int32_t> extinction_ranks(const MaxTree& tree, std::vector<double> attribute);

/// Returns the new levels of nodes when the `count` best maxima are kept.
std::vector<int32_t> keep_maxima(const MaxTree& tree, const std::vector<int32_t>& ranks, double count);

// --- Openings by reconstruction

/// Erodes by the disk a^2 + b^2 <= radius^2; pixels outside or without a value (+infinity) are skipped.
std::vector<float> erode(const std::vector<float>& plane, int64_t lines, int64_t samples, int radius);

/// Reconstructs by dilation of `marker` under `mask`, in place; both are -infinity for missing values. L.
/// Vincent, "Morphological grayscale reconstruction in image analysis", IEEE TIP 2(2), 1993.
void reconstruct(std::vector<float>& marker, const std::vector<float>& mask, int64_t lines, int64_t samples,
                 bool eight);

} // namespace hsi::profile
