// SPDX-License-Identifier: MIT
#include "shared/scene_and_library.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "core/valid_pixel.h"
#include "math/resampling.h"
#include "model/classes.h"
#include "parallel/threads.h"
#include "shared/spectral_bands.h"
#include "tool/model_values.h"
#include "tool/scene.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>

namespace hsi::tools {

void add_spectrum_option(tool::Builder& args, std::vector<std::string>& wanted, const std::string& library) {
    args.option("spectrum", wanted,
                "Use only this spectrum of " + library +
                    ": a name, a pattern such as *kaolin*, or #N (from 1)")
        .shown_as("NAME");
}

namespace {

/// Returns the spectra in `chosen` without standard deviations, and prints a note about omitted ones.
/// Standard deviations that -spectrum names one by one are kept, with a warning. \throws Error if no spectrum
/// is left.
std::vector<size_t> without_deviations(tool::Run& run, const std::vector<std::string>& names,
                                       const std::string& file, const std::vector<std::string>& wanted,
                                       const std::vector<size_t>& chosen) {
    const auto deviations = raster::deviations_in(names);
    std::vector<size_t> kept, others;
    for (const size_t k : chosen)
        (deviations.count(k) > 0 ? others : kept).push_back(k);
    if (others.empty()) return chosen;
    const std::string what = file + ": " + std::to_string(others.size()) + " of " +
                             counted(chosen.size(), "spectrum", "spectra") +
                             worded(others.size(), " is a standard deviation", " are standard deviations") +
                             " ('" + names[others.front()] + "'" + (others.size() > 1 ? " ..." : "") + ")";
    if (names_single_spectra(wanted)) {
        run.warn(what + " and not a material, but used since -spectrum names " +
                 worded(others.size(), "it", "them"));
        return chosen;
    }
    if (kept.empty())
        throw Error(what + " and not a material", "Choose the spectra of materials with -spectrum.");
    run.note(what + " and left out");
    return kept;
}

} // namespace

void add_resample_option(tool::Builder& args, BandFit& fit) {
    args.choice("resample", fit, "How the library is resampled to the scene's bands",
                {{"auto", BandFit::automatic, "response if both have the FWHM of all bands, else linear"},
                 {"response", BandFit::response, "convolved with the responses of the scene's bands"},
                 {"linear", BandFit::linear, "interpolated between two bands of the library"}});
}

void report_fit(tool::Run& run, const std::string& used, const std::string& role, const std::string& path) {
    if (used.empty()) return;
    run.report()["resampled"] = used;
    run.note(role + " " + path + ": its spectra are resampled to the scene's bands " +
             (used == "response" ? "by the widths of the bands (-resample response)"
                                 : "by linear interpolation (-resample linear)"));
}

raster::SpectralLibrary chosen_library(tool::Run& run, const std::string& role, const std::string& path,
                                       const std::vector<std::string>& wanted, size_t scene_bands) {
    auto library = raster::read_spectral_library(path, scene_bands);
    for (const auto& note : library.notes)
        run.warn(note);
    std::vector<size_t> chosen(library.names.size());
    std::iota(chosen.begin(), chosen.end(), size_t{0});
    if (!wanted.empty())
        chosen = raster::chosen_names(library.names, wanted, "-spectrum, " + role + " " + path);
    const auto kept = without_deviations(run, library.names, role + " " + path, wanted, chosen);
    return wanted.empty() && kept.size() == chosen.size() ? library : raster::selected(library, kept);
}

raster::SpectralLibrary library_for(const raster::RasterSource& scene) {
    raster::SpectralLibrary library;
    library.wavelengths_nm = scene.facts().bands.wavelengths_nm;
    library.fwhm_nm = scene.facts().bands.fwhm_nm;
    library.band_numbers = scene.facts().bands.known_as;
    library.numbers_told = true;
    library.twofold = !scene.facts().exact_in_float;
    return library;
}

model::SceneBands library_bands(const raster::SpectralLibrary& library) {
    model::SceneBands bands{library.band_numbers, library.wavelengths_nm, library.numbers_told,
                            static_cast<int>(library.bands())};
    if (!bands.numbers.empty()) return bands;
    bands.numbers.resize(library.bands());
    std::iota(bands.numbers.begin(), bands.numbers.end(), 1);
    return bands;
}

namespace {

std::vector<double> known_wavelengths(const std::vector<double>& nm) {
    std::vector<double> rising;
    for (const double w : nm)
        if (std::isfinite(w)) rising.push_back(w);
    std::sort(rising.begin(), rising.end());
    return rising;
}

/// Returns a text like "from 400 to 2500 nm".
std::string range_text(const std::vector<double>& rising) {
    char text[64];
    std::snprintf(text, sizeof text, "from %.6g to %.6g nm", rising.front(), rising.back());
    return text;
}

/// Returns true if library and scene can be matched by band number. A library without band numbers can be
/// matched only if the scene's file has as many bands.
bool are_numbers_comparable(const raster::SpectralLibrary& library, const model::SceneBands& scene) {
    if (library.band_numbers.empty() && scene.told) return false;
    return model::comparable_numbers(library_bands(library), scene);
}

/// Returns the library at the given bands (0-based indices), with NaN for missing bands (-1).
raster::SpectralLibrary numbered_library(const raster::SpectralLibrary& library,
                                         const std::vector<int>& places) {
    raster::SpectralLibrary out;
    out.names = library.names;
    out.classes = library.classes;
    out.twofold = library.twofold;
    for (const auto& spectrum : library.spectra) {
        auto& values = out.spectra.emplace_back();
        for (const int at : places)
            values.push_back(at < 0 ? std::nan("") : spectrum[static_cast<size_t>(at)]);
    }
    return out;
}

} // namespace

raster::SpectralLibrary fit_library(const raster::SpectralLibrary& library, const std::string& role,
                                    const std::string& path, const model::SceneBands& scene,
                                    const std::vector<double>& fwhm_nm, BandFit fit, std::string* used) {
    if (const auto infinite = raster::infinite_spectra(library); !infinite.empty())
        throw Error(role + " " + path + ": the spectrum '" + library.names[infinite.front()] +
                        "' has infinite values",
                    "Correct it, or choose other spectra with -spectrum.");
    const auto &a = library.wavelengths_nm, &b = scene.wavelengths_nm;
    const size_t bands = scene.numbers.size();
    const auto near = [](double x, double y) { return !(std::fabs(x - y) > 0.5); };
    if (!a.empty() && !b.empty()) {
        if (library.bands() == bands && std::equal(a.begin(), a.end(), b.begin(), near)) return library;
        const auto there = known_wavelengths(a), here = known_wavelengths(b);
        if (!there.empty() && !here.empty() && (there.back() < here.front() || here.back() < there.front()))
            throw Error(role + " " + path + " has wavelengths " + range_text(there) +
                            ", but the scene has wavelengths " + range_text(here) +
                            ": fewer than 2 bands in common",
                        "Check the units of both: gdal_hsi_info prints their wavelengths.");
        const math::SpectralBands target{b, fwhm_nm};
        const bool response = fit == BandFit::response ||
                              (fit == BandFit::automatic && math::tells_widths({a, library.fwhm_nm}) &&
                               math::tells_widths(target));
        if (used != nullptr) *used = response ? "response" : "linear";
        if (!response) return raster::resampled(library, b);
        raster::SpectralLibrary out;
        out.names = library.names;
        out.classes = library.classes;
        out.twofold = library.twofold;
        out.wavelengths_nm = b;
        out.spectra = resampled(library, target, math::Resampling::response).spectra;
        return out;
    }
    if (are_numbers_comparable(library, scene)) {
        const auto places = model::common_numbers(scene.numbers, library_bands(library).numbers);
        if (std::all_of(places.begin(), places.end(), [](int at) { return at < 0; }))
            throw Error(role + " " + path + " and the scene have no common band numbers",
                        "Use a library with the scene's bands, or choose other bands with -b.");
        return numbered_library(library, places);
    }
    if (library.bands() == bands) return library;
    const std::string sizes = role + " " + path + " has " + counted(library.bands(), "band") +
                              ", but the scene has " + std::to_string(bands) +
                              ", and there are no wavelengths";
    const auto& numbers = library.band_numbers;
    if (library.numbers_told && !numbers.empty() && !scene.told)
        throw Error(sizes + " to match them. The library's band numbers, up to " +
                        std::to_string(*std::max_element(numbers.begin(), numbers.end())) +
                        ", belong to another file: the scene's file has " +
                        counted(scene.file_bands, "band") + " and no such numbers",
                    "Use the scene from which the library was made, or choose the same count of bands with "
                    "-b to match them in their order.");
    throw Error(sizes + " and no band numbers to match them",
                "Choose the library's bands with -b, or make the library again with this version, which "
                "stores band numbers.");
}

namespace {

/// Returns, for each spectrum, the bands that it lacks among the bands that at least one spectrum has.
std::vector<std::vector<size_t>> holes_of(const raster::SpectralLibrary& fitted,
                                          const std::vector<size_t>& reached) {
    std::vector<std::vector<size_t>> holes;
    for (const auto& spectrum : fitted.spectra) {
        auto& of_spectrum = holes.emplace_back();
        for (const size_t b : reached)
            if (!std::isfinite(spectrum[b])) of_spectrum.push_back(b);
    }
    return holes;
}

/// Returns the number of spectra to keep, so that the number of values is largest. order: spectra in
/// ascending order of the number of bands that they lack.
size_t spectra_to_keep(const std::vector<size_t>& order, const std::vector<std::vector<size_t>>& holes,
                       size_t bands, size_t reached) {
    std::vector<bool> lost(bands);
    size_t left = reached, best = 0, most = 0;
    for (size_t n = 0; n < order.size(); ++n) {
        for (const size_t b : holes[order[n]]) {
            left -= lost[b] ? 0 : 1;
            lost[b] = true;
        }
        if ((n + 1) * left < most) continue;
        most = (n + 1) * left;
        best = n + 1;
    }
    return best;
}

} // namespace

Overlap overlap_of(const raster::SpectralLibrary& fitted, const std::string& role, const std::string& path,
                   bool keep) {
    const size_t bands = fitted.bands();
    const auto has_value = [&](size_t b) {
        return std::any_of(fitted.spectra.begin(), fitted.spectra.end(),
                           [&](const auto& x) { return std::isfinite(x[b]); });
    };
    std::vector<size_t> reached;
    for (size_t b = 0; b < bands; ++b)
        if (has_value(b)) reached.push_back(b);
    if (reached.size() < 2)
        throw Error(role + " " + path +
                    " has fewer than 2 bands in common with the scene, by wavelength or band number");
    const auto holes = holes_of(fitted, reached);
    std::vector<size_t> order(holes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return holes[a].size() < holes[b].size(); });
    const size_t count = keep ? order.size() : spectra_to_keep(order, holes, bands, reached.size());
    Overlap overlap;
    overlap.spectra.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
    overlap.left_out.assign(order.begin() + static_cast<std::ptrdiff_t>(count), order.end());
    std::sort(overlap.spectra.begin(), overlap.spectra.end());
    std::sort(overlap.left_out.begin(), overlap.left_out.end());
    for (const size_t b : reached)
        if (std::all_of(overlap.spectra.begin(), overlap.spectra.end(),
                        [&](size_t k) { return std::isfinite(fitted.spectra[k][b]); }))
            overlap.bands.push_back(b);
    if (overlap.bands.size() < 2) {
        const size_t worst = order.back();
        throw Error(role + " " + path + ": fewer than 2 bands of the scene have values in all of its spectra",
                    "'" + fitted.names[worst] + "' lacks " + counted(holes[worst].size(), "band") + " of " +
                        std::to_string(reached.size()) + "; choose spectra with -spectrum.");
    }
    return overlap;
}

