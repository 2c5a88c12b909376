// SPDX-License-Identifier: MIT
// Divides the tiles of a pass among the ranks of a job while they work.
#include "core/byte_pack.h"
#include "core/error.h"
#include "parallel/joint_memory.h"
#include "parallel/ranks.h"
#include "parallel/threads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <utility>

namespace hsi::parallel {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// The tags of a request for the next position, of its answers (one tag per worker), and of the data of a
// position (one tag for each position that may be in transit). MPI guarantees 32767 tags.
constexpr int ask = 16, answers = 32, most_lanes = 8192, parts = answers + most_lanes, most_parts = 16384;

constexpr size_t most_owners = size_t{1} << 20;

constexpr int64_t lost_step = -1; ///< the answer to a rank that is in another pass

struct Question {
    int64_t pass = 0;
    int lane = 0;
};

/// Returns the pass, a position and the rank that has taken it, packed into one word. The word is never 0.
int64_t taken(int64_t pass, int64_t position, int rank) {
    return static_cast<int64_t>((static_cast<uint64_t>(pass + 1) & 0x7fff) << 48 |
                                (static_cast<uint64_t>(position) & 0xffffffff) << 16 |
                                (static_cast<uint64_t>(rank) & 0xffff));
}

int part_tag(int64_t position) { return parts + static_cast<int>(position % most_parts); }

} // namespace

/// The states of four passes, used in turn. Four suffice: when a pass begins at the root, no rank is in the
/// pass before the previous one, or in the pass after the next one.
struct Ranks::Board {
    static constexpr int64_t passes = 4;
    struct Pass {
        alignas(64) std::atomic<int64_t> next; ///< next position
        /// The owners of positions, as packed by taken(). Position p is at index p modulo most_parts; at most
        /// most_parts positions are in progress.
        alignas(64) std::atomic<int64_t> owner[most_parts];
    };
    Pass pass[passes];
    Pass& of(int64_t number) { return pass[number % passes]; }
};

void Ranks::make_board() {
    if (several_hosts() || m_size > 0xffff) return;
    m_joint = JointMemory::make(*this, "tiles", sizeof(Board));
    if (!m_joint || m_joint->processes() != m_size)
        m_joint.reset();
    else
        m_board = static_cast<Board*>(m_joint->allocate(sizeof(Board))); // zero at first
}

SharedTiles::SharedTiles(Ranks& ranks, int64_t count, bool ahead)
    : m_ranks(ranks), m_pass(ranks.m_pass++), m_count(count), m_ahead(ahead),
      m_on_board(ranks.m_board != nullptr), m_asked(m_on_board ? 0 : most_lanes) {
    if (!ranks.root()) return;
    if (m_on_board)
        ranks.m_board->of(m_pass + 2).next.store(0);
    else
        m_server = std::thread([this] { serve(); });
}

SharedTiles::SharedTiles(Ranks& ranks, std::vector<int> settled)
    : m_ranks(ranks), m_settled(std::move(settled)), m_pass(-1),
      m_count(static_cast<int64_t>(m_settled.size())) {}

SharedTiles::~SharedTiles() {
    m_end = true;
    if (m_server.joinable()) m_server.join();
}

int64_t SharedTiles::assigned() const {
    if (m_on_board) return std::min(m_count, m_ranks.m_board->of(m_pass).next.load());
    const std::lock_guard lock(m_mutex);
    return m_next;
}

double SharedTiles::waited() const { return static_cast<double>(m_waited_ns.load()) * 1e-9; }

int64_t SharedTiles::take(int rank) {
    const std::lock_guard lock(m_mutex);
    if (!m_settled.empty())
        while (m_next < m_count && m_settled[static_cast<size_t>(m_next)] != rank)
            ++m_next;
    if (m_next >= m_count) return m_count;
    if (!m_settled.empty()) return m_next++;
    m_owners[m_next] = rank;
    // A rank that writes in order requests the owner of each position. Then at most as many positions are in
    // progress as there are workers. In other passes, nobody requests owners.
    if (m_owners.size() > most_owners) m_owners.erase(m_owners.begin());
    return m_next++;
}

int64_t SharedTiles::take_from_board() {
    auto& pass = m_ranks.m_board->of(m_pass);
    const int64_t position = pass.next.fetch_add(1);
    if (position < m_count)
        pass.owner[position % most_parts].store(taken(m_pass, position, m_ranks.rank()),
                                                std::memory_order_release);
    return std::min(position, m_count);
}

