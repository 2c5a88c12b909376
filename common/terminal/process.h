// SPDX-License-Identifier: MIT
// Sets up the process while a tool works and restores it afterwards: signals, GDAL's messages, and the
// threads that a BLAS has started before our code runs.
#pragma once

#include "core/cancel.h"

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace hsi::terminal {

/// Opens each of the descriptors 0 to 2 that is closed. Otherwise a file of the run could get one of these
/// numbers and receive the printed output. Reading and writing these descriptors still fails, as it should.
void open_standard_descriptors();

/// Makes GDAL use the data in ../share/hsi, relative to the executable's folder, if they exist (in a Python
/// wheel). GDAL then loads no plugins and ignores environment variables for another GDAL (GDAL_DATA,
/// GDAL_DRIVER_PATH, PROJ_DATA, PROJ_LIB). Call this function before GDAL registers its drivers.
void keep_to_own_data();

/// Raises the limit of open files to the hard limit, up to 65,536, because a campaign has more scenes than
/// the usual 1,024.
void allow_many_files() noexcept;

/// Throws Error if printed text could not be written to the standard output.
void check_standard_output();

/// Makes SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGXCPU set the flag while this object exists, so that the run
/// unwinds and removes its unfinished files. A second signal ends the process at once. With ends_connections,
/// the first signal also ends all TCP connections, so that a stalled server cannot block the run; this is
/// repeated every second for new connections. In a job of several ranks, which communicate by connections,
/// ends_connections must be false. Signals that were ignored remain ignored (nohup, jobs in the background).
/// A broken pipe and a file beyond its size limit are reported as write errors, not as signals.
class SignalGuard {
  public:
    SignalGuard(CancelFlag& flag, bool ends_connections);
    ~SignalGuard();
    /// Ignores signals from now on, until the process ends or another guard begins, so that the exit code
    /// matches the files on disk. Call this function when the work is done and cannot be undone.
    void ignore_from_now_on();
    SignalGuard(const SignalGuard&) = delete;
    SignalGuard& operator=(const SignalGuard&) = delete;

  private:
    struct Saved;
    std::vector<Saved> m_saved;
};

/// While this object exists, passes GDAL's warnings to `on_warning` (each text once) and stores GDAL's
/// failures. GDAL itself prints only debug output, so the first text on stderr is the tool's own. A process
/// may have at most one such object.
class GdalMessages {
  public:
    explicit GdalMessages(std::function<void(const std::string&)> on_warning);
    ~GdalMessages();
    GdalMessages(const GdalMessages&) = delete;
    GdalMessages& operator=(const GdalMessages&) = delete;

    /// Returns the texts of the failures so far, each once.
    std::vector<std::string> failures() const;

    /// Receives a failure or a warning of any thread from GDAL's callback.
    void receive(bool failure, const std::string& text);

  private:
    std::function<void(const std::string&)> m_on_warning;
    mutable std::mutex m_mutex; ///< guards the lists
    std::vector<std::string> m_warnings, m_failures;
};

/// Ends the threads of OpenBLAS. OpenBLAS starts a thread for every processor but one, and each thread looks
/// for work for about 27 ms before it sleeps. Short runs and other ranks of the host need this processor
/// time. Calls the function that OpenBLAS itself calls before a fork. The threads start again when a product
/// is divided among threads. Has no effect with another BLAS. Call this function only in a process of our
/// own, before the process has other threads.
void end_idle_blas_threads() noexcept;

/// Restarts the process with OPENBLAS_NUM_THREADS=1 if OpenBLAS may be stuck. Each of its threads
/// allocates a buffer at its start, and retries forever if the address space is used up (ulimit
/// -v). Call this function first in the process. Returns if a restart is not needed or not
/// possible.
void restart_without_stuck_blas_threads(char** argv) noexcept;

} // namespace hsi::terminal
