// SPDX-License-Identifier: MIT
// Class labels from any raster or vector file, line by line on the grid of a scene. All tools use this
// reader.
//
// Rasters have one band of whole numbers. Negative numbers, nodata, NaN and masked pixels mean "no label"; 0
// also means "no label", unless the file clearly uses 0 as a class, or the user states that 0 is a class
// (ZeroMeans). Rasters on another grid or in another SRS are resampled: a scene pixel gets the label of the
// pixel that contains its centre. Vectors are polygons, lines or points with a class field; features in
// another SRS are reprojected with PROJ. A polygon labels the pixels whose centres are inside the polygon. If
// a minimum fraction is requested, a pixel is labelled if the polygons of one class cover at least that
// fraction of the pixel. A point labels the pixel that contains the point. Later features replace earlier
// ones. Tables of points (point_table.h) are also vectors. Names and colours of classes are from category
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
using hsi::LabelClass; ///< LabelClass::pixels is counted by collect_labels() and count_labels()

/// The size and the position of a raster. Two grids are the same if their sizes and SRS are equal, and their
/// geotransforms agree to a thousandth of a pixel.
struct Grid {
    int64_t samples = 0, lines = 0;
    std::optional<std::array<double, 6>> geotransform;
    std::string srs_wkt;             ///< empty if unknown
    std::string owner = "the scene"; ///< the owner of the grid, for messages
    /// True: the grid has no geotransform, but other data state its position on Earth: arrays of longitude
    /// and latitude, ground control points, or rational polynomials.
    bool placed_otherwise = false;
};
Grid grid_of(const RasterSource& source);
/// Returns true if two grids are the same, as defined for Grid. An unknown SRS counts as equal to any SRS. If
/// a grid has no geotransform, only the sizes are compared.
bool same_grid(const Grid& a, const Grid& b);

/// The meaning of 0 in a file of labels.
enum class ZeroMeans {
    /// 0 is a class only if the file shows this clearly; otherwise 0 means "no label". In a raster, 0 is a
    /// class if category 0 has the name of a class and 0 is not the nodata value; a name such as
    /// "Unclassified" does not count. In a vector file, 0 is a class if features have the class 0, unless all
    /// of them have such a name.
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
    /// A pixel is labelled if the polygons of one class together cover at least this fraction of the pixel,
    /// above 0 to 1. An area that several polygons of a class cover counts once. The pixel gets the class
    /// with the largest fraction; among equal fractions, the smallest class number. Set at most one of
    /// all_touched, inside_only and min_cover.
    std::optional<double> min_cover;
    bool shares = false; ///< LabelSource::shares() will be called
    /// Pixels of these classes have no label. Each text lists numbers or names, separated by commas, as in
    /// "5,Soil" (listed_words()). A name that several classes share selects all of them.
    std::vector<std::string> leave_out;
    /// True: the user gave one set of options for several label files. A raster then ignores the options for
    /// features (fields, layer, selection of pixels), and a file ignores left-out classes that it does not
    /// have. False: both cases are errors.
    bool said_of_another = false;
    /// True: the coordinates of features are samples and lines, counted from the grid's upper left corner,
    /// whatever SRS the file states. Coordinates are also read in this way if neither the features nor the
    /// grid are georeferenced.
    bool pixel_coordinates = false;
    ZeroMeans zero = ZeroMeans::what_is_plain;
    /// True: the file contains numbers of any meaning instead of classes, which LabelSource::values()
    /// returns. `field` must contain numbers, and 0 is a valid number.
    bool values = false;
    /// Name of the field that states the group of each feature, if `values` is set; empty: no groups.
    std::string group_field;
    /// True: the file is read as a mask. Pixels get 1 if the raster is not 0 there, or if a feature labels
    /// them. `field` is not used.
    bool mask = false;
    std::vector<std::string> open_options; ///< NAME=VALUE
};

class LabelSource;
/// Opens labels in a file or an array as LabelSource::open() does, but ignores LabelOptions::leave_out.
std::unique_ptr<LabelSource> open_all_labels(const LabelOptions& options, const Grid* grid);
/// A value and the pixels of the scene to which it applies. The value is from a feature, or from one pixel of
/// a raster.
struct ValueSample {
    double value = 0;
    std::string group; ///< value of the field LabelOptions::group_field; empty: none
    /// Positions line * samples + sample, ascending; empty for a feature outside of the grid.
    std::vector<int64_t> pixels;
};

