// SPDX-License-Identifier: MIT
// Identifies materials by rules on absorption features, as Tetracorder and MICA do:
//
//   R. N. Clark et al.: Imaging spectroscopy: Earth and planetary remote sensing with the USGS Tetracorder
//   and expert systems, J. Geophys. Res. 108 (E12), 2003, doi:10.1029/2002JE001847
//   R. F. Kokaly: PRISM: Processing Routines in IDL for Spectroscopic Measurements, USGS Open-File Report
//   2011-1155 (MICA)
//
// v is a value of a pixel, and the windows have a <= b < c <= d. x_l, y_l are the means of wavelength and
// value in [a, b]; x_r, y_r are the means in [c, d]. All n bands in [a, d] are divided by the line through
// both points. L is the result for the reference:
//   O = v / (y_l + s (x - x_l)),  s = (y_r - y_l)/(x_r - x_l)
//   E = 1 - min L if mean L < 1 (absorption), else max L - 1
//   S_AB = sum (A - mean A)(B - mean B),  b = S_OL/S_LL,  R2 = S_OL^2/(S_LL S_OO)
//   fit F = R2, or its root,  depth D = b E,  fd = F D
// The feature is present if y_l, y_r and the line at the first and the last band are above 0, S_OO >= 1e-12 n
// and b > 0. Otherwise F = D = 0. The continuum is a line instead of the hull of detect/fit, because
// published rules were tuned with lines.
//
// All decisions and values are computed in double precision, one pixel per SIMD lane, so results do not
// depend on tiles, threads or register widths.
#pragma once

#include "identify/rules.h"
#include "stream/operation.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::identify {

enum class Best { fit, depth, fd };

/// The bands of a scene.
struct Bands {
    std::vector<double> wavelengths;   ///< wavelengths in nm; NaN or not above 0: unknown
    std::vector<double> scale, offset; ///< v = stored * scale + offset; empty: 1 and 0
    double unit = 1;                   ///< value v that corresponds to reflectance 1
};
struct Reference {
    std::string name;             ///< name of a spectrum; case is ignored
    std::vector<double> spectrum; ///< one value per band; NaN: missing
};

/// The user's choice of groups and rules from a rule file.
struct Choice {
    std::vector<size_t> groups; ///< groups whose map is requested; empty: all groups
    std::vector<size_t> rules;  ///< rules to use; empty: all rules
    Best best = Best::fit;
};

/// The bands of a feature, [a, d], which are divided by one continuum.
struct Span {
    Windows windows{};
    std::vector<size_t> bands; ///< bands of the scene, by rising wavelength
    std::vector<double> x;     ///< wavelengths of the bands in nm
    /// Bands before `left` are in the left window. Bands from `right` on are in the right window.
    size_t left = 0, right = 0;
    double x_left = 0, x_right = 0;
    size_t slot = 0; ///< first of four slots: y_l, y_r, their mean, s
    bool is_like(const Span& o) const { return bands == o.bands && left == o.left && right == o.right; }
};
/// The shape of a reference in a span.
struct Fit {
    size_t span = 0;
    std::vector<double> shape; ///< L - mean L
    double squares = 0;        ///< S_LL
    double extent = 0;         ///< E
    double area = 0;           ///< area of |1 - L| by trapezoids (nm)
    bool peak = false;
    size_t slot = 0; ///< first of three slots: F, D, fd
};

/// The slots are the values of a pixel to which limits apply. Slot 0 is the constant 1. The next slots are
/// fit, depth and fd of the current rule. The slots of spans and fits follow.
namespace slots {
inline constexpr size_t one = 0, rule = 1, of_rule = 3, of_span = 4, of_fit = 3, first = rule + of_rule;
} // namespace slots
/// A condition on a pixel: slot >= least * other and slot <= greatest * other. A limit that is NaN is not
/// checked.
struct Check {
    size_t slot = 0, other = 0;
    double least = 0, greatest = 0;
    std::string text;  ///< such as "feature 1: depth/2"
    double factor = 1; ///< factor from the slot's value to the value in the rule
};
/// A feature, or a NOT (a feature that must be absent), that the plan uses.
struct Part {
    size_t fit = 0;
    double weight = 0;
    bool optional = false;
    std::string text;             ///< such as "feature 1" or "NOT 2"
    std::vector<Check> continuum; ///< checks that need only the span
    std::vector<Check> checks;    ///< checks that need fits
    std::vector<size_t> with;     ///< other fits that the checks need
    double chance = 0; ///< probability that white noise in the bands reaches the rule's minimum fit
};
struct RuleInUse {
    size_t rule = 0;   ///< index in the file, counted from 0
    size_t family = 0; ///< equal for the rules of a family; 0: no family
    std::vector<Part> features, nots;
    std::vector<Check> checks;
};
/// A group whose map is computed.
struct GroupInUse {
    size_t group = 0; ///< index in the file
    /// false: no map of this group is written, but other groups need the group.
    bool shown = true;
    std::vector<size_t> rules;         ///< indices in Plan::rules, in the order of the file
    std::vector<size_t> unless, where; ///< indices of rules in the file
    bool conditional = false;          ///< true if the group has a `where` condition
};

