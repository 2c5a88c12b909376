// SPDX-License-Identifier: MIT
#include "gdal/processed.h"

#include "core/counted.h"
#include "core/error.h"
#include "gdal/apply.h"
#include "gdal/function.h"
#include "gdal/lanes.h"

#include <cpl_conv.h>
#include <gdal.h>

#include <dlfcn.h>

#include <atomic>

namespace hsi::plugin {
namespace {

// Types of GDAL 3.9 that the headers of older versions lack
using Init = CPLErr (*)(const char*, void*, CSLConstList, int, GDALDataType, double*, int*, GDALDataType*,
                        double**, const char*, void**);
using Free = void (*)(const char*, void*, void*);
using Process = CPLErr (*)(const char*, void*, void*, CSLConstList, int, int, const void*, size_t,
                           GDALDataType, int, const double*, void*, size_t, GDALDataType, int, const double*,
                           double, double, double, double, const double*, const char*, CSLConstList);
using Register = CPLErr (*)(const char*, void*, const char*, GDALDataType, const GDALDataType*, size_t,
                            const int*, size_t, Init, Free, Process, CSLConstList);

/// The state of a step between its init and free callbacks.
struct Working {
    std::shared_ptr<const Function> function;
};

const Step& step_of(void* user) { return *static_cast<const Step*>(user); }

int outputs_of(const Function& f) { return f.band < 0 ? f.operation->output_bands()[f.output] : 1; }

CPLErr init(const char* name, void* user, CSLConstList list, int bands, GDALDataType, double*, int* out_bands,
            GDALDataType* out_type, double** out_nodata, const char* folder, void** working) {
    return guarded(name, [&] {
        const Step& step = step_of(user);
        const DeviceWish wish = device_wish();
        const std::string key = std::string(step.name) + "\n" + std::to_string(bands) + "\n" + wish.text +
                                (wish.forked ? "\nforked" : "");
        auto function = recall(key, list, folder ? folder : "", [&](const Arguments& arguments) {
            Function f = step.understand(arguments, bands);
            f.bands = bands;
            if (f.classes) f.no_value = 0;
            arguments.refuse_others();
            return f;
        });
        const int count = outputs_of(*function);
        if (*out_bands != 0 && *out_bands != count)
            throw Error("the step gives " + counted(count, "band") + ", but the VRT has " +
                            std::to_string(*out_bands),
                        "List each in the VRT: <VRTRasterBand dataType=\"Float32\" band=\"1\" "
                        "subClass=\"VRTProcessedRasterBand\"/>.");
        *out_bands = count;
        *out_type = GDT_Float32;
        if (*out_nodata == nullptr) {
            *out_nodata = static_cast<double*>(CPLMalloc(sizeof(double) * static_cast<size_t>(count)));
            for (int k = 0; k < count; ++k)
                (*out_nodata)[k] = function->no_value;
        }
        *working = new Working{std::move(function)};
    });
}

void release(const char*, void*, void* working) { delete static_cast<Working*>(working); }

CPLErr process(const char* name, void*, void* working, CSLConstList, int width, int height, const void* in,
               size_t, GDALDataType in_type, int in_bands, const double* in_nodata, void* out, size_t,
               GDALDataType out_type, int out_bands, const double* out_nodata, double, double, double, double,
               const double*, const char*, CSLConstList) {
    return guarded(name, [&] {
        const auto& function = static_cast<const Working*>(working)->function;
        if (in_type != GDT_Float32 || out_type != GDT_Float32 || in_bands != function->bands ||
            out_bands != outputs_of(*function))
            throw Error("internal: GDAL hands over other buffers than agreed");
        apply_interleaved(function, static_cast<const float*>(in), static_cast<int64_t>(width) * height,
                          in_nodata, static_cast<float*>(out), out_bands, out_nodata);
    });
}

} // namespace

void register_steps(void* gdal) {
    const auto add =
        reinterpret_cast<Register>(dlsym(gdal ? gdal : RTLD_DEFAULT, "GDALVRTRegisterProcessedDatasetFunc"));
    // Every GDALAllRegister() registers plugins again, but GDAL accepts a step only once.
    static std::atomic<Register> told{nullptr};
    if (add == nullptr || told.exchange(add) == add) return;
    for (const Step& step : steps())
        add(step.name, const_cast<Step*>(&step), step.metadata, GDT_Float32, nullptr, 0, nullptr, 0, init,
            release, process, nullptr);
}

} // namespace hsi::plugin
