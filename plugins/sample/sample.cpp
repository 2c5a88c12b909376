// SPDX-License-Identifier: MIT
#include "sample/sample.h"

#include "core/class_names.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

namespace hsi::sample {
namespace {

/// Returns an unbiased random integer below n. The distributions of the standard library differ between
/// implementations.
int64_t below(std::mt19937_64& random, int64_t n) {
    const auto bound = static_cast<uint64_t>(n);
    const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    uint64_t x = random();
    while (x >= limit)
        x = random();
    return static_cast<int64_t>(x % bound);
}

/// Returns the random number stream of a class. Each class has its own stream, so the share of one class does
/// not affect another class.
std::mt19937_64 stream_of(uint64_t seed, int value) {
    std::seed_seq mix{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                      static_cast<uint32_t>(value)};
    return std::mt19937_64(mix);
}

/// Returns the random number stream of a class in a fold.
std::mt19937_64 stream_of(uint64_t seed, int value, int fold) {
    std::seed_seq mix{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                      static_cast<uint32_t>(value), static_cast<uint32_t>(fold) + 1};
    return std::mt19937_64(mix);
}

std::string label(const LabelClass& c) {
    return "class " + std::to_string(c.value) + (c.name.empty() ? "" : " (" + c.name + ")");
}

/// Returns the requested number of training pixels of a class with `available` pixels.
int64_t wanted(const LabelClass& c, const Options& options, int64_t available) {
    const auto own = options.by_class.find(c.value);
    const Share& share = own == options.by_class.end() ? options.share : own->second;
    if (share.count >= 0) return share.at_most ? std::min(share.count, available) : share.count;
    return std::max<int64_t>(1, std::llround(share.fraction * static_cast<double>(available)));
}

/// A class that has fewer pixels than requested.
struct Lack {
    const LabelClass* of;
    int64_t available, asked;
    int fold = 0; ///< fold with the fewest pixels outside it, counted from 1; 0 without folds
};

/// Checks for lacking pixels. \throws Error with advice that names all classes with too few pixels.
void check_lacks(const std::vector<Lack>& lacks) {
    if (lacks.empty()) return;
    const Lack& first = lacks.front();
    std::string text = label(*first.of) + " has " + counted(first.available, "labelled pixel") +
                       (first.fold > 0 ? " outside of fold " + std::to_string(first.fold) : std::string()) +
                       ", fewer than the " + counted(first.asked, "training pixel") + " requested";
    std::string advice;
    for (const Lack& lack : lacks) {
        if (&lack != &first)
            text += (&lack == &first + 1 ? "; also too few: " : ", ") + label(*lack.of) + ": " +
                    std::to_string(lack.available);
        // With folds, the test pixels are the pixels of the fold. Without folds, some of the available pixels
        // must remain for the test set.
        const int64_t good = lack.fold > 0 ? lack.available : std::max<int64_t>(1, lack.available * 3 / 4);
        advice += " -n " + std::to_string(good) + ":" + std::to_string(lack.of->value);
    }
    throw Error(text, std::string("Request fewer of ") +
                          (lacks.size() == 1 ? "this class" : "these classes") + ":" + advice + ".");
}

/// Checks the classes of folds. `fold_of` has the fold of each pixel (0-based).
void check_folds(const std::vector<LabelClass>& classes, const Options& options,
                 const std::map<int, std::vector<size_t>>& members, const std::vector<int>& fold_of,
                 int count) {
    std::vector<Lack> lacks;
    for (const auto& c : classes) {
        const auto& pixels = members.at(c.value);
        std::vector<int64_t> outside(static_cast<size_t>(count), static_cast<int64_t>(pixels.size()));
        for (const size_t i : pixels)
            --outside[static_cast<size_t>(fold_of[i])];
        std::optional<Lack> worst;
        for (int k = 0; k < count; ++k) {
            const int64_t available = outside[static_cast<size_t>(k)];
            const int64_t asked = wanted(c, options, available);
            // The caller prints a warning if a class is entirely in one fold.
            if (available == 0 || asked <= available || (worst && worst->available <= available)) continue;
            worst = Lack{&c, available, asked, k + 1};
        }
        if (worst) lacks.push_back(*worst);
    }
    check_lacks(lacks);
}

/// Moves `n` randomly drawn elements to the front of `pixels` (a partial Fisher-Yates shuffle). All elements
/// have equal probability.
void draw(std::vector<size_t>& pixels, int64_t n, std::mt19937_64& random) {
    for (int64_t i = 0; i < n; ++i) {
        const int64_t j = i + below(random, static_cast<int64_t>(pixels.size()) - i);
        std::swap(pixels[static_cast<size_t>(i)], pixels[static_cast<size_t>(j)]);
    }
}

/// Grows patches of a class. A patch consists of the nearest free pixels around its drawn centre.
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

/// Pixels grouped by patch. Patch k has pixels[first[k]] to pixels[first[k + 1] - 1].
struct Pieces {
    std::vector<size_t> pixels, first{0};
    std::vector<size_t> order; ///< order of the patches, initially by number

