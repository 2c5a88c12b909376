// SPDX-License-Identifier: MIT
#include "cluster/sampling.h"

#include "core/byte_pack.h"
#include "core/valid_pixel.h"
#include "math/philox.h"
#include "parallel/group.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace hsi::cluster {
namespace {

// The second word of a counter: the sample and the choice of centres use different random numbers of a seed.
constexpr uint32_t of_sample = 2u << 24, of_centres = 3u << 24;

uint32_t sample_word(uint64_t seed, int64_t number) {
    const auto n = static_cast<uint64_t>(number);
    return math::philox({0, of_sample, static_cast<uint32_t>(n), static_cast<uint32_t>(n >> 32)}, seed)[0];
}

} // namespace

void Sample::add(Candidate one, const float* from, ptrdiff_t band_stride) {
    if (m_heap.size() == static_cast<size_t>(sample_size)) {
        one.slot = m_heap.front().slot;
        std::pop_heap(m_heap.begin(), m_heap.end());
        m_heap.back() = one;
    } else {
        one.slot = m_heap.size();
        m_heap.push_back(one);
        if (m_with) m_spectra.resize(m_heap.size() * m_bands);
    }
    std::push_heap(m_heap.begin(), m_heap.end());
    if (!m_with) return;
    float* const to = m_spectra.data() + one.slot * m_bands;
    for (size_t b = 0; b < m_bands; ++b)
        to[b] = from[static_cast<ptrdiff_t>(b) * band_stride];
}

void Sample::merge(const Sample& other) {
    for (size_t i = 0; i < other.size(); ++i)
        if (takes(other.at(i))) add(other.at(i), m_with ? other.spectrum(i) : nullptr, 1);
}

void Sample::sort() { std::sort(m_heap.begin(), m_heap.end()); }

std::string Sample::packed() const { return BytePacker().put(m_heap).put(m_spectra).take(); }

void Sample::merge_packed(std::string_view bytes) {
    Sample other(static_cast<int>(m_bands), m_with);
    ByteUnpacker in(bytes);
    in.get(other.m_heap);
    in.get(other.m_spectra);
    merge(other);
}

uint64_t Sample::bytes(int bands, bool with_spectra) {
    const uint64_t spectrum = with_spectra ? static_cast<uint64_t>(bands) * sizeof(float) : 0;
    return static_cast<uint64_t>(sample_size) * (sizeof(Candidate) + spectrum);
}

class SampleScan::SampleWorker final : public stream::Worker {
  public:
    explicit SampleWorker(const SampleScan& owner)
        : sample(owner.m_scene.bands, !owner.keeps()), m_owner(owner) {}
    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        if (m_owner.m_device != nullptr) m_owner.m_device->put(tile.core, in);
        const int64_t w = tile.core.w;
        for (int64_t line = 0; line < tile.core.h; ++line) {
            const int64_t scene_line = tile.core.y + line;
            const int64_t first = scene_line * m_owner.m_scene.samples + tile.core.x;
            m_row.start(static_cast<size_t>(w));
            for (int b = 0; b < in.bands; ++b)
                m_row.look(in.row(b, line));
            const int64_t found = m_row.judge();
            valid += found;
            invalid += w - found;
            if (m_owner.m_kept != nullptr) m_owner.m_kept->put(first, in.row(0, line), in.band_stride, w);
            for (int64_t s = 0; s < w; ++s) {
                const bool is_valid = m_row.is_valid(static_cast<size_t>(s));
                m_owner.m_labels[first + s] = is_valid ? 1 : 0;
                if (!is_valid) continue;
                Candidate one;
                one.number = m_owner.m_options.numbers.of(scene_line, tile.core.x + s);
                one.word = sample_word(m_owner.m_options.seed, one.number);
                one.pixel = first + s;
                if (sample.takes(one)) sample.add(one, in.row(0, line) + s, in.band_stride);
            }
        }
    }
    int64_t valid = 0, invalid = 0;
    Sample sample;

  private:
    const SampleScan& m_owner;
    PixelRow m_row;
};

SampleScan::SampleScan(const stream::CubeShape& scene, const Options& options, const Kept* kept,
                       DeviceScene* device, uint16_t* labels)
    : m_scene(scene), m_options(options), m_kept(kept), m_device(device), m_labels(labels),
      m_sample(scene.bands, !keeps()) {}

