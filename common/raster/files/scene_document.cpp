// SPDX-License-Identifier: MIT
#include "raster/scene_document.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"
#include "raster/drivers.h"
#include "raster/files/document_names.h"
#include "raster/products/product.h"
#include "raster/regular_file.h"
#include "raster/side_files.h"
#include "raster/text_input.h"

#include <cpl_string.h>
#include <cpl_vsi.h>

#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <utility>

namespace hsi::raster {
namespace {

namespace fs = std::filesystem;

constexpr int format_version = 1;
constexpr int most_documents = 64;    ///< maximum depth of documents within documents
constexpr size_t most_chosen = 65536; ///< maximum number of bands, as in GDAL
constexpr size_t most_files = 100000, most_options = 1000;
constexpr const char* scene_document_tag = "gdal_hsi_scene"; ///< value of the member "format"

/// Makes the file absolute in a name such as GTIFF_DIR:2:a.tif or NETCDF:"a.nc":v. GDAL would search for a
/// relative file from the working folder of the program that reads the document.
std::string with_absolute_file(const std::string& path) {
    if (path.rfind("/vsi", 0) == 0) return path;
    const CPLStringList parts(CSLTokenizeString2(path.c_str(), ":", CSLT_HONOURSTRINGS));
    for (int i = 1; i < parts.size(); ++i) {
        const std::string part = parts[i];
        std::error_code ec;
        const size_t at = path.find(part);
        if (at == std::string::npos || !fs::is_regular_file(part, ec)) continue;
        return path.substr(0, at) + fs::absolute(part, ec).lexically_normal().string() +
               path.substr(at + part.size());
    }
    return path;
}

/// Reads the members of a document. All errors name the document.
class Reader {
  public:
    Reader(std::string folder, std::string name) : m_folder(std::move(folder)), m_name(std::move(name)) {}

    SceneDocument document(const Json& root, int depth) const {
        if (depth > most_documents)
            fail("it has more than " + std::to_string(most_documents) + " nested scenes");
        if (!root.is_object()) fail("it is not an object");
        if (const auto tag = root.find("format"); tag == root.end() || *tag != scene_document_tag)
            fail(std::string("its format is not ") + scene_document_tag);
        refuse_others(root, {"format", "version", "made_by", "source", "operation", "keep_nan", "raster"});
        const int64_t version = whole(root, "version", 1, INT_MAX);
        if (version > format_version)
            throw Error("'" + m_name + "' is a scene of version " + std::to_string(version) +
                            ", but this program reads versions up to " + std::to_string(format_version),
                        "Use the newer program that made it, or make it again.");
        SceneDocument d;
        if (root.contains("made_by")) d.made_by = text(root, "made_by");
        d.raster = text(root, "raster");
        if (const std::string fault = fault_of_description(d.raster); !fault.empty())
            fail("'raster' does not describe a raster: " + fault);
        d.keep_nan = yes(root, "keep_nan");
        const Json& link = object(root, "operation");
        refuse_others(link, {"name", "output", "settings"});
        d.link.operation = text(link, "name");
        d.link.settings = object(link, "settings");
        d.link.output = static_cast<size_t>(whole(link, "output", 0, INT_MAX));
        d.source = source(object(root, "source"), depth);
        return d;
    }
    [[noreturn]] void fail(const std::string& what) const {
        throw Error("'" + m_name + "' is damaged: " + what, "Make it again with the tool that made it.");
    }

