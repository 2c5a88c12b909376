// SPDX-License-Identifier: MIT
// gdal_hsi_detect: scores of targets or anomalies. One pass for the moments of the background where the
// method wants them, and one for the scores; local RX takes its background from a halo in a single pass, and
// so do groups of columns from themselves. Groups of a map have their moments in one pass together.
#include "core/counted.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "core/text.h"
#include "detect/detect.h"
#include "detect/feature_fit.h"
#include "detect/groups.h"
#include "detect/ranking.h"
#include "detect/tuned_filter.h"
#include "links/links.h"
#include "math/continuum.h"
#include "mnf/mnf.h"
#include "pca/pca.h"
#include "raster/gdal/text_input.h"
#include "raster/labels/labels.h"
#include "raster/sink/output_set.h"
#include "raster/sink/raster_sink.h"
#include "raster/source/raster_source.h"
#include "shared/components.h"
#include "shared/number_lists.h"
#include "shared/scene_and_library.h"
#include "shared/scene_statistics.h"
#include "shared/spectral_bands.h"
#include "shared/tallied_operation.h"
#include "stream/empty_source.h"
#include "stream/resident_source.h"
#include "tool/definition.h"
#include "tool/follow.h"
#include "tool/mask.h"
#include "tool/model_values.h"
#include "tool/passes.h"
#include "tool/resources.h"
#include "tool/scene.h"
#include "tool/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace detect_tool {

using detect::Method;
using tool::Content;
using DetectComputing = tool::Computing<detect::Backend>;

/// -method: those of detect::Method, in its order, and what has operations of its own.
enum class Approach { sam, sid, mf, cem, ace, rx, sff, mtmf };

struct Settings {
    Approach approach = Approach::ace;
    Method method = Method::ace; ///< of those that have a Detector
    std::string library, background, map, statistics;
    std::vector<std::string> spectra;           ///< of the library; empty: all
    std::vector<std::array<int64_t, 2>> pixels; ///< line, sample
    std::array<int, 2> window{0, 0};            ///< inner, outer; 0: none
    std::string threshold_text;
    std::optional<double> threshold, percent, false_alarms; ///< one of them, or none
    double library_scale = 1;
    tools::BandFit fit = tools::BandFit::automatic;
    std::string shrinkage_text, components_text;
    bool shrink_best = false; ///< -shrinkage auto
    bool ledoit_wolf = false; ///< -shrinkage ledoit-wolf
    detect::Conditioning conditioning;
    std::string background_by; ///< "columns", or the map of groups; empty: one background
    int64_t columns_per_group = 1;
    double exclude_share = 0;
    int exclude_iterations = 1;
    bool absorption = false; ///< -target-is-absorption
    bool any_scale = false, any_wavelengths = false;
    std::vector<std::string> range_texts;
    std::vector<raster::BandChoice> ranges; ///< of every target that has none of its own
    std::string features, depth;            ///< files
    detect::FitScore score = detect::FitScore::fit;
    bool has_detector() const { return approach <= Approach::rx; }
    std::string mnf_model;
    std::optional<double> most_infeasible;
    int tuned_components = 0; ///< mtmf: -nc; 0: those of a noise that is no more than the signal
    std::string method_name() const {
        return has_detector() ? detect::name_of(method) : approach == Approach::sff ? "sff" : "mtmf";
    }
    /// A mask says what statistics are made from; mtmf's are those of the scene.
    bool has_statistics() const {
        return has_background() || (approach == Approach::mtmf && mnf_model.empty());
    }
    /// Bands of dst for each target: mtmf has the infeasibility behind each score.
    int bands_a_target() const { return approach == Approach::mtmf ? 2 : 1; }
    bool has_target() const { return !has_detector() || detect::has_target(method); }
    bool has_background() const { return has_detector() && detect::has_background(method); }
    bool small_is_best() const { return has_detector() && detect::is_small_at_target(method); }
    bool takes_absorption() const {
        return has_detector() && (method == Method::mf || method == Method::ace);
    }
    bool local() const { return window[1] > 0; }
    bool grouped() const { return !background_by.empty(); }
    bool by_columns() const { return background_by == "columns"; }
    bool shrinks() const { return shrink_best || ledoit_wolf || conditioning.shrinkage > 0; }
    /// Scores of a normal background are known; with -shrinkage they are not.
    bool normal_scores() const {
        return has_detector() &&
               ((method == Method::rx && !local()) || method == Method::ace || method == Method::mf) &&
               !grouped() && exclude_share == 0;
    }
    bool any_threshold() const { return threshold || percent || false_alarms; }
    /// The threshold is one of the scores, which have to be seen first.
    bool ranks() const { return percent || (false_alarms && !background.empty()); }
    double share_of_detection() const { return ranks() ? 1.0 / 3 : 1.0; } ///< of the work of all scores
};

// What is looked for, and against what
// ----------------------------------------------------------------------------------------------------------

/// The targets of a run, at the bands of a scene that may lose some on the way.
class DetectTargets {
  public:
    /// Reads the library, and leaves bands that it does not know out of the scene. \throws as
    /// spectra_for_scene(), and UsageError for a pixel outside of the scene.
    DetectTargets(tool::Run& run, const Settings& settings, std::shared_ptr<raster::RasterSource>& scene)
        : m_pixels(settings.pixels), m_absorption(settings.absorption) {
        if (!settings.library.empty()) {
            m_library = tools::spectra_for_scene(run, "-target", settings.library, settings.spectra,
                                                 settings.library_scale, "Detection", scene, settings.fit);
            m_bands = scene->bands();
            return;
        }
        const auto shape = scene->shape();
        for (const auto& [line, sample] : m_pixels) {
            if (line >= shape.lines || sample >= shape.samples)
                throw UsageError("-target-pixel " + std::to_string(line) + " " + std::to_string(sample) +
                                     ": the scene has lines 0 to " + std::to_string(shape.lines - 1) +
                                     " and samples 0 to " + std::to_string(shape.samples - 1),
                                 "Line and sample count from 0, within -srcwin.");
            m_library.names.push_back(std::to_string(line) + "," + std::to_string(sample));
        }
    }

    const std::vector<std::string>& names() const { return m_library.names; } ///< "LINE,SAMPLE" of pixels

    /// The spectra at the bands of `scene`, which is that of the constructor or one without some of its
    /// bands. Empty when the pixel `missing()` has no valid spectrum there.
    std::optional<detect::Targets> at(const raster::RasterSource& scene) {
        if (m_pixels.empty()) {
            auto library = tools::without_lost_bands(m_library, m_bands, scene);
            return detect::Targets{std::move(library.names), std::move(library.spectra), m_absorption};
        }
        detect::Targets targets{m_library.names, {}, false};
        const auto bands = static_cast<size_t>(scene.shape().bands);
        const auto reader = scene.open_reader();
        for (const auto& [line, sample] : m_pixels) {
            std::vector<float> x(bands);
            reader->read({sample, line, 1, 1},
                         CubeView<float>::packed(x.data(), static_cast<int>(bands), 1, 1));
            if (!std::all_of(x.begin(), x.end(), [](float v) { return std::isfinite(v); }) ||
                std::all_of(x.begin(), x.end(), [](float v) { return v == 0; })) {
                m_missing = std::to_string(line) + " " + std::to_string(sample);
                return {};
            }
            targets.spectra.emplace_back(x.begin(), x.end());
        }
        return targets;
    }

    /// To throw when there are none.
    Error missing() const {
        return Error("-target-pixel " + m_missing +
                         ": the pixel is invalid (nodata, masked, NaN or all zero)",
                     "Name a pixel that has a value in all bands, or leave bands out with -b.");
    }

    /// Of a library what may be a mistake beside the scene: other signs, other units (sam, sid and sff are
    /// the same in any), a spectrum of zeros, which else is darkness, and of a gas that absorbs nothing.
    void warn_of_mistakes(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                          DetectComputing* computing = nullptr) const {
        if (m_absorption) return warn_of_emission(run);
        if (!m_library.spectra.empty())
            tools::warn_of_other_signs(run, scene, m_library,
                                       std::string("Make both the same quantity") +
                                           (s.takes_absorption()
                                                ? ", or give -target-is-absorption for what a gas "
                                                  "absorbs"
                                                : ""));
        if (s.approach == Approach::sff || !detect::has_background(s.method)) return;
        for (size_t k = 0; k < m_library.spectra.size(); ++k)
            if (const auto& x = m_library.spectra[k];
                std::all_of(x.begin(), x.end(), [](double v) { return v == 0; }))
                run.warn("target '" + m_library.names[k] +
                         "' is all zero: what it finds is darkness. Leave it out where that is not meant");
        if (!m_library.spectra.empty())
            tools::warn_of_other_units(run, scene, m_library,
                                       "scores depend on the exact factor: compare those of a few, or take "
                                       "-method sam, which needs none",
                                       [computing](const CubeView<float>& cube, double* squares) {
                                           return computing != nullptr &&
                                                  (*computing)->sum_squares(cube, squares);
                                       });
    }

  private:
    void warn_of_emission(tool::Run& run) const {
        for (size_t k = 0; k < m_library.spectra.size(); ++k) {
            double below = 0, all = 0; // squared
            for (const double v : m_library.spectra[k]) {
                below += v < 0 ? v * v : 0;
                all += v * v;
            }
            constexpr double hardly = 0.01;
            if (below <= hardly * all)
                run.warn("-target-is-absorption: '" + m_library.names[k] +
                         "' is hardly or nowhere below zero, as what absorbs is, and scores tell of what "
                         "makes the "
                         "background brighter: turn the signs of the library where it holds coefficients of "
                         "absorption");
        }
    }

    const std::vector<std::array<int64_t, 2>> m_pixels;
    const bool m_absorption;
    tools::FittedSpectra m_library; ///< of pixels: their names alone
    std::vector<int> m_bands;       ///< file bands behind the library's
    std::string m_missing;
};

/// The pixels of -background that are in the run's mask, too; null where all that have values are the
/// background. Its bytes count against the memory of passes (without_mask()). \throws Error as
/// tool::read_mask().
std::shared_ptr<const detect::PixelMask> read_background(tool::Run& run, const Settings& settings,
                                                         const raster::RasterSource& scene) {
    const std::string& path = settings.background;
    // Rings are taken from pixels that have scores, too; the other methods' statistics have a pass of their
    // own.
    if (path.empty()) return settings.local() && run.masks_statistics() ? run.mask() : nullptr;
    std::string how;
    const auto mask = tool::read_mask(run, "-background", path, scene, how);
    run.report()["background_mask"] = {{"path", path}, {"how", how}, {"pixels", mask->count()}};
    if (!run.mask()) return mask;
    mask->keep_only(*run.mask());
    if (mask->count() == 0)
        throw Error("-background " + path + ": no pixel of it is in the mask",
                    "The background are the pixels that both -background and the mask take.");
    run.report()["background_mask"]["pixels"] = mask->count();
    return mask;
}

// Where scores are computed, and what that costs
// ----------------------------------------------------------------------------------------------------------

/// Scores of `targets` (rx: 0), with the statistics of the background where the method wants them: these are
/// the CPU's, wherever the scores are computed.
tool::Work work_of(const Settings& s, const stream::CubeShape& scene, size_t targets, int threads) {
    const auto bytes = static_cast<double>(scene.float_bytes()), pixels = static_cast<double>(scene.pixels());
    const double b = scene.bands, scores = targets > 0 ? static_cast<double>(targets) : 1;
    const double passes = s.ranks() ? 3 : 1; // of scores
    tool::Work work;
    work.cpu_reads = work.device_reads = passes * bytes;
    work.writes = pixels * (4 * scores + (s.map.empty() ? 0 : 1));
    if (s.local()) {
        const detect::Ring ring{s.window[0], s.window[1], nullptr};
        work.add(tool::cost::local_score, passes * pixels * detect::local_cost(scene.bands, ring),
                 passes * pixels * detect::local_products(scene.bands, ring));
        return work;
    }
    const double values = passes * pixels * b;
    work.add(tool::cost::score, values * scores);
    if (s.method == Method::sid) work.add(tool::cost::score_logarithms, values);
    if (s.method == Method::ace || s.method == Method::rx) work.add(tool::cost::score_matrix, values * b);
    if (detect::has_background(s.method)) {
        const double background = tool::cost::background.core * pixels * b * b;
        work.cpu_reads += bytes;
        work.device_reads += bytes;
        work.core_seconds += background;
        work.device_seconds += background / threads;
    }
    return work;
}

/// Starts the backend, or, for a VRT or an .hsi, which computes nothing, that of the CPU. Tells the user
/// where scores are computed.
DetectComputing start_computing(tool::Run& run, const Settings& s, const stream::CubeShape& scene,
                                size_t targets) {
    const auto& options = run.options();
    std::vector<CudaDevice> devices;
    if (!raster::RasterSink::is_virtual(options.destination))
        devices = tool::choose_devices(run, "detect", work_of(s, scene, targets, options.threads));
    return DetectComputing(run, "detect", std::move(devices), detect::simd_target(),
                           detect::make_cpu_backend);
}

void report_kernels(tool::Run& run, DetectComputing& computing) {
    if (const double seconds = computing->kernel_seconds(); seconds > 0)
        run.report()["kernel_seconds"] = seconds;
}

/// A pass whose memory is less by the mask, which stays there.
stream::PassOptions without_mask(const detect::PixelMask* mask, stream::PassOptions pass) {
    if (mask != nullptr) pass.memory -= std::min(mask->bytes(), pass.memory - 1);
    return pass;
}

