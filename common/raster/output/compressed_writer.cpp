// SPDX-License-Identifier: MIT
#include "raster/output/compressed_writer.h"

#include "core/error.h"
#include "core/system.h"
#include "parallel/threads.h"
#include "raster/sample_convert.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace hsi::raster {
namespace {

/// The least limit in bytes for compressed blocks that wait until an earlier block is written. The limit
/// bounds memory, and is large enough that a slow thread does not block the other threads.
constexpr uint64_t least_waiting = uint64_t{16} << 20;

Error system_error(const std::string& what) { return Error(what + ": " + std::strerror(errno)); }

} // namespace

CompressedWriter::CompressedWriter(Options options, StoreRule rule)
    : m_options(std::move(options)), m_rule(std::move(rule)) {
    const TiffShape& shape = m_options.shape;
    const TiffStart start = start_of_tiff_blocks(m_options.path);
    const int64_t in_pixel = shape.apart ? 1 : shape.bands;
    m_form.line_samples = shape.block_samples * in_pixel;
    m_form.lines = shape.block_lines;
    m_form.step = in_pixel;
    m_form.sample_bytes = static_cast<int64_t>(m_rule.sample_bytes());
    m_form.swapped = start.swapped && m_form.sample_bytes > 1;
    m_block_bytes = m_form.bytes();
    m_missing = shape.samples * shape.lines;
    FileHandle file(::open(m_options.path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file) throw system_error("cannot open '" + m_options.path + "'");
    m_file.emplace(std::move(file), start.end, blocks_in_row() * rows(),
                   OrderedBlocks::Form{start.big, false});
    // The threads' blocks get a quarter of the memory, but at least enough for one thread. Rows of blocks get
    // the rest, up to the number of rows that is useful.
    const uint64_t coder = std::max<uint64_t>(1, BlockCoder::held_bytes(m_options.coding, m_form));
    m_most_coders = static_cast<int>(std::clamp<uint64_t>(
        m_options.memory / 4 / coder, 1, static_cast<uint64_t>(std::max(1, m_options.threads))));
    m_most_waiting = std::max(least_waiting, static_cast<uint64_t>(m_most_coders * m_block_bytes));
    const uint64_t held = coder * static_cast<uint64_t>(m_most_coders);
    const uint64_t left = m_options.memory - std::min(held, m_options.memory);
    m_most_rows = std::min<int64_t>({static_cast<int64_t>(left / row_bytes()), rows(),
                                     std::max<int64_t>(2, int64_t{m_options.threads} + 1)});
    for (int i = 1; m_options.helped && i < m_options.threads; ++i) {
        try {
            m_helpers.emplace_back([this] { serve(); });
        } catch (const std::system_error&) {
            break; // continues with the threads that were started
        }
    }
}

CompressedWriter::~CompressedWriter() { join_helpers(); }

bool CompressedWriter::cancelled() const {
    return m_options.cancel != nullptr && m_options.cancel->requested();
}

int64_t CompressedWriter::row_lines(int64_t row) const {
    return std::min(m_options.shape.block_lines, m_options.shape.lines - row * m_options.shape.block_lines);
}

uint64_t CompressedWriter::row_bytes() const {
    return static_cast<uint64_t>(blocks_in_row()) * static_cast<uint64_t>(m_block_bytes);
}

uint64_t CompressedWriter::wanted_bytes() const {
    return static_cast<uint64_t>(m_most_rows) * row_bytes() +
           static_cast<uint64_t>(m_most_coders) * BlockCoder::held_bytes(m_options.coding, m_form);
}

int CompressedWriter::scratch_file() {
    const std::lock_guard lock(m_mutex);
    if (!m_scratch) {
        m_scratch =
            FileHandle(::open(m_options.scratch.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        if (!m_scratch) throw system_error("cannot make '" + m_options.scratch + "'");
        ::unlink(m_options.scratch.c_str());
    }
    return m_scratch.get();
}

CompressedWriter::Row& CompressedWriter::open_row(int64_t row) {
    const auto [at, made] = m_rows.try_emplace(row);
    Row& opened = at->second;
    if (!made || m_rows_in_memory >= m_most_rows) return opened;
    ++m_rows_in_memory;
    if (m_spare.empty()) {
        opened.bytes = HostBuffer<char>(row_bytes());
    } else {
        opened.bytes = std::move(m_spare.back());
        m_spare.pop_back();
    }
    return opened;
}

void CompressedWriter::write(const Rect& core, const CubeView<float>& src) {
    const int64_t high = m_options.shape.block_lines;
    for (int64_t row = core.y / high; row * high < core.bottom(); ++row) {
        Row* to = nullptr;
        {
            const std::lock_guard lock(m_mutex);
            if (m_error) std::rethrow_exception(m_error);
            to = &open_row(row);
        }
        deposit(row, *to, core, src);
        const int64_t from = std::max(core.y, row * high), end = std::min(core.bottom(), (row + 1) * high);
        const std::lock_guard lock(m_mutex);
        to->pixels += core.w * (end - from);
        m_missing -= core.w * (end - from);
        if (job_is_ready()) m_changed.notify_all();
    }
    std::unique_lock lock(m_mutex);
    // After the last tile, finish() compresses the remaining blocks on all threads.
    while (m_missing > 0 && !cancelled()) {
        Job job = take_job();
        if (!job) return;
        do_job(std::move(job), lock);
    }
}

void CompressedWriter::deposit(int64_t row, Row& to, const Rect& core, const CubeView<float>& src) {
    const TiffShape& shape = m_options.shape;
    const int64_t top = row * shape.block_lines;
    const int64_t from = std::max(core.y, top), end = std::min(core.bottom(), top + shape.block_lines);
    const int64_t line_bytes = m_form.line_samples * m_form.sample_bytes;
    const int64_t pixel_bytes = m_form.step * m_form.sample_bytes;
    GatherWriter out(to.in_memory() ? -1 : scratch_file());
    std::vector<char> on_the_way;
    StoreRule::Scratch scratch;
    for (int64_t bx = core.x / shape.block_samples; bx * shape.block_samples < core.right(); ++bx) {
        const int64_t begin = bx * shape.block_samples;
        const int64_t left = std::max(core.x, begin),
                      right = std::min(core.right(), begin + shape.block_samples);
        const int64_t bytes = (right - left) * pixel_bytes;
        if (!to.in_memory()) on_the_way.resize(static_cast<size_t>(bytes * (end - from)));
        for (int64_t plane = 0; plane < shape.planes(); ++plane) {
            for (int64_t line = from; line < end; ++line) {
                const int64_t at = (plane * across() + bx) * m_block_bytes + (line - top) * line_bytes +
                                   (left - begin) * pixel_bytes;
                char* const stored =
                    to.in_memory() ? to.bytes.data() + at : on_the_way.data() + (line - from) * bytes;
                const auto count = static_cast<size_t>(right - left);
                if (shape.apart)
                    m_rule.store_line(src, static_cast<int>(plane), line - core.y, left - core.x, count,
                                      stored);
                else
                    m_rule.store_pixels(src, line - core.y, left - core.x, count, stored, scratch);
                if (!to.in_memory())
                    out.add(row * static_cast<int64_t>(row_bytes()) + at, stored, static_cast<size_t>(bytes));
            }
            if (!to.in_memory()) out.flush();
        }
    }
}

bool CompressedWriter::row_is_ready(int64_t row) {
    if (row >= rows()) return false;
    const auto at = m_rows.find(row);
    return m_all || (at != m_rows.end() && at->second.pixels == m_options.shape.samples * row_lines(row));
}

bool CompressedWriter::job_is_ready() {
    return !m_stop && row_is_ready(m_row) && m_file->waiting_bytes() < m_most_waiting &&
           (!m_coders.empty() || m_coders_made < m_most_coders);
}

CompressedWriter::Job CompressedWriter::take_job() {
    if (!job_is_ready()) return {};
    Job job;
    if (m_coders.empty()) {
        job.coder = std::make_unique<BlockCoder>(m_options.coding, m_form);
        ++m_coders_made;
    } else {
        job.coder = std::move(m_coders.back());
        m_coders.pop_back();
    }
    job.row = m_row;
    job.block = m_block;
    job.from = &open_row(m_row);
    if (++m_block == blocks_in_row()) {
        m_block = 0;
        ++m_row;
    }
    return job;
}

/// Fills the part of a block beyond the scene with zeros, because blocks at the border have full size in the
/// file.
void CompressedWriter::clear_beyond(char* block, const Job& job) const {
    const TiffShape& shape = m_options.shape;
    const int64_t bx = job.block % across(), lines = row_lines(job.row);
    const int64_t columns = std::min(shape.block_samples, shape.samples - bx * shape.block_samples);
    const int64_t pixel_bytes = m_form.step * m_form.sample_bytes,
                  line_bytes = m_form.line_samples * m_form.sample_bytes;
    if (columns < shape.block_samples)
        for (int64_t line = 0; line < lines; ++line)
            std::memset(block + line * line_bytes + columns * pixel_bytes, 0,
                        static_cast<size_t>(line_bytes - columns * pixel_bytes));
    std::memset(block + lines * line_bytes, 0, static_cast<size_t>((m_form.lines - lines) * line_bytes));
}

void CompressedWriter::do_job(Job job, std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    char* block = nullptr;
    const int64_t place_in_row = job.block * m_block_bytes;
    if (job.from->in_memory()) {
        block = job.from->bytes.data() + place_in_row;
    } else {
        block = job.coder->room();
        const auto wanted = static_cast<size_t>(m_block_bytes);
        const int file = scratch_file();
        for (size_t done = 0; done < wanted;) {
            const ssize_t got = ::pread(file, block + done, wanted - done,
                                        job.row * static_cast<int64_t>(row_bytes()) + place_in_row +
                                            static_cast<int64_t>(done));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) throw system_error("cannot read back the data written earlier");
            if (got == 0) { // tiles did not fill the rest of the block
                std::memset(block + done, 0, wanted - done);
                break;
            }
            done += static_cast<size_t>(got);
        }
    }
    clear_beyond(block, job);
    const int64_t lines = m_options.shape.tiled ? m_form.lines : row_lines(job.row);
    const std::span<const char> bytes = job.coder->encode(block, lines);
    lock.lock();
    m_file->place(job.row * blocks_in_row() + job.block, bytes, lock);
    m_coders.push_back(std::move(job.coder));
    if (++job.from->written == blocks_in_row()) {
        HostBuffer<char> done = std::move(job.from->bytes);
        m_rows.erase(job.row);
        lock.unlock();
        give_back(job.row, done);
        lock.lock();
        if (done.size() > 0) {
            m_spare.push_back(std::move(done));
            --m_rows_in_memory;
        }
    }
    m_changed.notify_all();
}

/// Clears the buffer of a row that has been written, or frees the row's part of the scratch file.
void CompressedWriter::give_back(int64_t row, const HostBuffer<char>& bytes) {
    if (bytes.size() > 0) {
        std::memset(bytes.data(), 0, bytes.size());
    } else {
        // If the file system cannot free the space, the scratch file keeps it until the file is closed.
        const auto begin = static_cast<uint64_t>(row) * row_bytes();
        system::give_back(scratch_file(), begin, begin + row_bytes());
    }
}

void CompressedWriter::serve() {
    std::unique_lock lock(m_mutex);
    try {
        while (true) {
            m_changed.wait(lock, [&] { return m_stop || job_is_ready(); });
            if (m_stop) return;
            do_job(take_job(), lock);
        }
    } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        if (!m_error) m_error = std::current_exception();
        m_stop = true;
        m_changed.notify_all();
    }
}

void CompressedWriter::join_helpers() {
    {
        const std::lock_guard lock(m_mutex);
        m_stop = true;
    }
    m_changed.notify_all();
    for (std::thread& helper : m_helpers)
        helper.join();
    m_helpers.clear();
}

void CompressedWriter::finish() {
    {
        const std::lock_guard lock(m_mutex);
        m_all = true;
    }
    m_changed.notify_all();
    parallel::on_threads(
        m_most_coders,
        [this](int) {
            std::unique_lock lock(m_mutex);
            while (m_row < rows() && !m_stop) {
                if (cancelled()) throw Cancelled();
                if (Job job = take_job())
                    do_job(std::move(job), lock);
                else
                    m_changed.wait(lock, [&] { return m_stop || m_row >= rows() || job_is_ready(); });
            }
        },
        [this] {
            const std::lock_guard lock(m_mutex);
            m_stop = true;
            m_changed.notify_all();
        });
    join_helpers(); // a helper may have compressed the last blocks
    if (m_error) std::rethrow_exception(m_error);
    m_rows.clear();
    m_spare.clear();
    m_coders.clear();
    m_file->close();
    // The TIFF directory lists all blocks of a plane before the blocks of the next plane.
    const TiffShape& shape = m_options.shape;
    std::vector<uint64_t> offsets(m_file->offsets().size()), sizes(offsets.size());
    for (size_t number = 0; number < offsets.size(); ++number) {
        const auto row = static_cast<int64_t>(number) / blocks_in_row(),
                   block = static_cast<int64_t>(number) % blocks_in_row();
        const auto entry =
            static_cast<size_t>((block / across() * shape.down() + row) * across() + block % across());
        offsets[entry] = m_file->offsets()[number];
        sizes[entry] = m_file->sizes()[number];
    }
    enter_tiff_blocks(m_options.path, shape, offsets, sizes);
}

} // namespace hsi::raster
