// SPDX-License-Identifier: MIT
#include "gdal_hsi_accuracy/scores.h"

#include "accuracy/detection.h"
#include "core/counted.h"
#include "core/cube_view.h"
#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "raster/text_output.h"
#include "shared/plot.h"
#include "stream/value_parts.h"
#include "tool/classification.h"
#include "tool/plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace hsi::accuracy_tool {
namespace {

constexpr std::array rates{1e-1, 1e-2, 1e-3, 1e-4, 1e-5};
constexpr double none = std::numeric_limits<double>::quiet_NaN();

/// A target: one class of the reference, and the band with its scores.
struct Target {
    int band = 0; ///< index in the source
    std::string name;
    accuracy::DetectionCounts counts;
    /// Number of pixels of the target, and number of those pixels without a score.
    int64_t pixels = 0, missing = 0;
};
using Targets = std::map<int, Target>; ///< targets by class value

struct Scores {
    std::shared_ptr<raster::RasterSource> source;
    std::vector<std::string> names; ///< names of the bands, without the words that gdal_hsi_detect adds
    int parts = 1;                  ///< number of bands of `reader` per score
    std::shared_ptr<const raster::RasterSource> reader;
    bool small_is_best = false;
};

bool ends_with(const std::string& text, const std::string& tail) {
    return text.size() > tail.size() && text.compare(text.size() - tail.size(), tail.size(), tail) == 0;
}

Scores open_scores(tool::Run& run, const ScoreOptions& s) {
    Scores scores;
    raster::OpenOptions options;
    options.path = s.path;
    options.cancel = &run.cancel();
    scores.source = raster::open_raster(options);
    // mtmf writes two bands per target. The second band (infeasibility) is not a score.
    const auto& all = scores.source->facts().bands.names;
    std::vector<int> infeasible;
    for (size_t b = 0; b < all.size(); ++b)
        if (ends_with(all[b], " infeasibility")) infeasible.push_back(static_cast<int>(b));
    if (!infeasible.empty() && infeasible.size() < all.size())
        scores.source = scores.source->without_bands(infeasible);
    for (std::string name : scores.source->facts().bands.names) {
        if (ends_with(name, " MF")) name.resize(name.size() - 3);
        scores.names.push_back(std::move(name));
    }
    const auto items = scores.source->band_items("HSI_BETTER");
    const auto small = static_cast<size_t>(std::count(items.begin(), items.end(), "smaller"));
    if (s.better == Better::automatic && small > 0 && small < items.size())
        throw Error(s.path + ": smaller scores are better in some bands, larger scores in others",
                    "Use -better for all bands.");
    scores.small_is_best = s.better == Better::automatic ? small > 0 : s.better == Better::smaller;
    scores.reader = scores.source;
    if (!scores.source->facts().exact_in_float) {
        scores.reader = scores.source->in_sums();
        scores.parts = stream::value_parts;
    }
    return scores;
}

using Labels = std::unique_ptr<raster::LabelSource>;

Labels open_labels(tool::Run& run, const raster::LabelOptions& options, const raster::Grid& grid) {
    auto labels = raster::LabelSource::open(options, &grid);
    tool::report_notes(run, *labels);
    return labels;
}

/// Reads scores and classes in strips of rows.
class Strips {
  public:
    Strips(tool::Run& run, const ScoreOptions& s, const Scores& scores, raster::LabelSource& truth,
           raster::LabelSource* mask)
        : m_run(run), m_scores(scores), m_truth(truth), m_mask(mask), m_guard(s.guard),
          m_shape(scores.source->shape()), m_reader(scores.reader->open_reader()) {
        constexpr int64_t most = int64_t{1} << 24; // number of values in a strip
        m_high = std::clamp<int64_t>(
            most / (m_shape.samples * static_cast<int64_t>(m_shape.bands) * scores.parts), 1, 256);
    }