/// The rules and all data that are needed to apply them to the bands of a scene.
struct Plan {
    RuleFile file;
    Bands bands;
    std::vector<Reference> references;
    Best best = Best::fit;
    /// Bands of the scene that features use, in rising order; spans use indices into this list.
    std::vector<int> used;
    std::vector<Span> spans;
    std::vector<Fit> fits;
    size_t slots = slots::first; ///< total number of slots
    std::vector<RuleInUse> rules;
    std::vector<GroupInUse> groups; ///< in the order in which the groups are computed
    /// For each rule that is not used: its index in the file, and the reason.
    std::vector<std::pair<size_t, std::string>> skipped;
    /// For each part that is left out of a rule in use: the rule's index, and a text with the part and the
    /// reason.
    std::vector<std::pair<size_t, std::string>> left_out;

    /// Returns the groups that have a map, as indices of `groups`.
    std::vector<size_t> shown() const;
};

/// Makes the plan. `references` must have all spectra of spectra_of(), at all bands of the scene. In the
/// plan, the references and `bands` contain only the bands of Plan::used. \throws Error if a spectrum is
/// missing, or if no rule can be used.
Plan plan_rules(RuleFile file, const Choice& choice, Bands bands, std::vector<Reference> references);

/// Returns the names of the spectra that the chosen rules need, each once.
std::vector<std::string> spectra_of(const RuleFile& file, const Choice& choice);

/// The outputs of a pass in addition to the maps.
struct Outputs {
    bool stacked = false; ///< the maps are bands of one output
    bool scores = false;  ///< fit, depth and fd of each shown group
    bool centre = false; ///< position (nm) of the first feature of the winning rule, one band per shown group
    bool materials = false; ///< one band per rule in use
    Best value = Best::depth;
    /// `materials` includes pixels where the rule is accepted, even if it won no group.
    bool accepted = false;
};

/// The sums over all pixels with one label in the map of a group.
struct Tally {
    int64_t pixels = 0;
    double area = 0, fit = 0, depth = 0, fd = 0;
};

/// Identifies materials. The counts are complete after the pass.
class Identification : public stream::Operation {
  public:
    bool divides() const override { return true; }
    virtual int64_t valid() const = 0;
    virtual int64_t invalid() const = 0;
    /// Returns the sums for a label in the g-th shown group. Label 0 means unnamed pixels; other labels are
    /// numbers of rules in the file, counted from 1.
    virtual Tally tally(size_t g, size_t label) const = 0;
};

/// Creates the operation. Its first outputs are a label map for each shown group, or one output with all maps
/// as bands. A label is the number of the rule in the file, counted from 1; 0 marks an unnamed or invalid
/// pixel.
///
/// The other requested outputs follow. They are 0 in unnamed pixels and NaN in invalid pixels; a missing
/// centre is NaN. The cube has the bands `plan.used` in this order. A pixel is invalid if a band is invalid
/// or all bands are zero. `areas` has the area of a pixel (m^2) for each line of the scene, or one value for
/// all lines; empty: unknown.
std::unique_ptr<Identification> make_identification(std::shared_ptr<const Plan> plan, const Outputs& outputs,
                                                    std::vector<double> areas = {});

/// The result of a rule for a pixel.
struct Verdict {
    size_t rule = 0; ///< index in Plan::rules
    bool accepted = false;
    double fit = 0, depth = 0, fd = 0;
    std::string failed; ///< first condition that fails; empty: all conditions hold
    double value = 0;   ///< value that failed the condition; NaN if no condition failed
};
/// Returns the result of each rule of the plan for one pixel, with the reason if it is not accepted. `values`
/// has the pixel's stored values, one per band of plan.used.
std::vector<Verdict> explain(const Plan& plan, const std::vector<float>& values);

/// Returns the instruction set of the SIMD code.
const char* simd_target();

} // namespace hsi::identify
