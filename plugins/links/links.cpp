// SPDX-License-Identifier: MIT
#include "links/links.h"

#include "core/counted.h"
#include "core/cuda_module.h"
#include "core/error.h"
#include "core/name_index.h"
#include "core/text.h"
#include "identify/identify.h"
#include "model/document.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace hsi::links {
namespace {

using stream::CubeShape;
using stream::Link;

/// The range of a number; NaN and infinities are never allowed.
struct Span {
    double least = std::numeric_limits<double>::lowest(), most = std::numeric_limits<double>::max();
};
constexpr Span single_precision{std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max()};
constexpr double most_bands = 65536; ///< GDAL's limit

/// The settings of a step in a document, which may come from an untrusted source. An operation declares each
/// of its settings by reading the setting, with its exact size and range. Settings that are not declared are
/// refused. Documents are checked only in this class.
class Settings {
  public:
    Settings(const Link& link, const CubeShape& shape)
        : scene(shape), bands(static_cast<size_t>(shape.bands)), m_link(link) {}

    const CubeShape scene; ///< the scene for which the operation is created
    const size_t bands;    ///< number of bands of the scene

    [[noreturn]] void fail(const std::string& what) const {
        throw Error("the link '" + m_link.operation + "' is damaged: " + what);
    }
    double number(const char* key, const Span& span) const { return number(at(key), key, span); }
    int64_t whole(const char* key, int64_t least, int64_t most) const {
        return whole(at(key), key, static_cast<double>(least), static_cast<double>(most));
    }
    bool yes(const char* key) const {
        if (!at(key).is_boolean()) fail(std::string("'") + key + "' is not true or false");
        return at(key).get<bool>();
    }
    /// Checks the stated length of a list of variable length. Older documents do not state the length.
    void count_is(const char* key, size_t entries) const {
        m_declared.insert(key);
        if (!m_link.settings.contains(key)) return;
        if (whole(key, 1, 1000000) != static_cast<int64_t>(entries))
            fail(std::string("'") + key + "' is not " + std::to_string(entries));
    }
    /// Returns the entry of `choices` whose name is the value of the setting.
    template <class Choices>
    auto choice(const char* key, const Choices& choices) const {
        const Json& name = at(key);
        for (const auto& one : choices)
            if (name == one.first) return one.second;
        fail(std::string("'") + key + "' is not a value that this operation supports");
    }
    const Json& model(const std::string& key = "model") const {
        if (!at(key).is_object()) fail("'" + key + "' is not an object");
        return at(key);
    }
    /// Returns the number of entries of a list.
    size_t length(const char* key, double least, double most) const {
        return length(at(key), key, least, most);
    }
    /// Reads a list of one to `most` texts.
    std::vector<std::string> texts(const char* key, double most) const {
        std::vector<std::string> all;
        all.reserve(length(key, 1, most));
        for (const Json& one : at(key)) {
            if (!one.is_string()) fail(std::string("an entry of '") + key + "' is not a text");
            all.push_back(one.get<std::string>());
        }
        return all;
    }
    std::vector<double> numbers(const char* key, size_t count, const Span& span = {}) const {
        return numbers<double>(at(key), key, count, span);
    }
    /// Checks that the scene has `count` bands, the number for which the operation was made.
    void check_bands(size_t count) const {
        if (count != bands)
            throw Error("the link '" + m_link.operation + "' was made for " + counted(count, "band") +
                        ", but its input has " + counted(bands, "band"));
    }
    /// Checks that the setting, a number of bands, equals the number of bands of the scene.
    void same_bands(const char* key) const { check_bands(static_cast<size_t>(whole(key, 1, 1000000))); }
    /// Reads one number per band of the scene.
    std::vector<double> band_numbers(const char* key, const Span& span = {}) const {
        check_bands(length(key, 1, most_bands));
        return numbers(key, bands, span);
    }
    /// Reads a list of one to `most` spectra.
    template <class T>
    std::vector<std::vector<T>> spectra(const char* key, double most, const Span& span) const {
        std::vector<std::vector<T>> all;
        all.reserve(length(key, 1, most));
        for (const Json& one : at(key)) {
            check_bands(length(one, key, 1, most_bands));
            all.push_back(numbers<T>(one, key, bands, span));
        }
        return all;
    }
    /// Reads indices of the scene's bands, counted from 0, each at most once. If `rising` is true, they must
    /// rise.
    template <class T>
    std::vector<T> places(const Json& json, const char* key, size_t least, bool rising) const {
        const size_t count = length(json, key, static_cast<double>(least), static_cast<double>(bands));
        std::vector<T> out;
        std::vector<char> taken(bands);
        out.reserve(count);
        for (const Json& one : json) {
            const auto place = static_cast<size_t>(whole(one, key, 0, static_cast<double>(bands) - 1));
            if (std::exchange(taken[place], 1) != 0)
                fail(std::string("'") + key + "' names a band of the scene twice");
            if (rising && !out.empty() && static_cast<T>(place) < out.back())
                fail(std::string("'") + key + "' is not in ascending order");
            out.push_back(static_cast<T>(place));
        }
        return out;
    }
    template <class T>
    std::vector<T> places(const char* key, size_t least, bool rising) const {
        return places<T>(at(key), key, least, rising);
    }
    /// Calls `visit` for each object of a list. The objects have two members, named `first` and `second`.
    template <class Visit>
    void pairs(const char* key, double most, const char* first, const char* second,
               const Visit& visit) const {
        length(key, 1, most);
        for (const Json& one : at(key)) {
            const bool fits =
                one.is_object() && one.size() == 2 && one.contains(first) && one.contains(second);
            if (!fits)
                fail(std::string("an entry of '") + key + "' does not consist of '" + first + "' and '" +
                     second + "'");
            visit(one[first], one[second]);
        }
    }
    template <class T>
    std::vector<T> numbers(const Json& json, const char* key, size_t count, const Span& span) const {
        length(json, key, static_cast<double>(count), static_cast<double>(count));
        std::vector<T> values;
        values.reserve(count);
        for (const Json& one : json)
            values.push_back(static_cast<T>(number(one, key, span)));
        return values;
    }
    /// Checks that all settings were declared. \throws Error for other settings.
    void refuse_others() const {
        for (const auto& [key, value] : m_link.settings.items())
            if (m_declared.count(key) == 0) fail("it has no setting '" + key + "'");
    }

