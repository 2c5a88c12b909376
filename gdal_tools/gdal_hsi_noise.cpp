// SPDX-License-Identifier: MIT
// gdal_hsi_noise: estimates the noise and signal-to-noise ratio of each band, detects stripes, and proposes
// bad bands. The first pass computes the statistics; the second pass computes values of columns and blocks.
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "gdal_hsi_noise/plot.h"
#include "noise/noise.h"
#include "raster/bad_band_list.h"
#include "shared/column_tiles.h"
#include "shared/spectral_bands.h"
#include "smooth/smooth.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/scene.h"
#include "tool/words.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace noise_tool {
namespace {

enum class Method { regression, residual, ssdc, lsd, difference, area };

struct Settings {
    Method method = Method::regression;
    int block = 8;
    std::optional<double> max_gap;
    double min_snr = 10, max_noise_share = 0.5;
    std::string csv, bad_bands, plot, columns;
    std::vector<std::string> smile_texts;
    std::vector<raster::BandChoice> smile; ///< parsed from smile_texts
    bool json = false, overwrite = false;
};

noise::BlockMethod block_method(Method method) {
    if (method == Method::residual) return noise::BlockMethod::residual;
    if (method == Method::ssdc) return noise::BlockMethod::ssdc;
    return method == Method::lsd ? noise::BlockMethod::deviations : noise::BlockMethod::none;
}
bool has_blocks(Method method) { return block_method(method) != noise::BlockMethod::none; }

/// Returns the neighbours of each band in its segment. Without wavelengths, all bands are in one segment.
std::vector<noise::Neighbours> neighbours_of(const raster::RasterSource& scene, const Settings& s) {
    const auto bands = static_cast<size_t>(scene.shape().bands);
    const auto nm = scene.facts().bands.wavelengths_nm;
    const auto segments = nm.empty() ? std::vector<smooth::Segment>{{0, bands}}
                                     : smooth::segments_of(nm, s.max_gap.value_or(0));
    std::vector<noise::Neighbours> all(bands);
    for (const auto& one : segments)
        for (size_t b = one.begin; b < one.end && one.size() > 2; ++b) {
            const size_t middle = std::clamp(b, one.begin + 1, one.end - 2);
            const size_t first = b == one.begin ? b + 1 : middle - 1,
                         last = b + 1 == one.end ? b - 1 : middle + 1;
            all[b] = {static_cast<int>(first), static_cast<int>(last)};
        }
    return all;
}

/// A row of the table.
struct Row {
    int band = 0;
    double wavelength = 0, mean = 0, deviation = 0, noise = 0, residual = 0, snr = 0, stripe = 0,
           stripe_columns = 0;
    std::string reason; ///< why the band is proposed as bad; empty for a good band
};

std::string reason_of(const Settings& s, const Row& row, bool constant) {
    if (constant) return "constant";
    if (!(row.snr >= s.min_snr)) return "snr";
    const bool noisy = row.noise * row.noise > s.max_noise_share * row.deviation * row.deviation;
    return s.method != Method::area && noisy ? "noise" : "";
}

constexpr std::pair<const char*, double Row::*> numbers[] = {
    {"wavelength", &Row::wavelength}, {"mean", &Row::mean},
    {"deviation", &Row::deviation},   {"noise", &Row::noise},
    {"residual", &Row::residual},     {"snr", &Row::snr},
    {"stripe", &Row::stripe},         {"stripe_columns", &Row::stripe_columns}};

std::string csv_of(const std::vector<Row>& rows) {
    std::string text = "band";
    for (const auto& [name, member] : numbers)
        text += std::string(",") + name;
    text += ",good,reason\n";
    for (const Row& row : rows) {
        text += std::to_string(row.band);
        for (const auto& [name, member] : numbers)
            text += "," + tools::number_cell(row.*member);
        text += (row.reason.empty() ? ",1," : ",0,") + row.reason + "\n";
    }
    return text;
}

/// Returns one list per column, under the column's name.
OrderedJson json_of(const std::vector<Row>& rows) {
    OrderedJson document;
    const auto list = [&](const char* name, const auto& value) {
        auto& to = document[name] = OrderedJson::array();
        for (const Row& row : rows)
            to.push_back(value(row));
    };
    list("band", [](const Row& row) { return OrderedJson(row.band); });
    for (const auto& one : numbers) {
        const auto member = one.second;
        list(one.first, [member](const Row& row) {
            return std::isfinite(row.*member) ? OrderedJson(row.*member) : OrderedJson();
        });
    }
    list("good", [](const Row& row) { return OrderedJson(row.reason.empty()); });
    list("reason", [](const Row& row) { return OrderedJson(row.reason); });
    return document;
}

/// Returns a table of the file's bands. The reason of a bad band is a result of this run, "bbl" (marked in
/// the file) or "empty" (no value).
std::string bad_bands_of(const raster::RasterSource& opened, const std::vector<Row>& rows) {
    std::vector<std::pair<int, std::string>> lines;
    for (const Row& row : rows)
        lines.emplace_back(row.band, tools::number_cell(row.wavelength) +
                                         (row.reason.empty() ? ",1," : ",0,") + row.reason);
    const auto& facts = opened.facts().bands;
    for (const int band : facts.bad)
        lines.emplace_back(band, ",0,bbl");
    for (size_t b = 0; b < facts.numbers.size(); ++b)
        if (std::none_of(rows.begin(), rows.end(),
                         [&](const Row& row) { return row.band == facts.numbers[b]; }))
            lines.emplace_back(
                facts.numbers[b],
                (facts.wavelengths_nm.empty() ? "" : tools::number_cell(facts.wavelengths_nm[b])) +
                    ",0,empty");
    std::sort(lines.begin(), lines.end());
    std::string text = "band,wavelength,good,reason\n";
    for (const auto& [band, rest] : lines)
        text += std::to_string(band) + "," + rest + "\n";
    return text;
}

/// Returns which bands of the file are good. Bands that the user excluded keep the mark of the file. Other
/// bands without a result are bad.
std::vector<char> good_bands(const raster::RasterSource& opened, const std::vector<Row>& rows) {
    const auto& facts = opened.facts().bands;
    std::vector<char> good(static_cast<size_t>(facts.in_file), 1);
    const auto mark = [&](int band, bool is_good) { good[static_cast<size_t>(band) - 1] = is_good; };
    for (const int band : facts.marked)
        mark(band, false);
    for (const int band : facts.numbers)
        mark(band, false);
    for (const Row& row : rows)
        mark(row.band, row.reason.empty());
    return good;
}

void print_table(tool::Run& run, const std::vector<Row>& rows) {
    char line[160];
    std::snprintf(line, sizeof line, "%5s %10s %12s %12s %12s %12s %9s %11s %9s  %s", "band", "nm", "mean",
                  "deviation", "noise", "residual", "snr", "stripe", "columns", "bad");
    run.print(line);
    for (const Row& row : rows) {
        std::snprintf(line, sizeof line, "%5d %10.6g %12.6g %12.6g %12.4g %12.4g %9.4g %11.4g %9.3f  %s",
                      row.band, row.wavelength, row.mean, row.deviation, row.noise, row.residual, row.snr,
                      row.stripe, row.stripe_columns, row.reason.c_str());
        run.print(line);
    }
}

/// Warns if the residual of the regression is much larger than the noise. Noise that is common to several
/// bands may then be missing in the result.
void warn_of_lower_bound(tool::Run& run, const std::vector<Row>& rows) {
    constexpr double much = 1.5;
    std::vector<double> ratios;
    for (const Row& row : rows)
        if (row.noise > 0) ratios.push_back(row.residual / row.noise);
    const double ratio = noise::median(ratios);
    if (ratio > much)
        run.warn("the residual is " + tools::short_number(std::round(10 * ratio) / 10) +
                 " times the noise, in the median of the bands: the noise estimate is a lower bound");
}

noise::Noise noise_of(const Settings& s, const stream::SceneStatistics& found, const noise::NoiseScan& scan,
                      const std::vector<double>& deviation, std::vector<double>& signal) {
    if (s.method == Method::regression) return noise::by_regression(found);
    if (s.method == Method::difference) return noise::by_differences(found);
    if (s.method == Method::area) return {deviation, deviation};
    auto blocks = scan.blocks();
    if (s.method == Method::lsd) signal = blocks.signal;
    return blocks;
}

std::vector<Row> rows_of(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                         const stream::SceneStatistics& found, const noise::NoiseScan& scan) {
    const auto bands = static_cast<size_t>(scene.shape().bands);
    const auto pixels = static_cast<double>(found.valid_pixels);
    std::vector<double> deviation, signal = found.mean;
    for (size_t b = 0; b < bands; ++b)
        deviation.push_back(std::sqrt(found.covariance[b * (bands + 1)] * pixels / (pixels - 1)));
    const auto noise = noise_of(s, found, scan, deviation, signal);
    if (noise.regularised)
        run.warn("some bands are linear combinations of others: the least eigenvalue of their correlation is "
                 "under 1e-10, so 1e-10 was added to the diagonal");
    const auto stripes = scan.stripes();
    const auto nm = scene.facts().bands.wavelengths_nm;
    std::vector<Row> rows;
    for (size_t b = 0; b < bands; ++b) {
        Row row{scene.bands()[b],
                nm.empty() ? std::numeric_limits<double>::quiet_NaN() : nm[b],
                found.mean[b],
                deviation[b],
                noise.noise[b],
                noise.residual[b],
                signal[b] / noise.noise[b],
                stripes.stripe[b],
                stripes.share[b],
                ""};
        const bool constant = std::find(found.constant.begin(), found.constant.end(), static_cast<int>(b)) !=
                              found.constant.end();
        row.reason = reason_of(s, row, constant);
        rows.push_back(std::move(row));
    }
    return rows;
}

// Smile
// ----------------------------------------------------------------------------------------------------------

/// The bands of a wavelength range.
struct SmileRange {
    std::string text;
    std::vector<size_t> bands;
    std::vector<double> nm;
    noise::Smile found = {};
};

std::vector<SmileRange> smile_ranges(tool::Run& run, const Settings& s, const raster::RasterSource& scene) {
    std::vector<SmileRange> ranges;
    const auto nm = scene.facts().bands.wavelengths_nm;
    for (const auto& choice : s.smile) {
        if (nm.empty())
            throw Error("-smile " + choice.text + ": " + scene.path() + " has no wavelengths",
                        "Add them to its ENVI header.");
        std::vector<std::pair<double, size_t>> in_range;
        for (size_t b = 0; b < nm.size(); ++b)
            if (nm[b] >= choice.from_nm && nm[b] <= choice.to_nm) in_range.emplace_back(nm[b], b);
        std::sort(in_range.begin(), in_range.end());
        SmileRange range{choice.text, {}, {}};
        for (const auto& [wavelength, b] : in_range) {
            if (!range.nm.empty() && wavelength - range.nm.back() <= 1e-6)
                continue; // of bands with equal wavelengths, only the first is used
            range.nm.push_back(wavelength);
            range.bands.push_back(b);
        }
        constexpr size_t least = 5;
        if (range.bands.size() < least)
            throw Error("-smile " + choice.text + ": " + scene.path() + " has " +
                            counted(range.bands.size(), "good band") + " there, but at least 5 are needed",
                        "Use a wider range.");
        ranges.push_back(std::move(range));
    }
    if (!ranges.empty()) tools::warn_of_map_columns(run, "-smile", scene);
    return ranges;
}

std::vector<int> bands_of(const std::vector<SmileRange>& ranges) {
    std::vector<int> bands;
    for (const auto& range : ranges)
        for (const size_t b : range.bands)
            bands.push_back(static_cast<int>(b));
    return bands;
}

void measure_smile(std::vector<SmileRange>& ranges, const noise::ColumnMeans& columns) {
    const size_t width = columns.pixels.size();
    auto at = columns.mean.begin();
    for (auto& range : ranges) {
        const auto end = at + static_cast<ptrdiff_t>(range.bands.size() * width);
        range.found = noise::smile_of(range.nm, {at, end});
        at = end;
    }
}

std::string columns_csv(const std::vector<SmileRange>& ranges, int64_t first) {
    std::string text = "column";
    for (const auto& range : ranges)
        text += "," + range.text + " shift_nm," + range.text + " depth";
    text += "\n";
    for (size_t j = 0; j < ranges.front().found.depth.size(); ++j) {
        text += std::to_string(first + static_cast<int64_t>(j));
        for (const auto& range : ranges)
            text += "," + tools::number_cell(range.found.shift_nm[j]) + "," +
                    tools::number_cell(range.found.depth[j]);
        text += "\n";
    }
    return text;
}

OrderedJson json_of(const std::vector<SmileRange>& ranges) {
    OrderedJson list = OrderedJson::array();
    for (const auto& range : ranges)
        list.push_back({{"range", range.text},
                        {"bands", range.bands.size()},
                        {"smile_nm", range.found.smile_nm},
                        {"rms_nm", range.found.rms_nm}});
    return list;
}

void print_smile(tool::Run& run, const std::vector<SmileRange>& ranges) {
    for (const auto& range : ranges)
        run.print("smile in " + range.text + " (" + counted(range.bands.size(), "band") +
                  "): " + tools::short_number(range.found.smile_nm) + " nm peak to peak, " +
                  tools::short_number(range.found.rms_nm) + " nm rms about the parabola");
}

// The run
// ----------------------------------------------------------------------------------------------------------

/// Returns the signal-to-noise ratio over wavelength, or over band number.
Curve curve_of(const Settings& s, const std::vector<Row>& rows) {
    const bool known =
        std::all_of(rows.begin(), rows.end(), [](const Row& row) { return std::isfinite(row.wavelength); });
    std::vector<const Row*> sorted;
    for (const Row& row : rows)
        sorted.push_back(&row);
    const auto x = [known](const Row& row) { return known ? row.wavelength : row.band; };
    std::stable_sort(sorted.begin(), sorted.end(), [&](const Row* a, const Row* b) { return x(*a) < x(*b); });
    Curve curve{known ? "wavelength (nm)" : "band",
                "signal-to-noise ratio; grey: proposed as bad",
                {},
                {},
                {},
                s.min_snr};
    for (const Row* row : sorted) {
        curve.x.push_back(x(*row));
        curve.y.push_back(row->snr);
        curve.shaded.push_back(!row->reason.empty());
    }
    return curve;
}

/// The outputs of the run, checked before anything is computed.
class Outputs {
  public:
    Outputs(tool::Run& run, const Settings& s, const raster::RasterSource& source)
        : m_run(run), m_settings(s), m_csv(run.text_output("-csv", s.csv, s.overwrite)),
          m_columns(run.text_output("-columns", s.columns, s.overwrite)),
          m_header(raster::names_envi_header(s.bad_bands)),
          m_bad(run.text_output("-bad-bands", s.bad_bands, s.overwrite || m_header)),
          m_plot(run, "plot", s.plot, s.overwrite) {
        raster::check_text_output(m_csv);
        raster::check_text_output(m_columns);
        if (m_header)
            raster::check_bad_band_list(m_bad, source.facts().bands.in_file);
        else
            raster::check_text_output(m_bad);
        m_plot.check(frame);
    }

