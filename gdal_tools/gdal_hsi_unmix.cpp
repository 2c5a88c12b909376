// SPDX-License-Identifier: MIT
// gdal_hsi_unmix: computes the abundances of a library's spectra in each pixel, in one pass over the scene.
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "links/links.h"
#include "math/exact_sum.h"
#include "raster/output_set.h"
#include "raster/spectral_library.h"
#include "shared/number_lists.h"
#include "shared/numbers_in_file.h"
#include "shared/scene_and_library.h"
#include "shared/second_scene.h"
#include "shared/spectral_bands.h"
#include "shared/tallied_operation.h"
#include "stream/stacked_source.h"
#include "stream/statistics_sums.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/follow.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/scene.h"
#include "unmix/draws.h"
#include "unmix/unmix.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace unmix_tool {

using tool::Content;

struct Settings {
    std::string library, rmse;
    std::vector<std::string> spectra; ///< names of the library's spectra that are used; empty: all
    unmix::Options unmix;
    unmix::DrawOptions draw; ///< draw.draws is 0 without -draws
    std::string classes;     ///< file of -classes
    std::string uncertainty, deviation;
    double library_scale = 1;
    bool any_scale = false;
    tools::BandFit fit = tools::BandFit::automatic;
};

/// Describes the raster of the abundances: one band per endmember.
raster::OutputSpec abundance_spec(const stream::CubeShape& scene, const std::vector<std::string>& names,
                                  const char* method) {
    raster::OutputSpec abundances;
    abundances.shape = {scene.samples, scene.lines, static_cast<int>(names.size())};
    abundances.holes = true;
    abundances.metadata["HSI_UNMIX_METHOD"] = method;
    for (const auto& name : names)
        abundances.bands.push_back({name, {}});
    return abundances;
}

/// Describes the raster of -rmse.
raster::OutputSpec rmse_spec(const stream::CubeShape& scene, const char* method) {
    raster::OutputSpec rmse = abundance_spec(scene, {"RMSE"}, method);
    rmse.shape.bands = 1;
    return rmse;
}

raster::OutputSet outputs_of(const tool::Run& run, const Settings& s, const raster::RasterSource& source,
                             const std::vector<std::string>& names, const char* method) {
    const auto scene = source.shape();
    raster::OutputSet outputs;
    outputs.plan(run.options().destination, abundance_spec(scene, names, method));
    if (!s.rmse.empty()) outputs.plan(run.side_output("-rmse", s.rmse), rmse_spec(scene, method));
    outputs.check(source);
    return outputs;
}

/// Writes VRTs, or an .hsi, whose bands are computed when they are read.
void write_virtual(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                   const tools::FittedSpectra& library, const char* method) {
    std::vector<double> all;
    for (const auto& spectrum : library.spectra)
        all.insert(all.end(), spectrum.begin(), spectrum.end());
    const auto band = [&](size_t number) {
        raster::VirtualBand one;
        one.function = "hsi_unmix";
        one.arguments = {{"endmembers", tools::number_rows(all, library.spectra.front().size())},
                         {"method", method},
                         {"band", std::to_string(number)}};
        return one;
    };
    const auto write = [&](const raster::OutputOptions& options, const raster::OutputSpec& spec,
                           const std::vector<raster::VirtualBand>& bands, bool error) {
        tool::write_virtual(
            run, options, spec, scene,
            [&] {
                return links::unmixing({library.names, library.spectra}, s.unmix.method, error);
            },
            [&] { return bands; });
    };
    const auto& dst = run.options().destination;
    const auto abundances = abundance_spec(scene.shape(), library.names, method);
    const auto rmse = rmse_spec(scene.shape(), method);
    raster::check_virtual(dst, abundances, scene);
    const size_t p = library.names.size();
    if (!s.rmse.empty()) {
        const auto options = run.side_output("-rmse", s.rmse);
        if (!raster::is_virtual(options)) {
            const std::string kind = raster::virtual_kind(dst);
            throw UsageError("-rmse " + s.rmse + " must also be " + kind + ", as dst",
                             std::string("Use the extension ") +
                                 (raster::is_computed(dst) ? ".hsi" : ".vrt") +
                                 ", or write dst in another format.");
        }
        write(options, rmse, {band(p + 1)}, true);
    }
    std::vector<raster::VirtualBand> bands;
    for (size_t k = 1; k <= p; ++k)
        bands.push_back(band(k));
    write(dst, abundances, bands, false);
}

