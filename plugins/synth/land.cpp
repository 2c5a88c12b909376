// SPDX-License-Identifier: MIT
// Pattern::land: a cultivated landscape as an imager sees it. The layers are, from top to bottom: roads with
// bridges, a river with its banks, settlements (streets, houses, gardens), woods, hedges, strips of crops,
// outcrops of rock. Several effects change all layers: the light on hills, the shadows of houses and of the
// edges of woods, and moisture, which changes a crop across its field.
#include "synth/landscape.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>

namespace hsi::synth {
namespace {

// Indices in the material library
constexpr int grass = 0, loam = 1, deciduous = 4, concrete = 7, sand = 12, conifer = 14;
constexpr std::array crops{0, 5, 1, 0, 5, 1, 0, 5, 1, 0, 21, 22}; // repeated entries are more frequent
constexpr std::array rocks{6, 8, 9, 11, 15, 16, 17, 18, 19, 20, 23};
constexpr std::array roofs{10, 7, 13};

constexpr double block_width = 92, block_height = 70; // size of neighbouring blocks of strips, in pixels
constexpr double town_spacing = 184;                  // there is one settlement in each square of this size
constexpr double river_spacing = 290;                 // less than the height of the smallest demo scene
constexpr float shadow_depth = 0.55f;
constexpr float dimmest = 0.50f, brightest = 0.97f; // range of light on slopes

/// Cosines and sines of the angles of 3-4-5, 7-24-25 and 20-21-29 triangles. They are exact numbers, unlike
/// computed cosines, whose last bits may differ.
constexpr std::array<std::array<double, 2>, 8> directions{
    {{1, 0}, {0.96, 0.28}, {0.8, 0.6}, {0.6, 0.8}, {0.28, 0.96}, {0.8, -0.6}, {0.96, -0.28}, {0.28, -0.96}}};

/// Returns one of the materials of `from` that the scene has, or `none` if the scene has none of them.
template <size_t N>
int one_of(const std::array<int, N>& from, int materials, uint64_t drawn, int none) {
    uint64_t count = 0;
    for (const int k : from)
        count += k < materials ? 1 : 0;
    if (count == 0) return none;
    uint64_t at = drawn % count;
    for (const int k : from)
        if (k < materials && at-- == 0) return k;
    return none;
}

/// A block of crop strips in one direction, or an outcrop of rock.
struct Block {
    double u = 0, v = 0; ///< centre
    uint64_t key = 0;
    double cosine = 1, sine = 0, strip = 20;
    bool outcrop = false;
};

Block block(uint64_t key, int materials) {
    Block b;
    b.key = key;
    const auto& d = directions[draw(key, 2) % directions.size()];
    b.cosine = d[0];
    b.sine = d[1];
    b.strip = 15 + 18 * double{unit(draw(key, 3))};
    b.outcrop = materials > rocks.front() && unit(draw(key, 4)) < 0.2f;
    return b;
}

/// A square of the map that contains a settlement.
struct Town {
    double x = 0, y = 0, radius = 0, cosine = 1, sine = 0;
    double plot_s = 10, plot_t = 8; ///< size of the plot of a house, in pixels
    uint64_t key = 0;
};

/// The parts of a settlement in a pixel.
struct TownCover {
    float inside = 0, street = 0, house = 0, shadow = 0;
    int roof = 0, garden = 0;
};

/// The settlement in the square around a position.
class TownMap {
  public:
    TownMap(uint64_t key, int materials) : m_key(key), m_materials(materials) {}

    /// `rough` is the number of pixels by which the border of the settlement is moved outwards at this
    /// position.
    TownCover at(double x, double y, double rough) {
        choose(x, y);
        TownCover c;
        const double dx = x - m_town.x, dy = y - m_town.y;
        const double off = std::sqrt(dx * dx + dy * dy);
        c.inside = clamp01(static_cast<float>((m_town.radius + rough - off) * 0.7 + 0.5));
        if (c.inside == 0) return c;
        const double s = m_town.cosine * dx + m_town.sine * dy, t = m_town.cosine * dy - m_town.sine * dx;
        // Between two streets, there are three rows of plots in one direction and two rows in the other
        // direction.
        c.street = coverage(std::min(from_line(s, 3 * m_town.plot_s), from_line(t, 2 * m_town.plot_t)), 1.0);
        const uint64_t plot = plot_key(s, t);
        c.garden = unit(draw(plot, 7)) < 0.55f ? grass : unit(draw(plot, 8)) < 0.6f ? deciduous : concrete;
        c.roof = one_of(roofs, m_materials, draw(plot, 5), asphalt);
        c.house = house(s, t) * (1 - c.street);
        // The sun is in the south-south-west, so shadows extend two pixels up and one pixel to the right.
        const double sx = dx - 1, sy = dy + 2;
        c.shadow = house(m_town.cosine * sx + m_town.sine * sy, m_town.cosine * sy - m_town.sine * sx) *
                   (1 - c.house);
        return c;
    }

