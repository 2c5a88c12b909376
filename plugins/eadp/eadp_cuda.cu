// SPDX-License-Identifier: MIT
// hsi_cuda_eadp.so: the passes of a profile on one GPU. When every pass sees the whole scene in one tile, the
// component planes, their mask and their gradients stay on the device from the first pass to the last.
#include "core/error.h"
#include "core/process_owner.h"
#include "cuda/copy.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/lane_operation.h"
#include "cuda/pinned.h"
#include "cuda/stream.h"
#include "eadp/eadp.h"
#include "eadp/eadp_cuda_kernels.cuh"
#include "eadp/gradient.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

namespace hsi::eadp {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceGuard;
using stream::TileLimits;

size_t window_pixels(const TileLimits& l) { return static_cast<size_t>(l.window_samples * l.window_lines); }
size_t core_pixels(const TileLimits& l) { return static_cast<size_t>(l.core_samples * l.core_lines); }

gpu::Core core_of(const Tile& tile) {
    return {static_cast<int>(tile.core.x - tile.window.x), static_cast<int>(tile.core.y - tile.window.y),
            static_cast<int>(tile.core.w), static_cast<int>(tile.core.h)};
}

void copy_in(float* to, const CubeView<float>& in, cudaStream_t stream) {
    cuda::copy_cube(CubeView<float>::packed(to, in.bands, in.lines, in.samples), in, stream);
}

void copy_out(const CubeView<float>& out, float* from, cudaStream_t stream) {
    cuda::copy_cube(out, CubeView<float>::packed(from, out.bands, out.lines, out.samples), stream);
}

/// The planes, mask and squared gradients of one window.
struct Gradients {
    DeviceBuffer<float> x;
    DeviceBuffer<uint8_t> valid;
    DeviceBuffer<double> squared;
    gpu::Planes planes;

    Gradients(int components, size_t pixels)
        : x(static_cast<size_t>(components) * pixels), valid(pixels),
          squared(static_cast<size_t>(components) * pixels) {}
    static uint64_t bytes(int components, size_t pixels) {
        return pixels * (static_cast<uint64_t>(components) * 12 + 1);
    }
};

/// Computes the Gradients of a window. The class owns the scratch memory.
class GradientMaker {
  public:
    GradientMaker(const Options& options, int components, size_t pixels, cudaStream_t stream)
        : m_zero_is_invalid(options.zero_is_invalid), m_radius(gaussian_radius(options.sigma)),
          m_weights(gaussian_weights(options.sigma).size()),
          m_row_sums(planes_needed(m_radius) * static_cast<size_t>(components + 1) * pixels),
          m_smooth(planes_needed(m_radius) * static_cast<size_t>(components) * pixels),
          m_column_weight(planes_needed(m_radius) * pixels) {
        const auto weights = gaussian_weights(options.sigma);
        m_weights.upload(weights.data(), weights.size(), stream);
        HSI_CUDA_CHECK(cudaStreamSynchronize(stream)); // `weights` must outlive the copy.
    }
    static uint64_t bytes(const Options& options, int components, size_t pixels) {
        return planes_needed(gaussian_radius(options.sigma)) * pixels *
                   (static_cast<uint64_t>(components) * 16 + 16) +
               4096;
    }

    void make(const CubeView<float>& in, Gradients& g, cudaStream_t stream) {
        g.planes = {g.x.data(), in.bands, static_cast<int>(in.samples), static_cast<int>(in.lines)};
        copy_in(g.x.data(), in, stream);
        gpu::launch_mask(g.planes, m_zero_is_invalid, g.valid.data(), stream);
        const gpu::GradientWork work{m_weights.data(), m_radius, m_row_sums.data(), m_smooth.data(),
                                     m_column_weight.data()};
        gpu::launch_gradient(g.planes, g.valid.data(), work, g.squared.data(), {}, nullptr, stream);
    }