void report_independence(tool::Run& run, const unmix::Endmembers& endmembers, unmix::Method method) {
    const auto least = unmix::check_endmembers(endmembers, method);
    run.report()["library"]["least_distance"] = least.distance;
    if (least.distance >= unmix::safe_distance) return;
    char length[32];
    std::snprintf(length, sizeof length, "%.1e", least.distance);
    run.warn("'" + endmembers.names[static_cast<size_t>(least.endmember)] +
             "' is a mixture of the other spectra, except for " + length +
             " of its length: abundances are uncertain");
}

tool::Work work_of(const stream::CubeShape& shape, size_t endmembers, const Settings& s) {
    const auto p = static_cast<double>(endmembers), pixels = static_cast<double>(shape.pixels());
    const double products = pixels * shape.bands * p, rounds = unmix::is_nonnegative(s.unmix.method) ? p : 1;
    tool::Work work;
    work.cpu_reads = work.device_reads = static_cast<double>(shape.float_bytes());
    work.writes = pixels * 4 * (p + (s.unmix.rmse ? 1 : 0));
    work.add(unmix::cost::product, products);
    work.add(unmix::cost::round, pixels * rounds * p * p);
    return work;
}

/// Adds up the sum of abundances of each pixel (output 0) and the squared errors (output 1). The sums are
/// exact, so they do not depend on the order.
class UnmixTally {
  public:
    UnmixTally() = default;
    /// Takes the sums that a device has computed.
    explicit UnmixTally(const math::ExactSums& sums) { m_sums.add(sums); }
    static UnmixTally fresh() { return {}; }
    void add(const Rect&, const std::vector<CubeView<float>>& out) {
        for (int64_t line = 0; line < out[1].lines; ++line)
            for (int64_t sample = 0; sample < out[1].samples; ++sample) {
                const double error = out[1].row(0, line)[sample];
                if (std::isnan(error)) continue;
                double abundances = 0;
                for (int k = 0; k < out[0].bands; ++k)
                    abundances += static_cast<double>(out[0].row(k, line)[sample]);
                const double both[] = {abundances, error * error};
                m_sums.add(0, both, 2);
            }
    }
    void merge(const UnmixTally& other) { m_sums.add(other.m_sums); }
    void exchange(parallel::Group& ranks) { stream::unite(ranks, "sums of pixels", m_sums); }
    double abundances() const { return m_sums.value(0); }
    double squared_errors() const { return m_sums.value(1); }

  private:
    math::ExactSums m_sums{2};
};

void warn_of_other_units(tool::Run& run, const raster::RasterSource& scene,
                         const tools::FittedSpectra& library, unmix::Method method,
                         const tools::SumSquares& sum_squares = {}) {
    tools::warn_of_other_signs(run, scene, library, "Use the same quantity in both");
    tools::warn_of_other_units(
        run, scene, library,
        unmix::sums_to_one(method)
            ? "fcls and scls depend on the exact factor: multiply it by the mean sum of abundances that "
              "-method nnls prints, or compare the mean residual of several factors"
            : "the mean sum of abundances shows the missing factor",
        sum_squares);
}

std::string short_number(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", v);
    return text;
}

