// SPDX-License-Identifier: MIT
#include "sahic_report.h"
#include "core/counted.h"

#include <cstdio>
#include <string>
#include <utility>

namespace hsi::tools {
void tell_training(tool::Run& run, const sahic::LorsalOptions& options, const sahic::LorsalResult& result,
                   int64_t pixels, double seconds) {
    const sahic::MlrModel& model = result.model;
    Json classes = Json::array();
    for (const auto& c : model.classes)
        classes.push_back({{"value", c.value}, {"name", c.name}, {"samples", c.pixels}});
    Json record = {{"classes", classes},
                   {"pixels", pixels},
                   {"solver", model.solver},
                   {"iterations", result.iterations},
                   {"objective", result.objective},
                   {"active_features", result.active_features},
                   {"active_weights", model.active_weights()},
                   {"scale", model.scale},
                   {"spread", model.spread},
                   {"seconds", seconds}};
    if (options.optimum) {
        const double share = result.gap / result.objective;
        record["gap"] = result.gap;
        record["relative_gap"] = share;
        if (share > options.gap) {
            char text[160];
            std::snprintf(text, sizeof text,
                          "the optimum is proven to %.1e of the objective only, not to %.0e", share,
                          options.gap);
            run.warn(text);
        }
    }
    run.report()["training"] = std::move(record);
    char text[200];
    std::snprintf(text, sizeof text, "%s: %d classes, %lld training pixels, objective %.6g, %s",
                  options.optimum ? "Optimum" : "LORSAL", model.class_count(), static_cast<long long>(pixels),
                  result.objective, counted(result.active_features, "active feature").c_str());
    run.note(text);
}

void print_field_plan(tool::Run& run, const SahicSettings& s, const stream::CubeShape& shape,
                      const sahic::FieldPlan& plan) {
    std::string text = "Class probabilities: a scan, then one pass over " + std::to_string(shape.samples) +
                       "x" + std::to_string(shape.lines) + " pixels";
    if (!s.no_spatial) text += "\n" + describe_field_plan(run, plan);
    run.print(text);
}

void tell_classes(tool::Run& run, SahicComputing& computing, const sahic::MlrModel& model,
                  const SahicResult& result, int64_t pixels) {
    Json counts = Json::array();
    for (size_t c = 0; c < model.classes.size(); ++c)
        counts.push_back({{"value", model.classes[c].value},
                          {"name", model.classes[c].name},
                          {"pixels", result.by_class[c]}});
    run.report()["classes"] = counts;
    if (computing.on_devices()) {
        const auto seconds = computing->kernel_seconds();
        run.report()["kernel_seconds"] = {
            {"training", seconds[0]}, {"probabilities", seconds[1]}, {"mrf", seconds[2]}};
    }
    tool::tell_invalid(run, pixels - result.invalid, result.invalid, "and have no class");
}

} // namespace hsi::tools
