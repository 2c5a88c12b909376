// SPDX-License-Identifier: MIT
#include "gdal/commands.h"
#include "gdal/plugin.h"

#include <cpl_error.h>
#include <gdal.h>

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace hsi::plugin {
namespace {

/// "/usr/lib/gdalplugins/hsi_commands.3.13.so" for GDAL 3.13.2 and a plugin in that folder. The name begins
/// neither with gdal_ nor with ogr_: GDAL loads such files by itself, whatever their version.
std::string module_path() {
    Dl_info here;
    if (dladdr(reinterpret_cast<void*>(&GDALRegister_HSI), &here) == 0 || here.dli_fname == nullptr)
        return {};
    const std::string plugin = here.dli_fname;
    const int version = std::atoi(GDALVersionInfo("VERSION_NUM")); // 3130200
    return plugin.substr(0, plugin.rfind('/') + 1) + "hsi_commands." + std::to_string(version / 1000000) +
           "." + std::to_string(version / 10000 % 100) + ".so";
}

} // namespace

void load_commands() {
    static std::atomic<bool> loaded{false}; // GDAL registers plugins again with every GDALAllRegister()
    if (loaded.exchange(true)) return;
    const std::string path = module_path();
    if (path.empty() || access(path.c_str(), R_OK) != 0) return;
    // All of its symbols now: what this GDAL lacks shall be found here, not in the middle of a run. Commands
    // stay declared for as long as the process lives, and so the module stays.
    void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void* const symbol = module != nullptr ? dlsym(module, declare_commands_symbol) : nullptr;
    if (symbol == nullptr) {
        const char* const why = dlerror();
        CPLDebug("HSI", "no commands: %s", why != nullptr ? why : path.c_str());
        return;
    }
    reinterpret_cast<void (*)()>(symbol)();
}

} // namespace hsi::plugin
