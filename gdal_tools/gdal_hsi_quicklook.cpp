// SPDX-License-Identifier: MIT
// gdal_hsi_quicklook: makes a picture for viewing. Scenes in the colours of three bands, and class maps in
// their own colours with a legend, are placed side by side. Points are marked with rings. One pass over each
// scene reads the values that are shown.
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "gdal_hsi_quicklook/frame.h"
#include "gdal_hsi_quicklook/legend.h"
#include "gdal_hsi_quicklook/rings.h"
#include "math/elementary.h"
#include "raster/drivers.h"
#include "raster/labels.h"
#include "raster/output_set.h"
#include "raster/raster_source.h"
#include "raster/text_output.h"
#include "stream/operation.h"
#include "tool/classification.h"
#include "tool/definition.h"
#include "tool/model_values.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/scene.h"
#include "tool/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace hsi {
namespace quicklook_tool {
namespace {

using tool::Content;

constexpr int64_t gap_dots = 4; ///< width of the white gap between panels, in dots of a letter
/// Gamma for natural colours, because land is dark compared with the brightest roofs and rocks.
constexpr double land_gamma = 0.6;
constexpr std::array<double, 3> natural_nm = {650, 550, 450}; ///< wavelengths of red, green and blue

struct Settings {
    std::string beside, points, point_names, like, title;
    bool frame = false;
    int64_t size = 1200;
    std::array<double, 2> stretch = {2, 98};
    double gamma = 0; ///< 0: the gamma depends on the kind of picture
    bool each = false, no_legend = false;
    /// Options of the call that have no effect on class maps, such as "-stretch and -gamma".
    std::string for_values;
};

// Panels
// ----------------------------------------------------------------------------------------------------------

/// Maps each pixel of a panel to the scene pixel at its centre.
struct Scale {
    int64_t samples, lines;             ///< size of the scene
    int64_t panel_samples, panel_lines; ///< size of the panel
    int64_t sample(int64_t x) const { return (2 * x + 1) * samples / (2 * panel_samples); }
    int64_t line(int64_t y) const { return (2 * y + 1) * lines / (2 * panel_lines); }
};

/// Returns the size of a panel whose longer side is at most `size` pixels. Small scenes are enlarged by an
/// integer factor.
Scale scale_of(const stream::CubeShape& shape, int64_t size) {
    const int64_t longest = std::max(shape.samples, shape.lines);
    Scale scale{shape.samples, shape.lines, shape.samples, shape.lines};
    if (longest <= size) {
        scale.panel_samples *= size / longest;
        scale.panel_lines *= size / longest;
    } else {
        scale.panel_samples = std::max<int64_t>(1, shape.samples * size / longest);
        scale.panel_lines = std::max<int64_t>(1, shape.lines * size / longest);
    }
    return scale;
}

/// Values of the pixels that a panel shows, [band][y][x]; NaN for missing values.
using Picked = std::vector<std::vector<float>>;

/// Copies the pixels that a panel shows, in one pass. Each pixel is in the core of exactly one tile.
class Picking final : public stream::Operation {
  public:
    Picking(const Scale& scale, Picked& picked) : m_scale(scale), m_picked(picked) {}
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<Picker>(*this);
    }

  private:
    /// Returns the first panel position that shows pixel `first` or a later pixel. The scene has `count`
    /// pixels and the panel has `places` positions in this direction.
    static int64_t first_place(int64_t first, int64_t count, int64_t places) {
        // The smallest x with (2x + 1) * count / (2 * places) >= first, in integers.
        const int64_t least = 2 * places * first - count;
        return least <= 0 ? 0 : (least + 2 * count - 1) / (2 * count);
    }

