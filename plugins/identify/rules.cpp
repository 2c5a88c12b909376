// SPDX-License-Identifier: MIT
#include "identify/rules.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/json_places.h"
#include "core/name_index.h"
#include "core/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace hsi::identify {
namespace {

/// Returns whether the value is a text that files and messages can contain.
bool is_name(const Json& json) {
    if (!json.is_string()) return false;
    const auto& text = json.get_ref<const std::string&>();
    return !text.empty() &&
           std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; });
}

/// The file that is being read, and the positions of its parts.
struct File {
    std::string path;
    Json root;
    JsonPlaces places;

    [[noreturn]] void fail(const std::string& at, const std::string& what, std::string advice = {}) const {
        const auto place = places.find(at);
        throw Error(path + (place == places.end() ? "" : ", line " + std::to_string(place->second.line)) +
                        ": " + what,
                    std::move(advice));
    }
    int line(const std::string& at) const {
        const auto place = places.find(at);
        return place == places.end() ? 1 : place->second.line;
    }
};

File parsed(const std::string& text, const std::string& path) {
    File file{path, {}, {}};
    std::string fault;
    auto root = parse_json(text, fault, file.places);
    if (!root || !root->is_object())
        throw Error(path + (root ? " is not a JSON object" : " " + fault),
                    "A rule file begins with { and has the keys \"format\", \"version\" and \"rules\".");
    file.root = std::move(*root);
    return file;
}

/// An object of the file. Reading a member marks it as known. done() refuses all other members.
class Object {
  public:
    Object(const File& file, const Json& json, std::string at, std::string what)
        : m_file(file), m_json(json), m_at(std::move(at)), m_what(std::move(what)) {
        if (!json.is_object()) m_file.fail(m_at, m_what + " is not an object");
        m_known.emplace_back("comment");
    }
    [[noreturn]] void fail(const char* key, const std::string& what, std::string advice = {}) const {
        const bool there = m_json.contains(key);
        m_file.fail(there ? path_of(key) : m_at,
                    m_what + (m_what.empty() ? "\"" : ": \"") + key + "\" " + what, std::move(advice));
    }
    int line() const { return m_file.line(m_at); }
    std::string path_of(const std::string& key) const { return m_at + "/" + key; }

