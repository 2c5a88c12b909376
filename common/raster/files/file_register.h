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

    /// Adds an output that is complete and verified, and waits for commit().
    void add(std::unique_ptr<AtomicFile> file);
    /// Adds an output that other programs may read while it grows. The output gets its name at once. Without
    /// commit(), the file that had the name before is restored. Throws Error as commit(). \return the file,
    /// which exists until commit().
    AtomicFile& show(std::unique_ptr<AtomicFile> file);
    /// Adds text for a device, a pipe or a FIFO, which cannot have a temporary name. commit() writes the text
    /// before any other output gets its name.
    void add_stream(const std::string& path, std::string text);
    /// Returns the current path of an output that waits for commit(); for other files, returns `destination`.
    std::string pending_path(const std::string& destination) const;

  private:
    /// A file that is read, with its state when it was registered. The run must read the file in this state
    /// only.
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
    /// `target` is in a folder that is read as a dataset, or is such a folder
    bool lies_on_read(const std::string& target) const;
    void check_targets(const Pending& pending, const std::vector<const Addition*>& additions) const;
    /// Removes files that are read from file.stale(), so that they are not deleted.
    void keep_what_is_read(AtomicFile& file) const;
    static void publish(const Pending& pending); ///< publishes all outputs, or none if one fails

    std::vector<Entry> m_entries;
    std::vector<Seen> m_seen;
    std::vector<std::string> m_growing;
    Pending m_pending, m_shown;
    std::vector<Addition> m_additions;
    std::vector<std::pair<std::string, std::string>> m_streams;
};

/// Returns the register of a run that writes files, which make_run_files() has created.
inline FileRegister& register_of(RunFiles& files) { return dynamic_cast<FileRegister&>(files); }

} // namespace hsi::raster
