// SPDX-License-Identifier: MIT
#include "raster/io/ordered_blocks.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <utility>

namespace hsi::raster {

/// The bytes before and after a block: its size, and its last four bytes again (Form::framed).
struct OrderedBlocks::Frame {
    std::array<char, 4> before{}, behind{};
    explicit Frame(std::span<const char> bytes) {
        const auto size = static_cast<uint32_t>(bytes.size());
        std::memcpy(before.data(), &size, sizeof size);
        std::copy_n(bytes.end() - 4, 4, behind.begin());
    }
};

OrderedBlocks::OrderedBlocks(FileHandle file, int64_t begin, int64_t blocks, Form form)
    : m_file(std::move(file)), m_form(form), m_end(begin), m_offsets(static_cast<size_t>(blocks)),
      m_sizes(m_offsets.size()) {}

Error OrderedBlocks::too_large() {
    return Error("a TIFF of 4 GiB or more must be a BigTIFF", "Use -co BIGTIFF=YES.");
}

void OrderedBlocks::place(int64_t number, std::span<const char> bytes, std::unique_lock<std::mutex>& lock) {
    if (static_cast<size_t>(number) != m_placed) {
        m_waiting.emplace(number, std::vector<char>(bytes.begin(), bytes.end()));
        m_waiting_bytes += bytes.size();
        return;
    }
    std::list<Frame> frames; // The frames must exist until out.flush() has written them.
    std::vector<std::vector<char>> waited;
    GatherWriter out(m_file.get());
    const auto put = [&](std::span<const char> piece) {
        out.add(m_end, piece.data(), piece.size());
        m_end += static_cast<int64_t>(piece.size());
    };
    const auto give_place = [&](std::span<const char> block) {
        if (m_form.framed) put(frames.emplace_back(block).before);
        m_offsets[m_placed] = static_cast<uint64_t>(m_end);
        m_sizes[m_placed] = block.size();
        put(block);
        if (m_form.framed) put(frames.back().behind);
        ++m_placed;
        if (!m_form.big && m_end > int64_t{UINT32_MAX}) throw too_large();
    };
    give_place(bytes);
    for (auto at = m_waiting.begin(); at != m_waiting.end() && static_cast<size_t>(at->first) == m_placed;
         at = m_waiting.erase(at)) {
        m_waiting_bytes -= at->second.size();
        give_place(waited.emplace_back(std::move(at->second)));
    }
    lock.unlock();
    out.flush();
    lock.lock();
}

void OrderedBlocks::close() {
    if (::close(m_file.release()) != 0) throw Error(std::strerror(errno));
}

} // namespace hsi::raster
