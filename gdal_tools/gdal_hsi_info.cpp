// SPDX-License-Identifier: MIT
// gdal_hsi_info: describes a file as the suite reads it, and the memory that each tool needs for the file.
#include "atdca/atdca.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/host_memory.h"
#include "core/text.h"
#include "core/valid_pixel.h"
#include "detect/pixel/pixel.h"
#include "eadp/profile.h"
#include "math/exact_sum.h"
#include "profile/profile.h"
#include "raster/lookup_table.h"
#include "raster/quality_flags.h"
#include "raster/raster_source.h"
#include "raster/regular_file.h"
#include "raster/spectral_library.h"
#include "sahic/mrf_scene.h"
#include "shared/profile_plan.h"
#include "spp/spp.h"
#include "stream/statistics_scan.h"
#include "tool/definition.h"
#include "tool/phrases.h"
#include "tool/scene.h"
#include "tool/words.h"
#include "unmix/unmix.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace info_tool {

struct Settings {
    bool count = false, flags = false, extremes = false, plans = false, json = false, values = false;
};

/// Collects each fact as a line of text for users and as JSON for programs.
class Facts {
  public:
    void add(const std::string& key, const std::string& label, const OrderedJson& value,
             const std::string& text) {
        m_json[key] = value;
        m_text +=
            label + std::string(std::max<size_t>(16, label.size() + 1) - label.size(), ' ') + text + "\n";
    }
    OrderedJson& json() { return m_json; }
    const OrderedJson& json() const { return m_json; }
    const std::string& text() const { return m_text; }

  private:
    OrderedJson m_json = OrderedJson::object();
    std::string m_text;
};

std::string short_number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

/// Returns a coordinate as text, with a resolution of 1 mm (metres) or 0.1 mm (degrees).
std::string position(double value) {
    char text[40];
    std::snprintf(text, sizeof text, std::fabs(value) <= 360 ? "%.8g" : "%.10g", value);
    return text;
}

/// Returns numbers as JSON. NaN and infinity become null, because JSON cannot represent them.
OrderedJson numbers_or_null(const std::vector<double>& values) {
    OrderedJson list = OrderedJson::array();
    for (const double v : values)
        list.push_back(std::isfinite(v) ? OrderedJson(v) : OrderedJson());
    return list;
}

/// Returns the numbers of bands whose wavelength is not greater than the wavelengths of all earlier bands.
/// Such bands occur in files of overlapping spectrometers and in joined files.
std::vector<int> out_of_order(const raster::RasterSource& source) {
    std::vector<int> numbers;
    double most = -INFINITY;
    const auto nm = source.facts().bands.wavelengths_nm;
    for (size_t b = 0; b < nm.size(); ++b) {
        if (nm[b] <= most) numbers.push_back(source.bands()[b]);
        if (nm[b] > most) most = nm[b];
    }
    return numbers;
}

void add_wavelengths(Facts& facts, const raster::RasterSource& source) {
    const auto nm = source.facts().bands.wavelengths_nm;
    double least = INFINITY, most = -INFINITY;
    size_t known = 0;
    for (const double v : nm)
        if (std::isfinite(v)) {
            least = std::min(least, v);
            most = std::max(most, v);
            ++known;
        }
    const auto turned = out_of_order(source);
    const bool falls =
        known > 1 && known == nm.size() && std::is_sorted(nm.begin(), nm.end(), std::greater<>());
    facts.add("wavelengths_nm", "Wavelengths:", numbers_or_null(nm),
              known == 0
                  ? "unknown"
                  : short_number(least) + " to " + short_number(most) + " nm" +
                        (known < nm.size() ? ", of " + counted(known, "band") : "") +
                        (turned.empty() ? ""
                         : falls
                             ? "; descending"
                             : "; not ascending: " + std::string(worded(turned.size(), "band ", "bands ")) +
                                   tool::ranges_text(turned) + "; detectors overlap"));
    facts.json()["wavelengths_out_of_order"] = turned;
    facts.json()["fwhm_nm"] = numbers_or_null(source.facts().bands.fwhm_nm);
}