    struct Picker final : stream::Worker {
        explicit Picker(const Picking& owner) : m_owner(owner) {}
        void process(const Tile& tile, const CubeView<float>& in,
                     const std::vector<CubeView<float>>&) override {
            const Scale& s = m_owner.m_scale;
            const Rect& core = tile.core;
            const int64_t x0 = first_place(core.x, s.samples, s.panel_samples);
            for (int64_t y = first_place(core.y, s.lines, s.panel_lines);
                 y < s.panel_lines && s.line(y) < core.y + core.h; ++y)
                for (int b = 0; b < in.bands; ++b) {
                    const float* const from = in.row(b, s.line(y) - core.y);
                    float* const to = m_owner.m_picked[static_cast<size_t>(b)].data() + y * s.panel_samples;
                    for (int64_t x = x0; x < s.panel_samples && s.sample(x) < core.x + core.w; ++x)
                        to[x] = from[s.sample(x) - core.x];
                }
        }
        const Picking& m_owner;
    };
    const Scale m_scale;
    Picked& m_picked;
};

/// The lowest and the highest value of a band between which colours change.
using Limits = std::array<double, 2>;

Limits limits_of(const std::vector<float>& values, const std::array<double, 2>& percent) {
    std::vector<float> finite;
    for (const float v : values)
        if (std::isfinite(v)) finite.push_back(v);
    if (finite.empty()) return {0, 1};
    Limits out{};
    for (size_t k = 0; k < 2; ++k) { // interpolates linearly between order statistics
        const double at = percent[k] / 100 * static_cast<double>(finite.size() - 1);
        const auto below = static_cast<std::ptrdiff_t>(at);
        std::nth_element(finite.begin(), finite.begin() + below, finite.end());
        const double low = finite[static_cast<size_t>(below)];
        const auto above = std::min_element(finite.begin() + below + 1, finite.end());
        out[k] = above == finite.end() ? low : low + (*above - low) * (at - static_cast<double>(below));
    }
    return out;
}

std::vector<Limits> limits_of_all(const Picked& bands, const std::array<double, 2>& percent) {
    std::vector<Limits> limits;
    for (const auto& values : bands)
        limits.push_back(limits_of(values, percent));
    return limits;
}

uint8_t shade(float value, const Limits& limits, double gamma) {
    const double range = limits[1] - limits[0];
    const double t = range > 0           ? std::clamp((value - limits[0]) / range, 0.0, 1.0)
                     : value > limits[0] ? 1.0
                                         : 0.0;
    return static_cast<uint8_t>(std::lround(255 * math::pow(t, gamma)));
}

// What a panel shows
// ----------------------------------------------------------------------------------------------------------

/// One of the files that the picture shows.
struct Shown {
    std::string path;
    std::shared_ptr<raster::RasterSource> source;
    std::unique_ptr<raster::LabelSource> classes; ///< reader of a class map; null for a scene
    std::vector<int> bands; ///< indices in the source, from 0: red, green and blue, or one band in grey
    bool natural = false;   ///< true if the bands were chosen at the wavelengths of visible light
};

/// Returns a reader of the classes if the raster is a class map: one band, and names or colours of classes.
/// Returns null otherwise.
std::unique_ptr<raster::LabelSource> class_map(const raster::RasterSource& source) {
    if (source.facts().bands.in_file != 1 || !tool::is_integer_type(source.facts().type)) return nullptr;
    raster::LabelOptions options;
    options.path = source.path();
    auto labels = raster::LabelSource::open(options);
    const bool whole =
        labels->grid().samples == source.shape().samples && labels->grid().lines == source.shape().lines;
    return whole && !labels->legend().empty() ? std::move(labels) : nullptr;
}

/// Chooses the bands that are shown as red, green and blue. asked: true if the user chose the bands with -b.
void choose_bands(Shown& shown, bool asked) {
    const int count = shown.source->shape().bands;
    shown.bands.clear();
    if (asked || count < 3) {
        if (count == 3)
            shown.bands = {0, 1, 2};
        else if (count == 1 || !asked)
            shown.bands = {0};
        else
            throw UsageError("-b: " + counted(count, "band") + worded(count, " makes", " make") +
                                 " no colours",
                             "Give three bands for red, green and blue, one band for grey, or -each for one "
                             "panel per band.");
        return;
    }
    std::vector<std::pair<double, int>> known;
    const auto nm = shown.source->facts().bands.wavelengths_nm;
    for (size_t b = 0; b < nm.size(); ++b)
        if (std::isfinite(nm[b])) known.emplace_back(nm[b], static_cast<int>(b));
    std::sort(known.begin(), known.end());
    // Without wavelengths, the first, the middle and the last band are shown as red, green and blue.
    if (known.size() < 3) {
        shown.bands = {0, count == 3 ? 1 : (count - 1) / 2, count - 1};
        return;
    }
    for (const double wanted : natural_nm)
        shown.bands.push_back(std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
                                  return std::fabs(a.first - wanted) < std::fabs(b.first - wanted);
                              })->second);
    shown.natural = shown.bands[0] != shown.bands[1] && shown.bands[1] != shown.bands[2];
    // The sensor has no visible light: the longest waves become red, and the shortest waves become blue.
    if (!shown.natural)
        shown.bands = {known.back().second, known[known.size() / 2].second, known.front().second};
}

