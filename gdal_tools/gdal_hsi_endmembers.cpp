// SPDX-License-Identifier: MIT
// gdal_hsi_endmembers: finds the pixels that span a scene, and writes them as points. The first pass computes
// the moments of the scene. The second pass computes the components for the search, and keeps them if there
// is enough memory.
#include "atdca/atdca.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "endmembers/endmembers.h"
#include "math/elementary.h"
#include "math/exact_sum.h"
#include "pca/pca.h"
#include "raster/library_output.h"
#include "raster/vector_sink.h"
#include "shared/plot.h"
#include "shared/references.h"
#include "shared/scene_and_library.h"
#include "shared/target_search.h"
#include "stream/statistics_sums.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/scene.h"
#include "unmix/unmix.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace endmembers_tool {

using tool::Content;

struct Settings {
    raster::VectorOptions members;
    std::string method = "nfindr", original, spectra, numbers, curve;
    int count = 0; ///< number of endmembers, or the last number of a range
    int first = 0; ///< first number of a range; 0 if there is no range
    uint64_t seed = 1;
    bool residual = false;
    tools::KnownSpectra reference;
    std::vector<std::string> with;
};

/// The result of a search. `fewer`: for -residual, the result of a search for one endmember fewer, if at
/// least two remain. `variance`: for a range, the variance of the scene, averaged over the bands.
struct Found {
    std::vector<atdca::Target> members, fewer;
    double variance = 0;
    int64_t pixels = 0; ///< number of valid pixels
};

std::unique_ptr<stream::StatisticsScan> moments_of(const tool::Scene& scene) {
    return std::make_unique<stream::StatisticsScan>(scene.shape(), stream::Statistics::moments);
}

double mean_variance(const stream::SceneStatistics& moments) {
    double sum = 0;
    for (int b = 0; b < moments.bands; ++b)
        sum += moments.covariance[static_cast<size_t>(b) * (static_cast<size_t>(moments.bands) + 1)];
    return sum / moments.bands;
}

endmembers::Options search_options(const Settings& s) {
    return {s.method == "nfindr" ? endmembers::Method::nfindr : endmembers::Method::vca, s.count, s.seed,
            s.first > 0};
}

/// Finds endmembers by ATDCA with orthogonal subspace projection, as gdal_hsi_atdca does.
Found find_by_atdca(tool::Run& run, const Settings& s, tool::Scene& scene) {
    tools::AtdcaComputing computing(run, "atdca", {}, atdca::simd_target(), atdca::make_cpu_backend);
    tools::TargetCount count;
    count.number = s.count;
    atdca::Options options;
    options.targets = s.count;
    options.keep_scene = !s.with.empty() || !scene.raster()->held_by_system();
    tool::end_of_plan(run, [&] { tools::print_search_plan(run, *scene.counted(), options); });
    double variance = 0;
    if (s.first > 0) { // the search with ATDCA does not compute the moments, which a range needs
        scene.set_fate(nullptr);
        variance = mean_variance(scene.scan("moments", 0.1, [&] { return moments_of(scene); }));
    }
    auto found = tools::find_targets(run, computing, count, scene, options, s.first > 0 ? 0.4 : 1.0);
    endmembers::check_count(search_options(s), scene.shape().bands, found.valid_pixels);
    tools::report_search_cost(run, found, options.targets, !options.keep_scene);
    Found all{std::move(found.targets), {}, variance, found.valid_pixels};
    if (all.members.size() > 2) all.fewer.assign(all.members.begin(), all.members.end() - 1);
    return all;
}

