// SPDX-License-Identifier: MIT
// The ranks of a job as those who compute see them: how many there are, and what they put together. How they
// are started, hear of one another's failures and end is parallel/ranks.h, which only what runs a job
// includes.
#pragma once

#include "core/cancel.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hsi::parallel {

/// All ranks of a run; one process is a group of its own, for which everything below is done at once. The
/// calls that take `what` are made by all ranks together, each in the same order, by the thread that runs the
/// tool. They throw Cancelled when the run is to end meanwhile, and Error when ranks have lost step; `what`
/// says for what.
class Group {
  public:
    virtual ~Group() = default;

    virtual int rank() const = 0;
    virtual int size() const = 0;
    bool several() const { return size() > 1; }
    bool root() const { return rank() == 0; }
    virtual const std::string& host(int rank) const = 0;
    /// True when ranks run on more than one host: what one writes the others see through the file system
    /// alone.
    virtual bool several_hosts() const = 0;
    /// Threads for what one rank does while the others wait for it, each of which has `threads`: those of all
    /// ranks of its host, as far as it may run on so many processors.
    virtual int threads_of_host(int threads) const = 0;
    /// Is set when the run is to end; null for one process.
    virtual const CancelFlag* cancel() const = 0;

    /// The root's bytes for all.
    virtual std::string broadcast(const std::string& what, std::string bytes) = 0;
    /// One value from those of all ranks. merge(a, b) puts two together; neither order nor grouping may
    /// matter. All get the result.
    using Merge = std::function<std::string(const std::string& a, const std::string& b)>;
    virtual std::string reduce(const std::string& what, std::string mine, const Merge& merge) = 0;
    /// reduce() for what is large and put together where it is. add(): what another rank has is added to what
    /// is here; packed(): all that is here; set(): that becomes the whole, which the root has already.
    virtual void unite(const std::string& what, const std::function<std::string()>& packed,
                       const std::function<void(const std::string& bytes)>& add,
                       const std::function<void(const std::string& bytes)>& set) = 0;
    virtual int64_t sum(const std::string& what, int64_t mine) = 0;
    /// The sum of each of these counts, in its place.
    virtual void add_up(const std::string& what, std::vector<int64_t>& counts) = 0;
    virtual uint64_t least(const std::string& what, uint64_t mine) = 0;
    virtual bool any(const std::string& what, bool mine) = 0;
    /// Everybody's bytes, in the order of ranks.
    virtual std::vector<std::string> all(const std::string& what, const std::string& mine) = 0;
    /// all(), piece by piece, of what is too large for one message: next() gives this rank's next piece,
    /// which is empty when nothing is left; take() gets every rank's, its own ones too, in the order of
    /// ranks.
    virtual void all_in_pieces(const std::string& what, const std::function<std::string()>& next,
                               const std::function<void(int rank, const std::string& piece)>& take) = 0;
    /// From every rank to every other, by the straight way. next(to): this rank's next piece for another,
    /// no larger than a message (Transport::most_bytes), empty when nothing is left; take() gets those of the
    /// others, each rank's in their order. Eight pieces are under way at most, whatever the number of
    /// ranks.
    virtual void exchange(const std::string& what, const std::function<std::string(int to)>& next,
                          const std::function<void(int from, const std::string& piece)>& take) = 0;
    /// What neighbours in the order of ranks have for one another: `before` and `after` are for the rank
    /// before and the one after this one, and become what these have for it; they stay as they are where
    /// there is none.
    virtual void swap_borders(const std::string& what, std::string& before, std::string& after) = 0;
    /// Throws Error, naming a rank, on all ranks when one has other bytes than the root. `fault` says what
    /// that means: "sees another src". Of texts of several lines the message has the first that differ.
    virtual void agree(const std::string& what, const std::string& mine, const std::string& fault,
                       const std::string& advice) = 0;
    /// for_each() (parallel/threads.h) with the units shared among the ranks: whoever is free takes the next
    /// one, `members` at a time on each. Returns when all ranks have ended theirs. What work() leaves behind
    /// is its own rank's.
    virtual void for_each(const std::string& what, int64_t units, int members, const CancelFlag* cancel,
                          const std::function<void(int64_t unit, int member)>& work) = 0;
};

/// The ranks of this process's job: those of the last Job (parallel/ranks.h) that lives, or this process
/// alone.
Group& group();

} // namespace hsi::parallel
