// SPDX-License-Identifier: MIT
#include "tool/devices.h"

#include "core/counted.h"
#include "parallel/ranks.h"
#include "raster/raster_sink.h"
#include "raster/raster_source.h"
#include "tool/run_impl.h"

#include <algorithm>

namespace hsi::tool {

std::string describe_devices(const Run& run, const std::vector<CudaDevice>& devices, const char* simd) {
    if (devices.empty()) {
        const int threads = run.options().threads;
        return "CPU, " + counted(threads, "thread") + (simd != nullptr ? std::string(", ") + simd : "");
    }
    std::string text = "CUDA";
    for (const auto& d : devices)
        text += " " + std::to_string(d.ordinal) + " (" + d.name + ")";
    return text;
}

void report_devices(Run& run, const std::vector<CudaDevice>& devices, const char* simd) {
    const std::string text = describe_devices(run, devices, simd);
    run.report()["device"] = text;
    if (parallel::Ranks& ranks = parallel::ranks(); ranks.several())
        run.report()["rank_devices"] = ranks.all("device", text);
    run.note("Device: " + text);
}

void take_own_device(DeviceChoice& choice) {
    if (choice.kind != DeviceChoice::Kind::cuda) return;
    const auto local = static_cast<size_t>(parallel::ranks().local_rank());
    if (!choice.devices.empty())
        choice.devices = {choice.devices[local % choice.devices.size()]};
    else if (const size_t count = cuda_devices().size(); count > 0)
        choice.devices = {static_cast<int>(local % count)};
}

namespace {

/// Makes the steps of all virtual scenes opened so far compute on the tool's device. The report and -dry-run
/// state this. Does nothing without devices. If the steps cannot use the device and the user did not name a
/// GPU, they remain on the CPU, with a warning.
void compute_links_on(Run& run, const std::vector<CudaDevice>& devices) {
    auto& state = RunAccess::state(run);
    if (devices.empty()) return;
    for (const auto& source : state.watched) {
        const raster::Chain* const chain = source->chain();
        if (chain == nullptr) continue;
        try {
            chain->compute_on(devices);
        } catch (const Error& e) {
            if (state.options.device.kind == DeviceChoice::Kind::cuda || parallel::ranks().several()) throw;
            run.warn(std::string(e.what()) + "; pipeline steps run on the CPU");
        }
    }
    if (!state.entries.source.is_object() || !state.entries.source.contains("chain")) return;
    const auto first = std::find_if(state.watched.begin(), state.watched.end(), [&](const auto& one) {
        return state.entries.source["path"] == one->path();
    });
    if (first == state.watched.end()) return;
    const auto chain = raster::links_of(**first);
    std::string names;
    Json& links = state.entries.source["chain"]["links"];
    for (size_t k = 0; k < chain.size() && k < links.size(); ++k) {
        links[k]["device"] = chain[k].on_devices ? describe_devices(run, devices, "") : "CPU";
        links[k]["kept"] = chain[k].kept.empty() ? Json() : Json(chain[k].kept);
        if (chain[k].on_devices) names += (names.empty() ? "" : ", ") + chain[k].operation;
    }
    if (!names.empty() && state.options.dry_run)
        run.print("Pipeline steps on " + describe_devices(run, devices, "") + ": " + names);
}

/// Adds an approximate estimate of the work of the run's virtual scenes in each pass.
void add_links(Run& run, Work& work) {
    for (const auto& source : RunAccess::state(run).watched) {
        const auto chain = raster::links_of(*source);
        const auto bytes = static_cast<double>(source->shape().float_bytes());
        // The number of passes if a core or a device computes.
        const double on_core = work.cpu_reads / bytes, on_device = work.device_reads / bytes;
        const auto pixels = static_cast<double>(source->shape().pixels());
        for (const auto& link : chain)
            work.add(link.per_pixel, pixels * on_core, pixels * on_device);
        // Only the first virtual scene is counted, since other scenes are read once.
        if (!chain.empty()) return;
    }
}

/// Copies an array in host memory to the device if several passes read it. In a single pass, copies to the
/// device, kernels and copies back overlap, tile by tile.
void keep_arrays_on(Run& run, const std::vector<CudaDevice>& devices, const Work& work) {
    const CommonOptions& options = run.options();
    if (devices.size() != 1 || options.device_memory > 0 || options.dry_run || parallel::ranks().several())
        return;
    for (const auto& source : RunAccess::state(run).watched) {
        const auto bytes = static_cast<double>(source->shape().float_bytes());
        if (work.cpu_reads >= 2 * bytes) source->keep_on(devices.front(), options.threads);
    }
}

} // namespace

std::vector<CudaDevice> choose_devices(Run& run, const std::string& algorithm, Work work, size_t most) {
    add_links(run, work);
    const double decoding = RunAccess::state(run).decoding;
    work.cpu_decoding = decoding * work.cpu_reads;
    work.device_decoding = decoding * work.device_reads;
    work.encoding = coding_cost(raster::compression_of(run.options().destination)).encode *
                    (work.writes + work.writes_after);
    const auto& choice = run.options().device;
    const int processes = std::max(run.options().ranks, parallel::ranks().job_size());
    const Estimate seconds = estimate(work, run.options().threads * processes);
    if (run.options().dry_run) {
        const bool there = choice.kind != DeviceChoice::Kind::cpu && cuda_module_present(algorithm) &&
                           !cuda_devices().empty();
        run.print(describe(seconds, there));
        run.report()["estimated_seconds"]["cpu"] = seconds.cpu;
        if (there) run.report()["estimated_seconds"]["cuda"] = seconds.device;
    }
    if (choice.kind == DeviceChoice::Kind::automatic && seconds.device >= seconds.cpu) return {};
    auto devices = hsi::choose_devices(choice, algorithm);
    if (parallel::Ranks& ranks = parallel::ranks();
        ranks.several() && choice.kind == DeviceChoice::Kind::automatic) {
        // All ranks compute in the same place, because a device's last digits differ from the CPU's.
        if (ranks.any("devices of " + algorithm, devices.empty())) return {};
        devices = {cuda_devices()[static_cast<size_t>(ranks.local_rank()) % cuda_devices().size()]};
    }
    if (devices.size() > most) {
        run.warn("this tool computes on one device: CUDA " + std::to_string(devices.front().ordinal));
        devices.resize(most);
    }
    compute_links_on(run, devices);
    keep_arrays_on(run, devices, work);
    return devices;
}

} // namespace hsi::tool
