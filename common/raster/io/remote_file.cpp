// SPDX-License-Identifier: MIT
#include "raster/io/remote_file.h"

#include "core/connections.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/system.h"
#include "parallel/threads.h"
#include "raster/gdal_errors.h"
#include "raster/regular_file.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <cpl_vsi_error.h>
#include <cpl_vsi_virtual.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <set>
#include <system_error>

namespace hsi::raster {
namespace {

constexpr int connections = 8;
/// Gaps between requested bytes up to this size are also fetched, because a separate request would take
/// longer.
constexpr uint64_t most_gap = uint64_t{32} << 10;
/// The unit of fetching and freeing. A request fetches one or several pieces.
constexpr uint64_t most_piece = uint64_t{1} << 20;
constexpr uint64_t least_request = uint64_t{256} << 10, most_request = uint64_t{4} << 20;
/// Fetching more bytes ahead of the computation has no benefit.
constexpr uint64_t enough_ahead = uint64_t{256} << 20;
/// The minimum memory for fetched bytes, and the limit until share_memory() is called.
constexpr uint64_t least_memory = uint64_t{16} << 20;
/// The size of the first request that GDAL makes for a file. These bytes contain the directory of most files.
constexpr uint64_t first_bytes = uint64_t{256} << 10;
/// The size of the request for a side file; most side files are smaller.
constexpr uint64_t neighbour_bytes = uint64_t{1} << 20;
/// The number of connections while a file is opened. It is larger than for reading, because the answers have
/// only a few bytes.
constexpr size_t opening_connections = 24;
/// The intended duration of a request, in round trips to the server. If requests are shorter, connections
/// wait more than they transfer. If requests are longer, tiles arrive late.
constexpr double round_trips = 3;
/// Bytes of a request that takes round_trips, until a request has been measured.
constexpr uint64_t first_strip = uint64_t{1} << 20;

constexpr const char* ingested = "GDAL_INGESTED_BYTES_AT_OPEN";
constexpr const char* list_first = "GDAL_DISABLE_READDIR_ON_OPEN";

/// The interval at which a wait for bytes checks whether the run was cancelled.
constexpr std::chrono::milliseconds now_and_then(100);
/// Seconds before a request is repeated.
constexpr double first_wait = 0.25, longest_wait = 4;

VSILFILE* gdal_file(void* file) { return static_cast<VSILFILE*>(file); }
using Opened = std::unique_ptr<void, void (*)(void*)>;
void close_in_gdal(void* opened) { VSIFCloseL(gdal_file(opened)); }
Opened open_in_gdal(const std::string& path) { return {open_watched(path), close_in_gdal}; }
const VSIVirtualHandle& handle(void* file) { return *static_cast<const VSIVirtualHandle*>(file); }

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The names of files next to a scene that GDAL requests one after another if the server does not list
/// folders.
struct Neighbours {
    std::vector<std::string> likely, others; ///< files that GDAL reads and that affect the meaning of values
    std::vector<std::string> overviews, of_tiff, of_raw;

    explicit Neighbours(const std::string& path) {
        const std::string name = name_of(path), folder = folder_of(path), stem = CPLGetBasename(name.c_str()),
                          base = join_path(folder, stem);
        const auto add = [](std::vector<std::string>& to, const std::string& begin,
                            std::initializer_list<const char*> ends) {
            for (const char* end : ends)
                to.push_back(begin + end);
        };
        add(likely, path, {".aux.xml"});
        add(likely, base, {".hdr"});
        add(others, path, {".aux", ".AUX", ".msk", ".MSK", ".hdr", ".HDR"});
        add(others, base, {".aux", ".AUX", ".HDR"});
        add(overviews, path, {".ovr", ".OVR"});
        for (const char* other : {"METADATA.DIM", "metadata.dim", "summary.txt", "SUMMARY.TXT"})
            of_tiff.push_back(join_path(folder, other));
        for (const size_t behind : {size_t{3}, size_t{6}})
            for (const char* kind : {"HDR", "RPC"})
                if (stem.size() >= behind)
                    add(of_tiff, join_path(folder, kind + stem.substr(behind)), {".txt", ".TXT"});
        add(of_tiff, base,
            {".XML",     ".xml",     ".IMD",          ".imd",          ".RPB",          ".rpb",
             ".PVL",     ".pvl",     "_rpc.txt",      "_RPC.TXT",      "_metadata.txt", "_METADATA.txt",
             "_MTL.txt", "_MTL.TXT", "_metadata.xml", "_METADATA.XML", ".TXT",          ".txt",
             ".RPC",     ".rpc",     ".pass",         ".PASS"});
        add(of_raw, base, {".sta"});
    }
};

/// While the object exists, GDAL requests files without waiting for the list of their folder first.
class WithoutList {
  public:
    explicit WithoutList(bool lists) : m_lists(lists) {
        if (m_lists) CPLSetThreadLocalConfigOption(list_first, "TRUE");
    }
    ~WithoutList() {
        if (m_lists) CPLSetThreadLocalConfigOption(list_first, nullptr);
    }
    WithoutList(const WithoutList&) = delete;
    WithoutList& operator=(const WithoutList&) = delete;

