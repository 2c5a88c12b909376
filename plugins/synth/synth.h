// SPDX-License-Identifier: MIT
// A made hyperspectral scene with known truth: a landscape, shading, mixed pixels, noise.
//
// The scene is a pure function of (options, line, sample, band). Random numbers are hashes of coordinates,
// and the arithmetic uses additions, multiplications and square roots in a fixed order without fusing, so
// every tiling, thread count, file format and processor gives the same bits.
//
//   value(b, i, j) = scale * ( sum_k a_k(i,j) e_k(b) + sigma_b g(i,j,b) )
//
// With a trait t(i,j), a plant k has e_k(b) (1 - c_b t(i,j)) in the place of e_k(b).
//
// e_k: reflectance of material k; a_k >= 0: abundance times illumination, sum_k a_k <= 1; g: noise, mean 0,
// variance 1, nearly normal (bounded by 3.9); sigma_b so that 20 log10(rms_b / sigma_b) = snr in every band,
// rms_b over the scene. Planted targets have a_k = 1 for one material. No other pixel has an a_k over 0.97,
// so with one target a material the targets are the corners of the scene's simplex.
#pragma once

#include "core/cube_view.h"
#include "core/rect.h"
#include "stream/cube_source.h"
#include "stream/operation.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::synth {

inline constexpr int min_endmembers = 2;

/// The look of the ground.
enum class Pattern {
    land,  ///< strips of crops, woods, a river, roads, settlements, outcrops of rock, hills, shadows
    fields ///< polygons of any material, a river and a grid of roads, evenly lit
};

struct Options {
    int64_t samples = 0, lines = 0;
    int bands = 0;
    uint64_t seed = 1;
    Pattern pattern = Pattern::land;
    int endmembers = 8;     ///< min_endmembers..material_count()
    double snr = 40;        ///< dB, a band; infinity: no noise
    int64_t targets = 0;    ///< planted pure pixels; target t holds material t mod endmembers
    int64_t nan_pixels = 0; ///< every other one has NaN in all bands, the rest in one band
    int bad_bands = 0;      ///< bands nearest to 1400 and 1900 nm that hold noise alone
    int64_t stripe_first = 0, stripe_width = 0; ///< samples without values in every line
    double nodata = -9999;                      ///< value of the stripe
    double scale = 1;                           ///< 10000 for integers
    bool trait = false; ///< plants have a content of nitrogen, whose absorptions their spectra show
};

/// The range of nitrogen in plants (per cent).
inline constexpr double least_nitrogen = 0.8, most_nitrogen = 4.4;

/// 3 x 3 pixels of plants, with the mean of their trait.
struct Plot {
    int64_t line = 0, sample = 0; ///< of the upper left pixel
    double value = 0;
};

struct Target {
    int64_t line = 0, sample = 0;
    int endmember = 0;
};

class MadeScene {
  public:
    /// Throws UsageError naming the option that does not fit, as gdal_hsi_synth names it.
    explicit MadeScene(const Options& options);
    ~MadeScene();
    const Options& options() const;
    stream::CubeShape shape() const;

    const std::vector<double>& wavelengths() const; ///< nm, by band, 400..2500
    const std::vector<double>& fwhm() const;        ///< nm, by band
    std::vector<int> default_bands() const; ///< 1-based: nearest to 650, 550 and 460 nm; one band: that one
    const std::vector<int>& bad_bands() const;           ///< 0-based, ascending
    std::vector<std::string> names() const;              ///< of the endmembers
    std::vector<std::array<uint8_t, 4>> colours() const; ///< of the endmembers
    std::vector<double> spectrum(int endmember) const; ///< reflectance without scale, by band; bad bands too
    const std::vector<double>& noise() const;          ///< sigma_b in reflectance, by band
    const std::vector<Target>& targets() const;        ///< in the order of planting
    std::vector<std::array<int64_t, 2>> nan_pixels() const; ///< line, sample; ascending

    /// Abundance times illumination of every endmember at a pixel: the truth behind the values.
    std::vector<float> abundances(int64_t line, int64_t sample) const;

    /// With a trait: up to `count` plots that do not touch, where plants cover 90 % of each pixel.
    std::vector<Plot> plots(int count) const;

