// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/launcher.hpp"

#include <algorithm>

#include "blockvec/overhead.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {
namespace {

int attribute(const Context& ctx, cudaDeviceAttr which) {
    int value = 0;
    device::check(cudaDeviceGetAttribute(&value, which, ctx.device().id), "cudaDeviceGetAttribute");
    return value;
}

}  // namespace

CurrentDevice::CurrentDevice(int id) {
    device::check(cudaGetDevice(&former_), "cudaGetDevice");
    if (former_ != id) {
        device::check(cudaSetDevice(id), "cudaSetDevice");
        changed_ = true;
    }
}

CurrentDevice::~CurrentDevice() {
    if (changed_) {
        static_cast<void>(cudaSetDevice(former_));
    }
}

void launch(Context& ctx, Kernel& kernel, const LaunchShape& shape, void** arguments) {
    const CurrentDevice current(ctx.device().id);
    if (shape.shared_bytes > kernel.shared_limit) {
        device::check(cudaKernelSetAttributeForDevice(
                          kernel.handle, cudaFuncAttributeMaxDynamicSharedMemorySize,
                          static_cast<int>(shape.shared_bytes), ctx.device().id),
                      ("shared memory of " + kernel.name).c_str());
        kernel.shared_limit = shape.shared_bytes;
    }
    OverheadCounts::of(ctx).count(Overhead::launch);
    const cudaError_t code = cudaLaunchKernel(
        static_cast<const void*>(kernel.handle), dim3(shape.blocks, shape.blocks_y),
        dim3(shape.threads), arguments, shape.shared_bytes, ctx.stream());
    if (code != cudaSuccess) {
        static_cast<void>(cudaGetLastError());
        device::check(code, ("launching " + kernel.name).c_str());
    }
}

int multiprocessors(const Context& ctx) {
    return attribute(ctx, cudaDevAttrMultiProcessorCount);
}

std::size_t shared_bytes_per_block(const Context& ctx) {
    return static_cast<std::size_t>(attribute(ctx, cudaDevAttrMaxSharedMemoryPerBlockOptin));
}

unsigned blocks_for(const Context& ctx, std::int64_t rows, int rows_per_block,
                    int per_multiprocessor) {
    const std::int64_t wanted = (rows + rows_per_block - 1) / rows_per_block;
    const std::int64_t most = std::int64_t{multiprocessors(ctx)} * per_multiprocessor;
    return static_cast<unsigned>(std::clamp<std::int64_t>(wanted, 1, most));
}

int reduction_group(unsigned blocks, int size) {
    // A second level costs as much as two more rounds of loads, with 16 partial sums per lane and
    // round.
    constexpr int lanes_for_all = 16;
    const int lanes = std::max(1, block_threads / std::max(size, 1));
    if (lanes >= lanes_for_all || blocks <= 16U * static_cast<unsigned>(lanes)) {
        return static_cast<int>(blocks);
    }
    int group = 1;
    while (static_cast<unsigned>(group) * static_cast<unsigned>(group) < blocks) {
        ++group;
    }
    return group;
}

}  // namespace quiver::cuda