  private:
    static size_t planes_needed(int radius) { return gpu::gradient_needs_planes(radius) ? 1 : 0; }
    const bool m_zero_is_invalid;
    const int m_radius;
    DeviceBuffer<double> m_weights, m_row_sums, m_smooth, m_column_weight;
};

/// All copies of a scene on the device, ordered by component.
struct KeptCopies {
    DeviceBuffer<float> values;
    int components = 0, copies = 0; ///< copies: number of copies per component
    int64_t samples = 0, lines = 0;
};

/// The data that stays on the device between the passes over a whole scene.
struct Session {
    bool whole_scene = false;
    std::unique_ptr<Gradients> kept;
    std::shared_ptr<KeptCopies> copies; ///< copies of the last diffusion with Way::kept
};

/// The common part of all three passes: a worker's stream, and gradients that are computed or kept.
class GradientWorker : public stream::Worker {
  public:
    /// Precondition: `ordinal` is the current device.
    GradientWorker(int ordinal, const Options& options, int components, const TileLimits& limits,
                   Session& session)
        : m_ordinal(ordinal), m_options(options), m_components(components), m_pixels(window_pixels(limits)),
          m_session(session) {
        if (!m_session.kept) m_maker.emplace_back(options, components, m_pixels, m_stream.get());
    }
    static uint64_t bytes(const Options& options, int components, size_t pixels) {
        return Gradients::bytes(components, pixels) + GradientMaker::bytes(options, components, pixels);
    }

  protected:
    const Gradients& gradients(const CubeView<float>& in) {
        if (m_session.kept) {
            // Kept gradients cover the whole scene. A smaller tile would have other window coordinates.
            if (in.samples != m_session.kept->planes.samples || in.lines != m_session.kept->planes.lines)
                throw Error("internal: a tile where the whole scene stays on the device");
            return *m_session.kept;
        }
        if (!m_own) m_own = std::make_unique<Gradients>(m_components, m_pixels);
        if (m_session.whole_scene &&
            // Components may have been collected in memory that is not pinned.
            !cuda::on_device(in))
            m_pinned.emplace(in.data, sizeof(float) * static_cast<size_t>(in.bands * in.band_stride));
        m_maker.front().make(in, *m_own, m_stream.get());
        if (!m_session.whole_scene) return *m_own;
        m_session.kept = std::move(m_own); // Safe, since one worker processes the only tile.
        return *m_session.kept;
    }
    void finish() {
        m_done.record(m_stream.get());
        m_done.wait();
        m_pinned.reset();
    }
    cudaStream_t stream() const { return m_stream.get(); }
    const int m_ordinal;
    const Options& m_options;

  private:
    const int m_components;
    const size_t m_pixels;
    Session& m_session;
    cuda::Stream m_stream;
    cuda::Event m_done;
    std::vector<GradientMaker> m_maker;
    std::unique_ptr<Gradients> m_own;
    std::optional<cuda::PinnedRange> m_pinned; ///< pins a tile while it is copied
};

class RangeWorker final : public GradientWorker {
  public:
    RangeWorker(int ordinal, const Options& options, int components, const TileLimits& limits,
                Session& session)
        : GradientWorker(ordinal, options, components, limits, session),
          m_sums(static_cast<size_t>(components)) {
        gpu::clear_ranges(m_sums.data(), components, stream());
    }
    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        const DeviceGuard guard(m_ordinal);
        const auto& g = gradients(in);
        gpu::launch_range(g.planes, g.valid.data(), g.squared.data(), core_of(tile), m_sums.data(), stream());
        finish();
    }
    std::vector<Range> result() {
        const DeviceGuard guard(m_ordinal);
        std::vector<gpu::RangeSums> sums(m_sums.size());
        m_sums.download(sums.data(), sums.size(), stream());
        finish();
        std::vector<Range> ranges;
        ranges.reserve(sums.size());
        for (const auto& s : sums)
            ranges.push_back(gpu::range_of(s));
        return ranges;
    }

  private:
    DeviceBuffer<gpu::RangeSums> m_sums;
};

