// SPDX-License-Identifier: MIT
// Preloaded into a tool under test: lets the Nth system call of some kinds that touches files of one folder
// fail.
//
// Calls are caught in the kernel's door and not at the C library's functions: a filter (seccomp) turns them
// into SIGSYS, whose handler here counts them, lets one fail, and makes all others itself. So whatever stdio,
// libtiff, SQLite or HDF5 do below is seen, which interposed functions would not.
//
//   HSI_FAULT_FOLDER   only files below this folder count (an absolute path without links)
//   HSI_FAULT_LOG      a file outside of it: a page of counters, see `struct Shared`
//   HSI_FAULT_CALLS    which kinds count: any of "write sync rename open close truncate mkdir unlink link",
//                      or "all"
//   HSI_FAULT_NUMBER   which of the counted calls fails, from 1; 0 or absent: none
//   HSI_FAULT_KIND     EIO, ENOSPC, EDQUOT, EINTR, ...: the error number in words; "short": half of a write;
//                      "wait": the call waits until the file HSI_FAULT_GATE is there, and then succeeds, so
//                      that a test can do something in the middle of a run; "raise": the process gets
//                      HSI_FAULT_SIGNAL (a number) and the call succeeds; "from:ENOSPC": this and all later
//                      ones of the kind fail, as on a disk that stays full
#include <dirent.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

/// The state that the test reads from HSI_FAULT_LOG.
struct Shared {
    std::atomic<uint64_t> ready;  ///< 1 when the filter is in place
    std::atomic<uint64_t> calls;  ///< calls that were counted
    std::atomic<uint64_t> failed; ///< calls that failed on request, were shortened, or wait or have waited
    std::atomic<uint64_t> pid;
    char what[224]; ///< description of the first such call
};

enum Kind : unsigned {
    kind_write = 1,
    kind_sync = 2,
    kind_rename = 4,
    kind_open = 8,
    kind_close = 16,
    kind_truncate = 32,
    kind_mkdir = 64,
    kind_unlink = 128,
    kind_link = 256
};

struct Name {
    const char* text;
    unsigned kind;
};
constexpr Name kind_names[] = {{"write", kind_write}, {"sync", kind_sync},     {"rename", kind_rename},
                               {"open", kind_open},   {"close", kind_close},   {"truncate", kind_truncate},
                               {"mkdir", kind_mkdir}, {"unlink", kind_unlink}, {"link", kind_link}};

struct ErrorName {
    const char* text;
    int number;
};
constexpr ErrorName error_names[] = {
    {"EIO", EIO},     {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EINTR", EINTR}, {"EACCES", EACCES},
    {"EPERM", EPERM}, {"EROFS", EROFS},   {"EMFILE", EMFILE}, {"EXDEV", EXDEV}, {"EINVAL", EINVAL}};

Shared* g_shared = nullptr;
char g_folder[PATH_MAX];
size_t g_folder_length = 0;
unsigned g_kinds = 0;
uint64_t g_number = 0;
int g_error = 0;
int g_signal = 0;
bool g_short = false, g_wait = false, g_lasting = false;
char g_gate[PATH_MAX];

// The only code from which caught system calls pass the filter. It supports AArch64 and x86-64, as the filter
// does.
extern "C" long hsi_fault_syscall(long number, long a, long b, long c, long d, long e, long f);
extern "C" const char hsi_fault_after[];
#if defined(__x86_64__)
asm(R"(
.text
.globl hsi_fault_syscall
.hidden hsi_fault_syscall
.globl hsi_fault_after
.hidden hsi_fault_after
hsi_fault_syscall:
    movq %rdi, %rax
    movq %rsi, %rdi
    movq %rdx, %rsi
    movq %rcx, %rdx
    movq %r8, %r10
    movq %r9, %r8
    movq 8(%rsp), %r9
    syscall
hsi_fault_after:
    ret
)");
constexpr uint32_t this_machine = AUDIT_ARCH_X86_64;
void give_result(ucontext_t* c, long value) { c->uc_mcontext.gregs[REG_RAX] = value; }
long argument_of(const ucontext_t* c, int i) {
    constexpr int registers[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
    return static_cast<long>(c->uc_mcontext.gregs[registers[i]]);
}
#elif defined(__aarch64__)
asm(R"(
.text
.globl hsi_fault_syscall
.hidden hsi_fault_syscall
.globl hsi_fault_after
.hidden hsi_fault_after
hsi_fault_syscall:
    mov x8, x0
    mov x0, x1
    mov x1, x2
    mov x2, x3
    mov x3, x4
    mov x4, x5
    mov x5, x6
    svc #0
hsi_fault_after:
    ret
)");
constexpr uint32_t this_machine = AUDIT_ARCH_AARCH64;
void give_result(ucontext_t* c, long value) {
    c->uc_mcontext.regs[0] = static_cast<unsigned long long>(value);
}
long argument_of(const ucontext_t* c, int i) { return static_cast<long>(c->uc_mcontext.regs[i]); }
#else
#error "the fault shim knows the system calls of x86-64 and AArch64"
#endif

long address(const void* p) { return reinterpret_cast<long>(p); }

/// Returns true if a path (absolute, or relative to `folder_descriptor`) is in the folder.
bool path_counts(int folder_descriptor, const char* path) {
    if (path == nullptr) return false;
    if (path[0] == '/') return strncmp(path, g_folder, g_folder_length) == 0;
    char link[64], base[PATH_MAX];
    if (folder_descriptor == AT_FDCWD)
        strcpy(link, "/proc/self/cwd");
    else
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder_descriptor);
    const long n =
        hsi_fault_syscall(SYS_readlinkat, AT_FDCWD, address(link), address(base), sizeof base - 1, 0, 0);
    if (n <= 0) return false;
    base[n] = 0;
    return strncmp(base, g_folder, g_folder_length) == 0;
}

bool descriptor_counts(int descriptor) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const long n =
        hsi_fault_syscall(SYS_readlinkat, AT_FDCWD, address(link), address(path), sizeof path - 1, 0, 0);
    if (n <= 0) return false;
    path[n] = 0;
    return strncmp(path, g_folder, g_folder_length) == 0;
}

