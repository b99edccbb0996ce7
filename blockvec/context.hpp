// SPDX-License-Identifier: BSD-3-Clause
// Context: the place and communicator of all work. It is the first argument of every operation;
// there is no global state.
#pragma once

#include <memory>
#include <typeindex>
#include <unordered_map>

#include "blockvec/comm.hpp"
#include "blockvec/event.hpp"
#include "blockvec/ledger.hpp"
#include "blockvec/memory.hpp"

namespace quiver {

/// The place where operations run: host threads, or one GPU with a stream.
struct Device {
    Place place = Place::host;
    /// Threads of host kernels; 0 means OpenMP's default (OMP_NUM_THREADS, else all processors that
    /// this process may use).
    int threads = 0;
    int id = 0;
    Stream stream = nullptr;
    bool borrowed_stream = false;

    static Device host(int threads = 0) { return {Place::host, threads, 0, nullptr, false}; }
    /// GPU `id` with a stream that the Context creates and owns.
    static Device cuda(int id = 0) { return {Place::device, 0, id, nullptr, false}; }
    /// GPU `id` with the caller's stream, which must outlive the Context and all memory from it.
    static Device cuda(int id, Stream stream) { return {Place::device, 0, id, stream, true}; }
};

struct BlockPolicy;

/// One communicator, one execution place, and the resources that belong to both. Move-only: a
/// Context that was moved from throws InputError when memory, the ledger or a service is requested.
/// Several Contexts in one process are independent; one Context is used by one thread at a time. On
/// a device, operations are enqueued on stream() and return at once; operations that return host
/// values wait for them.
class Context {
  public:
    /// Throws UnsupportedError for a device that this build or machine does not have, InputError
    /// for an invalid QUIVER_VECTORS.
    explicit Context(Comm comm = Comm(), Device device = Device::host());
    Context(Context&&) noexcept = default;
    Context& operator=(Context&&) noexcept = default;

    const Comm& comm() const { return comm_; }
    Place place() const { return device_.place; }
    const Device& device() const { return device_; }
    int threads() const { return threads_; }
    Stream stream() const { return memory()->stream(); }
    /// Waits until all work enqueued on the device has finished; a no-op on the host.
    void synchronize() const;

    const std::shared_ptr<Memory>& memory() const {
        require_contents();
        return memory_;
    }
    Buffer allocate(MemoryKind kind, std::size_t bytes, const char* what) const {
        return Buffer(memory(), kind, bytes, what);
    }
    Scratch scratch(MemoryKind kind, std::size_t bytes) const {
        return Scratch(memory(), kind, bytes);
    }
    /// 1024 zeroed device words for kernels whose last thread block finishes a reduction. Every
    /// kernel that uses the words must leave them zero.
    unsigned* counters();

    Ledger& ledger() {
        require_contents();
        return *ledger_;
    }
    void set_event_sink(EventSink sink) { sink_ = std::move(sink); }
    void emit(const Event& event) const {
        if (sink_) {
            sink_(event);
        }
    }

    /// Optional override of the block kernels, set by ScopedPolicy of kernels/block_policy.hpp;
    /// null calls the kernels directly.
    const BlockPolicy* policy() const { return policy_; }
    void set_policy(const BlockPolicy* policy) { policy_ = policy; }

    /// The object of type S that belongs to this Context, for instance a specialiser or the handle
    /// of a library. The first call constructs it as S(*this); the Context destroys it.
    template <class S>
    S& service() {
        require_contents();
        auto& slot = services_[std::type_index(typeid(S))];
        if (!slot) {
            slot = std::make_shared<S>(*this);
        }
        return *static_cast<S*>(slot.get());
    }

  private:
    void require_contents() const {
        if (!memory_) {
            throw_moved_from();
        }
    }
    [[noreturn]] static void throw_moved_from();

    Comm comm_;
    Device device_;
    int threads_ = 1;
    std::shared_ptr<Memory> memory_;
    std::unique_ptr<Ledger> ledger_;
    EventSink sink_;
    const BlockPolicy* policy_ = nullptr;
    Buffer counters_;
    std::unordered_map<std::type_index, std::shared_ptr<void>> services_;
};

}  // namespace quiver