    /// Returns null if the member is missing or null.
    const Json* find(const char* key) {
        m_known.emplace_back(key);
        const auto found = m_json.find(key);
        return found == m_json.end() || found->is_null() ? nullptr : &*found;
    }
    std::string text(const char* key, std::string otherwise) {
        const Json* const value = find(key);
        if (value == nullptr) return otherwise;
        if (!is_name(*value)) fail(key, "is not a name");
        return value->get<std::string>();
    }
    std::string required_text(const char* key) {
        if (!m_json.contains(key)) fail(key, "is missing");
        return text(key, {});
    }
    /// Reads a name or a list of names.
    std::vector<std::string> texts(const char* key) {
        const Json* const value = find(key);
        if (value == nullptr) return {};
        std::vector<std::string> all;
        for (const Json& one : value->is_array() ? *value : Json::array({*value})) {
            if (!is_name(one)) fail(key, "is not a name or a list of names");
            all.push_back(one.get<std::string>());
        }
        return all;
    }
    std::optional<double> number(const char* key) {
        const Json* const value = find(key);
        if (value == nullptr) return {};
        if (!value->is_number()) fail(key, "is not a number");
        return value->get<double>();
    }
    /// Reads `count` numbers. Returns nullopt if the key is missing.
    std::optional<std::vector<double>> numbers(const char* key, size_t count) {
        const Json* const value = find(key);
        if (value == nullptr) return {};
        std::vector<double> all;
        if (value->is_array())
            for (const Json& one : *value)
                if (one.is_number()) all.push_back(one.get<double>());
        if (all.size() != count || value->size() != count)
            fail(key, "is not a list of " + std::to_string(count) + " numbers");
        return all;
    }
    /// Reads wavelengths in nm; if all numbers are below 100, they are in um.
    std::optional<std::vector<double>> wavelengths(const char* key, size_t count) {
        auto all = numbers(key, count);
        if (!all) return {};
        constexpr double most_um = 100, nm = 1000;
        const auto um = std::count_if(all->begin(), all->end(), [](double v) { return v < most_um; });
        if (um > 0 && um < static_cast<std::ptrdiff_t>(count))
            fail(key, "mixes units", "Numbers under 100 are um, larger numbers are nm: use one unit.");
        if (um > 0)
            for (double& v : *all)
                v *= nm;
        return all;
    }
    Windows windows(const char* key) {
        const auto w = wavelengths(key, 4);
        if (!w)
            fail(key, "is missing",
                 "Give four wavelengths: \"" + std::string(key) + "\": [2070, 2115, 2237, 2267] (nm).");
        const auto& v = *w;
        if (!(v[0] > 0 && v[0] <= v[1] && v[1] < v[2] && v[2] <= v[3]))
            fail(key,
                 v[1] >= v[2] && v[0] <= v[1] && v[2] <= v[3] ? "has windows that overlap"
                                                              : "is not in ascending order",
                 "Give a <= b < c <= d: the continuum joins the mean between a and b with the mean between c "
                 "and d.");
        return {v[0], v[1], v[2], v[3]};
    }
    /// Reads [least, greatest], where null marks an open end. Returns empty values if the key is missing.
    std::array<std::optional<double>, 2> limits(const char* key) {
        std::array<std::optional<double>, 2> ends;
        const Json* const value = find(key);
        if (value == nullptr) return ends;
        for (size_t k = 0; k < ends.size(); ++k) {
            const auto is_limit = [](const Json& v) { return v.is_null() || v.is_number(); };
            if (!value->is_array() || value->size() != 2 || !is_limit((*value)[k]))
                fail(key, "is not a pair of limits", "Write [least, greatest], with null for no limit.");
            if ((*value)[k].is_number()) ends[k] = (*value)[k].get<double>();
        }
        return ends;
    }
    /// Reads a list of objects.
    std::vector<Object> objects(const char* key, const std::string& one_is) {
        std::vector<Object> all;
        const Json* const value = find(key);
        if (value == nullptr) return all;
        if (!value->is_array()) fail(key, "is not a list");
        for (size_t k = 0; k < value->size(); ++k)
            all.emplace_back(m_file, (*value)[k], path_of(key) + "/" + std::to_string(k),
                             (m_what.empty() ? "" : m_what + ", ") + one_is + " " + std::to_string(k + 1));
        return all;
    }
    std::optional<Object> object(const char* key) {
        const Json* const value = find(key);
        if (value == nullptr) return {};
        return Object(m_file, *value, path_of(key), (m_what.empty() ? "\"" : m_what + ", \"") + key + "\"");
    }
    /// Returns the members in the order of the file.
    std::vector<std::string> keys() const {
        std::vector<std::string> all;
        for (const auto& [key, value] : m_json.items())
            all.push_back(key);
        const auto order = [&](const std::string& key) { return m_file.places.at(path_of(key)).order; };
        std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
        return all;
    }
    void call(const std::string& what) { m_what = what; }
    void done() const {
        for (const auto& [key, value] : m_json.items())
            if (std::find(m_known.begin(), m_known.end(), key) == m_known.end())
                m_file.fail(path_of(key),
                            m_what + (m_what.empty() ? "" : ": ") + "unknown key \"" + key + "\"",
                            did_you_mean(key, m_known));
    }

  private:
    const File& m_file;
    const Json& m_json;
    std::string m_at, m_what;
    std::vector<std::string> m_known;
};

// Limits
// ----------------------------------------------------------------------------------------------------------

void add_limit(Object& object, std::vector<Limit>& limits, const char* key, const std::string& name,
               Quantity quantity, size_t over, std::optional<double> least, std::optional<double> greatest) {
    if (least && greatest && *least > *greatest)
        object.fail(key, "has a least value above the greatest",
                    "Write [least, greatest], with null for no limit.");
    if (least || greatest) limits.push_back({name, quantity, over, least, greatest});
}

