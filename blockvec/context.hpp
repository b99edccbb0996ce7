// SPDX-License-Identifier: BSD-3-Clause
// Context: where work happens. The first argument of every operation; nothing is global.
#pragma once

#include <memory>
#include <typeindex>
#include <unordered_map>

#include "blockvec/comm.hpp"
#include "blockvec/event.hpp"
#include "blockvec/ledger.hpp"
#include "blockvec/memory.hpp"

namespace quiver {

/// Host threads, or one CUDA device and a stream.
struct Device {
    Place place = Place::host;
    /// Threads of host kernels; 0 takes what OpenMP would (OMP_NUM_THREADS, else all it may use).
    int threads = 0;
    int id = 0;
    Stream stream = nullptr;
    bool borrowed_stream = false;

    static Device host(int threads = 0) { return {Place::host, threads, 0, nullptr, false}; }
    /// GPU `id` with a stream of the Context's own.
    static Device cuda(int id = 0) { return {Place::device, 0, id, nullptr, false}; }
    /// GPU `id` with the caller's stream, which must outlive the Context and all memory from it.
    static Device cuda(int id, Stream stream) { return {Place::device, 0, id, stream, true}; }
};

struct BlockPolicy;

/// One communicator, one execution place, and what belongs to both. Move-only; two Contexts in one
/// process do not disturb each other; one Context is used by one thread at a time. On a device,
/// operations are enqueued on stream() and return; those that return host values wait for them.
class Context {
  public:
    /// Throws UnsupportedError for a device this build or machine does not have.
    explicit Context(Comm comm = Comm(), Device device = Device::host());
    Context(Context&&) noexcept = default;
    Context& operator=(Context&&) noexcept = default;

    const Comm& comm() const { return comm_; }
    Place place() const { return device_.place; }
    const Device& device() const { return device_; }
    int threads() const { return threads_; }
    Stream stream() const { return memory_->stream(); }
    /// Waits until all work enqueued on the device is done; nothing on the host.
    void synchronize() const;

    const std::shared_ptr<Memory>& memory() const { return memory_; }
    Buffer allocate(MemoryKind kind, std::size_t bytes, const char* what) const {
        return Buffer(memory_, kind, bytes, what);
    }
    Scratch scratch(MemoryKind kind, std::size_t bytes) const {
        return Scratch(memory_, kind, bytes);
    }
    /// 1024 zeroed device words for kernels whose last block finishes a reduction. Whoever uses
    /// them leaves them zero.
    unsigned* counters();

    Ledger& ledger() { return *ledger_; }
    void set_event_sink(EventSink sink) { sink_ = std::move(sink); }
    void emit(const Event& event) const {
        if (sink_) {
            sink_(event);
        }
    }

    /// Who makes products and updates of blocks in the place of the kernels
    /// (kernels/block_policy.hpp, whose ScopedPolicy sets it); null: they themselves.
    const BlockPolicy* policy() const { return policy_; }
    void set_policy(const BlockPolicy* policy) { policy_ = policy; }

    /// The object of type S that belongs to this Context (a specialiser, a library's handle), made
    /// as S(*this) when first asked for and destroyed with the Context.
    template <class S>
    S& service() {
        auto& slot = services_[std::type_index(typeid(S))];
        if (!slot) {
            slot = std::make_shared<S>(*this);
        }
        return *static_cast<S*>(slot.get());
    }

  private:
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
