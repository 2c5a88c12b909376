// SPDX-License-Identifier: MIT
#include "shared/mrf.h"

#include "core/counted.h"
#include "core/host_memory.h"

#include <cmath>

namespace hsi::tools {

tool::Argument& add_mrf_options(tool::Builder& args, MrfSettings& s) {
    auto& lambda = args.option("lambda", s.mrf.lambda,
                               "Weight of the spatial term: 2 for AVIRIS, 1 for ROSIS in the paper")
                       .shown_as("L")
                       .also("spatial-weight");
    args.option("mu", s.mrf.mu, "ADMM penalty of the Markov random field").above(0).shown_as("M");
    args.option("iterations", s.mrf.iterations, "Number of ADMM iterations of the Markov random field")
        .between(1, 1000000);
    args.choice("tv", s.mrf.anisotropic, "Total variation of the Markov random field",
                {{"isotropic", false, "of both differences together"},
                 {"anisotropic", true, "of each difference separately"}});
    args.choice("boundary", s.periodic, "How the Markov random field continues the scene at its border",
                {{"reflect", false, "mirrored"},
                 {"periodic", true, "continued at the opposite border, as in the paper"}});
    return lambda;
}

sahic::MrfRequest mrf_request_of(const tool::Run& run, SahicComputing& computing, const MrfSettings& s,
                                 const stream::CubeShape& shape, int classes) {
    sahic::MrfRequest field;
    field.shape = shape;
    field.classes = classes;
    field.mrf = s.mrf;
    field.periodic = s.periodic;
    field.memory = run.buffer_memory();
    field.device_memory = computing.device_memory();
    field.tile_samples = run.options().tile_samples;
    field.tile_lines = run.options().tile_lines;
    field.host_bytes = [&](const sahic::MrfLimits& limits) { return computing->mrf_host_bytes(limits); };
    field.device_bytes = [&](const sahic::MrfLimits& limits) { return computing->mrf_device_bytes(limits); };
    return field;
}

std::string describe_mrf_plan(tool::Run& run, const sahic::MrfPlan& plan) {
    run.report()["plan"]["mrf"] = {{"tiles", plan.tiles.size()},
                                   {"tile_samples", plan.tiles.max_core_samples()},
                                   {"tile_lines", plan.tiles.max_core_lines()},
                                   {"halo", plan.halo},
                                   {"store", plan.store_in_memory ? "memory" : "file"},
                                   {"buffer_bytes", plan.host_bytes}};
    return "Random field: " +
           (plan.whole
                ? std::string("the whole scene at once")
                : counted(plan.tiles.size(), "tile") + " of " +
                      std::to_string(plan.tiles.max_core_samples()) + "x" +
                      std::to_string(plan.tiles.max_core_lines()) + ", halo " + std::to_string(plan.halo)) +
           ", " + format_byte_size(plan.host_bytes) + " of buffers, probabilities in " +
           (plan.store_in_memory ? "memory" : "a temporary file");
}

std::unique_ptr<stream::PlaneStore> make_mrf_planes(const tool::Run& run, SahicComputing& computing,
                                                    const sahic::MrfPlan& plan,
                                                    const stream::CubeShape& shape, int classes) {
    const stream::CubeShape stored{shape.samples, shape.lines, classes + 1};
    if (plan.store_in_memory)
        return computing.on_devices() ? std::make_unique<stream::PlaneStore>(stored, computing->allocator())
                                      : stream::PlaneStore::in_memory_of(run.ranks(), stored);
    return std::make_unique<stream::PlaneStore>(stored,
                                                stream::folder_beside(run.options().destination.path));
}

void report_mrf(tool::Run& run, const MrfSettings& s, const sahic::MrfPlan& plan,
                const sahic::MrfResiduals& sums) {
    const auto entries = static_cast<double>(sums.entries);
    const auto rms = [&](double sum, double of) { return of > 0 ? std::sqrt(sum / of) : 0.0; };
    run.report()["mrf"] = {{"iterations", s.mrf.iterations},
                           {"lambda", s.mrf.lambda},
                           {"mu", s.mrf.mu},
                           {"tv", s.mrf.anisotropic ? "anisotropic" : "isotropic"},
                           {"boundary", s.periodic ? "periodic" : "reflect"},
                           {"tiles", plan.tiles.size()},
                           {"tile_samples", plan.tiles.max_core_samples()},
                           {"tile_lines", plan.tiles.max_core_lines()},
                           {"halo", plan.halo},
                           {"store", plan.store_in_memory ? "memory" : "file"},
                           {"objective", sums.objective},
                           {"residuals",
                            {{"data", rms(sums.v1, entries)},
                             {"positive", rms(sums.v2, entries)},
                             {"sum_to_one", rms(sums.v3, entries)},
                             {"smooth", rms(sums.v4, entries)},
                             {"differences", rms(sums.v5, 2 * entries)},
                             {"change", rms(sums.change, entries)}}}};
}

} // namespace hsi::tools