/// Reads "limits", such as {"depth/1": [0.3, null]}. `of` is a rule (sums = true), a feature or a NOT.
/// `features` is the number of features of the rule.
std::vector<Limit> read_limits(Object& of, bool sums, size_t features) {
    std::vector<Limit> limits;
    auto object = of.object("limits");
    if (!object) return limits;
    for (const auto& key : object->keys()) {
        if (key == "comment") continue;
        const auto slash = key.find('/');
        const auto* const begin = std::begin(quantity_names);
        const auto* const name =
            std::find(begin, sums ? begin + 3 : std::end(quantity_names), key.substr(0, slash));
        const auto quantity = static_cast<Quantity>(name - begin);
        size_t over = 0;
        bool known = name != (sums ? begin + 3 : std::end(quantity_names));
        if (known && slash != std::string::npos) {
            const auto number = to_number(key.substr(slash + 1));
            known = !sums && number && *number >= 1 && *number <= static_cast<double>(features) &&
                    *number == std::floor(*number) && quantity != Quantity::ratio &&
                    quantity != Quantity::slope;
            if (known) over = static_cast<size_t>(*number);
        }
        if (!known)
            object->fail(
                key.c_str(), "is an unknown limit",
                sums ? "Limits of a rule are fit, depth and fd."
                     : "Limits are fit, depth, fd, left, mean, right, ratio and slope; depth/1 compares with "
                       "feature 1 of the rule.");
        const auto ends = object->limits(key.c_str());
        add_limit(*object, limits, key.c_str(), key, quantity, over, ends[0], ends[1]);
    }
    return limits;
}

// The project's own format
// ----------------------------------------------------------------------------------------------------------

std::optional<Colour> read_colour(Object& of, const char* key) {
    const auto rgb = of.numbers(key, 3);
    if (!rgb) return {};
    Colour colour{0, 0, 0, 255};
    for (size_t k = 0; k < rgb->size(); ++k) {
        if (!((*rgb)[k] >= 0 && (*rgb)[k] <= 255)) of.fail(key, "is out of range (0 to 255)");
        if ((*rgb)[k] != std::floor((*rgb)[k]))
            of.fail(key, "has values that are not whole numbers (0 to 255)");
        colour[k] = static_cast<uint8_t>((*rgb)[k]);
    }
    return colour;
}

Feature read_feature(Object object, size_t features) {
    Feature feature;
    feature.windows = object.windows("windows");
    feature.weight = object.number("weight");
    if (feature.weight && *feature.weight < 0) object.fail("weight", "is negative");
    const auto role = object.text("role", "must");
    const char* const roles[] = {"must", "diagnostic", "optional"};
    const auto* const found = std::find(std::begin(roles), std::end(roles), role);
    if (found == std::end(roles))
        object.fail("role", "is '" + role + "'", "Roles are must, diagnostic and optional.");
    feature.role = static_cast<Role>(found - std::begin(roles));
    feature.limits = read_limits(object, false, features);
    object.done();
    return feature;
}

void check_weights(const Object& object, const Rule& rule) {
    const auto given = std::count_if(rule.features.begin(), rule.features.end(),
                                     [](const Feature& one) { return one.weight.has_value(); });
    if (given > 0 && given < static_cast<std::ptrdiff_t>(rule.features.size()))
        object.fail("features", "only partly have weights",
                    "Give weights to all features, or to no feature.");
}

Rule read_rule(Object object) {
    Rule rule;
    rule.name = object.required_text("name");
    object.call("rule '" + rule.name + "'");
    rule.line = object.line();
    rule.spectrum = object.text("spectrum", rule.name);
    rule.groups = object.texts("group");
    if (rule.groups.empty()) rule.groups = {"all"};
    rule.colour = read_colour(object, "colour");
    const auto features = object.objects("features", "feature");
    if (features.empty())
        object.fail("features", "is missing or empty", "Give the rule at least one feature.");
    for (const auto& one : features)
        rule.features.push_back(read_feature(one, features.size()));
    check_weights(object, rule);
    for (auto& one : object.objects("not", "NOT")) {
        NotFeature feature;
        feature.spectrum = one.text("spectrum", rule.spectrum);
        feature.windows = one.windows("windows");
        feature.limits = read_limits(one, false, features.size());
        one.done();
        rule.nots.push_back(std::move(feature));
    }
    rule.limits = read_limits(object, true, 0);
    rule.family = object.text("family", {});
    if (const auto centre = object.wavelengths("centre", 2)) {
        if (rule.family.empty()) object.fail("centre", "requires \"family\"");
        rule.centre = {(*centre)[0], (*centre)[1]};
        if (!((*centre)[0] < (*centre)[1])) object.fail("centre", "is not in ascending order");
    }
    object.done();
    return rule;
}

