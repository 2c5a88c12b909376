// SPDX-License-Identifier: MIT
#include "raster/side_files.h"

#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"
#include "raster/drivers.h"
#include "raster/gdal_errors.h"
#include "raster/hdf5/hdf5_references.h"
#include "raster/io/server_answers.h"
#include "raster/matlab/matlab_file.h"
#include "raster/metadata/envi_file.h"
#include "raster/metadata/envi_header.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/products/hdf_trial.h"
#include "raster/products/pipes_beside.h"
#include "raster/products/product.h"
#include "raster/regular_file.h"
#include "raster/scene_document.h"
#include "raster/spectral_library.h"

#include <cpl_conv.h>
#include <cpl_minixml.h>
#include <cpl_string.h>
#include <gdal_priv.h>
#include <ogrsf_frmts.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>

namespace hsi::raster {
namespace {

constexpr int deepest = 8; // maximum depth of VRTs whose sources are VRTs

struct Closer {
    void operator()(GDALDataset* dataset) const { GDALClose(GDALDataset::ToHandle(dataset)); }
};
using Dataset = std::unique_ptr<GDALDataset, Closer>;

Dataset open(const std::string& path, unsigned kinds = GDAL_OF_RASTER | GDAL_OF_VECTOR) {
    try {
        refuse_pipe_beside(path);
        try_hdf(path);
    } catch (const Error&) { // the error is reported when the file is opened for reading
        return {};
    }
    std::optional<AnswerWatch> watch; // limits the bytes that a server may send
    if (!VSIIsLocal(path.c_str())) watch.emplace(path);
    const auto as = [&](unsigned asked) {
        if (watch && watch->cut()) return Dataset();
        return Dataset(GDALDataset::FromHandle(
            GDALOpenEx(path.c_str(), asked | GDAL_OF_READONLY, nullptr, nullptr, nullptr)));
    };
    // Raster drivers are tried first, because vector drivers may search for files next to the file, and each
    // search is a request to the server.
    if (!VSIIsLocal(path.c_str()) && (kinds & GDAL_OF_RASTER) != 0)
        if (Dataset raster = as(GDAL_OF_RASTER)) return raster;
    return as(kinds);
}

/// Returns true for a text file (a model, a table or statistics) next to an ENVI header that belongs to an
/// image with the same name but another extension.
bool is_text_beside_header(const std::string& path) {
    if (!is_local(path) || envi_header_beside(path).empty()) return false;
    const std::string begin = beginning_of_file(path, 1024);
    const bool text = !begin.empty() && std::all_of(begin.begin(), begin.end(), [](unsigned char c) {
        return c >= ' ' || c == '\t' || c == '\r' || c == '\n';
    });
    if (!text || all_samples(path)) return false;
    try {
        const EnviHeader header = read_envi_header(envi_header_beside(path));
        const std::string* const type = header.find("file type");
        return type == nullptr || lower(*type).find("spectral library") == std::string::npos;
    } catch (const Error&) { // the fault of the header is reported when the file is opened
        return false;
    }
}

class Collector {
  public:
    std::vector<std::string> files;
    bool checks = false; ///< true: throw Error for a source that lacks values

    void add_file(const std::string& path) {
        if (std::find(files.begin(), files.end(), path) != files.end()) return;
        files.push_back(path);
        if (leads_to_hdf5(path))
            for (const std::string& behind : hdf5_files_behind(path))
                add_file(behind);
    }