bool writable(int descriptor) {
    const long flags = hsi_fault_syscall(SYS_fcntl, descriptor, F_GETFL, 0, 0, 0, 0);
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

struct Call {
    unsigned kind = 0;
    const char* name = "";
    bool counts = false;
};

Call understand(long number, const long* a) {
    const auto fd = [&](int i) { return static_cast<int>(a[i]); };
    const auto text = [&](int i) { return reinterpret_cast<const char*>(a[i]); };
    switch (number) {
    case SYS_write:
        return {kind_write, "write", descriptor_counts(fd(0))};
    case SYS_pwrite64:
        return {kind_write, "pwrite", descriptor_counts(fd(0))};
    case SYS_writev:
        return {kind_write, "writev", descriptor_counts(fd(0))};
    case SYS_pwritev:
        return {kind_write, "pwritev", descriptor_counts(fd(0))};
    case SYS_copy_file_range:
        return {kind_write, "copy_file_range", descriptor_counts(fd(2))};
    case SYS_sendfile:
        return {kind_write, "sendfile", descriptor_counts(fd(0))};
    case SYS_fsync:
        return {kind_sync, "fsync", descriptor_counts(fd(0))};
    case SYS_fdatasync:
        return {kind_sync, "fdatasync", descriptor_counts(fd(0))};
    case SYS_ftruncate:
        return {kind_truncate, "ftruncate", descriptor_counts(fd(0))};
    case SYS_fallocate:
        return {kind_truncate, "fallocate", descriptor_counts(fd(0))};
    case SYS_close:
        return {kind_close, "close", writable(fd(0)) && descriptor_counts(fd(0))};
    case SYS_openat:
        return {kind_open, "open", (a[2] & O_CREAT) != 0 && path_counts(fd(0), text(1))};
    case SYS_mkdirat:
        return {kind_mkdir, "mkdir", path_counts(fd(0), text(1))};
    case SYS_unlinkat:
        return {kind_unlink, "unlink", path_counts(fd(0), text(1))};
    case SYS_renameat2:
        return {kind_rename, "rename", path_counts(fd(2), text(3)) || path_counts(fd(0), text(1))};
    case SYS_linkat:
        return {kind_link, "link", path_counts(fd(2), text(3))};
#if defined(SYS_renameat)
    case SYS_renameat:
        return {kind_rename, "rename", path_counts(fd(2), text(3)) || path_counts(fd(0), text(1))};
#endif
#if defined(SYS_open)
    case SYS_open:
        return {kind_open, "open", (a[1] & O_CREAT) != 0 && path_counts(AT_FDCWD, text(0))};
    case SYS_creat:
        return {kind_open, "open", path_counts(AT_FDCWD, text(0))};
    case SYS_mkdir:
        return {kind_mkdir, "mkdir", path_counts(AT_FDCWD, text(0))};
    case SYS_rmdir:
        return {kind_unlink, "rmdir", path_counts(AT_FDCWD, text(0))};
    case SYS_unlink:
        return {kind_unlink, "unlink", path_counts(AT_FDCWD, text(0))};
    case SYS_rename:
        return {kind_rename, "rename", path_counts(AT_FDCWD, text(1)) || path_counts(AT_FDCWD, text(0))};
    case SYS_link:
        return {kind_link, "link", path_counts(AT_FDCWD, text(1))};
#endif
    default:
        return {};
    }
}

constexpr long caught[] = {
    SYS_write,     SYS_pwrite64,  SYS_writev,    SYS_pwritev, SYS_copy_file_range, SYS_sendfile, SYS_fsync,
    SYS_fdatasync, SYS_ftruncate, SYS_fallocate, SYS_close,   SYS_openat,          SYS_mkdirat,  SYS_unlinkat,
    SYS_renameat2, SYS_linkat,
#if defined(SYS_renameat)
    SYS_renameat,
#endif
#if defined(SYS_open)
    SYS_open,      SYS_creat,     SYS_mkdir,     SYS_rmdir,   SYS_unlink,          SYS_rename,   SYS_link,
#endif
};

/// Writes half of the data. Writes a single byte completely, since callers would repeat an empty write for
/// ever.
long cut_short(long number, long* a) {
    if (number == SYS_write || number == SYS_pwrite64) {
        if (a[2] > 1) a[2] /= 2;
    } else if (number == SYS_writev || number == SYS_pwritev) {
        a[2] = 1; // only the first piece
    }
    return hsi_fault_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

void remember(uint64_t order, const char* name, long number, const long* a) {
    if (g_shared->failed.fetch_add(1) != 0) return;
    char path[PATH_MAX] = "";
    struct stat facts {};
    const bool by_descriptor = number == SYS_write || number == SYS_pwrite64 || number == SYS_writev ||
                               number == SYS_pwritev || number == SYS_fsync || number == SYS_fdatasync ||
                               number == SYS_ftruncate || number == SYS_fallocate || number == SYS_close;
    const int name_at = number == SYS_openat || number == SYS_mkdirat || number == SYS_unlinkat ? 1
                        : number == SYS_renameat2 || number == SYS_linkat                       ? 3
#if defined(SYS_open)
                        : number == SYS_rename || number == SYS_link ? 1
#endif
                                                                     : 0;
    if (!by_descriptor && number != SYS_copy_file_range && number != SYS_sendfile) {
        snprintf(path, sizeof path, "%s", reinterpret_cast<const char*>(a[name_at]));
    } else if (by_descriptor) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", static_cast<int>(a[0]));
        const long n =
            hsi_fault_syscall(SYS_readlinkat, AT_FDCWD, address(link), address(path), sizeof path - 1, 0, 0);
        path[n > 0 ? n : 0] = 0;
    }
    const bool of_folder =
        by_descriptor && fstat(static_cast<int>(a[0]), &facts) == 0 && S_ISDIR(facts.st_mode);
    const char* leaf = strrchr(path, '/');
    snprintf(g_shared->what, sizeof g_shared->what, "call %llu: %s %s%.150s",
             static_cast<unsigned long long>(order), name, of_folder ? "the folder " : "",
             leaf != nullptr ? leaf + 1 : path);
}

void wait_at_gate() {
    constexpr timespec moment{0, 5'000'000};
    while (hsi_fault_syscall(SYS_faccessat, AT_FDCWD, address(g_gate), F_OK, 0, 0, 0) != 0)
        clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, nullptr);
}