void add_values(Facts& facts, const raster::RasterSource& source) {
    const auto values = source.facts().bands.values;
    std::string text = source.facts().type;
    if (!values.scale.empty()) {
        const auto [low, high] = std::minmax_element(values.scale.begin(), values.scale.end());
        text += ", times " + short_number(*low) + (*low < *high ? " to " + short_number(*high) : "");
        if (std::any_of(values.offset.begin(), values.offset.end(), [](double v) { return v != 0; }))
            text += ", with offsets";
    }
    if (!values.unit.empty()) text += ", " + values.unit;
    facts.add("type", "Values:", source.facts().type, text);
    facts.json()["scale"] = values.scale;
    facts.json()["offset"] = values.offset;
    facts.json()["unit"] = values.unit;
    const auto nodata = source.facts().bands.nodata;
    const std::string shown = nodata ? short_number(*nodata) : "none";
    facts.add("nodata", "Nodata:",
              !nodata                  ? OrderedJson()
              : std::isfinite(*nodata) ? OrderedJson(*nodata)
                                       : OrderedJson(shown),
              shown);
}

void add_place(Facts& facts, const raster::RasterSource& source) {
    double gt[6];
    const bool placed = source.facts().copy_geotransform(gt);
    const int epsg = source.facts().srs ? source.facts().srs->epsg() : 0;
    const std::string name = source.facts().srs_name();
    std::string text = !source.facts().srs ? "no SRS" : name.empty() || name == "unnamed" ? "an SRS" : name;
    if (epsg > 0) text += " (EPSG:" + std::to_string(epsg) + ")";
    if (placed)
        text += ", pixels of " + short_number(std::hypot(gt[1], gt[4])) + " x " +
                short_number(std::hypot(gt[2], gt[5])) + (gt[2] != 0 || gt[4] != 0 ? ", rotated" : "");
    else
        text += source.located() ? ", a longitude and latitude for every pixel" : ", no geotransform";
    facts.add("geotransform",
              "Georeference:", placed ? OrderedJson(std::vector<double>(gt, gt + 6)) : OrderedJson(), text);
    facts.json()["srs_wkt"] = source.facts().srs_wkt();
    facts.json()["epsg"] = epsg > 0 ? OrderedJson(epsg) : OrderedJson();
    facts.json()["extent"] = OrderedJson();
    if (!placed) return;
    const auto shape = source.shape();
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int corner = 0; corner < 4; ++corner) {
        const auto x = corner & 1 ? static_cast<double>(shape.samples) : 0.0,
                   y = corner & 2 ? static_cast<double>(shape.lines) : 0.0;
        for (int axis = 0; axis < 2; ++axis) {
            const double at = gt[3 * axis] + x * gt[3 * axis + 1] + y * gt[3 * axis + 2];
            low[axis] = std::min(low[axis], at);
            high[axis] = std::max(high[axis], at);
        }
    }
    facts.add("extent", "Extent:", {low[0], low[1], high[0], high[1]},
              position(low[0]) + " to " + position(high[0]) + ", " + position(low[1]) + " to " +
                  position(high[1]) + " (x, y)");
}

/// Adds band numbers. told: true for numbers of a scene's bands; false if they may be rows of a table.
void add_band_numbers(Facts& facts, const std::vector<int>& numbers, bool told) {
    const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
    const std::string range = "from " + std::to_string(*low) + " to " + std::to_string(*high);
    facts.add("source_bands", "Band numbers:", numbers,
              told ? "told by the file: " + range + " in the scene that it was made from"
                   : range + ", which may be those of the table's lines");
}

Facts describe(const raster::RasterSource& source) {
    Facts facts;
    const auto shape = source.shape();
    const auto layout = source.layout();
    facts.add("path", "File:", source.path(), source.path());
    facts.add("driver", "Driver:", source.facts().driver, source.facts().driver);
    const std::string product = source.facts().product;
    facts.add("product", "Product:", product.empty() ? OrderedJson() : OrderedJson(product),
              product.empty() ? "none that is known" : product);
    facts.add("size", "Size:", {shape.samples, shape.lines, shape.bands},
              counted(shape.samples, "sample") + ", " + counted(shape.lines, "line") + ", " +
                  counted(shape.bands, "band") + "; " + format_byte_size(shape.float_bytes()) + " as floats");
    const auto bad = source.facts().bands.marked;
    facts.add("bad_bands", "Bad bands:", bad,
              bad.empty() ? "none marked"
              : source.facts().bands.bad.empty()
                  ? tool::list_text(bad) + " (marked by the bad-band list, and read)"
                  : tool::list_text(bad) + " (left out; -bbl ignore takes them, too)");
    facts.json()["bands"] = source.bands();
    if (source.facts().bands.known_told) add_band_numbers(facts, source.facts().bands.known_as, true);
    facts.json()["band_names"] = source.facts().bands.names;
    add_wavelengths(facts, source);
    add_values(facts, source);
    const std::string blocks = layout.block_samples == 0
                                   ? "lines"
                                   : "blocks of " + std::to_string(layout.block_samples) + " x " +
                                         std::to_string(layout.block_lines);
    const auto access = source.facts().access;
    facts.add("access", "Access:", raster::access_name(access),
              (access == raster::Access::raw      ? "raw, past GDAL's block cache"
               : access == raster::Access::chunks ? "chunks decoded past HDF5's library, in " + blocks
                                                  : "through GDAL, in " + blocks) +
                  (source.held_by_system() ? "; the system holds the file in memory" : ""));
    facts.json()["block"] = {layout.block_samples, layout.block_lines};
    add_place(facts, source);
    return facts;
}

