// SPDX-License-Identifier: MIT
// Detects with one background per group: columns of the scanner, or classes of a map.
#include "gdal_hsi_detect/approaches.h"

#include "core/counted.h"
#include "core/error.h"
#include "detect/groups/groups.h"
#include "gdal_hsi_detect/scores.h"
#include "gdal_hsi_detect/settings.h"
#include "gdal_hsi_detect/targets.h"
#include "raster/labels.h"
#include "raster/raster_source.h"
#include "shared/column_tiles.h"
#include "stream/empty_source.h"
#include "tool/classification.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/scene.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::detect_tool {
namespace {

using GroupComputing = tool::Computing<detect::GroupBackend>;

detect::GroupOptions group_options(const Groups& how, detect::Targets targets) {
    return {
        how.method,          std::move(targets),      how.shrinkage.conditioning, how.shrinkage.ledoit_wolf,
        how.exclusion.share, how.exclusion.iterations};
}

/// Returns the work of statistics and scores of groups. On the CPU, classes of a map need several passes.
tool::Work work_of_groups(const Groups& how, const raster::RasterSource& scene, size_t targets) {
    const auto shape = scene.shape();
    const double values = static_cast<double>(shape.float_bytes()) / 4,
                 scores = targets > 0 ? static_cast<double>(targets) : 1,
                 rounds = how.exclusion.share > 0 ? 1 + how.exclusion.iterations : 1,
                 reads = how.by_columns() ? 1 : rounds * (how.shrinkage.ledoit_wolf ? 3 : 2);
    tool::Work work;
    work.device_reads = 4 * values;
    work.cpu_reads = reads * work.device_reads;
    work.writes = 4 * static_cast<double>(shape.pixels()) * scores;
    work.add(detect::cost::column_filter, rounds * values * shape.bands);
    work.add(detect::cost::score, rounds * values * scores);
    if (how.method == Method::ace || how.method == Method::rx)
        work.add(detect::cost::matrix, rounds * values * shape.bands);
    return work;
}

/// Returns group_options() with the targets' spectra at the bands of the source. Returns nullopt if a target
/// has no spectrum at these bands.
std::optional<detect::GroupOptions> group_options_at(const Groups& how, DetectTargets& targets,
                                                     const raster::RasterSource& source) {
    auto options = group_options(how, {targets.names(), {}});
    if (!detect::has_target(how.method)) return options;
    auto spectra = targets.at(source);
    if (!spectra) return {};
    options.targets = std::move(*spectra);
    return options;
}

/// Reads the map of -background-by on the grid of the scene. Numbers its classes in ascending order. \throws
/// Error with the file name.
detect::GroupPlane read_groups(tool::Run& run, const Groups& how, const raster::RasterSource& scene) {
    const auto shape = scene.shape();
    const auto grid = raster::grid_of(scene);
    raster::LabelOptions options;
    options.path = how.by;
    detect::GroupPlane plane;
    plane.samples = shape.samples;
    const auto bytes = static_cast<uint64_t>(shape.pixels()) * sizeof(uint16_t);
    if (bytes > tool::quarter(run.options().memory))
        throw Error("-background-by: the groups of " + std::to_string(shape.pixels()) + " pixels take " +
                        format_byte_size(bytes) + ", more than a quarter of -memory " +
                        format_byte_size(run.options().memory),
                    "Give -memory " + format_byte_size(4 * bytes) + " or more.");
    const auto source = [&] {
        try {
            return raster::LabelSource::open(options, &grid);
        } catch (const Error& error) {
            throw Error(std::string("-background-by: ") + error.what(), error.advice());
        }
    }();
    tool::report_notes(run, *source);
    plane.of.resize(static_cast<size_t>(shape.pixels()));
    constexpr int64_t strip = 64;
    for (int64_t y = 0; y < shape.lines; y += strip) {
        if (run.cancel().requested()) throw Cancelled();
        source->read(y, std::min(strip, shape.lines - y), plane.of.data() + y * shape.samples);
    }
    std::vector<uint16_t> number(size_t{1} << 16);
    for (const uint16_t value : plane.of)
        number[value] = value != source->none();
    std::vector<int> classes;
    for (size_t value = 0; value < number.size(); ++value)
        if (number[value] != 0) {
            classes.push_back(static_cast<int>(value));
            number[value] = static_cast<uint16_t>(classes.size());
        }
    if (classes.empty())
        throw Error("-background-by " + how.by + ": no pixel of the scene has a class",
                    "Use a map that overlaps the scene; 0 and nodata are not classes.");
    for (uint16_t& value : plane.of)
        value = number[value];
    plane.groups = static_cast<int>(classes.size());
    run.report()["background_map"] = {{"path", how.by}, {"how", source->description()}, {"classes", classes}};
    return plane;
}

/// The detectors of the groups of a map, which are filled one by one.
struct GroupDetectors {
    std::vector<std::unique_ptr<detect::Detector>> detectors; ///< null if the group has no scores
    std::vector<detect::GroupRecord> records;
};

/// Adds the detector of one group.
void add_group(const Groups& how, const detect::Targets& targets, const stream::SceneStatistics& moments,
               double shrinkage, GroupDetectors& groups) {
    auto conditioning = how.shrinkage.conditioning;
    conditioning.by_bands = true;
    conditioning.tell_eigenvalues = false;
    conditioning.shrinkage = shrinkage;
    detect::GroupRecord record;
    record.pixels = moments.valid_pixels;
    record.shrinkage = shrinkage;
    std::unique_ptr<detect::Detector> detector;
    if (moments.valid_pixels < 2) {
        record.state = detect::GroupState::few_pixels;
    } else if (static_cast<int>(moments.constant.size()) == moments.bands) {
        record.state = detect::GroupState::no_variance;
    } else {
        try {
            detector = std::make_unique<detect::Detector>(
                detect::make_detector(how.method, targets, moments, conditioning));
            record.state = detect::GroupState::scored;
            record.regularised = detector->ridge > 0;
        } catch (const detect::TargetIsMean&) {
            record.state = detect::GroupState::target_is_mean;
        }
    }
    groups.detectors.push_back(std::move(detector));
    groups.records.push_back(record);
}

/// Adds the detectors of all groups. Makes an additional pass if the shrinkage is to be found.
template <class Pass>
GroupDetectors make_groups(tool::Run& run, const Groups& how, const tool::Scene& scene,
                           const detect::GroupBackgrounds& backgrounds, const detect::GroupPlane& plane,
                           const detect::Targets& targets, const detect::PixelMask* mask, const Pass& pass) {
    const auto count = static_cast<size_t>(plane.groups);
    std::vector<double> shares(count, how.shrinkage.conditioning.shrinkage);
    if (how.shrinkage.ledoit_wolf) {
        std::vector<std::unique_ptr<detect::BandShrinkage>> parts(count);
        for (size_t g = 0; g < count; ++g)
            if (const auto moments = backgrounds.moments(g); moments.valid_pixels > 1)
                parts[g] = std::make_unique<detect::BandShrinkage>(how.method, moments);
        detect::GroupShrinkageScan scan(scene.shape().bands, parts, &plane, mask);
        if (tool::run_pass(run, *scene.counted(), scan, {}, pass(run.pass("shrinkage", 0.0))))
            for (size_t g = 0; g < count; ++g)
                shares[g] = parts[g] ? scan.share(g) : 0;
    }
    GroupDetectors groups;
    for (size_t g = 0; g < count; ++g) {
        if (run.cancel().requested()) throw Cancelled();
        add_group(how, targets, backgrounds.moments(g), shares[g], groups);
    }
    return groups;
}

/// Returns the memory that the groups of a map occupy during all passes. \throws Error if this is more than
/// half of the memory.
uint64_t memory_of_groups(const tool::Run& run, const Groups& how, const stream::CubeShape& shape,
                          const detect::GroupPlane& plane, size_t targets) {
    const auto bands = static_cast<uint64_t>(shape.bands), groups = static_cast<uint64_t>(plane.groups);
    const bool factors = how.method == Method::ace || how.method == Method::rx;
    const uint64_t detectors = groups * bands * 8 * (factors ? 3 * bands : 2 * targets + 2);
    const uint64_t scores = how.exclusion.share > 0 ? static_cast<uint64_t>(shape.pixels()) * 12 : 0;
    const uint64_t bytes =
        plane.bytes() + detect::GroupScan::bytes(shape.bands, plane.groups) + detectors + scores;
    if (bytes > tool::half(run.buffer_memory()))
        throw Error("-background-by: the statistics of " + counted(plane.groups, "group") + " take " +
                        format_byte_size(bytes) + ", more than half of the memory that -memory " +
                        format_byte_size(run.options().memory) + " leaves",
                    "Use a larger -memory, or a map of fewer classes.");
    return bytes;
}

/// Detects with the groups of a map on a device, which reads the scene once. Returns false if the scene does
/// not fit into device memory.
bool detect_classes_on_device(tool::Run& run, const Settings& s, const Groups& how, GroupComputing& computing,
                              std::shared_ptr<raster::RasterSource> source, DetectTargets& targets,
                              const detect::PixelMask* mask, const detect::GroupPlane& plane) {
    bool found = false, fits = true; // found: true if each target has a spectrum
    const bool any = tool::attempt(run, {tool::banded(source)}, [&](bool again) {
        auto outputs = plan_outputs(run, s, *source, targets.names());
        const auto options = group_options_at(how, targets, *source);
        found = options.has_value();
        if (!found) return false;
        const auto there = computing->make_group_scene(
            source->shape(), plane, *options, counted_pixels(run, mask), run.options().device_memory);
        fits = there != nullptr;
        if (!fits) return true;
        const auto loading = there->loading();
        const auto pass = [&](const std::string& name, double share) {
            auto made = computing.pass(name, share);
            tool::leave_room(made, plane.bytes());
            return without_mask(mask, std::move(made));
        };
        const auto reading = pass("reading", again ? 0 : 0.8);
        tool::end_of_plan(run, [&] { tool::print_plan(run, *source, *loading, reading); });
        if (!again) targets.warn_of_mistakes(run, s, *source);
        run.add_pass(stream::run_pass(*source, *loading, {}, reading));
        const stream::EmptySource empty(source->shape());
        const Scoring scoring{empty, [&](const detect::Decision& d) { return there->make_detection(d); },
                              pass};
        return make_scores(run, s, *source, scoring, std::move(outputs), targets.names(), again ? 0 : 0.2,
                           mask);
    });
    if (!fits) {
        run.note("The scene does not fit into device memory: detection on the CPU");
        run.report()["device"] = tool::describe_devices(run, {}, detect::simd_target());
        return false;
    }
    if (!found) throw targets.missing();
    if (!any) throw tool::no_valid_pixel(*source);
    report_kernels(run, computing.backend());
    return true;
}

/// Returns the devices for groups. Classes of a map use one device, which holds the scene. With several
/// ranks, classes of a map are computed on the CPU.
std::vector<CudaDevice> devices_for_groups(tool::Run& run, const Groups& how,
                                           const raster::RasterSource& source, size_t targets) {
    if (!how.by_columns() && run.ranks().several()) {
        if (run.options().device.kind == DeviceChoice::Kind::cuda)
            throw UsageError("-device cuda: several ranks compute groups of a map only on the CPU",
                             "Leave -device out, or run one process.");
        return {};
    }
    const auto work = work_of_groups(how, source, targets);
    return how.by_columns() ? tool::choose_devices(run, "detect_groups", work)
                            : tool::choose_devices(run, "detect_groups", work, 1);
}

/// Computes statistics and scores of groups of columns in one pass.
void detect_by_columns(tool::Run& run, const Settings& s, const Groups& how, GroupComputing& computing,
                       std::shared_ptr<raster::RasterSource> source, DetectTargets& targets,
                       const detect::PixelMask* mask) {
    const detect::Columns columns{run.options().source.window ? run.options().source.window->x : 0,
                                  how.columns};
    bool found = false; // true if each target has a spectrum
    const bool any = tool::attempt(run, {tool::banded(source)}, [&](bool again) {
        auto outputs = plan_outputs(run, s, *source, targets.names());
        // plan_outputs() may end the run with an error. The warning is printed only if the run continues.
        if (!again) tools::warn_of_map_columns(run, "-background-by columns", *source);
        const auto options = group_options_at(how, targets, *source);
        found = options.has_value();
        if (!found) return false;
        const auto cube = tools::in_memory_for_columns(run, source);
        const auto make = [&](const detect::Decision& d) {
            return computing->make_column_detection(source->shape(), columns, *options, d,
                                                    counted_pixels(run, mask));
        };
        const Scoring scoring{*cube, make, [&](const std::string& name, double share) {
                                  auto pass = computing.pass(name, share);
                                  if (computing.on_devices())
                                      pass.lanes = stream::worker_count(
                                          pass.lanes, source->shape().float_bytes(), pass.limit);
                                  if (cube != source) tool::leave_room(pass, source->shape().float_bytes());
                                  pass = without_mask(mask, std::move(pass));
                                  tools::set_column_tiles("-background-by columns", how.columns, *cube,
                                                          *make({!s.map.path.empty(), {}}), pass);
                                  return pass;
                              }};
        if (!again) targets.warn_of_mistakes(run, s, *source);
        return make_scores(run, s, *source, scoring, std::move(outputs), targets.names(), again ? 0 : 0.8,
                           mask);
    });
    if (any) return report_kernels(run, computing.backend());
    if (!found) throw targets.missing();
    throw tool::no_valid_pixel(*source);
}

/// Computes the moments of all classes of a map in one pass, then the scores.
void detect_by_classes(tool::Run& run, const Settings& s, const Groups& how, GroupComputing& computing,
                       const std::shared_ptr<raster::RasterSource>& source, DetectTargets& targets,
                       const detect::PixelMask* mask) {
    const auto plane = read_groups(run, how, *source);
    if (computing.on_devices() &&
        detect_classes_on_device(run, s, how, computing, source, targets, mask, plane))
        return;
    tool::Scene scene(run, source, "detection");
    auto outputs = plan_outputs(run, s, *scene.raster(), targets.names());
    const uint64_t held =
        memory_of_groups(run, how, scene.shape(), plane, std::max<size_t>(1, targets.names().size()));
    const auto pass = [&](stream::PassOptions options) {
        tool::leave_room(options, held);
        return without_mask(mask, std::move(options));
    };
    const auto make_scan = [&] { return std::make_unique<detect::GroupScan>(scene.shape(), plane, mask); };
    scene.set_fate(nullptr);
    const auto backgrounds =
        scene.scan(make_scan, [&](bool again) { return pass(run.pass("background", again ? 0.0 : 0.5)); });
    detect::Targets spectra;
    if (detect::has_target(how.method)) {
        auto found = targets.at(*scene.raster());
        if (!found) throw targets.missing();
        spectra = std::move(*found);
    }
    const auto counting = counted_pixels(run, mask);
    auto groups = make_groups(run, how, scene, backgrounds, plane, spectra, counting, pass);
    const auto make = [&](const detect::Decision& d) {
        return detect::make_group_detection(scene.shape(), plane, groups.detectors, groups.records, d);
    };
    for (int round = 0; how.exclusion.share > 0 && round < how.exclusion.iterations; ++round) {
        const auto shape = scene.shape();
        const auto operation = make({});
        detect::BestScores best({shape.samples, shape.lines, operation->output_bands().front()});
        if (!tool::run_pass(run, scene.cube(), *operation, {&best}, pass(computing.pass("exclusion", 0.0))))
            break;
        std::vector<int64_t> excluded;
        const auto kept = best.without_greatest(how.exclusion.share, &plane, counting, excluded);
        detect::GroupScan scan(shape, plane, kept.get());
        run.add_pass(stream::run_pass(*scene.counted(), scan, {}, pass(run.pass("background", 0.0))));
        const auto before = std::move(groups.records);
        groups = make_groups(run, how, scene, scan.result(), plane, spectra, kept.get(), pass);
        for (size_t g = 0; g < before.size(); ++g) {
            groups.records[g].pixels = before[g].pixels;
            groups.records[g].excluded = excluded[g];
            if (before[g].state != detect::GroupState::scored) groups.records[g].state = before[g].state;
        }
    }
    targets.warn_of_mistakes(run, s, *source);
    const Scoring scoring{scene.cube(), make, [&](const std::string& name, double share) {
                              return pass(computing.pass(name, share));
                          }};
    if (!make_scores(run, s, *scene.raster(), scoring, std::move(outputs), targets.names(), 0.5, mask))
        throw tool::no_valid_pixel(*scene.raster());
}

} // namespace

void detect_by_groups(tool::Run& run, const Settings& s, const Groups& how,
                      const std::shared_ptr<raster::RasterSource>& source, DetectTargets& targets,
                      const detect::PixelMask* mask) {
    GroupComputing computing(run, "detect_groups",
                             devices_for_groups(run, how, *source, targets.names().size()),
                             detect::simd_target(), [] { return std::make_unique<detect::GroupBackend>(); });
    if (how.by_columns()) return detect_by_columns(run, s, how, computing, source, targets, mask);
    detect_by_classes(run, s, how, computing, source, targets, mask);
}

} // namespace hsi::detect_tool
