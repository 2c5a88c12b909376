// SPDX-License-Identifier: MIT
// Class labels from any raster or vector file, line by line on the grid of a scene. One reader for every
// tool.
//
// Rasters: one band of whole numbers; negative numbers, nodata, NaN and masked pixels mean "no label", and 0
// does where it is not plainly a class (ZeroMeans). On another grid or in another SRS they are resampled: a
// scene pixel gets the label of the pixel that its centre falls into. Vectors: polygons, lines or points with
// a class field; another SRS is reprojected with PROJ. A polygon burns the pixels whose centres it covers, or
// the pixels that polygons of its class cover by the requested share; a point burns the pixel that it is in;
// later features win. Tables of points (point_table.h) are vectors, too. Names and colours come from category
// names, the colour table and the attribute table of a raster, or from a field of a vector file.
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

/// The position of pixels. Two grids are the same when sizes, SRS and geotransform are (to a thousandth of a
/// pixel).
struct Grid {
    int64_t samples = 0, lines = 0;
    std::optional<std::array<double, 6>> geotransform;
    std::string srs_wkt;             ///< empty if unknown
    std::string owner = "the scene"; ///< whose it is, for messages
    /// It has a place on Earth without a geotransform: arrays of longitude and latitude, ground control
    /// points, rational polynomials.
    bool placed_otherwise = false;
};
Grid grid_of(const RasterSource& source);
/// Compares by that rule, but an unknown SRS is not a difference, and if one of the two has no geotransform
/// only the sizes are compared.
bool same_grid(const Grid& a, const Grid& b);

/// The meaning of 0 in a file of labels.
enum class ZeroMeans {
    /// 0 is a class where the file says so plainly: a raster whose category 0 has a name that does not mean
    /// "none" (as "Unclassified" does) while 0 is not its nodata value; a vector file with features of class
    /// 0, which somebody has put there, unless their name means "none". Otherwise 0 means "no label".
    what_is_plain,
    a_class,
    no_label
};

struct LabelOptions {
    std::string path;
    std::string field;        ///< class field of a vector file; empty: the only one that fits
    std::string name_field;   ///< class names next to a numeric field; empty: found by its name
    std::string layer;        ///< empty: the first one that has the field
    bool all_touched = false; ///< burn every pixel that a polygon or line touches
    bool inside_only = false; ///< burn only pixels that are entirely in a polygon
    /// Burn the pixels that the polygons of one class together cover by at least this share, above 0 to 1; an
    /// area that several polygons cover counts once. The class of the largest share wins; among equal shares,
    /// the smallest class number. At most one of these three is set.
    std::optional<double> min_cover;
    bool shares = false; ///< LabelSource::shares() will be asked
    /// Pixels of these classes have no label: numbers or names with commas between them, "5,Soil"
    /// (listed_words()). A name that several classes share selects all of them.
    std::vector<std::string> leave_out;
    /// Options for features (fields, layer, which pixels they label) and left-out classes also apply to
    /// another file. A raster then ignores the former, and a left-out class that the file does not have is
    /// ignored; otherwise both are errors.
    bool said_of_another = false;
    /// Coordinates of features are samples and lines from the grid's upper left corner, in any SRS. This is
    /// also the default if neither features nor grid are georeferenced.
    bool pixel_coordinates = false;
    ZeroMeans zero = ZeroMeans::what_is_plain;
    /// Read as numbers of any kind, for LabelSource::values(): `field` holds numbers, and 0 is a valid
    /// number.
    bool values = false;
    std::string group_field; ///< with `values`, for features: the field of groups; empty: none
    bool mask = false;       ///< read as a mask: 1 where the raster is not 0 or inside of a feature, no field
    std::vector<std::string> open_options; ///< NAME=VALUE
};

class LabelSource;
/// LabelSource::open() with all classes: of files, or of arrays.
std::unique_ptr<LabelSource> open_all_labels(const LabelOptions& options, const Grid* grid);
/// A value that pixels of a scene have: of a feature, or of one pixel of a raster.
struct ValueSample {
    double value = 0;
    std::string group;           ///< LabelOptions::group_field; empty: none
    std::vector<int64_t> pixels; ///< line * samples + sample, ascending; empty for a feature outside
};

class LabelSource {
  public:
    /// `grid`: read on this grid; null: on the raster's own grid (a vector file has none: Error). Throws
    /// Error naming the file: does not open, several bands, complex numbers, no such field or layer, no
    /// georeference while the sizes differ, features that cannot be placed on the grid. Throws UsageError for
    /// a text of leave_out that is not a list.
    static std::unique_ptr<LabelSource> open(const LabelOptions& options, const Grid* grid = nullptr) {
        auto source = open_all_labels(options, grid);
        if (!options.leave_out.empty()) source->leave_out(options);
        return source;
    }
    virtual ~LabelSource() = default;

