// SPDX-License-Identifier: MIT
// Converts rules to a plan for the bands of a scene.
#include "core/counted.h"
#include "core/error.h"
#include "core/name_index.h"
#include "core/text.h"
#include "identify/identify.h"
#include "math/continuum.h"
#include "math/distributions.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace hsi::identify {
namespace {

constexpr double no_limit = std::numeric_limits<double>::quiet_NaN();
constexpr double little = 1e-6; // width in nm by which windows are extended
constexpr size_t least_bands = 4;
constexpr double least_extent = 1e-3;

/// The groups and rules that a choice uses, including the groups that other groups need.
struct Used {
    std::vector<bool> groups, rules;
};

/// Returns an index of the rules in a file by name.
NameIndex rules_by_name(const RuleFile& file) {
    NameIndex names;
    for (size_t k = 0; k < file.rules.size(); ++k)
        names.add(file.rules[k].name, k);
    return names;
}

Used used_by(const RuleFile& file, const Choice& choice) {
    Used used{std::vector<bool>(file.groups.size(), choice.groups.empty()),
              std::vector<bool>(file.rules.size())};
    const NameIndex names = rules_by_name(file);
    const auto groups = groups_of_rules(file);
    for (const size_t g : choice.groups)
        used.groups[g] = true;
    // Conditions refer to earlier groups, so groups are visited in reverse order.
    for (size_t g = file.groups.size(); g-- > 0;)
        for (const auto* const list : {&file.groups[g].unless, &file.groups[g].where})
            for (const auto& name : *list)
                if (const auto rule = names.find(name); rule && used.groups[g])
                    for (const size_t other : groups[*rule])
                        if (other < g) used.groups[other] = true;
    std::vector<bool> chosen(file.rules.size(), choice.rules.empty());
    for (const size_t k : choice.rules)
        chosen[k] = true;
    for (size_t k = 0; k < file.rules.size(); ++k)
        used.rules[k] = chosen[k] && std::any_of(groups[k].begin(), groups[k].end(),
                                                 [&](size_t g) { return used.groups[g]; });
    return used;
}

std::string range_text(const Windows& w) {
    char text[64];
    std::snprintf(text, sizeof text, "%.6g-%.6g nm", w[0], w[3]);
    return text;
}

double mean(const std::vector<double>& values, size_t from, size_t to) {
    double sum = 0;
    for (size_t k = from; k < to; ++k)
        sum += values[k];
    return sum / static_cast<double>(to - from);
}

class Planner {
  public:
    explicit Planner(Plan& plan) : m_plan(plan) {
        for (size_t k = 0; k < plan.file.rules.size(); ++k)
            m_families.add(plan.file.rules[k].family, k);
        for (size_t k = 0; k < plan.references.size(); ++k)
            m_references.add(plan.references[k].name, k);
    }

    /// Adds a rule for the scene's bands. If the rule is skipped, stores the reason.
    void add(size_t number) {
        const Rule& rule = m_plan.file.rules[number];
        RuleInUse made;
        made.rule = number;
        if (!rule.family.empty()) made.family = 1 + *m_families.find(rule.family);
        m_fits.assign(rule.features.size(), none);
        m_lost.clear();
        const Size before = size();
        std::string why = add_features(rule, made);
        if (why.empty()) why = set_weights(rule, made);
        if (!why.empty()) {
            m_plan.skipped.emplace_back(number, why);
            return shrink(before);
        }
        for (size_t f = 0, k = 0; f < rule.features.size(); ++f)
            if (m_fits[f] != none) add_limits(made.features[k++], rule.features[f].limits);
        add_nots(rule, made);
        for (const Limit& limit : rule.limits)
            made.checks.push_back({slots::rule + static_cast<size_t>(limit.quantity), slots::one,
                                   limit.least.value_or(no_limit), limit.greatest.value_or(no_limit),
                                   limit.key, 1});
        set_chances(rule, made);
        for (auto& text : m_lost)
            m_plan.left_out.emplace_back(m_plan.rules.size(), std::move(text));
        m_plan.rules.push_back(std::move(made));
    }

