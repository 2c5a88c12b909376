// SPDX-License-Identifier: MIT
// gdal_hsi_reflect: computes reflectance from the stored values of a spectrometer, from means of the scene
// itself or from known targets. The first pass computes means, the second pass converts all pixels. -apply
// takes one pass.
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "model/band_match.h"
#include "raster/labels.h"
#include "raster/spectral_library.h"
#include "shared/number_lists.h"
#include "shared/scene_and_library.h"
#include "shared/spectral_bands.h"
#include "shared/training_pixels.h"
#include "shared/transforms.h"
#include "spectra/spectra.h"
#include "stream/pixel_mask.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/mask.h"
#include "tool/model_values.h"
#include "tool/passes.h"
#include "tool/phrases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace reflect_tool {

enum class Method { none, flat, iarr, log_residual, empirical_line };

struct Settings {
    Method method = Method::none;
    std::string area, reference, targets, library, coefficients, apply;
    bool through_origin = false;
};

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

/// A line for one band: reflectance = gain * stored value + offset. rmse and r2 describe how well the line
/// fits the targets.
struct Line {
    double gain = 1, offset = 0, rmse = nothing, r2 = nothing;
    size_t targets = 0;
};

/// The lines of the bands, and texts of the bands without a line.
struct Lines {
    std::map<int, Line> of_band; ///< lines by band number in the file
    std::vector<std::string> left_out;
};

std::string band_text(const raster::RasterSource& scene, size_t b) {
    const auto& nm = scene.facts().bands.wavelengths_nm;
    return std::to_string(scene.bands()[b]) + (nm.empty() ? "" : " (" + tools::nm_text(nm[b]) + ")");
}

// Lines from the scene's own means
// ----------------------------------------------------------------------------------------------------------

/// Returns the mean of each band over the pixels of -area. Without -area: over all pixels of the statistics.
std::vector<double> means_of(tool::Run& run, const Settings& s, tool::Scene& scene) {
    if (s.area.empty()) return tools::counted_means(run, scene);
    std::string how;
    const std::shared_ptr<const stream::PixelMask> area =
        tool::read_mask(run, "-area", s.area, *scene.raster(), how);
    run.report()["area"] = {{"path", s.area}, {"how", how}, {"pixels", area->count()}};
    scene.join([area](std::shared_ptr<const stream::CubeSource> cube, const raster::RasterSource&) {
        return std::make_shared<stream::MaskedSource>(std::move(cube), area);
    });
    auto means = tools::counted_means(run, scene);
    scene.join({});
    return means;
}

/// Returns the first spectrum of -reference at the scene's bands, with NaN for missing values. Without
/// -reference: 1 in all bands.
std::vector<double> reference_of(tool::Run& run, const Settings& s, const raster::RasterSource& scene) {
    const auto bands = static_cast<size_t>(scene.shape().bands);
    if (s.reference.empty()) return std::vector<double>(bands, 1);
    const auto library = tools::chosen_library(run, "-reference", s.reference, {"#1"}, bands);
    return tools::fit_library(library, "-reference", s.reference, tool::scene_bands(scene),
                              scene.facts().bands.fwhm_nm)
        .spectra.front();
}

Lines lines_by_means(tool::Run& run, const Settings& s, tool::Scene& scene) {
    const auto means = means_of(run, s, scene);
    const auto reference = reference_of(run, s, *scene.raster());
    Lines lines;
    for (size_t b = 0; b < means.size(); ++b) {
        if (means[b] > 0 && std::isfinite(reference[b]))
            lines.of_band[scene.raster()->bands()[b]] = {reference[b] / means[b], 0};
        else
            lines.left_out.push_back(band_text(*scene.raster(), b));
    }
    if (lines.of_band.empty())
        throw Error("no band has a mean above 0" + std::string(s.reference.empty() ? "" : " and a reference"),
                    "Use stored values of a spectrometer, such as radiance.");
    return lines;
}

// Lines through targets
// ----------------------------------------------------------------------------------------------------------

struct Target {
    std::string name;
    std::vector<double> stored, reflectance; ///< per band
};

