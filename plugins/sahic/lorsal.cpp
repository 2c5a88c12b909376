// SPDX-License-Identifier: MIT
// Training on the CPU: the problem, and the solver with the paper's method.
#include "sahic/lorsal.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/host_memory.h"
#include "core/process_limits.h"
#include "core/process_owner.h"
#include "math/elementary.h"
#include "parallel/team.h"
#include "sahic/blas.h"
#include "sahic/lorsal_problem.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <utility>

namespace hsi::sahic {
namespace training {
namespace {
constexpr int64_t block_rows = 128;

/// Returns a function that only OpenBLAS has; nullptr if the process uses another BLAS. The function is
/// looked up at run time, because a program may load another library than the library with which it was
/// linked. On Debian, for example, the alternatives system selects the library.
template <class Function>
Function blas_function(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

/// Sets an environment variable while the object exists, unless the variable is already set.
class DefaultVariable {
  public:
    DefaultVariable(const char* name, const char* value)
        : m_name(name), m_ours(std::getenv(name) == nullptr) {
        if (m_ours) setenv(name, value, 1);
    }
    ~DefaultVariable() {
        if (m_ours) unsetenv(m_name);
    }
    DefaultVariable(const DefaultVariable&) = delete;
    DefaultVariable& operator=(const DefaultVariable&) = delete;

  private:
    const char* m_name;
    bool m_ours;
};

/// OpenBLAS selects its kernels by the processor. Kernels for AVX-512 add in another order than kernels for
/// AVX2 (Haswell), so their results differ. The AVX2 kernels are used on all processors that support them, so
/// that one training set gives one model. OpenBLAS selects kernels when it is loaded, before any code here
/// runs. This function therefore requests a new selection. Another BLAS, or an OpenBLAS for a single
/// processor, lacks the functions for this selection. The BLAS of another program's process is not changed,
/// because other threads may be using it or reading the environment.
/// environment.
///
/// OpenBLAS 0.3.34 divides products into larger pieces on AMD processors with AVX-512, for all kernels. The
/// stack of the AVX2 kernels is too small for these pieces, which causes a segmentation fault (OpenBLAS issue
/// 6026). OpenBLAS recognises these processors by a cache size of 1024 KB, so this function sets another
/// size.
void choose_blas_kernels() {
#if defined(__x86_64__)
    if (!process_is_ours()) return;
    static std::once_flag once;
    std::call_once(once, [] {
        if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return;
        using Function = void (*)();
        const auto quit = blas_function<Function>("gotoblas_dynamic_quit");
        const auto init = blas_function<Function>("gotoblas_dynamic_init");
        if (!quit || !init) return;
        const DefaultVariable kernels("OPENBLAS_CORETYPE", "Haswell"), cache("OPENBLAS_L2_SIZE", "256");
        quit();
        init();
    });
#endif
}

} // namespace

namespace {
ForkMutex g_blas;       // guards the variables below
int g_blas_users = 0;   // trainings that run in this process
int g_blas_threads = 0; // number of BLAS threads before the first of these trainings
int g_blas_callers = 0; // number of threads for which OpenBLAS has, or may have, allocated buffers
// True if the process was forked during a training of its parent. g_blas_threads then already has the number
// of threads before this training.
bool g_blas_left = false;
const InForkedChild g_blas_child([] {
    g_blas_left = g_blas_left || g_blas_users > 0;
    g_blas_users = 0;
});

/// Returns the number of threads of OpenBLAS. Another BLAS uses its own environment variables, so 1 is
/// returned: netlib has no threads, and BLIS has one thread by default.
int blas_threads() {
    const auto get = blas_function<int (*)()>("openblas_get_num_threads");
    return get ? get() : 1;
}
void set_blas_threads(int threads) {
    if (const auto set = blas_function<void (*)(int)>("openblas_set_num_threads")) set(threads);
}
} // namespace

SingleThreadedBlas::SingleThreadedBlas(int threads) {
    choose_blas_kernels();
    const std::lock_guard lock(g_blas);
    if (threads > g_blas_callers && blas_function<int (*)()>("openblas_get_num_threads") != nullptr) {
        const uint64_t bytes = static_cast<uint64_t>(threads) * blas_buffer_bytes;
        if (!has_addresses_for(bytes))
            throw Error("training needs " + format_byte_size(bytes) +
                            " of address space for OpenBLAS, more than this process has left",
                        "Raise its limit (ulimit -v), or use fewer -threads.");
        g_blas_callers = threads;
    }
    if (g_blas_users++ == 0 && !std::exchange(g_blas_left, false)) g_blas_threads = blas_threads();
    set_blas_threads(1);
}

SingleThreadedBlas::~SingleThreadedBlas() {
    const std::lock_guard lock(g_blas);
    if (--g_blas_users == 0) set_blas_threads(g_blas_threads);
}

void multiply(Team& team, bool transposed, int64_t rows, int cols, int64_t inner, const double* a,
              int64_t lda, const double* b, int64_t ldb, double* c, int64_t ldc) {
    team.run((rows + block_rows - 1) / block_rows, [&](int64_t unit, int) {
        const int64_t first = unit * block_rows, count = std::min(block_rows, rows - first);
        blas::gemm(transposed ? blas::Op::transpose : blas::Op::none, blas::Op::none, static_cast<int>(count),
                   cols, static_cast<int>(inner), 1.0, transposed ? a + first * lda : a + first,
                   static_cast<int>(lda), b, static_cast<int>(ldb), 0.0, c + first, static_cast<int>(ldc));
    });
}

Problem::Problem(const TrainingSet& set, const LorsalOptions& options, Team& team)
    : samples(set.samples()), d(set.samples() + 1), classes(static_cast<int>(set.classes.size())),
      m(classes - 1), spread(detail::mean_square_distance(set)), label(detail::class_indices(set)) {
    const int64_t bands = set.features;
    std::vector<double> mean(static_cast<size_t>(bands), 0.0);
    // Bands x J; the spectra are centred, so that differences of nearly equal values stay accurate.
    std::vector<double> u(static_cast<size_t>(samples * bands));
    for (int64_t i = 0; i < samples; ++i)
        for (int64_t b = 0; b < bands; ++b) {
            const double v = static_cast<double>(set.values[static_cast<size_t>(i * bands + b)]) / set.scale;
            u[static_cast<size_t>(i * bands + b)] = v;
            mean[static_cast<size_t>(b)] += v / static_cast<double>(samples);
        }
    std::vector<double> square(static_cast<size_t>(samples), 0.0);
    for (int64_t i = 0; i < samples; ++i)
        for (int64_t b = 0; b < bands; ++b) {
            double& v = u[static_cast<size_t>(i * bands + b)];
            v -= mean[static_cast<size_t>(b)];
            square[static_cast<size_t>(i)] += v * v;
        }
    check_cancel(options);
    kernel.resize(static_cast<size_t>(samples * samples));
    multiply(team, true, samples, static_cast<int>(samples), bands, u.data(), bands, u.data(), bands,
             kernel.data(), samples);
    const double gamma = 1.0 / (2.0 * options.delta * options.delta * spread);
    team.run(samples, [&](int64_t j, int) {
        // The upper triangle is computed and mirrored, so the matrix is exactly symmetric.
        for (int64_t i = 0; i <= j; ++i) {
            const double dot = kernel[static_cast<size_t>(j * samples + i)];
            const double distance = i == j ? 0.0
                                           : std::max(0.0, square[static_cast<size_t>(i)] +
                                                               square[static_cast<size_t>(j)] - 2 * dot);
            kernel[static_cast<size_t>(j * samples + i)] = math::exp(-gamma * distance);
        }
    });
    for (int64_t j = 0; j < samples; ++j)
        for (int64_t i = 0; i < j; ++i)
            kernel[static_cast<size_t>(i * samples + j)] = kernel[static_cast<size_t>(j * samples + i)];
}

double Problem::residual(double* z) const {
    double loss = 0;
    for (int64_t i = 0; i < samples; ++i) {
        double top = 0;
        for (int k = 0; k < m; ++k)
            top = std::max(top, z[k * samples + i]);
        double sum = math::exp(-top);
        const int mine = label[static_cast<size_t>(i)];
        loss += top - (mine < m ? z[mine * samples + i] : 0.0);
        for (int k = 0; k < m; ++k) {
            z[k * samples + i] = math::exp(z[k * samples + i] - top);
            sum += z[k * samples + i];
        }
        loss += math::log(sum);
        for (int k = 0; k < m; ++k)
            z[k * samples + i] = z[k * samples + i] / sum - (k == mine ? 1.0 : 0.0);
    }
    return loss;
}

} // namespace training

namespace {

using training::check_cancel;
using training::multiply;
using training::norm1;
using training::Problem;

/// Returns the lower triangle of R = H H', column-major.
std::vector<double> correlation(const Problem& p) {
    std::vector<double> r(static_cast<size_t>(p.d * p.d), 0.0);
    r[0] = static_cast<double>(p.samples);
    for (int64_t j = 0; j < p.samples; ++j)
        r[static_cast<size_t>(j + 1)] =
            std::accumulate(p.kernel.begin() + j * p.samples, p.kernel.begin() + (j + 1) * p.samples, 0.0);
    blas::syrk_lower(static_cast<int>(p.samples), static_cast<int>(p.samples), 1.0, p.kernel.data(),
                     static_cast<int>(p.samples), 0.0, r.data() + p.d + 1, static_cast<int>(p.d));
    return r;
}

/// The decomposition R = U diag(value) U'. In this basis, the shifted systems of all iterations are diagonal.
struct Eigensystem {
    std::vector<double> vectors, values;
    Eigensystem(const Problem& p, const LorsalOptions& o)
        : vectors(correlation(p)), values(static_cast<size_t>(p.d)) {
        const int n = static_cast<int>(p.d);
        double work_size = 0;
        int iwork_size = 0;
        blas::eigen_lower(n, values.data(), &work_size, -1, &iwork_size, -1, vectors.data());
        std::vector<double> work(static_cast<size_t>(work_size));
        std::vector<int> iwork(static_cast<size_t>(iwork_size));
        check_cancel(o); // LAPACK cannot be interrupted.
        if (blas::eigen_lower(n, values.data(), work.data(), static_cast<int>(work.size()), iwork.data(),
                              iwork_size, vectors.data()) != 0)
            throw Error("the eigenproblem of the training features could not be solved",
                        "Look for extreme values among the training pixels.");
        for (double& v : values)
            v = std::max(v, 0.0);
    }
};

/// Runs the paper's method. Each iteration majorises -log likelihood at the current w with the Boehning bound
/// B (x) R, B = 1/2 (I - 1 1'/K). It then does one step of the splitting w = v:
///   w = argmin quadratic + beta/2 |w - v - m|^2,  v = soft(w - m, lambda/beta),  m = m - (w - v).
std::vector<double> paper_path(const Problem& p, const LorsalOptions& o, Team& team, LorsalResult& result) {
    const Eigensystem eigen(p, o);
    const auto size = static_cast<size_t>(p.d * p.m);
    std::vector<double> w(size, 0.0), v(size, 0.0), multiplier(size, 0.0), rhs(size), turned(size, 0.0),
        next(size), z(static_cast<size_t>(p.samples * p.m));
    double beta = o.beta;
    for (int it = 0; it < o.iterations; ++it) {
        check_cancel(o);
        p.logits(team, w.data(), z.data());
        p.residual(z.data());
        p.gradient(team, z.data(), rhs.data());
        for (size_t i = 0; i < size; ++i)
            rhs[i] = beta * (v[i] + multiplier[i]) - rhs[i];
        multiply(team, true, p.d, p.m, p.d, eigen.vectors.data(), p.d, rhs.data(), p.d, next.data(), p.d);
        // B has the eigenvalue 1/(2K) along the vector of ones and 1/2 in all orthogonal directions.
        for (int64_t i = 0; i < p.d; ++i) {
            const double s = eigen.values[static_cast<size_t>(i)];
            double mean_next = 0, mean_w = 0;
            for (int k = 0; k < p.m; ++k) {
                mean_next += next[static_cast<size_t>(k * p.d + i)] / p.m;
                mean_w += turned[static_cast<size_t>(k * p.d + i)] / p.m;
            }
            const double along = s / (2.0 * p.classes), across = s / 2.0;
            const double mean = (mean_next + along * mean_w) / (along + beta);
            for (int k = 0; k < p.m; ++k) {
                double& t = turned[static_cast<size_t>(k * p.d + i)];
                const double rest =
                    next[static_cast<size_t>(k * p.d + i)] - mean_next + across * (t - mean_w);
                t = mean + rest / (across + beta);
            }
        }
        multiply(team, false, p.d, p.m, p.d, eigen.vectors.data(), p.d, turned.data(), p.d, w.data(), p.d);
        const double threshold = o.lambda_c / beta;
        for (size_t i = 0; i < size; ++i) {
            const double t = w[i] - multiplier[i];
            v[i] = t > threshold ? t - threshold : t < -threshold ? t + threshold : 0.0;
            multiplier[i] = (v[i] - t) / o.growth; // The multiplier is scaled by beta, which grows.
        }
        beta *= o.growth;
        if ((it + 1) % 10 == 0 || it + 1 == o.iterations) {
            p.logits(team, v.data(), z.data());
            result.history.push_back(p.residual(z.data()) + o.lambda_c * norm1(v));
        }
        if (o.progress) o.progress(static_cast<double>(it + 1) / o.iterations);
    }
    result.iterations = o.iterations;
    result.objective = result.history.empty() ? 0 : result.history.back();
    return v;
}

} // namespace

namespace detail {

std::vector<int> class_indices(const TrainingSet& set) {
    if (set.classes.size() < 2)
        throw Error("the training pixels have only one class", "Label pixels of at least two classes.");
    std::vector<int> index;
    for (const uint16_t value : set.label) {
        const auto it = std::lower_bound(set.classes.begin(), set.classes.end(), static_cast<int>(value),
                                         [](const ModelClass& c, int v) { return c.value < v; });
        if (it == set.classes.end() || it->value != value)
            throw Error("internal: a training pixel has a class that is not listed");
        index.push_back(static_cast<int>(it - set.classes.begin()));
    }
    return index;
}

double mean_square_distance(const TrainingSet& set) {
    const auto bands = static_cast<size_t>(set.features), samples = set.label.size();
    double sum = 0; // The mean over ordered pairs is twice the mean square distance from the mean spectrum.
    for (size_t b = 0; b < bands; ++b) {
        double mean = 0;
        for (size_t i = 0; i < samples; ++i)
            mean += static_cast<double>(set.values[i * bands + b]) / set.scale / static_cast<double>(samples);
        for (size_t i = 0; i < samples; ++i) {
            const double x = static_cast<double>(set.values[i * bands + b]) / set.scale - mean;
            sum += x * x;
        }
    }
    const double spread = 2 * sum / static_cast<double>(samples);
    if (!(spread > 0) || !std::isfinite(spread))
        throw Error("all training pixels have the same spectrum",
                    "Give training pixels that differ; check the bands (-b).");
    return spread;
}

LorsalResult pack(const TrainingSet& set, const LorsalOptions& options, double spread,
                  const std::vector<double>& weights) {
    LorsalResult r;
    MlrModel& model = r.model;
    const auto bands = static_cast<size_t>(set.features), samples = set.label.size(), d = samples + 1;
    const size_t m = set.classes.size() - 1;
    model.scale = set.scale;
    model.delta = options.delta;
    model.spread = spread;
    model.classes = set.classes;
    for (auto& c : model.classes)
        c.pixels = std::count(set.label.begin(), set.label.end(), static_cast<uint16_t>(c.value));
    model.bands.resize(bands);
    std::iota(model.bands.begin(), model.bands.end(), 1);
    std::vector<size_t> used;
    bool constant = false;
    for (size_t i = 0; i < d; ++i)
        for (size_t k = 0; k < m; ++k)
            if (weights[k * d + i] != 0) {
                if (i == 0)
                    constant = true;
                else
                    used.push_back(i);
                break;
            }
    for (const size_t i : used)
        model.anchors.insert(model.anchors.end(),
                             set.values.begin() + static_cast<ptrdiff_t>((i - 1) * bands),
                             set.values.begin() + static_cast<ptrdiff_t>(i * bands));
    for (size_t k = 0; k < m; ++k) {
        model.weights.push_back(weights[k * d]);
        for (const size_t i : used)
            model.weights.push_back(weights[k * d + i]);
    }
    model.solver = options.optimum ? "optimum" : "paper";
    model.lambda_c = options.lambda_c;
    model.beta = options.optimum ? 0 : options.beta;
    model.training_pixels = static_cast<int64_t>(samples);
    r.active_features = static_cast<int64_t>(used.size()) + (constant ? 1 : 0);
    return r;
}

} // namespace detail

LorsalResult train(const TrainingSet& set, const LorsalOptions& options) {
    const auto d = static_cast<uint64_t>(set.samples()) + 1;
    const uint64_t bytes = training_bytes(d);
    if (bytes > options.memory || d > 40000)
        throw Error(std::to_string(set.samples()) + " training pixels need " + format_byte_size(bytes) +
                        " for their kernel matrix and its factors",
                    "Draw fewer with gdal_hsi_sample, or give more -memory.");
    // The paper's method multiplies blocks of rows. If there were more threads than blocks, some threads
    // would be woken up 800 times without work.
    const auto blocks = static_cast<int>((d + training::block_rows - 1) / training::block_rows);
    const int threads =
        options.optimum ? options.threads : std::clamp(blocks, 1, std::max(1, options.threads));
    const training::SingleThreadedBlas blas(threads);
    Team team(threads);
    const Problem problem(set, options, team);
    LorsalResult way;
    std::vector<double> weights;
    if (options.optimum) {
        training::Optimum found = training::find_optimum(problem, options, team);
        weights = std::move(found.weights);
        way.iterations = found.iterations;
        way.objective = found.objective;
        way.gap = found.gap;
        way.history = std::move(found.history);
    } else {
        weights = paper_path(problem, options, team, way);
    }
    LorsalResult result = detail::pack(set, options, problem.spread, weights);
    result.iterations = way.iterations;
    result.objective = way.objective;
    result.gap = way.gap;
    result.history = std::move(way.history);
    result.model.iterations = result.iterations;
    result.model.objective = result.objective;
    result.model.gap = result.gap;
    return result;
}

namespace {

class CpuBackend final : public Backend {
  public:
    explicit CpuBackend(int threads) : m_threads(threads) {}
    LorsalResult train(const TrainingSet& set, const LorsalOptions& options) override {
        return sahic::train(set, options);
    }
    std::unique_ptr<SpectralPass> make_spectral_pass(std::shared_ptr<const MlrModel> model,
                                                     const SpectralOptions& options, int64_t samples,
                                                     int64_t lines) override {
        return sahic::make_spectral_pass(std::move(model), options, samples, lines);
    }
    std::unique_ptr<MrfSolver> make_mrf_solver(const MrfOptions& options, const MrfLimits& limits) override {
        return sahic::make_mrf_solver(options, limits, m_threads);
    }
    bool joins() const override { return true; }
    std::unique_ptr<MrfSolver> make_joint_mrf_solver(const MrfOptions& options, const MrfLimits& limits,
                                                     std::shared_ptr<parallel::JointMemory> memory) override {
        return sahic::make_mrf_solver(options, limits, std::make_unique<Team>(m_threads, std::move(memory)));
    }
    uint64_t mrf_host_bytes(const MrfLimits& limits) const override { return mrf_bytes(limits); }
    uint64_t mrf_device_bytes(const MrfLimits&) const override { return 0; }

  private:
    const int m_threads;
};

} // namespace

std::unique_ptr<Backend> make_cpu_backend(int threads) { return std::make_unique<CpuBackend>(threads); }

} // namespace hsi::sahic
