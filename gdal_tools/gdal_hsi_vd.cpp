// SPDX-License-Identifier: MIT
// gdal_hsi_vd: virtual dimensionality, in one pass over the scene.
#include "catalogue.h"
#include "core/error.h"
#include "stream/covariance_scan.h"
#include "tool/devices.h"
#include "tool/scene.h"
#include "vd/vd.h"

#include <cstdio>
#include <memory>
#include <string>

namespace hsi {
namespace {

using tool::Content;

struct Settings {
    std::string method = "hfc";
    double false_alarm = 1e-3;
    bool json = false;
};

void estimate(tool::Run& run, const Settings& settings) {
    if (settings.json) run.only_print();
    tool::Scene scene(run, "virtual dimensionality");
    scene.read_once();
    scene.set_fate("and left out");
    run.report()["device"] = tool::describe_devices(run, {}, nullptr);
    const auto covariance = [&] { return std::make_unique<stream::CovarianceScan>(scene.shape().bands); };
    if (run.options().dry_run)
        return tool::print_plan(run, scene.cube(), *covariance(), run.pass("covariance", 1));
    const auto statistics = scene.scan("covariance", 1, covariance);
    const auto method = settings.method == "hfc" ? vd::Method::hfc : vd::Method::nwhfc;
    const auto result = vd::estimate(statistics, method, settings.false_alarm);

    if (result.doubtful > 0)
        run.warn(std::to_string(result.doubtful) + " of the " + std::to_string(result.number) +
                 " signals have less than 1e-9 of the largest eigenvalue, which may be what rounding left: a "
                 "scene of "
                 "fewer dimensions than bands?");
    Json test = Json::array();
    for (const auto& e : result.test)
        test.push_back({{"correlation", e.correlation},
                        {"covariance", e.covariance},
                        {"difference", e.correlation - e.covariance},
                        {"threshold", e.threshold},
                        {"signal", e.signal}});
    Json document = {{"source", scene.raster()->path()},
                     {"method", settings.method},
                     {"false_alarm_probability", settings.false_alarm},
                     {"virtual_dimensionality", result.number},
                     {"doubtful", result.doubtful},
                     {"bands", scene.raster()->bands()},
                     {"valid_pixels", statistics.valid_pixels},
                     {"invalid_pixels", statistics.invalid_pixels},
                     {"eigenvalues", test}};
    if (!result.noise.empty()) document["noise_standard_deviation"] = result.noise;
    run.report()["result"] = document;
    if (settings.json) {
        run.print(document.dump(1));
        return;
    }
    char line[120];
    std::snprintf(line, sizeof line, "%5s %15s %15s %15s %15s  %s", "no.", "correlation", "covariance",
                  "difference", "threshold", "signal");
    run.note(line);
    for (size_t i = 0; i < result.test.size(); ++i) {
        const auto& e = result.test[i];
        std::snprintf(line, sizeof line, "%5zu %15.8g %15.8g %15.8g %15.8g  %s", i + 1, e.correlation,
                      e.covariance, e.correlation - e.covariance, e.threshold, e.signal ? "yes" : "no");
        run.note(line);
    }
    run.print("Virtual dimensionality: " + std::to_string(result.number));
}

void declare(tool::Call& call) {
    auto& s = call.settings<Settings>();
    call.add_source();
    call.add_compute(false);
    call.choice<std::string>("method", s.method, "The test",
                             {{"hfc", "hfc", "Harsanyi, Farrand and Chang"},
                              {"nwhfc", "nwhfc", "the same after the noise was whitened"}});
    call.option("pf", s.false_alarm, "False-alarm probability of the test, between 0 and 1").shown_as("P");
    call.flag("json", s.json, "Print the result as JSON, and nothing else");
    call.check([&s](const tool::CommonOptions&) {
        if (!(s.false_alarm > 0 && s.false_alarm < 1))
            throw UsageError("-pf: " + std::to_string(s.false_alarm) + " is no false-alarm probability",
                             "Use a number between 0 and 1, for example 1e-3.");
    });
    call.body([&s](tool::Run& run) { estimate(run, s); });
}

} // namespace

const tool::Definition tools::vd{
    "vd",
    "Virtual dimensionality (HFC, NWHFC)",
    "Virtual dimensionality: the number of spectrally distinct signals in a scene, by the "
    "Harsanyi-Farrand-Chang test (hfc) or its noise-whitened form (nwhfc).",
    {{"gdal_hsi_vd scene.img", "The test of every pair of eigenvalues, and the number"},
     {"gdal_hsi_vd -q -method nwhfc -pf 1e-4 scene.img", "The number alone"},
     {"gdal_hsi_vd -json scene.img | python3 -m json.tool", "For programs"}},
    "",
    declare};

} // namespace hsi
