// SPDX-License-Identifier: MIT
#include "gdal/device.h"

#include "core/cuda_module.h"
#include "core/error.h"
#include "gdal/device_choice.h"
#include "gdal/lanes.h"

#include <map>
#include <mutex>
#include <string>

namespace hsi::plugin {
namespace {

/// Smallest product of support vectors and bands for which `auto` uses a GPU (docs/measurements_runs.md).
constexpr double worth = 2e4;

} // namespace

Place svm_place(const svm::Model& model) {
    const DeviceWish wish = device_wish();
    const DeviceChoice choice = device_choice(wish.text);
    if (choice.kind == DeviceChoice::Kind::cpu) return Place::cpu;
    if (choice.kind == DeviceChoice::Kind::cuda) {
        if (wish.forked)
            throw Error("GDAL_HSI_DEVICE=" + wish.text +
                            ": this process was forked from one that uses the GPU",
                        "Start processes before the first use of a GPU, or set GDAL_HSI_DEVICE=cpu.");
        return Place::device;
    }
    const bool pays = static_cast<double>(model.vector_count()) * model.features() >= worth;
    return pays && !wish.forked && cuda_module_present("svm") ? Place::either : Place::cpu;
}

std::unique_ptr<svm::Classification> svm_on_device(const std::shared_ptr<const svm::Model>& model,
                                                   const svm::ClassifyOptions& options) {
    const DeviceWish wish = device_wish();
    note_device_start();
    try {
        const auto devices = devices_asked_for(device_choice(wish.text));
        // Backends are never destroyed, because operations on them may outlive any other object.
        static auto& backends = *new std::map<std::string, std::unique_ptr<svm::Backend>>;
        static std::mutex guard;
        const std::lock_guard lock(guard);
        auto& backend = backends[wish.text];
        if (!backend) backend = make_cuda_backend<svm::Backend>("svm", devices);
        return backend->make_classification(model, options);
    } catch (const Error& e) {
        throw Error("GDAL_HSI_DEVICE=" + wish.text + ": " + e.what(), e.advice());
    }
}

} // namespace hsi::plugin
