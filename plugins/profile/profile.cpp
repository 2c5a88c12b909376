// SPDX-License-Identifier: MIT
#include "profile/profile.h"

#include "core/cube_view.h"
#include "core/error.h"
#include "parallel/group.h"
#include "profile/max_tree.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <mutex>

namespace hsi::profile {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

std::string number(double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", x);
    return text;
}

/// Computes openings by reconstruction. Closings are openings of the negative plane.
void openings(const std::vector<float>& plane, int64_t lines, int64_t samples, bool dark,
              const AttributeSet& set, bool eight,
              const std::function<void(int k, std::vector<float>& band)>& emit, int k) {
    const float sign = dark ? -1.0f : 1.0f;
    std::vector<float> mask(plane.size()), there(plane.size());
    for (size_t i = 0; i < plane.size(); ++i) {
        const bool valid = std::isfinite(plane[i]);
        mask[i] = valid ? sign * plane[i] : -infinity;
        there[i] = valid ? mask[i] : infinity;
    }
    for (const double radius : set.thresholds) {
        auto marker = erode(there, lines, samples, static_cast<int>(radius));
        for (size_t i = 0; i < marker.size(); ++i)
            if (mask[i] == -infinity) marker[i] = -infinity;
        reconstruct(marker, mask, lines, samples, eight);
        for (size_t i = 0; i < marker.size(); ++i)
            marker[i] = mask[i] == -infinity ? no_value : sign * marker[i];
        emit(k++, marker);
    }
}

/// Throws if the plane has integers so large that single precision cannot represent all integers near them.
/// The profile would not be exact.
void check_whole(const std::vector<float>& plane, int component) {
    constexpr float first = 16777216; // 2^24; 2^24 + 1 is rounded to 2^24
    if (std::none_of(plane.begin(), plane.end(),
                     [](float v) { return std::fabs(v) >= first && std::isfinite(v); }))
        return;
    throw Error("band " + std::to_string(component + 1) +
                    " of the profiled bands has whole numbers of 16777216 (2^24) or more, which single "
                    "precision rounds",
                "Subtract a constant first to get smaller numbers (gdal_calc.py -A FILE --allBands A --calc "
                "'A-CONSTANT').");
}

} // namespace

const char* name_of(Kind kind) {
    static const char* const names[] = {"emp", "eap", "eep", "emap", "emep"};
    return names[static_cast<int>(kind)];
}

const char* name_of(Attribute attribute) {
    static const char* const names[] = {"radius", "area", "std", "inertia", "diagonal", "volume", "height"};
    return names[static_cast<int>(attribute)];
}

bool of_extinction(Kind kind) { return kind == Kind::eep || kind == Kind::emep; }

std::vector<Attribute> attributes_of(Kind kind) {
    using A = Attribute;
    if (kind == Kind::emp) return {A::radius};
    if (of_extinction(kind)) return {A::area, A::volume, A::height, A::diagonal, A::std};
    return {A::area, A::std, A::inertia, A::diagonal};
}

std::vector<double> default_thresholds(Kind kind, Attribute attribute, double pixel_metres) {
    if (of_extinction(kind)) return {729, 243, 81, 27, 9, 3, 1};
    switch (attribute) {
    case Attribute::radius:
        return {2, 4, 6, 8};
    case Attribute::std:
        return {2.5, 7.5, 12.5, 17.5, 22.5, 27.5};
    case Attribute::inertia:
        return {0.2, 0.3, 0.4, 0.5};
    case Attribute::diagonal:
        return {10, 25, 50, 100};
    case Attribute::area:
    case Attribute::volume:
    case Attribute::height:
        break;
    }
    std::vector<double> areas;
    for (int factor = 1; factor <= 13; factor += 2)
        areas.push_back(1000 / pixel_metres * factor);
    return areas;
}

int Options::bands() const {
    size_t thresholds = 0;
    for (const auto& s : sets)
        thresholds += s.thresholds.size();
    return static_cast<int>(1 + 2 * thresholds);
}

std::vector<std::string> band_names(const Options& options) {
    std::vector<std::string> names{""};
    const bool extinction = of_extinction(options.kind);
    for (const auto& set : options.sets)
        for (const bool dark : {false, true})
            for (const double t : set.thresholds) {
                const std::string attribute = name_of(set.attribute);
                if (options.kind == Kind::emp)
                    names.push_back((dark ? "closing r=" : "opening r=") + number(t));
                else if (extinction)
                    names.push_back((dark ? "minima " : "maxima ") + attribute + " n=" + number(t));
                else
                    names.push_back((dark ? "thickening " : "thinning ") + attribute + "=" + number(t));
            }
    return names;
}

