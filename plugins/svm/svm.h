// SPDX-License-Identifier: MIT
// Classification of spectra with a support vector machine: C-SVC with an RBF kernel as LIBSVM (C.-C. Chang,
// C.-J. Lin, ACM TIST 2(3), 2011) trains and evaluates it, one against one.
//
// A pixel's features are its values scaled by the training set's minimum and maximum of each band and rounded
// to single precision: f = float((value - minimum) / (maximum - minimum)), computed in double precision. So
// LIBSVM, the processor and the GPU see the same numbers. A whole tile is evaluated as matrix products in
// double precision, |x - s|^2 = |x|^2 + |s|^2 - 2 x s; where a decision value is so near to zero that
// rounding could turn it, the pixel is evaluated again in LIBSVM's own order of operations. So labels equal
// svm_predict's, for every pixel.
#pragma once

#include "core/cost.h"
#include "core/cuda_module.h"
#include "model/classes.h"
#include "stream/operation.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::svm {

/// Its costs, for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost kernel{1.9e-10, 1.5e-13}; ///< a value and a support vector
} // namespace cost

using model::ModelClass; ///< weight: a factor of C

/// A trained model with everything that its use needs. Classes are ordered by value; pair p of classes (i,
/// j), i < j, counts through i, then j. minimum and maximum, the training set's range of each feature, are
/// always there.
struct Model : model::ModelBands {
    std::vector<ModelClass> classes;

    // The machine.
    double c = 1, gamma = 1;
    std::vector<int> support_count;     ///< support vectors of each class, in this order below
    std::vector<float> support_vectors; ///< [vector][feature], scaled
    std::vector<double> coefficients;   ///< [class - 1][vector], LIBSVM's sv_coef
    std::vector<double> rho;            ///< by pair
    std::vector<double> prob_a, prob_b; ///< by pair; empty without probability estimates

    // How it was made.
    int folds = 0;          ///< 0: no cross-validation
    double cv_accuracy = 0; ///< of the chosen C and gamma
    uint64_t seed = 1;
    std::string trained_on, labels; ///< file names, for people
    model::Origin origin;

    int features() const { return static_cast<int>(minimum.size()); }
    int class_count() const { return static_cast<int>(classes.size()); }
    int pair_count() const { return class_count() * (class_count() - 1) / 2; }
    int64_t vector_count() const {
        return static_cast<int64_t>(features() ? support_vectors.size() / minimum.size() : 0);
    }
    bool has_probabilities() const { return !prob_a.empty(); }
    /// 1 / (maximum - minimum); 0 for a feature that was constant in training.
    double factor(int feature) const;
};

/// The same model for values that become the model's by `by`. Labels equal those of the rescaled values, but
/// for rounding.
void rescale(Model& model, const model::Rescaling& by, const model::ValueScale& scene);

inline float scaled(float value, double minimum, double factor) {
    return static_cast<float>((static_cast<double>(value) - minimum) * factor);
}

/// The model file: JSON, one line a support vector. Numbers come back to the last bit.
std::string to_json(const Model& model);
/// Throws Error with the fault; any text is safe to read. `name` is for messages.
Model from_json(const std::string& text, const std::string& name);
Model read_model(const std::string& path);
/// The machine as LIBSVM's svm_load_model reads it (features scaled, index = feature + 1), with all digits.
std::string to_libsvm(const Model& model);

struct ClassifyOptions {
    bool probabilities = false; ///< output: a band a class; needs has_probabilities()
    bool confidence = false;    ///< output: the probability of the mapped class; needs has_probabilities()
};

/// One of LIBSVM's predictions, operation by operation.
struct Prediction {
    int label = 0;                     ///< index of the class
    std::vector<double> decision;      ///< by pair
    std::vector<double> probabilities; ///< by class; empty without probability estimates
};
/// `features`: scaled(). The label is the vote's, as svm_predict's; svm_predict_probability's may differ.
Prediction predict_exactly(const Model& model, const float* features);

/// P(i against j) from a decision value and a model's prob_a and prob_b, with the bits that processors agree
/// on.
double probability_of(double decision, double a, double b);

/// Outputs in this order, as far as they are on: class values (one band), probabilities (a band a class),
/// confidence (one band). Invalid pixels come out as NaN.
class Classification : public stream::Operation {
  public:
    Classification(std::shared_ptr<const Model> model, const ClassifyOptions& options);
    std::vector<int> output_bands() const override;
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    const Model& model() const { return *m_model; }
    const ClassifyOptions& options() const { return m_options; }
    /// Complete after the pass.
    int64_t classified() const { return m_classified; }
    int64_t invalid() const { return m_invalid; }
    int64_t repeated() const { return m_repeated; } ///< pixels that were evaluated a second time, exactly
    const std::vector<int64_t>& pixels_by_class() const { return m_by_class; }
    /// Backends add the counts of a worker; called from stop().
    void count(const std::vector<int64_t>& by_class, int64_t invalid, int64_t repeated);

  protected:
    std::shared_ptr<const Model> m_model;
    ClassifyOptions m_options;

  private:
    int64_t m_classified = 0, m_invalid = 0, m_repeated = 0;
    std::vector<int64_t> m_by_class;
};

/// The CPU backend (SIMD chosen at run time).
std::unique_ptr<Classification> make_classification(std::shared_ptr<const Model> model,
                                                    const ClassifyOptions& options);
const char* simd_target();

/// Classification on the CPU or on devices (hsi_cuda_svm.so).
class Backend {
  public:
    virtual ~Backend() = default;
    virtual std::unique_ptr<Classification> make_classification(std::shared_ptr<const Model> model,
                                                                const ClassifyOptions& options) = 0;
    /// Seconds that kernels took since the backend was made, copies left out, added over the lanes (which
    /// slow one another when they share a device); 0 on the CPU.
    virtual double kernel_seconds() const { return 0; }
    /// Device bytes that are free, of the device that has least; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
};

std::unique_ptr<Backend> make_cpu_backend();

/// An epsilon-SVR with the kernel exp(-gamma |x-y|^2).
struct RegressionOptions {
    double c = 1, gamma = 1, epsilon = 0.1;
    uint64_t memory = uint64_t{100} << 20; ///< bytes of LIBSVM's cache
};
struct RegressionMachine {
    std::vector<int> support; ///< samples, rising
    std::vector<double> coefficients;
    double rho = 0;
    bool at_limit = false; ///< LIBSVM stopped at its limit of iterations
};
/// x: [sample][feature]; y: one a sample. Safe to call from several threads. In the room svm_training.
RegressionMachine train_regression(const std::vector<float>& x, const std::vector<double>& y,
                                   const RegressionOptions& options);

} // namespace hsi::svm
