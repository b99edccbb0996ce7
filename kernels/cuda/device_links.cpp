// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/device_links.hpp"

#include <cstring>
#include <exception>
#include <vector>

#include <unistd.h>

#include "blockvec/error.hpp"
#include "kernels/cuda/launcher.hpp"

namespace quiver::cuda {
namespace {

/// A machine and one of its GPUs.
struct Seat {
    char host[64];
    char bus[32];
};

/// "ranks 0 and 2 share GPU 0000:1b:00.0", or empty if no GPU is shared. Collective.
std::string shared_gpu(const Context& ctx) {
    Seat mine{};
    ctx.comm().agree([&] {
        static_cast<void>(gethostname(mine.host, sizeof mine.host - 1));
        std::strncpy(mine.bus, device::properties(ctx.device().id).pci_bus.c_str(),
                     sizeof mine.bus - 1);
    });
    std::vector<Seat> all(static_cast<std::size_t>(ctx.comm().size()));
    check_mpi(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE,
                            ctx.comm().handle()),
              "MPI_Allgather");
    for (std::size_t a = 0; a < all.size(); ++a) {
        for (std::size_t b = 0; b < a; ++b) {
            if (std::strcmp(all[a].host, all[b].host) == 0 &&
                std::strcmp(all[a].bus, all[b].bus) == 0) {
                return "ranks " + std::to_string(b) + " and " + std::to_string(a) + " share GPU " +
                       all[a].bus;
            }
        }
    }
    return "";
}

/// Calls make() on all ranks; returns the reason if that fails with an error that all ranks agree
/// on.
template <class Make>
std::string why_not(Make&& make) {
    try {
        make();
    } catch (const Error& error) {
        if (!error.collective()) {
            throw;
        }
        return error.what();
    }
    return "";
}

}  // namespace

DeviceLinks::DeviceLinks(Context& ctx, bool want_nccl, bool want_peers) : memory_(ctx.memory()) {
    const Comm& comm = ctx.comm();
    const CurrentDevice current(ctx.device().id);
    comm.agree([&] {
        int least = 0;
        int greatest = 0;
        device::check(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                      "cudaDeviceGetStreamPriorityRange");
        device::check(cudaStreamCreateWithPriority(&side, cudaStreamNonBlocking, greatest),
                      "cudaStreamCreateWithPriority");
        packed = device::create_event(false);
        arrived = device::create_event(false);
    });
    const std::string shared = shared_gpu(ctx);
    why_no_nccl = want_nccl ? shared : "disabled by QUIVER_LINKS";
    if (why_no_nccl.empty()) {
        why_no_nccl = why_not([&] {
            std::shared_ptr<const NcclLibrary> library;
            comm.agree([&] { library = load_nccl(); });
            nccl = std::make_unique<Nccl>(library, comm);
        });
    }
    why_no_peers = want_peers ? shared : "disabled by QUIVER_LINKS";
    const bool near = static_cast<int>(comm.sum_on_node(1.0)) == comm.size();
    if (why_no_peers.empty() && !near) {
        why_no_peers = "the ranks are on several nodes";
    }
    if (why_no_peers.empty() && comm.size() > most_peers) {
        why_no_peers = "more than " + std::to_string(most_peers) + " ranks";
    }
    why_no_copies = why_no_peers;
    if (why_no_peers.empty()) {
        why_no_peers = why_not([&] { peers = std::make_unique<PeerSum>(ctx); });
        why_no_copies = why_not([&] { copies = std::make_shared<PeerCopies>(ctx); });
    }
}

DeviceLinks::~DeviceLinks() {
    if (std::uncaught_exceptions() > 0) {
        nccl.reset();  // aborts messages that no rank will answer
        if (copies) {
            copies->abandon();
        }
    }
    for (const DeviceEvent event : {packed, arrived}) {
        if (event != nullptr) {
            device::destroy_event(event);
        }
    }
    if (side != nullptr) {
        static_cast<void>(cudaStreamSynchronize(side));
        device::destroy_stream(side);
    }
    static_cast<void>(cudaStreamSynchronize(memory_->stream()));
}

}  // namespace quiver::cuda
