// SPDX-License-Identifier: MIT
#include "shared/transforms.h"

#include "core/counted.h"
#include "core/error.h"
#include "links/links.h"
#include "raster/output_set.h"
#include "resample/resample.h"
#include "shared/number_lists.h"
#include "shared/spectral_bands.h"
#include "stream/computed_source.h"
#include "stream/statistics_scan.h"
#include "tool/devices.h"
#include "tool/passes.h"

#include <utility>

namespace hsi::tools {
namespace {

raster::OutputSpec spec_of(const stream::CubeShape& shape, const std::vector<size_t>& kept,
                           const Meaning& meaning) {
    raster::OutputSpec spec;
    spec.shape = {shape.samples, shape.lines, static_cast<int>(kept.size())};
    spec.holes = true;
    spec.spectral = true;
    for (const size_t b : kept) {
        raster::BandSpec band;
        band.like_band = static_cast<int>(b);
        band.scale = meaning.scale;
        band.unit = meaning.unit;
        spec.bands.push_back(std::move(band));
    }
    return spec;
}

std::vector<raster::VirtualBand> summed_bands(const smooth::Transform& transform, int inputs) {
    std::vector<raster::VirtualBand> bands;
    for (const auto& row : smooth::rows_of(transform).bands) {
        std::vector<double> weights(static_cast<size_t>(inputs));
        for (size_t k = 0; k < row.sources.size(); ++k)
            weights[row.sources[k]] = row.weights[k];
        raster::VirtualBand one;
        one.function = "hsi_resample";
        one.arguments = {{"weights", number_list(weights)}};
        bands.push_back(std::move(one));
    }
    return bands;
}

std::vector<raster::VirtualBand> transformed_bands(const smooth::Transform& t, int inputs) {
    std::vector<raster::VirtualBand> bands;
    for (int b = 1; b <= inputs; ++b) {
        raster::VirtualBand one;
        one.function = "hsi_transform";
        one.arguments = {{"method", smooth::name_of(t.method)}, {"band", std::to_string(b)}};
        for (const auto& setting : smooth::settings_of(t))
            one.arguments.emplace_back(setting.name, setting.kind == smooth::Setting::Kind::word
                                                         ? setting.word
                                                         : number_list(setting.numbers));
        bands.push_back(std::move(one));
    }
    return bands;
}

void write_virtual(tool::Run& run, const raster::RasterSource& scene, const SpectrumWork& work) {
    const auto transform = work.make(scene);
    const int inputs = scene.shape().bands;
    const bool sums = smooth::is_sum(transform.method);
    const auto kept = smooth::Transformer(static_cast<size_t>(inputs), transform).kept();
    tool::write_virtual(
        run, run.options().destination, spec_of(scene.shape(), kept, work.meaning), scene,
        [&] {
            return sums ? links::resampling(inputs, smooth::rows_of(transform).bands)
                        : links::transformed_spectra(inputs, transform);
        },
        [&] { return sums ? summed_bands(transform, inputs) : transformed_bands(transform, inputs); });
}

void tell_undefined(tool::Run& run, const SpectrumWork& work, int64_t valid, int64_t undefined) {
    run.report()["undefined_pixels"] = undefined;
    if (undefined == valid && valid > 0)
        throw Error("no pixel has a result, " + work.undefined,
                    "Check the values of the scene and the options of the tool.");
    if (undefined > 0)
        run.note(counted(undefined, "pixel") + worded(undefined, " has", " have") + " no result, " +
                 work.undefined + ": the output is nodata");
}

/// Makes the pass. Returns false if no pixel is valid.
template <class Operation>
bool pass_over(tool::Run& run, tool::Scene& scene, const SpectrumWork& work, Operation& operation,
               const std::vector<size_t>& kept, double share) {
    raster::OutputSet outputs;
    outputs.plan(run.options().destination, spec_of(scene.shape(), kept, work.meaning));
    outputs.check(*scene.raster());
    tool::write(run, scene.cube(), operation, outputs, scene.raster().get(),
                [&] { return run.pass(work.pass, share); });
    if (operation.valid() == 0) return false;
    tool::report_invalid(run, operation.valid(), operation.invalid());
    if constexpr (requires { operation.undefined(); })
        tell_undefined(run, work, operation.valid(), operation.undefined());
    outputs.commit();
    return true;
}

} // namespace

void write_transformed(tool::Run& run, tool::Scene& scene, const SpectrumWork& work) {
    if (raster::is_virtual(run.options().destination)) return write_virtual(run, *scene.raster(), work);
    const bool any = scene.attempt([&](bool again) {
        const auto transform = work.make(*scene.raster());
        const int inputs = scene.shape().bands;
        const auto kept = smooth::Transformer(static_cast<size_t>(inputs), transform).kept();
        const double share = again ? 0 : work.share;
        if (smooth::is_sum(transform.method)) {
            const auto operation = resample::make_resampling(inputs, smooth::rows_of(transform).bands);
            return pass_over(run, scene, work, *operation, kept, share);
        }
        const auto operation = smooth::make_transform(inputs, transform);
        return pass_over(run, scene, work, *operation, kept, share);
    });
    if (!any) throw tool::no_valid_pixel(*scene.raster());
}

std::vector<double> counted_means(tool::Run& run, tool::Scene& scene,
                                  const std::optional<smooth::Transform>& first) {
    if (raster::is_virtual(run.options().destination)) scene.read_once();
    if (first)
        scene.join([&](std::shared_ptr<const stream::CubeSource> cube, const raster::RasterSource&) {
            const int inputs = cube->shape().bands;
            return std::make_shared<stream::ComputedSource>(
                std::move(cube),
                stream::LinkWork(std::shared_ptr<stream::Operation>(smooth::make_transform(inputs, *first))));
        });
    scene.set_fate(nullptr); // the pass that writes dst reports these pixels
    const auto found = scene.scan("mean", 0.5, [&] {
        return std::make_unique<stream::StatisticsScan>(scene.shape(), stream::Statistics::means);
    });
    if (first) scene.join({});
    return found.mean;
}

void refuse_without_wavelengths(const std::string& path) {
    throw Error(path + " has no wavelengths", advice_on_wavelengths());
}

} // namespace hsi::tools
