// SPDX-License-Identifier: MIT
// Shared code of tools that train a classifier: makes a training set from labelled pixels and their spectra.
#pragma once

#include "core/class_names.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "model/training_set.h"
#include "raster/labels.h"
#include "sample/sample.h"
#include "tool/classification.h"
#include "tool/model_values.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hsi::tools {

/// Returns the number of bytes that the spectra of all labelled pixels need. \throws Error if this is more
/// than half of the buffer memory.
inline uint64_t spectra_bytes(const tool::Run& run, size_t pixels, int bands) {
    const uint64_t bytes = pixels * static_cast<uint64_t>(bands) * sizeof(float);
    if (bytes > run.buffer_memory() / 2)
        throw Error(std::to_string(pixels) + " training pixels of " + std::to_string(bands) + " bands need " +
                        format_byte_size(bytes) + ", more than half of -memory",
                    "Draw fewer with gdal_hsi_sample, or use more -memory.");
    return bytes;
}

/// Removes labelled pixels outside of the mask, and classes that lose all of their pixels. \throws Error if
/// no pixel is left.
inline raster::LabelledPixels labels_in(tool::Run& run, const stream::PixelMask& mask,
                                        const raster::LabelledPixels& labels) {
    raster::LabelledPixels kept;
    kept.grid = labels.grid;
    for (size_t i = 0; i < labels.index.size(); ++i)
        if (mask.at(labels.index[i])) {
            kept.index.push_back(labels.index[i]);
            kept.value.push_back(labels.value[i]);
        }
    const size_t outside = labels.index.size() - kept.index.size();
    run.report()["mask"]["labelled_pixels"] = kept.index.size();
    if (kept.index.empty())
        throw Error("no labelled pixel is in the mask",
                    "-mask chooses pixels to use, -mask-exclude pixels to leave out.");
    for (const auto& c : labels.classes) {
        LabelClass one = c;
        one.pixels = std::count(kept.value.begin(), kept.value.end(), static_cast<uint16_t>(c.value));
        if (one.pixels > 0)
            kept.classes.push_back(std::move(one));
        else
            run.warn("class " + tool::class_text(c.value, c.name) + ": its " +
                     counted(c.pixels, "labelled pixel is", "labelled pixels are") +
                     " not in the mask; the class is left out");
    }
    if (outside > 0)
        run.note(std::to_string(outside) + " of " + counted(labels.index.size(), "labelled pixel") +
                 worded(outside, " is", " are") + " not in the mask and left out");
    return kept;
}

/// Patches of labelled pixels: pixels of one class that touch, and pixels of one polygon.
struct LabelPatches {
    std::vector<size_t> of; ///< patch of each labelled pixel, from 0, in the order of LabelledPixels
    bool polygons = false;  ///< true if the labels are polygons
};

/// Reads the labels on the grid of the scene, inside the mask of the run. Adds a description of the labels to
/// the report.
inline raster::LabelledPixels read_labels(tool::Run& run, const raster::LabelOptions& options,
                                          const raster::RasterSource& scene,
                                          LabelPatches* patches = nullptr) {
    const auto grid = raster::grid_of(scene);
    const auto source = raster::LabelSource::open(options, &grid);
    tool::report_notes(run, *source);
    run.report()["labels"] = {{"path", source->path()}, {"how", source->description()}};
    auto labels = raster::collect_labels(*source);
    for (const auto& note : labels.notes)
        run.warn(note);
    if (run.mask()) labels = labels_in(run, *run.mask(), labels);
    if (patches != nullptr) {
        sample::Patches found(labels.index, labels.value, labels.grid.samples);
        source->each_polygon([&](uint16_t value, const std::vector<int64_t>& pixels) {
            patches->polygons = true;
            found.join(value, pixels);
        });
        patches->of = found.numbers();
    }
    return labels;
}