  private:
    bool m_lists;
};

/// Returns the first bytes of a file, at most `most`; nullopt if they cannot be read completely, with the
/// reason in `why`.
std::optional<std::string> first_of(const std::string& path, const Opened& file, uint64_t most,
                                    std::string& why) {
    if (VSIFSeekL(gdal_file(file.get()), 0, SEEK_END) != 0) return std::string();
    std::string bytes(std::min<uint64_t>(VSIFTellL(gdal_file(file.get())), most), '\0');
    if (!read_whole(path, file.get(), 0, bytes.size(), bytes.data(), &why)) return std::nullopt;
    return bytes;
}

/// Reads the first part of a file next to a scene into GDAL's cache, if the file exists. Most files are not
/// longer than this part. \throws Error if the part does not arrive completely.
void fetch_beside(const std::string& name, const std::string& scene) {
    const auto refuse = [&](const std::string& said) {
        throw Error("cannot fetch '" + name + "', which may be next to '" + scene + "': " + said,
                    "Try again later, or set GDAL_DISABLE_READDIR_ON_OPEN=EMPTY_DIR to ignore files next to "
                    "the scene.");
    };
    const GdalErrors quiet;
    ServedVersion::of(name)->forget();
    VSIErrorReset();
    const Opened file = open_in_gdal(name);
    if (!file) { // GDAL has tried more than once
        const std::string said = VSIGetLastErrorMsg();
        if (is_trouble(said)) refuse(said);
        return;
    }
    std::string why;
    if (!first_of(name, file, neighbour_bytes, why)) refuse(why);
}

/// Calls VSIReadDir() under an AnswerWatch. Returns null also if the server's answer was cut off.
char** listed_watched(const std::string& folder) {
    const GdalErrors quiet;
    const AnswerWatch watch(folder);
    char** const list = VSIReadDir(folder.c_str());
    if (!watch.cut()) return list;
    CSLDestroy(list);
    return nullptr;
}

/// Returns the bytes that GDAL and this code examine first; empty if the file does not exist.
std::string beginning_of(const std::string& path) {
    VSIErrorReset();
    const Opened file = open_in_gdal(path);
    std::string why = VSIGetLastErrorMsg();
    if (!file && !why.starts_with(server_is_to_blame)) return {};
    if (!file)
        throw Error("cannot fetch the beginning of '" + path + "': " + why,
                    "Fetch the file first: curl -O URL.");
    why.clear();
    if (auto bytes = first_of(path, file, first_bytes, why)) return *std::move(bytes);
    throw Error("cannot fetch the beginning of '" + path + "': " + why,
                why.starts_with(server_is_to_blame) ? "Fetch the file first: curl -O URL."
                                                    : "Try again later.");
}

/// Creates a file in memory with space for `bytes` bytes, which will be fetched later.
FileHandle file_in_memory(uint64_t bytes) {
    FileHandle file(system::file_in_memory("remote", bytes));
    if (!file) throw Error(std::string("cannot make a file in memory: ") + std::strerror(errno));
    return file;
}

/// Maps a part of a file in memory for writing.
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

// --- Connections

Connections::~Connections() {
    {
        const std::lock_guard lock(m_mutex);
        m_stop = true;
    }
    m_changed.notify_all();
    for (std::thread& thread : m_threads)
        thread.join();
}

void Connections::run(std::function<void()> task) {
    {
        const std::lock_guard lock(m_mutex);
        m_tasks.push_back(std::move(task));
        if (m_busy + m_tasks.size() > m_threads.size() - m_ended && m_threads.size() - m_ended < m_most) {
            try {
                m_threads.emplace_back([this] { work(); });
            } catch (const std::system_error&) {
                if (m_threads.size() == m_ended) {
                    m_tasks.pop_back();
                    throw Error("cannot start a thread for requests to a server");
                }
            }
        }
    }
    m_changed.notify_all();
}

void Connections::wait() {
    std::unique_lock lock(m_mutex);
    m_changed.wait(lock, [&] { return m_busy == 0 && m_tasks.empty(); });
}

void Connections::keep(size_t most) {
    {
        const std::lock_guard lock(m_mutex);
        m_most = most;
    }
    m_changed.notify_all();
}

void Connections::work() {
    std::unique_lock lock(m_mutex);
    while (true) {
        m_changed.wait(lock,
                       [&] { return !m_tasks.empty() || m_stop || m_threads.size() - m_ended > m_most; });
        if (m_tasks.empty()) break;
        const auto task = std::move(m_tasks.front());
        m_tasks.pop_front();
        ++m_busy;
        lock.unlock();
        task();
        lock.lock();
        --m_busy;
        if (m_busy == 0 && m_tasks.empty()) m_changed.notify_all();
    }
    ++m_ended;
}

// --- Opening

void RemoteOpening::begin() {
    if (VSIIsLocal(m_path.c_str())) return;
    for (const auto& [name, value] : {std::pair("GDAL_HTTP_MAX_RETRY", "5"),
                                      {"GDAL_HTTP_RETRY_DELAY", "0.5"},
                                      {"GDAL_HTTP_LOW_SPEED_TIME", "30"},     // seconds
                                      {"GDAL_HTTP_LOW_SPEED_LIMIT", "1000"}}) // bytes per second
        if (CPLGetConfigOption(name, nullptr) == nullptr) CPLSetConfigOption(name, value);
    m_ingests = CPLGetConfigOption(ingested, nullptr) == nullptr;
    if (m_ingests) CPLSetThreadLocalConfigOption(ingested, std::to_string(first_bytes).c_str());
    m_connections = std::make_unique<Connections>(opening_connections);
    try {
        ask_for_all();
    } catch (...) {
        if (m_ingests) end();
        throw;
    }
}

void RemoteOpening::ask_for_all() {
    Connections& ask = *m_connections;
    const Neighbours near(m_path);
    const std::string list_option = CPLGetConfigOption(list_first, "NO");
    const bool alone = EQUAL(list_option.c_str(), "EMPTY_DIR");
    const bool lists = !alone && !CPLTestBool(list_option.c_str());
    std::mutex mutex;
    std::exception_ptr problem;
    const auto look_for = [&](const std::vector<std::string>& names) {
        for (const std::string& name : names)
            ask.run([name] {
                const GdalErrors quiet;
                const AnswerWatch watch(name);
                (void)is_there(name);
            });
    };
    const auto fetch = [&](const std::vector<std::string>& names) {
        for (const std::string& name : names)
            ask.run([&, name, lists] {
                const WithoutList at_once(lists);
                try {
                    fetch_beside(name, m_path);
                } catch (...) {
                    const std::lock_guard lock(mutex);
                    problem = std::current_exception();
                }
            });
    };
    const bool called_tiff =
        EQUAL(CPLGetExtension(m_path.c_str()), "tif") || EQUAL(CPLGetExtension(m_path.c_str()), "tiff");
    bool listed = false;
    std::string beginning;
    ask.run([&, ingests = m_ingests] {
        if (ingests) CPLSetThreadLocalConfigOption(ingested, std::to_string(first_bytes).c_str());
        const WithoutList at_once(lists);
        auto since = Clock::now();
        m_headers = headers_of(m_path);
        ServedVersion::of(m_path)->begin(m_path, m_headers);
        m_round_trip = seconds_since(since);
        since = Clock::now();
        try {
            beginning = beginning_of(m_path);
        } catch (...) {
            const std::lock_guard lock(mutex);
            problem = std::current_exception();
        }
        if (!beginning.empty()) m_round_trip = std::min(m_round_trip, seconds_since(since));
        if (ingests) CPLSetThreadLocalConfigOption(ingested, nullptr);
    });
    if (!alone) {
        fetch(near.likely);
        ask.run([&, lists] {
            const CPLStringList list(lists ? listed_watched(folder_of(m_path)) : nullptr);
            listed = list.size() > 0;
            if (!listed) {
                fetch(near.others);
                look_for(near.overviews);
                look_for(called_tiff ? near.of_tiff : near.of_raw);
            }
            for (const std::string& name : near.others)
                if (listed && list.FindString(name_of(name).c_str()) >= 0) fetch({name});
        });
    }
    ask.wait();
    const bool tiff =
        beginning.size() > 2 && beginning[0] == beginning[1] && (beginning[0] == 'I' || beginning[0] == 'M');
    if (!alone && !listed && !beginning.empty() && tiff != called_tiff) {
        look_for(tiff ? near.of_tiff : near.of_raw);
        ask.wait();
    }
    if (problem && (!beginning.empty() || !m_headers.empty()))
        std::rethrow_exception(problem); // if the file itself cannot be fetched, GDAL reports the fault
}

void RemoteOpening::end() { CPLSetThreadLocalConfigOption(ingested, nullptr); }

Tries::Tries(const std::string& path, int most) : m_wait(first_wait) {
    constexpr int otherwise = 6;
    const char* const asked = VSIGetPathSpecificOption(path.c_str(), "GDAL_HTTP_MAX_RETRY",
                                                       CPLGetConfigOption("GDAL_HTTP_MAX_RETRY", nullptr));
    m_most = std::min(most, asked != nullptr ? 1 + std::max(0, std::atoi(asked)) : otherwise);
}

std::optional<double> Tries::next() {
    if (++m_failed >= m_most || connections_are_ended()) return std::nullopt;
    return std::exchange(m_wait, std::min(2 * m_wait, longest_wait));
}

bool Tries::again(const CancelFlag* cancel) {
    const auto seconds = next();
    if (!seconds) return false;
    if (cancel != nullptr && cancel->requested()) throw Cancelled();
    std::this_thread::sleep_for(std::chrono::duration<double>(*seconds));
    return true;
}

bool read_whole(const std::string& path, void* file, uint64_t at, size_t bytes, void* to, std::string* why) {
    const auto read = [&] {
        return VSIFSeekL(gdal_file(file), at, SEEK_SET) == 0 &&
               VSIFReadL(to, 1, bytes, gdal_file(file)) == bytes;
    };
    const auto give_up = [&](const std::string& reason) {
        if (why != nullptr) *why = reason;
        return false;
    };
    if (VSIIsLocal(path.c_str())) return read() || give_up("it ends early");
    Tries tries(path);
    while (true) {
        std::string fault;
        {
            const AnswerWatch watch(path);
            const bool whole = read();
            fault = watch.fault();
            if (whole && fault.empty()) return true;
        }
        (void)forget_cached(path);
        if (!fault.empty()) {
            const std::string change = ServedVersion::of(path)->ask_again(path);
            return give_up(change.empty() ? fault : change);
        }
        if (!tries.again()) return give_up("the connection broke");
    }
}

bool is_trouble(const std::string& said) {
    if (said.starts_with(server_is_to_blame)) return true;
    constexpr std::string_view code = "HTTP response code: ";
    const size_t at = said.find(code);
    if (at == std::string::npos) return said.find("CURL error") != std::string::npos;
    constexpr int timeout = 408, too_many = 429, of_server = 500;
    const int number = std::atoi(said.c_str() + at + code.size());
    return number >= of_server || number == timeout || number == too_many;
}

std::string trouble_with(const std::string& path) {
    if (!forget_cached(path)) return {};
    const GdalErrors quiet;
    VSIErrorReset();
    const Opened file = open_in_gdal(path);
    if (!file) {
        const std::string said = VSIGetLastErrorMsg();
        return is_trouble(said) ? said : std::string();
    }
    if (VSIFSeekL(gdal_file(file.get()), 0, SEEK_END) != 0) return {};
    constexpr uint64_t most = 4096; // bytes of the end of the file; a server may also truncate them
    const uint64_t size = VSIFTellL(gdal_file(file.get())), wanted = std::min(size, most);
    std::string bytes(wanted, '\0');
    std::string why;
    const bool whole = read_whole(path, file.get(), size - wanted, bytes.size(), bytes.data(), &why);
    return whole ? std::string() : quiet.text(why);
}

bool forget_cached(const std::string& path) {
    if (VSIIsLocal(path.c_str())) return false;
    VSICurlPartialClearCache(path.c_str());
    return true;
}

void fetch_into_cache(const std::string& path, const std::vector<uint64_t>& places) {
    if (VSIIsLocal(path.c_str())) return;
    constexpr uint64_t page = 16 << 10; // default size of a page in GDAL's cache
    std::set<uint64_t> pages;
    for (const uint64_t place : places)
        pages.insert(place / page * page);
    const std::vector<uint64_t> each(pages.begin(), pages.end());
    if (each.size() < 2) return;
    parallel::for_each(static_cast<int64_t>(each.size()), connections, nullptr, [&](int64_t k, int) {
        const GdalErrors quiet; // the reader that needs the bytes gets the error
        const Opened file = open_in_gdal(path);
        const AnswerWatch watch(path);
        char unused;
        if (file && VSIFSeekL(gdal_file(file.get()), each[static_cast<size_t>(k)], SEEK_SET) == 0)
            (void)VSIFReadL(&unused, 1, 1, gdal_file(file.get()));
        if (!watch.fault().empty()) (void)forget_cached(path);
    });
}

std::shared_ptr<RemoteFile> RemoteFile::open(const std::string& path, RemoteOpening& opening) {
    if (is_local(path) || VSIIsLocal(path.c_str())) return nullptr;
    const GdalErrors errors;
    Opened file = open_in_gdal(path);
    if (!file) throw Error("cannot open '" + path + "': " + errors.text());
    if (!handle(file.get()).HasPRead() || VSIFSeekL(gdal_file(file.get()), 0, SEEK_END) != 0) return nullptr;
    const uint64_t size = VSIFTellL(gdal_file(file.get()));
    if (size == 0) return nullptr;
    std::shared_ptr<RemoteFile> remote(new RemoteFile(path, std::move(file), size, opening));
    remote->take_over({0, first_bytes});
    return remote;
}

RemoteFile::RemoteFile(std::string path, Opened file, uint64_t size, RemoteOpening& opening)
    : m_path(std::move(path)), m_file(std::move(file)), m_size(size), m_local(file_in_memory(size)),
      m_headers(m_path == opening.m_path && !opening.m_headers.empty() ? opening.m_headers
                                                                       : headers_of(m_path)),
      m_round_trip(opening.m_round_trip), m_most(least_memory), m_most_request(least_request),
      m_strip(first_strip),
      m_connections(opening.m_connections ? std::move(opening.m_connections)
                                          : std::make_unique<Connections>(connections)) {
    m_connections->keep(connections);
}

RemoteFile::~RemoteFile() {
    {
        const std::lock_guard lock(m_mutex);
        m_stop = true;
        m_changed.notify_all();
    }
    m_connections.reset();
}

uint64_t RemoteFile::share_memory(uint64_t most, uint64_t all) {
    all = std::min(all, m_size);
    // GDAL stores the bytes of each request a second time, in a buffer that doubles as it grows.
    m_most_request = std::clamp(most / 4 / (2 * connections), least_request, most_request);
    const uint64_t in_requests = 2 * connections * m_most_request;
    const uint64_t left = most - std::min(most, in_requests);
    m_most = std::max(least_memory, all <= left ? all : std::min(left, enough_ahead));
    return std::min(most, m_most + in_requests);
}

void RemoteFile::check_unchanged() {
    if (m_headers.empty()) return;
    ServerHeaders now;
    {
        std::unique_lock lock(m_mutex);
        m_changed.wait(lock, [&] { return !m_checking; });
        if (m_checked == m_asked) now = m_told;
    }
    if (now.empty()) return ServedFile{m_path, m_headers}.check_unchanged(m_cancel);
    check_same(m_path, m_headers, now);
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
            piece.rank = m_next_rank;
            m_pieces.emplace_hint(next, at, std::move(piece));
            m_queued += end - at;
            if (!urgent) m_queue.push_back(at);
            pieces.push_back(at);
            at = end;
        }
    }
    ++m_next_rank;
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
        // The memory pages that contain only bytes of this piece are given back.
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

// --- Requests of readers

RemoteFile::Reader::Reader(RemoteFile& file, bool listens) : m_file(file) {
    const std::lock_guard lock(m_file.m_mutex);
    ++m_file.m_readers;
    m_file.m_listens = m_file.m_listens || listens;
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
    m_arrived.clear();
    m_listens = false;
    m_filling = true;
}

bool RemoteFile::has_readers() {
    const std::lock_guard lock(m_mutex);
    return m_readers > 0;
}

bool RemoteFile::has_room() {
    const std::lock_guard lock(m_mutex);
    // Announcements stop when memory is full and continue when half of it is free. Many announcements at once
    // make large requests.
    if (m_ahead >= m_most)
        m_filling = false;
    else if (m_ahead <= m_most / 2)
        m_filling = true;
    if (!m_filling) begin_to_fetch();
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
    // Fetching does not begin yet, because the next announcement may be adjacent and fit into the same
    // request.
    if (m_queued >= enough_ahead) begin_to_fetch();
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
    begin_to_fetch();
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
    begin_to_fetch();
    std::exception_ptr error;
    for (const uint64_t begin : hold.m_pieces) {
        const Piece& piece = m_pieces.at(begin);
        while (piece.state != State::ready && piece.state != State::failed && !error) {
            m_changed.wait_for(lock, now_and_then);
            if (m_cancel != nullptr && m_cancel->requested()) error = std::make_exception_ptr(Cancelled());
        }
        if (piece.error && !error) error = piece.error;
    }
    lock.unlock(); // the destructor of `hold` locks the mutex if an error is thrown
    if (error) std::rethrow_exception(error);
    return hold;
}

RemoteFile::Stage RemoteFile::stage_of(const Extent& extent) const {
    const uint64_t end = std::min(extent.end, m_size);
    auto piece = m_pieces.upper_bound(extent.begin);
    if (piece != m_pieces.begin()) --piece;
    Stage stage = Stage::here;
    for (uint64_t at = extent.begin; at < end; ++piece) {
        if (piece == m_pieces.end() || piece->first > at || piece->second.end <= at) return Stage::unknown;
        const State state = piece->second.state;
        if (state == State::queued || state == State::fetching) stage = Stage::coming;
        at = piece->second.end;
    }
    return stage;
}

bool RemoteFile::is_here(const Extent& extent, uint64_t* answered) {
    const std::lock_guard lock(m_mutex);
    if (answered != nullptr) *answered = m_answered;
    return stage_of(extent) == Stage::here;
}

bool RemoteFile::wait_for_more(const Extent& extent, uint64_t answered) {
    std::unique_lock lock(m_mutex);
    begin_to_fetch();
    while (m_answered == answered && stage_of(extent) == Stage::coming) {
        m_changed.wait_for(lock, now_and_then);
        if (m_cancel != nullptr && m_cancel->requested()) throw Cancelled();
    }
    return stage_of(extent) != Stage::unknown;
}

RemoteFile::Extents RemoteFile::take_arrived() {
    const std::lock_guard lock(m_mutex);
    return std::exchange(m_arrived, {});
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
    // The queue has only the pieces of this function, because no window has been announced yet.
    m_queue.clear();
}

// --- Fetching

void RemoteFile::begin_to_fetch() {
    if (m_queued == 0) return;
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(connections, m_queued / least_request + 1));
    for (; m_serving < wanted; ++m_serving)
        m_connections->run([this] { serve(); });
    m_changed.notify_all();
}

