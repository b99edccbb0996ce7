// SPDX-License-Identifier: BSD-3-Clause
// Launches kernels on a Context's stream, and provides the device properties that a launch needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <cuda_runtime_api.h>

#include "blockvec/context.hpp"

namespace quiver::cuda {

/// A loaded kernel.
struct Kernel {
    cudaKernel_t handle = nullptr;
    std::string name = {};
    /// Bytes of dynamic shared memory with which the kernel may be launched. The default limit is
    /// 48 KB, including the kernel's static shared memory.
    std::size_t shared_limit = 46 * 1024;
};

/// The grid, block size and dynamic shared memory of a launch.
struct LaunchShape {
    unsigned blocks = 1;
    /// The second dimension of the grid, at most 65535.
    unsigned blocks_y = 1;
    unsigned threads = 1;
    std::size_t shared_bytes = 0;
};

/// Makes a device current for this thread in a scope, and restores the previous one at the end.
class CurrentDevice {
  public:
    explicit CurrentDevice(int id);
    CurrentDevice(const CurrentDevice&) = delete;
    CurrentDevice& operator=(const CurrentDevice&) = delete;
    ~CurrentDevice();

  private:
    int former_ = 0;
    bool changed_ = false;
};

/// Enqueues a kernel. Throws DeviceError with the names of the kernel and the error code.
void launch(Context& ctx, Kernel& kernel, const LaunchShape& shape, void** arguments);

/// `arguments` must match the kernel's parameters in size and layout, one by one.
template <class... Arguments>
void launch(Context& ctx, Kernel& kernel, const LaunchShape& shape, const Arguments&... arguments) {
    void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
    launch(ctx, kernel, shape, static_cast<void**>(pointers));
}

int multiprocessors(const Context& ctx);
/// The largest shared memory of a block, in bytes.
std::size_t shared_bytes_per_block(const Context& ctx);

/// The number of blocks such that each gets at least `rows_per_block` rows: at least 1, at most
/// `per_multiprocessor` per multiprocessor.
unsigned blocks_for(const Context& ctx, std::int64_t rows, int rows_per_block,
                    int per_multiprocessor);

/// The number of neighbouring blocks whose sums sum_over_blocks of src/reduce.cuh adds first, for
/// `size` sums: about the square root of `blocks`, or `blocks` if one level is faster than two.
int reduction_group(unsigned blocks, int size);

}  // namespace quiver::cuda
