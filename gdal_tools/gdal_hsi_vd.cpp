// SPDX-License-Identifier: MIT
// gdal_hsi_vd: estimates the virtual dimensionality of a scene in one pass.
#include "core/counted.h"
#include "core/error.h"
#include "shared/scene_statistics.h"
#include "shared/target_search.h"
#include "stream/statistics_scan.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/scene.h"
#include "vd/hysime.h"
#include "vd/vd.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi {
namespace {
namespace vd_tool {

using tool::Content;

struct Settings {
    std::string method = "hfc";
    double false_alarm = 1e-3;
    bool json = false, table = false;
    std::string statistics;
};

/// Returns the facts that the documents of all methods begin with.
Json document_of(const tool::Scene& scene, const Settings& settings, int number,
                 const stream::SceneStatistics& statistics) {
    return {{"source", scene.raster()->path()},        {"method", settings.method},
            {"virtual_dimensionality", number},        {"bands", scene.raster()->bands()},
            {"valid_pixels", statistics.valid_pixels}, {"invalid_pixels", statistics.invalid_pixels}};
}

/// Adds the result to the report and prints it: as JSON, or as the number and, if requested, the table.
void report(tool::Run& run, const Settings& settings, const Json& document,
            const std::vector<std::string>& table) {
    run.report()["result"] = document;
    tools::warn_of_many_signals(run, document["virtual_dimensionality"].get<int>(),
                                static_cast<int>(document["bands"].size()),
                                settings.method == "hysime" ? "try -method nwhfc" : "try -method hysime");
    if (settings.json) return run.print(document.dump(1, ' ', false, Json::error_handler_t::replace));
    run.note("The number is an upper bound, not a count of materials:");
    run.print("Virtual dimensionality: " + document["virtual_dimensionality"].dump());
    if (!settings.table) return;
    for (const auto& line : table)
        run.print(line);
}

void report_hysime(tool::Run& run, const Settings& settings, const tool::Scene& scene,
                   const stream::SceneStatistics& moments) {
    const auto result = vd::hysime(moments);
    const auto bands = static_cast<int64_t>(scene.raster()->bands().size());
    if (!result.resolved)
        run.warn("hysime: bands depend on one another, or their noise is less than 1e-6 of their values: the "
                 "noise_standard_deviation is an upper bound. The number is reliable: it counts directions "
                 "with more than 2e-5 of a band's mean signal power");
    constexpr int64_t enough = 9;
    if (moments.valid_pixels < enough * bands)
        run.warn("hysime has " + counted(moments.valid_pixels, "pixel") + " for " + counted(bands, "band") +
                 ", fewer than " + std::to_string(enough) +
                 " per band: the regression on so many bands mistakes noise for signals, so the number is "
                 "too large. Use a larger scene, fewer bands (-b), or -method hfc");
    auto document = document_of(scene, settings, result.dimension, moments);
    std::vector<std::string> table;
    char line[120];
    std::snprintf(line, sizeof line, "%5s %15s %15s %15s %15s  %s", "no.", "eigenvalue", "power",
                  "noise power", "delta", "signal");
    table.emplace_back(line);
    document["eigenvalues"] = Json::array();
    for (const auto& d : result.directions) {
        document["eigenvalues"].push_back({{"eigenvalue", d.eigenvalue},
                                           {"power", d.power},
                                           {"noise_power", d.noise_power},
                                           {"delta", d.delta},
                                           {"signal", d.signal}});
        std::snprintf(line, sizeof line, "%5zu %15.8g %15.8g %15.8g %15.8g  %s", table.size(), d.eigenvalue,
                      d.power, d.noise_power, d.delta, d.signal ? "yes" : "no");
        table.emplace_back(line);
    }
    document["noise_standard_deviation"] = result.noise;
    report(run, settings, document, table);
}

void report_test(tool::Run& run, const Settings& settings, const tool::Scene& scene,
                 const stream::SceneStatistics& statistics) {
    const auto method = settings.method == "hfc" ? vd::Method::hfc : vd::Method::nwhfc;
    const auto result =
        vd::estimate(statistics, method, settings.false_alarm, vd::double_resolution(statistics.bands));
    tools::warn_of_vain_test(run, settings.method, settings.false_alarm, statistics);
    if (result.doubtful > 0)
        run.warn(std::to_string(result.doubtful) + " of the " + std::to_string(result.number) +
                 " signals are rounding errors of double precision: they have less than 1e-15 of the largest "
                 "eigenvalue per band. Use the other " +
                 std::to_string(result.number - result.doubtful) +
                 ", or -method hysime: the scene may have fewer dimensions than bands");
    Json test = Json::array();
    for (const auto& e : result.test)
        test.push_back({{"correlation", e.correlation},
                        {"covariance", e.covariance},
                        {"difference", e.correlation - e.covariance},
                        {"threshold", e.threshold},
                        {"signal", e.signal}});
    auto document = document_of(scene, settings, result.number, statistics);
    document["false_alarm_probability"] = settings.false_alarm;
    document["doubtful"] = result.doubtful;
    document["eigenvalues"] = test;
    if (!result.noise.empty()) document["noise_standard_deviation"] = result.noise;
    std::vector<std::string> table;
    char line[120];
    std::snprintf(line, sizeof line, "%5s %15s %15s %15s %15s  %s", "no.", "correlation", "covariance",
                  "difference", "threshold", "signal");
    table.emplace_back(line);
    for (const auto& e : result.test) {
        std::snprintf(line, sizeof line, "%5zu %15.8g %15.8g %15.8g %15.8g  %s", table.size(), e.correlation,
                      e.covariance, e.correlation - e.covariance, e.threshold, e.signal ? "yes" : "no");
        table.emplace_back(line);
    }
    report(run, settings, document, table);
}

void run_vd(tool::Run& run, const Settings& settings) {
    if (settings.json) run.only_print();
    auto source = run.open_source();
    std::optional<tools::GivenStatistics> given;
    if (!settings.statistics.empty()) {
        given = tools::read_statistics(run, settings.statistics, source);
        source = given->source;
    }
    tool::Scene scene(run, source, "virtual dimensionality");
    scene.read_once();
    scene.set_fate("and left out");
    run.report()["device"] = tool::describe_devices(run, {}, nullptr);
    const bool hysime = settings.method == "hysime", hfc = settings.method == "hfc";
    const auto scan = [&](stream::Statistics what) {
        return [&scene, what] { return std::make_unique<stream::StatisticsScan>(scene.shape(), what); };
    };
    if (given) tool::end_of_plan(run, [&] { run.print("No pass over the scene: the statistics are given"); });
    // HySime and NWHFC invert the covariance matrix, so products must be in double precision.
    auto statistics = given ? given->moments
                      : hfc ? scene.scan("covariance", 1, scan(stream::Statistics::covariance))
                            : scene.scan("moments", 1, scan(stream::Statistics::moments));
    tool::end_of_plan(run);
    // HFC also needs double precision if an eigenvalue is too small for single precision.
    if (hfc && !given && statistics.valid_pixels > 1 &&
        !vd::estimate(statistics, vd::Method::hfc, settings.false_alarm).resolved)
        statistics = scene.scan("moments", 0, scan(stream::Statistics::moments));
    const auto report = hysime ? report_hysime : report_test;
    report(run, settings, scene, statistics);
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_mask("the statistics");
    args.add_compute(false);
    args.choice<std::string>("method", s.method, "Method",
                             {{"hfc", "hfc", "Harsanyi, Farrand and Chang"},
                              {"nwhfc", "nwhfc", "as hfc, after whitening the noise"},
                              {"hysime", "hysime", "the signal subspace by HySime"}});
    args.option("pf", s.false_alarm, "False-alarm probability of hfc and nwhfc, between 0 and 1")
        .shown_as("P");
    args.flag("table", s.table, "Also print the test of every pair of eigenvalues");
    args.flag("json", s.json, "Print only the result, as JSON");
    tools::add_statistics_option(args, s.statistics);
    args.exclusive("table", "json");
    args.check([&s](const tool::Call& call) {
        if (s.method == "hysime" && call.given("pf"))
            throw UsageError(
                tool::cannot_be_used_with("-pf", "-method hysime, which has no false-alarm probability"),
                "Leave it out, or use -method hfc or nwhfc.");
        if (!(s.false_alarm > 0 && s.false_alarm < 1))
            throw UsageError("-pf: " + std::to_string(s.false_alarm) + " is not a false-alarm probability",
                             "Use a number between 0 and 1, for example 1e-3.");
    });
    args.body([&s](tool::Run& run) { run_vd(run, s); });
}

} // namespace vd_tool
} // namespace

namespace tools {

extern constinit const tool::Definition vd{
    "vd",
    "Virtual dimensionality (HFC, NWHFC, HySime)",
    "Virtual dimensionality: the number of spectrally distinct signals in a scene, by the "
    "Harsanyi-Farrand-Chang test (hfc), its noise-whitened form (nwhfc), or the signal subspace of least "
    "error (hysime).",
    {{"gdal_hsi_vd scene.img", "The virtual dimensionality"},
     {"gdal_hsi_vd -table -method nwhfc -pf 1e-4 scene.img", "Also the test of every pair of eigenvalues"},
     {"gdal_hsi_vd -method hysime scene.img", "Without a false-alarm probability"},
     {"gdal_hsi_vd -json scene.img | python3 -m json.tool", "For programs"}},
    "",
    vd_tool::declare};

} // namespace tools
} // namespace hsi
