// SPDX-License-Identifier: MIT
#include "core/module_file.h"

#include "core/error.h"
#include "core/process_owner.h"
#include "core/system.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

#ifndef HSI_INSTALLED_MODULES
#define HSI_INSTALLED_MODULES ""
#endif

extern "C" const char* hsi_interface_id(); // made from all headers, see cmake/HsiInterface.cmake

namespace hsi {
namespace {

/// ELF's numbers of processors; 0 for one that is not known here.
constexpr int x86_64 = 62, aarch64 = 183;
#if defined(__x86_64__)
constexpr int own_machine = x86_64;
#elif defined(__aarch64__)
constexpr int own_machine = aarch64;
#else
constexpr int own_machine = 0;
#endif

std::string processor_name(int machine) {
    if (machine == x86_64) return "x86-64";
    if (machine == aarch64) return "64-bit ARM";
    return "another processor (ELF's number " + std::to_string(machine) + ")";
}

/// Those that no environment names.
std::vector<std::filesystem::path> own_folders() {
    std::vector<std::filesystem::path> folders;
    const std::filesystem::path exe = system::executable();
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
    if (!exe.empty()) {
        const auto bin = exe.parent_path();
        folders.push_back(bin.parent_path() / "lib" / "hsi");
        folders.push_back(bin / "lib" / "hsi");
    }
    if (*HSI_INSTALLED_MODULES) folders.emplace_back(HSI_INSTALLED_MODULES);
    return folders;
}

std::vector<std::filesystem::path> module_folders() {
    static const auto own = own_folders();
    std::vector<std::filesystem::path> folders;
    if (const char* env = std::getenv("HSI_MODULE_PATH"); env && *env) folders.emplace_back(env);
    folders.insert(folders.end(), own.begin(), own.end());
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

std::string why_not_loaded(const std::string& file) {
    const char* const why = dlerror();
    // An ELF file, whose bytes 18 and 19 name the processor, low byte first on all of these.
    std::ifstream in(file, std::ios::binary);
    std::array<char, 20> head{};
    if (in.read(head.data(), head.size()) && std::string_view(head.data(), 4) == "\x7f"
                                                                                 "ELF") {
        const int machine = static_cast<unsigned char>(head[18]) + 256 * static_cast<unsigned char>(head[19]);
        if (own_machine != 0 && machine != own_machine)
            return file + " is for " + processor_name(machine) + ", and this program for " +
                   processor_name(own_machine) + ": install tools and modules of one architecture";
    }
    return why != nullptr ? why : "unknown reason";
}

std::string module_places() {
    std::string places;
    for (const auto& folder : module_folders())
        places += (places.empty() ? "" : ", ") + folder.string();
    return places;
}

} // namespace hsi
