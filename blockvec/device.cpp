// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/device.hpp"

#include "blockvec/config.hpp"
#include "blockvec/error.hpp"

#if QUIVER_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

namespace quiver::device {

#if QUIVER_HAVE_CUDA

void check(int code, const char* what) {
    const auto error = static_cast<cudaError_t>(code);
    if (error != cudaSuccess) {
        throw DeviceError(std::string(what) + ": " + cudaGetErrorName(error) + " (" +
                          cudaGetErrorString(error) + ")");
    }
}

int count() {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        static_cast<void>(cudaGetLastError());
        return 0;
    }
    return devices;
}

std::string why_none() {
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);
    static_cast<void>(cudaGetLastError());
    if (error != cudaSuccess) {
        return std::string("the CUDA runtime finds no usable GPU (") + cudaGetErrorName(error) +
               "): install an NVIDIA driver for CUDA " + config::cuda_version +
               " or newer, or use --device host";
    }
    return devices == 0 ? "this machine has no NVIDIA GPU: use --device host" : "";
}

Properties properties(int id) {
    cudaDeviceProp raw{};
    check(cudaGetDeviceProperties(&raw, id), "cudaGetDeviceProperties");
    Properties result;
    result.name = raw.name;
    result.compute_major = raw.major;
    result.compute_minor = raw.minor;
    result.multiprocessors = raw.multiProcessorCount;
    result.l2_bytes = static_cast<std::size_t>(raw.l2CacheSize);
    result.shared_bytes_per_block = raw.sharedMemPerBlockOptin;
    char bus[32] = "";
    check(cudaDeviceGetPCIBusId(bus, sizeof bus, id), "cudaDeviceGetPCIBusId");
    result.pci_bus = bus;
    int current = 0;
    check(cudaGetDevice(&current), "cudaGetDevice");
    check(cudaSetDevice(id), "cudaSetDevice");
    check(cudaMemGetInfo(&result.free_bytes, &result.total_bytes), "cudaMemGetInfo");
    check(cudaSetDevice(current), "cudaSetDevice");
    return result;
}

std::size_t available_bytes(int id) {
    cudaMemPool_t pool = nullptr;
    check(cudaDeviceGetDefaultMemPool(&pool, id), "cudaDeviceGetDefaultMemPool");
    std::uint64_t kept = 0;
    std::uint64_t used = 0;
    check(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &kept),
          "cudaMemPoolGetAttribute");
    check(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used),
          "cudaMemPoolGetAttribute");
    return properties(id).free_bytes + static_cast<std::size_t>(kept - used);
}

void select(int id) {
    check(cudaSetDevice(id), "cudaSetDevice");
    // Keep freed memory in the pool: an allocation then costs microseconds.
    cudaMemPool_t pool = nullptr;
    check(cudaDeviceGetDefaultMemPool(&pool, id), "cudaDeviceGetDefaultMemPool");
    std::uint64_t threshold = UINT64_MAX;
    check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold),
          "cudaMemPoolSetAttribute");
}

Stream create_stream() {
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    return stream;
}

void destroy_stream(Stream stream) noexcept {
    static_cast<void>(cudaStreamDestroy(stream));
}

void synchronize(Stream stream) {
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

void* allocate(std::size_t bytes, Stream stream) {
    // Multiples of 16 bytes, because compute-sanitizer reports copy_async_part() of the last bytes
    // as a read of 16 bytes.
    constexpr std::size_t unit = 16;
    void* pointer = nullptr;
    const cudaError_t error = cudaMallocAsync(&pointer, (bytes + unit - 1) / unit * unit, stream);
    if (error == cudaErrorMemoryAllocation) {
        static_cast<void>(cudaGetLastError());
        return nullptr;
    }
    check(error, "cudaMallocAsync");
    return pointer;
}

void deallocate(void* pointer, Stream stream) noexcept {
    static_cast<void>(cudaFreeAsync(pointer, stream));
}

void* allocate_pinned(std::size_t bytes) {
    void* pointer = nullptr;
    const cudaError_t error = cudaMallocHost(&pointer, bytes);
    if (error == cudaErrorMemoryAllocation) {
        static_cast<void>(cudaGetLastError());
        return nullptr;
    }
    check(error, "cudaMallocHost");
    return pointer;
}

void deallocate_pinned(void* pointer) noexcept {
    static_cast<void>(cudaFreeHost(pointer));
}

void copy(void* to, const void* from, std::size_t bytes, Stream stream) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
}

void copy_2d(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
             std::size_t width, std::size_t height, Stream stream) {
    check(
        cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, cudaMemcpyDefault, stream),
        "cudaMemcpy2DAsync");
}

void set_zero(void* pointer, std::size_t bytes, Stream stream) {
    check(cudaMemsetAsync(pointer, 0, bytes, stream), "cudaMemsetAsync");
}

DeviceEvent create_event(bool with_timing) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, with_timing ? cudaEventDefault : cudaEventDisableTiming),
          "cudaEventCreate");
    return event;
}

void destroy_event(DeviceEvent event) noexcept {
    static_cast<void>(cudaEventDestroy(event));
}

void record(DeviceEvent event, Stream stream) {
    check(cudaEventRecord(event, stream), "cudaEventRecord");
}

void synchronize(DeviceEvent event) {
    check(cudaEventSynchronize(event), "cudaEventSynchronize");
}

void wait(Stream stream, DeviceEvent event) {
    check(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
}

double elapsed_seconds(DeviceEvent begin, DeviceEvent end) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e-3;
}

#else

namespace {

[[noreturn]] void refuse() {
    throw UnsupportedError(why_none());
}

}  // namespace

void check(int, const char*) {
    refuse();
}
int count() {
    return 0;
}
std::string why_none() {
    return "this build of quiver has no CUDA: build it where CUDA 12.8 or newer is installed, or "
           "use --device host";
}
Properties properties(int) {
    refuse();
}
std::size_t available_bytes(int) {
    refuse();
}
void select(int) {
    refuse();
}
Stream create_stream() {
    refuse();
}
void destroy_stream(Stream) noexcept {}
void synchronize(Stream) {
    refuse();
}
void* allocate(std::size_t, Stream) {
    refuse();
}
void deallocate(void*, Stream) noexcept {}
void* allocate_pinned(std::size_t) {
    refuse();
}
void deallocate_pinned(void*) noexcept {}
void copy(void*, const void*, std::size_t, Stream) {
    refuse();
}
void copy_2d(void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t, Stream) {
    refuse();
}
void set_zero(void*, std::size_t, Stream) {
    refuse();
}
DeviceEvent create_event(bool) {
    refuse();
}
void destroy_event(DeviceEvent) noexcept {}
void record(DeviceEvent, Stream) {
    refuse();
}
void synchronize(DeviceEvent) {
    refuse();
}
void wait(Stream, DeviceEvent) {
    refuse();
}
double elapsed_seconds(DeviceEvent, DeviceEvent) {
    refuse();
}

#endif

}  // namespace quiver::device
