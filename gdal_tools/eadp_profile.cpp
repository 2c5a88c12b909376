// SPDX-License-Identifier: MIT
#include "eadp_profile.h"

#include "core/counted.h"
#include "core/error.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

namespace hsi::tools {
namespace {

const char* const diffusivity_names[] = {"g1", "g2", "g3"};
const char* const evolution_names[] = {"independent", "cascade", "incremental"};
const char* const scheme_names[] = {"fed", "exact"};
const char* const precision_names[] = {"single", "double"};

template <class E>
const char* name_of(const char* const* names, E value) {
    return names[static_cast<int>(value)];
}

} // namespace

std::string eadp_number(double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.10g", x);
    return text;
}

std::vector<double> parse_times(const std::string& text) {
    std::vector<double> times;
    std::stringstream list(text);
    for (std::string part; std::getline(list, part, ',');) {
        char* end = nullptr;
        const double value = std::strtod(part.c_str(), &end);
        if (part.empty() || *end != 0)
            throw UsageError("-times: '" + part + "' is no number",
                             "Give process times as in -times 65,130,195.");
        times.push_back(value);
    }
    return times;
}

raster::OutputSpec profile_spec(const stream::CubeShape& scene, const EadpSettings& settings,
                                const std::vector<std::string>& component_names,
                                const eadp::ProfileFacts* facts) {
    bool holes = true; // until the scans have counted
    if (facts) {
        holes = false;
        for (const auto& f : facts->components)
            holes = holes || f.range.valid < scene.pixels();
    }
    const auto& o = settings.eadp;
    raster::OutputSpec spec;
    spec.shape = {scene.samples, scene.lines,
                  eadp::profile_bands(o, static_cast<int>(component_names.size()))};
    spec.holes = holes;
    for (size_t i = 0; i < component_names.size(); ++i)
        for (int c = 0; c <= o.copies(); ++c) {
            raster::BandSpec band{component_names[i], {}};
            band.metadata["component"] = std::to_string(i + 1);
            band.metadata["copy"] = std::to_string(c);
            if (c > 0) {
                const std::string time = eadp_number(o.times[static_cast<size_t>(c - 1)]);
                band.description += " T=" + time;
                band.metadata["process_time"] = time;
                if (facts)
                    for (const auto& f : facts->components)
                        if (f.component == static_cast<int>(i) &&
                            f.copy == (o.evolution == eadp::Evolution::cascade ? c - 1 : 0))
                            band.metadata["contrast"] = eadp_number(f.k);
            }
            spec.bands.push_back(std::move(band));
        }
    std::string times;
    for (double t : o.times)
        times += (times.empty() ? "" : ",") + eadp_number(t);
    auto& m = spec.metadata;
    m["HSI_EADP_COMPONENTS"] = std::to_string(component_names.size());
    m["HSI_EADP_PCA"] = settings.no_pca ? "NO" : "YES";
    m["HSI_EADP_TIMES"] = times;
    m["HSI_EADP_SIGMA"] = eadp_number(o.sigma);
    m["HSI_EADP_DIFFUSIVITY"] = name_of(diffusivity_names, o.diffusivity);
    if (o.contrast)
        m["HSI_EADP_K"] = eadp_number(*o.contrast);
    else
        m["HSI_EADP_PERCENTILE"] = eadp_number(o.percentile);
    m["HSI_EADP_EVOLUTION"] = name_of(evolution_names, o.evolution);
    m["HSI_EADP_SCHEME"] = name_of(scheme_names, o.scheme);
    if (o.scheme == eadp::Scheme::fed)
        m["HSI_EADP_CYCLES"] = std::to_string(o.cycles);
    else
        m["HSI_EADP_TOLERANCE"] = eadp_number(o.tolerance);
    m["HSI_EADP_PRECISION"] = name_of(precision_names, o.precision);
    return spec;
}

void print_schedule(tool::Run& run, const EadpSettings& settings, int components) {
    const auto& o = settings.eadp;
    const auto stages = eadp::make_stages(o);
    auto& report = run.report()["schedule"];
    const auto say = [&](const std::string& text) {
        if (run.options().dry_run) run.print(text);
    };
    int sweeps = 0;
    for (const auto& s : stages)
        sweeps += s.degree;
    if (o.scheme == eadp::Scheme::fed) {
        int steps = 0;
        std::vector<int> counts;
        for (size_t c = 0; c < o.times.size(); ++c) {
            const bool delta = o.evolution == eadp::Evolution::incremental && c > 0;
            const int n = eadp::fed_steps(o.times[c] - (delta ? o.times[c - 1] : 0), o.cycles) * o.cycles;
            say("T=" + eadp_number(o.times[c]) + ": " + counted(n, "FED step"));
            counts.push_back(n);
            steps += n;
        }
        say("In all " + counted(steps, "FED step") + " a component, " + std::to_string(steps * components) +
            " for " + counted(components, "component") + "; done as " + counted(sweeps, "sweep") +
            " a component");
        report["fed_steps"] = counts;
    } else {
        say("Exact to " + eadp_number(o.tolerance) + " of the range in " + counted(sweeps, "sweep") +
            " a component");
    }
    report["sweeps"] = sweeps;
}

} // namespace hsi::tools
