// SPDX-License-Identifier: MIT
#include "arrays/device_memory.h"

#include "arrays/exchange.h"

#include "core/counted.h"
#include "core/cuda_module.h"
#include "core/error.h"
#include "core/fork.h"
#include "parallel/threads.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <utility>
#include <vector>

namespace hsi::arrays {
namespace {

/// CUDA_MEMCPY2D of cuda.h, declared here since libhsi is also built without a CUDA Toolkit.
struct Copy2D {
    size_t from_x = 0, from_y = 0;
    int from_kind = 0;
    const void* from_host = nullptr;
    unsigned long long from_device = 0;
    void* from_array = nullptr;
    size_t from_pitch = 0;
    size_t to_x = 0, to_y = 0;
    int to_kind = 0;
    void* to_host = nullptr;
    unsigned long long to_device = 0;
    void* to_array = nullptr;
    size_t to_pitch = 0;
    size_t width = 0, height = 0;
};
constexpr int kind_host = 1, kind_device = 2; // CUmemorytype
constexpr int attribute_ordinal = 9;          // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
constexpr int unknown_device = -2;            // CU_DEVICE_INVALID

/// The functions of the driver that this file uses.
class Driver {
  public:
    static const Driver& instance() {
        static const Driver one;
        return one;
    }
    bool there() const { return m_there; }

    template <class... Arguments>
    using Function = int (*)(Arguments...);
    Function<int*, int> device_get = nullptr;
    Function<void**, int> context_retain = nullptr;
    Function<void*> context_push = nullptr;
    Function<void**> context_pop = nullptr;
    Function<int*> context_device = nullptr;
    Function<unsigned, int*, void**, unsigned long long> pointer_attributes = nullptr;
    Function<void*> stream_wait = nullptr;
    Function<void*, void**> stream_context = nullptr;
    Function<const Copy2D*> copy = nullptr;
    Function<void**, size_t, unsigned> host_allocate = nullptr;
    Function<void*> host_free = nullptr;
    Function<unsigned long long*, size_t> allocate = nullptr;
    Function<unsigned long long> release = nullptr;
    Function<size_t*, size_t*> memory = nullptr;
    Function<int, const char**> name_of = nullptr;

  private:
    Driver() {
        void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) return;
        const auto load = [&](auto& function, const char* name) {
            function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
            m_there = m_there && function != nullptr;
        };
        m_there = true;
        load(device_get, "cuDeviceGet");
        load(context_retain, "cuDevicePrimaryCtxRetain");
        load(context_push, "cuCtxPushCurrent_v2");
        load(context_pop, "cuCtxPopCurrent_v2");
        load(context_device, "cuCtxGetDevice");
        load(pointer_attributes, "cuPointerGetAttributes");
        load(stream_wait, "cuStreamSynchronize");
        load(stream_context, "cuStreamGetCtx");
        load(copy, "cuMemcpy2DUnaligned_v2");
        load(host_allocate, "cuMemHostAlloc");
        load(host_free, "cuMemFreeHost");
        load(allocate, "cuMemAlloc_v2");
        load(release, "cuMemFree_v2");
        load(memory, "cuMemGetInfo_v2");
        load(name_of, "cuGetErrorName");
    }
    bool m_there = false;
};

void check(int code, const char* what) {
    if (code == 0) return;
    const char* name = nullptr;
    Driver::instance().name_of(code, &name);
    throw Error(std::string("the CUDA driver cannot ") + what + ": " +
                (name != nullptr ? name : std::to_string(code)));
}

/// Returns the process's only object of type T. The object is never destroyed, since the driver may end
/// earlier. The object's mutex may be held during long calls of the driver, so fork() does not wait for the
/// mutex. A forked child, which has no driver state, begins with a new, empty object instead.
template <class T>
T& kept_for_one_process() {
    static T* one = new T;
    static const InForkedChild anew([] { one = new T; });
    return *one;
}

/// Makes the device's primary context current in this thread. PyTorch, CuPy and the CUDA runtime use the same
/// context.
class ContextGuard {
  public:
    explicit ContextGuard(int ordinal) {
        const Driver& driver = Driver::instance();
        // A context is retained once and never released, so it lives as long as the process.
        Contexts& contexts = kept_for_one_process<Contexts>();
        const std::lock_guard lock(contexts.mutex);
        void*& context = contexts.of[ordinal];
        if (context == nullptr) {
            int device = 0;
            check(driver.device_get(&device, ordinal), "open the device");
            check(driver.context_retain(&context, device), "open the device");
        }
        check(driver.context_push(context), "use the device");
    }
    ~ContextGuard() {
        void* before = nullptr;
        Driver::instance().context_pop(&before);
    }
    ContextGuard(const ContextGuard&) = delete;
    ContextGuard& operator=(const ContextGuard&) = delete;

