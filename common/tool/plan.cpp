// SPDX-License-Identifier: MIT
#include "tool/plan.h"

#include "core/host_memory.h"
#include "tool/run_impl.h"

namespace hsi::tool {
namespace {

/// Returns the bytes of a pixel type, by its name: "Float32", "UInt16", "Byte"; outputs are Float32 by
/// default.
uint64_t sample_bytes(const std::string& type) {
    if (type.empty()) return sizeof(float);
    const size_t digits = type.find_first_of("123456789");
    return digits == std::string::npos ? 1 : std::stoul(type.substr(digits)) / 8;
}

} // namespace

void end_of_plan(Run& run, const std::function<void()>& print) {
    if (!run.options().dry_run) return;
    if (print) print();
    throw PlanIsComplete();
}

void print_plan(Run& run, const stream::CubeSource& source, const stream::Operation& operation,
                const stream::PassOptions& pass) {
    const auto plan = stream::plan_pass(source, operation, pass);
    const uint64_t bytes = stream::plan_bytes(source, operation, plan);
    const uint64_t device = stream::plan_device_bytes(source, operation, plan);
    const std::string& type = run.options().destination.type;
    uint64_t written = 0;
    for (const int bands : operation.output_bands())
        written += static_cast<uint64_t>(source.shape().pixels()) * static_cast<uint64_t>(bands) *
                   sample_bytes(type);
    run.print("Pass " + pass.name + ": " + plan.describe() + ", " + format_byte_size(bytes) + " of buffers" +
              (device > 0 ? ", " + format_byte_size(device) + " on the device" : "") +
              (written > 0 ? ", writes about " + format_byte_size(written) : ""));
    Json& report = RunAccess::state(run).entries.report["plan"];
    report[pass.name] = {{"tiles", plan.size()},
                         {"tile_samples", plan.max_core_samples()},
                         {"tile_lines", plan.max_core_lines()},
                         {"halo", plan.halo()},
                         {"lanes", plan.lanes()},
                         {"buffer_bytes", bytes},
                         {"written_bytes", written}};
    if (device > 0) report[pass.name]["device_bytes"] = device;
}

bool add_to_plan(Run& run, const std::string& text) {
    if (run.options().dry_run) run.print(text);
    return run.options().dry_run;
}

void add_to_plan(Run& run, const std::string& pass, const char* key, uint64_t value,
                 const std::string& text) {
    if (!add_to_plan(run, text)) return;
    RunAccess::state(run).entries.report["plan"][pass][key] = value;
}

void begin_virtual(Run& run, const raster::OutputOptions& options) {
    end_of_plan(run, [&] {
        std::string kind = raster::virtual_kind(options);
        kind.front() = 'A';
        run.print(kind + ": pixels are computed when they are read");
    });
}

} // namespace hsi::tool
