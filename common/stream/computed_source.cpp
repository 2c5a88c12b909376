// SPDX-License-Identifier: MIT
#include "stream/computed_source.h"

#include "core/error.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

namespace hsi::stream {
namespace {

/// The number of bytes that are computed at once if any size is possible. This amount stays in a CPU's caches
/// through all steps. It has room for several lines, since a file is read with one call per band.
constexpr uint64_t cached_bytes = uint64_t{4} << 20;

constexpr int64_t halos_a_tile = 8;

uint64_t cube_bytes(int64_t samples, int64_t lines, int bands) {
    return static_cast<uint64_t>(samples * lines) * static_cast<uint64_t>(bands) * sizeof(float);
}

/// Returns whether half of the free space of the folder's disk suffices; outputs need the other half.
bool folder_has_room(const std::string& folder, uint64_t bytes) {
    std::error_code error;
    const auto space = std::filesystem::space(folder, error);
    return !error && bytes <= space.available / 2;
}

/// Returns null if no file can be created in the folder. The values are then computed again each time.
std::shared_ptr<KeptLines> in_file(const CubeShape& shape, const std::string& folder) {
    try {
        return std::make_shared<KeptLines>(shape, folder);
    } catch (const Error&) {
        return nullptr;
    }
}

} // namespace

class ComputedSource::Reader final : public CubeReader {
  public:
    explicit Reader(const ComputedSource& owner)
        : m_owner(owner), m_behind(owner.m_behind->open_reader()), m_number(owner.m_readers.fetch_add(1)),
          m_first(owner, owner.operation(), 0) {
        if (owner.keeps_numbers())
            m_again.emplace(owner, *owner.m_work.repeating, owner.m_kept->shape().bands);
    }

    void read(const Rect& window, const CubeView<float>& dst) override {
        if (m_owner.keeps_values() && m_owner.m_kept->read(window, dst)) return;
        if (m_again && has_numbers(window)) return in_parts(*m_again, 0, window, dst);
        in_parts(m_first, m_owner.halo(), window, dst);
    }
    /// Returns the result of this step on the device, if it computes there.
    std::optional<CubeView<float>> view_on(int device, const Rect& window) override {
        if (m_owner.computes_on() != device) return std::nullopt;
        const size_t size = static_cast<size_t>(window.area() * m_owner.m_shape.bands);
        if (m_on_device.size() < size) {
            m_on_device = {}; // frees the old memory before new memory is allocated
            m_on_device = HostBuffer<float>(m_owner.operation().device_allocator(), size);
        }
        const auto view =
            CubeView<float>::packed(m_on_device.data(), m_owner.m_shape.bands, window.h, window.w);
        m_first.make_room(m_owner, m_owner.halo(), window, m_number);
        compute(m_first, m_owner.halo(), window, view);
        if (m_owner.m_replaced)
            m_owner.m_replace_there(device, view.data, size, m_owner.m_replaced->first,
                                    m_owner.m_replaced->second);
        return view;
    }
    void prefetch(const Rect& window) override { m_behind->prefetch(with_halo(window, m_owner.halo_now())); }
    uint64_t look_ahead(uint64_t bytes, int threads) override { return m_behind->look_ahead(bytes, threads); }

  private:
    /// A worker for windows of some size, with its buffers.
    struct Work {
        Work(const ComputedSource& owner, Operation& o, int extra)
            : operation(o), extra_bands(extra), outputs(o.output_bands()),
              in_place(extra == 0 && o.reads_in_place()), bands(owner.m_behind->shape().bands + extra) {}

        void make_room(const ComputedSource& owner, int64_t halo, const Rect& window, int lane) {
            if (worker && window.w <= samples && window.h <= asked_lines) return;
            samples = std::max(samples, window.w);
            asked_lines = std::max(asked_lines, window.h);
            lines = owner.lines_at_once(samples, asked_lines, halo);
            const TileLimits limits = owner.limits(samples, asked_lines, halo);
            worker.reset(); // frees the old memory before new memory is allocated
            in = {};
            most_in = static_cast<size_t>(limits.window_samples * limits.window_lines * bands);
            out.clear();
            out.resize(outputs.size());
            worker = operation.start(lane, limits);
        }

        Operation& operation;
        const int extra_bands; ///< bands after those of the cube behind, for the kept numbers of a pixel
        const std::vector<int> outputs;
        const bool in_place;
        const int bands;
        std::unique_ptr<Worker> worker;
        size_t most_in = 0; ///< size of `in`, which is allocated when something must be copied there
        HostBuffer<float> in;
        std::vector<std::vector<float>> out;
        int64_t samples = 0, asked_lines = 0, lines = 1;
    };

