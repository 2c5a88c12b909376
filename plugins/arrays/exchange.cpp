// SPDX-License-Identifier: MIT
#include "arrays/exchange.h"

#include "core/error.h"
#include "core/host_memory.h"
#include "raster/sample_convert.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace hsi::arrays {
namespace {

thread_local Exchange* t_current = nullptr;

constexpr const char* axes_text = "An array has three axes: bands, lines, samples.";
constexpr int64_t most_pixels = int64_t{1} << 31; // An axis must be shorter, as in GDAL.

void check_count(const char* name, const void* list, size_t count) {
    if (list == nullptr && count > 0)
        throw UsageError(std::string(name) + " is a null pointer, but the count is " + std::to_string(count));
}

/// Checks that the caller was compiled with this version of hsi_array.
void check_size(const std::string& role, const hsi_array& array) {
    if (array.size != sizeof(hsi_array))
        throw UsageError(role + ": the array's member 'size' is " + std::to_string(array.size) + ", not " +
                             std::to_string(sizeof(hsi_array)),
                         "Initialise it with HSI_ARRAY of this library's hsi.h.");
}

/// Checks an hsi_array before it is used.
void check_array(const std::string& role, const hsi_array& array) {
    check_size(role, array);
    if (type_name(array.type) == nullptr)
        throw UsageError(role + ": " + std::to_string(array.type) + " is not a data type",
                         "Use HSI_UINT8 to HSI_INT8 of hsi.h.");
    if (array.device < -1)
        throw UsageError(role + ": " + std::to_string(array.device) + " is not a device",
                         "Use -1 for host memory, or the number of a CUDA device.");
}

/// Checks the metadata of an input: nodata and names.
void check_facts(const std::string& role, const hsi_array& array) {
    if (array.has_nodata != 0 && array.has_nodata != 1)
        throw UsageError(role + ": the array's member 'has_nodata' is " + std::to_string(array.has_nodata),
                         "Set it to 0 or 1.");
    const auto& [bands, lines, samples] = array.shape;
    // A scene has one name per band, a library one per spectrum, and labels (one band) one per class.
    const int64_t most = lines == 1 ? std::max(bands, samples) : bands;
    if (array.name_count < 0 || (bands > 1 && array.name_count > most))
        throw UsageError(role + " has " + std::to_string(array.name_count) + " names, but its shape is " +
                             std::to_string(bands) + " x " + std::to_string(lines) + " x " +
                             std::to_string(samples),
                         "Give one name per band of a scene, or one per spectrum of a library.");
    if (array.names == nullptr && array.name_count > 0)
        throw UsageError(role + ": the member 'names' is a null pointer, but 'name_count' is " +
                         std::to_string(array.name_count));
}

void check_shape(const std::string& role, const hsi_array& array) {
    const auto& [bands, lines, samples] = array.shape;
    if (bands < 1 || lines < 1 || samples < 1)
        throw UsageError(role + " has no values: its shape is " + std::to_string(bands) + " x " +
                             std::to_string(lines) + " x " + std::to_string(samples),
                         axes_text);
    if (bands >= most_pixels || lines >= most_pixels || samples >= most_pixels)
        throw UsageError(role + ": an axis is longer than 2147483647", axes_text);
}

Extent extent_of_array(const std::string& role, const hsi_array& array) {
    return extent_of(role, array.data, array.shape, array.strides, 3, type_bytes(array.type));
}

/// Returns true if two elements of an output may share memory, judged from its strides.
bool overlaps_itself(const hsi_array& array) {
    std::vector<std::pair<int64_t, int64_t>> axes; // absolute stride and size of each axis
    for (int axis = 0; axis < 3; ++axis)
        if (array.shape[axis] > 1) axes.emplace_back(std::abs(array.strides[axis]), array.shape[axis]);
    std::sort(axes.begin(), axes.end());
    int64_t reach = type_bytes(array.type);
    for (const auto& [step, size] : axes) {
        if (step < reach) return true;
        reach = step * (size - 1) + reach;
    }
    return false;
}

const std::string nowhere = "/dev/null/";

} // namespace

std::string path_of_role(const std::string& role, bool destination) {
    return destination ? nowhere + role : role;
}

std::string role_of_path(const std::string& path) {
    return path.rfind(nowhere, 0) == 0 ? path.substr(nowhere.size()) : path;
}