void report_search(tool::Run& run, const Settings& s, const endmembers::Extraction& found) {
    for (const auto& warning : found.warnings)
        run.warn(warning);
    char text[160];
    if (s.method == "nfindr" && s.first > 0) {
        std::snprintf(text, sizeof text, "N-FINDR: a growing simplex, %s",
                      counted(found.members.size(), "vertex", "vertices").c_str());
        run.report()["search"] = {{"growing", true}};
    } else if (s.method == "nfindr") {
        std::snprintf(text, sizeof text, "N-FINDR: %s, %s replaced", counted(found.sweeps, "sweep").c_str(),
                      counted(found.replacements, "vertex", "vertices").c_str());
        run.report()["search"] = {{"sweeps", found.sweeps}, {"replacements", found.replacements}};
    } else {
        std::snprintf(text, sizeof text, "VCA: signal-to-noise ratio %.2f dB, %s", found.snr,
                      found.projective ? "projective projection" : "projection on the affine hull");
        run.report()["search"] = {{"projective", found.projective}};
        if (std::isfinite(found.snr)) run.report()["search"]["snr"] = found.snr;
    }
    run.note(text);
    run.report()["search"]["in_memory"] = found.in_memory;
    run.report()["search"]["looks"] = found.looks;
}

/// Finds endmembers by N-FINDR or VCA.
Found find_by_projection(tool::Run& run, const Settings& s, tool::Scene& scene) {
    tool::report_devices(run, {}, pca::simd_target());
    const auto options = search_options(s);
    scene.set_fate("and not used as endmembers");
    const auto moments = scene.scan("moments", 0.5, [&] { return moments_of(scene); });
    tool::end_of_plan(run, [&] {
        const auto all = scene.counted();
        tool::print_plan(run, *all, *endmembers::plan_operation(all->shape(), options),
                         run.pass("components", 0.5));
    });
    const auto search = [&](const endmembers::Options& wanted, double share) {
        auto found = endmembers::extract(*scene.counted(), moments, wanted, [&](const std::string& name) {
            return run.pass(name, name == "components" ? share : 0.0);
        });
        for (const auto& pass : found.passes)
            run.add_pass(pass);
        return found;
    };
    const auto targets = [](const endmembers::Extraction& found) {
        std::vector<atdca::Target> list;
        for (const auto& m : found.members)
            list.push_back({m.line, m.sample, m.score, {}});
        return list;
    };
    const auto found = search(options, s.residual ? 0.2 : s.first > 0 ? 0.1 : 0.5);
    report_search(run, s, found);
    Found all{targets(found), {}, mean_variance(moments), moments.valid_pixels};
    if (s.residual && options.count > 2) {
        auto less = options;
        --less.count;
        all.fewer = targets(search(less, 0.1));
    }
    return all;
}

/// Unmixes each pixel with several sets of endmembers (FCLS) in one pass, and computes the residual of each
/// set. Each tile is read once. The squared errors are added exactly, so the result does not depend on the
/// tiles or on the other sets.
class Residuals final : public stream::Operation {
  public:
    explicit Residuals(const std::vector<unmix::Endmembers>& sets) : m_squares(sets.size()) {
        for (const auto& set : sets) {
            m_steps.push_back(unmix::make_unmixing(set, {unmix::Method::fcls, true}));
            m_most = std::max(m_most, set.count());
        }
    }
    /// Returns the root mean square error of set k, over pixels and bands.
    double of(size_t k) const {
        return std::sqrt(m_squares.value(k) / static_cast<double>(m_steps[k]->valid()));
    }

    uint64_t scratch_bytes(const stream::TileLimits& limits) const override {
        uint64_t bytes = floats(limits) * sizeof(float);
        for (const auto& step : m_steps)
            bytes += step->scratch_bytes(limits);
        return bytes;
    }
    bool reads_in_place() const override { return m_steps.front()->reads_in_place(); }
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override {
        auto worker = std::make_unique<Unmixer>(m_steps.size());
        worker->results.resize(floats(limits));
        for (const auto& step : m_steps) {
            worker->steps.push_back(step->start(lane, limits));
            worker->counts.push_back(step->output_bands().front());
        }
        return worker;
    }
    void stop(stream::Worker& worker) override {
        auto& own = static_cast<Unmixer&>(worker);
        for (size_t k = 0; k < m_steps.size(); ++k)
            m_steps[k]->stop(*own.steps[k]);
        m_squares.add(own.squares);
    }
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override {
        for (const auto& step : m_steps)
            step->exchange(ranks);
        stream::unite(ranks, "squares", m_squares);
    }

