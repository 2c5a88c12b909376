// SPDX-License-Identifier: MIT
// An operation on single pixels that counts valid and invalid pixels.
#pragma once

#include "parallel/group.h"
#include "stream/operation.h"

#include <cstdint>
#include <vector>

namespace hsi::stream {

class CountingOperation : public Operation {
  public:
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override {
        std::vector<int64_t> counts{m_valid, m_invalid};
        ranks.add_up("pixels", counts);
        m_valid = counts[0];
        m_invalid = counts[1];
    }
    /// Return the counts, which are complete after the pass.
    int64_t valid() const { return m_valid; }
    int64_t invalid() const { return m_invalid; }

  protected:
    int64_t m_valid = 0, m_invalid = 0; ///< stop() adds the counts of a worker
};

} // namespace hsi::stream
