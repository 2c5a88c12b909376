// SPDX-License-Identifier: MIT
// gdal_hsi_compare: how far two scenes of one size are apart. One pass over both for the spectral metrics and
// ssim, up to three more before it for ranges, thresholds and flat zones when ssim or sr are asked for.
#include "compare/measurement.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "core/json.h"
#include "model/band_match.h"
#include "raster/sink/raster_sink.h"
#include "raster/source/raster_source.h"
#include "shared/many_scenes.h"
#include "stream/copy_operation.h"
#include "stream/stacked_source.h"
#include "stream/value_parts.h"
#include "tool/definition.h"
#include "tool/model_values.h"
#include "tool/passes.h"
#include "tool/resources.h"
#include "tool/scene.h"
#include "tool/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace compare_tool {

using compare::Metric;
using tool::Content;

// What is asked for
// ----------------------------------------------------------------------------------------------------------

constexpr std::array<Metric, 5> spectral_metrics{Metric::nrmse, Metric::maxsde, Metric::sad, Metric::rmse,
                                                 Metric::maxabs};

struct Limits {
    double mean = -1, maximum = -1; ///< negative: none
};

struct Settings {
    std::string other, map, map_format, text_file;
    std::vector<std::string> map_creation;
    bool overwrite = false, json = false;
    bool mosaic = false;
    std::vector<std::string> with; ///< further scenes of -mosaic
    bool any_wavelengths = false;  ///< bands in their order, whatever the wavelengths
    std::vector<std::string> metric_texts, pair_texts;
    std::vector<Metric> metrics;                ///< empty: those that suit the number of bands
    std::vector<int> first_bands, second_bands; ///< of -band
    std::vector<std::string> other_texts;
    std::vector<raster::BandChoice> other_bands; ///< of -other-b
    std::array<Limits, 5> limits;                ///< of spectral_metrics
    double min_ssim = -2;
    int64_t max_unmatched = -1;
};

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts;
    for (size_t begin = 0;;) {
        const size_t end = text.find(at, begin);
        parts.push_back(text.substr(begin, end - begin));
        if (end == std::string::npos) return parts;
        begin = end + 1;
    }
}

/// "3" or "5-8" to 1-based numbers.
std::vector<int> band_range(const std::string& text, const std::string& whole) {
    const auto refuse = [&] {
        throw UsageError("-band: '" + whole + "' is not a list of band pairs",
                         "Write -band 1:4, -band 1-10:21-30 or -band 1:2,1:3.");
    };
    std::vector<int> ends;
    for (const auto& part : split(text, '-')) {
        if (part.empty() || part.size() > 6 || part.find_first_not_of("0123456789") != std::string::npos)
            refuse();
        ends.push_back(std::stoi(part));
    }
    if (ends.size() > 2 || ends.front() < 1 || ends.back() < ends.front()) refuse();
    std::vector<int> bands;
    for (int b = ends.front(); b <= ends.back(); ++b)
        bands.push_back(b);
    return bands;
}

void parse_pairs(Settings& s) {
    for (const auto& text : s.pair_texts)
        for (const auto& pair : split(text, ',')) {
            const auto sides = split(pair, ':');
            if (sides.size() > 2) band_range("", text);
            const auto first = band_range(sides[0], text), second = band_range(sides.back(), text);
            if (first.size() != second.size())
                throw UsageError("-band: '" + pair + "' pairs " + counted(first.size(), "band") + " with " +
                                 std::to_string(second.size()));
            s.first_bands.insert(s.first_bands.end(), first.begin(), first.end());
            s.second_bands.insert(s.second_bands.end(), second.begin(), second.end());
        }
}

/// -metric, each once.
void parse_metrics(Settings& s) {
    for (const auto& text : s.metric_texts)
        for (const auto& name : split(text, ',')) {
            const Metric m = compare::parse_metric(name);
            if (std::find(s.metrics.begin(), s.metrics.end(), m) == s.metrics.end()) s.metrics.push_back(m);
        }
}

/// Those that suit the number of bands where none were asked for, and those that thresholds need.
void complete_metrics(Settings& s, int bands) {
    if (s.metrics.empty()) {
        if (bands == 1)
            s.metrics = {Metric::rmse, Metric::maxabs};
        else
            s.metrics.assign(spectral_metrics.begin(), spectral_metrics.end());
    }
    for (size_t k = 0; k < spectral_metrics.size(); ++k) {
        const bool wanted =
            std::find(s.metrics.begin(), s.metrics.end(), spectral_metrics[k]) != s.metrics.end();
        if ((s.limits[k].mean >= 0 || s.limits[k].maximum >= 0) && !wanted)
            s.metrics.push_back(spectral_metrics[k]);
    }
    if (s.min_ssim >= -1 && std::find(s.metrics.begin(), s.metrics.end(), Metric::ssim) == s.metrics.end())
        s.metrics.push_back(Metric::ssim);
}

/// One band is no spectrum.
void check_bands(const std::vector<Metric>& metrics, int bands) {
    if (bands > 1) return;
    for (Metric m : metrics)
        if (m == Metric::nrmse || m == Metric::sad)
            throw UsageError(std::string("-metric ") + compare::metric_name(m) +
                                 ": one band is no spectrum, at least 2 are needed",
                             "For single bands there are maxsde, rmse, maxabs, ssim and sr.");
}

// The two scenes
// ----------------------------------------------------------------------------------------------------------

struct ComparedScene {
    std::shared_ptr<raster::RasterSource> file;
    std::shared_ptr<const stream::CubeSource> cube;
    std::vector<int> bands; ///< file bands behind the cube's
    std::vector<int> picks; ///< bands of `file` (0-based) behind the cube's; empty: all
};

/// A source whose bands are chosen, some perhaps more than once, from those of another one.
class PickedSource final : public stream::CubeSource {
  public:
    PickedSource(std::shared_ptr<const stream::CubeSource> from, std::vector<int> picks)
        : m_from(std::move(from)), m_picks(std::move(picks)) {}
    stream::CubeShape shape() const override {
        auto shape = m_from->shape();
        shape.bands = static_cast<int>(m_picks.size());
        return shape;
    }
    stream::BlockLayout layout() const override { return m_from->layout(); }
    uint64_t stored_bytes_per_pixel() const override { return m_from->stored_bytes_per_pixel(); }
    uint64_t reader_bytes() const override { return m_from->reader_bytes(); }
    uint64_t window_bytes(int64_t samples, int64_t lines) const override {
        return m_from->window_bytes(samples, lines);
    }
    std::unique_ptr<stream::CubeReader> open_reader() const override {
        struct Reader final : stream::CubeReader {
            Reader(std::unique_ptr<stream::CubeReader> r, const std::vector<int>& p, int b)
                : reader(std::move(r)), picks(p), bands(b) {}
            void read(const Rect& window, const CubeView<float>& dst) override {
                const auto line = static_cast<size_t>(window.w), band = line * static_cast<size_t>(window.h);
                buffer.resize(band * static_cast<size_t>(bands));
                const auto view = CubeView<float>::packed(buffer.data(), bands, window.h, window.w);
                reader->read(window, view);
                for (size_t k = 0; k < picks.size(); ++k)
                    for (int64_t y = 0; y < window.h; ++y)
                        std::copy_n(view.row(picks[k], y), window.w, dst.row(static_cast<int>(k), y));
            }
            void prefetch(const Rect& window) override { reader->prefetch(window); }
            bool expect(const Rect& window) override { return reader->expect(window); }
            uint64_t look_ahead(uint64_t bytes, int threads) override {
                return reader->look_ahead(bytes, threads);
            }
            std::unique_ptr<stream::CubeReader> reader;
            const std::vector<int>& picks;
            int bands;
            std::vector<float> buffer;
        };
        return std::make_unique<Reader>(m_from->open_reader(), m_picks, m_from->shape().bands);
    }

