// SPDX-License-Identifier: MIT
// Classifies a scene with LIBSVM in the simplest way: calls svm_predict for one pixel after another.
//
//   svm_predict_peer features.bsq PIXELS FEATURES model.svm labels.bin [STEP]
//
// features.bsq: Float32, band-sequential, scaled for the model. Classifies every STEP-th pixel and writes the
// labels as bytes. Prints the seconds (without reading the files) and the number of pixels.
#include <svm.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

int main(int argc, char** argv) {
    if (argc < 6) return 2;
    const auto pixels = static_cast<size_t>(std::atoll(argv[2])),
               features = static_cast<size_t>(std::atoll(argv[3]));
    const size_t step = argc > 6 ? static_cast<size_t>(std::atoll(argv[6])) : 1;
    std::vector<float> values(pixels * features);
    std::ifstream in(argv[1], std::ios::binary);
    if (!in.read(reinterpret_cast<char*>(values.data()),
                 static_cast<std::streamsize>(values.size() * sizeof(float))))
        return 1;
    ::svm_model* model = ::svm_load_model(argv[4]);
    if (!model) return 1;
    std::vector<char> labels;
    std::vector<::svm_node> x(features + 1);
    const auto begin = std::chrono::steady_clock::now();
    for (size_t i = 0; i < pixels; i += step) {
        for (size_t f = 0; f < features; ++f)
            x[f] = {static_cast<int>(f + 1), static_cast<double>(values[f * pixels + i])};
        x[features].index = -1;
        labels.push_back(static_cast<char>(::svm_predict(model, x.data())));
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::ofstream(argv[5], std::ios::binary)
        .write(labels.data(), static_cast<std::streamsize>(labels.size()));
    std::printf("%.6f %zu\n", seconds, labels.size());
    ::svm_free_and_destroy_model(&model);
}