    int64_t size(size_t k) const { return static_cast<int64_t>(first[k + 1] - first[k]); }
    template <class Visit>
    void each(size_t k, Visit visit) const {
        for (size_t i = first[k]; i < first[k + 1]; ++i)
            visit(pixels[i]);
    }
};

/// Groups pixels by patch. If `patch` is empty, each pixel is a patch.
Pieces by_patch(std::vector<size_t> pixels, const std::vector<size_t>& patch) {
    Pieces pieces;
    pieces.pixels = std::move(pixels);
    if (!patch.empty())
        std::stable_sort(pieces.pixels.begin(), pieces.pixels.end(),
                         [&](size_t a, size_t b) { return patch[a] < patch[b]; });
    for (size_t i = 1; i <= pieces.pixels.size(); ++i)
        if (i == pieces.pixels.size() || patch.empty() ||
            patch[pieces.pixels[i]] != patch[pieces.pixels[i - 1]]) {
            pieces.order.push_back(pieces.order.size());
            pieces.first.push_back(i);
        }
    return pieces;
}

/// Marks whole patches for training until they have n pixels. `stay` is the number of patches that must not
/// be used. Returns the number of missing pixels.
int64_t draw_patches(Pieces patches, int64_t n, size_t stay, std::mt19937_64& random,
                     std::vector<Part>& part) {
    auto& order = patches.order;
    draw(order, static_cast<int64_t>(order.size()), random);
    for (size_t k = 0; k < order.size() && n > 0; ++k) {
        if (k > 0 && k + stay >= order.size()) break;
        patches.each(order[k], [&](size_t i) { part[i] = Part::train; });
        n -= patches.size(order[k]);
    }
    return std::max<int64_t>(0, n);
}

/// Removes test pixels that are closer than `distance` to a training pixel.
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
    std::vector<std::string> classes; ///< empty: all classes
};

ShareText parse_share(const std::string& text, bool fraction) {
    const std::string option = fraction ? "-fraction" : "-n";
    const UsageError wrong(
        option + ": '" + text + "' is not understood",
        fraction ? "Give a share such as 0.1, or 0.3:1,9,7 for classes 1, 9 and 7."
                 : "Give a number such as 50, '150 at most', or 15:1,9,7 for classes 1, 9 and 7.");
    ShareText result;
    const size_t colon = text.find(':');
    std::string number = text.substr(0, colon);
    constexpr std::string_view at_most = " at most";
    if (!fraction && number.size() > at_most.size() && number.ends_with(at_most)) {
        number.resize(number.size() - at_most.size());
        result.share.at_most = true;
    }
    if (fraction) {
        result.share.fraction = to_number(number).value_or(0);
        if (!(result.share.fraction > 0 && result.share.fraction <= 1)) throw wrong;
    } else {
        const char *first = number.data(), *last = first + number.size();
        const auto [end, status] = std::from_chars(first, last, result.share.count);
        if (status != std::errc() || end != last || result.share.count < 1) throw wrong;
    }
    if (colon == std::string::npos) return result;
    const auto words = listed_words(std::string_view(text).substr(colon + 1));
    if (!words) throw wrong;
    result.classes = *words;
    return result;
}

} // namespace

