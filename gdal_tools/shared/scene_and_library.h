// SPDX-License-Identifier: MIT
// Spectra of a library for comparison with a scene: which of them, at which bands, in which units.
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

/// -spectrum of a tool that reads a library.
void add_spectrum_option(tool::Builder& args, std::vector<std::string>& wanted, const std::string& library);

/// The way in which a library's spectra are brought to other bands of a scene.
enum class BandFit {
    automatic, ///< response if every band of both sides states its width, else linear
    response,  ///< under the responses of the scene's bands (math/resampling.h)
    linear,    ///< interpolated between neighbouring bands
};
/// -resample of such a tool.
void add_resample_option(tool::Builder& args, BandFit& fit);
/// Reports the result of fit_library() (`resampled`), with a note; nothing if the spectra were taken as they
/// are. `used`: from fit_library().
void report_fit(tool::Run& run, const std::string& used, const std::string& role, const std::string& path);

/// Reads a library, passes its notes on as warnings, and takes the spectra that `wanted` (the words of
/// -spectrum) selects; all when it is empty. `scene_bands` as in read_spectral_library(). \throws Error as
/// read_spectral_library() and chosen_names().
raster::SpectralLibrary chosen_library(tool::Run& run, const std::string& role, const std::string& path,
                                       const std::vector<std::string>& wanted, size_t scene_bands = 0);

/// A library for spectra of this scene: no spectra yet, but its bands, and double precision where single does
/// not hold the scene's values.
raster::SpectralLibrary library_for(const raster::RasterSource& scene);

/// The properties by which a library identifies its bands.
model::SceneBands library_bands(const raster::SpectralLibrary& library);

/// The library's spectra at these bands.
/// 1. If both know wavelengths: as they are when there are as many bands and no wavelength differs by more
///    than 0.5 nm (unknown ones do not). Else at the scene's bands by `fit`, with the widths `fwhm_nm`, and
///    NaN at bands that cannot be made: without a wavelength, outside of the library's range, in a gap of it
///    (response), or next to a missing band (linear). `used` is then "response" or "linear".
/// 2. Else, if the numbers of both can be compared (model::comparable_numbers()), by these, NaN at bands that
///    the library does not have.
/// 3. Else as they are when there are as many bands.
/// \throws Error naming `role` and `path` when these rules give no values, and when a spectrum holds infinite
/// values.
raster::SpectralLibrary fit_library(const raster::SpectralLibrary& library, const std::string& role,
                                    const std::string& path, const model::SceneBands& bands,
                                    const std::vector<double>& fwhm_nm = {}, BandFit fit = BandFit::automatic,
                                    std::string* used = nullptr);

/// The bands where a fitted library has values. Spectra may lack some of the scene's bands (deleted channels,
/// another spectrometer), and a band that is left out is left out for all of them.
struct Overlap {
    std::vector<size_t> bands;    ///< at which all of `spectra` have a value
    std::vector<size_t> spectra;  ///< those that are kept, in the library's order
    std::vector<size_t> left_out; ///< the others
};

/// True when -spectrum was given and selects only single spectra: these are all kept.
inline bool names_single_spectra(const std::vector<std::string>& wanted) {
    return !wanted.empty() && raster::are_exact(wanted);
}

/// keep: all spectra are kept. Else they are counted in from those that lack least to those that lack most,
/// and the count is taken at which spectra times bands, the values that are used, are most. \throws Error
/// naming `role` and `path` when fewer than 2 bands are left.
Overlap overlap_of(const raster::SpectralLibrary& fitted, const std::string& role, const std::string& path,
                   bool keep);

/// A warning that counts the spectra that are left out and names the first. A note on the bands, beginning
/// with `what` ("Unmixing"), states the end of `library`'s range (`fitted` is `library` at the bands of
/// `scene`), and how many bands of the scene are beyond. A further warning names gaps in the library's
/// wavelengths that contain several bands of the scene.
void report_overlap(tool::Run& run, const Overlap& overlap, const raster::SpectralLibrary& fitted,
                    const raster::SpectralLibrary& library, const model::SceneBands& scene,
                    const std::string& role, const std::string& path, const std::string& what);