std::string with_roles(std::string text) {
    for (size_t at = text.find(nowhere); at != std::string::npos; at = text.find(nowhere, at))
        text.erase(at, nowhere.size());
    return text;
}

Extent extent_of(const std::string& role, const void* data, const int64_t* sizes, const int64_t* strides,
                 int axes, int64_t bytes) {
    __extension__ using Wide = __int128; // holds the sum of three products of a size and a stride
    const auto at = reinterpret_cast<uintptr_t>(data);
    Wide least = 0, most = 0;
    for (int axis = 0; axis < axes; ++axis) {
        const Wide last = Wide{sizes[axis] - 1} * strides[axis];
        (last < 0 ? least : most) += last;
    }
    most += bytes;
    if (most - least > PTRDIFF_MAX || Wide{at} + least < 0 || Wide{at} + most > Wide{UINTPTR_MAX})
        throw UsageError(role + ": its strides exceed the address space",
                         "A stride is the count of bytes from one element to the next.");
    return {at + static_cast<uintptr_t>(least), at + static_cast<uintptr_t>(most)};
}

Exchange::Exchange(const hsi_input* inputs, size_t input_count, const hsi_output* outputs,
                   size_t output_count, const hsi_hooks* hooks)
    : m_hooks(hooks) {
    check_count("inputs", inputs, input_count);
    check_count("outputs", outputs, output_count);
    for (size_t k = 0; k < input_count; ++k) {
        const hsi_input& input = inputs[k];
        if (input.role == nullptr) throw UsageError("an input has no role");
        const std::string role = input.role;
        if ((input.array == nullptr) == (input.text == nullptr))
            throw UsageError(role + ": an input must be either an array or a text",
                             "Set one of the members 'array' and 'text'.");
        if (!m_inputs.emplace(role, input).second) throw UsageError(role + " is given twice");
        if (input.array == nullptr) continue;
        const hsi_array& array = *input.array;
        check_array(role, array);
        check_shape(role, array);
        if (array.data == nullptr) throw UsageError(role + ": its data is a null pointer");
        check_facts(role, array);
        m_read[role] = extent_of_array(role, array);
        if (array.mask != nullptr) {
            const std::string mask = role + "'s mask";
            m_read[mask] = extent_of(mask, array.mask, array.shape + 1, array.mask_strides, 2, 1);
        }
        if (array.device < 0) continue;
        take_device(role, array);
        m_copies[role] = std::make_shared<const HostCopy>(array);
    }
    for (size_t k = 0; k < output_count; ++k) {
        const hsi_output& output = outputs[k];
        if (output.role == nullptr) throw UsageError("an output has no role");
        const std::string role = output.role;
        if (!m_outputs.emplace(role, output).second || m_inputs.count(role) > 0)
            throw UsageError(role + " is given twice");
        if (output.array == nullptr) continue;
        check_size(role, *output.array);
        if (output.array->data == nullptr) continue;
        check_array(role, *output.array);
        check_shape(role, *output.array);
        const Extent extent = extent_of_array(role, *output.array);
        if (overlaps_itself(*output.array))
            throw UsageError(role + ": elements of the output share memory",
                             "Use strides that keep the elements apart.");
        check_overlaps(role, extent);
        m_written[role] = extent;
        if (output.array->device < 0) continue;
        if (m_device < 0)
            throw UsageError(role + " is in the memory of a CUDA device, but all inputs are in host memory",
                             "Use host memory for the output, or copy the inputs to that device.");
        take_device(role, *output.array);
    }
}

/// Makes the array's device the device of the call, or checks that it is that device: a call works on one
/// device.
void Exchange::take_device(const std::string& role, const hsi_array& array) {
    if (m_device >= 0 && array.device != m_device)
        throw UsageError(role + " is on CUDA device " + std::to_string(array.device) + ", but " +
                             m_on_device + " is on CUDA device " + std::to_string(m_device),
                         "Copy one of them: all arrays of a call must be on one device or in host memory.");
    check_on_device(role, array);
    if (m_device >= 0) return;
    m_device = array.device;
    m_stream = array.stream;
    m_on_device = role;
}

