// SPDX-License-Identifier: MIT
#include "gdal_hsi_compare/two_scenes.h"

#include "compare/measurement.h"
#include "core/error.h"
#include "core/json.h"
#include "gdal_hsi_compare/findings.h"
#include "model/band_match.h"
#include "raster/raster_sink.h"
#include "raster/raster_source.h"
#include "stream/stacked_source.h"
#include "stream/value_parts.h"
#include "tool/devices.h"
#include "tool/model_values.h"
#include "tool/passes.h"
#include "tool/scene.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::compare_tool {
namespace {

struct ComparedScene {
    std::shared_ptr<raster::RasterSource> file;
    std::shared_ptr<const stream::CubeSource> cube;
    std::vector<int> bands; ///< number in the file of each band of the cube
    std::vector<int> picks; ///< index in `file` of each band of the cube; empty: all bands of `file`
};

/// A source with selected bands of another source. Bands may be repeated.
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

/// Returns a scene with all bands of the file.
ComparedScene all_bands(const std::shared_ptr<raster::RasterSource>& file) {
    return {file, file, file->bands(), {}};
}

/// Returns a scene with some bands of the file, given by index.
ComparedScene some_bands(const std::shared_ptr<raster::RasterSource>& file, std::vector<int> picks) {
    ComparedScene out{file, nullptr, {}, picks};
    for (const int k : picks)
        out.bands.push_back(file->bands()[static_cast<size_t>(k)]);
    out.cube = std::make_shared<PickedSource>(file, std::move(picks));
    return out;
}

/// Opens a scene. wanted: 1-based band numbers of -band, possibly repeated; empty: all bands of the source.
ComparedScene open_scene(raster::OpenOptions options, const std::vector<int>& wanted) {
    if (wanted.empty()) {
        return all_bands(raster::open_raster(options));
    }
    options.bands = wanted;
    std::sort(options.bands.begin(), options.bands.end());
    options.bands.erase(std::unique(options.bands.begin(), options.bands.end()), options.bands.end());
    auto file = raster::open_raster(options);
    if (options.bands == wanted) return all_bands(file);
    std::vector<int> picks;
    picks.reserve(wanted.size());
    for (int b : wanted)
        picks.push_back(static_cast<int>(std::lower_bound(options.bands.begin(), options.bands.end(), b) -
                                         options.bands.begin()));
    return some_bands(file, std::move(picks));
}

/// Returns for each band of a the matching band of b (0-based; -1: no match). If all wavelengths of both
/// scenes are known, bands are matched by wavelength; else by number if the numbers can be compared. `by` is
/// set to the criterion. Returns an empty list if bands are compared in their order.
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

/// Prints a note if bands are paired in their order although their names differ.
void note_other_names(tool::Run& run, const raster::RasterSource& a, const raster::RasterSource& b) {
    const auto first = a.facts().bands.names, second = b.facts().bands.names;
    if (first.size() != second.size() || first.size() < 2 || first == second) return;
    // Names such as "Band 3" carry no information.
    const auto are_names = [](const std::vector<std::string>& names) {
        return std::none_of(names.begin(), names.end(), [](const std::string& name) {
            return name.rfind("Band ", 0) == 0 &&
                   name.find_first_not_of("0123456789", 5) == std::string::npos;
        });
    };
    if (!are_names(first) || !are_names(second)) return;
    std::string by_name; // band numbers of b with the names of a's bands, as text; empty: the names differ
    if (std::is_permutation(first.begin(), first.end(), second.begin()) && are_unique(first))
        for (const auto& name : first)
            by_name += (by_name.empty() ? "" : ",") +
                       std::to_string(b.bands()[static_cast<size_t>(
                           std::find(second.begin(), second.end(), name) - second.begin())]);
    const auto k =
        static_cast<size_t>(std::mismatch(first.begin(), first.end(), second.begin()).first - first.begin());
    run.note("Bands are paired in their order, although " +
             (by_name.empty()
                  ? "their names differ ('" + first[k] + "' and '" + second[k] +
                        "'); use -other-b to choose other bands"
                  : "their names have another order; use -other-b " + by_name + " to pair them by name"));
}

/// Prints a note if the positions in -b pair bands with different wavelengths or band numbers.
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
        return run.note("Bands are paired by their positions in -b, although their " + by + "s differ (" +
                        text(first) + " and " + text(second) + "); leave -b out to pair them by " + by +
                        ", or choose the bands of the other scene with -other-b");
    }
}