class HistogramWorker final : public GradientWorker {
  public:
    HistogramWorker(int ordinal, const Options& options, const std::vector<Range>& ranges,
                    const TileLimits& limits, Session& session)
        : GradientWorker(ordinal, options, static_cast<int>(ranges.size()), limits, session),
          m_steepest(ranges.size()), m_counts(ranges.size() * histogram_bins) {
        std::vector<double> steepest;
        for (const auto& r : ranges)
            steepest.push_back(r.steepest);
        m_steepest.upload(steepest.data(), steepest.size(), stream());
        HSI_CUDA_CHECK(cudaStreamSynchronize(stream())); // `steepest` must outlive the copy.
        m_counts.clear(stream());
    }
    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        const DeviceGuard guard(m_ordinal);
        const auto& g = gradients(in);
        gpu::launch_histogram(g.planes, g.valid.data(), g.squared.data(), core_of(tile), m_steepest.data(),
                              m_counts.data(), stream());
        finish();
    }
    void add_to(std::vector<Histogram>& histograms) {
        const DeviceGuard guard(m_ordinal);
        std::vector<unsigned long long> counts(m_counts.size());
        m_counts.download(counts.data(), counts.size(), stream());
        finish();
        for (size_t c = 0; c < histograms.size(); ++c)
            for (size_t b = 0; b < histogram_bins; ++b)
                histograms[c][b] += static_cast<int64_t>(counts[c * histogram_bins + b]);
    }

  private:
    DeviceBuffer<double> m_steepest;
    DeviceBuffer<unsigned long long> m_counts;
};

