// SPDX-License-Identifier: MIT
#include "raster/sink/output_set.h"

#include "core/error.h"

namespace hsi::raster {

void OutputSet::plan(OutputOptions options, OutputSpec spec) {
    m_planned.emplace_back(std::move(options), std::move(spec));
}

void OutputSet::check() const {
    for (const auto& [options, spec] : m_planned)
        RasterSink::check(options, spec);
}

void OutputSet::create(const RasterSource* like) {
    if (!m_made.empty()) throw Error("internal: these outputs are made");
    std::vector<std::unique_ptr<RasterSink>> made;
    for (const auto& [options, spec] : m_planned)
        made.push_back(RasterSink::create(options, spec, like));
    m_made = std::move(made);
}

uint64_t OutputSet::cache_bytes() const {
    uint64_t bytes = 0;
    for (const auto& sink : m_made)
        bytes += sink->cache_bytes();
    return bytes;
}

stream::BlockLayout OutputSet::layout() const {
    return m_made.empty() ? stream::BlockLayout() : m_made.front()->layout();
}

std::vector<stream::CubeSink*> OutputSet::sinks() const {
    std::vector<stream::CubeSink*> list;
    for (const auto& sink : m_made)
        list.push_back(sink.get());
    return list;
}

void OutputSet::commit() {
    for (const auto& sink : m_made)
        sink->commit();
}

} // namespace hsi::raster
