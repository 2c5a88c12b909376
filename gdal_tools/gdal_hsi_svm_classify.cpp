// SPDX-License-Identifier: MIT
// gdal_hsi_svm_classify: a scene and a model to a class map; one pass, tile by tile.
#include "cli/classification.h"
#include "cli/devices.h"
#include "core/byte_size.h"
#include "core/error.h"
#include "raster/labels.h"
#include "raster/output_set.h"
#include "raster/packed_text.h"
#include "svm/svm.h"

#include <algorithm>
#include <cmath>

namespace {

using namespace hsi;

struct Settings {
    std::string model_file, probabilities, confidence;
    bool any_wavelengths = false;
};

/// Where to compute: the CPU, or devices through the CUDA module.
class Backend {
  public:
    Backend(cli::Run& run, uint64_t cube_bytes)
        : m_devices(run, choose_devices(run.options().device, "svm", cube_bytes), "svm", svm::cuda_symbol) {
        cli::tell_devices(run, m_devices.list(), svm::simd_target());
    }
    std::unique_ptr<svm::Classification> classification(std::shared_ptr<const svm::Model> model,
                                                        const svm::ClassifyOptions& options) const {
        auto* const cuda = m_devices.cuda();
        return cuda ? cuda->make_classification(m_devices.list(), std::move(model), options)
                    : svm::make_classification(std::move(model), options);
    }
    /// Device bytes for all lanes; 0 on the CPU.
    uint64_t device_memory(const cli::CommonOptions& options) const { return m_devices.memory(options); }
    double kernel_seconds() const { return m_devices.cuda() ? m_devices.cuda()->kernel_seconds() : 0; }

  private:
    cli::Devices<svm::CudaBackend> m_devices;
};

/// The map as a VRT, the model in it: a class is computed when a pixel is read.
class VirtualMap {
  public:
    VirtualMap(const cli::Run& run, const Settings& s, const raster::RasterSource& source,
               const svm::Model& model)
        : m_options(run.options().destination) {
        m_spec.shape = {source.shape().samples, source.shape().lines, 1};
        raster::describe_class_map(cli::legend_of(model.classes), m_options, m_spec);
        m_spec.bands = {{"class", {}}};
        m_spec.metadata["HSI_SVM_MODEL"] = s.model_file;
        raster::RasterSink::check_virtual(m_options, m_spec, source);
    }
    void write(const raster::RasterSource& source, const svm::Model& model) const {
        raster::RasterSink::write_virtual(
            m_options, m_spec, source,
            {{"hsi_svm", {{"model_data", raster::pack_text(svm::to_json(model))}}, {}, {}}});
    }

  private:
    raster::OutputOptions m_options;
    raster::OutputSpec m_spec;
};

void run_classify(cli::Run& run, const Settings& s) {
    const auto model = std::make_shared<const svm::Model>(svm::read_model(s.model_file));
    svm::ClassifyOptions options;
    options.probabilities = !s.probabilities.empty();
    options.confidence = !s.confidence.empty();
    if ((options.probabilities || options.confidence) && !model->has_probabilities())
        throw Error("'" + s.model_file +
                        "' has no probability estimates, which -probabilities and -confidence need",
                    "Train it with -probability.");
    const auto source = cli::matching_source(run, s.model_file, *model, s.any_wavelengths);
    if (raster::RasterSink::is_virtual(run.options().destination)) {
        if (options.probabilities || options.confidence)
            throw UsageError(
                "-probabilities and -confidence do not go with a VRT: nothing is computed before it is read",
                "Write them in a run of their own, with a map that holds pixels.");
        const VirtualMap map(run, s, *source, *model);
        if (run.options().dry_run)
            run.print("A VRT: nothing is computed before it is read");
        else
            map.write(*source, *model);
        return;
    }
    auto outputs = cli::plan_classification(run, *source, cli::legend_of(model->classes), s.probabilities,
                                            s.confidence, {{"HSI_SVM_MODEL", s.model_file}});
    const Backend backend(run, source->shape().float_bytes());
    const auto operation = backend.classification(model, options);
    run.report()["model"] = {{"path", s.model_file},
                             {"classes", model->class_count()},
                             {"features", model->features()},
                             {"support_vectors", model->vector_count()},
                             {"C", model->c},
                             {"gamma", model->gamma}};
    if (run.options().dry_run) {
        auto pass = run.pass("classification", 1.0);
        pass.device_memory = backend.device_memory(run.options());
        const auto plan = stream::plan_pass(*source, *operation, pass);
        const uint64_t bytes = stream::plan_bytes(*source, *operation, plan);
        run.print("Pass classification: " + plan.describe() + ", " + format_byte_size(bytes) + " of buffers");
        run.report()["plan"]["classification"] = {{"tiles", plan.size()},
                                                  {"tile_samples", plan.max_core_samples()},
                                                  {"tile_lines", plan.max_core_lines()},
                                                  {"lanes", plan.lanes()},
                                                  {"buffer_bytes", bytes}};
        return;
    }
    outputs.create(source.get());
    run.reserve_cache(outputs.cache_bytes());
    auto pass = run.pass("classification", 1.0);
    pass.device_memory = backend.device_memory(run.options());
    run.add_pass(stream::run_pass(*source, *operation, outputs.sinks(), pass));
    outputs.commit();

    nlohmann::json counts = nlohmann::json::array();
    for (size_t c = 0; c < model->classes.size(); ++c)
        counts.push_back({{"value", model->classes[c].value},
                          {"name", model->classes[c].name},
                          {"pixels", operation->pixels_by_class()[c]}});
    auto& report = run.report();
    report["classes"] = counts;
    report["classified"] = operation->classified();
    report["invalid_pixels"] = operation->invalid();
    report["repeated_exactly"] = operation->repeated();
    if (const double seconds = backend.kernel_seconds(); seconds > 0) report["kernel_seconds"] = seconds;
    if (operation->invalid() > 0)
        run.note(std::to_string(operation->invalid()) + " of " + std::to_string(source->shape().pixels()) +
                 " pixels are invalid (nodata, masked, NaN or all zero) and have no class");
}

} // namespace

int main(int argc, char** argv) {
    cli::Tool tool(
        "gdal_hsi_svm_classify",
        "Classifies a scene with a model of gdal_hsi_svm_train: a class map with names and colours, and "
        "class "
        "probabilities when asked. Labels are those that LIBSVM's svm_predict gives, pixel by pixel.",
        "Examples:\n"
        "  gdal_hsi_svm_classify profile.tif model.json map.tif\n"
        "  gdal_hsi_svm_classify profile.tif model.json map.vrt\n"
        "  gdal_hsi_svm_classify -probabilities p.tif -confidence c.tif -device cuda scene.img model.json "
        "map.tif\n");
    Settings s;
    auto& app = tool.app();
    tool.add_source();
    app.add_option("model", s.model_file, "model file of gdal_hsi_svm_train")->required();
    tool.add_destination();
    app.get_option("dst")->description("the class map");
    app.add_option("--probabilities", s.probabilities,
                   "Also write the probability of each class, a band each, to this file (the model needs "
                   "-probability)")
        ->type_name("FILE");
    app.add_option("--confidence", s.confidence,
                   "Also write the probability of the mapped class to this file")
        ->type_name("FILE");
    app.add_flag("--any-wavelengths", s.any_wavelengths,
                 "Do not compare the scene's wavelengths with the model's");
    tool.add_compute();
    tool.add_input("model", s.model_file);
    return tool.run(argc, argv, [&](cli::Run& run) { run_classify(run, s); });
}
