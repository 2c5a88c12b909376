// SPDX-License-Identifier: MIT
#include "stream/band_writer.h"

#include "core/error.h"
#include "core/forced_unwind.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>

namespace hsi::stream {
namespace {

/// The number of bytes that are written at once. While they are converted for the file, they fit into a
/// second-level cache, and an interrupted run does not wait for a whole plane.
constexpr int64_t piece_bytes = int64_t{1} << 20;

using Clock = std::chrono::steady_clock;

double time_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

} // namespace

void write_plane(BandTaker& sink, int band, const Rect& core, const CubeView<float>& plane,
                 const CancelFlag* cancel) {
    const int64_t lines = std::max<int64_t>(1, piece_bytes / (core.w * 4));
    for (int64_t y = 0; y < core.h; y += lines) {
        if (cancel != nullptr && cancel->requested()) throw Cancelled();
        const int64_t h = std::min(lines, core.h - y);
        try {
            sink.write_band(band, {core.x, core.y + y, core.w, h}, plane.cut(0, y, core.w, h));
        } catch (const Cancelled&) {
            throw;
        } catch (const Error& e) {
            throw Error(std::string(e.what()) + ", band " + std::to_string(band + 1), e.advice());
        }
    }
}

BandWriter::BandWriter(BandTaker& sink, const CubeShape& shape, int planes, const CancelFlag* cancel,
                       std::function<void(double)> progress)
    : BandWriter(sink, {0, 0, shape.samples, shape.lines}, shape.bands, planes, true, cancel,
                 std::move(progress)) {}

BandWriter::BandWriter(BandTaker& sink, const Rect& part, int bands, int planes, bool beside,
                       const CancelFlag* cancel, std::function<void(double)> progress)
    : m_sink(sink), m_part(part), m_bands(bands), m_cancel(cancel), m_progress(std::move(progress)) {
    for (int i = 0; i < planes; ++i)
        m_planes.emplace_back(static_cast<size_t>(part.area()));
    for (auto plane = m_planes.rbegin(); plane != m_planes.rend(); ++plane)
        m_free.push_back(plane->data());
    if (!beside) return;
    try {
        m_thread = std::thread([this] { serve(); });
    } catch (const std::system_error&) {
        // Without the thread, the caller writes planes when no plane is free, and at the end.
    }
}

BandWriter::~BandWriter() {
    {
        const std::lock_guard lock(m_mutex);
        m_end = true;
        m_waiting.clear();
    }
    m_changed.notify_all();
    if (m_thread.joinable()) m_thread.join();
}

uint64_t BandWriter::bytes(const CubeShape& shape, int planes) {
    return CubeShape{shape.samples, shape.lines, planes}.float_bytes();
}

CubeView<float> BandWriter::take() {
    const auto begin = Clock::now();
    std::unique_lock lock(m_mutex);
    while (m_free.empty() && !m_error) {
        if (m_waiting.empty() && m_busy == 0) throw Error("internal: all planes are taken");
        if (m_thread.joinable())
            m_changed.wait(lock);
        else
            write_next(lock);
    }
    end_wait(time_since(begin));
    float* const plane = m_free.back();
    m_free.pop_back();
    return CubeView<float>::packed(plane, 1, m_part.h, m_part.w);
}

void BandWriter::give(int band, const CubeView<float>& plane) {
    {
        const std::lock_guard lock(m_mutex);
        rethrow();
        m_waiting.emplace_back(band, plane.data);
    }
    m_changed.notify_all();
}

void BandWriter::finish() {
    const auto begin = Clock::now();
    std::unique_lock lock(m_mutex);
    // Nothing is left to compute, so this thread also writes waiting planes.
    while (!m_error && (!m_waiting.empty() || m_busy > 0)) {
        if (m_waiting.empty())
            m_changed.wait(lock);
        else
            write_next(lock);
    }
    end_wait(time_since(begin));
}

void BandWriter::end_wait(double seconds) {
    m_held_seconds += seconds;
    rethrow();
    if (m_cancel != nullptr && m_cancel->requested()) throw Cancelled();
}

int BandWriter::written() const {
    const std::lock_guard lock(m_mutex);
    return m_written;
}

double BandWriter::write_seconds() const {
    const std::lock_guard lock(m_mutex);
    return m_write_seconds;
}

double BandWriter::held_seconds() const {
    const std::lock_guard lock(m_mutex);
    return m_held_seconds;
}

void BandWriter::serve() {
    std::unique_lock lock(m_mutex);
    while (true) {
        m_changed.wait(lock, [&] { return m_end || !m_waiting.empty(); });
        if (m_end) return;
        write_next(lock);
    }
}

void BandWriter::write_next(std::unique_lock<std::mutex>& lock) {
    const auto [band, plane] = m_waiting.front();
    m_waiting.pop_front();
    ++m_busy;
    lock.unlock();
    const auto begin = Clock::now();
    std::exception_ptr error;
    try {
        write_plane(m_sink, band, m_part, CubeView<float>::packed(plane, 1, m_part.h, m_part.w), m_cancel);
    } catch (...) {
        error = std::current_exception();
    }
    const double seconds = time_since(begin);
    lock.lock();
    --m_busy;
    m_write_seconds += seconds;
    m_free.push_back(plane);
    if (error) {
        if (!m_error) m_error = error;
        m_waiting.clear();
    } else {
        ++m_written;
        try {
            if (m_progress) m_progress(static_cast<double>(m_written) / m_bands);
        } catch (ForcedUnwind&) {
            if (!m_error) m_error = thread_was_ended();
            m_changed.notify_all();
            throw;
        } catch (...) {
            if (!m_error) m_error = std::current_exception();
        }
    }
    m_changed.notify_all();
}

void BandWriter::rethrow() const {
    if (m_error) std::rethrow_exception(m_error);
}

} // namespace hsi::stream
