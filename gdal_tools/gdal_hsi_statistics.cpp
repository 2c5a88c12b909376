// SPDX-License-Identifier: MIT
// gdal_hsi_statistics: computes exact statistics of many scenes in one file. Files can be merged, and added
// scenes can be removed again. There is one pass over each scene.
#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"
#include "raster/raster_source.h"
#include "raster/regular_file.h"
#include "raster/scene_document.h"
#include "raster/side_files.h"
#include "raster/text_input.h"
#include "raster/text_output.h"
#include "shared/many_scenes.h"
#include "statistics/statistics.h"
#include "stream/pixel_mask.h"
#include "stream/statistics_scan.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/execute.h"
#include "tool/follow.h"
#include "tool/mask.h"
#include "tool/model_values.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/scene.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace statistics_tool {

using statistics::Statistics;
using tool::Content;

struct Settings {
    std::vector<std::string> scenes, merged, removed;
    std::string out;
    bool append = false, overwrite = false;
    std::vector<std::string> of_scenes; ///< options of the call that have an effect only on scenes
};

// Input files
// ----------------------------------------------------------------------------------------------------------

bool holds_statistics(const std::string& path) {
    if (raster::is_pipe_or_device(path))
        throw UsageError(path + " is a pipe or a device, not a scene",
                         "Give statistics that come from a pipe with -merge.");
    return statistics::is_statistics(raster::beginning_of_file(path, 64));
}

Statistics read_file(const std::string& path) {
    return statistics::from_json(raster::read_input(path, statistics::largest_file), path);
}

/// Checks that `other` has the same bands as `all`, in the same order and with the same numbers.
void check_alike(const Statistics& all, const std::string& first, const Statistics& other,
                 const std::string& name) {
    const auto matched = model::match_bands(first, all.bands, name, model::bands_of(other.bands), false,
                                            model::BandsOf::scenes);
    if (other.bands.bands.size() != all.bands.bands.size())
        throw Error("'" + name + "' has " + counted(other.sums.bands, "band") + ", but '" + first + "' has " +
                        std::to_string(all.sums.bands),
                    "Make both with the same bands (-b, -exclude-range).");
    if (!std::is_sorted(matched.begin(), matched.end()))
        throw Error("'" + name + "' has the bands of '" + first + "' in a different order",
                    "Make both from scenes with the same order of bands, or with the same order in -b.");
    const model::ValueScale scale{other.bands.value_scale, other.bands.value_offset, other.bands.value_unit};
    if (!model::same_scale(all.bands, scale))
        throw Error(
            "'" + name + "' is made from values with " + model::scale_text(scale) + ", but '" + first +
                "' from values with " +
                model::scale_text({all.bands.value_scale, all.bands.value_offset, all.bands.value_unit}),
            "Make both from scenes with the same scale.");
}

/// The statistics that are read from files before the first scene is read.
struct Files {
    std::optional<Statistics> before; ///< statistics in the file that -append extends
    std::optional<Statistics> added;  ///< statistics of -merge; the new scenes are added to them
    std::vector<Statistics> removed;
    /// Name of the first file, used in messages about its bands; empty if no file has statistics.
    std::string first;

    Files(tool::Run& run, const Settings& s, const std::vector<std::string>& merged) {
        if (s.append && ::access(s.out.c_str(), F_OK) == 0) {
            m_then = raster::files_as_they_are(s.out);
            before.emplace(read_file(s.out));
            first = s.out;
        }
        for (const std::string& path : merged) {
            run.files()->reads("-merge", path, {});
            Statistics one = read_file(path);
            if (first.empty()) first = path;
            if (const auto& known = any()) check_alike(*known, first, one, path);
            if (added)
                added->add(one, path);
            else
                added.emplace(std::move(one));
        }
        for (const std::string& path : s.removed) {
            run.files()->reads("-remove", path, {});
            removed.push_back(read_file(path));
            if (const auto& known = any()) check_alike(*known, first, removed.back(), path);
        }
    }
    /// Returns the statistics with which the bands of all other files are compared; nullopt if there are no
    /// files.
    const std::optional<Statistics>& any() const { return before ? before : added; }

