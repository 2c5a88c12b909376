// SPDX-License-Identifier: MIT
// Small outputs that are text (models, tables, reports): complete or not at all where they are files, written
// straight through where they are devices, pipes or FIFOs.
#pragma once

#include "raster/run_files.h"

#include <memory>
#include <string>

namespace hsi::raster {

struct TextOutput {
    std::string role; ///< the option that names it, for messages: "-csv"
    std::string path; ///< empty without a file: the functions below then do nothing
    bool overwrite = false;
    std::shared_ptr<RunFiles> run; ///< with it: registered, and written by its commit()
};

/// Everything that can be refused before work is done: an existing file without `overwrite`, a folder in its
/// place, a place that cannot be written, a file that the run reads or writes otherwise. Throws Error or
/// UsageError.
void check_text_output(const TextOutput& output);

/// Writes, flushes to the disk, and renames (without a run: at once). A symbolic link stays, and its target
/// is replaced. Throws Error; the old file is then untouched.
void write_text_output(const TextOutput& output, const std::string& text);

/// One new file `at` some place, written and flushed to the disk; `output` is for the message. Throws Error.
void write_file(const TextOutput& output, const std::string& at, const std::string& bytes);

} // namespace hsi::raster