/// Reports the residual. For methods without a sum-to-one constraint, also reports the mean sum of
/// abundances.
void report_fit(tool::Run& run, const UnmixTally& tally, unmix::Method method, int64_t pixels, int bands) {
    const double rmse = std::sqrt(tally.squared_errors() / static_cast<double>(pixels));
    run.report()["residual"] = {{"rmse", rmse}, {"pixels", pixels}, {"bands", bands}};
    run.note("Mean residual: " + short_number(rmse) + " (root mean square over " + counted(pixels, "pixel") +
             " and " + counted(bands, "band") + ")");
    if (unmix::sums_to_one(method)) return;
    const double sum = tally.abundances() / static_cast<double>(pixels);
    run.report()["mean_abundance_sum"] = sum;
    run.note("Mean sum of abundances: " + short_number(sum));
}

using UnmixComputing = tool::Computing<unmix::Backend>;

/// Makes the pass. Returns false if no pixel is valid. share: part of the progress bar.
bool unmix_scene(tool::Run& run, const Settings& s, UnmixComputing& computing,
                 const std::shared_ptr<raster::RasterSource>& scene, const tools::FittedSpectra& library,
                 double share) {
    const unmix::Endmembers endmembers{library.names, library.spectra};
    report_independence(run, endmembers, s.unmix.method);
    auto outputs = outputs_of(run, s, *scene, endmembers.names, name_of(s.unmix.method));
    // A device adds up its own results. Results of the CPU are added up by UnmixTally.
    const bool there = computing.on_devices() && !run.ranks().several();
    const auto unmixing =
        computing->make_unmixing(endmembers, {s.unmix.method, !there || s.unmix.rmse, there});
    tools::TalliedOperation<UnmixTally> tallied(*unmixing, {}, s.unmix.rmse ? 2 : 1);
    stream::Operation& operation = there ? static_cast<stream::Operation&>(*unmixing) : tallied;
    const auto pass = tool::begin_writing(run, *scene, operation, outputs, scene.get(),
                                          [&] { return computing.pass("unmixing", share); });
    warn_of_other_units(
        run, *scene, library, s.unmix.method,
        [&](const CubeView<float>& cube, double* squares) { return computing->sum_squares(cube, squares); });
    std::shared_ptr<raster::RasterSource> all = scene;
    if (scene->growth() != nullptr) {
        all = tool::follow(run, *scene, operation, &outputs, pass);
        if (unmixing->valid() == 0) throw tool::no_valid_pixel(*scene);
    } else {
        run.add_pass(stream::run_pass(*scene, operation, outputs.sinks(), pass));
    }
    if (unmixing->valid() == 0) return false;
    tool::report_invalid(run, unmixing->valid(), unmixing->invalid());
    const UnmixTally of_device(unmixing->sums());
    report_fit(run, there ? of_device : tallied.tally(), s.unmix.method, unmixing->valid(),
               endmembers.bands());
    if (const double seconds = computing->kernel_seconds(); seconds > 0)
        run.report()["kernel_seconds"] = seconds;
    outputs.commit();
    tool::check_last_line(run, *all);
    return true;
}

/// Writes virtual outputs (VRT or .hsi), which the CPU computes when they are read.
void describe_unmixing(tool::Run& run, const Settings& s, std::shared_ptr<raster::RasterSource> scene,
                       tools::FittedSpectra library) {
    run.report()["device"] = tool::describe_devices(run, {}, nullptr);
    const auto all = scene->bands();
    if (tool::leave_out_unseen_bands(run, scene)) library = tools::without_lost_bands(library, all, *scene);
    report_independence(run, {library.names, library.spectra}, s.unmix.method);
    warn_of_other_units(run, *scene, library, s.unmix.method);
    write_virtual(run, s, *scene, library, name_of(s.unmix.method));
}

// -draws
// ----------------------------------------------------------------------------------------------------------

const char* name_of(unmix::Normalise how) {
    switch (how) {
    case unmix::Normalise::unit:
        return "unit";
    case unmix::Normalise::brightness:
        return "brightness";
    case unmix::Normalise::none:
        break;
    }
    return "none";
}