    /// Returns the sum of earlier and added statistics, without the removed statistics. \throws Error if a
    /// file cannot be removed, or if no scene is left.
    Statistics whole(const Settings& s) const {
        Statistics all(any()->sums.bands);
        all.bands = any()->bands;
        if (before && added)
            check_alike(*before, s.out, *added, first == s.out ? "the added statistics" : first);
        if (before) all.add(*before, s.out);
        if (added) all.add(*added, s.out);
        for (size_t i = 0; i < removed.size(); ++i)
            all.remove(removed[i], s.removed[i]);
        if (all.scenes.empty()) throw Error("-remove leaves no scene", "Leave out one -remove.");
        return all;
    }
    /// Reads the file of -append again if another run has changed it. Returns true if it has changed.
    bool look_again(const std::string& out) {
        auto now = ::access(out.c_str(), F_OK) == 0 ? raster::files_as_they_are(out)
                                                    : std::vector<raster::DocumentSource::File>();
        const bool same = std::equal(
            now.begin(), now.end(), m_then.begin(), m_then.end(), [](const auto& a, const auto& b) {
                return a.path == b.path && a.bytes == b.bytes && a.modified == b.modified;
            });
        if (same) return false;
        m_then = std::move(now);
        before.reset();
        if (!m_then.empty()) before.emplace(read_file(out));
        return true;
    }

  private:
    /// Size and time of the file of -append when it was read.
    std::vector<raster::DocumentSource::File> m_then;
};

// The scenes
// ----------------------------------------------------------------------------------------------------------

/// Opens a scene with the bands of the statistics.
std::shared_ptr<raster::RasterSource> open_scene(tool::Run& run, const std::string& path,
                                                 const model::ModelBands* bands, const std::string& first) {
    auto options = run.options().source;
    options.path = path;
    auto source = raster::open_raster(options);
    return bands == nullptr ? source : tool::match_scene(run, source, path, first, *bands);
}

/// Returns numbers and wavelengths of the bands that are in `all` but not in `some`.
model::ModelBands bands_not_in(const model::ModelBands& all, const model::ModelBands& some) {
    model::ModelBands others;
    for (size_t b = 0; b < all.bands.size(); ++b) {
        if (std::find(some.bands.begin(), some.bands.end(), all.bands[b]) != some.bands.end()) continue;
        others.bands.push_back(all.bands[b]);
        if (!all.wavelengths_nm.empty()) others.wavelengths_nm.push_back(all.wavelengths_nm[b]);
    }
    others.numbers_told = all.numbers_told;
    others.file_bands = all.file_bands;
    return others;
}

model::ModelBands bands_of_scene(const raster::RasterSource& scene) {
    model::ModelBands bands;
    tool::describe_bands(scene, bands);
    return bands;
}

/// Checks all scenes before any work is done. Returns the bands of the statistics, and the name of the file
/// or scene that defines them.
std::pair<model::ModelBands, std::string> check_scenes(tool::Run& run, const std::vector<std::string>& names,
                                                       const Files& files) {
    std::pair<model::ModelBands, std::string> known;
    if (const auto& any = files.any()) known = {any->bands, files.first};
    for (size_t i = 0; i < names.size(); ++i) {
        for (size_t k = 0; k < i; ++k)
            if (same_file(names[i], names[k]))
                throw UsageError(names[i] + ": the scene is given twice", "Its pixels would count twice.");
        const bool any = !known.second.empty();
        const auto scene = open_scene(run, names[i], any ? &known.first : nullptr, known.second);
        const raster::Growth* const growth = scene->growth();
        const auto touched = growth != nullptr ? growth->files() : raster::files_read_with(names[i]);
        if (growth != nullptr) run.files()->expect_growth(touched);
        run.files()->reads("scene", names[i], touched);
        if (!any) known = {bands_of_scene(*scene), names[i]};
    }
    return known;
}

std::string mask_text(const tool::MaskOptions& mask) {
    std::string text;
    if (!mask.only.empty()) text += "-mask " + name_of(mask.only);
    if (!mask.without.empty()) text += (text.empty() ? "" : " ") + ("-mask-exclude " + name_of(mask.without));
    if (!mask.flags.empty()) text += (text.empty() ? "" : " ") + ("-mask-flags " + joined(mask.flags, ","));
    if (!mask.flags_from.empty()) text += " -mask-flags-from " + name_of(mask.flags_from);
    return text;
}

