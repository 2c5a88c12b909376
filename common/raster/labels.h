// SPDX-License-Identifier: MIT
// Class labels from any raster or vector file, line by line on the grid of a scene. One reader for every
// tool.
//
// Rasters: one band of whole numbers; negative numbers, nodata, NaN and masked pixels mean "no label", and 0
// does where it is not plainly a class (ZeroMeans). On another grid or in another SRS they are resampled: a
// scene pixel gets the label of the pixel that its centre falls into. Vectors: polygons, lines or points with
// a class field; another SRS is reprojected with PROJ; a polygon burns the pixels whose centres it covers, or
// those of which polygons of its class cover so much, a point the pixel that it lies in; later features win.
// Tables of points (point_table.h) are vectors, too. Names and colours come from category names, the colour
// table and the attribute table of a raster, or from a field of a vector file.
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

/// Where pixels lie. Two grids are the same when sizes, SRS and geotransform are (to a thousandth of a
/// pixel).
struct Grid {
    int64_t samples = 0, lines = 0;
    std::optional<std::array<double, 6>> geotransform;
    std::string srs_wkt;             ///< empty when there is none
    std::string owner = "the scene"; ///< whose it is, for messages
    /// It has a place on Earth without a geotransform: arrays of longitude and latitude, ground control
    /// points, rational polynomials.
    bool placed_otherwise = false;
};
Grid grid_of(const RasterSource& source);
/// By that rule, but an SRS that is unknown is no difference, and where one of the two has no geotransform
/// nothing but the size is compared.
bool same_grid(const Grid& a, const Grid& b);

/// What 0 means in a file of labels.
enum class ZeroMeans {
    /// A class where the file says so plainly: a raster whose category 0 has a name that is none for nothing
    /// ("Unclassified" is one) while 0 is not its nodata value; a vector file with features of class 0, which
    /// somebody has put there, unless they are called so. Else no label.
    what_is_plain,
    a_class,
    no_label
};

struct LabelOptions {
    std::string path;
    std::string field;        ///< class field of a vector file; empty: the only one that fits
    std::string name_field;   ///< class names beside a field of numbers; empty: found by its name
    std::string layer;        ///< empty: the first one that has the field
    bool all_touched = false; ///< burn every pixel that a polygon or line touches
    bool inside_only = false; ///< burn only pixels that lie in a polygon as a whole
    /// Burn the pixels of which the polygons of one class cover at least this share, above 0 to 1: together,
    /// what several of them cover counting once. The class of the largest share wins, of equal ones that of
    /// the smallest number. At most one of these three.
    std::optional<double> min_cover;
    bool shares = false; ///< LabelSource::shares() will be asked
    /// Pixels of these classes have no label: texts of numbers or names with commas between them, "5,Soil"
    /// (listed_words()). A name that several classes share stands for all of them.
    std::vector<std::string> leave_out;
    /// What is said of features (fields, layer, which pixels they label) and of classes to leave out is said
    /// of another file, too: a raster is read without the former, and a class that the file has not is none
    /// to leave out, instead of being refused.
    bool said_of_another = false;
    /// Coordinates of features are samples and lines from the grid's upper left corner, whatever SRS they are
    /// said to be in. So they are taken without this where neither features nor grid tell of a place.
    bool pixel_coordinates = false;
    ZeroMeans zero = ZeroMeans::what_is_plain;
    /// Read as numbers of any kind, for LabelSource::values(): `field` holds numbers, 0 is one of them.
    bool values = false;
    std::string group_field; ///< with `values`, of features: what is one group; empty: none
    bool mask = false;       ///< read as a mask: 1 where the raster is not 0 or a feature lies, no field
    std::vector<std::string> open_options; ///< NAME=VALUE
};

class LabelSource;
/// LabelSource::open() with all classes: of files, or of arrays.
std::unique_ptr<LabelSource> open_all_labels(const LabelOptions& options, const Grid* grid);
/// A number that pixels of a scene have: a feature's, or that of one pixel of a raster.
struct ValueSample {
    double value = 0;
    std::string group;           ///< LabelOptions::group_field; empty: none
    std::vector<int64_t> pixels; ///< line * samples + sample, ascending; none where a feature lies outside
};

class LabelSource {
  public:
    /// `grid`: read on this grid; null: on the raster's own (a vector file has none: Error). Throws Error
    /// naming the file: does not open, several bands, complex numbers, no such field or layer, no
    /// georeference while the sizes differ, features that cannot be placed on the grid. Throws UsageError
    /// for a text of leave_out that is no list.
    static std::unique_ptr<LabelSource> open(const LabelOptions& options, const Grid* grid = nullptr) {
        auto source = open_all_labels(options, grid);
        if (!options.leave_out.empty()) source->leave_out(options);
        return source;
    }
    virtual ~LabelSource() = default;

