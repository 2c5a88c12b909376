// SPDX-License-Identifier: MIT
#include "gdal_hsi_compare/libraries.h"

#include "atdca/atdca.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "gdal_hsi_compare/findings.h"
#include "raster/text_output.h"
#include "shared/scene_and_library.h"
#include "shared/spectral_bands.h"
#include "tool/passes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

namespace hsi::compare_tool {
namespace {

using Costs = std::vector<std::vector<double>>; ///< [row][column]; not more rows than columns

/// Returns the column that is assigned to each row. Rows are added one by one along the cheapest augmenting
/// path, with the potentials of the dual problem (E. L. Lawler: Combinatorial Optimization, 1976).
std::vector<size_t> assigned(const Costs& cost) {
    const size_t rows = cost.size(), columns = cost.front().size(), none = rows;
    std::vector<double> of_row(rows, 0), of_column(columns + 1, 0);
    // Row of each column; the last column is the start of a path for a new row.
    std::vector<size_t> row_at(columns + 1, none);
    for (size_t r = 0; r < rows; ++r) {
        std::vector<double> least(columns, std::numeric_limits<double>::infinity());
        std::vector<size_t> from(columns, columns);
        std::vector<char> reached(columns + 1, 0);
        size_t at = columns;
        row_at[columns] = r;
        do {
            reached[at] = 1;
            size_t next = columns;
            double step = std::numeric_limits<double>::infinity();
            for (size_t c = 0; c < columns; ++c) {
                if (reached[c] != 0) continue;
                const double reduced = cost[row_at[at]][c] - of_row[row_at[at]] - of_column[c];
                if (reduced < least[c]) {
                    least[c] = reduced;
                    from[c] = at;
                }
                if (least[c] < step) {
                    step = least[c];
                    next = c;
                }
            }
            for (size_t c = 0; c <= columns; ++c) {
                if (reached[c] != 0) {
                    of_row[row_at[c]] += step;
                    of_column[c] -= step;
                } else {
                    least[c] -= step;
                }
            }
            at = next;
        } while (row_at[at] != none);
        for (; at != columns; at = from[at])
            row_at[at] = row_at[from[at]];
    }
    std::vector<size_t> column_of(rows);
    for (size_t c = 0; c < columns; ++c)
        if (row_at[c] != none) column_of[row_at[c]] = c;
    return column_of;
}

void refuse_scene_options(const Settings& s) {
    const auto refuse = [](bool given, const char* option) {
        if (given)
            throw UsageError("-" + std::string(option) + " cannot be used with spectral libraries",
                             "Libraries are compared by angles: use the limits -mean-sad and -max-sad.");
    };
    refuse(!s.map.empty(), "map");
    refuse(s.mosaic, "mosaic");
    refuse(s.any_wavelengths, "any-wavelengths");
    refuse(!s.metric_texts.empty(), "metric");
    refuse(!s.pair_texts.empty(), "band");
    refuse(!s.other_texts.empty(), "other-b");
    refuse(s.min_ssim >= -1, "min-ssim");
    refuse(s.max_unmatched >= 0, "max-unmatched");
    for (size_t k = 0; k < spectral_metrics.size(); ++k)
        if (spectral_metrics[k] != Metric::sad) {
            const std::string name = compare::metric_name(spectral_metrics[k]);
            refuse(s.limits[k].mean >= 0, ("mean-" + name).c_str());
            refuse(s.limits[k].maximum >= 0, ("max-" + name).c_str());
        }
}

/// Returns the values of a spectrum at the given bands.
std::vector<double> values_at(const std::vector<double>& spectrum, const std::vector<size_t>& bands) {
    std::vector<double> values;
    values.reserve(bands.size());
    for (const size_t b : bands)
        values.push_back(spectrum[b]);
    return values;
}

struct Match {
    size_t first, second;
    double angle, rmse; ///< angle in degrees; rmse in the units of the libraries
};

struct Matched {
    std::vector<Match> matches; ///< in the order of the first library
    std::vector<std::string> first_alone, second_alone;
    size_t bands = 0;
    double mean = 0, largest = 0; ///< mean and largest angle, in degrees
    double ratio = 0;             ///< median length of the matched spectra: second library over first library
};

Matched match_spectra(const raster::SpectralLibrary& a, const raster::SpectralLibrary& b,
                      const std::string& path) {
    std::vector<size_t> common;
    for (size_t k = 0; k < a.bands(); ++k) {
        const auto has_value = [&](const std::vector<double>& spectrum) {
            return std::isfinite(spectrum[k]);
        };
        if (std::all_of(a.spectra.begin(), a.spectra.end(), has_value) &&
            std::all_of(b.spectra.begin(), b.spectra.end(), has_value))
            common.push_back(k);
    }
    if (common.size() < 2)
        throw Error("the spectra of both libraries have " + counted(common.size(), "band") + " in common",
                    "Resample one library (gdal_hsi_resample), or choose spectra without gaps; the other "
                    "library is " +
                        path + ".");
    const bool turned = a.spectra.size() > b.spectra.size();
    const auto &rows = turned ? b : a, &columns = turned ? a : b;
    Costs angles;
    for (const auto& one : rows.spectra) {
        auto& row = angles.emplace_back();
        const auto x = values_at(one, common);
        for (const auto& other : columns.spectra) {
            const double angle = atdca::spectral_angle(x.data(), values_at(other, common).data(), x.size());
            row.push_back(std::isfinite(angle) ? angle : 180); // all values are zero
        }
    }
    const auto column_of = assigned(angles);
    Matched out;
    out.bands = common.size();
    std::vector<double> ratios;
    std::vector<char> first_used(a.spectra.size(), 0), second_used(b.spectra.size(), 0);
    for (size_t r = 0; r < column_of.size(); ++r) {
        const size_t first = turned ? column_of[r] : r, second = turned ? r : column_of[r];
        double squares = 0, first_length = 0, second_length = 0;
        for (const size_t k : common) {
            squares += std::pow(a.spectra[first][k] - b.spectra[second][k], 2);
            first_length += std::pow(a.spectra[first][k], 2);
            second_length += std::pow(b.spectra[second][k], 2);
        }
        if (first_length > 0 && second_length > 0) ratios.push_back(std::sqrt(second_length / first_length));
        out.matches.push_back({first, second, angles[r][column_of[r]],
                               std::sqrt(squares / static_cast<double>(common.size()))});
        out.mean += out.matches.back().angle / static_cast<double>(column_of.size());
        out.largest = std::max(out.largest, out.matches.back().angle);
        first_used[first] = second_used[second] = 1;
    }
    if (!ratios.empty()) {
        const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
        std::nth_element(ratios.begin(), middle, ratios.end());
        out.ratio = *middle;
    }
    std::sort(out.matches.begin(), out.matches.end(),
              [](const Match& x, const Match& y) { return x.first < y.first; });
    for (size_t k = 0; k < first_used.size(); ++k)
        if (first_used[k] == 0) out.first_alone.push_back(a.names[k]);
    for (size_t k = 0; k < second_used.size(); ++k)
        if (second_used[k] == 0) out.second_alone.push_back(b.names[k]);
    return out;
}

/// Warns if the spectra of one library are more than ten times as large as those of the other, so that their
/// units probably differ. The spectral angles do not depend on the unit.
void warn_of_other_units(tool::Run& run, double ratio, const std::string& src, const std::string& other) {
    if (ratio == 0 || (ratio >= 0.1 && ratio <= 10)) return;
    char factor[32];
    std::snprintf(factor, sizeof factor, "%.3g", ratio > 1 ? ratio : 1 / ratio);
    run.warn(
        "the spectra of '" + (ratio > 1 ? other : src) + "' are " + factor +
        " times as large as the spectra of '" + (ratio > 1 ? src : other) +
        "', so their units probably differ: the RMSE compares stored values and has no meaning then; the "
        "angles do not depend on the unit");
}

Json library_json(const Matched& m, const raster::SpectralLibrary& a, const raster::SpectralLibrary& b) {
    Json matches = Json::array();
    for (const auto& one : m.matches)
        matches.push_back({{"src", a.names[one.first]},
                           {"other", b.names[one.second]},
                           {"sad", one.angle},
                           {"rmse", one.rmse}});
    return {{"matches", matches},       {"bands", m.bands},           {"mean_sad", m.mean},
            {"maximum_sad", m.largest}, {"src_alone", m.first_alone}, {"other_alone", m.second_alone}};
}

std::string library_text(const Matched& m, const raster::SpectralLibrary& a,
                         const raster::SpectralLibrary& b) {
    size_t first = 8, second = 8;
    for (const auto& one : m.matches) {
        first = std::max(first, a.names[one.first].size());
        second = std::max(second, b.names[one.second].size());
    }
    std::string text;
    const auto row = [&](const std::string& x, const std::string& y, const std::string& figures) {
        text += x + std::string(first - std::min(first, x.size()), ' ') + "  " + y +
                std::string(second - std::min(second, y.size()), ' ') + figures + "\n";
    };
    const auto figures = [](const char* format, double angle, double rmse) {
        char cells[64];
        std::snprintf(cells, sizeof cells, format, angle, rmse);
        return std::string(cells);
    };
    row("src", "other", "  SAD/degree         RMSE");
    for (const auto& one : m.matches)
        row(a.names[one.first], b.names[one.second], figures("%12.4f %12.6g", one.angle, one.rmse));
    row("Average", "", figures("%12.4f", m.mean, 0));
    for (const auto& [alone, whose] : {std::pair(m.first_alone, "src"), std::pair(m.second_alone, "other")})
        if (!alone.empty())
            text += "Without a match in " + std::string(whose) + ": " + joined(alone, ", ") + "\n";
    return text;
}

} // namespace

bool compare_libraries(tool::Run& run, const Settings& s) {
    const std::string& path = run.options().source.path;
    if (s.json) run.only_print();
    if (!raster::may_be_library(path)) return false;
    auto source = tools::open_scene_or_library(run);
    if (!source.library) return false;
    refuse_scene_options(s);
    const auto text_output = run.text_output("-o", s.text_file, s.overwrite);
    raster::check_text_output(text_output);
    const raster::SpectralLibrary a = raster::selected(*source.library, [&] {
        const auto deviations = raster::deviations_in(source.library->names);
        std::vector<size_t> kept;
        for (size_t k = 0; k < source.library->names.size(); ++k)
            if (deviations.count(k) == 0) kept.push_back(k);
        return kept;
    }());
    const auto other = tools::chosen_library(run, "other", s.other, {}, a.bands());
    std::string used;
    const auto b = tools::fit_library(other, "other", s.other, tools::library_bands(a), a.fwhm_nm,
                                      tools::BandFit::automatic, &used);
    tools::report_fit(run, used, "other", s.other);
    tool::end_of_plan(run, [&] {
        run.print(counted(a.names.size(), "spectrum", "spectra") + " of src and " +
                  std::to_string(b.names.size()) + " of " + s.other);
    });
    const Matched found = match_spectra(a, b, s.other);
    warn_of_other_units(run, found.ratio, run.options().source.path, s.other);
    give_result(run, s, text_output, library_json(found, a, b), library_text(found, a, b));
    compare::Findings limited;
    limited.spectral = {Metric::sad};
    limited.summaries.resize(1);
    limited.summaries[0].mean = found.mean;
    limited.summaries[0].maximum = found.largest;
    apply_limits(s, limited);
    return true;
}

} // namespace hsi::compare_tool
