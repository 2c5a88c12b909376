// SPDX-License-Identifier: MIT
// The processes of a job (mpirun -n 8, srun) that work on one run together. All of them run the same program
// with the same arguments and take the same decisions; data of a whole scene are merged from the parts of all
// ranks before they are used. Rank 0, the root, speaks to the user and owns the outputs.
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

/// How a rank's part of the run has ended.
struct Ending {
    int code = 0; ///< exit code; 0: all is well
    std::string what, advice;
    bool echo = false;     ///< it ended because another rank had failed, or by a signal
    bool together = false; ///< of a job: every rank has reported its end, and none got a signal
};

class JointMemory;

/// Most of its functions are Group's; its members belong to a job and, behind the mutex, to its end.
class Ranks final : public Group {
  public:
    /// One process, which is its own root.
    Ranks();
    /// One of several ranks. `cancel` is set when another rank fails, and ends every wait. It must outlive
    /// this. The caller must call conclude() in any case from here on.
    Ranks(std::unique_ptr<Transport> transport, CancelFlag& cancel);
    Ranks(const Ranks&) = delete;
    Ranks& operator=(const Ranks&) = delete;
    ~Ranks() override;

    /// All ranks call this together, before anything else: they learn each other's hosts. On a single host
    /// they get shared memory, for data that are requested too often for messages.
    void meet();

    int rank() const override { return m_alone ? 0 : m_rank; }
    int size() const override { return m_alone ? 1 : m_size; }
    int local_rank() const { return m_transport ? m_transport->local_rank() : 0; }
    int local_size() const { return m_transport ? m_transport->local_size() : 1; }
    int threads_of_host(int threads) const override;
    const std::string& host(int rank) const override { return m_hosts[static_cast<size_t>(rank)]; }
    bool several_hosts() const override;
    /// "rank 3 on node17"
    std::string name(int rank) const;
    int job_size() const { return m_size; } ///< size(), also while the root works alone
    const CancelFlag* cancel() const override { return m_cancel; }

    /// From now on the root works as one process does, and the others only wait for its end.
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

    /// On the root: waits until every other rank has ended well. Throws Cancelled when one has not.
    void await_others();
    /// Reports how this rank's run has ended, and returns how the job has: the same code on all ranks, and on
    /// the root the faults with their ranks. Never throws; waits no longer than it takes the others to
    /// notice, and after a signal (CancelFlag::interrupted()) for half a second, since the starter will kill.
    Ending conclude(Ending mine) noexcept;
    /// Call it after conclude(), when nothing is left to clean up or to print: leaves the job, together with
    /// the others if conclude() has found all of them, else alone. A rank that leaves alone ends its process
    /// here, with this exit code: it must not wait for one that is stuck.
    void finish(int code);

  private:
    friend class SharedTiles;
    void check_cancelled() const;
    /// Sends, and waits until the bytes may go.
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
    int64_t m_round = 0, m_pass = 0;      ///< collective calls and shared passes so far
    std::shared_ptr<JointMemory> m_joint; ///< of all ranks; null where they have none
    struct Board;                         ///< there, of the shared passes
    Board* m_board = nullptr;
    void make_board();

    /// On the root: requests (rank and bytes) for the pass after the one whose server received them. A rank
    /// that has left a pass may be in the next one before the root is.
    std::vector<std::pair<int, std::string>> m_early_questions;

    std::atomic<bool> m_stopped{false}; ///< another rank has failed
    std::atomic<bool> m_quit{false};    ///< the watcher ends; set under the mutex
    std::thread m_watcher;
    std::condition_variable m_quits;
    bool m_together = false;    ///< the result of conclude()
    mutable std::mutex m_mutex; ///< guards what follows
    std::map<int, Ending> m_endings;
    std::vector<std::unique_ptr<Sending>> m_sent; ///< the messages that stop the others, once

    std::string m_verdict; ///< of the root; lives as long as its messages
    std::vector<std::unique_ptr<Sending>> m_verdicts;
};

/// group() with its beginning and its end.
Ranks& ranks();

/// Makes `ranks` the process's own as long as it lives.
class Job {
  public:
    explicit Job(Ranks& ranks);
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    ~Job();

  private:
    Ranks* m_before;
};

/// The ranks, if there are certainly several: Error for a process that was started as one of them and cannot
/// join; null for a single process. `cancel` as for Ranks.
std::unique_ptr<Ranks> join_ranks(CancelFlag& cancel);

/// Positions 0 .. count - 1 of a pass, shared among the ranks: a free rank takes the next one. The counter is
/// in memory that all ranks of a single host share, else at the root, asked by messages. All ranks make it
/// together, and do something together (Ranks::sum) before they make the next one.
class SharedTiles {
  public:
    /// ahead: a lane asks for its next position when it gets one, so that it need not wait for the answer;
    /// except for the last quarter, which free lanes are to get. It is for many positions that take about
    /// equal times.
    SharedTiles(Ranks& ranks, int64_t count, bool ahead = false);
    /// Each position to its rank, as settled before.
    SharedTiles(Ranks& ranks, std::vector<int> settled);
    SharedTiles(const SharedTiles&) = delete;
    SharedTiles& operator=(const SharedTiles&) = delete;
    ~SharedTiles();

    /// The next position for this rank's `lane`; nullopt when all are given out. `give_up` may be called
    /// while waiting, and ends it with Cancelled by returning true.
    std::optional<int64_t> next(int lane, const std::function<bool()>& give_up);
    /// On the root: the rank that has taken `position`; waits until one has. nullopt when given up.
    std::optional<int> owner(int64_t position, const std::function<bool()>& give_up);
    /// Sends the data of a position from its owner to the root.
    void send(int64_t position, const void* bytes, size_t size, const std::function<bool()>& give_up);
    /// On the root: exactly `size` bytes.
    void receive(int64_t position, int from, void* bytes, size_t size, const std::function<bool()>& give_up);
    int64_t assigned() const; ///< on the root: positions that are given out
    double waited() const;    ///< seconds that this rank's lanes have waited for positions, all together

  private:
    void serve();
    int64_t take(int rank);
    int64_t take_from_board();

    Ranks& m_ranks;
    const std::vector<int> m_settled; ///< the owner of each position; empty: the first to ask
    const int64_t m_pass, m_count;
    const bool m_ahead = false, m_on_board = false;
    std::vector<char> m_asked; ///< of each lane: its next answer is under way
    std::atomic<bool> m_end{false};
    std::atomic<int64_t> m_waited_ns{0};
    mutable std::mutex m_mutex; ///< guards what follows
    int64_t m_next = 0;
    std::map<int64_t, int> m_owners; ///< of positions whose owner was not asked for yet
    std::thread m_server;            ///< if the counter is asked by messages
};

} // namespace hsi::parallel
