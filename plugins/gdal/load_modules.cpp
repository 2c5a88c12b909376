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

/// Returns a path like "/usr/lib/gdalplugins/hsi_commands.3.13.so", for GDAL 3.13.2 and a plugin in this
/// folder. The name does not begin with gdal_ or ogr_: GDAL loads such files by itself, of any version.
std::string module_path(const std::string& name) {
    Dl_info here;
    if (dladdr(reinterpret_cast<void*>(&GDALRegister_HSI), &here) == 0 || here.dli_fname == nullptr)
        return {};
    const std::string plugin = here.dli_fname;
    const int version = std::atoi(GDALVersionInfo("VERSION_NUM")); // 3130200
    return plugin.substr(0, plugin.rfind('/') + 1) + name + "." + std::to_string(version / 1000000) + "." +
           std::to_string(version / 10000 % 100) + ".so";
}

using EntryPoint = void (*)();

/// Returns the module's function; null without such a module for this GDAL.
EntryPoint function_of(const std::string& module_name, const char* symbol_name) {
    const std::string path = module_path(module_name);
    if (path.empty() || access(path.c_str(), R_OK) != 0) return nullptr;
    // Resolves all symbols now: a symbol that this GDAL lacks must be found here, not in the middle of a run.
    // The functions registered with GDAL stay as long as the process, and so does the module.
    std::string why;
    void* const module = open_module(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE, why);
    void* const symbol = module != nullptr ? dlsym(module, symbol_name) : nullptr;
    if (symbol == nullptr)
        CPLDebug("HSI", "%s is not there: %s", module_name.c_str(), why.empty() ? path.c_str() : why.c_str());
    return reinterpret_cast<EntryPoint>(symbol);
}

} // namespace

void load_modules() {
    // Each GDALAllRegister() registers plugins again, and removes drivers that a program has
    // excluded.
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
