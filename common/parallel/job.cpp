// SPDX-License-Identifier: MIT
// How a process finds that it is one of several, and joins them.
#include "core/error.h"
#include "core/module_file.h"
#include "parallel/ranks.h"
#include "parallel/thread_job.h"

#include <dlfcn.h>

#include <cstdlib>

namespace hsi::parallel {
namespace {

Ranks* g_ranks = nullptr;
thread_local Ranks* t_ranks = nullptr;

/// A number of the environment; nothing when it is not there.
std::optional<int> number(const char* name) {
    const char* const text = std::getenv(name);
    if (text == nullptr || *text == 0) return std::nullopt;
    return std::atoi(text);
}

/// What tells that this process was started as one of several by Open MPI's mpirun, by the starters of MPICH
/// and its kin, or by a scheduler that speaks PMI or PMIx; null when nothing does.
const char* sign_of_several() {
    for (const char* size : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"})
        if (const auto n = number(size)) {
            if (*n > 1) return size;
            if (size != std::string("MPI_LOCALNRANKS")) return nullptr;
        }
    // PMIx tells no size by the environment; Slurm does.
    if (std::getenv("PMIX_RANK") == nullptr) return nullptr;
    return number("SLURM_STEP_NUM_TASKS").value_or(2) > 1 ? "PMIX_RANK" : nullptr;
}

const char advice_alone[] =
    "Start it without mpirun or srun, or set HSI_MPI=NO where each process is to do a "
    "run of its own.";

} // namespace

Ranks& ranks() {
    static Ranks alone;
    if (t_ranks != nullptr) return *t_ranks;
    return g_ranks != nullptr ? *g_ranks : alone;
}

Group& group() { return ranks(); }

Job::Job(Ranks& ranks) : m_before(g_ranks) { g_ranks = &ranks; }
Job::~Job() { g_ranks = m_before; }

ThreadJob::ThreadJob(Ranks& ranks) : m_before(t_ranks) { t_ranks = &ranks; }
ThreadJob::~ThreadJob() { t_ranks = m_before; }

std::unique_ptr<Ranks> join_ranks(CancelFlag& cancel) {
    const char* const sign = sign_of_several();
    if (sign == nullptr) return nullptr;
    if (const char* wish = std::getenv("HSI_MPI"); wish != nullptr && std::string(wish) == "NO")
        return nullptr;
    const std::string started =
        std::string("this process was started as one of several (") + sign + "=" + std::getenv(sign) + ")";
    const std::string file = module_file("hsi_mpi.so");
    if (file.empty())
        throw Error(started +
                        ", and without the module hsi_mpi.so all of them would write the same dst "
                        "(looked in " +
                        module_places() + ")",
                    std::string("Build where MPI is (Debian: libopenmpi-dev), or set HSI_MODULE_PATH. ") +
                        advice_alone);
    // MPI loads modules of its own, which look for MPI's names.
    void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (handle == nullptr) {
        const char* why = dlerror();
        throw Error(started + ", and the module of MPI does not load: " + (why ? why : "unknown reason"),
                    std::string("Put the MPI library that it was built with on LD_LIBRARY_PATH. ") +
                        advice_alone);
    }
    check_module(handle, file);
    using Make = Transport* (*)(std::string * fault);
    const auto make = reinterpret_cast<Make>(dlsym(handle, "hsi_mpi_transport"));
    if (make == nullptr) throw Error("internal: " + file + " has no hsi_mpi_transport");
    std::string fault;
    std::unique_ptr<Transport> transport(make(&fault));
    if (!transport) throw Error(started + ", and MPI does not start: " + fault, advice_alone);
    if (transport->size() < 2)
        throw Error(
            started + ", but MPI knows of no other",
            std::string("Use the mpirun of the MPI library that hsi_mpi.so was built with; with srun, "
                        "--mpi=pmix or --mpi=pmi2. ") +
                advice_alone);
    return std::make_unique<Ranks>(std::move(transport), cancel);
}

} // namespace hsi::parallel
