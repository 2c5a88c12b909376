// SPDX-License-Identifier: MIT
// Regression of a continuous variable on spectra: models, and their results for a pixel.
//
// PLSR: I. S. Helland, On the structure of partial least squares regression, Communications in Statistics
// 17(2), 1988. Gaussian process: C. E. Rasmussen, C. K. I. Williams, Gaussian Processes for Machine Learning,
// MIT Press 2006. SVR: epsilon-SVR of LIBSVM (C.-C. Chang, C.-J. Lin, ACM TIST 2(3), 2011).
//
// A model takes scaled values (number * scale + offset) and transforms them. It returns an estimate, its
// standard deviation, and whether the spectrum is outside of the training data. All values are computed in
// double precision, pixel by pixel, so results do not depend on tiles, threads or ranks. Devices differ from
// the CPU by rounding.
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
inline constexpr Cost product{6e-11, 2e-13}; ///< per pixel, row of weights, and entry of the row
} // namespace cost

enum class Method { plsr, ridge, gp, svr };
inline constexpr std::pair<const char*, Method> method_names[] = {
    {"plsr", Method::plsr}, {"ridge", Method::ridge}, {"gp", Method::gp}, {"svr", Method::svr}};
const char* name_of(Method method);

struct Step {
    enum class Kind {
        snv,         ///< (x - mean)/sd, n - 1
        vector,      ///< x/|x|
        mean,        ///< x/mean(x)
        log,         ///< ln(1/x)
        derivative1, ///< per nm, of the least-squares parabola through `window` bands
        derivative2,
    };
    Kind kind = Kind::snv;
    int window = 0; ///< of derivatives: odd, 3 to 99
};
/// Parses a step such as "snv" or "d1:7". \throws UsageError that names `role` for any other word.
Step parse_step(const std::string& word, const std::string& role);
std::string text_of(const Step& step);

/// Steps in their order, at the bands of a model.
class Transform {
  public:
    Transform() = default;
    /// \throws Error for more than 16 steps, if a derivative lacks wavelengths, and if no run of bands is as
    /// long as its window.
    Transform(std::vector<Step> steps, const std::vector<double>& wavelengths_nm, size_t bands);
    const std::vector<Step>& steps() const { return m_steps; }
    bool has_derivatives() const;
    size_t inputs() const { return m_inputs; }
    size_t outputs() const { return m_outputs; } ///< derivatives leave out bands of runs that are too short
    /// Returns the weighted sums of bands of a step; empty: it is not a derivative.
    const std::vector<math::ResampledBand>& rows_of(size_t step) const { return m_made[step].rows; }
    /// Transforms values ([band][pixels]) in place; each pixel is computed separately. At most
    /// smooth::Transformer::most_pixels pixels. `spare`: scratch memory.
    void apply(std::vector<double>& values, size_t pixels, std::vector<double>& spare) const;

  private:
    std::vector<Step> m_steps;
    struct Made {
        bool log;
        smooth::Transformer plain;
        std::vector<math::ResampledBand> rows; ///< of a derivative
    };
    std::vector<Made> m_made;
    size_t m_inputs = 0, m_outputs = 0;
};

/// (x - centre) / spread, by band.
struct Standard {
    std::vector<double> centre, spread;
};

/// The domain of training spectra: principal components of all labelled pixels.
struct Domain {
    Standard standard;              ///< of the transformed bands
    std::vector<double> components; ///< [component][band], of unit length
    std::vector<double> variances;  ///< by component
    double t2_limit = 0, q_limit = 0;
};

/// Members of a linear model, for unscaled transformed bands.
struct Linear {
    int components = 0;               ///< plsr
    double lambda = 0;                ///< ridge: t
    std::vector<double> coefficients; ///< [member][band]
    std::vector<double> intercepts;
};

/// Samples with weights: a Gaussian process (k = exp(-d^2 / (2 length^2))) or a support vector machine.
struct Kernel {
    Standard standard; ///< of the bands; svr: minimum and range
    double value_mean = 0, value_spread = 1;
    std::vector<double> samples; ///< [sample][band], standardised; svr: rounded to single precision
    std::vector<double> weights;
    double length = 1, noise = 1, variance = 1;      ///< gp
    double c = 1, gamma = 1, epsilon = 0.1, rho = 0; ///< svr
};

