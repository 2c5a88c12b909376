// SPDX-License-Identifier: MIT
// Creates overviews of all bands of a raster with all threads; GDAL would use one thread.
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
    std::string raster;       ///< path of the raster; side files get names that begin with it
    std::vector<int> factors; ///< the reduction factor of each overview, rising
    std::string resampling;   ///< GDAL's name: CUBIC, NEAREST ...
    int threads = 1;
    uint64_t memory = 0; ///< bytes that the threads may take together
    const CancelFlag* cancel = nullptr;
};

/// The overviews are in files next to the raster, which are removed with the object. Each file has some of
/// the bands.
class CogOverviews {
  public:
    /// Creates the overviews. The values do not depend on the number of threads. \throws Error, Cancelled.
    explicit CogOverviews(const OverviewTask& task);
    CogOverviews(const CogOverviews&) = delete;
    CogOverviews& operator=(const CogOverviews&) = delete;
    ~CogOverviews();

    /// Reads a window of all bands of an overview (counted from 0): value (band, line, sample) is written to
    /// byte `to` + band * band_step + line * line_step + sample * pixel_step. Any thread may call it. `turn`
    /// distributes calls over the files. \throws Error.
    struct Window {
        int overview, x, y, samples, lines;
        GDALDataType type;
        int64_t band_step, line_step, pixel_step;
    };
    void read(const Window& window, int64_t turn, char* to) const;

  private:
    struct Part {
        std::string path;
        int first_band = 0; ///< counted from 0
        mutable std::mutex mutex;
        DatasetHandle file;
    };
    static void make(Part& part, int bands, const OverviewTask& task);
    static void fill(Part& part, const OverviewTask& task);
    void remove() noexcept;

    std::vector<std::unique_ptr<Part>> m_parts;
};

} // namespace hsi::raster
