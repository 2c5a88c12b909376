// SPDX-License-Identifier: MIT
#include "raster/metadata/envi_file.h"

#include "core/error.h"
#include "core/file_path.h"
#include "raster/gdal_errors.h"
#include "raster/io/file_system.h"
#include "raster/io/raw_file.h"
#include "raster/io/whole_file.h"
#include "raster/metadata/envi_header.h"
#include "raster/metadata/envi_map_info.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/regular_file.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

namespace hsi::raster {
namespace {

// --- The virtual file system that presents headers in GDAL's form ------------

/// Returns true for fields whose values are lists that GDAL reads.
bool list_for_gdal(const std::string& key) {
    static const std::set<std::string> names = {
        "wavelength",        "fwhm",         "bbl",           "band names",
        "class names",       "class lookup", "default bands", "data gain values",
        "data offset values"};
    return names.count(key) > 0;
}

/// Returns the header's fields in the form that GDAL reads. The longest fields are last, because GDAL stops
/// reading after 10 MB.
EnviHeader in_gdals_manner(const EnviHeader& header) {
    std::vector<EnviField> fields;
    const EnviMapInfo map = envi_map_info(header);
    if (!map.coordinate_system.empty())
        fields.push_back({"coordinate system string", "{" + map.coordinate_system + "}"});
    for (const EnviField& f : header.fields()) {
        const std::string key = envi_key(f.key);
        if (key == "coordinate system string" && !map.coordinate_system.empty()) continue;
        if (key == "map info" || key == "projection info") {
            const auto& entries = key == "map info" ? map.entries : map.projection;
            if (!entries.empty()) fields.push_back({key, envi_list_text(entries)});
            continue;
        }
        std::vector<std::string> elements;
        if (list_for_gdal(key))
            for (const std::string& element : envi_list(f.value))
                elements.push_back(envi_name(element));
        fields.push_back({key, elements.empty() ? f.value : envi_list_text(elements)});
    }
    std::stable_sort(fields.begin(), fields.end(),
                     [](const EnviField& a, const EnviField& b) { return a.value.size() < b.value.size(); });
    EnviHeader out;
    for (const EnviField& f : fields)
        out.set(f.key, f.value);
    return out;
}

class ShownText final : public ReadFile {
  public:
    explicit ShownText(std::string text) : m_text(std::move(text)) {}
    uint64_t size() override { return m_text.size(); }
    size_t read(uint64_t at, void* to, size_t wanted) override {
        return at < m_text.size() ? m_text.copy(static_cast<char*>(to), wanted, static_cast<size_t>(at)) : 0;
    }

  private:
    const std::string m_text;
};

class ShownData final : public ReadFile {
  public:
    explicit ShownData(VSILFILE* file) : m_file(file) {}
    ~ShownData() override { VSIFCloseL(m_file); }
    uint64_t size() override { return VSIFSeekL(m_file, 0, SEEK_END) == 0 ? VSIFTellL(m_file) : 0; }
    size_t read(uint64_t at, void* to, size_t wanted) override {
        return VSIFSeekL(m_file, at, SEEK_SET) == 0 ? VSIFReadL(to, 1, wanted, m_file) : 0;
    }