/// Plans the rasters of -draws, in the order of the operation's outputs.
raster::OutputSet draw_outputs(const tool::Run& run, const Settings& s, const raster::RasterSource& source,
                               const std::vector<std::string>& classes) {
    const char* const method = name_of(s.unmix.method);
    const auto spec = [&](const std::vector<std::string>& names) {
        auto one = abundance_spec(source.shape(), names, method);
        one.metadata["HSI_UNMIX_DRAWS"] = std::to_string(s.draw.draws);
        one.metadata["HSI_UNMIX_SEED"] = std::to_string(s.draw.seed);
        one.metadata["HSI_UNMIX_PER_CLASS"] = std::to_string(s.draw.per_class);
        one.metadata["HSI_UNMIX_NORMALISE"] = name_of(s.draw.normalise);
        return one;
    };
    auto names = classes;
    if (s.unmix.method == unmix::Method::nnls) names.emplace_back("sum");
    raster::OutputSet outputs;
    outputs.plan(run.options().destination, spec(names));
    if (!s.deviation.empty()) {
        auto deviations = classes;
        for (auto& name : deviations)
            name += " deviation";
        outputs.plan(run.side_output("-deviation", s.deviation), spec(deviations));
    }
    if (!s.rmse.empty()) outputs.plan(run.side_output("-rmse", s.rmse), spec({"RMSE"}));
    outputs.check(source);
    return outputs;
}

/// Opens the raster of -uncertainty, with the bands of the scene; null without -uncertainty.
std::shared_ptr<raster::RasterSource> open_uncertainty(tool::Run& run, const Settings& s,
                                                       const raster::RasterSource& scene) {
    if (s.uncertainty.empty()) return nullptr;
    if (scene.facts().scaled)
        throw Error(
            "-uncertainty " + s.uncertainty +
                ": the bands of src have different scales, which are not applied to standard deviations",
            "Use -any-scale and a library in the stored values of src.");
    raster::OpenOptions options;
    options.path = s.uncertainty;
    options.use_bbl = false;
    options.window = run.options().source.window;
    auto whole = options;
    whole.window.reset();
    const auto all = raster::open_raster(whole);
    auto file = run.options().source;
    file.window.reset();
    const auto src = raster::open_raster(file);
    const auto a = all->shape(), b = src->shape();
    if (a.samples != b.samples || a.lines != b.lines ||
        all->facts().bands.in_file != scene.facts().bands.in_file)
        throw Error("-uncertainty " + s.uncertainty + " is " + std::to_string(a.samples) + "x" +
                        std::to_string(a.lines) + " with " + counted(all->facts().bands.in_file, "band") +
                        ", but src is " + std::to_string(b.samples) + "x" + std::to_string(b.lines) +
                        " with " + counted(scene.facts().bands.in_file, "band"),
                    "Use standard deviations with the size and bands of src.");
    options.bands = scene.bands();
    auto opened = raster::open_raster(options);
    const auto own = opened->facts().bands.wavelengths_nm, nm = scene.facts().bands.wavelengths_nm;
    for (size_t k = 0; k < std::min(own.size(), nm.size()); ++k)
        if (std::fabs(own[k] - nm[k]) > std::max(0.01, 1e-5 * nm[k]))
            throw Error("-uncertainty " + s.uncertainty + " has other wavelengths than src: " +
                            tools::nm_text(own[k]) + " instead of " + tools::nm_text(nm[k]),
                        "Use standard deviations with the bands of src, in the same order.");
    run.watch_source(opened);
    run.reserve_cache(opened->cache_bytes());
    tools::check_same_place(run, "-uncertainty", *opened, scene);
    tools::warn_of_other_deviations(run, scene, *opened, "-uncertainty");
    return opened;
}

