// SPDX-License-Identifier: MIT
// A file, with the side files that its driver makes. It appears under its name when it is complete, or not at
// all.
#pragma once

#include "core/file_path.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {

/// Where the destination's file system can rename (local paths, /vsimem/), all files are made under their
/// final names in a private folder next to the destination: other users cannot read, foresee or occupy it.
/// Elsewhere (/vsizip/, /vsis3/ ...) files are made in place. A destination that is a symbolic link remains a
/// link; its target is replaced. Side files are next to the target, and links to them next to the link, so
/// that a reader of either name finds all files.
///
/// A process that is killed leaves the folder behind. The folder has a lock as long as the process runs, so
/// the next run to the same destination on the same host detects that it is abandoned, and removes it.
class AtomicFile {
  public:
    /// replace: replaces an existing destination. Otherwise publish() fails if the destination exists by
    /// then.
    explicit AtomicFile(const std::string& destination, bool replace = true);
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;
    ~AtomicFile(); ///< without commit() or conclude(): removes its files

    const std::string& destination() const { return m_destination; } ///< links followed
    const std::string& path() const { return m_path; }               ///< create the file here
    /// Returns the links on the way to the destination, from the given name on.
    const std::vector<std::string>& links() const { return m_links; }
    /// Returns the names next to links that will lead to side files, each with its link. Call it before
    /// publish().
    std::vector<std::pair<std::string, std::string>> names_beside_links() const;
    /// Returns, after publish(), the names that could not be made because the folder is not writable.
    const std::vector<std::string>& missing_beside_links() const { return m_missing; }
    /// Returns a further path in the private folder, for intermediate steps; it is never published.
    std::string scratch_path(const std::string& extension) const;
    /// Returns all files made so far, including side files. In place: only the destination.
    std::vector<std::string> made() const;
    /// Returns the names that the files of made() will have, and after publish() have.
    std::vector<std::string> targets() const;
    /// Sets the side files of the old destination. Those without a successor are removed when the new file
    /// appears.
    void set_stale(std::vector<std::string> stale) { m_stale = std::move(stale); }
    const std::vector<std::string>& stale() const { return m_stale; }

    /// Gives all files their final names and keeps the files that they replace. Throws Error; everything is
    /// then as before.
    void publish();
    /// Restores the earlier files after publish(). A name that was given to another file since keeps that
    /// file; a name without a file also gets its old file back. Never throws. Returns false on failure; old
    /// files then remain in the private folder.
    bool withdraw() noexcept;
    /// Records the identity of its files before publish(), in case other files get their names later.
    void watch() { m_watched = true; }
    /// Checks one of the names of a watched file after publish(). Throws Error if the name leads to another
    /// file, or to no file.
    void check_name(const std::string& target);
    /// Calls check_name(), and then gives `made`, on the same file system, the name in one step. Throws
    /// Error.
    void renew(const std::string& made, const std::string& target);
    /// Removes the replaced files after publish().
    void conclude() noexcept;
    /// Calls publish() and conclude(), for a single output.
    void commit(const std::vector<std::string>& stale = {});

  private:
    class PrivateFolder;
    class KnownFile;
    struct Move;
    bool may_replace(const std::string& target) const;
    static bool undo(const Move& move);
    Move& move_to(const std::string& target);
    void give_name(const std::string& from, const std::string& to, PrivateFolder& keeper);
    void link_beside();
    void remove_stale();
    PrivateFolder& keeper_of(const std::string& path);

    std::string m_destination, m_folder, m_path;
    std::unique_ptr<PrivateFolder> m_private; ///< null in place
    std::vector<std::string> m_links;
    std::vector<std::pair<std::string, std::unique_ptr<PrivateFolder>>> m_keepers; ///< in folders of links
    std::vector<std::string> m_stale, m_missing;
    std::vector<Move> m_moves;        ///< completed moves, in their order
    std::vector<std::string> m_named; ///< names made by publish()
    bool m_replace = true, m_done = false, m_watched = false;
};

} // namespace hsi::raster