  private:
    const Json& at(const std::string& key) const {
        m_declared.insert(key);
        const auto found = m_link.settings.find(key);
        if (found == m_link.settings.end()) fail("'" + key + "' is missing");
        return *found;
    }
    double number(const Json& json, const char* key, const Span& span) const {
        const double v = json.is_number() ? json.get<double>() : NAN;
        if (!std::isfinite(v)) fail(std::string("an entry of '") + key + "' is not a number");
        if (v < span.least || v > span.most) fail(std::string("a number of '") + key + "' is out of range");
        return v;
    }
    int64_t whole(const Json& json, const char* key, double least, double most) const {
        const double v = number(json, key, {});
        if (v != std::floor(v) || v < least || v > most)
            fail(std::string("'") + key + "' is not a whole number from " +
                 std::to_string(static_cast<int64_t>(least)) + " to " +
                 std::to_string(static_cast<int64_t>(most)));
        return static_cast<int64_t>(v);
    }
    size_t length(const Json& json, const char* key, double least, double most) const {
        if (!json.is_array()) fail(std::string("'") + key + "' is not a list");
        const auto count = static_cast<double>(json.size());
        if (count < least || count > most)
            fail(std::string("'") + key + "' has " + counted(json.size(), "entry", "entries") +
                 " instead of " + std::to_string(static_cast<int64_t>(least)) +
                 (least < most ? " to " + std::to_string(static_cast<int64_t>(most)) : std::string()));
        return json.size();
    }
    const Link& m_link;
    mutable std::set<std::string> m_declared;
};

using Made = stream::LinkWork;

/// Returns a function that creates the operation on devices with an algorithm's backend
/// (LinkWork::on_devices). make() creates the operation from the backend. The backend lives as long as the
/// operation.
template <class Backend, class Make>
auto by_backend(const char* algorithm, Make make) {
    return [=](const std::vector<CudaDevice>& devices) -> std::shared_ptr<stream::Operation> {
        const std::shared_ptr<Backend> backend = make_cuda_backend<Backend>(algorithm, devices);
        std::shared_ptr<stream::Operation> made = make(*backend);
        auto* const operation = made.get();
        return {operation, [backend, made = std::move(made)](stream::Operation*) mutable { made.reset(); }};
    };
}

/// Marks work whose values take far longer to compute than to read from a file.
Made dear(Made work) {
    work.dear = true;
    return work;
}

/// A function that creates the operation after all settings have been checked.
using Make = std::function<Made()>;

Make read_displacement(const Settings& s) {
    spp::Options options;
    options.window = static_cast<int>(s.whole("window", spp::min_window, spp::max_window));
    if (options.window % 2 == 0) s.fail("'window' is even");
    return [options, centroid = s.band_numbers("centroid")] {
        Made work(spp::make_displacement(options, centroid));
        const auto bands = static_cast<double>(centroid.size()),
                   area = static_cast<double>(options.window) * options.window;
        work.per_pixel = spp::cost::value * bands + spp::cost::angle * (bands * (area - 1) / 2) +
                         spp::cost::window * (4 * bands * area);
        work.finding = spp::make_finding_displacement(options.window, centroid);
        work.repeating = spp::make_repeated_displacement(centroid);
        work.on_devices = by_backend<spp::Backend>(
            "spp", [=](spp::Backend& backend) { return backend.make_displacement(options, centroid); });
        return work;
    };
}

Make read_transform(const Settings& s) {
    pca::Transform t;
    t.inputs = s.scene.bands;
    t.outputs = static_cast<int>(s.length("offset", 1, most_bands));
    t.offset = s.numbers("offset", static_cast<size_t>(t.outputs));
    t.matrix = s.numbers("matrix", static_cast<size_t>(t.outputs) * s.bands);
    t.zero_is_invalid = s.yes("zero_is_invalid");
    return [t] {
        Made work(pca::make_transform(t));
        work.per_pixel = pca::cost::projection * (static_cast<double>(t.inputs) * t.outputs);
        work.on_devices =
            by_backend<pca::Backend>("pca", [t](pca::Backend& backend) { return backend.make_transform(t); });
        return work;
    };
}

Make read_unmixing(const Settings& s) {
    const unmix::Options options{s.choice("method", unmix::method_names), s.yes("rmse")};
    unmix::Endmembers endmembers;
    endmembers.spectra = s.spectra<double>("endmembers", static_cast<double>(s.bands) + 1, {});
    for (size_t k = 1; k <= endmembers.spectra.size(); ++k)
        endmembers.names.push_back(std::to_string(k));
    s.count_is("count", endmembers.spectra.size());
    unmix::check_endmembers(endmembers, options.method);
    return [options, endmembers] {
        Made work = dear(Made(unmix::make_unmixing(endmembers, options)));
        work.per_pixel = unmix::cost::product *
                         static_cast<double>(endmembers.spectra.size() * endmembers.spectra.front().size());
        work.on_devices = by_backend<unmix::Backend>(
            "unmix", [=](unmix::Backend& backend) { return backend.make_unmixing(endmembers, options); });
        return work;
    };
}

/// Returns the cost with the same estimate as gdal_hsi_detect.
Cost cost_of(const detect::Detector& d) {
    const auto used = static_cast<double>(d.used.size());
    Cost cost = detect::cost::score * (used * std::max(d.targets, 1));
    if (d.method == detect::Method::sid) cost = cost + detect::cost::logarithms * used;
    if (d.method == detect::Method::ace || d.method == detect::Method::rx)
        cost = cost + detect::cost::matrix * (used * used);
    return cost;
}

Make read_detection(const Settings& s) {
    detect::Detector d;
    d.method = s.choice("method", detect::method_names);
    s.same_bands("bands");
    d.bands = s.scene.bands;
    d.used = s.places<int>("used", 1, true);
    const bool targets = detect::has_target(d.method);
    d.targets = static_cast<int>(s.whole("targets", targets ? 1 : 0, targets ? 65535 : 0));
    const auto sizes = detect::sizes_of(d.method, d.used.size(), static_cast<size_t>(d.targets));
    d.centre = s.numbers("centre", sizes.centre);
    d.rows = s.numbers("rows", sizes.rows);
    d.log_rows = s.numbers("log_rows", sizes.log_rows, {0, 1});
    d.constants = s.numbers("constants", sizes.constants);
    d.factor = s.numbers("factor", sizes.factor);
    d.deviation = s.numbers("deviation", sizes.deviation, {0, Span().most});
    return [d] {
        Made work(detect::make_detection(d, {}));
        work.per_pixel = cost_of(d);
        work.on_devices = by_backend<detect::PixelBackend>(
            "detect_pixel", [=](detect::PixelBackend& backend) { return backend.make_detection(d, {}); });
        return work;
    };
}

Make read_svm(const Settings& s) {
    const auto model =
        std::make_shared<const svm::Model>(svm::from_json(model::dump(s.model()), "the link 'svm'"));
    s.check_bands(static_cast<size_t>(model->features()));
    return [model] {
        Made work = dear(Made(svm::make_classification(model, {})));
        work.per_pixel = svm::cost::kernel * (static_cast<double>(model->features()) *
                                              static_cast<double>(model->vector_count()));
        work.on_devices = by_backend<svm::Backend>(
            "svm", [=](svm::Backend& backend) { return backend.make_classification(model, {}); });
        return work;
    };
}

Make read_mlr(const Settings& s) {
    const auto model =
        std::make_shared<const sahic::MlrModel>(sahic::from_json(model::dump(s.model()), "the link 'mlr'"));
    s.check_bands(static_cast<size_t>(model->features()));
    sahic::SpectralOptions options;
    options.map = true;
    return [model, options, scene = s.scene] {
        Made work = dear(Made(sahic::make_spectral_pass(model, options, scene.samples, scene.lines)));
        work.per_pixel =
            sahic::cost::classifier * (static_cast<double>(model->features()) * model->class_count());
        work.on_devices = by_backend<sahic::Backend>("sahic", [=](sahic::Backend& backend) {
            return backend.make_spectral_pass(model, options, scene.samples, scene.lines);
        });
        return work;
    };
}

Make read_nearest(const Settings& s) {
    atdca::ClassifyOptions options;
    options.max_angle = s.number("max_angle", {0, 180});
    constexpr double most_targets = 65535; // number of classes that a map can have
    const auto spectra = s.spectra<float>("spectra", most_targets, single_precision);
    s.count_is("count", spectra.size());
    return [options, spectra] {
        Made work(atdca::make_classification(spectra, options));
        work.per_pixel = atdca::cost::angle * static_cast<double>(spectra.size() * spectra.front().size());
        work.on_devices = by_backend<atdca::Backend>(
            "atdca", [=](atdca::Backend& backend) { return backend.make_classification(spectra, options); });
        return work;
    };
}

/// Reads weighted sums of the scene's bands. `span` is the allowed range of the weights.
std::vector<math::ResampledBand> read_sums(const Settings& s, const char* key, const Span& span) {
    std::vector<math::ResampledBand> bands;
    s.pairs(key, most_bands, "sources", "weights", [&](const Json& from, const Json& by) {
        math::ResampledBand band;
        band.target = bands.size();
        band.sources = s.places<size_t>(from, "sources", 1, true);
        band.weights = s.numbers<double>(by, "weights", band.sources.size(), span);
        bands.push_back(std::move(band));
    });
    return bands;
}

Make read_resampling(const Settings& s) {
    s.same_bands("inputs");
    const auto bands = read_sums(s, "bands", {});
    return [inputs = s.scene.bands, bands] {
        Made work(resample::make_resampling(inputs, bands));
        for (const auto& band : bands)
            work.per_pixel =
                work.per_pixel + resample::cost::weight * static_cast<double>(band.weights.size());
        work.on_devices = by_backend<resample::Backend>(
            "resample", [=](resample::Backend& backend) { return backend.make_resampling(inputs, bands); });
        return work;
    };
}

/// Reads settings whose names end with the number of a model, such as "model 1" and "bands 1".
Make read_regression(const Settings& s) {
    s.same_bands("inputs");
    constexpr int64_t most_models = 1000;
    std::vector<regression::Applied> models;
    const auto scale = s.band_numbers("scale"), offset = s.band_numbers("offset");
    const int64_t count = s.whole("models", 1, most_models);
    constexpr Span weights{0, 1 + 1e-6};
    double products = 0;
    for (int64_t m = 1; m <= count; ++m) {
        const std::string number = " " + std::to_string(m);
        auto model = std::make_shared<const regression::Model>(
            regression::from_json(model::dump(s.model("model" + number)), "the link 'regression'"));
        regression::Inputs inputs{read_sums(s, ("bands" + number).c_str(), weights), scale, offset};
        if (inputs.bands.size() != model->bands.size()) s.fail("a model has a different count of bands");
        products += regression::product_count(*model);
        models.push_back({std::move(model), std::move(inputs)});
    }
    return [inputs = s.scene.bands, models, products] {
        Made work = dear(Made(regression::make_estimation(inputs, models)));
        work.per_pixel = regression::cost::product * products;
        work.on_devices = by_backend<regression::Backend>("regression", [=](regression::Backend& backend) {
            return backend.make_estimation(inputs, models);
        });
        return work;
    };
}

constexpr std::pair<const char*, features::Output> feature_outputs[] = {
    {"removed", features::Output::removed}, {"features", features::Output::features}};

Make read_features(const Settings& s) {
    s.same_bands("inputs");
    const features::Output output = s.choice("output", feature_outputs);
    std::vector<features::Range> ranges;
    constexpr Span nanometres{0, 1e9};
    s.pairs("ranges", most_bands / features::measures, "bands", "x", [&](const Json& places, const Json& x) {
        features::Range range;
        range.bands = s.places<size_t>(places, "bands", 3, false);
        range.x = s.numbers<double>(x, "x", range.bands.size(), nanometres);
        for (size_t k = 1; k < range.x.size(); ++k)
            if (range.x[k] <= range.x[k - 1]) s.fail("'x' is not in ascending order");
        ranges.push_back(std::move(range));
    });
    return [inputs = s.scene.bands, ranges, output] {
        Made work = dear(Made(features::make_features(inputs, ranges, output)));
        for (const auto& range : ranges)
            work.per_pixel = work.per_pixel + features::cost::continuum * static_cast<double>(range.x.size());
        work.on_devices = by_backend<features::Backend>("features", [=](features::Backend& backend) {
            return backend.make_features(inputs, ranges, output);
        });
        return work;
    };
}

constexpr std::pair<const char*, identify::Best> best_names[] = {
    {"fit", identify::Best::fit}, {"depth", identify::Best::depth}, {"fd", identify::Best::fd}};
constexpr double no_reference = -1e30; ///< represents NaN, which JSON lacks

/// Returns the indices of the names in a setting among the names of `list`; case-sensitive.
template <class List>
std::vector<size_t> places_of(const Settings& s, const char* key, const List& list) {
    std::map<std::string, size_t> names;
    for (size_t k = 0; k < list.size(); ++k)
        names.emplace(list[k].name, k);
    std::vector<size_t> places;
    for (const auto& name : s.texts(key, static_cast<double>(list.size()))) {
        const auto found = names.find(name);
        if (found == names.end()) s.fail("'" + name + "' is not in its rules");
        places.push_back(found->second);
    }
    return places;
}

Make read_identification(const Settings& s) {
    const auto file = identify::read_rules(s.texts("file", 1).front(), "the link 'identify'");
    identify::Choice choice;
    choice.best = s.choice("best", best_names);
    choice.groups = places_of(s, "groups", file.groups);
    if (choice.groups.empty()) s.fail("'groups' is empty");
    choice.rules = places_of(s, "rules", file.rules);
    s.count_is("count", choice.rules.size());
    identify::Bands bands;
    constexpr Span nanometres{0, 1e9}, factors{-1e30, 1e30};
    bands.wavelengths = s.band_numbers("wavelengths", nanometres);
    bands.scale = s.band_numbers("scale", factors);
    bands.offset = s.band_numbers("offset", factors);
    bands.unit = s.number("unit", {1e-30, 1e30});
    std::vector<identify::Reference> references;
    s.pairs("spectra", most_bands, "name", "values", [&](const Json& name, const Json& values) {
        if (!name.is_string()) s.fail("a name of 'spectra' is not a text");
        auto spectrum = s.numbers<double>(values, "spectra", s.bands, factors);
        for (double& v : spectrum)
            if (v == no_reference) v = std::numeric_limits<double>::quiet_NaN();
        references.push_back({name.get<std::string>(), std::move(spectrum)});
    });
    if (references.size() != identify::spectra_of(file, choice).size())
        s.fail("'spectra' do not match its rules");
    auto made = identify::plan_rules(file, choice, bands, references);
    // The other groups remain in the plan, because all bands of the plan decide which pixels are valid.
    for (auto& group : made.groups)
        group.shown = group.group == choice.groups.front();
    const auto plan = std::make_shared<const identify::Plan>(std::move(made));
    s.check_bands(plan->used.size());
    return [plan] { return dear(Made(identify::make_identification(plan, {}))); };
}

Make read_indices(const Settings& s) {
    s.same_bands("inputs");
    const auto expressions = s.texts("expressions", most_bands);
    indices::Bands bands;
    // A negative value means unknown, since JSON lacks NaN.
    bands.wavelengths = s.band_numbers("wavelengths", {-1, 1e9});
    bands.scale = s.band_numbers("scale");
    bands.offset = s.band_numbers("offset");
    return [inputs = s.scene.bands, expressions, bands] {
        Made work(indices::make_indices(inputs, expressions, bands));
        work.per_pixel = indices::cost_of(inputs, expressions, bands);
        return work;
    };
}

Make read_columns(const Settings& s) {
    s.same_bands("inputs");
    const auto samples = static_cast<size_t>(s.scene.samples);
    if (s.whole("samples", 1, 1000000000) != s.scene.samples)
        s.fail("'samples' differs from the scene's width");
    const destripe::Columns columns{samples, s.numbers("factor", s.bands * samples),
                                    s.numbers("offset", s.bands * samples), samples};
    return [inputs = s.scene.bands, columns] { return Made(destripe::make_correction(inputs, columns)); };
}

Make read_spectra(const Settings& s) {
    s.same_bands("inputs");
    const auto transform = smooth::transform_of(
        s.choice("method", smooth::method_names),
        [&](const char* key, const auto& names) { return s.choice(key, names); },
        [&](const char* key, double least, double most) {
            return s.number(key, {least, most});
        },
        [&](const char* key, int64_t least, int64_t most) { return s.whole(key, least, most); },
        [&](const char* key) { return s.band_numbers(key); });
    if (smooth::is_sum(transform.method)) s.fail("'method' is a sum, which is another operation");
    return [inputs = s.scene.bands, transform] {
        Made work(smooth::make_transform(inputs, transform));
        work.per_pixel = smooth::cost::value * inputs;
        return work;
    };
}

struct Kind {
    const char* name;
    Make (*read)(const Settings& settings);
};

constexpr Kind kinds[] = {{"spp", read_displacement},  {"transform", read_transform},
                          {"unmix", read_unmixing},    {"detect", read_detection},
                          {"svm", read_svm},           {"mlr", read_mlr},
                          {"nearest", read_nearest},   {"resample", read_resampling},
                          {"features", read_features}, {"identify", read_identification},
                          {"index", read_indices},     {"spectra", read_spectra},
                          {"columns", read_columns},   {"regression", read_regression}};

} // namespace