    const Grid& grid() const { return m_grid; }
    /// The classes that the file tells of, by value, without those left out. Pixels may hold others.
    const std::vector<LabelClass>& legend() const { return m_legend; }
    /// Whole lines [line, line + count) into out (count x samples values); none(): no label. Throws Error
    /// when a value is no class (a fraction, above max_class) or the file cannot be read. One thread at a
    /// time.
    void read(int64_t line, int64_t count, uint16_t* out);
    /// When all lines are read: throws UsageError, naming the classes that there are, where one that was to
    /// be left out is neither among them nor in the file's legend.
    void check_left_out() const;
    /// Those texts, without throwing: in other files there may be such a class.
    std::vector<std::string> not_left_out() const;
    /// Whether a pixel so far would have a label, were its class not left out.
    bool left_any_out() const { return m_left_any_out; }
    /// What read() gives where there is no label, or a mask has nothing: 0. Where 0 is a class of the file it
    /// is 65535, and no class.
    uint16_t none() const { return m_none; }
    bool zero_is_class() const { return m_none != 0; }
    /// Whether the file says nothing of its 0, which is then no label.
    bool zero_is_open() const { return m_zero_is_open; }
    /// "raster", "raster, resampled", "vector, 120 features, reprojected": for reports.
    const std::string& description() const { return m_description; }
    /// What a user should know: an SRS that was assumed, features without a class.
    const std::vector<std::string>& notes() const { return m_notes; }
    /// What reading has shown so far: numbers that are no labels, pixels in features of several classes.
    virtual std::vector<std::string> reading_notes() const { return {}; }
    const std::string& path() const { return m_path; }
    /// Of a raster: what an item of its metadata says ("HSI_HISTORY"); empty: there is none.
    virtual std::string item(const std::string&) const { return {}; }
    /// With LabelOptions::shares, of features: the classes of polygons, ascending, and what those of class
    /// `value` cover of every pixel, 0 to 1 (count x samples values), whatever labels it. Not of classes left
    /// out.
    std::vector<uint16_t> share_classes() const;
    virtual void shares(int64_t line, int64_t count, uint16_t value, float* out);
    /// With LabelOptions::values: features as read, which may overlap, or pixels in raster order.
    virtual std::vector<ValueSample> values() = 0;
    virtual bool of_features() const { return false; }
    const std::string& value_name() const { return m_value_name; } ///< the field; of a raster empty
    /// Of features, each polygon by itself (multipolygons taken apart): its class and the pixels (line *
    /// samples + sample, ascending) that it lies in, be it in part; not all of them need have its label.
    using EachPolygon = std::function<void(uint16_t value, const std::vector<int64_t>& pixels)>;
    virtual void each_polygon(const EachPolygon&) const {}
    /// Features on the grid that label nothing because they are too small or narrow; right when all lines
    /// are read.
    virtual int64_t too_small() const { return 0; }
    /// Features that lie wholly beside the grid and no note of notes() counts.
    virtual int64_t outside() const { return 0; }
    /// Of a raster: whether any of its pixels lay in the grid so far, the least number among them, at most 0,
    /// how many were 0, and the class when all others were of one (else 0).
    bool seen() const { return m_seen; }
    double least() const { return m_least; }
    int64_t zeros() const { return m_zeros; }
    int only_class() const { return std::max(m_only_class, 0); }

  protected:
    virtual void read_lines(int64_t line, int64_t count, uint16_t* out) = 0;
    virtual std::vector<uint16_t> polygon_classes() const { return {}; }
    std::set<int> m_known; ///< classes that the file has for certain, be it beside the grid

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

/// What to throw when `source`, read to its end, labels no pixel of its grid: the labels lie beside it, are
/// too small, or there are none.
Error no_labels(const LabelSource& source);

/// Reads all lines. Throws Error when no pixel has a label (the labels lie beside the scene, say), and as
/// check_left_out().
LabelledPixels collect_labels(LabelSource& source);

/// A colour for a class whose file has none: distinct for neighbours in the list, the same every time.
Colour default_colour(int value);

/// "classes 1 and 3 are both called 'forest'", of the first such pair; empty: there is none.
std::string shared_name(const std::vector<LabelClass>& classes);

/// Makes `spec` a class map: pixel type, category names and colours for 0 ("Unclassified", transparent) and
/// all classes, so that GIS programs show a legend. Sets 0 as nodata unless options.nodata is set. Where 0 is
/// one of the classes, nodata is the greatest number of the type: 255, or 65535. Throws UsageError when a
/// type that the options ask for does not hold the classes, or when no number is left for nodata.
void describe_class_map(const std::vector<LabelClass>& classes, OutputOptions& options, OutputSpec& spec);

} // namespace hsi::raster