  private:
    struct Unmixer final : stream::Worker {
        explicit Unmixer(size_t sets) : squares(sets) {}
        void process(const Tile& tile, const CubeView<float>& in,
                     const std::vector<CubeView<float>>&) override {
            const int64_t w = tile.core.w, h = tile.core.h;
            for (size_t k = 0; k < steps.size(); ++k) {
                float* const errors = results.data() + counts[k] * w * h;
                steps[k]->process(tile, in,
                                  {CubeView<float>::packed(results.data(), counts[k], h, w),
                                   CubeView<float>::packed(errors, 1, h, w)});
                for (int64_t i = 0; i < w * h; ++i) {
                    const double v = errors[i], squared = v * v;
                    if (!std::isnan(v)) squares.add(k, &squared, 1);
                }
            }
        }
        std::vector<std::unique_ptr<stream::Worker>> steps;
        std::vector<int> counts;    ///< number of endmembers of each set
        std::vector<float> results; ///< abundances and errors of the current set
        math::ExactSums squares;
    };

    uint64_t floats(const stream::TileLimits& limits) const {
        return static_cast<uint64_t>((m_most + 1) * limits.core_samples * limits.core_lines);
    }

    std::vector<std::unique_ptr<unmix::Unmixing>> m_steps;
    int m_most = 0;
    math::ExactSums m_squares;
};

unmix::Endmembers endmembers_of(tool::Run& run, const tool::Scene& scene, const tools::ManyScenes* many,
                                const std::vector<atdca::Target>& members) {
    unmix::Endmembers endmembers;
    auto cube = scene.raster();
    for (const auto& spectrum : tools::spectra_of_targets(cube, run, members, many)) {
        endmembers.names.push_back("endmember " + std::to_string(endmembers.names.size() + 1));
        endmembers.spectra.emplace_back(spectrum.begin(), spectrum.end());
    }
    return endmembers;
}

/// Returns the residual of fully constrained unmixing for each set: the root mean square over pixels and
/// bands. Processes at most 32 sets in one pass, because their buffers reduce the memory for tiles. share:
/// part of the progress bar.
std::vector<double> residuals_of(tool::Run& run, tool::Scene& scene,
                                 const std::vector<unmix::Endmembers>& sets, double share) {
    constexpr size_t at_once = 32;
    std::vector<double> found;
    for (size_t from = 0; from < sets.size(); from += at_once) {
        const size_t to = std::min(from + at_once, sets.size());
        Residuals some({sets.begin() + static_cast<std::ptrdiff_t>(from),
                        sets.begin() + static_cast<std::ptrdiff_t>(to)});
        const double part = share * static_cast<double>(to - from) / static_cast<double>(sets.size());
        run.add_pass(stream::run_pass(*scene.counted(), some, {}, run.pass("residual", part)));
        for (size_t k = 0; k < to - from; ++k)
            found.push_back(some.of(k));
    }
    return found;
}

/// Warns if more than half of the pixels are endmembers. So many endmembers explain any scene.
void warn_of_few_pixels(tool::Run& run, const Found& found) {
    const auto count = static_cast<int64_t>(found.members.size());
    if (2 * count <= found.pixels) return;
    run.warn(std::to_string(count) + " of " + counted(found.pixels, "valid pixel") +
             " are endmembers, which have no residual: this many endmembers explain any scene. Use fewer "
             "(-t), or a larger scene");
}

