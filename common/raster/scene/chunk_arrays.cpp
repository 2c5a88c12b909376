// SPDX-License-Identifier: MIT
#include "raster/scene/chunk_arrays.h"

#include "core/counted.h"
#include "core/error.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace hsi::raster {
namespace {

/// Reads all bytes. Returns 0 on success, -1 if the file is too short, or else errno.
int read_at(int file, char* to, uint64_t bytes, uint64_t at) {
    while (bytes > 0) {
        const ssize_t n = ::pread(file, to, bytes, static_cast<off_t>(at));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        if (n == 0) return -1;
        to += n;
        at += static_cast<uint64_t>(n);
        bytes -= static_cast<uint64_t>(n);
    }
    return 0;
}

/// Returns the maximum plausible size of a stored chunk. No filter enlarges noise by more, and a wrong size
/// in the file must not allocate memory.
uint64_t most_stored(uint64_t chunk_bytes) { return chunk_bytes + chunk_bytes / 2 + 4096; }

} // namespace

ChunkArrays::ChunkArrays(std::string path, std::vector<std::string> names, std::vector<Hdf5Chunks> arrays,
                         std::shared_ptr<RemoteFile> remote)
    : m_path(std::move(path)), m_names(std::move(names)), m_arrays(std::move(arrays)),
      m_remote(std::move(remote)), m_file(m_remote ? -1 : ::open(m_path.c_str(), O_RDONLY | O_CLOEXEC)),
      m_store(std::make_unique<BlockStore>()) {
    struct stat info {};
    if (!file() || ::fstat(file().get(), &info) != 0)
        throw Error("cannot open '" + m_path + "': " + std::strerror(errno));
    m_file_bytes = static_cast<uint64_t>(info.st_size);
    for (const Hdf5Chunks& array : m_arrays) {
        const uint64_t bytes = array.chunk_bytes();
        m_largest = std::max(m_largest, bytes);
        if (array.coding.filters.empty()) continue;
        uint64_t stored = 0;
        for (const ChunkPlace& place : array.places)
            if (place.written()) stored = std::max<uint64_t>(stored, place.bytes);
        m_hands = std::max(m_hands, std::min(stored, most_stored(bytes)) +
                                        ChunkDecoder::held_bytes(array.coding, bytes));
    }
}

uint64_t ChunkArrays::list_bytes() const {
    uint64_t bytes = 0;
    for (const Hdf5Chunks& array : m_arrays)
        bytes += array.places.size() * sizeof(ChunkPlace);
    return bytes;
}

RemoteFile::Extent ChunkArrays::place(size_t part, size_t number) const {
    const ChunkPlace& place = m_arrays[part].places[number];
    return {place.offset, place.offset + place.bytes};
}

class ChunkArrays::Hands final : public BlockHands {
  public:
    explicit Hands(const ChunkArrays& arrays) : m_file(arrays), m_decoders(arrays.size()) {}

    void decode(uint64_t block, char* samples) override {
        const size_t part = block >> 32;
        const auto number = static_cast<uint32_t>(block);
        const Hdf5Chunks& array = m_file.m_arrays[part];
        const ChunkPlace& place = array.places[number];
        const uint64_t bytes = array.chunk_bytes();
        const auto fail = [&](const std::string& what) { refuse(part, number, what); };
        const uint64_t end = m_file.m_file_bytes;
        if (place.offset > end || place.bytes > end - place.offset)
            fail("ends after the end of the file, which has " + counted(end, "byte"));
        const auto read = [&](char* to) {
            const auto hold =
                m_file.m_remote ? m_file.m_remote->need({m_file.place(part, number)}) : RemoteFile::Hold();
            const int reason = read_at(m_file.file().get(), to, place.bytes, place.offset);
            if (reason != 0)
                fail(reason > 0 ? std::string("cannot be read: ") + std::strerror(reason) : "is cut off");
        };
        if (array.coding.filters.empty()) {
            if (place.bytes != bytes) fail("should have " + counted(bytes, "byte"));
            return read(samples);
        }
        if (place.bytes > most_stored(bytes))
            fail("is too long for " + counted(bytes, "byte") + " of samples");
        if (m_stored.size() < place.bytes) m_stored = HostBuffer<char>(place.bytes);
        read(m_stored.data());
        auto& decoder = m_decoders[part];
        if (!decoder) decoder = std::make_unique<ChunkDecoder>(array.coding, bytes);
        if (const auto wrong = decoder->decode({m_stored.data(), place.bytes}, place.left_out, samples))
            fail(*wrong);
    }

  private:
    [[noreturn]] void refuse(size_t part, uint32_t number, const std::string& what) const {
        if (m_file.m_remote) m_file.m_remote->check_unchanged();
        const Hdf5Chunks& array = m_file.m_arrays[part];
        const ChunkPlace& place = array.places[number];
        std::string at;
        int64_t rest = number;
        for (size_t axis = 3; axis-- > 0; rest /= array.count(axis))
            at = std::to_string(rest % array.count(axis) * array.chunk[axis]) + (at.empty() ? "" : ", ") + at;
        throw Error("cannot read '" + m_file.m_path + "': the chunk of " + m_file.m_names[part] + " at " +
                        at + " (" + counted(place.bytes, "byte") + " at byte " +
                        std::to_string(place.offset) + " of the file) " + what,
                    "The file is damaged: fetch or copy it again.");
    }

    const ChunkArrays& m_file;
    HostBuffer<char> m_stored;
    std::vector<std::unique_ptr<ChunkDecoder>> m_decoders;
};

std::unique_ptr<BlockHands> ChunkArrays::make_hands() const { return std::make_unique<Hands>(*this); }

} // namespace hsi::raster