  private:
    static constexpr size_t none = std::numeric_limits<size_t>::max();

    /// Sizes of the plan, with which the additions of a skipped rule are removed.
    struct Size {
        size_t spans, fits, slots;
    };
    Size size() const { return {m_plan.spans.size(), m_plan.fits.size(), m_plan.slots}; }
    void shrink(const Size& to) {
        m_plan.spans.resize(to.spans);
        m_plan.fits.resize(to.fits);
        m_plan.slots = to.slots;
    }

    /// Adds features. Returns the reason if the scene does not cover a feature of role `must`, otherwise an
    /// empty text.
    std::string add_features(const Rule& rule, RuleInUse& made) {
        for (size_t f = 0; f < rule.features.size(); ++f) {
            const Feature& feature = rule.features[f];
            const std::string text = "feature " + std::to_string(f + 1);
            std::string why;
            m_fits[f] = fit_of(rule.spectrum, feature.windows, why);
            if (m_fits[f] == none) {
                why.insert(0, text + " (" + range_text(feature.windows) + "): ");
                if (feature.role == Role::must) return why;
                m_lost.push_back(why);
                continue;
            }
            Part part;
            part.fit = m_fits[f];
            part.optional = feature.role == Role::optional;
            part.text = text;
            made.features.push_back(std::move(part));
        }
        return made.features.empty() ? "the scene covers none of its features" : "";
    }

    /// Sets the weights. Returns the reason if the rule has no positive weight, otherwise an empty text.
    std::string set_weights(const Rule& rule, RuleInUse& made) {
        double all = 0, left = 0;
        const bool given = rule.features.front().weight.has_value();
        for (size_t f = 0, k = 0; f < rule.features.size(); ++f) {
            if (given) all += *rule.features[f].weight;
            if (m_fits[f] == none) continue;
            Part& part = made.features[k++];
            part.weight = given ? *rule.features[f].weight : m_plan.fits[part.fit].area;
            left += part.weight;
        }
        if (!(left > 0)) return "the weights of its features are all 0";
        for (Part& part : made.features)
            if (!given || made.features.size() < rule.features.size())
                part.weight *= (given ? all : 1) / left;
        return {};
    }

    void add_nots(const Rule& rule, RuleInUse& made) {
        for (size_t k = 0; k < rule.nots.size(); ++k) {
            const NotFeature& feature = rule.nots[k];
            Part part;
            part.text = "NOT " + std::to_string(k + 1);
            std::string why;
            const Size before = size();
            part.fit = fit_of(feature.spectrum, feature.windows, why);
            for (const Limit& limit : feature.limits)
                if (limit.over > 0 && m_fits[limit.over - 1] == none && why.empty())
                    why = "feature " + std::to_string(limit.over) + ", which \"" + limit.key +
                          "\" needs, is left out";
            if (!why.empty()) {
                shrink(before);
                m_lost.push_back(part.text + " (" + feature.spectrum + ", " + range_text(feature.windows) +
                                 "): " + why);
                continue;
            }
            add_limits(part, feature.limits);
            made.nots.push_back(std::move(part));
        }
    }

