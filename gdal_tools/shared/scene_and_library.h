// SPDX-License-Identifier: MIT
// Spectra of a library for comparison with a scene: selects them, and converts them to the scene's bands and
// units.
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

/// Adds -spectrum of a tool that reads a library.
void add_spectrum_option(tool::Builder& args, std::vector<std::string>& wanted, const std::string& library);

/// The way of converting a library's spectra to other bands.
enum class BandFit {
    automatic, ///< response if every band of both sides states its width, else linear
    response,  ///< by the responses of the scene's bands (math/resampling.h)
    linear,    ///< interpolated between neighbouring bands
};
/// Adds -resample of such a tool.
void add_resample_option(tool::Builder& args, BandFit& fit);
/// Reports the result of fit_library() (`resampled`), with a note; does nothing if the spectra were not
/// converted. `used`: from fit_library().
void report_fit(tool::Run& run, const std::string& used, const std::string& role, const std::string& path);

/// Reads a library, passes its notes on as warnings, and returns the spectra that `wanted` (the words of
/// -spectrum) selects; all if it is empty. `scene_bands` as in read_spectral_library(). \throws Error as
/// read_spectral_library() and chosen_names().
raster::SpectralLibrary chosen_library(tool::Run& run, const std::string& role, const std::string& path,
                                       const std::vector<std::string>& wanted, size_t scene_bands = 0);

/// Returns a library for spectra of this scene: without spectra, but with its bands, and in double precision
/// if single precision cannot represent the scene's values.
raster::SpectralLibrary library_for(const raster::RasterSource& scene);

/// Returns the properties by which a library identifies its bands.
model::SceneBands library_bands(const raster::SpectralLibrary& library);

/// Returns the library's spectra at these bands, by these rules in order:
/// 1. If both have wavelengths: unchanged if there are as many bands and no wavelength differs by more than
///    0.5 nm (unknown ones do not differ). Else at the scene's bands by `fit`, with the widths `fwhm_nm`,
///    and NaN at bands that cannot be computed: without a wavelength, outside of the library's range, in a
///    gap of it (response), or next to a missing band (linear). `used` is then "response" or "linear".
/// 2. Else, if the numbers of both can be compared (model::comparable_numbers()), by these numbers, with NaN
///    at bands that the library does not have.
/// 3. Else unchanged if there are as many bands.
/// \throws Error that names `role` and `path` if these rules give no values, and if a spectrum contains
/// infinite values.
raster::SpectralLibrary fit_library(const raster::SpectralLibrary& library, const std::string& role,
                                    const std::string& path, const model::SceneBands& bands,
                                    const std::vector<double>& fwhm_nm = {}, BandFit fit = BandFit::automatic,
                                    std::string* used = nullptr);

/// The bands at which a fitted library has values. Spectra may lack some of the scene's bands (deleted
/// channels, another spectrometer). A band that is left out is left out for all spectra.
struct Overlap {
    std::vector<size_t> bands;    ///< bands at which all of `spectra` have a value
    std::vector<size_t> spectra;  ///< the selected spectra, in the library's order
    std::vector<size_t> left_out; ///< the others
};

/// Returns true if -spectrum was given and selects only single spectra: then all of them are kept.
inline bool names_single_spectra(const std::vector<std::string>& wanted) {
    return !wanted.empty() && raster::are_exact(wanted);
}

/// Selects bands and spectra. keep: all spectra are kept. Otherwise spectra are added in order of the number
/// of bands that they lack, and the subset with the largest product of spectra and bands is used. \throws
/// Error that names `role` and `path` if fewer than 2 bands are left.
Overlap overlap_of(const raster::SpectralLibrary& fitted, const std::string& role, const std::string& path,
                   bool keep);

/// Gives a warning that counts the spectra that are left out and names the first. Gives a note on the bands,
/// beginning with `what` ("Unmixing"), that states the end of `library`'s range (`fitted` is `library` at the
/// bands of `scene`) and how many bands of the scene are beyond it. A further warning names gaps in the
/// library's wavelengths that contain several bands of the scene.
void report_overlap(tool::Run& run, const Overlap& overlap, const raster::SpectralLibrary& fitted,
                    const raster::SpectralLibrary& library, const model::SceneBands& scene,
                    const std::string& role, const std::string& path, const std::string& what);

