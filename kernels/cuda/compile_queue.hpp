// SPDX-License-Identifier: BSD-3-Clause
// Compiles kernels on all cores while the caller does something else. Needs NVRTC, but no GPU.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "kernels/cuda/cubin_cache.hpp"

namespace quiver::cuda {

/// The cores that this process may use.
int usable_cores();

/// Requests in the order in which they came, compiled by threads that start with the first one.
/// Each request has one expression. Ranks of a node that share a cache folder share the work: a
/// program that another one is compiling waits behind the others.
class CompileQueue {
  public:
    CompileQueue(CubinCache& cache, int threads) : cache_(cache), threads_(threads) {}
    CompileQueue(const CompileQueue&) = delete;
    CompileQueue& operator=(const CompileQueue&) = delete;
    /// Drops the requests that no thread has begun and waits for the others.
    ~CompileQueue();

    /// Runs `task` on one of the threads, before the requests that wait. It may make requests; an
    /// Error that it throws is dropped. Returns at once.
    void run(std::function<void()> task);
    /// Whether tasks should end, since nobody will ask for their kernels.
    bool stopping();
    /// Returns at once. Without effect for a request that was made before or is in the cache.
    void request(const CompileRequest& request);
    /// Whether get() would return at once.
    bool ready(const CompileRequest& request);
    /// The program: compiled before, awaited where a thread has begun it, else got here. Throws
    /// DeviceError where it does not compile.
    CompiledProgram get(const CompileRequest& request);

  private:
    enum class State : std::uint8_t { queued, compiling, done, left_to_get };
    struct Entry {
        CompileRequest request;
        State state = State::queued;
        CompiledProgram program = {};
    };
    void work();
    /// One more thread, until there are as many as allowed.
    void add_worker();
    /// The next request that is queued, marked as being compiled; null where there is none.
    Entry* next();

    CubinCache& cache_;
    const int threads_;
    std::mutex mutex_;
    std::condition_variable wake_, finished_;
    bool stop_ = false;
    std::deque<std::function<void()>> tasks_;
    std::deque<std::string> order_;
    std::unordered_map<std::string, Entry> entries_;
    std::vector<std::thread> workers_;
};

}  // namespace quiver::cuda
