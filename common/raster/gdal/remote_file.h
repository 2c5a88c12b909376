// SPDX-License-Identifier: MIT
// A file that a server holds, as one that this machine's system can address: what is asked for is fetched by
// several connections at once, each byte once, and lies at its place of a file in memory.
#pragma once

#include "core/cancel.h"
#include "core/file_path.h"
#include "raster/gdal/raw_file.h"

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
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

/// Lives while GDAL opens `path`, where that is a server's: GDAL's own requests are repeated when they fail,
/// end when nothing comes for long, and the first brings more than a page, unless the user says otherwise
/// (GDAL_HTTP_MAX_RETRY ...). Which of the files are there that GDAL looks for beside it, one after another,
/// is asked for all at once. Nothing for other paths.
class RemoteOpening {
  public:
    explicit RemoteOpening(const std::string& path) {
        if (!is_local(path)) begin(path);
    }
    ~RemoteOpening() {
        if (m_ingests) end();
    }
    RemoteOpening(const RemoteOpening&) = delete;
    RemoteOpening& operator=(const RemoteOpening&) = delete;

  private:
    void begin(const std::string& path);
    static void end();

    bool m_ingests = false;
};

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
    static std::shared_ptr<RemoteFile> open(const std::string& path);
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
        explicit Reader(RemoteFile& file);
        ~Reader();
        Reader(const Reader&) = delete;
        Reader& operator=(const Reader&) = delete;

      private:
        RemoteFile& m_file;
    };
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

    /// What GDAL has read of it through its own cache, and need not be fetched again.
    void take_over(Extent extent);

    /// \throws Error when the server has another file under this name than when this was opened.
    void check_unchanged() const;

  private:
    void release(const std::vector<uint64_t>& pieces);

    enum class State : uint8_t { queued, fetching, ready, failed };
    /// Bytes that come and go together.
    struct Piece {
        uint64_t end = 0;
        State state = State::queued;
        int users = 0, announced = 0;
        bool resting = false; ///< ready, and nobody has use for it
        std::list<uint64_t>::iterator idle;
        std::exception_ptr error;
    };
    using Pieces = std::map<uint64_t, Piece>; // by their first bytes
    using Headers = std::map<std::string, std::string>;

    using Opened = std::unique_ptr<void, void (*)(void*)>; ///< GDAL's file
    RemoteFile(std::string path, Opened file, uint64_t size);

    /// The headers that tell one state of the file from another; empty when the server tells nothing.
    Headers headers() const;
    // With the lock held:
    std::vector<uint64_t> cover(const Extents& extents, bool urgent);
    void start_connections();
    void rest_if_unused(Pieces::iterator at);
    void make_room();
    void drop(Pieces::iterator at);
    std::optional<std::pair<Extent, std::vector<uint64_t>>> next_request();
    void forget();

    void serve();
    void fetch(const Extent& extent);
    bool wait_before_trying_again(int tries);

    const std::string m_path;
    const Opened m_file;
    const uint64_t m_size;
    FileHandle m_local;
    Headers m_headers;
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
    bool m_filling = true;                  ///< announcements are taken until memory is full
    std::list<uint64_t> m_idle;             ///< resting ones, the longest first
    int m_readers = 0;
    bool m_stop = false;
    std::vector<std::thread> m_connections; ///< after all that they touch
};

} // namespace hsi::raster
