// SPDX-License-Identifier: MIT
// Sums doubles on a device without rounding, with the digits of math/exact_sum.h. Threads add their terms in
// any order. Only the digits of the sums are copied to the host.
#pragma once

#include "core/exact_digits.h"
#include "core/host_memory.h"
#include "cuda/device_buffer.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::cuda {

/// The digits that sums of floats and of products of two floats can reach. The leading bit of a term is at
/// least 2^-298, so the last of its 53 bits is at least 2^-350. Sums of 2^40 terms stay below 2^298.
inline constexpr int lowest_digit = (-298 - 52 - exact::base_exponent) / 32,
                     digit_rows = (298 - exact::base_exponent) / 32 + 1 - lowest_digit;

/// The addresses and the number of the sums, for kernels.
struct ExactView {
    unsigned long long* digit = nullptr; ///< digit_rows x count
    double* special = nullptr;           ///< one per sum: the sum of its non-finite terms
    unsigned* used = nullptr; ///< One flag per row of digits, and one for `special`: 1 if it is used.
    size_t count = 0;
};

#ifdef __CUDACC__
/// Adds the terms of one thread to one sum. Consecutive terms of similar magnitude are first added in
/// registers; there must be fewer than 2^30 of them. Call end() after the last term.
class ExactTerms {
  public:
    __device__ ExactTerms(const ExactView& sums, size_t sum) : m_sums(sums), m_sum(sum) {}
    __device__ void add(double x) {
        if (!isfinite(x)) {
            atomicAdd(m_sums.special + m_sum, x);
            m_sums.used[digit_rows] = 1;
            return;
        }
        if (x == 0) return;
        const exact::Term term = exact::split(x);
        if (term.digit != m_digit) {
            end();
            m_digit = term.digit;
        }
        m_low += term.low;
        m_middle += term.middle;
        m_high += term.high;
    }
    __device__ void end() {
        put(0, m_low);
        put(1, m_middle);
        put(2, m_high);
        m_low = m_middle = m_high = 0;
    }

  private:
    __device__ void put(int above, int64_t value) {
        const int row = m_digit + above - lowest_digit;
        if (value == 0 || row < 0 || row >= digit_rows) return;
        atomicAdd(m_sums.digit + static_cast<size_t>(row) * m_sums.count + m_sum,
                  static_cast<unsigned long long>(value));
        m_sums.used[row] = 1;
    }
    const ExactView m_sums;
    const size_t m_sum;
    int m_digit = lowest_digit;
    int64_t m_low = 0, m_middle = 0, m_high = 0;
};
#endif

/// `count` exact sums in the memory of the current device.
class ExactDeviceSums {
  public:
    ExactDeviceSums() = default;
    ExactDeviceSums(size_t count, cudaStream_t stream)
        : m_digit(count * digit_rows), m_special(count), m_used(digit_rows + 1) {
        m_digit.clear(stream);
        m_special.clear(stream);
        m_used.clear(stream);
    }
    static uint64_t bytes(size_t count) { return count * 8 * (digit_rows + 1) + 4 * (digit_rows + 1); }
    ExactView view() const { return {m_digit.data(), m_special.data(), m_used.data(), m_special.size()}; }
    /// Adds the sums to `to`, a math::ExactSums with the same number of sums. `additions`: an upper limit of
    /// the number of terms that each sum has received. `memory` provides the host buffers for the copies.
    /// Waits for the stream.
    template <class Sums>
    void add_to(Sums& to, int64_t additions, HostAllocator& memory, cudaStream_t stream) const {
        const size_t count = m_special.size();
        if (count == 0) return;
        const Lent<unsigned> used(memory, m_used.size());
        m_used.download(used.data, m_used.size(), stream);
        HSI_CUDA_CHECK(cudaStreamSynchronize(stream));
        std::vector<int> rows;
        for (int row = 0; row < digit_rows; ++row)
            if (used.data[row] != 0) rows.push_back(row);
        const Lent<int64_t> digits(memory, rows.size() * count);
        for (size_t k = 0; k < rows.size(); ++k)
            HSI_CUDA_CHECK(cudaMemcpyAsync(digits.data + k * count,
                                           m_digit.data() + static_cast<size_t>(rows[k]) * count, count * 8,
                                           cudaMemcpyDeviceToHost, stream));
        const Lent<double> special(memory, used.data[digit_rows] != 0 ? count : 0);
        if (special.data != nullptr) m_special.download(special.data, count, stream);
        HSI_CUDA_CHECK(cudaStreamSynchronize(stream));
        to.expect(additions);
        for (size_t k = 0; k < rows.size(); ++k)
            to.add_digits(static_cast<size_t>(lowest_digit + rows[k]), digits.data + k * count);
        if (special.data != nullptr) to.add_special(special.data);
    }

  private:
    /// Holds a block of `memory` as long as the object exists; no block for 0 elements.
    template <class T>
    struct Lent {
        Lent(HostAllocator& from, size_t count)
            : memory(from), bytes(count * sizeof(T)),
              data(count > 0 ? static_cast<T*>(from.allocate(bytes)) : nullptr) {}
        Lent(const Lent&) = delete;
        Lent& operator=(const Lent&) = delete;
        ~Lent() {
            if (data != nullptr) memory.release(data, bytes);
        }
        HostAllocator& memory;
        const size_t bytes;
        T* const data;
    };
    DeviceBuffer<unsigned long long> m_digit;
    DeviceBuffer<double> m_special;
    DeviceBuffer<unsigned> m_used;
};

} // namespace hsi::cuda
