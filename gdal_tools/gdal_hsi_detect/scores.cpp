// SPDX-License-Identifier: MIT
#include "gdal_hsi_detect/scores.h"

#include "core/counted.h"
#include "core/error.h"
#include "detect/fit/fit.h"
#include "detect/groups/groups.h"
#include "detect/ranking.h"
#include "gdal_hsi_detect/settings.h"
#include "links/links.h"
#include "raster/labels.h"
#include "raster/output_set.h"
#include "raster/raster_sink.h"
#include "raster/raster_source.h"
#include "shared/number_lists.h"
#include "shared/tallied_operation.h"
#include "tool/follow.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/scene.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hsi::detect_tool {
namespace {

/// Adds the threshold and its origin to the metadata, if the threshold is known.
void describe_threshold(const Settings& s, const detect::Decision& decision,
                        std::map<std::string, std::string>& metadata) {
    if (!decision.threshold) return;
    metadata["HSI_DETECT_THRESHOLD"] = number(*decision.threshold);
    if (s.map.percent) metadata["HSI_DETECT_THRESHOLD_SHARE"] = number(*s.map.percent) + "%";
    if (s.map.false_alarms) metadata["HSI_DETECT_FALSE_ALARMS"] = number(*s.map.false_alarms);
}

const char* name_of(detect::FitScore score) {
    switch (score) {
    case detect::FitScore::depth:
        return "depth";
    case detect::FitScore::fd:
        return "fd";
    case detect::FitScore::fit:
        break;
    }
    return "fit";
}

using Metadata = std::map<std::string, std::string>;

void describe(const Alone&, Metadata&) {}
void describe(const Rings& how, Metadata& metadata) {
    if (how.ridge_share != Rings().ridge_share) metadata["HSI_DETECT_SHRINKAGE"] = number(how.ridge_share);
}
void describe(const Features& how, Metadata& metadata) { metadata["HSI_DETECT_SCORE"] = name_of(how.score); }
void describe(const Mixtures& how, Metadata& metadata) {
    if (how.most_infeasible) metadata["HSI_DETECT_MAX_INFEASIBILITY"] = number(*how.most_infeasible);
}
void describe(const Exclusion& exclusion, Metadata& metadata) {
    if (exclusion.share > 0) metadata["HSI_DETECT_EXCLUDED_SHARE"] = number(exclusion.share);
}
void describe(const OneBackground& how, Metadata& metadata) {
    if (how.shrinkage.ledoit_wolf || how.shrinkage.conditioning.by_bands)
        metadata["HSI_DETECT_SHRINKAGE"] = how.shrinkage.text;
    describe(how.exclusion, metadata);
}
void describe(const Groups& how, Metadata& metadata) {
    metadata["HSI_DETECT_BACKGROUND"] = how.by_columns() ? "columns " + std::to_string(how.columns) : how.by;
    metadata["HSI_DETECT_SHRINKAGE"] = how.shrinkage.text;
    describe(how.exclusion, metadata);
}

raster::OutputSpec score_spec(const Settings& s, const stream::CubeShape& scene,
                              const std::vector<std::string>& names) {
    raster::OutputSpec scores;
    scores.holes = true;
    scores.metadata["HSI_DETECT_METHOD"] = s.method;
    std::visit([&](const auto& how) { describe(how, scores.metadata); }, s.how);
    const Metadata smaller{{"HSI_BETTER", "smaller"}}; // gdal_hsi_accuracy -scores reads this item
    for (const auto& name : names) {
        if (!std::holds_alternative<Mixtures>(s.how)) {
            scores.bands.push_back({name, s.method == "sam" || s.method == "sid" ? smaller : Metadata()});
            continue;
        }
        scores.bands.push_back({name + " MF", {}});
        scores.bands.push_back({name + " infeasibility", smaller});
    }
    scores.shape = {scene.samples, scene.lines, static_cast<int>(scores.bands.size())};
    return scores;
}

/// Returns a virtual band with the function and arguments that compute the score of a target.
raster::VirtualBand virtual_score(const detect::Detector& d, const detect::Targets& targets, size_t number) {
    raster::VirtualBand band;
    const size_t n = d.used.size();
    band.function = detect::has_background(d.method) ? "hsi_match" : "hsi_sam";
    band.arguments = {{"method", detect::name_of(d.method)}, {"band", std::to_string(number)}};
    if (!detect::has_background(d.method)) {
        std::vector<double> all;
        for (const auto& t : targets.spectra)
            all.insert(all.end(), t.begin(), t.end());
        band.arguments.emplace_back("targets", tools::number_rows(all, n));
        return band;
    }
    std::vector<double> used;
    for (const int b : d.used)
        used.push_back(b + 1);
    if (static_cast<int>(n) < d.bands) band.arguments.emplace_back("used", tools::number_list(used));
    band.arguments.emplace_back("mean", tools::number_list(d.centre));
    band.arguments.emplace_back("weights", tools::number_rows(d.rows, n));
    if (d.method != Method::ace) return band;
    band.arguments.emplace_back("contrast", tools::number_list(d.constants));
    band.arguments.emplace_back("deviation", tools::number_list(d.deviation));
    std::vector<double> lower;
    for (size_t row = 0; row < n; ++row)
        lower.insert(lower.end(), d.factor.begin() + static_cast<ptrdiff_t>(row * n),
                     d.factor.begin() + static_cast<ptrdiff_t>(row * n + row + 1));
    band.arguments.emplace_back("factor", tools::number_list(lower));
    return band;
}

/// Reports the number of pixels without a score, and the reasons.
void report_counts(tool::Run& run, const detect::Detection& found, const Settings& s) {
    tool::report_invalid(run, found.valid(), found.invalid());
    if (const auto* const fit = dynamic_cast<const detect::FeatureFit*>(&found)) {
        const int64_t open = fit->without_continuum();
        run.report()["without_continuum"] = open;
        if (open > 0)
            run.warn(
                counted(open, "pixel has", "pixels have") +
                " no score for some targets, since the first or the last value of a range is not above 0");
    }
    const auto* const rings = std::get_if<Rings>(&s.how);
    if (rings == nullptr) return;
    run.report()["pixels_without_background"] = found.without_background();
    run.report()["pixels_without_variance"] = found.without_variance();
    if (found.without_background() > 0)
        run.warn(counted(found.without_background(), "pixel has", "pixels have") +
                 (rings->ridge_share > 0
                      ? " no score, since fewer than 2 background pixels surround them"
                      : " no score, since the ring does not span the bands: it has too few pixels, or its "
                        "bands depend on one another. Leave -shrinkage out, or use a larger OUTER"));
    if (found.without_variance() > 0)
        run.warn(counted(found.without_variance(), "pixel has", "pixels have") +
                 " a background whose pixels are all equal: the score is 0 if the pixel equals the "
                 "background, else nodata");
}

/// Collects results while scores are computed: the best score of each target and, if there is a map, the
/// number of pixels of each target. Sums of integers and extremes do not depend on the order, so tiles,
/// threads and ranks do not change the results.
class ScoreTally {
  public:
    /// map: true if the second output is a map. background: pixels outside of this mask are also counted
    /// separately; null: no separate count.
    ScoreTally(size_t scores, int bands_a_score, bool small_is_best, bool map,
               const detect::PixelMask* background)
        : best(scores, std::numeric_limits<float>::quiet_NaN()), mapped(scores), m_bands(bands_a_score),
          m_small(small_is_best), m_map(map), m_background(background) {}
    /// Copies the counts of an operation on devices.
    ScoreTally(const ScoreTally& like, const detect::ScoreCounts& counts)
        : ScoreTally(like.best.size(), like.m_bands, like.m_small, like.m_map, like.m_background) {
        if (counts.best.size() == best.size()) best = counts.best;
        if (counts.mapped.size() == mapped.size()) mapped = counts.mapped;
        pixels = counts.pixels;
    }
    ScoreTally fresh() const { return {best.size(), m_bands, m_small, m_map, m_background}; }
    void add(const Rect& core, const std::vector<CubeView<float>>& out) {
        for (size_t k = 0; k < best.size(); ++k)
            for (int64_t line = 0; line < core.h; ++line)
                for (int64_t sample = 0; sample < core.w; ++sample)
                    take_best(k, out[0].row(static_cast<int>(k) * m_bands, line)[sample]);
        if (!m_map) return;
        for (int64_t line = 0; line < core.h; ++line)
            for (int64_t sample = 0; sample < core.w; ++sample) {
                const float target = out[1].row(0, line)[sample];
                if (std::isnan(target)) continue;
                ++pixels;
                if (target > 0) ++mapped[static_cast<size_t>(target) - 1];
                if (m_background == nullptr || m_background->at(core.y + line, core.x + sample)) continue;
                ++outside;
                if (target > 0) ++outside_mapped;
            }
    }
    void merge(const ScoreTally& other) {
        for (size_t k = 0; k < best.size(); ++k) {
            take_best(k, other.best[k]);
            mapped[k] += other.mapped[k];
        }
        pixels += other.pixels;
        outside += other.outside;
        outside_mapped += other.outside_mapped;
    }
    void exchange(parallel::Group& ranks) {
        auto counts = mapped;
        counts.insert(counts.end(), {pixels, outside, outside_mapped});
        ranks.add_up("pixels of the map", counts);
        const auto further = counts.end() - 3;
        pixels = further[0];
        outside = further[1];
        outside_mapped = further[2];
        mapped.assign(counts.begin(), further);
        const std::string mine(reinterpret_cast<const char*>(best.data()), best.size() * sizeof(float));
        for (const auto& bytes : ranks.all("best scores", mine))
            for (size_t k = 0; k < best.size(); ++k) {
                float score;
                std::memcpy(&score, bytes.data() + k * sizeof score, sizeof score);
                take_best(k, score);
            }
    }

