// SPDX-License-Identifier: MIT
// One call of a tool from its arguments to its outputs, without exceptions.
#pragma once

#include "core/cancel.h"
#include "core/json.h"
#include "parallel/ranks.h"
#include "tool/definition.h"
#include "tool/front_end.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::tool {

/// How a call has ended: 0 done, 1 the work failed, 2 the arguments were wrong.
struct Outcome {
    int code = 0;
    std::string what;   ///< the fault, one line
    std::string advice; ///< the advice; may be empty
    Json report = {};   ///< the tool's own entries, also of a run that failed
};

/// The present exception as an outcome. `cancelled`: the front end's flag is set, so that any error is its
/// echo.
Outcome current_failure(bool cancelled);

/// Checks the arguments (given to `call` already), runs the tool's checks and its body, gives all outputs and
/// the report their names together. `command` is the command line for the record, `read` are further files
/// that contained parts of it. Never throws.
Outcome execute(Call& call, FrontEnd& front_end, const std::string& command,
                const std::vector<std::string>& read = {});

/// For the body of a tool that runs others: hands the words of a step to its call, as the front end of the
/// run understands them. \throws UsageError.
void give_step_words(const Run& run, Call& call, const std::vector<std::string>& words);
/// Runs a finished call as a step of a run: with its front end, cancellation and register, so that outputs
/// appear with those of the run (a destination that is `at_once` or a document when it is complete), and with
/// the run's -device, -memory, -threads and -tile if the call has none. Its record goes into the run's report
/// under "steps"; progress covers the next `share` of the bar. Notes and warnings begin with `title`. \return
/// false with -dry-run: the step's output was planned, not made. \throws the tool's exceptions.
bool run_step(Run& run, Call& call, const std::string& title, const std::string& command, double share);

/// The project's version, "0.2.0".
const char* project_version();

/// A tool as one of several processes of a job: joined, compared with the others, ended with them.
class JoinedJob {
  public:
    JoinedJob() = default;
    /// If this process was started as one of several: joins them, divides the node's memory and processors,
    /// and throws Error when the processes are not alike (parallel::join_ranks()). Else does nothing.
    /// `cancel` must outlive this.
    void join(CancelFlag& cancel, const std::string& command);
    /// Whether this process speaks to the user.
    bool speaks() const { return !m_ranks || m_ranks->root(); }
    /// False for one of several processes, which use their own connections.
    bool alone() const { return !m_ranks; }
    /// The outcome of the job and the rank that it belongs to; call finish() next.
    Outcome conclude(const Outcome& mine);
    /// Leaves the job when everything is cleaned up and printed; without the others it ends the process, with
    /// this code (parallel::Ranks::finish()).
    void finish(int code);

  private:
    std::unique_ptr<parallel::Ranks> m_ranks;
    std::optional<parallel::Job> m_job;
};

} // namespace hsi::tool
