// SPDX-License-Identifier: MIT
// Ranks of one thread: for a program, such as a test, whose ranks are threads.
#pragma once

#include "parallel/ranks.h"

namespace hsi::parallel {

/// Makes `ranks` the calling thread's as long as it lives, instead of the process's own. Passes and searches
/// use the ranks of the thread that runs the tool.
class ThreadJob {
  public:
    explicit ThreadJob(Ranks& ranks);
    ThreadJob(const ThreadJob&) = delete;
    ThreadJob& operator=(const ThreadJob&) = delete;
    ~ThreadJob();

  private:
    Ranks* m_before;
};

} // namespace hsi::parallel
