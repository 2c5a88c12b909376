// SPDX-License-Identifier: MIT
// A front end that records the messages of a run. It can cancel the run at a given progress.
#pragma once

#include "tool/front_end.h"
#include "tool/run.h"

#include <mutex>
#include <string>
#include <vector>

namespace hsi::test {

class RecordingFrontEnd final : public tool::FrontEnd {
  public:
    void begin(const tool::CommonOptions&, Warn warn) override {
        ++begun;
        receiver = std::move(warn);
    }
    void progress(double done) override {
        const std::lock_guard lock(m_mutex);
        bar.push_back(done);
        if (cancel_at > 0 && done >= cancel_at) m_cancel.request();
    }
    void note(const std::string& text) override { notes.push_back(text); }
    void warn(const std::string& text) override {
        const std::lock_guard lock(m_mutex);
        warnings.push_back(text);
    }
    void print(const std::string& text) override { printed.push_back(text); }
    void check_printed() override {}
    CancelFlag& cancel() override { return m_cancel; }
    void limit_cache(uint64_t bytes) override { cache = bytes; }
    std::vector<std::string> library_failures() const override { return {}; }
    void committed() override { ++commits; }
    void end() override {
        ++ended;
        receiver = nullptr;
    }

    int begun = 0, commits = 0, ended = 0;
    double cancel_at = 0; ///< progress at which the run is cancelled; 0: never
    uint64_t cache = 0;
    Warn receiver;
    std::vector<double> bar;
    std::vector<std::string> notes, warnings, printed;

  private:
    std::mutex m_mutex;
    CancelFlag m_cancel;
};

} // namespace hsi::test