  private:
    std::shared_ptr<const stream::CubeSource> m_from;
    std::vector<int> m_picks;
};

/// All bands of the file.
ComparedScene all_bands(const std::shared_ptr<raster::RasterSource>& file) {
    return {file, file, file->bands(), {}};
}

/// Some of them (indices).
ComparedScene some_bands(const std::shared_ptr<raster::RasterSource>& file, std::vector<int> picks) {
    ComparedScene out{file, nullptr, {}, picks};
    for (const int k : picks)
        out.bands.push_back(file->bands()[static_cast<size_t>(k)]);
    out.cube = std::make_shared<PickedSource>(file, std::move(picks));
    return out;
}

/// wanted: 1-based bands of -band, some perhaps twice; empty: all that the source has.
ComparedScene open_scene(raster::OpenOptions options, const std::vector<int>& wanted) {
    if (wanted.empty()) {
        return all_bands(raster::RasterSource::open(options));
    }
    options.bands = wanted;
    std::sort(options.bands.begin(), options.bands.end());
    options.bands.erase(std::unique(options.bands.begin(), options.bands.end()), options.bands.end());
    auto file = raster::RasterSource::open(options);
    if (options.bands == wanted) return all_bands(file);
    std::vector<int> picks;
    picks.reserve(wanted.size());
    for (int b : wanted)
        picks.push_back(static_cast<int>(std::lower_bound(options.bands.begin(), options.bands.end(), b) -
                                         options.bands.begin()));
    return some_bands(file, std::move(picks));
}

/// Of every band of a the partner in b (0-based, -1: none): by wavelength where both know those of all bands,
/// else by number where these can be compared. `by` says which. Empty: they are taken in their order.
std::vector<int> partners(const raster::RasterSource& a, const raster::RasterSource& b, std::string& by) {
    const auto first = tool::scene_bands(a), second = tool::scene_bands(b);
    by = "wavelength";
    auto matched = model::common_bands(first.wavelengths_nm, second.wavelengths_nm);
    if (!matched.empty()) return matched;
    by = "number";
    if (!model::comparable_numbers(first, second)) return {};
    return model::common_numbers(first.numbers, second.numbers);
}

bool are_unique(std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    return std::adjacent_find(names.begin(), names.end()) == names.end();
}

/// Bands that are paired in their order although their names say otherwise, to the user.
void note_other_names(tool::Run& run, const raster::RasterSource& a, const raster::RasterSource& b) {
    const auto first = a.band_names(), second = b.band_names();
    if (first.size() != second.size() || first.size() < 2 || first == second) return;
    const auto are_names = [](const std::vector<std::string>& names) { // "Band 3" is none
        return std::none_of(names.begin(), names.end(), [](const std::string& name) {
            return name.rfind("Band ", 0) == 0 &&
                   name.find_first_not_of("0123456789", 5) == std::string::npos;
        });
    };
    if (!are_names(first) || !are_names(second)) return;
    std::string by_name; // the bands of b that have the names of a's; empty: names differ
    if (std::is_permutation(first.begin(), first.end(), second.begin()) && are_unique(first))
        for (const auto& name : first)
            by_name += (by_name.empty() ? "" : ",") +
                       std::to_string(b.bands()[static_cast<size_t>(
                           std::find(second.begin(), second.end(), name) - second.begin())]);
    const auto k =
        static_cast<size_t>(std::mismatch(first.begin(), first.end(), second.begin()).first - first.begin());
    run.note("Bands are paired in their order, though " +
             (by_name.empty()
                  ? "their names differ ('" + first[k] + "' and '" + second[k] + "'); -other-b chooses others"
                  : "the same names stand in another order; -other-b " + by_name + " pairs them by name"));
}

/// Bands that were named by their places in the files, and are others by what both files tell, to the user.
void note_other_bands(tool::Run& run, const raster::RasterSource& a, const raster::RasterSource& b) {
    std::string by;
    const auto matched = partners(a, b, by);
    const auto first = tool::scene_bands(a), second = tool::scene_bands(b);
    if (matched.size() != second.numbers.size() || (by == "number" && !first.told && !second.told)) return;
    for (size_t k = 0; k < matched.size(); ++k) {
        if (matched[k] == static_cast<int>(k)) continue;
        const auto text = [&](const model::SceneBands& bands) {
            if (by == "number") return std::to_string(bands.numbers[k]);
            char nm[32];
            std::snprintf(nm, sizeof nm, "%.6g nm", bands.wavelengths_nm[k]);
            return std::string(nm);
        };
        return run.note("Bands are paired as -b names them in both files, though by their " + by +
                        "s they are others (" + text(first) + " and " + text(second) +
                        "); without -b they are paired by " + by + ", -other-b chooses those of the other");
    }
}

/// Keeps the bands that have a partner, the second's in the order of the first's, and notes how many have
/// none. \throws Error when there is no such band.
void match_bands(tool::Run& run, ComparedScene& a, ComparedScene& b) {
    std::string by;
    const auto matched = partners(*a.file, *b.file, by);
    if (matched.empty() || (by == "number" && !tool::scene_bands(*a.file).told &&
                            !tool::scene_bands(*b.file).told)) // no more than their places
        note_other_names(run, *a.file, *b.file);
    if (matched.empty()) return;
    std::vector<int> alone, picks, others;
    for (int k = 0; k < static_cast<int>(matched.size()); ++k) {
        const int in_other = matched[static_cast<size_t>(k)];
        if (in_other < 0)
            alone.push_back(k);
        else
            picks.push_back(in_other);
    }
    for (int k = 0; k < b.file->shape().bands; ++k)
        if (std::find(picks.begin(), picks.end(), k) == picks.end()) others.push_back(k);
    const bool in_order = std::is_sorted(picks.begin(), picks.end());
    if (alone.empty() && others.empty() && in_order) return;
    if (picks.empty())
        throw Error("no band of " + a.file->path() +
                        (by == "number" ? " has the number" : " lies at the wavelength") + " of one of " +
                        b.file->path(),
                    "-any-wavelengths compares them in their order, -band pair by pair.");
    run.note("Bands are compared by " + by + ": " + std::to_string(picks.size()) + " are common; " +
             std::to_string(alone.size()) + " of " + a.file->path() + " and " +
             std::to_string(others.size()) + " of " + b.file->path() + " have no counterpart");
    a = all_bands(alone.empty() ? a.file : a.file->without_bands(alone));
    b = in_order ? all_bands(others.empty() ? b.file : b.file->without_bands(others))
                 : some_bands(b.file, std::move(picks));
}

std::string size_text(const ComparedScene& o) {
    const auto s = o.cube->shape();
    return o.file->path() + " is " + std::to_string(s.samples) + "x" + std::to_string(s.lines) + "x" +
           std::to_string(s.bands);
}

void check_comparable(tool::Run& run, const ComparedScene& a, const ComparedScene& b) {
    const auto sa = a.cube->shape(), sb = b.cube->shape();
    if (sa.samples != sb.samples || sa.lines != sb.lines)
        throw Error(size_text(a) + ", " + size_text(b) + ": only scenes of one size can be compared",
                    "Cut the larger one, for example with gdal_translate -srcwin.");
    if (sa.bands != sb.bands)
        throw Error(size_text(a) + ", " + size_text(b) + " bands: their numbers differ",
                    "Choose bands of src with -b and those of the other with -other-b, or pairs of bands "
                    "with -band; -bbl ignore takes bands that are marked bad.");
    double ga[6], gb[6];
    const bool ha = a.file->geotransform(ga), hb = b.file->geotransform(gb);
    if (!ha || !hb) return;
    const double pixel = std::hypot(ga[1], ga[4]);
    double apart = 0; // largest distance of a corner from its counterpart
    for (int corner = 0; corner < 4; ++corner) {
        const double x = corner & 1 ? static_cast<double>(sa.samples) : 0,
                     y = corner & 2 ? static_cast<double>(sa.lines) : 0;
        apart = std::max(apart, std::hypot(ga[0] - gb[0] + x * (ga[1] - gb[1]) + y * (ga[2] - gb[2]),
                                           ga[3] - gb[3] + x * (ga[4] - gb[4]) + y * (ga[5] - gb[5])));
    }
    if (apart > 0.01 * pixel)
        run.warn("the georeferences of " + a.file->path() + " and " + b.file->path() +
                 " differ; pixels are compared by line and sample");
}