  private:
    void choose(double x, double y) {
        const auto cx = static_cast<int64_t>(std::floor(x * (1 / town_spacing)));
        const auto cy = static_cast<int64_t>(std::floor(y * (1 / town_spacing)));
        if (cx == m_x && cy == m_y) return;
        m_x = cx;
        m_y = cy;
        m_town.key = draw(m_key, cx, cy);
        const auto number = [&](uint64_t i) { return double{unit(draw(m_town.key, i))}; };
        // The radius is less than the distance between the centre and the border of the square.
        m_town.radius = 22 + 16 * number(2);
        // The centre is at least 0.28 of the square's side away from the border.
        m_town.x = (static_cast<double>(cx) + 0.28 + 0.44 * number(0)) * town_spacing;
        m_town.y = (static_cast<double>(cy) + 0.28 + 0.44 * number(1)) * town_spacing;
        const auto& d = directions[draw(m_town.key, 3) % directions.size()];
        m_town.cosine = d[0];
        m_town.sine = d[1];
        const bool halls = number(4) < 0.25; // large buildings
        m_town.plot_s = halls ? 18 : 10;
        m_town.plot_t = halls ? 15 : 8;
    }
    uint64_t plot_key(double s, double t) const {
        return draw(m_town.key, static_cast<int64_t>(std::floor(s * (1 / m_town.plot_s))),
                    static_cast<int64_t>(std::floor(t * (1 / m_town.plot_t))));
    }
    float house(double s, double t) const {
        const double ps = s * (1 / m_town.plot_s), pt = t * (1 / m_town.plot_t);
        const uint64_t plot = plot_key(s, t);
        if (unit(draw(plot, 0)) > 0.88f) return 0;
        const auto number = [&](uint64_t i) { return double{unit(draw(plot, i))}; };
        const double ds = (ps - std::floor(ps) - 0.5) * m_town.plot_s + 1.5 * (number(1) - 0.5);
        const double dt = (pt - std::floor(pt) - 0.5) * m_town.plot_t + 1.0 * (number(2) - 0.5);
        return coverage(std::abs(ds), m_town.plot_s * (0.22 + 0.1 * number(3))) *
               coverage(std::abs(dt), m_town.plot_t * (0.2 + 0.1 * number(4)));
    }
    uint64_t m_key;
    int m_materials;
    int64_t m_x = std::numeric_limits<int64_t>::min(), m_y = 0;
    Town m_town;
};

/// The light on hills. It is brighter where the ground falls towards the sun.
class Hills {
  public:
    Hills(uint64_t key, int64_t line, int64_t sample)
        : m_here{SmoothLine(draw(key, 0), 271, line, sample), SmoothLine(draw(key, 1), 83, line, sample)},
          m_below{SmoothLine(draw(key, 0), 271, line + 1, sample),
                  SmoothLine(draw(key, 1), 83, line + 1, sample)} {
        m_height = height(m_here);
    }
    /// Returns the light of the next sample.
    float next() {
        const float below = height(m_below), right = height(m_here);
        const float light = 0.78f + 0.40f * (m_height - below) - 0.24f * (m_height - right);
        m_height = right;
        return std::min(brightest, std::max(dimmest, light));
    }

  private:
    /// Returns the height in pixels. Slopes are at most one.
    static float height(std::array<SmoothLine, 2>& lines) {
        const float wide = lines[0].next(), narrow = lines[1].next();
        return 180.0f * wide + 55.0f * narrow;
    }
    std::array<SmoothLine, 2> m_here, m_below;
    float m_height = 0;
};

/// Woods, where noise of two sizes is above a threshold. The noise is computed at this line and two lines
/// further south, because trees there cast their shadows on this line.
class Woods {
  public:
    Woods(uint64_t key, int64_t line, int64_t sample)
        : m_here{SmoothLine(draw(key, 0), 127, line, sample), SmoothLine(draw(key, 1), 29, line, sample)},
          m_south{SmoothLine(draw(key, 0), 127, line + 2, sample),
                  SmoothLine(draw(key, 1), 29, line + 2, sample)} {}
    struct Cover {
        float wood, shadow;
    };
    Cover next() {
        const float here = cover(m_here), south = cover(m_south);
        return {here, std::max(0.0f, south - here)};
    }