void check_share(const std::string& text, bool fraction) { parse_share(text, fraction); }

void apply_share(const std::string& text, bool fraction, const std::vector<LabelClass>& classes,
                 Options& options) {
    const ShareText parsed = parse_share(text, fraction);
    if (parsed.classes.empty()) options.share = parsed.share;
    for (const auto& name : parsed.classes) {
        auto known = std::find_if(classes.begin(), classes.end(),
                                  [&](const LabelClass& c) { return name == std::to_string(c.value); });
        if (known == classes.end()) known = find_class_named(classes, name);
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
        if (first) continue;
        if ((of_class->second.count < 0) != fraction)
            throw UsageError("-n and -fraction both set the training pixels of class '" + name + "'",
                             "Leave one of them out.");
        throw UsageError(std::string(fraction ? "-fraction" : "-n") + ": class '" + name + "' is named twice",
                         "Name each class in only one of these options.");
    }
}

Patches::Patches(const std::vector<int64_t>& index, const std::vector<uint16_t>& value, int64_t samples)
    : m_index(index), m_value(value), m_parent(index.size()) {
    for (size_t i = 0; i < index.size(); ++i)
        m_parent[i] = i;
    size_t above = 0; // first pixel that may touch the current pixel in the row above, starting at the corner
    for (size_t i = 0; i < index.size(); ++i) {
        const int64_t column = index[i] % samples;
        if (i > 0 && column > 0 && index[i - 1] == index[i] - 1) unite(i - 1, i);
        const int64_t first = index[i] - samples - (column > 0 ? 1 : 0),
                      last = index[i] - samples + (column + 1 < samples ? 1 : 0);
        while (index[above] < first)
            ++above;
        for (size_t j = above; j < i && index[j] <= last; ++j)
            unite(j, i);
    }
}

size_t Patches::root(size_t i) const {
    while (m_parent[i] != i)
        i = m_parent[i];
    return i;
}

void Patches::unite(size_t i, size_t j) {
    if (m_value[i] != m_value[j]) return;
    const size_t a = root(i), b = root(j), first = std::min(a, b);
    m_parent[a] = m_parent[b] = first;
    // Shortens the paths of later searches.
    for (size_t k : {i, j})
        while (m_parent[k] != first && k != first)
            k = std::exchange(m_parent[k], first);
}

void Patches::join(uint16_t value, const std::vector<int64_t>& pixels) {
    auto at = m_index.begin();
    std::optional<size_t> first;
    for (const int64_t pixel : pixels) {
        at = std::lower_bound(at, m_index.end(), pixel);
        if (at == m_index.end()) return;
        if (*at != pixel) continue;
        const auto i = static_cast<size_t>(at - m_index.begin());
        if (m_value[i] != value) continue;
        if (first) unite(*first, i);
        first = first.value_or(i);
    }
}

std::vector<size_t> Patches::numbers() const {
    std::vector<size_t> all(m_parent.size());
    size_t next = 0;
    for (size_t i = 0; i < all.size(); ++i)
        all[i] = root(i) == i ? next++ : all[root(i)];
    return all;
}

namespace {

/// Leaves out pixels that are too close, and counts the others.
void conclude(const std::vector<int64_t>& index, const std::vector<uint16_t>& value, int64_t samples,
              int64_t lines, const Options& options, Split& result) {
    if (options.min_distance > 0) keep_distance(index, samples, lines, options.min_distance, result);
    for (size_t i = 0; i < index.size(); ++i) {
        if (result.part[i] == Part::train) ++result.train[value[i]];
        if (result.part[i] == Part::test) ++result.test[value[i]];
    }
}

std::map<int, std::vector<size_t>> by_class(const std::vector<uint16_t>& value) {
    std::map<int, std::vector<size_t>> members;
    for (size_t i = 0; i < value.size(); ++i)
        members[value[i]].push_back(i);
    return members;
}

} // namespace

