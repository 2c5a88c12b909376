// SPDX-License-Identifier: MIT
// gdal_hsi_resample: computes a scene or a spectral library at the bands of another spectrometer, in one
// pass.
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "links/links.h"
#include "raster/library_output.h"
#include "raster/output_set.h"
#include "raster/spectral_library.h"
#include "resample/resample.h"
#include "shared/number_lists.h"
#include "shared/spectral_bands.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/scene.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace resample_tool {

using tool::Content;

struct Settings {
    std::string like, bands;
    math::Resampling method = math::Resampling::response;
};

// The requested bands
// ----------------------------------------------------------------------------------------------------------

/// The bands of the other spectrometer, and their origin.
struct Target {
    std::string name; ///< such as "-like emit.nc"
    math::SpectralBands bands;
};

Target target_of(tool::Run& run, const Settings& s) {
    Target target;
    if (!s.like.empty()) {
        target.name = "-like " + s.like;
        raster::OpenOptions options;
        options.path = s.like;
        const auto scene = raster::open_raster(options);
        for (const auto& note : scene->facts().notes)
            run.warn(note);
        target.bands = {scene->facts().bands.wavelengths_nm, scene->facts().bands.fwhm_nm};
    } else {
        target.name = "-bands " + s.bands;
        const auto list = raster::read_band_list(s.bands);
        for (const auto& note : list.notes)
            run.warn(note);
        target.bands = {list.wavelengths_nm, list.fwhm_nm};
    }
    if (target.bands.centres.empty())
        throw Error(target.name + " has no wavelengths", "Use a scene or a table with wavelengths.");
    return target;
}

[[noreturn]] void refuse_without_wavelengths(const std::string& source) {
    throw Error(source + " has no wavelengths, so its bands cannot be matched with others",
                tools::advice_on_wavelengths());
}

/// Throws the Error for a target of which no band can be made.
[[noreturn]] void refuse_apart(const std::string& source, const math::SpectralBands& from,
                               const Target& target) {
    throw Error("no band of " + target.name + " can be made from " + source + ": " +
                    tools::reach_text(from, "its bands have a wavelength and a value") + ", " +
                    tools::reach_text(target.bands, "the bands to make are"),
                "Bands are made only between the first and last band of src, and outside gaps; use -resample "
                "linear to bridge gaps.");
}

/// Reports the target bands that cannot be made, and the bands with an incomplete response function.
void tell(tool::Run& run, const Settings& s, const Target& target, const math::ResamplingPlan& plan) {
    const size_t all = target.bands.size();
    Json left_out = Json::array();
    std::vector<std::string> shown;
    constexpr size_t most = 8;
    for (const size_t j : plan.left_out) {
        left_out.push_back(j + 1);
        if (shown.size() < most) shown.push_back(tools::nm_text(target.bands.centres[j]));
    }
    run.report()["resampled"] = {{"method", tools::resampling_name(s.method)},
                                 {"target", target.name},
                                 {"source_bands", plan.sources.size()},
                                 {"bands", plan.bands.size()},
                                 {"left_out", left_out},
                                 {"cut", plan.cut()}};
    if (!plan.left_out.empty())
        run.note(counted(plan.left_out.size(), "band") + " of " + std::to_string(all) +
                 worded(plan.left_out.size(), " is", " are") +
                 " left out, outside the bands of src or in a gap: " + joined(shown, ", ") +
                 (plan.left_out.size() > most ? " and " + counted(plan.left_out.size() - most, "other")
                                              : std::string()));
    if (const size_t cut = plan.cut(); cut > 0)
        run.warn(counted(cut, "band") + worded(cut, " has", " have") +
                 " less than nine tenths of the response within the bands of src");
}

// A scene
// ----------------------------------------------------------------------------------------------------------

math::SpectralBands bands_of(const raster::RasterSource& scene) {
    return {scene.facts().bands.wavelengths_nm, scene.facts().bands.fwhm_nm};
}

/// Returns the source. If its bands have different scales or offsets, returns its scaled values.
std::shared_ptr<raster::RasterSource> of_one_scale(tool::Run& run,
                                                   std::shared_ptr<raster::RasterSource> source) {
    const auto values = source->facts().bands.values;
    const auto same = [](const std::vector<double>& list) {
        return std::all_of(list.begin(), list.end(), [&](double v) { return v == list.front(); });
    };
    const bool apply = !same(values.scale) || !same(values.offset);
    run.report()["scale_applied"] = apply;
    if (!apply) return source;
    run.note("Values: the bands have different scales or offsets, which are applied first");
    return source->scaled();
}

