// SPDX-License-Identifier: MIT
#include "indices/indices.h"

#include "core/cube_view.h"
#include "core/error.h"
#include "core/valid_pixel.h"
#include "math/continuum.h"
#include "math/resampling.h"
#include "parallel/group.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace hsi::indices {
namespace {

using Of = Operand::Of;
constexpr double nodata = std::numeric_limits<double>::quiet_NaN();
constexpr double same_wavelength = 1e-6; // nm
constexpr double least_reflectance = -0.5, greatest_reflectance = 1.5;

// Bands of a wavelength
// ----------------------------------------------------------------------------------------------------------

Term nearest_band(double at, const std::vector<double>& nm, double tolerance) {
    size_t best = nm.size();
    for (size_t b = 0; b < nm.size(); ++b)
        if (nm[b] > 0 && std::fabs(nm[b] - at) <= tolerance &&
            (best == nm.size() || std::fabs(nm[b] - at) < std::fabs(nm[best] - at)))
            best = b;
    return best < nm.size() ? Term{{best}, {1}} : Term{};
}

Term line_between(double at, const std::vector<double>& nm, double farthest) {
    const auto rising = math::rising_bands(nm);
    size_t k = 0;
    while (k < rising.size() && nm[rising[k]] < at - same_wavelength)
        ++k;
    if (k == rising.size()) return {};
    if (nm[rising[k]] <= at + same_wavelength) return {{rising[k]}, {1}};
    if (k == 0) return {};
    const size_t before = rising[k - 1], behind = rising[k];
    const double step = nm[behind] - nm[before];
    if (step > farthest) return {};
    return {{before, behind}, {(nm[behind] - at) / step, (at - nm[before]) / step}};
}

Term mean_around(double at, const std::vector<double>& nm, double half) {
    const auto near = math::rising_bands(nm, at - half, at + half);
    return {near, std::vector<double>(near.size(), 1.0 / static_cast<double>(near.size()))};
}

Term under_response(double at, const Bands& bands, double width) {
    const auto plan =
        math::plan_resampling({bands.wavelengths, bands.widths}, {{at}, {width}}, math::Resampling::response);
    return plan.bands.empty() ? Term{} : Term{plan.bands.front().sources, plan.bands.front().weights};
}

// Ranges
// ----------------------------------------------------------------------------------------------------------

/// Returns the wavelength where the red edge is steepest (Horler et al. 1983). This is the position of the
/// greatest slope between neighbouring bands, refined by a parabola through this slope and the slopes on both
/// sides.
double edge_of(const double* x, const double* v, size_t n) {
    constexpr double equal = 1e-12;
    const auto slope = [&](size_t j) { return (v[j + 1] - v[j]) / (x[j + 1] - x[j]); };
    const auto middle = [&](size_t j) { return (x[j] + x[j + 1]) / 2; };
    double most = slope(0);
    for (size_t j = 1; j + 1 < n; ++j)
        most = std::max(most, slope(j));
    if (!(most > 0)) return nodata;
    size_t j = 0;
    while (slope(j) < most - equal * most)
        ++j;
    if (j == 0 || j + 2 == n) return middle(j);
    const double left = (middle(j - 1) + middle(j)) / 2, right = (middle(j) + middle(j + 1)) / 2;
    const double d1 = (slope(j) - slope(j - 1)) / (middle(j) - middle(j - 1)),
                 d2 = (slope(j + 1) - slope(j)) / (middle(j + 1) - middle(j));
    const double a = (d2 - d1) / (middle(j + 1) - middle(j - 1));
    return a < 0 ? std::clamp(left - d1 / (2 * a), left, right) : middle(j);
}

double measure(Of of, const double* x, const double* v, size_t n) {
    switch (of) {
    case Of::least:
        return *std::min_element(v, v + n);
    case Of::greatest:
        return *std::max_element(v, v + n);
    case Of::least_at:
        return x[std::min_element(v, v + n) - v];
    case Of::greatest_at:
        return x[std::max_element(v, v + n) - v];
    case Of::edge:
        return edge_of(x, v, n);
    default: { // standard deviation
        const double mean = std::accumulate(v, v + n, 0.0) / static_cast<double>(n);
        double squares = 0;
        for (size_t k = 0; k < n; ++k)
            squares += (v[k] - mean) * (v[k] - mean);
        return std::sqrt(squares / static_cast<double>(n - 1));
    }
    }
}

/// Returns weights for ranges whose value is a weighted sum of bands.
std::vector<double> weights_of(Of of, const std::vector<double>& x) {
    const size_t n = x.size();
    const double count = static_cast<double>(n), mean = std::accumulate(x.begin(), x.end(), 0.0) / count;
    std::vector<double> weights(n, of == Of::mean ? 1 / count : of == Of::sum ? 1.0 : 0.0);
    double squares = 0;
    for (const double v : x)
        squares += (v - mean) * (v - mean);
    for (size_t k = 0; k < n; ++k) {
        if (of == Of::slope) weights[k] = (x[k] - mean) / squares;
        if (of == Of::area) weights[k] = (x[std::min(k + 1, n - 1)] - x[k > 0 ? k - 1 : 0]) / 2;
    }
    return weights;
}

bool is_sum(Of of) { return of <= Of::sum || of == Of::slope || of == Of::area; }

// Values
// ----------------------------------------------------------------------------------------------------------

/// A term that is ready for evaluation: either a sum of factor * stored plus a constant, or a measure of
/// scaled values.
struct Source {
    Of of;
    std::vector<size_t> bands;
    std::vector<double> x, factor, offset;
    double constant = 0; ///< constant that is added to a sum
};

Source source_of(const Operand& operand, const Bands& bands) {
    const auto term = term_of(operand, bands, {});
    if (term.sources.empty()) throw Error("'" + operand.text + "' has not enough bands");
    Source s{operand.of, term.sources, {}, term.weights, {}, 0};
    if (operand.is_range())
        for (const size_t b : s.bands)
            s.x.push_back(bands.wavelengths[b]);
    if (s.factor.empty())
        s.factor = is_sum(s.of) ? weights_of(s.of, s.x) : std::vector<double>(s.x.size(), 1.0);
    for (size_t k = 0; k < s.bands.size(); ++k) {
        s.offset.push_back(bands.offset.empty() ? 0 : bands.offset[s.bands[k]]);
        s.constant += s.factor[k] * s.offset.back();
        if (!bands.scale.empty()) s.factor[k] *= bands.scale[s.bands[k]];
    }
    return s;
}

class Program {
  public:
    Program(const std::string& text, const Bands& bands) : m_expression(text) {
        for (const Operand& operand : m_expression.operands())
            m_sources.push_back(source_of(operand, bands));
    }
    size_t operands() const { return m_sources.size(); }
    size_t depth() const { return m_expression.depth(); }
    Cost cost() const {
        size_t values = 0;
        for (const Source& s : m_sources)
            values += s.bands.size();
        return cost::value * static_cast<double>(values) +
               cost::step * static_cast<double>(m_expression.steps());
    }

