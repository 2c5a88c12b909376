// SPDX-License-Identifier: MIT
// The entry points that GDAL calls: only C types, and no exceptions, pass through them.
#include "gdal/plugin.h"

#include "core/error.h"
#include "gdal/apply.h"
#include "gdal/function.h"
#include "gdal/lanes.h"
#include "gdal/modules.h"
#include "gdal/processed.h"
#include "math/simd_target.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <gdal.h>

#include <dlfcn.h>

#include <exception>
#include <functional>
#include <new>
#include <utility>

namespace hsi::plugin {
namespace {

CPLErr tell(const char* function, const std::string& what, const std::string& advice) {
    CPLError(CE_Failure, CPLE_AppDefined, "%s: %s%s%s", function, what.c_str(), advice.empty() ? "" : ". ",
             advice.c_str());
    return CE_Failure;
}

CPLErr compute(const Definition& definition, const PixelBuffers& buffers, int sources, CSLConstList list) {
    return guarded(definition.name, [&] {
        const DeviceWish wish = device_wish();
        const std::string key = std::string(definition.name) + "\n" + std::to_string(sources) + "\n" +
                                wish.text + (wish.forked ? "\nforked" : "");
        const auto function = recall(key, list, {}, [&](const Arguments& arguments) {
            return understand(definition, arguments, sources);
        });
        apply(function, buffers);
    });
}

/// GDAL does not pass the name of the function that it calls, so each function has its own entry point.
template <size_t I>
CPLErr entry(void** sources, int source_count, void* data, int width, int height, GDALDataType source_type,
             GDALDataType type, int pixel_space, int line_space, CSLConstList list) {
    PixelBuffers b;
    b.sources = sources;
    b.source_type = source_type;
    b.width = width;
    b.height = height;
    b.out = data;
    b.out_type = type;
    b.pixel_space = pixel_space;
    b.line_space = line_space;
    return compute(definitions()[I], b, source_count, list);
}

constexpr size_t function_slots = 16;

template <size_t... I>
void register_all(std::index_sequence<I...>) {
    static const GDALDerivedPixelFuncWithArgs entries[] = {entry<I>...};
    const auto& all = definitions();
    static_assert(sizeof...(I) == function_slots);
    for (size_t k = 0; k < all.size() && k < function_slots; ++k)
        GDALAddDerivedBandPixelFuncWithArgs(all[k].name, entries[k], all[k].metadata);
}

} // namespace

CPLErr guarded(const char* function, const std::function<void()>& body) {
    try {
        body();
        return CE_None;
    } catch (const Error& e) {
        return tell(function, e.what(), e.advice());
    } catch (const std::bad_alloc&) {
        return tell(function, "out of memory", {});
    } catch (const std::exception& e) {
        return tell(function, e.what(), {});
    } catch (...) {
        return tell(function, "unknown failure", {});
    }
}

} // namespace hsi::plugin

void GDALRegister_HSI(void) {
    // The plugin is not linked to a particular libgdal, so one file works with every GDAL from 3.6 on. Some
    // programs, such as Python, load libgdal without making its symbols global. The dlopen() call below makes
    // the symbols of the calling library global, so that the plugin finds them.
    void* gdal = nullptr;
    Dl_info caller;
    if (dladdr(__builtin_return_address(0), &caller) != 0 && caller.dli_fname != nullptr)
        gdal = dlopen(caller.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
    // As in the tools, an invalid HSI_SIMD is an error. No functions are registered, so nothing can run with
    // another instruction set.
    if (hsi::plugin::guarded("HSI", [] { hsi::math::select_simd(CPLGetConfigOption("HSI_SIMD", "")); }) !=
        CE_None)
        return;
    hsi::plugin::register_all(std::make_index_sequence<hsi::plugin::function_slots>());
    hsi::plugin::register_steps(gdal);
    hsi::plugin::load_modules();
}
