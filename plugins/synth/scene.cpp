// SPDX-License-Identifier: MIT
// The contents of a synthetic scene: materials, targets, noise, traits.
#include "core/counted.h"
#include "core/error.h"
#include "math/elementary.h"
#include "synth/hash.h"
#include "synth/landscape.h"
#include "synth/materials.h"
#include "synth/synth.h"
#include "synth/values_simd.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <unordered_set>

namespace hsi::synth {
namespace {

constexpr double bad_band_sigma = 0.05; // standard deviation of the noise in bad bands, as reflectance
constexpr float no_value = std::numeric_limits<float>::quiet_NaN();

} // namespace

struct MadeScene::Impl {
    struct Planted {
        int64_t position;
        int endmember;
    };
    struct Hole {
        int64_t position;
        int band; ///< -1: all bands
    };

    Options o;
    std::unique_ptr<const Landscape> landscape;
    std::vector<double> wavelengths, fwhm, noise;
    std::vector<int> bad;
    std::vector<uint8_t> is_bad;
    std::vector<double> reflectance; ///< [endmembers][bands]
    std::vector<float> spectra;      ///< [bands][endmembers], scaled; 0 in bad bands
    std::vector<float> absorption;   ///< absorption of the trait in each band
    uint32_t plants = 0;             ///< bit k is set if material k has the trait
    std::vector<BandModel> model;
    std::vector<Target> targets;
    std::vector<Planted> planted; ///< ordered by position
    std::vector<Hole> holes;      ///< ordered by position

    void check() const;
    void make_bands();
    void make_spectra();
    void place();
    void set_noise();
    int64_t free_pixels() const { return o.lines * (o.samples - o.stripe_width); }
    int64_t position_of_free(int64_t index) const {
        const int64_t per_line = o.samples - o.stripe_width;
        const int64_t s = index % per_line;
        return index / per_line * o.samples + (s < o.stripe_first ? s : s + o.stripe_width);
    }
    void run(int64_t line, int64_t sample, size_t pixels, PixelRun& scratch) const;
    void set_trait(int64_t line, int64_t sample, size_t pixels, PixelRun& scratch) const;
    /// Returns whether plants cover at least 90 % of the pixel.
    bool has_trait(const PixelRun& scratch, size_t pixel) const;
    void values(size_t pixels, PixelRun& scratch, float* dst, ptrdiff_t band_stride) const;
};

void MadeScene::Impl::check() const {
    const auto refuse = [](const std::string& what) { throw UsageError(what); };
    if (o.samples < 1 || o.lines < 1 || o.bands < 1)
        refuse("-size " + std::to_string(o.samples) + " " + std::to_string(o.lines) + " " +
               std::to_string(o.bands) + ": every number must be at least 1");
    if (o.samples > std::numeric_limits<int32_t>::max() || o.lines > std::numeric_limits<int32_t>::max())
        refuse("-size: GDAL supports at most 2147483647 samples and lines");
    if (o.endmembers < min_endmembers || o.endmembers > material_count())
        refuse("-endmembers " + std::to_string(o.endmembers) + " is outside " +
               std::to_string(min_endmembers) + ".." + std::to_string(material_count()));
    if (std::isnan(o.snr) || o.snr < -20) refuse("-snr must be a number of decibels, -20 or more");
    if (o.bad_bands < 0 || o.bad_bands >= o.bands)
        refuse("-bad-bands " + std::to_string(o.bad_bands) + " is outside 0.." + std::to_string(o.bands - 1) +
               ": one band must stay good");
    if (o.stripe_width < 0 || o.stripe_first < 0 || o.stripe_first + o.stripe_width > o.samples)
        refuse("-nodata-stripe " + std::to_string(o.stripe_first) + " " + std::to_string(o.stripe_width) +
               " is not inside a scene of " + counted(o.samples, "sample"));
    if (o.stripe_width == o.samples) refuse("-nodata-stripe covers the whole scene");
    if (o.targets < 0 || o.targets > std::max<int64_t>(1, free_pixels() / 4))
        refuse("-targets " + std::to_string(o.targets) + " is outside 0.." +
               std::to_string(std::max<int64_t>(1, free_pixels() / 4)) +
               ", a quarter of the pixels that have values");
    if (o.nan_pixels < 0 || o.nan_pixels > (free_pixels() - o.targets) / 2)
        refuse("-nan-pixels " + std::to_string(o.nan_pixels) + " is outside 0.." +
               std::to_string((free_pixels() - o.targets) / 2) + ", half of the pixels that have values");
}

void MadeScene::Impl::make_bands() {
    const auto n = static_cast<size_t>(o.bands);
    const double spacing = o.bands > 1 ? 2100.0 / (o.bands - 1) : 2100.0;
    for (size_t b = 0; b < n; ++b) {
        const double nm =
            o.bands > 1 ? 400 + 2100.0 * static_cast<double>(b) / static_cast<double>(n - 1) : 650;
        wavelengths.push_back(std::nearbyint(nm * 1000) / 1000);
        fwhm.push_back(std::nearbyint(std::min(60.0, 1.1 * spacing) * 1000) / 1000);
    }
    // Water vapour absorbs light near 1400 and 1900 nm, so the bands there become bad bands.
    std::vector<int> order(n);
    for (size_t b = 0; b < n; ++b)
        order[b] = static_cast<int>(b);
    const auto distance = [&](int b) {
        const double nm = wavelengths[static_cast<size_t>(b)];
        return std::min(std::abs(nm - 1400), std::abs(nm - 1900));
    };
    std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return distance(x) < distance(y); });
    bad.assign(order.begin(), order.begin() + o.bad_bands);
    std::sort(bad.begin(), bad.end());
    is_bad.assign(n, 0);
    for (int b : bad)
        is_bad[static_cast<size_t>(b)] = 1;
}

