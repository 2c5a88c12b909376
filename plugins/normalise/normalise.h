// SPDX-License-Identifier: MIT
// Reflectance without the effects of terrain, view and sun. A pixel has the solar zenith ts and azimuth ps,
// the sensor zenith tv and azimuth pv, the slope b and the aspect A; w = pv - ps. Reflectance is multiplied
// by these factors:
//   cos i = cos(ts)cos(b) + sin(ts)sin(b)cos(ps-A)
//   cosine      cos(ts)/cos(i)          scs         cos(b)cos(ts)/cos(i)
//   minnaert    G cos(ts)/cos(i)        minnaert-g  G
//   c, scs+c    (m a + q)/(m cos(i) + q), a = cos(ts) or cos(b)cos(ts);
//               r = m cos(i) + q by least squares, m,q >= 0
//   G = (max(cos i, 0)/cos T)^e, 0.25 to 1, where cos i < cos T and T < 90
//   BRDF        r' = fv Kv + fg Kg + fi by least squares in each bin of NDVI; factor: model at nadir and at a
//               common solar zenith divided by the model at the pixel.
//
// P. M. Teillet et al.: On the slope-aspect correction of multispectral scanner data, Canadian Journal of
// Remote Sensing 8, 1982 (cosine, C); S. A. Soenen et al.: SCS+C, IEEE Trans. Geoscience and Remote Sensing
// 43(9), 2005; R. Richter et al.: Comparison of topographic correction methods, Remote Sensing 1, 2009 (G);
// W. Wanner et al.: On the derivation of kernels for kernel-driven models of bidirectional reflectance,
// Journal of Geophysical Research 100, 1995; A. Queally et al.: FlexBRDF, ibid. Biogeosciences 127, 2022
// (bins).
//
// NDVI = (n-s)/(n+s) is computed from the reflectances n (near infrared) and s (red) in double precision,
// without corrections. The cell of a pixel is ceil(100 NDVI). r, r', cos i and kernels enter the sums as
// Float32. All other values are in double precision. Blocks of pixels have a fixed position in the scene, and
// their sums are added without rounding. Results therefore do not depend on tiles, threads or ranks.
#pragma once

#include "core/view_angles.h"
#include "model/classes.h"
#include "stream/operation.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::normalise {

using view::Angle;
using view::AngleInput;
using view::AngleInputs;

// --- Methods
// ----------------------------------------------------------------------------------

enum class Topography { none, cosine, c, scs, scs_c, minnaert, minnaert_g };
enum class Brdf { none, universal, flex };
enum class Volume { ross_thick, ross_thin };
enum class Geometric { li_sparse, li_sparse_r, li_dense, li_dense_r };
const char* name_of(Topography v); ///< name on the command line
const char* name_of(Brdf v);
const char* name_of(Volume v);
const char* name_of(Geometric v);

/// The settings that all scenes of a model share.
struct Method {
    Topography topography = Topography::scs_c;
    Brdf brdf = Brdf::flex;
    Volume volume = Volume::ross_thick;
    Geometric geometric = Geometric::li_dense_r;
    double b_r = 2.5, h_b = 2; ///< b/r and h/b: relative shape and height of the crowns
    /// NDVI in hundredths; cells above ndvi_min and up to ndvi_max are in range.
    int ndvi_min = 5, ndvi_max = 100;
    double min_slope = 5;    ///< smallest slope of pixels for the topographic fit, in degrees
    double min_cos_i = 0.12; ///< smallest cos i of lit pixels
    bool fits_topography() const { return topography == Topography::c || topography == Topography::scs_c; }
    int cells() const { return ndvi_max - ndvi_min; }
    bool needs(Angle angle) const;
};

/// Returns the names of the options in which two methods differ, without "-".
std::vector<std::string> other_options(const Method& a, const Method& b);

/// The rules by which cells are combined into bins, and the solar zenith to which reflectance is normalised.
struct Binning {
    int bins = 18;
    /// Edges of the bins in hundredths of NDVI, rising, at least 2. If empty, they are chosen from the
    /// distribution of NDVI.
    std::vector<int> edges;
    int64_t min_pixels = 100;
    /// Common solar zenith in degrees; empty: the mean over all fitted pixels.
    std::optional<double> solar_zenith;
};

/// Returns the volume kernel and the geometric kernel for a solar zenith, a view zenith and a relative
/// azimuth. Angles are in radians.
std::array<double, 2> kernels(const Method& method, double sun, double view, double azimuth);

// --- Fitting
// ----------------------------------------------------------------------------------

/// The line r = slope * cos i + intercept of each band. If the lists are empty, terrain is not corrected.
struct Terrain {
    int64_t pixels = 0;
    std::vector<double> slope, intercept;
};