void on_call(int, siginfo_t* info, void* context) {
    const int kept = errno;
    auto* c = static_cast<ucontext_t*>(context);
    const long number = info->si_syscall;
    long a[6];
    for (int i = 0; i < 6; ++i)
        a[i] = argument_of(c, i);
    const Call call = understand(number, a);
    long result = 0;
    bool done = false;
    if (call.counts && (call.kind & g_kinds) != 0) {
        const uint64_t order = g_shared->calls.fetch_add(1) + 1;
        if (g_number != 0 && (order == g_number || (g_lasting && order > g_number))) {
            remember(order, call.name, number, a);
            if (g_wait) {
                wait_at_gate();
            } else if (g_signal != 0) {
                hsi_fault_syscall(SYS_kill, hsi_fault_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0), g_signal, 0, 0,
                                  0, 0);
            } else if (g_short) {
                result = cut_short(number, a);
                done = true;
            } else {
                // On Linux, close() releases a descriptor whatever it returns.
                if (number == SYS_close) hsi_fault_syscall(number, a[0], 0, 0, 0, 0, 0);
                result = -g_error;
                done = true;
            }
        }
    }
    if (!done) result = hsi_fault_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    give_result(c, result);
    errno = kept;
}

bool install_filter() {
    // Passes every call from this file's own assembly, every call that is not caught, and every call with the
    // numbers of another architecture.
    constexpr size_t count = sizeof caught / sizeof caught[0];
    static sock_filter program[count + 12];
    size_t n = 0;
    const auto add = [&](uint16_t code, uint32_t k, uint8_t yes, uint8_t no) {
        program[n++] = sock_filter{code, yes, no, k};
    };
    const auto after = reinterpret_cast<uint64_t>(hsi_fault_after);
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch), 0, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, this_machine, 1, 0);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, instruction_pointer), 0, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(after), 0, 3);
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, instruction_pointer) + 4, 0, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(after >> 32), 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr), 0, 0);
    for (size_t i = 0; i < count; ++i)
        add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(caught[i]), static_cast<uint8_t>(count - i), 0);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    add(BPF_RET | BPF_K, SECCOMP_RET_TRAP, 0, 0);
    sock_fprog filter{static_cast<unsigned short>(n), program};
    struct sigaction action {};
    action.sa_sigaction = on_call;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
    if (sigaction(SIGSYS, &action, nullptr) != 0) return false;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

