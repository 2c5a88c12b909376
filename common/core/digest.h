// SPDX-License-Identifier: MIT
// A checksum of bytes that protects against accidents, not against attackers.
#pragma once

#include <cstdint>
#include <string_view>

namespace hsi {

constexpr uint64_t digest_of_nothing = 14695981039346656037u;

/// Returns the 64-bit FNV-1a digest. If `before` is the digest of earlier bytes, the result is the digest of
/// the earlier bytes followed by `bytes`.
constexpr uint64_t digest_of(std::string_view bytes, uint64_t before = digest_of_nothing) {
    for (const char c : bytes)
        before = (before ^ static_cast<unsigned char>(c)) * 1099511628211u;
    return before;
}

} // namespace hsi