    /// Calls work(classes, open, score(band)) for each row. classes: the class of each pixel; none() if the
    /// pixel is not a target. open: 1 for background pixels, 0 in the guard zone around targets and outside
    /// of the mask.
    template <class Work>
    void each_line(const Work& work) {
        const auto wide = static_cast<size_t>(m_shape.samples);
        std::vector<double> line(wide);
        for (int64_t y = 0; y < m_shape.lines; y += m_high) {
            if (m_run.cancel().requested()) throw Cancelled();
            const int64_t n = std::min(m_high, m_shape.lines - y);
            read_truth(y, n);
            const int bands = m_shape.bands * m_scores.parts;
            m_values.resize(static_cast<size_t>(bands) * static_cast<size_t>(n) * wide);
            const auto view = CubeView<float>::packed(m_values.data(), bands, n, m_shape.samples);
            m_reader->read({0, y, m_shape.samples, n}, view);
            for (int64_t l = 0; l < n; ++l)
                work(m_classes.data() + static_cast<size_t>(l) * wide,
                     m_open.data() + static_cast<size_t>(l) * wide, [&](int band) -> const double* {
                         const float* const row = view.row(band * m_scores.parts, l);
                         for (size_t x = 0; x < wide; ++x) {
                             line[x] = m_scores.parts == 1 ? static_cast<double>(row[x])
                                                           : stream::joined(row + x, view.band_stride);
                             if (!std::isfinite(line[x])) line[x] = none;
                         }
                         return line.data();
                     });
        }
    }

  private:
    /// Reads the classes of n rows, and marks the background: pixels inside the mask and outside of the guard
    /// zone.
    void read_truth(int64_t y, int64_t n) {
        const auto wide = static_cast<size_t>(m_shape.samples);
        const int64_t from = std::max<int64_t>(0, y - m_guard), to = std::min(m_shape.lines, y + n + m_guard);
        std::vector<uint16_t> around(static_cast<size_t>(to - from) * wide);
        m_truth.read(from, to - from, around.data());
        const auto first = static_cast<size_t>(y - from) * wide;
        m_classes.assign(around.begin() + static_cast<std::ptrdiff_t>(first),
                         around.begin() + static_cast<std::ptrdiff_t>(first) + n * m_shape.samples);
        m_open.assign(m_classes.size(), 1);
        // Last row of `around` with a target within the guard distance, for each sample.
        std::vector<int64_t> last(wide, -m_guard - 1);
        const auto reach = [&](int64_t row) {
            const uint16_t* const classes = around.data() + static_cast<size_t>(row) * wide;
            for (size_t x = 0; x < wide; ++x) {
                if (classes[x] == m_truth.none()) continue;
                const size_t guard = static_cast<size_t>(m_guard), begin = x - std::min(x, guard),
                             end = std::min(wide, x + guard + 1);
                std::fill(last.begin() + static_cast<std::ptrdiff_t>(begin),
                          last.begin() + static_cast<std::ptrdiff_t>(end), row);
            }
        };
        int64_t seen = 0;
        for (int64_t l = 0; l < n; ++l) {
            const int64_t row = l + y - from;
            for (; seen < std::min(to - from, row + m_guard + 1); ++seen)
                reach(seen);
            for (size_t x = 0; x < wide; ++x)
                m_open[static_cast<size_t>(l) * wide + x] = last[x] < row - m_guard;
        }
        if (m_mask == nullptr) return;
        std::vector<uint16_t> inside(m_classes.size());
        m_mask->read(y, n, inside.data());
        for (size_t k = 0; k < inside.size(); ++k)
            if (inside[k] == 0) {
                m_classes[k] = m_truth.none();
                m_open[k] = 0;
            }
    }