std::vector<Shown> open_files(tool::Run& run, const Settings& s) {
    std::vector<Shown> files(s.beside.empty() ? 1 : 2);
    const auto& first = run.options().source;
    const bool asked = !first.bands.empty() || !first.choices.empty();
    for (size_t k = 0; k < files.size(); ++k) {
        Shown& f = files[k];
        if (k == 0) {
            f.source = run.open_source(tool::Precision::full);
        } else {
            raster::OpenOptions options;
            options.path = s.beside;
            f.source = raster::open_raster(options);
            // The bands of -b apply to the second file if both files have the same number of bands.
            if (asked && f.source->facts().bands.in_file == files[0].source->facts().bands.in_file) {
                options.bands = files[0].source->bands();
                f.source = raster::open_raster(options);
            }
            run.watch_source(f.source, tool::Precision::full);
        }
        f.path = f.source->path();
        const auto shape = f.source->shape(), whole = files[0].source->shape();
        if (shape.samples != whole.samples || shape.lines != whole.lines)
            throw Error("-beside " + f.path + " has " + size_text(shape.samples, shape.lines) +
                            " pixels, but " + files[0].path + " has" + " " +
                            size_text(whole.samples, whole.lines),
                        "Panels must have the same size: warp it to that grid (gdalwarp -ts -te), or make "
                        "separate pictures.");
        if (!first.window) f.classes = class_map(*f.source);
        if (!f.classes && !s.each)
            choose_bands(f,
                         asked && f.source->facts().bands.in_file == files[0].source->facts().bands.in_file);
    }
    return files;
}

/// Opens the file of -like: a class map, or a scene with the bands in which src is shown.
std::optional<Shown> open_like(tool::Run& run, const Settings& s, const std::vector<Shown>& files) {
    if (s.like.empty()) return {};
    Shown like;
    raster::OpenOptions options;
    options.path = s.like;
    like.source = raster::open_raster(options);
    like.classes = class_map(*like.source);
    const bool wanted = std::any_of(files.begin(), files.end(), [&](const Shown& file) {
        return (file.classes != nullptr) == (like.classes != nullptr);
    });
    if (!wanted)
        throw Error("-like " + s.like + " is " + (like.classes ? "a class map" : "a scene") + ", but '" +
                        files[0].source->path() + "' is not",
                    "Use a raster of the same kind.");
    if (!like.classes) {
        const auto scene = std::find_if(files.begin(), files.end(),
                                        [](const Shown& file) { return file.classes == nullptr; });
        model::ModelBands bands;
        tool::describe_bands(*scene->source, bands);
        like.source = tool::match_scene(run, like.source, "-like " + s.like, scene->source->path(), bands);
        run.watch_source(like.source, tool::Precision::full);
    }
    like.path = like.source->path();
    return like;
}

Picked pick(tool::Run& run, const std::shared_ptr<raster::RasterSource>& source,
            const std::vector<int>& bands, const Scale& scale, double share) {
    std::vector<int> rising = bands;
    std::sort(rising.begin(), rising.end());
    rising.erase(std::unique(rising.begin(), rising.end()), rising.end());
    const auto wanted = tool::only_bands(source, rising);
    const auto pixels = static_cast<size_t>(scale.panel_samples * scale.panel_lines);
    Picked read(rising.size(), std::vector<float>(pixels, std::numeric_limits<float>::quiet_NaN()));
    Picking picking(scale, read);
    run.add_pass(stream::run_pass(*wanted, picking, {}, run.pass("picking", share)));
    Picked out;
    for (const int band : bands)
        out.push_back(
            read[static_cast<size_t>(std::lower_bound(rising.begin(), rising.end(), band) - rising.begin())]);
    return out;
}

/// Colour of pixels without a value or label, with -frame. The colour is not grey, and differs from all
/// colours of raster::default_colour().
constexpr Rgb no_value_colour{190, 210, 240};

/// Draws one band in grey or three bands in colours. Pixels with missing or infinite values get the colour
/// `none`. Returns the number of pixels with values.
int64_t draw_values(Canvas& canvas, const Scale& scale, const Picked& picked,
                    const std::vector<Limits>& limits, double gamma, const Rgb& none) {
    int64_t with_value = 0;
    for (int64_t y = 0; y < scale.panel_lines; ++y)
        for (int64_t x = 0; x < scale.panel_samples; ++x) {
            const auto at = static_cast<size_t>(y * scale.panel_samples + x);
            Rgb colour{};
            bool valid = true;
            for (size_t k = 0; k < 3; ++k) {
                const size_t b = std::min(k, picked.size() - 1);
                valid &= std::isfinite(picked[b][at]);
                if (valid) colour[k] = shade(picked[b][at], limits[b], gamma);
            }
            canvas.set(x, y, valid ? colour : none);
            with_value += valid;
        }
    return with_value;
}