using Scene = std::shared_ptr<raster::RasterSource>;

/// Scans a scene in one pass and adds the results to `all`. Returns the scene; if it grew during the pass,
/// with all of its rows.
Scene scan_scene(tool::Run& run, const std::string& name, const std::shared_ptr<raster::RasterSource>& scene,
                 double share, bool several, const model::ModelBands& left_out, Statistics& all) {
    run.watch_source(scene);
    run.reserve_cache(std::min(scene->cache_bytes(), tool::quarter(run.options().memory)));
    std::shared_ptr<const stream::CubeSource> cube = scene;
    const auto& mask_options = run.options().mask;
    if (mask_options.given())
        cube = std::make_shared<stream::MaskedSource>(scene, tool::read_scene_mask(run, *scene, several));
    statistics::ExactScan scan(scene->shape());
    Scene whole = scene;
    if (scene->growth() != nullptr)
        whole = tool::follow(run, *scene, scan, nullptr, run.pass("statistics", share));
    else
        run.add_pass(stream::run_pass(*cube, scan, {}, run.pass("statistics", share)));
    statistics::SceneRecord r;
    r.name = name;
    for (const auto& file : raster::files_as_they_are(name))
        if (file.path == name) {
            r.bytes = file.bytes;
            r.modified = file.modified;
        }
    r.mask = mask_text(mask_options);
    r.samples = scene->shape().samples;
    r.lines = whole->shape().lines;
    r.valid = scan.sums().valid;
    r.invalid = scan.sums().invalid;
    r.digest = scan.sums().digest();
    r.extremes = scan.extremes();
    r.left_out = left_out;
    all.add(r, scan.sums());
    return whole;
}

/// The bands, and the name of the file or scene that defines them.
using KnownBands = std::pair<model::ModelBands, std::string>;

/// Scans the scenes. `left_out`: bands that each scene omits. `alone`: true if there are no other statistics.
/// Returns the last scene.
Scene scan_scenes(tool::Run& run, const std::vector<std::string>& names, const KnownBands& known,
                  double share, bool alone, const std::vector<model::ModelBands>& left_out, Statistics& all) {
    Scene last;
    for (size_t i = 0; i < names.size(); ++i)
        last = scan_scene(run, names[i], open_scene(run, names[i], &known.first, known.second),
                          share / static_cast<double>(names.size()), !alone || names.size() > 1, left_out[i],
                          all);
    return last;
}

/// Returns `known` without the bands that have no value in any scene, since such a band makes all pixels
/// invalid. \throws Error if there is no such band, or if no band remains.
KnownBands without_empty_bands(tool::Run& run, const std::vector<std::string>& names, const KnownBands& known,
                               const std::vector<int64_t>& finite) {
    std::vector<int> empty, numbers;
    for (size_t b = 0; b < finite.size(); ++b)
        if (finite[b] == 0) empty.push_back(static_cast<int>(b));
    if (empty.empty() || empty.size() == finite.size())
        throw Error("no pixel of the scenes is valid (nodata, masked, NaN or all zero)",
                    "Check the scenes with gdal_hsi_info -extremes.");
    const auto first = open_scene(run, names.front(), &known.first, known.second);
    for (const int b : empty)
        numbers.push_back(first->bands()[static_cast<size_t>(b)]);
    run.warn("no valid value in " + counted(static_cast<int64_t>(empty.size()), "band") + " (band " +
             std::to_string(numbers.front()) + (numbers.size() > 1 ? " ..)" : ")") + ": left out");
    run.report()["bands_without_values"] = numbers;
    return {bands_of_scene(*first->without_bands(empty)), known.second};
}

