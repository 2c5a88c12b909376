// SPDX-License-Identifier: MIT
// gdal_hsi_smooth: smoothing, derivatives and transforms of the spectra of a scene or of a library. One pass;
// two passes for MSC without a reference, which first computes the mean spectrum.
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "raster/library_output.h"
#include "shared/scene_and_library.h"
#include "shared/spectral_bands.h"
#include "shared/transforms.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/plan.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace smooth_tool {

using smooth::Method;
using smooth::Norm;
using smooth::Transform;

struct Settings {
    Transform transform; ///< all members are set except the lists and the window
    std::optional<int> window;
    std::optional<double> max_gap, scale;
    std::string reference;
};

/// Returns the name of the method: "savgol", "mean" ...
std::string method_text(const Settings& s) {
    return std::string("-method ") + smooth::name_of(s.transform.method);
}

/// Returns the transform without its lists of bands.
Transform settings_of(const Settings& s) {
    constexpr int usual_mean = 5;
    Transform t = s.transform;
    t.window = s.window.value_or(t.method == Method::mean ? usual_mean : t.window);
    t.max_gap = s.max_gap.value_or(0);
    t.factor = s.scale.value_or(1);
    return t;
}

bool drops_scale(Method method) {
    return method == Method::absorbance || method == Method::snv || method == Method::normalise;
}

/// Reports the number of segments, and the bands that are omitted because their segments are too short.
void tell_segments(tool::Run& run, const Transform& t, const std::vector<size_t>& left_out) {
    if (!smooth::needs_wavelengths(t) || t.method == Method::detrend) return;
    run.report()["segments"] = smooth::segments_of(t.wavelengths, t.max_gap).size();
    std::vector<std::string> names;
    for (const size_t b : left_out)
        names.push_back(tools::nm_text(t.wavelengths[b]));
    run.report()["left_out"] = names;
    if (!names.empty())
        run.note(counted(names.size(), "band") + worded(names.size(), " is", " are") +
                 " left out, since their segments are too short for this derivative: " + joined(names, ", "));
}

/// Reports the segments. \throws Error if no segment is long enough.
void check_segments(tool::Run& run, const Transform& t, const std::string& path) {
    if (t.method != Method::savgol) return tell_segments(run, t, {});
    const auto rows = smooth::rows_of(t);
    if (rows.bands.empty())
        throw Error(path + " has no segment of more than " + counted(t.derivative, "band"),
                    "Use a larger -max-gap, or a smaller -deriv.");
    tell_segments(run, t, rows.left_out);
}

// A scene
// ----------------------------------------------------------------------------------------------------------

/// Returns the scene with the bands that have a wavelength.
std::shared_ptr<raster::RasterSource> with_known_bands(tool::Run& run,
                                                       const std::shared_ptr<raster::RasterSource>& source) {
    const auto nm = source->facts().bands.wavelengths_nm;
    std::vector<int> known;
    for (size_t b = 0; b < nm.size(); ++b)
        if (nm[b] > 0) known.push_back(static_cast<int>(b));
    if (known.empty()) tools::refuse_without_wavelengths(source->path());
    if (const size_t lost = nm.size() - known.size(); lost > 0)
        run.note(counted(lost, "band") + worded(lost, " is", " are") + " left out: no wavelength");
    return tool::only_bands(source, known);
}

/// Returns the source. If more than one factor is needed to convert its stored values, returns its scaled
/// values.
std::shared_ptr<raster::RasterSource> of_one_factor(tool::Run& run,
                                                    const std::shared_ptr<raster::RasterSource>& source) {
    const bool apply = !source->facts().bands.values.one_factor();
    run.report()["scale_applied"] = apply;
    if (!apply) return source;
    run.note("Values: the bands have different scales or offsets, which are applied first");
    return source->scaled();
}