stream::LinkWork make_link(const Link& link, const CubeShape& scene) {
    for (const Kind& kind : kinds) {
        if (link.operation != kind.name) continue;
        const Settings settings(link, scene);
        const Make make = kind.read(settings);
        settings.refuse_others();
        return make();
    }
    throw Error("unknown operation '" + link.operation + "'", "A newer version of these tools may read it.");
}

Link displacement(int window, const std::vector<double>& centroid) {
    return {"spp", {{"window", window}, {"centroid", centroid}}};
}

Link transform(const pca::Transform& t) {
    return {"transform",
            {{"matrix", t.matrix}, {"offset", t.offset}, {"zero_is_invalid", t.zero_is_invalid}}};
}

Link unmixing(const unmix::Endmembers& endmembers, unmix::Method method, bool rmse) {
    return {"unmix",
            {{"endmembers", endmembers.spectra},
             {"count", endmembers.spectra.size()},
             {"method", unmix::name_of(method)},
             {"rmse", rmse}},
            rmse ? size_t{1} : size_t{0}};
}

Link detection(const detect::Detector& d) {
    return {"detect",
            {{"method", detect::name_of(d.method)},
             {"bands", d.bands},
             {"used", d.used},
             {"centre", d.centre},
             {"rows", d.rows},
             {"log_rows", d.log_rows},
             {"constants", d.constants},
             {"factor", d.factor},
             {"deviation", d.deviation},
             {"targets", d.targets}}};
}

