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

/// If the destination's file system can rename (local paths, /vsimem/), all files are made in a private
/// folder next to the destination, under their final names. Other users cannot read the folder, predict its
/// name or occupy it. On other file systems (/vsizip/, /vsis3/ ...), files are made in place. A destination
/// that is a symbolic link remains a link, and its target is replaced. Side files are next to the target.
/// Links to the side files are next to the link, so that programs find all files under both names.
///
/// A process that is killed leaves the folder behind. The folder is locked while the process runs. So the
/// next run with the same destination on the same computer detects an abandoned folder and removes it.
class AtomicFile {
  public:
    /// If `replace`, an existing destination is replaced. Otherwise publish() fails if the destination
    /// exists.
    explicit AtomicFile(const std::string& destination, bool replace = true);
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;
    ~AtomicFile(); ///< without commit() or conclude(): removes the new files

    /// The destination after following symbolic links.
    const std::string& destination() const { return m_destination; }
    const std::string& path() const { return m_path; } ///< the path at which the caller creates the file
    /// Returns the symbolic links that lead from the given name to the destination.
    const std::vector<std::string>& links() const { return m_links; }
    /// Returns the names of the links to side files that publish() will make next to links(), each with the
    /// link to the destination. Call it before publish().
    std::vector<std::pair<std::string, std::string>> names_beside_links() const;
    /// Returns the links that publish() could not make because a folder is not writable.
    const std::vector<std::string>& missing_beside_links() const { return m_missing; }
    /// Returns a further path in the private folder, for intermediate steps; it is never published.
    std::string scratch_path(const std::string& extension) const;
    /// Returns all files made so far, including side files. Returns only the destination if files are made in
    /// place.
    std::vector<std::string> made() const;
    /// Returns the final names of the files of made(), before and after publish().
    std::vector<std::string> targets() const;
    /// Sets the side files of the old destination. Side files that the new destination does not replace are
    /// removed when it appears.
    void set_stale(std::vector<std::string> stale) { m_stale = std::move(stale); }
    const std::vector<std::string>& stale() const { return m_stale; }

    /// Gives all files their final names and keeps the files that they replace. Throws Error; everything is
    /// then as before.
    void publish();
    /// Restores the earlier files after publish(). If another program has created a file with one of the
    /// names since, that file stays. A name without a file also gets its old file back. Never throws. Returns
    /// false on failure; old files then remain in the private folder.
    bool withdraw() noexcept;
    /// Call it before publish(), so that check_name() can detect other files that get the names later.
    void watch() { m_watched = true; }
    /// Checks one of the names after watch() and publish(). Throws Error if another file has the name, or if
    /// no file has it.
    void check_name(const std::string& target);
    /// Calls check_name(), and then renames `made` to `target` in one step. Both must be on the same file
    /// system. Throws Error.
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
    std::unique_ptr<PrivateFolder> m_private; ///< null if files are made in place
    std::vector<std::string> m_links;
    /// Private folders in the folders of links.
    std::vector<std::pair<std::string, std::unique_ptr<PrivateFolder>>> m_keepers;
    std::vector<std::string> m_stale, m_missing;
    std::vector<Move> m_moves;        ///< completed moves, in their order
    std::vector<std::string> m_named; ///< names that publish() has made
    bool m_replace = true, m_done = false, m_watched = false;
};

} // namespace hsi::raster
