// SPDX-License-Identifier: MIT
// What an operation makes of a cube, as a cube that other operations read: a link of a chain. Nothing of it
// is stored; a tile is computed when it is read, and what it is computed from is read with the operation's
// halo around it, so that the halos of a chain add up.
#pragma once

#include "core/json.h"
#include "stream/operation.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace hsi::stream {

/// The values are those of a pass with this operation, to the last bit, whatever windows are read.
class ComputedSource final : public CubeSource {
  public:
    /// Output `output` of `operation`, which gathers nothing and has no align_samples() and align_lines();
    /// one that is made for this source, since its worker computes all outputs. Throws Error where it has no
    /// such output.
    ComputedSource(std::shared_ptr<const CubeSource> behind, std::shared_ptr<Operation> operation,
                   size_t output = 0);

    CubeShape shape() const override { return m_shape; }
    /// As that of the cube behind it; tiles of a few halos, or most would be computed more than once.
    BlockLayout layout() const override;
    std::unique_ptr<CubeReader> open_reader() const override;
    uint64_t reader_bytes() const override { return m_behind->reader_bytes(); }
    uint64_t window_bytes(int64_t samples, int64_t lines) const override;
    uint64_t stored_bytes_per_pixel() const override { return m_behind->stored_bytes_per_pixel(); }

    int64_t halo() const { return m_operation->halo(); } ///< of this link alone

  private:
    class Reader;
    /// Lines of a window that are computed in one go: all, or few where they can be had one by one and stay
    /// in the processor's caches on their way through the chain.
    int64_t lines_at_once(int64_t samples, int64_t lines) const;
    TileLimits limits(int64_t samples, int64_t lines) const; ///< of the worker, for windows of this size

    std::shared_ptr<const CubeSource> m_behind;
    std::shared_ptr<Operation> m_operation;
    size_t m_output;
    CubeShape m_shape;
};

/// An operation by its name, with all that it needs: what a file can say of a link.
struct Link {
    std::string operation;          ///< "spp"
    Json settings = Json::object(); ///< its own
    size_t output = 0;              ///< of its outputs
};

/// Makes the operation of a link for a cube of this shape. Throws Error where settings are damaged, or are
/// those of another cube.
using LinkMaker = std::function<std::shared_ptr<Operation>(const Link& link, const CubeShape& scene)>;
/// Who knows the operations says so once, before any link is made: this room knows none.
void set_link_maker(LinkMaker maker);
/// By the maker. Throws Error as it does, and where nobody has set one.
std::shared_ptr<Operation> make_operation(const Link& link, const CubeShape& scene);

} // namespace hsi::stream
