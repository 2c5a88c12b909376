// SPDX-License-Identifier: MIT
// A remote file, mirrored in a file in memory. Several connections fetch the requested bytes at the same
// time, and write them to the same positions in the file in memory. A byte is fetched only once while it is
// kept.
#pragma once

#include "core/cancel.h"
#include "core/file_path.h"
#include "raster/io/raw_file.h"
#include "raster/io/server_answers.h"

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hsi::raster {

/// Threads for requests to servers. Each thread has its own connections, which remain open between tasks.
class Connections {
  public:
    explicit Connections(size_t most) : m_most(most) {}
    /// Waits until all tasks have ended.
    ~Connections();
    Connections(const Connections&) = delete;
    Connections& operator=(const Connections&) = delete;

    /// Runs a task on one of the threads. If all threads are busy and no more may be started, the task begins
    /// when a thread is free. The task must not throw. \throws Error if the system starts no thread at all.
    void run(std::function<void()> task);
    /// Waits until all tasks are done.
    void wait();
    /// Sets the maximum number of threads to `most`, and ends threads beyond this number when they are idle.
    void keep(size_t most);

  private:
    void work();

    std::mutex m_mutex; ///< guards all members below
    std::condition_variable m_changed;
    std::deque<std::function<void()>> m_tasks;
    size_t m_most, m_busy = 0, m_ended = 0;
    bool m_stop = false;
    std::vector<std::thread> m_threads;
};

/// Counts the tries of a request to a server, and determines the delays between them. A request is repeated
/// GDAL_HTTP_MAX_RETRY times (5 times if this option is not set). Each delay is twice the previous delay, up
/// to 4 s.
class Tries {
  public:
    /// `path`: the file whose options of GDAL are used. `most`: a further limit of the number of tries.
    explicit Tries(const std::string& path, int most = std::numeric_limits<int>::max());
    /// Call it after a failed try. Returns the seconds until the next try; nullopt if no try is left.
    std::optional<double> next();
    /// Call it after a failed try. Waits until the next try. \return false if no try is left. \throws
    /// Cancelled.
    bool again(const CancelFlag* cancel = nullptr);
    int failed() const { return m_failed; }

  private:
    int m_most, m_failed = 0;
    double m_wait;
};

/// Create it before GDAL opens a remote file `path`, and keep it until the file is open. For local paths it
/// does nothing. GDAL's requests are then repeated on failure, and end if no data arrive for long. The first
/// request fetches more than one page of GDAL's cache. The user's own settings (GDAL_HTTP_MAX_RETRY ...) take
/// precedence. The file's beginning and possible side files, for which GDAL searches one after another, are
/// requested at the same time, and are then in GDAL's cache. \throws Error if a side file that affects the
/// meaning of the values (header, mask ...) cannot be read completely, or if the server does not state
/// whether the side file exists. GDAL would silently continue without the side file.
class RemoteOpening {
  public:
    explicit RemoteOpening(const std::string& path) : m_path(path) {
        if (!is_local(path)) begin();
    }
    ~RemoteOpening() {
        if (m_ingests) end();
    }
    RemoteOpening(const RemoteOpening&) = delete;
    RemoteOpening& operator=(const RemoteOpening&) = delete;
    /// Returns the path, and the server's headers for it.
    ServedFile file() const { return {m_path, m_headers}; }

  private:
    friend class RemoteFile;
    void begin();
    void ask_for_all();
    static void end();

    const std::string m_path;
    bool m_ingests = false;
    std::unique_ptr<Connections> m_connections; ///< null after a RemoteFile has taken them
    ServerHeaders m_headers;
    double m_round_trip = 0; ///< seconds; 0: unknown
};

/// Reads `bytes` bytes from byte `at` of the file `path` through GDAL's cache; `file` is its VSILFILE*. If a
/// connection breaks, the missing bytes of a remote file are requested again. \return false if the bytes
/// cannot be read completely; `why`, unless null, then gets the reason.
bool read_whole(const std::string& path, void* file, uint64_t at, size_t bytes, void* to,
                std::string* why = nullptr);

/// Call it after GDAL could not open a file on a server; `said` is GDAL's message (VSIGetLastErrorMsg()).
/// Returns true if the reason is a fault of the server or of the connection, and false if the file does not
/// exist.
bool is_trouble(const std::string& said);

/// Finds out whether a server still delivers a file, by requesting the end of the file without GDAL's cache.
/// Returns the reason if the server does not deliver these bytes. Empty if it does, if the file does not
/// exist, or if the file is local.
std::string trouble_with(const std::string& path);

/// Removes GDAL's cached bytes of a remote file. \return false for a local file.
bool forget_cached(const std::string& path);

/// Requests the bytes around several positions of a remote file at the same time, so that GDAL's cache
/// contains them when they are read. Does nothing for a local file.
void fetch_into_cache(const std::string& path, const std::vector<uint64_t>& places);

/// A remote file. The class has many members because one mutex guards all of them: each answered request
/// changes pieces, queues, memory and waiting readers.
class RemoteFile {
  public:
    /// A range of bytes; `end` is one after the last byte.
    struct Extent {
        uint64_t begin = 0, end = 0;
    };
    using Extents = std::vector<Extent>;
    /// Identifies an announcement: a window of the scene.
    using Key = std::array<int64_t, 4>;

    /// Opens a file. Returns null for a local path, for file systems of GDAL that cannot serve several
    /// threads at once, and for an empty file. \throws Error if the file cannot be opened. The file takes
    /// over the connections of `opening`, and also its headers if `opening` was made for this file.
    static std::shared_ptr<RemoteFile> open(const std::string& path, RemoteOpening& opening);
    ~RemoteFile();
    RemoteFile(const RemoteFile&) = delete;
    RemoteFile& operator=(const RemoteFile&) = delete;

    uint64_t bytes() const { return m_size; }
    /// Returns the file in memory, which has the same length. Only bytes for which a Hold from need() exists
    /// are valid.
    const FileHandle& local() const { return m_local; }

    /// Determines the memory for fetched bytes, and returns how many of `most` bytes it takes. `all` is the
    /// number of bytes that readers will need; if they fit, all of them are kept. Call it before the first
    /// reader.
    uint64_t share_memory(uint64_t most, uint64_t all);
    /// If the flag is set, waits for this file end with Cancelled. The flag must outlive the file.
    void end_with(const CancelFlag* cancel) { m_cancel = cancel; }

    // The following functions are thread-safe.

    /// A reader of the file creates a Reader while it may announce windows. When the last Reader is
    /// destroyed, all announcements are discarded.
    class Reader {
      public:
        /// `listens`: the reader will call take_arrived().
        Reader(RemoteFile& file, bool listens);
        ~Reader();
        Reader(const Reader&) = delete;
        Reader& operator=(const Reader&) = delete;

      private:
        RemoteFile& m_file;
    };
    bool has_readers();
    bool has_room();
    bool is_announced(const Key& key);
    /// Announces the extents that the window `key` will read. They are fetched after the extents of earlier
    /// announcements, and their bytes are kept at least until done(key).
    void announce(const Key& key, const Extents& extents);
    void done(const Key& key);

    /// While the object exists, the bytes that need() has fetched remain in local().
    class Hold {
      public:
        Hold() = default;
        Hold(Hold&& o) noexcept : m_file(std::exchange(o.m_file, nullptr)), m_pieces(std::move(o.m_pieces)) {}
        Hold& operator=(Hold&& o) noexcept {
            std::swap(m_file, o.m_file);
            std::swap(m_pieces, o.m_pieces);
            return *this;
        }
        ~Hold() {
            if (m_file != nullptr) m_file->release(m_pieces);
        }

      private:
        friend class RemoteFile;
        RemoteFile* m_file = nullptr;
        std::vector<uint64_t> m_pieces;
    };
    /// Requests the bytes, if they were not requested before, and waits until they are in local(); bytes
    /// beyond the file's end are left out. \throws Error that names the file if the server does not deliver
    /// the bytes, and Cancelled.
    Hold need(const Extents& extents);

    /// Returns true if need() would not have to wait. Sets `answered`, unless null, to the number of requests
    /// that were answered so far.
    bool is_here(const Extent& extent, uint64_t* answered = nullptr);
    /// Waits until another request than the first `answered` ones is answered, or the extent has arrived.
    /// \return false if a part of the bytes was never requested, so that waiting is useless. \throws
    /// Cancelled.
    bool wait_for_more(const Extent& extent, uint64_t answered);
    /// Returns the ranges of bytes whose requests were answered since the last call by any reader.
    Extents take_arrived();

    /// Copies bytes that are in GDAL's cache into local(), so that they are not fetched again. Call it before
    /// any window is announced.
    void take_over(Extent extent);

    /// \throws Error if the file on the server has changed since it was opened.
    void check_unchanged();

  private:
    void release(const std::vector<uint64_t>& pieces);

    enum class State : uint8_t { queued, fetching, ready, failed };
    /// Bytes that are fetched and freed together.
    struct Piece {
        uint64_t end = 0, rank = 0; ///< a lower rank is fetched sooner
        State state = State::queued;
        int users = 0, announced = 0;
        bool resting = false; ///< the piece is ready and unused
        std::list<uint64_t>::iterator idle;
        std::exception_ptr error;
    };
    using Pieces = std::map<uint64_t, Piece>; // by their first bytes

    using Opened = std::unique_ptr<void, void (*)(void*)>; ///< file that GDAL has opened
    RemoteFile(std::string path, Opened file, uint64_t size, RemoteOpening& opening);

    // The following functions are called with m_mutex locked.
    std::vector<uint64_t> cover(const Extents& extents, bool urgent);
    /// The progress of an extent, which is the progress of its slowest piece. `unknown`: a part of the extent
    /// was never requested. `coming`: a part is queued or being fetched. `here`: all bytes have arrived, or
    /// their requests have failed.
    enum class Stage : uint8_t { unknown, coming, here };
    Stage stage_of(const Extent& extent) const;
    void begin_to_fetch();
    void rest_if_unused(Pieces::iterator at);
    void make_room();
    void drop(Pieces::iterator at);
    struct Request {
        Extent extent;
        std::vector<uint64_t> pieces;
    };
    std::optional<Request> next_request();
    uint64_t end_of_request(Pieces::const_iterator at) const;
    void forget();
    void learn(uint64_t bytes, double seconds);

    void serve();
    bool fetch(const Extent& extent);
    size_t read_once(char* to, size_t bytes, uint64_t at, const std::string& what);
    void check_when_idle(std::unique_lock<std::mutex>& lock);
    /// Waits between two tries. \throws Cancelled.
    void wait(double seconds);

    const std::string m_path;
    const Opened m_file;
    const uint64_t m_size;
    FileHandle m_local;
    const ServerHeaders m_headers;
    const double m_round_trip; ///< seconds; 0: unknown
    const CancelFlag* m_cancel = nullptr;
    uint64_t m_most;         ///< limit of bytes of fetched pieces
    uint64_t m_most_request; ///< limit of bytes of one request

    std::mutex m_mutex; ///< guards all members below
    std::condition_variable m_changed;
    Pieces m_pieces;
    std::map<Key, std::vector<uint64_t>> m_announced;
    /// The pieces to fetch, each given by the position of its first byte. Both lists may contain pieces that
    /// need not be fetched any longer.
    std::deque<uint64_t> m_urgent, m_queue;
    uint64_t m_queued = 0; ///< bytes of pieces in state queued
    uint64_t m_ahead = 0;  ///< bytes of pieces that are announced
    uint64_t m_held = 0;   ///< bytes of pieces that are fetched or being fetched
    uint64_t m_next_rank = 0;
    uint64_t m_strip;      ///< bytes that a connection transfers in a few round trips
    bool m_filling = true; ///< has_room(): true until memory is full, then false until half of it is free
    std::list<uint64_t> m_idle; ///< resting pieces, the least recently used first
    int m_readers = 0;
    uint64_t m_begun = 0, m_answered = 0; ///< number of requests that were begun, and that were answered
    bool m_listens = false;               ///< a reader calls take_arrived()
    Extents m_arrived;                    ///< ranges that take_arrived() has not yet returned
    /// Connections that serve this file, and connections with a request now.
    size_t m_serving = 0, m_fetching = 0;
    uint64_t m_asked = 0;   ///< requested bytes
    uint64_t m_checked = 0; ///< value of m_asked at the last check whether the file has changed
    bool m_checking = false;
    ServerHeaders m_told; ///< the server's headers at the last check
    bool m_stop = false;
    /// Initialised last, because the threads use the other members.
    std::unique_ptr<Connections> m_connections;
};

} // namespace hsi::raster
