// SPDX-License-Identifier: BSD-3-Clause
// Specialiser: kernels for exact shapes, compiled at their first use.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/overhead.hpp"
#include "kernels/cuda/compile_queue.hpp"
#include "kernels/cuda/expressions.hpp"
#include "kernels/cuda/kernel_list.hpp"
#include "kernels/cuda/launcher.hpp"

namespace quiver::cuda {

/// The kernels of one Context on a device. A kernel is searched in memory, then in the cache on
/// disk, then in a pack, and otherwise compiled by NVRTC. A service of the Context,
/// ctx.service<Specialiser>(), used by one thread at a time like the Context.
class Specialiser {
  public:
    explicit Specialiser(Context& ctx);
    Specialiser(const Specialiser&) = delete;
    Specialiser& operator=(const Specialiser&) = delete;
    /// Waits for the stream, because running kernels must not be unloaded.
    ~Specialiser();

    /// The instance `expression` of a kernel in an embedded source. The reference is valid as long
    /// as the Context. Emits a KernelWaitEvent if it had to wait for a compilation. Throws
    /// DeviceError.
    Kernel& get(const Context& ctx, const char* source, const std::string& expression);

    /// True if get() would return without waiting for a compilation.
    bool ready(const char* source, const std::string& expression);

    /// Starts to compile the kernel in the background, unless it is loaded or in the cache; a later
    /// get() returns it. Returns at once. See CompileQueue::request for `can_wait`.
    void request(const char* source, const std::string& expression, bool can_wait = false);
    /// Calls request() for all kernels that `list(use)` passes to use(kernel). This happens on
    /// another thread, because each plan takes milliseconds. `list` must stop when use returns
    /// false.
    using Use = std::function<bool(const KernelInstance&)>;
    void request_all(std::function<void(const Use&)> list);

    /// Waits for everything that was requested.
    void wait() { queue_.wait(); }

    /// Compiles those of `expressions` that are not loaded, several per program, on `threads`
    /// threads and without the cache on disk: for a search, which requests many kernels and keeps
    /// few. An instance that does not compile is skipped; get() reports its error.
    void prepare(const char* source, const std::vector<std::string>& expressions, int threads);

    const CubinCache::Packs& packs() const { return cache_.packs(); }

  private:
    void load(const CompiledProgram& program, const std::vector<std::string>& expressions);

    std::shared_ptr<Memory> memory_;
    OverheadCounts& overhead_;
    std::string arch_;
    CubinCache cache_;
    CompileQueue queue_;
    std::vector<cudaLibrary_t> libraries_;
    std::unordered_map<std::string, Kernel> kernels_;
};

}  // namespace quiver::cuda
