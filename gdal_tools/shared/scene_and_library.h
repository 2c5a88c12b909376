// SPDX-License-Identifier: MIT
// Prepares spectra of a library for comparison with a scene: selects spectra, and converts them to the
// scene's bands and units.
#pragma once

#include "model/band_match.h"
#include "raster/raster_source.h"
#include "raster/spectral_library.h"
#include "tool/definition.h"
#include "tool/run.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hsi::tools {

/// Adds -spectrum for a tool that reads a library.
void add_spectrum_option(tool::Builder& args, std::vector<std::string>& wanted, const std::string& library);

/// How the spectra of a library are converted to other bands.
enum class BandFit {
    automatic, ///< `response` if all bands of library and scene have a FWHM, else `linear`
    response,  ///< by the spectral response functions of the scene's bands (math/resampling.h)
    linear,    ///< by linear interpolation between neighbouring bands
};
/// Adds -resample for a tool that reads a library.
void add_resample_option(tool::Builder& args, BandFit& fit);
/// Prints and reports how fit_library() converted the spectra (item `resampled`). `used`: result of
/// fit_library(). Does nothing if the spectra were not converted.
void report_fit(tool::Run& run, const std::string& used, const std::string& role, const std::string& path);

/// Reads a library and prints its notes as warnings. Returns the spectra that `wanted` (the words of
/// -spectrum) selects; all spectra if `wanted` is empty. `scene_bands`: as in read_spectral_library().
/// \throws the errors of read_spectral_library() and chosen_names().
raster::SpectralLibrary chosen_library(tool::Run& run, const std::string& role, const std::string& path,
                                       const std::vector<std::string>& wanted, size_t scene_bands = 0);

/// Returns an empty library with the bands of the scene. Its values have double precision if single precision
/// cannot represent the values of the scene.
raster::SpectralLibrary library_for(const raster::RasterSource& scene);

/// Returns the wavelengths and numbers that identify the bands of a library.
model::SceneBands library_bands(const raster::SpectralLibrary& library);

/// Returns the library's spectra at the given bands. These rules apply in order:
/// 1. If library and scene have wavelengths: spectra are unchanged if the number of bands is equal and no
///    wavelength differs by more than 0.5 nm; unknown wavelengths do not differ. Otherwise spectra are
///    converted to the scene's bands as `fit` states, with the FWHM `fwhm_nm`, and `used` is set to
///    "response" or "linear". Bands that cannot be computed become NaN: bands without a wavelength, outside
///    of the library's range, in a gap of the library (response), or next to a missing band (linear).
/// 2. Otherwise, if the band numbers of both can be compared (model::comparable_numbers()): spectra are
///    matched by number, with NaN at bands that the library does not have.
/// 3. Otherwise spectra are unchanged if the number of bands is equal.
/// \throws Error with `role` and `path` if these rules give no values, and if a spectrum contains infinite
/// values.
raster::SpectralLibrary fit_library(const raster::SpectralLibrary& library, const std::string& role,
                                    const std::string& path, const model::SceneBands& bands,
                                    const std::vector<double>& fwhm_nm = {}, BandFit fit = BandFit::automatic,
                                    std::string* used = nullptr);

/// The bands at which a converted library has values. Spectra may lack bands of the scene, such as deleted
/// channels or bands of another spectrometer. A band is used for all spectra or for none.
struct Overlap {
    std::vector<size_t> bands;    ///< bands at which all spectra in `spectra` have values
    std::vector<size_t> spectra;  ///< indices of the selected spectra, in the order of the library
    std::vector<size_t> left_out; ///< indices of the other spectra
};

/// Returns true if -spectrum was given and each of its words selects a single spectrum. All these spectra are
/// then kept.
inline bool names_single_spectra(const std::vector<std::string>& wanted) {
    return !wanted.empty() && raster::are_exact(wanted);
}

/// Selects bands and spectra. keep: true to keep all spectra. Otherwise spectra are added one by one,
/// beginning with those that lack the fewest bands, and the subset with the largest product of spectra and
/// bands is used. \throws Error with `role` and `path` if fewer than 2 bands are left.
Overlap overlap_of(const raster::SpectralLibrary& fitted, const std::string& role, const std::string& path,
                   bool keep);

/// Warns of omitted spectra, with their number and the name of the first. Prints a note on omitted bands that
/// begins with `what`, such as "Unmixing". The note states where the range of `library` ends and how many
/// bands of the scene are outside of this range. Also warns of gaps in the library's wavelengths that contain
/// several bands of the scene. `fitted`: `library` at the bands of `scene`.
void report_overlap(tool::Run& run, const Overlap& overlap, const raster::SpectralLibrary& fitted,
                    const raster::SpectralLibrary& library, const model::SceneBands& scene,
                    const std::string& role, const std::string& path, const std::string& what);

