// SPDX-License-Identifier: MIT
// A virtual scene as a file (.hsi), in JSON: its operation and its source, with file names relative to the
// document, and the metadata that an ordinary output of the tool would have. docs/chains.md has the format.
#pragma once

#include "core/file_state.h"
#include "core/rect.h"
#include "stream/computed_source.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

struct SceneDocument;

/// The scene that an operation computes from: a raster as it was opened, or another document.
struct DocumentSource {
    /// A file of the scene, with its state.
    struct File {
        std::string path;
        int64_t bytes = 0;
        std::string modified; ///< seconds and nanoseconds since 1970: "1700000000.000000001"
    };
    std::string path; ///< name for GDAL to open; empty: use `scene`
    std::vector<std::string> open_options, drivers;
    std::optional<double> nodata;
    std::vector<int> bands; ///< 1-based, in this order; empty (only if the source is a document): all
    std::optional<Rect> window;
    bool scaled = false; ///< stored values are scaled (RasterSource::scaled())
    /// The geographic lookup table (GLT) of an orthorectified scene; empty for other scenes.
    std::string table;
    std::vector<File> files; ///< files of the scene, if it is a raster, and of the table
    /// If the document was read from a file: the number of files when it was written.
    std::optional<int64_t> file_count;
    /// A text with the nodata values of the scene's bands and, if `scaled` is set, their scales; empty:
    /// unknown. Other programs may change these values with a side file (.aux.xml). A scene whose values
    /// differ from this text is refused.
    std::string values;
    std::shared_ptr<const SceneDocument> scene;
};

/// The name of the step that orthorectifies a scene with DocumentSource::table. The step has no settings.
inline constexpr const char* grid_operation = "orthorectify";

struct SceneDocument {
    stream::Link link;
    DocumentSource source;
    std::string raster;    ///< all facts except the pixels, as a GDAL VRT
    bool keep_nan = false; ///< as OutputSpec::keep_nan
    std::string made_by;   ///< the command line of the run that wrote the document
    /// Results that several openings of this scene in the same process share; null: nothing is shared. Not
    /// stored in files.
    std::shared_ptr<stream::LinkStore> store;
};

/// Returns true if `path` is a virtual scene (.hsi), which may be damaged: JSON with the mark of a virtual
/// scene in its first bytes, or with the extension .hsi.
bool is_scene_document(const std::string& path);

/// Reads a document. File names relative to the document become paths that can be opened. Throws Error with
/// the file and the fault, also for an unknown version and for names that a document must not contain
/// (files/document_names.h).
SceneDocument read_scene_document(const std::string& path);
/// Parses a text whose relative file names are relative to `folder`; `name` is the scene's name in messages.
SceneDocument parse_scene_document(const std::string& text, const std::string& folder,
                                   const std::string& name);

/// Returns the text of a document for `destination`; local files are named relative to it.
std::string scene_document_text(const SceneDocument& document, const std::string& destination);

/// Returns the files of a raster with their current state, for DocumentSource::files. The files .aux.xml and
/// .ovr, which viewers write next to a raster, are left out. For a document, returns only the document.
std::vector<DocumentSource::File> files_as_they_are(const std::string& path);
/// Throws Error that names a file of the source that is missing or has changed.
void check_unchanged(const DocumentSource& source, const std::string& name);

/// Checks whether the files behind an open scene are unchanged.
class SourceWatch {
  public:
    SourceWatch() = default;
    /// `name` is the scene's name in messages.
    SourceWatch(const DocumentSource& source, std::string name);
    /// Throws Error that names a local file that was removed, replaced or written to since the object was
    /// made. Takes a microsecond per file.
    void check() const;

  private:
    struct Seen {
        std::string path;
        FileState state;
    };

    std::string m_name;
    std::vector<Seen> m_files;
};

/// Returns the names of all files that a document's scene is read from, including the files of documents that
/// are its source.
std::vector<std::string> files_of_document(const SceneDocument& document);

/// The name of a file as written in another file, the destination.
struct FileName {
    std::string text;
    bool relative = false; ///< true: the name is relative to the destination's folder
};
/// Returns the name for the file `path` in a file at `destination`. An existing local file gets a path
/// relative to the destination's folder, so that a folder can be moved with its content. Other names
/// (/vsis3/..., NETCDF:...) are not relative; local files in them get absolute paths. If `pending` is true,
/// `path` may be an output that does not exist yet.
FileName name_from(const std::string& path, const std::string& destination, bool pending);

} // namespace hsi::raster
