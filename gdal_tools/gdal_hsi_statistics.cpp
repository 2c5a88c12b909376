// SPDX-License-Identifier: MIT
// gdal_hsi_statistics: the statistics of many scenes as one file, exact: they merge, and what was added can
// be taken away. One pass over every scene.
#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "raster/files/scene_document.h"
#include "raster/files/side_files.h"
#include "raster/files/text_output.h"
#include "raster/gdal/text_input.h"
#include "raster/source/raster_source.h"
#include "shared/many_scenes.h"
#include "statistics/statistics.h"
#include "stream/pixel_mask.h"
#include "tool/definition.h"
#include "tool/execute.h"
#include "tool/follow.h"
#include "tool/mask.h"
#include "tool/model_values.h"
#include "tool/resources.h"
#include "tool/scene.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
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
};

// What is read
// ----------------------------------------------------------------------------------------------------------

bool holds_statistics(const std::string& path) {
    std::string begin(64, '\0');
    std::ifstream in(path, std::ios::binary);
    in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    begin.resize(static_cast<size_t>(std::max<std::streamsize>(in.gcount(), 0)));
    return statistics::is_statistics(begin);
}

Statistics read_file(const std::string& path) {
    return statistics::from_json(raster::read_input(path, statistics::largest_file), path);
}

/// `other`'s bands must be those that `all` has, in the same order and of the same numbers.
void check_alike(const Statistics& all, const std::string& first, const Statistics& other,
                 const std::string& name) {
    const auto matched = model::match_bands(first, all.bands, name, model::bands_of(other.bands), false,
                                            model::BandsOf::scenes);
    if (other.bands.bands.size() != all.bands.bands.size() || !std::is_sorted(matched.begin(), matched.end()))
        throw Error("'" + name + "' is of " + counted(other.sums.bands, "band") + ", '" + first + "' of " +
                        counted(all.sums.bands, "band") + ", or of others",
                    "Make both with the same bands (-b, -exclude-range).");
    const model::ValueScale scale{other.bands.value_scale, other.bands.value_offset, other.bands.value_unit};
    if (!model::same_scale(all.bands, scale))
        throw Error(
            "'" + name + "' is of numbers with " + model::scale_text(scale) + ", '" + first +
                "' of numbers with " +
                model::scale_text({all.bands.value_scale, all.bands.value_offset, all.bands.value_unit}),
            "Make both of scenes with the same scale.");
}

/// What there is before the first scene is read: -append, -merge and -remove.
class Files {
  public:
    Files(tool::Run& run, const Settings& s, const std::vector<std::string>& merged) {
        if (s.append && ::access(s.out.c_str(), F_OK) == 0) {
            m_before = raster::files_as_they_are(s.out);
            take(s.out);
        }
        for (const std::string& path : merged) {
            // -merge itself has registered its first file.
            if (s.merged.empty() || path != s.merged.front()) run.files()->reads("-merge", path, {});
            take(path);
        }
        for (const std::string& path : s.removed) {
            if (path != s.removed.front()) run.files()->reads("-remove", path, {});
            removed.push_back(read_file(path));
            if (all) check_alike(*all, first, removed.back(), path);
        }
    }
    std::optional<Statistics> all;
    std::string first; ///< the file whose bands `all` has
    std::vector<Statistics> removed;

    /// \throws Error when another run has changed what -append adds to.
    void check_unchanged(const std::string& out) const {
        const auto now = m_before.empty() ? m_before : raster::files_as_they_are(out);
        const bool same = std::equal(
            now.begin(), now.end(), m_before.begin(), m_before.end(), [](const auto& a, const auto& b) {
                return a.path == b.path && a.bytes == b.bytes && a.modified == b.modified;
            });
        if (!same)
            throw Error("'" + out + "' was changed by another run while this one added to it",
                        "Run it again; runs side by side make a file each, which -merge puts together.");
    }

