// SPDX-License-Identifier: MIT
// Regression of a continuous variable on spectra: models, and their results for a pixel.
//
// PLSR: I. S. Helland, On the structure of partial least squares regression, Communications in Statistics
// 17(2), 1988. Gaussian process: C. E. Rasmussen, C. K. I. Williams, Gaussian Processes for Machine Learning,
// MIT Press 2006. SVR: epsilon-SVR of LIBSVM (C.-C. Chang, C.-J. Lin, ACM TIST 2(3), 2011).
//
// A model takes scaled values (stored value * scale + offset) and transforms them. It returns an estimate,
// its standard deviation, and whether the spectrum is outside the range of the training data. All values are
// computed in double precision, pixel by pixel, so results do not depend on tiles, threads or ranks. Results
// of devices differ from the CPU's by rounding errors.
#pragma once

#include "core/cost.h"
#include "core/host_device.h"
#include "core/json.h"
#include "math/resampling.h"
#include "math/row_products.h"
#include "model/classes.h"
#include "smooth/smooth.h"
#include "stream/operation.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::regression {

/// Costs for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost product{6e-11, 2e-13}; ///< seconds per pixel, row of weights, and entry of the row
} // namespace cost

enum class Method { plsr, ridge, gp, svr };
inline constexpr std::pair<const char*, Method> method_names[] = {
    {"plsr", Method::plsr}, {"ridge", Method::ridge}, {"gp", Method::gp}, {"svr", Method::svr}};
const char* name_of(Method method);

struct Step {
    enum class Kind {
        snv,         ///< (x - mean)/sd, with n - 1 in the standard deviation
        vector,      ///< x/|x|
        mean,        ///< x/mean(x)
        log,         ///< ln(1/x)
        derivative1, ///< derivative per nm of the least-squares parabola through `window` bands
        derivative2,
    };
    Kind kind = Kind::snv;
    int window = 0; ///< window of derivatives in bands: odd, 3 to 99
};
/// Parses a step such as "snv" or "d1:7". \throws UsageError that names `role` if the word is not a step.
Step parse_step(const std::string& word, const std::string& role);
std::string text_of(const Step& step);

/// Transformation steps in order, for the bands of a model.
class Transform {
  public:
    Transform() = default;
    /// Creates the transform. \throws Error for more than 16 steps, for a derivative without wavelengths, and
    /// if no run of bands is as long as a step's window.
    Transform(std::vector<Step> steps, const std::vector<double>& wavelengths_nm, size_t bands);
    const std::vector<Step>& steps() const { return m_steps; }
    bool has_derivatives() const;
    size_t inputs() const { return m_inputs; }
    /// Returns the number of output bands. Derivatives omit bands in runs that are shorter than the window.
    size_t outputs() const { return m_outputs; }
    /// Returns the weighted sums of bands that a step computes; empty if the step is not a derivative.
    const std::vector<math::ResampledBand>& rows_of(size_t step) const { return m_made[step].rows; }
    /// Transforms values ([band][pixels]) in place. Each pixel is transformed separately. There are at most
    /// smooth::Transformer::most_pixels pixels. `spare` is scratch memory.
    void apply(std::vector<double>& values, size_t pixels, std::vector<double>& spare) const;

  private:
    std::vector<Step> m_steps;
    struct Made {
        bool log;
        smooth::Transformer plain;
        std::vector<math::ResampledBand> rows; ///< weighted sums of a derivative; otherwise empty
    };
    std::vector<Made> m_made;
    size_t m_inputs = 0, m_outputs = 0;
};

/// The standardisation of bands, (x - centre) / spread. The lists have one value per band.
struct Standard {
    std::vector<double> centre, spread;
};

/// The domain of the training spectra, described by the principal components of all labelled pixels. A
/// spectrum is outside if its distance T2 (in the components) or Q (from the components) exceeds a limit.
struct Domain {
    Standard standard;              ///< standardisation of the transformed bands
    std::vector<double> components; ///< [component][band], unit vectors
    std::vector<double> variances;  ///< variance of each component
    double t2_limit = 0, q_limit = 0;
};

/// A linear model, whose estimate is the mean over its members. The coefficients apply to transformed bands
/// that are not standardised.
struct Linear {
    int components = 0;               ///< number of components of plsr
    double lambda = 0;                ///< regularisation t of ridge
    std::vector<double> coefficients; ///< [member][band]
    std::vector<double> intercepts;
};

/// A model of weighted training samples: a Gaussian process with the kernel exp(-d^2 / (2 length^2)), or a
/// support vector machine with the kernel exp(-gamma d^2).
struct Kernel {
    Standard standard; ///< standardisation of the bands; svr: minimum and range
    double value_mean = 0, value_spread = 1;
    std::vector<double> samples; ///< [sample][band], standardised; for svr, rounded to single precision
    std::vector<double> weights;
    double length = 1, noise = 1, variance = 1;      ///< parameters of gp
    double c = 1, gamma = 1, epsilon = 0.1, rho = 0; ///< parameters of svr
};

