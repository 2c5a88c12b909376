// SPDX-License-Identifier: MIT
#include "links/links.h"

#include "core/counted.h"
#include "core/cuda_module.h"
#include "core/error.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace hsi::links {
namespace {

using stream::CubeShape;
using stream::Link;

/// Settings as a file has them: nothing of what they say is trusted.
class Settings {
  public:
    Settings(const Link& link, const CubeShape& scene)
        : m_link(link), m_bands(static_cast<size_t>(scene.bands)) {}

    [[noreturn]] void fail(const std::string& what) const {
        throw Error("the link '" + m_link.operation + "' is damaged: " + what);
    }
    const Json& at(const char* key) const {
        const auto found = m_link.settings.find(key);
        if (found == m_link.settings.end()) fail(std::string("there is no '") + key + "'");
        return *found;
    }
    double number(const char* key) const { return number(at(key), key); }
    int64_t whole(const char* key, int64_t least, int64_t most) const {
        const double v = number(key);
        if (v != std::floor(v) || v < static_cast<double>(least) || v > static_cast<double>(most))
            fail(std::string("'") + key + "' is no number from " + std::to_string(least) + " to " +
                 std::to_string(most));
        return static_cast<int64_t>(v);
    }
    bool yes(const char* key) const {
        if (!at(key).is_boolean()) fail(std::string("'") + key + "' is neither true nor false");
        return at(key).get<bool>();
    }
    template <class T>
    std::vector<T> list(const Json& json, const char* key) const {
        if (!json.is_array()) fail(std::string("'") + key + "' is no list");
        std::vector<T> values;
        values.reserve(json.size());
        for (const Json& one : json)
            values.push_back(static_cast<T>(number(one, key)));
        return values;
    }
    /// Each of a list of at least one.
    template <class Visit>
    void each(const char* key, const Visit& visit) const {
        if (!at(key).is_array() || at(key).empty()) fail(std::string("'") + key + "' is no list, or empty");
        for (const Json& one : at(key))
            visit(one);
    }
    const Json& member(const Json& one, const char* of, const char* key) const {
        const auto found = one.is_object() ? one.find(key) : one.end();
        if (found == one.end()) fail(std::string("'") + of + "' has one without '" + key + "'");
        return *found;
    }
    /// Bands of the scene, from 0.
    std::vector<size_t> places(const Json& json, const char* key) const {
        std::vector<size_t> out;
        for (const double v : list<double>(json, key)) {
            if (v != std::floor(v) || v < 0 || v >= static_cast<double>(m_bands))
                fail(std::string("'") + key + "' names no band of the scene");
            out.push_back(static_cast<size_t>(v));
        }
        return out;
    }
    std::vector<double> numbers(const char* key) const { return list<double>(at(key), key); }
    /// One for each band of the scene.
    std::vector<double> band_numbers(const char* key) const {
        auto values = numbers(key);
        check_bands(values.size());
        return values;
    }
    template <class T>
    std::vector<std::vector<T>> spectra(const char* key) const {
        if (!at(key).is_array() || at(key).empty()) fail(std::string("'") + key + "' holds no spectrum");
        std::vector<std::vector<T>> all;
        for (const Json& one : at(key)) {
            all.push_back(list<T>(one, key));
            check_bands(all.back().size());
        }
        return all;
    }
    /// `count`: of the bands that the operation is for.
    void check_bands(size_t count) const {
        if (count != m_bands)
            throw Error("the link '" + m_link.operation + "' was made for " + counted(count, "band") +
                        ", and there " + worded(m_bands, "is ", "are ") + counted(m_bands, "band"));
    }

  private:
    double number(const Json& json, const char* key) const {
        const double v = json.is_number() ? json.get<double>() : NAN;
        if (!std::isfinite(v)) fail(std::string("'") + key + "' holds what is no number");
        return v;
    }

