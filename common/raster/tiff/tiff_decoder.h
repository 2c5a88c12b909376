// SPDX-License-Identifier: MIT
// Decodes blocks of a compressed GeoTIFF without GDAL.
#pragma once

#include "raster/codec/block_codec.h"
#include "raster/gdal/dataset_handle.h"
#include "raster/io/block_store.h"
#include "raster/io/raw_file.h"
#include "raster/io/remote_file.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// Returns how the blocks of a TIFF are coded; nullopt if GDAL must read them. This is so for other codecs,
/// uncompressed local files, LERC in another byte order than the CPU's, samples with an unusual number of
/// bits, and remote files in a file system that is not supported.
std::optional<BlockCoding> tiff_coding(GDALDataset& dataset);

/// Decodes the blocks of a TIFF. The number of a block is (band * down + row) * across + column, where all
/// indices count from 0. If blocks contain all bands, `band` is 0.
class TiffDecoder final : public BlockHands {
  public:
    /// `dataset` belongs to the caller's thread and must outlive this object. `together`: each block contains
    /// all bands. `name` is the name of the file for messages. `remote` is the file on a server; null for a
    /// local file.
    TiffDecoder(GDALDataset& dataset, const BlockCoding& coding, bool together, std::string name,
                std::shared_ptr<RemoteFile> remote);

    int64_t across() const { return m_across; }
    int64_t down() const { return m_down; }
    int64_t block_samples() const { return m_form.line_samples / m_form.step; }
    int64_t block_lines() const { return m_form.lines; }
    int64_t bands_in_block() const { return m_form.step; }
    int64_t sample_bytes() const { return m_form.sample_bytes; }
    BlockStore::Block block(int band, int64_t column, int64_t row) const {
        return {static_cast<uint64_t>((band * m_down + row) * m_across + column),
                static_cast<uint64_t>(m_form.bytes())};
    }

    /// Returns the position of a block in the file; an empty extent if the block was never written, or if its
    /// size is impossible.
    RemoteFile::Extent place(uint64_t block) const;
    /// Decodes a block line by line. If bands share blocks, the samples have interleaved bands. GDAL decodes
    /// blocks that were never written, and other unusual blocks. Throws Error for a damaged block.
    void decode(uint64_t block, char* samples) override;

  private:
    bool decode_here(uint64_t block, int band, int64_t column, int64_t row, char* samples);
    void decode_there(int band, int64_t column, int64_t row, char* samples);

    GDALDataset& m_dataset;
    const std::string m_name;
    const std::shared_ptr<RemoteFile> m_remote;
    FileHandle m_file; ///< the file if it is local
    BlockForm m_form;
    int64_t m_across = 0, m_down = 0;
    const bool m_lzw;
    BlockDecoder m_decoder;
    std::vector<char> m_bytes;
};

} // namespace hsi::raster
