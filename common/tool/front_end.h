// SPDX-License-Identifier: MIT
// The caller of a tool: the terminal, GDAL's command line, a test. A run reports to the user through it, and
// asks it whether to go on.
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
    /// The options are known; no file has been opened yet. Until end(), GDAL's warnings go to `warn`: the run
    /// keeps them for its report and then passes them to warn() below.
    virtual void begin(const CommonOptions& options, Warn warn) = 0;
    /// Done so far, 0 to 1, never less than before. From any thread, one at a time.
    virtual void progress(double done) = 0;
    /// Reports progress to people; not called with -q.
    virtual void note(const std::string& text) = 0;
    /// A warning for the user. It may come from any thread.
    virtual void warn(const std::string& text) = 0;
    /// A result that the user requested.
    virtual void print(const std::string& text) = 0;
    /// \throws Error when something that was printed did not get there.
    virtual void check_printed() = 0;
    /// Polled between tiles; the front end sets it when the user has had enough.
    virtual CancelFlag& cancel() = 0;
    /// Limits GDAL's block cache. A process that is not ours has its own setting.
    virtual void limit_cache(uint64_t bytes) = 0;
    /// Failures that GDAL has reported so far, each text once, where the front end keeps them.
    virtual std::vector<std::string> library_failures() const = 0;
    /// The outputs have their names: from now on nothing can be taken back.
    virtual void committed() = 0;
    /// Hands `words`, as the front end's users write them, to a call that is a step of the run. \throws
    /// UsageError.
    virtual void give_words(Call& call, const std::vector<std::string>& words);
    /// All tools that the front end's users may call, where it knows them.
    virtual const std::vector<const Definition*>& tools() const;
    /// The run is over, however it went; called once after begin().
    virtual void end() = 0;
};

} // namespace hsi::tool
