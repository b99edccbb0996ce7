// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/search/iteration_monitor.hpp"

#include <exception>
#include <string>
#include <utility>

#include "blockvec/error.hpp"

namespace quiver {

bool IterationMonitor::report(std::int64_t iteration, int converged, double residual,
                              const char* stage) {
    const int wanted = options_.window ? 0 : options_.k;
    const IterationEvent event{solver_, iteration, converged, wanted, residual, seconds(), stage};
    ctx_.emit(event);
    reported_ = event.seconds;
    if (!asks()) {
        return true;
    }
    // The largest answer of all ranks counts.
    constexpr std::int64_t go_on = 0;
    constexpr std::int64_t save = 1;
    constexpr std::int64_t expire = 2;
    constexpr std::int64_t stop = 3;
    constexpr std::int64_t threw = 4;
    std::int64_t answer = go_on;
    std::exception_ptr thrown;
    try {
        if (options_.keep_going && !options_.keep_going(event)) {
            answer = stop;
        } else if (options_.max_seconds > 0 && event.seconds >= options_.max_seconds) {
            answer = expire;
        } else if (clock_ != nullptr && clock_->due()) {
            answer = save;
        }
    } catch (...) {
        thrown = std::current_exception();
        answer = threw;
    }
    answer = ctx_.comm().max(answer);
    if (thrown) {
        std::rethrow_exception(thrown);
    }
    if (answer == threw) {
        Error error(ErrorKind::other,
                    std::string(solver_) + ": the callback of an iteration failed on another rank");
        error.set_collective();
        throw error;
    }
    save_wanted_ = save_wanted_ || answer == save;
    late_ = late_ || answer == expire;
    interrupted_ = late_ || interrupted_ || answer == stop;
    return !interrupted_;
}

bool IterationMonitor::report_within(std::int64_t iteration, int converged, double residual,
                                     const char* stage) {
    if (interrupted_) {
        return false;
    }
    if (!asks()) {
        return true;
    }
    constexpr double patience_seconds = 0.5;
    const std::int64_t old = seconds() - reported_ > patience_seconds ? 1 : 0;
    return ctx_.comm().max(old) == 0 || report(iteration, converged, residual, stage);
}

bool IterationMonitor::take_save_request(bool ends_early) {
    if (clock_ == nullptr) {
        return false;
    }
    const bool last = ends_early && !std::exchange(end_saved_, true);
    return std::exchange(save_wanted_, false) || last;
}

double IterationMonitor::seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

}  // namespace quiver
