// SPDX-License-Identifier: MIT
// Converts stored samples to floats and computed floats to stored samples, and transposes pixel-interleaved
// data.
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

/// The stored values that count as nodata in a file, in the data type of the file. Each array contains one
/// value of this type in the CPU's byte order.
struct NodataMatch {
    bool active = false;
    alignas(8) unsigned char bytes[8] = {}; ///< the nodata value
    alignas(8) unsigned char low[8] = {};   ///< stored values from `low` to `high` are nodata
    alignas(8) unsigned char high[8] = {};
    friend bool operator==(const NodataMatch& a, const NodataMatch& b);
};

/// Samples that are missing in addition to nodata: the listed values, and all values below `least` or above
/// `most`. All numbers are stored values, without scale and offset.
struct InvalidSamples {
    std::vector<double> values;
    double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
    bool any() const { return !values.empty() || std::isfinite(least) || std::isfinite(most); }
};
/// Sets dst[i] to NaN if the i-th sample is invalid. The other arguments are those of to_floats().
void blank_invalid(const InvalidSamples& invalid, const void* src, ptrdiff_t stride, SampleType type,
                   bool swapped, float* dst, size_t count);

/// Returns the stored values that count as nodata. All readers, labels and writers use this rule. An integer
/// is nodata if it equals the nodata value. A real number v is nodata if GDAL's mask bands treat it as nodata
/// (ARE_REAL_EQUAL in gdal_priv.h): |v - nodata| < 2 * 2^-23 * |v + nodata|, computed in the file's type.
/// Seven digits of a nodata value are therefore enough, also in Float64 files. The sum overflows for values
/// above half the type's range; then all values that make it overflow are nodata: -3.40282e+38 in a file of
/// floats means everything below about -4e32. The match is inactive if no value of `type` can equal nodata
/// (out of range, fractional for an integer type, NaN).
NodataMatch match_in_type(const NodataValue& nodata, SampleType type);
/// The range of the stored values that count as nodata.
struct NodataRange {
    double low = 0, high = 0;
    bool holds(double value) const { return value >= low && value <= high; }
};
/// Returns the range that match_in_type() finds, as doubles; nullopt if its match is inactive.
std::optional<NodataRange> nodata_range(const NodataValue& nodata, SampleType type);

/// Sets dst[i] to the i-th sample, or to NaN if the sample is nodata. The samples have the type `type`, are
/// `stride` bytes apart and may have any alignment. `swapped`: their bytes are not in the CPU's order. Values
/// are rounded as GDAL rounds them.
void to_floats(const void* src, ptrdiff_t stride, SampleType type, bool swapped, const NodataMatch& nodata,
               float* dst, size_t count);

/// The part of each sample that a band contains. A float has 24 significant bits. If the samples of a file's
/// band need more bits, the band can be read as several bands that contain parts of the samples.
enum class SamplePart : uint8_t {
    value,     ///< the nearest float
    remainder, ///< the rest after that float, to the nearest float
    rest,      ///< the rest after both: the sum of the three is the number (stream/value_parts.h)
    low_bits,  ///< bits 0 to 21 of the stored sample, as a whole number
    middle_bits,
    high_bits, ///< bits 44 to 63
};
/// bit_parts() returns the number of bit parts of a sample of the type, all_bits() the list of these parts.
int bit_parts(SampleType type);
std::vector<SamplePart> all_bits(SampleType type);

/// Sets dst[i] to the part `part` of the i-th sample, or to NaN if the sample is nodata or NaN. The other
/// arguments are those of to_floats(). If the parts are bits, the samples are first converted to the type
/// `as`, which must represent all values of `type` and must not be Float32.
void to_part(SamplePart part, const void* src, ptrdiff_t stride, SampleType type, bool swapped,
             const NodataMatch& nodata, SampleType as, float* dst, size_t count);
/// Computes a sample of `type` from its bit parts. Part k is parts[k * step]; no part may be NaN.
void from_bit_parts(const float* parts, ptrdiff_t step, SampleType type, void* sample);

/// Sets values[i] to NaN if it is nodata. The values are from a file of `type`, which must be
/// exact_in_float().
void blank(float* values, size_t count, const NodataMatch& nodata, SampleType type);

/// Converts pixels to bands: rows[k][i] = src[i * pixel_stride + k] for k < bands and i < pixels.
void pixels_to_rows(const float* src, size_t pixel_stride, size_t bands, size_t pixels, float* const* rows);
/// Converts bands to pixels: dst[i * pixel_stride + k] = rows[k][i].
void rows_to_pixels(const float* const* rows, size_t bands, size_t pixels, float* dst, size_t pixel_stride);

