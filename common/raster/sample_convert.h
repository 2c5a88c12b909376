// SPDX-License-Identifier: MIT
// Turning stored samples into floats and computed floats into stored samples, and turning pixel-interleaved
// data around.
#pragma once

#include "core/cube_view.h"
#include "core/sample_type.h"
#include "raster/codec/nodata_value.h"

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// A nodata value in a file's own type, and the stored values that it stands for. Each member is one value of
/// the type in this machine's byte order.
struct NodataMatch {
    bool active = false;
    alignas(8) unsigned char bytes[8] = {}; ///< the nodata value
    alignas(8) unsigned char low[8] = {};   ///< the stored values from `low` to `high` are nodata
    alignas(8) unsigned char high[8] = {};
    friend bool operator==(const NodataMatch& a, const NodataMatch& b);
};

/// What stands for no value beside a nodata value, in the units of the samples.
struct InvalidSamples {
    std::vector<double> values;
    double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
    bool any() const { return !values.empty() || std::isfinite(least) || std::isfinite(most); }
};
/// dst[i] = NaN where the i-th sample, as in to_floats(), is one of these.
void blank_invalid(const InvalidSamples& invalid, const void* src, ptrdiff_t stride, SampleType type,
                   bool swapped, float* dst, size_t count);

/// Returns the stored values that a nodata value stands for: the one rule of readers, labels and writers.
/// Integers are nodata where they equal it. Real numbers are nodata where GDAL's mask bands say so
/// (ARE_REAL_EQUAL in gdal_priv.h): where |v - nodata| < 2 * 2^-23 * |v + nodata|, computed in the file's
/// type. So a nodata value may have as few as seven digits, in Float64 files as well. The sum
/// overflows for values of more than half the type's range; then all values that make it overflow are nodata:
/// -3.40282e+38 in a file of floats stands for everything below about -4e32. Inactive when no value of `type`
/// can equal it (out of range, fractional for an integer type, NaN).
NodataMatch match_in_type(const NodataValue& nodata, SampleType type);
/// The same values as doubles, for whom reads samples of `type` as such.
struct NodataRange {
    double low = 0, high = 0;
    bool holds(double value) const { return value >= low && value <= high; }
};
/// Nullopt where match_in_type() is inactive.
std::optional<NodataRange> nodata_range(const NodataValue& nodata, SampleType type);

/// dst[i] = the i-th sample of `type`, `stride` bytes apart, at any alignment; NaN where it is nodata.
/// `swapped`: the bytes are not in this machine's order. Rounds as GDAL does.
void to_floats(const void* src, ptrdiff_t stride, SampleType type, bool swapped, const NodataMatch& nodata,
               float* dst, size_t count);

/// What is delivered of a sample. A float tells 24 bits of a number; where that is not enough, a band is read
/// as several, each a part of its samples.
enum class SamplePart : uint8_t {
    value,     ///< the nearest float
    remainder, ///< what the float leaves of the number, to the nearest float
    rest,      ///< what both leave: the sum of the three is the number (stream/value_parts.h)
    low_bits,  ///< bits 0 to 21 of the sample as it is stored, as a whole number
    middle_bits,
    high_bits, ///< from 44 on
};
/// Parts of bits that hold a sample of the type: how many, and which.
int bit_parts(SampleType type);
std::vector<SamplePart> all_bits(SampleType type);

/// As to_floats(), for one part; NaN where the sample is nodata or NaN. `as`, of bits: the type whose samples
/// they are, which holds all values of `type` and is not Float32.
void to_part(SamplePart part, const void* src, ptrdiff_t stride, SampleType type, bool swapped,
             const NodataMatch& nodata, SampleType as, float* dst, size_t count);
/// A sample of `type` from its parts, `step` floats apart, none of which is NaN.
void from_bit_parts(const float* parts, ptrdiff_t step, SampleType type, void* sample);

/// values[i] = NaN where it is nodata. The values are those of a file of `type`, which must be
/// exact_in_float().
void blank(float* values, size_t count, const NodataMatch& nodata, SampleType type);

/// rows[k][i] = src[i * pixel_stride + first + k]: pixels to bands. k < bands, i < pixels.
void pixels_to_rows(const float* src, size_t pixel_stride, size_t bands, size_t pixels, float* const* rows);
/// The reverse: dst[i * pixel_stride + k] = rows[k][i].
void rows_to_pixels(const float* const* rows, size_t bands, size_t pixels, float* dst, size_t pixel_stride);

