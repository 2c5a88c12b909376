// SPDX-License-Identifier: MIT
#include "raster/sample_convert.h"

#include "core/counted.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <type_traits>

namespace hsi::raster {

namespace {

template <class T>
using Bits = std::conditional_t<
    sizeof(T) == 1, uint8_t,
    std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class U>
U reversed(U v) {
    if constexpr (sizeof(U) == 2)
        return static_cast<U>((v >> 8) | (v << 8));
    else if constexpr (sizeof(U) == 4)
        return __builtin_bswap32(v);
    else if constexpr (sizeof(U) == 8)
        return __builtin_bswap64(v);
    else
        return v;
}

template <class T, bool Swapped>
T load(const unsigned char* p) {
    Bits<T> bits;
    std::memcpy(&bits, p, sizeof bits);
    if constexpr (Swapped) bits = reversed(bits);
    return std::bit_cast<T>(bits);
}

template <class T>
float as_float(T v) {
    if constexpr (std::is_same_v<T, double>) {
        // GDAL converts everything beyond the largest float to infinity; a cast would round values just above
        // it down to the largest float.
        constexpr double top = std::numeric_limits<float>::max();
        constexpr float infinity = std::numeric_limits<float>::infinity();
        return v > top ? infinity : v < -top ? -infinity : static_cast<float>(v);
    } else {
        return static_cast<float>(v);
    }
}

/// Values from `low` to `high` are nodata.
template <class T>
struct Range {
    T low{}, high{};
    bool holds(T v) const {
        if constexpr (std::is_integral_v<T>) return v == low; // only the nodata value itself
        return (v >= low) & (v <= high);
    }
};

template <class T>
Range<T> range_of(const NodataMatch& nodata) {
    Range<T> range;
    std::memcpy(&range.low, nodata.low, sizeof range.low);
    std::memcpy(&range.high, nodata.high, sizeof range.high);
    return range;
}

/// Returns the result of GDAL's ARE_REAL_EQUAL() with the default tolerance, which is the tolerance for
/// floats also for doubles.
template <class T>
bool equal_to_gdal(T a, T b) {
    constexpr int steps = 2;
    return a == b || std::abs(a - b) < std::numeric_limits<float>::epsilon() * std::abs(a + b) * steps;
}

/// Returns the value farthest from `nodata` towards `end` that GDAL treats as equal to `nodata`. This is
/// `end` only if all values up to `end` are equal.
template <class T>
T farthest_equal(T nodata, T end) {
    if (equal_to_gdal(end, nodata)) return end;
    for (T inside = nodata, outside = end;;) {
        const T middle = inside + (outside - inside) / 2;
        if (middle == inside || middle == outside) return inside;
        (equal_to_gdal(middle, nodata) ? inside : outside) = middle;
    }
}

template <class T>
Range<T> range_around(T nodata) {
    if (nodata == 0 || std::isinf(nodata)) return {nodata, nodata};
    constexpr T beyond = T(1e-5); // relative distance, above the tolerance of 4.8e-7
    const T most = std::copysign(std::numeric_limits<T>::max(), nodata);
    const bool overflows = std::isinf(nodata + nodata);
    const T inner = farthest_equal(nodata, overflows ? T{0} : nodata - nodata * beyond),
            outer = overflows ? most : farthest_equal(nodata, nodata + nodata * beyond);
    return nodata < 0 ? Range<T>{outer, inner} : Range<T>{inner, outer};
}

template <class T, bool Swapped, bool Match>
void convert(const unsigned char* src, ptrdiff_t stride, Range<T> nodata, float* dst, size_t count) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    const auto one = [&](const unsigned char* p) {
        const T v = load<T, Swapped>(p);
        if constexpr (Match)
            return nodata.holds(v) ? nan : as_float(v);
        else
            return as_float(v);
    };
    if (stride == static_cast<ptrdiff_t>(sizeof(T))) {
        for (size_t i = 0; i < count; ++i)
            dst[i] = one(src + i * sizeof(T));
    } else {
        for (size_t i = 0; i < count; ++i)
            dst[i] = one(src + static_cast<ptrdiff_t>(i) * stride);
    }
}

/// A whole number with this number of bits is exact as a float, and never NaN.
constexpr int part_bits = 22;

template <class T>
float left_over(T v, SamplePart part) {
    // Wide represents the difference between a number and its nearest float exactly.
    using Wide = std::conditional_t<std::is_integral_v<T>, long double, double>;
    static_assert(std::numeric_limits<long double>::digits >= 64);
    const float nearest = as_float(v);
    if (!std::isfinite(nearest)) return 0;
    const Wide remainder = static_cast<Wide>(v) - static_cast<Wide>(nearest);
    const auto second = static_cast<float>(remainder);
    return part == SamplePart::remainder ? second : static_cast<float>(remainder - static_cast<Wide>(second));
}

/// Returns one part of the bits of v. If `real`, the bits are those of v as a double.
template <class T>
float bits_of(T v, bool real, SamplePart part) {
    uint64_t pattern = std::bit_cast<uint64_t>(static_cast<double>(v));
    if constexpr (std::is_integral_v<T>)
        if (!real) pattern = static_cast<uint64_t>(v);
    const int shift = part_bits * (static_cast<int>(part) - static_cast<int>(SamplePart::low_bits));
    return static_cast<float>(pattern >> shift & ((uint64_t{1} << part_bits) - 1));
}

/// Four floats in a register. Both SSE and NEON have instructions for transposing a matrix of four by four.
typedef float Quad __attribute__((vector_size(16)));

Quad load_quad(const float* p) {
    Quad v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

void store_quad(float* p, Quad v) { std::memcpy(p, &v, sizeof v); }

/// Transposes four rows of four floats.
void turn(Quad& a, Quad& b, Quad& c, Quad& d) {
    const Quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
               ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5),
               cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    a = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    b = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    c = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    d = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

/// Bands per pass. 16 floats of a pixel fill one cache line. The CPU's address translation (TLB) copes with
/// 16 write streams.
constexpr size_t pass_bands = 16;

} // namespace

double NodataValue::as_double() const {
    if (kind == SampleType::int64) return static_cast<double>(whole);
    if (kind == SampleType::uint64) return static_cast<double>(natural);
    return real;
}

bool operator==(const NodataMatch& a, const NodataMatch& b) {
    return a.active == b.active && std::memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0 &&
           std::memcmp(a.low, b.low, sizeof a.low) == 0 && std::memcmp(a.high, b.high, sizeof a.high) == 0;
}

NodataMatch match_in_type(const NodataValue& nodata, SampleType type) {
    NodataMatch match;
    with_type(type, [&](auto tag) {
        using T = decltype(tag);
        T value{};
        Range<T> range;
        if constexpr (std::is_floating_point_v<T>) {
            const double v = nodata.as_double();
            if (std::isnan(v)) return;
            // Files store the lowest float with few digits, so a double slightly beyond it, which rounds to a
            // finite float, is accepted.
            value = static_cast<T>(v);
            if (std::isinf(value) && !std::isinf(v)) return;
            range = range_around(value);
        } else if (nodata.kind == SampleType::int64) {
            if constexpr (std::is_unsigned_v<T>) {
                if (nodata.whole < 0) return;
            }
            value = static_cast<T>(nodata.whole);
            if (static_cast<int64_t>(value) != nodata.whole) return;
        } else if (nodata.kind == SampleType::uint64) {
            value = static_cast<T>(nodata.natural);
            if (value < T{0} || static_cast<uint64_t>(value) != nodata.natural) return;
        } else {
            const double v = nodata.real;
            // 2^digits is the first value beyond the type, and exact in double precision.
            const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
            const double low = std::is_signed_v<T> ? -end : 0.0;
            if (!(v >= low && v < end) || v != std::floor(v)) return;
            value = static_cast<T>(v);
        }
        if constexpr (std::is_integral_v<T>) range = {value, value};
        match.active = true;
        std::memcpy(match.bytes, &value, sizeof value);
        std::memcpy(match.low, &range.low, sizeof value);
        std::memcpy(match.high, &range.high, sizeof value);
    });
    return match;
}

std::optional<NodataRange> nodata_range(const NodataValue& nodata, SampleType type) {
    if (type == SampleType::float16) type = SampleType::float32;
    const NodataMatch match = match_in_type(nodata, type);
    if (!match.active) return std::nullopt;
    NodataRange range;
    with_type(type, [&](auto tag) {
        const auto [low, high] = range_of<decltype(tag)>(match);
        range = {static_cast<double>(low), static_cast<double>(high)};
    });
    return range;
}

void to_floats(const void* src, ptrdiff_t stride, SampleType type, bool swapped, const NodataMatch& nodata,
               float* dst, size_t count) {
    const auto* bytes = static_cast<const unsigned char*>(src);
    with_type(type, [&](auto tag) {
        using T = decltype(tag);
        const Range<T> nothing = range_of<T>(nodata);
        if (swapped && sizeof(T) > 1) {
            if (nodata.active)
                convert<T, true, true>(bytes, stride, nothing, dst, count);
            else
                convert<T, true, false>(bytes, stride, nothing, dst, count);
        } else {
            if (nodata.active)
                convert<T, false, true>(bytes, stride, nothing, dst, count);
            else
                convert<T, false, false>(bytes, stride, nothing, dst, count);
        }
    });
}

int bit_parts(SampleType type) {
    const int bits = 8 * static_cast<int>(hsi::sample_bytes(type));
    return (bits + part_bits - 1) / part_bits;
}

std::vector<SamplePart> all_bits(SampleType type) {
    const SamplePart bits[] = {SamplePart::low_bits, SamplePart::middle_bits, SamplePart::high_bits};
    return {bits, bits + bit_parts(type)};
}

void to_part(SamplePart part, const void* src, ptrdiff_t stride, SampleType type, bool swapped,
             const NodataMatch& nodata, SampleType as, float* dst, size_t count) {
    if (part == SamplePart::value) return to_floats(src, stride, type, swapped, nodata, dst, count);
    const auto* bytes = static_cast<const unsigned char*>(src);
    const bool real = as == SampleType::float64;
    with_type(type, [&](auto tag) {
        using T = decltype(tag);
        const Range<T> nothing = range_of<T>(nodata);
        for (size_t i = 0; i < count; ++i) {
            const unsigned char* const p = bytes + static_cast<ptrdiff_t>(i) * stride;
            const T v = swapped ? load<T, true>(p) : load<T, false>(p);
            dst[i] = v != v || (nodata.active && nothing.holds(v)) ? std::numeric_limits<float>::quiet_NaN()
                     : part < SamplePart::low_bits                 ? left_over(v, part)
                                                                   : bits_of(v, real, part);
        }
    });
}

void blank_invalid(const InvalidSamples& invalid, const void* src, ptrdiff_t stride, SampleType type,
                   bool swapped, float* dst, size_t count) {
    const auto* bytes = static_cast<const unsigned char*>(src);
    with_type(type, [&](auto tag) {
        using T = decltype(tag);
        // Floats are compared with the nearest single-precision number; integers are compared as they are.
        using Compared = std::conditional_t<std::is_same_v<T, float>, float, double>;
        const auto least = static_cast<Compared>(invalid.least), most = static_cast<Compared>(invalid.most);
        std::vector<Range<T>> values;
        for (const double value : invalid.values) {
            NodataValue nodata;
            nodata.real = value;
            if (const NodataMatch match = match_in_type(nodata, type); match.active)
                values.push_back(range_of<T>(match));
        }
        for (size_t i = 0; i < count; ++i) {
            const unsigned char* const p = bytes + static_cast<ptrdiff_t>(i) * stride;
            const T sample = swapped ? load<T, true>(p) : load<T, false>(p);
            const auto v = static_cast<Compared>(sample);
            bool none = v < least || v > most;
            for (const Range<T>& value : values)
                none |= value.holds(sample);
            if (none) dst[i] = std::numeric_limits<float>::quiet_NaN();
        }
    });
}

void from_bit_parts(const float* parts, ptrdiff_t step, SampleType type, void* sample) {
    uint64_t pattern = 0;
    for (int k = bit_parts(type) - 1; k >= 0; --k)
        pattern = pattern << part_bits | static_cast<uint64_t>(parts[k * step]);
    with_type(type, [&](auto tag) {
        using T = decltype(tag);
        const auto bits = static_cast<Bits<T>>(pattern);
        std::memcpy(sample, &bits, sizeof bits);
    });
}

void blank(float* values, size_t count, const NodataMatch& nodata, SampleType type) {
    if (!nodata.active) return;
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    Range<float> nothing;
    to_floats(nodata.low, 0, type, false, NodataMatch{}, &nothing.low, 1);
    to_floats(nodata.high, 0, type, false, NodataMatch{}, &nothing.high, 1);
    for (size_t i = 0; i < count; ++i)
        values[i] = nothing.holds(values[i]) ? nan : values[i];
}

void pixels_to_rows(const float* src, size_t pixel_stride, size_t bands, size_t pixels, float* const* rows) {
    const size_t whole = pixels / 4 * 4;
    for (size_t k0 = 0; k0 < bands; k0 += pass_bands) {
        const size_t k1 = std::min(bands, k0 + pass_bands);
        const size_t quads_end = k0 + (k1 - k0) / 4 * 4;
        for (size_t i = 0; i < whole; i += 4) {
            const float* p = src + i * pixel_stride;
            for (size_t k = k0; k < quads_end; k += 4) {
                auto a = load_quad(p + k), b = load_quad(p + pixel_stride + k);
                auto c = load_quad(p + 2 * pixel_stride + k), e = load_quad(p + 3 * pixel_stride + k);
                turn(a, b, c, e);
                store_quad(rows[k] + i, a);
                store_quad(rows[k + 1] + i, b);
                store_quad(rows[k + 2] + i, c);
                store_quad(rows[k + 3] + i, e);
            }
            for (size_t k = quads_end; k < k1; ++k)
                for (size_t n = 0; n < 4; ++n)
                    rows[k][i + n] = p[n * pixel_stride + k];
        }
        for (size_t i = whole; i < pixels; ++i)
            for (size_t k = k0; k < k1; ++k)
                rows[k][i] = src[i * pixel_stride + k];
    }
}

void rows_to_pixels(const float* const* rows, size_t bands, size_t pixels, float* dst, size_t pixel_stride) {
    const size_t whole = pixels / 4 * 4;
    for (size_t k0 = 0; k0 < bands; k0 += pass_bands) {
        const size_t k1 = std::min(bands, k0 + pass_bands);
        const size_t quads_end = k0 + (k1 - k0) / 4 * 4;
        for (size_t i = 0; i < whole; i += 4) {
            float* p = dst + i * pixel_stride;
            for (size_t k = k0; k < quads_end; k += 4) {
                auto a = load_quad(rows[k] + i), b = load_quad(rows[k + 1] + i);
                auto c = load_quad(rows[k + 2] + i), e = load_quad(rows[k + 3] + i);
                turn(a, b, c, e);
                store_quad(p + k, a);
                store_quad(p + pixel_stride + k, b);
                store_quad(p + 2 * pixel_stride + k, c);
                store_quad(p + 3 * pixel_stride + k, e);
            }
            for (size_t k = quads_end; k < k1; ++k)
                for (size_t n = 0; n < 4; ++n)
                    p[n * pixel_stride + k] = rows[k][i + n];
        }
        for (size_t i = whole; i < pixels; ++i)
            for (size_t k = k0; k < k1; ++k)
                dst[i * pixel_stride + k] = rows[k][i];
    }
}

void swap_bytes(void* samples, SampleType type, size_t count) {
    auto* bytes = static_cast<unsigned char*>(samples);
    with_type(type, [&](auto tag) {
        using T = decltype(tag);
        if constexpr (sizeof(T) > 1) {
            for (size_t i = 0; i < count; ++i) {
                Bits<T> bits;
                std::memcpy(&bits, bytes + i * sizeof(T), sizeof bits);
                bits = reversed(bits);
                std::memcpy(bytes + i * sizeof(T), &bits, sizeof bits);
            }
        }
    });
}

StoreRule::StoreRule(SampleType type, const std::optional<NodataValue>& nodata)
    : m_type(type), m_bytes(hsi::sample_bytes(type)) {
    with_type(type, [&](auto tag) {
        using Sample = decltype(tag);
        if constexpr (std::is_integral_v<Sample>) {
            m_counts = std::make_shared<Counts>();
            m_least = static_cast<float>(static_cast<double>(std::numeric_limits<Sample>::min()) - 0.5);
            m_most = static_cast<float>(static_cast<double>(std::numeric_limits<Sample>::max()) + 0.5);
        }
    });
    if (!nodata) return;
    m_nodata = match_in_type(*nodata, type);
    m_real = nodata->as_double();
    if (!m_nodata.active || m_type == SampleType::float32 || m_type == SampleType::float64) return;
    NodataValue beside = *nodata;
    // A double may not be able to represent the neighbouring integer.
    if (beside.kind == SampleType::float64 && (type == SampleType::int64 || type == SampleType::uint64)) {
        beside.kind = type;
        if (type == SampleType::int64)
            beside.whole = static_cast<int64_t>(beside.real);
        else
            beside.natural = static_cast<uint64_t>(beside.real);
    }
    const auto step = [](auto v) { return v > 0 ? v - 1 : v + 1; };
    beside.real = step(beside.real);
    beside.whole = step(beside.whole);
    beside.natural = step(beside.natural);
    std::memcpy(m_beside, match_in_type(beside, type).bytes, sizeof m_beside);
    m_beside_real = beside.as_double();
}

/// Replaces NaN by nodata in samples of an integer type, and moves values that equal nodata by chance.
template <class Bits>
void StoreRule::replace(const float* values, size_t count, unsigned char* samples) const {
    Bits nothing, beside;
    std::memcpy(&nothing, m_nodata.bytes, sizeof nothing);
    std::memcpy(&beside, m_beside, sizeof beside);
    int64_t moved = 0;
    const bool replaces = m_nodata.active;
    for (size_t i = 0; i < count; ++i) {
        Bits stored;
        std::memcpy(&stored, samples + i * sizeof stored, sizeof stored);
        const bool none = values[i] != values[i], met = replaces & !none & (stored == nothing);
        moved += met;
        // The conversion of NaN to an integer differs between processors and versions of GDAL.
        stored = none ? nothing : met ? beside : stored;
        std::memcpy(samples + i * sizeof stored, &stored, sizeof stored);
    }
    if (moved > 0) m_counts->moved.fetch_add(moved, std::memory_order_relaxed);
}

StoreRule::Lost StoreRule::lost() const {
    if (!m_counts) return {};
    return {m_counts->moved, m_counts->vanished, m_counts->clamped, m_counts->stored};
}

std::vector<std::string> StoreRule::tell(const Lost& lost) const {
    std::vector<std::string> told;
    const auto number = [](double v) {
        char text[32];
        std::snprintf(text, sizeof text, "%.17g", v);
        return std::string(text);
    };
    const std::string type = name_of(m_type);
    const auto share = [&](int64_t values) {
        return std::to_string(values) + " of " + counted(lost.stored, "value") +
               worded(values, " is", " are");
    };
    if (lost.moved > 0)
        told.push_back(counted(lost.moved, "value is", "values are") + " stored as " + number(beside()) +
                       " instead of " + number(m_real) +
                       ", which is the nodata value; use another -dstnodata or -ot to keep them");
    if (lost.clamped > 0)
        told.push_back(share(lost.clamped) + " outside the range of " + type +
                       " and stored as its limit; use another -ot to keep " +
                       worded(lost.clamped, "it", "them"));
    if (lost.vanished > lost.stored / 2) // a few values are close to 0 by chance
        told.push_back(share(lost.vanished) + " between -0.5 and 0.5 and" +
                       worded(lost.vanished, " becomes", " become") + " 0, since " + type +
                       " stores whole numbers; use -ot Float32 to keep " +
                       worded(lost.vanished, "it", "them"));
    return told;
}

void StoreRule::count_lost(const float* values, size_t count) const {
    constexpr size_t piece = size_t{1} << 16; // so that 32 bits hold the counts of a piece
    const float least = m_least, most = m_most;
    for (size_t done = 0; done < count; done += piece) {
        const float* const v = values + done;
        const size_t n = std::min(piece, count - done);
        int32_t vanished = 0, clamped = 0, stored = 0;
        for (size_t i = 0; i < n; ++i) { // without branches, so that the compiler can vectorise the loop
            vanished += static_cast<int32_t>(v[i] > -0.5F) & static_cast<int32_t>(v[i] < 0.5F) &
                        static_cast<int32_t>(v[i] != 0);
            clamped += static_cast<int32_t>(v[i] < least) | static_cast<int32_t>(v[i] >= most);
            stored += static_cast<int32_t>(v[i] == v[i]);
        }
        m_counts->vanished.fetch_add(vanished, std::memory_order_relaxed);
        m_counts->clamped.fetch_add(clamped, std::memory_order_relaxed);
        m_counts->stored.fetch_add(stored, std::memory_order_relaxed);
    }
}

std::optional<StoreRule::Move> StoreRule::move() const {
    if (!m_nodata.active || !floats()) return std::nullopt;
    float nodata;
    std::memcpy(&nodata, m_nodata.bytes, sizeof nodata);
    const auto [low, high] = range_of<float>(m_nodata);
    return Move{nodata, low, high, beside_real<float>()};
}

void StoreRule::finish(float* values, size_t count) const {
    const auto moved = move();
    if (!moved) return;
    const float nodata = moved->from, beside = moved->to;
    const Range<float> nothing{moved->low, moved->high};
    for (size_t i = 0; i < count; ++i) {
        const float v = values[i], kept = nothing.holds(v) ? beside : v;
        values[i] = v != v ? nodata : kept;
    }
}

/// Returns the nearest value towards zero that is not nodata; for the nodata value 0, the smallest normal
/// float.
template <class Real>
Real StoreRule::beside_real() const {
    const Range<Real> nothing = range_of<Real>(m_nodata);
    const Real inner = nothing.low > 0 ? nothing.low : nothing.high;
    return inner == 0 ? static_cast<Real>(std::numeric_limits<float>::min()) : std::nextafter(inner, Real{0});
}

template <class Real>
void StoreRule::finish_reals(const float* values, size_t count, Real* samples) const {
    if (!m_nodata.active) return;
    Real nodata;
    std::memcpy(&nodata, m_nodata.bytes, sizeof nodata);
    // Unlike finish(), changes only values that equal nodata exactly, because a value near nodata may be a
    // copy of an input value.
    const Real beside = beside_real<Real>();
    for (size_t i = 0; i < count; ++i) {
        if (values[i] != values[i])
            samples[i] = nodata;
        else if (samples[i] == nodata)
            samples[i] = beside;
    }
}

void StoreRule::store(const float* values, size_t count, void* samples) const {
    convert_samples(values, SampleType::float32, samples, m_type, count);
    finish_stored(values, count, samples);
    if (m_counts) count_lost(values, count);
}

void StoreRule::finish_stored(const float* values, size_t count, void* samples) const {
    auto* bytes = static_cast<unsigned char*>(samples);
    if (m_type == SampleType::float64)
        finish_reals(values, count, static_cast<double*>(samples));
    else if (m_type == SampleType::float32)
        finish_reals(values, count, static_cast<float*>(samples));
    else if (m_bytes == 1)
        replace<uint8_t>(values, count, bytes);
    else if (m_bytes == 2)
        replace<uint16_t>(values, count, bytes);
    else if (m_bytes == 4)
        replace<uint32_t>(values, count, bytes);
    else
        replace<uint64_t>(values, count, bytes);
}

void StoreRule::take_parts(SampleType from) {
    m_from = from;
    m_parts = bit_parts(from);
}

void StoreRule::store_parts(const float* values, ptrdiff_t step, size_t count, void* samples) const {
    constexpr size_t piece = 256;
    double joined[piece]; // buffer for samples of any type; doubles give the alignment
    const auto size = hsi::sample_bytes(m_from);
    auto* to = static_cast<unsigned char*>(samples);
    for (size_t done = 0; done < count; done += piece) {
        const size_t n = std::min(piece, count - done);
        std::memset(joined, 0, sizeof joined);
        for (size_t i = 0; i < n; ++i)
            if (values[done + i] == values[done + i])
                from_bit_parts(values + done + i, step, m_from,
                               reinterpret_cast<unsigned char*>(joined) + i * size);
        convert_samples(joined, m_from, to + done * m_bytes, m_type, n);
    }
    finish_stored(values, count, samples);
    if (m_nodata.active || !(m_type == SampleType::float32 || m_type == SampleType::float64)) return;
    for (size_t i = 0; i < count; ++i) { // without a nodata value, missing floats remain NaN
        if (values[i] == values[i]) continue;
        if (m_type == SampleType::float32)
            static_cast<float*>(samples)[i] = values[i];
        else
            static_cast<double*>(samples)[i] = static_cast<double>(values[i]);
    }
}

void StoreRule::store_line(const CubeView<float>& src, int band, int64_t line, int64_t x, size_t count,
                           void* samples) const {
    float* const values = src.row(band * m_parts, line) + x;
    if (m_parts > 1) return store_parts(values, src.band_stride, count, samples);
    if (!floats()) return store(values, count, samples);
    finish(values, count);
    std::memcpy(samples, values, count * sizeof(float));
}

void StoreRule::store_pixels(const CubeView<float>& src, int64_t line, int64_t x, size_t pixels,
                             void* samples, Scratch& scratch) const {
    const auto bands = static_cast<size_t>(src.bands / m_parts);
    auto* const to = static_cast<char*>(samples);
    if (m_parts > 1) {
        scratch.stored.resize(std::max(scratch.stored.size(), pixels));
        for (size_t k = 0; k < bands; ++k) {
            store_line(src, static_cast<int>(k), line, x, pixels, scratch.stored.data());
            const char* const from = reinterpret_cast<const char*>(scratch.stored.data());
            for (size_t i = 0; i < pixels; ++i)
                std::memcpy(to + (i * bands + k) * m_bytes, from + i * m_bytes, m_bytes);
        }
        return;
    }
    constexpr size_t piece_bytes = size_t{256} << 10;
    const size_t piece = std::clamp<size_t>(piece_bytes / (bands * sizeof(float)), 1, pixels);
    scratch.rows.resize(bands);
    if (!floats()) scratch.floats.resize(std::max(scratch.floats.size(), piece * bands));
    for (size_t done = 0, n = 0; done < pixels; done += n) {
        n = std::min(piece, pixels - done);
        for (size_t k = 0; k < bands; ++k) {
            float* const row = src.row(static_cast<int>(k), line) + x + done;
            if (floats()) finish(row, n);
            scratch.rows[k] = row;
        }
        char* const there = to + done * bands * m_bytes;
        float* const turned = floats() ? reinterpret_cast<float*>(there) : scratch.floats.data();
        rows_to_pixels(scratch.rows.data(), bands, n, turned, bands);
        if (!floats()) store(turned, n * bands, there);
    }
}

} // namespace hsi::raster
