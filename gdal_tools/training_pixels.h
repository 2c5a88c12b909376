// SPDX-License-Identifier: MIT
// What tools that train a classifier share: labelled pixels and their spectra to a training set.
#pragma once

#include "cli/classification.h"
#include "cli/model_values.h"
#include "core/byte_size.h"
#include "core/error.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace hsi::tools {

/// Bytes of the spectra of all labelled pixels. Throws Error when they are more than half of the buffer
/// memory.
inline uint64_t spectra_bytes(const cli::Run& run, const raster::LabelledPixels& labels, int bands) {
    const uint64_t bytes = labels.index.size() * static_cast<uint64_t>(bands) * sizeof(float);
    if (bytes > run.buffer_memory() / 2)
        throw Error(std::to_string(labels.index.size()) + " training pixels of " + std::to_string(bands) +
                        " bands need " + format_byte_size(bytes) + ", more than half of -memory",
                    "Draw fewer with gdal_hsi_sample, or give more -memory.");
    return bytes;
}

/// Fills set.values, label and classes with the labelled pixels that have a valid spectrum; set.features is
/// known. Spectra: valid(i) and spectra() ([pixel][band]) in the order of `labels`. Pixels and classes
/// without a spectrum are left out with a warning, and counted in the report; throws Error when nothing is
/// left.
template <class Set, class Spectra>
void fill_training_set(cli::Run& run, const raster::LabelledPixels& labels, const Spectra& spectra,
                       Set& set) {
    int64_t invalid = 0;
    for (size_t i = 0; i < labels.index.size(); ++i) {
        if (!spectra.valid(i)) {
            ++invalid;
            continue;
        }
        const auto row =
            spectra.spectra().begin() + static_cast<ptrdiff_t>(i * static_cast<size_t>(set.features));
        set.values.insert(set.values.end(), row, row + set.features);
        set.label.push_back(labels.value[i]);
    }
    for (const auto& c : labels.classes) {
        model::ModelClass one;
        one.value = c.value;
        one.name = c.name;
        one.colour = c.colour;
        one.samples = std::count(set.label.begin(), set.label.end(), static_cast<uint16_t>(c.value));
        if (one.samples == 0) {
            run.warn("class " + cli::class_text(c.value, c.name) + ": none of its " +
                     std::to_string(c.pixels) +
                     " labelled pixels has a valid spectrum; the class is left out");
            continue;
        }
        set.classes.push_back(std::move(one));
    }
    run.report()["labelled_pixels"] = labels.index.size();
    run.report()["labelled_pixels_without_values"] = invalid;
    if (invalid > 0)
        run.warn(
            std::to_string(invalid) + " of " + std::to_string(labels.index.size()) +
            " labelled pixels have no valid spectrum (nodata, masked, NaN or all zero) and are left out");
    if (set.label.empty())
        throw Error("no labelled pixel has a valid spectrum",
                    "Check the nodata value (-srcnodata) and bad bands (-b).");
}

/// What a model keeps of its training pixels' values: minimum, maximum and mean of each band.
template <class Set>
void describe_values(const Set& set, model::ModelBands& model) {
    const auto bands = static_cast<size_t>(set.features);
    const size_t pixels = set.values.size() / bands;
    model.minimum.assign(set.values.begin(), set.values.begin() + static_cast<ptrdiff_t>(bands));
    model.maximum = model.minimum;
    model.mean.assign(bands, 0.0);
    for (size_t i = 0; i < pixels; ++i)
        for (size_t b = 0; b < bands; ++b) {
            const auto v = static_cast<double>(set.values[i * bands + b]);
            model.minimum[b] = std::min(model.minimum[b], v);
            model.maximum[b] = std::max(model.maximum[b], v);
            model.mean[b] += v;
        }
    for (double& m : model.mean)
        m /= static_cast<double>(pixels);
}

} // namespace hsi::tools
