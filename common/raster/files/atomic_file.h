// SPDX-License-Identifier: MIT
// A file, with the side files that its driver makes, that appears under its name when it is complete or not
// at all.
#pragma once

#include "core/file_path.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {

/// Where the destination's file system can rename (local paths, /vsimem/), everything is made, under its
/// final name, in a private folder next to the destination: other users cannot read, foresee or occupy it.
/// Elsewhere (/vsizip/, /vsis3/ ...) files are made in place. A destination that is a symbolic link stays a
/// link; its target is replaced. Side files are next to the target, and links to them next to the link, so
/// that a reader of either name finds all files.
///
/// A process that is killed leaves that folder. It holds a lock as long as the process lives, so the next run
/// to the same destination on the same host knows that it is abandoned, and removes it.
class AtomicFile {
  public:
    /// replace: an existing destination gives way; without it publish() fails when one has appeared.
    explicit AtomicFile(const std::string& destination, bool replace = true);
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;
    ~AtomicFile(); ///< without commit() or conclude(): removes what was made

    const std::string& destination() const { return m_destination; } ///< links followed
    const std::string& path() const { return m_path; }               ///< create the file here
    /// The links on the way to the destination, from the given name on.
    const std::vector<std::string>& links() const { return m_links; }
    /// Before publish(): the names next to links that will lead to side files, each with its link.
    std::vector<std::pair<std::string, std::string>> names_beside_links() const;
    /// After publish(): the names that could not be made, since nobody may write there.
    const std::vector<std::string>& missing_beside_links() const { return m_missing; }
    /// A further file in the private folder, for intermediate steps; never published.
    std::string scratch_path(const std::string& extension) const;
    /// All that was made so far, side files too. In place: the destination alone.
    std::vector<std::string> made() const;
    /// The names that made() will have, and after publish() has.
    std::vector<std::string> targets() const;
    /// Side files of the old destination: those without a successor are removed when the new one comes.
    void set_stale(std::vector<std::string> stale) { m_stale = std::move(stale); }
    const std::vector<std::string>& stale() const { return m_stale; }

    /// Gives everything its final name and keeps what it replaces. Throws Error; everything is then as
    /// before.
    void publish();
    /// After publish(): restores what was there before. A name that was given to another file since stays
    /// with that file; a name that has no file now gets the old file back, too. Never throws; returns false
    /// when that failed, and old files stay in the private folder.
    bool withdraw() noexcept;
    /// Before publish(): records the identity of its files, in case others get their names later.
    void watch() { m_watched = true; }
    /// After publish(), for a file that is watched: checks one of its names. Throws Error when the name leads
    /// to another file, or to none.
    void check_name(const std::string& target);
    /// check_name(), and then `made`, on the same file system, takes the name in one step. Throws Error.
    void renew(const std::string& made, const std::string& target);
    /// After publish(): removes what was replaced.
    void conclude() noexcept;
    /// publish() and conclude() for an output that is alone.
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
    std::unique_ptr<PrivateFolder> m_private; ///< none in place
    std::vector<std::string> m_links;
    std::vector<std::pair<std::string, std::unique_ptr<PrivateFolder>>> m_keepers; ///< in folders of links
    std::vector<std::string> m_stale, m_missing;
    std::vector<Move> m_moves;        ///< those that were done, in their order
    std::vector<std::string> m_named; ///< what publish() has named
    bool m_replace = true, m_done = false, m_watched = false;
};

} // namespace hsi::raster