    const Grid& grid() const { return m_grid; }
    /// The classes that the file lists, by value, without left-out ones. Pixels may hold others.
    const std::vector<LabelClass>& legend() const { return m_legend; }
    /// Whole lines [line, line + count) into out (count x samples values); none(): no label. Throws Error
    /// when a value is not a class (a fraction, above max_class) or the file cannot be read. Use it on one
    /// thread at a time.
    void read(int64_t line, int64_t count, uint16_t* out);
    /// Call it when all lines are read: throws UsageError, listing the existing classes, if a class that was
    /// to be left out is neither among them nor in the file's legend.
    void check_left_out() const;
    /// Those texts, without throwing: in other files there may be such a class.
    std::vector<std::string> not_left_out() const;
    /// Whether a pixel so far would have a label, were its class not left out.
    bool left_any_out() const { return m_left_any_out; }
    /// The value of read() for no label, or for pixels outside of a mask: 0. If 0 is a class of the file, it
    /// is 65535, which is then not a class.
    uint16_t none() const { return m_none; }
    bool zero_is_class() const { return m_none != 0; }
    /// Whether the file does not state the meaning of 0, which then means "no label".
    bool zero_is_open() const { return m_zero_is_open; }
    /// "raster", "raster, resampled", "vector, 120 features, reprojected": for reports.
    const std::string& description() const { return m_description; }
    /// Notes for the user: an SRS that was assumed, features without a class.
    const std::vector<std::string>& notes() const { return m_notes; }
    /// Facts found in reading so far: numbers that are not labels, pixels in features of several classes.
    virtual std::vector<std::string> reading_notes() const { return {}; }
    const std::string& path() const { return m_path; }
    /// For a raster: the value of a metadata item ("HSI_HISTORY"); empty if absent.
    virtual std::string item(const std::string&) const { return {}; }
    /// For features with LabelOptions::shares: the classes of polygons, ascending, and the share of every
    /// pixel that polygons of class `value` cover, 0 to 1 (count x samples values), independent of its label.
    /// Left-out classes are not included.
    std::vector<uint16_t> share_classes() const;
    virtual void shares(int64_t line, int64_t count, uint16_t value, float* out);
    /// With LabelOptions::values: features as read, which may overlap, or pixels in raster order.
    virtual std::vector<ValueSample> values() = 0;
    virtual bool of_features() const { return false; }
    const std::string& value_name() const { return m_value_name; } ///< the field; of a raster empty
    /// For features, each polygon separately (also the parts of multipolygons): its class and the pixels
    /// (line * samples + sample, ascending) that it touches; some of them may have another label.
    using EachPolygon = std::function<void(uint16_t value, const std::vector<int64_t>& pixels)>;
    virtual void each_polygon(const EachPolygon&) const {}
    /// Features on the grid that label nothing because they are too small or narrow; right when all lines
    /// are read.
    virtual int64_t too_small() const { return 0; }
    /// Features outside of the grid that no note of notes() counts.
    virtual int64_t outside() const { return 0; }
    /// For a raster: whether the grid has met any of its pixels so far, their least value, at most 0, the
    /// count of zeros, and the class if all others have one class (else 0).
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
    std::set<int> classes_there() const; ///< that were read, or are known of the file

    std::vector<char> m_left_out, m_read; ///< by class, and whether it was read; empty: none is left out
    std::vector<std::string> m_unproved;  ///< texts that reading has to find a class for
    std::map<int, std::string> m_names;   ///< of all classes of the file
    bool m_left_any_out = false;
};

/// The labelled pixels of a scene in scan order.
struct LabelledPixels {
    Grid grid;
    std::vector<int64_t> index;      ///< line * samples + sample
    std::vector<uint16_t> value;     ///< its class
    std::vector<LabelClass> classes; ///< those that occur, by value, with counts
    std::vector<std::string> notes;  ///< reading_notes(), and names that two classes share
};

/// The Error when `source`, read to its end, labels no pixel of its grid: the labels are outside of it, too
/// small, or absent.
Error no_labels(const LabelSource& source);

/// Reads all lines. Throws Error when no pixel has a label (the labels are outside of the scene, say), and as
/// check_left_out().
LabelledPixels collect_labels(LabelSource& source);

/// A colour for a class without one in its file: distinct for neighbours in the list, the same every time.
Colour default_colour(int value);

/// "classes 1 and 3 are both called 'forest'", for the first such pair; empty without one.
std::string shared_name(const std::vector<LabelClass>& classes);

/// Makes `spec` a class map: pixel type, category names and colours for 0 ("Unclassified", transparent) and
/// all classes, so that GIS programs show a legend. Sets 0 as nodata unless options.nodata is set. Where 0 is
/// one of the classes, nodata is the greatest number of the type: 255, or 65535. Throws UsageError when a
/// type that the options ask for does not hold the classes, or when no number is left for nodata.
void describe_class_map(const std::vector<LabelClass>& classes, OutputOptions& options, OutputSpec& spec);

} // namespace hsi::raster