/// Band k's factor and offset as the file states them; 1 and 0 where it states none.
std::pair<double, double> stated_scale(const raster::BandValues& values, const ComparedScene& scene,
                                       size_t k) {
    const size_t at = scene.picks.empty() ? k : static_cast<size_t>(scene.picks[k]);
    return values.scale.empty() ? std::pair(1.0, 0.0) : std::pair(values.scale[at], values.offset[at]);
}

/// The middle ratio of the second scene's numbers to the first's, over pixels on a few lines; 0: none is
/// known.
double ratio_of_numbers(const ComparedScene& a, const ComparedScene& b) {
    const auto shape = a.cube->shape();
    const int64_t width = std::min<int64_t>(shape.samples, 512), lines = std::min<int64_t>(shape.lines, 8);
    const auto size = static_cast<size_t>(shape.bands * width);
    std::vector<float> first(size), second(size);
    std::vector<double> ratios;
    const auto of_a = a.cube->open_reader(), of_b = b.cube->open_reader();
    for (int64_t k = 0; k < lines; ++k) {
        const Rect row{(shape.samples - width) / 2, (2 * k + 1) * shape.lines / (2 * lines), width, 1};
        of_a->read(row, CubeView<float>::packed(first.data(), shape.bands, 1, width));
        of_b->read(row, CubeView<float>::packed(second.data(), shape.bands, 1, width));
        for (size_t i = 0; i < size; ++i) {
            const double ratio = static_cast<double>(second[i]) / static_cast<double>(first[i]);
            if (std::isfinite(ratio) && ratio > 0) ratios.push_back(ratio);
        }
    }
    if (ratios.empty()) return 0;
    const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
    std::nth_element(ratios.begin(), middle, ratios.end());
    return *middle;
}

/// Scenes whose numbers mean different things by what the files state, to the user: numbers are compared. A
/// file that states nothing may have lost it, so then the numbers must look like it, too.
void warn_of_other_scales(tool::Run& run, const ComparedScene& a, const ComparedScene& b) {
    const auto of_a = a.file->band_values(), of_b = b.file->band_values();
    double factor = 0; // of the second's numbers, as large as the first's
    for (size_t k = 0; k < a.bands.size() && factor == 0; ++k) {
        const auto [scale_a, offset_a] = stated_scale(of_a, a, k);
        const auto [scale_b, offset_b] = stated_scale(of_b, b, k);
        if (std::fabs(scale_b / scale_a - 1) > 1e-6) factor = scale_a / scale_b;
        if (factor == 0 && std::fabs(offset_a - offset_b) > 1e-6 * std::fabs(offset_a)) factor = 1;
    }
    if (factor == 0) return;
    const double ratio = ratio_of_numbers(a, b);
    const bool alike = ratio > 0 && std::fabs(std::log(ratio)) < std::fabs(std::log(ratio / factor));
    if ((of_a.scale.empty() || of_b.scale.empty()) && alike) return;
    const auto text = [](const raster::BandValues& values) {
        return values.scale.empty() ? std::string("none")
                                    : model::scale_text({values.scale, values.offset, values.unit});
    };
    char number[48];
    std::snprintf(number, sizeof number, "%.6g times", factor);
    run.warn("the files state different scales (" + a.file->path() + ": " + text(of_a) + "; " +
             b.file->path() + ": " + text(of_b) + "), and their numbers are compared as they are" +
             (factor != 1 && factor > 0 ? ": those of the second are " + std::string(number) +
                                              " the first's where both mean the same"
                                        : std::string()) +
             ". Bring both into one scale before (gdal_calc.py)");
}

/// The two scenes that are named; bands of -band, else all.
std::pair<ComparedScene, ComparedScene> open_both(tool::Run& run, const Settings& s) {
    const auto& options = run.options();
    ComparedScene a;
    if (s.first_bands.empty()) {
        const auto file = run.open_source(tool::Precision::full);
        a = {file, file, file->bands(), {}};
    } else {
        a = open_scene(options.source, s.first_bands);
        run.watch_source(a.file, tool::Precision::full);
        run.reserve_cache(a.file->cache_bytes());
    }
    raster::OpenOptions other = options.source;
    other.path = s.other;
    other.open_options.clear(); // -oo and -if are about the first scene's driver
    other.drivers.clear();
    const bool apart = !s.other_bands.empty();
    if (apart) {
        other.bands.clear();
        other.choices = s.other_bands;
    }
    ComparedScene b = open_scene(other, s.second_bands);
    run.watch_source(b.file, tool::Precision::full);
    run.reserve_cache(b.file->cache_bytes());
    // Bands that are named by number are compared as they are named.
    if (s.first_bands.empty() && options.source.bands.empty() && !apart && !s.any_wavelengths)
        match_bands(run, a, b);
    else if (s.first_bands.empty() && !apart && !s.any_wavelengths)
        note_other_bands(run, *a.file, *b.file);
    check_comparable(run, a, b);
    return {std::move(a), std::move(b)};
}

/// Parts of every value when the two are read together: 1, or stream::value_parts where a type of one of them
/// holds values that single precision does not.
int parts_of_values(const ComparedScene& a, const ComparedScene& b) {
    return a.file->exact_in_float() && b.file->exact_in_float() ? 1 : stream::value_parts;
}

/// Both cubes as one, in that many parts.
stream::StackedSource side_by_side(const ComparedScene& a, const ComparedScene& b) {
    if (parts_of_values(a, b) == 1) return stream::StackedSource({a.cube, b.cube});
    std::vector<std::shared_ptr<const stream::CubeSource>> cubes;
    for (const ComparedScene* scene : {&a, &b}) {
        cubes.push_back(scene->file->in_sums());
        if (scene->picks.empty()) continue;
        std::vector<int> parts;
        for (const int k : scene->picks)
            for (int part = 0; part < stream::value_parts; ++part)
                parts.push_back(k * stream::value_parts + part);
        cubes.back() = std::make_shared<PickedSource>(cubes.back(), std::move(parts));
    }
    return stream::StackedSource(std::move(cubes));
}

/// The same without some of its bands (indices, ascending).
ComparedScene without_bands(const ComparedScene& o, const std::vector<int>& empty) {
    if (o.picks.empty()) return all_bands(o.file->without_bands(empty));
    std::vector<int> kept;
    for (int k = 0; k < static_cast<int>(o.picks.size()); ++k)
        if (!std::binary_search(empty.begin(), empty.end(), k))
            kept.push_back(o.picks[static_cast<size_t>(k)]);
    return some_bands(o.file, std::move(kept));
}

/// For scenes without a common valid pixel.
std::vector<tool::BandedSource> banded(ComparedScene& a, ComparedScene& b) {
    std::vector<tool::BandedSource> scenes;
    for (ComparedScene* scene : {&a, &b})
        scenes.push_back({scene->cube, scene->bands,
                          [scene](const std::vector<int>& empty) { *scene = without_bands(*scene, empty); }});
    return scenes;
}

// What was found, for people and for programs
// ----------------------------------------------------------------------------------------------------------

/// "%.9g"
std::string metric_text(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", v);
    return text;
}