    const Link& m_link;
    const size_t m_bands;
};

using Made = stream::LinkWork;

/// LinkWork::on_devices by the backend of an algorithm, which make() turns into an operation. The backend
/// lives as long as that.
template <class Backend, class Make>
auto by_backend(const char* algorithm, Make make) {
    return [=](const std::vector<CudaDevice>& devices) -> std::shared_ptr<stream::Operation> {
        const std::shared_ptr<Backend> backend = make_cuda_backend<Backend>(algorithm, devices);
        std::shared_ptr<stream::Operation> made = make(*backend);
        auto* const operation = made.get();
        return {operation, [backend, made = std::move(made)](stream::Operation*) mutable { made.reset(); }};
    };
}

/// Whose values take far longer than a file of them.
Made dear(Made work) {
    work.dear = true;
    return work;
}

Made make_displacement(const Settings& s, const CubeShape&) {
    spp::Options options;
    options.window = static_cast<int>(s.whole("window", spp::min_window, spp::max_window));
    if (options.window % 2 == 0) s.fail("'window' is an even number");
    const auto centroid = s.band_numbers("centroid");
    Made work(spp::make_displacement(options, centroid));
    work.finding = spp::make_finding_displacement(options.window, centroid);
    work.repeating = spp::make_repeated_displacement(centroid);
    work.on_devices = by_backend<spp::Backend>(
        "spp", [=](spp::Backend& backend) { return backend.make_displacement(options, centroid); });
    return work;
}

Made make_transform(const Settings& s, const CubeShape& scene) {
    pca::Transform t;
    t.inputs = scene.bands;
    t.offset = s.numbers("offset");
    t.outputs = static_cast<int>(t.offset.size());
    t.matrix = s.numbers("matrix");
    t.zero_is_invalid = s.yes("zero_is_invalid");
    if (t.offset.empty()) s.fail("'offset' is empty");
    if (t.matrix.size() % t.offset.size() != 0) s.fail("'matrix' and 'offset' do not fit together");
    s.check_bands(t.matrix.size() / t.offset.size());
    Made work(pca::make_transform(t));
    work.on_devices = by_backend<pca::Backend>(
        "pca", [t = std::move(t)](pca::Backend& backend) { return backend.make_transform(t); });
    return work;
}

constexpr std::pair<const char*, unmix::Method> unmix_methods[] = {{"ucls", unmix::Method::ucls},
                                                                   {"nnls", unmix::Method::nnls},
                                                                   {"scls", unmix::Method::scls},
                                                                   {"fcls", unmix::Method::fcls}};

Made make_unmixing(const Settings& s, const CubeShape&) {
    unmix::Endmembers endmembers;
    endmembers.spectra = s.spectra<double>("endmembers");
    for (size_t k = 1; k <= endmembers.spectra.size(); ++k)
        endmembers.names.push_back(std::to_string(k));
    for (const auto& [name, method] : unmix_methods) {
        if (s.at("method") != name) continue;
        const unmix::Options options{method, s.yes("rmse")};
        Made work = dear(Made(unmix::make_unmixing(endmembers, options)));
        work.on_devices = by_backend<unmix::Backend>(
            "unmix", [=](unmix::Backend& backend) { return backend.make_unmixing(endmembers, options); });
        return work;
    }
    s.fail("'method' is none of unmixing");
}

constexpr detect::Method detect_methods[] = {detect::Method::sam, detect::Method::sid, detect::Method::mf,
                                             detect::Method::cem, detect::Method::ace, detect::Method::rx};

Made make_detection(const Settings& s, const CubeShape& scene) {
    detect::Detector d;
    const auto method = std::find_if(std::begin(detect_methods), std::end(detect_methods),
                                     [&](detect::Method m) { return s.at("method") == detect::name_of(m); });
    if (method == std::end(detect_methods)) s.fail("'method' is none of detection");
    d.method = *method;
    d.bands = static_cast<int>(s.whole("bands", 1, 1000000));
    s.check_bands(static_cast<size_t>(d.bands));
    d.used = s.list<int>(s.at("used"), "used");
    for (size_t k = 0; k < d.used.size(); ++k)
        if (d.used[k] < (k > 0 ? d.used[k - 1] + 1 : 0) || d.used[k] >= scene.bands)
            s.fail("'used' does not list bands, rising");
    d.centre = s.numbers("centre");
    d.rows = s.numbers("rows");
    d.log_rows = s.numbers("log_rows");
    d.constants = s.numbers("constants");
    d.factor = s.numbers("factor");
    d.deviation = s.numbers("deviation");
    d.targets = static_cast<int>(s.whole("targets", 0, 65535));
    detect::check_detector(d);
    Made work(detect::make_detection(d, {}));
    work.on_devices = by_backend<detect::Backend>(
        "detect", [=](detect::Backend& backend) { return backend.make_detection(d, {}); });
    return work;
}

Made make_svm(const Settings& s, const CubeShape&) {
    const auto model =
        std::make_shared<const svm::Model>(svm::from_json(s.at("model").dump(), "the link 'svm'"));
    s.check_bands(static_cast<size_t>(model->features()));
    Made work = dear(Made(svm::make_classification(model, {})));
    work.on_devices = by_backend<svm::Backend>(
        "svm", [=](svm::Backend& backend) { return backend.make_classification(model, {}); });
    return work;
}

Made make_mlr(const Settings& s, const CubeShape& scene) {
    const auto model =
        std::make_shared<const sahic::MlrModel>(sahic::from_json(s.at("model").dump(), "the link 'mlr'"));
    s.check_bands(static_cast<size_t>(model->features()));
    sahic::SpectralOptions options;
    options.map = true;
    Made work = dear(Made(sahic::make_spectral_pass(model, options, scene.samples, scene.lines)));
    work.on_devices = by_backend<sahic::Backend>("sahic", [=](sahic::Backend& backend) {
        return backend.make_spectral_pass(model, options, scene.samples, scene.lines);
    });
    return work;
}

Made make_nearest(const Settings& s, const CubeShape&) {
    atdca::ClassifyOptions options;
    options.max_angle = s.number("max_angle");
    if (!(options.max_angle >= 0 && options.max_angle <= 180))
        s.fail("'max_angle' is no angle between spectra");
    const auto spectra = s.spectra<float>("spectra");
    Made work(atdca::make_classification(spectra, options));
    work.on_devices = by_backend<atdca::Backend>(
        "atdca", [=](atdca::Backend& backend) { return backend.make_classification(spectra, options); });
    return work;
}

Made make_resampling(const Settings& s, const CubeShape& scene) {
    std::vector<math::ResampledBand> bands;
    s.check_bands(static_cast<size_t>(s.whole("inputs", 1, 1000000)));
    s.each("bands", [&](const Json& one) {
        math::ResampledBand band;
        band.target = bands.size();
        band.sources = s.places(s.member(one, "bands", "sources"), "sources");
        band.weights = s.list<double>(s.member(one, "bands", "weights"), "weights");
        if (band.sources.empty() || band.sources.size() != band.weights.size())
            s.fail("'sources' and 'weights' do not fit together");
        bands.push_back(std::move(band));
    });
    Made work(resample::make_resampling(scene.bands, bands));
    work.on_devices = by_backend<resample::Backend>(
        "resample", [inputs = scene.bands, bands = std::move(bands)](resample::Backend& backend) {
            return backend.make_resampling(inputs, bands);
        });
    return work;
}

constexpr std::pair<const char*, features::Output> feature_outputs[] = {
    {"removed", features::Output::removed}, {"features", features::Output::features}};

Made make_features(const Settings& s, const CubeShape& scene) {
    std::vector<features::Range> ranges;
    s.check_bands(static_cast<size_t>(s.whole("inputs", 1, 1000000)));
    s.each("ranges", [&](const Json& one) {
        features::Range range;
        range.bands = s.places(s.member(one, "ranges", "bands"), "bands");
        range.x = s.list<double>(s.member(one, "ranges", "x"), "x");
        if (range.bands.size() < 3 || range.bands.size() != range.x.size())
            s.fail("'bands' and 'x' do not fit together");
        for (size_t k = 1; k < range.x.size(); ++k)
            if (range.x[k] <= range.x[k - 1]) s.fail("'x' does not rise");
        ranges.push_back(std::move(range));
    });
    for (const auto& [name, output] : feature_outputs) {
        if (s.at("output") != name) continue;
        Made work = dear(Made(features::make_features(scene.bands, ranges, output)));
        work.on_devices = by_backend<features::Backend>(
            "features", [=, inputs = scene.bands, what = output](features::Backend& backend) {
                return backend.make_features(inputs, ranges, what);
            });
        return work;
    }
    s.fail("'output' is none of features");
}

struct Kind {
    const char* name;
    Made (*make)(const Settings& settings, const CubeShape& scene);
};

constexpr Kind kinds[] = {{"spp", make_displacement}, {"transform", make_transform},
                          {"unmix", make_unmixing},   {"detect", make_detection},
                          {"svm", make_svm},          {"mlr", make_mlr},
                          {"nearest", make_nearest},  {"resample", make_resampling},
                          {"features", make_features}};

} // namespace

