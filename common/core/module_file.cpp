// SPDX-License-Identifier: MIT
#include "core/module_file.h"

#include "core/error.h"
#include "core/process_owner.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#ifndef HSI_INSTALLED_MODULES
#define HSI_INSTALLED_MODULES ""
#endif

extern "C" const char* hsi_interface_id(); // made from all headers, see cmake/HsiInterface.cmake

namespace hsi {
namespace {

std::vector<std::filesystem::path> module_folders() {
    std::vector<std::filesystem::path> folders;
    if (const char* env = std::getenv("HSI_MODULE_PATH"); env && *env) folders.emplace_back(env);
    char exe[4096];
    const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = 0;
    // This code inside a library: modules lie beside it, or in lib/hsi where it is in lib (libhsi) or in
    // lib/gdalplugins (GDAL's plugin); what program has loaded it says nothing.
    Dl_info here;
    std::error_code ec;
    if (dladdr(reinterpret_cast<void*>(&module_file), &here) != 0 && here.dli_fname != nullptr) {
        const auto file = std::filesystem::canonical(here.dli_fname, ec);
        if (!ec && file != exe) {
            folders.push_back(file.parent_path());
            folders.push_back(file.parent_path() / "hsi");
            folders.push_back(file.parent_path().parent_path() / "hsi");
        }
    }
    if (*exe) {
        const auto bin = std::filesystem::path(exe).parent_path();
        folders.push_back(bin.parent_path() / "lib" / "hsi");
        folders.push_back(bin / "lib" / "hsi");
    }
    if (*HSI_INSTALLED_MODULES) folders.emplace_back(HSI_INSTALLED_MODULES);
    return folders;
}

} // namespace

std::string module_file(const std::string& name) {
    for (const auto& folder : module_folders()) {
        auto file = folder / name;
        std::error_code ec;
        if (std::filesystem::exists(file, ec)) return file.string();
    }
    return {};
}

void check_module(void* handle, const std::string& file) {
    const auto theirs = reinterpret_cast<const char* (*)()>(dlsym(handle, "hsi_module_interface"));
    if (theirs == nullptr || std::string(theirs()) != hsi_interface_id())
        throw Error(file + " is from another build than this program",
                    std::getenv("HSI_MODULE_PATH") != nullptr
                        ? "Install tools and modules from the same build, or unset HSI_MODULE_PATH."
                        : "Install tools and modules from the same build.");
    // A module has a state of its own.
    if (!process_is_ours())
        if (const auto share = reinterpret_cast<void (*)()>(dlsym(handle, "hsi_module_share_process")))
            share();
}

std::string module_places() {
    std::string places;
    for (const auto& folder : module_folders())
        places += (places.empty() ? "" : ", ") + folder.string();
    return places;
}

} // namespace hsi
