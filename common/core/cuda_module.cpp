// SPDX-License-Identifier: MIT
#include "core/cuda_module.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/module_file.h"
#include "core/process_owner.h"

#include <dlfcn.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <system_error>

namespace hsi {

namespace {

std::vector<CudaDevice> probe() {
    std::vector<CudaDevice> found;
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver) return found;
    const auto symbol = [&](const char* name) { return dlsym(driver, name); };
    const auto init = reinterpret_cast<int (*)(unsigned)>(symbol("cuInit"));
    const auto count = reinterpret_cast<int (*)(int*)>(symbol("cuDeviceGetCount"));
    const auto get = reinterpret_cast<int (*)(int*, int)>(symbol("cuDeviceGet"));
    const auto name = reinterpret_cast<int (*)(char*, int, int)>(symbol("cuDeviceGetName"));
    const auto attribute = reinterpret_cast<int (*)(int*, int, int)>(symbol("cuDeviceGetAttribute"));
    const auto memory = reinterpret_cast<int (*)(size_t*, int)>(symbol("cuDeviceTotalMem_v2"));
    int n = 0;
    if (!init || !count || !get || !name || !attribute || !memory || init(0) != 0 || count(&n) != 0)
        return found;
    for (int i = 0; i < n; ++i) {
        int device = 0, major = 0, minor = 0;
        char text[128] = {};
        size_t bytes = 0;
        constexpr int capability_major = 75, capability_minor = 76; // values of CUdevice_attribute
        if (get(&device, i) == 0 && name(text, sizeof text - 1, device) == 0 && memory(&bytes, device) == 0 &&
            attribute(&major, capability_major, device) == 0 &&
            attribute(&minor, capability_minor, device) == 0)
            found.push_back(CudaDevice{i, text, major * 10 + minor, bytes});
    }
    return found; // the driver remains loaded, since the CUDA runtime needs it next
}

/// Starts the context that the CUDA runtime also uses. The context exists as long as the process.
void start_context(int ordinal) {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver) return;
    const auto get = reinterpret_cast<int (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
    const auto retain = reinterpret_cast<int (*)(void**, int)>(dlsym(driver, "cuDevicePrimaryCtxRetain"));
    int device = 0;
    void* context = nullptr;
    if (get && retain && get(&device, ordinal) == 0) retain(&context, device);
}

std::string file_of(const std::string& algorithm) { return module_file("hsi_cuda_" + algorithm + ".so"); }

} // namespace

const std::vector<CudaDevice>& cuda_devices() {
    static const std::vector<CudaDevice> devices = probe();
    return devices;
}

void ask_for_few_cuda_queues() {
    if (process_is_ours()) setenv("CUDA_DEVICE_MAX_CONNECTIONS", "2", 0);
}

int count_cuda_device_files() {
    namespace fs = std::filesystem;
    int found = 0;
    std::error_code error;
    const std::string name = "/dev/nvidia", instances = "/proc/driver/nvidia/capabilities/gpu";
    for (; fs::exists(name + std::to_string(found), error); ++found)
        for (const auto& entry : fs::directory_iterator(instances + std::to_string(found) + "/mig", error))
            if (entry.path().filename().string().rfind("gi", 0) == 0) return 0;
    return found;
}

void hide_other_cuda_devices(const DeviceChoice& choice, int there) {
    if (!process_is_ours() || there < 2 || !choice.devices.empty()) return;
    constexpr const char* name = "CUDA_VISIBLE_DEVICES";
    const char* const given = std::getenv(name);
    const std::string all = given != nullptr ? given : "0";
    setenv(name, all.substr(0, all.find(',')).c_str(), 1);
}

CudaStart::CudaStart(const DeviceChoice& choice) {
    if (choice.kind != DeviceChoice::Kind::cuda) return;
    static std::atomic<bool> begun{false};
    // An earlier call of this library has started the devices.
    if (!process_is_ours() && begun.exchange(true)) return;
    try {
        m_thread = std::thread([devices = choice.devices] {
            const auto count = static_cast<int>(cuda_devices().size());
            for (int ordinal : devices.empty() ? std::vector<int>{0} : devices)
                if (ordinal < count) start_context(ordinal);
        });
    } catch (const std::system_error&) {
        // No thread is available: the devices start when they are needed.
    }
}