    std::vector<float> best;     ///< best score of each target; NaN if no pixel has a score
    std::vector<int64_t> mapped; ///< number of pixels of each target in the map
    int64_t pixels = 0;          ///< number of pixels with a score; 0 without a map
    /// Number of pixels outside of the background, and number of those pixels with a target in the map.
    int64_t outside = 0, outside_mapped = 0;

  private:
    void take_best(size_t k, float score) {
        if (std::isnan(best[k]) || (m_small ? score < best[k] : score > best[k])) best[k] = score;
    }
    int m_bands; ///< number of output bands per target; the first of these bands is the score
    bool m_small, m_map;
    const detect::PixelMask* m_background;
};

/// Returns a text like "615 of 20736 pixels (2.97 %)".
std::string share_text(int64_t some, int64_t all, const std::string& of) {
    char percent[32];
    std::snprintf(percent, sizeof percent, " (%.3g %%)",
                  100 * static_cast<double>(some) / static_cast<double>(all));
    return std::to_string(some) + " of " + counted(all, "pixel") + of + percent;
}

Json share_json(int64_t some, int64_t all) {
    return {{"pixels", some}, {"of", all}, {"share", static_cast<double>(some) / static_cast<double>(all)}};
}

/// Returns a text like "forest 0.93, soil 0.7 and 12 others". Lists only targets with a text.
std::string by_target(const std::vector<std::string>& names, const std::vector<std::string>& texts) {
    constexpr size_t most = 10;
    std::string list;
    size_t all = 0;
    for (size_t k = 0; k < names.size(); ++k) {
        if (texts[k].empty() || ++all > most) continue;
        list += (list.empty() ? "" : ", ") + names[k] + " " + texts[k];
    }
    return list + (all > most ? " and " + counted(all - most, "other") : "");
}

/// Reports the best score of each target, and the number of pixels that reach the threshold.
void report_scores(tool::Run& run, const Settings& s, const ScoreTally& tally,
                   std::vector<std::string> names) {
    if (names.empty()) names = {"RX"};
    std::vector<std::string> scores, counts;
    auto& best = run.report()["detection"]["best_scores"] = Json::array();
    for (const float score : tally.best) {
        char text[32];
        std::snprintf(text, sizeof text, "%.4g", static_cast<double>(score));
        scores.emplace_back(text);
        best.push_back(score);
    }
    run.note((names.size() > 1 ? "Best scores: " : "Best score: ") + by_target(names, scores));
    if (s.map.path.empty()) return;
    const int64_t pixels = tally.pixels;
    int64_t reach = 0;
    for (const int64_t count : tally.mapped) {
        counts.push_back(count > 0 ? std::to_string(count) : std::string());
        reach += count;
    }
    run.report()["detection"]["map_pixels"] = tally.mapped;
    if (!s.map.any_threshold() || pixels == 0) return;
    run.report()["threshold"]["reached"] = share_json(reach, pixels);
    run.note(share_text(reach, pixels, "") + worded(reach, " reaches", " reach") + " the threshold" +
             (names.size() > 1 && reach > 0 ? "; by their best target: " + by_target(names, counts) : ""));
    if (!s.background.empty() && tally.outside > 0) {
        run.report()["threshold"]["reached_outside_background"] =
            share_json(tally.outside_mapped, tally.outside);
        run.note(share_text(tally.outside_mapped, tally.outside, " outside the background") +
                 worded(tally.outside_mapped, " reaches", " reach") + " the threshold");
    }
    constexpr double right_angle = 1.57079632679489661923;
    if (s.method == "sam" && s.map.threshold && *s.map.threshold >= right_angle && reach == pixels)
        run.warn("-threshold " + s.map.threshold_text +
                 ": all pixels reach this threshold. Angles between spectra without negative values are at "
                 "most 1.5708 radians: check that the threshold is not in degrees");
    constexpr double too_often = 3;
    constexpr int64_t few = 5; // with fewer pixels, the rate is too uncertain for a warning
    if (!s.map.false_alarms || s.ranks() || reach < few ||
        static_cast<double>(reach) <= too_often * *s.map.false_alarms * static_cast<double>(pixels))
        return;
    run.warn(share_text(reach, pixels, "") + " reach the threshold, but -false-alarms " +
             number(*s.map.false_alarms) + " corresponds to " +
             number(std::round(*s.map.false_alarms * static_cast<double>(pixels))) +
             ": the scores have longer tails than the scores of a normal background, or there are many "
             "targets; use -background with pixels without targets to measure the threshold");
}

/// Returns false if no pixel is valid. \throws Error if there are valid pixels, but no pixel has a score.
bool has_scores(const detect::Detection& detection) {
    if (detection.valid() > 0) return true;
    const auto* const groups = dynamic_cast<const detect::GroupedDetection*>(&detection);
    if (groups == nullptr || groups->without_group() + groups->in_bad_groups() == 0) return false;
    if (groups->in_bad_groups() == 0)
        throw Error("-background-by: no valid pixel has a group", "Use a map that overlaps the scene.");
    throw Error("-background-by: no group has a background: each group has fewer than 2 background pixels, "
                "or equal pixels, or a mean that equals a target",
                "Use larger groups (-columns-per-group), or leave -background-by out.");
}

/// Reports the number of groups, and the number of groups without scores.
void report_groups(tool::Run& run, const Groups& how, const detect::GroupedDetection& detection, int bands) {
    const auto groups = detection.groups();
    std::array<int64_t, 4> states{};
    std::vector<double> shares;
    int64_t least = std::numeric_limits<int64_t>::max(), excluded = 0, regularised = 0;
    for (const auto& group : groups) {
        ++states[static_cast<size_t>(group.state)];
        if (group.state != detect::GroupState::scored) continue;
        least = std::min(least, group.pixels - group.excluded);
        excluded += group.excluded;
        regularised += group.regularised;
        shares.push_back(group.shrinkage);
    }
    const auto middle = shares.begin() + static_cast<std::ptrdiff_t>(shares.size() / 2);
    std::nth_element(shares.begin(), middle, shares.end());
    const auto scored = static_cast<int64_t>(shares.size());
    run.report()["background"] = {{"by", how.by},
                                  {"groups", groups.size()},
                                  {"groups_with_scores", scored},
                                  {"least_pixels", least},
                                  {"median_shrinkage", *middle},
                                  {"excluded_pixels", excluded},
                                  {"regularised", regularised},
                                  {"pixels_without_group", detection.without_group()},
                                  {"pixels_without_background", detection.in_bad_groups()}};
    if (how.by_columns()) run.report()["background"]["columns_per_group"] = how.columns;
    run.note(
        "Background: " + counted(groups.size(), "group") + " of at least " + std::to_string(least) +
        " pixels" +
        (how.shrinkage.any() ? ", shrinkage " + number(std::round(1e4 * *middle) / 1e4) + " (median)" : "") +
        (excluded > 0 ? "; " + counted(excluded, "pixel") + " excluded" : ""));
    if (detection.without_group() > 0)
        run.note(counted(detection.without_group(), "valid pixel has", "valid pixels have") +
                 " no group and no score");
    if (const auto bad = static_cast<int64_t>(groups.size()) - scored;
        bad > 0 && detection.in_bad_groups() > 0)
        run.warn(counted(bad, "group has", "groups have") + " no background (" + std::to_string(states[1]) +
                 " with fewer than 2 background pixels, " + std::to_string(states[2]) +
                 " without variance, " + std::to_string(states[3]) + " with a mean that equals a target): " +
                 counted(detection.in_bad_groups(), "valid pixel has", "valid pixels have") + " no score");
    if (how.shrinkage.any()) return;
    if (regularised > 0)
        run.warn("in " + counted(regularised, "group") +
                 ", the pixels do not span the bands: 1e-6 of the mean diagonal was added to the diagonal of "
                 "the matrix, and scores mean little; use -shrinkage ledoit-wolf, or larger groups");
    else if (detect::is_few(least, bands))
        run.warn("the smallest group has " + counted(least, "background pixel") + " for " +
                 counted(bands, "band") +
                 ": scores lose much of their contrast; use -shrinkage ledoit-wolf, or larger groups");
}

/// Returns the rank of the threshold among `pixels` scores; rank 1 is the best score. \throws Error if the
/// rate of false alarms is less than one pixel of the background.
int64_t rank_of_threshold(const Settings& s, int64_t pixels) {
    constexpr double rounding = 1e-9; // 100 - 99.9 is slightly less than 0.1 in double precision
    const double share = s.map.percent ? (100 - *s.map.percent) / 100 : *s.map.false_alarms;
    const auto rank = static_cast<int64_t>(std::floor(share * static_cast<double>(pixels) + rounding));
    const auto* const one = std::get_if<OneBackground>(&s.how);
    if (rank < 1 && s.map.false_alarms)
        throw Error("-false-alarms " + number(*s.map.false_alarms) + ": the background has " +
                        counted(pixels, "pixel") + ", too few for a rate below 1 in " +
                        std::to_string(pixels),
                    one != nullptr && is_normal(one->method, one->exclusion) &&
                            one->shrinkage.conditioning.shrinkage == 0 && !one->shrinkage.best
                        ? "Use a larger rate or background, or leave -background out."
                        : "Use a larger rate or background.");
    return std::max<int64_t>(1, rank);
}

/// Finds the score with the required rank exactly, in two passes, and sets decision.threshold. Returns false
/// if no pixel has a score.
bool rank_scores(tool::Run& run, const Settings& s, const Scoring& scoring, size_t targets, double share,
                 const detect::PixelMask* mask, detect::Decision& decision) {
    const auto shape = scoring.cube.shape();
    const bool small = s.small_is_best();
    detect::ScoreRanking ranking({shape.samples, shape.lines, static_cast<int>(std::max<size_t>(1, targets))},
                                 small, s.map.false_alarms ? mask : nullptr);
    int64_t pixels = 0;
    for (const bool second : {false, true}) {
        const auto operation = scoring.make({});
        if (!tool::run_pass(run, scoring.cube, *operation, {&ranking}, scoring.pass("threshold", share)))
            return true;
        if (!has_scores(*operation)) return false;
        if (second) break;
        pixels = ranking.pixels();
        if (pixels == 0)
            throw Error(s.map.percent ? "no pixel has a score" : "no pixel of the background has a score",
                        "Use a background of valid pixels.");
        ranking.seek(rank_of_threshold(s, pixels));
    }
    const auto [score, within] = ranking.found();
    decision.threshold = score;
    run.report()["threshold"] = {{"value", score}, {"pixels", pixels}, {"within", within}};
    run.note("Threshold: " + number(score) + ", reached by " + std::to_string(within) + " of " +
             counted(pixels, "pixel") + (s.map.percent ? "" : " of the background"));
    return true;
}

} // namespace

