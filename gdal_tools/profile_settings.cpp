// SPDX-License-Identifier: MIT
#include "profile_settings.h"

#include "core/byte_size.h"
#include "core/error.h"
#include "tool/argument.h"
#include "tool/words.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace hsi::tools {
namespace {

using profile::Attribute;
using profile::AttributeSet;
using profile::Kind;

std::vector<std::string> parts_of(const std::string& text) {
    std::vector<std::string> parts;
    std::stringstream list(text);
    for (std::string part; std::getline(list, part, ',');)
        parts.push_back(part);
    if (parts.empty() || text.back() == ',') parts.emplace_back();
    return parts;
}

std::string known(Kind kind) {
    std::string text;
    for (const auto a : profile::attributes_of(kind))
        text.append(text.empty() ? "" : ", ").append(profile::name_of(a));
    return text;
}

Attribute attribute_named(const std::string& option, const std::string& name, Kind kind) {
    for (const auto a : profile::attributes_of(kind))
        if (name == profile::name_of(a)) return a;
    throw UsageError(option + ": -kind " + profile::name_of(kind) + " has no attribute '" + name + "'",
                     "It has " + known(kind) + ".");
}

std::vector<double> threshold_list(const std::string& text, Attribute attribute, Kind kind) {
    std::vector<double> values;
    for (const auto& part : parts_of(text)) {
        const auto value = tool::parse_number(part);
        if (!value)
            throw UsageError("-thresholds: '" + part + "' is no number",
                             "Give them as in -thresholds 10,25,50.");
        const bool counted = profile::of_extinction(kind), whole = std::floor(*value) == *value;
        if (counted && !(*value >= 1 && whole && std::isfinite(*value)))
            throw UsageError("-thresholds: " + part + " is no number of extrema",
                             "Use a whole number from 1 on.");
        if (attribute == Attribute::radius && !(*value >= 1 && whole && *value <= 32767))
            throw UsageError("-thresholds: " + part + " is no radius", "Use a whole number from 1 to 32767.");
        if (!(*value >= 0) || !std::isfinite(*value))
            throw UsageError("-thresholds: " + part + " is no threshold", "Use a number from 0 on.");
        if (std::find(values.begin(), values.end(), *value) != values.end())
            throw UsageError("-thresholds: " + part + " stands twice in the list", "Leave one of them out.");
        values.push_back(*value);
    }
    return values;
}

bool several(Kind kind) { return kind == Kind::emap || kind == Kind::emep; }

} // namespace

void resolve_profile(ProfileSettings& s) {
    s.sets.clear();
    const std::string kind = std::string("-kind ") + profile::name_of(s.kind);
    if (!s.attributes.empty()) {
        for (const auto& name : parts_of(s.attributes)) {
            const auto a = attribute_named("-attribute", name, s.kind);
            for (const auto& set : s.sets)
                if (set.attribute == a)
                    throw UsageError("-attribute: " + name + " stands twice in the list",
                                     "Leave one of them out.");
            s.sets.push_back({a, {}});
        }
        if (s.sets.size() > 1 && !several(s.kind))
            throw UsageError("-attribute " + s.attributes + ": " + kind + " takes one attribute",
                             s.kind == Kind::eap ? "Use -kind emap." : "Use -kind emep.");
    } else {
        for (const auto a : profile::attributes_of(s.kind))
            if (s.sets.empty() || several(s.kind)) s.sets.push_back({a, {}});
    }
    for (const auto& text : s.thresholds) {
        const auto equals = text.find('=');
        AttributeSet* to = s.sets.size() == 1 ? &s.sets[0] : nullptr;
        if (equals != std::string::npos) {
            const auto a = attribute_named("-thresholds", text.substr(0, equals), s.kind);
            to = nullptr;
            for (auto& set : s.sets)
                if (set.attribute == a) to = &set;
            if (to == nullptr)
                throw UsageError("-thresholds " + text + ": " + profile::name_of(a) + " was not chosen",
                                 "Name it with -attribute, too.");
        } else if (to == nullptr) {
            throw UsageError("-thresholds " + text + ": whose they are is not told",
                             "Name the attribute, as in -thresholds " +
                                 std::string(profile::name_of(s.sets[0].attribute)) + "=" + text + ".");
        }
        if (!to->thresholds.empty())
            throw UsageError(std::string("-thresholds: ") + profile::name_of(to->attribute) +
                                 " has two lists",
                             "Give one list with commas.");
        to->thresholds = threshold_list(equals == std::string::npos ? text : text.substr(equals + 1),
                                        to->attribute, s.kind);
    }
}

