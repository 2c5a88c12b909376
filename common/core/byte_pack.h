// SPDX-License-Identifier: MIT
// Packs values as bytes for another process of the same program on the same type of machine, and unpacks
// them.
#pragma once

#include "core/error.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hsi {

class BytePacker {
  public:
    template <class T>
    BytePacker& put(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        m_bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
        return *this;
    }
    BytePacker& put(const std::string& text) {
        put(static_cast<uint64_t>(text.size()));
        m_bytes += text;
        return *this;
    }
    template <class T>
    BytePacker& put(const std::vector<T>& values) {
        static_assert(std::is_trivially_copyable_v<T>);
        return put(values.data(), values.size());
    }
    /// Packs the values so that they can be unpacked as a vector.
    template <class T>
    BytePacker& put(const T* values, size_t count) {
        static_assert(std::is_trivially_copyable_v<T>);
        put(static_cast<uint64_t>(count));
        if (count > 0) m_bytes.append(reinterpret_cast<const char*>(values), count * sizeof(T));
        return *this;
    }
    /// Reserves memory for `bytes` further bytes, so that later calls of put() need not move the bytes that
    /// are already packed.
    BytePacker& reserve(size_t bytes) {
        m_bytes.reserve(m_bytes.size() + bytes);
        return *this;
    }
    std::string take() { return std::move(m_bytes); }

  private:
    std::string m_bytes;
};

/// Unpacks values from the bytes of a BytePacker, in the order in which they were packed. \throws Error if
/// fewer bytes are left than a value needs.
class ByteUnpacker {
  public:
    explicit ByteUnpacker(std::string_view bytes) : m_bytes(bytes) {}

    template <class T>
    void get(T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        std::memcpy(&value, next(sizeof value), sizeof value);
    }
    void get(std::string& text) {
        const auto size = one<uint64_t>();
        text.assign(next(size), size);
    }
    template <class T>
    void get(std::vector<T>& values) {
        static_assert(std::is_trivially_copyable_v<T>);
        const auto count = one<uint64_t>();
        const char* const from = next(count * sizeof(T));
        values.resize(count);
        if (count > 0) std::memcpy(static_cast<void*>(values.data()), from, count * sizeof(T));
    }
    /// Returns the bytes of a packed vector without copying them, and sets `count` to its number of values.
    /// The bytes may be unaligned, so copy the values out of them with memcpy().
    template <class T>
    std::string_view view(size_t& count) {
        static_assert(std::is_trivially_copyable_v<T>);
        const auto there = one<uint64_t>();
        if (there > m_bytes.size() / sizeof(T)) throw too_short();
        count = static_cast<size_t>(there);
        return {next(count * sizeof(T)), count * sizeof(T)};
    }
    template <class T>
    T one() {
        T value{};
        get(value);
        return value;
    }
    bool empty() const { return m_bytes.empty(); }

  private:
    static Error too_short() { return Error("internal: a message from another rank is too short"); }
    const char* next(size_t count) {
        if (count > m_bytes.size()) throw too_short();
        const char* const from = m_bytes.data();
        m_bytes.remove_prefix(count);
        return from;
    }
    std::string_view m_bytes;
};

} // namespace hsi
