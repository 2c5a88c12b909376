// SPDX-License-Identifier: MIT
#include "shared/many_scenes.h"

#include "core/error.h"
#include "core/file_path.h"
#include "model/band_match.h"
#include "model/classes.h"
#include "raster/labels.h"
#include "raster/side_files.h"
#include "raster/text_input.h"
#include "tool/mask.h"
#include "tool/memory_plan.h"
#include "tool/model_values.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <sstream>
#include <utility>

namespace hsi::tools {
namespace {

/// Cubes with the same bands, one below the other, as one cube.
class LinesTogether final : public stream::CubeSource {
  public:
    explicit LinesTogether(std::vector<std::shared_ptr<const stream::CubeSource>> parts)
        : m_parts(std::move(parts)) {
        m_shape = m_parts.front()->shape();
        m_shape.lines = 0;
        for (const auto& part : m_parts) {
            m_first.push_back(m_shape.lines);
            m_shape.samples = std::max(m_shape.samples, part->shape().samples);
            m_shape.lines += part->shape().lines;
        }
    }
    stream::CubeShape shape() const override { return m_shape; }
    stream::BlockLayout layout() const override {
        stream::BlockLayout all;
        for (const auto& part : m_parts)
            all.block_lines = std::max(all.block_lines, part->layout().block_lines);
        return all;
    }
    std::unique_ptr<stream::CubeReader> open_reader() const override {
        return std::make_unique<Reader>(*this);
    }
    uint64_t reader_bytes() const override { return most(&stream::CubeSource::reader_bytes); }
    uint64_t stored_bytes_per_pixel() const override {
        return most(&stream::CubeSource::stored_bytes_per_pixel);
    }
    uint64_t window_bytes(int64_t samples, int64_t lines) const override {
        uint64_t bytes = 0;
        for (const auto& part : m_parts)
            bytes = std::max(bytes, part->window_bytes(samples, lines));
        return bytes;
    }

  private:
    uint64_t most(uint64_t (stream::CubeSource::*of)() const) const {
        uint64_t bytes = 0;
        for (const auto& part : m_parts)
            bytes = std::max(bytes, ((*part).*of)());
        return bytes;
    }

    /// Keeps only one part open at a time, because a campaign may have more files than a process may open.
    class Reader final : public stream::CubeReader {
      public:
        explicit Reader(const LinesTogether& all) : m_all(all) {}
        void read(const Rect& window, const CubeView<float>& dst) override {
            for (size_t k = 0; k < m_all.m_parts.size(); ++k) {
                const auto shape = m_all.m_parts[k]->shape();
                const int64_t from = std::max(window.y, m_all.m_first[k]),
                              end = std::min(window.y + window.h, m_all.m_first[k] + shape.lines);
                if (from < end) read_part(k, shape, {window.x, from, window.w, end - from}, window.y, dst);
            }
        }

      private:
        /// Reads a part. k: index of the part. rows: rows of the whole cube that are within the part.
        void read_part(size_t k, const stream::CubeShape& shape, const Rect& rows, int64_t top,
                       const CubeView<float>& dst) {
            const int64_t there = std::clamp<int64_t>(shape.samples - rows.x, 0, rows.w);
            if (there > 0) {
                if (!m_reader || m_part != k) {
                    m_reader.reset();
                    m_reader = m_all.m_parts[k]->open_reader();
                    m_part = k;
                }
                m_reader->read({rows.x, rows.y - m_all.m_first[k], there, rows.h},
                               dst.cut(0, rows.y - top, there, rows.h));
            }
            for (int b = 0; b < dst.bands; ++b)
                for (int64_t line = 0; line < rows.h; ++line)
                    for (int64_t s = there; s < rows.w; ++s)
                        dst.at(b, rows.y - top + line, s) = std::numeric_limits<float>::quiet_NaN();
        }

        const LinesTogether& m_all;
        std::unique_ptr<stream::CubeReader> m_reader;
        size_t m_part = 0;
    };

