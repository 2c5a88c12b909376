// SPDX-License-Identifier: MIT
#include "stream/resident_source.h"

#include "core/error.h"
#include "core/system.h"
#include "stream/kept_lines.h"

#include <algorithm>

namespace hsi::stream {
namespace {

void copy_tile(const CubeView<const float>& from, const CubeView<float>& to) {
    for (int b = 0; b < to.bands; ++b)
        for (int64_t l = 0; l < to.lines; ++l)
            std::copy_n(from.row(b, l), to.samples, to.row(b, l));
}

} // namespace

class ResidentSource::Reader final : public CubeReader {
  public:
    explicit Reader(const ResidentSource& owner)
        : m_owner(owner), m_behind(owner.sealed() ? nullptr : owner.m_behind->open_reader()) {}

    void read(const Rect& window, const CubeView<float>& dst) override {
        const CubeShape shape = m_owner.shape();
        const auto kept =
            CubeView<float>::packed(m_owner.m_cube.data(), shape.bands, shape.lines, shape.samples)
                .cut(window.x, window.y, window.w, window.h);
        if (!m_behind) return copy_tile(kept, dst);
        m_behind->read(window, dst);
        if (window.w == shape.samples) // the lines of a band are contiguous
            for (int b = 0; b < shape.bands; ++b)
                system::make_pages(kept.row(b, 0), static_cast<size_t>(window.area()) * sizeof(float));
        copy_tile(dst, kept);
        m_owner.m_filled.fetch_add(window.area());
    }
    void prefetch(const Rect& window) override {
        if (m_behind) m_behind->prefetch(window);
    }
    bool expect(const Rect& window) override { return m_behind && m_behind->expect(window); }
    uint64_t look_ahead(uint64_t bytes, int threads) override {
        return m_behind ? m_behind->look_ahead(bytes, threads) : 0;
    }

  private:
    const ResidentSource& m_owner;
    std::unique_ptr<CubeReader> m_behind;
};

ResidentSource::ResidentSource(std::shared_ptr<const CubeSource> behind)
    : m_behind(std::move(behind)),
      m_cube(small_page_allocator(), static_cast<size_t>(m_behind->shape().float_bytes() / sizeof(float))) {}

void ResidentSource::seal() {
    if (m_filled.load() != shape().pixels())
        throw Error("internal: a scene was not read completely before it was kept");
    m_sealed.store(true, std::memory_order_release);
}

CubeView<const float> ResidentSource::view() const {
    const CubeShape s = shape();
    return CubeView<const float>::packed(m_cube.data(), s.bands, s.lines, s.samples);
}

std::unique_ptr<CubeReader> ResidentSource::open_reader() const { return std::make_unique<Reader>(*this); }

} // namespace hsi::stream
