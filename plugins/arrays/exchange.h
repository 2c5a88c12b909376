// SPDX-License-Identifier: MIT
// The inputs and outputs of one call, by role. Tools name arrays as they name files: the path of an argument
// is its role, such as "src" or "mask". plugins/arrays replaces functions of common/raster. The replacements
// find an array in the exchange of the thread that runs the tool.
#pragma once

#include "arrays/device_memory.h"
#include "arrays/hsi.h"
#include "core/json.h"
#include "core/rect.h"
#include "core/sample_type.h"
#include "raster/codec/nodata_value.h"
#include "raster/raster_sink.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::arrays {

/// A range of addresses that an array uses.
struct Extent {
    uintptr_t begin = 0, end = 0;
    bool overlaps(const Extent& other) const { return begin < other.end && other.begin < end; }
};
/// Returns the extent of elements of `bytes` with these sizes and strides. \throws UsageError with the role
/// for strides beyond the address space.
Extent extent_of(const std::string& role, const void* data, const int64_t* sizes, const int64_t* strides,
                 int axes, int64_t bytes);

class Exchange {
  public:
    /// Checks the arrays, and waits for the streams of arrays on a device. Inputs, outputs and hooks must
    /// outlive this object.
    /// \throws UsageError for an invalid array, two arrays with the same role, arrays on two devices, and an
    /// output that overlaps another array.
    Exchange(const hsi_input* inputs, size_t input_count, const hsi_output* outputs, size_t output_count,
             const hsi_hooks* hooks);

    /// Returns the exchange of the call that this thread runs.
    static Exchange& current();
    /// Makes an exchange current as long as this object exists.
    class Scope {
      public:
        explicit Scope(Exchange& exchange);
        ~Scope();
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;

      private:
        Exchange* m_before;
    };

    const std::map<std::string, hsi_input>& inputs() const { return m_inputs; }
    const std::map<std::string, hsi_output>& outputs() const { return m_outputs; }
    /// Returns the array of a role as it was given. \throws Error if a text was given for it.
    const hsi_array& array(const std::string& role) const;
    /// Returns the array of a role in host memory; an array on a device is copied.
    const hsi_array& host_array(const std::string& role) const;
    /// Returns the host copy of an array on a device, made at its first use; null if the array is in host
    /// memory.
    std::shared_ptr<const HostCopy> host_copy(const std::string& role) const;
    /// Returns the CUDA device of arrays and results; -1: all are in host memory.
    int device() const { return m_device; }
    /// Returns the role of the first array on a device; empty if all are in host memory.
    const std::string& role_on_device() const { return m_on_device; }
    /// Returns the text of a role; null if an array was given.
    const char* text(const std::string& role) const;

    /// Sets the description of an output for hsi_result_json(); a later call replaces it.
    void describe(const std::string& role, const OrderedJson& info);
    /// Returns the array of an output: the caller's array, which must fit, or an array that the caller
    /// creates now. \throws UsageError, and Error if the caller has no memory.
    hsi_array make(const std::string& role, const stream::CubeShape& shape, int32_t type,
                   const std::optional<raster::NodataValue>& nodata);
    void put_text(const std::string& role, std::string text) { m_texts[role] = std::move(text); }

    const OrderedJson& descriptions() const { return m_descriptions; }
    const std::map<std::string, std::string>& texts() const { return m_texts; }

  private:
    void check_overlaps(const std::string& role, const Extent& extent) const;
    void take_device(const std::string& role, const hsi_array& array);

    std::map<std::string, hsi_input> m_inputs;
    std::map<std::string, hsi_output> m_outputs;
    std::map<std::string, Extent> m_read, m_written;
    const hsi_hooks* m_hooks;
    int m_device = -1;
    void* m_stream = nullptr;
    std::string m_on_device;
    std::map<std::string, std::shared_ptr<const HostCopy>> m_copies;
    OrderedJson m_descriptions = OrderedJson::object();
    std::map<std::string, std::string> m_texts;
};

/// Convert a role to the path of an argument, and back. The path of the main output is in a folder that
/// cannot exist, so a tool writes the output's side files to the folder for temporary files.
std::string path_of_role(const std::string& role, bool destination);
std::string role_of_path(const std::string& path);
/// Returns a text without the prefix that path_of_role() adds to roles.
std::string with_roles(std::string text);

/// Returns the name of a type of hsi.h, such as "Float32"; null if the number is not a type.
inline const char* type_name(int32_t type) { return name_of(static_cast<SampleType>(type)); }
inline int64_t type_bytes(int32_t type) {
    return static_cast<int64_t>(sample_bytes(static_cast<SampleType>(type)));
}

} // namespace hsi::arrays
