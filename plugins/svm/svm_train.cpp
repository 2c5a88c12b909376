// SPDX-License-Identifier: MIT
#include "svm/svm_train.h"

#include "core/cancel_scope.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "core/system.h"
#include "math/elementary.h"
#include "parallel/group.h"
#include "parallel/threads.h"

#include <svm.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>

namespace hsi::svm {
namespace {

using Node = ::svm_node;

struct FreeModel {
    void operator()(::svm_model* m) const { ::svm_free_and_destroy_model(&m); }
};
using LibsvmModel = std::unique_ptr<::svm_model, FreeModel>;

/// Runs trainings, and collects the messages that LIBSVM writes to stderr, which its print hook does not
/// receive. Thread-safe.
class Trainings {
  public:
    /// Trains on a separate thread, because standard error is redirected only for this thread.
    LibsvmModel train(const ::svm_problem& problem, const ::svm_parameter& parameter) {
        const int said = system::file_in_memory("libsvm", 0);
        LibsvmModel model;
        std::exception_ptr error;
        const auto work = [&](bool alone) {
            if (alone && said >= 0) (void)system::redirect_own_errors(said);
            try {
                model.reset(::svm_train(&problem, &parameter));
            } catch (...) {
                error = std::current_exception();
            }
        };
        std::thread thread;
        try {
            thread = std::thread(work, true);
        } catch (const std::system_error&) {
            work(false); // There are too many threads for another one, so LIBSVM prints to stderr.
        }
        if (thread.joinable()) thread.join();
        if (said >= 0) note(said);
        if (error) std::rethrow_exception(error);
        return model;
    }
    bool any() const { return !m_warnings.empty(); }
    /// Returns each message, and the number of trainings of all ranks that printed it.
    std::map<std::string, int64_t> warnings() const {
        auto all = m_warnings;
        all[limit] = parallel::group().sum("trainings that reached the limit of iterations",
                                           all.count(limit) > 0 ? all.at(limit) : 0);
        if (all[limit] == 0) all.erase(limit);
        return all;
    }

  private:
    static constexpr const char* limit = "reaching max number of iterations";

    void note(int file) {
        std::array<char, 4096> text{};
        const ssize_t bytes = ::pread(file, text.data(), text.size(), 0);
        ::close(file);
        std::istringstream lines(std::string(text.data(), static_cast<size_t>(std::max<ssize_t>(bytes, 0))));
        const std::lock_guard lock(m_mutex);
        std::set<std::string> found;
        for (std::string line; std::getline(lines, line);) {
            const std::string mark = "WARNING: ";
            if (line.starts_with(mark)) line.erase(0, mark.size());
            if (!line.empty()) found.insert(line);
        }
        for (const std::string& one : found)
            ++m_warnings[one];
    }

