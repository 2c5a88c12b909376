// SPDX-License-Identifier: MIT
// An opened virtual scene (raster/scene_document.h): the source scene, the operation, and readers of computed
// values. The readers return the same values as readers of a file into which the computed values were
// written.
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
    std::shared_ptr<stream::CubeSource> cube; ///< all bands and all lines
    /// The same object as `cube` if an operation computes it; null if `cube` is an orthorectified grid.
    std::shared_ptr<stream::ComputedSource> computed;
    StoreRule rule; ///< how a file would store the values
    stream::Link link;
    SourceWatch watch; ///< detects changes of the source files

    std::vector<Link> links() const override;
    std::string source() const override;
    void compute_on(const std::vector<CudaDevice>& devices) const override;
};

/// Opens the source of the virtual scene `name`, and creates its operation. \throws Error if a source file
/// has changed, or if the scene is computed from itself.
std::shared_ptr<ComputedScene> open_computed(const SceneDocument& document, const std::string& name);

/// Opens the metadata of the virtual scene `name` as a dataset without pixels. Throws Error if the size or
/// the number of bands of the dataset differs from `cube`.
DatasetHandle open_description(const SceneDocument& document, const stream::CubeShape& cube,
                               const std::string& name);

/// Makes a reader for a source whose SourceState::computed() is not null.
std::unique_ptr<stream::CubeReader> make_computed_reader(std::shared_ptr<const SourceState> source);
/// Returns the CUDA device on which the values are computed. Returns -1 if they are computed on the CPU, if
/// the source selects bands or parts of values, or if values must be changed after the computation (rounding
/// to the stored type, nodata).
int computed_on(const SourceState& source);
/// Returns CubeSource::window_bytes() of a source whose SourceState::computed() is not null.
uint64_t computed_window_bytes(const SourceState& source, int64_t samples, int64_t lines);

/// Returns the description of the opened scene `like` for a document: its path or its own document, the
/// options with which it was opened, the selected bands, the window and the lookup table. Throws UsageError
/// for a scene with a mask, which a document cannot state.
DocumentSource document_source(const RasterSource& like);

} // namespace hsi::raster
