// SPDX-License-Identifier: MIT
// The register of all files of one run. No output can replace an input under another spelling, and outputs
// appear together or not at all.
#pragma once

#include "core/cancel.h"
#include "core/error.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {

/// The register. Not thread-safe: only the tool's own thread uses it. FileRegister (files/file_register.h)
/// implements it; a run on arrays has no files, and uses these defaults.
class RunFiles {
  public:
    RunFiles() = default;
    RunFiles(const RunFiles&) = delete;
    RunFiles& operator=(const RunFiles&) = delete;
    virtual ~RunFiles() = default; ///< removes pending outputs

    /// Registers `path`, the value of `role` ("src", "-original"), as read, with `files`, the files that are
    /// read together with it (files_read_with()). Throws UsageError if the run will write one of these files.
    virtual void reads(const std::string& /*role*/, const std::string& /*path*/,
                       const std::vector<std::string>& /*files*/) {}
    /// Registers `path`, the value of `role`, as written, with the possible side files `sides`. A repeated
    /// call for the same role and path changes nothing. Throws UsageError if the run reads one of these
    /// files, or writes one for another role.
    virtual void writes(const std::string& /*role*/, const std::string& /*path*/,
                        const std::vector<std::string>& /*sides*/) {}

    /// Allows these files to grow while the run reads them.
    virtual void expect_growth(const std::vector<std::string>& /*files*/) {}

    /// Returns true if a file of another role is `path`, also after reads() or writes() has thrown for it.
    virtual bool clashes(const std::string& /*role*/, const std::string& /*path*/) const { return false; }

    /// Returns all files that are read, once each: existing files, and files that may appear next to a
    /// raster.
    virtual std::vector<std::string> read() const { return {}; }

    /// Returns role and path of each output of the run, in the order of the calls.
    virtual std::vector<std::pair<std::string, std::string>> written() const { return {}; }

    /// Receives notes for the user about a file that is read or made anyway.
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

    /// An output that contains its file's old content and more, such as an appended report. While it is made,
    /// no other run of these tools changes the file.
    struct Addition {
        std::string path;
        /// Reads the file, and passes the file that replaces it to FileRegister::add().
        std::function<void()> make;
    };
    /// Adds an output that commit() makes together with the caller's.
    virtual void add_to_file(Addition /*addition*/) {}
    /// Gives all pending outputs their names. Throws Error, also if a file that was read has been changed or
    /// replaced since. Throws Cancelled if `cancel` was requested before. In both cases all files are
    /// unchanged. With additions, waits for other runs that add to the same files: until `cancel` is
    /// requested, or without `cancel` for two seconds (Error). The locks are from flock(), and end with the
    /// process. If the file system does not support locks, a warning is given.
    virtual void commit(const CancelFlag* cancel, const Addition* /*addition*/ = nullptr) {
        if (cancel != nullptr && cancel->requested()) throw Cancelled();
    }
    /// Throws Error if a file that was read has been changed or replaced since. Call it before a result is
    /// printed.
    virtual void check_unchanged() const {}

  private:
    Tell m_warn, m_note;
};

/// Replaces the names of unfinished files, which are in a private folder, by their final names. Messages of
/// GDAL and of the operating system contain the names of unfinished files.
std::string with_final_names(std::string text);

/// Creates the register of a run, for files or for arrays.
std::shared_ptr<RunFiles> make_run_files();

} // namespace hsi::raster
