// SPDX-License-Identifier: MIT
#include "raster/labels/labels.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/names.h"
#include "core/utf8.h"
#include "raster/gdal/gdal_errors.h"
#include "raster/labels/labels_impl.h"
#include "raster/labels/point_table.h"
#include "raster/metadata/envi_file.h"
#include "raster/products/hdf5_trial.h"
#include "raster/products/matlab_scene.h"

#include <cpl_string.h>
#include <gdal_priv.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace hsi::raster {
namespace {

OGRSpatialReference srs_from(const std::string& wkt) {
    OGRSpatialReference srs;
    if (!wkt.empty()) srs.importFromWkt(wkt.c_str());
    srs.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
    return srs;
}

/// What GeoPackage calls the SRS of a layer for which nobody has named one.
bool stands_for_none(const OGRSpatialReference& srs) {
    const char* const name = srs.GetName();
    return name != nullptr && (STARTS_WITH_CI(name, "Undefined geographic SRS") ||
                               STARTS_WITH_CI(name, "Undefined Cartesian SRS"));
}

/// "5,Soil": 5 and Soil.
std::vector<std::string> listed_classes(const std::string& text) {
    auto words = listed_words(text).value_or(std::vector<std::string>{""});
    for (std::string& word : words) {
        word = clean_name(word.c_str());
        if (word.empty())
            throw UsageError("-leave-out: '" + text + "' is not understood",
                             "Give classes by number or name, with commas between them: 5 or 5,Soil. A name "
                             "that holds a comma stands in double quotes: '5,\"Corn, young\"'.");
    }
    return words;
}

bool is_called(const std::string& word, const std::string& name) {
    return word == name || differ_in_composition(word, name);
}

} // namespace

std::string wkt_of(const OGRSpatialReference* srs) {
    if (!srs || srs->IsEmpty() || stands_for_none(*srs)) return {};
    char* text = nullptr;
    const char* const options[] = {"FORMAT=WKT2_2019", nullptr};
    srs->exportToWkt(&text, options);
    std::string wkt = text ? text : "";
    CPLFree(text);
    return wkt;
}

bool same_srs(const std::string& a, const std::string& b) {
    if (a.empty() || b.empty() || a == b) return true;
    const OGRSpatialReference first = srs_from(a), second = srs_from(b);
    const char* const options[] = {"IGNORE_DATA_AXIS_TO_SRS_AXIS_MAPPING=YES", "CRITERION=EQUIVALENT",
                                   nullptr};
    return first.IsSame(&second, options);
}

bool counts_degrees(const std::string& wkt) {
    if (wkt.empty()) return false;
    const OGRSpatialReference srs = srs_from(wkt);
    return srs.IsGeographic() && std::fabs(srs.GetAngularUnits() * full_turn - 2 * M_PI) < 1e-6;
}

bool same_geotransform(const GeoTransform& a, const GeoTransform& b, int64_t samples, int64_t lines) {
    const double pixel = std::max(std::hypot(a[1], a[4]), std::hypot(a[2], a[5]));
    for (const double x : {0.0, static_cast<double>(samples)})
        for (const double y : {0.0, static_cast<double>(lines)})
            for (const size_t k : {size_t{0}, size_t{3}})
                if (!(std::fabs((a[k] - b[k]) + (a[k + 1] - b[k + 1]) * x + (a[k + 2] - b[k + 2]) * y) <=
                      1e-3 * pixel))
                    return false;
    return true;
}

Transformation transformation(const std::string& from, const std::string& to, const std::string& path) {
    OGRSpatialReference source = srs_from(from), target = srs_from(to);
    const GdalErrors errors;
    Transformation t(OGRCreateCoordinateTransformation(&source, &target));
    if (!t)
        throw Error("'" + path + "': its coordinates cannot be turned into the scene's: " + errors.text(),
                    "Check the SRS of both files with gdalinfo and ogrinfo.");
    return t;
}

