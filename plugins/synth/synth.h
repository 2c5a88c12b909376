// SPDX-License-Identifier: MIT
// A synthetic hyperspectral scene with known truth: a landscape, shading, mixed pixels, noise.
//
// The scene is a pure function of (options, line, sample, band). Random numbers are hashes of coordinates.
// The arithmetic consists of additions, multiplications and square roots in a fixed order, without fused
// operations. Therefore the scene is bitwise equal for every tiling, number of threads, file format and
// processor.
//
//   value(b, i, j) = scale * ( sum_k a_k(i,j) e_k(b) + sigma_b g(i,j,b) )
//
// With a trait t(i,j), e_k(b) of a plant k is replaced by e_k(b) (1 - c_b t(i,j)).
//
// e_k is the reflectance of material k. a_k >= 0 is abundance times illumination, with sum_k a_k <= 1. g is
// noise with mean 0 and variance 1, nearly normal (bounded by 3.9). sigma_b is chosen so that 20 log10(rms_b
// / sigma_b) = snr in every band, with rms_b over the scene. Planted targets have a_k = 1 for one material.
// In all other pixels, a_k is at most 0.97. With one target per material, the targets are therefore the
// corners of the scene's simplex.
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
    double snr = 40;        ///< dB in each band; infinity: no noise
    int64_t targets = 0;    ///< number of planted pure pixels; target t is material t mod endmembers
    int64_t nan_pixels = 0; ///< number of pixels with NaN: alternately in all bands and in one band
    int bad_bands = 0;      ///< number of bands that contain only noise; they are nearest to 1400 and 1900 nm
    int64_t stripe_first = 0, stripe_width = 0; ///< samples without values in every line
    double nodata = -9999;                      ///< value of the stripe
    double scale = 1;                           ///< factor of the reflectance, such as 10000 for integers
    bool trait = false; ///< true: plants contain nitrogen, whose absorptions are visible in their spectra
};

/// The range of nitrogen in plants, in per cent.
inline constexpr double least_nitrogen = 0.8, most_nitrogen = 4.4;

/// A plot of 3 x 3 pixels with plants. `value` is the mean of the trait over these pixels.
struct Plot {
    int64_t line = 0, sample = 0; ///< position of the upper left pixel
    double value = 0;
};

struct Target {
    int64_t line = 0, sample = 0;
    int endmember = 0;
};

class MadeScene {
  public:
    /// Throws a UsageError that names the invalid option of gdal_hsi_synth.
    explicit MadeScene(const Options& options);
    ~MadeScene();
    const Options& options() const;
    stream::CubeShape shape() const;

    /// Returns the wavelengths of the bands in nm, 400..2500.
    const std::vector<double>& wavelengths() const;
    /// Returns the FWHM of the bands in nm.
    const std::vector<double>& fwhm() const;
    /// Returns the bands (1-based) nearest to 650, 550 and 460 nm. If there is only one band, returns this
    /// band.
    std::vector<int> default_bands() const;
    /// Returns the indices of the bad bands (0-based, ascending).
    const std::vector<int>& bad_bands() const;
    /// Returns the names of the endmembers.
    std::vector<std::string> names() const;
    /// Returns the colours of the endmembers.
    std::vector<std::array<uint8_t, 4>> colours() const;
    /// Returns the unscaled reflectance of an endmember in each band, including bad bands.
    std::vector<double> spectrum(int endmember) const;
    /// Returns sigma_b in reflectance, one value per band.
    const std::vector<double>& noise() const;
    /// Returns the targets in the order of planting.
    const std::vector<Target>& targets() const;
    /// Returns the positions {line, sample} of pixels with NaN, in rising order.
    std::vector<std::array<int64_t, 2>> nan_pixels() const;

    /// Returns a_k of every endmember k at a pixel, the abundance times illumination from which the values
    /// are computed.
    std::vector<float> abundances(int64_t line, int64_t sample) const;

    /// Returns up to `count` plots that do not touch each other. Requires a trait. Plants cover at least 90 %
    /// of each pixel of a plot.
    std::vector<Plot> plots(int count) const;

    /// Fills `window` (scene coordinates, inside the scene). Thread-safe. Each view may have null data.
    /// - `cube` has bands x window.h x window.w values.
    /// - `labels` has one band with the index + 1 of the material of greatest abundance (of equal materials,
    /// the first), and 0 for missing pixels.
    /// - `trait` has one band, which is NaN if plants cover less than 90 % of a pixel.
    void paint(const Rect& window, const CubeView<float>& cube, const CubeView<float>& labels,
               const CubeView<float>& trait = {}) const;

  private:
    struct Impl;
    std::unique_ptr<const Impl> m;
};

/// The scene as a cube that can be read, with NaN as nodata. Tests and benchmarks use it instead of a file.
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

/// The source of passes with a painter. It has the size of the scene but no bands, so a pass needs no input
/// buffers.
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

/// Creates the operation that paints the scene over a Canvas. Output 0 is the cube. The label band follows if
/// `labels` is true, and the trait follows if `trait` is true.
std::unique_ptr<stream::Operation> make_painter(std::shared_ptr<const MadeScene> scene, bool labels,
                                                bool trait = false);

/// A flight line over a landscape. The pixel (line i, sample j) is at this position of the landscape: column
/// = x + cosine (j + 1/2) + sine (i + 1/2), row = y - sine (j + 1/2) + cosine (i + 1/2).
struct FlightLine {
    double x = 0, y = 0, cosine = 1, sine = 0;
    /// The landscape's reflectance is multiplied by `light`. From the centre of the line, the light rises by
    /// the fraction `slope` to the right edge and falls by it to the left edge, because the sun is rarely
    /// behind the scanner.
    double light = 1, slope = 0;
    /// If true, terrain, view and sun affect the values. The landscape has hills with slopes of at most 25
    /// degrees, and the scanner looks 20 degrees to both sides. The sun is at the angles below (degrees). The
    /// kernels ross-thick and li-dense-r change the brightness of materials, mostly of plants.
    bool hills = false;
    double sun_zenith = 40, sun_azimuth = 150;
};

/// The additional outputs of a flight line, in this order.
struct LineOutputs {
    bool labels = false;
    bool geometry = false; ///< with `hills`: the 10 bands of an OBS file, see geometry_names
    /// The landscape without terrain and noise, at nadir, with a solar zenith of 40 degrees.
    bool flat = false;
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

/// Creates the operation that paints a flight line over the landscape of `scene`. The flight line has the
/// size of the scene; the landscape also exists beyond the scene. A pixel has the landscape's value at its
/// position, plus noise, which differs between flight lines and has the standard deviations of `scene`.
/// \throws UsageError for targets, missing pixels, a stripe or bad bands, which only scenes support.
std::unique_ptr<stream::Operation> make_line_painter(const MadeScene& scene, const FlightLine& line,
                                                     const LineOutputs& outputs);

/// Returns the instruction set of the SIMD code ("AVX2", "AVX3", "SSE4" ...).
const char* simd_target();

} // namespace hsi::synth
