// SPDX-License-Identifier: MIT
// Class labels from any raster or vector file, line by line on the grid of a scene. All tools use this
// reader.
//
// Rasters have one band of whole numbers. Negative numbers, nodata, NaN and masked pixels mean "no label"; 0
// also does unless it is clearly a class (ZeroMeans). Rasters on another grid or in another SRS are
// resampled: a scene pixel gets the label of the pixel that contains its centre. Vectors are polygons, lines
// or points with a class field; another SRS is reprojected with PROJ. A polygon labels the pixels whose
// centres it covers, or the pixels of which the polygons of its class cover at least the requested fraction.
// A point labels its pixel. Later features replace earlier ones. Tables of points (point_table.h) are also
// vectors. Names and colours are from category names, the colour table and the attribute table of a raster,
// or from a field of a vector file.
#pragma once

#include "core/error.h"
#include "core/label_class.h"
#include "raster/raster_sink.h"
#include "raster/raster_source.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hsi::raster {

inline constexpr int max_class = 65535;
using hsi::Colour;
using hsi::LabelClass; ///< pixels: counted by collect_labels() and count_labels()

/// The position of pixels. Two grids are the same if sizes, SRS and geotransform are the same (to a
/// thousandth of a pixel).
struct Grid {
    int64_t samples = 0, lines = 0;
    std::optional<std::array<double, 6>> geotransform;
    std::string srs_wkt;             ///< empty if unknown
    std::string owner = "the scene"; ///< the owner of the grid, for messages
    /// The grid has a position on Earth without a geotransform: arrays of longitude and latitude, ground
    /// control points, rational polynomials.
    bool placed_otherwise = false;
};
Grid grid_of(const RasterSource& source);
/// Compares two grids by that rule, but ignores an unknown SRS, and compares only the sizes if one grid has
/// no geotransform.
bool same_grid(const Grid& a, const Grid& b);

/// The meaning of 0 in a file of labels.
enum class ZeroMeans {
    /// 0 is a class if the file states it clearly, else "no label". In a raster, category 0 must have a name
    /// that does not mean "none" (as "Unclassified" does), and 0 must not be its nodata value. In a vector
    /// file, features of class 0 suffice unless their name means "none".
    what_is_plain,
    a_class,
    no_label
};

struct LabelOptions {
    std::string path;
    std::string field;        ///< class field of a vector file; empty: the only suitable one
    std::string name_field;   ///< class names next to a numeric field; empty: found by its name
    std::string layer;        ///< empty: the first layer that has the field
    bool all_touched = false; ///< label every pixel that a polygon or line touches
    bool inside_only = false; ///< label only pixels that are entirely in a polygon
    /// Labels the pixels of which the polygons of one class together cover at least this fraction, above 0 to
    /// 1. An area that several polygons cover counts once. The class of the largest fraction wins; among
    /// equal fractions, the smallest class number. Set at most one of these three options.
    std::optional<double> min_cover;
    bool shares = false; ///< LabelSource::shares() will be called
    /// Pixels of these classes have no label. Texts are numbers or names with commas between them, "5,Soil"
    /// (listed_words()). A name that several classes share selects all of them.
    std::vector<std::string> leave_out;
    /// Options for features (fields, layer, selection of pixels) and left-out classes also apply to another
    /// file. A raster then ignores the options for features, and a left-out class that the file does not have
    /// is ignored; otherwise both are errors.
    bool said_of_another = false;
    /// Coordinates of features are samples and lines from the grid's upper left corner, in any SRS. This is
    /// also the default if neither features nor grid are georeferenced.
    bool pixel_coordinates = false;
    ZeroMeans zero = ZeroMeans::what_is_plain;
    /// Reads numbers of any meaning for LabelSource::values(): `field` contains numbers, and 0 is a valid
    /// number.
    bool values = false;
    std::string group_field; ///< with `values`, for features: the field of groups; empty: none
    bool mask = false;       ///< read as a mask: 1 where the raster is not 0 or inside a feature; no field
    std::vector<std::string> open_options; ///< NAME=VALUE
};

class LabelSource;
/// Returns the same as LabelSource::open() with all classes, from files or from arrays.
std::unique_ptr<LabelSource> open_all_labels(const LabelOptions& options, const Grid* grid);
/// A value of some pixels of a scene: from a feature, or from one pixel of a raster.
struct ValueSample {
    double value = 0;
    std::string group;           ///< LabelOptions::group_field; empty: none
    std::vector<int64_t> pixels; ///< line * samples + sample, ascending; empty for a feature outside
};

class LabelSource {
  public:
    /// Opens labels on `grid`; null: on the raster's own grid (a vector file has none: Error). Throws Error
    /// that names the file if it does not open, has several bands, complex numbers, no such field or layer,
    /// or no georeference while the sizes differ, or if its features cannot be placed on the grid. Throws
    /// UsageError for a text of leave_out that is not a list.
    static std::unique_ptr<LabelSource> open(const LabelOptions& options, const Grid* grid = nullptr) {
        auto source = open_all_labels(options, grid);
        if (!options.leave_out.empty()) source->leave_out(options);
        return source;
    }
    virtual ~LabelSource() = default;

