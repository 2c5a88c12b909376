// SPDX-License-Identifier: MIT
// Sends messages between the processes (ranks) of a job. The module hsi_mpi.so sends them by MPI, and tests
// send them between threads. Ranks exchange all data by these messages (parallel/ranks.h), except for data in
// shared memory (parallel/joint_memory.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace hsi::parallel {

inline constexpr int any_rank = -1;

/// A message in transit. Its bytes must remain in memory until done() is true.
class Sending {
  public:
    virtual ~Sending() = default;
    virtual bool done() = 0;
};

struct Message {
    int from = 0;
    std::string bytes;
};

/// Sends and receives messages. Thread-safe. Only finish() waits for other ranks. Messages from one rank to
/// another with the same tag arrive in the order in which they were sent.
class Transport {
  public:
    virtual ~Transport() = default;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    virtual int local_rank() const = 0; ///< rank among the ranks of this node
    virtual int local_size() const = 0;
    virtual std::string host() const = 0;
    /// Starts to send at most most_bytes. done() may remain false until the other rank has taken the message.
    virtual std::unique_ptr<Sending> send(int to, int tag, const void* bytes, size_t size) = 0;
    static constexpr size_t most_bytes = size_t{8} << 20;
    /// Returns the next message with this tag from rank `from` (any_rank: from any rank); nullopt if none has
    /// arrived. `wait` is called repeatedly while the bytes of the message arrive, and may throw to give up.
    virtual std::optional<Message> take(int from, int tag, const std::function<void()>& wait) = 0;
    /// Ends a job. All ranks call this function together, and no further message will be sent. `code` is the
    /// exit code of this process if it must end here because the other ranks do not arrive.
    virtual void finish(int code) = 0;
    /// Ends this rank alone, without waiting for other ranks, which may hang or be gone. If ranks are
    /// processes, this process ends here with the exit code and with the output printed so far. Release
    /// everything before this call.
    virtual void leave(int code) = 0;
};

} // namespace hsi::parallel