    tool::Run& m_run;
    const Scores& m_scores;
    raster::LabelSource& m_truth;
    raster::LabelSource* const m_mask;
    const int64_t m_guard;
    const stream::CubeShape m_shape;
    const std::unique_ptr<stream::CubeReader> m_reader;
    int64_t m_high = 1;
    std::vector<float> m_values;
    std::vector<uint16_t> m_classes;
    std::vector<char> m_open;
};

/// Returns the target of each band if there are several bands. If there is one band, returns no targets: they
/// are added when their classes first appear.
Targets targets_of(const Scores& scores, const raster::LabelSource& truth) {
    Targets targets;
    if (scores.names.size() == 1) return targets;
    const auto& legend = truth.legend();
    const auto number_of = [&](size_t band) {
        const auto named = std::find_if(legend.begin(), legend.end(), [&](const auto& one) {
            return equal_names(one.name, scores.names[band]);
        });
        return named == legend.end() ? static_cast<int>(band) + 1 : named->value;
    };
    for (size_t band = 0; band < scores.names.size(); ++band) {
        const Target target{static_cast<int>(band), scores.names[band],
                            accuracy::DetectionCounts(scores.small_is_best)};
        if (!targets.emplace(number_of(band), target).second)
            throw Error("two bands of " + scores.source->path() + " belong to class " +
                            std::to_string(number_of(band)) + " of " + truth.path(),
                        "Bands are matched with classes by name, else by their order.");
    }
    return targets;
}

Target& target_of(Targets& targets, int value, const Scores& scores, const raster::LabelSource& truth) {
    const auto found = targets.find(value);
    if (found != targets.end()) return found->second;
    const auto& legend = truth.legend();
    const auto named =
        std::find_if(legend.begin(), legend.end(), [&](const auto& one) { return one.value == value; });
    const std::string name = named == legend.end() ? std::string() : named->name;
    if (scores.names.size() > 1)
        throw Error(truth.path() + ": no band of " + scores.source->path() + " belongs to class " +
                        tool::class_text(value, name),
                    "Bands are matched with classes by name, else by their order.");
    return targets
        .emplace(value, Target{0, name.empty() ? std::to_string(value) : name,
                               accuracy::DetectionCounts(scores.small_is_best)})
        .first->second;
}

/// The detection curve of one target, or of all targets together.
struct Found {
    std::string name;
    accuracy::DetectionCurve curve;
};

class Assessment {
  public:
    Assessment(const Scores& scores, const raster::LabelSource& truth)
        : m_scores(scores), m_truth(truth), m_targets(targets_of(scores, truth)), m_all(scores.small_is_best),
          m_objects(static_cast<size_t>(scores.source->shape().samples), scores.small_is_best) {}

    std::vector<Found> compute(Strips& strips) {
        strips.each_line(
            [&](const uint16_t* classes, const char*, const auto& score) { add_targets(classes, score); });
        seal();
        strips.each_line([&](const uint16_t* classes, const char* open, const auto& score) {
            add_background(classes, open, score);
        });
        std::vector<Found> found;
        for (const auto& [value, target] : m_targets)
            if (target.pixels > 0) found.push_back({target.name, target.counts.curve()});
        if (found.size() > 1) found.push_back({"", m_all.curve()});
        return found;
    }
    const Targets& targets() const { return m_targets; }

  private:
    template <class Score>
    void add_targets(const uint16_t* classes, const Score& score) {
        const auto wide = static_cast<size_t>(m_scores.source->shape().samples);
        m_own.assign(wide, none);
        bool any = false;
        for (size_t x = 0; x < wide; ++x)
            if (classes[x] != m_truth.none()) {
                any = true;
                ++target_of(m_targets, classes[x], m_scores, m_truth).pixels;
            }
        for (int band = 0; any && band < m_scores.source->shape().bands; ++band) {
            const double* const row = score(band);
            for (size_t x = 0; x < wide; ++x) {
                if (classes[x] == m_truth.none()) continue;
                Target& target = m_targets.at(classes[x]);
                if (target.band != band) continue;
                m_own[x] = row[x];
                if (std::isnan(row[x])) {
                    ++target.missing;
                    continue;
                }
                target.counts.add_target(row[x]);
                m_all.add_target(row[x]);
            }
        }
        m_objects.add_line(classes, m_truth.none(), m_own.data());
    }
    void seal() {
        for (const auto& object : m_objects.all()) {
            m_targets.at(object.of).counts.add_object(object.best);
            m_all.add_object(object.best);
        }
        for (auto& [value, target] : m_targets)
            target.counts.seal();
        m_all.seal();
    }
    /// Adds the background pixels. If each target has its own band, pixels of other targets also count as
    /// background.
    template <class Score>
    void add_background(const uint16_t* classes, const char* open, const Score& score) {
        const auto wide = static_cast<size_t>(m_scores.source->shape().samples);
        const int bands = m_scores.source->shape().bands;
        for (int band = 0; band < bands; ++band) {
            const double* const row = score(band);
            m_use.assign(open, open + wide);
            for (auto& [value, target] : m_targets) {
                if (target.band != band) continue;
                for (size_t x = 0; x < wide && bands > 1; ++x)
                    if (classes[x] != m_truth.none()) m_use[x] = classes[x] != value;
                if (target.pixels > 0) target.counts.add_background(row, m_use.data(), wide);
            }
            m_all.add_background(row, m_use.data(), wide);
        }
    }

