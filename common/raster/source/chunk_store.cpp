// SPDX-License-Identifier: MIT
#include "raster/source/chunk_store.h"

#include "core/counted.h"
#include "core/error.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

namespace hsi::raster {
namespace {

/// Buffers of chunks that nobody needs any more are taken again: the system clears new ones.
constexpr size_t most_spare = 2;

/// What is known of a chunk beside its samples.
constexpr uint64_t entry_bytes = 256;

/// Chunks that helpers decode are worth a thread's waking.
constexpr uint64_t least_ahead = uint64_t{32} << 10;

/// Chunks that lie decoded: each is memory to clear once, and one that the caches no longer hold when it is
/// taken.
constexpr uint64_t most_ahead = 8;

/// Reads all of it. \return what the system says; 0: all is well, -1: the file ends before.
int read_at(int file, char* to, uint64_t bytes, uint64_t at) {
    while (bytes > 0) {
        const ssize_t n = ::pread(file, to, bytes, static_cast<off_t>(at));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        if (n == 0) return -1;
        to += n;
        at += static_cast<uint64_t>(n);
        bytes -= static_cast<uint64_t>(n);
    }
    return 0;
}

} // namespace

ChunkStore::ChunkStore(std::string path, std::vector<std::string> names, std::vector<Hdf5Chunks> arrays)
    : m_path(std::move(path)), m_names(std::move(names)), m_arrays(std::move(arrays)),
      m_file(::open(m_path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat info {};
    if (!m_file || ::fstat(m_file.get(), &info) != 0)
        throw Error("cannot open '" + m_path + "': " + std::strerror(errno));
    m_file_bytes = static_cast<uint64_t>(info.st_size);
    for (const Hdf5Chunks& array : m_arrays)
        m_largest = std::max(m_largest, array.chunk_bytes());
}

ChunkStore::~ChunkStore() { stop_helpers(); }

uint64_t ChunkStore::list_bytes() const {
    uint64_t bytes = 0;
    for (const Hdf5Chunks& array : m_arrays)
        bytes += array.places.size() * sizeof(ChunkPlace);
    return bytes;
}

void ChunkStore::keep(uint64_t bytes) {
    const std::lock_guard lock(m_mutex);
    m_most_kept = bytes;
}

void ChunkHands::decode(const ChunkStore& store, const ChunkName& chunk, char* samples) {
    const Hdf5Chunks& array = store.m_arrays[chunk.part];
    const ChunkPlace& place = array.places[chunk.number];
    const uint64_t bytes = array.chunk_bytes();
    const auto fail = [&](const std::string& what) {
        std::string at;
        int64_t rest = chunk.number;
        for (size_t axis = 3; axis-- > 0; rest /= array.count(axis))
            at = std::to_string(rest % array.count(axis) * array.chunk[axis]) + (at.empty() ? "" : ", ") + at;
        throw Error("cannot read '" + store.m_path + "': the chunk of " + store.m_names[chunk.part] + " at " +
                        at + " (" + counted(place.bytes, "byte") + " at byte " +
                        std::to_string(place.offset) + " of the file) " + what,
                    "The file is damaged: fetch or copy it again.");
    };
    const uint64_t end = store.m_file_bytes;
    if (place.offset > end || place.bytes > end - place.offset)
        fail("ends behind the file, which has " + counted(end, "byte"));
    const auto read = [&](char* to) {
        const int reason = read_at(store.m_file.get(), to, place.bytes, place.offset);
        if (reason != 0)
            fail(reason > 0 ? std::string("cannot be read: ") + std::strerror(reason) : "is cut short");
    };
    if (array.coding.filters.empty()) {
        if (place.bytes != bytes) fail("should have " + counted(bytes, "byte"));
        return read(samples);
    }
    // No filter makes more of noise; a size that is wrong must not take memory.
    if (place.bytes > bytes + bytes / 2 + 4096)
        fail("is too long for " + counted(bytes, "byte") + " of samples");
    if (m_stored.size() < place.bytes) m_stored = HostBuffer<char>(std::max<uint64_t>(place.bytes, 64 << 10));
    read(m_stored.data());
    m_decoders.resize(store.m_arrays.size());
    auto& decoder = m_decoders[chunk.part];
    if (!decoder) decoder = std::make_unique<ChunkDecoder>(array.coding, bytes);
    if (const auto wrong = decoder->decode({m_stored.data(), place.bytes}, place.left_out, samples))
        fail(*wrong);
}

ChunkStore::Lease::~Lease() {
    if (m_store != nullptr) m_store->give_back(m_key);
}

char* ChunkStore::Entry::make(uint64_t bytes, std::vector<HostBuffer<char>>& spare) {
    if (bytes < least_ahead) { // no pages of its own
        few = std::make_unique<char[]>(bytes);
        return few.get();
    }
    const auto fits =
        std::find_if(spare.begin(), spare.end(), [&](const auto& b) { return b.size() == bytes; });
    if (fits == spare.end()) {
        many = HostBuffer<char>(bytes);
    } else {
        many = std::move(*fits);
        spare.erase(fits);
    }
    return many.data();
}

ChunkStore::Lease ChunkStore::take(const ChunkName& chunk, bool keep, bool wait, ChunkHands& hands,
                                   char* own) {
    const uint64_t key = key_of(chunk), bytes = bytes_of(key);
    const auto alone = [&] {
        hands.decode(*this, chunk, own);
        Lease lease;
        lease.m_samples = own;
        return lease;
    };
    std::unique_lock lock(m_mutex);
    keep = keep && bytes + entry_bytes <= m_most_kept;
    auto at = m_entries.find(key);
    while (at != m_entries.end() && at->second.state == State::decoding) {
        if (!wait) return {};
        m_changed.wait(lock);
        at = m_entries.find(key);
    }
    if (at != m_entries.end() && at->second.state == State::wanted) { // the helpers have more to do than time
        m_entries.erase(at);
        at = m_entries.end();
    }
    if (at == m_entries.end() && !keep) {
        lock.unlock();
        return alone();
    }
    const bool begun = at == m_entries.end();
    if (begun) {
        make_room(bytes + entry_bytes);
        at = m_entries.try_emplace(key).first;
    }
    Entry& entry = at->second; // stays where it is, whatever else comes and goes
    if (begun) {
        entry.kept = true;
        m_kept += bytes + entry_bytes;
        decode(key, entry, hands, lock);
    }
    if (entry.state == State::failed) std::rethrow_exception(entry.error);
    if (entry.ahead && keep) {
        make_room(bytes + entry_bytes);
        entry.ahead = false;
        m_ahead -= bytes;
        entry.kept = true;
        m_kept += bytes + entry_bytes;
        m_changed.notify_all();
    }
    if (entry.users++ == 0 && entry.resting) {
        m_idle.erase(entry.idle);
        entry.resting = false;
    }
    Lease lease;
    lease.m_store = this;
    lease.m_key = key;
    lease.m_samples = entry.samples();
    return lease;
}

void ChunkStore::decode(uint64_t key, Entry& entry, ChunkHands& hands, std::unique_lock<std::mutex>& lock) {
    entry.state = State::decoding;
    try {
        char* const samples = entry.make(bytes_of(key), m_spare);
        lock.unlock();
        hands.decode(*this, name_of(key), samples);
        lock.lock();
        entry.state = State::ready;
    } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        entry.error = std::current_exception();
        entry.state = State::failed;
    }
    m_changed.notify_all();
}

void ChunkStore::give_back(uint64_t key) {
    const std::lock_guard lock(m_mutex);
    const auto at = m_entries.find(key);
    if (--at->second.users > 0) return;
    if (!at->second.kept) return drop(at);
    at->second.resting = true;
    at->second.idle = m_idle.insert(m_idle.end(), key);
    make_room(0);
}

void ChunkStore::make_room(uint64_t bytes) {
    while (!m_idle.empty() && m_kept + bytes > m_most_kept)
        drop(m_entries.find(m_idle.front()));
}

void ChunkStore::drop(Entries::iterator at) {
    Entry& entry = at->second;
    const uint64_t bytes = bytes_of(at->first);
    if (entry.resting) m_idle.erase(entry.idle);
    if (entry.kept) m_kept -= bytes + entry_bytes;
    if (entry.ahead) m_ahead -= bytes;
    if (entry.many.size() > 0 && m_spare.size() < most_spare) m_spare.push_back(std::move(entry.many));
    m_entries.erase(at);
    m_changed.notify_all();
}

uint64_t ChunkStore::start_helpers(uint64_t bytes, int threads) {
    // Each has a chunk as it is stored and what the decoder holds; and there is one more that is decoded than
    // there are helpers at least.
    if (m_largest < least_ahead) return 0;
    const uint64_t hands = m_largest + ChunkDecoder::held_bytes(m_largest);
    const uint64_t fit = bytes / (hands + 2 * m_largest);
    const auto count = std::min<uint64_t>(fit, static_cast<uint64_t>(std::max(0, threads)));
    if (count == 0) return 0;
    const uint64_t chunks = std::min((bytes - count * hands) / m_largest, std::max(most_ahead, 2 * count));
    const std::lock_guard lock(m_mutex);
    uint64_t started = 0;
    try {
        for (; started < count; ++started)
            m_helpers.emplace_back([this] { serve(); });
    } catch (const std::system_error&) { // no more threads: with those that there are
        if (started == 0) return 0;
    }
    m_most_ahead = chunks * m_largest;
    return started * hands + m_most_ahead;
}

void ChunkStore::want(const std::vector<ChunkName>& chunks) {
    const std::lock_guard lock(m_mutex);
    if (m_helpers.empty()) return;
    for (const ChunkName& chunk : chunks) {
        const uint64_t key = key_of(chunk);
        if (m_entries.try_emplace(key).second) m_wanted.push_back(key);
    }
    m_changed.notify_all();
}

void ChunkStore::forget() {
    std::unique_lock lock(m_mutex);
    m_wanted.clear();
    m_changed.wait(lock, [&] { return m_busy == 0; });
    for (auto at = m_entries.begin(); at != m_entries.end();) {
        const auto next = std::next(at);
        const Entry& entry = at->second;
        if (entry.state == State::wanted || (entry.ahead && entry.users == 0)) drop(at);
        at = next;
    }
}

void ChunkStore::stop_helpers() {
    {
        const std::lock_guard lock(m_mutex);
        if (m_helpers.empty()) return;
        m_end = true;
        m_wanted.clear();
        m_changed.notify_all();
    }
    for (std::thread& helper : m_helpers)
        helper.join();
    forget();
    m_helpers.clear();
    m_spare.clear();
    m_end = false;
}

void ChunkStore::serve() {
    ChunkHands hands;
    std::unique_lock lock(m_mutex);
    while (true) {
        m_changed.wait(lock,
                       [&] { return m_end || (!m_wanted.empty() && m_ahead + m_largest <= m_most_ahead); });
        if (m_end) return;
        const uint64_t key = m_wanted.front();
        m_wanted.pop_front();
        const auto at = m_entries.find(key);
        if (at == m_entries.end() || at->second.state != State::wanted) continue; // somebody was faster
        at->second.ahead = true;
        m_ahead += bytes_of(key);
        ++m_busy;
        decode(key, at->second, hands, lock);
        --m_busy;
        m_changed.notify_all();
    }
}

} // namespace hsi::raster
