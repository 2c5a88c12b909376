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

/// The same operation on a device, worth its start when requests are large enough. Their total is not known
/// in advance; so the CPU computes until its cost equals the cost of the start: both together never take more
/// than twice the time of the better choice.
class Promotion {
  public:
    using Make = std::function<std::shared_ptr<stream::Operation>()>;
    /// make: may take long, may throw Error (the CPU's function then stays); called once.
    Promotion(double start_cost, Make make) : m_start_cost(start_cost), m_make(std::move(make)) {}
    /// The function that computes a request of `cost` operations in place of f; null: f itself. Any count of
    /// threads may call it; while one starts the other operation, all others go on with f.
    std::shared_ptr<const Function> after(const Function& f, double cost) const;

  private:
    enum class State { idle, starting, ended };
    const double m_start_cost;
    const Make m_make;
    // No mutex: a process may fork at any time.
    mutable std::atomic<double> m_done{0};
    mutable std::atomic<State> m_state{State::idle};
    mutable std::shared_ptr<const Function> m_made; ///< written before `ended`, then only read
};

/// The operation that a function computes from sources, and which of its results is the function's.
struct Function {
    std::shared_ptr<stream::Operation> operation;
    int bands = 0;          ///< sources that it reads
    size_t output = 0;      ///< of operation->output_bands()
    int band = 0;           ///< of that output; -1: all bands (a pixel function then takes the smallest)
    double factor = 1;      ///< of every value
    bool magnitude = false; ///< the absolute value
    bool classes = false;   ///< values are classes: pixels without a value are 0 by default
    double pixel_cost = 0;  ///< operations a pixel, roughly: whether several threads pay
    bool device = false;    ///< it computes on a GPU: few large slices
    std::shared_ptr<const Promotion> promotion; ///< null: this one computes everything
    size_t bytes = 0;                           ///< of kept data (models), roughly

    // The frame, the same for all functions.
    int masks = 0;                             ///< further sources: 0 there marks missing pixels
    std::vector<std::optional<double>> nodata; ///< one a band
    double no_value = std::numeric_limits<double>::quiet_NaN();
    GDALDataType stored_type = GDT_Float32; ///< the band's: values are rounded and clamped to it
};

struct Definition {
    const char* name;        ///< "hsi_sad"
    const char* description; ///< for people
    const char* metadata;    ///< GDAL's list of arguments
    /// bands: how many sources there are. Throws Error.
    Function (*understand)(const Arguments& arguments, int bands);
};

/// All pixel functions.
const std::vector<Definition>& definitions();

/// A step of VRTProcessedDataset: all bands in, one or more bands out.
struct Step {
    const char* name; ///< "HSI_PCA"
    const char* metadata;
    Function (*understand)(const Arguments& arguments, int bands);
};
const std::vector<Step>& steps();

/// Adds the common arguments of functions (nodata, masks, dst_nodata, dst_type) and refuses unknown
/// arguments. sources: of GDAL, with masks.
Function understand(const Definition& definition, const Arguments& arguments, int sources);

} // namespace hsi::plugin
