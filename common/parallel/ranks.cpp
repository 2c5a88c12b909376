// SPDX-License-Identifier: MIT
#include "parallel/ranks.h"

#include "core/byte_pack.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "core/module_file.h"
#include "core/process_limits.h"
#include "core/system.h"
#include "parallel/thread_job.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <sstream>
#include <utility>
#include <vector>

namespace hsi::parallel {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// The tags of messages; tags of SharedTiles begin at 16.
enum Tag : int { collective = 1, ended = 2, stop = 3, verdict = 4, straight = 5 };

constexpr size_t few_bytes = 128; ///< up to this number of bytes are sent in one message with their label

/// Waits without occupying a processor, a little longer each time. Most messages arrive within some
/// microseconds, and the shortest sleep of a system takes longer, so a few checks come first.
class Patience {
  public:
    explicit Patience(std::chrono::microseconds longest = 200us) : m_longest(longest) {}

    void operator()() {
        if (m_looks < 30) {
            ++m_looks;
            std::this_thread::yield();
            return;
        }
        std::this_thread::sleep_for(m_pause);
        m_pause = std::min(m_pause * 2, m_longest);
    }

  private:
    int m_looks = 0;
    std::chrono::microseconds m_pause{10}, m_longest;
};

std::string packed(const Ending& e) {
    return BytePacker().put(e.code).put(e.echo).put(e.together).put(e.what).put(e.advice).take();
}

Ending unpacked_ending(const std::string& bytes) {
    ByteUnpacker in(bytes);
    Ending e;
    in.get(e.code);
    in.get(e.echo);
    in.get(e.together);
    in.get(e.what);
    in.get(e.advice);
    return e;
}

template <class T>
T unpacked(const std::string& bytes) {
    return ByteUnpacker(bytes).one<T>();
}

/// Keeps an object until the process ends, because the transport may still read it when a run is given up.
template <class T>
void keep_for_good(std::unique_ptr<T> left) {
    static std::mutex mutex;
    static auto& kept = *new std::vector<std::shared_ptr<void>>;
    const std::lock_guard lock(mutex);
    kept.push_back(std::move(left));
}

/// Returns the first text line that the other text does not have.
std::string own_line(const std::string& text, const std::string& other) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (("\n" + other + "\n").find("\n" + line + "\n") == std::string::npos) return line;
    return "nothing";
}

} // namespace

Ranks::Ranks() : m_hosts{"this host"} {}

Ranks::Ranks(std::unique_ptr<Transport> transport, CancelFlag& cancel)
    : m_transport(std::move(transport)), m_cancel(&cancel), m_rank(m_transport->rank()),
      m_size(m_transport->size()), m_hosts(static_cast<size_t>(m_size), "an unknown host") {
    m_watcher = std::thread([this] { watch(); });
}

void Ranks::meet() {
    if (!m_transport) return;
    m_hosts = all("hosts", m_transport->host());
    make_board();
}

Ranks::~Ranks() { stop_watching(); }

int Ranks::threads_of_host(int threads) const {
    if (!several()) return threads;
    const std::string processors = system::processor_set();
    const auto count = std::count(processors.begin(), processors.end(), '1');
    return std::max(threads, static_cast<int>(std::min<int64_t>(int64_t{threads} * local_size(), count)));
}

bool Ranks::several_hosts() const {
    return several() && std::any_of(m_hosts.begin(), m_hosts.end(),
                                    [this](const std::string& host) { return host != m_hosts.front(); });
}

std::string Ranks::name(int rank) const { return "rank " + std::to_string(rank) + " on " + host(rank); }

void Ranks::check_cancelled() const {
    if (m_cancel != nullptr && m_cancel->requested()) throw Cancelled();
}

void Ranks::send(int to, int tag, const void* bytes, size_t size, const std::function<void()>& wait) {
    const char* from = static_cast<const char*>(bytes);
    for (size_t done = 0; done < size;) {
        const size_t count = std::min(size - done, Transport::most_bytes);
        const auto sending = m_transport->send(to, tag, from + done, count);
        // MPI sends a large message piece by piece, whenever the sender calls MPI.
        for (Patience pause(20us); !sending->done(); pause())
            wait();
        done += count;
    }
}

