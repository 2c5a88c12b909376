// SPDX-License-Identifier: MIT
// Rule files of gdal_hsi_identify: the absorption features that a material must show, and features that it
// must not show. The format is JSON with comments. It is either the project's own format ("gdal_hsi_rules")
// or the rules of CRAMM (key "rf").
#pragma once

#include "core/label_class.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::identify {

/// The quantity to which a limit applies. Limits of a whole rule allow only fit, depth and fd.
enum class Quantity { fit, depth, fd, left, mean, right, ratio, slope };
inline constexpr const char* quantity_names[] = {"fit",  "depth", "fd",    "left",
                                                 "mean", "right", "ratio", "slope"};

/// A range that includes both ends.
struct Limit {
    std::string key; ///< such as "depth" or "depth/1"
    Quantity quantity = Quantity::fit;
    /// Feature of the rule with which the quantity is compared, counted from 1; 0: no comparison.
    size_t over = 0;
    std::optional<double> least, greatest;
};

/// Limits of two windows in nm, in rising order. The continuum is a line from the mean of [0, 1] to the mean
/// of [2, 3].
using Windows = std::array<double, 4>;

enum class Role {
    must,       ///< The rule is skipped if the scene does not cover the feature.
    diagnostic, ///< The feature is required in a pixel, but left out if the scene does not cover it.
    /// The feature is left out if the scene does not cover it. It counts as 0 in a pixel that lacks it.
    optional,
};

struct Feature {
    Windows windows{};
    std::optional<double> weight; ///< weight of 0 or more; given for all features of a rule or for none
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
    std::vector<std::string> groups; ///< names of groups in RuleFile::groups; "*": every group
    std::optional<Colour> colour;
    std::vector<Feature> features; ///< at least one
    std::vector<NotFeature> nots;
    std::vector<Limit> limits;
    std::string family; ///< name of the rule's family; empty: no family
    /// Range of the position of the first feature (nm): minimum and maximum.
    std::optional<std::pair<double, double>> centre;
    int line = 0; ///< line of the rule in the file's text
};

struct Group {
    std::string name;
    std::vector<std::string> unless, where; ///< names of rules in earlier groups
};

struct RuleFile {
    bool root = false;                  ///< the fit is r instead of r^2
    std::vector<std::string> libraries; ///< names of libraries, as given in the file
    std::vector<Group> groups;          ///< in the order in which groups are computed; at least one
    std::vector<Rule> rules;            ///< at least one
    bool drops_centres = false;         ///< true if CRAMM's absorption_center_range is ignored
};

/// Reads the text of a rule file. `path` is used in messages. A file may have at most 65535 rules, 256
/// groups, and 100000 features and NOTs in total. \throws Error that names the line of the text, the part of
/// the file and the problem.
RuleFile read_rules(const std::string& text, const std::string& path);

/// Reads the colours of rules: {"name": [r, g, b]}. \throws Error that names the line of the text, the part
/// of the file and the problem.
std::vector<std::pair<std::string, Colour>> read_colours(const std::string& text, const std::string& path);

/// Returns, for each rule, the indices of its groups in rising order.
std::vector<std::vector<size_t>> groups_of_rules(const RuleFile& file);

} // namespace hsi::identify