  private:
    struct Contexts {
        std::mutex mutex;
        std::map<int, void*> of;
    };
};

/// Returns the device that CUDA reports for memory; unknown_device if CUDA does not know the memory.
int device_of(const void* data) {
    int ordinal = unknown_device, asked = attribute_ordinal;
    void* answer = &ordinal;
    const int code =
        Driver::instance().pointer_attributes(1, &asked, &answer, reinterpret_cast<uintptr_t>(data));
    return code == 0 ? ordinal : unknown_device;
}

/// Pinned blocks that are kept for the next call.
class Pool {
  public:
    static Pool& instance() { return kept_for_one_process<Pool>(); }
    /// Returns a block of at least `bytes` and at most twice as many, and sets `bytes` to its size; null if
    /// the pool has no such block.
    void* take(size_t& bytes) {
        const std::lock_guard lock(m_mutex);
        const auto found = m_blocks.lower_bound(bytes);
        if (found == m_blocks.end() || found->first > 2 * bytes) return nullptr;
        void* const block = found->second;
        bytes = found->first;
        m_bytes -= bytes;
        m_blocks.erase(found);
        return block;
    }
    /// Keeps a block for the next call. Returns false if the pool would exceed its limit.
    bool keep(void* block, size_t bytes) {
        constexpr size_t most = size_t{1} << 30;
        const std::lock_guard lock(m_mutex);
        if (m_bytes + bytes > most) return false;
        m_blocks.emplace(bytes, block);
        m_bytes += bytes;
        return true;
    }

  private:
    std::mutex m_mutex;
    std::multimap<size_t, void*> m_blocks;
    size_t m_bytes = 0;
};

/// The last copy of a scene on each device, kept for the next call.
class KeptCopies {
  public:
    static KeptCopies& instance() { return kept_for_one_process<KeptCopies>(); }
    /// Returns the kept block if it has this size, or else a new block; 0 if `bytes` exceed half of the free
    /// memory. The context of the device must be current.
    unsigned long long take(int device, size_t bytes) {
        const std::lock_guard lock(m_mutex);
        const Driver& driver = Driver::instance();
        Block& kept = m_blocks[device];
        if (kept.bytes == bytes) return std::exchange(kept, {}).at;
        if (kept.at != 0) driver.release(std::exchange(kept, {}).at);
        size_t free = 0, all = 0;
        unsigned long long made = 0;
        if (driver.memory(&free, &all) != 0 || bytes > free / 2 || driver.allocate(&made, bytes) != 0)
            return 0;
        return made;
    }
    /// Keeps a block for the next call, or releases it. The context of the device must be current.
    void give_back(int device, unsigned long long block, size_t bytes) {
        constexpr size_t most = size_t{4} << 30;
        const std::lock_guard lock(m_mutex);
        Block& kept = m_blocks[device];
        if (kept.at == 0 && bytes <= most)
            kept = {block, bytes};
        else
            Driver::instance().release(block);
    }

  private:
    struct Block {
        unsigned long long at = 0;
        size_t bytes = 0;
    };
    std::mutex m_mutex;
    std::map<int, Block> m_blocks;
};

/// One end of a copy: rows of bytes.
struct Rows {
    char* data;
    int64_t pitch;
    bool on_device;
};

/// Copies rows. The context of the device must be current.
void copy_rows(const Rows& to, const Rows& from, int64_t width, int64_t height) {
    // The pitch is smaller than a row if rows are in reverse order, or if one row is read repeatedly. The
    // driver cannot copy such rows at once.
    if (height > 1 && (to.pitch < width || from.pitch < width)) {
        for (int64_t y = 0; y < height; ++y)
            copy_rows({to.data + y * to.pitch, width, to.on_device},
                      {from.data + y * from.pitch, width, from.on_device}, width, 1);
        return;
    }
    Copy2D copy;
    copy.from_kind = from.on_device ? kind_device : kind_host;
    copy.from_host = from.data;
    copy.from_device = reinterpret_cast<uintptr_t>(from.data);
    copy.from_pitch = static_cast<size_t>(std::max(from.pitch, width));
    copy.to_kind = to.on_device ? kind_device : kind_host;
    copy.to_host = to.data;
    copy.to_device = reinterpret_cast<uintptr_t>(to.data);
    copy.to_pitch = static_cast<size_t>(std::max(to.pitch, width));
    copy.width = static_cast<size_t>(width);
    copy.height = static_cast<size_t>(height);
    check(Driver::instance().copy(&copy), "copy an array");
}

/// Returns the axes of an array in order of decreasing stride.
std::array<int, 3> axes_by_step(const hsi_array& array) {
    std::array<int, 3> axes{0, 1, 2};
    std::stable_sort(axes.begin(), axes.end(), [&](int a, int b) {
        // The stride of an axis with one element has no effect.
        const bool one_a = array.shape[a] == 1, one_b = array.shape[b] == 1;
        if (one_a || one_b) return one_a && !one_b;
        return std::abs(array.strides[a]) > std::abs(array.strides[b]);
    });
    return axes;
}

/// Copies rows of floats from the device into packed host memory.
void copy_packed(const CubeView<float>& to, const CubeView<float>& from) {
    const auto bytes = [](int64_t floats) { return floats * static_cast<int64_t>(sizeof(float)); };
    const auto at = [](float* p) { return reinterpret_cast<char*>(p); };
    const bool runs = from.line_stride == from.samples;
    if (runs || to.lines == 1) // each band is one contiguous row
        return copy_rows({at(to.data), bytes(to.band_stride), false},
                         {at(from.data), bytes(from.band_stride), true}, bytes(to.lines * to.samples),
                         to.bands);
    for (int b = 0; b < to.bands; ++b)
        copy_rows({at(to.row(b, 0)), bytes(to.line_stride), false},
                  {at(from.row(b, 0)), bytes(from.line_stride), true}, bytes(to.samples), to.lines);
}

} // namespace

