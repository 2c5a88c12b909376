// SPDX-License-Identifier: MIT
// Openings and closings by reconstruction.
#include "profile/max_tree.h"

#include "core/cancel_scope.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace hsi::profile {
namespace {

constexpr size_t steps_at_once = 65536; ///< number of steps between two checks for cancellation
constexpr float no_bound = std::numeric_limits<float>::infinity();

/// Sets out[x] to the minimum of in[x - half .. x + half]. `work` holds the line with infinities on both
/// sides.
void line_minimum(const float* in, int64_t samples, int64_t half, std::vector<float>& work, float* out) {
    const int64_t length = 2 * half + 1, padded = samples + 2 * half;
    work.assign(static_cast<size_t>(padded), no_bound);
    std::copy_n(in, samples, work.data() + half);
    float* v = work.data();
    int64_t held = 1; // v[i] is the minimum of `held` values that start at index i
    for (; 2 * held <= length; held *= 2)
        for (int64_t i = 0; i + held < padded; ++i)
            v[i] = std::min(v[i], v[i + held]);
    for (int64_t x = 0; x < samples; ++x)
        out[x] = std::min(v[x], v[x + length - held]);
}

/// The neighbours that precede a pixel in raster order (sign -1) or follow it (sign 1).
class Half {
  public:
    Half(int64_t lines, int64_t samples, bool eight, int sign)
        : m_lines(lines), m_samples(samples), m_eight(eight), m_sign(sign) {}
    template <class Visit>
    void visit(int64_t y, int64_t x, Visit v) const {
        const int64_t at = y * m_samples + x, beside = x + m_sign, over = y + m_sign;
        if (beside >= 0 && beside < m_samples) v(static_cast<size_t>(at + m_sign));
        if (over < 0 || over >= m_lines) return;
        const int64_t there = at + m_sign * m_samples;
        v(static_cast<size_t>(there));
        if (!m_eight) return;
        if (x > 0) v(static_cast<size_t>(there - 1));
        if (x + 1 < m_samples) v(static_cast<size_t>(there + 1));
    }

  private:
    int64_t m_lines, m_samples;
    bool m_eight;
    int m_sign;
};

} // namespace

std::vector<float> erode(const std::vector<float>& plane, int64_t lines, int64_t samples, int radius) {
    std::vector<float> out(plane.size(), no_bound), work, least(static_cast<size_t>(samples));
    for (int64_t y = 0; y < lines; ++y) {
        check_cancelled();
        int64_t made = -1; // half-width for which `least` was computed
        for (int64_t dy = 0; dy <= radius; ++dy) {
            auto half =
                static_cast<int64_t>(std::sqrt(static_cast<double>(int64_t{radius} * radius - dy * dy)));
            half = std::min(half, samples);
            if (half != made) line_minimum(plane.data() + y * samples, samples, half, work, least.data());
            made = half;
            for (const int64_t to : {y - dy, y + dy}) {
                if (to < 0 || to >= lines) continue;
                float* row = out.data() + to * samples;
                for (int64_t x = 0; x < samples; ++x)
                    row[x] = std::min(row[x], least[static_cast<size_t>(x)]);
            }
        }
    }
    return out;
}

void reconstruct(std::vector<float>& marker, const std::vector<float>& mask, int64_t lines, int64_t samples,
                 bool eight) {
    const Half before(lines, samples, eight, -1), after(lines, samples, eight, 1);
    const auto scan = [&](const Half& half, int64_t y, int64_t x, size_t p) {
        float greatest = marker[p];
        half.visit(y, x, [&](size_t q) { greatest = std::max(greatest, marker[q]); });
        marker[p] = std::min(greatest, mask[p]);
    };
    check_cancelled();
    for (int64_t y = 0; y < lines; ++y)
        for (int64_t x = 0; x < samples; ++x)
            scan(before, y, x, static_cast<size_t>(y * samples + x));
    std::vector<int32_t> queue;
    const auto rises = [&](size_t p, size_t q) { return marker[q] < marker[p] && marker[q] < mask[q]; };
    for (int64_t y = lines; y-- > 0;)
        for (int64_t x = samples; x-- > 0;) {
            const auto p = static_cast<size_t>(y * samples + x);
            scan(after, y, x, p);
            bool wakes = false;
            after.visit(y, x, [&](size_t q) { wakes = wakes || rises(p, q); });
            if (wakes) queue.push_back(static_cast<int32_t>(p));
        }
    // Visits the pixels that the two scans did not reach. The last pixel is taken first, because the result
    // does not depend on the order.
    for (size_t step = 1; !queue.empty(); ++step) {
        if (step % steps_at_once == 0) check_cancelled();
        const int32_t at = queue.back();
        queue.pop_back();
        const auto p = static_cast<size_t>(at);
        const auto raise = [&](size_t q) {
            if (!rises(p, q)) return;
            marker[q] = std::min(marker[p], mask[q]);
            queue.push_back(static_cast<int32_t>(q));
        };
        const int64_t y = at / samples, x = at % samples;
        before.visit(y, x, raise);
        after.visit(y, x, raise);
    }
}

} // namespace hsi::profile
