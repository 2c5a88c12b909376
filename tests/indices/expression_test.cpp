// SPDX-License-Identifier: MIT
// Grammar, values and mistakes of expressions, compared with C++ arithmetic.
#include "indices/expression.h"

#include "core/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace hsi::test {
namespace {

using indices::Expression;
using Of = indices::Operand::Of;

constexpr double nodata = NAN;

/// Returns the value of an expression. `values`: of the operands, in their order.
double value_of(const std::string& text, const std::vector<double>& values = {}) {
    const Expression e(text);
    EXPECT_EQ(e.operands().size(), values.size()) << text;
    std::vector<double> rows, stack(e.depth() * indices::block);
    for (const double v : values)
        rows.insert(rows.end(), indices::block, v);
    e.evaluate(rows.data(), stack.data());
    EXPECT_TRUE(std::isnan(stack[0]) || stack[0] == stack[indices::block - 1]) << text;
    return stack[0];
}

TEST(Expression, Values) {
    const struct {
        const char* text;
        std::vector<double> operands;
        double value;
    } rows[] = {
        {"1+2*3", {}, 7},
        {"(1+2)*3", {}, 9},
        {"8-4-2", {}, 2},
        {"8/4/2", {}, 1},
        {"2^3^2", {}, 512},
        {"2**3**2", {}, 512},
        {"-2^2", {}, -4},
        {"(-2)^2", {}, 4},
        {"(-2)^3", {}, -8},
        {"(-2)^-1", {}, -0.5},
        {"2^-1", {}, 0.5},
        {"2*-3", {}, -6},
        {"- -3", {}, 3},
        {"--3+ +1", {}, 4},
        {"1 - -1", {}, 2},
        {" 1.5e-1 * .5 ", {}, 0.075},
        {"1<2", {}, 1},
        {"1<2<2", {}, 1},
        {"1<=1", {}, 1},
        {"2>3", {}, 0},
        {"2>=3", {}, 0},
        {"1==1", {}, 1},
        {"1!=1", {}, 0},
        {"1+1<3", {}, 1},
        {"1||0&&0", {}, 1},
        {"1 && 0", {}, 0},
        {"0||2", {}, 1},
        {"1<2&&2<1", {}, 0},
        {"abs(-3)", {}, 3},
        {"sqrt(9)", {}, 3},
        {"exp(1)", {}, std::exp(1.0)},
        {"ln(2)", {}, std::log(2.0)},
        {"log10(1000)", {}, 3},
        {"tanh(0.5)", {}, std::tanh(0.5)},
        {"tanh(-30)", {}, -1},
        {"tanh(0.001)", {}, std::tanh(0.001)},
        {"min(3,1,2)", {}, 1},
        {"max(3,1,4,2)", {}, 4},
        {"min(5)", {}, 5},
        {"if(1,2,3)", {}, 2},
        {"if(0,2,3)", {}, 3},
        {"IF(-1, 2, 3)", {}, 2},
        {"(r800-r670)/(r800+r670)", {0.5, 0.1}, 0.4 / 0.6},
        {"R800*b3-r800", {2, 3}, 4},
        {"mean(r[630:690])-r0.63", {5, 2}, 3},
        // An undefined value becomes nodata.
        {"1/0", {}, nodata},
        {"1/(1/0)", {}, nodata},
        {"0*(1/0)", {}, nodata},
        {"(1/0)<2", {}, nodata},
        {"0&&(1/0)", {}, nodata},
        {"1||(1/0)", {}, nodata},
        {"min(1,1/0)", {}, nodata},
        {"max(1/0,1)", {}, nodata},
        {"(1/0)^0", {}, nodata},
        {"1^(1/0)", {}, nodata},
        {"-(1/0)", {}, nodata},
        {"ln(0)", {}, nodata},
        {"ln(-1)", {}, nodata},
        {"log10(0)", {}, nodata},
        {"sqrt(-1)", {}, nodata},
        {"0^-1", {}, nodata},
        {"0^0", {}, 1},
        {"(-8)^(1/3)", {}, nodata},
        {"exp(100)", {}, nodata},
        {"1/exp(88)", {}, std::exp(-88.0)},
        {"1e38*10", {}, nodata},
        {"1/(1e38*10)", {}, nodata},
        // The branch that is not taken has no effect.
        {"if(1,2,1/0)", {}, 2},
        {"if(0,1/0,3)", {}, 3},
        {"if(1/0,2,3)", {}, nodata},
        {"if(r800>0,ln(r800),-1)", {-5}, -1},
    };
    for (const auto& row : rows) {
        const double v = value_of(row.text, row.operands);
        if (std::isnan(row.value))
            EXPECT_TRUE(std::isnan(v)) << row.text << " is " << v;
        else
            EXPECT_NEAR(v, row.value, 1e-15 * std::abs(row.value)) << row.text;
    }
}

TEST(Expression, Operands) {
    const struct {
        const char* text;
        Of of;
        double from, to;
    } rows[] = {
        {"r800", Of::wavelength, 800, 800},
        {"r753.75", Of::wavelength, 753.75, 753.75},
        {"r0.86um", Of::wavelength, 860, 860},
        {"r800nm", Of::wavelength, 800, 800},
        {"r2.2", Of::wavelength, 2200, 2200},
        {"r99nm", Of::wavelength, 99, 99},
        {"r100", Of::wavelength, 100, 100},
        {"b12", Of::band, 12, 12},
        {"mean(r[630:690])", Of::mean, 630, 690},
        {"sum( r[ 0.63 : 690nm ] )", Of::sum, 630, 690},
        {"min(r[1:2um])", Of::least, 1000, 2000},
        {"max(r[630:690])", Of::greatest, 630, 690},
        {"std(r[630:690])", Of::deviation, 630, 690},
        {"slope(r[630:690])", Of::slope, 630, 690},
        {"area(r[630:690])", Of::area, 630, 690},
        {"edge(r[680:750])", Of::edge, 680, 750},
        {"argmin(r[630:690])", Of::least_at, 630, 690},
        {"argmax(r[630:690])", Of::greatest_at, 630, 690},
    };
    for (const auto& row : rows) {
        const Expression e(row.text);
        ASSERT_EQ(e.operands().size(), 1u) << row.text;
        const auto& one = e.operands().front();
        EXPECT_EQ(one.of, row.of) << row.text;
        EXPECT_DOUBLE_EQ(one.from, row.from) << row.text;
        EXPECT_DOUBLE_EQ(one.to, row.to) << row.text;
        EXPECT_EQ(one.text, row.text);
    }
}

TEST(Expression, ReplacesItsOperands) {
    const Expression e("(r800-r670)/(r0.8+mean(r[630:690]))-r670");
    const char* const names[] = {"b1", "(0.5*b2+0.5*b3)", "m"};
    EXPECT_EQ(e.with_operands([&](size_t k) { return std::string(names[k]); }),
              "(b1-(0.5*b2+0.5*b3))/(b1+m)-(0.5*b2+0.5*b3)");
}

/// Each row has the text, the column of the mistake, and a part of the message.
TEST(Expression, MistakesAreNamedWithTheirColumn) {
    const struct {
        const char* text;
        int column;
        const char* word;
    } rows[] = {
        {"", 1, "value is missing"},
        {"r800+*2", 6, "'*'"},
        {"r800 r9", 6, "'r9'"},
        {"foo(r800)", 1, "'foo' is not a function"},
        {"(r800", 6, "')' is missing"},
        {"r800)", 5, "')'"},
        {"mean(r800)", 6, "'mean' takes a range"},
        {"min(r800,", 10, "value is missing"},
        {"if(r800,1)", 10, "'if' takes 3 values"},
        {"if(1,2,3,4)", 9, "')' is missing"},
        {"ln(1,2)", 5, "')' is missing"},
        {"r[630:690]", 1, "a function"},
        {"mean(r[690:630])", 15, "ends before it begins"},
        {"mean(r[630:690)", 15, "']' is missing"},
        {"mean(r[630])", 11, "':' is missing"},
        {"mean(r[630:690]+1)", 16, "')' is missing"},
        {"b0", 1, "counted from 1"},
        {"b1.5", 1, "counted from 1"},
        {"r0", 2, "above 0"},
        {"r800=3", 5, "'='"},
        {"1=1", 2, "'='"},
        {"2x", 2, "'x'"},
        {"r800mm", 5, "'mm' is not a unit"},
        {"r800 nm", 6, "'nm'"},
        {"1.2.3", 4, "'.'"},
        {"$", 1, "'$'"},
        {"1 ? 2 : 3", 3, "'?'"},
        {"1,2", 2, "','"},
        {"\"a\"", 1, "'\"'"},
        {"1e999", 1, "not a number"},
        {"\xC3\xA4", 1, "value is expected"},
    };
    for (const auto& row : rows)
        try {
            const Expression e(row.text);
            ADD_FAILURE() << row.text << " was read";
        } catch (const UsageError& e) {
            const std::string what = e.what();
            EXPECT_NE(what.find("at column " + std::to_string(row.column) + ":"), std::string::npos) << what;
            EXPECT_NE(what.find(row.word), std::string::npos) << what;
        }
    for (const std::string nested : {"(", "-", "2^", "abs("}) {
        std::string text;
        for (int k = 0; k < 100000; ++k)
            text += nested;
        EXPECT_THROW(Expression{text}, UsageError) << nested;
    }
}

TEST(Expression, LongTexts) {
    std::string text = "b1";
    while (text.size() + 3 <= 10000)
        text += "+b1";
    EXPECT_EQ(value_of(text, {1}), static_cast<double>((text.size() + 1) / 3));
    try {
        const Expression e(text + " + b1 + b1");
        ADD_FAILURE() << "read";
    } catch (const UsageError& error) {
        EXPECT_NE(std::string(error.what()).find("characters, but at most 10000 are read"), std::string::npos)
            << error.what();
    }
    try {
        const Expression e(text.substr(0, 5000) + "?" + text.substr(0, 4000));
        ADD_FAILURE() << "read";
    } catch (const UsageError& error) {
        const std::string what = error.what();
        EXPECT_LT(what.size(), 200u) << what;
        EXPECT_NE(what.find("?"), std::string::npos) << what;
        EXPECT_NE(what.find("column 500"), std::string::npos) << what;
    }
}

} // namespace
} // namespace hsi::test