    std::mutex m_mutex;
    std::map<std::string, int64_t> m_warnings;
};

/// The training set in LIBSVM's form, ordered by class and then in the given order, because LIBSVM numbers
/// classes by their first appearance.
struct Problem {
    int n = 0, features = 0, nodes = 0; ///< number of nodes per sample, including the end mark
    std::vector<size_t> order;          ///< index of each sample in the training set
    std::vector<double> y;
    std::vector<Node> storage;
    std::vector<Node*> x;
};

Problem make_problem(const TrainingSet& set, const Model& model) {
    Problem p;
    p.n = static_cast<int>(set.label.size());
    p.features = set.features;
    p.nodes = set.features + 1;
    p.order.resize(set.label.size());
    std::iota(p.order.begin(), p.order.end(), size_t{0});
    std::stable_sort(p.order.begin(), p.order.end(),
                     [&](size_t a, size_t b) { return set.label[a] < set.label[b]; });
    p.storage.resize(static_cast<size_t>(p.n) * static_cast<size_t>(p.nodes));
    for (size_t i = 0; i < p.order.size(); ++i) {
        Node* row = p.storage.data() + i * static_cast<size_t>(p.nodes);
        const float* values = set.values.data() + p.order[i] * static_cast<size_t>(set.features);
        for (int f = 0; f < set.features; ++f) {
            row[f].index = f + 1;
            row[f].value = static_cast<double>(
                scaled(values[f], model.minimum[static_cast<size_t>(f)], model.factor(f)));
        }
        row[set.features].index = -1;
        p.x.push_back(row);
        p.y.push_back(set.label[p.order[i]]);
    }
    return p;
}

::svm_parameter make_parameter(double c, double gamma, double cache_mb, const std::vector<int>& labels,
                               const std::vector<double>& weights) {
    ::svm_parameter q{};
    q.svm_type = C_SVC;
    q.kernel_type = RBF;
    q.gamma = gamma;
    q.C = c;
    q.eps = 1e-3;
    q.shrinking = 1;
    q.cache_size = cache_mb;
    q.nr_weight = static_cast<int>(weights.size());
    q.weight_label = const_cast<int*>(labels.data()); // svm_train only reads this list.
    q.weight = const_cast<double*>(weights.data());
    return q;
}

/// Cross-validation over the grid. If memory allows, kernel matrices are computed once per gamma and step of
/// the search, in the same way as LIBSVM computes its kernel. They are used for all C and all folds (LIBSVM's
/// precomputed kernel). Without them, a grid search mostly computes the same exponentials again. The ranks of
/// a job share the trainings of a gamma; each rank has the kernel matrix.
class GridSearch {
  public:
    GridSearch(const Problem& problem, const TrainOptions& options, const std::vector<int>& fold_of,
               int folds, const std::vector<int>& labels, const std::vector<double>& weights,
               Trainings& trainings)
        : m_problem(problem), m_options(options), m_fold_of(fold_of), m_folds(folds), m_labels(labels),
          m_weights(weights), m_trainings(trainings), m_counted(static_cast<size_t>(folds)) {
        const auto n = static_cast<uint64_t>(problem.n);
        const uint64_t tables = n * n * 8 + n * (n + 2) * sizeof(Node);
        m_tables = tables <= options.memory / 4 * 3;
        m_cache_mb =
            std::clamp(static_cast<double>(options.memory) / 4 / options.threads / (1 << 20), 1.0, 200.0);
        count_samples();
    }

    bool tables() const { return m_tables; }
    int64_t samples() const { return std::accumulate(m_counted.begin(), m_counted.end(), int64_t{0}); }
    double guess() const { return m_guess; }

    std::vector<GridPoint> run() {
        if (m_tables) compute_distances();
        const size_t rows = m_options.c.size(), columns = m_options.gamma.size();
        if (m_options.refine && rows > 2 && columns > 2) {
            search_coarsely();
        } else {
            std::vector<Place> all;
            for (size_t c = 0; c < rows; ++c)
                for (size_t g = 0; g < columns; ++g)
                    all.push_back({c, g});
            evaluate(all, 0);
        }
        return points();
    }

  private:
    using Place = std::pair<size_t, size_t>; ///< indices of the candidates of C and gamma

    /// Searches a coarse grid, then around the best candidate. First, the search evaluates every second
    /// default candidate of C up to 2^7 and every second gamma. While the largest C is the best, it adds the
    /// next larger C. It avoids large C otherwise, since their trainings take most of the time. Then it
    /// evaluates the neighbours of the best candidate until the best candidate does not change.
    void search_coarsely() {
        constexpr size_t around = 8; // number of neighbours
        const size_t rows = m_options.c.size(), columns = m_options.gamma.size();
        size_t largest = (rows / 2 + 1) / 2 * 2;
        std::vector<Place> step;
        const auto add_row = [&](size_t c) {
            for (size_t g = 1; g < columns; g += 2)
                step.push_back({c, g});
        };
        for (size_t c = 0; c <= largest; c += 2)
            add_row(c);
        evaluate(step, around);
        while (best_place().first == largest && largest + 2 < rows) {
            step.clear();
            add_row(largest += 2);
            evaluate(step, around);
        }
        do {
            step.clear();
            const auto [row, column] = best_place();
            for (size_t c = std::max<size_t>(row, 1) - 1; c <= std::min(row + 1, rows - 1); ++c)
                for (size_t g = std::max<size_t>(column, 1) - 1; g <= std::min(column + 1, columns - 1); ++g)
                    if (m_found.count({c, g}) == 0) step.push_back({c, g});
            evaluate(step, 0);
        } while (!step.empty());
    }