/// Returns the mean spectrum of each labelled class.
std::vector<spectra::ClassSpectra> class_means(tool::Run& run, tool::Scene& scene,
                                               const raster::LabelledPixels& pixels) {
    spectra::Labels labels;
    labels.samples = pixels.grid.samples;
    labels.index = pixels.index;
    labels.classes = pixels.classes.size();
    for (const uint16_t value : pixels.value)
        labels.class_of.push_back(
            static_cast<uint16_t>(std::find_if(pixels.classes.begin(), pixels.classes.end(),
                                               [&](const LabelClass& one) { return one.value == value; }) -
                                  pixels.classes.begin()));
    spectra::ClassScan scan(scene.shape().bands, labels);
    auto pass = run.pass("targets", 0.2);
    const auto plan = stream::plan_pass(scene.cube(), scan, pass);
    tool::end_of_plan(run, [&] { tool::print_plan(run, scene.cube(), scan, pass); });
    const auto tiles = scan.tiles(plan);
    pass.only = &tiles;
    run.add_pass(stream::run_pass(scene.cube(), scan, {}, plan, pass));
    return scan.result();
}

std::vector<Target> targets_of(tool::Run& run, const Settings& s, tool::Scene& scene) {
    raster::LabelOptions options;
    options.path = s.targets;
    const auto pixels = tools::read_labels(run, options, *scene.raster());
    const auto library = tools::fit_library(
        tools::chosen_library(run, "-library", s.library, {}, static_cast<size_t>(scene.shape().bands)),
        "-library", s.library, tool::scene_bands(*scene.raster()), scene.raster()->facts().bands.fwhm_nm);
    const auto found = class_means(run, scene, pixels);
    std::vector<Target> targets;
    for (size_t c = 0; c < found.size(); ++c) {
        const std::string name =
            pixels.classes[c].name.empty() ? std::to_string(pixels.classes[c].value) : pixels.classes[c].name;
        const auto same = std::find_if(library.names.begin(), library.names.end(),
                                       [&](const auto& other) { return equal_names(other, name); });
        if (same == library.names.end())
            run.warn("target '" + name + "' has no spectrum with its name in " + s.library +
                     " and is left out");
        else if (found[c].pixels == 0)
            run.warn("target '" + name + "' has no valid pixel and is left out");
        else
            targets.push_back(
                {name, found[c].mean, library.spectra[static_cast<size_t>(same - library.names.begin())]});
    }
    if (targets.empty())
        throw Error("no target of " + s.targets + " has a spectrum with its name in " + s.library,
                    "Give classes and spectra the same names; upper and lower case are equal.");
    if (targets.size() == 1 && !s.through_origin)
        throw Error("a line needs two targets, but there is only one: " + targets.front().name,
                    "Give more targets, or -through-origin.");
    return targets;
}

/// Fits a line to the targets by least squares. Returns nullopt if a target lacks reflectance, or if the
/// stored values do not differ.
std::optional<Line> line_of(const std::vector<Target>& targets, size_t b, bool through_origin) {
    constexpr double apart = 1e-6;
    double greatest = 0, mean_l = 0, mean_r = 0, least = HUGE_VAL, most = -HUGE_VAL;
    const auto n = static_cast<double>(targets.size());
    for (const Target& one : targets) {
        if (!std::isfinite(one.reflectance[b])) return std::nullopt;
        greatest = std::max(greatest, std::fabs(one.stored[b]));
        least = std::min(least, one.stored[b]);
        most = std::max(most, one.stored[b]);
        mean_l += one.stored[b] / n;
        mean_r += one.reflectance[b] / n;
    }
    if (through_origin ? !(greatest > 0) : !(most - least > apart * greatest)) return std::nullopt;
    const double from_l = through_origin ? 0 : mean_l, from_r = through_origin ? 0 : mean_r;
    double ll = 0, lr = 0, error = 0, variance = 0;
    for (const Target& one : targets) {
        ll += (one.stored[b] - from_l) * (one.stored[b] - from_l);
        lr += (one.stored[b] - from_l) * (one.reflectance[b] - from_r);
    }
    Line line{lr / ll, 0, nothing, nothing, targets.size()};
    line.offset = from_r - line.gain * from_l;
    for (const Target& one : targets) {
        const double e = one.reflectance[b] - (line.gain * one.stored[b] + line.offset);
        error += e * e;
        variance += (one.reflectance[b] - mean_r) * (one.reflectance[b] - mean_r);
    }
    line.rmse = std::sqrt(error / n);
    if (variance > 0) line.r2 = 1 - error / variance;
    return line;
}

