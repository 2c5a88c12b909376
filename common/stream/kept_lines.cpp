// SPDX-License-Identifier: MIT
#include "stream/kept_lines.h"

#include "core/error.h"
#include "core/system.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace hsi::stream {
namespace {

class SmallPages final : public HostAllocator {
  public:
    void* allocate(size_t bytes) override {
        void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            throw Error("cannot allocate " + format_byte_size(bytes) + " of memory",
                        "Use a smaller -memory.");
        return p;
    }
    void release(void* p, size_t bytes) noexcept override { munmap(p, bytes); }
};

/// Opens a file of `bytes` that is not listed in a folder.
int nameless_file(const std::string& folder) {
    const int file = system::nameless_file(folder);
    if (file < 0)
        throw Error("cannot make a temporary file in '" + folder + "': " + std::strerror(errno),
                    "Set TMPDIR to a writable folder.");
    return file;
}

/// Repeats the call until all bytes are transferred, also after interruptions by signals.
template <class Call>
bool in_parts(size_t bytes, const Call& call) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t now = call(done);
        if (now < 0 && errno == EINTR) continue;
        if (now <= 0) return false;
        done += static_cast<size_t>(now);
    }
    return true;
}

} // namespace

std::shared_ptr<HostAllocator> small_page_allocator() {
    static const auto allocator = std::make_shared<SmallPages>();
    return allocator;
}

KeptLines::KeptLines(const CubeShape& shape)
    : m_shape(shape), m_lines(static_cast<size_t>(shape.lines)),
      m_values(small_page_allocator(), static_cast<size_t>(shape.float_bytes() / sizeof(float))) {}

KeptLines::KeptLines(const CubeShape& shape, const std::string& folder)
    : m_shape(shape), m_lines(static_cast<size_t>(shape.lines)), m_file(nameless_file(folder)) {}

KeptLines::~KeptLines() {
    if (m_file >= 0) ::close(m_file);
}

bool KeptLines::put(int64_t line, const float* values) {
    const size_t bytes = line_floats() * sizeof(float);
    const auto* const from = reinterpret_cast<const char*>(values);
    const auto begin = static_cast<off_t>(line) * static_cast<off_t>(bytes);
    return in_parts(bytes, [&](size_t done) {
        return ::pwrite(m_file, from + done, bytes - done, begin + static_cast<off_t>(done));
    });
}

void KeptLines::keep(int64_t first, const CubeView<const float>& values) {
    if (values.samples != m_shape.samples || values.bands != m_shape.bands)
        throw Error("internal: lines of another cube were to be kept");
    std::vector<float> line(in_memory() ? 0 : line_floats());
    for (int64_t y = 0; y < values.lines; ++y) {
        if (m_full.load(std::memory_order_relaxed)) return;
        std::atomic<State>& state = m_lines[static_cast<size_t>(first + y)];
        State expected = State::missing;
        if (!state.compare_exchange_strong(expected, State::arriving)) continue;
        float* const to =
            in_memory() ? m_values.data() + static_cast<size_t>(first + y) * line_floats() : line.data();
        if (in_memory()) system::make_pages(to, line_floats() * sizeof(float));
        for (int b = 0; b < values.bands; ++b)
            std::copy_n(values.row(b, y), values.samples, to + b * m_shape.samples);
        if (!in_memory() && !put(first + y, to)) {
            m_full.store(true); // the line remains "arriving" forever, so no reader takes it
            return;
        }
        state.store(State::there, std::memory_order_release);
        m_there.fetch_add(1, std::memory_order_acq_rel);
    }
}

bool KeptLines::read(const Rect& window, const CubeView<float>& dst) const {
    if (!complete())
        for (int64_t y = window.y; y < window.bottom(); ++y)
            if (m_lines[static_cast<size_t>(y)].load(std::memory_order_acquire) != State::there) return false;
    const bool whole = window.w == m_shape.samples;
    std::vector<float> line(in_memory() ? 0 : whole ? line_floats() : static_cast<size_t>(window.w));
    for (int64_t y = 0; y < window.h; ++y) {
        const size_t begin = static_cast<size_t>(window.y + y) * line_floats();
        const auto fetch = [&](size_t at, size_t count) {
            auto* const to = reinterpret_cast<char*>(line.data());
            return in_parts(count * sizeof(float), [&](size_t done) {
                return ::pread(m_file, to + done, count * sizeof(float) - done,
                               static_cast<off_t>(at * sizeof(float) + done));
            });
        };
        if (!in_memory() && whole && !fetch(begin, line_floats())) return false;
        for (int b = 0; b < m_shape.bands; ++b) {
            const size_t row = static_cast<size_t>(b) * static_cast<size_t>(m_shape.samples);
            const size_t at = begin + row + static_cast<size_t>(window.x);
            if (!in_memory() && !whole && !fetch(at, static_cast<size_t>(window.w))) return false;
            const float* const from = in_memory() ? m_values.data() + at : line.data() + (whole ? row : 0);
            std::copy_n(from, window.w, dst.row(b, y));
        }
    }
    return true;
}

} // namespace hsi::stream
