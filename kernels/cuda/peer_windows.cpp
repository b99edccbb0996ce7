// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/peer_windows.hpp"

#include <bit>
#include <string>

#include <cuda_runtime_api.h>

#include "blockvec/error.hpp"
#include "kernels/cuda/launcher.hpp"

namespace quiver::cuda {
namespace {

/// Throws on failure. Also clears the error state of the runtime, because the caller continues with
/// a fallback.
void check_quietly(cudaError_t code, const char* what) {
    static_cast<void>(cudaGetLastError());
    device::check(code, what);
}

}  // namespace

unsigned char* allocate_pages(std::size_t bytes, const char* what) {
    constexpr std::size_t page = std::size_t{2} << 20;
    const std::size_t rounded = (bytes + page - 1) / page * page;
    void* pages = nullptr;
    cudaError_t code = cudaMalloc(&pages, rounded);
    if (code == cudaErrorMemoryAllocation) {
        // Return the memory that the pool keeps for later use, because this allocation cannot use
        // it.
        static_cast<void>(cudaGetLastError());
        int device = 0;
        cudaMemPool_t pool = nullptr;
        device::check(cudaGetDevice(&device), "cudaGetDevice");
        device::check(cudaDeviceGetDefaultMemPool(&pool, device), "cudaDeviceGetDefaultMemPool");
        device::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        device::check(cudaMemPoolTrimTo(pool, 0), "cudaMemPoolTrimTo");
        code = cudaMalloc(&pages, rounded);
    }
    if (code == cudaErrorMemoryAllocation) {
        static_cast<void>(cudaGetLastError());
        throw MemoryError(std::string(what) + ": no " + std::to_string(rounded) +
                          " bytes of device memory are left");
    }
    check_quietly(code, what);
    return static_cast<unsigned char*>(pages);
}

PagesHandle handle_of(unsigned char* pages) {
    cudaIpcMemHandle_t handle{};
    check_quietly(cudaIpcGetMemHandle(&handle, pages), "cudaIpcGetMemHandle");
    return std::bit_cast<PagesHandle>(handle);
}

unsigned char* open_pages(PagesHandle handle) {
    void* opened = nullptr;
    check_quietly(cudaIpcOpenMemHandle(&opened, std::bit_cast<cudaIpcMemHandle_t>(handle),
                                       cudaIpcMemLazyEnablePeerAccess),
                  "cudaIpcOpenMemHandle");
    return static_cast<unsigned char*>(opened);
}

void close_pages(unsigned char* opened) noexcept {
    static_cast<void>(cudaIpcCloseMemHandle(opened));
}

std::vector<PagesHandle> gather_handles(const Comm& comm, const PagesHandle& mine) {
    std::vector<PagesHandle> all(static_cast<std::size_t>(comm.size()));
    check_mpi(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE,
                            comm.handle()),
              "MPI_Allgather");
    return all;
}

PeerWindows::PeerWindows(const Context& ctx, std::size_t bytes) : rank_(ctx.comm().rank()) {
    const Comm& comm = ctx.comm();
    const CurrentDevice current(ctx.device().id);
    window_.assign(static_cast<std::size_t>(comm.size()), nullptr);
    PagesHandle mine{};
    comm.agree([&] {
        unsigned char* const own = allocate_pages(bytes, "a window for peers");
        window_[static_cast<std::size_t>(rank_)] = own;
        check_quietly(cudaMemset(own, 0, bytes), "cudaMemset");
        check_quietly(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        mine = handle_of(own);
    });
    const std::vector<PagesHandle> all = gather_handles(comm, mine);
    comm.agree([&] {
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            if (static_cast<int>(rank) != rank_) {
                window_[rank] = open_pages(all[rank]);
            }
        }
    });
}

PeerWindows::~PeerWindows() {
    for (std::size_t rank = 0; rank < window_.size(); ++rank) {
        if (static_cast<int>(rank) != rank_ && window_[rank] != nullptr) {
            close_pages(window_[rank]);
        }
    }
}

}  // namespace quiver::cuda
