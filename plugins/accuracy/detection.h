// SPDX-License-Identifier: MIT
// Assesses scores of a detector with known targets: exact receiver operating characteristics and precision
// for any number of pixels. Only the distinct scores of targets are stored. Pd changes only at these scores.
// The background pixels between two of them therefore need to be counted, but not stored.
//
//   Pd = TP / P (recall), Pfa = FP / N, precision = TP / (TP + FP), for the pixels with score t or better
//   AUC = (pairs of a target and a background pixel in which the target's score is better
//          + half of the pairs with equal scores) / (P N)
//   average precision = sum of (rise of Pd) * precision over the distinct scores of targets, best first
//
// The AUC is that of Mann and Whitney: the area under the curve with ties joined by straight lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hsi::accuracy {

/// Counts at the distinct scores of targets, best first.
struct DetectionCurve {
    std::vector<double> threshold;
    std::vector<int64_t> targets, alarms; ///< pixels with this score or a better score
    std::vector<int64_t> better;          ///< background pixels with a better score
    std::vector<int64_t> objects;         ///< objects with a pixel of this score or a better score
    int64_t target_pixels = 0, background_pixels = 0, all_objects = 0;

    /// Return the area under the curve (AUC) and the average precision; NaN without targets or without
    /// background.
    double auc() const;
    double average_precision() const;
    /// Returns the index of the threshold with the greatest Pd among the thresholds with Pfa <= `rate`.
    /// Returns size() if already the first threshold has a greater Pfa.
    size_t at_rate(double rate) const;
    size_t size() const { return threshold.size(); }
    double pd(size_t k) const;
    double pfa(size_t k) const;
    double precision(size_t k) const;
};

/// Counts targets and background pixels in two passes. The first pass adds all targets and objects. seal()
/// ends it. The second pass adds the whole background. Scores must be finite; some functions also accept NaN.
class DetectionCounts {
  public:
    explicit DetectionCounts(bool small_is_best) : m_sign(small_is_best ? -1 : 1) {}
    void add_target(double score);
    /// Adds an object. `best` is the best score of its pixels, or NaN if none of them has a score. With NaN,
    /// the object counts in all_objects, but is never found.
    void add_object(double best);
    void seal();
    /// Adds the background pixels whose `use` is not 0. Pixels whose score is NaN are skipped.
    void add_background(const double* scores, const char* use, size_t count);
    DetectionCurve curve() const;

  private:
    void merge();

    double m_sign;             ///< 1, or -1 if small scores are best: larger stored scores are better
    std::vector<double> m_new; ///< scores of targets that are not yet in m_kept
    /// distinct scores of targets and the number of target pixels with each, best first
    std::vector<std::pair<double, int64_t>> m_kept;
    std::vector<double> m_objects; ///< best score of each object
    /// m_between: background pixels before each score of m_kept and after the last score. m_equal: background
    /// pixels with each score.
    std::vector<int64_t> m_between, m_equal;
};

/// Finds the objects of a class map, line by line. An object is a set of pixels of one class that are
/// connected by edges or corners.
class Objects {
  public:
    Objects(size_t samples, bool small_is_best) : m_samples(samples), m_sign(small_is_best ? -1 : 1) {}
    /// Adds the next line. classes: the target of each pixel; `none` marks pixels without a target. scores:
    /// the score of each pixel, NaN if it is missing.
    void add_line(const uint16_t* classes, uint16_t none, const double* scores);
    struct Object {
        uint16_t of = 0;
        double best = 0; ///< best score of the object's pixels; NaN if no pixel has a score
    };
    std::vector<Object> all() const;

  private:
    size_t root(size_t k) const;

    const size_t m_samples;
    const double m_sign;
    struct Part {
        size_t parent = 0;
        Object object;
    };
    mutable std::vector<Part> m_parts;
    std::vector<size_t> m_above; ///< per pixel of the previous line: 1 + its index in m_parts; 0: no target
};

} // namespace hsi::accuracy