// What is written
// ----------------------------------------------------------------------------------------------------------

std::string number(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", v);
    return text;
}

/// A threshold that is known, where it came from, into the metadata.
void describe_threshold(const Settings& s, const detect::Decision& decision,
                        std::map<std::string, std::string>& metadata) {
    if (!decision.threshold) return;
    metadata["HSI_DETECT_THRESHOLD"] = number(*decision.threshold);
    if (s.percent) metadata["HSI_DETECT_THRESHOLD_SHARE"] = number(*s.percent) + "%";
    if (s.false_alarms) metadata["HSI_DETECT_FALSE_ALARMS"] = number(*s.false_alarms);
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

raster::OutputSpec score_spec(const Settings& s, const stream::CubeShape& scene,
                              const std::vector<std::string>& names) {
    raster::OutputSpec scores;
    scores.shape = {scene.samples, scene.lines, static_cast<int>(names.size())};
    scores.holes = true;
    scores.metadata["HSI_DETECT_METHOD"] = s.method_name();
    if (s.approach == Approach::sff) scores.metadata["HSI_DETECT_SCORE"] = name_of(s.score);
    if (s.grouped())
        scores.metadata["HSI_DETECT_BACKGROUND"] =
            s.by_columns() ? "columns " + std::to_string(s.columns_per_group) : s.background_by;
    if (s.grouped() || s.ledoit_wolf || s.conditioning.by_bands)
        scores.metadata["HSI_DETECT_SHRINKAGE"] = s.shrinkage_text;
    if (s.exclude_share > 0) scores.metadata["HSI_DETECT_EXCLUDED_SHARE"] = number(s.exclude_share);
    for (const auto& name : names) {
        if (s.approach != Approach::mtmf) {
            scores.bands.push_back({name, {}});
            continue;
        }
        scores.bands.push_back({name + " MF", {}});
        scores.bands.push_back({name + " infeasibility", {}});
    }
    scores.shape.bands = static_cast<int>(scores.bands.size());
    if (s.most_infeasible) scores.metadata["HSI_DETECT_MAX_INFEASIBILITY"] = number(*s.most_infeasible);
    return scores;
}

/// The scores, a band a name (none: RX), then the map where it is asked for. \throws what is refused.
raster::OutputSet plan_outputs(const tool::Run& run, const Settings& s, const raster::RasterSource& source,
                               std::vector<std::string> names, const detect::Decision& decision = {}) {
    if (names.empty()) names = {"RX"};
    const auto scene = source.shape();
    raster::OutputSet outputs;
    auto scores = score_spec(s, scene, names);
    describe_threshold(s, decision, scores.metadata);
    if (raster::RasterSink::is_virtual(run.options().destination)) {
        const bool computed = raster::RasterSink::is_computed(run.options().destination);
        if (s.grouped())
            throw UsageError(
                std::string(computed ? "-of HSI" : "-of VRT") +
                    " does not go with -background-by: what computes on demand does not know the "
                    "group of its pixel",
                "Write another format.");
        if (s.method == Method::rx && (!computed || s.local()))
            throw UsageError(computed
                                 ? "-of HSI does not go with -window: its sums run along the lines of a tile"
                                 : "-of VRT does not go with -method rx: a VRT would hold a number for every "
                                   "pair of bands",
                             "Write another format.");
        if (!s.map.empty())
            throw UsageError(std::string(computed ? "-of HSI" : "-of VRT") + " does not go with -map",
                             "Write another format, or leave the map out.");
        return outputs;
    }
    outputs.plan(run.options().destination, scores);
    if (!s.map.empty()) {
        auto options = run.side_output("-map", s.map);
        options.nodata.reset(); // that of the scores: in a map 0 is none
        raster::OutputSpec map;
        map.shape = {scene.samples, scene.lines, 1};
        map.metadata = scores.metadata;
        map.bands = {{s.method == Method::rx ? "Anomaly" : "Best target", {}}};
        std::vector<raster::LabelClass> classes;
        classes.reserve(names.size());
        for (const auto& name : names)
            classes.push_back({static_cast<int>(classes.size()) + 1, name});
        raster::describe_class_map(classes, options, map);
        map.keep_nan = true; // 0 is no target: a pixel without a value, or one within no threshold
        outputs.plan(options, map);
    }
    if (!s.depth.empty()) outputs.plan(run.side_output("-depth", s.depth), scores);
    outputs.check(source);
    return outputs;
}

/// What the pixel function needs to know.
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

/// dst as a VRT or an .hsi: the detector stands in it, and a score is computed when it is read. True when
/// that is asked for: it is written then. \throws UsageError for what it cannot hold.
bool write_virtual_scores(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                          std::vector<std::string> names, const detect::Detector& detector,
                          const detect::Targets& targets) {
    const auto& dst = run.options().destination;
    if (!raster::RasterSink::is_virtual(dst)) return false;
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

/// Pixels without a score, and why.
void report_counts(tool::Run& run, const detect::Detection& found, const Settings& s) {
    tool::report_invalid(run, found.valid(), found.invalid());
    if (const auto* const fit = dynamic_cast<const detect::FeatureFit*>(&found)) {
        const int64_t open = fit->without_continuum();
        run.report()["without_continuum"] = open;
        if (open > 0)
            run.warn(counted(open, "pixel has", "pixels have") +
                     " no score of some target, since the first or the last value of a range is not above 0");
    }
    if (!s.local()) return;
    run.report()["pixels_without_background"] = found.without_background();
    run.report()["pixels_without_variance"] = found.without_variance();
    if (found.without_background() > 0)
        run.warn(counted(found.without_background(), "pixel has", "pixels have") +
                 " fewer than 2 pixels of background around them, and no score");
    if (found.without_variance() > 0)
        run.warn(counted(found.without_variance(), "pixel has", "pixels have") +
                 " a background whose pixels are all equal: 0 where they equal it, else no score");
}

/// What the scores of a pass come to: the best of each target, and of the map how many pixels each target
/// has. Counts and extremes have no order: tiles, lanes and ranks change nothing.
class ScoreTally {
  public:
    /// map: the second output is one. background: pixels that are counted apart; null: none.
    ScoreTally(size_t scores, int bands_a_score, bool small_is_best, bool map,
               const detect::PixelMask* background)
        : best(scores, std::numeric_limits<float>::quiet_NaN()), mapped(scores), m_bands(bands_a_score),
          m_small(small_is_best), m_map(map), m_background(background) {}
    /// What an operation of devices has counted.
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

    std::vector<float> best;                 ///< a target each; NaN: no pixel has a score
    std::vector<int64_t> mapped;             ///< pixels of the map, a target each
    int64_t pixels = 0;                      ///< with a score, where there is a map
    int64_t outside = 0, outside_mapped = 0; ///< of these outside of the background; with a target there

  private:
    void take_best(size_t k, float score) {
        if (std::isnan(best[k]) || (m_small ? score < best[k] : score > best[k])) best[k] = score;
    }
    int m_bands; ///< of the output, of which the first is the score
    bool m_small, m_map;
    const detect::PixelMask* m_background;
};

/// "615 of 20736 pixels (2.97 %)"
std::string share_text(int64_t some, int64_t all, const std::string& of) {
    char percent[32];
    std::snprintf(percent, sizeof percent, " (%.3g %%)",
                  100 * static_cast<double>(some) / static_cast<double>(all));
    return std::to_string(some) + " of " + counted(all, "pixel") + of + percent;
}

Json share_json(int64_t some, int64_t all) {
    return {{"pixels", some}, {"of", all}, {"share", static_cast<double>(some) / static_cast<double>(all)}};
}

/// "forest 0.93, soil 0.7 and 12 others", of those that have a text.
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

/// The best score of every target, and who reaches the threshold, to the user and into the report.
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
    if (s.map.empty()) return;
    const int64_t pixels = tally.pixels;
    int64_t reach = 0;
    for (const int64_t count : tally.mapped) {
        counts.push_back(count > 0 ? std::to_string(count) : std::string());
        reach += count;
    }
    run.report()["detection"]["map_pixels"] = tally.mapped;
    if (!s.any_threshold() || pixels == 0) return;
    run.report()["threshold"]["reached"] = share_json(reach, pixels);
    run.note(share_text(reach, pixels, "") + worded(reach, " reaches", " reach") + " the threshold" +
             (names.size() > 1 && reach > 0 ? "; by their best target: " + by_target(names, counts) : ""));
    if (!s.background.empty() && tally.outside > 0) {
        run.report()["threshold"]["reached_outside_background"] =
            share_json(tally.outside_mapped, tally.outside);
        run.note(share_text(tally.outside_mapped, tally.outside, " outside of the background") +
                 worded(tally.outside_mapped, " reaches", " reach") + " it");
    }
    constexpr double right_angle = 1.57079632679489661923;
    if (s.method == Method::sam && s.threshold && *s.threshold >= right_angle && reach == pixels)
        run.warn("-threshold " + s.threshold_text +
                 ": all pixels reach it. Angles between spectra without negative values are no larger than "
                 "1.5708 radians: are these degrees?");
    constexpr double too_often = 3;
    constexpr int64_t few = 5; // a rate says nothing of fewer
    if (!s.false_alarms || s.ranks() || reach < few ||
        static_cast<double>(reach) <= too_often * *s.false_alarms * static_cast<double>(pixels))
        return;
    run.warn(share_text(reach, pixels, "") + " reach the threshold, where -false-alarms " +
             number(*s.false_alarms) + " asks for " +
             number(std::round(*s.false_alarms * static_cast<double>(pixels))) +
             ": the scene's scores have longer tails than those of a normal background, or targets are many; "
             "give a -background of pixels without targets, whose scores then decide");
}

// Groups, to the user
// ----------------------------------------------------------------------------------------------------------

/// False when no pixel is valid. \throws Error when there are valid ones, but none has a score.
bool has_scores(const detect::Detection& detection) {
    if (detection.valid() > 0) return true;
    const auto* const groups = dynamic_cast<const detect::GroupedDetection*>(&detection);
    if (groups == nullptr || groups->without_group() + groups->in_bad_groups() == 0) return false;
    if (groups->in_bad_groups() == 0)
        throw Error("-background-by: no valid pixel has a group", "Give a map that lies on the scene.");
    throw Error("-background-by: no group has a background: each has fewer than 2 pixels of it, or they are "
                "all equal, or their mean is a target",
                "Take larger groups (-columns-per-group), or leave -background-by out.");
}

/// What the groups are, and which have no scores.
void report_groups(tool::Run& run, const Settings& s, const detect::GroupedDetection& detection, int bands) {
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
    run.report()["background"] = {{"by", s.background_by},
                                  {"groups", groups.size()},
                                  {"groups_with_scores", scored},
                                  {"least_pixels", least},
                                  {"median_shrinkage", *middle},
                                  {"excluded_pixels", excluded},
                                  {"regularised", regularised},
                                  {"pixels_without_group", detection.without_group()},
                                  {"pixels_without_background", detection.in_bad_groups()}};
    if (s.by_columns()) run.report()["background"]["columns_per_group"] = s.columns_per_group;
    run.note("Background: " + counted(groups.size(), "group") + ", " + std::to_string(least) +
             " pixels or more each" +
             (s.shrinks() ? ", shrinkage " + number(std::round(1e4 * *middle) / 1e4) + " (median)" : "") +
             (excluded > 0 ? "; " + counted(excluded, "pixel") + " left the statistics" : ""));
    if (detection.without_group() > 0)
        run.note(counted(detection.without_group(), "valid pixel has", "valid pixels have") +
                 " no group, and no score");
    if (const auto bad = static_cast<int64_t>(groups.size()) - scored;
        bad > 0 && detection.in_bad_groups() > 0)
        run.warn(counted(bad, "group has", "groups have") + " no background (" + std::to_string(states[1]) +
                 " with fewer than 2 pixels of it, " + std::to_string(states[2]) + " without variance, " +
                 std::to_string(states[3]) + " whose mean is a target): " +
                 counted(detection.in_bad_groups(), "valid pixel has", "valid pixels have") + " no score");
    if (s.shrinks()) return;
    if (regularised > 0)
        run.warn("of " + counted(regularised, "group") +
                 " the pixels do not span the bands: 1e-6 of its mean was added to the diagonal of their "
                 "matrix, and their scores mean little; take -shrinkage ledoit-wolf, or larger groups");
    else if (detect::is_few(least, bands))
        run.warn("groups have as few as " + counted(least, "pixel") + " of background for " +
                 counted(bands, "band") +
                 ": their scores keep little of their contrast; take -shrinkage "
                 "ledoit-wolf, or larger groups");
}

/// The last pass. False when no pixel is valid. mask: that of the background.
bool write_scores(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                  const stream::CubeSource& cube, raster::OutputSet outputs, detect::Detection& detection,
                  const std::vector<std::string>& names, const detect::PixelMask* mask,
                  stream::PassOptions pass) {
    pass = tool::begin_writing(run, cube, detection, outputs, &scene, [&] { return pass; });
    const ScoreTally none(std::max<size_t>(1, names.size()), s.bands_a_target(), s.small_is_best(),
                          !s.map.empty(), s.background.empty() ? nullptr : mask);
    tools::TalliedOperation<ScoreTally> tallied(detection, none, detection.output_bands().size());
    // A device counts beside its scores, but not what lies outside of a background.
    const bool counted = detection.score_counts() != nullptr && !run.ranks().several() &&
                         (s.background.empty() || s.map.empty());
    stream::Operation& operation = counted ? static_cast<stream::Operation&>(detection) : tallied;
    const raster::RasterSource* all = &scene;
    std::shared_ptr<raster::RasterSource> grown;
    if (scene.grows()) {
        grown = tool::follow(run, scene, operation, &outputs, pass);
        all = grown.get();
        if (!has_scores(detection)) throw tool::no_valid_pixel(scene);
    } else {
        run.add_pass(stream::run_pass(cube, operation, outputs.sinks(), pass));
    }
    if (!has_scores(detection)) return false;
    report_counts(run, detection, s);
    if (const auto* groups = dynamic_cast<const detect::GroupedDetection*>(&detection))
        report_groups(run, s, *groups, scene.shape().bands);
    report_scores(run, s, counted ? ScoreTally(none, *detection.score_counts()) : tallied.tally(), names);
    outputs.commit();
    tool::check_last_line(run, *all);
    return true;
}

// The passes
// ----------------------------------------------------------------------------------------------------------

/// What helps where a background has too few pixels: of the options those that were not given, and that help
/// at this number of pixels.
std::string advice_for_few_pixels(const Settings& s, const detect::Detector& d) {
    std::string advice = "take ";
    if (s.conditioning.components != detect::Conditioning::best_components &&
        !detect::are_alike(d.background_pixels, detect::Conditioning::fewest_components(d.method)))
        advice += "-nc auto, ";
    // -shrinkage leaves no distribution for -false-alarms, and two pixels nothing to shrink by.
    if (!s.shrink_best && !(s.false_alarms && !s.ranks()) && d.background_pixels > 2)
        advice += "-shrinkage auto, ";
    return advice + (advice.back() == ' ' && advice.size() > 5 ? "or " : "") + "a larger background";
}

/// ace compares directions, of which one dimension has two: its scores are 1 or -1.
void warn_of_one_dimension(tool::Run& run, const detect::Detector& d) {
    run.warn("ace in one " + std::string(d.components > 0 ? "component" : "band") +
             " is 1 on one side of the mean and -1 on the other, whatever the pixel: its scores say no more. "
             "Take " +
             (d.components > 0 && d.used.size() > 1 ? "two components or more (-nc), or -method mf or rx"
                                                    : "more bands, or -method mf or rx"));
}

/// Scores whose background has too few pixels for its bands (detect::is_few()), to the user.
void warn_of_few_pixels(tool::Run& run, const Settings& s, const detect::Detector& d) {
    const std::string advice = advice_for_few_pixels(s, d);
    const bool few = detect::is_few(d.background_pixels, d.free_dimensions);
    auto& report = run.report()["background"];
    report["few_pixels"] = few;
    if (d.shrinkage > 0) report["free_dimensions"] = d.free_dimensions;
    if (d.method == Method::ace && d.dimensions() == 1) warn_of_one_dimension(run, d);
    if (!few) return;
    std::string sizes = "the background has " + counted(d.background_pixels, "pixel") + " for " +
                        counted(d.dimensions(), d.components > 0 ? "component" : "band");
    if (d.shrinkage > 0)
        sizes += ", and a shrinkage of " + number(d.shrinkage) + " still leaves " +
                 counted(std::llround(d.free_dimensions), "direction") + " of their own variance";
    if (detect::are_alike(d.background_pixels, d.free_dimensions))
        return run.warn(
            sizes +
            (d.method == Method::rx
                 ? ": scores mean nothing, since all of its pixels are equally far from their mean; "
                 : ": scores mean nothing, since such statistics tell every pixel from all others; ") +
            advice);
    constexpr double little = 0.2;
    const double kept = detect::kept_contrast(d.background_pixels, d.free_dimensions);
    char percent[32];
    std::snprintf(percent, sizeof percent, "%.*f %%", kept < 0.1 ? 1 : 0, 100 * kept);
    run.warn(sizes + ", fewer than two for each: scores " +
             (kept < little ? "mean little, and keep" : "keep only") + " about " + percent +
             " of their contrast, and those of its own pixels less; " + advice);
}

/// Rings that hold no more pixels than there are bands, to the user.
void warn_of_small_rings(tool::Run& run, const Settings& s, const stream::CubeShape& scene,
                         const detect::PixelMask* mask) {
    const auto [inner, outer] = s.window;
    int64_t pixels = std::min(int64_t{outer} * outer - int64_t{inner} * inner, scene.pixels() - 1);
    if (mask != nullptr) pixels = std::min(pixels, mask->count());
    run.report()["background"] = {{"ring_pixels", pixels}, {"few_pixels", pixels <= scene.bands}};
    if (pixels <= scene.bands)
        run.warn("-window " + std::to_string(inner) + " " + std::to_string(outer) + " has rings of " +
                 counted(pixels, "pixel") + " at most for " + counted(scene.bands, "band") +
                 ": most of a score is what was added to the diagonal, and tells how far a pixel is from the "
                 "mean rather than how unlike its surroundings; take a larger OUTER, or fewer bands (-b, "
                 "gdal_hsi_pca, gdal_hsi_mnf)");
}

/// Bands that are left out and what was added to the matrix, to the user and into the report.
void report_background(tool::Run& run, const Settings& s, const detect::Detector& d,
                       const raster::RasterSource& scene) {
    std::vector<int> constant;
    for (const int b : d.constant)
        constant.push_back(scene.bands()[static_cast<size_t>(b)]);
    if (!constant.empty())
        run.note("Constant over the background, and left out: band " + tool::list_text(constant));
    run.report()["background"] = {
        {"pixels", d.background_pixels},        {"bands", d.used.size()},
        {"constant_bands", constant},           {"least_eigenvalue", d.least_eigenvalue},
        {"mean_eigenvalue", d.mean_eigenvalue}, {"regularised", d.ridge > 0},
        {"added_to_diagonal", d.ridge}};
    auto& report = run.report()["background"];
    report["shrinkage"] = d.shrinkage;
    if (s.shrink_best)
        run.note("Shrinkage: " + number(d.shrinkage) +
                 " of the mean eigenvalue's identity in the background's matrix");
    if (s.ledoit_wolf)
        run.note("Shrinkage: " + number(d.shrinkage) + " of its own diagonal in the background's matrix");
    report["components"] = d.dimensions();
    if (s.conditioning.components == detect::Conditioning::best_components)
        run.note(d.components > 0 ? "Scores are made from the first " + counted(d.components, "component") +
                                        " of " + counted(d.used.size(), "band")
                                  : "Scores are made from all " + counted(d.used.size(), "band") +
                                        ", for which the background has pixels enough");
    if (d.ridge > 0)
        run.warn((d.background_pixels <= static_cast<int64_t>(d.used.size())
                      ? std::string("the background does not span the bands")
                      : std::string("bands depend linearly on one another over the background")) +
                 ": 1e-6 of its mean was added to the diagonal of the " +
                 (d.method == Method::cem ? "correlation" : "covariance") + " matrix");
    warn_of_few_pixels(run, s, d);
}

/// Where the scores of a run come from: a pass's operation, and the options of such a pass.
struct Scoring {
    const stream::CubeSource& cube;
    std::function<std::unique_ptr<detect::Detection>(const detect::Decision&)> make;
    std::function<stream::PassOptions(const std::string& name, double share)> pass;
};

/// The rank of the threshold among `pixels` scores, 1 the best. \throws Error for a rate that is lower than
/// one pixel of the background.
int64_t rank_of_threshold(const Settings& s, int64_t pixels) {
    constexpr double rounding = 1e-9; // 100 - 99.9 is a little less than 0.1
    const double share = s.percent ? (100 - *s.percent) / 100 : *s.false_alarms;
    const auto rank = static_cast<int64_t>(std::floor(share * static_cast<double>(pixels) + rounding));
    if (rank < 1 && s.false_alarms)
        throw Error("-false-alarms " + number(*s.false_alarms) + ": the background has " +
                        counted(pixels, "pixel") + ", which tell no rate below 1 in " +
                        std::to_string(pixels),
                    s.normal_scores() && s.conditioning.shrinkage == 0 && !s.shrink_best
                        ? "Give a larger rate or background, or leave -background out."
                        : "Give a larger rate or background.");
    return std::max<int64_t>(1, rank);
}

/// The threshold that is one of the scores: two passes, which find it exactly. Sets decision.threshold. False
/// when no pixel has a score.
bool rank_scores(tool::Run& run, const Settings& s, const Scoring& scoring, size_t targets, double share,
                 const detect::PixelMask* mask, detect::Decision& decision) {
    const auto shape = scoring.cube.shape();
    const bool small = s.small_is_best();
    detect::ScoreRanking ranking({shape.samples, shape.lines, static_cast<int>(std::max<size_t>(1, targets))},
                                 small, s.false_alarms ? mask : nullptr);
    int64_t pixels = 0;
    for (const bool second : {false, true}) {
        const auto operation = scoring.make({});
        if (!tool::run_pass(run, scoring.cube, *operation, {&ranking}, scoring.pass("threshold", share)))
            return true;
        if (!has_scores(*operation)) return false;
        if (second) break;
        pixels = ranking.pixels();
        if (pixels == 0)
            throw Error(s.percent ? "no pixel has a score" : "no pixel of the background has a score",
                        "Give a background of pixels that are valid.");
        ranking.seek(rank_of_threshold(s, pixels));
    }
    const auto [score, within] = ranking.found();
    decision.threshold = score;
    run.report()["threshold"] = {{"value", score}, {"pixels", pixels}, {"within", within}};
    run.note("Threshold: " + number(score) + ", within which " + counted(within, "is", "are") + " of " +
             counted(pixels, "pixel") + (s.percent ? "" : " of the background"));
    return true;
}

/// What is a detection, as it is asked for. False when no pixel has a score.
bool decide(tool::Run& run, const Settings& s, const Scoring& scoring, size_t targets, double share,
            const detect::PixelMask* mask, const detect::Detector* detector, detect::Decision& decision) {
    decision.threshold = s.threshold;
    if (s.ranks() && !rank_scores(run, s, scoring, targets, share, mask, decision)) return false;
    if (s.false_alarms && !s.ranks()) {
        decision.threshold = detect::threshold_of(*detector, *s.false_alarms);
        run.report()["threshold"]["value"] = *decision.threshold;
        run.note("Threshold: " + number(*decision.threshold) + ", which " + number(*s.false_alarms) +
                 " of the pixels of a normal background reach");
    }
    if (s.threshold) run.report()["threshold"]["value"] = *s.threshold;
    if (s.percent) run.report()["threshold"]["percent"] = *s.percent;
    if (s.false_alarms) run.report()["threshold"]["false_alarms"] = *s.false_alarms;
    return true;
}

/// The same as scores in double precision are compared with it: those that are stored as the threshold, too,
/// are within it.
detect::Decision as_stored(const Settings& s, detect::Decision decision) {
    if (s.ranks() && decision.threshold)
        decision.threshold = detect::edge_of(static_cast<float>(*decision.threshold), s.small_is_best());
    return decision;
}

/// What scores are made from, with one more pass where the shrinkage is to be found.
detect::Detector detector_of(tool::Run& run, const Settings& s, const tool::Scene& scene,
                             const stream::SceneStatistics& moments, const detect::Targets& targets,
                             const detect::PixelMask* mask) {
    auto conditioning = s.conditioning;
    const auto scan = [&](auto& operation) {
        return tool::run_pass(run, *scene.counted(), operation, {},
                              without_mask(mask, run.pass("shrinkage", 0.0)));
    };
    if (s.shrink_best) {
        detect::ShrinkageScan shrinkage(s.method, moments, mask);
        if (scan(shrinkage)) conditioning.shrinkage = shrinkage.result();
    }
    if (s.ledoit_wolf && moments.valid_pixels > 1) {
        std::vector<std::unique_ptr<detect::BandShrinkage>> parts;
        parts.push_back(std::make_unique<detect::BandShrinkage>(s.method, moments));
        detect::GroupShrinkageScan shrinkage(moments.bands, parts, nullptr, mask);
        if (scan(shrinkage)) conditioning.shrinkage = shrinkage.share(0);
    }
    return detect::make_detector(s.method, targets, moments, conditioning);
}

/// The pixels that count in statistics: those of -background, and of the run's mask.
const detect::PixelMask* counted_pixels(const tool::Run& run, const detect::PixelMask* mask) {
    return mask == nullptr && run.masks_statistics() ? run.mask().get() : mask;
}

/// -exclude-share of one background: the detector is made anew without the pixels that it finds most like a
/// target.
void exclude_greatest(tool::Run& run, const Settings& s, const tool::Scene& scene, DetectComputing& computing,
                      const detect::Targets& targets, const detect::PixelMask* mask,
                      detect::Detector& detector) {
    if (s.exclude_share == 0) return;
    const auto shape = scene.shape();
    std::vector<int64_t> excluded;
    for (int round = 0; round < s.exclude_iterations; ++round) {
        detect::BestScores best({shape.samples, shape.lines, detector.scores()});
        const auto pass = [&](stream::PassOptions options) {
            tool::leave_room(options, best.bytes());
            return without_mask(mask, std::move(options));
        };
        const auto operation = computing->make_detection(detector, {});
        if (!tool::run_pass(run, scene.cube(), *operation, {&best}, pass(computing.pass("exclusion", 0.0))))
            return;
        const auto kept =
            best.without_greatest(s.exclude_share, nullptr, counted_pixels(run, mask), excluded);
        detect::BackgroundScan scan(shape, kept.get());
        run.add_pass(stream::run_pass(*scene.counted(), scan, {}, pass(run.pass("background", 0.0))));
        detector = detector_of(run, s, scene, scan.result().moments, targets, kept.get());
    }
    run.report()["excluded_pixels"] = excluded.front();
    run.note(counted(excluded.front(), "pixel") + " of greatest score left the statistics");
}

/// The background of a scene on devices, where scores are computed there, too: the processor's, to the last
/// bit. Not of a part of the pixels.
class BackgroundComputing {
  public:
    BackgroundComputing(tool::Run& run, DetectComputing& computing, const detect::PixelMask* mask,
                        const tools::GivenStatistics* given)
        : m_run(run) {
        constexpr auto what = stream::Statistics::double_covariance;
        if (given == nullptr && mask == nullptr && computing.on_devices() && cuda_module_present("pca")) {
            m_computing.emplace(run, "pca", computing.devices(), pca::simd_target(), pca::make_cpu_backend,
                                false);
            if (!(*m_computing)->has_scan(what)) m_computing.reset();
        }
        const std::string text = tool::describe_devices(
            run, m_computing ? computing.devices() : std::vector<CudaDevice>(), detect::simd_target());
        run.report()["background_device"] = text;
        if (computing.on_devices()) run.note("Background: " + text);
    }
    explicit operator bool() const { return m_computing.has_value(); }
    std::unique_ptr<stream::StatisticsScan> make_scan(const stream::CubeShape& shape) {
        return tools::make_scan(m_run, *m_computing, shape, stream::Statistics::double_covariance, true);
    }
    stream::PassOptions pass(double share) { return m_computing->pass("background", share); }

  private:
    tool::Run& m_run;
    std::optional<tools::PcaComputing> m_computing;
};

/// mf, cem, ace, rx: the background of the scene, then the scores.
void detect_by_background(tool::Run& run, const Settings& s, DetectComputing& computing,
                          const std::shared_ptr<raster::RasterSource>& source, DetectTargets& targets,
                          const detect::PixelMask* mask, const tools::GivenStatistics* given) {
    tool::Scene scene(run, source, "detection");
    if (s.conditioning.components > scene.shape().bands)
        throw UsageError("-nc " + std::to_string(s.conditioning.components) + ": the scene has " +
                         counted(scene.shape().bands, "band"));
    auto outputs = plan_outputs(run, s, *scene.raster(), targets.names());
    const auto make_scan = [&] { return std::make_unique<detect::BackgroundScan>(scene.shape(), mask); };
    BackgroundComputing there(run, computing, mask, given);
    detect::Decision decision{!s.map.empty(), s.threshold};
    scene.set_fate(nullptr);
    if (raster::RasterSink::is_virtual(run.options().destination) && s.exclude_share == 0) scene.read_once();
    const auto pass = [&](bool again) {
        return without_mask(mask, run.pass("background", again ? 0.0 : 0.5));
    };
    const auto moments = given   ? tools::moments_at(*given, *scene.raster())
                         : there ? scene.scan([&] { return there.make_scan(scene.shape()); },
                                              [&](bool again) { return there.pass(again ? 0.0 : 0.5); })
                                 : scene.scan(make_scan, pass).moments;
    const auto spectra = targets.at(*scene.raster());
    if (!spectra) throw targets.missing();
    auto detector = detector_of(run, s, scene, moments, *spectra, mask);
    exclude_greatest(run, s, scene, computing, *spectra, mask, detector);
    report_background(run, s, detector, *scene.raster());
    targets.warn_of_mistakes(run, s, *source, &computing);
    if (write_virtual_scores(run, s, *scene.raster(), targets.names(), detector, *spectra)) return;
    const Scoring scoring{scene.cube(),
                          [&](const detect::Decision& d) { return computing->make_detection(detector, d); },
                          [&](const std::string& name, double share) {
                              return without_mask(mask, computing.pass(name, share));
                          }};
    const double share = 0.5 * s.share_of_detection();
    const bool found = decide(run, s, scoring, targets.names().size(), share, mask, &detector, decision);
    if (decision.threshold) outputs = plan_outputs(run, s, *scene.raster(), targets.names(), decision);
    const auto operation = scoring.make(as_stored(s, decision));
    if (!found || !write_scores(run, s, *scene.raster(), scene.cube(), std::move(outputs), *operation,
                                targets.names(), mask, scoring.pass("detection", share)))
        throw tool::no_valid_pixel(*scene.raster());
}

// Backgrounds of groups
// ----------------------------------------------------------------------------------------------------------

detect::GroupOptions group_options(const Settings& s, detect::Targets targets) {
    return {s.method,      std::move(targets), s.conditioning,
            s.ledoit_wolf, s.exclude_share,    s.exclude_iterations};
}

/// Columns of a map are no detectors of a scanner.
void warn_of_map_columns(tool::Run& run, const raster::RasterSource& source) {
    double gt[6];
    if (!source.geotransform(gt)) return;
    const bool rotated = gt[2] != 0 || gt[4] != 0;
    if (!rotated && !source.has_srs()) return;
    run.warn(std::string("src has ") + (rotated ? "a rotated grid" : "the grid of a map") +
             ": -background-by columns is for scenes as a scanner has taken them, whose columns are its "
             "detectors; those of a resampled scene mix several");
}

/// Tiles of whole groups, where the user forces none: a few for each lane, and what memory bears.
/// \throws Error when that is not one group.
void set_column_tiles(const Settings& s, const stream::CubeSource& cube, const stream::Operation& operation,
                      stream::PassOptions& pass) {
    if (pass.tile_samples > 0) return;
    constexpr int64_t cache_line = 16, tiles_a_lane = 2; // each line of each band of a tile is a call
    const auto shape = cube.shape();
    const int64_t group = std::min(s.columns_per_group, shape.samples);
    const auto whole = [](int64_t samples, int64_t unit) { return (samples + unit - 1) / unit * unit; };
    const auto bytes = [&](int64_t samples) {
        return stream::plan_bytes(
            cube, operation, TilePlan(shape.samples, shape.lines, samples, shape.lines, operation.halo(), 1));
    };
    if (bytes(group) > pass.memory)
        throw Error("-background-by columns: " + counted(group, "column") + " of " +
                        counted(shape.lines, "line") + " need " + format_byte_size(bytes(group)) +
                        " of buffers, and -memory leaves " + format_byte_size(pass.memory),
                    "Use a larger -memory" + std::string(group > 1 ? ", or fewer columns per group." : "."));
    const int64_t unit = whole(cache_line, group);
    int64_t width =
        whole((shape.samples + tiles_a_lane * pass.lanes - 1) / (tiles_a_lane * pass.lanes), unit);
    width = std::max(width, whole(cube.layout().block_samples, group));
    const uint64_t share = pass.memory / static_cast<uint64_t>(pass.lanes);
    while (width > group && bytes(width) > share)
        width = whole(width / 2, group);
    pass.tile_samples = width;
    pass.tile_lines = shape.lines;
}

/// The scene itself, or a copy in memory where that has room for one: groups of columns are read with all
/// lines, and so in small pieces. An uncompressed file has these in the system's cache, where the pages of a
/// copy would have to be cleared first.
std::shared_ptr<const stream::CubeSource> in_memory(tool::Run& run,
                                                    const std::shared_ptr<raster::RasterSource>& source) {
    const uint64_t bytes = source->shape().float_bytes();
    if (run.ranks().several() || (source->raw_access() && !source->is_remote()) ||
        bytes > tool::half(run.buffer_memory()) || source->shape().samples == 1)
        return source;
    class Filling final : public stream::Operation { // the source keeps what is read
        class Nothing final : public stream::Worker {
            void process(const Tile&, const CubeView<float>&, const std::vector<CubeView<float>>&) override {}
        };
        std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
            return std::make_unique<Nothing>();
        }
    } filling;
    auto kept = std::make_shared<stream::ResidentSource>(source);
    auto pass = run.pass("reading", 0.2);
    tool::leave_room(pass, bytes);
    if (!tool::run_pass(run, *kept, filling, {}, pass)) return source;
    kept->seal();
    return kept;
}