void check_on_device(const std::string& role, const hsi_array& array) {
    const auto said = [&] {
        return role + " is declared to be in the memory of CUDA device " + std::to_string(array.device);
    };
    const auto count = static_cast<int>(cuda_devices().size());
    if (!Driver::instance().there() || array.device >= count)
        throw UsageError(said() + ", but there " +
                             (count == 0 ? "is no CUDA device" : "are only " + counted(count, "device")),
                         "Set the array's member 'device' to -1 for host memory.");
    const ContextGuard guard(array.device);
    const Driver& driver = Driver::instance();
    const int ordinal = device_of(array.data);
    if (ordinal == unknown_device)
        throw UsageError(said() + ", but its data are not in the memory of a device",
                         "Set the array's member 'device' to -1 for host memory.");
    if (ordinal != array.device)
        throw UsageError(said() + ", but its data are in the memory of device " + std::to_string(ordinal));
    // Streams 0 to 2 are the default streams, which every device has. Other streams belong to one device.
    const auto number = reinterpret_cast<uintptr_t>(array.stream);
    if (number > 2) {
        void* context = nullptr;
        int device = -1;
        check(driver.stream_context(array.stream, &context), "use the array's stream");
        check(driver.context_push(context), "use the array's stream");
        driver.context_device(&device);
        driver.context_pop(&context);
        int own = -1;
        driver.context_device(&own);
        if (device != own)
            throw UsageError(role + " is in the memory of CUDA device " + std::to_string(array.device) +
                                 ", but its stream belongs to another device",
                             "Use a stream of the array's device.");
    }
    check(driver.stream_wait(array.stream), "wait for the array's stream");
}

void copy_array(int device, const hsi_array& to, const hsi_array& from) {
    const ContextGuard guard(device);
    const bool into = to.device >= 0;
    const auto axes = axes_by_step(into ? to : from);
    const auto bytes = type_bytes(to.type);
    const auto& [outer, middle, inner] = axes;
    const bool rows = to.strides[inner] == bytes && from.strides[inner] == bytes;
    for (int64_t i = 0; i < to.shape[outer]; ++i) {
        char* const t = static_cast<char*>(to.data) + i * to.strides[outer];
        char* const f = static_cast<char*>(from.data) + i * from.strides[outer];
        if (rows) {
            copy_rows({t, to.strides[middle], into}, {f, from.strides[middle], !into},
                      to.shape[inner] * bytes, to.shape[middle]);
            continue;
        }
        for (int64_t j = 0; j < to.shape[middle]; ++j)
            copy_rows({t + j * to.strides[middle], to.strides[inner], into},
                      {f + j * from.strides[middle], from.strides[inner], !into}, bytes, to.shape[inner]);
    }
}

void copy_to_host(int device, const CubeView<float>& to, const CubeView<float>& from) {
    const ContextGuard guard(device);
    const auto bytes = [](int64_t floats) { return floats * static_cast<int64_t>(sizeof(float)); };
    const bool pinned_there = device_of(to.data) != unknown_device;
    if (pinned_there && (to.line_stride == to.samples || to.lines == 1)) return copy_packed(to, from);
    // Otherwise, the values are copied through pinned memory, and from there to the requested layout.
    const PinnedMemory pinned(device, static_cast<size_t>(bytes(int64_t{to.bands} * to.lines * to.samples)));
    const auto packed =
        CubeView<float>::packed(reinterpret_cast<float*>(pinned.data()), to.bands, to.lines, to.samples);
    copy_packed(packed, from);
    const auto row = static_cast<size_t>(bytes(to.samples));
    for (int b = 0; b < to.bands; ++b) {
        if (to.line_stride == to.samples) {
            std::memcpy(to.row(b, 0), packed.row(b, 0), row * static_cast<size_t>(to.lines));
            continue;
        }
        for (int64_t y = 0; y < to.lines; ++y)
            std::memcpy(to.row(b, y), packed.row(b, y), row);
    }
}