namespace {

/// Returns the median; 0 if the list is empty.
double median(std::vector<double> numbers) {
    if (numbers.empty()) return 0;
    const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
    std::nth_element(numbers.begin(), middle, numbers.end());
    return *middle;
}

/// Returns the number of missing bands of the scene that are outside of the library's range. `text` is set to
/// the ends of the range.
size_t beyond_ends(const Overlap& overlap, const raster::SpectralLibrary& library,
                   const model::SceneBands& scene, std::string& text) {
    double first = INFINITY, last = -INFINITY;
    for (const double w : library.wavelengths_nm)
        if (std::isfinite(w)) {
            first = std::min(first, w);
            last = std::max(last, w);
        }
    size_t beyond = 0;
    for (size_t b = 0; b < scene.wavelengths_nm.size() && first <= last; ++b)
        if (const double w = scene.wavelengths_nm[b];
            (w < first || w > last) && !std::binary_search(overlap.bands.begin(), overlap.bands.end(), b))
            ++beyond;
    char ends[160];
    std::snprintf(ends, sizeof ends, ": the library covers %.6g to %.6g nm, and ", first, last);
    text = ends + counted(beyond, "band of the scene is", "bands of the scene are") + " outside";
    return beyond;
}

/// Two neighbouring wavelengths of a library (nm). Between them, spectra are only interpolated.
struct Gap {
    double from = 0, to = 0;
    size_t bands = 0; ///< number of bands of the scene strictly between them
};

double median_spacing(const std::vector<double>& rising) {
    std::vector<double> spacings;
    for (size_t k = 1; k < rising.size(); ++k)
        spacings.push_back(rising[k] - rising[k - 1]);
    return median(std::move(spacings));
}

/// Returns the gaps of the library that contain several of the used bands. A gap is wider than five times the
/// spacing of the scene's bands, and wider than three times the spacing of the library's bands or than 100
/// nm. A library that is merely coarser than the scene has no gaps.
std::vector<Gap> gaps_of(const Overlap& overlap, const raster::SpectralLibrary& library,
                         const model::SceneBands& scene) {
    constexpr double same = 0.5, far_nm = 100; // nm, as in fit_library()
    constexpr size_t several = 3;
    const auto there = known_wavelengths(library.wavelengths_nm),
               all = known_wavelengths(scene.wavelengths_nm);
    const double least = std::max(5 * median_spacing(all), std::min(3 * median_spacing(there), far_nm));
    std::vector<double> used;
    for (const size_t b : overlap.bands)
        if (b < scene.wavelengths_nm.size()) used.push_back(scene.wavelengths_nm[b]);
    std::vector<Gap> gaps;
    for (size_t k = 1; k < there.size(); ++k) {
        Gap gap{there[k - 1], there[k]};
        if (gap.to - gap.from <= least) continue;
        gap.bands = static_cast<size_t>(std::count_if(
            used.begin(), used.end(), [&](double w) { return w > gap.from + same && w < gap.to - same; }));
        if (gap.bands >= several) gaps.push_back(gap);
    }
    return gaps;
}

void warn_of_gaps(tool::Run& run, const std::vector<Gap>& gaps, const std::string& role,
                  const std::string& path) {
    if (gaps.empty()) return;
    constexpr size_t most = 3;
    std::vector<std::string> texts;
    size_t bands = 0;
    for (const Gap& gap : gaps) {
        char text[64];
        std::snprintf(text, sizeof text, "%.6g and %.6g nm", gap.from, gap.to);
        if (texts.size() < most) texts.emplace_back(text);
        bands += gap.bands;
    }
    run.warn(role + " " + path + " has no wavelengths between " + joined(texts, ", ") +
             (gaps.size() > most ? " and in " + counted(gaps.size() - most, "other gap") : std::string()) +
             ", where the scene has " + counted(bands, "band") +
             ": values there are interpolated in a straight line, not measured. Leave these bands out "
             "(-exclude-range), or use a library that covers them");
}

/// Prints a note if scene and library were matched only by the order of their bands.
void note_order(tool::Run& run, const raster::SpectralLibrary& library, const model::SceneBands& scene) {
    const auto bands = library_bands(library);
    if ((!library.wavelengths_nm.empty() && !scene.wavelengths_nm.empty()) ||
        are_numbers_comparable(library, scene) || bands.numbers == scene.numbers)
        return;
    run.note("Bands: matched by their order, since the wavelengths or band numbers of scene and library "
             "cannot be compared");
}

} // namespace

