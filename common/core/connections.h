// SPDX-License-Identifier: MIT
// Ends connections over TCP: a thread that waits for bytes of one continues with an error. GDAL offers no
// other way to end a request that a server answers slowly, or without an end.
#pragma once

#include <string>

namespace hsi {

/// Ends all connections of this process, also those in progress. Async-signal-safe.
void end_connections() noexcept;

/// True after end_connections(): no further request may be made.
bool connections_are_ended() noexcept;

/// Ends the connections to this address ("127.0.0.1", "::1") and port; to all where the address is empty.
void end_connections_to(const std::string& address, int port);

} // namespace hsi
