// SPDX-License-Identifier: MIT
#include "tool/workers.h"

#include "core/error.h"
#include "core/process_limits.h"
#include "core/process_owner.h"
#include "core/text.h"
#include "raster/drivers.h"
#include "tool/words.h"

#include <algorithm>

namespace hsi::tool {
namespace {

/// Returns GDAL_NUM_THREADS, or the number of all processors.
int default_threads() {
    const std::string text = raster::setting("GDAL_NUM_THREADS", "ALL_CPUS");
    if (equal_names(text, "ALL_CPUS")) return std::min(usable_processors(), most_threads);
    const auto count = parse_integer(text);
    if (!count || *count < 0)
        throw UsageError("GDAL_NUM_THREADS: '" + text + "' is not ALL_CPUS or a count of threads",
                         "Correct the configuration option, or give -threads.");
    // GDAL interprets 0 as a single thread.
    return static_cast<int>(std::clamp<long long>(*count, 1, most_threads));
}

} // namespace

int thread_count(const std::string& text, bool given, int sharing) {
    if (!given) return std::max(1, default_threads() / sharing);
    if (equal_names(text, "ALL_CPUS")) return std::clamp(usable_processors() / sharing, 1, most_threads);
    return static_cast<int>(
        integer_of(text, "-threads", 1, most_threads,
                   "ALL_CPUS or a whole number from 1 to " + std::to_string(most_threads)));
}

void set_device_memory(stream::PassOptions& pass, uint64_t bytes) {
    pass.device_memory = bytes;
    const uint64_t worth_a_lane = process_is_ours() ? bytes_worth_a_lane : bytes_worth_a_kept_lane;
    pass.limit.bytes_each = bytes > 0 ? worth_a_lane : 0;
    pass.limit.least = bytes > 0 ? least_device_lanes : 1;
}

} // namespace hsi::tool
