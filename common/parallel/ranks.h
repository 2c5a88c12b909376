// SPDX-License-Identifier: MIT
// The processes of a job (mpirun -n 8, srun) that work on one run together. All processes run the same
// program with the same arguments and make the same decisions. Data of a whole scene are merged from the
// parts of all ranks before they are used. Rank 0, the root, communicates with the user and owns the outputs.
#pragma once

#include "core/cancel.h"
#include "parallel/group.h"
#include "parallel/transport.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace hsi::parallel {

/// Describes how a rank's part of the run has ended.
struct Ending {
    int code = 0; ///< exit code; 0: success
    std::string what, advice;
    bool echo = false; ///< true: this part ended by a signal, or because another rank had failed
    /// In the ending of a whole job: true if every rank has reported its end and no rank got a signal.
    bool together = false;
};

class JointMemory;

/// Most functions implement Group. The data members serve a job of several ranks; those that the mutex guards
/// serve its end.
class Ranks final : public Group {
  public:
    /// Makes a single process, which is its own root.
    Ranks();
    /// Makes one of several ranks. `cancel` is set if another rank fails, and ends every wait. `cancel` must
    /// outlive this object. The caller must always call conclude() afterwards.
    Ranks(std::unique_ptr<Transport> transport, CancelFlag& cancel);
    Ranks(const Ranks&) = delete;
    Ranks& operator=(const Ranks&) = delete;
    ~Ranks() override;

    /// Exchanges the names of the hosts. All ranks call this function together, before anything else. Ranks
    /// on a single host also get shared memory for the state of shared passes (SharedTiles), which would need
    /// too many messages.
    void meet();

    int rank() const override { return m_alone ? 0 : m_rank; }
    int size() const override { return m_alone ? 1 : m_size; }
    int local_rank() const { return m_transport ? m_transport->local_rank() : 0; }
    int local_size() const { return m_transport ? m_transport->local_size() : 1; }
    int threads_of_host(int threads) const override;
    const std::string& host(int rank) const override { return m_hosts[static_cast<size_t>(rank)]; }
    bool several_hosts() const override;
    /// Returns the name for messages: "rank 3 on node17".
    std::string name(int rank) const;
    int job_size() const { return m_size; } ///< number of ranks, also while the root works alone
    const CancelFlag* cancel() const override { return m_cancel; }

    /// Makes the root work like a single process from now on. The other ranks must only wait for the end of
    /// the root.
    void work_alone() { m_alone = true; }

    std::string broadcast(const std::string& what, std::string bytes) override;
    std::string reduce(const std::string& what, std::string mine, const Merge& merge) override;
    void unite(const std::string& what, const std::function<std::string()>& packed,
               const std::function<void(const std::string& bytes)>& add,
               const std::function<void(const std::string& bytes)>& set) override;
    int64_t sum(const std::string& what, int64_t mine) override;
    void add_up(const std::string& what, std::vector<int64_t>& counts) override;
    uint64_t least(const std::string& what, uint64_t mine) override;
    bool any(const std::string& what, bool mine) override;
    std::vector<std::string> all(const std::string& what, const std::string& mine) override;
    void all_in_pieces(const std::string& what, const std::function<std::string()>& next,
                       const std::function<void(int rank, const std::string& piece)>& take) override;
    void exchange(const std::string& what, const std::function<std::string(int to)>& next,
                  const std::function<void(int from, const std::string& piece)>& take) override;
    void swap_borders(const std::string& what, std::string& before, std::string& after) override;
    void agree(const std::string& what, const std::string& mine, const std::string& fault,
               const std::string& advice) override;
    void for_each(const std::string& what, int64_t units, int members, const CancelFlag* cancel,
                  const std::function<void(int64_t unit, int member)>& work) override;

    // The end of a run.

    /// Waits on the root until every other rank has ended successfully; does nothing on other ranks. Throws
    /// Cancelled if a rank has failed or the run is cancelled.
    void await_others();
    /// Reports how this rank's run has ended, and returns how the job has ended: the same code on all ranks,
    /// and on the root the faults with their ranks. Never throws. Waits for the other ranks. After a failure,
    /// this wait takes at most 30 seconds. After a signal (CancelFlag::interrupted()) it takes about half a
    /// second, because the starter will then kill the process.
    Ending conclude(Ending mine) noexcept;
    /// Leaves the job. Call this function after conclude(), when nothing remains to clean up or to print. The
    /// rank leaves together with the others if conclude() has found that all ranks have ended without a
    /// signal. Otherwise it leaves alone and ends its process here with this exit code, because it must not
    /// wait for a rank that hangs.
    void finish(int code);

  private:
    friend class SharedTiles;
    void check_cancelled() const;
    /// Sends, and waits until the bytes may be freed.
    void send(int to, int tag, const void* bytes, size_t size, const std::function<void()>& wait);
    std::string up_and_down(const std::string& what, const std::function<std::string()>& packed,
                            const std::function<void(std::string)>& add);
    void send_labelled(int to, const std::string& label, const std::string& bytes);
    std::string receive_labelled(int from, const std::string& label);
    void watch();
    void stop_watching();
    bool take_endings();
    Ending conclude_all(Ending mine);
    Ending conclude_mine(const Ending& mine);
    void send_verdict();
    void stop_others();
    std::optional<Ending> primary() const;
    bool wait_for_endings(double seconds, bool until_failure);