    void add(const std::string& path, int depth) {
        if (depth > deepest) return;
        if (depth > 0 && std::find(m_opened.begin(), m_opened.end(), path) != m_opened.end()) return;
        m_opened.push_back(path);
        if (is_pipe_or_device(path)) return files.push_back(path); // a pipe or device names no further files
        if (may_lead_to_matlab(path))
            if (const auto matlab = matlab_name(path)) return add_file(matlab->path);
        add_containers(path, depth);
        if (is_there(path)) add_file(path);
        if (is_scene_document(path)) return add_scene(path, depth);
        Dataset dataset = open(path);
        const bool text = is_text_beside_header(path);
        if (text && dataset && EQUAL(dataset->GetDriverName(), "ENVI")) dataset.reset();
        if (!dataset) {
            // A spectral library may not be a raster for GDAL, but has a header.
            std::vector<std::string> beside = files_of_library(path);
            for (const std::string& name : {path + ".", path})
                for (const char* const extension : {"hdr", "HDR"})
                    beside.emplace_back(CPLResetExtension(name.c_str(), extension));
            for (const std::string& file : beside)
                if (is_there(file) && !(text && EQUAL(CPLGetExtension(file.c_str()), "hdr"))) add_file(file);
            return;
        }
        const std::string driver = dataset->GetDriver() ? dataset->GetDriver()->GetDescription() : "";
        if (checks && reads_hdf5(driver)) check_values_are_there(*dataset);
        // Some drivers do not list all files that they read, such as the .csvt of a .csv.
        if (is_local(path))
            for (const std::string& name : side_file_names(driver, path, {}))
                if (is_there(name)) add_file(name);
        const CPLStringList list(dataset->GetFileList());
        for (int i = 0; i < list.size(); ++i) {
            if (is_there(list[i])) add_file(list[i]);
            if (EQUAL(driver.c_str(), "OGR_VRT")) add(list[i], depth + 1);
        }
        // The product from which a scene was made is also read, because its arrays give positions to pixels.
        for (const char* item : {"X_DATASET", "Y_DATASET"})
            if (const char* name = dataset->GetMetadataItem(item, "GEOLOCATION")) add_containers(name, depth);
        if (EQUAL(driver.c_str(), "GTI")) add_tiles(*dataset, path, depth);
        if (EQUAL(driver.c_str(), "Zarr") && is_regular_file(path)) add_json_texts(path);
        if (!EQUAL(driver.c_str(), "VRT")) return;
        CSLConstList const xml = dataset->GetMetadata("xml:VRT");
        const CPLXMLTreeCloser root(xml && xml[0] ? CPLParseXMLString(xml[0]) : nullptr);
        if (root) add_texts(root.get(), folder_of(path), depth);
    }

  private:
    /// Adds the sources of a virtual scene.
    void add_scene(const std::string& path, int depth) {
        try {
            // Not depth + 1, because virtual scenes may have any depth; m_opened ends a cycle.
            for (const std::string& file : files_of_document(read_scene_document(path)))
                add(file, std::max(depth, 1));
        } catch (const Error&) { // the error is reported when the file is opened for reading
        }
    }

    /// Adds each file that is a part of a name: NETCDF:"a.nc":v, HDF5:a.h5://v, vrt://a.tif?bands=1, and
    /// names of GDAL's virtual file systems.
    void add_containers(const std::string& path, int depth) {
        if (path.rfind("/vsi", 0) == 0) {
            if (path.rfind("/vsimem/", 0) != 0) add_hidden_files(path, depth);
            return;
        }
        if (path.find(':') == std::string::npos || is_there(path)) return;
        if (const std::string begin = "vrt://"; STARTS_WITH_CI(path.c_str(), begin.c_str()))
            return add(path.substr(begin.size(), path.find('?') - begin.size()), depth + 1);
        const CPLStringList parts(CSLTokenizeString2(path.c_str(), ":", CSLT_HONOURSTRINGS));
        for (int i = 0; i < parts.size(); ++i) {
            std::string joined; // several parts together, because a file name may contain colons
            for (int j = i; j < parts.size() && joined.size() <= PATH_MAX; ++j) {
                joined += (j > i ? ":" : "") + std::string(parts[j]);
                if (joined.rfind("/vsi", 0) == 0)
                    add_containers(joined, depth);
                else if (is_there(joined))
                    add_file(joined);
            }
        }
    }

