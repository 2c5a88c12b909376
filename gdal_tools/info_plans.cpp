// SPDX-License-Identifier: MIT
#include "info_plans.h"

#include "atdca/atdca.h"
#include "core/counted.h"
#include "core/error.h"
#include "detect/detect.h"
#include "eadp/profile.h"
#include "pca/pca.h"
#include "profile_settings.h"
#include "sahic/field.h"
#include "spp/spp.h"
#include "stream/covariance_scan.h"
#include "stream/moment_scan.h"
#include "unmix/unmix.h"

#include <algorithm>
#include <functional>

namespace hsi::tools {

std::vector<PlanLine> plans_of(tool::Run& run, const raster::RasterSource& source) {
    const auto shape = source.shape();
    const auto pass = run.pass("plan", 0);
    std::vector<PlanLine> lines;
    const auto add = [&](const char* name, const std::string& what, const std::function<PlanLine()>& plan) {
        PlanLine line;
        try {
            line = plan();
        } catch (const Error& error) {
            line.what = error.what(); // too little memory, a scene of one band: what the tool would say
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
    add("pca", "covariance", [&] { return of_pass(stream::CovarianceScan(shape.bands)); });
    add("vd", "covariance", [&] { return of_pass(stream::CovarianceScan(shape.bands)); });
    add("eadp", counted(components, "component") + ", 8 copies", [&] {
        eadp::Options options;
        for (int c = 1; c <= 8; ++c)
            options.times.push_back(65.0 * c);
        const auto backend = eadp::make_cpu_backend();
        eadp::ProfileRun profile;
        profile.threads = run.options().threads;
        profile.sink_takes_bands = true; // a GeoTIFF, which an output is when nothing else is asked for
        profile.memory = pass.memory;
        profile.pass = [&](const std::string&, double) { return pass; };
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
        sahic::FieldRequest field;
        field.shape = shape;
        field.classes = 9;
        field.memory = pass.memory;
        field.tile_samples = pass.tile_samples;
        field.tile_lines = pass.tile_lines;
        field.host_bytes = [](const sahic::MrfLimits& limits) { return sahic::mrf_bytes(limits); };
        field.device_bytes = [](const sahic::MrfLimits&) { return uint64_t{0}; };
        const auto plan = sahic::plan_field(field);
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
    add("detect", "background", [&] { return of_pass(detect::BackgroundScan(shape.bands, nullptr)); });
    add("mnf", "covariance and noise", [&] { return of_pass(stream::MomentScan(shape, true)); });
    add("endmembers", "covariance", [&] { return of_pass(stream::MomentScan(shape, false)); });
    add("profile", "area of " + counted(components, "component"), [&] {
        ProfileSettings area;
        area.sets = {{profile::Attribute::area, {}}};
        const auto plan = plan_profile_planes(run, {shape.samples, shape.lines, components},
                                              profile_options(area, 20), true);
        return PlanLine{"", "", 1, plan.side_bytes * static_cast<uint64_t>(plan.workers)};
    });
    return lines;
}

} // namespace hsi::tools