/// Returns the class of each spectrum. The class is in the table of -classes, in the class field of the
/// library, or in the name of the spectrum. \throws Error if the table has no row for a spectrum, or two rows
/// with different classes.
std::vector<std::string> classes_of(tool::Run& run, const Settings& s, const tools::FittedSpectra& library) {
    std::vector<std::string> classes;
    if (s.classes.empty()) {
        std::string unknown;
        for (size_t k = 0; k < library.names.size(); ++k) {
            const bool told = !library.classes.empty() && !library.classes[k].empty();
            if (!told && !library.classes.empty() && unknown.empty()) unknown = library.names[k];
            classes.push_back(told ? library.classes[k] : unmix::class_in_name(library.names[k]));
        }
        if (!unknown.empty())
            run.warn("library " + s.library + ": the field class is empty for '" + unknown +
                     "' and maybe others: classes of these spectra are taken from their names");
        return classes;
    }
    const auto table = raster::read_spectrum_table(s.classes, {"name", "class"});
    for (const auto& name : library.names) {
        std::string found;
        for (const auto& row : table.rows) {
            if (!equal_names(row[0], name)) continue;
            if (row[1].empty()) throw Error("-classes " + s.classes + ": '" + name + "' has no class");
            if (!found.empty() && found != row[1])
                throw Error("-classes " + s.classes + ": '" + name + "' has two classes, '" + found +
                            "' and '" + row[1] + "'");
            found = row[1];
        }
        if (found.empty())
            throw Error("-classes " + s.classes + " has no line for the spectrum '" + name + "'",
                        "Add a line, or use other spectra (-spectrum).");
        classes.push_back(found);
    }
    return classes;
}

/// Estimates the work of the draws. Assumes that the classes are those in the names of the spectra.
tool::Work work_of_draws(const stream::CubeShape& shape, const tools::FittedSpectra& library,
                         const Settings& s) {
    size_t classes = 0, members = 0;
    for (const auto& one : unmix::classes_of(library.names).members) {
        ++classes;
        members += std::min(one.size(), static_cast<size_t>(s.draw.per_class));
    }
    const double p = static_cast<double>(members), pixels = static_cast<double>(shape.pixels()),
                 values = pixels * shape.bands, draws = s.draw.draws;
    const bool noise = !s.uncertainty.empty();
    tool::Work work;
    work.cpu_reads = work.device_reads = static_cast<double>(shape.float_bytes()) * (noise ? 2 : 1);
    work.writes = pixels * 4 * static_cast<double>(classes * (s.deviation.empty() ? 1 : 2));
    work.add(unmix::cost::draw_product,
             noise ? values * draws * p : values * static_cast<double>(library.names.size()),
             values * draws * p);
    if (noise) work.add(unmix::cost::draw_noise, values * draws);
    work.add(unmix::cost::draw_round, pixels * draws * p * p * p);
    return work;
}

/// Makes the pass. Returns false if no pixel is valid.
bool draw_scene(tool::Run& run, const Settings& s, UnmixComputing& computing,
                const std::shared_ptr<raster::RasterSource>& scene, const tools::FittedSpectra& library,
                double share) {
    const unmix::Endmembers spectra{library.names, library.spectra};
    const auto classes = unmix::classes_from(classes_of(run, s, library));
    auto outputs = draw_outputs(run, s, *scene, classes.names);
    auto options = s.draw;
    options.method = s.unmix.method;
    options.deviation = !s.deviation.empty();
    options.rmse = !s.rmse.empty();
    options.numbers = tools::numbers_in_file(run, *scene);
    std::shared_ptr<const stream::CubeSource> source = scene;
    if (const auto uncertainty = open_uncertainty(run, s, *scene)) {
        options.noise = true;
        source = std::make_shared<stream::StackedSource>(
            std::vector<std::shared_ptr<const stream::CubeSource>>{scene, uncertainty});
    }
    const auto operation = computing->make_draws(spectra, classes, options);
    if (!options.noise && options.draws > 1 && classes.names.size() == spectra.names.size())
        run.warn(
            "each class has one spectrum, and -uncertainty is not given: all draws are equal and do not show "
            "the uncertainty of fractions. Use several spectra per class (-classes), or -uncertainty");
    if (operation->skipped() > 0)
        run.warn(counted(operation->skipped(), "draw is", "draws are") + " left out of " +
                 std::to_string(options.draws) + ": the spectra are mixtures of one another");
    run.report()["draws"] = {{"draws", options.draws},
                             {"skipped", operation->skipped()},
                             {"per_class", options.per_class},
                             {"seed", options.seed},
                             {"classes", classes.names}};
    run.note(counted(spectra.names.size(), "spectrum", "spectra") + " of " +
             counted(classes.names.size(), "class", "classes"));
    const auto pass = tool::begin_writing(run, *source, *operation, outputs, scene.get(),
                                          [&] { return computing.pass("unmixing", share); });
    warn_of_other_units(run, *scene, library, s.unmix.method);
    run.add_pass(stream::run_pass(*source, *operation, outputs.sinks(), pass));
    if (operation->valid() == 0) return false;
    tool::report_invalid(run, operation->valid(), operation->invalid());
    if (const double seconds = computing->kernel_seconds(); seconds > 0)
        run.report()["kernel_seconds"] = seconds;
    outputs.commit();
    return true;
}

