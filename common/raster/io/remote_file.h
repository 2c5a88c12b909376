// SPDX-License-Identifier: MIT
// A remote file, as a file that this system can address: requested bytes are fetched by several connections
// at once, each byte once, and put at their place of a file in memory.
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

/// Threads for requests to servers, each with its own connections, which stay open between tasks.
class Connections {
  public:
    explicit Connections(size_t most) : m_most(most) {}
    /// When all tasks have ended.
    ~Connections();
    Connections(const Connections&) = delete;
    Connections& operator=(const Connections&) = delete;

    /// Where all threads are busy, and no more may be started, it has to wait. The task throws nothing.
    /// \throws Error when the system starts no thread at all.
    void run(std::function<void()> task);
    /// Until nothing is left to be done.
    void wait();
    /// Threads beyond that end when they have nothing to do.
    void keep(size_t most);

  private:
    void work();

    std::mutex m_mutex; ///< guards what follows
    std::condition_variable m_changed;
    std::deque<std::function<void()>> m_tasks;
    size_t m_most, m_busy = 0, m_ended = 0;
    bool m_stop = false;
    std::vector<std::thread> m_threads;
};

/// How often a server is asked, and how long one waits between: GDAL_HTTP_MAX_RETRY more than once, each time
/// twice as long.
class Tries {
  public:
    /// `path`: whose options hold. At most `most`.
    explicit Tries(const std::string& path, int most = std::numeric_limits<int>::max());
    /// After one that has failed: seconds until the next; nothing when that was the last.
    std::optional<double> next();
    /// The same, and waits. \return false when that was the last. \throws Cancelled
    bool again(const CancelFlag* cancel = nullptr);
    int failed() const { return m_failed; }

  private:
    int m_most, m_failed = 0;
    double m_wait;
};

/// Lives while GDAL opens `path`, if that is remote: GDAL's own requests are repeated when they fail, end
/// when nothing comes for long, and the first brings more than a page, unless the user sets otherwise
/// (GDAL_HTTP_MAX_RETRY ...). Files that GDAL looks for one after another, the file's beginning and possible
/// side files, are requested all at once, and are then in its cache. It does nothing for other paths.
/// \throws Error when a side file that gives the meaning of the values (header, mask ...) cannot be read
/// whole, or the server does not state whether it exists: GDAL would continue without it.
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
    /// The path, and the server's headers for it.
    ServedFile file() const { return {m_path, m_headers}; }

  private:
    friend class RemoteFile;
    void begin();
    void ask_for_all();
    static void end();

    const std::string m_path;
    bool m_ingests = false;
    std::unique_ptr<Connections> m_connections; ///< until a RemoteFile takes them
    ServerHeaders m_headers;
    double m_round_trip = 0; ///< seconds; 0: unknown
};

/// Reads through GDAL's cache: for a remote file, bytes that a broken connection has left out are requested
/// again. `file`: as VSIFOpenL() has opened it. \return false when it cannot be read; `why`, if it is not
/// null, then gets the reason.
bool read_whole(const std::string& path, void* file, uint64_t at, size_t bytes, void* to,
                std::string* why = nullptr);

/// Whether a server that delivers no file has failed in another way than by a missing file; `said`:
/// VSIGetLastErrorMsg().
bool is_trouble(const std::string& said);

/// The reason of a server that does not deliver the end of a file any longer, requested without GDAL's cache.
/// Empty if it does, if the file does not exist, or if it is local.
std::string trouble_with(const std::string& path);

/// Removes GDAL's cached bytes of a remote file. \return false for a local file.
bool forget_cached(const std::string& path);

/// Asks for the pages with several places of a server's file at the same time; GDAL's cache has them then.
void fetch_into_cache(const std::string& path, const std::vector<uint64_t>& places);

/// It has many members since they are one state under one mutex: an answered request changes pieces, queues,
/// memory and waiting readers at once.
class RemoteFile {
  public:
    /// From the first byte to the one behind the last.
    struct Extent {
        uint64_t begin = 0, end = 0;
    };
    using Extents = std::vector<Extent>;
    /// Identifies an announcement: a window of the scene.
    using Key = std::array<int64_t, 4>;

    /// Null for a local path, and for GDAL's file systems that do not answer several threads at once. \throws
    /// Error when it cannot be opened. Uses the connections of `opening`, and its facts if it was for this
    /// file.
    static std::shared_ptr<RemoteFile> open(const std::string& path, RemoteOpening& opening);
    ~RemoteFile();
    RemoteFile(const RemoteFile&) = delete;
    RemoteFile& operator=(const RemoteFile&) = delete;

