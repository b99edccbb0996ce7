// SPDX-License-Identifier: BSD-3-Clause
// NCCL, where it is found at run time: sums and messages between the GPUs of all ranks.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "blockvec/comm.hpp"
#include "blockvec/device.hpp"

namespace quiver::cuda {

/// A run of bytes in device memory, to or from a rank.
struct RankMessage {
    int rank;
    void* data;
    std::size_t bytes;
};

/// The functions of the library that are used here.
struct NcclLibrary;

/// Loads it. Throws UnsupportedError, which says why it cannot be.
std::shared_ptr<const NcclLibrary> load_nccl();

/// One communicator of NCCL over all ranks of a Comm, each with a GPU of its own. Its work is
/// enqueued on streams; all ranks enqueue the same in the same order.
class Nccl {
  public:
    /// Collective. `device_id` must be current for this thread. Throws DeviceError.
    Nccl(std::shared_ptr<const NcclLibrary> library, const Comm& comm);
    Nccl(const Nccl&) = delete;
    Nccl& operator=(const Nccl&) = delete;
    /// Does not wait for other ranks. Nothing may be under way.
    ~Nccl();

    /// values <- sums over the ranks, count floats or doubles (bytes_each 4 or 8).
    void sum(void* values, std::size_t count, std::size_t bytes_each, Stream stream);
    /// All messages together.
    void exchange(std::span<const RankMessage> sends, std::span<const RankMessage> receives,
                  Stream stream);
    /// "NCCL 2.28.3"
    std::string name() const;

  private:
    void check(int code, const char* what) const;

    std::shared_ptr<const NcclLibrary> library_;
    void* handle_ = nullptr;
};

}  // namespace quiver::cuda