    /// Adds the tiles of a tile index, which is a vector file whose features name the tiles.
    void add_tiles(GDALDataset& tiled, const std::string& path, int depth) {
        const CPLStringList list(tiled.GetFileList());
        const char* const told = tiled.GetMetadataItem("LOCATION_FIELD");
        std::vector<std::string> candidates(list.List(), list.List() + list.size());
        candidates.push_back(path.substr(path.rfind("GTI:", 0) == 0 ? 4 : 0));
        for (const std::string& name : candidates) {
            const Dataset index = open(name, GDAL_OF_VECTOR);
            if (!index) continue;
            for (int i = 0; i < index->GetLayerCount(); ++i) {
                OGRLayer* const layer = index->GetLayer(i);
                const int field = layer->GetLayerDefn()->GetFieldIndex(told ? told : "location");
                if (field < 0) continue;
                for (const auto& feature : *layer) {
                    const std::string tile = feature->GetFieldAsString(field);
                    add(tile, depth + 1);
                    if (!is_there(tile)) add(join_path(folder_of(name), tile), depth + 1);
                }
            }
        }
    }

    /// Adds files that a JSON text names: the parts of a virtual Zarr dataset (Kerchunk).
    void add_json_texts(const std::string& path) {
        GByte* data = nullptr;
        vsi_l_offset size = 0;
        constexpr int64_t longest = int64_t{256} << 20;
        if (!VSIIngestFile(nullptr, path.c_str(), &data, &size, longest)) return;
        const std::string text(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
        VSIFree(data);
        std::set<std::string> names;
        for (size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 1)) {
            std::string name;
            for (++at; at < text.size() && text[at] != '"'; ++at)
                name += text[at] == '\\' && at + 1 < text.size() ? text[++at] : text[at];
            if (name.rfind("file://", 0) == 0) name.erase(0, 7);
            if (name.empty() || name.size() > PATH_MAX || !names.insert(name).second) continue;
            for (const std::string& file : {name, join_path(folder_of(path), name)})
                if (is_regular_file(file)) add_file(file);
        }
    }

    /// Adds the files in /vsizip/a.zip/b.tif, /vsizip/{a.zip}/b.tif, /vsigzip/a.gz,
    /// /vsisubfile/1000_500,a.dat, /vsicrypt/key=...,file=a.bin, /vsicached?file=a.tif&chunk_size=...,
    /// /vsicurl/file:///a.tif. The name of a file begins after one of the characters / ? , { = and ends at }
    /// or & or the end of the path. A path in an archive may follow the name.
    void add_hidden_files(const std::string& path, int depth) {
        if (path.rfind("/vsistdin", 0) == 0) return add_file("/dev/stdin");
        for (size_t from = path.find_first_of("/?", 1);
             from != std::string::npos && m_hidden.size() <= most_hidden;
             from = path.find_first_of(",{=", from + 1)) {
            const std::string begun = path.substr(from + 1);
            for (const size_t end : {begun.size(), begun.find('}'), begun.find('&')}) {
                if (end == std::string::npos) continue;
                std::string name = begun.substr(0, end);
                if (name.rfind("file://", 0) == 0) name.erase(0, 7);
                if (name.find('%') != std::string::npos) add_hidden_file(unescaped(name), depth);
                add_hidden_file(std::move(name), depth);
            }
        }
    }

    void add_hidden_file(std::string name, int depth) {
        // As in /vsizip/vsicurl/..., where one slash is missing.
        if (name.rfind("vsi", 0) == 0) name.insert(0, "/");
        if (!m_hidden.insert(name).second) return;
        if (name.rfind("/vsi", 0) == 0) return add_containers(name, depth);
        for (; !name.empty() && name != "." && name != "/"; name = folder_of(name)) {
            std::error_code ec;
            if (std::filesystem::is_regular_file(name, ec)) {
                add_file(name);
                // The XML file of /vsisparse/ names other files.
                const CPLXMLTreeCloser root(
                    EQUAL(CPLGetExtension(name.c_str()), "xml") ? CPLParseXMLFile(name.c_str()) : nullptr);
                if (root) add_texts(root.get(), folder_of(name), depth);
                if (EQUAL(CPLGetExtension(name.c_str()), "json")) add_json_texts(name);
                return;
            }
        }
    }