tools::Meaning meaning_of(const Settings& s, const raster::BandValues& values) {
    tools::Meaning meaning;
    if (drops_scale(s.transform.method)) return meaning;
    if (!values.scale.empty()) meaning.scale = values.scale.front();
    meaning.unit = values.unit;
    if (const int order = s.transform.derivative; order > 0)
        meaning.unit += (meaning.unit.empty() ? "1/nm" : "/nm") + (order > 1 ? std::to_string(order) : "");
    return meaning;
}

void run_scene(tool::Run& run, const Settings& s, std::shared_ptr<raster::RasterSource> source) {
    Transform t = settings_of(s);
    source = s.scale ? source : of_one_factor(run, source);
    if (smooth::needs_wavelengths(t)) source = with_known_bands(run, source);
    const auto values = source->facts().bands.values;
    if (!s.scale && !values.scale.empty()) t.factor = values.scale.front();
    std::optional<tools::FittedSpectra> reference;
    if (!s.reference.empty())
        reference = tools::spectra_for_scene(run, "-reference", s.reference, {"#1"}, 1, "MSC", source);
    const std::vector<int> fitted = source->bands();
    const bool needs_means = t.method == Method::msc && !reference,
               computed = raster::is_virtual(run.options().destination);
    if (computed && !needs_means) tool::leave_out_unseen_bands(run, source);
    tool::Scene scene(run, source, t.method == Method::absorbance ? "" : method_text(s));
    tools::SpectrumWork work;
    work.pass = "smoothing";
    work.meaning = meaning_of(s, values);
    work.undefined = t.method == Method::absorbance ? "since a value is not above 0"
                     : t.method == Method::snv      ? "since all values are equal"
                     : t.method == Method::msc      ? "since the values do not increase with the reference"
                                                    : "since the divisor is not above 0";
    if (!computed) tool::report_devices(run, {}, nullptr);
    if (needs_means) {
        t.reference = tools::counted_means(run, scene);
        work.share = 0.5;
    }
    work.make = [&](const raster::RasterSource& left) {
        Transform one = t;
        one.wavelengths = left.facts().bands.wavelengths_nm;
        if (reference) one.reference = tools::without_lost_bands(*reference, fitted, left).spectra.front();
        check_segments(run, one, left.path());
        return one;
    };
    run.report()["method"] = smooth::name_of(t.method);
    tools::write_transformed(run, scene, work);
}

// A library
// ----------------------------------------------------------------------------------------------------------

std::vector<double> mean_of(const std::vector<std::vector<double>>& spectra) {
    std::vector<double> means;
    for (size_t b = 0; b < spectra.front().size(); ++b) {
        double sum = 0, count = 0;
        for (const auto& spectrum : spectra)
            if (std::isfinite(spectrum[b])) {
                sum += spectrum[b];
                count += 1;
            }
        means.push_back(sum / count);
    }
    return means;
}

/// Keeps only the given bands of the library.
void keep_bands(raster::SpectralLibrary& library, const std::vector<size_t>& kept) {
    const auto cut = [&](auto& list) {
        auto some = list;
        some.clear();
        for (const size_t b : kept)
            if (!list.empty()) some.push_back(list[b]);
        list = std::move(some);
    };
    for (auto& spectrum : library.spectra)
        cut(spectrum);
    cut(library.wavelengths_nm);
    cut(library.fwhm_nm);
    cut(library.band_numbers);
}

/// Returns the bands with a value in at least one spectrum. `by_wavelength`: the wavelength must be known,
/// too.
std::vector<size_t> usable_bands(const raster::SpectralLibrary& library, bool by_wavelength) {
    std::vector<size_t> kept;
    for (size_t b = 0; b < library.bands(); ++b)
        if ((!by_wavelength || library.wavelengths_nm[b] > 0) &&
            std::any_of(library.spectra.begin(), library.spectra.end(),
                        [&](const auto& spectrum) { return std::isfinite(spectrum[b]); }))
            kept.push_back(b);
    return kept;
}