void report_overlap(tool::Run& run, const Overlap& overlap, const raster::SpectralLibrary& fitted,
                    const raster::SpectralLibrary& library, const model::SceneBands& scene,
                    const std::string& role, const std::string& path, const std::string& what) {
    if (const size_t count = overlap.left_out.size(); count > 0) {
        constexpr size_t most = 5;
        std::vector<std::string> names;
        for (const size_t k : overlap.left_out)
            if (names.size() < most) names.push_back("'" + fitted.names[k] + "'");
        run.warn(role + " " + path + ": " + std::to_string(count) + " of " +
                 counted(fitted.spectra.size(), "spectrum", "spectra") +
                 worded(count, " lacks values in the scene's bands and is left out: ",
                        " lack values in the scene's bands and are left out: ") +
                 joined(names, ", ") +
                 (count > most ? " and " + counted(count - most, "other") : std::string()));
    }
    warn_of_gaps(run, gaps_of(overlap, library, scene), role, path);
    note_order(run, library, scene);
    const size_t bands = fitted.bands(), used = overlap.bands.size();
    if (used == bands) return;
    std::string ends;
    const size_t beyond = beyond_ends(overlap, library, scene, ends), others = bands - used - beyond;
    std::string text = what + " over " + std::to_string(used) + " of " + counted(bands, "band");
    if (beyond > 0) text += ends;
    if (others > 0)
        text += (beyond > 0 ? "; " + std::to_string(others) + worded(others, " other lacks", " others lack")
                            : std::string(worded(others, ": the other lacks", ": the others lack"))) +
                " values in some of the library's spectra";
    if (8 * used <= bands)
        run.warn(text + ". Check that the library is for this sensor: few bands separate spectra poorly");
    else
        run.note(text);
}