/// Reverses the bytes of each sample.
void swap_bytes(void* samples, SampleType type, size_t count);

/// The rule for storing values as samples of the output's type. NaN becomes nodata if there is a nodata
/// value, and GDAL's 0 in integer types without nodata. A valid value that equals nodata by chance is
/// replaced by the next value towards zero, so that a valid pixel never becomes missing. If nodata is 0, it
/// is replaced by 1, or for floats by the smallest normal number. For integer types, where a step of 1 may be
/// large, the rule counts these values, and the values that the type cannot represent. All copies of a rule
/// share the counts.
class StoreRule {
  public:
    StoreRule() = default;
    StoreRule(SampleType type, const std::optional<NodataValue>& nodata);

    SampleType type() const { return m_type; }
    size_t sample_bytes() const { return m_bytes; }
    /// Returns true for Float32 outputs whose tiles contain values instead of parts. finish() then makes the
    /// samples in place.
    bool floats() const { return m_type == SampleType::float32 && m_parts == 1; }

    /// From now on, tiles contain samples of the type `from` as bit parts (SamplePart), and NaN for missing
    /// values. store_parts() then stores them. Values that the output's type cannot represent are rounded and
    /// clamped as gdal_translate does.
    void take_parts(SampleType from);
    /// Returns the number of bands of a tile that make one band of the output.
    int parts() const { return m_parts; }
    /// Stores `count` samples of a band, after take_parts(). The parts of sample i are values[i], values[i +
    /// step], values[i + 2 * step].
    void store_parts(const float* values, ptrdiff_t step, size_t count, void* samples) const;

    /// Values from `low` to `high` would be read as nodata, because readers treat them as equal to `from`.
    /// finish() changes these values to `to`.
    struct Move {
        float from = 0, low = 0, high = 0, to = 0;
    };
    std::optional<Move> move() const;
    /// Converts values in place, for outputs for which floats() is true.
    void finish(float* values, size_t count) const;
    /// Converts values to samples for the other outputs, with the rounding and clamping of gdal_translate.
    void store(const float* values, size_t count, void* samples) const;

    /// Stores `count` samples of band `band` of the output, from column x of a line of the tile on. The call
    /// may change the values in the tile.
    void store_line(const CubeView<float>& src, int band, int64_t line, int64_t x, size_t count,
                    void* samples) const;
    /// Work space of store_pixels(), for one caller at a time.
    struct Scratch {
        std::vector<const float*> rows;
        std::vector<float> floats;
        std::vector<double> stored; ///< wide enough for every type, and aligned
    };
    /// Stores the samples of all bands with the bands of each pixel next to each other. The call may change
    /// the values in the tile.
    void store_pixels(const CubeView<float>& src, int64_t line, int64_t x, size_t pixels, void* samples,
                      Scratch& scratch) const;

    /// Counts of the values stored so far that an integer type changed; all 0 for floats.
    struct Lost {
        int64_t moved = 0; ///< valid values that equal nodata and are stored as the next value towards zero
        /// Values other than 0 that are stored as 0; only store() counts vanished, clamped and stored.
        int64_t vanished = 0;
        int64_t clamped = 0; ///< values outside of the type's range
        int64_t stored = 0;  ///< all stored values except NaN
    };
    Lost lost() const;
    /// Returns warnings about the counts for users, one sentence per warning.
    std::vector<std::string> tell(const Lost& lost) const;
    double beside() const { return m_beside_real; }

  private:
    template <class Bits>
    void replace(const float* values, size_t count, unsigned char* samples) const;
    /// Returns the value next to nodata, towards zero, which replaces values that equal nodata by chance.
    template <class Real>
    Real beside_real() const;
    template <class Real>
    void finish_reals(const float* values, size_t count, Real* samples) const;
    void finish_stored(const float* values, size_t count, void* samples) const;
    void count_lost(const float* values, size_t count) const;

    SampleType m_type = SampleType::float32, m_from = SampleType::unknown;
    int m_parts = 1;
    size_t m_bytes = 4;
    NodataMatch m_nodata;                      ///< the nodata value in the output's type
    double m_real = 0;                         ///< nodata as a number
    alignas(8) unsigned char m_beside[8] = {}; ///< for integers: the value next to nodata, towards zero
    double m_beside_real = 0;
    struct Counts {
        std::atomic<int64_t> moved{0}, vanished{0}, clamped{0}, stored{0};
    };
    std::shared_ptr<Counts> m_counts; ///< null unless the output's type is an integer
    float m_least = 0, m_most = 0;    ///< for integers: limits beyond which values are clamped
};

} // namespace hsi::raster