  private:
    DocumentSource source(const Json& json, int depth) const {
        refuse_others(json, {"path", "scene", "open_options", "drivers", "nodata", "bands", "window",
                             "scaled", "values", "table", "files", "file_count"});
        DocumentSource s;
        s.scaled = yes(json, "scaled");
        s.open_options = texts(json, "open_options");
        s.drivers = texts(json, "drivers");
        if (const Json& nodata = member(json, "nodata");
            nodata.is_number() && std::isfinite(nodata.get<double>()))
            s.nodata = nodata.get<double>();
        else if (nodata == "nan")
            s.nodata = NAN;
        else if (!nodata.is_null())
            fail("'nodata' is not a number");
        if (json.contains("values")) s.values = text(json, "values");
        s.bands = wholes(json, "bands", 1, most_chosen);
        if (const auto window = wholes(json, "window", 0, 4); json.contains("window")) {
            if (window.size() != 4)
                fail("'window' has " + counted(window.size(), "entry", "entries") + " instead of 4");
            s.window = Rect{window[0], window[1], window[2], window[3]};
        }
        if (json.contains("scene"))
            s.scene = std::make_shared<const SceneDocument>(document(object(json, "scene"), depth + 1));
        if (s.scene && json.contains("path")) fail("it has both 'path' and 'scene'");
        if (!s.scene) s.path = resolved(text(json, "path"));
        if (json.contains("table")) s.table = resolved(text(json, "table"));
        const Json& files = member(json, "files");
        if (s.scene && s.table.empty() && files.is_null()) return s;
        if (!files.is_array() || files.empty() || files.size() > most_files)
            fail("'files' does not list files");
        if (json.contains("file_count"))
            s.file_count = whole(json, "file_count", 1, static_cast<int64_t>(most_files));
        for (const Json& file : files) {
            refuse_others(file, {"path", "bytes", "modified"});
            s.files.push_back(
                {resolved(text(file, "path")), whole(file, "bytes", 0, most_bytes), text(file, "modified")});
        }
        return s;
    }
    /// Maximum size of a file: doubles represent all integers up to 2^53.
    static constexpr int64_t most_bytes = int64_t{1} << 53;

    /// Refuses unknown members, because they may change the meaning of known members.
    void refuse_others(const Json& in, std::initializer_list<const char*> known) const {
        if (!in.is_object()) fail("one of its parts is not an object");
        for (const auto& member : in.items())
            if (std::none_of(known.begin(), known.end(),
                             [&](const char* one) { return member.key() == one; }))
                fail("it has an unknown member '" + member.key() + "'");
    }
    /// Returns a JSON null if the member is absent.
    static const Json& member(const Json& in, const char* key) {
        static const Json none;
        const auto at = in.find(key);
        return at == in.end() ? none : *at;
    }
    bool yes(const Json& in, const char* key) const {
        const Json& value = member(in, key);
        if (!value.is_null() && !value.is_boolean()) fail(std::string("'") + key + "' is not true or false");
        return value == true;
    }

    std::string resolved(const std::string& path) const {
        if (path.empty()) fail("a file has no name");
        if (path.find('\0') != std::string::npos) fail("the name of a file has zero bytes");
        // Names such as NETCDF:"/data/a.nc":v are unchanged.
        const bool plain = path.front() != '/' && path.find(':') == std::string::npos;
        return plain ? join_path(m_folder, path) : path;
    }
    const Json& object(const Json& in, const char* key) const {
        const auto at = in.is_object() ? in.find(key) : in.end();
        if (at == in.end() || !at->is_object())
            fail(std::string("'") + key + "' is missing or not an object");
        return *at;
    }
    std::string text(const Json& in, const char* key) const {
        const auto at = in.is_object() ? in.find(key) : in.end();
        if (at == in.end() || !at->is_string()) fail(std::string("'") + key + "' is missing or not a text");
        return at->get<std::string>();
    }
    int64_t whole(const Json& value, const std::string& what, double least, double most) const {
        const double v = value.is_number() ? value.get<double>() : NAN;
        if (!(v >= least && v <= most) || v != std::floor(v))
            fail("'" + what + "' is not a whole number in the allowed range");
        return static_cast<int64_t>(v);
    }
    int64_t whole(const Json& in, const char* key, int64_t least, int64_t most) const {
        if (!in.is_object() || !in.contains(key)) fail(std::string("'") + key + "' is missing");
        return whole(in[key], std::string(key), static_cast<double>(least), static_cast<double>(most));
    }
    std::vector<std::string> texts(const Json& in, const char* key) const {
        std::vector<std::string> out;
        const Json& list = member(in, key);
        if (list.is_null()) return out;
        if (!list.is_array() || list.empty() || list.size() > most_options)
            fail(std::string("'") + key + "' is not a list of texts");
        for (const Json& one : list) {
            if (!one.is_string()) fail(std::string("'") + key + "' is not a list of texts");
            out.push_back(one.get<std::string>());
        }
        return out;
    }
    std::vector<int> wholes(const Json& in, const char* key, int least, size_t most) const {
        std::vector<int> out;
        const Json& list = member(in, key);
        if (list.is_null()) return out;
        if (!list.is_array() || list.empty()) fail(std::string("'") + key + "' is not a list, or is empty");
        if (list.size() > most)
            fail(std::string("'") + key + "' has " + std::to_string(list.size()) + " entries, but at most " +
                 std::to_string(most) + " are possible");
        for (const Json& one : list)
            out.push_back(static_cast<int>(whole(one, std::string(key), least, INT_MAX)));
        return out;
    }

