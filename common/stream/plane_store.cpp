// SPDX-License-Identifier: MIT
#include "stream/plane_store.h"

#include "core/byte_pack.h"
#include "core/error.h"
#include "core/system.h"
#include "parallel/group.h"
#include "parallel/joint_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <utility>

namespace hsi::stream {
namespace {

/// The number of values in one message. The heap can reuse memory of this size. Larger blocks are mapped
/// again each time (keep_heap_small), and the page faults would take longer than the copies.
constexpr int64_t piece_values = int64_t{12} << 10;

CubeShape with_bands(CubeShape shape, size_t bands) {
    shape.bands = static_cast<int>(bands);
    return shape;
}

[[noreturn]] void fail(const std::string& what) {
    throw Error(
        "cannot " + what + " the temporary file of planes: " + std::strerror(errno),
        "Free disk space in the output's folder, or give more -memory, so that no temporary file is needed.");
}

} // namespace

class PlaneStore::Source final : public CubeSource {
  public:
    Source(const PlaneStore& store, std::vector<int> planes) : m_store(store), m_planes(std::move(planes)) {}
    CubeShape shape() const override { return with_bands(m_store.m_shape, m_planes.size()); }
    stream::BlockLayout layout() const override { return {}; }
    std::unique_ptr<CubeReader> open_reader() const override { return std::make_unique<Reader>(*this); }
    uint64_t stored_bytes_per_pixel() const override { return m_store.in_memory() ? 0 : m_planes.size() * 4; }

  private:
    class Reader final : public CubeReader {
      public:
        explicit Reader(const Source& source) : m_source(source) {}
        void read(const Rect& window, const CubeView<float>& dst) override {
            for (int b = 0; b < dst.bands; ++b)
                for (int64_t y = 0; y < window.h; ++y)
                    m_source.m_store.read_row(m_source.m_planes[static_cast<size_t>(b)], window.y + y,
                                              window.x, window.w, dst.row(b, y));
        }
        std::optional<CubeView<float>> view(const Rect& window) override {
            const PlaneStore& store = m_source.m_store;
            const auto& planes = m_source.m_planes;
            if (!store.in_memory()) return std::nullopt;
            for (size_t b = 1; b < planes.size(); ++b)
                if (planes[b] != planes[0] + static_cast<int>(b)) return std::nullopt;
            return CubeView<float>::packed(store.m_memory.data() + store.position(planes[0], 0, 0),
                                           static_cast<int>(planes.size()), store.m_shape.lines,
                                           store.m_shape.samples)
                .cut(window.x, window.y, window.w, window.h);
        }

      private:
        const Source& m_source;
    };
    const PlaneStore& m_store;
    const std::vector<int> m_planes;
};

class PlaneStore::Sink final : public GatheringSink {
  public:
    Sink(PlaneStore& store, std::vector<int> planes) : m_store(store), m_planes(std::move(planes)) {}
    CubeShape shape() const override { return with_bands(m_store.m_shape, m_planes.size()); }
    bool concurrent() const override { return true; }
    void write(const Rect& core, const CubeView<float>& src) override {
        for (int b = 0; b < src.bands; ++b)
            for (int64_t y = 0; y < core.h; ++y)
                m_store.write_row(m_planes[static_cast<size_t>(b)], core.y + y, core.x, core.w,
                                  src.row(b, y));
        const std::lock_guard lock(m_mutex);
        m_written.push_back({m_planes, core});
    }
    void gather(parallel::Group& ranks) override { m_store.share(ranks, std::exchange(m_written, {})); }
    uint64_t stored_bytes_per_pixel() const override { return m_store.in_memory() ? 0 : m_planes.size() * 4; }