uint64_t side_bytes(const Options& options, int64_t pixels) {
    // An opening needs plane, mask and its copy, marker and queue. The queue counts twice, since it may
    // contain a pixel several times.
    uint64_t most = 4 + 4 + 4 + 4 + 8;
    if (options.kind != Kind::emp) {
        // For each pixel: plane, level, flag and node. For each node: parent and level; nodes are at most as
        // many as pixels, but the lists may have spare capacity. Also a band and the values of its nodes, and
        // an attribute and its sums. Building the tree takes less memory.
        uint64_t sums = 0;
        for (const auto& set : options.sets) {
            const auto a = set.attribute;
            sums = std::max<uint64_t>(sums, a == Attribute::inertia    ? 48
                                            : a == Attribute::std      ? 24
                                            : a == Attribute::diagonal ? 16
                                            : a == Attribute::volume   ? 12
                                                                       : 4);
        }
        if (of_extinction(options.kind)) sums = std::max<uint64_t>(sums, 8 + 4 + 16 + 4 + 4);
        most = (4 + 2 + 1 + 4) + 2 * 6 + (4 + 4) + 8 + sums;
    }
    return most * static_cast<uint64_t>(pixels) + (uint64_t{1} << 20);
}

void profile_side(const std::vector<float>& plane, int64_t lines, int64_t samples, bool whole, bool dark,
                  const Options& options, const std::function<void(int k, std::vector<float>& band)>& emit) {
    int k = 0;
    if (options.kind == Kind::emp) {
        for (const auto& set : options.sets)
            openings(plane, lines, samples, dark, set, options.eight, emit, k);
        return;
    }
    Levels levels = quantise(plane, lines, samples, whole);
    const double mean = levels.mean;
    if (dark) levels.invert();
    const MaxTree tree = make_max_tree(levels, options.eight);
    std::vector<float> band(plane.size()), value(tree.size());
    for (const auto& set : options.sets) {
        const bool extinction = of_extinction(options.kind);
        auto attribute = attribute_of(tree, levels, set.attribute);
        const auto ranks = extinction ? extinction_ranks(tree, attribute) : std::vector<int32_t>();
        for (const double t : set.thresholds) {
            const double threshold = set.attribute == Attribute::std ? t / 100 * mean : t;
            const auto out = extinction ? keep_maxima(tree, ranks, t) : thin(tree, attribute, threshold);
            for (size_t n = 0; n < out.size(); ++n)
                value[n] = levels.value(dark ? 65535 - out[n] : out[n]);
            for (size_t i = 0; i < band.size(); ++i)
                band[i] = tree.node[i] < 0 ? no_value : value[static_cast<size_t>(tree.node[i])];
            emit(k++, band);
        }
    }
}

void make_profile(stream::PlaneStore& components, bool whole, const Options& options, const TakeBand& take,
                  const ProfileRun& run) {
    const auto shape = components.shape();
    if (shape.pixels() >= std::numeric_limits<int32_t>::max())
        throw Error("a component of " + std::to_string(shape.samples) + "x" + std::to_string(shape.lines) +
                        " pixels is too large for a tree",
                    "Cut the scene with -srcwin.");
    const Rect all{0, 0, shape.samples, shape.lines};
    const int bands = options.bands();
    const int64_t sides = int64_t{2} * shape.bands, steps = sides * (bands - 1) / 2;
    std::mutex mutex;
    int64_t done = 0;
    parallel::Group& ranks = parallel::group();
    ranks.for_each("profile", sides, run.workers, run.cancel, [&](int64_t unit, int) {
        const int component = static_cast<int>(unit / 2);
        const bool dark = unit % 2 != 0;
        std::vector<float> plane(static_cast<size_t>(shape.pixels()));
        components.source({component})
            ->open_reader()
            ->read(all, CubeView<float>::packed(plane.data(), 1, shape.lines, shape.samples));
        if (whole) check_whole(plane, component);
        if (!dark) {
            auto first = plane;
            take(component * bands, first);
        }
        // Each set has the bands of the bright side, then the bands of the dark side.
        std::vector<int> place;
        int next = 1;
        for (const auto& set : options.sets) {
            const auto count = static_cast<int>(set.thresholds.size());
            for (int k = 0; k < count; ++k)
                place.push_back(next + (dark ? count : 0) + k);
            next += 2 * count;
        }
        profile_side(plane, shape.lines, shape.samples, whole, dark, options,
                     [&](int k, std::vector<float>& band) {
                         if (run.cancel != nullptr && run.cancel->requested()) throw Cancelled();
                         take(component * bands + place[static_cast<size_t>(k)], band);
                         const std::lock_guard lock(mutex);
                         if (run.progress)
                             run.progress(std::min(1.0, static_cast<double>(++done * ranks.size()) /
                                                            static_cast<double>(steps)));
                     });
    });
}

} // namespace hsi::profile