void run_library(tool::Run& run, const Settings& s, raster::SpectralLibrary library) {
    const auto& o = run.options();
    const auto output = run.text_output("dst", o.destination.path, o.destination.overwrite);
    raster::check_library_output(output);
    Transform t = settings_of(s);
    const bool by_wavelength = smooth::needs_wavelengths(t);
    if (by_wavelength && library.wavelengths_nm.empty()) tools::refuse_without_wavelengths(o.source.path);
    keep_bands(library, usable_bands(library, by_wavelength));
    if (library.bands() == 0) throw Error(o.source.path + " has no band with a value and a wavelength");
    if (!s.reference.empty()) {
        const auto fitted =
            tools::fit_library(tools::chosen_library(run, "-reference", s.reference, {"#1"}), "-reference",
                               s.reference, tools::library_bands(library), library.fwhm_nm);
        std::vector<size_t> reached;
        for (size_t b = 0; b < library.bands(); ++b)
            if (std::isfinite(fitted.spectra.front()[b])) {
                reached.push_back(b);
                t.reference.push_back(fitted.spectra.front()[b]);
            }
        if (reached.size() < library.bands())
            run.note(counted(library.bands() - reached.size(), "band") +
                     " left out, since -reference does not cover them");
        keep_bands(library, reached);
    } else if (t.method == Method::msc) {
        t.reference = mean_of(library.spectra);
    }
    t.wavelengths = library.wavelengths_nm;
    check_segments(run, t, o.source.path);
    auto results = smooth::transformed(library.spectra, t);
    std::vector<std::string> undefined;
    for (size_t k = 0; k < results.size(); ++k)
        if (std::none_of(results[k].begin(), results[k].end(), [](double v) { return std::isfinite(v); }))
            undefined.push_back(library.names[k]);
    if (undefined.size() == results.size()) throw Error("no spectrum of " + o.source.path + " has a result");
    if (!undefined.empty()) run.warn("spectra without a result: " + joined(undefined, ", "));
    library.spectra = std::move(results);
    keep_bands(library, usable_bands(library, false));
    run.report()["method"] = smooth::name_of(t.method);
    tool::end_of_plan(run, [&] {
        run.print(counted(library.spectra.size(), "spectrum", "spectra") + " of " +
                  counted(library.bands(), "band") + "; no output is written");
    });
    if (const auto told = raster::write_spectral_library(output, library, o.destination.history);
        !told.empty())
        run.warn(told);
}

// The options
// ----------------------------------------------------------------------------------------------------------