    uint64_t bytes() const { return m_size; }
    /// As long as the file, and empty except for the bytes of need().
    const FileHandle& local() const { return m_local; }

    /// Returns how many of `most` bytes it takes for fetched bytes; readers will want `all`, and everything
    /// stays if there is room. Call it before the first reader.
    uint64_t share_memory(uint64_t most, uint64_t all);
    /// A wait ends with Cancelled when the flag is set, which must outlive the file.
    void end_with(const CancelFlag* cancel) { m_cancel = cancel; }

    // The following functions are thread-safe.

    /// While one of them lives, announcements count; when the last ends, they are forgotten.
    class Reader {
      public:
        /// `listens`: take_arrived() will be called.
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
    /// The extents that `key` will read, after earlier announcements: they are fetched, and stay until
    /// done(key).
    void announce(const Key& key, const Extents& extents);
    void done(const Key& key);

    /// These bytes stay where local() has them.
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
    /// Waits until the bytes are there; bytes after the file's end are left out. \throws Error naming the
    /// file when the server does not deliver them, and Cancelled.
    Hold need(const Extents& extents);

    /// need() would not wait. With `answered`: how many requests have been answered.
    bool is_here(const Extent& extent, uint64_t* answered = nullptr);
    /// Waits until more requests than `answered` are. \return false if the bytes were not announced, so that
    /// they may not be on their way.
    bool wait_for_more(const Extent& extent, uint64_t answered);
    /// The bytes that requests have brought since the last call, by any caller.
    Extents take_arrived();

    /// Bytes that GDAL has read through its own cache, and that need not be fetched again.
    void take_over(Extent extent);

    /// \throws Error when the server has another file under this name than when this was opened.
    void check_unchanged();

  private:
    void release(const std::vector<uint64_t>& pieces);

    enum class State : uint8_t { queued, fetching, ready, failed };
    /// Bytes that come and go together.
    struct Piece {
        uint64_t end = 0, rank = 0; ///< of lower ranks is wanted sooner
        State state = State::queued;
        int users = 0, announced = 0;
        bool resting = false; ///< ready, and unused
        std::list<uint64_t>::iterator idle;
        std::exception_ptr error;
    };
    using Pieces = std::map<uint64_t, Piece>; // by their first bytes

    using Opened = std::unique_ptr<void, void (*)(void*)>; ///< GDAL's file
    RemoteFile(std::string path, Opened file, uint64_t size, RemoteOpening& opening);

    // With the lock held:
    std::vector<uint64_t> cover(const Extents& extents, bool urgent);
    /// The progress of an extent: the least of its pieces; queued, too, if a part of it was not requested.
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
    /// \throws Cancelled
    void wait(double seconds);

    const std::string m_path;
    const Opened m_file;
    const uint64_t m_size;
    FileHandle m_local;
    const ServerHeaders m_headers;
    const double m_round_trip; ///< seconds; 0: unknown
    const CancelFlag* m_cancel = nullptr;
    uint64_t m_most;         ///< bytes
    uint64_t m_most_request; ///< of one

    std::mutex m_mutex; ///< guards what follows
    std::condition_variable m_changed;
    Pieces m_pieces;
    std::map<Key, std::vector<uint64_t>> m_announced;
    std::deque<uint64_t> m_urgent, m_queue; ///< pieces; some of them are no longer to be fetched
    uint64_t m_queued = 0;                  ///< bytes of the others
    uint64_t m_ahead = 0;                   ///< bytes of pieces that are announced
    uint64_t m_held = 0;                    ///< bytes of pieces that are fetched or being so
    uint64_t m_next_rank = 0;
    uint64_t m_strip;           ///< bytes of a request if the next bytes are elsewhere
    bool m_filling = true;      ///< announcements are taken until memory is full
    std::list<uint64_t> m_idle; ///< resting ones, the longest first
    int m_readers = 0;
    uint64_t m_begun = 0, m_answered = 0; ///< requests
    bool m_listens = false;               ///< take_arrived() is called
    Extents m_arrived;                    ///< not yet reported
    size_t m_serving = 0, m_fetching = 0; ///< connections; of them, with a request
    uint64_t m_asked = 0;                 ///< bytes in all
    uint64_t m_checked = 0; ///< of them, when the server was last asked whether the file has changed
    bool m_checking = false;
    ServerHeaders m_told; ///< its headers then
    bool m_stop = false;
    std::unique_ptr<Connections> m_connections; ///< after all that they touch
};

} // namespace hsi::raster
