// SPDX-License-Identifier: MIT
// The max-tree of a plane, which has the connected components of the plane's upper level sets, and its
// attribute filters.
#pragma once

#include "profile/profile.h"

#include <cstdint>
#include <vector>

namespace hsi::profile {

/// The valid pixels of a component as levels 0..65535.
struct Levels {
    int64_t lines = 0, samples = 0;
    std::vector<uint16_t> level;      ///< level of each pixel; 0 if invalid
    std::vector<unsigned char> valid; ///< 1 if the pixel has a value, otherwise 0
    double low = 0, high = 0;         ///< minimum and maximum of the valid values
    bool exact = false;               ///< true if level = value - low exactly
    double mean = 0;                  ///< mean level of the valid pixels
    int64_t pixels() const { return lines * samples; }
    /// Returns low + level (high - low) / 65535, or low + level if `exact` is true.
    float value(int level_of) const;
    /// Replaces the levels of valid pixels by 65535 - level.
    void invert();
};

/// Converts values x to levels. If `whole` is true (all values are integers) and high - low is at most 65535,
/// a level is x - low. Otherwise it is floor((x - low) / (high - low) 65535 + 0.5).
Levels quantise(const std::vector<float>& plane, int64_t lines, int64_t samples, bool whole);

/// Each node belongs to a connected part of the pixels at or above a level. The pixels of the node are the
/// pixels of this part at exactly this level. Every connected part of the valid pixels has a root. Parents
/// come before their children.
struct MaxTree {
    std::vector<int32_t> node;   ///< node of every pixel; -1: invalid
    std::vector<int32_t> parent; ///< parent of every node; a root is its own parent
    std::vector<uint16_t> level; ///< level of every node
    size_t size() const { return parent.size(); }
    bool is_root(size_t n) const { return parent[n] == static_cast<int32_t>(n); }
};

/// Builds the tree by sorted flooding and union-find, after C. Berger, T. Geraud, R. Levillain, N. Widynski,
/// A. Baillard, E. Bertin, "Effective component tree computation with application to pattern recognition in
/// astronomical imaging", 2007.
MaxTree make_max_tree(const Levels& levels, bool eight);

/// Returns the attribute of every node, over its pixels and all pixels of its descendants:
///   area      number of pixels
///   std       standard deviation of the levels, from exact integers
///   inertia   sum |p - centroid|^2 / area^2
///   diagonal  diagonal of the bounding box, sqrt(w^2 + h^2)
///   height    greatest level minus the level of the parent
///   volume    sum of (level - level of the parent)
/// For a root, the level of the parent is its own level.
std::vector<double> attribute_of(const MaxTree& tree, const Levels& levels, Attribute attribute);

/// Removes nodes by the subtractive rule. A removed node gets the level of its parent, and all its
/// descendants fall by the same amount. A root is kept. Returns the new levels of the nodes.
std::vector<int32_t> thin(const MaxTree& tree, const std::vector<double>& attribute, double threshold);

/// Returns, for every node, the best rank of the maxima in it. Maxima are ranked by their extinction values:
/// rank 0 has the greatest value. Where branches meet, the branch with the greatest attribute continues.
/// Among equal branches, the maximum with the smaller first pixel continues. The maxima of the other branches
/// end, and their extinction value is the attribute of their branch. The maximum that remains at a root has
/// the attribute of the root. If an attribute may fall towards the root, a node's attribute is replaced by
/// the greatest value over the node and its descendants.
std::vector<int32_t> extinction_ranks(const MaxTree& tree, std::vector<double> attribute);

/// Returns the new levels of the nodes if only the `count` best maxima are kept.
std::vector<int32_t> keep_maxima(const MaxTree& tree, const std::vector<int32_t>& ranks, double count);

// --- Openings by reconstruction

/// Returns the erosion of a plane by the disk a^2 + b^2 <= radius^2. Pixels without a value (+infinity) and
/// positions outside the plane are skipped.
std::vector<float> erode(const std::vector<float>& plane, int64_t lines, int64_t samples, int radius);

/// Reconstructs by dilation of `marker` under `mask`, in place. Missing values are -infinity in both planes.
/// Method: L. Vincent, "Morphological grayscale reconstruction in image analysis", IEEE TIP 2(2), 1993.
void reconstruct(std::vector<float>& marker, const std::vector<float>& mask, int64_t lines, int64_t samples,
                 bool eight);

} // namespace hsi::profile
