// SPDX-License-Identifier: MIT
#include "sahic/training_scan.h"

#include "core/byte_pack.h"
#include "core/valid_pixel.h"
#include "parallel/group.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace hsi::sahic {
namespace {

/// Merges the values of all ranks bit by bit. Each value is known to one rank and zero in all others.
template <class T>
void join(parallel::Group& ranks, const std::string& what, std::vector<T>& values) {
    const std::string whole =
        ranks.reduce(what, BytePacker().put(values).take(), [](std::string a, const std::string& b) {
            if (a.size() != b.size()) throw Error("internal: values of another number");
            // The bytes after the number of values are merged.
            for (size_t i = sizeof(uint64_t); i < a.size(); ++i)
                a[i] = static_cast<char>(a[i] | b[i]);
            return a;
        });
    values = ByteUnpacker(whole).one<std::vector<T>>();
}

} // namespace

class TrainingScan::ScanWorker final : public stream::Worker {
  public:
    explicit ScanWorker(TrainingScan& owner)
        : finite(static_cast<size_t>(owner.m_shape.bands), 0), m_owner(owner) {}
    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        const auto w = static_cast<size_t>(in.samples);
        for (int64_t line = 0; line < in.lines; ++line) {
            m_row.start(w);
            for (int b = 0; b < in.bands; ++b) {
                const float* v = in.row(b, line);
                m_row.look(v);
                if (!finite[static_cast<size_t>(b)])
                    finite[static_cast<size_t>(b)] =
                        std::any_of(v, v + w, [](float x) { return std::isfinite(x); });
            }
            invalid += in.samples - m_row.judge();
            for (size_t i = 0; i < w; ++i)
                if (m_row.is_valid(i)) largest = std::max(largest, m_row.greatest(i));
        }
        gather(tile, in);
    }

    std::vector<char> finite;
    float largest = 0;
    int64_t invalid = 0;

  private:
    /// Each pixel belongs to one tile, so workers write to different parts of memory.
    void gather(const Tile& tile, const CubeView<float>& in) {
        const auto& index = m_owner.m_index;
        const int64_t samples = m_owner.m_shape.samples, lines = m_owner.m_shape.lines;
        const auto bands = static_cast<size_t>(in.bands);
        for (int64_t line = 0; line < in.lines; ++line) {
            const int64_t first = (tile.core.y + line) * samples + tile.core.x;
            auto it = std::lower_bound(index.begin(), index.end(), first);
            for (; it != index.end() && *it < first + tile.core.w; ++it) {
                float* row = m_owner.m_spectra.data() + static_cast<size_t>(it - index.begin()) * bands;
                for (int b = 0; b < in.bands; ++b)
                    row[b] = in.at(b, line, *it - first);
            }
        }
        if (!m_owner.m_border) return;
        for (int b = 0; b < in.bands; ++b) {
            if (tile.core.y == 0)
                std::copy_n(in.row(b, 0), in.samples,
                            m_owner.m_first_line.data() + b * samples + tile.core.x);
            if (tile.core.x == 0)
                for (int64_t line = 0; line < in.lines; ++line)
                    m_owner.m_first_sample[static_cast<size_t>(b * lines + tile.core.y + line)] =
                        in.at(b, line, 0);
        }
    }
    TrainingScan& m_owner;
    PixelRow m_row;
};

TrainingScan::TrainingScan(const stream::CubeShape& shape, std::vector<int64_t> index, bool border)
    : m_shape(shape), m_index(std::move(index)), m_border(border),
      m_spectra(m_index.size() * static_cast<size_t>(shape.bands)),
      m_finite(static_cast<size_t>(shape.bands), 0) {
    if (border) {
        m_first_line.resize(static_cast<size_t>(shape.bands * shape.samples));
        m_first_sample.resize(static_cast<size_t>(shape.bands * shape.lines));
    }
}

std::unique_ptr<stream::Worker> TrainingScan::start(int, const stream::TileLimits&) {
    return std::make_unique<ScanWorker>(*this);
}

void TrainingScan::stop(stream::Worker& worker) {
    const auto& w = static_cast<const ScanWorker&>(worker);
    m_largest = std::max(m_largest, w.largest);
    m_invalid += w.invalid;
    for (size_t b = 0; b < m_finite.size(); ++b)
        m_finite[b] = m_finite[b] || w.finite[b];
}

void TrainingScan::exchange(parallel::Group& ranks) {
    for (const std::string& one : ranks.all("greatest values", BytePacker().put(m_largest).take()))
        m_largest = std::max(m_largest, ByteUnpacker(one).one<float>());
    m_invalid = ranks.sum("invalid pixels", m_invalid);
    join(ranks, "finite bands", m_finite);
    join(ranks, "training spectra", m_spectra);
    join(ranks, "first line", m_first_line);
    join(ranks, "first sample", m_first_sample);
}

std::vector<int64_t> TrainingScan::tiles(const TilePlan& plan) const {
    std::vector<int64_t> wanted;
    for (int64_t t = 0; t < plan.size(); ++t) {
        const Rect core = plan.tile(t).core;
        bool holds = m_border && (core.x == 0 || core.y == 0);
        for (int64_t line = core.y; line < core.bottom() && !holds; ++line) {
            const auto it = std::lower_bound(m_index.begin(), m_index.end(), line * m_shape.samples + core.x);
            holds = it != m_index.end() && *it < line * m_shape.samples + core.right();
        }
        if (holds) wanted.push_back(t);
    }
    return wanted;
}

std::vector<int> TrainingScan::empty_bands() const {
    std::vector<int> empty;
    for (size_t b = 0; b < m_finite.size(); ++b)
        if (!m_finite[b]) empty.push_back(static_cast<int>(b));
    return empty;
}

bool TrainingScan::valid(size_t pixel) const {
    return is_valid_pixel(m_spectra.data() + pixel * static_cast<size_t>(m_shape.bands), m_shape.bands, 1);
}

} // namespace hsi::sahic
