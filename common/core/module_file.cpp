// SPDX-License-Identifier: MIT
#include "core/module_file.h"

#include "core/error.h"
#include "core/process_owner.h"
#include "core/system.h"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

#ifndef HSI_INSTALLED_MODULES
#define HSI_INSTALLED_MODULES ""
#endif

extern "C" const char* hsi_interface_id(); // computed from all headers, see cmake/HsiInterface.cmake

namespace hsi {
namespace {

/// ELF's numbers for types of processors (e_machine). own_machine is 0 for all other processors.
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

/// Returns why a 64-bit ELF file cannot be loaded, according to its header. Returns an empty text if there is
/// no reason, or for other files. All supported processors store the numbers of an ELF file as little-endian.
std::string why_not_loadable(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    std::array<char, 64> head{};
    if (own_machine == 0 || !in.read(head.data(), head.size()) ||
        std::string_view(head.data(), 4) != "\x7f"
                                            "ELF")
        return {};
    const auto number = [&](size_t at, size_t bytes) {
        uint64_t value = 0;
        for (size_t i = bytes; i-- > 0;)
            value = value << 8 | static_cast<unsigned char>(head[at + i]);
        return value;
    };
    const auto machine = static_cast<int>(number(18, 2));
    if (machine != own_machine)
        return file + " is for " + processor_name(machine) + ", but this program is for " +
               processor_name(own_machine) + ": install tools and modules for the same architecture";
    // The section table is the last part of the file. The header contains its position, and the size and
    // number of its entries.
    const uint64_t whole = number(40, 8) + number(58, 2) * number(60, 2);
    in.seekg(0, std::ios::end);
    const auto size = static_cast<uint64_t>(in.tellg());
    constexpr char class_64 = 2, low_byte_first = 1;
    if (head[4] == class_64 && head[5] == low_byte_first && size < whole)
        return file + " is incomplete: it has " + std::to_string(size) + " of " + std::to_string(whole) +
               " bytes. Copy or install it again";
    return {};
}

/// Returns the folders that no environment variable names.
std::vector<std::filesystem::path> own_folders() {
    std::vector<std::filesystem::path> folders;
    const std::filesystem::path exe = system::executable();
    // Inside a library, the modules are next to this code, or in lib/hsi if the code is in lib (libhsi) or in
    // lib/gdalplugins (GDAL's plugin). The executable's path does not help.
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
    // The module has its own copy of the answer to process_is_ours().
    if (!process_is_ours())
        if (const auto share = reinterpret_cast<void (*)()>(dlsym(handle, "hsi_module_share_process")))
            share();
}

void* open_module(const std::string& file, int flags, std::string& why) {
    why = why_not_loadable(file);
    if (!why.empty()) return nullptr;
    void* const handle = dlopen(file.c_str(), flags);
    if (handle == nullptr) {
        const char* const reason = dlerror();
        why = reason != nullptr ? reason : "unknown reason";
    }
    return handle;
}

std::string module_places() {
    std::string places;
    for (const auto& folder : module_folders())
        places += (places.empty() ? "" : ", ") + folder.string();
    return places;
}

} // namespace hsi
