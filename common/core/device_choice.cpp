// SPDX-License-Identifier: MIT
#include "core/device_choice.h"

#include "core/error.h"

#include <charconv>

namespace hsi {

DeviceChoice parse_device(std::string_view text) {
    DeviceChoice choice;
    if (text == "auto") return choice;
    if (text == "cpu") {
        choice.kind = DeviceChoice::Kind::cpu;
        return choice;
    }
    const auto bad = [&] {
        return UsageError("-device: '" + std::string(text) + "' is not a device",
                          "Use auto, cpu, cuda, cuda:0 or a list such as cuda:0,1.");
    };
    if (text.substr(0, 4) != "cuda") throw bad();
    choice.kind = DeviceChoice::Kind::cuda;
    std::string_view rest = text.substr(4);
    if (rest.empty()) return choice;
    if (rest.front() != ':' || rest.size() < 2) throw bad();
    while (!rest.empty()) {
        rest.remove_prefix(1); // ':' or ','
        int index = 0;
        const auto [p, ec] = std::from_chars(rest.data(), rest.data() + rest.size(), index);
        if (ec != std::errc() || index < 0) throw bad();
        for (int other : choice.devices)
            if (other == index) throw bad();
        choice.devices.push_back(index);
        rest.remove_prefix(static_cast<size_t>(p - rest.data()));
        if (!rest.empty() && (rest.front() != ',' || rest.size() < 2)) throw bad();
    }
    return choice;
}

} // namespace hsi
