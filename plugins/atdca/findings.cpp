// SPDX-License-Identifier: MIT
#include "atdca/findings.h"

#include "atdca/atdca_simd.h"
#include "core/byte_pack.h"
#include "core/error.h"

#include <algorithm>
#include <string>

namespace hsi::atdca {
namespace {

/// Candidates per message. A message has 48 KB, so the heap reuses its memory. Larger blocks are mapped anew
/// each time (keep_heap_small), and the page faults would take longer than the copies.
constexpr size_t at_once = 4096;

std::string packed(const std::vector<Best>& list) {
    BytePacker out;
    for (const Best& b : list)
        out.put(b.score).put(b.position).put(b.region).put(b.pixel).put(b.spectrum);
    return out.take();
}

std::vector<Best> unpacked_best(const std::string& bytes) {
    std::vector<Best> list;
    for (ByteUnpacker in(bytes); !in.empty();) {
        Best& b = list.emplace_back();
        in.get(b.score);
        in.get(b.position);
        in.get(b.region);
        in.get(b.pixel);
        in.get(b.spectrum);
    }
    return list;
}

/// Combines the numbers that the ranks have for each region with choose(a, b).
template <class T, class Choose>
std::vector<T> merged(parallel::Group& ranks, const std::string& what, const std::vector<T>& mine,
                      Choose choose) {
    const auto numbers = [&](const std::string& bytes) {
        auto list = ByteUnpacker(bytes).one<std::vector<T>>();
        if (list.size() != mine.size()) throw Error("internal: ranks have cut the scene into other regions");
        return list;
    };
    return numbers(
        ranks.reduce(what, BytePacker().put(mine).take(), [&](const std::string& a, const std::string& b) {
            auto both = numbers(a);
            const auto other = numbers(b);
            for (size_t i = 0; i < both.size(); ++i)
                both[i] = choose(both[i], other[i]);
            return BytePacker().put(both).take();
        }));
}

} // namespace

bool Region::is_pooled(uint32_t i) const {
    return std::find(pooled.begin(), pooled.end(), i) != pooled.end();
}

void Found::add(const Position& at, int64_t id, uint32_t pixel_of_region, const float* group_data,
                int64_t lane, int bands) {
    position.push_back(at);
    region.push_back(id);
    pixel.push_back(pixel_of_region);
    const size_t from = spectra.size();
    spectra.resize(from + static_cast<size_t>(bands));
    for (int b = 0; b < bands; ++b)
        spectra[from + static_cast<size_t>(b)] = group_data[b * group + lane];
}

void pool_findings(std::vector<Found>&& found, CandidatePool& pool, Team& team) {
    const auto bands = static_cast<size_t>(pool.bands());
    for (Found& lane : found) {
        pool.add(
            static_cast<int64_t>(lane.position.size()),
            [&](int64_t i) {
                const auto at = static_cast<size_t>(i);
                return CandidatePool::Candidate{lane.position[at], lane.spectra.data() + at * bands};
            },
            team);
        lane = Found();
    }
    found.clear();
}

void share_pooled(parallel::Group& ranks, const std::vector<Found>& mine, std::vector<Region>& regions) {
    if (!ranks.several()) return;
    size_t lane = 0, next = 0; // position in `mine` of the next piece to send
    const auto piece = [&](int) {
        while (lane < mine.size() && next == mine[lane].region.size()) {
            ++lane;
            next = 0;
        }
        if (lane == mine.size()) {
            lane = 0; // starts again for the next rank
            return std::string();
        }
        const Found& found = mine[lane];
        const size_t count = std::min(at_once, found.region.size() - next);
        BytePacker out;
        out.reserve(at_once * (sizeof found.region[0] + sizeof found.pixel[0]) + 2 * sizeof(uint64_t));
        out.put(found.region.data() + next, count).put(found.pixel.data() + next, count);
        next += count;
        return out.take();
    };
    ranks.exchange("candidates", piece, [&](int, const std::string& bytes) {
        ByteUnpacker in(bytes);
        const auto of = in.one<std::vector<int64_t>>();
        const auto pixels = in.one<std::vector<uint32_t>>();
        if (of.size() != pixels.size()) throw Error("internal: candidates without a region");
        for (size_t i = 0; i < of.size(); ++i)
            regions.at(static_cast<size_t>(of[i])).pooled.push_back(pixels[i]);
    });
}

void share_step(parallel::Group& ranks, Step& step) {
    if (!ranks.several()) return;
    const auto bytes_of = [](const Step& s) {
        return BytePacker().put(s.score).put(s.position).put(s.spectrum).take();
    };
    const auto step_of = [](const std::string& bytes) {
        ByteUnpacker in(bytes);
        Step s;
        in.get(s.score);
        in.get(s.position);
        in.get(s.spectrum);
        return s;
    };
    step =
        step_of(ranks.reduce("next target", bytes_of(step), [&](const std::string& a, const std::string& b) {
            const Step one = step_of(a), other = step_of(b);
            if (one.qualifies() != other.qualifies()) return one.qualifies() ? a : b;
            if (!one.qualifies()) return one.score >= other.score ? a : b;
            return before(other.score, other.position, one.score, one.position) ? b : a;
        }));
}

void share_best(parallel::Group& ranks, std::vector<Best>& best) {
    if (!ranks.several()) return;
    best = unpacked_best(
        ranks.reduce("best pixels", packed(best), [](const std::string& a, const std::string& b) {
            auto both = unpacked_best(a);
            auto other = unpacked_best(b);
            if (both.size() != other.size()) throw Error("internal: ranks have guessed other sequences");
            for (size_t i = 0; i < both.size(); ++i)
                if (other[i].region >= 0 &&
                    before(other[i].score, other[i].position, both[i].score, both[i].position))
                    both[i] = std::move(other[i]);
            return packed(both);
        }));
}

void share_norms(parallel::Group& ranks, std::vector<Region>& regions) {
    if (!ranks.several()) return;
    std::vector<double> norms;
    for (const Region& r : regions)
        norms.push_back(r.norm);
    norms = merged(ranks, "norms", norms, [](double a, double b) { return std::max(a, b); });
    for (size_t i = 0; i < regions.size(); ++i)
        regions[i].norm = norms[i];
}

void share_bounds(parallel::Group& ranks, std::vector<Region>& regions) {
    if (!ranks.several()) return;
    std::vector<float> bounds;
    for (const Region& r : regions)
        bounds.push_back(r.bound);
    bounds = merged(ranks, "bounds", bounds, [](float a, float b) { return std::min(a, b); });
    for (size_t i = 0; i < regions.size(); ++i)
        regions[i].bound = bounds[i];
}

} // namespace hsi::atdca
