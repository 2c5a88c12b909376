// SPDX-License-Identifier: MIT
#include "gdal/lanes.h"

#include "core/error.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <ctime>
#include <deque>
#include <list>
#include <mutex>
#include <unordered_map>

namespace hsi::plugin {
namespace {

constexpr size_t most_functions = 4096;                   ///< maximum number of functions in the cache
constexpr size_t most_function_bytes = size_t{512} << 20; ///< maximum total size of the functions' models
constexpr size_t most_idle_bytes = size_t{64} << 20;      ///< maximum total size of idle lanes

/// Returns nanoseconds since 1970.
int64_t nanoseconds(const timespec& time) { return int64_t{1000000000} * time.tv_sec + time.tv_nsec; }

int64_t now() {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    return nanoseconds(time);
}

/// Identifies the content of a file: a stamp differs if the file was replaced or changed. Programs can set
/// the time of modification (cp -p, tar, rsync), but not the time of the last change to the inode.
struct Stamp {
    std::string path;
    std::array<int64_t, 6> facts{};
    bool settled = true; ///< true if any later change will alter the stamp

    /// `before` is a time before the file was read.
    Stamp(std::string name, int64_t before) : path(std::move(name)) {
        VSIStatBufL info;
        if (VSIStatL(path.c_str(), &info) != 0) return;
        const int64_t modified = nanoseconds(info.st_mtim), changed = nanoseconds(info.st_ctim);
        facts = {1,
                 static_cast<int64_t>(info.st_dev),
                 static_cast<int64_t>(info.st_ino),
                 info.st_size,
                 modified,
                 changed};
        // File systems store times in steps of some milliseconds, and GDAL's virtual file systems in seconds.
        // A file that was changed within the last step may change again with the same time stamp.
        constexpr int64_t step = 50'000'000, long_step = 1'000'000'000;
        settled = changed != 0 ? changed + step < before : modified + long_step < before;
    }
    bool current() const { return settled && facts == Stamp(path, 0).facts; }
};

struct Entry {
    std::string key, folder;
    std::vector<std::string> list;
    std::vector<Stamp> stamps;
    std::shared_ptr<const Function> function;
    size_t bytes = 0;
    size_t hash = 0;