  private:
    PlaneStore& m_store;
    const std::vector<int> m_planes;
    std::mutex m_mutex;
    std::vector<Part> m_written; ///< parts written since the last gathering
};

PlaneStore::PlaneStore(const CubeShape& shape, std::shared_ptr<HostAllocator> allocator)
    : m_shape(shape),
      m_memory(std::move(allocator), static_cast<size_t>(shape.pixels()) * static_cast<size_t>(shape.bands)) {
}

PlaneStore::PlaneStore(const CubeShape& shape, const std::string& folder) : m_shape(shape) {
    m_file = system::nameless_file(folder.empty() ? std::string(".") : folder);
    if (m_file < 0) fail("make");
}

std::unique_ptr<PlaneStore> PlaneStore::in_memory_of(parallel::Group& ranks, const CubeShape& shape) {
    const auto memory =
        ranks.several() ? parallel::JointMemory::make(ranks, "planes", shape.float_bytes(), false) : nullptr;
    const bool common = memory && memory->processes() == ranks.size();
    if (!common) return std::make_unique<PlaneStore>(shape);
    auto store = std::make_unique<PlaneStore>(shape, memory);
    store->m_common = true;
    return store;
}

PlaneStore::~PlaneStore() {
    if (m_file >= 0) ::close(m_file);
}

void PlaneStore::read_row(int plane, int64_t line, int64_t sample, int64_t count, float* to) const {
    const int64_t at = position(plane, line, sample);
    if (in_memory()) {
        std::copy_n(m_memory.data() + at, count, to);
        return;
    }
    auto* bytes = reinterpret_cast<char*>(to);
    for (int64_t left = count * 4, offset = at * 4; left > 0;) {
        const ssize_t n = ::pread(m_file, bytes, static_cast<size_t>(left), offset);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO; // the file is shorter than the written data
        if (n <= 0) fail("read");
        bytes += n;
        offset += n;
        left -= n;
    }
}

void PlaneStore::write_row(int plane, int64_t line, int64_t sample, int64_t count, const float* from) {
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

void PlaneStore::share(parallel::Group& ranks, const std::vector<Part>& mine, int64_t rows) {
    if (m_common) {
        ranks.sum("planes", 0); // waits until all ranks have written
        return;
    }
    // Sends to one rank after another: for each plane, runs of whole lines.
    size_t part = 0;
    int plane = 0;
    int64_t line = 0; // first line of the next run, counted within the part
    std::vector<float> values;
    const auto piece = [&](int to) {
        BytePacker out;
        int64_t room = piece_values;
        while (part < mine.size() && room > 0) {
            const Rect& all = mine[part].window;
            // `count` lines are sent. Then `skip` lines are left out, because rank `to` does not own them.
            int64_t count = all.h - line, skip = 0;
            if (rows > 0) {
                const int64_t y = all.y + line;
                count = std::min(count, rows - y % rows);
                if (owner(y, rows, ranks.size()) != to) std::swap(count, skip);
            }
            count = std::min(count, std::max<int64_t>(1, room / all.w));
            if (count > 0) {
                const Rect run{all.x, all.y + line, all.w, count};
                values.resize(static_cast<size_t>(run.area()));
                const int from = mine[part].planes[static_cast<size_t>(plane)];
                for (int64_t y = 0; y < count; ++y)
                    read_row(from, run.y + y, run.x, run.w, values.data() + y * run.w);
                out.put(from).put(run).put(values);
                room -= run.area();
            }
            line += count + skip;
            if (line < all.h) continue;
            line = 0;
            if (++plane < static_cast<int>(mine[part].planes.size())) continue;
            plane = 0;
            ++part;
        }
        auto bytes = out.take();
        if (bytes.empty()) part = 0; // begins again for the next rank
        return bytes;
    };
    ranks.exchange("planes", piece, [&](int, const std::string& bytes) {
        for (ByteUnpacker in(bytes); !in.empty();) {
            const auto to = in.one<int>();
            const auto run = in.one<Rect>();
            in.get(values);
            for (int64_t y = 0; y < run.h; ++y)
                write_row(to, run.y + y, run.x, run.w, values.data() + y * run.w);
        }
    });
}

void PlaneStore::read(const Rect& window, float* to) const {
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

std::unique_ptr<CubeSource> PlaneStore::source(std::vector<int> planes) {
    return std::make_unique<Source>(*this, std::move(planes));
}
std::unique_ptr<CubeSink> PlaneStore::sink(std::vector<int> planes) {
    return std::make_unique<Sink>(*this, std::move(planes));
}

std::string folder_beside(const std::string& output) {
    const auto folder = std::filesystem::path(output).parent_path();
    std::error_code ignored;
    if (folder.empty()) return ".";
    if (std::filesystem::is_directory(folder, ignored)) return folder.string();
    return std::filesystem::temp_directory_path(ignored).string();
}

} // namespace hsi::stream
