// SPDX-License-Identifier: MIT
// The arrays of a product in HDF5 whose chunks are decoded without the HDF5 library.
#pragma once

#include "core/host_memory.h"
#include "raster/codec/chunk_codec.h"
#include "raster/hdf5/hdf5_chunks.h"
#include "raster/io/block_store.h"
#include "raster/io/raw_file.h"
#include "raster/io/remote_file.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::raster {

class ChunkArrays {
  public:
    /// `names` are the names of the arrays, for messages. `remote` is the file on a server; null for a local
    /// file. Throws Error if the file cannot be opened.
    ChunkArrays(std::string path, std::vector<std::string> names, std::vector<Hdf5Chunks> arrays,
                std::shared_ptr<RemoteFile> remote);

    const Hdf5Chunks& array(size_t part) const { return m_arrays[part]; }
    size_t size() const { return m_arrays.size(); }
    uint64_t largest_chunk() const { return m_largest; }
    /// Returns the bytes of the lists of chunk positions.
    uint64_t list_bytes() const;
    /// Returns the maximum size of the buffers of one decoder (make_hands()) in bytes.
    uint64_t hands_bytes() const { return m_hands; }

    /// Returns the key and the size of chunk `number` (Hdf5Chunks::number()) of a part.
    BlockStore::Block block(size_t part, size_t number) const {
        return {static_cast<uint64_t>(part) << 32 | number, m_arrays[part].chunk_bytes()};
    }
    /// Returns the position of a chunk in the file. The chunk must have been written.
    RemoteFile::Extent place(size_t part, size_t number) const;
    RemoteFile* remote() const { return m_remote.get(); }
    /// Makes a decoder for one thread, which must not outlive this object.
    std::unique_ptr<BlockHands> make_hands() const;

    /// Returns the store of decoded chunks that all readers share.
    BlockStore& store() const { return *m_store; }

  private:
    class Hands;
    const FileHandle& file() const { return m_remote ? m_remote->local() : m_file; }

    const std::string m_path;
    const std::vector<std::string> m_names;
    const std::vector<Hdf5Chunks> m_arrays;
    uint64_t m_largest = 0, m_hands = 0, m_file_bytes = 0;
    const std::shared_ptr<RemoteFile> m_remote;
    FileHandle m_file;                   ///< the file if it is local
    std::unique_ptr<BlockStore> m_store; ///< the last member, because its threads use the members above
};

} // namespace hsi::raster