class LabelSource {
  public:
    /// Opens labels on `grid`. If `grid` is null, the labels are on the raster's own grid. A vector file has
    /// no grid of its own, so a null `grid` is then an error. Throws Error that names the file if it cannot
    /// be opened, has several bands or complex numbers, or lacks the requested field or layer. Also throws
    /// Error if the file has no georeference while the sizes differ, or if its features cannot be placed on
    /// the grid. Throws UsageError for a text of leave_out that is not a list.
    static std::unique_ptr<LabelSource> open(const LabelOptions& options, const Grid* grid = nullptr) {
        auto source = open_all_labels(options, grid);
        if (!options.leave_out.empty()) source->leave_out(options);
        return source;
    }
    virtual ~LabelSource() = default;

    const Grid& grid() const { return m_grid; }
    /// Returns the classes that the file lists, in the order of their numbers, without left-out classes.
    /// Pixels may have further classes.
    const std::vector<LabelClass>& legend() const { return m_legend; }
    /// Reads whole lines [line, line + count) to out (count x samples values); none() means no label. Throws
    /// Error if a value is not a class (not an integer, or above max_class) or if the file cannot be read.
    /// Use it on one thread at a time.
    void read(int64_t line, int64_t count, uint16_t* out);
    /// Throws UsageError if a class in LabelOptions::leave_out occurs neither in the lines that were read nor
    /// in the file's legend. The message lists the existing classes. Call it when all lines are read.
    void check_left_out() const;
    /// Returns the numbers and names in LabelOptions::leave_out for which check_left_out() would throw.
    std::vector<std::string> not_left_out() const;
    /// Returns true if a pixel that was read so far has no label only because its class is left out.
    bool left_any_out() const { return m_left_any_out; }
    /// Returns the value that read() writes for pixels without a label, or outside of a mask. The value is 0,
    /// unless 0 is a class of the file; it is then 65535, which cannot be a class in this case.
    uint16_t none() const { return m_none; }
    bool zero_is_class() const { return m_none != 0; }
    /// Returns true if the file does not state whether 0 is a class. 0 then means "no label".
    bool zero_is_open() const { return m_zero_is_open; }
    /// Returns "raster", "raster, resampled" or "vector, 120 features, reprojected", for reports.
    const std::string& description() const { return m_description; }
    /// Returns notes for the user: an SRS that was assumed, features without a class.
    const std::vector<std::string>& notes() const { return m_notes; }
    /// Returns a note for the user on how positions are found if the coordinates are not those of a map;
    /// else empty.
    const std::string& coordinates_note() const { return m_coordinates_note; }
    /// Returns notes on what was found in the lines that were read so far: numbers that are not labels,
    /// pixels in features of several classes.
    virtual std::vector<std::string> reading_notes() const { return {}; }
    const std::string& path() const { return m_path; }
    /// Returns the value of a raster's metadata item ("HSI_HISTORY"); empty if absent.
    virtual std::string item(const std::string&) const { return {}; }
    /// Both functions are only for vector files that were opened with LabelOptions::shares. share_classes()
    /// returns the classes of the polygons, ascending, without left-out classes. shares() writes, for every
    /// pixel of the lines [line, line + count), the fraction from 0 to 1 that polygons of class `value` cover
    /// (count x samples values). The fraction does not depend on the pixel's label.
    std::vector<uint16_t> share_classes() const;
    virtual void shares(int64_t line, int64_t count, uint16_t value, float* out);
    /// Returns the values of labels that were opened with LabelOptions::values. In a vector file, there is
    /// one entry per feature, in the order of the file; features may overlap. In a raster, there is one entry
    /// per valid pixel, in raster order. Call it once.
    virtual std::vector<ValueSample> values() = 0;
    virtual bool of_features() const { return false; }
    /// Name of the field with the values; empty for a raster.
    const std::string& value_name() const { return m_value_name; }
    /// Receives the class of one polygon and the pixels (line * samples + sample, ascending) that the polygon
    /// touches. Each part of a multipolygon is passed separately. Some of these pixels may have another
    /// label.
    using EachPolygon = std::function<void(uint16_t value, const std::vector<int64_t>& pixels)>;
    virtual void each_polygon(const EachPolygon&) const {}
    /// Returns the number of features on the grid that label no pixel because they are too small or narrow.
    /// With LabelOptions::min_cover, returns the number of groups of touching polygons that label no pixel;
    /// this number is complete when all lines are read.
    virtual int64_t too_small() const { return 0; }
    /// Returns the number of features that are outside of the grid, without those that notes() mentions.
    virtual int64_t outside() const { return 0; }
    /// These four functions return facts about the pixels of a raster that were read so far. seen() is true
    /// if pixels were read. least() is their smallest value, at most 0, and zeros() the number of zeros.
    /// only_class() is the class if all labelled pixels have the same class, otherwise 0.
    bool seen() const { return m_seen; }
    double least() const { return m_least; }
    int64_t zeros() const { return m_zeros; }
    int only_class() const { return std::max(m_only_class, 0); }

