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
    /// Adds an output that others may read while it grows. It gets its name at once and keeps it at commit();
    /// without commit(), the earlier file is restored. Throws Error as commit(). \return the file, which
    /// exists until commit().
    AtomicFile& show(std::unique_ptr<AtomicFile> file);
    /// Adds text for a device, a pipe or a FIFO, which have no temporary name. commit() writes it before it
    /// names any other output.
    void add_stream(const std::string& path, std::string text);
    /// Returns the current path of a pending output until commit(), otherwise the path itself.
    std::string pending_path(const std::string& destination) const;

  private:
    /// A file that is read, with its state when the run began. All reads must get this state.
    struct Seen {
        std::string path;
        FileState state;
    };
    std::optional<Seen> look_at(const std::string& path) const;

    struct Entry {
        std::string role, path;         ///< as the user wrote it
        std::vector<std::string> files; ///< all its files, including `path`
        bool written = false;
    };
    using Pending = std::vector<std::unique_ptr<AtomicFile>>;
    static void check(const Entry& a, const Entry& b);
    bool is_read(const std::string& file) const;
    bool lies_on_read(const std::string& target) const; ///< in a folder that is read, or is such a folder
    void check_targets(const Pending& pending, const std::vector<const Addition*>& additions) const;
    void keep_what_is_read(AtomicFile& file) const; ///< removes them from the files that disappear with the
                                                    ///< new file
    static void publish(const Pending& pending);    ///< all or none

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
