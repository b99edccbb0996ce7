// SPDX-License-Identifier: BSD-3-Clause
// The CUDA runtime calls that the library needs; a failed call throws DeviceError. In a build
// without CUDA, every function throws UnsupportedError, except count(), why_none() and the noexcept
// ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

struct CUstream_st;
struct CUevent_st;

namespace quiver {

/// The same pointer types as cudaStream_t and cudaEvent_t, declared here so that no header needs
/// CUDA.
using Stream = CUstream_st*;
using DeviceEvent = CUevent_st*;

namespace device {

/// Properties of a GPU; sizes in bytes.
struct Properties {
    std::string name;
    int compute_major = 0;
    int compute_minor = 0;
    int multiprocessors = 0;
    std::size_t total_bytes = 0;
    std::size_t free_bytes = 0;
    std::size_t l2_bytes = 0;
    std::size_t shared_bytes_per_block = 0;
    /// "0000:1b:00.0"
    std::string pci_bus;
};

/// Number of GPUs that this process can use; 0 without a driver or in a build without CUDA.
int count();
/// The reason why count() is 0, as one sentence that names the cure. Empty if there is a GPU.
std::string why_none();
Properties properties(int id);
/// The device memory that allocate() can still take: free memory, and unused memory of the pool.
std::size_t available_bytes(int id);

/// Makes the GPU current for this thread and lets its memory pool keep freed memory for reuse.
void select(int id);
Stream create_stream();
void destroy_stream(Stream stream) noexcept;
void synchronize(Stream stream);

/// Stream-ordered memory (cudaMallocAsync); nullptr if there is not enough memory.
void* allocate(std::size_t bytes, Stream stream);
void deallocate(void* pointer, Stream stream) noexcept;
/// Page-locked host memory; nullptr if there is not enough memory.
void* allocate_pinned(std::size_t bytes);
void deallocate_pinned(void* pointer) noexcept;

/// Copies between any two places, ordered on the stream. Asynchronous unless pageable host memory
/// is involved: the call may return before the copy is done.
void copy(void* to, const void* from, std::size_t bytes, Stream stream);
/// Copies `height` runs of `width` bytes whose starts are `to_pitch` and `from_pitch` bytes apart.
void copy_2d(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
             std::size_t width, std::size_t height, Stream stream);
void set_zero(void* pointer, std::size_t bytes, Stream stream);

DeviceEvent create_event(bool with_timing);
void destroy_event(DeviceEvent event) noexcept;
void record(DeviceEvent event, Stream stream);
void synchronize(DeviceEvent event);
/// Makes work enqueued later on the stream wait for the event.
void wait(Stream stream, DeviceEvent event);
/// Seconds between two recorded events; both must have completed.
double elapsed_seconds(DeviceEvent begin, DeviceEvent end);

/// Throws DeviceError "what: NAME (text)" unless `code` (a cudaError_t) is cudaSuccess.
void check(int code, const char* what);

}  // namespace device
}  // namespace quiver