/// Checks the bands that the statistics omit because their scenes have no values there. Returns the omitted
/// bands that this scene has. \throws Error if this scene has a value in one of them, because the result
/// would then depend on the order of the scenes.
model::ModelBands check_left_out(tool::Run& run, const std::string& name, const Statistics& all,
                                 const std::string& first) {
    const auto out = all.left_out();
    model::ModelBands none;
    if (out.bands.empty()) return none;
    auto options = run.options().source;
    options.path = name;
    const auto scene = raster::open_raster(options);
    const auto bands = tool::scene_bands(*scene);
    const auto left = model::bands_of(out);
    auto partners = model::common_bands(left.wavelengths_nm, bands.wavelengths_nm);
    if (partners.empty()) partners = model::common_numbers(left.numbers, bands.numbers);
    std::vector<int> there, which;
    for (size_t k = 0; k < partners.size(); ++k)
        if (partners[k] >= 0) {
            there.push_back(partners[k]);
            which.push_back(out.bands[k]);
        }
    if (there.empty()) return none;
    if (scene->growth() != nullptr)
        throw UsageError("-follow: '" + first + "' leaves out its band " + std::to_string(which.front()) +
                             ", in which its scenes have no value, but " + name + " may get values there",
                         "Add the scene when it is complete, or leave the band out with -exclude-range.");
    const auto source = scene->with_bands(there);
    stream::StatisticsScan scan(source->shape(), stream::Statistics::means);
    run.add_pass(stream::run_pass(*source, scan, {}, run.pass("bands left out", 0)));
    const auto finite = scan.result().finite;
    for (size_t k = 0; k < finite.size(); ++k)
        if (finite[k] > 0)
            throw Error("'" + name + "' has values in band " +
                            std::to_string(bands.numbers[static_cast<size_t>(there[k])]) + ", but '" + first +
                            "' leaves out its band " + std::to_string(which[k]) +
                            ", in which its scenes have no values",
                        "Use the same bands for both with -b or -exclude-range, or all scenes in one run, "
                        "which uses only pixels with values in all bands.");
    tool::describe_bands(*source, none);
    return bands_not_in(none, {});
}

/// Adds the scenes to files.added. Returns the last scene.
Scene add_scenes(tool::Run& run, const std::vector<std::string>& names, const KnownBands& known,
                 Files& files) {
    if (const auto& any = files.any()) {
        std::vector<model::ModelBands> left_out;
        left_out.reserve(names.size());
        for (const std::string& name : names)
            left_out.push_back(check_left_out(run, name, *any, files.first));
        if (!files.added) {
            files.added.emplace(any->sums.bands);
            files.added->bands = any->bands;
        }
        return scan_scenes(run, names, known, 1, false, left_out, *files.added);
    }
    auto& all = files.added;
    const auto scan = [&](const KnownBands& bands, double share) {
        all.emplace(static_cast<int>(bands.first.bands.size()));
        all->bands = bands.first;
        const std::vector<model::ModelBands> left_out(names.size(), bands_not_in(known.first, bands.first));
        return scan_scenes(run, names, bands, share, true, left_out, *all);
    };
    Scene last = scan(known, 1);
    if (all->sums.valid > 0) return last;
    const auto kept = without_empty_bands(run, names, known, std::vector<int64_t>(all->sums.finite));
    last = scan(kept, 0);
    if (all->sums.valid == 0)
        throw Error("no pixel of the scenes is valid (nodata, masked, NaN or all zero)",
                    "Check the scenes with gdal_hsi_info -extremes.");
    return last;
}

/// Warns of new scenes without valid pixels, and of new scenes that are already in the statistics with other
/// pixels.
void tell_of_scenes(tool::Run& run, const std::vector<std::string>& names, const Files& files) {
    for (const auto& scene : files.added->scenes) {
        if (std::find(names.begin(), names.end(), scene.name) == names.end()) continue;
        if (scene.valid == 0)
            run.warn(scene.name + ": no pixel is valid" + (run.options().mask.given() ? " in the mask" : "") +
                     "; the scene adds nothing");
        for (const auto* const others : {&files.before, &files.added})
            if (*others)
                for (const auto& other : (*others)->scenes)
                    if (other.name == scene.name && &other != &scene && other.valid > 0 && scene.valid > 0)
                        run.warn(scene.name + " is also in the statistics with other pixels (" +
                                 counted(other.valid, "valid pixel") + " of " +
                                 std::to_string(other.samples) + "x" + std::to_string(other.lines) +
                                 "): common pixels count twice. Remove one of them with -remove");
    }
}