  protected:
    virtual void read_lines(int64_t line, int64_t count, uint16_t* out) = 0;
    virtual std::vector<uint16_t> polygon_classes() const { return {}; }
    /// Classes that are known to be in the file, even if their pixels are outside of the grid.
    std::set<int> m_known;

    bool m_seen = false, m_zero_is_open = false;
    double m_least = 0;
    int64_t m_zeros = 0;
    int m_only_class = 0; ///< class of all pixels so far; 0: no label so far; -1: several classes
    uint16_t m_none = 0;
    Grid m_grid;
    std::vector<LabelClass> m_legend;
    std::string m_description, m_path, m_value_name;
    std::vector<std::string> m_notes;
    std::string m_coordinates_note;

  private:
    void leave_out(const LabelOptions& options);
    std::set<int> classes_there() const; ///< classes that were read, or are known to be in the file

    /// Indexed by class: m_left_out marks the classes to leave out, m_read the classes that were read. Both
    /// are empty if no class is left out.
    std::vector<char> m_left_out, m_read;
    std::vector<std::string> m_unproved; ///< texts of leave_out whose class has not been found so far
    std::map<int, std::string> m_names;  ///< class names, of all classes of the file
    bool m_left_any_out = false;
};

/// The labelled pixels of a scene in scan order.
struct LabelledPixels {
    Grid grid;
    std::vector<int64_t> index;      ///< line * samples + sample
    std::vector<uint16_t> value;     ///< class of each pixel
    std::vector<LabelClass> classes; ///< the classes that occur, by value, with counts
    /// Notes for the user: LabelSource::reading_notes(), and a note if two classes have the same name.
    std::vector<std::string> notes;
};

/// Returns the Error for labels that label no pixel of the grid. The message states whether the labels are
/// outside of the grid, too small, left out, or absent. Call it after all lines of `source` are read.
Error no_labels(const LabelSource& source);

/// Reads all lines and returns the labelled pixels. Throws Error if no pixel has a label (no_labels()).
/// Throws UsageError as LabelSource::check_left_out() does.
LabelledPixels collect_labels(LabelSource& source);

/// Returns the colour of a class that has no colour in its file. A class always gets the same colour, and
/// classes with neighbouring numbers get distinct colours.
Colour default_colour(int value);

/// Returns "classes 1 and 3 are both called 'forest'" for the first two classes with the same name; empty if
/// all names differ.
std::string shared_name(const std::vector<LabelClass>& classes);

/// Makes `spec` the specification of a class map: pixel type, category names, and colours for all classes and
/// for 0 ("Unclassified", transparent). GIS programs then show a legend. Sets options.nodata to 0 unless it
/// is set. If 0 is a class, nodata is -1 for a signed type, otherwise the greatest number of the type: 255 or
/// 65535. Throws UsageError if the requested type cannot represent the classes, or if no number is left for
/// nodata.
void describe_class_map(const std::vector<LabelClass>& classes, OutputOptions& options, OutputSpec& spec);

} // namespace hsi::raster
