// SPDX-License-Identifier: MIT
// Pixel functions with parsed arguments. A function has an operation of the suite, and settings for its
// inputs and its result.
#pragma once

#include "gdal/arguments.h"
#include "stream/operation.h"

#include <gdal.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::plugin {

struct Function;

/// Moves a function from the CPU to a device, whose start is worthwhile only for much work. The total work is
/// unknown in advance. The CPU therefore computes until its work has cost as much as the start of the device.
/// The total time is then at most twice the time of the better choice.
class Promotion {
  public:
    using Make = std::function<std::shared_ptr<stream::Operation>()>;
    /// `make` creates the operation on the device, and is called at most once. It may take long. If it throws
    /// Error, the function stays on the CPU.
    Promotion(double start_cost, Make make) : m_start_cost(start_cost), m_make(std::move(make)) {}
    /// Returns the function on the device if it is to compute a request of `cost` operations; null if f, the
    /// function on the CPU, is to compute it. Any number of threads may call after(). While one thread starts
    /// the device, all other threads continue with f.
    std::shared_ptr<const Function> after(const Function& f, double cost) const;

  private:
    enum class State { idle, starting, ended };
    const double m_start_cost;
    const Make m_make;
    // The members are atomic. A mutex could stay locked in the child if the process forks.
    mutable std::atomic<double> m_done{0};
    mutable std::atomic<State> m_state{State::idle};
    /// Written before the state becomes `ended`; read only afterwards.
    mutable std::shared_ptr<const Function> m_made;
};

/// A pixel function or a step: an operation whose input bands are GDAL's sources, and the selection of its
/// result.
struct Function {
    std::shared_ptr<stream::Operation> operation;
    int bands = 0;     ///< number of sources that the operation reads
    size_t output = 0; ///< index in operation->output_bands()
    /// Band of the output; -1: all bands. With -1, a pixel function returns the smallest value.
    int band = 0;
    double factor = 1;      ///< factor for every value
    bool magnitude = false; ///< true: the result is the absolute value
    bool classes = false;   ///< true: values are classes, and invalid pixels are 0 by default
    double pixel_cost = 0;  ///< approximate operations per pixel, used to choose the number of threads
    bool device = false;    ///< true: the operation runs on a GPU, in few large slices
    std::shared_ptr<const Promotion> promotion; ///< null: this function computes all requests
    size_t bytes = 0; ///< approximate bytes of the data that the function keeps (models)

    // The common settings of all functions.
    int masks = 0; ///< number of additional sources, in which the value 0 marks missing pixels
    std::vector<std::optional<double>> nodata; ///< one per band
    double no_value = std::numeric_limits<double>::quiet_NaN();
    GDALDataType stored_type = GDT_Float32; ///< type of the band; values are rounded and clamped to it
};

struct Definition {
    const char* name;        ///< such as "hsi_sad"
    const char* description; ///< description for users
    const char* metadata;    ///< list of arguments in GDAL's XML format
    /// Creates the function from its own arguments. `bands` is the number of sources without masks. Throws
    /// Error if an argument is invalid.
    Function (*understand)(const Arguments& arguments, int bands);
};

/// Returns all pixel functions.
const std::vector<Definition>& definitions();

/// A step of VRTProcessedDataset, from all bands to one or more bands.
struct Step {
    const char* name; ///< such as "HSI_PCA"
    const char* metadata;
    Function (*understand)(const Arguments& arguments, int bands);
};
const std::vector<Step>& steps();

/// Creates the function of a definition, and applies the common arguments nodata, masks, dst_nodata and
/// dst_type. `sources` is the number of GDAL's sources, including masks. Throws Error for invalid and for
/// unknown arguments.
Function understand(const Definition& definition, const Arguments& arguments, int sources);

} // namespace hsi::plugin