/// Warns if the values of a scene have a very different magnitude, for example because the scene has lost its
/// scale.
void warn_of_other_sizes(tool::Run& run, const std::vector<std::string>& names, const Statistics& all) {
    const auto size_of = [](const statistics::SceneRecord& scene) {
        std::vector<double> sizes;
        for (size_t b = 0; b < scene.extremes.low.size(); ++b)
            sizes.push_back(std::max(std::fabs(static_cast<double>(scene.extremes.low[b])),
                                     std::fabs(static_cast<double>(scene.extremes.high[b]))));
        std::nth_element(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(sizes.size() / 2),
                         sizes.end());
        return sizes[sizes.size() / 2];
    };
    std::vector<std::pair<double, std::string>> sizes;
    for (const auto& scene : all.scenes)
        if (scene.valid > 0) sizes.emplace_back(size_of(scene), scene.name);
    std::sort(sizes.begin(), sizes.end());
    if (sizes.empty()) return;
    const double usual = sizes[sizes.size() / 2].first;
    // Light and shadow differ by smaller factors; scales of 100 and 10,000 differ by larger factors.
    constexpr double most = 30;
    for (const auto& [size, name] : sizes) {
        if (!(size > most * usual) && !(usual > most * size)) continue;
        char text[64];
        std::snprintf(text, sizeof text, "%.3g and of the others up to %.3g", size, usual);
        const auto& first = sizes.front().second == name ? sizes.back().second : sizes.front().second;
        const bool ours = std::find(names.begin(), names.end(), name) != names.end() ||
                          std::find(names.begin(), names.end(), first) != names.end();
        if (ours)
            run.warn("the values of " + name + " differ in magnitude from other scenes: up to " + text +
                     ". Check that the scales are the same");
    }
}

void print_plans(tool::Run& run, const std::vector<std::string>& names,
                 const std::pair<model::ModelBands, std::string>& known) {
    for (const std::string& name : names) {
        const auto scene = open_scene(run, name, &known.first, known.second);
        run.print(name + ":");
        tool::print_plan(run, *scene, statistics::ExactScan(scene->shape()), run.pass("statistics", 0));
    }
}

