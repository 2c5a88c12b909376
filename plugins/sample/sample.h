// SPDX-License-Identifier: MIT
// Stratified, seeded split of labelled pixels into a training and a test set, or into folds: by pixels, or by
// whole patches of pixels.
#pragma once

#include "core/label_class.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hsi::sample {

/// How many training pixels a class gives.
struct Share {
    int64_t count = -1;   ///< the count; -1: use fraction
    double fraction = 0;  ///< this share of the class, rounded to the nearest whole number, at least 1
    bool at_most = false; ///< fewer where the class has fewer
};

struct Options {
    Share share{50, 0};            ///< of every class that is not in by_class
    std::map<int, Share> by_class; ///< class value to share
    uint64_t seed = 1;
    double min_distance = 0; ///< pixels; every test pixel is at least this far from all training pixels
    int patches = 1;         ///< with min_distance: compact training patches a class
};

using hsi::LabelClass; ///< pixels: with a label

enum class Part : uint8_t { left_out = 0, train = 1, test = 2 };

struct Split {
    std::vector<Part> part;             ///< a labelled pixel each, in the order given
    std::map<int, int64_t> train, test; ///< pixels a class
    int64_t left_out = 0;               ///< too near to a training pixel
    /// By patches: how many training pixels a class lacks, since its last patch stays for the test.
    std::map<int, int64_t> missing;
};

/// The patches of labelled pixels: pixels of a class that touch, also at corners.
class Patches {
  public:
    /// `index`: line * samples + sample, ascending; `value`: the class. Both outlive this.
    Patches(const std::vector<int64_t>& index, const std::vector<uint16_t>& value, int64_t samples);
    /// Makes the part of `pixels` (as `index`) with label `value` one patch, with all pixels that it touches:
    /// for the pixels of one polygon, which may be disconnected at narrow places.
    void join(uint16_t value, const std::vector<int64_t>& pixels);
    /// The patch of every pixel; they are numbered from 0 in the order of their first pixels.
    std::vector<size_t> numbers() const;

  private:
    size_t root(size_t i) const;
    void unite(size_t i, size_t j);

    const std::vector<int64_t>& m_index;
    const std::vector<uint16_t>& m_value;
    std::vector<size_t> m_parent; ///< the first pixel of a patch is its own
};

/// `index`: line * samples + sample of every labelled pixel, ascending; `value`: its class. Without a minimum
/// distance training pixels are drawn evenly from the class and all others are test pixels. With one, the
/// training pixels of a class are grown as compact patches around drawn pixels, and test pixels that are too
/// near to any training pixel (Euclidean distance between pixel centres) are left out of both sets: scattered
/// training pixels would leave no test pixel. The same seed gives the same split on every machine. Throws
/// Error naming the class and its count when a class has fewer pixels than wanted, or when no test pixel is
/// left at all.
///
/// `patch`: of every pixel, as Patches numbers them; empty: pixels are drawn one by one. Else whole patches
/// are drawn in random order until the class has as many training pixels as wanted, or more; the last one of
/// a class that has several stays for the test. All pixels of a class with one patch are training pixels.
/// With a minimum distance, patches are not grown then.
Split split(const std::vector<int64_t>& index, const std::vector<uint16_t>& value, int64_t samples,
            int64_t lines, const std::vector<LabelClass>& classes, const Options& options,
            const std::vector<size_t>& patch = {});

/// `count` splits in which each pixel (each patch) is tested once: shuffled class by class and dealt out, the
/// largest patches first, each to the fold with the fewest pixels of the class, then of all. Training pixels
/// of a fold are drawn from all others by the shares of the options (all of them: a fraction of 1), pixel by
/// pixel or by whole patches, as in split(), except that a fold may take all of them. Throws Error as split()
/// does, and when there are fewer patches (or pixels) than folds.
std::vector<Split> folds(const std::vector<int64_t>& index, const std::vector<uint16_t>& value,
                         int64_t samples, int64_t lines, const std::vector<LabelClass>& classes,
                         const Options& options, int count, const std::vector<size_t>& patch = {});

/// A fold from 0 on for each pixel, so that the pixels of a group are in one fold. Groups may hold several
/// classes. They are dealt out, the largest first and equal ones in the order of the seed, each to the fold
/// that then has the least of its classes, by their shares, and of all pixels. At most as many folds as there
/// are groups.
std::vector<int> folds_of_groups(const std::vector<uint16_t>& value, const std::vector<size_t>& group,
                                 int folds, uint64_t seed);

/// The stated option forms, "50", "150 at most" or "15:1,9,7" (the classes by value or by name, as
/// listed_words() takes them): sets options.share or by_class. `fraction`: the numbers are shares between 0
/// and 1 (-fraction) rather than counts (-n). Throws UsageError, also for a class that was named before.
/// Names are resolved against `classes`.
void apply_share(const std::string& text, bool fraction, const std::vector<LabelClass>& classes,
                 Options& options);

/// Checks the form only, before any file is opened. Throws UsageError.
void check_share(const std::string& text, bool fraction);

} // namespace hsi::sample
