// SPDX-License-Identifier: MIT
// Mistakes in rule files: the message has the line, the mistake, and the advice.
#include "identify/rules.h"

#include "core/error.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hsi::test {
namespace {

/// Returns a file whose third line is `groups`, whose fifth line is the rule "clay" with `members`, and whose
/// sixth line is the rule "leaf".
std::string file_of(const std::string& members, const std::string& groups = R"("comment": "none",)",
                    const std::string& root = "") {
    return "// made\n{\"format\": \"gdal_hsi_rules\", \"version\": 1, " + root + "\n" + groups +
           "\n\"rules\": [\n{\"name\": \"clay\", \"group\": \"a\", " + members +
           "},\n{\"name\": \"leaf\", \"group\": \"b\", \"features\": [{\"windows\": [530, 560, 740, "
           "790]}]}]}";
}
std::string feature(const std::string& members) { return "\"features\": [{" + members + "}]"; }
const std::string good = R"("windows": [2070, 2120, 2260, 2290])";

struct Mistake {
    std::string text;
    int line; ///< 0 if the message has no line
    const char *what, *advice;
};

void expect(const Mistake& mistake) {
    try {
        identify::read_rules(mistake.text, "r.json");
        ADD_FAILURE() << mistake.text << " was read";
    } catch (const Error& e) {
        const std::string what = e.what(),
                          begin =
                              "r.json" + (mistake.line > 0 ? ", line " + std::to_string(mistake.line) + ": "
                                                           : std::string());
        EXPECT_EQ(what.substr(0, begin.size()), begin);
        EXPECT_NE(what.find(mistake.what), std::string::npos) << what;
        EXPECT_NE(e.advice().find(mistake.advice), std::string::npos) << what << "\n" << e.advice();
    }
}

TEST(Rules, MistakesInTheFile) {
    const char* const begins = "A rule file begins with {";
    expect({"{\n", 0, "is not valid JSON, or is cut off", begins});
    expect({"[1]", 0, "is not a JSON object", begins});
    expect({"{}", 0, "\"format\" is missing", ""});
    expect({R"({"format": "other"})", 1, "\"format\" is not \"gdal_hsi_rules\"", "CRAMM"});
    expect({R"({"format": "gdal_hsi_rules", "version": 2})", 1, "\"version\" is not 1", "newer version"});
    expect({R"({"format": "gdal_hsi_rules", "version": 1, "rules": []})", 1, "\"rules\" is missing or empty",
            ""});
    expect({file_of(feature(good), R"("fits": "r",)"), 3, "unknown key \"fits\"", "fit"});
    expect({file_of(feature(good), R"("fit": "r3",)"), 3, "\"fit\" is 'r3'", "\"r2\" and \"r\""});
}

TEST(Rules, MistakesInARule) {
    const char* const order = "Give a <= b < c <= d";
    const struct {
        std::string members;
        const char *what, *advice;
    } rows[] = {
        {feature(good) + R"(, "color": [1, 2, 3])", "rule 'clay': unknown key \"color\"", "colour"},
        {feature(good) + R"(, "colour": [1, 2, 300])", "\"colour\" is out of range (0 to 255)", ""},
        {feature(good) + R"(, "colour": [0.5, 2, 3])",
         "\"colour\" has values that are not whole numbers (0 to 255)", ""},
        {feature(good + R"(, "window": 1)"), "rule 'clay', feature 1: unknown key \"window\"", "windows"},
        {R"("features": [])", "\"features\" is missing or empty", "at least one feature"},
        {feature(""), "\"windows\" is missing", "[2070, 2115, 2237, 2267] (nm)"},
        {feature(R"("windows": [2070, 2250, 2240, 2290])"), "\"windows\" has windows that overlap", order},
        {feature(R"("windows": [2290, 2260, 2120, 2070])"), "\"windows\" is not in ascending order", order},
        {feature(R"("windows": [2070, 2120, 2260])"), "\"windows\" is not a list of 4 numbers", ""},
        {feature(R"("windows": [2.07, 2.12, 2260, 2290])"), "\"windows\" mixes units",
         "Numbers under 100 are um, larger numbers are nm"},
        {feature(R"("windows": [0, 1, 2, 3])"), "\"windows\" is not in ascending order", order},
        {feature(good + R"(, "role": "maybe")"), "\"role\" is 'maybe'", "must, diagnostic and optional"},
        {feature(good + R"(, "weight": -1)"), "\"weight\" is negative", ""},
        {feature(good + R"(, "weight": "1")"), "\"weight\" is not a number", ""},
        {R"("features": [{)" + good + R"(, "weight": 1}, {)" + good + "}]",
         "\"features\" only partly have weights", "Give weights to all features, or to no feature."},
        {feature(good) + R"(, "limits": {"fit": [0.5, 0.4]})", "\"fit\" has a least value above the greatest",
         "[least, greatest]"},
        {feature(good) + R"(, "limits": {"left": [0.5, null]})", "\"left\" is an unknown limit",
         "Limits of a rule are fit, depth and fd."},
        {feature(good + R"(, "limits": {"depth/2": [0, 1]})"), "\"depth/2\" is an unknown limit", "depth/1"},
        {feature(good + R"(, "limits": {"ratio/1": [0, 1]})"), "\"ratio/1\" is an unknown limit", "depth/1"},
        {feature(good + R"(, "limits": {"depth": 0.1})"), "\"depth\" is not a pair of limits",
         "[least, greatest]"},
        {feature(good) + R"(, "not": [{"windows": [1, 2, 3]}])", "NOT 1: \"windows\" is not a list of 4", ""},
        {feature(good) + R"(, "centre": [2190, 2210])", "\"centre\" requires \"family\"", ""},
        {feature(good) + R"(, "family": "x", "centre": [2210, 2190])", "\"centre\" is not in ascending order",
         ""},
        {feature(good) + R"(, "spectrum": "")", "\"spectrum\" is not a name", ""},
        {feature(good) + R"(, "spectrum": "a\u0000b")", "\"spectrum\" is not a name", ""},
        {R"("features": [1])", "rule 'clay', feature 1 is not an object", ""},
    };
    for (const auto& row : rows)
        expect({file_of(row.members), 5, row.what, row.advice});
    auto twice = file_of(feature(good));
    twice.replace(twice.find("leaf"), 4, "CLAY");
    expect({twice, 6, "two rules are called 'CLAY'", "give its \"spectrum\""});
}

TEST(Rules, GroupsAndTheirConditions) {
    const char* const remove = "remove one of the conditions";
    const struct {
        const char *groups, *what, *advice;
    } rows[] = {
        {R"("groups": [{"name": "a"}, {"name": "A"}],)", "\"name\" is already the name of an earlier group",
         ""},
        {R"("groups": [{"name": "*"}],)", "\"name\" is '*', which means all groups", ""},
        {R"("groups": [{"name": "a", "unless": ["leav"]}],)", "no rule is called 'leav'", "leaf"},
        {R"("groups": [{"name": "a", "unless": ["leaf"]}, {"name": "b"}],)",
         "group 'a', \"unless\": the rule 'leaf' is not in an earlier group",
         "list the group of 'leaf' first"},
        {R"("groups": [{"name": "a", "where": "leaf"}],)",
         "group 'a', \"where\": the rule 'leaf' is not in an earlier group",
         "list the group of 'leaf' first"},
        {R"("groups": [{"name": "a", "unless": ["Clay"]}],)", "the rule 'clay' is in the same group", remove},
        {R"("groups": [{"name": "a", "unless": ["leaf"]}, {"name": "b", "unless": ["clay"]}],)",
         "group 'a', \"unless\": the groups 'a' and 'b' depend on each other", remove},
        {R"("groups": [{"name": "a", "where": ["leaf"]}, {"name": "b", "unless": ["clay"]}],)",
         "the groups 'a' and 'b' depend on each other", remove},
    };
    for (const auto& row : rows)
        expect({file_of(feature(good), row.groups), 3, row.what, row.advice});
    const auto file = identify::read_rules(
        file_of(feature(good), R"("groups": [{"name": "b"}, {"name": "a", "unless": ["LEAF"]}],)"), "r.json");
    ASSERT_EQ(file.groups.size(), 2u);
    EXPECT_EQ(file.groups.back().unless.front(), "LEAF");
    EXPECT_EQ(file.rules.front().line, 5);
}

/// Returns a file of `count` rules like "leaf", which is one of them; each rule has these members.
std::string file_of_rules(size_t count, const std::string& members) {
    std::string text = R"({"format": "gdal_hsi_rules", "version": 1, "rules": [)";
    for (size_t k = 0; k < count; ++k)
        text += (k > 0 ? "," : "") + ("{\"name\": \"n" + std::to_string(k)) + "\", " + members + "}";
    return text + "]}";
}

/// A list from strangers may be long. The time must grow in proportion to the list.
TEST(Rules, LongFiles) {
    const auto file = identify::read_rules(file_of_rules(60000, feature(good)), "r.json");
    ASSERT_EQ(file.rules.size(), 60000u);
    const auto groups = identify::groups_of_rules(file);
    EXPECT_EQ(groups.back(), std::vector<size_t>{0});
    std::string one_by_one, features = good;
    for (size_t k = 0; k < 257; ++k)
        one_by_one += (k > 0 ? ", \"g" : "\"g") + std::to_string(k) + "\"";
    for (size_t k = 1; k < 10; ++k)
        features += "}, {" + good;
    const char* const divide = "Divide it into several files.";
    expect({file_of_rules(65536, feature(good)), 0, "65536 rules, but at most 65535 are read", divide});
    expect({file_of_rules(1, feature(good) + ", \"group\": [" + one_by_one + "]"), 0,
            "257 groups, but at most 256 are read", divide});
    expect({file_of_rules(10001, feature(features)), 0,
            "100010 features and NOTs, but at most 100000 are read", divide});
}

TEST(Rules, GroupsOfRules) {
    identify::RuleFile file;
    file.groups = {{"a", {}, {}}, {"b", {}, {}}, {"C", {}, {}}};
    file.rules.resize(3);
    file.rules[0].groups = {"c", "A", "c"};
    file.rules[1].groups = {"b", "*"};
    file.rules[2].groups = {"none"};
    EXPECT_EQ(identify::groups_of_rules(file), (std::vector<std::vector<size_t>>{{0, 2}, {0, 1, 2}, {}}));
}

} // namespace
} // namespace hsi::test
