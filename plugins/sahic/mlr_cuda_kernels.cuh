// SPDX-License-Identifier: MIT
// Class probabilities, spatial weights, and the steps of LORSAL's training, on one device. Training and
// probabilities are in double precision, as on the CPU, because weights reach 1e4.
#pragma once

#include "cuda/check.h"

#include <cstdint>

namespace hsi::sahic::gpu {

// ---- Class probabilities --------------------------------------------------------------------------------

/// The sizes of the matrix products in which pixels are processed. They depend only on the model. The last
/// product of a tile is filled up with zeros, so that results do not depend on the tiling.
struct Products {
    int pixels = 0;   ///< pixels of one product, a multiple of 256
    int parts = 0;    ///< number of threads that share the anchors for one pixel
    int features = 0; ///< number of features, padded to a multiple of 32 bytes, as the matrix units require
    int pitch = 0;    ///< number of weights per anchor, including padding
    Products() = default;
    Products(int features, int64_t anchors, int outputs);
};

/// Sets valid[i] to 1 if all values of pixel i are finite and at least one is not zero, otherwise to 0. `raw`
/// is [band][pixel].
void launch_valid(const float* raw, int64_t pixels, int bands, unsigned char* valid, cudaStream_t stream);

/// The work of launch_scale(): scales the pixels [first, first + pixels) of the core to x, [feature][pixel],
/// and computes |x|^2. Invalid pixels and pixels after the core's last pixel become zero.
struct ScaleWork {
    const float* raw = nullptr; ///< [band][window line][window sample]
    const unsigned char* valid = nullptr;
    int64_t window_samples = 0, window_pixels = 0, core_samples = 0, core_pixels = 0, origin = 0, first = 0;
    int features = 0, padded_features = 0, pixels = 0;
    double scale = 1;
    double *x = nullptr, *x2 = nullptr;
};
void launch_scale(const ScaleWork& work, cudaStream_t stream);

struct LogitsWork {
    /// -2 x a for each pixel x and anchor a, [anchor][pixel]. If the outputs are computed in two sweeps over
    /// the anchors, the first sweep replaces it by the kernel values.
    double* product = nullptr;
    const double *x2 = nullptr, *a2 = nullptr;
    const double* weights = nullptr; ///< [anchor][pitch]
    int64_t anchors = 0;
    int pixels = 0, pitch = 0, outputs = 0, parts = 0;
    double gamma = 1;
    double* sums = nullptr; ///< [output][part][pixel]
};
void launch_logits(const LogitsWork& work, cudaStream_t stream);

struct SoftmaxWork {
    double* sums = nullptr;           ///< sums of launch_logits(); overwritten
    const double* constant = nullptr; ///< constant of each output
    const unsigned char* valid = nullptr;
    const float* class_value = nullptr;
    int64_t window_samples = 0, core_samples = 0, core_pixels = 0, origin = 0, first = 0;
    int pixels = 0, outputs = 0, parts = 0;
    float *map = nullptr, *probabilities = nullptr, *confidence = nullptr; ///< [..][core pixel]; may be null
    int* counts = nullptr; ///< number of pixels of each class, then of invalid pixels
};
void launch_softmax(const SoftmaxWork& work, cudaStream_t stream);

/// The work of launch_weight(): computes the weight a = 1 / (1 + |forward differences| / scale) of each pixel
/// of the core (spatial_weights.h), bitwise equal to the CPU's.
struct WeightWork {
    const float* raw = nullptr;
    const unsigned char* valid = nullptr;
    int bands = 0;
    int64_t window_samples = 0, window_pixels = 0, core_samples = 0, core_lines = 0, origin = 0;
    int64_t core_x = 0, core_y = 0, samples = 0, lines = 0; ///< position of the core; size of the scene
    const float *first_line = nullptr, *first_sample = nullptr;
    const unsigned char *first_line_valid = nullptr, *first_sample_valid = nullptr;
    double scale = 1;
    float* out = nullptr;
};
void launch_weight(const WeightWork& work, cudaStream_t stream);

// ---- LORSAL ----------------------------------------------------------------------------------------------

/// Converts k, which has the inner products u_i . u_j in both triangles, to exp(-gamma |u_i - u_j|^2).
/// `squares` has |u_i|^2. The result is exactly symmetric.
void launch_kernel_matrix(double* k, const double* squares, int64_t samples, double gamma,
                          cudaStream_t stream);
/// Sets the first row and column of r = H H' (d x d, d = samples + 1), which belong to the constant. They are
/// the number of samples and the sums of k's columns.
void launch_border(const double* k, int64_t samples, double* r, cudaStream_t stream);
/// The work of launch_residual(): adds the constants of w to z, [output][sample], which has K w without them.
/// Then replaces these logits by P - Y: the probability of each output, minus 1 for the output that is the
/// sample's class. `losses` receives -log likelihood of each sample.
struct ResidualWork {
    int64_t samples = 0;
    int outputs = 0;
    const int* label = nullptr;
    const double* w = nullptr; ///< [output][1 + sample]
    double *z = nullptr, *losses = nullptr;
};
void launch_residual(const ResidualWork& work, cudaStream_t stream);
/// Computes the right side of LORSAL's linear system, beta (v + multiplier) - g, where g = H r is the
/// gradient and r has the residuals P - Y. `g_to_rhs` has g except for its constants, which are computed here
/// as sums of r over the samples; the result replaces it.
void launch_right_side(int64_t samples, int outputs, double beta, const double* v, const double* multiplier,
                       const double* r, double* g_to_rhs, cudaStream_t stream);
/// Solves LORSAL's linear system in the basis of the eigenvectors of H H', in which it separates. For each
/// eigenvalue s, the equation is (s B + beta I) y = next + s B turned, where B = 1/2 (I - 1 1'/K) for K
/// classes. `turned` has the previous weights; y replaces them.
void launch_shifted(int64_t d, int outputs, double beta, const double* values, const double* next,
                    double* turned, cudaStream_t stream);
/// Computes v = soft(w - m, threshold), where m is `multiplier` and soft() moves values towards 0 by at most
/// the threshold. Then sets m to (v - (w - m)) / growth, for a penalty that grows by this factor.
void launch_soft(int64_t count, double threshold, double growth, const double* w, double* v,
                 double* multiplier, cudaStream_t stream);
/// Computes the objective: out = sum of losses + lambda |v|_1. The order of additions is fixed.
void launch_objective(const double* losses, int64_t samples, const double* v, int64_t count, double lambda,
                      double* out, cudaStream_t stream);

} // namespace hsi::sahic::gpu
