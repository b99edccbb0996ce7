// SPDX-License-Identifier: BSD-3-Clause
// Enqueues kernels on a Context's stream, and what a launch must know of the device.
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
    /// Bytes of dynamic shared memory that it may be launched with: unasked 48 KB, with what it
    /// declares itself.
    std::size_t shared_limit = 46 * 1024;
};

struct LaunchShape {
    unsigned blocks = 1;
    /// A second dimension of the grid, at most 65535.
    unsigned blocks_y = 1;
    unsigned threads = 1;
    std::size_t shared_bytes = 0;
};

/// Makes a device current for this thread, and the former one again in the end.
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

/// Throws DeviceError with the kernel's name and the code's.
void launch(Context& ctx, Kernel& kernel, const LaunchShape& shape, void** arguments);

/// `arguments` have, one by one, the sizes and layouts of the kernel's parameters.
template <class... Arguments>
void launch(Context& ctx, Kernel& kernel, const LaunchShape& shape, const Arguments&... arguments) {
    void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
    launch(ctx, kernel, shape, static_cast<void**>(pointers));
}

int multiprocessors(const Context& ctx);
/// Most bytes of shared memory that a block can have.
std::size_t shared_bytes_per_block(const Context& ctx);

/// Blocks that give each at least `rows_per_block` rows: at least 1, at most `per_multiprocessor`
/// for each multiprocessor.
unsigned blocks_for(const Context& ctx, std::int64_t rows, int rows_per_block,
                    int per_multiprocessor);

/// How many neighbours sum_over_blocks of src/reduce.cuh sums first, for `size` sums: about the
/// root of `blocks`, or all, where that is quicker than a second level.
int reduction_group(unsigned blocks, int size);

}  // namespace quiver::cuda