    /// `further` is the expected number of candidates after these candidates.
    void evaluate(const std::vector<Place>& places, size_t further) {
        if (places.empty()) return;
        parallel::Group& ranks = parallel::group();
        m_total = m_done + static_cast<double>((places.size() + further) * static_cast<size_t>(m_folds)) /
                               ranks.size();
        std::map<size_t, std::vector<size_t>> rows; // indices of C for each gamma
        for (const auto& [c, g] : places)
            rows[g].push_back(c);
        const auto folds = static_cast<size_t>(m_folds);
        std::vector<int64_t> right;
        for (const auto& [g, c] : rows) {
            const double gamma = m_options.gamma[g];
            if (m_tables) compute_kernel(gamma);
            std::vector<std::atomic<int64_t>> found(c.size() * folds);
            // The largest C comes first, because its trainings take longest.
            ranks.for_each("cross-validation", static_cast<int64_t>(found.size()), m_options.threads,
                           m_options.cancel, [&, &all = c](int64_t task, int) {
                               const size_t at = found.size() - 1 - static_cast<size_t>(task);
                               found[at] += held_out(m_options.c[all[at / folds]], gamma,
                                                     static_cast<int>(at % folds));
                               tick();
                           });
            right.insert(right.end(), found.begin(), found.end());
        }
        ranks.add_up("cross-validation", right);
        size_t at = 0;
        for (const auto& [g, c] : rows)
            for (const size_t row : c) {
                m_found[{row, g}].assign(right.begin() + static_cast<ptrdiff_t>(at),
                                         right.begin() + static_cast<ptrdiff_t>(at + folds));
                at += folds;
            }
        if (m_options.refine && m_options.searched) m_options.searched(points());
    }

    std::vector<GridPoint> points() const {
        std::vector<GridPoint> grid;
        for (const auto& [place, right] : m_found) {
            GridPoint point{m_options.c[place.first], m_options.gamma[place.second], 0, 0};
            point.accuracy = static_cast<double>(std::accumulate(right.begin(), right.end(), int64_t{0})) /
                             static_cast<double>(std::max<int64_t>(1, samples()));
            double squares = 0, folds = 0;
            for (size_t k = 0; k < right.size(); ++k) {
                if (m_counted[k] == 0) continue;
                const double off =
                    static_cast<double>(right[k]) / static_cast<double>(m_counted[k]) - point.accuracy;
                squares += off * off;
                folds += 1;
            }
            if (folds > 1) point.error = std::sqrt(squares / (folds - 1) / folds);
            grid.push_back(point);
        }
        return grid;
    }

    Place best_place() const {
        const auto grid = points();
        return std::next(m_found.begin(), &best_of(grid) - grid.data())->first;
    }

    /// Counts the samples of each fold whose class also occurs in another fold; only these samples count in
    /// the accuracy. Sets m_guess to the fraction of the counted samples that are in the largest class.
    void count_samples() {
        std::map<double, std::vector<int64_t>> of_class;
        for (size_t i = 0; i < m_problem.y.size(); ++i) {
            auto& folds = of_class[m_problem.y[i]];
            folds.resize(m_counted.size());
            ++folds[static_cast<size_t>(m_fold_of[i])];
        }
        int64_t largest = 0;
        for (const auto& [value, folds] : of_class) {
            const int64_t all = std::accumulate(folds.begin(), folds.end(), int64_t{0});
            int64_t of_this = 0;
            for (size_t k = 0; k < folds.size(); ++k)
                if (folds[k] < all) {
                    m_counted[k] += folds[k];
                    of_this += folds[k];
                }
            largest = std::max(largest, of_this);
        }
        m_guess = static_cast<double>(largest) / static_cast<double>(std::max<int64_t>(1, samples()));
    }

    void compute_distances() {
        const auto n = static_cast<size_t>(m_problem.n), features = static_cast<size_t>(m_problem.features);
        m_distance.resize(n * n);
        std::vector<double> by_feature(features * n), square(n, 0.0);
        for (size_t i = 0; i < n; ++i)
            for (size_t f = 0; f < features; ++f) {
                const double v = m_problem.x[i][f].value;
                by_feature[f * n + i] = v;
                square[i] += v * v;
            }
        parallel::for_each(m_problem.n, m_options.threads, m_options.cancel, [&](int64_t row, int) {
            const auto i = static_cast<size_t>(row);
            double* dot = m_distance.data() + i * n;
            std::fill_n(dot, n, 0.0);
            // The order of additions is the same as in LIBSVM.
            for (size_t f = 0; f < features; ++f) {
                const double v = by_feature[f * n + i];
                const double* other = by_feature.data() + f * n;
                for (size_t j = 0; j < n; ++j)
                    dot[j] += v * other[j];
            }
            for (size_t j = 0; j < n; ++j)
                dot[j] = square[i] + square[j] - 2 * dot[j];
        });
    }