    /// Adds limits. A limit is skipped if it refers to a feature that is left out.
    void add_limits(Part& part, const std::vector<Limit>& limits) {
        for (const Limit& limit : limits) {
            if (limit.over > 0 && m_fits[limit.over - 1] == none) {
                m_lost.push_back(part.text + ": \"" + limit.key + "\" is not checked");
                continue;
            }
            const size_t other = limit.over > 0 ? m_fits[limit.over - 1] : none;
            Check check{slot_of(part.fit, limit.quantity), slots::one,
                        limit.least.value_or(no_limit),    limit.greatest.value_or(no_limit),
                        part.text + ": " + limit.key,      1};
            const bool on_fit = limit.quantity <= Quantity::fd;
            const double unit =
                limit.quantity == Quantity::slope ? m_plan.bands.unit / 1000 : m_plan.bands.unit;
            if (other != none)
                check.other = slot_of(other, limit.quantity);
            else if (limit.quantity == Quantity::ratio)
                check.other = m_plan.spans[m_plan.fits[part.fit].span].slot;
            else if (!on_fit) {
                check.least *= unit;
                check.greatest *= unit;
                check.factor = 1 / unit;
            }
            // The continuum of another feature is known only after the fit of this feature has been computed.
            if (other != none) part.with.push_back(other);
            (on_fit || other != none ? part.checks : part.continuum).push_back(std::move(check));
        }
    }

    size_t slot_of(size_t fit, Quantity quantity) const {
        const size_t at = m_plan.fits[fit].slot, ends = m_plan.spans[m_plan.fits[fit].span].slot;
        switch (quantity) {
        case Quantity::fit:
            return at;
        case Quantity::depth:
            return at + 1;
        case Quantity::fd:
            return at + 2;
        case Quantity::left:
            return ends;
        case Quantity::mean:
            return ends + 2;
        case Quantity::slope:
            return ends + 3;
        default: // `ratio` is compared with `left`.
            return ends + 1;
        }
    }

    /// Returns the fit of a spectrum in windows. Returns `none`, and sets `why` to the reason, if the scene
    /// or the spectrum does not cover the windows.
    size_t fit_of(const std::string& name, const Windows& windows, std::string& why) {
        const auto reference = m_references.find(name);
        if (!reference) throw Error("the spectrum '" + name + "' is missing");
        const auto& spectrum = m_plan.references[*reference].spectrum;
        auto nm = m_plan.bands.wavelengths;
        for (size_t b = 0; b < nm.size(); ++b)
            if (!std::isfinite(spectrum[b])) nm[b] = std::numeric_limits<double>::quiet_NaN();
        Span span;
        span.windows = windows;
        span.bands = math::rising_bands(nm, windows[0] - little, windows[3] + little);
        for (const size_t b : span.bands)
            span.x.push_back(nm[b]);
        why = span.bands.empty() ? nothing_there() : uncovered(span);
        if (!why.empty()) return none;
        const size_t n = span.x.size();
        span.x_left = mean(span.x, 0, span.left);
        span.x_right = mean(span.x, span.right, n);
        Fit fit;
        size_t& same = m_same_span.try_emplace({span.bands, span.left, span.right}, none).first->second;
        // False if shrink() has removed the span.
        const bool known = same < m_plan.spans.size() && m_plan.spans[same].is_like(span);
        if (!known) same = m_plan.spans.size();
        fit.span = same;
        why = shape_of(spectrum, span, fit);
        if (!why.empty()) return none;
        if (!known) {
            span.slot = m_plan.slots;
            m_plan.slots += slots::of_span;
            m_plan.spans.push_back(std::move(span));
        }
        size_t& like = m_same_fit.try_emplace({fit.span, fit.shape}, none).first->second;
        if (like < m_plan.fits.size() && m_plan.fits[like].span == fit.span &&
            m_plan.fits[like].shape == fit.shape)
            return like;
        like = m_plan.fits.size();
        fit.slot = m_plan.slots;
        m_plan.slots += slots::of_fit;
        m_plan.fits.push_back(std::move(fit));
        return like;
    }

    /// Returns an error text with the wavelength range of the bands, which shows wrong units.
    std::string nothing_there() const {
        double from = std::numeric_limits<double>::infinity(), to = 0;
        for (const double nm : m_plan.bands.wavelengths)
            if (nm > 0) {
                from = std::min(from, nm);
                to = std::max(to, nm);
            }
        return "the scene has no good band there; its bands are at " + range_text({from, from, to, to});
    }

