// SPDX-License-Identifier: BSD-3-Clause
#include "apps/execution.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <omp.h>
#include <sched.h>

#include "apps/cpu_binding.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps {
namespace {

/// The ranks on the same node as this rank, in rank order.
class Node {
  public:
    explicit Node(const Comm& comm) {
        if (comm.size() > 1) {
            check_mpi(MPI_Comm_split_type(comm.handle(), MPI_COMM_TYPE_SHARED, comm.rank(),
                                          MPI_INFO_NULL, &handle_),
                      "MPI_Comm_split_type");
            check_mpi(MPI_Comm_rank(handle_, &rank_), "MPI_Comm_rank");
            check_mpi(MPI_Comm_size(handle_, &size_), "MPI_Comm_size");
        }
    }
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    ~Node() {
        if (handle_ != MPI_COMM_NULL) {
            MPI_Comm_free(&handle_);
        }
    }
    int rank() const { return rank_; }
    /// Binds the rank to its share of the cores near its GPU, or of all cores without a GPU
    /// (bind_near_gpu), and sets its number of threads.
    void bind(Device& device) const {
        if (handle_ == MPI_COMM_NULL) {
            return;
        }
        const bool cuda = device.place == Place::device;
        const int cores = bind_near_gpu(handle_, cuda ? device::properties(device.id).pci_bus : "");
        if (cores > 0 && std::getenv("OMP_NUM_THREADS") == nullptr) {
            device.threads = cores;
        }
    }

    /// The number of ranks of the node that may use the same cores as this rank. Collective.
    int sharers() const {
        cpu_set_t mine;
        CPU_ZERO(&mine);
        if (size_ == 1) {
            return size_;
        }
        // Every rank takes part in the exchange; the empty set stands for an unknown one.
        if (sched_getaffinity(0, sizeof(mine), &mine) != 0) {
            CPU_ZERO(&mine);
        }
        std::vector<cpu_set_t> all(static_cast<std::size_t>(size_));
        check_mpi(MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all.data(), sizeof(mine), MPI_BYTE,
                                handle_),
                  "MPI_Allgather");
        if (CPU_COUNT(&mine) == 0) {
            return size_;
        }
        return static_cast<int>(std::count_if(all.begin(), all.end(), [&](const cpu_set_t& other) {
            return CPU_EQUAL(&mine, &other) != 0;
        }));
    }

  private:
    MPI_Comm handle_ = MPI_COMM_NULL;
    int rank_ = 0;
    int size_ = 1;
};

int choose_threads(const Node& node) {
    const int sharers = node.sharers();
    if (std::getenv("OMP_NUM_THREADS") != nullptr) {
        return omp_get_max_threads();
    }
    return std::max(1, omp_get_num_procs() / sharers);
}

}  // namespace

int choose_threads(const Comm& comm) {
    return choose_threads(Node(comm));
}

Execution choose_execution(const Comm& comm, const std::string& wanted) {
    const Node node(comm);
    const Device host = Device::host(choose_threads(node));
    if (wanted == "host") {
        return {host, ""};
    }
    const int gpus = device::count();
    if (wanted == "mixed") {
        if (comm.max(std::int64_t{gpus}) == 0) {
            throw_collective(ErrorKind::unsupported, "--device mixed: " + device::why_none());
        }
        Device device = node.rank() < gpus ? Device::cuda(node.rank()) : host;
        device.threads = host.threads;
        node.bind(device);
        const std::int64_t on_gpus = comm.sum(std::int64_t{node.rank() < gpus ? 1 : 0});
        return {device,
                std::to_string(on_gpus) + " of " + std::to_string(comm.size()) + " ranks on GPUs",
                true};
    }
    // If a rank sees no GPU, agree() throws the reason of that rank on all ranks.
    try {
        comm.agree([&] {
            if (gpus == 0) {
                throw UnsupportedError(device::why_none());
            }
        });
    } catch (const UnsupportedError& error) {
        if (wanted == "cuda") {
            throw_collective(ErrorKind::unsupported, std::string("--device cuda: ") + error.what());
        }
        return {host, error.what()};
    }
    Device device = Device::cuda(node.rank() % gpus);
    device.threads = host.threads;
    node.bind(device);
    return {device, ""};
}

}  // namespace quiver::apps
