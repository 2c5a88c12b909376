// SPDX-License-Identifier: MIT
#include "raster/tiff/cog_file.h"

#include "core/error.h"
#include "parallel/threads.h"
#include "raster/codec/block_codec.h"
#include "raster/gdal/dataset_handle.h"
#include "raster/gdal_errors.h"
#include "raster/io/ordered_blocks.h"
#include "raster/io/raw_file.h"
#include "raster/tiff/cog_overviews.h"
#include "raster/tiff/tiff_tags.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace hsi::raster {
namespace {

using namespace tiff;
constexpr uint64_t together = 1; ///< value of the tag planar_configuration for interleaved bands

/// Returns the bytes per value of a TIFF type (revision 6.0, section 2, and BigTIFF); 0 if the type is
/// unknown.
size_t value_bytes(uint16_t type) {
    constexpr size_t bytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
    return type < std::size(bytes) ? bytes[type] : 0;
}

struct Entry {
    uint16_t tag = 0, type = 0;
    uint64_t count = 0;
    std::string value;

    template <class T>
    T first_as() const {
        T number{};
        std::memcpy(&number, value.data(), sizeof number);
        return number;
    }
    /// Returns the first value if the type is a whole number; otherwise 0.
    uint64_t first() const {
        switch (value.empty() ? 0 : type) {
        case type_short:
            return first_as<uint16_t>();
        case type_long:
            return first_as<uint32_t>();
        case type_long8:
            return first_as<uint64_t>();
        default:
            return 0;
        }
    }
};
using Directory = std::vector<Entry>; // sorted by tag

template <class T>
std::string bytes_of(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// The directories of a TIFF in the byte order of this machine, and the bytes before the first directory.
class Directories {
  public:
    explicit Directories(const std::string& bytes) : m_bytes(bytes) {
        const char order = std::endian::native == std::endian::little ? 'I' : 'M';
        const auto version = number<uint16_t>(2);
        if (m_bytes[0] != order || m_bytes[1] != order || (version != 42 && version != 43)) throw unknown();
        m_big = version == 43;
        uint64_t at = place(m_big ? 8 : 4);
        m_head = m_bytes.substr(0, at);
        for (; at != 0; at = place(at))
            at = read(at);
    }

    bool big() const { return m_big; }
    const std::string& head() const { return m_head; }
    const std::vector<Directory>& all() const { return m_all; }

  private:
    static Error unknown() { return Error("this GDAL writes COGs in an unknown layout"); }
    template <class T>
    T number(uint64_t at) const {
        T value{};
        if (at > m_bytes.size() || m_bytes.size() - at < sizeof value) throw unknown();
        std::memcpy(&value, m_bytes.data() + at, sizeof value);
        return value;
    }
    uint64_t place(uint64_t at) const { return m_big ? number<uint64_t>(at) : number<uint32_t>(at); }

    /// Reads the directory at byte `at`. Returns the position of the pointer to the next directory.
    uint64_t read(uint64_t at) {
        const uint64_t entries = m_big ? number<uint64_t>(at) : number<uint16_t>(at);
        if (entries > 4096 || m_all.size() > 64) throw unknown();
        at += m_big ? 8 : 2;
        Directory& directory = m_all.emplace_back();
        const uint64_t inside = m_big ? 8 : 4;
        for (uint64_t k = 0; k < entries; ++k, at += 4 + 2 * inside) {
            Entry entry{number<uint16_t>(at), number<uint16_t>(at + 2), place(at + 4), {}};
            const uint64_t each = value_bytes(entry.type);
            if (each == 0 || entry.count > m_bytes.size() / each) throw unknown();
            const uint64_t bytes = entry.count * each;
            const uint64_t from = bytes <= inside ? at + 4 + inside : place(at + 4 + inside);
            if (from > m_bytes.size() || m_bytes.size() - from < bytes) throw unknown();
            entry.value = m_bytes.substr(from, bytes);
            directory.push_back(std::move(entry));
        }
        return at;
    }

    const std::string& m_bytes;
    std::string m_head;
    bool m_big = false;
    std::vector<Directory> m_all;
};

/// A resolution of the COG: the image or an overview.
struct Level {
    int overview = 0; ///< number of the overview; 0: the image itself
    int64_t samples = 0, lines = 0, across = 0, blocks = 0;
    bool compressed = false;
    BlockCoding coding;
    Directory directory;
    int64_t first = 0; ///< index of its first block, in the order of the file
};

const Entry* find(const Directory& directory, Tag tag) {
    const auto at =
        std::find_if(directory.begin(), directory.end(), [&](const Entry& e) { return e.tag == tag; });
    return at == directory.end() ? nullptr : &*at;
}

uint64_t value_of(const Directory& directory, Tag tag, uint64_t otherwise) {
    const Entry* const entry = find(directory, tag);
    return entry != nullptr && entry->count == 1 ? entry->first() : otherwise;
}

void replace(Directory& directory, Tag tag, uint16_t type, uint64_t count, std::string value) {
    for (Entry& entry : directory)
        if (entry.tag == tag) entry = {tag, type, count, std::move(value)};
}

/// Reads the compression that a directory states. Returns false if only GDAL supports it.
bool read_coding(Level& level, int wanted_level) {
    level.compressed = true;
    level.coding.by_default = wanted_level == 0;
    switch (value_of(level.directory, compression, 1)) {
    case 1:
        level.compressed = false;
        return true;
    case 8:
    case 32946:
        level.coding.level = wanted_level != 0 ? wanted_level : 6;
        if (level.coding.level > 12) return false;
        break;
    case 50000:
        level.coding.codec = BlockCoding::Codec::zstd;
        level.coding.level = wanted_level != 0 ? wanted_level : 9;
        if (level.coding.level > 22) return false;
        break;
    case 5:
        level.coding.codec = BlockCoding::Codec::lzw;
        break;
    default:
        return false;
    }
    const uint64_t before = value_of(level.directory, predictor, 1);
    level.coding.predictor = static_cast<BlockCoding::Predictor>(before);
    return before >= 1 && before <= 3;
}

class CogWriter {
  public:
    CogWriter(const CogFile& cog, const Directories& model) : m_cog(cog), m_model(model) {}

    bool plan() {
        const DatasetHandle stage = open_stage();
        m_bands = stage->GetRasterCount();
        const auto overviews = static_cast<int>(m_cog.factors.size());
        if (m_model.all().size() != (overviews > 0 ? 2U : 1U)) return false;
        for (int k = 0; k <= overviews; ++k) {
            const int factor = k == 0 ? 1 : m_cog.factors[static_cast<size_t>(k) - 1];
            Level& level = m_levels.emplace_back();
            level.overview = k;
            level.samples = (stage->GetRasterXSize() + factor - 1) / factor;
            level.lines = (stage->GetRasterYSize() + factor - 1) / factor;
            level.across = (level.samples + m_cog.block_side - 1) / m_cog.block_side;
            level.blocks = level.across * ((level.lines + m_cog.block_side - 1) / m_cog.block_side);
            level.directory = m_model.all()[k == 0 ? 0 : 1];
            if (!read_coding(level, m_cog.level)) return false;
            if (m_bands > 1 && value_of(level.directory, planar_configuration, together) != together)
                return false;
            for (const Tag tag :
                 {image_width, image_length, tile_width, tile_length, tile_offsets, tile_byte_counts})
                if (find(level.directory, tag) == nullptr) return false;
        }
        // The smallest overview is first in the file.
        for (auto level = m_levels.rbegin(); level != m_levels.rend(); ++level) {
            level->first = m_blocks;
            m_blocks += level->blocks;
        }
        m_form.step = m_bands;
        m_form.line_samples = m_cog.block_side * m_bands;
        m_form.lines = m_cog.block_side;
        m_form.sample_bytes = GDALGetDataTypeSizeBytes(m_cog.type);
        return true;
    }

    void write() {
        if (!m_cog.factors.empty())
            m_overviews.emplace(OverviewTask{m_cog.stage, m_cog.factors, m_cog.resampling, m_cog.most_threads,
                                             m_cog.memory, m_cog.cancel});
        FileHandle file(::open(m_cog.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
        if (!file) throw system_error("cannot make '" + m_cog.path + "'");
        m_file.emplace(std::move(file), static_cast<int64_t>(directories().size()), m_blocks,
                       OrderedBlocks::Form{m_model.big(), true});
        parallel::on_threads(
            m_cog.threads, [this](int) { work(); },
            [this] {
                const std::lock_guard lock(m_mutex);
                m_stop = true;
                m_changed.notify_all();
            });
        const std::string head = directories();
        GatherWriter out(m_file->file().get());
        out.add(0, head.data(), head.size());
        out.flush();
        m_file->close();
    }

  private:
    static Error system_error(const std::string& what) { return Error(what + ": " + std::strerror(errno)); }

    DatasetHandle open_stage() const {
        const GdalErrors errors;
        DatasetHandle stage(GDALDataset::FromHandle(
            GDALOpenEx(m_cog.stage.c_str(), GDAL_OF_RASTER | GDAL_OF_READONLY, nullptr, nullptr, nullptr)));
        if (!stage) throw Error(errors.text());
        return stage;
    }

    /// Returns all bytes before the first block. Their number does not depend on the positions and sizes of
    /// the blocks.
    std::string directories() const {
        std::string bytes = m_model.head();
        struct Later {
            uint64_t at;
            std::string value;
        };
        // The arrays of positions and sizes follow all directories, so that a reader gets the directories
        // with its first request.
        std::vector<Later> arrays;
        const size_t inside = m_model.big() ? 8 : 4;
        const auto put = [&](std::string& to, uint64_t value) {
            to += m_model.big() ? bytes_of(value) : bytes_of(static_cast<uint32_t>(value));
        };
        const auto align = [&] { bytes.resize((bytes.size() + inside - 1) / inside * inside); };
        for (size_t k = 0; k < m_levels.size(); ++k) {
            const Directory directory = complete(m_levels[k]);
            const auto entries = static_cast<uint64_t>(directory.size());
            bytes += m_model.big() ? bytes_of(entries) : bytes_of(static_cast<uint16_t>(entries));
            const uint64_t values_at = bytes.size() + entries * (4 + 2 * inside) + inside;
            std::string values(((values_at + inside - 1) / inside * inside) - values_at, '\0');
            for (const Entry& entry : directory) {
                bytes += bytes_of(entry.tag) + bytes_of(entry.type);
                put(bytes, entry.count);
                if (entry.value.size() <= inside) {
                    bytes += entry.value + std::string(inside - entry.value.size(), '\0');
                } else if (entry.tag == tile_offsets || entry.tag == tile_byte_counts) {
                    arrays.push_back({bytes.size(), entry.value});
                    put(bytes, 0);
                } else {
                    put(bytes, values_at + values.size());
                    values += entry.value;
                    values.resize((values.size() + inside - 1) / inside * inside);
                }
            }
            const bool last = k + 1 == m_levels.size();
            put(bytes, last ? 0 : values_at + values.size());
            bytes += values;
        }
        for (const Later& array : arrays) {
            align();
            std::string at;
            put(at, bytes.size());
            bytes.replace(array.at, inside, at);
            bytes += array.value;
        }
        align();
        if (!m_model.big() && bytes.size() > UINT32_MAX) throw OrderedBlocks::too_large();
        return bytes;
    }

    /// Returns the directory of a level with its size, and with the positions and sizes of its blocks.
    Directory complete(const Level& level) const {
        Directory directory = level.directory;
        const auto set = [&](Tag tag, int64_t value) {
            replace(directory, tag, type_long, 1, bytes_of(static_cast<uint32_t>(value)));
        };
        set(image_width, level.samples);
        set(image_length, level.lines);
        set(tile_width, m_cog.block_side);
        set(tile_length, m_cog.block_side);
        std::string offsets, counts;
        for (int64_t block = level.first; block < level.first + level.blocks; ++block) {
            const auto number = static_cast<size_t>(block);
            // The positions are 0 until the blocks have been written.
            const uint64_t place = m_file ? m_file->offsets()[number] : 0;
            offsets += m_model.big() ? bytes_of(place) : bytes_of(static_cast<uint32_t>(place));
            counts += bytes_of(static_cast<uint32_t>(m_file ? m_file->sizes()[number] : 0));
        }
        const auto blocks = static_cast<uint64_t>(level.blocks);
        replace(directory, tile_offsets, m_model.big() ? type_long8 : type_long, blocks, offsets);
        replace(directory, tile_byte_counts, type_long, blocks, counts);
        return directory;
    }

    /// Returns the level that contains block `number`, counted in the order of the file, and the index of the
    /// block within this level.
    std::pair<const Level*, int64_t> find_block(int64_t number) const {
        const auto level =
            std::find_if(m_levels.begin(), m_levels.end(), [&](const Level& l) { return l.first <= number; });
        return {&*level, number - level->first};
    }

    void work() {
        const DatasetHandle stage = open_stage();
        std::optional<BlockCoder> coder; // encoder for the level of the previous block
        const Level* coder_of = nullptr;
        std::unique_lock lock(m_mutex);
        while (true) {
            m_changed.wait(lock, [&] { return m_stop || m_file->waiting_bytes() <= most_waiting(); });
            if (m_stop || m_next == m_blocks) return;
            if (m_cog.cancel != nullptr && m_cog.cancel->requested()) throw Cancelled();
            const int64_t number = m_next++;
            lock.unlock();
            const auto [level, block] = find_block(number);
            if (coder_of != level) coder.emplace(level->coding, m_form);
            coder_of = level;
            char* const samples = coder->room();
            read(*stage, *level, block, samples);
            std::span<const char> bytes(samples, static_cast<size_t>(m_form.bytes()));
            if (level->compressed) bytes = coder->encode(samples, m_form.lines);
            lock.lock();
            m_file->place(number, bytes, lock);
            m_changed.notify_all();
        }
    }

    uint64_t most_waiting() const {
        return static_cast<uint64_t>(m_cog.threads) * static_cast<uint64_t>(m_form.bytes());
    }

    /// Reads the samples of a block with interleaved bands. Samples beyond the scene are 0.
    void read(GDALDataset& stage, const Level& level, int64_t block, char* to) const {
        const int64_t side = m_cog.block_side, x = block % level.across * side,
                      y = block / level.across * side;
        const auto w = static_cast<int>(std::min(side, level.samples - x)),
                   h = static_cast<int>(std::min(side, level.lines - y));
        if (w < side || h < side) std::memset(to, 0, static_cast<size_t>(m_form.bytes()));
        const int64_t pixel = m_form.step * m_form.sample_bytes;
        if (level.overview > 0)
            return m_overviews->read({level.overview - 1, static_cast<int>(x), static_cast<int>(y), w, h,
                                      m_cog.type, m_form.sample_bytes, side * pixel, pixel},
                                     block, to);
        const GdalErrors errors;
        for (int b = 0; b < m_bands; ++b) {
            GDALRasterBand* const band = stage.GetRasterBand(b + 1);
            if (band == nullptr || band->RasterIO(GF_Read, static_cast<int>(x), static_cast<int>(y), w, h,
                                                  to + b * m_form.sample_bytes, w, h, m_cog.type, pixel,
                                                  side * pixel, nullptr) != CE_None)
                throw Error("cannot read '" + m_cog.stage + "': " + errors.text());
        }
    }

    const CogFile& m_cog;
    const Directories& m_model;
    int m_bands = 0;
    std::vector<Level> m_levels; ///< the image is first
    BlockForm m_form;
    int64_t m_blocks = 0;
    std::optional<CogOverviews> m_overviews;

    std::mutex m_mutex; ///< guards the members below
    std::condition_variable m_changed;
    int64_t m_next = 0;                  ///< next block to compress
    std::optional<OrderedBlocks> m_file; ///< empty until write() has created the file
    bool m_stop = false;
};

} // namespace

bool write_cog(const CogFile& cog) {
    const Directories model(cog.model);
    CogWriter writer(cog, model);
    if (!writer.plan()) return false;
    writer.write();
    return true;
}

} // namespace hsi::raster
