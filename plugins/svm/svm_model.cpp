// SPDX-License-Identifier: MIT
// The model file: reading, checks and writing.
#include "core/text_file.h"
#include "model/document.h"
#include "svm/svm.h"

#include <cmath>

namespace hsi::svm {
namespace {

using model::number_text;
using model::Reader;
using model::row;

constexpr const char* format_name = "gdal_hsi_svm";
constexpr int format_version = 1;

void read_features(const Reader& in, const Json& root, Model& m) {
    const Json& features = in.member(root, "features");
    in.member(features, "minimum");
    in.member(features, "maximum");
    static_cast<model::ModelBands&>(m) = in.bands(features);
}

void read_machine(const Reader& in, const Json& root, Model& m) {
    const Json& machine = in.member(root, "svm");
    if (in.text(machine, "type") != "c_svc" || in.text(machine, "kernel") != "rbf")
        in.fail("it is not a C-SVC with an RBF kernel");
    m.c = in.positive(machine, "C");
    m.gamma = in.positive(machine, "gamma");
    const size_t k = m.classes.size(), n = m.minimum.size(), pairs = k * (k - 1) / 2;
    const Json& counts = in.member(machine, "support_count");
    in.expect(counts, "support_count", k);
    int64_t total = 0;
    for (const auto& c : counts) {
        m.support_count.push_back(static_cast<int>(in.whole(c, "support_count", 0, 1 << 30)));
        total += m.support_count.back();
    }
    if (total == 0) in.fail("it has no support vectors");
    const Json& vectors = in.member(machine, "support_vectors");
    in.expect(vectors, "support_vectors", static_cast<size_t>(total));
    for (const auto& v : vectors)
        in.floats(v, "support_vectors", n, m.support_vectors);
    const Json& coefficients = in.list(machine, "coefficients");
    if (coefficients.size() != k - 1)
        in.fail("'coefficients' does not have one list for each class after the first");
    for (const auto& list : coefficients) {
        const auto values = in.numbers(list, "coefficients", static_cast<size_t>(total));
        m.coefficients.insert(m.coefficients.end(), values.begin(), values.end());
    }
    m.rho = in.numbers(in.member(machine, "rho"), "rho", pairs);
    if (machine.contains("probability_a") || machine.contains("probability_b")) {
        m.prob_a = in.numbers(in.member(machine, "probability_a"), "probability_a", pairs);
        m.prob_b = in.numbers(in.member(machine, "probability_b"), "probability_b", pairs);
    }
}

} // namespace

double Model::factor(int feature) const {
    const auto f = static_cast<size_t>(feature);
    const double width = maximum[f] - minimum[f];
    return width > 0 ? 1.0 / width : 0.0;
}

void rescale(Model& m, const model::Rescaling& by, const model::ValueScale& scene) {
    model::rescale(m, by, scene); // Features depend only on the range.
}

std::string to_json(const Model& m) {
    const auto n = static_cast<size_t>(m.features()), vectors = static_cast<size_t>(m.vector_count());
    std::string t = "{\n" + model::head_text(format_name, format_version, m.origin);
    t += "\"training\": " +
         model::dump(Json{{"scene", m.trained_on},
                          {"labels", m.labels},
                          {"folds", m.folds},
                          {"cv_accuracy", m.cv_accuracy},
                          {"seed", m.seed}}) +
         ",\n" + model::classes_text(m.classes, true) + ",\n\"features\": {\n" + model::bands_text(m) +
         "\n},\n";
    t += "\"svm\": {\n  \"type\": \"c_svc\",\n  \"kernel\": \"rbf\",\n  \"C\": " + number_text(m.c) +
         ",\n  \"gamma\": " + number_text(m.gamma) +
         ",\n  \"support_count\": " + Json(m.support_count).dump() + ",\n  \"rho\": " + row(m.rho) + ",\n";
    if (m.has_probabilities())
        t += "  \"probability_a\": " + row(m.prob_a) + ",\n  \"probability_b\": " + row(m.prob_b) + ",\n";
    t += "  \"coefficients\": [\n";
    for (size_t i = 0; i + 1 < m.classes.size(); ++i) {
        t += "    " + row(m.coefficients.data() + i * vectors, vectors);
        t += i + 2 < m.classes.size() ? ",\n" : "\n";
    }
    t += "  ],\n  \"support_vectors\": [\n";
    for (size_t v = 0; v < vectors; ++v) {
        t += "    " + row(m.support_vectors.data() + v * n, n);
        t += v + 1 < vectors ? ",\n" : "\n";
    }
    return model::with_checksum(t + "  ]\n}\n}\n");
}

Model from_json(const std::string& text, const std::string& name) {
    const Reader in(name, "SVM", "gdal_hsi_svm_train");
    const Json root = in.parse(text, format_name, format_version);
    Model m;
    read_features(in, root, m);
    m.classes = in.classes(root);
    read_machine(in, root, m);
    m.origin = in.origin(root);
    if (root.contains("training")) {
        const Json& training = root["training"];
        m.trained_on = in.text(training, "scene");
        m.labels = in.text(training, "labels");
        if (training.is_object()) {
            if (training.contains("folds"))
                m.folds = static_cast<int>(in.whole(training["folds"], "folds", 0, 1 << 30));
            if (training.contains("cv_accuracy"))
                m.cv_accuracy = in.number(training["cv_accuracy"], "cv_accuracy");
            if (training.contains("seed")) {
                if (!training["seed"].is_number_integer()) in.fail("'seed' is not a whole number");
                m.seed = training["seed"].get<uint64_t>();
            }
        }
    }
    in.check_sum(root);
    return m;
}

Model read_model(const std::string& path) {
    return from_json(read_text_file(path, largest_file::model), path);
}

std::string to_libsvm(const Model& m) {
    const auto n = static_cast<size_t>(m.features()), vectors = static_cast<size_t>(m.vector_count());
    std::string t = "svm_type c_svc\nkernel_type rbf\ngamma " + number_text(m.gamma) + "\nnr_class " +
                    std::to_string(m.classes.size()) + "\ntotal_sv " + std::to_string(vectors) + "\n";
    const auto line = [&](const char* key, const std::vector<double>& values) {
        t += key;
        for (const double v : values)
            t.append(" ").append(number_text(v));
        t += "\n";
    };
    line("rho", m.rho);
    t += "label";
    for (const auto& c : m.classes)
        t.append(" ").append(std::to_string(c.value));
    t += "\n";
    if (m.has_probabilities()) {
        line("probA", m.prob_a);
        line("probB", m.prob_b);
    }
    t += "nr_sv";
    for (const int c : m.support_count)
        t.append(" ").append(std::to_string(c));
    t += "\nSV\n";
    for (size_t v = 0; v < vectors; ++v) {
        for (size_t i = 0; i + 1 < m.classes.size(); ++i)
            t.append(number_text(m.coefficients[i * vectors + v])).append(" ");
        for (size_t f = 0; f < n; ++f)
            if (const float x = m.support_vectors[v * n + f]; x != 0.0f)
                t.append(std::to_string(f + 1))
                    .append(":")
                    .append(number_text(static_cast<double>(x)))
                    .append(" ");
        t += "\n";
    }
    return t;
}

} // namespace hsi::svm
