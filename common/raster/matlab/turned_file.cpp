// SPDX-License-Identifier: MIT
#include "raster/matlab/turned_file.h"

#include "core/error.h"
#include "core/host_memory.h"
#include "core/system.h"

#include <cpl_conv.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace hsi::raster {
namespace {

constexpr size_t written_bytes = size_t{4} << 20;

/// The message includes the advice, because GDAL passes on only the message of an Error.
[[noreturn]] void fail(const std::string& folder, int64_t bytes, int reason) {
    throw Error("cannot write the " + format_byte_size(static_cast<uint64_t>(bytes)) +
                " of a temporary file in '" + folder +
                "' (TMPDIR sets another folder): " + std::strerror(reason));
}

/// Collects runs of values for positions in the temporary file, and joins adjacent runs.
class RunWriter {
  public:
    RunWriter(int file, const std::string& folder, int64_t bytes)
        : m_file(file), m_folder(folder), m_bytes(bytes), m_run(written_bytes) {}

    char* room(int64_t at, size_t bytes) {
        if (at != m_at + static_cast<int64_t>(m_used) || m_used + bytes > m_run.size()) {
            flush();
            m_at = at;
        }
        if (bytes > m_run.size()) m_run.resize(bytes);
        char* const to = m_run.data() + m_used;
        m_used += bytes;
        return to;
    }

    void flush() {
        for (size_t done = 0; done < m_used;) {
            const ssize_t n =
                ::pwrite(m_file, m_run.data() + done, m_used - done, m_at + static_cast<int64_t>(done));
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) fail(m_folder, m_bytes, n < 0 ? errno : ENOSPC);
            done += static_cast<size_t>(n);
        }
        m_used = 0;
    }

  private:
    const int m_file;
    const std::string& m_folder;
    const int64_t m_bytes;
    std::vector<char> m_run;
    size_t m_used = 0;
    int64_t m_at = 0;
};

template <class T>
void gather(const char* from, size_t step, char* to, size_t count) {
    for (size_t i = 0; i < count; ++i)
        std::memcpy(to + i * sizeof(T), from + i * step, sizeof(T));
}

/// Receives the array in the order of the file. Transposes as many whole columns of the scene at once as the
/// memory limit allows.
class Turner {
  public:
    Turner(const TurnedShape& shape, size_t width, int64_t memory, RunWriter& writer)
        : m_shape(shape), m_width(width), m_inner(bands_last() ? shape.lines : shape.bands * shape.lines),
          m_columns(bands_last() ? shape.samples * shape.bands : shape.samples), m_writer(writer) {
        const int64_t column = m_inner * static_cast<int64_t>(width);
        m_length = std::min(m_inner, std::max<int64_t>(1, memory / static_cast<int64_t>(width)));
        m_most = m_length < m_inner ? 1 : std::clamp<int64_t>(memory / column, 1, shape.samples);
        m_values.resize(static_cast<size_t>(m_most * m_length) * width);
    }

    void take(const char* values, size_t count) {
        for (auto left = static_cast<int64_t>(count); left > 0;) {
            const int64_t until_full = wanted() - m_held, n = std::min(left, until_full);
            std::memcpy(m_values.data() + static_cast<size_t>(m_held) * m_width, values,
                        static_cast<size_t>(n) * m_width);
            values += static_cast<size_t>(n) * m_width;
            left -= n;
            m_held += n;
            if (n == until_full) turn();
        }
    }

    bool complete() const { return m_column == m_columns && m_held == 0; }

  private:
    bool bands_last() const { return m_shape.bands_stand == BandsStand::last; }

    /// Returns the number of values in the current piece: whole columns of one band, or a part of one column.
    int64_t wanted() const {
        if (m_length < m_inner) return std::min(m_length, m_inner - m_begin);
        const int64_t left = m_shape.samples - m_column % m_shape.samples;
        return std::min(m_most, left) * m_inner;
    }