/// Spectra at the bands of a scene, in its units.
struct FittedSpectra {
    std::vector<std::string> names;
    std::vector<std::vector<double>> spectra; ///< of equal length
    double scale = 1;                         ///< the factor by which the library was multiplied
    std::vector<std::string> classes;         ///< SpectralLibrary::classes
};

/// Returns the spectra of the library that `wanted` selects, at the scene's bands, times `scale`. Bands that
/// the library lacks are left out of the scene, with a note that begins with `what` ("Unmixing"), and spectra
/// that lack bands are selected by overlap_of(). Without wavelengths and numbers, bands of the scene without
/// any value are also left out, if the library has exactly the other bands. Adds the library to the report.
/// \throws Error that names `role`, the file, and a spectrum with infinite values.
FittedSpectra spectra_for_scene(tool::Run& run, const std::string& role, const std::string& path,
                                const std::vector<std::string>& wanted, double scale, const std::string& what,
                                std::shared_ptr<raster::RasterSource>& scene,
                                BandFit fit = BandFit::automatic);

/// Returns the same at the bands of `scene`, which may have lost some since: bands are the file bands of
/// `library`'s values.
FittedSpectra without_lost_bands(const FittedSpectra& library, const std::vector<int>& bands,
                                 const raster::RasterSource& scene);

/// Warns if the median length of the spectra is less than a tenth or more than ten times the median of the
/// scene's first 65,536 valid pixels: a library of reflectance in 0..1 for a scene of integers is the most
/// common error. The warning and the report (library.proposed_scale) propose a value for -library-scale
/// (proposed_scale() of the middle ratio of the bands' maxima). The warning ends with `inexact`: advice,
/// since the true factor may differ. sum_squares: for a scene on a device, Backend::sum_squares() of the
/// backend there; may be null.
using SumSquares = std::function<bool(const CubeView<float>& scene, double* squares)>;
void warn_of_other_units(tool::Run& run, const raster::RasterSource& scene, const FittedSpectra& library,
                         const std::string& inexact, const SumSquares& sum_squares = {});

/// Warns if `deviations`, of the values of `scene`, are more than half as large as these, or a hundred
/// thousand times smaller, which no instrument achieves. Compares the median lengths of the first 65,536
/// spectra of each.
void warn_of_other_deviations(tool::Run& run, const raster::RasterSource& scene,
                              const raster::RasterSource& deviations, const std::string& role);

/// Warns if more than a quarter of a spectrum's values are below zero, but less than one in a hundred of the
/// values of the scene's first 65,536 valid pixels: logarithms or derivatives are then compared with the
/// original values. The warning ends with `advice`. Reads the scene only if there is such a spectrum.
void warn_of_other_signs(tool::Run& run, const raster::RasterSource& scene, const FittedSpectra& library,
                         const std::string& advice);

/// Returns the customary factor between spectra that is nearest to `ratio` (above 0), by its logarithm: a
/// power of ten, or for the sample types Byte and UInt16 the largest number of the type (255, 65535), or the
/// reciprocal of one of these.
double proposed_scale(double ratio, const std::string& type);

// Scenes whose bands have different scales (PRISMA with its two cubes, an ENVI header with gains), in
// comparisons with spectra of a library. One factor for all bands does not change the direction of a
// spectrum: then stored values are used, and -library-scale is that factor. If scales differ, or there is an
// offset, a spectrum consists of scaled values. Scenes are read in this way for comparison with a library,
// and their own spectra are written in this way, so that they are the same when they are read again.

/// Adds -any-scale of tools that compare with spectra.
void add_any_scale_option(tool::Builder& args, bool& any_scale);

/// Returns the scene for a comparison with spectra: its scaled values if one factor is not enough, with a
/// note; else, and with any_scale, the scene itself. The report's scale_applied states which.
std::shared_ptr<raster::RasterSource>
scaled_for_library(tool::Run& run, const std::shared_ptr<raster::RasterSource>& scene, bool any_scale);

/// Converts a scene's values to spectra that are written. Does nothing if one factor suffices.
class BandScales {
  public:
    explicit BandScales(const raster::RasterSource& scene) : m_values(scene.facts().bands.values) {}
    void apply(std::vector<double>& spectrum) const;
    /// Scales differences between spectra (a standard deviation), without an offset.
    void apply_to_difference(std::vector<double>& spectrum) const;
    /// Gives a note if spectra are written in other values than the stored ones.
    void note(tool::Run& run) const;

  private:
    raster::BandValues m_values;
};

} // namespace hsi::tools
