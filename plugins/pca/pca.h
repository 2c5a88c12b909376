// SPDX-License-Identifier: MIT
// PCA, principal components of a scene.
//
// A. Accion, F. Arguello, D. B. Heras: Extended Anisotropic Diffusion Profiles in GPU for Hyperspectral
// Imagery, Algorithms 1 and 3: mean-centred bands, covariance, eigenvectors in order of falling variance. The
// sign of a loading vector is fixed so that its entry of greatest magnitude is positive.
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

/// Its costs, for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost covariance{2.3e-11, 8e-14}; ///< a pixel and pair of bands
inline constexpr Cost projection{1e-10, 3e-13};   ///< a value and a component
} // namespace cost

struct FitOptions {
    int components = 7;  ///< 1..bands
    bool scale = false;  ///< divide every band by its standard deviation first
    bool whiten = false; ///< divide every component by its standard deviation
    int threads = 1;     ///< no bit depends on them
};

/// The result of a fit, with everything that projects another scene in the same way. `mean` is always there,
/// over the valid pixels, by band. minimum and maximum cover pixels on a grid.
struct Model : model::ModelBands {
    std::string source; ///< the scene it was made from
    model::Origin origin;
    int64_t pixels = 0;        ///< its valid pixels
    std::vector<double> scale; ///< standard deviations that bands were divided by; empty: none
    bool whiten = false;
    std::vector<double> eigenvalues; ///< of all bands, falling: variances (divided by pixels - 1)
    int components = 0;
    std::vector<double> loadings; ///< components x bands, a row a component, orthonormal

    int band_count() const { return static_cast<int>(mean.size()); }
    const double* loading(int component) const {
        return loadings.data() + static_cast<size_t>(component) * mean.size();
    }
    /// Share of the whole variance in a component.
    double explained(int component) const;
    /// Components whose variance is more than rounding, of n pixels n - 1 at most: whitening the others would
    /// blow up noise of the arithmetic.
    int rank() const;
};

/// Solves the eigenproblem. Throws UsageError naming -nc when options.components is not in 1..bands, Error
/// when the scene has fewer than 2 valid pixels. The caller fills source, bands and wavelengths_nm.
Model fit(const stream::SceneStatistics& statistics, const FitOptions& options);

/// The same components for numbers that become the model's by `by`.
void rescale(Model& model, const model::Rescaling& by, const model::ValueScale& scene);

/// A readable JSON document; from_json(to_json(m)) gives the same numbers to the last bit. Throw Error naming
/// the file.
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

/// Scene to components (the first `components`); input band matched[b] of `inputs` is the model's band b.
Transform projection(const Model& model, int components, const std::vector<int>& matched, int inputs);
/// Components (the first `components`) back to the model's bands.
Transform reconstruction(const Model& model, int components);

/// The same for a few pixels, in double precision, for decisions of other algorithms. `transform` must
/// outlive it.
class BlockTransform {
  public:
    static constexpr int64_t pixels = 128;
    explicit BlockTransform(const Transform& transform);
    ~BlockTransform();
    /// Output o of pixel (line, sample + i) of `in`, i < count <= pixels, is at [o * pixels + i]: NaN where
    /// the pixel is invalid. Valid until the next call. Nothing depends on where a block begins.
    double* apply(const CubeView<float>& in, int64_t line, int64_t sample, int64_t count);
    static uint64_t bytes(const Transform& transform); ///< that it holds

  private:
    struct State;
    const Transform& m_transform;
    std::unique_ptr<State> m_state;
};

/// The operation of a transform: one output of transform.outputs bands; invalid pixels are NaN in the output.
std::unique_ptr<stream::Operation> make_transform(Transform transform);

/// Where the CPU backend's SIMD code was dispatched to.
const char* simd_target();

/// The passes of tools that project spectra (PCA, MNF), on the CPU or on devices (hsi_cuda_pca.so).
class Backend {
  public:
    virtual ~Backend() = default;
    /// Whether make_scan() makes this one. double_covariance is the same everywhere to the last bit; the
    /// others differ between the CPU and devices in theirs.
    virtual bool has_scan(stream::Statistics what) const = 0;
    /// For a scene of this shape: its means, its covariance or its differences. A device keeps the scene that
    /// the scan reads if it takes no more than half of `device_memory`.
    virtual std::unique_ptr<stream::StatisticsScan>
    make_scan(const stream::CubeShape& scene, stream::Statistics what, uint64_t device_memory) = 0;
    virtual std::unique_ptr<stream::Operation> make_transform(Transform transform) = 0;
    /// For a scene on the device: the least and the greatest value of the valid pixels among every step-th
    /// one, from `first` on, of every step-th line, by band. \return the count of these pixels; -1 if this is
    /// not a device.
    virtual int64_t find_extremes(const CubeView<float>& /*scene*/, int64_t /*first*/, int64_t /*step*/,
                                  float* /*low*/, float* /*high*/) {
        return -1;
    }
    /// Device bytes that are free, of the device that has least; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
    /// Device bytes of the scene that is kept; they count against the run's.
    virtual uint64_t held_bytes() const { return 0; }
    /// The scan is over and its scene on the device: a transform of as many inputs that is made from now on
    /// takes its pixels from there, and needs a source without bands (stream/empty_source.h).
    virtual bool holds_scene() const { return false; }
    /// The scene on the device is needed no more.
    virtual void release() {}
};

std::unique_ptr<Backend> make_cpu_backend();

} // namespace hsi::pca