struct Metrics {
    int64_t n = 0;
    double r2 = 0, rmse = 0, nrmse_percent = 0, bias = 0, rpd = 0; ///< NaN if undefined
};
/// Their names in model files and reports.
inline constexpr std::pair<const char*, double Metrics::*> metric_names[] = {
    {"r2", &Metrics::r2},
    {"rmse", &Metrics::rmse},
    {"nrmse_percent", &Metrics::nrmse_percent},
    {"bias", &Metrics::bias},
    {"rpd", &Metrics::rpd}};
/// Returns the metrics of estimates for known values.
Metrics metrics_of(const std::vector<double>& values, const std::vector<double>& estimates);

struct Model : model::ModelBands {
    std::vector<double> fwhm_nm; ///< as wavelengths_nm
    Method method = Method::plsr;
    std::string name, unit; ///< of the variable
    double lowest = 0, highest = 0;
    Transform transform;
    std::optional<Domain> domain; ///< empty in models of other programs
    Linear linear;
    Kernel kernel;
    // Facts about the training.
    int64_t samples = 0, groups = 0;
    int folds = 0;
    uint64_t seed = 1;
    std::string trained_on, labels; ///< file names, for people
    std::optional<Metrics> metrics; ///< of held-out samples
    model::Origin origin;

    bool is_linear() const { return method == Method::plsr || method == Method::ridge; }
    size_t members() const { return linear.intercepts.size(); }
    bool has_deviation() const { return method == Method::gp || members() > 1; }
};

/// Returns the model file: JSON; numbers are restored to the last bit.
std::string to_json(const Model& model);
Json to_json(const Metrics& metrics);
/// Reads a model, or a trait model of HyTools. Throws Error with the fault; any text is safe to read. `name`
/// is for messages.
Model from_json(const std::string& text, const std::string& name);
/// Returns HyTools' trait model for a linear model whose steps are vector, mean and log.
std::string to_hytools(const Model& model);

/// Returns whether magnitudes up to `greatest` have another scale than those up to `known` (0: unknown): more
/// than twenty times as large or as small. Reflectance in per cent or in integers is 100 or 10000 times as
/// large.
HSI_HOST_DEVICE inline bool is_of_another_scale(double greatest, double known) {
    constexpr double far = 20;
    return known > 0 && (greatest > far * known || greatest * far < known);
}

/// Returns whether a spectrum with these distances exceeds the limits of a domain by more than 1e-6.
/// `squares`: |z|^2, whose rounding remains in Q if the components represent the whole spectrum.
HSI_HOST_DEVICE inline bool is_unlike(double t2, double q, double squares, double t2_limit, double q_limit) {
    constexpr double over_limit = 1 + 1e-6, rounding = 1e-12;
    return t2 > t2_limit * over_limit || q > q_limit * over_limit + rounding * squares;
}

/// A model in the form for evaluation, on the CPU or on a device.
class Fitted {
  public:
    /// \throws Error if the matrix of a Gaussian process is not positive definite.
    explicit Fitted(std::shared_ptr<const Model> model);
    const Model& model() const { return *m_model; }

    /// z = (x - centre) * factor, of the transformed bands.
    struct Weights {
        std::vector<double> centre, factor; ///< of the domain and of linear models
        math::RowPanels rows;               ///< of z: components of the domain, then the mean of the members
        std::vector<double> t2;             ///< weights of the squared components in T2
        double mean_offset = 0;
        /// The sum of the squares of (row + offset). For linear models it is the sum of squares of the
        /// members about their mean, for z. For a Gaussian process it is k'M^-1 k, for the kernel's values:
        /// rows of L^-1, L L' = K + q I.
        math::RowPanels spread;
        std::vector<double> spread_offsets;
        std::vector<double> kernel_factor; ///< kernels are standardised by their own centre
        math::RowPanels samples;
        std::vector<double> squares; ///< |s|^2 of the samples
        double greatest = 0;         ///< greatest magnitude of the training values; 0: unknown
    };
    const Weights& weights() const { return m_weights; }

