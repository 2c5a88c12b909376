// SPDX-License-Identifier: MIT
#include "raster/products/matlab_scene.h"

#include "core/error.h"
#include "core/host_memory.h"
#include "core/text.h"
#include "raster/gdal_errors.h"
#include "raster/matlab/turned_file.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/metadata/wavelength_unit.h"
#include "raster/products/array_axes.h"
#include "raster/products/array_file.h"

#include <cpl_string.h>
#include <gdal_priv.h>

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace hsi::raster {
namespace {

using Variables = std::vector<const MatlabVariable*>;

template <class Test>
Variables those(const MatlabFile& file, const Test& test) {
    Variables found;
    for (const MatlabVariable& one : file.variables())
        if (one.type != GDT_Unknown && one.count() > 0 && test(one)) found.push_back(&one);
    return found;
}

bool is_vector(const MatlabVariable& one) {
    return one.rank() == 2 && std::min(one.dims[0], one.dims[1]) == 1;
}

bool is_image(const MatlabVariable& one) { return one.rank() == 2 && !is_vector(one); }

/// Returns the last part of the variable's name in lower case without underscores: "nrow" for "scene.nRow",
/// "numrows" for "num_rows".
std::string plain_name(const MatlabVariable& one) {
    std::string name = lower(one.name.substr(one.name.rfind('.') + 1));
    std::erase(name, '_');
    return name;
}

/// Returns the number as a positive integer; nullopt if it is not whole or is out of range.
std::optional<int64_t> whole_count(double value) {
    if (!(value >= 1 && value <= INT32_MAX) || value != std::floor(value)) return std::nullopt;
    return static_cast<int64_t>(value);
}

/// Returns the whole numbers that the file stores under these names, also with the prefixes "n", "num", "im",
/// "img" and "image".
std::vector<int64_t> whole_numbers(const MatlabFile& file, std::initializer_list<const char*> names) {
    std::vector<int64_t> found;
    for (const MatlabVariable& one : file.variables()) {
        const std::string name = plain_name(one);
        const auto is = [&](const std::string& base) {
            for (const char* prefix : {"", "n", "num", "im", "img", "image"})
                if (name == prefix + base) return true;
            return false;
        };
        if (one.type == GDT_Unknown || one.count() != 1 || std::none_of(names.begin(), names.end(), is))
            continue;
        if (const auto count = whole_count(file.numbers(one).front())) found.push_back(*count);
    }
    return found;
}

/// Number of lines and samples of a scene that is stored as a list of pixels.
using Size = std::pair<int64_t, int64_t>;

/// Returns the possible image sizes in a vector of two or three numbers: [lines samples], [lines samples
/// bands] or [bands lines samples].
std::vector<Size> sizes_in(const MatlabFile& file, const MatlabVariable& one) {
    if (one.type == GDT_Unknown || !is_vector(one) || one.count() < 2 || one.count() > 3) return {};
    std::vector<int64_t> counts;
    for (const double value : file.numbers(one))
        if (const auto count = whole_count(value)) counts.push_back(*count);
    if (counts.size() != static_cast<size_t>(one.count())) return {};
    std::vector<Size> sizes;
    for (size_t k = 1; k < counts.size(); ++k)
        sizes.emplace_back(counts[k - 1], counts[k]);
    return sizes;
}

/// Returns whether the name of a vector denotes an image size: imSize, dims, sz, cube_shape.
bool says_size(const MatlabVariable& one) {
    const std::string name = plain_name(one);
    const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
    return name.ends_with("sz") || has("size") || has("dim") || has("shape");
}

/// Returns the possible image sizes that the file states, as in data sets for unmixing. Sizes come from
/// single numbers, from vectors, and from arrays with three subscripts, such as abundances.
std::vector<Size> sizes_beside(const MatlabFile& file) {
    std::vector<Size> sizes;
    const auto take_pairs = [&](std::initializer_list<const char*> of_lines,
                                std::initializer_list<const char*> of_samples) {
        const auto samples = whole_numbers(file, of_samples);
        for (const int64_t l : whole_numbers(file, of_lines))
            for (const int64_t s : samples)
                sizes.emplace_back(l, s);
    };
    take_pairs({"row", "rows", "line", "lines", "height", "h", "nl", "nr", "ny"},
               {"col", "cols", "column", "columns", "sample", "samples", "width", "w", "nc", "ns", "nx"});
    for (const MatlabVariable& one : file.variables())
        if (says_size(one))
            for (const Size& size : sizes_in(file, one))
                sizes.push_back(size);
    take_pairs({"m"}, {"n"});
    take_pairs({"l"}, {"c"});
    for (const MatlabVariable& one : file.variables())
        if (one.type != GDT_Unknown && one.rank() == 3) sizes.emplace_back(one.dims[0], one.dims[1]);
    return sizes;
}

/// Returns the size whose number of pixels equals a dimension of the array, which is then a list of pixels;
/// nullopt if no size fits.
std::optional<Size> size_of_list(const MatlabVariable& one, const std::vector<Size>& sizes) {
    if (one.rank() != 2) return std::nullopt;
    for (const Size& size : sizes) {
        const int64_t pixels = size.first * size.second;
        if (pixels > 1 && (one.dims[0] == pixels || one.dims[1] == pixels)) return size;
    }
    return std::nullopt;
}

/// Returns a note about numbers in the file that may be the image size, if the array could be a list of
/// pixels; empty if there are no such numbers.
std::string perhaps_size(const MatlabFile& file, const MatlabVariable& array) {
    const auto note = [&](const std::string& from, const Size& size) {
        return "'" + file.path() + "': " + array.text() + " is read as an image of one band; " + from +
               " may be the size of an image stored as a list of pixels (" + std::to_string(size.first) +
               " lines x " + std::to_string(size.second) +
               " samples): if so, save the size as 'nRow' and 'nCol', or reshape() the array";
    };
    std::vector<std::pair<const MatlabVariable*, int64_t>> counts;
    for (const MatlabVariable& one : file.variables()) {
        if (one.type == GDT_Unknown) continue;
        for (const Size& size : sizes_in(file, one))
            if (size_of_list(array, {size})) return note(one.text(), size);
        if (one.count() != 1) continue;
        const auto count = whole_count(file.numbers(one).front());
        if (!count || *count == 1) continue;
        for (const auto& before : counts)
            if (const Size size{before.second, *count}; size_of_list(array, {size}))
                return note(before.first->text() + " and " + one.text(), size);
        counts.emplace_back(&one, *count);
    }
    return {};
}

MatlabCube cube_of(std::shared_ptr<const MatlabFile> file, const MatlabVariable& one) {
    MatlabCube cube{file, one, {}, {}};
    TurnedShape& shape = cube.shape;
    if (one.rank() > 3)
        throw Error("'" + file->path() + "': " + one.text() + " has more than three subscripts",
                    "Save it as an array (line, sample, band).");
    const int64_t third = one.rank() == 3 ? one.dims[2] : 1;
    shape = {one.dims[0], one.dims[1], third, BandsStand::last};
    if (const auto size = size_of_list(one, sizes_beside(*file))) {
        const bool bands_first = one.dims[1] == size->first * size->second;
        shape = {size->first, size->second, one.dims[bands_first ? 0 : 1],
                 bands_first ? BandsStand::first : BandsStand::last};
    } else if (one.rank() == 3 && !find_matlab_wavelengths(*file, third)) {
        if (find_matlab_wavelengths(*file, one.dims[0]))
            shape = {one.dims[1], third, one.dims[0], BandsStand::first};
        else if (find_matlab_wavelengths(*file, one.dims[1]))
            shape = {one.dims[0], third, one.dims[1], BandsStand::second};
    }
    if (shape.lines > INT32_MAX || shape.samples > INT32_MAX || shape.bands > 65535)
        throw Error("'" + file->path() + "': " + one.text() + " is too large for a scene");
    return cube;
}

std::string shortest_digits(double value) {
    char text[64];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

/// Returns each number with the digits that it has in the data type of the file.
std::vector<std::string> digits_of(const MatlabFile& file, const MatlabVariable& one) {
    std::vector<std::string> texts;
    for (const double v : file.numbers(one)) {
        char text[64];
        if (one.type == GDT_Float32)
            texts.emplace_back(text, std::to_chars(text, text + sizeof text, static_cast<float>(v)).ptr);
        else
            texts.push_back(shortest_digits(v));
    }
    return texts;
}

const MatlabVariable* find_list(const MatlabFile& file, int64_t count,
                                std::initializer_list<const char*> names) {
    if (count < 2) return nullptr;
    for (const char* name : names)
        for (const MatlabVariable& one : file.variables())
            if (one.type != GDT_Unknown && is_vector(one) && one.count() == count && plain_name(one) == name)
                return &one;
    return nullptr;
}

bool is_wavenumbers(const MatlabVariable& one) {
    const std::string name = plain_name(one);
    return name.find("wavenum") != std::string::npos || name == "wn" || name == "wns";
}

bool says_wavelengths(const MatlabVariable& one) {
    const std::string name = plain_name(one);
    return name.find("wavelen") != std::string::npos || is_wavenumbers(one) ||
           std::any_of(wavelength_names.begin(), wavelength_names.end(),
                       [&](const char* known) { return name == known; });
}

/// Returns a list of wavelengths in the file; null if there is none. The caller has found that no list has
/// one element per band.
const MatlabVariable* list_of_another_length(const MatlabCube& cube) {
    for (const MatlabVariable& one : cube.file->variables())
        if (one.type != GDT_Unknown && is_vector(one) && one.count() > 1 && says_wavelengths(one))
            return &one;
    return nullptr;
}

/// Returns the only vector that could be the wavelengths under another name; null if there is none, or
/// several. Such a vector has one number per band, rises or falls, and lies within the range of instruments
/// in micrometres or nanometres.
const MatlabVariable* perhaps_wavelengths(const MatlabFile& file, int64_t count) {
    constexpr double shortest_um = 0.2, longest_um = 30;
    const MatlabVariable* found = nullptr;
    for (const MatlabVariable& one : file.variables()) {
        if (one.type == GDT_Unknown || !is_vector(one) || one.count() != count || count < 4) continue;
        const auto values = file.numbers(one);
        const auto [least, most] = std::minmax_element(values.begin(), values.end());
        const double scale = *most > 100 ? 1000 : 1;
        const bool sorted =
            std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end() ||
            std::adjacent_find(values.begin(), values.end(), std::less_equal<>()) == values.end();
        if (!sorted || !(*least >= shortest_um * scale && *most <= longest_um * scale) ||
            *most < *least * 1.05)
            continue;
        if (found != nullptr) return nullptr;
        found = &one;
    }
    return found;
}

void describe_bands(const MatlabCube& cube, Product& product) {
    const MatlabFile& file = *cube.file;
    product.bands.resize(static_cast<size_t>(cube.shape.bands));
    for (size_t b = 0; b < product.bands.size(); ++b)
        product.bands[b].index = static_cast<int64_t>(b);
    const auto count = static_cast<int64_t>(product.bands.size());
    const MatlabVariable* const wavelengths = find_matlab_wavelengths(file, count);
    if (!wavelengths) {
        if (const MatlabVariable* const other = count > 1 ? list_of_another_length(cube) : nullptr)
            product.notes.push_back("'" + file.path() + "': " + other->text() + " has " +
                                    std::to_string(other->count()) + " wavelengths, but the scene has " +
                                    std::to_string(count) + " bands: the wavelengths are ignored");
        else if (const MatlabVariable* const perhaps = perhaps_wavelengths(file, count))
            product.notes.push_back("'" + file.path() + "': " + perhaps->text() +
                                    " may be the wavelengths of the bands; if so, call it 'wavelength'");
        return;
    }
    const auto values = digits_of(file, *wavelengths);
    for (size_t b = 0; b < values.size(); ++b)
        product.bands[b].wavelength = values[b];
    product.wavelength_units = matlab_wavelength_units(*wavelengths);
    if (const MatlabVariable* const widths = find_list(file, count, {"fwhm"})) {
        const auto fwhm = digits_of(file, *widths);
        for (size_t b = 0; b < fwhm.size(); ++b)
            product.bands[b].fwhm = fwhm[b];
    }
}

/// Adds the chunk sizes of a cube that HDF5 stores in chunks, so that it is read by chunks.
void add_chunks(const MatlabCube& cube, Product& product) {
    if (cube.file->version() != "7.3" || cube.variable.dims.size() != 3) return;
    const auto arrays = ArrayFile::open(cube.file->path());
    if (!arrays) return;
    CubePart part;
    part.array = "/" + cube.variable.name;
    std::replace(part.array.begin(), part.array.end(), '.', '/');
    const auto chunks = arrays->chunks(part.array);
    if (chunks.size() != 3 || std::count(chunks.begin(), chunks.end(), 0U) > 0) return;
    part.type = cube.variable.type;
    const BandsStand bands = cube.shape.bands_stand; // HDF5 has MATLAB's subscripts in reverse order
    part.line_axis = bands == BandsStand::first ? 1 : 2;
    part.sample_axis = bands == BandsStand::last ? 1 : 0;
    part.band_axis = bands == BandsStand::first ? 2 : bands == BandsStand::second ? 1 : 0;
    for (size_t k = 0; k < 3; ++k)
        part.chunk[k] = static_cast<int64_t>(chunks[k]);
    product.parts.push_back(std::move(part));
    product.samples = cube.shape.samples;
    product.lines = cube.shape.lines;
}

std::string list_of(const Variables& variables, const MatlabVariable* but = nullptr) {
    constexpr size_t most = 12;
    std::string text;
    size_t told = 0;
    for (const MatlabVariable* one : variables) {
        if (one == but) continue;
        if (told++ == most) return text + " ...";
        text += (text.empty() ? "" : ", ") + one->text();
    }
    return text;
}

Variables all_of(const MatlabFile& file) {
    Variables all;
    for (const MatlabVariable& one : file.variables())
        all.push_back(&one);
    return all;
}

constexpr int64_t most_looked_at = int64_t{1} << 24; // maximum number of values that are examined

/// Returns whether the variable contains only whole numbers, with at least two different numbers apart from
/// 0.
bool holds_classes(const MatlabFile& file, const MatlabVariable& one) {
    double first = 0;
    bool several = false;
    for (const double v : file.numbers(one)) {
        if (std::isnan(v)) continue;
        if (v != std::floor(v)) return false;
        if (v == 0) continue;
        several |= first != 0 && v != first;
        first = v;
    }
    return several;
}

// --- Selection of the scene --------------------------------------------------

struct Candidate {
    const MatlabVariable* variable = nullptr;
    int64_t pixels = 0, bands = 0;
    bool list = false;
    bool bands_first = false; ///< the first subscript is the band
};

/// Returns arrays with at least three subscripts, and lists of pixels whose number of pixels fits an image
/// size in the file.
std::vector<Candidate> candidates_in(const MatlabFile& file) {
    std::vector<Candidate> all;
    const auto sizes = sizes_beside(file);
    const auto found = those(file, [&](const MatlabVariable& one) {
        return one.rank() >= 3 || (size_of_list(one, sizes) && !is_vector(one));
    });
    for (const MatlabVariable* one : found) {
        Candidate c{one, 0, 0, one->rank() == 2, false};
        if (c.list) {
            const auto size = *size_of_list(*one, sizes);
            c.pixels = size.first * size.second;
            c.bands = one->count() / c.pixels;
            c.bands_first = one->dims[1] == c.pixels;
        } else if (one->rank() == 3) {
            size_t axis = 2; // index of the band subscript
            for (const size_t k : {size_t{1}, size_t{0}})
                if (!find_matlab_wavelengths(file, one->dims[2]) &&
                    find_matlab_wavelengths(file, one->dims[k]))
                    axis = k;
            c.bands = one->dims[axis];
            c.pixels = one->count() / c.bands;
            c.bands_first = axis == 0;
        }
        all.push_back(c);
    }
    return all;
}

/// Returns whether all values are between 0 and 1 and add up to 1 in each pixel. Pixels that contain only
/// zeros are ignored.
bool adds_up_to_one(const MatlabFile& file, const Candidate& c) {
    constexpr double tolerance = 1e-3;
    if (c.variable->count() > most_looked_at || c.bands < 2 || c.pixels == 0) return false;
    const auto values = file.numbers(*c.variable);
    const auto pixels = static_cast<size_t>(c.pixels), bands = static_cast<size_t>(c.bands);
    bool any = false;
    for (size_t p = 0; p < pixels; ++p) {
        double sum = 0;
        for (size_t b = 0; b < bands; ++b) {
            const double v = values[c.bands_first ? p * bands + b : b * pixels + p];
            if (std::isnan(v)) continue;
            if (v < -tolerance || v > 1 + tolerance) return false;
            sum += v;
        }
        if (sum == 0) continue;
        any = true;
        if (std::fabs(sum - 1) > tolerance) return false;
    }
    return any;
}

/// Returns whether an array contains abundances. The number of its planes then equals the number of
/// endmembers, and the endmembers have as many bands as the scene; or the values of each pixel add up to 1.
bool is_abundance(const MatlabFile& file, const Candidate& c, const std::vector<Candidate>& all) {
    bool endmembers = false, of_a_scene = false;
    for (const MatlabVariable& m : file.variables()) {
        if (m.type == GDT_Unknown || !is_image(m) || &m == c.variable) continue;
        if (m.dims[0] != c.bands && m.dims[1] != c.bands) continue;
        const int64_t bands = m.count() / c.bands;
        endmembers |= bands > c.bands;
        of_a_scene |= bands > c.bands && std::any_of(all.begin(), all.end(), [&](const Candidate& o) {
                          return o.variable != c.variable && o.pixels == c.pixels && o.bands == bands;
                      });
    }
    const bool of_more_bands = std::any_of(all.begin(), all.end(), [&](const Candidate& o) {
        return o.pixels == c.pixels && o.bands > c.bands;
    });
    return of_a_scene || ((endmembers || of_more_bands) && adds_up_to_one(file, c));
}

/// Returns whether an array contains the endmembers of each pixel (band, endmember, pixel) of a scene that is
/// stored as a list of pixels.
bool are_spectra_of_pixels(const Candidate& c, const std::vector<Candidate>& all) {
    return c.variable->rank() == 3 && std::any_of(all.begin(), all.end(), [&](const Candidate& o) {
               return o.list && o.variable->count() / c.variable->dims[2] == o.bands &&
                      o.pixels == c.variable->dims[2] && c.variable->dims[0] == o.bands;
           });
}

/// Returns the arrays that may be the scene; empty if the file has neither a cube nor a list of pixels.
/// \throws Error if all candidates are abundances.
Variables scenes_of(const MatlabFile& file) {
    auto all = candidates_in(file);
    const auto variables = [&] {
        Variables fits;
        for (const Candidate& c : all)
            fits.push_back(c.variable);
        return fits;
    };
    // If an array has as many bands as the file has wavelengths, only such arrays are candidates.
    auto with_wavelengths = all;
    std::erase_if(with_wavelengths,
                  [&](const Candidate& c) { return find_matlab_wavelengths(file, c.bands) == nullptr; });
    if (!with_wavelengths.empty()) all = with_wavelengths;
    const auto before = all;
    const Variables known = variables();
    std::erase_if(all, [&](const Candidate& c) {
        return is_abundance(file, c, before) || are_spectra_of_pixels(c, before);
    });
    if (all.empty() && !known.empty())
        refuse_matlab(file, "has no array that is a scene, but possible abundances", known);
    // A cube is preferred to a list of pixels, unless the list has more bands.
    int64_t most = 0;
    for (const Candidate& c : all)
        if (!c.list) most = std::max(most, c.bands);
    std::erase_if(all, [&](const Candidate& c) { return c.list && c.bands <= most; });
    return variables();
}

} // namespace

const MatlabVariable* find_matlab_wavelengths(const MatlabFile& file, int64_t count) {
    if (count < 2) return nullptr;
    const MatlabVariable* found = nullptr;
    for (const MatlabVariable& one : file.variables())
        if (one.type != GDT_Unknown && is_vector(one) && one.count() == count && says_wavelengths(one))
            if (found == nullptr || (is_wavenumbers(*found) && !is_wavenumbers(one))) found = &one;
    return found;
}

std::string matlab_wavelength_units(const MatlabVariable& one) {
    return is_wavenumbers(one) ? "Wavenumber" : stated_unit(one.name);
}

void refuse_matlab(const MatlabFile& file, const std::string& what, const Variables& candidates) {
    const std::string path = "'" + file.path() + "'";
    if (candidates.empty()) {
        const std::string all = list_of(all_of(file));
        throw Error(path + " " + what, all.empty() ? "It has no variables." : "Its variables: " + all + ".");
    }
    throw Error(path + " " + what + ": " + list_of(candidates),
                "Use one of them: " + file.path() + ":" + candidates.front()->name);
}

const MatlabVariable& named_matlab_numbers(const MatlabFile& file, const std::string& name) {
    const MatlabVariable* const one = file.find(name);
    if (one == nullptr) {
        const auto fields = [&](const MatlabVariable& v) { return v.name.rfind(name + ".", 0) == 0; };
        Variables inside;
        for (const MatlabVariable& v : file.variables())
            if (fields(v)) inside.push_back(&v);
        if (!inside.empty()) refuse_matlab(file, "has a struct '" + name + "'", inside);
        refuse_matlab(file, "has no variable '" + name + "'", {});
    }
    if (one->count() == 0 && !one->dims.empty())
        throw Error("'" + file.path() + "': " + one->text() + " is empty");
    if (one->type == GDT_Unknown)
        throw Error("'" + file.path() + "': " + one->text() + " is not an array of real numbers",
                    one->kind == "sparse" ? "Save it with full() in MATLAB."
                    : one->kind.rfind("complex", 0) == 0
                        ? "Save its abs() or real() in MATLAB."
                        : "Scenes, labels and libraries must be arrays of numbers.");
    return *one;
}

std::optional<MatlabCube> find_matlab_cube(const std::string& name) {
    const auto found = matlab_name(name);
    auto file = found ? MatlabFile::open(found->path) : nullptr;
    if (!file) return std::nullopt;
    if (!found->variable.empty()) return cube_of(file, named_matlab_numbers(*file, found->variable));
    Variables fits = scenes_of(*file);
    if (fits.empty()) fits = those(*file, is_image);
    if (fits.size() > 1) refuse_matlab(*file, "has several arrays that may be the scene", fits);
    if (fits.empty()) refuse_matlab(*file, "has no array that is a scene", {});
    return cube_of(file, *fits.front());
}

std::shared_ptr<const Product> matlab_product(const std::string& name) {
    const auto cube = find_matlab_cube(name);
    if (!cube) return nullptr;
    auto product = std::make_shared<Product>();
    product->name = "MATLAB " + cube->file->version() + ": " + cube->variable.text();
    product->path = cube->file->path();
    product->driver = "MATLAB";
    product->files = {cube->file->path()};
    const std::string others = list_of(all_of(*cube->file), cube->file->find(cube->variable.name));
    if (!others.empty()) product->name += "; other arrays: " + others;
    if (cube->shape.bands == 1 && is_image(cube->variable))
        if (std::string note = perhaps_size(*cube->file, cube->variable); !note.empty())
            product->notes.push_back(std::move(note));
    describe_bands(*cube, *product);
    add_chunks(*cube, *product);
    return product;
}

std::optional<MatlabCube> find_matlab_labels(const std::string& name, int64_t lines, int64_t samples,
                                             bool mask) {
    const auto found = matlab_name(name);
    auto file = found ? MatlabFile::open(found->path) : nullptr;
    if (!file) return std::nullopt;
    if (!found->variable.empty()) return cube_of(file, named_matlab_numbers(*file, found->variable));
    Variables fits = those(*file, is_image);
    if (fits.empty()) refuse_matlab(*file, "has no array with two subscripts, as labels need", {});
    const auto only = [&](const auto& test) {
        Variables left;
        std::copy_if(fits.begin(), fits.end(), std::back_inserter(left), test);
        if (!left.empty()) fits = std::move(left);
    };
    const auto is_logical = [](const MatlabVariable* v) { return v->kind == "logical"; };
    only([&](const MatlabVariable* v) { return v->dims[0] == lines && v->dims[1] == samples; });
    const Variables all = fits;
    only([&](const MatlabVariable* v) { return is_logical(v) == mask; });
    only([](const MatlabVariable* v) { return v->type != GDT_Float32 && v->type != GDT_Float64; });
    if (fits.size() > 1) refuse_matlab(*file, "has several arrays that may be the labels", fits);
    const MatlabVariable& one = *fits.front();
    std::string note;
    if (const bool real = one.type == GDT_Float32 || one.type == GDT_Float64;
        !mask && real && all.size() > 1) {
        // MATLAB stores all numbers as doubles by default, so the class does not show whether an array
        // contains labels.
        if (one.count() > most_looked_at || !holds_classes(*file, one))
            refuse_matlab(*file, "has several arrays that may be the labels", all);
        note = "'" + file->path() + "': labels are " + one.text() + ", and " + list_of(all, &one) +
               " is read as a mask";
    }
    MatlabCube cube = cube_of(file, one);
    cube.note = std::move(note);
    return cube;
}

} // namespace hsi::raster