template <class T>
class DiffusionWorker final : public GradientWorker {
  public:
    DiffusionWorker(int ordinal, const Options& options, const std::vector<Stage>& stages,
                    const std::vector<Contrast>& contrasts, bool with_component, const TileLimits& limits,
                    Session& session, bool keep)
        : GradientWorker(ordinal, options, static_cast<int>(contrasts.size()), limits, session),
          m_stages(stages), m_with_component(with_component), m_keep(keep ? &session : nullptr),
          m_components(static_cast<int>(contrasts.size())), m_k(contrasts.size()), m_level(contrasts.size()),
          m_start(count(contrasts.size(), limits)), m_east(m_start.size()), m_south(m_start.size()),
          m_next(stages.size() > 1 ? m_start.size() : 0),
          m_out(static_cast<size_t>(bands(stages, false)) * contrasts.size() * core_pixels(limits)),
          m_recurrence(ordinal, static_cast<int>(limits.window_samples),
                       static_cast<int>(limits.window_lines), m_components, stages, stream()) {
        std::vector<double> k;
        std::vector<float> level;
        for (const auto& c : contrasts)
            k.push_back(c.k), level.push_back(c.level);
        m_k.upload(k.data(), k.size(), stream());
        m_level.upload(level.data(), level.size(), stream());
        HSI_CUDA_CHECK(cudaStreamSynchronize(stream())); // `k` and `level` must outlive the copy.
    }
    static int bands(const std::vector<Stage>& stages, bool with_component) {
        size_t n = with_component ? 1 : 0;
        for (const auto& s : stages)
            n += s.coefficients.size();
        return static_cast<int>(n);
    }
    static uint64_t bytes(int ordinal, const Options& options, const std::vector<Stage>& stages,
                          int components, const TileLimits& l) {
        const size_t pixels = window_pixels(l);
        return GradientWorker::bytes(options, components, pixels) +
               static_cast<uint64_t>(components) * pixels * sizeof(T) * (stages.size() > 1 ? 4 : 3) +
               static_cast<uint64_t>(components) * static_cast<uint64_t>(bands(stages, false)) *
                   core_pixels(l) * 4 +
               gpu::Recurrence<T>::device_bytes(ordinal, pixels, components, stages);
    }

    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        const DeviceGuard guard(m_ordinal);
        const auto& g = gradients(in);
        gpu::launch_weights<T>(g.planes, g.valid.data(), g.squared.data(), m_k.data(), m_level.data(),
                               m_options.diffusivity, m_start.data(), m_east.data(), m_south.data(),
                               stream());
        const gpu::Core core = core_of(tile);
        const int copies = bands(m_stages, false), all = copies + (m_with_component ? 1 : 0);
        gpu::StageWork<T> work;
        work.components = m_components;
        work.samples = g.planes.samples;
        work.lines = g.planes.lines;
        work.pitch = gpu::padded(work.samples);
        work.start = m_start.data();
        work.east = m_east.data();
        work.south = m_south.data();
        work.valid = g.valid.data();
        work.level = m_level.data();
        work.core = core;
        work.out_bands = copies;
        const size_t plane = static_cast<size_t>(core.w) * static_cast<size_t>(core.h);
        int reach = 0, first = 0;
        for (const auto& s : m_stages)
            reach += s.degree;
        T* from = m_start.data();
        T* to = m_next.data();
        for (size_t s = 0; s < m_stages.size(); ++s) {
            reach -= m_stages[s].degree;
            const Rect region = intersect(grow(Rect{core.x, core.y, core.w, core.h}, reach),
                                          Rect{0, 0, work.samples, work.lines});
            work.start = from;
            work.region = {static_cast<int>(region.x), static_cast<int>(region.y), static_cast<int>(region.w),
                           static_cast<int>(region.h)};
            work.next = s + 1 < m_stages.size() ? to : nullptr;
            work.out = m_out.data() + static_cast<size_t>(first) * plane;
            m_recurrence.run(static_cast<int>(s), work, stream());
            first += static_cast<int>(m_stages[s].coefficients.size());
            std::swap(from, to);
        }
        if (m_keep != nullptr) {
            finish();
            m_keep->copies = std::make_shared<KeptCopies>();
            *m_keep->copies = {std::move(m_out), m_components, copies, work.samples, work.lines};
            return;
        }
        for (int c = 0; c < m_components; ++c) {
            CubeView<float> bands_of = out[0];
            bands_of.data = out[0].row(c * all + (m_with_component ? 1 : 0), 0);
            bands_of.bands = copies;
            copy_out(bands_of, m_out.data() + static_cast<size_t>(c * copies) * plane, stream());
        }
        if (m_with_component) {
            m_host_valid.resize(g.planes.pixels());
            HSI_CUDA_CHECK(cudaMemcpyAsync(m_host_valid.data(), g.valid.data(), m_host_valid.size(),
                                           cudaMemcpyDeviceToHost, stream()));
        }
        finish();
        if (m_with_component)
            for (int c = 0; c < m_components; ++c)
                for (int64_t y = 0; y < core.h; ++y) {
                    const float* const x = in.row(c, core.y + y) + core.x;
                    const uint8_t* const valid = m_host_valid.data() + (core.y + y) * in.samples + core.x;
                    float* const o = out[0].row(c * all, y);
                    for (int64_t i = 0; i < core.w; ++i)
                        o[i] = valid[i] ? x[i] : std::numeric_limits<float>::quiet_NaN();
                }
    }

  private:
    /// Returns the number of values in planes with padded lines.
    static size_t count(size_t components, const TileLimits& l) {
        return components * static_cast<size_t>(gpu::padded(static_cast<int>(l.window_samples))) *
               static_cast<size_t>(l.window_lines);
    }

    const std::vector<Stage>& m_stages;
    const bool m_with_component;
    Session* const m_keep; ///< receives the copies; null: the copies go to host memory
    const int m_components;
    DeviceBuffer<double> m_k;
    DeviceBuffer<float> m_level;
    DeviceBuffer<T> m_start, m_east, m_south, m_next;
    DeviceBuffer<float> m_out;
    gpu::Recurrence<T> m_recurrence;
    std::vector<uint8_t> m_host_valid;
};

/// Throws if a window has more pixels than 32-bit indices on the device can address.
void check_pixels(const TileLimits& l) {
    // Each line is one row of the launch grid, and a grid has at most 65535 rows.
    cuda::check_pixels(l, l.window_lines > 65535 ? 0 : std::numeric_limits<int>::max());
}