std::string number(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", v);
    return text;
}

void report_kernels(tool::Run& run, const detect::Backend& backend) {
    if (const double seconds = backend.kernel_seconds(); seconds > 0)
        run.report()["kernel_seconds"] = seconds;
}

stream::PassOptions without_mask(const detect::PixelMask* mask, stream::PassOptions pass) {
    if (mask != nullptr) pass.memory -= std::min(mask->bytes(), pass.memory - 1);
    return pass;
}

const detect::PixelMask* counted_pixels(const tool::Run& run, const detect::PixelMask* mask) {
    return mask == nullptr && run.masks_statistics() ? run.mask().get() : mask;
}

raster::OutputSet plan_outputs(const tool::Run& run, const Settings& s, const raster::RasterSource& source,
                               std::vector<std::string> names, const detect::Decision& decision) {
    const bool anomalies = names.empty(), rings = std::holds_alternative<Rings>(s.how);
    if (anomalies) names = {"RX"};
    const auto scene = source.shape();
    raster::OutputSet outputs;
    auto scores = score_spec(s, scene, names);
    describe_threshold(s, decision, scores.metadata);
    if (raster::is_virtual(run.options().destination)) {
        const bool computed = raster::is_computed(run.options().destination);
        if (std::holds_alternative<Groups>(s.how))
            throw UsageError(
                tool::cannot_be_used_with(std::string(computed ? "-of HSI" : "-of VRT"),
                                          "-background-by: pixels computed on demand have no known group"),
                "Write another format.");
        if (anomalies && (!computed || rings))
            throw UsageError(
                computed ? tool::cannot_be_used_with("-of HSI", "-window: its sums need the lines of a tile")
                         : tool::cannot_be_used_with(
                               "-of VRT", "-method rx: a VRT would need a value for every pair of bands"),
                "Write another format.");
        if (!s.map.path.empty())
            throw UsageError(tool::cannot_be_used_with(std::string(computed ? "-of HSI" : "-of VRT"), "-map"),
                             "Write another format, or leave the map out.");
        return outputs;
    }
    outputs.plan(run.options().destination, scores);
    if (!s.map.path.empty()) {
        auto options = run.side_output("-map", s.map.path);
        // The nodata value is meant for the scores; the map has 0 for pixels without a target.
        options.nodata.reset();
        raster::OutputSpec map;
        map.shape = {scene.samples, scene.lines, 1};
        map.metadata = scores.metadata;
        map.bands = {{anomalies ? "Anomaly" : "Best target", {}}};
        std::vector<raster::LabelClass> classes;
        classes.reserve(names.size());
        for (const auto& name : names)
            classes.push_back({static_cast<int>(classes.size()) + 1, name});
        raster::describe_class_map(classes, options, map);
        // NaN marks missing pixels, and pixels without a target within the threshold, because 0 is not a
        // target.
        map.keep_nan = true;
        outputs.plan(options, map);
    }
    if (const auto* const how = std::get_if<Features>(&s.how); how != nullptr && !how->depth.empty())
        outputs.plan(run.side_output("-depth", how->depth), scores);
    outputs.check(source);
    return outputs;
}

