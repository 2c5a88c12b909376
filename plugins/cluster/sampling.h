// SPDX-License-Identifier: MIT
// The first pass, which takes a sample of the pixels, and k-means++ on this sample.
#pragma once

#include "cluster/device_scene.h"
#include "cluster/walk.h"
#include "stream/operation.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hsi::cluster {

/// A pixel that may be in the sample, ordered by its random word and then by its number in the file.
struct Candidate {
    uint32_t word = 0;
    int64_t number = 0;
    int64_t pixel = 0; ///< index of the pixel in raster order
    size_t slot = 0;   ///< index of its spectrum in the Sample
    bool operator<(const Candidate& o) const { return word != o.word ? word < o.word : number < o.number; }
};

/// The sample_size lowest candidates of those that were added, or all if there are fewer. They are in any
/// order until sort().
class Sample {
  public:
    /// with_spectra: also stores the spectra of the candidates.
    Sample(int bands, bool with_spectra) : m_bands(static_cast<size_t>(bands)), m_with(with_spectra) {}
    bool takes(const Candidate& one) const {
        return m_heap.size() < static_cast<size_t>(sample_size) || one < m_heap.front();
    }
    /// Adds a candidate for which takes() is true. from: its first value; the values of its bands are
    /// band_stride apart.
    void add(Candidate one, const float* from, ptrdiff_t band_stride);
    void merge(const Sample& other);
    void sort();
    size_t size() const { return m_heap.size(); }
    const Candidate& at(size_t i) const { return m_heap[i]; }
    const float* spectrum(size_t i) const { return m_spectra.data() + m_heap[i].slot * m_bands; }
    std::string packed() const;
    void merge_packed(std::string_view bytes);
    static uint64_t bytes(int bands, bool with_spectra);

  private:
    size_t m_bands;
    bool m_with;
    std::vector<Candidate> m_heap; ///< heap with the greatest candidate at its front
    std::vector<float> m_spectra;
};

/// Gives label 1 to valid pixels and 0 to invalid ones, takes the sample, and stores the scene in `kept` or
/// on `device` if one of them is not null. The sample then has no spectra, since they can be read from there.
class SampleScan final : public stream::Operation {
  public:
    SampleScan(const stream::CubeShape& scene, const Options& options, const Kept* kept, DeviceScene* device,
               uint16_t* labels);
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    /// Returns false for a device, whose tiles must be in pinned memory.
    bool reads_in_place() const override { return m_device == nullptr; }
    uint64_t preferred_bytes() const override { return uint64_t{8} << 20; }
    std::shared_ptr<HostAllocator> allocator() const override;
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override;
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override;
    void stop(stream::Worker& worker) override;

    int64_t valid() const { return m_valid; }
    int64_t invalid() const { return m_invalid; }
    Sample& sample() { return m_sample; }

  private:
    class SampleWorker;
    const stream::CubeShape m_scene;
    const Options m_options;
    bool keeps() const { return m_kept != nullptr || m_device != nullptr; }
    const Kept* const m_kept;
    DeviceScene* const m_device;
    uint16_t* const m_labels;
    int64_t m_valid = 0, m_invalid = 0;
    Sample m_sample;
};

/// Chooses `count` of the spectra, [pixel][band], as centres by k-means++, and returns them in the order of
/// the choice. Returns fewer centres if there are fewer different spectra.
Centres choose_centres(const std::vector<float>& spectra, int bands, const Options& options, int count);

} // namespace hsi::cluster