[[noreturn]] void give_up(const char* why) {
    fprintf(stderr, "fault shim: %s\n", why);
    _exit(99);
}

bool parse_kind(const char* kind) {
    if (strncmp(kind, "from:", 5) == 0) {
        g_lasting = true;
        kind += 5;
    }
    for (const ErrorName& name : error_names)
        if (strcmp(kind, name.text) == 0) g_error = name.number;
    g_short = strcmp(kind, "short") == 0;
    if (const char* gate = getenv("HSI_FAULT_GATE"); gate != nullptr && strcmp(kind, "wait") == 0) {
        g_wait = true;
        snprintf(g_gate, sizeof g_gate, "%s", gate);
    }
    if (strcmp(kind, "raise") == 0) {
        const char* signal = getenv("HSI_FAULT_SIGNAL");
        g_signal = signal != nullptr ? atoi(signal) : 0;
    }
    return g_error != 0 || g_short || g_wait || g_signal != 0;
}

__attribute__((constructor)) void begin() {
    const char* folder = getenv("HSI_FAULT_FOLDER");
    const char* log = getenv("HSI_FAULT_LOG");
    if (folder == nullptr || log == nullptr) return;
    unsetenv("LD_PRELOAD"); // the tool's children are not tested
    const char* calls = getenv("HSI_FAULT_CALLS");
    for (const Name& name : kind_names)
        if (calls == nullptr || strcmp(calls, "all") == 0 || strstr(calls, name.text) != nullptr)
            g_kinds |= name.kind;
    if (const char* number = getenv("HSI_FAULT_NUMBER")) g_number = strtoull(number, nullptr, 10);
    const char* kind = getenv("HSI_FAULT_KIND");
    if (kind != nullptr && !parse_kind(kind)) give_up("HSI_FAULT_KIND is none of the kinds");
    snprintf(g_folder, sizeof g_folder, "%s", folder);
    g_folder_length = strlen(g_folder);
    const int file = open(log, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || ftruncate(file, 0) != 0 || ftruncate(file, sizeof(Shared)) != 0)
        give_up("cannot make HSI_FAULT_LOG");
    void* page = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (page == MAP_FAILED) give_up("cannot map HSI_FAULT_LOG");
    g_shared = static_cast<Shared*>(page);
    if (!install_filter()) give_up("this system lets no process filter its system calls");
    g_shared->pid = static_cast<uint64_t>(getpid());
    g_shared->ready = 1;
}

} // namespace
