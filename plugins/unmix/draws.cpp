// SPDX-License-Identifier: MIT
#include "unmix/draws.h"

#include "core/cancel_scope.h"
#include "core/cube_view.h"
#include "core/error.h"
#include "core/valid_pixel.h"
#include "math/philox.h"
#include "math/simd_target.h"
#include "unmix/draw_plan.h"
#include "unmix/draws_simd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

namespace hsi::unmix {
namespace {

constexpr size_t at_once = draw_pixels;

double length_of(const std::vector<double>& x) {
    double sum = 0;
    for (const double v : x)
        sum += v * v;
    return std::sqrt(sum);
}

/// Returns the name without a trailing number and its separator. A name without a number is returned
/// unchanged.
std::string without_number(const std::string& name) {
    size_t end = name.size();
    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9')
        --end;
    if (end == name.size()) return name;
    size_t start = end;
    while (start > 0 && std::string(" \t_:#,-").find(name[start - 1]) != std::string::npos)
        --start;
    return start == end || start == 0 ? name : name.substr(0, start);
}

/// The statistics of a pixel over its realisations, for each class: mean and sum of squared deviations,
/// updated after each realisation.
struct Moments {
    explicit Moments(size_t classes) : mean(classes), squared(classes), fraction(classes) {}
    void start() {
        std::fill(mean.begin(), mean.end(), 0.0);
        std::fill(squared.begin(), squared.end(), 0.0);
        count = sum = error = 0;
    }
    void add(double whole, double rmse) {
        ++count;
        sum += whole;
        error += rmse;
        for (size_t c = 0; c < mean.size(); ++c) {
            const double apart = fraction[c] - mean[c];
            mean[c] += apart / count;
            squared[c] += apart * (fraction[c] - mean[c]);
        }
    }
    std::vector<double> mean, squared, fraction;
    double count = 0, sum = 0, error = 0;
};

class DrawWorker final : public stream::Worker {
  public:
    explicit DrawWorker(const DrawPlan& plan)
        : m_kernels(draw_kernels()), m_options(plan.options), m_draws(plan.draws),
          m_bands(static_cast<size_t>(plan.library.bands())), m_values(m_bands * at_once),
          m_sigma(m_options.noise ? m_bands * at_once : 0), m_noisy(m_options.noise ? m_bands * at_once : 0),
          m_products((m_options.noise ? plan.most : plan.library.spectra.size()) * at_once), m_one(plan.most),
          m_moments(at_once, Moments(plan.classes)) {
        for (const auto& draw : m_draws)
            m_solvers.push_back(std::make_unique<Solver>(draw->mixture));
        for (const auto& spectrum : plan.library.spectra)
            m_spectra.push_back(spectrum.data());
    }

    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        for (int64_t line = 0; line < in.lines; ++line)
            for (int64_t first = 0; first < in.samples; first += static_cast<int64_t>(at_once)) {
                const auto count =
                    static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(at_once), in.samples - first));
                take(in, line, first, count);
                m_first = m_options.numbers.of(tile.core.y + line, tile.core.x + first);
                unmix(count);
                for (size_t i = 0; i < count; ++i)
                    write(i, line, first + static_cast<int64_t>(i), out);
            }
    }
    int64_t valid = 0, invalid = 0;

  private:
    /// Loads the values of a strip, and determines its valid pixels.
    void take(const CubeView<float>& in, int64_t line, int64_t first, size_t count) {
        m_squared.fill(0.0);
        m_valid.fill(true);
        for (size_t b = 0; b < m_bands; ++b) {
            const float* const from = in.row(static_cast<int>(b), line) + first;
            for (size_t i = 0; i < count; ++i) {
                const double v = from[i];
                m_values[b * at_once + i] = v;
                m_squared[i] += v * v;
            }
        }
        for (size_t i = 0; i < count; ++i)
            m_valid[i] = is_valid_sum(m_squared[i]);
        for (size_t b = 0; b < m_bands && m_options.noise; ++b) {
            const float* const from = in.row(static_cast<int>(m_bands + b), line) + first;
            for (size_t i = 0; i < count; ++i) {
                m_sigma[b * at_once + i] = from[i];
                m_valid[i] = m_valid[i] && from[i] >= 0 && std::isfinite(from[i]);
            }
        }
    }

    void unmix(size_t count) {
        for (auto& moments : m_moments)
            moments.start();
        const auto bands = static_cast<int>(m_bands);
        if (!m_options.noise)
            m_kernels.multiply(m_values.data(), bands, m_spectra.data(), m_spectra.size(), m_products.data());
        for (size_t d = 0; d < m_draws.size(); ++d) {
            check_cancelled();
            const Draw& draw = *m_draws[d];
            if (m_options.noise) {
                m_kernels.add_noise(m_values.data(), m_sigma.data(), bands,
                                    static_cast<uint32_t>(draw.number), m_options.seed,
                                    static_cast<uint64_t>(m_first), m_noisy.data(), m_squared.data());
                m_kernels.multiply(m_noisy.data(), bands, draw.spectra.data(), draw.spectra.size(),
                                   m_products.data());
            }
            for (size_t i = 0; i < count; ++i)
                if (m_valid[i]) solve(draw, *m_solvers[d], i);
        }
    }

    void solve(const Draw& draw, Solver& solver, size_t i) {
        const size_t p = draw.mixture.size();
        double squared = m_squared[i];
        for (size_t k = 0; k < p; ++k)
            m_one[k] = m_products[(m_options.noise ? k : static_cast<size_t>(draw.members[k])) * at_once + i];
        if (m_options.normalise == Normalise::unit) {
            if (!(squared > 0)) return; // The noise has made all values zero.
            const double length = std::sqrt(squared);
            for (size_t k = 0; k < p; ++k)
                m_one[k] /= length;
            squared = 1;
        }
        const double residual = solver.solve(m_one.data(), squared, m_options.rmse);
        Moments& moments = m_moments[i];
        std::fill(moments.fraction.begin(), moments.fraction.end(), 0.0);
        double whole = 0;
        for (size_t k = 0; k < p; ++k) {
            moments.fraction[static_cast<size_t>(draw.class_of[k])] += solver.abundances()[k];
            whole += solver.abundances()[k];
        }
        if (m_options.method == Method::nnls) {
            if (!(whole > 1e-9)) return;
            for (double& fraction : moments.fraction)
                fraction /= whole;
        }
        moments.add(whole, std::sqrt(residual / static_cast<double>(m_bands)));
    }

    void write(size_t i, int64_t line, int64_t sample, const std::vector<CubeView<float>>& out) {
        const Moments& moments = m_moments[i];
        const bool any = m_valid[i] && moments.count > 0;
        ++(m_valid[i] ? valid : invalid);
        const auto put = [&](size_t output, size_t band, bool there, double v) {
            out[output].row(static_cast<int>(band), line)[sample] = there ? static_cast<float>(v) : no_value;
        };
        const size_t classes = moments.mean.size();
        for (size_t c = 0; c < classes; ++c)
            put(0, c, any, moments.mean[c]);
        if (m_options.method == Method::nnls) put(0, classes, any, moments.sum / moments.count);
        size_t output = 1;
        if (m_options.deviation) {
            for (size_t c = 0; c < classes; ++c)
                put(output, c, any && moments.count > 1,
                    std::sqrt(std::max(0.0, moments.squared[c]) / (moments.count - 1)));
            ++output;
        }
        if (m_options.rmse) put(output, 0, any, moments.error / moments.count);
    }

    const DrawKernels& m_kernels;
    const DrawOptions& m_options;
    const std::vector<std::unique_ptr<Draw>>& m_draws;
    std::vector<const double*> m_spectra; ///< pointers to the spectra of the library
    const size_t m_bands;
    std::vector<double> m_values, m_sigma, m_noisy, m_products, m_one;
    std::vector<Moments> m_moments;
    std::vector<std::unique_ptr<Solver>> m_solvers;
    std::array<double, at_once> m_squared{};
    std::array<bool, at_once> m_valid{};
    int64_t m_first = 0; ///< number of the strip's first pixel
};

