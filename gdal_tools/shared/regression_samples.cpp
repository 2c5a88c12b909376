// SPDX-License-Identifier: MIT
#include "shared/regression_samples.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"
#include "model/document.h"
#include "raster/regular_file.h"
#include "raster/spectral_library.h"
#include "shared/labelled_spectra.h"
#include "tool/classification.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>
#include <optional>

namespace hsi::tools {
namespace {

/// Disjoint sets with union and find.
class Unions {
  public:
    explicit Unions(size_t count) : m_parent(count) {
        std::iota(m_parent.begin(), m_parent.end(), size_t{0});
    }
    size_t root(size_t i) {
        while (m_parent[i] != i)
            i = m_parent[i] = m_parent[m_parent[i]];
        return i;
    }
    void unite(size_t a, size_t b) { m_parent[std::max(root(a), root(b))] = std::min(root(a), root(b)); }

  private:
    std::vector<size_t> m_parent;
};

/// Forms groups: features that share a pixel, or pixels of a raster that touch.
Unions natural_groups(const std::vector<raster::ValueSample>& samples, bool features, int64_t width) {
    Unions unions(samples.size());
    std::map<int64_t, size_t> owner;
    for (size_t s = 0; s < samples.size(); ++s)
        for (const int64_t p : samples[s].pixels) {
            const auto [at, fresh] = owner.emplace(p, s);
            if (!fresh) unions.unite(at->second, s);
            if (features) continue;
            for (const int64_t line : {p / width - 1, p / width})
                for (int64_t x = p % width - 1; x <= p % width + 1; ++x)
                    if (const auto near = owner.find(line * width + x);
                        x >= 0 && x < width && near != owner.end())
                        unions.unite(near->second, s);
        }
    return unions;
}

/// Returns each pixel of a feature as a separate sample, for -per pixel. If several features contain a pixel,
/// the last feature gives its value.
std::vector<raster::ValueSample> single_pixels(const std::vector<raster::ValueSample>& features,
                                               std::vector<size_t>& owner) {
    std::map<int64_t, size_t> last;
    for (size_t s = 0; s < features.size(); ++s)
        for (const int64_t p : features[s].pixels)
            last[p] = s;
    std::vector<raster::ValueSample> samples;
    owner.clear();
    for (const auto& [p, s] : last) {
        samples.push_back({features[s].value, features[s].group, {p}});
        owner.push_back(s);
    }
    return samples;
}

/// Reads the labelled pixels in the mask. There is at least one.
std::vector<raster::ValueSample> read_values(tool::Run& run, const SampleOptions& options,
                                             const raster::RasterSource& scene, bool& features,
                                             std::string& name) {
    const auto grid = raster::grid_of(scene);
    const auto source = raster::LabelSource::open(options.labels, &grid);
    auto samples = source->values();
    features = source->of_features();
    const std::string file = name_of(source->path());
    name = features ? source->value_name() : file.substr(0, file.rfind('.'));
    tool::report_notes(run, *source);
    run.report()["labels"] = {{"path", source->path()}, {"how", source->description()}};
    const auto drop_empty = [&] {
        samples.erase(std::remove_if(samples.begin(), samples.end(),
                                     [](const auto& sample) { return sample.pixels.empty(); }),
                      samples.end());
    };
    drop_empty();
    if (samples.empty() && source->seen() && source->too_small() == 0)
        throw Error("'" + source->path() + "' has no value inside the scene",
                    "Check its nodata value, or choose another field (-field).");
    if (samples.empty()) throw raster::no_labels(*source);
    if (!run.mask()) return samples;
    for (auto& sample : samples)
        sample.pixels.erase(std::remove_if(sample.pixels.begin(), sample.pixels.end(),
                                           [&](int64_t pixel) { return !run.mask()->at(pixel); }),
                            sample.pixels.end());
    drop_empty();
    if (samples.empty())
        throw Error("no labelled pixel is in the mask",
                    "-mask chooses pixels to use, -mask-exclude pixels to leave out.");
    return samples;
}

/// Returns the name of the column with the values: the only numeric column that is neither a band nor a
/// group.
std::string value_column(const std::string& path, const std::vector<std::string>& columns,
                         const std::string& group) {
    const auto table = raster::read_spectrum_table(path, columns);
    std::vector<std::string> numeric;
    for (size_t k = 0; k < columns.size(); ++k) {
        const auto is_number = [k](const auto& row) {
            return row[k].empty() || std::isfinite(raster::table_number(row[k]));
        };
        if (!equal_names(columns[k], group) && std::all_of(table.rows.begin(), table.rows.end(), is_number))
            numeric.push_back(columns[k]);
    }
    if (numeric.size() == 1) return numeric.front();
    throw Error("'" + path + "' has " + (numeric.empty() ? "no numeric column" : "several numeric columns") +
                    " next to its bands",
                (numeric.empty() ? "" : "Choose one with -field NAME. ") + std::string("Columns: ") +
                    joined(columns, ", ") + ".");
}

/// Returns the wavelength that the name of a column states, in nm ("452.5", "452.5_nm", "0.4525um"); nullopt
/// for other names.
std::optional<double> wavelength_of(std::string name) {
    double nm = 1;
    for (const auto& [unit, factor] : {std::pair{"nm", 1.0}, {"um", 1000.0}})
        if (name.size() > 2 && equal_names(name.substr(name.size() - 2), unit)) {
            nm = factor;
            name.erase(name.find_last_not_of(" _", name.size() - 3) + 1);
        }
    const auto value = to_number(name);
    return value && *value > 0 ? std::optional(*value * nm) : std::nullopt;
}

} // namespace

void add_sample_options(tool::Builder& args, SampleOptions& o) {
    o.labels.values = true;
    args.option("field", o.labels.field, "Field or column of the values")
        .shown_as("NAME")
        .defaults_to("the only numeric one");
    args.choice("per", o.per, "Unit of a sample",
                {{"feature", Per::feature, "one sample per feature, with the mean spectrum of its pixels"},
                 {"pixel", Per::pixel, "one sample per labelled pixel"}});
    tool::add_label_pixels(args, o.labels,
                           "Use only pixels that the polygon covers by at least this share, such as 0.7");
}

void refuse_sample_options(const tool::Call& call, const std::string& why) {
    if (call.given("per")) throw UsageError("-per " + why);
    tool::refuse_label_pixels(call, why, "");
}

void SampleSet::keep(const std::vector<size_t>& kept) {
    std::vector<int> number(count(), -1), groups, owners;
    std::vector<double> values;
    for (const size_t s : kept) {
        number[s] = static_cast<int>(values.size());
        values.push_back(y[s]);
        groups.push_back(group[s]);
    }
    std::vector<size_t> labelled;
    std::vector<int64_t> places;
    for (size_t p = 0; p < pixel_sample.size(); ++p) {
        const int owner = number[static_cast<size_t>(pixel_sample[p])];
        if (owner < 0) continue;
        labelled.push_back(p);
        owners.push_back(owner);
        places.push_back(place[p]);
    }
    x = regression::chosen_rows(x, bands, kept);
    pixels = regression::chosen_rows(pixels, bands, labelled);
    y = std::move(values);
    group = std::move(groups);
    pixel_sample = std::move(owners);
    place = std::move(places);
    number_groups();
}

void SampleSet::number_groups() {
    std::map<int, int> numbers;
    for (int& g : group)
        g = numbers.emplace(g, static_cast<int>(numbers.size())).first->second;
}

void add_samples(tool::Run& run, const SampleOptions& options, std::shared_ptr<raster::RasterSource>& scene,
                 int scene_number, SampleSet& set) {
    bool features = false;
    std::string name;
    auto samples = read_values(run, options, *scene, features, name);
    if (set.name.empty()) set.name = name;
    const int64_t width = scene->shape().samples;
    Unions unions = natural_groups(samples, features, width);
    std::vector<size_t> owner(samples.size());
    std::iota(owner.begin(), owner.end(), size_t{0});
    if (features && options.per == Per::pixel) samples = single_pixels(samples, owner);
    std::vector<int64_t> index;
    for (const auto& sample : samples)
        index.insert(index.end(), sample.pixels.begin(), sample.pixels.end());
    std::sort(index.begin(), index.end());
    index.erase(std::unique(index.begin(), index.end()), index.end());
    const svm::Gather spectra = read_spectra(run, scene, index);
    set.bands = static_cast<size_t>(scene->shape().bands);
    const auto& values = scene->facts().bands.values;
    const auto number = [&](size_t pixel, size_t b) {
        const auto v = static_cast<double>(spectra.spectra()[pixel * set.bands + b]);
        return values.scale.empty() ? v : v * values.scale[b] + values.offset[b];
    };
    std::vector<int> sample_of_pixel(index.size(), -1);
    for (size_t s = 0; s < samples.size(); ++s) {
        std::vector<double> sum(set.bands);
        int64_t valid = 0;
        for (const int64_t p : samples[s].pixels) {
            const auto pixel =
                static_cast<size_t>(std::lower_bound(index.begin(), index.end(), p) - index.begin());
            if (!spectra.valid(pixel)) continue;
            ++valid;
            sample_of_pixel[pixel] = static_cast<int>(set.count());
            for (size_t b = 0; b < set.bands; ++b)
                sum[b] += number(pixel, b);
        }
        if (valid == 0) {
            ++set.empty_samples;
            continue;
        }
        for (const double v : sum)
            set.x.push_back(v / static_cast<double>(valid));
        set.y.push_back(samples[s].value);
        const int64_t first = samples[s].pixels.front();
        std::string key = samples[s].group.empty() ? "" : "=" + samples[s].group;
        if (options.block > 0)
            key = "block " + std::to_string(scene_number) + " " +
                  std::to_string(first / width / options.block) + " " +
                  std::to_string(first % width / options.block);
        else if (key.empty())
            key = std::to_string(scene_number) + " " + std::to_string(unions.root(owner[s]));
        set.group.push_back(
            set.group_numbers.emplace(key, static_cast<int>(set.group_numbers.size())).first->second);
    }
    const int64_t first_line =
        // A gap between the scenes ensures that their pixels do not touch.
        set.place.empty() ? 0 : set.place.back() / set.place_samples + 2;
    for (size_t pixel = 0; pixel < index.size(); ++pixel) {
        if (sample_of_pixel[pixel] < 0) {
            ++set.invalid_pixels;
            continue;
        }
        for (size_t b = 0; b < set.bands; ++b)
            set.pixels.push_back(number(pixel, b));
        set.pixel_sample.push_back(sample_of_pixel[pixel]);
        // Length of a row of the common grid, larger than any scene.
        constexpr int64_t wide = int64_t{1} << 31;
        set.place_samples = wide;
        set.place.push_back((first_line + index[pixel] / width) * wide + index[pixel] % width);
    }
}

SampleSet read_sample_table(tool::Run& run, const std::string& path, const std::string& field,
                            const std::string& group, std::vector<double>& wavelengths_nm) {
    if (raster::is_pipe_or_device(path))
        throw Error("-table '" + path + "' is a pipe, but the table is read several times",
                    "Write it to a file first.");
    const auto columns = raster::read_spectrum_table(path, {}).further;
    std::vector<std::string> wanted, others;
    for (const auto& column : columns) {
        const bool named = equal_names(column, field) || equal_names(column, group);
        if (const auto nm = named ? std::nullopt : wavelength_of(column)) {
            wavelengths_nm.push_back(*nm);
            wanted.push_back(column);
        } else {
            others.push_back(column);
        }
    }
    if (wanted.empty())
        throw Error("'" + path + "' has no column with a wavelength as its name",
                    "Use wavelengths in nm as names of the band columns: 450, 452.5nm ..");
    constexpr double least_nm = 100;
    if (*std::max_element(wavelengths_nm.begin(), wavelengths_nm.end()) < least_nm) {
        for (double& nm : wavelengths_nm)
            nm *= 1000;
        run.note("The wavelengths of '" + path + "' are read as micrometres");
    }
    SampleSet set;
    set.bands = wanted.size();
    set.name = field.empty() ? value_column(path, others, group) : field;
    wanted.push_back(set.name);
    if (!group.empty()) wanted.push_back(group);
    const auto table = raster::read_spectrum_table(path, wanted);
    std::map<std::string, int> groups;
    int64_t without = 0;
    for (size_t r = 0; r < table.rows.size(); ++r) {
        const auto& row = table.rows[r];
        const double value = raster::table_number(row[set.bands]);
        if (!row[set.bands].empty() && !std::isfinite(value))
            throw Error("'" + path + "': column '" + set.name + "' has a value that is not a number: '" +
                            row[set.bands] + "'",
                        "Columns: " + joined(others, ", ") + ".");
        std::vector<double> x;
        for (size_t b = 0; b < set.bands; ++b)
            x.push_back(row[b].empty() ? NAN : raster::table_number(row[b]));
        const bool finite = std::all_of(x.begin(), x.end(), [](double v) { return std::isfinite(v); });
        const bool zero = std::all_of(x.begin(), x.end(), [](double v) { return v == 0; });
        if (!std::isfinite(value) || !finite || zero) {
            ++without;
            continue;
        }
        set.x.insert(set.x.end(), x.begin(), x.end());
        set.y.push_back(value);
        const std::string key =
            group.empty() || row.back().empty() ? "row " + std::to_string(r) : "=" + row.back();
        set.group.push_back(groups.emplace(key, static_cast<int>(groups.size())).first->second);
        set.pixel_sample.push_back(static_cast<int>(set.y.size()) - 1);
        // The gap ensures that rows of the table do not touch.
        set.place.push_back(4 * static_cast<int64_t>(set.y.size()));
    }
    set.place_samples = int64_t{1} << 31;
    set.pixels = set.x;
    if (without > 0)
        run.warn("'" + path + "': " + counted(without, "row lacks", "rows lack") + " a value or a band and" +
                 worded(without, " is", " are") + " left out");
    if (set.y.empty())
        throw Error("'" + path + "' has no row with a value and a spectrum", "Check its cells.");
    return set;
}

std::vector<double> transformed(const regression::Transform& transform, const std::vector<double>& x) {
    std::vector<double> all, values, spare;
    for (auto from = x.begin(); from != x.end(); from += static_cast<ptrdiff_t>(transform.inputs())) {
        values.assign(from, from + static_cast<ptrdiff_t>(transform.inputs()));
        transform.apply(values, 1, spare);
        all.insert(all.end(), values.begin(), values.begin() + static_cast<ptrdiff_t>(transform.outputs()));
    }
    return all;
}

std::vector<size_t> finite_rows(const std::vector<double>& x, size_t bands) {
    std::vector<size_t> rows;
    for (size_t i = 0; i < x.size() / bands; ++i) {
        const auto at = x.begin() + static_cast<ptrdiff_t>(i * bands);
        if (std::all_of(at, at + static_cast<ptrdiff_t>(bands), [](double v) { return std::isfinite(v); }))
            rows.push_back(i);
    }
    return rows;
}

std::string predictions_csv(const HeldOut& h) {
    std::string text = "sample,group,fold,value,estimate,deviation\n";
    for (size_t i = 0; i < h.value.size(); ++i) {
        text += std::to_string(i + 1) + ",";
        if (!h.group.empty()) text += std::to_string(h.group[i] + 1);
        text += ",";
        if (!h.fold.empty()) text += std::to_string(h.fold[i] + 1);
        text += "," + model::number_text(h.value[i]) + "," + model::number_text(h.estimate[i]) + ",";
        if (!h.deviation.empty() && std::isfinite(h.deviation[i])) text += model::number_text(h.deviation[i]);
        text += "\n";
    }
    return text;
}

std::string metrics_text(const regression::Metrics& m) {
    char text[160];
    std::snprintf(text, sizeof text,
                  "n = %lld, R2 = %.4f, RMSE = %.4g (%.1f %% of the range), bias = %.2g, RPD = %.2f",
                  static_cast<long long>(m.n), m.r2, m.rmse, m.nrmse_percent, m.bias, m.rpd);
    return text;
}

Plot scatter_plot(const HeldOut& h, const regression::Model& model, const regression::Metrics& metrics) {
    constexpr double margin = 0.05;
    const auto [lowest, highest] = std::minmax_element(h.value.begin(), h.value.end());
    const auto [least, most] = std::minmax_element(h.estimate.begin(), h.estimate.end());
    double from = std::min(*lowest, *least), to = std::max(*highest, *most);
    const double wider = margin * (to > from ? to - from : 1);
    from -= wider;
    to += wider;
    const bool has_unit = model.name.find(model.unit) != std::string::npos; // also true if there is no unit
    const std::string unit = has_unit ? "" : " (" + model.unit + ")";
    Plot plot(scatter_frame, {"measured " + model.name + unit, from, to, {}},
              {"estimated " + model.name + unit, from, to, {}});
    plot.line(plot.x_of(from), plot.y_of(from), plot.x_of(to), plot.y_of(to), {80, 80, 80}, 2);
    for (size_t i = 0; i < h.value.size(); ++i)
        plot.disc(plot.x_of(h.value[i]), plot.y_of(h.estimate[i]), 3, {0, 85, 170},
                  std::to_string(i + 1) + ": " + tool::number_text(h.value[i]) + ", " +
                      tool::number_text(h.estimate[i]));
    double y = scatter_frame.top + 16;
    for (const auto& [format, number] : {std::pair{"n = %.0f", static_cast<double>(metrics.n)},
                                         {"R2 = %.3f", metrics.r2},
                                         {"RMSE = %.4g", metrics.rmse},
                                         {"nRMSE = %.1f %%", metrics.nrmse_percent},
                                         {"bias = %.2g", metrics.bias},
                                         {"RPD = %.2f", metrics.rpd}}) {
        char text[64];
        std::snprintf(text, sizeof text, format, number);
        plot.text(scatter_frame.left + 16, y, Plot::Anchor::start, text);
        y += 20;
    }
    return plot;
}

} // namespace hsi::tools
