// SPDX-License-Identifier: MIT
// gdal_hsi_compare: how far two scenes of one size are apart. One pass over both for the spectral metrics and
// ssim, up to three more before it for ranges, thresholds and flat zones when ssim or sr are asked for.
#include "cli/tool.h"
#include "compare/compare.h"
#include "core/byte_size.h"
#include "core/error.h"
#include "stream/band_statistics.h"
#include "stream/stacked_source.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

namespace {

using namespace hsi;
using compare::Metric;

constexpr std::array<Metric, 5> spectral_metrics{Metric::nrmse, Metric::maxsde, Metric::sad, Metric::rmse,
                                                 Metric::maxabs};

struct Limits {
    double mean = -1, maximum = -1; ///< negative: none
};

struct Settings {
    std::string other, map, map_format;
    std::vector<std::string> map_creation;
    bool overwrite = false, json = false;
    std::vector<std::string> metric_texts, pair_texts;
    std::vector<Metric> metrics;                ///< empty: those that suit the number of bands
    std::vector<int> first_bands, second_bands; ///< of -band
    std::array<Limits, 5> limits;               ///< of spectral_metrics
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
                throw UsageError("-band: '" + pair + "' pairs " + std::to_string(first.size()) +
                                 " bands with " + std::to_string(second.size()));
            s.first_bands.insert(s.first_bands.end(), first.begin(), first.end());
            s.second_bands.insert(s.second_bands.end(), second.begin(), second.end());
        }
}

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

struct Opened {
    std::shared_ptr<raster::RasterSource> file;
    std::shared_ptr<const stream::CubeSource> cube;
    std::vector<int> bands; ///< file bands behind the cube's
};

/// wanted: 1-based bands of -band, some perhaps twice; empty: all that the source has.
Opened open_one(raster::OpenOptions options, const std::vector<int>& wanted) {
    if (wanted.empty()) {
        auto file = raster::RasterSource::open(options);
        return {file, file, file->bands()};
    }
    options.bands = wanted;
    std::sort(options.bands.begin(), options.bands.end());
    options.bands.erase(std::unique(options.bands.begin(), options.bands.end()), options.bands.end());
    auto file = raster::RasterSource::open(options);
    if (options.bands == wanted) return {file, file, wanted};
    std::vector<int> picks;
    for (int b : wanted)
        picks.push_back(static_cast<int>(std::lower_bound(options.bands.begin(), options.bands.end(), b) -
                                         options.bands.begin()));
    return {file, std::make_shared<PickedSource>(file, std::move(picks)), wanted};
}

/// The same without some of its bands (indices, ascending).
Opened without(const Opened& o, const std::vector<int>& empty) {
    Opened out{o.file, nullptr, {}};
    std::vector<int> kept;
    for (int k = 0; k < static_cast<int>(o.bands.size()); ++k)
        if (!std::binary_search(empty.begin(), empty.end(), k)) {
            kept.push_back(k);
            out.bands.push_back(o.bands[static_cast<size_t>(k)]);
        }
    if (o.cube == o.file)
        out.cube = out.file = o.file->without_bands(empty);
    else
        out.cube = std::make_shared<PickedSource>(o.cube, std::move(kept));
    return out;
}

/// For scenes without a common valid pixel: leaves bands without a single value in either out of both, as
/// Run::leave_out_empty_bands() does for one scene. False when there is none, or no other.
bool leave_out_empty_bands(cli::Run& run, Opened& a, Opened& b) {
    std::vector<int> empty;
    for (const Opened* scene : {&a, &b}) {
        stream::BandStatisticsScan scan(scene->cube->shape().bands);
        run.add_pass(stream::run_pass(*scene->cube, scan, {}, run.pass("statistics", 0)));
        const auto found = scan.result().empty_bands();
        empty.insert(empty.end(), found.begin(), found.end());
    }
    std::sort(empty.begin(), empty.end());
    empty.erase(std::unique(empty.begin(), empty.end()), empty.end());
    if (empty.empty() || empty.size() == a.bands.size()) return false;
    std::vector<int> numbers, of_other;
    for (int k : empty) {
        numbers.push_back(a.bands[static_cast<size_t>(k)]);
        of_other.push_back(b.bands[static_cast<size_t>(k)]);
    }
    run.warn(
        "no valid value in band " + cli::list_text(numbers) +
        (of_other == numbers ? std::string() : " or in band " + cli::list_text(of_other) + " of the other") +
        ": left out");
    run.report()["bands_without_values"] = numbers;
    a = without(a, empty);
    b = without(b, empty);
    return true;
}