    /// Fills `window` (scene coordinates, inside the scene). cube: bands x window.h x window.w, or null data;
    /// labels: one band, the material of the greatest abundance + 1 (the first one when equal), 0 for missing
    /// pixels; or null data. trait: one band, NaN where plants cover less than 90 % of a pixel; or null data.
    /// Thread-safe.
    void paint(const Rect& window, const CubeView<float>& cube, const CubeView<float>& labels,
               const CubeView<float>& trait = {}) const;

  private:
    struct Impl;
    std::unique_ptr<const Impl> m;
};

/// The scene as a cube to read: nodata arrives as NaN. Feeds other rooms' tests and benchmarks without a
/// file.
class SceneSource final : public stream::CubeSource {
  public:
    explicit SceneSource(std::shared_ptr<const MadeScene> scene) : m_scene(std::move(scene)) {}
    stream::CubeShape shape() const override { return m_scene->shape(); }
    stream::BlockLayout layout() const override { return {}; }
    std::unique_ptr<stream::CubeReader> open_reader() const override;
    uint64_t stored_bytes_per_pixel() const override { return 0; }

  private:
    std::shared_ptr<const MadeScene> m_scene;
};

/// The source for the painter: the scene's size without bands, so no input buffer either.
class Canvas final : public stream::CubeSource {
  public:
    explicit Canvas(const stream::CubeShape& scene) : m_shape{scene.samples, scene.lines, 0} {}
    stream::CubeShape shape() const override { return m_shape; }
    stream::BlockLayout layout() const override { return {}; }
    std::unique_ptr<stream::CubeReader> open_reader() const override;
    uint64_t stored_bytes_per_pixel() const override { return 0; }

  private:
    stream::CubeShape m_shape;
};

/// Run over a Canvas: output 0 is the cube, then (when `labels`) the label band and (when `trait`) the trait.
std::unique_ptr<stream::Operation> make_painter(std::shared_ptr<const MadeScene> scene, bool labels,
                                                bool trait = false);

/// A line that a scanner flies over a landscape: the pixel (line i, sample j) sees the place
/// column = x + cosine (j + 1/2) + sine (i + 1/2), row = y - sine (j + 1/2) + cosine (i + 1/2) of it.
struct FlightLine {
    double x = 0, y = 0, cosine = 1, sine = 0;
    /// The landscape's reflectance times `light`, and `slope` more or less of that on the line's right and
    /// left side: the sun is seldom behind the scanner.
    double light = 1, slope = 0;
    /// With `hills`, terrain, view and sun count too: the landscape has hills of 25 degrees at most, the
    /// scanner looks 20 degrees to both sides, the sun is at these angles (degrees), and materials are
    /// brighter or darker by the kernels ross-thick and li-dense-r, plants more than others.
    bool hills = false;
    double sun_zenith = 40, sun_azimuth = 150;
};

/// Further outputs of a flight line, in this order.
struct LineOutputs {
    bool labels = false;
    bool geometry = false; ///< of `hills`: the 10 bands of an OBS file, see geometry_names
    bool flat = false;     ///< the landscape without terrain, at nadir, under a sun at 40 degrees; no noise
};
inline constexpr std::array<const char*, 10> geometry_names{"Path length (m)",
                                                            "To-sensor azimuth (degrees)",
                                                            "To-sensor zenith (degrees)",
                                                            "To-sun azimuth (degrees)",
                                                            "To-sun zenith (degrees)",
                                                            "Solar phase (degrees)",
                                                            "Slope (degrees)",
                                                            "Aspect (degrees)",
                                                            "Cosine(i)",
                                                            "UTC time (hours)"};

/// The same for a line over the landscape of `scene`, which has the line's size and continues outside of it.
/// A pixel is the landscape's at its place, without its noise, plus the line's own noise, with the deviations
/// of `scene`'s. \throws UsageError for targets, holes, a stripe or bad bands, which only scenes have.
std::unique_ptr<stream::Operation> make_line_painter(const MadeScene& scene, const FlightLine& line,
                                                     const LineOutputs& outputs);

/// Where the SIMD code was dispatched to ("AVX2", "AVX3", "SSE4" ...).
const char* simd_target();

} // namespace hsi::synth
