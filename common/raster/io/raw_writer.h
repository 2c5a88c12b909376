// SPDX-License-Identifier: MIT
// Writes tiles directly into an uncompressed file, from any number of threads at once.
#pragma once

#include "core/cube_view.h"
#include "core/rect.h"
#include "raster/io/raw_file.h"
#include "raster/sample_convert.h"

#include <semaphore>

namespace hsi::raster {

/// The positions of an output's samples. For blocks, RawLayout describes the first block.
struct WriteLayout : RawLayout {
    struct Blocks {
        int64_t samples = 0, lines = 0;   ///< of a block; 0 without blocks
        int64_t step = 0, lines_step = 0; ///< bytes to the next block to the right, and below
        int64_t end = 0;                  ///< samples of the output's lines
    };
    Blocks blocks;
    int64_t bytes = 0; ///< of the file

    /// Returns the bytes between the last sample before column `right` and the next line of its block: 0
    /// except at the right border.
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
    /// Opens the file and reserves its whole space, unless that was done (`claimed`), so that a full disk is
    /// detected before any work. Throws Error.
    RawWriter(WriteLayout layout, int bands, StoreRule rule, bool claimed = false);

    /// Writes a tile. Thread-safe. Changes `src` (nodata instead of NaN).
    void write(const Rect& core, const CubeView<float>& src);
    /// Writes a tile of one band; `src` has no other band.
    void write_band(int band, const Rect& core, const CubeView<float>& src);
    /// Returns true if each band is one contiguous part of the file.
    bool bands_apart() const {
        return m_bands > 1 && !m_pixel_interleaved && m_raw.band_step >= m_raw.line_step;
    }
    /// Closes the file. `flush`: flushes it to the disk, for readers on other machines. Throws Error if the
    /// system could not write everything.
    void close(bool flush = false);

  private:
    /// Writes the bands of src, the first of which is band `first` of the file.
    void write_rows(int first, const Rect& core, const CubeView<float>& src);
    /// Calls f(band of the view, line of the core, first column of the core, columns) for contiguous parts of
    /// a line, in the order of the file.
    template <class F>
    void for_stretches(int bands, const Rect& core, F&& f) const;
    void write_pixels(const Rect& core, const CubeView<float>& src);

    WriteLayout m_raw;
    int m_bands;
    StoreRule m_rule;
    bool m_pixel_interleaved;
    FileHandle m_file;
    /// A file has one lock for all writers, and passing it on costs more if more threads wait. So each writer
    /// waits its turn here, which takes two thirds of the time (16 writers of 10 GB).
    static constexpr int most_writers = 2;
    std::counting_semaphore<most_writers> m_turn{most_writers};
};

} // namespace hsi::raster