double mean(const std::vector<double>& v) {
    double sum = 0;
    for (double x : v)
        sum += x;
    return sum / static_cast<double>(v.size());
}

Json json_number(double v) {
    if (std::isnan(v)) return nullptr;
    if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
    return v;
}

Json to_json(const compare::Findings& f, const ComparedScene& a, const ComparedScene& b) {
    Json metrics = Json::object();
    for (size_t k = 0; k < f.spectral.size(); ++k) {
        const auto& s = f.summaries[k];
        metrics[compare::metric_name(f.spectral[k])] = {{"mean", json_number(s.mean)},
                                                        {"maximum", json_number(s.maximum)},
                                                        {"line", s.line},
                                                        {"sample", s.sample}};
    }
    const auto by_band = [&](const std::vector<double>& v) {
        Json list = Json::array();
        for (double x : v)
            list.push_back(json_number(x));
        return Json{{"mean", json_number(mean(v))}, {"bands", list}};
    };
    if (f.has_ssim) metrics["ssim"] = by_band(f.ssim);
    if (f.has_sr) {
        metrics["sr"] = by_band(f.sr);
        metrics["sr"]["zones_a"] = f.zones.first;
        metrics["sr"]["zones_b"] = f.zones.second;
    }
    const auto shape = a.cube->shape();
    return {{"a", a.file->path()},
            {"b", b.file->path()},
            {"size", {shape.samples, shape.lines, shape.bands}},
            {"bands_a", a.bands},
            {"bands_b", b.bands},
            {"pixels",
             {{"compared", f.counts.compared},
              {"valid_only_in_a", f.counts.only_first},
              {"valid_only_in_b", f.counts.only_second},
              {"valid_in_neither", f.counts.neither}}},
            {"metrics", metrics}};
}

/// Lines, each with its end.
std::string text_of(const compare::Findings& f, const ComparedScene& a, const ComparedScene& b) {
    char line[160];
    std::string all;
    const auto print = [&all](const std::string& text) { all += text + "\n"; };
    print("Pixels compared: " + std::to_string(f.counts.compared) + ", valid only in " + a.file->path() +
          ": " + std::to_string(f.counts.only_first) + ", only in " + b.file->path() + ": " +
          std::to_string(f.counts.only_second) + ", in neither: " + std::to_string(f.counts.neither));
    if (!f.spectral.empty()) {
        std::snprintf(line, sizeof line, "%-8s %18s %18s   %s", "metric", "mean", "maximum",
                      "at line, sample");
        print(line);
    }
    for (size_t k = 0; k < f.spectral.size(); ++k) {
        const auto& s = f.summaries[k];
        std::snprintf(line, sizeof line, "%-8s %18s %18s   %lld, %lld", compare::metric_name(f.spectral[k]),
                      metric_text(s.mean).c_str(), metric_text(s.maximum).c_str(),
                      static_cast<long long>(s.line), static_cast<long long>(s.sample));
        print(line);
    }
    if (!f.has_ssim && !f.has_sr) return all;
    std::string head = "  band a   band b";
    if (f.has_ssim) head += "               ssim";
    if (f.has_sr) head += "                 sr      zones a      zones b";
    print(head);
    const auto row = [&](const std::string& first, const std::string& second, double ssim, double sr,
                         size_t band) {
        std::snprintf(line, sizeof line, "%8s %8s", first.c_str(), second.c_str());
        std::string text = line;
        if (f.has_ssim) {
            std::snprintf(line, sizeof line, " %18s", metric_text(ssim).c_str());
            text += line;
        }
        if (f.has_sr) {
            std::snprintf(line, sizeof line, " %18s", metric_text(sr).c_str());
            text += line;
            if (band < f.sr.size()) {
                std::snprintf(line, sizeof line, " %12lld %12lld",
                              static_cast<long long>(f.zones.first[band]),
                              static_cast<long long>(f.zones.second[band]));
                text += line;
            }
        }
        print(text);
    };
    for (size_t k = 0; k < a.bands.size(); ++k)
        row(std::to_string(a.bands[k]), std::to_string(b.bands[k]), f.has_ssim ? f.ssim[k] : 0,
            f.has_sr ? f.sr[k] : 0, k);
    row("mean", "", f.has_ssim ? mean(f.ssim) : 0, f.has_sr ? mean(f.sr) : 0, SIZE_MAX);
    return all;
}

/// The first threshold that is exceeded ends the run with exit code 1.
void apply_limits(const Settings& s, const compare::Findings& f) {
    const auto exceeded = [](double value, double limit) { return limit >= 0 && !(value <= limit); };
    for (size_t k = 0; k < f.spectral.size(); ++k) {
        const auto at =
            static_cast<size_t>(std::find(spectral_metrics.begin(), spectral_metrics.end(), f.spectral[k]) -
                                spectral_metrics.begin());
        const std::string name = compare::metric_name(f.spectral[k]);
        if (exceeded(f.summaries[k].maximum, s.limits[at].maximum))
            throw Error("the maximum of " + name + " is " + metric_text(f.summaries[k].maximum) +
                        ", more than -max-" + name + " " + metric_text(s.limits[at].maximum));
        if (exceeded(f.summaries[k].mean, s.limits[at].mean))
            throw Error("the mean of " + name + " is " + metric_text(f.summaries[k].mean) +
                        ", more than -mean-" + name + " " + metric_text(s.limits[at].mean));
    }
    if (f.has_ssim && s.min_ssim >= -1)
        for (double v : f.ssim)
            if (!(v >= s.min_ssim))
                throw Error("ssim of a band is " + metric_text(v) + ", less than -min-ssim " +
                            metric_text(s.min_ssim));
    const int64_t unmatched = f.counts.only_first + f.counts.only_second;
    if (s.max_unmatched >= 0 && unmatched > s.max_unmatched)
        throw Error(counted(unmatched, "pixel is", "pixels are") +
                    " valid in only one of the two, more than -max-unmatched " +
                    std::to_string(s.max_unmatched));
}

// The passes
// ----------------------------------------------------------------------------------------------------------

raster::OutputOptions map_output(const tool::Run& run, const Settings& s) {
    raster::OutputOptions options;
    options.path = s.map;
    options.role = "-map";
    options.run = run.files();
    options.cancel = &run.cancel();
    options.format = s.map_format;
    options.creation_options = s.map_creation;
    options.overwrite = s.overwrite;
    options.history = run.options().destination.history;
    return options;
}

/// A band a metric.
raster::OutputSpec map_of(const stream::CubeShape& shape, const std::vector<Metric>& metrics) {
    raster::OutputSpec spec;
    spec.shape = {shape.samples, shape.lines, static_cast<int>(metrics.size())};
    spec.holes = true;
    for (Metric m : metrics) {
        raster::BandSpec band;
        band.description = compare::metric_name(m);
        if (m == Metric::sad) band.metadata["unit"] = "degree";
        spec.bands.push_back(std::move(band));
    }
    return spec;
}

