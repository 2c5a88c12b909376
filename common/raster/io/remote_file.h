// SPDX-License-Identifier: MIT
// A file that a server holds, as one that this machine's system can address: what is asked for is fetched by
// several connections at once, each byte once, and lies at its place of a file in memory.
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

/// Threads that ask servers, each with connections of its own, which stay open between one task and the next.
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

/// Lives while GDAL opens `path`, where that is a server's: GDAL's own requests are repeated when they fail,
/// end when nothing comes for long, and the first brings more than a page, unless the user says otherwise
/// (GDAL_HTTP_MAX_RETRY ...). What GDAL looks for one after another, the file's beginning and the files that
/// may lie beside it, is asked for all at once, and is in its cache then. Nothing for other paths.
/// \throws Error when a file beside it that tells what its values are (header, mask ...) is not to be had
/// whole, or the server does not say whether there is one: GDAL would go on without.
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
    /// The path, and what the server told of it.
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

/// Reads through GDAL's cache: of a server's file, what a connection that broke has left out is asked for
/// again. `file`: as VSIFOpenL() has opened it. \return false when it cannot be had; `why`, where it is not
/// null, gets the reason then.
bool read_whole(const std::string& path, void* file, uint64_t at, size_t bytes, void* to,
                std::string* why = nullptr);

/// Whether a server that gives no file has said less than that there is none: what VSIGetLastErrorMsg() says.
bool is_trouble(const std::string& said);

/// What a server says that gives the end of a file no longer, asked past GDAL's cache. Empty: it gives it, or
/// has no such file, or the file is of this machine.
std::string trouble_with(const std::string& path);

/// What GDAL keeps of a server's file, a part of it perhaps. \return false for a file of this machine's.
bool forget_cached(const std::string& path);

/// Asks for the pages with several places of a server's file at the same time; GDAL's cache has them then.
void fetch_into_cache(const std::string& path, const std::vector<uint64_t>& places);

/// It has many members since they are one state under one mutex: a request that is answered changes pieces,
/// queues, memory and what waits at once.
class RemoteFile {
  public:
    /// From the first byte to the one behind the last.
    struct Extent {
        uint64_t begin = 0, end = 0;
    };
    using Extents = std::vector<Extent>;
    /// Who announces what he is going to read: a window of the scene.
    using Key = std::array<int64_t, 4>;

    /// Null for a path of this machine's, and for one of GDAL's file systems that do not answer several
    /// threads at once. \throws Error when it cannot be opened.
    /// With the connections of `opening`, and with what it has been told, if it was this file's.
    static std::shared_ptr<RemoteFile> open(const std::string& path, RemoteOpening& opening);
    ~RemoteFile();
    RemoteFile(const RemoteFile&) = delete;
    RemoteFile& operator=(const RemoteFile&) = delete;

    uint64_t bytes() const { return m_size; }
    /// As long as the file, and empty but for what need() has brought.
    const FileHandle& local() const { return m_local; }

    /// Of `most` bytes, those that it takes for what is fetched, of which readers will want `all`: all stays
    /// where there is room. Before the first reader.
    uint64_t share_memory(uint64_t most, uint64_t all);
    /// A wait ends with Cancelled when the flag is set, which must outlive the file.
    void end_with(const CancelFlag* cancel) { m_cancel = cancel; }

    // What follows is thread-safe.

    /// While one of them lives, what is announced counts; when the last ends, it is forgotten.
    class Reader {
      public:
        /// `listens`: somebody calls take_arrived().
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
    /// What `key` will read, after what was announced before: it is fetched, and stays until done(key).
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
    /// Waits until the bytes are there; what lies behind the file's end is left out. \throws Error naming the
    /// file when the server does not give them, and Cancelled.
    Hold need(const Extents& extents);

    /// need() would not wait. With `answered`: how many requests have been answered.
    bool is_here(const Extent& extent, uint64_t* answered = nullptr);
    /// Waits until more requests than `answered` are. \return false when nobody has announced the bytes, so
    /// that none may be on its way to them.
    bool wait_for_more(const Extent& extent, uint64_t answered);
    /// What requests have brought since the last call, by whomever that was made.
    Extents take_arrived();

    /// What GDAL has read of it through its own cache, and need not be fetched again.
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
        bool resting = false; ///< ready, and nobody has use for it
        std::list<uint64_t>::iterator idle;
        std::exception_ptr error;
    };
    using Pieces = std::map<uint64_t, Piece>; // by their first bytes

    using Opened = std::unique_ptr<void, void (*)(void*)>; ///< GDAL's file
    RemoteFile(std::string path, Opened file, uint64_t size, RemoteOpening& opening);

    // With the lock held:
    std::vector<uint64_t> cover(const Extents& extents, bool urgent);
    /// How far an extent has come: the least of its pieces; queued, too, where nobody has asked for a part of
    /// it.
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
    uint64_t m_strip;           ///< bytes of a request where what comes next lies elsewhere
    bool m_filling = true;      ///< announcements are taken until memory is full
    std::list<uint64_t> m_idle; ///< resting ones, the longest first
    int m_readers = 0;
    uint64_t m_begun = 0, m_answered = 0; ///< requests
    bool m_listens = false;               ///< somebody calls take_arrived()
    Extents m_arrived;                    ///< that it has not told of
    size_t m_serving = 0, m_fetching = 0; ///< connections; of them, with a request
    uint64_t m_asked = 0;                 ///< bytes in all
    uint64_t m_checked = 0; ///< of them, when the server was last asked whether the file has changed
    bool m_checking = false;
    ServerHeaders m_told; ///< what it said then
    bool m_stop = false;
    std::unique_ptr<Connections> m_connections; ///< after all that they touch
};

} // namespace hsi::raster
