// SPDX-License-Identifier: MIT
#include "core/text_file.h"

#include "core/error.h"
#include "core/host_memory.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace hsi {
namespace {

[[noreturn]] void refuse_size(const std::string& path, const std::string& size, uint64_t limit) {
    throw Error("'" + path + "' has " + size + "; the limit for this type of file is " +
                    format_byte_size(limit),
                "Check that this is the right file.");
}

/// While this object exists, a signal that this process handles ends a wait for the other end of a pipe.
/// Otherwise handlers with SA_RESTART would let the read wait forever. Signals whose handler has been changed
/// are not affected.
class WaitsEnd {
  public:
    WaitsEnd() {
        for (size_t k = 0; k < signals.size(); ++k) {
            sigaction(signals[k], nullptr, &m_saved[k]);
            struct sigaction ends = m_saved[k];
            ends.sa_flags &= ~SA_RESTART;
            if (is_handled(m_saved[k])) sigaction(signals[k], &ends, nullptr);
        }
    }
    ~WaitsEnd() {
        for (size_t k = 0; k < signals.size(); ++k) {
            struct sigaction now {};
            sigaction(signals[k], nullptr, &now);
            if (is_handled(m_saved[k]) && now.sa_handler == m_saved[k].sa_handler)
                sigaction(signals[k], &m_saved[k], nullptr);
        }
    }
    /// Returns whether a signal has arrived since construction. The signal's handler restores the system's
    /// default action for the next signal (SignalGuard), so the action has changed.
    bool came() const {
        for (size_t k = 0; k < signals.size(); ++k) {
            struct sigaction now {};
            sigaction(signals[k], nullptr, &now);
            if (is_handled(m_saved[k]) && now.sa_handler != m_saved[k].sa_handler) return true;
        }
        return false;
    }
    /// Reads the available bytes, like read(). Checks for signals every 100 ms, because a signal may arrive
    /// before the wait begins.
    ssize_t read(int file, char* buffer, size_t bytes) const {
        constexpr int patience_ms = 100;
        struct pollfd one {
            file, POLLIN, 0
        };
        while (::poll(&one, 1, patience_ms) == 0)
            if (came()) {
                errno = EINTR;
                return -1;
            }
        if (came()) errno = EINTR;
        return came() ? -1 : ::read(file, buffer, bytes);
    }
    WaitsEnd(const WaitsEnd&) = delete;
    WaitsEnd& operator=(const WaitsEnd&) = delete;

  private:
    static constexpr std::array signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    static bool is_handled(const struct sigaction& action) {
        return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
    }
    std::array<struct sigaction, signals.size()> m_saved{};
};

/// Throws Error for a failure of open() or read().
[[noreturn]] void refuse_reading(const char* what, const std::string& path) {
    if (errno == EINTR) throw Cancelled();
    throw Error(what + (" '" + path + "': ") + std::strerror(errno));
}

} // namespace

std::string read_whole(const std::string& path, uint64_t limit, FileHolds holds, uint64_t size,
                       const std::function<size_t(char* buffer, size_t bytes)>& read) {
    if (size > limit) refuse_size(path, format_byte_size(size), limit);
    std::string text;
    text.reserve(static_cast<size_t>(size));
    std::vector<char> block(size_t{1} << 16);
    while (const size_t n = read(block.data(), block.size())) {
        if (holds == FileHolds::text && std::memchr(block.data(), 0, n) != nullptr)
            throw Error("'" + path + "' is not a text file: it contains zero bytes",
                        "Check that this is the right file.");
        if (text.size() + n > limit) refuse_size(path, "more than " + format_byte_size(limit), limit);
        text.append(block.data(), n);
    }
    return text;
}

std::string read_text_file(const std::string& path, uint64_t limit, FileHolds holds) {
    struct stat status {};
    std::optional<WaitsEnd> waits;
    if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) waits.emplace();
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
    if (!file) refuse_reading("cannot open", path);
    const bool plain = fstat(fileno(file.get()), &status) == 0 && S_ISREG(status.st_mode);
    return read_whole(path, limit, holds, plain ? static_cast<uint64_t>(status.st_size) : 0,
                      [&](char* buffer, size_t bytes) {
                          if (waits) {
                              const ssize_t n = waits->read(fileno(file.get()), buffer, bytes);
                              if (n < 0) refuse_reading("cannot read", path);
                              return static_cast<size_t>(n);
                          }
                          const size_t n = std::fread(buffer, 1, bytes, file.get());
                          if (n == 0 && std::ferror(file.get()) != 0) refuse_reading("cannot read", path);
                          return n;
                      });
}

} // namespace hsi
