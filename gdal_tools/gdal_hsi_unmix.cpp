// SPDX-License-Identifier: MIT
// gdal_hsi_unmix: abundances of a library's spectra in every pixel, in one pass over the scene.
#include "catalogue.h"
#include "core/error.h"
#include "fitted_library.h"
#include "raster/output_set.h"
#include "stream/band_statistics.h"
#include "tool/devices.h"
#include "tool/scene.h"
#include "unmix/unmix.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace hsi {
namespace {

using tool::Content;

struct Settings {
    std::string library, rmse;
    unmix::Options unmix;
    double library_scale = 1;
};

/// The middle one of several lengths; 0 of none.
double median(std::vector<double> lengths) {
    if (lengths.empty()) return 0;
    const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
    std::nth_element(lengths.begin(), middle, lengths.end());
    return *middle;
}

/// Lengths of the first 65,536 valid spectra in reading order.
std::vector<double> first_lengths(const raster::RasterSource& scene) {
    constexpr size_t wanted = 65536;
    const auto shape = scene.shape();
    const auto reader = scene.open_reader();
    const int64_t lines = std::clamp<int64_t>(4194304 / (shape.samples * shape.bands), 1, shape.lines);
    std::vector<float> values(static_cast<size_t>(shape.bands * lines * shape.samples));
    std::vector<double> lengths;
    for (int64_t line = 0; line < shape.lines && lengths.size() < wanted; line += lines) {
        const int64_t count = std::min(lines, shape.lines - line);
        const auto view = CubeView<float>::packed(values.data(), shape.bands, count, shape.samples);
        reader->read({0, line, shape.samples, count}, view);
        for (int64_t y = 0; y < count; ++y)
            for (int64_t x = 0; x < shape.samples && lengths.size() < wanted; ++x) {
                double squared = 0;
                for (int b = 0; b < shape.bands; ++b) {
                    const double v = view.row(b, y)[x];
                    squared += v * v;
                }
                if (std::isfinite(squared) && squared > 0) lengths.push_back(std::sqrt(squared));
            }
    }
    return lengths;
}

/// Reflectance in 0..1 beside a scene of integers is the commonest mistake.
void compare_levels(tool::Run& run, const raster::RasterSource& scene, const unmix::Endmembers& endmembers) {
    std::vector<double> lengths;
    for (const auto& x : endmembers.spectra) {
        double squared = 0;
        for (double v : x)
            squared += v * v;
        lengths.push_back(std::sqrt(squared));
    }
    const double library = median(lengths), pixels = median(first_lengths(scene));
    if (pixels == 0 || (library >= pixels / 10 && library <= 10 * pixels)) return;
    char text[200];
    std::snprintf(
        text, sizeof text,
        "the library's spectra are %.3g times as long as those of the scene: are the units the same? "
        "-library-scale multiplies the library",
        library / pixels);
    run.warn(text);
}

/// The library's spectra at the scene's bands, multiplied; bands that the library does not know are left out
/// of the scene.
unmix::Endmembers endmembers_of(tool::Run& run, const Settings& s,
                                std::shared_ptr<raster::RasterSource>& scene) {
    const auto library = raster::read_spectral_library(s.library);
    for (size_t k = 0; k < library.spectra.size(); ++k)
        if (!std::all_of(library.spectra[k].begin(), library.spectra[k].end(),
                         [](double v) { return std::isfinite(v); }))
            throw Error("library " + s.library + ": the spectrum '" + library.names[k] +
                            "' holds values that are no numbers",
                        "Mend it, or leave it out.");
    const auto bands = static_cast<size_t>(scene->shape().bands);
    const auto fitted = tools::fit_library(library, "library", s.library, bands, scene->wavelengths_nm());
    const auto common = tools::common_bands(fitted, "library", s.library);
    if (common.size() < bands) {
        run.note("Unmixing over " + std::to_string(common.size()) + " of " + std::to_string(bands) +
                 " bands: the others lie outside the library");
        scene = tool::only_bands(scene, {common.begin(), common.end()});
    }
    unmix::Endmembers endmembers{fitted.names, {}};
    for (const auto& spectrum : fitted.spectra) {
        auto& to = endmembers.spectra.emplace_back();
        for (size_t b : common)
            to.push_back(spectrum[b] * s.library_scale);
    }
    run.report()["library"] = {
        {"path", s.library}, {"spectra", fitted.names}, {"bands", common.size()}, {"scale", s.library_scale}};
    return endmembers;
}

/// A band an endmember, and the error where it is asked for.
raster::OutputSet outputs_of(const tool::Run& run, const Settings& s, const stream::CubeShape& scene,
                             const std::vector<std::string>& names, const char* method) {
    raster::OutputSet outputs;
    raster::OutputSpec abundances;
    abundances.shape = {scene.samples, scene.lines, static_cast<int>(names.size())};
    abundances.holes = true;
    abundances.metadata["HSI_UNMIX_METHOD"] = method;
    for (const auto& name : names)
        abundances.bands.push_back({name, {}});
    outputs.plan(run.options().destination, abundances);
    if (!s.rmse.empty()) {
        raster::OutputSpec rmse;
        rmse.shape = {scene.samples, scene.lines, 1};
        rmse.holes = true;
        rmse.metadata = abundances.metadata;
        rmse.bands = {{"RMSE", {}}};
        outputs.plan(run.side_output("-rmse", s.rmse), rmse);
    }
    outputs.check();
    return outputs;
}

void tell_independence(tool::Run& run, const unmix::Endmembers& endmembers, unmix::Method method) {
    const auto least = unmix::check_endmembers(endmembers, method);
    run.report()["library"]["least_distance"] = least.distance;
    if (least.distance >= unmix::safe_distance) return;
    char length[32];
    std::snprintf(length, sizeof length, "%.1e", least.distance);
    run.warn("'" + endmembers.names[static_cast<size_t>(least.endmember)] +
             "' is a mixture of the other spectra but for " + length +
             " of its length: abundances are uncertain");
}

const char* name_of(unmix::Method method) {
    switch (method) {
    case unmix::Method::ucls:
        return "ucls";
    case unmix::Method::nnls:
        return "nnls";
    case unmix::Method::scls:
        return "scls";
    case unmix::Method::fcls:
        break;
    }
    return "fcls";
}

/// One pass; false when no pixel is valid. share: of the progress.
bool unmix_scene(tool::Run& run, const Settings& s, const std::shared_ptr<raster::RasterSource>& source,
                 double share) {
    auto scene = source;
    const auto endmembers = endmembers_of(run, s, scene);
    tell_independence(run, endmembers, s.unmix.method);
    auto outputs = outputs_of(run, s, scene->shape(), endmembers.names, name_of(s.unmix.method));
    const auto operation = unmix::make_unmixing(endmembers, s.unmix);
    if (run.options().dry_run) {
        tool::print_plan(run, *scene, *operation, run.pass("unmixing", 1));
        return true;
    }
    compare_levels(run, *scene, endmembers);
    outputs.create(scene.get());
    run.reserve_cache(outputs.cache_bytes());
    auto pass = run.pass("unmixing", share);
    pass.output_layout = outputs.layout();
    run.add_pass(stream::run_pass(*scene, *operation, outputs.sinks(), pass));
    if (operation->valid() == 0) return false;
    tool::tell_invalid(run, operation->valid(), operation->invalid());
    outputs.commit();
    return true;
}

void run_unmix(tool::Run& run, const Settings& s) {
    auto source = run.open_source();
    tool::check_spectrum(*source, "unmixing");
    run.report()["device"] = tool::describe_devices(run, {}, nullptr);
    if (unmix_scene(run, s, source, 1)) return;
    // Perhaps a band without a single value spoils every pixel.
    stream::BandStatisticsScan scan(source->shape().bands);
    run.add_pass(stream::run_pass(*source, scan, {}, run.pass("statistics", 0)));
    if (!run.leave_out_empty_bands(source, scan.result().empty_bands()) || !unmix_scene(run, s, source, 0))
        throw tool::no_valid_pixel(*source);
}

void declare(tool::Call& call) {
    auto& s = call.settings<Settings>();
    call.add_source();
    call.input_argument("library", s.library, Content::spectra,
                        "The endmembers' spectra: an ENVI spectral library (.sli) or a table (.csv)");
    call.add_destination("The abundances, a band an endmember; it appears when it is complete");
    call.choice<unmix::Method>("method", s.unmix.method, "What abundances must hold to",
                               {{"ucls", unmix::Method::ucls, "nothing"},
                                {"nnls", unmix::Method::nnls, "none is negative"},
                                {"scls", unmix::Method::scls, "their sum is one"},
                                {"fcls", unmix::Method::fcls, "none is negative, and their sum is one"}});
    call.output("rmse", s.rmse, Content::raster,
                "Also write the root mean square error of every pixel, in the units of src, to FILE");
    call.option("library-scale", s.library_scale,
                "Multiply the library by this: 10000 for reflectance in 0..1 beside a scene in 0..10000")
        .above(0);
    call.add_compute(false);
    call.check([&s](const tool::CommonOptions&) { s.unmix.rmse = !s.rmse.empty(); });
    call.body([&s](tool::Run& run) { run_unmix(run, s); });
}

} // namespace

const tool::Definition tools::unmix{
    "unmix",
    "Linear spectral unmixing (UCLS, NNLS, SCLS, FCLS)",
    "Linear spectral unmixing: the abundances of a library's spectra in every pixel, the exact minimiser of "
    "the error, without constraint, without negative abundances, with a sum of one, or with both (fully "
    "constrained least squares).",
    {{"gdal_hsi_unmix scene.img endmembers.sli abundances.tif", "Fully constrained"},
     {"gdal_hsi_atdca -t 6 -spectra targets.sli scene.img targets.gpkg && gdal_hsi_unmix scene.img "
      "targets.sli "
      "abundances.tif",
      "With the spectra of targets as endmembers"},
     {"gdal_hsi_unmix -method nnls -library-scale 10000 -rmse error.tif scene.img minerals.csv a.tif",
      "A library of reflectances beside a scene of integers, and how well it explains them"}},
    "",
    declare};

} // namespace hsi
