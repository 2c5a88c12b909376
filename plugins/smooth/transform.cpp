// SPDX-License-Identifier: MIT
// The transforms of spectra: smoothing, derivatives, scatter correction and normalisation, in blocks of
// pixels.
#include "smooth/smooth.h"

#include "core/cube_view.h"
#include "core/error.h"
#include "core/valid_pixel.h"
#include "math/elementary.h"
#include "parallel/group.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace hsi::smooth {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();
using Pixels = std::array<double, Transformer::most_pixels>; ///< one number per pixel

double mean_of(const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}

/// Adds weight * row to the sum of each pixel.
void add(Pixels& sums, double weight, const double* row, size_t pixels) {
    for (size_t i = 0; i < pixels; ++i)
        sums[i] += weight * row[i];
}

Pixels means_of(const double* values, size_t bands, size_t pixels) {
    Pixels sums{};
    for (size_t b = 0; b < bands; ++b)
        add(sums, 1, values + b * pixels, pixels);
    for (double& v : sums)
        v /= static_cast<double>(bands);
    return sums;
}

/// Divides each pixel by its divisor. Pixels whose divisor is not above 0 become NaN.
void divide(double* values, size_t bands, size_t pixels, Pixels& by) {
    for (double& v : by)
        v = v > 0 ? v : nothing;
    for (size_t b = 0; b < bands; ++b)
        for (size_t i = 0; i < pixels; ++i)
            values[b * pixels + i] /= by[i];
}

template <class Function>
void each(double* values, size_t count, Function function) {
    for (size_t i = 0; i < count; ++i)
        values[i] = function(values[i]);
}

/// Returns the weights of the trapezoidal rule in each segment.
std::vector<double> area_weights(const std::vector<double>& nm, double max_gap) {
    std::vector<double> weights(nm.size());
    for (const Segment& one : segments_of(nm, max_gap))
        for (size_t b = one.begin + 1; b < one.end; ++b) {
            weights[b - 1] += (nm[b] - nm[b - 1]) / 2;
            weights[b] += (nm[b] - nm[b - 1]) / 2;
        }
    return weights;
}

/// Returns polynomials up to the degree, orthonormal over the wavelengths. If there are too few wavelengths,
/// there are fewer polynomials.
std::vector<std::vector<double>> polynomials(const std::vector<double>& nm, int degree) {
    const auto [least, most] = std::minmax_element(nm.begin(), nm.end());
    const double middle = (*least + *most) / 2, half = std::max((*most - *least) / 2, 1e-9);
    std::vector<std::vector<double>> basis;
    for (int k = 0; k <= degree; ++k) {
        std::vector<double> q;
        for (const double x : nm)
            q.push_back(k > 0 ? basis.back()[q.size()] * (x - middle) / half : 1);
        const double before = std::sqrt(std::inner_product(q.begin(), q.end(), q.begin(), 0.0));
        // A single pass leaves rounding errors, so the projection is subtracted twice.
        for (int twice = 0; twice < 2; ++twice)
            for (const auto& other : basis) {
                const double dot = std::inner_product(q.begin(), q.end(), other.begin(), 0.0);
                for (size_t b = 0; b < q.size(); ++b)
                    q[b] -= dot * other[b];
            }
        const double length = std::sqrt(std::inner_product(q.begin(), q.end(), q.begin(), 0.0));
        if (!(length > 1e-12 * before)) break;
        for (double& v : q)
            v /= length;
        basis.push_back(std::move(q));
    }
    return basis;
}

} // namespace

const char* name_of(Method method) {
    for (const auto& [name, one] : method_names)
        if (one == method) return name;
    return "";
}

bool is_sum(Method method) { return method == Method::savgol || method == Method::mean; }

bool needs_wavelengths(const Transform& t) {
    return is_sum(t.method) || t.method == Method::whittaker || t.method == Method::detrend ||
           (t.method == Method::normalise && t.norm == Norm::area);
}

Rows rows_of(const Transform& t) {
    if (!is_sum(t.method)) throw Error("internal: this transform is not a sum");
    const auto segments = segments_of(t.wavelengths, t.max_gap);
    return t.method == Method::mean
               ? moving_mean(segments, t.window)
               : savitzky_golay(t.wavelengths, segments, {t.window, t.degree, t.derivative});
}