struct PlanLine {
    std::string tool, what;
    int64_t tiles = 0;
    uint64_t bytes = 0;
};

/// Plans the largest CPU pass of each tool, with the tool's defaults and the memory and threads of this call.
std::vector<PlanLine> plans_of(tool::Run& run, const raster::RasterSource& source) {
    const auto shape = source.shape();
    const auto pass = run.pass("plan", 0);
    std::vector<PlanLine> lines;
    const auto add = [&](const char* name, const std::string& what, const std::function<PlanLine()>& plan) {
        PlanLine line;
        try {
            line = plan();
        } catch (const Error& error) {
            line.what = error.what(); // message of the tool: too little memory, or a scene with one band
        }
        line.tool = name;
        if (line.tiles > 0) line.what = what;
        lines.push_back(line);
    };
    const auto of_pass = [&](const stream::Operation& operation) {
        const auto plan = stream::plan_pass(source, operation, pass);
        return PlanLine{"", "", plan.size(), stream::plan_bytes(source, operation, plan)};
    };
    const int components = std::min(7, shape.bands);
    add("spp", "window 5", [&] {
        return of_pass(*spp::make_displacement({}, std::vector<double>(static_cast<size_t>(shape.bands))));
    });
    const auto of_scan = [&](stream::Statistics what) {
        return of_pass(stream::StatisticsScan(shape, what));
    };
    add("pca", "covariance", [&] { return of_scan(stream::Statistics::covariance); });
    add("vd", "covariance", [&] { return of_scan(stream::Statistics::covariance); });
    add("eadp", counted(components, "component") + ", 8 copies", [&] {
        eadp::Options options;
        for (int c = 1; c <= 8; ++c)
            options.times.push_back(65.0 * c);
        const auto backend = eadp::make_cpu_backend();
        eadp::ProfileRun profile;
        profile.sink_takes_bands = true; // true for GeoTIFF, the default format of outputs
        profile.memory = pass.memory;
        profile.pass = [&](const std::string&, double) { return stream::PassOptions(pass); };
        const auto plan = eadp::plan_profile(stream::CubeShape{shape.samples, shape.lines, components},
                                             options, *backend, profile);
        return PlanLine{"", "", plan.plan.size(), plan.bytes};
    });
    add("atdca", "30 targets", [&] {
        atdca::Options options;
        options.targets = std::min(30, shape.bands);
        options.keep_scene = !source.held_by_system();
        const auto plan = atdca::plan_detection(source, options, pass);
        return PlanLine{"", "", plan.tiles.size(),
                        plan.buffer_bytes + plan.pool_bytes + (plan.in_memory ? plan.scene_bytes : 0)};
    });
    add("sahic", "random field of 9 classes", [&] {
        sahic::MrfRequest field;
        field.shape = shape;
        field.classes = 9;
        field.memory = pass.memory;
        field.tile_samples = pass.tile_samples;
        field.tile_lines = pass.tile_lines;
        field.host_bytes = [](const sahic::MrfLimits& limits) { return sahic::mrf_bytes(limits); };
        field.device_bytes = [](const sahic::MrfLimits&) { return uint64_t{0}; };
        const auto plan = sahic::plan_mrf(field);
        return PlanLine{"", "", plan.tiles.size(), plan.host_bytes};
    });
    add("regularize", "random field of 9 classes", [&] { return lines.back(); });
    add("unmix", "4 endmembers", [&] {
        unmix::Endmembers any;
        for (size_t k = 0; k < static_cast<size_t>(std::min(4, shape.bands)); ++k) {
            any.names.emplace_back();
            any.spectra.emplace_back(static_cast<size_t>(shape.bands), 0.0);
            any.spectra.back()[k] = 1;
        }
        return of_pass(*unmix::make_unmixing(any, {}));
    });
    add("detect", "background", [&] { return of_pass(detect::BackgroundScan(shape)); });
    add("mnf", "covariance and noise", [&] { return of_scan(stream::Statistics::differences); });
    add("endmembers", "covariance", [&] { return of_scan(stream::Statistics::moments); });
    add("profile", "area of " + counted(components, "component"), [&] {
        constexpr auto kind = profile::Kind::eap;
        constexpr auto area = profile::Attribute::area;
        const profile::Options options{kind, {{area, profile::default_thresholds(kind, area, 20)}}, false};
        const auto plan =
            tools::plan_profile_planes(run, {shape.samples, shape.lines, components}, options, true);
        return PlanLine{"", "", 1, plan.side_bytes * static_cast<uint64_t>(plan.workers)};
    });
    return lines;
}

