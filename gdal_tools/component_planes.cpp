// SPDX-License-Identifier: MIT
#include "component_planes.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace hsi::tools {

ComponentPlanes project_scene(tool::Scene& scene, PcaComputing& computing, const ComponentRequest& request) {
    const auto statistics = scan_scene(scene, computing, 0.5 * request.share);
    const auto like = scene.raster();
    const int bands = like->shape().bands;
    const int components = component_count(request.components, request.given, bands);
    ComponentPlanes made;
    made.model = fit_scene(scene, statistics, {components, false, false});
    const stream::CubeShape shape{like->shape().samples, like->shape().lines, components};
    const bool held = shape.float_bytes() <= request.most;
    made.planes = held ? std::make_unique<stream::PlaneStore>(shape)
                       : std::make_unique<stream::PlaneStore>(shape, request.folder);
    scene.run().report()["component_planes"] = held ? "memory" : "temporary file";
    std::vector<int> all(static_cast<size_t>(bands)), every(static_cast<size_t>(components));
    std::iota(all.begin(), all.end(), 0);
    std::iota(every.begin(), every.end(), 0);
    auto pass = computing.pass("projection", 0.5 * request.share);
    pass.memory -= std::min(pass.memory, made.held_bytes());
    const auto to = made.planes->sink(every);
    scene.run().add_pass(
        transform_scene(scene, computing, pca::projection(made.model, components, all, bands), *to, pass));
    scene.release(); // a copy of the scene in memory is needed no more
    return made;
}

std::vector<std::string> component_names(int components) {
    std::vector<std::string> names;
    for (int k = 1; k <= components; ++k)
        names.push_back("PC" + std::to_string(k));
    return names;
}

} // namespace hsi::tools