/// Returns the source with only the bands of known wavelength, in their order.
std::shared_ptr<raster::RasterSource> with_known_bands(tool::Run& run,
                                                       std::shared_ptr<raster::RasterSource> source) {
    auto known = math::rising_bands(source->facts().bands.wavelengths_nm);
    std::sort(known.begin(), known.end());
    const auto all = static_cast<size_t>(source->shape().bands);
    if (known.size() == all) return source;
    const size_t lost = all - known.size();
    run.note(counted(lost, "band") + " of src" + worded(lost, " is", " are") +
             " left out: no wavelength, or the wavelength of another band");
    return tool::only_bands(source, {known.begin(), known.end()});
}

raster::OutputSpec spec_of(const raster::RasterSource& scene, const math::ResamplingPlan& plan,
                           const math::SpectralBands& target) {
    raster::OutputSpec spec;
    const auto shape = scene.shape();
    spec.shape = {shape.samples, shape.lines, static_cast<int>(plan.bands.size())};
    spec.holes = true;
    spec.spectral = true;
    const auto values = scene.facts().bands.values;
    for (const auto& band : plan.bands) {
        raster::BandSpec one;
        one.metadata["wavelength"] = tools::short_number(target.centres[band.target]);
        one.metadata["wavelength_units"] = "Nanometers";
        if (std::isfinite(band.width)) one.metadata["fwhm"] = tools::short_number(band.width);
        one.metadata["HSI_NOISE_GAIN"] = tools::short_number(band.noise_gain());
        if (!values.scale.empty()) {
            one.scale = values.scale.front();
            one.offset = values.offset.front();
        }
        one.unit = values.unit;
        spec.bands.push_back(std::move(one));
    }
    return spec;
}

/// Writes a VRT or a virtual scene. Each of its bands is a weighted sum that is computed when it is read.
void write_virtual(tool::Run& run, const raster::OutputSpec& spec, const raster::RasterSource& scene,
                   const math::ResamplingPlan& plan) {
    const auto& dst = run.options().destination;
    tool::write_virtual(
        run, dst, spec, scene, [&] { return links::resampling(scene.shape().bands, plan.bands); },
        [&] {
            std::vector<raster::VirtualBand> bands;
            for (const auto& band : plan.bands) {
                std::vector<double> weights(static_cast<size_t>(scene.shape().bands));
                for (size_t k = 0; k < band.sources.size(); ++k)
                    weights[band.sources[k]] = band.weights[k];
                raster::VirtualBand one;
                one.function = "hsi_resample";
                one.arguments = {{"weights", tools::number_list(weights)}};
                bands.push_back(std::move(one));
            }
            return bands;
        });
}

math::ResamplingPlan plan_of(const raster::RasterSource& scene, const Settings& s, const Target& target) {
    auto plan = math::plan_resampling(bands_of(scene), target.bands, s.method);
    if (plan.bands.empty()) refuse_apart(scene.path(), bands_of(scene), target);
    return plan;
}

/// Makes the pass. Returns false if no pixel is valid.
bool resample_scene(tool::Run& run, const Settings& s, const Target& target,
                    const raster::RasterSource& scene, double share) {
    const auto plan = plan_of(scene, s, target);
    const auto spec = spec_of(scene, plan, target.bands);
    raster::OutputSet outputs;
    outputs.plan(run.options().destination, spec);
    outputs.check(scene);
    const auto operation = resample::make_resampling(scene.shape().bands, plan.bands);
    const auto pass = [&] { return run.pass("resampling", share); };
    tool::end_of_plan(run, [&] {
        tell(run, s, target, plan);
        tool::print_plan(run, scene, *operation, pass());
    });
    tool::write(run, scene, *operation, outputs, &scene, pass);
    if (operation->valid() == 0) return false;
    tell(run, s, target, plan);
    tool::report_invalid(run, operation->valid(), operation->invalid());
    outputs.commit();
    return true;
}