void compare_scenes(tool::Run& run, Settings s) {
    if (s.json) run.only_print();
    const auto text_output = run.text_output("-o", s.text_file, s.overwrite);
    raster::check_text_output(text_output);
    auto scenes = open_both(run, s);
    ComparedScene &a = scenes.first, &b = scenes.second;
    complete_metrics(s, a.cube->shape().bands);
    check_bands(s.metrics, a.cube->shape().bands);
    const compare::Measurement measurement(s.metrics, parts_of_values(a, b));

    const bool mapped = !s.map.empty();
    raster::OutputOptions map_options;
    raster::OutputSpec map_spec;
    if (mapped) {
        if (measurement.local().empty())
            throw UsageError("-map: sr has one value a band and no map", "Add another -metric.");
        map_options = map_output(run, s);
        map_spec = map_of(a.cube->shape(), measurement.local());
        raster::RasterSink::check(map_options, map_spec, *a.file);
    }
    run.report()["device"] = tool::describe_devices(run, {}, nullptr);
    tool::end_of_plan(run, [&] {
        const auto both = side_by_side(a, b);
        measurement.show(both, mapped, [&](const std::string& name, const auto& operation) {
            tool::print_plan(run, both, operation, run.pass(name, 1));
        });
    });
    warn_of_other_scales(run, a, b);

    std::unique_ptr<raster::RasterSink> map;
    std::function<stream::CubeSink*()> open_map;
    if (mapped)
        open_map = [&] {
            map = raster::RasterSink::create(map_options, map_spec, a.file.get());
            run.reserve_cache(map->cache_bytes());
            return map.get();
        };
    compare::Findings f;
    const bool any = tool::attempt(run, banded(a, b), [&](bool again) {
        if (again) check_bands(s.metrics, a.cube->shape().bands);
        map.reset();
        const auto both = side_by_side(a, b);
        f = measurement.run(both, open_map,
                            [&](const std::string& name, double share, stream::Operation& operation,
                                const std::vector<stream::CubeSink*>& sinks) {
                                run.add_pass(stream::run_pass(both, operation, sinks, run.pass(name, share)));
                            });
        return f.counts.compared > 0;
    });
    if (!any)
        throw Error("no pixel is valid in both " + a.file->path() + " (" +
                        std::to_string(f.counts.only_first) + " valid) and " + b.file->path() + " (" +
                        std::to_string(f.counts.only_second) + " valid)",
                    "Check nodata values (-srcnodata) and leave out bad bands (-b).");
    if (map) map->commit();

    const auto result = to_json(f, a, b);
    run.report()["result"] = result;
    auto text = s.json ? result.dump(1, ' ', false, Json::error_handler_t::replace) + "\n" : text_of(f, a, b);
    raster::write_text_output(text_output, text);
    text.pop_back(); // print() ends the line
    run.print(text);
    run.keep_outputs(); // the map is wanted all the more when a limit is exceeded
    apply_limits(s, f);
}

// Scenes that overlap on the earth: -mosaic
// ----------------------------------------------------------------------------------------------------------

using GeoTransform = std::array<double, 6>;

std::array<double, 2> applied(const GeoTransform& gt, double x, double y) {
    return {gt[0] + x * gt[1] + y * gt[2], gt[3] + x * gt[4] + y * gt[5]};
}

GeoTransform inverse(const GeoTransform& gt, const std::string& name) {
    const double d = gt[1] * gt[5] - gt[2] * gt[4];
    if (d == 0 || !std::isfinite(d)) throw Error(name + ": its geotransform has pixels without area");
    return {(gt[2] * gt[3] - gt[0] * gt[5]) / d, gt[5] / d,  -gt[2] / d,
            (gt[0] * gt[4] - gt[1] * gt[3]) / d, -gt[4] / d, gt[1] / d};
}

/// The least window that holds both.
Rect united(const Rect& a, const Rect& b) {
    const int64_t x = std::min(a.x, b.x), y = std::min(a.y, b.y);
    return {x, y, std::max(a.right(), b.right()) - x, std::max(a.bottom(), b.bottom()) - y};
}

/// The common grid: that of src where its axes are the map's, else one with pixels of the same area. Columns
/// and lines of it may be negative.
struct MosaicGrid {
    GeoTransform place{};
    Rect all;                  ///< of all scenes
    std::vector<Rect> extents; ///< a scene each

    /// The scene, of two at least, without which the grid would be least, and that grid.
    std::pair<size_t, Rect> farthest() const {
        std::pair<size_t, Rect> best{0, all};
        for (size_t k = 0; k < extents.size(); ++k) {
            Rect others;
            for (size_t i = 0; i < extents.size(); ++i)
                if (i != k) others = others.empty() ? extents[i] : united(others, extents[i]);
            if (others.area() < best.second.area()) best = {k, others};
        }
        return best;
    }
};

/// A scene as a window of the common grid sees it: every pixel is the one of the scene that its centre lies
/// in, and has no value beside the scene.
class PlacedSource final : public stream::CubeSource {
  public:
    PlacedSource(std::shared_ptr<const raster::RasterSource> scene, const GeoTransform& to_scene,
                 const GeoTransform& grid, const Rect& window)
        : m_scene(std::move(scene)), m_to_scene(to_scene), m_grid(grid), m_window(window) {}
    stream::CubeShape shape() const override { return {m_window.w, m_window.h, m_scene->shape().bands}; }
    stream::BlockLayout layout() const override { return {block, block, 0}; }
    std::unique_ptr<stream::CubeReader> open_reader() const override {
        return std::make_unique<Reader>(*this, m_scene->open_reader());
    }
    uint64_t reader_bytes() const override {
        const auto [w, h] = most_of_scene();
        return m_scene->reader_bytes() +
               static_cast<uint64_t>(w) * static_cast<uint64_t>(h) * static_cast<uint64_t>(shape().bands) * 4;
    }
    uint64_t stored_bytes_per_pixel() const override { return m_scene->stored_bytes_per_pixel(); }

  private:
    static constexpr int64_t block = 64; ///< pixels of the grid that are looked up together, each way

    /// Samples and lines of the scene that a block spans at most.
    std::array<int64_t, 2> most_of_scene() const {
        const auto span = [&](size_t k) {
            const double of_x = m_to_scene[k + 1] * m_grid[1] + m_to_scene[k + 2] * m_grid[4],
                         of_y = m_to_scene[k + 1] * m_grid[2] + m_to_scene[k + 2] * m_grid[5];
            return static_cast<int64_t>(std::ceil((std::fabs(of_x) + std::fabs(of_y)) * block)) + 2;
        };
        const auto shape = m_scene->shape();
        return {std::min(span(0), shape.samples), std::min(span(3), shape.lines)};
    }

    class Reader final : public stream::CubeReader {
      public:
        Reader(const PlacedSource& owner, std::unique_ptr<stream::CubeReader> from)
            : m_owner(owner), m_from(std::move(from)) {}
        void read(const Rect& window, const CubeView<float>& dst) override {
            for (int64_t y = window.y; y < window.bottom(); y += block)
                for (int64_t x = window.x; x < window.right(); x += block) {
                    const Rect part{x, y, std::min(block, window.right() - x),
                                    std::min(block, window.bottom() - y)};
                    read_block(part, dst.cut(x - window.x, y - window.y, part.w, part.h));
                }
        }

      private:
        void read_block(const Rect& part, const CubeView<float>& dst) {
            const auto shape = m_owner.m_scene->shape();
            m_places.clear();
            Rect needed;
            for (int64_t y = 0; y < part.h; ++y)
                for (int64_t x = 0; x < part.w; ++x) {
                    const auto map =
                        applied(m_owner.m_grid, static_cast<double>(m_owner.m_window.x + part.x + x) + 0.5,
                                static_cast<double>(m_owner.m_window.y + part.y + y) + 0.5);
                    const auto at = applied(m_owner.m_to_scene, map[0], map[1]);
                    // Centres that rounding has moved onto a border between two pixels stay on one side of
                    // it.
                    const double s = std::floor(at[0] + 1e-6), l = std::floor(at[1] + 1e-6);
                    const bool inside = s >= 0 && l >= 0 && s < static_cast<double>(shape.samples) &&
                                        l < static_cast<double>(shape.lines);
                    m_places.push_back(
                        inside ? std::array<int64_t, 2>{static_cast<int64_t>(s), static_cast<int64_t>(l)}
                               : std::array<int64_t, 2>{-1, -1});
                    if (!inside) continue;
                    const auto [sample, line] = m_places.back();
                    if (needed.w == 0) {
                        needed = {sample, line, 1, 1};
                        continue;
                    }
                    const int64_t right = std::max(needed.right(), sample + 1),
                                  bottom = std::max(needed.bottom(), line + 1);
                    needed.x = std::min(needed.x, sample);
                    needed.y = std::min(needed.y, line);
                    needed.w = right - needed.x;
                    needed.h = bottom - needed.y;
                }
            m_values.resize(static_cast<size_t>(needed.w * needed.h * shape.bands));
            const auto seen = CubeView<float>::packed(m_values.data(), shape.bands, needed.h, needed.w);
            if (needed.w > 0) m_from->read(needed, seen);
            for (int b = 0; b < shape.bands; ++b)
                for (int64_t y = 0; y < part.h; ++y)
                    for (int64_t x = 0; x < part.w; ++x) {
                        const auto [sample, line] = m_places[static_cast<size_t>(y * part.w + x)];
                        dst.at(b, y, x) = sample < 0 ? std::numeric_limits<float>::quiet_NaN()
                                                     : seen.at(b, line - needed.y, sample - needed.x);
                    }
        }
        const PlacedSource& m_owner;
        std::unique_ptr<stream::CubeReader> m_from;
        std::vector<std::array<int64_t, 2>> m_places; ///< in the scene; -1: beside it
        std::vector<float> m_values;
    };

