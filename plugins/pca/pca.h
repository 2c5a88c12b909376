// SPDX-License-Identifier: MIT
// PCA, the principal components of a scene.
//
// A. Accion, F. Arguello, D. B. Heras: Extended Anisotropic Diffusion Profiles in GPU for Hyperspectral
// Imagery, Algorithms 1 and 3: mean-centred bands, covariance, eigenvectors in order of falling variance. The
// sign of a loading vector makes its entry of greatest magnitude positive.
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
inline constexpr Cost covariance{2.3e-11, 8e-14}; ///< per pixel and pair of bands
inline constexpr Cost projection{1e-10, 3e-13};   ///< per value and component
} // namespace cost

struct FitOptions {
    int components = 7;  ///< 1..bands
    bool scale = false;  ///< divide every band by its standard deviation first
    bool whiten = false; ///< divide every component by its standard deviation
    int threads = 1;     ///< does not change any bit
};

/// The result of a fit, with all data to project another scene in the same way. `mean` is always set, over
/// the valid pixels, by band. minimum and maximum cover pixels on a grid.
struct Model : model::ModelBands {
    std::string source; ///< the scene it was made from
    model::Origin origin;
    int64_t pixels = 0;        ///< its valid pixels
    std::vector<double> scale; ///< standard deviations by which bands were divided; empty: not divided
    bool whiten = false;
    std::vector<double> eigenvalues; ///< of all bands, falling: variances (divided by pixels - 1)
    int components = 0;
    std::vector<double> loadings; ///< components x bands, one row per component, orthonormal

    int band_count() const { return static_cast<int>(mean.size()); }
    const double* loading(int component) const {
        return loadings.data() + static_cast<size_t>(component) * mean.size();
    }
    /// Returns the fraction of the whole variance in a component.
    double explained(int component) const;
    /// Returns the number of components whose variance is more than rounding, at most n - 1 for n pixels.
    /// Whitening the others would amplify rounding noise.
    int rank() const;
};

/// Solves the eigenproblem. Throws UsageError that names -nc if options.components is not in 1..bands, and
/// Error if the scene has fewer than 2 valid pixels. The caller fills source, bands and wavelengths_nm.
Model fit(const stream::SceneStatistics& statistics, const FitOptions& options);

/// Changes the model to take values in the scale `scene`. `by` converts such values to those that the model
/// was made from; the components stay the same.
void rescale(Model& model, const model::Rescaling& by, const model::ValueScale& scene);

/// Return a readable JSON document, and the model from it; from_json(to_json(m)) gives the same numbers to
/// the last bit. Throw Error that names the file.
std::string to_json(const Model& model);
Model load_model(const std::string& path);
Model from_json(const std::string& text, const std::string& name);

/// An affine map of spectra, y = matrix x + offset, pixel by pixel, in double precision.
struct Transform {
    int inputs = 0, outputs = 0;
    std::vector<double> matrix;  ///< outputs x inputs
    std::vector<double> offset;  ///< outputs
    bool zero_is_invalid = true; ///< a spectrum of zeros is missing (in scenes; not in components)
};

/// Returns the transform from a scene to the first `components` components; input band matched[b] of `inputs`
/// is the model's band b.
Transform projection(const Model& model, int components, const std::vector<int>& matched, int inputs);
/// Returns the transform from the first `components` components back to the model's bands.
Transform reconstruction(const Model& model, int components);

/// Transforms a few pixels in double precision, for decisions of other algorithms. `transform` must outlive
/// it.
class BlockTransform {
  public:
    static constexpr int64_t pixels = 128;
    explicit BlockTransform(const Transform& transform);
    ~BlockTransform();
    /// Transforms pixels (line, sample + i) of `in`, i < count <= pixels. Output o of pixel i is at [o *
    /// pixels + i], NaN if the pixel is invalid. The result is valid until the next call, and does not depend
    /// on where a block begins.
    double* apply(const CubeView<float>& in, int64_t line, int64_t sample, int64_t count);
    static uint64_t bytes(const Transform& transform); ///< bytes of its memory

  private:
    struct State;
    const Transform& m_transform;
    std::unique_ptr<State> m_state;
};

/// Returns the operation of a transform: one output of transform.outputs bands; invalid pixels are NaN in the
/// output.
std::unique_ptr<stream::Operation> make_transform(Transform transform);

/// Returns the instruction set of the CPU backend's SIMD code.
const char* simd_target();

/// The passes of tools that project spectra (PCA, MNF), on the CPU or on devices (hsi_cuda_pca.so).
class Backend {
  public:
    virtual ~Backend() = default;
    /// Returns whether make_scan() supports these statistics. double_covariance is the same everywhere to the
    /// last bit; the others differ between the CPU and devices in the last bits.
    virtual bool has_scan(stream::Statistics what) const = 0;
    /// Returns a scan of a scene of this shape for its means, its covariance or its differences. A device
    /// keeps the scene that the scan reads if it takes at most half of `device_memory`.
    virtual std::unique_ptr<stream::StatisticsScan>
    make_scan(const stream::CubeShape& scene, stream::Statistics what, uint64_t device_memory) = 0;
    virtual std::unique_ptr<stream::Operation> make_transform(Transform transform) = 0;
    /// Finds, for a scene on the device, the minimum and the maximum by band of the valid pixels among every
    /// step-th pixel, from `first` on, of every step-th line. \return the number of these pixels; -1 if this
    /// is not a device.
    virtual int64_t find_extremes(const CubeView<float>& /*scene*/, int64_t /*first*/, int64_t /*step*/,
                                  float* /*low*/, float* /*high*/) {
        return -1;
    }
    /// Returns the free bytes of the device with the least free memory; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
    /// Returns the device bytes of the kept scene, which count against the run's.
    virtual uint64_t held_bytes() const { return 0; }
    /// Returns true if the scan is over and its scene is on the device. A transform with as many inputs that
    /// is created afterwards takes its pixels from there, and needs a source without bands
    /// (stream/empty_source.h).
    virtual bool holds_scene() const { return false; }
    /// Frees the scene on the device.
    virtual void release() {}
};

std::unique_ptr<Backend> make_cpu_backend();

} // namespace hsi::pca