  private:
    std::vector<raster::DocumentSource::File> m_before; ///< the file of -append
    void take(const std::string& path) {
        Statistics one = read_file(path);
        if (!all) {
            all.emplace(std::move(one));
            first = path;
            return;
        }
        check_alike(*all, first, one, path);
        all->add(one, path);
    }
};

// The scenes
// ----------------------------------------------------------------------------------------------------------

/// A scene with the bands of the statistics.
std::shared_ptr<raster::RasterSource> open_scene(tool::Run& run, const std::string& path,
                                                 const model::ModelBands* bands, const std::string& first) {
    auto options = run.options().source;
    options.path = path;
    auto source = raster::RasterSource::open(options);
    if (bands == nullptr) return source;
    auto [scene, matched] = tool::match_source(run, source, first, *bands, false, model::BandsOf::scenes);
    if (!std::is_sorted(matched.begin(), matched.end())) scene = scene->with_bands(matched);
    const auto values = tool::value_scale(*scene);
    if (!model::same_scale(*bands, values))
        throw Error(path + ": its numbers have " + model::scale_text(values) + ", those of " + first + " " +
                        model::scale_text({bands->value_scale, bands->value_offset, bands->value_unit}),
                    "Statistics are of numbers of one scale; gdal_edit.py -scale says it of a scene that has "
                    "lost it.");
    return scene;
}

model::ModelBands bands_of_scene(const raster::RasterSource& scene) {
    model::ModelBands bands;
    tool::describe_bands(scene, bands);
    return bands;
}

/// All that can be refused before any work. Returns the bands of the statistics, and whose they are.
std::pair<model::ModelBands, std::string> check_scenes(tool::Run& run, const std::vector<std::string>& names,
                                                       const Files& files) {
    std::pair<model::ModelBands, std::string> known;
    if (files.all) known = {files.all->bands, files.first};
    for (size_t i = 0; i < names.size(); ++i) {
        for (size_t k = 0; k < i; ++k)
            if (same_file(names[i], names[k]))
                throw UsageError(names[i] + ": the scene is given twice", "Its pixels would count twice.");
        const bool any = !known.second.empty();
        const auto scene = open_scene(run, names[i], any ? &known.first : nullptr, known.second);
        const auto growing = scene->growing_files();
        if (!growing.empty()) run.files()->expect_growth(growing);
        run.files()->reads("scene", names[i], growing.empty() ? raster::files_read_with(names[i]) : growing);
        if (!any) known = {bands_of_scene(*scene), names[i]};
    }
    return known;
}

std::string mask_text(const tool::MaskOptions& mask) {
    std::string text;
    if (!mask.only.empty()) text += "-mask " + name_of(mask.only);
    if (!mask.without.empty()) text += (text.empty() ? "" : " ") + ("-mask-exclude " + name_of(mask.without));
    return text;
}

using Scene = std::shared_ptr<raster::RasterSource>;

/// One pass over a scene, which is added to `all`. Returns the scene, at all of its lines.
Scene scan_scene(tool::Run& run, const std::string& name, const std::shared_ptr<raster::RasterSource>& scene,
                 double share, Statistics& all) {
    run.watch_source(scene);
    run.reserve_cache(std::min(scene->cache_bytes(), tool::quarter(run.options().memory)));
    std::shared_ptr<const stream::CubeSource> cube = scene;
    const auto& mask_options = run.options().mask;
    if (mask_options.given())
        cube = std::make_shared<stream::MaskedSource>(scene, tool::read_scene_mask(run, *scene));
    statistics::ExactScan scan(scene->shape());
    Scene whole = scene;
    if (scene->grows())
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
    if (r.valid == 0)
        run.warn(name + ": no pixel of it is valid" + (mask_options.given() ? " in the mask" : "") +
                 "; it adds nothing");
    all.add(r, scan.sums());
    return whole;
}

using KnownBands = std::pair<model::ModelBands, std::string>; ///< and whose they are