/// Returns the end of the request that begins with the piece `at`. A request follows the order of the file,
/// not of the tiles. The bytes of a tile may be far apart, usually one range per band. The bytes from the
/// piece to the next piece of its rank are then divided into equal parts, or fetched together with the bytes
/// after them. So no small separate request remains.
uint64_t RemoteFile::end_of_request(Pieces::const_iterator at) const {
    // The queued bytes are divided between all connections, but a request is never so small that it waits
    // longer than it transfers. The first requests differ in size; otherwise all connections would begin
    // their second requests at the same time.
    const uint64_t begin = at->first, least = std::clamp(m_strip / 2, least_request, m_most_request),
                   most = std::clamp(m_queued / connections, least, m_most_request);
    uint64_t strip = std::clamp(m_strip, least_request, most);
    if (m_begun < connections) strip = std::max(least_request, strip * (m_begun + 1) / connections);
    uint64_t end = begin, parted = 0; // parted: end of the last complete range in the request; 0: none
    bool later = false;
    const auto in_parts = [&](uint64_t bytes) {
        const uint64_t parts = std::max<uint64_t>(1, (bytes + strip / 2) / strip);
        return (bytes + parts - 1) / parts;
    };
    constexpr uint64_t far_enough = 8; // in strips
    uint64_t wanted =
        m_begun < connections ? std::max(least_request, most * (m_begun + 1) / connections) : most;
    for (auto next = at; next != m_pieces.end() && next->first == end; ++next) {
        const bool queued = next->second.state == State::queued;
        if (later && (!queued || next->second.rank <= at->second.rank)) { // the next range of bytes begins
            const uint64_t bytes = end - begin;
            if (parted == 0 && bytes > std::min(strip + strip / 2, m_most_request)) {
                wanted = std::min(most, in_parts(bytes));
                break;
            }
            if (parted > 0 && bytes > std::min(2 * strip, m_most_request)) return parted;
            if (4 * bytes >= 3 * strip) return end;
            parted = end;
            later = false;
        }
        if (!queued) break;
        if (next->second.end - begin > std::max(far_enough * strip, most)) break;
        later = later || next->second.rank > at->second.rank;
        end = next->second.end;
    }
    if (parted > 0 && end - begin > 2 * strip) return parted;
    // The request ends with the piece that completes the wanted bytes, unless it would become larger than
    // m_most_request.
    uint64_t until = begin;
    for (auto next = at; until < end && until - begin < wanted; ++next) {
        if (until > begin && next->second.end - begin > m_most_request) break;
        until = next->second.end;
    }
    return until;
}

