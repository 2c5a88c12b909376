// SPDX-License-Identifier: MIT
// All files of one run in one register: what it reads, so that no output can fall on it, however it is
// spelled; and what it writes, so that its outputs appear together or not at all.
#pragma once

#include "core/cancel.h"
#include "raster/files/atomic_file.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {

/// Not thread-safe: the tool's own thread uses it.
class RunFiles {
  public:
    RunFiles();
    RunFiles(const RunFiles&) = delete;
    RunFiles& operator=(const RunFiles&) = delete;
    ~RunFiles(); ///< what is pending is removed

    /// The run reads `path`, the value of `role` ("src", "-original"), with `files`, all that reading it
    /// touches (files_read_with()). Throws UsageError when one of them is to be written.
    void reads(const std::string& role, const std::string& path, const std::vector<std::string>& files);
    /// The run writes `path`, the value of `role`, and beside it perhaps `sides`. Saying it again for the
    /// same role and path changes nothing. Throws UsageError when the run reads one of them, or writes one
    /// for another role.
    void writes(const std::string& role, const std::string& path, const std::vector<std::string>& sides);

    /// These files that the run reads may grow while it reads them: whoever reads them sees what becomes of
    /// them.
    void expect_growth(const std::vector<std::string>& files);

    /// True when a file of any other role is `path`: also after reads() or writes() has thrown for it.
    bool clashes(const std::string& role, const std::string& path) const;

    /// All files that are read, once each: they are there, or may appear beside a raster.
    std::vector<std::string> read() const;

    /// What the run writes: role and path of each, in the order in which they were said.
    std::vector<std::pair<std::string, std::string>> written() const;

    /// An output that is complete and verified, and waits for commit().
    void add(std::unique_ptr<AtomicFile> file);
    /// An output that others may read while it grows: gets its name at once. commit() leaves it there;
    /// without that what was there before comes back. Throws Error as commit(). \return the file, which lives
    /// until commit().
    AtomicFile& show(std::unique_ptr<AtomicFile> file);
    /// Text for a device, a pipe or a FIFO, which have no temporary name: written by commit(), before any
    /// other output takes its place.
    void add_stream(const std::string& path, std::string text);
    /// Where a pending output lies until commit(); the path itself when it is none.
    std::string pending_path(const std::string& destination) const;

    /// What the user should know of a file that is read or made all the same goes to these.
    using Tell = std::function<void(const std::string&)>;
    void set_listeners(Tell warn, Tell note) {
        m_warn = std::move(warn);
        m_note = std::move(note);
    }
    void warn(const std::string& text) const {
        if (m_warn) m_warn(text);
    }
    void note(const std::string& text) const {
        if (m_note) m_note(text);
    }

    /// An output that holds what its file held and more, as a report of a chain: made while no other run of
    /// these tools gives that file a successor.
    struct Addition {
        std::string path;
        std::function<void()> make; ///< reads the file, and gives its successor to add()
    };
    /// One that commit() makes, beside that of its caller.
    void add_to_file(Addition addition) { m_additions.push_back(std::move(addition)); }
    /// Gives all pending outputs their names. Throws Error, also when a file that was read has been changed
    /// or replaced since, or Cancelled when `cancel` was requested before; then every file is as it was. With
    /// additions it waits for other runs that add to their files, until `cancel` is requested, or without
    /// `cancel` for two seconds (Error). The locks are flock()'s: they end with the process that holds them.
    /// Where the file system has none, a warning says so.
    void commit(const CancelFlag* cancel, const Addition* addition = nullptr);
    /// The same of files that were read, before a result is printed.
    void check_unchanged() const;

  private:
    /// A file that is read, as it was when the run began: its contents must be one state of it.
    struct Seen {
        std::string path;
        uint64_t device, inode;
        int64_t size, seconds, nanoseconds;
        bool operator==(const Seen&) const = default;
    };
    std::optional<Seen> look_at(const std::string& path) const;

    struct Entry {
        std::string role, path;         ///< as the user wrote it
        std::vector<std::string> files; ///< all its files, `path` among them
        bool written = false;
    };
    using Pending = std::vector<std::unique_ptr<AtomicFile>>;
    static void check(const Entry& a, const Entry& b);
    bool is_read(const std::string& file) const;
    bool lies_on_read(const std::string& target) const; ///< in a folder that is read, or is such a folder
    void check_targets(const Pending& pending) const;
    void keep_what_is_read(AtomicFile& file) const; ///< out of what goes when the file comes
    static void publish(const Pending& pending);    ///< all or none

    std::vector<Entry> m_entries;
    std::vector<Seen> m_seen;
    std::vector<std::string> m_growing;
    Pending m_pending, m_shown;
    std::vector<Addition> m_additions;
    Tell m_warn, m_note;
    std::vector<std::pair<std::string, std::string>> m_streams;
};

} // namespace hsi::raster
