// SPDX-License-Identifier: MIT
// Samples of a regression: a value with its spectrum, from features or rasters on scenes, or from a table;
// and the outputs of their estimates.
#pragma once

#include "raster/labels.h"
#include "raster/raster_source.h"
#include "regression/train.h"
#include "shared/plot.h"
#include "tool/definition.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::tools {

enum class Per { feature, pixel };

struct SampleOptions {
    raster::LabelOptions labels; ///< `values`
    Per per = Per::feature;
    int64_t block = 0; ///< groups are squares of this number of pixels; 0: no groups
};
/// Adds -field, -per, and the options that select the pixels of features.
void add_sample_options(tool::Builder& args, SampleOptions& options);
/// Throws UsageError if one of these options was given; `why` is the reason.
void refuse_sample_options(const tool::Call& call, const std::string& why);

/// Samples in their order.
struct SampleSet {
    std::string name; ///< of the variable
    size_t bands = 0;
    std::vector<double> x; ///< [sample][band], scaled values
    std::vector<double> y;
    std::vector<int> group;        ///< numbered from 0 by first appearance
    std::vector<double> pixels;    ///< [pixel][band]: all labelled pixels
    std::vector<int> pixel_sample; ///< of each pixel: a sample that it belongs to
    std::vector<int64_t> place;    ///< of each pixel, as if all scenes were on one grid
    int64_t place_samples = 1;     ///< samples per line of this grid
    int64_t invalid_pixels = 0, empty_samples = 0;

    size_t count() const { return y.size(); }
    /// Keeps only the samples `kept` (rising), and the pixels that belong to one of them.
    void keep(const std::vector<size_t>& kept);
    /// Numbers the groups of all samples again.
    void number_groups();

    std::map<std::string, int> group_numbers; ///< while samples are added
};

/// Adds the samples of one scene; bands without values at labelled pixels are left out of it. `scene_number`
/// separates its groups from those of other scenes. \throws Error if no pixel is labelled.
void add_samples(tool::Run& run, const SampleOptions& options, std::shared_ptr<raster::RasterSource>& scene,
                 int scene_number, SampleSet& set);

/// Reads a table with one spectrum per row. Its columns are named by wavelength (nm; all below 100: um),
/// returned in `wavelengths_nm`; further columns are values and groups.
SampleSet read_sample_table(tool::Run& run, const std::string& path, const std::string& field,
                            const std::string& group, std::vector<double>& wavelengths_nm);

/// Returns [sample][band] transformed; samples whose result is not finite are NaN.
std::vector<double> transformed(const regression::Transform& transform, const std::vector<double>& x);

/// Returns the samples (or pixels) whose values are all finite.
std::vector<size_t> finite_rows(const std::vector<double>& x, size_t bands);

/// Values and their estimates, for -predictions and -scatter. Lists except the first two may be empty.
struct HeldOut {
    std::vector<double> value, estimate, deviation;
    std::vector<int> group, fold;
};
std::string predictions_csv(const HeldOut& held_out);
std::string metrics_text(const regression::Metrics& metrics);

inline constexpr Plot::Frame scatter_frame{900, 900, 120, 840, 60, 780};
/// Plots estimates over values, with their metrics.
Plot scatter_plot(const HeldOut& held_out, const regression::Model& model,
                  const regression::Metrics& metrics);

} // namespace hsi::tools
