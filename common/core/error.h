// SPDX-License-Identifier: MIT
// Contains the errors that users see. The message states what is wrong, and the advice states what to do.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace hsi {

/// Thrown if the work could not be done (exit code 1). what() is one line; advice() may be empty.
class Error : public std::runtime_error {
  public:
    explicit Error(const std::string& what, std::string advice = {})
        : std::runtime_error(what), m_advice(std::move(advice)) {}
    const std::string& advice() const noexcept { return m_advice; }

  private:
    std::string m_advice;
};

/// Thrown if the command line is wrong (exit code 2), before any file is touched. Also thrown if an option
/// does not fit its file; the message then names the option and the allowed range.
class UsageError : public Error {
  public:
    using Error::Error;
};

/// Thrown if SIGINT, SIGTERM or a progress callback has cancelled the run (exit code 1).
class Cancelled : public Error {
  public:
    Cancelled() : Error("interrupted", "No output was written.") {}
};

} // namespace hsi