    static std::string unescaped(const std::string& text) {
        char* const plain = CPLUnescapeString(text.c_str(), nullptr, CPLES_URL);
        std::string out = plain;
        CPLFree(plain);
        return out;
    }

    /// Adds any text of a VRT that names a file: sources, and arguments of pixel functions.
    void add_texts(const CPLXMLNode* node, const std::string& folder, int depth) {
        for (; node != nullptr; node = node->psNext) {
            if (node->eType == CXT_Text && node->pszValue[0] != '\0') add_text(node->pszValue, folder, depth);
            add_texts(node->psChild, folder, depth);
        }
    }

    void add_text(const char* value, const std::string& folder, int depth) {
        // A source may be the text of a VRT instead of a name.
        if (const char* const begin = value + std::strspn(value, " \t\r\n"); *begin == '<') {
            const CPLXMLTreeCloser inner(depth < deepest ? CPLParseXMLString(begin) : nullptr);
            if (inner) add_texts(inner.get(), folder, depth + 1);
            return;
        }
        const size_t length = CPLStrnlen(value, PATH_MAX + 1);
        if (length > PATH_MAX) return;
        const std::string text(value, length);
        // The files of a pixel function are in the folder of GDAL_HSI_PATH.
        const std::string own = CPLGetConfigOption("GDAL_HSI_PATH", "");
        for (const std::string& name : {text, join_path(folder, text), join_path(own, text)})
            if (is_regular_file(name) || text.find(':') != std::string::npos || text.rfind("/vsi", 0) == 0)
                add(name, depth + 1); // each existing file is added, because any of them may be meant
    }

