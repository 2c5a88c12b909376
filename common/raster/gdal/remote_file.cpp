// SPDX-License-Identifier: MIT
#include "raster/gdal/remote_file.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/system.h"
#include "parallel/threads.h"
#include "raster/gdal/gdal_errors.h"
#include "raster/gdal/regular_file.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <cpl_vsi_virtual.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <system_error>

namespace hsi::raster {
namespace {

constexpr int connections = 8;
/// A gap up to this is fetched rather than left out: it takes less than a request of its own.
constexpr uint64_t most_gap = uint64_t{32} << 10;
/// What comes and goes together. A request has one or several.
constexpr uint64_t most_piece = uint64_t{1} << 20;
constexpr uint64_t least_request = uint64_t{256} << 10, most_request = uint64_t{4} << 20;
/// Beyond that, being ahead of the computing gains nothing.
constexpr uint64_t enough_ahead = uint64_t{256} << 20;
/// Of a file that nobody gives a share of memory.
constexpr uint64_t least_memory = uint64_t{16} << 20;
/// Of the first request that GDAL makes for a file: the directory of most.
constexpr uint64_t first_bytes = uint64_t{128} << 10;

const char* const whole_file = "Range downloading not supported"; // as GDAL says it

/// Seconds before a request is made again.
constexpr double first_wait = 0.25, longest_wait = 4;

int tries_of(const std::string& path) {
    constexpr int otherwise = 6;
    const char* const asked = VSIGetPathSpecificOption(path.c_str(), "GDAL_HTTP_MAX_RETRY",
                                                       CPLGetConfigOption("GDAL_HTTP_MAX_RETRY", nullptr));
    return asked != nullptr ? 1 + std::max(0, std::atoi(asked)) : otherwise;
}

VSILFILE* gdal_file(void* file) { return static_cast<VSILFILE*>(file); }
const VSIVirtualHandle& handle(void* file) { return *static_cast<const VSIVirtualHandle*>(file); }

/// Where the server does not list the folder, GDAL asks for each file that may lie beside the scene, and
/// remembers what it has been told.
void look_for_neighbours(const std::string& path, bool tiff) {
    const GdalErrors quiet;
    if (const CPLStringList list(VSIReadDir(folder_of(path).c_str())); list.size() > 0) return;
    const std::string name = name_of(path), base = join_path(folder_of(path), CPLGetBasename(name.c_str()));
    std::vector<std::string> names;
    for (const char* behind : {".aux.xml", ".aux", ".AUX", ".msk", ".MSK", ".ovr", ".OVR"})
        names.push_back(path + behind);
    for (const char* behind : {".aux", ".AUX", ".hdr"})
        names.push_back(base + behind);
    if (tiff) {
        for (const char* other : {"METADATA.DIM", "metadata.dim", "summary.txt", "SUMMARY.TXT"})
            names.push_back(join_path(folder_of(path), other));
        const std::string stem = CPLGetBasename(name.c_str());
        for (const char* kind : {"HDR", "RPC"})
            for (const char* extension : {".txt", ".TXT"})
                if (stem.size() > 3)
                    names.push_back(join_path(folder_of(path), kind + stem.substr(3) + extension));
        for (const char* behind :
             {".XML",     ".xml",     ".IMD",          ".imd",          ".RPB",          ".rpb",
              ".PVL",     ".pvl",     "_rpc.txt",      "_RPC.TXT",      "_metadata.txt", "_METADATA.txt",
              "_MTL.txt", "_MTL.TXT", "_metadata.xml", "_METADATA.XML", ".TXT",          ".txt",
              ".RPC",     ".rpc",     ".pass",         ".PASS"})
            names.push_back(base + behind);
    } else {
        for (const std::string& other : {path + ".hdr", path + ".HDR", base + ".sta"})
            names.push_back(other);
    }
    constexpr int at_once = 16;
    parallel::for_each(static_cast<int64_t>(names.size()), at_once, nullptr, [&](int64_t k, int) {
        const GdalErrors errors;
        (void)is_there(names[static_cast<size_t>(k)]);
    });
}

/// A file in memory, of `bytes` that are not there yet.
FileHandle file_in_memory(uint64_t bytes) {
    FileHandle file(system::file_in_memory("remote", bytes));
    if (!file) throw Error(std::string("cannot make a file in memory: ") + std::strerror(errno));
    return file;
}

/// A part of a file in memory as bytes to be written to.
class Mapped {
  public:
    Mapped(int file, uint64_t begin, uint64_t end) {
        const uint64_t page = system::page_size();
        const uint64_t from = begin / page * page;
        m_bytes = end - from;
        m_at = ::mmap(nullptr, m_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(from));
        if (m_at == MAP_FAILED)
            throw Error(std::string("cannot map a file in memory: ") + std::strerror(errno));
        m_skip = begin - from;
    }
    ~Mapped() { ::munmap(m_at, m_bytes); }
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;
    char* data() const { return static_cast<char*>(m_at) + m_skip; }