Link estimates(int inputs, const std::vector<regression::Applied>& models) {
    Link link{"regression", {{"inputs", inputs}, {"models", models.size()}}};
    const auto bands = static_cast<size_t>(inputs);
    const auto& values = models.front().inputs;
    link.settings["scale"] = values.scale.empty() ? std::vector<double>(bands, 1.0) : values.scale;
    link.settings["offset"] = values.offset.empty() ? std::vector<double>(bands, 0.0) : values.offset;
    for (size_t m = 0; m < models.size(); ++m) {
        const std::string number = " " + std::to_string(m + 1);
        link.settings["model" + number] = Json::parse(regression::to_json(*models[m].model));
        for (const auto& band : models[m].inputs.bands)
            link.settings["bands" + number].push_back({{"sources", band.sources}, {"weights", band.weights}});
    }
    return link;
}

Link svm_classes(const svm::Model& model) { return {"svm", {{"model", Json::parse(svm::to_json(model))}}}; }

Link mlr_classes(const sahic::MlrModel& model) {
    return {"mlr", {{"model", Json::parse(sahic::to_json(model))}}};
}

Link nearest_target(const std::vector<std::vector<float>>& spectra, double max_angle) {
    return {"nearest", {{"spectra", spectra}, {"count", spectra.size()}, {"max_angle", max_angle}}};
}

