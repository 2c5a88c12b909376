// SPDX-License-Identifier: MIT
// The user's choice of the device, and the search for a GPU and the CUDA modules (hsi_cuda_<algorithm>.so) at
// run time, so that a program that does not use a GPU neither loads nor needs CUDA. It includes no CUDA
// header.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace hsi {

struct DeviceChoice {
    enum class Kind { automatic, cpu, cuda };
    Kind kind = Kind::automatic;
    std::vector<int> devices; ///< CUDA ordinals; empty: the first one
};

/// Parses auto, cpu, cuda, cuda:I or cuda:I,J. Throws UsageError naming the allowed values.
DeviceChoice parse_device(std::string_view text);

struct CudaDevice {
    int ordinal = 0;
    std::string name;    ///< "NVIDIA H200"
    int capability = 0;  ///< 90 for compute capability 9.0
    uint64_t memory = 0; ///< bytes on the device
};

/// The GPUs that the driver shows; empty without a driver. Starts the driver (about 0.1 s) on the first call.
const std::vector<CudaDevice>& cuda_devices();

/// Call this before any thread of a process of ours, and before the driver starts: it requests two queues of
/// work per device instead of eight, unless the user has set a count (CUDA_DEVICE_MAX_CONNECTIONS). Lanes
/// wait for files; each queue takes 20 ms to make and to end.
void ask_for_few_cuda_queues();

/// GPUs that the system shows without its driver's help; 0: unknown, or they are cut into instances.
int count_cuda_device_files();
/// Call this before the driver starts in a process of ours. The driver then sees only the first of `there`
/// devices where `choice` names none. Each of the others would take 0.2 s to start. The first device of
/// CUDA_VISIBLE_DEVICES stays.
void hide_other_cuda_devices(const DeviceChoice& choice, int there = count_cuda_device_files());

/// Starts the driver and the contexts of the devices in `choice`, on a separate thread, when `choice` names a
/// GPU. This takes a quarter of a second, in which the program does other work. Code that needs a device
/// sooner waits for it there, and errors are reported there, too. The destructor waits for the thread.
class CudaStart {
  public:
    explicit CudaStart(const DeviceChoice& choice);
    CudaStart(const CudaStart&) = delete;
    CudaStart& operator=(const CudaStart&) = delete;
    ~CudaStart();

  private:
    std::thread m_thread;
};

/// True when the module's file is there (nothing is loaded).
bool cuda_module_present(const std::string& algorithm);

/// Loads hsi_cuda_<algorithm>.so and returns the symbol. Looks in $HSI_MODULE_PATH; where this code is part
/// of a library, in the library's folder and in ../hsi from there; in lib/hsi next to the executable's
/// folder; and in the installed place. Throws Error that lists these places, or with the loader's reason.
void* cuda_module_symbol(const std::string& algorithm, const char* symbol);

/// The backend of an algorithm on these devices (at least one), from its module: the object of the interface
/// Backend that its function hsi_cuda_<algorithm> returns. Operations that it makes must not outlive it.
/// \throws Error as cuda_module_symbol() does, or when the device does not start.
template <class Backend>
std::unique_ptr<Backend> make_cuda_backend(const std::string& algorithm,
                                           const std::vector<CudaDevice>& devices) {
    using Make = Backend* (*)(const std::vector<CudaDevice>&);
    const std::string symbol = "hsi_cuda_" + algorithm;
    return std::unique_ptr<Backend>(
        reinterpret_cast<Make>(cuda_module_symbol(algorithm, symbol.c_str()))(devices));
}

/// Decides where to compute. cpu: empty. cuda: the requested devices (the first one by default); throws Error
/// without such a GPU or module. automatic: the first GPU if there is one and its module is installed; else
/// empty.
std::vector<CudaDevice> choose_devices(const DeviceChoice& choice, const std::string& algorithm);

} // namespace hsi