    const Grid& grid() const { return m_grid; }
    /// Returns the classes that the file lists, by value, without left-out classes. Pixels may have other
    /// classes.
    const std::vector<LabelClass>& legend() const { return m_legend; }
    /// Reads whole lines [line, line + count) to out (count x samples values); none() means no label. Throws
    /// Error if a value is not a class (a fraction, above max_class) or if the file cannot be read. Use it on
    /// one thread at a time.
    void read(int64_t line, int64_t count, uint16_t* out);
    /// Throws UsageError that lists the existing classes if a class to be left out is neither among them nor
    /// in the file's legend. Call it when all lines are read.
    void check_left_out() const;
    /// Returns these texts without throwing, because other files may have such a class.
    std::vector<std::string> not_left_out() const;
    /// Returns whether a pixel so far has no label only because its class is left out.
    bool left_any_out() const { return m_left_any_out; }
    /// Returns the value of read() for no label, or for pixels outside of a mask. It is 0, or, if 0 is a
    /// class of the file, 65535, which is then not a class.
    uint16_t none() const { return m_none; }
    bool zero_is_class() const { return m_none != 0; }
    /// Returns whether the file does not state the meaning of 0, which then means "no label".
    bool zero_is_open() const { return m_zero_is_open; }
    /// Returns "raster", "raster, resampled" or "vector, 120 features, reprojected", for reports.
    const std::string& description() const { return m_description; }
    /// Returns notes for the user: an SRS that was assumed, features without a class.
    const std::vector<std::string>& notes() const { return m_notes; }
    /// Returns facts found so far in reading: numbers that are not labels, pixels in features of several
    /// classes.
    virtual std::vector<std::string> reading_notes() const { return {}; }
    const std::string& path() const { return m_path; }
    /// Returns the value of a raster's metadata item ("HSI_HISTORY"); empty if absent.
    virtual std::string item(const std::string&) const { return {}; }
    /// Return, for features with LabelOptions::shares, the classes of polygons, ascending, and the fraction
    /// of every pixel that polygons of class `value` cover, 0 to 1 (count x samples values). The fraction
    /// does not depend on the pixel's label. Left-out classes are not included.
    std::vector<uint16_t> share_classes() const;
    virtual void shares(int64_t line, int64_t count, uint16_t value, float* out);
    /// Returns, with LabelOptions::values, the values of features as read, which may overlap, or of pixels in
    /// raster order.
    virtual std::vector<ValueSample> values() = 0;
    virtual bool of_features() const { return false; }
    const std::string& value_name() const { return m_value_name; } ///< the field; empty for a raster
    /// Receives each polygon of features separately, also the parts of multipolygons: its class and the
    /// pixels (line * samples + sample, ascending) that it touches. Some of these pixels may have another
    /// label.
    using EachPolygon = std::function<void(uint16_t value, const std::vector<int64_t>& pixels)>;
    virtual void each_polygon(const EachPolygon&) const {}
    /// Returns the number of features on the grid that label nothing because they are too small or narrow. It
    /// is correct when all lines are read.
    virtual int64_t too_small() const { return 0; }
    /// Returns the number of features outside of the grid that no note of notes() counts.
    virtual int64_t outside() const { return 0; }
    /// Return facts about the pixels of a raster that the grid has met so far: whether there are any, their
    /// minimum (at most 0), the number of zeros, and the class if all others have one class (else 0).
    bool seen() const { return m_seen; }
    double least() const { return m_least; }
    int64_t zeros() const { return m_zeros; }
    int only_class() const { return std::max(m_only_class, 0); }

  protected:
    virtual void read_lines(int64_t line, int64_t count, uint16_t* out) = 0;
    virtual std::vector<uint16_t> polygon_classes() const { return {}; }
    std::set<int> m_known; ///< classes that are certainly in the file, even if outside of the grid

    bool m_seen = false, m_zero_is_open = false;
    double m_least = 0;
    int64_t m_zeros = 0;
    int m_only_class = 0; ///< -1: there are several
    uint16_t m_none = 0;
    Grid m_grid;
    std::vector<LabelClass> m_legend;
    std::string m_description, m_path, m_value_name;
    std::vector<std::string> m_notes;

  private:
    void leave_out(const LabelOptions& options);
    std::set<int> classes_there() const; ///< those that were read, or are known to be in the file

    std::vector<char> m_left_out, m_read; ///< by class: left out, and read; empty: no class is left out
    std::vector<std::string> m_unproved;  ///< texts whose class must still be found while reading
    std::map<int, std::string> m_names;   ///< of all classes of the file
    bool m_left_any_out = false;
};

/// The labelled pixels of a scene in scan order.
struct LabelledPixels {
    Grid grid;
    std::vector<int64_t> index;      ///< line * samples + sample
    std::vector<uint16_t> value;     ///< its class
    std::vector<LabelClass> classes; ///< the classes that occur, by value, with counts
    std::vector<std::string> notes;  ///< reading_notes(), and names that two classes share
};

/// Returns the Error for labels that label no pixel of the grid, after `source` is read to its end: the
/// labels are outside of it, too small, or absent.
Error no_labels(const LabelSource& source);

/// Reads all lines. Throws Error if no pixel has a label (for example if the labels are outside of the
/// scene), and as check_left_out().
LabelledPixels collect_labels(LabelSource& source);

/// Returns a colour for a class without a colour in its file: distinct for neighbours in the list, and always
/// the same.
Colour default_colour(int value);

/// Returns "classes 1 and 3 are both called 'forest'" for the first such pair; empty without one.
std::string shared_name(const std::vector<LabelClass>& classes);

/// Makes `spec` a class map: pixel type, category names and colours for 0 ("Unclassified", transparent) and
/// all classes, so that GIS programs show a legend. Sets 0 as nodata unless options.nodata is set. If 0 is a
/// class, nodata is the greatest number of the type: 255 or 65535. Throws UsageError if the requested type
/// cannot represent the classes, or if no number is left for nodata.
void describe_class_map(const std::vector<LabelClass>& classes, OutputOptions& options, OutputSpec& spec);

} // namespace hsi::raster
