// SPDX-License-Identifier: MIT
// The interface of a job's ranks for code that computes: the number of ranks, and the merging of their
// results. The start, the failures and the end of a job are in parallel/ranks.h; only code that runs a job
// includes that header.
#pragma once

#include "core/cancel.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hsi::parallel {

/// All ranks of a run. A single process is a group of one, for which all functions below return without
/// waiting. Each call with a parameter `what` must be made by all ranks, in the same order, on the thread
/// that runs the tool. These calls throw Cancelled if the run must end, and Error that names `what` if the
/// ranks made different calls.
class Group {
  public:
    virtual ~Group() = default;

    virtual int rank() const = 0;
    virtual int size() const = 0;
    bool several() const { return size() > 1; }
    bool root() const { return rank() == 0; }
    virtual const std::string& host(int rank) const = 0;
    /// Returns true if ranks run on more than one host. Ranks on different hosts share no memory, only a file
    /// system.
    virtual bool several_hosts() const = 0;
    /// Returns the number of threads for work that this rank does while the other ranks wait. `threads` is
    /// the number of threads of each rank. The result is the sum of these numbers over the ranks of the host,
    /// limited by the processors that this rank may use, but never less than `threads`.
    virtual int threads_of_host(int threads) const = 0;
    /// Returns the flag that is set when the run must end; null for one process.
    virtual const CancelFlag* cancel() const = 0;

    /// Returns the root's `bytes` on all ranks.
    virtual std::string broadcast(const std::string& what, std::string bytes) = 0;
    /// Merges the values of all ranks, and returns the result on all ranks. merge(a, b) merges two values.
    /// The result must not depend on the order and the grouping of these merges.
    using Merge = std::function<std::string(const std::string& a, const std::string& b)>;
    virtual std::string reduce(const std::string& what, std::string mine, const Merge& merge) = 0;
    /// Works as reduce() for large values that are merged in place. packed() returns this rank's value. add()
    /// adds the value of another rank to this rank's value. set() replaces this rank's value by the result;
    /// it is not called on the root, whose value is already the result.
    virtual void unite(const std::string& what, const std::function<std::string()>& packed,
                       const std::function<void(const std::string& bytes)>& add,
                       const std::function<void(const std::string& bytes)>& set) = 0;
    virtual int64_t sum(const std::string& what, int64_t mine) = 0;
    /// Replaces each of these counts by its sum over the ranks.
    virtual void add_up(const std::string& what, std::vector<int64_t>& counts) = 0;
    virtual uint64_t least(const std::string& what, uint64_t mine) = 0;
    virtual bool any(const std::string& what, bool mine) = 0;
    /// Returns the bytes of all ranks in the order of ranks.
    virtual std::vector<std::string> all(const std::string& what, const std::string& mine) = 0;
    /// Works as all() for values that are too large for one message: they are sent piece by piece. next()
    /// returns this rank's next piece, empty at the end. take() gets the piece of every rank, including this
    /// one, in the order of ranks.
    virtual void all_in_pieces(const std::string& what, const std::function<std::string()>& next,
                               const std::function<void(int rank, const std::string& piece)>& take) = 0;
    /// Sends data directly from every rank to every other rank. next(to) returns the next piece for rank
    /// `to`, at most as large as a message (Transport::most_bytes), empty at the end. take() gets the pieces
    /// of the other ranks; pieces of one rank arrive in order. At most eight pieces are in transit, for any
    /// number of ranks.
    virtual void exchange(const std::string& what, const std::function<std::string(int to)>& next,
                          const std::function<void(int from, const std::string& piece)>& take) = 0;
    /// Exchanges texts between ranks with consecutive numbers. `before` is sent to the previous rank and
    /// `after` to the next rank. Each is replaced by the text that this rank sends in return; it is unchanged
    /// if there is no such rank.
    virtual void swap_borders(const std::string& what, std::string& before, std::string& after) = 0;
    /// Checks that all ranks pass the same text `mine`. Otherwise throws Error on all ranks. The message
    /// names the first rank whose text differs from the root's, followed by `fault` (such as "sees another
    /// src"). If texts have several lines, the message includes the first line that differs.
    virtual void agree(const std::string& what, const std::string& mine, const std::string& fault,
                       const std::string& advice) = 0;
    /// Works as for_each() (parallel/threads.h), with units shared among the ranks. Each rank computes
    /// `members` units at a time, and takes the next unit when a member is free. Returns when all ranks are
    /// done. Results of work() remain on the rank that computed them.
    virtual void for_each(const std::string& what, int64_t units, int members, const CancelFlag* cancel,
                          const std::function<void(int64_t unit, int member)>& work) = 0;
};

/// Returns the ranks of the current Job (parallel/ranks.h), or this process alone.
Group& group();

} // namespace hsi::parallel