RuleFile read_own(const File& file) {
    Object root(file, file.root, "", "");
    if (root.required_text("format") != "gdal_hsi_rules")
        root.fail("format", "is not \"gdal_hsi_rules\"",
                  "Rule files of this format and of CRAMM (key \"rf\") are read.");
    if (root.number("version").value_or(0) != 1)
        root.fail("version", "is not 1", "A newer version of these tools may read it.");
    RuleFile rules;
    NameIndex names;
    const auto fit = root.text("fit", "r2");
    if (fit != "r2" && fit != "r") root.fail("fit", "is '" + fit + "'", "Fits are \"r2\" and \"r\".");
    rules.root = fit == "r";
    rules.libraries = root.texts("library");
    for (auto& one : root.objects("groups", "group")) {
        Group group;
        group.name = one.required_text("name");
        one.call("group '" + group.name + "'");
        if (group.name == "*") one.fail("name", "is '*', which means all groups");
        if (names.add(group.name, rules.groups.size()) != rules.groups.size())
            one.fail("name", "is already the name of an earlier group");
        group.unless = one.texts("unless");
        group.where = one.texts("where");
        one.done();
        rules.groups.push_back(std::move(group));
    }
    for (const auto& one : root.objects("rules", "rule"))
        rules.rules.push_back(read_rule(one));
    if (rules.rules.empty()) root.fail("rules", "is missing or empty");
    root.done();
    return rules;
}

// The format of CRAMM
// ----------------------------------------------------------------------------------------------------------

/// Reads windows and limits of a CRAMM feature. Other keys are ignored.
void read_cramm_limits(Object& of, std::vector<Limit>& limits, const char* depth, Quantity quantity,
                       size_t over) {
    add_limit(of, limits, "fit_constraint", "fit", Quantity::fit, 0, of.number("fit_constraint"), {});
    if (depth != nullptr)
        add_limit(of, limits, depth, over > 0 ? "depth/1" : "depth", quantity, over, of.number(depth), {});
}

Feature read_cramm_feature(Object object, bool& drops_centres) {
    Feature feature;
    feature.windows = object.windows("continuum_endpoints");
    feature.weight = object.number("feature_weight");
    if (feature.weight && *feature.weight < 0) object.fail("feature_weight", "is negative");
    if (auto ends = object.object("continuum_constraints"))
        for (const Quantity q : {Quantity::left, Quantity::mean, Quantity::right, Quantity::ratio}) {
            const std::string name = quantity_names[static_cast<size_t>(q)];
            const auto least = name + "_min", greatest = name + "_max";
            add_limit(*ends, feature.limits, least.c_str(), name, q, 0, ends->number(least.c_str()),
                      ends->number(greatest.c_str()));
        }
    read_cramm_limits(object, feature.limits, nullptr, Quantity::depth, 0);
    const auto depths = object.limits("depth_constraints");
    add_limit(object, feature.limits, "depth_constraints", "depth", Quantity::depth, 0, depths[0], depths[1]);
    drops_centres = drops_centres || object.find("absorption_center_range") != nullptr;
    return feature;
}

