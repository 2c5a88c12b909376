// SPDX-License-Identifier: MIT
// A pixel function with parsed arguments: an operation of the suite and the settings around it.
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

/// The same operation on a device whose start is worthwhile only if requests are large enough. The total work
/// is unknown in advance. The CPU therefore computes until its cost equals the cost of the start. The total
/// time is then at most twice the time of the better choice.
class Promotion {
  public:
    using Make = std::function<std::shared_ptr<stream::Operation>()>;
    /// `make` is called once. It may take long, and may throw Error; the CPU's function is then kept.
    Promotion(double start_cost, Make make) : m_start_cost(start_cost), m_make(std::move(make)) {}
    /// Returns the function that computes a request of `cost` operations instead of f, or null if f itself
    /// computes it. Any number of threads may call this function. While one thread starts the other
    /// operation, all other threads continue with f.
    std::shared_ptr<const Function> after(const Function& f, double cost) const;

  private:
    enum class State { idle, starting, ended };
    const double m_start_cost;
    const Make m_make;
    // The members are atomics instead of using a mutex, because a process may fork at any time.
    mutable std::atomic<double> m_done{0};
    mutable std::atomic<State> m_state{State::idle};
    /// Written before the state becomes `ended`; read only afterwards.
    mutable std::shared_ptr<const Function> m_made;
};

/// An operation whose inputs are GDAL's sources, and the selected result.
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
    /// Creates the function. `bands` is the number of sources. Throws Error.
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

/// Creates the function of a definition. Adds the common arguments (nodata, masks, dst_nodata, dst_type) and
/// refuses unknown arguments. `sources` is the number of GDAL's sources, including masks.
Function understand(const Definition& definition, const Arguments& arguments, int sources);

} // namespace hsi::plugin
