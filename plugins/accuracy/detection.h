// SPDX-License-Identifier: MIT
// Scores of a detector assessed against known targets: exact receiver operating characteristics and precision
// of any number of pixels. Only the distinct scores of targets are kept: between two of them the background
// changes no detection, so counting it there loses nothing.
//
//   Pd = TP / P (recall), Pfa = FP / N, precision = TP / (TP + FP) of the pixels with score t or a better one
//   AUC = (pairs of target and background in the right order + half of the equal ones) / (P N)
//   average precision = sum over the distinct scores, best first, of (rise of Pd) * precision
//
// The AUC is Mann and Whitney's, which is the area under the curve with ties joined by straight lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hsi::accuracy {

/// Counts at the distinct scores of targets, best first.
struct DetectionCurve {
    std::vector<double> threshold;
    std::vector<int64_t> targets, alarms; ///< pixels with this score or a better one
    std::vector<int64_t> better;          ///< background pixels with a better score alone
    std::vector<int64_t> objects;         ///< with one pixel of this score or a better one
    int64_t target_pixels = 0, background_pixels = 0, all_objects = 0;

    double auc() const; ///< NaN without targets or background, as the next one
    double average_precision() const;
    /// The index of the threshold with the greatest Pd among those with Pfa up to `rate`; size() if the best
    /// target has more false alarms.
    size_t at_rate(double rate) const;
    size_t size() const { return threshold.size(); }
    double pd(size_t k) const;
    double pfa(size_t k) const;
    double precision(size_t k) const;
};

/// Two passes: all targets, seal(), all of the background. Scores are finite, or NaN where it says so.
class DetectionCounts {
  public:
    explicit DetectionCounts(bool small_is_best) : m_sign(small_is_best ? -1 : 1) {}
    void add_target(double score);
    void add_object(double best); ///< NaN: none of its pixels has a score, it is never found
    void seal();
    /// Where `use` is not 0 and there is a score.
    void add_background(const double* scores, const char* use, size_t count);
    DetectionCurve curve() const;

  private:
    void merge();

    double m_sign;                                  ///< larger is better in kept scores
    std::vector<double> m_new;                      ///< scores that m_kept lacks
    std::vector<std::pair<double, int64_t>> m_kept; ///< distinct scores and their pixels, best first
    std::vector<double> m_objects;
    std::vector<int64_t> m_between, m_equal; ///< background before each of m_kept and behind the last; and at
};

/// Connected pixels of one class (8 neighbours), line by line.
class Objects {
  public:
    Objects(size_t samples, bool small_is_best) : m_samples(samples), m_sign(small_is_best ? -1 : 1) {}
    /// classes: `none` without a target. scores: NaN for missing values.
    void add_line(const uint16_t* classes, uint16_t none, const double* scores);
    struct Object {
        uint16_t of = 0;
        double best = 0; ///< NaN: none of its pixels has a score
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
    std::vector<size_t> m_above; ///< part of each pixel of the line before, from 1 on; 0: none
};

} // namespace hsi::accuracy
