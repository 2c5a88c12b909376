// SPDX-License-Identifier: MIT
#include "atdca/findings.h"

#include "atdca/atdca_simd.h"
#include "core/byte_pack.h"
#include "core/error.h"

#include <algorithm>
#include <string>

namespace hsi::atdca {
namespace {

/// Of all ranks together, in one message.
constexpr uint64_t message_bytes = uint64_t{4} << 20;

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

/// A number of every region, put together by choose(a, b).
template <class T, class Choose>
std::vector<T> merged(parallel::Ranks& ranks, const std::string& what, const std::vector<T>& mine,
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

void pool_findings(parallel::Ranks& ranks, std::vector<Found>&& mine, std::vector<Region>& regions,
                   CandidatePool& pool) {
    const auto bands = static_cast<size_t>(pool.bands());
    if (!ranks.several()) {
        for (Found& found : mine) {
            for (size_t i = 0; i < found.position.size(); ++i)
                pool.add(found.position[i], found.spectra.data() + i * bands);
            found = Found();
        }
        return;
    }
    const uint64_t each = bands * sizeof(float) + 32;
    const uint64_t most = std::max<uint64_t>(1, message_bytes / (each * static_cast<uint64_t>(ranks.size())));
    std::vector<float> x(bands);
    size_t lane = 0, next = 0; // what is sent next
    for (bool more = true; more;) {
        BytePacker out;
        uint64_t count = 0;
        while (lane < mine.size() && count < most) {
            const Found& found = mine[lane];
            if (next == found.position.size()) {
                mine[lane++] = Found();
                next = 0;
                continue;
            }
            const float* const from = found.spectra.data() + next * bands;
            out.put(found.position[next]).put(found.region[next]).put(found.pixel[next]);
            out.put(std::vector<float>(from, from + bands));
            ++count;
            ++next;
        }
        const auto all = ranks.all("candidates", out.take());
        more = false; // a rank that has sent nothing has nothing left
        for (int rank = 0; rank < ranks.size(); ++rank)
            for (ByteUnpacker in(all[static_cast<size_t>(rank)]); !in.empty(); more = true) {
                const auto at = in.one<Position>();
                const auto region = in.one<int64_t>();
                const auto pixel = in.one<uint32_t>();
                in.get(x);
                pool.add(at, x.data());
                if (rank != ranks.rank()) regions.at(static_cast<size_t>(region)).pooled.push_back(pixel);
            }
    }
}

void share_best(parallel::Ranks& ranks, std::vector<Best>& best) {
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

void share_norms(parallel::Ranks& ranks, std::vector<Region>& regions) {
    if (!ranks.several()) return;
    std::vector<double> norms;
    for (const Region& r : regions)
        norms.push_back(r.norm);
    norms = merged(ranks, "norms", norms, [](double a, double b) { return std::max(a, b); });
    for (size_t i = 0; i < regions.size(); ++i)
        regions[i].norm = norms[i];
}

void share_bounds(parallel::Ranks& ranks, std::vector<Region>& regions) {
    if (!ranks.several()) return;
    std::vector<float> bounds;
    for (const Region& r : regions)
        bounds.push_back(r.bound);
    bounds = merged(ranks, "bounds", bounds, [](float a, float b) { return std::min(a, b); });
    for (size_t i = 0; i < regions.size(); ++i)
        regions[i].bound = bounds[i];
}

} // namespace hsi::atdca