uint16_t class_of(double v, uint16_t none, const std::string& path) {
    if (!(v >= 0)) return none; // NaN too
    if (v > max_class || v != std::floor(v) || (v == none && v != 0))
        throw Error("'" + path + "': " + CPLSPrintf("%.9g", v) + " is no class number (" +
                        (none == 0 ? "1 to 65535; 0: no label)" : "0 to 65534, where 0 is a class)"),
                    "Is this a raster of class labels? gdal_calc.py can turn other codes into class numbers, "
                    "and gdal_edit.py -a_nodata tells which number is none.");
    return static_cast<uint16_t>(v);
}

bool names_a_class(const std::string& name) {
    std::string letters; // "No Data", "no_data" and "NoData" are one
    for (const char c : name)
        if ((static_cast<unsigned char>(c) & 0x80) != 0 || std::isalnum(static_cast<unsigned char>(c)) != 0)
            letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (letters.find_first_not_of("0123456789") == std::string::npos) return false;
    static const char* const nothing[] = {
        "unclassified", "notclassified", "unlabeled",   "unlabelled", "notlabeled",   "notlabelled",
        "nolabel",      "nolabels",      "background",  "nodata",     "nodatavalue",  "none",
        "noclass",      "null",          "na",          "nan",        "notavailable", "undefined",
        "notdefined",   "unassigned",    "notassigned", "unknown",    "masked",       "maskedpixels",
        "mask",         "maskedout",     "fill",        "fillvalue",  "empty",        "void",
        "novalue",      "missing",       "ignore",      "ignored",    "invalid",      "outside",
        "nothing",      "noinformation"};
    return std::none_of(std::begin(nothing), std::end(nothing),
                        [&](const char* word) { return letters == word; });
}

std::string clean_name(const char* name) {
    std::string text = utf8_text(name);
    text.erase(0, text.find_first_not_of(" \t\r\n"));
    text.erase(text.find_last_not_of(" \t\r\n") + 1);
    return text;
}

std::string negative_note(const std::string& path, const std::string& things, double least) {
    return "'" + path + "': " + things + " negative numbers (the least is " + CPLSPrintf("%.9g", least) +
           "), which are taken for no label";
}

Grid grid_of(const RasterSource& source) {
    Grid grid;
    grid.samples = source.shape().samples;
    grid.lines = source.shape().lines;
    double gt[6];
    if (source.geotransform(gt)) {
        grid.geotransform.emplace();
        std::copy_n(gt, 6, grid.geotransform->begin());
    }
    grid.srs_wkt = source.srs_wkt();
    const auto& scene = source.metadata();
    grid.placed_otherwise =
        !grid.geotransform && (source.located() || !scene.gcps.empty() || scene.domains.count("RPC") > 0 ||
                               scene.domains.count("GEOLOCATION") > 0);
    return grid;
}

bool same_grid(const Grid& a, const Grid& b) {
    if (a.samples != b.samples || a.lines != b.lines) return false;
    if (!a.geotransform || !b.geotransform) return true;
    return same_srs(a.srs_wkt, b.srs_wkt) &&
           same_geotransform(*a.geotransform, *b.geotransform, a.samples, a.lines);
}

std::unique_ptr<LabelSource> LabelSource::open(const LabelOptions& options, const Grid* grid) {
    auto source = open_all(options, grid);
    if (!options.leave_out.empty()) source->leave_out(options);
    return source;
}

