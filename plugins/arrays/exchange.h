// SPDX-License-Identifier: MIT
// The inputs and outputs of one call, by role. Tools name arrays as they name files: the path of an argument
// is its role, such as "src" or "mask". This library has its own versions of the functions of common/raster
// that open and create files. They look up the role in the exchange of the thread that runs the tool.
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
/// Returns the addresses that an array uses. `sizes` and `strides` (in bytes) have one value per axis, and an
/// element has `bytes` bytes. \throws UsageError, which names the role, if the strides lead beyond the
/// address space.
Extent extent_of(const std::string& role, const void* data, const int64_t* sizes, const int64_t* strides,
                 int axes, int64_t bytes);

class Exchange {
  public:
    /// Checks the arrays, and waits for the streams of arrays on a device. Inputs, outputs and hooks must
    /// outlive this object.
    /// \throws UsageError for an invalid array, a role that occurs twice, arrays on two devices, an output on
    /// a device while all inputs are in host memory, and an output that overlaps itself or another array.
    Exchange(const hsi_input* inputs, size_t input_count, const hsi_output* outputs, size_t output_count,
             const hsi_hooks* hooks);

    /// Returns the exchange of the call that this thread runs.
    static Exchange& current();
    /// Makes an exchange the current exchange of this thread while this object exists. The destructor
    /// restores the previous one.
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
    /// Returns the input array of a role as the caller gave it, in host memory or on a device. \throws Error
    /// if the role has no input, and UsageError if its input is a text.
    const hsi_array& array(const std::string& role) const;
    /// Returns the input array of a role if it is in host memory; otherwise returns its copy from
    /// host_copy().
    const hsi_array& host_array(const std::string& role) const;
    /// Returns an object that copies an input array from its device to host memory at its first use; null if
    /// the array is in host memory.
    std::shared_ptr<const HostCopy> host_copy(const std::string& role) const;
    /// Returns the CUDA device of arrays and results; -1: all are in host memory.
    int device() const { return m_device; }
    /// Returns the role of the first array on a device, for messages; empty if all arrays are in host memory.
    const std::string& role_on_device() const { return m_on_device; }
    /// Returns the input text of a role; null if its input is an array. \throws Error if the role has no
    /// input.
    const char* text(const std::string& role) const;

    /// Sets the description of an output for hsi_result_json(); a later call replaces it.
    void describe(const std::string& role, const OrderedJson& info);
    /// Returns the array for an output: the caller's array if it has data, otherwise an array that the
    /// caller's hook allocate() creates now. Sets its nodata value, also in the caller's hsi_array. \throws
    /// UsageError if the array has another type or shape, or if the hook is missing or returns an invalid
    /// array. \throws Error if the hook has no memory.
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

/// Convert a role to the path that the tool gets for the argument, and back. destination: true for the main
/// output, whose path is in a folder that cannot exist. The tool therefore puts side files of the output into
/// the folder for temporary files.
std::string path_of_role(const std::string& role, bool destination);
std::string role_of_path(const std::string& path);
/// Removes from a text all prefixes that path_of_role() has added, so that users see roles instead of paths.
std::string with_roles(std::string text);

/// Returns the name of a type, such as "Float32" for HSI_FLOAT32; null if the number is not a type of hsi.h.
inline const char* type_name(int32_t type) { return name_of(static_cast<SampleType>(type)); }
inline int64_t type_bytes(int32_t type) {
    return static_cast<int64_t>(sample_bytes(static_cast<SampleType>(type)));
}

} // namespace hsi::arrays
