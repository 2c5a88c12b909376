// SPDX-License-Identifier: MIT
#include "detect_computing.h"

#include "raster/sink/raster_sink.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace hsi::tools {

using detect::Method;

tool::Work detect_work(const DetectSettings& s, const stream::CubeShape& scene, size_t targets, int threads) {
    const auto bytes = static_cast<double>(scene.float_bytes()), pixels = static_cast<double>(scene.pixels());
    const double b = scene.bands, scores = targets > 0 ? static_cast<double>(targets) : 1;
    tool::Work work;
    work.cpu_reads = work.device_reads = bytes;
    work.writes = pixels * (4 * scores + (s.map.empty() ? 0 : 1));
    if (s.local()) {
        const detect::Ring ring{s.window[0], s.window[1], nullptr};
        work.core_seconds = 6.7e-11 * pixels * detect::local_cost(scene.bands, ring);
        work.device_seconds = 3.2e-13 * pixels * detect::local_products(scene.bands, ring);
        return work;
    }
    const double values = pixels * b;
    work.core_seconds = 2e-10 * values * scores;
    work.device_seconds = 1.3e-12 * values * scores;
    if (s.method == Method::sid) {
        work.core_seconds += 2.3e-9 * values;
        work.device_seconds += 3e-11 * values;
    }
    if (s.method == Method::ace || s.method == Method::rx) {
        work.core_seconds += 1.3e-11 * values * b;
        work.device_seconds += 3e-13 * values * b;
    }
    if (detect::has_background(s.method)) {
        const double background = 2.7e-11 * values * b;
        work.cpu_reads *= 2;
        work.device_reads *= 2;
        work.core_seconds += background;
        work.device_seconds += background / threads;
    }
    return work;
}

DetectComputing detect_computing(tool::Run& run, const DetectSettings& s, const stream::CubeShape& scene,
                                 size_t targets) {
    const auto& options = run.options();
    std::vector<CudaDevice> devices;
    if (!raster::RasterSink::is_virtual(options.destination))
        devices = tool::choose_devices(run, "detect", detect_work(s, scene, targets, options.threads));
    const bool elsewhere = !devices.empty();
    DetectComputing computing(run, "detect", std::move(devices), detect::simd_target(),
                              detect::make_cpu_backend);
    if (detect::has_background(s.method) && !s.local()) {
        const std::string background = tool::describe_devices(run, {}, detect::simd_target());
        run.report()["background_device"] = background;
        if (elsewhere) run.note("Background: " + background);
    }
    return computing;
}

detect::Detector any_detector(Method method, int bands, size_t targets) {
    detect::Targets any;
    for (size_t k = 0; k < targets; ++k) {
        any.names.emplace_back();
        any.spectra.emplace_back(static_cast<size_t>(bands), 2.0);
    }
    if (!detect::has_background(method)) return detect::make_detector(method, any);
    const auto size = static_cast<size_t>(bands);
    stream::SceneCovariance moments;
    moments.bands = bands;
    moments.valid_pixels = 2;
    moments.mean.assign(size, 0.0);
    moments.covariance.assign(size * size, 0.0);
    for (size_t b = 0; b < size; ++b)
        moments.covariance[b * size + b] = 1;
    return detect::make_detector(method, any, moments);
}

stream::PassOptions beside(const detect::PixelMask* mask, stream::PassOptions pass) {
    if (mask != nullptr) pass.memory -= std::min(mask->bytes(), pass.memory - 1);
    return pass;
}

} // namespace hsi::tools