    std::shared_ptr<const raster::RasterSource> m_scene;
    const GeoTransform m_to_scene, m_grid;
    const Rect m_window;
};

GeoTransform place_of(const raster::RasterSource& scene) {
    double gt[6];
    if (!scene.geotransform(gt))
        throw Error(
            "-mosaic: " + scene.path() + " has no geotransform",
            "gdal_hsi_orthorectify brings a scene that knows its longitudes and latitudes onto a map.");
    GeoTransform place;
    std::copy(gt, gt + 6, place.begin());
    return place;
}

MosaicGrid grid_of_all(const std::vector<std::shared_ptr<raster::RasterSource>>& scenes) {
    MosaicGrid grid;
    grid.place = place_of(*scenes.front());
    if (grid.place[2] != 0 || grid.place[4] != 0) {
        const double side =
            std::sqrt(std::fabs(grid.place[1] * grid.place[5] - grid.place[2] * grid.place[4]));
        grid.place = {grid.place[0], side, 0, grid.place[3], 0, -side};
    }
    const auto to_grid = inverse(grid.place, scenes.front()->path());
    for (const auto& scene : scenes) {
        const auto place = place_of(*scene);
        const auto shape = scene->shape();
        double low[2] = {0, 0}, high[2] = {0, 0};
        for (int corner = 0; corner < 4; ++corner) {
            const auto map = applied(place, corner & 1 ? static_cast<double>(shape.samples) : 0,
                                     corner & 2 ? static_cast<double>(shape.lines) : 0);
            const auto at = applied(to_grid, map[0], map[1]);
            for (size_t k = 0; k < 2; ++k) {
                low[k] = corner == 0 ? at[k] : std::min(low[k], at[k]);
                high[k] = corner == 0 ? at[k] : std::max(high[k], at[k]);
            }
        }
        for (size_t k = 0; k < 2; ++k)
            if (!(std::max(std::fabs(low[k]), std::fabs(high[k])) < 0x1p30))
                throw Error("-mosaic: " + scene->path() + " lies more than 2^30 pixels from " +
                                scenes.front()->path(),
                            "Do their geotransforms have the same unit?");
        const auto first = [](double v) { return static_cast<int64_t>(std::floor(v + 1e-6)); };
        const auto last = [](double v) { return static_cast<int64_t>(std::ceil(v - 1e-6)); };
        const Rect extent{first(low[0]), first(low[1]), last(high[0]) - first(low[0]),
                          last(high[1]) - first(low[1])};
        grid.all = grid.extents.empty() ? extent : united(grid.all, extent);
        grid.extents.push_back(extent);
    }
    return grid;
}

/// The metrics of every pixel of the common grid, as the mean over the pairs that overlap there.
class MosaicMap {
  public:
    /// \throws Error when it does not fit into a quarter of -memory, naming the scene that makes it largest.
    MosaicMap(const tool::Run& run, const MosaicGrid& grid, const std::vector<std::string>& names,
              size_t metrics)
        : m_all(grid.all), m_sums(metrics) {
        const auto& all = grid.all;
        const auto size = [](const Rect& r) { return std::to_string(r.w) + "x" + std::to_string(r.h); };
        // Of a grid of 2^31 pixels a side at most, far below what does not fit into 64 bits after all.
        const double wanted = static_cast<double>(all.area()) * (8 * static_cast<double>(metrics) + 2);
        const auto bytes = static_cast<uint64_t>(std::min(wanted, 0x1p62));
        if (bytes > tool::quarter(run.options().memory)) {
            const auto [farthest, others] = grid.farthest();
            throw Error("-map: the mosaic has " + size(all) + " pixels (" + size(others) + " without " +
                            names[farthest] + "), whose metrics take " + format_byte_size(bytes) +
                            ", more than a quarter of -memory",
                        "Give -memory " + format_byte_size(4 * bytes) + " or more, or fewer scenes.");
        }
        m_pairs.resize(static_cast<size_t>(all.area()));
        for (auto& plane : m_sums)
            plane.assign(static_cast<size_t>(all.area()), 0.0);
    }
    uint64_t bytes() const { return static_cast<uint64_t>(m_all.area()) * (8 * m_sums.size() + 2); }

    /// Takes the metrics of a pair in a window of the grid.
    class PairSink final : public stream::CubeSink {
      public:
        PairSink(MosaicMap& to, const Rect& window) : m_to(to), m_window(window) {}
        stream::CubeShape shape() const override {
            return {m_window.w, m_window.h, static_cast<int>(m_to.m_sums.size())};
        }
        bool concurrent() const override { return true; } // every pixel is written once in a pass
        void write(const Rect& core, const CubeView<float>& src) override {
            for (int64_t y = 0; y < core.h; ++y)
                for (int64_t x = 0; x < core.w; ++x) {
                    if (std::isnan(src.at(0, y, x))) continue;
                    const auto at =
                        static_cast<size_t>((m_window.y + core.y + y - m_to.m_all.y) * m_to.m_all.w +
                                            m_window.x + core.x + x - m_to.m_all.x);
                    ++m_to.m_pairs[at];
                    for (size_t k = 0; k < m_to.m_sums.size(); ++k)
                        m_to.m_sums[k][at] += static_cast<double>(src.at(static_cast<int>(k), y, x));
                }
        }

      private:
        MosaicMap& m_to;
        const Rect m_window;
    };

    /// As a cube: the metrics, then the number of pairs.
    class Planes final : public stream::CubeSource {
      public:
        explicit Planes(const MosaicMap& map) : m_map(map) {}
        stream::CubeShape shape() const override {
            return {m_map.m_all.w, m_map.m_all.h, static_cast<int>(m_map.m_sums.size()) + 1};
        }
        stream::BlockLayout layout() const override { return {}; }
        std::unique_ptr<stream::CubeReader> open_reader() const override {
            return std::make_unique<Reader>(m_map);
        }

      private:
        class Reader final : public stream::CubeReader {
          public:
            explicit Reader(const MosaicMap& map) : m_map(map) {}
            void read(const Rect& window, const CubeView<float>& dst) override {
                for (int64_t y = 0; y < window.h; ++y)
                    for (int64_t x = 0; x < window.w; ++x) {
                        const auto at = static_cast<size_t>((window.y + y) * m_map.m_all.w + window.x + x);
                        const int pairs = m_map.m_pairs[at];
                        for (size_t k = 0; k < m_map.m_sums.size(); ++k)
                            dst.at(static_cast<int>(k), y, x) =
                                pairs > 0 ? static_cast<float>(m_map.m_sums[k][at] / pairs)
                                          : std::numeric_limits<float>::quiet_NaN();
                        dst.at(dst.bands - 1, y, x) =
                            pairs > 0 ? static_cast<float>(pairs) : std::numeric_limits<float>::quiet_NaN();
                    }
            }

