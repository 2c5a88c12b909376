// SPDX-License-Identifier: MIT
// Writes bands to a file while others are computed: for operations that make a whole band at once, and files
// in which a band is one contiguous piece.
#pragma once

#include "core/cancel.h"
#include "core/cube_view.h"
#include "core/host_memory.h"
#include "core/rect.h"
#include "stream/cube_source.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace hsi::stream {

/// A second interface of a CubeSink that takes band after band instead of tiles of all bands.
class BandTaker {
  public:
    virtual ~BandTaker() = default;
    /// True if the bands are stored apart, so that writing one is not slower than writing its part of tiles.
    virtual bool takes_bands() const = 0;
    /// Writes `core` of one band; `src` has that band alone, and may be changed by the call. From several
    /// threads at once, in any order. Throws Error (disk full ...).
    virtual void write_band(int band, const Rect& core, const CubeView<float>& src) = 0;
};

/// Writes a large part of a band, or the whole, some lines at a time; the plane is changed. Where it is wrong
/// the error names the band. \throws Error, Cancelled.
void write_plane(BandTaker& sink, int band, const Rect& core, const CubeView<float>& plane,
                 const CancelFlag* cancel = nullptr);

/// A thread that writes finished planes, and a few planes that go round: taken empty, given back with a band.
/// take(), give() and finish() are for one thread.
class BandWriter {
  public:
    /// shape: of the sink. planes: that may be taken at once, and as many more for writing meanwhile. cancel
    /// may be null. progress: called with the share of written bands, by one thread at a time. If the system
    /// has no more threads, the caller's writes.
    BandWriter(BandTaker& sink, const CubeShape& shape, int planes, const CancelFlag* cancel = nullptr,
               std::function<void(double)> progress = {});
    /// The same for a part of each of `bands` bands. beside: a separate thread writes; else the caller writes
    /// when the planes run out, and at the end.
    BandWriter(BandTaker& sink, const Rect& part, int bands, int planes, bool beside,
               const CancelFlag* cancel = nullptr, std::function<void(double)> progress = {});
    BandWriter(const BandWriter&) = delete;
    BandWriter& operator=(const BandWriter&) = delete;
    /// Drops planes that were given and are not yet written.
    ~BandWriter();

    /// Host bytes of the planes of a scene.
    static uint64_t bytes(const CubeShape& shape, int planes);

    /// A plane of the size of the part, for filling, once there is one; it stays the caller's until give().
    /// Throws exceptions of writing, and Cancelled.
    CubeView<float> take();
    /// Hands on a plane that was taken. \throws exceptions of writing.
    void give(int band, const CubeView<float>& plane);
    /// Returns when all given planes are written. Throws exceptions of writing, and Cancelled.
    void finish();

    int written() const; ///< bands
    /// Seconds of all writing, and those that its caller has waited or written itself.
    double write_seconds() const;
    double held_seconds() const;

  private:
    void serve();
    /// Writes the next plane that waits; `lock` is open meanwhile.
    void write_next(std::unique_lock<std::mutex>& lock);
    /// Adds the time that computing has waited; throws errors that have occurred meanwhile. Call it with the
    /// lock held.
    void end_wait(double seconds);
    void rethrow() const;

    BandTaker& m_sink;
    const Rect m_part;
    const int m_bands;
    const CancelFlag* const m_cancel;
    const std::function<void(double)> m_progress;
    std::vector<HostBuffer<float>> m_planes;
    mutable std::mutex m_mutex; ///< guards what follows
    std::condition_variable m_changed;
    std::vector<float*> m_free;                   ///< the last first: planes used last are in caches
    std::deque<std::pair<int, float*>> m_waiting; ///< bands to be written
    int m_busy = 0;                               ///< planes that are being written
    int m_written = 0;
    double m_write_seconds = 0, m_held_seconds = 0;
    std::exception_ptr m_error; ///< the first one
    bool m_end = false;
    std::thread m_thread; ///< after all that it touches
};

} // namespace hsi::stream