/// On a device few lanes with wide tiles: each has buffers there, and many groups at a time keep it busy.
int column_lanes(const stream::PassOptions& pass, const stream::CubeShape& shape) {
    const auto worth = static_cast<int>(shape.float_bytes() / std::max<uint64_t>(pass.bytes_worth_a_lane, 1));
    return std::min(pass.lanes, std::max(pass.least_lanes, worth));
}

/// Statistics of groups, and scores by these: the classes of a map are read again and again on the CPU.
tool::Work work_of_groups(const Settings& s, const raster::RasterSource& scene, size_t targets) {
    const auto shape = scene.shape();
    const double values = static_cast<double>(shape.float_bytes()) / 4,
                 scores = targets > 0 ? static_cast<double>(targets) : 1,
                 rounds = s.exclude_share > 0 ? 1 + s.exclude_iterations : 1,
                 reads = s.by_columns() ? 1 : rounds * (s.ledoit_wolf ? 3 : 2);
    tool::Work work;
    work.device_reads = 4 * values;
    work.cpu_reads = reads * work.device_reads;
    work.writes = 4 * static_cast<double>(shape.pixels()) * scores;
    work.add(tool::cost::column_filter, rounds * values * shape.bands);
    work.add(tool::cost::score, rounds * values * scores);
    if (s.method == Method::ace || s.method == Method::rx)
        work.add(tool::cost::score_matrix, rounds * values * shape.bands);
    return work;
}

