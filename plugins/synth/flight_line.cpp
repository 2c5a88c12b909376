// SPDX-License-Identifier: MIT
// Flight lines over a landscape, in any direction and light.
#include "core/error.h"
#include "math/elementary.h"
#include "normalise/normalise.h"
#include "synth/hash.h"
#include "synth/synth.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace hsi::synth {
namespace {

constexpr int64_t painted_side = 32; ///< side in pixels of the squares in which the landscape is painted

uint64_t bits_of(double v) {
    uint64_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    return bits;
}

constexpr double degree = 3.14159265358979323846 / 180;

/// The hills of the landscape, and their brightness as seen by the scanner.
class Relief {
  public:
    explicit Relief(const MadeScene& scene, const FlightLine& line) : m_line(line) {
        for (size_t k = 0; k < waves; ++k)
            m_phase[k] = 6.283185307179586 *
                         static_cast<double>(draw(substream(scene.options().seed, 103), k) >> 11) * 0x1p-53;
        const auto nearest = [&](double nm) {
            const auto& all = scene.wavelengths();
            return static_cast<int>(
                std::min_element(all.begin(), all.end(),
                                 [&](double a, double b) { return std::fabs(a - nm) < std::fabs(b - nm); }) -
                all.begin());
        };
        m_red = nearest(660);
        m_near_infrared = nearest(850);
        constexpr double common = 40;
        m_common = normalise::kernels({}, common * degree, 0, 0);
    }
    int red() const { return m_red; }
    int near_infrared() const { return m_near_infrared; }

    struct Pixel {
        double sensor_zenith, sensor_azimuth, slope, aspect; ///< angles in degrees
        double cos_i, terrain, phase; ///< terrain: a factor; phase: the phase angle in degrees
        std::array<double, 2> kernels;
        double path;
    };
    /// Returns the properties of the pixel at a position of the landscape (column, row). `across` is -1 at
    /// the left end of a row of the flight line, and 1 at its right end.
    Pixel at(double column, double row, double across) const {
        // Wavelengths of the waves in pixels to the east and to the south, and their steepest slopes.
        constexpr double east[waves] = {61, 143, -97}, south[waves] = {173, 83, 67},
                         steep[waves] = {0.2, 0.14, 0.12};
        double p = 0, q = 0;
        for (size_t k = 0; k < waves; ++k) {
            const double u = 1 / east[k], v = 1 / south[k], length = std::sqrt(u * u + v * v);
            const double rise =
                steep[k] * math::cos(6.283185307179586 * (u * column + v * row) + m_phase[k]) / length;
            p += rise * u;
            q -= rise * v;
        }
        Pixel made{};
        const double tan_b = std::sqrt(p * p + q * q);
        made.slope = math::atan2(tan_b, 1) / degree;
        made.aspect = circle(math::atan2(-p, -q) / degree);
        constexpr double widest = 20, height = 3000;
        made.sensor_zenith = std::fabs(across) * widest;
        // Azimuth from the flight line to its right side. For a pixel on the right side, the scanner is in
        // the opposite direction.
        const double right = math::atan2(m_line.cosine, m_line.sine) / degree;
        made.sensor_azimuth = circle(right + (across > 0 ? 180 : 0));
        made.path = height / math::cos(made.sensor_zenith * degree);
        const double cos_s = math::cos(m_line.sun_zenith * degree),
                     sin_s = math::sin(m_line.sun_zenith * degree);
        const double cos_b = 1 / std::sqrt(1 + tan_b * tan_b), sin_b = tan_b * cos_b;
        made.cos_i = cos_s * cos_b + sin_s * sin_b * math::cos((m_line.sun_azimuth - made.aspect) * degree);
        constexpr double direct = 0.7, sky = 0.3;
        made.terrain = (direct * std::max(made.cos_i, 0.0) + sky) / (direct * cos_b * cos_s + sky);
        made.phase =
            math::acos(std::clamp(cos_s * math::cos(made.sensor_zenith * degree) +
                                      sin_s * math::sin(made.sensor_zenith * degree) *
                                          math::cos((made.sensor_azimuth - m_line.sun_azimuth) * degree),
                                  -1.0, 1.0)) /
            degree;
        made.kernels = normalise::kernels({}, m_line.sun_zenith * degree, made.sensor_zenith * degree,
                                          (made.sensor_azimuth - m_line.sun_azimuth) * degree);
        return made;
    }
    /// Returns the factor for the values of a pixel.
    double light(const Pixel& pixel, double red, double near_infrared) const {
        const double sum = near_infrared + red, ndvi = sum > 0 ? (near_infrared - red) / sum : 0;
        const double plants = 0.3 + 0.7 * std::clamp(ndvi, 0.0, 1.0);
        constexpr double volume = 0.8, geometric = 0.15;
        const auto model = [&](const std::array<double, 2>& k) {
            return 1 + plants * (volume * k[0] + geometric * k[1]);
        };
        return pixel.terrain * model(pixel.kernels) / model(m_common);
    }

