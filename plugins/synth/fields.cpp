// SPDX-License-Identifier: MIT
// Pattern::fields: polygons of one material mixed with two others, a river and a grid of roads.
#include "synth/landscape.h"

#include <algorithm>

namespace hsi::synth {
namespace {

// Illumination of ordinary pixels: darkest .. darkest + shading.
constexpr float darkest = 0.70f, shading = 0.27f;

/// A field: one crop or surface, and two other materials.
struct Field {
    double u = 0, v = 0; ///< centre of the field, in field coordinates
    int main = 0, second = 0, third = 0;
    float purity = 0;
};

Field field(uint64_t key, int materials) {
    Field f;
    const auto n = static_cast<uint64_t>(materials);
    f.main = static_cast<int>(draw(key, 2) % n);
    f.second = static_cast<int>((static_cast<uint64_t>(f.main) + 1 + draw(key, 3) % (n - 1)) % n);
    f.third = static_cast<int>(draw(key, 4) % n);
    if (f.third == f.main) f.third = f.second;
    f.purity = 0.72f + 0.23f * unit(draw(key, 5));
    return f;
}

class Fields final : public Landscape {
  public:
    Fields(uint64_t seed, int materials) : m_seed(seed), m_materials(materials) {}

    void paint(int64_t line, int64_t sample, size_t pixels, PixelRun& run) const override {
        const auto stream = [&](uint64_t purpose) { return substream(m_seed, purpose); };
        SmoothLine warp_u(stream(warp_u_stream), 61, line, sample),
            warp_v(stream(warp_v_stream), 67, line, sample);
        SmoothLine texture(stream(texture_stream), 5, line, sample),
            gradient(stream(gradient_stream), 97, line, sample);
        SmoothLine wide(stream(shade_wide_stream), 211, line, sample),
            narrow(stream(shade_narrow_stream), 43, line, sample);
        SmoothLine river(stream(river_stream), 389, line, sample);
        CellMap<Field> fields(stream(cells_stream), 48, 36, m_materials, field);
        const uint64_t line_key = draw(stream(pixels_stream), static_cast<uint64_t>(line));

        for (size_t i = 0; i < pixels; ++i) {
            const int64_t x = sample + static_cast<int64_t>(i);
            const float white = run.hash(line_key, x, i);

            // Fields are rotated (by the angle of a 7-24-25 triangle), and their borders are slightly
            // irregular.
            const auto xd = static_cast<double>(x), yd = static_cast<double>(line);
            const double u = 0.96 * xd + 0.28 * yd, v = 0.96 * yd - 0.28 * xd;
            const auto near = fields.find(u + 14.0 * double{warp_u.next()}, v + 14.0 * double{warp_v.next()});
            const float fine = 0.7f * texture.next() + 0.3f * white, slope = gradient.next();
            const float bright =
                darkest + shading * (0.6f * wide.next() + 0.3f * narrow.next() + 0.1f * fine);

            float cover = 0; // fraction of the pixel that the river or a road covers
            int material = 0;
            const float off_river = std::abs(river.next() - 0.5f);
            if (m_materials > water) {
                cover = clamp01((0.018f - off_river) * 300.0f + 0.5f);
                material = water;
            }
            if (m_materials > asphalt && cover == 0) {
                cover = coverage(std::min(from_line(u, 197), from_line(v, 263)), 1.5);
                material = asphalt;
            }

            const auto add_field = [&](const Field& f, float share) {
                const float pure = f.purity * (1.0f - 0.2f * fine), rest = 1.0f - pure;
                run.add(f.main, i, share * pure * bright);
                run.add(f.second, i, share * rest * slope * bright);
                run.add(f.third, i, share * rest * (1.0f - slope) * bright);
            };
            const float ground = 1.0f - 0.95f * cover, share = near.share();
            add_field(*near.first, ground * share);
            if (share < 1.0f) add_field(*near.second, ground * (1.0f - share));
            if (cover > 0) run.add(material, i, 0.95f * cover * bright);
        }
    }

  private:
    uint64_t m_seed;
    int m_materials;
};

} // namespace

std::unique_ptr<const Landscape> make_fields(uint64_t seed, int materials) {
    return std::make_unique<const Fields>(seed, materials);
}

} // namespace hsi::synth
