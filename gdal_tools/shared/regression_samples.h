// SPDX-License-Identifier: MIT
// Collects the samples of a regression: values with spectra, from features or rasters on scenes or from a
// table. Also writes and plots estimates.
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
    raster::LabelOptions labels; ///< labels.values is true
    Per per = Per::feature;
    int64_t block = 0; ///< side of the squares that are groups, in pixels; 0: no such groups
};
/// Adds -field, -per, and the options that select the pixels of features.
void add_sample_options(tool::Builder& args, SampleOptions& options);
/// Throws UsageError if one of these options was given. `why`: the reason, for the message.
void refuse_sample_options(const tool::Call& call, const std::string& why);

/// The samples, in the order in which they were added.
struct SampleSet {
    std::string name; ///< name of the variable
    size_t bands = 0;
    std::vector<double> x; ///< [sample][band], scaled values
    std::vector<double> y;
    std::vector<int> group;        ///< group of each sample, numbered from 0 in the order of appearance
    std::vector<double> pixels;    ///< spectra of all labelled pixels, [pixel][band]
    std::vector<int> pixel_sample; ///< a sample to which the pixel belongs, for each pixel
    std::vector<int64_t> place;    ///< position of each pixel, as if all scenes were on one grid
    int64_t place_samples = 1;     ///< number of samples per line of this grid
    int64_t invalid_pixels = 0, empty_samples = 0;

    size_t count() const { return y.size(); }
    /// Keeps only the samples in `kept` (ascending), and the pixels that belong to these samples.
    void keep(const std::vector<size_t>& kept);
    /// Numbers the groups of all samples from 0 again.
    void number_groups();

    std::map<std::string, int> group_numbers; ///< numbers of the groups by name, used while samples are added
};

/// Adds the samples of one scene. Bands without values at labelled pixels are removed from `scene`.
/// `scene_number`: distinguishes the groups of different scenes. \throws Error if no pixel is labelled.
void add_samples(tool::Run& run, const SampleOptions& options, std::shared_ptr<raster::RasterSource>& scene,
                 int scene_number, SampleSet& set);

/// Reads a table with one spectrum per row. Columns of bands are named by their wavelength, in nm, or in um
/// if all are below 100. Other columns are values and groups. `wavelengths_nm` is set to the wavelengths.
SampleSet read_sample_table(tool::Run& run, const std::string& path, const std::string& field,
                            const std::string& group, std::vector<double>& wavelengths_nm);

/// Returns the transformed spectra, [sample][band]. If a result is not finite, all values of the sample are
/// NaN.
std::vector<double> transformed(const regression::Transform& transform, const std::vector<double>& x);

/// Returns the indices of the samples (or pixels) whose values are all finite.
std::vector<size_t> finite_rows(const std::vector<double>& x, size_t bands);

/// Values and their estimates, for -predictions and -scatter. All lists except `value` and `estimate` may be
/// empty.
struct HeldOut {
    std::vector<double> value, estimate, deviation;
    std::vector<int> group, fold;
};
std::string predictions_csv(const HeldOut& held_out);
std::string metrics_text(const regression::Metrics& metrics);

inline constexpr Plot::Frame scatter_frame{900, 900, 120, 840, 60, 780};
/// Plots estimates over values, and states the metrics.
Plot scatter_plot(const HeldOut& held_out, const regression::Model& model,
                  const regression::Metrics& metrics);

} // namespace hsi::tools