/// Returns the next request: the next piece to fetch, and queued pieces that are adjacent to it in the file.
std::optional<RemoteFile::Request> RemoteFile::next_request() {
    for (std::deque<uint64_t>* queue : {&m_urgent, &m_queue})
        while (!queue->empty()) {
            const uint64_t asked_for = queue->front();
            auto at = m_pieces.find(asked_for);
            queue->pop_front();
            if (at == m_pieces.end() || at->second.state != State::queued) continue;
            // The request begins with queued pieces before this piece that are needed sooner. Otherwise they
            // would be left for small separate requests.
            while (at != m_pieces.begin()) {
                const auto before = std::prev(at);
                if (before->second.end != at->first || before->second.state != State::queued ||
                    before->second.rank >= at->second.rank)
                    break;
                at = before;
            }
            Request request{{at->first, end_of_request(at)}, {}};
            for (auto next = at; next != m_pieces.end() && next->first < request.extent.end; ++next) {
                next->second.state = State::fetching;
                request.pieces.push_back(next->first);
            }
            if (request.extent.end <= asked_for) queue->push_front(asked_for);
            const uint64_t bytes = request.extent.end - request.extent.begin;
            m_queued -= bytes;
            m_held += bytes;
            m_asked += bytes;
            ++m_fetching;
            ++m_begun;
            make_room();
            return request;
        }
    return std::nullopt;
}

