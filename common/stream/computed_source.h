// SPDX-License-Identifier: MIT
// The result of an operation on a cube, as a cube that other operations read: a step of a virtual scene.
// Nothing is stored. A tile is computed when it is read, and its input is read with the operation's halo
// around it, so the halos of all steps add up.
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

/// The operation of a step, and what a ComputedSource must know about it. The operation must merge no results
/// over tiles, and must leave align_samples() and align_lines() at 1.
struct LinkWork {
    LinkWork() = default;
    LinkWork(std::shared_ptr<Operation> o) : operation(std::move(o)) {}

    std::shared_ptr<Operation> operation;
    /// Both are null, or belong to an operation whose work mostly yields a few numbers per pixel (in SPP, the
    /// search around a pixel). `finding` is the operation with these numbers as an additional, last output.
    /// `repeating` computes the first output of the operation again, without the neighbourhood of a pixel.
    /// Its input is the bands of the cube behind, followed by these numbers as further bands.
    std::shared_ptr<Operation> finding, repeating;
    Cost per_pixel; ///< cost of one pixel
    /// True if computing a value takes far longer than writing it to a file and reading it again.
    bool dear = false;
    /// Creates the same operation on devices, from its module; empty if there is no such code. Throws Error
    /// if the module is missing or the device does not start.
    std::function<std::shared_ptr<Operation>(const std::vector<CudaDevice>& devices)> on_devices;
};

/// Results that several sources of one step share, if they are opened one after another.
struct LinkStore {
    std::shared_ptr<KeptLines> lines; ///< null: no lines are kept yet
    bool decided = false;             ///< true: it is decided whether values are kept
};

/// The function hsi_cuda_links_replace of the CUDA module of the steps. It replaces `value` by `by` among
/// `count` values in the memory of a device.
using DeviceReplace = void (*)(int device, float* values, size_t count, float value, float by);

/// A computed cube. Its values equal those of a pass with this operation, to the last bit, for any windows.
class ComputedSource final : public CubeSource {
  public:
    /// Computes output `output` of `work`. `work` must not be shared with other sources, since the workers of
    /// each source compute all outputs. `store` is shared with sources that compute the same results. Throws
    /// Error if the output does not exist.
    ComputedSource(std::shared_ptr<const CubeSource> behind, LinkWork work, size_t output = 0,
                   std::shared_ptr<LinkStore> store = nullptr);

    CubeShape shape() const override { return m_shape; }
    /// Returns the layout of the cube behind. If the operation has a halo, the blocks are several halos high,
    /// so that most pixels are computed once.
    BlockLayout layout() const override;
    std::unique_ptr<CubeReader> open_reader() const override;
    uint64_t reader_bytes() const override { return m_behind->reader_bytes(); }
    uint64_t window_bytes(int64_t samples, int64_t lines) const override;
    uint64_t stored_bytes_per_pixel() const override { return m_behind->stored_bytes_per_pixel(); }
    int computes_on() const override;
    uint64_t device_bytes(int64_t samples, int64_t lines) const override;

    /// Makes this step compute on `devices`, with the same values as a pass on these devices. Discards kept
    /// numbers (see kept()), which devices do not use. Call this function while no reader is open. \return
    /// false if the operation has no code for devices; the step then remains on the CPU. Throws Error as
    /// LinkWork::on_devices does.
    bool compute_on(const std::vector<CudaDevice>& devices);
    bool on_devices() const { return m_on_devices; }
    /// Makes view_on() return `by` instead of `value`. `value` is the nodata value of the scene, and `by` its
    /// neighbour: a computed value that equals nodata remains valid. read() does not replace it; this is left
    /// to the reader of the scene (raster::StoreRule). Call this function before compute_on().
    void replace(float value, float by) { m_replaced = {value, by}; }

    /// Returns the halo of this step alone, as if no numbers were kept.
    int64_t halo() const { return m_work.operation->halo(); }
    const Cost& per_pixel() const { return m_work.per_pixel; }

    /// Chooses what to keep for later readers, and returns the bytes of memory for it, at most `most`. If the
    /// operation has a few numbers per pixel, these are kept in memory. Otherwise all values are kept, but
    /// only with a store: in memory or, if values take long to compute, in a temporary file in `folder`
    /// (empty: never). What does not fit is computed again by each reader. Call this function once, before
    /// any reader is opened.
    uint64_t take_memory(uint64_t most, const std::string& folder);
    /// Returns what is kept: "numbers" (the few numbers per pixel), or all values in "memory" or in a "file";
    /// null: every reader computes the values again.
    const char* kept() const;

  private:
    class Reader;
    bool keeps_numbers() const { return m_kept && m_work.finding != nullptr; }
    bool keeps_values() const { return m_kept && m_work.finding == nullptr; }
    /// Returns the halo of the windows that are read. It is 0 if the kept numbers or values are complete,
    /// because no neighbourhood is needed then.
    int64_t halo_now() const { return m_kept && m_kept->complete() ? 0 : halo(); }
    Operation& operation() const { return keeps_numbers() ? *m_work.finding : *m_work.operation; }
    /// Returns the number of lines of a window that are computed at once. These are all lines, or a few if
    /// the lines can be read one by one: a few lines remain in the CPU's caches on their way through the
    /// steps.
    int64_t lines_at_once(int64_t samples, int64_t lines, int64_t halo) const;
    /// Returns the limits of a worker for windows of this size.
    TileLimits limits(int64_t samples, int64_t lines, int64_t halo) const;

    std::shared_ptr<const CubeSource> m_behind;
    LinkWork m_work;
    bool m_on_devices = false;
    std::optional<std::pair<float, float>> m_replaced; ///< the arguments of replace()
    DeviceReplace m_replace_there = nullptr;
    /// Number of readers opened so far, by which readers are distributed over the devices.
    mutable std::atomic<int> m_readers{0};
    size_t m_output;
    std::shared_ptr<LinkStore> m_store;
    /// Numbers per pixel if the operation has them, else values; null: nothing is kept.
    std::shared_ptr<KeptLines> m_kept;
    CubeShape m_shape;
};

/// An operation by its name, with all its settings, as a file describes a step.
struct Link {
    std::string operation;          ///< name of the operation: "spp"
    Json settings = Json::object(); ///< settings of the operation
    size_t output = 0;              ///< index of the output
};

/// Creates the operation of a step for a cube of this shape. Throws Error if settings are damaged or belong
/// to another cube.
using LinkMaker = LinkWork (*)(const Link& link, const CubeShape& scene);
/// The function that creates operations. Code that contains the operations sets it once, before any step is
/// created. common/stream itself does not depend on the operations.
inline LinkMaker link_maker = nullptr;
/// Calls link_maker. Throws its errors, and Error if it is not set.
LinkWork make_operation(const Link& link, const CubeShape& scene);

} // namespace hsi::stream
