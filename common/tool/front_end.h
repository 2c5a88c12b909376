// SPDX-License-Identifier: MIT
// The caller of a tool: the terminal, GDAL's command line, a test. A run reports to the user through the
// front end, and checks the front end's flag for cancellation.
#pragma once

#include "core/cancel.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hsi::tool {

class Call;
struct CommonOptions;
struct Definition;

class FrontEnd {
  public:
    virtual ~FrontEnd() = default;
    using Warn = std::function<void(const std::string&)>;
    /// Called when the options are known and before any file is opened. Until end(), GDAL's warnings must be
    /// passed to the argument `warn`: the run stores them for its report and then calls warn() below.
    virtual void begin(const CommonOptions& options, Warn warn) = 0;
    /// Reports the progress, 0 to 1, never less than before. Called from any thread, one at a time.
    virtual void progress(double done) = 0;
    /// Shows a note on the progress; not called with -q.
    virtual void note(const std::string& text) = 0;
    /// Shows a warning. Called from any thread.
    virtual void warn(const std::string& text) = 0;
    /// Prints a result that the user requested.
    virtual void print(const std::string& text) = 0;
    /// Throws Error if printed text could not be written.
    virtual void check_printed() = 0;
    /// Returns the flag that is read between tiles. The front end sets it when the user cancels the run.
    virtual CancelFlag& cancel() = 0;
    /// Limits GDAL's block cache. A front end in another program does nothing, so that the program keeps its
    /// own setting.
    virtual void limit_cache(uint64_t bytes) = 0;
    /// Returns the failures that GDAL has reported so far, each text once, if the front end stores them.
    virtual std::vector<std::string> library_failures() const = 0;
    /// Called when the outputs have their names: from now on nothing can be undone.
    virtual void committed() = 0;
    /// Passes `words`, as the front end's users write them, to a call that is a step of the run. \throws
    /// UsageError.
    virtual void give_words(Call& call, const std::vector<std::string>& words);
    /// Returns all tools that the front end's users may call, if it has a list of them.
    virtual const std::vector<const Definition*>& tools() const;
    /// Called once after begin(), when the run is over, whether it succeeded or not.
    virtual void end() = 0;
};

} // namespace hsi::tool
