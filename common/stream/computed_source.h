// SPDX-License-Identifier: MIT
// The result of an operation on a cube, as a cube that other operations read: a link of a chain. Nothing is
// stored: a tile is computed when it is read, and its input is read with the operation's halo around it, so
// that the halos of a chain add up.
#pragma once

#include "core/cost.h"
#include "core/cuda_module.h"
#include "core/json.h"
#include "stream/kept_lines.h"
#include "stream/operation.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::stream {

/// The operation of a link, which gathers nothing and has no align_samples() and align_lines(), and the ways
/// to repeat it.
struct LinkWork {
    LinkWork() = default;
    LinkWork(std::shared_ptr<Operation> o) : operation(std::move(o)) {}

    std::shared_ptr<Operation> operation;
    /// For operations with few numbers per pixel that need most of the work (what SPP finds by looking around
    /// a pixel). `finding` is the operation with these numbers as a further, last output; `repeating` makes
    /// its first output from the bands behind and these numbers as further bands, without a neighbourhood.
    /// Null if the operation has no such numbers.
    std::shared_ptr<Operation> finding, repeating;
    Cost per_pixel; ///< the cost of a pixel
    /// A value takes far longer to compute than to be written to a file and read again.
    bool dear = false;
    /// Makes the same operation on devices, from its module; empty if there is no such code. Throws Error if
    /// the module is missing or the device does not start.
    std::function<std::shared_ptr<Operation>(const std::vector<CudaDevice>& devices)> on_devices;
};

/// Results that several sources of one link, opened one after the other, pass on.
struct LinkStore {
    std::shared_ptr<KeptLines> lines; ///< null: nothing yet
    bool decided = false;             ///< whether any values are kept
};

/// hsi_cuda_links_replace of module links: replaces values in the memory of a device.
using DeviceReplace = void (*)(int device, float* values, size_t count, float value, float by);

/// The values equal those of a pass with this operation, to the last bit, for any windows.
class ComputedSource final : public CubeSource {
  public:
    /// Output `output` of `work`, which is made for this source, since its worker computes all outputs.
    /// `store`: shared with sources that will compute the same. Throws Error if the output does not exist.
    ComputedSource(std::shared_ptr<const CubeSource> behind, LinkWork work, size_t output = 0,
                   std::shared_ptr<LinkStore> store = nullptr);

    CubeShape shape() const override { return m_shape; }
    /// As the layout of the cube behind it, but with tiles of a few halos, so that most pixels are computed
    /// once.
    BlockLayout layout() const override;
    std::unique_ptr<CubeReader> open_reader() const override;
    uint64_t reader_bytes() const override { return m_behind->reader_bytes(); }
    uint64_t window_bytes(int64_t samples, int64_t lines) const override;
    uint64_t stored_bytes_per_pixel() const override { return m_behind->stored_bytes_per_pixel(); }
    int computes_on() const override;
    uint64_t device_bytes(int64_t samples, int64_t lines) const override;

    /// Call this while no reader is open: from now on this link computes on `devices`, with the values of a
    /// pass there. Results that were kept for pixels are dropped. \return false where its operation has no
    /// code for devices: it stays on the CPU. Throws Error as LinkWork::on_devices does.
    bool compute_on(const std::vector<CudaDevice>& devices);
    bool on_devices() const { return m_on_devices; }
    /// Replaces `value` by `by`, on devices, too, as in a file where `by` marks nodata.
    void replace(float value, float by) { m_replaced = {value, by}; }

    /// The halo of this link alone, without kept numbers.
    int64_t halo() const { return m_work.operation->halo(); }
    const Cost& per_pixel() const { return m_work.per_pixel; }

    /// Call this once, before any reader is opened: returns how many of `most` bytes this link takes to keep
    /// the values that it computes from now on. It keeps a pixel's few numbers where the operation has such,
    /// and with a store all values: in memory, or, for values that take long to compute, in a temporary file
    /// in `folder` (empty: never). Values that do not fit are computed again.
    uint64_t take_memory(uint64_t most, const std::string& folder);
    /// How values are kept: "numbers", "memory", "file"; null: every reader computes them again.
    const char* kept() const;

  private:
    class Reader;
    bool keeps_numbers() const { return m_kept && m_work.finding != nullptr; }
    bool keeps_values() const { return m_kept && m_work.finding == nullptr; }
    /// Where its numbers are there nothing looks around a pixel any more.
    int64_t halo_now() const { return m_kept && m_kept->complete() ? 0 : halo(); }
    Operation& operation() const { return keeps_numbers() ? *m_work.finding : *m_work.operation; }
    /// Lines of a window that are computed in one go: all, or few where they can be had one by one and stay
    /// in the processor's caches on their way through the chain.
    int64_t lines_at_once(int64_t samples, int64_t lines, int64_t halo) const;
    /// The limits of a worker for windows of this size.
    TileLimits limits(int64_t samples, int64_t lines, int64_t halo) const;

    std::shared_ptr<const CubeSource> m_behind;
    LinkWork m_work;
    bool m_on_devices = false;
    std::optional<std::pair<float, float>> m_replaced; ///< replace()
    DeviceReplace m_replace_there = nullptr;
    mutable std::atomic<int> m_readers{0}; ///< opened so far: they take turns on the devices
    size_t m_output;
    std::shared_ptr<LinkStore> m_store;
    std::shared_ptr<KeptLines> m_kept; ///< the numbers where there are such, else the values
    CubeShape m_shape;
};

/// An operation by its name, with all its settings: the description of a link in a file.
struct Link {
    std::string operation;          ///< "spp"
    Json settings = Json::object(); ///< its own
    size_t output = 0;              ///< of its outputs
};

/// Makes the operation of a link for a cube of this shape. Throws Error if settings are damaged, or belong to
/// another cube.
using LinkMaker = LinkWork (*)(const Link& link, const CubeShape& scene);
/// Code that knows the operations sets it once, before any link is made: this room knows no operation.
inline LinkMaker link_maker = nullptr;
/// Uses link_maker. Throws Error as it does, and if it is not set.
LinkWork make_operation(const Link& link, const CubeShape& scene);

} // namespace hsi::stream