/// Rejects options of draws without -draws, and options that exclude each other.
void check_draws(const tool::Call& call, const Settings& s, const tool::CommonOptions& common) {
    if (s.draw.draws == 0) {
        for (const char* name : {"per-class", "seed", "classes", "normalise", "uncertainty", "deviation"})
            if (call.given(name))
                throw UsageError(tool::option_requires("-" + std::string(name), "-draws N"),
                                 "Leave it out, or also give -draws N.");
        return;
    }
    if (common.source.follow)
        throw UsageError(
            tool::cannot_be_used_with("-draws", "-follow: random numbers depend on the position of a pixel"),
            "Leave one of them out.");
    if (s.unmix.method == unmix::Method::ucls)
        throw UsageError(
            tool::cannot_be_used_with("-draws", "-method ucls: its abundances are not fractions"),
            "Use nnls, scls or fcls.");
    if (!s.deviation.empty() && s.draw.draws < 2)
        throw UsageError("-deviation requires at least two draws", "Use -draws 2 or more; 100 are usual.");
    if (raster::is_virtual(common.destination))
        throw UsageError(tool::cannot_be_used_with("-draws", "a virtual scene as dst"),
                         "Write dst in another format.");
}

void run_unmix(tool::Run& run, const Settings& s) {
    auto scene = tools::scaled_for_library(run, run.open_source(), s.any_scale);
    tool::check_spectrum(*scene, "unmixing");
    const auto library = tools::spectra_for_scene(run, "library", s.library, s.spectra, s.library_scale,
                                                  "Unmixing", scene, s.fit);
    if (raster::is_virtual(run.options().destination))
        return describe_unmixing(run, s, std::move(scene), library);
    if (s.draw.draws > 0) {
        UnmixComputing computing(
            run, "unmix", tool::choose_devices(run, "unmix", work_of_draws(scene->shape(), library, s)),
            unmix::simd_target(), unmix::make_cpu_backend);
        const auto all = scene->bands();
        if (!tool::attempt(run, {tool::banded(scene)}, [&](bool again) {
                return draw_scene(run, s, computing, scene, tools::without_lost_bands(library, all, *scene),
                                  again ? 0 : 1);
            }))
            throw tool::no_valid_pixel(*scene);
        return;
    }
    UnmixComputing computing(
        run, "unmix", tool::choose_devices(run, "unmix", work_of(scene->shape(), library.names.size(), s)),
        nullptr, unmix::make_cpu_backend);
    // The library is fitted to all bands of the scene. If bands are omitted later, they are removed from the
    // fitted spectra.
    const auto bands = scene->bands();
    const bool any = tool::attempt(run, {tool::banded(scene)}, [&](bool again) {
        return unmix_scene(run, s, computing, scene, tools::without_lost_bands(library, bands, *scene),
                           again ? 0 : 1);
    });
    if (!any) throw tool::no_valid_pixel(*scene);
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_follow();
    args.input_argument(
        "library", s.library, Content::spectra,
        "Library with the endmembers' spectra (.sli, .csv, USGS, ECOSTRESS, .asd, .sig, .sed, "
        ".mat, GeoJSON ...)");
    args.add_destination("The abundances, one band per endmember; it appears when it is complete");
    args.computes_dst();
    args.choice<unmix::Method>("method", s.unmix.method, "Constraints of the abundances",
                               {{"ucls", unmix::Method::ucls, "no constraint"},
                                {"nnls", unmix::Method::nnls, "non-negative abundances"},
                                {"scls", unmix::Method::scls, "sum of one"},
                                {"fcls", unmix::Method::fcls, "non-negative abundances with a sum of one"}});
    tools::add_spectrum_option(args, s.spectra, "the library");
    args.output("rmse", s.rmse, Content::raster,
                "Also write the RMSE of every pixel, in the units of src, to FILE");
    args.option("library-scale", s.library_scale,
                "Multiply the library by this: 10000 for reflectance 0..1 and a scene in 0..10000")
        .above(0);
    tools::add_any_scale_option(args, s.any_scale);
    tools::add_resample_option(args, s.fit);
    const char* const draws = "Uncertainty";
    args.option("draws", s.draw.draws,
                "Number of Monte Carlo realisations with random spectra of each class; dst has the mean "
                "fractions")
        .between(1, 65535)
        .defaults_to("none")
        .under(draws);
    args.option("per-class", s.draw.per_class, "Number of spectra per class in a realisation")
        .from(1)
        .under(draws);
    args.option("seed", s.draw.seed, "Seed of the random numbers").under(draws);
    args.input("classes", s.classes, Content::text,
               "Table of the classes of the spectra, with the columns name and class")
        .defaults_to("the library's field class, else the names without numbers at their ends")
        .under(draws);
    args.choice<unmix::Normalise>(
            "normalise", s.draw.normalise, "Normalisation of the spectra",
            {{"none", unmix::Normalise::none, "as they are"},
             {"unit", unmix::Normalise::unit, "spectra and pixels of length one"},
             {"brightness", unmix::Normalise::brightness, "spectra of the library's mean brightness"}})
        .under(draws);
    args.input("uncertainty", s.uncertainty, Content::raster,
               "Add noise with the standard deviations in the raster FILE (units, size and bands of src)"
               " to each realisation")
        .under(draws);
    args.output("deviation", s.deviation, Content::raster,
                "Also write the standard deviation of the fractions over the realisations to FILE")
        .under(draws);
    args.add_compute();
    args.check([&s](const tool::Call& call) {
        s.unmix.rmse = !s.rmse.empty();
        check_draws(call, s, call.options());
    });
    args.body([&s](tool::Run& run) { run_unmix(run, s); });
}

} // namespace unmix_tool
} // namespace

namespace tools {

extern constinit const tool::Definition unmix{
    "unmix",
    "Linear spectral unmixing (UCLS, NNLS, SCLS, FCLS)",
    "Linear spectral unmixing: computes the abundances of a library's spectra in every pixel "
    "by exact least squares, without constraints, with non-negative abundances, with a sum of"
    " one, or with both (fully constrained least squares).",
    {{"gdal_hsi_unmix scene.img endmembers.sli abundances.tif", "Fully constrained"},
     {"gdal_hsi_atdca -t 6 -spectra targets.sli scene.img targets.gpkg && gdal_hsi_unmix scene.img "
      "targets.sli "
      "abundances.tif",
      "With the spectra of targets as endmembers"},
     {"gdal_hsi_unmix -method nnls -library-scale 10000 -rmse error.tif scene.img minerals.csv a.tif",
      "A library of reflectance for a scene of integers, with the error of every pixel"}},
    "",
    unmix_tool::declare};

} // namespace tools
} // namespace hsi