std::vector<Entry> entries_of(const raster::LabelSource& labels) {
    std::vector<Entry> out;
    for (const LabelClass& c : labels.legend()) {
        if (c.value == labels.none()) continue;
        const Colour colour = c.colour.value_or(raster::default_colour(c.value));
        out.push_back({c.name, {colour[0], colour[1], colour[2]}, c.value});
    }
    return out;
}

/// Adds the classes that the picture shows to the legend, without duplicates.
void add_to_legend(const std::vector<Entry>& entries, std::vector<Entry>& legend) {
    for (const auto& e : entries)
        if (e.seen && std::none_of(legend.begin(), legend.end(), [&](const Entry& known) {
                return known.value == e.value && known.name == e.name && known.colour == e.colour;
            }))
            legend.push_back(e);
}

/// Copies the colours of the classes of `like` to classes with the same name. Classes without names are
/// matched by number.
void take_colours(const raster::LabelSource& like, std::vector<Entry>& entries) {
    for (const Entry& known : entries_of(like))
        for (Entry& e : entries)
            if (e.name == known.name && (!e.name.empty() || e.value == known.value)) e.colour = known.colour;
}

/// Draws a class map. A class that is not in `entries` is added with a default colour. Returns true if pixels
/// have no class.
bool draw_classes(Canvas& canvas, const Scale& scale, raster::LabelSource& labels,
                  std::vector<Entry>& entries, const Rgb& none) {
    std::vector<uint16_t> line(static_cast<size_t>(scale.samples));
    std::vector<int> entry(raster::max_class + 1, -1);
    for (size_t k = 0; k < entries.size(); ++k)
        entry[static_cast<size_t>(entries[k].value)] = static_cast<int>(k);
    int64_t before = -1;
    bool any_without = false;
    for (int64_t y = 0; y < scale.panel_lines; ++y) {
        if (scale.line(y) != before) labels.read(before = scale.line(y), 1, line.data());
        for (int64_t x = 0; x < scale.panel_samples; ++x) {
            const uint16_t value = line[static_cast<size_t>(scale.sample(x))];
            Rgb colour = none;
            any_without |= value == labels.none();
            if (value != labels.none()) {
                int& k = entry[value];
                if (k < 0) {
                    const Colour c = raster::default_colour(value);
                    k = static_cast<int>(entries.size());
                    entries.push_back({"", {c[0], c[1], c[2]}, value});
                }
                entries[static_cast<size_t>(k)].seen = true;
                colour = entries[static_cast<size_t>(k)].colour;
            }
            canvas.set(x, y, colour);
        }
    }
    return any_without;
}

// The run
// ----------------------------------------------------------------------------------------------------------

/// Opens the file of -points. \throws Error with advice that names -point-names, not -field.
std::unique_ptr<raster::LabelSource> open_points(const raster::LabelOptions& options,
                                                 const raster::Grid& grid) {
    try {
        return raster::LabelSource::open(options, &grid);
    } catch (const Error& error) {
        const std::string other = "the class field with -field";
        std::string advice = error.advice();
        const size_t at = advice.find(other);
        if (options.mask || at == std::string::npos) throw;
        throw Error(error.what(), advice.replace(at, other.size(), "a field with -point-names"));
    }
}

/// Returns rings at the pixels of src that contain a point of the file. Warns of points outside.
std::vector<Ring> points_in(tool::Run& run, const Settings& s, const raster::RasterSource& source,
                            const Scale& scale) {
    const std::string& path = s.points;
    if (path.empty()) return {};
    raster::LabelOptions options;
    options.path = path;
    options.field = s.point_names;
    options.mask = s.point_names.empty();
    const auto grid = raster::grid_of(source);
    const auto labels = open_points(options, grid);
    tool::report_notes(run, *labels);
    constexpr size_t most = 10000; // more rings would cover the picture
    const auto found = raster::collect_labels(*labels);
    if (found.index.size() > most)
        throw Error(
            "-points " + path + " marks " + counted(found.index.size(), "pixel") +
                " of the scene, more than " + std::to_string(most),
            "Use points. To show polygons, burn them into a raster (gdal_rasterize) and use -beside.");
    if (const int64_t n = labels->outside(); n > 0)
        run.warn("'" + path + "': " + counted(n, "feature") + worded(n, " lies", " lie") +
                 " outside src and" + worded(n, " has", " have") + " no ring");
    std::vector<Ring> rings;
    for (size_t i = 0; i < found.index.size(); ++i) {
        const auto place = [](int64_t pixel, int64_t panel, int64_t scene) {
            return (static_cast<double>(pixel) + 0.5) * static_cast<double>(panel) /
                   static_cast<double>(scene);
        };
        rings.push_back({place(found.index[i] % scale.samples, scale.panel_samples, scale.samples),
                         place(found.index[i] / scale.samples, scale.panel_lines, scale.lines),
                         {}});
        if (options.mask) continue;
        const auto known =
            std::find_if(found.classes.begin(), found.classes.end(),
                         [value = found.value[i]](const LabelClass& one) { return one.value == value; });
        rings.back().name = known == found.classes.end() || known->name.empty()
                                ? std::to_string(found.value[i])
                                : known->name;
    }
    return rings;
}