  private:
    static constexpr size_t waves = 3;
    static double circle(double degrees) {
        return degrees < 0 ? degrees + 360 : degrees >= 360 ? degrees - 360 : degrees;
    }
    const FlightLine m_line;
    double m_phase[waves] = {};
    int m_red = 0, m_near_infrared = 0;
    std::array<double, 2> m_common{};
};

class LinePainter final : public stream::Operation {
  public:
    LinePainter(const MadeScene& scene, const FlightLine& line, const LineOutputs& outputs)
        : m_line(line), m_outputs(outputs), m_bands(scene.options().bands),
          m_samples(scene.options().samples), m_hills(scene, line) {
        Options quiet = scene.options();
        quiet.snr = std::numeric_limits<double>::infinity();
        m_land = std::make_shared<const MadeScene>(quiet);
        for (const double sigma : scene.noise())
            m_sigma.push_back(static_cast<float>(sigma * scene.options().scale));
        m_key = substream(scene.options().seed, 101);
        for (const double v : {line.x, line.y, line.sine})
            m_key = draw(m_key, bits_of(v));
    }
    bool divides() const override { return true; }
    std::vector<int> output_bands() const override {
        std::vector<int> bands{m_bands};
        if (m_outputs.labels) bands.push_back(1);
        if (m_outputs.geometry) bands.push_back(static_cast<int>(geometry_names.size()));
        if (m_outputs.flat) bands.push_back(m_bands);
        return bands;
    }
    uint64_t scratch_bytes(const stream::TileLimits&) const override {
        return static_cast<uint64_t>(side() * side()) * static_cast<uint64_t>(m_bands + 1) * 4;
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<Lane>(*this);
    }

  private:
    /// Returns the side of the area of the landscape that a block needs.
    static int64_t side() { return painted_side * 3 / 2 + 2; }

    class Lane final : public stream::Worker {
      public:
        explicit Lane(const LinePainter& owner)
            : m(owner), m_values(static_cast<size_t>(side() * side() * m.m_bands)),
              m_classes(static_cast<size_t>(side() * side())) {}
        void process(const Tile& tile, const CubeView<float>&,
                     const std::vector<CubeView<float>>& out) override {
            const Rect& core = tile.core;
            for (int64_t y = core.y; y < core.bottom(); y += painted_side)
                for (int64_t x = core.x; x < core.right(); x += painted_side) {
                    const Rect part{x, y, std::min(painted_side, core.right() - x),
                                    std::min(painted_side, core.bottom() - y)};
                    size_t k = 1;
                    const auto next = [&](bool wanted) {
                        return wanted ? out[k++].cut(x - core.x, y - core.y, part.w, part.h)
                                      : CubeView<float>{};
                    };
                    Parts parts{out[0].cut(x - core.x, y - core.y, part.w, part.h), {}, {}, {}};
                    parts.labels = next(m.m_outputs.labels);
                    parts.geometry = next(m.m_outputs.geometry);
                    parts.flat = next(m.m_outputs.flat);
                    paint(part, parts);
                }
        }