    std::unique_ptr<Transport> m_transport;
    CancelFlag* m_cancel = nullptr;
    int m_rank = 0, m_size = 1;
    std::atomic<bool> m_alone{false};
    std::vector<std::string> m_hosts;
    int64_t m_round = 0, m_pass = 0;      ///< number of collective calls and of shared passes so far
    std::shared_ptr<JointMemory> m_joint; ///< Memory that all ranks share; null if they cannot share memory.
    struct Board;                         ///< the part of m_joint for shared passes
    Board* m_board = nullptr;
    void make_board();

    /// On the root: requests (rank and bytes) for the next pass, which arrived during the previous pass. A
    /// rank that has left a pass may reach the next pass before the root does.
    std::vector<std::pair<int, std::string>> m_early_questions;

    std::atomic<bool> m_stopped{false}; ///< another rank has failed
    std::atomic<bool> m_quit{false};    ///< tells the watcher to end; set under the mutex
    std::thread m_watcher;
    std::condition_variable m_quits;
    bool m_together = false;    ///< Ending::together in the result of conclude()
    mutable std::mutex m_mutex; ///< guards the following members
    std::map<int, Ending> m_endings;
    /// Messages that stop the other ranks; empty until they are sent.
    std::vector<std::unique_ptr<Sending>> m_sent;

    std::string m_verdict; ///< Verdict of the root. It must exist as long as the messages in m_verdicts.
    std::vector<std::unique_ptr<Sending>> m_verdicts;
};

/// Returns the object of group() as Ranks, with the functions for the start and the end of a job.
Ranks& ranks();

/// Makes `ranks` the ranks of the process as long as this object exists.
class Job {
  public:
    explicit Job(Ranks& ranks);
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    ~Job();

  private:
    Ranks* m_before;
};

/// Joins the job of this process. Returns null if the process was not started as one of several, or if
/// HSI_MPI=NO is set. Throws Error if the process was started as one of several and cannot join. `cancel` is
/// used as by the constructor of Ranks.
std::unique_ptr<Ranks> join_ranks(CancelFlag& cancel);

/// Shares the positions 0 .. count - 1 of a pass among the ranks: a free worker takes the next position. If
/// all ranks run on a single host and can share memory, the counter of positions is in this memory. Otherwise
/// the counter is on the root, which answers requests of the other ranks. All ranks create the object
/// together, and must make another common call (Ranks::sum) before they create the next one.
class SharedTiles {
  public:
    /// ahead: when a worker (lane) gets a position, it already requests its next one, so that it need not
    /// wait for the answer later. In the last quarter of the positions, workers request a position only when
    /// they are free. Use `ahead` for many positions that take about equal times.
    SharedTiles(Ranks& ranks, int64_t count, bool ahead = false);
    /// Assigns position i to rank settled[i], whichever rank is free.
    SharedTiles(Ranks& ranks, std::vector<int> settled);
    SharedTiles(const SharedTiles&) = delete;
    SharedTiles& operator=(const SharedTiles&) = delete;
    ~SharedTiles();

    /// Returns the next position for worker `lane` of this rank; nullopt if all positions are assigned.
    /// `give_up` may be called during the wait, and ends the wait with Cancelled by returning true.
    std::optional<int64_t> next(int lane, const std::function<bool()>& give_up);
    /// On the root: returns the rank that has taken `position`, after a wait if needed; nullopt if give_up()
    /// ends the wait.
    std::optional<int> owner(int64_t position, const std::function<bool()>& give_up);
    /// Sends the data of a position from its owner, which is this rank, to the root. Throws Cancelled if
    /// give_up() ends the wait.
    void send(int64_t position, const void* bytes, size_t size, const std::function<bool()>& give_up);
    /// On the root: receives the data of a position, exactly `size` bytes, from rank `from`. Throws Cancelled
    /// if give_up() ends the wait.
    void receive(int64_t position, int from, void* bytes, size_t size, const std::function<bool()>& give_up);
    int64_t assigned() const; ///< On the root: number of assigned positions.
    double waited() const;    ///< Seconds that the workers of this rank have waited for positions, in total.

  private:
    void serve();
    int64_t take(int rank);
    int64_t take_from_board();

    Ranks& m_ranks;
    /// Owner of each position; empty: the first rank that requests a position owns it.
    const std::vector<int> m_settled;
    const int64_t m_pass, m_count;
    const bool m_ahead = false, m_on_board = false;
    /// One per worker: 1 while a request of the worker for its next position is in progress.
    std::vector<char> m_asked;
    std::atomic<bool> m_end{false};
    std::atomic<int64_t> m_waited_ns{0};
    mutable std::mutex m_mutex; ///< guards the following members
    int64_t m_next = 0;
    std::map<int64_t, int> m_owners; ///< Owners of assigned positions, until owner() is called for them.
    std::thread m_server;            ///< Answers requests on the root, if ranks share no memory.
};

} // namespace hsi::parallel
