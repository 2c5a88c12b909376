// SPDX-License-Identifier: MIT
// One call of a tool from its arguments to its outputs, without exceptions.
#pragma once

#include "tool/definition.h"
#include "tool/host.h"

#include <string>
#include <vector>

namespace hsi::tool {

/// How a call has ended: 0 done, 1 the work failed, 2 the arguments were wrong.
struct Outcome {
    int code = 0;
    std::string what;   ///< what is wrong, one line
    std::string advice; ///< what to do; may be empty
};

/// The exception that is being handled as an outcome. `cancelled`: the host's flag is set, so that whatever
/// error follows is its echo.
Outcome current_failure(bool cancelled);

/// Checks the arguments (given to `call` already), runs the tool's checks and its body, gives all outputs and
/// the report their names together. `command` is the command line for the record, `read` are further files
/// that it was read from. Never throws.
Outcome execute(Call& call, Host& host, const std::string& command,
                const std::vector<std::string>& read = {});

/// The project's version, "0.2.0".
const char* project_version();

} // namespace hsi::tool
