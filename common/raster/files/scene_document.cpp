// SPDX-License-Identifier: MIT
#include "raster/files/scene_document.h"

#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"
#include "raster/files/side_files.h"
#include "raster/gdal/drivers.h"
#include "raster/gdal/regular_file.h"
#include "raster/gdal/text_input.h"
#include "raster/products/product.h"

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
constexpr int most_documents = 64;                           ///< documents within documents
constexpr const char* scene_document_tag = "gdal_hsi_scene"; ///< the value of "format"

/// GTIFF_DIR:2:a.tif, NETCDF:"a.nc":v: GDAL would look for the file from where the reader stands.
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

/// Reads with complaints that name the file.
class Reader {
  public:
    Reader(std::string folder, std::string name) : m_folder(std::move(folder)), m_name(std::move(name)) {}

    SceneDocument document(const Json& root, int depth) const {
        if (depth > most_documents)
            fail("more than " + std::to_string(most_documents) + " scenes stand in one another");
        if (!root.is_object()) fail("it is no object");
        if (const auto tag = root.find("format"); tag == root.end() || *tag != scene_document_tag)
            fail(std::string("it is not marked as ") + scene_document_tag);
        const int64_t version = whole(root, "version", 1, INT_MAX);
        if (version > format_version)
            throw Error("'" + m_name + "' is a scene of version " + std::to_string(version) +
                            ", and this program knows versions up to " + std::to_string(format_version),
                        "It was made by a newer one: use that, or make it anew.");
        SceneDocument d;
        d.made_by = text(root, "made_by", "");
        d.raster = text(root, "raster");
        d.keep_nan = root.contains("keep_nan") && root["keep_nan"] == true;
        const Json& link = object(root, "operation");
        d.link.operation = text(link, "name");
        d.link.settings = object(link, "settings");
        d.link.output = static_cast<size_t>(whole(link, "output", 0, INT_MAX));
        d.source = source(object(root, "source"), depth);
        return d;
    }
    [[noreturn]] void fail(const std::string& what) const {
        throw Error("'" + m_name + "' is damaged: " + what, "Make it anew with the tool that has made it.");
    }

  private:
    DocumentSource source(const Json& json, int depth) const {
        DocumentSource s;
        s.scaled = json.contains("scaled") && json["scaled"] == true;
        s.open_options = texts(json, "open_options");
        s.drivers = texts(json, "drivers");
        if (const Json& nodata = json.value("nodata", Json()); nodata.is_number())
            s.nodata = nodata.get<double>();
        else if (nodata == "nan")
            s.nodata = NAN;
        else if (!nodata.is_null())
            fail("'nodata' is no number");
        if (json.contains("values")) s.values = text(json, "values");
        s.bands = wholes(json, "bands", 1);
        if (const auto window = wholes(json, "window", 0); !window.empty()) {
            if (window.size() != 4) fail("'window' is no window");
            s.window = Rect{window[0], window[1], window[2], window[3]};
        }
        if (json.contains("scene"))
            s.scene = std::make_shared<const SceneDocument>(document(object(json, "scene"), depth + 1));
        else
            s.path = resolved(text(json, "path"));
        if (json.contains("table")) s.table = resolved(text(json, "table"));
        const Json& files = json.value("files", Json());
        if (s.scene && s.table.empty()) return s;
        if (!files.is_array() || files.empty()) fail("'files' lists no files");
        for (const Json& file : files)
            s.files.push_back(
                {resolved(text(file, "path")), whole(file, "bytes", 0, LLONG_MAX), text(file, "modified")});
        return s;
    }

