// SPDX-License-Identifier: MIT
// Common parts of the fuzzing targets. A target passes bytes to a parser and checks each result. The parser
// may throw only Error and UsageError. An accepted input must be equal after it is written and read again.
#pragma once

#include "core/error.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace hsi::fuzz {

/// Aborts if a condition is false; the fuzzer then keeps the input.
inline void expect(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::abort();
}

/// Reads values from bytes, one after another. Returns zeros after the end.
class Bytes {
  public:
    Bytes(const uint8_t* data, size_t size) : m_data(data), m_size(size) {}
    template <class T>
    T take() {
        T value{};
        const size_t n = m_size < sizeof(T) ? m_size : sizeof(T);
        std::memcpy(&value, m_data, n);
        m_data += n;
        m_size -= n;
        return value;
    }
    /// Returns a number from `least` to `most`.
    int64_t take(int64_t least, int64_t most) {
        return least + static_cast<int64_t>(take<uint64_t>() % (static_cast<uint64_t>(most - least) + 1));
    }
    std::string rest() const { return std::string(reinterpret_cast<const char*>(m_data), m_size); }

  private:
    const uint8_t* m_data;
    size_t m_size;
};

inline std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts(1);
    for (char c : text)
        if (c == at)
            parts.emplace_back();
        else
            parts.back() += c;
    return parts;
}

/// Registers GDAL's drivers. Turns off GDAL's messages and its search for files in folders.
inline void quiet_gdal() {
    static const bool once = [] {
        CPLSetErrorHandler(CPLQuietErrorHandler);
        CPLSetConfigOption("GDAL_DISABLE_READDIR_ON_OPEN", "EMPTY_DIR");
        GDALAllRegister();
        return true;
    }();
    static_cast<void>(once);
}

/// A file in memory, which exists as long as this object.
class MemoryFile {
  public:
    MemoryFile(std::string path, const std::string& content) : m_path(std::move(path)) {
        VSILFILE* file = VSIFOpenL(m_path.c_str(), "wb");
        if (file == nullptr || VSIFWriteL(content.data(), 1, content.size(), file) != content.size())
            std::abort();
        VSIFCloseL(file);
    }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    ~MemoryFile() { VSIUnlink(m_path.c_str()); }
    const std::string& path() const { return m_path; }

  private:
    std::string m_path;
};

/// Checks the text of a model: after the model is read, written and read again, all digits are equal.
template <class Read, class Write>
void check_model(const uint8_t* data, size_t size, const Read& read, const Write& write) {
    try {
        const std::string once = write(read(std::string(reinterpret_cast<const char*>(data), size)));
        std::string twice;
        try {
            twice = write(read(once));
        } catch (const Error& e) {
            std::fprintf(stderr, "%s\n%s\n", e.what(), once.c_str());
            expect(false, "a model that was read and written can be read");
        }
        expect(once == twice, "a model that was read, written and read again is the same");
    } catch (const Error&) {
    }
}

} // namespace hsi::fuzz