class CpuDraws final : public DrawUnmixing {
  public:
    CpuDraws(const Endmembers& library, const Classes& classes, const DrawOptions& options)
        : m_plan(library, classes, options) {
        m_skipped = m_plan.skipped;
    }
    std::vector<int> output_bands() const override { return m_plan.output_bands(); }
    uint64_t scratch_bytes(const stream::TileLimits&) const override {
        const uint64_t bands = static_cast<uint64_t>(m_plan.library.bands()), p = m_plan.most;
        return (at_once * (3 * bands + m_plan.library.spectra.size() + p + 3 * m_plan.classes + 8) +
                m_plan.draws.size() * (p * (p + 1) / 2 + 8 * p + 32)) *
               sizeof(double);
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<DrawWorker>(m_plan);
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const DrawWorker&>(worker);
        m_valid += w.valid;
        m_invalid += w.invalid;
    }

  private:
    const DrawPlan m_plan;
};

} // namespace

Draw::Draw(int n, const Endmembers& chosen, Method method, std::vector<int> of_library,
           std::vector<int> classes)
    : number(n), mixture(chosen, method), members(std::move(of_library)), class_of(std::move(classes)) {
    for (size_t k = 0; k < mixture.size(); ++k)
        spectra.push_back(mixture.spectrum(k));
}

