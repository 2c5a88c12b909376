// SPDX-License-Identifier: MIT
#include "gdal_hsi_accuracy/warnings.h"

#include "core/counted.h"
#include "core/text.h"
#include "shared/folds.h"
#include "shared/neighbours.h"
#include "shared/training_pixels.h"
#include "tool/classification.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace hsi::accuracy_tool {

void warn_of_other_names(tool::Run& run, const accuracy::NamedPairs& pairs) {
    if (pairs.by_name || pairs.differing.empty()) return;
    constexpr size_t most = 3;
    std::vector<std::string> list;
    for (const auto& [map, reference] : pairs.differing)
        if (list.size() < most)
            list.push_back(tool::class_text(map.value, map.name) + " = " +
                           tool::class_text(reference.value, reference.name));
    const size_t further = pairs.differing.size() - list.size();
    run.warn((pairs.agreeing == 0 ? std::string("no class name of the map is in the reference")
                                  : std::string("not all classes of map and reference have a name")) +
             ": classes are matched by number (" + joined(list, ", ") +
             (further > 0 ? " and " + counted(further, "other") : std::string()) +
             "). Give both files the same names, or check that both number their classes in the same way");
}

void warn_of_few_pixels(tool::Run& run, const std::vector<accuracy::Result>& results) {
    struct Few {
        std::string name;
        int64_t least = tools::least_class_pixels, most = 0;
        std::vector<int> folds;
    };
    std::map<std::pair<int, std::string>, Few> classes;
    for (size_t k = 0; k < results.size(); ++k)
        for (const auto& c : results[k].by_class) {
            if (c.reference == 0 || c.reference >= tools::least_class_pixels) continue;
            Few& few = classes[{c.of.value, c.of.name}];
            few.name = tool::class_text(c.of.value, c.of.name);
            few.least = std::min(few.least, c.reference);
            few.most = std::max(few.most, c.reference);
            few.folds.push_back(static_cast<int>(k) + 1);
        }
    if (classes.empty()) return;
    std::string list;
    for (const auto& [key, few] : classes) {
        list += (list.empty() ? "" : ", ") + few.name + " (" + std::to_string(few.least);
        if (few.most > few.least) list += " to " + std::to_string(few.most);
        if (results.size() > 1) list += " in " + tools::folds_text(few.folds);
        list += ")";
    }
    run.warn("few reference pixels of class " + list + ": under " +
             std::to_string(tools::least_class_pixels) +
             " pixels, one pixel changes an accuracy of the class by more than a tenth");
}

void warn_of_one_class(tool::Run& run, const std::vector<accuracy::Result>& results) {
    int64_t alarms = 0, named = 0;
    for (const auto& r : results) {
        if (!std::isnan(r.kappa.value)) return;
        alarms += r.alarms;
        named += r.alarms;
        for (const auto& c : r.by_class)
            named += c.mapped;
    }
    if (alarms > 0)
        run.warn("map or reference has only one class, so the accuracies ignore false alarms: " +
                 std::to_string(alarms) + " of " + counted(named, "pixel") +
                 " with a class in the map have no label. Assess the scores of a detector (-scores), or "
                 "label the background");
}

void warn_of_unknown_classes(tool::Run& run, const std::vector<accuracy::Result>& results,
                             const std::vector<std::string>& left_out) {
    constexpr size_t most = 5;
    using Class = std::pair<int, std::string>;
    std::set<Class> known;
    std::map<Class, int64_t> lacking; // number of pixels per class
    int64_t judged = 0, pixels = 0;
    for (const auto& result : results) {
        judged += result.pixels;
        for (const auto& c : result.by_class) {
            const Class one{c.of.value, c.of.name};
            if (c.reference > 0) known.insert(one);
            if (c.reference == 0 && c.mapped > 0) lacking[one] += c.mapped;
        }
    }
    std::vector<std::string> classes;
    for (const auto& [one, mapped] : lacking) {
        const auto& [value, name] = one;
        if (known.count(one) > 0) continue;
        if (std::any_of(left_out.begin(), left_out.end(), [&, value = value, &name = name](const auto& word) {
                return word == name || word == std::to_string(value);
            }))
            continue;
        pixels += mapped;
        classes.push_back(tool::class_text(value, name));
    }
    run.report()["pixels_of_unknown_classes"] = pixels;
    if (!tools::touching_counts(pixels, judged)) return;
    const size_t further = classes.size() - std::min(classes.size(), most);
    classes.resize(classes.size() - further);
    run.warn(std::to_string(pixels) + " of " + counted(judged, "judged pixel") +
             worded(pixels, " has a class", " have classes") + " in the map that the reference lacks (" +
             joined(classes, ", ") + (further > 0 ? " and " + counted(further, "other") : std::string()) +
             "), and count as errors: check that the labels and -field belong to the map");
}

} // namespace hsi::accuracy_tool