std::shared_ptr<HostAllocator> SampleScan::allocator() const {
    return m_device != nullptr ? m_device->allocator() : Operation::allocator();
}

uint64_t SampleScan::scratch_bytes(const stream::TileLimits& limits) const {
    return Sample::bytes(m_scene.bands, !keeps()) +
           static_cast<uint64_t>(limits.core_samples) * 2 * sizeof(float);
}

std::unique_ptr<stream::Worker> SampleScan::start(int, const stream::TileLimits&) {
    return std::make_unique<SampleWorker>(*this);
}

void SampleScan::stop(stream::Worker& worker) {
    const auto& from = static_cast<SampleWorker&>(worker);
    m_valid += from.valid;
    m_invalid += from.invalid;
    m_sample.merge(from.sample);
}

void SampleScan::exchange(parallel::Group& ranks) {
    std::vector<int64_t> counts{m_valid, m_invalid};
    ranks.add_up("pixels", counts);
    m_valid = counts[0];
    m_invalid = counts[1];
    ranks.unite(
        "sample", [&] { return m_sample.packed(); },
        [&](const std::string& bytes) { m_sample.merge_packed(bytes); },
        [&](const std::string& bytes) {
            m_sample = Sample(m_scene.bands, !keeps());
            m_sample.merge_packed(bytes);
        });
    const auto bytes = static_cast<size_t>(m_scene.pixels()) * sizeof(uint16_t);
    ranks.unite(
        "valid pixels", [&] { return std::string(reinterpret_cast<const char*>(m_labels), bytes); },
        [&](const std::string& other) {
            for (size_t i = 0; i < bytes; ++i) // Labels are only 0 or 1 before the first assignment.
                reinterpret_cast<char*>(m_labels)[i] |= other[i];
        },
        [&](const std::string& all) { std::copy_n(all.data(), bytes, reinterpret_cast<char*>(m_labels)); });
}

Centres choose_centres(const std::vector<float>& spectra, int bands, const Options& options, int count) {
    const auto width = static_cast<size_t>(bands);
    const size_t pixels = spectra.size() / width, groups = (pixels + group - 1) / group;
    Centres found, one;
    found.bands = one.bands = bands;
    one.count = 1;
    // `look` only converts the spectra (for angles, to unit vectors). k-means++ uses squared distances, also
    // for angles.
    Look look(bands, options.distance, 0);
    std::vector<double> least(groups * group, std::numeric_limits<double>::infinity());
    std::vector<float> packed(width * group);
    HostBuffer<double> numbers(groups * group * width);
    for (size_t g = 0; g < groups; ++g) {
        const size_t n = std::min<size_t>(group, pixels - g * group);
        for (size_t i = 0; i < n; ++i)
            for (size_t b = 0; b < width; ++b)
                packed[b * group + i] = spectra[(g * group + i) * width + b];
        look.take(packed.data(), group, static_cast<int>(n));
        std::copy_n(look.values(), width * group, numbers.data() + g * group * width);
    }
    const auto add = [&](size_t pixel) {
        one.values.clear();
        for (size_t b = 0; b < width; ++b)
            one.values.push_back(numbers[(pixel / group * width + b) * group + pixel % group]);
        found.values.insert(found.values.end(), one.values.begin(), one.values.end());
        ++found.count;
    };
    double distance[group];
    int32_t index[group];
    for (size_t pixel = 0;;) {
        add(pixel);
        if (found.count == count) return found;
        for (size_t g = 0; g < groups; ++g) {
            simd_kernels().nearest(numbers.data() + g * group * width, bands, one.values.data(), 1, distance,
                                   index);
            for (size_t i = 0; i < group; ++i)
                least[g * group + i] = std::min(least[g * group + i], distance[i]);
        }
        double all = 0;
        for (size_t i = 0; i < pixels; ++i)
            all += least[i];
        if (!(all > 0)) return found;
        const auto j = static_cast<uint32_t>(found.count);
        const double wanted = math::open_uniform(math::philox({j, of_centres, 0, 0}, options.seed)[0]) * all;
        double sum = 0;
        for (pixel = 0; pixel + 1 < pixels; ++pixel) {
            sum += least[pixel];
            if (sum > wanted) break;
        }
    }
}

} // namespace hsi::cluster