struct Metrics {
    int64_t n = 0;
    double r2 = 0, rmse = 0, nrmse_percent = 0, bias = 0, rpd = 0; ///< NaN if undefined
};
/// The names of the metrics in model files and reports.
inline constexpr std::pair<const char*, double Metrics::*> metric_names[] = {
    {"r2", &Metrics::r2},
    {"rmse", &Metrics::rmse},
    {"nrmse_percent", &Metrics::nrmse_percent},
    {"bias", &Metrics::bias},
    {"rpd", &Metrics::rpd}};
/// Returns the metrics of estimates compared with known values.
Metrics metrics_of(const std::vector<double>& values, const std::vector<double>& estimates);

struct Model : model::ModelBands {
    std::vector<double> fwhm_nm; ///< FWHM of the bands, in the order of wavelengths_nm
    Method method = Method::plsr;
    std::string name, unit; ///< name and unit of the variable
    double lowest = 0, highest = 0;
    Transform transform;
    std::optional<Domain> domain; ///< empty for models of other programs
    Linear linear;
    Kernel kernel;
    // Information about the training
    int64_t samples = 0, groups = 0;
    int folds = 0;
    uint64_t seed = 1;
    std::string trained_on, labels; ///< file names, for information only
    std::optional<Metrics> metrics; ///< metrics of the held-out samples
    model::Origin origin;

    bool is_linear() const { return method == Method::plsr || method == Method::ridge; }
    size_t members() const { return linear.intercepts.size(); }
    bool has_deviation() const { return method == Method::gp || members() > 1; }
};

/// Returns the model file as JSON. Numbers are restored exactly when the file is read.
std::string to_json(const Model& model);
Json to_json(const Metrics& metrics);
/// Reads a model, or a trait model of HyTools. Any text is safe to read. `name` is used in messages. Throws
/// Error that describes the problem.
Model from_json(const std::string& text, const std::string& name);
/// Returns a HyTools trait model from a linear model that uses only the steps vector, mean and log.
std::string to_hytools(const Model& model);

/// Returns true if magnitudes up to `greatest` are more than twenty times as large or as small as magnitudes
/// up to `known` (0: unknown), so that they probably have another scale. Reflectance in per cent is 100 times
/// as large, and integers are typically 10000 times as large.
HSI_HOST_DEVICE inline bool is_of_another_scale(double greatest, double known) {
    constexpr double far = 20;
    return known > 0 && (greatest > far * known || greatest * far < known);
}

/// Returns true if a spectrum with the distances `t2` and `q` exceeds a limit of the domain by more than 1e-6
/// (relative). `squares` is |z|^2 of the standardised spectrum. If the components represent the whole
/// spectrum, rounding errors of |z|^2 remain in Q; the test allows for them.
HSI_HOST_DEVICE inline bool is_unlike(double t2, double q, double squares, double t2_limit, double q_limit) {
    constexpr double over_limit = 1 + 1e-6, rounding = 1e-12;
    return t2 > t2_limit * over_limit || q > q_limit * over_limit + rounding * squares;
}

/// A model in the form that is evaluated, on the CPU or on a device.
class Fitted {
  public:
    /// \throws Error if the matrix of a Gaussian process is not positive definite.
    explicit Fitted(std::shared_ptr<const Model> model);
    const Model& model() const { return *m_model; }

    /// The numbers of a model in the form that is evaluated. The transformed bands x are standardised as z =
    /// (x - centre) * factor.
    struct Weights {
        std::vector<double> centre, factor; ///< for the domain and linear models
        math::RowPanels rows;   ///< rows for z: the components of the domain, then the mean of the members
        std::vector<double> t2; ///< weights of the squared components in T2
        double mean_offset = 0;
        /// Rows with which deviations are computed, as sums of (row v + offset)^2. For linear models, v is z,
        /// and the result is the sum of squares of the members about their mean. For a Gaussian process, v
        /// has the kernel values k and the rows are L^-1, where L L' = M = K + q I. The result is k'M^-1 k.
        math::RowPanels spread;
        std::vector<double> spread_offsets;
        std::vector<double> kernel_factor; ///< factors of the kernel's own standardisation
        math::RowPanels samples;
        std::vector<double> squares; ///< |s|^2 of each sample
        double greatest = 0;         ///< greatest magnitude of the training values; 0: unknown
    };
    const Weights& weights() const { return m_weights; }

    static size_t width() { return static_cast<size_t>(math::row_kernels().width); }
    struct Buffers {
        std::vector<double> x, spare, standard, results, rows, squares, t2, q, estimate, deviation, outside;
        std::vector<char> defined;
    };
    /// Evaluates the model for width() pixels. buffers.x is [band][width()], with scaled values of the
    /// model's bands. Sets four values per pixel: `estimate`; `deviation`, NaN if unknown; `outside`, the sum
    /// of 2 if the spectrum is outside the domain and 1 if the estimate is outside the range of the training
    /// values; and `defined`, 1 if the transformed values are finite.
    void evaluate(Buffers& buffers) const;
    /// Evaluates any number of spectra, [row][band], in blocks. After each block, calls use(buffers, i) for
    /// each of its spectra in order, where i is the spectrum's index in the buffers.
    template <class Use>
    void evaluate_rows(const std::vector<double>& x, const Use& use) const;
    /// Returns true if a spectrum with this greatest magnitude has another scale than the training data.
    bool is_of_another_scale(double greatest) const {
        return regression::is_of_another_scale(greatest, m_weights.greatest);
    }
    uint64_t buffer_bytes() const;

