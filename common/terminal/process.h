// SPDX-License-Identifier: MIT
// What a tool sets up in its process while it works, and takes down afterwards: signals, GDAL's
// messages, the threads that a BLAS has started before anything here runs.
#pragma once

#include "core/cancel.h"

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace hsi::terminal {

/// Opens those of the descriptors 0 to 2 that are closed, so that no file of the run gets their numbers, and
/// with them what is printed. Reading and writing them still fails, as it should.
void open_standard_descriptors();

/// Where GDAL's and PROJ's data lie in share/hsi beside the executable's folder (a wheel of Python's), GDAL
/// is the executable's own: it takes these data, and no plugins, whatever the environment says of another
/// GDAL (GDAL_DATA, GDAL_DRIVER_PATH, PROJ_DATA, PROJ_LIB). Before GDAL registers its drivers.
void keep_to_own_data();

/// Lets the process have as many files open as it may (the hard limit, up to 65,536): a campaign has more
/// scenes than the usual 1,024.
void allow_many_files() noexcept;

/// Throws Error when something that was printed did not get to the standard output.
void check_standard_output();

/// While it lives, SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGXCPU set the flag, so that the run unwinds and
/// removes what it made; a second signal ends the process at once. Connections over TCP end with the first
/// signal, and every second anew, so that no server that stalls keeps the run; those of a job of several
/// ranks stay. Signals that were ignored stay ignored (nohup, jobs in the background). A broken pipe and a
/// file that grows over its limit come back as errors of the write, not as signals.
class SignalGuard {
  public:
    SignalGuard(CancelFlag& flag, bool ends_connections);
    ~SignalGuard();
    /// The work is done and cannot be taken back: from now on, until the process ends or another guard
    /// begins, the signals are ignored, so that the exit code tells what is on the disk.
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
/// sleeps: processor time that short runs want, and that ranks of one host take from one another. Ends them,
/// by the function that OpenBLAS itself calls before a fork; the first product that is to be divided starts
/// them again. With another BLAS nothing happens. For a process that is ours, before it has threads.
void end_idle_blas_threads() noexcept;

/// Each thread of OpenBLAS takes a buffer when it starts, and tries for ever when there are no addresses left
/// (ulimit -v): nobody can wait for its end. Where that may have happened the process begins anew, as its
/// first act, with OpenBLAS told to start none (OPENBLAS_NUM_THREADS=1). Returns where there is no need, or
/// no way.
void restart_without_stuck_blas_threads(char** argv) noexcept;

} // namespace hsi::terminal