    std::vector<std::shared_ptr<const stream::CubeSource>> m_parts;
    std::vector<int64_t> m_first;
    stream::CubeShape m_shape;
};

/// Checks that the scenes have the same SRS. Otherwise, points of a scene would have wrong positions in the
/// output layer.
void check_srs(const raster::RasterSource& scene, const raster::RasterSource& source) {
    if (!scene.facts().srs || !source.facts().srs) return;
    auto a = raster::grid_of(scene), b = raster::grid_of(source);
    a.samples = b.samples;
    a.lines = b.lines;
    a.geotransform = b.geotransform;
    if (!raster::same_grid(a, b))
        throw Error(scene.path() + " has another SRS (" + scene.facts().srs_name() + ") than " +
                        source.path() + " (" + source.facts().srs_name() +
                        "), but all scenes must have the same SRS",
                    "Warp it first (gdalwarp -t_srs), or leave it out.");
}

/// Returns the lines of the file that `word` (@FILE) names, without empty lines. `what`: name of the items,
/// for messages.
std::vector<std::string> listed_lines(tool::Run& run, const std::string& role, const std::string& word,
                                      const std::string& what, const std::string& advice) {
    const std::string list = word.substr(1);
    run.files()->reads(role, list, {});
    std::string text = raster::read_input(list, largest_file::options);
    // Some editors write a byte order mark at the beginning of a file.
    if (text.compare(0, 3, "\xEF\xBB\xBF") == 0) text.erase(0, 3);
    std::istringstream lines(text);
    std::vector<std::string> found;
    for (std::string line; std::getline(lines, line);) {
        const size_t begin = line.find_first_not_of(" \t\r"), end = line.find_last_not_of(" \t\r");
        if (begin != std::string::npos && line[begin] != '#')
            found.push_back(line.substr(begin, end - begin + 1));
    }
    if (found.empty()) throw Error("'" + list + "' lists no " + what, advice);
    return found;
}

} // namespace

void add_with_option(tool::Builder& args, std::vector<std::string>& names, const std::string& what) {
    auto& argument = args.option("with", names, what + "; @FILE: a list of scenes");
    argument.content = tool::Content::raster;
    argument.value_name = "SCENE";
}

void add_pairs_option(tool::Builder& args, std::vector<std::array<std::string, 2>>& pairs,
                      const std::string& what, const std::string& names) {
    args.option("with", pairs, what + "; @FILE: a list of pairs").shown_as(names).or_list();
}

std::vector<std::array<std::string, 2>> listed_pairs(tool::Run& run, const std::string& role,
                                                     const std::vector<std::array<std::string, 2>>& words) {
    std::vector<std::array<std::string, 2>> pairs;
    for (const auto& word : words) {
        if (!word[1].empty() || word[0].rfind('@', 0) != 0) {
            pairs.push_back(word);
            continue;
        }
        const std::string advice = "Write two names per line, with a tab between them.";
        for (const std::string& line : listed_lines(run, role, word[0], "pair of names", advice)) {
            const bool tab = line.find('\t') != std::string::npos;
            const size_t end = line.find_first_of(tab ? "\t" : " "),
                         next = line.find_first_not_of(tab ? "\t" : " ", end);
            if (end == std::string::npos || line.find(tab ? '\t' : ' ', next) != std::string::npos)
                throw Error("'" + word[0].substr(1) + "': '" + line + "' are not two names", advice);
            const size_t last = line.find_last_not_of(" \t", end),
                         first = line.find_first_not_of(" \t", next);
            pairs.push_back({line.substr(0, last + 1), line.substr(first)});
        }
    }
    return pairs;
}

std::vector<std::string> listed_names(tool::Run& run, const std::string& role,
                                      const std::vector<std::string>& words) {
    std::vector<std::string> names;
    for (const std::string& word : words) {
        if (word.size() < 2 || word[0] != '@') {
            names.push_back(word);
            continue;
        }
        for (std::string& line : listed_lines(run, role, word, "scene", "Write one scene name per line."))
            names.push_back(std::move(line));
    }
    return names;
}

std::shared_ptr<raster::RasterSource> open_beside(tool::Run& run, const std::string& option,
                                                  const std::string& name,
                                                  const raster::RasterSource& source) {
    model::ModelBands bands;
    tool::describe_bands(source, bands);
    auto options = run.options().source;
    options.path = name;
    options.window.reset();
    const auto opened = raster::open_raster(options);
    run.files()->reads(option, name, raster::files_read_with(name));
    auto scene = tool::match_scene(run, opened, name, source.path(), bands);
    run.watch_source(scene);
    run.reserve_cache(std::min(scene->cache_bytes(), tool::quarter(run.options().memory)));
    return scene;
}

ManyScenes::ManyScenes(tool::Run& run, const std::vector<std::string>& names,
                       std::shared_ptr<raster::RasterSource> source, bool one_srs)
    : m_bands(source->bands()), m_names{source->path()}, m_scenes{source}, m_first{0} {
    for (size_t i = 0; i < names.size(); ++i) {
        const std::string& name = names[i];
        bool twice = same_file(name, source->path());
        for (size_t k = 0; k < i; ++k)
            twice = twice || same_file(name, names[k]);
        if (twice) throw UsageError(name + ": the scene is given twice", "Leave one of them out.");
        auto scene = open_beside(run, "-with", name, *source);
        if (one_srs) check_srs(*scene, *source);
        if (run.options().mask.given()) {
            const auto mask = tool::read_scene_mask(run, *scene, true);
            if (mask->count() == 0)
                run.warn(name + ": the mask contains no pixel of it; the scene adds nothing");
            scene = scene->with_mask(mask);
        }
        m_first.push_back(m_first.back() + m_scenes.back()->shape().lines);
        m_scenes.push_back(std::move(scene));
        m_names.push_back(name);
    }
    run.report()["with"] = names;
}

bool ManyScenes::located() const {
    return std::all_of(m_scenes.begin(), m_scenes.end(), [](const auto& scene) { return scene->located(); });
}

std::shared_ptr<raster::RasterSource> ManyScenes::scene(size_t k, const raster::RasterSource& source) const {
    if (source.bands() == m_bands) return m_scenes[k];
    std::vector<int> kept;
    for (const int band : source.bands())
        kept.push_back(static_cast<int>(std::find(m_bands.begin(), m_bands.end(), band) - m_bands.begin()));
    return m_scenes[k]->with_bands(kept);
}

std::shared_ptr<const stream::CubeSource>
lines_together(std::vector<std::shared_ptr<const stream::CubeSource>> parts) {
    return std::make_shared<LinesTogether>(std::move(parts));
}

std::shared_ptr<const stream::CubeSource>
ManyScenes::together(std::shared_ptr<const stream::CubeSource> first,
                     const raster::RasterSource& source) const {
    std::vector<std::shared_ptr<const stream::CubeSource>> parts{std::move(first)};
    for (size_t k = 1; k < m_scenes.size(); ++k)
        parts.push_back(scene(k, source));
    return lines_together(std::move(parts));
}

std::unique_ptr<ManyScenes> join_scenes(tool::Run& run, const std::vector<std::string>& words,
                                        tool::Scene& scene) {
    if (words.empty()) return nullptr;
    auto many = std::make_unique<ManyScenes>(run, listed_names(run, "-with", words), scene.raster());
    scene.join([all = many.get()](std::shared_ptr<const stream::CubeSource> first,
                                  const raster::RasterSource& source) {
        return all->together(std::move(first), source);
    });
    return many;
}

ManyScenes::Place ManyScenes::place_of(int64_t line) const {
    const auto after = std::upper_bound(m_first.begin(), m_first.end(), line);
    const auto k = static_cast<size_t>(after - m_first.begin()) - 1;
    return {k, line - m_first[k]};
}

} // namespace hsi::tools