/// Sends a label and the bytes. The label reveals ranks that have made different calls. Up to few_bytes bytes
/// are in the same message as the label; more bytes follow in a second message.
void Ranks::send_labelled(int to, const std::string& label, const std::string& bytes) {
    const auto wait = [this] { check_cancelled(); };
    const bool few = bytes.size() <= few_bytes;
    const std::string head = BytePacker()
                                 .put(label)
                                 .put(static_cast<uint64_t>(bytes.size()))
                                 .put(few ? bytes : std::string())
                                 .take();
    send(to, collective, head.data(), head.size(), wait);
    if (!few) send(to, collective, bytes.data(), bytes.size(), wait);
}

std::string Ranks::receive_labelled(int from, const std::string& label) {
    const auto wait = [this] { check_cancelled(); };
    const auto next = [&] {
        for (Patience pause;; pause()) {
            if (auto message = m_transport->take(from, collective, wait)) return std::move(message->bytes);
            wait();
        }
    };
    const std::string head = next();
    ByteUnpacker in(head);
    std::string other, bytes;
    in.get(other);
    if (other != label)
        throw Error("internal: " + name(m_rank) + " is at '" + label + "' and " + name(from) + " at '" +
                    other + "'");
    const auto size = in.one<uint64_t>();
    in.get(bytes);
    if (bytes.size() == size) return bytes;
    bytes = next();
    bytes.reserve(size);
    while (bytes.size() < size)
        bytes += next();
    return bytes;
}

/// Merges the values up a binomial tree towards rank 0, and sends the merged value down the same tree.
std::string Ranks::up_and_down(const std::string& what, const std::function<std::string()>& packed,
                               const std::function<void(std::string)>& add) {
    const std::string label = what + " " + std::to_string(m_round++);
    int step = 1;
    for (; step < m_size && m_rank % (2 * step) == 0; step *= 2)
        if (m_rank + step < m_size) add(receive_labelled(m_rank + step, label));
    std::string bytes = packed();
    if (m_rank != 0) {
        send_labelled(m_rank - step, label, bytes);
        bytes = receive_labelled(m_rank - step, label);
    }
    for (step /= 2; step > 0; step /= 2)
        if (m_rank + step < m_size) send_labelled(m_rank + step, label, bytes);
    return bytes;
}

std::string Ranks::reduce(const std::string& what, std::string mine, const Merge& merge) {
    if (!several()) return mine;
    return up_and_down(
        what, [&] { return std::move(mine); }, [&](const std::string& bytes) { mine = merge(mine, bytes); });
}

void Ranks::unite(const std::string& what, const std::function<std::string()>& packed,
                  const std::function<void(const std::string& bytes)>& add,
                  const std::function<void(const std::string& bytes)>& set) {
    if (!several()) return;
    const std::string whole = up_and_down(what, packed, add);
    if (!root()) set(whole);
}

std::string Ranks::broadcast(const std::string& what, std::string bytes) {
    if (!root()) bytes.clear();
    return reduce(what, std::move(bytes), [](const std::string& a, const std::string&) { return a; });
}

int64_t Ranks::sum(const std::string& what, int64_t mine) {
    return unpacked<int64_t>(
        reduce(what, BytePacker().put(mine).take(), [](const std::string& a, const std::string& b) {
            return BytePacker().put(unpacked<int64_t>(a) + unpacked<int64_t>(b)).take();
        }));
}

void Ranks::add_up(const std::string& what, std::vector<int64_t>& counts) {
    if (!several()) return;
    const auto numbers = [&](const std::string& bytes) {
        auto list = unpacked<std::vector<int64_t>>(bytes);
        if (list.size() != counts.size()) throw Error("internal: counts of another number");
        return list;
    };
    counts = numbers(
        reduce(what, BytePacker().put(counts).take(), [&](const std::string& a, const std::string& b) {
            auto both = numbers(a);
            const auto other = numbers(b);
            for (size_t i = 0; i < both.size(); ++i)
                both[i] += other[i];
            return BytePacker().put(both).take();
        }));
}

uint64_t Ranks::least(const std::string& what, uint64_t mine) {
    return unpacked<uint64_t>(
        reduce(what, BytePacker().put(mine).take(), [](const std::string& a, const std::string& b) {
            return BytePacker().put(std::min(unpacked<uint64_t>(a), unpacked<uint64_t>(b))).take();
        }));
}