/// Reports for -residual how well the endmembers explain the scene. Warns if one endmember fewer explains it
/// better.
void report_residual(tool::Run& run, const Settings& s, tool::Scene& scene, const tools::ManyScenes* many,
                     const Found& found) {
    const auto count = found.members.size();
    std::vector<unmix::Endmembers> sets{endmembers_of(run, scene, many, found.members)};
    if (!found.fewer.empty()) sets.push_back(endmembers_of(run, scene, many, found.fewer));
    const auto residuals = residuals_of(run, scene, sets, 0.2);
    const double residual = residuals.front();
    run.report()["residual"] = {{"endmembers", count}, {"rmse", residual}};
    char text[200];
    if (found.fewer.empty()) {
        std::snprintf(text, sizeof text, "Residual of unmixing: %.6g with %zu endmembers", residual, count);
        return run.print(text);
    }
    const double before = residuals.back();
    run.report()["residual"]["rmse_of_one_less"] = before;
    std::snprintf(text, sizeof text, "Residual of unmixing: %.6g with %zu endmembers, %.6g with %zu",
                  residual, count, before, found.fewer.size());
    run.print(text);
    if (residual <= before) return;
    std::snprintf(text, sizeof text,
                  "the residual of unmixing grows from %.6g with %zu endmembers to %.6g with %zu: the larger "
                  "set explains the scene worse",
                  before, found.fewer.size(), residual, count);
    run.warn(std::string(text) + "; use fewer" +
             (s.method == "atdca" ? ""
                                  : ", or -t 2-" + std::to_string(count) +
                                        ", which adds endmembers one by one to the same set"));
}

// --- A range of numbers: -t 2-20

/// Describes how well the first t endmembers explain the scene.
struct Step {
    int t = 0;
    double height = 0;     ///< distance of endmember t from the affine hull of the earlier endmembers
    double log_volume = 0; ///< log10 of the volume of the simplex; -inf if the simplex is flat
    double rmse = 0;       ///< root mean square error of fully constrained unmixing, over pixels and bands
    double explained = 0;  ///< 1 - rmse^2 / variance
    /// Increase of `explained` by the last endmember; in the first step, equal to `explained`.
    double gain = 0;
};

/// Returns the distance of each vertex of a simplex from the affine hull of the earlier vertices; 0 for the
/// first vertex.
std::vector<double> heights_of(const std::vector<std::vector<double>>& spectra) {
    std::vector<std::vector<double>> basis;
    std::vector<double> heights{0.0};
    for (size_t k = 1; k < spectra.size(); ++k) {
        std::vector<double> v(spectra[k]);
        for (size_t b = 0; b < v.size(); ++b)
            v[b] -= spectra.front()[b];
        // The second turn removes the rounding errors of the first turn.
        for (int twice = 0; twice < 2; ++twice)
            for (const auto& q : basis) {
                const double product = std::inner_product(q.begin(), q.end(), v.begin(), 0.0);
                for (size_t b = 0; b < v.size(); ++b)
                    v[b] -= product * q[b];
            }
        const double length = std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
        heights.push_back(length);
        for (double& x : v)
            x /= length > 0 ? length : 1;
        if (length > 0) basis.push_back(std::move(v));
    }
    return heights;
}

/// Unmixes the scene with the first s.first, s.first + 1, ... endmembers. Stops at an endmember that is a
/// mixture of the earlier endmembers.
std::vector<Step> explain(tool::Run& run, const Settings& s, tool::Scene& scene,
                          const tools::ManyScenes* many, const Found& found) {
    const auto all = endmembers_of(run, scene, many, found.members);
    const auto heights = heights_of(all.spectra);
    std::vector<Step> steps;
    std::vector<unmix::Endmembers> sets;
    double log_volume = 0;
    for (int t = 2; t <= all.count(); ++t) {
        Step step;
        step.t = t;
        step.height = heights[static_cast<size_t>(t) - 1];
        // The volume of a simplex with t vertices is the product of the heights, divided by (t - 1)!.
        log_volume += math::log10(step.height / (t - 1));
        step.log_volume = log_volume;
        if (t < s.first) continue;
        unmix::Endmembers some;
        some.names.assign(all.names.begin(), all.names.begin() + t);
        some.spectra.assign(all.spectra.begin(), all.spectra.begin() + t);
        try {
            unmix::check_endmembers(some, unmix::Method::fcls);
        } catch (const Error& e) {
            run.warn("the range ends at " + std::to_string(t - 1) +
                     ", since further endmembers explain nothing: " + e.what());
            break;
        }
        steps.push_back(step);
        sets.push_back(std::move(some));
    }
    const auto residuals = residuals_of(run, scene, sets, 0.5);
    for (size_t k = 0; k < steps.size(); ++k) {
        Step& step = steps[k];
        step.rmse = residuals[k];
        step.explained = found.variance > 0 ? 1 - step.rmse * step.rmse / found.variance : 0;
        step.gain = step.explained - (k == 0 ? 0 : steps[k - 1].explained);
    }
    return steps;
}

