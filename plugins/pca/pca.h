// SPDX-License-Identifier: MIT
// PCA, the principal components of a scene.
//
// A. Accion, F. Arguello, D. B. Heras: Extended Anisotropic Diffusion Profiles in GPU for Hyperspectral
// Imagery, Algorithms 1 and 3: mean-centred bands, covariance, and eigenvectors in order of falling variance.
// The sign of a loading vector is chosen so that its entry of greatest magnitude is positive.
#pragma once

#include "core/cost.h"
#include "core/cuda_module.h"
#include "model/classes.h"
#include "stream/operation.h"
#include "stream/statistics_scan.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::pca {

/// Costs for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost covariance{2.3e-11, 8e-14}; ///< seconds per pixel and pair of bands
inline constexpr Cost projection{1e-10, 3e-13};   ///< seconds per value and component
} // namespace cost

struct FitOptions {
    int components = 7;  ///< number of components, 1..bands
    bool scale = false;  ///< divide every band by its standard deviation first
    bool whiten = false; ///< divide every component by its standard deviation
    int threads = 1;     ///< number of threads; does not affect the result
};

/// The result of a fit, with all data that are needed to project another scene in the same way. `mean` is
/// always set, with one value per band, over the valid pixels. `minimum` and `maximum` are those of pixels on
/// a grid.
struct Model : model::ModelBands {
    std::string source; ///< name of the scene from which the model was made
    model::Origin origin;
    int64_t pixels = 0;        ///< number of valid pixels in the scene
    std::vector<double> scale; ///< standard deviations by which bands were divided; empty: not divided
    bool whiten = false;
    std::vector<double> eigenvalues; ///< variances (divided by pixels - 1) of all components, falling
    int components = 0;
    std::vector<double> loadings; ///< components x bands, one row per component, orthonormal

    int band_count() const { return static_cast<int>(mean.size()); }
    const double* loading(int component) const {
        return loadings.data() + static_cast<size_t>(component) * mean.size();
    }
    /// Returns the fraction of the total variance in a component.
    double explained(int component) const;
    /// Returns the number of components whose variance exceeds rounding errors, at most n - 1 for n pixels.
    /// Whitening further components would amplify rounding errors.
    int rank() const;
};

/// Computes the components from the statistics of a scene. The caller sets source, bands and wavelengths_nm
/// of the model. Throws a UsageError that names -nc if options.components is not in 1..bands, and an Error if
/// the scene has fewer than 2 valid pixels.
Model fit(const stream::SceneStatistics& statistics, const FitOptions& options);

/// Changes the model so that it accepts values in the scale `scene`. `by` converts such values to the scale
/// from which the model was made. The components stay the same.
void rescale(Model& model, const model::Rescaling& by, const model::ValueScale& scene);

/// Convert a model to a readable JSON document and back; from_json(to_json(m)) restores all numbers exactly.
/// \throws Error, which names the file, if the file cannot be read or is not such a document.
std::string to_json(const Model& model);
Model load_model(const std::string& path);
Model from_json(const std::string& text, const std::string& name);

/// An affine map of spectra, y = matrix x + offset, pixel by pixel, in double precision.
struct Transform {
    int inputs = 0, outputs = 0;
    std::vector<double> matrix;  ///< outputs x inputs
    std::vector<double> offset;  ///< outputs
    bool zero_is_invalid = true; ///< true: a spectrum of zeros is missing, as in scenes; false for components
};

/// Returns the transform from a scene to the first `components` components. Band matched[b] of the `inputs`
/// bands is the model's band b.
Transform projection(const Model& model, int components, const std::vector<int>& matched, int inputs);
/// Returns the transform from the first `components` components back to the model's bands.
Transform reconstruction(const Model& model, int components);

/// Transforms blocks of a few pixels, and keeps the results in double precision for the decisions of other
/// algorithms. `transform` must outlive the object.
class BlockTransform {
  public:
    static constexpr int64_t pixels = 128;
    explicit BlockTransform(const Transform& transform);
    ~BlockTransform();
    /// Transforms pixels (line, sample + i) of `in`, i < count <= pixels. Output o of pixel i is at [o *
    /// pixels + i], and is NaN if the pixel is invalid. The result is valid until the next call. It does not
    /// depend on where a block starts.
    double* apply(const CubeView<float>& in, int64_t line, int64_t sample, int64_t count);
    /// Returns the bytes of memory of an object.
    static uint64_t bytes(const Transform& transform);

  private:
    struct State;
    const Transform& m_transform;
    std::unique_ptr<State> m_state;
};

/// Returns the operation of a transform, with one output of transform.outputs bands. Invalid pixels are NaN
/// in the output.
std::unique_ptr<stream::Operation> make_transform(Transform transform);

/// Returns the instruction set of the CPU backend's SIMD code.
const char* simd_target();

/// The passes of tools that project spectra (PCA, MNF), on the CPU or on devices (hsi_cuda_pca.so).
class Backend {
  public:
    virtual ~Backend() = default;
    /// Returns true if make_scan() supports these statistics. The scan of double_covariance has bitwise equal
    /// results on all backends. Results of the others may differ in the last bits between the CPU and
    /// devices.
    virtual bool has_scan(stream::Statistics what) const = 0;
    /// Returns a scan that computes the statistics `what` of a scene of this shape. A device keeps the scene
    /// after the scan if the scene takes at most half of `device_memory`.
    virtual std::unique_ptr<stream::StatisticsScan>
    make_scan(const stream::CubeShape& scene, stream::Statistics what, uint64_t device_memory) = 0;
    virtual std::unique_ptr<stream::Operation> make_transform(Transform transform) = 0;
    /// Finds the minimum and the maximum by band in a scene on the device. The pixels are the valid pixels on
    /// a grid: every step-th pixel, from `first` on, of every step-th line. \return the number of these
    /// pixels; -1 if the backend is not a device.
    virtual int64_t find_extremes(const CubeView<float>& /*scene*/, int64_t /*first*/, int64_t /*step*/,
                                  float* /*low*/, float* /*high*/) {
        return -1;
    }
    /// Returns the free bytes of the device with the least free memory; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
    /// Returns the device bytes of the kept scene, which count as used memory of the run.
    virtual uint64_t held_bytes() const { return 0; }
    /// Returns true if the scan has ended and the device has kept its scene. A transform that is then created
    /// for this number of inputs reads its pixels from the device. The pass of this transform needs a source
    /// without bands (stream/empty_source.h).
    virtual bool holds_scene() const { return false; }
    /// Frees the scene on the device.
    virtual void release() {}
};

std::unique_ptr<Backend> make_cpu_backend();

} // namespace hsi::pca