  private:
    static float cover(std::array<SmoothLine, 2>& lines) {
        const float wide = lines[0].next(), narrow = lines[1].next();
        return clamp01((0.72f * wide + 0.28f * narrow - 0.63f) * 24.0f + 0.5f);
    }
    std::array<SmoothLine, 2> m_here, m_south;
};

class Land final : public Landscape {
  public:
    Land(uint64_t seed, int materials) : m_seed(seed), m_materials(materials) {}
    void paint(int64_t line, int64_t sample, size_t pixels, PixelRun& run) const override;

  private:
    bool has(int material) const { return material < m_materials; }
    void add_block(const Block& b, double x, double y, float moisture, float strata, float fine,
                   const auto& add) const;
    void add_strip(uint64_t key, float moisture, float fine, float share, const auto& add) const;
    void add_rock(uint64_t key, float strata, float bareness, float fine, const auto& add) const;

    uint64_t m_seed;
    int m_materials;
};

/// Adds a crop and the soil between its rows. Where it is dry, more soil is visible.
void Land::add_strip(uint64_t key, float moisture, float fine, float share, const auto& add) const {
    const int main = one_of(crops, m_materials, draw(key, 0), grass);
    const int ground = main == loam ? one_of(crops, m_materials, draw(key, 1), grass) : loam;
    const float cover = 0.80f + 0.20f * unit(draw(key, 2));
    const float pure = std::min(1.0f, cover - 0.28f * moisture * unit(draw(key, 3)) - 0.07f * fine);
    add(main, share * pure);
    add(ground, share * (1 - pure));
}

/// Adds rock in layers with mixed borders, and soil in the hollows of the rock.
void Land::add_rock(uint64_t key, float strata, float bareness, float fine, const auto& add) const {
    const float layer = strata * 7.0f, place = layer - std::floor(layer);
    const auto rock = [&](float at) {
        return one_of(rocks, m_materials, draw(key, static_cast<uint64_t>(at)), loam);
    };
    const float next = clamp01((place - 0.85f) * (1.0f / 0.15f));
    // Rock is bare only at greater heights. Around them, grass grows on rubble.
    const float bare = clamp01((bareness - 0.42f) * 3.0f) * (0.95f - 0.2f * fine),
                rubble = 0.12f * (1 - bare);
    add(rock(std::floor(layer)), (bare + rubble) * (1 - next));
    if (next > 0) add(rock(std::floor(layer) + 1), (bare + rubble) * next);
    const float rest = 1 - bare - rubble, green = 0.6f + 0.3f * fine;
    add(grass, rest * green);
    add(loam, rest * (1 - green));
}

void Land::add_block(const Block& b, double x, double y, float moisture, float strata, float fine,
                     const auto& add) const {
    if (b.outcrop) return add_rock(b.key, strata, 1 - moisture, fine, add);
    const double across = (b.cosine * x + b.sine * y) * (1 / b.strip);
    // Position within the strip, in pixels
    const double index = std::floor(across), place = (across - index) * b.strip;
    const auto key = [&](double i) {
        return draw(b.key, static_cast<uint64_t>(static_cast<int64_t>(i)) + 64);
    };
    const float before = clamp01(static_cast<float>(0.5 - place)),
                after = clamp01(static_cast<float>(0.5 - (b.strip - place)));
    add_strip(key(index), moisture, fine, 1 - before - after, add);
    if (before > 0) add_strip(key(index - 1), moisture, fine, before, add);
    if (after > 0) add_strip(key(index + 1), moisture, fine, after, add);
}

void Land::paint(int64_t line, int64_t sample, size_t pixels, PixelRun& run) const {
    const auto stream = [&](uint64_t purpose) { return substream(m_seed, purpose); };
    const auto smooth = [&](uint64_t purpose, int64_t spacing) {
        return SmoothLine(stream(purpose), spacing, line, sample);
    };
    SmoothLine warp_u = smooth(warp_u_stream, 61), warp_v = smooth(warp_v_stream, 67);
    SmoothLine texture = smooth(texture_stream, 4), moist = smooth(gradient_stream, 59);
    SmoothLine river = smooth(river_stream, 139), bend = smooth(roads_stream, 157);
    SmoothLine crowns = smooth(crowns_stream, 3), kinds = smooth(kinds_stream, 103),
               layers = smooth(strata_stream, 79);
    Hills hills(stream(hills_stream), line, sample);
    Woods woods(stream(forest_stream), line, sample);
    CellMap<Block> blocks(stream(cells_stream), block_width, block_height, m_materials, block);
    TownMap towns(stream(towns_stream), m_materials);
    const uint64_t line_key = draw(stream(pixels_stream), static_cast<uint64_t>(line));

    for (size_t i = 0; i < pixels; ++i) {
        const int64_t x = sample + static_cast<int64_t>(i);
        const float white = run.hash(line_key, x, i);
        const auto xd = static_cast<double>(x), yd = static_cast<double>(line);
        const float fine = 0.6f * texture.next() + 0.4f * white, moisture = moist.next();
        const float crown = 0.6f * crowns.next() + 0.4f * white, kind = kinds.next(), strata = layers.next();
        const double wind_u = double{warp_u.next()}, wind_v = double{warp_v.next()};
        const auto near = blocks.find(xd + 12.0 * wind_u, yd + 12.0 * wind_v);
        const double turn = 34.0 * double{bend.next()};
        const double off_river =
            from_line(0.96 * yd + 0.28 * xd + 110.0 * double{river.next()}, river_spacing);
        const auto [wood, wood_shadow] = woods.next();
        const TownCover town = towns.at(xd, yd, 22.0 * (wind_u - 0.5));

        const double width = 3.0 + 5.0 * wind_v;
        const float water_cover = coverage(off_river, width);
        float bright = hills.next();
        bright = (0.80f + (bright - 0.80f) * (1 - water_cover)) * (0.94f + 0.06f * fine);
        const auto over = [&](int k, float share) {
            if (share > 0) run.add(k, i, share * bright);
        };
        float left = 1; // fraction of the pixel that is not covered yet
        const auto cover = [&](int k, float share) {
            if (!has(k)) return;
            over(k, left * share);
            left *= 1 - share;
        };

        const double u = 0.96 * xd + 0.28 * yd + turn, v = 0.96 * yd - 0.28 * xd + turn;
        const float road = coverage(std::min(from_line(u, 211), from_line(v, 283)), 1.2);
        const float in_town = town.inside * (1 - water_cover);
        const float in_wood = wood * (1 - in_town);
        bright *=
            1 - shadow_depth * std::max(town.shadow * in_town, wood_shadow * (1 - water_cover)) * (1 - road);

        cover(asphalt, road);
        cover(water, water_cover);
        if (has(sand)) cover(sand, 0.8f * coverage(off_river, width + 1.5 * wind_u));
        cover(town.roof, in_town * town.house);
        cover(asphalt, in_town * town.street);
        if (has(town.garden)) {
            cover(town.garden, in_town * (0.70f + 0.2f * fine));
            cover(loam, in_town);
        }
        if (in_wood > 0 && has(deciduous)) {
            // The crowns of trees, and the dark gaps between them
            bright *= 1 - 0.30f * in_wood * crown;
            const float needles = has(conifer) ? clamp01((kind - 0.5f) * 9.0f + 0.5f) : 0;
            cover(conifer, in_wood * needles);
            cover(deciduous, in_wood);
        }
        // Some borders of blocks have a hedge, and others have a track.
        const uint64_t border = (near.first->key ^ near.second->key) % 5;
        if (border == 0) cover(deciduous, 0.9f * coverage(near.gap * 0.5, 0.9));
        if (border == 1) cover(loam, 0.9f * coverage(near.gap * 0.5, 0.6));

        const float share = near.share();
        const auto ground = [&](float part) {
            return [&, part](int k, float s) { over(k, left * part * s); };
        };
        add_block(*near.first, xd, yd, moisture, strata, fine, ground(share));
        if (share < 1) add_block(*near.second, xd, yd, moisture, strata, fine, ground(1 - share));
    }
}

} // namespace

std::unique_ptr<const Landscape> make_land(uint64_t seed, int materials) {
    return std::make_unique<const Land>(seed, materials);
}

} // namespace hsi::synth