void add_plans(tool::Run& run, Facts& facts, const raster::RasterSource& source) {
    auto& json = facts.json()["plans"];
    for (const PlanLine& line : plans_of(run, source)) {
        const std::string text = line.tiles == 0 ? line.what
                                                 : line.what + ": " + counted(line.tiles, "tile") + ", " +
                                                       format_byte_size(line.bytes) + " of buffers";
        facts.add("plan of " + line.tool, line.tool + ":", OrderedJson(), text);
        facts.json().erase("plan of " + line.tool);
        json[line.tool] = {{"what", line.what}, {"tiles", line.tiles}, {"buffer_bytes", line.bytes}};
    }
}

/// Finds mean, minimum and maximum of each band over the valid pixels or, with `each`, over all its values.
class ExtremesScan final : public stream::StatisticsScan {
  public:
    ExtremesScan(const stream::CubeShape& scene, bool each)
        : StatisticsScan(scene, stream::Statistics::means), m_each(each),
          m_low(static_cast<size_t>(scene.bands), INFINITY), m_high(m_low.size(), -INFINITY),
          m_sum(each ? m_low.size() : 0) {}
    bool divides() const override { return false; } // each rank reads the whole scene
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override {
        return std::make_unique<Both>(StatisticsScan::start(lane, limits), m_low.size(), m_each);
    }
    void stop(stream::Worker& worker) override {
        auto& both = static_cast<Both&>(worker);
        StatisticsScan::stop(*both.statistics);
        for (size_t b = 0; b < m_low.size(); ++b) {
            m_low[b] = std::min(m_low[b], both.low[b]);
            m_high[b] = std::max(m_high[b], both.high[b]);
        }
        for (size_t b = 0; b < m_sum.size(); ++b)
            m_sum[b].add(both.sum[b]);
    }
    const std::vector<float>& low() const { return m_low; }
    const std::vector<float>& high() const { return m_high; }
    /// Returns the sum of all values of band b.
    double sum(size_t b) const { return m_sum[b].value(); }

  private:
    struct Both final : stream::Worker {
        Both(std::unique_ptr<stream::Worker> w, size_t bands, bool each)
            : statistics(std::move(w)), low(bands, INFINITY), high(bands, -INFINITY), sum(each ? bands : 0) {}
        void process(const Tile& tile, const CubeView<float>& in,
                     const std::vector<CubeView<float>>& out) override {
            statistics->process(tile, in, out);
            for (int64_t y = 0; y < in.lines; ++y) {
                if (!sum.empty()) {
                    add_values(in, y);
                    continue;
                }
                magnitude.assign(static_cast<size_t>(in.samples), 0.0f);
                for (int b = 0; b < in.bands; ++b)
                    for (size_t x = 0; x < magnitude.size(); ++x)
                        magnitude[x] += std::fabs(in.row(b, y)[x]);
                for (size_t x = 0; x < magnitude.size(); ++x) {
                    if (!is_valid_sum(magnitude[x], in.row(0, y) + x, in.bands, in.band_stride)) continue;
                    for (int b = 0; b < in.bands; ++b) {
                        const auto k = static_cast<size_t>(b);
                        low[k] = std::min(low[k], in.row(b, y)[x]);
                        high[k] = std::max(high[k], in.row(b, y)[x]);
                    }
                }
            }
        }
        void add_values(const CubeView<float>& in, int64_t y) {
            for (int b = 0; b < in.bands; ++b) {
                const auto k = static_cast<size_t>(b);
                for (int64_t x = 0; x < in.samples; ++x) {
                    const float value = in.row(b, y)[x];
                    if (!std::isfinite(value)) continue;
                    low[k] = std::min(low[k], value);
                    high[k] = std::max(high[k], value);
                    sum[k].add(static_cast<double>(value));
                }
            }
        }
        std::unique_ptr<stream::Worker> statistics;
        std::vector<float> low, high, magnitude;
        std::vector<math::ExactSum> sum;
    };
    const bool m_each;
    std::vector<float> m_low, m_high;
    std::vector<math::ExactSum> m_sum;
};