/// group_options() with the targets at the bands of the source; nothing: one of them has no spectrum there.
std::optional<detect::GroupOptions> group_options_at(const Settings& s, DetectTargets& targets,
                                                     const raster::RasterSource& source) {
    auto options = group_options(s, {targets.names(), {}, s.absorption});
    if (!detect::has_target(s.method)) return options;
    auto spectra = targets.at(source);
    if (!spectra) return {};
    options.targets = std::move(*spectra);
    return options;
}

/// Groups of columns: statistics and scores of each at once.
void detect_by_columns(tool::Run& run, const Settings& s, DetectComputing& computing,
                       std::shared_ptr<raster::RasterSource> source, DetectTargets& targets,
                       const detect::PixelMask* mask) {
    const detect::Columns columns{run.options().source.window ? run.options().source.window->x : 0,
                                  s.columns_per_group};
    bool found = false; // a spectrum of every target
    const bool any = tool::attempt(run, {tool::banded(source)}, [&](bool again) {
        auto outputs = plan_outputs(run, s, *source, targets.names());
        if (!again) warn_of_map_columns(run, *source); // of a run that is not refused
        const auto options = group_options_at(s, targets, *source);
        found = options.has_value();
        if (!found) return false;
        detect::Decision decision{!s.map.empty(), s.threshold};
        const auto cube = in_memory(run, source);
        const auto make = [&](const detect::Decision& d) {
            return computing->make_column_detection(source->shape(), columns, *options, d,
                                                    counted_pixels(run, mask));
        };
        const Scoring scoring{*cube, make, [&](const std::string& name, double share) {
                                  auto pass = computing.pass(name, share);
                                  if (computing.on_devices())
                                      pass.lanes = column_lanes(pass, source->shape());
                                  if (cube != source) tool::leave_room(pass, source->shape().float_bytes());
                                  pass = without_mask(mask, std::move(pass));
                                  set_column_tiles(s, *cube, *make(decision), pass);
                                  return pass;
                              }};
        const double share = again ? 0 : 0.8 * s.share_of_detection();
        if (!again) targets.warn_of_mistakes(run, s, *source);
        if (!decide(run, s, scoring, targets.names().size(), share, mask, nullptr, decision)) return false;
        if (decision.threshold) outputs = plan_outputs(run, s, *source, targets.names(), decision);
        const auto operation = scoring.make(as_stored(s, decision));
        return write_scores(run, s, *source, *cube, std::move(outputs), *operation, targets.names(), mask,
                            scoring.pass("detection", share));
    });
    if (any) return report_kernels(run, computing);
    if (!found) throw targets.missing();
    throw tool::no_valid_pixel(*source);
}

/// The map of -background-by on the scene's grid, its classes numbered as they rise. \throws Error naming the
/// file.
detect::GroupPlane read_groups(tool::Run& run, const Settings& s, const raster::RasterSource& scene) {
    const auto shape = scene.shape();
    const auto grid = raster::grid_of(scene);
    raster::LabelOptions options;
    options.path = s.background_by;
    detect::GroupPlane plane;
    plane.samples = shape.samples;
    const auto bytes = static_cast<uint64_t>(shape.pixels()) * sizeof(uint16_t);
    if (bytes > tool::quarter(run.options().memory))
        throw Error("-background-by: the groups of " + std::to_string(shape.pixels()) + " pixels take " +
                        format_byte_size(bytes) + ", more than a quarter of -memory " +
                        format_byte_size(run.options().memory),
                    "Give -memory " + format_byte_size(4 * bytes) + " or more.");
    const auto source = [&] {
        try {
            return raster::LabelSource::open(options, &grid);
        } catch (const Error& error) {
            throw Error(std::string("-background-by: ") + error.what(), error.advice());
        }
    }();
    for (const auto& note : source->notes())
        run.warn(note);
    plane.of.resize(static_cast<size_t>(shape.pixels()));
    constexpr int64_t strip = 64;
    for (int64_t y = 0; y < shape.lines; y += strip) {
        if (run.cancel().requested()) throw Cancelled();
        source->read(y, std::min(strip, shape.lines - y), plane.of.data() + y * shape.samples);
    }
    std::vector<uint16_t> number(size_t{1} << 16);
    for (const uint16_t value : plane.of)
        number[value] = value != source->none();
    std::vector<int> classes;
    for (size_t value = 0; value < number.size(); ++value)
        if (number[value] != 0) {
            classes.push_back(static_cast<int>(value));
            number[value] = static_cast<uint16_t>(classes.size());
        }
    if (classes.empty())
        throw Error("-background-by " + s.background_by + ": no pixel of the scene has a class",
                    "Give a map that lies on the scene; 0 and nodata are no class.");
    for (uint16_t& value : plane.of)
        value = number[value];
    plane.groups = static_cast<int>(classes.size());
    run.report()["background_map"] = {
        {"path", s.background_by}, {"how", source->description()}, {"classes", classes}};
    return plane;
}