    void write(const raster::RasterSource& opened, const std::vector<Row>& rows,
               const std::vector<SmileRange>& ranges) {
        raster::write_text_output(m_csv, csv_of(rows));
        if (!ranges.empty()) {
            const auto& window = m_run.options().source.window;
            raster::write_text_output(m_columns, columns_csv(ranges, window ? window->x : 0));
        }
        if (m_header)
            raster::set_bad_band_list(m_bad, good_bands(opened, rows));
        else
            raster::write_text_output(m_bad, bad_bands_of(opened, rows));
        if (m_plot.wanted()) m_plot.write(m_run, plot_of(curve_of(m_settings, rows)));
    }

  private:
    tool::Run& m_run;
    const Settings& m_settings;
    const raster::TextOutput m_csv, m_columns;
    const bool m_header; ///< true if the file of -bad-bands is the ENVI header of a scene
    const raster::TextOutput m_bad;
    const tools::PlotOutput m_plot;
};

void run_noise(tool::Run& run, const Settings& s) {
    if (s.json) run.only_print();
    const auto source = run.open_source();
    Outputs outputs(run, s, *source);
    tool::Scene scene(run, source, "");
    scene.set_fate("and left out");
    run.report()["device"] = tool::describe_devices(run, {}, nullptr);
    const auto what = s.method == Method::regression   ? stream::Statistics::moments
                      : s.method == Method::difference ? stream::Statistics::differences
                                                       : stream::Statistics::covariance;
    const auto found = scene.scan(
        "statistics", 0.6, [&] { return std::make_unique<stream::StatisticsScan>(scene.shape(), what); });
    if (found.valid_pixels < 2)
        throw Error(source->path() + " has only 1 valid pixel, so the noise is unknown", "Use more pixels.");
    auto smile = smile_ranges(run, s, *scene.raster());
    const auto scan = noise::make_scan(scene.shape(), block_method(s.method), s.block,
                                       neighbours_of(*scene.raster(), s), bands_of(smile));
    const auto cube = scene.counted();
    if (!tool::run_pass(run, *cube, *scan, {}, run.pass("columns and blocks", 0.4))) tool::end_of_plan(run);
    const auto rows = rows_of(run, s, *scene.raster(), found, *scan);
    warn_of_lower_bound(run, rows);
    measure_smile(smile, scan->column_means());
    auto document = json_of(rows);
    document["smile"] = json_of(smile);
    run.report()["result"] = Json::parse(document.dump());
    outputs.write(*source, rows, smile);
    if (s.json) return run.print(document.dump(1));
    print_table(run, rows);
    print_smile(run, smile);
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_mask("the noise");
    args.add_compute(false);
    args.choice(
        "method", s.method, "How noise is separated from signal",
        {{"regression", Method::regression, "regression of each band on all others"},
         {"residual", Method::residual, "in blocks of pixels, regression on the two neighbouring bands"},
         {"ssdc", Method::ssdc, "as residual, and on the pixel above"},
         {"lsd", Method::lsd, "most frequent standard deviation of blocks"},
         {"difference", Method::difference, "differences of neighbouring pixels"},
         {"area", Method::area, "standard deviation in the mask, which must be one material"}});
    args.option("block", s.block, "Size of the blocks of residual, ssdc and lsd, in pixels").between(4, 64);
    args.option("max-gap", s.max_gap, "Maximum step between neighbouring bands of residual and ssdc")
        .above(0)
        .in_unit("nm")
        .defaults_to("2.5 median steps");
    args.option("min-snr", s.min_snr, "Propose bands with a smaller signal-to-noise ratio as bad").from(0);
    args.option("max-noise-share", s.max_noise_share,
                "Propose bands with a larger noise share of the variance as bad")
        .above(0);
    args.output("csv", s.csv, tool::Content::text, "Also write the table to FILE");
    args.output("bad-bands", s.bad_bands, tool::Content::text,
                "Also write the list of good and bad bands: FILE.csv with reasons, or the existing ENVI "
                "header FILE.hdr");
    args.output("plot", s.plot, tool::Content::text,
                "Also plot the signal-to-noise ratio over the wavelengths, to FILE.svg or FILE.png");
    args.option("smile", s.smile_texts,
                "Measure the shift of an absorption from column to column: 740-785nm (oxygen, radiance in"
                " sensor geometry)")
        .shown_as("RANGE");
    args.output("columns", s.columns, tool::Content::text,
                "Also write shift and depth of -smile for every column to FILE.csv");
    args.flag("json", s.json, "Print only the result, as JSON");
    args.overwrite(s.overwrite, "Replace existing files");
    args.check([&s](const tool::Call& call) {
        tools::PlotOutput::check_name("plot", s.plot);
        if (call.given("block") && !has_blocks(s.method))
            throw UsageError("-block requires -method residual, ssdc or lsd");
        if (call.given("max-gap") && (!has_blocks(s.method) || s.method == Method::lsd))
            throw UsageError("-max-gap requires -method residual or ssdc");
        s.smile = tool::parse_ranges(s.smile_texts, "-smile");
        if (!s.columns.empty() && s.smile.empty()) throw UsageError("-columns requires -smile");
        if (call.given("max-noise-share") && s.method == Method::area)
            throw UsageError(tool::cannot_be_used_with("-max-noise-share", "-method area"));
        if (s.method == Method::area && !call.options().mask.given())
            throw UsageError("-method area requires -mask or -mask-exclude",
                             "Mark an evenly lit area of one material.");
    });
    args.body([&s](tool::Run& run) { run_noise(run, s); });
}

} // namespace
} // namespace noise_tool

namespace tools {

extern constinit const tool::Definition noise{
    "noise",
    "Noise, signal-to-noise ratio and bad bands",
    "Noise: estimates the noise and the signal-to-noise ratio of every band of a scene, finds stripes along "
    "columns, and proposes bad bands.",
    {{"gdal_hsi_noise scene.img", "A table of all bands"},
     {"gdal_hsi_noise -csv noise.csv -bad-bands bad.csv scene.img", "Tables as files"},
     {"gdal_hsi_noise -bad-bands scene.hdr -plot snr.svg scene.img", "Marked in the header, and a plot"},
     {"gdal_hsi_noise -smile 740-785nm -columns smile.csv scene.img",
      "The shift of the oxygen absorption over the columns"},
     {"gdal_hsi_noise -method residual -json scene.img", "In blocks of pixels, for programs"},
     {"gdal_hsi_noise -method area -mask lake.gpkg scene.img", "In an area of one material"}},
    "",
    noise_tool::declare};

} // namespace tools
} // namespace hsi