/// The results of one pass over a scene.
struct Counts {
    stream::SceneStatistics statistics;
    std::vector<float> low, high; ///< per band; empty without -extremes
};

/// Makes one pass. `each`: true if mean, minimum and maximum cover all values of a band.
Counts count(tool::Run& run, const std::shared_ptr<raster::RasterSource>& source, const Settings& s,
             double share, bool each) {
    const auto cube = run.masked(source);
    const auto pass = run.pass("statistics", share);
    const int threads = run.options().threads;
    if (!s.extremes) {
        stream::StatisticsScan scan(cube->shape(), stream::Statistics::means);
        run.add_pass(stream::run_pass(*cube, scan, {}, pass));
        return {scan.result(threads), {}, {}};
    }
    ExtremesScan scan(cube->shape(), each);
    run.add_pass(stream::run_pass(*cube, scan, {}, pass));
    Counts counts{scan.result(threads), scan.low(), scan.high()};
    for (size_t b = 0; b < counts.low.size() && each; ++b)
        counts.statistics.mean[b] = scan.sum(b) / static_cast<double>(counts.statistics.finite[b]);
    return counts;
}

/// Returns the requested figures of one band.
std::string band_text(const Counts& counts, size_t b, bool each) {
    const int64_t values = counts.statistics.finite[b];
    std::string text;
    if (!counts.low.empty())
        text = values == 0 ? "no value"
                           : short_number(counts.low[b]) + " to " + short_number(counts.high[b]) + ", mean " +
                                 short_number(counts.statistics.mean[b]);
    if (!each) return text;
    const int64_t pixels = counts.statistics.valid_pixels + counts.statistics.invalid_pixels;
    return text + (text.empty() ? "" : ", ") + std::to_string(values) + " of " + counted(pixels, "value");
}

/// Adds the results of passes over the scene. Omits bands without values. If no pixel has a value in all
/// remaining bands, each band is described by its own values.
void add_counts(tool::Run& run, Facts& facts, const tool::Scene& scene, const Settings& s) {
    const auto all = scene.raster()->bands();
    auto source = scene.raster();
    Counts counts = count(run, source, s, 1, false);
    if (counts.statistics.valid_pixels == 0 &&
        tool::leave_out_bands(run, {tool::banded(source)}, counts.statistics.empty_bands()))
        counts = count(run, source, s, 0, false);
    const bool each = counts.statistics.valid_pixels == 0;
    if (each) {
        run.warn(
            "no pixel is valid in " +
            (source->bands().size() == 1 ? "the band" : "all " + counted(source->bands().size(), "band")) +
            " (each pixel has a value that is nodata, masked or NaN, or is zero in all bands): each band is "
            "described by its own values");
        if (s.extremes) counts = count(run, source, s, 0, true);
    }
    const auto left = source->bands();
    std::vector<int> empty;
    for (const int b : all)
        if (std::find(left.begin(), left.end(), b) == left.end()) empty.push_back(b);
    if (each && counts.statistics.empty_bands().size() == left.size()) empty = left;
    facts.add("empty_bands", "Empty bands:", empty,
              empty.empty() ? "none"
                            : tool::list_text(empty) + " (every tool leaves them out, with a warning)");
    facts.add("valid_pixels", "Valid pixels:", counts.statistics.valid_pixels,
              std::to_string(counts.statistics.valid_pixels) + " of " +
                  std::to_string(source->shape().pixels()));
    facts.json()["counted_bands"] = left;
    facts.json()["values"] = counts.statistics.finite;
    facts.json()["mean"] = numbers_or_null(counts.statistics.mean);
    if (s.extremes) {
        facts.json()["minimum"] = numbers_or_null({counts.low.begin(), counts.low.end()});
        facts.json()["maximum"] = numbers_or_null({counts.high.begin(), counts.high.end()});
    }
    if (!s.extremes && !each) return;
    for (size_t b = 0; b < left.size(); ++b) {
        const std::string key = "extremes of " + std::to_string(b);
        facts.add(key, "Band " + std::to_string(left[b]) + ":", OrderedJson(), band_text(counts, b, each));
        facts.json().erase(key);
    }
}

// Suggested next commands
// ----------------------------------------------------------------------------------------------------------