constexpr double least_depth = 0.05;

/// Returns the knee of the residuals. The curve is scaled to a unit square. The knee is the step with the
/// greatest distance from the chord between the first and the last step. This is the maximum of the
/// difference curve, without smoothing, of V. Satopaa, J. Albrecht, D. Irwin, B. Raghavan: Finding a
/// "kneedle" in a haystack: detecting knee points in system behavior, ICDCS workshops 2011. Returns nullopt
/// for fewer than three steps, for a curve that does not fall, and for a curve that falls evenly (a depth
/// below least_depth).
std::optional<size_t> knee_of(const std::vector<Step>& steps) {
    if (steps.size() < 3) return {};
    const double fall = steps.front().rmse - steps.back().rmse;
    if (!(fall > 1e-9 * steps.front().rmse)) return {};
    size_t best = 0;
    double deepest = 0;
    for (size_t k = 1; k + 1 < steps.size(); ++k) {
        const double x = static_cast<double>(k) / static_cast<double>(steps.size() - 1),
                     depth = 1 - x - (steps[k].rmse - steps.back().rmse) / fall;
        if (depth > deepest + 1e-12) {
            deepest = depth;
            best = k;
        }
    }
    if (deepest < least_depth) return {};
    return best;
}

/// Returns a power of ten as text, such as "1.25e+340". A double cannot represent this number.
std::string power_text(double log10) {
    if (std::isinf(log10)) return "0";
    double exponent = std::floor(log10), digits = std::round(std::pow(10, log10 - exponent) * 1e4) / 1e4;
    if (digits >= 10) {
        digits /= 10;
        ++exponent;
    }
    char text[60];
    std::snprintf(text, sizeof text, "%.4fe%+03.0f", digits, exponent);
    return text;
}

std::string formatted(const char* format, double v) {
    char text[60];
    std::snprintf(text, sizeof text, format, v);
    return text;
}

/// Returns a cell of a table as CSV.
std::string quoted_cell(const std::string& text) {
    std::string cell = "\"";
    for (const char c : text) {
        if (c == '"') cell += '"';
        cell += c;
    }
    return cell + "\"";
}

/// Returns true if the file of -plot is a table.
bool is_table(const std::string& path) {
    return path.size() > 4 && equal_names(path.substr(path.size() - 4), ".csv");
}

/// Returns the table of the steps as CSV. scenes: name of the scene of each endmember; empty if there is only
/// one scene.
std::string csv_of(const std::vector<Step>& steps, const std::vector<atdca::Target>& members,
                   const std::vector<std::string>& scenes, int chosen) {
    std::string text = "t,line,sample,height,log10_volume,rmse,explained,gain,chosen";
    text += scenes.empty() ? "\r\n" : ",scene\r\n";
    for (const Step& step : steps) {
        const auto& member = members[static_cast<size_t>(step.t) - 1];
        text +=
            std::to_string(step.t) + "," + std::to_string(member.line) + "," + std::to_string(member.sample);
        for (const double v : {step.height, step.log_volume, step.rmse, step.explained, step.gain})
            text += "," + (std::isfinite(v) ? formatted("%.9g", v) : std::string());
        text += step.t == chosen ? ",1" : ",0";
        if (!scenes.empty()) text += "," + quoted_cell(scenes[static_cast<size_t>(step.t) - 1]);
        text += "\r\n";
    }
    return text;
}

constexpr tools::Plot::Frame curve_frame{660, 400, 80, 620, 40, 340};