/// The classes of the labels of several scenes as one list. Classes with the same name are equal; case is
/// ignored if it distinguishes no classes of one file. If one of two classes has no name, they are equal if
/// their numbers are equal. Any other class is added, with its own number if that number is free.
class JoinedClasses {
  public:
    /// Adds classes and their pixels. Returns a map from the number of each added class to its number in
    /// all(). `whose`: owner of the labels, for a note about classes whose number changes.
    std::map<int, int> add(tool::Run& run, const std::string& whose, const std::vector<LabelClass>& classes) {
        std::map<int, int> number;
        for (const LabelClass& c : classes) {
            const auto known = find(c, classes);
            if (known != m_all.end()) {
                known->pixels += c.pixels;
                if (known->name.empty()) known->name = c.name;
                number[c.value] = known->value;
            } else {
                LabelClass added = c;
                while (std::any_of(m_all.begin(), m_all.end(),
                                   [&](const LabelClass& other) { return other.value == added.value; }))
                    ++added.value;
                if (added.value > raster::max_class)
                    throw Error("the labels of all scenes have more than 65535 classes",
                                "Use the same class numbers in all labels.");
                number[c.value] = added.value;
                m_all.push_back(std::move(added));
            }
            if (number[c.value] != c.value)
                run.note(whose + ": class " + tool::class_text(c.value, c.name) + " is " +
                         std::to_string(number[c.value]) + " of the first labels");
        }
        std::sort(m_all.begin(), m_all.end(),
                  [](const LabelClass& a, const LabelClass& b) { return a.value < b.value; });
        return number;
    }
    const std::vector<LabelClass>& all() const { return m_all; } ///< sorted by number

  private:
    /// Returns the class of m_all that is equal to a class of the labels with the given `classes`.
    std::vector<LabelClass>::iterator find(const LabelClass& c, const std::vector<LabelClass>& classes) {
        auto known = std::find_if(m_all.begin(), m_all.end(), [&](const LabelClass& other) {
            return c.name.empty() || other.name.empty() ? c.value == other.value : c.name == other.name;
        });
        if (known == m_all.end() && !c.name.empty() && is_unlike_others(classes, c.name))
            known = find_class_named(m_all, c.name);
        return known;
    }

    std::vector<LabelClass> m_all;
};

/// Returns the training set of labelled pixels with a valid spectrum. `values`: [pixel][band] in the order of
/// `labels`. valid(i): true if pixel i has a valid spectrum. Other pixels, and classes without any valid
/// spectrum, are omitted with a warning and counted in the report. \throws Error if no pixel is left.
inline model::TrainingSet training_set(tool::Run& run, const raster::LabelledPixels& labels, int bands,
                                       const std::vector<float>& values,
                                       const std::function<bool(size_t)>& valid) {
    model::TrainingSet set;
    set.features = bands;
    int64_t invalid = 0;
    for (size_t i = 0; i < labels.index.size(); ++i) {
        if (!valid(i)) {
            ++invalid;
            continue;
        }
        const auto row = values.begin() + static_cast<ptrdiff_t>(i) * bands;
        set.values.insert(set.values.end(), row, row + bands);
        set.label.push_back(labels.value[i]);
    }
    for (const auto& c : labels.classes) {
        LabelClass one = c;
        one.pixels = std::count(set.label.begin(), set.label.end(), static_cast<uint16_t>(c.value));
        if (one.pixels == 0) {
            run.warn("class " + tool::class_text(c.value, c.name) + ": its " +
                     counted(c.pixels, "labelled pixel has", "labelled pixels have") +
                     " no valid spectrum; the class is left out");
            continue;
        }
        set.classes.push_back(std::move(one));
    }
    run.report()["labelled_pixels"] = labels.index.size();
    run.report()["labelled_pixels_without_values"] = invalid;
    if (invalid > 0)
        run.warn(std::to_string(invalid) + " of " + counted(labels.index.size(), "labelled pixel") +
                 worded(invalid, " has no valid spectrum", " have no valid spectrum") +
                 " (nodata, masked, NaN or all zero) and " + worded(invalid, "is", "are") + " left out");
    if (set.label.empty())
        throw Error("no labelled pixel has a valid spectrum",
                    "Check the nodata value (-srcnodata) and bad bands (-b).");
    return set;
}

/// With fewer pixels, the spread of a class is poorly known: the relative error of its estimate is 1 / sqrt(2
/// n), about a quarter.
inline constexpr int64_t least_class_pixels = 10;

/// Warns of classes with fewer than `least` training pixels. `why`: reason why so few pixels are a problem.
inline void warn_of_small_classes(tool::Run& run, const std::vector<LabelClass>& classes, int64_t least,
                                  const std::string& why) {
    std::string names;
    Json small = Json::array();
    for (const auto& c : classes) {
        if (c.pixels >= least) continue;
        names += (names.empty() ? "" : ", ") + tool::class_text(c.value, c.name) + " (" +
                 std::to_string(c.pixels) + ")";
        small.push_back(c.value);
    }
    run.report()["small_classes"] = small;
    if (!names.empty())
        run.warn(
            "few training pixels in class " + names + ": " + why +
            "; the map and its accuracies are unreliable for these classes. Label more, or join classes");
}

/// Adds the minimum, maximum and mean of each band of the training pixels to a model.
inline void describe_values(const model::TrainingSet& set, model::ModelBands& model) {
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
