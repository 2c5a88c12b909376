// SPDX-License-Identifier: MIT
// An expression is rejected, or its result has the same bits after its operands are renamed.
#include "indices/expression.h"
#include "core/error.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

double value_of(const hsi::indices::Expression& e) {
    std::vector<double> values, stack(e.depth() * hsi::indices::block);
    for (size_t k = 0; k < e.operands().size(); ++k)
        values.insert(values.end(), hsi::indices::block, 0.1 + 0.3 * static_cast<double>(k));
    e.evaluate(values.data(), stack.data());
    return stack.front();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        const hsi::indices::Expression e(std::string(data, data + size));
        const hsi::indices::Expression named(
            e.with_operands([](size_t k) { return "b" + std::to_string(k + 1); }));
        const double a = value_of(e), b = value_of(named);
        if (named.operands().size() != e.operands().size() || (std::memcmp(&a, &b, sizeof a) != 0 && a == a))
            std::abort();
    } catch (const hsi::UsageError&) {
    }
    return 0;
}
