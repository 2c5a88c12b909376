// SPDX-License-Identifier: MIT
// All files of one run in one register: its inputs, so that no output can replace one under another spelling;
// and its outputs, so that they appear together or not at all.
#pragma once

#include "core/cancel.h"
#include "core/error.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {

/// Not thread-safe: the tool's own thread uses it. FileRegister (files/file_register.h) implements it; a run
/// on arrays has no files, and uses these defaults.
class RunFiles {
  public:
    RunFiles() = default;
    RunFiles(const RunFiles&) = delete;
    RunFiles& operator=(const RunFiles&) = delete;
    virtual ~RunFiles() = default; ///< what is pending is removed

    /// The run reads `path`, the value of `role` ("src", "-original"), with `files`, which reading it touches
    /// (files_read_with()). Throws UsageError when one of them is to be written.
    virtual void reads(const std::string& /*role*/, const std::string& /*path*/,
                       const std::vector<std::string>& /*files*/) {}
    /// The run writes `path`, the value of `role`, and perhaps the side files `sides`. A repeated call for
    /// the same role and path changes nothing. Throws UsageError when the run reads one of them, or writes
    /// one for another role.
    virtual void writes(const std::string& /*role*/, const std::string& /*path*/,
                        const std::vector<std::string>& /*sides*/) {}

    /// These files may grow while the run reads them: readers see what becomes of them.
    virtual void expect_growth(const std::vector<std::string>& /*files*/) {}

    /// True when a file of any other role is `path`: also after reads() or writes() has thrown for it.
    virtual bool clashes(const std::string& /*role*/, const std::string& /*path*/) const { return false; }

    /// All files that are read, once each: existing files, and files that may appear next to a raster.
    virtual std::vector<std::string> read() const { return {}; }

    /// The outputs of the run: role and path of each, in the order of the calls.
    virtual std::vector<std::pair<std::string, std::string>> written() const { return {}; }

    /// Gets what the user should know about a file that is read or made nevertheless.
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

    /// An output that contains its file's old content and more, such as a report of a chain: it is made while
    /// no other run of these tools changes that file.
    struct Addition {
        std::string path;
        std::function<void()> make; ///< reads the file, and gives its successor to FileRegister::add()
    };
    /// An output that commit() makes together with its caller's.
    virtual void add_to_file(Addition /*addition*/) {}
    /// Gives all pending outputs their names. Throws Error, also when a file that was read has been changed
    /// or replaced since, or Cancelled when `cancel` was requested before; then every file is as it was. With
    /// additions it waits for other runs that add to their files, until `cancel` is requested, or without
    /// `cancel` for two seconds (Error). The locks are flock()'s: they end with the process that holds them.
    /// Where the file system has none, a warning says so.
    virtual void commit(const CancelFlag* cancel, const Addition* /*addition*/ = nullptr) {
        if (cancel != nullptr && cancel->requested()) throw Cancelled();
    }
    /// The same of files that were read, before a result is printed.
    virtual void check_unchanged() const {}

  private:
    Tell m_warn, m_note;
};

/// The text with the final names of files in a private folder: messages of GDAL and of the system name the
/// unfinished file.
std::string with_final_names(std::string text);

/// The register of a run: of files, or of arrays.
std::shared_ptr<RunFiles> make_run_files();

} // namespace hsi::raster
