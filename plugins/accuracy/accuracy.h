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

/// A fraction with its 95 % confidence interval; all NaN if the denominator is 0.
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

/// Counts pairs of classes; classes are added when they first occur.
class Confusion {
  public:
    /// `map_classes` and `reference_classes`: the names in the files. If every class that occurs on both
    /// sides has a name, classes are matched by name (map and reference may number them differently),
    /// otherwise by value. `map_none` and `reference_none`: the values of pixels without a class or a label.
    Confusion(std::vector<Class> map_classes, std::vector<Class> reference_classes, uint16_t map_none = 0,
              uint16_t reference_none = 0)
        : m_map(std::move(map_classes)), m_reference(std::move(reference_classes)), m_map_none(map_none),
          m_reference_none(reference_none) {}
    /// Adds `count` pixels. Pixels whose mask is 0 are excluded; `mask` may be null.
    void add(const uint16_t* map, const uint16_t* reference, const uint16_t* mask, int64_t count);
    /// Returns the result. Throws Error if no labelled pixel has a class. `unclassified_are_errors`: labelled
    /// pixels without a class in the map lower the accuracies of their class; otherwise they are only
    /// counted.
    Result result(bool unclassified_are_errors) const;
    /// Returns true if result() matches classes by name, and a class has different values in map and
    /// reference.
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

/// Returns Wilson's 95 % interval for k of n.
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

/// Gives classes of several results with the same name the same number: that of the first result that has the
/// name. A class without a name gets the name that its number has in other results. If a result has a name
/// twice, names are ambiguous, and all classes are unchanged. Returns true if numbers were changed. Throws
/// Error if a class without a name could be several classes; the message calls a result `part`.
bool unite_classes(std::vector<Result>& folds, const std::string& part = "fold");

/// Returns the result over the pixels of all parts: adds the matrices. All parts must treat unclassified
/// pixels in the same way. Classes are matched as by unite_classes(). Throws Error as unite_classes() does.
Result join(std::vector<Result> parts);

/// Returns the mean and standard deviation of `values`, in which NaN marks a missing value.
Spread spread(const std::vector<double>& values);
Summary summarize(const std::vector<Result>& folds);

/// Returns a table of the folds and a table of the classes. Values are in per cent, except kappa.
std::string text(const std::vector<Result>& folds, const Summary& summary);
/// Returns CSV (RFC 4180) with one row per fold, then the rows "mean" and "standard_deviation". Columns are
/// the measures of all pixels, then producer's accuracy, user's accuracy and F1 of each class.
std::string csv(const std::vector<Result>& folds, const Summary& summary);

/// Returns a table for users. Values are in per cent, except kappa, which is a ratio.
std::string text(const Result& result);
/// Returns the confusion matrix with margins and accuracies as CSV (RFC 4180), with class names in quotes if
/// needed.
std::string csv(const Result& result);

} // namespace hsi::accuracy