/// The count of fitted pixels in each cell of NDVI, and width() sums over these pixels: of Kv, Kg, Kv^2,
/// KvKg, Kg^2, solar zenith (degrees), and for each band of r', r'Kv, r'Kg, r'^2.
struct CellSums {
    static constexpr size_t shared = 6, per_band = 4;
    static size_t width(size_t bands) { return shared + per_band * bands; }
    std::vector<int64_t> count;            ///< one count per cell, from cell ndvi_min + 1 on
    std::vector<std::vector<double>> sums; ///< one list per cell; empty for a cell without pixels
    int64_t pixels() const;
};

struct Bin {
    int from = 0, to = 0; ///< NDVI in hundredths: the bin has the cells from + 1 to `to`
    int64_t pixels = 0;
    bool used = false;
    /// One value per band; empty unless the bin is used.
    std::vector<double> volume, geometric, isotropic, rmse;
    /// Centre of a HyTools bin, whose edges may be any numbers; empty for other bins.
    std::optional<double> middle;
    double centre() const { return middle.value_or(0.005 * (from + to)); }
};

/// Returns the edges of bins in rising order, from the counts of the cells. There is at least one bin. Does
/// not throw.
std::vector<int> bin_edges(const Method& method, const Binning& binning, const std::vector<int64_t>& count);

/// Combines the cells of all `scenes` into bins and fits the coefficients of each bin. Bin::used is false if
/// a bin has too few pixels, or if its kernels are constant or linearly dependent.
std::vector<Bin> fit_bins(const Method& method, const Binning& binning, size_t bands,
                          const std::vector<const CellSums*>& scenes);

/// The sums for a topographic fit, with c = cos i: the number of pixels, the sums of c and c^2, and for each
/// band the sums of r and r c.
struct TerrainSums {
    int64_t pixels = 0;
    double c = 0, cc = 0;
    std::vector<double> r, rc;
    double deviation() const; ///< Returns the standard deviation of cos i.
};
inline constexpr int64_t least_terrain_pixels = 100;
inline constexpr double least_deviation = 0.01;
/// Fits the line of each band. Returns a Terrain with empty lists if there are fewer than
/// least_terrain_pixels pixels, or if the standard deviation of cos i is below least_deviation.
Terrain fit_terrain(const TerrainSums& sums);

/// The inputs of a pass over a scene. The cube of the pass has the bands of the scene, then `planes` bands
/// with angles.
struct SceneTask {
    stream::CubeShape shape; ///< size of the scene without planes of angles
    int planes = 0;
    AngleInputs angles;
    std::vector<double> scale, offset; ///< r = stored * scale + offset; one value per band, or empty
    int near_infrared = 0, red = 0;    ///< indices of the NDVI bands (0-based)
    std::vector<char> below_720; ///< flag of each band: 1 if its wavelength is below 720 nm; used by minnaert
};

/// If no solar zenith of a scene is above this value, its angles may be in radians instead of degrees.
inline constexpr double radians_limit = 1.6;

/// The counts of pixels or values in a pass.
struct PixelCounts {
    int64_t valid = 0, invalid = 0;
    int64_t without_angles = 0; ///< valid pixels in which an angle is unknown or out of range
    int64_t fitted = 0;
    int64_t terrain = 0, brdf = 0; ///< corrected pixels
    int64_t without_model = 0;     ///< values at which the BRDF model is not above 0
    int64_t low_suns = 0;          ///< pixels whose solar zenith is above radians_limit
    void add(const PixelCounts& other);
};

/// A scan that computes the sums for a fit. Its results are complete after run_pass(). Tiles consist of whole
/// blocks.
class FitScan : public stream::Operation {
  public:
    virtual const PixelCounts& counts() const = 0;
    /// Returns a histogram of the slopes in steps of one degree, for computing their median. Pixels with an
    /// unknown slope are not counted.
    virtual const std::array<int64_t, 91>& slopes() const = 0;
    /// Returns the sums that a scan from make_terrain_scan() has computed.
    virtual TerrainSums terrain() const = 0;
    /// Returns the sums that a scan from make_brdf_scan() has computed.
    virtual CellSums cells() const = 0;
};
std::unique_ptr<FitScan> make_terrain_scan(const SceneTask& task, const Method& method);
/// Creates the scan for BRDF. It corrects terrain first, unless the lists of `terrain` are empty.
std::unique_ptr<FitScan> make_brdf_scan(const SceneTask& task, const Method& method, const Terrain& terrain);

// --- Correction
// ----------------------------------------------------------------------------------