class CudaRangeScan final : public RangeScan {
  public:
    CudaRangeScan(int ordinal, Options options, int components, Session& session)
        : m_ordinal(ordinal), m_options(std::move(options)), m_session(session),
          m_result(static_cast<size_t>(components)) {}
    int64_t halo() const override { return gradient_halo(m_options); }
    bool reads_in_place() const override { return m_session.whole_scene; }
    int takes_from() const override { return m_session.whole_scene ? m_ordinal : -1; }
    uint64_t device_bytes(const TileLimits& l) const override {
        return GradientWorker::bytes(m_options, static_cast<int>(m_result.size()), window_pixels(l));
    }
    std::shared_ptr<HostAllocator> allocator() const override {
        return std::make_shared<cuda::PinnedAllocator>(m_ordinal);
    }
    std::unique_ptr<stream::Worker> start(int, const TileLimits& l) override {
        check_pixels(l);
        const DeviceGuard guard(m_ordinal);
        return std::make_unique<RangeWorker>(m_ordinal, m_options, static_cast<int>(m_result.size()), l,
                                             m_session);
    }
    void stop(stream::Worker& worker) override {
        const auto ranges = static_cast<RangeWorker&>(worker).result();
        for (size_t c = 0; c < m_result.size(); ++c) {
            Range& r = m_result[c];
            const Range& o = ranges[c];
            if (o.valid == 0) continue;
            r.lowest = r.valid > 0 ? std::min(r.lowest, o.lowest) : o.lowest;
            r.highest = r.valid > 0 ? std::max(r.highest, o.highest) : o.highest;
            r.steepest = std::max(r.steepest, o.steepest);
            r.valid += o.valid;
        }
    }
    const std::vector<Range>& result() const override { return m_result; }

  private:
    const int m_ordinal;
    const Options m_options;
    Session& m_session;
    std::vector<Range> m_result;
};

class CudaHistogramScan final : public HistogramScan {
  public:
    CudaHistogramScan(int ordinal, Options options, std::vector<Range> ranges, Session& session)
        : m_ordinal(ordinal), m_options(std::move(options)), m_ranges(std::move(ranges)), m_session(session),
          m_result(m_ranges.size()) {
        for (auto& h : m_result)
            h.fill(0);
    }
    int64_t halo() const override { return gradient_halo(m_options); }
    bool reads_in_place() const override { return m_session.whole_scene; }
    int takes_from() const override { return m_session.whole_scene ? m_ordinal : -1; }
    uint64_t device_bytes(const TileLimits& l) const override {
        return GradientWorker::bytes(m_options, static_cast<int>(m_result.size()), window_pixels(l));
    }
    std::shared_ptr<HostAllocator> allocator() const override {
        return std::make_shared<cuda::PinnedAllocator>(m_ordinal);
    }
    std::unique_ptr<stream::Worker> start(int, const TileLimits& l) override {
        check_pixels(l);
        const DeviceGuard guard(m_ordinal);
        return std::make_unique<HistogramWorker>(m_ordinal, m_options, m_ranges, l, m_session);
    }
    void stop(stream::Worker& worker) override { static_cast<HistogramWorker&>(worker).add_to(m_result); }
    const std::vector<Histogram>& result() const override { return m_result; }

  private:
    const int m_ordinal;
    const Options m_options;
    const std::vector<Range> m_ranges;
    Session& m_session;
    std::vector<Histogram> m_result;
};

class CudaDiffusion final : public stream::Operation {
  public:
    /// If `keep` is true, the copies stay in the session, on the device.
    CudaDiffusion(int ordinal, Diffusion diffusion, Session& session, bool keep)
        : m_ordinal(ordinal), m_d(std::move(diffusion)), m_session(session), m_keep(keep) {}
    int64_t halo() const override { return halo_of(m_d.options, m_d.stages); }
    bool reads_in_place() const override { return m_keep; }
    int takes_from() const override { return m_keep ? m_ordinal : -1; }
    std::vector<int> output_bands() const override {
        if (m_keep) return {};
        return {DiffusionWorker<float>::bands(m_d.stages, m_d.with_component) * components()};
    }
    // The halo is expensive, so tiles are as large as memory allows.
    uint64_t preferred_bytes() const override { return 0; }
    uint64_t scratch_bytes(const TileLimits& l) const override { return window_pixels(l); }
    uint64_t device_bytes(const TileLimits& l) const override {
        return single() ? DiffusionWorker<float>::bytes(m_ordinal, m_d.options, m_d.stages, components(), l)
                        : DiffusionWorker<double>::bytes(m_ordinal, m_d.options, m_d.stages, components(), l);
    }
    std::shared_ptr<HostAllocator> allocator() const override {
        return std::make_shared<cuda::PinnedAllocator>(m_ordinal);
    }
    std::unique_ptr<stream::Worker> start(int, const TileLimits& l) override {
        check_pixels(l);
        const DeviceGuard guard(m_ordinal);
        if (single())
            return std::make_unique<DiffusionWorker<float>>(m_ordinal, m_d.options, m_d.stages, m_d.contrasts,
                                                            m_d.with_component, l, m_session, m_keep);
        return std::make_unique<DiffusionWorker<double>>(m_ordinal, m_d.options, m_d.stages, m_d.contrasts,
                                                         m_d.with_component, l, m_session, m_keep);
    }