/// Quotes a text so that a shell reads it as one word.
std::string shell_word(const std::string& text) {
    const char* const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+./,:=@%";
    if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
    std::string quoted = "'";
    for (const char c : text)
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

/// Returns a file name as an argument of a command. A name with a leading dash would be read as an option.
std::string file_word(const std::string& path) {
    return shell_word(!path.empty() && path.front() == '-' ? "./" + path : path);
}

/// Returns a file name that is not yet used in the working folder: scene_pca.tif, scene_pca_2.tif ...
std::string free_name(const std::string& path, const std::string& what, const char* extension) {
    std::string stem = std::filesystem::path(path).stem().string();
    for (char& c : stem)
        if (c == ':' || c == '"' || c == '/') c = '_'; // for names such as NETCDF:"a.nc":cube
    std::string name = stem + "_" + what + extension;
    for (int k = 2; raster::is_there(name); ++k)
        name = stem + "_" + what + "_" + std::to_string(k) + extension;
    return name;
}

/// Returns commands that are useful for the file, ready to be copied.
std::vector<std::string> next_commands(const tool::Run& run, const raster::RasterSource& source,
                                       bool counted) {
    const auto& options = run.options().source;
    std::string words; // the path of src, and the options with which it was opened
    for (const auto& driver : options.drivers)
        words += " -if " + shell_word(driver);
    for (const auto& item : options.open_options)
        words += " -oo " + shell_word(item);
    words += " " + file_word(options.path);
    const auto output = [&](const char* what, const char* extension) {
        return " " + file_word(free_name(options.path, what, extension));
    };
    std::vector<std::string> commands;
    if (!counted) commands.push_back("gdal_hsi_info -count" + words);
    double gt[6];
    if (!source.facts().copy_geotransform(gt) && source.located() && raster::LookupTable::is_in(options.path))
        commands.push_back("gdal_hsi_orthorectify" + words + output("ortho", ".tif"));
    const int bands = source.facts().bands.in_file - static_cast<int>(source.facts().bands.bad.size());
    if (bands < 2) return commands;
    const std::string pca = "gdal_hsi_pca -nc " + std::to_string(std::min(bands, 10));
    commands.insert(commands.end(), {"gdal_hsi_vd" + words, pca + words + output("pca", ".tif")});
    return commands;
}

/// Adds the quality flags; the text has one line per file.
void add_flags(Facts& facts, const raster::RasterSource& source) {
    OrderedJson list = OrderedJson::array();
    std::vector<std::string> lines;
    std::string file;
    for (const auto& flag : raster::quality_flags_of(source)) {
        list.push_back({{"name", flag.name}, {"file", flag.file}});
        if (!flag.also.empty()) list.back()["also"] = flag.also;
        if (lines.empty() || flag.file != file) {
            file = flag.file;
            lines.push_back((flag.file == source.path() ? "" : name_of(file) + ": ") + flag.name);
        } else {
            lines.back() += ", " + flag.name;
        }
        if (!flag.also.empty()) lines.back() += " (or " + flag.also + ")";
    }
    facts.add("flags", "Quality flags:", list,
              lines.empty() ? "none that are known; -mask-flags-from names a file of flags"
                            : joined(lines, "\n                "));
}

void add_next(tool::Run& run, Facts& facts, const raster::RasterSource& source, bool counted) {
    const auto commands = next_commands(run, source, counted);
    if (commands.empty()) return;
    facts.add("next", "Next:", commands, joined(commands, "\n                "));
}

void print_facts(tool::Run& run, const Settings& s, const Facts& facts) {
    run.report()["info"] = facts.json();
    run.print(s.json ? facts.json().dump(2, ' ', false, OrderedJson::error_handler_t::replace)
                     : facts.text());
}

// Spectral libraries
// ----------------------------------------------------------------------------------------------------------

/// Returns the minimum and the maximum; NaN if there are no values.
std::pair<double, double> extremes_of(const std::vector<std::vector<double>>& spectra) {
    double low = INFINITY, high = -INFINITY;
    for (const auto& spectrum : spectra)
        for (const double v : spectrum)
            if (!std::isnan(v)) {
                low = std::min(low, v);
                high = std::max(high, v);
            }
    return low <= high ? std::pair(low, high) : std::pair<double, double>(NAN, NAN);
}

std::string range_text(const std::pair<double, double>& range) {
    return std::isnan(range.first) ? "no value"
                                   : short_number(range.first) + " to " + short_number(range.second);
}

/// Indents all lines of a text except the first.
std::string indented(std::string text) {
    for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1))
        text.insert(at + 1, 16, ' ');
    return text;
}

