// SPDX-License-Identifier: MIT
#include "tool/job.h"

#include "core/process_limits.h"
#include "math/simd_target.h"

#include <algorithm>

namespace hsi::tool {
namespace {

/// The instruction sets that compute alike: docs/architecture.md.
std::string arithmetic() {
    const std::string name = math::simd_target();
    return name.find("AVX") != std::string::npos ? "with FMA" : "without FMA";
}

/// Ranks of one node share its memory; its processors, too, unless each was given its own.
void divide_node(parallel::Ranks& ranks) {
    const std::string here = ranks.host(ranks.rank());
    const std::string mine = processor_set();
    const auto sets = ranks.all("processors", mine);
    int sharing = 0;
    for (int r = 0; r < ranks.size(); ++r) {
        const std::string& other = sets[static_cast<size_t>(r)];
        if (ranks.host(r) != here) continue;
        bool overlap = false;
        for (size_t i = 0; i < std::min(mine.size(), other.size()); ++i)
            overlap = overlap || (mine[i] == '1' && other[i] == '1');
        sharing += overlap ? 1 : 0;
    }
    share_machine(ranks.local_size(), std::max(1, sharing));
}

} // namespace

void JoinedJob::join(CancelFlag& cancel, const std::string& command) {
    m_ranks = parallel::join_ranks(cancel);
    if (!m_ranks) return;
    m_job.emplace(*m_ranks);
    parallel::Ranks& ranks = *m_ranks;
    ranks.meet();
    ranks.agree("version", project_version(), "runs another version", "Install one version on all nodes.");
    ranks.agree(
        "command", command, "was started with other arguments",
        "Start all ranks with the same command, or set HSI_MPI=NO where each process is to do a run of "
        "its own.");
    ranks.agree(
        "arithmetic", arithmetic(), "computes otherwise",
        "Their results would differ in the last digits. Use nodes that are alike, or the same HSI_SIMD "
        "for all.");
    divide_node(ranks);
}

Outcome JoinedJob::conclude(const Outcome& mine) {
    if (!m_ranks) return mine;
    const auto ending = m_ranks->conclude({mine.code, mine.what, mine.advice, false});
    return {ending.code, ending.what, ending.advice};
}

void JoinedJob::finish(int code) {
    if (m_ranks) m_ranks->finish(code);
    m_job.reset();
    m_ranks.reset();
}

} // namespace hsi::tool