    Rect with_halo(const Rect& core, int64_t halo) const {
        const CubeShape scene = m_owner.m_behind->shape();
        return intersect(grow(core, halo), Rect{0, 0, scene.samples, scene.lines});
    }

    bool has_numbers(const Rect& window) {
        m_numbers.resize(
            static_cast<size_t>(window.area() * static_cast<int64_t>(m_owner.m_kept->shape().bands)));
        m_numbers_at = window;
        return m_owner.m_kept->read(
            window,
            CubeView<float>::packed(m_numbers.data(), m_owner.m_kept->shape().bands, window.h, window.w));
    }

    void in_parts(Work& work, int64_t halo, const Rect& window, const CubeView<float>& dst) {
        work.make_room(m_owner, halo, window, m_number);
        for (int64_t y = 0; y < window.h; y += work.lines) {
            const int64_t h = std::min(work.lines, window.h - y);
            compute(work, halo, {window.x, window.y + y, window.w, h}, dst.cut(0, y, window.w, h));
        }
    }

    /// Returns the window of the cube behind, with the numbers of its pixels as bands if the work needs them.
    CubeView<float> taken(Work& work, const Rect& window) {
        if (work.in_place)
            if (const auto there = m_behind->view(window)) return *there;
        if (const int device = work.operation.takes_from(); device >= 0 && work.extra_bands == 0)
            if (const auto there = m_behind->view_on(device, window)) return *there;
        if (work.in.size() < work.most_in)
            work.in = HostBuffer<float>(work.operation.allocator(), work.most_in);
        const auto in = CubeView<float>::packed(work.in.data(), work.bands, window.h, window.w);
        auto behind = in;
        behind.bands -= work.extra_bands;
        m_behind->read(window, behind);
        const auto numbers =
            CubeView<float>::packed(m_numbers.data(), work.extra_bands, m_numbers_at.h, m_numbers_at.w);
        for (int b = 0; b < work.extra_bands; ++b)
            for (int64_t line = 0; line < window.h; ++line)
                std::copy_n(numbers.row(b, window.y - m_numbers_at.y + line), window.w,
                            in.row(behind.bands + b, line));
        return in;
    }

    void compute(Work& work, int64_t halo, const Rect& core, const CubeView<float>& dst) {
        const Tile tile{0, core, with_halo(core, halo)};
        const auto in = taken(work, tile.window);
        // Workers write outputs whose lines are consecutive.
        const bool directly = dst.line_stride == dst.samples;
        std::vector<CubeView<float>> out;
        for (size_t k = 0; k < work.outputs.size(); ++k) {
            if (k == m_owner.m_output && directly) {
                out.push_back(dst);
                continue;
            }
            work.out[k].resize(static_cast<size_t>(core.area() * work.outputs[k]));
            out.push_back(CubeView<float>::packed(work.out[k].data(), work.outputs[k], core.h, core.w));
        }
        work.worker->process(tile, in, out);
        const auto& made = out[m_owner.m_output];
        if (m_owner.m_kept && &work == &m_first && core.w == m_owner.m_shape.samples)
            m_owner.m_kept->keep(core.y, m_again ? out.back() : made);
        if (directly) return;
        for (int b = 0; b < dst.bands; ++b)
            for (int64_t line = 0; line < dst.lines; ++line)
                std::copy_n(made.row(b, line), dst.samples, dst.row(b, line));
    }

