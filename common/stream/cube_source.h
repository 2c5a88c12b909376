// SPDX-License-Identifier: MIT
// The sources and sinks of cubes for the tile pipeline. Sources and sinks do not use GDAL, so tests feed the
// pipeline from memory.
#pragma once

#include "core/cube_view.h"
#include "core/rect.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace hsi::parallel {
class Group;
}

namespace hsi::stream {

struct CubeShape {
    int64_t samples = 0;
    int64_t lines = 0;
    int bands = 0;
    int64_t pixels() const { return samples * lines; }
    uint64_t float_bytes() const {
        return static_cast<uint64_t>(pixels()) * static_cast<uint64_t>(bands) * 4;
    }
};

/// The storage units of a file, which tiles follow. block_samples = 0: whole lines.
struct BlockLayout {
    int64_t block_samples = 0;
    int64_t block_lines = 1;
    /// If not 0, decoded blocks are kept for all readers as long as the tiles in progress together cover at
    /// most this number of lines. Tiles need not follow the blocks then.
    int64_t kept_lines = 0;
};

/// Reads tiles. Use one reader per thread; readers share only thread-safe data.
class CubeReader {
  public:
    virtual ~CubeReader() = default;
    /// Reads `window` of every band of the source into `dst`. `window` is in scene coordinates and inside the
    /// scene. `dst` has the bands of the source, and the lines and samples of the window. Nodata and masked
    /// values become NaN; NaN and infinities of the file are unchanged. So the values of a pixel show whether
    /// it is valid (core/valid_pixel.h), without a second buffer. Throws Error if the file cannot be read.
    virtual void read(const Rect& window, const CubeView<float>& dst) = 0;
    /// Returns the values of read() for `window` if they are already in memory, else nullopt. The view is
    /// read-only and exists as long as the source.
    virtual std::optional<CubeView<float>> view(const Rect& /*window*/) { return std::nullopt; }
    /// Returns the values of read() for `window` in the memory of this CUDA device if they are already there
    /// or are computed there, else nullopt. The view is read-only and exists until the next call.
    virtual std::optional<CubeView<float>> view_on(int /*device*/, const Rect& /*window*/) {
        return std::nullopt;
    }
    /// Announces that `window` will be read soon.
    virtual void prefetch(const Rect& /*window*/) {}
    /// Announces that this reader, or another reader of its source, will read `window` in this pass, after
    /// the windows that were announced before. A reader of remote data begins to fetch the window. \return
    /// false if the reader does not fetch the window, or not yet; announce the window again later.
    virtual bool expect(const Rect& /*window*/) { return false; }
    /// Allows the reader to decode the window of the last prefetch() while its caller computes, with at most
    /// `threads` threads and `bytes` of memory. Returns the maximum number of bytes that the reader will use;
    /// 0 if it does not decode ahead. Call this function before the first read.
    virtual uint64_t look_ahead(uint64_t /*bytes*/, int /*threads*/) { return 0; }
};

class CubeSource {
  public:
    virtual ~CubeSource() = default;
    virtual CubeShape shape() const = 0;
    virtual BlockLayout layout() const = 0;
    /// Opens a reader. Thread-safe.
    virtual std::unique_ptr<CubeReader> open_reader() const = 0;
    /// Returns the CUDA device whose memory contains every window, for view_on(); -1 if there is none.
    virtual int device() const { return -1; }
    /// Returns the CUDA device on which readers compute every window, for view_on(); -1 if there is none.
    virtual int computes_on() const { return -1; }
    /// Returns the device bytes of a reader that computes on a device, for windows of up to this size.
    virtual uint64_t device_bytes(int64_t /*samples*/, int64_t /*lines*/) const { return 0; }
    /// Returns the host bytes of a reader's decoded blocks and scratch, without the tiles that it fills.
    virtual uint64_t reader_bytes() const { return 0; }
    /// Returns further host bytes of a reader, for windows of up to this size: the input of a computed scene.
    virtual uint64_t window_bytes(int64_t /*samples*/, int64_t /*lines*/) const { return 0; }
    /// Returns the bytes that all bands of one pixel take in the file, for the report's "bytes read".
    virtual uint64_t stored_bytes_per_pixel() const { return static_cast<uint64_t>(shape().bands) * 4; }
};

/// Accepts tiles. NaN in `src` means missing: the sink stores its nodata value there.
class CubeSink {
  public:
    virtual ~CubeSink() = default;
    virtual CubeShape shape() const = 0;
    /// Returns true if several threads may call write() at once, in any order. If false, the pipeline calls
    /// it from one thread at a time, with tiles in order.
    virtual bool concurrent() const = 0;
    /// Returns a view of the memory of this CUDA device to which the tile is to be written; write() is then
    /// not called for the tile. Returns nullopt if write() takes the tile. One sink gives either a view for
    /// all tiles, or nullopt for all tiles.
    virtual std::optional<CubeView<float>> place_on(int /*device*/, const Rect& /*core*/) {
        return std::nullopt;
    }
    /// Returns the blocks of the output file that tiles should consist of if memory allows; block_samples =
    /// 0: no preference. A sink has a preference if writing only part of a block is expensive.
    virtual BlockLayout layout() const { return {}; }
    /// Writes the tile. The call may change `src` (conversion in place). Throws Error (disk full ...).
    virtual void write(const Rect& core, const CubeView<float>& src) = 0;
    virtual uint64_t stored_bytes_per_pixel() const { return static_cast<uint64_t>(shape().bands) * 4; }
};

/// A sink with one file that the ranks of a job write together. If concurrent(), each rank writes its own
/// tiles; otherwise the root writes the tiles of all ranks.
class SharedSink : public CubeSink {};

/// A sink of which each rank has a copy. At the end, each copy contains all tiles.
class GatheringSink : public CubeSink {
  public:
    /// Exchanges the tiles: each rank sends the tiles that it has written to all other ranks. All ranks call
    /// this function together, after the last tile.
    virtual void gather(parallel::Group& ranks) = 0;
};

} // namespace hsi::stream