std::vector<Setting> settings_of(const Transform& t) {
    std::vector<Setting> all;
    const auto number = [&](const char* name, double value) {
        all.push_back({name, Setting::Kind::number, "", {value}});
    };
    const auto list = [&](const char* name, const std::vector<double>& values) {
        all.push_back({name, Setting::Kind::list, "", values});
    };
    if (t.method == Method::normalise)
        for (const auto& [name, norm] : norm_names)
            if (norm == t.norm) all.push_back({"norm", Setting::Kind::word, name, {}});
    if (needs_wavelengths(t)) list("wavelengths", t.wavelengths);
    if (needs_wavelengths(t) && t.method != Method::detrend) number("max_gap", t.max_gap);
    if (t.method == Method::whittaker) {
        number("lambda", t.lambda);
        number("order", t.order);
    }
    if (t.method == Method::detrend) number("degree", t.degree);
    if (t.method == Method::absorbance) number("factor", t.factor);
    if (t.method == Method::msc || t.method == Method::log_residual) list("reference", t.reference);
    if (t.method == Method::gain) {
        list("gain", t.gain);
        list("offset", t.offset);
    }
    return all;
}

// One spectrum, or several
// ----------------------------------------------------------------------------------------------------------

Transformer::Transformer(size_t bands, Transform transform)
    : m_bands(bands), m_transform(std::move(transform)) {
    const Transform& t = m_transform;
    const bool lists =
        (!needs_wavelengths(t) || t.wavelengths.size() == bands) &&
        ((t.method != Method::msc && t.method != Method::log_residual) || t.reference.size() == bands) &&
        (t.method != Method::gain || (t.gain.size() == bands && t.offset.size() == bands));
    if (!lists || bands == 0) throw Error("internal: a transform of other bands");
    if (is_sum(t.method)) m_rows = rows_of(t);
    if (t.method == Method::whittaker)
        m_whittaker.emplace(t.wavelengths, segments_of(t.wavelengths, t.max_gap), t.lambda, t.order);
    if (t.method == Method::detrend) m_basis = polynomials(t.wavelengths, t.degree);
    if (t.method == Method::normalise && t.norm == Norm::area)
        m_weights = area_weights(t.wavelengths, t.max_gap);
    if (t.method == Method::msc || t.method == Method::log_residual) m_mean = mean_of(t.reference);
    if (t.method == Method::msc) {
        double squares = 0;
        for (const double r : t.reference) {
            m_weights.push_back(r - m_mean);
            squares += m_weights.back() * m_weights.back();
        }
        for (double& w : m_weights)
            w /= squares;
    }
}

std::vector<size_t> Transformer::kept() const {
    std::vector<size_t> places(outputs());
    std::iota(places.begin(), places.end(), size_t{0});
    if (is_sum(m_transform.method))
        std::transform(m_rows.bands.begin(), m_rows.bands.end(), places.begin(),
                       [](const auto& row) { return row.target; });
    return places;
}

void Transformer::sum(double* values, size_t pixels, std::vector<double>& scratch) const {
    scratch.assign(values, values + m_bands * pixels);
    for (size_t j = 0; j < m_rows.bands.size(); ++j) {
        Pixels sums{};
        const auto& row = m_rows.bands[j];
        for (size_t k = 0; k < row.sources.size(); ++k)
            add(sums, row.weights[k], scratch.data() + row.sources[k] * pixels, pixels);
        std::copy_n(sums.data(), pixels, values + j * pixels);
    }
}

/// Corrects scatter. From x = a + b r follows (x - a)/b = (x - mean x)/b + mean r.
void Transformer::correct_scatter(double* values, size_t pixels) const {
    const Pixels means = means_of(values, m_bands, pixels);
    Pixels slope{};
    for (size_t b = 0; b < m_bands; ++b)
        for (size_t i = 0; i < pixels; ++i)
            slope[i] += m_weights[b] * (values[b * pixels + i] - means[i]);
    for (double& b : slope)
        b = b > 0 ? b : nothing;
    for (size_t b = 0; b < m_bands; ++b)
        for (size_t i = 0; i < pixels; ++i)
            values[b * pixels + i] = (values[b * pixels + i] - means[i]) / slope[i] + m_mean;
}

void Transformer::detrend(double* values, size_t pixels) const {
    for (const auto& q : m_basis) {
        Pixels dot{};
        for (size_t b = 0; b < m_bands; ++b)
            add(dot, q[b], values + b * pixels, pixels);
        for (size_t b = 0; b < m_bands; ++b)
            for (size_t i = 0; i < pixels; ++i)
                values[b * pixels + i] -= dot[i] * q[b];
    }
}

