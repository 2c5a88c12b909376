// SPDX-License-Identifier: MIT
// Ranks that are threads of one program, such as a test.
#pragma once

#include "parallel/ranks.h"

namespace hsi::parallel {

/// Makes `ranks` the ranks of the calling thread, instead of those of the process, as long as this object
/// exists. Passes and searches use the ranks of the thread that runs the tool.
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
