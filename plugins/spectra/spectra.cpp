// SPDX-License-Identifier: MIT
#include "spectra/spectra.h"

#include "core/valid_pixel.h"
#include "stream/value_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::spectra {
namespace {

/// Calls visit(label, line, sample) for each labelled pixel of a tile, with its position in the tile.
template <class Visit>
void for_labels(const Labels& labels, const Tile& tile, Visit visit) {
    for (int64_t line = tile.core.y; line < tile.core.bottom(); ++line) {
        const int64_t first = line * labels.samples + tile.core.x;
        auto it = std::lower_bound(labels.index.begin(), labels.index.end(), first);
        for (; it != labels.index.end() && *it < first + tile.core.w; ++it)
            visit(static_cast<size_t>(it - labels.index.begin()), line - tile.window.y,
                  *it - first + tile.core.x - tile.window.x);
    }
}

std::vector<int64_t> labelled_tiles(const Labels& labels, const TilePlan& plan) {
    std::vector<int64_t> wanted;
    for (int64_t t = 0; t < plan.size(); ++t) {
        const Rect core = plan.tile(t).core;
        for (int64_t line = core.y; line < core.bottom(); ++line) {
            const auto it =
                std::lower_bound(labels.index.begin(), labels.index.end(), line * labels.samples + core.x);
            if (it != labels.index.end() && *it < line * labels.samples + core.right()) {
                wanted.push_back(t);
                break;
            }
        }
    }
    return wanted;
}

double value_at(const CubeView<float>& in, int parts, int b, int64_t line, int64_t sample) {
    if (parts == 1) return static_cast<double>(in.at(b, line, sample));
    return stream::joined(in.row(b * parts, line) + sample, in.band_stride);
}

/// The product a b without rounding, as the sum high + low.
struct Product {
    double high, low;
    Product(double a, double b) : high(a * b), low(std::fma(a, b, -high)) {}
};

/// Range of the exponents of squares of floats, and of their sums.
constexpr int lowest_square = -298, highest_square = 256 + 40;

} // namespace

class ClassScan::ClassWorker final : public stream::Worker {
  public:
    explicit ClassWorker(const ClassScan& owner)
        : sums(owner.m_sums.size()), pixels(owner.m_labels.classes), invalid(owner.m_labels.classes),
          m_bands(owner.m_bands), m_labels(owner.m_labels), m_parts(owner.m_parts),
          m_values(terms * owner.m_bands) {}
    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        for_labels(m_labels, tile, [&](size_t label, int64_t line, int64_t sample) {
            for (size_t b = 0; b < m_bands; ++b) {
                const double v = value_at(in, m_parts, static_cast<int>(b), line, sample);
                m_values[b] = v;
                m_values[m_bands + b] = v * v; // exact if the value is a single float
                m_values[2 * m_bands + b] = std::fma(v, v, -v * v);
            }
            const size_t c = m_labels.class_of[label];
            if (!is_valid_pixel(m_values.data(), static_cast<int>(m_bands), 1)) {
                ++invalid[c];
                return;
            }
            ++pixels[c];
            sums.add(c * terms * m_bands, m_values.data(), terms * m_bands);
        });
    }
    math::ExactSums sums;
    std::vector<int64_t> pixels, invalid;

  private:
    const size_t m_bands;
    const Labels& m_labels;
    const int m_parts;
    std::vector<double> m_values;
};

ClassScan::ClassScan(int bands, const Labels& labels, int parts)
    : m_bands(static_cast<size_t>(bands)), m_labels(labels), m_parts(parts),
      m_sums(labels.classes * m_bands * terms), m_pixels(labels.classes), m_invalid(labels.classes) {}

std::vector<int64_t> ClassScan::tiles(const TilePlan& plan) const { return labelled_tiles(m_labels, plan); }

uint64_t ClassScan::scratch_bytes(const stream::TileLimits&) const {
    return math::ExactSums::most_bytes(m_sums.size(), lowest_square, highest_square);
}

std::unique_ptr<stream::Worker> ClassScan::start(int, const stream::TileLimits&) {
    return std::make_unique<ClassWorker>(*this);
}

void ClassScan::stop(stream::Worker& worker) {
    const auto& from = static_cast<ClassWorker&>(worker);
    m_sums.add(from.sums);
    for (size_t c = 0; c < m_labels.classes; ++c) {
        m_pixels[c] += from.pixels[c];
        m_invalid[c] += from.invalid[c];
    }
}

std::vector<ClassSpectra> ClassScan::result() const {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    std::vector<ClassSpectra> out(m_labels.classes);
    for (size_t c = 0; c < out.size(); ++c) {
        ClassSpectra& one = out[c];
        one.pixels = m_pixels[c];
        one.invalid = m_invalid[c];
        const auto n = static_cast<double>(one.pixels);
        for (size_t b = 0; b < m_bands; ++b) {
            const size_t at = c * terms * m_bands + b;
            const double sum = m_sums.value(at), mean = sum / n;
            one.mean.push_back(one.pixels > 0 ? mean : none);
            if (one.pixels < 2) {
                one.deviation.push_back(none);
                continue;
            }
            // This is the sum of (v - mean)^2. It is computed from the sums of v^2, of -2 mean v, and n
            // mean^2, each with its rounding error. Their common parts therefore cancel exactly.
            const double rest = m_sums.value_with(at, {-sum});
            const Product twice(-2 * mean, sum), square(mean, mean), all(n, square.high);
            const double left = std::fma(-n, mean, sum) + rest; // rounding error of the mean
            const double squares = m_sums.value_with(
                at + m_bands, {m_sums.value(at + 2 * m_bands), twice.high, twice.low, -2 * mean * rest,
                               all.high, all.low, n * square.low, -left * left / n});
            one.deviation.push_back(std::sqrt(std::max(0.0, squares) / (n - 1)));
        }
    }
    return out;
}

class PixelScan::PixelWorker final : public stream::Worker {
  public:
    explicit PixelWorker(PixelScan& owner) : m_owner(owner) {}
    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        // Each pixel belongs to one tile, so workers write to different rows.
        for_labels(m_owner.m_labels, tile, [&](size_t label, int64_t line, int64_t sample) {
            const size_t length = m_owner.m_bands * static_cast<size_t>(m_owner.m_parts);
            for (size_t b = 0; b < length; ++b)
                m_owner.m_values[label * length + b] = in.at(static_cast<int>(b), line, sample);
        });
    }

  private:
    PixelScan& m_owner;
};

PixelScan::PixelScan(int bands, const Labels& labels, int parts)
    : m_bands(static_cast<size_t>(bands)), m_labels(labels), m_parts(parts),
      m_values(labels.index.size() * m_bands * static_cast<size_t>(parts)) {}

std::vector<int64_t> PixelScan::tiles(const TilePlan& plan) const { return labelled_tiles(m_labels, plan); }

std::unique_ptr<stream::Worker> PixelScan::start(int, const stream::TileLimits&) {
    return std::make_unique<PixelWorker>(*this);
}

std::vector<double> PixelScan::spectrum(size_t pixel) const {
    const auto step = static_cast<size_t>(m_parts);
    const float* const row = m_values.data() + pixel * m_bands * step;
    std::vector<double> values;
    for (size_t b = 0; b < m_bands; ++b)
        values.push_back(m_parts == 1 ? static_cast<double>(row[b]) : stream::joined(row + b * step, 1));
    if (!is_valid_pixel(values.data(), static_cast<int>(m_bands), 1)) return {};
    return values;
}

} // namespace hsi::spectra