namespace {

/// Handles a library that has fewer bands than the scene, and that cannot be compared with the scene by
/// wavelengths or band numbers. The library may have been made from this scene without its empty bands. If
/// the number of bands fits, removes the empty bands from the scene, too.
void leave_out_bands_the_library_lacks(tool::Run& run, const raster::SpectralLibrary& library,
                                       std::shared_ptr<raster::RasterSource>& scene) {
    const auto bands = static_cast<size_t>(scene->shape().bands);
    if (library.bands() >= bands ||
        !(library.wavelengths_nm.empty() || scene->facts().bands.wavelengths_nm.empty()) ||
        are_numbers_comparable(library, tool::scene_bands(*scene)))
        return;
    const std::vector<tool::BandedSource> scenes{tool::banded(scene)};
    const auto empty = tool::empty_bands(run, scenes);
    if (bands - empty.size() == library.bands()) tool::leave_out_bands(run, scenes, empty);
}

} // namespace

FittedSpectra spectra_for_scene(tool::Run& run, const std::string& role, const std::string& path,
                                const std::vector<std::string>& wanted, double scale, const std::string& what,
                                std::shared_ptr<raster::RasterSource>& scene, BandFit fit) {
    const auto library = chosen_library(run, role, path, wanted, static_cast<size_t>(scene->shape().bands));
    leave_out_bands_the_library_lacks(run, library, scene);
    const auto bands = static_cast<size_t>(scene->shape().bands);
    const auto known = tool::scene_bands(*scene);
    std::string used;
    auto fitted = fit_library(library, role, path, known, scene->facts().bands.fwhm_nm, fit, &used);
    report_fit(run, used, role, path);
    const auto overlap = overlap_of(fitted, role, path, names_single_spectra(wanted));
    report_overlap(run, overlap, fitted, library, known, role, path, what);
    const auto& common = overlap.bands;
    fitted = raster::selected(fitted, overlap.spectra);
    if (common.size() < bands) scene = tool::only_bands(scene, {common.begin(), common.end()});
    FittedSpectra spectra{fitted.names, {}, scale, fitted.classes};
    for (const auto& spectrum : fitted.spectra) {
        auto& to = spectra.spectra.emplace_back();
        for (size_t b : common)
            to.push_back(spectrum[b] * scale);
    }
    run.report()["library"] = {
        {"path", path}, {"spectra", fitted.names}, {"bands", common.size()}, {"scale", scale}};
    return spectra;
}