/// Adds the number of missing values in the spectra, the number of bands where all spectra have values, and
/// the bands where no spectrum has a value.
void add_counts(Facts& facts, const raster::SpectralLibrary& library) {
    int64_t missing = 0;
    std::vector<int> empty;
    size_t whole = 0;
    for (size_t b = 0; b < library.bands(); ++b) {
        const auto lacks = std::count_if(library.spectra.begin(), library.spectra.end(),
                                         [&](const auto& spectrum) { return std::isnan(spectrum[b]); });
        missing += lacks;
        whole += lacks == 0;
        if (lacks == static_cast<int64_t>(library.spectra.size())) empty.push_back(static_cast<int>(b) + 1);
    }
    facts.add("missing_values", "Missing values:", missing,
              std::to_string(missing) + " of " + std::to_string(library.spectra.size() * library.bands()));
    facts.add("complete_bands", "Complete bands:", whole,
              std::to_string(whole) + " of " + std::to_string(library.bands()));
    facts.add("empty_bands", "Empty bands:", empty, empty.empty() ? "none" : tool::list_text(empty));
}

/// Describes a library. not_a_scene: reason why the file is not a scene; empty if it need not be stated.
Facts describe(const std::string& path, const raster::SpectralLibrary& library, const Settings& s,
               const std::string& not_a_scene) {
    Facts facts;
    facts.add("path", "File:", path, path);
    facts.add("kind", "Kind:", "spectral library",
              std::string("spectral library") + (not_a_scene.empty() ? ", no raster" : ""));
    if (!not_a_scene.empty()) facts.add("not_a_scene", "As a scene:", not_a_scene, indented(not_a_scene));
    facts.add("bands", "Bands:", library.bands(), std::to_string(library.bands()));
    if (!library.band_numbers.empty()) add_band_numbers(facts, library.band_numbers, library.numbers_told);
    const auto nm = extremes_of({library.wavelengths_nm});
    facts.add("wavelengths_nm", "Wavelengths:", numbers_or_null(library.wavelengths_nm),
              std::isnan(nm.first) ? "unknown" : range_text(nm) + " nm");
    facts.json()["fwhm_nm"] = numbers_or_null(library.fwhm_nm);
    const auto values = extremes_of(library.spectra);
    facts.add("extremes", "Values:", numbers_or_null({values.first, values.second}), range_text(values));
    if (s.count || s.extremes) add_counts(facts, library);
    OrderedJson spectra = OrderedJson::array();
    std::vector<std::string> lines;
    for (size_t k = 0; k < library.spectra.size(); ++k) {
        const auto range = extremes_of({library.spectra[k]});
        const auto numbers = numbers_or_null({range.first, range.second});
        spectra.push_back({{"name", library.names[k]}, {"minimum", numbers[0]}, {"maximum", numbers[1]}});
        if (s.values) spectra.back()["values"] = numbers_or_null(library.spectra[k]);
        lines.push_back("#" + std::to_string(k + 1) + " " + library.names[k] + ": " + range_text(range));
    }
    const size_t count = lines.size(), most = s.extremes ? count : 20;
    if (count > most) {
        lines.resize(most);
        lines.push_back(".. and " + std::to_string(count - most) + " more (-extremes lists all)");
    }
    facts.add("spectra", "Spectra:", spectra,
              std::to_string(count) + "\n                " + joined(lines, "\n                "));
    return facts;
}

/// Returns the first option of the call that applies only to rasters; empty if there is none.
std::string option_of_rasters(const raster::OpenOptions& o, const Settings& s) {
    const std::pair<const char*, bool> options[] = {{"-b", !o.bands.empty() || !o.choices.empty()},
                                                    {"-exclude-range", !o.excluded.empty()},
                                                    {"-bbl", !o.use_bbl || !o.bad_bands.empty()},
                                                    {"-srcwin", o.window.has_value()},
                                                    {"-srcnodata", o.nodata.has_value()},
                                                    {"-if", !o.drivers.empty()},
                                                    {"-oo", !o.open_options.empty()},
                                                    {"-flags", s.flags},
                                                    {"-plan", s.plans}};
    for (const auto& [name, given] : options)
        if (given) return name;
    return {};
}

std::string with_advice(const Error& error) {
    return error.what() + (error.advice().empty() ? std::string() : "\n" + error.advice());
}

/// Returns a note for a file that is neither a scene nor clearly a library: that it may be a library without
/// wavelengths, or the reason why it cannot be read as a library.
std::string as_library(const std::string& path, const Error& as_scene) {
    try {
        const auto library = raster::read_spectral_library(path);
        return "Read as a spectral library, it has " +
               counted(library.spectra.size(), "spectrum", "spectra") + " of " +
               counted(library.bands(), "band") + " without wavelengths.";
    } catch (const Error& error) {
        return error.what() == std::string(as_scene.what())
                   ? std::string()
                   : "It also cannot be read as a spectral library: " + with_advice(error);
    }
}