/// Reports for each target the root mean square, over bands, of its distance from the lines.
void report_targets(tool::Run& run, const std::vector<Target>& targets, const Lines& lines,
                    const raster::RasterSource& scene) {
    Json report = Json::array();
    for (const Target& one : targets) {
        double squares = 0;
        for (size_t b = 0; b < scene.bands().size(); ++b)
            if (const auto at = lines.of_band.find(scene.bands()[b]); at != lines.of_band.end()) {
                const double e = one.reflectance[b] - (at->second.gain * one.stored[b] + at->second.offset);
                squares += e * e;
            }
        const double rmse = std::sqrt(squares / static_cast<double>(lines.of_band.size()));
        report.push_back({{"name", one.name}, {"rmse", rmse}});
        run.note("Target " + one.name + ": residual " + tools::short_number(rmse) + " (rms over bands)");
    }
    run.report()["targets"] = report;
}

Lines lines_by_targets(tool::Run& run, const Settings& s, tool::Scene& scene) {
    const auto targets = targets_of(run, s, scene);
    Lines lines;
    size_t negative = 0;
    for (size_t b = 0; b < scene.raster()->bands().size(); ++b) {
        const auto line = line_of(targets, b, s.through_origin);
        if (line) {
            lines.of_band[scene.raster()->bands()[b]] = *line;
            negative += line->gain < 0;
        } else {
            lines.left_out.push_back(band_text(*scene.raster(), b));
        }
    }
    if (lines.of_band.empty())
        throw Error("no band distinguishes the targets", "Check the positions of -targets.");
    if (negative > 0)
        run.warn(counted(negative, "band") + worded(negative, " has", " have") +
                 " a negative gain: brighter targets have less reflectance there");
    report_targets(run, targets, lines, *scene.raster());
    return lines;
}

// Lines of a file
// ----------------------------------------------------------------------------------------------------------

std::string csv_of(const Lines& lines, const raster::RasterSource& scene) {
    const auto& nm = scene.facts().bands.wavelengths_nm;
    std::string text = "band,wavelength,gain,offset,rmse,r2,targets\n";
    for (size_t b = 0; b < scene.bands().size(); ++b) {
        const auto at = lines.of_band.find(scene.bands()[b]);
        if (at == lines.of_band.end()) continue;
        const Line& one = at->second;
        text += std::to_string(at->first) + "," + (nm.empty() ? "" : tools::number_cell(nm[b])) + "," +
                tools::number_list({one.gain}) + "," + tools::number_list({one.offset}) + "," +
                tools::number_cell(one.rmse) + "," + tools::number_cell(one.r2) + "," +
                std::to_string(one.targets) + "\n";
    }
    return text;
}

