// SPDX-License-Identifier: MIT
#include "gdal/apply.h"

#include "core/cube_view.h"
#include "core/error.h"
#include "gdal/lanes.h"
#include "parallel/threads.h"
#include "raster/gdal_type.h"
#include "raster/sample_convert.h"

#include <cpl_conv.h>
#include <cpl_multiproc.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

namespace hsi::plugin {
namespace {

/// Returns which values count as nodata in sources of `type`.
raster::NodataMatch match_of(const std::optional<double>& nodata, GDALDataType type) {
    if (!nodata) return {};
    raster::NodataValue value;
    value.real = *nodata;
    return raster::match_in_type(value, raster::sample_type(type));
}

/// Converts `count` values to floats. Nodata values, as match_in_type() defines them, become NaN.
void to_floats(const void* from, GDALDataType type, int64_t count, const std::optional<double>& nodata,
               float* to) {
    if (convertible(raster::sample_type(type))) {
        raster::to_floats(from, GDALGetDataTypeSizeBytes(type), raster::sample_type(type), false,
                          match_of(nodata, type), to, static_cast<size_t>(count));
        return;
    }
    // The types of newer GDAL versions are read as doubles. A double represents every stored value that a
    // nodata value can equal.
    constexpr int64_t some = 512;
    double values[some];
    const int bytes = GDALGetDataTypeSizeBytes(type);
    for (int64_t first = 0; first < count; first += some) {
        const int64_t n = std::min(some, count - first);
        GDALCopyWords64(static_cast<const char*>(from) + first * bytes, type, bytes, values, GDT_Float64,
                        sizeof(double), n);
        raster::to_floats(values, sizeof(double), SampleType::float64, false, match_of(nodata, GDT_Float64),
                          to + first, static_cast<size_t>(n));
    }
}

/// Sets values to NaN where the mask is 0.
void spoil_masked(const void* mask, GDALDataType type, int64_t count, float* values) {
    constexpr int64_t some = 512;
    float present[some];
    const int bytes = GDALGetDataTypeSizeBytes(type);
    for (int64_t first = 0; first < count; first += some) {
        const int64_t n = std::min(some, count - first);
        to_floats(static_cast<const char*>(mask) + first * bytes, type, n, std::nullopt, present);
        for (int64_t i = 0; i < n; ++i)
            values[first + i] = present[i] == 0 ? no_value : values[first + i];
    }
}

/// Returns the number of threads for a request. It is limited by GDAL_NUM_THREADS, and by the amount of work
/// that each thread must have.
int threads_for(const Function& function, int64_t pixels) {
    if (function.device) return 1;
    constexpr double worth = 2e8; // smallest work per thread, in operations: about 50 ms
    const double most = static_cast<double>(pixels) * function.pixel_cost / worth;
    if (most < 2) return 1;
    const char* const text = CPLGetConfigOption("GDAL_NUM_THREADS", "1");
    const int wanted = EQUAL(text, "ALL_CPUS") ? CPLGetNumCPUs() : std::atoi(text);
    const int64_t slices = (pixels + slice_pixels(function) - 1) / slice_pixels(function);
    return static_cast<int>(std::clamp<double>(
        std::min<double>({most, static_cast<double>(wanted), static_cast<double>(slices)}), 1, 256));
}

/// Returns the function that computes a request: `function` or its promotion.
std::shared_ptr<const Function> chosen(const std::shared_ptr<const Function>& function, int64_t pixels) {
    if (function->device && device_wish().forked)
        throw Error("this process was forked from one that uses the GPU",
                    "Start processes before the first use of a GPU, or set GDAL_HSI_DEVICE=cpu.");
    if (!function->promotion) return function;
    const double cost = static_cast<double>(pixels) * function->pixel_cost / threads_for(*function, pixels);
    auto other = function->promotion->after(*function, cost);
    return other ? other : function;
}

/// Calls work(lane, first) for all slices. Throws the first error after all threads have ended.
template <class Work>
void for_slices(const std::shared_ptr<const Function>& function, int64_t pixels, const Work& work) {
    const int64_t slice = slice_pixels(*function);
    std::atomic<int64_t> next{0};
    parallel::on_threads(
        threads_for(*function, pixels),
        [&](int) {
            std::unique_ptr<Lane> lane;
            for (;;) {
                const int64_t first = next.fetch_add(slice);
                if (first >= pixels) break;
                const int64_t count = std::min(slice, pixels - first);
                if (!lane) lane = take_lane(function, std::min(slice, pixels));
                lane->count = count;
                work(*lane, first);
            }
            if (lane) give_lane(std::move(lane));
        },
        [&] { next.store(pixels); });
}

/// Computes the function's values of a slice in the lane's memory, and returns them. Missing values are NaN.
float* finish(const Function& f, Lane& lane) {
    const int64_t count = lane.count;
    float* const values = lane.result(f.output, std::max(0, f.band));
    if (f.band < 0) {
        const int bands = f.operation->output_bands()[f.output];
        for (int b = 1; b < bands; ++b) {
            const float* const other = lane.result(f.output, b);
            for (int64_t i = 0; i < count; ++i)
                values[i] = other[i] < values[i] ? other[i] : values[i];
        }
    }
    if (f.factor != 1)
        for (int64_t i = 0; i < count; ++i)
            values[i] = static_cast<float>(static_cast<double>(values[i]) * f.factor);
    if (f.magnitude)
        for (int64_t i = 0; i < count; ++i)
            values[i] = std::fabs(values[i]);
    return values;
}

/// Returns the rule by which a tool would store the values in a file (raster::StoreRule). A valid value that
/// equals nodata is moved to the next value towards zero. Classes stay
/// unchanged.
raster::StoreRule rule_of(const Function& f) {
    std::optional<raster::NodataValue> nothing;
    if (!f.classes && !std::isnan(f.no_value)) {
        nothing.emplace();
        nothing->real = f.no_value;
    }
    return {f.classes ? SampleType::float32 : raster::sample_type(f.stored_type), nothing};
}

/// Stores `count` values of consecutive pixels of one line in the requested type.
void store(float* values, int64_t count, const Function& f, const raster::StoreRule& rule,
           std::vector<char>& scratch, GDALDataType type, char* to, int space) {
    const auto n = static_cast<size_t>(count);
    if (!rule.floats()) {
        scratch.resize(n * rule.sample_bytes());
        rule.store(values, n, scratch.data());
        GDALCopyWords64(scratch.data(), raster::gdal_type(rule.type()), static_cast<int>(rule.sample_bytes()),
                        to, type, space, count);
        return;
    }
    if (f.classes && !std::isnan(f.no_value)) {
        const auto nothing = static_cast<float>(f.no_value);
        for (size_t i = 0; i < n; ++i)
            values[i] = std::isnan(values[i]) ? nothing : values[i];
    }
    rule.finish(values, n);
    if (type == GDT_Float32 && space == sizeof(float))
        std::memcpy(to, values, n * sizeof(float));
    else
        GDALCopyWords64(values, GDT_Float32, sizeof(float), to, type, space, count);
}

} // namespace

void apply(const std::shared_ptr<const Function>& wanted, const PixelBuffers& b) {
    const int64_t pixels = static_cast<int64_t>(b.width) * b.height;
    const auto function = chosen(wanted, pixels);
    const Function& f = *function;
    const int bytes = GDALGetDataTypeSizeBytes(b.source_type);
    if (GDALDataTypeIsComplex(b.source_type))
        throw Error("the sources are complex numbers", "Set SourceTransferType to Float32.");
    const raster::StoreRule rule = rule_of(f);
    for_slices(function, pixels, [&](Lane& lane, int64_t first) {
        const int64_t count = lane.count;
        std::vector<char> scratch;
        const auto at = [&](int source) {
            return static_cast<const char*>(b.sources[source]) + first * bytes;
        };
        for (int k = 0; k < f.bands; ++k)
            to_floats(at(k), b.source_type, count, f.nodata[static_cast<size_t>(k)], lane.source(k));
        for (int k = 0; k < f.masks; ++k)
            spoil_masked(at(f.bands + k), b.source_type, count, lane.in.data());
        lane.process();
        float* const values = finish(f, lane);
        for (int64_t done = 0; done < count;) {
            const int64_t line = (first + done) / b.width, sample = (first + done) % b.width;
            const int64_t run = std::min(count - done, b.width - sample);
            store(values + done, run, f, rule, scratch, b.out_type,
                  static_cast<char*>(b.out) + line * b.line_space + sample * b.pixel_space, b.pixel_space);
            done += run;
        }
    });
}

void apply_interleaved(const std::shared_ptr<const Function>& wanted, const float* in, int64_t pixels,
                       const double* in_nodata, float* out, int out_bands, const double* out_nodata) {
    const auto function = chosen(wanted, pixels);
    const Function& f = *function;
    std::vector<raster::NodataMatch> nothing(static_cast<size_t>(f.bands));
    for (int k = 0; k < f.bands && in_nodata != nullptr; ++k)
        nothing[static_cast<size_t>(k)] = match_of(in_nodata[k], GDT_Float32);
    std::vector<raster::StoreRule> rules;
    for (int k = 0; k < out_bands; ++k) {
        raster::NodataValue value;
        value.real = out_nodata[k];
        rules.emplace_back(SampleType::float32, value);
    }
    for_slices(function, pixels, [&](Lane& lane, int64_t first) {
        const int64_t count = lane.count;
        // Only a few pixels are processed at a time. Their lines stay in the first-level cache while the
        // bands are written one by one.
        constexpr int64_t few = 16;
        const float* const from = in + first * f.bands;
        for (int64_t p = 0; p < count; p += few) {
            const int64_t some = std::min(few, count - p);
            for (int k = 0; k < f.bands; ++k) {
                float* const to = lane.source(k) + p;
                for (int64_t i = 0; i < some; ++i)
                    to[i] = from[(p + i) * f.bands + k];
                raster::blank(to, static_cast<size_t>(some), nothing[static_cast<size_t>(k)],
                              SampleType::float32);
            }
        }
        lane.process();
        for (int k = 0; k < out_bands; ++k) {
            const float* const values = lane.result(f.output, f.band < 0 ? k : f.band);
            float* const to = out + first * out_bands + k;
            const auto none = static_cast<float>(out_nodata[k]);
            const auto moved = f.classes ? std::nullopt : rules[static_cast<size_t>(k)].move();
            for (int64_t i = 0; i < count; ++i) {
                const float value =
                    f.factor != 1 ? static_cast<float>(static_cast<double>(values[i]) * f.factor) : values[i];
                to[i * out_bands] = std::isnan(value)                                      ? none
                                    : moved && value >= moved->low && value <= moved->high ? moved->to
                                                                                           : value;
            }
        }
    });
}

} // namespace hsi::plugin