DrawPlan::DrawPlan(const Endmembers& all, const Classes& of, const DrawOptions& how)
    : options(how), classes(of.names.size()), library(normalised(all, how.normalise)) {
    std::string why;
    for (int d = 0; d < options.draws; ++d) {
        Endmembers chosen;
        std::vector<int> members, class_of;
        const auto subset = drawn(of, options, d);
        for (size_t c = 0; c < subset.size(); ++c)
            for (const int k : subset[c]) {
                members.push_back(k);
                class_of.push_back(static_cast<int>(c));
                chosen.names.push_back(library.names[static_cast<size_t>(k)]);
                chosen.spectra.push_back(library.spectra[static_cast<size_t>(k)]);
            }
        try {
            check_endmembers(chosen, options.method);
        } catch (const Error& e) {
            ++skipped;
            why = e.what();
            continue;
        }
        most = std::max(most, members.size());
        draws.push_back(
            std::make_unique<Draw>(d, chosen, options.method, std::move(members), std::move(class_of)));
    }
    if (draws.empty())
        throw Error("no draw can be unmixed: " + why,
                    "Use fewer spectra per class (-per-class), or another library.");
}

std::vector<int> DrawPlan::output_bands() const {
    const auto count = static_cast<int>(classes);
    std::vector<int> bands{count + (options.method == Method::nnls ? 1 : 0)};
    if (options.deviation) bands.push_back(count);
    if (options.rmse) bands.push_back(1);
    return bands;
}

std::string class_in_name(const std::string& name) { return without_number(without_number(name)); }

Classes classes_of(const std::vector<std::string>& names) {
    std::vector<std::string> classes;
    classes.reserve(names.size());
    for (const auto& name : names)
        classes.push_back(class_in_name(name));
    return classes_from(classes);
}

Classes classes_from(const std::vector<std::string>& class_of_each) {
    Classes classes;
    for (size_t k = 0; k < class_of_each.size(); ++k) {
        const std::string& name = class_of_each[k];
        const auto at = std::find(classes.names.begin(), classes.names.end(), name);
        const auto c = static_cast<size_t>(at - classes.names.begin());
        if (at == classes.names.end()) {
            classes.names.push_back(name);
            classes.members.emplace_back();
        }
        classes.members[c].push_back(static_cast<int>(k));
    }
    return classes;
}

std::vector<std::vector<int>> drawn(const Classes& classes, const DrawOptions& options, int draw) {
    uint32_t used = 0;
    math::PhiloxWords words{};
    const auto next = [&] {
        if (used % 4 == 0) words = math::philox({used / 4, 0, static_cast<uint32_t>(draw), 0}, options.seed);
        return words[used++ % 4];
    };
    auto subset = classes.members;
    for (auto& members : subset) {
        const auto n = static_cast<uint64_t>(members.size()),
                   wanted = static_cast<uint64_t>(options.per_class);
        if (n <= wanted) continue;
        for (uint64_t i = 0; i < wanted; ++i)
            std::swap(members[i], members[i + (next() * (n - i) >> 32)]);
        members.resize(static_cast<size_t>(wanted));
    }
    return subset;
}

Endmembers normalised(Endmembers library, Normalise how) {
    for (size_t k = 0; k < library.spectra.size(); ++k) {
        const double length = length_of(library.spectra[k]);
        if (!std::isfinite(length))
            throw Error("the spectrum '" + library.names[k] + "' is NaN or infinite in some bands",
                        "Leave out these bands with -b, or use another spectrum.");
        if (how != Normalise::none && !(length > 0))
            throw Error("the spectrum '" + library.names[k] + "' is all zero: it has no length to normalise",
                        "Leave it out, or leave out -normalise.");
    }
    if (how == Normalise::none) return library;
    double mean = 0; // The length divided by the square root of the number of bands is the root mean square.
    for (const auto& x : library.spectra)
        mean += length_of(x) / static_cast<double>(library.spectra.size());
    for (auto& x : library.spectra) {
        const double factor = (how == Normalise::unit ? 1 : mean) / length_of(x);
        for (double& v : x)
            v *= factor;
    }
    return library;
}

std::unique_ptr<DrawUnmixing> make_draws(const Endmembers& library, const Classes& classes,
                                         const DrawOptions& options) {
    return std::make_unique<CpuDraws>(library, classes, options);
}

const char* simd_target() { return math::simd_target(); }

} // namespace hsi::unmix