/// The groups of a map while their statistics are made.
struct GroupDetectors {
    std::vector<std::unique_ptr<detect::Detector>> detectors; ///< null: the group has no scores
    std::vector<detect::GroupRecord> records;
};

/// Of one group.
void add_group(const Settings& s, const detect::Targets& targets, const stream::SceneStatistics& moments,
               double shrinkage, GroupDetectors& groups) {
    auto conditioning = s.conditioning;
    conditioning.by_bands = true;
    conditioning.tell_eigenvalues = false;
    conditioning.shrinkage = shrinkage;
    detect::GroupRecord record;
    record.pixels = moments.valid_pixels;
    record.shrinkage = shrinkage;
    std::unique_ptr<detect::Detector> detector;
    if (moments.valid_pixels < 2) {
        record.state = detect::GroupState::few_pixels;
    } else if (static_cast<int>(moments.constant.size()) == moments.bands) {
        record.state = detect::GroupState::no_variance;
    } else {
        try {
            detector = std::make_unique<detect::Detector>(
                detect::make_detector(s.method, targets, moments, conditioning));
            record.state = detect::GroupState::scored;
            record.regularised = detector->ridge > 0;
        } catch (const detect::TargetIsMean&) {
            record.state = detect::GroupState::target_is_mean;
        }
    }
    groups.detectors.push_back(std::move(detector));
    groups.records.push_back(record);
}

/// Of all groups, with one more pass where shrinkages are to be found.
template <class Pass>
GroupDetectors make_groups(tool::Run& run, const Settings& s, const tool::Scene& scene,
                           const detect::GroupBackgrounds& backgrounds, const detect::GroupPlane& plane,
                           const detect::Targets& targets, const detect::PixelMask* mask, const Pass& pass) {
    const auto count = static_cast<size_t>(plane.groups);
    std::vector<double> shares(count, s.conditioning.shrinkage);
    if (s.ledoit_wolf) {
        std::vector<std::unique_ptr<detect::BandShrinkage>> parts(count);
        for (size_t g = 0; g < count; ++g)
            if (const auto moments = backgrounds.moments(g); moments.valid_pixels > 1)
                parts[g] = std::make_unique<detect::BandShrinkage>(s.method, moments);
        detect::GroupShrinkageScan scan(scene.shape().bands, parts, &plane, mask);
        if (tool::run_pass(run, *scene.counted(), scan, {}, pass(run.pass("shrinkage", 0.0))))
            for (size_t g = 0; g < count; ++g)
                shares[g] = parts[g] ? scan.share(g) : 0;
    }
    GroupDetectors groups;
    for (size_t g = 0; g < count; ++g) {
        if (run.cancel().requested()) throw Cancelled();
        add_group(s, targets, backgrounds.moments(g), shares[g], groups);
    }
    return groups;
}

/// What groups hold from the first pass to the last. \throws Error when it is more than half of the memory.
uint64_t memory_of_groups(const tool::Run& run, const Settings& s, const stream::CubeShape& shape,
                          const detect::GroupPlane& plane, size_t targets) {
    const auto bands = static_cast<uint64_t>(shape.bands), groups = static_cast<uint64_t>(plane.groups);
    const bool factors = s.method == Method::ace || s.method == Method::rx;
    const uint64_t detectors = groups * bands * 8 * (factors ? 3 * bands : 2 * targets + 2);
    const uint64_t scores = s.exclude_share > 0 ? static_cast<uint64_t>(shape.pixels()) * 12 : 0;
    const uint64_t bytes =
        plane.bytes() + detect::GroupScan::bytes(shape.bands, plane.groups) + detectors + scores;
    if (bytes > tool::half(run.buffer_memory()))
        throw Error("-background-by: the statistics of " + counted(plane.groups, "group") + " take " +
                        format_byte_size(bytes) + ", more than half of the memory that -memory " +
                        format_byte_size(run.options().memory) + " leaves",
                    "Use a larger -memory, or a map of fewer classes.");
    return bytes;
}

/// Groups of a map on a device, which reads the scene once. False when it does not fit there.
bool detect_classes_on_device(tool::Run& run, const Settings& s, DetectComputing& computing,
                              std::shared_ptr<raster::RasterSource> source, DetectTargets& targets,
                              const detect::PixelMask* mask, const detect::GroupPlane& plane) {
    bool found = false, fits = true; // a spectrum of every target
    const bool any = tool::attempt(run, {tool::banded(source)}, [&](bool again) {
        auto outputs = plan_outputs(run, s, *source, targets.names());
        const auto options = group_options_at(s, targets, *source);
        found = options.has_value();
        if (!found) return false;
        const auto there = computing->make_group_scene(
            source->shape(), plane, *options, counted_pixels(run, mask), run.options().device_memory);
        fits = there != nullptr;
        if (!fits) return true;
        const auto loading = there->loading();
        const auto pass = [&](const std::string& name, double share) {
            auto made = computing.pass(name, share);
            tool::leave_room(made, plane.bytes());
            return without_mask(mask, std::move(made));
        };
        const auto reading = pass("reading", again ? 0 : 0.8);
        tool::end_of_plan(run, [&] { tool::print_plan(run, *source, *loading, reading); });
        if (!again) targets.warn_of_mistakes(run, s, *source);
        run.add_pass(stream::run_pass(*source, *loading, {}, reading));
        const stream::EmptySource empty(source->shape());
        const Scoring scoring{empty, [&](const detect::Decision& d) { return there->make_detection(d); },
                              pass};
        detect::Decision decision{!s.map.empty(), s.threshold};
        const double share = again ? 0 : 0.2;
        if (!decide(run, s, scoring, targets.names().size(), share, mask, nullptr, decision)) return false;
        if (decision.threshold) outputs = plan_outputs(run, s, *source, targets.names(), decision);
        const auto operation = scoring.make(as_stored(s, decision));
        return write_scores(run, s, *source, empty, std::move(outputs), *operation, targets.names(), mask,
                            scoring.pass("detection", share));
    });
    if (!fits) {
        run.note("The scene does not fit into device memory: detection on the CPU");
        run.report()["device"] = tool::describe_devices(run, {}, detect::simd_target());
        return false;
    }
    if (!found) throw targets.missing();
    if (!any) throw tool::no_valid_pixel(*source);
    report_kernels(run, computing);
    return true;
}

/// Groups of a map: the moments of all in one pass, then the scores.
void detect_by_classes(tool::Run& run, const Settings& s, DetectComputing& computing,
                       const std::shared_ptr<raster::RasterSource>& source, DetectTargets& targets,
                       const detect::PixelMask* mask) {
    const auto plane = read_groups(run, s, *source);
    if (computing.on_devices() && detect_classes_on_device(run, s, computing, source, targets, mask, plane))
        return;
    tool::Scene scene(run, source, "detection");
    auto outputs = plan_outputs(run, s, *scene.raster(), targets.names());
    const uint64_t held =
        memory_of_groups(run, s, scene.shape(), plane, std::max<size_t>(1, targets.names().size()));
    const auto pass = [&](stream::PassOptions options) {
        tool::leave_room(options, held);
        return without_mask(mask, std::move(options));
    };
    const auto make_scan = [&] { return std::make_unique<detect::GroupScan>(scene.shape(), plane, mask); };
    detect::Decision decision{!s.map.empty(), s.threshold};
    scene.set_fate(nullptr);
    const auto backgrounds =
        scene.scan(make_scan, [&](bool again) { return pass(run.pass("background", again ? 0.0 : 0.5)); });
    detect::Targets spectra;
    if (detect::has_target(s.method)) {
        auto found = targets.at(*scene.raster());
        if (!found) throw targets.missing();
        spectra = std::move(*found);
    }
    const auto counting = counted_pixels(run, mask);
    auto groups = make_groups(run, s, scene, backgrounds, plane, spectra, counting, pass);
    const auto make = [&](const detect::Decision& d) {
        return detect::make_group_detection(scene.shape(), plane, groups.detectors, groups.records, d);
    };
    for (int round = 0; s.exclude_share > 0 && round < s.exclude_iterations; ++round) {
        const auto shape = scene.shape();
        const auto operation = make({});
        detect::BestScores best({shape.samples, shape.lines, operation->output_bands().front()});
        if (!tool::run_pass(run, scene.cube(), *operation, {&best}, pass(computing.pass("exclusion", 0.0))))
            break;
        std::vector<int64_t> excluded;
        const auto kept = best.without_greatest(s.exclude_share, &plane, counting, excluded);
        detect::GroupScan scan(shape, plane, kept.get());
        run.add_pass(stream::run_pass(*scene.counted(), scan, {}, pass(run.pass("background", 0.0))));
        const auto before = std::move(groups.records);
        groups = make_groups(run, s, scene, scan.result(), plane, spectra, kept.get(), pass);
        for (size_t g = 0; g < before.size(); ++g) {
            groups.records[g].pixels = before[g].pixels;
            groups.records[g].excluded = excluded[g];
            if (before[g].state != detect::GroupState::scored) groups.records[g].state = before[g].state;
        }
    }
    targets.warn_of_mistakes(run, s, *source);
    const Scoring scoring{scene.cube(), make, [&](const std::string& name, double share) {
                              return pass(computing.pass(name, share));
                          }};
    const double share = 0.5 * s.share_of_detection();
    const bool found = decide(run, s, scoring, targets.names().size(), share, mask, nullptr, decision);
    if (decision.threshold) outputs = plan_outputs(run, s, *scene.raster(), targets.names(), decision);
    const auto operation = scoring.make(as_stored(s, decision));
    if (!found || !write_scores(run, s, *scene.raster(), scene.cube(), std::move(outputs), *operation,
                                targets.names(), mask, scoring.pass("detection", share)))
        throw tool::no_valid_pixel(*scene.raster());
}

/// sam, sid and local RX: the scores alone.
void detect_at_once(tool::Run& run, const Settings& s, DetectComputing& computing,
                    std::shared_ptr<raster::RasterSource> source, DetectTargets& targets,
                    const detect::PixelMask* mask) {
    if (raster::RasterSink::is_virtual(run.options().destination)) tool::leave_out_unseen_bands(run, source);
    bool found = false; // a spectrum of every target
    const bool any = tool::attempt(run, {tool::banded(source)}, [&](bool again) {
        auto outputs = plan_outputs(run, s, *source, targets.names());
        auto spectra = targets.at(*source);
        found = spectra.has_value();
        if (!found) return false;
        detect::Decision decision{!s.map.empty(), s.threshold};
        const Scoring scoring{
            *source,
            [&](const detect::Decision& d) {
                return s.local() ? computing->make_local_detection(source->shape().bands,
                                                                   {s.window[0], s.window[1], mask}, d)
                                 : computing->make_detection(detect::make_detector(s.method, *spectra), d);
            },
            [&](const std::string& name, double share) {
                return without_mask(mask, computing.pass(name, share));
            }};
        const double share = again ? 0 : s.share_of_detection();
        if (!again) targets.warn_of_mistakes(run, s, *source);
        if (s.local()) warn_of_small_rings(run, s, source->shape(), mask);
        if (!s.local() && write_virtual_scores(run, s, *source, targets.names(),
                                               detect::make_detector(s.method, *spectra), *spectra))
            return true;
        if (!decide(run, s, scoring, targets.names().size(), share, mask, nullptr, decision)) return false;
        if (decision.threshold) outputs = plan_outputs(run, s, *source, targets.names(), decision);
        const auto operation = scoring.make(as_stored(s, decision));
        return write_scores(run, s, *source, *source, std::move(outputs), *operation, targets.names(), mask,
                            scoring.pass("detection", share));
    });
    if (any) return;
    if (!found) throw targets.missing();
    if (s.method == Method::sid)
        throw Error(source->path() + ": no pixel is valid and has a positive value",
                    "Check the nodata value (-srcnodata), or use another method.");
    throw tool::no_valid_pixel(*source);
}

// Features
// ----------------------------------------------------------------------------------------------------------

/// A line of -features.
struct FeatureLine {
    std::string name;
    double from = 0, to = 0;
    std::optional<double> weight; ///< none: its area
    double least_fit = 0, least_depth = 0;
};