void run_statistics(tool::Run& run, Settings s) {
    run.report()["device"] = tool::describe_devices(run, {}, nullptr);
    s.merged = tools::listed_names(run, "-merge", s.merged);
    s.removed = tools::listed_names(run, "-remove", s.removed);
    std::vector<std::string> names, merged = s.merged;
    for (const std::string& name : tools::listed_names(run, "scene", s.scenes))
        (holds_statistics(name) ? merged : names).push_back(name);
    if (run.options().source.follow && names.size() != 1)
        throw UsageError("-follow is for one scene, but there are " + std::to_string(names.size()),
                         "Follow each in a separate run, and merge their files.");
    const raster::TextOutput output{"-o", s.out, s.overwrite || s.append, run.files()};
    raster::check_text_output(output);
    Files files(run, s, merged);
    if (names.empty() && !s.of_scenes.empty())
        throw UsageError(tool::option_requires("-" + s.of_scenes.front(), "a scene"),
                         "Leave it out: it does not apply to statistics files.");
    const auto known = check_scenes(run, names, files);
    if (names.empty() && !files.any())
        throw UsageError("no scene and no statistics file is given", "Give at least one scene.");
    for (size_t i = 0; i < files.removed.size() && !files.any(); ++i) {
        Statistics like(static_cast<int>(known.first.bands.size()));
        like.bands = known.first;
        check_alike(like, known.second, files.removed[i], s.removed[i]);
    }
    tool::end_of_plan(run, [&] {
        if (names.empty()) (void)files.whole(s);
        print_plans(run, names, known);
    });
    Scene last;
    if (!names.empty()) last = add_scenes(run, names, known, files);
    if (files.first.empty()) files.first = names.front();
    // Bands of the removed statistics may have been omitted in the meantime.
    for (size_t i = 0; i < files.removed.size(); ++i)
        check_alike(*files.any(), files.first, files.removed[i], s.removed[i]);
    if (!names.empty()) tell_of_scenes(run, names, files);
    auto all = files.whole(s);
    warn_of_other_sizes(run, names, all);
    const auto write = [output](const Statistics& made) {
        raster::write_text_output(
            output, statistics::to_json(made, "gdal_hsi_statistics " + std::string(tool::project_version())));
    };
    run.report()["scenes"] = all.scenes.size();
    tool::report_invalid(run, all.sums.valid, all.sums.invalid, "and left out");
    run.note("Statistics of " + counted(all.sums.valid, "pixel") + " of " +
             counted(static_cast<int64_t>(all.scenes.size()), "scene") + ", " +
             counted(all.sums.bands, "band"));
    if (!s.append) {
        write(all);
    } else if (run.ranks().root()) {
        // Another run may have changed the file of -append. The new statistics are therefore added to the
        // present content of the file.
        auto state = std::make_shared<std::pair<Files, Statistics>>(std::move(files), std::move(all));
        run.files()->add_to_file(
            {s.out, [state, write, s, files = run.files().get()] {
                 auto& [parts, made] = *state;
                 if (parts.look_again(s.out)) {
                     made = parts.whole(s);
                     files->note("Another run changed '" + s.out + "' during this run: it now has " +
                                 counted(static_cast<int64_t>(made.scenes.size()), "scene"));
                 }
                 write(made);
             }});
    }
    if (last) tool::check_last_line(run, *last);
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_sources(
        s.scenes,
        "Scenes (any raster that GDAL opens) and statistics files to be merged; @FILE: a list of both");
    args.add_follow();
    args.add_mask("the statistics");
    args.output("o", s.out, Content::model, "The statistics file (JSON)");
    args.flag("append", s.append, "Add to the file of -o, if it exists");
    for (auto* const argument :
         {&args.option("merge", s.merged, "Also add the statistics file FILE; @FILE: a list of files"),
          &args.option(
              "remove", s.removed,
              "Remove the scenes of the statistics file FILE, which must all be included; @FILE: a list of "
              "files")}) {
        argument->role = tool::Role::input;
        argument->content = Content::model;
        argument->value_name = "FILE";
    }
    args.overwrite(s.overwrite,
                   "Replace the file of -o if it exists; otherwise an existing file is an error");
    args.exclusive("append", "overwrite");
    args.add_compute(false);
    args.check([&s](const tool::Call& call) {
        const tool::CommonOptions& options = call.options();
        for (const char* const name : {"b", "exclude-range", "bbl", "srcwin", "srcnodata", "if", "oo", "mask",
                                       "mask-exclude", "follow"})
            if (call.given(name)) s.of_scenes.emplace_back(name);
        if (s.out.empty()) throw UsageError("-o is missing", "Give the output file: -o FILE.");
        if (s.scenes.empty() && s.merged.empty() && !s.append)
            throw UsageError("no scene and no statistics file is given", "Give at least one scene.");
        if (s.append && options.if_needed)
            throw UsageError(
                tool::cannot_be_used_with("-append", "-if-needed: the file changes with each run"),
                "Make one file per scene with -if-needed, and merge the files.");
        if (options.source.window && s.scenes.size() > 1 && !call.given("append"))
            throw UsageError("-srcwin is a window of one scene, but there are several scenes",
                             "Make one file per window, and merge the files.");
    });
    args.body([&s](tool::Run& run) { run_statistics(run, s); });
}

} // namespace statistics_tool
} // namespace

namespace tools {

extern constinit const tool::Definition statistics{
    "statistics",
    "Statistics of many scenes",
    "Writes the statistics of one or many scenes to a file that replaces the first pass of other tools"
    " (-statistics of PCA, MNF, virtual dimensionality, detection and EADP). The sums are "
    "exact: files can be merged in any order, and scenes can be removed again without any effect on the "
    "result.",
    {{"gdal_hsi_statistics line1.img line2.img line3.img -o lines.stat", "All lines of a campaign"},
     {"gdal_hsi_pca -statistics lines.stat line2.img line2_pcs.tif", "One PCA for all of them"},
     {"gdal_hsi_statistics today.img -append -o lines.stat", "Add today's line without reading the others"},
     {"gdal_hsi_statistics -merge lines.stat -merge june.stat -remove day3.stat -o all.stat",
      "Merge two files, without the scenes of one day"},
     {"gdal_hsi_statistics @lines.txt -mask-exclude clouds.gpkg -o lines.stat", "Scenes from a list"}},
    "",
    statistics_tool::declare};

} // namespace tools
} // namespace hsi
