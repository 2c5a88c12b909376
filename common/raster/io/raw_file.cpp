// SPDX-License-Identifier: MIT
#include "raster/io/raw_file.h"

#include "core/error.h"
#include "core/file_path.h"
#include "core/system.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"
#include "raster/sample_convert.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace hsi::raster {

namespace {

constexpr size_t max_pieces = IOV_MAX;

/// Removes the first `done` bytes from the pieces that begin at index `first`. Returns the index of the first
/// piece with remaining bytes.
size_t advance(std::vector<iovec>& pieces, size_t first, size_t done) {
    while (first < pieces.size() && done >= pieces[first].iov_len)
        done -= pieces[first++].iov_len;
    if (first < pieces.size()) {
        pieces[first].iov_base = static_cast<char*>(pieces[first].iov_base) + done;
        pieces[first].iov_len -= done;
    }
    return first;
}

} // namespace

FileHandle::~FileHandle() {
    if (m_fd >= 0) ::close(m_fd);
}

bool FileHandle::held_by_system(size_t probes) const {
    struct stat info {};
    if (m_fd < 0 || ::fstat(m_fd, &info) != 0 || info.st_size <= 0) return false;
    const auto bytes = static_cast<size_t>(info.st_size), page = system::page_size();
    const size_t pages = (bytes + page - 1) / page;
    // The mapping is only queried, never read.
    void* const at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, m_fd, 0);
    if (at == MAP_FAILED) return false;
    if (probes >= pages) probes = 0;
    const size_t at_once = probes == 0 ? pages : 1;
    const auto holds = [&](size_t first) {
        return system::in_memory(static_cast<char*>(at) + first * page,
                                 std::min(at_once * page, bytes - first * page));
    };
    bool all = true;
    for (size_t k = 0; all && k < std::max<size_t>(probes, 1); ++k)
        all = holds(probes == 0 ? 0 : k * (pages - 1) / std::max<size_t>(probes - 1, 1));
    ::munmap(at, bytes);
    return all;
}

std::optional<RawLayout> raw_layout(GDALDataset& dataset) {
    GDALDataset::RawBinaryLayout gdal;
    if (!dataset.GetRawBinaryLayout(gdal)) return std::nullopt;
    RawLayout raw;
    raw.path = without_whole_names(file_behind(gdal.osRawFilename));
    raw.type = gdal.eDataType;
    raw.sample_bytes = GDALGetDataTypeSizeBytes(gdal.eDataType);
    raw.swapped =
        raw.sample_bytes > 1 && gdal.bLittleEndianOrder != (std::endian::native == std::endian::little);
    raw.origin = static_cast<int64_t>(gdal.nImageOffset);
    const GDALDriver* const driver = dataset.GetDriver();
    // A TIFF begins with a header, so offset 0 means a sparse file without written blocks.
    if (raw.origin == 0 && driver && EQUAL(driver->GetDescription(), "GTiff")) return std::nullopt;
    raw.pixel_step = gdal.nPixelOffset;
    raw.line_step = gdal.nLineOffset;
    raw.band_step = gdal.nBandOffset;
    if (dataset.GetRasterCount() == 1 && raw.band_step <= 0) raw.band_step = raw.sample_bytes;
    if (!convertible(sample_type(raw.type)) || raw.pixel_step < raw.sample_bytes || raw.line_step <= 0 ||
        raw.band_step <= 0)
        return std::nullopt;
    struct stat info {};
    if (is_local(raw.path) ? ::stat(raw.path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)
                           : VSIIsLocal(raw.path.c_str()))
        return std::nullopt;
    for (int b = 1; b <= dataset.GetRasterCount(); ++b) {
        GDALRasterBand* const band = dataset.GetRasterBand(b);
        if (band->GetRasterDataType() != raw.type) return std::nullopt;
        // GDAL declares the half-precision floats of a GeoTIFF as Float32, also in the raw layout.
        const char* const bits = band->GetMetadataItem("NBITS", "IMAGE_STRUCTURE");
        if (bits != nullptr && std::atoi(bits) != 8 * raw.sample_bytes) return std::nullopt;
    }
    // A compressed ENVI file is not raw, although GDAL returns a raw layout for it.
    const char* packed = dataset.GetMetadataItem("file_compression", "ENVI");
    if (packed != nullptr && std::atoi(packed) != 0) return std::nullopt;
    return raw;
}