    const Scores& m_scores;
    const raster::LabelSource& m_truth;
    Targets m_targets;
    accuracy::DetectionCounts m_all;
    accuracy::Objects m_objects;
    std::vector<double> m_own; ///< score of each pixel of a row in the band of the pixel's own target
    std::vector<char> m_use;
};

// The report
// ----------------------------------------------------------------------------------------------------------

std::string digits(double v, const char* format = "%.9g") {
    if (std::isnan(v)) return "-";
    char text[40];
    std::snprintf(text, sizeof text, format, v);
    return text;
}
Json json_of(double v) { return std::isnan(v) ? Json() : Json(v); }

/// A point of the curve at a given rate of false alarms. Members are NaN if no threshold has so few false
/// alarms.
struct Point {
    double rate, threshold = none, pd = 0, pfa = 0, precision = none;
    int64_t objects = 0;
};
std::vector<Point> points_of(const accuracy::DetectionCurve& c) {
    std::vector<Point> points;
    for (const double rate : rates) {
        Point p{rate};
        if (const size_t k = c.at_rate(rate); k < c.size())
            p = {rate, c.threshold[k], c.pd(k), c.pfa(k), c.precision(k), c.objects[k]};
        points.push_back(p);
    }
    return points;
}

Json to_json(const Found& found) {
    const auto& c = found.curve;
    Json points = Json::array();
    for (const Point& p : points_of(c))
        points.push_back({{"pfa", p.rate},
                          {"threshold", json_of(p.threshold)},
                          {"pd", p.pd},
                          {"pfa_reached", p.pfa},
                          {"precision", json_of(p.precision)},
                          {"objects_found", p.objects}});
    return {{"name", found.name},       {"target_pixels", c.target_pixels},
            {"objects", c.all_objects}, {"background_pixels", c.background_pixels},
            {"auc", json_of(c.auc())},  {"average_precision", json_of(c.average_precision())},
            {"points", points}};
}

std::string text_of(const Found& found) {
    const auto& c = found.curve;
    std::string text =
        (found.name.empty() ? "All targets" : found.name) + ": " + counted(c.target_pixels, "target pixel") +
        " in " + counted(c.all_objects, "object") + ", " + counted(c.background_pixels, "background pixel") +
        "\n  AUC " + digits(c.auc(), "%.6f") + ", average precision " +
        digits(c.average_precision(), "%.6f") + "\n     Pfa        threshold        Pd  precision  objects\n";
    for (const Point& p : points_of(c)) {
        char line[120];
        std::snprintf(line, sizeof line, "   %5.0e %16s %9.4f %10s %8lld\n", p.rate,
                      digits(p.threshold, "%.7g").c_str(), p.pd, digits(p.precision, "%.4f").c_str(),
                      static_cast<long long>(p.objects));
        text += line;
    }
    return text;
}

std::string cell(double v) { return std::isnan(v) ? "" : digits(v, "%.17g"); }

std::string csv_of(const std::vector<Found>& all) {
    std::string table =
        "target,target_pixels,objects,background_pixels,auc,average_precision,pfa,threshold,pd,"
        "pfa_reached,precision,objects_found\n";
    for (const Found& found : all)
        for (const Point& p : points_of(found.curve))
            table += csv_cell(found.name) + "," + std::to_string(found.curve.target_pixels) + "," +
                     std::to_string(found.curve.all_objects) + "," +
                     std::to_string(found.curve.background_pixels) + "," + cell(found.curve.auc()) + "," +
                     cell(found.curve.average_precision()) + "," + cell(p.rate) + "," + cell(p.threshold) +
                     "," + cell(p.pd) + "," + cell(p.pfa) + "," + cell(p.precision) + "," +
                     std::to_string(p.objects) + "\n";
    return table;
}

/// Returns the receiver operating characteristic and the precision-recall curve as CSV. Each distinct score
/// of a target gives two points: without and with the pixels of this score. Straight lines between the points
/// are then exact.
std::string curves_of(const std::vector<Found>& all, bool small_is_best) {
    std::string table = "target,threshold,true_positives,false_positives,pd,pfa,precision,objects_found\n";
    for (const Found& found : all) {
        const auto& c = found.curve;
        const auto row = [&](double threshold, int64_t targets, int64_t alarms, int64_t objects) {
            const auto share = [](int64_t part, int64_t whole) {
                return whole > 0 ? cell(static_cast<double>(part) / static_cast<double>(whole)) : "";
            };
            table += csv_cell(found.name) + "," + cell(threshold) + "," + std::to_string(targets) + "," +
                     std::to_string(alarms) + "," + share(targets, c.target_pixels) + "," +
                     share(alarms, c.background_pixels) + "," + share(targets, targets + alarms) + "," +
                     std::to_string(objects) + "\n";
        };
        const double best = small_is_best ? -1 : 1;
        for (size_t k = 0; k < c.size(); ++k) {
            row(std::nextafter(c.threshold[k], best * std::numeric_limits<double>::infinity()),
                k > 0 ? c.targets[k - 1] : 0, c.better[k], k > 0 ? c.objects[k - 1] : 0);
            row(c.threshold[k], c.targets[k], c.alarms[k], c.objects[k]);
        }
        row(none, c.target_pixels, c.background_pixels, c.all_objects);
    }
    return table;
}

constexpr tools::Plot::Frame curve_frame{900, 640, 90, 640, 40, 560, 10};

/// Returns a measure between 0 and 1 with three decimals. A measure just below 1 has as many as show its
/// distance from 1 in two digits.
std::string measure_text(const char* name, double value) {
    constexpr int least = 3, most = 12;
    int decimals = least;
    if (value < 1 && value >= 0.9995)
        decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(1 - value))) + 1, least, most);
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), ", %s %.*f", name, decimals, value);
    return text.data();
}