          private:
            const MosaicMap& m_map;
        };
        const MosaicMap& m_map;
    };

  private:
    const Rect m_all;
    std::vector<std::vector<double>> m_sums; ///< a metric each
    std::vector<uint16_t> m_pairs;
};

/// Two scenes that overlap, and how they agree there.
struct PairOfScenes {
    size_t first, second;
    Rect window; ///< of the grid
    compare::Findings found;
};

Json pair_json(const compare::Findings& f) {
    Json metrics = Json::object();
    for (size_t k = 0; k < f.spectral.size(); ++k)
        metrics[compare::metric_name(f.spectral[k])] = {{"mean", json_number(f.summaries[k].mean)},
                                                        {"maximum", json_number(f.summaries[k].maximum)}};
    return metrics;
}

/// Of all pairs: the mean over their pixels, and the greatest maximum.
compare::Findings of_all_pairs(const std::vector<PairOfScenes>& pairs) {
    compare::Findings all;
    for (const auto& pair : pairs) {
        if (all.spectral.empty()) {
            all.spectral = pair.found.spectral;
            all.summaries.resize(all.spectral.size());
        }
        const auto pixels = static_cast<double>(pair.found.counts.compared);
        all.counts.compared += pair.found.counts.compared;
        for (size_t k = 0; k < all.spectral.size(); ++k) {
            all.summaries[k].mean += pixels * pair.found.summaries[k].mean;
            all.summaries[k].maximum = std::max(all.summaries[k].maximum, pair.found.summaries[k].maximum);
        }
    }
    for (auto& summary : all.summaries)
        summary.mean /= static_cast<double>(all.counts.compared);
    return all;
}

std::string mosaic_text(const std::vector<PairOfScenes>& pairs, const std::vector<std::string>& names,
                        const compare::Findings& all) {
    std::vector<std::array<std::string, 2>> rows;
    size_t width = 3;
    char text[64];
    const auto row = [&](const std::string& name, const compare::Findings& f) {
        std::snprintf(text, sizeof text, " %10lld", static_cast<long long>(f.counts.compared));
        std::string numbers = text;
        for (const auto& summary : f.summaries)
            for (const double v : {summary.mean, summary.maximum}) {
                std::snprintf(text, sizeof text, " %12.6g", v);
                numbers += text;
            }
        width = std::max(width, name.size());
        rows.push_back({name, numbers});
    };
    for (const auto& pair : pairs)
        row(names[pair.first] + " - " + names[pair.second], pair.found);
    row("all", all);
    std::string out = "overlap" + std::string(width > 7 ? width - 7 : 0, ' ') + "     pixels";
    for (const Metric m : all.spectral) {
        std::snprintf(text, sizeof text, " %12s      maximum", compare::metric_name(m));
        out += text;
    }
    out += "\n";
    for (const auto& [name, numbers] : rows)
        out += name + std::string(width - name.size(), ' ') + numbers + "\n";
    return out;
}

raster::OutputSpec mosaic_spec(const std::vector<Metric>& metrics, const MosaicGrid& grid,
                               const raster::RasterSource& scene) {
    raster::OutputSpec spec = map_of({grid.all.w, grid.all.h, 0}, metrics);
    spec.bands.push_back({"pairs", {}});
    spec.shape.bands = static_cast<int>(spec.bands.size());
    spec.srs = scene.srs_wkt();
    const auto origin = applied(grid.place, static_cast<double>(grid.all.x), static_cast<double>(grid.all.y));
    spec.geotransform = {origin[0], grid.place[1], 0, origin[1], 0, grid.place[5]};
    return spec;
}

/// The pairs whose extents overlap.
std::vector<PairOfScenes> pairs_of(const MosaicGrid& grid) {
    std::vector<PairOfScenes> pairs;
    for (size_t i = 0; i < grid.extents.size(); ++i)
        for (size_t k = i + 1; k < grid.extents.size(); ++k)
            if (const Rect window = intersect(grid.extents[i], grid.extents[k]); !window.empty())
                pairs.push_back({i, k, window, {}});
    return pairs;
}

[[noreturn]] void refuse_lonely(const std::vector<std::shared_ptr<raster::RasterSource>>& scenes) {
    throw Error("-mosaic: no pixel is valid in two of the " + counted(scenes.size(), "scene"),
                "Do they overlap? Check nodata values (-srcnodata) and leave out bad bands (-b).");
}

void compare_mosaic(tool::Run& run, Settings s) {
    if (s.json) run.only_print();
    const auto text_output = run.text_output("-o", s.text_file, s.overwrite);
    raster::check_text_output(text_output);
    const auto source = run.open_source();
    std::vector<std::string> names{s.other};
    for (const auto& name : tools::listed_names(run, "-with", s.with))
        names.push_back(name);
    const tools::ManyScenes many(run, names, source);
    names.insert(names.begin(), source->path());
    std::vector<std::shared_ptr<raster::RasterSource>> scenes;
    for (size_t k = 0; k < many.count(); ++k)
        scenes.push_back(many.scene(k, *source));
    const MosaicGrid grid = grid_of_all(scenes);
    if (s.metrics.empty())
        s.metrics = source->shape().bands > 1 ? std::vector<Metric>{Metric::nrmse, Metric::sad}
                                              : std::vector<Metric>{Metric::rmse, Metric::maxabs};
    complete_metrics(s, source->shape().bands);
    check_bands(s.metrics, source->shape().bands);
    const compare::Measurement measurement(s.metrics);
    auto pairs = pairs_of(grid);
    if (pairs.empty()) refuse_lonely(scenes);
    std::optional<MosaicMap> map;
    raster::OutputSpec spec;
    if (!s.map.empty()) {
        spec = mosaic_spec(measurement.local(), grid, *source);
        raster::RasterSink::check(map_output(run, s), spec);
        map.emplace(run, grid, names, measurement.local().size());
    }
    run.report()["device"] = tool::describe_devices(run, {}, nullptr);
    const auto placed = [&](size_t scene, const Rect& window) {
        return std::make_shared<PlacedSource>(
            scenes[scene], inverse(place_of(*scenes[scene]), scenes[scene]->path()), grid.place, window);
    };
    const auto both_of = [&](const PairOfScenes& pair) {
        return stream::StackedSource({placed(pair.first, pair.window), placed(pair.second, pair.window)});
    };
    const auto pass_of = [&](const std::string& name, double share) {
        auto pass = run.pass(name, share / static_cast<double>(pairs.size()));
        if (map) tool::leave_room(pass, map->bytes());
        return pass;
    };
    tool::end_of_plan(run, [&] {
        for (const auto& pair : pairs) {
            run.print(names[pair.first] + " - " + names[pair.second] + ":");
            measurement.show(both_of(pair), map.has_value(),
                             [&](const std::string& name, const auto& operation) {
                                 tool::print_plan(run, both_of(pair), operation, pass_of(name, 1));
                             });
        }
    });
    std::vector<PairOfScenes> found;
    for (auto& pair : pairs) {
        const auto both = both_of(pair);
        std::optional<MosaicMap::PairSink> sink;
        if (map) sink.emplace(*map, pair.window);
        std::function<stream::CubeSink*()> open_map;
        if (sink) open_map = [&sink]() -> stream::CubeSink* { return &*sink; };
        pair.found =
            measurement.run(both, open_map,
                            [&](const std::string& name, double share, stream::Operation& operation,
                                const std::vector<stream::CubeSink*>& sinks) {
                                run.add_pass(stream::run_pass(both, operation, sinks, pass_of(name, share)));
                            });
        if (pair.found.counts.compared > 0) found.push_back(pair);
    }
    if (found.empty()) refuse_lonely(scenes);
    if (map) {
        const auto sink = raster::RasterSink::create(map_output(run, s), spec, nullptr);
        run.reserve_cache(sink->cache_bytes());
        const MosaicMap::Planes planes(*map);
        stream::CopyOperation copy(planes.shape().bands, false);
        run.add_pass(stream::run_pass(planes, copy, {sink.get()}, run.pass("map", 0)));
        sink->commit();
    }
    const auto all = of_all_pairs(found);
    Json list = Json::array();
    for (const auto& pair : found)
        list.push_back({{"a", names[pair.first]},
                        {"b", names[pair.second]},
                        {"pixels", pair.found.counts.compared},
                        {"metrics", pair_json(pair.found)}});
    const Json result{
        {"scenes", names}, {"pairs", list}, {"pixels", all.counts.compared}, {"metrics", pair_json(all)}};
    run.report()["result"] = result;
    auto text = s.json ? result.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"
                       : mosaic_text(found, names, all);
    raster::write_text_output(text_output, text);
    text.pop_back(); // print() ends the line
    run.print(text);
    run.keep_outputs();
    for (const auto& pair : found)
        apply_limits(s, pair.found);
}

