// SPDX-License-Identifier: MIT
// The transforms of spectra that are part of a model.
#include "core/error.h"
#include "core/text.h"
#include "math/elementary.h"
#include "regression/regression.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace hsi::regression {
namespace {

constexpr std::pair<const char*, Step::Kind> plain_steps[] = {{"snv", Step::Kind::snv},
                                                              {"vector", Step::Kind::vector},
                                                              {"mean", Step::Kind::mean},
                                                              {"log", Step::Kind::log}};
constexpr int least_window = 3, most_window = 99;
constexpr size_t most_steps = 16;

bool is_derivative(const Step& step) {
    return step.kind == Step::Kind::derivative1 || step.kind == Step::Kind::derivative2;
}

/// Returns the derivative at each band that has one. Reduces `wavelengths` to the wavelengths of these bands,
/// in rising order.
std::vector<math::ResampledBand> derivative(const Step& step, std::vector<double>& wavelengths) {
    constexpr double gap = 3; // largest gap, in median steps
    std::vector<size_t> order(wavelengths.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return wavelengths[a] < wavelengths[b]; });
    std::vector<double> rising;
    for (const size_t b : order)
        rising.push_back(wavelengths[b]);
    auto segments = smooth::segments_of(rising, gap * smooth::median_step(rising) * (1 + 1e-12));
    segments.erase(std::remove_if(segments.begin(), segments.end(),
                                  [&](const smooth::Segment& one) {
                                      return one.size() < static_cast<size_t>(step.window);
                                  }),
                   segments.end());
    if (segments.empty())
        throw Error("-transform " + text_of(step) +
                        ": the longest run of bands without a gap has fewer than " +
                        std::to_string(step.window) + " bands",
                    "Choose a smaller window, or more bands.");
    auto rows = smooth::savitzky_golay(rising, segments,
                                       {step.window, 2, step.kind == Step::Kind::derivative1 ? 1 : 2})
                    .bands;
    wavelengths.clear();
    for (auto& row : rows) {
        wavelengths.push_back(rising[row.target]);
        for (size_t& source : row.sources)
            source = order[source];
    }
    return rows;
}

} // namespace

const char* name_of(Method method) {
    for (const auto& [name, one] : method_names)
        if (one == method) return name;
    return "";
}

Step parse_step(const std::string& word, const std::string& role) {
    for (const auto& [name, kind] : plain_steps)
        if (equal_names(word, name)) return {kind, 0};
    const bool derived = word.size() > 3 && (word[0] == 'd' || word[0] == 'D') &&
                         (word[1] == '1' || word[1] == '2') && word[2] == ':';
    if (!derived)
        throw UsageError(role + ": '" + word + "' is not a transform",
                         "Use snv, vector, mean, log, d1:W or d2:W, where W is an odd count of bands.");
    const double window = to_number(word.substr(3)).value_or(0);
    if (window != std::floor(window) || window < least_window || window > most_window ||
        std::fmod(window, 2) == 0)
        throw UsageError(role + ": '" + word + "' needs an odd window (3 to 99)", "Write d1:7, for example.");
    return {word[1] == '1' ? Step::Kind::derivative1 : Step::Kind::derivative2, static_cast<int>(window)};
}

std::string text_of(const Step& step) {
    for (const auto& [name, kind] : plain_steps)
        if (kind == step.kind) return name;
    return (step.kind == Step::Kind::derivative1 ? "d1:" : "d2:") + std::to_string(step.window);
}

Transform::Transform(std::vector<Step> steps, const std::vector<double>& wavelengths_nm, size_t bands)
    : m_steps(std::move(steps)), m_inputs(bands), m_outputs(bands) {
    if (m_steps.size() > most_steps)
        throw Error("-transform has " + std::to_string(m_steps.size()) + " steps, but at most " +
                        std::to_string(most_steps) + " are possible",
                    "Leave steps out.");
    std::vector<double> wavelengths = wavelengths_nm;
    for (const Step& step : m_steps) {
        smooth::Transform plain;
        plain.method = step.kind == Step::Kind::snv ? smooth::Method::snv : smooth::Method::normalise;
        plain.norm = step.kind == Step::Kind::mean ? smooth::Norm::mean : smooth::Norm::l2;
        if (!is_derivative(step)) {
            m_made.push_back({step.kind == Step::Kind::log, {m_outputs, std::move(plain)}, {}});
            continue;
        }
        const bool known =
            wavelengths.size() == m_outputs &&
            std::all_of(wavelengths.begin(), wavelengths.end(), [](double nm) { return std::isfinite(nm); });
        if (!known)
            throw Error("-transform " + text_of(step) + ": some bands have no wavelength",
                        "Write the wavelengths into the scene's header, or leave these bands out (-b).");
        m_made.push_back({false, {m_outputs, std::move(plain)}, derivative(step, wavelengths)});
        m_outputs = wavelengths.size();
    }
}

bool Transform::has_derivatives() const { return std::any_of(m_steps.begin(), m_steps.end(), is_derivative); }

void Transform::apply(std::vector<double>& values, size_t pixels, std::vector<double>& spare) const {
    for (const Made& step : m_made) {
        if (step.log) {
            for (double& v : values)
                v = math::log(1 / v);
        } else if (step.rows.empty()) {
            step.plain.apply(values.data(), pixels, spare);
        } else {
            spare.assign(step.rows.size() * pixels, 0.0);
            double* to = spare.data();
            for (const auto& row : step.rows) {
                for (size_t k = 0; k < row.sources.size(); ++k)
                    for (size_t i = 0; i < pixels; ++i)
                        to[i] += row.weights[k] * values[row.sources[k] * pixels + i];
                to += pixels;
            }
            values.swap(spare);
        }
    }
}

} // namespace hsi::regression