Link resampling(int inputs, const std::vector<math::ResampledBand>& bands) {
    Json all = Json::array();
    for (const auto& band : bands)
        all.push_back({{"sources", band.sources}, {"weights", band.weights}});
    return {"resample", {{"inputs", inputs}, {"bands", std::move(all)}}};
}

Link feature_bands(int inputs, const std::vector<features::Range>& ranges, features::Output output) {
    Json all = Json::array();
    for (const auto& range : ranges)
        all.push_back({{"bands", range.bands}, {"x", range.x}});
    const auto* const found = std::find_if(std::begin(feature_outputs), std::end(feature_outputs),
                                           [&](const auto& one) { return one.second == output; });
    return {"features", {{"inputs", inputs}, {"ranges", std::move(all)}, {"output", found->first}}};
}

Link identification(const std::string& rules, const identify::Plan& plan, size_t group) {
    auto scale = plan.bands.scale, offset = plan.bands.offset;
    scale.resize(plan.used.size(), 1);
    offset.resize(plan.used.size(), 0);
    Json names = Json::array(), spectra = Json::array(), groups = Json::array();
    for (const auto& rule : plan.rules)
        names.push_back(plan.file.rules[rule.rule].name);
    identify::Choice choice;
    for (const auto& rule : plan.rules)
        choice.rules.push_back(rule.rule);
    choice.groups = {plan.groups[group].group};
    for (const size_t g : plan.shown())
        if (g != group) choice.groups.push_back(plan.groups[g].group);
    for (const size_t g : choice.groups)
        groups.push_back(plan.file.groups[g].name);
    NameIndex references;
    for (size_t k = 0; k < plan.references.size(); ++k)
        references.add(plan.references[k].name, k);
    for (const auto& name : identify::spectra_of(plan.file, choice)) {
        auto values = plan.references[references.find(name).value()].spectrum;
        for (double& v : values)
            if (!std::isfinite(v)) v = no_reference;
        spectra.push_back({{"name", name}, {"values", values}});
    }
    const auto* const best = std::find_if(std::begin(best_names), std::end(best_names),
                                          [&](const auto& one) { return one.second == plan.best; });
    return {"identify",
            {{"file", Json::array({rules})},
             {"best", best->first},
             {"groups", groups},
             {"rules", names},
             {"count", names.size()},
             {"wavelengths", plan.bands.wavelengths},
             {"scale", scale},
             {"offset", offset},
             {"unit", plan.bands.unit},
             {"spectra", spectra}}};
}