Rule read_cramm_rule(Object object, const std::string& name, bool& drops_centres) {
    Rule rule;
    rule.name = object.text("output_name", name);
    object.call("rule '" + rule.name + "'");
    rule.line = object.line();
    rule.spectrum = rule.name;
    if (auto reference = object.object("reference"))
        rule.spectrum = reference->text("reflectance_record", rule.name);
    rule.groups = {"all"};
    for (const auto& one : object.objects("diagnostic_features", "feature"))
        rule.features.push_back(read_cramm_feature(one, drops_centres));
    if (rule.features.empty()) object.fail("diagnostic_features", "is missing or empty");
    check_weights(object, rule);
    const auto ratio = object.number("max_depth_ratio_feat1_over_feat0");
    if (ratio && rule.features.size() > 1)
        add_limit(object, rule.features[1].limits, "max_depth_ratio_feat1_over_feat0", "depth/1",
                  Quantity::depth, 1, {}, ratio);
    const struct {
        const char *list, *depth;
        size_t over;
    } kinds[] = {{"not_absolute_features", "absolute_depth_constraint", 0},
                 {"not_relative_features", "relative_depth_threshold", 1}};
    for (const auto& kind : kinds)
        for (auto& one : object.objects(kind.list, "NOT")) {
            NotFeature feature;
            feature.spectrum = one.required_text("reflectance_record");
            feature.windows = one.windows("continuum_endpoints");
            read_cramm_limits(one, feature.limits, kind.depth, Quantity::depth, kind.over);
            rule.nots.push_back(std::move(feature));
        }
    if (auto sums = object.object("weighted_constraints")) {
        const auto limit = [&](Quantity q, const char* least, const char* greatest) {
            add_limit(*sums, rule.limits, least, quantity_names[static_cast<size_t>(q)], q, 0,
                      sums->number(least), greatest != nullptr ? sums->number(greatest) : std::nullopt);
        };
        limit(Quantity::fit, "min_weighted_fit", nullptr);
        limit(Quantity::depth, "min_weighted_depth", "max_weighted_depth");
        limit(Quantity::fd, "min_fit_depth_product", nullptr);
    }
    return rule;
}

RuleFile read_cramm(const File& file) {
    Object root(file, file.root, "", "");
    RuleFile rules;
    auto all = root.object("rf");
    if (!all) root.fail("rf", "has no rules");
    for (const auto& name : all->keys())
        rules.rules.push_back(read_cramm_rule(*all->object(name.c_str()), name, rules.drops_centres));
    if (rules.rules.empty()) root.fail("rf", "has no rules");
    return rules;
}

// Checks for both formats
// ----------------------------------------------------------------------------------------------------------

void check_names(const File& file, const RuleFile& rules) {
    NameIndex names;
    for (size_t k = 0; k < rules.rules.size(); ++k)
        if (names.add(rules.rules[k].name, k) != k)
            throw Error(file.path + ", line " + std::to_string(rules.rules[k].line) +
                            ": two rules are called '" + rules.rules[k].name + "'",
                        "Rename one of them, and give its \"spectrum\".");
}

void add_groups(RuleFile& rules) {
    NameIndex names;
    for (size_t g = 0; g < rules.groups.size(); ++g)
        names.add(rules.groups[g].name, g);
    for (const Rule& rule : rules.rules)
        for (const auto& name : rule.groups)
            if (name != "*" && names.add(name, rules.groups.size()) == rules.groups.size())
                rules.groups.push_back({name, {}, {}});
    if (rules.groups.empty()) rules.groups.push_back({"all", {}, {}});
}

/// Throws if the rule file has more rules, groups or features than the program accepts.
void check_counts(const std::string& path, const RuleFile& rules) {
    constexpr size_t most_rules = 65535, // classes of a map
        most_groups = 256, most_features = 100000;
    const auto refuse = [&](const std::string& what, size_t most) {
        throw Error(path + " has " + what + ", but at most " + std::to_string(most) + " are read",
                    "Divide it into several files.");
    };
    size_t features = 0;
    for (const Rule& rule : rules.rules)
        features += rule.features.size() + rule.nots.size();
    if (rules.rules.size() > most_rules) refuse(counted(rules.rules.size(), "rule"), most_rules);
    if (rules.groups.size() > most_groups) refuse(counted(rules.groups.size(), "group"), most_groups);
    if (features > most_features) refuse(counted(features, "feature") + " and NOTs", most_features);
}

/// Returns the names of the rules in a group's conditions.
std::vector<std::string> conditions_of(const Group& group) {
    auto all = group.unless;
    all.insert(all.end(), group.where.begin(), group.where.end());
    return all;
}

/// The groups and rules in the file, with an index of the rules' names.
struct Members {
    NameIndex rules;
    std::vector<std::vector<size_t>> groups; ///< groups of each rule

    explicit Members(const RuleFile& file) : groups(groups_of_rules(file)) {
        for (size_t k = 0; k < file.rules.size(); ++k)
            rules.add(file.rules[k].name, k);
    }
    bool is_in(size_t rule, size_t group) const {
        return std::binary_search(groups[rule].begin(), groups[rule].end(), group);
    }
};