void MadeScene::Impl::make_spectra() {
    const auto n = static_cast<size_t>(o.bands), k_count = static_cast<size_t>(o.endmembers);
    const uint64_t seed = substream(o.seed, materials_stream);
    reflectance.resize(k_count * n);
    spectra.resize(n * k_count);
    for (size_t k = 0; k < k_count; ++k)
        for (size_t b = 0; b < n; ++b) {
            const double r = material_reflectance(static_cast<int>(k), wavelengths[b], fwhm[b], seed);
            reflectance[k * n + b] = r;
            spectra[b * k_count + k] = is_bad[b] ? 0.0f : static_cast<float>(r * o.scale);
        }
    if (!o.trait) return;
    for (size_t b = 0; b < n; ++b)
        absorption.push_back(static_cast<float>(nitrogen_absorption(wavelengths[b], fwhm[b])));
    for (int k = 0; k < o.endmembers; ++k)
        if (is_plant(k)) plants |= 1u << k;
}

void MadeScene::Impl::place() {
    std::unordered_set<int64_t> taken;
    const auto drawn = [&](uint64_t purpose, int64_t count, const auto& take) {
        const uint64_t key = substream(o.seed, purpose);
        const auto limit = static_cast<uint64_t>(free_pixels());
        uint64_t next = 0;
        for (int64_t i = 0; i < count; ++i) {
            int64_t position = 0;
            do
                position = position_of_free(static_cast<int64_t>(draw(key, next++) % limit));
            while (!taken.insert(position).second);
            take(i, position);
        }
    };
    drawn(targets_stream, o.targets, [&](int64_t i, int64_t position) {
        const int k = static_cast<int>(i % o.endmembers);
        targets.push_back({position / o.samples, position % o.samples, k});
        planted.push_back({position, k});
    });
    const uint64_t band_key = substream(o.seed, nan_stream + 1000);
    drawn(nan_stream, o.nan_pixels, [&](int64_t i, int64_t position) {
        const auto band =
            static_cast<int>(draw(band_key, static_cast<uint64_t>(i)) % static_cast<uint64_t>(o.bands));
        holes.push_back({position, i % 2 == 0 ? -1 : band});
    });
    const auto by_position = [](const auto& a, const auto& b) { return a.position < b.position; };
    std::sort(planted.begin(), planted.end(), by_position);
    std::sort(holes.begin(), holes.end(), by_position);
}