    std::string resolved(const std::string& path) const {
        if (path.empty()) fail("a file has no name");
        // NETCDF:"/data/a.nc":v and the like stand as they are.
        const bool plain = path.front() != '/' && path.find(':') == std::string::npos;
        return plain ? join_path(m_folder, path) : path;
    }
    const Json& object(const Json& in, const char* key) const {
        const auto at = in.is_object() ? in.find(key) : in.end();
        if (at == in.end() || !at->is_object()) fail(std::string("there is no '") + key + "'");
        return *at;
    }
    std::string text(const Json& in, const char* key) const {
        const auto at = in.is_object() ? in.find(key) : in.end();
        if (at == in.end() || !at->is_string()) fail(std::string("there is no '") + key + "'");
        return at->get<std::string>();
    }
    static std::string text(const Json& in, const char* key, const char* otherwise) {
        const auto at = in.find(key);
        return at != in.end() && at->is_string() ? at->get<std::string>() : otherwise;
    }
    int64_t whole(const Json& value, const std::string& what, double least, double most) const {
        const double v = value.is_number() ? value.get<double>() : NAN;
        if (!(v >= least && v <= most) || v != std::floor(v)) fail("'" + what + "' is no number that fits");
        return value.is_number_float() ? static_cast<int64_t>(v) : value.get<int64_t>();
    }
    int64_t whole(const Json& in, const char* key, int64_t least, int64_t most) const {
        if (!in.is_object() || !in.contains(key)) fail(std::string("there is no '") + key + "'");
        return whole(in[key], std::string(key), static_cast<double>(least), static_cast<double>(most));
    }
    std::vector<std::string> texts(const Json& in, const char* key) const {
        std::vector<std::string> out;
        const Json& list = in.value(key, Json::array());
        if (!list.is_array()) fail(std::string("'") + key + "' is no list");
        for (const Json& one : list) {
            if (!one.is_string()) fail(std::string("'") + key + "' holds what is no text");
            out.push_back(one.get<std::string>());
        }
        return out;
    }
    std::vector<int> wholes(const Json& in, const char* key, int least) const {
        std::vector<int> out;
        const Json list = in.value(key, Json::array());
        if (list.is_null()) return out;
        if (!list.is_array()) fail(std::string("'") + key + "' is no list");
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

} // namespace

FileName name_from(const std::string& path, const std::string& destination, bool pending) {
    std::error_code ec;
    if (!is_local(path) || !(pending || fs::exists(path, ec))) return {with_absolute_file(path)};
    if (!is_local(destination)) return {fs::absolute(path).lexically_normal().string()};
    // Links in folders are followed, or ".." would lead elsewhere; the file itself may be a link.
    const fs::path file = fs::path(path), folder = fs::weakly_canonical(fs::absolute(file).parent_path(), ec);
    const fs::path from = fs::weakly_canonical(fs::absolute(folder_of(destination)), ec);
    const fs::path way = (folder / file.filename()).lexically_relative(from);
    if (way.empty()) return {fs::absolute(file).string()};
    return {way.string(), true};
}

SceneDocument parse_scene_document(const std::string& text, const std::string& folder,
                                   const std::string& name) {
    const Reader reader(folder, name);
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) reader.fail("it is no JSON text, or not all of one");
    return reader.document(json, 0);
}

bool is_scene_document(const std::string& path) {
    const std::string begin = beginning_of_file(path, 1024);
    const size_t at = begin.find_first_not_of(" \t\r\n");
    if (at == std::string::npos || begin[at] != '{') return false;
    return begin.find(std::string("\"") + scene_document_tag + "\"") != std::string::npos ||
           equal_names(extension_of(path), "hsi");
}

SceneDocument read_scene_document(const std::string& path) {
    // Of a link, its names hold where the document itself is.
    const std::string place = is_local(path) ? follow_links(path) : path;
    return parse_scene_document(read_file(path, largest_file::model), folder_of(place), path);
}

std::string scene_document_text(const SceneDocument& document, const std::string& destination) {
    const std::string plain =
        json_of(document, destination).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
    // GDAL takes any text for a VRT that has a tag of one in its beginning, and would show one without
    // pixels.
    std::string text;
    text.reserve(plain.size());
    for (const char c : plain)
        c == '<' ? text += "\\u003c" : text += c;
    return text;
}

std::vector<DocumentSource::File> files_as_they_are(const std::string& path) {
    std::vector<DocumentSource::File> files;
    if (is_scene_document(path)) {
        // It knows those behind it.
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
            throw Error("'" + file.path + "', which '" + name + "' is computed from, is gone",
                        "Put it back, or make the scene anew.");
        if (now->bytes != file.bytes || now->modified != file.modified)
            throw Error("'" + file.path + "' was changed since '" + name +
                            "' was made, which is computed from it",
                        "Make the scene anew: what was found of the old one need not hold.");
    }
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