FittedSpectra without_lost_bands(const FittedSpectra& library, const std::vector<int>& bands,
                                 const raster::RasterSource& scene) {
    FittedSpectra left{library.names, {}, library.scale, library.classes};
    // scene.bands() is the list `bands` with some numbers removed.
    const auto& there = scene.bands();
    std::vector<size_t> kept;
    for (size_t b = 0; b < bands.size(); ++b)
        if (kept.size() < there.size() && bands[b] == there[kept.size()]) kept.push_back(b);
    for (const auto& spectrum : library.spectra) {
        auto& to = left.spectra.emplace_back();
        for (const size_t b : kept)
            to.push_back(spectrum[b]);
    }
    return left;
}

namespace {

constexpr size_t looked_at = 65536; ///< number of spectra of a scene that are examined

/// Computes the squared lengths of the pixels in `lines` whole rows. The bands of a pixel are added in their
/// order.
void sum_squares(const tool::Run& run, const raster::RasterSource& scene, int64_t first, int64_t lines,
                 const SumSquares& on_device, std::vector<double>& squares) {
    const auto shape = scene.shape();
    squares.assign(static_cast<size_t>(lines * shape.samples), 0.0);
    if (on_device && scene.device() >= 0)
        if (const auto there = scene.open_reader()->view_on(scene.device(), {0, first, shape.samples, lines});
            there && on_device(*there, squares.data()))
            return;
    // If readers need memory, the plan has memory for only one reader.
    const int members = scene.reader_bytes() > 0 ? 1 : run.options().threads;
    std::vector<std::unique_ptr<stream::CubeReader>> readers(static_cast<size_t>(members));
    std::vector<std::vector<float>> values(readers.size());
    parallel::for_each(lines, members, &run.cancel(), [&](int64_t line, int member) {
        auto& reader = readers[static_cast<size_t>(member)];
        auto& floats = values[static_cast<size_t>(member)];
        if (!reader) reader = scene.open_reader();
        floats.resize(static_cast<size_t>(shape.bands * shape.samples));
        const auto view = CubeView<float>::packed(floats.data(), shape.bands, 1, shape.samples);
        reader->read({0, first + line, shape.samples, 1}, view);
        double* const to = squares.data() + line * shape.samples;
        for (int b = 0; b < shape.bands; ++b) {
            const float* const row = view.row(b, 0);
            for (int64_t x = 0; x < shape.samples; ++x) {
                const auto v = static_cast<double>(row[x]);
                to[x] += v * v;
            }
        }
    });
}

/// Returns true if the median length of the scene's first valid spectra is between a tenth of `library` and
/// ten times `library`, or if no spectrum is valid.
bool has_like_lengths(const tool::Run& run, const raster::RasterSource& scene, double library,
                      const SumSquares& on_device) {
    const auto shape = scene.shape();
    const int64_t lines = std::max<int64_t>(1, static_cast<int64_t>(looked_at) / shape.samples + 1);
    // Squares are compared. The root is taken only for squares so near to a limit that rounding could decide.
    constexpr double rounding = 1e-12;
    const double longest = 100 * library * library, shortest = library * library / 100,
                 not_too_long = longest * (1 - rounding), far_too_long = longest * (1 + rounding),
                 not_too_short = shortest * (1 + rounding), far_too_short = shortest * (1 - rounding);
    std::vector<double> squares;
    size_t count = 0, not_long = 0, not_short = 0;
    for (int64_t line = 0; line < shape.lines && count < looked_at; line += lines) {
        sum_squares(run, scene, line, std::min(lines, shape.lines - line), on_device, squares);
        for (const double squared : squares) {
            if (!is_valid_sum(squared) || count == looked_at) continue;
            ++count;
            not_long +=
                squared < not_too_long || (squared < far_too_long && library >= std::sqrt(squared) / 10);
            not_short +=
                squared > not_too_short || (squared > far_too_short && library <= 10 * std::sqrt(squared));
        }
    }
    // The median is at index count / 2 in ascending order. It is not too long if more than count / 2 lengths
    // are not too long, and not too short if at most count / 2 lengths are too short.
    return count == 0 || (not_long > count / 2 && not_short >= count - count / 2);
}

/// Lengths and maxima of spectra.
struct Sizes {
    std::vector<double> lengths; ///< length of each spectrum
    std::vector<double> maximum; ///< maximum of each band
    int64_t negative = 0;        ///< number of negative values
};

/// Returns the lengths and maxima of the first 65,536 valid spectra, in reading order.
Sizes first_sizes(const raster::RasterSource& scene) {
    constexpr size_t wanted = looked_at;
    constexpr int64_t few = 262144; // number of values per step, so that they fit into the caches
    const auto shape = scene.shape();
    const auto reader = scene.open_reader();
    const int64_t lines = std::clamp<int64_t>(few / (shape.samples * shape.bands), 1, shape.lines);
    std::vector<float> values(static_cast<size_t>(shape.bands * lines * shape.samples));
    std::vector<double> squared(static_cast<size_t>(shape.samples));
    std::vector<char> counts(squared.size());
    Sizes sizes;
    sizes.maximum.resize(static_cast<size_t>(shape.bands));
    for (int64_t line = 0; line < shape.lines && sizes.lengths.size() < wanted; line += lines) {
        const int64_t count = std::min(lines, shape.lines - line);
        const auto view = CubeView<float>::packed(values.data(), shape.bands, count, shape.samples);
        reader->read({0, line, shape.samples, count}, view);
        for (int64_t y = 0; y < count; ++y) {
            std::fill(squared.begin(), squared.end(), 0.0);
            for (int b = 0; b < shape.bands; ++b)
                for (size_t x = 0; x < squared.size(); ++x) {
                    const double v = view.row(b, y)[x];
                    squared[x] += v * v;
                }
            for (size_t x = 0; x < squared.size(); ++x) {
                counts[x] = is_valid_sum(squared[x]) && sizes.lengths.size() < wanted;
                if (counts[x]) sizes.lengths.push_back(std::sqrt(squared[x]));
            }
            for (int b = 0; b < shape.bands; ++b) {
                const float* const row = view.row(b, y);
                float most = 0;
                for (size_t x = 0; x < counts.size(); ++x) {
                    most = std::max(most, counts[x] ? row[x] : 0.0F);
                    sizes.negative += counts[x] && row[x] < 0 ? 1 : 0;
                }
                double& maximum = sizes.maximum[static_cast<size_t>(b)];
                maximum = std::max(maximum, static_cast<double>(most));
            }
        }
    }
    return sizes;
}

Sizes sizes_of(const FittedSpectra& library) {
    Sizes sizes;
    sizes.maximum.resize(library.spectra.front().size());
    for (const auto& x : library.spectra) {
        double squared = 0;
        for (size_t b = 0; b < x.size(); ++b) {
            squared += x[b] * x[b];
            sizes.maximum[b] = std::max(sizes.maximum[b], x[b]);
        }
        sizes.lengths.push_back(std::sqrt(squared));
    }
    return sizes;
}

} // namespace