struct Panel {
    size_t file;
    std::vector<int> bands; ///< indices in the source of the file; empty for a class map
};

std::string bands_text(const Shown& file, const std::vector<int>& bands, bool colours = true) {
    std::string out = bands.size() == 1 ? "band " : "bands ";
    const auto nm = file.source->facts().bands.wavelengths_nm;
    for (size_t k = 0; k < bands.size(); ++k) {
        const auto b = static_cast<size_t>(bands[k]);
        out += (k > 0 ? ", " : "") + std::to_string(file.source->bands()[b]);
        if (b < nm.size() && std::isfinite(nm[b])) out += " (" + std::to_string(std::lround(nm[b])) + " nm)";
    }
    return !colours ? out : out + (bands.size() == 3 ? " as red, green, blue" : " in grey");
}

void check_options(const Settings& s, const std::vector<Shown>& files) {
    const auto is_map = [](const Shown& file) { return file.classes != nullptr; };
    if (!s.for_values.empty() && std::all_of(files.begin(), files.end(), is_map))
        throw UsageError(s.for_values + ": '" + files[0].path +
                             "' is a class map, which is shown in the colours of its classes",
                         "Leave the option out, or show a scene.");
    if (s.no_legend && std::none_of(files.begin(), files.end(), is_map))
        throw UsageError("-no-legend: '" + files[0].path + "' is not a class map and has no legend",
                         "Leave the option out.");
}

/// Warns if a panel is black, or only black and white, and states the reason.
void warn_of_no_contrast(tool::Run& run, const Shown& file, const std::vector<int>& bands,
                         const Picked& picked, const std::vector<Limits>& limits, int64_t with_value,
                         const std::array<double, 2>& percent) {
    const std::string name = "'" + file.path + "': ";
    if (with_value == 0)
        return run.warn(
            name + "no displayed pixel has a value in " + bands_text(file, bands) +
            ": all are black. Choose other bands with -b, or check the nodata value (-srcnodata)");
    for (size_t k = 0; k < picked.size(); ++k) {
        float low = INFINITY, high = -INFINITY;
        size_t values = 0, within = 0;
        for (const float v : picked[k])
            if (std::isfinite(v)) {
                low = std::min(low, v);
                high = std::max(high, v);
                ++values;
                within += v >= limits[k][0] && v <= limits[k][1];
            }
        char text[160];
        if (limits[k][0] < limits[k][1]) {
            // The warning is printed if at most one in 50 values is within the limits.
            constexpr size_t few = 50;
            if (within * few > values) continue;
            std::snprintf(text, sizeof text,
                          ": %zu of %zu displayed values are within the stretch, from %g to %g per cent: all "
                          "others are black or white. Use a wider -stretch",
                          within, values, percent[0], percent[1]);
            run.warn(name + bands_text(file, {bands[k]}, false) + text);
            continue;
        }
        if (low == high)
            std::snprintf(text, sizeof text, "all displayed pixels have the value %.6g, which is black", low);
        else
            std::snprintf(
                text, sizeof text,
                "all values from %g to %g per cent are %.6g: larger values are white, all others black",
                percent[0], percent[1], limits[k][0]);
        run.warn(name + bands_text(file, {bands[k]}, false) + ": " + text +
                 (low == high ? "" : ". Use a wider -stretch"));
    }
}

/// Returns the limits of the scene of -like at the given bands.
std::vector<Limits> limits_like(tool::Run& run, const Settings& s, const Shown& like,
                                const std::vector<int>& bands) {
    const auto values = pick(run, like.source, bands, scale_of(like.source->shape(), s.size), 0);
    if (std::none_of(values.begin(), values.end(), [](const auto& band) {
            return std::any_of(band.begin(), band.end(), [](float v) { return std::isfinite(v); });
        }))
        throw Error("-like " + s.like + ": no displayed pixel has a value", "Use a scene with values there.");
    return limits_of_all(values, s.stretch);
}

