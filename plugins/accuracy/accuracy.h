// SPDX-License-Identifier: MIT
// Confusion matrix of a class map against a reference, and the measures derived from it.
#pragma once

#include "core/label_class.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hsi::accuracy {

using Class = hsi::LabelClass; ///< value and name count

/// A share with its 95 % confidence interval; all NaN when there is nothing to divide by.
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
    std::vector<Class> classes;  ///< of rows and columns of the matrix
    std::vector<int64_t> matrix; ///< [reference class][map class], pixels
    int64_t pixels = 0; ///< judged, N: the sum of the matrix and, where they are errors, those unclassified
    int64_t unclassified = 0; ///< labelled in the reference, no class in the map
    int64_t unlabelled = 0;   ///< no label in the reference
    int64_t alarms = 0;       ///< of these, with a class in the map
    int64_t masked = 0;       ///< left out by the mask
    bool unclassified_are_errors = false;
    std::vector<ClassAccuracy> by_class;
    Estimate overall; ///< Wilson's interval
    Estimate average; ///< mean of the producer's accuracies of classes that occur in the reference
    Estimate kappa; ///< Cohen's, with its large-sample standard error; NaN where one side has one class alone
    int64_t at(size_t reference, size_t map) const { return matrix[reference * classes.size() + map]; }
};

/// Counts pairs; classes are added as they turn up.
class Confusion {
  public:
    /// `map_classes` and `reference_classes`: the names in the files. When every class that occurs on both
    /// sides has a name, classes are matched by name (map and reference may number them differently); else by
    /// value. `map_none` and `reference_none`: the values of pixels without a class and a label.
    Confusion(std::vector<Class> map_classes, std::vector<Class> reference_classes, uint16_t map_none = 0,
              uint16_t reference_none = 0)
        : m_map(std::move(map_classes)), m_reference(std::move(reference_classes)), m_map_none(map_none),
          m_reference_none(reference_none) {}
    /// `count` pixels. `mask` may be null; 0: leave the pixel out.
    void add(const uint16_t* map, const uint16_t* reference, const uint16_t* mask, int64_t count);
    /// Throws Error when not one labelled pixel has a class. `unclassified_are_errors`: labelled pixels
    /// without a class in the map lower the accuracies of their class; otherwise they are only counted.
    Result result(bool unclassified_are_errors) const;
    /// True when result() matches by name and some class has another value in the other file.
    bool renumbered() const;

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

/// Wilson's 95 % interval for k of n.
Estimate wilson(int64_t k, int64_t n);

/// Mean and standard deviation (n - 1 in the denominator) of a figure over the folds that have it.
struct Spread {
    double mean = 0, deviation = 0; ///< NaN without any; the deviation NaN with one alone
    int folds = 0;
};

struct ClassSpread {
    Class of;
    Spread producer, user, f1;   ///< over the folds whose reference has the class
    int64_t least = 0, most = 0; ///< reference pixels of the class in one of these folds
};

/// Several results side by side: the folds of a cross-validation, or maps of several seeds.
struct Summary {
    Spread overall, average, kappa;
    std::vector<ClassSpread> by_class; ///< classes with the same number and name are one; by number
};

/// Merges classes of several results that have one name: they get the number of the first result that has it,
/// and a class without a name gets the one that its number has in others. If a result has a name twice, names
/// are ambiguous, and all stay as they are. Returns true when numbers were changed. Throws Error, calling a
/// result `part`, when a class without a name might be several.
bool unite_classes(std::vector<Result>& folds, const std::string& part = "fold");

/// The result over the pixels of all parts, which have judged unclassified pixels alike: the matrices are
/// added. Classes are one as unite_classes() makes them. Throws Error as that.
Result join(std::vector<Result> parts);

/// `values`: NaN for missing ones.
Spread spread(const std::vector<double>& values);
Summary summarize(const std::vector<Result>& folds);

/// A table of the folds, and one of the classes; numbers in percent but kappa.
std::string text(const std::vector<Result>& folds, const Summary& summary);
/// A row a fold, then the rows "mean" and "standard_deviation" (RFC 4180): the figures of all pixels, then
/// producer's and user's accuracy and F1 of each class.
std::string csv(const std::vector<Result>& folds, const Summary& summary);

/// A table for people; numbers in percent but kappa, which is a ratio.
std::string text(const Result& result);
/// The confusion matrix with margins and accuracies as CSV (RFC 4180), class names quoted where needed.
std::string csv(const Result& result);

} // namespace hsi::accuracy
