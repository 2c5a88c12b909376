// SPDX-License-Identifier: MIT
// Messages between the processes (ranks) of a job: the module hsi_mpi.so sends them by MPI, and tests by
// threads. All common work of the ranks consists of these (parallel/ranks.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace hsi::parallel {

inline constexpr int any_rank = -1;

/// A message on its way. Its bytes stay where they are until done() is true.
class Sending {
  public:
    virtual ~Sending() = default;
    virtual bool done() = 0;
};

struct Message {
    int from = 0;
    std::string bytes;
};

/// Thread-safe; nothing here waits for another rank. Messages of one rank to another with one tag arrive in
/// the order in which they were sent.
class Transport {
  public:
    virtual ~Transport() = default;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    virtual int local_rank() const = 0; ///< among the ranks of this node
    virtual int local_size() const = 0;
    virtual std::string host() const = 0;
    /// Starts to send at most most_bytes. done() may stay false until the other rank has taken the message.
    virtual std::unique_ptr<Sending> send(int to, int tag, const void* bytes, size_t size) = 0;
    static constexpr size_t most_bytes = size_t{8} << 20;
    /// The next message with this tag, if one has come. `wait` is called repeatedly while its bytes arrive,
    /// and may throw to give up.
    virtual std::optional<Message> take(int from, int tag, const std::function<void()>& wait) = 0;
    /// All ranks call it together, at the end of a job: no further message will be sent. `code` is the exit
    /// code of this rank's process, if it has to end here because the others do not come.
    virtual void finish(int code) = 0;
    /// Ends this rank alone, when others may be stuck or gone: no rank waits. If ranks are processes, this
    /// process ends here, with the exit code and with the output printed so far; everything must have been
    /// released before.
    virtual void leave(int code) = 0;
};

} // namespace hsi::parallel
