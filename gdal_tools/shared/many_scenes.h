// SPDX-License-Identifier: MIT
// -with: further scenes, which a search treats together with src as one scene. They are appended below it,
// line after line.
#pragma once

#include "raster/raster_source.h"
#include "stream/cube_source.h"
#include "tool/definition.h"
#include "tool/run.h"
#include "tool/scene.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::tools {

/// Adds -with SCENE, repeatable; @FILE: the names in FILE, one per text line. `what`: the option's summary.
void add_with_option(tool::Builder& args, std::vector<std::string>& names,
                     const std::string& what = "Also search this scene, together with src");

/// Adds -with SCENE LABELS, repeatable; @FILE: pairs, one per text line of FILE. `what`: the option's
/// summary.
void add_pairs_option(tool::Builder& args, std::vector<std::array<std::string, 2>>& pairs,
                      const std::string& what, const std::string& names = "SCENE LABELS");

/// Returns the pairs, with @FILE replaced by its text lines. A text line has two names with a tab between
/// them, or blanks if neither name contains one; otherwise it is read as by listed_names(). \throws Error
/// that names a text line that is not a pair.
std::vector<std::array<std::string, 2>> listed_pairs(tool::Run& run, const std::string& role,
                                                     const std::vector<std::array<std::string, 2>>& words);

/// Returns the names, with @FILE replaced by its text lines; blank lines and lines that begin with # are
/// skipped. The list is one of the run's files under `role` ("-with"). \throws Error if it is empty.
std::vector<std::string> listed_names(tool::Run& run, const std::string& role,
                                      const std::vector<std::string>& words);

/// Opens and registers a further whole scene, the value of `option` ("-with"). Its bands are matched with
/// those of `source` like those of a model, and reordered. \throws Error that names the scene if it does not
/// open, lacks some bands, or has another scale.
std::shared_ptr<raster::RasterSource> open_beside(tool::Run& run, const std::string& option,
                                                  const std::string& name,
                                                  const raster::RasterSource& source);

/// Returns cubes with the same bands as one cube, each below the previous one; narrower cubes are padded with
/// NaN.
std::shared_ptr<const stream::CubeSource>
lines_together(std::vector<std::shared_ptr<const stream::CubeSource>> parts);

class ManyScenes {
  public:
    /// Opens the scenes as open_beside(); the run's mask files apply to all of them. \throws Error as
    /// open_beside(), and if a scene has another SRS (if both state one); UsageError for a duplicate.
    /// `one_srs`: false if the positions of pixels need no common SRS.
    ManyScenes(tool::Run& run, const std::vector<std::string>& names,
               std::shared_ptr<raster::RasterSource> source, bool one_srs = true);
    size_t count() const { return m_scenes.size(); }
    const std::string& name(size_t k) const { return m_names[k]; } ///< of scene k; 0: src
    /// Returns true if all of them are georeferenced.
    bool located() const;

    /// Returns `first` (src, or its values for statistics, at the bands of `source`) with the other scenes
    /// below it; narrower cubes are padded with NaN.
    std::shared_ptr<const stream::CubeSource> together(std::shared_ptr<const stream::CubeSource> first,
                                                       const raster::RasterSource& source) const;
    struct Place {
        size_t scene; ///< 0: src
        int64_t line;
    };
    Place place_of(int64_t line) const;                       ///< of together()
    int64_t first_line(size_t k) const { return m_first[k]; } ///< in together()
    /// Returns the scene at the bands of `source`, which is src or src without some of its bands.
    std::shared_ptr<raster::RasterSource> scene(size_t k, const raster::RasterSource& source) const;

  private:
    std::vector<int> m_bands; ///< of src, when it was opened
    std::vector<std::string> m_names;
    std::vector<std::shared_ptr<raster::RasterSource>> m_scenes; ///< at these bands
    std::vector<int64_t> m_first;                                ///< the line of together() at which each
                                                                 ///< begins
};

/// Joins the scenes of -with to `scene` (tool::Scene::join()), which must not outlive them. Returns null
/// without such scenes.
std::unique_ptr<ManyScenes> join_scenes(tool::Run& run, const std::vector<std::string>& words,
                                        tool::Scene& scene);

} // namespace hsi::tools
