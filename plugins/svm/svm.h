// SPDX-License-Identifier: MIT
// Classification of spectra with a support vector machine: C-SVC with an RBF kernel, one against one.
// Training and evaluation are the same as in LIBSVM (C.-C. Chang, C.-J. Lin, ACM TIST 2(3), 2011).
//
// The features of a pixel are its values, scaled by the training set's minimum and maximum of each band and
// rounded to single precision: f = float((value - minimum) / (maximum - minimum)), computed in double
// precision. LIBSVM, the CPU and the GPU therefore use the same features. A whole tile is evaluated as matrix
// products in double precision, |x - s|^2 = |x|^2 + |s|^2 - 2 x s. If a decision value is so close to zero
// that rounding errors could change its sign, the pixel is evaluated again in LIBSVM's order of operations.
// The labels therefore equal the labels of svm_predict for every pixel.
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

/// Costs for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost kernel{1.9e-10, 1.5e-13}; ///< seconds per value and support vector
} // namespace cost

using model::ModelClass; ///< ModelClass::weight is a factor of C.

/// A trained model with all data that its use needs. Classes are ordered by value. Pairs of classes (i, j), i
/// < j, are ordered by i, then by j. `minimum` and `maximum`, the range of each feature in the training set,
/// are always set.
struct Model : model::ModelBands {
    std::vector<ModelClass> classes;

    // The support vector machine
    double c = 1, gamma = 1;
    std::vector<int> support_count;     ///< number of support vectors per class, in the order below
    std::vector<float> support_vectors; ///< [vector][feature], scaled
    std::vector<double> coefficients;   ///< [class - 1][vector], LIBSVM's sv_coef
    std::vector<double> rho;            ///< one value per pair
    std::vector<double> prob_a, prob_b; ///< one value per pair; empty without probability estimates

    // Information about the training
    int folds = 0;          ///< 0: no cross-validation
    double cv_accuracy = 0; ///< cross-validation accuracy of the chosen C and gamma
    uint64_t seed = 1;
    std::string trained_on, labels; ///< file names, for information only
    model::Origin origin;

    int features() const { return static_cast<int>(minimum.size()); }
    int class_count() const { return static_cast<int>(classes.size()); }
    int pair_count() const { return class_count() * (class_count() - 1) / 2; }
    int64_t vector_count() const {
        return static_cast<int64_t>(features() ? support_vectors.size() / minimum.size() : 0);
    }
    bool has_probabilities() const { return !prob_a.empty(); }
    /// Returns 1 / (maximum - minimum), or 0 for a feature that was constant in training.
    double factor(int feature) const;
};

/// Changes the model so that it accepts values in the scale `scene`. `by` converts such values to the scale
/// from which the model was made. Labels stay the same except for rounding errors.
void rescale(Model& model, const model::Rescaling& by, const model::ValueScale& scene);

inline float scaled(float value, double minimum, double factor) {
    return static_cast<float>((static_cast<double>(value) - minimum) * factor);
}

/// Returns the model file: JSON with one line of text per support vector. Numbers are restored exactly when
/// the file is read.
std::string to_json(const Model& model);
/// Reads a model. Any text is safe to read. `name` is used in messages. Throws Error that describes the
/// problem.
Model from_json(const std::string& text, const std::string& name);
Model read_model(const std::string& path);
/// Returns the support vector machine in the format of LIBSVM's svm_load_model, with all digits. The features
/// are scaled, and feature f has the index f + 1.
std::string to_libsvm(const Model& model);

struct ClassifyOptions {
    bool probabilities = false; ///< output: one band per class; needs has_probabilities()
    bool confidence = false;    ///< output: the probability of the mapped class; needs has_probabilities()
};

/// The result of LIBSVM's prediction, with the same operations.
struct Prediction {
    int label = 0;                     ///< index of the class
    std::vector<double> decision;      ///< one value per pair
    std::vector<double> probabilities; ///< one value per class; empty without probability estimates
};
/// Returns LIBSVM's prediction for one pixel. `features` are values of scaled(). The label is the result of
/// the vote, as in svm_predict; the label of svm_predict_probability may differ.
Prediction predict_exactly(const Model& model, const float* features);

/// Returns the probability of class i against class j from the pair's decision value, prob_a and prob_b. The
/// result is bitwise equal on all processors.
double probability_of(double decision, double a, double b);

/// The operation that creates the requested outputs in this order: class values (one band), probabilities
/// (one band per class), confidence (one band). Invalid pixels are NaN.
class Classification : public stream::Operation {
  public:
    Classification(std::shared_ptr<const Model> model, const ClassifyOptions& options);
    std::vector<int> output_bands() const override;
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    const Model& model() const { return *m_model; }
    const ClassifyOptions& options() const { return m_options; }
    /// The counts are complete after the pass.
    int64_t classified() const { return m_classified; }
    int64_t invalid() const { return m_invalid; }
    /// Returns the number of pixels that were evaluated again in LIBSVM's order of operations.
    int64_t repeated() const { return m_repeated; }
    const std::vector<int64_t>& pixels_by_class() const { return m_by_class; }
    /// Adds the counts of a worker. Backends call this function from stop().
    void count(const std::vector<int64_t>& by_class, int64_t invalid, int64_t repeated);

  protected:
    std::shared_ptr<const Model> m_model;
    ClassifyOptions m_options;

  private:
    int64_t m_classified = 0, m_invalid = 0, m_repeated = 0;
    std::vector<int64_t> m_by_class;
};

/// Creates the operation of the CPU backend (SIMD chosen at run time).
std::unique_ptr<Classification> make_classification(std::shared_ptr<const Model> model,
                                                    const ClassifyOptions& options);
const char* simd_target();

/// Classification on the CPU or on devices (hsi_cuda_svm.so).
class Backend {
  public:
    virtual ~Backend() = default;
    virtual std::unique_ptr<Classification> make_classification(std::shared_ptr<const Model> model,
                                                                const ClassifyOptions& options) = 0;
    /// Returns the total time in seconds of all kernels since the backend was created, without copies, summed
    /// over the workers; 0 on the CPU. Workers on the same device slow each other down.
    virtual double kernel_seconds() const { return 0; }
    /// Returns the free bytes of the device with the least free memory; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
};

std::unique_ptr<Backend> make_cpu_backend();

/// The parameters of an epsilon-SVR with the kernel exp(-gamma |x-y|^2).
struct RegressionOptions {
    double c = 1, gamma = 1, epsilon = 0.1;
    uint64_t memory = uint64_t{100} << 20; ///< bytes of LIBSVM's cache
};
struct RegressionMachine {
    std::vector<int> support; ///< indices of the support vectors among the samples, in rising order
    std::vector<double> coefficients;
    double rho = 0;
    bool at_limit = false; ///< true if LIBSVM stopped at its limit of iterations
};
/// Trains a regression. `x` is [sample][feature], and `y` has one value per sample. Several threads may call
/// this function at once. It is in the library svm_training.
RegressionMachine train_regression(const std::vector<float>& x, const std::vector<double>& y,
                                   const RegressionOptions& options);

} // namespace hsi::svm
