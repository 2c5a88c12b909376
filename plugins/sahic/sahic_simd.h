// SPDX-License-Identifier: MIT
// The softmax of class probabilities and the inner loops of the MRF's ADMM along a line, compiled for several
// instruction sets (Highway).
//
// Stored state of the ADMM of the paper's Algorithm 1. The right column lists the stored arrays; the others
// follow from them:
//   D1' = (D1 - q + p)/(1 + mu),  V1 = p - mu D1, so V1 + D1 = p + (1 - mu) D1                    -> D1
//   t = q - D2: V2 = max(t, 0), D2 = max(-t, 0), so V2 + D2 = |t|                                   -> t
//   D3' = b, one number per pixel: b = (1 - sum q)/K + D3;  V3 + D3 = q + 2b - D3   -> q, D3, e = 2b - D3
//   t5 = H V4 - D5: D5' = -projection of t5 on the ball of the threshold, V5' = t5 + D5'            -> t5
//   D4' = D4 - q + V4, and V4 solves (I + H'H) V4 = q - D4 + H'(V5 + D5), so
//   D4' = H'(V5 + D5 - H V4) = H'(V5 - t5), with the new t5: nothing is stored.
// The next right side is q' - D4' + H'(V5' + D5') = q' + H'(2 V5' - V5). D5, which is many times as large,
// cancels.
#pragma once

#include <cstdint>

namespace hsi::sahic {

/// The edges of one line of one class: t5, and the terms of D4' and the right side.
struct EdgeRow {
    int64_t samples = 0;
    const float *v4 = nullptr, *v4_below = nullptr; ///< one sample after the last is read
    const float *th_old = nullptr, *tv_old = nullptr;
    float *th = nullptr, *tv = nullptr; ///< may be null: only u and s are requested
    const float* threshold = nullptr;   ///< lambda a / mu
    /// 1 or 0 per sample: the difference is penalised; both null: all are. A difference that leaves the scene
    /// becomes zero by the values of `v4` beyond the scene.
    const float *h_counts = nullptr, *v_counts = nullptr;
    float *uh = nullptr, *uv = nullptr; ///< V5 - t5'
    float *sh = nullptr, *sv = nullptr; ///< 2 V5' - V5
};

/// One line of one class: q and the arrays that follow from it.
struct SiteRow {
    int64_t samples = 0;
    const float *p = nullptr, *v4 = nullptr, *e = nullptr;
    const float* valid = nullptr; ///< 1 or 0 per sample; null: all are valid
    const float* fixed = nullptr; ///< index of the class or -1; null: no training pixel in this line
    float wanted = 0;             ///< index of this class
    float mu = 0;
    /// The line and the one above; uh and sh are read from one sample before the first.
    const float *uh = nullptr, *uv = nullptr, *uv_above = nullptr;
    const float *sh = nullptr, *sv = nullptr, *sv_above = nullptr;
    float *q = nullptr, *d1 = nullptr, *t = nullptr;
    float* rhs = nullptr;
    float* sum = nullptr; ///< q is added
};

struct MrfKernels {
    void (*edges_isotropic)(const EdgeRow& row);
    void (*edges_anisotropic)(const EdgeRow& row);
    void (*pixels)(const SiteRow& row);
    /// Computes b, e, D3 of one line.
    void (*sums)(int64_t samples, const float* sum, float inverse_classes, float* d3, float* e);
};

const MrfKernels& mrf_kernels();

/// Converts logits [output][width] to probabilities [output + 1][width]; the last class has logit 0. width:
/// as in math::RbfKernels, or another multiple of a vector's lanes.
void softmax(int outputs, int width, const double* logits, double* probabilities);

} // namespace hsi::sahic