/// The lines of -features. \throws Error naming the file and the line.
std::vector<FeatureLine> read_features(tool::Run& run, const std::string& path) {
    std::vector<FeatureLine> lines;
    if (path.empty()) return lines;
    const auto table =
        raster::read_spectrum_table(path, {"name", "from_nm", "to_nm"}, {"weight", "fit_min", "depth_min"});
    if (!table.further.empty())
        run.warn("-features " + path + ": columns that mean nothing here: " + joined(table.further, ", "));
    for (size_t r = 0; r < table.rows.size(); ++r) {
        const auto& cells = table.rows[r];
        const std::string where = "-features " + path + ", feature " + std::to_string(r + 1) + ": ";
        const auto value = [&](size_t column, const char* name) -> std::optional<double> {
            if (cells[column].empty()) return {};
            const double v = raster::table_number(cells[column]);
            if (!std::isfinite(v)) throw Error(where + name + " '" + cells[column] + "' is no number");
            if (v < 0) throw Error(where + name + " " + cells[column] + " is below 0");
            return v;
        };
        const auto least = [&](size_t column, const char* name) {
            const double v = value(column, name).value_or(0);
            if (v > 1)
                throw Error(where + name + " " + cells[column] + " is above 1, which no pixel reaches",
                            "Fits and depths are shares: write 0.8 for 80 %.");
            return v;
        };
        if (cells[0].empty()) throw Error(where + "it has no name", "Name the spectrum of -target.");
        const auto from = value(1, "from_nm"), to = value(2, "to_nm");
        if (!from || !to || !(*from < *to))
            throw Error(where + "from_nm and to_nm are to be two wavelengths, the smaller one first");
        lines.push_back(
            {cells[0], *from, *to, value(3, "weight"), least(4, "fit_min"), least(5, "depth_min")});
    }
    return lines;
}

/// The task at a scene's bands, and which of these take part.
struct FeaturePlan {
    detect::FitTask task;
    std::vector<int> bands; ///< indices in the scene, rising
};

/// Of one target; `lines`: its features.
void add_features(FeaturePlan& plan, const raster::RasterSource& scene, const std::vector<FeatureLine>& lines,
                  const std::vector<double>& spectrum, detect::FitTarget target) {
    const auto nm = scene.wavelengths_nm();
    double sum = 0;
    for (const auto& line : lines) {
        detect::FitRange range{math::rising_bands(nm, line.from, line.to), {}};
        std::vector<double> values;
        for (const size_t b : range.bands) {
            range.x.push_back(nm[b]);
            values.push_back(spectrum[b]);
        }
        auto feature = detect::feature_to_fit(range, values,
                                              "target '" + target.name + "', " + number(line.from) + "-" +
                                                  number(line.to) + " nm");
        if (line.weight) feature.weight = *line.weight;
        feature.least_fit = line.least_fit;
        feature.least_depth = line.least_depth;
        sum += feature.weight;
        auto& ranges = plan.task.ranges;
        const auto same = std::find_if(ranges.begin(), ranges.end(),
                                       [&](const detect::FitRange& one) { return one.bands == range.bands; });
        feature.range = static_cast<size_t>(same - ranges.begin());
        if (same == ranges.end()) ranges.push_back(std::move(range));
        target.features.push_back(std::move(feature));
    }
    if (!(sum > 0))
        throw Error("target '" + target.name + "': the weights of its features are all 0",
                    "Give one a weight, or leave the cells empty: the weight then is its area.");
    plan.task.targets.push_back(std::move(target));
}

FeaturePlan plan_features(const Settings& s, const raster::RasterSource& scene,
                          const std::vector<FeatureLine>& lines, const detect::Targets& targets) {
    if (scene.wavelengths_nm().empty())
        throw Error(
            scene.path() + " has no wavelengths, and features lie at these",
            "Write them into its header: a list wavelength in an ENVI .hdr, an item wavelength of every "
            "band (gdal_edit.py -mo) ...");
    std::vector<FeatureLine> common;
    for (const auto& range : s.ranges)
        common.push_back({"", range.from_nm, range.to_nm, {}, 0, 0});
    FeaturePlan plan;
    for (size_t k = 0; k < targets.names.size(); ++k) {
        std::vector<FeatureLine> own;
        std::copy_if(lines.begin(), lines.end(), std::back_inserter(own),
                     [&](const FeatureLine& line) { return equal_names(line.name, targets.names[k]); });
        if (own.empty()) own = common;
        if (own.empty())
            throw Error(
                "target '" + targets.names[k] + "' has no features" +
                    (s.features.empty() ? "" : " in " + s.features),
                "Give -range FROM-TOnm, which holds for all targets without features of their own, or "
                "-features FILE.csv; -spectrum takes single targets of a library.");
        add_features(plan, scene, own, targets.spectra[k], {targets.names[k], {}});
    }
    for (const auto& range : plan.task.ranges)
        plan.bands.insert(plan.bands.end(), range.bands.begin(), range.bands.end());
    std::sort(plan.bands.begin(), plan.bands.end());
    plan.bands.erase(std::unique(plan.bands.begin(), plan.bands.end()), plan.bands.end());
    // From here on the bands of the ranges are all that there is.
    for (auto& range : plan.task.ranges)
        for (size_t& b : range.bands)
            b = static_cast<size_t>(
                std::lower_bound(plan.bands.begin(), plan.bands.end(), static_cast<int>(b)) -
                plan.bands.begin());
    plan.task.inputs = static_cast<int>(plan.bands.size());
    plan.task.score = s.score;
    return plan;
}

void report_features(tool::Run& run, const detect::FitTask& task) {
    size_t features = 0;
    Json ranges = Json::array();
    for (const auto& target : task.targets)
        features += target.features.size();
    for (const auto& range : task.ranges)
        ranges.push_back(
            {{"from_nm", range.x.front()}, {"to_nm", range.x.back()}, {"bands", range.x.size()}});
    run.report()["detection"]["features"] = features;
    run.report()["detection"]["ranges"] = ranges;
    run.note(counted(features, "feature") + " of " + counted(task.targets.size(), "target") + " in " +
             counted(task.ranges.size(), "range"));
}

/// Roughly: every target has a feature in each range.
tool::Work work_of_features(const Settings& s, const raster::RasterSource& scene, size_t targets) {
    const auto nm = scene.wavelengths_nm();
    double bands = 0;
    for (const auto& range : s.ranges)
        bands += static_cast<double>(math::rising_bands(nm, range.from_nm, range.to_nm).size());
    if (bands == 0) bands = scene.shape().bands;
    const double values = static_cast<double>(scene.shape().pixels()) * bands, passes = s.ranks() ? 3 : 1,
                 scores = static_cast<double>(targets);
    tool::Work work;
    work.cpu_reads = work.device_reads = passes * 4 * values;
    work.writes = static_cast<double>(scene.shape().pixels()) * 4 * scores * (s.depth.empty() ? 1 : 2);
    work.add(tool::cost::continuum, passes * values);
    work.add(tool::cost::feature_fit, passes * values * scores);
    return work;
}

/// sff: one pass over the bands of the features.
void detect_by_features(tool::Run& run, const Settings& s, std::shared_ptr<raster::RasterSource> source,
                        DetectTargets& targets, const detect::PixelMask* mask) {
    DetectComputing computing(
        run, "detect",
        tool::choose_devices(run, "detect", work_of_features(s, *source, targets.names().size())),
        detect::simd_target(), detect::make_cpu_backend);
    const auto lines = read_features(run, s.features);
    for (const auto& line : lines)
        if (std::none_of(targets.names().begin(), targets.names().end(),
                         [&](const std::string& name) { return equal_names(name, line.name); }))
            run.warn("-features " + s.features + ": no target is called '" + line.name + "'");
        else
            tools::note_cut_range(run,
                                  "-features " + s.features + ": '" + line.name + "', " + number(line.from) +
                                      "-" + number(line.to) + " nm,",
                                  source->wavelengths_nm(), line.from, line.to);
    for (const auto& range : s.ranges)
        tools::note_cut_range(run, "-range " + range.text, source->wavelengths_nm(), range.from_nm,
                              range.to_nm);
    const bool any = tool::attempt(run, {tool::banded(source)}, [&](bool again) {
        const auto plan = plan_features(s, *source, lines, *targets.at(*source));
        const auto scene = tool::only_bands(source, plan.bands);
        auto outputs = plan_outputs(run, s, *scene, targets.names());
        report_features(run, plan.task);
        detect::Decision decision{!s.map.empty(), s.threshold};
        const Scoring scoring{*scene,
                              [&](const detect::Decision& d) {
                                  auto task = plan.task;
                                  task.depths = false;
                                  return computing->make_feature_fit(std::move(task), d);
                              },
                              [&](const std::string& name, double share) {
                                  return without_mask(mask, computing.pass(name, share));
                              }};
        const double share = again ? 0 : s.share_of_detection();
        auto task = plan.task;
        task.depths = !s.depth.empty();
        if (!again) targets.warn_of_mistakes(run, s, *scene);
        if (!decide(run, s, scoring, targets.names().size(), share, mask, nullptr, decision)) return false;
        if (decision.threshold) outputs = plan_outputs(run, s, *scene, targets.names(), decision);
        const auto operation = computing->make_feature_fit(std::move(task), as_stored(s, decision));
        return write_scores(run, s, *scene, *scene, std::move(outputs), *operation, targets.names(), mask,
                            scoring.pass("detection", share));
    });
    if (!any) throw tool::no_valid_pixel(*source);
    report_kernels(run, computing);
}

// Components of the noise's variance
// ----------------------------------------------------------------------------------------------------------

/// How many components scores are made from. \throws UsageError for more than there are.
int tuned_components_of(const Settings& s, const std::vector<double>& eigenvalues) {
    const auto all = static_cast<int>(eigenvalues.size());
    if (s.tuned_components > all)
        throw UsageError("-nc " + std::to_string(s.tuned_components) + ": there are " +
                             counted(all, "component") + " of MNF",
                         "Use a number from 1 to " + std::to_string(all) + ".");
    if (s.tuned_components > 0) return s.tuned_components;
    constexpr double least = 2; // as much signal as noise
    const auto strong = static_cast<int>(
        std::count_if(eigenvalues.begin(), eigenvalues.end(), [](double l) { return l >= least; }));
    return std::min(all, std::max(2, strong));
}

/// matched[b]: the scene's band behind the model's.
detect::TunedTask tuned_task(tool::Run& run, const Settings& s, const mnf::Model& model,
                             const std::vector<int>& matched, int bands, detect::Targets targets) {
    const int components = tuned_components_of(s, model.eigenvalues);
    detect::TunedTask task;
    task.bands = bands;
    task.used = matched;
    task.mean = model.mean;
    task.loadings.assign(model.loading(0),
                         model.loading(0) + static_cast<size_t>(components) * model.mean.size());
    task.eigenvalues.assign(model.eigenvalues.begin(), model.eigenvalues.begin() + components);
    task.targets = std::move(targets);
    task.most_infeasible = s.most_infeasible;
    auto& report = run.report()["detection"];
    report["components"] = components;
    report["snr"] = Json::array();
    for (int k = 0; k < components; ++k)
        report["snr"].push_back(model.snr(k));
    run.note("Scores are made from " + counted(components, "component") + " of " +
             std::to_string(model.components) + ", of snr " + number(model.snr(0)) + " to " +
             number(model.snr(components - 1)));
    return task;
}

/// The last pass, over `cube`, a source of `scene`.
void write_tuned_scores(tool::Run& run, const Settings& s, DetectComputing& computing,
                        const raster::RasterSource& scene, const stream::CubeSource& cube,
                        const detect::TunedTask& task, const std::vector<std::string>& names, double share) {
    const detect::Decision decision{!s.map.empty(), s.threshold};
    if (s.threshold) run.report()["threshold"]["value"] = *s.threshold;
    const auto operation = computing->make_tuned_filter(task, decision);
    if (!write_scores(run, s, scene, cube, plan_outputs(run, s, scene, names, decision), *operation, names,
                      nullptr, computing.pass("detection", share)))
        throw tool::no_valid_pixel(scene);
    report_kernels(run, computing);
}

/// mtmf with -mnf-model: one pass.
void detect_by_model(tool::Run& run, const Settings& s, DetectComputing& computing,
                     const std::shared_ptr<raster::RasterSource>& source, DetectTargets& targets) {
    auto model = mnf::from_json(raster::read_input(s.mnf_model, largest_file::model), s.mnf_model);
    const auto [scene, matched] = tool::match_source(run, source, s.mnf_model, model, s.any_wavelengths);
    const auto values = tool::value_scale(*scene, matched);
    mnf::rescale(model, tool::compare_scales(run, s.mnf_model, model, values, s.any_scale), values);
    plan_outputs(run, s, *scene, targets.names());
    auto spectra = targets.at(*scene);
    if (!spectra) throw targets.missing();
    targets.warn_of_mistakes(run, s, *scene);
    const auto task = tuned_task(run, s, model, matched, scene->shape().bands, std::move(*spectra));
    const tool::RangeCheck check(*scene, model, matched);
    write_tuned_scores(run, s, computing, *scene, check.source(), task, targets.names(), 1);
    check.tell(run);
}