void check(const Settings& s, const tool::Call& call) {
    const Transform t = settings_of(s);
    const Method m = t.method;
    const struct {
        const char* option;
        bool used;
        const char* methods;
    } rows[] = {
        {"window", smooth::is_sum(m), "savgol or mean"},
        {"degree", m == Method::savgol || m == Method::detrend, "savgol or detrend"},
        {"deriv", m == Method::savgol, "savgol"},
        {"lambda", m == Method::whittaker, "whittaker"},
        {"order", m == Method::whittaker, "whittaker"},
        {"max-gap", smooth::needs_wavelengths(t) && m != Method::detrend,
         "savgol, mean, whittaker or normalise (-norm area)"},
        {"norm", m == Method::normalise, "normalise"},
        {"reference", m == Method::msc, "msc"},
        {"scale", m == Method::absorbance, "absorbance"},
    };
    for (const auto& row : rows)
        if (call.given(row.option) && !row.used)
            throw UsageError(std::string("-") + row.option + " requires -method " + row.methods);
    if (smooth::is_sum(m) && t.window % 2 == 0)
        throw UsageError("-window: " + std::to_string(t.window) + " is even", "Use an odd number of bands.");
    if (m == Method::savgol && t.degree >= t.window)
        throw UsageError("-degree: " + std::to_string(t.degree) + " is out of range (0 to " +
                             std::to_string(t.window - 1) + ")",
                         "Use a larger -window: a polynomial needs more bands than its degree.");
    if (m == Method::savgol && t.derivative > t.degree)
        throw UsageError("-deriv: " + std::to_string(t.derivative) + " is out of range (0 to " +
                             std::to_string(t.degree) + ")",
                         "Use a larger -degree: a polynomial has as many derivatives as its degree.");
    constexpr int most_detrended = 5;
    if (m == Method::detrend && t.degree > most_detrended)
        throw UsageError("-degree: " + std::to_string(t.degree) + " is out of range (0 to 5)");
    tool::check_mask_use(call.options().mask, m == Method::msc && s.reference.empty(), method_text(s));
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_destination("The transformed spectra: a raster, or for a library .sli or .csv");
    args.computes_dst();
    args.add_mask("the mean of msc", true);
    args.add_compute(false);
    args.choice("method", s.transform.method, "Method",
                {{"savgol", Method::savgol, "Savitzky-Golay smoothing, or a derivative with -deriv"},
                 {"mean", Method::mean, "mean of the bands in the window"},
                 {"whittaker", Method::whittaker, "Whittaker smoother with penalised differences"},
                 {"absorbance", Method::absorbance, "-log10 of the scaled value"},
                 {"snv", Method::snv, "standard normal variate: mean 0, standard deviation 1"},
                 {"msc", Method::msc, "multiplicative scatter correction by a reference spectrum"},
                 {"detrend", Method::detrend, "minus a polynomial in wavelength"},
                 {"normalise", Method::normalise, "divided by -norm"}});
    args.option("window", s.window, "Bands in the window, odd")
        .between(3, 255)
        .defaults_to("9; 5 for -method mean");
    args.option("degree", s.transform.degree, "Degree of the polynomial of savgol and detrend")
        .between(0, 254);
    args.option("deriv", s.transform.derivative, "Derivative of savgol, by wavelength in nm").between(0, 254);
    args.option("lambda", s.transform.lambda, "Weight of the roughness in whittaker").above(0);
    args.option("order", s.transform.order, "Order of the differences in whittaker").between(1, 3);
    args.option("max-gap", s.max_gap, "Maximum step between bands that are smoothed together")
        .above(0)
        .in_unit("nm")
        .defaults_to("2.5 median steps");
    args.choice("norm", s.transform.norm, "Divisor of normalise",
                {{"area", Norm::area, "area under the spectrum by trapezoids, gaps left out"},
                 {"max", Norm::max, "greatest value"},
                 {"l2", Norm::l2, "length of the spectrum as a vector"},
                 {"mean", Norm::mean, "mean value"}});
    args.input("reference", s.reference, tool::Content::spectra,
               "Use the first spectrum of this library for msc instead of the scene's mean");
    args.option("scale", s.scale, "Factor from stored values to reflectance, for absorbance")
        .above(0)
        .shown_as("V")
        .defaults_to("scale and offset of the file");
    args.check([&s](const tool::Call& call) { check(s, call); });
    args.body([&s](tool::Run& run) {
        auto source = tools::open_scene_or_library(run);
        if (source.library) return run_library(run, s, std::move(*source.library));
        run_scene(run, s, std::move(source.scene));
    });
}

} // namespace smooth_tool
} // namespace

namespace tools {

extern constinit const tool::Definition smooth{
    "smooth",
    "Smoothed and transformed spectra",
    "Smoothing: smooths the spectra of a scene or of a library, using real wavelengths and never across a "
    "gap, and computes derivatives, absorbance, SNV, MSC, detrended and normalised spectra.",
    {{"gdal_hsi_smooth scene.img smooth.tif", "Savitzky-Golay, nine bands, second degree"},
     {"gdal_hsi_smooth -deriv 1 -window 11 scene.img slope.tif", "The first derivative, per nm"},
     {"gdal_hsi_smooth -method snv scene.img snv.tif", "Standard normal variate"},
     {"gdal_hsi_smooth -method whittaker -lambda 100 library.sli smooth.sli", "The spectra of a library"},
     {"gdal_hsi_pipeline read scene.img ! smooth -method absorbance ! smooth -deriv 1 ! write slope.tif",
      "Two transforms in one pass"}},
    "",
    smooth_tool::declare};

} // namespace tools
} // namespace hsi
