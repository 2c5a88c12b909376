// SPDX-License-Identifier: MIT
// A tool as one of several processes of a job: joined, compared with the others, ended with them.
#pragma once

#include "core/cancel.h"
#include "parallel/ranks.h"
#include "tool/execute.h"

#include <memory>
#include <optional>
#include <string>

namespace hsi::tool {

class JoinedJob {
  public:
    JoinedJob() = default;
    /// Where this process was started as one of several: joins them, divides what the node has, and throws
    /// Error when they are not alike (parallel::join_ranks()). Else nothing. `cancel` must outlive this.
    void join(CancelFlag& cancel, const std::string& command);
    /// Whether this process speaks to the user.
    bool speaks() const { return !m_ranks || m_ranks->root(); }
    /// How the job has ended, to whom this rank's outcome belongs; call finish() next.
    Outcome conclude(const Outcome& mine);
    /// Leaves the job when all is cleaned up and said; without the others it ends the process, with this code
    /// (parallel::Ranks::finish()).
    void finish(int code);

  private:
    std::unique_ptr<parallel::Ranks> m_ranks;
    std::optional<parallel::Job> m_job;
};

} // namespace hsi::tool
