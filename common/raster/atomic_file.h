// SPDX-License-Identifier: MIT
// A file, with the side files that its driver makes, that appears under its name when it is complete or not
// at all.
#pragma once

#include <string>
#include <vector>

namespace hsi::raster {

/// Where the destination's file system can rename (local paths, /vsimem/) everything is made under a name of
/// this process beside the destination. Elsewhere (/vsizip/, /vsis3/ ...) it is made in place.
class AtomicFile {
  public:
    explicit AtomicFile(std::string destination);
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;
    ~AtomicFile(); ///< without commit(): removes what was made

    const std::string& destination() const { return m_destination; }
    const std::string& path() const {
        return m_path;
    } ///< create the file here; its extension is the destination's
    /// A further file to make beside, for stages on the way; removed with the others.
    std::string scratch_path(const std::string& extension) const;
    /// All that was made so far, side files too. In place: the destination alone.
    std::vector<std::string> made() const;

    /// Gives everything its final name. Texts that mention the temporary name (labels of detached formats)
    /// are corrected. Files in `stale` (side files of an older destination) that have no successor are
    /// removed. Throws Error; what was there before is then there again.
    void commit(const std::vector<std::string>& stale);

  private:
    std::string m_destination, m_path, m_folder;
    std::string m_final_stem, m_stem; ///< file names without the last extension
    bool m_in_place = false, m_done = false;
};

/// Folder part of a path, "." for none.
std::string folder_of(const std::string& path);
/// True when the path names a file of the local file system.
bool is_local(const std::string& path);
/// True when both names lead to one file; for names that are not there, when they are spelled alike.
bool same_file(const std::string& a, const std::string& b);

} // namespace hsi::raster