void RemoteFile::serve() {
    std::unique_lock lock(m_mutex);
    while (true) {
        std::optional<Request> request;
        m_changed.wait(lock, [&] { return m_stop || (request = next_request()); });
        if (m_stop) return;
        lock.unlock();
        std::exception_ptr error;
        bool at_once = false;
        const auto since = Clock::now();
        try {
            at_once = fetch(request->extent);
        } catch (...) {
            error = std::current_exception();
        }
        const double seconds = seconds_since(since);
        lock.lock();
        for (const uint64_t begin : request->pieces) {
            const auto at = m_pieces.find(begin);
            at->second.state = error ? State::failed : State::ready;
            at->second.error = error;
            if (error) m_held -= at->second.end - begin;
            rest_if_unused(at);
        }
        const uint64_t bytes = request->extent.end - request->extent.begin;
        --m_fetching;
        ++m_answered;
        if (m_listens) m_arrived.push_back(request->extent);
        if (at_once) learn(bytes, seconds);
        m_changed.notify_all();
        if (!error) check_when_idle(lock);
    }
}

/// Updates the size of requests from a successful request: the bytes that a connection transfers in
/// round_trips.
void RemoteFile::learn(uint64_t bytes, double seconds) {
    if (m_round_trip <= 0) return;
    const double rate = static_cast<double>(bytes) / std::max(seconds - m_round_trip, m_round_trip / 4);
    const double strip = std::clamp((round_trips - 1) * m_round_trip * rate,
                                    static_cast<double>(least_request), static_cast<double>(most_request));
    m_strip = static_cast<uint64_t>(0.75 * static_cast<double>(m_strip) + 0.25 * strip);
}

