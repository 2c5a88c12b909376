// SPDX-License-Identifier: MIT
// The sources and sinks of cubes, as the tile pipeline sees them. They do not use GDAL: tests feed the
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

/// The storage units of a file, so that tiles follow them. block_samples = 0: whole lines.
struct BlockLayout {
    int64_t block_samples = 0;
    int64_t block_lines = 1;
    /// Not 0: decoded blocks stay for all readers, as long as the tiles that are worked on together cover no
    /// more lines than these. Tiles need not follow the blocks then.
    int64_t kept_lines = 0;
};

/// Reads tiles; one reader a thread (readers share nothing that is not thread-safe).
class CubeReader {
  public:
    virtual ~CubeReader() = default;
    /// Reads `window` (scene coordinates, inside the scene) of every band of the source into `dst`
    /// (dst.bands/lines/samples equal to the shape's bands and the window's size). A value that is nodata or
    /// masked out arrives as NaN; NaN and infinities of the file stay unchanged. So validity needs no second
    /// buffer: a pixel's values show it (core/valid_pixel.h). Throws Error when the file cannot be read.
    virtual void read(const Rect& window, const CubeView<float>& dst) = 0;
    /// `window` as read() would give it, if it is already in memory. It is read-only and stays as long as the
    /// source. nullopt if it has to be read.
    virtual std::optional<CubeView<float>> view(const Rect& /*window*/) { return std::nullopt; }
    /// `window` as read() would give it, in the memory of this CUDA device, if it is already there or is
    /// computed there. It is read-only and stays up to the next call. nullopt if it has to be read.
    virtual std::optional<CubeView<float>> view_on(int /*device*/, const Rect& /*window*/) {
        return std::nullopt;
    }
    /// A hint that `window` will be read soon.
    virtual void prefetch(const Rect& /*window*/) {}
    /// `window` will be read in this pass, by this reader or another one of its source, after those that were
    /// named before. A reader that fetches from afar begins with it. \return false when it does not, or not
    /// yet: name it again later.
    virtual bool expect(const Rect& /*window*/) { return false; }
    /// Lets a reader that decodes do so for the window that prefetch() named last, while its caller computes,
    /// with at most `threads` threads and `bytes` of memory. Returns how many bytes it may hold; 0 if it does
    /// not decode ahead. Call it before the first read.
    virtual uint64_t look_ahead(uint64_t /*bytes*/, int /*threads*/) { return 0; }
};

class CubeSource {
  public:
    virtual ~CubeSource() = default;
    virtual CubeShape shape() const = 0;
    virtual BlockLayout layout() const = 0;
    /// Thread-safe.
    virtual std::unique_ptr<CubeReader> open_reader() const = 0;
    /// The CUDA device whose memory has every window, for view_on(); -1: none.
    virtual int device() const { return -1; }
    /// The CUDA device on which readers compute every window, for view_on(); -1: none.
    virtual int computes_on() const { return -1; }
    /// Device bytes of such a reader, for windows of up to this size.
    virtual uint64_t device_bytes(int64_t /*samples*/, int64_t /*lines*/) const { return 0; }
    /// Host bytes that one reader holds in addition to the tiles that it fills: decoded blocks, scratch.
    virtual uint64_t reader_bytes() const { return 0; }
    /// Further host bytes of a reader, for windows of up to this size: the input of a computed scene.
    virtual uint64_t window_bytes(int64_t /*samples*/, int64_t /*lines*/) const { return 0; }
    /// Bytes in the file for one pixel of all bands: for the report's "bytes read".
    virtual uint64_t stored_bytes_per_pixel() const { return static_cast<uint64_t>(shape().bands) * 4; }
};

/// Takes tiles. NaN in `src` means "no value": the sink stores its nodata value there.
class CubeSink {
  public:
    virtual ~CubeSink() = default;
    virtual CubeShape shape() const = 0;
    /// True: write() may be called from several threads at once, in any order. False: the pipeline calls it
    /// from one thread at a time, tiles in order.
    virtual bool concurrent() const = 0;
    /// Where this tile is to be put in the memory of this CUDA device, and is then not written. None: write()
    /// takes it. All tiles are treated alike.
    virtual std::optional<CubeView<float>> place_on(int /*device*/, const Rect& /*core*/) {
        return std::nullopt;
    }
    /// Preferred blocks of tiles if memory allows: the blocks of a file that cannot read parts of a block
    /// cheaply. block_samples = 0: no preference.
    virtual BlockLayout layout() const { return {}; }
    /// Writes the tile; `src` may be changed by the call (conversion in place). Throws Error (disk full ...).
    virtual void write(const Rect& core, const CubeView<float>& src) = 0;
    virtual uint64_t stored_bytes_per_pixel() const { return static_cast<uint64_t>(shape().bands) * 4; }
};

/// A sink with one file that the ranks of a job write together. If concurrent(), each writes its own tiles;
/// else the root writes the others' tiles.
class SharedSink : public CubeSink {};

/// A sink that each rank has a copy of; in the end each is to hold all tiles.
class GatheringSink : public CubeSink {
  public:
    /// All ranks call it together, after the last tile: each gives the others the tiles written into its own.
    virtual void gather(parallel::Group& ranks) = 0;
};

} // namespace hsi::stream