Link index_bands(int inputs, const std::vector<std::string>& expressions, const indices::Bands& bands) {
    const auto count = static_cast<size_t>(inputs);
    auto nm = bands.wavelengths, scale = bands.scale, offset = bands.offset;
    nm.resize(count, -1);
    scale.resize(count, 1);
    offset.resize(count, 0);
    for (double& v : nm)
        if (!(v > 0)) v = -1;
    return {"index",
            {{"inputs", inputs},
             {"expressions", expressions},
             {"wavelengths", nm},
             {"scale", scale},
             {"offset", offset}}};
}

Link striped_columns(int inputs, const destripe::Columns& columns) {
    return {"columns",
            {{"inputs", inputs},
             {"samples", columns.samples},
             {"factor", columns.factor},
             {"offset", columns.offset}}};
}

Link transformed_spectra(int inputs, const smooth::Transform& transform) {
    Link link{"spectra", {{"inputs", inputs}, {"method", smooth::name_of(transform.method)}}, 0};
    for (const auto& one : smooth::settings_of(transform))
        link.settings[one.name] = one.kind == smooth::Setting::Kind::word     ? Json(one.word)
                                  : one.kind == smooth::Setting::Kind::number ? Json(one.numbers.front())
                                                                              : Json(one.numbers);
    return link;
}

} // namespace hsi::links
