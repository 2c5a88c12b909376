// SPDX-License-Identifier: MIT
#include "raster/files/document_names.h"

#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"
#include "raster/gdal_errors.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/products/pipes_beside.h"
#include "raster/regular_file.h"
#include "raster/scene_document.h"
#include "raster/side_files.h"
#include "raster/text_input.h"

#include <cpl_conv.h>
#include <cpl_minixml.h>
#include <cpl_string.h>
#include <gdal_priv.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <set>
#include <vector>

namespace hsi::raster {
namespace {

constexpr int most_texts = 64; ///< maximum length of a chain of texts, each of which names the next
constexpr uint64_t longest_text = uint64_t{256} << 20;

std::string unescaped(const std::string& text) {
    char* const plain = CPLUnescapeString(text.c_str(), nullptr, CPLES_URL);
    std::string out = plain;
    CPLFree(plain);
    return out;
}

/// Returns true if GDAL would send a request to a server for this name. File systems of GDAL that are not
/// known to be local count as servers.
bool names_server(const std::string& name) {
    const std::string text = lower(name) + "\n" + lower(unescaped(name));
    if (contains_any(text, {"http://", "https://", "ftp://", "ftps://", "s3://", "gs://", "az://", "oss://",
                            "vsicurl", "vsis3", "vsigs", "vsiaz", "vsiadls", "vsioss", "vsiswift", "vsihdfs",
                            "vsiwebhdfs"}))
        return true;
    if (begins_with_any(text, {"http:",   "https:", "ftp:",       "wms:",      "wmts:",     "wcs:", "dods:",
                               "daas:",   "eeda:",  "eedai:",     "plmosaic:", "ogcapi:",   "ngw:", "stacit:",
                               "stacta:", "pg:",    "georaster:", "geor:",     "rasdaman:", "wfs:", "iris:"}))
        return true;
    return text.rfind("/vsi", 0) == 0 &&
           !begins_with_any(text, {"/vsimem/", "/vsizip/", "/vsizip{", "/vsigzip/", "/vsitar/", "/vsi7z/",
                                   "/vsirar/", "/vsisubfile/", "/vsicached?", "/vsicrypt/", "/vsisparse/"});
}

class NameCheck {
  public:
    explicit NameCheck(std::string document)
        : m_document(std::move(document)), m_servers(CPLTestBool(CPLGetConfigOption(servers_option, "NO"))) {}

    void check(const SceneDocument& document) {
        check_name(document.source.path);
        check_name(document.source.table);
        for (const auto& file : document.source.files)
            check_name(file.path);
        check_described(document.raster, "");
        if (document.source.scene) return check(*document.source.scene);
        for (const std::string& name : {document.source.path, document.source.table}) {
            follow(name);
            if (const std::string pipe = pipe_beside(name); !pipe.empty()) refuse_pipe(pipe);
        }
    }
    /// Checks the files that GDAL and PROJ open when they use a dataset: its overviews, the arrays of
    /// longitude and latitude, and the files of its coordinate reference system.
    void check(GDALDataset& dataset) {
        const std::string path = dataset.GetDescription();
        if (const char* file = dataset.GetMetadataItem("OVERVIEW_FILE", "OVERVIEWS"))
            follow_overview(file, path);
        for (const char* item : {"X_DATASET", "Y_DATASET"})
            if (const char* file = dataset.GetMetadataItem(item, "GEOLOCATION")) check_name(file);
        if (const char* srs = dataset.GetMetadataItem("SRS", "GEOLOCATION")) check_srs(srs);
        for (const OGRSpatialReference* srs : {dataset.GetSpatialRef(), dataset.GetGCPSpatialRef()})
            if (srs != nullptr) check(*srs);
    }
    void check(const OGRSpatialReference& srs) const {
        // WKT1 contains PROJ's extensions
        for (const char* const form : {"FORMAT=WKT2_2019", "FORMAT=WKT1_GDAL"}) {
            const char* const options[] = {form, nullptr};
            char* text = nullptr;
            const bool known = srs.exportToWkt(&text, options) == OGRERR_NONE && text != nullptr;
            const std::string wkt = known ? text : "";
            CPLFree(text);
            check_srs(wkt);
        }
    }

    /// Registers the document itself, because a text that it names may name it again.
    void begin_at(const std::string& path) { m_way.push_back(path); }

    void check_name(const std::string& name) const {
        if (name.empty()) return;
        if (name.size() > PATH_MAX) fail("is damaged: a file name in it is too long", "Make it again.");
        if (is_local(name)) {
            const PathKind kind = kind_of_path(name);
            if (kind == PathKind::pipe) refuse_pipe(name);
            if (kind != PathKind::nothing) return;
        }
        if (name.find('<') != std::string::npos || name.find_first_not_of(" \t\r\n{[") != 0)
            fail("is damaged: it has a text in place of a file name",
                 "Make it again with the tool that made it.");
        if (names_server(name)) return check_server(name);
        const bool plain = is_local(name) && name.find(':') == std::string::npos;
        // The file is missing, which is reported when it is opened.
        if (plain || name.rfind("/vsimem/", 0) == 0) return;
        if (!has_file(name)) check_server(name);
    }