/// Checks whether the file on the server has changed, if possible while the last tiles are computed. Which
/// tiles are the last is unknown, so a check is made each time an eighth of the file was requested and
/// nothing is left to fetch.
void RemoteFile::check_when_idle(std::unique_lock<std::mutex>& lock) {
    if (m_headers.empty() || m_checking || m_fetching > 0 || m_queued > 0 || m_stop) return;
    constexpr uint64_t parts = 8;
    if (m_asked - m_checked < std::max(most_request, m_size / parts)) return;
    m_checking = true;
    const uint64_t asked = m_asked;
    lock.unlock();
    ServerHeaders told = headers_of(m_path);
    lock.lock();
    m_told = std::move(told);
    m_checked = asked;
    m_checking = false;
    m_changed.notify_all();
}

void RemoteFile::wait(double seconds) {
    std::unique_lock lock(m_mutex);
    const auto ended = [&] { return m_stop || (m_cancel != nullptr && m_cancel->requested()); };
    if (m_changed.wait_for(lock, std::chrono::duration<double>(seconds), ended)) throw Cancelled();
}

/// Reads bytes with one request. \throws Error that begins with `what` if the answer does not match the
/// request.
size_t RemoteFile::read_once(char* to, size_t bytes, uint64_t at, const std::string& what) {
    size_t got = 0;
    std::string fault;
    {
        const AnswerWatch watch(m_path);
        got = handle(m_file.get()).PRead(to, bytes, at);
        fault = watch.fault();
    }
    if (fault.empty()) return got;
    (void)forget_cached(m_path);
    check_unchanged();
    throw Error(what + fault, "Fetch the file first: curl -O URL.");
}