    /// Evaluates the expression. `rows` has `count` values per band; `values` has operands() rows. The
    /// results are the first `count` values of `stack`.
    template <class T>
    void compute(const T* const* rows, size_t count, double* values, double* stack,
                 std::vector<double>& spectrum) const {
        for (size_t k = 0; k < m_sources.size(); ++k) {
            double* const to = values + k * block;
            if (is_sum(m_sources[k].of))
                add(m_sources[k], rows, count, to);
            else
                look(m_sources[k], rows, count, to, spectrum);
            std::fill(to + count, to + block, 0.0);
        }
        m_expression.evaluate(values, stack);
    }

  private:
    template <class T>
    static void add(const Source& s, const T* const* rows, size_t count, double* to) {
        std::fill_n(to, count, s.constant);
        for (size_t k = 0; k < s.bands.size(); ++k) {
            const T* const row = rows[s.bands[k]];
            const double factor = s.factor[k];
            for (size_t i = 0; i < count; ++i)
                to[i] += factor * static_cast<double>(row[i]);
        }
    }
    template <class T>
    static void look(const Source& s, const T* const* rows, size_t count, double* to,
                     std::vector<double>& spectrum) {
        spectrum.resize(s.bands.size());
        for (size_t i = 0; i < count; ++i) {
            for (size_t k = 0; k < s.bands.size(); ++k)
                spectrum[k] = s.factor[k] * static_cast<double>(rows[s.bands[k]][i]) + s.offset[k];
            to[i] = measure(s.of, s.x.data(), spectrum.data(), spectrum.size());
        }
    }
    Expression m_expression;
    std::vector<Source> m_sources;
};

/// The work space for the evaluation of all programs.
struct Scratch {
    explicit Scratch(const std::vector<Program>& programs) {
        size_t operands = 0, depth = 0;
        for (const Program& one : programs) {
            operands = std::max(operands, one.operands());
            depth = std::max(depth, one.depth());
        }
        values.resize(operands * block);
        stack.resize(depth * block);
    }
    std::vector<double> values, stack, spectrum;
};

float stored(double v) {
    return std::fabs(v) <= std::numeric_limits<float>::max() ? static_cast<float>(v) : no_value;
}

/// A band whose values are checked, with its scale and offset to reflectance.
struct Watched {
    size_t band;
    double scale, offset;
};

class IndexWorker final : public stream::Worker {
  public:
    IndexWorker(int inputs, const std::vector<Program>& programs, const std::vector<Watched>& watched)
        : m_programs(programs), m_watched(watched), m_rows(static_cast<size_t>(inputs)), m_scratch(programs) {
    }

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        constexpr auto most = static_cast<int64_t>(block);
        for (int64_t line = 0; line < in.lines; ++line)
            for (int64_t first = 0; first < in.samples; first += most) {
                const auto count = static_cast<size_t>(std::min(most, in.samples - first));
                judge(in, line, first, count);
                for (size_t j = 0; j < m_programs.size(); ++j) {
                    m_programs[j].compute(m_rows.data(), count, m_scratch.values.data(),
                                          m_scratch.stack.data(), m_scratch.spectrum);
                    float* const to = out[0].row(static_cast<int>(j), line) + first;
                    for (size_t i = 0; i < count; ++i)
                        to[i] = m_row.is_valid(i) ? stored(m_scratch.stack[i]) : no_value;
                }
            }
    }