double proposed_scale(double ratio, const std::string& type) {
    std::vector<double> usual{1};
    // Reflectance 1 may be stored as the largest number of the type. The inverse factor does not occur in
    // scenes of integers.
    const double largest = type == "Byte" ? 255 : type == "UInt16" ? 65535 : 0;
    if (largest > 0) usual.push_back(largest);
    for (const double power : {10.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8})
        usual.insert(usual.end(), {power, 1 / power});
    return *std::min_element(usual.begin(), usual.end(), [&](double a, double b) {
        return std::fabs(std::log(a / ratio)) < std::fabs(std::log(b / ratio));
    });
}

void warn_of_other_units(tool::Run& run, const raster::RasterSource& scene, const FittedSpectra& spectra,
                         const std::string& inexact, const SumSquares& sum_squares) {
    // Only this rank prints the warning, so only this rank reads the scene for it.
    if (!run.ranks().root()) return;
    const Sizes of_library = sizes_of(spectra);
    // A spectrum of zeros (shade) gives no information about the unit.
    std::vector<double> lengths = of_library.lengths;
    lengths.erase(std::remove(lengths.begin(), lengths.end(), 0.0), lengths.end());
    const double library = median(lengths);
    if (library == 0 || has_like_lengths(run, scene, library, sum_squares)) return;
    const Sizes of_scene = first_sizes(scene);
    const double pixels = median(of_scene.lengths);
    if (pixels == 0 || library == 0 || (library >= pixels / 10 && library <= 10 * pixels)) return;
    // Ratios of the scene's maxima to the library's maxima, with the library's values as in its file.
    std::vector<double> ratios;
    for (size_t b = 0; b < of_library.maximum.size(); ++b)
        if (of_library.maximum[b] > 0 && of_scene.maximum[b] > 0)
            ratios.push_back(of_scene.maximum[b] / of_library.maximum[b] * spectra.scale);
    const double scale = ratios.empty() ? spectra.scale : proposed_scale(median(ratios), scene.facts().type);
    // The spectra are as bright as the brightest pixels of the scene, so their unit is probably correct. The
    // median lengths differ in scenes with much water or shade.
    if (!ratios.empty() && scale == spectra.scale) return;
    char text[200];
    std::snprintf(
        text, sizeof text,
        "the library's spectra are %.3g times as large as the spectra of the scene: check the units. ",
        library / pixels);
    std::string advice = "Multiply the library with -library-scale";
    if (scale != spectra.scale) {
        char proposal[120];
        std::snprintf(proposal, sizeof proposal, "By the maxima of the bands, use -library-scale %.9g",
                      scale);
        advice = proposal;
        if (scale != 1)
            advice += std::string("; this is only the nearest ") +
                      (std::fabs(std::log10(scale) - std::round(std::log10(scale))) < 1e-9
                           ? "power of ten"
                           : "value of the scene's type") +
                      ", and " + inexact;
        run.report()["library"]["proposed_scale"] = scale;
    }
    run.warn(text + advice);
}

