// SPDX-License-Identifier: MIT
// Regression of a continuous variable on spectra: models, and what they say of a pixel.
//
// PLSR: I. S. Helland, On the structure of partial least squares regression, Communications in Statistics
// 17(2), 1988. Gaussian process: C. E. Rasmussen, C. K. I. Williams, Gaussian Processes for Machine Learning,
// MIT Press 2006. SVR: epsilon-SVR of LIBSVM (C.-C. Chang, C.-J. Lin, ACM TIST 2(3), 2011).
//
// A model takes scaled values (number * scale + offset), transforms them, and gives an estimate, its
// deviation, and whether the spectrum is outside of what it was trained with. All is computed in double
// precision, pixel by pixel: no tile, thread or rank changes a bit.
#pragma once

#include "core/cost.h"
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

/// What it costs, for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost product{1.5e-10, 0}; ///< a pixel, and a band of a row or a sample
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
/// "snv", "d1:7". \throws UsageError naming `role` for any other word.
Step parse_step(const std::string& word, const std::string& role);
std::string text_of(const Step& step);

/// Steps in their order, at the bands of a model.
class Transform {
  public:
    Transform() = default;
    /// \throws Error for more than 16 steps, where a derivative lacks wavelengths, and where no run of bands
    /// is as long as its window.
    Transform(std::vector<Step> steps, const std::vector<double>& wavelengths_nm, size_t bands);
    const std::vector<Step>& steps() const { return m_steps; }
    bool has_derivatives() const;
    size_t inputs() const { return m_inputs; }
    size_t outputs() const { return m_outputs; } ///< derivatives leave out bands of runs that are too short
    /// values: [band][pixels], in place; each pixel is computed by itself. At most
    /// smooth::Transformer::most_pixels of them. `spare`: memory for it.
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

/// (x - centre) / spread, a band each.
struct Standard {
    std::vector<double> centre, spread;
};

/// Where the spectra of training lie: principal components of all labelled pixels.
struct Domain {
    Standard standard;              ///< of the transformed bands
    std::vector<double> components; ///< [component][band], of unit length
    std::vector<double> variances;  ///< a component each
    double t2_limit = 0, q_limit = 0;
};

/// Members of a linear model, at plain transformed bands.
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
    double r2 = 0, rmse = 0, nrmse_percent = 0, bias = 0, rpd = 0; ///< NaN where undefined
};
/// Their names in model files and reports.
inline constexpr std::pair<const char*, double Metrics::*> metric_names[] = {
    {"r2", &Metrics::r2},
    {"rmse", &Metrics::rmse},
    {"nrmse_percent", &Metrics::nrmse_percent},
    {"bias", &Metrics::bias},
    {"rpd", &Metrics::rpd}};
/// Of estimates of values.
Metrics metrics_of(const std::vector<double>& values, const std::vector<double>& estimates);

struct Model : model::ModelBands {
    std::vector<double> fwhm_nm; ///< as wavelengths_nm
    Method method = Method::plsr;
    std::string name, unit; ///< of the variable
    double lowest = 0, highest = 0;
    Transform transform;
    std::optional<Domain> domain; ///< none in models of other programs
    Linear linear;
    Kernel kernel;
    // How it was made.
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

/// The model file: JSON; numbers come back to the last bit.
std::string to_json(const Model& model);
Json to_json(const Metrics& metrics);
/// Also a trait model of HyTools. Throws Error saying what is wrong; whatever the text, it does nothing
/// worse. `name` is for messages.
Model from_json(const std::string& text, const std::string& name);
/// HyTools' trait model of a linear model whose steps are vector, mean and log.
std::string to_hytools(const Model& model);

/// A model as it is evaluated.
class Fitted {
  public:
    /// \throws Error when the matrix of a Gaussian process is not positive definite.
    explicit Fitted(std::shared_ptr<const Model> model);
    const Model& model() const { return *m_model; }
    static size_t width() { return static_cast<size_t>(math::row_kernels().width); }

    struct Buffers {
        std::vector<double> x, spare, standard, results, squares, t2, q, estimate, deviation, outside;
        std::vector<char> defined;
    };
    /// buffers.x: [band][width()], scaled values of the model's bands. Fills `estimate`, `deviation` (NaN
    /// where there is none), `outside` (0 to 3) and `defined` (the transformed values are finite), one a
    /// pixel.
    void evaluate(Buffers& buffers) const;
    /// evaluate() of spectra, [row][band] as buffers.x: use(buffers, i) of each in turn, the block's i-th.
    template <class Use>
    void evaluate_rows(const std::vector<double>& x, const Use& use) const;
    /// Whether a spectrum whose greatest magnitude is this has values of another scale than the training's:
    /// more than twenty times as large or as small.
    bool is_of_another_scale(double greatest) const;
    uint64_t buffer_bytes() const;

  private:
    /// Computes `t2` and `q`, distances in the model's domain, and `defined` for the transformed pixels in
    /// buffers.x.
    void distances(Buffers& buffers) const;
    void take_members();
    void take_kernel();
    void evaluate_linear(Buffers& b) const;
    void evaluate_kernel(Buffers& b) const;
    std::shared_ptr<const Model> m_model;
    /// Bands are standardised as those of the domain: z = (x - centre) * factor.
    std::vector<double> m_centre, m_factor;
    math::RowPanels m_rows; ///< of z: components of the domain, then the mean of the members
    std::vector<double> m_weights_t2, m_weights_q;
    double m_mean_offset = 0, m_greatest = 0; ///< m_greatest: magnitude of the training's values; 0: unknown
    math::RowPanels m_spread; ///< of z: the sum of its squares is that of the members about their mean
    std::vector<double> m_spread_offsets;
    math::RowPanels m_samples, m_inverse;                    ///< of a kernel; m_inverse: L^-1, L L' = K + q I
    std::vector<double> m_kernel_factor, m_squares, m_zeros; ///< m_squares: |s|^2 of the samples
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

/// How a scene's bands become those of a model: sums of scaled values.
struct Inputs {
    std::vector<math::ResampledBand> bands; ///< a band of the model each
    std::vector<double> scale, offset;      ///< of the scene's bands; empty: 1 and 0
};
struct Applied {
    std::shared_ptr<const Model> model;
    Inputs inputs;
};

/// One output of three bands a model: estimate, deviation, outside. A pixel is invalid, NaN in the three
/// bands of a model, when one of the model's inputs is not finite or all are zero, or what is transformed is
/// not finite.
class Estimation : public stream::Operation {
  public:
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    /// Pixels with an estimate of the first model, and others. Complete after the pass, as those below.
    int64_t valid() const { return m_counts[0]; }
    int64_t invalid() const { return m_counts[1]; }
    /// Counts of a model: pixels with an estimate, and valid pixels without one.
    int64_t estimated(size_t model) const { return m_counts[2 + 4 * model]; }
    int64_t undefined(size_t model) const { return m_counts[3 + 4 * model]; }
    /// Counts of pixels with an estimate: those outside, and those whose spectrum is outside and whose values
    /// are more than twenty times as large or as small as those of the training.
    int64_t outside(size_t model) const { return m_counts[4 + 4 * model]; }
    int64_t of_another_scale(size_t model) const { return m_counts[5 + 4 * model]; }

  protected:
    std::vector<int64_t> m_counts;
};
/// \throws Error when a source is none of the `inputs` bands.
std::unique_ptr<Estimation> make_estimation(int inputs, std::vector<Applied> models);
const char* simd_target();

} // namespace hsi::regression
