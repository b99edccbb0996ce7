// SPDX-License-Identifier: BSD-3-Clause
// Kernels for exact shapes, compiled when first asked for.
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

/// The kernels of one Context on a device: in memory, then in the cache on disk, then in a pack,
/// then from NVRTC. A service of the Context, ctx.service<Specialiser>(), used by one thread at a
/// time as the Context is.
class Specialiser {
  public:
    explicit Specialiser(Context& ctx);
    Specialiser(const Specialiser&) = delete;
    Specialiser& operator=(const Specialiser&) = delete;
    /// Waits for the stream, since kernels that run must not be unloaded.
    ~Specialiser();

    /// The instance `expression` of a kernel in an embedded source. The reference holds as long as
    /// the Context. Emits a KernelWaitEvent where it had to wait for a compiler. Throws
    /// DeviceError.
    Kernel& get(const Context& ctx, const char* source, const std::string& expression);

    /// Starts to compile the kernel on another core, unless it is loaded or in the cache; get()
    /// returns it later. Returns at once.
    void request(const char* source, const std::string& expression);
    /// The same for all kernels that `list(use)` gives to use(kernel), on another thread, since
    /// their plans take milliseconds each. `list` ends where use returns false.
    using Use = std::function<bool(const KernelInstance&)>;
    void request_all(std::function<void(const Use&)> list);

    /// Compiles those of `expressions` that are not loaded yet, several in a program, on `threads`
    /// threads, past the cache on disk: for a search, which asks for many and keeps few. One that
    /// does not compile is left out; get() will say why.
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