void MadeScene::Impl::set_noise() {
    // The mean of a a' over a grid of pixels gives the mean square of the signal in each band.
    constexpr int64_t grid = 64;
    const auto k_count = static_cast<size_t>(o.endmembers);
    std::vector<double> moment(k_count * k_count, 0.0);
    const int64_t rows = std::min(grid, o.lines), columns = std::min(grid, o.samples);
    PixelRun scratch(o.endmembers);
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) {
            run((2 * r + 1) * o.lines / (2 * rows), (2 * c + 1) * o.samples / (2 * columns), 1, scratch);
            for (size_t i = 0; i < k_count; ++i)
                for (size_t j = 0; j < k_count; ++j)
                    moment[i * k_count + j] +=
                        double{scratch.abundance[i].v[0]} * double{scratch.abundance[j].v[0]};
        }
    const double ratio = std::isinf(o.snr) ? 0.0 : math::pow(10.0, -o.snr / 20);
    const uint64_t key = substream(o.seed, bands_stream);
    const auto n = static_cast<size_t>(o.bands);
    for (size_t b = 0; b < n; ++b) {
        double power = 0;
        for (size_t i = 0; i < k_count; ++i)
            for (size_t j = 0; j < k_count; ++j)
                power += moment[i * k_count + j] * reflectance[i * n + b] * reflectance[j * n + b];
        const double rms = std::sqrt(power / static_cast<double>(rows * columns));
        // The value is rounded to 16 bits, so that the last bit of pow() does not affect the scene.
        int exponent = 0;
        const double exact = is_bad[b] ? bad_band_sigma : rms * ratio;
        const double fraction = std::frexp(exact, &exponent);
        noise.push_back(std::ldexp(std::nearbyint(fraction * 65536) / 65536, exponent));
        const uint64_t h = draw(key, b);
        model.push_back({static_cast<float>(noise.back() * o.scale), static_cast<uint32_t>(h),
                         static_cast<uint32_t>(h >> 32)});
    }
}

/// Computes the abundances times illumination and the hashes of `pixels` pixels, starting at (line, sample).
void MadeScene::Impl::run(int64_t line, int64_t sample, size_t pixels, PixelRun& s) const {
    for (auto& row : s.abundance)
        std::fill_n(row.v, run_pixels, 0.0f);
    s.active = 0;
    landscape->paint(line, sample, pixels, s);

    const int64_t begin = line * o.samples + sample;
    auto t = std::lower_bound(planted.begin(), planted.end(), begin,
                              [](const Planted& p, int64_t at) { return p.position < at; });
    for (; t != planted.end() && t->position < begin + static_cast<int64_t>(pixels); ++t) {
        const auto i = static_cast<size_t>(t->position - begin);
        for (auto& row : s.abundance)
            row.v[i] = 0;
        s.add(t->endmember, i, 1);
    }
    if (o.trait) set_trait(line, sample, pixels, s);
}

void MadeScene::Impl::set_trait(int64_t line, int64_t sample, size_t pixels, PixelRun& s) const {
    constexpr int64_t wide = 60, narrow = 13; // pixels
    constexpr auto least = static_cast<float>(least_nitrogen),
                   range = static_cast<float>(most_nitrogen - least_nitrogen);
    const uint64_t key = substream(o.seed, trait_stream);
    SmoothLine fields(draw(key, 0), wide, line, sample), plants_in_them(draw(key, 1), narrow, line, sample);
    for (size_t i = 0; i < pixels; ++i)
        s.trait.v[i] = least + range * (0.65f * fields.next() + 0.35f * plants_in_them.next());
}

bool MadeScene::Impl::has_trait(const PixelRun& s, size_t pixel) const {
    constexpr float covered = 0.9f;
    float of_plants = 0, all = 0;
    for (size_t k = 0; k < s.abundance.size(); ++k) {
        all += s.abundance[k].v[pixel];
        if (plants >> k & 1) of_plants += s.abundance[k].v[pixel];
    }
    return of_plants > covered * all;
}