    // Maximum number of parts of names; only a malicious VRT has more.
    static constexpr size_t most_hidden = 200;
    std::vector<std::string> m_opened;
    std::set<std::string> m_hidden; ///< parts of names that were already checked
};

/// Returns, by driver, the extensions of side files whose names differ from the main file only in the
/// extension.
const std::multimap<std::string, const char*>& extensions_beside() {
    static const std::multimap<std::string, const char*> list{{"EHdr", "hdr"},
                                                              {"EHdr", "prj"},
                                                              {"EHdr", "stx"},
                                                              {"EHdr", "clr"},
                                                              {"HFA", "ige"},
                                                              {"HFA", "rrd"},
                                                              {"RST", "rdc"},
                                                              {"RST", "smp"},
                                                              {"RST", "ref"},
                                                              {"SAGA", "sgrd"},
                                                              {"SAGA", "prj"},
                                                              {"SAGA", "mgrd"},
                                                              {"AAIGrid", "prj"},
                                                              {"BT", "prj"},
                                                              {"PAux", "aux"},
                                                              {"PDS4", "img"},
                                                              {"ISIS3", "cub"},
                                                              {"PNG", "wld"},
                                                              {"JPEG", "wld"},
                                                              {"WEBP", "wld"},
                                                              {"GIF", "wld"},
                                                              {"BMP", "wld"},
                                                              {"KMLSUPEROVERLAY", "png"},
                                                              {"ESRI Shapefile", "shx"},
                                                              {"ESRI Shapefile", "dbf"},
                                                              {"ESRI Shapefile", "prj"},
                                                              {"ESRI Shapefile", "cpg"},
                                                              {"ESRI Shapefile", "qix"},
                                                              {"ESRI Shapefile", "sbn"},
                                                              {"ESRI Shapefile", "sbx"},
                                                              {"ESRI Shapefile", "qpj"},
                                                              {"MapInfo File", "dat"},
                                                              {"MapInfo File", "map"},
                                                              {"MapInfo File", "id"},
                                                              {"MapInfo File", "mid"},
                                                              {"GML", "xsd"},
                                                              {"CSV", "csvt"},
                                                              {"CSV", "prj"}};
    return list;
}

/// Returns the log files that SQLite writes next to a database while it is open. If the program is killed,
/// they remain, and SQLite would apply them to the next database with the same name.
std::vector<std::string> database_logs(const std::string& driver, const std::string& path) {
    for (const char* name : {"GPKG", "SQLite", "MBTiles", "Rasterlite"})
        if (EQUAL(driver.c_str(), name)) return {path + "-wal", path + "-journal", path + "-shm"};
    return {};
}

std::string with_extension(const std::string& path, const char* extension) {
    return CPLResetExtension(path.c_str(), extension);
}

bool lists(const Dataset& dataset, const std::string& file) {
    const CPLStringList files(dataset->GetFileList());
    for (int i = 0; i < files.size(); ++i)
        if (same_file(files[i], file)) return true;
    return false;
}

/// Returns true if the file is as large as the pixels of the dataset require. The ENVI driver accepts any
/// file with a header next to it, even notes.txt.
bool holds_its_pixels(const Dataset& dataset, const std::filesystem::path& file) {
    if (dataset->GetRasterCount() == 0) return false;
    const double pixels = double{1} * dataset->GetRasterXSize() * dataset->GetRasterYSize();
    double bytes = 0;
    for (int b = 1; b <= dataset->GetRasterCount(); ++b)
        bytes += pixels * GDALGetDataTypeSizeBytes(dataset->GetRasterBand(b)->GetRasterDataType());
    std::error_code ec;
    const auto size = std::filesystem::file_size(file, ec);
    return !ec && static_cast<double>(size) >= bytes;
}

/// Returns files from which GDAL takes the georeference and description of the raster `path`, in any format.
std::vector<std::string> placing_files(const std::string& path) {
    std::vector<std::string> names;
    const std::string extension = CPLGetExtension(path.c_str());
    std::vector<std::string> extensions{"wld", "tab", "imd", "rpb", "pvl"};
    if (extension.size() > 1)
        extensions.insert(extensions.end(),
                          {extension + "w", std::string{extension.front(), extension.back(), 'w'}});
    for (const std::string& each : extensions)
        for (const std::string& spelling : {lower(each), upper(each)})
            names.push_back(with_extension(path, spelling.c_str()));
    const std::string stem = path.substr(0, path.size() - (extension.empty() ? 0 : extension.size() + 1));
    for (const char* const end : {"_rpc.txt", "_RPC.TXT"})
        names.push_back(stem + end);
    return names;
}

} // namespace

std::vector<std::string> files_read_with(const std::string& path) {
    register_drivers();
    const GdalErrors quiet;
    if (!pipe_beside(path).empty()) return {path}; // the pipe is reported when the file is opened
    Collector collector;
    collector.add_file(path);
    collector.add(path, 0);
    const bool header = EQUAL(CPLGetExtension(path.c_str()), "hdr") && is_envi_header(path);
    for (const std::string& file : product_files(path)) {
        collector.add_file(file);
        if (header) collector.add(file, 1); // also adds files next to the data of the header
    }
    return collector.files;
}

void check_virtual_sources(const std::string& path) {
    const GdalErrors quiet;
    Collector collector;
    collector.checks = true;
    collector.add(path, 0);
}

std::vector<std::string> side_file_names(const std::string& driver, const std::string& path,
                                         const std::vector<std::string>& options) {
    CPLStringList list;
    for (const auto& option : options)
        list.AddString(option.c_str());
    std::vector<std::string> names;
    for (const char* suffix : {".aux.xml", ".ovr", ".msk"})
        names.push_back(path + suffix);
    if (EQUAL(driver.c_str(), "ENVI"))
        names.push_back(EQUAL(list.FetchNameValueDef("SUFFIX", "REPLACE"), "ADD")
                            ? path + ".hdr"
                            : with_extension(path, "hdr"));
    for (const auto& name : database_logs(driver, path))
        names.push_back(name);
    if (EQUAL(driver.c_str(), "ROI_PAC")) names.push_back(path + ".rsc");
    if (EQUAL(driver.c_str(), "ISCE")) names.push_back(path + ".xml");
    if (EQUAL(driver.c_str(), "ERS"))
        names.push_back(
            path.substr(0, path.size() - (CPLGetExtension(path.c_str())[0]
                                              ? std::string(CPLGetExtension(path.c_str())).size() + 1
                                              : 0)));
    if (CPLTestBool(list.FetchNameValueDef("TFW", "NO"))) names.push_back(with_extension(path, "tfw"));
    if (CPLTestBool(list.FetchNameValueDef("WORLDFILE", "NO"))) names.push_back(with_extension(path, "wld"));
    for (const auto& [name, extension] : extensions_beside())
        if (EQUAL(name.c_str(), driver.c_str())) names.push_back(with_extension(path, extension));
    names.erase(std::remove(names.begin(), names.end(), path), names.end());
    return names;
}

std::string other_owner(const std::string& side, const std::string& path) {
    const GdalErrors quiet;
    const std::string stem = CPLGetBasename(side.c_str()), folder = folder_of(side);
    std::error_code ec;
    for (std::filesystem::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec)) {
        const std::string name = at->path().filename().string();
        const std::string file = join_path(folder, name);
        // x.hdr may belong to x, x.img, x.dat ...; x.img.hdr belongs only to x.img.
        if (CPLGetBasename(name.c_str()) != stem && name != stem) continue;
        if (same_file(file, side) || same_file(file, path) || EQUAL(CPLGetExtension(name.c_str()), "hdr"))
            continue;
        const Dataset dataset = open(file);
        if (dataset && lists(dataset, side) &&
            (dataset->GetRasterCount() == 0 || holds_its_pixels(dataset, at->path())))
            return file;
    }
    return {};
}