/// Returns the last one.
Scene scan_scenes(tool::Run& run, const std::vector<std::string>& names, const KnownBands& known,
                  double share, Statistics& all) {
    Scene last;
    for (const std::string& name : names)
        last = scan_scene(run, name, open_scene(run, name, &known.first, known.second),
                          share / static_cast<double>(names.size()), all);
    return last;
}

/// `known` without the bands that have no value in any of the scenes, which spoil every pixel of them.
/// \throws Error when there are none, or no others.
KnownBands without_empty_bands(tool::Run& run, const std::vector<std::string>& names, const KnownBands& known,
                               const std::vector<int64_t>& finite) {
    std::vector<int> empty, numbers;
    for (size_t b = 0; b < finite.size(); ++b)
        if (finite[b] == 0) empty.push_back(static_cast<int>(b));
    if (empty.empty() || empty.size() == finite.size())
        throw Error("no pixel of the scenes is valid (nodata, masked, NaN or all zero)",
                    "Look at them with gdal_hsi_info -extremes.");
    const auto first = open_scene(run, names.front(), &known.first, known.second);
    for (const int b : empty)
        numbers.push_back(first->bands()[static_cast<size_t>(b)]);
    run.warn("no valid value in " + counted(static_cast<int64_t>(empty.size()), "band") + " (band " +
             std::to_string(numbers.front()) + (numbers.size() > 1 ? " ..)" : ")") + ": left out");
    run.report()["bands_without_values"] = numbers;
    return {bands_of_scene(*first->without_bands(empty)), known.second};
}

/// Adds the scenes to what there is. Returns the last one.
Scene add_scenes(tool::Run& run, const std::vector<std::string>& names, const KnownBands& known,
                 std::optional<Statistics>& all) {
    if (all) return scan_scenes(run, names, known, 1, *all);
    const auto scan = [&](const KnownBands& bands, double share) {
        all.emplace(static_cast<int>(bands.first.bands.size()));
        all->bands = bands.first;
        return scan_scenes(run, names, bands, share, *all);
    };
    Scene last = scan(known, 1);
    if (all->sums.valid > 0) return last;
    last = scan(without_empty_bands(run, names, known, std::vector<int64_t>(all->sums.finite)), 0);
    if (all->sums.valid == 0)
        throw Error("no pixel of the scenes is valid (nodata, masked, NaN or all zero)",
                    "Look at them with gdal_hsi_info -extremes.");
    return last;
}

void print_plans(tool::Run& run, const std::vector<std::string>& names,
                 const std::pair<model::ModelBands, std::string>& known) {
    for (const std::string& name : names) {
        const auto scene = open_scene(run, name, &known.first, known.second);
        run.print(name + ":");
        tool::print_plan(run, *scene, statistics::ExactScan(scene->shape()), run.pass("statistics", 0));
    }
}

void run_statistics(tool::Run& run, const Settings& s) {
    run.report()["device"] = tool::describe_devices(run, {}, nullptr);
    std::vector<std::string> names, merged = s.merged;
    for (const std::string& name : tools::listed_names(run, "scene", s.scenes))
        (holds_statistics(name) ? merged : names).push_back(name);
    if (run.options().source.follow && names.size() != 1)
        throw UsageError("-follow is for one scene, and there are " + std::to_string(names.size()),
                         "Follow each with a run of its own, and merge their files.");
    const raster::TextOutput output{"-o", s.out, s.overwrite || s.append, run.files()};
    raster::check_text_output(output);
    Files files(run, s, merged);
    const auto known = check_scenes(run, names, files);
    if (names.empty() && !files.all)
        throw UsageError("there is no scene and no file of statistics", "Name one scene at least.");
    for (size_t i = 0; i < files.removed.size() && !files.all; ++i) {
        Statistics like(static_cast<int>(known.first.bands.size()));
        like.bands = known.first;
        check_alike(like, known.second, files.removed[i], s.removed[i]);
    }
    if (run.options().dry_run) return print_plans(run, names, known);
    Scene last;
    if (!names.empty()) last = add_scenes(run, names, known, files.all);
    for (size_t i = 0; i < files.removed.size(); ++i) {
        check_alike(*files.all, files.first.empty() ? names.front() : files.first, files.removed[i],
                    s.removed[i]);
        files.all->remove(files.removed[i], s.removed[i]);
    }
    files.check_unchanged(s.out);
    const Statistics& all = *files.all;
    if (all.scenes.empty())
        throw Error("no scene is left: all that was added is taken away", "Leave out one of -remove.");
    raster::write_text_output(
        output, statistics::to_json(all, "gdal_hsi_statistics " + std::string(tool::project_version())));
    run.report()["scenes"] = all.scenes.size();
    tool::report_invalid(run, all.sums.valid, all.sums.invalid, "and left out");
    run.note("Statistics of " + counted(all.sums.valid, "pixel") + " of " +
             counted(static_cast<int64_t>(all.scenes.size()), "scene") + ", " +
             counted(all.sums.bands, "band"));
    if (last) tool::check_last_line(run, *last);
}

