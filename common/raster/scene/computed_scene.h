// SPDX-License-Identifier: MIT
// An opened virtual scene (raster/scene_document.h): the scene behind it, the operation between, and readers
// that deliver what a file of its values would.
#pragma once

#include "raster/sample_convert.h"
#include "raster/scene/source_impl.h"
#include "raster/scene_document.h"
#include "stream/computed_source.h"

#include <memory>
#include <string>
#include <vector>

namespace hsi::raster {

struct ComputedScene final : Chain {
    std::shared_ptr<const RasterSource> behind;
    std::shared_ptr<stream::CubeSource> cube;         ///< all bands, whole lines
    std::shared_ptr<stream::ComputedSource> computed; ///< the same; null: the grid of a lookup table
    StoreRule rule;                                   ///< of the file that it takes the place of
    stream::Link link;
    SourceWatch watch; ///< of the files behind it

    std::vector<Link> links() const override;
    std::string source() const override;
    void compute_on(const std::vector<CudaDevice>& devices) const override;
};

/// Opens the files behind the document called `name`, all of which must be unchanged, and makes its
/// operation. Throws Error, also for a scene that is computed from itself.
std::shared_ptr<ComputedScene> open_computed(const SceneDocument& document, const std::string& name);

/// All but the pixels, as a dataset. Throws Error where it has not the pixels and bands of `cube`.
DatasetHandle open_description(const SceneDocument& document, const stream::CubeShape& cube,
                               const std::string& name);

/// For a source with SourceState::computed().
std::unique_ptr<stream::CubeReader> make_computed_reader(std::shared_ptr<const SourceState> source);
/// The device that it computes on, if its values are the chain's without changes; else -1.
int computed_on(const SourceState& source);
/// CubeSource::window_bytes() of such a source.
uint64_t computed_window_bytes(const SourceState& source, int64_t samples, int64_t lines);

/// The reference to the scene `like` in a document, as it was opened: its path, and the chosen parts. Throws
/// UsageError for choices that documents cannot state (a mask, or pixels from elsewhere).
DocumentSource document_source(const RasterSource& like);

} // namespace hsi::raster
