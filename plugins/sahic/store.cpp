// SPDX-License-Identifier: MIT
#include "sahic/store.h"

#include "core/error.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace hsi::sahic {
namespace {

[[noreturn]] void fail(const std::string& what) {
    throw Error("cannot " + what + " the temporary file of probabilities: " + std::strerror(errno),
                "Free space in the folder of dst, or give more -memory.");
}

} // namespace

class Store::Sink final : public stream::CubeSink {
  public:
    Sink(Store& store, int first, int count)
        : m_store(store), m_first(first), m_shape{store.m_shape.samples, store.m_shape.lines, count} {}
    stream::CubeShape shape() const override { return m_shape; }
    bool concurrent() const override { return true; }
    void write(const Rect& core, const CubeView<float>& src) override {
        for (int b = 0; b < src.bands; ++b)
            for (int64_t y = 0; y < core.h; ++y)
                m_store.write_row(m_first + b, core.y + y, core.x, core.w, src.row(b, y));
    }
    uint64_t stored_bytes_per_pixel() const override {
        return m_store.in_memory() ? 0 : static_cast<uint64_t>(m_shape.bands) * 4;
    }

  private:
    Store& m_store;
    int m_first;
    stream::CubeShape m_shape;
};

Store::Store(const stream::CubeShape& shape, std::shared_ptr<HostAllocator> from)
    : m_shape(shape), m_memory(std::move(from), static_cast<size_t>(shape.pixels() * shape.bands)) {}

Store::Store(const stream::CubeShape& shape, const std::string& folder) : m_shape(shape) {
    std::string name = (folder.empty() ? std::string(".") : folder) + "/.hsi_probabilities_XXXXXX";
    m_file = ::mkostemp(name.data(), O_CLOEXEC);
    if (m_file < 0) fail("make");
    ::unlink(name.c_str());
}

Store::~Store() {
    if (m_file >= 0) ::close(m_file);
}

std::unique_ptr<stream::CubeSink> Store::sink(int first, int count) {
    return std::make_unique<Sink>(*this, first, count);
}

void Store::read(const Rect& window, float* to) const {
    const auto wrap = [](int64_t i, int64_t size) { return ((i % size) + size) % size; };
    for (int plane = 0; plane < m_shape.bands; ++plane)
        for (int64_t y = 0; y < window.h; ++y) {
            const int64_t line = wrap(window.y + y, m_shape.lines);
            for (int64_t x = 0; x < window.w;) {
                const int64_t sample = wrap(window.x + x, m_shape.samples);
                const int64_t count = std::min(window.w - x, m_shape.samples - sample);
                read_row(plane, line, sample, count, to + x);
                x += count;
            }
            to += window.w;
        }
}

void Store::read_row(int plane, int64_t line, int64_t sample, int64_t count, float* to) const {
    const int64_t at = position(plane, line, sample);
    if (in_memory()) {
        std::copy_n(m_memory.data() + at, count, to);
        return;
    }
    auto* bytes = reinterpret_cast<char*>(to);
    for (int64_t left = count * 4, offset = at * 4; left > 0;) {
        const ssize_t n = ::pread(m_file, bytes, static_cast<size_t>(left), offset);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO;
        if (n <= 0) fail("read");
        bytes += n;
        offset += n;
        left -= n;
    }
}

void Store::write_row(int plane, int64_t line, int64_t sample, int64_t count, const float* from) {
    const int64_t at = position(plane, line, sample);
    if (in_memory()) {
        std::copy_n(from, count, m_memory.data() + at);
        return;
    }
    const auto* bytes = reinterpret_cast<const char*>(from);
    for (int64_t left = count * 4, offset = at * 4; left > 0;) {
        const ssize_t n = ::pwrite(m_file, bytes, static_cast<size_t>(left), offset);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) fail("write");
        bytes += n;
        offset += n;
        left -= n;
    }
}

} // namespace hsi::sahic
