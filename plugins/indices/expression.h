// SPDX-License-Identifier: MIT
// Expressions over the spectrum of a pixel: "(r800-r670)/(r800+r670)", "edge(r[680:750])".
//
// Operators from lowest to highest precedence:  || ; && ; < <= > >= == != ; + - ; * / ; unary + - ; ^ or **.
// The power operator groups from the right, so -a^2 is -(a^2). Comparisons and logical operators give 1 or 0.
// All values are doubles, and NaN is nodata. Every operation with a nodata operand gives nodata. The
// exception is `if`, which evaluates only the chosen branch. Division by 0, logarithms of values <= 0, roots
// of negative values and results beyond the range of Float32 also give nodata.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace hsi::indices {

/// A value that an expression reads from a pixel.
struct Operand {
    enum class Of {
        wavelength, ///< the value at wavelength `from`
        band,       ///< the value of the band with number `from`
        /// Mean of the bands from `from` to `to`, both included. The quantities below also refer to these
        /// bands.
        mean,
        sum,
        least,
        greatest,
        deviation,
        slope,
        area,
        edge,
        least_at,
        greatest_at,
    };
    Of of = Of::wavelength;
    double from = 0, to = 0; ///< wavelengths in nm, or band numbers counted from 1
    std::string text;        ///< the operand as written in the expression
    bool is_range() const { return of > Of::band; }
};

/// The number of pixels that are processed together.
inline constexpr size_t block = 128;

class Expression {
  public:
    /// Parses the text. \throws UsageError if the text is not an expression or has more than 10,000
    /// characters; the message has the text and the column of the error, counted from 1.
    explicit Expression(std::string text);
    const std::string& text() const { return m_text; }
    /// Returns the operands, each once.
    const std::vector<Operand>& operands() const { return m_operands; }
    /// Returns the number of operands, numbers and operations in the text.
    size_t steps() const { return m_steps.size(); }
    /// Returns the number of rows of `block` values that evaluate() needs.
    size_t depth() const { return m_depth; }
    /// Evaluates the expression. `values` has one row of `block` values for every operand. The result is in
    /// the first row of `stack`.
    void evaluate(const double* values, double* stack) const;
    /// Returns the text with each operand replaced by name(index of the operand).
    std::string with_operands(const std::function<std::string(size_t)>& name) const;

  private:
    friend class Parser;
    enum class Act {
        number,
        operand, // no arguments
        minus,
        absolute,
        root,
        exponential,
        logarithm,
        logarithm10,
        hyperbolic,
        add,
        subtract,
        multiply,
        divide,
        power,
        less,
        less_equal,
        more,
        more_equal,
        equal,
        unequal,
        both,
        either,
        smaller,
        larger,
        choose, // three arguments
    };
    struct Step {
        Act act;
        double number = 0;
        size_t operand = 0;
    };
    struct Place {
        size_t at, length, operand;
    };
    std::string m_text;
    std::vector<Operand> m_operands;
    std::vector<Place> m_places; ///< positions of the operands in the text, in rising order
    std::vector<Step> m_steps;   ///< operations in the order in which a stack evaluates them
    size_t m_depth = 0;
};

} // namespace hsi::indices