      private:
        struct Parts {
            CubeView<float> cube, labels, geometry, flat; ///< empty: not requested
        };
        std::array<double, 2> exact_place(int64_t line, int64_t sample) const {
            const double j = static_cast<double>(sample) + 0.5, i = static_cast<double>(line) + 0.5;
            const FlightLine& f = m.m_line;
            return {f.x + f.cosine * j + f.sine * i, f.y - f.sine * j + f.cosine * i};
        }
        std::pair<int64_t, int64_t> place(int64_t line, int64_t sample) const {
            const auto exact = exact_place(line, sample);
            return {static_cast<int64_t>(std::floor(exact[0])), static_cast<int64_t>(std::floor(exact[1]))};
        }
        void paint(const Rect& part, const Parts& parts) {
            const auto& [cube, labels, geometry, flat] = parts;
            Rect land;
            for (const int64_t line : {part.y, part.bottom() - 1})
                for (const int64_t sample : {part.x, part.right() - 1}) {
                    const auto [column, row] = place(line, sample);
                    const Rect seen{column, row, 1, 1};
                    if (land.empty()) land = seen;
                    const int64_t right = std::max(land.right(), seen.right()),
                                  bottom = std::max(land.bottom(), seen.bottom());
                    land.x = std::min(land.x, column);
                    land.y = std::min(land.y, row);
                    land.w = right - land.x;
                    land.h = bottom - land.y;
                }
            const auto values = CubeView<float>::packed(m_values.data(), m.m_bands, land.h, land.w);
            const auto classes = CubeView<float>::packed(m_classes.data(), 1, land.h, land.w);
            m.m_land->paint(land, values, labels.data ? classes : CubeView<float>{});
            for (int64_t y = 0; y < part.h; ++y)
                for (int64_t x = 0; x < part.w; ++x) {
                    const auto [column, row] = place(part.y + y, part.x + x);
                    if (labels.data) labels.at(0, y, x) = classes.at(0, row - land.y, column - land.x);
                    const double across =
                        (2 * static_cast<double>(part.x + x) + 1) / static_cast<double>(m.m_samples) - 1;
                    double factor = m.m_line.light * (1 + m.m_line.slope * across);
                    const auto value = [&, r = row - land.y, c = column - land.x](int b) {
                        return values.at(b, r, c);
                    };
                    if (m.m_line.hills) {
                        const auto exact = exact_place(part.y + y, part.x + x);
                        const auto seen = m.m_hills.at(exact[0], exact[1], across);
                        factor *= m.m_hills.light(seen, static_cast<double>(value(m.m_hills.red())),
                                                  static_cast<double>(value(m.m_hills.near_infrared())));
                        if (geometry.data) tell(geometry, y, x, seen);
                    }
                    const auto light = static_cast<float>(factor);
                    for (int b = 0; flat.data && b < m.m_bands; ++b)
                        flat.at(b, y, x) = value(b);
                    const uint64_t pixel = draw(m.m_key, part.x + x, part.y + y);
                    for (int b = 0; b < m.m_bands; ++b)
                        cube.at(b, y, x) =
                            value(b) * light + m.m_sigma[static_cast<size_t>(b)] * noise(pixel, b);
                }
        }
        void tell(const CubeView<float>& geometry, int64_t y, int64_t x, const Relief::Pixel& seen) const {
            const double all[] = {seen.path,           seen.sensor_azimuth,
                                  seen.sensor_zenith,  m.m_line.sun_azimuth,
                                  m.m_line.sun_zenith, seen.phase,
                                  seen.slope,          seen.aspect,
                                  seen.cos_i,          12};
            for (int b = 0; b < static_cast<int>(geometry_names.size()); ++b)
                geometry.at(b, y, x) = static_cast<float>(all[b]);
        }
        /// Returns the sum of four uniform numbers: nearly normal, with mean 0 and variance 1.
        static float noise(uint64_t pixel, int band) {
            const uint64_t h = draw(pixel, static_cast<uint64_t>(band));
            float sum = -2.0f + 2.0f / 65536;
            for (int k = 0; k < 4; ++k)
                sum += static_cast<float>((h >> (16 * k)) & 0xffffu) * 0x1p-16f;
            return sum * 1.7320508f;
        }
        const LinePainter& m;
        std::vector<float> m_values, m_classes;
    };

    const FlightLine m_line;
    const LineOutputs m_outputs;
    const int m_bands;
    const int64_t m_samples;
    const Relief m_hills;
    std::shared_ptr<const MadeScene> m_land;
    std::vector<float> m_sigma;
    uint64_t m_key = 0;
};

} // namespace

std::unique_ptr<stream::Operation> make_line_painter(const MadeScene& scene, const FlightLine& line,
                                                     const LineOutputs& outputs) {
    const Options& o = scene.options();
    if (o.targets > 0 || o.nan_pixels > 0 || o.bad_bands > 0 || o.stripe_width > 0 || o.trait)
        throw UsageError("-corner: a flight line over a landscape cannot have targets, holes, stripes, bad "
                         "bands or values",
                         "Leave -targets, -nan-pixels, -nodata-stripe, -bad-bands, -values and -plots out.");
    return std::make_unique<LinePainter>(scene, line, outputs);
}

} // namespace hsi::synth
