// SPDX-License-Identifier: MIT
#include "stream/computed_source.h"

#include "core/error.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace hsi::stream {
namespace {

/// Of what is computed in one go where that is free: a share of the second-level cache and no more, since
/// what comes out has to stay, too.
constexpr uint64_t cached_bytes = uint64_t{1} << 20;

constexpr int64_t halos_a_tile = 8;

uint64_t cube_bytes(int64_t samples, int64_t lines, int bands) {
    return static_cast<uint64_t>(samples * lines) * static_cast<uint64_t>(bands) * sizeof(float);
}

} // namespace

class ComputedSource::Reader final : public CubeReader {
  public:
    explicit Reader(const ComputedSource& owner)
        : m_owner(owner), m_behind(owner.m_behind->open_reader()),
          m_outputs(owner.m_operation->output_bands()), m_in_place(owner.m_operation->reads_in_place()) {}

    void read(const Rect& window, const CubeView<float>& dst) override {
        make_room(window);
        for (int64_t y = 0; y < window.h; y += m_lines) {
            const int64_t h = std::min(m_lines, window.h - y);
            compute({window.x, window.y + y, window.w, h}, dst.cut(0, y, window.w, h));
        }
    }
    void prefetch(const Rect& window) override { m_behind->prefetch(with_halo(window)); }
    uint64_t look_ahead(uint64_t bytes, int threads) override { return m_behind->look_ahead(bytes, threads); }

  private:
    Rect with_halo(const Rect& core) const {
        const CubeShape scene = m_owner.m_behind->shape();
        return intersect(grow(core, m_owner.halo()), Rect{0, 0, scene.samples, scene.lines});
    }

    /// A worker for windows of this size, and its outputs.
    void make_room(const Rect& window) {
        if (m_worker && window.w <= m_samples && window.h <= m_asked_lines) return;
        m_samples = std::max(m_samples, window.w);
        m_asked_lines = std::max(m_asked_lines, window.h);
        m_lines = m_owner.lines_at_once(m_samples, m_asked_lines);
        const TileLimits limits = m_owner.limits(m_samples, m_asked_lines);
        m_worker.reset(); // its memory goes before the next one's comes
        m_in.clear();
        m_in.resize(static_cast<size_t>(limits.window_samples * limits.window_lines *
                                        m_owner.m_behind->shape().bands));
        m_out.assign(m_outputs.size(), {});
        m_worker = m_owner.m_operation->start(0, limits);
    }

    void compute(const Rect& core, const CubeView<float>& dst) {
        const Tile tile{0, core, with_halo(core)};
        const auto there = m_in_place ? m_behind->view(tile.window) : std::nullopt;
        const auto in = there ? *there
                              : CubeView<float>::packed(m_in.data(), m_owner.m_behind->shape().bands,
                                                        tile.window.h, tile.window.w);
        if (!there) m_behind->read(tile.window, in);
        // Workers write lines that follow one another.
        const bool directly = dst.line_stride == dst.samples;
        std::vector<CubeView<float>> out;
        for (size_t k = 0; k < m_out.size(); ++k) {
            if (k == m_owner.m_output && directly) {
                out.push_back(dst);
                continue;
            }
            m_out[k].resize(static_cast<size_t>(core.area() * m_outputs[k]));
            out.push_back(CubeView<float>::packed(m_out[k].data(), m_outputs[k], core.h, core.w));
        }
        m_worker->process(tile, in, out);
        if (directly) return;
        const auto& made = out[m_owner.m_output];
        for (int b = 0; b < dst.bands; ++b)
            for (int64_t line = 0; line < dst.lines; ++line)
                std::copy_n(made.row(b, line), dst.samples, dst.row(b, line));
    }

    const ComputedSource& m_owner;
    const std::unique_ptr<CubeReader> m_behind;
    const std::vector<int> m_outputs;
    const bool m_in_place;
    std::unique_ptr<Worker> m_worker;
    std::vector<float> m_in;
    std::vector<std::vector<float>> m_out;
    int64_t m_samples = 0, m_asked_lines = 0, m_lines = 1;
};

ComputedSource::ComputedSource(std::shared_ptr<const CubeSource> behind, std::shared_ptr<Operation> operation,
                               size_t output)
    : m_behind(std::move(behind)), m_operation(std::move(operation)), m_output(output),
      m_shape(m_behind->shape()) {
    const auto outputs = m_operation->output_bands();
    if (output >= outputs.size() || m_operation->align_samples() != 1 || m_operation->align_lines() != 1)
        throw Error("internal: this operation makes no cube that can be computed when it is read");
    m_shape.bands = outputs[output];
}

BlockLayout ComputedSource::layout() const {
    BlockLayout layout = m_behind->layout();
    if (halo() == 0) return layout;
    const int64_t least = std::min(halos_a_tile * halo(), m_shape.lines);
    layout.block_lines = (least + layout.block_lines - 1) / layout.block_lines * layout.block_lines;
    return layout;
}

int64_t ComputedSource::lines_at_once(int64_t samples, int64_t lines) const {
    // A halo would be computed anew for every few lines, and so would a block of a file be decoded.
    if (halo() > 0 || m_behind->layout().block_lines > 1) return lines;
    const uint64_t line = cube_bytes(samples, 1, m_behind->shape().bands);
    return std::clamp<int64_t>(static_cast<int64_t>(cached_bytes / std::max<uint64_t>(1, line)), 1, lines);
}

TileLimits ComputedSource::limits(int64_t samples, int64_t lines) const {
    TileLimits limits;
    limits.core_samples = samples;
    limits.core_lines = lines_at_once(samples, lines);
    limits.window_samples = std::min(samples + 2 * halo(), m_shape.samples);
    limits.window_lines = std::min(limits.core_lines + 2 * halo(), m_shape.lines);
    return limits;
}

uint64_t ComputedSource::window_bytes(int64_t samples, int64_t lines) const {
    const TileLimits all = limits(samples, lines);
    uint64_t bytes = cube_bytes(all.window_samples, all.window_lines, m_behind->shape().bands) +
                     m_operation->scratch_bytes(all) +
                     m_behind->window_bytes(all.window_samples, all.window_lines);
    const auto outputs = m_operation->output_bands();
    for (size_t k = 0; k < outputs.size(); ++k)
        if (k != m_output) bytes += cube_bytes(all.core_samples, all.core_lines, outputs[k]);
    return bytes;
}

std::unique_ptr<CubeReader> ComputedSource::open_reader() const { return std::make_unique<Reader>(*this); }

namespace {

LinkMaker& link_maker() {
    static LinkMaker maker;
    return maker;
}

} // namespace

void set_link_maker(LinkMaker maker) { link_maker() = std::move(maker); }

std::shared_ptr<Operation> make_operation(const Link& link, const CubeShape& scene) {
    if (!link_maker()) throw Error("internal: nobody knows the operation '" + link.operation + "'");
    return link_maker()(link, scene);
}

} // namespace hsi::stream
