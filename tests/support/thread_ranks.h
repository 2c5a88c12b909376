// SPDX-License-Identifier: MIT
// Ranks that are threads of this process. They test the interaction of ranks without MPI.
#pragma once

#include "parallel/ranks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

namespace hsi::test {

/// Stores the messages between all ranks. Each message is received once. As in MPI, a large message counts as
/// sent only after it was received.
class PostOffice {
  public:
    explicit PostOffice(int ranks, int on_hosts = 2)
        : size(ranks), hosts(on_hosts), left(static_cast<size_t>(ranks)) {}
    struct Letter {
        int from, to, tag;
        std::string bytes;
        std::shared_ptr<std::atomic<bool>> done;
    };
    const int size, hosts; ///< hosts: number of computers, 1 or 2
    std::mutex mutex;
    std::deque<Letter> letters;
    /// How each rank ended: "together with 0" (finish) or "alone with 1" (leave), with the exit code.
    std::vector<std::string> left;
};

class ThreadTransport final : public parallel::Transport {
  public:
    ThreadTransport(PostOffice& office, int rank) : m_office(office), m_rank(rank) {}
    int rank() const override { return m_rank; }
    int size() const override { return m_office.size; }
    int local_rank() const override { return m_rank / m_office.hosts; }
    int local_size() const override {
        return m_office.hosts == 1 ? m_office.size : (m_office.size + 1 - m_rank % 2) / 2;
    }
    std::string host() const override { return m_rank % m_office.hosts ? "odd" : "even"; }
    std::unique_ptr<parallel::Sending> send(int to, int tag, const void* bytes, size_t size) override {
        struct Sent final : parallel::Sending {
            std::shared_ptr<std::atomic<bool>> flag;
            bool done() override { return flag->load(); }
        };
        auto sent = std::make_unique<Sent>();
        sent->flag = std::make_shared<std::atomic<bool>>(size <= 256);
        const std::lock_guard lock(m_office.mutex);
        m_office.letters.push_back(
            {m_rank, to, tag, std::string(static_cast<const char*>(bytes), size), sent->flag});
        return sent;
    }
    std::optional<parallel::Message> take(int from, int tag, const std::function<void()>&) override {
        const std::lock_guard lock(m_office.mutex);
        auto& letters = m_office.letters;
        for (auto it = letters.begin(); it != letters.end(); ++it) {
            if (it->to != m_rank || it->tag != tag || (from != parallel::any_rank && it->from != from))
                continue;
            parallel::Message message{it->from, std::move(it->bytes)};
            it->done->store(true);
            letters.erase(it);
            return message;
        }
        return std::nullopt;
    }
    void finish(int code) override { left("together", code); }
    void leave(int code) override { left("alone", code); }

  private:
    void left(const std::string& how, int code) {
        const std::lock_guard lock(m_office.mutex);
        m_office.left[static_cast<size_t>(m_rank)] = how + " with " + std::to_string(code);
    }
    PostOffice& m_office;
    const int m_rank;
};

/// Runs work(ranks, flag) on `size` ranks, each in its own thread, after all ranks have met. `flag`: the
/// cancel flag of the rank. Rethrows the first exception. An exception or a failed assertion on one rank
/// cancels the other ranks, which would otherwise wait for ever. With two hosts, ranks with odd numbers are
/// on the second host. Returns how each rank ended, if it called finish().
inline std::vector<std::string>
on_ranks(int size, const std::function<void(parallel::Ranks&, CancelFlag&)>& work, int hosts = 2) {
    PostOffice office(size, hosts);
    std::vector<CancelFlag> flags(static_cast<size_t>(size));
    std::vector<std::thread> threads;
    std::barrier met(size);
    std::mutex mutex;
    std::exception_ptr first;
    for (int r = 0; r < size; ++r)
        threads.emplace_back([&, r] {
            CancelFlag& own = flags[static_cast<size_t>(r)];
            bool good = true;
            try {
                parallel::Ranks ranks(std::make_unique<ThreadTransport>(office, r), own);
                ranks.meet();
                met.arrive_and_wait();
                work(ranks, own);
                good = !testing::Test::HasFatalFailure();
            } catch (...) {
                good = false;
                const std::lock_guard lock(mutex);
                if (!first) first = std::current_exception();
            }
            if (good) return;
            for (CancelFlag& flag : flags)
                flag.request();
        });
    for (auto& thread : threads)
        thread.join();
    if (first && !testing::Test::HasFatalFailure()) std::rethrow_exception(first);
    return office.left;
}

} // namespace hsi::test
