// SPDX-License-Identifier: MIT
// Splits labelled pixels at random into a training and a test set, or into folds, class by class. It draws
// single pixels or whole patches of pixels.
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
    int64_t count = -1;   ///< number of pixels; -1: use fraction
    double fraction = 0;  ///< fraction of the class, rounded to the nearest integer, at least 1
    bool at_most = false; ///< true: use fewer pixels if the class has fewer
};

struct Options {
    Share share{50, 0};            ///< share of every class that is not in by_class
    std::map<int, Share> by_class; ///< share by class value
    uint64_t seed = 1;
    /// Distance in pixels; every test pixel is at least this far from all training pixels.
    double min_distance = 0;
    int patches = 1; ///< with min_distance: number of compact training patches per class
};

using hsi::LabelClass; ///< LabelClass::pixels counts the pixels with the label.

enum class Part : uint8_t { left_out = 0, train = 1, test = 2 };

struct Split {
    std::vector<Part> part;             ///< one value per labelled pixel, in the given order
    std::map<int, int64_t> train, test; ///< number of pixels per class
    int64_t left_out = 0;               ///< number of pixels that are too close to a training pixel
    /// For whole patches: the number of training pixels that a class lacks, because its last patch is kept
    /// for the test set.
    std::map<int, int64_t> missing;
};

/// The patches of labelled pixels. A patch is a set of connected pixels of a class; pixels that share a
/// corner are connected.
class Patches {
  public:
    /// `index` has line * samples + sample of each pixel in rising order, `value` its class. Both must
    /// outlive this object.
    Patches(const std::vector<int64_t>& index, const std::vector<uint16_t>& value, int64_t samples);
    /// Joins all patches that contain a pixel of `pixels` with the label `value` into one patch. Use this
    /// function for the pixels of one polygon, which may be disconnected where it is narrow. `pixels` has the
    /// form of `index`.
    void join(uint16_t value, const std::vector<int64_t>& pixels);
    /// Returns the patch of every pixel, numbered from 0 in the order of their first pixels.
    std::vector<size_t> numbers() const;

  private:
    size_t root(size_t i) const;
    void unite(size_t i, size_t j);

    const std::vector<int64_t>& m_index;
    const std::vector<uint16_t>& m_value;
    std::vector<size_t> m_parent; ///< parent of each pixel; the first pixel of a patch is its own parent
};

/// Returns 1 for each pixel to keep: of each patch the `most` pixels nearest to its centre (the mean of the
/// positions of its pixels), of equally near ones the first. `index` and `patch` are as in split().
std::vector<char> nearest_to_centres(const std::vector<int64_t>& index, int64_t samples,
                                     const std::vector<size_t>& patch, int64_t most);

/// Splits labelled pixels. `index` has line * samples + sample of every labelled pixel in rising order;
/// `value` has its class. Without a minimum distance, training pixels are drawn at random from the class, and
/// all others are test pixels. With a minimum distance, the training pixels of a class are compact patches
/// that grow around drawn pixels, because scattered training pixels would leave no test pixel. Test pixels
/// that are too close to a training pixel (Euclidean distance between pixel centres) are left out of both
/// sets. The same seed gives the same split on every computer. Throws an Error that names the class and its
/// number of pixels if a class has fewer pixels than requested, or if no test pixel remains.
///
/// `patch` has the patch of every pixel, as numbered by Patches. If it is empty, pixels are drawn one by one.
/// Otherwise, whole patches are drawn in random order until the class has at least the requested number of
/// training pixels. If a class has several patches, its last patch is kept for the test set. If a class has
/// one patch, all its pixels are training pixels. With a minimum distance, patches do not grow in this case.
Split split(const std::vector<int64_t>& index, const std::vector<uint16_t>& value, int64_t samples,
            int64_t lines, const std::vector<LabelClass>& classes, const Options& options,
            const std::vector<size_t>& patch = {});

/// Returns `count` splits (folds). Each pixel, or patch, is in the test set of exactly one of them. Pixels
/// are shuffled class by class and distributed, the largest patches first. Each patch goes to the fold with
/// the fewest pixels of the class; among equal folds, to the fold with the fewest pixels. The training pixels
/// of a fold are drawn from all pixels outside its test set, by the shares of the options; a fraction of 1
/// uses all of them. They are drawn pixel by pixel or by whole patches, as in split(), but no patch is kept
/// for a test set. Throws Error like split(), and if all classes together have fewer patches (or pixels) than
/// there are folds.
std::vector<Split> folds(const std::vector<int64_t>& index, const std::vector<uint16_t>& value,
                         int64_t samples, int64_t lines, const std::vector<LabelClass>& classes,
                         const Options& options, int count, const std::vector<size_t>& patch = {});

/// Returns the fold of each pixel, counted from 0, so that all pixels of a group are in one fold. Groups may
/// contain several classes. The largest groups are distributed first; groups of equal size are in a random
/// order that depends on the seed. Each group goes to the fold that has the fewest pixels of the group's
/// classes relative to the sizes of the classes; among equal folds, to the fold with the fewest pixels. There
/// are at most as many folds as groups.
std::vector<int> folds_of_groups(const std::vector<uint16_t>& value, const std::vector<size_t>& group,
                                 int folds, uint64_t seed);

/// Parses an option value such as "50", "150 at most" or "15:1,9,7", and sets options.share or by_class.
/// Classes are given by value or by name, as in listed_words(); names are searched in `classes`. If
/// `fraction` is true, the numbers are fractions between 0 and 1 (-fraction), otherwise counts (-n). Throws
/// UsageError if the text is invalid or gives a class twice.
void apply_share(const std::string& text, bool fraction, const std::vector<LabelClass>& classes,
                 Options& options);

/// Checks only the syntax of the text, so that it can be called before any file is opened. Throws UsageError
/// if the text is invalid.
void check_share(const std::string& text, bool fraction);

} // namespace hsi::sample