/// mtmf: the scene's components, then the scores.
void detect_among_components(tool::Run& run, const Settings& s,
                             const std::shared_ptr<raster::RasterSource>& source, DetectTargets& targets) {
    const bool scans = s.mnf_model.empty();
    const int components = s.tuned_components > 0 ? s.tuned_components : std::min(source->shape().bands, 20);
    auto work = tools::projection_work(source->shape(), components, scans, tool::cost::noise_and_signal);
    work.writes =
        static_cast<double>(source->shape().pixels()) * 8 * static_cast<double>(targets.names().size());
    if (scans) work.device_reads *= 2; // the filter is not where the statistics have left the scene
    const auto devices = tool::choose_devices(run, "detect", work);
    DetectComputing filter(run, "detect", devices, detect::simd_target(), detect::make_cpu_backend);
    if (!scans) return detect_by_model(run, s, filter, source, targets);
    tools::PcaComputing computing(run, "pca", devices, pca::simd_target(), pca::make_cpu_backend, false);
    tool::Scene scene(run, source, "detection");
    if (s.tuned_components > scene.shape().bands)
        throw UsageError("-nc " + std::to_string(s.tuned_components) + ": the scene has " +
                         counted(scene.shape().bands, "band"));
    plan_outputs(run, s, *scene.raster(), targets.names());
    const auto scan = [&] { // nothing is kept on the device, which the filter reads for itself
        return tools::make_scan(run, computing, scene.shape(), stream::Statistics::differences, true);
    };
    const auto pass = [&](bool again) { return computing.pass("covariances", again ? 0.0 : 0.5); };
    const auto moments = scene.scan(scan, pass);
    auto spectra = targets.at(*scene.raster());
    if (!spectra) throw targets.missing();
    std::vector<int> kept;
    const auto model = tools::fit_noise_scene(scene, moments, {}, {}, kept);
    targets.warn_of_mistakes(run, s, *scene.raster());
    const auto task = tuned_task(run, s, model, kept, scene.shape().bands, std::move(*spectra));
    write_tuned_scores(run, s, filter, *scene.raster(), scene.cube(), task, targets.names(), 0.5);
}

/// For classes one: the scene lies there. The ranks of a job have parts of it.
std::vector<CudaDevice> devices_for_groups(tool::Run& run, const Settings& s,
                                           const raster::RasterSource& source, size_t targets) {
    if (!s.by_columns() && run.ranks().several()) {
        if (run.options().device.kind == DeviceChoice::Kind::cuda)
            throw UsageError("-device cuda: the ranks of a job compute groups of a map on the CPU",
                             "Leave -device out, or run one process.");
        return {};
    }
    const auto work = work_of_groups(s, source, targets);
    return s.by_columns() ? tool::choose_devices(run, "detect", work)
                          : tool::choose_devices(run, "detect", work, 1);
}

void run_detect(tool::Run& run, const Settings& s) {
    auto source = run.open_source();
    std::optional<tools::GivenStatistics> given;
    if (!s.statistics.empty()) {
        given = tools::read_statistics(run, s.statistics, source);
        source = given->source;
        tools::check_values(run, *given);
    }
    if (s.has_target()) source = tools::scaled_for_library(run, source, s.any_scale);
    if (given && source->is_scaled())
        throw Error("-statistics " + s.statistics + " are of the numbers of " + source->path() +
                        ", which -target is compared with by what they mean",
                    "Give -any-scale, and -library-scale for what leads from the library to the numbers.");
    tool::check_spectrum(*source, "detection");
    DetectTargets targets(run, s, source);
    const auto mask = read_background(run, s, *source);
    run.report()["detection"] = {{"method", s.method_name()}, {"targets", targets.names()}};
    if (s.approach == Approach::mtmf) return detect_among_components(run, s, source, targets);
    if (s.approach == Approach::sff) return detect_by_features(run, s, source, targets, mask.get());
    if (s.grouped()) {
        DetectComputing computing(run, "detect", devices_for_groups(run, s, *source, targets.names().size()),
                                  detect::simd_target(), detect::make_cpu_backend);
        return s.by_columns() ? detect_by_columns(run, s, computing, source, targets, mask.get())
                              : detect_by_classes(run, s, computing, source, targets, mask.get());
    }
    auto computing = start_computing(run, s, source->shape(), targets.names().size());
    if (detect::has_background(s.method) && !s.local())
        detect_by_background(run, s, computing, source, targets, mask.get(), given ? &*given : nullptr);
    else
        detect_at_once(run, s, computing, source, targets, mask.get());
    report_kernels(run, computing);
}

// The options
// ----------------------------------------------------------------------------------------------------------

/// "0.1", "99%".
void parse_threshold(Settings& s) {
    const std::string& text = s.threshold_text;
    const bool percent = !text.empty() && text.back() == '%';
    const auto value = tool::parse_number(percent ? text.substr(0, text.size() - 1) : text);
    if (!value || !std::isfinite(*value))
        throw UsageError("-threshold: '" + text + "' is no " + (value ? "finite " : "") + "number",
                         "Give a score, or a share of the scores: 99%.");
    (percent ? s.percent : s.threshold) = *value;
    if (percent && !(*value > 0 && *value < 100))
        throw UsageError("-threshold " + text +
                             ": the share that is worse is more than 0 % and less than 100 %",
                         "99% leaves the best 1 % of the pixels.");
}

/// -shrinkage, which was given.
void parse_shrinkage(Settings& s) {
    std::string text = s.shrinkage_text;
    const std::string prefix = "bands:";
    const bool by_bands = text.rfind(prefix, 0) == 0;
    if (by_bands) text.erase(0, prefix.size());
    s.shrink_best = text == "auto" && !by_bands;
    s.ledoit_wolf = text == "ledoit-wolf" && !by_bands;
    s.conditioning.by_bands = by_bands || s.ledoit_wolf || s.grouped();
    if (s.shrink_best && s.grouped())
        throw UsageError("-shrinkage auto does not go with -background-by: its share depends on the units of "
                         "the bands, and dark ones count little in it",
                         "Take -shrinkage ledoit-wolf, the default there.");
    if (s.shrink_best || s.ledoit_wolf || (text == "none" && !by_bands)) return;
    const auto value = tool::parse_number(text);
    if (!(value && *value >= 0 && *value <= 1))
        throw UsageError("-shrinkage: '" + s.shrinkage_text +
                             "' is neither a number from 0 to 1 nor auto, ledoit-wolf or none",
                         "bands:0.1 shrinks towards the bands' own variances, 0.1 towards their mean.");
    s.conditioning.shrinkage = *value;
}

/// -background-by and what belongs to it.
void check_groups(const tool::Call& call, const Settings& s, const std::string& method) {
    const std::string background = "It goes with mf, cem, ace and rx, which compare with a background.";
    if (call.given("columns-per-group") && !s.by_columns())
        throw UsageError("-columns-per-group is that of -background-by columns, and there is none");
    if (call.given("exclude-iterations") && s.exclude_share == 0)
        throw UsageError("-exclude-iterations repeats -exclude-share, and there is none");
    if (!(s.exclude_share >= 0 && s.exclude_share < 0.5))
        throw UsageError("-exclude-share " + number(s.exclude_share) + ": a share is from 0 to below 0.5",
                         "0.02 takes the 2 % of greatest score from the statistics.");
    for (const char* const option : {"background-by", "exclude-share"}) {
        if (!call.given(option)) continue;
        const std::string name = std::string("-") + option;
        if (!s.has_background()) throw UsageError(name + " has no meaning with " + method, background);
        if (s.local())
            throw UsageError(name + " does not go with -window, whose background are the pixels around",
                             "Leave one of them out.");
    }
    if (s.absorption) {
        if (!s.takes_absorption())
            throw UsageError("-target-is-absorption goes with -method mf and ace alone, not with " + method);
        if (s.library.empty())
            throw UsageError("-target-is-absorption is said of the library of -target, and there is none",
                             "A pixel is no spectrum of an absorption.");
    }
    if (!s.grouped()) return;
    if (call.given("nc"))
        throw UsageError("-nc does not go with -background-by", "-shrinkage ledoit-wolf bears few pixels.");
}

/// -shrinkage and -nc.
void parse_conditioning(const tool::Call& call, Settings& s, const std::string& method) {
    for (const char* name : {"shrinkage", "nc"}) {
        if (!call.given(name) || s.approach == Approach::mtmf) continue;
        const std::string option = std::string("-") + name;
        if (!s.has_background())
            throw UsageError(option + " has no meaning with " + method,
                             "It goes with mf, cem, ace and rx, which compare with a background.");
        if (s.local())
            throw UsageError(option +
                                 " does not go with -window, which adds 1e-2 of the mean variance always",
                             "Make components with gdal_hsi_pca first, and look for anomalies in them.");
    }
    if (call.given("shrinkage"))
        parse_shrinkage(s);
    else if (s.grouped()) {
        s.ledoit_wolf = true;
        s.shrinkage_text = "ledoit-wolf";
    }
    if (call.given("nc") && s.has_detector()) {
        const bool best = s.components_text == "auto";
        const auto value = tool::parse_number(s.components_text);
        if (!best && !(value && *value >= 1 && *value <= 65535 && *value == std::floor(*value)))
            throw UsageError("-nc: '" + s.components_text + "' is neither a whole number from 1 on nor auto");
        s.conditioning.components = best ? detect::Conditioning::best_components : static_cast<int>(*value);
    }
    if (s.false_alarms && s.background.empty() && s.shrinks() && !s.grouped())
        throw UsageError(
            "-false-alarms with -shrinkage needs a -background: no distribution of its scores is known",
            "Take -nc auto instead of -shrinkage, whose scores have one, or give -background FILE, whose "
            "scores then decide, or a -threshold.");
}

/// A threshold that no score can reach, or that none can miss, was meant as something else.
void check_reach(const Settings& s, const std::string& method) {
    if (!s.threshold) return;
    constexpr double pi = 3.14159265358979323846, half_circle = 180, whole = 100;
    const double v = *s.threshold;
    const std::string given = "-threshold " + s.threshold_text + " with " + method + ": ";
    const std::string share = v > 1 && v < whole
                                  ? "For a share of the scores write the sign: " + s.threshold_text + "%."
                                  : std::string();
    if (s.approach == Approach::sff) { // mtmf: any
        if (v < 0) throw UsageError(given + "scores are never below 0");
        if (v > 1 && s.score == detect::FitScore::fit)
            throw UsageError(given + "scores lie between 0 and 1", share);
    }
    if (!s.has_detector()) return;
    switch (s.method) {
    case Method::ace:
        if (v > 1 || v < -1) throw UsageError(given + "scores lie between -1 and 1", share);
        break;
    case Method::sam:
        if (v >= 0 && v <= pi) break;
        throw UsageError(given + "scores are angles in radians, from 0 to 3.14159",
                         v > 0 && v <= half_circle
                             ? s.threshold_text + " degrees are " + number(v * pi / half_circle) + " radians."
                             : std::string());
    case Method::sid:
    case Method::rx:
        if (v < 0) throw UsageError(given + "scores are never below 0");
        break;
    case Method::mf:
    case Method::cem:
        break;
    }
}

void check_threshold(const tool::Call& call, const Settings& s, const std::string& method) {
    check_reach(s, method);
    const char* const name = call.given("threshold") ? "-threshold" : "-false-alarms";
    if (s.any_threshold() && s.map.empty())
        throw UsageError(std::string(name) + " is that of -map, and there is none",
                         "Name the map with -map FILE.");
    if (!s.has_target() && !s.map.empty() && !s.any_threshold())
        throw UsageError("-map with -method rx needs a threshold",
                         "Give one with -threshold or -false-alarms.");
    if (!s.false_alarms) return;
    if (!(*s.false_alarms > 0 && *s.false_alarms < 1))
        throw UsageError("-false-alarms " + number(*s.false_alarms) +
                         ": a rate is more than 0 and less than 1");
    if (!s.normal_scores() && s.background.empty())
        throw UsageError("-false-alarms with " +
                             (s.local()             ? "-window"
                              : s.grouped()         ? "-background-by"
                              : s.exclude_share > 0 ? "-exclude-share"
                                                    : method) +
                             " needs a -background: no distribution of its scores is known",
                         "Give -background FILE, whose scores then decide, or a -threshold.");
}

/// Options that look at the scene for its background.
constexpr const char* backgrounds_of_scene[] = {"window", "background", "background-by", "exclude-share"};

/// -statistics takes the place of the pass over the background, and of no other one.
void check_statistics(const tool::Call& call, const Settings& s, const std::string& method) {
    if (s.statistics.empty()) return;
    if (!s.has_background())
        throw UsageError("-statistics has no meaning with " + method,
                         "It goes with mf, cem, ace and rx, which compare with a background.");
    for (const char* const option : backgrounds_of_scene)
        if (call.given(option))
            throw UsageError(std::string("-statistics does not go with -") + option +
                                 ", which takes the background from the scene",
                             "Leave one of them out; gdal_hsi_statistics has -mask and -mask-exclude.");
    if (s.shrink_best || s.ledoit_wolf)
        throw UsageError("-statistics does not go with -shrinkage " + s.shrinkage_text +
                             ", which looks at the pixels behind them",
                         "Give the share itself: -shrinkage 0.1.");
}

/// A scene that is still being written is looked at once, line by line.
void check_follow(const tool::Call& call, const Settings& s, const tool::CommonOptions& options,
                  const std::string& method) {
    if (!options.source.follow) return;
    for (const char* const option : backgrounds_of_scene)
        if (call.given(option) && s.has_background())
            throw UsageError(std::string("-follow does not go with -") + option +
                                 ", which takes the background from the scene",
                             "It is not there yet: give -statistics FILE, of earlier lines.");
    if (s.has_background() && s.statistics.empty())
        throw UsageError("-follow with " + method +
                             " needs -statistics FILE: its background is not there yet",
                         "Make the statistics of earlier lines with gdal_hsi_statistics.");
    if (s.approach == Approach::mtmf)
        throw UsageError("-follow does not go with " + method + ", whose background is the scene",
                         "Take -method mf with -statistics FILE.");
    if (call.given("target-pixel"))
        throw UsageError("-follow does not go with -target-pixel: the pixel may not be there yet",
                         "Write its spectrum into a library (gdal_hsi_spectra), and give that as -target.");
    if (s.ranks() || !s.background.empty())
        throw UsageError("-follow does not go with a threshold that is found among all scores",
                         "Give the score itself: -threshold V; or -false-alarms without -background.");
}