/// Returns the lines in the file of -apply. Removes all other bands from the scene.
Lines lines_of_file(tool::Run& run, const std::string& path, std::shared_ptr<raster::RasterSource>& source) {
    const auto table = raster::read_spectrum_table(path, {"band", "gain", "offset"}, {"wavelength"});
    model::ModelBands bands;
    std::vector<Line> rows;
    bool some_known = false;
    for (const auto& row : table.rows) {
        const double number = raster::table_number(row[0]);
        Line line{raster::table_number(row[1]), raster::table_number(row[2])};
        constexpr double most = 1e6;
        if (!(number >= 1 && number <= most && number == std::floor(number)) || !std::isfinite(line.gain) ||
            !std::isfinite(line.offset))
            throw Error("cannot read '" + path + "': a row has no band, gain or offset",
                        "Use a table written by -coefficients.");
        bands.bands.push_back(static_cast<int>(number));
        const double nm = raster::table_number(row[3]);
        if (!row[3].empty() && !(nm > 0 && std::isfinite(nm)))
            throw Error("cannot read '" + path + "': the wavelength of band " + row[0] + " is '" + row[3] +
                            "'",
                        "Use a table written by -coefficients.");
        some_known = some_known || nm > 0;
        bands.wavelengths_nm.push_back(nm);
        rows.push_back(line);
    }
    if (!model::all_known(bands.wavelengths_nm)) {
        if (some_known)
            run.warn("'" + path + "' lacks wavelengths of some bands: bands are matched by their numbers");
        bands.wavelengths_nm.clear();
    }
    const auto matched = tool::match_source(run, source, path, bands, false);
    source = matched.source;
    Lines lines;
    for (size_t k = 0; k < rows.size(); ++k)
        lines.of_band[source->bands()[static_cast<size_t>(matched.matched[k])]] = rows[k];
    return lines;
}

// The run
// ----------------------------------------------------------------------------------------------------------

void tell_left_out(tool::Run& run, const Settings& s, const std::vector<std::string>& left_out) {
    run.report()["left_out"] = left_out;
    if (left_out.empty()) return;
    run.note(counted(left_out.size(), "band") + worded(left_out.size(), " is", " are") + " left out, " +
             (s.method == Method::empirical_line
                  ? "in which targets do not differ or the library has no value"
                  : "whose mean is not above 0 or which have no reference") +
             ": " + joined(left_out, ", "));
}

void write_lines(tool::Run& run, tool::Scene& scene, const Lines& lines, double share) {
    std::vector<int> kept;
    for (size_t b = 0; b < scene.raster()->bands().size(); ++b)
        if (lines.of_band.count(scene.raster()->bands()[b]) > 0) kept.push_back(static_cast<int>(b));
    tool::Scene used(run, tool::only_bands(scene.raster(), kept), "");
    tools::SpectrumWork work;
    work.pass = "reflectance";
    work.share = share;
    work.undefined = "since a value is outside the range of Float32";
    work.make = [&](const raster::RasterSource& left) {
        smooth::Transform t;
        t.method = smooth::Method::gain;
        for (const int band : left.bands()) {
            t.gain.push_back(lines.of_band.at(band).gain);
            t.offset.push_back(lines.of_band.at(band).offset);
        }
        return t;
    };
    tools::write_transformed(run, used, work);
}

void write_residuals(tool::Run& run, tool::Scene& scene) {
    smooth::Transform logarithm;
    logarithm.method = smooth::Method::logarithm;
    smooth::Transform t;
    t.method = smooth::Method::log_residual;
    t.reference = tools::counted_means(run, scene, logarithm);
    tools::SpectrumWork work;
    work.pass = "reflectance";
    work.share = 0.5;
    work.undefined = "since a value is not above 0";
    work.make = [&](const raster::RasterSource&) { return t; };
    tools::write_transformed(run, scene, work);
}

void run_reflect(tool::Run& run, const Settings& s) {
    auto source = run.open_source();
    const bool computed = raster::is_virtual(run.options().destination);
    const auto output = run.text_output("-coefficients", s.coefficients, run.options().destination.overwrite);
    raster::check_text_output(output);
    if (!computed) tool::report_devices(run, {}, nullptr);
    Lines lines;
    if (!s.apply.empty()) lines = lines_of_file(run, s.apply, source);
    if (s.method == Method::empirical_line || (computed && !s.apply.empty()))
        tool::leave_out_unseen_bands(run, source);
    tool::Scene scene(run, source, s.method == Method::log_residual ? "-method log-residual" : "");
    if (s.method == Method::log_residual) return write_residuals(run, scene);
    if (s.apply.empty()) {
        lines = s.method == Method::empirical_line ? lines_by_targets(run, s, scene)
                                                   : lines_by_means(run, s, scene);
        tell_left_out(run, s, lines.left_out);
    }
    if (!s.coefficients.empty()) raster::write_text_output(output, csv_of(lines, *scene.raster()));
    write_lines(run, scene, lines, s.apply.empty() ? 0.5 : 1);
}