    void compute_kernel(double gamma) {
        const auto n = static_cast<size_t>(m_problem.n);
        m_kernel.resize(n * (n + 2));
        m_kernel_rows.resize(n);
        parallel::for_each(m_problem.n, m_options.threads, m_options.cancel, [&](int64_t at, int) {
            const auto i = static_cast<size_t>(at);
            Node* row = m_kernel.data() + i * (n + 2);
            // LIBSVM expects the number of the sample, counted from 1.
            row[0] = {0, static_cast<double>(i + 1)};
            for (size_t j = 0; j < n; ++j)
                row[j + 1] = {static_cast<int>(j + 1), math::exp(-gamma * m_distance[i * n + j])};
            row[n + 1] = {-1, 0};
            m_kernel_rows[i] = row;
        });
    }

    /// Returns how many samples of the fold are classified correctly by a model that was trained on the other
    /// folds.
    int64_t held_out(double c, double gamma, int fold) {
        const auto& rows = m_tables ? m_kernel_rows : m_problem.x;
        std::vector<Node*> x;
        std::vector<double> y;
        for (size_t i = 0; i < rows.size(); ++i)
            if (m_fold_of[i] != fold) {
                x.push_back(rows[i]);
                y.push_back(m_problem.y[i]);
            }
        auto parameter = make_parameter(c, gamma, m_cache_mb, m_labels, m_weights);
        if (m_tables) parameter.kernel_type = PRECOMPUTED;
        const ::svm_problem part{static_cast<int>(x.size()), y.data(), x.data()};
        const LibsvmModel model = m_trainings.train(part, parameter);
        int64_t right = 0;
        for (size_t i = 0; i < rows.size(); ++i) {
            if (m_fold_of[i] != fold) continue;
            check_cancelled();
            right += ::svm_predict(model.get(), rows[i]) == m_problem.y[i];
        }
        return right;
    }

    void tick() {
        const std::lock_guard lock(m_mutex);
        m_done += 1;
        // The progress never falls, although the total may grow.
        m_shown = std::max(m_shown, 0.95 * std::min(1.0, m_done / m_total));
        if (m_options.progress) m_options.progress(m_shown);
    }