void MadeScene::Impl::values(size_t pixels, PixelRun& s, float* dst, ptrdiff_t band_stride) const {
    const auto k_count = static_cast<size_t>(o.endmembers), n = static_cast<size_t>(o.bands);
    // A plant with a trait counts as two materials: the plant, and the absorption by the trait.
    const auto absorbing = static_cast<size_t>(std::popcount(s.active & plants)),
               count = static_cast<size_t>(std::popcount(s.active)) + absorbing;
    s.rows.clear();
    s.absorbed.resize(std::max(s.absorbed.size(), absorbing));
    for (size_t k = 0; k < k_count; ++k)
        if (s.active >> k & 1) s.rows.push_back(s.abundance[k].v);
    for (size_t k = 0, at = 0; k < k_count; ++k) {
        if (!((s.active & plants) >> k & 1)) continue;
        for (size_t i = 0; i < run_pixels; ++i)
            s.absorbed[at].v[i] = -s.abundance[k].v[i] * s.trait.v[i];
        s.rows.push_back(s.absorbed[at++].v);
    }
    if (s.spectra_of != s.active) {
        // Absent materials would only add exact zeros, so leaving them out does not change any bit.
        s.spectra.resize(n * count);
        for (size_t b = 0; b < n; ++b) {
            float* to = s.spectra.data() + b * count;
            for (size_t k = 0; k < k_count; ++k)
                if (s.active >> k & 1) *to++ = spectra[b * k_count + k];
            for (size_t k = 0; k < k_count; ++k)
                if ((s.active & plants) >> k & 1) *to++ = spectra[b * k_count + k] * absorption[b];
        }
        s.spectra_of = s.active;
    }
    RunInput in;
    in.pixels = pixels;
    in.bands = o.bands;
    in.active = static_cast<int>(count);
    in.abundance = s.rows.data();
    in.spectra = s.spectra.data();
    in.low = s.low.v;
    in.high = s.high.v;
    in.model = model.data();
    run_values(in, dst, band_stride);
}

MadeScene::MadeScene(const Options& options) {
    auto impl = std::make_unique<Impl>();
    impl->o = options;
    impl->check();
    impl->landscape = options.pattern == Pattern::land ? make_land(options.seed, options.endmembers)
                                                       : make_fields(options.seed, options.endmembers);
    impl->make_bands();
    impl->make_spectra();
    impl->place();
    impl->set_noise();
    m = std::move(impl);
}

MadeScene::~MadeScene() = default;

const Options& MadeScene::options() const { return m->o; }
stream::CubeShape MadeScene::shape() const { return {m->o.samples, m->o.lines, m->o.bands}; }
const std::vector<double>& MadeScene::wavelengths() const { return m->wavelengths; }
const std::vector<double>& MadeScene::fwhm() const { return m->fwhm; }
const std::vector<int>& MadeScene::bad_bands() const { return m->bad; }
const std::vector<double>& MadeScene::noise() const { return m->noise; }
const std::vector<Target>& MadeScene::targets() const { return m->targets; }

std::vector<int> MadeScene::default_bands() const {
    if (m->o.bands < 3) return {1};
    std::vector<int> bands;
    for (double want : {650.0, 550.0, 460.0}) {
        const auto& w = m->wavelengths;
        const auto at = std::min_element(
            w.begin(), w.end(), [&](double a, double b) { return std::abs(a - want) < std::abs(b - want); });
        bands.push_back(static_cast<int>(at - w.begin()) + 1);
    }
    return bands;
}

std::vector<std::string> MadeScene::names() const {
    std::vector<std::string> names;
    for (int k = 0; k < m->o.endmembers; ++k)
        names.emplace_back(material_name(k));
    return names;
}

std::vector<std::array<uint8_t, 4>> MadeScene::colours() const {
    std::vector<std::array<uint8_t, 4>> colours;
    for (int k = 0; k < m->o.endmembers; ++k)
        colours.push_back(material_colour(k));
    return colours;
}

std::vector<double> MadeScene::spectrum(int endmember) const {
    const auto first = m->reflectance.begin() + static_cast<ptrdiff_t>(endmember) * m->o.bands;
    return {first, first + m->o.bands};
}

std::vector<std::array<int64_t, 2>> MadeScene::nan_pixels() const {
    std::vector<std::array<int64_t, 2>> places;
    for (const Impl::Hole& h : m->holes)
        places.push_back({h.position / m->o.samples, h.position % m->o.samples});
    return places;
}

std::vector<float> MadeScene::abundances(int64_t line, int64_t sample) const {
    PixelRun scratch(m->o.endmembers);
    m->run(line, sample, 1, scratch);
    std::vector<float> a;
    for (const auto& row : scratch.abundance)
        a.push_back(row.v[0]);
    return a;
}

