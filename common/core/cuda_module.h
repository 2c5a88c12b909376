// SPDX-License-Identifier: MIT
// Parses the user's choice of the device, and finds GPUs and the CUDA modules (hsi_cuda_<algorithm>.so) at
// run time, so that a program that does not use a GPU needs no CUDA libraries. This header includes no CUDA
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

/// Parses auto, cpu, cuda, cuda:I or cuda:I,J. Throws UsageError that lists the allowed values.
DeviceChoice parse_device(std::string_view text);

struct CudaDevice {
    int ordinal = 0;
    std::string name;    ///< "NVIDIA H200"
    int capability = 0;  ///< 90 for compute capability 9.0
    uint64_t memory = 0; ///< bytes on the device
};

/// Returns the GPUs that the driver lists, and an empty list without a driver. The first call starts the
/// driver (about 0.1 s).
const std::vector<CudaDevice>& cuda_devices();

/// Reduces the work queues per GPU from eight to two, unless the user has set CUDA_DEVICE_MAX_CONNECTIONS.
/// Two queues suffice, since workers mostly wait for files, and each queue takes 20 ms to create and to end.
/// Has no effect inside another program (see process_is_ours()). Call this function before threads and the
/// driver are started.
void ask_for_few_cuda_queues();

/// Returns the number of GPUs with a device file (/dev/nvidia0, ...), for which the driver need not be
/// started. Returns 0 if there is no such file, or if a GPU is divided into instances (MIG).
int count_cuda_device_files();
/// Hides all GPUs except the first one from the driver, because each further GPU takes 0.2 s to start. The
/// first GPU is the first entry of CUDA_VISIBLE_DEVICES, or GPU 0 if this variable is not set. `there`: the
/// number of GPUs. Has no effect if `choice` lists devices, if there are fewer than two GPUs, or inside
/// another program (see process_is_ours()). Call this function before the driver is started.
void hide_other_cuda_devices(const DeviceChoice& choice, int there = count_cuda_device_files());

/// Starts the driver and the contexts of the devices on a separate thread if the user has chosen cuda
/// (default device: 0). The start takes 0.25 s, during which the program does other work. Code that needs a
/// device earlier waits for the start. Errors of the start are not reported here, but by the code that uses
/// the device. The destructor waits for the thread.
class CudaStart {
  public:
    explicit CudaStart(const DeviceChoice& choice);
    CudaStart(const CudaStart&) = delete;
    CudaStart& operator=(const CudaStart&) = delete;
    ~CudaStart();

  private:
    std::thread m_thread;
};

/// Returns true if the file of the module exists. Does not load the module.
bool cuda_module_present(const std::string& algorithm);

/// Loads the module hsi_cuda_<algorithm>.so, which module_file() finds, and returns the symbol. Throws Error
/// that lists the searched folders if the module is missing. Also throws Error, with the reason, if the
/// module does not load, is from another build, or does not have the symbol.
void* cuda_module_symbol(const std::string& algorithm, const char* symbol);

/// Creates the backend of an algorithm on these devices (at least one). The function hsi_cuda_<algorithm> of
/// the module returns the backend as an object of the interface Backend. Operations of the backend must not
/// outlive it. \throws Error as cuda_module_symbol() does, or if the device does not start.
template <class Backend>
std::unique_ptr<Backend> make_cuda_backend(const std::string& algorithm,
                                           const std::vector<CudaDevice>& devices) {
    using Make = Backend* (*)(const std::vector<CudaDevice>&);
    const std::string symbol = "hsi_cuda_" + algorithm;
    return std::unique_ptr<Backend>(
        reinterpret_cast<Make>(cuda_module_symbol(algorithm, symbol.c_str()))(devices));
}

/// Returns the devices on which the algorithm is computed; empty means the CPU. `cpu` gives an empty list.
/// `cuda` gives the requested devices, or the first GPU if the user has listed none. \throws Error for `cuda`
/// if such a GPU or the module of the algorithm does not exist. `automatic` gives the first GPU if a GPU and
/// the module exist, else an empty list.
std::vector<CudaDevice> choose_devices(const DeviceChoice& choice, const std::string& algorithm);

} // namespace hsi