void Exchange::check_overlaps(const std::string& role, const Extent& extent) const {
    for (const auto* others : {&m_read, &m_written})
        for (const auto& [name, other] : *others)
            if (name != role && extent.overlaps(other))
                throw UsageError(role + " shares memory with " + name + ", which the run would overwrite",
                                 "Use separate memory for the output.");
}

Exchange& Exchange::current() {
    if (t_current == nullptr) throw Error("internal: no call runs on this thread");
    return *t_current;
}

Exchange::Scope::Scope(Exchange& exchange) : m_before(std::exchange(t_current, &exchange)) {}
Exchange::Scope::~Scope() { t_current = m_before; }

const hsi_array& Exchange::array(const std::string& role) const {
    const auto found = m_inputs.find(role);
    if (found == m_inputs.end() && role == "none")
        throw UsageError("a required array is none", "Only some inputs may be none.");
    if (found == m_inputs.end()) throw Error("missing input '" + role + "'");
    if (found->second.array == nullptr)
        throw UsageError(role + " is a text, but an array is required", "Give an array.");
    return *found->second.array;
}

std::shared_ptr<const HostCopy> Exchange::host_copy(const std::string& role) const {
    const auto found = m_copies.find(role);
    return found != m_copies.end() ? found->second : nullptr;
}

const hsi_array& Exchange::host_array(const std::string& role) const {
    const hsi_array& given = array(role);
    const auto copy = host_copy(role);
    return copy ? copy->array() : given;
}

const char* Exchange::text(const std::string& role) const {
    const auto found = m_inputs.find(role);
    if (found == m_inputs.end()) throw Error("missing input '" + role + "'");
    return found->second.text;
}

void Exchange::describe(const std::string& role, const OrderedJson& info) { m_descriptions[role] = info; }

hsi_array Exchange::make(const std::string& role, const stream::CubeShape& shape, int32_t type,
                         const std::optional<raster::NodataValue>& nodata) {
    const auto found = m_outputs.find(role);
    if (found == m_outputs.end()) throw Error("internal: nobody has asked for the output '" + role + "'");
    const int64_t sizes[3] = {shape.bands, shape.lines, shape.samples};
    hsi_array made = HSI_ARRAY;
    hsi_array* const given = found->second.array;
    if (given != nullptr && given->data != nullptr) {
        const bool fits = given->type == type && std::equal(sizes, sizes + 3, given->shape);
        const auto text = [](const char* name, const int64_t* s) {
            return std::string(name) + " of " + std::to_string(s[0]) + " x " + std::to_string(s[1]) + " x " +
                   std::to_string(s[2]);
        };
        if (!fits)
            throw UsageError(role + " is " + text(type_name(given->type), given->shape) +
                                 ", but the result is " + text(type_name(type), sizes),
                             "Use memory of the result's type and shape: bands x lines x samples.");
        made = *given;
    } else {
        std::copy_n(sizes, 3, made.shape);
        made.type = type;
        made.device = m_device;
        made.stream = m_stream;
        if (m_hooks == nullptr || m_hooks->allocate == nullptr)
            throw UsageError(role + " has no memory", "Set its data, or the hook 'allocate'.");
        const std::string info = m_descriptions.value(role, OrderedJson::object()).dump();
        if (m_hooks->allocate(m_hooks->user, role.c_str(), info.c_str(), &made) != 0 || made.data == nullptr)
            throw Error("not enough memory for the output " + role + ": " +
                            format_byte_size(
                                static_cast<uint64_t>(sizes[0] * sizes[1] * sizes[2] * type_bytes(type))),
                        "Free memory, or process a part of the scene.");
        if (made.size != sizeof made || made.type != type || !std::equal(sizes, sizes + 3, made.shape) ||
            (made.device != m_device && made.device != -1))
            throw UsageError(role + ": the hook 'allocate' changed the array's type, shape or device",
                             "The hook may set only data and strides.");
        if (made.device >= 0) check_on_device(role, made);
        const Extent extent = extent_of_array(role, made);
        if (overlaps_itself(made)) throw UsageError(role + ": elements of the output share memory");
        check_overlaps(role, extent);
        m_written[role] = extent;
    }
    made.has_nodata = nodata ? 1 : 0;
    made.nodata = nodata ? nodata->as_double() : 0;
    if (given != nullptr) *given = made;
    return made;
}

} // namespace hsi::arrays