std::vector<char> nearest_to_centres(const std::vector<int64_t>& index, int64_t samples,
                                     const std::vector<size_t>& patch, int64_t most) {
    std::map<size_t, std::vector<size_t>> members;
    for (size_t i = 0; i < patch.size(); ++i)
        members[patch[i]].push_back(i);
    std::vector<char> kept(index.size(), 0);
    for (auto& [number, pixels] : members) {
        // Distances are multiplied by the number of pixels, so that they are exact integers.
        const auto n = static_cast<int64_t>(pixels.size());
        int64_t lines = 0, columns = 0;
        for (const size_t i : pixels) {
            lines += index[i] / samples;
            columns += index[i] % samples;
        }
        const auto distance = [&](size_t i) {
            const auto y = static_cast<double>(n * (index[i] / samples) - lines),
                       x = static_cast<double>(n * (index[i] % samples) - columns);
            return y * y + x * x;
        };
        std::stable_sort(pixels.begin(), pixels.end(),
                         [&](size_t i, size_t j) { return distance(i) < distance(j); });
        for (int64_t k = 0; k < std::min(n, most); ++k)
            kept[pixels[static_cast<size_t>(k)]] = 1;
    }
    return kept;
}

Split split(const std::vector<int64_t>& index, const std::vector<uint16_t>& value, int64_t samples,
            int64_t lines, const std::vector<LabelClass>& classes, const Options& options,
            const std::vector<size_t>& patch) {
    Split result;
    result.part.assign(index.size(), Part::test);
    auto members = by_class(value);
    std::vector<Lack> lacks;
    for (const auto& c : classes)
        if (const int64_t n = wanted(c, options, c.pixels); n > c.pixels) lacks.push_back({&c, c.pixels, n});
    check_lacks(lacks);
    for (const auto& c : classes) {
        auto& pixels = members[c.value];
        const int64_t n = wanted(c, options, c.pixels);
        auto random = stream_of(options.seed, c.value);
        if (!patch.empty()) {
            const int64_t missing = draw_patches(by_patch(pixels, patch), n, 1, random, result.part);
            if (missing > 0) result.missing[c.value] = missing;
        } else if (options.min_distance > 0) {
            grow_patches(pixels, index, samples, n, options.patches, random, result.part);
        } else {
            draw(pixels, n, random);
            for (int64_t i = 0; i < n; ++i)
                result.part[pixels[static_cast<size_t>(i)]] = Part::train;
        }
    }
    conclude(index, value, samples, lines, options, result);
    if (result.test.empty())
        throw Error("no test pixel is left",
                    (patch.empty() ? std::string("Request fewer training pixels (a smaller -n or -fraction)")
                                   : std::string("Each class is only one patch, or is too near to the "
                                                 "others: draw single pixels (-by pixels)")) +
                        (options.min_distance > 0 ? ", or give a smaller -min-distance." : "."));
    return result;
}

