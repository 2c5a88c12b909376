// SPDX-License-Identifier: MIT
#include "math/simd_target.h"

#include "core/error.h"

#include <hwy/highway.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iterator>

namespace hsi::math {
namespace {

std::string lower(std::string text) {
    for (char& c : text)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

/// Returns the name that users see. All generations of AVX-512 have one name.
std::string name_of(int64_t target) {
    const std::string name = lower(hwy::TargetName(target));
    if (name.rfind("avx3", 0) == 0 || name.rfind("avx10", 0) == 0) return "avx512";
    for (const char* family : {"neon", "sve"}) // Highway's names of both families end in versions
        if (name.rfind(family, 0) == 0) return family;
    return name == "scalar" || name == "emu128" ? "portable" : name;
}

/// Returns the targets of a name, among those in this build.
int64_t targets_of(const std::string& name) {
    int64_t found = 0;
    for (int64_t rest = HWY_TARGETS; rest != 0; rest &= rest - 1) {
        const int64_t target = rest & -rest;
        if (name == name_of(target) || name == lower(hwy::TargetName(target))) found |= target;
    }
    // A build with -march for newer processors has no target without SIMD. "portable" then means its lowest
    // target.
    return found == 0 && name == "portable" ? int64_t{HWY_STATIC_TARGET} : found;
}

/// Returns the targets that the processor supports, independent of the selection.
int64_t of_processor() {
    static const int64_t all = hwy::SupportedTargets();
    return all;
}

} // namespace

std::vector<std::string> simd_names() {
    std::vector<std::string> names;
    for (int64_t rest = HWY_TARGETS & of_processor(); rest != 0; rest &= rest - 1)
        if (const std::string name = name_of(rest & -rest);
            std::find(names.begin(), names.end(), name) == names.end())
            names.push_back(name);
    if (std::find(names.begin(), names.end(), "portable") == names.end()) names.push_back("portable");
    return names;
}

void select_simd(const std::string& name) {
    // Check this before anything is computed. Otherwise an instruction that the processor does not have would
    // end the process with a signal.
    if (constexpr int64_t least = HWY_STATIC_TARGET; (of_processor() & least) == 0)
        throw Error("this build is for processors with " + name_of(least) +
                        ", which this processor does not have",
                    "Install the packages of the distribution, or build without -march.");
    if (name.empty()) return;
    const std::string wanted = lower(name);
    // Known names that this build does not contain get another message than misspelt names.
    static const char* const known[] = {"avx512", "avx2", "sse4", "ssse3", "sse2", "neon", "sve", "portable"};
    const int64_t built = targets_of(wanted);
    const int64_t usable = built & of_processor();
    if (usable == 0) {
        std::string possible;
        for (const std::string& one : simd_names())
            possible += (possible.empty() ? "" : ", ") + one;
        const std::string advice = "Possible: " + possible + ". Leave HSI_SIMD out to use the best one.";
        if (built != 0) throw UsageError("HSI_SIMD: this processor does not have " + wanted, advice);
        if (std::find(std::begin(known), std::end(known), wanted) != std::end(known))
            throw UsageError("HSI_SIMD: this build does not include " + wanted, advice);
        throw UsageError("HSI_SIMD: '" + name + "' is not an instruction set", advice);
    }
    hwy::DisableTargets(~usable); // the next call of a kernel selects its target again
}

const char* simd_target() {
    const int64_t usable = HWY_TARGETS & hwy::SupportedTargets();
    return hwy::TargetName(usable & -usable); // the lowest bit is the best target, which the dispatch selects
}

} // namespace hsi::math