/// Lists src as a spectral library, if it is clearly a library. \throws Error with the reasons why src is
/// neither a scene nor a library, and UsageError for options that apply only to rasters.
void list_library(tool::Run& run, const Settings& s, const Error& as_scene) {
    const auto& source = run.options().source;
    const auto library = raster::plain_library(source.path);
    if (!library) {
        const std::string reason =
            raster::may_be_library(source.path) ? as_library(source.path, as_scene) : std::string();
        if (reason.empty()) throw as_scene;
        throw Error(as_scene.what(), (as_scene.advice().empty() ? "" : as_scene.advice() + "\n") + reason);
    }
    // A MATLAB file may hold a scene in addition to the library.
    const bool several = raster::may_lead_to_matlab(source.path);
    if (const std::string option = option_of_rasters(source, s); !option.empty())
        throw UsageError(
            tool::cannot_be_used_with(option, std::string("the spectral library '") + source.path + "'"),
            several ? with_advice(as_scene)
                    : "Leave it out: gdal_hsi_info lists all bands and spectra of a library.");
    for (const auto& note : library->notes)
        run.warn(note);
    if (const auto infinite = raster::infinite_spectra(*library); !infinite.empty()) {
        const std::string which = infinite.size() == library->spectra.size()
                                      ? "all spectra have"
                                      : "the spectrum '" + library->names[infinite.front()] + "' has";
        const std::string what = "'" + source.path + "': " + which + " infinite values";
        if (infinite.size() == library->spectra.size())
            throw Error(what, "Correct the file: the tools do not accept infinite values.");
        run.warn(what + ": the tools do not accept " +
                 counted(infinite.size(), "such spectrum", "such spectra") +
                 "; choose other spectra with -spectrum");
    }
    print_facts(run, s, describe(source.path, *library, s, several ? with_advice(as_scene) : std::string()));
}

void run_info(tool::Run& run, const Settings& s) {
    if (s.json) run.only_print();
    std::optional<tool::Scene> opened;
    try {
        opened.emplace(run, "");
    } catch (const UsageError&) {
        throw;
    } catch (const Cancelled&) {
        throw;
    } catch (const Error& error) {
        return list_library(run, s, error);
    }
    tool::Scene& scene = *opened;
    Facts facts = describe(*scene.raster());
    const bool counted = s.count || s.extremes;
    const auto print = [&](bool with_counts) {
        if (s.flags) add_flags(facts, *scene.raster());
        if (s.plans) add_plans(run, facts, *scene.raster());
        add_next(run, facts, *scene.raster(), with_counts);
        print_facts(run, s, facts);
    };
    if (counted) {
        tool::end_of_plan(run, [&] { print(false); });
        add_counts(run, facts, scene, s);
    }
    print(counted);
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.flag("count", s.count, "Read the scene, count the valid pixels and list the bands without a value");
    args.flag("extremes", s.extremes, "As -count, and print minimum, maximum and mean of every band");
    args.flag("flags", s.flags,
              "List the flags of the quality layers that come with the scene, for -mask-flags");
    args.flag("plan", s.plans,
              "Print the tiles and the memory of each tool for this scene, with default options");
    args.flag("json", s.json, "Print only the result, as JSON");
    args.flag("values", s.values, "Add the values of a library's spectra (with -json)");
    args.add_compute(false);
    args.check([&s](const tool::Call&) {
        if (s.values && !s.json) throw UsageError("-values requires -json", "Add -json.");
    });
    args.body([&s](tool::Run& run) { run_info(run, s); });
}

} // namespace info_tool
} // namespace

namespace tools {

extern constinit const tool::Definition info{
    "info",
    "Contents of a scene or library",
    "Lists what the tools read from a file: bands, bad bands, wavelengths, scale, nodata, "
    "georeference, how the file is read, and commands that may come next; on request also the"
    " number of valid pixels, bands without a value, the extremes of every band, and the "
    "tiles and the memory of each tool. It also lists spectral libraries.",
    {{"gdal_hsi_info scene.img", "What is in a file"},
     {"gdal_hsi_info -extremes scene.img", "Empty bands, and the values of the other bands"},
     {"gdal_hsi_info -count -plan -memory 512MB flightline.dat",
      "Also the plans of all tools with limited memory"},
     {"gdal_hsi_info endmembers.sli", "Which spectra are in a library"},
     {"gdal_hsi_info -json scene.img | python3 -m json.tool", "For another program"}},
    "",
    info_tool::declare,
    true,
    false};

} // namespace tools
} // namespace hsi