/// Spectra at the bands of a scene, in the units of the scene.
struct FittedSpectra {
    std::vector<std::string> names;
    std::vector<std::vector<double>> spectra; ///< all of the same length
    double scale = 1;                         ///< factor by which the library was multiplied
    std::vector<std::string> classes;         ///< as SpectralLibrary::classes
};

/// Returns the spectra of the library that `wanted` selects, at the bands of the scene, multiplied by
/// `scale`. Bands that the library lacks are removed from `scene`, with a note that begins with `what`, such
/// as "Unmixing". overlap_of() selects among spectra that lack bands. If bands have no wavelengths and no
/// numbers, empty bands of the scene are also removed, provided that the library has as many bands as remain.
/// Adds the library to the report. \throws Error with `role`, the file, and the name of a spectrum with
/// infinite values.
FittedSpectra spectra_for_scene(tool::Run& run, const std::string& role, const std::string& path,
                                const std::vector<std::string>& wanted, double scale, const std::string& what,
                                std::shared_ptr<raster::RasterSource>& scene,
                                BandFit fit = BandFit::automatic);

/// Returns the library with only the bands of `scene`, which may have lost bands since the library was
/// fitted. bands: for each value of the library's spectra, the band number in the file of the scene.
FittedSpectra without_lost_bands(const FittedSpectra& library, const std::vector<int>& bands,
                                 const raster::RasterSource& scene);

/// Warns if the median length of the spectra is less than a tenth or more than ten times the median length of
/// the scene's first 65,536 valid pixels. The most common cause is a library of reflectance in 0..1 for a
/// scene of integers. The warning and the report (library.proposed_scale) propose a value for -library-scale:
/// proposed_scale() of the median ratio of the bands' maxima. `inexact`: advice at the end of the warning,
/// because the true factor may differ. sum_squares: for a scene on a device, Backend::sum_squares(); may be
/// null.
using SumSquares = std::function<bool(const CubeView<float>& scene, double* squares)>;
void warn_of_other_units(tool::Run& run, const raster::RasterSource& scene, const FittedSpectra& library,
                         const std::string& inexact, const SumSquares& sum_squares = {});

/// Warns if `deviations`, a raster of standard deviations of the values of `scene`, cannot be right: if they
/// are more than half as large as the values, or less than 1/100,000 of them, since no instrument is that
/// accurate. Compares the median lengths of the first 65,536 spectra of both rasters.
void warn_of_other_deviations(tool::Run& run, const raster::RasterSource& scene,
                              const raster::RasterSource& deviations, const std::string& role);

/// Warns if more than a quarter of a spectrum's values are negative, but less than one in a hundred values of
/// the scene's first 65,536 valid pixels. The library then probably contains logarithms or derivatives, and
/// the scene original values. The warning ends with `advice`. Reads the scene only if there is such a
/// spectrum.
void warn_of_other_signs(tool::Run& run, const raster::RasterSource& scene, const FittedSpectra& library,
                         const std::string& advice);

/// Returns the usual scale factor that is nearest to `ratio` (above 0) on a logarithmic scale. Usual factors
/// are powers of ten and, for the data types Byte and UInt16, the largest number of the type (255 or 65535).
double proposed_scale(double ratio, const std::string& type);

// Scenes whose bands have different scales, such as PRISMA with its two cubes or an ENVI header with gains.
// One factor for all bands does not change the direction of a spectrum. In this case the stored values are
// used, and -library-scale converts the library to them. If the factors of the bands differ, or if there is
// an offset, spectra consist of scaled values. The same rule applies to scenes that are compared with a
// library and to spectra that are written, so that written spectra fit the scene when they are read again.

/// Adds -any-scale for tools that compare with spectra.
void add_any_scale_option(tool::Builder& args, bool& any_scale);

/// Returns the scene for a comparison with spectra. If one factor is not enough, returns its scaled values,
/// with a note. Otherwise, and with any_scale, returns the scene itself. The item scale_applied of the report
/// states which values are used.
std::shared_ptr<raster::RasterSource>
scaled_for_library(tool::Run& run, const std::shared_ptr<raster::RasterSource>& scene, bool any_scale);

/// Scales the values of a scene for spectra that are written. Does nothing if one factor is enough for all
/// bands.
class BandScales {
  public:
    explicit BandScales(const raster::RasterSource& scene) : m_values(scene.facts().bands.values) {}
    void apply(std::vector<double>& spectrum) const;
    /// Scales differences between spectra, such as a standard deviation: offsets are not added.
    void apply_to_difference(std::vector<double>& spectrum) const;
    /// Prints a note if the written values are not the stored values.
    void note(tool::Run& run) const;

  private:
    raster::BandValues m_values;
};

} // namespace hsi::tools