/// What -mosaic does not go with, and what means nothing without it.
void check_mosaic(const tool::Call& call, const Settings& s) {
    if (!s.mosaic) {
        if (!s.with.empty())
            throw UsageError("-with names further scenes of a mosaic, and there is none",
                             "Give -mosaic, too.");
        return;
    }
    for (const char* const name :
         {"band", "other-b", "any-wavelengths", "srcwin", "min-ssim", "max-unmatched"})
        if (call.given(name))
            throw UsageError("-mosaic does not go with -" + std::string(name) +
                                 ": scenes are compared where they overlap, at the bands of src",
                             "Leave one of them out.");
    for (const Metric m : s.metrics)
        if (!compare::is_spectral(m))
            throw UsageError(std::string("-mosaic does not go with -metric ") + compare::metric_name(m),
                             "For overlaps there are nrmse, maxsde, sad, rmse and maxabs.");
}

// The options
// ----------------------------------------------------------------------------------------------------------

void declare_thresholds(tool::Call& call, Settings& s) {
    const auto limit = [&](const std::string& name, auto& value, const std::string& text) -> tool::Argument& {
        return call.option(name, value, text).defaults_to("").under("Thresholds");
    };
    for (size_t k = 0; k < spectral_metrics.size(); ++k) {
        const std::string name = compare::metric_name(spectral_metrics[k]);
        limit("max-" + name, s.limits[k].maximum,
              "Fail when the maximum of " + name + " over the pixels is greater")
            .from(0);
        limit("mean-" + name, s.limits[k].mean,
              "Fail when the mean of " + name + " over the pixels is greater")
            .from(0);
    }
    limit("min-ssim", s.min_ssim, "Fail when ssim of a band is less").between(-1, 1);
    limit("max-unmatched", s.max_unmatched,
          "Fail when more pixels than this are valid in only one of the two")
        .from(0);
}

void declare(tool::Call& call) {
    auto& s = call.settings<Settings>();
    call.add_source();
    call.input_argument("other", s.other, Content::raster, "The scene that is compared with src");
    call.option("metric", s.metric_texts, "Metrics, separated by commas")
        .shown_as("LIST")
        .defaults_to("nrmse,maxsde,sad,rmse,maxabs; one band: rmse,maxabs");
    call.option("band", s.pair_texts,
                "Pairs of bands, of src and of the other scene: 1:4, 1-10:21-30, 1:2,1:3")
        .shown_as("PAIRS")
        .defaults_to("band by band");
    call.option("other-b", s.other_texts,
                "Bands of the other scene, paired in order with those of src; given as with -b, which then "
                "applies to src alone")
        .shown_as("LIST")
        .defaults_to("as -b");
    call.exclusive("band", "other-b");
    call.flag("any-wavelengths", s.any_wavelengths,
              "Compare bands in their order even if both scenes have wavelengths or band numbers");
    call.flag("mosaic", s.mosaic,
              "Compare scenes where they overlap on the earth, pair by pair, and all pairs together; their "
              "sizes may "
              "differ");
    tools::add_with_option(call, s.with, "With -mosaic: also compare with this scene");
    call.flag("json", s.json, "Print the result as JSON, and nothing else");
    call.output("o", s.text_file, Content::text,
                "Also write what is printed to FILE: text, or with -json JSON");
    declare_thresholds(call, s);
    call.output(
            "map", s.map, Content::raster,
            "Also write the metrics of every pixel, a band each, to FILE; ssim is averaged over the bands")
        .under("Map");
    call.option("of", s.map_format, "Format of the map")
        .shown_as("FORMAT")
        .defaults_to("from its extension, else GTiff")
        .speaks(tool::Vocabulary::raster_drivers)
        .under("Map");
    call.option("co", s.map_creation, "Creation option of the map").shown_as("NAME=VALUE").under("Map");
    call.overwrite(s.overwrite,
                   "Replace the map and the file of -o when they are there; without this that is "
                   "an error");
    call.add_compute(false);
    call.check([&s, &call](const tool::CommonOptions& common) {
        parse_metrics(s);
        parse_pairs(s);
        check_mosaic(call, s);
        if (!tool::names_wavelengths(s.other_texts))
            tool::parse_band_list(s.other_texts, "-other-b"); // no band twice
        s.other_bands = tool::parse_band_choices(s.other_texts, "-other-b");
        const bool chosen = !common.source.bands.empty() || !common.source.choices.empty();
        if (!s.pair_texts.empty() && (chosen || !common.source.excluded.empty()))
            throw UsageError(std::string(chosen ? "-b" : "-exclude-range") +
                                 " and -band contradict one another",
                             "Use -band alone.");
        if (s.map.empty() && (call.given("of") || call.given("co")))
            throw UsageError("-of and -co apply to the map", "Give -map FILE.");
        if (s.map.empty() && s.text_file.empty() && call.given("overwrite"))
            throw UsageError("-overwrite applies to the map and the file of -o",
                             "Give -map FILE or -o FILE.");
    });
    call.body([&s](tool::Run& run) { s.mosaic ? compare_mosaic(run, s) : compare_scenes(run, s); });
}

} // namespace compare_tool
} // namespace

namespace tools {

extern constinit const tool::Definition compare{
    "compare",
    "How far two scenes are apart",
    "Measures how much two scenes of the same size differ; src is the reference. -b, -bbl, -srcwin and "
    "-srcnodata apply to both scenes (-other-b to the other one), -if and -oo to src. Exit code 0: compared "
    "and within the given thresholds; 1: beyond one of them, or not comparable.",
    {{"gdal_hsi_compare cpu.tif gpu.tif", "The five spectral metrics"},
     {"gdal_hsi_compare -mosaic -with line3.img -map agreement.tif line1.img line2.img",
      "How well flight lines agree where they overlap"},
     {"gdal_hsi_compare -metric nrmse,sad -map distance.tif -json before.img after.tif",
      "Where do they differ?"},
     {"gdal_hsi_compare -q -mean-nrmse 1e-6 -max-maxsde 5e-6 reference.tif result.tif && echo alike",
      "A test that the exit code decides"},
     {"gdal_hsi_compare -metric ssim,sr -band 1:2,1:3 profile.tif profile.tif",
      "Diffused copies of a component against the component itself"}},
    "Metrics of a pixel (mean and maximum are shown): nrmse, maxsde, sad (degrees), rmse, "
    "maxabs.\nMetrics of a band: ssim, sr (flat zones of the other scene over those of src).",
    compare_tool::declare};

} // namespace tools
} // namespace hsi
