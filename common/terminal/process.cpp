// SPDX-License-Identifier: MIT
#include "terminal/process.h"

#include "core/connections.h"
#include "core/error.h"
#include "core/process_limits.h"
#include "core/system.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <ogr_srs_api.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hsi::terminal {

namespace {

constexpr size_t max_kept_messages = 100; // a damaged file can fail at every block

std::atomic<CancelFlag*> g_flag{nullptr};
static_assert(std::atomic<CancelFlag*>::is_always_lock_free, "the signal handler must not lock");
constexpr std::array cancelling{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU};

std::atomic<bool> g_ends_connections{false};

/// Ends all connections and sets an alarm that calls this function again in a second, because GDAL repeats
/// its request, and requests the next file.
extern "C" void hsi_end_connections(int) {
    const int before = errno;
    end_connections();
    alarm(1);
    errno = before;
}

extern "C" void hsi_cancel(int) {
    if (CancelFlag* flag = g_flag.load()) flag->interrupt();
    if (g_ends_connections.load()) {
        struct sigaction again {};
        again.sa_handler = hsi_end_connections;
        again.sa_flags = SA_RESTART;
        sigaction(SIGALRM, &again, nullptr);
        hsi_end_connections(SIGALRM);
    }
    for (const int number : cancelling) {
        if (number == SIGXCPU)
            continue; // the system repeats SIGXCPU every second; the hard limit ends the process
        struct sigaction plain {};
        plain.sa_handler = SIG_DFL;
        sigaction(number, &plain, nullptr);
    }
}

std::atomic<GdalMessages*> g_messages{nullptr};

extern "C" void hsi_gdal_message(CPLErr severity, CPLErrorNum number, const char* text) {
    GdalMessages* messages = g_messages.load();
    const bool debugging = CPLTestBool(CPLGetConfigOption("CPL_DEBUG", "NO"));
    if (severity == CE_Debug || severity == CE_Fatal || !messages || debugging)
        CPLDefaultErrorHandler(severity, number, text);
    if (messages && (severity == CE_Failure || severity == CE_Warning))
        messages->receive(severity == CE_Failure, text);
}

// The type of a handler in libtiff. It is declared here, because a build with GDAL does not need libtiff's
// headers.
using TiffHandler = void (*)(const char* module, const char* format, va_list values);

template <CPLErr severity>
void hsi_tiff_message(const char* module, const char* format, va_list values) {
    char text[1024];
    std::vsnprintf(text, sizeof text, format, values);
    CPLError(severity, CPLE_AppDefined, "%s: %s", module ? module : "libtiff", text);
}

/// Redirects libtiff's handler of the process to GDAL's handler, as older GDALs do. From 3.10 on, GDAL gives
/// libtiff one handler per file. Some of GDAL's own callbacks bypass this handler: they report to the handler
/// of the process, which writes to descriptor 2. The function is found by name, since GDAL links libtiff. In
/// a GDAL with a built-in libtiff, its name is gdal_TIFF...
void lead_tiff_to_gdal() {
    const auto set = [](const char* name, TiffHandler handler) {
        for (const std::string prefix : {"", "gdal_"})
            if (void* const symbol = dlsym(RTLD_DEFAULT, (prefix + name).c_str()))
                reinterpret_cast<TiffHandler (*)(TiffHandler)>(symbol)(handler);
    };
    set("TIFFSetErrorHandler", hsi_tiff_message<CE_Failure>);
    set("TIFFSetWarningHandler", hsi_tiff_message<CE_Warning>);
}

} // namespace

void open_standard_descriptors() {
    for (int number = 0; number <= 2; ++number) {
        if (::fcntl(number, F_GETFD) != -1 || errno != EBADF) continue;
        // open() returns the lowest free number. This is `number`, because all lower numbers are open.
        const int file = ::open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY);
        if (file > number) ::close(file);
    }
}

void keep_to_own_data() {
    std::error_code ec;
    const std::filesystem::path exe = system::executable();
    const auto own = exe.parent_path().parent_path() / "share" / "hsi";
    const std::string gdal = own / "gdal", proj = own / "proj";
    if (exe.empty() || !std::filesystem::is_directory(gdal, ec) || !std::filesystem::is_directory(proj, ec))
        return;
    CPLSetConfigOption("GDAL_DATA", gdal.c_str());
    CPLSetConfigOption("GDAL_DRIVER_PATH", "disable");
    const std::array<const char*, 2> folders{proj.c_str(), nullptr};
    OSRSetPROJSearchPaths(folders.data());
}