bool Ranks::any(const std::string& what, bool mine) { return sum(what, mine ? 1 : 0) > 0; }

std::vector<std::string> Ranks::all(const std::string& what, const std::string& mine) {
    const std::string whole = reduce(what, BytePacker().put(m_rank).put(mine).take(),
                                     [](const std::string& a, const std::string& b) { return a + b; });
    std::vector<std::string> list(static_cast<size_t>(size()));
    for (ByteUnpacker in(whole); !in.empty();) {
        const auto rank = in.one<int>();
        in.get(list.at(several() ? static_cast<size_t>(rank) : 0));
    }
    return list;
}

void Ranks::all_in_pieces(const std::string& what, const std::function<std::string()>& next,
                          const std::function<void(int rank, const std::string& piece)>& take) {
    for (bool more = true; more;) {
        const auto pieces = all(what, next());
        more = false; // remains false if the pieces of all ranks are empty
        for (size_t rank = 0; rank < pieces.size(); ++rank) {
            if (pieces[rank].empty()) continue;
            more = true;
            take(static_cast<int>(rank), pieces[rank]);
        }
    }
}

void Ranks::exchange(const std::string& what, const std::function<std::string(int to)>& next,
                     const std::function<void(int from, const std::string& piece)>& take) {
    if (!several()) return;
    const std::string label = what + " " + std::to_string(m_round++);
    const auto wait = [this] { check_cancelled(); };
    // A deque does not move its strings. The transport may still read the strings of a run that was given up.
    using UnderWay = std::deque<std::pair<std::string, std::unique_ptr<Sending>>>;
    auto under_way = std::make_unique<UnderWay>();
    try {
        // In each round, each rank sends to one other rank and receives from one other rank: a label first,
        // an empty message last.
        for (int step = 1; step < m_size; ++step) {
            const int to = (m_rank + step) % m_size, from = (m_rank - step + m_size) % m_size;
            bool labelled = false, sent = false, met = false, heard = false;
            for (Patience pause; !sent || !heard || !under_way->empty();) {
                bool moved = false;
                while (!under_way->empty() && under_way->front().second->done()) {
                    under_way->pop_front();
                    moved = true;
                }
                if (!sent && under_way->size() < 8) {
                    auto& [bytes, sending] = under_way->emplace_back(labelled ? next(to) : label, nullptr);
                    sent = labelled && bytes.empty();
                    labelled = true;
                    sending = m_transport->send(to, straight, bytes.data(), bytes.size());
                    moved = true;
                }
                if (const auto message = heard ? std::nullopt : m_transport->take(from, straight, wait)) {
                    if (!met && message->bytes != label)
                        throw Error("internal: " + name(m_rank) + " is at '" + label + "' and " + name(from) +
                                    " at '" + message->bytes + "'");
                    heard = met && message->bytes.empty();
                    if (met && !heard) take(from, message->bytes);
                    met = true;
                    moved = true;
                }
                if (moved) {
                    pause = Patience();
                    continue;
                }
                wait();
                pause();
            }
        }
    } catch (...) {
        keep_for_good(std::move(under_way));
        throw;
    }
}

