// SPDX-License-Identifier: MIT
// The register of all files of one run. An output cannot replace an input, even if its path is spelled
// differently. All outputs get their names together, or none does.
#pragma once

#include "core/cancel.h"
#include "core/error.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {

/// The register of files. Not thread-safe: only the tool's own thread uses it. FileRegister
/// (files/file_register.h) is the register of a run on files. A run on arrays has no files and uses this
/// class itself.
class RunFiles {
  public:
    RunFiles() = default;
    RunFiles(const RunFiles&) = delete;
    RunFiles& operator=(const RunFiles&) = delete;
    virtual ~RunFiles() = default; ///< removes pending outputs

    /// Registers that the run reads `path`, the value of `role` ("src", "-original"). `files` are the files
    /// that are read together with it (files_read_with()). Throws UsageError if the run will write one of
    /// these files.
    virtual void reads(const std::string& /*role*/, const std::string& /*path*/,
                       const std::vector<std::string>& /*files*/) {}
    /// Registers that the run writes `path`, the value of `role`. `sides` are the possible side files of the
    /// output. A repeated call for the same role and path replaces the earlier one. Throws UsageError if the
    /// run reads one of these files, or writes one of them for another role.
    virtual void writes(const std::string& /*role*/, const std::string& /*path*/,
                        const std::vector<std::string>& /*sides*/) {}

    /// Allows these files to change while the run reads them, because another program appends to them.
    virtual void expect_growth(const std::vector<std::string>& /*files*/) {}

    /// Returns true if `path` is one of the files that were registered for another role, even if reads() or
    /// writes() has thrown for that role.
    virtual bool clashes(const std::string& /*role*/, const std::string& /*path*/) const { return false; }

    /// Returns all files that were registered as read, each once. The list includes names of side files that
    /// need not exist.
    virtual std::vector<std::string> read() const { return {}; }

    /// Returns role and path of each output of the run, in the order of the calls.
    virtual std::vector<std::pair<std::string, std::string>> written() const { return {}; }

    /// Receives a warning or a note for the user. The run continues after it.
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

    /// An output to which new content is appended, such as a report. While the new version of the file is
    /// made from the old one, no other run of these tools changes the file.
    struct Addition {
        std::string path;
        /// Reads the old file, and passes the new version of the file to FileRegister::add().
        std::function<void()> make;
    };
    /// Registers an addition, which commit() makes together with the addition that is passed to it.
    virtual void add_to_file(Addition /*addition*/) {}
    /// Makes the additions, then gives all pending outputs their names. Throws Error, also if a file that was
    /// read has been changed or replaced since. Throws Cancelled if `cancel` was requested before. In both
    /// cases all files are unchanged. Additions are made under locks (flock()), which end with the process.
    /// If another run has locked a file, waits until the lock is free or `cancel` is requested. Without
    /// `cancel`, throws Error after two seconds. If the file system does not support locks, a warning is
    /// given.
    virtual void commit(const CancelFlag* cancel, const Addition* /*addition*/ = nullptr) {
        if (cancel != nullptr && cancel->requested()) throw Cancelled();
    }
    /// Throws Error if a file that was read has been changed or replaced since. Call it before a result is
    /// printed.
    virtual void check_unchanged() const {}

  private:
    Tell m_warn, m_note;
};

/// Returns a text in which the paths of unfinished files, which are in private folders, are replaced by their
/// final paths. It is needed for messages of GDAL and of the operating system.
std::string with_final_names(std::string text);

/// Creates the register of a run, for files or for arrays.
std::shared_ptr<RunFiles> make_run_files();

} // namespace hsi::raster
