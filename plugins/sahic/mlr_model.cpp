// SPDX-License-Identifier: MIT
// The model file of the multinomial logistic regression.
#include "core/error.h"
#include "core/text_file.h"
#include "model/document.h"
#include "sahic/sahic.h"

#include <algorithm>
#include <cmath>

namespace hsi::sahic {
namespace {

using model::number_text;
using model::Reader;
using model::row;

constexpr const char* format_name = "gdal_hsi_mlr";
constexpr int format_version = 1;

void read_regressors(const Reader& in, const Json& root, MlrModel& m) {
    const Json& mlr = in.member(root, "mlr");
    if (in.text(mlr, "kernel") != "rbf") in.fail("its kernel is not an RBF");
    m.delta = in.positive(mlr, "delta");
    m.spread = in.positive(mlr, "spread");
    if (!std::isfinite(m.gamma())) in.fail("'delta' and 'spread' are too small");
    const Json& anchors = in.list(mlr, "anchors");
    const size_t n = m.bands.size(), count = anchors.size();
    if (count > (size_t{1} << 30)) in.fail("it has too many anchors");
    for (const auto& a : anchors)
        in.floats(a, "anchors", n, m.anchors);
    const Json& weights = in.member(mlr, "weights");
    in.expect(weights, "weights", m.classes.size() - 1);
    for (const auto& list : weights) {
        const auto values = in.numbers(list, "weights", count + 1);
        m.weights.insert(m.weights.end(), values.begin(), values.end());
    }
}

} // namespace

int64_t MlrModel::active_weights() const {
    return std::count_if(weights.begin(), weights.end(), [](double w) { return w != 0; });
}

void rescale(MlrModel& m, const std::string& file, const model::Rescaling& by,
             const model::ValueScale& scene) {
    if (by.none()) return;
    const double factor = by.factor.front();
    for (const double f : by.factor)
        if (std::fabs(f - factor) > 1e-6 * factor)
            throw Error(
                "'" + file + "' was made for values with " +
                    model::scale_text({m.value_scale, m.value_offset, m.value_unit}) +
                    ", but the scene has values with " + model::scale_text(scene) +
                    ", and the factor between them differs by band",
                "Convert the scene to the model's scale, or use -any-scale to use the values unchanged.");
    model::rescale(m, by, scene);
    const size_t n = m.bands.size();
    for (size_t i = 0; i < m.anchors.size(); ++i)
        m.anchors[i] = static_cast<float>((static_cast<double>(m.anchors[i]) - by.shift[i % n]) / factor);
    m.scale /= factor;
}

std::string to_json(const MlrModel& m) {
    const size_t n = m.bands.size(), anchors = static_cast<size_t>(m.anchor_count());
    std::string t = "{\n" + model::head_text(format_name, format_version, m.origin);
    t += "\"training\": " +
         model::dump(Json{{"scene", m.trained_on},
                          {"labels", m.labels},
                          {"pixels", m.training_pixels},
                          {"solver", m.solver},
                          {"iterations", m.iterations},
                          {"lambda_c", m.lambda_c},
                          {"beta", m.beta},
                          {"objective", m.objective},
                          {"gap", m.gap}}) +
         ",\n" + model::classes_text(m.classes, false) + ",\n\"features\": {\n" + model::bands_text(m);
    t += ",\n  \"scale\": " + number_text(m.scale) +
         "\n},\n\"mlr\": {\n  \"kernel\": \"rbf\",\n  \"delta\": " + number_text(m.delta) +
         ",\n  \"spread\": " + number_text(m.spread) + ",\n  \"weights\": [\n";
    for (size_t k = 0; k + 1 < m.classes.size(); ++k) {
        t += "    " + row(m.weights.data() + k * (anchors + 1), anchors + 1);
        t += k + 2 < m.classes.size() ? ",\n" : "\n";
    }
    t += "  ],\n  \"anchors\": [\n";
    for (size_t a = 0; a < anchors; ++a) {
        t += "    " + row(m.anchors.data() + a * n, n);
        t += a + 1 < anchors ? ",\n" : "\n";
    }
    return model::with_checksum(t + "  ]\n}\n}\n");
}

MlrModel from_json(const std::string& text, const std::string& name) {
    const Reader in(name, "MLR", "gdal_hsi_sahic -model");
    const Json root = in.parse(text, format_name, format_version);
    MlrModel m;
    const Json& features = in.member(root, "features");
    static_cast<model::ModelBands&>(m) = in.bands(features);
    m.scale = in.positive(features, "scale");
    m.classes = in.classes(root);
    read_regressors(in, root, m);
    m.origin = in.origin(root);
    if (root.contains("training") && root["training"].is_object()) {
        const Json& training = root["training"];
        m.trained_on = in.text(training, "scene");
        m.labels = in.text(training, "labels");
        m.solver = in.text(training, "solver");
        const auto number = [&](const char* key) {
            return training.contains(key) ? in.number(training[key], key) : 0.0;
        };
        if (training.contains("pixels"))
            m.training_pixels = in.whole(training["pixels"], "pixels", 0, int64_t{1} << 50);
        if (training.contains("iterations"))
            m.iterations = static_cast<int>(in.whole(training["iterations"], "iterations", 0, 1 << 30));
        m.lambda_c = number("lambda_c");
        m.beta = number("beta");
        m.objective = number("objective");
        m.gap = number("gap");
    }
    in.check_sum(root);
    return m;
}

MlrModel read_model(const std::string& path) {
    return from_json(read_text_file(path, largest_file::model), path);
}

} // namespace hsi::sahic