    void turn() {
        const int64_t length = m_length < m_inner ? m_held : m_inner, columns = m_held / length;
        const int64_t sample = m_column % m_shape.samples;
        const auto run = static_cast<size_t>(columns) * m_width;
        for (int64_t i = 0; i < length; ++i) {
            const int64_t inner = m_begin + i;
            int64_t band = m_column / m_shape.samples, line = inner;
            if (m_shape.bands_stand == BandsStand::first) {
                band = inner % m_shape.bands;
                line = inner / m_shape.bands;
            } else if (m_shape.bands_stand == BandsStand::second) {
                band = inner / m_shape.lines;
                line = inner % m_shape.lines;
            }
            const int64_t at = ((band * m_shape.lines + line) * m_shape.samples + sample);
            char* const to = m_writer.room(at * static_cast<int64_t>(m_width), run);
            const char* const from = m_values.data() + static_cast<size_t>(i) * m_width;
            const size_t step = static_cast<size_t>(length) * m_width;
            switch (m_width) {
            case 1:
                gather<uint8_t>(from, step, to, static_cast<size_t>(columns));
                break;
            case 2:
                gather<uint16_t>(from, step, to, static_cast<size_t>(columns));
                break;
            case 4:
                gather<uint32_t>(from, step, to, static_cast<size_t>(columns));
                break;
            default:
                gather<uint64_t>(from, step, to, static_cast<size_t>(columns));
            }
        }
        m_held = 0;
        m_begin += length;
        if (m_begin < m_inner) return;
        m_begin = 0;
        m_column += columns;
    }

    const TurnedShape m_shape;
    const size_t m_width;
    const int64_t m_inner, m_columns; ///< number of values per column, number of columns
    int64_t m_length = 0, m_most = 0; ///< a piece has m_length values of each of m_most columns
    int64_t m_column = 0, m_begin = 0, m_held = 0;
    std::vector<char> m_values;
    RunWriter& m_writer;
};

} // namespace

// The folder is not /tmp by default, because /tmp is small and in memory on many systems.
std::string folder_of_scratch() {
    for (const char* option : {"CPL_TMPDIR", "TMPDIR"})
        if (const char* const named = CPLGetConfigOption(option, nullptr); named && *named) return named;
    if (::access("/var/tmp", W_OK) == 0) return "/var/tmp";
    std::error_code ignored;
    return std::filesystem::temp_directory_path(ignored).string();
}

void TurnedFile::turn() {
    const std::string folder = folder_of_scratch();
    const auto width = static_cast<size_t>(GDALGetDataTypeSizeBytes(m_variable.type));
    const int64_t bytes = m_variable.count() * static_cast<int64_t>(width);
    FileHandle file(system::nameless_file(folder));
    if (!file) fail(folder, bytes, errno);
    // If the file system cannot reserve space, a full disk is detected when the file is written.
    if (const int reason = system::claim(file.get(), bytes); reason != 0 && reason != EOPNOTSUPP)
        fail(folder, bytes, reason);
    RunWriter writer(file.get(), folder, bytes);
    Turner turner(m_shape, width, m_memory, writer);
    m_source->read(m_variable, [&](const char* values, size_t count) { turner.take(values, count); });
    writer.flush();
    if (!turner.complete())
        throw Error("'" + m_source->path() + "' has changed while it was read: " + m_variable.text());
    m_file = std::move(file);
}

void TurnedFile::read_line(int64_t band, int64_t line, void* values) {
    int file = -1;
    {
        const std::lock_guard lock(m_mutex);
        if (!m_file) turn();
        file = m_file.get();
    }
    const auto width = static_cast<int64_t>(GDALGetDataTypeSizeBytes(m_variable.type));
    int64_t at = (band * m_shape.lines + line) * m_shape.samples * width;
    auto* to = static_cast<char*>(values);
    for (int64_t left = m_shape.samples * width; left > 0;) {
        const ssize_t n = ::pread(file, to, static_cast<size_t>(left), at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            throw Error(std::string("cannot read a temporary file: ") + std::strerror(n < 0 ? errno : EIO));
        to += n;
        at += n;
        left -= n;
    }
}

} // namespace hsi::raster