std::vector<Split> folds(const std::vector<int64_t>& index, const std::vector<uint16_t>& value,
                         int64_t samples, int64_t lines, const std::vector<LabelClass>& classes,
                         const Options& options, int count, const std::vector<size_t>& patch) {
    const auto members = by_class(value);
    std::vector<int> fold_of(index.size());
    std::vector<int64_t> of_all(static_cast<size_t>(count), 0);
    size_t things = 0;
    for (const auto& c : classes) {
        auto patches = by_patch(members.at(c.value), patch);
        things += patches.order.size();
        auto random = stream_of(options.seed, c.value);
        auto& order = patches.order;
        draw(order, static_cast<int64_t>(order.size()), random);
        std::stable_sort(order.begin(), order.end(),
                         [&](size_t a, size_t b) { return patches.size(a) > patches.size(b); });
        std::vector<int64_t> of_class(static_cast<size_t>(count), 0);
        for (const size_t piece : order) {
            size_t least = 0;
            for (size_t k = 1; k < of_class.size(); ++k)
                if (std::pair(of_class[k], of_all[k]) < std::pair(of_class[least], of_all[least])) least = k;
            patches.each(piece, [&](size_t i) { fold_of[i] = static_cast<int>(least); });
            of_class[least] += patches.size(piece);
            of_all[least] += patches.size(piece);
        }
    }
    if (things < static_cast<size_t>(count) || std::count(of_all.begin(), of_all.end(), 0) > 0)
        throw Error("-folds: " + std::to_string(count) + " folds cannot be made of " +
                        (patch.empty() ? counted(things, "labelled pixel")
                                       : counted(things, "patch", "patches") + " of labelled pixels"),
                    "Use fewer folds.");
    check_folds(classes, options, members, fold_of, count);
    std::vector<Split> all;
    for (int k = 0; k < count; ++k) {
        Split one;
        one.part.assign(index.size(), Part::left_out);
        for (const auto& c : classes) {
            std::vector<size_t> others;
            for (const size_t i : members.at(c.value))
                if (fold_of[i] == k)
                    one.part[i] = Part::test;
                else
                    others.push_back(i);
            if (others.empty()) continue; // The caller prints a warning.
            const auto n = wanted(c, options, static_cast<int64_t>(others.size()));
            auto random = stream_of(options.seed, c.value, k);
            draw_patches(by_patch(std::move(others), patch), n, 0, random, one.part);
        }
        conclude(index, value, samples, lines, options, one);
        all.push_back(std::move(one));
    }
    return all;
}

std::vector<int> folds_of_groups(const std::vector<uint16_t>& value, const std::vector<size_t>& group,
                                 int folds, uint64_t seed) {
    struct Group {
        std::map<uint16_t, int64_t> pixels; ///< number of pixels per class
        int64_t all = 0;
        std::vector<size_t> members;
    };
    std::map<size_t, Group> groups;
    std::map<uint16_t, int64_t> of_class;
    for (size_t i = 0; i < value.size(); ++i) {
        auto& one = groups[group[i]];
        ++one.pixels[value[i]];
        ++one.all;
        one.members.push_back(i);
        ++of_class[value[i]];
    }
    std::vector<const Group*> order;
    for (const auto& entry : groups)
        order.push_back(&entry.second);
    auto random = stream_of(seed, 0);
    for (size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[static_cast<size_t>(below(random, static_cast<int64_t>(i)))]);
    std::stable_sort(order.begin(), order.end(),
                     [](const Group* a, const Group* b) { return a->all > b->all; });
    const size_t count = std::min(static_cast<size_t>(folds), order.size());
    std::vector<std::map<uint16_t, int64_t>> dealt(count);
    std::vector<int64_t> dealt_all(count, 0);
    std::vector<int> fold(value.size());
    for (const Group* const one : order) {
        // Returns the fold's share of the group's classes, and the number of all pixels in the fold. The
        // share of each class is weighted by its pixels in the group, divided by all its pixels.
        const auto weight = [&](size_t k) {
            double sum = 0;
            for (const auto& entry : one->pixels)
                sum += static_cast<double>(entry.second) * static_cast<double>(dealt[k][entry.first]) /
                       static_cast<double>(of_class[entry.first]);
            return std::pair(sum, dealt_all[k]);
        };
        size_t least = 0;
        for (size_t k = 1; k < count; ++k)
            if (weight(k) < weight(least)) least = k;
        for (const size_t i : one->members)
            fold[i] = static_cast<int>(least);
        for (const auto& entry : one->pixels)
            dealt[least][entry.first] += entry.second;
        dealt_all[least] += one->all;
    }
    return fold;
}

} // namespace hsi::sample
