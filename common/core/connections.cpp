// SPDX-License-Identifier: MIT
#include "core/connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace hsi {
namespace {

std::atomic<bool> g_ended{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler must not lock");

/// The address and port of one end of a connection, as numbers.
struct End {
    sockaddr_storage address{};
    socklen_t size = sizeof(sockaddr_storage);
    bool is_internet() const { return address.ss_family == AF_INET || address.ss_family == AF_INET6; }
    sockaddr* get() { return reinterpret_cast<sockaddr*>(&address); }
};

/// Shuts each TCP socket for which `ends(file)` is true, except the standard descriptors, which may belong to
/// others.
template <class Ends>
void shut_sockets(const Ends& ends) {
    constexpr long most = 65536;
    const long files = std::min(sysconf(_SC_OPEN_MAX), most);
    for (int file = STDERR_FILENO + 1; file < files; ++file) {
        int kind = 0;
        socklen_t size = sizeof kind;
        End own;
        if (getsockopt(file, SOL_SOCKET, SO_TYPE, &kind, &size) == 0 && kind == SOCK_STREAM &&
            getsockname(file, own.get(), &own.size) == 0 && own.is_internet() && ends(file))
            shutdown(file, SHUT_RDWR);
    }
}

} // namespace

void end_connections() noexcept {
    g_ended.store(true);
    shut_sockets([](int) { return true; });
}

bool connections_are_ended() noexcept { return g_ended.load(); }

void end_connections_to(const std::string& address, int port) {
    shut_sockets([&](int file) {
        if (address.empty()) return true;
        End other;
        if (getpeername(file, other.get(), &other.size) != 0) return false;
        const bool old = other.address.ss_family == AF_INET;
        const auto* const four = reinterpret_cast<const sockaddr_in*>(&other.address);
        const auto* const six = reinterpret_cast<const sockaddr_in6*>(&other.address);
        char text[INET6_ADDRSTRLEN] = "";
        inet_ntop(other.address.ss_family,
                  old ? static_cast<const void*>(&four->sin_addr) : static_cast<const void*>(&six->sin6_addr),
                  text, sizeof text);
        return address == text && port == ntohs(old ? four->sin_port : six->sin6_port);
    });
}

} // namespace hsi