/// Spectra at the bands of a scene, in its units.
struct FittedSpectra {
    std::vector<std::string> names;
    std::vector<std::vector<double>> spectra; ///< of one length
    double scale = 1;                         ///< the factor that the library was multiplied by for that
    std::vector<std::string> classes;         ///< SpectralLibrary::classes
};

/// The spectra of the library that `wanted` selects, at the scene's bands, times `scale`. Bands that the
/// library lacks are left out of the scene, with a note that begins with `what` ("Unmixing"), and spectra
/// that lack bands by overlap_of(). Without wavelengths and numbers, bands of the scene without a single
/// value are also left out, if the library has exactly the others. The library goes into the report.
/// \throws Error naming `role`, the file, and a spectrum with infinite values.
FittedSpectra spectra_for_scene(tool::Run& run, const std::string& role, const std::string& path,
                                const std::vector<std::string>& wanted, double scale, const std::string& what,
                                std::shared_ptr<raster::RasterSource>& scene,
                                BandFit fit = BandFit::automatic);

/// The same at the bands of `scene`, which may have lost some since: bands are the file bands of `library`'s
/// values.
FittedSpectra without_lost_bands(const FittedSpectra& library, const std::vector<int>& bands,
                                 const raster::RasterSource& scene);

/// Warns when the median length of the spectra is under a tenth or over ten times the median of the scene's
/// first 65,536 valid pixels: a library of reflectance in 0..1 for a scene of integers is the commonest
/// mistake. The warning proposes a value for -library-scale (proposed_scale() of the middle ratio of the
/// bands' maxima), and so does the report (library.proposed_scale). The warning ends with `inexact`: advice,
/// since the true factor may differ. sum_squares: for a scene on a device, Backend::sum_squares() of the
/// backend there; may be null.
using SumSquares = std::function<bool(const CubeView<float>& scene, double* squares)>;
void warn_of_other_units(tool::Run& run, const raster::RasterSource& scene, const FittedSpectra& library,
                         const std::string& inexact, const SumSquares& sum_squares = {});

/// Warns when `deviations`, of the values of `scene`, are over half as large as these, or a hundred thousand
/// times smaller: no instrument measures so. By the median length of the first 65,536 spectra of each.
void warn_of_other_deviations(tool::Run& run, const raster::RasterSource& scene,
                              const raster::RasterSource& deviations, const std::string& role);

/// Warns when over a quarter of a spectrum's values are below zero, but less than one in a hundred of the
/// scene's first 65,536 valid pixels: logarithms or derivatives are then compared with the original values.
/// The warning ends with `advice`. Reads the scene only if there is such a spectrum.
void warn_of_other_signs(tool::Run& run, const raster::RasterSource& scene, const FittedSpectra& library,
                         const std::string& advice);

/// The customary factor between spectra that is nearest to `ratio` (above 0), by its logarithm: a power of
/// ten, or for the sample types Byte and UInt16 the largest number of that type (255, 65535), or one over one
/// of these.
double proposed_scale(double ratio, const std::string& type);

// Scenes with different scales of their bands (PRISMA with its two cubes, an ENVI header with gains), in
// comparisons with spectra of a library. One factor for all bands does not change the direction of a
// spectrum: such stored values are taken as they are, and -library-scale is that factor. If scales differ, or
// there is an offset, a spectrum consists of scaled values: so the scene is read for comparison with a
// library, and so its own spectra are written into one, to be the same when they are read again.

/// -any-scale of tools that compare with spectra.
void add_any_scale_option(tool::Builder& args, bool& any_scale);

/// The scene for a comparison with spectra: its scaled values if one factor is not enough, with a note; else,
/// and with any_scale, itself. The report's scale_applied states which.
std::shared_ptr<raster::RasterSource>
scaled_for_library(tool::Run& run, const std::shared_ptr<raster::RasterSource>& scene, bool any_scale);

/// From a scene's numbers to spectra that are written; nothing to do where one factor leads there.
class BandScales {
  public:
    explicit BandScales(const raster::RasterSource& scene) : m_values(scene.facts().bands.values) {}
    void apply(std::vector<double>& spectrum) const;
    /// Differences between spectra (a standard deviation) know no offset.
    void apply_to_difference(std::vector<double>& spectrum) const;
    /// A note where spectra are written as something else than numbers.
    void note(tool::Run& run) const;

  private:
    raster::BandValues m_values;
};

} // namespace hsi::tools