void declare(tool::Call& call) {
    auto& s = call.settings<Settings>();
    call.add_sources(s.scenes, "The scenes: anything that GDAL opens; files of statistics, which are merged; "
                               "@FILE: those that the lines of FILE name");
    call.add_follow();
    call.add_mask("the statistics");
    call.output("o", s.out, Content::model, "The file of statistics (JSON)");
    call.flag("append", s.append, "Add to what the file of -o holds, when it is there");
    for (auto* const argument :
         {&call.option("merge", s.merged, "Also add the statistics in FILE"),
          &call.option("remove", s.removed,
                       "Take away the statistics in FILE, whose scenes must all be among the others")}) {
        argument->role = tool::Role::input;
        argument->content = Content::model;
        argument->value_name = "FILE";
    }
    call.overwrite(s.overwrite, "Replace the file of -o when it is there; without this that is an error");
    call.exclusive("append", "overwrite");
    call.add_compute(false);
    call.check([&s, &call](const tool::CommonOptions& options) {
        if (s.out.empty()) throw UsageError("-o is missing", "Name the file that is to be made: -o FILE.");
        if (s.scenes.empty() && s.merged.empty() && !s.append)
            throw UsageError("there is no scene and no file of statistics", "Name one scene at least.");
        if (s.append && options.if_needed)
            throw UsageError("-append does not go with -if-needed: it makes another file each time",
                             "Make a file of each scene with -if-needed, and merge these.");
        if (options.source.window && s.scenes.size() > 1 && !call.given("append"))
            throw UsageError("-srcwin is a window of one scene, and there are several",
                             "Make a file of each window, and merge them.");
    });
    call.body([&s](tool::Run& run) { run_statistics(run, s); });
}

} // namespace statistics_tool
} // namespace

namespace tools {

extern constinit const tool::Definition statistics{
    "statistics",
    "Statistics of many scenes",
    "Statistics of one scene or many as a file, for the tools that otherwise look at a scene first "
    "(-statistics "
    "of PCA, MNF, virtual dimensionality, detection and EADP). The sums are exact: files merge, in any "
    "order, "
    "and what was added can be taken away, to the last bit.",
    {{"gdal_hsi_statistics line1.img line2.img line3.img -o lines.stat", "All lines of a campaign"},
     {"gdal_hsi_pca -statistics lines.stat line2.img line2_pcs.tif", "One PCA for all of them"},
     {"gdal_hsi_statistics today.img -append -o lines.stat",
      "Today's line added, without reading the others"},
     {"gdal_hsi_statistics -merge lines.stat -merge june.stat -remove day3.stat -o all.stat",
      "Two files together, less what one day had brought"},
     {"gdal_hsi_statistics @lines.txt -mask-exclude clouds.gpkg -o lines.stat", "Scenes from a list"}},
    "",
    statistics_tool::declare,
    false,
    false};

} // namespace tools
} // namespace hsi
