// SPDX-License-Identifier: MIT
// A remote file, as a file that this system can address: several connections fetch the requested bytes at
// once, each byte once, and write them to their position in a file in memory.
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

/// Threads for requests to servers, each with its own connections, which remain open between tasks.
class Connections {
  public:
    explicit Connections(size_t most) : m_most(most) {}
    /// Waits until all tasks have ended.
    ~Connections();
    Connections(const Connections&) = delete;
    Connections& operator=(const Connections&) = delete;

    /// Runs a task on a thread. Waits if all threads are busy and no more may be started. The task must not
    /// throw. \throws Error if the system starts no thread at all.
    void run(std::function<void()> task);
    /// Waits until all tasks are done.
    void wait();
    /// Ends idle threads beyond this number.
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

/// The number of requests to a server, and the delays between them: GDAL_HTTP_MAX_RETRY retries, each after
/// twice the delay of the one before.
class Tries {
  public:
    /// `path`: its options apply. Makes at most `most` tries.
    explicit Tries(const std::string& path, int most = std::numeric_limits<int>::max());
    /// Returns the seconds until the next try after a failed one; nullopt if that was the last.
    std::optional<double> next();
    /// Waits for the next try. \return false if the failed one was the last. \throws Cancelled
    bool again(const CancelFlag* cancel = nullptr);
    int failed() const { return m_failed; }

  private:
    int m_most, m_failed = 0;
    double m_wait;
};

/// Exists while GDAL opens `path`, if it is remote. GDAL's own requests are then repeated on failure and end
/// if no data arrive for long, and the first request gets more than a page, unless the user sets otherwise
/// (GDAL_HTTP_MAX_RETRY ...). The files that GDAL searches for one after another (the file's beginning and
/// possible side files) are requested at the same time, and are then in GDAL's cache. Does nothing for other
/// paths. \throws Error if a side file that gives the meaning of the values (header, mask ...) cannot be read
/// completely, or if the server does not state whether it exists: GDAL would continue without it.
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
    std::unique_ptr<Connections> m_connections; ///< until a RemoteFile takes them
    ServerHeaders m_headers;
    double m_round_trip = 0; ///< seconds; 0: unknown
};

/// Reads through GDAL's cache. Bytes of a remote file that are missing because of a broken connection are
/// requested again. `file`: as VSIFOpenL() has opened it. \return false if it cannot be read; `why` gets the
/// reason unless it is null.
bool read_whole(const std::string& path, void* file, uint64_t at, size_t bytes, void* to,
                std::string* why = nullptr);

/// Returns whether a server that delivers no file has failed for another reason than a missing file; `said`:
/// VSIGetLastErrorMsg().
bool is_trouble(const std::string& said);

/// Requests the end of a file without GDAL's cache. Returns the reason if the server does not deliver it any
/// longer; empty if it does, if the file does not exist, or if it is local.
std::string trouble_with(const std::string& path);

/// Removes GDAL's cached bytes of a remote file. \return false for a local file.
bool forget_cached(const std::string& path);

/// Requests the pages with several positions of a server's file at the same time; they are then in GDAL's
/// cache.
void fetch_into_cache(const std::string& path, const std::vector<uint64_t>& places);

/// A remote file. It has many members because they are one state under one mutex: an answered request changes
/// pieces, queues, memory and waiting readers at once.
class RemoteFile {
  public:
    /// A range from the first byte to the one after the last.
    struct Extent {
        uint64_t begin = 0, end = 0;
    };
    using Extents = std::vector<Extent>;
    /// Identifies an announcement: a window of the scene.
    using Key = std::array<int64_t, 4>;

    /// Opens a file. Returns null for a local path, and for GDAL's file systems that cannot answer several
    /// threads at once.
    /// \throws Error if it cannot be opened. Uses the connections of `opening`, and its facts if it was for
    /// this file.
    static std::shared_ptr<RemoteFile> open(const std::string& path, RemoteOpening& opening);
    ~RemoteFile();
    RemoteFile(const RemoteFile&) = delete;
    RemoteFile& operator=(const RemoteFile&) = delete;

    uint64_t bytes() const { return m_size; }
    /// Returns a file of the same length, which is empty except for the bytes of need().
    const FileHandle& local() const { return m_local; }

    /// Returns how many of `most` bytes it uses for fetched bytes. Readers will need `all` bytes, and all are
    /// kept if there is room. Call it before the first reader.
    uint64_t share_memory(uint64_t most, uint64_t all);
    /// Makes waits end with Cancelled when the flag is set. The flag must outlive the file.
    void end_with(const CancelFlag* cancel) { m_cancel = cancel; }

    // The following functions are thread-safe.

    /// Announcements are valid while at least one Reader exists, and are discarded when the last one ends.
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
    /// Announces the extents that `key` will read, after earlier announcements. They are fetched, and kept
    /// until done(key).
    void announce(const Key& key, const Extents& extents);
    void done(const Key& key);

    /// Keeps these bytes in local() while the object exists.
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
    /// Waits until the bytes have arrived; bytes beyond the file's end are left out. \throws Error that names
    /// the file if the server does not deliver them, and Cancelled.
    Hold need(const Extents& extents);

    /// Returns whether need() would not wait. Sets `answered` to the number of answered requests.
    bool is_here(const Extent& extent, uint64_t* answered = nullptr);
    /// Waits until more than `answered` requests are answered. \return false if the bytes were not announced,
    /// so that they may not be on their way.
    bool wait_for_more(const Extent& extent, uint64_t answered);
    /// Returns the bytes that requests have brought since the last call by any caller.
    Extents take_arrived();

    /// Marks bytes that GDAL has read through its own cache, and that need not be fetched again.
    void take_over(Extent extent);

    /// \throws Error if the server has another file under this name than when it was opened.
    void check_unchanged();

  private:
    void release(const std::vector<uint64_t>& pieces);

    enum class State : uint8_t { queued, fetching, ready, failed };
    /// Bytes that are fetched and freed together.
    struct Piece {
        uint64_t end = 0, rank = 0; ///< a lower rank is fetched sooner
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
    /// The progress of an extent is that of its slowest piece; it is also queued if a part of it was not
    /// requested.
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
    std::deque<uint64_t> m_urgent, m_queue; ///< pieces, including some that need not be fetched any longer
    uint64_t m_queued = 0;                  ///< bytes of those that must be fetched
    uint64_t m_ahead = 0;                   ///< bytes of pieces that are announced
    uint64_t m_held = 0;                    ///< bytes of pieces that are or are being fetched
    uint64_t m_next_rank = 0;
    uint64_t m_strip;           ///< bytes of a request if the next bytes are elsewhere
    bool m_filling = true;      ///< announcements are fetched until memory is full
    std::list<uint64_t> m_idle; ///< resting pieces, the least recently used first
    int m_readers = 0;
    uint64_t m_begun = 0, m_answered = 0; ///< number of requests
    bool m_listens = false;               ///< take_arrived() is called
    Extents m_arrived;                    ///< not yet reported
    size_t m_serving = 0, m_fetching = 0; ///< connections, and those with a request
    uint64_t m_asked = 0;                 ///< requested bytes
    uint64_t m_checked = 0; ///< value of m_asked when the server was last checked for a change of the file
    bool m_checking = false;
    ServerHeaders m_told; ///< its headers at that time
    bool m_stop = false;
    std::unique_ptr<Connections> m_connections; ///< initialised after all members that they use
};

} // namespace hsi::raster
