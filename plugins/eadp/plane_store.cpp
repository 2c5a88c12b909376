// SPDX-License-Identifier: MIT
#include "eadp/plane_store.h"

#include "core/error.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace hsi::eadp {
namespace {

stream::CubeShape with_bands(stream::CubeShape shape, size_t bands) {
    shape.bands = static_cast<int>(bands);
    return shape;
}

} // namespace

class PlaneStore::Source final : public stream::CubeSource {
  public:
    Source(const PlaneStore& store, std::vector<int> planes) : m_store(store), m_planes(std::move(planes)) {}
    stream::CubeShape shape() const override { return with_bands(m_store.m_shape, m_planes.size()); }
    stream::BlockLayout layout() const override { return {}; }
    std::unique_ptr<stream::CubeReader> open_reader() const override {
        return std::make_unique<Reader>(*this);
    }
    uint64_t stored_bytes_per_pixel() const override { return m_store.in_memory() ? 0 : m_planes.size() * 4; }

  private:
    class Reader final : public stream::CubeReader {
      public:
        explicit Reader(const Source& source) : m_source(source) {}
        void read(const Rect& window, const CubeView<float>& dst) override {
            for (int b = 0; b < dst.bands; ++b)
                for (int64_t y = 0; y < window.h; ++y)
                    m_source.m_store.read(m_source.m_planes[static_cast<size_t>(b)], window.y + y, window.x,
                                          window.w, dst.row(b, y));
        }

      private:
        const Source& m_source;
    };
    const PlaneStore& m_store;
    const std::vector<int> m_planes;
};

class PlaneStore::Sink final : public stream::CubeSink {
  public:
    Sink(PlaneStore& store, std::vector<int> planes) : m_store(store), m_planes(std::move(planes)) {}
    stream::CubeShape shape() const override { return with_bands(m_store.m_shape, m_planes.size()); }
    bool concurrent() const override { return true; }
    void write(const Rect& core, const CubeView<float>& src) override {
        for (int b = 0; b < src.bands; ++b)
            for (int64_t y = 0; y < core.h; ++y)
                m_store.write(m_planes[static_cast<size_t>(b)], core.y + y, core.x, core.w, src.row(b, y));
    }
    uint64_t stored_bytes_per_pixel() const override { return m_store.in_memory() ? 0 : m_planes.size() * 4; }

  private:
    PlaneStore& m_store;
    const std::vector<int> m_planes;
};

PlaneStore::PlaneStore(const stream::CubeShape& shape)
    : m_shape(shape), m_memory(static_cast<size_t>(shape.pixels()) * static_cast<size_t>(shape.bands)) {}

PlaneStore::PlaneStore(const stream::CubeShape& shape, const std::string& folder) : m_shape(shape) {
    std::string name = (folder.empty() ? std::string(".") : folder) + "/.hsi_planes_XXXXXX";
    m_file = mkstemp(name.data());
    if (m_file < 0)
        throw Error("cannot make a temporary file in " + folder + ": " + std::strerror(errno),
                    "Use a larger -memory, so that the component planes fit there, or another folder for the "
                    "output.");
    unlink(name.c_str());
}

PlaneStore::~PlaneStore() {
    if (m_file >= 0) close(m_file);
}

void PlaneStore::read(int plane, int64_t line, int64_t sample, int64_t count, float* to) const {
    const uint64_t at = position(plane, line, sample);
    if (m_file < 0) {
        std::memcpy(to, m_memory.data() + at, static_cast<size_t>(count) * sizeof(float));
        return;
    }
    auto* bytes = reinterpret_cast<char*>(to);
    size_t left = static_cast<size_t>(count) * sizeof(float);
    auto offset = static_cast<off_t>(at * sizeof(float));
    while (left > 0) {
        const ssize_t n = pread(m_file, bytes, left, offset);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            throw Error(std::string("cannot read the temporary file: ") +
                        (n < 0 ? std::strerror(errno) : "it is short"));
        bytes += n, offset += n, left -= static_cast<size_t>(n);
    }
}

void PlaneStore::write(int plane, int64_t line, int64_t sample, int64_t count, const float* from) {
    const uint64_t at = position(plane, line, sample);
    if (m_file < 0) {
        std::memcpy(m_memory.data() + at, from, static_cast<size_t>(count) * sizeof(float));
        return;
    }
    const auto* bytes = reinterpret_cast<const char*>(from);
    size_t left = static_cast<size_t>(count) * sizeof(float);
    auto offset = static_cast<off_t>(at * sizeof(float));
    while (left > 0) {
        const ssize_t n = pwrite(m_file, bytes, left, offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            throw Error(std::string("cannot write the temporary file: ") + std::strerror(errno),
                        "Make room beside the output, or use a larger -memory.");
        bytes += n, offset += n, left -= static_cast<size_t>(n);
    }
}

std::unique_ptr<stream::CubeSource> PlaneStore::source(std::vector<int> planes) {
    return std::make_unique<Source>(*this, std::move(planes));
}
std::unique_ptr<stream::CubeSink> PlaneStore::sink(std::vector<int> planes) {
    return std::make_unique<Sink>(*this, std::move(planes));
}

} // namespace hsi::eadp
