// SPDX-License-Identifier: MIT
// Ends TCP connections, so that a thread that waits for bytes continues with an error. GDAL has no other way
// to end a request when a server answers slowly or never stops sending.
#pragma once

#include <string>

namespace hsi {

/// Ends all TCP connections of this process, including those that are being established. Afterwards,
/// connections_are_ended() returns true. Async-signal-safe.
void end_connections() noexcept;

/// Returns true after end_connections(). The caller must then make no further requests.
bool connections_are_ended() noexcept;

/// Ends the connections to this address ("127.0.0.1", "::1") and port. An empty address means all
/// connections.
void end_connections_to(const std::string& address, int port);

} // namespace hsi