/// Returns a plot of the residuals over t, with a line at the chosen number.
tools::Plot plot_of(const std::vector<Step>& steps, int chosen) {
    constexpr tools::Rgb red{204, 51, 17}, blue{0, 85, 170};
    double most = 0;
    for (const Step& step : steps)
        most = std::max(most, step.rmse);
    const double unit = tools::tick_distance(most);
    tools::Axis x{"number of endmembers t",
                  static_cast<double>(steps.front().t),
                  static_cast<double>(steps.back().t),
                  {}};
    const size_t stride = std::max<size_t>(1, (steps.size() + 19) / 20);
    for (size_t k = 0; k < steps.size(); k += stride)
        x.ticks.push_back(steps[k].t);
    tools::Plot plot(curve_frame, std::move(x),
                     {"residual of unmixing (RMSE)", 0, most > 0 ? std::ceil(most / unit) * unit : 1, {}});
    plot.line(plot.x_of(chosen), curve_frame.top, plot.x_of(chosen), curve_frame.bottom, red);
    plot.text(plot.x_of(chosen), curve_frame.top - 8, tools::Plot::Anchor::middle,
              "t = " + std::to_string(chosen));
    for (size_t k = 1; k < steps.size(); ++k)
        plot.line(plot.x_of(steps[k - 1].t), plot.y_of(steps[k - 1].rmse), plot.x_of(steps[k].t),
                  plot.y_of(steps[k].rmse), blue, 2);
    for (const Step& step : steps)
        plot.disc(plot.x_of(step.t), plot.y_of(step.rmse), 3.5, blue,
                  std::to_string(step.t) + ": " + formatted("%.6g", step.rmse));
    return plot;
}

/// Computes, for "-t 2-20", the residual with each number of endmembers. Writes the results as a table, into
/// the report and as a plot. Returns the number at the knee, or the last number if there is no knee.
int choose_number(tool::Run& run, const Settings& s, tool::Scene& scene, const tools::ManyScenes* many,
                  Found found, const tools::PlotOutput& plot) {
    const auto steps = explain(run, s, scene, many, found);
    std::vector<std::string> scenes; // name of each endmember's scene; empty without -with
    for (auto& member : found.members) {
        if (many == nullptr) break;
        const auto place = many->place_of(member.line);
        member.line = place.line;
        scenes.push_back(many->name(place.scene));
    }
    if (steps.empty()) return static_cast<int>(found.members.size());
    const auto knee = knee_of(steps);
    const int chosen = steps[knee.value_or(steps.size() - 1)].t;
    run.print("   t     Line   Sample      Height          Volume        RMSE  Explained %   Gain %");
    Json list = Json::array();
    for (size_t k = 0; k < steps.size(); ++k) {
        const Step& step = steps[k];
        const auto& member = found.members[static_cast<size_t>(step.t) - 1];
        char text[160];
        std::snprintf(text, sizeof text, "%4d %8lld %8lld %11.5g %15s %11.5g %12.4f %8.4f", step.t,
                      static_cast<long long>(member.line), static_cast<long long>(member.sample), step.height,
                      power_text(step.log_volume).c_str(), step.rmse, 100 * step.explained, 100 * step.gain);
        run.print(text);
        const auto last = static_cast<size_t>(step.t) - 1;
        list.push_back({{"t", step.t},
                        {"line", member.line},
                        {"sample", member.sample},
                        {"height", step.height},
                        {"log10_volume", std::isfinite(step.log_volume) ? Json(step.log_volume) : Json()},
                        {"rmse", step.rmse},
                        {"explained", step.explained},
                        {"gain", step.gain}});
        if (many) list.back()["scene"] = scenes[last];
        if (k > 0 && step.rmse > steps[k - 1].rmse * (1 + 1e-6))
            run.warn("the residual of unmixing grows from " + formatted("%.6g", steps[k - 1].rmse) +
                     " with " + std::to_string(step.t - 1) + " endmembers to " +
                     formatted("%.6g", step.rmse) + " with " + std::to_string(step.t));
    }
    run.report()["range"] = {{"steps", list}, {"knee", knee ? Json(chosen) : Json()}, {"chosen", chosen}};
    if (knee)
        run.note("Knee: " + std::to_string(chosen) + " endmembers, which are written" +
                 (s.method == "atdca"
                      ? std::string()
                      : "; a run with -t " + std::to_string(chosen) + " searches anew and may find others"));
    else
        run.warn("the residuals have no knee (" +
                 std::string(steps.size() < 3 ? "the range has fewer than three numbers"
                                              : "they fall evenly, or do not fall") +
                 "): all " + std::to_string(chosen) +
                 " endmembers are written; use a wider range, or choose a number from the table");
    if (is_table(s.curve))
        raster::write_text_output(run.text_output("-plot", s.curve, s.members.overwrite),
                                  csv_of(steps, found.members, scenes, chosen));
    else
        plot.write(run, plot_of(steps, chosen));
    return chosen;
}

