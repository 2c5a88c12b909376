// SPDX-License-Identifier: MIT
#include "raster/io/block_store.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <system_error>

namespace hsi::raster {
namespace {

/// The number of unused buffers that are kept for later blocks. New buffers would cost time, because the
/// operating system clears their memory.
constexpr size_t most_spare = 2;

/// Estimated memory of a block's entry in the store, without the block's samples.
constexpr uint64_t entry_bytes = 256;

/// The smallest block size for which waking a thread pays.
constexpr uint64_t least_ahead = uint64_t{1} << 10;

/// Blocks below this size are on the heap, larger blocks on separate memory pages.
constexpr uint64_t few_bytes = uint64_t{32} << 10;

/// The limit of bytes that are decoded while further bytes of a remote file arrive. Decoding ahead has no
/// benefit after all bytes have arrived.
constexpr uint64_t enough_decoded = uint64_t{512} << 20;

/// The number of blocks decoded in advance. It is small because each block needs memory that must be cleared.
/// A block that waits for long may also have left the CPU's caches when a reader takes it.
constexpr uint64_t most_in_advance = 8;

} // namespace

BlockRange BlockRange::of(int64_t begin, int64_t end, int64_t block, int64_t scene_end) {
    BlockRange range{begin / block, (end - 1) / block, -1, std::numeric_limits<int64_t>::max()};
    if (begin % block != 0) range.keep_to = range.first + 1;
    if (end % block != 0 && end < scene_end) range.keep_from = range.last - 1;
    return range;
}

uint64_t BlockStore::share_memory(uint64_t most, const BlockRow& row, int64_t first_line, int64_t end_line,
                                  int lanes) {
    // The kept rows of blocks are enough for one tile of tile_lines lines per worker, even if the tiles cross
    // a border of two rows of blocks. If blocks have at most tile_lines lines, tiles follow the blocks
    // instead.
    constexpr int64_t tile_lines = 16, least_lines = 4;
    const uint64_t row_bytes = row.bytes + row.blocks * entry_bytes;
    const int64_t all = (end_line - 1) / row.lines - first_line / row.lines + 1,
                  wished = std::min(all, (tile_lines * lanes + row.lines - 1) / row.lines + 1),
                  rows = std::min(wished, static_cast<int64_t>(most / row_bytes)),
                  kept = rows == all ? end_line - first_line : (rows - 1) * row.lines;
    if (row.lines > tile_lines && kept >= std::min(least_lines * lanes, end_line - first_line)) {
        m_kept_lines = kept;
        m_most_kept = most = static_cast<uint64_t>(rows) * row_bytes;
    } else { // keeps only the common part of the windows of neighbouring tiles
        most = std::min(most / 2, static_cast<uint64_t>(wished) * row_bytes);
        // The memory is also taken if it is too small to keep blocks. The advice on -memory is computed from
        // the memory that is left with a smaller -memory, and this must not be a smaller fraction of -memory.
        // The helper threads may use the memory instead.
        (most < 8 * row.largest ? m_left_over : m_most_kept) = most;
    }
    return most;
}

uint64_t BlockStore::share_ahead(uint64_t most, uint64_t all) {
    m_most_ahead = std::min({most, all, enough_decoded});
    return m_most_ahead;
}

BlockStore::Lease::~Lease() {
    if (m_store != nullptr) m_store->give_back(m_block);
}

char* BlockStore::Entry::make(std::vector<HostBuffer<char>>& spare) {
    if (bytes < few_bytes) {
        few = std::make_unique_for_overwrite<char[]>(bytes);
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

BlockStore::Lease BlockStore::take(const Block& block, bool keep_it, bool wait, BlockHands& hands,
                                   char* own) {
    std::unique_lock lock(m_mutex);
    keep_it = keep_it && block.bytes + entry_bytes <= m_most_kept;
    auto at = m_entries.find(block.name);
    while (at != m_entries.end() && at->second.state == State::decoding) {
        if (!wait) return {};
        m_changed.wait(lock);
        at = m_entries.find(block.name);
    }
    // The helpers have not begun this block, so the reader decodes it.
    if (at == m_entries.end() && !m_wanted.empty())
        if (const auto next = std::find(m_wanted.begin(), m_wanted.end(), block); next != m_wanted.end())
            m_wanted.erase(next);
    if (at == m_entries.end() && !keep_it) {
        lock.unlock();
        hands.decode(block.name, own);
        return Lease(own);
    }
    const bool begun = at == m_entries.end();
    if (begun) at = m_entries.try_emplace(block.name).first;
    Entry& entry = at->second; // the reference remains valid when other entries are added or removed
    if (begun) {
        entry.bytes = block.bytes;
        keep(entry);
        decode(block.name, entry, hands, lock);
    }
    if (entry.state == State::failed) std::rethrow_exception(entry.error);
    if (entry.ahead && keep_it) keep(entry);
    if (entry.users++ == 0 && entry.resting) {
        m_idle.erase(entry.idle);
        entry.resting = false;
    }
    Lease lease(entry.samples());
    lease.m_store = this;
    lease.m_block = block.name;
    return lease;
}

bool BlockStore::holds(const Block& block) {
    const std::lock_guard lock(m_mutex);
    return m_entries.count(block.name) > 0;
}

void BlockStore::keep(Entry& entry) {
    make_room(entry.bytes + entry_bytes);
    entry.kept = true;
    m_kept += entry.bytes + entry_bytes;
    if (!entry.ahead) return;
    entry.ahead = false;
    m_ahead -= entry.bytes;
    m_changed.notify_all();
}

void BlockStore::decode(uint64_t block, Entry& entry, BlockHands& hands, std::unique_lock<std::mutex>& lock) {
    entry.state = State::decoding;
    try {
        char* const samples = entry.make(m_spare);
        lock.unlock();
        hands.decode(block, samples);
        lock.lock();
        entry.state = State::ready;
    } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        entry.error = std::current_exception();
        entry.state = State::failed;
    }
    m_changed.notify_all();
}

void BlockStore::give_back(uint64_t block) {
    const std::lock_guard lock(m_mutex);
    const auto at = m_entries.find(block);
    if (--at->second.users > 0) return;
    if (!at->second.kept) return drop(at);
    at->second.resting = true;
    at->second.idle = m_idle.insert(m_idle.end(), block);
    make_room(0);
}

void BlockStore::make_room(uint64_t bytes) {
    while (!m_idle.empty() && m_kept + bytes > m_most_kept)
        drop(m_entries.find(m_idle.front()));
}

void BlockStore::drop(Entries::iterator at) {
    Entry& entry = at->second;
    if (entry.resting) m_idle.erase(entry.idle);
    if (entry.kept) m_kept -= entry.bytes + entry_bytes;
    if (entry.ahead) m_ahead -= entry.bytes;
    if (entry.many.size() > 0 && m_spare.size() < most_spare) m_spare.push_back(std::move(entry.many));
    m_entries.erase(at);
    m_changed.notify_all();
}

uint64_t BlockStore::start_helpers(uint64_t bytes, int threads, uint64_t largest, uint64_t hands_bytes,
                                   const MakeHands& make) {
    if (largest < least_ahead) return 0;
    bytes += m_left_over;
    const uint64_t fit = bytes / (hands_bytes + largest);
    const auto count = std::min<uint64_t>(fit, static_cast<uint64_t>(std::max(0, threads)));
    if (count == 0) return 0;
    const std::lock_guard lock(m_mutex);
    m_largest = largest;
    m_most_ahead =
        std::min((bytes - count * hands_bytes) / largest, std::max(most_in_advance, 2 * count)) * largest;
    try {
        for (uint64_t k = 0; k < count; ++k)
            m_helpers.emplace_back([this, hands = std::shared_ptr<BlockHands>(make())] { serve(*hands); });
    } catch (const std::system_error&) {
        // The system starts no more threads, so the work continues with the existing threads.
        if (m_helpers.empty()) return 0;
    }
    return m_helpers.size() * hands_bytes + m_most_ahead;
}

void BlockStore::want(const std::vector<Block>& blocks) {
    const std::lock_guard lock(m_mutex);
    if (m_helpers.empty()) return;
    m_wanted.insert(m_wanted.end(), blocks.begin(), blocks.end());
    m_changed.notify_all();
}

void BlockStore::forget() {
    std::unique_lock lock(m_mutex);
    m_wanted.clear();
    m_awaited.clear();
    m_arrived.clear();
    m_changed.wait(lock, [&] { return m_busy == 0; });
    for (auto at = m_entries.begin(); at != m_entries.end();) {
        const auto next = std::next(at);
        if (at->second.ahead && at->second.users == 0) drop(at);
        at = next;
    }
}

void BlockStore::stop_helpers() {
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

void BlockStore::serve(BlockHands& hands) {
    std::unique_lock lock(m_mutex);
    while (true) {
        m_changed.wait(lock,
                       [&] { return m_end || (!m_wanted.empty() && m_ahead + m_largest <= m_most_ahead); });
        if (m_end) return;
        const Block block = m_wanted.front();
        m_wanted.pop_front();
        decode_ahead(block, hands, lock);
    }
}

void BlockStore::decode_ahead(const Block& block, BlockHands& hands, std::unique_lock<std::mutex>& lock) {
    const auto [at, added] = m_entries.try_emplace(block.name);
    if (!added) return; // the block was kept for another tile, or a thread decodes it
    Entry& entry = at->second;
    entry.bytes = block.bytes;
    entry.ahead = true;
    m_ahead += entry.bytes;
    ++m_busy;
    decode(block.name, entry, hands, lock);
    --m_busy;
    m_changed.notify_all();
}

// --- Remote files

void BlockStore::await(RemoteFile& file, const RemoteFile::Key& key, const std::vector<Placed>& blocks) {
    RemoteFile::Extents extents;
    for (const Placed& placed : blocks)
        extents.push_back(placed.place);
    file.announce(key, extents);
    for (const auto& [block, place] : blocks) {
        const bool here = file.is_here(place);
        const std::lock_guard lock(m_mutex);
        if (m_most_ahead == 0 || place.begin >= place.end) continue;
        if (here)
            m_arrived.try_emplace(place.begin, block);
        else
            m_awaited.try_emplace(place.begin, Awaited{place.end, block});
    }
}

void BlockStore::find_arrived(RemoteFile& file) {
    for (const RemoteFile::Extent& extent : file.take_arrived()) {
        // The previous awaited block may end within the new bytes.
        auto at = m_awaited.lower_bound(extent.begin);
        if (at != m_awaited.begin() && std::prev(at)->second.end > extent.begin) --at;
        while (at != m_awaited.end() && at->first < extent.end) {
            const auto next = std::next(at);
            if (file.is_here({at->first, at->second.end})) {
                m_arrived.try_emplace(at->first, at->second.block);
                m_awaited.erase(at);
            }
            at = next;
        }
    }
}

std::optional<BlockStore::Block> BlockStore::next_arrived() {
    while (!m_arrived.empty()) {
        const Block block = m_arrived.begin()->second;
        const bool there = m_entries.count(block.name) > 0;
        if (!there && m_ahead + block.bytes > m_most_ahead) break;
        m_arrived.erase(m_arrived.begin());
        if (!there) return block;
    }
    return std::nullopt;
}

void BlockStore::wait_for(RemoteFile& file, const RemoteFile::Extent& place, BlockHands& hands) {
    {
        const std::lock_guard lock(m_mutex);
        m_awaited.erase(place.begin);
        m_arrived.erase(place.begin);
        if (m_most_ahead == 0 || !m_helpers.empty()) return;
    }
    uint64_t answered = 0;
    while (!file.is_here(place, &answered)) {
        std::unique_lock lock(m_mutex);
        find_arrived(file);
        if (const auto block = next_arrived())
            decode_ahead(*block, hands, lock);
        else if (!m_arrived.empty()) // no memory for further blocks
            return;
        else {
            lock.unlock();
            if (!file.wait_for_more(place, answered)) return;
        }
    }
}

} // namespace hsi::raster