stream::LinkWork make_link(const Link& link, const CubeShape& scene) {
    for (const Kind& kind : kinds)
        if (link.operation == kind.name) return kind.make(Settings(link, scene), scene);
    throw Error("there is no operation '" + link.operation + "'",
                "A newer version of these tools may know it.");
}

Link displacement(int window, const std::vector<double>& centroid) {
    return {"spp", {{"window", window}, {"centroid", centroid}}};
}

Link transform(const pca::Transform& t) {
    return {"transform",
            {{"matrix", t.matrix}, {"offset", t.offset}, {"zero_is_invalid", t.zero_is_invalid}}};
}

Link unmixing(const unmix::Endmembers& endmembers, unmix::Method method, bool rmse) {
    const auto* const found = std::find_if(std::begin(unmix_methods), std::end(unmix_methods),
                                           [&](const auto& one) { return one.second == method; });
    return {"unmix",
            {{"endmembers", endmembers.spectra}, {"method", found->first}, {"rmse", rmse}},
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

Link svm_classes(const svm::Model& model) { return {"svm", {{"model", Json::parse(svm::to_json(model))}}}; }

Link mlr_classes(const sahic::MlrModel& model) {
    return {"mlr", {{"model", Json::parse(sahic::to_json(model))}}};
}

Link nearest_target(const std::vector<std::vector<float>>& spectra, double max_angle) {
    return {"nearest", {{"spectra", spectra}, {"max_angle", max_angle}}};
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

} // namespace hsi::links