/// Reverses the bytes of each sample.
void swap_bytes(void* samples, SampleType type, size_t count);

/// How values become samples of the output's type. NaN becomes nodata, where there is a nodata value; in
/// integer types without one GDAL's 0. A value that is nodata by chance moves to the next one towards zero
/// (0: to 1, of floats to the smallest normal number), so that a pixel with a value never turns into a hole.
/// A step of 1 may be much: of integers they are counted, by all copies of the rule together, as is what else
/// they do not hold.
class StoreRule {
  public:
    StoreRule() = default;
    StoreRule(SampleType type, const std::optional<NodataValue>& nodata);

    SampleType type() const { return m_type; }
    size_t sample_bytes() const { return m_bytes; }
    /// True when tiles hold the samples themselves, but for nodata: finish() is all that is to be done.
    bool floats() const { return m_type == SampleType::float32 && m_parts == 1; }

    /// From now on tiles hold samples of `from` as parts of their bits (sample_convert.h), NaN where there is
    /// no value: store_parts() takes them. Values that the output's type does not hold are rounded and
    /// clamped as gdal_translate does it.
    void take_parts(SampleType from);
    /// Bands of a tile for one of the output.
    int parts() const { return m_parts; }
    /// `step`: floats from one part of a value to the next.
    void store_parts(const float* values, ptrdiff_t step, size_t count, void* samples) const;

    /// Values from `low` to `high` would be read as the nodata value `from`: finish() makes them `to`.
    /// Nullopt where nothing is moved.
    struct Move {
        float from = 0, low = 0, high = 0, to = 0;
    };
    std::optional<Move> move() const;
    /// For Float32 outputs: in place.
    void finish(float* values, size_t count) const;
    /// For all others: rounds and clamps as gdal_translate does.
    void store(const float* values, size_t count, void* samples) const;

    /// `count` samples of one band of the output, from column x of a line of tiles' values on; these may be
    /// changed.
    void store_line(const CubeView<float>& src, int band, int64_t line, int64_t x, size_t count,
                    void* samples) const;
    /// What store_pixels() works in, for one caller at a time.
    struct Scratch {
        std::vector<const float*> rows;
        std::vector<float> floats;
        std::vector<double> stored; ///< wide enough for every type, and aligned
    };
    /// The same of all bands, pixel after pixel.
    void store_pixels(const CubeView<float>& src, int64_t line, int64_t x, size_t pixels, void* samples,
                      Scratch& scratch) const;

    /// What an integer type has not held so far, in numbers of values.
    struct Lost {
        int64_t moved = 0;    ///< that are nodata by chance, to beside()
        int64_t vanished = 0; ///< not 0, and stored as 0; with store() alone, as the next two
        int64_t clamped = 0;  ///< beyond the type's range
        int64_t stored = 0;   ///< of all that are not NaN
    };
    Lost lost() const;
    /// What users should know of it, a sentence each.
    std::vector<std::string> tell(const Lost& lost) const;
    double beside() const { return m_beside_real; }

  private:
    template <class Bits>
    void replace(const float* values, size_t count, unsigned char* samples) const;
    /// Nodata in the place of NaN, and what is nodata by chance moved.
    template <class Real>
    Real beside_real() const;
    template <class Real>
    void finish_reals(const float* values, size_t count, Real* samples) const;
    void finish_stored(const float* values, size_t count, void* samples) const;
    void count_lost(const float* values, size_t count) const;

    SampleType m_type = SampleType::float32, m_from = SampleType::unknown;
    int m_parts = 1;
    size_t m_bytes = 4;
    NodataMatch m_nodata;                      ///< in the output's type
    double m_real = 0;                         ///< nodata as a number
    alignas(8) unsigned char m_beside[8] = {}; ///< of integers: the next one towards zero
    double m_beside_real = 0;
    struct Counts {
        std::atomic<int64_t> moved{0}, vanished{0}, clamped{0}, stored{0};
    };
    std::shared_ptr<Counts> m_counts; ///< of integers
    float m_least = 0, m_most = 0;    ///< of integers: what is beyond is clamped
};

} // namespace hsi::raster
