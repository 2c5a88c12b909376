// SPDX-License-Identifier: MIT
// The model file: JSON that people can read, with numbers that are read back exactly.
#include "core/error.h"
#include "core/json.h"
#include "core/text_file.h"
#include "model/loadings.h"
#include "pca/pca.h"

#include <cstddef>

namespace hsi::pca {
namespace {

constexpr const char* format_name = "gdal_hsi_pca";
constexpr const char* former_name = "gdal_hsi_pca model"; ///< the name in files of version 0.1
constexpr int format_version = 1;

using model::Reader;

} // namespace

std::string to_json(const Model& model) {
    OrderedJson doc =
        model::begin_document(format_name, format_version, model.origin, model.source, model.pixels);
    doc["components"] = model.components;
    doc["whiten"] = model.whiten;
    doc["eigenvalues"] = model.eigenvalues;
    std::vector<double> explained;
    for (int k = 0; k < model.components; ++k)
        explained.push_back(model.explained(k));
    doc["explained_variance_ratio"] = explained;
    model::add_bands(doc, model);
    doc["mean"] = model.mean;
    doc["scale"] = model.scale;
    doc["loadings"] = model::rows_of(model.loadings, model.mean.size());
    return model::with_checksum(model::lines_text(doc));
}

Model from_json(const std::string& text, const std::string& name) {
    const Reader in(name, "PCA", "gdal_hsi_pca -model");
    const Json root = in.parse(text, format_name, format_version, former_name);
    Model m;
    in.member(root, "mean");
    in.member(root, "wavelengths_nm");
    static_cast<model::ModelBands&>(m) = in.bands(root, true);
    const size_t n = m.bands.size();
    if (n > model::most_bands) in.fail("it has too many bands");
    m.origin = in.origin(root);
    m.source = in.text(root, "source");
    m.pixels = in.whole(in.member(root, "pixels"), "pixels", 1, int64_t{1} << 53);
    m.components =
        static_cast<int>(in.whole(in.member(root, "components"), "components", 1, static_cast<int64_t>(n)));
    const Json& whiten = in.member(root, "whiten");
    if (!whiten.is_boolean()) in.fail("'whiten' is not true or false");
    m.whiten = whiten.get<bool>();
    if (const Json& scale = in.list(root, "scale"); !scale.empty()) {
        m.scale = in.numbers(scale, "scale", n);
        for (size_t b = 0; b < n; ++b) {
            if (!(m.scale[b] > 0)) in.fail(model::entry("scale", b) + " is not above 0");
            if (m.scale[b] * m.scale[b] > model::greatest_variance)
                in.fail(model::entry("scale", b) + " is out of range");
        }
    }
    m.eigenvalues = model::read_eigenvalues(in, root, n);
    m.loadings = model::read_rows(in, root, "loadings", static_cast<size_t>(m.components), n);
    model::check_dual(in, "loadings", m.loadings, "loadings", m.loadings, n);
    // The values were computed from the eigenvalues, so a difference shows that the file is damaged.
    if (root.contains("explained_variance_ratio"))
        in.expect(root["explained_variance_ratio"], "explained_variance_ratio",
                  static_cast<size_t>(m.components));
    in.check_sum(root);
    return m;
}

void rescale(Model& m, const model::Rescaling& by, const model::ValueScale& scene) {
    if (by.none()) return;
    model::rescale(m, by, scene);
    if (m.scale.empty()) m.scale.assign(m.mean.size(), 1.0);
    for (size_t b = 0; b < m.scale.size(); ++b)
        m.scale[b] /= by.factor[b];
}

Model load_model(const std::string& path) {
    return from_json(read_text_file(path, largest_file::model), path);
}

} // namespace hsi::pca
