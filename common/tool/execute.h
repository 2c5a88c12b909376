// SPDX-License-Identifier: MIT
// Runs one call of a tool from its arguments to its outputs, without exceptions.
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

/// The outcome of a call: 0 success, 1 the work failed, 2 the arguments were wrong.
struct Outcome {
    int code = 0;
    std::string what;   ///< the fault, one line
    std::string advice; ///< the advice; may be empty
    Json report = {};   ///< the tool's own entries, also if the run failed
};

/// Converts the current exception to an outcome. `cancelled`: the front end's flag is set, so any error is a
/// consequence of the cancellation.
Outcome current_failure(bool cancelled);

/// Checks the arguments that `call` contains, runs the tool's checks and its body, and gives all outputs and
/// the report their final names together. `command` is the command line for the record; `read` are further
/// files that contained parts of the command line. Never throws.
Outcome execute(Call& call, FrontEnd& front_end, const std::string& command,
                const std::vector<std::string>& read = {});

/// Passes the words of a step to the call of the step, in the form that the run's front end reads
/// (FrontEnd::give_words()). A tool that runs other tools calls this function. \throws UsageError.
void give_step_words(const Run& run, Call& call, const std::vector<std::string>& words);
/// Runs a finished call (Call::finish()) as a step of a run, with the run's front end, cancellation and
/// register of files. The step's outputs get their names together with the outputs of the run. (A destination
/// that is `at_once`, or that is a document, appears as soon as it is complete.) Uses the run's -device,
/// -memory, -threads and -tile if the call does not have them. Adds the step's record to "steps" in the run's
/// report; progress covers the next `share` of the bar. Notes and warnings begin with `title`. \return false
/// with -dry-run: the output was planned, not made. \throws the tool's exceptions.
bool run_step(Run& run, Call& call, const std::string& title, const std::string& command, double share);

/// Returns the project's version, "0.2.0".
const char* project_version();

/// A tool as one of several processes of a job. It joins the job, compares itself with the other processes,
/// and ends together with them.
class JoinedJob {
  public:
    JoinedJob() = default;
    /// Joins the other processes if this process was started as one of several, and divides the node's memory
    /// and processors among them. Throws Error if the processes differ (parallel::join_ranks()). Does nothing
    /// for a single process. `cancel` must outlive this object.
    void join(CancelFlag& cancel, const std::string& command);
    /// Returns whether this process prints messages for the user.
    bool speaks() const { return !m_ranks || m_ranks->root(); }
    /// Returns false for one of several processes. Their connections to each other must remain open.
    bool alone() const { return !m_ranks; }
    /// Returns the outcome of the job; a failure names the rank that caused it. Call finish() next.
    Outcome conclude(const Outcome& mine);
    /// Leaves the job when everything is cleaned up and printed. Ends the process with this code if the other
    /// processes do not leave (parallel::Ranks::finish()).
    void finish(int code);

  private:
    std::unique_ptr<parallel::Ranks> m_ranks;
    std::optional<parallel::Job> m_job;
};

} // namespace hsi::tool