void Ranks::swap_borders(const std::string& what, std::string& before, std::string& after) {
    if (!several()) return;
    const std::string label = what + " " + std::to_string(m_round++);
    const auto wait = [this] { check_cancelled(); };
    struct Side {
        int other;
        std::string* bytes;
        std::string mine, theirs;
        uint64_t due = 0; // number of bytes that have not arrived; 0 until the size is known
        bool met = false;
    };
    // The sides are on the heap, since the transport may still read them after a run was given up.
    auto sides = std::make_unique<std::vector<Side>>();
    if (m_rank > 0) sides->push_back({m_rank - 1, &before, {}, {}});
    if (m_rank + 1 < m_size) sides->push_back({m_rank + 1, &after, {}, {}});
    auto under_way = std::make_unique<std::vector<std::unique_ptr<Sending>>>();
    try {
        for (Side& side : *sides) {
            const auto text = BytePacker().put(label).put(*side.bytes).take();
            side.mine = BytePacker().put(static_cast<uint64_t>(text.size())).take() + text;
            for (size_t done = 0; done < side.mine.size(); done += Transport::most_bytes)
                under_way->push_back(
                    m_transport->send(side.other, straight, side.mine.data() + done,
                                      std::min(side.mine.size() - done, Transport::most_bytes)));
        }
        for (Patience pause;; pause()) {
            std::erase_if(*under_way, [](const auto& sending) { return sending->done(); });
            bool all = under_way->empty();
            for (Side& side : *sides) {
                if (side.met && side.due == 0) continue;
                if (const auto message = m_transport->take(side.other, straight, wait)) {
                    if (!side.met) side.due = sizeof(uint64_t) + unpacked<uint64_t>(message->bytes);
                    side.met = true;
                    side.due -= std::min<uint64_t>(side.due, message->bytes.size());
                    side.theirs += message->bytes;
                }
                all = all && side.met && side.due == 0;
            }
            if (all) break;
            wait();
        }
        for (Side& side : *sides) {
            ByteUnpacker in(side.theirs);
            (void)in.one<uint64_t>();
            std::string theirs;
            in.get(theirs);
            if (theirs != label)
                throw Error("internal: " + name(m_rank) + " is at '" + label + "' and " + name(side.other) +
                            " at '" + theirs + "'");
            in.get(*side.bytes);
        }
    } catch (...) {
        keep_for_good(std::move(sides));
        keep_for_good(std::move(under_way));
        throw;
    }
}

void Ranks::agree(const std::string& what, const std::string& mine, const std::string& fault,
                  const std::string& advice) {
    if (!several()) return;
    const auto list = all(what, mine);
    for (int r = 1; r < m_size; ++r)
        if (const std::string& other = list[static_cast<size_t>(r)]; other != list.front())
            throw Error(name(r) + " " + fault + " than " + name(0) + ": " + own_line(other, list.front()) +
                            " and " + own_line(list.front(), other),
                        advice);
}

// --- the end of a run

/// Runs in parallel to the work and receives messages that end the run. On a rank that must stop, sets the
/// flag that all long work reads.
void Ranks::watch() {
    while (!m_quit) {
        if (!take_endings()) return;
        std::unique_lock lock(m_mutex);
        m_quits.wait_for(lock, 10ms, [this] { return m_quit.load(); });
    }
}

void Ranks::stop_watching() {
    {
        const std::lock_guard lock(m_mutex);
        m_quit = true;
    }
    m_quits.notify_all();
    if (m_watcher.joinable()) m_watcher.join();
}

/// Receives the ends of other ranks. Returns false if no more ends can arrive, because the transport, and
/// thereby the job, has ended.
bool Ranks::take_endings() {
    const auto give_up = [this] {
        if (m_quit) throw Cancelled();
    };
    try {
        if (m_rank == 0) {
            while (auto message = m_transport->take(any_rank, ended, give_up)) {
                const Ending ending = unpacked_ending(message->bytes);
                const std::lock_guard lock(m_mutex);
                m_endings[message->from] = ending;
                if (ending.code != 0) m_stopped = true;
            }
            if (m_stopped) stop_others();
        } else if (m_transport->take(0, stop, give_up)) {
            m_stopped = true;
            m_cancel->request();
        }
        return true;
    } catch (const std::exception&) {
        m_stopped = true;
        m_cancel->request();
        return false;
    }
}

/// On the root: tells the ranks that still work to stop. Later calls send nothing.
void Ranks::stop_others() {
    m_cancel->request();
    const std::lock_guard lock(m_mutex);
    if (!m_sent.empty()) return;
    static const char nothing = 0;
    for (int r = 1; r < m_size; ++r)
        m_sent.push_back(m_transport->send(r, stop, &nothing, 1));
}

/// Returns the cause of the job's failure: the failure of the lowest rank that is not a consequence of
/// another failure.
std::optional<Ending> Ranks::primary() const {
    const std::lock_guard lock(m_mutex);
    const Ending* found = nullptr;
    int where = 0, same = 0;
    for (const auto& [rank, ending] : m_endings) {
        if (ending.code == 0) continue;
        if (found == nullptr || (found->echo && !ending.echo)) {
            found = &ending;
            where = rank;
            same = 0;
        }
        if (ending.what == found->what) ++same;
    }
    if (found == nullptr) return std::nullopt;
    Ending result = *found;
    if (same < m_size && !result.echo) result.what += " (" + name(where) + ")";
    return result;
}