void Transformer::normalise(double* values, size_t pixels) const {
    Pixels by{};
    if (m_transform.norm == Norm::max) by.fill(-std::numeric_limits<double>::infinity());
    for (size_t b = 0; b < m_bands; ++b) {
        const double* const row = values + b * pixels;
        for (size_t i = 0; i < pixels; ++i)
            switch (m_transform.norm) {
            case Norm::area:
                by[i] += m_weights[b] * row[i];
                break;
            case Norm::max:
                by[i] = std::max(by[i], row[i]);
                break;
            case Norm::l2:
                by[i] += row[i] * row[i];
                break;
            case Norm::mean:
                by[i] += row[i];
            }
    }
    for (double& v : by) {
        if (m_transform.norm == Norm::l2) v = std::sqrt(v);
        if (m_transform.norm == Norm::mean) v /= static_cast<double>(m_bands);
    }
    divide(values, m_bands, pixels, by);
}

void Transformer::apply(double* values, size_t pixels, std::vector<double>& scratch) const {
    const Transform& t = m_transform;
    const size_t count = m_bands * pixels;
    switch (t.method) {
    case Method::savgol:
    case Method::mean:
        return sum(values, pixels, scratch);
    case Method::whittaker:
        return m_whittaker->smooth(values, pixels);
    case Method::absorbance:
        return each(values, count, [&](double x) { return -math::log10(t.factor * x); });
    case Method::snv: {
        const Pixels means = means_of(values, m_bands, pixels);
        Pixels deviation{};
        for (size_t b = 0; b < m_bands; ++b)
            for (size_t i = 0; i < pixels; ++i) {
                double& v = values[b * pixels + i];
                v -= means[i];
                deviation[i] += v * v;
            }
        for (double& v : deviation)
            v = std::sqrt(v / static_cast<double>(m_bands - 1));
        return divide(values, m_bands, pixels, deviation);
    }
    case Method::msc:
        return correct_scatter(values, pixels);
    case Method::detrend:
        return detrend(values, pixels);
    case Method::normalise:
        return normalise(values, pixels);
    case Method::gain:
        for (size_t b = 0; b < m_bands; ++b)
            each(values + b * pixels, pixels, [&](double x) { return t.gain[b] * x + t.offset[b]; });
        return;
    case Method::logarithm:
        return each(values, count, math::log);
    case Method::log_residual: {
        each(values, count, math::log);
        const Pixels means = means_of(values, m_bands, pixels);
        for (size_t b = 0; b < m_bands; ++b)
            for (size_t i = 0; i < pixels; ++i) {
                double& v = values[b * pixels + i];
                v = math::exp(v - means[i] - (t.reference[b] - m_mean));
            }
    }
    }
}

namespace {

template <class T>
std::vector<T> chosen(const std::vector<T>& list, const std::vector<size_t>& places) {
    std::vector<T> some;
    for (const size_t b : places)
        if (!list.empty()) some.push_back(list[b]);
    return some;
}

bool storable(double v) { return std::fabs(v) <= std::numeric_limits<float>::max(); }

} // namespace

std::vector<std::vector<double>> transformed(const std::vector<std::vector<double>>& spectra,
                                             const Transform& transform) {
    // Most libraries have few patterns of missing bands, so transformers are reused.
    std::map<std::vector<size_t>, Transformer> transformers;
    std::vector<std::vector<double>> results;
    std::vector<double> scratch;
    for (const auto& spectrum : spectra) {
        auto& result = results.emplace_back(spectrum.size(), nothing);
        std::vector<size_t> places;
        for (size_t b = 0; b < spectrum.size(); ++b)
            if (std::isfinite(spectrum[b])) places.push_back(b);
        if (places.empty()) continue;
        auto at = transformers.find(places);
        if (at == transformers.end()) {
            Transform one = transform;
            for (auto* const list : {&one.wavelengths, &one.reference, &one.gain, &one.offset})
                *list = chosen(*list, places);
            at = transformers.emplace(places, Transformer(places.size(), std::move(one))).first;
        }
        auto values = chosen(spectrum, places);
        at->second.apply(values.data(), 1, scratch);
        const auto kept = at->second.kept();
        if (std::all_of(values.begin(), values.begin() + static_cast<ptrdiff_t>(kept.size()), storable))
            for (size_t j = 0; j < kept.size(); ++j)
                result[places[kept[j]]] = values[j];
    }
    return results;
}

