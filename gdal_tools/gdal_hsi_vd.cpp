// SPDX-License-Identifier: MIT
// gdal_hsi_vd: virtual dimensionality, in one pass over the scene.
#include "cli/tool.h"
#include "core/byte_size.h"
#include "core/error.h"
#include "stream/covariance_scan.h"
#include "vd/vd.h"

#include <cstdio>

namespace {

using namespace hsi;

struct Settings {
    std::string method = "hfc";
    double false_alarm = 1e-3;
    bool json = false;
};

void check_bands(const raster::RasterSource& source) {
    if (source.shape().bands < 2)
        throw UsageError("-b: " + std::to_string(source.shape().bands) + " band of " + source.path() +
                             " is no spectrum: virtual dimensionality needs at least 2 bands",
                         "Give more bands with -b, or keep bad ones with -bbl ignore.");
}

void estimate(cli::Run& run, const Settings& settings) {
    if (settings.json) run.only_print();
    auto source = run.open_source();
    check_bands(*source);
    run.report()["device"] = "CPU, " + std::to_string(run.options().threads) +
                             (run.options().threads == 1 ? " thread" : " threads");
    if (run.options().dry_run) {
        const stream::CovarianceScan scan(source->shape().bands);
        const auto plan = stream::plan_pass(*source, scan, run.pass("covariance", 1));
        const uint64_t bytes = stream::plan_bytes(*source, scan, plan);
        run.print("Pass covariance: " + plan.describe() + ", " + format_byte_size(bytes) + " of buffers");
        run.report()["plan"]["covariance"] = {{"tiles", plan.size()},
                                              {"tile_samples", plan.max_core_samples()},
                                              {"tile_lines", plan.max_core_lines()},
                                              {"lanes", plan.lanes()},
                                              {"buffer_bytes", bytes}};
        return;
    }
    stream::SceneCovariance scene;
    for (;;) {
        stream::CovarianceScan scan(source->shape().bands);
        run.add_pass(stream::run_pass(*source, scan, {}, run.pass("covariance", 1)));
        scene = scan.result();
        if (scene.valid_pixels > 0 || !run.leave_out_empty_bands(source, scene.empty_bands())) break;
        check_bands(*source);
    }
    if (scene.valid_pixels == 0) throw cli::no_valid_pixel(*source);
    const auto method = settings.method == "hfc" ? vd::Method::hfc : vd::Method::nwhfc;
    const auto result = vd::estimate(scene, method, settings.false_alarm);

    nlohmann::json test = nlohmann::json::array();
    for (const auto& e : result.test)
        test.push_back({{"correlation", e.correlation},
                        {"covariance", e.covariance},
                        {"difference", e.correlation - e.covariance},
                        {"threshold", e.threshold},
                        {"signal", e.signal}});
    nlohmann::json document = {{"source", source->path()},
                               {"method", settings.method},
                               {"false_alarm_probability", settings.false_alarm},
                               {"virtual_dimensionality", result.number},
                               {"bands", source->bands()},
                               {"valid_pixels", scene.valid_pixels},
                               {"invalid_pixels", scene.invalid_pixels},
                               {"eigenvalues", test}};
    if (!result.noise.empty()) document["noise_standard_deviation"] = result.noise;
    run.report()["result"] = document;
    if (settings.json) {
        run.print(document.dump(1));
        return;
    }
    if (scene.invalid_pixels > 0)
        run.note(std::to_string(scene.invalid_pixels) + " of " + std::to_string(source->shape().pixels()) +
                 " pixels are invalid (nodata, masked, NaN or all zero) and left out");
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

} // namespace

int main(int argc, char** argv) {
    cli::Tool tool("gdal_hsi_vd",
                   "Virtual dimensionality: the number of spectrally distinct signals in a scene, by the "
                   "Harsanyi-Farrand-Chang test (hfc) or its noise-whitened form (nwhfc).",
                   "Examples:\n"
                   "  gdal_hsi_vd scene.img\n"
                   "  gdal_hsi_vd -q -method nwhfc -pf 1e-4 scene.img\n"
                   "  gdal_hsi_vd -json scene.img | python3 -m json.tool\n");
    tool.add_source();
    tool.add_compute(false);
    Settings settings;
    auto& app = tool.app();
    app.add_option("--method", settings.method, "hfc or nwhfc")
        ->check(CLI::IsMember({"hfc", "nwhfc"}))
        ->type_name("hfc|nwhfc")
        ->capture_default_str();
    app.add_option("--pf", settings.false_alarm, "False-alarm probability of the test, between 0 and 1")
        ->type_name("P")
        ->capture_default_str();
    app.add_flag("--json", settings.json, "Print the result as JSON, and nothing else");
    tool.check([&](const cli::CommonOptions&) {
        if (!(settings.false_alarm > 0 && settings.false_alarm < 1))
            throw UsageError("-pf: " + std::to_string(settings.false_alarm) +
                                 " is no false-alarm probability",
                             "Use a number between 0 and 1, for example 1e-3.");
    });
    return tool.run(argc, argv, [&](cli::Run& run) { estimate(run, settings); });
}