/// Plots one curve per target. roc: true for Pd over Pfa on a logarithmic axis, false for precision over
/// recall.
tools::Plot plot_of(const std::vector<Found>& all, bool roc) {
    std::vector<tools::Series> series;
    constexpr int64_t longest_name = 32;
    for (const auto& one : all)
        series.push_back(tools::numbered_series(
            series.size(), (one.name.empty() ? "All targets" : tools::short_name(one.name, longest_name)) +
                               (roc ? measure_text("AUC", one.curve.auc())
                                    : measure_text("AP", one.curve.average_precision()))));
    tools::Plot plot(tools::Plot::with_legend(curve_frame, series),
                     roc ? tools::Axis{"Pfa (false alarms per background pixel)", rates.back(), 1, {}, true}
                         : tools::Axis{"recall (Pd)", 0, 1, {}},
                     {roc ? "Pd (share of the target pixels)" : "precision", 0, 1, {}});
    for (size_t t = 0; t < all.size(); ++t) {
        const auto& c = all[t].curve;
        std::vector<tools::Plot::Point> points;
        if (roc) points.push_back({plot.x_of(rates.back()), plot.y_of(0)});
        const auto to = [&](int64_t targets, int64_t alarms) {
            if (targets + alarms == 0) return;
            const double pd = static_cast<double>(targets) / static_cast<double>(c.target_pixels),
                         pfa = static_cast<double>(alarms) / static_cast<double>(c.background_pixels);
            points.push_back(
                {plot.x_of(roc ? std::max(pfa, rates.back()) : pd),
                 plot.y_of(roc ? pd : static_cast<double>(targets) / static_cast<double>(targets + alarms))});
        };
        for (size_t k = 0; k < c.size(); ++k) {
            to(k > 0 ? c.targets[k - 1] : 0, c.better[k]);
            to(c.targets[k], c.alarms[k]);
        }
        if (roc) to(c.target_pixels, c.background_pixels);
        plot.curve(points, series[t].colour, 2, series[t].dashed);
    }
    plot.legend(series);
    return plot;
}