/// Returns the description of a band, or its wavelength or number. for_values: returns a name of the values.
std::string name_of_band(const raster::RasterSource& source, int band, bool for_values = false) {
    const auto& facts = source.facts().bands;
    const auto b = static_cast<size_t>(band);
    const std::string number = std::to_string(source.bands()[b]);
    // GDAL names the bands of an ENVI file without names "Band 1" or "Band 1 (450.0 Nanometers)".
    const std::string by_default = "Band " + number;
    if (facts.names[b] != by_default && facts.names[b].rfind(by_default + " (", 0) != 0)
        return facts.names[b];
    return b < facts.wavelengths_nm.size() && std::isfinite(facts.wavelengths_nm[b])
               ? (for_values ? "value at " : "") + std::to_string(std::lround(facts.wavelengths_nm[b])) +
                     " nm"
               : (for_values ? "value of band " : "band ") + number;
}

/// Returns the colour bar of a grey panel. If the band has a scale, the numbers of the bar are scaled values.
ColourBar bar_of(const raster::RasterSource& source, int band, const Limits& limits, double gamma) {
    const auto& values = source.facts().bands.values;
    const auto b = static_cast<size_t>(band);
    const double scale = values.scale.empty() ? 1 : values.scale[b],
                 offset = values.offset.empty() ? 0 : values.offset[b];
    return {limits[0] * scale + offset, limits[1] * scale + offset,
            [=](double value) { return shade(static_cast<float>((value - offset) / scale), limits, gamma); },
            name_of_band(source, band, true) + (values.unit.empty() ? "" : " (" + values.unit + ")"),
            values.unit};
}

/// Vector formats of a page, where text stays sharp at every size.
enum class Page { none, svg, pdf };

Page page_of(const raster::OutputOptions& dst) {
    if (!dst.format.empty()) return Page::none;
    const std::string extension = raster::extension_of(dst.path);
    if (equal_names(extension, "svg")) return Page::svg;
    return equal_names(extension, "pdf") ? Page::pdf : Page::none;
}

/// Writes dst, which is a raster or a page.
class PictureFile {
  public:
    explicit PictureFile(tool::Run& run)
        : m_run(run), m_dst(run.options().destination), m_page(page_of(m_dst)),
          m_text(run.text_output("dst", m_page == Page::none ? std::string() : m_dst.path, m_dst.overwrite)) {
    }
    tools::Letters letters() const {
        return m_page == Page::svg   ? tools::Letters::all
               : m_page == Page::pdf ? tools::Letters::western
                                     : tools::Letters::dots;
    }
    void check(int64_t wide, int64_t high) const {
        raster::check_text_output(m_text);
        if (m_page == Page::none) tools::picture_output(m_dst, wide, high).check();
    }
    void write(const Canvas& picture) const {
        if (m_page == Page::none) return tools::write_picture(m_run, m_dst, picture, 0.1);
        raster::write_text_output(m_text, m_page == Page::svg ? picture.svg() : picture.pdf());
        tools::warn_of_letters(m_run, picture);
    }

  private:
    tool::Run& m_run;
    const raster::OutputOptions& m_dst;
    const Page m_page;
    const raster::TextOutput m_text;
};

void note_left_out(tool::Run& run, const Settings& s, int64_t names) {
    if (names == 0) return;
    run.note(counted(names, "name") + " of " + s.points + worded(names, " is", " are") +
             " left out for lack of space. A larger -size has more space");
    run.report()["names_left_out"] = names;
}