/// What belongs to -method sff, and what does not.
void check_features(const tool::Call& call, Settings& s, const tool::CommonOptions& options,
                    const std::string& method) {
    if (s.approach != Approach::sff) {
        for (const char* const name : {"range", "features", "score", "depth"})
            if (call.given(name))
                throw UsageError(std::string("-") + name +
                                     " is that of -method sff, and has no meaning with " + method,
                                 "Leave it out, or give -method sff.");
        return;
    }
    s.ranges = tool::parse_ranges(s.range_texts, "-range");
    if (s.library.empty())
        throw UsageError(method + " needs -target LIBRARY" +
                             (s.pixels.empty() ? "" : ", and does not go with -target-pixel"),
                         "Features are those of spectra with names.");
    if (raster::RasterSink::is_virtual(options.destination))
        throw UsageError(method + " does not go with a dst that is computed when it is read",
                         "Write another format.");
}

/// What belongs to -method mtmf, and what does not.
void check_tuned(const tool::Call& call, Settings& s, const tool::CommonOptions& options,
                 const std::string& method) {
    if (s.approach != Approach::mtmf) {
        for (const char* const name : {"mnf-model", "any-wavelengths", "max-infeasibility"})
            if (call.given(name))
                throw UsageError(std::string("-") + name +
                                     " is that of -method mtmf, and has no meaning with " + method,
                                 "Leave it out, or give -method mtmf.");
        return;
    }
    if (s.any_wavelengths && s.mnf_model.empty())
        throw UsageError("-any-wavelengths is about the bands of -mnf-model, and there is none",
                         "Leave it out, or name the model.");
    if (call.given("max-infeasibility") && s.map.empty())
        throw UsageError("-max-infeasibility is that of -map, and there is none",
                         "Name the map with -map FILE; dst has the infeasibility in any case.");
    for (const char* const name :
         {"background", "background-by", "exclude-share", "shrinkage", "false-alarms"})
        if (call.given(name))
            throw UsageError(std::string("-") + name + " does not go with " + method +
                                 ", whose background is the scene",
                             "Leave it out, or take -method mf.");
    if (s.percent)
        throw UsageError("-threshold " + s.threshold_text + " does not go with " + method +
                             ": a share of scores says nothing where some are infeasible",
                         "Give a score: a share of the target in the pixel, 0 to 1.");
    if (call.given("nc")) {
        const auto value = tool::parse_number(s.components_text);
        if (!(value && *value >= 1 && *value <= 65535 && *value == std::floor(*value)))
            throw UsageError("-nc: '" + s.components_text + "' is no whole number from 1 on",
                             "Without it " + method + " takes the components with as much signal as noise.");
        s.tuned_components = static_cast<int>(*value);
    }
    if (raster::RasterSink::is_virtual(options.destination))
        throw UsageError(method + " does not go with a dst that is computed when it is read",
                         "Write another format.");
}

void check_settings(const tool::Call& call, Settings& s, const tool::CommonOptions& options) {
    const bool has_target = !s.library.empty() || !s.pixels.empty();
    if (!call.given("method")) s.approach = has_target ? Approach::ace : Approach::rx;
    if (s.has_detector()) s.method = static_cast<Method>(s.approach);
    const std::string method = "-method " + s.method_name();
    if (call.given("threshold")) parse_threshold(s);
    check_features(call, s, options, method);
    check_tuned(call, s, options, method);
    if (s.has_target() && !has_target)
        throw UsageError(method + " needs a target",
                         "Name spectra with -target LIBRARY, or pixels with -target-pixel LINE SAMPLE.");
    if (!s.has_target() && has_target)
        throw UsageError(method + " has no target: it finds what is unlike the background",
                         "Leave the target out, or use another method.");
    if (call.given("window")) {
        const auto [inner, outer] = s.window;
        const std::string given = "-window " + std::to_string(inner) + " " + std::to_string(outer);
        if (s.has_target()) throw UsageError(given + " goes with -method rx alone");
        if (inner < 1 || inner >= outer || outer > detect::largest_window || inner % 2 == 0 || outer % 2 == 0)
            throw UsageError(given + " is no ring around a pixel",
                             "Give two odd numbers, the smaller one first, from 1 to " +
                                 std::to_string(detect::largest_window) + ".");
    }
    if (!s.background.empty() && !s.has_background() && !s.false_alarms)
        throw UsageError("-background has no meaning with " + method,
                         "It goes with mf, cem, ace and rx, which compare with a background.");
    if (call.given("spectrum") && s.library.empty())
        throw UsageError("-spectrum chooses from the library of -target, and there is none");
    if (call.given("library-scale") && s.library.empty())
        throw UsageError("-library-scale multiplies the library of -target, and there is none");
    if (call.given("resample") && s.library.empty())
        throw UsageError("-resample is about the library of -target, and there is none");
    check_groups(call, s, method);
    check_threshold(call, s, method);
    parse_conditioning(call, s, method);
    check_follow(call, s, options, method);
    check_statistics(call, s, method);
}

/// What belongs to -method sff.
void declare_features(tool::Call& call, Settings& s) {
    const char* const group = "Absorption features";
    call.option(
            "range", s.range_texts,
            "With sff: the features of all targets without lines in -features, between two wavelengths, ends "
            "included: -range 2100-2300nm, 2.1-2.3um")
        .shown_as("RANGE")
        .under(group);
    call.input("features", s.features, Content::text,
               "With sff: a table with a line a feature: name (of the spectrum), from_nm, to_nm, and as you "
               "like "
               "weight, fit_min and depth_min")
        .under(group);
    call.choice<detect::FitScore>(
            "score", s.score, "With sff: what dst holds",
            {{"fit", detect::FitScore::fit,
              "the correlation of pixel and target, averaged over the features"},
             {"depth", detect::FitScore::depth, "the depth of the features in the pixel"},
             {"fd", detect::FitScore::fd, "both, multiplied feature by feature"}})
        .under(group);
    call.output("depth", s.depth, Content::raster,
                "With sff: also write the depth of the targets' features in every pixel to FILE")
        .under(group);
}

/// What belongs to -method mtmf.
void declare_mixtures(tool::Call& call, Settings& s) {
    const char* const tuned = "Mixture-tuned matched filter";
    call.input("mnf-model", s.mnf_model, Content::model,
               "With mtmf: the components of this model of gdal_hsi_mnf instead of the scene's own")
        .under(tuned);
    tool::add_any_wavelengths(call, s.any_wavelengths, "With -mnf-model: ");
    call.option(
            "max-infeasibility", s.most_infeasible,
            "With mtmf and -map: what is more infeasible is no detection; background and true mixtures have "
            "about 1")
        .above(0)
        .under(tuned);
}

void declare(tool::Call& call) {
    auto& s = call.settings<Settings>();
    call.add_source();
    call.add_follow();
    call.add_mask("the background", true);
    call.add_destination("The scores, a band per target; it appears when it is complete");
    call.computes_dst();
    call.input("target", s.library, Content::spectra,
               "The targets' spectra: the library FILE (.sli, .csv, USGS, ECOSTRESS, .asd, .sig, .sed, "
               ".mat, GeoJSON ...)");
    tools::add_spectrum_option(call, s.spectra, "the library of -target");
    call.option("target-pixel", s.pixels,
                "The spectrum of this pixel of src is a target; counted from 0, within -srcwin")
        .shown_as("LINE SAMPLE")
        .from(0);
    call.exclusive("target", "target-pixel");
    call.choice<Approach>(
            "method", s.approach, "What is computed",
            {{"sam", Approach::sam, "spectral angle, in radians"},
             {"sid", Approach::sid, "spectral information divergence"},
             {"mf", Approach::mf, "matched filter"},
             {"cem", Approach::cem, "constrained energy minimisation"},
             {"ace", Approach::ace, "adaptive coherence estimator, with its sign"},
             {"rx", Approach::rx, "anomalies by Reed and Xiaoli, without a target"},
             {"sff", Approach::sff, "fit of absorption features, continua removed, in ranges of wavelengths"},
             {"mtmf", Approach::mtmf,
              "matched filter among components of the noise's variance, with the infeasibility of "
              "what it finds"}})
        .defaults_to("ace; rx without a target");
    call.input("background", s.background, Content::labels,
               "The background is the pixels where the raster FILE is not 0, or inside the features of the "
               "vector FILE");
    call.input("background-by", s.background_by, Content::labels,
               "Score every pixel against the pixels of its own group alone: columns, the detectors of a "
               "pushbroom scanner, or the classes of the map FILE")
        .shown_as("columns|FILE")
        .defaults_to("one background for all");
    tools::add_statistics_option(call, s.statistics);
    call.option("columns-per-group", s.columns_per_group,
                "With -background-by columns: so many neighbouring columns of the file are a group")
        .from(1);
    call.option("exclude-share", s.exclude_share,
                "Make the background's statistics anew without this share of its pixels, those of greatest "
                "score, from 0 to below 0.5")
        .shown_as("P");
    call.option("exclude-iterations", s.exclude_iterations,
                "With -exclude-share: so many times, each time from all pixels")
        .from(1);
    call.flag("target-is-absorption", s.absorption,
              "With mf and ace: the library is what one unit of a gas absorbs of the background, which is "
              "the target then; mf tells units");
    call.option("window", s.window,
                "With rx: the background of a pixel is the square of OUTER pixels around it without that of "
                "INNER")
        .shown_as("INNER OUTER")
        .in_unit("pixels, odd")
        .defaults_to("the whole scene is the background");
    call.output("map", s.map, Content::raster,
                "Also write the best target of every pixel to FILE: 1 to the number of targets, 0 none");
    call.option("threshold", s.threshold_text,
                "With -map: no target where the best score is worse than this (sam and sid: greater, others: "
                "smaller); 99%: worse for 99 % of the pixels")
        .shown_as("V|P%");
    call.option("false-alarms", s.false_alarms,
                "With -map: use the threshold that this share of the background reaches: of the pixels of "
                "-background, else of a normally distributed one (rx, ace and mf)")
        .shown_as("RATE");
    call.exclusive("threshold", "false-alarms");
    call.option(
            "nc", s.components_text,
            "Compute scores from the first N principal components of the background; auto: one component "
            "per ten pixels of it. With mtmf: from the first N of MNF (default: those with as much signal "
            "as noise, 2 at least)")
        .shown_as("N|auto")
        .defaults_to("all bands");
    call.option("shrinkage", s.shrinkage_text,
                "Shrink the background's matrix by this share, 0 to 1, towards the identity times the mean "
                "variance (auto: by Ledoit and Wolf), or towards its own diagonal: bands:A, or ledoit-wolf, "
                "by their estimate on bands of unit variance; with -background-by A is bands:A")
        .shown_as("none|A|bands:A|auto|ledoit-wolf")
        .defaults_to("none; ledoit-wolf with -background-by");
    declare_features(call, s);
    declare_mixtures(call, s);
    call.option("library-scale", s.library_scale,
                "Multiply the library by this: 10000 for reflectance in 0..1 beside a scene in 0..10000")
        .above(0);
    tools::add_any_scale_option(call, s.any_scale);
    tools::add_resample_option(call, s.fit);
    call.add_compute();
    call.check([&s, &call](const tool::CommonOptions& options) {
        check_settings(call, s, options);
        tool::check_mask_use(options.mask, s.has_statistics(), "-method " + s.method_name());
    });
    call.body([&s](tool::Run& run) { run_detect(run, s); });
}

} // namespace detect_tool
} // namespace

namespace tools {

extern constinit const tool::Definition detect{
    "detect",
    "Targets and anomalies (SAM, SID, MF, CEM, ACE, RX, SFF, MTMF)",
    "Detection: how much every pixel is like known spectra (spectral angle, information divergence, matched "
    "filter, "
    "constrained energy minimisation, adaptive coherence), or unlike a background, of the scene or of the "
    "pixels "
    "around (RX).",
    {{"gdal_hsi_detect -target minerals.sli scene.img ace.tif", "Adaptive coherence of every spectrum"},
     {"gdal_hsi_detect -method sam -target minerals.csv -map minerals.tif -threshold 0.1 scene.img "
      "angles.tif",
      "Angles, and a map of what is nearer than 0.1 radians"},
     {"gdal_hsi_detect -method mf -target-pixel 120 64 -background soil.gpkg scene.img like_it.tif",
      "Pixels that are like one pixel and unlike a background"},
     {"gdal_hsi_detect -window 15 31 -map anomalies.tif -threshold 500 scene.img rx.tif",
      "What is unlike its neighbourhood"},
     {"gdal_hsi_detect -map anomalies.tif -false-alarms 1e-4 scene.img rx.tif",
      "Scores that only one pixel in 10,000 of a normal background reaches"},
     {"gdal_hsi_detect -window 15 31 -device cuda scene.img rx.tif", "The same on a GPU"},
     {"gdal_hsi_detect -method sff -target minerals.sli -range 2100-2400nm -map best.tif -threshold 0.7 "
      "scene.img "
      "fit.tif",
      "Minerals by the shapes of their absorptions"},
     {"gdal_hsi_detect -method mtmf -target minerals.sli -map best.tif -threshold 0.1 -max-infeasibility 2 "
      "scene.img mtmf.tif",
      "Shares of targets, and whether these may be mixtures at all"},
     {"gdal_hsi_detect -method mf -target gas.csv -target-is-absorption -background-by columns radiance.img "
      "gas.tif",
      "A gas by its absorption, each detector of the scanner against itself"}},
    "",
    detect_tool::declare};

} // namespace tools
} // namespace hsi