  private:
    /// Computes `defined`, and the distances `t2` and `q` from the model's domain, for the transformed pixels
    /// in buffers.x.
    void distances(Buffers& buffers) const;
    /// Computes buffers.squares, the sums of squares that Weights::spread describes, with v = `of`.
    void sum_spread(const std::vector<double>& of, Buffers& buffers) const;
    void take_members();
    void take_kernel();
    void evaluate_linear(Buffers& b) const;
    void evaluate_kernel(Buffers& b) const;
    std::shared_ptr<const Model> m_model;
    Weights m_weights;
    std::vector<double> m_weights_q; ///< -1 for each component
};

template <class Use>
void Fitted::evaluate_rows(const std::vector<double>& x, const Use& use) const {
    const size_t bands = m_model->transform.inputs(), rows = x.size() / bands;
    Buffers b;
    for (size_t first = 0; first < rows; first += width()) {
        const size_t count = rows - first < width() ? rows - first : width();
        b.x.assign(bands * width(), 0.0);
        for (size_t i = 0; i < count; ++i)
            for (size_t band = 0; band < bands; ++band)
                b.x[band * width() + i] = x[(first + i) * bands + band];
        evaluate(b);
        for (size_t i = 0; i < count; ++i)
            use(b, i);
    }
}

/// The conversion of a scene's bands to a model's bands, by weighted sums of scaled values.
struct Inputs {
    std::vector<math::ResampledBand> bands; ///< one per band of the model
    std::vector<double> scale, offset;      ///< one value per band of the scene; empty: 1 and 0
};
struct Applied {
    std::shared_ptr<const Model> model;
    Inputs inputs;
};

/// Returns the approximate number of multiplications per pixel.
double product_count(const Model& model);

/// A model and the scene's bands that it reads.
struct Part {
    Part(Applied applied, int bands);
    Fitted fitted;
    Inputs inputs;
    std::vector<size_t> sources; ///< indices of the scene's bands that the model reads
    double scale = 0;            ///< greatest scale of these bands
};

/// The operation that applies models to a scene. Its output has three bands per model: estimate, deviation,
/// outside. A pixel is invalid (NaN in the three bands of a model) if one of the model's inputs is not
/// finite, if all are zero, or if the transformed values are not finite.
class Estimation : public stream::Operation {
  public:
    /// Creates the operation. \throws Error if a source is not one of the `inputs` bands.
    Estimation(int inputs, std::vector<Applied> models);
    std::vector<int> output_bands() const override { return {3 * static_cast<int>(m_parts->size())}; }
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    /// Return the numbers of pixels with and without an estimate of the first model. All counts are complete
    /// after the pass.
    int64_t valid() const { return estimated(0); }
    int64_t invalid() const { return m_counts[0] - valid(); }
    /// Return the number of pixels with an estimate of a model, and the number of valid pixels without an
    /// estimate.
    int64_t estimated(size_t model) const { return m_counts[1 + model_counts * model]; }
    int64_t undefined(size_t model) const { return m_counts[2 + model_counts * model]; }
    /// Return the number of pixels with an estimate whose spectrum or estimate is outside the training data,
    /// and the number of pixels whose spectrum is outside the domain and has another scale (see
    /// is_of_another_scale()).
    int64_t outside(size_t model) const { return m_counts[3 + model_counts * model]; }
    int64_t of_another_scale(size_t model) const { return m_counts[4 + model_counts * model]; }

  protected:
    using Parts = std::vector<Part>;
    static constexpr size_t model_counts = 4; ///< counts per model, in the order of the functions above
    static size_t count_of(const Parts& parts) { return 1 + model_counts * parts.size(); }
    /// Adds the counts of a worker: pixels, then the counts of each model.
    void add(const std::vector<int64_t>& counts);
    std::shared_ptr<const Parts> m_parts;

  private:
    std::vector<int64_t> m_counts;
};
std::unique_ptr<Estimation> make_estimation(int inputs, std::vector<Applied> models);

/// Creates estimations. This class creates them on the CPU; the class in hsi_cuda_regression.so overrides it
/// for devices.
class Backend {
  public:
    virtual ~Backend() = default;
    virtual std::unique_ptr<Estimation> make_estimation(int inputs, std::vector<Applied> models) {
        return regression::make_estimation(inputs, std::move(models));
    }
    /// Returns the total time in seconds of all kernels since the backend was created, summed over the
    /// workers; 0 on the CPU.
    virtual double kernel_seconds() const { return 0; }
    /// Returns the free bytes of the device with the least free memory; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
};
const char* simd_target();

} // namespace hsi::regression
