// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/compile_queue.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <sched.h>

#include "blockvec/error.hpp"

namespace quiver::cuda {

int usable_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) == 0) {
        return std::max(1, CPU_COUNT(&set));
    }
    // Fallback for machines with more cores than a cpu_set_t has bits.
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

CompileQueue::~CompileQueue() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) {
        worker.join();
    }
}

void CompileQueue::run(std::function<void()> task) {
    {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(task));
        add_worker();
    }
    wake_.notify_one();
}

bool CompileQueue::stopping() {
    const std::lock_guard lock(mutex_);
    return stop_;
}

void CompileQueue::add_worker() {
    if (static_cast<int>(workers_.size()) < threads_) {
        workers_.emplace_back([this] { work(); });
    }
}

void CompileQueue::request(const CompileRequest& request, bool can_wait) {
    const std::string& name = request.expressions.front();
    if (cache_.has(request)) {
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        if (stop_ || !entries_.emplace(name, Entry{request, can_wait}).second) {
            return;
        }
        (can_wait ? waiting_ : order_).push_back(name);
        if (!can_wait || workers_.empty()) {
            add_worker();
        }
    }
    wake_.notify_one();
}

CompileQueue::Entry* CompileQueue::next() {
    Entry* entry = next_of(order_);
    if (entry == nullptr && !one_under_way_) {
        entry = next_of(waiting_);
        one_under_way_ = entry != nullptr;
    }
    return entry;
}

CompileQueue::Entry* CompileQueue::next_of(std::deque<std::string>& order) {
    while (!order.empty()) {
        const auto found = entries_.find(order.front());
        order.pop_front();
        if (found != entries_.end() && found->second.state == State::queued) {
            found->second.state = State::compiling;
            return &found->second;
        }
    }
    return nullptr;
}

void CompileQueue::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        wake_.wait(lock, [this] { return stop_ || any() || !tasks_.empty(); });
        if (stop_) {
            return;
        }
        if (!tasks_.empty()) {
            const std::function<void()> task = std::move(tasks_.front());
            tasks_.pop_front();
            ++running_tasks_;
            lock.unlock();
            try {
                task();
            } catch (const Error&) {
                // The task is only a hint: missing kernels are compiled at their first use.
            }
            lock.lock();
            --running_tasks_;
            finished_.notify_all();
            continue;
        }
        // References to entries stay valid: other entries are inserted, but no entry is ever
        // removed.
        Entry* const entry = next();
        if (entry == nullptr) {
            continue;
        }
        lock.unlock();
        std::optional<CompiledProgram> program;
        State state = State::queued;
        try {
            program = cache_.get_unless_busy(entry->request);
            state = program ? State::done : State::queued;
        } catch (const Error&) {
            // get() compiles it again and reports the error to its caller.
            state = State::left_to_get;
        }
        lock.lock();
        if (entry->can_wait) {
            one_under_way_ = false;
            wake_.notify_one();
        }
        entry->state = state;
        if (program) {
            entry->program = *std::move(program);
        } else if (state == State::queued) {
            (entry->can_wait ? waiting_ : order_).push_back(entry->request.expressions.front());
        }
        finished_.notify_all();
        if (state == State::queued && !stop_) {
            // Another process compiles this program: continue with the next one, after a short
            // pause.
            wake_.wait_for(lock, std::chrono::milliseconds(2), [this] { return stop_; });
        }
    }
}

bool CompileQueue::ready(const CompileRequest& request) {
    {
        const std::lock_guard lock(mutex_);
        const auto found = entries_.find(request.expressions.front());
        if (found != entries_.end() && found->second.state == State::done) {
            return true;
        }
    }
    return cache_.has(request);
}

CompiledProgram CompileQueue::get(const CompileRequest& request) {
    std::unique_lock lock(mutex_);
    const auto found = entries_.find(request.expressions.front());
    if (found != entries_.end()) {
        finished_.wait(lock, [&] { return found->second.state != State::compiling; });
        const State state = found->second.state;
        if (state == State::done) {
            // The entry stays, so that a repeated request is a no-op.
            found->second.state = State::left_to_get;
            return std::move(found->second.program);
        }
        found->second.state = State::left_to_get;
    }
    lock.unlock();
    return cache_.get(request);
}

void CompileQueue::wait() {
    const auto under_way = [](const auto& entry) {
        return entry.second.state == State::queued || entry.second.state == State::compiling;
    };
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] {
        return tasks_.empty() && running_tasks_ == 0 &&
               std::none_of(entries_.begin(), entries_.end(), under_way);
    });
}

}  // namespace quiver::cuda
