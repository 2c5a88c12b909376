// SPDX-License-Identifier: MIT
// A synthetic hyperspectral scene with known truth: a landscape, shading, mixed pixels, noise.
//
// The scene is a pure function of (options, line, sample, band). Random numbers are hashes of coordinates,
// and the arithmetic uses additions, multiplications and square roots in a fixed order without fusing, so
// every tiling, number of threads, file format and processor gives the same bits.
//
//   value(b, i, j) = scale * ( sum_k a_k(i,j) e_k(b) + sigma_b g(i,j,b) )
//
// With a trait t(i,j), e_k(b) of a plant k is replaced by e_k(b) (1 - c_b t(i,j)).
//
// e_k: reflectance of material k; a_k >= 0: abundance times illumination, sum_k a_k <= 1; g: noise, mean 0,
// variance 1, nearly normal (bounded by 3.9); sigma_b: 20 log10(rms_b / sigma_b) = snr in every band, rms_b
// over the scene. Planted targets have a_k = 1 for one material. In all other pixels a_k is at most 0.97, so
// with one target per material the targets are the corners of the scene's simplex.
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

/// The appearance of the ground.
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
    double snr = 40;        ///< dB, per band; infinity: no noise
    int64_t targets = 0;    ///< planted pure pixels; target t is material t mod endmembers
    int64_t nan_pixels = 0; ///< every other one has NaN in all bands, the others in one band
    int bad_bands = 0;      ///< bands nearest to 1400 and 1900 nm that contain only noise
    int64_t stripe_first = 0, stripe_width = 0; ///< samples without values in every line
    double nodata = -9999;                      ///< value of the stripe
    double scale = 1;                           ///< 10000 for integers
    bool trait = false; ///< plants contain nitrogen, whose absorptions their spectra show
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
    /// Throws UsageError that names the invalid option, as gdal_hsi_synth names it.
    explicit MadeScene(const Options& options);
    ~MadeScene();
    const Options& options() const;
    stream::CubeShape shape() const;

    const std::vector<double>& wavelengths() const; ///< nm, by band, 400..2500
    const std::vector<double>& fwhm() const;        ///< nm, by band
    std::vector<int> default_bands() const; ///< 1-based: nearest to 650, 550 and 460 nm; for one band: that
                                            ///< band
    const std::vector<int>& bad_bands() const;           ///< 0-based, ascending
    std::vector<std::string> names() const;              ///< of the endmembers
    std::vector<std::array<uint8_t, 4>> colours() const; ///< of the endmembers
    std::vector<double> spectrum(int endmember) const; ///< reflectance without scale, by band, including bad
                                                       ///< bands
    const std::vector<double>& noise() const;          ///< sigma_b in reflectance, by band
    const std::vector<Target>& targets() const;        ///< in the order of planting
    std::vector<std::array<int64_t, 2>> nan_pixels() const; ///< line, sample; ascending

    /// Returns the abundance times illumination of every endmember at a pixel: the truth behind the values.
    std::vector<float> abundances(int64_t line, int64_t sample) const;

    /// Returns, with a trait, up to `count` plots that do not touch and in which plants cover 90 % of each
    /// pixel.
    std::vector<Plot> plots(int count) const;

    /// Fills `window` (scene coordinates, inside the scene). cube: bands x window.h x window.w, or null data.
    /// labels: one band, the material of the greatest abundance + 1 (the first one if equal), 0 for missing
    /// pixels; or null data. trait: one band, NaN if plants cover less than 90 % of a pixel; or null data.
    /// Thread-safe.
    void paint(const Rect& window, const CubeView<float>& cube, const CubeView<float>& labels,
               const CubeView<float>& trait = {}) const;

  private:
    struct Impl;
    std::unique_ptr<const Impl> m;
};

/// The scene as a cube to read, with NaN as nodata. Tests and benchmarks use it instead of a
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

/// The source for the painter: the scene's size without bands, so it needs no input buffer.
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

/// Creates the operation over a Canvas: output 0 is the cube, then (if `labels`) the label band and (if
/// `trait`) the trait.
std::unique_ptr<stream::Operation> make_painter(std::shared_ptr<const MadeScene> scene, bool labels,
                                                bool trait = false);

/// A flight line over a landscape. Pixel (line i, sample j) is at column = x + cosine (j + 1/2) + sine (i +
/// 1/2), row = y - sine (j + 1/2) + cosine (i + 1/2) of the landscape.
struct FlightLine {
    double x = 0, y = 0, cosine = 1, sine = 0;
    /// The landscape's reflectance times `light`, plus or minus the fraction `slope` on the line's right and
    /// left side, because the sun is rarely behind the scanner.
    double light = 1, slope = 0;
    /// With `hills`, terrain, view and sun also matter. The landscape has hills of at most 25 degrees, the
    /// scanner looks 20 degrees to both sides, the sun is at these angles (degrees), and materials are
    /// brighter or darker by the kernels ross-thick and li-dense-r, plants more than others.
    bool hills = false;
    double sun_zenith = 40, sun_azimuth = 150;
};

/// Further outputs of a flight line, in this order.
struct LineOutputs {
    bool labels = false;
    bool geometry = false; ///< with `hills`: the 10 bands of an OBS file, see geometry_names
    bool flat = false;     ///< the landscape without terrain, at nadir, with a sun zenith of 40 degrees; no
                           ///< noise
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

/// Creates the operation for a flight line over the landscape of `scene`, which has the line's size and
/// continues outside of it. A pixel is the landscape's value at its position without noise, plus the line's
/// own noise, with the standard deviations of `scene`'s. \throws UsageError for targets, missing pixels, a
/// stripe or bad bands, which only scenes support.
std::unique_ptr<stream::Operation> make_line_painter(const MadeScene& scene, const FlightLine& line,
                                                     const LineOutputs& outputs);

/// Returns the instruction set of the SIMD code ("AVX2", "AVX3", "SSE4" ...).
const char* simd_target();

} // namespace hsi::synth
