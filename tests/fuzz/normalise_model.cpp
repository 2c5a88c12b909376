// SPDX-License-Identifier: MIT
#include "fuzz/fuzz.h"
#include "normalise/normalise.h"

#include <string>
#include <vector>

namespace {

using namespace hsi;

/// Corrects some pixels on a slope, as the tool does.
void correct(const normalise::Model& model, const normalise::Terrain& terrain) {
    constexpr int64_t samples = 6;
    const auto bands = model.bands.size();
    normalise::SceneTask task;
    task.shape = {samples, 1, static_cast<int>(bands)};
    task.near_infrared = task.shape.bands - 1;
    task.below_720.assign(bands, 1);
    constexpr double angles[] = {40, 150, 12, 300, 25, 200};
    for (size_t k = 0; k < task.angles.size(); ++k)
        task.angles[k].value = angles[k];
    std::vector<float> in(bands * samples), out(in.size());
    for (size_t i = 0; i < in.size(); ++i) // NDVI from -0.2 to 0.8
        in[i] = 0.1F + (i >= in.size() - samples ? 0.15F * static_cast<float>(i % samples) : 0);
    const auto operation =
        normalise::make_correction(task, model.method, terrain, model.bins, model.solar_zenith,
                                   model.hytools ? &*model.hytools : nullptr);
    const auto worker = operation->start(0, {samples, 1, samples, 1});
    using View = CubeView<float>;
    worker->process({}, View::packed(in.data(), task.shape.bands, 1, samples),
                    {View::packed(out.data(), task.shape.bands, 1, samples)});
    operation->stop(*worker);
    fuzz::expect(operation->counts().valid == samples, "each pixel is counted");
}

/// Uses a model as the tool does: corrects its scenes, adds scenes and removes them.
void use(normalise::Model model) {
    correct(model, {});
    normalise::Model other = model;
    for (auto& scene : other.scenes) {
        correct(model, scene.terrain);
        static_cast<void>(scene.level());
        scene.name += " 2";
    }
    model.add(other, "other");
    model.fit();
    correct(model, {});
    model.remove(other, "other");
}

} // namespace

/// Reads a model or HyTools' coefficients. If they are accepted, corrects pixels with them.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    if (normalise::is_of_hytools(text)) {
        try {
            normalise::Model model;
            model.bands = {1, 2};
            normalise::add_hytools(text, "coefficients", model.bands, 3, model);
            correct(model, model.hytools->terrain);
        } catch (const Error&) {
        }
        return 0;
    }
    fuzz::check_model(
        data, size,
        [](const std::string& in) {
            normalise::Model model = normalise::from_json(in, "model");
            try {
                use(model);
            } catch (const Error&) { // its scenes may be too large together, or have no usable bin
            }
            return model;
        },
        [](const normalise::Model& model) { return normalise::to_json(model); });
    return 0;
}
