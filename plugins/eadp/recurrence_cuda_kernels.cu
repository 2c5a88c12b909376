// SPDX-License-Identifier: MIT
// Runs the recurrence stage by stage, with a persistent kernel if the device has room for it, otherwise with
// one launch per sweep. Compiled with -fmad=false: operations are fused only where the source says fma.
#include "core/error.h"
#include "eadp/launch.cuh"
#include "eadp/persistent_cuda_kernels.cuh"

#include <algorithm>

namespace hsi::eadp::gpu {
namespace {

/// Computes one sweep over planes in global memory. The first sweep computes out = cur + flux / 2, each later
/// sweep out = 2 cur - prev + flux.
template <class T>
__global__ void sweep_planes(const T* __restrict__ prev, const T* __restrict__ cur, T* __restrict__ out,
                             const T* __restrict__ east, const T* __restrict__ south, int samples, int lines,
                             bool first) {
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), y = static_cast<int>(blockIdx.y);
    if (x >= samples) return;
    const size_t i = static_cast<size_t>(blockIdx.z) * samples * lines + static_cast<size_t>(y) * samples + x;
    const T c = cur[i];
    // The operations and their order are the same as in sweep.cuh.
    T flux = x + 1 < samples ? east[i] * (cur[i + 1] - c) : T(0);
    if (x > 0) flux = fma(-east[i - 1], c - cur[i - 1], flux);
    if (y > 0) flux = fma(-south[i - samples], c - cur[i - samples], flux);
    if (y + 1 < lines) flux = fma(south[i], cur[i + samples] - c, flux);
    out[i] = first ? fma(T(0.5), flux, c) : fma(T(2), c, -prev[i]) + flux;
}

template <class T>
__global__ void add_planes(const T* __restrict__ y, T* __restrict__ sums, size_t count,
                           const T* __restrict__ coefficients, int copies, int mask, bool fresh) {
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const T v = y[i];
    for (int c = 0; c < copies; ++c) {
        T* const s = sums + static_cast<size_t>(c) * count + i;
        if (fresh)
            *s = coefficients[c] * v;
        else if (mask >> c & 1)
            *s = fma(coefficients[c * group_sweeps], v, *s);
    }
}

template <class T>
__global__ void finish_planes(StageWork<T> work, const T* __restrict__ sums, int first_copy,
                              bool write_next) {
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), y = static_cast<int>(blockIdx.y);
    if (x >= work.samples) return;
    const int component = static_cast<int>(blockIdx.z) % work.components,
              copy = static_cast<int>(blockIdx.z) / work.components;
    const size_t p = static_cast<size_t>(y) * work.samples + x;
    const size_t at = (static_cast<size_t>(component) * work.lines + y) * work.pitch + x;
    const T v = sums[static_cast<size_t>(copy) * work.components * work.lines * work.pitch + at];
    if (write_next && copy == 0) work.next[at] = v;
    const int ox = x - work.core.x, oy = y - work.core.y;
    if (ox < 0 || oy < 0 || ox >= work.core.w || oy >= work.core.h) return;
    const size_t band = static_cast<size_t>(component) * work.out_bands + first_copy + copy;
    work.out[(band * work.core.h + oy) * work.core.w + ox] =
        work.valid[p] ? static_cast<float>(v + static_cast<T>(work.level[component])) : nanf("");
}

int ceil_div(int a, int b) { return (a + b - 1) / b; }

} // namespace