/// Keeps the bands that have a match, in the order of the first scene. Prints a note with the number of bands
/// without a match. \throws Error if no band has a match.
void match_bands(tool::Run& run, ComparedScene& a, ComparedScene& b) {
    std::string by;
    const auto matched = partners(*a.file, *b.file, by);
    if (matched.empty() || (by == "number" && !tool::scene_bands(*a.file).told &&
                            !tool::scene_bands(*b.file).told)) // band numbers are only indices in the files
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
        throw Error(a.file->path() + " and " + b.file->path() +
                        (by == "number" ? " have no common band numbers" : " have no common wavelengths"),
                    "Use -any-wavelengths to compare bands in their order, or -band to choose pairs.");
    run.note("Bands are compared by " + by + ": " + std::to_string(picks.size()) + " match; " +
             std::to_string(alone.size()) + " of " + a.file->path() + " and " +
             std::to_string(others.size()) + " of " + b.file->path() + " have no match");
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
        throw Error(size_text(a) + ", " + size_text(b) + ": scenes must have the same size",
                    "Cut the larger scene, for example with gdal_translate -srcwin.");
    if (sa.bands != sb.bands)
        throw Error(size_text(a) + ", " + size_text(b) + ": scenes must have the same count of bands",
                    "Choose bands of src with -b and bands of the other scene with -other-b, or pairs with "
                    "-band; -bbl ignore keeps bands marked bad.");
    double ga[6], gb[6];
    const bool ha = a.file->facts().copy_geotransform(ga), hb = b.file->facts().copy_geotransform(gb);
    if (!ha || !hb) return;
    const double pixel = std::hypot(ga[1], ga[4]);
    double apart = 0; // largest distance between a corner of one scene and the same corner of the other
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

/// Returns the scale and offset of band k that the file states; by default 1 and 0.
std::pair<double, double> stated_scale(const raster::BandValues& values, const ComparedScene& scene,
                                       size_t k) {
    const size_t at = scene.picks.empty() ? k : static_cast<size_t>(scene.picks[k]);
    return values.scale.empty() ? std::pair(1.0, 0.0) : std::pair(values.scale[at], values.offset[at]);
}

/// Returns the median ratio of values of the second scene to values of the first scene, in pixels of a few
/// rows; 0 if unknown.
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

/// Warns if the files state different scales, because stored values are compared. A file without a scale may
/// have lost it; the warning is then printed only if the values differ, too.
void warn_of_other_scales(tool::Run& run, const ComparedScene& a, const ComparedScene& b) {
    const auto of_a = a.file->facts().bands.values, of_b = b.file->facts().bands.values;
    double factor = 0; // ratio of stored values, second scene to first scene, that the stated scales imply
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
             b.file->path() + ": " + text(of_b) + "), but stored values are compared" +
             (factor != 1 && factor > 0
                  ? ": equal quantities have values " + std::string(number) + " as large in the second file"
                  : std::string()) +
             ". Convert both to one scale first (gdal_calc.py)");
}

/// Opens both scenes with the bands of -band, or with all bands.
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
    other.open_options.clear(); // -oo and -if apply only to the driver of the first scene
    other.drivers.clear();
    const bool apart = !s.other_bands.empty();
    if (apart) {
        other.bands.clear();
        other.choices = s.other_bands;
    }
    ComparedScene b = open_scene(other, s.second_bands);
    run.watch_source(b.file, tool::Precision::full);
    run.reserve_cache(b.file->cache_bytes());
    // Bands that the user gave by number are compared as given.
    if (s.first_bands.empty() && options.source.bands.empty() && !apart && !s.any_wavelengths)
        match_bands(run, a, b);
    else if (s.first_bands.empty() && !apart && !s.any_wavelengths)
        note_other_bands(run, *a.file, *b.file);
    check_comparable(run, a, b);
    return {std::move(a), std::move(b)};
}

