// SPDX-License-Identifier: MIT
// Sets up the process while a tool works, and restores it afterwards: signals, GDAL's messages, the threads
// that a BLAS has started before any code here runs.
#pragma once

#include "core/cancel.h"

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace hsi::terminal {

/// Opens the closed ones among the descriptors 0 to 2, so that no file of the run gets their numbers and with
/// them the printed output. Reading and writing them still fails, as it should.
void open_standard_descriptors();

/// If GDAL's and PROJ's data are in share/hsi next to the executable's folder (a Python wheel), GDAL is the
/// executable's own: it takes these data, and no plugins, and ignores environment variables for another GDAL
/// (GDAL_DATA, GDAL_DRIVER_PATH, PROJ_DATA, PROJ_LIB). Call this before GDAL registers its drivers.
void keep_to_own_data();

/// Lets the process have as many files open as it may (the hard limit, up to 65,536): a campaign has more
/// scenes than the usual 1,024.
void allow_many_files() noexcept;

/// Throws Error when something that was printed did not get to the standard output.
void check_standard_output();

/// While it lives, SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGXCPU set the flag, so that the run unwinds and
/// removes its unfinished files; a second signal ends the process at once. Connections over TCP end with the
/// first signal, and again every second, so that a server that stalls cannot keep the run; connections of a
/// job of several ranks stay. Signals that were ignored stay ignored (nohup, jobs in the background). A
/// broken pipe and a file that grows over its limit come back as errors of the write, not as signals.
class SignalGuard {
  public:
    SignalGuard(CancelFlag& flag, bool ends_connections);
    ~SignalGuard();
    /// Call this when the work is done and cannot be taken back: from now on, until the process ends or
    /// another guard begins, signals are ignored, so that the exit code matches the files on disk.
    void ignore_from_now_on();
    SignalGuard(const SignalGuard&) = delete;
    SignalGuard& operator=(const SignalGuard&) = delete;

  private:
    struct Saved;
    std::vector<Saved> m_saved;
};

/// While it lives, GDAL's warnings go to `on_warning` (each text once), failures are kept, and only debug
/// output is left to GDAL: the first line on stderr is then the tool's own. One at a time in a process.
class GdalMessages {
  public:
    explicit GdalMessages(std::function<void(const std::string&)> on_warning);
    ~GdalMessages();
    GdalMessages(const GdalMessages&) = delete;
    GdalMessages& operator=(const GdalMessages&) = delete;

    /// Texts of the failures so far, each once.
    std::vector<std::string> failures() const;

    /// GDAL's callback: a failure or a warning of any thread.
    void receive(bool failure, const std::string& text);

  private:
    std::function<void(const std::string&)> m_on_warning;
    mutable std::mutex m_mutex; ///< guards the lists
    std::vector<std::string> m_warnings, m_failures;
};

/// OpenBLAS starts a thread for every processor but one, and each looks for work for some 27 ms before it
/// sleeps: short runs need this processor time, and so do other ranks of the host. Ends these threads, by the
/// function that OpenBLAS itself calls before a fork; the first product that is to be divided starts them
/// again. With another BLAS nothing happens. It is for a process that is ours, before it has threads.
void end_idle_blas_threads() noexcept;

/// Each thread of OpenBLAS takes a buffer when it starts, and tries for ever if the address space is used up
/// (ulimit -v), so waiting for it would not end. If that may have happened, the process restarts as its first
/// act, with OpenBLAS limited to one thread (OPENBLAS_NUM_THREADS=1). Returns if that is not needed or not
/// possible.
void restart_without_stuck_blas_threads(char** argv) noexcept;

} // namespace hsi::terminal
