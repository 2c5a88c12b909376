// SPDX-License-Identifier: MIT
// gdal_hsi_svm_classify: classifies a scene with a model and writes a class map; one pass, tile by tile.
#include "core/error.h"
#include "links/links.h"
#include "raster/labels.h"
#include "raster/output_set.h"
#include "raster/packed_text.h"
#include "raster/text_input.h"
#include "svm/svm.h"
#include "tool/classification.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/follow.h"
#include "tool/model_values.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/scene.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hsi {
namespace {
namespace svm_classify_tool {

using tool::Content;

struct Settings {
    std::string model_file, probabilities, confidence;
    bool any_wavelengths = false, any_scale = false;
};

/// Writes the map as a VRT or an .hsi that contains the model. The class of a pixel is computed when the
/// pixel is read.
class VirtualMap {
  public:
    VirtualMap(const tool::Run& run, const Settings& s, const raster::RasterSource& source,
               const svm::Model& model)
        : m_options(run.options().destination) {
        m_spec.shape = {source.shape().samples, source.shape().lines, 1};
        raster::describe_class_map(model.classes, m_options, m_spec);
        m_spec.bands = {{"class", {}}};
        m_spec.metadata["HSI_SVM_MODEL"] = s.model_file;
    }
    void write(tool::Run& run, const raster::RasterSource& source, const svm::Model& model) const {
        tool::write_virtual(
            run, m_options, m_spec, source, [&] { return links::svm_classes(model); },
            [&] {
                return std::vector<raster::VirtualBand>{
                    {"hsi_svm", {{"model_data", raster::pack_text(svm::to_json(model))}}, {}, {}}};
            });
    }

  private:
    raster::OutputOptions m_options;
    raster::OutputSpec m_spec;
};

tool::Work work_of(const stream::CubeShape& shape, const svm::Model& model) {
    const double products =
        static_cast<double>(shape.pixels()) * model.features() * static_cast<double>(model.vector_count());
    tool::Work work;
    work.cpu_reads = work.device_reads = static_cast<double>(shape.float_bytes());
    work.writes = static_cast<double>(shape.pixels());
    work.add(svm::cost::kernel, products);
    return work;
}

void report_classes(tool::Run& run, const svm::Model& model, const svm::Classification& operation) {
    Json counts = Json::array();
    for (size_t c = 0; c < model.classes.size(); ++c)
        counts.push_back({{"value", model.classes[c].value},
                          {"name", model.classes[c].name},
                          {"pixels", operation.pixels_by_class()[c]}});
    run.report()["classes"] = counts;
    run.report()["classified"] = operation.classified();
    run.report()["repeated_exactly"] = operation.repeated();
}

void run_classify(tool::Run& run, const Settings& s) {
    auto read = svm::from_json(raster::read_input(s.model_file, largest_file::model), s.model_file);
    svm::ClassifyOptions options;
    options.probabilities = !s.probabilities.empty();
    options.confidence = !s.confidence.empty();
    if ((options.probabilities || options.confidence) && !read.has_probabilities())
        throw Error("'" + s.model_file +
                        "' has no probability estimates, which -probabilities and -confidence need",
                    "Train it with -probability.");
    const auto source = tool::matching_source(run, s.model_file, read, s.any_wavelengths);
    const auto values = tool::value_scale(*source);
    svm::rescale(read, tool::compare_scales(run, s.model_file, read, values, s.any_scale), values);
    const auto model = std::make_shared<const svm::Model>(std::move(read));
    if (raster::is_virtual(run.options().destination)) {
        if (options.probabilities || options.confidence)
            throw UsageError(
                tool::cannot_be_used_with("-probabilities and -confidence",
                                          std::string(raster::virtual_kind(run.options().destination)) +
                                              ": pixels are computed when they are read"),
                "Write them in a separate run, with a map in another format.");
        return VirtualMap(run, s, *source, *model).write(run, *source, *model);
    }
    auto outputs = tool::plan_classification(run, *source, model->classes, s.probabilities, s.confidence,
                                             {{"HSI_SVM_MODEL", s.model_file}});
    tool::Computing<svm::Backend> computing(
        run, "svm", tool::choose_devices(run, "svm", work_of(source->shape(), *model)), svm::simd_target(),
        svm::make_cpu_backend);
    const auto operation = computing->make_classification(model, options);
    run.report()["model"] = {{"path", s.model_file},
                             {"classes", model->class_count()},
                             {"features", model->features()},
                             {"support_vectors", model->vector_count()},
                             {"C", model->c},
                             {"gamma", model->gamma}};
    const auto pass = tool::begin_writing(run, *source, *operation, outputs, source.get(),
                                          [&] { return computing.pass("classification", 1.0); });
    std::shared_ptr<raster::RasterSource> all = source;
    if (source->growth() != nullptr) {
        all = tool::follow(run, *source, *operation, &outputs, pass);
        const tool::RangeCheck check(*all, *model);
        check.look();
        check.tell(run);
    } else {
        const tool::RangeCheck check(*source, *model);
        run.add_pass(stream::run_pass(check.source(), *operation, outputs.sinks(), pass));
        check.tell(run);
    }
    if (operation->classified() == 0) throw tool::no_valid_pixel(*source);
    outputs.commit();
    report_classes(run, *model, *operation);
    if (const double seconds = computing->kernel_seconds(); seconds > 0)
        run.report()["kernel_seconds"] = seconds;
    tool::report_invalid(run, operation->classified(), operation->invalid(), "and left without a class");
    tool::check_last_line(run, *all);
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_follow();
    args.input_argument("model", s.model_file, Content::model, "The model, a file of gdal_hsi_svm_train")
        .or_option("apply");
    args.add_destination("The class map, with names and colours; it appears when it is complete");
    args.computes_dst();
    args.output("probabilities", s.probabilities, Content::raster,
                "Also write class probabilities to FILE, one band per class (requires a model trained with "
                "-probability)");
    args.output("confidence", s.confidence, Content::raster,
                "Also write the probability of the mapped class to FILE (requires a model trained with "
                "-probability)");
    tool::add_any_wavelengths(args, s.any_wavelengths);
    tool::add_any_scale(args, s.any_scale);
    args.add_compute();
    args.body([&s](tool::Run& run) { run_classify(run, s); });
}

} // namespace svm_classify_tool
} // namespace

namespace tools {

extern constinit const tool::Definition svm_classify{
    "svm_classify",
    "Classification by a support vector machine (SVM)",
    "Classifies a scene with a model of gdal_hsi_svm_train: a class map with names and colours, and "
    "optionally class probabilities. Every label equals that of LIBSVM's svm_predict.",
    {{"gdal_hsi_svm_classify -apply model.json profile.tif map.tif", "A class map"},
     {"gdal_hsi_svm_classify -apply model.json profile.tif map.vrt", "Computed when it is displayed"},
     {"gdal_hsi_svm_classify -apply m.json -probabilities p.tif -confidence c.tif -device cuda scene.img "
      "map.tif",
      "With probabilities, on a GPU"}},
    "",
    svm_classify_tool::declare};

} // namespace tools
} // namespace hsi