void run_quicklook(tool::Run& run, const Settings& s) {
    auto files = open_files(run, s);
    check_options(s, files);
    const auto like = open_like(run, s, files);
    const auto shape = files[0].source->shape();
    const Scale scale = scale_of(shape, s.size);
    std::vector<Panel> panels;
    for (size_t k = 0; k < files.size(); ++k)
        if (files[k].classes || !s.each)
            panels.push_back({k, files[k].bands});
        else
            for (int b = 0; b < files[k].source->shape().bands; ++b)
                panels.push_back({k, {b}});
    constexpr size_t most_panels = 64;
    if (panels.size() > most_panels)
        throw UsageError("-each: " + std::to_string(panels.size()) + " panels are more than " +
                             std::to_string(most_panels),
                         "Choose bands with -b.");
    const int64_t columns = s.each ? std::min<int64_t>(3, static_cast<int64_t>(panels.size()))
                                   : static_cast<int64_t>(panels.size());
    const int64_t rows = (static_cast<int64_t>(panels.size()) + columns - 1) / columns;
    const PictureFile file_of_picture(run);
    const tools::TextStyle style{file_of_picture.letters(),
                                 tools::dot_for(columns * scale.panel_samples, rows * scale.panel_lines)};
    const int64_t gap = gap_dots * style.dot;
    const int64_t wide = columns * (scale.panel_samples + gap) - gap;
    const int64_t high = rows * (scale.panel_lines + gap) - gap;
    file_of_picture.check(wide, high);
    const auto panel_bytes =
        static_cast<uint64_t>(scale.panel_samples * scale.panel_lines) * 3 * sizeof(float);
    if (panel_bytes + static_cast<uint64_t>(wide * high) * 3 > run.buffer_memory() / 2)
        throw Error("a picture of " + size_text(wide, high) + " pixels does not fit in -memory",
                    "Use a smaller -size, or more -memory.");
    const auto points = points_in(run, s, *files[0].source, scale);
    tool::end_of_plan(run, [&] {
        const auto seen = tool::only_bands(files[0].source, {0});
        Picked none;
        tool::print_plan(run, *seen, Picking(scale, none), run.pass("picking", 1));
    });

    std::vector<DrawnPanel> drawn;
    std::vector<Entry> legend;
    bool any_without_class = false;
    int64_t names_left_out = 0;
    const auto first_scene =
        std::find_if(files.begin(), files.end(), [](const Shown& file) { return file.classes == nullptr; });
    const Rgb none = s.frame ? no_value_colour : Rgb{};
    /// Limits of src, also used for files with the same number of bands.
    std::optional<std::vector<Limits>> shared;
    Json shown = Json::array();
    for (size_t k = 0; k < panels.size(); ++k) {
        Shown& file = files[panels[k].file];
        drawn.push_back({Canvas(scale.panel_samples, scale.panel_lines, style)});
        Canvas& canvas = drawn.back().canvas;
        std::string name;
        if (file.classes) {
            auto entries = entries_of(*file.classes);
            if (like && like->classes) take_colours(*like->classes, entries);
            any_without_class |= draw_classes(canvas, scale, *file.classes, entries, none);
            if (std::none_of(entries.begin(), entries.end(), [](const Entry& e) { return e.seen; }))
                run.warn("'" + file.path + "': no displayed pixel has a class: all are black");
            add_to_legend(entries, legend);
            shown.push_back({{"file", file.path}, {"classes", entries.size()}});
        } else {
            const auto picked =
                pick(run, file.source, panels[k].bands, scale, 0.9 / static_cast<double>(panels.size()));
            const bool like_first =
                panels[k].file > 0 && shared && shared->size() == picked.size() &&
                file.source->facts().bands.in_file == files[0].source->facts().bands.in_file;
            auto limits = like_first ? *shared : limits_of_all(picked, s.stretch);
            if (like && !like->classes &&
                file.source->facts().bands.in_file == first_scene->source->facts().bands.in_file)
                limits = limits_like(run, s, *like, panels[k].bands);
            if (k == 0) shared = limits;
            const double gamma = s.gamma > 0 ? s.gamma : file.natural ? land_gamma : 1;
            const int64_t with_value = draw_values(canvas, scale, picked, limits, gamma, none);
            if (s.frame && picked.size() == 1)
                drawn.back().bar = bar_of(*file.source, panels[k].bands[0], limits[0], gamma);
            if (s.frame && s.each) {
                name = name_of_band(*file.source, panels[k].bands[0]);
                draw_name(canvas, 0, 0, scale.panel_samples, name);
            }
            warn_of_no_contrast(run, file, panels[k].bands, picked, limits, with_value, s.stretch);
            run.note(file.path + ": " + bands_text(file, panels[k].bands));
            std::vector<int> bands;
            for (const int b : panels[k].bands)
                bands.push_back(file.source->bands()[static_cast<size_t>(b)]);
            shown.push_back({{"file", file.path}, {"bands", bands}, {"stretch", limits}, {"gamma", gamma}});
        }
        names_left_out = std::max(names_left_out, draw_rings(canvas, points, name));
    }
    run.report()["panels"] = shown;
    note_left_out(run, s, names_left_out);
    Canvas picture = assembled(std::move(drawn), columns, gap);
    if (!s.no_legend && !legend.empty())
        picture = with_legend(run, picture, gap, std::move(legend),
                              any_without_class ? std::optional(none) : std::nullopt);
    if (!s.title.empty() || s.frame)
        picture =
            framed(picture, s.title, s.frame, {*files[0].source, scale.panel_samples, scale.panel_lines});
    file_of_picture.write(picture);
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_destination(
        "The picture: .png, .jpg, .webp, .tif, .pdf, or .svg; it appears when it is complete");
    args.add_compute(false);
    args.input("beside", s.beside, Content::raster,
               "Also show this raster of the same size to the right of src: a scene or a class map");
    args.input("like", s.like, Content::raster,
               "Show src with the stretch of the scene FILE, or with the class colours of the map FILE");
    args.input("points", s.points, Content::vector, "Draw a ring around every point of FILE");
    args.option("point-names", s.point_names, "Write the value of this field of -points next to each ring")
        .shown_as("FIELD");
    args.option("size", s.size, "Longer side of a panel; smaller scenes are enlarged by an integer factor")
        .between(16, 8000)
        .in_unit("pixels");
    args.option("stretch", s.stretch, "Percentiles of the values that are shown as black and white")
        .between(0, 100)
        .shown_as("LOW HIGH");
    args.option("gamma", s.gamma, "Exponent of the stretched values: below 1 brightens dark areas")
        .above(0)
        .defaults_to("0.6 for scenes of visible light, else 1");
    args.flag("each", s.each, "Show each band of -b as a grey panel, three in a row");
    args.option("title", s.title, "Write this title above the picture").shown_as("TEXT");
    args.flag("frame", s.frame,
              "Draw a frame for a report: coordinates, scale bar, north arrow, colour bar, names of panels");
    args.flag("no-legend", s.no_legend, "Do not draw the legend of class maps");
    args.check([&s](const tool::Call& call) {
        const tool::CommonOptions& options = call.options();
        for (const char* name : {"stretch", "gamma"})
            if (call.given(name)) s.for_values += (s.for_values.empty() ? "-" : " and -") + std::string(name);
        if (call.given("point-names") && s.points.empty())
            throw UsageError(tool::option_requires("-point-names", "-points"));
        if (s.stretch[0] >= s.stretch[1])
            throw UsageError("-stretch: the first number must be below the second");
        if (!options.destination.type.empty() && options.destination.type != "Byte")
            throw UsageError("-ot " + options.destination.type + ": a picture must have the type Byte",
                             "Convert it afterwards with gdal_translate -ot.");
        if (options.destination.nodata)
            throw UsageError("-dstnodata cannot be used for a picture", "Leave it out.");
        if (page_of(options.destination) != Page::none)
            for (const char* name : {"co", "stac"})
                if (call.given(name))
                    throw UsageError(tool::cannot_be_used_with("-" + std::string(name), "an .svg or .pdf"),
                                     "Leave it out, or write a .png.");
    });
    args.body([&s](tool::Run& run) { run_quicklook(run, s); });
}

} // namespace
} // namespace quicklook_tool