  private:
    void* m_at = nullptr;
    size_t m_bytes = 0, m_skip = 0;
};

} // namespace

// --- Opening

void RemoteOpening::begin(const std::string& path) {
    if (VSIIsLocal(path.c_str())) return;
    for (const auto& [name, value] : {std::pair("GDAL_HTTP_MAX_RETRY", "5"),
                                      {"GDAL_HTTP_RETRY_DELAY", "0.5"},
                                      {"GDAL_HTTP_LOW_SPEED_TIME", "30"},
                                      {"GDAL_HTTP_LOW_SPEED_LIMIT", "1"}})
        if (CPLGetConfigOption(name, nullptr) == nullptr) CPLSetConfigOption(name, value);
    constexpr const char* ingested = "GDAL_INGESTED_BYTES_AT_OPEN";
    m_ingests = CPLGetConfigOption(ingested, nullptr) == nullptr;
    if (m_ingests) CPLSetThreadLocalConfigOption(ingested, std::to_string(first_bytes).c_str());
    const std::string begin = beginning_of_file(path, first_bytes); // from now on in GDAL's cache
    if (begin.size() > 2)
        look_for_neighbours(path, begin[0] == begin[1] && (begin[0] == 'I' || begin[0] == 'M'));
}

void RemoteOpening::end() { CPLSetThreadLocalConfigOption("GDAL_INGESTED_BYTES_AT_OPEN", nullptr); }

std::shared_ptr<RemoteFile> RemoteFile::open(const std::string& path) {
    if (is_local(path) || VSIIsLocal(path.c_str())) return nullptr;
    const GdalErrors errors;
    Opened file(VSIFOpenL(path.c_str(), "rb"), [](void* opened) { VSIFCloseL(gdal_file(opened)); });
    if (!file) throw Error("cannot open '" + path + "': " + errors.text());
    if (!handle(file.get()).HasPRead() || VSIFSeekL(gdal_file(file.get()), 0, SEEK_END) != 0) return nullptr;
    const uint64_t size = VSIFTellL(gdal_file(file.get()));
    if (size == 0) return nullptr;
    std::shared_ptr<RemoteFile> remote(new RemoteFile(path, std::move(file), size));
    remote->take_over({0, first_bytes});
    return remote;
}

RemoteFile::RemoteFile(std::string path, Opened file, uint64_t size)
    : m_path(std::move(path)), m_file(std::move(file)), m_size(size), m_local(file_in_memory(size)),
      m_headers(headers()), m_most(least_memory), m_most_request(least_request) {}

RemoteFile::~RemoteFile() {
    {
        const std::lock_guard lock(m_mutex);
        m_stop = true;
        m_changed.notify_all();
    }
    for (std::thread& connection : m_connections)
        connection.join();
}

uint64_t RemoteFile::share_memory(uint64_t most, uint64_t all) {
    all = std::min(all, m_size);
    // GDAL holds what each request brings once more, in a buffer that doubles as it grows.
    m_most_request = std::clamp(most / 4 / (2 * connections), least_request, most_request);
    const uint64_t in_requests = 2 * connections * m_most_request;
    const uint64_t left = most - std::min(most, in_requests);
    m_most = std::max(least_memory, all <= left ? all : std::min(left, enough_ahead));
    return std::min(most, m_most + in_requests);
}

RemoteFile::Headers RemoteFile::headers() const {
    Headers found;
    const GdalErrors quiet;
    const CPLStringList all(VSIGetFileMetadata(m_path.c_str(), "HEADERS", nullptr));
    for (int k = 0; k < all.size(); ++k)
        for (const char* name : {"ETag", "Last-Modified", "Content-Length", "Content-Range"}) {
            const size_t length = std::strlen(name);
            if (EQUALN(all[k], name, length) && all[k][length] == '=') found[name] = all[k] + length + 1;
        }
    // Where a part was asked for, "bytes 0-99/1000" tells the file's size.
    if (const auto range = found.find("Content-Range"); range != found.end()) {
        const size_t slash = range->second.rfind('/');
        found.erase("Content-Length");
        if (slash != std::string::npos) found["Content-Length"] = range->second.substr(slash + 1);
        found.erase("Content-Range");
    }
    return found;
}

void RemoteFile::check_unchanged() const {
    if (m_headers.empty()) return;
    const int tries = tries_of(m_path);
    Headers now = headers();
    double wait = first_wait;
    for (int k = 1; now.empty() && k < tries; ++k, wait = std::min(2 * wait, longest_wait)) {
        if (m_cancel != nullptr && m_cancel->requested()) throw Cancelled();
        std::this_thread::sleep_for(std::chrono::duration<double>(wait));
        now = headers();
    }
    if (now.empty())
        throw Error("the server no longer tells of '" + m_path +
                        "', which may have changed while it was read",
                    "Try again later.");
    for (const auto& [name, value] : m_headers)
        if (const auto at = now.find(name); at != now.end() && at->second != value)
            throw Error("'" + m_path + "' has changed while it was read (" + name + " was " + value +
                            ", is " + at->second + ")",
                        "Run it again when nobody writes the file.");
}

// --- Pieces

std::vector<uint64_t> RemoteFile::cover(const Extents& extents, bool urgent) {
    Extents sorted;
    for (const Extent& e : extents)
        if (e.begin < std::min(e.end, m_size)) sorted.push_back({e.begin, std::min(e.end, m_size)});
    std::sort(sorted.begin(), sorted.end(),
              [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
    Extents joined;
    for (const Extent& e : sorted) {
        if (!joined.empty() && e.begin <= joined.back().end + most_gap)
            joined.back().end = std::max(joined.back().end, e.end);
        else
            joined.push_back(e);
    }
    std::vector<uint64_t> pieces;
    for (const Extent& e : joined) {
        auto next = m_pieces.upper_bound(e.begin);
        if (next != m_pieces.begin() && std::prev(next)->second.end > e.begin) --next;
        for (uint64_t at = e.begin; at < e.end;) {
            if (next != m_pieces.end() && next->first <= at) {
                pieces.push_back(next->first);
                at = next->second.end;
                ++next;
                continue;
            }
            const uint64_t until = next == m_pieces.end() ? e.end : std::min(e.end, next->first);
            const uint64_t end = std::min(until, at + most_piece);
            Piece piece;
            piece.end = end;
            m_pieces.emplace_hint(next, at, std::move(piece));
            m_queued += end - at;
            if (!urgent) m_queue.push_back(at);
            pieces.push_back(at);
            at = end;
        }
    }
    if (urgent)
        for (const uint64_t begin : pieces)
            if (m_pieces.at(begin).state == State::queued) m_urgent.push_back(begin);
    return pieces;
}

void RemoteFile::drop(Pieces::iterator at) {
    const Piece& piece = at->second;
    if (piece.resting) m_idle.erase(piece.idle);
    if (piece.state == State::queued) m_queued -= piece.end - at->first;
    if (piece.state == State::ready) {
        m_held -= piece.end - at->first;
        // The pages that it shares with nobody.
        const uint64_t page = system::page_size();
        uint64_t begin = at->first / page * page, end = (piece.end + page - 1) / page * page;
        if (at != m_pieces.begin() && std::prev(at)->second.end > begin) begin = at->first;
        if (const auto next = std::next(at); next != m_pieces.end() && next->first < end) end = piece.end;
        system::give_back(m_local.get(), begin, end);
    }
    m_pieces.erase(at);
}

void RemoteFile::make_room() {
    while (!m_idle.empty() && m_held > m_most)
        drop(m_pieces.find(m_idle.front()));
}

void RemoteFile::rest_if_unused(Pieces::iterator at) {
    Piece& piece = at->second;
    if (piece.users > 0 || piece.announced > 0) return;
    if (piece.state == State::queued || piece.state == State::failed) return drop(at);
    if (piece.state == State::fetching || piece.resting) return;
    piece.resting = true;
    piece.idle = m_idle.insert(m_idle.end(), at->first);
    make_room();
}

// --- What readers ask for

RemoteFile::Reader::Reader(RemoteFile& file) : m_file(file) {
    const std::lock_guard lock(m_file.m_mutex);
    ++m_file.m_readers;
}

RemoteFile::Reader::~Reader() {
    const std::lock_guard lock(m_file.m_mutex);
    if (--m_file.m_readers == 0) m_file.forget();
}

void RemoteFile::forget() {
    const auto announced = std::exchange(m_announced, {});
    m_ahead = 0;
    for (const auto& [key, pieces] : announced)
        for (const uint64_t begin : pieces) {
            const auto at = m_pieces.find(begin);
            --at->second.announced;
            rest_if_unused(at);
        }
    m_queue.clear();
    m_filling = true;
}

bool RemoteFile::has_room() {
    const std::lock_guard lock(m_mutex);
    // Requests are large where much is announced at once, so not each tile that is done makes room.
    if (m_ahead >= m_most)
        m_filling = false;
    else if (m_ahead <= m_most / 2)
        m_filling = true;
    return m_filling;
}

bool RemoteFile::is_announced(const Key& key) {
    const std::lock_guard lock(m_mutex);
    return m_announced.count(key) > 0;
}

void RemoteFile::announce(const Key& key, const Extents& extents) {
    const std::lock_guard lock(m_mutex);
    const auto [at, made] = m_announced.try_emplace(key);
    if (!made) return;
    at->second = cover(extents, false);
    for (const uint64_t begin : at->second) {
        const auto piece = m_pieces.find(begin);
        if (piece->second.announced++ == 0) m_ahead += piece->second.end - begin;
        if (piece->second.resting) {
            m_idle.erase(piece->second.idle);
            piece->second.resting = false;
        }
    }
    start_connections();
    m_changed.notify_all();
}

void RemoteFile::done(const Key& key) {
    const std::lock_guard lock(m_mutex);
    const auto at = m_announced.find(key);
    if (at == m_announced.end()) return;
    const std::vector<uint64_t> pieces = std::move(at->second);
    m_announced.erase(at);
    for (const uint64_t begin : pieces) {
        const auto piece = m_pieces.find(begin);
        if (--piece->second.announced > 0) continue;
        m_ahead -= piece->second.end - begin;
        rest_if_unused(piece);
    }
}

void RemoteFile::release(const std::vector<uint64_t>& pieces) {
    const std::lock_guard lock(m_mutex);
    for (const uint64_t begin : pieces) {
        const auto at = m_pieces.find(begin);
        --at->second.users;
        rest_if_unused(at);
    }
}

RemoteFile::Hold RemoteFile::need(const Extents& extents) {
    Hold hold;
    std::unique_lock lock(m_mutex);
    hold.m_pieces = cover(extents, true);
    hold.m_file = this;
    bool all = true;
    for (const uint64_t begin : hold.m_pieces) {
        Piece& piece = m_pieces.at(begin);
        ++piece.users;
        if (piece.resting) {
            m_idle.erase(piece.idle);
            piece.resting = false;
        }
        all = all && piece.state == State::ready;
    }
    if (all) return hold;
    start_connections();
    m_changed.notify_all();
    constexpr std::chrono::milliseconds now_and_then(100);
    std::exception_ptr error;
    for (const uint64_t begin : hold.m_pieces) {
        const Piece& piece = m_pieces.at(begin);
        while (piece.state != State::ready && piece.state != State::failed && !error) {
            m_changed.wait_for(lock, now_and_then);
            if (m_cancel != nullptr && m_cancel->requested()) error = std::make_exception_ptr(Cancelled());
        }
        if (piece.error && !error) error = piece.error;
    }
    lock.unlock(); // which the hold takes
    if (error) std::rethrow_exception(error);
    return hold;
}

void RemoteFile::take_over(Extent extent) {
    extent.end = std::min(extent.end, m_size);
    if (extent.begin >= extent.end) return;
    const std::lock_guard lock(m_mutex);
    for (const uint64_t begin : cover({extent}, false)) {
        const auto at = m_pieces.find(begin);
        Piece& piece = at->second;
        if (piece.state != State::queued || piece.users > 0 || piece.announced > 0) continue;
        const uint64_t bytes = piece.end - begin;
        const Mapped to(m_local.get(), begin, piece.end);
        const GdalErrors quiet;
        if (VSIFSeekL(gdal_file(m_file.get()), begin, SEEK_SET) != 0 ||
            VSIFReadL(to.data(), 1, bytes, gdal_file(m_file.get())) != bytes) {
            drop(at);
            continue;
        }
        m_queued -= bytes;
        m_held += bytes;
        piece.state = State::ready;
        rest_if_unused(at);
    }
    m_queue.clear(); // nobody else has announced anything yet
}

// --- Connections

void RemoteFile::start_connections() {
    const auto wanted = static_cast<size_t>(
        std::min<uint64_t>(connections, m_queued / least_request + (m_queued > 0 ? 1 : 0)));
    while (m_connections.size() < wanted) {
        try {
            m_connections.emplace_back([this] { serve(); });
        } catch (const std::system_error&) {
            if (m_connections.empty()) throw Error("cannot start a thread that fetches '" + m_path + "'");
            return;
        }
    }
}

/// The piece whose turn it is, and what lies behind it in the file and is to be fetched as well.
std::optional<std::pair<RemoteFile::Extent, std::vector<uint64_t>>> RemoteFile::next_request() {
    for (std::deque<uint64_t>* queue : {&m_urgent, &m_queue})
        while (!queue->empty()) {
            const auto at = m_pieces.find(queue->front());
            queue->pop_front();
            if (at == m_pieces.end() || at->second.state != State::queued) continue;
            // What there is, is for all connections.
            const uint64_t most = std::clamp(m_queued / connections, least_request, m_most_request);
            std::pair<Extent, std::vector<uint64_t>> request{{at->first, at->first}, {}};
            for (auto next = at;
                 next != m_pieces.end() && next->first == request.first.end &&
                 next->second.state == State::queued && (next == at || next->second.end - at->first <= most);
                 ++next) {
                next->second.state = State::fetching;
                request.first.end = next->second.end;
                request.second.push_back(next->first);
            }
            const uint64_t bytes = request.first.end - request.first.begin;
            m_queued -= bytes;
            m_held += bytes;
            make_room();
            return request;
        }
    return std::nullopt;
}

void RemoteFile::serve() {
    std::unique_lock lock(m_mutex);
    while (true) {
        std::optional<std::pair<Extent, std::vector<uint64_t>>> request;
        m_changed.wait(lock, [&] { return m_stop || (request = next_request()); });
        if (m_stop) return;
        lock.unlock();
        std::exception_ptr error;
        try {
            fetch(request->first);
        } catch (...) {
            error = std::current_exception();
        }
        lock.lock();
        for (const uint64_t begin : request->second) {
            const auto at = m_pieces.find(begin);
            at->second.state = error ? State::failed : State::ready;
            at->second.error = error;
            if (error) m_held -= at->second.end - begin;
            rest_if_unused(at);
        }
        m_changed.notify_all();
    }
}

bool RemoteFile::wait_before_trying_again(int tries) {
    double seconds = first_wait;
    for (int k = 1; k < tries; ++k)
        seconds = std::min(2 * seconds, longest_wait);
    std::unique_lock lock(m_mutex);
    m_changed.wait_for(lock, std::chrono::duration<double>(seconds),
                       [&] { return m_stop || (m_cancel != nullptr && m_cancel->requested()); });
    return !m_stop && (m_cancel == nullptr || !m_cancel->requested());
}

void RemoteFile::fetch(const Extent& extent) {
    const Mapped to(m_local.get(), extent.begin, extent.end);
    const int most_tries = tries_of(m_path);
    int tries = 0;
    for (uint64_t at = extent.begin; at < extent.end;) {
        const GdalErrors errors;
        const size_t wanted = extent.end - at;
        const size_t got = handle(m_file.get()).PRead(to.data() + (at - extent.begin), wanted, at);
        const bool some = got > 0 && got <= wanted; // -1: none
        if (some) at += got;
        if (some && got == wanted) return;
        const std::string said = errors.text("");
        const std::string what = "cannot fetch " + counted(extent.end - at, "byte") + " at byte " +
                                 std::to_string(at) + " of '" + m_path + "': ";
        if (said.find(whole_file) != std::string::npos)
            throw Error(what + "the server sends the whole file when it is asked for a part",
                        "Fetch the file first: curl -O URL.");
        if (++tries >= most_tries) {
            check_unchanged();
            throw Error(what +
                            (!said.empty() ? said
                             : some        ? "the connection breaks"
                                           : "the server does not answer, or with an error") +
                            " (" + counted(tries, "try", "tries") + ")",
                        "Try again later; GDAL_HTTP_MAX_RETRY=N tries N times more.");
        }
        if (!wait_before_trying_again(tries)) throw Cancelled();
    }
}

} // namespace hsi::raster
