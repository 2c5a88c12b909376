// SPDX-License-Identifier: MIT
#include "core/byte_size.h"

#include "core/error.h"

#include <sys/resource.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace hsi {

uint64_t parse_byte_size(std::string_view text, uint64_t whole, std::string_view option) {
    const std::string s(text);
    char* end = nullptr;
    const double value = std::strtod(s.c_str(), &end);
    std::string unit;
    for (const char* p = end; *p; ++p)
        if (!std::isspace(static_cast<unsigned char>(*p)))
            unit += static_cast<char>(std::toupper(static_cast<unsigned char>(*p)));
    double factor = 0;
    if (unit.empty() || unit == "B")
        factor = 1;
    else if (unit == "K" || unit == "KB" || unit == "KIB")
        factor = 1024.0;
    else if (unit == "M" || unit == "MB" || unit == "MIB")
        factor = 1024.0 * 1024;
    else if (unit == "G" || unit == "GB" || unit == "GIB")
        factor = 1024.0 * 1024 * 1024;
    else if (unit == "T" || unit == "TB" || unit == "TIB")
        factor = 1024.0 * 1024 * 1024 * 1024;
    else if (unit == "%")
        factor = static_cast<double>(whole) / 100.0;
    const double bytes = value * factor;
    if (end == s.c_str() || factor == 0 || !(bytes >= 1) || bytes > 9e18 || (unit == "%" && value > 100))
        throw UsageError(std::string(option) + ": '" + s + "' is not a memory size",
                         "Give a positive size such as 512MB, 2GB or 25%.");
    return static_cast<uint64_t>(bytes);
}

std::string format_byte_size(uint64_t bytes) {
    static constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB"};
    double v = static_cast<double>(bytes);
    int u = 0;
    while (v >= 1024 && u < 4) {
        v /= 1024;
        ++u;
    }
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, v < 10 && u > 0 ? "%.1f %s" : "%.0f %s", v, units[u]);
    return buffer;
}

uint64_t peak_resident() {
    // Not ru_maxrss, where it can be helped: Linux counts into it what the parent held when it forked this
    // process.
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind("VmHWM:", 0) == 0) return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

} // namespace hsi