namespace tools {

extern constinit const tool::Definition quicklook{
    "quicklook",
    "Pictures of scenes and maps",
    "Makes a picture of a scene in natural colours or of any bands, of a class map with its "
    "legend, or of several side by side, and draws rings around points. By default, the bands"
    " nearest to 650, 550 and 450 nm are shown; without wavelengths, the first, middle and "
    "last band.",
    {{"gdal_hsi_quicklook scene.img scene.png", "A scene in natural colours"},
     {"gdal_hsi_quicklook -beside map.tif scene.img both.png", "A scene and its class map, with the legend"},
     {"gdal_hsi_quicklook -beside smooth.tif -points targets.gpkg scene.img both.png",
      "Before and after, with targets"},
     {"gdal_hsi_quicklook -frame -points targets.gpkg -point-names rank scene.img targets.svg",
      "Numbered targets, as an SVG for print"},
     {"gdal_hsi_quicklook -frame -title 'Potsdam, 20 July' scene.img report.png",
      "With coordinates, scale bar and north arrow"},
     {"gdal_hsi_quicklook -b 1 -b 2 -b 3 pcs.tif components.png", "Components as red, green and blue"},
     {"gdal_hsi_quicklook -each -b 1 -b 2 -b 3 -b 4 pcs.tif components.png", "One panel per component"}},
    "Only the displayed pixels are read: in a large scene, those nearest to the centres of the picture's "
    "pixels. "
    "Pixels without a value are black.",
    quicklook_tool::declare,
    true};

} // namespace tools
} // namespace hsi
