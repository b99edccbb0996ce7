// SPDX-License-Identifier: BSD-3-Clause
// Nccl: all-reduces and messages between the GPUs of all ranks, by the NCCL library loaded at run
// time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "blockvec/comm.hpp"
#include "blockvec/device.hpp"

namespace quiver::cuda {

/// A contiguous message in device memory, to or from a rank.
struct RankMessage {
    int rank;
    void* data;
    std::size_t bytes;
};

/// The functions of the library that are used here.
struct NcclLibrary;

/// Loads the library. Throws UnsupportedError with the reason on failure.
std::shared_ptr<const NcclLibrary> load_nccl();

/// An NCCL communicator over all ranks of a Comm, each with its own GPU. Work is enqueued on
/// streams; all ranks must enqueue the same work in the same order.
class Nccl {
  public:
    /// Collective. `device_id` must be current for this thread. Throws DeviceError.
    Nccl(std::shared_ptr<const NcclLibrary> library, const Comm& comm);
    Nccl(const Nccl&) = delete;
    Nccl& operator=(const Nccl&) = delete;
    /// Does not wait for other ranks. No operation may be in flight.
    ~Nccl();

    /// values <- sums over the ranks, count floats or doubles (bytes_each 4 or 8).
    void sum(void* values, std::size_t count, std::size_t bytes_each, Stream stream);
    /// Sends and receives all messages as one group.
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
