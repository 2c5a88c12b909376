// SPDX-License-Identifier: MIT
// A pixel function with parsed arguments: an operation of the suite, and the parts around it.
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

/// The same operation on a device, which is worth its start if requests are large enough. Their total is
/// unknown in advance, so the CPU computes until its cost equals the cost of the start. Then both together
/// never take more than twice the time of the better choice.
class Promotion {
  public:
    using Make = std::function<std::shared_ptr<stream::Operation>()>;
    /// make: may take long, and may throw Error (the CPU's function is then kept); called once.
    Promotion(double start_cost, Make make) : m_start_cost(start_cost), m_make(std::move(make)) {}
    /// Returns the function that computes a request of `cost` operations instead of f; null: f itself. Any
    /// number of threads may call it; while one starts the other operation, all others continue with f.
    std::shared_ptr<const Function> after(const Function& f, double cost) const;

  private:
    enum class State { idle, starting, ended };
    const double m_start_cost;
    const Make m_make;
    // Without a mutex, because a process may fork at any time.
    mutable std::atomic<double> m_done{0};
    mutable std::atomic<State> m_state{State::idle};
    mutable std::shared_ptr<const Function> m_made; ///< written before `ended`, afterwards only read
};

/// The operation that a function computes from sources, and the selected result.
struct Function {
    std::shared_ptr<stream::Operation> operation;
    int bands = 0;          ///< sources that it reads
    size_t output = 0;      ///< of operation->output_bands()
    int band = 0;           ///< of that output; -1: all bands (a pixel function then returns the smallest
                            ///< value)
    double factor = 1;      ///< of every value
    bool magnitude = false; ///< the absolute value
    bool classes = false;   ///< values are classes: invalid pixels are 0 by default
    double pixel_cost = 0;  ///< approximate operations per pixel, which decide on the number of threads
    bool device = false;    ///< it computes on a GPU, in few large slices
    std::shared_ptr<const Promotion> promotion; ///< null: this function computes everything
    size_t bytes = 0;                           ///< approximate bytes of kept data (models)

    // The common settings of all functions.
    int masks = 0;                             ///< further sources, whose value 0 marks missing pixels
    std::vector<std::optional<double>> nodata; ///< one per band
    double no_value = std::numeric_limits<double>::quiet_NaN();
    GDALDataType stored_type = GDT_Float32; ///< the type of the band, to which values are rounded and clamped
};

struct Definition {
    const char* name;        ///< "hsi_sad"
    const char* description; ///< for users
    const char* metadata;    ///< GDAL's list of arguments
    /// Creates the function. bands: the number of sources. Throws Error.
    Function (*understand)(const Arguments& arguments, int bands);
};

/// Returns all pixel functions.
const std::vector<Definition>& definitions();

/// A step of VRTProcessedDataset, from all bands to one or more bands.
struct Step {
    const char* name; ///< "HSI_PCA"
    const char* metadata;
    Function (*understand)(const Arguments& arguments, int bands);
};
const std::vector<Step>& steps();

/// Adds the common arguments of functions (nodata, masks, dst_nodata, dst_type) and refuses unknown
/// arguments. sources: the number of GDAL's sources, including masks.
Function understand(const Definition& definition, const Arguments& arguments, int sources);

} // namespace hsi::plugin
