// SPDX-License-Identifier: MIT
// Creates overviews of all bands of a raster on all threads. GDAL would use only one thread.
#pragma once

#include "core/cancel.h"
#include "raster/gdal/dataset_handle.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace hsi::raster {

struct OverviewTask {
    std::string raster;       ///< path of the raster; names of temporary files begin with it
    std::vector<int> factors; ///< reduction factor of each overview, ascending
    std::string resampling;   ///< GDAL's name of the method: CUBIC, NEAREST ...
    int threads = 1;
    uint64_t memory = 0; ///< bytes that all threads may use together
    const CancelFlag* cancel = nullptr;
};

/// Overviews in temporary files next to the raster, which the destructor removes. Each file contains the
/// overviews of some bands.
class CogOverviews {
  public:
    /// Creates the overviews. Their values do not depend on the number of threads. \throws Error and
    /// Cancelled.
    explicit CogOverviews(const OverviewTask& task);
    CogOverviews(const CogOverviews&) = delete;
    CogOverviews& operator=(const CogOverviews&) = delete;
    ~CogOverviews();

    /// A window of all bands of an overview, which is counted from 0. read() reads the window. It writes the
    /// value of (band, line, sample) to `to` + band * band_step + line * line_step + sample * pixel_step;
    /// steps are in bytes. Thread-safe. Calls with different `turn` begin with different files, so that
    /// threads do not wait for each other. \throws Error.
    struct Window {
        int overview, x, y, samples, lines;
        GDALDataType type;
        int64_t band_step, line_step, pixel_step;
    };
    void read(const Window& window, int64_t turn, char* to) const;

  private:
    struct Part {
        std::string path;
        int first_band = 0; ///< first band of the file, counted from 0
        mutable std::mutex mutex;
        DatasetHandle file;
    };
    static void make(Part& part, int bands, const OverviewTask& task);
    static void fill(Part& part, const OverviewTask& task);
    void remove() noexcept;

    std::vector<std::unique_ptr<Part>> m_parts;
};

} // namespace hsi::raster
