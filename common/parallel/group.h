// SPDX-License-Identifier: MIT
// The ranks of a job for code that computes: their number, and the merging of their results. parallel/ranks.h
// handles their start, failures and end; only code that runs a job includes it.
#pragma once

#include "core/cancel.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hsi::parallel {

/// All ranks of a run. A single process is a group of one, and all functions below then return at once. All
/// ranks must make the calls with `what` in the same order, on the thread that runs the tool. These calls
/// throw Cancelled if the run must end, and Error that names `what` if the ranks made different calls.
class Group {
  public:
    virtual ~Group() = default;

    virtual int rank() const = 0;
    virtual int size() const = 0;
    bool several() const { return size() > 1; }
    bool root() const { return rank() == 0; }
    virtual const std::string& host(int rank) const = 0;
    /// Returns true if ranks run on more than one host. They then share data only through the file
    /// system.
    virtual bool several_hosts() const = 0;
    /// Returns the number of threads for work that one rank does while the other ranks wait. Each rank has
    /// `threads`. The result is the sum over the ranks of the host, limited by the processors that this rank
    /// may use.
    virtual int threads_of_host(int threads) const = 0;
    /// Returns the flag that is set when the run must end; null for one process.
    virtual const CancelFlag* cancel() const = 0;

    /// Sends the root's bytes to all ranks.
    virtual std::string broadcast(const std::string& what, std::string bytes) = 0;
    /// Merges the values of all ranks, and returns the result on all ranks. merge(a, b) merges two values;
    /// order and grouping must not matter.
    using Merge = std::function<std::string(const std::string& a, const std::string& b)>;
    virtual std::string reduce(const std::string& what, std::string mine, const Merge& merge) = 0;
    /// Works as reduce() for large values that are merged in place. add() adds another rank's value to this
    /// rank's value. packed() returns this rank's value. set() replaces this rank's value by the result.
    /// set() is not called on the root, whose value is already the result.
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
    /// Works as all(), piece by piece, for values that are too large for one message. next() returns this
    /// rank's next piece, empty at the end. take() gets the piece of every rank, including this one, in the
    /// order of ranks.
    virtual void all_in_pieces(const std::string& what, const std::function<std::string()>& next,
                               const std::function<void(int rank, const std::string& piece)>& take) = 0;
    /// Sends data directly from every rank to every other rank. next(to) returns the next piece for rank
    /// `to`, at most as large as a message (Transport::most_bytes), empty at the end. take() gets the pieces
    /// of the other ranks; pieces of one rank arrive in order. At most eight pieces are in transit, for any
    /// number of ranks.
    virtual void exchange(const std::string& what, const std::function<std::string(int to)>& next,
                          const std::function<void(int from, const std::string& piece)>& take) = 0;
    /// Exchanges texts with the neighbours in the order of ranks. `before` and `after` are for the rank
    /// before and after this one, and are replaced by the texts that these ranks send. They are unchanged if
    /// there is no neighbour.
    virtual void swap_borders(const std::string& what, std::string& before, std::string& after) = 0;
    /// Throws Error that names a rank, on all ranks, if the bytes of a rank differ from the root's. `fault`
    /// states the meaning of a difference: "sees another src". If texts have several lines, the message
    /// includes the first line that differs.
    virtual void agree(const std::string& what, const std::string& mine, const std::string& fault,
                       const std::string& advice) = 0;
    /// Works as for_each() (parallel/threads.h) with units shared among the ranks. A free rank takes the next
    /// unit; each rank computes `members` units at a time. Returns when all ranks are done. Results of work()
    /// remain on the rank that computed them.
    virtual void for_each(const std::string& what, int64_t units, int members, const CancelFlag* cancel,
                          const std::function<void(int64_t unit, int member)>& work) = 0;
};

/// Returns the ranks of the current Job (parallel/ranks.h), or this process alone.
Group& group();

} // namespace hsi::parallel