void LabelSource::leave_out(const LabelOptions& options) {
    m_left_out.assign(static_cast<size_t>(max_class) + 1, 0);
    m_read = m_left_out;
    for (const auto& one : m_legend)
        m_names[one.value] = one.name;
    const auto mark = [&](const std::string& word) {
        bool found = false;
        const auto leave = [&](int value) {
            if (value == m_none) return;
            m_left_out[static_cast<size_t>(value)] = 1;
            found = true;
        };
        for (const auto& [value, name] : m_names)
            if (is_called(word, name) || word == std::to_string(value)) leave(value);
        for (const int value : m_known)
            if (word == std::to_string(value)) leave(value);
        if (found) return;
        if (!options.said_of_another) m_unproved.push_back(word);
        const bool digits = word.size() <= 5 && word.find_first_not_of("0123456789") == std::string::npos;
        if (digits && std::to_string(std::stoi(word)) == word && std::stoi(word) <= max_class)
            leave(std::stoi(word));
    };
    for (const auto& text : options.leave_out)
        for (const auto& word : listed_classes(text))
            mark(word);
    m_legend.erase(std::remove_if(m_legend.begin(), m_legend.end(),
                                  [&](const LabelClass& one) {
                                      return m_left_out[static_cast<size_t>(one.value)] != 0;
                                  }),
                   m_legend.end());
}

void LabelSource::read(int64_t line, int64_t count, uint16_t* out) {
    read_lines(line, count, out);
    if (m_left_out.empty()) return;
    for (int64_t i = 0; i < count * m_grid.samples; ++i) {
        m_read[out[i]] = 1;
        if (m_left_out[out[i]] == 0) continue;
        out[i] = m_none;
        m_left_any_out = true;
    }
}

std::set<int> LabelSource::classes_there() const {
    std::set<int> there = m_known;
    for (int value = 0; value < static_cast<int>(m_read.size()); ++value)
        if (m_read[static_cast<size_t>(value)] != 0 && value != m_none) there.insert(value);
    return there;
}

std::vector<std::string> LabelSource::not_left_out() const {
    std::set<std::string> numbers;
    for (const int value : classes_there())
        numbers.insert(std::to_string(value));
    std::vector<std::string> words;
    std::copy_if(m_unproved.begin(), m_unproved.end(), std::back_inserter(words),
                 [&](const std::string& word) { return numbers.count(word) == 0; });
    return words;
}

void LabelSource::check_left_out() const {
    const auto words = not_left_out();
    if (words.empty()) return;
    std::string list;
    for (const int value : classes_there()) {
        list += (list.empty() ? "" : ", ") + std::to_string(value);
        if (const auto named = m_names.find(value); named != m_names.end() && !named->second.empty())
            list += " " + named->second;
    }
    throw UsageError("-leave-out: '" + m_path + "' has no class '" + words.front() + "'",
                     list.empty() ? "It has no labels here." : "Its classes: " + list + ".");
}

std::vector<uint16_t> LabelSource::share_classes() const {
    auto values = polygon_classes();
    if (!m_left_out.empty())
        values.erase(std::remove_if(values.begin(), values.end(),
                                    [&](uint16_t value) { return m_left_out[value] != 0; }),
                     values.end());
    return values;
}

std::unique_ptr<LabelSource> LabelSource::open_all(const LabelOptions& options, const Grid* grid) {
    register_drivers();
    try_hdf5(options.path);
    // GDAL takes many a table of points for a raster.
    if (auto points = open_point_table(options, grid)) return points;
    GdalErrors errors;
    std::vector<std::string> notes;
    DatasetHandle dataset = open_matlab_labels(options.path, grid ? grid->lines : 0, grid ? grid->samples : 0,
                                               options.mask, notes);
    if (!dataset)
        dataset = open_in_gdal({options.path, {}, GDAL_OF_RASTER | GDAL_OF_VECTOR, {}, options.open_options});
    if (!dataset)
        throw Error("cannot open '" + options.path + "': " + errors.text(),
                    "Labels are any raster or vector file that GDAL opens.");
    const bool vector_wanted = !options.field.empty() || !options.layer.empty() ||
                               !options.name_field.empty() || options.all_touched || options.inside_only ||
                               options.min_cover || options.shares || options.pixel_coordinates;
    if (dataset->GetRasterCount() > 0 && !(vector_wanted && dataset->GetLayerCount() > 0)) {
        if (vector_wanted && !options.said_of_another)
            throw Error("'" + options.path + "' is a raster: it has no features",
                        "Leave out -field, -name-field, -layer, -all-touched, -inside-only, -min-cover" +
                            std::string(options.shares ? ", -cover" : "") + " and -pixel-coordinates.");
        auto labels = make_raster_labels(std::move(dataset), options, grid);
        labels->m_notes.insert(labels->m_notes.end(), notes.begin(), notes.end());
        return labels;
    }
    if (dataset->GetLayerCount() == 0)
        throw Error("'" + options.path + "' has neither a band nor a layer",
                    "Labels are any raster or vector file that GDAL opens.");
    return make_vector_labels(std::move(dataset), options, grid);
}

