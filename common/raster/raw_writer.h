// SPDX-License-Identifier: MIT
// Tiles straight into an uncompressed file, from any number of threads at once.
#pragma once

#include "core/cube_view.h"
#include "core/rect.h"
#include "raster/raw_file.h"
#include "raster/store_convert.h"

#include <semaphore>

namespace hsi::raster {

class RawWriter {
  public:
    /// Opens the file and, unless that was done (`claimed`), claims its whole space, so that a full disk
    /// shows before any work is done. Throws Error.
    RawWriter(RawLayout layout, int bands, int64_t lines, int64_t samples, StoreRule rule,
              bool claimed = false);

    /// Thread-safe. Changes `src` (nodata in place of NaN).
    void write(const Rect& core, const CubeView<float>& src);
    /// `flush`: to the disk, for those who open the file elsewhere. Throws Error when the system could not
    /// write everything.
    void close(bool flush = false);

  private:
    void write_rows(const Rect& core, const CubeView<float>& src);
    void write_pixels(const Rect& core, const CubeView<float>& src);

    RawLayout m_raw;
    int m_bands;
    StoreRule m_rule;
    bool m_pixel_interleaved;
    FileHandle m_file;
    /// A file has one lock for all who write to it, and handing it on costs more the more threads wait: of 16
    /// that write 10 GB side by side each waits its turn here instead, which takes two thirds of the time.
    static constexpr int most_writers = 2;
    std::counting_semaphore<most_writers> m_turn{most_writers};
};

} // namespace hsi::raster