  private:
    [[noreturn]] void fail(const std::string& what, const std::string& advice) const {
        throw Error("'" + m_document + "' " + what, advice);
    }

    void check_server(const std::string& name) const {
        // A document on a server that the caller has named may name files below its own folder.
        const std::string own = folder_of(m_document) + "/";
        if (!is_local(m_document) && name.rfind(own, 0) == 0 &&
            name.find("/..", own.size() - 1) == std::string::npos)
            return;
        if (!m_servers)
            fail("names '" + name + "', which is not a file on this machine",
                 "If you trust the document, allow it to use servers: --config " +
                     std::string(servers_option) + " YES.");
    }

    [[noreturn]] void refuse_pipe(const std::string& name) const {
        fail("names '" + name + "', which is a pipe or a device",
             "A document may name only files and folders.");
    }

    /// Returns true if a part of a name such as NETCDF:"a.nc":v or /vsizip/a.zip/b.tif is a local file or
    /// folder. Throws Error if a part is a pipe or a device.
    bool has_file(const std::string& name) const {
        const auto parts = parts_of_name(name);
        if (!parts) fail("is damaged: a file name in it has too many parts", "Make it again.");
        for (const NamedPart& part : *parts)
            if (part.kind == PathKind::pipe) refuse_pipe(part.path);
        return std::any_of(parts->begin(), parts->end(),
                           [](const NamedPart& part) { return part.kind == PathKind::file || part.last; });
    }

    /// Checks a file and, if it is a text that names further files (a VRT, an index of MRF, a description of
    /// a server), also those files.
    void follow(const std::string& name) {
        const std::string shown = "vrt://"; // vrt://FILE?OPTIONS
        const std::string path =
            name.rfind(shown, 0) == 0 ? name.substr(shown.size(), name.find('?') - shown.size()) : name;
        // The file is in an archive or another virtual file system of GDAL.
        const bool hidden = path.rfind("/vsi", 0) == 0;
        if (path.empty() || (hidden ? names_server(path) : kind_of_path(path) != PathKind::file)) return;
        check_texts_beside(path);
        const std::string begin = beginning_of_file(path, 1024);
        if (is_scene_document(path)) { // the first document is already being checked by check()
            if (m_way.size() > 1) follow_document(path);
            return;
        }
        if (contains_any(begin, {"<GDAL_WM", "<WMT_MS", "<WMS_", "<WMTS", "<WCS_GDAL", "<GDAL_OGCAPI",
                                 "<TileMap", "<Capabilities"}))
            return check_server(path);
        const size_t first = begin.find_first_not_of(" \t\r\n");
        const bool json = first != std::string::npos && begin[first] == '{';
        if (!json && !contains_any(begin, {"<VRTDataset", "<MRF_META", "<GDALTileIndexDataset"})) return;
        if (!enter(path)) return;
        const std::string text = read_file(path, longest_text, FileHolds::bytes);
        if (json && names_server(text)) check_server(path);
        if (!json) check_described(text, path);
        if (!json) follow_xml(text, folder_of(path));
        m_way.pop_back();
    }

    /// Checks the definitions of coordinate reference systems in texts next to a dataset. They are checked
    /// before GDAL reads them, because PROJ then opens the files that a definition names.
    void check_texts_beside(const std::string& path) {
        for (const std::string& side : texts_of_dataset(path)) {
            if (side == path || !is_regular_file(side) || !m_seen.insert(side).second) continue;
            const std::string text = read_file(side, longest_text, FileHolds::bytes);
            if (side.ends_with(".aux.xml"))
                check_described(text, path);
            else
                check_srs(text);
        }
    }

    /// Begins to check a text. \return false if it was checked before.
    bool enter(const std::string& path) {
        if (!m_seen.insert(path).second) return false;
        if (m_way.size() >= static_cast<size_t>(most_texts))
            fail("is computed from more than " + std::to_string(most_texts) + " scenes in a row",
                 "Make the scene again.");
        m_way.push_back(path);
        return true;
    }

    void follow_document(const std::string& path) {
        for (const std::string& before : m_way)
            if (same_file(before, path)) fail("is computed from itself", "Make the scene again.");
        if (!enter(path)) return;
        const std::string place = follow_links(path);
        check(parse_scene_document(read_file(path, largest_file::model), folder_of(place), path));
        m_way.pop_back();
    }