void warn(tool::Run& run, const Targets& targets, const std::vector<Found>& found) {
    std::vector<std::string> absent;
    for (const auto& [value, target] : targets) {
        if (target.pixels == 0) absent.push_back(target.name);
        if (target.missing > 0)
            run.warn(
                counted(target.missing, "pixel") + " of the target '" + target.name +
                worded(target.missing, "' has no score and is left out", "' have no score and are left out"));
    }
    if (!absent.empty()) run.warn("the reference has no pixel of the target " + joined(absent, " or "));
    if (const int64_t n = found.front().curve.background_pixels; static_cast<double>(n) * rates.back() < 1)
        run.note("A Pfa under " + digits(1 / static_cast<double>(n), "%.1e") +
                 " is less than one pixel of the " + std::to_string(n) + " background pixels");
}

} // namespace

void assess_scores(tool::Run& run, const ScoreOptions& s) {
    if (s.json) run.only_print();
    const auto csv = run.text_output("-csv", s.csv, s.overwrite),
               curves = run.text_output("-curves", s.curves, s.overwrite);
    raster::check_text_output(csv);
    raster::check_text_output(curves);
    const tools::PlotOutput roc(run, "roc", s.roc, s.overwrite), recall(run, "recall", s.recall, s.overwrite);
    for (const auto* plot : {&roc, &recall})
        plot->check(curve_frame);
    const Scores scores = open_scores(run, s);
    const auto grid = raster::grid_of(*scores.source);
    const Labels truth = open_labels(run, s.truth, grid);
    const Labels mask = s.mask.path.empty() ? nullptr : open_labels(run, s.mask, grid);
    const auto shape = scores.source->shape();
    if (tool::add_to_plan(run, "Scores: " + counted(shape.bands, "band") + ", " +
                                   std::to_string(shape.samples) + "x" + std::to_string(shape.lines) + ", " +
                                   (scores.small_is_best ? "smaller" : "larger") +
                                   " ones are better. Reference: " + truth->description() + "."))
        return;
    Strips strips(run, s, scores, *truth, mask.get());
    Assessment assessment(scores, *truth);
    const auto found = assessment.compute(strips);
    for (const auto& note : truth->reading_notes())
        run.warn(note);
    truth->check_left_out();
    if (found.empty()) throw raster::no_labels(*truth);
    if (found.front().curve.background_pixels == 0)
        throw Error("no pixel with a score is background", "Pixels without a label are the background: make "
                                                           "classes background with -leave-out, or use -zero "
                                                           "none, a smaller -guard or another -mask.");
    warn(run, assessment.targets(), found);
    Json json{{"better", scores.small_is_best ? "smaller" : "larger"}, {"guard", s.guard}};
    std::string text;
    for (const Found& one : found) {
        if (one.name.empty())
            json["pooled"] = to_json(one);
        else
            json["targets"].push_back(to_json(one));
        text += (text.empty() ? "" : "\n") + text_of(one);
    }
    text.pop_back();
    run.report()["accuracy"] = json;
    raster::write_text_output(csv, csv_of(found));
    raster::write_text_output(curves, curves_of(found, scores.small_is_best));
    if (roc.wanted()) roc.write(run, plot_of(found, true));
    if (recall.wanted()) recall.write(run, plot_of(found, false));
    run.print(s.json ? json.dump(2, ' ', false, Json::error_handler_t::replace) : text);
}

} // namespace hsi::accuracy_tool
