// SPDX-License-Identifier: MIT
// The inner loops of the MRF's ADMM, compiled for several instruction sets (Highway), and their FFT.
//
// What the ADMM of the paper's Algorithm 1 keeps. Several of its arrays follow from others:
//   D1' = (D1 - q + p)/(1 + mu),  V1 = p - mu D1, so V1 + D1 = p + (1 - mu) D1            -> D1
//   t = q - D2: V2 = max(t, 0), D2 = max(-t, 0), so V2 + D2 = |t|                           -> t
//   D3' = b, one number a pixel: b = (1 - sum q)/K + D3;  V3 + D3 = q + 2b - D3             -> q, D3, e = 2b
//   - D3 D5' = -projection of t5 = H V4 - D5 on the ball of the threshold, V5 + D5' = t5 + 2 D5' -> D5
#pragma once

#include <cstdint>
#include <vector>

namespace hsi::sahic {

/// Complex FFT of n = 16 m values, m without prime factors above 5, for four lines at once: re and im are
/// [n][4]. Self-sorting (Stockham), scale 1; backward by exchanging re and im.
struct FftPlan {
    struct Stage {
        int radix = 0;
        int64_t m = 0, s = 0;      ///< butterflies, values a butterfly's twiddle serves
        std::vector<float> re, im; ///< [m][radix - 1]
    };
    int64_t n = 0;
    std::vector<Stage> stages;
    explicit FftPlan(int64_t size);
    /// The smallest possible n that is at least `least`.
    static int64_t good_size(int64_t least);
};

/// Edges of one line of one class: t5, D5' and w = V5 + D5'.
struct EdgeRow {
    int64_t samples = 0;
    const float *v4 = nullptr, *v4_below = nullptr; ///< one sample beyond the last is read
    const float *dh_old = nullptr, *dv_old = nullptr;
    float *dh = nullptr, *dv = nullptr; ///< may be null: only w is wanted
    const float* threshold = nullptr;   ///< lambda a / mu
    /// 1 or 0 a sample: the difference exists, and is penalised.
    const float *h_exists = nullptr, *h_counts = nullptr, *v_exists = nullptr, *v_counts = nullptr;
    float *wh = nullptr, *wv = nullptr;
};

/// One line of one class: q and what follows from it.
struct PixelRow {
    int64_t samples = 0;
    const float *p = nullptr, *v4 = nullptr, *e = nullptr, *valid = nullptr;
    const float* fixed = nullptr; ///< index of the class or -1; null: no training pixel in this line
    float wanted = 0;             ///< index of this class
    float mu = 0;
    const float *wh = nullptr, *wv = nullptr,
                *wv_above = nullptr; ///< wh: one sample before the first is read
    float *q = nullptr, *d1 = nullptr, *t = nullptr, *d4 = nullptr;
    float* rhs = nullptr; ///< q - D4 + H'(V5 + D5)
    float* sum = nullptr; ///< q is added
};

struct MrfKernels {
    void (*edges_isotropic)(const EdgeRow& row);
    void (*edges_anisotropic)(const EdgeRow& row);
    void (*pixels)(const PixelRow& row);
    /// b, e, D3 of one line.
    void (*sums)(int64_t samples, const float* sum, float inverse_classes, float* d3, float* e);
    /// Four rows of n floats to [n][4] and back.
    void (*interleave)(const float* const rows[4], int64_t n, float* out);
    void (*deinterleave)(const float* in, int64_t n, float* const rows[4]);
    /// In place; other_re and other_im: scratch of the same size.
    void (*fft)(const FftPlan& plan, float* re, float* im, float* other_re, float* other_im);
    /// out = in + z before, and out = z_scaled (in + z after): state keeps in + z after.
    void (*causal)(int64_t count, const float* z, const float* before, const float* in, float* out);
    void (*anticausal)(int64_t count, const float* z, const float* gain, float* state, float* inout);
};

const MrfKernels& mrf_kernels();

} // namespace hsi::sahic