void check_side_is_free(const std::string& side, const std::string& path) {
    if (side.rfind(path + ".", 0) == 0 || !is_local(side) || !is_there(side)) return;
    const GdalErrors quiet;
    const bool header = EQUAL(CPLGetExtension(side.c_str()), "hdr");
    if (!header && is_there(path))
        if (const Dataset old = open(path); old && lists(old, side)) return;
    const std::string advice = "Choose a different name before the extension.";
    if (const std::string owner = other_owner(side, path); !owner.empty())
        throw Error("'" + side + "' is " + (header ? "the header" : "a file") + " of '" + owner + "', but '" +
                        path + "' would also use it",
                    advice);
    const Dataset own = header ? Dataset() : open(side);
    if (!own || (own->GetRasterCount() > 0 && !holds_its_pixels(own, side))) return;
    throw Error("'" + side + "' is a separate dataset (" + own->GetDriver()->GetDescription() + "), but '" +
                    path + "' would write a file with this name",
                advice);
}

std::vector<std::string> files_that_may_come(const std::string& path) {
    if (!is_local(path)) return {};
    std::vector<std::string> names = placing_files(path);
    for (const char* const suffix : {".aux.xml", ".msk", ".aux"})
        names.push_back(path + suffix);
    for (const char* const extension : {"aux", "prj", "PRJ", "cpg", "CPG", "csvt"})
        names.push_back(with_extension(path, extension));
    // GDAL prefers the header x.img.hdr to x.hdr. If `path` is a header, its data may have one of several
    // names.
    if (!envi_header_beside(path).empty())
        for (const std::string& header :
             {path + ".hdr", path + ".HDR", with_extension(path, "hdr"), with_extension(path, "HDR")})
            if (!is_there(header)) names.push_back(header);
    if (EQUAL(CPLGetExtension(path.c_str()), "hdr"))
        for (const std::string& data : envi_data_names(path))
            if (!is_there(data)) names.push_back(data);
    std::erase(names, path);
    return names;
}