void run_scene(tool::Run& run, const Settings& s, std::shared_ptr<raster::RasterSource> source) {
    tool::check_spectrum(*source, "resampling");
    if (source->facts().bands.wavelengths_nm.empty()) refuse_without_wavelengths(source->path());
    const Target target = target_of(run, s);
    auto scene = with_known_bands(run, of_one_scale(run, std::move(source)));
    if (raster::is_virtual(run.options().destination)) {
        tool::leave_out_unseen_bands(run, scene);
        const auto plan = plan_of(*scene, s, target);
        tell(run, s, target, plan);
        return write_virtual(run, spec_of(*scene, plan, target.bands), *scene, plan);
    }
    tool::report_devices(run, {}, resample::simd_target());
    const bool any = tool::attempt(run, {tool::banded(scene)}, [&](bool again) {
        return resample_scene(run, s, target, *scene, again ? 0 : 1);
    });
    if (!any) throw tool::no_valid_pixel(*scene);
}

// A library
// ----------------------------------------------------------------------------------------------------------

void run_library(tool::Run& run, const Settings& s, const raster::SpectralLibrary& library) {
    const auto& o = run.options();
    const auto output = run.text_output("dst", o.destination.path, o.destination.overwrite);
    raster::check_library_output(output);
    if (library.wavelengths_nm.empty()) refuse_without_wavelengths(o.source.path);
    const Target target = target_of(run, s);
    const auto resampled = tools::resampled(library, target.bands, s.method);
    const auto& plan = resampled.plan;
    if (plan.bands.empty()) refuse_apart(o.source.path, {library.wavelengths_nm, library.fwhm_nm}, target);
    raster::SpectralLibrary out;
    out.names = library.names;
    out.twofold = library.twofold;
    out.widths_in_table = true;
    for (const auto& band : plan.bands) {
        out.wavelengths_nm.push_back(target.bands.centres[band.target]);
        out.fwhm_nm.push_back(band.width);
    }
    for (const auto& spectrum : resampled.spectra) {
        auto& values = out.spectra.emplace_back();
        for (const auto& band : plan.bands)
            values.push_back(spectrum[band.target]);
    }
    tell(run, s, target, plan);
    run.report()["library"] = {{"path", o.source.path}, {"spectra", library.names}};
    tool::end_of_plan(run, [&] {
        run.print(counted(out.spectra.size(), "spectrum", "spectra") + " of " +
                  counted(plan.bands.size(), "band") + "; no output is written");
    });
    if (const auto told = raster::write_spectral_library(output, out, o.destination.history); !told.empty())
        run.warn(told);
    run.note(counted(out.spectra.size(), "spectrum", "spectra") + " at " +
             counted(plan.bands.size(), "band"));
}

void run_resample(tool::Run& run, const Settings& s) {
    auto source = tools::open_scene_or_library(run);
    if (source.library) return run_library(run, s, *source.library);
    run_scene(run, s, std::move(source.scene));
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_destination("The resampled spectra: a raster, or for a library .sli or .csv");
    args.computes_dst();
    args.input("like", s.like, Content::raster, "Resample to the good bands of this scene");
    args.input("bands", s.bands, Content::spectra,
               "Resample to the bands of this library, or of a table with the columns wavelength and fwhm");
    args.choice(
        "resample", s.method, "How a band is computed",
        {{"response", math::Resampling::response,
          "convolved with its response, reduced by the width of the bands of src"},
         {"linear", math::Resampling::linear, "interpolated at its centre between two bands of src"}});
    args.exclusive("like", "bands");
    args.add_mask("the result", true);
    args.add_compute(false);
    args.check([&s](const tool::CommonOptions& o) {
        tool::check_mask_use(o.mask, false, "gdal_hsi_resample");
        if (s.like.empty() && s.bands.empty())
            throw UsageError("the bands to make are missing", "Give them with -like SCENE or -bands FILE.");
    });
    args.body([&s](tool::Run& run) { run_resample(run, s); });
}

} // namespace resample_tool
} // namespace

namespace tools {

extern constinit const tool::Definition resample{
    "resample",
    "Resampling to the bands of another sensor",
    "Resampling: converts the spectra of a scene or of a library to the bands of another "
    "sensor, as that sensor would have measured them. The widths of the source's bands are taken into "
    "account.",
    {{"gdal_hsi_resample -like emit.nc scene.img scene_emit.tif", "A scene at EMIT's bands"},
     {"gdal_hsi_resample -like scene.img usgs.sli usgs_scene.sli", "A library at a scene's bands"},
     {"gdal_hsi_resample -bands sentinel2.csv scene.img s2.tif", "Bands from a table of centres and widths"},
     {"gdal_hsi_resample -bands bands.csv -of VRT scene.img s2.vrt", "Computed when it is displayed"}},
    "",
    resample_tool::declare};

} // namespace tools
} // namespace hsi