void warn_of_other_signs(tool::Run& run, const raster::RasterSource& scene, const FittedSpectra& library,
                         const std::string& advice) {
    if (!run.ranks().root()) return;
    std::vector<std::string> names;
    for (size_t k = 0; k < library.spectra.size(); ++k) {
        const auto& x = library.spectra[k];
        const auto negative = std::count_if(x.begin(), x.end(), [](double v) { return v < 0; });
        if (4 * static_cast<size_t>(negative) > x.size()) names.push_back(library.names[k]);
    }
    if (names.empty()) return;
    const Sizes of_scene = first_sizes(scene);
    const auto values = static_cast<int64_t>(of_scene.lengths.size() * of_scene.maximum.size());
    if (values == 0 || 100 * of_scene.negative >= values) return;
    run.warn(counted(names.size(), "spectrum", "spectra") + " of the library ('" + names.front() +
             (names.size() > 1 ? "' ...) " : "') ") + worded(names.size(), "is", "are") +
             " below zero in over a quarter of the bands, but the scene is not: logarithms, derivatives and "
             "differences cannot be compared with original spectra. " +
             advice);
}

void warn_of_other_deviations(tool::Run& run, const raster::RasterSource& scene,
                              const raster::RasterSource& deviations, const std::string& role) {
    if (!run.ranks().root()) return;
    const double values = median(first_sizes(scene).lengths),
                 ratio = median(first_sizes(deviations).lengths) / values;
    constexpr double largest = 0.5, smallest = 1e-5; // limits of the ratio for measured values
    if (!(values > 0) || (ratio < largest && ratio > smallest) || !(ratio > 0)) return;
    char text[120];
    std::snprintf(text, sizeof text, ": its values are %.3g times the values of the scene: ", ratio);
    run.warn(role + text +
             "check that they are standard deviations in the unit of the scene. Use gdal_calc.py to multiply "
             "them");
}