    int64_t valid = 0, invalid = 0, outside = 0;

  private:
    void judge(const CubeView<float>& in, int64_t line, int64_t first, size_t count) {
        m_row.start(count);
        for (size_t b = 0; b < m_rows.size(); ++b) {
            m_rows[b] = in.row(static_cast<int>(b), line) + first;
            m_row.look(m_rows[b]);
        }
        const int64_t good = m_row.judge();
        valid += good;
        invalid += static_cast<int64_t>(count) - good;
        for (const Watched& one : m_watched)
            for (size_t i = 0; i < count; ++i) {
                const double v = one.scale * static_cast<double>(m_rows[one.band][i]) + one.offset;
                outside += m_row.is_valid(i) && (v < least_reflectance || v > greatest_reflectance);
            }
    }

    const std::vector<Program>& m_programs;
    const std::vector<Watched>& m_watched;
    std::vector<const float*> m_rows;
    PixelRow m_row;
    Scratch m_scratch;
};

class CpuIndices final : public Indices {
  public:
    CpuIndices(int inputs, std::vector<Program> programs, std::vector<Watched> watched)
        : m_inputs(inputs), m_programs(std::move(programs)), m_watched(std::move(watched)) {}
    std::vector<int> output_bands() const override { return {static_cast<int>(m_programs.size())}; }
    uint64_t scratch_bytes(const stream::TileLimits&) const override {
        const Scratch one(m_programs);
        return (one.values.size() + one.stack.size() + 2 * block) * sizeof(double);
    }
    /// A tile of this size fits into the last-level cache of a small computer.
    uint64_t preferred_bytes() const override { return uint64_t{8} << 20; }
    bool reads_in_place() const override { return true; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<IndexWorker>(m_inputs, m_programs, m_watched);
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const IndexWorker&>(worker);
        m_valid += w.valid;
        m_invalid += w.invalid;
        m_outside += w.outside;
    }