/// Returns the number of parts of each value when both scenes are read together: 1, or stream::value_parts if
/// single precision cannot represent the values of one of the scenes.
int parts_of_values(const ComparedScene& a, const ComparedScene& b) {
    return a.file->facts().exact_in_float && b.file->facts().exact_in_float ? 1 : stream::value_parts;
}

/// Joins the bands of both cubes into one cube, with parts_of_values() bands per value.
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

/// Returns the scene without some of its bands. empty: ascending indices of these bands.
ComparedScene without_bands(const ComparedScene& o, const std::vector<int>& empty) {
    if (o.picks.empty()) return all_bands(o.file->without_bands(empty));
    std::vector<int> kept;
    for (int k = 0; k < static_cast<int>(o.picks.size()); ++k)
        if (!std::binary_search(empty.begin(), empty.end(), k))
            kept.push_back(o.picks[static_cast<size_t>(k)]);
    return some_bands(o.file, std::move(kept));
}

/// Returns both scenes with their bands, for the message that no pixel is valid in both scenes.
std::vector<tool::BandedSource> banded(ComparedScene& a, ComparedScene& b) {
    std::vector<tool::BandedSource> scenes;
    for (ComparedScene* scene : {&a, &b})
        scenes.push_back({scene->cube, scene->bands,
                          [scene](const std::vector<int>& empty) { *scene = without_bands(*scene, empty); }});
    return scenes;
}

double mean(const std::vector<double>& v) {
    double sum = 0;
    for (double x : v)
        sum += x;
    return sum / static_cast<double>(v.size());
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
    if (!f.band_rmse.empty()) {
        metrics["rmse"]["all_values"] = json_number(f.rmse);
        metrics["rmse"]["bands"] = by_band(f.band_rmse)["bands"];
    }
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

/// With more bands, the rmse of each band is only in the JSON, unless bands are listed for ssim or sr.
constexpr size_t most_listed = 16;

/// Returns the findings as text. Each row ends with a line break.
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
    const bool has_rmse = !f.band_rmse.empty();
    if (has_rmse) print("RMSE over all pixels and bands: " + metric_text(f.rmse));
    const bool list_rmse = has_rmse && f.band_rmse.size() > 1 && f.band_rmse.size() <= most_listed;
    if (!f.has_ssim && !f.has_sr && !list_rmse) return all;
    std::string head = "  band a   band b";
    if (has_rmse) head += "               rmse";
    if (f.has_ssim) head += "               ssim";
    if (f.has_sr) head += "                 sr      zones a      zones b";
    print(head);
    const auto row = [&](const std::string& first, const std::string& second, double ssim, double sr,
                         size_t band) {
        std::snprintf(line, sizeof line, "%8s %8s", first.c_str(), second.c_str());
        std::string text = line;
        if (has_rmse) {
            const bool of_band = band < f.band_rmse.size();
            std::snprintf(line, sizeof line, " %18s", of_band ? metric_text(f.band_rmse[band]).c_str() : "");
            text += line;
        }
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
    if (!f.has_ssim && !f.has_sr) return all;
    row("mean", "", f.has_ssim ? mean(f.ssim) : 0, f.has_sr ? mean(f.sr) : 0, SIZE_MAX);
    return all;
}

} // namespace

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
            throw UsageError("-map: sr has one value per band and no map", "Add another -metric.");
        map_options = map_output(run, s);
        map_spec = map_of(a.cube->shape(), measurement.local());
        raster::check_output(map_options, map_spec, *a.file);
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
            map = raster::create_sink(map_options, map_spec, a.file.get());
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

    give_result(run, s, text_output, to_json(f, a, b), text_of(f, a, b));
    apply_limits(s, f);
}

} // namespace hsi::compare_tool