    bool matches(const std::string& other_key, CSLConstList other, const std::string& other_folder) const {
        if (key != other_key || folder != other_folder) return false;
        size_t k = 0;
        for (; other != nullptr && *other != nullptr; ++other, ++k)
            if (k >= list.size() || std::strcmp(list[k].c_str(), *other) != 0) return false;
        return k == list.size();
    }
};

/// Returns a hash. It uses only the length and both ends of long texts; matches() compares the whole texts.
size_t hash_of(const std::string& key, CSLConstList list, const std::string& folder) {
    size_t h = 1469598103934665603u;
    const auto add = [&](const char* p, size_t n) {
        for (size_t i = 0; i < n; ++i)
            h = (h ^ static_cast<unsigned char>(p[i])) * 1099511628211u;
    };
    add(key.data(), key.size());
    add(folder.data(), folder.size());
    constexpr size_t most = 256;
    for (; list != nullptr && *list != nullptr; ++list) {
        const size_t n = std::strlen(*list);
        h = (h ^ n) * 1099511628211u;
        if (n <= 2 * most) {
            add(*list, n);
        } else {
            add(*list, most);
            add(*list + n - most, most);
        }
    }
    return h;
}

struct State {
    std::mutex mutex; ///< guards all members below; held briefly, and never while parsing or computing
    std::list<Entry> entries; ///< in order of use, the least recently used entry last
    std::unordered_multimap<size_t, std::list<Entry>::iterator> by_hash;
    size_t entry_bytes = 0;
    std::deque<std::unique_ptr<Lane>> idle; ///< the lane that was idle longest is first
    size_t idle_bytes = 0;
};

std::atomic<pid_t> device_starter{0};

/// Returns the state. It is created at first use and never destroyed, because other threads may use it while
/// the process exits. The fork handlers release its lock in the child process.
State& state() {
    static State* const made = [] {
        static State* const s = new State;
        pthread_atfork([] { s->mutex.lock(); }, [] { s->mutex.unlock(); }, [] { s->mutex.unlock(); });
        return s;
    }();
    return *made;
}

void forget(State& s, std::list<Entry>::iterator entry, std::list<Entry>& dropped) {
    const auto [begin, end] = s.by_hash.equal_range(entry->hash);
    for (auto it = begin; it != end; ++it)
        if (it->second == entry) {
            s.by_hash.erase(it);
            break;
        }
    s.entry_bytes -= entry->bytes;
    dropped.splice(dropped.end(), s.entries, entry);
}

std::list<Entry>::iterator find(State& s, size_t hash, const std::string& key, CSLConstList list,
                                const std::string& folder) {
    const auto [begin, end] = s.by_hash.equal_range(hash);
    for (auto it = begin; it != end; ++it)
        if (it->second->matches(key, list, folder)) return it->second;
    return s.entries.end();
}

/// Returns how many pixels of `function` fit in the memory of another function's lane; 0 if the lane is not
/// suitable.
int64_t capacity_for(const Lane& lane, const Function& function) {
    const Function& old = *lane.function;
    const auto bands = function.operation->output_bands();
    if (old.device || function.device || bands.size() != lane.out.size() ||
        old.operation->allocator() != function.operation->allocator())
        return 0;
    int64_t fits = static_cast<int64_t>(lane.in.size()) / function.bands;
    for (size_t k = 0; k < bands.size(); ++k)
        fits = std::min(fits, static_cast<int64_t>(lane.out[k].size()) / bands[k]);
    return fits;
}

} // namespace

size_t Lane::bytes() const {
    size_t floats = in.size();
    for (const auto& buffer : out)
        floats += buffer.size();
    const stream::TileLimits limits{capacity, 1, capacity, 1};
    return floats * sizeof(float) + static_cast<size_t>(function->operation->scratch_bytes(limits));
}

void Lane::process() {
    Tile tile;
    tile.core = tile.window = {0, 0, count, 1};
    const auto view = CubeView<float>::packed(in.data(), function->bands, 1, count);
    std::vector<CubeView<float>> views;
    const auto bands = function->operation->output_bands();
    for (size_t k = 0; k < bands.size(); ++k)
        views.push_back(CubeView<float>::packed(out[k].data(), bands[k], 1, count));
    worker->process(tile, view, views);
}

int64_t slice_pixels(const Function& function) {
    const int64_t bytes = function.device ? int64_t{32} << 20 : int64_t{1} << 20;
    constexpr int64_t unit = 512; // number of pixels that the operations process together
    return std::clamp(bytes / (4 * function.bands) / unit * unit, unit,
                      int64_t{1} << (function.device ? 16 : 14));
}

std::shared_ptr<const Function> recall(const std::string& key, CSLConstList list, const std::string& folder,
                                       const std::function<Function(const Arguments&)>& make) {
    State& s = state();
    const size_t hash = hash_of(key, list, folder);
    std::vector<Stamp> stamps;
    {
        const std::lock_guard lock(s.mutex);
        const auto found = find(s, hash, key, list, folder);
        if (found != s.entries.end()) {
            s.entries.splice(s.entries.begin(), s.entries, found);
            if (found->stamps.empty()) return found->function;
            stamps = found->stamps;
        }
    }
    if (!stamps.empty() &&
        std::all_of(stamps.begin(), stamps.end(), [](const Stamp& x) { return x.current(); })) {
        const std::lock_guard lock(s.mutex);
        const auto found = find(s, hash, key, list, folder);
        if (found != s.entries.end()) return found->function;
    }
    // Several threads may call this function with the same arguments. Each thread then creates its own
    // function. This costs less than waiting for another thread, which may not exist after a fork.
    const int64_t before = now();
    const Arguments arguments(key.substr(0, key.find('\n')), list, folder);
    Entry entry;
    entry.function = std::make_shared<const Function>(make(arguments));
    for (const auto& file : arguments.files())
        entry.stamps.emplace_back(file, before);
    entry.key = key;
    entry.folder = folder;
    entry.hash = hash;
    entry.bytes = entry.function->bytes + 256;
    for (CSLConstList item = list; item != nullptr && *item != nullptr; ++item) {
        entry.list.emplace_back(*item);
        entry.bytes += entry.list.back().size();
    }
    auto function = entry.function;
    std::list<Entry> dropped; // destroyed after the lock is released
    const std::lock_guard lock(s.mutex);
    const auto old = find(s, hash, key, list, folder);
    if (old != s.entries.end()) forget(s, old, dropped);
    s.entry_bytes += entry.bytes;
    s.entries.push_front(std::move(entry));
    s.by_hash.emplace(hash, s.entries.begin());
    while (s.entries.size() > 1 && (s.entries.size() > most_functions || s.entry_bytes > most_function_bytes))
        forget(s, std::prev(s.entries.end()), dropped);
    return function;
}

std::unique_ptr<Lane> take_lane(const std::shared_ptr<const Function>& function, int64_t pixels) {
    const int64_t wanted = std::min(pixels, slice_pixels(*function));
    State& s = state();
    std::unique_ptr<Lane> lane;
    {
        const std::lock_guard lock(s.mutex);
        for (auto it = s.idle.rbegin(); it != s.idle.rend(); ++it) {
            if ((*it)->function != function || (*it)->capacity < wanted) continue;
            lane = std::move(*it);
            s.idle_bytes -= lane->bytes();
            s.idle.erase(std::next(it).base());
            return lane;
        }
        // A VRT with many bands has one function per band, and each function is used once. Such functions
        // reuse the same memory.
        for (auto it = s.idle.begin(); it != s.idle.end(); ++it) {
            const int64_t fits = capacity_for(**it, *function);
            if (fits < wanted) continue;
            lane = std::move(*it);
            s.idle_bytes -= lane->bytes();
            s.idle.erase(it);
            lane->capacity = std::min(fits, std::max<int64_t>(slice_pixels(*function), 16));
            break;
        }
    }
    if (lane) {
        lane->worker = nullptr; // The worker is destroyed before its operation.
        lane->function = function;
        lane->worker = function->operation->start(0, {lane->capacity, 1, lane->capacity, 1});
        return lane;
    }
    lane = std::make_unique<Lane>();
    lane->function = function;
    lane->capacity = 16;
    while (lane->capacity < wanted)
        lane->capacity *= 2;
    lane->capacity = std::min(lane->capacity, std::max<int64_t>(slice_pixels(*function), 16));
    const auto allocator = function->operation->allocator();
    lane->in = HostBuffer<float>(allocator,
                                 static_cast<size_t>(lane->capacity) * static_cast<size_t>(function->bands));
    for (const int bands : function->operation->output_bands())
        lane->out.emplace_back(allocator, static_cast<size_t>(lane->capacity) * static_cast<size_t>(bands));
    lane->worker = function->operation->start(0, {lane->capacity, 1, lane->capacity, 1});
    return lane;
}

void give_lane(std::unique_ptr<Lane> used) {
    State& s = state();
    const bool forked = device_wish().forked;
    std::vector<std::unique_ptr<Lane>> dropped; // destroyed after the lock is released
    const std::lock_guard lock(s.mutex);
    s.idle_bytes += used->bytes();
    s.idle.push_back(std::move(used));
    while (s.idle_bytes > most_idle_bytes && !s.idle.empty()) {
        s.idle_bytes -= s.idle.front()->bytes();
        auto lane = std::move(s.idle.front());
        s.idle.pop_front();
        // A forked process cannot free memory of the parent's GPU.
        if (lane->function->device && forked)
            static_cast<void>(lane.release());
        else
            dropped.push_back(std::move(lane));
    }
}

DeviceWish device_wish() {
    DeviceWish wish;
    wish.text = CPLGetConfigOption("GDAL_HSI_DEVICE", "auto");
    const pid_t starter = device_starter.load();
    wish.forked = starter != 0 && starter != getpid();
    return wish;
}

void note_device_start() {
    pid_t nobody = 0;
    device_starter.compare_exchange_strong(nobody, getpid());
}

} // namespace hsi::plugin
