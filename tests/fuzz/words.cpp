// SPDX-License-Identifier: MIT
// Readers of option values: band lists, sizes, devices, numbers. The first byte selects the reader.
#include "tool/words.h"
#include "core/cuda_module.h"
#include "core/host_memory.h"
#include "fuzz/fuzz.h"
#include "sample/sample.h"

#include <cmath>
#include <set>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    if (size == 0) return 0;
    const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
    try {
        switch (data[0] % 7) {
        case 0: {
            const auto bands = tool::parse_band_list(fuzz::split(text, '\n'));
            std::string again;
            for (const int b : bands) {
                fuzz::expect(b >= 1, "bands are counted from 1");
                again += (again.empty() ? "" : ",") + std::to_string(b);
            }
            if (!bands.empty())
                fuzz::expect(tool::parse_band_list({again}) == bands, "a list that is written is the same");
            break;
        }
        case 6: {
            const auto parts = fuzz::split(text, '\n');
            for (const auto& choice : tool::parse_band_choices(parts)) {
                fuzz::expect(choice.first <= choice.last, "bands rise");
                fuzz::expect(choice.first > 0 ||
                                 (choice.from_nm >= 0 && choice.to_nm > 0 && choice.from_nm <= choice.to_nm),
                             "a range of wavelengths is not empty");
            }
            for (const auto& range : tool::parse_excluded_ranges(parts))
                fuzz::expect(!range.nearest && range.from_nm <= range.to_nm, "a range has two ends");
            break;
        }
        case 1: {
            const uint64_t whole = uint64_t{16} << 30;
            const uint64_t bytes = parse_byte_size(text, whole, "-memory");
            fuzz::expect(bytes >= 1 && bytes <= uint64_t{9000000000000000000}, "a size is positive");
            fuzz::expect(parse_byte_size(std::to_string(bytes), whole, "-memory") >= 1,
                         "a number of bytes is a size");
            fuzz::expect(!format_byte_size(bytes).empty(), "a size can be told");
            break;
        }
        case 2: {
            const auto choice = parse_device(text);
            const std::set<int> different(choice.devices.begin(), choice.devices.end());
            fuzz::expect(different.size() == choice.devices.size(), "devices are different ones");
            fuzz::expect(different.empty() || *different.begin() >= 0, "devices are counted from 0");
            fuzz::expect(choice.kind == DeviceChoice::Kind::cuda || choice.devices.empty(),
                         "only CUDA has numbers");
            break;
        }
        case 3:
            if (const auto number = tool::parse_number(text)) {
                char digits[64];
                std::snprintf(digits, sizeof digits, "%.17g", *number);
                const auto again = tool::parse_number(digits);
                fuzz::expect(again && (*again == *number || (std::isnan(*again) && std::isnan(*number))),
                             "a number that is written is the same");
            }
            break;
        case 4:
            if (const auto number = tool::parse_integer(text))
                fuzz::expect(tool::parse_integer(std::to_string(*number)) == number,
                             "a whole number comes back");
            break;
        default: {
            std::vector<sample::LabelClass> classes{{1, "meadow", 20}, {2, "", 7}, {9, "wood, old", 1}};
            sample::Options options;
            sample::apply_share(text, false, classes, options);
            sample::apply_share(text, true, classes, options);
        }
        }
    } catch (const Error&) {
    }
    return 0;
}
