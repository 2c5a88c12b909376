// SPDX-License-Identifier: MIT
#include "raster/tiff/tiff_decoder.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "raster/codec/lerc_codec.h"
#include "raster/gdal_errors.h"
#include "raster/io/whole_file.h"
#include "raster/regular_file.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <span>
#include <utility>

namespace hsi::raster {
namespace {

/// Returns whether the bytes of the samples must be swapped. "II" means little-endian, and "MM" means
/// big-endian.
bool is_swapped(const std::string& path) {
    return beginning_of_file(path, 2) != (std::endian::native == std::endian::little ? "II" : "MM");
}

BlockForm form_of(GDALDataset& dataset, bool together) {
    GDALRasterBand* const band = dataset.GetRasterBand(1);
    int across = 0, down = 0;
    band->GetBlockSize(&across, &down);
    const int64_t step = together ? dataset.GetRasterCount() : 1;
    const int64_t bytes = GDALGetDataTypeSizeBytes(band->GetRasterDataType());
    return {across * step, down, step, bytes,
            bytes > 1 && is_swapped(without_whole_names(dataset.GetDescription()))};
}

bool is_tiled(GDALDataset& dataset) {
    int across = 0, down = 0;
    dataset.GetRasterBand(1)->GetBlockSize(&across, &down);
    return across != dataset.GetRasterXSize();
}

/// Returns a byte with its bits in reverse order.
char turned(char byte) {
    auto v = static_cast<uint8_t>(byte);
    v = static_cast<uint8_t>((v & 0x0f) << 4 | v >> 4);
    v = static_cast<uint8_t>((v & 0x33) << 2 | (v >> 2 & 0x33));
    return static_cast<char>((v & 0x55) << 1 | (v >> 1 & 0x55));
}

} // namespace

std::optional<BlockCoding> tiff_coding(GDALDataset& dataset) {
    const auto item = [&](const char* name) {
        const char* const text = dataset.GetMetadataItem(name, "IMAGE_STRUCTURE");
        return std::string(text != nullptr ? text : "");
    };
    const std::string path = without_whole_names(dataset.GetDescription()), codec = item("COMPRESSION"),
                      predictor = item("PREDICTOR");
    if (!is_local(path) && VSIIsLocal(path.c_str())) return std::nullopt;
    BlockCoding coding;
    if (codec == "ZSTD")
        coding.codec = BlockCoding::Codec::zstd;
    else if (codec == "LZW")
        coding.codec = BlockCoding::Codec::lzw;
    else if (codec.empty() && !is_local(path) && is_tiled(dataset))
        coding.codec = BlockCoding::Codec::none; // GDAL would fetch an uncompressed remote file on one thread
    else if (codec.starts_with("LERC")) {
        // LERC stores an alpha band of bytes as its mask, and not as a band of the block.
        for (int b = 1; b <= dataset.GetRasterCount(); ++b)
            if (dataset.GetRasterBand(b)->GetColorInterpretation() == GCI_AlphaBand) return std::nullopt;
        coding.lerc = lerc_of(dataset.GetRasterBand(1)->GetRasterDataType());
        if (!coding.lerc) return std::nullopt;
        if (is_swapped(path)) return std::nullopt; // libtiff swaps the bytes before it encodes them with LERC
        if (codec == "LERC")
            coding.codec = BlockCoding::Codec::none;
        else if (codec == "LERC_ZSTD")
            coding.codec = BlockCoding::Codec::zstd;
        else if (codec != "LERC_DEFLATE")
            return std::nullopt;
    } else if (codec != "DEFLATE")
        return std::nullopt;
    if (predictor == "2" || predictor == "3")
        coding.predictor =
            predictor == "2" ? BlockCoding::Predictor::differences : BlockCoding::Predictor::floats;
    else if (!predictor.empty() && predictor != "1")
        return std::nullopt;
    const GDALDataType type = dataset.GetRasterBand(1)->GetRasterDataType();
    for (int b = 1; b <= dataset.GetRasterCount(); ++b) {
        GDALRasterBand* const band = dataset.GetRasterBand(b);
        const char* const bits = band->GetMetadataItem("NBITS", "IMAGE_STRUCTURE");
        if (band->GetRasterDataType() != type ||
            (bits != nullptr && std::atoi(bits) != GDALGetDataTypeSizeBits(type)))
            return std::nullopt;
    }
    return coding;
}

TiffDecoder::TiffDecoder(GDALDataset& dataset, const BlockCoding& coding, bool together, std::string name,
                         std::shared_ptr<RemoteFile> remote)
    : m_dataset(dataset), m_name(std::move(name)), m_remote(std::move(remote)),
      m_file(m_remote ? -1 : ::open(dataset.GetDescription(), O_RDONLY | O_CLOEXEC)),
      m_form(form_of(dataset, together)), m_lzw(coding.codec == BlockCoding::Codec::lzw),
      m_decoder(coding, m_form) {
    m_across = (dataset.GetRasterXSize() + block_samples() - 1) / block_samples();
    m_down = (dataset.GetRasterYSize() + block_lines() - 1) / block_lines();
}

void TiffDecoder::decode(uint64_t block, char* samples) {
    const auto number = static_cast<int64_t>(block);
    const int64_t column = number % m_across, row = number / m_across % m_down;
    const auto band = static_cast<int>(number / m_across / m_down);
    if (!decode_here(block, band, column, row, samples)) decode_there(band, column, row, samples);
}

RemoteFile::Extent TiffDecoder::place(uint64_t block) const {
    const auto number = static_cast<int64_t>(block);
    const auto column = static_cast<int>(number % m_across),
               row = static_cast<int>(number / m_across % m_down),
               band = static_cast<int>(number / m_across / m_down);
    GDALRasterBand& of = *m_dataset.GetRasterBand(band + 1);
    // CPLSPrintf() is not used, because GDAL overwrites its buffers if the first query makes GDAL search for
    // side files.
    const std::string where = "_" + std::to_string(column) + "_" + std::to_string(row);
    const auto fact = [&](const char* name) -> int64_t {
        const char* const text = of.GetMetadataItem((name + where).c_str(), "TIFF");
        return text != nullptr ? std::atoll(text) : 0;
    };
    const int64_t at = fact("BLOCK_OFFSET"), size = fact("BLOCK_SIZE");
    // No codec enlarges noise by more than this, and a wrong size in the file must not allocate memory.
    if (at <= 0 || size <= 0 || size > m_form.bytes() + m_form.bytes() / 2 + 4096) return {};
    return {static_cast<uint64_t>(at), static_cast<uint64_t>(at + size)};
}

bool TiffDecoder::decode_here(uint64_t block, int band, int64_t column, int64_t row, char* samples) {
    const RemoteFile::Extent extent = place(block);
    const auto at = static_cast<int64_t>(extent.begin), size = static_cast<int64_t>(extent.end) - at;
    if (size == 0 || (!m_remote && !m_file)) return false;
    m_bytes.resize(std::max(m_bytes.size(), static_cast<size_t>(size)));
    const std::span<char> stored(m_bytes.data(), static_cast<size_t>(size));
    const auto refuse = [&](const std::string& what) {
        if (m_remote) m_remote->check_unchanged();
        throw Error("cannot read " + m_name + ": the block of " +
                        (m_form.step > 1 ? std::string("all bands") : "band " + std::to_string(band + 1)) +
                        " at sample " + std::to_string(column * block_samples()) + ", line " +
                        std::to_string(row * m_form.lines) + " (" + counted(size, "byte") + " at byte " +
                        std::to_string(at) + " of the file) " + what,
                    "The file is damaged: fetch or copy it again.");
    };
    {
        const auto hold = m_remote ? m_remote->need({extent}) : RemoteFile::Hold();
        const FileHandle& file = m_remote ? m_remote->local() : m_file;
        if (::pread(file.get(), stored.data(), stored.size(), at) != size)
            refuse("ends after the end of the file");
    }
    const int64_t lines = std::min(m_form.lines, m_dataset.GetRasterYSize() - row * m_form.lines);
    if (m_decoder.decode(stored, lines, samples)) return true;
    // The tag FillOrder may state that the bits of each byte are in reverse order.
    std::transform(stored.begin(), stored.end(), stored.begin(), turned);
    if (m_decoder.decode(stored, lines, samples)) return true;
    // Streams of LZW from before 1990 begin differently, and GDAL decodes them.
    if (m_lzw && size > 1 && stored[0] == 0 && (turned(stored[1]) & 1) != 0) return false;
    // GDAL is not used for a damaged block, because it would return the samples that can be decoded, and does
    // not check the check sum.
    refuse("does not decode to its " + counted(lines * m_form.line_samples * m_form.sample_bytes, "byte"));
    return false;
}

void TiffDecoder::decode_there(int band, int64_t column, int64_t row, char* samples) {
    const GdalErrors errors;
    CPLErr result = CE_None;
    if (m_form.step == 1) {
        result = m_dataset.GetRasterBand(band + 1)->ReadBlock(static_cast<int>(column), static_cast<int>(row),
                                                              samples);
    } else {
        const int64_t x = column * block_samples(), y = row * m_form.lines,
                      w = std::min(block_samples(), m_dataset.GetRasterXSize() - x),
                      h = std::min(m_form.lines, m_dataset.GetRasterYSize() - y),
                      pixel = m_form.step * m_form.sample_bytes;
        result =
            m_dataset.RasterIO(GF_Read, static_cast<int>(x), static_cast<int>(y), static_cast<int>(w),
                               static_cast<int>(h), samples, static_cast<int>(w), static_cast<int>(h),
                               m_dataset.GetRasterBand(1)->GetRasterDataType(), static_cast<int>(m_form.step),
                               nullptr, pixel, pixel * block_samples(), m_form.sample_bytes, nullptr);
    }
    // Some drivers report an error for a damaged block, but return success.
    if (result != CE_None || errors.any()) throw Error("cannot read " + m_name + ": " + errors.text());
}

} // namespace hsi::raster