CudaStart::~CudaStart() {
    if (m_thread.joinable()) m_thread.join();
}

bool cuda_module_present(const std::string& algorithm) { return !file_of(algorithm).empty(); }

void* cuda_module_symbol(const std::string& algorithm, const char* symbol) {
    const auto file = file_of(algorithm);
    if (file.empty())
        throw Error("the CUDA module hsi_cuda_" + algorithm + ".so was not found (looked in " +
                        module_places() + ")",
                    "Install the package gdal-hsi-cuda, or build with nvcc, or set HSI_MODULE_PATH; or use "
                    "-device cpu.");
    std::string why;
    void* handle = open_module(file, RTLD_NOW | RTLD_LOCAL, why);
    if (!handle)
        throw Error("cannot load the CUDA module: " + why,
                    "Put the CUDA libraries on LD_LIBRARY_PATH, or use -device cpu.");
    check_module(handle, file);
    void* address = dlsym(handle, symbol);
    if (!address) throw Error("internal: " + file + " has no " + symbol);
    return address;
}

std::vector<CudaDevice> choose_devices(const DeviceChoice& choice, const std::string& algorithm) {
    if (choice.kind == DeviceChoice::Kind::cpu) return {};
    const bool wanted = choice.kind == DeviceChoice::Kind::cuda;
    if (!wanted && !cuda_module_present(algorithm)) return {};
    const auto& all = cuda_devices();
    if (!wanted) return all.empty() ? std::vector<CudaDevice>{} : std::vector<CudaDevice>{all.front()};
    if (all.empty())
        throw Error("-device cuda: no CUDA device was found",
                    "Check the driver with nvidia-smi, or use -device auto or -device cpu.");
    if (!cuda_module_present(algorithm))
        cuda_module_symbol(algorithm, ""); // throws Error that lists the searched folders
    if (choice.devices.empty()) return {all.front()};
    std::vector<CudaDevice> chosen;
    for (int ordinal : choice.devices) {
        if (ordinal >= static_cast<int>(all.size()))
            throw Error("-device cuda:" + std::to_string(ordinal) + ": there " +
                            worded(all.size(), "is", "are") + " only " + counted(all.size(), "CUDA device") +
                            " (0.." + std::to_string(all.size() - 1) + ")",
                        "Use one of them.");
        chosen.push_back(all[static_cast<size_t>(ordinal)]);
    }
    return chosen;
}

DeviceChoice parse_device(std::string_view text) {
    DeviceChoice choice;
    if (text == "auto") return choice;
    if (text == "cpu") {
        choice.kind = DeviceChoice::Kind::cpu;
        return choice;
    }
    const auto bad = [&] {
        return UsageError("-device: '" + std::string(text) + "' is not a device",
                          "Use auto, cpu, cuda, cuda:0 or a list such as cuda:0,1.");
    };
    if (text.substr(0, 4) != "cuda") throw bad();
    choice.kind = DeviceChoice::Kind::cuda;
    std::string_view rest = text.substr(4);
    if (rest.empty()) return choice;
    if (rest.front() != ':' || rest.size() < 2) throw bad();
    while (!rest.empty()) {
        rest.remove_prefix(1); // ':' or ','
        int index = 0;
        const auto [p, ec] = std::from_chars(rest.data(), rest.data() + rest.size(), index);
        if (ec != std::errc() || index < 0) throw bad();
        for (int other : choice.devices)
            if (other == index) throw bad();
        choice.devices.push_back(index);
        rest.remove_prefix(static_cast<size_t>(p - rest.data()));
        if (!rest.empty() && (rest.front() != ',' || rest.size() < 2)) throw bad();
    }
    return choice;
}

} // namespace hsi
