// SPDX-License-Identifier: MIT
// -with: additional scenes, which a tool treats together with src as one scene. The lines of the additional
// scenes follow below the lines of src.
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

/// Adds the option -with SCENE, which may be repeated. @FILE stands for the names in FILE, one per line of
/// text. `what`: summary of the option.
void add_with_option(tool::Builder& args, std::vector<std::string>& names,
                     const std::string& what = "Also search this scene, together with src");

/// Adds the option -with SCENE LABELS, which may be repeated. @FILE stands for the pairs in FILE, one per
/// line of text. `what`: summary of the option.
void add_pairs_option(tool::Builder& args, std::vector<std::array<std::string, 2>>& pairs,
                      const std::string& what, const std::string& names = "SCENE LABELS");

/// Returns the pairs of names, with @FILE replaced by the lines of the file. A line has two names, separated
/// by a tab, or by blanks if neither name contains a blank. Empty lines and comments are skipped as in
/// listed_names(). \throws Error with the line that is not a pair.
std::vector<std::array<std::string, 2>> listed_pairs(tool::Run& run, const std::string& role,
                                                     const std::vector<std::array<std::string, 2>>& words);

/// Returns the names, with @FILE replaced by the lines of the file. Blank lines and lines that begin with #
/// are skipped. The file is registered as an input of the run with the name `role`, such as "-with". \throws
/// Error if the list is empty.
std::vector<std::string> listed_names(tool::Run& run, const std::string& role,
                                      const std::vector<std::string>& words);

/// Opens another whole scene, which `option` (such as "-with") names, and registers it as an input. The
/// result has the bands of `source`, which are matched as the bands of a model. \throws Error with the name
/// of the scene if it cannot be opened, lacks bands, or has another scale.
std::shared_ptr<raster::RasterSource> open_beside(tool::Run& run, const std::string& option,
                                                  const std::string& name,
                                                  const raster::RasterSource& source);

/// Returns several cubes as one cube, one below the other. The cubes have the same bands. Narrower cubes are
/// padded with NaN.
std::shared_ptr<const stream::CubeSource>
lines_together(std::vector<std::shared_ptr<const stream::CubeSource>> parts);

class ManyScenes {
  public:
    /// Opens the scenes with open_beside(). The mask files of the run apply to all scenes. `one_srs`: false
    /// if the positions of pixels need no common SRS. \throws the errors of open_beside(); Error if the SRS
    /// of a scene differs from the SRS of src; UsageError if a scene is given twice.
    ManyScenes(tool::Run& run, const std::vector<std::string>& names,
               std::shared_ptr<raster::RasterSource> source, bool one_srs = true);
    size_t count() const { return m_scenes.size(); }
    const std::string& name(size_t k) const { return m_names[k]; } ///< name of scene k; 0: src
    /// Returns true if all scenes are georeferenced.
    bool located() const;

    /// Returns `first` with the other scenes below it. `first`: src, or its values for statistics, with the
    /// bands of `source`. Narrower cubes are padded with NaN.
    std::shared_ptr<const stream::CubeSource> together(std::shared_ptr<const stream::CubeSource> first,
                                                       const raster::RasterSource& source) const;
    struct Place {
        size_t scene; ///< index of the scene; 0: src
        int64_t line;
    };
    Place place_of(int64_t line) const;                       ///< scene and line for a line of together()
    int64_t first_line(size_t k) const { return m_first[k]; } ///< first line of scene k in together()
    /// Returns scene k with the bands of `source`, which is src, possibly without some of its bands.
    std::shared_ptr<raster::RasterSource> scene(size_t k, const raster::RasterSource& source) const;

  private:
    std::vector<int> m_bands; ///< bands of src when it was opened
    std::vector<std::string> m_names;
    std::vector<std::shared_ptr<raster::RasterSource>> m_scenes; ///< the scenes, with the bands in m_bands
    std::vector<int64_t> m_first;                                ///< first line of each scene in together()
};

/// Opens the scenes of -with and joins them to `scene` (tool::Scene::join()). The returned object must
/// outlive `scene`. Returns null if there are no such scenes.
std::unique_ptr<ManyScenes> join_scenes(tool::Run& run, const std::vector<std::string>& words,
                                        tool::Scene& scene);

} // namespace hsi::tools