    const ComputedSource& m_owner;
    const std::unique_ptr<CubeReader> m_behind;
    const int m_number;
    HostBuffer<float> m_on_device; ///< the result of view_on()
    Work m_first;
    std::optional<Work> m_again; ///< Work that starts from the kept numbers of a pixel.
    std::vector<float> m_numbers;
    Rect m_numbers_at;
};

ComputedSource::ComputedSource(std::shared_ptr<const CubeSource> behind, LinkWork work, size_t output,
                               std::shared_ptr<LinkStore> store)
    : m_behind(std::move(behind)), m_work(std::move(work)), m_output(output), m_store(std::move(store)),
      m_shape(m_behind->shape()) {
    const auto outputs = m_work.operation->output_bands();
    if (output >= outputs.size() || m_work.operation->align_samples() != 1 ||
        m_work.operation->align_lines() != 1)
        throw Error("internal: this operation makes no cube that can be computed when it is read");
    if (output != 0) m_work.finding = m_work.repeating = nullptr;
    m_shape.bands = outputs[output];
}

uint64_t ComputedSource::take_memory(uint64_t most, const std::string& folder) {
    const auto held = [this] { return m_kept && m_kept->in_memory() ? m_kept->shape().float_bytes() : 0; };
    if (m_store && m_store->decided) {
        m_kept = m_store->lines;
        return held();
    }
    CubeShape shape = m_shape;
    if (m_work.finding) shape.bands = m_work.finding->output_bands().back();
    if (m_work.finding || m_store) {
        if (shape.float_bytes() <= most)
            m_kept = std::make_shared<KeptLines>(shape);
        else if (m_store && m_work.dear && !folder.empty() && folder_has_room(folder, shape.float_bytes()))
            m_kept = in_file(shape, folder);
    }
    if (m_store) *m_store = {m_kept, true};
    return held();
}

bool ComputedSource::compute_on(const std::vector<CudaDevice>& devices) {
    if (!m_work.on_devices) return false;
    m_work.operation = m_work.on_devices(devices);
    if (m_replaced && m_work.operation->puts_on() >= 0)
        m_replace_there =
            reinterpret_cast<DeviceReplace>(cuda_module_symbol("links", "hsi_cuda_links_replace"));
    if (keeps_numbers()) m_kept.reset();
    m_work.finding = m_work.repeating = nullptr;
    m_on_devices = true;
    return true;
}

int ComputedSource::computes_on() const {
    // Kept values are in host memory.
    return m_on_devices && !m_kept && m_output == 0 ? m_work.operation->puts_on() : -1;
}

uint64_t ComputedSource::device_bytes(int64_t samples, int64_t lines) const {
    const TileLimits own = limits(samples, lines, halo());
    uint64_t bytes = m_behind->device_bytes(own.window_samples, own.window_lines);
    if (!m_on_devices) return bytes;
    bytes += m_work.operation->device_bytes(own);
    if (computes_on() >= 0) bytes += cube_bytes(samples, lines, m_shape.bands);
    return bytes;
}

const char* ComputedSource::kept() const {
    if (!m_kept) return nullptr;
    return keeps_numbers() ? "numbers" : m_kept->in_memory() ? "memory" : "file";
}

BlockLayout ComputedSource::layout() const {
    BlockLayout layout = m_behind->layout();
    const int64_t around = halo_now();
    if (around == 0) return layout;
    const int64_t least = std::min(halos_a_tile * around, m_shape.lines);
    layout.block_lines = (least + layout.block_lines - 1) / layout.block_lines * layout.block_lines;
    return layout;
}

int64_t ComputedSource::lines_at_once(int64_t samples, int64_t lines, int64_t halo) const {
    // With a few lines at a time, the halo would be computed again, or a block of the file decoded again,
    // each time.
    if (halo > 0 || m_on_devices || m_behind->layout().block_lines > 1) return lines;
    const uint64_t line = cube_bytes(samples, 1, m_behind->shape().bands);
    return std::clamp<int64_t>(static_cast<int64_t>(cached_bytes / std::max<uint64_t>(1, line)), 1, lines);
}

TileLimits ComputedSource::limits(int64_t samples, int64_t lines, int64_t halo) const {
    TileLimits limits;
    limits.core_samples = samples;
    limits.core_lines = lines_at_once(samples, lines, halo);
    limits.window_samples = std::min(samples + 2 * halo, m_shape.samples);
    limits.window_lines = std::min(limits.core_lines + 2 * halo, m_shape.lines);
    return limits;
}

uint64_t ComputedSource::window_bytes(int64_t samples, int64_t lines) const {
    const auto bytes_of = [&](const Operation& operation, int64_t halo, int extra_bands) {
        const TileLimits all = limits(samples, lines, halo);
        const bool on_device =
            operation.takes_from() >= 0 && m_behind->computes_on() == operation.takes_from();
        uint64_t bytes = operation.scratch_bytes(all);
        if (!on_device)
            bytes += cube_bytes(all.window_samples, all.window_lines, m_behind->shape().bands + extra_bands);
        const auto outputs = operation.output_bands();
        for (size_t k = 0; k < outputs.size(); ++k)
            if (k != m_output) bytes += cube_bytes(all.core_samples, all.core_lines, outputs[k]);
        return bytes;
    };
    const bool there = m_kept && m_kept->complete();
    uint64_t bytes = 0;
    if (keeps_numbers()) {
        const int numbers = m_kept->shape().bands;
        bytes += cube_bytes(samples, lines, numbers) + bytes_of(*m_work.repeating, 0, numbers);
    }
    if (keeps_values() && there) return bytes;
    if (!there) bytes += bytes_of(operation(), halo(), 0);
    const TileLimits all = limits(samples, lines, halo_now());
    return bytes + m_behind->window_bytes(all.window_samples, all.window_lines);
}

std::unique_ptr<CubeReader> ComputedSource::open_reader() const { return std::make_unique<Reader>(*this); }

LinkWork make_operation(const Link& link, const CubeShape& scene) {
    if (link_maker == nullptr) throw Error("internal: nobody knows the operation '" + link.operation + "'");
    return link_maker(link, scene);
}

} // namespace hsi::stream