namespace {

std::string scale_text(const raster::BandValues& values) {
    return model::scale_text({values.scale, values.offset, values.unit});
}

} // namespace

void add_any_scale_option(tool::Builder& args, bool& any_scale) {
    args.flag("any-scale", any_scale,
              "Use stored values even if bands of the scene have different scales or offsets");
}

std::shared_ptr<raster::RasterSource>
scaled_for_library(tool::Run& run, const std::shared_ptr<raster::RasterSource>& scene, bool any_scale) {
    const auto values = scene->facts().bands.values;
    const bool applied = !any_scale && !values.one_factor();
    run.report()["scale_applied"] = applied;
    if (!applied) return scene;
    run.note("Values: the scene has " + scale_text(values) +
             ", which is applied before the comparison with spectra");
    return scene->scaled();
}

void BandScales::apply(std::vector<double>& spectrum) const {
    if (m_values.one_factor()) return;
    for (size_t b = 0; b < spectrum.size(); ++b)
        spectrum[b] = spectrum[b] * m_values.scale[b] + m_values.offset[b];
}

void BandScales::apply_to_difference(std::vector<double>& spectrum) const {
    if (m_values.one_factor()) return;
    for (size_t b = 0; b < spectrum.size(); ++b)
        spectrum[b] *= std::fabs(m_values.scale[b]);
}

void BandScales::note(tool::Run& run) const {
    if (!m_values.one_factor())
        run.note("Values: the scene has " + scale_text(m_values) +
                 "; spectra are written as stored value * scale + offset");
}

} // namespace hsi::tools