  private:
    const int m_inputs;
    const std::vector<Program> m_programs;
    const std::vector<Watched> m_watched;
};

std::vector<Program> programs_of(const std::vector<std::string>& expressions, const Bands& bands) {
    constexpr size_t most_text = 1000000; // limit in characters, which take about a second to parse
    size_t text_size = 0;
    std::vector<Program> programs;
    for (const auto& text : expressions) {
        if ((text_size += text.size()) > most_text)
            throw UsageError("the expressions have more than " + std::to_string(most_text) +
                                 " characters in total",
                             "Compute them in several runs.");
        programs.emplace_back(text, bands);
    }
    return programs;
}

} // namespace

size_t least_bands(Of of) {
    if (of == Of::edge) return 4;
    return of == Of::deviation || of == Of::slope || of == Of::area ? 2 : 1;
}

Term term_of(const Operand& operand, const Bands& bands, const Choosing& choosing) {
    const auto& nm = bands.wavelengths;
    if (operand.of == Of::band) {
        const auto& numbers = bands.numbers;
        const auto wanted = static_cast<int>(operand.from);
        const auto place =
            numbers.empty()
                ? static_cast<size_t>(wanted - 1)
                : static_cast<size_t>(std::find(numbers.begin(), numbers.end(), wanted) - numbers.begin());
        return place < (numbers.empty() ? nm.size() : numbers.size()) ? Term{{place}, {1}} : Term{};
    }
    if (operand.is_range()) {
        auto in =
            math::rising_bands(nm, std::max(operand.from, std::numeric_limits<double>::min()), operand.to);
        return in.size() < least_bands(operand.of) ? Term{} : Term{std::move(in), {}};
    }
    switch (choosing.choice) {
    case Choice::nearest:
        return nearest_band(operand.from, nm, choosing.tolerance);
    case Choice::linear:
        return line_between(operand.from, nm, 4 * choosing.tolerance);
    case Choice::average:
        return mean_around(operand.from, nm, choosing.width / 2);
    case Choice::response:
        break;
    }
    return under_response(operand.from, bands, choosing.width);
}

void Indices::exchange(parallel::Group& ranks) {
    CountingOperation::exchange(ranks);
    m_outside = ranks.sum("values outside of reflectance", m_outside);
}

Cost cost_of(int inputs, const std::vector<std::string>& expressions, const Bands& bands) {
    Cost all = cost::value * inputs;
    for (const Program& one : programs_of(expressions, bands))
        all = all + one.cost();
    return all;
}

std::unique_ptr<Indices> make_indices(int inputs, const std::vector<std::string>& expressions, Bands bands,
                                      std::vector<size_t> watched) {
    bands.wavelengths.resize(static_cast<size_t>(inputs), nodata);
    std::vector<Watched> looks;
    for (const size_t b : watched)
        looks.push_back(
            {b, bands.scale.empty() ? 1 : bands.scale[b], bands.offset.empty() ? 0 : bands.offset[b]});
    return std::make_unique<CpuIndices>(inputs, programs_of(expressions, bands), std::move(looks));
}

std::vector<std::vector<double>> indices_of(const std::vector<std::vector<double>>& spectra,
                                            const std::vector<std::string>& expressions, const Bands& bands) {
    const auto programs = programs_of(expressions, bands);
    Scratch scratch(programs);
    std::vector<std::vector<double>> results;
    for (const auto& spectrum : spectra) {
        PixelLook<double> look;
        std::vector<const double*> rows;
        for (const double& v : spectrum) {
            look.at(v);
            rows.push_back(&v);
        }
        auto& result = results.emplace_back();
        for (const Program& program : programs) {
            program.compute(rows.data(), 1, scratch.values.data(), scratch.stack.data(), scratch.spectrum);
            result.push_back(look.is_valid() ? static_cast<double>(stored(scratch.stack[0])) : nodata);
        }
    }
    return results;
}

} // namespace hsi::indices