/// Reads the number or range of -t ("12" or "2-20") into the settings. \throws UsageError.
void read_numbers(Settings& s) {
    const char *at = s.numbers.data(), *const end = at + s.numbers.size();
    const auto number = [&](int& value) {
        const auto [next, status] = std::from_chars(at, end, value);
        at = next;
        return status == std::errc();
    };
    int first = 0, last = 0;
    bool good = number(first);
    const bool range = good && at != end && *at == '-';
    if (range) {
        ++at;
        good = number(last);
    }
    if (!good || at != end)
        throw UsageError("-t: '" + s.numbers + "' is not a number or a range of numbers",
                         "Give a number such as 12, or a range such as 2-20.");
    if (first < 2) throw UsageError("-t: " + std::to_string(first) + " is too small", "Use 2 or more.");
    if (range && last < first + 2)
        throw UsageError("-t: the range '" + s.numbers + "' has fewer than three numbers, so it has no knee",
                         "Give a wider range with the smaller number first, such as 2-20, or one number.");
    s.first = range ? first : 0;
    s.count = range ? last : first;
}

void run_endmembers(tool::Run& run, Settings s) {
    s.members.history = run.options().destination.history;
    s.members.run = run.files();
    tool::Scene scene(run, "the search for endmembers");
    const auto many = tools::join_scenes(run, s.with, scene);
    const auto original = tools::open_original(run, s.original, *scene.raster());
    endmembers::check_count(search_options(s), scene.shape().bands, -1);
    raster::check_vector_output(s.members);
    const auto spectra_output = run.text_output("-spectra", s.spectra, s.members.overwrite);
    if (!s.spectra.empty()) raster::check_library_output(spectra_output);
    const tools::PlotOutput plot(run, "plot", s.curve, s.members.overwrite);
    plot.check(curve_frame);
    const auto references = tools::read_references(
        run, s.reference, static_cast<size_t>((original ? original : scene.raster())->shape().bands));
    const auto found = s.method == "atdca" ? find_by_atdca(run, s, scene) : find_by_projection(run, s, scene);
    warn_of_few_pixels(run, found);
    auto targets = found.members;
    if (s.first > 0)
        targets.resize(static_cast<size_t>(choose_number(run, s, scene, many.get(), found, plot)));
    if (s.residual) report_residual(run, s, scene, many.get(), found);
    auto cube = original ? original : scene.raster();
    raster::SpectralLibrary library;
    if (!s.spectra.empty() || !s.reference.path.empty())
        library = tools::library_of_targets(tools::spectra_of_targets(cube, run, targets, many.get()),
                                            targets, *cube, "Endmember", many.get());
    tools::write_targets(run, s.members, targets, *scene.raster(), many.get());
    tools::report_targets(run, targets, many.get());
    tools::compare_with_references(run, s.reference, references, library, *cube, "Endmember");
    if (s.spectra.empty()) return;
    tools::BandScales(*cube).note(run);
    raster::write_spectral_library(spectra_output, library, s.members.history);
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_mask("the search");
    args.add_compute(false);
    args.output_argument("dst", s.members.path, Content::vector,
                         "The endmembers, a vector layer of points; it appears when it is complete");
    auto& count =
        args.option(
                "t", s.numbers,
                "Number of endmembers, or a range such as 2-20; of a range, the set at the knee is written")
            .also("targets")
            .shown_as("N|N-N");
    count.required = true;
    args.choice<std::string>(
        "method", s.method, "Method of search",
        {{"nfindr", "nfindr", "the pixels whose simplex has the greatest volume"},
         {"vca", "vca", "vertex component analysis: the outermost pixels in random directions"},
         {"atdca", "atdca", "orthogonal subspace projection, as gdal_hsi_atdca -method osp"}});
    args.option("seed", s.seed, "With -method vca: seed of the random directions");
    args.output("spectra", s.spectra, Content::spectra,
                "Also write the endmembers' spectra to FILE: .sli (ENVI library) or .csv (one row per band)");
    args.flag(
        "residual", s.residual,
        "Also print the residual of unmixing with N and N - 1 endmembers; warn if N - 1 has the smaller one");
    args.output(
        "plot", s.curve, Content::text,
        "With a range of -t: also write the explained share of each number to FILE: .svg, .png or .csv");
    args.input(
        "original", s.original, Content::raster,
        "Scene FILE that src was made from, of the same size: -spectra and -reference use its spectra");
    tools::add_reference_options(args, s.reference, "endmember");
    tools::add_with_option(args, s.with);
    args.exclusive("with", "original");
    tools::add_vector_options(args, s.members);
    args.overwrite(s.members.overwrite, "Replace existing outputs; otherwise an existing output is an error");
    args.check([&s](const tool::Call& call) {
        for (const char* name : {"spectrum", "resample", "reference-names"})
            if (call.given(name) && s.reference.path.empty())
                throw UsageError("-" + std::string(name) + " requires -reference");
        if (s.reference.rename && s.spectra.empty())
            throw UsageError("-reference-names requires -spectra", "Only names of written spectra change.");
        if (s.method != "vca" && call.given("seed"))
            throw UsageError("-seed: -method " + s.method + " uses no random numbers",
                             "Leave it out, or use -method vca.");
        if (!s.original.empty() && s.spectra.empty() && s.reference.path.empty())
            throw UsageError("-original requires -spectra or -reference", "Its spectra go nowhere else.");
        read_numbers(s);
        if (s.first > 0 && s.residual)
            throw UsageError("-residual: a range of -t always prints the residual of each number",
                             "Leave -residual out.");
        if (s.first == 0 && call.given("plot"))
            throw UsageError("-plot requires a range of -t", "Give a range, for example -t 2-20.");
        if (!is_table(s.curve)) tools::PlotOutput::check_name("plot", s.curve, " or .csv");
    });
    args.body([&s](tool::Run& run) { run_endmembers(run, s); });
}

} // namespace endmembers_tool
} // namespace

