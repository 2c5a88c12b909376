// SPDX-License-Identifier: MIT
// The softmax of class probabilities and the inner loops of the MRF's ADMM along a line, compiled for several
// instruction sets (Highway).
//
// The ADMM of the paper's Algorithm 1 has these variables. The right column lists the arrays that are stored,
// from which the other variables follow; ' marks the next iteration:
//   D1' = (D1 - q + p)/(1 + mu),  V1 = p - mu D1, so V1 + D1 = p + (1 - mu) D1                    -> D1
//   t = q - D2: V2 = max(t, 0), D2 = max(-t, 0), so V2 + D2 = |t|                                   -> t
//   D3' = b, one number per pixel: b = (1 - sum q)/K + D3;  V3 + D3 = q + 2b - D3   -> q, D3, e = 2b - D3
//   t5 = H V4 - D5: D5' = -projection of t5 on the ball of the threshold, V5' = t5 + D5'            -> t5
//   D4' = D4 - q + V4, and V4 solves (I + H'H) V4 = q - D4 + H'(V5 + D5), so
//   D4' = H'(V5 + D5 - H V4) = H'(V5 - t5), with the new t5: nothing is stored.
// The next right side is q' - D4' + H'(V5' + D5') = q' + H'(2 V5' - V5). D5 cancels in this form. This avoids
// rounding errors, since D5 is many times as large as the other terms.
#pragma once

#include <cstdint>

namespace hsi::sahic {

/// The differences between neighbouring pixels (edges) in one line of one class. A kernel computes t5, and
/// the edges' terms of D4' and of the right side.
struct EdgeRow {
    int64_t samples = 0;
    const float *v4 = nullptr, *v4_below = nullptr; ///< the kernel also reads the sample after the last
    const float *th_old = nullptr, *tv_old = nullptr;
    float *th = nullptr, *tv = nullptr; ///< may be null if only u and s are requested
    const float* threshold = nullptr;   ///< lambda a / mu
    /// 1 for each sample whose difference is penalised, otherwise 0. If both are null, all differences are
    /// penalised. At the border of the scene, the values of `v4` beyond the scene make the difference zero.
    const float *h_counts = nullptr, *v_counts = nullptr;
    float *uh = nullptr, *uv = nullptr; ///< V5 - t5'
    float *sh = nullptr, *sv = nullptr; ///< 2 V5' - V5
};

/// One line of one class: q and the arrays that are computed from it.
struct SiteRow {
    int64_t samples = 0;
    const float *p = nullptr, *v4 = nullptr, *e = nullptr;
    const float* valid = nullptr; ///< 1 for each valid sample, otherwise 0; null: all samples are valid
    /// Index of the class of each training pixel, -1 for other pixels; null: the line has no training pixel.
    const float* fixed = nullptr;
    float wanted = 0; ///< index of the class that is computed
    float mu = 0;
    /// Terms from EdgeRow, of this line and of the line above. uh and sh are also read one sample before the
    /// first.
    const float *uh = nullptr, *uv = nullptr, *uv_above = nullptr;
    const float *sh = nullptr, *sv = nullptr, *sv_above = nullptr;
    float *q = nullptr, *d1 = nullptr, *t = nullptr;
    float* rhs = nullptr;
    float* sum = nullptr; ///< the kernel adds q
};

struct MrfKernels {
    void (*edges_isotropic)(const EdgeRow& row);
    void (*edges_anisotropic)(const EdgeRow& row);
    void (*pixels)(const SiteRow& row);
    /// Computes b, e and D3 of one line.
    void (*sums)(int64_t samples, const float* sum, float inverse_classes, float* d3, float* e);
};

const MrfKernels& mrf_kernels();

/// Converts logits [output][width] to probabilities [output + 1][width]. The last class has logit 0. `width`
/// is the width of math::RbfKernels, or another multiple of the lanes of a vector.
void softmax(int outputs, int width, const double* logits, double* probabilities);

} // namespace hsi::sahic
