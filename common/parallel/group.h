// SPDX-License-Identifier: MIT
// The ranks of a job for code that computes: their count, and the merging of their results. Their start,
// failures and end are in parallel/ranks.h, which only code that runs a job includes.
#pragma once

#include "core/cancel.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hsi::parallel {

/// All ranks of a run; a single process is a group of one, for which all functions below return at once. All
/// ranks make the calls with `what` together, in the same order, on the thread that runs the tool. These
/// calls throw Cancelled when the run is to end, and Error, which names `what`, when ranks have lost step.
class Group {
  public:
    virtual ~Group() = default;

    virtual int rank() const = 0;
    virtual int size() const = 0;
    bool several() const { return size() > 1; }
    bool root() const { return rank() == 0; }
    virtual const std::string& host(int rank) const = 0;
    /// True when ranks run on more than one host: they then see each other's data only through the file
    /// system.
    virtual bool several_hosts() const = 0;
    /// Threads for work of one rank that the others wait for; each rank has `threads`: the threads of all
    /// ranks of its host, as far as it may use so many processors.
    virtual int threads_of_host(int threads) const = 0;
    /// Is set when the run is to end; null for one process.
    virtual const CancelFlag* cancel() const = 0;

    /// The root's bytes for all.
    virtual std::string broadcast(const std::string& what, std::string bytes) = 0;
    /// Merges the values of all ranks into one. merge(a, b) merges two; neither order nor grouping may
    /// matter. All get the result.
    using Merge = std::function<std::string(const std::string& a, const std::string& b)>;
    virtual std::string reduce(const std::string& what, std::string mine, const Merge& merge) = 0;
    /// reduce() for large values that are merged in place. add(): adds another rank's value to the value
    /// here; packed(): the whole value here; set(): replaces it by the result, which the root has already.
    virtual void unite(const std::string& what, const std::function<std::string()>& packed,
                       const std::function<void(const std::string& bytes)>& add,
                       const std::function<void(const std::string& bytes)>& set) = 0;
    virtual int64_t sum(const std::string& what, int64_t mine) = 0;
    /// Replaces each of these counts by its sum over the ranks.
    virtual void add_up(const std::string& what, std::vector<int64_t>& counts) = 0;
    virtual uint64_t least(const std::string& what, uint64_t mine) = 0;
    virtual bool any(const std::string& what, bool mine) = 0;
    /// Everybody's bytes, in the order of ranks.
    virtual std::vector<std::string> all(const std::string& what, const std::string& mine) = 0;
    /// all(), piece by piece, for values that are too large for one message: next() returns this rank's next
    /// piece, empty at the end; take() gets every rank's, also its own, in the order of ranks.
    virtual void all_in_pieces(const std::string& what, const std::function<std::string()>& next,
                               const std::function<void(int rank, const std::string& piece)>& take) = 0;
    /// Sends from every rank to every other, directly. next(to) returns this rank's next piece for another,
    /// no larger than a message (Transport::most_bytes), empty at the end; take() gets the others' pieces,
    /// each rank's in their order. At any time at most eight pieces are under way, for any count of ranks.
    virtual void exchange(const std::string& what, const std::function<std::string(int to)>& next,
                          const std::function<void(int from, const std::string& piece)>& take) = 0;
    /// Exchanges texts with the neighbours in the order of ranks: `before` and `after` are for the rank
    /// before and after this one, and are replaced by their texts for this rank; they stay unchanged where
    /// there is no neighbour.
    virtual void swap_borders(const std::string& what, std::string& before, std::string& after) = 0;
    /// Throws Error, naming a rank, on all ranks when one has other bytes than the root. `fault` is the
    /// meaning of a difference: "sees another src". If texts have several lines, the message has the first
    /// line that differs.
    virtual void agree(const std::string& what, const std::string& mine, const std::string& fault,
                       const std::string& advice) = 0;
    /// for_each() (parallel/threads.h) with the units shared among the ranks: a free rank takes the next
    /// unit, `members` at a time on each. Returns when all ranks have ended theirs. Results of work() stay on
    /// the rank that made them.
    virtual void for_each(const std::string& what, int64_t units, int members, const CancelFlag* cancel,
                          const std::function<void(int64_t unit, int member)>& work) = 0;
};

/// The ranks of this process's job: of the last living Job (parallel/ranks.h), or this process alone.
Group& group();

} // namespace hsi::parallel
