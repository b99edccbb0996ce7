// SPDX-License-Identifier: BSD-3-Clause
// The few calls of the CUDA runtime that the container needs, with errors turned into exceptions.
// In a build without CUDA every function but device_count() throws UnsupportedError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

struct CUstream_st;
struct CUevent_st;

namespace quiver {

/// The same pointer as cudaStream_t and cudaEvent_t; spelt here so that no header needs CUDA.
using Stream = CUstream_st*;
using DeviceEvent = CUevent_st*;

namespace device {

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

/// GPUs this process can use; 0 without a driver or in a build without CUDA.
int count();
/// Why count() is 0: one sentence that names the cure. Empty when there is a GPU.
std::string why_none();
Properties properties(int id);

/// Makes the GPU current for this thread and lets its memory pool keep what is freed.
void select(int id);
Stream create_stream();
void destroy_stream(Stream stream) noexcept;
void synchronize(Stream stream);

/// Stream-ordered memory (cudaMallocAsync); nullptr when memory does not suffice.
void* allocate(std::size_t bytes, Stream stream);
void deallocate(void* pointer, Stream stream) noexcept;
/// Page-locked host memory; nullptr when memory does not suffice.
void* allocate_pinned(std::size_t bytes);
void deallocate_pinned(void* pointer) noexcept;

/// Copies between any two places, ordered on the stream; returns before a copy that involves
/// page-locked host memory has happened.
void copy(void* to, const void* from, std::size_t bytes, Stream stream);
/// `height` runs of `width` bytes, `to_pitch` and `from_pitch` bytes apart.
void copy_2d(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
             std::size_t width, std::size_t height, Stream stream);
void set_zero(void* pointer, std::size_t bytes, Stream stream);

DeviceEvent create_event(bool with_timing);
void destroy_event(DeviceEvent event) noexcept;
void record(DeviceEvent event, Stream stream);
void synchronize(DeviceEvent event);
/// Makes later work on the stream wait for the event.
void wait(Stream stream, DeviceEvent event);
/// Seconds between two recorded and finished events.
double elapsed_seconds(DeviceEvent begin, DeviceEvent end);

/// Throws DeviceError "what: NAME (text)" unless `code` (a cudaError_t) is cudaSuccess.
void check(int code, const char* what);

}  // namespace device
}  // namespace quiver
