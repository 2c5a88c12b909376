// SPDX-License-Identifier: MIT
#include "gdal_hsi_normalise/models.h"

#include "core/error.h"
#include "raster/text_input.h"
#include "tool/model_values.h"
#include "tool/scene.h"

#include <cstdint>

namespace hsi::normalise_tool {
namespace {

// This is enough for a campaign of 500 flight lines and 400 bands.
constexpr uint64_t most_model_bytes = uint64_t{4} << 30;

} // namespace

normalise::Model read_model(const std::string& path) {
    return normalise::from_json(raster::read_input(path, most_model_bytes), path);
}

normalise::Model read_applied(tool::Run& run, const std::vector<std::string>& files,
                              std::shared_ptr<raster::RasterSource>& scene) {
    normalise::Model model;
    for (const auto& path : files) {
        run.files()->reads("-apply", path, {});
        const auto text = raster::read_input(path, most_model_bytes);
        if (normalise::is_of_hytools(text)) {
            normalise::add_hytools(text, path, scene->bands(), scene->facts().bands.in_file, model);
            continue;
        }
        model = normalise::from_json(text, path);
        if (files.size() > 1)
            throw Error("'" + path + "' (-apply) is not a HyTools file",
                        "Give two files only for HyTools' coefficients of topography and BRDF; use -merge to "
                        "join models.");
        const auto matched = tool::match_source(run, scene, path, model, false);
        scene = matched.source;
        model.order_bands(matched.matched);
    }
    if (!model.hytools || model.method.topography != normalise::Topography::none) return model;
    for (const auto& limit : model.hytools->brdf)
        if (limit.of == normalise::Limit::slope || limit.of == normalise::Limit::cos_i)
            throw Error("'" + files[0] +
                            "' (-apply) chooses pixels by slope or cos i, which are known only with a "
                            "topographic correction",
                        "Also give HyTools' coefficients of topography (-apply FILE -apply FILE).");
    return model;
}

} // namespace hsi::normalise_tool
