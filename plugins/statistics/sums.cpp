// SPDX-License-Identifier: MIT
// Sums of a scene that can be added and subtracted, and the scenes that they contain.
#include "core/digest.h"
#include "core/error.h"
#include "statistics/statistics.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

namespace hsi::statistics {
namespace {

class Digest {
  public:
    template <class T>
    void take(const T& value) {
        char bytes[sizeof(T)];
        std::memcpy(bytes, &value, sizeof value);
        m_value = digest_of({bytes, sizeof bytes}, m_value);
    }
    uint64_t value() const { return m_value; }

  private:
    uint64_t m_value = digest_of_nothing;
};

void take(Digest& digest, const math::ExactSums& sums) {
    for (const auto& part : parts_of(sums))
        for (const double x : part)
            digest.take(x);
}

/// Subtracts `what` from `to`.
void take_away(math::ExactSums& to, const math::ExactSums& what) {
    for (auto part : parts_of(what)) {
        for (double& x : part)
            x = -x;
        to.add(0, part.data(), part.size());
    }
}

} // namespace

std::vector<std::vector<double>> parts_of(const math::ExactSums& sums) {
    math::ExactSums rest(sums.size());
    rest.add(sums);
    std::vector<std::vector<double>> parts;
    // A sum of doubles has at most 2300 bits, and a part has at least 51 bits.
    constexpr size_t most = 48;
    while (parts.size() < most) {
        std::vector<double> part(sums.size()), negative(sums.size());
        bool any = false;
        for (size_t i = 0; i < part.size(); ++i) {
            part[i] = rest.value(i) + 0.0; // turns -0 into 0
            negative[i] = -part[i];
            any = any || part[i] != 0;
        }
        if (!any) return parts;
        rest.add(0, negative.data(), negative.size());
        parts.push_back(std::move(part));
    }
    throw Error("internal: an exact sum has no end");
}

void Sums::subtract(const Sums& other) {
    if (other.bands != bands) throw Error("internal: sums of other bands");
    valid -= other.valid;
    invalid -= other.invalid;
    pairs -= other.pairs;
    for (size_t b = 0; b < finite.size(); ++b)
        finite[b] -= other.finite[b];
    take_away(sum, other.sum);
    take_away(product, other.product);
    take_away(difference, other.difference);
}

stream::SceneStatistics Sums::result() const {
    stream::StatisticsSums all(bands, stream::Statistics::differences);
    all.PixelSums::add(*this);
    return all.result(); // `all` has no values of pixels, so `constant` stays empty.
}

uint64_t Sums::digest() const {
    Digest digest;
    digest.take(valid);
    digest.take(pairs);
    take(digest, sum);
    take(digest, product);
    take(digest, difference);
    return digest.value();
}

uint64_t Sums::most_bytes(int n) { return stream::StatisticsSums::bytes(n, stream::Statistics::differences); }

// Many scenes
// ----------------------------------------------------------------------------------------------------------

namespace {

bool comes_before(const SceneRecord& a, const SceneRecord& b) {
    return std::tie(a.name, a.digest, a.modified) < std::tie(b.name, b.digest, b.modified);
}

/// Returns the scene with the same pixels. A scene without valid pixels must also have the same name.
const SceneRecord* find_same(const std::vector<SceneRecord>& scenes, const SceneRecord& one) {
    const auto found = std::find_if(scenes.begin(), scenes.end(), [&](const SceneRecord& other) {
        return other.digest == one.digest && other.valid == one.valid && other.invalid == one.invalid &&
               other.samples == one.samples && other.lines == one.lines &&
               (one.valid > 0 || other.name == one.name);
    });
    return found == scenes.end() ? nullptr : &*found;
}

void insert(std::vector<SceneRecord>& scenes, const SceneRecord& one) {
    scenes.insert(std::upper_bound(scenes.begin(), scenes.end(), one, comes_before), one);
}

/// Checks counts before they are added. The counts of a file are not compared with pixels.
void check_counts(const Sums& sums, const Sums& added, const std::string& name) {
    if (sums.valid > pixel_limit - added.valid || sums.invalid > pixel_limit - added.invalid)
        throw Error(name + " cannot be added: the scenes have too many pixels together",
                    "Leave it out. A file with such a count of pixels may be damaged.");
}

} // namespace

void Statistics::add(const SceneRecord& scene, const Sums& of_scene) {
    if (const SceneRecord* const same = find_same(scenes, scene))
        throw Error(scene.name + " has the same pixels as " + same->name +
                        ", which is already in the statistics",
                    "Leave it out: its pixels would count twice.");
    check_counts(sums, of_scene, scene.name);
    insert(scenes, scene);
    sums.add(of_scene);
}

void Statistics::add(const Statistics& other, const std::string& name) {
    for (const SceneRecord& scene : other.scenes)
        if (const SceneRecord* const same = find_same(scenes, scene))
            throw Error(name + ": the pixels of " + scene.name + " are already in the statistics, from " +
                            same->name,
                        "Remove that scene first with -remove: its pixels would count twice.");
    check_counts(sums, other.sums, name);
    for (const SceneRecord& scene : other.scenes)
        insert(scenes, scene);
    sums.add(other.sums);
}

void Statistics::remove(const Statistics& other, const std::string& name) {
    auto left = scenes;
    for (const SceneRecord& scene : other.scenes) {
        const SceneRecord* const same = find_same(left, scene);
        if (same == nullptr)
            throw Error("-remove " + name + ": the statistics do not include its scene " + scene.name,
                        "Only scenes that were added can be removed, with the same pixels, bands and mask.");
        left.erase(left.begin() + (same - left.data()));
    }
    scenes = std::move(left);
    sums.subtract(other.sums);
}

model::ModelBands Statistics::left_out() const {
    model::ModelBands all;
    for (const SceneRecord& scene : scenes) {
        const auto& left = scene.left_out;
        for (size_t b = 0; b < left.bands.size(); ++b) {
            if (std::find(all.bands.begin(), all.bands.end(), left.bands[b]) != all.bands.end()) continue;
            all.bands.push_back(left.bands[b]);
            all.wavelengths_nm.push_back(left.wavelengths_nm.empty()
                                             ? std::numeric_limits<double>::quiet_NaN()
                                             : left.wavelengths_nm[b]);
        }
        all.numbers_told = left.numbers_told;
        all.file_bands = left.file_bands;
    }
    return all;
}

Extremes Statistics::extremes() const {
    Extremes all;
    for (const SceneRecord& scene : scenes) {
        if (all.low.empty()) {
            all = scene.extremes;
            continue;
        }
        for (size_t b = 0; b < all.low.size(); ++b) {
            all.low[b] = std::min(all.low[b], scene.extremes.low[b]);
            all.high[b] = std::max(all.high[b], scene.extremes.high[b]);
        }
    }
    return all;
}

stream::SceneStatistics Statistics::result() const {
    auto r = sums.result();
    const auto all = extremes();
    for (size_t b = 0; b < all.low.size() && sums.valid > 0; ++b)
        if (all.low[b] == all.high[b]) r.set_constant(static_cast<int>(b), all.low[b]);
    return r;
}

} // namespace hsi::statistics
