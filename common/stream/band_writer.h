// SPDX-License-Identifier: MIT
// Writes bands to a file while further bands are computed. Suits operations that compute a whole band at
// once, and files that store a band in one contiguous piece.
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

/// A second interface of a CubeSink that accepts one band after another instead of tiles of all bands.
class BandTaker {
  public:
    virtual ~BandTaker() = default;
    /// Returns true if the bands are stored separately. Writing one whole band is then as fast as writing it
    /// tile by tile.
    virtual bool takes_bands() const = 0;
    /// Writes `core` of one band. `src` contains only that band and may be changed by the call. Several
    /// threads may call it at once, in any order. Throws Error (disk full ...).
    virtual void write_band(int band, const Rect& core, const CubeView<float>& src) = 0;
};

/// Writes `plane`, a large part of a band or the whole band, some lines at a time. The call may change the
/// values of the plane. Errors name the band. \throws Error, Cancelled.
void write_plane(BandTaker& sink, int band, const Rect& core, const CubeView<float>& plane,
                 const CancelFlag* cancel = nullptr);

/// A thread that writes finished bands, and a few planes that are reused. take() returns a free plane. The
/// caller fills the plane with a band, and give() passes the plane to the writing thread. Call take(), give()
/// and finish() from one thread.
class BandWriter {
  public:
    /// shape: shape of the sink. planes: the total number of planes; while the caller fills some of them,
    /// others wait or are written. cancel may be null. progress: called with the fraction of written bands,
    /// by one thread at a time. If the system has no more threads, the caller's thread writes.
    BandWriter(BandTaker& sink, const CubeShape& shape, int planes, const CancelFlag* cancel = nullptr,
               std::function<void(double)> progress = {});
    /// Works as the constructor above for the part `part` of each of `bands` bands. beside: true: a separate
    /// thread writes; false: the caller writes in take() when no plane is free, and in finish().
    BandWriter(BandTaker& sink, const Rect& part, int bands, int planes, bool beside,
               const CancelFlag* cancel = nullptr, std::function<void(double)> progress = {});
    BandWriter(const BandWriter&) = delete;
    BandWriter& operator=(const BandWriter&) = delete;
    /// Discards planes that were given and are not yet written.
    ~BandWriter();

    /// Returns the host bytes of `planes` planes of this size.
    static uint64_t bytes(const CubeShape& shape, int planes);

    /// Waits for a free plane and returns it. The plane has the size of the part, and the caller fills it. It
    /// belongs to the caller until give(). Throws exceptions of writing, and Cancelled.
    CubeView<float> take();
    /// Passes a filled plane to the writer. \throws exceptions of writing.
    void give(int band, const CubeView<float>& plane);
    /// Returns when all given planes are written. Throws exceptions of writing, and Cancelled.
    void finish();

    int written() const; ///< number of written bands
    /// Return the seconds of all writing, and the seconds in which the caller has waited or has written
    /// itself.
    double write_seconds() const;
    double held_seconds() const;

  private:
    void serve();
    /// Writes the next waiting plane. The lock is released during the writing.
    void write_next(std::unique_lock<std::mutex>& lock);
    /// Adds the time that the computation has waited, and throws errors that have occurred meanwhile. Call it
    /// with the lock held.
    void end_wait(double seconds);
    void rethrow() const;

    BandTaker& m_sink;
    const Rect m_part;
    const int m_bands;
    const CancelFlag* const m_cancel;
    const std::function<void(double)> m_progress;
    std::vector<HostBuffer<float>> m_planes;
    mutable std::mutex m_mutex; ///< guards the following members
    std::condition_variable m_changed;
    std::vector<float*> m_free; ///< The last plane is taken first, since it may still be in the caches.
    std::deque<std::pair<int, float*>> m_waiting; ///< bands to be written
    int m_busy = 0;                               ///< planes that are being written
    int m_written = 0;
    double m_write_seconds = 0, m_held_seconds = 0;
    std::exception_ptr m_error; ///< the first error
    bool m_end = false;
    std::thread m_thread; ///< initialised after all members that it uses
};

} // namespace hsi::stream
