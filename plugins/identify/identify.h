// SPDX-License-Identifier: MIT
// Identifies materials by rules on absorption features, as Tetracorder and MICA do:
//
//   R. N. Clark et al.: Imaging spectroscopy: Earth and planetary remote sensing with the USGS Tetracorder
//   and expert systems, J. Geophys. Res. 108 (E12), 2003, doi:10.1029/2002JE001847
//   R. F. Kokaly: PRISM: Processing Routines in IDL for Spectroscopic Measurements, USGS Open-File Report
//   2011-1155 (MICA)
//
// v: values of a pixel; windows a <= b < c <= d. x_l, y_l are the means of wavelength and value in [a, b],
// x_r, y_r those in [c, d]. All n bands in [a, d] are divided by the line through both points; L is the same
// for the reference:
//   O = v / (y_l + s (x - x_l)),  s = (y_r - y_l)/(x_r - x_l)
//   E = 1 - min L if mean L < 1 (absorption), else max L - 1
//   S_AB = sum (A - mean A)(B - mean B),  b = S_OL/S_LL,  R2 = S_OL^2/(S_LL S_OO)
//   fit F = R2, or its root,  depth D = b E,  fd = F D
// The feature is present if y_l, y_r and the line at the first and the last band are above 0, S_OO >= 1e-12 n
// and b > 0; otherwise F = D = 0. The continuum is a line, not the hull of detect/fit, because published
// rules were tuned with lines.
//
// All decisions and values are computed in double precision, one pixel per lane, so results do not depend on
// tiles, threads or register widths.
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

/// The bands of a scene, and the references at these bands.
struct Bands {
    std::vector<double> wavelengths;   ///< nm; NaN or not above 0: unknown
    std::vector<double> scale, offset; ///< v = stored * scale + offset; empty: 1 and 0
    double unit = 1;                   ///< v for reflectance 1
};
struct Reference {
    std::string name;             ///< name of a spectrum; case is ignored
    std::vector<double> spectrum; ///< by band; NaN: missing
};

/// The part of a rule file that is used.
struct Choice {
    std::vector<size_t> groups; ///< groups whose map is requested; empty: all
    std::vector<size_t> rules;  ///< empty: all
    Best best = Best::fit;
};

/// Bands with one continuum.
struct Span {
    Windows windows{};
    std::vector<size_t> bands; ///< of the scene, by rising wavelength
    std::vector<double> x;     ///< nm
    size_t left = 0,
           right = 0; ///< bands before `left` are in the left window, bands from `right` on in the right
    double x_left = 0, x_right = 0;
    size_t slot = 0; ///< y_l, y_r, their mean, s
    bool is_like(const Span& o) const { return bands == o.bands && left == o.left && right == o.right; }
};
/// A reference in a span.
struct Fit {
    size_t span = 0;
    std::vector<double> shape; ///< L - mean L
    double squares = 0;        ///< S_LL
    double extent = 0;         ///< E
    double area = 0;           ///< of |1 - L| by trapezoids (nm)
    bool peak = false;
    size_t slot = 0; ///< F, D, fd
};

