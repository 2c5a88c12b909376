// SPDX-License-Identifier: MIT
#include "core/sample_type.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace hsi {
namespace {

constexpr std::pair<SampleType, const char*> type_names[] = {
    {SampleType::uint8, "Byte"},      {SampleType::uint16, "UInt16"}, {SampleType::int16, "Int16"},
    {SampleType::uint32, "UInt32"},   {SampleType::int32, "Int32"},   {SampleType::float32, "Float32"},
    {SampleType::float64, "Float64"}, {SampleType::uint64, "UInt64"}, {SampleType::int64, "Int64"},
    {SampleType::int8, "Int8"}};

/// Returns the nearest integer of the type, rounded half away from zero.
template <class To, class Real>
To rounded(Real v) {
    // GDAL's vector code for Int16 converts 0.49999997 to 0. For the other types GDAL adds a half, which
    // rounds to 1.
    constexpr bool to_int16 = std::is_same_v<To, int16_t> && std::is_same_v<Real, float>;
    const bool down = std::is_signed_v<To> && v < (to_int16 ? Real{0.5} : Real{0});
    const Real shifted = down ? v - Real{0.5} : v + Real{0.5};
    using Limits = std::numeric_limits<To>;
    if constexpr (Limits::digits < std::numeric_limits<Real>::digits) {
        // `Real` represents both limits exactly. The code has no branch, so the compiler converts several
        // values together.
        const Real low = static_cast<Real>(Limits::min()), high = static_cast<Real>(Limits::max());
        const Real least = shifted > low ? shifted : low;
        return static_cast<To>(
            static_cast<std::conditional_t<sizeof(To) < 4, int32_t, To>>(least < high ? least : high));
    } else {
        if (std::isnan(v)) return 0;
        const Real end = std::ldexp(Real{1}, Limits::digits); // the first value beyond the type
        if (shifted >= end) return Limits::max();
        if (shifted <= (std::is_signed_v<To> ? -end : Real{0})) return Limits::min();
        return static_cast<To>(shifted);
    }
}

template <class To, class From>
To stored(From v) {
    if constexpr (std::is_same_v<To, From>) {
        return v;
    } else if constexpr (std::is_same_v<To, float> && std::is_same_v<From, double>) {
        constexpr double top = std::numeric_limits<float>::max();
        constexpr float infinity = std::numeric_limits<float>::infinity();
        return v > top ? infinity : v < -top ? -infinity : static_cast<float>(v);
    } else if constexpr (std::is_floating_point_v<To>) {
        return static_cast<To>(v);
    } else if constexpr (std::is_floating_point_v<From>) {
        return rounded<To>(v);
    } else {
        using Limits = std::numeric_limits<To>;
        return std::cmp_less(v, Limits::min())      ? Limits::min()
               : std::cmp_greater(v, Limits::max()) ? Limits::max()
                                                    : static_cast<To>(v);
    }
}

} // namespace

const char* name_of(SampleType type) {
    const auto* const found = std::find_if(std::begin(type_names), std::end(type_names),
                                           [&](const auto& known) { return known.first == type; });
    return found == std::end(type_names) ? nullptr : found->second;
}

SampleType sample_type_of(const std::string& name) {
    const auto* const found = std::find_if(std::begin(type_names), std::end(type_names),
                                           [&](const auto& known) { return known.second == name; });
    return found == std::end(type_names) ? SampleType::unknown : found->first;
}

void convert_samples(const void* from, SampleType from_type, void* to, SampleType to_type, size_t count) {
    with_type(from_type, [&](auto one) {
        with_type(to_type, [&](auto other) {
            const auto* const source = static_cast<const decltype(one)*>(from);
            auto* const target = static_cast<decltype(other)*>(to);
            for (size_t i = 0; i < count; ++i)
                target[i] = stored<decltype(other)>(source[i]);
        });
    });
}

} // namespace hsi