    void follow_xml(const std::string& text, const std::string& folder) {
        const CPLXMLTreeCloser root(CPLParseXMLString(text.c_str()));
        if (root) follow_nodes(root.get(), folder, 0);
    }

    void follow_nodes(const CPLXMLNode* node, const std::string& folder, int depth) {
        if (depth > deepest_element) fail("contains a text with too many levels", "Make it again.");
        for (; node != nullptr; node = node->psNext) {
            if (node->eType == CXT_Element && tells_no_files(node->pszValue)) continue;
            if (node->eType == CXT_Text) follow_text(node->pszValue, folder);
            follow_nodes(node->psChild, folder, depth + 1);
        }
    }

    static bool tells_no_files(const char* element) {
        static const std::array names{
            "Metadata",   "SRS",     "GeoTransform", "Description", "CategoryNames",           "UnitType",
            "ColorTable", "GCPList", "Histograms",   "ColorInterp", "GDALRasterAttributeTable"};
        return std::any_of(names.begin(), names.end(), [&](const char* one) { return EQUAL(one, element); });
    }

    void follow_text(const std::string& text, const std::string& folder) {
        const size_t first = text.find_first_not_of(" \t\r\n");
        if (first == std::string::npos) return;
        // The text is a whole VRT instead of a name.
        if (text[first] == '<') return follow_xml(text.substr(first), folder);
        const bool there =
            text.size() <= PATH_MAX && is_local(text) && kind_of_path(text) != PathKind::nothing;
        if (!there && names_server(text)) return check_server(text);
        if (text.size() > PATH_MAX) return;
        for (const std::string& name : {text, join_path(folder, text)}) {
            if (is_local(name) && kind_of_path(name) == PathKind::pipe) refuse_pipe(name);
            if (name.rfind("/vsi", 0) == 0 || name.find(':') != std::string::npos) has_file(name);
            follow(name);
        }
    }

    /// Makes the checks of check(GDALDataset&) for a text that describes a dataset: a VRT, or the .aux.xml of
    /// `path`.
    void check_described(const std::string& text, const std::string& path) {
        const CPLXMLTreeCloser root(CPLParseXMLString(text.c_str()));
        check_described(root.get(), path, "", 0);
    }

    void check_described(const CPLXMLNode* node, const std::string& path, const char* domain, int depth) {
        for (; node != nullptr; node = node->psNext) {
            if (depth > deepest_element) fail("contains a text with too many levels", "Make it again.");
            const auto is = [&](const char* name) { return EQUAL(node->pszValue, name); };
            if (node->eType == CXT_Text) check_srs(node->pszValue);
            if (is("SRS")) check_srs_name(CPLGetXMLValue(node, "", ""));
            if (is("GCPList")) check_srs_name(CPLGetXMLValue(node, "Projection", ""));
            if (is("MDI"))
                check_item(CPLGetXMLValue(node, "key", ""), domain, CPLGetXMLValue(node, "", ""), path);
            const char* const inner = is("Metadata") ? CPLGetXMLValue(node, "domain", "") : domain;
            check_described(node->psChild, path, inner, depth + 1);
        }
    }

    void check_item(const std::string& key, const char* domain, const std::string& value,
                    const std::string& path) {
        if (EQUAL(key.c_str(), "OVERVIEW_FILE")) {
            if (path.empty())
                fail("names overviews in another file, which a computed scene cannot have",
                     "Make it again with the tool that made it.");
            follow_overview(value, path);
        }
        if (EQUAL(domain, "GEOLOCATION") &&
            (EQUAL(key.c_str(), "X_DATASET") || EQUAL(key.c_str(), "Y_DATASET")))
            for (const std::string& name : {value, is_local(value) ? join_path(folder_of(path), value) : ""})
                check_name(name);
    }

    void follow_overview(const std::string& value, const std::string& path) {
        const std::string base = ":::BASE:::"; // means the folder of the dataset
        const std::string name = STARTS_WITH_CI(value.c_str(), base.c_str())
                                     ? join_path(folder_of(path), value.substr(base.size()))
                                     : value;
        check_name(name);
        follow(name);
        if (const std::string pipe = pipe_beside(name); !pipe.empty()) refuse_pipe(pipe);
    }

    /// Checks a text that GDAL interprets as a coordinate reference system: a definition, or the address of a
    /// definition.
    void check_srs_name(const std::string& srs) const {
        // GDAL makes no request for addresses that begin like this
        const std::string opengis = "http://www.opengis.net/";
        if (srs.size() <= PATH_MAX && is_local(srs) && kind_of_path(srs) == PathKind::pipe) refuse_pipe(srs);
        if (!srs.starts_with(opengis) && begins_with_any(lower(srs), {"http", "ftp", "/vsi"}) &&
            names_server(srs))
            check_server(srs);
    }

