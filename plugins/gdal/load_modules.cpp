// SPDX-License-Identifier: MIT
// Loads the modules that belong to one version of GDAL.
#include "core/module_file.h"
#include "gdal/modules.h"
#include "gdal/plugin.h"

#include <cpl_error.h>
#include <gdal.h>

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace hsi::plugin {
namespace {

/// Returns the path of a module in the folder of this plugin, such as
/// "/usr/lib/gdalplugins/hsi_commands.3.13.so" for GDAL 3.13.2. The name does not begin with gdal_ or ogr_,
/// because GDAL itself would load such a file in any version.
std::string module_path(const std::string& name) {
    Dl_info here;
    if (dladdr(reinterpret_cast<void*>(&GDALRegister_HSI), &here) == 0 || here.dli_fname == nullptr)
        return {};
    const std::string plugin = here.dli_fname;
    const int version = std::atoi(GDALVersionInfo("VERSION_NUM")); // such as 3130200
    return plugin.substr(0, plugin.rfind('/') + 1) + name + "." + std::to_string(version / 1000000) + "." +
           std::to_string(version / 10000 % 100) + ".so";
}

using EntryPoint = void (*)();

/// Returns the module's function, or null if there is no module for this GDAL version.
EntryPoint function_of(const std::string& module_name, const char* symbol_name) {
    const std::string path = module_path(module_name);
    if (path.empty() || access(path.c_str(), R_OK) != 0) return nullptr;
    // RTLD_NOW resolves all symbols now, so a missing symbol is detected here instead of during a run.
    // RTLD_NODELETE keeps the module loaded, because functions registered with GDAL are used until the
    // process ends.
    std::string why;
    void* const module = open_module(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE, why);
    void* const symbol = module != nullptr ? dlsym(module, symbol_name) : nullptr;
    if (symbol == nullptr)
        CPLDebug("HSI", "%s is not there: %s", module_name.c_str(), why.empty() ? path.c_str() : why.c_str());
    return reinterpret_cast<EntryPoint>(symbol);
}

} // namespace

void load_modules() {
    // Each GDALAllRegister() registers plugins again, and removes drivers that a program has excluded. The
    // driver is therefore registered at each call.
    static const EntryPoint register_driver = function_of("hsi_driver", register_driver_symbol);
    if (register_driver != nullptr) register_driver();
    static const bool declared = [] {
        const EntryPoint declare = function_of("hsi_commands", declare_commands_symbol);
        if (declare != nullptr) declare();
        return true;
    }();
    static_cast<void>(declared);
}

} // namespace hsi::plugin