namespace {

/// Waits for the ends of other ranks. If a signal arrives before or during the wait, the wait is short: all
/// ranks have received the signal, or the starter kills them, sometimes a second later. The root gives up
/// first, so that it can inform the others.
class LastWait {
  public:
    LastWait(const CancelFlag& cancel, bool root, double seconds = 30)
        : m_cancel(cancel), m_short(root ? 0.4 : 0.6), m_end(later(seconds)) {}
    bool over() {
        if (!m_signalled && m_cancel.interrupted()) {
            m_signalled = true;
            m_end = std::min(m_end, later(m_short));
        }
        return Clock::now() > m_end;
    }
    bool signalled() const { return m_signalled; }

  private:
    static Clock::time_point later(double seconds) {
        return Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }
    const CancelFlag& m_cancel;
    double m_short;
    Clock::time_point m_end;
    bool m_signalled = false;
};

} // namespace

bool Ranks::wait_for_endings(double seconds, bool until_failure) {
    LastWait last(*m_cancel, true, seconds);
    for (Patience pause;; pause()) {
        take_endings(); // the watcher calls this function only now and then
        {
            const std::lock_guard lock(m_mutex);
            if (static_cast<int>(m_endings.size()) >= m_size - (until_failure ? 1 : 0)) return true;
        }
        if (until_failure ? m_stopped || m_cancel->requested() : last.over()) return false;
    }
}

void Ranks::await_others() {
    if (m_size == 1 || m_rank != 0) return;
    if (!wait_for_endings(30, true) || m_stopped) throw Cancelled();
}

Ending Ranks::conclude(Ending mine) noexcept {
    if (m_size == 1) return mine;
    if (m_cancel->requested() && mine.code != 0) mine.echo = true;
    // The root's completed work is kept; work of other ranks is useless without the root.
    if (m_cancel->interrupted() && m_rank != 0 && mine.code == 0) mine = {1, Cancelled().what(), "", true};
    mine.together = !m_cancel->interrupted();
    try {
        const Ending all = m_rank == 0 ? conclude_all(mine) : conclude_mine(mine);
        m_together = all.together && mine.together;
        return all;
    } catch (const std::exception&) {
        if (mine.code == 0) mine = {1, "the other ranks of the job did not answer", "", false};
        mine.together = false;
        if (m_rank != 0 && m_cancel->interrupted())
            mine.what.clear(); // the message is printed once, by the root
        return mine;
    }
}

/// On the root: sends the verdict, which states how the job has ended. \throws Cancelled if another rank does
/// not receive the verdict.
Ending Ranks::conclude_all(Ending mine) {
    LastWait last(*m_cancel, true);
    {
        const std::lock_guard lock(m_mutex);
        m_endings[0] = mine;
    }
    bool complete = true;
    if (mine.code != 0) {
        m_stopped = true;
        stop_others();
        complete = wait_for_endings(30, false);
    }
    Ending all = primary().value_or(Ending{});
    {
        const std::lock_guard lock(m_mutex);
        all.together = complete && std::all_of(m_endings.begin(), m_endings.end(),
                                               [](const auto& one) { return one.second.together; });
    }
    // The verdict has no texts, since only the root prints them.
    m_verdict = packed({all.code, "", "", all.echo, all.together});
    // If a verdict states that ranks leave alone, its receiver also leaves alone, and mpirun then kills the
    // other ranks. finish() sends this verdict, after all messages have been printed.
    if (!all.together) return all;
    send_verdict();
    for (const auto& sending : m_verdicts)
        for (Patience pause; !sending->done(); pause())
            if (last.over() && (m_stopped || mine.code != 0)) throw Cancelled();
    return all;
}

void Ranks::send_verdict() {
    for (int r = 1; r < m_size; ++r)
        m_verdicts.push_back(m_transport->send(r, verdict, m_verdict.data(), m_verdict.size()));
}

/// On the other ranks: receives the verdict. \throws Cancelled if the root has no verdict.
Ending Ranks::conclude_mine(const Ending& mine) {
    LastWait last(*m_cancel, false);
    const auto wait = [&] {
        if (last.over() && (m_stopped || mine.code != 0 || last.signalled())) throw Cancelled();
    };
    const std::string bytes = packed(mine);
    const auto sending = m_transport->send(0, ended, bytes.data(), bytes.size());
    for (Patience pause; !sending->done(); pause())
        wait();
    for (Patience pause;; pause()) {
        if (const auto message = m_transport->take(0, verdict, wait)) return unpacked_ending(message->bytes);
        wait();
    }
}

