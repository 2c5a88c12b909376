// SPDX-License-Identifier: MIT
// The module hsi_mpi.so: messages between ranks by MPI. No other file uses MPI.
#include "parallel/transport.h"

#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

namespace hsi::parallel {
namespace {

std::string error_text(int code) {
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(code, text, &length);
    return std::string(text, static_cast<size_t>(length));
}

void check(int code) {
    if (code != MPI_SUCCESS) throw std::runtime_error("MPI: " + error_text(code));
}

class MpiTransport final : public Transport {
  public:
    MpiTransport() {
        check(MPI_Comm_dup(MPI_COMM_WORLD, &m_world));
        check(MPI_Comm_set_errhandler(m_world, MPI_ERRORS_RETURN));
        check(MPI_Comm_rank(m_world, &m_rank));
        check(MPI_Comm_size(m_world, &m_size));
        MPI_Comm node;
        check(MPI_Comm_split_type(m_world, MPI_COMM_TYPE_SHARED, m_rank, MPI_INFO_NULL, &node));
        check(MPI_Comm_rank(node, &m_local_rank));
        check(MPI_Comm_size(node, &m_local_size));
        MPI_Comm_free(&node);
        char name[MPI_MAX_PROCESSOR_NAME] = {};
        int length = 0;
        if (MPI_Get_processor_name(name, &length) == MPI_SUCCESS)
            m_host.assign(name, static_cast<size_t>(length));
    }

    int rank() const override { return m_rank; }
    int size() const override { return m_size; }
    int local_rank() const override { return m_local_rank; }
    int local_size() const override { return m_local_size; }
    std::string host() const override { return m_host; }

    std::unique_ptr<Sending> send(int to, int tag, const void* bytes, size_t size) override;
    std::optional<Message> take(int from, int tag, const std::function<void()>& wait) override;

    void finish(int code) override {
        // MPI_Finalize waits for all ranks. A rank that is gone must not block the others.
        std::fflush(nullptr);
        std::thread([code] {
            std::this_thread::sleep_for(std::chrono::seconds(60));
            _exit(code);
        }).detach();
        const std::lock_guard lock(m_mutex);
        MPI_Finalize();
    }

    /// MPI_Finalize is not called, because it waits for all ranks. If the starter (mpirun) kills ranks that
    /// wait in MPI_Finalize, the starter may lock its own thread and never end. Open MPI 4.1 did so in one of
    /// six runs that got SIGTERM while a rank hung. exit() is not called either: its destructors would run
    /// while MPI's threads work.
    void leave(int code) override {
        std::fflush(nullptr);
        _exit(code);
    }

    bool test(MPI_Request& request) {
        const std::lock_guard lock(m_mutex);
        int done = 0;
        check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        return done != 0;
    }

  private:
    std::mutex m_mutex; ///< one call of MPI at a time: only MPI_THREAD_SERIALIZED is requested
    MPI_Comm m_world = MPI_COMM_NULL;
    int m_rank = 0, m_size = 1, m_local_rank = 0, m_local_size = 1;
    std::string m_host;
};

class MpiSending final : public Sending {
  public:
    MpiSending(MpiTransport& transport, MPI_Request request) : m_transport(transport), m_request(request) {}
    bool done() override {
        if (!m_done) m_done = m_transport.test(m_request);
        return m_done;
    }

  private:
    MpiTransport& m_transport;
    MPI_Request m_request;
    bool m_done = false;
};

std::unique_ptr<Sending> MpiTransport::send(int to, int tag, const void* bytes, size_t size) {
    // Larger messages wait at the sender until they are requested, so that they do not fill the receiver's
    // memory.
    constexpr size_t small = 256;
    MPI_Request request;
    {
        const std::lock_guard lock(m_mutex);
        check((size <= small ? MPI_Isend : MPI_Issend)(bytes, static_cast<int>(size), MPI_BYTE, to, tag,
                                                       m_world, &request));
    }
    return std::make_unique<MpiSending>(*this, request);
}

std::optional<Message> MpiTransport::take(int from, int tag, const std::function<void()>& wait) {
    auto message = std::make_unique<Message>();
    MPI_Request request;
    {
        const std::lock_guard lock(m_mutex);
        int there = 0, size = 0;
        MPI_Message handle;
        MPI_Status status;
        check(MPI_Improbe(from == any_rank ? MPI_ANY_SOURCE : from, tag, m_world, &there, &handle, &status));
        if (there == 0) return std::nullopt;
        check(MPI_Get_count(&status, MPI_BYTE, &size));
        message->from = status.MPI_SOURCE;
        message->bytes.resize(static_cast<size_t>(size));
        check(MPI_Imrecv(message->bytes.data(), size, MPI_BYTE, &handle, &request));
    }
    try {
        while (!test(request)) {
            wait();
            std::this_thread::yield();
        }
    } catch (...) {
        (void)message.release(); // MPI may still write to the message
        throw;
    }
    return std::move(*message);
}

/// If mpirun has started all ranks on one host, messages pass through shared memory, and this function
/// disables networks. Otherwise Open MPI would search for networks, which takes 0.2 s per run. The user's
/// settings are kept.
void leave_networks_alone() {
    const char* const all = std::getenv("OMPI_COMM_WORLD_SIZE");
    const char* const here = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    if (all == nullptr || here == nullptr || std::string_view(all) != here) return;
    for (const char* const chosen : {"OMPI_MCA_pml", "OMPI_MCA_mtl", "OMPI_MCA_btl"})
        if (std::getenv(chosen) != nullptr) return;
    setenv("OMPI_MCA_pml", "ob1", 1);
}

} // namespace
} // namespace hsi::parallel

/// Starts MPI. Returns null if it does not start, with the reason in `fault`.
extern "C" hsi::parallel::Transport* hsi_mpi_transport(std::string* fault);

extern "C" hsi::parallel::Transport* hsi_mpi_transport(std::string* fault) {
    try {
        int given = 0;
        hsi::parallel::leave_networks_alone();
        hsi::parallel::check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given));
        if (given < MPI_THREAD_SERIALIZED) throw std::runtime_error("its library knows no threads");
        return new hsi::parallel::MpiTransport;
    } catch (const std::exception& error) {
        *fault = error.what();
        return nullptr;
    }
}