  private:
    bool single() const { return m_d.options.precision == Precision::single_precision; }
    int components() const { return static_cast<int>(m_d.contrasts.size()); }
    const int m_ordinal;
    const Diffusion m_d;
    Session& m_session;
    const bool m_keep;
};

/// Sets out[c][p] = x[c][p] where the pixel is valid, otherwise NaN. One thread per pixel, one component per
/// blockIdx.y.
__global__ void masked_kernel(gpu::Planes planes, const uint8_t* __restrict__ valid,
                              float* __restrict__ out) {
    const size_t p = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x, pixels = planes.pixels();
    if (p >= pixels) return;
    const size_t at = static_cast<size_t>(blockIdx.y) * pixels + p;
    out[at] = valid[p] != 0 ? planes.x[at] : nanf("");
}

/// Writes tiles of the profile from the copies that are kept on the device.
class CudaKeptOutput final : public stream::Operation {
  public:
    CudaKeptOutput(int ordinal, bool zero_is_invalid, std::shared_ptr<KeptCopies> kept)
        : m_ordinal(ordinal), m_zero_is_invalid(zero_is_invalid), m_kept(std::move(kept)) {}
    std::vector<int> output_bands() const override { return {m_kept->components * (m_kept->copies + 1)}; }
    bool reads_in_place() const override { return true; }
    int takes_from() const override { return m_ordinal; }
    int puts_on() const override { return m_ordinal; }
    uint64_t scratch_bytes(const TileLimits& l) const override { return KeptOutputWorker::bytes(l); }
    /// Returns the device bytes for the components, the masked components and the mask of a tile.
    uint64_t device_bytes(const TileLimits& l) const override {
        return process_is_ours() ? 0 : core_pixels(l) * (8 * static_cast<uint64_t>(m_kept->components) + 1);
    }
    std::shared_ptr<HostAllocator> allocator() const override {
        return std::make_shared<cuda::PinnedAllocator>(m_ordinal);
    }
    std::unique_ptr<stream::Worker> start(int, const TileLimits& l) override {
        const DeviceGuard guard(m_ordinal);
        return std::make_unique<Lane>(m_ordinal, m_zero_is_invalid, *m_kept, l);
    }