bool write_virtual_scores(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                          std::vector<std::string> names, const detect::Detector& detector,
                          const detect::Targets& targets) {
    const auto& dst = run.options().destination;
    if (!raster::is_virtual(dst)) return false;
    if (names.empty()) names = {"RX"};
    const auto spec = score_spec(s, scene.shape(), names);
    tool::write_virtual(
        run, dst, spec, scene, [&] { return links::detection(detector); },
        [&] {
            std::vector<raster::VirtualBand> bands;
            for (size_t k = 1; k <= names.size(); ++k)
                bands.push_back(virtual_score(detector, targets, k));
            return bands;
        });
    return true;
}

namespace {

/// Sets the decision from the options. Returns false if no pixel has a score.
bool decide(tool::Run& run, const Settings& s, const Scoring& scoring, size_t targets, double share,
            const detect::PixelMask* mask, const detect::Detector* detector, detect::Decision& decision) {
    decision.threshold = s.map.threshold;
    if (s.ranks() && !rank_scores(run, s, scoring, targets, share, mask, decision)) return false;
    if (s.map.false_alarms && !s.ranks()) {
        decision.threshold = detect::threshold_of(*detector, *s.map.false_alarms);
        run.report()["threshold"]["value"] = *decision.threshold;
        run.note("Threshold: " + number(*decision.threshold) + ", which a share of " +
                 number(*s.map.false_alarms) + " of a normal background reaches");
    }
    if (s.map.threshold) run.report()["threshold"]["value"] = *s.map.threshold;
    if (s.map.percent) run.report()["threshold"]["percent"] = *s.map.percent;
    if (s.map.false_alarms) run.report()["threshold"]["false_alarms"] = *s.map.false_alarms;
    return true;
}

/// Returns the decision for scores in double precision. A score also reaches the threshold if both have the
/// same value in single precision.
detect::Decision as_stored(const Settings& s, detect::Decision decision) {
    if (s.ranks() && decision.threshold)
        decision.threshold = detect::edge_of(static_cast<float>(*decision.threshold), s.small_is_best());
    return decision;
}

/// Makes the pass that writes. Returns false if no pixel is valid.
bool write_scores(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                  const stream::CubeSource& cube, raster::OutputSet outputs, detect::Detection& detection,
                  const std::vector<std::string>& names, const detect::PixelMask* mask,
                  stream::PassOptions pass) {
    pass = tool::begin_writing(run, cube, detection, outputs, &scene, [&] { return pass; });
    const ScoreTally none(std::max<size_t>(1, names.size()), std::holds_alternative<Mixtures>(s.how) ? 2 : 1,
                          s.small_is_best(), !s.map.path.empty(), s.background.empty() ? nullptr : mask);
    tools::TalliedOperation<ScoreTally> tallied(detection, none, detection.output_bands().size());
    // A device counts while it computes scores, but does not count pixels outside of the background
    // separately.
    const bool counted = detection.score_counts() != nullptr && !run.ranks().several() &&
                         (s.background.empty() || s.map.path.empty());
    stream::Operation& operation = counted ? static_cast<stream::Operation&>(detection) : tallied;
    const raster::RasterSource* all = &scene;
    std::shared_ptr<raster::RasterSource> grown;
    if (scene.growth() != nullptr) {
        grown = tool::follow(run, scene, operation, &outputs, pass);
        all = grown.get();
        if (!has_scores(detection)) throw tool::no_valid_pixel(scene);
    } else {
        run.add_pass(stream::run_pass(cube, operation, outputs.sinks(), pass));
    }
    if (!has_scores(detection)) return false;
    report_counts(run, detection, s);
    if (const auto* groups = dynamic_cast<const detect::GroupedDetection*>(&detection))
        report_groups(run, std::get<Groups>(s.how), *groups, scene.shape().bands);
    report_scores(run, s, counted ? ScoreTally(none, *detection.score_counts()) : tallied.tally(), names);
    outputs.commit();
    tool::check_last_line(run, *all);
    return true;
}

} // namespace

bool make_scores(tool::Run& run, const Settings& s, const raster::RasterSource& scene, const Scoring& scoring,
                 raster::OutputSet outputs, const std::vector<std::string>& names, double share,
                 const detect::PixelMask* mask, const detect::Detector* detector) {
    detect::Decision decision{!s.map.path.empty(), {}};
    share *= s.share_of_detection();
    if (!decide(run, s, scoring, names.size(), share, mask, detector, decision)) return false;
    if (decision.threshold) outputs = plan_outputs(run, s, scene, names, decision);
    const auto operation = scoring.make_last(as_stored(s, decision));
    return write_scores(run, s, scene, scoring.cube, std::move(outputs), *operation, names, mask,
                        scoring.pass("detection", share));
}

} // namespace hsi::detect_tool
