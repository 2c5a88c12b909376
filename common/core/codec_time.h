// SPDX-License-Identifier: MIT
// Measures the processor time for compressing and decompressing data. The times are sums over all threads of
// this process since its start. A pass reports how much they grew during the pass (stream/pipeline.h).
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>

namespace hsi {

struct CodecTime {
    double decoding = 0, encoding = 0; ///< seconds
};

namespace detail {
inline std::atomic<int64_t> g_decoding_ns{0}, g_encoding_ns{0};

inline int64_t thread_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return int64_t{1000000000} * now.tv_sec + now.tv_nsec;
}
} // namespace detail

inline CodecTime codec_time() {
    constexpr double second = 1e-9;
    return {second * static_cast<double>(detail::g_decoding_ns.load()),
            second * static_cast<double>(detail::g_encoding_ns.load())};
}

/// Adds the processor time that this thread uses while this object exists to the time for decoding or for
/// encoding.
class CodecClock {
  public:
    enum class Kind { decoding, encoding };
    explicit CodecClock(Kind kind)
        : m_total(kind == Kind::decoding ? detail::g_decoding_ns : detail::g_encoding_ns),
          m_begin(detail::thread_ns()) {}
    CodecClock(const CodecClock&) = delete;
    CodecClock& operator=(const CodecClock&) = delete;
    ~CodecClock() { m_total += detail::thread_ns() - m_begin; }

  private:
    std::atomic<int64_t>& m_total;
    const int64_t m_begin;
};

} // namespace hsi