    /// Checks a definition of a coordinate reference system, because PROJ opens the files that it names. A
    /// PROJ string names files by +init, +nadgrids, +geoidgrids and similar parameters, WKT by PARAMETERFILE
    /// and the extension PROJ4_GRIDS, and PROJJSON by "value". Names without a folder mean files of PROJ and
    /// are allowed.
    void check_srs(const std::string& srs) const {
        const std::string text = lower(srs);
        const bool steps = text.find("proj=") != std::string::npos;
        for (const char* const key : {"init=", "grids=", "file=", "model=", "catalog="}) {
            if (!steps && !EQUAL(key, "init=") && !EQUAL(key, "grids=")) continue;
            for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
                const size_t begin = at + std::strlen(key);
                check_srs_file(srs.substr(begin, srs.find_first_of(" \t\r\n\"", begin) - begin));
            }
        }
        const auto check_quoted = [&](const char* key, int skipped) {
            for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
                size_t begin = at + std::strlen(key), end = begin;
                for (int k = 0; k <= skipped && end != std::string::npos; ++k) {
                    begin = text.find('"', k == 0 ? begin : end + 1);
                    end = begin == std::string::npos ? begin : text.find('"', begin + 1);
                }
                if (end != std::string::npos) check_srs_file(srs.substr(begin + 1, end - begin - 1));
            }
        };
        check_quoted("parameterfile", 1); // the second text in quotes, after the name of the parameter
        check_quoted("\"proj4_grids\"", 0);
        if (text.find_first_not_of(" \t\r\n") == text.find('{')) check_quoted("\"value\"", 0);
    }

    void check_srs_file(const std::string& file) const {
        if (file.find_first_of("/\\~") != std::string::npos)
            fail("has a coordinate reference system that names the file '" + file + "'",
                 "Make it again with the tool that made it.");
    }

    static constexpr int deepest_element = 256;
    const std::string m_document;
    const bool m_servers;
    /// Texts from the first document to the current one, each of which names the next.
    std::vector<std::string> m_way;
    std::set<std::string> m_seen;
};

bool may_describe(const char* element) {
    static const std::array names{"VRTDataset",
                                  "SRS",
                                  "GeoTransform",
                                  "GCPList",
                                  "GCP",
                                  "VRTRasterBand",
                                  "Description",
                                  "UnitType",
                                  "Offset",
                                  "Scale",
                                  "CategoryNames",
                                  "Category",
                                  "ColorInterp",
                                  "ColorTable",
                                  "Entry",
                                  "NoDataValue",
                                  "FieldDefn",
                                  "HideNoDataValue",
                                  "Name",
                                  "Type",
                                  "Usage",
                                  "Row",
                                  "F",
                                  "BlockXSize",
                                  "BlockYSize",
                                  "Metadata",
                                  "GDALRasterAttributeTable"};
    return std::any_of(names.begin(), names.end(),
                       [&](const char* one) { return std::strcmp(one, element) == 0; });
}

std::string fault_of_nodes(const CPLXMLNode* node, int depth) {
    constexpr int levels = 6;
    for (; node != nullptr; node = node->psNext) {
        if (node->eType == CXT_Attribute && EQUAL(node->pszValue, "subClass"))
            return "it has bands or a raster of another type";
        if (node->eType != CXT_Element) continue;
        if (depth > levels) return "it has too many levels";
        if (!may_describe(node->pszValue))
            return "it has '" + std::string(node->pszValue) +
                   "', which is not part of a raster's description";
        // Metadata may contain any items, also XML of other programs.
        if (std::strcmp(node->pszValue, "Metadata") == 0) continue;
        if (std::string fault = fault_of_nodes(node->psChild, depth + 1); !fault.empty()) return fault;
    }
    return {};
}

} // namespace

void check_named_file(const std::string& document, const std::string& name) {
    const GdalErrors quiet;
    NameCheck(document).check_name(name);
}

void check_dataset_names(GDALDataset& dataset, const std::string& document) {
    const GdalErrors quiet;
    NameCheck(document).check(dataset);
}

void check_document_names(const SceneDocument& document, const std::string& name) {
    const GdalErrors quiet;
    NameCheck check(name);
    check.begin_at(name);
    check.check(document);
}

std::string fault_of_description(const std::string& text) {
    const GdalErrors quiet;
    if (text.rfind("<VRTDataset", 0) != 0) return "it is not the text of a VRT";
    const CPLXMLTreeCloser root(CPLParseXMLString(text.c_str()));
    if (!root) return "it is not valid XML";
    if (root->psNext != nullptr || std::strcmp(root->pszValue, "VRTDataset") != 0)
        return "it is not the text of one VRT";
    return fault_of_nodes(root.get(), 0);
}

} // namespace hsi::raster
