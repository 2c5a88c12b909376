// SPDX-License-Identifier: MIT
// The confusion matrix of a class map against a reference, and the measures derived from it.
#pragma once

#include "core/label_class.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hsi::accuracy {

using Class = hsi::LabelClass; ///< Only its members value and name are used here.

/// A measure with its 95 % confidence interval, from `low` to `high`. All three are NaN if the measure is
/// undefined, such as a fraction whose denominator is 0.
struct Estimate {
    double value = 0, low = 0, high = 0;
};

struct ClassAccuracy {
    Class of;
    int64_t reference = 0, mapped = 0, correct = 0; ///< pixels
    Estimate producer;                              ///< correct / reference (recall)
    Estimate user;                                  ///< correct / mapped (precision)
    double f1 = 0; ///< 2 correct / (reference + mapped); NaN when both are zero
};

struct Result {
    std::vector<Class> classes;  ///< the class of each row and of the same column of the matrix
    std::vector<int64_t> matrix; ///< pixels, [reference class][map class]
    /// N, the number of assessed pixels: the sum of the matrix, plus the unclassified pixels if they count as
    /// errors
    int64_t pixels = 0;
    int64_t unclassified = 0; ///< pixels with a label in the reference, but without a class in the map
    int64_t unlabelled = 0;   ///< pixels without a label in the reference
    int64_t alarms = 0;       ///< unlabelled pixels with a class in the map
    int64_t masked = 0;       ///< pixels excluded by the mask
    bool unclassified_are_errors = false;
    std::vector<ClassAccuracy> by_class;
    Estimate overall; ///< overall accuracy, with Wilson's interval
    Estimate average; ///< mean of the producer's accuracies of classes that occur in the reference
    /// Cohen's kappa, with an interval from its large-sample standard error; NaN if the map or the reference
    /// has only one class
    Estimate kappa;
    int64_t at(size_t reference, size_t map) const { return matrix[reference * classes.size() + map]; }
};

/// The names of classes that occur in map and reference.
struct NamedPairs {
    bool by_name = false; ///< true if classes are matched by name
    size_t agreeing = 0;  ///< number of names that map and reference have in common
    /// Classes of map and reference with the same number and different names.
    std::vector<std::pair<Class, Class>> differing;
};

/// Counts the pixels of every pair of reference class and map class. The table of counts grows when a class
/// first occurs.
class Confusion {
  public:
    /// `map_classes` and `reference_classes`: the names in the files. result() matches the classes by name if
    /// three conditions hold. Upper and lower case are equal. Every class of the labelled pixels has a name
    /// in its file, no file uses a name for two of these classes, and at least one name occurs in both files.
    /// The files may then number the classes differently. Otherwise, classes are matched by value.
    /// `map_none`: the value of map pixels without a class. `reference_none`: the value of reference pixels
    /// without a label.
    Confusion(std::vector<Class> map_classes, std::vector<Class> reference_classes, uint16_t map_none = 0,
              uint16_t reference_none = 0)
        : m_map(std::move(map_classes)), m_reference(std::move(reference_classes)), m_map_none(map_none),
          m_reference_none(reference_none) {}
    /// Adds `count` pixels. Pixels whose mask is 0 only increase Result::masked; `mask` may be null. \throws
    /// Error if the map or the reference has more than 4096 classes.
    void add(const uint16_t* map, const uint16_t* reference, const uint16_t* mask, int64_t count);
    /// Returns the result. Throws Error if no labelled pixel has a class. `unclassified_are_errors`: labelled
    /// pixels without a class in the map lower the accuracies of their class; otherwise they are only
    /// counted.
    Result result(bool unclassified_are_errors) const;
    /// Returns true if result() matches classes by name and at least one of these classes has different
    /// values in map and reference.
    bool renumbered() const;
    /// Returns the names that agree and differ, among the classes of the counted pixels.
    NamedPairs named_pairs() const;

  private:
    struct Matching;
    Matching match() const;
    std::vector<Class> m_map, m_reference;
    uint16_t m_map_none, m_reference_none;
    std::vector<int64_t> m_pairs; ///< [compact reference][compact map], grown on demand
    std::vector<int32_t> m_map_slot, m_reference_slot;
    std::vector<int> m_map_values, m_reference_values;
    size_t m_pitch = 0;
    int64_t m_unlabelled = 0, m_alarms = 0, m_masked = 0;
};

/// Returns k / n with Wilson's 95 % confidence interval for a proportion.
Estimate wilson(int64_t k, int64_t n);

/// Mean and standard deviation (denominator n - 1) of a measure over the folds in which it is defined.
struct Spread {
    double mean = 0, deviation = 0; ///< NaN without folds; the deviation is NaN for one fold
    int folds = 0;
};

struct ClassSpread {
    Class of;
    Spread producer, user, f1;   ///< over the folds whose reference has the class
    int64_t least = 0, most = 0; ///< smallest and largest number of reference pixels of the class in one of
                                 ///< these folds
};

/// Several results together: the folds of a cross-validation, or maps of several seeds.
struct Summary {
    Spread overall, average, kappa;
    /// In order of class number. Classes of several folds are the same class if number and name are equal.
    std::vector<ClassSpread> by_class;
};

/// Gives all classes of the same name the same number: the number in the first result that contains the name.
/// A class without a name gets the name that its number has in other results. If two classes of a result have
/// the same name, the names are ambiguous, and all classes remain unchanged. Returns true if a number was
/// changed. Throws Error if the other results have several names for the number of a class without a name;
/// the message calls each result a `part`.
bool unite_classes(std::vector<Result>& folds, const std::string& part = "fold");

/// Adds the matrices and counts of all parts, and returns the result for their pixels together. All parts
/// must treat unclassified pixels in the same way. unite_classes() matches the classes first, and may throw
/// Error. Classes that then have equal numbers but different names get different numbers.
Result join(std::vector<Result> parts);

/// Returns the mean and standard deviation of those `values` that are not NaN.
Spread spread(const std::vector<double>& values);
Summary summarize(const std::vector<Result>& folds);

/// Returns a table of the folds and a table of the classes. Values are in per cent, except kappa.
std::string text(const std::vector<Result>& folds, const Summary& summary);
/// Returns CSV (RFC 4180) with one row per fold, then the rows "mean" and "standard_deviation". Columns are
/// the measures of all pixels, then producer's accuracy, user's accuracy and F1 of each class.
std::string csv(const std::vector<Result>& folds, const Summary& summary);

/// Returns the confusion matrix and its measures as text for users. Accuracies and F1 are in per cent; kappa
/// is a ratio.
std::string text(const Result& result);
/// Returns CSV (RFC 4180) with one row per class: its row of the confusion matrix, its numbers of reference
/// and map pixels, its accuracies with their intervals, and F1.
std::string csv(const Result& result);

} // namespace hsi::accuracy
