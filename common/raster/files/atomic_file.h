// SPDX-License-Identifier: MIT
// A file that has a temporary name until it is complete, with the side files that its driver makes. If the
// run fails, it does not appear under its final name.
#pragma once

#include "core/file_path.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {

/// If the destination's file system can rename files (local paths, /vsimem/), all files are first made in a
/// private folder next to the destination. Their names in the folder are the final names. Other users cannot
/// read the folder, predict its name or occupy it. On other file systems (/vsizip/, /vsis3/ ...), files are
/// made at their destination. A destination that is a symbolic link remains a link, and its target is
/// replaced. Side files are written next to the target. Links to these side files are made next to the link,
/// so that programs find all files under both names.
///
/// A process that is killed leaves the folder behind. Because the folder is locked while the process runs,
/// the next run with the same destination on the same computer detects an abandoned folder, and removes it.
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
    /// Returns the links to side files that publish() will make. Each entry has the name of such a link, and
    /// the link to the destination (links()) next to which it will be. Call it before publish().
    std::vector<std::pair<std::string, std::string>> names_beside_links() const;
    /// Returns links to side files that publish() could not make, and old side files that it could not
    /// remove, because their folder is not writable.
    const std::vector<std::string>& missing_beside_links() const { return m_missing; }
    /// Returns a path for a temporary file, which is never published. The path is in the private folder or,
    /// if files are made at their destination, in the folder for temporary files.
    std::string scratch_path(const std::string& extension) const;
    /// Returns the current paths of all files made so far, including side files. If files are made at their
    /// destination, returns only the destination.
    std::vector<std::string> made() const;
    /// Returns the final names of the files of made(), before and after publish().
    std::vector<std::string> targets() const;
    /// Sets the side files of the old destination. Side files that the new destination does not replace are
    /// removed when it appears.
    void set_stale(std::vector<std::string> stale) { m_stale = std::move(stale); }
    const std::vector<std::string>& stale() const { return m_stale; }

    /// Gives all files their final names. Replaced and stale files are kept until conclude(). Throws Error;
    /// all files then have their earlier names.
    void publish();
    /// Restores the earlier files after publish(). If another program has since replaced a new file, which is
    /// known only after watch(), its file stays. If it has removed a new file, the old file is restored.
    /// Never throws. Returns false on failure; old files then remain in the private folder.
    bool withdraw() noexcept;
    /// Makes publish() remember the new files, so that check_name() and withdraw() can detect other files
    /// with the same names. Call it before publish().
    void watch() { m_watched = true; }
    /// Checks that the file with the name `target` is still the file that publish() has given this name. Call
    /// it after watch() and publish(). Throws Error if another file has the name, or if no file has it.
    void check_name(const std::string& target);
    /// Replaces the published file `target` by the file `made`. Calls check_name(), and then renames `made`
    /// in one step, so both must be on the same file system. Throws Error.
    void renew(const std::string& made, const std::string& target);
    /// Removes the replaced and stale files after publish(). withdraw() is then no longer possible.
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