/// Returns the groups that depend on group g, either through their own conditions or through other groups.
std::vector<bool> waiting_for(const RuleFile& file, const Members& members, size_t g) {
    const size_t count = file.groups.size();
    // [dependent group][group it depends on]
    std::vector<std::vector<bool>> waits(count, std::vector<bool>(count));
    for (size_t one = 0; one < count; ++one)
        for (const auto& name : conditions_of(file.groups[one]))
            if (const auto rule = members.rules.find(name))
                for (const size_t other : members.groups[*rule])
                    waits[one][other] = true;
    std::vector<bool> found(count);
    std::vector<size_t> next{g};
    while (!next.empty()) {
        const size_t other = next.back();
        next.pop_back();
        for (size_t one = 0; one < count; ++one)
            if (waits[one][other] && !found[one]) {
                found[one] = true;
                next.push_back(one);
            }
    }
    return found;
}

/// Throws the error for a condition of group g on a rule that is in no earlier group.
[[noreturn]] void refuse_order(const File& file, const RuleFile& rules, const Members& members, size_t g,
                               const char* key, size_t number) {
    const Rule& rule = rules.rules[number];
    const std::string &name = rules.groups[g].name, at = "/groups/" + std::to_string(g) + "/" + key,
                      what = "group '" + name + "', \"" + key + "\": ";
    const auto waiting = waiting_for(rules, members, g);
    for (size_t other = g; other < rules.groups.size(); ++other)
        if (members.is_in(number, other) && (other == g || waiting[other]))
            file.fail(at,
                      what + (other == g ? "the rule '" + rule.name + "' is in the same group"
                                         : "the groups '" + name + "' and '" + rules.groups[other].name +
                                               "' depend on each other"),
                      "Groups are evaluated one after another: remove one of the conditions.");
    file.fail(at, what + "the rule '" + rule.name + "' is not in an earlier group",
              "Groups are evaluated in the order of \"groups\": list the group of '" + rule.name +
                  "' first.");
}

/// Checks that `unless` and `where` name rules of earlier groups.
void check_conditions(const File& file, const RuleFile& rules) {
    const Members members(rules);
    for (size_t g = 0; g < rules.groups.size(); ++g)
        for (const auto* const key : {"unless", "where"})
            for (const auto& name :
                 key == std::string("unless") ? rules.groups[g].unless : rules.groups[g].where) {
                const auto rule = members.rules.find(name);
                if (!rule) {
                    std::vector<std::string> names;
                    for (const Rule& one : rules.rules)
                        names.push_back(one.name);
                    file.fail("/groups/" + std::to_string(g) + "/" + key,
                              "group '" + rules.groups[g].name + "', \"" + key + "\": no rule is called '" +
                                  name + "'",
                              did_you_mean(name, names));
                }
                const auto& in = members.groups[*rule];
                if (in.empty() || in.front() >= g) refuse_order(file, rules, members, g, key, *rule);
            }
}

} // namespace

std::vector<std::vector<size_t>> groups_of_rules(const RuleFile& file) {
    NameIndex names;
    for (size_t g = 0; g < file.groups.size(); ++g)
        names.add(file.groups[g].name, g);
    std::vector<std::vector<size_t>> all(file.rules.size());
    for (size_t k = 0; k < all.size(); ++k) {
        std::vector<size_t>& groups = all[k];
        for (const auto& name : file.rules[k].groups)
            if (name == "*") {
                groups.resize(file.groups.size());
                std::iota(groups.begin(), groups.end(), size_t{0});
                break;
            } else if (const auto g = names.find(name)) {
                groups.push_back(*g);
            }
        std::sort(groups.begin(), groups.end());
        groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    }
    return all;
}

RuleFile read_rules(const std::string& text, const std::string& path) {
    const File file = parsed(text, path);
    auto rules = file.root.contains("rf") ? read_cramm(file) : read_own(file);
    check_names(file, rules);
    add_groups(rules);
    check_counts(path, rules);
    check_conditions(file, rules);
    return rules;
}

std::vector<std::pair<std::string, Colour>> read_colours(const std::string& text, const std::string& path) {
    const File file = parsed(text, path);
    Object root(file, file.root, "", "");
    std::vector<std::pair<std::string, Colour>> colours;
    for (const auto& name : root.keys())
        if (const auto colour = read_colour(root, name.c_str())) colours.emplace_back(name, *colour);
    return colours;
}

} // namespace hsi::identify