void LabelSource::shares(int64_t /*line*/, int64_t /*count*/, uint16_t /*value*/, float* /*out*/) {
    throw Error("'" + m_path + "' has no polygons, so there are no shares of pixels",
                "Give features as labels.");
}

Error no_labels(const LabelSource& source) {
    const std::string name = "'" + source.path() + "'", &owner = source.grid().owner;
    const std::string what = name + ": no labelled pixel" + (owner == name ? "" : " inside " + owner);
    if (const int64_t n = source.too_small(); n > 0)
        return Error(what + ": " + counted(n, "polygon is", "polygons are") + " too small or narrow",
                     "-all-touched labels every pixel that a polygon touches, and a smaller -min-cover those "
                     "of which it covers less.");
    if (source.left_any_out())
        return Error(what + ": all that there are have classes that -leave-out names",
                     "Leave fewer classes out.");
    if (!source.seen())
        return Error(what, "Do both lie in the same place? Compare their extents with gdalinfo and ogrinfo.");
    return Error(what + ": all are 0, nodata or negative" +
                     (source.least() < 0 ? CPLSPrintf(" (the least is %.9g)", source.least()) : ""),
                 "Classes are whole numbers from 1 to 65535, and 0 with -zero class; gdal_calc.py can turn "
                 "other codes into them.");
}

std::string shared_name(const std::vector<LabelClass>& classes) {
    std::map<std::string, int> known;
    for (const auto& c : classes) {
        if (c.name.empty()) continue;
        const auto [first, is_new] = known.emplace(c.name, c.value);
        if (!is_new)
            return "classes " + std::to_string(first->second) + " and " + std::to_string(c.value) +
                   " are both called '" + c.name + "'";
    }
    return {};
}

LabelledPixels collect_labels(LabelSource& source) {
    LabelledPixels all;
    all.grid = source.grid();
    const int64_t samples = all.grid.samples;
    std::vector<int64_t> count(static_cast<size_t>(max_class) + 1);
    std::vector<uint16_t> strip(static_cast<size_t>(strip_lines * samples));
    for (int64_t y = 0; y < all.grid.lines; y += strip_lines) {
        const int64_t n = std::min(strip_lines, all.grid.lines - y);
        source.read(y, n, strip.data());
        for (int64_t i = 0; i < n * samples; ++i)
            if (const uint16_t v = strip[static_cast<size_t>(i)]; v != source.none()) {
                all.index.push_back(y * samples + i);
                all.value.push_back(v);
                ++count[v];
            }
    }
    source.check_left_out();
    if (all.index.empty()) throw no_labels(source);
    for (int v = 0; v <= max_class; ++v) {
        if (count[static_cast<size_t>(v)] == 0) continue;
        LabelClass one;
        for (const auto& known : source.legend())
            if (known.value == v) one = known;
        one.value = v;
        one.pixels = count[static_cast<size_t>(v)];
        all.classes.push_back(std::move(one));
    }
    all.notes = source.reading_notes();
    if (const std::string pair = shared_name(all.classes); !pair.empty())
        all.notes.push_back("'" + source.path() + "': " + pair);
    return all;
}

} // namespace hsi::raster