    const Problem& m_problem;
    const TrainOptions& m_options;
    const std::vector<int>& m_fold_of;
    const int m_folds;
    const std::vector<int>& m_labels;
    const std::vector<double>& m_weights;
    Trainings& m_trainings;
    bool m_tables = false;
    double m_cache_mb = 100;
    std::vector<double> m_distance; ///< [sample][sample], squared distances
    std::vector<Node> m_kernel;
    std::vector<Node*> m_kernel_rows;
    std::mutex m_mutex;
    double m_done = 0, m_total = 1, m_shown = 0;
    std::map<Place, std::vector<int64_t>> m_found; ///< number of correct samples per fold
    std::vector<int64_t> m_counted;                ///< number of samples per fold
    double m_guess = 0;
};

/// Sets the ranges of the features from the training set.
void scale_to(const TrainingSet& set, Model& model) {
    const auto n = static_cast<size_t>(set.features);
    model.minimum.assign(n, 0);
    model.maximum.assign(n, 0);
    for (size_t f = 0; f < n; ++f) {
        model.minimum[f] = model.maximum[f] = static_cast<double>(set.values[f]);
        for (size_t i = 1; i < set.label.size(); ++i) {
            const auto v = static_cast<double>(set.values[i * n + f]);
            model.minimum[f] = std::min(model.minimum[f], v);
            model.maximum[f] = std::max(model.maximum[f], v);
        }
    }
}

void take_machine(const ::svm_model& from, const Problem& problem, Model& to) {
    const auto k = to.classes.size(), n = static_cast<size_t>(problem.features),
               vectors = static_cast<size_t>(from.l);
    const size_t pairs = k * (k - 1) / 2;
    to.support_count.assign(from.nSV, from.nSV + k);
    to.support_vectors.clear();
    for (size_t v = 0; v < vectors; ++v)
        for (size_t f = 0; f < n; ++f)
            to.support_vectors.push_back(static_cast<float>(from.SV[v][f].value));
    to.coefficients.clear();
    for (size_t i = 0; i + 1 < k; ++i)
        to.coefficients.insert(to.coefficients.end(), from.sv_coef[i], from.sv_coef[i] + vectors);
    to.rho.assign(from.rho, from.rho + pairs);
    if (from.probA && from.probB) {
        to.prob_a.assign(from.probA, from.probA + pairs);
        to.prob_b.assign(from.probB, from.probB + pairs);
    }
}

std::string label(const ModelClass& c) {
    std::string text = "class " + std::to_string(c.value);
    if (!c.name.empty()) text += " (" + c.name + ")";
    return text;
}

} // namespace

std::vector<double> default_c() {
    std::vector<double> v;
    for (int e = -5; e <= 15; e += 2)
        v.push_back(std::ldexp(1.0, e));
    return v;
}

std::vector<double> default_gamma() {
    std::vector<double> v;
    for (int e = -15; e <= 3; e += 2)
        v.push_back(std::ldexp(1.0, e));
    return v;
}

std::vector<int> stratified_folds(const std::vector<uint16_t>& label, int folds, uint64_t seed) {
    std::map<uint16_t, std::vector<size_t>> members;
    for (size_t i = 0; i < label.size(); ++i)
        members[label[i]].push_back(i);
    std::vector<int> fold(label.size());
    size_t offset = 0; // The offset continues from class to class, so that the sizes of the folds stay equal.
    for (auto& [value, pixels] : members) {
        std::seed_seq mix{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                          static_cast<uint32_t>(value)};
        std::mt19937_64 random(mix);
        for (size_t i = pixels.size(); i > 1; --i) {
            // The random numbers are unbiased, and equal on all platforms.
            const uint64_t limit = UINT64_MAX - UINT64_MAX % i;
            uint64_t x = random();
            while (x >= limit)
                x = random();
            std::swap(pixels[i - 1], pixels[x % i]);
        }
        for (const size_t i : pixels)
            fold[i] = static_cast<int>(offset++ % static_cast<size_t>(folds));
    }
    return fold;
}

const GridPoint& best_of(const std::vector<GridPoint>& grid) {
    const GridPoint* best = &grid.front();
    for (const auto& point : grid)
        if (point.accuracy > best->accuracy) best = &point; // The first of several equal points wins.
    return *best;
}

const GridPoint& simplest_of_best(const std::vector<GridPoint>& grid, double guess) {
    const GridPoint& highest = best_of(grid);
    return *std::find_if(grid.begin(), grid.end(), [&](const GridPoint& point) {
        return point.accuracy >= highest.accuracy - highest.error &&
               (point.accuracy > guess || highest.accuracy <= guess);
    });
}

std::vector<double> balanced_weights(const std::vector<ModelClass>& classes) {
    int64_t total = 0;
    for (const auto& c : classes)
        total += c.pixels;
    std::vector<double> weights;
    for (const auto& c : classes)
        weights.push_back(static_cast<double>(total) /
                          (static_cast<double>(classes.size()) * static_cast<double>(c.pixels)));
    return weights;
}

RegressionMachine train_regression(const std::vector<float>& x, const std::vector<double>& y,
                                   const RegressionOptions& options) {
    ::svm_set_print_string_function([](const char*) {});
    const size_t n = y.size(), features = x.size() / n;
    std::vector<Node> nodes(n * (features + 1));
    std::vector<Node*> rows;
    for (size_t i = 0; i < n; ++i) {
        Node* const row = nodes.data() + i * (features + 1);
        for (size_t f = 0; f < features; ++f)
            row[f] = {static_cast<int>(f) + 1, static_cast<double>(x[i * features + f])};
        row[features].index = -1;
        rows.push_back(row);
    }
    auto parameter =
        make_parameter(options.c, options.gamma, static_cast<double>(options.memory >> 20), {}, {});
    parameter.svm_type = EPSILON_SVR;
    parameter.p = options.epsilon;
    ::svm_problem problem{static_cast<int>(n), const_cast<double*>(y.data()), rows.data()};
    if (const char* wrong = ::svm_check_parameter(&problem, &parameter))
        throw Error("LIBSVM: " + std::string(wrong));
    Trainings trainings;
    const LibsvmModel trained = trainings.train(problem, parameter);
    RegressionMachine machine;
    for (int v = 0; v < trained->l; ++v)
        machine.support.push_back(trained->sv_indices[v] - 1);
    machine.coefficients.assign(trained->sv_coef[0], trained->sv_coef[0] + trained->l);
    machine.rho = trained->rho[0];
    machine.at_limit = trainings.any();
    return machine;
}

TrainResult train(const TrainingSet& set, const TrainOptions& options) {
    TrainResult result;
    Model& model = result.model;
    model.classes = set.classes;
    for (auto& c : model.classes)
        c.pixels = std::count(set.label.begin(), set.label.end(), static_cast<uint16_t>(c.value));
    if (model.classes.size() < 2)
        throw Error("the labels have only one class" +
                        (set.classes.empty() ? std::string() : ": " + label(set.classes[0])),
                    "A classifier needs at least two classes.");
    int64_t smallest = INT64_MAX;
    for (const auto& c : model.classes) {
        smallest = std::min(smallest, c.pixels);
        if (c.pixels < 1) throw Error(label(c) + " has no training pixel");
    }
    const bool search = options.c.size() * options.gamma.size() > 1 || options.always_validate;
    if (search && smallest < 2 && options.fold.empty()) {
        std::string list;
        size_t count = 0;
        for (const auto& c : model.classes)
            if (c.pixels < 2) list += (count++ == 0 ? "" : ", ") + label(c);
        throw Error(list + worded(count, " has 1", " have 1") + " training pixel" +
                        worded(count, "", " each") + ": cross-validation needs at least 2 of each class",
                    "Label more pixels, leave the class out (-leave-out), or give -C and -gamma.");
    }
    if (set.label.size() > 10000000)
        throw Error("more than 10 million training pixels", "Use gdal_hsi_sample to draw fewer.");

    ::svm_set_print_string_function([](const char*) {});
    scale_to(set, model);
    const Problem problem = make_problem(set, model);
    std::vector<int> labels;
    std::vector<double> weights;
    for (const auto& c : model.classes)
        if (c.weight != 1) {
            labels.push_back(c.value);
            weights.push_back(c.weight);
        }

    Trainings trainings;
    model.c = options.c.front();
    model.gamma = options.gamma.front();
    model.seed = options.seed;
    if (search) {
        result.fold = options.fold;
        result.folds = options.folds;
        if (result.fold.empty()) {
            result.folds = static_cast<int>(std::max<int64_t>(2, std::min<int64_t>(options.folds, smallest)));
            result.fold = stratified_folds(set.label, result.folds, options.seed);
        }
        std::vector<int> fold_of(set.label.size());
        for (size_t i = 0; i < fold_of.size(); ++i)
            fold_of[i] = result.fold[problem.order[i]];
        GridSearch search_grid(problem, options, fold_of, result.folds, labels, weights, trainings);
        result.kernel_tables = search_grid.tables();
        result.samples = search_grid.samples();
        result.guess = search_grid.guess();
        result.grid = search_grid.run();
        const GridPoint& best =
            options.fold.empty() ? best_of(result.grid) : simplest_of_best(result.grid, result.guess);
        model.c = best.c;
        model.gamma = best.gamma;
        model.cv_accuracy = best.accuracy;
        model.folds = result.folds;
    }
    if (options.cancel && options.cancel->requested()) throw Cancelled();

    const double cache_mb = std::clamp(static_cast<double>(options.memory) / (1 << 20), 1.0, 1000.0);
    auto parameter = make_parameter(model.c, model.gamma, cache_mb, labels, weights);
    parameter.probability = options.probability ? 1 : 0;
    // LIBSVM draws the folds for its probabilities with rand().
    std::srand(static_cast<unsigned>(options.seed));
    ::svm_problem whole{problem.n, const_cast<double*>(problem.y.data()),
                        const_cast<Node**>(problem.x.data())};
    if (const char* wrong = ::svm_check_parameter(&whole, &parameter))
        throw Error("LIBSVM: " + std::string(wrong));
    const LibsvmModel trained = trainings.train(whole, parameter);
    result.warnings = trainings.warnings();
    take_machine(*trained, problem, model);
    if (options.progress) options.progress(1.0);
    return result;
}

} // namespace hsi::svm