    const std::string m_folder, m_name;
};

OrderedJson json_of(const SceneDocument& document, const std::string& destination);

OrderedJson json_of(const DocumentSource& s, const std::string& destination) {
    OrderedJson json = OrderedJson::object();
    if (s.scene)
        json["scene"] = json_of(*s.scene, destination);
    else
        json["path"] = name_from(s.path, destination, false).text;
    if (!s.open_options.empty()) json["open_options"] = s.open_options;
    if (!s.drivers.empty()) json["drivers"] = s.drivers;
    if (s.nodata) json["nodata"] = std::isnan(*s.nodata) ? OrderedJson("nan") : OrderedJson(*s.nodata);
    if (!s.bands.empty()) json["bands"] = s.bands;
    if (s.window) json["window"] = {s.window->x, s.window->y, s.window->w, s.window->h};
    if (s.scaled) json["scaled"] = true;
    if (!s.values.empty()) json["values"] = s.values;
    if (!s.table.empty()) json["table"] = name_from(s.table, destination, false).text;
    if (!s.files.empty()) json["file_count"] = s.files.size();
    for (const auto& file : s.files)
        json["files"].push_back({{"path", name_from(file.path, destination, false).text},
                                 {"bytes", file.bytes},
                                 {"modified", file.modified}});
    return json;
}

OrderedJson json_of(const SceneDocument& document, const std::string& destination) {
    OrderedJson json;
    json["format"] = scene_document_tag;
    json["version"] = format_version;
    json["made_by"] = document.made_by;
    json["source"] = json_of(document.source, destination);
    json["operation"] = {{"name", document.link.operation},
                         {"output", document.link.output},
                         {"settings", OrderedJson(document.link.settings)}};
    if (document.keep_nan) json["keep_nan"] = true;
    json["raster"] = document.raster;
    return json;
}

/// Returns the state of a file. It does not include the time of the last change of the inode, because this
/// time changes when a folder is copied.
std::optional<DocumentSource::File> file_as_it_is(const std::string& path) {
    if (is_local(path)) {
        struct stat facts {};
        if (::stat(path.c_str(), &facts) != 0) return std::nullopt;
        char text[48];
        std::snprintf(text, sizeof text, "%lld.%09ld", static_cast<long long>(facts.st_mtim.tv_sec),
                      facts.st_mtim.tv_nsec);
        return DocumentSource::File{path, static_cast<int64_t>(facts.st_size), text};
    }
    VSIStatBufL facts{};
    if (VSIStatL(path.c_str(), &facts) != 0) return std::nullopt;
    return DocumentSource::File{path, static_cast<int64_t>(facts.st_size),
                                std::to_string(static_cast<long long>(facts.st_mtime))};
}

/// Returns true if two times of modification are equal. Servers, archives and many ways to copy a folder keep
/// only whole seconds. If either time has whole seconds, only whole seconds are compared. Times in a ZIP file
/// are not compared with the times of original files, because a ZIP file has even seconds and no time zone.
bool same_time(const std::string& path, const std::string& now, const std::string& stated) {
    if (path.starts_with("/vsizip/") && stated.find('.') != std::string::npos) return true;
    const auto seconds = [](const std::string& text) { return text.substr(0, text.find('.')); };
    const auto whole = [](const std::string& text) {
        const size_t point = text.find('.');
        return point == std::string::npos || text.find_first_not_of('0', point + 1) == std::string::npos;
    };
    return whole(now) || whole(stated) ? seconds(now) == seconds(stated) : now == stated;
}

} // namespace

FileName name_from(const std::string& path, const std::string& destination, bool pending) {
    std::error_code ec;
    if (!is_local(path) || !(pending || fs::exists(path, ec))) return {with_absolute_file(path)};
    if (!is_local(destination)) return {fs::absolute(path).lexically_normal().string()};
    // Symbolic links to folders are followed, because ".." would otherwise lead to another folder. The file
    // itself may be a link.
    const fs::path file = fs::path(path), folder = fs::weakly_canonical(fs::absolute(file).parent_path(), ec);
    const fs::path from = fs::weakly_canonical(fs::absolute(folder_of(destination)), ec);
    const fs::path way = (folder / file.filename()).lexically_relative(from);
    if (way.empty()) return {fs::absolute(file).string()};
    return {way.string(), true};
}

SceneDocument parse_scene_document(const std::string& text, const std::string& folder,
                                   const std::string& name) {
    const Reader reader(folder, name);
    std::string fault;
    const auto json = parse_json(text, fault);
    if (!json) reader.fail("it " + fault);
    return reader.document(*json, 0);
}

bool is_scene_document(const std::string& path) {
    const std::string begin = beginning_of_file(path, 1024);
    const size_t at = begin.find_first_not_of(" \t\r\n");
    if (at == std::string::npos || begin[at] != '{') return false;
    return begin.find(std::string("\"") + scene_document_tag + "\"") != std::string::npos ||
           equal_names(extension_of(path), "hsi");
}

SceneDocument read_scene_document(const std::string& path) {
    // If the path is a symbolic link, names in the document are relative to the folder of the link's target.
    const std::string place = is_local(path) ? follow_links(path) : path;
    SceneDocument document =
        parse_scene_document(read_file(path, largest_file::model), folder_of(place), path);
    check_document_names(document, path);
    return document;
}

std::string scene_document_text(const SceneDocument& document, const std::string& destination) {
    const std::string plain =
        json_of(document, destination).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
    // The character '<' is escaped. GDAL treats any text that has a VRT tag in its first bytes as a VRT, and
    // would show a raster without pixels.
    std::string text;
    text.reserve(plain.size());
    for (const char c : plain)
        c == '<' ? text += "\\u003c" : text += c;
    return text;
}

std::vector<DocumentSource::File> files_as_they_are(const std::string& path) {
    std::vector<DocumentSource::File> files;
    if (is_scene_document(path)) {
        // The document itself states the files that it names, so only the document is listed.
        if (auto file = file_as_it_is(path)) files.push_back(std::move(*file));
        return files;
    }
    for (const std::string& name : files_read_with(path)) {
        if (equal_names(extension_of(name), "ovr") || equal_names(extension_of(name), "xml")) {
            const std::string stem = name.substr(0, name.size() - 4);
            if (equal_names(extension_of(name), "ovr") || equal_names(extension_of(stem), "aux")) continue;
        }
        if (auto file = file_as_it_is(name)) files.push_back(std::move(*file));
    }
    return files;
}

void check_unchanged(const DocumentSource& source, const std::string& name) {
    for (const auto& file : source.files) {
        const auto now = file_as_it_is(file.path);
        if (!now)
            throw Error("'" + file.path + "', from which '" + name + "' is computed, is missing",
                        "Restore it, or make the scene again.");
        if (now->bytes != file.bytes || !same_time(file.path, now->modified, file.modified))
            throw Error("'" + file.path + "' was changed after '" + name +
                            "', which is computed from it, was made",
                        "Make the scene again: it has results from the old file.");
    }
}

SourceWatch::SourceWatch(const DocumentSource& source, std::string name) : m_name(std::move(name)) {
    for (const auto& file : source.files)
        if (const auto now = FileState::of(file.path)) m_files.push_back({file.path, *now});
}

void SourceWatch::check() const {
    for (const Seen& file : m_files)
        if (const auto now = FileState::of(file.path); !now || !now->has_contents_of(file.state))
            throw Error("'" + file.path + "' was changed after '" + m_name +
                            "', which is computed from it, was opened",
                        "Make the scene again: it has results from the old file.");
}

std::vector<std::string> files_of_document(const SceneDocument& document) {
    std::vector<std::string> names;
    for (const SceneDocument* d = &document; d != nullptr; d = d->source.scene.get()) {
        if (!d->source.scene) names.push_back(d->source.path);
        for (const auto& file : d->source.files)
            names.push_back(file.path);
    }
    return names;
}

} // namespace hsi::raster
