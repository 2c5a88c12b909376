// SPDX-License-Identifier: MIT
// -if-needed: a run does nothing when its outputs are those that the same command has made of the same files.
#pragma once

#include "core/json.h"
#include "raster/run_files.h"
#include "tool/definition.h"

#include <string>

namespace hsi::tool {

/// The record that a run with -if-needed leaves next to its first output: its options, and the state of the
/// files that it read and wrote. Results depend on nothing else: not on threads, tiles, memory or ranks.
class MadeRecord {
  public:
    /// \throws UsageError when no output is a file, Error when another file has the record's name.
    explicit MadeRecord(const Call& call);

    /// Returns true if the outputs exist and a run with the same options has made them from the same files.
    bool holds() const;
    /// Before the outputs get their names: how the files that were read are. One that changes until then ends
    /// the run.
    void look_at_inputs(const raster::RunFiles& files);
    /// Once they have them. \throws Error.
    void write(const raster::RunFiles& files) const;

  private:
    /// An incomplete record after a power failure counts as missing; any other file belongs to somebody and
    /// is an error.
    void read();

    std::string m_path, m_report;
    Json m_told, m_before, m_inputs = Json::object();
};

} // namespace hsi::tool
