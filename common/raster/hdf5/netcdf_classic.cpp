// SPDX-License-Identifier: MIT
#include "raster/hdf5/netcdf_classic.h"

#include "core/error.h"
#include "raster/regular_file.h"

#include <cpl_vsi.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

namespace hsi::raster {
namespace {

struct Ended {}; ///< thrown if the file ends within the header, or the header is invalid

/// Reads the header as "The NetCDF Classic Format Specification" describes it. Numbers are big-endian, and
/// parts are padded to four bytes.
class Header {
  public:
    explicit Header(const std::string& bytes) : m_bytes(bytes), m_version(bytes[3]) {}

    /// Returns the number of bytes that the complete file has.
    uint64_t length() {
        m_records = count();
        m_streamed = m_records == (m_version == 5 ? ~uint64_t{0} : 0xffffffffU);
        if (m_streamed) m_records = 0;
        for (uint64_t left = list(); left > 0; --left) {
            skip(count());
            m_dimensions.push_back(count());
        }
        skip_attributes();
        for (uint64_t left = list(); left > 0; --left)
            read_variable();
        return end();
    }

    /// Returns true if the header does not state the number of records, which must be computed from the
    /// file's size.
    bool streamed() const { return m_streamed; }

  private:
    struct Variable {
        uint64_t begin, bytes; ///< position and bytes; bytes of one record if the variable has records
        bool in_records;
    };

    uint64_t number(size_t bytes) {
        if (m_at + bytes > m_bytes.size()) throw Ended();
        uint64_t value = 0;
        for (size_t k = 0; k < bytes; ++k)
            value = value << 8 | static_cast<unsigned char>(m_bytes[m_at++]);
        return value;
    }
    uint64_t count() { return number(m_version == 5 ? 8 : 4); }
    void skip(uint64_t bytes) {
        if (bytes > m_bytes.size()) throw Ended();
        m_at += (bytes + 3) / 4 * 4;
    }
    uint64_t list() {
        (void)number(4); // the list's tag
        return count();
    }
    static uint64_t bytes_of(uint64_t type) {
        static constexpr uint64_t bytes[] = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8};
        if (type >= std::size(bytes)) throw Ended();
        return bytes[type];
    }
    void skip_attributes() {
        for (uint64_t left = list(); left > 0; --left) {
            skip(count());
            const uint64_t type = number(4), values = count();
            if (values > m_bytes.size()) throw Ended();
            skip(values * bytes_of(type));
        }
    }
    void read_variable() {
        skip(count());
        Variable one{0, 1, false};
        for (uint64_t left = count(); left > 0; --left) {
            const uint64_t dimension = count();
            if (dimension >= m_dimensions.size()) throw Ended();
            const uint64_t size = m_dimensions[dimension];
            one.in_records = one.in_records || size == 0;
            one.bytes *= std::max<uint64_t>(size, 1);
        }
        skip_attributes();
        one.bytes *= bytes_of(number(4));
        (void)count(); // the variable's size in bytes; wrong in the file if 32 bits cannot represent it
        one.begin = number(m_version == 1 ? 4 : 8);
        m_variables.push_back(one);
    }
    uint64_t end() const {
        uint64_t record = 0, with_records = 0, last = m_at;
        for (const Variable& v : m_variables)
            if (v.in_records) {
                record += (v.bytes + 3) / 4 * 4;
                ++with_records;
            }
        for (const Variable& v : m_variables) {
            // The records of a single variable are not padded.
            if (with_records == 1 && v.in_records) record = v.bytes;
            if (v.in_records && m_records == 0) continue;
            last = std::max(last, v.begin + v.bytes + (v.in_records ? (m_records - 1) * record : 0));
        }
        return last;
    }

    const std::string& m_bytes;
    const int m_version;
    size_t m_at = 4; ///< position after the mark "CDF" and the version
    uint64_t m_records = 0;
    bool m_streamed = false;
    std::vector<uint64_t> m_dimensions;
    std::vector<Variable> m_variables;
};

} // namespace

void check_netcdf_length(const std::string& path) {
    const std::string mark = beginning_of_file(path, 4);
    if (mark.size() != 4 || !mark.starts_with("CDF") || (mark[3] != 1 && mark[3] != 2 && mark[3] != 5))
        return;
    VSIStatBufL status;
    if (VSIStatL(path.c_str(), &status) != 0) return;
    const auto size = static_cast<uint64_t>(status.st_size);
    constexpr uint64_t most = uint64_t{256} << 10; // maximum of bytes of a header
    const std::string bytes = beginning_of_file(path, static_cast<size_t>(std::min(size, most)));
    uint64_t needed = 0;
    bool streamed = false;
    try {
        Header header(bytes);
        needed = header.length();
        streamed = header.streamed();
    } catch (const Ended&) {
        return; // the netCDF library reports faults of a header
    }
    if (streamed) // the netCDF library reads a wrong number of records, or hangs
        throw Error("'" + path +
                        "' does not state its count of records: it was streamed, or is still being written",
                    "Write it again with the count of records.");
    if (size < needed)
        throw Error("'" + path + "' has " + std::to_string(size) +
                        " bytes, but its netCDF header describes " + std::to_string(needed) +
                        ": the rest is missing",
                    "The file is damaged: fetch or copy it again.");
}

} // namespace hsi::raster