    /// Returns the reason if the bands do not cover the windows, otherwise an empty text. Sets left and right
    /// of the span.
    static std::string uncovered(Span& span) {
        const auto& [a, b, c, d] = span.windows;
        const double left_end = b + little, right_end = c - little;
        const size_t n = span.x.size();
        span.left =
            static_cast<size_t>(std::upper_bound(span.x.begin(), span.x.end(), left_end) - span.x.begin());
        span.right =
            static_cast<size_t>(std::lower_bound(span.x.begin(), span.x.end(), right_end) - span.x.begin());
        if (span.left == 0) return "no good band is in its left window";
        if (span.right == n) return "no good band is in its right window";
        if (span.left == span.right) return "no good band is between its windows";
        if (n < least_bands) return counted(n, "good band") + " of at least 4";
        for (size_t k = 1; k < n; ++k)
            if (span.x[k] - span.x[k - 1] > (d - a) / 3) {
                char text[96];
                std::snprintf(text, sizeof text, "no good band is between %.6g and %.6g nm", span.x[k - 1],
                              span.x[k]);
                return text;
            }
        return {};
    }

    /// Computes L of the reference. Returns the reason if this fails, otherwise an empty text.
    static std::string shape_of(const std::vector<double>& spectrum, const Span& span, Fit& fit) {
        const size_t n = span.x.size();
        std::vector<double> y;
        for (const size_t b : span.bands)
            y.push_back(spectrum[b]);
        const double left = mean(y, 0, span.left), right = mean(y, span.right, n),
                     slope = (right - left) / (span.x_right - span.x_left);
        const auto line = [&](size_t k) { return left + slope * (span.x[k] - span.x_left); };
        if (!(std::min({left, right, line(0), line(n - 1)}) > 0)) return "the spectrum is not above 0 there";
        for (size_t k = 0; k < n; ++k)
            y[k] /= line(k);
        const double level = mean(y, 0, n);
        fit.peak = !(level < 1);
        fit.extent =
            fit.peak ? *std::max_element(y.begin(), y.end()) - 1 : 1 - *std::min_element(y.begin(), y.end());
        if (!(fit.extent >= least_extent)) return "the spectrum has no feature there";
        for (size_t k = 1; k < n; ++k)
            fit.area += (std::fabs(1 - y[k]) + std::fabs(1 - y[k - 1])) / 2 * (span.x[k] - span.x[k - 1]);
        for (const double v : y) {
            fit.shape.push_back(v - level);
            fit.squares += fit.shape.back() * fit.shape.back();
        }
        return {};
    }

    /// Sets the probability of R2 >= f and b > 0 for white noise in n bands, where f is the rule's minimum
    /// fit.
    void set_chances(const Rule& rule, RuleInUse& made) const {
        double least = 0;
        for (const Limit& limit : rule.limits)
            if (limit.quantity == Quantity::fit) least = std::max(least, limit.least.value_or(0));
        if (m_plan.file.root) least *= least;
        for (Part& part : made.features)
            part.chance = math::beta_tail(std::min(least, 1.0), 0.5,
                                          static_cast<double>(m_plan.fits[part.fit].shape.size()) / 2 - 1) /
                          2;
    }

