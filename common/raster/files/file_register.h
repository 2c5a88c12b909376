// SPDX-License-Identifier: MIT
// The register of a run's files: the functions of RunFiles, and the outputs that wait for their names.
#pragma once

#include "core/file_state.h"
#include "raster/files/atomic_file.h"
#include "raster/run_files.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {

class FileRegister final : public RunFiles {
  public:
    FileRegister() = default;
    ~FileRegister() override;

    void reads(const std::string& role, const std::string& path,
               const std::vector<std::string>& files) override;
    void writes(const std::string& role, const std::string& path,
                const std::vector<std::string>& sides) override;
    void expect_growth(const std::vector<std::string>& files) override;
    bool clashes(const std::string& role, const std::string& path) const override;
    std::vector<std::string> read() const override;
    std::vector<std::pair<std::string, std::string>> written() const override;
    void add_to_file(Addition addition) override { m_additions.push_back(std::move(addition)); }
    void commit(const CancelFlag* cancel, const Addition* addition = nullptr) override;
    void check_unchanged() const override;

    /// Adds an output that is complete and verified. commit() gives it its name.
    void add(std::unique_ptr<AtomicFile> file);
    /// Adds an output that other programs may read while it grows. The output gets its name at once. Without
    /// commit(), the destructor restores the file that had the name before. Throws Error as commit() does.
    /// \return the file; the reference is valid until commit().
    AtomicFile& show(std::unique_ptr<AtomicFile> file);
    /// Adds text for a device, a pipe or a FIFO, which cannot have a temporary name. commit() writes the text
    /// before any other output gets its name.
    void add_stream(const std::string& path, std::string text);
    /// Returns the current path of the pending output with this destination; `destination` itself if there is
    /// no such output.
    std::string pending_path(const std::string& destination) const;

  private:
    /// A file that is read, with its state when it was registered. A change of the file after that is an
    /// error.
    struct Seen {
        std::string path;
        FileState state;
    };
    std::optional<Seen> look_at(const std::string& path) const;

    struct Entry {
        std::string role, path;         ///< role, and path as the user wrote it
        std::vector<std::string> files; ///< all files of the entry, including `path`
        bool written = false;
    };
    using Pending = std::vector<std::unique_ptr<AtomicFile>>;
    static void check(const Entry& a, const Entry& b);
    bool is_read(const std::string& file) const;
    /// Returns true if `target` is in a folder that is read as a dataset (Zarr), or is a folder that contains
    /// a file that is read.
    bool lies_on_read(const std::string& target) const;
    void check_targets(const Pending& pending, const std::vector<const Addition*>& additions) const;
    /// Takes the files that this run reads out of the list file.stale(), so that they are not deleted.
    void keep_what_is_read(AtomicFile& file) const;
    static void publish(const Pending& pending); ///< publishes all outputs, or none if one fails

    std::vector<Entry> m_entries;
    std::vector<Seen> m_seen;
    std::vector<std::string> m_growing;
    Pending m_pending, m_shown;
    std::vector<Addition> m_additions;
    std::vector<std::pair<std::string, std::string>> m_streams;
};

/// Returns `files` as FileRegister. The object must be the register of a run on files, which make_run_files()
/// has created.
inline FileRegister& register_of(RunFiles& files) { return dynamic_cast<FileRegister&>(files); }

} // namespace hsi::raster