std::vector<Plot> MadeScene::plots(int count) const {
    constexpr int64_t side = 3, most_tries = 1000; // most_tries is the limit per plot
    const Options& o = m->o;
    std::vector<Plot> plots;
    std::unordered_set<int64_t> taken; // pixels of plots and their neighbours
    PixelRun scratch(o.endmembers);
    const uint64_t key = substream(o.seed, plots_stream);
    const int64_t columns = o.samples - side + 1, rows = o.lines - side + 1;
    if (columns < 1 || rows < 1) return plots;
    for (uint64_t t = 0; t < static_cast<uint64_t>(count * most_tries); ++t) {
        const auto position = static_cast<int64_t>(draw(key, t) % static_cast<uint64_t>(columns * rows));
        Plot plot{position / columns, position % columns, 0};
        bool good = true;
        for (int64_t line = plot.line; good && line < plot.line + side; ++line) {
            m->run(line, plot.sample, side, scratch);
            for (int64_t i = 0; i < side; ++i) {
                good = good && m->has_trait(scratch, static_cast<size_t>(i)) &&
                       taken.count(line * o.samples + plot.sample + i) == 0;
                plot.value += double{scratch.trait.v[i]} / (side * side);
            }
        }
        if (!good) continue;
        for (int64_t line = plot.line - 1; line <= plot.line + side; ++line)
            for (int64_t sample = plot.sample - 1; sample <= plot.sample + side; ++sample)
                taken.insert(line * o.samples + sample);
        plots.push_back(plot);
        if (plots.size() == static_cast<size_t>(count)) break;
    }
    return plots;
}

void MadeScene::paint(const Rect& window, const CubeView<float>& cube, const CubeView<float>& labels,
                      const CubeView<float>& trait) const {
    const Options& o = m->o;
    PixelRun scratch(o.endmembers);
    const int64_t stripe_end = o.stripe_first + o.stripe_width;
    for (int64_t line = window.y; line < window.bottom(); ++line) {
        for (int64_t x = window.x; x < window.right(); x += static_cast<int64_t>(run_pixels)) {
            const int64_t count = std::min(static_cast<int64_t>(run_pixels), window.right() - x);
            m->run(line, x, static_cast<size_t>(count), scratch);
            float* values = cube.data ? cube.row(0, line - window.y) + (x - window.x) : nullptr;
            float* classes = labels.data ? labels.row(0, line - window.y) + (x - window.x) : nullptr;
            float* content = trait.data ? trait.row(0, line - window.y) + (x - window.x) : nullptr;
            if (values) m->values(static_cast<size_t>(count), scratch, values, cube.band_stride);
            for (int64_t i = 0; (classes || content) && i < count; ++i) {
                size_t best = 0;
                for (size_t k = 1; k < scratch.abundance.size(); ++k)
                    if (scratch.abundance[k].v[i] > scratch.abundance[best].v[i]) best = k;
                if (classes) classes[i] = static_cast<float>(best + 1);
                if (content)
                    content[i] =
                        m->has_trait(scratch, static_cast<size_t>(i)) ? scratch.trait.v[i] : no_value;
            }

            const int64_t s0 = std::max(x, o.stripe_first), s1 = std::min(x + count, stripe_end);
            if (s0 < s1) {
                for (int b = 0; values && b < o.bands; ++b)
                    std::fill(values + b * cube.band_stride + (s0 - x),
                              values + b * cube.band_stride + (s1 - x), static_cast<float>(o.nodata));
                if (classes) std::fill(classes + (s0 - x), classes + (s1 - x), 0.0f);
                if (content) std::fill(content + (s0 - x), content + (s1 - x), no_value);
            }
            const int64_t begin = line * o.samples + x;
            auto h = std::lower_bound(m->holes.begin(), m->holes.end(), begin,
                                      [](const Impl::Hole& a, int64_t at) { return a.position < at; });
            for (; h != m->holes.end() && h->position < begin + count; ++h) {
                const int64_t i = h->position - begin;
                if (classes) classes[i] = 0;
                if (content) content[i] = no_value;
                for (int b = 0; values && b < o.bands; ++b)
                    if (h->band < 0 || h->band == b) values[b * cube.band_stride + i] = no_value;
            }
        }
    }
}

} // namespace hsi::synth
