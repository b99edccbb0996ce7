// SPDX-License-Identifier: BSD-3-Clause
// Memory of a Context: host, page-locked host and stream-ordered device memory, and the pool of
// scratch space for kernels.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "blockvec/device.hpp"
#include "blockvec/view.hpp"

namespace quiver {

enum class MemoryKind : std::uint8_t { host, pinned, device };

inline MemoryKind memory_kind(Place place) {
    return place == Place::host ? MemoryKind::host : MemoryKind::device;
}

/// The allocator of a Context. The Context and every owner of memory from it share this object, so
/// that a BlockVector may outlive its Context. The destructor destroys the stream if it is owned.
class Memory {
  public:
    Memory() = default;
    Memory(int device_id, Stream stream, bool owns_stream)
        : device_id_(device_id), stream_(stream), owns_stream_(owns_stream) {}
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory();

    /// Allocates at least `bytes` bytes, aligned to 256; returns nullptr for 0 bytes. Throws
    /// MemoryError with `what` and the number of bytes if there is not enough memory.
    void* allocate(MemoryKind kind, std::size_t bytes, const char* what);
    void deallocate(MemoryKind kind, void* pointer) noexcept;
    int device_id() const { return device_id_; }
    Stream stream() const { return stream_; }

    /// A block of the pool of scratch space; see Scratch.
    struct Block {
        void* pointer;
        std::size_t bytes;
    };
    Block borrow(MemoryKind kind, std::size_t bytes);
    void give_back(MemoryKind kind, Block block) noexcept;

  private:
    int device_id_ = -1;
    Stream stream_ = nullptr;
    bool owns_stream_ = false;
    std::vector<Block> free_[3];
};

/// Owns one allocation.
class Buffer {
  public:
    Buffer() = default;
    Buffer(std::shared_ptr<Memory> memory, MemoryKind kind, std::size_t bytes, const char* what)
        : memory_(std::move(memory)),
          kind_(kind),
          bytes_(bytes),
          pointer_(memory_->allocate(kind, bytes, what)) {}
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        Buffer taken(std::move(other));
        swap(taken);
        return *this;
    }
    ~Buffer() {
        if (pointer_ != nullptr) {
            memory_->deallocate(kind_, pointer_);
        }
    }

    template <class V>
    V* as() const {
        return static_cast<V*>(pointer_);
    }
    std::size_t bytes() const { return bytes_; }

  private:
    void swap(Buffer& other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(kind_, other.kind_);
        std::swap(bytes_, other.bytes_);
        std::swap(pointer_, other.pointer_);
    }
    std::shared_ptr<Memory> memory_;
    MemoryKind kind_ = MemoryKind::host;
    std::size_t bytes_ = 0;
    void* pointer_ = nullptr;
};

/// A block of scratch memory, borrowed from the Context's pool until the end of the scope, so that
/// repeated operations allocate only the first time. Device scratch may be returned while kernels
/// still use it, because the next borrower works on the same stream. Pinned scratch must be idle
/// when it is returned.
class Scratch {
  public:
    Scratch(std::shared_ptr<Memory> memory, MemoryKind kind, std::size_t bytes)
        : memory_(std::move(memory)), kind_(kind), block_(memory_->borrow(kind, bytes)) {}
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() { memory_->give_back(kind_, block_); }

    template <class V>
    V* as() const {
        return static_cast<V*>(block_.pointer);
    }

  private:
    std::shared_ptr<Memory> memory_;
    MemoryKind kind_;
    Memory::Block block_;
};

}  // namespace quiver