/// Values of a pixel that limits apply to: 1, then fit, depth and fd of the current rule, then those of spans
/// and fits.
namespace slots {
inline constexpr size_t one = 0, rule = 1, of_rule = 3, of_span = 4, of_fit = 3, first = rule + of_rule;
} // namespace slots
/// Requires slot >= least * other and slot <= greatest * other; NaN: no limit.
struct Check {
    size_t slot = 0, other = 0;
    double least = 0, greatest = 0;
    std::string text;  ///< "feature 1: depth/2"
    double factor = 1; ///< from the slot to the value that the rule refers to
};
/// A feature or a NOT in use.
struct Part {
    size_t fit = 0;
    double weight = 0;
    bool optional = false;
    std::string text;             ///< "feature 1", "NOT 2"
    std::vector<Check> continuum; ///< checks that need only the span
    std::vector<Check> checks;    ///< checks that need fits
    std::vector<size_t> with;     ///< further fits that checks compare with
    double chance = 0;            ///< probability that white noise in the bands has the rule's minimum fit
};
struct RuleInUse {
    size_t rule = 0;   ///< index in the file, from 0
    size_t family = 0; ///< equal for rules of one family; 0: none
    std::vector<Part> features, nots;
    std::vector<Check> checks;
};
/// A group whose map is decided.
struct GroupInUse {
    size_t group = 0;                  ///< index in the file
    bool shown = true;                 ///< false: only other groups need it
    std::vector<size_t> rules;         ///< indices in Plan::rules, in the order of the file
    std::vector<size_t> unless, where; ///< rules of the file
    bool conditional = false;          ///< whether there is a `where`
};

/// All computations, at the bands of a scene.
struct Plan {
    RuleFile file;
    Bands bands;
    std::vector<Reference> references;
    Best best = Best::fit;
    std::vector<int> used; ///< bands of the scene that features use, rising; spans use indices in this list
    std::vector<Span> spans;
    std::vector<Fit> fits;
    size_t slots = slots::first; ///< the number of all slots
    std::vector<RuleInUse> rules;
    std::vector<GroupInUse> groups;                      ///< in the order in which they are decided
    std::vector<std::pair<size_t, std::string>> skipped; ///< rules of the file that are not used, and why
    std::vector<std::pair<size_t, std::string>>
        left_out; ///< rules in use, the part that is left out, and why

    /// Returns the groups with a map, as indices of `groups`.
    std::vector<size_t> shown() const;
};

/// Plans the rules. `references`: all of spectra_of(). Afterwards the references and `bands` contain only the
/// bands of `used`. \throws Error if a spectrum is missing, and if no rule can be used.
Plan plan_rules(RuleFile file, const Choice& choice, Bands bands, std::vector<Reference> references);

/// Returns the spectra that the rules of a choice need, each once.
std::vector<std::string> spectra_of(const RuleFile& file, const Choice& choice);

/// Further outputs of a pass.
struct Outputs {
    bool stacked = false;   ///< the maps are bands of one output
    bool scores = false;    ///< fit, depth and fd of each shown group
    bool centre = false;    ///< position (nm) of the winner's first feature, one band per shown group
    bool materials = false; ///< one band per rule in use
    Best value = Best::depth;
    bool accepted = false; ///< materials where the rule is accepted, even if it won no group
};

/// The sums for a label of a group.
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
    /// Returns the counts of shown group g. label 0: unnamed pixels, else the number of the rule in the file.
    virtual Tally tally(size_t g, size_t label) const = 0;
};

/// Outputs: a label map for each shown group (the number of the rule in the file, from 1 on; 0: none, or an
/// invalid pixel), or all maps as bands of one output. Then the other requested outputs, 0 in unnamed and NaN
/// in invalid pixels; a missing centre is NaN. The cube has the bands `plan.used` in their order. A pixel is
/// invalid if a band is invalid or all are zero. areas: the area of a pixel of each line of the scene (m^2);
/// one value for all lines; empty: unknown.
std::unique_ptr<Identification> make_identification(std::shared_ptr<const Plan> plan, const Outputs& outputs,
                                                    std::vector<double> areas = {});

/// The result of a rule for a pixel.
struct Verdict {
    size_t rule = 0; ///< index in Plan::rules
    bool accepted = false;
    double fit = 0, depth = 0, fd = 0;
    std::string failed; ///< the first condition that fails; empty: all hold
    double value = 0;   ///< value of that condition; NaN without one
};
/// Explains the result of each rule. values: stored values, one per band of plan.used.
std::vector<Verdict> explain(const Plan& plan, const std::vector<float>& values);

/// Returns the instruction set of the SIMD code.
const char* simd_target();

} // namespace hsi::identify
