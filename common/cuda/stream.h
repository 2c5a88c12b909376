// SPDX-License-Identifier: MIT
// Classes that own CUDA streams and events. The default stream is never used, because it would serialise the
// workers.
#pragma once

#include "cuda/check.h"
#include "cuda/kept_memory.h"

#include <cstdint>
#include <exception>
#include <utility>

namespace hsi::cuda {

/// An event on the current device. Events with Timing::off are cheaper but cannot measure times. A thread
/// sleeps while it waits for an event.
class Event {
  public:
    enum class Timing { on, off };
    explicit Event(Timing timing = Timing::off) {
        HSI_CUDA_CHECK(cudaEventCreateWithFlags(
            &m_event,
            cudaEventBlockingSync | (timing == Timing::off ? cudaEventDisableTiming : cudaEventDefault)));
    }
    Event(Event&& o) noexcept : m_event(std::exchange(o.m_event, nullptr)) {}
    Event& operator=(Event&& o) noexcept {
        std::swap(m_event, o.m_event);
        return *this;
    }
    ~Event() {
        if (m_event) cudaEventDestroy(m_event);
    }
    cudaEvent_t get() const { return m_event; }
    void record(cudaStream_t stream) { HSI_CUDA_CHECK(cudaEventRecord(m_event, stream)); }
    void wait() { HSI_CUDA_CHECK(cudaEventSynchronize(m_event)); }
    /// Returns the milliseconds from `start` to this event. Both events need timing and must have been
    /// reached.
    float milliseconds_since(const Event& start) const {
        float ms = 0;
        HSI_CUDA_CHECK(cudaEventElapsedTime(&ms, start.m_event, m_event));
        return ms;
    }

  private:
    cudaEvent_t m_event = nullptr;
};

/// Measures the time of the kernels between two points of a stream.
class KernelClock {
  public:
    void start(cudaStream_t stream) { m_begin.record(stream); }
    void stop(cudaStream_t stream) { m_end.record(stream); }
    /// Returns the seconds. The stream must have reached the second point.
    double seconds() const { return static_cast<double>(m_end.milliseconds_since(m_begin)) / 1000; }

  private:
    Event m_begin{Event::Timing::on}, m_end{Event::Timing::on};
};

/// A stream of the current device that does not wait for the default stream. A library keeps the stream for
/// the next call.
class Stream {
  public:
    Stream() {
        HSI_CUDA_CHECK(cudaGetDevice(&m_device));
        m_stream = static_cast<cudaStream_t>(Kept::instance().take(m_device, 1));
        if (m_stream == nullptr) HSI_CUDA_CHECK(cudaStreamCreateWithFlags(&m_stream, cudaStreamNonBlocking));
    }
    Stream(Stream&& o) noexcept : m_stream(std::exchange(o.m_stream, nullptr)), m_device(o.m_device) {}
    Stream& operator=(Stream&& o) noexcept {
        std::swap(m_stream, o.m_stream);
        std::swap(m_device, o.m_device);
        return *this;
    }
    ~Stream() {
        constexpr uint64_t most = 64;
        if (m_stream == nullptr) return;
        if (std::uncaught_exceptions() > 0 || !Kept::instance().keep(m_device, m_stream, 1, most))
            cudaStreamDestroy(m_stream);
    }
    cudaStream_t get() const { return m_stream; }
    void synchronize() { HSI_CUDA_CHECK(cudaStreamSynchronize(m_stream)); }
    /// Makes later work on this stream start after the event.
    void wait_for(const Event& event) { HSI_CUDA_CHECK(cudaStreamWaitEvent(m_stream, event.get(), 0)); }

  private:
    struct StreamKind;
    using Kept = KeptMemory<StreamKind>;
    cudaStream_t m_stream = nullptr;
    int m_device = 0;
};

} // namespace hsi::cuda
