// SPDX-License-Identifier: MIT
#include "svm/gather.h"

#include "core/byte_pack.h"
#include "core/valid_pixel.h"
#include "parallel/group.h"

#include <algorithm>

namespace hsi::svm {

class Gather::GatherWorker final : public stream::Worker {
  public:
    explicit GatherWorker(Gather& owner) : m_owner(owner) {}
    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        const auto& index = m_owner.m_index;
        const auto bands = static_cast<size_t>(m_owner.m_bands);
        for (int64_t line = tile.core.y; line < tile.core.bottom(); ++line) {
            const int64_t first = line * m_owner.m_samples + tile.core.x;
            auto it = std::lower_bound(index.begin(), index.end(), first);
            for (; it != index.end() && *it < first + tile.core.w; ++it) {
                // Each pixel belongs to one tile, so workers write to different rows.
                float* row = m_owner.m_spectra.data() + static_cast<size_t>(it - index.begin()) * bands;
                for (int b = 0; b < in.bands; ++b)
                    row[b] = in.at(b, line - tile.window.y, *it - first + tile.core.x - tile.window.x);
            }
        }
    }

  private:
    Gather& m_owner;
};

Gather::Gather(int bands, int64_t samples, std::vector<int64_t> index)
    : m_bands(bands), m_samples(samples), m_index(std::move(index)),
      m_spectra(m_index.size() * static_cast<size_t>(bands)) {}

std::vector<int64_t> Gather::tiles(const TilePlan& plan) const {
    std::vector<int64_t> wanted;
    for (int64_t t = 0; t < plan.size(); ++t) {
        const Rect core = plan.tile(t).core;
        for (int64_t line = core.y; line < core.bottom(); ++line) {
            const auto it = std::lower_bound(m_index.begin(), m_index.end(), line * m_samples + core.x);
            if (it != m_index.end() && *it < line * m_samples + core.right()) {
                wanted.push_back(t);
                break;
            }
        }
    }
    return wanted;
}

std::unique_ptr<stream::Worker> Gather::start(int, const stream::TileLimits&) {
    return std::make_unique<GatherWorker>(*this);
}

/// Merges the values of all ranks. One rank has read the pixel, and all other ranks have zeros.
void Gather::exchange(parallel::Group& ranks) {
    const std::string whole =
        ranks.reduce("spectra", BytePacker().put(m_spectra).take(), [](std::string a, const std::string& b) {
            for (size_t i = sizeof(uint64_t); i < a.size(); ++i) // The bytes after the count are merged.
                a[i] = static_cast<char>(a[i] | b.at(i));
            return a;
        });
    ByteUnpacker(whole).get(m_spectra);
}

bool Gather::valid(size_t pixel) const {
    return is_valid_pixel(m_spectra.data() + pixel * static_cast<size_t>(m_bands), m_bands, 1);
}

} // namespace hsi::svm
