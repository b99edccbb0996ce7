// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/memory.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <string>

#include "blockvec/error.hpp"

namespace quiver {
namespace {

constexpr std::size_t alignment = 256;

const char* name_of(MemoryKind kind) {
    switch (kind) {
        case MemoryKind::host:
            return "host";
        case MemoryKind::pinned:
            return "page-locked host";
        default:
            return "device";
    }
}

}  // namespace

Memory::~Memory() {
    for (int kind = 0; kind < 3; ++kind) {
        for (const Block& block : free_[kind]) {
            deallocate(static_cast<MemoryKind>(kind), block.pointer);
        }
    }
    if (owns_stream_) {
        device::destroy_stream(stream_);
    }
}

void* Memory::allocate(MemoryKind kind, std::size_t bytes, const char* what) {
    if (bytes == 0) {
        return nullptr;
    }
    void* pointer = nullptr;
    switch (kind) {
        case MemoryKind::host:
            // aligned_alloc requires a multiple of the alignment; rounding up must not overflow.
            if (bytes <= SIZE_MAX - alignment) {
                pointer = std::aligned_alloc(alignment, (bytes + alignment - 1) & ~(alignment - 1));
            }
            break;
        case MemoryKind::pinned:
            pointer = device::allocate_pinned(bytes);
            break;
        case MemoryKind::device:
            pointer = device::allocate(bytes, stream_);
            break;
    }
    if (pointer == nullptr) {
        throw MemoryError(std::string(what) + ": " + std::to_string(bytes) + " bytes of " +
                          name_of(kind) + " memory are not available");
    }
    return pointer;
}

void Memory::deallocate(MemoryKind kind, void* pointer) noexcept {
    switch (kind) {
        case MemoryKind::host:
            std::free(pointer);
            break;
        case MemoryKind::pinned:
            device::deallocate_pinned(pointer);
            break;
        case MemoryKind::device:
            device::deallocate(pointer, stream_);
            break;
    }
}

Memory::Block Memory::borrow(MemoryKind kind, std::size_t bytes) {
    auto& pool = free_[static_cast<int>(kind)];
    auto best = pool.end();
    for (auto candidate = pool.begin(); candidate != pool.end(); ++candidate) {
        if (candidate->bytes >= bytes && (best == pool.end() || candidate->bytes < best->bytes)) {
            best = candidate;
        }
    }
    if (best != pool.end()) {
        const Block found = *best;
        pool.erase(best);
        return found;
    }
    // Round up to a power of two, so that slowly growing requests reuse one block.
    const std::size_t rounded = std::bit_ceil(std::max<std::size_t>(bytes, 4096));
    return {allocate(kind, rounded, "scratch space"), rounded};
}

void Memory::give_back(MemoryKind kind, Block block) noexcept {
    try {
        free_[static_cast<int>(kind)].push_back(block);
    } catch (const std::bad_alloc&) {
        deallocate(kind, block.pointer);
    }
}

}  // namespace quiver
