// SPDX-License-Identifier: MIT
#include "fuzz/fuzz.h"
#include "regression/regression.h"

#include <memory>
#include <vector>

/// Reads a model. If it is accepted, evaluates it for a block of pixels.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    fuzz::check_model(
        data, size,
        [](const std::string& text) {
            const auto model =
                std::make_shared<const regression::Model>(regression::from_json(text, "model"));
            try {
                const std::vector<double> pixels(2 * model->bands.size(), 0.5);
                size_t estimates = 0;
                regression::Fitted(model).evaluate_rows(
                    pixels, [&](const regression::Fitted::Buffers&, size_t) { ++estimates; });
                fuzz::expect(estimates == 2, "each pixel has an estimate");
            } catch (const Error&) { // the matrix of a Gaussian process may not be positive definite
            }
            return *model;
        },
        [](const regression::Model& model) { return regression::to_json(model); });
    return 0;
}