namespace tools {

extern constinit const tool::Definition endmembers{
    "endmembers",
    "Endmembers (N-FINDR, VCA, ATDCA)",
    "Endmembers: finds the pixels of a scene that span the others, by the greatest simplex (nfindr), by "
    "vertex "
    "component analysis (vca) or by orthogonal subspace projection (atdca), and writes them as points.",
    {{"gdal_hsi_endmembers -t 12 scene.img members.gpkg", "Twelve endmembers"},
     {"gdal_hsi_endmembers -t 12 -spectra members.sli scene.img members.gpkg && gdal_hsi_unmix scene.img "
      "members.sli abundances.tif",
      "Their spectra, and how much of each is in every pixel"},
     {"gdal_hsi_endmembers -t 2-20 -plot members.svg scene.img members.gpkg",
      "How many? The explained share of each number, and the set at the knee"},
     {"gdal_hsi_spp scene.img y.tif && gdal_hsi_endmembers -t 12 -original scene.img -spectra members.sli "
      "y.tif members.gpkg",
      "Search in the preprocessed scene, spectra of the original scene"},
     {"gdal_hsi_endmembers -t 12 -method vca -seed 7 scene.img members.geojson", "Another method"}},
    "",
    endmembers_tool::declare};

} // namespace tools
} // namespace hsi