void check(const Settings& s, const tool::Call& call) {
    const bool line = s.method == Method::empirical_line;
    if (s.method == Method::none && s.apply.empty())
        throw UsageError("-method is missing", "Give -method flat, iarr, log-residual or empirical-line, or "
                                               "-apply FILE.csv.");
    if (s.method != Method::none && !s.apply.empty())
        throw UsageError(tool::cannot_be_used_with("-method", "-apply"));
    if (s.method == Method::flat && s.area.empty())
        throw UsageError("-method flat requires -area", "Mark an area of even reflectance.");
    if (s.method != Method::flat && !s.area.empty()) throw UsageError("-area requires -method flat");
    if (s.method != Method::flat && !s.reference.empty())
        throw UsageError("-reference requires -method flat");
    if (line && (s.targets.empty() || s.library.empty()))
        throw UsageError("-method empirical-line requires -targets and -library",
                         "Give labels of the targets and spectra with the same names, or -apply.");
    for (const char* const option : {"targets", "library", "through-origin"})
        if (call.given(option) && !line)
            throw UsageError(std::string("-") + option + " requires -method empirical-line");
    if (!s.coefficients.empty() && (s.method == Method::log_residual || !s.apply.empty()))
        throw UsageError("-coefficients requires -method flat, iarr or empirical-line");
    const bool learns =
        s.method == Method::flat || s.method == Method::iarr || s.method == Method::log_residual || line;
    tool::check_mask_use(call.options().mask, learns, "-apply");
}

void declare(tool::Builder& args) {
    using tool::Content;
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_destination("Reflectance, with the bands of src");
    args.computes_dst();
    args.add_mask("the means", true);
    args.add_compute(false);
    args.choice("method", s.method, "Method",
                {{"flat", Method::flat, "divided by the mean of -area"},
                 {"iarr", Method::iarr, "divided by the mean of the scene"},
                 {"log-residual", Method::log_residual, "logarithms minus the means of pixel and band"},
                 {"empirical-line", Method::empirical_line, "one line per band through known targets"}});
    args.input("area", s.area, Content::labels, "Mask of the uniform area of -method flat");
    args.input("reference", s.reference, Content::spectra,
               "Reflectance of -area: the first spectrum of this library");
    args.input("targets", s.targets, Content::labels, "Labels of the targets of -method empirical-line");
    args.input("library", s.library, Content::spectra, "Reflectance of the targets, by their names");
    args.flag("through-origin", s.through_origin, "Lines through the origin: no offset");
    args.output("coefficients", s.coefficients, Content::text,
                "Also write gain and offset of each band to FILE, a .csv");
    args.input("apply", s.apply, Content::text, "Use the gains and offsets of this file");
    args.check([&s](const tool::Call& call) { check(s, call); });
    args.body([&s](tool::Run& run) { run_reflect(run, s); });
}

} // namespace reflect_tool
} // namespace

namespace tools {

extern constinit const tool::Definition reflect{
    "reflect",
    "Reflectance from stored values",
    "Reflectance: converts radiance or stored values to reflectance by an area of uniform reflectance, by "
    "the "
    "mean of the scene, by logarithmic residuals, or by the empirical line through known "
    "targets.",
    {{"gdal_hsi_reflect -method iarr scene.img reflectance.tif", "Divided by the mean of the scene"},
     {"gdal_hsi_reflect -method flat -area playa.gpkg scene.img reflectance.tif",
      "By an area of uniform reflectance"},
     {"gdal_hsi_reflect -method empirical-line -targets panels.gpkg -library panels.sli -coefficients "
      "line.csv scene.img reflectance.tif",
      "By panels of known reflectance"},
     {"gdal_hsi_reflect -apply line.csv other.img reflectance.tif", "With the same gains and offsets"}},
    "",
    reflect_tool::declare};

} // namespace tools
} // namespace hsi