bool needs_pixel_size(const ProfileSettings& s) {
    return !profile::of_extinction(s.kind) &&
           std::any_of(s.sets.begin(), s.sets.end(), [](const AttributeSet& set) {
               return set.attribute == Attribute::area && set.thresholds.empty();
           });
}

profile::Options profile_options(const ProfileSettings& s, double pixel_metres) {
    profile::Options options{s.kind, s.sets, s.eight};
    for (auto& set : options.sets)
        if (set.thresholds.empty())
            set.thresholds = profile::default_thresholds(s.kind, set.attribute, pixel_metres);
    return options;
}

ProfilePlan plan_profile_planes(const tool::Run& run, const stream::CubeShape& components,
                                const profile::Options& options, bool sink_takes_bands) {
    ProfilePlan plan;
    plan.written = sink_takes_bands;
    uint64_t left = run.buffer_memory();
    plan.side_bytes = profile::side_bytes(options, components.pixels());
    if (plan.side_bytes > left)
        throw Error("a component of " + std::to_string(components.samples) + "x" +
                        std::to_string(components.lines) + " pixels needs " +
                        format_byte_size(plan.side_bytes) + " at once, and -memory leaves " +
                        format_byte_size(left),
                    "Give more -memory, or cut the scene with -srcwin.");
    const int most = std::min(run.options().threads, 2 * components.bands);
    const stream::CubeShape profile{components.samples, components.lines, components.bands * options.bands()};
    if (components.float_bytes() <= (left - plan.side_bytes) / 2) {
        plan.components_held = true;
        left -= components.float_bytes();
    }
    if (!plan.written && profile.float_bytes() + plan.side_bytes * static_cast<uint64_t>(most) <= left) {
        plan.profile_held = true;
        left -= profile.float_bytes();
    }
    plan.workers = static_cast<int>(std::min<uint64_t>(left / plan.side_bytes, static_cast<uint64_t>(most)));
    plan.pass_bytes = left;
    return plan;
}

raster::OutputSpec profile_raster(const stream::CubeShape& scene, const ProfileSettings& s,
                                  const profile::Options& options,
                                  const std::vector<std::string>& components) {
    raster::OutputSpec spec;
    spec.shape = {scene.samples, scene.lines, options.bands() * static_cast<int>(components.size())};
    spec.holes = true;
    const auto names = profile::band_names(options);
    for (size_t i = 0; i < components.size(); ++i)
        for (const auto& name : names) {
            raster::BandSpec band{components[i], {{"component", std::to_string(i + 1)}}};
            if (!name.empty())
                band.description += " " + name;
            else if (s.no_pca)
                band.like_band = static_cast<int>(i);
            spec.bands.push_back(std::move(band));
        }
    auto& m = spec.metadata;
    m["HSI_PROFILE_KIND"] = profile::name_of(s.kind);
    m["HSI_PROFILE_COMPONENTS"] = std::to_string(components.size());
    m["HSI_PROFILE_PCA"] = s.no_pca ? "NO" : "YES";
    m["HSI_PROFILE_CONNECTIVITY"] = s.eight ? "8" : "4";
    for (const auto& set : options.sets) {
        std::string list;
        for (const double t : set.thresholds)
            list += (list.empty() ? "" : ",") + tool::number_text(t);
        std::string name = profile::name_of(set.attribute);
        for (char& c : name)
            c = static_cast<char>(c - 'a' + 'A');
        m["HSI_PROFILE_" + name] = list;
    }
    return spec;
}

} // namespace hsi::tools