template <class T>
Recurrence<T>::Recurrence(int ordinal, int max_samples, int max_lines, int max_components,
                          const std::vector<Stage>& stages, cudaStream_t stream)
    : m_ordinal(ordinal), m_multiprocessors(multiprocessors_of(ordinal)),
      m_persistent(sizeof(T) == sizeof(float) && fits_persistent(ordinal)) {
    for (const auto& stage : stages) {
        m_degrees.push_back(stage.degree);
        m_batches.emplace_back();
        for (size_t first = 0; first < stage.coefficients.size(); first += batch_copies) {
            Batch b;
            b.first_copy = static_cast<int>(first);
            b.copies = static_cast<int>(std::min<size_t>(batch_copies, stage.coefficients.size() - first));
            size_t terms = 0;
            for (int c = 0; c < b.copies; ++c)
                terms = std::max(terms, stage.coefficients[first + static_cast<size_t>(c)].size());
            b.groups = std::max(1, ceil_div(static_cast<int>(terms) - 1, group_sweeps));
            b.coefficients = m_host_coefficients.size();
            b.masks = m_host_masks.size();
            for (int c = 0; c < batch_copies; ++c)
                m_host_coefficients.push_back(
                    c < b.copies ? static_cast<T>(stage.coefficients[first + static_cast<size_t>(c)][0])
                                 : T(0));
            for (int g = 0; g < b.groups; ++g) {
                int mask = 0;
                for (int c = 0; c < batch_copies; ++c)
                    for (int j = 0; j < group_sweeps; ++j) {
                        const auto k = static_cast<size_t>(1 + g * group_sweeps + j);
                        const bool there =
                            c < b.copies && k < stage.coefficients[first + static_cast<size_t>(c)].size();
                        if (there) mask |= 1 << c;
                        m_host_coefficients.push_back(
                            there ? static_cast<T>(stage.coefficients[first + static_cast<size_t>(c)][k])
                                  : T(0));
                    }
                // Marks the copies whose last terms are in this group.
                for (int c = 0; c < b.copies; ++c) {
                    const auto n = stage.coefficients[first + static_cast<size_t>(c)].size();
                    if (g == std::max(1, ceil_div(static_cast<int>(n) - 1, group_sweeps)) - 1)
                        mask |= 1 << (batch_copies + c);
                }
                m_host_masks.push_back(mask);
            }
            m_batches.back().push_back(b);
        }
    }
    m_coefficients = cuda::DeviceBuffer<T>(m_host_coefficients.size());
    m_masks = cuda::DeviceBuffer<int>(m_host_masks.size());
    m_coefficients.upload(m_host_coefficients.data(), m_host_coefficients.size(), stream);
    m_masks.upload(m_host_masks.data(), m_host_masks.size(), stream);
    if (m_persistent) {
        allow_persistent();
        m_exchange = cuda::DeviceBuffer<uint4>(static_cast<size_t>(m_multiprocessors) * 2 * exchange_words);
        m_exchange.clear(stream);
    } else {
        m_planes =
            cuda::DeviceBuffer<T>(static_cast<size_t>(padded(max_samples)) * static_cast<size_t>(max_lines) *
                                  static_cast<size_t>(max_components) * (3 + batch_copies));
    }
}

template <class T>
uint64_t Recurrence<T>::device_bytes(int ordinal, uint64_t pixels, int components,
                                     const std::vector<Stage>& stages) {
    uint64_t terms = 0;
    for (const auto& s : stages)
        terms += (s.coefficients.size() + batch_copies) * static_cast<uint64_t>(s.degree + 8);
    const uint64_t small = terms * (sizeof(T) + 4) + (1 << 20);
    if (sizeof(T) == sizeof(float) && fits_persistent(ordinal))
        return small +
               static_cast<uint64_t>(multiprocessors_of(ordinal)) * 2 * exchange_words * sizeof(uint4);
    return small + pixels * static_cast<uint64_t>(components) * sizeof(T) * (3 + batch_copies);
}

template <class T>
void Recurrence<T>::run(int index, const StageWork<T>& work, cudaStream_t stream) {
    for (const auto& batch : m_batches[static_cast<size_t>(index)])
        if (m_persistent)
            run_persistent(batch, work, m_degrees[static_cast<size_t>(index)], stream);
        else
            run_sweeps(batch, work, stream);
}

template <>
void Recurrence<double>::run_persistent(const Batch&, const StageWork<double>&, int, cudaStream_t) {
    throw Error("internal: the persistent kernel is single precision");
}

