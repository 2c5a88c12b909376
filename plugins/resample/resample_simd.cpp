// SPDX-License-Identifier: MIT
#include "resample/resample_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "resample/resample_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::resample {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void add_magnitudes(const float* const* rows, size_t inputs, int64_t count, double* HWY_RESTRICT magnitude) {
    const hn::ScalableTag<double> dd;
    const hn::Rebind<float, decltype(dd)> dh;
    const auto lanes = static_cast<int64_t>(hn::Lanes(dd));
    for (int64_t i = 0; i < count; i += 2 * lanes) {
        auto low = hn::Zero(dd), high = hn::Zero(dd);
        for (size_t b = 0; b < inputs; ++b) {
            low = hn::Add(low, hn::PromoteTo(dd, hn::Abs(hn::LoadU(dh, rows[b] + i))));
            high = hn::Add(high, hn::PromoteTo(dd, hn::Abs(hn::LoadU(dh, rows[b] + i + lanes))));
        }
        hn::StoreU(low, dd, magnitude + i);
        hn::StoreU(high, dd, magnitude + i + lanes);
    }
}

void add_products(const float* const* rows, const size_t* sources, const double* weights, size_t terms,
                  int64_t count, float* HWY_RESTRICT out) {
    const hn::ScalableTag<double> dd;
    const hn::Rebind<float, decltype(dd)> dh;
    const auto lanes = static_cast<int64_t>(hn::Lanes(dd));
    for (int64_t i = 0; i < count; i += 2 * lanes) {
        auto low = hn::Zero(dd), high = hn::Zero(dd);
        for (size_t k = 0; k < terms; ++k) {
            const float* const row = rows[sources[k]] + i;
            const auto w = hn::Set(dd, weights[k]);
            low = hn::MulAdd(w, hn::PromoteTo(dd, hn::LoadU(dh, row)), low);
            high = hn::MulAdd(w, hn::PromoteTo(dd, hn::LoadU(dh, row + lanes)), high);
        }
        hn::StoreU(hn::DemoteTo(dh, low), dh, out + i);
        hn::StoreU(hn::DemoteTo(dh, high), dh, out + i + lanes);
    }
}

const char* target() { return hwy::TargetName(HWY_TARGET); }

} // namespace HWY_NAMESPACE
} // namespace hsi::resample
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::resample {
namespace {
HWY_EXPORT(add_magnitudes);
HWY_EXPORT(add_products);
HWY_EXPORT(target);
} // namespace

const SimdKernels& simd_kernels() {
    static const SimdKernels kernels{
        [](const float* const* rows, size_t inputs, int64_t count, double* magnitude) {
            HWY_DYNAMIC_DISPATCH(add_magnitudes)(rows, inputs, count, magnitude);
        },
        [](const float* const* rows, const size_t* sources, const double* weights, size_t terms,
           int64_t count, float* out) {
            HWY_DYNAMIC_DISPATCH(add_products)(rows, sources, weights, terms, count, out);
        },
        HWY_DYNAMIC_DISPATCH(target)()};
    return kernels;
}

} // namespace hsi::resample
#endif
