// SPDX-License-Identifier: MIT
#include "sample/sample.h"

#include "core/counted.h"
#include "core/error.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

namespace hsi::sample {
namespace {

/// A whole number below n, without bias. The standard library's distributions differ between implementations.
int64_t below(std::mt19937_64& random, int64_t n) {
    const auto bound = static_cast<uint64_t>(n);
    const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    uint64_t x = random();
    while (x >= limit)
        x = random();
    return static_cast<int64_t>(x % bound);
}

/// Every class has its own stream of random numbers: what one class wants does not change another's choice.
std::mt19937_64 stream_of(uint64_t seed, int value) {
    std::seed_seq mix{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                      static_cast<uint32_t>(value)};
    return std::mt19937_64(mix);
}

std::string label(const LabelClass& c) {
    return "class " + std::to_string(c.value) + (c.name.empty() ? "" : " (" + c.name + ")");
}

int64_t wanted(const LabelClass& c, const Options& options) {
    const auto own = options.by_class.find(c.value);
    const Share& share = own == options.by_class.end() ? options.share : own->second;
    const int64_t n =
        share.count >= 0 ? share.count
                         : std::max<int64_t>(1, std::llround(share.fraction * static_cast<double>(c.pixels)));
    if (n > c.pixels)
        throw Error(label(c) + " has " + counted(c.pixels, "labelled pixel") + ", fewer than the " +
                        counted(n, "training pixel") + " asked for",
                    "Ask for fewer of this class: -n " +
                        std::to_string(std::max<int64_t>(1, c.pixels * 3 / 4)) + ":" +
                        std::to_string(c.value) + ".");
    return n;
}

/// `n` of `pixels`, evenly (a partial Fisher-Yates shuffle); `pixels` is reordered.
void draw(std::vector<size_t>& pixels, int64_t n, std::mt19937_64& random) {
    for (int64_t i = 0; i < n; ++i) {
        const int64_t j = i + below(random, static_cast<int64_t>(pixels.size()) - i);
        std::swap(pixels[static_cast<size_t>(i)], pixels[static_cast<size_t>(j)]);
    }
}

/// Pixels of a class in patches: around each drawn centre the nearest free ones.
void grow_patches(const std::vector<size_t>& pixels, const std::vector<int64_t>& index, int64_t samples,
                  int64_t n, int patches, std::mt19937_64& random, std::vector<Part>& part) {
    std::vector<size_t> free = pixels;
    for (int64_t k = std::min<int64_t>(patches, n); k > 0 && n > 0; --k) {
        const int64_t share = n / k;
        const int64_t centre =
            index[free[static_cast<size_t>(below(random, static_cast<int64_t>(free.size())))]];
        const int64_t cy = centre / samples, cx = centre % samples;
        const auto squared = [&](size_t i) {
            const int64_t dy = index[i] / samples - cy, dx = index[i] % samples - cx;
            return dx * dx + dy * dy;
        };
        std::stable_sort(free.begin(), free.end(),
                         [&](size_t a, size_t b) { return squared(a) < squared(b); });
        for (int64_t i = 0; i < share; ++i)
            part[free[static_cast<size_t>(i)]] = Part::train;
        free.erase(free.begin(), free.begin() + share);
        std::sort(free.begin(), free.end());
        n -= share;
    }
}

/// Takes test pixels nearer than `distance` to a training pixel out.
void keep_distance(const std::vector<int64_t>& index, int64_t samples, int64_t lines, double distance,
                   Split& split) {
    std::vector<char> near(static_cast<size_t>(samples * lines), 0);
    const auto reach = static_cast<int64_t>(std::ceil(distance));
    for (size_t i = 0; i < index.size(); ++i) {
        if (split.part[i] != Part::train) continue;
        const int64_t cy = index[i] / samples, cx = index[i] % samples;
        for (int64_t y = std::max<int64_t>(0, cy - reach); y <= std::min(lines - 1, cy + reach); ++y) {
            const double dy = static_cast<double>(y - cy);
            for (int64_t x = std::max<int64_t>(0, cx - reach); x <= std::min(samples - 1, cx + reach); ++x) {
                const double dx = static_cast<double>(x - cx);
                if (dx * dx + dy * dy < distance * distance) near[static_cast<size_t>(y * samples + x)] = 1;
            }
        }
    }
    for (size_t i = 0; i < index.size(); ++i)
        if (split.part[i] == Part::test && near[static_cast<size_t>(index[i])]) {
            split.part[i] = Part::left_out;
            ++split.left_out;
        }
}

struct ShareText {
    Share share;
    std::vector<std::string> classes; ///< empty: all
};

ShareText parse_share(const std::string& text, bool fraction) {
    const std::string option = fraction ? "-fraction" : "-n";
    const UsageError wrong(option + ": '" + text + "' is not understood",
                           fraction ? "Give a share such as 0.1, or 0.3:1,9,7 for classes 1, 9 and 7."
                                    : "Give a number such as 50, or 15:1,9,7 for classes 1, 9 and 7.");
    ShareText result;
    const size_t colon = text.find(':');
    const std::string number = text.substr(0, colon);
    const char *first = number.data(), *last = first + number.size();
    if (fraction) {
        const auto [end, status] = std::from_chars(first, last, result.share.fraction);
        if (status != std::errc() || end != last ||
            !(result.share.fraction > 0 && result.share.fraction <= 1))
            throw wrong;
    } else {
        const auto [end, status] = std::from_chars(first, last, result.share.count);
        if (status != std::errc() || end != last || result.share.count < 1) throw wrong;
    }
    if (colon == std::string::npos) return result;
    for (size_t at = colon + 1;;) {
        const size_t comma = std::min(text.find(',', at), text.size());
        result.classes.push_back(text.substr(at, comma - at));
        if (result.classes.back().empty()) throw wrong;
        if (comma == text.size()) return result;
        at = comma + 1;
    }
}

} // namespace

void check_share(const std::string& text, bool fraction) { parse_share(text, fraction); }

void apply_share(const std::string& text, bool fraction, const std::vector<LabelClass>& classes,
                 Options& options) {
    const ShareText parsed = parse_share(text, fraction);
    if (parsed.classes.empty()) options.share = parsed.share;
    for (const auto& name : parsed.classes) {
        const auto known = std::find_if(classes.begin(), classes.end(), [&](const LabelClass& c) {
            return name == c.name || name == std::to_string(c.value);
        });
        if (known == classes.end()) {
            std::string list;
            for (const auto& c : classes)
                list += (list.empty() ? "" : ", ") + std::to_string(c.value) +
                        (c.name.empty() ? "" : " " + c.name);
            throw UsageError(std::string(fraction ? "-fraction" : "-n") +
                                 ": no pixel is labelled with class '" + name + "'",
                             "Classes: " + list + ".");
        }
        const auto [of_class, first] = options.by_class.try_emplace(known->value, parsed.share);
        if (!first && (of_class->second.count < 0) != fraction)
            throw UsageError("-n and -fraction both tell how many pixels of class '" + name +
                                 "' are for training",
                             "Leave one of them out.");
        of_class->second = parsed.share;
    }
}

Split split(const std::vector<int64_t>& index, const std::vector<uint16_t>& value, int64_t samples,
            int64_t lines, const std::vector<LabelClass>& classes, const Options& options) {
    Split result;
    result.part.assign(index.size(), Part::test);
    std::map<int, std::vector<size_t>> members;
    for (size_t i = 0; i < index.size(); ++i)
        members[value[i]].push_back(i);
    for (const auto& c : classes) {
        auto& pixels = members[c.value];
        const int64_t n = wanted(c, options);
        auto random = stream_of(options.seed, c.value);
        if (options.min_distance > 0) {
            grow_patches(pixels, index, samples, n, options.patches, random, result.part);
        } else {
            draw(pixels, n, random);
            for (int64_t i = 0; i < n; ++i)
                result.part[pixels[static_cast<size_t>(i)]] = Part::train;
        }
    }
    if (options.min_distance > 0) keep_distance(index, samples, lines, options.min_distance, result);
    for (size_t i = 0; i < index.size(); ++i) {
        if (result.part[i] == Part::train) ++result.train[value[i]];
        if (result.part[i] == Part::test) ++result.test[value[i]];
    }
    if (result.test.empty())
        throw Error("no test pixel is left",
                    "Ask for fewer training pixels (-n), or a smaller -min-distance.");
    return result;
}

} // namespace hsi::sample
