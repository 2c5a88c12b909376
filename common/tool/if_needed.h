// SPDX-License-Identifier: MIT
// -if-needed: skips a run if the same command has already made its outputs from the same files.
#pragma once

#include "core/json.h"
#include "raster/run_files.h"
#include "tool/definition.h"

#include <string>

namespace hsi::tool {

/// The record that a run with -if-needed writes next to its first output: its options, and the states of the
/// files that it read and wrote. Threads, tiles, memory and ranks are left out, because they do not change
/// results.
class MadeRecord {
  public:
    /// Derives the path and the contents of the record from the arguments. \throws UsageError if no output is
    /// a file, and Error if another file has the name of the record.
    explicit MadeRecord(const Call& call);

    /// Returns true if the outputs exist and a run with the same options has made them from the same files.
    bool holds() const;
    /// Stores the states of the files that were read, before the outputs get their names. If a file has
    /// changed during the run, the run fails.
    void look_at_inputs(const raster::RunFiles& files);
    /// Writes the record after the outputs have their names. \throws Error.
    void write(const raster::RunFiles& files) const;

  private:
    /// Reads the record. An incomplete record after a power failure counts as missing; any other file with
    /// its name is an error.
    void read();

    std::string m_path, m_report;
    Json m_told, m_before, m_inputs = Json::object();
};

} // namespace hsi::tool
