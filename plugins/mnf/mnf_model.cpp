// SPDX-License-Identifier: MIT
// Reads and writes the file of a model: readable JSON, with numbers that are read back exactly.
#include "core/json.h"
#include "core/text_file.h"
#include "mnf/mnf.h"
#include "model/loadings.h"

namespace hsi::mnf {
namespace {

constexpr const char* format_name = "gdal_hsi_mnf";
constexpr int format_version = 1;

using model::Reader;

} // namespace

std::string to_json(const Model& model) {
    OrderedJson doc =
        model::begin_document(format_name, format_version, model.origin, model.source, model.pixels);
    doc["pairs"] = model.pairs;
    doc["regularised"] = model.regularised;
    doc["eigenvalues"] = model.eigenvalues;
    model::add_bands(doc, model);
    doc["mean"] = model.mean;
    doc["loadings"] = model::rows_of(model.loadings, model.mean.size());
    doc["inverse_loadings"] = model::rows_of(model.inverse, model.mean.size());
    return model::with_checksum(model::lines_text(doc));
}

Model from_json(const std::string& text, const std::string& name) {
    const Reader in(name, "MNF", "gdal_hsi_mnf -model");
    const Json root = in.parse(text, format_name, format_version);
    Model m;
    in.member(root, "mean");
    in.member(root, "wavelengths_nm");
    static_cast<model::ModelBands&>(m) = in.bands(root, true);
    const size_t n = m.bands.size();
    if (n > model::most_bands) in.fail("it has too many bands");
    m.origin = in.origin(root);
    m.source = in.text(root, "source");
    m.pixels = in.whole(in.member(root, "pixels"), "pixels", 1, int64_t{1} << 53);
    m.pairs = in.whole(in.member(root, "pairs"), "pairs", 2, int64_t{1} << 53);
    const Json& regularised = in.member(root, "regularised");
    if (!regularised.is_boolean()) in.fail("'regularised' is not true or false");
    m.regularised = regularised.get<bool>();
    m.components = static_cast<int>(n);
    m.eigenvalues = model::read_eigenvalues(in, root, n);
    m.loadings = model::read_rows(in, root, "loadings", n, n);
    m.inverse = model::read_rows(in, root, "inverse_loadings", n, n);
    model::check_dual(in, "loadings", m.loadings, "inverse_loadings", m.inverse, n);
    in.check_sum(root);
    return m;
}

Model load_model(const std::string& path) {
    return from_json(read_text_file(path, largest_file::model), path);
}

} // namespace hsi::mnf
