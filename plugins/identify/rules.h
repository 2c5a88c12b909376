// SPDX-License-Identifier: MIT
// Rule files of gdal_hsi_identify: the absorption features that a material must show, and those that it must
// not. JSON with comments, in our own format ("gdal_hsi_rules") or with the rules of CRAMM (key "rf").
#pragma once

#include "core/label_class.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::identify {

/// The quantity that a limit applies to. Rules allow only fit, depth and fd.
enum class Quantity { fit, depth, fd, left, mean, right, ratio, slope };
inline constexpr const char* quantity_names[] = {"fit",  "depth", "fd",    "left",
                                                 "mean", "right", "ratio", "slope"};

/// A range that includes both ends.
struct Limit {
    std::string key; ///< "depth", "depth/1"
    Quantity quantity = Quantity::fit;
    size_t over = 0; ///< the feature of the rule with which the quantity is compared, from 1 on; 0: none
    std::optional<double> least, greatest;
};

/// The continuum is a line from the mean of [0, 1] to the mean of [2, 3], rising (nm).
using Windows = std::array<double, 4>;

enum class Role {
    must,       ///< the rule requires it in the scene
    diagnostic, ///< as must, but left out if the scene does not cover it
    optional,   ///< also left out; counts as 0 if a pixel does not have it
};

struct Feature {
    Windows windows{};
    std::optional<double> weight; ///< 0 or more; given for all features of a rule or for none
    Role role = Role::must;
    std::vector<Limit> limits;
};

/// A feature that must be absent.
struct NotFeature {
    std::string spectrum;
    Windows windows{};
    std::vector<Limit> limits;
};

struct Rule {
    std::string name, spectrum;
    std::vector<std::string> groups; ///< as in RuleFile::groups; "*": every group
    std::optional<Colour> colour;
    std::vector<Feature> features; ///< at least one
    std::vector<NotFeature> nots;
    std::vector<Limit> limits;
    std::string family;                              ///< empty: no family
    std::optional<std::pair<double, double>> centre; ///< of the first feature (nm): minimum and maximum
    int line = 0;                                    ///< text line in the file
};

struct Group {
    std::string name;
    std::vector<std::string> unless, where; ///< names of rules of earlier groups
};

struct RuleFile {
    bool root = false;                  ///< the fit is r instead of r^2
    std::vector<std::string> libraries; ///< as the file names them
    std::vector<Group> groups;          ///< in the order in which they are decided; at least one
    std::vector<Rule> rules;            ///< at least one
    bool drops_centres = false;         ///< CRAMM's absorption_center_range is ignored
};

/// Reads rules; `path` is for messages. A file has at most 65535 rules and 256 groups, and its rules at most
/// 100000 features and NOTs in total.
/// \throws Error that names the text line, the part of the file and the fault.
RuleFile read_rules(const std::string& text, const std::string& path);

/// Reads colours by the names of rules: {"name": [r, g, b]}. \throws Error likewise.
std::vector<std::pair<std::string, Colour>> read_colours(const std::string& text, const std::string& path);

/// Returns the indices of each rule's groups, rising.
std::vector<std::vector<size_t>> groups_of_rules(const RuleFile& file);

} // namespace hsi::identify