template <>
void Recurrence<float>::run_persistent(const Batch& batch, const StageWork<float>& stage, int,
                                       cudaStream_t stream) {
    PersistentWork work{};
    work.stage = stage;
    work.output = stage.next ? stage.region : stage.core;
    work.halo = batch.groups * group_sweeps;
    // A window is as large as all multiprocessors together can hold. It includes the halo where the scene
    // continues. Returns the largest window of pieces of `length`; its start may move by `slack` for
    // alignment.
    const auto extent = [&](int length, int limit, int slack) {
        return length >= limit ? limit : std::min(limit, length + 2 * work.halo + slack);
    };
    double best = 0;
    for (int across = 1; across <= m_multiprocessors; ++across)
        for (int down = 1; across * down <= m_multiprocessors; ++down) {
            const auto fit = [&](int output, int limit, int capacity, int slack, int& step, int& pieces) {
                // Finds the longest piece whose window fits into the capacity.
                step = output;
                if (extent(output, limit, slack) > capacity) step = capacity - 2 * work.halo - slack;
                if (step < 1) return false;
                pieces = ceil_div(output, step);
                step = ceil_div(output, pieces);
                return true;
            };
            int step_x = 0, step_y = 0, nx = 0, ny = 0;
            if (!fit(work.output.w, stage.samples, across * core_samples, 3, step_x, nx)) continue;
            if (!fit(work.output.h, stage.lines, down * most_core_lines, 0, step_y, ny)) continue;
            const int used_x = ceil_div(extent(step_x, stage.samples, 3), core_samples);
            if (used_x != across) continue;
            const int lines = extent(step_y, stage.lines, 0);
            const int core_warps = ceil_div(ceil_div(lines, down), warp_rows);
            const int used_y = ceil_div(lines, core_warps * warp_rows);
            const int teams = std::max(1, m_multiprocessors / (used_x * used_y));
            const int jobs = nx * ny * stage.components, rounds = ceil_div(jobs, std::min(teams, jobs));
            // The time of a sweep is proportional to the number of warps, plus a constant for barrier and
            // exchange.
            const double speed = 1.0 / (rounds * (core_warps + 5));
            if (speed > best) {
                best = speed;
                work.across = used_x;
                work.down = used_y;
                work.core_lines = core_warps * warp_rows;
                work.teams = std::min(teams, jobs);
                work.windows_across = nx;
                work.windows_down = ny;
                work.step_x = step_x;
                work.step_y = step_y;
            }
        }
    // The degree is too high for any window, so each sweep is one launch.
    if (best == 0) {
        if (m_planes.size() == 0)
            m_planes = cuda::DeviceBuffer<float>(static_cast<size_t>(stage.pitch) *
                                                 static_cast<size_t>(stage.lines) *
                                                 static_cast<size_t>(stage.components) * (3 + batch_copies));
        run_sweeps(batch, stage, stream);
        return;
    }
    work.coefficients = m_coefficients.data() + batch.coefficients;
    work.masks = m_masks.data() + batch.masks;
    work.groups = batch.groups;
    work.first_copy = batch.first_copy;
    work.copies = batch.copies;
    work.write_next = stage.next != nullptr && batch.first_copy == 0;
    work.exchange = m_exchange.data();
    work.epoch = m_epoch;
    // The tags of earlier launches must differ from the tags of this launch.
    m_epoch += static_cast<unsigned>(work.groups) *
               static_cast<unsigned>(
                   ceil_div(work.windows_across * work.windows_down * stage.components, work.teams));
    launch_persistent(work, stream);
}

template <class T>
void Recurrence<T>::run_sweeps(const Batch& batch, const StageWork<T>& work, cudaStream_t stream) {
    const size_t count = static_cast<size_t>(work.pitch) * static_cast<size_t>(work.lines) *
                         static_cast<size_t>(work.components);
    T* planes[3] = {m_planes.data(), m_planes.data() + count, m_planes.data() + 2 * count};
    T* const sums = m_planes.data() + 3 * count;
    const T* const coefficients = m_coefficients.data() + batch.coefficients;
    const dim3 grid(blocks_for(static_cast<size_t>(work.pitch)), static_cast<unsigned>(work.lines),
                    static_cast<unsigned>(work.components));
    add_planes<T><<<blocks_for(count), threads, 0, stream>>>(work.start, sums, count, coefficients,
                                                             batch.copies, 0, true);
    HSI_CUDA_LAUNCHED("add_planes");
    const T *prev = work.start, *cur = work.start;
    for (int k = 1; k <= batch.groups * group_sweeps; ++k) {
        T* const out = planes[k % 3];
        sweep_planes<T><<<grid, threads, 0, stream>>>(prev, cur, out, work.east, work.south, work.pitch,
                                                      work.lines, k == 1);
        HSI_CUDA_LAUNCHED("sweep_planes");
        const int g = (k - 1) / group_sweeps, j = (k - 1) % group_sweeps;
        const T* const a =
            coefficients + batch_copies + static_cast<size_t>(g) * batch_copies * group_sweeps + j;
        add_planes<T><<<blocks_for(count), threads, 0, stream>>>(
            out, sums, count, a, batch.copies, m_host_masks[batch.masks + static_cast<size_t>(g)], false);
        HSI_CUDA_LAUNCHED("add_planes");
        prev = cur;
        cur = out;
    }
    const dim3 all(grid.x, grid.y, static_cast<unsigned>(work.components * batch.copies));
    finish_planes<T><<<all, threads, 0, stream>>>(work, sums, batch.first_copy,
                                                  work.next != nullptr && batch.first_copy == 0);
    HSI_CUDA_LAUNCHED("finish_planes");
}

template class Recurrence<float>;
template class Recurrence<double>;

} // namespace hsi::eadp::gpu
