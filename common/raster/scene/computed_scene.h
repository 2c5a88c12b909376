// SPDX-License-Identifier: MIT
// An opened virtual scene (raster/scene_document.h): the scene behind it, the operation, and readers that
// return what a file of its values would contain.
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
    std::shared_ptr<stream::ComputedSource> computed; ///< the same cube; null: the grid of a lookup table
    StoreRule rule;                                   ///< of the file that it replaces
    stream::Link link;
    SourceWatch watch; ///< of the files behind it

    std::vector<Link> links() const override;
    std::string source() const override;
    void compute_on(const std::vector<CudaDevice>& devices) const override;
};

/// Opens the files behind the document called `name`, all of which must be unchanged, and makes its
/// operation. Throws Error, also for a scene that is computed from itself.
std::shared_ptr<ComputedScene> open_computed(const SceneDocument& document, const std::string& name);

/// Opens all facts except the pixels as a dataset. Throws Error if its pixels and bands differ from `cube`.
DatasetHandle open_description(const SceneDocument& document, const stream::CubeShape& cube,
                               const std::string& name);

/// Makes a reader for a source with SourceState::computed().
std::unique_ptr<stream::CubeReader> make_computed_reader(std::shared_ptr<const SourceState> source);
/// Returns the device that it computes on, if its values are those of the steps without changes; else -1.
int computed_on(const SourceState& source);
/// Returns CubeSource::window_bytes() of such a source.
uint64_t computed_window_bytes(const SourceState& source, int64_t samples, int64_t lines);

/// Returns the reference to the scene `like` in a document, as it was opened: its path and the selected
/// parts. Throws UsageError for selections that documents cannot state (a mask, or pixels from elsewhere).
DocumentSource document_source(const RasterSource& like);

} // namespace hsi::raster