namespace {

/// Returns a number in a fixed format, because files write equal numbers in different ways; other texts are
/// unchanged.
std::string one_spelling(const char* text) {
    char* end = nullptr;
    const double number = CPLStrtod(text, &end);
    return end != text && *end == '\0' ? CPLSPrintf("%.14g", number) : text;
}

/// Returns an element of the file with its content, in a normalised form; empty for metadata, statistics and
/// comments.
std::string told_by(const CPLXMLNode& node) {
    const std::string name = node.pszValue;
    // Viewers write statistics and copies of entries of the format's own header, which do not change the
    // meaning of values.
    const bool counts = name != "Histograms" && name != "Metadata" && name != "Description";
    if (node.eType == CXT_Comment || (node.eType == CXT_Element && !counts)) return {};
    if (node.eType == CXT_Text) return one_spelling(node.pszValue);
    std::vector<std::string> inside;
    bool told = false;
    for (const CPLXMLNode* at = node.psChild; at != nullptr; at = at->psNext) {
        std::string text = told_by(*at);
        told = told || (at->eType != CXT_Attribute && !text.empty());
        if (!text.empty()) inside.push_back(std::move(text));
    }
    if (node.eType == CXT_Attribute) return name + "=" + joined(inside, "");
    const bool list = name == "PAMDataset" || name == "PAMRasterBand";
    if (list && !told) return {};
    if (list) std::sort(inside.begin(), inside.end());
    return "<" + name + " " + joined(inside, "\n") + ">";
}

} // namespace

std::string told_by_side_file(const std::string& path) {
    if (!is_there(path)) return {};
    const GdalErrors quiet;
    const CPLXMLTreeCloser tree(CPLParseXMLFile(path.c_str()));
    const CPLXMLNode* const root = tree ? CPLGetXMLNode(tree.get(), "=PAMDataset") : nullptr;
    return root ? told_by(*root) : "?";
}

std::vector<std::string> foreign_side_files(const std::string& path, const std::vector<std::string>& own) {
    if (!is_local(path)) return {};
    std::vector<std::string> names = placing_files(path);
    std::erase_if(names, [&](const std::string& name) {
        return !is_there(name) || std::any_of(own.begin(), own.end(),
                                              [&](const std::string& mine) { return same_file(mine, name); });
    });
    if (names.empty()) return names;
    const GdalErrors quiet;
    const Dataset dataset = open(path, GDAL_OF_RASTER);
    std::erase_if(names, [&](const std::string& name) { return !dataset || !lists(dataset, name); });
    return names;
}

std::vector<std::string> old_side_files(const std::string& path) {
    std::vector<std::string> out;
    if (!is_there(path)) { // SQLite would apply the logs of a missing database to the new database
        for (const char* extension : {"gpkg", "sqlite", "db", "mbtiles"})
            if (EQUAL(CPLGetExtension(path.c_str()), extension))
                for (const auto& name : database_logs("SQLite", path))
                    if (is_there(name)) out.push_back(name);
        // An old index of other points would hide the new points.
        if (EQUAL(CPLGetExtension(path.c_str()), "shp"))
            for (const auto& name : side_file_names("ESRI Shapefile", path, {}))
                if (is_there(name)) out.push_back(name);
        return out;
    }
    const GdalErrors quiet;
    for (const char* suffix : {".aux.xml", ".ovr", ".msk"})
        if (is_there(path + suffix)) out.push_back(path + suffix);
    const Dataset old = open(path);
    if (!old || !old->GetDriver()) return out;
    const std::string driver = old->GetDriver()->GetDescription();
    std::vector<std::string> names = side_file_names(driver, path, {});
    if (EQUAL(driver.c_str(), "ENVI")) names.push_back(path + ".hdr");
    for (const auto& name : database_logs(driver, path)) // GDAL's file list does not include the logs
        if (is_there(name)) out.push_back(name);
    for (const std::string& name : names) {
        if (std::find(out.begin(), out.end(), name) != out.end() || !is_there(name) || !lists(old, name))
            continue;
        if (EQUAL(CPLGetExtension(name.c_str()), "hdr") && !other_owner(name, path).empty()) continue;
        out.push_back(name);
    }
    return out;
}

} // namespace hsi::raster