void allow_many_files() noexcept {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    constexpr rlim_t most = 65536;
    const rlim_t wanted = limit.rlim_max == RLIM_INFINITY ? most : std::min(limit.rlim_max, most);
    if (wanted <= limit.rlim_cur || limit.rlim_cur == RLIM_INFINITY) return;
    limit.rlim_cur = wanted;
    setrlimit(RLIMIT_NOFILE, &limit); // on failure the lower limit must suffice
}

void check_standard_output() {
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
        throw Error(std::string("cannot write to the standard output: ") + std::strerror(errno));
}

struct SignalGuard::Saved {
    int number = 0;
    struct sigaction action {};
};

namespace {
/// Signals that ignore_from_now_on() has set to be ignored, with their earlier handlers.
std::vector<std::pair<int, struct sigaction>> g_ignored;
} // namespace

SignalGuard::SignalGuard(CancelFlag& flag, bool ends_connections) {
    for (const auto& [number, action] : g_ignored)
        sigaction(number, &action, nullptr);
    g_ignored.clear();
    g_flag.store(&flag);
    g_ends_connections.store(ends_connections);
    const auto install = [&](int number, void (*handler)(int)) {
        Saved saved{number, {}};
        sigaction(number, nullptr, &saved.action);
        if (saved.action.sa_handler == SIG_IGN) return;
        struct sigaction action {};
        action.sa_handler = handler;
        action.sa_flags = SA_RESTART; // a read in progress continues; the flag is checked after the tile
        sigemptyset(&action.sa_mask);
        sigaction(number, &action, nullptr);
        m_saved.push_back(saved);
    };
    for (const int number : cancelling)
        install(number, hsi_cancel);
    for (const int number : {SIGPIPE, SIGXFSZ})
        install(number, SIG_IGN);
}

void SignalGuard::ignore_from_now_on() {
    for (const Saved& saved : m_saved) {
        if (std::find(cancelling.begin(), cancelling.end(), saved.number) == cancelling.end()) continue;
        std::signal(saved.number, SIG_IGN);
        g_ignored.emplace_back(saved.number, saved.action);
    }
}

SignalGuard::~SignalGuard() {
    g_ends_connections.store(false);
    for (const Saved& saved : m_saved)
        if (std::none_of(g_ignored.begin(), g_ignored.end(),
                         [&](const auto& ignored) { return ignored.first == saved.number; }))
            sigaction(saved.number, &saved.action, nullptr);
    g_flag.store(nullptr);
}

GdalMessages::GdalMessages(std::function<void(const std::string&)> on_warning)
    : m_on_warning(std::move(on_warning)) {
    g_messages.store(this);
    CPLSetErrorHandler(hsi_gdal_message);
    lead_tiff_to_gdal();
}

GdalMessages::~GdalMessages() {
    CPLSetErrorHandler(CPLDefaultErrorHandler);
    g_messages.store(nullptr);
}

std::vector<std::string> GdalMessages::failures() const {
    const std::lock_guard lock(m_mutex);
    return m_failures;
}

void GdalMessages::receive(bool failure, const std::string& text) {
    {
        const std::lock_guard lock(m_mutex);
        auto& list = failure ? m_failures : m_warnings;
        if (list.size() >= max_kept_messages || std::find(list.begin(), list.end(), text) != list.end())
            return;
        list.push_back(text);
    }
    if (!failure) m_on_warning(text);
}

namespace {

template <class Function>
Function blas_function(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

constexpr const char* threads_variable = "OPENBLAS_NUM_THREADS";

} // namespace

void end_idle_blas_threads() noexcept {
    // GDAL and other libraries are linked to a BLAS, even if a tool does not use it. The system's
    // alternatives decide which BLAS this is.
    if (const auto end = blas_function<int (*)()>("blas_thread_shutdown_")) end();
}

void restart_without_stuck_blas_threads(char** argv) noexcept {
    const auto count = blas_function<int (*)()>("openblas_get_num_threads");
    if (count == nullptr || count() < 2) return;
    if (const char* const given = std::getenv(threads_variable);
        given != nullptr && std::string_view(given) == "1")
        return;
    // This counts twice the memory that the threads have already allocated. With so little memory left,
    // one thread is better.
    if (has_addresses_for(static_cast<uint64_t>(count() - 1) * blas_buffer_bytes)) return;
    setenv(threads_variable, "1", 1);
    system::restart(argv);
}

} // namespace hsi::terminal
