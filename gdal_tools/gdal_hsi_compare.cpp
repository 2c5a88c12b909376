// SPDX-License-Identifier: MIT
// gdal_hsi_compare: compares two scenes of one size. One pass over both scenes computes the spectral metrics
// and ssim. ssim and sr need up to three earlier passes for ranges, thresholds and flat zones.
#include "compare/measurement.h"
#include "core/counted.h"
#include "core/error.h"
#include "gdal_hsi_compare/libraries.h"
#include "gdal_hsi_compare/mosaic.h"
#include "gdal_hsi_compare/two_scenes.h"
#include "shared/many_scenes.h"
#include "tool/definition.h"
#include "tool/words.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace hsi {
namespace compare_tool {
namespace {

using tool::Content;

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts;
    for (size_t begin = 0;;) {
        const size_t end = text.find(at, begin);
        parts.push_back(text.substr(begin, end - begin));
        if (end == std::string::npos) return parts;
        begin = end + 1;
    }
}

/// Returns 1-based band numbers from "3" or "5-8".
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

/// Parses -metric and drops repeated names.
void parse_metrics(Settings& s) {
    for (const auto& text : s.metric_texts)
        for (const auto& name : split(text, ',')) {
            const Metric m = compare::parse_metric(name);
            if (std::find(s.metrics.begin(), s.metrics.end(), m) == s.metrics.end()) s.metrics.push_back(m);
        }
}

void declare_thresholds(tool::Builder& args, Settings& s) {
    const auto limit = [&](const std::string& name, auto& value, const std::string& text) -> tool::Argument& {
        return args.option(name, value, text).defaults_to("").under("Thresholds");
    };
    for (size_t k = 0; k < spectral_metrics.size(); ++k) {
        const std::string name = compare::metric_name(spectral_metrics[k]);
        limit("max-" + name, s.limits[k].maximum,
              "Fail if the maximum of " + name + " over the pixels is greater")
            .from(0);
        limit("mean-" + name, s.limits[k].mean, "Fail if the mean of " + name + " over the pixels is greater")
            .from(0);
    }
    limit("min-ssim", s.min_ssim, "Fail if ssim of a band is smaller").between(-1, 1);
    limit("max-unmatched", s.max_unmatched,
          "Fail if more pixels than this are valid in only one of the two scenes")
        .from(0);
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.input_argument("other", s.other, Content::raster, "The scene that is compared with src");
    args.option("metric", s.metric_texts, "Metrics, separated by commas")
        .shown_as("LIST")
        .defaults_to("nrmse,maxsde,sad,rmse,maxabs; one band: rmse,maxabs");
    args.option("band", s.pair_texts,
                "Pairs of bands, of src and of the other scene: 1:4, 1-10:21-30, 1:2,1:3")
        .shown_as("PAIRS")
        .defaults_to("band by band");
    args.option("other-b", s.other_texts,
                "Bands of the other scene, paired in order with the bands of src (-b then applies to src "
                "alone)")
        .shown_as("LIST")
        .defaults_to("as -b");
    args.exclusive("band", "other-b");
    args.flag("any-wavelengths", s.any_wavelengths,
              "Compare bands in their order even if both scenes have wavelengths or band numbers");
    args.flag("mosaic", s.mosaic,
              "Compare scenes where they overlap on the ground, pair by pair; their sizes may differ");
    tools::add_with_option(args, s.with, "With -mosaic: also compare with this scene");
    args.flag("json", s.json, "Print only the result, as JSON");
    args.output("o", s.text_file, Content::text,
                "Also write the printed result to FILE: text, or with -json JSON");
    declare_thresholds(args, s);
    args.output("map", s.map, Content::raster,
                "Also write the metrics of every pixel to FILE, one band per metric; ssim is averaged over "
                "the bands")
        .under("Map");
    args.option("of", s.map_format, "Format of the map")
        .shown_as("FORMAT")
        .defaults_to("from its extension, else GTiff")
        .speaks(tool::Vocabulary::raster_drivers)
        .under("Map");
    args.option("co", s.map_creation, "Creation option of the map").shown_as("NAME=VALUE").under("Map");
    args.overwrite(s.overwrite,
                   "Replace the map and the file of -o if they exist; otherwise existing files are an error");
    args.add_compute(false);
    args.check([&s](const tool::Call& call) {
        const tool::CommonOptions& common = call.options();
        parse_metrics(s);
        parse_pairs(s);
        check_mosaic(call, s);
        if (!tool::names_wavelengths(s.other_texts))
            tool::parse_band_list(s.other_texts, "-other-b"); // refuses a band that is given twice
        s.other_bands = tool::parse_band_choices(s.other_texts, "-other-b");
        const bool chosen = !common.source.bands.empty() || !common.source.choices.empty();
        if (!s.pair_texts.empty() && (chosen || !common.source.excluded.empty()))
            throw UsageError(std::string(chosen ? "-b" : "-exclude-range") + " cannot be used with -band",
                             "Use only -band.");
        if (s.map.empty() && (call.given("of") || call.given("co")))
            throw UsageError("-of and -co require -map", "Give -map FILE.");
        if (s.map.empty() && s.text_file.empty() && call.given("overwrite"))
            throw UsageError("-overwrite requires -map or -o", "Give -map FILE or -o FILE.");
    });
    args.body([&s](tool::Run& run) {
        if (compare_libraries(run, s)) return;
        s.mosaic ? compare_mosaic(run, s) : compare_scenes(run, s);
    });
}

} // namespace
} // namespace compare_tool

namespace tools {

extern constinit const tool::Definition compare{
    "compare",
    "Comparison of two scenes",
    "Measures how much two scenes of the same size differ; src is the reference. Spectra of two libraries "
    "are matched one to one by their angles. -b, -bbl, -srcwin and "
    "-srcnodata apply to both scenes (-other-b to the other one), -if and -oo to src. Exit code 0: compared "
    "and within the given thresholds; 1: beyond one of them, or not comparable.",
    {{"gdal_hsi_compare cpu.tif gpu.tif", "The five spectral metrics"},
     {"gdal_hsi_compare -mosaic -with line3.img -map agreement.tif line1.img line2.img",
      "How well flight lines agree where they overlap"},
     {"gdal_hsi_compare -metric nrmse,sad -map distance.tif -json before.img after.tif",
      "Where do they differ?"},
     {"gdal_hsi_compare -q -mean-nrmse 1e-6 -max-maxsde 5e-6 reference.tif result.tif && echo alike",
      "A test by the exit code"},
     {"gdal_hsi_compare endmembers.sli minerals.sli", "Pairs of spectra of two libraries"},
     {"gdal_hsi_compare -metric ssim,sr -band 1:2,1:3 profile.tif profile.tif",
      "Diffused copies of a component against the component itself"}},
    "Metrics of a pixel (mean and maximum are shown): nrmse, maxsde, sad (degrees), rmse, "
    "maxabs.\nMetrics of a band: ssim, sr (flat zones of the other scene over those of src).",
    compare_tool::declare};

} // namespace tools
} // namespace hsi
