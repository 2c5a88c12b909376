// SPDX-License-Identifier: MIT
// Small outputs that are text (models, tables, reports). A file appears when it is complete, or not at all.
// Devices, pipes and FIFOs are written directly.
#pragma once

#include "raster/run_files.h"

#include <memory>
#include <string>

namespace hsi::raster {

struct TextOutput {
    std::string role; ///< option that names the output, for messages: "-csv"
    std::string path; ///< empty: no file; the functions below then do nothing
    bool overwrite = false;
    /// If set, the output is registered in this run, and RunFiles::commit() writes it.
    std::shared_ptr<RunFiles> run;
};

/// Makes all checks that can fail before the work begins: an existing file without `overwrite`, a folder with
/// the same name, a path that is not writable, a file that the run also reads or writes. Throws Error or
/// UsageError.
void check_text_output(const TextOutput& output);

/// Writes the file, flushes it to the disk, and renames it. With a run, RunFiles::commit() renames it;
/// otherwise it is renamed at once. A symbolic link remains, and its target is replaced. Throws Error; the
/// old file is then unchanged.
void write_text_output(const TextOutput& output, const std::string& text);

/// Writes a new file at the path `at` and flushes it to the disk. Throws Error; the message names `output`.
void write_file(const TextOutput& output, const std::string& at, const std::string& bytes);

} // namespace hsi::raster
