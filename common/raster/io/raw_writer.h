// SPDX-License-Identifier: MIT
// Writes tiles directly into an uncompressed file, from any number of threads at once.
#pragma once

#include "core/cube_view.h"
#include "core/rect.h"
#include "raster/io/raw_file.h"
#include "raster/sample_convert.h"

#include <semaphore>

namespace hsi::raster {

/// The positions of an output's samples. If the output has blocks, the members of RawLayout describe the
/// first block, and `blocks` the positions of the others.
struct WriteLayout : RawLayout {
    struct Blocks {
        int64_t samples = 0, lines = 0; ///< size of a block; 0: no blocks
        /// Bytes to the next block to the right, and to the next block below.
        int64_t step = 0, lines_step = 0;
        int64_t end = 0; ///< samples of a line of the output
    };
    Blocks blocks;
    int64_t bytes = 0; ///< bytes of the file

    /// Returns the number of padding bytes after the last sample before column `right` in a line of its
    /// block. It is 0 unless `right` is the right border of the output.
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
    /// Opens the file, and reserves the disk space for all samples, so that a full disk is detected before
    /// any work. `claimed`: the space is already reserved. Throws Error.
    RawWriter(WriteLayout layout, int bands, StoreRule rule, bool claimed = false);

    /// Writes a tile. Thread-safe. The call may change the values in `src` to the stored ones (StoreRule).
    void write(const Rect& core, const CubeView<float>& src);
    /// Writes a tile of band `band`; `src` contains only this band.
    void write_band(int band, const Rect& core, const CubeView<float>& src);
    /// Returns true if each band is one contiguous part of the file.
    bool bands_apart() const {
        return m_bands > 1 && !m_pixel_interleaved && m_raw.band_step >= m_raw.line_step;
    }
    /// Closes the file. If `flush`, the file is flushed to the disk first, for readers on other computers.
    /// Throws Error if the system could not write everything.
    void close(bool flush = false);

  private:
    /// Writes the bands of `src`. The first band of `src` is band `first` of the file.
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
    /// The operating system has one lock per file for all writers. Passing the lock on costs more if more
    /// threads wait for it. At most two threads therefore write at once, which reduced the time to two thirds
    /// (16 threads that wrote 10 GB).
    static constexpr int most_writers = 2;
    std::counting_semaphore<most_writers> m_turn{most_writers};
};

} // namespace hsi::raster