  private:
    VSILFILE* const m_file;
};

std::unique_ptr<ReadFile> open_shown(const char* name) {
    const auto parts = shown_parts(name);
    if (!parts) return nullptr;
    if (!is_header_name(parts->data)) {
        VSILFILE* const file = VSIFOpenL(parts->data.c_str(), "rb");
        return file != nullptr ? std::make_unique<ShownData>(file) : nullptr;
    }
    try {
        return std::make_unique<ShownText>(in_gdals_manner(read_envi_header(parts->header)).text());
    } catch (const Error&) { // read_envi_header() has already reported the reason
        return nullptr;
    }
}

int stat_shown(void*, const char* name, VSIStatBufL* status, int flags) {
    const auto parts = shown_parts(name);
    if (!parts) return -1;
    return VSIStatExL((is_header_name(parts->data) ? parts->header : parts->data).c_str(), status, flags);
}

void install() {
    static std::once_flag once;
    std::call_once(once, [] { install_file_system(shown_envi, {open_shown, stat_shown}); });
}

// --- Comparison of the fields that GDAL and EnviHeader read ------------------

std::string without_blanks(const std::string& text) {
    std::string out;
    for (const char c : text)
        if (!std::strchr(" \t\r\n", c)) out += c;
    return out;
}

/// Returns the value of a field as GDAL's ENVI driver reads it. The driver removes blanks at the beginning
/// and end of list elements, and keeps blanks within elements.
std::string without_outer_blanks(const std::string& text) {
    std::string out;
    const auto parts = [](char c) { return c == ',' || c == '{' || c == '}'; };
    for (const char c : text) {
        if (c == '\r' || c == '\n') continue;
        if (c == ' ' && (out.empty() || parts(out.back()))) continue;
        while (parts(c) && !out.empty() && out.back() == ' ')
            out.pop_back();
        out += c;
    }
    while (!out.empty() && out.back() == ' ')
        out.pop_back();
    return out;
}

/// Returns the value of a field in a form for comparison. Blanks are removed, except within elements of "map
/// info" and "projection info".
std::string compared(const std::string& key, const std::string& value) {
    return key == "map_info" || key == "projection_info" ? without_outer_blanks(value)
                                                         : without_blanks(value);
}

std::string file_text(const std::string& path) {
    GByte* bytes = nullptr;
    vsi_l_offset size = 0;
    if (!VSIIngestFile(nullptr, path.c_str(), &bytes, &size, -1)) return {};
    std::string text(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
    VSIFree(bytes);
    return text;
}

/// Returns the fields that GDAL's ENVI driver reads from the text of a header. Keys are in lower case with
/// underscores, and values are in the form of compared(). Keys that begin with a blank are left out, because
/// only older versions of GDAL keep this blank.
std::map<std::string, std::string> gdals_fields(const std::string& text) {
    std::map<std::string, std::string> fields;
    std::string_view rest = text;
    const auto next = [&rest](std::string& line) {
        if (rest.empty()) return false;
        const size_t end = std::min(rest.find_first_of("\r\n"), rest.size());
        if (end > longest_gdal_line) return false;
        line = rest.substr(0, std::min(end, rest.find('\0')));
        const bool two = rest.substr(end, 2) == "\r\n" || rest.substr(end, 2) == "\n\r";
        rest.remove_prefix(std::min(rest.size(), end + (two ? 2 : 1)));
        return true;
    };
    std::string line, more;
    next(line); // the first line is the word ENVI
    while (next(line)) {
        if (line.find('=') == std::string::npos) continue;
        if (line.find('{') != std::string::npos && line.find('}') == std::string::npos)
            while (next(more)) {
                line += more;
                if (more.find('}') != std::string::npos) break;
            }
        const size_t equals = line.find('='),
                     end = line.find_last_not_of(" \t", equals == 0 ? 0 : equals - 1);
        if (equals == 0 || end == std::string::npos) continue;
        std::string key = line.substr(0, end + 1);
        for (char& c : key)
            c = c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        fields[key] = compared(key, line.substr(equals + 1));
    }
    return fields;
}

bool gdal_reads_alike(const std::string& path) {
    const auto theirs = gdals_fields(file_text(path));
    const EnviHeader header = read_envi_header(path), ours = in_gdals_manner(header);
    const bool position = theirs.count("map_info") > 0, ours_has = ours.find("map info") != nullptr;
    return header.unreadable().empty() && position == ours_has &&
           std::all_of(ours.fields().begin(), ours.fields().end(), [&](const EnviField& f) {
               std::string key = f.key;
               std::replace(key.begin(), key.end(), ' ', '_');
               const auto at = theirs.find(key);
               return at != theirs.end() && at->second == compared(key, f.value);
           });
}

// --- Data files and their headers --------------------------------------------

uint64_t size_of(const std::string& path) {
    VSIStatBufL status;
    return VSIStatL(path.c_str(), &status) == 0 && VSI_ISREG(status.st_mode)
               ? static_cast<uint64_t>(status.st_size)
               : 0;
}

/// Returns the only file that has the stem of the header's name, any extension, and the size that the header
/// states. Returns an empty text if no file or several files match.
std::string only_file_of_size(const std::string& stem, uint64_t bytes) {
    const CPLStringList names(VSIReadDir(folder_of(stem).c_str()));
    std::string found;
    for (int i = 0; i < names.size(); ++i) {
        const std::string path = join_path(folder_of(stem), names[i]);
        if (std::string(names[i]).rfind(name_of(stem) + ".", 0) != 0 || is_header_name(path) ||
            size_of(path) != bytes)
            continue;
        if (!found.empty()) return {};
        found = path;
    }
    return found;
}

bool has_driver(GDALDataset& dataset, const char* name) {
    return dataset.GetDriver() != nullptr && EQUAL(dataset.GetDriver()->GetDescription(), name);
}

DatasetHandle open_plainly(const std::string& path, const Opening& how,
                           const std::vector<std::string>& drivers) {
    if (is_pipe_or_device(path))
        throw Error("'" + path + "' is a pipe or a device, which can be read only once and in order",
                    "Write it to a file first.");
    const auto list = [](const std::vector<std::string>& items) {
        CPLStringList out;
        for (const std::string& item : items)
            out.AddString(item.c_str());
        return out;
    };
    const CPLStringList names = list(drivers), options = list(how.open_options);
    const auto opened = [&](const std::string& name) {
        return DatasetHandle(GDALDataset::FromHandle(
            GDALOpenEx(name.c_str(), how.kinds | GDAL_OF_READONLY | GDAL_OF_VERBOSE_ERROR,
                       drivers.empty() ? nullptr : names.List(), options.List(), nullptr)));
    };
    const std::string whole = whole_name(path);
    DatasetHandle dataset = opened(whole);
    // The drivers ENVI and VRT report all read errors without the prefix of whole_name(), which would become
    // part of the dataset's name.
    const auto tells = [&](const char* driver) { return has_driver(*dataset, driver); };
    if (whole == path || !dataset || !(tells("ENVI") || tells("VRT"))) return dataset;
    dataset = nullptr;
    return opened(path);
}

bool same_pixels(GDALDataset& a, GDALDataset& b, bool nodata) {
    const auto x = raw_layout(a), y = raw_layout(b);
    if (a.GetRasterCount() != b.GetRasterCount() || a.GetRasterXSize() != b.GetRasterXSize() ||
        a.GetRasterYSize() != b.GetRasterYSize() || !x || !y)
        return false;
    if (x->type != y->type || x->swapped != y->swapped || x->origin != y->origin ||
        x->pixel_step != y->pixel_step || x->line_step != y->line_step || x->band_step != y->band_step)
        return false;
    for (int k = 1; nodata && k <= a.GetRasterCount(); ++k) {
        const auto p = nodata_of(*a.GetRasterBand(k)), q = nodata_of(*b.GetRasterBand(k));
        if (p.has_value() != q.has_value()) return false;
        const double v = p ? p->as_double() : 0, w = q ? q->as_double() : 0;
        if (v != w && !(std::isnan(v) && std::isnan(w))) return false;
    }
    return true;
}

DatasetHandle open_shown(const EnviFile& file, const Opening& how) {
    install();
    return open_plainly(shown_name(file), how, {"ENVI"});
}

} // namespace

uint64_t envi_bytes_told(const EnviHeader& header) {
    const auto number = [&](const char* key, double otherwise) {
        const std::string* const text = header.find(key);
        return text ? CPLAtof(text->c_str()) : otherwise;
    };
    static const std::pair<int, int> sizes[] = {{1, 1},  {2, 2},  {3, 4},  {4, 4},  {5, 8}, {6, 8},
                                                {9, 16}, {12, 2}, {13, 4}, {14, 8}, {15, 8}};
    const double type = number("data type", 0);
    const auto* const size =
        std::find_if(std::begin(sizes), std::end(sizes), [&](const auto& s) { return s.first == type; });
    if (size == std::end(sizes)) return 0;
    const double bytes = number("samples", 0) * number("lines", 0) * number("bands", 0) * size->second +
                         number("header offset", 0);
    return bytes > 0 && bytes < 1e18 ? static_cast<uint64_t>(bytes) : 0;
}

std::string envi_header_beside(const std::string& data) {
    for (const std::string& name :
         {data + ".hdr", data + ".HDR", std::string(CPLResetExtension(data.c_str(), "hdr")),
          std::string(CPLResetExtension(data.c_str(), "HDR"))})
        if (name != data && is_envi_header(name)) return name;
    return {};
}

std::string envi_header_of(GDALDataset& dataset) {
    if (!has_driver(dataset, "ENVI")) return {};
    const CPLStringList files(dataset.GetFileList());
    for (int i = 0; i < files.size(); ++i)
        if (is_header_name(files[i])) return file_behind(files[i]);
    return {};
}

std::vector<std::string> envi_data_names(const std::string& header) {
    const std::string stem = header.substr(0, header.size() - 4);
    std::vector<std::string> names = {stem};
    for (const char* extension : {"dat", "img", "bsq", "bil", "bip", "raw", "bin", "rfl"}) {
        names.push_back(stem + "." + extension);
        names.push_back(stem + "." + CPLString(extension).toupper());
    }
    return names;
}

std::optional<EnviFile> envi_file_of_header(const std::string& path) {
    if (!is_header_name(path) || !is_envi_header(path)) return std::nullopt;
    const uint64_t wanted = envi_bytes_told(read_envi_header(path));
    const std::string stem = path.substr(0, path.size() - 4);
    std::string found;
    for (const std::string& name : envi_data_names(path)) {
        const uint64_t bytes = size_of(name);
        if (bytes == 0) continue;
        if (bytes == wanted) return EnviFile{name, path};
        if (found.empty()) found = name;
    }
    if (const std::string other = only_file_of_size(stem, wanted); wanted > 0 && !other.empty())
        found = other;
    if (found.empty())
        throw Error("'" + path + "' is an ENVI header without a data file",
                    "Put the data next to it as '" + name_of(stem) +
                        "', without extension or with .dat, .img, .bsq, .bil, .bip or .raw.");
    return EnviFile{found, path};
}

std::string data_of_esri_header(const std::string& path) {
    constexpr size_t some = 65536;
    if (!is_header_name(path) || is_envi_header(path)) return {};
    const std::string text = upper(beginning_of_file(path, some));
    for (const char* key : {"NROWS", "NCOLS"})
        if (text.find(key) == std::string::npos) return {};
    for (const std::string& name : envi_data_names(path))
        if (size_of(name) > 0) return name;
    return {};
}

std::optional<EnviFile> all_samples(const std::string& path) {
    if (!is_local(path) || is_header_name(path)) return std::nullopt;
    const std::string name = envi_header_beside(path);
    if (name.empty()) return std::nullopt;
    try {
        const EnviHeader header = read_envi_header(name);
        const std::string* const offset = header.find("header offset");
        const uint64_t bytes = envi_bytes_told(header);
        if (bytes == 0 || bytes != size_of(path) || (offset && CPLAtof(offset->c_str()) != 0))
            return std::nullopt;
    } catch (const Error&) { // open_in_gdal() reports the reason
        return std::nullopt;
    }
    return EnviFile{path, name};
}

bool gdal_sees_pixels(const std::string& path, const std::string& header, bool nodata) {
    const GdalErrors quiet;
    if (header.empty() && envi_header_beside(path).empty()) return true;
    const DatasetHandle ours = open_in_gdal({path, header, GDAL_OF_RASTER, {}, {}});
    if (!ours) return true;
    const DatasetHandle plain = open_plainly(path, {}, {});
    if (!plain) return false;
    // If the data begin like another format, GDAL opens them as that format even if an ENVI header exists.
    const bool as_is = file_behind(ours->GetDescription()) == ours->GetDescription();
    if (as_is && has_driver(*plain, ours->GetDriverName())) return true;
    return same_pixels(*plain, *ours, nodata);
}

DatasetHandle open_in_gdal(const Opening& opening) {
    const bool envi = (opening.kinds & GDAL_OF_RASTER) != 0 &&
                      (opening.drivers.empty() ||
                       std::any_of(opening.drivers.begin(), opening.drivers.end(),
                                   [](const std::string& name) { return EQUAL(name.c_str(), "ENVI"); }));
    if (!envi) return open_plainly(opening.path, opening, opening.drivers);
    EnviFile file{opening.path, opening.header};
    if (file.header.empty())
        if (auto named = envi_file_of_header(opening.path)) file = *named;
    const bool any_driver = opening.drivers.empty();
    if (const std::string data = file.header.empty() && any_driver ? data_of_esri_header(file.data) : "";
        !data.empty())
        return open_plainly(data, opening, {"EHdr"});
    if (!file.header.empty()) {
        // The data belong to this header, even if they begin like another format.
        DatasetHandle dataset = open_plainly(file.data, opening, {"ENVI"});
        if (dataset && envi_header_of(*dataset) == file.header && gdal_reads_alike(file.header))
            return dataset;
        return open_shown(file, opening);
    }
    DatasetHandle dataset = open_plainly(file.data, opening, opening.drivers);
    if (dataset && !has_driver(*dataset, "ENVI")) {
        const auto samples = opening.drivers.empty() ? all_samples(file.data) : std::nullopt;
        if (!samples) return dataset;
        Opening by_header = opening;
        by_header.header = samples->header;
        return open_in_gdal(by_header);
    }
    file.header = dataset ? envi_header_of(*dataset) : envi_header_beside(file.data);
    if (file.header.empty()) return dataset;
    if (dataset) return gdal_reads_alike(file.header) ? std::move(dataset) : open_shown(file, opening);
    // If GDAL does not recognise the header, or if the data begin like another format, the size of the data
    // must be the size that the header states.
    const EnviHeader header = read_envi_header(file.header);
    if (size_of(file.data) != envi_bytes_told(header)) return nullptr;
    const GdalErrors quiet; // GDAL's earlier message already states the reason
    return open_shown(file, opening);
}

} // namespace hsi::raster