std::string size_text(const Opened& o) {
    const auto s = o.cube->shape();
    return o.file->path() + " is " + std::to_string(s.samples) + "x" + std::to_string(s.lines) + "x" +
           std::to_string(s.bands);
}

void check_alike(cli::Run& run, const Opened& a, const Opened& b) {
    const auto sa = a.cube->shape(), sb = b.cube->shape();
    if (sa.samples != sb.samples || sa.lines != sb.lines)
        throw Error(size_text(a) + ", " + size_text(b) + ": only scenes of one size can be compared",
                    "Cut the larger one, for example with gdal_translate -srcwin.");
    if (sa.bands != sb.bands)
        throw Error(size_text(a) + ", " + size_text(b) + " bands: their numbers differ",
                    "Choose bands with -b or pairs of bands with -band; -bbl ignore takes bands that are "
                    "marked bad.");
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

std::string number(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", v);
    return text;
}

nlohmann::json json_number(double v) {
    if (std::isnan(v)) return nullptr;
    if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
    return v;
}

/// Everything that was found out.
struct Findings {
    std::vector<Metric> spectral;
    std::vector<compare::Summary> summaries;
    compare::PixelCounts counts;
    bool has_ssim = false, has_sr = false;
    std::vector<double> ssim, sr;
    compare::Zones zones;
    double mean(const std::vector<double>& v) const {
        double sum = 0;
        for (double x : v)
            sum += x;
        return sum / static_cast<double>(v.size());
    }
};

nlohmann::json to_json(const Findings& f, const Opened& a, const Opened& b) {
    using Json = nlohmann::json;
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
        return Json{{"mean", json_number(f.mean(v))}, {"bands", list}};
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

void print_text(cli::Run& run, const Findings& f, const Opened& a, const Opened& b) {
    char line[160];
    run.print("Pixels compared: " + std::to_string(f.counts.compared) + ", valid only in " + a.file->path() +
              ": " + std::to_string(f.counts.only_first) + ", only in " + b.file->path() + ": " +
              std::to_string(f.counts.only_second) + ", in neither: " + std::to_string(f.counts.neither));
    if (!f.spectral.empty()) {
        std::snprintf(line, sizeof line, "%-8s %18s %18s   %s", "metric", "mean", "maximum",
                      "at line, sample");
        run.print(line);
    }
    for (size_t k = 0; k < f.spectral.size(); ++k) {
        const auto& s = f.summaries[k];
        std::snprintf(line, sizeof line, "%-8s %18s %18s   %lld, %lld", compare::metric_name(f.spectral[k]),
                      number(s.mean).c_str(), number(s.maximum).c_str(), static_cast<long long>(s.line),
                      static_cast<long long>(s.sample));
        run.print(line);
    }
    if (!f.has_ssim && !f.has_sr) return;
    std::string head = "  band a   band b";
    if (f.has_ssim) head += "               ssim";
    if (f.has_sr) head += "                 sr      zones a      zones b";
    run.print(head);
    const auto row = [&](const std::string& first, const std::string& second, double ssim, double sr,
                         size_t band) {
        std::snprintf(line, sizeof line, "%8s %8s", first.c_str(), second.c_str());
        std::string text = line;
        if (f.has_ssim) {
            std::snprintf(line, sizeof line, " %18s", number(ssim).c_str());
            text += line;
        }
        if (f.has_sr) {
            std::snprintf(line, sizeof line, " %18s", number(sr).c_str());
            text += line;
            if (band < f.sr.size()) {
                std::snprintf(line, sizeof line, " %12lld %12lld",
                              static_cast<long long>(f.zones.first[band]),
                              static_cast<long long>(f.zones.second[band]));
                text += line;
            }
        }
        run.print(text);
    };
    for (size_t k = 0; k < a.bands.size(); ++k)
        row(std::to_string(a.bands[k]), std::to_string(b.bands[k]), f.has_ssim ? f.ssim[k] : 0,
            f.has_sr ? f.sr[k] : 0, k);
    row("mean", "", f.has_ssim ? f.mean(f.ssim) : 0, f.has_sr ? f.mean(f.sr) : 0, SIZE_MAX);
}

/// The first threshold that is exceeded ends the run with exit code 1.
void apply_limits(const Settings& s, const Findings& f) {
    const auto exceeded = [](double value, double limit) { return limit >= 0 && !(value <= limit); };
    for (size_t k = 0; k < f.spectral.size(); ++k) {
        const auto at =
            static_cast<size_t>(std::find(spectral_metrics.begin(), spectral_metrics.end(), f.spectral[k]) -
                                spectral_metrics.begin());
        const std::string name = compare::metric_name(f.spectral[k]);
        if (exceeded(f.summaries[k].maximum, s.limits[at].maximum))
            throw Error("the maximum of " + name + " is " + number(f.summaries[k].maximum) +
                        ", more than -max-" + name + " " + number(s.limits[at].maximum));
        if (exceeded(f.summaries[k].mean, s.limits[at].mean))
            throw Error("the mean of " + name + " is " + number(f.summaries[k].mean) + ", more than -mean-" +
                        name + " " + number(s.limits[at].mean));
    }
    if (f.has_ssim && s.min_ssim >= -1)
        for (double v : f.ssim)
            if (!(v >= s.min_ssim))
                throw Error("ssim of a band is " + number(v) + ", less than -min-ssim " + number(s.min_ssim));
    const int64_t unmatched = f.counts.only_first + f.counts.only_second;
    if (s.max_unmatched >= 0 && unmatched > s.max_unmatched)
        throw Error(std::to_string(unmatched) +
                    " pixels are valid in only one of the two, more than -max-unmatched " +
                    std::to_string(s.max_unmatched));
}

void compare_scenes(cli::Run& run, Settings s) {
    const auto& options = run.options();
    if (s.json) run.only_print();
    Opened a;
    if (s.first_bands.empty()) {
        const auto file = run.open_source();
        a = {file, file, file->bands()};
    } else {
        a = open_one(options.source, s.first_bands);
        run.reserve_cache(a.file->cache_bytes());
    }
    raster::OpenOptions other = options.source;
    other.path = s.other;
    other.open_options.clear(); // -oo and -if are about the first scene's driver
    other.drivers.clear();
    Opened b = open_one(other, s.second_bands);
    run.reserve_cache(b.file->cache_bytes());
    check_alike(run, a, b);
    int bands = a.cube->shape().bands;

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
    const auto wants = [&](Metric m) {
        return std::find(s.metrics.begin(), s.metrics.end(), m) != s.metrics.end();
    };
    if (s.min_ssim >= -1 && !wants(Metric::ssim)) s.metrics.push_back(Metric::ssim);
    const auto check_bands = [&] {
        if (bands > 1) return;
        for (Metric m : {Metric::nrmse, Metric::sad})
            if (wants(m))
                throw UsageError(std::string("-metric ") + compare::metric_name(m) +
                                     ": one band is no spectrum, at least 2 are needed",
                                 "For single bands there are maxsde, rmse, maxabs, ssim and sr.");
    };
    check_bands();

    Findings f;
    f.has_ssim = wants(Metric::ssim);
    f.has_sr = wants(Metric::sr);
    std::vector<Metric> local; // in the order of the map's bands
    for (Metric m : s.metrics)
        if (m != Metric::sr) local.push_back(m);
    for (Metric m : local)
        if (compare::is_spectral(m)) f.spectral.push_back(m);

    raster::OutputOptions map_options;
    raster::OutputSpec map_spec;
    if (!s.map.empty()) {
        if (local.empty())
            throw UsageError("-map: sr has one value a band and no map", "Add another -metric.");
        map_options.path = s.map;
        map_options.role = "-map";
        map_options.run = run.files();
        map_options.cancel = &run.cancel();
        map_options.format = s.map_format;
        map_options.creation_options = s.map_creation;
        map_options.overwrite = s.overwrite;
        map_options.history = options.destination.history;
        const auto shape = a.cube->shape();
        map_spec.shape = {shape.samples, shape.lines, static_cast<int>(local.size())};
        map_spec.holes = true;
        for (Metric m : local) {
            raster::BandSpec band;
            band.description = compare::metric_name(m);
            if (m == Metric::sad) band.metadata["unit"] = "degree";
            map_spec.bands.push_back(std::move(band));
        }
        raster::RasterSink::check(map_options, map_spec);
    }
    run.report()["device"] =
        "CPU, " + std::to_string(options.threads) + (options.threads == 1 ? " thread" : " threads");

    const bool ranged = f.has_ssim || f.has_sr;
    const int passes = (ranged ? 1 : 0) + (f.has_sr ? 2 : 0) + (local.empty() ? 0 : 1);
    const double share = 1.0 / passes;
    if (options.dry_run) {
        const stream::StackedSource both({a.cube, b.cube});
        compare::Ranges none;
        none.first.resize(static_cast<size_t>(bands));
        none.second.resize(static_cast<size_t>(bands));
        const compare::Thresholds split_none{std::vector<int>(static_cast<size_t>(bands)),
                                             std::vector<int>(static_cast<size_t>(bands))};
        const auto show = [&](const char* name, const stream::Operation& op) {
            const auto plan = stream::plan_pass(both, op, run.pass(name, share));
            const uint64_t bytes = stream::plan_bytes(both, op, plan);
            run.print(std::string("Pass ") + name + ": " + plan.describe() + ", " + format_byte_size(bytes) +
                      " of buffers");
            run.report()["plan"][name] = {{"tiles", plan.size()},
                                          {"tile_samples", plan.max_core_samples()},
                                          {"tile_lines", plan.max_core_lines()},
                                          {"halo", plan.halo()},
                                          {"lanes", plan.lanes()},
                                          {"buffer_bytes", bytes}};
        };
        if (ranged) show("ranges", *compare::make_range_scan(bands));
        if (f.has_sr) {
            show("thresholds", *compare::make_threshold_scan(bands, none));
            show("zones", *compare::make_zone_scan(bands, both.shape().samples, none, split_none));
        }
        if (!local.empty()) show("compare", *compare::make_comparison(bands, local, !s.map.empty(), none));
        return;
    }

    std::unique_ptr<raster::RasterSink> map;
    for (;;) {
        const stream::StackedSource both({a.cube, b.cube});
        f.sr.clear();
        const auto scan = [&](const char* name, stream::Operation& op,
                              const std::vector<stream::CubeSink*>& sinks) {
            run.add_pass(stream::run_pass(both, op, sinks, run.pass(name, share)));
        };
        compare::Ranges ranges;
        if (ranged) {
            const auto op = compare::make_range_scan(bands);
            scan("ranges", *op, {});
            ranges = op->result();
        }
        if (f.has_sr) {
            const auto split_op = compare::make_threshold_scan(bands, ranges);
            scan("thresholds", *split_op, {});
            const auto op = compare::make_zone_scan(bands, both.shape().samples, ranges, split_op->result());
            scan("zones", *op, {});
            f.zones = op->result();
            for (size_t k = 0; k < f.zones.first.size(); ++k)
                f.sr.push_back(static_cast<double>(f.zones.second[k]) /
                               static_cast<double>(f.zones.first[k]));
        }
        // With sr alone this pass still counts the pixels.
        const auto op = compare::make_comparison(bands, local, !s.map.empty(), ranges);
        std::vector<stream::CubeSink*> sinks;
        if (!s.map.empty()) {
            map = raster::RasterSink::create(map_options, map_spec, a.file.get());
            run.reserve_cache(map->cache_bytes());
            sinks.push_back(map.get());
        }
        scan("compare", *op, sinks);
        f.counts = op->counts();
        f.summaries = op->summaries();
        f.ssim = op->ssim();
        if (f.counts.compared > 0) break;
        map.reset();
        if (!leave_out_empty_bands(run, a, b)) break;
        bands = a.cube->shape().bands;
        check_bands();
    }
    if (f.counts.compared == 0)
        throw Error("no pixel is valid in both " + a.file->path() + " (" +
                        std::to_string(f.counts.only_first) + " valid) and " + b.file->path() + " (" +
                        std::to_string(f.counts.only_second) + " valid)",
                    "Check nodata values (-srcnodata) and leave out bad bands (-b).");
    if (map) map->commit();

    const auto result = to_json(f, a, b);
    run.report()["result"] = result;
    if (s.json)
        run.print(result.dump(1));
    else
        print_text(run, f, a, b);
    run.keep_outputs(); // the map is wanted all the more when a limit is exceeded
    apply_limits(s, f);
}

} // namespace

int main(int argc, char** argv) {
    cli::Tool tool(
        "gdal_hsi_compare",
        "Tells how far two scenes of one size are apart: src is the reference. -b, -bbl, -srcwin and "
        "-srcnodata are "
        "about both scenes, -if and -oo about src. Exit code 0: compared and within the thresholds given; 1: "
        "beyond "
        "one of them, or not comparable.",
        "Metrics of a pixel (mean and maximum are shown): nrmse, maxsde, sad (degrees), rmse, maxabs.\n"
        "Metrics of a band: ssim, sr (flat zones of the other scene over those of src).\n\n"
        "Examples:\n"
        "  gdal_hsi_compare cpu.tif gpu.tif\n"
        "  gdal_hsi_compare -metric nrmse,sad -map distance.tif -json before.img after.tif\n"
        "  gdal_hsi_compare -q -mean-nrmse 1e-6 -max-maxsde 5e-6 reference.tif result.tif && echo alike\n"
        "  gdal_hsi_compare -metric ssim,sr -band 1:2,1:3 profile.tif profile.tif\n");
    Settings s;
    auto& app = tool.app();
    tool.add_source();
    app.add_option("other", s.other, "the scene that is compared with src")->required();
    app.add_option(
           "--metric", s.metric_texts,
           "Metrics, comma-separated; may be repeated [nrmse,maxsde,sad,rmse,maxabs; one band: rmse,maxabs]")
        ->type_name("LIST");
    app.add_option("--band", s.pair_texts,
                   "Pairs of bands, of src and of the other scene: 1:4, 1-10:21-30, 1:2,1:3")
        ->type_name("PAIRS");
    app.add_flag("--json", s.json, "Print the result as JSON, and nothing else");
    for (size_t k = 0; k < spectral_metrics.size(); ++k) {
        const std::string name = compare::metric_name(spectral_metrics[k]);
        app.add_option("--max-" + name, s.limits[k].maximum,
                       "Fail when the maximum of " + name + " is greater")
            ->check(CLI::NonNegativeNumber)
            ->type_name("V")
            ->group("Thresholds");
        app.add_option("--mean-" + name, s.limits[k].mean, "Fail when the mean of " + name + " is greater")
            ->check(CLI::NonNegativeNumber)
            ->type_name("V")
            ->group("Thresholds");
    }
    app.add_option("--min-ssim", s.min_ssim, "Fail when ssim of a band is less")
        ->check(CLI::Range(-1.0, 1.0))
        ->type_name("V")
        ->group("Thresholds");
    app.add_option("--max-unmatched", s.max_unmatched,
                   "Fail when more pixels are valid in only one of the two")
        ->check(CLI::NonNegativeNumber)
        ->type_name("N")
        ->group("Thresholds");
    const std::string map_group = "Map";
    app.add_option("--map", s.map,
                   "Write the metrics of every pixel, a band each; ssim is averaged over the bands")
        ->type_name("FILE")
        ->group(map_group);
    auto* format = app.add_option("--of", s.map_format, "Format of the map [from its extension, else GTiff]")
                       ->type_name("FORMAT")
                       ->group(map_group);
    auto* creation = app.add_option("--co", s.map_creation, "Creation option of the map; may be repeated")
                         ->type_name("NAME=VALUE")
                         ->group(map_group);
    auto* overwrite =
        app.add_flag("--overwrite", s.overwrite, "Replace the map when it is there")->group(map_group);
    tool.add_compute(false);
    tool.check([&](const cli::CommonOptions& common) {
        for (const auto& text : s.metric_texts)
            for (const auto& name : split(text, ',')) {
                const Metric m = compare::parse_metric(name);
                if (std::find(s.metrics.begin(), s.metrics.end(), m) == s.metrics.end())
                    s.metrics.push_back(m);
            }
        parse_pairs(s);
        if (!s.pair_texts.empty() && !common.source.bands.empty())
            throw UsageError("-b and -band contradict one another", "Use -band alone.");
        if (s.other.empty()) throw UsageError("the other scene is empty");
        if (s.map.empty() && (format->count() || creation->count() || overwrite->count()))
            throw UsageError("-of, -co and -overwrite are about the map", "Give -map FILE.");
    });
    tool.add_output("-map", s.map);
    tool.add_input("other", s.other);
    return tool.run(argc, argv, [&](cli::Run& run) { compare_scenes(run, s); });
}
