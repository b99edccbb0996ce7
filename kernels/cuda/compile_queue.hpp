// SPDX-License-Identifier: BSD-3-Clause
// CompileQueue: compiles kernels on all cores in the background. Requires NVRTC, but no GPU.
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

/// The number of cores that this process may use.
int usable_cores();

/// A queue of compilation requests in order of arrival; requests that can wait come after all
/// others. The first request or task starts the first thread.
/// Each request has one expression. Ranks of a node that share a cache folder share the work: a
/// program that another process is compiling moves to the end of the queue.
class CompileQueue {
  public:
    CompileQueue(CubinCache& cache, int threads) : cache_(cache), threads_(threads) {}
    CompileQueue(const CompileQueue&) = delete;
    CompileQueue& operator=(const CompileQueue&) = delete;
    /// Drops the requests that no thread has started and waits for the others.
    ~CompileQueue();

    /// Runs `task` on one of the threads, before the waiting requests. The task may make requests;
    /// an Error that it throws is ignored. Returns at once.
    void run(std::function<void()> task);
    /// True if tasks should end early, because the queue is being destroyed.
    bool stopping();
    /// Returns at once. A no-op if the same request was made before or its program is in the cache.
    /// Requests that can wait are compiled after all others and one at a time. They therefore
    /// occupy one core at most, and the destructor waits for one of them at most.
    void request(const CompileRequest& request, bool can_wait = false);
    /// True if get() would return at once.
    bool ready(const CompileRequest& request);
    /// Returns the program. Waits for it if a thread is compiling it; compiles it here if no thread
    /// has started. Throws DeviceError if it does not compile.
    CompiledProgram get(const CompileRequest& request);
    /// Waits until all tasks have run and all requests are compiled or have failed.
    void wait();

  private:
    enum class State : std::uint8_t { queued, compiling, done, left_to_get };
    struct Entry {
        CompileRequest request;
        bool can_wait = false;
        State state = State::queued;
        CompiledProgram program = {};
    };
    void work();
    /// Starts one more thread, up to the allowed number.
    void add_worker();
    /// Marks the next queued request as being compiled and returns it; null if there is none.
    Entry* next();
    Entry* next_of(std::deque<std::string>& order);
    /// True if next() has requests to look at.
    bool any() const { return !order_.empty() || (!waiting_.empty() && !one_under_way_); }

    CubinCache& cache_;
    const int threads_;
    std::mutex mutex_;
    std::condition_variable wake_, finished_;
    bool stop_ = false;
    std::deque<std::function<void()>> tasks_;
    int running_tasks_ = 0;
    std::deque<std::string> order_, waiting_;
    bool one_under_way_ = false;  // a request that can wait is being compiled
    std::unordered_map<std::string, Entry> entries_;
    std::vector<std::thread> workers_;
};

}  // namespace quiver::cuda