  private:
    struct Lane final : KeptOutputWorker {
        /// Precondition: `device` is the current device.
        Lane(int device, bool zeros_are_invalid, const KeptCopies& k, const TileLimits& l)
            : KeptOutputWorker(zeros_are_invalid, k.copies, l), ordinal(device),
              zero_is_invalid(zeros_are_invalid), kept(k) {}
        void process(const Tile& tile, const CubeView<float>& in,
                     const std::vector<CubeView<float>>& out) override {
            const DeviceGuard guard(ordinal);
            if (cuda::on_device(in) || cuda::on_device(out[0]))
                put(tile, in, out[0]);
            else
                KeptOutputWorker::process(tile, in, out);
        }
        /// Writes the components or the profile to device memory.
        void put(const Tile& tile, const CubeView<float>& in, const CubeView<float>& out) {
            const size_t pixels = static_cast<size_t>(in.lines * in.samples),
                         values = static_cast<size_t>(in.bands) * pixels;
            const DeviceBuffer<float> own(in.is_packed() && cuda::on_device(in) ? 0 : values), masked(values);
            const DeviceBuffer<uint8_t> valid(pixels);
            if (own.size() > 0) copy_in(own.data(), in, stream.get());
            const gpu::Planes planes{own.size() > 0 ? own.data() : in.data, in.bands,
                                     static_cast<int>(in.samples), static_cast<int>(in.lines)};
            gpu::launch_mask(planes, zero_is_invalid, valid.data(), stream.get());
            constexpr unsigned threads = 256;
            masked_kernel<<<dim3(static_cast<unsigned>((pixels + threads - 1) / threads),
                                 static_cast<unsigned>(in.bands)),
                            threads, 0, stream.get()>>>(planes, valid.data(), masked.data());
            HSI_CUDA_LAUNCHED("masked_kernel");
            for (int c = 0; c < in.bands; ++c) {
                CubeView<float> to = out;
                to.data = out.row(c * (kept.copies + 1), 0);
                to.bands = 1;
                cuda::copy_cube(to,
                                CubeView<float>::packed(masked.data() + static_cast<size_t>(c) * pixels, 1,
                                                        in.lines, in.samples),
                                stream.get());
                to.data = out.row(c * (kept.copies + 1) + 1, 0);
                to.bands = kept.copies;
                copy(tile.core, c, to);
            }
            finish();
        }
        void copy(const Rect& core, int component, const CubeView<float>& to) override {
            const DeviceGuard guard(ordinal);
            auto from = CubeView<float>::packed(kept.values.data(), kept.components * kept.copies, kept.lines,
                                                kept.samples)
                            .cut(core.x, core.y, core.w, core.h);
            from.data += component * kept.copies * from.band_stride;
            from.bands = kept.copies;
            cuda::copy_cube(to, from, stream.get());
        }
        void finish() override {
            const DeviceGuard guard(ordinal);
            done.record(stream.get());
            done.wait();
        }
        const int ordinal;
        const bool zero_is_invalid;
        const KeptCopies& kept;
        cuda::Stream stream;
        cuda::Event done;
    };
    const int m_ordinal;
    const bool m_zero_is_invalid;
    const std::shared_ptr<KeptCopies> m_kept;
};

class CudaBackend final : public Backend {
  public:
    explicit CudaBackend(CudaDevice device) : m_device(std::move(device)) {}
    std::unique_ptr<RangeScan> make_range_scan(const Options& options, int components) override {
        m_session.kept.reset();
        return std::make_unique<CudaRangeScan>(m_device.ordinal, options, components, m_session);
    }
    std::unique_ptr<HistogramScan> make_histogram_scan(const Options& options,
                                                       const std::vector<Range>& ranges) override {
        return std::make_unique<CudaHistogramScan>(m_device.ordinal, options, ranges, m_session);
    }
    std::unique_ptr<stream::Operation> make_diffusion(const Diffusion& diffusion, Way way) override {
        if (way != Way::kept && way != Way::one_tile && way != Way::tiles) return nullptr;
        Diffusion made = diffusion;
        const bool keep = way == Way::kept;
        if (keep) {
            m_session.copies.reset();
            made.with_component = false;
        }
        return std::make_unique<CudaDiffusion>(m_device.ordinal, std::move(made), m_session, keep);
    }
    std::unique_ptr<stream::Operation> make_kept_output(const Options& options) override {
        return std::make_unique<CudaKeptOutput>(m_device.ordinal, options.zero_is_invalid,
                                                std::move(m_session.copies));
    }
    std::string describe() const override {
        return "CUDA " + std::to_string(m_device.ordinal) + " (" + m_device.name + ")";
    }
    uint64_t free_memory() const override { return cuda::free_memory(m_device.ordinal); }
    bool wants_whole_scene() const override { return true; }
    void keep_planes(bool whole_scene) override {
        m_session.kept.reset();
        m_session.whole_scene = whole_scene;
    }

  private:
    const CudaDevice m_device;
    Session m_session;
};

} // namespace
} // namespace hsi::eadp

extern "C" __attribute__((visibility("default"))) hsi::eadp::Backend*
hsi_cuda_eadp(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::eadp::CudaBackend(devices.front());
}