    static size_t width() { return static_cast<size_t>(math::row_kernels().width); }
    struct Buffers {
        std::vector<double> x, spare, standard, results, rows, squares, t2, q, estimate, deviation, outside;
        std::vector<char> defined;
    };
    /// Evaluates buffers.x: [band][width()], scaled values of the model's bands. Fills `estimate`,
    /// `deviation` (NaN if unknown), `outside` (0 to 3) and `defined` (the transformed values are finite),
    /// one per pixel.
    void evaluate(Buffers& buffers) const;
    /// Calls evaluate() for spectra, [row][band] as buffers.x, and then use(buffers, i) for each spectrum in
    /// turn, the i-th of its block.
    template <class Use>
    void evaluate_rows(const std::vector<double>& x, const Use& use) const;
    /// Returns whether a spectrum with this greatest magnitude has values of another scale than the
    /// training's.
    bool is_of_another_scale(double greatest) const {
        return regression::is_of_another_scale(greatest, m_weights.greatest);
    }
    uint64_t buffer_bytes() const;

  private:
    /// Computes `t2` and `q`, distances in the model's domain, and `defined` for the transformed pixels in
    /// buffers.x.
    void distances(Buffers& buffers) const;
    /// Computes `squares`, the sums of the squares of the spread's rows, each times `of`.
    void sum_spread(const std::vector<double>& of, Buffers& buffers) const;
    void take_members();
    void take_kernel();
    void evaluate_linear(Buffers& b) const;
    void evaluate_kernel(Buffers& b) const;
    std::shared_ptr<const Model> m_model;
    Weights m_weights;
    std::vector<double> m_weights_q; ///< -1 per component
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

/// The conversion of a scene's bands to a model's: sums of scaled values.
struct Inputs {
    std::vector<math::ResampledBand> bands; ///< one per band of the model
    std::vector<double> scale, offset;      ///< of the scene's bands; empty: 1 and 0
};
struct Applied {
    std::shared_ptr<const Model> model;
    Inputs inputs;
};

/// Returns the approximate number of products of a weight and a value for the estimate of a pixel.
double product_count(const Model& model);

/// A model with the data that are read for it.
struct Part {
    Part(Applied applied, int bands);
    Fitted fitted;
    Inputs inputs;
    std::vector<size_t> sources; ///< bands of the scene that are read
    double scale = 0;            ///< their greatest scale
};

/// Makes one output with three bands per model: estimate, deviation, outside. A pixel is invalid (NaN in the
/// three bands of a model) if one of the model's inputs is not finite, all are zero, or the transformed
/// values are not finite.
class Estimation : public stream::Operation {
  public:
    /// \throws Error if a source is not one of the `inputs` bands.
    Estimation(int inputs, std::vector<Applied> models);
    std::vector<int> output_bands() const override { return {3 * static_cast<int>(m_parts->size())}; }
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    /// Return the numbers of pixels with and without an estimate of the first model. Like the counts below,
    /// they are complete after the pass.
    int64_t valid() const { return estimated(0); }
    int64_t invalid() const { return m_counts[0] - valid(); }
    /// Return the numbers of pixels with an estimate of a model, and of valid pixels without one.
    int64_t estimated(size_t model) const { return m_counts[1 + model_counts * model]; }
    int64_t undefined(size_t model) const { return m_counts[2 + model_counts * model]; }
    /// Return numbers of pixels with an estimate: those outside, and those outside whose values are more than
    /// twenty times as large or as small as the training's.
    int64_t outside(size_t model) const { return m_counts[3 + model_counts * model]; }
    int64_t of_another_scale(size_t model) const { return m_counts[4 + model_counts * model]; }

  protected:
    using Parts = std::vector<Part>;
    static constexpr size_t model_counts = 4; ///< counts per model, in the order above
    static size_t count_of(const Parts& parts) { return 1 + model_counts * parts.size(); }
    /// Adds the counts of a worker: pixels, then the counts of each model.
    void add(const std::vector<int64_t>& counts);
    std::shared_ptr<const Parts> m_parts;

  private:
    std::vector<int64_t> m_counts;
};
std::unique_ptr<Estimation> make_estimation(int inputs, std::vector<Applied> models);

/// Estimation on the CPU; hsi_cuda_regression.so has that for devices.
class Backend {
  public:
    virtual ~Backend() = default;
    virtual std::unique_ptr<Estimation> make_estimation(int inputs, std::vector<Applied> models) {
        return regression::make_estimation(inputs, std::move(models));
    }
    /// Returns the seconds of all kernels since the backend was created, summed over the lanes; 0 on the CPU.
    virtual double kernel_seconds() const { return 0; }
    /// Returns the free bytes of the device with the least free memory; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
};
const char* simd_target();

} // namespace hsi::regression
