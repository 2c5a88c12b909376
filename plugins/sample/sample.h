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

/// The number of training pixels of a class.
struct Share {
    int64_t count = -1;   ///< the count; -1: use fraction
    double fraction = 0;  ///< this fraction of the class, rounded to the nearest whole number, at least 1
    bool at_most = false; ///< fewer if the class has fewer
};

struct Options {
    Share share{50, 0};            ///< of every class that is not in by_class
    std::map<int, Share> by_class; ///< class value to share
    uint64_t seed = 1;
    double min_distance = 0; ///< pixels; every test pixel is at least this far from all training pixels
    int patches = 1;         ///< with min_distance: compact training patches per class
};

using hsi::LabelClass; ///< pixels: with a label

enum class Part : uint8_t { left_out = 0, train = 1, test = 2 };

struct Split {
    std::vector<Part> part;             ///< one per labelled pixel, in the given order
    std::map<int, int64_t> train, test; ///< pixels per class
    int64_t left_out = 0;               ///< too close to a training pixel
    /// By patches: the number of training pixels that a class lacks, because its last patch is kept for the
    /// test.
    std::map<int, int64_t> missing;
};

/// The patches of labelled pixels: pixels of a class that touch, also at corners.
class Patches {
  public:
    /// `index`: line * samples + sample, ascending; `value`: the class. Both must outlive this object.
    Patches(const std::vector<int64_t>& index, const std::vector<uint16_t>& value, int64_t samples);
    /// Joins the pixels with label `value` in `pixels` (as `index`), and all pixels that they touch, to one
    /// patch. Use it for the pixels of one polygon, which may be disconnected at narrow places.
    void join(uint16_t value, const std::vector<int64_t>& pixels);
    /// Returns the patch of every pixel, numbered from 0 in the order of their first pixels.
    std::vector<size_t> numbers() const;

  private:
    size_t root(size_t i) const;
    void unite(size_t i, size_t j);

    const std::vector<int64_t>& m_index;
    const std::vector<uint16_t>& m_value;
    std::vector<size_t> m_parent; ///< the first pixel of a patch is its own parent
};

/// Splits labelled pixels. `index`: line * samples + sample of every labelled pixel, ascending; `value`: its
/// class. Without a minimum distance, training pixels are drawn at random from the class and all others are
/// test pixels. With a minimum distance, the training pixels of a class are grown as compact patches around
/// drawn pixels. Test pixels that are too close to a training pixel (Euclidean distance between pixel
/// centres) are left out of both sets; scattered training pixels would leave no test pixel. The same seed
/// gives the same split on every machine. Throws Error that names the class and its number of pixels if a
/// class has fewer pixels than requested, or if no test pixel remains.
///
/// `patch`: patch of every pixel, as numbered by Patches; empty: pixels are drawn one by one. Otherwise whole
/// patches are drawn in random order until the class has at least the requested number of training pixels.
/// The last patch of a class with several patches is kept for the test; all pixels of a class with one patch
/// are training pixels. With a minimum distance, patches are then not grown.
Split split(const std::vector<int64_t>& index, const std::vector<uint16_t>& value, int64_t samples,
            int64_t lines, const std::vector<LabelClass>& classes, const Options& options,
            const std::vector<size_t>& patch = {});

/// Returns `count` splits in which each pixel (or patch) is tested once. Pixels are shuffled class by class
/// and dealt out, the largest patches first, each to the fold with the fewest pixels of the class, then of
/// all. Training pixels of a fold are drawn from all others by the shares of the options (all of them: a
/// fraction of 1), pixel by pixel or by whole patches, as in split(), except that a fold may take all of
/// them. Throws Error as split() does, and if there are fewer patches (or pixels) than folds.
std::vector<Split> folds(const std::vector<int64_t>& index, const std::vector<uint16_t>& value,
                         int64_t samples, int64_t lines, const std::vector<LabelClass>& classes,
                         const Options& options, int count, const std::vector<size_t>& patch = {});

/// Returns a fold (from 0 on) for each pixel, so that the pixels of a group are in one fold. Groups may
/// contain several classes. They are dealt out, the largest first and equal ones in the order of the seed,
/// each to the fold that then has the fewest pixels of its classes, relative to their sizes, and of all
/// pixels. There are at most as many folds as groups.
std::vector<int> folds_of_groups(const std::vector<uint16_t>& value, const std::vector<size_t>& group,
                                 int folds, uint64_t seed);

/// Parses an option value, "50", "150 at most" or "15:1,9,7" (the classes by value or by name, as in
/// listed_words()), and sets options.share or by_class. `fraction`: the numbers are fractions between 0 and 1
/// (-fraction) rather than counts (-n). Throws UsageError, also for a class that was named before. Names are
/// searched in `classes`.
void apply_share(const std::string& text, bool fraction, const std::vector<LabelClass>& classes,
                 Options& options);

/// Checks only the form, before any file is opened. Throws UsageError.
void check_share(const std::string& text, bool fraction);

} // namespace hsi::sample