DeviceCopy::~DeviceCopy() {
    if (m_view.data == nullptr) return;
    try {
        const ContextGuard guard(m_device);
        KeptCopies::instance().give_back(m_device, reinterpret_cast<uintptr_t>(m_view.data), m_bytes);
    } catch (const Error&) {
        // The failure was reported where it occurred.
    }
}

bool DeviceCopy::take(int device, const stream::CubeShape& shape) const {
    std::call_once(m_taken, [&] {
        if (!Driver::instance().there()) return;
        const ContextGuard guard(device);
        m_device = device;
        m_bytes = shape.float_bytes();
        auto* const at = reinterpret_cast<float*>(KeptCopies::instance().take(device, m_bytes));
        m_view = CubeView<float>::packed(at, shape.bands, shape.lines, shape.samples);
    });
    return m_view.data != nullptr;
}

void DeviceCopy::fill(const std::function<std::unique_ptr<stream::CubeReader>()>& open, int threads) const {
    std::call_once(m_filled, [&] {
        constexpr int64_t chunk = int64_t{4} << 20; // bytes of pinned memory per thread
        const int64_t line = static_cast<int64_t>(sizeof(float)) * m_view.bands * m_view.samples,
                      lines = std::clamp<int64_t>(chunk / line, 1, m_view.lines);
        struct Member {
            std::unique_ptr<stream::CubeReader> reader;
            PinnedMemory pinned;
        };
        std::vector<Member> all(static_cast<size_t>(std::max(1, threads)));
        parallel::for_each(
            (m_view.lines + lines - 1) / lines, threads, nullptr, [&](int64_t unit, int member) {
                Member& own = all[static_cast<size_t>(member)];
                if (!own.reader) own = {open(), PinnedMemory(m_device, static_cast<size_t>(lines * line))};
                const Rect window{0, unit * lines, m_view.samples,
                                  std::min(lines, m_view.lines - unit * lines)};
                const auto here = CubeView<float>::packed(reinterpret_cast<float*>(own.pinned.data()),
                                                          m_view.bands, window.h, window.w);
                own.reader->read(window, here);
                const ContextGuard guard(m_device);
                const auto to = m_view.cut(0, window.y, window.w, window.h);
                const auto bytes = [](int64_t floats) {
                    return floats * static_cast<int64_t>(sizeof(float));
                };
                copy_rows({reinterpret_cast<char*>(to.data), bytes(to.band_stride), true},
                          {own.pinned.data(), bytes(here.band_stride), false}, bytes(window.h * window.w),
                          m_view.bands);
            });
    });
}

PinnedMemory::PinnedMemory(int device, size_t bytes) : m_bytes(bytes) {
    constexpr size_t least = size_t{64} << 10;
    constexpr unsigned portable = 1; // CU_MEMHOSTALLOC_PORTABLE
    m_bytes = std::max(m_bytes, least);
    m_device = device;
    if (void* const kept = Pool::instance().take(m_bytes)) {
        m_data = static_cast<char*>(kept);
        return;
    }
    const ContextGuard guard(device);
    void* made = nullptr;
    if (Driver::instance().host_allocate(&made, m_bytes, portable) != 0) {
        made = ::operator new(m_bytes);
        m_device = -1;
    }
    m_data = static_cast<char*>(made);
}

PinnedMemory::~PinnedMemory() {
    if (m_data == nullptr) return;
    if (m_device < 0)
        ::operator delete(m_data);
    else if (!Pool::instance().keep(m_data, m_bytes))
        Driver::instance().host_free(m_data);
}

HostArray::HostArray(const hsi_array& like) : array(like) {
    array.device = -1;
    array.stream = nullptr;
    const auto axes = axes_by_step(like);
    int64_t step = type_bytes(like.type);
    for (size_t k = axes.size(); k-- > 0;) {
        array.strides[axes[k]] = step;
        step *= like.shape[axes[k]];
    }
    memory = PinnedMemory(like.device, static_cast<size_t>(step));
    array.data = memory.data();
}

const hsi_array& HostCopy::array() const {
    std::call_once(m_once, [this] {
        m_copy = HostArray(m_of);
        copy_array(m_of.device, m_copy.array, m_of);
    });
    return m_copy.array;
}

} // namespace hsi::arrays