    Plan& m_plan;
    NameIndex m_families, m_references; ///< index of families (first rule of each family) and of references
    /// m_same_span finds spans by bands, left and right. m_same_fit finds fits by span and shape. An entry
    /// may be outdated after shrink() has removed spans or fits.
    std::map<std::tuple<std::vector<size_t>, size_t, size_t>, size_t> m_same_span;
    std::map<std::pair<size_t, std::vector<double>>, size_t> m_same_fit;
    std::vector<size_t> m_fits;      ///< fits of the rule's features; `none` for a feature that is left out
    std::vector<std::string> m_lost; ///< checks of the rule that are left out, for messages
};

/// Returns the indices of the rules with these names in the file, each once, in rising order.
std::vector<size_t> numbers_of(const NameIndex& rules, const std::vector<std::string>& names) {
    std::set<size_t> numbers;
    for (const auto& name : names)
        if (const auto number = rules.find(name)) numbers.insert(*number);
    return {numbers.begin(), numbers.end()};
}

void add_groups(Plan& plan, const Used& used, const Choice& choice) {
    const RuleFile& file = plan.file;
    const NameIndex names = rules_by_name(file);
    const auto groups = groups_of_rules(file);
    std::vector<std::vector<size_t>> members(file.groups.size());
    for (size_t k = 0; k < plan.rules.size(); ++k)
        for (const size_t g : groups[plan.rules[k].rule])
            members[g].push_back(k);
    for (size_t g = 0; g < file.groups.size(); ++g) {
        if (!used.groups[g]) continue;
        GroupInUse group;
        group.group = g;
        group.shown = choice.groups.empty() ||
                      std::find(choice.groups.begin(), choice.groups.end(), g) != choice.groups.end();
        group.rules = std::move(members[g]);
        group.unless = numbers_of(names, file.groups[g].unless);
        group.where = numbers_of(names, file.groups[g].where);
        group.conditional = !file.groups[g].where.empty();
        plan.groups.push_back(std::move(group));
    }
}

/// Removes the bands that the plan does not use.
void keep_used_bands(Plan& plan) {
    std::set<size_t> used;
    for (const Span& span : plan.spans)
        used.insert(span.bands.begin(), span.bands.end());
    plan.used.assign(used.begin(), used.end());
    for (Span& span : plan.spans)
        for (size_t& b : span.bands)
            b = static_cast<size_t>(std::distance(used.begin(), used.find(b)));
    std::vector<std::vector<double>*> lists{&plan.bands.wavelengths, &plan.bands.scale, &plan.bands.offset};
    for (Reference& one : plan.references)
        lists.push_back(&one.spectrum);
    for (auto* const list : lists) {
        std::vector<double> kept;
        for (const size_t b : used)
            if (!list->empty()) kept.push_back((*list)[b]);
        *list = std::move(kept);
    }
}

} // namespace

std::vector<size_t> Plan::shown() const {
    std::vector<size_t> all;
    for (size_t g = 0; g < groups.size(); ++g)
        if (groups[g].shown) all.push_back(g);
    return all;
}

std::vector<std::string> spectra_of(const RuleFile& file, const Choice& choice) {
    const auto used = used_by(file, choice);
    std::vector<std::string> all;
    NameIndex names;
    const auto add = [&](const std::string& name) {
        if (names.add(name, all.size()) == all.size()) all.push_back(name);
    };
    for (size_t k = 0; k < file.rules.size(); ++k) {
        if (!used.rules[k]) continue;
        add(file.rules[k].spectrum);
        for (const NotFeature& one : file.rules[k].nots)
            add(one.spectrum);
    }
    return all;
}

Plan plan_rules(RuleFile file, const Choice& choice, Bands bands, std::vector<Reference> references) {
    Plan plan;
    plan.file = std::move(file);
    plan.bands = std::move(bands);
    plan.references = std::move(references);
    plan.best = choice.best;
    const auto used = used_by(plan.file, choice);
    Planner planner(plan);
    for (size_t k = 0; k < plan.file.rules.size(); ++k)
        if (used.rules[k]) planner.add(k);
    if (plan.rules.empty()) {
        const auto& skipped = plan.skipped;
        if (skipped.empty()) throw Error("the requested groups have no rules");
        const Rule& first = plan.file.rules[skipped.front().first];
        throw Error("the scene does not support any of " + counted(skipped.size(), "rule") + "; '" +
                        first.name + "' (line " + std::to_string(first.line) + "): " + skipped.front().second,
                    "Windows are in nm, or in um where all numbers are under 100. gdal_hsi_info prints the "
                    "wavelengths of the scene.");
    }
    add_groups(plan, used, choice);
    keep_used_bands(plan);
    return plan;
}

} // namespace hsi::identify
