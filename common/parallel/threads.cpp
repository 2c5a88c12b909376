// SPDX-License-Identifier: MIT
#include "parallel/threads.h"

#include "core/cancel_scope.h"
#include "core/error.h"
#include "core/forced_unwind.h"
#include "core/process_owner.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace hsi::parallel {

namespace {

using Work = std::function<void(int)>;

/// Runs member 0 on the calling thread, and the others on threads that begin and end with the call.
void on_new_threads(int members, const Work& work) {
    struct Joined {
        ~Joined() {
            for (auto& thread : threads)
                thread.join();
        }
        std::vector<std::thread> threads;
    } joined; // joins the threads however the calling thread leaves
    joined.threads.reserve(static_cast<size_t>(std::max(0, members - 1)));
    try {
        for (int member = 1; member < members; ++member)
            joined.threads.emplace_back(work, member);
    } catch (const std::system_error&) {
        // The system has no more threads, so the existing ones do the work.
    }
    work(0);
}

/// Threads that wait for the next call, at most one per processor. They end with the process, so their
/// library must not be unloaded.
class KeptThreads {
  public:
    static KeptThreads& get() {
        static KeptThreads* const kept = [] {
            s_kept = new KeptThreads; // never deleted: threads wait in it
            pthread_atfork([] { s_kept->m_mutex.lock(); }, [] { s_kept->m_mutex.unlock(); },
                           [] {
                               s_kept->m_free.clear(); // a child does not have these threads
                               s_kept->m_mutex.unlock();
                           });
            return s_kept;
        }();
        return *kept;
    }

    void run(int members, const Work& work, Members wanted) {
        Round round;
        round.work = &work;
        std::vector<std::shared_ptr<Seat>> seats; // includes seats whose thread has ended since
        seats.reserve(static_cast<size_t>(std::max(0, members - 1)));
        {
            const std::lock_guard lock(m_mutex);
            for (int member = 1; member < members; ++member) {
                auto seat = take_seat();
                if (!seat) break;
                seat->member = member;
                seat->round = &round;
                seats.push_back(std::move(seat));
            }
            round.left = seats.size();
        }
        const Ending ending{*this, round, seats, wanted};
        for (const auto& seat : seats)
            seat->wake.notify_one();
        work(0);
    }

  private:
    struct Round {
        const Work* work = nullptr;
        size_t left = 0; ///< members that have not ended
        std::condition_variable done;
    };
    /// A thread that waits for work. The thread sets `round` to null when it begins the round.
    struct Seat {
        std::condition_variable wake;
        Round* round = nullptr;
        int member = 0;
    };

    /// Waits for the other members, however the caller's thread leaves, because they work in its frame.
    struct Ending {
        ~Ending() {
            std::unique_lock lock(kept.m_mutex);
            if (wanted == Members::who_are_free)
                for (const auto& seat : seats) {
                    if (seat->round != &round) continue; // the thread has begun
                    seat->round = nullptr;
                    kept.m_free.push_back(seat);
                    --round.left;
                }
            round.done.wait(lock, [&] { return round.left == 0; });
        }
        KeptThreads& kept;
        Round& round;
        const std::vector<std::shared_ptr<Seat>>& seats;
        const Members wanted;
    };

    /// Returns a free seat, or a seat with a new thread; null if the system has no more threads.
    std::shared_ptr<Seat> take_seat() {
        if (!m_free.empty()) {
            auto seat = std::move(m_free.back());
            m_free.pop_back();
            return seat;
        }
        try {
            auto seat = std::make_shared<Seat>();
            m_free.reserve(m_seats + 1); // so that no allocation fails later
            std::thread([this, seat] { serve(seat); }).detach();
            ++m_seats;
            return seat;
        } catch (const std::exception&) {
            return nullptr;
        }
    }

    void serve(const std::shared_ptr<Seat>& seat) {
        std::unique_lock lock(m_mutex);
        for (;;) {
            seat->wake.wait(lock, [&] { return seat->round != nullptr; });
            Round* const round = std::exchange(seat->round, nullptr);
            lock.unlock();
            try {
                (*round->work)(seat->member);
            } catch (ForcedUnwind&) {
                lock.lock();
                leave(*round, seat, false);
                throw;
            }
            lock.lock();
            if (!leave(*round, seat, m_free.size() < m_most)) return;
        }
    }

    /// Called when the thread's part of the round is done.
    bool leave(Round& round, const std::shared_ptr<Seat>& seat, bool stays) {
        if (stays)
            m_free.push_back(seat);
        else
            --m_seats;
        if (--round.left == 0) round.done.notify_one();
        return stays;
    }

    static inline KeptThreads* s_kept = nullptr;
    const size_t m_most = std::max(1u, std::thread::hardware_concurrency());
    std::mutex m_mutex;
    size_t m_seats = 0; ///< number of all seats, free or not
    std::vector<std::shared_ptr<Seat>> m_free;
};

} // namespace

void on_threads(int members, const std::function<void(int)>& work, const std::function<void()>& failed,
                Members wanted) {
    std::mutex mutex;
    std::exception_ptr error; // guarded by mutex
    const auto fail = [&](const std::exception_ptr& why) {
        const std::lock_guard lock(mutex);
        if (!error) error = why;
        failed();
    };
    const Work guarded = [&](int member) {
        try {
            work(member);
        } catch (ForcedUnwind&) {
            fail(thread_was_ended());
            throw;
        } catch (...) {
            fail(std::current_exception());
        }
    };
    if (members <= 1)
        guarded(0);
    else if (process_is_ours())
        on_new_threads(members, guarded);
    else
        KeptThreads::get().run(members, guarded, wanted);
    if (error) std::rethrow_exception(error);
}

void for_each(int64_t units, int members, const CancelFlag* cancel,
              const std::function<void(int64_t, int)>& work) {
    std::atomic<int64_t> next{0};
    on_threads(
        static_cast<int>(std::min<int64_t>(members, units)),
        [&](int member) {
            const CancelScope scope(cancel);
            for (int64_t unit = next.fetch_add(1); unit < units; unit = next.fetch_add(1)) {
                if (cancel != nullptr && cancel->requested()) throw Cancelled();
                work(unit, member);
            }
        },
        [&] { next.store(units); }, Members::who_are_free);
}

} // namespace hsi::parallel