// The pixels of a scene
// ----------------------------------------------------------------------------------------------------------

namespace {

class TransformWorker final : public stream::Worker {
  public:
    TransformWorker(size_t inputs, const Transformer& transformer)
        : m_transformer(transformer), m_inputs(inputs), m_values(inputs * Transformer::most_pixels) {}

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        constexpr auto most = static_cast<int64_t>(Transformer::most_pixels);
        for (int64_t line = 0; line < in.lines; ++line)
            for (int64_t first = 0; first < in.samples; first += most) {
                const auto pixels = static_cast<size_t>(std::min(most, in.samples - first));
                take(in, line, first, pixels);
                m_transformer.apply(m_values.data(), pixels, m_scratch);
                put(out[0], line, first, pixels);
            }
    }

    int64_t valid = 0, invalid = 0, undefined = 0;

  private:
    void take(const CubeView<float>& in, int64_t line, int64_t first, size_t pixels) {
        m_row.start(pixels);
        for (size_t b = 0; b < m_inputs; ++b) {
            const float* const row = in.row(static_cast<int>(b), line) + first;
            m_row.look(row);
            std::copy_n(row, pixels, m_values.data() + b * pixels);
        }
        const int64_t good = m_row.judge();
        valid += good;
        invalid += static_cast<int64_t>(pixels) - good;
    }
    void put(const CubeView<float>& out, int64_t line, int64_t first, size_t pixels) {
        Pixels greatest{};
        Pixels rest{}; // NaN if the pixel has a missing value
        for (int b = 0; b < out.bands; ++b) {
            const double* const row = m_values.data() + static_cast<size_t>(b) * pixels;
            for (size_t i = 0; i < pixels; ++i) {
                const double size = std::fabs(row[i]);
                greatest[i] = size > greatest[i] ? size : greatest[i];
                rest[i] += row[i] * 0;
            }
        }
        bool holes = false;
        for (size_t i = 0; i < pixels; ++i) {
            const bool defined = rest[i] == 0 && storable(greatest[i]), good = m_row.is_valid(i);
            undefined += good && !defined;
            rest[i] = good && defined ? 0 : nothing;
            holes = holes || !(good && defined);
        }
        for (int b = 0; b < out.bands; ++b) {
            const double* const row = m_values.data() + static_cast<size_t>(b) * pixels;
            float* const to = out.row(b, line) + first;
            for (size_t i = 0; i < pixels; ++i)
                to[i] = static_cast<float>(row[i]);
            for (size_t i = 0; i < pixels && holes; ++i)
                if (rest[i] != 0) to[i] = no_number;
        }
    }

    const Transformer& m_transformer;
    const size_t m_inputs;
    std::vector<double> m_values, m_scratch;
    PixelRow m_row;
};

class CpuTransforming final : public Transforming {
  public:
    CpuTransforming(int inputs, Transform transform)
        : m_inputs(static_cast<size_t>(inputs)), m_transformer(m_inputs, std::move(transform)) {}
    std::vector<int> output_bands() const override { return {static_cast<int>(m_transformer.outputs())}; }
    uint64_t scratch_bytes(const stream::TileLimits&) const override {
        return 2 * m_inputs * Transformer::most_pixels * sizeof(double);
    }
    /// A tile of this size fits into the last-level cache of a small computer.
    uint64_t preferred_bytes() const override { return uint64_t{8} << 20; }
    bool reads_in_place() const override { return true; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<TransformWorker>(m_inputs, m_transformer);
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const TransformWorker&>(worker);
        m_valid += w.valid;
        m_invalid += w.invalid;
        m_undefined += w.undefined;
    }

  private:
    const size_t m_inputs;
    const Transformer m_transformer;
};

} // namespace

void Transforming::exchange(parallel::Group& ranks) {
    std::vector<int64_t> counts{m_valid, m_invalid, m_undefined};
    ranks.add_up("pixels", counts);
    m_valid = counts[0];
    m_invalid = counts[1];
    m_undefined = counts[2];
}

std::unique_ptr<Transforming> make_transform(int inputs, Transform transform) {
    return std::make_unique<CpuTransforming>(inputs, std::move(transform));
}

} // namespace hsi::smooth
