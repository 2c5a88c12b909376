// SPDX-License-Identifier: MIT
// The errors that reach a user. Every message says what is wrong; the advice says what to do.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace hsi {

/// The work could not be done (exit code 1). what() is one line; advice() may be empty.
class Error : public std::runtime_error {
  public:
    explicit Error(const std::string& what, std::string advice = {})
        : std::runtime_error(what), m_advice(std::move(advice)) {}
    const std::string& advice() const noexcept { return m_advice; }

  private:
    std::string m_advice;
};

/// The command line was wrong (exit code 2); thrown before any file is touched, or when an option does not
/// fit the file it is used on (the message then names the option and the allowed range).
class UsageError : public Error {
  public:
    using Error::Error;
};

/// SIGINT, SIGTERM or a progress callback has requested the end (exit code 1).
class Cancelled : public Error {
  public:
    Cancelled() : Error("interrupted", "No output was written.") {}
};

} // namespace hsi