void ScatterReader::add(int64_t offset, void* to, size_t length) {
    if (!m_pieces.empty()) {
        const int64_t gap = offset - m_end;
        if (gap < 0 || gap > static_cast<int64_t>(max_skip) || m_pieces.size() + 2 > max_pieces)
            flush();
        else if (gap > 0)
            m_pieces.push_back({m_skip.data(), static_cast<size_t>(gap)});
    }
    if (m_pieces.empty()) m_begin = offset;
    m_end = offset + static_cast<int64_t>(length);
    if (!m_pieces.empty()) {
        iovec& last = m_pieces.back();
        if (static_cast<char*>(last.iov_base) + last.iov_len == to) {
            last.iov_len += length;
            return;
        }
    }
    m_pieces.push_back({to, length});
}

void ScatterReader::flush() {
    size_t first = 0;
    int64_t at = m_begin;
    while (first < m_pieces.size()) {
        const ssize_t got =
            ::preadv(m_fd, m_pieces.data() + first, static_cast<int>(m_pieces.size() - first), at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            m_pieces.clear();
            throw Error(got < 0 ? std::string("read error: ") + std::strerror(errno)
                                : "the file ends at byte " + std::to_string(at) + ", before its last sample");
        }
        at += got;
        first = advance(m_pieces, first, static_cast<size_t>(got));
    }
    m_pieces.clear();
}

void GatherWriter::add(int64_t offset, const void* from, size_t length) {
    if (!m_pieces.empty() && (offset != m_end || m_pieces.size() >= max_pieces)) flush();
    if (m_pieces.empty()) m_begin = offset;
    m_end = offset + static_cast<int64_t>(length);
    if (!m_pieces.empty()) {
        iovec& last = m_pieces.back();
        if (static_cast<const char*>(last.iov_base) + last.iov_len == from) {
            last.iov_len += length;
            return;
        }
    }
    m_pieces.push_back({const_cast<void*>(from), length});
}

void GatherWriter::flush() {
    size_t first = 0;
    int64_t at = m_begin;
    while (first < m_pieces.size()) {
        const ssize_t put =
            ::pwritev(m_fd, m_pieces.data() + first, static_cast<int>(m_pieces.size() - first), at);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            const int reason = put < 0 ? errno : EIO;
            m_pieces.clear();
            throw Error(std::strerror(reason));
        }
        at += put;
        first = advance(m_pieces, first, static_cast<size_t>(put));
    }
    m_pieces.clear();
}

std::string shown_name(const EnviFile& file) {
    return shown_envi + std::to_string(file.header.size()) + "," + file.header + "/" + file.data;
}

/// Splits a name without the prefix shown_envi.
std::optional<EnviFile> shown_parts(const std::string& name) {
    char* end = nullptr;
    const unsigned long length = std::strtoul(name.c_str(), &end, 10);
    if (end == name.c_str() || *end != ',') return std::nullopt;
    const auto begin = static_cast<size_t>(end + 1 - name.c_str());
    if (length > name.size() - begin || name[begin + length] != '/') return std::nullopt;
    return EnviFile{name.substr(begin + length + 1), name.substr(begin, length)};
}

bool is_header_name(const std::string& name) { return EQUAL(CPLGetExtension(name.c_str()), "hdr"); }

std::string file_behind(const std::string& name) {
    if (name.rfind(shown_envi, 0) != 0) return name;
    const auto parts = shown_parts(name.substr(std::strlen(shown_envi)));
    if (!parts) return name;
    return is_header_name(parts->data) ? parts->header : parts->data;
}

} // namespace hsi::raster