/// Fetches the bytes of an extent, with repeated requests if needed. Returns true if the first request has
/// fetched all bytes.
bool RemoteFile::fetch(const Extent& extent) {
    const Mapped to(m_local.get(), extent.begin, extent.end);
    Tries tries(m_path);
    for (uint64_t at = extent.begin; at < extent.end;) {
        const GdalErrors errors;
        const size_t wanted = extent.end - at;
        const std::string what = "cannot fetch " + counted(wanted, "byte") + " at byte " +
                                 std::to_string(at) + " of '" + m_path + "': ";
        const size_t got = read_once(to.data() + (at - extent.begin), wanted, at, what);
        const bool some = got > 0 && got <= wanted; // PRead() returns -1, as size_t, if it fails
        if (some) at += got;
        if (some && got == wanted) return tries.failed() == 0;
        const std::string said = errors.text("");
        if (said.find(ranges_unknown_to_server) != std::string::npos)
            throw Error(what + sends_whole_file, "Fetch the file first: curl -O URL.");
        const auto seconds = tries.next();
        if (!seconds) {
            check_unchanged();
            // If the answer to another reader was cut off, all connections to the server were ended, also
            // this reader's.
            if (const std::string cut = ServedVersion::of(m_path)->cut_off(); !cut.empty())
                throw Error(what + cut, "Fetch the file first: curl -O URL.");
            throw Error(what +
                            (!said.empty() ? said
                             : some        ? "the connection broke"
                                           : "the server did not answer, or answered with an error") +
                            " (" + counted(tries.failed(), "try", "tries") + ")",
                        "Try again later, or set GDAL_HTTP_MAX_RETRY=N for N more tries.");
        }
        wait(*seconds);
    }
    return true;
}

} // namespace hsi::raster