void Ranks::finish(int code) {
    stop_watching();
    if (!m_transport) return;
    if (m_together) {
        m_transport->finish(code);
        return;
    }
    try {
        if (m_rank == 0 && m_verdicts.empty()) send_verdict();
    } catch (const std::exception&) { // no receiver is left
    }
    m_transport->leave(code);
}

namespace {

Ranks* g_ranks = nullptr;
thread_local Ranks* t_ranks = nullptr;

/// Returns a number from the environment; nullopt if it is not set.
std::optional<int> number(const char* variable) {
    const char* const text = std::getenv(variable);
    if (text == nullptr || *text == 0) return std::nullopt;
    return std::atoi(text);
}

/// Returns the environment variable which shows that this process was started as one of several; null if
/// there is none. Knows Open MPI's mpirun, the starters of MPICH and similar ones, and schedulers with PMI or
/// PMIx.
const char* sign_of_several() {
    for (const char* size : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"})
        if (const auto n = number(size)) {
            if (*n > 1) return size;
            if (size != std::string("MPI_LOCALNRANKS")) return nullptr;
        }
    // PMIx does not state the size in the environment; Slurm does.
    if (std::getenv("PMIX_RANK") == nullptr) return nullptr;
    return number("SLURM_STEP_NUM_TASKS").value_or(2) > 1 ? "PMIX_RANK" : nullptr;
}

const char advice_alone[] =
    "Start it without mpirun or srun, or set HSI_MPI=NO to make each process a separate run.";

} // namespace

Ranks& ranks() {
    static Ranks alone;
    if (t_ranks != nullptr) return *t_ranks;
    return g_ranks != nullptr ? *g_ranks : alone;
}

Group& group() { return ranks(); }

Job::Job(Ranks& ranks) : m_before(g_ranks) { g_ranks = &ranks; }
Job::~Job() { g_ranks = m_before; }

ThreadJob::ThreadJob(Ranks& ranks) : m_before(t_ranks) { t_ranks = &ranks; }
ThreadJob::~ThreadJob() { t_ranks = m_before; }

std::unique_ptr<Ranks> join_ranks(CancelFlag& cancel) {
    const char* const sign = sign_of_several();
    if (sign == nullptr) return nullptr;
    if (const char* wish = std::getenv("HSI_MPI"); wish != nullptr && std::string(wish) == "NO")
        return nullptr;
    const std::string started =
        std::string("this process was started as one of several (") + sign + "=" + std::getenv(sign) + ")";
    const std::string file = module_file("hsi_mpi.so");
    if (file.empty())
        throw Error(
            started +
                ", but the module hsi_mpi.so was not found, and all processes would write the same dst "
                "(looked in " +
                module_places() + ")",
            std::string("Build with MPI installed (Debian: libopenmpi-dev), or set HSI_MODULE_PATH. ") +
                advice_alone);
    // MPI loads its own modules, which search for MPI's symbols.
    std::string why;
    void* const handle = open_module(file, RTLD_NOW | RTLD_GLOBAL, why);
    if (handle == nullptr)
        throw Error(started + ", but the MPI module does not load: " + why,
                    std::string("Put the MPI library that it was built with on LD_LIBRARY_PATH. ") +
                        advice_alone);
    check_module(handle, file);
    using Make = Transport* (*)(std::string * fault);
    const auto make = reinterpret_cast<Make>(dlsym(handle, "hsi_mpi_transport"));
    if (make == nullptr) throw Error("internal: " + file + " has no hsi_mpi_transport");
    std::string fault;
    std::unique_ptr<Transport> transport(make(&fault));
    if (!transport) throw Error(started + ", but MPI does not start: " + fault, advice_alone);
    if (transport->size() < 2)
        throw Error(
            started + ", but MPI reports only one process",
            std::string("Use the mpirun of the MPI library that hsi_mpi.so was built with; with srun, "
                        "--mpi=pmix or --mpi=pmi2. ") +
                advice_alone);
    return std::make_unique<Ranks>(std::move(transport), cancel);
}

} // namespace hsi::parallel
