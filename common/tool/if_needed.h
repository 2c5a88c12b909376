// SPDX-License-Identifier: MIT
// -if-needed: a run does nothing when its outputs are those that the same command has made of the same files.
#pragma once

#include "core/json.h"
#include "raster/run_files.h"
#include "tool/definition.h"

#include <string>

namespace hsi::tool {

/// What a run with -if-needed leaves next to its first output: what it was told, and how the files that it
/// read and wrote were. Results depend on nothing else: not on threads, tiles, memory or ranks.
class MadeRecord {
  public:
    /// \throws UsageError when no output is a file, Error when another file has the record's name.
    explicit MadeRecord(const Call& call);

    /// Returns true if the outputs are there, as a run that was told the same has made them of the same
    /// files.
    bool holds() const;
    /// Before the outputs get their names: how the files that were read are. One that changes until then ends
    /// the run.
    void look_at_inputs(const raster::RunFiles& files);
    /// Once they have them. \throws Error.
    void write(const raster::RunFiles& files) const;

  private:
    /// What a power failure leaves of a record counts as no record; any other file is somebody's.
    void read();

    std::string m_path, m_report;
    Json m_told, m_before, m_inputs = Json::object();
};

} // namespace hsi::tool
