// SPDX-License-Identifier: MIT
// Writes tiles straight into an uncompressed file, from any number of threads at once.
#pragma once

#include "core/cube_view.h"
#include "core/rect.h"
#include "raster/io/raw_file.h"
#include "raster/sample_convert.h"

#include <semaphore>

namespace hsi::raster {

/// The places of an output's samples. For blocks, those of RawLayout are the places in the first one.
struct WriteLayout : RawLayout {
    struct Blocks {
        int64_t samples = 0, lines = 0;   ///< of a block; 0 without blocks
        int64_t step = 0, lines_step = 0; ///< bytes to the next block to the right, and below
        int64_t end = 0;                  ///< samples of the output's lines
    };
    Blocks blocks;
    int64_t bytes = 0; ///< of the file

    /// Bytes between the last sample before column `right` and the next line of its block: 0 except at the
    /// right border.
    int64_t padding(int64_t right) const {
        return right == blocks.end ? (blocks.samples - 1 - (right - 1) % blocks.samples) * pixel_step : 0;
    }

    int64_t place(int64_t band, int64_t line, int64_t sample) const {
        if (blocks.samples == 0) return at(band, line, sample);
        return at(band, line % blocks.lines, sample % blocks.samples) +
               line / blocks.lines * blocks.lines_step + sample / blocks.samples * blocks.step;
    }
};

class RawWriter {
  public:
    /// Opens the file and, unless that was done (`claimed`), claims its whole space, so that a full disk
    /// shows before any work is done. Throws Error.
    RawWriter(WriteLayout layout, int bands, StoreRule rule, bool claimed = false);

    /// Thread-safe. Changes `src` (nodata in place of NaN).
    void write(const Rect& core, const CubeView<float>& src);
    /// The same of one band; `src` has no other.
    void write_band(int band, const Rect& core, const CubeView<float>& src);
    /// True if each band is one stretch of the file.
    bool bands_apart() const {
        return m_bands > 1 && !m_pixel_interleaved && m_raw.band_step >= m_raw.line_step;
    }
    /// `flush`: to the disk, for readers that open the file elsewhere. Throws Error when the system could not
    /// write everything.
    void close(bool flush = false);

  private:
    /// Writes the bands of src, the first of which is band `first` of the file.
    void write_rows(int first, const Rect& core, const CubeView<float>& src);
    /// Calls f(band of the view, line of the core, first column of the core, columns) for contiguous
    /// stretches of a line, in the order of the file.
    template <class F>
    void for_stretches(int bands, const Rect& core, F&& f) const;
    void write_pixels(const Rect& core, const CubeView<float>& src);

    WriteLayout m_raw;
    int m_bands;
    StoreRule m_rule;
    bool m_pixel_interleaved;
    FileHandle m_file;
    /// A file has one lock for all writers, and handing it on costs more the more threads wait: with 16
    /// writers of 10 GB, each waits its turn here instead, which takes two thirds of the time.
    static constexpr int most_writers = 2;
    std::counting_semaphore<most_writers> m_turn{most_writers};
};

} // namespace hsi::raster