/// The operation that corrects a scene. Its output has the bands of the scene, in stored values. Pixels that
/// are invalid, or in which a required angle is unknown, are NaN.
class Correction : public stream::Operation {
  public:
    const PixelCounts& counts() const { return m_counts; }

  protected:
    PixelCounts m_counts;
};
/// A condition for a correction: only pixels in which the quantity is between `least` and `most` are
/// corrected. Angles are in degrees.
struct Limit {
    enum Of { ndvi, slope, cos_i, solar_zenith } of;
    double least, most;
};
/// The parts that only HyTools' files have: coefficients of the C correction that apply to any scene, and
/// separate limits of both corrections. A pixel is corrected only if all limits of the correction hold.
struct OfHyTools {
    Terrain terrain;
    std::vector<Limit> topography, brdf;
};

/// Creates the correction. The limits of `hytools` replace the limits of `method`; `hytools` may be null.
std::unique_ptr<Correction> make_correction(const SceneTask& task, const Method& method,
                                            const Terrain& terrain, const std::vector<Bin>& bins,
                                            double solar_zenith, const OfHyTools* hytools = nullptr);

/// Returns an operation that writes angles as they are used by the corrections. Its output has a band for
/// each of `wanted`. Its cube has only the bands with angles.
std::unique_ptr<stream::Operation> make_angles(const AngleInputs& angles, const std::vector<Angle>& wanted);

// --- Models
// ----------------------------------------------------------------------------------

/// The size and georeferencing of the raster from which a scene is read. They describe the whole file, even
/// if only a window is used.
struct SceneGrid {
    int64_t samples = 0, lines = 0; ///< size in pixels; 0: unknown (older models)
    std::optional<std::array<double, 6>> geotransform;
    /// Returns false if the sizes differ, or if a corner is more than half a pixel away. Unknown values count
    /// as equal.
    bool same(const SceneGrid& other) const;
};
/// Returns the greatest distance between the corners of two grids of this size, in pixels of the first.
double pixels_apart(const std::array<double, 6>& first, const std::array<double, 6>& second, int64_t samples,
                    int64_t lines);

struct SceneRecord {
    std::string name; ///< file name without folder
    int64_t pixels = 0;
    Terrain terrain;
    CellSums sums;
    SceneGrid grid = {};
    /// Returns the brightness of the scene: for each band, the mean r' of the fitted pixels; of these means,
    /// the median over the bands. Returns an empty value without BRDF, or if the median is not above 0.
    std::optional<double> level() const;
};

struct Model : model::ModelBands {
    std::string created_by;
    Method method;
    Binning binning;
    double solar_zenith = 0; ///< common solar zenith in degrees
    std::vector<Bin> bins;
    std::vector<SceneRecord> scenes;  ///< sorted by name
    std::optional<OfHyTools> hytools; ///< set if the model comes from HyTools; such a model has no scenes

    const SceneRecord* find(const std::string& name) const;
    /// Adds a scene. \throws Error if the model already has a scene with this name.
    void add(SceneRecord scene);
    /// Adds all scenes of `other`, which was read from the file `name`. \throws Error if options differ,
    /// which the message names, if bands differ, or if a scene already exists. Options in `anew` ("bins",
    /// "min-pixels", "solar-zenith") may differ, since the caller sets them.
    void add(const Model& other, const std::string& name, const std::vector<std::string>& anew = {});
    /// Removes the scenes of `other`, which was read from the file `name`. \throws Error if the model lacks
    /// one of these scenes.
    void remove(const Model& other, const std::string& name);
    /// Computes bins and the solar zenith from the scenes. \throws Error if no bin can be used. The message
    /// states `without_angles`, the number of valid pixels without angles. Also throws if the scenes have too
    /// many pixels, or sums that no pixels have.
    void fit(int64_t without_angles = 0);
    /// Reorders the coefficients of all bins and scenes: those of band k move to index `places[k]`. The sums
    /// are not reordered, so the model can then only be used for corrections.
    void order_bands(const std::vector<int>& places);
};

/// Returns a JSON document with a checksum. The same scenes give the same bytes.
std::string to_json(const Model& model);
/// Reads a model. \throws Error that names the file.
Model from_json(const std::string& text, const std::string& name);
bool is_of_hytools(const std::string& text);
/// Adds HyTools' coefficients of topography or BRDF from `text`, the content of the file `name`, to `model`.
/// The file counts bands from 0. `bands` has the numbers of the scene's bands, counted from 1, in a raster of
/// `in_file` bands. Bands without coefficients are not corrected. \throws Error, which names the file, if it
/// is invalid, or if the model already has these coefficients.
void add_hytools(const std::string& text, const std::string& name, const std::vector<int>& bands, int in_file,
                 Model& model);

} // namespace hsi::normalise