/// Answers the workers of other ranks at the root, as long as the pass lasts.
void SharedTiles::serve() {
    Transport& transport = *m_ranks.m_transport;
    const auto wait = [this] {
        if (m_end) throw Cancelled();
    };
    std::vector<std::pair<std::unique_ptr<int64_t>, std::unique_ptr<Sending>>> answered;
    const auto answer = [&](int rank, const std::string& bytes) {
        const auto question = ByteUnpacker(bytes).one<Question>();
        if (question.pass == m_pass + 1) {
            m_ranks.m_early_questions.emplace_back(rank, bytes);
            return;
        }
        auto position = std::make_unique<int64_t>(question.pass == m_pass ? take(rank) : lost_step);
        auto sending = transport.send(rank, answers + question.lane, position.get(), sizeof *position);
        answered.emplace_back(std::move(position), std::move(sending));
    };
    int idle = 0;
    try {
        for (const auto& [rank, bytes] : std::exchange(m_ranks.m_early_questions, {}))
            answer(rank, bytes);
        while (!m_end) {
            const auto message = transport.take(any_rank, ask, wait);
            if (!message) {
                std::erase_if(answered, [](const auto& a) { return a.second->done(); });
                // At the beginning of a pause, frequent checks are worth a processor, since the waiting rank
                // has no other work.
                std::this_thread::sleep_for(++idle < 20 ? 20us : 100us);
                continue;
            }
            idle = 0;
            answer(message->from, message->bytes);
        }
    } catch (const std::exception&) {
        // wait() throws Cancelled when the pass has ended. After another error, no worker gets an answer any
        // more; waiting workers end when the run is cancelled.
    }
    for (auto& [position, sending] : answered)
        if (!sending->done()) {
            (void)position.release(); // the transport still uses the bytes
            (void)sending.release();
        }
}

std::optional<int64_t> SharedTiles::next(int lane, const std::function<bool()>& give_up) {
    if (m_count == 0) return std::nullopt;
    const auto begin = Clock::now();
    int64_t position = 0;
    if (m_on_board) {
        position = take_from_board();
    } else if (m_ranks.root() || !m_settled.empty()) {
        position = take(m_ranks.rank());
    } else {
        const auto wait = [&] {
            if (give_up()) throw Cancelled();
        };
        const auto ask_for_one = [&] {
            const Question question{m_pass, lane};
            m_ranks.send(0, ask, &question, sizeof question, wait);
        };
        char& asked = m_asked[static_cast<size_t>(lane)];
        if (!asked) ask_for_one();
        asked = 0;
        auto pause = 5us;
        for (;; pause = std::min<std::chrono::microseconds>(pause * 2, 500us)) {
            if (const auto message = m_ranks.m_transport->take(0, answers + lane, wait)) {
                position = ByteUnpacker(message->bytes).one<int64_t>();
                break;
            }
            wait();
            std::this_thread::sleep_for(pause);
        }
        if (position == lost_step) throw Error("internal: ranks are in different passes");
        if (m_ahead && position < m_count - m_count / 4) {
            ask_for_one();
            asked = 1;
        }
    }
    m_waited_ns += std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
    return position < m_count ? std::optional(position) : std::nullopt;
}

std::optional<int> SharedTiles::owner(int64_t position, const std::function<bool()>& give_up) {
    if (!m_settled.empty()) return m_settled[static_cast<size_t>(position)];
    for (;;) {
        if (m_on_board) {
            const int64_t word =
                m_ranks.m_board->of(m_pass).owner[position % most_parts].load(std::memory_order_acquire);
            const auto rank = static_cast<int>(word & 0xffff);
            if (word == taken(m_pass, position, rank)) return rank;
        } else {
            const std::lock_guard lock(m_mutex);
            if (const auto found = m_owners.find(position); found != m_owners.end()) {
                const int rank = found->second;
                m_owners.erase(found);
                return rank;
            }
        }
        if (give_up()) return std::nullopt;
        std::this_thread::sleep_for(100us);
    }
}

void SharedTiles::send(int64_t position, const void* bytes, size_t size,
                       const std::function<bool()>& give_up) {
    m_ranks.send(0, part_tag(position), bytes, size, [&] {
        if (give_up()) throw Cancelled();
    });
}

void SharedTiles::receive(int64_t position, int from, void* bytes, size_t size,
                          const std::function<bool()>& give_up) {
    const auto wait = [&] {
        if (give_up()) throw Cancelled();
    };
    for (size_t done = 0; done < size;) {
        const auto message = m_ranks.m_transport->take(from, part_tag(position), wait);
        if (!message) {
            wait();
            std::this_thread::sleep_for(50us);
            continue;
        }
        if (message->bytes.size() > size - done) throw Error("internal: a tile of another rank is too large");
        std::memcpy(static_cast<char*>(bytes) + done, message->bytes.data(), message->bytes.size());
        done += message->bytes.size();
    }
}

void Ranks::for_each(const std::string& what, int64_t units, int members, const CancelFlag* cancel,
                     const std::function<void(int64_t unit, int member)>& work) {
    if (!several()) {
        parallel::for_each(units, members, cancel, work);
        return;
    }
    SharedTiles shared(*this, units);
    std::atomic<bool> stop{false};
    const auto give_up = [&] { return stop || (cancel != nullptr && cancel->requested()); };
    on_threads(
        std::min(members, most_lanes),
        [&](int member) {
            while (!give_up()) {
                const auto unit = shared.next(member, give_up);
                if (!unit) return;
                work(*unit, member);
            }
        },
        [&] { stop = true; });
    if (give_up()) throw Cancelled();
    sum(what, 0); // the root answers requests until all ranks arrive
}

} // namespace hsi::parallel
